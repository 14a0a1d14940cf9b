/* SPDX-License-Identifier: Apache-2.0 */
/* test_stop.c - work that is asked to stop: it fails, leaves nothing behind, and the thread goes on
 * as before. */
#include "et_make.h"

#include "base/threads/pool.h"
#include "base/threads/stop.h"

#include <orrery/set.h>

#include <pthread.h>
#include <sys/stat.h>

static void write_nodes(const char *path, uint32_t count)
{
    orr_trace *t = new_trace();
    for (uint32_t i = 0; i < count; i++) {
        const orr_draft d = {.id = i, .name = {"n", 1}, .type = ORR_NODE_COMP};
        CHECK_OK(orr_trace_append(t, &d, &err), &err);
    }
    seal(t);
    CHECK_OK(orr_trace_write(t, path, NULL, &err), &err);
    orr_trace_destroy(t);
}

TEST(test_stop__reading_and_writing_fail_and_leave_nothing)
{
    int stop = 0;
    orr_set *s = NULL;
    write_nodes("a.0.et", 5000);
    orr_stop_when(&stop);
    CHECK_OK(orr_set_open("a.0.et", NULL, &s, &err), &err);
    stop = 1;
    CHECK(orr_set_save(s, "a.orr", NULL, &err) != ORR_OK);
    CHECK(access("a.orr", F_OK) != 0);
    orr_set *other = NULL;
    CHECK(orr_set_open("a.0.et", NULL, &other, &err) != ORR_OK);
    CHECK(orr_stop_asked());
    orr_stop_when(NULL);
    CHECK(!orr_stop_asked());
    CHECK_OK(orr_set_save(s, "a.orr", NULL, &err), &err);
    orr_set_close(s);
}

static int flag;

static orr_code ask(void *context, size_t i, orr_error *e)
{
    (void)context;
    (void)i;
    return orr_stop_asked() ? orr_fail(e, ORR_ESTOP, NULL, "stopped") : ORR_OK;
}

TEST(test_stop__threads_of_a_pool_are_asked_too)
{
    flag = 0;
    orr_stop_when(&flag);
    CHECK_OK(orr_pool_for(4, 100, ask, NULL, &err), &err);
    flag = 1;
    CHECK_CODE(orr_pool_for(4, 100, ask, NULL, &err), ORR_ESTOP, &err);
    orr_stop_when(NULL);
    CHECK_OK(orr_pool_for(4, 100, ask, NULL, &err), &err);
}

static void *stop_soon(void *unused)
{
    usleep(100000);
    __atomic_store_n(&flag, 1, __ATOMIC_RELAXED);
    return unused;
}

TEST(test_stop__a_silent_pipe_is_left)
{
    pthread_t other;
    orr_set *s = NULL;
    CHECK(mkfifo("pipe.et", 0600) == 0);
    flag = 0;
    CHECK(pthread_create(&other, NULL, stop_soon, NULL) == 0);
    orr_stop_when(&flag);
    CHECK(orr_set_open("pipe.et", NULL, &s, &err) != ORR_OK);
    orr_stop_when(NULL);
    pthread_join(other, NULL);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_stop__reading_and_writing_fail_and_leave_nothing),
        RUN(test_stop__threads_of_a_pool_are_asked_too),
        RUN(test_stop__a_silent_pipe_is_left),
    };
    return RUN_ALL(tests);
}
