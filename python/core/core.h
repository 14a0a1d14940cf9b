/* SPDX-License-Identifier: Apache-2.0 */
/* core.h - what the files of the extension orrery._core share.
 *
 * The extension is thin: types for traces, columns and runs, and functions that fill the library's
 * structs from a dictionary of options.  What a user sees - names, defaults, documents - is Python
 * (python/orrery).  It keeps to the limited API of Python 3.9, so that one file serves 3.9 and
 * later (docs/design/python.md).
 *
 * Lifetimes: what the library gives out is kept in a capsule with its destructor.  Whoever points
 * into it holds a reference to the capsule, so closing something in Python while another thread
 * works with it frees nothing early. */
#ifndef ORRERY_PYTHON_CORE_H
#define ORRERY_PYTHON_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <orrery/error.h>
#include <orrery/lab/llm.h>
#include <orrery/run.h>
#include <orrery/set.h>
#include <orrery/timeline.h>
#include <orrery/trace.h>

#include <pthread.h>

/* ---- errors (core_module.c) ---- */

/* Sets the exception for a code, unless there is one; always NULL. */
PyObject *core_raise(orr_code code, const orr_error *err);
PyObject *core_raise_usage(const char *text);

/* ---- long calls (core_watch.c) ---- */

/* Runs without the GIL.  Ctrl-C ends it: then the answer is ORR_ESTOP, and the exception is set.
 * undo takes back what a job has made that ended well all the same. */
typedef orr_code (*core_job)(void *data, orr_error *err);
orr_code core_watch(core_job job, void (*undo)(void *data), void *data, orr_error *err);
bool core_thread_start(pthread_t *thread, void *(*run)(void *), void *data);

/* ---- options: a dictionary whose texts are bytes ---- */

/* Each gives a default where the dictionary has no such key, or None.  A wrong type sets an
 * exception, which the caller asks for once, after all of them. */
const char *core_text(PyObject *options, const char *name);
bool core_flag(PyObject *options, const char *name);
uint64_t core_count(PyObject *options, const char *name);
/* The same, of at most `most`; 32 bits. */
uint64_t core_bounded(PyObject *options, const char *name, uint64_t most);
uint32_t core_small(PyObject *options, const char *name);
double core_number(PyObject *options, const char *name, double otherwise);
PyObject *core_object(PyObject *options, const char *name); /* borrowed; NULL: none */
PyObject *core_list(PyObject *options, const char *name);   /* the same of a list */

/* ---- values ---- */

PyObject *core_str(orr_str s); /* bytes that are no UTF-8 are kept as surrogates */
bool core_put(PyObject *dict,
              const char *name,
              PyObject *value); /* takes the value; false: exception */

/* ---- types: created once, by core_*_ready ---- */

extern PyTypeObject *core_trace_type, *core_node_type, *core_column_type, *core_set_type,
    *core_run_type, *core_timeline_type;

bool core_column_ready(PyObject *module);
bool core_trace_ready(PyObject *module);
bool core_set_ready(PyObject *module);
bool core_timeline_ready(PyObject *module);
bool core_run_ready(PyObject *module);

/* A text as a slot has it, whose field is not const. */
#define CORE_DOC(text) ((void *)(uintptr_t)(text))
PyTypeObject *core_add_type(PyObject *module, PyType_Spec *spec, const char *name);
/* A new object of cls, which must be `base` or a class derived from it; its fields are zero. */
PyObject *core_new(PyObject *cls, PyTypeObject *base);
void core_free(PyObject *self); /* the end of a tp_dealloc */
/* The tp_new of types that only this extension makes objects of. */
PyObject *core_no_new(PyTypeObject *type, PyObject *args, PyObject *words);

/* ---- columns ---- */

typedef enum core_kind { CORE_U8, CORE_I8, CORE_U32, CORE_I64, CORE_U64 } core_kind;
/* `count` numbers, `stride` bytes apart, that live as long as `keep`. */
PyObject *core_column(
    PyObject *keep, const void *data, core_kind kind, Py_ssize_t count, Py_ssize_t stride);
/* The same of memory of its own: *data is for the caller to fill. */
PyObject *core_column_new(core_kind kind, Py_ssize_t count, void **data);

/* ---- traces and sets ---- */

typedef struct core_trace {
    PyObject_HEAD PyObject *keep; /* capsule that holds the trace, or the set that it is part of */
    const orr_trace *t;           /* NULL: not made yet */
    orr_trace *building;          /* not sealed: may be added to */
    const orr_columns *c;
    uint64_t shift;           /* added to every id */
    struct core_names *names; /* texts that were made lately (core_trace.c); NULL: none yet */
} core_trace;

typedef struct core_set {
    PyObject_HEAD PyObject *keep; /* capsule; NULL: closed */
} core_set;

/* A sealed trace as an object of cls; takes the trace. */
PyObject *core_trace_take(PyObject *cls, orr_trace *t);
bool core_trace_sealed(core_trace *t);              /* seals it when need be; false: exception */
PyObject *core_set_take(PyObject *cls, orr_set *s); /* takes the set, also on failure */
orr_set *core_set_of(PyObject *set,
                     PyObject **keep); /* *keep is a new reference; NULL: exception */
PyObject *core_timeline_take(PyObject *cls, orr_timeline *t);
PyObject *core_attrs_dict(orr_attrs it);

/* ---- functions of the module, by file ---- */

extern PyMethodDef core_trace_functions[], core_set_functions[], core_run_functions[],
    core_make_functions[], core_sweep_functions[], core_plan_functions[];

/* ---- options of stage and plan (core_make.c) ---- */

/* Sizes of the model change too.  What stands for the machine is left to the caller. */
bool core_llm_options(PyObject *o, orr_model *m, orr_llm_options *out);

/* ---- Python as a model (core_custom.c) ---- */

/* Fills own_network, own_algorithms and own_compute of a configuration.  *keep is a capsule that
 * the run needs. */
bool core_custom_take(PyObject *options, orr_run_config *config, PyObject **keep);
void core_custom_enter(
    PyObject *keep); /* before the library makes a run of it, on the same thread */
void core_custom_leave(void);
bool core_custom_raised(PyObject *keep); /* a callable raised: its exception is set again */

#endif
