/* SPDX-License-Identifier: Apache-2.0 */
/* holes_make.h - random sets with holes, and the same ranks as plain traces.
 *
 * The ranks are a grid; each is in the group of its row and of its column and has a neighbour on
 * either side. All classes run the same steps, so most of it fits together; then single things are
 * changed: an order, a size, a value of one rank, a dependency.  The plain set is read from the
 * files that the other one writes. */
#ifndef ORR_TESTS_HOLES_MAKE_H
#define ORR_TESTS_HOLES_MAKE_H

#include "et_make.h"

#include <orrery/set.h>

#include "trace/set_impl.h"

enum {
    SLOT_ROW,
    SLOT_COLUMN,
    SLOT_LEFT,
    SLOT_RIGHT,
    SLOT_NEXT,
    SLOT_BEFORE,
    SLOT_TAG,
    SLOT_LABEL,
    SLOT_SELF,
    SLOTS
};
enum { CLASSES_MOST = 3, RANKS_MOST = 12, STEPS_MOST = 6, HOLES_MOST = 100 };

/* What all classes run. */
enum {
    STEP_ROW,
    STEP_COLUMN,
    STEP_ALL,
    STEP_NAMED,
    STEP_RING, /* with the one neighbour, then with the other */
    STEP_MESSAGE,
    STEP_COMPUTE,
    STEP_KINDS
};

typedef struct making {
    uint64_t seed;
    unsigned wildness; /* one in so many things is changed; 0: none */
    bool is_labelled;  /* no two ranks are equal */
    bool is_shifted;   /* ids count on from rank to rank */
    uint32_t ranks, width, classes;
    int steps[STEPS_MOST];
    int64_t sizes[STEPS_MOST];
    uint32_t step_count;
    /* The class at hand. */
    orr_trace *t;
    uint64_t id;
    uint32_t nodes;
    unsigned deps; /* how nodes depend on those before */
    orr_hole holes[HOLES_MOST];
    size_t hole_count;
} making;

static uint32_t pick(making *m, uint32_t n)
{
    return (uint32_t)(next_random(&m->seed) % n);
}

static bool is_changed(making *m)
{
    return m->wildness && pick(m, m->wildness) == 0;
}

static orr_attr attr_of(const char *name, int64_t v)
{
    return (orr_attr){.name = orr_str_of(name), .kind = ORR_VALUE_INT64, .value.i = v};
}

/* The value of a slot, or now and then one for all ranks. */
static int64_t filled(making *m, orr_hole_field field, uint32_t slot)
{
    if (is_changed(m))
        return pick(m, m->ranks + 2);
    m->holes[m->hole_count++] = (orr_hole){m->nodes, field, slot};
    return 3;
}

static size_t add_deps(making *m, uint64_t deps[2])
{
    if (is_changed(m)) {
        deps[0] = m->id + pick(m, 3); /* missing, itself, or a cycle */
        return 1;
    }
    if (m->deps == 0 || m->id == 1)
        return 0;
    deps[0] = m->deps == 1 ? m->id - 1 : 1 + pick(m, (uint32_t)m->id - 1);
    return 1;
}

static void add_step_node(making *m, uint32_t type, const orr_attr *attrs, size_t count)
{
    uint64_t deps[2];
    const size_t dep_count = add_deps(m, deps);
    const orr_draft d = {.id = m->id,
                         .name = orr_str_of("node"),
                         .type = type,
                         .duration_us = m->id,
                         .data_deps = deps,
                         .data_count = dep_count,
                         .attrs = attrs,
                         .attr_count = count};
    CHECK_OK(orr_trace_append(m->t, &d, &err), &err);
    m->id++;
    m->nodes++;
}

/* slot: of its group; SLOTS: it names none, or one that is the same everywhere. */
static void add_collective(making *m, uint32_t slot, bool has_name, int64_t size)
{
    static const int kinds[] = {ORR_COLL_ALL_REDUCE, ORR_COLL_ALL_TO_ALL, ORR_COLL_BARRIER};
    char name[24];
    orr_attr attrs[5];
    size_t n = 0;
    const int64_t kind = is_changed(m) ? (int64_t)pick(m, 12) - 1 : kinds[size % 3];
    if (!is_changed(m))
        attrs[n++] = attr_of("comm_type", kind);
    if (!is_changed(m))
        attrs[n++] = attr_of("comm_size", is_changed(m) ? (int64_t)pick(m, 3) - 1 : size);
    if (has_name) {
        const int64_t group = slot < SLOTS    ? filled(m, ORR_HOLE_PG_NAME, slot)
                              : is_changed(m) ? pick(m, 4)
                                              : 9;
        snprintf(name, sizeof name, "%lld", (long long)group);
        attrs[n++] = (orr_attr){
            .name = orr_str_of("pg_name"), .kind = ORR_VALUE_STRING, .value.s = orr_str_of(name)};
    }
    static const orr_value items[] = {{.u = 1}, {.u = 0}};
    if (is_changed(m))
        attrs[n++] = attr_of("comm_group", pick(m, 3));
    if (is_changed(m))
        attrs[n++] = (orr_attr){.name = orr_str_of("involved_dim"),
                                .kind = ORR_VALUE_BOOL,
                                .is_list = true,
                                .items = items,
                                .item_count = 2};
    add_step_node(m, ORR_NODE_COMM_COLL, attrs, n);
}

static void add_end(making *m, bool is_send, int64_t size)
{
    orr_attr attrs[5];
    size_t n = 0;
    if (!is_changed(m))
        attrs[n++] = attr_of(is_send ? "comm_dst" : "comm_src",
                             filled(m, is_send ? ORR_HOLE_COMM_DST : ORR_HOLE_COMM_SRC,
                                    is_changed(m) ? pick(m, SLOTS)
                                    : is_send     ? SLOT_NEXT
                                                  : SLOT_BEFORE));
    if (size % 2)
        attrs[n++] =
            attr_of("comm_tag", size % 5 == 0 ? size : filled(m, ORR_HOLE_COMM_TAG, SLOT_TAG));
    if (size % 3 == 0)
        attrs[n++] = attr_of(is_send ? "comm_src" : "comm_dst",
                             filled(m, is_send ? ORR_HOLE_COMM_SRC : ORR_HOLE_COMM_DST, SLOT_SELF));
    attrs[n++] = attr_of(is_changed(m) ? "tensor_size" : "comm_size",
                         is_changed(m) ? (int64_t)pick(m, 3) - 1 : size);
    add_step_node(m, is_send ? ORR_NODE_COMM_SEND : ORR_NODE_COMM_RECV, attrs, n);
}

static void add_step(making *m, uint32_t i)
{
    const int step = m->steps[i];
    if (is_changed(m))
        return;
    if (step == STEP_COMPUTE) {
        add_step_node(m, ORR_NODE_COMP, NULL, 0);
    } else if (step == STEP_MESSAGE) {
        add_end(m, true, m->sizes[i]);
        add_end(m, false, m->sizes[i]);
    } else if (step == STEP_RING) {
        const bool is_left = pick(m, 2);
        add_collective(m, is_left ? SLOT_LEFT : SLOT_RIGHT, true, m->sizes[i]);
        add_collective(m, is_left ? SLOT_RIGHT : SLOT_LEFT, true, m->sizes[i]);
    } else {
        const uint32_t slot = step == STEP_ROW      ? SLOT_ROW
                              : step == STEP_COLUMN ? SLOT_COLUMN
                                                    : SLOTS;
        add_collective(m, slot, step != STEP_ALL || is_changed(m), m->sizes[i]);
    }
}

/* Ranks that run the same otherwise differ in this node. */
static void add_label(making *m)
{
    const orr_attr tag = attr_of("comm_tag", 0);
    m->holes[m->hole_count++] = (orr_hole){m->nodes, ORR_HOLE_COMM_TAG, SLOT_LABEL};
    add_step_node(m, ORR_NODE_COMP, &tag, 1);
}

static void make_class(making *m, orr_set *s)
{
    uint32_t order[STEPS_MOST], index;
    m->t = new_trace();
    m->id = 1;
    m->nodes = 0;
    m->hole_count = 0;
    m->deps = pick(m, 3);
    for (uint32_t i = 0; i < m->step_count; i++)
        order[i] = i;
    if (m->wildness && pick(m, 3) == 0) { /* another order of the same steps */
        const uint32_t a = pick(m, m->step_count), b = pick(m, m->step_count), c = order[a];
        order[a] = order[b];
        order[b] = c;
    }
    for (uint32_t i = 0; i < m->step_count; i++)
        add_step(m, order[i]);
    if (m->is_labelled)
        add_label(m);
    seal(m->t);
    CHECK_OK(orr_set_add_class(s, m->t, m->holes, m->hole_count, SLOTS, &index, &err), &err);
}

static void add_rank(making *m, orr_set *s, uint32_t rank, uint32_t class_index)
{
    int64_t values[SLOTS] = {[SLOT_ROW] = 1 + rank / m->width,
                             [SLOT_COLUMN] = 100 + rank % m->width,
                             [SLOT_LEFT] = 200 + rank,
                             [SLOT_RIGHT] = 200 + (rank + 1) % m->ranks,
                             [SLOT_NEXT] = (rank + 1) % m->ranks,
                             [SLOT_BEFORE] = (rank + m->ranks - 1) % m->ranks,
                             [SLOT_TAG] = 5,
                             [SLOT_LABEL] = rank,
                             [SLOT_SELF] = rank};
    static const int64_t odd[] = {0, 1, 2, 9, 100, 101, -1, 1000000};
    for (uint32_t i = 0; i < SLOTS; i++)
        if (i != SLOT_LABEL && is_changed(m))
            values[i] = pick(m, 2) ? odd[pick(m, 8)] : values[pick(m, SLOT_TAG)];
    CHECK_OK(orr_set_add_rank_values(s, class_index, m->is_shifted ? 1000 * rank : 0, values, &err),
             &err);
}

/* The ranks that hold the classes: all in one, in turns, by row, or anyhow. */
static uint32_t class_of_rank(making *m, unsigned how, uint32_t rank)
{
    switch (how) {
    case 0:
        return rank % m->classes;
    case 1:
        return rank / m->width % m->classes;
    case 2:
        return rank % m->width % m->classes;
    default:
        return pick(m, m->classes);
    }
}

__attribute__((unused)) static orr_set *make_random_set(uint64_t seed,
                                                        unsigned wildness,
                                                        bool is_labelled)
{
    making m = {.seed = seed,
                .wildness = wildness,
                .is_labelled = is_labelled,
                .is_shifted = seed % 32 == 3};
    orr_set *s;
    m.ranks = 2 + pick(&m, RANKS_MOST - 1);
    m.width = 1 + pick(&m, 4);
    m.classes = 1 + pick(&m, CLASSES_MOST);
    m.step_count = 1 + pick(&m, STEPS_MOST);
    for (uint32_t i = 0; i < m.step_count; i++) {
        m.steps[i] = (int)pick(&m, STEP_KINDS);
        m.sizes[i] = pick(&m, 16);
    }
    CHECK_OK(orr_set_create(&s, &err), &err);
    for (uint32_t i = 0; i < m.classes; i++)
        make_class(&m, s);
    const unsigned how = pick(&m, 4);
    for (uint32_t r = 0; r < m.ranks; r++)
        add_rank(&m, s, r, class_of_rank(&m, how, r));
    return s;
}

__attribute__((unused)) static orr_set *read_plain_copy(const orr_set *s)
{
    orr_set *plain;
    for (uint32_t r = orr_set_rank_count(s); r < RANKS_MOST + 1; r++) { /* of an earlier one */
        char path[32];
        snprintf(path, sizeof path, "plain.%u.et", r);
        unlink(path);
    }
    CHECK_OK(orr_set_write_files(s, "plain", NULL, 1, &err), &err);
    CHECK_OK(orr_set_open("plain", NULL, &plain, &err), &err);
    CHECK_EQ_U(orr_set_rank_count(plain), orr_set_rank_count(s));
    return plain;
}

__attribute__((unused)) static orr_set *make_plain_copy(const orr_set *s)
{
    const uint32_t last = orr_set_rank_count(s) - 1;
    orr_set *plain;
    if (orr_set_id_shift(s, last))
        return read_plain_copy(s);
    CHECK_OK(orr_set_create(&plain, &err), &err);
    for (uint32_t r = 0; r <= last; r++) {
        const orr_trace *t;
        orr_trace *owned;
        CHECK_OK(orr_set_rank_trace(s, r, &t, &owned, &err), &err);
        if (!owned)
            CHECK_OK(orr__class_trace(&s->classes[orr_set_class_of(s, r)], NULL, &owned, &err),
                     &err);
        CHECK_OK(orr_set_add(plain, owned, &err), &err);
    }
    return plain;
}

#endif
