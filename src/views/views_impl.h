/* SPDX-License-Identifier: Apache-2.0 */
/* views_impl.h - what several views share: tables, bars, rows of ranks, packet networks, comparisons.
 *
 * Rows of text whose columns line up, for people with 80 columns:
 *
 *     orr__table t = {.arena = a, .columns = 3, .left = 1};
 *     orr__table_add(&t, "operator");  orr__table_add(&t, "count");  orr__table_add(&t, "total us");
 *     orr__table_add(&t, orr__cell_text(a, name));  ...
 *     orr__table_print(&t, &buf);
 *
 * Cells are given row by row and belong to the arena (or are literals); NULL stands for one that
 * memory ran out for.  The first `left` columns are set to the left, the others to the right.  A
 * table that is too wide has its left columns cut, the widest first. */
#ifndef ORR_VIEWS_IMPL_H
#define ORR_VIEWS_IMPL_H

#include "base/formats/json.h"
#include "base/memory/buffer.h"
#include "base/memory/map.h"
#include "base/memory/memory.h"
#include "explain/facts.h"

#include <stdint.h>
#include <string.h>

#include <orrery/lab/diff.h>

enum { ORR__TABLE_WIDTH = 80, ORR__TABLE_COLUMNS = 10 };

typedef struct orr__table {
    orr_arena *arena;
    uint32_t columns, left;
    bool has_bars; /* the last column, set to the left */
    const char **cells;
    size_t count, room;
    bool failed;
} orr__table;

void orr__table_add(orr__table *t, const char *cell);
/* Two spaces, the columns with two between them, a line end; then the table is empty again. */
void orr__table_print(orr__table *t, orr_buf *to);

/* Cells.  All give NULL when memory runs out. */
const char *orr__cell_text(orr_arena *a, orr_str s);   /* control characters removed */
const char *orr__cell_count(orr_arena *a, uint64_t v); /* 1,234,567; from 1e9 on 1.23 G */
const char *orr__cell_bytes(orr_arena *a, uint64_t v); /* 512 B, 64.0 KiB, 1.50 GiB */
const char *orr__cell_share(orr_arena *a, uint64_t part, uint64_t whole);    /* 12.5 % */
const char *orr__cell_bar(orr_arena *a, uint64_t part, uint64_t whole);      /* ####, of ten */
const char *orr__cell_average(orr_arena *a, uint64_t total, uint64_t count); /* 1,234.5 */

/* Text of a page: < and & are written as their names. */
void orr__put_html(orr_buf *b, orr_str text);

/* ---- bars ----
 *
 * A share as a bar of characters, for tables: #### is four tenths of ten cells.  ASCII alone and
 * without colour, so that it means the same in every terminal and in every file. */

enum { ORR_BAR_ROOM = 33 }; /* 32 cells and the NUL */

/* The nearest number of cells, at most 32 of them; a dot for something that is less than half a
 * cell. */
static inline char *orr_bar_text(uint64_t part,
                                 uint64_t whole,
                                 unsigned cells,
                                 char out[ORR_BAR_ROOM])
{
    const unsigned most = cells < ORR_BAR_ROOM ? cells : ORR_BAR_ROOM - 1;
    const unsigned __int128 twice = (unsigned __int128)part * most * 2;
    const unsigned full = whole == 0      ? 0
                          : part >= whole ? most
                                          : (unsigned)((twice + whole) / whole / 2);
    memset(out, '#', full);
    out[full] = '\0';
    if (full == 0 && part && whole)
        memcpy(out, ".", 2);
    return out;
}

/* ---- ranks with the same figures as one row ---- */

/* b: remarks, a header row that begins with "rank,", and a row for each rank from 0 on.  Then rows
 * begin with the ranks they stand for, as "0-7,12", and their number. */
void orr__csv_join_alike(orr_buf *b);

/* ---- packet networks in results: of a run of flows, and of traces ---- */

/* Members of the object that is open: counts, then "pfc" with the ports that were paused most. */
void orr__packet_put_figures(orr_json_writer *w, const orr__fabric_facts *f);
/* Storms and chains of pauses, what was skipped: a line each. */
void orr__packet_put_notes(orr_buf *b, const orr__fabric_facts *f);

/* ---- comparisons ---- */

enum { ORR__DIFF_PARTS = 7 };

struct orr__diff_store {
    orr_arena *arena;
    orr_intern *names; /* of operators: a row for each */
    orr_diff_row *rows;
    uint8_t *runs; /* by name: bit r, run r has work of that name */
    size_t room, runs_room;
    bool takes_others[2]; /* all of the run's spans are work */
    orr_diff_row kinds[ORR_SPAN_KINDS];
    orr_diff_row parts[ORR__DIFF_PARTS];
};

/* Nothing says what a span is, as in a log without types; else others are annotations. */
bool orr__has_others_only(const orr_timeline_parts *p);

/* Time of a rank, on average. */
static inline orr_ps orr__diff_mean(const orr_diff *d, const orr_diff_row *r, int run)
{
    return d->ranks[run] ? r->time[run] / d->ranks[run] : 0;
}

#endif
