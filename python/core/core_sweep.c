/* SPDX-License-Identifier: Apache-2.0 */
/* core_sweep.c - results of sweeps.  The points run in the program (python/orrery/_sweep.py says
 * why); this reads its database. */
#include "core.h"

#include <orrery/lab/sweep.h>

/* sweep_table(database, to, options): the results as JSON, into a file */
static PyObject *sweep_table(PyObject *module, PyObject *args)
{
    PyObject *database, *to = NULL, *o;
    orr_sweep_table *t = NULL;
    orr_error err;
    orr_code code;
    (void)module;
    if (!PyArg_ParseTuple(args, "O&O&O!:sweep_table", PyUnicode_FSConverter, &database,
                          PyUnicode_FSConverter, &to, &PyDict_Type, &o))
        return NULL;
    const orr_sweep_query q = {.size = sizeof q,
                               .where = core_text(o, "where"),
                               .sort = core_text(o, "sort"),
                               .columns = core_text(o, "columns"),
                               .limit = core_count(o, "limit"),
                               .by_goal = core_flag(o, "by_goal"),
                               .with_failed = core_flag(o, "failed")};
    if (PyErr_Occurred()) {
        Py_DECREF(database);
        Py_DECREF(to);
        return NULL;
    }
    const char *from = PyBytes_AsString(database), *path = PyBytes_AsString(to);
    Py_BEGIN_ALLOW_THREADS code = orr_sweep_table_open(from, &q, &t, &err);
    if (!code) {
        code = orr_sweep_table_write(t, ORR_SWEEP_JSON, path, &err);
        orr_sweep_table_close(t);
    }
    Py_END_ALLOW_THREADS Py_DECREF(database);
    Py_DECREF(to);
    if (code)
        return core_raise(code, &err);
    Py_RETURN_NONE;
}

static PyObject *sweep_status(PyObject *module, PyObject *args)
{
    PyObject *database;
    orr_sweep_state s = {0};
    orr_error err;
    (void)module;
    if (!PyArg_ParseTuple(args, "O&:sweep_status", PyUnicode_FSConverter, &database))
        return NULL;
    const orr_code code = orr_sweep_status(PyBytes_AsString(database), &s, &err);
    Py_DECREF(database);
    if (code)
        return core_raise(code, &err);
    return Py_BuildValue("{s:K,s:K,s:K,s:s,s:s,s:N}", "points", (unsigned long long)s.points,
                         "done", (unsigned long long)s.done, "failed", (unsigned long long)s.failed,
                         "commands", s.commands, "failure", s.failure, "is_running",
                         PyBool_FromLong(s.is_running));
}

PyMethodDef core_sweep_functions[] = {
    {"sweep_table", sweep_table, METH_VARARGS, "sweep_table(database, to, options)"},
    {"sweep_status", sweep_status, METH_VARARGS, "sweep_status(database)"},
    {0},
};
