/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_plan.c - orrery plan MODEL: the best parallelism for a model on a machine (plan.h). */
#include "base/text/text.h"
#include "command.h"
#include "json_out.h"

#include <orrery/lab/plan.h>
#include <orrery/lab/progress.h>
#include <orrery/lab/software.h>
#include <orrery/lab/units.h>

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(name, fallback_, help_)                           \
    {                                                           \
        name, 0, "N", help_, CLI_COUNT, 1, INT32_MAX, fallback_ \
    }
static const cli_option options[] = {
    {"machine", 0, "MACHINE",
     "cluster by name (dgx-h100:128 is 128 nodes; orrery machine list) or file", .required = true},
    COUNT("batch", NULL, "sequences per step (default: one per device)"),
    COUNT("seq", NULL, "tokens per sequence (default: the model's)"),
    {"fix", 0, "LIST", "search only plans with these: tp=8,zero=1,pipeline=1f1b,..."},
    {"goal", 0, "time|cost|memory", "what the best plan has least of", .fallback = "time"},
    {"top", 0, "N", "print so many plans", CLI_COUNT, 1, 1000, "10"},
    {"price", 0, "USD", "price of a device per hour (default: the machine's)"},
    {"reserve", 0, "BYTES", "memory of a device that stays free", .fallback = "4GiB"},
    {"dtype", 0, "bf16|fp16|fp8|fp32", "data type of matrix products", .fallback = "bf16"},
    {"grads-fp32", 0, NULL, "keep and reduce gradients in fp32"},
    {"tp-overlap", 0, NULL, "tensor-parallel traffic goes piece by piece with its products"},
    {"software", 0, "NAME", "whose kernels (default: the machine's, or megatron-core)"},
    {"no-prune", 0, NULL,
     "simulate every plan that fits, not only those that can be among the best"},
    {"threads", 0, "N", "threads; 0: one per core", CLI_COUNT, 0, 256, "0"},
    {"csv", 0, "FILE", "write every plan that was simulated, one row each"},
    {"json", 0, NULL, "print one JSON object"},
    {0},
};

static const cli_argument arguments[] = {
    {"MODEL", "a name from 'orrery model --list', or a file", CLI_ONCE},
    {0},
};

static const cli_example examples[] = {
    {"The best ten plans for Llama 3 8B on 16 H100:",
     "orrery plan llama-3-8b --machine dgx-h100:2 --batch 64 --seq 8192", 0},
    {"Only those with tensor parallelism inside a node:",
     "orrery plan llama-3-8b --machine dgx-h100:2 --batch 64 --seq 8192 --fix tp=8,pp=1", 0},
    {0},
};

/* ---- options ---- */

static orr_code read_fixed(const char *list, orr_plan_options *o, orr_error *err)
{
    orr_code code = ORR_OK;
    for (const char *p = list; p && !code;) {
        const size_t len = strcspn(p, ",");
        char one[80];
        if (len >= sizeof one)
            return orr_fail(err, ORR_EUSAGE, NULL, "--fix: '%.*s...' is too long", 40, p);
        memcpy(one, p, len);
        one[len] = 0;
        code = orr_plan_fix(o, one, err);
        p = p[len] ? p + len + 1 : NULL;
    }
    return code ? orr_because(err, code, "--fix") : ORR_OK;
}

static orr_code read_price(const char *text, double *out, orr_error *err)
{
    char *end;
    *out = text ? strtod(text, &end) : 0;
    if (!text || (end != text && !*end && *out > 0 && *out < 1e6))
        return ORR_OK;
    return orr_fail(err, ORR_EUSAGE, NULL, "--price '%s' is not a number of US dollars above 0",
                    text);
}

static orr_code read_options(const cli_context *c, orr_plan_options *o, orr_error *err)
{
    orr_bytes reserve;
    const char *software = cli_text(c, "software"), *goal = cli_text(c, "goal");
    *o = (orr_plan_options){.size = sizeof *o,
                            .machine = cli_text(c, "machine"),
                            .batch = cli_count(c, "batch"),
                            .seq = cli_count(c, "seq"),
                            .top = (uint32_t)cli_count(c, "top"),
                            .no_prune = cli_flag(c, "no-prune"),
                            .threads = (unsigned)cli_count(c, "threads"),
                            .goal = *goal == 't'   ? ORR_PLAN_TIME
                                    : *goal == 'c' ? ORR_PLAN_COST
                                                   : ORR_PLAN_MEMORY};
    o->base.grads_fp32 = cli_flag(c, "grads-fp32");
    o->base.overlaps_tensor = cli_flag(c, "tp-overlap");
    orr_dtype_find(orr_str_of(cli_text(c, "dtype")), &o->base.dtype);
    if (software && !(o->base.software = orr_software_find(software)))
        return orr_fail(err, ORR_EUSAGE, NULL, "--software '%s': 'orrery help stage' lists them",
                        software);
    orr_code code = orr_bytes_parse(cli_text(c, "reserve"), &reserve, err);
    if (code)
        return orr_because(err, code, "--reserve");
    o->reserve = (uint64_t)reserve;
    code = read_price(cli_text(c, "price"), &o->usd_per_hour, err);
    return code ? code : read_fixed(cli_text(c, "fix"), o, err);
}

/* ---- text ---- */

static void print_plans(const cli_context *c, const orr_plan_search *s)
{
    const size_t top = cli_count(c, "top");
    const orr_plan *p;
    printf("\n%3s %10s %9s %7s %9s %8s %7s  %s\n", "", "step", "tokens/s", "MFU", "memory",
           "exposed", "bubble", "plan");
    for (size_t i = 0; i < top && (p = orr_plan_at(s, i)); i++) {
        char words[200], a[3][ORR_UNIT_ROOM];
        const orr_plan_shares *x = &p->shares;
        orr_plan_words(p, words, sizeof words);
        printf("%3zu %10s %9s %5.1f %% %9s %6.1f %% %5.1f %%  %s; %s\n", i + 1,
               orr_time_text((orr_ps)(p->step_s * 1e12), a[0]),
               orr_short_text((uint64_t)p->tokens_per_s, a[1]), 100 * p->mfu,
               orr_bytes_text((orr_bytes)p->memory.peak, a[2]),
               100 * (x->tensor + x->context + x->expert + x->data + x->pipeline), 100 * x->bubble,
               words, p->limit);
    }
}

static void print_text(const cli_context *c, const orr_plan_search *s)
{
    orr_plan_counts n;
    char a[4][ORR_UNIT_ROOM];
    const orr_machine *m = orr_plan_search_machine(s);
    orr_plan_search_counts(s, &n);
    printf("%s on %u devices of %s: %s legal plans, %s fit, %s were simulated\n", c->args[0],
           orr_machine_devices(m), m->name, orr_count_text(n.legal, a[0]),
           orr_count_text(n.fitting, a[1]), orr_count_text(n.simulated, a[2]));
    print_plans(c, s);
}

/* ---- CSV ---- */

static orr_code write_csv(const orr_plan_search *s, const char *path, orr_error *err)
{
    const orr_where w = orr_where_byte(path, ORR_NO_BYTE);
    const bool is_out = strcmp(path, "-") == 0;
    FILE *f = is_out ? stdout : fopen(path, "w");
    const orr_plan *p;
    if (!f)
        return orr_fail(err, ORR_EIO, &w, "cannot create: %s", strerror(errno));
    fprintf(f, "step_s,low_s,high_s,bound_s,tokens_per_s,mfu,memory_bytes,usd_per_mtoken,compute,tensor,context,expert,"
               "data,pipeline,bubble,tp,cp,pp,dp,ep,zero,micro_batch,schedule,chunks,recompute,"
               "sequence_parallel\n");
    for (size_t i = 0; (p = orr_plan_at(s, i)); i++) {
        const orr_llm_options *o = &p->options;
        const orr_plan_shares *x = &p->shares;
        fprintf(f, "%.9g,%.9g,%.9g,%.9g,%.9g,%.6g,%" PRIu64 ",%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,", p->step_s,
                p->low_s, p->high_s, p->bound_s, p->tokens_per_s, p->mfu, p->memory.peak,
                p->usd_per_mtoken, x->compute, x->tensor, x->context, x->expert, x->data, x->pipeline,
                x->bubble);
        fprintf(f, "%u,%u,%u,%u,%u,%u,%" PRIu64 ",%s,%u,%d,%d\n", o->tp, o->cp, o->pp, o->dp, o->ep, o->zero,
                o->micro_batch, orr_pipeline_name(o->pipeline), o->chunks, (int)o->recompute,
                o->tp > 1 && !o->no_sequence_parallel);
    }
    const bool failed = ferror(f) || (is_out ? fflush(f) : fclose(f));
    return failed ? orr_fail(err, ORR_EIO, &w, "cannot write: %s", strerror(errno)) : ORR_OK;
}

/* ---- the command ---- */

static orr_code run_plan(cli_context *c, orr_error *err)
{
    orr_plan_options o;
    orr_plan_search *s = NULL;
    orr_model model;
    orr_code code = orr_model_load(c->args[0], &model, err);
    if (!code)
        code = read_options(c, &o, err);
    if (code)
        return code;
    o.model = &model;
    code = orr_plan_search_create(&o, &s, err);
    if (!code)
        code = orr_plan_search_run(s, err);
    if (!code)
        print_text(c, s);
    if (!code && cli_given(c, "csv"))
        code = write_csv(s, cli_text(c, "csv"), err);
    orr_plan_search_destroy(s);
    return code;
}

const cli_command cli_cmd_plan = {
    .name = "plan",
    .summary = "search the best parallelism for a model on a machine",
    .description = "Searches all legal plans.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-stage(1), orrery-run(1), orrery-machine(1)",
    .run = run_plan,
};
