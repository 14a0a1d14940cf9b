/* SPDX-License-Identifier: Apache-2.0 */
/* stage_files.c - one file a rank, under names the user chose.
 *
 * Bodies are encoded once for each pipeline stage; a rank's file is its body with the holes filled, copied
 * together in memory that is used again, on all cores. */
#include "stage_impl.h"

#include "base/io/output.h"
#include "base/threads/pool.h"
#include "trace/set_impl.h"

#include <stdio.h>

enum { PATH_ROOM = 4096, BATCH = 16 };

/* "a%%b.%d.et" taken apart: what stands before and after the rank. */
typedef struct pattern {
    char before[PATH_ROOM], after[PATH_ROOM];
} pattern;

static orr_code read_pattern(const char *text, pattern *out, orr_error *err)
{
    char *to = out->before;
    size_t n = 0;
    bool has_rank = false;
    for (; *text; text++) {
        if (n + 1 >= PATH_ROOM)
            return orr_fail(err, ORR_EUSAGE, NULL, "the output's name is too long");
        if (text[0] == '%' && text[1] == 'd' && !has_rank) {
            has_rank = true;
            to[n] = '\0';
            to = out->after;
            n = 0;
            text++;
            continue;
        }
        if (text[0] == '%' && text[1] != '%')
            return orr_fail(err, ORR_EUSAGE, NULL,
                            "the output's name may have one %%d, for the rank; a percent sign is "
                            "written %%%%");
        text += text[0] == '%';
        to[n++] = *text;
    }
    to[n] = '\0';
    return has_rank ? ORR_OK
                    : orr_fail(err, ORR_EUSAGE, NULL, "the output's name has no %%d for the rank");
}

typedef struct writing {
    orr_stage *job;
    orr_set *set; /* NULL: traces and texts are made rank by rank */
    pattern names;
    orr_stage_form form;
} writing;

static orr_code put_file(const writing *w, uint32_t rank, orr_span bytes, orr_error *err)
{
    char path[2 * PATH_ROOM + 16];
    orr_output *o;
    snprintf(path, sizeof path, "%s%u%s", w->names.before, rank, w->names.after);
    const orr_code code = orr_output_open(path, &o, err);
    if (code)
        return code;
    orr_output_add(o, bytes.ptr, bytes.len);
    return orr_output_commit(&o, err);
}

static orr_code write_filled(const writing *w, uint32_t rank, orr_buf *bytes, orr_error *err)
{
    const orr__rank *r = &w->set->ranks[rank];
    const orr__class *c = &w->set->classes[r->class_index];
    if (c->hole_count == 0)
        return put_file(w, rank, c->t->bytes, err);
    bytes->len = 0;
    if (!orr__fill(c, w->set->values + r->values_at, bytes))
        return orr_no_memory(err);
    return put_file(w, rank, (orr_span){bytes->ptr, bytes->len}, err);
}

/* Some ranks in a row, so that the memory for one serves the next. */
static orr_code write_batch(void *context, size_t batch, orr_error *err)
{
    const writing *w = context;
    const uint32_t count = orr_stage_rank_count(w->job), first = (uint32_t)batch * BATCH;
    orr_buf bytes = {0};
    orr_code code = ORR_OK;
    for (uint32_t rank = first; rank < count && rank < first + BATCH && !code; rank++)
        code = write_filled(w, rank, &bytes, err);
    orr_buf_fini(&bytes);
    return code;
}

/* Ranks one after the other: what differs is not a hole. */
static orr_code write_each(const writing *w, orr_error *err)
{
    orr_buf text = {0};
    orr_code code = ORR_OK;
    for (uint32_t rank = 0; rank < orr_stage_rank_count(w->job) && !code; rank++) {
        text.len = 0;
        if (w->form == ORR_STAGE_JSON) {
            code = stg_json(w->job, rank, &text, err);
        } else {
            orr_trace *t;
            code = orr_stage_trace(w->job, rank, &t, err);
            if (!code)
                orr_buf_add(&text, t->bytes.ptr, t->bytes.len);
            orr_trace_destroy(t);
        }
        if (!code)
            code = text.failed ? orr_no_memory(err)
                               : put_file(w, rank, (orr_span){text.ptr, text.len}, err);
    }
    orr_buf_fini(&text);
    return code;
}

orr_code orr_stage_write_files(
    orr_stage *job, const char *text, orr_stage_form form, unsigned threads, orr_error *err)
{
    writing w = {.job = job, .form = form};
    orr_code code = read_pattern(text, &w.names, err);
    if (code)
        return code;
    if (form == ORR_STAGE_JSON || job->opt.legacy_attr)
        return write_each(&w, err);
    code = orr_stage_set(job, &w.set, err);
    if (code)
        return code;
    const size_t batches = ((size_t)orr_stage_rank_count(job) + BATCH - 1) / BATCH;
    code = orr_pool_for(threads, batches, write_batch, &w, err);
    orr_set_close(w.set);
    return code;
}
