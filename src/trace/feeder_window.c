/* SPDX-License-Identifier: Apache-2.0 */
/* feeder_window.c - feeding a file that is larger than memory.
 *
 * At most `window` unfinished nodes are held; whenever one finishes, the next record is read in its
 * place:
 *
 *     file:   [ finished ............ | held: waiting, ready, taken | not read yet ..... ]
 *
 * A parent is therefore held (an edge from it), finished (nothing to wait for) or not read yet (the
 * child is put on a list under the parent's id).  To tell the last two apart every id that was ever
 * read is one bit in a paged bitmap; full pages shrink to a mark, so ids without gaps cost almost
 * nothing.
 *
 * Order: smallest id first among the ready nodes that are held.  With a window that holds the whole
 * trace that is exactly the order of feeder.c.  When nothing can run any more the reason is an
 * error: a cycle, a parent that the file does not have, or a window too small for a parent that
 * comes later. */
#include "dag.h"
#include "feeder_impl.h"

#include "base/memory/heap.h"
#include "base/memory/map.h"

#include <inttypes.h>

/* Small pages: ids that lie far apart take one each. */
enum { PAGE_BITS = 9, PAGE_WORDS = 1 << (PAGE_BITS - 6), NONE = -1 };
#define FULL_PAGE (UINT32_MAX - 1)
#define MAX_RECORD (256u << 20)

typedef enum slot_state { FREE = 0, WAITING, READY, TAKEN } slot_state;

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

struct orr__window {
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
};

/* ---- which ids have been read ---- */

static bool was_read(const orr__window *w, uint64_t id)
{
    const uint32_t p = orr_map_find(w->pages, id >> PAGE_BITS, ORR_NO_NODE);
    if (p == ORR_NO_NODE || p == FULL_PAGE)
        return p == FULL_PAGE;
    const uint64_t bit = id & ((1u << PAGE_BITS) - 1);
    return w->page[p].words[bit >> 6] >> (bit & 63) & 1;
}

static bool new_page(orr__window *w, uint64_t key, uint32_t *out)
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

static bool mark_read(orr__window *w, uint64_t id)
{
    const uint64_t key = id >> PAGE_BITS, bit = id & ((1u << PAGE_BITS) - 1);
    uint32_t p = orr_map_find(w->pages, key, ORR_NO_NODE);
    if (p == ORR_NO_NODE && !new_page(w, key, &p))
        return false;
    w->page[p].words[bit >> 6] |= 1ull << (bit & 63);
    if (++w->page[p].count < 1u << PAGE_BITS)
        return true;
    if (!orr_grow(&w->free_page, &w->free_page_room, w->free_page_count + 1))
        return false;
    w->free_page[w->free_page_count++] = (int32_t)p;
    return orr_map_put(w->pages, key, FULL_PAGE, NULL);
}

/* ---- slots and edges ---- */

static bool new_slot(orr__window *w, uint32_t *out)
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

static bool new_edge(orr__window *w, uint32_t child, int32_t next, int32_t *out)
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

/* Let slot `child` wait for the node `parent`, unless that is finished. */
static bool add_parent(orr__window *w, uint32_t child, uint64_t parent)
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

static bool add_parents(orr__window *w, uint32_t child)
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

static bool make_ready(orr__window *w, uint32_t i)
{
    w->slots[i].state = READY;
    return orr_heap_push(&w->ready, w->slots[i].id, i);
}

/* ---- reading ---- */

static orr_code fail_at(const orr__window *w, uint64_t byte, orr_error *err, const char *what)
{
    const orr_where where = orr_where_byte(w->path, byte);
    return orr_fail(err, ORR_EINPUT, &where, "%s", what);
}

/* The next record's body; ORR_END at the end of the file. */
static orr_code peek_record(orr__window *w, orr_span *body, size_t *size, orr_error *err)
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
                       "the file ends inside a record's length, or the length is no number");
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

/* Those who waited for this id before it was read. */
static void adopt_waiting(orr__window *w, uint32_t i)
{
    const uint32_t head = orr_map_find(w->awaited, w->slots[i].id, ORR_NO_NODE);
    if (head == ORR_NO_NODE)
        return;
    w->slots[i].children = (int32_t)head;
    orr_map_remove(w->awaited, w->slots[i].id);
}

static orr_code hold(orr__window *w, orr_span body, uint64_t byte, orr_error *err)
{
    uint32_t i;
    const uint64_t id = w->scan.node.id;
    if (was_read(w, id)) {
        const orr_where where = orr_where_byte(w->path, byte);
        return orr_fail(err, ORR_EINPUT, &where, "an earlier node has the same id %" PRIu64, id);
    }
    if (!new_slot(w, &i) || !keep_body(&w->slots[i], body) || !mark_read(w, id))
        return orr_no_memory(err);
    w->slots[i].id = id;
    w->slots[i].byte = byte;
    w->slots[i].state = WAITING;
    w->held_count++;
    if (!orr_map_put(w->held, id, i, NULL))
        return orr_no_memory(err);
    adopt_waiting(w, i);
    if (!add_parents(w, i) || (w->slots[i].pending == 0 && !make_ready(w, i)))
        return orr_no_memory(err);
    return ORR_OK;
}

static orr_code read_one(orr__window *w, orr_error *err)
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
    if (!code) /* a bad record stays next: the error comes again */
        orr_stream_skip(w->stream, size);
    return code;
}

/* At the end of the file everyone who is still awaited is missing. */
static orr_code refuse_awaited(const orr__window *w, orr_error *err)
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
                if (orr_map_find(w->awaited, v.u, ORR_NO_NODE) != ORR_NO_NODE) {
                    const orr_where where = orr_where_byte(w->path, s->byte);
                    return orr_fail(err, ORR_EINPUT, &where,
                                    "node %" PRIu64
                                    ": its dependency is not in the trace: node %" PRIu64,
                                    s->id, v.u);
                }
    }
    return ORR_OK;
}

static orr_code fill(orr__window *w, orr_error *err)
{
    orr_code code = ORR_OK;
    while (!w->is_at_end && w->held_count < w->opt.window && !(code = read_one(w, err)))
        ;
    if (code != ORR_END)
        return code;
    w->is_at_end = true;
    return refuse_awaited(w, err);
}

static orr_code skip_metadata(orr__window *w, orr_error *err)
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

orr_code orr__window_open(const char *path,
                          const orr_feeder_options *opt,
                          orr__window **out,
                          orr_error *err)
{
    *out = NULL;
    if (opt->order != ORR_FEED_BY_ID || opt->read->leniency > ORR_KEEP_UNKNOWN)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "the order of feeder V2 needs the whole trace: no window");
    orr__window *w = orr_alloc(1, sizeof *w);
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
        orr__window_close(w);
    else
        *out = w;
    return code;
}

void orr__window_close(orr__window *w)
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

/* ---- feeding ---- */

/* A held parent of a waiting slot; ORR_NO_NODE when it waits for something not read yet. */
static uint32_t held_parent(const orr__window *w, uint32_t i, uint64_t *unread)
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

static uint64_t id_of(const void *window, uint32_t i)
{
    return ((const orr__window *)window)->slots[i].id;
}

/* Nothing runs and nothing is ready: follow who waits for whom. */
static orr_code explain_standstill(const orr__window *w, orr_error *err)
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
        code = orr__fail_cycle(path, length, i, id_of, w, &where, err);
    } else if (!code) {
        const slot *s = &w->slots[path[length - 1]];
        const orr_where where = orr_where_byte(w->path, s->byte);
        code = orr_fail(err, ORR_EINPUT, &where,
                        "node %" PRIu64 " waits for node %" PRIu64
                        ", which does not come within a window of %u nodes: use a larger one",
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

orr_code orr__window_next(orr__window *w, orr_node *out, orr_error *err)
{
    orr_heap_entry e;
    if (!orr_heap_pop(&w->ready, &e)) {
        if (w->in_flight == 0 && w->held_count)
            return explain_standstill(w, err);
        return ORR_END;
    }
    w->slots[e.value].state = TAKEN;
    w->in_flight++;
    view(&w->slots[e.value], out);
    return ORR_OK;
}

static orr_code find_taken(const orr__window *w, uint64_t id, uint32_t *i, orr_error *err)
{
    *i = orr_map_find(w->held, id, ORR_NO_NODE);
    if (*i == ORR_NO_NODE || w->slots[*i].state != TAKEN)
        return orr_fail(err, ORR_EUSAGE, NULL, "node %" PRIu64 " is not taken", id);
    return ORR_OK;
}

static bool release_children(orr__window *w, uint32_t i)
{
    int32_t e = w->slots[i].children;
    while (e != NONE) {
        const int32_t next = w->edges[e].next;
        const uint32_t child = w->edges[e].child;
        if (--w->slots[child].pending == 0 && !make_ready(w, child))
            return false;
        w->edges[e].next = w->free_edge;
        w->free_edge = e;
        e = next;
    }
    return true;
}

orr_code orr__window_finish(orr__window *w, uint64_t id, orr_error *err)
{
    uint32_t i;
    const orr_code code = find_taken(w, id, &i, err);
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

orr_code orr__window_put_back(orr__window *w, uint64_t id, orr_error *err)
{
    uint32_t i;
    const orr_code code = find_taken(w, id, &i, err);
    if (code)
        return code;
    w->in_flight--;
    return make_ready(w, i) ? ORR_OK : orr_no_memory(err);
}

bool orr__window_find(const orr__window *w, uint64_t id, orr_node *out)
{
    const uint32_t i = orr_map_find(w->held, id, ORR_NO_NODE);
    if (i == ORR_NO_NODE)
        return false;
    view(&w->slots[i], out);
    return true;
}

bool orr__window_has_ready(const orr__window *w)
{
    return w->ready.count != 0;
}

uint64_t orr__window_in_flight(const orr__window *w)
{
    return w->in_flight;
}

uint64_t orr__window_left(const orr__window *w)
{
    return w->held_count || w->is_at_end ? w->held_count : 1;
}
