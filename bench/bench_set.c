/* SPDX-License-Identifier: Apache-2.0 */
/* bench_set.c - 1,024 rank files, all equal and all different, with one thread and with two; and
 * tens of thousands of ranks in a few classes with holes.
 *
 * Compare wall seconds of one thread and two; work per CPU second shows the cost of sharing.  With
 * holes the time must grow with the number of ranks, not with the nodes of all of them. */
#include "bench_input.h"

#include <orrery/check.h>
#include <orrery/lab/info.h>
#include <orrery/set.h>

enum { RANKS = 1024, NODES = 1000 };

typedef struct job {
    const char *path, *to;
    unsigned threads;
    uint32_t classes;
    orr_set *s;
} job;

static orr_set *open_set(const job *j)
{
    const orr_set_options opt = {.size = sizeof opt, .threads = j->threads};
    orr_set *s;
    orr_error err;
    bench_check(orr_set_open(j->path, &opt, &s, &err), &err);
    bench_require(orr_set_rank_count(s) == RANKS && orr_set_class_count(s) == j->classes,
                  "ranks are missing");
    return s;
}

static double run_open(void *context)
{
    orr_set_close(open_set(context));
    return RANKS;
}

static void prepare(void *context)
{
    job *j = context;
    j->s = open_set(j);
}

static double run_save(void *context)
{
    const job *j = context;
    orr_error err;
    bench_check(orr_set_save(j->s, j->to, NULL, &err), &err);
    return RANKS;
}

/* One rank from the middle of a .orr. */
static double run_read_rank(void *context)
{
    const job *j = context;
    orr_error err;
    uint64_t shift;
    for (uint32_t r = 0; r < RANKS; r++) {
        orr_trace *t;
        bench_check(orr_set_read_rank(j->to, r, NULL, &t, &shift, &err), &err);
        bench_require(orr_trace_columns(t)->count == NODES, "nodes are missing");
        orr_trace_destroy(t);
    }
    return RANKS;
}

static void measure(const char *kind, const char *prefix, uint32_t classes)
{
    char orr[600], name[80];
    const double mb = bench_need(
        &(bench_files){.prefix = prefix, .count = RANKS, .nodes = NODES, .is_equal = classes == 1});
    snprintf(orr, sizeof orr, "%s.orr", prefix);
    for (unsigned threads = 1; threads <= 2; threads++) {
        job j = {.path = prefix, .threads = threads, .classes = classes};
        snprintf(name, sizeof name, "set__open_1024_%s_%uthread", kind, threads);
        bench_apart(&(bench_job){name, "ranks", run_open, NULL, &j, NULL, mb});
    }
    job save = {.path = prefix, .to = orr, .threads = 1, .classes = classes};
    snprintf(name, sizeof name, "set__save_1024_%s", kind);
    bench_apart(&(bench_job){name, "ranks", run_save, prepare, &save, NULL, mb});
    job load = {.path = orr, .threads = 1, .classes = classes};
    snprintf(name, sizeof name, "set__open_orr_1024_%s", kind);
    bench_apart(&(bench_job){name, "ranks", run_open, NULL, &load, orr});
    snprintf(name, sizeof name, "set__read_rank_1024_%s", kind);
    bench_apart(&(bench_job){name, "ranks", run_read_rank, NULL, &save, orr});
    unlink(orr);
}

/* ---- a pipeline with holes ---- */

/* STAGES pipeline stages of equal length; in a stage, tensor groups of 8 ranks, data groups across
 * them, and expert and context groups cut through both; messages to the rank at the same position
 * in the next stage. */
enum { STAGES = 4, LAYERS = 100, TENSOR = 8 };
enum { OWN_TENSOR, OWN_DATA, OWN_EXPERT, OWN_CONTEXT, OWN_SELF, OWN_NEXT, OWN_BEFORE, OWN_SLOTS };

typedef struct stage {
    orr_trace *t;
    orr_hole holes[8 * LAYERS];
    size_t hole_count;
    uint64_t id;
} stage;

static orr_attr number(const char *name, int64_t v)
{
    return (orr_attr){.name = orr_str_of(name), .kind = ORR_VALUE_INT64, .value.i = v};
}

static void add_work(stage *g, uint32_t type, const orr_attr *attrs, size_t count)
{
    orr_error err;
    const uint64_t before = g->id;
    const orr_draft d = {.id = ++g->id,
                         .name = orr_str_of("step"),
                         .type = type,
                         .data_deps = &before,
                         .data_count = before != 0,
                         .attrs = attrs,
                         .attr_count = count};
    bench_check(orr_trace_append(g->t, &d, &err), &err);
}

static void add_hole(stage *g, orr_hole_field field, uint32_t slot)
{
    g->holes[g->hole_count++] = (orr_hole){(uint32_t)g->id, field, slot};
}

static void add_collective(stage *g, uint32_t slot)
{
    const orr_attr attrs[] = {
        number("comm_type", ORR_COLL_ALL_REDUCE),
        number("comm_size", 4096),
        {.name = orr_str_of("pg_name"), .kind = ORR_VALUE_STRING, .value.s = orr_str_of("1")}};
    add_hole(g, ORR_HOLE_PG_NAME, slot);
    add_work(g, ORR_NODE_COMM_COLL, attrs, 3);
}

static void add_message(stage *g, bool is_send, int64_t tag)
{
    const orr_attr attrs[] = {number("comm_src", 0), number("comm_dst", 0),
                              number("comm_size", 1024), number("comm_tag", tag)};
    add_hole(g, ORR_HOLE_COMM_SRC, is_send ? OWN_SELF : OWN_BEFORE);
    add_hole(g, ORR_HOLE_COMM_DST, is_send ? OWN_NEXT : OWN_SELF);
    add_work(g, is_send ? ORR_NODE_COMM_SEND : ORR_NODE_COMM_RECV, attrs, 4);
}

/* A layer is 6 nodes: input, work, a collective, work, another collective, output. */
static void add_stage(orr_set *s, uint32_t index)
{
    stage *g = calloc(1, sizeof *g);
    orr_error err;
    uint32_t k;
    bench_require(g != NULL, "no memory");
    bench_check(orr_trace_create(NULL, &g->t, &err), &err);
    for (uint32_t i = 0; i < LAYERS; i++) {
        if (index > 0)
            add_message(g, false, i);
        add_work(g, ORR_NODE_COMP, NULL, 0);
        add_collective(g, i % 2 ? OWN_TENSOR : OWN_EXPERT);
        add_work(g, ORR_NODE_COMP, NULL, 0);
        add_collective(g, i % 2 ? OWN_CONTEXT : OWN_DATA);
        if (index + 1 < STAGES)
            add_message(g, true, i);
    }
    bench_check(orr_trace_seal(g->t, &err), &err);
    bench_check(orr_set_add_class(s, g->t, g->holes, g->hole_count, OWN_SLOTS, &k, &err), &err);
    free(g);
}

static orr_set *make_pipeline(uint32_t ranks)
{
    const uint32_t length = ranks / STAGES;
    orr_set *s;
    orr_error err;
    bench_check(orr_set_create(&s, &err), &err);
    for (uint32_t i = 0; i < STAGES; i++)
        add_stage(s, i);
    for (uint32_t r = 0; r < ranks; r++) {
        const int64_t place = r % length, base = 1 + (int64_t)(r / length) * 4 * length;
        const int64_t values[OWN_SLOTS] = {[OWN_TENSOR] = base + place / TENSOR,
                                           [OWN_DATA] = base + length + place % TENSOR,
                                           [OWN_EXPERT] = base + 2 * length + place / 64,
                                           [OWN_CONTEXT] = base + 3 * length + place % 512,
                                           [OWN_SELF] = r,
                                           [OWN_NEXT] = (r + length) % ranks,
                                           [OWN_BEFORE] = (r + ranks - length) % ranks};
        bench_check(orr_set_add_rank_values(s, r / length, 0, values, &err), &err);
    }
    return s;
}

typedef struct pipeline {
    orr_set *s;
    uint32_t ranks;
} pipeline;

static double run_check(void *context)
{
    const pipeline *p = context;
    orr_check_report *r;
    orr_error err;
    bench_check(orr_check_set(p->s,
                              &(orr_check_options){.size = sizeof(orr_check_options), .threads = 1},
                              &r, &err),
                &err);
    bench_require(r->errors + r->warnings + r->notes == 0, "the pipeline is sound");
    orr_check_report_destroy(r);
    return p->ranks;
}

static double run_info(void *context)
{
    const pipeline *p = context;
    orr_info *info;
    orr_error err;
    orr_str text;
    bench_check(orr_info_create(p->s, NULL, &info, &err), &err);
    bench_check(orr_info_json(info, &text, &err), &err);
    bench_require(memmem(text.ptr, text.len, "\"is_complete\": true", 19) != NULL,
                  "groups are missing");
    orr_info_destroy(info);
    return p->ranks;
}

static void measure_pipeline(uint32_t ranks)
{
    char name[80];
    pipeline p = {.s = make_pipeline(ranks), .ranks = ranks};
    snprintf(name, sizeof name, "set__check_holed_%uk", ranks / 1024);
    bench_apart(&(bench_job){name, "ranks", run_check, NULL, &p, NULL, 0});
    snprintf(name, sizeof name, "set__info_holed_%uk", ranks / 1024);
    bench_apart(&(bench_job){name, "ranks", run_info, NULL, &p, NULL, 0});
    orr_set_close(p.s);
}

int main(void)
{
    char equal[512], distinct[512];
    measure("equal", bench_path(equal, sizeof equal, "equal"), 1);
    measure("distinct", bench_path(distinct, sizeof distinct, "distinct"), RANKS);
    measure_pipeline(32 * 1024);
    measure_pipeline(128 * 1024);
    return 0;
}
