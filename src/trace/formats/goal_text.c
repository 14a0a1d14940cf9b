/* SPDX-License-Identifier: Apache-2.0 */
/* goal_text.c - GOAL schedules from their text.
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
 * looks at each byte more often.  A line's place is counted only when there is an error to report.
 * Invariants: p never passes end; labels belong to the rank being read (a stamp tells old entries).
 * Cost: one pass, a few nanoseconds a byte; labels l1, l2, ... are an array, others a hash
 * table. */
#include "base/io/output.h"
#include "base/memory/hash.h"
#include "base/text/text.h"
#include "trace/goal_impl.h"

#include <stdio.h>

/* ---- GOAL schedules as text: operations l1, l2, ... of each rank, edges as early as they may
 * stand.
 *
 * An edge may stand only below both its operations, and a reader restores the order of a node's
 * successors from the order of the lines.  So an edge is written behind the later one of its two
 * operations, but never before an edge that precedes it in its list; then reading gives the same
 * schedule again. Cost: three words of scratch for each edge of the largest rank. */

typedef struct edge_line {
    uint32_t later, earlier; /* the top bit of earlier: irequires */
} edge_line;

typedef struct text_writer {
    const orr_goal *goal;
    orr_output *out;
    orr_buf buf;
    uint32_t *first; /* of the lines behind each operation */
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

typedef struct label_slot {
    uint32_t rank; /* plus one, of the rank that wrote here; 0: nobody */
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

/* What stands at p, short enough for a message: a word, a number, one character, or where the text
 * ends. */
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
    const orr_where at = where_is(t, t->p);
    return orr_fail(t->err, ORR_EINPUT, &at, "expected %s, found %s", what, found);
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
    const orr_where at = where_is(t, t->p);
    return orr_fail(t->err, ORR_EINPUT, &at, "a comment that starts here has no end");
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

/* Is the next token this word?  Then it is taken. */
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
            __builtin_add_overflow(ten, (uint64_t)(*p - '0'), &v)) {
            const orr_where at = where_is(t, t->p);
            return orr_fail(t->err, ORR_EINPUT, &at, "%s must be below 2^64", what);
        }
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

/* Twice the room; entries of earlier ranks are left behind. */
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

/* Numbers far above the count of operations go to the hash table: memory is bounded by the text. */
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
    if (t->ops >= ORR__GOAL_MAX_OPS) {
        const orr_where at = where_is(t, t->p);
        return orr_fail(t->err, ORR_EINPUT, &at, "rank %u has too many operations", t->rank);
    }
    t->ops++;
    return orr__goal_push(t->goal, &n) ? ORR_OK : orr_no_memory(t->err);
}

static orr_code undefined(text_reader *t, const char *s, size_t len)
{
    const orr_where at = where_is(t, s);
    return orr_fail(t->err, ORR_EINPUT, &at,
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

/* "requires b", after the label of the one that waits. */
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
    if (is_keyword(s, len)) {
        const orr_where at = where_is(t, s);
        return orr_fail(t->err, ORR_EINPUT, &at, "\"%.*s\" cannot be a label", (int)len, s);
    }
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
    if (number != t->rank) {
        const orr_where at = where_is(t, at_number);
        return orr_fail(t->err, ORR_EINPUT, &at,
                        "found rank %llu, expected rank %u: ranks stand in ascending order",
                        (unsigned long long)number, t->rank);
    }
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
    if (ranks == 0 || ranks > UINT32_MAX - 1) {
        const orr_where at = where_is(t, at_number);
        return orr_fail(t->err, ORR_EINPUT, &at, "num_ranks is %llu, expected 1 to %u",
                        (unsigned long long)ranks, UINT32_MAX - 1);
    }
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

orr_code orr__goal_read_text(
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
