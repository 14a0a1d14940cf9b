/* SPDX-License-Identifier: Apache-2.0 */
/* stage_write.c - the output: names and sizes of tensors, the memory report, traces and
 * JSON.  First: tensors in inputs, outputs and the memory report (stage.md 13 and 16).
 *
 * Both classify a tensor by its name, which is the same in every layer and micro-batch. */
#include "base/formats/json.h"
#include "base/io/output.h"
#include "base/text/number.h"
#include "base/text/text.h"
#include "base/threads/pool.h"
#include "stage_impl.h"
#include "trace/attrs.h"
#include "trace/set_impl.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static orr_code stg_json(orr_stage *job, uint32_t rank, orr_buf *to, orr_error *err);

/* ---- classification by name ---- */

static bool contains_in_any_case(orr_str name, const char *part)
{
    const size_t n = strlen(part);
    for (size_t i = 0; i + n <= name.len; i++) {
        size_t k = 0;
        while (k < n && tolower((unsigned char)name.ptr[i + k]) == part[k])
            k++;
        if (k == n)
            return true;
    }
    return false;
}

/* The last component of its name begins with d. */
static bool is_gradient_by_name(orr_str name)
{
    const char *dot = name.len ? memrchr(name.ptr, '.', name.len) : NULL;
    const char *last = dot ? dot + 1 : name.ptr;
    return last < name.ptr + name.len && tolower((unsigned char)*last) == 'd';
}

static bool is_assembled(orr_str name)
{
    return orr_str_has(name, "_assembled_weight") || orr_str_has(name, "_assembled_grad");
}

/* ---- texts ---- */

/* The tensor that represents this one in lists of inputs and outputs. */
static uint32_t stg_io_tensor(const orr_stage *job, uint32_t tensor)
{
    const stg_tensor *t = &job->graph.tensors[tensor];
    return t->op == ORR__OP_I ? t->a : tensor;
}

static void add_str(orr_buf *to, orr_str s)
{
    orr_buf_add(to, s.ptr, s.len);
}

static void add_name(const orr_stage *job, const stg_tensor *t, orr_buf *to)
{
    add_str(to, stg_word_text(&job->space, t->prefix));
    add_str(to, stg_word_text(&job->space, t->name));
    orr_buf_byte(to, '@');
    orr_buf_u64(to, t->revision);
}

static orr_code stg_io_text(orr_stage *job, uint32_t tensor, orr_buf *to, orr_error *err)
{
    stg_layout made;
    const orr_code code = stg_tensor_made(&job->graph, tensor, &made, err);
    if (code)
        return code;
    add_name(job, &job->graph.tensors[tensor], to);
    add_str(to, stg_layout_text(&job->space, made));
    return ORR_OK;
}

static void stg_node_text(const orr_stage *job, const stg_plan_node *n, orr_buf *to)
{
    static const char *const ends[] = {[ORR__COMP] = "_COMP",
                                       [ORR__COLL_A] = "_X1COMM",
                                       [ORR__COLL_B] = "_X2_COMM",
                                       [ORR__SEND] = "_Y_SEND",
                                       [ORR__RECV] = "_Y_RECV"};
    if (n->clone) {
        orr_buf_text(to, "mb");
        orr_buf_u64(to, n->clone);
        orr_buf_byte(to, '.');
    }
    add_name(job, &job->graph.tensors[n->tensor], to);
    orr_buf_text(to, ends[n->kind]);
}

/* ---- sizes ---- */

/* Truncated, as an integer field of a file. */
static orr_code stg_whole(double v, int64_t *out, orr_error *err)
{
    if (!(v < 9223372036854774784.0 && v > -9223372036854774784.0))
        return orr_fail(err, ORR_EINPUT, NULL, "a size of %g is too large for a trace", v);
    *out = (int64_t)v;
    return ORR_OK;
}

static orr_code size_of(orr_stage *job, uint32_t tensor, double *out, orr_error *err)
{
    stg_layout made;
    const orr_code code = stg_tensor_made(&job->graph, tensor, &made, err);
    return code ? code : stg_measure_layout(&job->measure, made, out, err);
}

/* The reference prints some sizes as integers and some as floats. */
typedef struct stg_size {
    double value;
    bool is_whole;
} stg_size;

/* Mixed precision: 2 bytes per element, 6 of a parameter, and 4 more for its optimizer. */
static stg_size io_bytes(const orr_stage *job, const stg_tensor *t, double elements)
{
    if (!job->opt.mixed_precision || elements == 0)
        return (stg_size){t->is_param ? elements * 5 : elements, false};
    if (t->is_param)
        return (stg_size){trunc(1.5 * elements) * 4 + 4 * elements, false};
    return (stg_size){trunc(0.5 * elements) * 4, true};
}

static bool is_hidden(const orr_stage *job, const stg_tensor *t)
{
    const orr_str name = stg_word_text(&job->space, t->name);
    return job->hides_sizes && (is_assembled(name) || contains_in_any_case(name, "_backward") ||
                                is_gradient_by_name(name));
}

static orr_code stg_io_size(orr_stage *job, uint32_t tensor, stg_size *out, orr_error *err)
{
    const stg_tensor *t = &job->graph.tensors[tensor];
    double elements;
    *out = (stg_size){0, true};
    if (is_hidden(job, t))
        return ORR_OK;
    const orr_code code = size_of(job, tensor, &elements, err);
    if (!code)
        *out = io_bytes(job, t, elements);
    return code;
}

static void stg_size_print(orr_buf *to, stg_size size)
{
    char text[ORR_NUMBER_ROOM];
    if (size.is_whole)
        orr_buf_print(to, "%.0f", size.value);
    else
        orr_buf_add(to, text, orr_double_text(size.value, text));
}

/* The operand of a collective, and the layout it is brought to. */
static uint32_t stg_operand_of(const orr_stage *job, const stg_plan_node *n, stg_layout *needed)
{
    const stg_tensor *t = &job->graph.tensors[n->tensor];
    *needed = n->kind == ORR__COLL_A ? t->need_a : t->need_b;
    return n->kind == ORR__COLL_A ? t->a : t->b;
}

/* ---- the memory report ---- */

static orr_code count_memory(orr_stage *job, uint32_t tensor, orr_stage_memory *m, orr_error *err)
{
    const stg_tensor *t = &job->graph.tensors[tensor];
    const orr_str name = stg_word_text(&job->space, t->name);
    stg_size bytes;
    double e;
    if (is_assembled(name))
        return ORR_OK;
    orr_code code = t->is_param ? size_of(job, tensor, &e, err) : ORR_OK;
    if (t->is_param && !code) {
        m->weights += job->opt.mixed_precision ? trunc(1.5 * e) * 4 : 4 * e;
        m->optimizer += 4 * e;
    }
    if (t->is_param || code)
        return code;
    const bool is_sharded = t->grad_of != ORR__NONE && orr_str_has(name, "_sharded_grad");
    if (!is_sharded && (contains_in_any_case(name, "_backward") || is_gradient_by_name(name)))
        return ORR_OK;
    /* An I counts as its source, as in a list of outputs. */
    code = stg_io_size(job, stg_io_tensor(job, tensor), &bytes, err);
    if (!code)
        *(is_sharded ? &m->gradients : &m->activations) += bytes.value;
    return code;
}

orr_code stg_measure_memory(orr_stage *job, uint32_t stage, orr_error *err)
{
    const stg_pipe *pipe = &job->pipeline.pipes[stage];
    orr_code code = ORR_OK;
    for (size_t i = 0; i < pipe->count && !code; i++)
        code = count_memory(job, pipe->tensors[i], &job->memory[stage], err);
    return code;
}

orr_stage_memory orr_stage_rank_memory(const orr_stage *job, uint32_t rank)
{
    return job->memory[rank / job->grid.per_stage];
}

char *orr_stage_memory_line(const orr_stage *job, uint32_t rank, char *out, size_t size)
{
    static const char *const titles[ORR_STAGE_MODELS] = {
        [ORR_STAGE_DENSE] = "Dense",
        [ORR_STAGE_LLAMA] = "Dense",
        [ORR_STAGE_GPT] = "GPT",
        [ORR_STAGE_MOE] = "MoE",
    };
    const stg_spot at = stg_grid_spot(&job->grid, rank);
    const orr_stage_memory *m = &job->memory[at.stage];
    const double gib = 1024.0 * 1024 * 1024, w = m->weights / gib, o = m->optimizer / gib,
                 a = m->activations / gib, g = m->gradients / gib;
    char expert[32] = "";
    if (!titles[job->opt.model]) {
        snprintf(out, size, "%s", "");
        return out;
    }
    if (job->opt.model == ORR_STAGE_MOE)
        snprintf(expert, sizeof expert, "ep=%" PRIu32 ",", at.at[ORR__EP]);
    snprintf(out, size,
             "[%s] [GPU pp=%" PRIu32 ",%scp=%" PRIu32 ",tp=%" PRIu32 ",dp=%" PRIu32
             "] total=%.3f GiB | weights=%.3f | opt=%.3f | acts=%.3f | grads=%.3f",
             titles[job->opt.model], at.stage, expert, at.at[ORR__CP], at.at[ORR__TP],
             at.at[ORR__DP], w + o + a + g, w, o, a, g);
    return out;
}

/* One file per rank, with names chosen by the user.
 *
 * Bodies are encoded once per pipeline stage; a rank's file is its body with the holes filled in,
 * assembled in a reused buffer, on all cores. */

enum { PATH_ROOM = 4096, BATCH = 16 };

/* "a%%b.%d.et": the parts before and after the rank. */
typedef struct pattern {
    char before[PATH_ROOM], after[PATH_ROOM];
} pattern;

static orr_code read_pattern(const char *text, pattern *out, orr_error *err)
{
    char *to = out->before;
    size_t n = 0;
    bool has_rank = false;
    for (; *text; text++) {
        if (n + 1 >= PATH_ROOM)
            return orr_fail(err, ORR_EUSAGE, NULL, "the output's name is too long");
        if (text[0] == '%' && text[1] == 'd' && !has_rank) {
            has_rank = true;
            to[n] = '\0';
            to = out->after;
            n = 0;
            text++;
            continue;
        }
        if (text[0] == '%' && text[1] != '%')
            return orr_fail(err, ORR_EUSAGE, NULL,
                            "the output's name may have one %%d, for the rank; a percent sign is "
                            "written %%%%");
        text += text[0] == '%';
        to[n++] = *text;
    }
    to[n] = '\0';
    return has_rank ? ORR_OK
                    : orr_fail(err, ORR_EUSAGE, NULL, "the output's name has no %%d for the rank");
}

typedef struct writing {
    orr_stage *job;
    orr_set *set; /* NULL: traces or JSON, rank by rank */
    pattern names;
    orr_stage_form form;
} writing;

static orr_code put_file(const writing *w, uint32_t rank, orr_span bytes, orr_error *err)
{
    char path[2 * PATH_ROOM + 16];
    orr_output *o;
    snprintf(path, sizeof path, "%s%u%s", w->names.before, rank, w->names.after);
    const orr_code code = orr_output_open(path, &o, err);
    if (code)
        return code;
    orr_output_add(o, bytes.ptr, bytes.len);
    return orr_output_commit(&o, err);
}

static orr_code write_filled(const writing *w, uint32_t rank, orr_buf *bytes, orr_error *err)
{
    const orr__rank *r = &w->set->ranks[rank];
    orr__class *c = &w->set->classes[r->class_index];
    if (c->hole_count == 0)
        return put_file(w, rank, c->t->bytes, err);
    bytes->len = 0;
    if (!orr__fill(c, w->set->values + r->values_at, bytes))
        return orr_no_memory(err);
    return put_file(w, rank, (orr_span){bytes->ptr, bytes->len}, err);
}

/* Several ranks in a row share a buffer. */
static orr_code write_batch(void *context, size_t batch, orr_error *err)
{
    const writing *w = context;
    const uint32_t count = orr_stage_rank_count(w->job), first = (uint32_t)batch * BATCH;
    orr_buf bytes = {0};
    orr_code code = ORR_OK;
    for (uint32_t rank = first; rank < count && rank < first + BATCH && !code; rank++)
        code = write_filled(w, rank, &bytes, err);
    orr_buf_fini(&bytes);
    return code;
}

/* Ranks one after the other: what differs is not a hole. */
static orr_code write_each(const writing *w, orr_error *err)
{
    orr_buf text = {0};
    orr_code code = ORR_OK;
    for (uint32_t rank = 0; rank < orr_stage_rank_count(w->job) && !code; rank++) {
        text.len = 0;
        if (w->form == ORR_STAGE_JSON) {
            code = stg_json(w->job, rank, &text, err);
        } else {
            orr_trace *t;
            code = orr_stage_trace(w->job, rank, &t, err);
            if (!code)
                orr_buf_add(&text, t->bytes.ptr, t->bytes.len);
            orr_trace_destroy(t);
        }
        if (!code)
            code = text.failed ? orr_no_memory(err)
                               : put_file(w, rank, (orr_span){text.ptr, text.len}, err);
    }
    orr_buf_fini(&text);
    return code;
}

orr_code orr_stage_write_files(
    orr_stage *job, const char *text, orr_stage_form form, unsigned threads, orr_error *err)
{
    writing w = {.job = job, .form = form};
    orr_code code = read_pattern(text, &w.names, err);
    if (code)
        return code;
    if (form == ORR_STAGE_JSON || job->opt.legacy_attr)
        return write_each(&w, err);
    code = orr_stage_set(job, &w.set, err);
    if (code)
        return code;
    const size_t batches = ((size_t)orr_stage_rank_count(job) + BATCH - 1) / BATCH;
    code = orr_pool_for(threads, batches, write_batch, &w, err);
    orr_set_close(w.set);
    return code;
}

/* ---- a rank as the reference's JSON writer prints it (stage.md 14.2) ---- */

typedef struct writer {
    orr_stage *job;
    const stg_plan *plan;
    stg_spot spot;
    orr_json_writer json;
    orr_buf text;
    orr_error *err;
} writer;

static orr_str text_of(const writer *w)
{
    return (orr_str){(const char *)w->text.ptr, w->text.len};
}

static orr_code put_io(writer *w, uint32_t tensor)
{
    stg_size size;
    tensor = stg_io_tensor(w->job, tensor);
    w->text.len = 0;
    orr_code code = stg_io_text(w->job, tensor, &w->text, w->err);
    if (!code)
        code = stg_io_size(w->job, tensor, &size, w->err);
    if (code)
        return code;
    orr_json_begin_object(&w->json);
    orr_json_key(&w->json, "name");
    orr_json_str(&w->json, text_of(w));
    orr_json_key(&w->json, "size");
    w->text.len = 0;
    stg_size_print(&w->text, size);
    orr_json_raw_text(&w->json, text_of(w));
    orr_json_end_object(&w->json);
    return ORR_OK;
}

static orr_code put_lists(writer *w, const stg_plan_node *n)
{
    const stg_tensor *t = &w->job->graph.tensors[n->tensor];
    const bool is_coll = n->kind == ORR__COLL_A || n->kind == ORR__COLL_B;
    stg_layout needed;
    orr_code code = ORR_OK;
    orr_json_key(&w->json, "inputs");
    orr_json_begin_array(&w->json);
    if (n->kind == ORR__COMP && t->a != ORR__NONE)
        code = put_io(w, t->a);
    if (!code && n->kind == ORR__COMP && t->b != ORR__NONE)
        code = put_io(w, t->b);
    if (!code && is_coll)
        code = put_io(w, stg_operand_of(w->job, n, &needed));
    if (!code && n->kind == ORR__SEND)
        code = put_io(w, n->tensor);
    orr_json_end_array(&w->json);
    orr_json_key(&w->json, "outputs");
    orr_json_begin_array(&w->json);
    if (!code && (n->kind == ORR__COMP || n->kind == ORR__RECV))
        code = put_io(w, n->tensor);
    orr_json_end_array(&w->json);
    return code;
}

static void put_deps(writer *w, const stg_plan_node *n)
{
    orr_json_key(&w->json, "data_deps");
    orr_json_begin_array(&w->json);
    for (uint32_t i = 0; i < n->dep_count; i++)
        orr_json_u64(&w->json, w->plan->nodes[w->plan->deps[n->dep + i]].id);
    orr_json_end_array(&w->json);
    orr_json_key(&w->json, "ctrl_deps");
    orr_json_begin_array(&w->json);
    orr_json_end_array(&w->json);
}

static void put_i64(writer *w, orr__attr_key key, int64_t v)
{
    orr_json_key(&w->json, orr__attr_name(key));
    orr_json_i64(&w->json, v);
}

static orr_code layout_size(writer *w, stg_layout l, int64_t *out)
{
    double size;
    const orr_code code = stg_measure_layout(&w->job->measure, l, &size, w->err);
    return code ? code : stg_whole(size, out, w->err);
}

static orr_code made_size(writer *w, uint32_t tensor, int64_t *out)
{
    stg_layout made;
    const orr_code code = stg_tensor_made(&w->job->graph, tensor, &made, w->err);
    return code ? code : layout_size(w, made, out);
}

static orr_code put_compute(writer *w, const stg_plan_node *n, int64_t size)
{
    stg_expr ops;
    double count;
    int64_t whole = 0;
    orr_code code;
    if ((code = stg_tensor_ops(&w->job->graph, n->tensor, &ops, w->err)) ||
        (code = stg_measure_expr(&w->job->measure, ops, &count, w->err)) ||
        (code = stg_whole(count, &whole, w->err)))
        return code;
    put_i64(w, ORR__ATTR_NUM_OPS, whole);
    put_i64(w, ORR__ATTR_TENSOR_SIZE, size);
    orr_json_key(&w->json, orr__attr_name(ORR__ATTR_OP_TYPE));
    orr_json_text(&w->json, stg_op_name((stg_op)w->job->graph.tensors[n->tensor].op));
    return ORR_OK;
}

static void put_collective(writer *w, const stg_plan_node *n, int64_t size)
{
    put_i64(w, ORR__ATTR_COMM_SIZE, size);
    orr_json_key(&w->json, orr__attr_name(ORR__ATTR_COMM_TYPE));
    orr_json_text(&w->json, orr_collective_name(n->collective));
    put_i64(w, ORR__ATTR_COMM_GROUP, stg_grid_group(&w->job->grid, &w->spot, (stg_axis)n->axis));
}

static void put_message(writer *w, const stg_plan_node *n, int64_t size)
{
    stg_spot peer = w->spot;
    peer.stage = n->peer;
    put_i64(w, ORR__ATTR_COMM_SIZE, size);
    put_i64(w, ORR__ATTR_COMM_TAG, (int64_t)n->tag);
    put_i64(w, n->kind == ORR__SEND ? ORR__ATTR_COMM_DST : ORR__ATTR_COMM_SRC,
            stg_grid_rank(&w->job->grid, &peer));
}

/* size: of the data; needed: the value of y_tensor_size. */
static orr_code find_sizes(writer *w, const stg_plan_node *n, int64_t *size, int64_t *needed)
{
    stg_layout layout = {0};
    uint32_t tensor = n->tensor;
    orr_code code = ORR_OK;
    const bool is_coll = n->kind == ORR__COLL_A || n->kind == ORR__COLL_B;
    if (is_coll)
        tensor = stg_operand_of(w->job, n, &layout);
    code = made_size(w, tensor, size);
    *needed = n->kind == ORR__SEND ? 0 : *size;
    if (!code && is_coll)
        code = layout_size(w, layout, needed);
    return code;
}

static orr_code put_node(writer *w, const stg_plan_node *n)
{
    static const char *const types[] = {[ORR__COMP] = "comp_node",
                                        [ORR__COLL_A] = "coll_comm_node",
                                        [ORR__COLL_B] = "coll_comm_node",
                                        [ORR__SEND] = "comm_send_node",
                                        [ORR__RECV] = "comm_recv_node"};
    int64_t size = 0, needed = 0;
    orr_code code = find_sizes(w, n, &size, &needed);
    if (code)
        return code;
    orr_json_begin_object(&w->json);
    orr_json_put_u64(&w->json, "id", n->id);
    orr_json_key(&w->json, "name");
    w->text.len = 0;
    stg_node_text(w->job, n, &w->text);
    orr_json_str(&w->json, text_of(w));
    orr_json_put_text(&w->json, "node_type", types[n->kind]);
    orr_json_key(&w->json, "y_tensor_size");
    orr_json_i64(&w->json, needed);
    code = put_lists(w, n);
    put_deps(w, n);
    if (!code && n->kind == ORR__COMP)
        code = put_compute(w, n, size);
    else if (n->kind == ORR__SEND || n->kind == ORR__RECV)
        put_message(w, n, size);
    else if (n->kind != ORR__COMP)
        put_collective(w, n, size);
    orr_json_end_object(&w->json);
    return code;
}

static orr_code stg_json(orr_stage *job, uint32_t rank, orr_buf *to, orr_error *err)
{
    static const orr_json_style style = {.spaced = true, .ascii = true};
    writer w = {.job = job, .spot = stg_grid_spot(&job->grid, rank), .err = err};
    orr_code code = ORR_OK;
    w.plan = &job->plans[w.spot.stage];
    orr_json_writer_init(&w.json, to, &style);
    orr_json_begin_object(&w.json);
    orr_json_key(&w.json, "nodes");
    orr_json_begin_array(&w.json);
    for (size_t i = 0; i < w.plan->count && !code; i++)
        code = put_node(&w, &w.plan->nodes[i]);
    orr_json_end_array(&w.json);
    orr_json_end_object(&w.json);
    if (!code && (to->failed || w.text.failed))
        code = orr_no_memory(err);
    orr_buf_fini(&w.text);
    return code;
}

/* A plan as a trace (stage.md 14.1), and all of them as a set.
 *
 * The ranks of a pipeline stage have the same nodes and differ only in their group along each axis
 * and in the corresponding rank of neighbouring stages.  Those are the holes of the body: one slot
 * per axis, and one per stage that messages go to or come from. */

enum { ATTRS_MOST = 6, TEXTS_MOST = 8 };

typedef struct hole_list {
    orr_hole *list; /* slots: axes, then pipeline stages */
    size_t count, room;
} hole_list;

/* A trace being written.  The strings of a node are concatenated in `text`, which may be
 * reallocated, so they are offsets until the node is complete. */
typedef struct trace_writer {
    orr_stage *job;
    const stg_plan *plan;
    const stg_spot *spot;
    orr_trace *trace;
    hole_list *holes; /* NULL: not wanted */
    orr_buf text;
    size_t begin[TEXTS_MOST + 1];
    size_t text_count;
    orr_value items[TEXTS_MOST];
    orr_attr attrs[ATTRS_MOST];
    size_t attr_count;
    char group[16];
    uint32_t index; /* of the current node */
    uint64_t *deps;
    size_t dep_room;
    uint32_t *seen; /* per node: 1 + the last node with it as a parent */
    orr_error *err;
} trace_writer;

static void end_text(trace_writer *w)
{
    w->begin[++w->text_count] = w->text.len;
}

static orr_str text_at(const trace_writer *w, size_t i)
{
    return (orr_str){(const char *)w->text.ptr + w->begin[i], w->begin[i + 1] - w->begin[i]};
}

static void add_attr(trace_writer *w, orr__attr_key key, orr_value_kind kind, orr_value value)
{
    w->attrs[w->attr_count++] =
        (orr_attr){.name = orr__attr_rows[key].name, .kind = kind, .value = value};
}

static orr_code add_whole(trace_writer *w, orr__attr_key key, orr_value_kind kind, double v)
{
    int64_t n = 0;
    const orr_code code = stg_whole(v, &n, w->err);
    if (code)
        return code;
    if (kind == ORR_VALUE_UINT64 && n < 0)
        return orr_fail(w->err, ORR_EINPUT, NULL, "a size of %g is negative", v);
    add_attr(w, key, kind, (orr_value){.i = n});
    return ORR_OK;
}

static orr_code add_io(trace_writer *w, uint32_t tensor)
{
    stg_size size;
    tensor = stg_io_tensor(w->job, tensor);
    orr_code code = stg_io_text(w->job, tensor, &w->text, w->err);
    end_text(w);
    if (!code)
        code = stg_io_size(w->job, tensor, &size, w->err);
    if (code)
        return code;
    stg_size_print(&w->text, size);
    end_text(w);
    return ORR_OK;
}

/* Strings from..to as a list; no value at all if there are none. */
static void add_list(trace_writer *w, const char *name, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        w->items[i].s = text_at(w, i);
    w->attrs[w->attr_count++] = (orr_attr){.name = orr_str_of(name),
                                           .kind = to > from ? ORR_VALUE_STRING : ORR_VALUE_NONE,
                                           .is_list = to > from,
                                           .items = w->items + from,
                                           .item_count = to - from};
}

/* ---- inputs and outputs ---- */

static orr_code add_inputs(trace_writer *w, const stg_plan_node *n)
{
    const stg_tensor *t = &w->job->graph.tensors[n->tensor];
    stg_layout needed;
    orr_code code = ORR_OK;
    switch ((stg_kind)n->kind) {
    case ORR__COMP:
        if (t->a != ORR__NONE)
            code = add_io(w, t->a);
        return !code && t->b != ORR__NONE ? add_io(w, t->b) : code;
    case ORR__COLL_A:
    case ORR__COLL_B:
        return add_io(w, stg_operand_of(w->job, n, &needed));
    case ORR__SEND:
        return add_io(w, n->tensor);
    default:
        return ORR_OK;
    }
}

/* String 0 is the name. */
static orr_code add_lists(trace_writer *w, const stg_plan_node *n)
{
    const size_t first = w->text_count;
    orr_code code = add_inputs(w, n);
    const size_t middle = w->text_count;
    if (!code && (n->kind == ORR__COMP || n->kind == ORR__RECV))
        code = add_io(w, n->tensor);
    if (!code && w->text.failed)
        code = orr_no_memory(w->err);
    if (code)
        return code;
    add_list(w, "inputs", first, middle);
    add_list(w, "outputs", middle, w->text_count);
    return ORR_OK;
}

/* ---- the rest of a node ---- */

static orr_code add_hole(trace_writer *w, orr_hole_field field, uint32_t slot)
{
    hole_list *h = w->holes;
    if (!h)
        return ORR_OK;
    return orr_push(h->list, h->count, h->room,
                    (orr_hole){.node = w->index, .field = field, .slot = slot})
               ? ORR_OK
               : orr_no_memory(w->err);
}

static orr_code add_compute(trace_writer *w, const stg_plan_node *n)
{
    orr_stage *job = w->job;
    stg_layout made;
    stg_expr ops;
    double count, size;
    orr_code code = stg_tensor_made(&job->graph, n->tensor, &made, w->err);
    if (!code)
        code = stg_tensor_ops(&job->graph, n->tensor, &ops, w->err);
    if (!code)
        code = stg_measure_expr(&job->measure, ops, &count, w->err);
    if (!code)
        code = stg_measure_layout(&job->measure, made, &size, w->err);
    if (!code)
        code = add_whole(w, ORR__ATTR_NUM_OPS, ORR_VALUE_INT64, count);
    if (!code)
        code = add_whole(w, ORR__ATTR_TENSOR_SIZE, ORR_VALUE_UINT64, size);
    const char *op = stg_op_name((stg_op)job->graph.tensors[n->tensor].op);
    add_attr(w, ORR__ATTR_OP_TYPE, ORR_VALUE_STRING, (orr_value){.s = orr_str_of(op)});
    return code;
}

static orr_code add_size(trace_writer *w, uint32_t tensor)
{
    stg_layout made;
    double size;
    orr_code code = stg_tensor_made(&w->job->graph, tensor, &made, w->err);
    if (!code)
        code = stg_measure_layout(&w->job->measure, made, &size, w->err);
    return code ? code : add_whole(w, ORR__ATTR_COMM_SIZE, ORR_VALUE_INT64, size);
}

static void add_group(trace_writer *w, const stg_plan_node *n)
{
    const uint32_t group = stg_grid_group(&w->job->grid, w->spot, (stg_axis)n->axis);
    if (w->job->opt.legacy_attr) {
        add_attr(w, ORR__ATTR_COMM_GROUP, ORR_VALUE_INT32, (orr_value){.i = group});
        return;
    }
    snprintf(w->group, sizeof w->group, "%" PRIu32, group);
    add_attr(w, ORR__ATTR_PG_NAME, ORR_VALUE_STRING, (orr_value){.s = orr_str_of(w->group)});
}

static orr_code add_collective(trace_writer *w, const stg_plan_node *n)
{
    stg_layout needed;
    const orr_code code = add_size(w, stg_operand_of(w->job, n, &needed));
    if (code)
        return code;
    add_attr(w, ORR__ATTR_COMM_TYPE, ORR_VALUE_INT64, (orr_value){.i = n->collective});
    add_group(w, n);
    return w->job->opt.legacy_attr ? ORR_OK : add_hole(w, ORR_HOLE_PG_NAME, n->axis);
}

static orr_code add_message(trace_writer *w, const stg_plan_node *n)
{
    const bool is_send = n->kind == ORR__SEND;
    stg_spot peer = *w->spot;
    const orr_code code = add_size(w, n->tensor);
    if (code)
        return code;
    peer.stage = n->peer;
    add_attr(w, ORR__ATTR_COMM_TAG, ORR_VALUE_INT32, (orr_value){.i = (int64_t)n->tag});
    add_attr(w, is_send ? ORR__ATTR_COMM_DST : ORR__ATTR_COMM_SRC, ORR_VALUE_INT32,
             (orr_value){.i = stg_grid_rank(&w->job->grid, &peer)});
    return add_hole(w, is_send ? ORR_HOLE_COMM_DST : ORR_HOLE_COMM_SRC, ORR__AXES + n->peer);
}

/* The ids of all parents without duplicates. */
static orr_code list_parents(trace_writer *w, uint32_t index, orr_draft *d)
{
    const stg_plan_node *n = &w->plan->nodes[index];
    if (!orr_grow(&w->deps, &w->dep_room, n->dep_count))
        return orr_no_memory(w->err);
    for (uint32_t i = 0; i < n->dep_count; i++) {
        const uint32_t parent = w->plan->deps[n->dep + i];
        if (w->seen[parent] == index + 1)
            continue;
        w->seen[parent] = index + 1;
        w->deps[d->data_count++] = w->plan->nodes[parent].id;
    }
    d->data_deps = w->deps;
    return ORR_OK;
}

static orr_code add_node(trace_writer *w, uint32_t index)
{
    static const orr_node_type types[] = {[ORR__COMP] = ORR_NODE_COMP,
                                          [ORR__COLL_A] = ORR_NODE_COMM_COLL,
                                          [ORR__COLL_B] = ORR_NODE_COMM_COLL,
                                          [ORR__SEND] = ORR_NODE_COMM_SEND,
                                          [ORR__RECV] = ORR_NODE_COMM_RECV};
    const stg_plan_node *n = &w->plan->nodes[index];
    orr_draft d = {.id = n->id, .type = types[n->kind], .attrs = w->attrs};
    w->index = index;
    w->text.len = w->text_count = w->attr_count = 0;
    stg_node_text(w->job, n, &w->text);
    end_text(w);
    orr_code code = add_lists(w, n);
    if (!code && n->kind == ORR__COMP)
        code = add_compute(w, n);
    else if (!code && (n->kind == ORR__SEND || n->kind == ORR__RECV))
        code = add_message(w, n);
    else if (!code)
        code = add_collective(w, n);
    if (!code && n->kind != ORR__COMP && !w->job->opt.legacy_attr)
        add_attr(w, ORR__ATTR_IS_CPU_OP, ORR_VALUE_INT32, (orr_value){.i = 0});
    if (!code)
        code = list_parents(w, index, &d);
    d.name = text_at(w, 0);
    d.attr_count = w->attr_count;
    return code ? code : orr_trace_append(w->trace, &d, w->err);
}

static orr_code write_nodes(trace_writer *w, orr_arena *arena)
{
    const orr_attr schema = {.name = orr_str_of("schema"),
                             .kind = ORR_VALUE_STRING,
                             .value.s = orr_str_of("symbolic_tensor_network")};
    const orr_meta meta = {.attrs = &schema, .attr_count = 1};
    w->seen = orr_arena_new(arena, w->plan->count + 1, uint32_t);
    if (!w->seen)
        return orr_no_memory(w->err);
    orr_code code = orr_trace_create(&meta, &w->trace, w->err);
    for (uint32_t i = 0; i < w->plan->count && !code; i++)
        code = add_node(w, i);
    return code ? code : orr_trace_seal(w->trace, w->err);
}

/* The trace of one rank. */
static orr_code make_body(
    orr_stage *job, const stg_spot *spot, orr_trace **out, hole_list *holes, orr_error *err)
{
    trace_writer w = {
        .job = job, .plan = &job->plans[spot->stage], .spot = spot, .holes = holes, .err = err};
    orr_arena *arena = orr_arena_create();
    const orr_code code = arena ? write_nodes(&w, arena) : orr_no_memory(err);
    orr_arena_destroy(arena);
    orr_buf_fini(&w.text);
    orr_free(w.deps);
    *out = w.trace;
    if (code) {
        orr_trace_destroy(w.trace);
        *out = NULL;
    }
    return code;
}

orr_code orr_stage_trace(orr_stage *job, uint32_t rank, orr_trace **out, orr_error *err)
{
    const stg_spot spot = stg_grid_spot(&job->grid, rank);
    *out = NULL;
    if (rank >= orr_stage_rank_count(job))
        return orr_fail(err, ORR_EUSAGE, NULL, "there is no rank %u", rank);
    return make_body(job, &spot, out, NULL, err);
}

/* ---- a set ---- */

/* The slots in use, numbered by first use. */
typedef struct slots {
    uint32_t *number; /* of an axis or stage, + 1; 0: unused */
    uint32_t *source; /* the inverse */
    uint32_t count;
    int64_t *values; /* of one rank */
} slots;

static void close_up(slots *s, hole_list *holes)
{
    for (size_t i = 0; i < holes->count; i++) {
        uint32_t *number = &s->number[holes->list[i].slot];
        if (!*number) {
            s->source[s->count] = holes->list[i].slot;
            *number = ++s->count;
        }
        holes->list[i].slot = *number - 1;
    }
}

static void fill(const orr_stage *job, const slots *s, const stg_spot *spot)
{
    for (uint32_t i = 0; i < s->count; i++) {
        stg_spot peer = *spot;
        if (s->source[i] < ORR__AXES) {
            s->values[i] = stg_grid_group(&job->grid, spot, (stg_axis)s->source[i]);
        } else {
            peer.stage = s->source[i] - ORR__AXES;
            s->values[i] = stg_grid_rank(&job->grid, &peer);
        }
    }
}

static orr_code add_ranks(orr_stage *job,
                          orr_set *set,
                          uint32_t stage,
                          uint32_t class_index,
                          const slots *s,
                          orr_error *err)
{
    orr_code code = ORR_OK;
    for (uint32_t i = 0; i < job->grid.per_stage && !code; i++) {
        const stg_spot spot = stg_grid_spot(&job->grid, stage * job->grid.per_stage + i);
        fill(job, s, &spot);
        code = orr_set_add_rank_values(set, class_index, 0, s->values, err);
    }
    return code;
}

static orr_code add_stage(orr_stage *job, orr_set *set, uint32_t stage, orr_error *err)
{
    const stg_spot first = {.stage = stage};
    const size_t most = ORR__AXES + job->grid.stages;
    hole_list holes = {0};
    orr_trace *body = NULL;
    uint32_t class_index;
    orr_arena *arena = orr_arena_create();
    slots s = {0};
    if (arena) {
        s.number = orr_arena_new(arena, most, uint32_t);
        s.source = orr_arena_new(arena, most, uint32_t);
        s.values = orr_arena_new(arena, most, int64_t);
    }
    orr_code code = s.number && s.source && s.values ? make_body(job, &first, &body, &holes, err)
                                                     : orr_no_memory(err);
    if (!code) {
        close_up(&s, &holes);
        code = orr_set_add_class(set, body, holes.list, holes.count, s.count, &class_index, err);
    }
    if (!code)
        code = add_ranks(job, set, stage, class_index, &s, err);
    orr_free(holes.list);
    orr_arena_destroy(arena);
    return code;
}

/* comm_group cannot be a hole, so every rank has its own body. */
static orr_code add_legacy(orr_stage *job, orr_set *set, orr_error *err)
{
    orr_code code = ORR_OK;
    for (uint32_t r = 0; r < orr_stage_rank_count(job) && !code; r++) {
        orr_trace *t;
        code = orr_stage_trace(job, r, &t, err);
        if (!code)
            code = orr_set_add(set, t, err);
    }
    return code;
}

static orr_code add_groups(const orr_stage *job, orr_set *set, orr_error *err)
{
    const stg_grid *g = &job->grid;
    uint32_t *members = NULL;
    size_t room = 0;
    orr_code code = ORR_OK;
    for (uint32_t id = 1; id < g->first_group[ORR__AXES] && !code; id++) {
        uint32_t count, stride;
        uint32_t rank = stg_grid_members(g, id, &count, &stride);
        if (!orr_grow(&members, &room, count))
            code = orr_no_memory(err);
        for (uint32_t i = 0; i < count && !code; i++, rank += stride)
            members[i] = rank;
        if (!code)
            code = orr_set_add_group(set, id, members, count, err);
    }
    orr_free(members);
    return code;
}

orr_code orr_stage_set(orr_stage *job, orr_set **out, orr_error *err)
{
    orr_set *set;
    *out = NULL;
    orr_code code = orr_set_create(&set, err);
    if (code)
        return code;
    if (job->opt.legacy_attr)
        code = add_legacy(job, set, err);
    for (uint32_t s = 0; s < job->grid.stages && !code && !job->opt.legacy_attr; s++)
        code = add_stage(job, set, s, err);
    if (!code)
        code = add_groups(job, set, err);
    if (code)
        orr_set_close(set);
    else
        *out = set;
    return code;
}

orr_code orr_stage_write_groups(const orr_stage *job, const char *path, orr_error *err)
{
    orr_set *set;
    orr_code code = orr_set_create(&set, err);
    if (code)
        return code;
    code = add_groups(job, set, err);
    if (!code)
        code = orr_set_write_groups(set, path, err);
    orr_set_close(set);
    return code;
}
