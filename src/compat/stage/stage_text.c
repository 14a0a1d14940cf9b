/* SPDX-License-Identifier: Apache-2.0 */
/* stage_text.c - names and sizes of tensors as they stand in inputs, outputs and the memory report
 * (specification, sections 13 and 16).
 *
 * Both ask what a tensor is by its name.  The names that count are the same in every layer and micro-batch. */
#include "stage_impl.h"

#include "base/text/number.h"
#include "base/text/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* ---- what a name says ---- */

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

/* The last part of its name begins with a d. */
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

uint32_t stg_io_tensor(const orr_stage *job, uint32_t tensor)
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

orr_code stg_io_text(orr_stage *job, uint32_t tensor, orr_buf *to, orr_error *err)
{
    orr__layout made;
    const orr_code code = stg_tensor_made(&job->graph, tensor, &made, err);
    if (code)
        return code;
    add_name(job, &job->graph.tensors[tensor], to);
    add_str(to, stg_layout_text(&job->space, made));
    return ORR_OK;
}

void stg_node_text(const orr_stage *job, const stg_plan_node *n, orr_buf *to)
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

orr_code stg_whole(double v, int64_t *out, orr_error *err)
{
    if (!(v < 9223372036854774784.0 && v > -9223372036854774784.0))
        return orr_fail(err, ORR_EINPUT, NULL, "a size of %g is too large for a trace", v);
    *out = (int64_t)v;
    return ORR_OK;
}

static orr_code size_of(orr_stage *job, uint32_t tensor, double *out, orr_error *err)
{
    orr__layout made;
    const orr_code code = stg_tensor_made(&job->graph, tensor, &made, err);
    return code ? code : stg_measure_layout(&job->measure, made, out, err);
}

/* With mixed precision: 2 bytes an element, 6 of a parameter and 4 more for its optimizer. */
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

orr_code stg_io_size(orr_stage *job, uint32_t tensor, stg_size *out, orr_error *err)
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

void stg_size_print(orr_buf *to, stg_size size)
{
    char text[ORR_NUMBER_ROOM];
    if (size.is_whole)
        orr_buf_print(to, "%.0f", size.value);
    else
        orr_buf_add(to, text, orr_double_text(size.value, text));
}

uint32_t stg_operand_of(const orr_stage *job, const stg_plan_node *n, orr__layout *needed)
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
    /* Here, as in a list of outputs, an I stands for what it takes its value from. */
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
