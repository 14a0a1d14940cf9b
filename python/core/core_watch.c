/* SPDX-License-Identifier: Apache-2.0 */
/* core_watch.c - library calls that Ctrl-C can interrupt.
 *
 * Python handles signals only in its main thread, so the call runs in a new thread while the main
 * thread waits and checks about twenty times a second.  A handler that raises ends the call
 * (orrery/lab/stop.h); any other handler does not matter.  Other threads get no signals and call
 * directly. */
#include "core.h"

#include <orrery/lab/stop.h>

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_NS = 50000000 };

typedef struct watched {
    core_job job;
    void *data;
    int stop;
    orr_code code;
    orr_error err;
    bool is_over;
    pthread_mutex_t lock;
    pthread_cond_t over;
} watched;

static void *work(void *p)
{
    watched *w = p;
    orr_error err = {0};
    orr_stop_when(&w->stop);
    const orr_code code = w->job(w->data, &err);
    pthread_mutex_lock(&w->lock);
    w->code = code;
    w->err = err;
    w->is_over = true;
    pthread_cond_signal(&w->over);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static bool wait_a_while(watched *w)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&w->lock);
    while (!w->is_over && pthread_cond_timedwait(&w->over, &w->lock, &until) == 0)
        ;
    const bool is_over = w->is_over;
    pthread_mutex_unlock(&w->lock);
    return is_over;
}

bool core_thread_start(pthread_t *thread, void *(*run)(void *), void *data)
{
    sigset_t all, old;
    sigfillset(&all); /* leave signals to Python's threads */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const bool is_started = pthread_create(thread, NULL, run, data) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return is_started;
}

static bool is_main_thread(void)
{
    return gettid() == getpid();
}

/* False: no thread could be created. */
static bool run_apart(watched *w)
{
    pthread_condattr_t how;
    pthread_t thread;
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    pthread_cond_init(&w->over, &how);
    pthread_condattr_destroy(&how);
    const bool is_started = core_thread_start(&thread, work, w);
    for (bool is_over = !is_started; !is_over;) {
        Py_BEGIN_ALLOW_THREADS is_over = wait_a_while(w);
        Py_END_ALLOW_THREADS if (!is_over && !w->stop && PyErr_CheckSignals())
            __atomic_store_n(&w->stop, 1, __ATOMIC_RELAXED);
    }
    if (is_started)
        pthread_join(thread, NULL);
    pthread_cond_destroy(&w->over);
    pthread_mutex_destroy(&w->lock);
    return is_started;
}

orr_code core_watch(core_job job, void (*undo)(void *data), void *data, orr_error *err)
{
    watched w = {.job = job, .data = data};
    if (!is_main_thread() || !run_apart(&w)) {
        Py_BEGIN_ALLOW_THREADS w.code = job(data, &w.err);
        Py_END_ALLOW_THREADS
    }
    *err = w.err;
    if (!w.stop)
        return w.code;
    if (!w.code && undo) /* it finished before the interrupt */
        undo(data);
    return ORR_ESTOP;
}
