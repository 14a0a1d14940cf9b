/* SPDX-License-Identifier: Apache-2.0 */
/* fold_tape.c - one of several consecutive steps as a list of sums, maxima and phases, so that
 * later steps can be computed without their events.
 *
 * If steps do not repeat at once, because a ring over all ranks carries a skew from step to step,
 * only a few times differ from those of the previous step; all others are shifted.  A step that
 * runs loosely (fold_loose.c) derives every time from the times at which classes begin it, by
 * operations that do not depend on times, and compares times: for a slot, for a channel, for the
 * order of chunks.  The *tape* is the list of both, in the order in which they were done.  Replayed
 * with other beginnings it gives the times of a step that proceeds in the same way; every
 * comparison must have the same result, or the step would proceed differently: then it is run by
 * events.
 *
 * A value knows its entry (fold_val.id); a constant delay needs no entry.  Values shifted by
 * exactly `shift` are not touched: a replay costs one check per entry, plus work for those that
 * differ. */
#include "fold_impl.h"

#include "base/memory/hash.h"

/* INPUTS: a class begins a step with two times, the end of its nodes and the event that noticed
 * it. */
enum { MOST_ENTRIES = 1 << 22, INPUTS = 2 };

typedef enum op {
    OP_BEGIN, /* a class begins the step; the event in which it does */
    OP_MAX,
    OP_ADD,     /* of a constant spread: b */
    OP_PERMUTE, /* b: of these pairs */
    /* a: of arguments, b: a question; the ends of the other classes are the next entries */
    OP_PHASE,
    OP_END, /* of a phase */
    /* comparisons; is_so: the result */
    OP_IS_BEFORE,
    OP_IS_SAME,
    OP_IS_LATER,   /* a, for all members; else for none */
    OP_GOES_FIRST, /* is_so: also for equal times */
    /* a: of three arguments: slot free, winner ready, other ready; b: a class */
    OP_WINS,
} op;

/* An entry is a computed time, or a comparison; both refer to their operands:
 *
 *     0  BEGIN     class 0 begins the step           t0
 *     1  BEGIN     class 1                           t1
 *     2  MAX       of 0 + 10 us and 1 + 12 us
 *     3  PHASE     of 2, 2 + 3 us                    ends of class 0; entry 4: of class 1
 *     5  IS_BEFORE 3 and 4 + 1 us                    must have the same result */
typedef struct entry {
    int64_t base, a_later, b_later; /* relative to the entries a and b */
    uint32_t by, a, b;
    uint8_t op;
    bool is_so, has_free, is_together;
} entry;

typedef struct argument {
    int64_t later;
    uint32_t at;
} argument;

typedef struct question {
    fold_family *family;
    coll_times_phase phase;
    uint32_t last; /* the entry at which it was last asked */
    /* replay */
    size_t asked;         /* in fold_tape.asked: the last starts, */
    const int64_t *known; /* and the answer; NULL: none yet */
} question;

struct fold_tape {
    uint32_t round; /* the step that is recorded, or will be */
    uint32_t first; /* the id of the first entry; smaller ones belong to earlier tapes */
    bool is_broken; /* something happened that it cannot express */
    entry *entries;
    size_t count, room;
    argument *arguments;
    size_t argument_count, argument_room;
    question *questions;
    size_t question_count, question_room;
    fold_val *asked; /* class_count per question */
    size_t asked_count, asked_room;
    uint32_t *begins; /* by class: the entries of its beginning, and of the event */
    fold_val *ends;   /* by class: when it ended, and the event */
    uint32_t ended;   /* classes */
    /* replay */
    int64_t shift;
    bool *differs; /* by entry: not shifted by `shift`, but in `now` */
    size_t differs_room;
    fold_val *now;
    size_t now_room;
    fold_val *starts;
    size_t starts_room;
    fold_val *begun; /* FOLD_BEGINNINGS steps, ring buffer */
    uint64_t *rows;  /* by step after the recorded one: its end */
    size_t row_room;
};

/* The first step, if it begins like the others.  Those begin within an event that ends the previous
 * step: with several queues there is one more comparison (fold_tape_wait).  A late start is a
 * separate event. */
static uint32_t first_round(const fold_sim *f)
{
    bool is_alike = f->s->opt.queues_per_dim == 1;
    for (uint32_t i = 0; i < f->class_count && is_alike; i++)
        is_alike = f->classes[i].npu->speed->delay == 0;
    return is_alike ? 0 : 1;
}

bool fold_is_recorded(const fold_sim *f)
{
    /* A few steps are not worth it, and a limit on events needs each of them. */
    return f->is_loose && f->s->opt.steps > 2 && !f->s->opt.max_events;
}

bool fold_tape_create(fold_sim *f)
{
    if (!fold_is_recorded(f))
        return true;
    struct fold_tape *t = f->tape = orr_alloc(1, sizeof *t);
    if (!t)
        return false;
    t->round = first_round(f);
    t->first = 1;
    t->begins = orr_alloc((size_t)INPUTS * f->class_count, sizeof *t->begins);
    t->ends = orr_alloc((size_t)INPUTS * f->class_count, sizeof *t->ends);
    t->begun = orr_alloc((size_t)INPUTS * f->class_count, FOLD_BEGINNINGS * sizeof *t->begun);
    return t->begins && t->ends && t->begun;
}

void fold_tape_destroy(struct fold_tape *t)
{
    if (!t)
        return;
    orr_free(t->entries);
    orr_free(t->arguments);
    orr_free(t->questions);
    orr_free(t->asked);
    orr_free(t->begins);
    orr_free(t->ends);
    orr_free(t->differs);
    orr_free(t->now);
    orr_free(t->starts);
    orr_free(t->begun);
    orr_free(t->rows);
    orr_free(t);
}

/* ---- recording ---- */

static bool is_known(const struct fold_tape *t, fold_val v)
{
    return v.id >= t->first && v.id - t->first < t->count;
}

/* The entry, and the offset to it. */
static argument argument_of(struct fold_tape *t, fold_val v)
{
    if (!is_known(t, v)) {
        t->is_broken = true;
        return (argument){0, 0};
    }
    const uint32_t at = v.id - t->first;
    return (argument){v.base - t->entries[at].base, at};
}

static uint32_t put(fold_sim *f, const entry *e)
{
    struct fold_tape *t = f->tape;
    if (t->is_broken)
        return 0;
    /* Too long, or out of ids: this step cannot be replayed, later ones are run by events. */
    if (t->count == MOST_ENTRIES || t->first > UINT32_MAX - MOST_ENTRIES) {
        t->is_broken = true;
        return 0;
    }
    if (!orr_grow(&t->entries, &t->room, t->count + 1)) {
        run_no_memory(f->s);
        return 0;
    }
    t->entries[t->count] = *e;
    return t->first + (uint32_t)t->count++;
}

static uint32_t put_two(fold_sim *f, op o, fold_val a, fold_val b, bool is_so, fold_val result)
{
    const argument x = argument_of(f->tape, a), y = argument_of(f->tape, b);
    return put(f, &(entry){.base = result.base,
                           .by = result.by,
                           .op = (uint8_t)o,
                           .a = x.at,
                           .b = y.at,
                           .a_later = x.later,
                           .b_later = y.later,
                           .is_so = is_so});
}

static bool put_argument(fold_sim *f, fold_val v)
{
    struct fold_tape *t = f->tape;
    const argument x = argument_of(t, v);
    if (!orr_grow(&t->arguments, &t->argument_room, t->argument_count + 1)) {
        run_no_memory(f->s);
        return false;
    }
    t->arguments[t->argument_count++] = x;
    return true;
}

static bool is_zero(fold_val v)
{
    return v.base == 0 && v.by == 0 && v.id == 0;
}

fold_val fold_later(fold_sim *f, fold_val a, fold_val b)
{
    fold_val result = fold_max(f->times, a, b);
    if (!f->is_taping || f->tape->is_broken)
        return result;
    if (is_zero(a)) /* no time is before 0 */
        return b;
    if (a.id == b.id && is_known(f->tape, a)) /* a constant difference, always */
        return result;
    result.id = put_two(f, OP_MAX, a, b, false, result);
    return result;
}

fold_val fold_after(fold_sim *f, fold_val a, fold_val delay)
{
    fold_val result = fold_add(f->times, a, delay);
    /* A constant delay: the same entry, since value_of adds the difference of the bases. */
    result.id = a.id;
    if (!f->is_taping || f->tape->is_broken || !delay.by)
        return result;
    const argument x = argument_of(f->tape, a);
    result.id = put(f, &(entry){.base = result.base,
                                .by = result.by,
                                .op = OP_ADD,
                                .a = x.at,
                                .a_later = x.later,
                                .b = delay.by,
                                .b_later = delay.base});
    return result;
}

static fold_val permuted(const fold_sim *f, fold_val a, const fold_pairs *h)
{
    return fold_permute(f->times, a, h->map, h->source, f->classes[h->to_class].count);
}

fold_val fold_at_receiver(fold_sim *f, fold_val a, const fold_pairs *h)
{
    if (!h->source)
        return a;
    fold_val result = permuted(f, a, h);
    result.id = 0;
    if (!f->is_taping || f->tape->is_broken)
        return result;
    const argument x = argument_of(f->tape, a);
    result.id = put(f, &(entry){.base = result.base,
                                .by = result.by,
                                .op = OP_PERMUTE,
                                .a = x.at,
                                .a_later = x.later,
                                .b = h->number});
    return result;
}

static uint32_t number_question(fold_sim *f, const fold_meeting *m)
{
    struct fold_tape *t = f->tape;
    /* From the last: chunks of a collective ask one after the other. */
    for (size_t i = t->question_count; i > 0; i--)
        if (t->questions[i - 1].family == m->family &&
            coll_times_same(&t->questions[i - 1].phase, &m->phase))
            return (uint32_t)(i - 1);
    const size_t asked = t->asked_count;
    if (!orr_grow(&t->questions, &t->question_room, t->question_count + 1) ||
        !orr_grow(&t->asked, &t->asked_room, asked + m->family->class_count)) {
        run_no_memory(f->s);
        return 0;
    }
    t->asked_count += m->family->class_count;
    t->questions[t->question_count] =
        (question){.family = m->family, .phase = m->phase, .last = UINT32_MAX, .asked = asked};
    return (uint32_t)t->question_count++;
}

/* The same starts, all shifted: so are the ends.  Consecutive chunks of one collective are like
 * that, and their ends are known to coincide. */
static bool is_asked_again(const struct fold_tape *t, const question *q, uint32_t arguments)
{
    const argument *a = q->last == UINT32_MAX ? NULL : &t->arguments[t->entries[q->last].a];
    const argument *b = &t->arguments[arguments];
    for (uint32_t i = 0; a && i < q->family->class_count; i++)
        if (a[i].at != b[i].at || b[i].later - a[i].later != b[0].later - a[0].later)
            return false;
    return a != NULL;
}

uint32_t fold_tape_phase(fold_sim *f, const fold_meeting *m, const fold_val *ends)
{
    struct fold_tape *t = f->tape;
    const uint32_t count = m->family->class_count;
    const uint32_t arguments = (uint32_t)t->argument_count;
    if (t->argument_count + count > MOST_ENTRIES)
        t->is_broken = true;
    for (uint32_t i = 0; i < count; i++)
        if (t->is_broken || !put_argument(f, m->starts[i]))
            return 0;
    const uint32_t number = number_question(f, m);
    if (t->is_broken || f->s->code)
        return 0;
    question *q = &t->questions[number];
    if (is_asked_again(t, q, arguments)) {
        /* Drop the arguments: the earlier entry is reused. */
        t->argument_count = arguments;
        return t->first + q->last;
    }
    q->last = (uint32_t)t->count;
    for (uint32_t i = 0; i < count; i++)
        put(f, &(entry){.base = ends[i].base,
                        .by = ends[i].by,
                        .op = i ? OP_END : OP_PHASE,
                        .a = arguments,
                        .b = number});
    return t->is_broken || f->s->code ? 0 : t->first + q->last;
}

void fold_tape_before(fold_sim *f, fold_val a, fold_val b, bool is_so)
{
    if (!f->is_taping || (a.id == b.id && is_known(f->tape, a)))
        return;
    put_two(f, OP_IS_BEFORE, a, b, is_so, a);
}

void fold_tape_same(fold_sim *f, fold_val a, fold_val b)
{
    if (f->is_taping && !(a.id == b.id && is_known(f->tape, a)))
        put_two(f, OP_IS_SAME, a, b, true, a);
}

void fold_tape_wait(fold_sim *f, fold_val start, fold_val event, bool is_later)
{
    if (f->is_taping)
        put_two(f, OP_IS_LATER, start, event, is_later, start);
}

void fold_tape_rival(fold_sim *f,
                     const fold_class *c,
                     const fold_val *free,
                     fold_val mine,
                     fold_val other,
                     bool is_together)
{
    struct fold_tape *t = f->tape;
    if (!f->is_taping || t->is_broken)
        return;
    if (t->argument_count + 3 > MOST_ENTRIES) {
        t->is_broken = true;
        return;
    }
    const uint32_t arguments = (uint32_t)t->argument_count;
    if (put_argument(f, free ? *free : mine) && put_argument(f, mine) && put_argument(f, other))
        put(f, &(entry){.op = OP_WINS,
                        .a = arguments,
                        .b = (uint32_t)(c - f->classes),
                        .has_free = free != NULL,
                        .is_together = is_together});
}

/* Phases whose ends follow from their starts in the same way.  Ends of others may coincide as well,
 * ordered by their timers' numbers: the tape cannot tell whether they do again. */
static bool are_alike(const fold_meeting *a, const fold_meeting *b)
{
    return a && b && a->family == b->family && coll_times_same(&a->phase, &b->phase);
}

void fold_tape_order(fold_sim *f, const fold_event *a, const fold_event *b, bool is_by_lag)
{
    struct fold_tape *t = f->tape;
    if (!f->is_taping)
        return;
    const bool is_tie = a->at.base == b->at.base && a->at.by == b->at.by && !is_by_lag;
    if (!is_tie)
        put_two(f, OP_GOES_FIRST, a->at, b->at, is_by_lag, a->at);
    else if (!are_alike(a->meeting, b->meeting))
        t->is_broken = true;
    else /* phases that begin together end together, in the order in which they began */
        for (uint32_t i = 0; i < a->meeting->family->class_count; i++)
            fold_tape_same(f, a->meeting->starts[i], b->meeting->starts[i]);
}

void fold_tape_break(fold_sim *f)
{
    if (f->is_taping)
        f->tape->is_broken = true;
}

/* ---- from step to step ---- */

void fold_tape_ends(fold_sim *f, const fold_class *c)
{
    struct fold_tape *t = f->tape;
    if (!t || c->npu->round != t->round + 1)
        return;
    fold_val *at = &t->ends[(size_t)INPUTS * (size_t)(c - f->classes)];
    at[0] = c->round_end;
    at[1] = c->event_at;
    t->ended++;
    t->is_broken = t->is_broken || !is_known(t, at[0]) || !is_known(t, at[1]);
}

void fold_tape_begins(fold_sim *f, fold_class *c)
{
    struct fold_tape *t = f->tape;
    f->is_taping = t && c->npu->round == t->round && !fold_is_over(f);
    c->round_end.id = c->event_at.id = 0;
    if (!f->is_taping || t->is_broken)
        return;
    fold_val *const at[INPUTS] = {&c->round_end, &c->event_at};
    for (unsigned k = 0; k < INPUTS; k++) {
        const uint32_t which = (uint32_t)(c - f->classes) * INPUTS + k;
        t->begins[which] = (uint32_t)t->count;
        at[k]->id =
            put(f, &(entry){.base = at[k]->base, .by = at[k]->by, .op = OP_BEGIN, .a = which});
    }
    c->now.id = c->event_at.id;
}

void fold_tape_turn(fold_sim *f, const fold_class *c)
{
    f->is_taping = f->tape && c->npu->round == f->tape->round;
}

/* This tape is useless now: another step is recorded later. */
static void rewind_tape(struct fold_tape *t, uint32_t round)
{
    /* Ids continue: values of the old tape are recognised as foreign. */
    t->first += (uint32_t)t->count;
    t->round = round;
    t->count = t->argument_count = t->question_count = t->asked_count = 0;
    t->ended = 0;
    t->is_broken = false;
}

/* ---- playing back ---- */

static fold_val value_of(const struct fold_tape *t, uint32_t at, int64_t later)
{
    const entry *e = &t->entries[at];
    return t->differs[at] ? (fold_val){t->now[at].base + later, t->now[at].by, 0}
                          : (fold_val){e->base + t->shift + later, e->by, 0};
}

static fold_val value_of_argument(const struct fold_tape *t, uint32_t i)
{
    return value_of(t, t->arguments[i].at, t->arguments[i].later);
}

static void set(struct fold_tape *t, uint32_t at, fold_val v)
{
    const entry *e = &t->entries[at];
    /* A result that is exactly shifted need not be propagated. */
    t->differs[at] = v.by != e->by || v.base != e->base + t->shift;
    t->now[at] = v;
}

/* NULL: it has given up. */
static const int64_t *ask_again(fold_sim *f, const entry *e)
{
    struct fold_tape *t = f->tape;
    question *q = &t->questions[e->b];
    const uint32_t count = q->family->class_count;
    fold_val *asked = t->asked + q->asked;
    bool is_same = q->known != NULL;
    if (!orr_grow(&t->starts, &t->starts_room, count)) {
        run_no_memory(f->s);
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++)
        t->starts[i] = value_of_argument(t, e->a + i);
    /* Mostly the starts of the last time, shifted: the cached result is relative to the first. */
    for (uint32_t i = 0; i < count && is_same; i++)
        is_same = asked[i].by == t->starts[i].by &&
                  asked[i].base - asked[0].base == t->starts[i].base - t->starts[0].base;
    if (is_same)
        return q->known;
    memcpy(asked, t->starts, count * sizeof *asked);
    return q->known = fold_ask(f, q->family, &q->phase, t->starts);
}

/* A phase whose starts are all shifted has shifted ends; any other is computed again, and mostly
 * found among the memos. */
static bool play_phase(fold_sim *f, uint32_t at)
{
    struct fold_tape *t = f->tape;
    const entry *e = &t->entries[at];
    const uint32_t count = t->questions[e->b].family->class_count;
    bool differs = false;
    for (uint32_t i = 0; i < count && !differs; i++)
        differs = t->differs[t->arguments[e->a + i].at];
    /* Its ends are shifted: nothing to set. */
    if (!differs)
        return true;
    const int64_t *known = ask_again(f, e);
    for (uint32_t i = 0; known && i < count; i++)
        set(t, at + i,
            (fold_val){t->starts[0].base + known[FOLD_LAGS + 2 * (size_t)i],
                       (uint32_t)known[FOLD_LAGS + 1 + 2 * (size_t)i], 0});
    return known != NULL;
}

static bool still_wins(fold_sim *f, const entry *e)
{
    const struct fold_tape *t = f->tape;
    const fold_val free = value_of_argument(t, e->a);
    return fold_wins(f, e->has_free ? &free : NULL, value_of_argument(t, e->a + 1),
                     value_of_argument(t, e->a + 2), e->is_together, f->classes[e->b].count);
}

static bool still_holds(fold_sim *f, const entry *e)
{
    const struct fold_tape *t = f->tape;
    const fold_val a = value_of(t, e->a, e->a_later), b = value_of(t, e->b, e->b_later);
    const fold_val later = fold_sub(f->times, b, a); /* b than a */
    switch (e->op) {
    case OP_IS_BEFORE:
        return (later.base > 0) == e->is_so;
    case OP_IS_SAME:
        return later.base == 0 && later.by == 0;
    case OP_IS_LATER:
        return e->is_so ? fold_most(f->times, later) < 0 : later.base >= 0;
    default: /* OP_GOES_FIRST */
        return later.base > 0 || (later.base == 0 && e->is_so);
    }
}

/* As recorded.  False: out of memory. */
static bool play_itself(fold_sim *f)
{
    struct fold_tape *t = f->tape;
    if (!orr_grow(&t->differs, &t->differs_room, t->count) ||
        !orr_grow(&t->now, &t->now_room, t->count)) {
        run_no_memory(f->s);
        return false;
    }
    memset(t->differs, 0, t->count * sizeof *t->differs);
    t->shift = 0;
    return !fold_is_over(f);
}

/* One step with these beginnings.  False: it proceeds differently, or the run is over. */
static bool play(fold_sim *f, const fold_val *begun)
{
    struct fold_tape *t = f->tape;
    int64_t votes = 0;
    memset(t->differs, 0, t->count * sizeof *t->differs);
    /* The shift of most beginnings, if there is a majority. */
    for (size_t i = 0; i < (size_t)INPUTS * f->class_count; i++) {
        const entry *e = &t->entries[t->begins[i]];
        if (begun[e->a].by != e->by)
            continue;
        const int64_t shift = begun[e->a].base - e->base;
        if (votes == 0)
            t->shift = shift;
        /* Boyer-Moore majority vote: one pass, no table.  Without a majority any shift is correct,
         * only slower. */
        votes += t->shift == shift ? 1 : -1;
    }
    for (uint32_t i = 0; i < t->count; i++) {
        const entry *e = &t->entries[i];
        switch (e->op) {
        case OP_BEGIN:
            set(t, i, (fold_val){begun[e->a].base, begun[e->a].by, 0});
            break;
        case OP_MAX:
            if (t->differs[e->a] || t->differs[e->b])
                set(t, i,
                    fold_max(f->times, value_of(t, e->a, e->a_later),
                             value_of(t, e->b, e->b_later)));
            break;
        case OP_ADD:
            if (t->differs[e->a])
                set(t, i,
                    fold_add(f->times, value_of(t, e->a, e->a_later),
                             (fold_val){e->b_later, e->b, 0}));
            break;
        case OP_PERMUTE:
            if (t->differs[e->a])
                set(t, i, permuted(f, value_of(t, e->a, e->a_later), f->pairs[e->b - 1]));
            break;
        case OP_PHASE:
            if (!play_phase(f, i))
                return false;
            break;
        case OP_END:
            /* Its time was set with its phase. */
            break;
        case OP_WINS:
            if ((t->differs[t->arguments[e->a].at] || t->differs[t->arguments[e->a + 1].at] ||
                 t->differs[t->arguments[e->a + 2].at]) &&
                !still_wins(f, e))
                return false;
            break;
        default:
            if ((t->differs[e->a] || t->differs[e->b]) && !still_holds(f, e))
                return false;
        }
    }
    return !fold_times_failed(f->times) && !fold_is_over(f);
}

/* Do all begin step `to` as they began step `from`, only later? */
static bool begin_alike(const fold_sim *f, uint32_t from, uint32_t to, int64_t *later)
{
    const size_t width = (size_t)INPUTS * f->class_count;
    const fold_val *a = &f->tape->begun[from % FOLD_BEGINNINGS * width];
    const fold_val *b = &f->tape->begun[to % FOLD_BEGINNINGS * width];
    *later = b[0].base - a[0].base;
    for (size_t i = 0; i < width; i++)
        if (a[i].by != b[i].by || b[i].base - a[i].base != *later)
            return false;
    return true;
}

/* The step replayed last has ended: the next one begins.  False: out of memory. */
static bool begin_next(fold_sim *f, uint32_t step)
{
    struct fold_tape *t = f->tape;
    fold_val *to = &t->begun[(step + 1) % FOLD_BEGINNINGS * (size_t)INPUTS * f->class_count];
    const size_t row = step - t->round;
    if (!orr_grow(&t->rows, &t->row_room, row + 1))
        return false;
    t->rows[row] = 0;
    for (size_t i = 0; i < (size_t)INPUTS * f->class_count; i++) {
        const argument x = argument_of(t, t->ends[i]);
        to[i] = value_of(t, x.at, x.later);
        const uint64_t end = (uint64_t)fold_most(f->times, to[i]);
        /* Only the ends count, not the events that noticed them. */
        if (i % INPUTS == 0 && end > t->rows[row])
            t->rows[row] = end;
    }
    return true;
}

/* A time of the recorded step becomes that of the step replayed last. */
static void move(const struct fold_tape *t, fold_val *v)
{
    const uint32_t at = v->id - t->first;
    *v = value_of(t, at, v->base - t->entries[at].base);
}

static bool knows_log(const struct fold_tape *t, const fold_log *l)
{
    bool ok = true;
    for (size_t i = 0; i < l->count && ok; i++)
        ok = is_known(t, l->steps[i].start) && is_known(t, l->steps[i].end);
    for (size_t i = 0; i < l->phase_count && ok; i++)
        ok = is_known(t, l->phases[i].start) && is_known(t, l->phases[i].end);
    for (size_t i = 0; i < l->send_count && ok; i++)
        ok = is_known(t, l->sends[i].at);
    return ok;
}

static bool move_log(fold_sim *f, fold_log *l)
{
    const struct fold_tape *t = f->tape;
    for (size_t i = 0; i < l->count; i++) {
        move(t, &l->steps[i].start);
        move(t, &l->steps[i].end);
    }
    for (size_t i = 0; i < l->phase_count; i++) {
        move(t, &l->phases[i].start);
        move(t, &l->phases[i].end);
    }
    for (size_t i = 0; i < l->send_count; i++) {
        fold_sent *sent = &l->sends[i];
        move(t, &sent->at);
        if (!sent->words)
            continue;
        const entry *e = &t->entries[sent->phase - t->first];
        const int64_t *known = ask_again(f, e);
        if (!known)
            return false;
        sent->words = fold_words_of(f, t->questions[e->b].family, known);
    }
    return true;
}

/* Not if an event decides something that is not on the tape, or a class is already further. */
static bool is_whole(const fold_sim *f)
{
    const struct fold_tape *t = f->tape;
    bool ok = t->ended == f->class_count && !t->is_broken;
    for (uint32_t i = 0; i < f->class_count && ok; i++)
        ok = knows_log(t, &f->classes[i].done) &&
             f->classes[i].begun[t->round % FOLD_BEGINNINGS].queues ==
                 f->classes[i].begun[(t->round + 1) % FOLD_BEGINNINGS].queues;
    return ok;
}

/* Steps were computed up to the last one, or to one that equals it: times of the log become those
 * of that step. */
static void accept_step(fold_sim *f, uint32_t step, uint32_t cycle, int64_t later)
{
    struct fold_tape *t = f->tape;
    run_rounds *r = &f->s->rounds;
    const fold_val *begun = &t->begun[step % FOLD_BEGINNINGS * (size_t)INPUTS * f->class_count];
    for (uint32_t i = t->round + 1; i <= step; i++)
        if (!steady_note_end(f->s, i, f->s->npu_count, t->rows[i - t->round]))
            run_no_memory(f->s);
    for (uint32_t i = 0; i < f->class_count && !fold_is_over(f); i++) {
        f->classes[i].begun[step % FOLD_BEGINNINGS].at = begun[(size_t)INPUTS * i];
        if (!move_log(f, &f->classes[i].done))
            return;
    }
    r->skipped = r->last - step;
    r->skipped_ns = cycle ? steady_length(r->skipped / cycle, (uint64_t)later) : 0;
    r->played = step - t->round;
    r->last = step;
    f->is_steady = true;
}

void fold_play_on(fold_sim *f, uint32_t round)
{
    struct fold_tape *t = f->tape;
    const uint32_t last = f->s->rounds.last;
    if (!t || round != t->round)
        return;
    uint32_t step = round, cycle = 0, until = last;
    int64_t later = 0;
    bool ok = is_whole(f) && play_itself(f);
    fold_val *first = &t->begun[round % FOLD_BEGINNINGS * (size_t)INPUTS * f->class_count];
    for (size_t i = 0; i < (size_t)INPUTS * f->class_count && ok; i++)
        first[i] = (fold_val){t->entries[t->begins[i]].base, t->entries[t->begins[i]].by, 0};
    while (ok) {
        if (!begin_next(f, step)) {
            run_no_memory(f->s);
            return;
        }
        for (uint32_t n = 1; !cycle && n < FOLD_BEGINNINGS && n <= step + 1 - round; n++)
            if (begin_alike(f, step + 1 - n, step + 1, &later) && later >= 0) {
                cycle = n;
                /* From here on steps repeat in cycles of n: the last one equals the one at its
                 * position in the cycle. */
                until = step + (last - step) % n;
            }
        if (step == until)
            break;
        step++;
        ok = play(f, &t->begun[step % FOLD_BEGINNINGS * (size_t)INPUTS * f->class_count]) &&
             !atomic_load_explicit(&f->s->must_stop, memory_order_relaxed);
    }
    if (ok)
        accept_step(f, step, cycle, later);
    else
        /* Exponential back-off: a run that does not settle is recorded a few times only.  Some
         * classes are already in the next step. */
        rewind_tape(t, 2 * round + (round ? 1 : 2));
}
