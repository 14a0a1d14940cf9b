/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c - threads that live as long as one loop.  Starting a thread takes some ten microseconds
 * and an item is a file or a rank: keeping threads between loops would gain nothing and need global
 * state. */
#include "pool.h"

#include "stop.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum { MOST_THREADS = 256 };

typedef struct loop {
    orr_pool_work work;
    void *context;
    size_t items;
    const int *stop; /* the caller's */
    atomic_size_t next;
    atomic_bool has_failed;
    pthread_mutex_t lock; /* for the three below */
    size_t failed_item;
    orr_code code;
    orr_error error;
} loop;

unsigned orr_pool_threads(unsigned wanted)
{
    if (!wanted) { /* counting cores reads a system file: a fifth of a search on one thread */
        const long cores = sysconf(_SC_NPROCESSORS_ONLN);
        wanted = cores > 0 ? (unsigned)cores : 1;
    }
    return wanted < MOST_THREADS ? wanted : MOST_THREADS;
}

static void note_failure(loop *l, size_t item, orr_code code, const orr_error *error)
{
    pthread_mutex_lock(&l->lock);
    if (!l->code || item < l->failed_item) {
        l->failed_item = item;
        l->code = code;
        l->error = *error;
    }
    pthread_mutex_unlock(&l->lock);
    atomic_store(&l->has_failed, true);
}

static void *run(void *p)
{
    loop *l = p;
    orr_stop_when(l->stop);
    while (!atomic_load(&l->has_failed)) {
        orr_error error = {.code = ORR_OK};
        const size_t item = atomic_fetch_add(&l->next, 1);
        if (item >= l->items)
            break;
        const orr_code code = l->work(l->context, item, &error);
        if (code)
            note_failure(l, item, code, &error);
    }
    return NULL;
}

orr_code orr_pool_for(
    unsigned threads, size_t items, orr_pool_work work, void *context, orr_error *err)
{
    pthread_t started[MOST_THREADS];
    unsigned count = 0;
    loop l = {.work = work, .context = context, .items = items, .stop = orr__stop_flag};
    threads = items > 1 ? orr_pool_threads(threads) : 1;
    if (threads > items)
        threads = (unsigned)items;
    pthread_mutex_init(&l.lock, NULL);
    while (count + 1 < threads && pthread_create(&started[count], NULL, run, &l) == 0)
        count++; /* a thread that cannot be created is one less, not an error */
    run(&l);
    while (count)
        pthread_join(started[--count], NULL);
    pthread_mutex_destroy(&l.lock);
    if (l.code && err)
        *err = l.error;
    return l.code;
}

/* ---- crew ----
 *
 * Threads between runs look for the next one for a while, and sleep if it does not come.
 *
 * A run may be as short as some microseconds, less than it takes to wake a thread; so whoever waits
 * looks first.  A sleeper counts itself before it looks for the last time, and whoever begins or
 * ends a run looks for sleepers after it has said so: one of the two sees the other.
 *
 * Where others have the cores, a member may get its turn milliseconds later, again and again.  So
 * the caller looks at the time: if it has waited for several runs much longer than it worked, it
 * does the work of all by itself for a while. */

enum { MOST_MEMBERS = 256, LOOKS = 2000, LOOKS_BEFORE_YIELD = 1000 };

enum {
    MUCH_LONGER = 4,
    SOME_NS = 50000, /* shorter waits do not matter */
    LATE_RUNS = 4,   /* one after the other */
    FIRST_REST = 64, /* runs alone; twice as many each time */
    LONGEST_REST = 16384
};

typedef struct member {
    orr_crew *crew;
    unsigned who;
    pthread_t thread;
} member;

struct orr_crew {
    orr_crew_work work;
    void *context;
    unsigned members;
    unsigned late, alone,
        rest;         /* runs: that were late, still to be done alone, and the next time */
    atomic_uint run;  /* how many were begun */
    atomic_uint left; /* members still at work */
    atomic_uint sleepers;
    atomic_bool is_over;
    pthread_mutex_t lock;
    pthread_cond_t news;
    member threads[MOST_MEMBERS];
};

static void wake(orr_crew *c)
{
    if (atomic_load(&c->sleepers) == 0)
        return;
    pthread_mutex_lock(&c->lock);
    pthread_cond_broadcast(&c->news);
    pthread_mutex_unlock(&c->lock);
}

/* Until *word is not `old`. */
static void await_change(orr_crew *c, atomic_uint *word, unsigned old)
{
    for (unsigned i = 0; i < LOOKS; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != old)
            return;
        if (i >= LOOKS_BEFORE_YIELD)
            sched_yield(); /* there may be fewer cores than threads */
    }
    pthread_mutex_lock(&c->lock);
    atomic_fetch_add(&c->sleepers, 1);
    while (atomic_load(word) == old)
        pthread_cond_wait(&c->news, &c->lock);
    atomic_fetch_sub(&c->sleepers, 1);
    pthread_mutex_unlock(&c->lock);
}

static void *live(void *p)
{
    const member *m = p;
    orr_crew *c = m->crew;
    for (unsigned seen = 0;; seen++) {
        await_change(c, &c->run, seen);
        if (atomic_load(&c->is_over))
            return NULL;
        c->work(c->context, m->who, c->members);
        if (atomic_fetch_sub(&c->left, 1) == 1)
            wake(c);
    }
}

orr_crew *orr_crew_create(unsigned members, orr_crew_work work, void *context)
{
    orr_crew *c = orr_alloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->work = work;
    c->context = context;
    c->members = 1;
    c->rest = FIRST_REST;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->news, NULL);
    while (c->members < members && c->members < MOST_MEMBERS) {
        member *m = &c->threads[c->members];
        *m = (member){.crew = c, .who = c->members};
        if (pthread_create(&m->thread, NULL, live, m))
            break;
        c->members++;
    }
    return c;
}

static void begin(orr_crew *c)
{
    atomic_store(&c->left, c->members - 1);
    atomic_fetch_add(&c->run, 1);
    wake(c);
}

static uint64_t time_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void judge(orr_crew *c, uint64_t worked, uint64_t waited)
{
    if (waited <= MUCH_LONGER * worked + SOME_NS) {
        c->late = 0;
        c->rest = FIRST_REST;
    } else if (++c->late == LATE_RUNS) {
        c->late = 0;
        c->alone = c->rest;
        c->rest = c->rest < LONGEST_REST ? 2 * c->rest : LONGEST_REST;
    }
}

void orr_crew_run(orr_crew *c)
{
    if (c->alone) {
        c->alone--;
        for (unsigned who = 0; who < c->members; who++)
            c->work(c->context, who, c->members);
        return;
    }
    const uint64_t began = time_now();
    begin(c);
    c->work(c->context, 0, c->members);
    const uint64_t done = time_now();
    for (unsigned left; (left = atomic_load(&c->left)) > 0;)
        await_change(c, &c->left, left);
    judge(c, done - began, time_now() - done);
}

void orr_crew_destroy(orr_crew *c)
{
    if (!c)
        return;
    atomic_store(&c->is_over, true);
    begin(c);
    for (unsigned i = 1; i < c->members; i++)
        pthread_join(c->threads[i].thread, NULL);
    pthread_cond_destroy(&c->news);
    pthread_mutex_destroy(&c->lock);
    orr_free(c);
}
