/* SPDX-License-Identifier: Apache-2.0 */
/* dot_view.c - a trace as a graph in DOT or as a drawing.
 * Drawings are laid out by Graphviz (base/layout_graphviz.c). */
#include "graph_fold.h"
#include "graph_view_impl.h"

#include "base/formats/layout_graphviz.h"
#include "base/memory/intern.h"
#include "base/options.h"
#include "base/text/text.h"

#include <orrery/lab/units.h>

/* ======== A picture of a trace (graph_fold.c) as DOT, for people.
 *
 * A box has the colour of its kind; the kind is also written, so that colour is never the only
 * sign.  Frames come in the order in which the file first needs them, boxes in the order of the
 * file.  Names are cut, escaped for labels and cannot reach Graphviz's escape sequences or
 * entities. */

enum { NAME_LENGTH = 48, NO_FRAME = UINT32_MAX };

/* ---- words ---- */

/* Dark text is readable on all of them. */
static const char *color_of(uint8_t type)
{
    static const char *const colors[ORR_NODE_TYPE_COUNT] = {
        [ORR_NODE_INVALID] = "#dddddd",   [ORR_NODE_METADATA] = "#dddddd",
        [ORR_NODE_MEM_LOAD] = "#f6d5a8",  [ORR_NODE_MEM_STORE] = "#f2c078",
        [ORR_NODE_COMP] = "#b7d7f0",      [ORR_NODE_COMM_SEND] = "#c5e5b4",
        [ORR_NODE_COMM_RECV] = "#a4d49a", [ORR_NODE_COMM_COLL] = "#e8b9c9",
        [ORR_NODE_STORAGE] = "#d9cbe8",   [ORR_NODE_BATCH] = "#d9cbe8",
        [ORR_NODE_CHECKPOINT] = "#d9cbe8"};
    return type < ORR_NODE_TYPE_COUNT ? colors[type] : "#ffffff";
}

static void put_character(orr_buf *b, orr_str c)
{
    switch (c.ptr[0]) {
    case '"':
    case '\\':
        orr_buf_byte(b, '\\');
        orr_buf_byte(b, (uint8_t)c.ptr[0]);
        break;
    case '&':
        orr_buf_text(b, "&amp;");
        break;
    case '\t':
    case '\n':
    case '\r':
        orr_buf_byte(b, ' ');
        break;
    default:
        orr_buf_add(b, c.ptr, c.len);
    }
}

static void put_escaped(orr_buf *b, orr_str s)
{
    for (uint32_t n = 0; s.len; n++) {
        orr_str c;
        if (n == NAME_LENGTH) {
            orr_buf_text(b, "...");
            return;
        }
        const size_t took = orr__take_character(s, &c);
        put_character(b, c);
        s = (orr_str){s.ptr + took, s.len - took};
    }
}

static void put_kind(orr_buf *b, const orr_columns *c, const orr__box *box)
{
    const uint32_t i = box->first;
    const char *type = box->type == ORR__MIXED ? "other kinds" : orr_node_type_name(box->type);
    const bool has_collective =
        box->type == ORR_NODE_COMM_COLL && box->count == 1 && c->comm_type && c->comm_type[i] >= 0;
    const char *collective = has_collective ? orr_collective_name((uint32_t)c->comm_type[i]) : NULL;
    orr_buf_text(b, collective ? collective : type ? type : "unknown kind");
}

static void put_figures(orr_buf *b, const orr__box *box)
{
    char text[ORR_UNIT_ROOM];
    const uint64_t most_us = INT64_MAX / 1000000;
    if (box->duration_us || box->bytes)
        orr_buf_text(b, "\\n");
    if (box->duration_us) {
        const uint64_t us = box->duration_us < most_us ? box->duration_us : most_us;
        orr_buf_text(b, orr_time_text((orr_ps)us * 1000000, text));
    }
    if (box->duration_us && box->bytes)
        orr_buf_text(b, ", ");
    if (box->bytes)
        orr_buf_text(b, orr_bytes_text(box->bytes, text));
}

static void put_label(orr_buf *b, const orr__picture *p, const orr__box *box)
{
    char room[ORR__NAME_ROOM], text[ORR_UNIT_ROOM];
    const orr_str name = orr_trace_name(p->t, box->first);
    if (box->is_slice)
        orr_buf_text(b, "nodes");
    else
        put_escaped(b, box->count > 1 ? orr__operator_group(name, room) : name);
    if (box->count > 1 || box->is_slice)
        orr_buf_print(b, " x %s", orr_count_text(box->count, text));
    orr_buf_text(b, "\\n");
    put_kind(b, p->c, box);
    put_figures(b, box);
}

/* ---- frames ---- */

/* "layers.12.mlp", "layer3_fwd", "blocks/0": the number behind the word; false: there is none. */
static bool find_layer(orr_str name, orr_str *out)
{
    static const char *const words[] = {"layer", "block"};
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        const char *at = memmem(name.ptr, name.len, words[w], strlen(words[w]));
        if (!at)
            continue;
        const char *end = name.ptr + name.len;
        at += strlen(words[w]);
        while (at < end && strchr("s._/:- ", *at) && *at)
            at++;
        const char *begin = at;
        while (at < end && *at >= '0' && *at <= '9')
            at++;
        *out = (orr_str){begin, (size_t)(at - begin)};
        if (out->len)
            return true;
    }
    return false;
}

/* What the frame of node i says; nothing: it has none. */
static void name_frame(const orr__picture *p, uint32_t i, orr_buf *b)
{
    const orr_columns *c = p->c;
    orr_str layer;
    b->len = 0;
    if (p->opt->cluster == ORR_CLUSTER_STREAM && c->stream && c->stream[i] != ORR_NO_VALUE) {
        orr_buf_text(b, "stream ");
        orr_buf_i64(b, c->stream[i]);
    }
    if (p->opt->cluster == ORR_CLUSTER_LAYER && find_layer(orr_trace_name(p->t, i), &layer)) {
        orr_buf_text(b, "layer ");
        orr_buf_add(b, layer.ptr, layer.len);
    }
    if (p->opt->cluster == ORR_CLUSTER_RANK && p->opt->rank_of) {
        orr_buf_text(b, "rank ");
        orr_buf_u64(b, p->opt->rank_of[i]);
    }
    if (p->opt->cluster == ORR_CLUSTER_GROUP && c->pg_name && c->pg_name[i] != ORR_NO_NAME) {
        const orr_str group = orr_trace_text(p->t, c->pg_name[i]);
        orr_buf_text(b, "group ");
        orr_buf_add(b, group.ptr, group.len);
    }
}

/* A box has the frame that all its nodes have. */
static bool find_frames(const orr__picture *p, orr_intern *names, uint32_t *frame)
{
    orr_buf b = {0};
    bool is_done = true;
    for (uint32_t i = 0; i < p->c->count && is_done; i++) {
        const uint32_t at = p->box[i];
        uint32_t number = NO_FRAME;
        if (at == ORR_NO_NODE)
            continue;
        name_frame(p, i, &b);
        if (b.len)
            is_done = orr_intern_add(names, (orr_str){(const char *)b.ptr, b.len}, &number);
        if (p->boxes[at].first == i)
            frame[at] = number;
        else if (frame[at] != number)
            frame[at] = NO_FRAME;
    }
    is_done = is_done && !b.failed;
    orr_buf_fini(&b);
    return is_done;
}

/* ---- statements ---- */

static void put_box(orr_buf *b, const orr__picture *p, uint32_t at)
{
    const orr__box *box = &p->boxes[at];
    orr_buf_print(b, "\tb%lu [label=\"", (unsigned long)at);
    put_label(b, p, box);
    orr_buf_text(b, "\" id=\"");
    orr_buf_u64(b, p->c->id[box->first] + p->opt->id_shift);
    orr_buf_print(b, "\" fillcolor=\"%s\"]\n", color_of(box->type));
}

/* Boxes by frame: a list per frame, each in the order of the file. */
static orr_code put_frames(orr_buf *b, const orr__picture *p, orr_intern *names, orr_error *err)
{
    uint32_t *frame = orr_arena_new(p->arena, (size_t)p->box_count + 1, uint32_t);
    if (!frame || !find_frames(p, names, frame))
        return orr_no_memory(err);
    const uint32_t count = orr_intern_count(names);
    uint32_t *head = orr_arena_new(p->arena, (size_t)count + 1, uint32_t); /* box + 1 */
    uint32_t *next = orr_arena_new(p->arena, (size_t)p->box_count + 1, uint32_t);
    if (!head || !next)
        return orr_no_memory(err);
    for (uint32_t at = p->box_count; at-- > 0;) {
        uint32_t *list = &head[frame[at] == NO_FRAME ? count : frame[at]];
        next[at] = *list;
        *list = at + 1;
    }
    for (uint32_t f = 0; f <= count; f++) {
        if (f < count && head[f]) {
            orr_buf_print(b, "\tsubgraph cluster_%lu {\n\tlabel=\"", (unsigned long)f);
            put_escaped(b, orr_intern_get(names, f));
            orr_buf_text(b, "\" color=\"#888888\" style=rounded\n");
        }
        for (uint32_t at = head[f]; at; at = next[at - 1])
            put_box(b, p, at - 1);
        if (f < count && head[f])
            orr_buf_text(b, "\t}\n");
    }
    return ORR_OK;
}

static void put_links(orr_buf *b, const orr__picture *p)
{
    for (size_t k = 0; k < p->link_count; k++) {
        const orr__link *l = &p->links[k];
        orr_buf_print(b, "\tb%lu -> b%lu", (unsigned long)l->from, (unsigned long)l->to);
        orr_buf_text(b, l->is_control ? " [style=dashed arrowhead=tee]\n" : "\n");
    }
}

static orr_code put_picture(orr_buf *b, const orr__picture *p, orr_error *err)
{
    orr_intern *names = orr_intern_create();
    if (!names)
        return orr_no_memory(err);
    orr_buf_text(b,
                 "digraph {\n"
                 "\tgraph [fontname=\"Helvetica\" fontsize=11 nodesep=0.2 ranksep=0.35]\n"
                 "\tnode [shape=box style=\"rounded,filled\" fontname=\"Helvetica\" fontsize=10]\n"
                 "\tedge [arrowsize=0.7 color=\"#555555\"]\n");
    const orr_code code = put_frames(b, p, names, err);
    put_links(b, p);
    orr_buf_text(b, "}\n");
    orr_intern_destroy(names);
    return code ? code : b->failed ? orr_no_memory(err) : ORR_OK;
}

/* The same for people: dot_view_text.c. */
static orr_code dot_text(const orr_trace *t,
                         const orr_view_graph_options *opt,
                         orr_buf *b,
                         orr_view_graph_result *result,
                         orr_error *err)
{
    orr__picture p = {.arena = orr_arena_create(), .t = t, .c = orr_trace_columns(t), .opt = opt};
    if (!p.arena)
        return orr_no_memory(err);
    orr_code code = orr__picture_fold(&p, err);
    if (!code)
        code = put_picture(b, &p, err);
    *result = (orr_view_graph_result){.nodes = p.shown, .boxes = p.box_count};
    orr_arena_destroy(p.arena);
    return code;
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
                     orr_view_graph_result *result,
                     orr_error *err)
{
    if (opt->form == ORR_GRAPH_DOT && !opt->with_layout)
        return write_whole(text, path, err);
    orr_buf drawing = {0};
    const orr_str s = {(const char *)text->ptr, text->len};
    orr_code code = orr_layout_render(s, form_names[opt->form], &drawing, &result->is_plain, err);
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
    orr_view_graph_options own;
    orr_view_graph_result ignored;
    orr_code code = ORR__TAKE_OPTIONS(&own, opt, orr_view_graph_options, err);
    if (code)
        return code;
    opt = &own;
    result = result ? result : &ignored;
    *result = (orr_view_graph_result){.nodes = orr_trace_columns(t)->count};
    result->boxes = result->nodes;
    if (opt->form == ORR_GRAPH_GRAPHML)
        return orr__graphml_write(t, path, opt, result, err);
    orr_buf text = {0};
    code = opt->rules ? opt->rules->write_dot(t, opt->id_shift, &text, err)
                      : dot_text(t, opt, &text, result, err);
    if (!code)
        code = draw(&text, path, opt, result, err);
    orr_buf_fini(&text);
    return code;
}
