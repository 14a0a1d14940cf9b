/* SPDX-License-Identifier: Apache-2.0 */
/* stage_json.c - a rank as the reference's JSON writer prints it (specification, section 14.2). */
#include "stage_impl.h"

#include "base/formats/json.h"

typedef struct writer {
    orr_stage *job;
    const orr__plan *plan;
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
    orr__layout needed;
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

static void put_i64(writer *w, const char *key, int64_t v)
{
    orr_json_key(&w->json, key);
    orr_json_i64(&w->json, v);
}

/* Sizes of a layout and of what a tensor is made as. */
static orr_code layout_size(writer *w, orr__layout l, int64_t *out)
{
    double size;
    const orr_code code = stg_measure_layout(&w->job->measure, l, &size, w->err);
    return code ? code : stg_whole(size, out, w->err);
}

static orr_code made_size(writer *w, uint32_t tensor, int64_t *out)
{
    orr__layout made;
    const orr_code code = stg_tensor_made(&w->job->graph, tensor, &made, w->err);
    return code ? code : layout_size(w, made, out);
}

static orr_code put_compute(writer *w, const stg_plan_node *n, int64_t size)
{
    stg_expr ops;
    double count;
    int64_t whole;
    orr_code code = stg_tensor_ops(&w->job->graph, n->tensor, &ops, w->err);
    if (!code)
        code = stg_measure_expr(&w->job->measure, ops, &count, w->err);
    if (!code)
        code = stg_whole(count, &whole, w->err);
    if (code)
        return code;
    put_i64(w, "num_ops", whole);
    put_i64(w, "tensor_size", size);
    orr_json_key(&w->json, "op_type");
    orr_json_text(&w->json, stg_op_name((stg_op)w->job->graph.tensors[n->tensor].op));
    return ORR_OK;
}

static void put_collective(writer *w, const stg_plan_node *n, int64_t size)
{
    put_i64(w, "comm_size", size);
    orr_json_key(&w->json, "comm_type");
    orr_json_text(&w->json, orr_collective_name(n->collective));
    put_i64(w, "comm_group", stg_grid_group(&w->job->grid, &w->spot, (stg_axis)n->axis));
}

static void put_message(writer *w, const stg_plan_node *n, int64_t size)
{
    stg_spot peer = w->spot;
    peer.stage = n->peer;
    put_i64(w, "comm_size", size);
    put_i64(w, "comm_tag", (int64_t)n->tag);
    put_i64(w, n->kind == ORR__SEND ? "comm_dst" : "comm_src", stg_grid_rank(&w->job->grid, &peer));
}

/* size: of the data; needed: what y_tensor_size says. */
static orr_code find_sizes(writer *w, const stg_plan_node *n, int64_t *size, int64_t *needed)
{
    orr__layout layout;
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
    orr_json_key(&w->json, "id");
    orr_json_u64(&w->json, n->id);
    orr_json_key(&w->json, "name");
    w->text.len = 0;
    stg_node_text(w->job, n, &w->text);
    orr_json_str(&w->json, text_of(w));
    orr_json_key(&w->json, "node_type");
    orr_json_text(&w->json, types[n->kind]);
    put_i64(w, "y_tensor_size", needed);
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

orr_code stg_json(orr_stage *job, uint32_t rank, orr_buf *to, orr_error *err)
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
