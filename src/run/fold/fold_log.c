/* SPDX-License-Identifier: Apache-2.0 */
/* fold_log.c - the log of steps of a folded run: one entry for all members of a class while it
 * runs, with their times as base and spread; the log of every rank (watch.h) is generated on
 * reading.
 *
 * What follows from the traces is not stored: the group of a member's collective, and with it the
 * number of its chunks, and the peers of its messages. */
#include "fold_impl.h"

#include "base/memory/hash.h"

/* Always, not only for timelines: statistics are made from it at the end, when the times of all
 * members are known. */
bool fold_keep_log(fold_sim *f)
{
    bool ok = true;
    for (uint32_t i = 0; ok && i < f->class_count; i++) {
        fold_class *c = &f->classes[i];
        ok = (c->log.step_of = orr_arena_new(f->arena, c->npu->graph->count + (size_t)1, uint32_t));
    }
    return ok;
}

void fold_drop_log(fold_log *l)
{
    orr_free(l->steps);
    orr_free(l->notes);
    orr_free(l->phases);
    orr_free(l->sends);
}

bool fold_log_sends(fold_class *c, const fold_sent *sent)
{
    fold_log *l = &c->log;
    if (!orr_grow(&l->sends, &l->send_room, l->send_count + 1))
        return false;
    l->sends[l->send_count++] = *sent;
    return true;
}

/* `now` has one time per member: a step is one entry, however many ranks it represents. */
void fold_log_start(fold_class *c, uint32_t place)
{
    fold_log *l = &c->log;
    if (l->count >= RUN_NONE || !orr_grow(&l->steps, &l->room, l->count + 1)) {
        run_no_memory(c->npu->sim);
        return;
    }
    l->step_of[place] = (uint32_t)l->count;
    l->steps[l->count++] = (fold_logged){.start = c->now, .place = place, .note = RUN_NONE};
}

void fold_log_end(fold_class *c, uint32_t place)
{
    fold_log *l = &c->log;
    /* A failed run may have a start that is not in the log. */
    if (c->npu->sim->code)
        return;
    l->steps[l->step_of[place]].end = c->now;
    l->steps[l->step_of[place]].has_ended = true;
}

static void log_collective(
    run_npu *n, uint32_t place, uint64_t stream, const cfg_group *group, const sys_route *r)
{
    fold_log *l = &fold_class_at(n)->log;
    if (n->sim->code)
        return;
    if (!orr_grow(&l->notes, &l->note_room, l->note_count + 1)) {
        run_no_memory(n->sim);
        return;
    }
    /* Relative to the group's first: members of a class are in different groups. */
    fold_note note = {.stream = group ? stream - (uint64_t)group->id * SYS_GROUP_STREAMS : stream,
                      .is_group = group != NULL};
    for (uint32_t k = 0; r && k < r->count; k++)
        note.dims[note.dim_count++] = r->dims[k];
    l->steps[l->step_of[place]].note = (uint32_t)l->note_count;
    l->notes[l->note_count++] = note;
}

static void log_phase_start(sys_stream *st)
{
    run_npu *n = st->npu;
    const orr_sim *s = n->sim;
    fold_class *c = fold_class_at(n);
    fold_log *l = &c->log;
    const sys_phase *p = &st->phases[st->phase];
    const uint32_t all = s->opt.queues_per_dim;
    if (!s->watch->keeps_phases || s->code)
        return;
    if (l->phase_count >= RUN_NONE || !orr_grow(&l->phases, &l->phase_room, l->phase_count + 1)) {
        run_no_memory(n->sim);
        return;
    }
    const cfg_group *g = sys_node_group(n, st->set->place);
    st->record = (uint32_t)l->phase_count;
    l->phases[l->phase_count++] = (fold_logged_phase){
        .start = c->now,
        .is_group = g != NULL,
        .like = {.stream = g ? st->id - (uint64_t)g->id * SYS_GROUP_STREAMS : st->id,
                 .data = p->data,
                 .step = l->step_of[st->set->place],
                 .dim = (uint16_t)(p->dim ? p->dim->position : 0),
                 .queue = (uint16_t)(run_lane_of(n, st->set->place) * all + p->queue % all),
                 .kind = (uint8_t)p->kind,
                 .algorithm = coll_number(s->opt.algorithms, p->dim ? p->dim->ops : NULL)}};
}

static void log_phase_end(sys_stream *st)
{
    fold_class *c = fold_class_at(st->npu);
    if (!st->npu->sim->watch->keeps_phases || st->npu->sim->code)
        return;
    c->log.phases[st->record].end = c->now;
    c->log.phases[st->record].has_ended = true;
}

const run_observer fold_observer = {
    .collective = log_collective,
    .phase_start = log_phase_start,
    .phase_end = log_phase_end,
};

/* ---- rank by rank ---- */

/* The log of a class becomes that of a rank through what only the rank knows: its times from the
 * spreads, its groups from its holes, and with them the numbers of its chunks. */
typedef struct writer {
    fold_sim *f;
    run_npu view; /* the rank being written: only what it runs */
    const fold_class *c;
    uint32_t member;
    const cfg_group **group; /* by link of the class: the rank's; valid where is_known */
    bool *is_known;
    size_t links; /* the most that a class has */
} writer;

static const cfg_group *group_at(writer *v, uint32_t place)
{
    /* Once per rank and link: a rank has thousands of collectives and a few groups. */
    const uint32_t link = v->c->link_of[v->c->relation_of[place] - 1];
    if (!v->is_known[link])
        v->group[link] = sys_node_group(&v->view, place);
    v->is_known[link] = true;
    return v->group[link];
}

/* The smallest of the ranks that differ from this one only in the dimensions of the collective. */
static uint32_t base_of(uint32_t rank, const fold_note *note)
{
    uint32_t base = rank;
    for (uint32_t k = 0; k < note->dim_count; k++) {
        const sys_dim *d = note->dims[k];
        /* The group identifies it. */
        if (d->group)
            return 0;
        base -= rank / d->offset % d->count * d->offset;
    }
    return base;
}

/* The collective as an unfolded run would identify it: by the rank's own group, or by the smallest
 * rank of its lines, and by the chunk's number there. */
static bool instance_of(watch_source *src, size_t k, watch_instance *like)
{
    writer *v = src->own;
    const fold_logged *step = &v->c->log.steps[k];
    if (step->note == RUN_NONE)
        return false;
    const fold_note *note = &v->c->log.notes[step->note];
    const cfg_group *g = note->is_group ? group_at(v, step->place) : NULL;
    *like = (watch_instance){.group = g,
                             .stream = note->stream + (g ? (uint64_t)g->id * SYS_GROUP_STREAMS : 0),
                             .base = base_of(v->view.rank, note),
                             .source = RUN_NONE};
    return true;
}

static uint64_t time_at(const writer *v, fold_val at, bool is_known)
{
    return is_known ? (uint64_t)fold_at(v->f->times, at, v->member) - v->f->s->rounds.origin
                    : ORR_NEVER;
}

static watch_step step_at(watch_source *src, size_t k)
{
    const writer *v = src->own;
    const fold_logged *step = &v->c->log.steps[k];
    return (watch_step){.start = time_at(v, step->start, true),
                        .end = time_at(v, step->end, step->has_ended),
                        .rank = v->view.rank,
                        .place = step->place,
                        .cause = RUN_NONE,
                        .instance = RUN_NONE,
                        .earlier = RUN_NONE};
}

static bool phase_at(watch_source *src, size_t i, watch_phase *out, size_t *k)
{
    writer *v = src->own;
    const fold_log *l = &v->c->log;
    if (i >= l->phase_count)
        return false;
    const fold_logged_phase *p = &l->phases[i];
    const cfg_group *g = p->is_group ? group_at(v, l->steps[p->like.step].place) : NULL;
    *out = p->like;
    out->start = time_at(v, p->start, true);
    out->end = time_at(v, p->end, p->has_ended);
    out->stream += g ? (uint64_t)g->id * SYS_GROUP_STREAMS : 0;
    *k = p->like.step;
    return true;
}

static size_t count_of(const watch_source *src, uint32_t class_index)
{
    const writer *v = src->own;
    return v->f->classes[class_index].log.count;
}

static uint32_t place_of(const watch_source *src, uint32_t class_index, size_t k)
{
    const writer *v = src->own;
    return v->f->classes[class_index].log.steps[k].place;
}

/* One rank at a time: discards the cached groups of the previous one. */
static void turn_to(watch_source *src, uint32_t rank)
{
    writer *v = src->own;
    v->c = &v->f->classes[v->f->class_of[rank]];
    v->member = v->f->index_of[rank];
    v->view.rank = rank;
    v->view.graph = v->c->npu->graph;
    memset(v->is_known, 0, v->links * sizeof *v->is_known);
}

/* ---- ranks with equal times ---- */

/* The spreads of all times of a class, each once. */
typedef struct spread_list {
    const fold_times *times;
    orr_map *seen; /* numbers of spreads that are listed */
    const int64_t **spreads;
    size_t count, room;
} spread_list;

static bool add_spread(spread_list *l, fold_val at)
{
    bool is_new = false;
    /* Even times are equal for all members. */
    if (!at.by)
        return true;
    if (!orr_map_put(l->seen, at.by, 1, &is_new) ||
        (is_new && !orr_grow(&l->spreads, &l->room, l->count + 1)))
        return false;
    if (is_new)
        /* By number, so each spread is compared once, however many steps have it. */
        l->spreads[l->count++] = fold_spread(l->times, at.by);
    return true;
}

static bool list_spreads(spread_list *l, const fold_log *log)
{
    bool ok = l->seen != NULL;
    for (size_t i = 0; ok && i < log->count; i++)
        /* The end of a step that has not ended is 0, and so even. */
        ok = add_spread(l, log->steps[i].start) && add_spread(l, log->steps[i].end);
    for (size_t i = 0; ok && i < log->phase_count; i++)
        ok = add_spread(l, log->phases[i].start) && add_spread(l, log->phases[i].end);
    return ok;
}

/* In list order, which is the same for all members. */
static uint64_t sum_of(const spread_list *l, uint32_t member)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < l->count; i++)
        sum = orr_hash_mix(sum ^ 0xa0761d6478bd642fu,
                           (uint64_t)l->spreads[i][member] + 0xe7037ed1a0b428dbu);
    return sum;
}

static bool have_same_times(const spread_list *l, uint32_t a, uint32_t b)
{
    bool is_same = true;
    for (size_t i = 0; is_same && i < l->count; i++)
        is_same = l->spreads[i][a] == l->spreads[i][b];
    return is_same;
}

/* Hashes find candidates, which are then compared. */
static bool find_equal_in(const fold_sim *f, const fold_class *c, uint32_t *like)
{
    spread_list l = {.times = f->times, .seen = orr_map_create(0)};
    orr_map *first = orr_map_create(0);
    bool ok = first && list_spreads(&l, &c->log);
    for (uint32_t m = 0; ok && m < c->count; m++) {
        const uint64_t sum = sum_of(&l, m);
        const uint32_t other = orr_map_find(first, sum, RUN_NONE);
        if (other == RUN_NONE)
            ok = orr_map_put(first, sum, m, NULL);
        /* A hash collision leaves the rank on its own: shown once too often, never wrongly. */
        else if (have_same_times(&l, other, m))
            like[c->ranks[m]] = c->ranks[other];
    }
    orr_map_destroy(l.seen);
    orr_free(l.spreads);
    orr_map_destroy(first);
    return ok;
}

static bool find_equal(watch_source *src, uint32_t *like)
{
    const writer *v = src->own;
    bool ok = true;
    for (uint32_t c = 0; ok && c < v->f->class_count; c++)
        ok = find_equal_in(v->f, &v->f->classes[c], like);
    return ok;
}

static uint64_t width_of(const fold_sim *f, fold_val at)
{
    return (uint64_t)(fold_most(f->times, at) - at.base);
}

/* Compares starts and ends of steps; phases lie within them, so their spreads are not compared. */
static uint64_t apart(const watch_source *src)
{
    const fold_sim *f = ((const writer *)src->own)->f;
    uint64_t most = 0;
    for (uint32_t c = 0; c < f->class_count; c++)
        for (size_t i = 0; i < f->classes[c].log.count; i++) {
            const fold_logged *step = &f->classes[c].log.steps[i];
            const uint64_t start = width_of(f, step->start),
                           end = step->has_ended ? width_of(f, step->end) : 0;
            most = start > most ? start : most;
            most = end > most ? end : most;
        }
    return most;
}

static void close_log(watch_source *src)
{
    writer *v = src->own;
    fold_leaves_end(v->f);
    orr_free(v->group);
    orr_free(v->is_known);
    orr_free(v);
}

bool fold_open_log(fold_sim *f, watch_source *out)
{
    writer *v = orr_alloc(1, sizeof *v);
    if (!v || !fold_leaves_begin(f)) { /* the initial classes, until it is closed */
        fold_leaves_end(f);
        orr_free(v);
        return false;
    }
    *out = (watch_source){.s = f->s,
                          .class_of = f->class_of,
                          .class_count = f->class_count,
                          .has_lines = true,
                          .own = v,
                          .count = count_of,
                          .place = place_of,
                          .turn_to = turn_to,
                          .step = step_at,
                          .instance = instance_of,
                          .phase = phase_at,
                          .find_equal = find_equal,
                          .apart = apart,
                          .close = close_log};
    *v = (writer){.f = f, .view = {.sim = f->s}};
    for (uint32_t c = 0; c < f->class_count; c++)
        v->links = f->classes[c].link_count > v->links ? f->classes[c].link_count : v->links;
    v->group = orr_alloc(v->links, sizeof *v->group);
    v->is_known = orr_alloc(v->links, sizeof *v->is_known);
    if (v->group && v->is_known)
        return true;
    close_log(out);
    return false;
}
