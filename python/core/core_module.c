/* SPDX-License-Identifier: Apache-2.0 */
/* core_module.c - the module orrery._core: errors, options, creation of types. */
#include "core.h"

#include <orrery/version.h>

#include <string.h>

static PyObject *error_class; /* orrery.Error, defined in Python */

/* ---- errors ---- */

static const char *code_name(orr_code code)
{
    static const char *const names[] = {"ok", "end",    "usage", "input",
                                        "io", "memory", "bug",   "stopped"};
    return (unsigned)code < sizeof names / sizeof *names ? names[code] : "bug";
}

PyObject *core_raise(orr_code code, const orr_error *err)
{
    char text[600];
    if (PyErr_Occurred())
        return NULL;
    if (code == ORR_ENOMEM)
        return PyErr_NoMemory();
    orr_error_text(err, text, sizeof text);
    const orr_where *w = &err->where;
    PyObject *path = PyUnicode_DecodeFSDefault(w->path);
    PyObject *whole = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    PyObject *message =
        PyUnicode_DecodeUTF8(err->message, (Py_ssize_t)strlen(err->message), "replace");
    const long long byte = w->path[0] && w->byte != ORR_NO_BYTE ? (long long)w->byte : -1;
    PyObject *e = path && whole && message
                      ? PyObject_CallFunction(error_class, "OOsOLII", whole, message,
                                              code_name(code), path, byte, w->line, w->column)
                      : NULL;
    if (e)
        PyErr_SetObject(error_class, e);
    Py_XDECREF(e);
    Py_XDECREF(path);
    Py_XDECREF(whole);
    Py_XDECREF(message);
    return NULL;
}

PyObject *core_raise_usage(const char *text)
{
    orr_error err;
    orr_fail(&err, ORR_EUSAGE, NULL, "%s", text);
    return core_raise(ORR_EUSAGE, &err);
}

/* ---- options ---- */

/* PyDict_GetItemString would treat running out of memory as a missing option.  After an error all
 * options count as missing: the first error is reported. */
PyObject *core_object(PyObject *options, const char *name)
{
    if (PyErr_Occurred())
        return NULL;
    PyObject *key = PyUnicode_FromString(name);
    PyObject *v = key ? PyDict_GetItemWithError(options, key) : NULL;
    Py_XDECREF(key);
    return v == Py_None ? NULL : v;
}

/* The error for a value of the wrong type names the option; a MemoryError is kept. */
static bool is_wrong_kind(void)
{
    if (PyErr_ExceptionMatches(PyExc_MemoryError))
        return false;
    PyErr_Clear();
    return true;
}

PyObject *core_list(PyObject *options, const char *name)
{
    PyObject *v = core_object(options, name);
    if (!v || PyList_Check(v))
        return v;
    PyErr_Format(PyExc_TypeError, "%s: expected a list", name);
    return NULL;
}

const char *core_text(PyObject *options, const char *name)
{
    PyObject *v = core_object(options, name);
    if (v && !PyBytes_Check(v)) {
        PyErr_Format(PyExc_TypeError, "%s: expected a text or a path, not %R", name, v);
        return NULL;
    }
    return v ? PyBytes_AsString(v) : NULL;
}

bool core_flag(PyObject *options, const char *name)
{
    PyObject *v = core_object(options, name);
    return v && PyObject_IsTrue(v) == 1;
}

uint64_t core_count(PyObject *options, const char *name)
{
    PyObject *v = core_object(options, name);
    PyObject *whole = v ? PyNumber_Index(v) : NULL; /* NumPy integers too */
    const uint64_t n = whole ? PyLong_AsUnsignedLongLong(whole) : 0;
    const bool is_fine = !v || (whole && !(n == UINT64_MAX && PyErr_Occurred()));
    Py_XDECREF(whole);
    if (is_fine)
        return n;
    if (is_wrong_kind())
        PyErr_Format(whole ? PyExc_OverflowError : PyExc_TypeError,
                     "%s: expected a whole number, 0 or more, not %R", name, v);
    return 0;
}

uint64_t core_bounded(PyObject *options, const char *name, uint64_t most)
{
    const uint64_t n = core_count(options, name);
    if (n <= most)
        return n;
    PyErr_Format(PyExc_OverflowError, "%s: expected at most %llu, not %llu", name,
                 (unsigned long long)most, (unsigned long long)n);
    return 0;
}

uint32_t core_small(PyObject *options, const char *name)
{
    return (uint32_t)core_bounded(options, name, UINT32_MAX);
}

double core_number(PyObject *options, const char *name, double otherwise)
{
    PyObject *v = core_object(options, name);
    const double x = v ? PyFloat_AsDouble(v) : otherwise;
    if (!v || !PyErr_Occurred())
        return x;
    if (is_wrong_kind())
        PyErr_Format(PyExc_TypeError, "%s: expected a number, not %R", name, v);
    return 0;
}

/* ---- values ---- */

PyObject *core_str(orr_str s)
{
    return PyUnicode_DecodeUTF8(s.ptr, (Py_ssize_t)s.len, "surrogateescape");
}

bool core_put(PyObject *dict, const char *name, PyObject *value)
{
    const bool ok = value && PyDict_SetItemString(dict, name, value) == 0;
    Py_XDECREF(value);
    return ok;
}

/* ---- types ---- */

PyTypeObject *core_add_type(PyObject *module, PyType_Spec *spec, const char *name)
{
    PyObject *type = PyType_FromSpec(spec);
    if (!type)
        return NULL;
    Py_INCREF(type);
    if (PyModule_AddObject(module, name, type) < 0) {
        Py_DECREF(type);
        Py_DECREF(type);
        return NULL;
    }
    return (PyTypeObject *)type;
}

PyObject *core_new(PyObject *cls, PyTypeObject *base)
{
    if (!PyType_Check(cls) || !PyType_IsSubtype((PyTypeObject *)cls, base)) {
        PyErr_SetString(PyExc_TypeError, "not a class of this kind");
        return NULL;
    }
    const allocfunc alloc = (allocfunc)PyType_GetSlot((PyTypeObject *)cls, Py_tp_alloc);
    return alloc ? alloc((PyTypeObject *)cls, 0) : PyType_GenericAlloc((PyTypeObject *)cls, 0);
}

void core_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    const freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

PyObject *core_no_new(PyTypeObject *type, PyObject *args, PyObject *words)
{
    (void)type;
    (void)args;
    (void)words;
    PyErr_SetString(PyExc_TypeError, "objects of this kind come from other objects of orrery");
    return NULL;
}

/* ---- the module ---- */

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "orrery._core",
    .m_doc = "The compiled part of orrery; use the package orrery.",
    .m_size = -1,
};

static bool fill(PyObject *m)
{
    PyObject *errors = PyImport_ImportModule("orrery._error");
    error_class = errors ? PyObject_GetAttrString(errors, "Error") : NULL;
    Py_XDECREF(errors);
    return error_class && core_column_ready(m) && core_trace_ready(m) && core_set_ready(m) &&
           core_timeline_ready(m) && core_run_ready(m) &&
           PyModule_AddFunctions(m, core_trace_functions) == 0 &&
           PyModule_AddFunctions(m, core_set_functions) == 0 &&
           PyModule_AddFunctions(m, core_run_functions) == 0 &&
           PyModule_AddFunctions(m, core_make_functions) == 0 &&
           PyModule_AddFunctions(m, core_sweep_functions) == 0 &&
           PyModule_AddFunctions(m, core_plan_functions) == 0 &&
           PyModule_AddStringConstant(m, "version", orr_version()) == 0;
}

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void)
{
    PyObject *m = PyModule_Create(&definition);
    if (m && !fill(m)) {
        Py_DECREF(m);
        return NULL;
    }
    return m;
}
