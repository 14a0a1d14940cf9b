/* SPDX-License-Identifier: Apache-2.0 */
/* export_make.h - small exported programs for tests, as torch.export writes them.
 *
 *     export_maker m = {0};
 *     make_tensor(&m, "w", "64, 32", "parameter");
 *     make_tensor(&m, "x", "8, 32", "user_input");
 *     make_tensor(&m, "y", "8, 64", NULL);
 *     make_node(&m, "aten.linear.default", "x w", "y", "");
 *     make_result(&m, "y");
 *     orr_buf json = make_program(&m);                     // frees m, too
 *
 * Sizes are written as they are: numbers, or texts such as "s0*2" for expressions (an example
 * behind an @: "s0@8"). Strides are those of a contiguous tensor unless m.stride says otherwise for
 * the next one. */
#ifndef ORR_TESTS_EXPORT_MAKE_H
#define ORR_TESTS_EXPORT_MAKE_H

#include "check.h"

#include "base/memory/buffer.h"

typedef struct export_maker {
    orr_buf values, nodes, inputs, in_specs, out_specs, ranges;
    const char *stride; /* of the next tensor */
    int dtype;          /* of all that follow; 0: float32 */
} export_maker;

__attribute__((unused)) static void make_size(orr_buf *b, const char *text, size_t n)
{
    const char *at = memchr(text, '@', n);
    const size_t len = at ? (size_t)(at - text) : n;
    if (text[0] >= '0' && text[0] <= '9' && strspn(text, "0123456789") >= n) {
        orr_buf_print(b, "{\"as_int\": %.*s}", (int)n, text);
        return;
    }
    orr_buf_print(b, "{\"as_expr\": {\"expr_str\": \"%.*s\", \"hint\": ", (int)len, text);
    if (at)
        orr_buf_print(b, "{\"as_int\": %.*s}}}", (int)(n - len - 1), at + 1);
    else
        orr_buf_text(b, "null}}");
}

__attribute__((unused)) static void make_sizes(orr_buf *b, const char *list)
{
    for (const char *p = list; *p;) {
        const size_t n = strcspn(p, ",");
        make_size(b, p, n);
        p += n;
        if (*p) {
            orr_buf_text(b, ", ");
            p += 1 + strspn(p + 1, " ");
        }
    }
}

/* Of a contiguous tensor of these sizes, which are numbers. */
__attribute__((unused)) static void make_strides(orr_buf *b, const char *list)
{
    uint64_t sizes[16] = {0};
    size_t count = 0;
    for (const char *p = list; *p && count < 16; p += strspn(p, ", "))
        sizes[count++] = strtoull(p, (char **)&p, 10);
    for (size_t i = 0; i < count; i++) {
        uint64_t stride = 1;
        for (size_t k = i + 1; k < count; k++)
            stride *= sizes[k];
        orr_buf_print(b, "%s{\"as_int\": %" PRIu64 "}", i ? ", " : "", stride);
    }
}

/* kind: "parameter", "buffer", "user_input", or NULL for one that a node makes. */
__attribute__((unused)) static void make_tensor(export_maker *m,
                                                const char *name,
                                                const char *sizes,
                                                const char *kind)
{
    orr_buf_print(&m->values, "%s\n\"%s\": {\"dtype\": %d, \"sizes\": [", m->values.len ? "," : "",
                  name, m->dtype ? m->dtype : 7);
    make_sizes(&m->values, sizes);
    orr_buf_text(&m->values, "], \"requires_grad\": false, \"device\": {\"type\": \"cpu\", "
                             "\"index\": null}, \"strides\": [");
    if (m->stride)
        make_sizes(&m->values, m->stride);
    else
        make_strides(&m->values, sizes);
    orr_buf_text(&m->values, "], \"storage_offset\": {\"as_int\": 0}, \"layout\": 7}");
    m->stride = NULL;
    if (!kind)
        return;
    orr_buf_print(&m->inputs, "%s{\"as_tensor\": {\"name\": \"%s\"}}", m->inputs.len ? ", " : "",
                  name);
    orr_buf_print(&m->in_specs, "%s", m->in_specs.len ? ", " : "");
    if (strcmp(kind, "user_input") == 0)
        orr_buf_print(&m->in_specs,
                      "{\"user_input\": {\"arg\": {\"as_tensor\": {\"name\": \"%s\"}}}}", name);
    else
        orr_buf_print(&m->in_specs,
                      "{\"%s\": {\"arg\": {\"name\": \"%s\"}, \"%s_name\": \"m.%s\"}}", kind, name,
                      kind, name);
}

/* Each word of a list as {"as_tensor": ...}; front and back around it. */
__attribute__((unused)) static void make_words(orr_buf *b,
                                               const char *words,
                                               const char *front,
                                               const char *back)
{
    for (const char *p = words; *p;) {
        const size_t n = strcspn(p, " ");
        orr_buf_print(b, "%s%s{\"name\": \"%.*s\"}%s", p == words ? "" : ", ", front, (int)n, p,
                      back);
        p += n + (p[n] == ' ');
    }
}

/* target without "torch.ops." when it begins with "aten." and the like; args: further arguments, a
 * comma in front. */
__attribute__((unused)) static void make_node(
    export_maker *m, const char *target, const char *in, const char *out, const char *args)
{
    orr_buf_print(&m->nodes, "%s\n{\"target\": \"torch.ops.%s\", \"inputs\": [",
                  m->nodes.len ? "," : "", target);
    make_words(&m->nodes, in, "{\"name\": \"self\", \"arg\": {\"as_tensor\": ", "}, \"kind\": 1}");
    orr_buf_text(&m->nodes, args);
    orr_buf_text(&m->nodes, "], \"outputs\": [");
    make_words(&m->nodes, out, "{\"as_tensor\": ", "}");
    orr_buf_text(&m->nodes, "], \"metadata\": {\"stack_trace\": \"File \\\"/src/model.py\\\", "
                            "line 12, in forward\\n    y = f(x)\\n\", \"nn_module_stack\": "
                            "\"L__self__,,model.Net;L__self__a,a.b,model.Block\"}}");
}

__attribute__((unused)) static void make_spec(export_maker *m, const char *spec)
{
    orr_buf_print(&m->out_specs, "%s%s", m->out_specs.len ? ", " : "", spec);
}

__attribute__((unused)) static void make_result(export_maker *m, const char *name)
{
    char spec[200];
    snprintf(spec, sizeof spec, "{\"user_output\": {\"arg\": {\"as_tensor\": {\"name\": \"%s\"}}}}",
             name);
    make_spec(m, spec);
}

__attribute__((unused)) static void add_part(orr_buf *to, const char *text, orr_buf *part)
{
    orr_buf_text(to, text);
    orr_buf_add(to, part->ptr, part->len);
    orr_buf_fini(part);
    *part = (orr_buf){0};
}

/* The caller frees it with orr_buf_fini. */
__attribute__((unused)) static orr_buf make_program(export_maker *m)
{
    orr_buf b = {0};
    add_part(&b, "{\"graph_module\": {\"graph\": {\"inputs\": [", &m->inputs);
    orr_buf_text(&b, "], \"outputs\": []");
    add_part(&b, ", \"nodes\": [", &m->nodes);
    add_part(&b, "], \"tensor_values\": {", &m->values);
    orr_buf_text(&b, "}, \"sym_int_values\": {}, \"sym_bool_values\": {}}");
    add_part(&b, ", \"signature\": {\"input_specs\": [", &m->in_specs);
    add_part(&b, "], \"output_specs\": [", &m->out_specs);
    add_part(&b, "]}}, \"opset_version\": {\"aten\": 10}, \"range_constraints\": {", &m->ranges);
    orr_buf_text(&b, "}, \"schema_version\": {\"major\": 8, \"minor\": 17}, \"torch_version\": "
                     "\"2.11.0\"}\n");
    CHECK(!b.failed);
    *m = (export_maker){0};
    return b;
}

#endif
