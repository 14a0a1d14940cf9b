/* SPDX-License-Identifier: Apache-2.0 */
/* core_custom.c - Python callables as models: a network, a compute model, collective algorithms.
 *
 * The library calls C functions without a caller's context, so each kind finds its callable
 * differently: the network through its state, which is created while a thread-local variable set by
 * core_custom_enter holds the callables; an algorithm through its table, the first member of a
 * struct here; the compute model through its context.  The library runs without the GIL, so each
 * call acquires it.  The first exception ends the run and is raised again afterwards. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ALGORITHMS = 32 };

typedef struct algorithm {
    orr_coll_ops ops; /* first member: orr_coll.ops points to it */
    struct custom *of;
    PyObject *call;
} algorithm;

typedef struct custom {
    PyObject *network, *compute, *trace_class;
    PyObject *type, *value, *trace; /* the first exception */
    PyObject *running;     /* generators of unfinished phases, in case the run ends early */
    PyObject *known_trace; /* of the last call of the compute model */
    const orr_trace *known;
    orr_net_ops net;
    orr_compute_ops comp;
    algorithm algorithms[MOST_ALGORITHMS];
    const orr_coll_ops *list[MOST_ALGORITHMS + 1];
} custom;

static __attribute__((tls_model("initial-exec"))) _Thread_local custom *entered;

static custom *custom_of(PyObject *keep)
{
    return keep ? PyCapsule_GetPointer(keep, "orr_custom") : NULL;
}

void core_custom_enter(PyObject *keep)
{
    entered = custom_of(keep);
}

void core_custom_leave(void)
{
    entered = NULL;
}

/* ---- exceptions ---- */

static void keep_exception(custom *c)
{
    if (!c->type)
        PyErr_Fetch(&c->type, &c->value, &c->trace);
    else
        PyErr_Clear();
}

bool core_custom_raised(PyObject *keep)
{
    custom *c = custom_of(keep);
    if (!c || !c->type)
        return false;
    PyErr_Restore(c->type, c->value, c->trace);
    c->type = c->value = c->trace = NULL;
    return true;
}

static orr_code raised(custom *c, const char *what, orr_error *err)
{
    keep_exception(c);
    return orr_fail(err, ORR_EUSAGE, NULL, "%s raised an exception", what);
}

/* A delay in nanoseconds as picoseconds; false: exception. */
static bool delay_of(PyObject *said, const char *what, orr_ps *out)
{
    const double ns = said ? PyFloat_AsDouble(said) : -1;
    if (PyErr_Occurred())
        return false;
    if (!(ns >= 0 && ns < 9e15)) {
        PyErr_Format(PyExc_ValueError, "%s must return nanoseconds, 0 or more; it returned %R",
                     what, said);
        return false;
    }
    *out = (orr_ps)(ns * 1000 + 0.5);
    return true;
}

/* ---- a network: (src, dst, bytes, now_ns) -> nanoseconds until delivery ---- */

static orr_code network_create(const orr_net_config *cfg, void **out, orr_error *err)
{
    (void)cfg;
    *out = entered;
    return entered ? ORR_OK : orr_fail(err, ORR_EBUG, NULL, "a network of Python in another run");
}

static orr_code network_send(void *net, orr_net *n, const orr_message *m, orr_error *err)
{
    custom *c = net;
    orr_ps delay = 0;
    const PyGILState_STATE state = PyGILState_Ensure();
    PyObject *said =
        PyObject_CallFunction(c->network, "IIKd", m->src, m->dst, (unsigned long long)m->size,
                              (double)orr_net_now(n) / 1000);
    const bool ok = delay_of(said, "the network", &delay);
    const orr_code code = ok ? ORR_OK : raised(c, "the network", err);
    Py_XDECREF(said);
    PyGILState_Release(state);
    if (!code)
        orr_net_deliver_after(n, delay, m->token);
    return code;
}

/* ---- a compute model: (node) -> nanoseconds, or None for the default ---- */

/* Nodes belong to a trace of the run's set. */
static PyObject *trace_object(custom *c, const orr_trace *t)
{
    if (c->known == t && c->known_trace)
        return c->known_trace;
    Py_CLEAR(c->known_trace);
    core_trace *made = (core_trace *)core_new(c->trace_class, core_trace_type);
    if (made) {
        made->t = t;
        made->c = orr_trace_columns(t);
    }
    c->known_trace = (PyObject *)made;
    c->known = t;
    return c->known_trace;
}

static orr_code compute_time(
    void *context, const orr_trace *t, uint32_t node, orr_ps *out, orr_error *err)
{
    custom *c = context;
    orr_code code = ORR_OK;
    const PyGILState_STATE state = PyGILState_Ensure();
    PyObject *trace = trace_object(c, t);
    PyObject *item = trace ? PySequence_GetItem(trace, (Py_ssize_t)node) : NULL;
    PyObject *said = item ? PyObject_CallFunctionObjArgs(c->compute, item, NULL) : NULL;
    *out = 0;
    if (!said || (said != Py_None && !delay_of(said, "the compute model", out)))
        code = raised(c, "the compute model", err);
    Py_XDECREF(said);
    Py_XDECREF(item);
    PyGILState_Release(state);
    return code;
}

/* ---- a collective algorithm: a generator that yields the actions of one member ----
 *
 *     ("send", member, bytes), ("receive", member, bytes), ("reduce", bytes)
 *
 * A send returns immediately; a receive and a reduction return when they have finished. */

typedef struct phase {
    PyObject *generator; /* held by custom.running */
    orr_bytes data;
    uint32_t root;
    bool is_inside; /* in advance: a message that has already arrived is received recursively */
    bool is_ready;
    bool has_begun; /* start has returned */
} phase;

static bool phase_setup(orr_coll *c, const orr_coll_phase *p)
{
    phase *at = orr_coll_state(c);
    at->data = p->data;
    at->root = p->root;
    return true;
}

static void phase_end(custom *of, phase *at)
{
    PyObject *key = PyLong_FromVoidPtr(at->generator);
    if (!key || PyDict_DelItem(of->running, key) < 0)
        PyErr_Clear();
    Py_XDECREF(key);
    at->generator = NULL;
}

static void phase_fail(orr_coll *c, custom *of, phase *at, const char *name)
{
    if (PyErr_Occurred())
        keep_exception(of);
    if (at->generator)
        phase_end(of, at);
    orr_coll_fail(c, "the algorithm %s raised an exception", name);
}

typedef enum doing { DOES_MORE, WAITS, FAILS } doing;

static doing do_step(orr_coll *c, PyObject *step)
{
    PyObject *word, *first, *second = NULL;
    if (!PyTuple_Check(step) || !PyArg_UnpackTuple(step, "a step", 2, 3, &word, &first, &second)) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "an algorithm yields tuples, not %R", step);
        return FAILS;
    }
    const bool sends = PyUnicode_Check(word) && PyUnicode_CompareWithASCIIString(word, "send") == 0;
    const bool receives =
        PyUnicode_Check(word) && PyUnicode_CompareWithASCIIString(word, "receive") == 0;
    const bool reduces =
        PyUnicode_Check(word) && PyUnicode_CompareWithASCIIString(word, "reduce") == 0;
    if (!(((sends || receives) && second) || (reduces && !second))) {
        PyErr_Format(PyExc_ValueError,
                     "expected ('send', member, bytes), ('receive', member, bytes) or "
                     "('reduce', bytes), not %R",
                     step);
        return FAILS;
    }
    const unsigned long long a = PyLong_AsUnsignedLongLong(first);
    const unsigned long long size = second ? PyLong_AsUnsignedLongLong(second) : a;
    if (PyErr_Occurred())
        return FAILS;
    if (!reduces && (a >= c->count || a == c->index)) {
        PyErr_Format(PyExc_ValueError, "member %u of %u cannot %S with member %llu", c->index,
                     c->count, word, a);
        return FAILS;
    }
    if (sends)
        orr_coll_send(c, (uint32_t)a, size);
    else if (receives)
        orr_coll_receive(c, (uint32_t)a, size);
    else
        orr_coll_charge(c, size, ORR_COLL_REDUCED);
    return sends ? DOES_MORE : WAITS;
}

/* With the GIL.  c is invalid afterwards if the generator has ended. */
static void advance(orr_coll *c)
{
    algorithm *a = (algorithm *)(uintptr_t)c->ops;
    phase *at = orr_coll_state(c);
    if (at->is_inside) {
        at->is_ready = true;
        return;
    }
    at->is_inside = true;
    bool is_waiting = false;
    for (doing d = DOES_MORE; d == DOES_MORE;) {
        PyObject *step = PyIter_Next(at->generator);
        if (!step && !PyErr_Occurred()) {
            if (!at->has_begun) /* a phase cannot end in start: end it one endpoint delay later */
                break;
            phase_end(a->of, at);
            orr_coll_done(c);
            return;
        }
        at->is_ready = false;
        d = step ? do_step(c, step) : FAILS;
        Py_XDECREF(step);
        if (d == FAILS) {
            phase_fail(c, a->of, at, c->ops->name);
            return;
        }
        if (d == WAITS && at->is_ready)
            d = DOES_MORE;
        is_waiting = d == WAITS;
    }
    at->is_inside = false;
    at->has_begun = true;
    if (!is_waiting)
        orr_coll_charge(c, 0, 0);
}

static void phase_start(orr_coll *c)
{
    algorithm *a = (algorithm *)(uintptr_t)c->ops;
    phase *at = orr_coll_state(c);
    const PyGILState_STATE state = PyGILState_Ensure();
    PyObject *made = PyObject_CallFunction(a->call, "sIIKI", orr_collective_name(c->kind), c->index,
                                           c->count, (unsigned long long)at->data, at->root);
    PyObject *generator = made ? PyObject_GetIter(made) : NULL;
    PyObject *key = generator ? PyLong_FromVoidPtr(generator) : NULL;
    Py_XDECREF(made);
    if (!key || PyDict_SetItem(a->of->running, key, generator) < 0) {
        phase_fail(c, a->of, at, c->ops->name);
    } else {
        at->generator = generator;
        advance(c);
    }
    Py_XDECREF(key);
    Py_XDECREF(generator);
    PyGILState_Release(state);
}

static void phase_timer(orr_coll *c)
{
    const PyGILState_STATE state = PyGILState_Ensure();
    advance(c);
    PyGILState_Release(state);
}

static void phase_received(orr_coll *c, orr_bytes size)
{
    (void)size;
    phase_timer(c);
}

/* ---- reading the callables ---- */

static void custom_free(PyObject *capsule)
{
    custom *c = custom_of(capsule);
    Py_XDECREF(c->network);
    Py_XDECREF(c->compute);
    Py_XDECREF(c->trace_class);
    Py_XDECREF(c->type);
    Py_XDECREF(c->value);
    Py_XDECREF(c->trace);
    Py_XDECREF(c->running);
    Py_XDECREF(c->known_trace);
    for (int i = 0; i < MOST_ALGORITHMS; i++)
        Py_XDECREF(c->algorithms[i].call);
    PyMem_Free(c);
}

static PyObject *held(PyObject *o)
{
    Py_XINCREF(o);
    return o;
}

/* Either the rooted collectives or the others (collective.h). */
static uint32_t kinds_of(bool is_rooted)
{
    const uint32_t rooted = ORR_COLL_BIT(ORR_COLL_BROADCAST) | ORR_COLL_BIT(ORR_COLL_REDUCE) |
                            ORR_COLL_BIT(ORR_COLL_GATHER) | ORR_COLL_BIT(ORR_COLL_SCATTER) |
                            ORR_COLL_BIT(ORR_COLL_BARRIER);
    const uint32_t others = ORR_COLL_BIT(ORR_COLL_ALL_REDUCE) | ORR_COLL_BIT(ORR_COLL_ALL_GATHER) |
                            ORR_COLL_BIT(ORR_COLL_REDUCE_SCATTER) |
                            ORR_COLL_BIT(ORR_COLL_ALL_TO_ALL);
    return is_rooted ? rooted : others;
}

static bool is_function(PyObject *o, const char *what)
{
    if (!o || PyCallable_Check(o))
        return true;
    PyErr_Format(PyExc_TypeError, "%s: expected a function", what);
    return false;
}

static bool take_collectives(custom *c, PyObject *list, orr_run_config *config)
{
    const Py_ssize_t n = PyList_Size(list);
    if (n > MOST_ALGORITHMS) {
        core_raise_usage("more than 16 collective algorithms"); /* each may become two */
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        algorithm *a = &c->algorithms[i];
        PyObject *name, *call;
        int is_rooted;
        PyObject *row = PyList_GetItem(list, i);
        if (!PyTuple_Check(row)) {
            PyErr_SetString(PyExc_TypeError,
                            "own_collectives: expected (name, function, is_rooted)");
            return false;
        }
        if (!PyArg_ParseTuple(row, "SOp", &name, &call, &is_rooted))
            return false;
        if (!is_function(call, "collectives"))
            return false;
        a->of = c;
        a->call = held(call);
        a->ops = (orr_coll_ops){.name = PyBytes_AsString(name),
                                .label = PyBytes_AsString(name),
                                .help = "an algorithm in Python",
                                .kinds = kinds_of(is_rooted != 0),
                                .state_size = sizeof(phase),
                                .setup = phase_setup,
                                .start = phase_start,
                                .received = phase_received,
                                .timer = phase_timer};
        c->list[i] = &a->ops;
    }
    config->own_algorithms = c->list;
    return true;
}

bool core_custom_take(PyObject *options, orr_run_config *config, PyObject **keep)
{
    PyObject *network = core_object(options, "own_network");
    PyObject *compute = core_object(options, "own_compute");
    PyObject *collectives = core_list(options, "own_collectives");
    *keep = NULL;
    if (PyErr_Occurred() || !is_function(network, "network") || !is_function(compute, "compute"))
        return false;
    if (!network && !compute && !collectives)
        return true;
    custom *c = PyMem_Calloc(1, sizeof *c);
    if (!c || !(*keep = PyCapsule_New(c, "orr_custom", custom_free))) {
        PyMem_Free(c);
        PyErr_NoMemory();
        return false;
    }
    c->network = held(network);
    c->compute = held(compute);
    c->trace_class = held(core_object(options, "trace_class"));
    c->running = PyDict_New();
    if (!c->running)
        return false;
    c->net = (orr_net_ops){.name = "python",
                           .help = "a network in Python",
                           .create = network_create,
                           .send = network_send};
    c->comp = (orr_compute_ops){.time = compute_time, .context = c};
    config->own_network = network ? &c->net : NULL;
    config->own_compute = compute ? &c->comp : NULL;
    return !collectives || take_collectives(c, collectives, config);
}
