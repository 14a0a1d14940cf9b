/* SPDX-License-Identifier: Apache-2.0 */
/* plan_collective.c - collectives executed from a plan (models/collective/coll_plan.h): MSCCL's and
 * MSCCL++'s files, given in the system file or by orr_run_config.plans.
 *
 * Each member executes its program once per chunk, as a *walk*: a step starts when its dependencies
 * have ended.  A message may arrive while its receive is being posted, so ready steps go on a
 * stack, and only the outermost call pops them. */
#include "match.h"
#include "run_state.h"

#include "base/arithmetic.h"
#include "models/collective/coll_plan.h"

#include <inttypes.h>

typedef struct walk {
    const coll_program *program;
    const coll_rank_program *own;
    orr_sim *sim;
    sys_stream *stream; /* NULL: the collective has ended */
    uint32_t *waits;    /* by step: pending dependencies */
    uint32_t *free;     /* a stack */
    uint32_t free_count;
    uint32_t left; /* unfinished steps; sends: not sent yet */
    uint32_t sent; /* sends in flight: nobody waits for the last ones */
    bool is_walking;
    struct walk *next, *previous;
} walk;

struct sys_plans {
    coll_plan **plans; /* in order of preference: the option's, then the system file's */
    bool *is_used;     /* by plan: for the warning at the end */
    size_t count, room, used_room;
    walk *walks; /* active: freed with the simulation if it ends early */
};

/* over the memory: two reads and a write, or a read and a write */
enum { REDUCTION_PASSES = 3, COPY_PASSES = 2 };

/* ---- the plans of a run ---- */

static orr_code add_plan(orr_sim *s, const char *path, orr_error *err)
{
    struct sys_plans *p = s->coll_plans;
    if (!orr_grow(&p->plans, &p->room, p->count + 1) ||
        !orr_grow(&p->is_used, &p->used_room, p->count + 1))
        return orr_no_memory(err);
    const orr_code code = coll_plan_read(path, &p->plans[p->count], err);
    if (!code)
        p->is_used[p->count++] = false;
    return code;
}

/* The system file assigns it to a collective: the plan must be for that one. */
static orr_code add_from_system(orr_sim *s, orr_collective kind, orr_error *err)
{
    const orr_code code = add_plan(s, s->system.plan[kind], err);
    if (code)
        return code;
    const coll_plan *p = s->coll_plans->plans[s->coll_plans->count - 1];
    const orr_where w = orr_where_byte(s->system.path, ORR_NO_BYTE);
    if (coll_plan_kind(p) != kind)
        return orr_fail(err, ORR_EINPUT, &w, "%s-implementation-custom: %s is a plan of %s",
                        coll_kind_name(kind), coll_plan_path(p), coll_kind_name(coll_plan_kind(p)));
    return ORR_OK;
}

static orr_code add_from_list(orr_sim *s, const char *list, orr_error *err)
{
    orr_code code = ORR_OK;
    while (*list && !code) {
        const char *comma = strchr(list, ',');
        const size_t n = comma ? (size_t)(comma - list) : strlen(list);
        char *path = orr_arena_text(s->arena, (orr_str){list, n});
        code = path ? add_plan(s, path, err) : orr_no_memory(err);
        list += n + (comma != NULL);
    }
    return code;
}

orr_code sys_plans_read(orr_sim *s, orr_error *err)
{
    s->coll_plans = orr_alloc(1, sizeof *s->coll_plans);
    if (!s->coll_plans)
        return orr_no_memory(err);
    orr_code code = s->opt.plans ? add_from_list(s, s->opt.plans, err) : ORR_OK;
    for (unsigned k = 0; k < ORR_COLL_COUNT && !code; k++)
        if (s->system.plan[k])
            code = add_from_system(s, (orr_collective)k, err);
    return code;
}

static void end_walk(walk *w)
{
    struct sys_plans *p = w->sim->coll_plans;
    *(w->previous ? &w->previous->next : &p->walks) = w->next;
    if (w->next)
        w->next->previous = w->previous;
    orr_free(w->waits);
    orr_free(w->free);
    orr_free(w);
}

bool sys_has_plans(const orr_sim *s)
{
    return s->coll_plans && s->coll_plans->count;
}

void sys_plans_destroy(struct sys_plans *p)
{
    while (p && p->walks)
        end_walk(p->walks);
    for (size_t i = 0; p && i < p->count; i++)
        coll_plan_destroy(p->plans[i]);
    if (p) {
        orr_free(p->plans);
        orr_free(p->is_used);
    }
    orr_free(p);
}

struct coll_plan *sys_find_plan(orr_sim *s, orr_collective kind, uint32_t members, uint64_t data)
{
    struct sys_plans *p = s->coll_plans;
    for (size_t i = 0; i < p->count; i++)
        /* First fit: the order of files is the order of preference. */
        if (coll_plan_kind(p->plans[i]) == kind && coll_plan_fits(p->plans[i], members, data)) {
            p->is_used[i] = true;
            return p->plans[i];
        }
    return NULL;
}

const char *sys_unfit_plan(const orr_sim *s, orr_collective kind, uint32_t *ranks)
{
    const struct sys_plans *p = s->coll_plans;
    for (size_t i = 0; i < p->count; i++)
        if (coll_plan_kind(p->plans[i]) == kind) {
            *ranks = coll_plan_ranks(p->plans[i]);
            return coll_plan_path(p->plans[i]);
        }
    return NULL;
}

const char *sys_unused_plan(const orr_sim *s, size_t index, orr_collective *kind, uint32_t *ranks)
{
    const struct sys_plans *p = s->coll_plans;
    for (size_t i = 0; p && i < p->count; i++)
        if (!p->is_used[i] && index-- == 0) {
            *kind = coll_plan_kind(p->plans[i]);
            *ranks = coll_plan_ranks(p->plans[i]);
            return coll_plan_path(p->plans[i]);
        }
    return NULL;
}

/* ---- a step ---- */

static void step_done(void *context, uint64_t number);

static uint64_t bytes_of(const walk *w, const coll_step *s)
{
    return coll_step_bytes(w->program->plan, s, w->stream->phases[w->stream->phase].data);
}

/* The time of this many passes over the memory. */
static void pass_memory(walk *w, uint32_t number, unsigned passes)
{
    sys_stream *st = w->stream;
    const double bw = st->npu->sim->system.local_mem_bw * st->npu->speed->memory;
    if (!(bw > 0)) {
        orr_coll_fail(&st->coll, "local-mem-bw is missing or 0: the time of a %s is undefined",
                      passes == COPY_PASSES ? "copy" : "reduction");
        return;
    }
    const uint64_t once = orr_ticks((double)bytes_of(w, &w->own->steps[number]) / bw * 1e9);
    run_npu_timer(st->npu, passes * once, step_done, w, number);
}

static void endpoint_passed(void *context, uint64_t number)
{
    walk *w = context;
    if (w->own->steps[number].how & ORR_COLL_REDUCED)
        pass_memory(w, (uint32_t)number, REDUCTION_PASSES);
    else
        step_done(w, number);
}

static void start_work(walk *w, uint32_t number)
{
    const coll_step *s = &w->own->steps[number];
    sys_stream *st = w->stream;
    run_npu *n = st->npu;
    if (s->how & (COLL_WORK_COPY | COLL_WORK_ADD))
        pass_memory(w, number, s->how & COLL_WORK_COPY ? COPY_PASSES : REDUCTION_PASSES);
    else if (n->bus && !st->group)
        sys_bus_request(n->bus, s->how & ORR_COLL_FROM_NPU, bytes_of(w, s),
                        s->how & ORR_COLL_REDUCED, s->how & ORR_COLL_SENT_BACK,
                        (clk_call){endpoint_passed, w, number});
    else
        run_npu_timer(n, sys_endpoint_delay(st), endpoint_passed, w, number);
}

/* Several messages of one chunk may be in flight between two ranks. */
static uint32_t tag_of(const walk *w, uint32_t message)
{
    /* Both ends know the stream's number and the message's, so they compute the same tag; clashes
     * with another message in flight are very unlikely. */
    uint64_t x = w->stream->id * 0x9e3779b97f4a7c15u + message;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)(MSG_TAG_SPACE + (x ^ x >> 31) % MSG_TAG_SPACE);
}

static void start_step(walk *w, uint32_t number)
{
    const coll_step *s = &w->own->steps[number];
    const sys_stream *st = w->stream;
    const clk_call done = {step_done, w, number};
    const uint32_t rank = st->group ? st->group->members[s->peer] : s->peer;
    switch ((coll_step_kind)s->kind) {
    case COLL_STEP_SEND:
        /* A send counts as done when it has left: members may continue before the last of their
         * messages has arrived. */
        w->left--;
        w->sent++;
        msg_send(st->npu, tag_of(w, s->message), rank, bytes_of(w, s), done);
        return;
    case COLL_STEP_RECV:
        msg_recv(st->npu, tag_of(w, s->message), rank, bytes_of(w, s), done);
        return;
    case COLL_STEP_WORK:
        start_work(w, number);
        return;
    case COLL_STEP_JOIN:
        step_done(w, number);
        return;
    }
}

/* ---- a walk ---- */

/* The stream is gone before its last messages have arrived. */
static void end_if_over(walk *w)
{
    if (!w->stream && !w->sent)
        end_walk(w);
}

static void go_on(walk *w)
{
    sys_stream *st = w->stream;
    const orr_sim *s = w->sim;
    w->is_walking = true;
    while (w->free_count && !s->code)
        start_step(w, w->free[--w->free_count]);
    w->is_walking = false;
    if (w->left || s->code || !st)
        return;
    *(walk **)orr_coll_state(&st->coll) = NULL;
    w->stream = NULL;
    end_if_over(w);
    /* Last, and without w, which may be gone: this may start the next collective. */
    sys_stream_advance(st);
}

static void step_done(void *context, uint64_t number)
{
    walk *w = context;
    const coll_step *s = &w->own->steps[number];
    if (s->kind == COLL_STEP_SEND)
        w->sent--;
    else
        w->left--;
    if (!w->stream) {
        end_if_over(w);
        return;
    }
    /* In reverse, so that the first successor is popped first. */
    for (uint32_t i = s->after_count; i-- > 0;) {
        const uint32_t next = w->own->after[s->first_after + i];
        if (--w->waits[next] == 0)
            w->free[w->free_count++] = next;
    }
    if (!w->is_walking)
        go_on(w);
}

static walk *new_walk(sys_stream *st, const coll_program *program, uint32_t member)
{
    struct sys_plans *all = st->npu->sim->coll_plans;
    const coll_rank_program *own = &program->ranks[member];
    walk *w = orr_alloc(1, sizeof *w);
    if (!w)
        return NULL;
    /* Listed at once: end_walk undoes it if anything below fails. */
    *w = (walk){.program = program,
                .own = own,
                .sim = st->npu->sim,
                .stream = st,
                .left = own->count,
                .next = all->walks};
    if (w->next)
        w->next->previous = w;
    all->walks = w;
    w->waits = orr_alloc((size_t)own->count + 1, sizeof *w->waits);
    w->free = orr_alloc((size_t)own->count + 1, sizeof *w->free);
    if (!w->waits || !w->free) {
        end_walk(w);
        return NULL;
    }
    /* Backwards, so that the first step of the program is on top of the stack. */
    for (uint32_t i = own->count; i-- > 0;) {
        w->waits[i] = own->steps[i].waits;
        if (w->waits[i] == 0)
            w->free[w->free_count++] = i;
    }
    return w;
}

static void plan_start(orr_coll *c)
{
    sys_stream *st = sys_stream_of(c);
    orr_sim *s = st->npu->sim;
    const uint32_t member = st->group ? cfg_group_index(st->group, st->npu->rank) : st->npu->rank;
    const coll_program *program;
    orr_error err;
    if (member == RUN_NONE) {
        orr_coll_fail(c, "rank %u is not a member of the group", st->npu->rank);
        return;
    }
    /* Messages without contention would leave at many times the rate of a link. */
    const uint32_t slots = strncmp(s->net_ops->name, "unaware", 7) == 0 ? 1 : COLL_PLAN_SLOTS;
    const orr_code code =
        coll_plan_program(st->plan, st->phases[st->phase].data, slots, &program, &err);
    if (code) {
        run_fail(s, code, &err);
        return;
    }
    walk *w = *(walk **)orr_coll_state(c) = new_walk(st, program, member);
    if (!w)
        run_no_memory(s);
    else
        go_on(w);
}

/* Its messages are those of the plan: received and timer are never called. */
const orr_coll_ops sys_coll_plan = {
    .name = "plan",
    .label = "plan",
    .help = "a plan of MSCCL or MSCCL++",
    .kinds = COLL_ROOTLESS,
    .state_size = sizeof(walk *),
    .start = plan_start,
};

/* ---- for the stall explanation ---- */

const sys_stream *sys_plan_owner(clk_call c)
{
    return c.action == step_done ? ((const walk *)c.context)->stream : NULL;
}

static const walk *walk_of(const sys_stream *st)
{
    return st->is_started ? *(walk *const *)(const void *)(&st->coll + 1) : NULL;
}

uint32_t sys_plan_running(const sys_stream *st)
{
    const walk *w = walk_of(st);
    uint32_t n = 0;
    for (uint32_t i = 0; w && i < w->own->count; i++)
        n += w->waits[i] == 0;
    /* Free steps, less those that have ended. */
    return w ? n - (w->own->count - w->left) : 0;
}

bool sys_plan_will_post(
    const sys_stream *st, bool is_send, uint32_t peer, uint32_t tag, uint64_t size)
{
    const walk *w = walk_of(st);
    const uint8_t kind = is_send ? COLL_STEP_SEND : COLL_STEP_RECV;
    for (uint32_t i = 0; w && i < w->own->count; i++) {
        const coll_step *s = &w->own->steps[i];
        if (w->waits[i] == 0 || s->kind != kind || tag_of(w, s->message) != tag ||
            bytes_of(w, s) != size)
            continue;
        if ((st->group ? st->group->members[s->peer] : s->peer) == peer)
            return true;
    }
    return false;
}
