/* SPDX-License-Identifier: Apache-2.0 */
/* core_make.c - traces from other sources: models, PyTorch, workloads of other programs. */
#include "core.h"

#include <orrery/lab/capture.h>
#include <orrery/lab/export.h>
#include <orrery/lab/flexflow.h>
#include <orrery/lab/fx.h>
#include <orrery/lab/goal.h>
#include <orrery/lab/goal_traces.h>
#include <orrery/lab/hardware.h>
#include <orrery/lab/layers.h>
#include <orrery/lab/link.h>
#include <orrery/lab/llm.h>
#include <orrery/lab/machine.h>
#include <orrery/lab/model.h>
#include <orrery/lab/pytorch.h>
#include <orrery/lab/simai.h>
#include <orrery/lab/software.h>
#include <orrery/lab/units.h>

#include <string.h>

/* ---- stage ---- */

static int word_of(const char *const *words, const char *text)
{
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], text) == 0)
            return i;
    return -1;
}

static bool take_word(
    PyObject *o, const char *name, const char *const *words, const char *all, int *out)
{
    const char *text = core_text(o, name);
    *out = text ? word_of(words, text) : 0;
    if (*out >= 0)
        return true;
    orr_error err;
    core_raise(orr_fail(&err, ORR_EUSAGE, NULL, "%s '%s': there are %s", name, text, all), &err);
    return false;
}

static bool take_software(const char *name, const orr_software **out)
{
    char names[400] = "";
    size_t used = 0;
    orr_error err;
    const orr_software *s;
    *out = name ? orr_software_find(name) : orr_software_at(0);
    if (*out)
        return true;
    for (size_t i = 0; (s = orr_software_at(i)) && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", s->name);
    core_raise(orr_fail(&err, ORR_EUSAGE, NULL, "software '%s': there are %s", name, names), &err);
    return false;
}

/* Its memory and software; and check that it has a device per rank. */
static bool take_machine(PyObject *o, orr_llm_options *l)
{
    const char *name = core_text(o, "machine");
    orr_machine m;
    orr_error err;
    if (!name)
        return !PyErr_Occurred();
    const orr_code code = orr_machine_for(name, orr_llm_ranks(l), &m, &err);
    if (code) {
        core_raise(code, &err);
        return false;
    }
    l->device_bytes = l->device_bytes ? l->device_bytes : m.memory;
    if (l->sends_once && !l->node_ranks)
        l->node_ranks = m.devices;
    if (core_object(o, "software") || PyErr_Occurred() || !m.software[0])
        return !PyErr_Occurred();
    return take_software(m.software, &l->software);
}

/* "fp8_scaling" for "fp8-scaling". */
static void name_key(const char *name, char key[ORR_LLM_OPTION_ROOM])
{
    snprintf(key, ORR_LLM_OPTION_ROOM, "%s", name);
    for (char *c = key; *c; c++)
        *c = *c == '-' ? '_' : *c;
}

/* Its value as a text, in room where it is a number; NULL: not given, or an exception. */
static const char *value_text(PyObject *o, const orr_llm_option *n, const char *key, char room[24])
{
    if (n->kind == ORR_LLM_FLAG)
        return core_flag(o, key) ? "" : NULL;
    if (n->kind != ORR_LLM_COUNT && n->kind != ORR_LLM_BYTES)
        return core_text(o, key);
    const uint64_t value =
        n->kind == ORR_LLM_COUNT ? core_bounded(o, key, n->most) : core_count(o, key);
    snprintf(room, 24, "%llu%s", (unsigned long long)value, n->kind == ORR_LLM_BYTES ? "B" : "");
    return value ? room : NULL;
}

/* What stage and plan have in common, by the library's table. */
static bool take_named(PyObject *o, orr_llm_options *l)
{
    const orr_llm_option *n;
    orr_error err;
    for (size_t i = 0; (n = orr_llm_option_at(i)) && !PyErr_Occurred(); i++) {
        char key[ORR_LLM_OPTION_ROOM], room[24];
        name_key(n->name, key);
        const char *text = strcmp(key, "software") == 0 ? NULL : value_text(o, n, key, room);
        const orr_code code = text ? orr_llm_option_set(l, key, text, &err) : ORR_OK;
        if (code)
            core_raise(code, &err);
    }
    return !PyErr_Occurred();
}

PyObject *core_llm_named(const orr_llm_options *l)
{
    const orr_llm_option *n;
    PyObject *d = PyDict_New();
    for (size_t i = 0; d && (n = orr_llm_option_at(i)); i++) {
        char key[ORR_LLM_OPTION_ROOM], text[ORR_LLM_OPTION_ROOM];
        orr_bytes bytes = 0;
        if (!orr_llm_option_text(l, n->name, text, sizeof text))
            continue;
        name_key(n->name, key);
        PyObject *value = n->kind == ORR_LLM_FLAG    ? PyBool_FromLong(1)
                          : n->kind == ORR_LLM_COUNT ? PyLong_FromString(text, NULL, 10)
                          : n->kind == ORR_LLM_BYTES && !orr_bytes_parse(text, &bytes, NULL)
                              ? PyLong_FromUnsignedLongLong((unsigned long long)bytes)
                              : PyUnicode_FromString(text);
        if (!core_put(d, key, value))
            Py_CLEAR(d);
    }
    return d;
}

static bool take_ends(PyObject *o, orr_llm_options *l)
{
    l->first_layers = core_count(o, "first_layers");
    l->last_layers = core_count(o, "last_layers");
    l->bare_first = core_object(o, "first_layers") && !l->first_layers;
    l->bare_last = core_object(o, "last_layers") && !l->last_layers;
    return !PyErr_Occurred();
}

static bool take_stage(PyObject *o, orr_llm_options *l)
{
    static const char *const recompute[] = {"none", "selective", "full", "operators", NULL};
    int recompute_form;
    const char *pipeline = core_text(o, "pipeline");
    *l = (orr_llm_options){
        .tp = core_small(o, "tp"),
        .cp = core_small(o, "cp"),
        .pp = core_small(o, "pp"),
        .dp = core_small(o, "dp"),
        .ep = core_small(o, "ep"),
        .batch = core_count(o, "batch"),
        .micro_batch = core_count(o, "micro_batch"),
        .seq = core_count(o, "seq"),
        .no_sequence_parallel = core_flag(o, "no_sequence_parallel"),
        .chunks = core_small(o, "chunks"),
        .zero = core_small(o, "zero"),
        .forward_only = core_flag(o, "forward"),
        .steps = core_small(o, "steps"),
        .device_bytes = core_count(o, "device_bytes"),
    };
    if (PyErr_Occurred() ||
        !take_word(o, "recompute", recompute, "none, selective, full and operators",
                   &recompute_form) ||
        !take_ends(o, l))
        return false;
    l->recompute = (orr_recompute)recompute_form;
    if (recompute_form && core_object(o, "recompute_parts"))
        return core_raise_usage("recompute_parts and recompute cannot be used together");
    if (pipeline && !orr_pipeline_find(orr_str_of(pipeline), &l->pipeline))
        return core_raise_usage(
            "pipeline: there are 1f1b, gpipe, interleaved, zero-bubble, zb-v, dualpipe-v and dualpipe");
    const char *software = core_text(o, "software");
    return !PyErr_Occurred() && take_named(o, l) && take_software(software, &l->software);
}

static bool change_sizes(PyObject *o, orr_model *m)
{
    const orr_model_sizes sizes = {.layers = core_count(o, "layers"),
                                   .hidden = core_count(o, "hidden"),
                                   .heads = core_count(o, "heads"),
                                   .kv_heads = core_count(o, "kv_heads"),
                                   .ffn = core_count(o, "ffn"),
                                   .vocab = core_count(o, "vocab")};
    orr_error err;
    const orr_code code = PyErr_Occurred() ? ORR_OK : orr_model_resize(m, &sizes, &err);
    if (code)
        core_raise(code, &err);
    return !PyErr_Occurred();
}

bool core_llm_options(PyObject *o, orr_model *m, orr_llm_options *out)
{
    return take_stage(o, out) && change_sizes(o, m);
}

static PyObject *memory_list(const orr_model *m, const orr_llm_options *l)
{
    PyObject *list = PyList_New(0);
    for (uint32_t p = 0; list && p < l->pp; p++) {
        orr_llm_memory x;
        orr_error err;
        const orr_code code = orr_llm_memory_of(m, l, p, &x, &err);
        PyObject *d =
            code ? core_raise(code, &err)
                 : Py_BuildValue("{s:I,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:N}", "stage", p, "parameters",
                                 (unsigned long long)x.parameters, "weights_bytes",
                                 (unsigned long long)x.weights, "gradients_bytes",
                                 (unsigned long long)x.grads, "optimizer_bytes",
                                 (unsigned long long)x.optimizer, "activations_bytes",
                                 (unsigned long long)x.activations, "working_bytes",
                                 (unsigned long long)x.working, "peak_bytes",
                                 (unsigned long long)x.peak, "fits", PyBool_FromLong(x.fits));
        if (!d || PyList_Append(list, d) < 0)
            Py_CLEAR(list);
        Py_XDECREF(d);
    }
    return list;
}

static PyObject *stage_dict(const orr_model *m, const orr_llm_options *l)
{
    orr_model_counts n;
    orr_model_flops f;
    orr_error err;
    orr_model_count(m, &n);
    const orr_model_work work = {
        .tokens = l->seq, .is_square = l->full_attention, .has_mtp = l->has_mtp};
    const orr_code code = orr_model_compute(m, &work, &f, &err);
    if (code)
        return core_raise(code, &err);
    PyObject *memory = memory_list(m, l);
    if (!memory)
        return NULL;
    return Py_BuildValue("{s:s,s:K,s:K,s:I,s:K,s:K,s:d,s:K,s:N}", "model", m->name, "parameters",
                         (unsigned long long)n.total, "active_parameters",
                         (unsigned long long)n.active, "ranks", orr_llm_ranks(l), "batch",
                         (unsigned long long)l->batch, "seq", (unsigned long long)l->seq, "flops",
                         (double)f.training * (double)l->batch, "device_bytes",
                         (unsigned long long)l->device_bytes, "memory", memory);
}

typedef struct staging {
    const orr_model *model;
    const orr_llm_options *options;
    orr_set *set;
} staging;

static orr_code do_stage(void *data, orr_error *err)
{
    staging *s = data;
    return orr_llm_training(s->model, s->options, &s->set, err);
}

static void undo_stage(void *data)
{
    orr_set_close(((staging *)data)->set);
}

/* stage(cls, model, options) -> (set, facts) */
static PyObject *stage(PyObject *module, PyObject *args)
{
    PyObject *cls, *options;
    const char *name;
    orr_model m;
    orr_llm_options l;
    orr_error err;
    (void)module;
    if (!PyArg_ParseTuple(args, "OsO!:stage", &cls, &name, &PyDict_Type, &options))
        return NULL;
    orr_code code = orr_model_load(name, &m, &err);
    if (code)
        return core_raise(code, &err);
    if (!core_llm_options(options, &m, &l) || !take_machine(options, &l))
        return NULL;
    const char *order = core_text(options, "order"), *layout = core_text(options, "layout");
    if (PyErr_Occurred())
        return NULL;
    if (order) {
        l.pipeline = ORR_PIPELINE_OWN;
        code = orr_pipeline_order_open(order, &l.order, &err);
    }
    if (!code && layout)
        code = orr_stage_layout_parse(layout, &l.layout, &err);
    if (!code)
        code = orr_llm_complete(&m, &l, &err);
    staging s = {.model = &m, .options = &l};
    PyObject *facts = code ? NULL : stage_dict(&m, &l);
    if (facts)
        code = core_watch(do_stage, undo_stage, &s, &err);
    orr_pipeline_order_close(l.order);
    orr_stage_layout_close(l.layout);
    if (code) {
        Py_XDECREF(facts);
        return core_raise(code, &err);
    }
    if (!facts) {
        undo_stage(&s);
        return NULL;
    }
    return Py_BuildValue("(NN)", core_set_take(cls, s.set), facts);
}

/* ---- link ---- */

static PyObject *rank_dict(const orr_link_rank *r)
{
    PyObject *d = PyDict_New();
    bool ok =
        d && core_put(d, "rank", PyLong_FromUnsignedLong(r->rank)) &&
        core_put(d, "is_guessed", PyBool_FromLong(r->is_guessed)) &&
        core_put(d, "host", r->host ? PyUnicode_DecodeFSDefault(r->host) : Py_BuildValue("")) &&
        core_put(d, "device",
                 r->device ? PyUnicode_DecodeFSDefault(r->device) : Py_BuildValue("")) &&
        core_put(d, "clock_ns", PyLong_FromLongLong(r->clock_ns)) &&
        core_put(d, "host_scale", PyFloat_FromDouble(r->report.host.scale)) &&
        core_put(d, "collectives", PyLong_FromUnsignedLongLong(r->report.collectives)) &&
        core_put(d, "messages", PyLong_FromUnsignedLongLong(r->report.messages));
    for (int k = 0; ok && k < ORR_LINK_COUNTERS; k++)
        if (r->counts.of[k])
            ok = core_put(d, orr_link_counter_name((orr_link_counter)k),
                          PyLong_FromUnsignedLongLong(r->counts.of[k]));
    if (!ok)
        Py_CLEAR(d);
    return d;
}

static PyObject *job_dict(const orr_link_job *job)
{
    PyObject *ranks = PyList_New(0);
    for (uint32_t i = 0; ranks && i < orr_link_job_rank_count(job); i++) {
        PyObject *d = rank_dict(orr_link_job_rank(job, i));
        if (!d || PyList_Append(ranks, d) < 0)
            Py_CLEAR(ranks);
        Py_XDECREF(d);
    }
    return ranks ? Py_BuildValue("{s:N,s:K,s:K}", "ranks", ranks, "groups_inferred",
                                 (unsigned long long)orr_link_job_inferred(job), "groups_unknown",
                                 (unsigned long long)orr_link_job_unknown(job))
                 : NULL;
}

typedef struct linking {
    const char *const *paths;
    size_t count;
    const orr_link_options *opt;
    bool wants_timeline;
    orr_link_job *job;
    orr_set *set;
    orr_timeline *timeline;
} linking;

static orr_code do_link(void *data, orr_error *err)
{
    linking *l = data;
    orr_code code = orr_link_job_open(l->paths, l->count, l->opt, &l->job, err);
    if (!code)
        code = orr_link_job_take_set(l->job, &l->set, err);
    if (!code && l->wants_timeline && (code = orr_link_job_timeline(l->job, &l->timeline, err))) {
        orr_set_close(l->set);
        l->set = NULL;
    }
    return code;
}

static void undo_link(void *data)
{
    linking *l = data;
    orr_set_close(l->set);
    orr_timeline_destroy(l->timeline);
    l->set = NULL;
    l->timeline = NULL;
}

static const char **path_list(PyObject *list, size_t *count)
{
    const Py_ssize_t n = PyList_Size(list);
    const char **paths = n > 0 ? PyMem_Calloc((size_t)n, sizeof *paths) : NULL;
    for (Py_ssize_t i = 0; paths && i < n; i++)
        paths[i] = PyBytes_AsString(PyList_GetItem(list, i));
    *count = paths ? (size_t)n : 0;
    if (!paths && !PyErr_Occurred())
        core_raise_usage("link: no paths");
    return paths;
}

/* link(set class, timeline class or None, paths, options) -> (set, timeline, facts) */
static PyObject *link_ranks(PyObject *module, PyObject *args)
{
    PyObject *cls, *timeline_cls, *list, *o;
    orr_error err;
    size_t count;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOO!O!:link", &cls, &timeline_cls, &PyList_Type, &list,
                          &PyDict_Type, &o))
        return NULL;
    const orr_link_options opt = {.is_strict = core_flag(o, "strict"),
                                  .has_step = core_object(o, "step") != NULL,
                                  .step = (int64_t)core_bounded(o, "step", INT64_MAX),
                                  .threads = core_small(o, "threads"),
                                  .host_scale = core_number(o, "host_scale", -1)};
    const char **paths = PyErr_Occurred() ? NULL : path_list(list, &count);
    if (!paths)
        return NULL;
    linking l = {
        .paths = paths, .count = count, .opt = &opt, .wants_timeline = timeline_cls != Py_None};
    const orr_code code = core_watch(do_link, undo_link, &l, &err);
    PyMem_Free((void *)paths);
    PyObject *facts = code ? core_raise(code, &err) : job_dict(l.job);
    orr_link_job_close(l.job);
    if (!facts) {
        undo_link(&l);
        return NULL;
    }
    PyObject *t =
        l.wants_timeline ? core_timeline_take(timeline_cls, l.timeline) : Py_BuildValue("");
    return Py_BuildValue("(NNN)", core_set_take(cls, l.set), t, facts);
}

/* ---- convert ---- */

typedef struct conversion {
    const char *path, *dims, *model;
    uint32_t ranks, passes, mhz, rank;
    uint32_t dim_sizes[16], dim_count;
    bool has_rank, updates;
    double host_scale;
    orr_fx_options fx;
    orr_chip own_chip; /* of a file */
    orr_code (*make)(struct conversion *c, orr_set **out, orr_error *err);
    orr_set *set;
} conversion;

static orr_code from_text(conversion *c, orr_set **out, orr_error *err)
{
    const orr_layers_expand opt = {.ranks = c->ranks,
                                   .passes = c->passes ? c->passes : 1,
                                   .with_updates = c->updates,
                                   .dims = c->dim_count,
                                   .dim_sizes = c->dim_count > 1 ? c->dim_sizes : NULL};
    orr_layers *t;
    orr_code code = orr_layers_read(c->path, NULL, &t, err);
    if (code)
        return code;
    code = orr_layers_set(t, &opt, out, err);
    orr_layers_free(t);
    return code;
}

static orr_code from_flexflow(conversion *c, orr_set **out, orr_error *err)
{
    const orr_flexflow_expand opt = {.mhz = c->mhz};
    orr_flexflow *g;
    orr_code code = orr_flexflow_read(c->path, &g, err);
    if (code)
        return code;
    code = orr_flexflow_set(g, &opt, out, err);
    orr_flexflow_free(g);
    return code;
}

static orr_code from_simai(conversion *c, orr_set **out, orr_error *err)
{
    const orr_simai_options opt = {.ranks = c->ranks, .passes = c->passes};
    orr_simai_report r;
    return orr_simai_read(c->path, &opt, out, &r, err);
}

static orr_code from_pytorch(conversion *c, orr_set **out, orr_error *err)
{
    const orr_pytorch_options opt = {
        .has_rank = c->has_rank, .rank = c->rank, .host_scale = c->host_scale};
    orr_linked *l;
    orr_trace *t;
    orr_code code = orr_linked_read(c->path, NULL, &l, err);
    if (code)
        return code;
    code = orr_linked_trace(l, &opt, &t, NULL, err);
    orr_linked_free(l);
    if (code)
        return code;
    if ((code = orr_set_create(out, err))) {
        orr_trace_destroy(t);
        return code;
    }
    if ((code = orr_set_add(*out, t, err)))
        orr_set_close(*out);
    return code;
}

static orr_code from_fx(conversion *c, orr_set **out, orr_error *err)
{
    orr_fx *x;
    orr_code code = orr_fx_read(c->path, c->ranks, &x, err);
    if (code)
        return code;
    code = orr_fx_convert(x, &c->fx, out, NULL, err);
    orr_fx_close(x);
    return code;
}

static orr_code from_export(conversion *c, orr_set **out, orr_error *err)
{
    const orr_export_options opt = {.sizes = c->dims, .model = c->model, .ranks = c->ranks};
    orr_fx *x;
    orr_code code = orr_export_read(c->path, &opt, &x, NULL, err);
    if (code)
        return code;
    code = orr_fx_convert(x, &c->fx, out, NULL, err);
    orr_fx_close(x);
    return code;
}

static bool take_hardware(PyObject *o, orr_chip *own, orr_fx_options *out)
{
    const char *name = core_text(o, "hardware");
    orr_hardware read;
    orr_error err;
    if (!name)
        return !PyErr_Occurred();
    /* As --hardware: a chip, else a design, else a file of either. */
    bool is_chip = false;
    *out = (orr_fx_options){.chip = orr_chip_find(name)};
    if (out->chip)
        return true;
    const orr_hardware *h = orr_hardware_find(name);
    orr_code code = ORR_OK;
    if (!h && !strpbrk(name, "./"))
        code = orr_fail(&err, ORR_EUSAGE, NULL, "unknown chip '%s'", name);
    else if (!h)
        code = orr_hardware_read_any(name, own, &read, &is_chip, &err);
    if (code) {
        core_raise(code, &err);
        return false;
    }
    if (is_chip) {
        out->chip = own;
        return true;
    }
    h = h ? h : &read;
    *out = (orr_fx_options){.peak_flops = orr_hardware_peak(h),
                            .vector_flops = (double)h->vector_width * (double)h->clock_hz,
                            .memory_rate = h->memory_bandwidth,
                            .overhead = h->overhead};
    return true;
}

static orr_code from_goal(conversion *c, orr_set **out, orr_error *err)
{
    orr_goal_remarks remarks;
    orr_goal *g;
    orr_code code = orr_goal_read(c->path, &remarks, &g, err);
    if (code)
        return code;
    code = orr_goal_traces(g, c->path, out, err);
    orr_goal_free(g);
    return code ? orr_because(err, code, "%s", c->path) : ORR_OK;
}

/* is_goal(path): would the program treat the file as a schedule, by its extension or first
 * bytes? */
static PyObject *is_goal(PyObject *module, PyObject *args)
{
    PyObject *path;
    (void)module;
    if (!PyArg_ParseTuple(args, "O&:is_goal", PyUnicode_FSConverter, &path))
        return NULL;
    const bool is = orr_goal_recognise(PyBytes_AsString(path));
    Py_DECREF(path);
    return PyBool_FromLong(is);
}

static bool take_conversion(PyObject *o, conversion *c)
{
    PyObject *sizes = core_list(o, "dims");
    c->dims = core_text(o, "sizes");
    c->model = core_text(o, "model");
    c->ranks = core_small(o, "ranks");
    c->passes = core_small(o, "passes");
    c->mhz = core_small(o, "frequency");
    c->has_rank = core_object(o, "rank") != NULL;
    c->rank = core_small(o, "rank");
    c->updates = core_flag(o, "updates");
    c->host_scale = core_number(o, "host_scale", -1);
    for (Py_ssize_t i = 0; sizes && i < PyList_Size(sizes) && i < 16; i++)
        c->dim_sizes[c->dim_count++] = (uint32_t)PyLong_AsUnsignedLong(PyList_GetItem(sizes, i));
    return !PyErr_Occurred() && take_hardware(o, &c->own_chip, &c->fx);
}

static orr_code do_convert(void *data, orr_error *err)
{
    conversion *c = data;
    return c->make(c, &c->set, err);
}

static void undo_convert(void *data)
{
    orr_set_close(((conversion *)data)->set);
}

/* convert(cls, kind, path, options) -> set */
static PyObject *convert(PyObject *module, PyObject *args)
{
    static const struct {
        const char *name;
        orr_code (*make)(conversion *c, orr_set **out, orr_error *err);
    } kinds[] = {{"text", from_text},   {"flexflow", from_flexflow},
                 {"simai", from_simai}, {"pytorch", from_pytorch},
                 {"fx", from_fx},       {"export", from_export},
                 {"goal", from_goal}};
    PyObject *cls, *path, *o;
    const char *kind;
    conversion c = {0};
    orr_error err;
    (void)module;
    if (!PyArg_ParseTuple(args, "OsO!O!:convert", &cls, &kind, &PyBytes_Type, &path, &PyDict_Type,
                          &o) ||
        !take_conversion(o, &c))
        return NULL;
    c.path = PyBytes_AsString(path);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, kind) != 0)
            continue;
        c.make = kinds[i].make;
        const orr_code code = core_watch(do_convert, undo_convert, &c, &err);
        return code ? core_raise(code, &err) : core_set_take(cls, c.set);
    }
    return core_raise_usage(
        "convert: there are et, text, flexflow, simai, pytorch, fx, export and goal");
}

/* ---- names ---- */

static PyObject *machine_names(PyObject *module, PyObject *unused)
{
    PyObject *list = PyList_New(0);
    const char *name;
    (void)module;
    (void)unused;
    for (size_t i = 0; list && (name = orr_machine_at(i)); i++) {
        PyObject *s = PyUnicode_FromString(name);
        if (!s || PyList_Append(list, s) < 0)
            Py_CLEAR(list);
        Py_XDECREF(s);
    }
    return list;
}

static PyObject *model_names(PyObject *module, PyObject *unused)
{
    PyObject *list = PyList_New(0);
    const orr_model *m;
    (void)module;
    (void)unused;
    for (size_t i = 0; list && (m = orr_model_at(i)); i++) {
        PyObject *s = PyUnicode_FromString(m->name);
        if (!s || PyList_Append(list, s) < 0)
            Py_CLEAR(list);
        Py_XDECREF(s);
    }
    return list;
}

/* The text of capture/orrery_capture.py. */
static PyObject *capture_module(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return core_str(orr_capture_module());
}

PyMethodDef core_make_functions[] = {
    {"stage", stage, METH_VARARGS, "stage(cls, model, options) -> (set, facts)"},
    {"link", link_ranks, METH_VARARGS,
     "link(cls, timeline, paths, options) -> (set, timeline, facts)"},
    {"convert", convert, METH_VARARGS, "convert(cls, kind, path, options) -> set"},
    {"is_goal", is_goal, METH_VARARGS, "is_goal(path): whether it is a GOAL schedule"},
    {"machine_names", machine_names, METH_NOARGS, "Machines that are built in."},
    {"model_names", model_names, METH_NOARGS, "Models that are built in."},
    {"capture_module", capture_module, METH_NOARGS, "The module that runs under PyTorch."},
    {0},
};
