/* SPDX-License-Identifier: Apache-2.0 */
/* core.h - shared by the files of the extension orrery._core.
 *
 * The extension is thin: types for traces, columns and runs, and functions that fill the library's
 * structs from a dictionary of options.  The public interface - names, defaults, documentation - is
 * in Python (python/orrery).  The extension uses the limited API of Python 3.9, so that one file
 * works with 3.9 and later (docs/design/python.md).
 *
 * Lifetimes: objects of the library are kept in capsules with a destructor.  Everything that points
 * into one holds a reference to its capsule, so closing it in Python while another thread uses it
 * frees nothing early. */
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

/* Runs without the GIL.  Ctrl-C ends it with ORR_ESTOP and an exception set.  undo discards the
 * result of a job that succeeded nevertheless. */
typedef orr_code (*core_job)(void *data, orr_error *err);
orr_code core_watch(core_job job, void (*undo)(void *data), void *data, orr_error *err);
bool core_thread_start(pthread_t *thread, void *(*run)(void *), void *data);

/* ---- options: a dictionary with texts as bytes ---- */

/* Each returns a default if the key is missing or None.  A wrong type sets an exception, which the
 * caller checks once, after reading all options. */
const char *core_text(PyObject *options, const char *name);
bool core_flag(PyObject *options, const char *name);
uint64_t core_count(PyObject *options, const char *name);
/* The same, at most `most`; 32 bits. */
uint64_t core_bounded(PyObject *options, const char *name, uint64_t most);
uint32_t core_small(PyObject *options, const char *name);
double core_number(PyObject *options, const char *name, double otherwise);
PyObject *core_object(PyObject *options, const char *name); /* borrowed; NULL: none */
PyObject *core_list(PyObject *options, const char *name);   /* the same for a list */

/* ---- values ---- */

PyObject *core_str(orr_str s); /* bytes that are not UTF-8 become surrogates */
bool core_put(PyObject *dict,
              const char *name,
              PyObject *value); /* takes ownership of value; false: exception */

/* ---- types: created once, by core_*_ready ---- */

extern PyTypeObject *core_trace_type, *core_node_type, *core_column_type, *core_set_type,
    *core_run_type, *core_timeline_type;

bool core_column_ready(PyObject *module);
bool core_trace_ready(PyObject *module);
bool core_set_ready(PyObject *module);
bool core_timeline_ready(PyObject *module);
bool core_run_ready(PyObject *module);

/* Casts a text for a slot, whose field is not const. */
#define CORE_DOC(text) ((void *)(uintptr_t)(text))
PyTypeObject *core_add_type(PyObject *module, PyType_Spec *spec, const char *name);
/* A new object of cls, which must be `base` or a class derived from it; its fields are zero. */
PyObject *core_new(PyObject *cls, PyTypeObject *base);
void core_free(PyObject *self); /* the last step of a tp_dealloc */
/* The tp_new of types that only this extension instantiates. */
PyObject *core_no_new(PyTypeObject *type, PyObject *args, PyObject *words);

/* ---- columns ---- */

typedef enum core_kind { CORE_U8, CORE_I8, CORE_U32, CORE_I64, CORE_U64 } core_kind;
/* `count` numbers, `stride` bytes apart, which live as long as `keep`. */
PyObject *core_column(
    PyObject *keep, const void *data, core_kind kind, Py_ssize_t count, Py_ssize_t stride);
/* The same with memory of its own: the caller fills *data. */
PyObject *core_column_new(core_kind kind, Py_ssize_t count, void **data);

/* ---- traces and sets ---- */

typedef struct core_trace {
    PyObject_HEAD PyObject *keep; /* capsule of the trace, or of its set */
    const orr_trace *t;           /* NULL: not sealed yet */
    orr_trace *building;          /* not sealed: nodes may be added */
    const orr_columns *c;
    uint64_t shift;           /* added to every id */
    struct core_names *names; /* cache of recent texts (core_trace.c); NULL: none yet */
} core_trace;

typedef struct core_set {
    PyObject_HEAD PyObject *keep; /* capsule; NULL: closed */
} core_set;

/* A sealed trace as an object of cls; takes ownership of the trace. */
PyObject *core_trace_take(PyObject *cls, orr_trace *t);
bool core_trace_sealed(core_trace *t);              /* seals it if necessary; false: exception */
PyObject *core_set_take(PyObject *cls, orr_set *s); /* takes ownership of the set, also on
                                                     * failure */
orr_set *core_set_of(PyObject *set,
                     PyObject **keep); /* *keep is a new reference; NULL: exception */
PyObject *core_timeline_take(PyObject *cls, orr_timeline *t);
PyObject *core_attrs_dict(orr_attrs it);

/* ---- functions of the module, by file ---- */

extern PyMethodDef core_trace_functions[], core_set_functions[], core_run_functions[],
    core_make_functions[], core_sweep_functions[], core_plan_functions[];

/* ---- options of stage and plan (core_make.c) ---- */

/* Options that change sizes of the model are applied too.  Machine options are left to the
 * caller. */
bool core_llm_options(PyObject *o, orr_model *m, orr_llm_options *out);
/* Those of orr_llm_option_at that are not the default, as a dictionary. */
PyObject *core_llm_named(const orr_llm_options *l);

/* ---- Python as a model (core_custom.c) ---- */

/* Fills own_network, own_algorithms and own_compute of a configuration.  *keep is a capsule that
 * must outlive the run. */
bool core_custom_take(PyObject *options, orr_run_config *config, PyObject **keep);
void core_custom_enter(PyObject *keep); /* before the library creates the run, on the same thread */
void core_custom_leave(void);
bool core_custom_raised(PyObject *keep); /* true if a callable raised: its exception is set again */

#endif
