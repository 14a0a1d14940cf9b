/* SPDX-License-Identifier: Apache-2.0 */
/* chakra_host.c - a host trace from its JSON, one node at a time, as chakra_trace_link reads it
 * (chakra.md 3.2).
 *
 * By our own rules linked_read.c reads host traces.  Two forms: nodes with `ctrl_deps` and `attrs`,
 * or flat ones with `parent` and `rf_id`.  Ids grow in the order of starts, the file is in the
 * order of ends: so nodes are sorted.
 * Cost: one pass and one sort; 48 bytes per node. */
#include "chakra_link.h"

#include "base/formats/json_list.h"
#include "base/text/number.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct reader {
    orr_json *j;
    link_tally *tally;
    chakra_host *h;
    orr_error *err;
    bool has_nodes, has_schema, has_events;
    uint64_t last; /* byte after the last node, or after the opening bracket */
} reader;

enum { ROOT = 1 }; /* the id of the process node */

/* ---- one node ---- */

/* A number that may be of another type: then it is not there. */
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

/* Two forms of a parent: one integer, or a list with one. */
static bool take_parent(chakra_host_node *n, orr_json_value v)
{
    orr_json_iter it = orr_json_iterate(v);
    orr_json_value first;
    if (orr_json_type_of(v) == ORR_JSON_ARRAY)
        return !orr_json_next_value(&it, &first) || !orr_json_get_i64(first, &n->parent, NULL);
    return !orr_json_get_i64(v, &n->parent, NULL);
}

/* What is missing; NULL: nothing. */
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
    if (missing) {
        const orr_where at = orr_json_where(node);
        return orr_fail(r->err, ORR_EINPUT, &at,
                        "a host node without %s, or with one of a wrong type", missing);
    }
    n.at = orr_json_byte(node);
    if (raw.len > UINT32_MAX || h->count >= UINT32_MAX - 1)
        return orr_no_memory(r->err);
    n.length = (uint32_t)raw.len;
    if (!orr_grow(&h->nodes, &h->room, h->count + 1))
        return orr_no_memory(r->err);
    h->nodes[h->count++] = n;
    return ORR_OK;
}

/* Of two lists the first counts. */
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

/* After the closing bracket: the reader only tells where things begin. */
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
    const orr_where at = orr_json_where(v);
    if (!orr_intern_add(r->h->names, s, &number))
        return orr_no_memory(r->err);
    r->h->schema = orr_intern_get(r->h->names, number);
    r->has_schema = true;
    if (link_knows_schema(s))
        return ORR_OK;
    return orr_fail(r->err, ORR_EINPUT, &at,
                    "schema \"%.*s\" is not one that chakra_trace_link reads",
                    (int)(s.len < 60 ? s.len : 60), s.ptr);
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

/* Of several nodes with one id the last counts. */
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

uint32_t chakra_host_find(const chakra_host *h, int64_t id)
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

/* Follow parents until a node whose answer is known; then give it to all on the way.  Each node is
 * walked over twice at most.  A cycle of parents ends where it meets itself: not reached. */
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
        parent[i] = chakra_host_find(h, h->nodes[i].parent);
    mark_reached(h, parent, state);
    orr_free(parent);
    orr_free(state);
    return ORR_OK;
}

static orr_code check_root(reader *r)
{
    const orr_where start = orr_json_place(r->j, 0);
    if (chakra_host_find(r->h, ROOT) != UINT32_MAX)
        return ORR_OK;
    return orr_fail(r->err, ORR_EINPUT, &start, "no node 1: a host trace has its process there");
}

/* A cycle is never reached, and at least one of its nodes has a parent that does not come before
 * it. */
static orr_code count_unreached_node(reader *r, const chakra_host_node *n)
{
    const orr_where at = r->tally->is_strict ? orr_json_place(r->j, n->at) : (orr_where){0};
    if (n->id >= 0 && n->parent >= n->id && chakra_host_find(r->h, n->parent) != UINT32_MAX) {
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

orr_code chakra_host_read(
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
        qsort(out->nodes, out->count, sizeof *out->nodes, by_id);
    if ((code = drop_duplicates(&r)) || (code = check_root(&r)) || (code = find_reached(&r)))
        return code;
    return count_unreached(&r);
}

void chakra_host_fini(chakra_host *h)
{
    orr_free(h->nodes);
    orr_intern_destroy(h->names);
    *h = (chakra_host){0};
}
