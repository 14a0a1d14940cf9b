/* SPDX-License-Identifier: Apache-2.0 */
/* report_run.c - what came out of a run: a short table for people, one JSON object for programs. */
#include "sim_impl.h"

#include "../base/json.h"

#include <orrery/units.h>

#include <inttypes.h>
#include <stdlib.h>

typedef struct spread {
    uint64_t least, median, most;
} spread;

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

typedef uint64_t (*figure)(const orr_sim_rank_result *r);

static uint64_t finish(const orr_sim_rank_result *r)
{
    return r->finished_at;
}
static uint64_t compute(const orr_sim_rank_result *r)
{
    return r->gpu_time;
}
static uint64_t communication(const orr_sim_rank_result *r)
{
    return r->comm_time;
}
static uint64_t exposed(const orr_sim_rank_result *r)
{
    return r->finished_at > r->gpu_total ? r->finished_at - r->gpu_total : 0;
}
static uint64_t idle(const orr_sim_rank_result *r)
{
    const uint64_t busy = r->gpu_time + r->comm_time;
    return r->finished_at > busy ? r->finished_at - busy : 0;
}
static uint64_t host(const orr_sim_rank_result *r)
{
    return r->cpu_time;
}
static uint64_t memory(const orr_sim_rank_result *r)
{
    return r->memory_time;
}

static const struct {
    const char *label, *key;
    figure of;
} figures[] = {
    {"finished at", "finished_at_ns", finish},
    {"compute", "compute_ns", compute},
    {"communication", "communication_ns", communication},
    {"  exposed", "exposed_communication_ns", exposed},
    {"remote memory", "remote_memory_ns", memory},
    {"host", "host_ns", host},
    {"neither", "idle_ns", idle},
};

static bool spread_of(const orr_sim *s, figure of, spread *out)
{
    uint64_t *values = orr_alloc(s->finished, sizeof *values);
    if (!values)
        return false;
    for (uint32_t i = 0; i < s->finished; i++)
        values[i] = of(orr_sim_rank(s, s->finish_order[i]));
    qsort(values, s->finished, sizeof *values, compare);
    *out = (spread){0};
    if (s->finished)
        *out = (spread){values[0], values[s->finished / 2], values[s->finished - 1]};
    orr_free(values);
    return true;
}

static void print_time(orr_buf *b, uint64_t ns)
{
    char text[ORR_UNIT_ROOM];
    const orr_ps ps = ns < INT64_MAX / 1000 ? (orr_ps)(ns * 1000) : INT64_MAX;
    orr_time_text(ps, text);
    orr_buf_print(b, " %12s", text);
}

static orr_code print_table(const orr_sim *s, orr_buf *b, orr_error *err)
{
    orr_buf_print(b, "%u of %u ranks finished; network: %s\n\n%-16s %12s %12s %12s\n", s->finished,
                  s->npu_count, s->net_ops->name, "", "fastest", "median", "slowest");
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        spread v;
        if (!spread_of(s, figures[i].of, &v))
            return orr_no_memory(err);
        if (v.most == 0 && i > 3)
            continue;
        orr_buf_print(b, "%-16s", figures[i].label);
        print_time(b, v.least);
        print_time(b, v.median);
        print_time(b, v.most);
        orr_buf_byte(b, '\n');
    }
    orr_buf_print(b, "\n%" PRIu64 " messages, %" PRIu64 " events\n", s->messages,
                  orr_sim_events(s));
    return ORR_OK;
}

static orr_code save(orr_buf *b, const char *path, orr_error *err)
{
    orr_output *o;
    const orr_code code = orr_output_open(path, &o, err);
    if (code)
        return code;
    orr_output_drain(o, b);
    return orr_output_commit(&o, err);
}

orr_code orr_sim_write_text(const orr_sim *s, const char *path, orr_error *err)
{
    orr_buf b = {0};
    orr_code code = print_table(s, &b, err);
    if (!code)
        code = save(&b, path, err);
    orr_buf_fini(&b);
    return code;
}

static void put_rank(orr_json_writer *w, const orr_sim *s, uint32_t rank)
{
    const orr_sim_rank_result *r = orr_sim_rank(s, rank);
    orr_json_begin_object(w);
    orr_json_key(w, "rank");
    orr_json_u64(w, rank);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        orr_json_key(w, figures[i].key);
        if (r->finished_at == ORR_NEVER)
            orr_json_null(w);
        else
            orr_json_u64(w, figures[i].of(r));
    }
    orr_json_end_object(w);
}

orr_code orr_sim_write_json(const orr_sim *s, const char *path, orr_error *err)
{
    orr_buf b = {0};
    orr_json_writer w;
    const orr_json_style style = {.indent = 2};
    orr_json_writer_init(&w, &b, &style);
    orr_json_begin_object(&w);
    orr_json_key(&w, "format");
    orr_json_text(&w, "orrery-run");
    orr_json_key(&w, "version");
    orr_json_u64(&w, 1);
    orr_json_key(&w, "network");
    orr_json_text(&w, s->net_ops->name);
    orr_json_key(&w, "ranks");
    orr_json_u64(&w, s->npu_count);
    orr_json_key(&w, "finished_ranks");
    orr_json_u64(&w, s->finished);
    orr_json_key(&w, "messages");
    orr_json_u64(&w, s->messages);
    orr_json_key(&w, "events");
    orr_json_u64(&w, orr_sim_events(s));
    orr_json_key(&w, "finish_order");
    orr_json_begin_array(&w);
    for (uint32_t i = 0; i < s->finished; i++)
        orr_json_u64(&w, s->finish_order[i]);
    orr_json_end_array(&w);
    orr_json_key(&w, "per_rank");
    orr_json_begin_array(&w);
    for (uint32_t r = 0; r < s->npu_count; r++)
        put_rank(&w, s, r);
    orr_json_end_array(&w);
    orr_json_end_object(&w);
    orr_buf_byte(&b, '\n');
    const orr_code code = save(&b, path, err);
    orr_buf_fini(&b);
    return code;
}
