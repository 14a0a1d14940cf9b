/* SPDX-License-Identifier: Apache-2.0 */
/* stop.c - one pointer per thread, which pool.c passes on to the threads it starts; and a thread
 * that enforces limits. */
#include "stop.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

ORR_THREAD_LOCAL const int *orr__stop_flag;

void orr_stop_when(const int *flag)
{
    orr__stop_flag = flag;
}

int orr_stop_asked(void)
{
    return orr__stop_asked();
}

/* ---- guard ----
 *
 * A thread with a clock.  It waits on a condition, so that work that ends early does not wait for
 * it; the clock is monotonic, so that setting the time of day changes nothing. */

enum { LOOK_NS = 20000000, SECOND_NS = 1000000000 };

struct orr_guard {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool is_over;
    orr_guard_limit reached;
    struct timespec deadline;
    bool has_deadline;
    uint64_t bytes;
    void (*stop)(void *context);
    void *context;
};

/* Resident bytes of the process; 0: unknown. */
static uint64_t memory_now(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    unsigned long long all = 0, resident = 0;
    if (!f)
        return 0;
    const int got = fscanf(f, "%llu %llu", &all, &resident);
    fclose(f);
    const long page = sysconf(_SC_PAGESIZE);
    return got == 2 && page > 0 ? (uint64_t)resident * (uint64_t)page : 0;
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

static orr_guard_limit look(const orr_guard *g, const struct timespec *now)
{
    if (g->has_deadline && !is_before(now, &g->deadline))
        return ORR_GUARD_TIME;
    return g->bytes && memory_now() > g->bytes ? ORR_GUARD_MEMORY : ORR_GUARD_NONE;
}

static void *watch(void *guard)
{
    orr_guard *g = guard;
    pthread_mutex_lock(&g->lock);
    while (!g->is_over) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if ((g->reached = look(g, &now))) {
            g->stop(g->context);
            break;
        }
        now.tv_nsec += LOOK_NS;
        if (now.tv_nsec >= SECOND_NS) {
            now.tv_nsec -= SECOND_NS;
            now.tv_sec++;
        }
        if (g->has_deadline && is_before(&g->deadline, &now))
            now = g->deadline;
        pthread_cond_timedwait(&g->over, &g->lock, &now);
    }
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

static void set_deadline(orr_guard *g, double seconds)
{
    enum { LONGEST = 1 << 30 }; /* seconds: 34 years */
    if (!(seconds > 0))
        return;
    g->has_deadline = true;
    clock_gettime(CLOCK_MONOTONIC, &g->deadline);
    const double some = seconds < LONGEST ? seconds : LONGEST;
    const time_t whole = (time_t)some;
    g->deadline.tv_sec += whole;
    g->deadline.tv_nsec += (long)((some - (double)whole) * SECOND_NS);
    if (g->deadline.tv_nsec >= SECOND_NS) {
        g->deadline.tv_nsec -= SECOND_NS;
        g->deadline.tv_sec++;
    }
}

static bool make_condition(pthread_cond_t *c)
{
    pthread_condattr_t how;
    if (pthread_condattr_init(&how))
        return false;
    const bool is_made =
        !pthread_condattr_setclock(&how, CLOCK_MONOTONIC) && !pthread_cond_init(c, &how);
    pthread_condattr_destroy(&how);
    return is_made;
}

orr_code orr_guard_start(double seconds,
                         uint64_t bytes,
                         void (*stop)(void *context),
                         void *context,
                         orr_guard **out,
                         orr_error *err)
{
    *out = NULL;
    if (!(seconds > 0) && !bytes)
        return ORR_OK;
    orr_guard *g = orr_alloc(1, sizeof *g);
    if (!g)
        return orr_no_memory(err);
    *g = (orr_guard){.bytes = bytes, .stop = stop, .context = context};
    set_deadline(g, seconds);
    if (pthread_mutex_init(&g->lock, NULL)) {
        orr_free(g);
        return orr_no_memory(err);
    }
    if (!make_condition(&g->over)) {
        pthread_mutex_destroy(&g->lock);
        orr_free(g);
        return orr_no_memory(err);
    }
    /* A limit exceeded already is seen at once: short work may end before the thread checks. */
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if ((g->reached = look(g, &now))) {
        g->is_over = true;
        stop(context);
    }
    if (pthread_create(&g->thread, NULL, watch, g)) {
        pthread_cond_destroy(&g->over);
        pthread_mutex_destroy(&g->lock);
        orr_free(g);
        return orr_fail(err, ORR_EIO, NULL, "cannot start the thread that enforces limits");
    }
    *out = g;
    return ORR_OK;
}

orr_guard_limit orr_guard_end(orr_guard *g)
{
    if (!g)
        return ORR_GUARD_NONE;
    pthread_mutex_lock(&g->lock);
    g->is_over = true;
    pthread_cond_signal(&g->over);
    pthread_mutex_unlock(&g->lock);
    pthread_join(g->thread, NULL);
    const orr_guard_limit reached = g->reached;
    pthread_cond_destroy(&g->over);
    pthread_mutex_destroy(&g->lock);
    orr_free(g);
    return reached;
}
