/* SPDX-License-Identifier: Apache-2.0 */
/* fx_convert.c - from captured ranks to the traces of all ranks.
 *
 * One body for each kind of rank; what its ranks differ in, groups and peers, are holes with a value a rank.  So a job of
 * 100,000 ranks costs a table entry each. */
#include "fx_impl.h"

#include "base/memory/intern.h"

#include <stdlib.h>

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
    code = fx_body_make(b, j->err);
    orr_free(held);
    b->held = NULL;
    if (code)
        return code;
    orr_trace *t = b->trace;
    b->trace = NULL;
    return orr_set_add_class(j->set, t, b->holes, b->hole_count, (uint32_t)b->slot_count,
                             &j->class_number[i], j->err);
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
            fx_body_fini(&j->bodies[i]);
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
