/* SPDX-License-Identifier: Apache-2.0 */
/* goal.c - a schedule in memory: built rank by rank, then immutable.
 *
 * Why edges are buffered until their rank ends: successors of a node are contiguous, and their
 * number is known only then.  Sorting them is two passes over the rank's edges. Invariants: nodes
 * and edges of finished ranks never change; waits is the number of edges into a node. Cost: 32
 * bytes per node, 4 per edge, 16 per rank. */
#include "goal_impl.h"

#include <orrery/lab/goal.h>

#include "base/io/input.h"
#include "base/io/output.h"
#include "base/memory/hash.h"
#include "base/short_forms.h"
#include "trace/goal_impl.h"

#include <stdio.h>
#include <sys/stat.h>

/* ==== GOAL schedules from their text.
 *
 *     num_ranks 2
 *     rank 0 {
 *     a: calc 100 cpu 1
 *     b: send 8b to 1 tag 7
 *     b requires a
 *     }
 *     ...
 *
 * Why by hand: files have gigabytes, a line has a handful of tokens, and a table-driven scanner
 * reads each byte several times.  Lines are counted only when there is an error to report.
 * Invariants: p never passes end; labels belong to the rank being read (a stamp identifies old
 * entries). Cost: one pass, a few nanoseconds per byte; labels l1, l2, ... are an array, others a
 * hash table. */

/* ---- GOAL schedules as text: operations l1, l2, ... of each rank, edges as early as possible.
 *
 * An edge must come after both its operations, and a reader restores the order of a node's
 * successors from the order of the lines.  So an edge is written after the later one of its two
 * operations, but never before its predecessor in the list; then reading gives the same schedule
 * again. Cost: three words of scratch per edge of the largest rank. */

typedef struct edge_line {
    uint32_t later, earlier; /* the top bit of earlier: irequires */
} edge_line;

typedef struct text_writer {
    const orr_goal *goal;
    orr_output *out;
    orr_buf buf;
    uint32_t *first; /* of the lines after each operation */
    edge_line *lines;
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

static void put_edge(orr_buf *b, edge_line l)
{
    orr_buf_byte(b, 'l');
    orr_buf_u64(b, l.later + 1u);
    orr_buf_text(b, l.earlier >> 31 ? " irequires l" : " requires l");
    orr_buf_u64(b, (l.earlier & 0x7fffffffu) + 1u);
    orr_buf_byte(b, '\n');
}

/* Calls back for each edge of one list with the operation after which its line is written. */
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
            w->lines[w->first[behind]++] = (edge_line){list[i], node | mark};
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

/* A counting sort of the rank's edges by the operation they follow. */
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
        for (; at < w->first[i]; at++) /* after placing, first[i] is the end of i's lines */
            put_edge(&w->buf, w->lines[at]);
        if (w->buf.len > 1 << 20)
            orr_output_drain(w->out, &w->buf);
    }
    orr_buf_text(&w->buf, "}\n");
    return !w->buf.failed;
}

static orr_code goal_write_text(const orr_goal *g, struct orr_output *out, orr_error *err)
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

typedef struct label_slot {
    uint32_t rank; /* plus one, of the rank that defined it; 0: none */
    uint32_t op;
} label_slot;

/* A label that is not of the form l<number>; the text stays in the file. */
typedef struct named_slot {
    uint32_t rank, op; /* as above */
    const char *text;
    uint32_t len, hash;
} named_slot;

typedef struct text_reader {
    const char *p, *end, *start;
    const char *path;
    orr_goal *goal;
    orr_goal_remarks *remarks;
    orr_error *err;
    label_slot *numbered;
    named_slot *named;
    size_t numbered_count, numbered_room, named_count, named_room;
    uint32_t rank, ops; /* being read; operations in it so far */
} text_reader;

/* ---- places and errors */

static orr_where where_is(const text_reader *t, const char *p)
{
    const char *line = t->start;
    uint32_t number = 1;
    for (const char *q = t->start; (q = memchr(q, '\n', (size_t)(p - q))) != NULL; number++)
        line = ++q;
    return orr_where_line(t->path, number, (uint32_t)(p - line) + 1);
}

static bool is_word(char c)
{
    return orr_is_letter(c) || orr_is_digit(c) || c == '_';
}

/* The token at p, shortened for a message: a word, a number, one character, or the end of the
 * text. */
static void describe(const text_reader *t, char *buf, size_t size)
{
    if (t->p >= t->end) {
        snprintf(buf, size, "the end of the file");
        return;
    }
    if (*t->p == '\n' || (*t->p == '\r' && t->p + 1 < t->end && t->p[1] == '\n')) {
        snprintf(buf, size, "the end of the line");
        return;
    }
    const char *q = t->p;
    while (q < t->end && is_word(*q) && q - t->p < 40)
        q++;
    const unsigned char c = (unsigned char)*t->p;
    if (q > t->p)
        snprintf(buf, size, "\"%.*s\"", (int)(q - t->p), t->p);
    else if (c >= 0x20 && c < 0x7f)
        snprintf(buf, size, "\"%c\"", c);
    else
        snprintf(buf, size, "the byte 0x%02x", c);
}

static orr_code expected(text_reader *t, const char *what)
{
    char found[64];
    describe(t, found, sizeof found);
    return orr_fail(t->err, ORR_EINPUT, ORR_AT(where_is(t, t->p)), "expected %s, found %s", what,
                    found);
}

/* ---- blanks */

static orr_code skip_comment(text_reader *t)
{
    const size_t left = (size_t)(t->end - t->p);
    if (left >= 2 && t->p[1] == '/') {
        const char *nl = memchr(t->p, '\n', left);
        t->p = nl ? nl : t->end;
        return ORR_OK;
    }
    if (left < 2 || t->p[1] != '*')
        return expected(t, "a comment after \"/\"");
    for (const char *q = t->p + 2; (q = memchr(q, '*', (size_t)(t->end - q))) != NULL; q++) {
        if (q + 1 < t->end && q[1] == '/') {
            t->p = q + 2;
            return ORR_OK;
        }
    }
    return orr_fail(t->err, ORR_EINPUT, ORR_AT(where_is(t, t->p)),
                    "a comment that starts here has no end");
}

/* Up to the next token or the end of the line. */
static inline orr_code skip_blanks(text_reader *t)
{
    for (;;) {
        while (t->p < t->end && (*t->p == ' ' || *t->p == '\t' || *t->p == '\r'))
            t->p++;
        if (t->p >= t->end || *t->p != '/')
            return ORR_OK;
        const orr_code code = skip_comment(t);
        if (code)
            return code;
    }
}

static inline orr_code skip_lines(text_reader *t)
{
    for (;;) {
        const orr_code code = skip_blanks(t);
        if (code || t->p >= t->end || *t->p != '\n')
            return code;
        t->p++;
    }
}

static inline orr_code end_of_line(text_reader *t)
{
    if (t->p < t->end && *t->p == '\n') {
        t->p++;
        return ORR_OK;
    }
    const orr_code code = skip_blanks(t);
    if (code)
        return code;
    if (t->p >= t->end || *t->p != '\n')
        return expected(t, "the end of the line");
    t->p++;
    return ORR_OK;
}

/* ---- words and numbers */

/* Consumes the next token if it is this word. */
static inline bool take_word(text_reader *t, const char *word, size_t len)
{
    if ((size_t)(t->end - t->p) < len || memcmp(t->p, word, len) != 0)
        return false;
    if ((size_t)(t->end - t->p) > len && is_word(t->p[len]))
        return false;
    t->p += len;
    return true;
}

#define TAKE(t, word) take_word((t), (word), sizeof(word) - 1)

static inline orr_code read_number(text_reader *t, const char *what, uint64_t *out)
{
    const char *p = t->p;
    uint64_t v = 0;
    while (p < t->end && orr_is_digit(*p) && p - t->p < 19)
        v = v * 10 + (uint64_t)(*p++ - '0');
    if (p == t->p)
        return expected(t, what);
    for (; p < t->end && orr_is_digit(*p); p++) {
        uint64_t ten;
        if (__builtin_mul_overflow(v, (uint64_t)10, &ten) ||
            __builtin_add_overflow(ten, (uint64_t)(*p - '0'), &v))
            return orr_fail(t->err, ORR_EINPUT, ORR_AT(where_is(t, t->p)), "%s must be below 2^64",
                            what);
    }
    t->p = p;
    *out = v;
    return ORR_OK;
}

static void note_wrapped(text_reader *t)
{
    if (t->remarks->wrapped++ == 0)
        t->remarks->first_wrapped = where_is(t, t->p).line;
}

/* Numbers too large for their field lose their upper bits, as in the reference (golden cpu300,
 * bigtag). */
static inline orr_code read_field(text_reader *t, const char *what, uint64_t mask, uint32_t *out)
{
    uint64_t v = 0;
    orr_code code = skip_blanks(t);
    if (code || (code = read_number(t, what, &v)))
        return code;
    if (v > mask)
        note_wrapped(t);
    *out = (uint32_t)(v & mask);
    return ORR_OK;
}

static inline orr_code read_or_any(text_reader *t, const char *what, uint32_t *out)
{
    const orr_code code = skip_blanks(t);
    if (code)
        return code;
    if (t->end - t->p >= 2 && t->p[0] == '-' && t->p[1] == '1' &&
        (t->end - t->p == 2 || !is_word(t->p[2]))) {
        t->p += 2;
        *out = ORR_GOAL_ANY;
        return ORR_OK;
    }
    return read_field(t, what, UINT32_MAX, out);
}

/* ---- labels */

/* l<number> without leading zeros, nine digits at most: the number; else UINT32_MAX. */
static inline uint32_t label_number(const char *s, size_t len)
{
    if (len < 2 || len > 10 || s[0] != 'l' || (s[1] == '0' && len > 2))
        return UINT32_MAX;
    uint32_t v = 0;
    for (size_t i = 1; i < len; i++) {
        if (!orr_is_digit(s[i]))
            return UINT32_MAX;
        v = v * 10 + (uint32_t)(s[i] - '0');
    }
    return v;
}

static named_slot *named_find(const text_reader *t, const char *s, size_t len, uint32_t hash)
{
    size_t i = hash & (t->named_room - 1);
    for (; t->named[i].rank == t->rank + 1; i = (i + 1) & (t->named_room - 1)) {
        const named_slot *n = &t->named[i];
        if (n->hash == hash && n->len == len && memcmp(n->text, s, len) == 0)
            break;
    }
    return &t->named[i];
}

/* Doubles the table; entries of earlier ranks are dropped. */
static bool named_grow(text_reader *t)
{
    text_reader old = *t;
    t->named_room = old.named_room ? old.named_room * 2 : 64;
    t->named = orr_alloc(t->named_room, sizeof *t->named);
    if (!t->named) {
        t->named = old.named;
        t->named_room = old.named_room;
        return false;
    }
    for (size_t i = 0; i < old.named_room; i++) {
        const named_slot *n = &old.named[i];
        if (n->rank == t->rank + 1)
            *named_find(t, n->text, n->len, n->hash) = *n;
    }
    orr_free(old.named);
    return true;
}

static inline bool label_find(const text_reader *t, const char *s, size_t len, uint32_t *op)
{
    const uint32_t number = label_number(s, len);
    if (number < t->numbered_count && t->numbered[number].rank == t->rank + 1) {
        *op = t->numbered[number].op;
        return true;
    }
    if (t->named_count == 0)
        return false;
    const named_slot *n = named_find(t, s, len, (uint32_t)orr_hash_bytes(s, len, 0));
    *op = n->op;
    return n->rank == t->rank + 1;
}

static bool label_add_named(text_reader *t, const char *s, size_t len)
{
    if ((t->named_count + 1) * 4 > t->named_room * 3 && !named_grow(t))
        return false;
    const uint32_t hash = (uint32_t)orr_hash_bytes(s, len, 0);
    *named_find(t, s, len, hash) = (named_slot){
        .rank = t->rank + 1, .op = t->ops, .text = s, .len = (uint32_t)len, .hash = hash};
    t->named_count++;
    return true;
}

/* Numbers far above the number of operations go to the hash table: memory is bounded by the
 * text. */
static inline orr_code label_define(text_reader *t, const char *s, size_t len)
{
    uint32_t op;
    if (label_find(t, s, len, &op)) {
        if (t->remarks->doubled++ == 0)
            t->remarks->first_doubled = where_is(t, s).line;
        return ORR_OK;
    }
    const uint32_t number = label_number(s, len);
    if (number == UINT32_MAX || number / 4 > t->ops + 256u)
        return label_add_named(t, s, len) ? ORR_OK : orr_no_memory(t->err);
    if (number >= t->numbered_count) {
        if (!orr_grow(&t->numbered, &t->numbered_room, (size_t)number + 1))
            return orr_no_memory(t->err);
        memset(t->numbered + t->numbered_count, 0,
               (number + 1 - t->numbered_count) * sizeof *t->numbered);
        t->numbered_count = (size_t)number + 1;
    }
    t->numbered[number] = (label_slot){t->rank + 1, t->ops};
    return ORR_OK;
}

/* ---- lines */

static inline orr_code read_place(text_reader *t, orr__goal_node *n, bool has_nic)
{
    uint32_t v;
    orr_code code = skip_blanks(t);
    if (!code && TAKE(t, "cpu")) {
        if ((code = read_field(t, "the number of a CPU", 0xff, &v)))
            return code;
        n->cpu = (uint8_t)v;
        code = skip_blanks(t);
    }
    if (!code && has_nic && TAKE(t, "nic")) {
        if ((code = read_field(t, "the number of a NIC", 0xff, &v)))
            return code;
        n->nic = (uint8_t)v;
    }
    return code;
}

/* "10b to 1 tag 5", after send or recv. */
static inline orr_code read_message(text_reader *t, orr__goal_node *n)
{
    const bool is_send = n->kind == ORR_GOAL_SEND;
    orr_code code = read_number(t, "a number of bytes", &n->size);
    if (code || (code = skip_blanks(t)))
        return code;
    if (!TAKE(t, "b"))
        return expected(t, "\"b\" after the number of bytes");
    if ((code = skip_blanks(t)))
        return code;
    if (!(is_send ? TAKE(t, "to") : TAKE(t, "from")))
        return expected(t, is_send ? "\"to\"" : "\"from\"");
    code = is_send ? read_field(t, "a rank", UINT32_MAX, &n->peer)
                   : read_or_any(t, "a rank or -1", &n->peer);
    if (code || (code = skip_blanks(t)))
        return code;
    if (TAKE(t, "tag") && (code = read_or_any(t, "a tag or -1", &n->tag)))
        return code;
    return read_place(t, n, true);
}

static inline orr_code read_op(text_reader *t)
{
    orr__goal_node n = {0};
    if (TAKE(t, "send"))
        n.kind = ORR_GOAL_SEND;
    else if (TAKE(t, "recv"))
        n.kind = ORR_GOAL_RECV;
    else if (TAKE(t, "calc"))
        n.kind = ORR_GOAL_CALC;
    else
        return expected(t, "\"send\", \"recv\" or \"calc\"");
    orr_code code = skip_blanks(t);
    if (code)
        return code;
    if (n.kind != ORR_GOAL_CALC)
        code = read_message(t, &n);
    else if (!(code = read_number(t, "a number of nanoseconds", &n.size)))
        code = read_place(t, &n, false);
    if (code || (code = end_of_line(t)))
        return code;
    if (t->ops >= ORR__GOAL_MAX_OPS)
        return orr_fail(t->err, ORR_EINPUT, ORR_AT(where_is(t, t->p)),
                        "rank %u has too many operations", t->rank);
    t->ops++;
    return orr__goal_push(t->goal, &n) ? ORR_OK : orr_no_memory(t->err);
}

static orr_code undefined(text_reader *t, const char *s, size_t len)
{
    return orr_fail(t->err, ORR_EINPUT, ORR_AT(where_is(t, s)),
                    "label \"%.*s\" is not defined above this line in rank %u",
                    (int)(len > 60 ? 60 : len), s, t->rank);
}

static inline orr_code take_label(text_reader *t, const char **s, size_t *len)
{
    *s = t->p;
    if (t->p >= t->end || !orr_is_letter(*t->p))
        return expected(t, "a label");
    while (t->p < t->end && is_word(*t->p))
        t->p++;
    *len = (size_t)(t->p - *s);
    return ORR_OK;
}

/* "requires b", after the label of the dependent operation. */
static inline orr_code read_edge(text_reader *t, const char *later, size_t later_len)
{
    const bool on_start = *t->p == 'i';
    if (!(on_start ? TAKE(t, "irequires") : TAKE(t, "requires")))
        return expected(t, "\":\", \"requires\" or \"irequires\"");
    const char *earlier = NULL;
    size_t earlier_len = 0;
    uint32_t a, b;
    orr_code code = skip_blanks(t);
    if (code || (code = take_label(t, &earlier, &earlier_len)))
        return code;
    if (!label_find(t, later, later_len, &a))
        return undefined(t, later, later_len);
    if (!label_find(t, earlier, earlier_len, &b))
        return undefined(t, earlier, earlier_len);
    if (!orr__goal_wish_for(t->goal, a, b, on_start))
        return orr_no_memory(t->err);
    return end_of_line(t);
}

static bool is_keyword(const char *s, size_t len)
{
    static const char *const words[] = {"calc", "send", "recv", "rank", "num_ranks"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i]) == len && memcmp(words[i], s, len) == 0)
            return true;
    }
    return false;
}

static inline orr_code read_line(text_reader *t)
{
    const char *s = NULL, *const line = t->p;
    size_t len = 0;
    orr_code code = t->p < t->end && orr_is_letter(*t->p)
                        ? take_label(t, &s, &len)
                        : expected(t, "an operation, a label or \"}\"");
    if (code)
        return code;
    if (len == 4 &&
        (memcmp(s, "calc", 4) == 0 || memcmp(s, "send", 4) == 0 || memcmp(s, "recv", 4) == 0)) {
        t->p = line;
        return read_op(t);
    }
    if ((code = skip_blanks(t)))
        return code;
    if (t->p < t->end && *t->p != ':')
        return read_edge(t, s, len);
    if (t->p >= t->end)
        return expected(t, "\":\", \"requires\" or \"irequires\"");
    if (is_keyword(s, len))
        return orr_fail(t->err, ORR_EINPUT, ORR_AT(where_is(t, s)), "\"%.*s\" cannot be a label",
                        (int)len, s);
    t->p++;
    if ((code = label_define(t, s, len)) || (code = skip_blanks(t)))
        return code;
    return read_op(t);
}

/* ---- the file */

static orr_code read_rank_head(text_reader *t)
{
    orr_code code = skip_lines(t);
    if (code)
        return code;
    if (!TAKE(t, "rank")) {
        char what[64];
        snprintf(what, sizeof what, "\"rank %u\" of %u", t->rank, t->goal->rank_count);
        return expected(t, what);
    }
    const char *at_number = t->p;
    uint64_t number = 0;
    if ((code = skip_blanks(t)))
        return code;
    at_number = t->p;
    if ((code = read_number(t, "the number of a rank", &number)))
        return code;
    if (number != t->rank)
        return orr_fail(t->err, ORR_EINPUT, ORR_AT(where_is(t, at_number)),
                        "found rank %llu, expected rank %u: ranks stand in ascending order",
                        (unsigned long long)number, t->rank);
    if ((code = skip_lines(t)))
        return code;
    if (t->p >= t->end || *t->p != '{')
        return expected(t, "\"{\"");
    t->p++;
    return ORR_OK;
}

static orr_code read_rank(text_reader *t)
{
    orr_code code = read_rank_head(t);
    if (code || (code = orr_goal_begin_rank(t->goal, t->err)))
        return code;
    t->ops = 0;
    t->named_count = 0;
    while (!(code = skip_lines(t)) && !(t->p < t->end && *t->p == '}')) {
        if ((code = read_line(t)))
            return code;
    }
    if (code)
        return code;
    t->p++;
    return orr_goal_end_rank(t->goal, t->err);
}

static orr_code read_head(text_reader *t)
{
    orr_code code = skip_lines(t);
    if (code)
        return code;
    if (!TAKE(t, "num_ranks"))
        return expected(t, "\"num_ranks\" and the number of ranks");
    if ((code = skip_blanks(t)))
        return code;
    const char *at_number = t->p;
    uint64_t ranks = 0;
    if ((code = read_number(t, "the number of ranks", &ranks)))
        return code;
    if (ranks == 0 || ranks > UINT32_MAX - 1)
        return orr_fail(t->err, ORR_EINPUT, ORR_AT(where_is(t, at_number)),
                        "num_ranks is %llu, expected 1 to %u", (unsigned long long)ranks,
                        UINT32_MAX - 1);
    return orr_goal_create((uint32_t)ranks, &t->goal, t->err);
}

static orr_code read_all(text_reader *t)
{
    orr_code code = read_head(t);
    for (t->rank = 0; !code && t->rank < t->goal->rank_count; t->rank++)
        code = read_rank(t);
    if (code)
        return code;
    orr_error unread;
    t->err = &unread;
    if (skip_lines(t) || t->p < t->end)
        t->remarks->ignored_from_line = where_is(t, t->p).line;
    return ORR_OK;
}

static orr_code goal_read_text(
    orr_span bytes, const char *label, orr_goal_remarks *remarks, orr_goal **out, orr_error *err)
{
    text_reader t = {
        .start = (const char *)bytes.ptr, .path = label, .remarks = remarks, .err = err};
    if (bytes.len == 0)
        t.start = "";
    t.p = t.start;
    t.end = t.start + bytes.len;
    const orr_code code = read_all(&t);
    orr_free(t.numbered);
    orr_free(t.named);
    if (code) {
        orr_goal_free(t.goal);
        return code;
    }
    *out = t.goal;
    return ORR_OK;
}

/* ==== GOAL's binary format: reader and writer together, so
 * that they cannot drift.
 *
 *     magic 4223 | ranks | max cpu | max nic | start and end of each rank | rank records
 *     rank:  nodes | roots | root indices | 39 bytes per node | successors
 *
 * Everything is little endian and packed.  docs/format/goal.md has it byte by byte. Why reading
 * checks every count: the simulator trusts a schedule in memory.  Lists may be in any order in the
 * file; we write them in node order. */

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
    if (count && (first > b->appendix_count || count > b->appendix_count - first))
        return orr_fail(b->err, ORR_EINPUT, ORR_AT(place(b, field)),
                        "rank %u: node %u: successors %u to %llu of %llu", b->rank, node, first,
                        (unsigned long long)first + count - 1,
                        (unsigned long long)b->appendix_count);
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *p = b->appendix + 4 * ((size_t)first + i);
        const uint32_t later = get32(p);
        if (later >= b->nodes)
            return orr_fail(b->err, ORR_EINPUT, ORR_AT(place(b, p)),
                            "rank %u: node %u: successor %u does not exist, there are %u nodes",
                            b->rank, node, later, b->nodes);
        if (!orr__goal_wish_for(b->goal, later, node, on_start))
            return orr_no_memory(b->err);
    }
    return ORR_OK;
}

/* A list may be referenced by several nodes: without a limit a small file could expand to a huge
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
    return orr_fail(b->err, ORR_EINPUT, ORR_AT(place(b, b->appendix)),
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
    if (n.kind < ORR_GOAL_SEND || n.kind > ORR_GOAL_CALC)
        return orr_fail(b->err, ORR_EINPUT, ORR_AT(place(b, p + 4)),
                        "rank %u: node %u: type %u, expected 1 (send), 2 (recv) or 3 (calc)",
                        b->rank, i, n.kind);
    if (!orr__goal_push(b->goal, &n))
        return orr_no_memory(b->err);
    const orr_code code = read_list(b, p + 23, i, false);
    return code ? code : read_list(b, p + 31, i, true);
}

/* The counts and roots in the file must agree with its edges. */
static orr_code check_counts(binary_reader *b, const uint8_t *roots, uint32_t root_count)
{
    const orr__goal_node *nodes = orr__goal_nodes(b->goal, b->rank);
    uint32_t root = 0;
    for (uint32_t i = 0; i < b->nodes; i++) {
        const uint8_t *p = b->node + (size_t)ORR__GOAL_NODE_BYTES * i;
        if (get32(p) != nodes[i].waits)
            return orr_fail(b->err, ORR_EINPUT, ORR_AT(place(b, p)),
                            "rank %u: node %u: waits for %u, but %u edges lead to it", b->rank, i,
                            get32(p), nodes[i].waits);
        if (nodes[i].waits)
            continue;
        if (root >= root_count || get32(roots + 4 * (size_t)root) != i)
            return orr_fail(b->err, ORR_EINPUT, ORR_AT(place(b, roots + 4 * (size_t)root)),
                            "rank %u: node %u waits for nothing but is not root %u", b->rank, i,
                            root);
        root++;
    }
    if (root == root_count)
        return ORR_OK;
    return orr_fail(b->err, ORR_EINPUT, ORR_AT(place(b, roots + 4 * (size_t)root)),
                    "rank %u: %u roots, but %u nodes wait for nothing", b->rank, root_count, root);
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

static orr_code read_binary_rank(binary_reader *b)
{
    const uint8_t *jump = b->all.ptr + HEAD_BYTES + JUMP_BYTES * (size_t)b->rank;
    const uint64_t from = get64(jump), to = get64(jump + 8), room = b->all.len - BASE;
    const uint64_t least = HEAD_BYTES - BASE + JUMP_BYTES * (uint64_t)b->goal->rank_count;
    if (from < least || to < from || to > room)
        return orr_fail(b->err, ORR_EINPUT, ORR_AT(place(b, jump)),
                        "rank %u: its record is said to be bytes %llu to %llu of %llu", b->rank,
                        (unsigned long long)from, (unsigned long long)to, (unsigned long long)room);
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
    if (*ranks == 0 || *ranks > (b->all.len - HEAD_BYTES) / JUMP_BYTES)
        return orr_fail(b->err, ORR_EINPUT, ORR_AT(orr_where_byte(b->path, 8)),
                        "%u ranks in a file of %zu bytes", *ranks, b->all.len);
    return ORR_OK;
}

/* The header must give the largest CPU and NIC: a simulator allocates by them. */
static orr_code check_places(binary_reader *b)
{
    const orr_goal_totals *t = &b->goal->totals;
    const unsigned cpu = b->all.ptr[12], nic = b->all.ptr[13];
    if (cpu == t->cpus - 1 && nic == t->nics - 1)
        return ORR_OK;
    return orr_fail(b->err, ORR_EINPUT, ORR_AT(orr_where_byte(b->path, 12)),
                    "largest cpu %u and nic %u, but operations use %u and %u", cpu, nic,
                    t->cpus - 1, t->nics - 1);
}

static orr_code goal_read_binary(orr_span bytes, const char *label, orr_goal **out, orr_error *err)
{
    binary_reader b = {.all = bytes, .path = label, .err = err};
    uint32_t ranks = 0;
    orr_code code = check_head(&b, &ranks);
    if (code || (code = orr_goal_create(ranks, &b.goal, err)))
        return code;
    for (; !code && b.rank < ranks; b.rank++)
        code = read_binary_rank(&b);
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

static void put_binary_rank(const orr_goal *g, uint32_t rank, orr_buf *b, orr_output *out)
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

static orr_code goal_write_binary(const orr_goal *g, struct orr_output *out, orr_error *err)
{
    orr_buf b = {0};
    put_head(g, &b, out);
    for (uint32_t r = 0; r < g->rank_count && !b.failed && !orr_output_has_failed(out); r++)
        put_binary_rank(g, r, &b, out);
    const bool is_good = !b.failed;
    if (is_good)
        orr_output_drain(out, &b);
    orr_buf_fini(&b);
    return is_good ? ORR_OK : orr_no_memory(err);
}

orr_code orr_goal_create(uint32_t ranks, orr_goal **out, orr_error *err)
{
    *out = NULL;
    if (ranks == 0)
        return orr_fail(err, ORR_EUSAGE, NULL, "a schedule needs at least one rank");
    orr_goal *g = orr_alloc(1, sizeof *g);
    /* Arrays exist from the start: indices are computed from addresses. */
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
        return orr_fail(err, ORR_EUSAGE, NULL, "the schedule has only %u ranks", g->rank_count);
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

/* Turns counts of successors into offsets: `then` is where the next edge of its kind goes, until
 * all are placed. */
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
    /* Each now points to the end of its own list: go back by one list. */
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

uint32_t orr_goal_pending(const orr_goal *g, uint32_t rank, uint32_t op)
{
    return orr__goal_nodes(g, rank)[op].waits;
}

const uint32_t *orr_goal_successors(
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
        return goal_read_binary(bytes, label, out, err);
    return goal_read_text(bytes, label, r, out, err);
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

/* "num_ranks" after blanks and comments. */
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

/* A pipe can be read only once: peeking would lose data. */
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
    code = form == ORR_GOAL_BINARY ? goal_write_binary(g, out, err) : goal_write_text(g, out, err);
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
