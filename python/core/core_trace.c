/* SPDX-License-Identifier: Apache-2.0 */
/* core_trace.c - Trace and Node: reading columns and records, and building.
 *
 * A node is a trace and an index, so iterating over a trace makes one small object per node, and
 * attributes are read from their columns on demand.  A trace under construction is sealed by the
 * first read. */
#include "core.h"

#include <string.h>

PyTypeObject *core_trace_type, *core_node_type;
static PyTypeObject *walk_type;

/* ---- columns by name ---- */

enum { FIELD_NAME = -1, FIELD_DATA_DEPS = -2, FIELD_CTRL_DEPS = -3, FIELD_PG_NAME = -4 };

static const struct {
    const char *name;
    core_kind kind;
    size_t offset;
} fields[] = {
#define FIELD(name, kind)                        \
    {                                            \
#name, kind, offsetof(orr_columns, name) \
    }
    FIELD(id, CORE_U64),         FIELD(type, CORE_U8),           FIELD(duration_us, CORE_U64),
    FIELD(start_us, CORE_U64),   FIELD(is_cpu_op, CORE_I8),      FIELD(comm_type, CORE_I8),
    FIELD(comm_size, CORE_I64),  FIELD(comm_src, CORE_I64),      FIELD(comm_dst, CORE_I64),
    FIELD(comm_tag, CORE_I64),   FIELD(comm_priority, CORE_I64), FIELD(tensor_size, CORE_I64),
    FIELD(tensor_loc, CORE_I64), FIELD(num_ops, CORE_I64),       FIELD(stream, CORE_I64),
    FIELD(pg_name, CORE_U32),
#undef FIELD
};
enum { FIELD_ID = 0, FIELD_START = 3, FIELD_COUNT = sizeof fields / sizeof *fields };

static const size_t kind_size[] = {1, 1, 4, 8, 8};

static const void *column_data(const orr_columns *c, int field)
{
    const void *p;
    memcpy(&p, (const char *)c + fields[field].offset, sizeof p);
    return p;
}

static int find_field(const char *name)
{
    for (int i = 0; i < FIELD_COUNT; i++)
        if (strcmp(fields[i].name, name) == 0)
            return i;
    return FIELD_COUNT;
}

/* ---- life ---- */

static void destroy_trace(PyObject *capsule)
{
    orr_trace_destroy(PyCapsule_GetPointer(capsule, "orr_trace"));
}

static void destroy_framed(PyObject *capsule)
{
    PyObject *frame = PyCapsule_GetContext(capsule);
    destroy_trace(capsule);
    Py_XDECREF(frame);
}

/* ---- names ----
 *
 * A trace of a million nodes has a few dozen distinct names.  They are cached, hashed by their
 * first and last characters, so most nodes share a text instead of creating one.  For a trace whose
 * names all differ the cache is soon disabled. */

enum { NAMES = 128, NAME_MOST = 63, NAMES_TRIED = 1024 };

typedef struct core_names {
    uint32_t hits, misses;
    struct {
        PyObject *text;
        uint8_t len;
        char bytes[NAME_MOST];
    } at[NAMES];
} core_names;

static void names_end(core_names *n)
{
    for (int i = 0; n && i < NAMES; i++)
        Py_XDECREF(n->at[i].text);
    PyMem_Free(n);
}

static size_t name_place(orr_str s)
{
    uint64_t head, tail;
    memcpy(&head, s.ptr, sizeof head);
    memcpy(&tail, s.ptr + s.len - sizeof tail, sizeof tail);
    return (size_t)((head * 3 + tail + s.len) * 0x9e3779b97f4a7c15u >> 57);
}

static PyObject *name_text(core_trace *t, orr_str s)
{
    if (s.len < sizeof(uint64_t) || s.len > NAME_MOST)
        return core_str(s);
    if (!t->names && !(t->names = PyMem_Calloc(1, sizeof *t->names)))
        return PyErr_NoMemory();
    core_names *n = t->names;
    if (n->misses > NAMES_TRIED && n->hits < n->misses)
        return core_str(s);
    const size_t at = name_place(s);
    PyObject *text = n->at[at].text;
    if (text && n->at[at].len == s.len && memcmp(n->at[at].bytes, s.ptr, s.len) == 0) {
        n->hits++;
        Py_INCREF(text);
        return text;
    }
    PyObject *made = core_str(s);
    if (!made)
        return NULL;
    n->misses++;
    Py_INCREF(made);
    n->at[at].text = made;
    n->at[at].len = (uint8_t)s.len;
    memcpy(n->at[at].bytes, s.ptr, s.len);
    Py_XDECREF(text);
    return made;
}

static void trace_dealloc(PyObject *self)
{
    Py_XDECREF(((core_trace *)self)->keep);
    names_end(((core_trace *)self)->names);
    core_free(self);
}

PyObject *core_trace_take(PyObject *cls, orr_trace *t)
{
    PyObject *keep = PyCapsule_New(t, "orr_trace", destroy_trace);
    if (!keep) {
        orr_trace_destroy(t);
        return NULL;
    }
    core_trace *self = (core_trace *)core_new(cls, core_trace_type);
    if (!self) {
        Py_DECREF(keep);
        return NULL;
    }
    self->keep = keep;
    self->t = t;
    self->c = orr_trace_columns(t);
    return (PyObject *)self;
}

bool core_trace_sealed(core_trace *t)
{
    orr_error err;
    if (t->building) {
        const orr_code code = orr_trace_seal(t->building, &err);
        if (code) {
            core_raise(code, &err);
            return false;
        }
        t->t = t->building;
        t->building = NULL;
        t->c = orr_trace_columns(t->t);
    }
    if (!t->t)
        core_raise_usage("this trace was not made by orrery.open or orrery.Trace()");
    return t->t != NULL;
}

/* ---- values ---- */

static PyObject *value_of(orr_value_kind kind, const orr_value *v)
{
    switch (kind) {
    case ORR_VALUE_DOUBLE:
    case ORR_VALUE_FLOAT:
        return PyFloat_FromDouble(v->d);
    case ORR_VALUE_INT32:
    case ORR_VALUE_INT64:
    case ORR_VALUE_SINT32:
    case ORR_VALUE_SINT64:
    case ORR_VALUE_SFIXED32:
    case ORR_VALUE_SFIXED64:
        return PyLong_FromLongLong(v->i);
    case ORR_VALUE_BOOL:
        return PyBool_FromLong(v->u != 0);
    case ORR_VALUE_STRING:
        return core_str(v->s);
    case ORR_VALUE_BYTES:
        return PyBytes_FromStringAndSize(v->s.ptr, (Py_ssize_t)v->s.len);
    case ORR_VALUE_NONE:
        Py_RETURN_NONE;
    default:
        return PyLong_FromUnsignedLongLong(v->u);
    }
}

static PyObject *list_of(orr_list it, orr_value_kind kind)
{
    PyObject *list = PyList_New(0);
    orr_value v;
    while (list && orr_list_next(&it, &v)) {
        PyObject *o = value_of(kind, &v);
        if (!o || PyList_Append(list, o) < 0)
            Py_CLEAR(list);
        Py_XDECREF(o);
    }
    return list;
}

static PyObject *attr_value(const orr_attr *a)
{
    return a->is_list ? list_of(orr_attr_items(a), a->kind) : value_of(a->kind, &a->value);
}

/* The first attribute of a name counts. */
PyObject *core_attrs_dict(orr_attrs it)
{
    PyObject *dict = PyDict_New();
    orr_attr a;
    while (dict && orr_attrs_next(&it, &a)) {
        PyObject *name = core_str(a.name);
        const int known = name ? PyDict_Contains(dict, name) : -1;
        PyObject *v = known == 0 ? attr_value(&a) : NULL;
        if (known < 0 || (known == 0 && (!v || PyDict_SetItem(dict, name, v) < 0)))
            Py_CLEAR(dict);
        Py_XDECREF(name);
        Py_XDECREF(v);
    }
    return dict;
}

/* [(name, kind, is_list, value, doc)] in file order, including repeated names. */
static PyObject *attrs_list(orr_attrs it)
{
    PyObject *list = PyList_New(0);
    orr_attr a;
    while (list && orr_attrs_next(&it, &a)) {
        PyObject *row = Py_BuildValue("(NiNNN)", core_str(a.name), (int)a.kind,
                                      PyBool_FromLong(a.is_list), attr_value(&a), core_str(a.doc));
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* ---- one field of one node ---- */

/* Ids of missing nodes are only in the record.  A separate function, so that the common case needs
 * no stack space for a record. */
static __attribute__((noinline)) PyObject *deps_of_record(const core_trace *t,
                                                          uint32_t i,
                                                          bool is_data)
{
    orr_node n;
    orr_trace_node(t->t, i, &n);
    orr_list it = is_data ? orr_node_data_deps(&n) : orr_node_ctrl_deps(&n);
    PyObject *list = PyList_New(0);
    orr_value v;
    while (list && orr_list_next(&it, &v)) {
        PyObject *id = PyLong_FromUnsignedLongLong(v.u + t->shift);
        if (!id || PyList_Append(list, id) < 0)
            Py_CLEAR(list);
        Py_XDECREF(id);
    }
    PyObject *out = list ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return out;
}

static PyObject *deps_of(const core_trace *t, uint32_t i, bool is_data)
{
    const orr_columns *c = t->c;
    const uint32_t *first = is_data ? c->data_first : c->ctrl_first;
    const uint32_t *dep = is_data ? c->data_dep : c->ctrl_dep;
    if (is_data ? c->data_missing : c->ctrl_missing)
        return deps_of_record(t, i, is_data);
    const uint32_t from = first ? first[i] : 0, to = first ? first[i + 1] : 0;
    PyObject *out = PyTuple_New((Py_ssize_t)(to - from));
    for (uint32_t k = from; out && k < to; k++) {
        PyObject *id = PyLong_FromUnsignedLongLong(c->id[dep[k]] + t->shift);
        if (!id || PyTuple_SetItem(out, (Py_ssize_t)(k - from), id) < 0)
            Py_CLEAR(out);
    }
    return out;
}

static PyObject *field_value(core_trace *t, uint32_t i, int field)
{
    const orr_columns *c = t->c;
    if (field == FIELD_NAME)
        return name_text(t, orr_trace_name(t->t, i));
    if (field == FIELD_DATA_DEPS || field == FIELD_CTRL_DEPS)
        return deps_of(t, i, field == FIELD_DATA_DEPS);
    if (field == FIELD_PG_NAME) {
        if (!c->pg_name || c->pg_name[i] == ORR_NO_NAME)
            Py_RETURN_NONE;
        return core_str(orr_trace_text(t->t, c->pg_name[i]));
    }
    const void *data = column_data(c, field);
    switch (fields[field].kind) {
    case CORE_U8:
        return PyLong_FromLong(((const uint8_t *)data)[i]);
    case CORE_I8:
        if (!data || ((const int8_t *)data)[i] == -1)
            Py_RETURN_NONE;
        return PyLong_FromLong(((const int8_t *)data)[i]);
    case CORE_U64:
        return PyLong_FromUnsignedLongLong((data ? ((const uint64_t *)data)[i] : 0) +
                                           (field == FIELD_ID ? t->shift : 0));
    default:
        if (!data || ((const int64_t *)data)[i] == ORR_NO_VALUE)
            Py_RETURN_NONE;
        return PyLong_FromLongLong(((const int64_t *)data)[i]);
    }
}

/* ---- a node ---- */

typedef struct core_node {
    PyObject_HEAD core_trace *trace;
    uint32_t index;
} core_node;

static PyObject *make_node(core_trace *t, uint32_t index)
{
    core_node *n = PyObject_New(core_node, core_node_type);
    if (!n)
        return NULL;
    Py_INCREF(t);
    n->trace = t;
    n->index = index;
    return (PyObject *)n;
}

static void node_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((core_node *)self)->trace);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *node_field(PyObject *self, void *closure)
{
    const core_node *n = (core_node *)self;
    return field_value(n->trace, n->index, (int)(intptr_t)closure);
}

static orr_node record_of(PyObject *self)
{
    orr_node n;
    orr_trace_node(((core_node *)self)->trace->t, ((core_node *)self)->index, &n);
    return n;
}

static PyObject *node_attrs(PyObject *self, void *unused)
{
    const orr_node n = record_of(self);
    (void)unused;
    return core_attrs_dict(orr_node_attrs(&n));
}

static PyObject *node_records(PyObject *self, void *unused)
{
    const orr_node n = record_of(self);
    (void)unused;
    return attrs_list(orr_node_attrs(&n));
}

static PyObject *node_body(PyObject *self, void *unused)
{
    const orr_node n = record_of(self);
    (void)unused;
    return PyBytes_FromStringAndSize((const char *)n.body.ptr, (Py_ssize_t)n.body.len);
}

static PyObject *io_tuple(bool has, const orr_io *io)
{
    if (!has)
        Py_RETURN_NONE;
    return Py_BuildValue("(NNN)", core_str(io->values), core_str(io->shapes), core_str(io->types));
}

static PyObject *node_io(PyObject *self, void *is_output)
{
    const orr_node n = record_of(self);
    return is_output ? io_tuple(n.has_outputs, &n.outputs) : io_tuple(n.has_inputs, &n.inputs);
}

static PyObject *node_type_name(PyObject *self, void *unused)
{
    const orr_node r = record_of(self);
    const char *name = orr_node_type_name(r.type);
    (void)unused;
    return name ? PyUnicode_FromString(name) : PyUnicode_FromFormat("%u", r.type);
}

static PyObject *node_collective(PyObject *self, void *unused)
{
    const core_node *n = (core_node *)self;
    const int8_t *column = n->trace->c->comm_type;
    const char *name =
        column && column[n->index] >= 0 ? orr_collective_name((uint32_t)column[n->index]) : NULL;
    (void)unused;
    if (!name)
        Py_RETURN_NONE;
    return PyUnicode_FromString(name);
}

static PyObject *node_place(PyObject *self, void *unused)
{
    const core_node *n = (core_node *)self;
    const orr_where w = orr_trace_where(n->trace->t, n->index);
    (void)unused;
    PyObject *path = PyUnicode_DecodeFSDefault(w.path);
    PyObject *byte = w.byte == ORR_NO_BYTE ? NULL : PyLong_FromUnsignedLongLong(w.byte);
    if (!byte && !PyErr_Occurred()) {
        Py_INCREF(Py_None);
        byte = Py_None;
    }
    return Py_BuildValue("(NN)", path, byte);
}

static PyObject *node_trace(PyObject *self, void *unused)
{
    (void)unused;
    Py_INCREF(((core_node *)self)->trace);
    return (PyObject *)((core_node *)self)->trace;
}

static PyObject *node_index(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(((core_node *)self)->index);
}

static PyObject *node_get(PyObject *self, PyObject *args)
{
    const char *name;
    PyObject *otherwise = Py_None;
    orr_attr a;
    if (!PyArg_ParseTuple(args, "s|O:get", &name, &otherwise))
        return NULL;
    const orr_node n = record_of(self);
    if (orr_node_attr(&n, name, &a))
        return attr_value(&a);
    Py_INCREF(otherwise);
    return otherwise;
}

static PyObject *node_repr(PyObject *self)
{
    const core_node *n = (core_node *)self;
    PyObject *name = field_value(n->trace, n->index, FIELD_NAME);
    PyObject *type = node_type_name(self, NULL);
    PyObject *id = field_value(n->trace, n->index, FIELD_ID);
    PyObject *out =
        name && type && id ? PyUnicode_FromFormat("<orrery.Node %S %S %R>", id, type, name) : NULL;
    Py_XDECREF(name);
    Py_XDECREF(type);
    Py_XDECREF(id);
    return out;
}

static PyObject *node_compare(PyObject *a, PyObject *b, int how)
{
    if ((how != Py_EQ && how != Py_NE) || Py_TYPE(a) != Py_TYPE(b))
        Py_RETURN_NOTIMPLEMENTED;
    const core_node *x = (core_node *)a, *y = (core_node *)b;
    const bool same = x->trace->t == y->trace->t && x->index == y->index;
    return PyBool_FromLong(same == (how == Py_EQ));
}

static Py_hash_t node_hash(PyObject *self)
{
    const core_node *n = (core_node *)self;
    const Py_hash_t h = (Py_hash_t)((uintptr_t)n->trace->t / 16 * 31 + n->index);
    return h == -1 ? 0 : h;
}

#define AS_CLOSURE(n) ((void *)(intptr_t)(n))
static PyGetSetDef node_fields[] = {
    {"id", node_field, NULL, "The id, unique in its rank.", AS_CLOSURE(0)},
    {"type", node_field, NULL, "Its type as a number: orrery.COMP_NODE and the like.",
     AS_CLOSURE(1)},
    {"duration_us", node_field, NULL, "Recorded duration, microseconds.", AS_CLOSURE(2)},
    {"start_us", node_field, NULL, "Recorded start, microseconds.", AS_CLOSURE(3)},
    {"is_cpu_op", node_field, NULL, "1: runs on the host; None: not said.", AS_CLOSURE(4)},
    {"comm_type", node_field, NULL, "Which collective, as a number; None: none.", AS_CLOSURE(5)},
    {"comm_size", node_field, NULL, "Bytes of a collective or message; None: not said.",
     AS_CLOSURE(6)},
    {"comm_src", node_field, NULL, "Sending rank of a message.", AS_CLOSURE(7)},
    {"comm_dst", node_field, NULL, "Receiving rank of a message.", AS_CLOSURE(8)},
    {"comm_tag", node_field, NULL, "Tag of a message.", AS_CLOSURE(9)},
    {"comm_priority", node_field, NULL, "Priority of a collective.", AS_CLOSURE(10)},
    {"tensor_size", node_field, NULL, "Bytes that a node touches.", AS_CLOSURE(11)},
    {"tensor_loc", node_field, NULL, "Where its tensor is.", AS_CLOSURE(12)},
    {"num_ops", node_field, NULL, "Floating-point operations.", AS_CLOSURE(13)},
    {"stream", node_field, NULL, "Stream on the device.", AS_CLOSURE(14)},
    {"pg_name", node_field, NULL, "Process group of a collective; None: all ranks.",
     AS_CLOSURE(FIELD_PG_NAME)},
    {"name", node_field, NULL, "Its name.", AS_CLOSURE(FIELD_NAME)},
    {"data_deps", node_field, NULL, "Ids of the nodes whose data it needs.",
     AS_CLOSURE(FIELD_DATA_DEPS)},
    {"ctrl_deps", node_field, NULL, "Ids of the nodes that must be over before it.",
     AS_CLOSURE(FIELD_CTRL_DEPS)},
    {"type_name", node_type_name, NULL, "Its type by name: \"COMP_NODE\".", NULL},
    {"collective", node_collective, NULL, "Which collective, by name: \"ALL_REDUCE\"; None: none.",
     NULL},
    {"attrs", node_attrs, NULL, "All attributes, name to value, decoded now.", NULL},
    {"_records", node_records, NULL, "All attributes with kind and doc.", NULL},
    {"_body", node_body, NULL, "Its record, as the current schema has it.", NULL},
    {"inputs", node_io, NULL, "(values, shapes, types) as texts, or None.", NULL},
    {"outputs", node_io, NULL, "(values, shapes, types) as texts, or None.", AS_CLOSURE(1)},
    {"place", node_place, NULL, "(file, byte) of its record.", NULL},
    {"trace", node_trace, NULL, "The trace that it is part of.", NULL},
    {"index", node_index, NULL, "Its position in the trace.", NULL},
    {0},
};

static PyMethodDef node_methods[] = {
    {"get", node_get, METH_VARARGS, "get(name, default=None): one attribute, whatever its name."},
    {0},
};

/* Fields by the address of their name: names in source code are interned, and this lookup costs
 * half of Python's own, through the type and its descriptors.  Other names take the normal path. */
enum { KNOWN_NAMES = 128 };
static struct {
    PyObject *name;
    const PyGetSetDef *field;
} known_names[KNOWN_NAMES];

static size_t place_of(const PyObject *name)
{
    const uintptr_t at = (uintptr_t)name;
    return (at >> 4 ^ at >> 11) % KNOWN_NAMES;
}

static bool learn_names(void)
{
    for (const PyGetSetDef *f = node_fields; f->name; f++) {
        PyObject *name = PyUnicode_InternFromString(f->name);
        if (!name)
            return false;
        size_t at = place_of(name);
        while (known_names[at].name && known_names[at].name != name)
            at = (at + 1) % KNOWN_NAMES;
        known_names[at].name = name; /* kept as long as the module */
        known_names[at].field = f;
    }
    return true;
}

static PyObject *node_attribute(PyObject *self, PyObject *name)
{
    for (size_t at = place_of(name); known_names[at].name; at = (at + 1) % KNOWN_NAMES)
        if (known_names[at].name == name)
            return known_names[at].field->get(self, known_names[at].field->closure);
    return PyObject_GenericGetAttr(self, name);
}

/* ---- iteration ---- */

enum { MOST_FIELDS = 24 };

typedef struct walk {
    PyObject_HEAD core_trace *trace;
    PyObject *row; /* the last row, reused if nobody else holds it */
    uint32_t next;
    int count; /* number of fields; 0: nodes */
    int field[MOST_FIELDS];
} walk;

static PyObject *make_walk(core_trace *t, const int *field, int count)
{
    if (!core_trace_sealed(t))
        return NULL;
    walk *w = (walk *)core_new((PyObject *)walk_type, walk_type);
    if (!w)
        return NULL;
    Py_INCREF(t);
    w->trace = t;
    w->count = count;
    if (count)
        memcpy(w->field, field, (size_t)count * sizeof *field);
    return (PyObject *)w;
}

static void walk_dealloc(PyObject *self)
{
    Py_XDECREF(((walk *)self)->trace);
    Py_XDECREF(((walk *)self)->row);
    core_free(self);
}

static PyObject *walk_next(PyObject *self)
{
    walk *w = (walk *)self;
    if (!w->trace || w->next >= w->trace->c->count)
        return NULL;
    const uint32_t i = w->next++;
    if (!w->count)
        return make_node(w->trace, i);
    if (!w->row || Py_REFCNT(w->row) != 1) {
        Py_XDECREF(w->row);
        w->row = PyTuple_New(w->count);
    }
    for (int k = 0; w->row && k < w->count; k++) {
        PyObject *v = field_value(w->trace, i, w->field[k]);
        if (!v || PyTuple_SetItem(w->row, k, v) < 0)
            Py_CLEAR(w->row);
    }
    Py_XINCREF(w->row);
    return w->row;
}

static PyObject *walk_self(PyObject *self)
{
    Py_INCREF(self);
    return self;
}

/* ---- a trace ---- */

static Py_ssize_t trace_length(PyObject *self)
{
    core_trace *t = (core_trace *)self;
    return core_trace_sealed(t) ? (Py_ssize_t)t->c->count : -1;
}

static PyObject *trace_item(PyObject *self, Py_ssize_t i)
{
    core_trace *t = (core_trace *)self;
    if (!core_trace_sealed(t))
        return NULL;
    if (i < 0 || i >= (Py_ssize_t)t->c->count) {
        PyErr_Format(PyExc_IndexError, "there is no node %zd in a trace of %u", i, t->c->count);
        return NULL;
    }
    return make_node(t, (uint32_t)i);
}

static PyObject *trace_walk(PyObject *self)
{
    return make_walk((core_trace *)self, NULL, 0);
}

static int row_field(const char *name)
{
    static const struct {
        const char *name;
        int field;
    } words[] = {{"name", FIELD_NAME},
                 {"data_deps", FIELD_DATA_DEPS},
                 {"ctrl_deps", FIELD_CTRL_DEPS},
                 {"pg_name", FIELD_PG_NAME}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i].name, name) == 0)
            return words[i].field;
    return find_field(name);
}

static PyObject *trace_rows(PyObject *self, PyObject *args)
{
    int field[MOST_FIELDS];
    const Py_ssize_t count = PyTuple_Size(args);
    if (count < 1 || count > MOST_FIELDS)
        return core_raise_usage("rows: name at least one column, and at most 24");
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *text = PyUnicode_AsUTF8String(PyTuple_GetItem(args, i));
        if (!text)
            return NULL;
        field[i] = row_field(PyBytes_AsString(text));
        if (field[i] == FIELD_COUNT) {
            PyErr_Format(PyExc_KeyError, "there is no column '%s'", PyBytes_AsString(text));
            Py_DECREF(text);
            return NULL;
        }
        Py_DECREF(text);
    }
    return make_walk((core_trace *)self, field, (int)count);
}

/* One value for all rows of a column that no node has. */
static const void *absent(int field)
{
    static const int8_t minus_one = -1;
    static const int64_t no_value = ORR_NO_VALUE;
    static const uint32_t no_name = ORR_NO_NAME;
    static const uint64_t zero = 0;
    return fields[field].kind == CORE_I8    ? (const void *)&minus_one
           : fields[field].kind == CORE_I64 ? (const void *)&no_value
           : fields[field].kind == CORE_U32 ? (const void *)&no_name
                                            : (const void *)&zero;
}

static PyObject *shifted_ids(const core_trace *t)
{
    void *room;
    PyObject *column = core_column_new(CORE_U64, (Py_ssize_t)t->c->count, &room);
    for (uint32_t i = 0; column && i < t->c->count; i++)
        ((uint64_t *)room)[i] = t->c->id[i] + t->shift;
    return column;
}

/* Dependencies as a CSR matrix: first[i] to first[i + 1] in the list of indices. */
static PyObject *edges(const core_trace *t, const char *name)
{
    static const uint32_t zero = 0;
    const orr_columns *c = t->c;
    const bool is_data = name[0] == 'd', is_first = strcmp(name + 4, "_first") == 0;
    const uint32_t *first = is_data ? c->data_first : c->ctrl_first;
    const uint32_t *dep = is_data ? c->data_dep : c->ctrl_dep;
    if (!first)
        return core_column(NULL, &zero, CORE_U32, is_first ? (Py_ssize_t)c->count + 1 : 0, 0);
    return is_first ? core_column(t->keep, first, CORE_U32, (Py_ssize_t)c->count + 1, sizeof *first)
                    : core_column(t->keep, dep, CORE_U32, (Py_ssize_t)first[c->count], sizeof *dep);
}

static PyObject *trace_column(PyObject *self, PyObject *args)
{
    core_trace *t = (core_trace *)self;
    const char *name;
    if (!PyArg_ParseTuple(args, "s:_column", &name) || !core_trace_sealed(t))
        return NULL;
    if (strcmp(name, "data_first") == 0 || strcmp(name, "data_dep") == 0 ||
        strcmp(name, "ctrl_first") == 0 || strcmp(name, "ctrl_dep") == 0)
        return edges(t, name);
    const int field = find_field(name);
    if (field == FIELD_COUNT) {
        PyErr_Format(PyExc_KeyError, "there is no column '%s'", name);
        return NULL;
    }
    if (field == FIELD_ID && t->shift)
        return shifted_ids(t);
    const void *data = column_data(t->c, field);
    return core_column(t->keep, data ? data : absent(field), fields[field].kind,
                       (Py_ssize_t)t->c->count,
                       data ? (Py_ssize_t)kind_size[fields[field].kind] : 0);
}

static PyObject *trace_texts(PyObject *self, PyObject *unused)
{
    core_trace *t = (core_trace *)self;
    (void)unused;
    if (!core_trace_sealed(t))
        return NULL;
    const uint32_t count = orr_trace_text_count(t->t);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (uint32_t i = 0; list && i < count; i++) {
        PyObject *s = core_str(orr_trace_text(t->t, i));
        if (!s || PyList_SetItem(list, (Py_ssize_t)i, s) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *trace_names(PyObject *self, PyObject *unused)
{
    core_trace *t = (core_trace *)self;
    (void)unused;
    if (!core_trace_sealed(t))
        return NULL;
    PyObject *list = PyList_New((Py_ssize_t)t->c->count);
    for (uint32_t i = 0; list && i < t->c->count; i++) {
        PyObject *s = name_text(t, orr_trace_name(t->t, i));
        if (!s || PyList_SetItem(list, (Py_ssize_t)i, s) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *trace_find(PyObject *self, PyObject *args)
{
    core_trace *t = (core_trace *)self;
    unsigned long long id;
    if (!PyArg_ParseTuple(args, "K:find", &id) || !core_trace_sealed(t))
        return NULL;
    const uint32_t i = orr_trace_find(t->t, id - t->shift);
    if (i != ORR_NO_NODE)
        return make_node(t, i);
    PyErr_Format(PyExc_KeyError, "there is no node %llu", id);
    return NULL;
}

typedef struct writing {
    const orr_trace *trace;
    const char *to;
    const orr_write_options *opt;
} writing;

static orr_code do_write(void *data, orr_error *err)
{
    const writing *w = data;
    return orr_trace_write(w->trace, w->to, w->opt, err);
}

static PyObject *trace_write(PyObject *self, PyObject *args)
{
    core_trace *t = (core_trace *)self;
    PyObject *path;
    const char *schema;
    orr_write_options opt = {.size = sizeof opt};
    orr_error err;
    if (!PyArg_ParseTuple(args, "O&z:_write", PyUnicode_FSConverter, &path, &schema))
        return NULL;
    if (!core_trace_sealed(t)) {
        Py_DECREF(path);
        return NULL;
    }
    opt.id_shift = t->shift;
    if (schema && !orr_schema_find(orr_str_of(schema), &opt.schema)) {
        Py_DECREF(path);
        return core_raise_usage("there is no schema of that name");
    }
    PyObject *keep = t->keep;
    writing w = {.trace = t->t, .to = PyBytes_AsString(path), .opt = &opt};
    Py_INCREF(keep);
    const orr_code code = core_watch(do_write, NULL, &w, &err);
    Py_DECREF(keep);
    Py_DECREF(path);
    if (code)
        return core_raise(code, &err);
    Py_RETURN_NONE;
}

/* A trace that was built has a text in brackets as its path, for messages. */
static PyObject *trace_path(const char *path)
{
    return PyUnicode_DecodeFSDefault(path && path[0] != '(' ? path : "");
}

static PyObject *trace_info(PyObject *self, void *what)
{
    core_trace *t = (core_trace *)self;
    if (!core_trace_sealed(t))
        return NULL;
    switch ((int)(intptr_t)what) {
    case 0:
        return trace_path(orr_trace_path(t->t));
    case 1:
        return PyUnicode_FromString(orr_schema_name(orr_trace_schema(t->t)));
    case 2:
        return core_str(orr_trace_version(t->t));
    case 3:
        return PyBool_FromLong(orr_trace_has_metadata(t->t));
    case 4:
        return attrs_list(orr_trace_attrs(t->t));
    default:
        return core_attrs_dict(orr_trace_attrs(t->t));
    }
}

static PyObject *trace_is_open(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((core_trace *)self)->building != NULL);
}

/* ---- building ---- */

/* Memory that a draft points into, until it is appended. */
typedef struct draft_block {
    struct draft_block *next;
    uint64_t data[];
} draft_block;

typedef struct draft_room {
    PyObject *texts; /* list of bytes */
    draft_block *blocks;
} draft_room;

static void *room_take(draft_room *r, size_t count, size_t size)
{
    draft_block *b = PyMem_Calloc(1, sizeof *b + count * size); /* the count is of objects in
                                                                 * memory */
    if (!b) {
        PyErr_NoMemory();
        return NULL;
    }
    b->next = r->blocks;
    r->blocks = b;
    return b->data;
}

static void room_end(draft_room *r)
{
    Py_XDECREF(r->texts);
    while (r->blocks) {
        draft_block *b = r->blocks;
        r->blocks = b->next;
        PyMem_Free(b);
    }
}

static bool room_text(draft_room *r, PyObject *o, orr_str *out)
{
    PyObject *b = NULL;
    if (PyUnicode_Check(o))
        b = PyUnicode_AsEncodedString(o, "utf-8", "surrogateescape");
    else if (PyBytes_Check(o)) {
        Py_INCREF(o);
        b = o;
    } else
        PyErr_SetString(PyExc_TypeError, "expected a text");
    if (!b || (!r->texts && !(r->texts = PyList_New(0))) || PyList_Append(r->texts, b) < 0) {
        Py_XDECREF(b);
        return false;
    }
    *out = (orr_str){PyBytes_AsString(b), (size_t)PyBytes_Size(b)};
    Py_DECREF(b);
    return true;
}

/* A new list, since its items may run code that changes the given one.  When memory runs out,
 * PySequence_List of Python 3.11 leaks a reference to its argument. */
static PyObject *copy_of(PyObject *o)
{
    if (PyList_Check(o))
        return PyList_GetSlice(o, 0, PyList_Size(o));
    if (!PyTuple_Check(o))
        return PySequence_List(o);
    const Py_ssize_t n = PyTuple_Size(o);
    PyObject *list = PyList_New(n);
    for (Py_ssize_t i = 0; list && i < n; i++) {
        PyObject *item = PyTuple_GetItem(o, i);
        Py_INCREF(item);
        PyList_SetItem(list, i, item);
    }
    return list;
}

static bool room_ids(draft_room *r, PyObject *o, const uint64_t **out, size_t *count)
{
    if (o == Py_None)
        return true;
    PyObject *list = copy_of(o);
    const Py_ssize_t n = list ? PyList_Size(list) : -1;
    uint64_t *ids = n > 0 ? room_take(r, (size_t)n, sizeof *ids) : NULL;
    bool ok = n == 0 || ids;
    for (Py_ssize_t i = 0; ok && i < n; i++) {
        ids[i] = PyLong_AsUnsignedLongLong(PyList_GetItem(list, i));
        ok = !(ids[i] == UINT64_MAX && PyErr_Occurred());
    }
    Py_XDECREF(list);
    *out = ids;
    *count = ok && n > 0 ? (size_t)n : 0;
    return ok;
}

static bool read_value(draft_room *r, orr_value_kind kind, PyObject *o, orr_value *out)
{
    switch (kind) {
    case ORR_VALUE_DOUBLE:
    case ORR_VALUE_FLOAT:
        out->d = PyFloat_AsDouble(o);
        break;
    case ORR_VALUE_STRING:
    case ORR_VALUE_BYTES:
        return room_text(r, o, &out->s);
    case ORR_VALUE_BOOL:
        out->u = PyObject_IsTrue(o) == 1;
        break;
    case ORR_VALUE_UINT32:
    case ORR_VALUE_UINT64:
    case ORR_VALUE_FIXED32:
    case ORR_VALUE_FIXED64:
        out->u = PyLong_AsUnsignedLongLong(o);
        break;
    default:
        out->i = PyLong_AsLongLong(o);
    }
    return !PyErr_Occurred();
}

static bool read_attr(draft_room *r, PyObject *row, orr_attr *out)
{
    PyObject *name, *value, *doc;
    int kind, is_list;
    if (!PyTuple_Check(row)) {
        PyErr_SetString(PyExc_TypeError, "an attribute is (name, kind, is_list, value, doc)");
        return false;
    }
    if (!PyArg_ParseTuple(row, "OipOO", &name, &kind, &is_list, &value, &doc))
        return false;
    if (kind < 0 || kind >= ORR_VALUE_KIND_COUNT) {
        PyErr_Format(PyExc_ValueError, "there is no kind %d of attributes", kind);
        return false;
    }
    *out = (orr_attr){.kind = (orr_value_kind)kind, .is_list = is_list != 0};
    if (!room_text(r, name, &out->name) || !room_text(r, doc, &out->doc))
        return false;
    if (!is_list)
        return kind == ORR_VALUE_NONE || read_value(r, out->kind, value, &out->value);
    PyObject *list = copy_of(value);
    const Py_ssize_t n = list ? PyList_Size(list) : -1;
    orr_value *items = n >= 0 ? room_take(r, (size_t)n, sizeof *items) : NULL;
    bool ok = items != NULL;
    for (Py_ssize_t i = 0; ok && i < n; i++)
        ok = read_value(r, out->kind, PyList_GetItem(list, i), &items[i]);
    Py_XDECREF(list);
    out->items = items;
    out->item_count = ok ? (size_t)n : 0;
    return ok;
}

static bool read_attrs(draft_room *r, PyObject *o, const orr_attr **out, size_t *count)
{
    if (o == Py_None)
        return true;
    PyObject *list = copy_of(o);
    const Py_ssize_t n = list ? PyList_Size(list) : -1;
    orr_attr *attrs = n > 0 ? room_take(r, (size_t)n, sizeof *attrs) : NULL;
    bool ok = n == 0 || attrs;
    for (Py_ssize_t i = 0; ok && i < n; i++)
        ok = read_attr(r, PyList_GetItem(list, i), &attrs[i]);
    Py_XDECREF(list);
    *out = attrs;
    *count = ok && n > 0 ? (size_t)n : 0;
    return ok;
}

static bool read_io(draft_room *r, PyObject *o, const orr_io **out)
{
    PyObject *values, *shapes, *types;
    if (o == Py_None)
        return true;
    if (!PyTuple_Check(o)) {
        PyErr_SetString(PyExc_TypeError, "inputs and outputs are (values, shapes, types)");
        return false;
    }
    orr_io *io = room_take(r, 1, sizeof *io);
    if (!io || !PyArg_ParseTuple(o, "OOO", &values, &shapes, &types) ||
        !room_text(r, values, &io->values) || !room_text(r, shapes, &io->shapes) ||
        !room_text(r, types, &io->types))
        return false;
    *out = io;
    return true;
}

/* For PyArg_ParseTuple, whose own "K" accepts -1. */
static int whole_number(PyObject *o, void *out)
{
    const uint64_t n = PyLong_AsUnsignedLongLong(o);
    memcpy(out, &n, sizeof n);
    return !(n == UINT64_MAX && PyErr_Occurred());
}

static PyObject *trace_add(PyObject *self, PyObject *args)
{
    core_trace *t = (core_trace *)self;
    uint64_t id, start, duration;
    unsigned int type;
    PyObject *name, *data, *ctrl, *inputs, *outputs, *attrs;
    draft_room r = {0};
    orr_error err;
    if (!PyArg_ParseTuple(args, "O&OIOOO&O&OOO:_add", whole_number, &id, &name, &type, &data, &ctrl,
                          whole_number, &start, whole_number, &duration, &inputs, &outputs, &attrs))
        return NULL;
    if (!t->building)
        return core_raise_usage("this trace is complete: nodes are added before it is read, "
                                "written or run");
    orr_draft d = {.id = id, .type = type, .start_us = start, .duration_us = duration};
    const bool ok =
        room_text(&r, name, &d.name) && room_ids(&r, data, &d.data_deps, &d.data_count) &&
        room_ids(&r, ctrl, &d.ctrl_deps, &d.ctrl_count) && read_io(&r, inputs, &d.inputs) &&
        read_io(&r, outputs, &d.outputs) && read_attrs(&r, attrs, &d.attrs, &d.attr_count);
    const orr_code code = ok ? orr_trace_append(t->building, &d, &err) : ORR_OK;
    room_end(&r);
    if (code)
        return core_raise(code, &err);
    if (!ok)
        return NULL;
    Py_RETURN_NONE;
}

/* _begin(version, attrs): this empty object becomes a trace to build.  version None: no
 * metadata. */
static PyObject *trace_begin(PyObject *self, PyObject *args)
{
    core_trace *t = (core_trace *)self;
    PyObject *version, *attrs;
    draft_room r = {0};
    orr_meta meta = {0};
    orr_error err;
    orr_trace *made = NULL;
    orr_code code = ORR_OK;
    if (!PyArg_ParseTuple(args, "OO:_begin", &version, &attrs))
        return NULL;
    if (t->keep)
        return core_raise_usage("this trace exists already");
    const bool has_meta = version != Py_None;
    const bool ok = !has_meta || (room_text(&r, version, &meta.version) &&
                                  read_attrs(&r, attrs, &meta.attrs, &meta.attr_count));
    if (ok)
        code = orr_trace_create(has_meta ? &meta : NULL, &made, &err);
    room_end(&r);
    if (!ok)
        return NULL;
    if (code)
        return core_raise(code, &err);
    t->keep = PyCapsule_New(made, "orr_trace", destroy_trace);
    if (!t->keep) {
        orr_trace_destroy(made);
        return NULL;
    }
    t->building = made;
    Py_RETURN_NONE;
}

/* _copy(node): appends a node of any trace unchanged, byte by byte. */
static PyObject *trace_copy(PyObject *self, PyObject *args)
{
    core_trace *t = (core_trace *)self;
    PyObject *node;
    orr_error err;
    if (!PyArg_ParseTuple(args, "O!:_copy", (PyObject *)core_node_type, &node))
        return NULL;
    if (!t->building)
        return core_raise_usage("this trace is complete");
    const orr_node n = record_of(node);
    const orr_code code = orr_trace_copy(t->building, &n, NULL, &err);
    if (code)
        return core_raise(code, &err);
    Py_RETURN_NONE;
}

/* ---- single records, for orrery.schema ---- */

/* encode_node(id, name, type, data, ctrl, start, duration, in, out, attrs) -> its record, without a
 * length */
static PyObject *encode_node(PyObject *module, PyObject *args)
{
    orr_trace *made;
    orr_node n;
    orr_error err;
    (void)module;
    orr_code code = orr_trace_create(NULL, &made, &err);
    if (code)
        return core_raise(code, &err);
    core_trace *t = (core_trace *)core_new((PyObject *)core_trace_type, core_trace_type);
    if (!t) {
        orr_trace_destroy(made);
        return NULL;
    }
    t->building = made;
    PyObject *out = trace_add((PyObject *)t, args);
    Py_XDECREF(out);
    const bool ok = out && core_trace_sealed(t);
    Py_DECREF(t);
    out = NULL;
    if (ok) {
        orr_trace_node(made, 0, &n);
        out = PyBytes_FromStringAndSize((const char *)n.body.ptr, (Py_ssize_t)n.body.len);
    }
    orr_trace_destroy(made);
    return out;
}

/* decode_node(record) -> a node of a trace of its own */
static PyObject *decode_node(PyObject *module, PyObject *args)
{
    const char *bytes;
    Py_ssize_t len;
    orr_read_options opt = {
        .size = sizeof opt, .schema = ORR_SCHEMA_CURRENT, .leniency = ORR_KEEP_UNKNOWN};
    orr_trace *made = NULL;
    orr_error err;
    (void)module;
    if (!PyArg_ParseTuple(args, "y#:decode_node", &bytes, &len))
        return NULL;
    /* The trace points into its input: an empty metadata record, the length, the record. */
    PyObject *frame = PyBytes_FromStringAndSize(NULL, len + 12);
    if (!frame)
        return NULL;
    char *at = PyBytes_AsString(frame);
    size_t used = 1, rest = (size_t)len;
    at[0] = 0;
    for (; rest >= 128; rest >>= 7)
        at[used++] = (char)(0x80 | (rest & 0x7f));
    at[used++] = (char)rest;
    memcpy(at + used, bytes, (size_t)len);
    const orr_span span = {(const uint8_t *)at, used + (size_t)len};
    const orr_code code = orr_trace_parse(span, "record", &opt, &made, &err);
    if (code) {
        Py_DECREF(frame);
        return core_raise(code, &err);
    }
    core_trace *t = (core_trace *)core_trace_take((PyObject *)core_trace_type, made);
    PyObject *keep = t ? t->keep : NULL;
    /* Freed in this order: the trace, then its bytes. */
    if (keep && PyCapsule_SetContext(keep, frame) == 0) {
        PyCapsule_SetDestructor(keep, destroy_framed);
        PyObject *node = t->c->count == 1 ? make_node(t, 0) : core_raise_usage("not one record");
        Py_DECREF(t);
        return node;
    }
    Py_DECREF(frame);
    Py_XDECREF(t);
    return NULL;
}

PyMethodDef core_trace_functions[] = {
    {"encode_node", encode_node, METH_VARARGS, "encode_node(...) -> bytes"},
    {"decode_node", decode_node, METH_VARARGS, "decode_node(bytes) -> Node"},
    {0},
};

static PyMethodDef trace_methods[] = {
    {"rows", trace_rows, METH_VARARGS,
     "rows(*columns): tuples of these columns, node by node; the fastest loop in Python."},
    {"find", trace_find, METH_VARARGS, "find(id): the node with this id; KeyError: there is none."},
    {"names", trace_names, METH_NOARGS, "The names of all nodes, as a list."},
    {"_texts", trace_texts, METH_NOARGS, "Texts behind the numbers of the column pg_name."},
    {"_column", trace_column, METH_VARARGS, "_column(name): a Column."},
    {"_write", trace_write, METH_VARARGS, "_write(path, schema)"},
    {"_begin", trace_begin, METH_VARARGS, "_begin(version, attrs)"},
    {"_add", trace_add, METH_VARARGS,
     "_add(id, name, type, data, ctrl, start, duration, in, out, attrs)"},
    {"_copy", trace_copy, METH_VARARGS, "_copy(node)"},
    {0},
};

static PyGetSetDef trace_fields[] = {
    {"path", trace_info, NULL, "The file it was read from; empty: it was made.", AS_CLOSURE(0)},
    {"schema", trace_info, NULL, "Generation of the file format.", AS_CLOSURE(1)},
    {"version", trace_info, NULL, "Version in the metadata.", AS_CLOSURE(2)},
    {"has_metadata", trace_info, NULL, "Whether the file has a metadata record.", AS_CLOSURE(3)},
    {"_meta_records", trace_info, NULL, "Attributes of the metadata with kind and doc.",
     AS_CLOSURE(4)},
    {"metadata", trace_info, NULL, "Attributes of the metadata.", AS_CLOSURE(5)},
    {"is_open", trace_is_open, NULL, "Whether nodes can still be added.", NULL},
    {0},
};

static bool add_names(PyObject *module)
{
    PyObject *list = PyList_New(0);
    bool ok = list != NULL;
    for (int i = 0; ok && i < FIELD_COUNT; i++) {
        PyObject *s = PyUnicode_FromString(fields[i].name);
        ok = s && PyList_Append(list, s) == 0;
        Py_XDECREF(s);
    }
    if (ok && PyModule_AddObject(module, "COLUMNS", list) == 0)
        return true;
    Py_XDECREF(list);
    return false;
}

/* Node types and collectives by name, as numbers. */
static bool add_numbers(PyObject *module)
{
    PyObject *types = PyDict_New(), *collectives = PyDict_New(), *members = PyDict_New();
    bool ok = types && collectives && members;
    for (uint32_t i = 0; ok && i < ORR_NODE_TYPE_COUNT; i++)
        if (orr_node_type_name(i))
            ok = core_put(types, orr_node_type_name(i), PyLong_FromLong((long)i));
    for (uint32_t i = 0; ok && i < ORR_COLL_COUNT; i++)
        if (orr_collective_name(i))
            ok = core_put(collectives, orr_collective_name(i), PyLong_FromLong((long)i));
    for (int i = 1; ok && i < ORR_VALUE_KIND_COUNT; i++)
        ok = core_put(members, orr_value_member((orr_value_kind)i, false),
                      Py_BuildValue("(iO)", i, Py_False)) &&
             core_put(members, orr_value_member((orr_value_kind)i, true),
                      Py_BuildValue("(iO)", i, Py_True));
    return ok && PyModule_AddObject(module, "NODE_TYPES", types) == 0 &&
           PyModule_AddObject(module, "COLLECTIVES", collectives) == 0 &&
           PyModule_AddObject(module, "MEMBERS", members) == 0;
}

bool core_trace_ready(PyObject *module)
{
    static PyType_Slot trace_slots[] = {{Py_tp_dealloc, trace_dealloc},
                                        {Py_sq_item, trace_item},
                                        {Py_sq_length, trace_length},
                                        {Py_tp_iter, trace_walk},
                                        {Py_tp_methods, trace_methods},
                                        {Py_tp_getset, trace_fields},
                                        {Py_tp_doc, CORE_DOC("A trace of one rank.")},
                                        {0, NULL}};
    static PyType_Spec trace_spec = {"orrery._core.Trace", sizeof(core_trace), 0,
                                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, trace_slots};
    static PyType_Slot node_slots[] = {
        {Py_tp_dealloc, node_dealloc},
        {Py_tp_getset, node_fields},
        {Py_tp_getattro, node_attribute},
        {Py_tp_new, core_no_new},
        {Py_tp_methods, node_methods},
        {Py_tp_repr, node_repr},
        {Py_tp_richcompare, node_compare},
        {Py_tp_hash, node_hash},
        {Py_tp_doc,
         CORE_DOC(
             "One operation of a trace: a trace and an index; attributes are read when asked for.")},
        {0, NULL}};
    static PyType_Spec node_spec = {"orrery.Node", sizeof(core_node), 0, Py_TPFLAGS_DEFAULT,
                                    node_slots};
    static PyType_Slot walk_slots[] = {{Py_tp_dealloc, walk_dealloc},
                                       {Py_tp_new, core_no_new},
                                       {Py_tp_iter, walk_self},
                                       {Py_tp_iternext, walk_next},
                                       {0, NULL}};
    static PyType_Spec walk_spec = {"orrery._core.Walk", sizeof(walk), 0, Py_TPFLAGS_DEFAULT,
                                    walk_slots};
    core_trace_type = core_add_type(module, &trace_spec, "Trace");
    core_node_type = core_trace_type ? core_add_type(module, &node_spec, "Node") : NULL;
    walk_type = core_node_type ? core_add_type(module, &walk_spec, "Walk") : NULL;
    return walk_type && learn_names() && add_names(module) && add_numbers(module);
}
