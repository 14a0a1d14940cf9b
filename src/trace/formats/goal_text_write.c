/* SPDX-License-Identifier: Apache-2.0 */
/* goal_text_write.c - GOAL schedules as text: operations l1, l2, ... of each rank, edges as early as they may stand.
 *
 * An edge may stand only below both its operations, and a reader restores the order of a node's successors
 * from the order of the lines.  So an edge is written behind the later one of its two operations, but never
 * before an edge that precedes it in its list; then reading gives the same schedule again.
 * Cost: three words of scratch for each edge of the largest rank. */
#include "trace/goal_impl.h"

#include "base/io/output.h"

typedef struct line {
    uint32_t later, earlier; /* the top bit of earlier: irequires */
} line;

typedef struct text_writer {
    const orr_goal *goal;
    orr_output *out;
    orr_buf buf;
    uint32_t *first; /* of the lines behind each operation */
    line *lines;
    size_t first_room, line_room;
} text_writer;

static void put_op(orr_buf *b, uint32_t number, const orr__goal_node *n)
{
    static const char *const word[] = {"", ": send ", ": recv ", ": calc "};
    orr_buf_byte(b, 'l');
    orr_buf_u64(b, number + 1u);
    orr_buf_text(b, word[n->kind]);
    orr_buf_u64(b, n->size);
    if (n->kind != ORR_GOAL_CALC) {
        orr_buf_text(b, n->kind == ORR_GOAL_SEND ? "b to " : "b from ");
        if (n->kind == ORR_GOAL_RECV && n->peer == ORR_GOAL_ANY)
            orr_buf_text(b, "-1");
        else
            orr_buf_u64(b, n->peer);
        orr_buf_text(b, " tag ");
        orr_buf_i64(b, n->tag == ORR_GOAL_ANY ? -1 : (int64_t)n->tag);
    }
    if (n->cpu) {
        orr_buf_text(b, " cpu ");
        orr_buf_u64(b, n->cpu);
    }
    if (n->nic) {
        orr_buf_text(b, " nic ");
        orr_buf_u64(b, n->nic);
    }
    orr_buf_byte(b, '\n');
}

static void put_edge(orr_buf *b, line l)
{
    orr_buf_byte(b, 'l');
    orr_buf_u64(b, l.later + 1u);
    orr_buf_text(b, l.earlier >> 31 ? " irequires l" : " requires l");
    orr_buf_u64(b, (l.earlier & 0x7fffffffu) + 1u);
    orr_buf_byte(b, '\n');
}

/* Call back for each edge of one list with the operation that its line stands behind. */
static void place_list(text_writer *w,
                       const uint32_t *list,
                       uint32_t count,
                       uint32_t node,
                       uint32_t mark,
                       bool is_counting)
{
    uint32_t behind = node;
    for (uint32_t i = 0; i < count; i++) {
        if (list[i] > behind)
            behind = list[i];
        if (is_counting)
            w->first[behind + 1]++;
        else
            w->lines[w->first[behind]++] = (line){list[i], node | mark};
    }
}

static void place_rank(text_writer *w, uint32_t rank, bool is_counting)
{
    const orr__goal_node *nodes = orr__goal_nodes(w->goal, rank);
    const uint32_t *edges = orr__goal_edges(w->goal, rank), ops = orr__goal_ops(w->goal, rank);
    for (uint32_t i = 0; i < ops; i++) {
        const orr__goal_node *n = &nodes[i];
        place_list(w, edges + n->then, n->started - n->then, i, 0, is_counting);
        place_list(w, edges + n->started, n[1].then - n->started, i, 0x80000000u, is_counting);
    }
}

/* A counting sort of the rank's edges by the operation they stand behind. */
static bool sort_edges(text_writer *w, uint32_t rank)
{
    const uint32_t ops = orr__goal_ops(w->goal, rank);
    const size_t edges = w->goal->ranks[rank + 1].first_edge - w->goal->ranks[rank].first_edge;
    if (!orr_grow(&w->first, &w->first_room, (size_t)ops + 2) ||
        !orr_grow(&w->lines, &w->line_room, edges + 1))
        return false;
    memset(w->first, 0, ((size_t)ops + 2) * sizeof *w->first);
    place_rank(w, rank, true);
    for (uint32_t i = 0; i < ops; i++)
        w->first[i + 1] += w->first[i];
    place_rank(w, rank, false);
    return true;
}

static bool put_rank(text_writer *w, uint32_t rank)
{
    if (!sort_edges(w, rank))
        return false;
    const orr__goal_node *nodes = orr__goal_nodes(w->goal, rank);
    const uint32_t ops = orr__goal_ops(w->goal, rank);
    orr_buf_text(&w->buf, "\nrank ");
    orr_buf_u64(&w->buf, rank);
    orr_buf_text(&w->buf, " {\n");
    uint32_t at = 0;
    for (uint32_t i = 0; i < ops; i++) {
        put_op(&w->buf, i, &nodes[i]);
        for (; at < w->first[i]; at++) /* placing left first[i] behind the lines of i */
            put_edge(&w->buf, w->lines[at]);
        if (w->buf.len > 1 << 20)
            orr_output_drain(w->out, &w->buf);
    }
    orr_buf_text(&w->buf, "}\n");
    return !w->buf.failed;
}

orr_code orr__goal_write_text(const orr_goal *g, struct orr_output *out, orr_error *err)
{
    text_writer w = {.goal = g, .out = out};
    orr_buf_text(&w.buf, "num_ranks ");
    orr_buf_u64(&w.buf, g->rank_count);
    orr_buf_byte(&w.buf, '\n');
    bool is_good = true;
    for (uint32_t r = 0; is_good && r < g->rank_count && !orr_output_has_failed(out); r++)
        is_good = put_rank(&w, r);
    is_good = is_good && !w.buf.failed;
    if (is_good)
        orr_output_drain(out, &w.buf);
    orr_buf_fini(&w.buf);
    orr_free(w.first);
    orr_free(w.lines);
    return is_good ? ORR_OK : orr_no_memory(err);
}
