/* SPDX-License-Identifier: Apache-2.0 */
/* gantt_view.c - a timeline in text, for people on a server.
 *
 *     rank 0  compute   ██████████          ·████████    58%      a row a track
 *             network             ▒▒▒▒▒▒▒▒▒▒             30%
 *                       |0 s      |10.0 us  |20.0 us              times at round numbers
 *
 * A cell shows the kind of span that fills most of it; where spans of a track overlap, the one that
 * began first counts. A cell that is busy for less than half of its time shows a dot, so that
 * nothing short is lost. Cost: one pass over the spans; memory for one row. */
#include <orrery/lab/units.h>
#include <orrery/view.h>

#include "base/io/output.h"
#include "base/options.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    WIDTH = 80,
    LEAST_WIDTH = 40,
    MOST_WIDTH = 4096,
    MOST_NAME = 20,
    MOST_ROWS = 200,
    BUSY = 6,
    RANK_ROOM = 40
};

typedef struct glyph {
    const char *unicode, *ascii;
} glyph;

static const glyph glyphs[ORR_SPAN_KINDS] = {
    [ORR_SPAN_OTHER] = {"■", "+"},      [ORR_SPAN_HOST] = {"░", "h"},
    [ORR_SPAN_COMPUTE] = {"█", "#"},    [ORR_SPAN_MEMORY] = {"▓", "m"},
    [ORR_SPAN_SEND] = {"▸", ">"},       [ORR_SPAN_RECEIVE] = {"◂", "<"},
    [ORR_SPAN_COLLECTIVE] = {"▒", "="}, [ORR_SPAN_PHASE] = {"╌", "-"},
};
static const glyph little = {"·", "."};

typedef struct cell {
    orr_ps busy[ORR_SPAN_KINDS];
} cell;

typedef struct chart {
    const orr_timeline *t;
    const orr_timeline_parts *p;
    orr_view_gantt_options opt;
    orr_ps from, to; /* to > from */
    size_t rank_width, name_width, cells;
    cell *row;
    bool has_kind[ORR_SPAN_KINDS], has_little;
    orr_buf text;
} chart;

/* ---- one row ---- */

/* Where cell k begins; that of `cells` is the end. */
static orr_ps time_at(const chart *c, size_t k)
{
    const unsigned __int128 length = (unsigned __int128)((uint64_t)c->to - (uint64_t)c->from);
    return (orr_ps)((uint64_t)c->from + (uint64_t)(length * k / c->cells));
}

static size_t cell_at(const chart *c, orr_ps at)
{
    const unsigned __int128 since = (unsigned __int128)((uint64_t)at - (uint64_t)c->from);
    size_t k = (size_t)(since * c->cells / ((uint64_t)c->to - (uint64_t)c->from));
    k = k < c->cells ? k : c->cells - 1;
    while (k + 1 < c->cells && time_at(c, k + 1) <= at)
        k++; /* both divisions round down */
    return k;
}

static void fill(chart *c, orr_ps start, orr_ps end, uint8_t kind)
{
    for (size_t k = cell_at(c, start); k < c->cells && start < end; k++) {
        const orr_ps next = time_at(c, k + 1), stop = next < end ? next : end;
        if (stop > start)
            c->row[k].busy[kind] += stop - start;
        start = stop > start ? stop : start;
    }
}

/* Spans come by start: what is not yet covered is what counts.  Returns the time that is. */
static orr_ps fill_row(chart *c, uint32_t track)
{
    const orr_timeline_parts *p = c->p;
    orr_ps covered = c->from, busy = 0;
    for (uint32_t k = p->first[track]; k < p->first[track + 1]; k++) {
        const orr_timespan *s = &p->spans[p->order[k]];
        const orr_ps start = s->start > covered ? s->start : covered;
        const orr_ps end = s->end < c->to ? s->end : c->to;
        if (start >= end)
            continue;
        fill(c, start, end, s->kind < ORR_SPAN_KINDS ? s->kind : ORR_SPAN_OTHER);
        busy += end - start;
        covered = end;
    }
    return busy;
}

static void put_glyph(chart *c, const glyph *g)
{
    orr_buf_text(&c->text, c->opt.is_ascii ? g->ascii : g->unicode);
}

static void put_cell(chart *c, size_t k)
{
    orr_ps sum = 0;
    uint8_t most = 0;
    for (uint8_t i = 0; i < ORR_SPAN_KINDS; i++) {
        sum += c->row[k].busy[i];
        if (c->row[k].busy[i] > c->row[k].busy[most])
            most = i;
    }
    if (sum == 0) {
        orr_buf_byte(&c->text, ' ');
        return;
    }
    const bool is_little = sum < (time_at(c, k + 1) - time_at(c, k)) / 2;
    c->has_little |= is_little;
    c->has_kind[most] |= !is_little;
    put_glyph(c, is_little ? &little : &glyphs[most]);
}

/* ---- words ---- */

static void put_blanks(chart *c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        orr_buf_byte(&c->text, ' ');
}

/* How many columns a name takes: its characters, where each is one wide. */
static size_t columns_of(orr_str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++)
        n += !orr__utf8_follows((uint8_t)s.ptr[i]);
    return n;
}

/* Nothing that moves a terminal's pen; cut where it is too long. */
static void put_name(chart *c, orr_str s)
{
    size_t column = 0;
    for (size_t i = 0; i < s.len && column < c->name_width;) {
        const size_t n = orr_utf8_length((const uint8_t *)s.ptr + i, s.len - i);
        const bool is_plain =
            n == 1 ? s.ptr[i] >= ' ' && s.ptr[i] < 127 : n > 1 && !c->opt.is_ascii;
        const bool is_control = n == 2 && (uint8_t)s.ptr[i] == 0xC2 && (uint8_t)s.ptr[i + 1] < 0xA0;
        if (is_plain && !is_control)
            orr_buf_add(&c->text, s.ptr + i, n);
        else
            orr_buf_byte(&c->text, '?');
        i += n ? n : 1;
        column++;
    }
    put_blanks(c, c->name_width - column);
}

/* "rank 12"; with how many that it stands for: "rank 12 +7". */
static const char *rank_name(const chart *c, uint32_t rank, char out[RANK_ROOM])
{
    uint32_t others = 0;
    for (uint32_t r = 0; r < c->p->alike_count; r++)
        others += c->p->alike[r] == rank && r != rank;
    if (others)
        snprintf(out, RANK_ROOM, "rank %" PRIu32 " +%" PRIu32, rank, others);
    else
        snprintf(out, RANK_ROOM, "rank %" PRIu32, rank);
    return out;
}

static void put_rank(chart *c, uint32_t rank, bool is_first)
{
    const size_t before = c->text.len;
    if (is_first && rank == ORR_NO_RANK)
        orr_buf_text(&c->text, "all");
    else if (is_first) {
        char name[RANK_ROOM];
        orr_buf_text(&c->text, rank_name(c, rank, name));
    }
    put_blanks(c, c->rank_width - (c->text.len - before));
    put_blanks(c, 2);
}

static void put_row(chart *c, uint32_t track)
{
    const orr_track *t = &c->p->tracks[track];
    const bool is_first = track == 0 || c->p->tracks[track - 1].rank != t->rank;
    char share[ORR_UNIT_ROOM];
    memset(c->row, 0, c->cells * sizeof *c->row);
    const orr_ps busy = fill_row(c, track);
    put_rank(c, t->rank, is_first);
    put_name(c, orr_timeline_text(c->t, t->name));
    put_blanks(c, 2);
    for (size_t k = 0; k < c->cells; k++)
        put_cell(c, k);
    orr_percent_text((uint64_t)busy, (uint64_t)c->to - (uint64_t)c->from, share);
    orr_buf_print(&c->text, " %*s\n", BUSY, share);
}

/* ---- the axis ---- */

/* 1, 2 or 5 times a power of ten, so that a time and its unit have room. */
static orr_ps step_of(const chart *c)
{
    const uint64_t least = ((uint64_t)c->to - (uint64_t)c->from) / c->cells * 10;
    orr_ps power = 1;
    while (power < INT64_MAX / 100 && (uint64_t)power * 10 < least)
        power *= 10;
    for (orr_ps m = 1; m <= 5; m += m == 1 ? 1 : 3)
        if ((uint64_t)(power * m) >= least)
            return power * m;
    return power * 10;
}

static void put_axis(chart *c)
{
    const orr_ps step = step_of(c);
    orr_ps tick = c->from / step * step;
    size_t column = 0;
    put_blanks(c, c->rank_width + c->name_width + 4);
    tick += tick < c->from ? step : 0;
    for (; tick<c->to; tick = tick> INT64_MAX - step ? c->to : tick + step) {
        char text[ORR_UNIT_ROOM];
        const size_t at = cell_at(c, tick), n = strlen(orr_time_text(tick, text)) + 1;
        if (at < column || at + n > c->cells + BUSY + 1)
            continue;
        put_blanks(c, at - column);
        orr_buf_byte(&c->text, '|');
        orr_buf_text(&c->text, text);
        column = at + n + 1;
        orr_buf_byte(&c->text, ' ');
    }
    while (c->text.len && c->text.ptr[c->text.len - 1] == ' ')
        c->text.len--;
    orr_buf_byte(&c->text, '\n');
}

static void put_legend(chart *c)
{
    const char *between = "\n";
    for (uint8_t i = 0; i < ORR_SPAN_KINDS; i++) {
        if (!c->has_kind[i])
            continue;
        orr_buf_text(&c->text, between);
        put_glyph(c, &glyphs[i]);
        orr_buf_print(&c->text, " %s", orr_span_kind_name((orr_span_kind)i));
        between = "   ";
    }
    if (c->has_little) {
        orr_buf_text(&c->text, between);
        put_glyph(c, &little);
        orr_buf_text(&c->text, " busy for less than half of the cell");
        between = "   ";
    }
    if (*between == ' ')
        orr_buf_byte(&c->text, '\n');
}

/* ---- everything ---- */

/* "rank 12", or "all". */
static size_t rank_columns(const chart *c, uint32_t rank)
{
    char name[RANK_ROOM];
    return rank == ORR_NO_RANK ? 3 : strlen(rank_name(c, rank, name));
}

static void measure(chart *c)
{
    for (uint32_t k = 0; k < c->p->track_count; k++) {
        const orr_track *t = &c->p->tracks[k];
        const size_t name = columns_of(orr_timeline_text(c->t, t->name));
        const size_t rank = rank_columns(c, t->rank);
        c->name_width = name > c->name_width ? name : c->name_width;
        c->rank_width = rank > c->rank_width ? rank : c->rank_width;
    }
    c->name_width = c->name_width < MOST_NAME ? c->name_width : MOST_NAME;
    size_t width = c->opt.width ? c->opt.width : WIDTH;
    width = width < LEAST_WIDTH ? LEAST_WIDTH : width > MOST_WIDTH ? MOST_WIDTH : width;
    const size_t words = c->rank_width + c->name_width + 4 + BUSY + 1;
    c->cells = width > words + 10 ? width - words : 10;
}

static void choose_window(chart *c)
{
    c->from = c->opt.window.has_from ? c->opt.window.from : c->p->start;
    c->to = c->opt.window.has_to ? c->opt.window.to : c->p->end;
    if (c->to <= c->from)
        c->to = c->from < INT64_MAX ? c->from + 1 : c->from--;
}

static bool is_wanted(const chart *c, uint32_t track)
{
    const orr_timeline_window *w = &c->opt.window;
    const uint32_t rank = c->p->tracks[track].rank;
    return !w->has_ranks || rank == ORR_NO_RANK || (rank >= w->first_rank && rank <= w->last_rank);
}

static void put_chart(chart *c)
{
    const uint32_t most = c->opt.rows ? c->opt.rows : MOST_ROWS;
    uint32_t rows = 0, left = 0;
    for (uint32_t k = 0; k < c->p->track_count; k++) {
        if (!is_wanted(c, k))
            continue;
        if (rows++ < most)
            put_row(c, k);
        else
            left++;
    }
    put_axis(c);
    put_legend(c);
    if (left)
        orr_buf_print(&c->text, "%" PRIu32 " more rows are not shown; --ranks picks others\n",
                      left);
}

static orr_code save(chart *c, const char *path, orr_error *err)
{
    orr_output *o;
    if (c->text.failed)
        return orr_no_memory(err);
    const orr_code code = orr_output_open(path, &o, err);
    if (code)
        return code;
    orr_output_drain(o, &c->text);
    return orr_output_commit(&o, err);
}

orr_code orr_view_gantt(const orr_timeline *t,
                        const char *path,
                        const orr_view_gantt_options *opt,
                        orr_error *err)
{
    chart c = {.t = t, .p = orr_timeline_view(t)};
    if (!c.p->first)
        return orr_fail(err, ORR_EUSAGE, NULL, "the timeline is not sealed");
    orr_code code = ORR__TAKE_OPTIONS(&c.opt, opt, orr_view_gantt_options, err);
    if (code)
        return code;
    measure(&c);
    choose_window(&c);
    c.row = orr_alloc(c.cells, sizeof *c.row);
    code = c.row ? ORR_OK : orr_no_memory(err);
    if (!code) {
        put_chart(&c);
        code = save(&c, path, err);
    }
    orr_free(c.row);
    orr_buf_fini(&c.text);
    return code;
}
