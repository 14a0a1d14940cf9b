/* SPDX-License-Identifier: Apache-2.0 */
/* core_run.c - a run from its configuration to its results.
 *
 * The GIL is released during the run.  A helper thread stops the run ten times a second; the
 * calling thread then checks for Ctrl-C, reports progress, and continues the run.  So interrupts
 * need no signal handler, and progress needs no second thread inside the run, which only one thread
 * may use at a time. */
#include "core.h"

#include <orrery/lab/chip.h>
#include <orrery/lab/critical_path.h>
#include <orrery/lab/explain.h>
#include <orrery/lab/goal.h>
#include <orrery/lab/llm.h>
#include <orrery/lab/machine.h>
#include <orrery/lab/software.h>
#include <orrery/lab/stop.h>
#include <orrery/report.h>
#include <orrery/version.h>

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

PyTypeObject *core_run_type;

typedef struct core_run {
    PyObject_HEAD orr_run *run;
    PyObject *options, *set, *custom; /* objects that the run points into */
    orr_goal *goal;
    bool is_busy; /* a thread is using it */
} core_run;

/* ---- stopping ten times a second ---- */

typedef struct ticker {
    orr_run *run;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t over;
    double limit_s; /* 0: none */
    bool is_over, is_running;
    atomic_bool has_asked, is_late;
} ticker;

enum { TICK_NS = 100000000 };

static void *tick(void *data)
{
    ticker *t = data;
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    pthread_mutex_lock(&t->lock);
    for (uint64_t ticks = 1; !t->is_over; ticks++) {
        at.tv_nsec += TICK_NS;
        at.tv_sec += at.tv_nsec / 1000000000;
        at.tv_nsec %= 1000000000;
        if (pthread_cond_timedwait(&t->over, &t->lock, &at) != ETIMEDOUT || t->is_over)
            continue;
        if (t->limit_s > 0 && (double)ticks * 1e-9 * TICK_NS >= t->limit_s)
            atomic_store(&t->is_late, true);
        atomic_store(&t->has_asked, true);
        orr_run_stop(t->run);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static void ticker_start(ticker *t, orr_run *run, double limit_s)
{
    pthread_condattr_t how;
    *t = (ticker){.run = run, .limit_s = limit_s};
    pthread_mutex_init(&t->lock, NULL);
    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    pthread_cond_init(&t->over, &how);
    pthread_condattr_destroy(&how);
    t->is_running = core_thread_start(&t->thread, tick, t);
}

static void ticker_stop(ticker *t)
{
    pthread_mutex_lock(&t->lock);
    t->is_over = true;
    pthread_cond_signal(&t->over);
    pthread_mutex_unlock(&t->lock);
    if (t->is_running)
        pthread_join(t->thread, NULL);
    pthread_cond_destroy(&t->over);
    pthread_mutex_destroy(&t->lock);
}

/* With the GIL.  False: a signal handler or the callback raised. */
static bool look_around(orr_run *run, PyObject *progress)
{
    if (PyErr_CheckSignals())
        return false;
    if (!progress)
        return true;
    PyObject *said =
        PyObject_CallFunction(progress, "LIIK", (long long)orr_run_time(run), orr_run_finished(run),
                              orr_run_ranks(run), (unsigned long long)orr_run_events(run));
    Py_XDECREF(said);
    return said != NULL;
}

/* Without the GIL.  ORR_ESTOP: an exception is set, or a limit is reached, as `err` says.  The run
 * checks its memory and event limits itself: if it stopped unasked, it reached one of them.  If a
 * stop coincides with a limit, the run continues and hits the limit again. */
static orr_code run_watched(orr_run *run, PyObject *progress, double limit_s, orr_error *err)
{
    ticker t;
    orr_code code;
    bool goes_on = true;
    ticker_start(&t, run, limit_s);
    do {
        code = orr_run_to_end(run, err);
        if (code == ORR_ESTOP) {
            const PyGILState_STATE state = PyGILState_Ensure();
            goes_on = look_around(run, progress) && atomic_exchange(&t.has_asked, false);
            PyGILState_Release(state);
        }
        if (code == ORR_ESTOP && goes_on && atomic_load(&t.is_late)) {
            code = orr_because(err, ORR_ESTOP, "the limit of %.6g s is reached", limit_s);
            goes_on = false;
        }
    } while (code == ORR_ESTOP && goes_on && !orr_stop_asked());
    ticker_stop(&t);
    return code;
}

/* Called by orr_run_explain to run its experiments. */
static orr_code run_experiment(orr_run *run, orr_error *err)
{
    return run_watched(run, NULL, 0, err);
}

/* ---- life ---- */

static void run_dealloc(PyObject *self)
{
    core_run *r = (core_run *)self;
    orr_run_destroy(r->run);
    orr_goal_free(r->goal);
    Py_XDECREF(r->options);
    Py_XDECREF(r->set);
    Py_XDECREF(r->custom);
    core_free(self);
}

static bool take_texts(PyObject *o, orr_run_config *c)
{
    const struct {
        const char *name, **to;
    } rows[] = {
        {"traces", &c->traces},
        {"flows", &c->flows},
        {"machine", &c->machine},
        {"system", &c->system},
        {"topology", &c->topology},
        {"network", &c->network},
        {"memory", &c->memory},
        {"groups", &c->groups},
        {"plans", &c->plans},
        {"ranks_file", &c->ranks_file},
        {"hardware", &c->hardware},
        {"software", &c->software},
        {"logical", &c->logical},
        {"packet_config", &c->packet_config},
        {"packet_keys", &c->packet_keys},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        *rows[i].to = core_text(o, rows[i].name);
    return !PyErr_Occurred();
}

static bool take_fold(PyObject *o, orr_run_config *c)
{
    const char *how = core_text(o, "fold");
    c->fold = !how || strcmp(how, "auto") == 0 ? ORR_RUN_FOLD_AUTO
              : strcmp(how, "off") == 0        ? ORR_RUN_FOLD_OFF
                                               : ORR_RUN_FOLD_VERIFY;
    if (!how || c->fold != ORR_RUN_FOLD_VERIFY || strcmp(how, "verify") == 0)
        return true;
    core_raise_usage("fold is \"auto\", \"off\" or \"verify\"");
    return false;
}

static bool take_options(PyObject *o, orr_run_config *c)
{
    if (!take_texts(o, c) || !take_fold(o, c))
        return false;
    c->program = "orrery " ORR_VERSION;
    c->is_ideal = core_flag(o, "ideal");
    c->rendezvous = core_flag(o, "rendezvous");
    c->queues_per_dim = core_small(o, "queues");
    c->threads = core_small(o, "threads");
    c->steps = core_small(o, "steps");
    c->path_steps = core_small(o, "path_steps");
    c->records = core_small(o, "records");
    c->max_seconds = core_number(o, "max_seconds", 0);
    c->max_bytes = core_count(o, "max_bytes");
    c->max_events = core_count(o, "max_events");
    c->change.compute = core_number(o, "compute_scale", 0);
    c->change.memory = core_number(o, "memory_scale", 0);
    c->change.bandwidth = core_number(o, "bandwidth_scale", 0);
    c->change.latency = core_number(o, "latency_scale", 0);
    return !PyErr_Occurred();
}

/* A run with its own system uses no chip, so name the machine's. */
static void take_chip(const orr_machine *m, orr_run_config *c)
{
    const orr_chip *chip = c->hardware || c->is_ideal ? NULL : orr_chip_find(m->chip);
    const orr_software *software = m->software[0] ? orr_software_find(m->software) : NULL;
    if (chip)
        c->hardware = chip->name;
    if (chip && !c->software && software)
        c->software = software->name;
}

/* Algorithms that the caller selects by name go into the lists of the system. */
static bool take_algorithms(PyObject *o, orr_run_config *c, orr_system *s)
{
    static const struct {
        const char *name;
        size_t offset;
    } rows[] = {{"all_reduce", offsetof(orr_system, all_reduce)},
                {"all_gather", offsetof(orr_system, all_gather)},
                {"reduce_scatter", offsetof(orr_system, reduce_scatter)},
                {"all_to_all", offsetof(orr_system, all_to_all)},
                {"broadcast", offsetof(orr_system, broadcast)},
                {"reduce", offsetof(orr_system, reduce)},
                {"gather", offsetof(orr_system, gather)},
                {"scatter", offsetof(orr_system, scatter)},
                {"barrier", offsetof(orr_system, barrier)}};
    PyObject *names = core_object(o, "algorithms");
    orr_machine m;
    orr_error err;
    if (!names)
        return true;
    if (!PyDict_Check(names)) {
        PyErr_SetString(PyExc_TypeError, "algorithms: expected a dictionary");
        return false;
    }
    *s = (orr_system){.size = sizeof *s};
    if (c->machine) {
        orr_code code = orr_machine_for(c->machine, orr_set_rank_count(c->set), &m, &err);
        if (!code)
            code = orr_machine_system(&m, s, &err);
        if (code) {
            core_raise(code, &err);
            return false;
        }
        take_chip(&m, c);
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char **list = (const char **)(void *)((char *)s + rows[i].offset);
        PyObject *given = core_list(names, rows[i].name);
        const Py_ssize_t n = given ? PyList_Size(given) : 0;
        for (Py_ssize_t k = 0; k < n && k < ORR_NET_DIMS; k++)
            list[k] = PyBytes_AsString(PyList_GetItem(given, k));
        if (n > 0 && n <= ORR_NET_DIMS)
            list[n] = NULL;
    }
    c->own_system = s;
    return !PyErr_Occurred();
}

static bool take_loggops(PyObject *o, orr_run_config *c, orr_loggops_model *model)
{
    const char *text = core_text(o, "loggops");
    orr_error err;
    c->is_flows = core_flag(o, "is_flows");
    c->noise = core_text(o, "noise");
    if (PyErr_Occurred() || !core_flag(o, "is_schedule"))
        return !PyErr_Occurred();
    const orr_code code = orr_loggops_parse(text ? text : "default", model, &err);
    c->loggops = model;
    if (code)
        core_raise(code, &err);
    return !code;
}

/* Arguments of a run, for the functions below. */
typedef struct asking {
    core_run *r;
    orr_run_config *config;
    bool is_schedule;
    const char *goal; /* file of a schedule; NULL: derived from the traces */
    const char *what, *path;
    const orr_report_options *about;
    const orr_explain_options *how;
    bool is_json;
    orr_timeline *timeline;
    orr_critical_path *critical;
} asking;

/* LogGOPS runs schedules: from a file, or the messages of the traces on the default network, as in
 * the program. */
static orr_code load_schedule(const asking *a, orr_error *err)
{
    const orr_run_config *c = a->config;
    orr_goal_remarks remarks;
    orr_run *run = NULL;
    if (a->goal)
        return orr_goal_read(a->goal, &remarks, &a->r->goal, err);
    const orr_run_config plain = {.size = sizeof plain,
                                  .set = c->set,
                                  .system = c->system,
                                  .topology = c->topology,
                                  .groups = c->groups,
                                  .memory = c->memory,
                                  .network = "unaware",
                                  .records = ORR_RUN_SCHEDULE};
    orr_code code = orr_run_create(&plain, &run, err);
    if (!code)
        code = run_watched(run, NULL, 0, err);
    if (!code)
        code = orr_run_goal(run, &a->r->goal, err);
    orr_run_destroy(run);
    return code;
}

static orr_code create_schedule(const asking *a, orr_error *err)
{
    orr_run_config *c = a->config;
    const orr_code code = load_schedule(a, err);
    if (code)
        return code;
    const char *name = a->goal ? a->goal : c->traces ? c->traces : "traces";
    const orr_run_source source = {a->goal ? "schedule" : "traces", {name, strlen(name)}};
    c->source_count = a->goal || c->traces ? 1 : 0;
    c->schedule = a->r->goal;
    c->name = name;
    c->set = NULL;
    c->traces = c->network = NULL;
    c->sources = &source;
    return orr_run_create(c, &a->r->run, err);
}

static orr_code do_create(void *data, orr_error *err)
{
    const asking *a = data;
    core_custom_enter(a->r->custom);
    const orr_code code =
        a->is_schedule ? create_schedule(a, err) : orr_run_create(a->config, &a->r->run, err);
    core_custom_leave();
    return code;
}

static orr_code create_and_run(core_run *r,
                               orr_run_config *config,
                               PyObject *progress,
                               orr_error *err)
{
    asking a = {.r = r,
                .config = config,
                .is_schedule = core_flag(r->options, "is_schedule"),
                .goal = core_text(r->options, "goal")};
    if (PyErr_Occurred())
        return ORR_ENOMEM;
    orr_code code = core_watch(do_create, NULL, &a, err);
    if (!code && !look_around(r->run, progress))
        code = ORR_ESTOP;
    core_custom_enter(r->custom);
    if (!code) {
        Py_BEGIN_ALLOW_THREADS code = run_watched(r->run, progress, config->max_seconds, err);
        Py_END_ALLOW_THREADS
    }
    core_custom_leave();
    return code;
}

/* The exception, with the explanation of a stall or with the results of a run that reached a
 * limit. */
static void raise_end(core_run *r, orr_error *err)
{
    PyObject *lines = PyList_New(0), *type, *value, *trace;
    const char *line;
    core_raise(err->code, err);
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    for (size_t i = 0; lines && r->run && (line = orr_run_stall_line(r->run, i)); i++) {
        PyObject *s = PyUnicode_FromString(line);
        if (!s || PyList_Append(lines, s) < 0)
            Py_CLEAR(lines);
        Py_XDECREF(s);
    }
    if (lines && value && PyList_Size(lines) > 0)
        PyObject_SetAttrString(value, "stall", lines);
    if (value && err->code == ORR_ESTOP)
        PyObject_SetAttrString(value, "result", (PyObject *)r);
    PyErr_Clear();
    Py_XDECREF(lines);
    PyErr_Restore(type, value, trace);
}

/* run(cls, options, progress) -> a finished run */
static PyObject *run_run(PyObject *module, PyObject *args)
{
    PyObject *cls, *options, *progress;
    orr_run_config config = {.size = sizeof config};
    orr_system system;
    orr_loggops_model loggops;
    orr_error err = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "OO!O:run", &cls, &PyDict_Type, &options, &progress))
        return NULL;
    core_run *r = (core_run *)core_new(cls, core_run_type);
    if (!r)
        return NULL;
    Py_INCREF(options);
    r->options = options;
    PyObject *set = core_object(options, "set");
    config.set = set ? core_set_of(set, &r->set) : NULL;
    if ((set && !config.set) || !take_options(options, &config) ||
        !take_algorithms(options, &config, &system) || !take_loggops(options, &config, &loggops) ||
        !core_custom_take(options, &config, &r->custom) || PyErr_Occurred()) {
        Py_DECREF(r);
        return NULL;
    }
    const orr_code code = create_and_run(r, &config, progress == Py_None ? NULL : progress, &err);
    if (!code)
        return (PyObject *)r;
    if (!PyErr_Occurred() && !core_custom_raised(r->custom))
        raise_end(r, &err);
    Py_DECREF(r);
    return NULL;
}

/* ---- results ---- */

static orr_run *idle(core_run *r)
{
    if (r->run && !r->is_busy)
        return r->run;
    core_raise_usage(r->run ? "another thread works with this result" : "this is no result");
    return NULL;
}

/* Only one thread at a time may use a run. */
static orr_code ask(asking *a, core_job job, void (*undo)(void *), orr_error *err)
{
    a->r->is_busy = true;
    const orr_code code = core_watch(job, undo, a, err);
    a->r->is_busy = false;
    return code;
}

static PyObject *result_figures(PyObject *self, PyObject *unused)
{
    orr_run *run = idle((core_run *)self);
    (void)unused;
    if (!run)
        return NULL;
    const orr_run_steps steps = orr_run_steps_of(run);
    return Py_BuildValue(
        "{s:L,s:I,s:I,s:I,s:s,s:K,s:K,s:d,s:d,s:I,s:I,s:L,s:L,s:L}", "time_ps",
        (long long)orr_run_time(run), "ranks", orr_run_ranks(run), "finished",
        orr_run_finished(run), "ranks_simulated", orr_run_ranks_simulated(run), "fold_why",
        orr_run_fold_why(run), "events", (unsigned long long)orr_run_events(run), "messages",
        (unsigned long long)orr_run_messages(run), "seconds", orr_run_seconds(run), "peak_flops",
        orr_run_peak_flops(run), "steps", steps.asked, "steps_simulated", steps.simulated,
        "all_steps_ps", (long long)steps.total, "first_step_ps", (long long)steps.first,
        "last_step_ps", (long long)steps.last);
}

static PyObject *result_ranks(PyObject *self, PyObject *unused)
{
    static const struct {
        const char *name;
        size_t offset;
    } rows[] = {{"finished_ps", offsetof(orr_run_rank, finished_at)},
                {"wall_ps", offsetof(orr_run_rank, wall)},
                {"gpu_ps", offsetof(orr_run_rank, gpu_time)},
                {"comm_ps", offsetof(orr_run_rank, comm_time)},
                {"cpu_ps", offsetof(orr_run_rank, cpu_time)},
                {"memory_ps", offsetof(orr_run_rank, memory_time)},
                {"gpu_total_ps", offsetof(orr_run_rank, gpu_total)},
                {"peak_memory_bytes", offsetof(orr_run_rank, peak_memory)}};
    enum { ROWS = sizeof rows / sizeof *rows };
    orr_run *run = idle((core_run *)self);
    void *room[ROWS] = {0};
    (void)unused;
    if (!run)
        return NULL;
    const uint32_t count = orr_run_ranks(run);
    PyObject *d = PyDict_New();
    for (int i = 0; d && i < ROWS; i++)
        if (!core_put(d, rows[i].name, core_column_new(CORE_I64, (Py_ssize_t)count, &room[i])))
            Py_CLEAR(d);
    for (uint32_t r = 0; d && r < count; r++) {
        const orr_run_rank *x = orr_run_rank_at(run, r);
        for (int i = 0; i < ROWS; i++)
            memcpy((char *)room[i] + 8 * (size_t)r, (const char *)x + rows[i].offset, 8);
    }
    return d;
}

static orr_code do_timeline(void *data, orr_error *err)
{
    asking *a = data;
    return orr_run_timeline(a->r->run, &a->timeline, err);
}

static void undo_timeline(void *data)
{
    orr_timeline_destroy(((asking *)data)->timeline);
}

static PyObject *result_timeline(PyObject *self, PyObject *cls)
{
    core_run *r = (core_run *)self;
    asking a = {.r = r};
    orr_error err;
    if (!idle(r))
        return NULL;
    const orr_code code = ask(&a, do_timeline, undo_timeline, &err);
    return code ? core_raise(code, &err) : core_timeline_take(cls, a.timeline);
}

static PyObject *step_dict(const orr_path_step *s)
{
    const char *held = orr_path_held_name((orr_path_held)s->held);
    return Py_BuildValue(
        "{s:K,s:K,s:I,s:s,s:K,s:z,s:z,s:K,s:s,s:z,s:N}", "from_ns", (unsigned long long)s->from,
        "to_ns", (unsigned long long)s->to, "rank", s->rank, "kind",
        orr_span_kind_name((orr_span_kind)s->kind), "node", (unsigned long long)s->node, "name",
        s->name, "what", s->what, "size", (unsigned long long)s->size, "after",
        orr_path_after_name((orr_path_after)s->after), "held_by", held, "held_rank",
        held ? PyLong_FromUnsignedLong(s->held_rank) : Py_BuildValue(""));
}

static PyObject *path_dict(const orr_critical_path *p)
{
    PyObject *steps = PyList_New(0), *shares = PyList_New(0);
    bool ok = steps && shares;
    for (size_t i = 0; ok && i < p->step_count; i++) {
        PyObject *s = step_dict(&p->steps[i]);
        ok = s && PyList_Append(steps, s) == 0;
        Py_XDECREF(s);
    }
    for (size_t i = 0; ok && i < p->share_count; i++) {
        PyObject *s = Py_BuildValue("{s:s,s:K,s:n}", "what", p->shares[i].what, "time_ns",
                                    (unsigned long long)p->shares[i].time, "steps",
                                    (Py_ssize_t)p->shares[i].steps);
        ok = s && PyList_Append(shares, s) == 0;
        Py_XDECREF(s);
    }
    PyObject *d = ok ? Py_BuildValue("{s:O,s:O,s:I,s:K}", "steps", steps, "shares", shares, "ranks",
                                     p->ranks, "total_ns", (unsigned long long)p->total)
                     : NULL;
    Py_XDECREF(steps);
    Py_XDECREF(shares);
    return d;
}

static orr_code do_path(void *data, orr_error *err)
{
    asking *a = data;
    return orr_run_critical_path(a->r->run, &a->critical, err);
}

static void undo_path(void *data)
{
    orr_critical_path_destroy(((asking *)data)->critical);
}

static PyObject *result_path(PyObject *self, PyObject *unused)
{
    core_run *r = (core_run *)self;
    asking a = {.r = r};
    orr_error err;
    (void)unused;
    if (!idle(r))
        return NULL;
    const orr_code code = ask(&a, do_path, undo_path, &err);
    if (code)
        return core_raise(code, &err);
    PyObject *d = path_dict(a.critical);
    orr_critical_path_destroy(a.critical);
    return d;
}

static void visit_link(void *context, const orr_net_link *l)
{
    PyObject *list = context;
    PyObject *d = PyErr_Occurred() ? NULL
                                   : Py_BuildValue("{s:s,s:K,s:K,s:K,s:K,s:d}", "name", l->name,
                                                   "messages", (unsigned long long)l->messages,
                                                   "bytes", (unsigned long long)l->bytes, "busy_ns",
                                                   (unsigned long long)l->busy_ns, "max_queue",
                                                   (unsigned long long)l->max_queue,
                                                   "bandwidth_bytes_per_ns", l->bandwidth);
    if (d)
        PyList_Append(list, d);
    Py_XDECREF(d);
}

static PyObject *result_links(PyObject *self, PyObject *unused)
{
    orr_run *run = idle((core_run *)self);
    PyObject *list = run ? PyList_New(0) : NULL;
    (void)unused;
    if (list)
        orr_run_visit_links(run, visit_link, list);
    if (PyErr_Occurred())
        Py_CLEAR(list);
    return list;
}

static PyObject *result_dimensions(PyObject *self, PyObject *unused)
{
    orr_run *run = idle((core_run *)self);
    PyObject *list = run ? PyList_New(0) : NULL;
    (void)unused;
    for (uint32_t i = 0; list && i < orr_run_dimensions(run); i++) {
        const orr_run_dimension *x = orr_run_dimension_at(run, i);
        PyObject *d = Py_BuildValue("{s:z,s:I,s:d,s:d,s:K,s:K}", "shape", x->shape, "ranks",
                                    x->ranks, "bandwidth_bytes_per_s", x->bandwidth, "latency_ns",
                                    x->latency_ns, "messages", (unsigned long long)x->messages,
                                    "bytes", (unsigned long long)x->bytes);
        if (!d || PyList_Append(list, d) < 0)
            Py_CLEAR(list);
        Py_XDECREF(d);
    }
    return list;
}

static PyObject *result_warnings(PyObject *self, PyObject *unused)
{
    orr_run *run = idle((core_run *)self);
    PyObject *list = run ? PyList_New(0) : NULL;
    const char *text;
    (void)unused;
    for (size_t i = 0; list && (text = orr_run_warning(run, i)); i++) {
        PyObject *s = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
        if (!s || PyList_Append(list, s) < 0)
            Py_CLEAR(list);
        Py_XDECREF(s);
    }
    return list;
}

static orr_code do_write(void *data, orr_error *err)
{
    const asking *a = data;
    return orr_run_write(a->r->run, a->what, a->path, err);
}

static PyObject *result_write(PyObject *self, PyObject *args)
{
    core_run *r = (core_run *)self;
    asking a = {.r = r};
    PyObject *path;
    orr_error err;
    if (!idle(r) || !PyArg_ParseTuple(args, "sO&:write", &a.what, PyUnicode_FSConverter, &path))
        return NULL;
    a.path = PyBytes_AsString(path);
    const orr_code code = ask(&a, do_write, NULL, &err);
    Py_DECREF(path);
    if (code)
        return core_raise(code, &err);
    Py_RETURN_NONE;
}

static orr_code do_report(void *data, orr_error *err)
{
    const asking *a = data;
    orr_report *page = NULL;
    orr_explanation *e = NULL;
    core_custom_enter(a->r->custom);
    orr_code code = orr_report_create(a->about, &page, err);
    if (!code)
        code = orr_run_explain(a->r->run, a->how, &e, err);
    if (!code)
        code = orr_report_add(page, orr_explanation_run(e), err);
    if (!code)
        code = a->is_json ? orr_report_write_json(page, a->path, err)
                          : orr_report_write(page, a->path, err);
    orr_explanation_destroy(e);
    orr_report_destroy(page);
    core_custom_leave();
    return code;
}

/* _report(path, title, what_if, is_json, ranks) */
static PyObject *result_report(PyObject *self, PyObject *args)
{
    core_run *r = (core_run *)self;
    const char *title, *ranks;
    PyObject *path;
    int what_if, is_json;
    orr_error err = {0};
    if (!idle(r) || !PyArg_ParseTuple(args, "O&zipz:_report", PyUnicode_FSConverter, &path, &title,
                                      &what_if, &is_json, &ranks))
        return NULL;
    const orr_report_options about = {
        .size = sizeof about, .title = title, .program = "orrery " ORR_VERSION};
    const orr_explain_options how = {.name = title,
                                     .what_if = (orr_what_if)what_if,
                                     .ranks_shown = ranks,
                                     .run = run_experiment,
                                     .variant = orr_llm_variant};
    asking a = {.r = r,
                .about = &about,
                .how = &how,
                .path = PyBytes_AsString(path),
                .is_json = is_json != 0};
    const orr_code code = ask(&a, do_report, NULL, &err);
    Py_DECREF(path);
    if (!code && !PyErr_Occurred())
        Py_RETURN_NONE;
    return PyErr_Occurred() || core_custom_raised(r->custom) ? NULL : core_raise(code, &err);
}

static PyMethodDef methods[] = {
    {"_figures", result_figures, METH_NOARGS, "Time, ranks, events, messages."},
    {"_ranks", result_ranks, METH_NOARGS, "{name: Column}, one row per rank"},
    {"_timeline", result_timeline, METH_O, "_timeline(cls)"},
    {"_critical_path", result_path, METH_NOARGS, "{steps, shares, ranks, total_ns}"},
    {"_links", result_links, METH_NOARGS, "[{name, messages, bytes, ...}]"},
    {"_dimensions", result_dimensions, METH_NOARGS, "[{shape, ranks, ...}]"},
    {"_warnings", result_warnings, METH_NOARGS, "What is odd in the inputs but not wrong."},
    {"_write", result_write, METH_VARARGS, "_write(what, path)"},
    {"_report", result_report, METH_VARARGS, "_report(path, title, what_if, is_json, ranks)"},
    {0},
};

PyMethodDef core_run_functions[] = {
    {"run", run_run, METH_VARARGS, "run(cls, options, progress)"},
    {0},
};

bool core_run_ready(PyObject *module)
{
    static PyType_Slot slots[] = {{Py_tp_dealloc, run_dealloc},
                                  {Py_tp_methods, methods},
                                  {Py_tp_doc, CORE_DOC("A finished run.")},
                                  {0, NULL}};
    static PyType_Spec spec = {"orrery._core.Run", sizeof(core_run), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    core_run_type = core_add_type(module, &spec, "Run");
    return core_run_type != NULL && PyModule_AddIntConstant(module, "SPANS", ORR_RUN_SPANS) == 0 &&
           PyModule_AddIntConstant(module, "PHASES", ORR_RUN_PHASES) == 0 &&
           PyModule_AddIntConstant(module, "ISSUES", ORR_RUN_ISSUES) == 0 &&
           PyModule_AddIntConstant(module, "LINKS", ORR_RUN_LINKS) == 0 &&
           PyModule_AddIntConstant(module, "HISTORY", ORR_RUN_HISTORY) == 0;
}
