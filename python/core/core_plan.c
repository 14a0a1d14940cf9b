/* SPDX-License-Identifier: Apache-2.0 */
/* core_plan.c - the search for a parallelism.  It runs in its own thread, and threads of the
 * library report progress; the caller's thread waits, checks for Ctrl-C and shows the progress, ten
 * times a second. */
#include "core.h"

#include <orrery/lab/plan.h>
#include <orrery/lab/software.h>
#include <orrery/lab/stop.h>

#include <string.h>
#include <time.h>

typedef struct search {
    orr_plan_search *s;
    pthread_mutex_t lock;
    pthread_cond_t over;
    orr_plan_counts counts;
    int stop; /* ends the running simulations too, not only the search */
    orr_code code;
    orr_error err;
    bool is_over;
} search;

static void take_counts(void *context, const orr_plan_counts *counts)
{
    search *x = context;
    pthread_mutex_lock(&x->lock);
    x->counts = *counts;
    pthread_mutex_unlock(&x->lock);
}

static void *run_search(void *data)
{
    search *x = data;
    orr_error err = {0};
    orr_stop_when(&x->stop);
    const orr_code code = orr_plan_search_run(x->s, &err);
    pthread_mutex_lock(&x->lock);
    x->code = code;
    x->err = err;
    x->is_over = true;
    pthread_cond_signal(&x->over);
    pthread_mutex_unlock(&x->lock);
    return NULL;
}

static bool wait_a_while(search *x, orr_plan_counts *counts)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 100000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&x->lock);
    if (!x->is_over)
        pthread_cond_timedwait(&x->over, &x->lock, &until);
    const bool is_over = x->is_over;
    *counts = x->counts;
    pthread_mutex_unlock(&x->lock);
    return is_over;
}

static PyObject *counts_dict(const orr_plan_counts *c)
{
    return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K}", "legal", (unsigned long long)c->legal, "fitting",
                         (unsigned long long)c->fitting, "bounded", (unsigned long long)c->bounded,
                         "simulated", (unsigned long long)c->simulated, "to_do",
                         (unsigned long long)c->to_do);
}

/* False: a signal handler or the callback raised. */
static bool tell(PyObject *progress, const orr_plan_counts *counts)
{
    if (PyErr_CheckSignals())
        return false;
    if (progress == Py_None)
        return true;
    PyObject *d = counts_dict(counts);
    PyObject *said = d ? PyObject_CallFunctionObjArgs(progress, d, NULL) : NULL;
    Py_XDECREF(d);
    Py_XDECREF(said);
    return said != NULL;
}

static orr_code run_and_tell(search *x, PyObject *progress)
{
    pthread_t thread;
    orr_plan_counts counts;
    bool is_over = false, goes_on = true;
    if (!core_thread_start(&thread, run_search, x))
        return orr_fail(&x->err, ORR_ENOMEM, NULL, "no thread");
    while (!is_over) {
        Py_BEGIN_ALLOW_THREADS is_over = wait_a_while(x, &counts);
        Py_END_ALLOW_THREADS if (!is_over && goes_on && !tell(progress, &counts))
        {
            goes_on = false;
            orr_plan_search_stop(x->s);
            __atomic_store_n(&x->stop, 1, __ATOMIC_RELAXED);
        }
    }
    pthread_join(thread, NULL);
    return goes_on ? x->code : ORR_ESTOP;
}

/* ---- results ---- */

/* All that orrery.stage needs: what was searched, and what of the rest is not the default. */
static PyObject *options_dict(const orr_llm_options *o)
{
    static const char *const recompute[] = {"none", "selective", "full", "operators", "none"};
    PyObject *d = Py_BuildValue(
        "{s:I,s:I,s:I,s:I,s:I,s:K,s:K,s:K,s:s,s:s,s:I,s:I,s:s,s:N,s:s}", "tp", o->tp, "cp", o->cp,
        "pp", o->pp, "dp", o->dp, "ep", o->ep, "batch", (unsigned long long)o->batch, "micro_batch",
        (unsigned long long)o->micro_batch, "seq", (unsigned long long)o->seq, "dtype",
        orr_dtype_name(o->dtype), "pipeline", orr_pipeline_name(o->pipeline), "chunks", o->chunks,
        "zero", o->zero, "recompute", recompute[o->recompute], "no_sequence_parallel",
        PyBool_FromLong(o->no_sequence_parallel), "software",
        o->software ? o->software->name : orr_software_at(0)->name);
    PyObject *named = d ? core_llm_named(o) : NULL;
    if (d && (!named || PyDict_Update(d, named) < 0))
        Py_CLEAR(d);
    Py_XDECREF(named);
    return d;
}

static PyObject *shares_dict(const orr_plan_shares *s)
{
    return Py_BuildValue("{s:d,s:d,s:d,s:d,s:d,s:d,s:d}", "compute", s->compute, "tensor",
                         s->tensor, "context", s->context, "expert", s->expert, "data", s->data,
                         "pipeline", s->pipeline, "bubble", s->bubble);
}

static PyObject *plan_dict(const orr_plan *p)
{
    char words[400], command[ORR_PLAN_COMMAND_ROOM];
    orr_plan_words(p, words, sizeof words);
    orr_plan_command(p, command, sizeof command);
    return Py_BuildValue("{s:N,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:K,s:N,s:s,s:s,s:s}", "options",
                         options_dict(&p->options), "bound_s", p->bound_s, "step_s", p->step_s,
                         "low_s", p->low_s, "high_s", p->high_s, "tokens_per_s", p->tokens_per_s,
                         "mfu", p->mfu, "usd_per_mtoken", p->usd_per_mtoken,
                         "watt_hours_per_mtoken", p->watt_hours_per_mtoken, "memory_bytes",
                         (unsigned long long)p->memory.peak, "shares", shares_dict(&p->shares),
                         "limit", p->limit, "words", words, "command", command);
}

/* (plans, counts, limit): which limit ended it, or NULL. */
static PyObject *search_result(const orr_plan_search *s, const char *limit)
{
    PyObject *list = PyList_New(0);
    orr_plan_counts counts;
    for (size_t i = 0; list && i < orr_plan_count(s); i++) {
        PyObject *d = plan_dict(orr_plan_at(s, i));
        if (!d || PyList_Append(list, d) < 0)
            Py_CLEAR(list);
        Py_XDECREF(d);
    }
    orr_plan_search_counts(s, &counts);
    return list ? Py_BuildValue("(NNz)", list, counts_dict(&counts), limit) : NULL;
}

static bool take_plan(PyObject *o, orr_plan_options *p)
{
    static const char *const goals[] = {"time", "cost", "memory"};
    const char *goal = core_text(o, "goal");
    PyObject *fixed = core_list(o, "fix");
    orr_error err;
    p->machine = core_text(o, "machine");
    p->devices = core_small(o, "devices");
    p->batch = core_count(o, "batch");
    p->seq = core_count(o, "seq");
    p->top = core_small(o, "top");
    p->usd_per_hour = core_number(o, "usd_per_hour", 0);
    p->reserve = core_count(o, "reserve");
    p->no_prune = core_flag(o, "no_prune");
    p->threads = core_small(o, "threads");
    p->max_seconds = core_number(o, "max_seconds", 0);
    p->max_bytes = core_count(o, "max_bytes");
    p->max_events = core_count(o, "max_events");
    for (int i = 0; goal && i < 3; i++)
        if (strcmp(goals[i], goal) == 0)
            p->goal = (orr_plan_goal)i;
    for (Py_ssize_t i = 0; fixed && !PyErr_Occurred() && i < PyList_Size(fixed); i++) {
        const char *text = PyBytes_AsString(PyList_GetItem(fixed, i));
        const orr_code code = text ? orr_plan_fix(p, text, &err) : ORR_OK;
        if (code)
            core_raise(code, &err);
    }
    return !PyErr_Occurred();
}

typedef struct creation {
    const orr_plan_options *opt;
    orr_plan_search **out;
} creation;

static orr_code create_search(void *data, orr_error *err)
{
    const creation *c = data;
    return orr_plan_search_create(c->opt, c->out, err);
}

static void destroy_search(void *data)
{
    const creation *c = data;
    orr_plan_search_destroy(*c->out);
    *c->out = NULL;
}

static bool is_at_limit(const orr_plan_search *s)
{
    return orr_plan_search_is_late(s) || orr_plan_search_is_full(s) || orr_plan_search_is_spent(s);
}

/* plan(model, options, progress) -> (plans, counts, limit) */
static PyObject *plan(PyObject *module, PyObject *args)
{
    PyObject *o, *progress;
    const char *name;
    orr_model m;
    search x = {.is_over = false};
    orr_plan_options opt = {
        .size = sizeof opt, .model = &m, .progress = take_counts, .context = &x};
    orr_error err;
    pthread_condattr_t how;
    (void)module;
    if (!PyArg_ParseTuple(args, "sO!O:plan", &name, &PyDict_Type, &o, &progress))
        return NULL;
    orr_code code = orr_model_load(name, &m, &err);
    if (code)
        return core_raise(code, &err);
    if (!core_llm_options(o, &m, &opt.base) || !take_plan(o, &opt))
        return NULL;
    if (!core_object(o, "software"))
        opt.base.software = NULL; /* that of the machine */
    if (PyErr_Occurred())         /* no memory to look it up */
        return NULL;
    pthread_mutex_init(&x.lock, NULL);
    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    pthread_cond_init(&x.over, &how);
    pthread_condattr_destroy(&how);
    creation made = {.opt = &opt, .out = &x.s};
    code = core_watch(create_search, destroy_search, &made, &err);
    if (!code && (code = run_and_tell(&x, progress)))
        err = x.err;
    const bool at_limit = code == ORR_ESTOP && !PyErr_Occurred() && is_at_limit(x.s);
    if (at_limit)
        code = ORR_OK;
    PyObject *out = code ? NULL : search_result(x.s, at_limit ? err.message : NULL);
    orr_plan_search_destroy(x.s);
    pthread_cond_destroy(&x.over);
    pthread_mutex_destroy(&x.lock);
    return code && !PyErr_Occurred() ? core_raise(code, &err) : out;
}

PyMethodDef core_plan_functions[] = {
    {"plan", plan, METH_VARARGS, "plan(model, options, progress) -> (plans, counts, limit)"},
    {0},
};
