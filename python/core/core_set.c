/* SPDX-License-Identifier: Apache-2.0 */
/* core_set.c - the traces of all ranks: opening, making, writing, checking. */
#include "core.h"

#include <orrery/check.h>

#include <string.h>

PyTypeObject *core_set_type;

/* ---- life ---- */

static void close_set(PyObject *capsule)
{
    orr_set_close(PyCapsule_GetPointer(capsule, "orr_set"));
}

PyObject *core_set_take(PyObject *cls, orr_set *s)
{
    PyObject *keep = PyCapsule_New(s, "orr_set", close_set);
    if (!keep) {
        orr_set_close(s);
        return NULL;
    }
    PyObject *self = core_new(cls, core_set_type);
    if (!self)
        Py_DECREF(keep);
    else
        ((core_set *)self)->keep = keep;
    return self;
}

static void set_dealloc(PyObject *self)
{
    Py_XDECREF(((core_set *)self)->keep);
    core_free(self);
}

orr_set *core_set_of(PyObject *set, PyObject **keep)
{
    if (!PyObject_TypeCheck(set, core_set_type)) {
        PyErr_SetString(PyExc_TypeError, "expected a set of traces");
        return NULL;
    }
    *keep = ((core_set *)set)->keep;
    if (!*keep) {
        core_raise_usage("this set of traces is closed");
        return NULL;
    }
    Py_INCREF(*keep);
    return PyCapsule_GetPointer(*keep, "orr_set");
}

static PyObject *set_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    Py_CLEAR(((core_set *)self)->keep);
    Py_RETURN_NONE;
}

typedef struct opening {
    const char *path;
    const orr_set_options *opt;
    orr_set *set;
} opening;

static orr_code do_open(void *data, orr_error *err)
{
    opening *o = data;
    return orr_set_open(o->path, o->opt, &o->set, err);
}

static void undo_open(void *data)
{
    orr_set_close(((opening *)data)->set);
}

static PyObject *open_set(PyObject *module, PyObject *args)
{
    PyObject *cls, *path, *options;
    orr_read_options read = {.size = sizeof read};
    orr_set_options opt = {.size = sizeof opt, .read = &read};
    orr_error err;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO&O!:open_set", &cls, PyUnicode_FSConverter, &path, &PyDict_Type,
                          &options))
        return NULL;
    opt.keep_going = core_flag(options, "keep_going");
    opt.threads = core_small(options, "threads");
    if (core_flag(options, "keep_unknown"))
        read.leniency = ORR_KEEP_UNKNOWN;
    if (PyErr_Occurred()) {
        Py_DECREF(path);
        return NULL;
    }
    opening o = {.path = PyBytes_AsString(path), .opt = &opt};
    const orr_code code = core_watch(do_open, undo_open, &o, &err);
    Py_DECREF(path);
    return code ? core_raise(code, &err) : core_set_take(cls, o.set);
}

static PyObject *new_set(PyObject *module, PyObject *cls)
{
    orr_set *s;
    orr_error err;
    (void)module;
    const orr_code code = orr_set_create(&s, &err);
    return code ? core_raise(code, &err) : core_set_take(cls, s);
}

/* ---- looking ---- */

static Py_ssize_t set_length(PyObject *self)
{
    PyObject *keep;
    const orr_set *s = core_set_of(self, &keep);
    if (!s)
        return -1;
    const Py_ssize_t n = (Py_ssize_t)orr_set_rank_count(s);
    Py_DECREF(keep);
    return n;
}

static PyObject *unreadable(const orr_set *s, uint32_t rank)
{
    const orr_error *why = orr_set_error(s, rank);
    if (why)
        return core_raise(why->code, why);
    return core_raise_usage("this rank could not be read");
}

/* A trace of the set; with holes, a copy. */
static PyObject *rank_trace(PyObject *cls, const orr_set *s, uint32_t rank, PyObject *keep)
{
    const orr_trace *t = NULL;
    orr_trace *owned = NULL;
    orr_error err;
    orr_code code;
    if (orr_set_class_of(s, rank) == ORR_NO_NODE)
        return unreadable(s, rank);
    Py_BEGIN_ALLOW_THREADS code = orr_set_rank_trace(s, rank, &t, &owned, &err);
    Py_END_ALLOW_THREADS if (code) return core_raise(code, &err);
    core_trace *self;
    if (owned) {
        self = (core_trace *)core_trace_take(cls, owned);
    } else {
        self = (core_trace *)core_new(cls, core_trace_type);
        if (self) {
            Py_INCREF(keep);
            self->keep = keep;
            self->t = t;
            self->c = orr_trace_columns(t);
        }
    }
    if (self)
        self->shift = orr_set_id_shift(s, rank);
    return (PyObject *)self;
}

static PyObject *set_trace(PyObject *self, PyObject *args)
{
    PyObject *cls, *keep;
    unsigned int rank;
    if (!PyArg_ParseTuple(args, "OI:_trace", &cls, &rank))
        return NULL;
    const orr_set *s = core_set_of(self, &keep);
    if (!s)
        return NULL;
    PyObject *out = NULL;
    if (rank >= orr_set_rank_count(s))
        PyErr_Format(PyExc_IndexError, "there is no rank %u in a set of %u", rank,
                     orr_set_rank_count(s));
    else
        out = rank_trace(cls, s, rank, keep);
    Py_DECREF(keep);
    return out;
}

/* (class, path, error) of each rank. */
static PyObject *set_ranks(PyObject *self, PyObject *unused)
{
    PyObject *keep;
    const orr_set *s = core_set_of(self, &keep);
    (void)unused;
    if (!s)
        return NULL;
    const uint32_t count = orr_set_rank_count(s);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (uint32_t r = 0; list && r < count; r++) {
        const uint32_t k = orr_set_class_of(s, r);
        const orr_error *why = orr_set_error(s, r);
        const char *path = orr_set_rank_path(s, r);
        char text[600];
        PyObject *row = Py_BuildValue("(LNz)", k == ORR_NO_NODE ? -1LL : (long long)k,
                                      PyUnicode_DecodeFSDefault(path ? path : ""),
                                      why ? orr_error_text(why, text, sizeof text) : NULL);
        if (!row || PyList_SetItem(list, (Py_ssize_t)r, row) < 0)
            Py_CLEAR(list);
    }
    Py_DECREF(keep);
    return list;
}

static PyObject *set_groups(PyObject *self, PyObject *unused)
{
    PyObject *keep;
    const orr_set *s = core_set_of(self, &keep);
    (void)unused;
    if (!s)
        return NULL;
    PyObject *dict = PyDict_New();
    for (uint32_t i = 0; dict && i < orr_set_group_count(s); i++) {
        const orr_group g = orr_set_group(s, i);
        PyObject *id = PyLong_FromUnsignedLongLong(g.id);
        PyObject *ranks = PyTuple_New((Py_ssize_t)g.count);
        bool ok = id && ranks;
        for (uint32_t k = 0; ok && k < g.count; k++) {
            PyObject *r = PyLong_FromUnsignedLong(g.ranks[k]);
            ok = r && PyTuple_SetItem(ranks, (Py_ssize_t)k, r) == 0;
        }
        if (!ok || PyDict_SetItem(dict, id, ranks) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(id);
        Py_XDECREF(ranks);
    }
    Py_DECREF(keep);
    return dict;
}

static PyObject *set_class_count(PyObject *self, PyObject *unused)
{
    PyObject *keep;
    const orr_set *s = core_set_of(self, &keep);
    (void)unused;
    if (!s)
        return NULL;
    const uint32_t n = orr_set_class_count(s);
    uint64_t nodes = 0;
    for (uint32_t k = 0; k < n; k++)
        nodes +=
            (uint64_t)orr_set_class_ranks(s, k) * orr_trace_columns(orr_set_trace(s, k))->count;
    Py_DECREF(keep);
    return Py_BuildValue("(IK)", n, (unsigned long long)nodes);
}

/* ---- making ---- */

/* The set takes ownership, and a trace may be in use, so it gets a copy. */
static orr_code copy_trace(const orr_trace *from, orr_trace **out, orr_error *err)
{
    orr_meta meta = {.version = orr_trace_version(from)};
    orr_attrs it = orr_trace_attrs(from);
    orr_attr a;
    const uint32_t count = orr_trace_columns(from)->count;
    size_t attrs = 0;
    while (orr_attrs_next(&it, &a))
        attrs++;
    orr_attr *list = PyMem_Calloc(attrs ? attrs : 1, sizeof *list);
    if (!list)
        return orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
    it = orr_trace_attrs(from);
    while (meta.attr_count < attrs && orr_attrs_next(&it, &list[meta.attr_count]))
        meta.attr_count++;
    meta.attrs = list;
    orr_code code = orr_trace_create(orr_trace_has_metadata(from) ? &meta : NULL, out, err);
    PyMem_Free(list);
    for (uint32_t i = 0; i < count && !code; i++) {
        orr_node n;
        orr_trace_node(from, i, &n);
        if ((code = orr_trace_copy(*out, &n, NULL, err)))
            orr_trace_destroy(*out);
    }
    if (!code && (code = orr_trace_seal(*out, err)))
        orr_trace_destroy(*out);
    return code;
}

static PyObject *set_add(PyObject *self, PyObject *args)
{
    PyObject *trace, *keep;
    orr_trace *copy = NULL;
    orr_error err;
    orr_code code;
    if (!PyArg_ParseTuple(args, "O!:_add", (PyObject *)core_trace_type, &trace) ||
        !core_trace_sealed((core_trace *)trace))
        return NULL;
    orr_set *s = core_set_of(self, &keep);
    if (!s)
        return NULL;
    const orr_trace *from = ((core_trace *)trace)->t;
    code = copy_trace(from, &copy, &err);
    if (!code)
        code = orr_set_add(s, copy, &err);
    Py_DECREF(keep);
    if (code)
        return core_raise(code, &err);
    Py_RETURN_NONE;
}

static PyObject *set_add_group(PyObject *self, PyObject *args)
{
    unsigned long long id;
    PyObject *list, *keep;
    orr_error err;
    if (!PyArg_ParseTuple(args, "KO!:_add_group", &id, &PyList_Type, &list))
        return NULL;
    const Py_ssize_t n = PyList_Size(list);
    uint32_t *ranks = PyMem_Malloc((size_t)(n ? n : 1) * sizeof *ranks);
    if (!ranks)
        return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n; i++)
        ranks[i] = (uint32_t)PyLong_AsUnsignedLong(PyList_GetItem(list, i));
    orr_set *s = PyErr_Occurred() ? NULL : core_set_of(self, &keep);
    const orr_code code = s ? orr_set_add_group(s, id, ranks, (uint32_t)n, &err) : ORR_OK;
    PyMem_Free(ranks);
    if (!s)
        return NULL;
    Py_DECREF(keep);
    if (code)
        return core_raise(code, &err);
    Py_RETURN_NONE;
}

/* ---- writing ---- */

typedef struct saving {
    const orr_set *set;
    const char *to, *form;
    const orr_set_save_options *opt;
    const orr_write_options *write;
} saving;

static orr_code do_save(void *data, orr_error *err)
{
    const saving *s = data;
    return strcmp(s->form, "set") == 0     ? orr_set_save(s->set, s->to, s->opt, err)
           : strcmp(s->form, "files") == 0 ? orr_set_write_files(s->set, s->to, s->write, 0, err)
                                           : orr_set_write_groups(s->set, s->to, err);
}

/* _save(path, form, compress, schema): form "set", "files" or "groups". */
static PyObject *set_save(PyObject *self, PyObject *args)
{
    PyObject *path, *keep;
    const char *form, *schema;
    int compress;
    orr_write_options w = {.size = sizeof w};
    orr_error err;
    if (!PyArg_ParseTuple(args, "O&spz:_save", PyUnicode_FSConverter, &path, &form, &compress,
                          &schema))
        return NULL;
    const bool knows = !schema || orr_schema_find(orr_str_of(schema), &w.schema);
    orr_set *s = knows ? core_set_of(self, &keep) : NULL;
    if (!s) {
        Py_DECREF(path);
        return knows ? NULL : core_raise_usage("there is no schema of that name");
    }
    const orr_set_save_options opt = {.size = sizeof opt, .compress = compress != 0};
    saving what = {.set = s, .to = PyBytes_AsString(path), .form = form, .opt = &opt, .write = &w};
    const orr_code code = core_watch(do_save, NULL, &what, &err);
    Py_DECREF(keep);
    Py_DECREF(path);
    if (code)
        return core_raise(code, &err);
    Py_RETURN_NONE;
}

/* ---- checking ---- */

static const char *severity_name(orr_severity s)
{
    return s == ORR_ERROR ? "error" : s == ORR_WARNING ? "warning" : "note";
}

static PyObject *finding_dict(const orr_finding *f)
{
    PyObject *d = PyDict_New();
    const bool has_byte = f->where.path[0] && f->where.byte != ORR_NO_BYTE;
    const bool ok =
        d && core_put(d, "kind", PyUnicode_FromString(orr_check_kind_name(f->kind))) &&
        core_put(d, "severity",
                 PyUnicode_FromString(severity_name(orr_check_kind_severity(f->kind)))) &&
        core_put(d, "text",
                 PyUnicode_DecodeUTF8(f->text, (Py_ssize_t)strlen(f->text), "replace")) &&
        core_put(d, "path", PyUnicode_DecodeFSDefault(f->where.path)) &&
        core_put(d, "byte",
                 has_byte ? PyLong_FromUnsignedLongLong(f->where.byte) : Py_BuildValue("")) &&
        core_put(d, "rank",
                 f->rank == ORR_NO_NODE ? Py_BuildValue("") : PyLong_FromUnsignedLong(f->rank)) &&
        core_put(d, "rank_count", PyLong_FromUnsignedLong(f->rank_count)) &&
        core_put(d, "node",
                 f->has_node ? PyLong_FromUnsignedLongLong(f->node) : Py_BuildValue("")) &&
        core_put(d, "name", f->name ? core_str(orr_str_of(f->name)) : Py_BuildValue(""));
    if (!ok)
        Py_CLEAR(d);
    return d;
}

static PyObject *report_dict(const orr_check_report *r)
{
    PyObject *d = PyDict_New(), *list = PyList_New(0), *counts = PyDict_New();
    bool ok = d && list && counts;
    for (size_t i = 0; ok && i < r->finding_count; i++) {
        PyObject *f = finding_dict(&r->findings[i]);
        ok = f && PyList_Append(list, f) == 0;
        Py_XDECREF(f);
    }
    for (int k = 0; ok && k < ORR_CHECK_KIND_COUNT; k++)
        if (r->count[k])
            ok = core_put(counts, orr_check_kind_name((orr_check_kind)k),
                          PyLong_FromUnsignedLongLong(r->count[k]));
    ok = ok && core_put(d, "errors", PyLong_FromUnsignedLongLong(r->errors)) &&
         core_put(d, "warnings", PyLong_FromUnsignedLongLong(r->warnings)) &&
         core_put(d, "notes", PyLong_FromUnsignedLongLong(r->notes)) &&
         core_put(d, "ranks", PyLong_FromUnsignedLong(r->rank_count)) &&
         core_put(d, "distinct_ranks", PyLong_FromUnsignedLong(r->class_count)) &&
         core_put(d, "nodes", PyLong_FromUnsignedLongLong(r->node_count)) &&
         PyDict_SetItemString(d, "findings", list) == 0 &&
         PyDict_SetItemString(d, "counts", counts) == 0;
    Py_XDECREF(list);
    Py_XDECREF(counts);
    if (!ok)
        Py_CLEAR(d);
    return d;
}

typedef struct checking {
    const orr_set *set;
    const orr_check_options *opt;
    const char *from, *to; /* of a repair */
    orr_check_report *report;
} checking;

static orr_code do_check(void *data, orr_error *err)
{
    checking *c = data;
    return c->from ? orr_check_fix(c->from, c->to, NULL, NULL, &c->report, err)
                   : orr_check_set(c->set, c->opt, &c->report, err);
}

static void undo_check(void *data)
{
    orr_check_report_destroy(((checking *)data)->report);
}

static PyObject *set_check(PyObject *self, PyObject *args)
{
    PyObject *keep;
    unsigned int limit;
    orr_check_options opt = {.size = sizeof opt};
    orr_error err;
    if (!PyArg_ParseTuple(args, "I:_check", &limit))
        return NULL;
    opt.limit = limit;
    const orr_set *s = core_set_of(self, &keep);
    if (!s)
        return NULL;
    checking c = {.set = s, .opt = &opt};
    const orr_code code = core_watch(do_check, undo_check, &c, &err);
    Py_DECREF(keep);
    if (code)
        return core_raise(code, &err);
    PyObject *d = report_dict(c.report);
    orr_check_report_destroy(c.report);
    return d;
}

static PyObject *check_fix(PyObject *module, PyObject *args)
{
    PyObject *from, *to = NULL;
    orr_error err;
    (void)module;
    if (!PyArg_ParseTuple(args, "O&O&:check_fix", PyUnicode_FSConverter, &from,
                          PyUnicode_FSConverter, &to))
        return NULL;
    checking c = {.from = PyBytes_AsString(from), .to = PyBytes_AsString(to)};
    const orr_code code = core_watch(do_check, undo_check, &c, &err);
    Py_DECREF(from);
    Py_DECREF(to);
    if (code)
        return core_raise(code, &err);
    PyObject *d = report_dict(c.report);
    orr_check_report_destroy(c.report);
    return d;
}

/* ---- tables ---- */

static PyMethodDef methods[] = {
    {"close", set_close, METH_NOARGS,
     "Lets go of the traces.  Traces and columns taken from the set stay valid."},
    {"_trace", set_trace, METH_VARARGS, "_trace(cls, rank)"},
    {"_ranks", set_ranks, METH_NOARGS, "[(class, path, error)] by rank"},
    {"_groups", set_groups, METH_NOARGS, "{id: ranks}"},
    {"_counts", set_class_count, METH_NOARGS, "(classes, nodes of all ranks)"},
    {"_add", set_add, METH_VARARGS, "_add(trace)"},
    {"_add_group", set_add_group, METH_VARARGS, "_add_group(id, ranks)"},
    {"_save", set_save, METH_VARARGS, "_save(path, form, compress, schema)"},
    {"_check", set_check, METH_VARARGS, "_check(limit)"},
    {0},
};

PyMethodDef core_set_functions[] = {
    {"open_set", open_set, METH_VARARGS, "open_set(cls, path, options)"},
    {"new_set", new_set, METH_O, "new_set(cls)"},
    {"check_fix", check_fix, METH_VARARGS, "check_fix(path, to)"},
    {0},
};

bool core_set_ready(PyObject *module)
{
    static PyType_Slot slots[] = {{Py_tp_dealloc, set_dealloc},
                                  {Py_sq_length, set_length},
                                  {Py_tp_methods, methods},
                                  {Py_tp_doc, CORE_DOC("The traces of all ranks.")},
                                  {0, NULL}};
    static PyType_Spec spec = {"orrery._core.Set", sizeof(core_set), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    core_set_type = core_add_type(module, &spec, "Set");
    return core_set_type != NULL;
}
