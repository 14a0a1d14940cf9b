/* SPDX-License-Identifier: Apache-2.0 */
/* dot_view.c - a trace as a graph in DOT or as a drawing; the text of the old visualizer, byte by byte.
 *
 * The old text (chakra.md section 7) is what the Python package graphviz writes: a statement for a node, then
 * one for each of its dependencies.  A word that DOT takes for an identifier or a number goes without quotes; in
 * the others a quote gets a backslash unless it has one.  A name that ends in a lone backslash would swallow the
 * closing quote, and makes the old program fail; here it is doubled.
 * Drawings are laid out by Graphviz (base/layout_graphviz.c). */
#include "graph_view_impl.h"

#include "base/formats/layout_graphviz.h"
#include "base/text/text.h"

#include <strings.h>

/* ---- the old text ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Digits with at most one point among them, and not the point alone. */
static bool is_numeral(orr_str s)
{
    size_t points = 0, digits = 0;
    for (size_t i = 0; i < s.len; i++) {
        points += s.ptr[i] == '.';
        digits += orr_is_digit(s.ptr[i]);
    }
    return digits > 0 && points <= 1 && points + digits == s.len;
}

static bool is_keyword(orr_str s)
{
    static const char *const words[] = {"node", "edge", "graph", "digraph", "subgraph", "strict"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == s.len && strncasecmp(words[i], s.ptr, s.len) == 0)
            return true;
    return false;
}

static bool is_identifier(orr_str s)
{
    if (s.len == 0)
        return false;
    if (!is_letter(s.ptr[0]))
        return is_numeral(s);
    for (size_t i = 1; i < s.len; i++)
        if (!is_letter(s.ptr[i]) && !orr_is_digit(s.ptr[i]))
            return false;
    return !is_keyword(s);
}

/* The text between quotes: special characters of records and quotes get their backslash. */
static void put_old_escaped(orr_buf *b, orr_str s)
{
    size_t slashes = 0; /* right before the character */
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.ptr[i];
        if (c == '\0') { /* would end the text for Graphviz */
            orr_buf_text(b, "\xEF\xBF\xBD");
            slashes = 0;
            continue;
        }
        if (strchr("{}()<>[]|&-", c) || (c == '"' && slashes % 2 == 0))
            orr_buf_byte(b, '\\');
        orr_buf_byte(b, (uint8_t)c);
        slashes = c == '\\' ? slashes + 1 : 0;
    }
    if (slashes % 2)
        orr_buf_byte(b, '\\');
}

static void put_old_label(orr_buf *b, orr_str name)
{
    if (is_identifier(name)) {
        orr_buf_add(b, name.ptr, name.len);
        return;
    }
    orr_buf_byte(b, '"');
    put_old_escaped(b, name);
    orr_buf_byte(b, '"');
}

static void put_old_edges(orr_buf *b, orr_list deps, uint64_t to, uint64_t shift, const char *head)
{
    orr_value dep;
    while (orr_list_next(&deps, &dep)) {
        orr_buf_byte(b, '\t');
        orr_buf_u64(b, dep.u + shift);
        orr_buf_text(b, " -> ");
        orr_buf_u64(b, to);
        orr_buf_print(b, " [arrowhead=%s]\n", head);
    }
}

static void put_old_node(orr_buf *b, const orr_node *node, uint64_t shift)
{
    const uint64_t id = node->id + shift;
    orr_buf_byte(b, '\t');
    orr_buf_u64(b, id);
    orr_buf_text(b, " [label=");
    put_old_label(b, node->name);
    orr_buf_text(b, " id=");
    orr_buf_u64(b, id);
    orr_buf_text(b, " shape=record]\n");
    put_old_edges(b, orr_node_data_deps(node), id, shift, "normal");
    put_old_edges(b, orr_node_ctrl_deps(node), id, shift, "tee");
}

static orr_code write_old_text(const orr_trace *t, uint64_t id_shift, orr_buf *b, orr_error *err)
{
    const uint32_t count = orr_trace_columns(t)->count;
    orr_buf_text(b, "digraph {\n");
    for (uint32_t i = 0; i < count; i++) {
        orr_node node;
        orr_trace_node(t, i, &node);
        put_old_node(b, &node, id_shift);
    }
    orr_buf_text(b, "}\n");
    return b->failed ? orr_no_memory(err) : ORR_OK;
}

/* ---- to a file ---- */

static const char *const form_names[] = {"dot", "graphml", "svg", "pdf", "png"};

bool orr_graph_form_find(orr_str name, orr_graph_form *out)
{
    for (unsigned i = 0; i < sizeof form_names / sizeof *form_names; i++)
        if (orr_str_is(name, form_names[i])) {
            *out = (orr_graph_form)i;
            return true;
        }
    return false;
}

static orr_code write_whole(const orr_buf *b, const char *path, orr_error *err)
{
    orr_output *o;
    const orr_code code = orr_output_open(path, &o, err);
    if (code)
        return code;
    orr_output_add(o, b->ptr, b->len);
    return orr_output_commit(&o, err);
}

static orr_code draw(const orr_buf *text,
                     const char *path,
                     const orr_view_graph_options *opt,
                     orr_error *err)
{
    if (opt->form == ORR_GRAPH_DOT && !opt->with_layout)
        return write_whole(text, path, err);
    orr_buf drawing = {0};
    const orr_str s = {(const char *)text->ptr, text->len};
    orr_code code = orr_layout_render(s, form_names[opt->form], &drawing, err);
    if (!code)
        code = write_whole(&drawing, path, err);
    orr_buf_fini(&drawing);
    return code;
}

orr_code orr_view_graph(const orr_trace *t,
                        const char *path,
                        const orr_view_graph_options *opt,
                        orr_view_graph_result *result,
                        orr_error *err)
{
    static const orr_view_graph_options defaults;
    orr_view_graph_result ignored;
    opt = opt ? opt : &defaults;
    result = result ? result : &ignored;
    *result = (orr_view_graph_result){.nodes = orr_trace_columns(t)->count};
    result->boxes = result->nodes;
    if (opt->form == ORR_GRAPH_GRAPHML)
        return orr__graphml_write(t, path, opt, result, err);
    orr_buf text = {0};
    orr_code code = opt->as_old_program ? write_old_text(t, opt->id_shift, &text, err)
                                        : orr__dot_text(t, opt, &text, result, err);
    if (!code)
        code = draw(&text, path, opt, err);
    orr_buf_fini(&text);
    return code;
}
