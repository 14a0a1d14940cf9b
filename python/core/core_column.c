/* SPDX-License-Identifier: Apache-2.0 */
/* core_column.c - a column of numbers in the library's memory.
 *
 * NumPy reads it in place through __array_interface__, which has the address and the stride; the
 * buffer protocol would need Python 3.11's limited API.  A stride of 0 means one value for all
 * rows, a larger one a field of an array of structs.  Without NumPy it is a sequence of
 * integers. */
#include "core.h"

#include <string.h>

typedef struct column {
    PyObject_HEAD PyObject *keep;
    void *own; /* memory that it owns */
    const char *data;
    Py_ssize_t count, stride;
    core_kind kind;
} column;

PyTypeObject *core_column_type;

static const struct {
    const char *numpy;
    size_t size;
} kinds[] = {{"|u1", 1}, {"|i1", 1}, {"<u4", 4}, {"<i8", 8}, {"<u8", 8}};

static PyObject *make(PyObject *keep, core_kind kind, Py_ssize_t count, Py_ssize_t stride)
{
    column *c = (column *)core_new((PyObject *)core_column_type, core_column_type);
    if (!c)
        return NULL;
    Py_XINCREF(keep);
    c->keep = keep;
    c->kind = kind;
    c->count = count;
    c->stride = stride;
    return (PyObject *)c;
}

PyObject *core_column(
    PyObject *keep, const void *data, core_kind kind, Py_ssize_t count, Py_ssize_t stride)
{
    static const uint64_t nothing = 0; /* NumPy does not accept NULL, even for a count of 0 */
    PyObject *c = make(keep, kind, count, stride);
    if (c)
        ((column *)c)->data = data ? data : (const void *)&nothing;
    return c;
}

PyObject *core_column_new(core_kind kind, Py_ssize_t count, void **data)
{
    PyObject *c = make(NULL, kind, count, (Py_ssize_t)kinds[kind].size);
    if (!c)
        return NULL;
    column *at = (column *)c;
    at->own = PyMem_Calloc((size_t)(count ? count : 1), kinds[kind].size);
    if (!at->own) {
        Py_DECREF(c);
        PyErr_NoMemory();
        return NULL;
    }
    at->data = at->own;
    *data = at->own;
    return c;
}

static void dealloc(PyObject *self)
{
    column *c = (column *)self;
    Py_XDECREF(c->keep);
    PyMem_Free(c->own);
    core_free(self);
}

static PyObject *value(const column *c, Py_ssize_t i)
{
    const char *at = c->data + i * c->stride;
    int64_t signed_value;
    uint64_t unsigned_value;
    uint32_t word;
    switch (c->kind) {
    case CORE_U8:
        return PyLong_FromLong(*(const uint8_t *)at);
    case CORE_I8:
        return PyLong_FromLong(*(const int8_t *)at);
    case CORE_U32:
        memcpy(&word, at, sizeof word);
        return PyLong_FromUnsignedLong(word);
    case CORE_I64:
        memcpy(&signed_value, at, sizeof signed_value);
        return PyLong_FromLongLong(signed_value);
    default:
        memcpy(&unsigned_value, at, sizeof unsigned_value);
        return PyLong_FromUnsignedLongLong(unsigned_value);
    }
}

static PyObject *item(PyObject *self, Py_ssize_t i)
{
    const column *c = (column *)self;
    if (i < 0 || i >= c->count) {
        PyErr_SetString(PyExc_IndexError, "there is no such row");
        return NULL;
    }
    return value(c, i);
}

static Py_ssize_t length(PyObject *self)
{
    return ((column *)self)->count;
}

static PyObject *array_interface(PyObject *self, void *unused)
{
    const column *c = (column *)self;
    (void)unused;
    return Py_BuildValue("{s:i,s:s,s:(n),s:(n),s:(NO)}", "version", 3, "typestr",
                         kinds[c->kind].numpy, "shape", c->count, "strides", c->stride, "data",
                         PyLong_FromVoidPtr((void *)(uintptr_t)c->data), Py_True);
}

static PyObject *tolist(PyObject *self, PyObject *unused)
{
    const column *c = (column *)self;
    PyObject *list = PyList_New(c->count);
    (void)unused;
    for (Py_ssize_t i = 0; list && i < c->count; i++) {
        PyObject *v = value(c, i);
        if (!v || PyList_SetItem(list, i, v) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *repr(PyObject *self)
{
    const column *c = (column *)self;
    return PyUnicode_FromFormat("<orrery column of %zd numbers>", c->count);
}

static PyMethodDef methods[] = {
    {"tolist", tolist, METH_NOARGS, "All values, as a list of integers."},
    {0},
};

static PyGetSetDef fields[] = {
    {"__array_interface__", array_interface, NULL, "Where the numbers are, for NumPy.", NULL},
    {0},
};

bool core_column_ready(PyObject *module)
{
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, dealloc},
        {Py_tp_new, core_no_new},
        {Py_sq_item, item},
        {Py_sq_length, length},
        {Py_tp_methods, methods},
        {Py_tp_getset, fields},
        {Py_tp_repr, repr},
        {Py_tp_doc, CORE_DOC("Numbers that lie in the library's memory.")},
        {0, NULL}};
    static PyType_Spec spec = {"orrery._core.Column", sizeof(column), 0, Py_TPFLAGS_DEFAULT, slots};
    core_column_type = core_add_type(module, &spec, "Column");
    return core_column_type != NULL;
}
