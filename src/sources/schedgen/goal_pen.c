/* SPDX-License-Identifier: Apache-2.0 */
/* goal_pen.c - the text of a GOAL schedule, line by line (goal.md 4).
 *
 * Why not through a schedule in memory: a million ranks are gigabytes of text, none of which is
 * needed once written.  Why not printf: formatting numbers is all the work there is. Invariant: a
 * line never needs more than LINE bytes, so space is reserved once per line. Cost: some 20 ns per
 * line; a buffer of PIECE bytes for any length of text. */
#include "schedgen_impl.h"

#include "base/inline.h"

enum { LINE = 128, PIECE = 1 << 18 };

static const char pairs[] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
    "8081828384858687888990919293949596979899";

static unsigned digits_of(uint64_t v)
{
    unsigned n = 1;
    for (; v >= 10000; v /= 10000)
        n += 4;
    return n + (v >= 10) + (v >= 100) + (v >= 1000);
}

static inline char *put_pair(char *p, uint64_t v)
{
    memcpy(p, pairs + 2 * v, 2);
    return p + 2;
}

/* Below 100: labels and tags mostly are. */
static inline char *put_short(char *p, uint64_t v)
{
    if (v >= 10)
        return put_pair(p, v);
    *p = (char)('0' + v);
    return p + 1;
}

ORR_APART char *put_long(char *p, uint64_t v)
{
    if (v < 10000)
        return put_pair(put_short(p, v / 100), v % 100);
    char *const end = p + digits_of(v);
    char *at = end;
    for (; v >= 100; v /= 100)
        put_pair(at -= 2, v % 100);
    put_short(at - (v >= 10 ? 2 : 1), v);
    return end;
}

static inline char *put_number(char *p, uint64_t v)
{
    return v < 100 ? put_short(p, v) : put_long(p, v);
}

static char *put_signed(char *p, int64_t v)
{
    if (v < 0)
        *p++ = '-';
    return put_number(p, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

/* With a literal the compiler knows the length. */
#define PUT(p, words) ((char *)memcpy((p), (words), sizeof(words) - 1) + sizeof(words) - 1)

/* NULL: there is no text to write. */
static char *line_begin(goal_pen *pen)
{
    if (pen->is_kept)
        return NULL;
    return (char *)orr_buf_reserve(&pen->text, LINE);
}

static void line_end(goal_pen *pen, const char *end)
{
    const size_t n = (size_t)(end - (const char *)(pen->text.ptr + pen->text.len));
    pen->text.len += n;
    pen->totals.text_bytes += n;
    if (pen->text.len < PIECE)
        return;
    if (pen->out)
        orr_output_drain(pen->out, &pen->text);
    else
        pen->text.len = 0;
}

static char *put_label(char *p, uint64_t label)
{
    *p++ = 'l';
    p = put_number(p, label);
    *p++ = ':';
    *p++ = ' ';
    return p;
}

/* The next label; in an open group a message is first and last until an edge shows otherwise. */
static uint64_t next_label(goal_pen *pen, uint8_t marks)
{
    if (pen->is_open)
        orr_buf_byte(&pen->marks, marks);
    return ++pen->label;
}

static char *put_tag(char *p, uint64_t tag)
{
    p = PUT(p, " tag ");
    p = put_number(p, tag);
    *p++ = '\n';
    return p;
}

/* ---- into memory ---- */

static void keep_op(goal_pen *pen, orr_goal_kind kind, uint64_t size, int64_t peer, uint32_t cpu)
{
    const bool is_calc = kind == ORR_GOAL_CALC;
    if (pen->code || !pen->goal)
        return;
    const orr_goal_op op = {.kind = kind,
                            .size = size,
                            .peer = is_calc ? 0 : (uint32_t)peer, /* -1 is ORR_GOAL_ANY */
                            .tag = is_calc ? 0 : (uint32_t)pen->tag,
                            .cpu = (uint8_t)cpu};
    pen->code = orr_goal_add(pen->goal, &op, NULL, pen->err);
}

static void keep_edge(goal_pen *pen, uint64_t later, uint64_t earlier, bool is_start)
{
    if (pen->code || !pen->goal)
        return;
    /* orr_goal_add has accepted all labels, so they are in range. */
    pen->code = orr_goal_require(pen->goal, (uint32_t)later - 1, (uint32_t)earlier - 1,
                                 is_start ? ORR_GOAL_STARTED : ORR_GOAL_FINISHED, pen->err);
}

/* ---- operations ---- */

uint64_t sgen_gpen_send(goal_pen *pen, uint64_t bytes, int64_t to)
{
    char *p = line_begin(pen);
    const uint64_t label = next_label(pen, ORR__PEN_FIRST | ORR__PEN_LAST);
    pen->totals.sends++;
    pen->totals.bytes_sent += bytes;
    if (pen->is_kept)
        keep_op(pen, ORR_GOAL_SEND, bytes, to, 0);
    if (!p)
        return label;
    p = put_number(PUT(put_label(p, label), "send "), bytes);
    p = put_signed(PUT(p, "b to "), to);
    line_end(pen, put_tag(p, pen->tag));
    return label;
}

uint64_t sgen_gpen_recv(goal_pen *pen, uint64_t bytes, int64_t from)
{
    char *p = line_begin(pen);
    const uint64_t label = next_label(pen, ORR__PEN_FIRST | ORR__PEN_LAST);
    pen->totals.recvs++;
    if (pen->is_kept)
        keep_op(pen, ORR_GOAL_RECV, bytes, from, 0);
    if (!p)
        return label;
    p = put_number(PUT(put_label(p, label), "recv "), bytes);
    p = put_signed(PUT(p, "b from "), from);
    line_end(pen, put_tag(p, pen->tag));
    return label;
}

static uint64_t calc(goal_pen *pen, uint64_t ns, bool names_cpu, uint32_t cpu)
{
    char *p = line_begin(pen);
    const uint64_t label = next_label(pen, 0);
    pen->totals.calcs++;
    if (pen->is_kept)
        keep_op(pen, ORR_GOAL_CALC, ns, 0, names_cpu ? cpu : 0);
    if (!p)
        return label;
    p = put_number(PUT(put_label(p, label), "calc "), ns);
    if (names_cpu)
        p = put_number(PUT(p, " cpu "), cpu);
    *p++ = '\n';
    line_end(pen, p);
    return label;
}

uint64_t sgen_gpen_calc(goal_pen *pen, uint64_t ns)
{
    return calc(pen, ns, false, 0);
}

uint64_t sgen_gpen_calc_on(goal_pen *pen, uint64_t ns, uint32_t cpu)
{
    return calc(pen, ns, pen->cpu != 0, cpu);
}

static void unmark(goal_pen *pen, uint64_t label, uint8_t mark)
{
    if (label >= pen->base && label - pen->base < pen->marks.len)
        pen->marks.ptr[label - pen->base] &= (uint8_t)~mark;
}

static void edge(goal_pen *pen, uint64_t later, uint64_t earlier, bool is_start)
{
    char *p = line_begin(pen);
    pen->totals.edges++;
    if (pen->is_open) {
        unmark(pen, later, ORR__PEN_FIRST);
        unmark(pen, earlier, ORR__PEN_LAST);
    }
    if (pen->is_kept)
        keep_edge(pen, later, earlier, is_start);
    if (!p)
        return;
    *p++ = 'l';
    p = put_number(p, later);
    p = is_start ? PUT(p, " irequires l") : PUT(p, " requires l");
    p = put_number(p, earlier);
    *p++ = '\n';
    line_end(pen, p);
}

void sgen_gpen_require(goal_pen *pen, uint64_t later, uint64_t earlier)
{
    edge(pen, later, earlier, false);
}

void sgen_gpen_irequire(goal_pen *pen, uint64_t later, uint64_t earlier)
{
    edge(pen, later, earlier, true);
}

/* Texts are ours and short. */
void sgen_gpen_comment(goal_pen *pen, const char *words)
{
    char *p = line_begin(pen);
    const size_t n = strlen(words);
    if (!p || n > LINE - 8)
        return;
    p = PUT(p, "/* ");
    memcpy(p, words, n);
    line_end(pen, PUT(p + n, " */\n"));
}

void sgen_gpen_open(goal_pen *pen)
{
    pen->is_open = true;
    pen->base = pen->label + 1;
    pen->marks.len = 0;
}

void sgen_gpen_close(goal_pen *pen)
{
    pen->is_open = false;
}

void sgen_gpen_head(goal_pen *pen, uint64_t ranks)
{
    char *p = line_begin(pen);
    if (pen->is_kept)
        pen->code = orr_goal_create((uint32_t)ranks, &pen->goal, pen->err);
    if (!p)
        return;
    p = put_number(PUT(p, "num_ranks "), ranks);
    *p++ = '\n';
    line_end(pen, p);
}

/* The computation that overlaps the pattern (--nb): in one piece, or in pieces with polling between
 * them. */
static void begin_overlap(goal_pen *pen)
{
    if (pen->poll_ns == 0) {
        sgen_gpen_calc_on(pen, pen->overlap_ns, pen->cpu);
        return;
    }
    uint64_t last = 0;
    const uint64_t pieces = pen->overlap_ns / pen->poll_ns + (pen->overlap_ns % pen->poll_ns != 0);
    for (uint64_t i = 0; i < pieces && !sgen_gpen_has_failed(pen); i++) {
        const uint64_t piece = sgen_gpen_calc_on(pen, pen->poll_ns, pen->cpu);
        if (i)
            sgen_gpen_require(pen, piece, last);
        last = piece;
    }
}

void sgen_gpen_begin(goal_pen *pen, uint64_t rank)
{
    char *p = line_begin(pen);
    pen->totals.ranks++;
    pen->label = 0;
    pen->tag = 0;
    if (pen->goal && !pen->code)
        pen->code = orr_goal_begin_rank(pen->goal, pen->err);
    if (p) {
        p = put_number(PUT(p, "\nrank "), rank);
        line_end(pen, PUT(p, " {\n"));
    }
    if (pen->has_overlap)
        begin_overlap(pen);
}

void sgen_gpen_end(goal_pen *pen)
{
    char *p = line_begin(pen);
    if (pen->goal && !pen->code)
        pen->code = orr_goal_end_rank(pen->goal, pen->err);
    if (p)
        line_end(pen, PUT(p, "}\n"));
}

orr_code sgen_gpen_init(goal_pen *pen, const char *path, bool is_kept, orr_error *err)
{
    *pen = (goal_pen){.is_kept = is_kept, .path = path, .err = err};
    return path && !is_kept ? orr_output_open(path, &pen->out, err) : ORR_OK;
}

bool sgen_gpen_has_failed(const goal_pen *pen)
{
    return pen->code || pen->text.failed || pen->marks.failed ||
           (pen->out && orr_output_has_failed(pen->out));
}

orr_goal *sgen_gpen_take(goal_pen *pen)
{
    orr_goal *g = sgen_gpen_has_failed(pen) ? NULL : pen->goal;
    if (g)
        pen->goal = NULL;
    return g;
}

void sgen_gpen_discard(goal_pen *pen)
{
    orr_output_discard(pen->out);
    orr_goal_free(pen->goal);
    orr_buf_fini(&pen->text);
    orr_buf_fini(&pen->marks);
    *pen = (goal_pen){0};
}

orr_code sgen_gpen_finish(goal_pen *pen, orr_error *err)
{
    orr_code code = pen->code; /* err says why */
    if (pen->totals_out)
        *pen->totals_out = pen->totals;
    if (!code && (pen->text.failed || pen->marks.failed))
        code = orr_no_memory(err);
    if (!code && pen->out) {
        orr_output_drain(pen->out, &pen->text);
        code = orr_output_commit(&pen->out, err);
    }
    if (!code && pen->goal && pen->path)
        code = orr_goal_write(pen->goal, pen->path, ORR_GOAL_BINARY, err);
    sgen_gpen_discard(pen);
    return code;
}
