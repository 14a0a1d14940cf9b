/* SPDX-License-Identifier: Apache-2.0 */
/* plan_serving.c - orrery plan --serve: how to serve a model on a machine, by the estimate of serve.h. */
#include "plan.h"

#include "base/text/text.h"
#include "html_report.h"
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

enum { COMMAND_ROOM = 700 };

static const char *command_of(const cli_context *c,
                              const orr_plan_serve_options *o,
                              const orr_plan_serving *p,
                              char out[COMMAND_ROOM])
{
    char ep[24] = "";
    if (p->ranks.ep > 1)
        snprintf(ep, sizeof ep, " --ep %u", p->ranks.ep);
    snprintf(out, COMMAND_ROOM,
             "orrery serve %.200s --machine %.200s --tp %u --pp %u --dp %u%s --batch %llu --prompt "
             "%llu --output-tokens %llu --max-batch %llu",
             c->args[0], o->machine, p->ranks.tp, p->ranks.pp, p->ranks.dp, ep,
             (unsigned long long)o->requests, (unsigned long long)o->prompt,
             (unsigned long long)o->output, (unsigned long long)p->max_batch);
    return out;
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
    char command[COMMAND_ROOM];
    printf("\nto reproduce plan 1:\n  %s\n", command_of(c, o, &list[0], command));
}

static void put_plan(const cli_context *c,
                     const orr_plan_serve_options *o,
                     const orr_plan_serving *p,
                     bool has_command,
                     orr_json_writer *w)
{
    char command[COMMAND_ROOM];
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
    if (has_command)
        orr_json_put_text(w, "serve", command_of(c, o, p, command));
    orr_json_end_object(w);
}

static void put_all(const cli_context *c,
                    const orr_plan_serve_options *o,
                    const orr_plan_serving *list,
                    size_t count,
                    bool has_commands,
                    orr_json_writer *w)
{
    orr_json_put_text(w, "program", "orrery " ORR_VERSION);
    orr_json_put_text(w, "model", c->args[0]);
    orr_json_put_text(w, "machine", o->machine);
    orr_json_put_u64(w, "requests", o->requests);
    orr_json_put_u64(w, "prompt", o->prompt);
    orr_json_put_u64(w, "output", o->output);
    cli_json_array(w, "plans");
    for (size_t i = 0; i < count; i++)
        put_plan(c, o, &list[i], has_commands, w);
    orr_json_end_array(w);
}

static void print_json(const cli_context *c,
                       const orr_plan_serve_options *o,
                       const orr_plan_serving *list,
                       size_t count)
{
    cli_json j;
    const size_t top = cli_count(c, "top");
    put_all(c, o, list, count < top ? count : top, false, cli_json_open(&j, "orrery-plan-serve"));
    cli_json_close(&j);
}

/* Of a very large machine the page has the best so many. */
enum { PAGE_PLANS = 2000 };

static orr_code write_page(const cli_context *c,
                           const orr_plan_serve_options *o,
                           const orr_machine *m,
                           const orr_plan_serving *list,
                           size_t count,
                           orr_error *err)
{
    char title[300], *line = cli_command_line(c);
    orr_buf text = {0};
    orr_json_writer w;
    if (!line)
        return orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
    orr_json_writer_init(&w, &text, NULL);
    orr_json_begin_object(&w);
    put_all(c, o, list, count < PAGE_PLANS ? count : PAGE_PLANS, true, &w);
    orr_json_put_u64(&w, "devices", orr_machine_devices(m));
    orr_json_put_u64(&w, "device_bytes", m->memory);
    orr_json_put_double(&w, "max_ttft_s", o->max_ttft_s);
    orr_json_put_double(&w, "max_tpot_s", o->max_tpot_s);
    orr_json_put_text(&w, "made_from", line);
    orr_json_end_object(&w);
    snprintf(title, sizeof title, "%.140s served by %.140s", c->args[0], o->machine);
    const orr_code code = line ? cli_plan_page(true, title, &text, cli_text(c, "report"), err)
                               : orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
    orr_buf_fini(&text);
    free(line);
    return code;
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
    if (!code && (code = orr_machine_find(o.machine, &machine, err)))
        code = orr_because(err, code, "--machine %s", o.machine);
    if (!code && !o.requests)
        o.requests = orr_machine_devices(&machine);
    if (!code)
        code = orr_plan_serve(&o, &list, &count, err);
    if (code)
        return code;
    if (cli_given(c, "report"))
        code = write_page(c, &o, &machine, list, count, err);
    if (!code && cli_flag(c, "json"))
        print_json(c, &o, list, count);
    else if (!code)
        print_text(c, &o, list, count);
    orr_plan_serve_free(list);
    return code;
}
