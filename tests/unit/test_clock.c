/* SPDX-License-Identifier: Apache-2.0 */
/* test_clock.c - events run in the order of time, then of scheduling; the timers of an owner run
 * together. */
#include "check.h"
#include "files.h"

#include "run/clock.h"

/* ---- a log of what ran ---- */

enum { MOST = 20000 };

typedef struct world {
    clk_clock *c;
    uint64_t log[MOST]; /* the arguments */
    size_t count;
} world;

static void note(void *context, uint64_t argument)
{
    world *w = context;
    w->log[w->count++] = argument;
}

static void run(world *w)
{
    while (clk_step(w->c))
        ;
}

static void check_log(const world *w, const uint64_t *want, size_t count)
{
    CHECK_EQ_U(w->count, count);
    for (size_t i = 0; i < count; i++)
        CHECK_EQ_U(w->log[i], want[i]);
}

#define CHECK_LOG(w, ...)                                    \
    do {                                                     \
        const uint64_t want_[] = {__VA_ARGS__};              \
        check_log((w), want_, sizeof want_ / sizeof *want_); \
    } while (0)

TEST(test_clock__runs_by_time_then_by_scheduling)
{
    world w = {.c = clk_create()};
    clk_at(w.c, 20, note, &w, 1);
    clk_at(w.c, 10, note, &w, 2);
    clk_at(w.c, 20, note, &w, 3);
    clk_at(w.c, 10, note, &w, 4);
    run(&w);
    CHECK_LOG(&w, 2, 4, 1, 3);
    CHECK_EQ_U(clk_now(w.c), 20);
    CHECK_EQ_U(clk_events(w.c), 4);
    clk_destroy(w.c);
}

static void pause_at(void *context, uint64_t argument)
{
    *(bool *)context = argument;
}

TEST(test_clock__runs_so_many_events_or_until_one_pauses)
{
    world w = {.c = clk_create()};
    bool pauses = false;
    uint64_t left = 2;
    for (uint64_t i = 0; i < 4; i++)
        clk_after(w.c, i, note, &w, i);
    clk_at(w.c, 3, pause_at, &pauses, true);
    clk_at(w.c, 3, note, &w, 9);
    CHECK(clk_run(w.c, &left, &pauses) && left == 0 && !pauses);
    CHECK_LOG(&w, 0, 1);
    left = 100;
    CHECK(clk_run(w.c, &left, &pauses) && left == 97 && pauses);
    CHECK_LOG(&w, 0, 1, 2, 3);
    /* It still pauses, so that one event runs; then none is left. */
    CHECK(clk_run(w.c, &left, &pauses) && left == 96);
    CHECK(!clk_run(w.c, &left, &pauses) && left == 96);
    CHECK_LOG(&w, 0, 1, 2, 3, 9);
    clk_destroy(w.c);
}

TEST(test_clock__timers_of_an_owner_stand_where_the_first_stands)
{
    world w = {.c = clk_create()};
    clk_at(w.c, 10, note, &w, 1);
    clk_timer(w.c, 7, 10, note, &w, 2);
    clk_at(w.c, 10, note, &w, 3);
    clk_timer(w.c, 8, 10, note, &w, 4);
    clk_timer(w.c, 7, 10, note, &w, 5);
    clk_timer(w.c, 7, 11, note, &w, 6);
    run(&w);
    CHECK_LOG(&w, 1, 2, 5, 3, 4, 6);
    clk_destroy(w.c);
}

static void add_timer(void *context, uint64_t argument)
{
    world *w = context;
    note(w, argument);
    clk_timer(w->c, 7, clk_now(w->c), note, w, argument + 1);
}

static void add_event(void *context, uint64_t argument)
{
    world *w = context;
    note(w, argument);
    clk_timer(w->c, 7, clk_now(w->c), note, w, argument + 1);
    clk_at(w->c, clk_now(w->c), note, w, argument + 2);
}

TEST(test_clock__what_a_running_timer_adds_for_now_is_next)
{
    world w = {.c = clk_create()};
    clk_timer(w.c, 7, 10, add_timer, &w, 10);
    clk_at(w.c, 10, note, &w, 30);
    run(&w);
    CHECK_LOG(&w, 10, 11, 30);
    clk_destroy(w.c);
}

TEST(test_clock__a_group_that_is_over_begins_anew_at_the_end)
{
    world w = {.c = clk_create()};
    clk_timer(w.c, 7, 10, note, &w, 1);
    clk_at(w.c, 10, add_event, &w, 20);
    clk_at(w.c, 10, note, &w, 30);
    run(&w);
    CHECK_LOG(&w, 1, 20, 30, 21, 22);
    clk_destroy(w.c);
}

/* ---- against a list that is gone through again and again ---- */

typedef struct item {
    uint64_t tick, argument;
    uint32_t owner; /* NONE: an event */
    bool is_running;
} item;

typedef struct model {
    item items[MOST];
    size_t count;
    uint64_t now, log[MOST];
    size_t logged;
    uint32_t running; /* owner whose timers run */
} model;

enum { OWNERS = 5, NO_OWNER = OWNERS };

/* The place behind the last timer of the same owner and tick, or behind everything. */
static void model_add(model *m, const item *new_item)
{
    size_t at = m->count;
    if (new_item->owner != NO_OWNER) {
        bool is_found = false;
        for (size_t i = 0; i < m->count; i++)
            if (m->items[i].owner == new_item->owner && m->items[i].tick == new_item->tick) {
                at = i + 1;
                is_found = true;
            }
        if (!is_found && m->running == new_item->owner && m->now == new_item->tick)
            at = 0; /* its group is running and empty: next of all */
    }
    memmove(&m->items[at + 1], &m->items[at], (m->count - at) * sizeof *m->items);
    m->items[at] = *new_item;
    m->count++;
}

static bool model_take(model *m, item *out)
{
    size_t best = 0;
    if (m->count == 0)
        return false;
    for (size_t i = 1; i < m->count; i++)
        if (m->items[i].tick < m->items[best].tick)
            best = i;
    *out = m->items[best];
    memmove(&m->items[best], &m->items[best + 1], (m->count - best - 1) * sizeof *m->items);
    m->count--;
    return true;
}

/* What an event does follows from its argument alone: it adds up to two more, until enough were
 * made. */
typedef struct plan {
    uint64_t state, made;
} plan;

static unsigned next_items(plan *p, uint64_t now, uint64_t argument, item *out)
{
    uint64_t r = p->state ^ argument * 0x9e3779b97f4a7c15u;
    const unsigned count = p->made < 3000 ? (unsigned)(next_random(&r) % 3) : 0;
    for (unsigned i = 0; i < count; i++)
        out[i] = (item){.tick = now + next_random(&r) % 4,
                        .owner = (uint32_t)(next_random(&r) % (OWNERS + 1)),
                        .argument = p->made++};
    return count;
}

static plan real_plan;

static void act(void *context, uint64_t argument)
{
    world *w = context;
    item more[2];
    note(w, argument);
    const unsigned count = next_items(&real_plan, clk_now(w->c), argument, more);
    for (unsigned i = 0; i < count; i++) {
        if (more[i].owner == NO_OWNER)
            clk_at(w->c, more[i].tick, act, w, more[i].argument);
        else
            clk_timer(w->c, more[i].owner, more[i].tick, act, w, more[i].argument);
    }
}

static void run_model(model *m, plan *p)
{
    item e, more[2];
    while (model_take(m, &e)) {
        m->now = e.tick;
        m->running = e.owner;
        m->log[m->logged++] = e.argument;
        const unsigned count = next_items(p, m->now, e.argument, more);
        for (unsigned i = 0; i < count; i++)
            model_add(m, &more[i]);
    }
}

TEST(test_clock__agrees_with_a_plain_list)
{
    static world w;
    static model m;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        plan p = {.state = seed, .made = 20};
        w = (world){.c = clk_create()};
        m = (model){.running = NO_OWNER};
        for (uint64_t i = 0; i < 20; i++) {
            clk_at(w.c, i % 3, act, &w, i);
            model_add(&m, &(item){.tick = i % 3, .owner = NO_OWNER, .argument = i});
        }
        real_plan = p;
        run(&w);
        run_model(&m, &p);
        check_log(&w, m.log, m.logged);
        clk_destroy(w.c);
    }
}

/* Ticks that a sum of times may give, after the last one there is or before now. */
TEST(test_clock__refuses_ticks_out_of_range)
{
    const uint64_t bad[] = {CLK_LAST + 1, UINT64_MAX - 1, UINT64_MAX, 9};
    for (size_t i = 0; i < 2 * sizeof bad / sizeof *bad; i++) {
        world w = {.c = clk_create()};
        const uint64_t tick = bad[i / 2];
        if (tick < CLK_LAST) { /* before now */
            clk_at(w.c, 10, note, &w, 1);
            run(&w);
        }
        CHECK(!clk_has_failed(w.c));
        if (i % 2)
            clk_timer(w.c, 0, tick, note, &w, 2);
        else
            clk_at(w.c, tick, note, &w, 2);
        CHECK(clk_has_failed(w.c));
        CHECK(clk_is_over(w.c));
        CHECK(!clk_step(w.c));
        clk_destroy(w.c);
    }
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_clock__runs_by_time_then_by_scheduling),
        RUN(test_clock__runs_so_many_events_or_until_one_pauses),
        RUN(test_clock__timers_of_an_owner_stand_where_the_first_stands),
        RUN(test_clock__what_a_running_timer_adds_for_now_is_next),
        RUN(test_clock__a_group_that_is_over_begins_anew_at_the_end),
        RUN(test_clock__agrees_with_a_plain_list),
        RUN(test_clock__refuses_ticks_out_of_range),
    };
    return RUN_ALL(tests);
}
