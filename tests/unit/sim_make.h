/* SPDX-License-Identifier: Apache-2.0 */
/* sim_make.h - small simulations for unit tests: traces in memory, configuration in files of the test's folder.
 *
 *     maker m = {.dims = "[ 4, 2 ]", .shapes = "[ Switch, Switch ]", ...};
 *     orr_sim *s = make_sim(&m);
 */
#ifndef ORR_TESTS_SIM_MAKE_H
#define ORR_TESTS_SIM_MAKE_H

#include "check.h"
#include "files.h"
#include "rooms.h"

#include "run/sim.h"

#include <orrery/set.h>

static orr_error err;

enum { ENDPOINT = 10, MAKE_NODES = 8, MAKE_ATTRS = 6 };

typedef struct make_node {
    uint32_t type;
    uint64_t duration_us;
    int64_t kind, size, root; /* of a collective; root -1: not given */
    const char *group;        /* NULL: none */
    const char *name;         /* NULL: "node" */
    const char *inputs;       /* values; NULL: none */
    uint64_t ctrl_dep;        /* an id, 0: none */
} make_node;

/* All ranks do the same, one node after the other; ids start at 1. */
typedef struct maker {
    const char *shapes, *npus, *bandwidths; /* YAML lists; NULL: one switch of `ranks`, 50 GB/s */
    uint32_t ranks;
    const char *system; /* further keys, beginning with a comma; NULL: none */
    uint32_t splits;    /* 0: 1 */
    uint32_t queues;    /* a dimension; 0: 1 */
    make_node nodes[MAKE_NODES];
    const char *upper_group; /* of collectives of the upper half of the ranks; NULL: the same */
    bool is_compat;
} maker;

static inline orr_attr make_int(const char *name, int64_t value)
{
    return (orr_attr){.name = orr_str_of(name), .kind = ORR_VALUE_INT64, .value = {.i = value}};
}

static inline void make_append(orr_trace *t, const make_node *n, uint64_t id)
{
    orr_attr attrs[MAKE_ATTRS];
    size_t count = 0;
    const uint64_t before = id - 1;
    const orr_io io = {.values = orr_str_of(n->inputs ? n->inputs : "")};
    if (n->type == ORR_NODE_COMM_COLL) {
        attrs[count++] = make_int("comm_type", n->kind);
        if (n->kind != ORR_COLL_BARRIER)
            attrs[count++] = make_int("comm_size", n->size);
        if (n->root >= 0) {
            attrs[count++] = make_int("comm_src", n->root);
            attrs[count++] = make_int("comm_dst", n->root);
        }
        if (n->group)
            attrs[count++] = (orr_attr){.name = orr_str_of("pg_name"),
                                        .kind = ORR_VALUE_STRING,
                                        .value = {.s = orr_str_of(n->group)}};
    }
    const orr_draft d = {.id = id,
                         .name = orr_str_of(n->name ? n->name : "node"),
                         .type = n->type,
                         .duration_us = n->duration_us,
                         .data_deps = &before,
                         .data_count = id > 1,
                         .ctrl_deps = &n->ctrl_dep,
                         .ctrl_count = n->ctrl_dep != 0,
                         .inputs = n->inputs ? &io : NULL,
                         .attrs = attrs,
                         .attr_count = count};
    CHECK_OK(orr_trace_append(t, &d, &err), &err);
}

static inline orr_trace *make_trace(const maker *m, const char *group)
{
    orr_trace *t;
    CHECK_OK(orr_trace_create(&(orr_meta){.version = orr_str_of("1")}, &t, &err), &err);
    for (uint64_t i = 0; i < MAKE_NODES && m->nodes[i].type; i++) {
        make_node n = m->nodes[i];
        n.group = group ? group : n.group;
        make_append(t, &n, i + 1);
    }
    CHECK_OK(orr_trace_seal(t, &err), &err);
    return t;
}

static inline orr_set *make_set(const maker *m)
{
    orr_set *s;
    CHECK_OK(orr_set_create(&s, &err), &err);
    for (uint32_t r = 0; r < m->ranks; r++) {
        const char *group = 2 * r >= m->ranks ? m->upper_group : NULL;
        CHECK_OK(orr_set_add(s, make_trace(m, group), &err), &err);
    }
    return s;
}

static inline void make_files(const maker *m)
{
    char text[2000], one[16];
    snprintf(one, sizeof one, "[ %u ]", m->ranks);
    snprintf(text, sizeof text,
             "{\"scheduling-policy\": \"LIFO\", \"endpoint-delay\": %d, "
             "\"preferred-dataset-splits\": %u, \"local-mem-bw\": 50, "
             "\"collective-optimization\": \"localBWAware\"%s}",
             ENDPOINT, m->splits ? m->splits : 1, m->system ? m->system : "");
    write_file("system.json", text, strlen(text));
    snprintf(text, sizeof text, "topology: %s\nnpus_count: %s\nbandwidth: %s\nlatency: %s\n",
             m->shapes ? m->shapes : "[ Switch ]", m->npus ? m->npus : one,
             m->bandwidths ? m->bandwidths : "[ 50 ]",
             !m->npus                                        ? "[ 500 ]"
             : strchr(m->npus, ',') == strrchr(m->npus, ',') ? "[ 500, 500 ]"
                                                             : "[ 500, 500, 500 ]");
    write_file("network.yml", text, strlen(text));
}

/* The set must stay as long as the simulation. */
static inline orr_code make_sim(const maker *m, const orr_set *set, orr_sim **out)
{
    make_files(m);
    const orr_sim_options opt = {.set = set,
                                 .system = "system.json",
                                 .network = "network.yml",
                                 .fidelity = "unaware",
                                 .queues_per_dim = m->queues,
                                 .rules = m->is_compat ? program_of(ORR_RULES_RUN, "astra-sim")->run
                                                       : NULL};
    return orr_sim_create(&opt, out, &err);
}

typedef struct made {
    uint64_t finished[64];
    uint64_t last, messages;
} made;

static inline made make_run(const maker *m)
{
    orr_set *set = make_set(m);
    orr_sim *s;
    made out = {.last = 0};
    CHECK(m->ranks <= 64);
    CHECK_OK(make_sim(m, set, &s), &err);
    CHECK_OK(orr_sim_run(s, &err), &err);
    for (uint32_t r = 0; r < m->ranks; r++) {
        out.finished[r] = orr_sim_rank(s, r)->finished_at;
        if (out.finished[r] > out.last)
            out.last = out.finished[r];
    }
    out.messages = orr_sim_messages(s);
    orr_sim_destroy(s);
    orr_set_close(set);
    return out;
}

/* The same, but it must fail: the words are in err. */
static inline orr_code make_failure(const maker *m)
{
    orr_set *set = make_set(m);
    orr_sim *s;
    orr_code code = make_sim(m, set, &s);
    if (!code)
        code = orr_sim_run(s, &err);
    orr_sim_destroy(s);
    orr_set_close(set);
    return code;
}

#endif
