/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/rng.h"
#include "models/network/packet/engine/event_wheel.h"

typedef struct pending {
    uint64_t at, order;
    uint32_t id;
} pending;

static pending take_least(pending *list, size_t *count)
{
    size_t best = 0;
    for (size_t i = 1; i < *count; i++)
        if (list[i].at < list[best].at ||
            (list[i].at == list[best].at && list[i].order < list[best].order))
            best = i;
    const pending out = list[best];
    list[best] = list[--*count];
    return out;
}

/* All are taken out and put in again `ticks` later; `now` is then that much later, too. */
static void move_all(fab_wheel *w, pending *list, size_t count, uint64_t *now, uint64_t ticks)
{
    uint32_t *ids = NULL;
    size_t room = 0, found;
    uint64_t at;
    CHECK(fab_wheel_take_all(w, &ids, &room, &found));
    CHECK_EQ_U(found, count);
    CHECK(!fab_wheel_peek(w, &at));
    *now += ticks;
    fab_wheel_begin(w, *now);
    for (size_t i = 0; i < found; i++) {
        const fab_event *e = fab_wheel_event(w, ids[i]);
        fab_wheel_at(w, ids[i], e->at + ticks, e->order);
    }
    for (size_t i = 0; i < count; i++)
        list[i].at += ticks;
    orr_free(ids);
}

/* Near and far, equal times, orders given out long before they are put in. */
static void compare_with_list(unsigned shift, uint64_t spread)
{
    enum { MOST = 200 };
    fab_wheel w;
    pending list[MOST];
    orr_rng r;
    size_t count = 0;
    uint64_t now = 0, order = 0;
    uint32_t id = 0;
    orr_rng_init(&r, spread, shift);
    CHECK(fab_wheel_init(&w, shift));
    for (int i = 0; i < 30000; i++) {
        if (i % 300 == 299)
            move_all(&w, list, count, &now, i % 600 == 599 ? orr_rng_below(&r, 9 * spread) : 0);
        if (count < MOST && orr_rng_below(&r, 5) > (uint64_t)(i / 500) % 4) {
            const uint64_t far = orr_rng_below(&r, 20) ? spread : spread * 5000;
            id = fab_wheel_new(&w, 1, 0);
            order += 10;
            list[count] = (pending){now + orr_rng_below(&r, far), order - orr_rng_below(&r, 9), id};
            fab_wheel_at(&w, id, list[count].at, list[count].order);
            count++;
        } else if (count) {
            const pending want = take_least(list, &count);
            uint64_t at;
            CHECK(fab_wheel_peek(&w, &at) && at <= want.at && at >> shift == want.at >> shift);
            CHECK(!fab_wheel_next(&w, want.at, want.order - 1, &id) || want.order == 0);
            CHECK(fab_wheel_next(&w, UINT64_MAX, UINT64_MAX, &id));
            CHECK_EQ_U(id, want.id);
            now = want.at;
            order = order > want.order ? order : want.order;
            fab_wheel_drop(&w, id);
        }
    }
    CHECK(!w.has_failed);
    fab_wheel_fini(&w);
}

TEST(test_event_wheel__gives_events_as_a_list_would)
{
    compare_with_list(0, 50);
    compare_with_list(0, 20000);
    compare_with_list(10, 3000);
    compare_with_list(10, 1000000);
    compare_with_list(0, 300000);
    compare_with_list(10, 40000000); /* beyond all turns */
}

TEST(test_event_wheel__does_not_pass_a_bound)
{
    fab_wheel w;
    uint32_t id;
    uint64_t at;
    CHECK(fab_wheel_init(&w, 0));
    CHECK(!fab_wheel_peek(&w, &at));
    const uint32_t late = fab_wheel_new(&w, 1, 7), early = fab_wheel_new(&w, 2, 8);
    fab_wheel_at(&w, late, 1000000, 1);
    CHECK(fab_wheel_peek(&w, &at) && at == 1000000);
    CHECK(!fab_wheel_next(&w, 999999, UINT64_MAX,
                          &id)); /* what comes before it can still be put in */
    fab_wheel_at(&w, early, 500, 2);
    CHECK(fab_wheel_next(&w, UINT64_MAX, UINT64_MAX, &id) && id == early);
    CHECK(!fab_wheel_next(&w, 1000000, 0, &id));
    CHECK(fab_wheel_next(&w, 1000000, 1, &id) && id == late);
    CHECK(!fab_wheel_next(&w, UINT64_MAX, UINT64_MAX, &id));
    fab_wheel_fini(&w);
}

/* Many events of one instant, put in backwards: the long sort. */
TEST(test_event_wheel__sorts_an_instant)
{
    enum { MANY = 5000 };
    fab_wheel w;
    uint32_t id;
    CHECK(fab_wheel_init(&w, 0));
    for (uint32_t i = 0; i < MANY; i++) {
        id = fab_wheel_new(&w, 1, i);
        fab_wheel_at(&w, id, 99, MANY - i);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        CHECK(fab_wheel_next(&w, UINT64_MAX, UINT64_MAX, &id));
        CHECK_EQ_U(fab_wheel_event(&w, id)->order, i + 1);
    }
    fab_wheel_fini(&w);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_event_wheel__gives_events_as_a_list_would),
        RUN(test_event_wheel__does_not_pass_a_bound),
        RUN(test_event_wheel__sorts_an_instant),
    };
    return RUN_ALL(tests);
}
