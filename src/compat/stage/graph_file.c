/* SPDX-License-Identifier: Apache-2.0 */
/* graph_file.c - write a tensor graph as a pair of files, the format of modules
 * (docs/format/template.md).
 *
 * The output can be read back and equals the reference's except for the spelling of numbers: there,
 * data frames turn some 5 into 5.0 and some 1 into 1.00000000000000. */
#include "stage_impl.h"

#include "base/formats/json.h"
#include "base/io/output.h"
#include "base/text/text.h"

#include <stdio.h>

enum { PATH_ROOM = 4096 };

typedef struct writer {
    orr_stage *job;
    orr_buf out, cell;
    orr_output *file;
} writer;

static void put_raw(orr_buf *b, orr_str s)
{
    orr_buf_add(b, s.ptr, s.len);
}

static bool needs_quotes(const orr_buf *cell)
{
    for (size_t i = 0; i < cell->len; i++) {
        const uint8_t c = cell->ptr[i];
        if (c == ',' || c == '"' || c == '\n' || c == '\r')
            return true;
    }
    return false;
}

/* End the current cell, quoted if necessary, and start the next. */
static void end_cell(writer *w, char after)
{
    if (needs_quotes(&w->cell)) {
        orr_buf_byte(&w->out, '"');
        for (size_t i = 0; i < w->cell.len; i++) {
            if (w->cell.ptr[i] == '"')
                orr_buf_byte(&w->out, '"');
            orr_buf_byte(&w->out, w->cell.ptr[i]);
        }
        orr_buf_byte(&w->out, '"');
    } else {
        orr_buf_add(&w->out, w->cell.ptr, w->cell.len);
    }
    orr_buf_byte(&w->out, (uint8_t)after);
    w->out.failed |= w->cell.failed;
    w->cell.len = 0;
}

/* Operands of other pipeline stages have been replaced by shadows; write the original tensor. */
static void put_id(writer *w, uint32_t tensor)
{
    if (tensor == ORR__NONE)
        return;
    if (tensor >= w->job->graph_count)
        tensor = w->job->pipeline.pairs[tensor - w->job->graph_count].remote;
    const stg_tensor *t = &w->job->graph.tensors[tensor];
    put_raw(&w->cell, stg_word_text(&w->job->space, t->prefix));
    put_raw(&w->cell, stg_word_text(&w->job->space, t->name));
    orr_buf_byte(&w->cell, '@');
    orr_buf_u64(&w->cell, t->revision);
}

static void put_layout(writer *w, stg_layout l)
{
    if (l != ORR__NONE)
        put_raw(&w->cell, stg_layout_text(&w->job->space, l));
    end_cell(w, ',');
    if (l != ORR__NONE)
        put_raw(&w->cell, stg_layout_hidden_text(&w->job->space, l));
    end_cell(w, ',');
}

static void put_extras(writer *w, const stg_tensor *t)
{
    if (!t->has_extra_list)
        return;
    orr_buf_text(&w->cell, "{\"data_deps\": [");
    for (uint32_t i = 0; i < t->extra_count; i++) {
        orr_buf_text(&w->cell, i ? ", \"" : "\"");
        put_id(w, w->job->graph.extras[t->extra + i]);
        orr_buf_byte(&w->cell, '"');
    }
    orr_buf_text(&w->cell, "]}");
}

static void put_row(writer *w, uint32_t tensor)
{
    const stg_tensor *t = &w->job->graph.tensors[tensor];
    put_id(w, tensor);
    end_cell(w, ',');
    orr_buf_text(&w->out, t->is_param ? "Y," : "N,");
    put_id(w, t->a);
    end_cell(w, ',');
    put_id(w, t->b);
    end_cell(w, ',');
    orr_buf_print(&w->out, "%s,", stg_op_name((stg_op)t->op));
    if (t->attr != ORR__NONE)
        put_raw(&w->cell, stg_word_text(&w->job->space, t->attr));
    end_cell(w, ',');
    put_layout(w, t->need_a);
    put_layout(w, t->need_b);
    put_id(w, t->grad_of);
    end_cell(w, ',');
    put_extras(w, t);
    end_cell(w, '\n');
}

static void put_table(writer *w)
{
    orr_buf_text(&w->out, "id,require_grads,x1,x2,op_type,op_attr,x1_shape,x1_hidden,x2_shape,"
                          "x2_hidden,grad_of,extra_attr\n");
    for (size_t i = 0; i < w->job->graph_count; i++) {
        put_row(w, (uint32_t)i);
        if (w->out.len > 1 << 16)
            orr_output_drain(w->file, &w->out);
    }
}

/* ---- the JSON file ---- */

static void put_summary(writer *w)
{
    static const orr_json_style style = {.indent = 4};
    const uint64_t used = stg_tgraph_symbols(&w->job->graph, w->job->graph_count);
    orr_json_writer j;
    orr_json_writer_init(&j, &w->out, &style);
    orr_json_begin_object(&j);
    orr_json_key(&j, "symbols");
    orr_json_begin_array(&j);
    for (uint32_t s = 0; s < stg_symbol_count(&w->job->space.algebra); s++) {
        if (used >> s & 1)
            orr_json_str(&j, stg_symbol_name(&w->job->space.algebra, s));
    }
    orr_json_end_array(&j);
    orr_json_key(&j, "in_tensors");
    orr_json_begin_array(&j);
    for (size_t i = 0; i < w->job->graph_count; i++) {
        if (w->job->graph.tensors[i].op != ORR__OP_T)
            continue;
        w->cell.len = 0;
        put_id(w, (uint32_t)i);
        orr_json_str(&j, (orr_str){(const char *)w->cell.ptr, w->cell.len});
    }
    orr_json_end_array(&j);
    orr_json_key(&j, "out_tensors");
    orr_json_begin_array(&j);
    orr_json_end_array(&j);
    orr_json_end_object(&j);
    orr_buf_byte(&w->out, '\n');
}

static orr_code put_file(
    writer *w, const char *path, const char *end, void (*put)(writer *w), orr_error *err)
{
    char name[PATH_ROOM];
    const int n = snprintf(name, sizeof name, "%s.%s", path, end);
    if (n < 0 || (size_t)n >= sizeof name)
        return orr_fail(err, ORR_EUSAGE, NULL, "the name of the graph's files is too long");
    const orr_code code = orr_output_open(name, &w->file, err);
    if (code)
        return code;
    put(w);
    if (w->out.failed || w->cell.failed || stg_space_has_failed(&w->job->space)) {
        orr_output_discard(w->file);
        return orr_no_memory(err);
    }
    orr_output_drain(w->file, &w->out);
    return orr_output_commit(&w->file, err);
}

orr_code orr_stage_write_graph(orr_stage *job, const char *path, orr_error *err)
{
    writer w = {.job = job};
    orr_code code = put_file(&w, path, "csv", put_table, err);
    if (!code)
        code = put_file(&w, path, "json", put_summary, err);
    orr_buf_fini(&w.out);
    orr_buf_fini(&w.cell);
    return code;
}
