/* SPDX-License-Identifier: Apache-2.0 */
/* feeder.c - feeds a trace in memory, or a file through a window.
 *
 * Dependencies are in dag.h.  Ready nodes are a bitmap tree over *positions*: a node's rank in the
 * order of ids, which for ordinary traces is its index.  Cost: opening O(nodes + dependencies),
 * each node O(1) plus its children; 9 bytes per node and 4 per dependency. */
#include <orrery/feeder.h>

#include "dag.h"
#include "trace_impl.h"

#include "base/memory/bitset_queue.h"
#include "base/memory/heap.h"
#include "base/memory/map.h"
#include "base/options.h"
#include "base/short_forms.h"

#include <inttypes.h>

/* ==== feeding a file that is larger than memory.
 *
 * At most `window` unfinished nodes are held; whenever one finishes, the next record is read in its
 * place:
 *
 *     file:   [ finished ............ | held: waiting, ready, taken | not read yet ..... ]
 *
 * A parent is therefore held (an edge from it), finished (nothing to wait for) or not read yet (the
 * child is listed under the parent's id).  To distinguish the last two, every id ever read is one
 * bit in a paged bitmap; full pages shrink to a mark, so ids without gaps cost almost nothing.
 *
 * Order: smallest id first among the ready nodes that are held.  With a window that holds the whole
 * trace that is exactly the order of feeder.c.  When nothing can run any more the error names the
 * reason: a cycle, a missing parent, or a window too small for a parent that comes later. */

/* Small pages: ids that are far apart take one each. */
enum { PAGE_BITS = 9, PAGE_WORDS = 1 << (PAGE_BITS - 6), NONE = -1 };
#define FULL_PAGE (UINT32_MAX - 1)
#define MAX_RECORD (256u << 20)

typedef enum slot_state { FREE = 0, W_WAITING, W_READY, W_TAKEN } slot_state;

typedef struct slot {
    uint64_t id;
    uint8_t *body;
    size_t body_len, body_room;
    uint64_t byte; /* of the record in the file */
    uint32_t pending;
    int32_t children; /* first edge, or NONE; the next free slot when free */
    slot_state state;
} slot;

typedef struct edge {
    uint32_t child;
    int32_t next;
} edge;

typedef struct page {
    uint64_t words[PAGE_WORDS];
    uint32_t count;
} page;

typedef struct window {
    orr_stream *stream;
    char *path;
    orr_feeder_options opt;
    orr_read_options read;
    orr__scan scan;
    bool is_at_end;
    slot *slots;
    size_t slot_count, slot_room;
    int32_t free_slot;
    edge *edges;
    size_t edge_count, edge_room;
    int32_t free_edge;
    orr_map *held;    /* id -> slot */
    orr_map *awaited; /* id not read yet -> first edge to those who wait for it */
    orr_map *pages;   /* id >> PAGE_BITS -> page, or FULL_PAGE */
    page *page;
    size_t page_count, page_room;
    int32_t *free_page;
    size_t free_page_count, free_page_room;
    orr_heap ready;
    uint64_t held_count, in_flight;
} window;

/* ---- which ids have been read ---- */

static bool was_read(const window *w, uint64_t id)
{
    const uint32_t p = orr_map_find(w->pages, id >> PAGE_BITS, ORR_NO_NODE);
    if (p == ORR_NO_NODE || p == FULL_PAGE)
        return p == FULL_PAGE;
    const uint64_t bit = id & ((1u << PAGE_BITS) - 1);
    return w->page[p].words[bit >> 6] >> (bit & 63) & 1;
}

static bool new_page(window *w, uint64_t key, uint32_t *out)
{
    if (w->free_page_count) {
        *out = (uint32_t)w->free_page[--w->free_page_count];
    } else {
        if (!orr_grow(&w->page, &w->page_room, w->page_count + 1))
            return false;
        *out = (uint32_t)w->page_count++;
    }
    memset(&w->page[*out], 0, sizeof w->page[*out]);
    return orr_map_put(w->pages, key, *out, NULL);
}

static bool mark_read(window *w, uint64_t id)
{
    const uint64_t key = id >> PAGE_BITS, bit = id & ((1u << PAGE_BITS) - 1);
    uint32_t p = orr_map_find(w->pages, key, ORR_NO_NODE);
    if (p == ORR_NO_NODE && !new_page(w, key, &p))
        return false;
    w->page[p].words[bit >> 6] |= 1ull << (bit & 63);
    if (++w->page[p].count < 1u << PAGE_BITS)
        return true;
    if (!orr_push(w->free_page, w->free_page_count, w->free_page_room, (int32_t)p))
        return false;
    return orr_map_put(w->pages, key, FULL_PAGE, NULL);
}

/* ---- slots and edges ---- */

static bool new_slot(window *w, uint32_t *out)
{
    if (w->free_slot != NONE) {
        *out = (uint32_t)w->free_slot;
        w->free_slot = w->slots[*out].children;
    } else {
        if (w->slot_count >= INT32_MAX || !orr_grow(&w->slots, &w->slot_room, w->slot_count + 1))
            return false;
        *out = (uint32_t)w->slot_count++;
        w->slots[*out] = (slot){.children = NONE};
    }
    w->slots[*out].children = NONE;
    w->slots[*out].pending = 0;
    return true;
}

static bool new_edge(window *w, uint32_t child, int32_t next, int32_t *out)
{
    if (w->free_edge != NONE) {
        *out = w->free_edge;
        w->free_edge = w->edges[*out].next;
    } else {
        if (w->edge_count >= INT32_MAX || !orr_grow(&w->edges, &w->edge_room, w->edge_count + 1))
            return false;
        *out = (int32_t)w->edge_count++;
    }
    w->edges[*out] = (edge){child, next};
    return true;
}

/* Makes slot `child` wait for the node `parent`, unless that is finished. */
static bool add_parent(window *w, uint32_t child, uint64_t parent)
{
    const uint32_t holder = orr_map_find(w->held, parent, ORR_NO_NODE);
    int32_t e;
    if (holder != ORR_NO_NODE) {
        if (!new_edge(w, child, w->slots[holder].children, &e))
            return false;
        w->slots[holder].children = e;
    } else if (!was_read(w, parent)) {
        const uint32_t head = orr_map_find(w->awaited, parent, ORR_NO_NODE);
        if (!new_edge(w, child, head == ORR_NO_NODE ? NONE : (int32_t)head, &e) ||
            !orr_map_put(w->awaited, parent, (uint32_t)e, NULL))
            return false;
    } else {
        return true;
    }
    w->slots[child].pending++;
    return true;
}

static bool add_parents(window *w, uint32_t child)
{
    const orr__scan *s = &w->scan;
    for (size_t i = 0; w->opt.deps != ORR_FEED_CTRL && i < s->data_count; i++)
        if (!add_parent(w, child, s->data[i]))
            return false;
    for (size_t i = 0; w->opt.deps != ORR_FEED_DATA && i < s->ctrl_count; i++)
        if (!add_parent(w, child, s->ctrl[i]))
            return false;
    return true;
}

static bool make_entry_ready(window *w, uint32_t i)
{
    w->slots[i].state = W_READY;
    return orr_heap_push(&w->ready, w->slots[i].id, i);
}

/* ---- reading ---- */

static orr_code fail_at(const window *w, uint64_t byte, orr_error *err, const char *what)
{
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_byte(w->path, byte)), "%s", what);
}

/* The next record's body; ORR_END at the end of the file. */
static orr_code peek_record(window *w, orr_span *body, size_t *size, orr_error *err)
{
    orr_span seen;
    uint64_t len = 0;
    const uint64_t byte = orr_stream_offset(w->stream);
    orr_code code = orr_stream_peek(w->stream, 10, &seen, err);
    if (code)
        return code;
    if (seen.len == 0)
        return ORR_END;
    orr_wire wire = orr_wire_of(seen);
    if (!orr_wire_varint(&wire, &len))
        return fail_at(w, byte, err,
                       "the file ends inside a record's length, or the length is not a number");
    if (len > MAX_RECORD)
        return fail_at(w, byte, err,
                       "a record of more than 256 MiB is announced: the file is damaged");
    if (len == 0 && byte)
        return fail_at(w, byte, err,
                       "an empty record: a node has at least an id, a name or a type");
    const size_t prefix = (size_t)(wire.at - seen.ptr);
    if ((code = orr_stream_peek(w->stream, prefix + (size_t)len, &seen, err)))
        return code;
    if (seen.len < prefix + len)
        return fail_at(w, byte, err,
                       "a record is longer than the rest of the file: it is cut short or damaged");
    *body = (orr_span){seen.ptr + prefix, (size_t)len};
    *size = prefix + (size_t)len;
    return ORR_OK;
}

static bool keep_body(slot *s, orr_span body)
{
    if (!orr_grow(&s->body, &s->body_room, body.len + 1))
        return false;
    memcpy(s->body, body.ptr, body.len);
    s->body_len = body.len;
    return true;
}

/* Those that waited for this id before it was read. */
static void adopt_waiting(window *w, uint32_t i)
{
    const uint32_t head = orr_map_find(w->awaited, w->slots[i].id, ORR_NO_NODE);
    if (head == ORR_NO_NODE)
        return;
    w->slots[i].children = (int32_t)head;
    orr_map_remove(w->awaited, w->slots[i].id);
}

static orr_code hold(window *w, orr_span body, uint64_t byte, orr_error *err)
{
    uint32_t i;
    const uint64_t id = w->scan.node.id;
    if (was_read(w, id))
        return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_byte(w->path, byte)),
                        "an earlier node has the same id %" PRIu64, id);
    if (!new_slot(w, &i) || !keep_body(&w->slots[i], body) || !mark_read(w, id))
        return orr_no_memory(err);
    w->slots[i].id = id;
    w->slots[i].byte = byte;
    w->slots[i].state = W_WAITING;
    w->held_count++;
    if (!orr_map_put(w->held, id, i, NULL))
        return orr_no_memory(err);
    adopt_waiting(w, i);
    if (!add_parents(w, i) || (w->slots[i].pending == 0 && !make_entry_ready(w, i)))
        return orr_no_memory(err);
    return ORR_OK;
}

static orr_code read_one(window *w, orr_error *err)
{
    orr_span body;
    size_t size;
    const uint64_t byte = orr_stream_offset(w->stream);
    orr_code code = peek_record(w, &body, &size, err);
    if (code)
        return code;
    if (!orr__scan_node(&w->scan, body)) {
        if (!w->scan.why)
            return orr_no_memory(err);
        return fail_at(w, byte + (size - body.len) + (uint64_t)(w->scan.bad - body.ptr), err,
                       w->scan.why);
    }
    code = hold(w, body, byte, err);
    if (!code) /* a bad record stays next: the error repeats */
        orr_stream_skip(w->stream, size);
    return code;
}

/* At the end of the file every id still awaited is missing. */
static orr_code refuse_awaited(const window *w, orr_error *err)
{
    if (orr_map_count(w->awaited) == 0)
        return ORR_OK;
    for (size_t i = 0; i < w->slot_count; i++) {
        const slot *s = &w->slots[i];
        orr_node node = {.body = {s->body, s->body_len}};
        orr_list lists[2] = {orr_node_data_deps(&node), orr_node_ctrl_deps(&node)};
        orr_value v;
        for (unsigned k = 0; s->state != FREE && k < 2; k++)
            while (orr_list_next(&lists[k], &v))
                if (orr_map_find(w->awaited, v.u, ORR_NO_NODE) != ORR_NO_NODE)
                    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_byte(w->path, s->byte)),
                                    "node %" PRIu64
                                    ": its dependency is not in the trace: node %" PRIu64,
                                    s->id, v.u);
    }
    return ORR_OK;
}

static orr_code fill(window *w, orr_error *err)
{
    orr_code code = ORR_OK;
    while (!w->is_at_end && w->held_count < w->opt.window && !(code = read_one(w, err)))
        ;
    if (code != ORR_END)
        return code;
    w->is_at_end = true;
    return refuse_awaited(w, err);
}

static orr_code skip_metadata(window *w, orr_error *err)
{
    orr_span body;
    size_t size;
    orr_code code = orr_stream_peek(w->stream, 1 << 16, &body, err);
    if (code)
        return code;
    const orr_schema wanted = w->read.schema;
    if (orr__is_json(body) ||
        (wanted ? wanted : orr__et_recognise(body, w->path)) != ORR_SCHEMA_CURRENT)
        return fail_at(w, 0, err, "a window needs a current .et file; convert this one first");
    if ((code = peek_record(w, &body, &size, err)))
        return code == ORR_END ? fail_at(w, 0, err, "the file is empty") : code;
    if (!w->read.first_is_metadata && !orr__is_metadata(&w->scan, body))
        return ORR_OK; /* a node */
    if (!orr__scan_meta(&w->scan, body))
        return fail_at(w, size - body.len + (uint64_t)(w->scan.bad - body.ptr), err, w->scan.why);
    orr_stream_skip(w->stream, size);
    return ORR_OK;
}

static void window_close(window *w)
{
    if (!w)
        return;
    orr_stream_close(w->stream);
    for (size_t i = 0; i < w->slot_count; i++)
        orr_free(w->slots[i].body);
    orr_free(w->slots);
    orr_free(w->edges);
    orr_free(w->page);
    orr_free(w->free_page);
    orr_map_destroy(w->held);
    orr_map_destroy(w->awaited);
    orr_map_destroy(w->pages);
    orr_heap_fini(&w->ready);
    orr__scan_fini(&w->scan);
    orr_free(w->path);
    orr_free(w);
}

static orr_code window_open(const char *path,
                            const orr_feeder_options *opt,
                            window **out,
                            orr_error *err)
{
    *out = NULL;
    if (opt->order != ORR_FEED_BY_ID || opt->read->leniency > ORR_KEEP_UNKNOWN)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "the order of feeder V2 needs the whole trace: no window");
    window *w = orr_alloc(1, sizeof *w);
    if (!w)
        return orr_no_memory(err);
    w->opt = *opt;
    w->read = *opt->read;
    w->opt.read = &w->read;
    w->scan.is_lenient = opt->read->leniency != ORR_STRICT;
    w->free_slot = w->free_edge = NONE;
    w->path = orr_alloc(strlen(path) + 1, 1);
    w->held = orr_map_create(0);
    w->awaited = orr_map_create(0);
    w->pages = orr_map_create(0);
    orr_code code = w->path && w->held && w->awaited && w->pages ? ORR_OK : orr_no_memory(err);
    if (!code) {
        memcpy(w->path, path, strlen(path) + 1);
        code = orr_stream_open(path, &w->stream, err);
    }
    if (!code)
        code = skip_metadata(w, err);
    if (!code)
        code = fill(w, err);
    if (code)
        window_close(w);
    else
        *out = w;
    return code;
}

/* ---- feeding ---- */

/* A held parent of a waiting slot; ORR_NO_NODE if it waits for something not read yet. */
static uint32_t held_parent(const window *w, uint32_t i, uint64_t *unread)
{
    const orr_node node = {.body = {w->slots[i].body, w->slots[i].body_len}};
    orr_list lists[2] = {orr_node_data_deps(&node), orr_node_ctrl_deps(&node)};
    orr_value v;
    for (unsigned k = 0; k < 2; k++) {
        if (w->opt.deps == (k == 0 ? ORR_FEED_CTRL : ORR_FEED_DATA))
            continue;
        while (orr_list_next(&lists[k], &v)) {
            const uint32_t p = orr_map_find(w->held, v.u, ORR_NO_NODE);
            if (p != ORR_NO_NODE)
                return p;
            if (!was_read(w, v.u))
                *unread = v.u;
        }
    }
    return ORR_NO_NODE;
}

static uint64_t entry_id(const void *context, uint32_t i)
{
    return ((const window *)context)->slots[i].id;
}

/* Nothing runs and nothing is ready: follow the dependencies. */
static orr_code explain_stall(const window *w, orr_error *err)
{
    uint32_t i = 0, length = 0;
    uint64_t unread = 0;
    uint32_t *path = orr_alloc(w->slot_count, sizeof *path);
    uint8_t *seen = orr_alloc(w->slot_count, 1);
    orr_code code = path && seen ? ORR_OK : orr_no_memory(err);
    while (!code && w->slots[i].state == FREE)
        i++;
    while (!code && i != ORR_NO_NODE && !seen[i]) {
        seen[i] = 1;
        path[length++] = i;
        i = held_parent(w, i, &unread);
    }
    if (!code && i != ORR_NO_NODE) {
        const orr_where where = orr_where_byte(w->path, w->slots[i].byte);
        code = orr__fail_cycle(path, length, i, entry_id, w, &where, err);
    } else if (!code) {
        const slot *s = &w->slots[path[length - 1]];
        code = orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_byte(w->path, s->byte)),
                        "node %" PRIu64 " waits for node %" PRIu64
                        ", which is not within a window of %u nodes: use a larger one",
                        s->id, unread, w->opt.window);
    }
    orr_free(path);
    orr_free(seen);
    return code;
}

static void view(const slot *s, orr_node *out)
{
    orr__node_decode((orr_span){s->body, s->body_len}, out);
}

static orr_code window_next(window *w, orr_node *out, orr_error *err)
{
    orr_heap_entry e;
    if (!orr_heap_pop(&w->ready, &e)) {
        if (w->in_flight == 0 && w->held_count)
            return explain_stall(w, err);
        return ORR_END;
    }
    w->slots[e.value].state = W_TAKEN;
    w->in_flight++;
    view(&w->slots[e.value], out);
    return ORR_OK;
}

static orr_code find_taken_entry(const window *w, uint64_t id, uint32_t *i, orr_error *err)
{
    *i = orr_map_find(w->held, id, ORR_NO_NODE);
    if (*i == ORR_NO_NODE || w->slots[*i].state != W_TAKEN)
        return orr_fail(err, ORR_EUSAGE, NULL, "node %" PRIu64 " is not taken", id);
    return ORR_OK;
}

static bool release_children(window *w, uint32_t i)
{
    int32_t e = w->slots[i].children;
    while (e != NONE) {
        const int32_t next = w->edges[e].next;
        const uint32_t child = w->edges[e].child;
        if (--w->slots[child].pending == 0 && !make_entry_ready(w, child))
            return false;
        w->edges[e].next = w->free_edge;
        w->free_edge = e;
        e = next;
    }
    return true;
}

static orr_code window_finish(window *w, uint64_t id, orr_error *err)
{
    uint32_t i;
    const orr_code code = find_taken_entry(w, id, &i, err);
    if (code)
        return code;
    if (!release_children(w, i))
        return orr_no_memory(err);
    orr_map_remove(w->held, id);
    w->slots[i].state = FREE;
    w->slots[i].children = w->free_slot;
    w->free_slot = (int32_t)i;
    w->held_count--;
    w->in_flight--;
    return fill(w, err);
}

static orr_code window_put_back(window *w, uint64_t id, orr_error *err)
{
    uint32_t i;
    const orr_code code = find_taken_entry(w, id, &i, err);
    if (code)
        return code;
    w->in_flight--;
    return make_entry_ready(w, i) ? ORR_OK : orr_no_memory(err);
}

static bool window_find(const window *w, uint64_t id, orr_node *out)
{
    const uint32_t i = orr_map_find(w->held, id, ORR_NO_NODE);
    if (i == ORR_NO_NODE)
        return false;
    view(&w->slots[i], out);
    return true;
}

static bool window_has_ready(const window *w)
{
    return w->ready.count != 0;
}

static uint64_t window_in_flight(const window *w)
{
    return w->in_flight;
}

static uint64_t window_left(const window *w)
{
    return w->held_count || w->is_at_end ? w->held_count : 1;
}

enum { RELEASE_EVERY = 1 << 22 };

typedef enum node_state { WAITING = 0, READY, TAKEN, FINISHED } node_state;

struct orr_feeder {
    window *window; /* when not NULL, all the rest is unused */
    const orr_trace *t;
    orr_trace *owned; /* t, when the feeder opened it */
    orr_feeder_options opt;
    uint32_t count;
    orr__dag dag; /* dag.waits: parents not finished */
    uint8_t *state;
    uint32_t *place; /* position of a node by id; NULL: its index */
    orr_bitset_queue ready;
    uint64_t in_flight, left;
    uint64_t released; /* pages of the trace's file before this have been released */
};

static bool feeds_data(const orr_feeder *f)
{
    return f->opt.deps != ORR_FEED_CTRL;
}

static bool feeds_ctrl(const orr_feeder *f)
{
    return f->opt.deps != ORR_FEED_DATA && f->t->columns.ctrl_first;
}

/* ---- opening ---- */

static orr_code fail_node(
    const orr_trace *t, uint32_t node, orr_error *err, const char *what, uint64_t other)
{
    const orr_str name = orr_trace_name(t, node);
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_trace_where(t, node)),
                    "node %" PRIu64 " \"%.*s\": %s %" PRIu64, t->id[node], ORR_SHOWN(name, 80),
                    what, other);
}

static orr_code refuse_missing(const orr_trace *t, bool is_data, orr_error *err)
{
    const orr_columns *c = &t->columns;
    const uint32_t *first = is_data ? c->data_first : c->ctrl_first;
    const uint32_t *deps = is_data ? c->data_dep : c->ctrl_dep;
    uint32_t i = 0, e = 0;
    while (deps[e] != ORR_NO_NODE)
        e++;
    while (first[i + 1] <= e)
        i++;
    orr_node node;
    orr_value id = {.u = 0};
    orr_trace_node(t, i, &node);
    orr_list it = is_data ? orr_node_data_deps(&node) : orr_node_ctrl_deps(&node);
    for (uint32_t k = first[i]; k <= e; k++)
        orr_list_next(&it, &id);
    return fail_node(t, i, err,
                     is_data ? "its data dependency is not in the trace: node"
                             : "its control dependency is not in the trace: node",
                     id.u);
}

static orr_code refuse_duplicate(const orr_trace *t, orr_error *err)
{
    for (size_t p = 1; p < t->count; p++) {
        const uint32_t node = t->by_id[p];
        if (t->id[node] == t->id[t->by_id[p - 1]])
            return fail_node(t, node, err, "an earlier node has the same id", t->id[node]);
    }
    return orr_fail(err, ORR_EBUG, NULL, "duplicate ids were counted but not found");
}

static orr_code refuse_unsound(const orr_feeder *f, orr_error *err)
{
    const orr_columns *c = &f->t->columns;
    if (f->opt.order == ORR_FEED_AS_V2)
        return ORR_OK;
    if (c->duplicate_ids)
        return refuse_duplicate(f->t, err);
    if (c->data_missing && feeds_data(f))
        return refuse_missing(f->t, true, err);
    if (c->ctrl_missing && feeds_ctrl(f))
        return refuse_missing(f->t, false, err);
    return ORR_OK;
}

/* V2 keeps a child once in its parent's list, yet waits for every mention of the parent, and
 * forever for a missing one (chakra.md 6.1). */
static bool turn_round(orr_feeder *f)
{
    const unsigned lists =
        (feeds_data(f) ? ORR__DAG_DATA : 0) | (feeds_ctrl(f) ? ORR__DAG_CTRL : 0);
    const unsigned mentions =
        f->opt.order == ORR_FEED_AS_V2 ? ORR__DAG_ONCE | ORR__DAG_ALL_MENTIONS : 0;
    return orr__dag_build(&f->t->columns, lists | mentions, NULL, &f->dag);
}

/* ---- cycles ---- */

/* A blocked parent of the node: there is one, or the node would not be blocked. */
static uint32_t stuck_parent(const orr_feeder *f, uint32_t node, const uint32_t *pending)
{
    const orr_columns *c = &f->t->columns;
    if (feeds_data(f))
        for (uint32_t e = c->data_first[node]; e < c->data_first[node + 1]; e++)
            if (pending[c->data_dep[e]])
                return c->data_dep[e];
    for (uint32_t e = feeds_ctrl(f) ? c->ctrl_first[node] : 0;
         feeds_ctrl(f) && e < c->ctrl_first[node + 1]; e++)
        if (pending[c->ctrl_dep[e]])
            return c->ctrl_dep[e];
    return node;
}

static uint64_t id_of(const void *feeder, uint32_t node)
{
    return ((const orr_feeder *)feeder)->t->id[node];
}

/* Walk from parent to parent among the blocked nodes until one repeats. */
static orr_code describe_cycle(const orr_feeder *f,
                               const uint32_t *pending,
                               uint32_t *path,
                               orr_error *err)
{
    uint32_t node = 0, length = 0;
    while (pending[node] == 0)
        node++;
    while (f->state[node] == WAITING) {
        f->state[node] = FINISHED; /* visited; the feeder is discarded afterwards */
        path[length++] = node;
        node = stuck_parent(f, node, pending);
    }
    const orr_where w = orr_trace_where(f->t, node);
    return orr__fail_cycle(path, length, node, id_of, f, &w, err);
}

static orr_code refuse_cycle(orr_feeder *f, orr_error *err)
{
    if (f->t->columns.is_topological || f->opt.order == ORR_FEED_AS_V2)
        return ORR_OK;
    uint32_t *pending = orr_alloc(f->count, sizeof *pending);
    uint32_t *stack = orr_alloc(f->count, sizeof *stack);
    orr_code code = ORR_OK;
    if (!pending || !stack) {
        code = orr_no_memory(err);
    } else {
        if (orr__dag_order(&f->dag, pending, stack) != f->count)
            code = describe_cycle(f, pending, stack, err);
    }
    orr_free(pending);
    orr_free(stack);
    return code;
}

/* ---- opening, continued ---- */

static bool set_places(orr_feeder *f)
{
    if (!f->t->by_id)
        return true;
    f->place = orr_alloc(f->count, sizeof *f->place);
    for (uint32_t p = 0; f->place && p < f->count; p++)
        f->place[f->t->by_id[p]] = p;
    return f->place != NULL;
}

/* In V2 the last node of an id replaces the earlier ones; the trace resolves dependencies to the
 * last. */
static bool is_replaced(const orr_feeder *f, uint32_t node)
{
    if (!f->t->columns.duplicate_ids)
        return false;
    const uint32_t p = f->place[node];
    return p + 1 < f->count && f->t->id[f->t->by_id[p + 1]] == f->t->id[node];
}

static void make_ready(orr_feeder *f, uint32_t node)
{
    f->state[node] = READY;
    orr_bitset_insert(&f->ready, f->place ? f->place[node] : node);
}

static void start(orr_feeder *f)
{
    f->left = f->count;
    for (uint32_t i = 0; i < f->count; i++) {
        if (is_replaced(f, i)) {
            f->state[i] = FINISHED;
            f->left--;
        } else if (f->dag.waits[i] == 0) {
            make_ready(f, i);
        }
    }
}

static orr_code prepare(orr_feeder *f, orr_error *err)
{
    f->count = f->t->columns.count;
    if (f->opt.order == ORR_FEED_AS_V2)
        f->opt.deps = ORR_FEED_DATA;
    orr_code code = refuse_unsound(f, err);
    if (code)
        return code;
    f->state = orr_alloc(f->count, 1);
    if (!f->state || !turn_round(f) || !set_places(f) || !orr_bitset_init(&f->ready, f->count))
        return orr_no_memory(err);
    if ((code = refuse_cycle(f, err)))
        return code;
    start(f);
    return ORR_OK;
}

orr_code orr_feeder_create(const orr_trace *t,
                           const orr_feeder_options *opt,
                           orr_feeder **out,
                           orr_error *err)
{
    *out = NULL;
    if (!t->is_sealed)
        return orr_fail(err, ORR_EUSAGE, NULL, "only a sealed trace can be fed");
    orr_feeder *f = orr_alloc(1, sizeof *f);
    if (!f)
        return orr_no_memory(err);
    f->t = t;
    orr_code code = ORR__TAKE_OPTIONS(&f->opt, opt, orr_feeder_options, err);
    f->opt.read = NULL; /* the caller's; no longer needed */
    if (!code)
        code = prepare(f, err);
    if (code)
        orr_feeder_close(f);
    else
        *out = f;
    return code;
}

static orr_code open_window(const char *path,
                            const orr_feeder_options *opt,
                            orr_feeder **out,
                            orr_error *err)
{
    orr_feeder *f = orr_alloc(1, sizeof *f);
    if (!f)
        return orr_no_memory(err);
    const orr_code code = window_open(path, opt, &f->window, err);
    if (code)
        orr_feeder_close(f);
    else
        *out = f;
    return code;
}

orr_code orr_feeder_open(const char *path,
                         const orr_feeder_options *opt,
                         orr_feeder **out,
                         orr_error *err)
{
    orr_trace *t;
    *out = NULL;
    orr_feeder_options own;
    orr_read_options read;
    orr_code code = ORR__TAKE_OPTIONS(&own, opt, orr_feeder_options, err);
    if (!code)
        code = ORR__TAKE_OPTIONS(&read, own.read, orr_read_options, err);
    if (code)
        return code;
    own.read = &read;
    if (own.window)
        return open_window(path, &own, out, err);
    code = orr_trace_read(path, &read, &t, err);
    if (code)
        return code;
    code = orr_feeder_create(t, &own, out, err);
    if (code)
        orr_trace_destroy(t);
    else
        (*out)->owned = t;
    return code;
}

void orr_feeder_close(orr_feeder *f)
{
    if (!f)
        return;
    window_close(f->window);
    orr__dag_fini(&f->dag);
    orr_free(f->state);
    orr_free(f->place);
    orr_bitset_fini(&f->ready);
    orr_trace_destroy(f->owned);
    orr_free(f);
}

/* ---- feeding ---- */

uint32_t orr_feeder_take(orr_feeder *f)
{
    if (f->window || orr_bitset_is_empty(&f->ready))
        return ORR_NO_NODE;
    const uint32_t p = orr_bitset_pop(&f->ready);
    const uint32_t node = f->place ? f->t->by_id[p] : p;
    f->state[node] = TAKEN;
    f->in_flight++;
    return node;
}

void orr_feeder_done(orr_feeder *f, uint32_t node)
{
    f->state[node] = FINISHED;
    f->in_flight--;
    f->left--;
    for (uint32_t e = f->dag.first[node]; e < f->dag.first[node + 1]; e++) {
        const uint32_t child = f->dag.child[e];
        if (--f->dag.waits[child] == 0 && f->state[child] == WAITING)
            make_ready(f, child);
    }
}

/* Records are visited roughly in file order, each about once: pages well behind can be released, or
 * feeding a trace would bring its whole file into memory. */
static void release_behind(orr_feeder *f, uint32_t node)
{
    const orr_trace *t = f->t;
    const uint64_t at = t->body_at[node];
    if (!t->source || at < f->released + 2 * RELEASE_EVERY)
        return;
    orr_input_release(t->source, t->source_at + f->released, t->source_at + at - RELEASE_EVERY);
    f->released = at - RELEASE_EVERY;
}

orr_code orr_feeder_next(orr_feeder *f, orr_node *out, orr_error *err)
{
    if (f->window)
        return window_next(f->window, out, err);
    const uint32_t node = orr_feeder_take(f);
    if (node == ORR_NO_NODE)
        return ORR_END;
    release_behind(f, node);
    orr_trace_node(f->t, node, out);
    return ORR_OK;
}

static orr_code find_taken(const orr_feeder *f, uint64_t id, uint32_t *node, orr_error *err)
{
    *node = orr_trace_find(f->t, id);
    if (*node == ORR_NO_NODE)
        return orr_fail(err, ORR_EUSAGE, NULL, "node %" PRIu64 " is not in the trace", id);
    if (f->state[*node] != TAKEN)
        return orr_fail(err, ORR_EUSAGE, NULL, "node %" PRIu64 " is not taken", id);
    return ORR_OK;
}

orr_code orr_feeder_finish(orr_feeder *f, uint64_t id, orr_error *err)
{
    uint32_t node;
    if (f->window)
        return window_finish(f->window, id, err);
    const orr_code code = find_taken(f, id, &node, err);
    if (!code)
        orr_feeder_done(f, node);
    return code;
}

orr_code orr_feeder_put_back(orr_feeder *f, uint64_t id, orr_error *err)
{
    uint32_t node;
    if (f->window)
        return window_put_back(f->window, id, err);
    const orr_code code = find_taken(f, id, &node, err);
    if (code)
        return code;
    f->in_flight--;
    make_ready(f, node);
    return ORR_OK;
}

bool orr_feeder_find(const orr_feeder *f, uint64_t id, orr_node *out)
{
    if (f->window)
        return window_find(f->window, id, out);
    const uint32_t node = orr_trace_find(f->t, id);
    if (node == ORR_NO_NODE || f->state[node] == FINISHED)
        return false;
    orr_trace_node(f->t, node, out);
    return true;
}

bool orr_feeder_has_ready(const orr_feeder *f)
{
    return f->window ? window_has_ready(f->window) : !orr_bitset_is_empty(&f->ready);
}

uint64_t orr_feeder_in_flight(const orr_feeder *f)
{
    return f->window ? window_in_flight(f->window) : f->in_flight;
}

uint64_t orr_feeder_left(const orr_feeder *f)
{
    return f->window ? window_left(f->window) : f->left;
}

const orr_trace *orr_feeder_trace(const orr_feeder *f)
{
    return f->t;
}

const uint32_t *orr_feeder_children(const orr_feeder *f, uint32_t index, uint32_t *count)
{
    *count = f->dag.first[index + 1] - f->dag.first[index];
    return f->dag.child + f->dag.first[index];
}
