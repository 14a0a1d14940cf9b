/* SPDX-License-Identifier: Apache-2.0 */
/* plan_serving.c - orrery plan --serve: how to serve a model on a machine, by the estimate of serve.h. */
#include "plan.h"

#include "base/text/text.h"
#include "json_out.h"

#include <orrery/lab/units.h>
#include <orrery/version.h>

#include <stdlib.h>

static orr_code read_time(const cli_context *c, const char *name, double *out, orr_error *err)
{
    orr_ps ps = 0;
    const char *text = cli_text(c, name);
    const orr_code code = text ? orr_time_parse(text, &ps, err) : ORR_OK;
    *out = (double)ps * 1e-12;
    return code ? orr_because(err, code, "--%s", name) : ORR_OK;
}

static const char *seconds(double s, char room[ORR_UNIT_ROOM])
{
    return orr_time_text((orr_ps)(s * 1e12), room);
}

static void print_command(const cli_context *c,
                          const orr_plan_serve_options *o,
                          const orr_plan_serving *p)
{
    printf("orrery serve %s --machine %s --tp %u --pp %u --dp %u", c->args[0], o->machine,
           p->ranks.tp, p->ranks.pp, p->ranks.dp);
    if (p->ranks.ep > 1)
        printf(" --ep %u", p->ranks.ep);
    printf(" --batch %llu --prompt %llu --output-tokens %llu --max-batch %llu\n",
           (unsigned long long)o->requests, (unsigned long long)o->prompt,
           (unsigned long long)o->output, (unsigned long long)p->max_batch);
}

static void print_text(const cli_context *c,
                       const orr_plan_serve_options *o,
                       const orr_plan_serving *list,
                       size_t count)
{
    char a[4][ORR_UNIT_ROOM];
    const bool has_price = list[0].usd_per_mtoken > 0;
    printf("%s on %s: %s requests of %llu tokens, answers of %llu; %zu plans\n\n", c->args[0],
           o->machine, orr_count_text(o->requests, a[0]), (unsigned long long)o->prompt,
           (unsigned long long)o->output, count);
    printf("%3s %10s %10s %9s%s  %s\n", "", "tokens/s", "TTFT", "TPOT",
           has_price ? "   $/Mtoken" : "", "plan");
    for (size_t i = 0; i < count && i < cli_count(c, "top"); i++) {
        const orr_plan_serving *p = &list[i];
        printf("%3zu %10s %10s %9s", i + 1, orr_short_text((uint64_t)p->tokens_per_s, a[0]),
               seconds(p->ttft_s, a[1]), seconds(p->tpot_s, a[2]));
        if (has_price)
            printf(" %10.4f", p->usd_per_mtoken);
        printf("  %u replica%s of tp %u pp %u", p->ranks.dp, p->ranks.dp == 1 ? "" : "s",
               p->ranks.tp, p->ranks.pp);
        if (p->ranks.ep > 1)
            printf(", ep %u", p->ranks.ep);
        printf(", %llu sequences together\n", (unsigned long long)p->max_batch);
    }
    printf("\nto reproduce plan 1:\n  ");
    print_command(c, o, &list[0]);
}

static void print_json(const cli_context *c,
                       const orr_plan_serve_options *o,
                       const orr_plan_serving *list,
                       size_t count)
{
    cli_json j;
    orr_json_writer *w = cli_json_open(&j, "orrery-plan-serve");
    orr_json_put_text(w, "program", "orrery " ORR_VERSION);
    orr_json_put_text(w, "model", c->args[0]);
    orr_json_put_text(w, "machine", o->machine);
    orr_json_put_u64(w, "requests", o->requests);
    orr_json_put_u64(w, "prompt", o->prompt);
    orr_json_put_u64(w, "output", o->output);
    cli_json_array(w, "plans");
    for (size_t i = 0; i < count && i < cli_count(c, "top"); i++) {
        const orr_plan_serving *p = &list[i];
        orr_json_line(w, 4);
        orr_json_begin_object(w);
        orr_json_put_double(w, "tokens_per_s", p->tokens_per_s);
        orr_json_put_double(w, "ttft_s", p->ttft_s);
        orr_json_put_double(w, "tpot_s", p->tpot_s);
        if (p->usd_per_mtoken > 0)
            orr_json_put_double(w, "usd_per_mtoken", p->usd_per_mtoken);
        orr_json_put_u64(w, "tp", p->ranks.tp);
        orr_json_put_u64(w, "pp", p->ranks.pp);
        orr_json_put_u64(w, "ep", p->ranks.ep);
        orr_json_put_u64(w, "replicas", p->ranks.dp);
        orr_json_put_u64(w, "max_batch", p->max_batch);
        orr_json_put_u64(w, "weight_bytes", p->report.pools[0].weight_bytes);
        orr_json_put_u64(w, "kv_bytes", p->report.pools[0].kv_peak);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    cli_json_close(&j);
}

orr_code cli_plan_serve(cli_context *c, double usd_per_hour, orr_error *err)
{
    orr_model model;
    orr_machine machine;
    orr_plan_serving *list;
    size_t count;
    orr_code code = orr_model_load(c->args[0], &model, err);
    orr_plan_serve_options o = {.size = sizeof o,
                                .model = &model,
                                .machine = cli_text(c, "machine"),
                                .requests = cli_count(c, "requests"),
                                .prompt = cli_count(c, "prompt"),
                                .output = cli_count(c, "output"),
                                .usd_per_hour = usd_per_hour,
                                .threads = (unsigned)cli_count(c, "threads")};
    if (!code)
        code = read_time(c, "max-ttft", &o.max_ttft_s, err);
    if (!code)
        code = read_time(c, "max-tpot", &o.max_tpot_s, err);
    orr_dtype_find(orr_str_of(cli_text(c, "dtype")), &o.dtype);
    if (!code && !o.requests && !(code = orr_machine_find(o.machine, &machine, err)))
        o.requests = orr_machine_devices(&machine);
    if (!code)
        code = orr_plan_serve(&o, &list, &count, err);
    if (code)
        return code;
    if (cli_flag(c, "json"))
        print_json(c, &o, list, count);
    else
        print_text(c, &o, list, count);
    orr_plan_serve_free(list);
    return ORR_OK;
}
