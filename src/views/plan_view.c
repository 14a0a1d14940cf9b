/* SPDX-License-Identifier: Apache-2.0 */
/* plan_view.c - plans as CSV, and the pages of orrery plan --report: web/plan.html for training,
 * web/plan_serve.html for serving, with the data inserted at their marks. */
#include <orrery/lab/plan.h>

#include "base/formats/json.h"
#include "base/io/output.h"
#include "views_impl.h"

#include <inttypes.h>
#include <string.h>

/* Made from web/ by the build. */
extern const char orr__plan_html[], orr__plan_serve_html[], orr__plan_css[], orr__plan_style[],
    orr__plan_parts[];

static const char *const recompute_words[] = {"none", "selective", "full", "operators"};

static void put_row(orr_buf *b, const orr_plan *p)
{
    const orr_llm_options *o = &p->options;
    const orr_plan_shares *x = &p->shares;
    orr_buf_print(
        b, "%.9g,%.9g,%.9g,%.9g,%.9g,%.6g,%" PRIu64 ",%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,",
        p->step_s, p->low_s, p->high_s, p->bound_s, p->tokens_per_s, p->mfu, p->memory.peak,
        p->usd_per_mtoken, x->compute, x->tensor, x->context, x->expert, x->data, x->pipeline,
        x->bubble);
    orr_buf_print(b, "%u,%u,%u,%u,%u,%u,%" PRIu64 ",%s,%u,%s,%d\n", o->tp, o->cp, o->pp, o->dp,
                  o->ep, o->zero, o->micro_batch, orr_pipeline_name(o->pipeline), o->chunks,
                  recompute_words[o->recompute & 3], o->tp > 1 && !o->no_sequence_parallel);
}

orr_code orr_plan_write_csv(const orr_plan_search *s, const char *path, orr_error *err)
{
    orr_buf b = {0};
    const orr_plan *p;
    orr_buf_text(
        &b,
        "step_s,low_s,high_s,bound_s,tokens_per_s,mfu,memory_bytes,usd_per_mtoken,compute,tensor,"
        "context,expert,data,pipeline,bubble,tp,cp,pp,dp,ep,zero,micro_batch,schedule,chunks,"
        "recompute,sequence_parallel\n");
    for (size_t i = 0; (p = orr_plan_at(s, i)); i++)
        put_row(&b, p);
    const orr_code code = orr_output_save(&b, path, err);
    orr_buf_fini(&b);
    return code;
}

/* ---- pages ---- */

/* The page up to a mark; *at moves past it. */
static void put_until(orr_buf *b, const char **at, const char *mark)
{
    const char *found = strstr(*at, mark);
    const char *end = found ? found : *at + strlen(*at);
    orr_buf_add(b, *at, (size_t)(end - *at));
    *at = found ? found + strlen(mark) : end;
}

orr_code orr_plan_write_page(
    orr_plan_page kind, const char *title, orr_str json, const char *path, orr_error *err)
{
    const char *at = kind == ORR_PLAN_SERVING ? orr__plan_serve_html : orr__plan_html;
    orr_buf page = {0}, data = {0};
    orr_buf_add(&data, json.ptr, json.len);
    put_until(&page, &at, "<!--orrery:title-->");
    orr__put_html(&page, orr_str_of(title));
    put_until(&page, &at, "<!--orrery:css-->");
    orr_buf_text(&page, orr__plan_css);
    put_until(&page, &at, "<!--orrery:style-->");
    orr_buf_text(&page, orr__plan_style);
    put_until(&page, &at, "<!--orrery:data-->");
    orr_json_in_page(&data, &page);
    put_until(&page, &at, "<!--orrery:parts-->");
    orr_buf_text(&page, orr__plan_parts);
    orr_buf_text(&page, at);
    page.failed |= data.failed;
    const orr_code code = orr_output_save(&page, path, err);
    orr_buf_fini(&data);
    orr_buf_fini(&page);
    return code;
}
