/* SPDX-License-Identifier: Apache-2.0 */
/* goal.c - a schedule in memory: made rank by rank, then only looked at.
 *
 * Why edges are kept as wishes until their rank ends: successors of a node lie side by side, and
 * how many there are is known only then.  Sorting them is two passes over the rank's edges.
 * Invariants: nodes and edges of finished ranks never change; waits is the number of edges into a
 * node. Cost: 32 bytes a node, 4 an edge, 16 a rank. */
#include <orrery/lab/goal.h>

#include "base/io/input.h"
#include "base/io/output.h"
#include "goal_impl.h"

#include <stdio.h>
#include <sys/stat.h>

orr_code orr_goal_create(uint32_t ranks, orr_goal **out, orr_error *err)
{
    *out = NULL;
    if (ranks == 0)
        return orr_fail(err, ORR_EUSAGE, NULL, "a schedule needs at least one rank");
    orr_goal *g = orr_alloc(1, sizeof *g);
    /* Arrays are there from the start: places in them are counted from their addresses. */
    if (!g || !orr_grow(&g->ranks, &g->rank_room, 2) || !orr_grow(&g->nodes, &g->node_room, 1) ||
        !orr_grow(&g->edges, &g->edge_room, 1)) {
        orr_goal_free(g);
        return orr_no_memory(err);
    }
    g->ranks[0] = (orr__goal_rank){0, 0};
    g->rank_count = ranks;
    g->totals.cpus = g->totals.nics = 1;
    *out = g;
    return ORR_OK;
}

void orr_goal_free(orr_goal *g)
{
    if (!g)
        return;
    orr_free(g->nodes);
    orr_free(g->edges);
    orr_free(g->ranks);
    orr_free(g->wishes);
    orr_free(g->job_first);
    orr_free(g->job_hosts);
    orr_free(g);
}

orr_code orr_goal_begin_rank(orr_goal *g, orr_error *err)
{
    if (g->is_in_rank)
        return orr_fail(err, ORR_EUSAGE, NULL, "rank %u has not ended yet", g->rank_done);
    if (g->rank_done == g->rank_count)
        return orr_fail(err, ORR_EUSAGE, NULL, "the schedule has %u ranks only", g->rank_count);
    g->is_in_rank = true;
    g->wish_count = 0;
    return ORR_OK;
}

static uint32_t ops_so_far(const orr_goal *g)
{
    return (uint32_t)(g->node_count - g->ranks[g->rank_done].first_node);
}

orr_code orr_goal_add(orr_goal *g, const orr_goal_op *op, uint32_t *number_out, orr_error *err)
{
    if (!g->is_in_rank)
        return orr_fail(err, ORR_EUSAGE, NULL, "an operation outside of a rank");
    if (op->kind < ORR_GOAL_SEND || op->kind > ORR_GOAL_CALC)
        return orr_fail(err, ORR_EUSAGE, NULL, "there is no operation of kind %d", (int)op->kind);
    const uint32_t number = ops_so_far(g);
    if (number >= ORR__GOAL_MAX_OPS)
        return orr_fail(err, ORR_EUSAGE, NULL, "rank %u has too many operations", g->rank_done);
    const bool is_calc = op->kind == ORR_GOAL_CALC;
    const orr__goal_node n = {.size = op->size,
                              .peer = is_calc ? 0 : op->peer,
                              .tag = is_calc ? 0 : op->tag,
                              .kind = (uint8_t)op->kind,
                              .cpu = op->cpu,
                              .nic = is_calc ? 0 : op->nic};
    if (!orr__goal_push(g, &n))
        return orr_no_memory(err);
    if (number_out)
        *number_out = number;
    return ORR_OK;
}

orr_code orr_goal_require(
    orr_goal *g, uint32_t later, uint32_t earlier, orr_goal_edge edge, orr_error *err)
{
    const uint32_t count = g->is_in_rank ? ops_so_far(g) : 0;
    if (later >= count || earlier >= count)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "rank %u: operation %u cannot wait for %u, there are %u", g->rank_done,
                        later, earlier, count);
    if (g->wish_count >= UINT32_MAX)
        return orr_fail(err, ORR_EUSAGE, NULL, "rank %u has too many edges", g->rank_done);
    if (!orr__goal_wish_for(g, later, earlier, edge == ORR_GOAL_STARTED))
        return orr_no_memory(err);
    return ORR_OK;
}

/* Counts of successors become places: then is where the next edge of its kind goes, until all are
 * placed. */
static void place_edges(orr_goal *g, orr__goal_node *nodes, size_t count)
{
    uint32_t at = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t then = nodes[i].then, started = nodes[i].started;
        nodes[i].then = at;
        nodes[i].started = at + then;
        at += then + started;
    }
    uint32_t *edges = g->edge_count ? g->edges + g->edge_count : g->edges;
    for (size_t i = 0; i < g->wish_count; i++) {
        const orr__goal_wish w = g->wishes[i];
        orr__goal_node *n = &nodes[w.earlier & 0x7fffffffu];
        edges[w.earlier >> 31 ? n->started++ : n->then++] = w.later;
    }
    /* Each now points behind its own list: go back by one list. */
    at = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t then_end = nodes[i].then, started_end = nodes[i].started;
        nodes[i].then = at;
        nodes[i].started = then_end;
        at = started_end;
    }
    nodes[count].then = nodes[count].started = at;
}

static void add_totals(orr_goal_totals *t, const orr__goal_node *n)
{
    if (n->cpu >= t->cpus)
        t->cpus = n->cpu + 1u;
    if (n->nic >= t->nics)
        t->nics = n->nic + 1u;
    if (n->kind == ORR_GOAL_CALC) {
        t->calcs++;
        t->calc_ns += n->size;
        return;
    }
    const bool is_send = n->kind == ORR_GOAL_SEND;
    t->sends += is_send;
    t->recvs += !is_send;
    t->bytes_sent += is_send ? n->size : 0;
    t->wildcards += n->tag == ORR_GOAL_ANY || (!is_send && n->peer == ORR_GOAL_ANY);
}

orr_code orr_goal_end_rank(orr_goal *g, orr_error *err)
{
    if (!g->is_in_rank)
        return orr_fail(err, ORR_EUSAGE, NULL, "no rank has begun");
    const size_t first = (size_t)g->ranks[g->rank_done].first_node, count = g->node_count - first;
    if (!orr_grow(&g->nodes, &g->node_room, g->node_count + 1) ||
        !orr_grow(&g->edges, &g->edge_room, g->edge_count + g->wish_count) ||
        !orr_grow(&g->ranks, &g->rank_room, (size_t)g->rank_done + 2))
        return orr_no_memory(err);
    orr__goal_node *nodes = g->nodes + first;
    nodes[count] = (orr__goal_node){0};
    for (size_t i = 0; i < count; i++)
        add_totals(&g->totals, &nodes[i]);
    for (size_t i = 0; i < g->wish_count; i++) {
        const orr__goal_wish w = g->wishes[i];
        orr__goal_node *n = &nodes[w.earlier & 0x7fffffffu];
        *(w.earlier >> 31 ? &n->started : &n->then) += 1;
        nodes[w.later].waits++;
    }
    place_edges(g, nodes, count);
    g->totals.edges += g->wish_count;
    g->edge_count += g->wish_count;
    g->node_count++;
    g->wish_count = 0;
    g->is_in_rank = false;
    g->rank_done++;
    g->ranks[g->rank_done] = (orr__goal_rank){g->node_count, g->edge_count};
    return ORR_OK;
}

uint32_t orr_goal_ranks(const orr_goal *g)
{
    return g->rank_done;
}

uint32_t orr_goal_ops(const orr_goal *g, uint32_t rank)
{
    return orr__goal_ops(g, rank);
}

orr_goal_op orr_goal_get(const orr_goal *g, uint32_t rank, uint32_t op)
{
    const orr__goal_node *n = orr__goal_nodes(g, rank) + op;
    return (orr_goal_op){.kind = (orr_goal_kind)n->kind,
                         .size = n->size,
                         .peer = n->peer,
                         .tag = n->tag,
                         .cpu = n->cpu,
                         .nic = n->nic};
}

uint32_t orr_goal_waits(const orr_goal *g, uint32_t rank, uint32_t op)
{
    return orr__goal_nodes(g, rank)[op].waits;
}

const uint32_t *orr_goal_then(
    const orr_goal *g, uint32_t rank, uint32_t op, orr_goal_edge edge, uint32_t *count_out)
{
    const orr__goal_node *n = orr__goal_nodes(g, rank) + op;
    const uint32_t from = edge == ORR_GOAL_STARTED ? n->started : n->then;
    const uint32_t to = edge == ORR_GOAL_STARTED ? n[1].then : n->started;
    *count_out = to - from;
    return orr__goal_edges(g, rank) + from;
}

orr_goal_totals orr_goal_count(const orr_goal *g)
{
    return g->totals;
}

/* Text starts with blanks, comments or "num_ranks", never with a zero byte within its first
 * eight. */
static bool is_binary(orr_span bytes)
{
    return bytes.len >= 8 && memchr(bytes.ptr, 0, 8) != NULL;
}

orr_code orr_goal_parse(
    orr_span bytes, const char *label, orr_goal_remarks *remarks, orr_goal **out, orr_error *err)
{
    orr_goal_remarks unseen;
    orr_goal_remarks *r = remarks ? remarks : &unseen;
    *out = NULL;
    *r = (orr_goal_remarks){.form = is_binary(bytes) ? ORR_GOAL_BINARY : ORR_GOAL_TEXT};
    if (r->form == ORR_GOAL_BINARY)
        return orr__goal_read_binary(bytes, label, out, err);
    return orr__goal_read_text(bytes, label, r, out, err);
}

orr_code orr_goal_read(const char *path, orr_goal_remarks *remarks, orr_goal **out, orr_error *err)
{
    *out = NULL;
    orr_input *in;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    code = orr_goal_parse(orr_input_bytes(in), path, remarks, out, err);
    orr_input_close(in);
    return code;
}

/* "num_ranks" behind blanks and comments. */
static bool starts_like_text(const uint8_t *p, size_t n)
{
    static const char word[] = "num_ranks";
    size_t i = 0;
    while (i < n) {
        if (strchr(" \t\r\n", p[i])) {
            i++;
        } else if (i + 1 < n && p[i] == '/' && p[i + 1] == '/') {
            while (i < n && p[i] != '\n')
                i++;
        } else if (i + 1 < n && p[i] == '/' && p[i + 1] == '*') {
            for (i += 2; i + 1 < n && !(p[i] == '*' && p[i + 1] == '/'); i++)
                ;
            i += 2;
        } else {
            break;
        }
    }
    return i < n && n - i >= sizeof word - 1 && memcmp(p + i, word, sizeof word - 1) == 0;
}

/* What a pipe gives is given once: to look into it is to lose it. */
static bool can_be_read_again(const char *path)
{
    struct stat st;
    return strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool orr_goal_recognise(const char *path)
{
    static const uint8_t magic[8] = {ORR__GOAL_MAGIC & 0xff, ORR__GOAL_MAGIC >> 8};
    static const uint8_t consumed[8] = {ORR__GOAL_CONSUMED & 0xff, ORR__GOAL_CONSUMED >> 8};
    orr_stream *in;
    orr_span head = {0};
    if (!can_be_read_again(path) || orr_stream_open(path, &in, NULL))
        return false;
    const orr_code code = orr_stream_peek(in, 1 << 16, &head, NULL);
    const bool is_goal = !code && head.len >= 8 &&
                         (memcmp(head.ptr, magic, 8) == 0 || memcmp(head.ptr, consumed, 8) == 0 ||
                          starts_like_text(head.ptr, head.len));
    orr_stream_close(in);
    return is_goal;
}

orr_code orr_goal_write(const orr_goal *g, const char *path, orr_goal_form form, orr_error *err)
{
    if (g->rank_done != g->rank_count)
        return orr_fail(err, ORR_EUSAGE, NULL, "only %u of the schedule's %u ranks are there",
                        g->rank_done, g->rank_count);
    orr_output *out;
    orr_code code = orr_output_open(path, &out, err);
    if (code)
        return code;
    code = form == ORR_GOAL_BINARY ? orr__goal_write_binary(g, out, err)
                                   : orr__goal_write_text(g, out, err);
    if (code) {
        orr_output_discard(out);
        return code;
    }
    return orr_output_commit(&out, err);
}

static size_t print_place(const orr_goal_op *op, char *buf, size_t size)
{
    int n = 0;
    if (op->cpu && op->nic)
        n = snprintf(buf, size, " cpu %u nic %u", op->cpu, op->nic);
    else if (op->cpu)
        n = snprintf(buf, size, " cpu %u", op->cpu);
    else if (op->nic)
        n = snprintf(buf, size, " nic %u", op->nic);
    else if (size)
        buf[0] = 0;
    return (size_t)n;
}

static size_t print_tag(const orr_goal_op *op, char *buf, size_t size)
{
    if (op->tag == ORR_GOAL_ANY)
        return (size_t)snprintf(buf, size, " tag -1");
    return (size_t)snprintf(buf, size, " tag %u", op->tag);
}

char *orr_goal_op_text(const orr_goal_op *op, char *buf, size_t size)
{
    char tag[24], place[32], peer[16];
    print_place(op, place, sizeof place);
    print_tag(op, tag, sizeof tag);
    if (op->kind == ORR_GOAL_RECV && op->peer == ORR_GOAL_ANY)
        snprintf(peer, sizeof peer, "-1");
    else
        snprintf(peer, sizeof peer, "%u", op->peer);
    const unsigned long long bytes = op->size;
    if (op->kind == ORR_GOAL_CALC)
        snprintf(buf, size, "calc %llu%s", bytes, place);
    else if (op->kind == ORR_GOAL_SEND)
        snprintf(buf, size, "send %llub to %s%s%s", bytes, peer, tag, place);
    else
        snprintf(buf, size, "recv %llub from %s%s%s", bytes, peer, tag, place);
    return buf;
}
