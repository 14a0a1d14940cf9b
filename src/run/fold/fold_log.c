/* SPDX-License-Identifier: Apache-2.0 */
/* fold_log.c - the log of steps of a folded run: one entry for all members of a class while it runs, with their times as
 * base and spread; the log of every rank (watch.h) is written when somebody reads it.
 *
 * What follows from the traces is not kept: the group that a member's collective is of, and with it the number of its
 * chunks, and whom its messages go to. */
#include "fold_impl.h"

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

typedef struct writer {
    fold_sim *f;
    struct watch_record *w;
    run_npu view; /* the rank that is written: no more than what it runs */
    const fold_class *c;
    uint32_t member;
    const cfg_group *
        *group; /* by link of the class: the rank's; not asked for where is_known is false */
    bool *is_known;
} writer;

static const cfg_group *group_at(writer *v, uint32_t place)
{
    const uint32_t link = v->c->link_of[v->c->relation_of[place] - 1];
    if (!v->is_known[link])
        v->group[link] = sys_node_group(&v->view, place);
    v->is_known[link] = true;
    return v->group[link];
}

/* The smallest rank among those that differ from this one in the dimensions of the collective only. */
static uint32_t base_of(uint32_t rank, const fold_note *note)
{
    uint32_t base = rank;
    for (uint32_t k = 0; k < note->dim_count; k++) {
        const sys_dim *d = note->dims[k];
        if (d->group)
            return 0;
        base -= rank / d->offset % d->count * d->offset;
    }
    return base;
}

static uint32_t instance_of(writer *v, const fold_logged *step)
{
    const fold_note *note = &v->c->log.notes[step->note];
    const cfg_group *g = note->is_group ? group_at(v, step->place) : NULL;
    const watch_instance like = {.group = g,
                                 .stream =
                                     note->stream + (g ? (uint64_t)g->id * SYS_GROUP_STREAMS : 0),
                                 .base = base_of(v->view.rank, note),
                                 .source = RUN_NONE};
    return watch_find_instance(v->w, &like);
}

static uint64_t time_at(const writer *v, fold_val at, bool is_known)
{
    return is_known ? (uint64_t)fold_at(v->f->times, at, v->member) - v->f->s->rounds.origin
                    : ORR_NEVER;
}

static bool write_steps(writer *v)
{
    struct watch_record *w = v->w;
    const fold_log *l = &v->c->log;
    const uint32_t first = (uint32_t)w->step_count;
    if (w->step_count + l->count >= RUN_NONE ||
        !orr_grow(&w->steps, &w->step_room, w->step_count + l->count))
        return false;
    for (size_t i = 0; i < l->count; i++) {
        const fold_logged *step = &l->steps[i];
        const uint32_t instance = step->note == RUN_NONE ? RUN_NONE : instance_of(v, step);
        if (instance == RUN_NONE && step->note != RUN_NONE)
            return false;
        w->steps[w->step_count++] = (watch_step){.start = time_at(v, step->start, true),
                                                 .end = time_at(v, step->end, step->has_ended),
                                                 .rank = v->view.rank,
                                                 .place = step->place,
                                                 .cause = RUN_NONE,
                                                 .instance = instance,
                                                 .earlier = RUN_NONE};
    }
    if (!orr_grow(&w->phases, &w->phase_room, w->phase_count + l->phase_count))
        return false;
    for (size_t i = 0; i < l->phase_count; i++) {
        const fold_logged_phase *p = &l->phases[i];
        watch_phase *out = &w->phases[w->phase_count++];
        const cfg_group *g = p->is_group ? group_at(v, l->steps[p->like.step].place) : NULL;
        *out = p->like;
        out->start = time_at(v, p->start, true);
        out->end = time_at(v, p->end, p->has_ended);
        out->stream += g ? (uint64_t)g->id * SYS_GROUP_STREAMS : 0;
        out->step += first;
    }
    return true;
}

bool fold_write_log(fold_sim *f)
{
    orr_sim *s = f->s;
    writer v = {.f = f, .w = s->watch, .view = {.sim = s}};
    size_t links = 0;
    for (uint32_t c = 0; c < f->class_count; c++)
        links = f->classes[c].link_count > links ? f->classes[c].link_count : links;
    v.group = orr_alloc(links, sizeof *v.group);
    v.is_known = orr_alloc(links, sizeof *v.is_known);
    bool ok = v.group && v.is_known && fold_leaves_begin(f);
    v.w->step_count = v.w->phase_count = v.w->instance_count = 0;
    if (ok && v.w->first_step) { /* it was written before, and the run went on */
        orr_map_destroy(v.w->instance_by_key);
        ok = (v.w->instance_by_key = orr_map_create(0));
    }
    for (uint32_t r = 0; ok && r < s->npu_count; r++) {
        v.c = &f->classes[f->class_of[r]];
        v.member = f->index_of[r];
        v.view.rank = r;
        v.view.graph = v.c->npu->graph;
        memset(v.is_known, 0, links * sizeof *v.is_known);
        ok = write_steps(&v);
    }
    fold_leaves_end(f);
    orr_free(v.group);
    orr_free(v.is_known);
    return ok;
}
