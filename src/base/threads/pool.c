/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c - threads that live as long as one loop.  Starting a thread takes some ten microseconds,
 * an item here is a file or a rank: nothing is gained by keeping threads between loops, and nothing
 * is global. */
#include "pool.h"

#include "stop.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MOST_THREADS = 256 };

typedef struct loop {
    orr_pool_work work;
    void *context;
    size_t items;
    const int *stop; /* of the caller */
    atomic_size_t next;
    atomic_bool has_failed;
    pthread_mutex_t lock; /* for the three below */
    size_t failed_item;
    orr_code code;
    orr_error error;
} loop;

unsigned orr_pool_threads(unsigned wanted)
{
    if (!wanted) { /* asking reads a file of the system: a fifth of a search on one thread */
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
        count++; /* a thread that cannot be had is a thread less, not an error */
    run(&l);
    while (count)
        pthread_join(started[--count], NULL);
    pthread_mutex_destroy(&l.lock);
    if (l.code && err)
        *err = l.error;
    return l.code;
}
