/* SPDX-License-Identifier: Apache-2.0 */
/* chakra_link.c - the rules of chakra_trace_link for our linker: its steps and what it rejects
 * (chakra.md 3). */
#include "chakra.h"

#include "base/formats/json.h"
#include "base/io/output.h"
#include "base/memory/map.h"
#include "base/memory/sort.h"
#include "base/text/number.h"
#include "base/text/text.h"
#include "sources/torch/link/json_repaint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ==== reading a host trace as chakra_trace_link does, one node at a time (chakra.md 3.2).
 *
 * Under our own rules linked_read.c reads them.  There are two forms: nodes with `ctrl_deps` and
 * `attrs`, or flat ones with `parent` and `rf_id`.  Ids ascend by start, the file is ordered by
 * end, so nodes are sorted. Cost: one pass and one sort; 48 bytes per node. */

typedef struct reader {
    orr_json *j;
    link_tally *tally;
    chakra_host *h;
    orr_error *err;
    bool has_nodes, has_schema, has_events;
    uint64_t last; /* offset after the last node, or after the opening bracket */
} reader;

enum { ROOT = 1 }; /* id of the process node */

/* ---- one node ---- */

/* A value of another type counts as missing. */
static void take_number(orr_json_value v, int64_t *out)
{
    int64_t n;
    if (!orr_json_get_i64(v, &n, NULL))
        *out = n;
}

static void take_attrs(chakra_host_node *n, orr_json_value list)
{
    orr_json_value entry, name, value;
    orr_str word;
    int64_t tid;
    for (orr_json_iter it = orr_json_iterate(list); orr_json_next_value(&it, &entry);) {
        if (!orr_json_find(entry, "name", &name) || orr_json_get_str(name, &word, NULL) ||
            (!orr_str_is(word, "rf_id") && !orr_str_is(word, "tid")) ||
            !orr_json_find(entry, "value", &value))
            continue;
        if (word.ptr[0] == 'r')
            take_number(value, &n->rf);
        else if (!orr_json_get_i64(value, &tid, NULL))
            n->tid = (uint32_t)tid;
    }
}

/* A parent is an integer or a list of one. */
static bool take_parent(chakra_host_node *n, orr_json_value v)
{
    orr_json_iter it = orr_json_iterate(v);
    orr_json_value first;
    if (orr_json_type_of(v) == ORR_JSON_ARRAY)
        return !orr_json_next_value(&it, &first) || !orr_json_get_i64(first, &n->parent, NULL);
    return !orr_json_get_i64(v, &n->parent, NULL);
}

/* Returns what is missing, or NULL. */
static const char *take_fields(reader *r, chakra_host_node *n, orr_json_value node, orr_code *code)
{
    orr_str key, name = {NULL, 0};
    orr_json_value v;
    bool has_id = false, has_parent = true;
    for (orr_json_iter it = orr_json_iterate(node); orr_json_next_member(&it, &key, &v);) {
        if (orr_str_is(key, "id")) {
            has_id = !orr_json_get_i64(v, &n->id, NULL);
        } else if (orr_str_is(key, "name")) {
            if (orr_json_get_str(v, &name, NULL))
                name = (orr_str){NULL, 0};
        } else if (orr_str_is(key, "ctrl_deps")) {
            has_parent = take_parent(n, v);
        } else if (orr_str_is(key, "attrs")) {
            take_attrs(n, v);
        } else if (orr_str_is(key, "parent")) {
            has_parent = take_parent(n, v);
            r->h->is_flat = true;
        } else if (orr_str_is(key, "rf_id")) {
            take_number(v, &n->rf);
        }
    }
    if (!has_id)
        return "id";
    if (!name.ptr)
        return "name";
    if (!orr_intern_add(r->h->names, name, &n->name))
        *code = orr_no_memory(r->err);
    return has_parent ? NULL : "ctrl_deps";
}

static orr_code read_node(void *context, orr_json_value node)
{
    reader *r = context;
    chakra_host *h = r->h;
    chakra_host_node n = {.parent = INT64_MIN, .rf = INT64_MIN};
    orr_code code = ORR_OK;
    const orr_str raw = orr_json_raw(node);
    r->last = orr_json_byte(node) + raw.len;
    r->tally->counts.of[ORR_LINK_HOST_NODES]++;
    const char *missing = take_fields(r, &n, node, &code);
    if (code)
        return code;
    if (missing)
        return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr_json_where(node)),
                        "a host node without %s, or with one of a wrong type", missing);
    n.at = orr_json_byte(node);
    if (raw.len > UINT32_MAX || h->count >= UINT32_MAX - 1)
        return orr_no_memory(r->err);
    n.length = (uint32_t)raw.len;
    return orr_push(h->nodes, h->count, h->room, n) ? ORR_OK : orr_no_memory(r->err);
}

/* Of duplicate lists the first wins. */
static orr_code begin_nodes(void *context, const orr_json_item *list)
{
    reader *r = context;
    if (r->has_nodes)
        return ORR_END;
    r->has_nodes = true;
    r->h->nodes_at = list->byte;
    r->last = list->byte + 1;
    return ORR_OK;
}

/* Just after the closing bracket: the JSON reader reports only where things begin. */
static uint64_t end_of_list(const chakra_host *h, uint64_t from)
{
    while (from < h->text.len && h->text.ptr[from] != ']')
        from++;
    return from + 1;
}

/* ---- the document ---- */

static orr_code read_schema(reader *r)
{
    orr_json_value v;
    orr_str s;
    uint32_t number;
    orr_code code = orr_json_load(r->j, &v, r->err);
    if (code || (code = orr_json_get_str(v, &s, r->err)))
        return code;
    if (!orr_intern_add(r->h->names, s, &number))
        return orr_no_memory(r->err);
    r->h->schema = orr_intern_get(r->h->names, number);
    r->has_schema = true;
    if (link_knows_schema(s))
        return ORR_OK;
    return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr_json_where(v)),
                    "schema \"%.*s\" is not one that chakra_trace_link reads", ORR_SHOWN(s, 60));
}

static orr_code read_member(void *context, const orr_json_item *item)
{
    ((reader *)context)->has_events |= orr_str_is(item->key, "traceEvents");
    return orr_str_is(item->key, "schema") ? read_schema(context) : ORR_OK;
}

static orr_code read_document(reader *r)
{
    static const orr_json_list how = {.key = "nodes",
                                      .what = "a host trace",
                                      .begin = begin_nodes,
                                      .item = read_node,
                                      .member = read_member};
    const orr_where start = orr_json_place(r->j, 0);
    const orr_code code = orr_json_walk_list(r->j, &how, r, r->err);
    if (code)
        return code;
    if (!r->has_nodes)
        return orr_fail(r->err, ORR_EINPUT, &start, "%s",
                        r->has_events ? "this is a device trace, given as the host trace: the two "
                                        "look exchanged"
                                      : "no nodes: this is not a host trace");
    if (!r->has_schema)
        return orr_fail(r->err, ORR_EINPUT, &start, "no schema: this is not a host trace");
    r->h->nodes_end = end_of_list(r->h, r->last);
    return ORR_OK;
}

/* ---- order ---- */

static int by_id(const void *a, const void *b)
{
    const chakra_host_node *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Of duplicate ids the last wins. */
static orr_code drop_duplicates(reader *r)
{
    chakra_host *h = r->h;
    size_t kept = 0;
    for (size_t i = 0; i < h->count; i++) {
        if (i + 1 == h->count || h->nodes[i].id != h->nodes[i + 1].id) {
            h->nodes[kept++] = h->nodes[i];
            continue;
        }
        const orr_where at =
            r->tally->is_strict ? orr_json_place(r->j, h->nodes[i].at) : (orr_where){0};
        const orr_code code = link_count(r->tally, ORR_LINK_DUPLICATE_NODES, &at, r->err);
        if (code)
            return code;
    }
    h->count = kept;
    return ORR_OK;
}

/* Index of the node with this id, or UINT32_MAX. */
static uint32_t host_find(const chakra_host *h, int64_t id)
{
    size_t low = 0, high = h->count;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (h->nodes[mid].id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low < h->count && h->nodes[low].id == id ? (uint32_t)low : UINT32_MAX;
}

/* Follow the parents up to a node whose state is known and copy that to the whole chain, so each
 * node is visited at most twice.  A cycle ends where it meets itself, as not reached. */
static void mark_reached(chakra_host *h, uint32_t *parent, uint8_t *state)
{
    enum { UNKNOWN, ON_WAY, REACHED, LOST };
    for (uint32_t i = 0; i < h->count; i++) {
        uint32_t at = i;
        while (at != UINT32_MAX && state[at] == UNKNOWN) {
            state[at] = h->nodes[at].id == ROOT ? REACHED : ON_WAY;
            at = state[at] == REACHED ? at : parent[at];
        }
        const uint8_t answer = at != UINT32_MAX && state[at] == REACHED ? REACHED : LOST;
        for (at = i; at != UINT32_MAX && state[at] == ON_WAY; at = parent[at])
            state[at] = answer;
    }
    for (uint32_t i = 0; i < h->count; i++)
        h->nodes[i].is_reached = state[i] == REACHED;
}

static orr_code find_reached(reader *r)
{
    chakra_host *h = r->h;
    uint32_t *parent = orr_alloc(h->count, sizeof *parent);
    uint8_t *state = orr_alloc(h->count, 1);
    if (h->count && (!parent || !state)) {
        orr_free(parent);
        orr_free(state);
        return orr_no_memory(r->err);
    }
    for (uint32_t i = 0; i < h->count; i++)
        parent[i] = host_find(h, h->nodes[i].parent);
    mark_reached(h, parent, state);
    orr_free(parent);
    orr_free(state);
    return ORR_OK;
}

static orr_code check_root(reader *r)
{
    if (host_find(r->h, ROOT) != UINT32_MAX)
        return ORR_OK;
    return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr_json_place(r->j, 0)),
                    "no node 1: a host trace has its process there");
}

/* A cycle is never reached, and at least one of its nodes precedes its parent. */
static orr_code count_unreached_node(reader *r, const chakra_host_node *n)
{
    const orr_where at = r->tally->is_strict ? orr_json_place(r->j, n->at) : (orr_where){0};
    if (n->id >= 0 && n->parent >= n->id && host_find(r->h, n->parent) != UINT32_MAX) {
        const orr_code code =
            link_count_later(r->tally, &at, (uint64_t)n->id, (uint64_t)n->parent, r->err);
        if (code)
            return code;
    }
    return link_count(r->tally, ORR_LINK_NO_ROOT, &at, r->err);
}

static orr_code count_unreached(reader *r)
{
    orr_code code = ORR_OK;
    for (size_t i = 0; i < r->h->count && !code; i++) {
        if (!r->h->nodes[i].is_reached)
            code = count_unreached_node(r, &r->h->nodes[i]);
    }
    return code;
}

static orr_code host_read(
    orr_json *j, orr_span bytes, link_tally *tally, chakra_host *out, orr_error *err)
{
    reader r = {.j = j, .tally = tally, .h = out, .err = err};
    orr_code code;
    out->text = (orr_str){(const char *)bytes.ptr, bytes.len};
    out->document_at = orr_str_begins(out->text, "\xEF\xBB\xBF") ? 3 : 0;
    out->names = orr_intern_create();
    if (!out->names)
        return orr_no_memory(err);
    if ((code = read_document(&r)))
        return code;
    if (out->count)
        orr_sort(out->nodes, out->count, sizeof *out->nodes, by_id);
    if ((code = drop_duplicates(&r)) || (code = check_root(&r)) || (code = find_reached(&r)))
        return code;
    return count_unreached(&r);
}

static void host_fini(chakra_host *h)
{
    orr_free(h->nodes);
    orr_intern_destroy(h->names);
    *h = (chakra_host){0};
}

/* ==== writing the linked trace: the host trace with device nodes and more keys (chakra.md 3.8).
 *
 * Every key of the host file is kept, in its order; nodes are renumbered and written in that order.
 * A device node is a copy of its host node with other values for some keys. Cost: linear in the
 * output, which is streamed in pieces. */

enum { PIECE = 1 << 20 };

typedef struct writer {
    const orr_link *l;
    orr_output *out;
    orr_buf buf;    /* output not yet written */
    orr_buf values; /* values of the overrides, concatenated */
    orr_map *spare; /* missing parent -> its new id */
    uint64_t next_spare;
    size_t next_sync;
    bool failed;
} writer;

/* ---- overrides ---- */

static orr_json_writer begin_value(writer *w, repaint_overrides *v, const char *key)
{
    return repaint_override_begin(v, &w->values, key);
}

static void add_u64(writer *w, repaint_overrides *v, const char *key, uint64_t n)
{
    orr_json_writer j = begin_value(w, v, key);
    orr_json_u64(&j, n);
}

static void add_number(writer *w, repaint_overrides *v, const char *key, double n, bool is_real)
{
    orr_json_writer j = begin_value(w, v, key);
    char digits[400];
    if (is_real) {
        orr_json_double(&j, n);
    } else if (n > -9e18 && n < 9e18) {
        orr_json_i64(&j, (int64_t)n);
    } else {
        const int length = snprintf(digits, sizeof digits, "%.0f", n);
        orr_json_raw_text(&j, (orr_str){digits, length > 0 ? (size_t)length : 0});
    }
}

/* The start time, verbatim from the file. */
static void add_start(writer *w, repaint_overrides *v, const kin_event *e)
{
    if (e->flags & KIN_TS_REAL) {
        add_number(w, v, "ts", e->ts, true);
        return;
    }
    orr_json_writer j = begin_value(w, v, "ts");
    if (e->flags & KIN_TS_HUGE)
        orr_json_raw_text(&j, orr_intern_get(w->l->device.texts, (uint32_t)e->start_ns));
    else
        orr_json_i64(&j, e->start_ns);
}

static void add_text(writer *w, repaint_overrides *v, const char *key, uint32_t text)
{
    orr_json_writer j = begin_value(w, v, key);
    if (text == KIN_NO_TEXT)
        orr_json_null(&j);
    else
        orr_json_str(&j, orr_intern_get(w->l->device.texts, text));
}

static void write_node(writer *w, const chakra_host_node *n, repaint_overrides *v)
{
    repaint_override_finish(v, &w->values);
    repaint_object(&w->buf, chakra_of(w->l)->host.text.ptr + n->at, 2, v->of, v->count);
    if (w->buf.len > PIECE)
        orr_output_drain(w->out, &w->buf);
}

/* ---- parents ---- */

/* Parents that are not in the trace get ids, too, after all nodes. */
static uint64_t new_parent(writer *w, int64_t id)
{
    const uint32_t h = host_find(&chakra_of(w->l)->host, id);
    if (h != UINT32_MAX)
        return chakra_of(w->l)->new_id[h];
    uint32_t number = orr_map_find(w->spare, (uint64_t)id, LINK_NONE);
    if (number == LINK_NONE) {
        number = (uint32_t)w->next_spare++;
        w->failed |= !orr_map_put(w->spare, (uint64_t)id, number, NULL);
    }
    return chakra_of(w->l)->node_count + number;
}

static bool has_parent(const chakra_host_node *n)
{
    return n->parent != INT64_MIN;
}

/* ---- nodes ---- */

static void add_syncs(writer *w, repaint_overrides *v, uint64_t id)
{
    const orr_link *l = w->l;
    if (w->next_sync == chakra_of(l)->sync_count || chakra_of(l)->syncs[w->next_sync].node != id)
        return;
    orr_json_writer j = begin_value(w, v, "sync_dep");
    j.style.indent = 4;
    j.depth = 3;
    orr_json_begin_array(&j);
    for (; w->next_sync < chakra_of(l)->sync_count && chakra_of(l)->syncs[w->next_sync].node == id;
         w->next_sync++)
        orr_json_u64(&j, chakra_of(l)->syncs[w->next_sync].from);
    orr_json_end_array(&j);
}

static void add_waits_for(writer *w, repaint_overrides *v, uint32_t h)
{
    const uint32_t other = chakra_of(w->l)->waits_for[h];
    if (other != LINK_NONE) {
        add_u64(w, v, "inter_thread_dep", chakra_of(w->l)->new_id[other]);
        return;
    }
    orr_json_writer j = begin_value(w, v, "inter_thread_dep");
    orr_json_null(&j);
}

static void add_measured(writer *w, repaint_overrides *v, uint32_t h)
{
    const orr_link *l = w->l;
    const uint32_t op = chakra_of(l)->op_of[h];
    const kin_event *e = link_op(l, op);
    add_number(w, v, "inclusive_dur", e->dur, e->flags & KIN_DUR_REAL);
    add_number(w, v, "exclusive_dur", l->ops.own[op], l->ops.own_is_real[op]);
    add_start(w, v, e);
    add_waits_for(w, v, h);
}

static void write_host(writer *w, uint32_t h)
{
    const chakra_host_node *n = &chakra_of(w->l)->host.nodes[h];
    repaint_overrides v = {0};
    w->values.len = 0;
    add_u64(w, &v, "id", chakra_of(w->l)->new_id[h]);
    if (has_parent(n) && !chakra_of(w->l)->host.is_flat)
        add_u64(w, &v, "ctrl_deps", new_parent(w, n->parent));
    if (chakra_of(w->l)->op_of[h] != LINK_NONE)
        add_measured(w, &v, h);
    add_syncs(w, &v, chakra_of(w->l)->new_id[h]);
    write_node(w, n, &v);
}

/* The current name of NCCL's kernels. */
static bool is_nccl(const orr_link *l, const kin_event *e)
{
    static const char word[] = "ncclDevKernel";
    const orr_str name = orr_intern_get(l->device.texts, e->name);
    for (size_t i = 0; i + sizeof word - 1 <= name.len; i++) {
        if (memcmp(name.ptr + i, word, sizeof word - 1) == 0)
            return true;
    }
    return false;
}

static const char *category(const kin_event *e)
{
    return e->kind == KIN_KERNEL ? "kernel" : e->kind == KIN_MEMCPY ? "gpu_memcpy" : "gpu_memset";
}

/* The group's name verbatim from the event; it need not be a string. */
static void add_group(writer *w, repaint_overrides *v, const kin_event *e)
{
    const kin_trace *k = &w->l->device;
    if (e->extra == KIN_NO_TEXT || !is_nccl(w->l, e) || k->extras[e->extra].group == KIN_NO_TEXT)
        return;
    const orr_str raw = orr_intern_get(k->texts, k->extras[e->extra].group);
    if (orr_str_is(raw, "null"))
        return;
    begin_value(w, v, "pg_name");
    repaint_value(&w->values, raw.ptr, 3);
}

/* Keys of the host node keep their positions; among new keys, those of host nodes come first. */
static void write_device(writer *w, uint32_t h, const kin_event *e, uint64_t id)
{
    const chakra_host_node *n = &chakra_of(w->l)->host.nodes[h];
    repaint_overrides v = {0};
    w->values.len = 0;
    const bool dur_is_real = e->flags & KIN_DUR_REAL;
    add_u64(w, &v, "id", id);
    add_text(w, &v, "name", e->name);
    add_number(w, &v, "inclusive_dur", e->dur, dur_is_real);
    add_number(w, &v, "exclusive_dur", e->dur, dur_is_real);
    add_start(w, &v, e);
    add_waits_for(w, &v, h);
    add_u64(w, &v, "ctrl_deps", chakra_of(w->l)->new_id[h]);
    orr_json_writer j = begin_value(w, &v, "cat");
    orr_json_text(&j, category(e));
    add_text(w, &v, "ph", e->ph);
    j = begin_value(w, &v, "stream");
    if (e->stream == KIN_NO_NUMBER)
        orr_json_null(&j);
    else
        orr_json_i64(&j, e->stream);
    add_group(w, &v, e);
    add_syncs(w, &v, id);
    write_node(w, n, &v);
}

static void write_nodes(writer *w)
{
    const orr_link *l = w->l;
    orr_buf_byte(&w->buf, '[');
    for (uint32_t h = 0; h < chakra_of(l)->host.count && !w->failed; h++) {
        if (h)
            orr_buf_byte(&w->buf, ',');
        repaint_line(&w->buf, 2);
        write_host(w, h);
        for (uint32_t p = chakra_of(l)->placed.first[h]; p < chakra_of(l)->placed.first[h + 1];
             p++) {
            orr_buf_byte(&w->buf, ',');
            repaint_line(&w->buf, 2);
            write_device(w, h, &l->device.events[chakra_of(l)->placed.list[p]],
                         chakra_of(l)->new_id[h] + 1 + (p - chakra_of(l)->placed.first[h]));
        }
    }
    if (chakra_of(l)->host.count)
        repaint_line(&w->buf, 1);
    orr_buf_byte(&w->buf, ']');
}

/* ---- the document ---- */

static const char *write_member(writer *w, const char *p)
{
    const char *text = chakra_of(w->l)->host.text.ptr;
    repaint_line(&w->buf, 1);
    p = repaint_space(repaint_value(&w->buf, p, 1)) + 1; /* the key; past the colon */
    orr_buf_add(&w->buf, ": ", 2);
    p = repaint_space(p);
    if ((uint64_t)(p - text) != chakra_of(w->l)->host.nodes_at)
        return repaint_value(&w->buf, p, 1);
    write_nodes(w);
    return text + chakra_of(w->l)->host.nodes_end;
}

static void write_document(writer *w)
{
    const char *p =
        repaint_space(chakra_of(w->l)->host.text.ptr + chakra_of(w->l)->host.document_at);
    orr_buf_byte(&w->buf, '{');
    for (p = repaint_space(p + 1); *p != '}' && !w->failed; p = repaint_space(p)) {
        if (*p == ',') {
            orr_buf_byte(&w->buf, ',');
            p = repaint_space(p + 1);
        }
        p = write_member(w, p);
    }
    repaint_line(&w->buf, 0);
    orr_buf_byte(&w->buf, '}');
}

static orr_code chakra_write(const orr_link *l, const char *path, orr_error *err)
{
    writer w = {.l = l, .spare = orr_map_create(16)};
    orr_code code = w.spare ? orr_output_open(path, &w.out, err) : orr_no_memory(err);
    if (code) {
        orr_map_destroy(w.spare);
        return code;
    }
    write_document(&w);
    if (w.failed || w.buf.failed || w.values.failed) {
        code = orr_no_memory(err);
        orr_output_discard(w.out);
    } else {
        orr_output_drain(w.out, &w.buf);
        code = orr_output_commit(&w.out, err);
    }
    orr_map_destroy(w.spare);
    orr_buf_fini(&w.buf);
    orr_buf_fini(&w.values);
    return code;
}

/* ==== waits for the device: sync_dep (chakra.md 3.6, 3.8).
 *
 * chakra_trace_link identifies both ends of a wait by external id only.  For every event E with the
 * id of the waiting end, the first operator that starts after E depends on the last event with the
 * id of the other end, provided that is a device node.  That id is translated to a new one when the
 * device node is numbered (if it has one by then) and once more at the end, so the result may be a
 * different node.  All of this is reproduced. Cost: linear, plus a sort of the results. */

/* The external ids of both ends of a wait. */
typedef struct id_pair {
    int64_t end, start;
} id_pair;

typedef struct syncer {
    orr_link *l;
    id_pair *ids;
    size_t id_count;
    orr_map *last_of; /* external id -> last event with it */
    link_pairs to;    /* device event -> operators that depend on it */
    orr_error *err;
} syncer;

static int by_ids(const void *a, const void *b)
{
    const id_pair *x = a, *y = b;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return x->start < y->start ? -1 : x->start > y->start;
}

static bool list_ids(syncer *s)
{
    const orr_link *l = s->l;
    s->ids = orr_alloc(l->wait_count + 1, sizeof *s->ids);
    if (!s->ids)
        return false;
    for (size_t i = 0; i < l->wait_count; i++) {
        const int64_t start = l->device.events[l->waits[i].from].external;
        const int64_t end = l->device.events[l->waits[i].to].external;
        if (start != -1 && end != -1 && start != end)
            s->ids[s->id_count++] = (id_pair){end, start};
    }
    orr_sort(s->ids, s->id_count, sizeof *s->ids, by_ids);
    return true;
}

static bool map_externals(syncer *s)
{
    const kin_trace *k = &s->l->device;
    for (uint32_t i = 0; i < k->count; i++) {
        if (!orr_map_put(s->last_of, (uint64_t)k->events[i].external, i, NULL))
            return false;
    }
    return true;
}

/* The first operator that starts after ts, or LINK_NONE. */
static uint32_t next_operator(const orr_link *l, double ts)
{
    uint32_t low = 0, high = l->ops.count;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (link_op(l, mid)->ts <= ts)
            low = mid + 1;
        else
            high = mid;
    }
    return low < l->ops.count ? low : LINK_NONE;
}

static size_t first_with_end(const syncer *s, int64_t end)
{
    size_t low = 0, high = s->id_count;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (s->ids[mid].end < end)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The waits whose waiting end is event i. */
static bool apply_event(syncer *s, uint32_t i)
{
    const kin_event *e = &s->l->device.events[i];
    for (size_t k = first_with_end(s, e->external); k < s->id_count && s->ids[k].end == e->external;
         k++) {
        if (k && by_ids(&s->ids[k], &s->ids[k - 1]) == 0)
            continue;
        const uint32_t from = orr_map_find(s->last_of, (uint64_t)s->ids[k].start, LINK_NONE);
        const uint32_t op = next_operator(s->l, e->ts);
        if (from != LINK_NONE && op != LINK_NONE && chakra_of(s->l)->host_of[op] != LINK_NONE &&
            !link_pairs_add(&s->to, from, chakra_of(s->l)->host_of[op]))
            return false;
    }
    return true;
}

/* The id of host node h at the time node `now` is numbered, translated a second time. */
static uint64_t translated(const orr_link *l, uint32_t h, uint32_t now)
{
    const uint64_t once =
        h <= now ? chakra_of(l)->new_id[h] : (uint64_t)chakra_of(l)->host.nodes[h].id;
    const uint32_t again = host_find(&chakra_of(l)->host, (int64_t)once);
    return again == UINT32_MAX ? once : chakra_of(l)->new_id[again];
}

static bool note_sync(orr_link *l, uint64_t node, uint64_t from)
{
    if (node >= chakra_of(l)->node_count)
        return true;
    return orr_push(chakra_of(l)->syncs, chakra_of(l)->sync_count, chakra_of(l)->sync_room,
                    (chakra_sync){node, from});
}

static bool note_device_nodes(orr_link *l, const link_lists *to, uint32_t h)
{
    for (uint32_t p = chakra_of(l)->placed.first[h]; p < chakra_of(l)->placed.first[h + 1]; p++) {
        const uint32_t event = chakra_of(l)->placed.list[p];
        const uint64_t id = chakra_of(l)->new_id[h] + 1 + (p - chakra_of(l)->placed.first[h]);
        for (uint32_t i = to->first[event]; i < to->first[event + 1]; i++) {
            if (!note_sync(l, translated(l, to->list[i], h), id))
                return false;
        }
    }
    return true;
}

static int by_node(const void *a, const void *b)
{
    const chakra_sync *x = a, *y = b;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

static void sort_syncs(orr_link *l)
{
    size_t kept = 0;
    if (chakra_of(l)->sync_count)
        orr_sort(chakra_of(l)->syncs, chakra_of(l)->sync_count, sizeof *chakra_of(l)->syncs,
                 by_node);
    for (size_t i = 0; i < chakra_of(l)->sync_count; i++) {
        if (kept == 0 || by_node(&chakra_of(l)->syncs[i], &chakra_of(l)->syncs[kept - 1]) != 0)
            chakra_of(l)->syncs[kept++] = chakra_of(l)->syncs[i];
    }
    chakra_of(l)->sync_count = kept;
    l->tally.counts.of[ORR_LINK_SYNCS] = kept;
}

static orr_code find_all(syncer *s)
{
    orr_link *l = s->l;
    link_lists to;
    bool has_room = list_ids(s) && map_externals(s);
    for (uint32_t i = 0; has_room && s->id_count && i < l->device.count; i++)
        has_room = apply_event(s, i);
    if (!has_room)
        return orr_no_memory(s->err);
    const orr_code code = link_pairs_take(&s->to, (uint32_t)l->device.count, l->arena, &to, s->err);
    if (code)
        return code;
    for (uint32_t h = 0; has_room && h < chakra_of(l)->host.count; h++)
        has_room = note_device_nodes(l, &to, h);
    if (!has_room)
        return orr_no_memory(s->err);
    sort_syncs(l);
    return ORR_OK;
}

static orr_code find_syncs(orr_link *l, orr_error *err)
{
    syncer s = {.l = l, .last_of = orr_map_create(l->device.count), .err = err};
    const orr_code code = s.last_of ? find_all(&s) : orr_no_memory(err);
    orr_map_destroy(s.last_of);
    orr_free(s.ids);
    orr_free(s.to.pairs);
    return code;
}

/* ==== matching host nodes with operators and device operations with host nodes (chakra.md 3.7,
 * 3.8).  link_merge.c does it without the defects.
 *
 * Both traces identify an operator by its record-function id.  A device operation refers to its
 * launch by correlation id; from there chakra_trace_link searches back for an operator with the
 * kernel's external id.  Every host node with that external id gets the kernel; kernels without any
 * are dropped. Cost: linear, plus a binary search per device operation. */

/* ---- threads that wake others (chakra.md 3.5) ---- */

/* Microseconds of silence on a thread after which another one is taken to have woken it. */
enum { GAP_US = 1000 };

/* The operator that started last, and the last one of any other thread.  Ties: the first of its
 * thread, then the thread that was seen first. */
typedef struct latest {
    const orr_link *l;
    const uint32_t *rank; /* of threads: by first operator */
    uint32_t first, second;
} latest;

static uint32_t thread_of(const latest *s, uint32_t op)
{
    return link_op(s->l, op)->tid;
}

static bool is_later(const latest *s, uint32_t a, uint32_t b)
{
    if (b == LINK_NONE)
        return true;
    const kin_event *x = link_op(s->l, a), *y = link_op(s->l, b);
    return x->ts != y->ts ? x->ts > y->ts : s->rank[x->tid] < s->rank[y->tid];
}

static bool is_of_thread(const latest *s, uint32_t op, uint32_t tid)
{
    return op != LINK_NONE && thread_of(s, op) == tid;
}

static void has_started(latest *s, uint32_t op)
{
    const uint32_t tid = thread_of(s, op);
    if (is_of_thread(s, s->first, tid)) {
        if (link_op(s->l, op)->ts > link_op(s->l, s->first)->ts)
            s->first = op;
        return;
    }
    if (is_later(s, op, s->first)) {
        s->second = s->first;
        s->first = op;
        return;
    }
    if (is_of_thread(s, s->second, tid) && link_op(s->l, op)->ts <= link_op(s->l, s->second)->ts)
        return;
    if (is_later(s, op, s->second))
        s->second = op;
}

/* One thread: what its operators wait for now, and its previous operator. */
typedef struct waiting {
    uint32_t after, previous;
} waiting;

static bool has_gap(const orr_link *l, uint32_t previous, const kin_event *e)
{
    if (previous == LINK_NONE)
        return true;
    const kin_event *p = link_op(l, previous);
    return e->ts - p->ts - p->dur > GAP_US;
}

static void note_waits(orr_link *l, latest *s, waiting *threads)
{
    uint32_t started = 0;
    for (uint32_t op = 0; op < l->ops.count; op++) {
        const kin_event *e = link_op(l, op);
        for (; link_op(l, started)->ts < e->ts; started++)
            has_started(s, started);
        waiting *w = &threads[e->tid];
        if (has_gap(l, w->previous, e))
            w->after = is_of_thread(s, s->first, e->tid) ? s->second : s->first;
        chakra_of(l)->after[op] = w->after;
        w->previous = op;
    }
}

/* Which thread woke which operator (chakra.md 3.5). */
static orr_code wake(orr_link *l, orr_error *err)
{
    chakra_of(l)->after = orr_arena_new(l->arena, (size_t)l->ops.count + 1, uint32_t);
    if (!chakra_of(l)->after)
        return orr_no_memory(err);
    const uint32_t n = l->ops.thread_count;
    waiting *threads = orr_alloc((size_t)n + 1, sizeof *threads);
    uint32_t *rank = orr_alloc((size_t)n + 1, sizeof *rank);
    const bool has_room = threads && rank;
    if (has_room) {
        uint32_t seen = 0;
        for (uint32_t i = 0; i < n; i++)
            threads[i] = (waiting){LINK_NONE, LINK_NONE};
        for (uint32_t op = 0; op < l->ops.count; op++) {
            const uint32_t tid = link_op(l, op)->tid;
            if (!rank[tid])
                rank[tid] = ++seen;
        }
        latest s = {.l = l, .rank = rank, .first = LINK_NONE, .second = LINK_NONE};
        note_waits(l, &s, threads);
    }
    orr_free(threads);
    orr_free(rank);
    return has_room ? ORR_OK : orr_no_memory(err);
}

/* ---- host nodes and operators ---- */

/* Record-function id -> the last operator with it. */
static orr_map *operators_by_rf(const orr_link *l)
{
    orr_map *by_rf = orr_map_create(l->ops.count);
    for (uint32_t op = 0; by_rf && op < l->ops.count; op++) {
        const int64_t rf = link_op(l, op)->rf;
        if (rf != KIN_NO_NUMBER && !orr_map_put(by_rf, (uint64_t)rf, op, NULL)) {
            orr_map_destroy(by_rf);
            return NULL;
        }
    }
    return by_rf;
}

static void find_operator(orr_link *l, const orr_map *by_rf, uint32_t h)
{
    const chakra_host_node *n = &chakra_of(l)->host.nodes[h];
    chakra_of(l)->op_of[h] = LINK_NONE;
    if (n->rf != INT64_MIN && n->is_reached)
        chakra_of(l)->op_of[h] = orr_map_find(by_rf, (uint64_t)n->rf, LINK_NONE);
    l->tally.counts.of[ORR_LINK_LINKED] += chakra_of(l)->op_of[h] != LINK_NONE;
}

/* The host node of another thread that h waits for: found by rf id, and only if it precedes h. */
static uint32_t waits_for(const orr_link *l,
                          const orr_map *by_rf,
                          const uint32_t *host_of,
                          uint32_t h)
{
    const uint32_t after = chakra_of(l)->after[chakra_of(l)->op_of[h]];
    if (after == LINK_NONE)
        return LINK_NONE;
    const int64_t rf = link_op(l, after)->rf;
    if (rf == KIN_NO_NUMBER || rf == 0)
        return LINK_NONE;
    return host_of[orr_map_find(by_rf, (uint64_t)rf, after)];
}

static void match_all(orr_link *l, const orr_map *by_rf, uint32_t *host_of)
{
    for (uint32_t op = 0; op < l->ops.count; op++)
        host_of[op] = LINK_NONE;
    for (uint32_t h = 0; h < chakra_of(l)->host.count; h++) {
        find_operator(l, by_rf, h);
        chakra_of(l)->waits_for[h] = LINK_NONE;
        if (chakra_of(l)->op_of[h] == LINK_NONE)
            continue;
        host_of[chakra_of(l)->op_of[h]] = h;
        chakra_of(l)->waits_for[h] = waits_for(l, by_rf, host_of, h);
    }
}

static void count_matches(orr_link *l, const uint32_t *host_of)
{
    uint64_t *of = l->tally.counts.of;
    of[ORR_LINK_UNLINKED] = chakra_of(l)->host.count - of[ORR_LINK_LINKED];
    for (uint32_t op = 0; op < l->ops.count; op++)
        of[ORR_LINK_UNTRACED] += host_of[op] == LINK_NONE;
}

static orr_code match(orr_link *l, orr_error *err)
{
    const size_t n = chakra_of(l)->host.count + 1;
    chakra_of(l)->op_of = orr_arena_new(l->arena, n, uint32_t);
    chakra_of(l)->waits_for = orr_arena_new(l->arena, n, uint32_t);
    chakra_of(l)->host_of = orr_arena_new(l->arena, (size_t)l->ops.count + 1, uint32_t);
    orr_map *by_rf = operators_by_rf(l);
    if (!chakra_of(l)->op_of || !chakra_of(l)->waits_for || !chakra_of(l)->host_of || !by_rf) {
        orr_map_destroy(by_rf);
        return orr_no_memory(err);
    }
    match_all(l, by_rf, chakra_of(l)->host_of);
    orr_map_destroy(by_rf);
    count_matches(l, chakra_of(l)->host_of);
    return ORR_OK;
}

/* ---- launches ---- */

static orr_code second_launch(const orr_link *l, const kin_event *e, orr_error *err)
{
    return orr_fail(err, ORR_EINPUT, NULL,
                    "%s: event %" PRIu32 " is a second launch with correlation %" PRId64,
                    l->device_path, e->index, e->correlation);
}

/* Correlation -> launch event. */
static orr_code find_launches(orr_link *l, orr_map *launches, orr_error *err)
{
    const kin_trace *k = &l->device;
    for (uint32_t i = 0; i < k->count; i++) {
        const kin_event *e = &k->events[i];
        if (!(e->flags & KIN_LAUNCH))
            continue;
        if (orr_map_find(launches, (uint64_t)e->correlation, LINK_NONE) != LINK_NONE)
            return second_launch(l, e, err);
        if (!orr_map_put(launches, (uint64_t)e->correlation, i, NULL))
            return orr_no_memory(err);
    }
    return ORR_OK;
}

/* ---- the operator of a launch ---- */

/* Operators sorted by thread, external id and time. */
typedef struct keyed {
    int64_t external;
    uint32_t tid, op;
} keyed;

static int by_key(const void *a, const void *b)
{
    const keyed *x = a, *y = b;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    if (x->external != y->external)
        return x->external < y->external ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

static keyed *key_operators(const orr_link *l)
{
    keyed *keys = orr_alloc((size_t)l->ops.count + 1, sizeof *keys);
    if (!keys)
        return NULL;
    for (uint32_t op = 0; op < l->ops.count; op++) {
        const kin_event *e = link_op(l, op);
        keys[op] = (keyed){e->external, e->tid, op};
    }
    orr_sort(keys, l->ops.count, sizeof *keys, by_key);
    return keys;
}

static bool is_coalesced(const orr_link *l, uint32_t op)
{
    return orr_str_is(orr_intern_get(l->device.texts, link_op(l, op)->name), "nccl:coalesced");
}

/* The last operator of this thread and external id that starts before ts. */
static uint32_t last_keyed(
    const orr_link *l, const keyed *keys, const keyed *wanted, double ts, bool skips)
{
    size_t low = 0, high = l->ops.count;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const keyed *k = &keys[mid];
        const bool is_same = k->tid == wanted->tid && k->external == wanted->external;
        if (is_same ? link_op(l, k->op)->ts < ts : by_key(k, wanted) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    while (low-- > 0 && keys[low].tid == wanted->tid && keys[low].external == wanted->external) {
        if (!skips || !is_coalesced(l, keys[low].op))
            return keys[low].op;
    }
    return LINK_NONE;
}

/* The number of operators of a thread that start before ts. */
static uint32_t count_before(const orr_link *l, uint32_t tid, double ts)
{
    const link_lists *by = &l->ops.by_thread;
    uint32_t low = by->first[tid], high = by->first[tid + 1];
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (link_op(l, by->list[mid])->ts < ts)
            low = mid + 1;
        else
            high = mid;
    }
    return low - by->first[tid];
}

static uint32_t last_of_thread(const orr_link *l, uint32_t tid, double ts, bool skips)
{
    const link_lists *by = &l->ops.by_thread;
    for (uint32_t i = count_before(l, tid, ts); i-- > 0;) {
        const uint32_t op = by->list[by->first[tid] + i];
        if (!skips || !is_coalesced(l, op))
            return op;
    }
    return LINK_NONE;
}

static bool has_nccl(orr_str name)
{
    for (size_t i = 0; i + 4 <= name.len; i++) {
        const char *p = name.ptr + i;
        if ((p[0] | 32) == 'n' && (p[1] | 32) == 'c' && (p[2] | 32) == 'c' && (p[3] | 32) == 'l')
            return true;
    }
    return false;
}

static uint32_t reference_parent(const orr_link *l,
                                 const keyed *keys,
                                 const kin_event *e,
                                 const kin_event *launch)
{
    const bool skips = has_nccl(orr_intern_get(l->device.texts, e->name));
    const keyed wanted = {e->external, launch->tid, 0};
    const uint32_t op = last_keyed(l, keys, &wanted, launch->ts, skips);
    return op != LINK_NONE ? op : last_of_thread(l, launch->tid, launch->ts, skips);
}

/* Memsets are skipped. */
static bool is_placed_by_reference(const kin_event *e)
{
    return e->kind == KIN_KERNEL || e->kind == KIN_MEMCPY;
}

/* Device operations grouped by the external id of their operator. */
typedef struct grouping {
    orr_map *launches, *group_of; /* external id -> number of the group */
    keyed *keys;
    link_pairs pairs;
    link_lists groups;
    uint32_t count;
} grouping;

static orr_code group_event(orr_link *l, grouping *g, uint32_t i, orr_error *err)
{
    const kin_event *e = &l->device.events[i];
    const uint32_t launch = orr_map_find(g->launches, (uint64_t)e->correlation, LINK_NONE);
    if (launch == LINK_NONE)
        return link_count(&l->tally, ORR_LINK_NO_LAUNCH, NULL, err);
    const uint32_t op = reference_parent(l, g->keys, e, &l->device.events[launch]);
    if (op == LINK_NONE)
        return link_count(&l->tally, ORR_LINK_NO_PARENT, NULL, err);
    const uint64_t external = (uint64_t)link_op(l, op)->external;
    uint32_t group = orr_map_find(g->group_of, external, LINK_NONE);
    if (group == LINK_NONE) {
        group = g->count++;
        if (!orr_map_put(g->group_of, external, group, NULL))
            return orr_no_memory(err);
    }
    return link_pairs_add(&g->pairs, group, i) ? ORR_OK : orr_no_memory(err);
}

static orr_code give_groups(orr_link *l, grouping *g, orr_error *err)
{
    link_pairs placed = {0};
    bool has_room = true;
    for (uint32_t h = 0; has_room && h < chakra_of(l)->host.count; h++) {
        if (chakra_of(l)->op_of[h] == LINK_NONE)
            continue;
        const uint64_t external = (uint64_t)link_op(l, chakra_of(l)->op_of[h])->external;
        const uint32_t group = orr_map_find(g->group_of, external, LINK_NONE);
        if (group == LINK_NONE)
            continue;
        for (uint32_t i = g->groups.first[group]; has_room && i < g->groups.first[group + 1]; i++)
            has_room = link_pairs_add(&placed, h, g->groups.list[i]);
    }
    l->tally.counts.of[ORR_LINK_PLACED] = placed.count;
    if (has_room)
        return link_pairs_take(&placed, (uint32_t)chakra_of(l)->host.count, l->arena,
                               &chakra_of(l)->placed, err);
    orr_free(placed.pairs);
    return orr_no_memory(err);
}

static orr_code group_all(orr_link *l, grouping *g, orr_error *err)
{
    orr_code code = find_launches(l, g->launches, err);
    for (uint32_t i = 0; !code && i < l->device.count; i++) {
        if (is_placed_by_reference(&l->device.events[i]))
            code = group_event(l, g, i, err);
    }
    if (!code)
        code = link_pairs_take(&g->pairs, g->count, l->arena, &g->groups, err);
    return code ? code : give_groups(l, g, err);
}

static orr_code place_as_reference(orr_link *l, orr_error *err)
{
    grouping g = {.launches = orr_map_create(1024),
                  .group_of = orr_map_create(1024),
                  .keys = key_operators(l)};
    const orr_code code =
        g.launches && g.group_of && g.keys ? group_all(l, &g, err) : orr_no_memory(err);
    orr_map_destroy(g.launches);
    orr_map_destroy(g.group_of);
    orr_free(g.keys);
    orr_free(g.pairs.pairs);
    return code;
}

/* ---- ids in the linked trace ---- */

/* Each host node is followed by its device nodes (chakra.md 3.8). */
static orr_code number_nodes(orr_link *l, orr_error *err)
{
    chakra_of(l)->new_id = orr_arena_new(l->arena, chakra_of(l)->host.count + 1, uint64_t);
    if (!chakra_of(l)->new_id)
        return orr_no_memory(err);
    for (uint32_t h = 0; h < chakra_of(l)->host.count; h++) {
        chakra_of(l)->new_id[h] = chakra_of(l)->node_count;
        chakra_of(l)->node_count +=
            1 + chakra_of(l)->placed.first[h + 1] - chakra_of(l)->placed.first[h];
    }
    return ORR_OK;
}

static orr_code chakra_place(orr_link *l, orr_error *err)
{
    const orr_code code = place_as_reference(l, err);
    return code ? code : number_nodes(l, err);
}

/* ---- the rules ---- */

static orr_code read_host(orr_link *l, orr_error *err)
{
    chakra_link *c = chakra_of(l);
    orr_json *j = NULL;
    orr_code code = l->host_bytes ? ORR_OK : orr_input_open(l->host_path, &c->input, err);
    if (code)
        return code;
    const orr_span bytes = l->host_bytes ? *l->host_bytes : orr_input_bytes(c->input);
    if (!(code = orr_json_open(bytes, l->host_path, &j, err)))
        code = host_read(j, bytes, &l->tally, &c->host, err);
    orr_json_close(j);
    return code;
}

/* chakra_trace_link needs a step as the start of its critical path (chakra.md 3.6). */
static orr_code check_step(const orr_link *l, orr_error *err)
{
    if (l->device.has_step)
        return ORR_OK;
    return orr_fail(
        err, ORR_EINPUT, NULL,
        "%s: no annotation ProfilerStep, which chakra_trace_link needs; 'orrery link' without --compat does not",
        l->device_path);
}

static orr_code link_traces(orr_link *l, orr_error *err)
{
    orr_code code;
    if (!l->host_path || !l->device_path)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "chakra_trace_link needs a host trace and a device trace");
    l->other = orr_alloc(1, sizeof(chakra_link));
    if (!l->other)
        return orr_no_memory(err);
    if ((code = read_host(l, err)) || (code = link_read_device(l, err)) ||
        (code = check_step(l, err)) || (code = link_sort(l, err)) || (code = link_time(l, err)) ||
        (code = wake(l, err)) || (code = match(l, err)) || (code = chakra_place(l, err)) ||
        (code = link_find_waits(l, err)))
        return code;
    return find_syncs(l, err);
}

static void close_link(orr_link *l)
{
    chakra_link *c = chakra_of(l);
    if (!c)
        return;
    host_fini(&c->host);
    orr_input_close(c->input);
    orr_free(c->syncs);
    orr_free(c);
}

/* Flow events that crash it (chakra.md 3.3). */
static orr_code refuse(const kin_look *event, orr_error *err)
{
    if (!orr_str_is(event->cat, "ac2g"))
        return ORR_OK;
    const bool is_end = orr_str_is(event->ph, "s") || orr_str_is(event->ph, "f");
    if (is_end && event->has_id)
        return ORR_OK;
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_json_where(event->place)), "%s",
                    is_end ? "an ac2g event without an id"
                           : "an ac2g event whose ph is neither \"s\" nor \"f\"");
}

const orr_rules_link chakra_link_rules = {
    .read = {.keeps_micros = true, .refuse = refuse},
    .shorter_first = true,
    .only_recorded_waits = true,
    .link = link_traces,
    .write = chakra_write,
    .close = close_link,
};
