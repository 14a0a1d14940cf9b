/* SPDX-License-Identifier: Apache-2.0 */
/* json_view.c - a trace as JSON in three forms (chakra.md section 8, docs/format/json.md).
 *
 *     json     {"format": "orrery-trace", "version": 1, "metadata": {..}, "nodes": [..]}, indented
 *     jsonl    {"format":"orrery-trace","version":1,"metadata":{..}} and one node a line
 *     concat   {..}{..}{..}: metadata and nodes, indented; what the old jsonizer writes
 *
 * Cost: O(bytes of the trace), and a quarter of a megabyte of memory; pages of a mapped trace are given back
 * as they are passed. */
#include "json_view_impl.h"

enum { RELEASE_EVERY = 1 << 22 };

/* ---- leads ---- */

typedef struct setter {
    unsigned depth; /* of the records */
    bool is_compact;
} setter;

static void add(orr__lead *l, const char *s)
{
    const size_t n = strlen(s);
    memcpy(l->text + l->len, s, n);
    l->len += n;
}

static void add_break(const setter *s, orr__lead *l, unsigned depth)
{
    if (s->is_compact)
        return;
    add(l, "\n");
    for (unsigned i = 0; i < s->depth + depth; i++)
        add(l, "  ");
}

static void set_key(const setter *s, orr__lead *l, unsigned depth, const char *key)
{
    add(l, ",");
    add_break(s, l, depth);
    add(l, "\"");
    add(l, key);
    add(l, s->is_compact ? "\":" : "\": ");
}

static void set_item(const setter *s, orr__lead *l, unsigned depth)
{
    add(l, ",");
    add_break(s, l, depth);
}

/* int64_val -> int64Val */
static void set_member(const setter *s, orr__lead *l, uint32_t number)
{
    const orr_value_kind kind = (orr_value_kind)((number - ATTR_FIRST_MEMBER) / 2 + 1);
    const char *snake = orr_value_member(kind, (number & 1) == 0);
    char camel[24];
    size_t n = 0;
    for (; *snake && n < sizeof camel - 1; snake++) {
        const bool is_start = *snake == '_';
        snake += is_start;
        camel[n++] = (char)(is_start ? *snake - 'a' + 'A' : *snake);
    }
    camel[n] = '\0';
    set_key(s, l, 3, camel);
}

static void set_record(const setter *s, orr__layout *lay)
{
    set_key(s, &lay->version, 1, "version");
    set_key(s, &lay->meta_attr, 1, "attr");
    set_key(s, &lay->id, 1, "id");
    set_key(s, &lay->name, 1, "name");
    set_key(s, &lay->type, 1, "type");
    set_key(s, &lay->ctrl, 1, "ctrlDeps");
    set_key(s, &lay->data, 1, "dataDeps");
    set_key(s, &lay->start, 1, "startTimeMicros");
    set_key(s, &lay->duration, 1, "durationMicros");
    set_key(s, &lay->inputs, 1, "inputs");
    set_key(s, &lay->outputs, 1, "outputs");
    set_key(s, &lay->attr, 1, "attr");
    set_key(s, &lay->record_unknown, 1, "unknownFields");
    add_break(s, &lay->end_record, 0);
}

static void set_parts(const setter *s, orr__layout *lay)
{
    set_item(s, &lay->part_item, 2);
    set_key(s, &lay->io[IO_VALUES], 2, "values");
    set_key(s, &lay->io[IO_SHAPES], 2, "shapes");
    set_key(s, &lay->io[IO_TYPES], 2, "types");
    set_key(s, &lay->io_unknown, 2, "unknownFields");
    add_break(s, &lay->end_part, 1);
    set_key(s, &lay->attr_name, 3, "name");
    set_key(s, &lay->doc, 3, "docString");
    for (uint32_t i = ATTR_FIRST_MEMBER; i <= ATTR_LAST_MEMBER; i++)
        set_member(s, &lay->member[i], i);
    set_key(s, &lay->attr_unknown, 3, "unknownFields");
    add_break(s, &lay->end_attr, 2);
    set_key(s, &lay->values, 4, "values");
    set_key(s, &lay->list_unknown, 4, "unknownFields");
    set_item(s, &lay->list_item, 5);
    add_break(s, &lay->end_values, 4);
    add_break(s, &lay->end_list, 3);
}

static void set_layout(orr__layout *lay, unsigned depth, bool is_compact)
{
    const setter s = {depth, is_compact};
    *lay = (orr__layout){.version = {.len = 0}};
    set_record(&s, lay);
    set_parts(&s, lay);
}

/* ---- the forms ---- */

/* Strings around the records of each form. */
typedef struct frame {
    unsigned meta_depth, node_depth;
    bool is_compact, keeps_unknown;
    const char *head, *before_meta;
    const char *first, *between, *last,
        *none; /* in front of the first node, the others; behind; no nodes */
} frame;

static const frame frames[] = {
    [ORR_VIEW_JSON] = {1, 2, false, true, "{\n  \"format\": \"orrery-trace\",\n  \"version\": 1",
                       ",\n  \"metadata\": ", ",\n  \"nodes\": [\n    ", ",\n    ", "\n  ]\n}\n",
                       ",\n  \"nodes\": []\n}\n"},
    [ORR_VIEW_JSONL] = {0, 0, true, true, "{\"format\":\"orrery-trace\",\"version\":1",
                        ",\"metadata\":", "}\n", "\n", "\n", "}\n"},
    [ORR_VIEW_CONCAT] = {0, 0, false, false, "", "", "", "", "", ""},
};

static uint8_t *put_frame(const orr__show *v, uint8_t *p, const char *text)
{
    return orr__show_word(orr__show_need(v, p, ORR__LINE), text);
}

static void release_behind(const orr_trace *t, uint32_t index, uint64_t *released)
{
    const uint64_t at = t->body_at[index];
    if (t->source && at >= *released + RELEASE_EVERY) {
        orr_input_release(t->source, *released, at);
        *released = at;
    }
}

static uint8_t *put_nodes(orr__show *v, uint8_t *p, const orr_trace *t, const frame *f)
{
    uint64_t released = 0;
    for (uint32_t i = 0; i < t->count && !orr_output_has_failed(v->to); i++) {
        p = put_frame(v, p, i ? f->between : f->first);
        p = orr__show_node(v, p, orr__trace_body(t, i));
        release_behind(t, i, &released);
    }
    return put_frame(v, p, t->count ? f->last : f->none);
}

static void put_trace(orr__show *v,
                      const orr_trace *t,
                      const orr_view_json_options *opt,
                      orr__layout *lay)
{
    const frame *f = &frames[opt->form];
    uint8_t *p = put_frame(v, v->text, f->head);
    v->lay = lay;
    v->shift = opt->id_shift;
    v->keeps_unknown = v->names_all_types = f->keeps_unknown;
    if (t->has_metadata || opt->always_metadata) {
        set_layout(lay, f->meta_depth, f->is_compact);
        p = put_frame(v, p, f->before_meta);
        p = orr__show_meta(v, p, orr__trace_meta_body(t));
    }
    set_layout(lay, f->node_depth, f->is_compact);
    p = put_nodes(v, p, t, f);
    orr_output_add(v->to, v->text, (size_t)(p - v->text));
}

bool orr_view_form_find(orr_str name, orr_view_form *out)
{
    static const char *const names[] = {"json", "jsonl", "concat"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == name.len && memcmp(names[i], name.ptr, name.len) == 0) {
            *out = (orr_view_form)i;
            return true;
        }
    return false;
}

orr_code orr_view_json(const orr_trace *t,
                       const char *path,
                       const orr_view_json_options *opt,
                       orr_error *err)
{
    static const orr_view_json_options defaults;
    orr__show v = {.to = NULL};
    orr__layout lay;
    const orr_code code = orr_output_open(path, &v.to, err);
    if (code)
        return code;
    v.text = orr_alloc(ORR__SHOW_ROOM, 1);
    if (v.text) {
        v.text_end = v.text + ORR__SHOW_ROOM;
        put_trace(&v, t, opt ? opt : &defaults, &lay);
    }
    const bool has_memory = v.text && !v.unknown.failed;
    orr_buf_fini(&v.unknown);
    orr_free(v.text);
    if (has_memory)
        return orr_output_commit(&v.to, err);
    orr_output_discard(v.to);
    return orr_no_memory(err);
}
