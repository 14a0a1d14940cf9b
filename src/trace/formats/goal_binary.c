/* SPDX-License-Identifier: Apache-2.0 */
/* goal_binary.c - GOAL schedules as the binary file that simulators load: reader and writer, so
 * that they cannot drift.
 *
 *     magic 4223 | ranks | max cpu | max nic | start and end of each rank | rank records
 *     rank:  nodes | roots | root indices | 39 bytes a node | successors
 *
 * Everything is little endian and packed.  docs/format/goal.md has it byte by byte. Why reading
 * checks every count: a schedule in memory is trusted by the simulator, which does not look
 * again.  Lists may lie in any order in the file; what is written has them in the order of
 * nodes. */
#include "trace/goal_impl.h"

#include "base/io/output.h"

enum { HEAD_BYTES = 14, JUMP_BYTES = 16, BASE = 8, RANK_HEAD_BYTES = 8 };

/* ---- bytes */

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t get64(const uint8_t *p)
{
    return get32(p) | (uint64_t)get32(p + 4) << 32;
}

static uint8_t *put32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
    p[2] = (uint8_t)(v >> 16);
    p[3] = (uint8_t)(v >> 24);
    return p + 4;
}

static uint8_t *put64(uint8_t *p, uint64_t v)
{
    return put32(put32(p, (uint32_t)v), (uint32_t)(v >> 32));
}

/* ---- reading */

typedef struct binary_reader {
    orr_span all;
    const char *path;
    orr_goal *goal;
    orr_error *err;
    uint32_t rank;
    uint32_t nodes;          /* of the rank */
    const uint8_t *node;     /* of the rank, the first */
    const uint8_t *appendix; /* successors of the rank */
    uint64_t appendix_count;
} binary_reader;

static orr_where place(const binary_reader *b, const uint8_t *at)
{
    return orr_where_byte(b->path, (uint64_t)(at - b->all.ptr));
}

/* Successors of one node, of one kind: [first, first + count) of the appendix, each a node of the
 * rank. */
static orr_code read_list(binary_reader *b, const uint8_t *field, uint32_t node, bool on_start)
{
    const uint32_t count = get32(field), first = get32(field + 4);
    if (count && (first > b->appendix_count || count > b->appendix_count - first)) {
        const orr_where at = place(b, field);
        return orr_fail(b->err, ORR_EINPUT, &at, "rank %u: node %u: successors %u to %llu of %llu",
                        b->rank, node, first, (unsigned long long)first + count - 1,
                        (unsigned long long)b->appendix_count);
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *p = b->appendix + 4 * ((size_t)first + i);
        const uint32_t later = get32(p);
        if (later >= b->nodes) {
            const orr_where at = place(b, p);
            return orr_fail(b->err, ORR_EINPUT, &at,
                            "rank %u: node %u: successor %u does not exist, there are %u nodes",
                            b->rank, node, later, b->nodes);
        }
        if (!orr__goal_wish_for(b->goal, later, node, on_start))
            return orr_no_memory(b->err);
    }
    return ORR_OK;
}

/* A list may be named by several nodes: without a limit a small file could ask for a huge
 * schedule. */
static orr_code check_edges(binary_reader *b)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < b->nodes; i++) {
        const uint8_t *p = b->node + (size_t)ORR__GOAL_NODE_BYTES * i;
        sum += (uint64_t)get32(p + 23) + get32(p + 31);
    }
    if (sum == b->appendix_count)
        return ORR_OK;
    const orr_where at = place(b, b->appendix);
    return orr_fail(b->err, ORR_EINPUT, &at,
                    "rank %u: its nodes have %llu successors, the record has room for %llu",
                    b->rank, (unsigned long long)sum, (unsigned long long)b->appendix_count);
}

static orr_code read_node(binary_reader *b, uint32_t i)
{
    const uint8_t *p = b->node + (size_t)ORR__GOAL_NODE_BYTES * i;
    const orr__goal_node n = {.kind = p[4],
                              .peer = get32(p + 5),
                              .size = get64(p + 9),
                              .tag = get32(p + 17),
                              .cpu = p[21],
                              .nic = p[22]};
    if (n.kind < ORR_GOAL_SEND || n.kind > ORR_GOAL_CALC) {
        const orr_where at = place(b, p + 4);
        return orr_fail(b->err, ORR_EINPUT, &at,
                        "rank %u: node %u: type %u, expected 1 (send), 2 (recv) or 3 (calc)",
                        b->rank, i, n.kind);
    }
    if (!orr__goal_push(b->goal, &n))
        return orr_no_memory(b->err);
    const orr_code code = read_list(b, p + 23, i, false);
    return code ? code : read_list(b, p + 31, i, true);
}

/* The counts and roots of the file must be those that follow from its edges. */
static orr_code check_counts(binary_reader *b, const uint8_t *roots, uint32_t root_count)
{
    const orr__goal_node *nodes = orr__goal_nodes(b->goal, b->rank);
    uint32_t root = 0;
    for (uint32_t i = 0; i < b->nodes; i++) {
        const uint8_t *p = b->node + (size_t)ORR__GOAL_NODE_BYTES * i;
        if (get32(p) != nodes[i].waits) {
            const orr_where at = place(b, p);
            return orr_fail(b->err, ORR_EINPUT, &at,
                            "rank %u: node %u: waits for %u, but %u edges lead to it", b->rank, i,
                            get32(p), nodes[i].waits);
        }
        if (nodes[i].waits)
            continue;
        if (root >= root_count || get32(roots + 4 * (size_t)root) != i) {
            const orr_where at = place(b, roots + 4 * (size_t)root);
            return orr_fail(b->err, ORR_EINPUT, &at,
                            "rank %u: node %u waits for nothing but is not root %u", b->rank, i,
                            root);
        }
        root++;
    }
    if (root == root_count)
        return ORR_OK;
    const orr_where at = place(b, roots + 4 * (size_t)root);
    return orr_fail(b->err, ORR_EINPUT, &at, "rank %u: %u roots, but %u nodes wait for nothing",
                    b->rank, root_count, root);
}

static orr_code read_record(binary_reader *b, const uint8_t *p, uint64_t len)
{
    const orr_where at = place(b, p);
    if (len < RANK_HEAD_BYTES)
        return orr_fail(b->err, ORR_EINPUT, &at, "rank %u: its record ends too early", b->rank);
    const uint32_t nodes = get32(p), roots = get32(p + 4);
    const uint64_t need =
        RANK_HEAD_BYTES + 4 * (uint64_t)roots + (uint64_t)ORR__GOAL_NODE_BYTES * nodes;
    if (need > len || (len - need) % 4 || nodes > ORR__GOAL_MAX_OPS)
        return orr_fail(b->err, ORR_EINPUT, &at,
                        "rank %u: %u nodes and %u roots do not fit a record of %llu bytes", b->rank,
                        nodes, roots, (unsigned long long)len);
    b->nodes = nodes;
    b->node = p + RANK_HEAD_BYTES + 4 * (size_t)roots;
    b->appendix = p + need;
    b->appendix_count = (len - need) / 4;
    orr_code code = check_edges(b);
    if (code || (code = orr_goal_begin_rank(b->goal, b->err)))
        return code;
    for (uint32_t i = 0; i < nodes; i++) {
        if ((code = read_node(b, i)))
            return code;
    }
    if ((code = orr_goal_end_rank(b->goal, b->err)))
        return code;
    return check_counts(b, p + RANK_HEAD_BYTES, roots);
}

static orr_code read_rank(binary_reader *b)
{
    const uint8_t *jump = b->all.ptr + HEAD_BYTES + JUMP_BYTES * (size_t)b->rank;
    const uint64_t from = get64(jump), to = get64(jump + 8), room = b->all.len - BASE;
    const uint64_t least = HEAD_BYTES - BASE + JUMP_BYTES * (uint64_t)b->goal->rank_count;
    if (from < least || to < from || to > room) {
        const orr_where at = place(b, jump);
        return orr_fail(b->err, ORR_EINPUT, &at,
                        "rank %u: its record is said to be bytes %llu to %llu of %llu", b->rank,
                        (unsigned long long)from, (unsigned long long)to, (unsigned long long)room);
    }
    return read_record(b, b->all.ptr + BASE + from, to - from);
}

static orr_code check_head(binary_reader *b, uint32_t *ranks)
{
    const uint64_t magic = b->all.len >= 8 ? get64(b->all.ptr) : 0;
    const orr_where at = orr_where_byte(b->path, 0);
    if (magic == ORR__GOAL_CONSUMED)
        return orr_fail(
            b->err, ORR_EINPUT, &at,
            "this schedule was used up by a simulation with --save-mem; make it again from its text");
    if (magic != ORR__GOAL_MAGIC)
        return orr_fail(b->err, ORR_EINPUT, &at,
                        "magic number %llu, expected %d: not a binary GOAL file",
                        (unsigned long long)magic, ORR__GOAL_MAGIC);
    if (b->all.len < HEAD_BYTES)
        return orr_fail(b->err, ORR_EINPUT, &at, "the file ends within its head");
    *ranks = get32(b->all.ptr + 8);
    if (*ranks == 0 || *ranks > (b->all.len - HEAD_BYTES) / JUMP_BYTES) {
        const orr_where field = orr_where_byte(b->path, 8);
        return orr_fail(b->err, ORR_EINPUT, &field, "%u ranks in a file of %zu bytes", *ranks,
                        b->all.len);
    }
    return ORR_OK;
}

/* The head must name the largest CPU and NIC: a simulator makes room for as many. */
static orr_code check_places(binary_reader *b)
{
    const orr_goal_totals *t = &b->goal->totals;
    const unsigned cpu = b->all.ptr[12], nic = b->all.ptr[13];
    if (cpu == t->cpus - 1 && nic == t->nics - 1)
        return ORR_OK;
    const orr_where at = orr_where_byte(b->path, 12);
    return orr_fail(b->err, ORR_EINPUT, &at,
                    "largest cpu %u and nic %u, but operations use %u and %u", cpu, nic,
                    t->cpus - 1, t->nics - 1);
}

orr_code orr__goal_read_binary(orr_span bytes, const char *label, orr_goal **out, orr_error *err)
{
    binary_reader b = {.all = bytes, .path = label, .err = err};
    uint32_t ranks = 0;
    orr_code code = check_head(&b, &ranks);
    if (code || (code = orr_goal_create(ranks, &b.goal, err)))
        return code;
    for (; !code && b.rank < ranks; b.rank++)
        code = read_rank(&b);
    if (code || (code = check_places(&b))) {
        orr_goal_free(b.goal);
        return code;
    }
    *out = b.goal;
    return ORR_OK;
}

/* ---- writing */

static uint64_t record_bytes(const orr_goal *g, uint32_t rank, uint32_t *roots_out)
{
    const orr__goal_node *nodes = orr__goal_nodes(g, rank);
    const uint32_t ops = orr__goal_ops(g, rank);
    uint32_t roots = 0;
    for (uint32_t i = 0; i < ops; i++)
        roots += nodes[i].waits == 0;
    *roots_out = roots;
    return RANK_HEAD_BYTES + 4 * (uint64_t)roots + (uint64_t)ORR__GOAL_NODE_BYTES * ops +
           4 * (g->ranks[rank + 1].first_edge - g->ranks[rank].first_edge);
}

static void put_head(const orr_goal *g, orr_buf *b, orr_output *out)
{
    uint8_t head[HEAD_BYTES], jump[JUMP_BYTES];
    uint8_t *p = put32(put64(head, ORR__GOAL_MAGIC), g->rank_count);
    p[0] = (uint8_t)(g->totals.cpus - 1);
    p[1] = (uint8_t)(g->totals.nics - 1);
    orr_buf_add(b, head, sizeof head);
    uint64_t at = HEAD_BYTES - BASE + JUMP_BYTES * (uint64_t)g->rank_count;
    for (uint32_t r = 0; r < g->rank_count; r++) {
        uint32_t roots;
        const uint64_t len = record_bytes(g, r, &roots);
        put64(put64(jump, at), at + len);
        orr_buf_add(b, jump, sizeof jump);
        at += len;
        if (b->len > 1 << 20)
            orr_output_drain(out, b);
    }
}

static uint8_t *put_node(uint8_t *p, const orr__goal_node *n)
{
    p = put32(p, n->waits);
    *p++ = n->kind;
    p = put32(p, n->peer);
    p = put64(p, n->size);
    p = put32(p, n->tag);
    *p++ = n->cpu;
    *p++ = n->nic;
    p = put32(put32(p, n->started - n->then), n->then);
    return put32(put32(p, n[1].then - n->started), n->started);
}

static void put_rank(const orr_goal *g, uint32_t rank, orr_buf *b, orr_output *out)
{
    const orr__goal_node *nodes = orr__goal_nodes(g, rank);
    const uint32_t *edges = orr__goal_edges(g, rank), ops = orr__goal_ops(g, rank);
    uint32_t roots;
    const uint64_t len = record_bytes(g, rank, &roots);
    uint8_t *p = orr_buf_reserve(b, (size_t)len);
    if (!p)
        return;
    p = put32(put32(p, ops), roots);
    for (uint32_t i = 0; i < ops; i++) {
        if (nodes[i].waits == 0)
            p = put32(p, i);
    }
    for (uint32_t i = 0; i < ops; i++)
        p = put_node(p, &nodes[i]);
    for (uint32_t i = 0; i < nodes[ops].then; i++)
        p = put32(p, edges[i]);
    b->len += (size_t)len;
    if (b->len > 1 << 20)
        orr_output_drain(out, b);
}

orr_code orr__goal_write_binary(const orr_goal *g, struct orr_output *out, orr_error *err)
{
    orr_buf b = {0};
    put_head(g, &b, out);
    for (uint32_t r = 0; r < g->rank_count && !b.failed && !orr_output_has_failed(out); r++)
        put_rank(g, r, &b, out);
    const bool is_good = !b.failed;
    if (is_good)
        orr_output_drain(out, &b);
    orr_buf_fini(&b);
    return is_good ? ORR_OK : orr_no_memory(err);
}
