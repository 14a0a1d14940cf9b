/* SPDX-License-Identifier: Apache-2.0 */
/* fx_convert.c - from captured ranks to the traces of all ranks.
 *
 * One body for each kind of rank; what its ranks differ in, groups and peers, are holes with a
 * value a rank.  So a job of 100,000 ranks costs a table entry each. */
#include "fx_impl.h"

#include "base/memory/intern.h"
#include "base/text/text.h"
#include "models/compute/operators/operator_cost.h"
#include "trace/builder.h"
#include "trace/trace_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ==== the nodes of one captured rank, with holes where the ranks that do the same differ.
 *
 * Ids count up from 1 in the order of the program.  The collectives of a family of groups are one
 * stream and come one after the other, as all ranks of a group must agree on their order; so are
 * the messages to one rank, and those from one rank.  Streams go on beside each other and beside
 * computation. A hole is a group ("mine of this family") or a rank ("the third of mine of this
 * family"). */

enum { RECORD_LEAST = 80 }; /* bytes: its name and attributes, all of them short */

/* What differs between the ranks of a class. */
typedef struct fx_slot {
    uint32_t family;
    int64_t place; /* FX_NO_PEER: the group itself; else the rank at this place of it */
} fx_slot;

/* The nodes of one captured rank. */
typedef struct fx_body {
    const orr_fx *c;
    const fx_graph *g;
    const fx_calls *calls;
    const uint64_t *held;
    const orr_fx_options *opt;
    double slow; /* of the step's clock, on a chip */
    fx_slot *slots;
    size_t slot_count, slot_room;
    orr__builder b;
} fx_body;

typedef struct pen {
    fx_body *body;
    orr__builder *b;
    fx_values *values;
    orr_map *slots;   /* family and place -> slot */
    orr_map *streams; /* family, place and direction -> stream */
    uint32_t stream_count;
    uint64_t held; /* what the last node said */
    orr_error *err;
} pen;

static uint64_t limit(uint64_t v)
{
    return v < 1 ? 1 : v > INT64_MAX ? INT64_MAX : v;
}

/* ---- holes ---- */

/* Below 2^24 ranks, so a place and its direction fit beside the family. */
static uint64_t key_of(uint32_t family, int64_t place, unsigned direction)
{
    return (uint64_t)family << 28 | (uint64_t)(place == FX_NO_PEER ? 0 : place + 1) << 2 |
           direction;
}

static orr_code add_hole(pen *p, orr_hole_field field, uint32_t family, int64_t place)
{
    fx_body *body = p->body;
    const uint64_t key = key_of(family, place, 0);
    uint32_t slot = orr_map_find(p->slots, key, UINT32_MAX);
    if (slot == UINT32_MAX) {
        slot = (uint32_t)body->slot_count;
        if (!orr_grow(&body->slots, &body->slot_room, body->slot_count + 1) ||
            !orr_map_put(p->slots, key, slot, NULL))
            return orr_no_memory(p->err);
        body->slots[body->slot_count++] = (fx_slot){family, place};
    }
    orr__build_hole(p->b, field, slot);
    return ORR_OK;
}

static orr_code find_stream(pen *p, uint64_t key, uint32_t *out)
{
    *out = orr_map_find(p->streams, key, UINT32_MAX);
    if (*out != UINT32_MAX)
        return ORR_OK;
    *out = p->stream_count++;
    return orr_map_put(p->streams, key, *out, NULL) ? ORR_OK : orr_no_memory(p->err);
}

/* ---- one node ---- */

static void put_origin(pen *p, const fx_node *n)
{
    static const char *const phases[] = {"setup", "forward", "backward", "optimizer"};
    const fx_graph *g = p->body->g;
    orr__put_text(p->b, ORR__ATTR_PHASE, orr_str_of(phases[n->phase]));
    const orr_str module = n->module == FX_NONE ? (orr_str){0} : fx_text(g, FX_MODULES, n->module);
    const orr_str line = n->line == FX_NONE ? (orr_str){0} : fx_text(g, FX_LINES, n->line);
    if (module.len)
        orr__put_text(p->b, ORR__ATTR_MODULE, module);
    if (line.len)
        orr__put_text(p->b, ORR__ATTR_LINE, line);
}

static void put_held(pen *p, size_t i)
{
    const uint64_t held = p->body->held[i];
    if (held != p->held)
        orr__put_uint(p->b, ORR__ATTR_HELD_BYTES, held);
    p->held = held;
}

/* ---- durations on a chip ---- */

typedef struct call_time {
    double fixed_us, clocked_us; /* that does not, and that does, scale with the clock */
    double flops;
} call_time;

/* What no word of chip.h describes takes a roofline with four fifths of each peak. */
static call_time time_call(const fx_body *body, const fx_call *call)
{
    const orr_chip *chip = body->opt->chip;
    call_time out = {0, 0, 0};
    orr_kernel k;
    orr_str list = orr_intern_get(body->calls->texts, call->kernels);
    while (list.len && orr_kernel_next(&list, &k, NULL) == ORR_OK) {
        orr_kernel_time t;
        if (!orr_chip_time(chip, &k, &t))
            continue;
        out.clocked_us += t.us * t.clock_share;
        out.fixed_us += t.us * (1 - t.clock_share);
        out.flops += t.clock_share > 0.5 ? orr_kernel_count(&k).flops : 0;
    }
    if (call->kernels)
        return out;
    const double work = (double)call->flops / (chip->peak_tflops[ORR_TYPE_BF16] * 0.8e6);
    const double memory =
        ((double)call->bytes_read + (double)call->bytes_written) / (chip->memory_GBps * 0.8e3);
    out.fixed_us = chip->launch_us + (work > memory ? work : memory);
    return out;
}

/* The highest clock over the one that the power cap leaves to the whole step. */
static double slowdown_of(const fx_body *body)
{
    double fixed = 0, clocked = 0, flops = 0, slow = 1;
    for (size_t i = 0; body->opt->chip && i < body->g->node_count; i++) {
        if (body->calls->at[i].role != FX_COMPUTE)
            continue;
        const call_time t = time_call(body, &body->calls->at[i]);
        fixed += t.fixed_us;
        clocked += t.clocked_us;
        flops += t.flops;
    }
    for (int i = 0; i < 4 && fixed + clocked > 0; i++) {
        slow = orr_chip_slowdown(body->opt->chip, flops / (fixed + clocked * slow) * 1e-6);
    }
    return slow;
}

static void put_duration(pen *p, const fx_call *call)
{
    const orr_fx_options *o = p->body->opt;
    if (o->chip) {
        const call_time t = time_call(p->body, call);
        orr__build_duration_ps(p->b, (t.fixed_us + t.clocked_us * p->body->slow) * 1e6);
        return;
    }
    if (!(o->peak_flops > 0))
        return;
    const operator_cost cost = {.flops = call->flops,
                                .bytes_read = call->bytes_read,
                                .bytes_written = call->bytes_written,
                                .vector_work = call->vector_work,
                                .is_product = call->is_product};
    const operator_rates rates = {o->peak_flops, o->vector_flops, (double)o->memory_rate};
    const double work = orr__operator_seconds(&cost, &rates) * 1e12;
    orr__build_duration_ps(p->b, work + (double)o->overhead);
}

/* after: the node before it in its stream; 0: none. */
static orr_code put(pen *p, size_t i, uint32_t stream, uint64_t after)
{
    const fx_deps *deps;
    orr__builder *b = p->b;
    const orr_code code =
        fx_values_next(p->values, (uint32_t)i, b->node.id, after, stream, &deps, p->err);
    if (code)
        return code;
    put_origin(p, &p->body->g->nodes[i]);
    orr__put_on_device(b);
    b->node.data_deps = deps->data;
    b->node.data_count = deps->data_count;
    b->node.ctrl_deps = deps->ctrl;
    b->node.ctrl_count = deps->ctrl_count;
    orr__build_add(b);
    return b->code;
}

static orr_code put_compute(pen *p, size_t i)
{
    const fx_call *call = &p->body->calls->at[i];
    uint64_t bytes;
    if (__builtin_add_overflow(call->bytes_read, call->bytes_written, &bytes))
        bytes = INT64_MAX;
    put_duration(p, call);
    orr__put_work(p->b, limit(call->flops), limit(bytes));
    if (call->kernels)
        orr__put_text(p->b, ORR__ATTR_KERNELS,
                      orr_intern_get(p->body->calls->texts, call->kernels));
    put_held(p, i);
    orr__put_int(p->b, ORR__ATTR_STREAM, 0);
    return put(p, i, 0, 0);
}

static orr_code put_on_stream(pen *p, size_t i, uint32_t stream)
{
    orr__put_int(p->b, ORR__ATTR_STREAM, (int64_t)stream + 1);
    return put(p, i, stream, orr__build_in_stream(p->b, stream));
}

/* The root of a broadcast or scatter is where it comes from, of a reduce or gather where it goes
 * to. */
static orr_code put_root(pen *p, const fx_node *n, uint8_t collective, uint32_t family)
{
    const bool is_source = collective == ORR_COLL_BROADCAST || collective == ORR_COLL_SCATTER;
    const bool is_target = collective == ORR_COLL_REDUCE || collective == ORR_COLL_GATHER;
    if (n->peer == FX_NO_PEER || (!is_source && !is_target))
        return ORR_OK;
    orr__put_as(p->b, is_source ? ORR__ATTR_COMM_SRC : ORR__ATTR_COMM_DST, ORR_VALUE_INT64, 0);
    return add_hole(p, is_source ? ORR_HOLE_COMM_SRC : ORR_HOLE_COMM_DST, family, n->peer);
}

static orr_code put_collective(pen *p, size_t i)
{
    const fx_node *n = &p->body->g->nodes[i];
    const fx_call *call = &p->body->calls->at[i];
    const uint32_t family = p->body->c->groups[n->group].family;
    uint32_t stream;
    orr_code code = find_stream(p, key_of(family, FX_NO_PEER, 0), &stream);
    if (code)
        return code;
    p->b->node.type = ORR_NODE_COMM_COLL;
    orr__put_collective(p->b, call->collective, call->bytes);
    orr__put_text(p->b, ORR__ATTR_PG_NAME, orr_str_of("1"));
    if ((code = add_hole(p, ORR_HOLE_PG_NAME, family, FX_NO_PEER)) ||
        (code = put_root(p, n, call->collective, family)))
        return code;
    return put_on_stream(p, i, stream);
}

static orr_code put_message(pen *p, size_t i)
{
    const fx_node *n = &p->body->g->nodes[i];
    const fx_call *call = &p->body->calls->at[i];
    const uint32_t family = p->body->c->groups[n->group].family;
    const bool is_send = call->role == FX_SEND;
    uint32_t stream;
    orr_code code = find_stream(p, key_of(family, n->peer, is_send ? 1 : 2), &stream);
    if (code)
        return code;
    p->b->node.type = is_send ? ORR_NODE_COMM_SEND : ORR_NODE_COMM_RECV;
    orr__put_uint(p->b, ORR__ATTR_COMM_SIZE, call->bytes);
    orr__put_as(p->b, is_send ? ORR__ATTR_COMM_DST : ORR__ATTR_COMM_SRC, ORR_VALUE_INT64, 0);
    orr__put_as(p->b, ORR__ATTR_COMM_TAG, ORR_VALUE_INT64, n->tag == FX_NO_PEER ? 0 : n->tag);
    if ((code = add_hole(p, is_send ? ORR_HOLE_COMM_DST : ORR_HOLE_COMM_SRC, family, n->peer)))
        return code;
    return put_on_stream(p, i, stream);
}

static orr_code put_node(pen *p, size_t i)
{
    const fx_graph *g = p->body->g;
    const fx_deps *none;
    orr__build_node(p->b, ORR_NODE_COMP, fx_text(g, FX_OPS, g->nodes[i].op));
    switch (p->body->calls->at[i].role) {
    case FX_COMPUTE:
        return put_compute(p, i);
    case FX_COLLECT:
        return put_collective(p, i);
    case FX_SEND:
    case FX_RECV:
        return put_message(p, i);
    case FX_OUTSIDE:
        return ORR_OK;
    default:
        return fx_values_next(p->values, (uint32_t)i, 0, 0, 0, &none, p->err);
    }
}

/* ---- all of them ---- */

static size_t count_nodes(const fx_body *b)
{
    size_t count = 0;
    for (size_t i = 0; i < b->g->node_count; i++) {
        const uint8_t role = b->calls->at[i].role;
        count += role == FX_COMPUTE || fx_is_communication(role);
    }
    return count;
}

static orr_code open_trace(fx_body *body)
{
    orr__builder *b = &body->b;
    const size_t nodes = count_nodes(body); /* their records were bytes of a file: no overflow */
    orr__put_text(b, ORR__ATTR_SCHEMA, orr_str_of("orrery capture 1"));
    orr__put_uint(b, ORR__ATTR_STREAMS, 1);
    orr__build_trace(b, "1.0.0");
    b->next_id = 1;
    return b->code ? b->code : orr__trace_expect(b->trace, nodes, nodes * RECORD_LEAST, b->err);
}

/* c, g, calls, held and opt are set. */
static orr_code make_nodes(fx_body *body, orr_error *err)
{
    pen p = {.body = body,
             .b = &body->b,
             .slots = orr_map_create(16),
             .streams = orr_map_create(16),
             .err = err};
    orr__build_open(&body->b, err);
    body->slow = slowdown_of(body);
    orr_code code = p.slots && p.streams ? open_trace(body) : orr_no_memory(err);
    if (!code)
        code = fx_values_create(body->g, body->calls, &p.values, err);
    for (size_t i = 0; i < body->g->node_count && !code; i++)
        code = put_node(&p, i);
    fx_values_destroy(p.values);
    orr_map_destroy(p.slots);
    orr_map_destroy(p.streams);
    return code;
}

/* ==== all ranks ==== */

typedef struct job {
    const orr_fx *c;
    const orr_fx_options *opt;
    fx_calls *calls; /* of each captured rank */
    fx_families families;
    fx_classes classes;
    fx_body *bodies; /* of captured ranks that stand for a class: their slots */
    uint32_t *class_number;
    int64_t *values; /* scratch: one for each slot of a class */
    size_t value_room;
    orr_set *set;
    orr_fx_rank_report *reports;
    orr_arena *arena; /* of the report */
    orr_error *err;
} job;

/* ---- what is reported ---- */

static uint64_t add(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static void count_call(orr_fx_rank_report *r, const fx_call *call)
{
    r->nodes += call->role == FX_COMPUTE || fx_is_communication(call->role);
    r->views += call->role == FX_FOLD;
    r->setup += call->role == FX_OUTSIDE;
    r->flops = add(r->flops, call->flops);
    r->bytes_read = add(r->bytes_read, call->bytes_read);
    r->bytes_written = add(r->bytes_written, call->bytes_written);
    r->sends += call->role == FX_SEND;
    r->receives += call->role == FX_RECV;
    if (call->role == FX_SEND)
        r->send_bytes = add(r->send_bytes, call->bytes);
    if (call->role != FX_COLLECT)
        return;
    r->collectives++;
    r->collective_bytes = add(r->collective_bytes, call->bytes);
}

static void count_calls(job *j, size_t i)
{
    orr_fx_rank_report *r = &j->reports[i];
    const fx_graph *g = j->c->graphs[i];
    r->rank = g->rank;
    r->calls = g->node_count;
    for (size_t k = 0; k < g->node_count; k++)
        count_call(r, &j->calls[i].at[k]);
}

static int by_name(const void *a, const void *b)
{
    const orr_fx_unknown *x = a, *y = b;
    const size_t n = x->name.len < y->name.len ? x->name.len : y->name.len;
    const int order = n ? memcmp(x->name.ptr, y->name.ptr, n) : 0;
    return order ? order : (x->name.len > y->name.len) - (x->name.len < y->name.len);
}

/* How often each operator of a graph is called without the table knowing it. */
static bool note_unknown(const job *j, size_t i, orr_intern *names, uint64_t **counts, size_t *room)
{
    const fx_graph *g = j->c->graphs[i];
    for (size_t k = 0; k < g->node_count; k++) {
        uint32_t number;
        if (!j->calls[i].at[k].is_unknown)
            continue;
        const size_t before = orr_intern_count(names);
        if (!orr_intern_add(names, fx_text(g, FX_OPS, g->nodes[k].op), &number) ||
            !orr_grow(counts, room, (size_t)number + 1))
            return false;
        if (number == before)
            (*counts)[number] = 0;
        (*counts)[number]++;
    }
    return true;
}

static bool list_unknown(job *j, orr_fx_report *out)
{
    orr_intern *names = orr_intern_create();
    uint64_t *counts = NULL;
    size_t room = 0;
    bool is_fine = names != NULL;
    for (size_t i = 0; i < j->c->graph_count && is_fine; i++)
        is_fine = note_unknown(j, i, names, &counts, &room);
    const uint32_t count = is_fine ? orr_intern_count(names) : 0;
    orr_fx_unknown *list =
        is_fine ? orr_arena_new(j->arena, (size_t)count + 1, orr_fx_unknown) : NULL;
    for (uint32_t i = 0; i < count && list; i++) {
        const orr_str name = orr_intern_get(names, i);
        const char *copy = orr_arena_text(j->arena, name);
        is_fine = is_fine && copy;
        list[i] = (orr_fx_unknown){.name = {copy, name.len}, .count = counts[i]};
    }
    is_fine = is_fine && list;
    if (is_fine && count)
        qsort(list, count, sizeof *list, by_name);
    out->unknown = list;
    out->unknown_count = count;
    if (names)
        orr_intern_destroy(names);
    orr_free(counts);
    return is_fine;
}

static bool copy_notes(job *j, orr_fx_report *out)
{
    const orr_fx *c = j->c;
    orr_fx_note *notes = orr_arena_new(j->arena, c->note_count + 1, orr_fx_note);
    for (size_t i = 0; i < c->note_count && notes; i++) {
        const char *copy = orr_arena_text(j->arena, c->notes[i].text);
        if (!copy)
            return false;
        notes[i] = (orr_fx_note){.text = {copy, c->notes[i].text.len}, .count = c->notes[i].count};
    }
    out->notes = notes;
    out->note_count = c->note_count;
    return notes != NULL;
}

static orr_code fill_report(job *j, orr_fx_report *out)
{
    *out = (orr_fx_report){.world_size = j->c->world_size,
                           .class_count = orr_set_class_count(j->set),
                           .ranks = j->reports,
                           .rank_count = j->c->graph_count};
    for (size_t i = 0; i < j->c->graph_count; i++)
        j->reports[i].like = j->c->graphs[j->classes.class_of[i]]->rank;
    for (uint32_t r = 0; r < j->c->world_size; r++)
        j->reports[j->classes.class_of[j->classes.graph_of[r]]].ranks_like_it++;
    if (!list_unknown(j, out) || !copy_notes(j, out))
        return orr_no_memory(j->err);
    out->owner = j->arena;
    j->arena = NULL;
    return ORR_OK;
}

/* ---- bodies ---- */

static orr_code make_body(job *j, size_t i)
{
    const fx_graph *g = j->c->graphs[i];
    fx_body *b = &j->bodies[i];
    uint64_t *held = NULL;
    orr_code code = fx_memory(g, &j->calls[i], &held, &j->reports[i].memory, j->err);
    if (code || j->classes.class_of[i] != i) {
        orr_free(held);
        return code;
    }
    *b = (fx_body){.c = j->c, .g = g, .calls = &j->calls[i], .held = held, .opt = j->opt};
    code = make_nodes(b, j->err);
    orr_free(held);
    b->held = NULL;
    if (!code)
        return orr__build_class(&b->b, j->set, (uint32_t)b->slot_count, &j->class_number[i]);
    orr__build_fini(&b->b);
    return code;
}

/* ---- ranks ---- */

static orr_code add_rank(job *j, uint32_t rank)
{
    const orr_fx *c = j->c;
    const uint32_t head = j->classes.class_of[j->classes.graph_of[rank]];
    const fx_body *b = &j->bodies[head];
    if (!orr_grow(&j->values, &j->value_room, b->slot_count + 1))
        return orr_no_memory(j->err);
    for (size_t s = 0; s < b->slot_count; s++) {
        fx_place p;
        if (!fx_place_of(&j->families, b->slots[s].family, rank, &p))
            return orr_fail(j->err, ORR_EBUG, NULL, "rank %u has no group of a family that it uses",
                            rank);
        j->values[s] =
            b->slots[s].place == FX_NO_PEER
                ? (int64_t)p.group + 1
                : (int64_t)c->ranks[c->groups[p.group].first + (size_t)b->slots[s].place];
    }
    return orr_set_add_filled(j->set, j->class_number[head], 0, j->values, j->err);
}

static orr_code add_groups(job *j)
{
    const orr_fx *c = j->c;
    orr_code code = ORR_OK;
    for (size_t i = 0; i < c->group_count && !code; i++) {
        const fx_group *g = &c->groups[i];
        if (j->families.use[g->family])
            code = orr_set_add_group(j->set, i + 1, c->ranks + g->first, g->count, j->err);
    }
    return code;
}

/* ---- all of it ---- */

static orr_code make_calls(job *j)
{
    orr_code code = ORR_OK;
    for (size_t i = 0; i < j->c->graph_count && !code; i++) {
        code = fx_calls_make(j->c, j->c->graphs[i], &j->calls[i], j->err);
        if (!code)
            count_calls(j, i);
    }
    return code;
}

static orr_code make_set(job *j)
{
    const orr_fx *c = j->c;
    orr_code code = make_calls(j);
    if (code || (code = fx_families_init(&j->families, c, j->calls, j->err)) ||
        (code = fx_classes_find(&j->families, &j->classes, j->err)) ||
        (code = fx_match_messages(&j->families, &j->classes, j->calls, j->err)) ||
        (code = orr_set_create(&j->set, j->err)))
        return code;
    for (size_t i = 0; i < c->graph_count && !code; i++)
        code = make_body(j, i);
    for (uint32_t r = 0; r < c->world_size && !code; r++)
        code = add_rank(j, r);
    return code ? code : add_groups(j);
}

static bool open_job(job *j)
{
    const size_t count = j->c->graph_count;
    j->arena = orr_arena_create();
    j->calls = orr_alloc(count, sizeof *j->calls);
    j->bodies = orr_alloc(count, sizeof *j->bodies);
    j->class_number = orr_alloc(count, sizeof *j->class_number);
    j->reports = j->arena ? orr_arena_new(j->arena, count, orr_fx_rank_report) : NULL;
    return j->calls && j->bodies && j->class_number && j->reports;
}

static void close_job(job *j)
{
    for (size_t i = 0; i < j->c->graph_count; i++) {
        if (j->calls)
            fx_calls_fini(&j->calls[i]);
        if (j->bodies)
            orr_free(j->bodies[i].slots);
    }
    orr_free(j->calls);
    orr_free(j->bodies);
    orr_free(j->class_number);
    orr_free(j->values);
    fx_families_fini(&j->families);
    fx_classes_fini(&j->classes);
    orr_arena_destroy(j->arena);
}

orr_code orr_fx_convert(const orr_fx *c,
                        const orr_fx_options *opt,
                        orr_set **out,
                        orr_fx_report *report,
                        orr_error *err)
{
    const orr_fx_options defaults = {0};
    job j = {.c = c, .opt = opt ? opt : &defaults, .err = err};
    orr_code code = open_job(&j) ? make_set(&j) : orr_no_memory(err);
    if (!code && report)
        code = fill_report(&j, report);
    if (code) {
        orr_set_close(j.set);
        j.set = NULL;
    }
    *out = j.set;
    close_job(&j);
    return code;
}

void orr_fx_report_fini(orr_fx_report *r)
{
    orr_arena_destroy(r->owner);
    *r = (orr_fx_report){0};
}
