/* SPDX-License-Identifier: Apache-2.0 */
/* core_timeline.c - timelines, as columns in the timeline's own memory.
 *
 * Spans are an array of structs; a column of one field has the size of the struct as its stride. */
#include "core.h"

#include <orrery/view.h>

#include <string.h>

PyTypeObject *core_timeline_type;

typedef struct timeline {
    PyObject_HEAD PyObject *keep;
    const orr_timeline *t;
    const orr_timeline_parts *p;
} timeline;

static void destroy(PyObject *capsule)
{
    orr_timeline_destroy(PyCapsule_GetPointer(capsule, "orr_timeline"));
}

PyObject *core_timeline_take(PyObject *cls, orr_timeline *t)
{
    PyObject *keep = PyCapsule_New(t, "orr_timeline", destroy);
    if (!keep) {
        orr_timeline_destroy(t);
        return NULL;
    }
    timeline *self = (timeline *)core_new(cls, core_timeline_type);
    if (!self) {
        Py_DECREF(keep);
        return NULL;
    }
    self->keep = keep;
    self->t = t;
    self->p = orr_timeline_view(t);
    return (PyObject *)self;
}

static void dealloc(PyObject *self)
{
    Py_XDECREF(((timeline *)self)->keep);
    core_free(self);
}

static bool is_there(const timeline *t)
{
    if (!t->p)
        core_raise_usage("this timeline was not made by a run or by orrery.link");
    return t->p != NULL;
}

static const struct {
    const char *name;
    core_kind kind;
    size_t offset;
} fields[] = {
    {"start_ps", CORE_I64, offsetof(orr_timespan, start)},
    {"end_ps", CORE_I64, offsetof(orr_timespan, end)},
    {"id", CORE_U64, offsetof(orr_timespan, id)},
    {"size", CORE_U64, offsetof(orr_timespan, size)},
    {"track", CORE_U32, offsetof(orr_timespan, track)},
    {"name", CORE_U32, offsetof(orr_timespan, name)},
    {"group", CORE_U32, offsetof(orr_timespan, group)},
    {"peer", CORE_U32, offsetof(orr_timespan, peer)},
    {"members", CORE_U32, offsetof(orr_timespan, members)},
    {"kind", CORE_U8, offsetof(orr_timespan, kind)},
    {"collective", CORE_U8, offsetof(orr_timespan, collective)},
    {"has", CORE_U8, offsetof(orr_timespan, has)},
};

static PyObject *rank_column(const timeline *t)
{
    void *room;
    PyObject *c = core_column_new(CORE_U32, (Py_ssize_t)t->p->span_count, &room);
    for (uint32_t i = 0; c && i < t->p->span_count; i++)
        ((uint32_t *)room)[i] = t->p->tracks[t->p->spans[i].track].rank;
    return c;
}

static PyObject *column(PyObject *self, PyObject *args)
{
    const timeline *t = (timeline *)self;
    const char *name;
    if (!PyArg_ParseTuple(args, "s:_column", &name) || !is_there(t))
        return NULL;
    if (strcmp(name, "rank") == 0)
        return rank_column(t);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strcmp(fields[i].name, name) == 0)
            return core_column(t->keep, (const char *)t->p->spans + fields[i].offset,
                               fields[i].kind, (Py_ssize_t)t->p->span_count, sizeof *t->p->spans);
    PyErr_Format(PyExc_KeyError, "there is no column '%s'", name);
    return NULL;
}

/* The texts with these numbers, each created once. */
static PyObject *texts(PyObject *self, PyObject *args)
{
    const timeline *t = (timeline *)self;
    const char *name;
    if (!PyArg_ParseTuple(args, "s:_texts", &name) || !is_there(t))
        return NULL;
    const bool is_track = strcmp(name, "track") == 0, is_name = strcmp(name, "name") == 0;
    PyObject *known = PyDict_New(), *list = PyList_New((Py_ssize_t)t->p->span_count);
    for (uint32_t i = 0; known && list && i < t->p->span_count; i++) {
        const orr_timespan *s = &t->p->spans[i];
        const uint32_t number = is_track  ? t->p->tracks[s->track].name
                                : is_name ? s->name
                                          : s->group;
        PyObject *key = PyLong_FromUnsignedLong(number);
        PyObject *text = key ? PyDict_GetItemWithError(known, key) : NULL;
        if (text) {
            Py_INCREF(text);
        } else if (key && !PyErr_Occurred()) {
            text = core_str(orr_timeline_text(t->t, number));
            if (text && PyDict_SetItem(known, key, text) < 0)
                Py_CLEAR(text);
        }
        Py_XDECREF(key);
        if (!text || PyList_SetItem(list, (Py_ssize_t)i, text) < 0)
            Py_CLEAR(list);
    }
    Py_XDECREF(known);
    return list;
}

typedef struct writing {
    const orr_timeline *timeline;
    const char *to;
} writing;

static orr_code do_write(void *data, orr_error *err)
{
    const writing *w = data;
    return orr_view_chrome(w->timeline, w->to, err);
}

static PyObject *write_chrome(PyObject *self, PyObject *args)
{
    const timeline *t = (timeline *)self;
    PyObject *path;
    orr_error err;
    if (!is_there(t) || !PyArg_ParseTuple(args, "O&:write_chrome", PyUnicode_FSConverter, &path))
        return NULL;
    writing w = {.timeline = t->t, .to = PyBytes_AsString(path)};
    PyObject *keep = t->keep;
    Py_INCREF(keep);
    const orr_code code = core_watch(do_write, NULL, &w, &err);
    Py_DECREF(keep);
    Py_DECREF(path);
    if (code)
        return core_raise(code, &err);
    Py_RETURN_NONE;
}

static Py_ssize_t length(PyObject *self)
{
    const timeline *t = (timeline *)self;
    return is_there(t) ? (Py_ssize_t)t->p->span_count : -1;
}

static PyObject *bounds(PyObject *self, void *unused)
{
    const timeline *t = (timeline *)self;
    (void)unused;
    return is_there(t) ? Py_BuildValue("(LL)", (long long)t->p->start, (long long)t->p->end) : NULL;
}

static PyMethodDef methods[] = {
    {"_column", column, METH_VARARGS, "_column(name): a Column"},
    {"_texts", texts, METH_VARARGS,
     "_texts(\"name\" | \"track\" | \"group\"): texts, span by span"},
    {"write_chrome", write_chrome, METH_VARARGS,
     "write_chrome(path): for Perfetto and chrome://tracing; .gz and .zst are compressed."},
    {0},
};

static PyGetSetDef getters[] = {{"_bounds", bounds, NULL, "(start, end) in picoseconds", NULL},
                                {0}};

bool core_timeline_ready(PyObject *module)
{
    static PyType_Slot slots[] = {{Py_tp_dealloc, dealloc},
                                  {Py_sq_length, length},
                                  {Py_tp_methods, methods},
                                  {Py_tp_getset, getters},
                                  {Py_tp_doc, CORE_DOC("Spans on the tracks of ranks.")},
                                  {0, NULL}};
    static PyType_Spec spec = {"orrery._core.Timeline", sizeof(timeline), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    core_timeline_type = core_add_type(module, &spec, "Timeline");
    PyObject *kinds = PyList_New(0);
    bool ok = core_timeline_type && kinds;
    for (int k = 0; ok && k < ORR_SPAN_KINDS; k++) {
        PyObject *s = PyUnicode_FromString(orr_span_kind_name((orr_span_kind)k));
        ok = s && PyList_Append(kinds, s) == 0;
        Py_XDECREF(s);
    }
    return ok && PyModule_AddObject(module, "SPAN_KINDS", kinds) == 0;
}
