/* SPDX-License-Identifier: Apache-2.0 */
/* views_impl.h - shared by several views: tables, bars, rows of ranks, packet networks,
 * comparisons.
 *
 * Tables with aligned columns, in 80 characters:
 *
 *     orr__table t = {.arena = a, .columns = 3, .left = 1};
 *     orr__table_add(&t, "operator");  orr__table_add(&t, "count");  orr__table_add(&t, "total us");
 *     orr__table_add(&t, orr__cell_text(a, name));  ...
 *     orr__table_print(&t, &buf);
 *
 * Cells are added row by row and belong to the arena (or are literals); NULL means out of memory.
 * The first `left` columns are left-aligned, the others right-aligned.  In a table that is too wide
 * the left columns are cut, the widest first. */
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
    bool has_bars; /* the last column, left-aligned */
    const char **cells;
    size_t count, room;
    bool failed;
} orr__table;

void orr__table_add(orr__table *t, const char *cell);
/* Two spaces, the columns with two between them, a line end; then the table is empty again. */
void orr__table_print(orr__table *t, orr_buf *to);

/* Cells.  All return NULL when out of memory. */
const char *orr__cell_text(orr_arena *a, orr_str s);   /* control characters removed */
const char *orr__cell_count(orr_arena *a, uint64_t v); /* 1,234,567; from 1e9 on 1.23 G */
const char *orr__cell_bytes(orr_arena *a, uint64_t v); /* 512 B, 64.0 KiB, 1.50 GiB */
const char *orr__cell_share(orr_arena *a, uint64_t part, uint64_t whole);    /* 12.5 % */
const char *orr__cell_bar(orr_arena *a, uint64_t part, uint64_t whole);      /* ####, of ten */
const char *orr__cell_average(orr_arena *a, uint64_t total, uint64_t count); /* 1,234.5 */

/* HTML text: < and & are escaped. */
void orr__put_html(orr_buf *b, orr_str text);

/* ---- whole documents ---- */

/* {"format": FORMAT, "version": 1, ...} on one line, with the breaks of orr_json_line:
 *
 *     orr__document d;
 *     orr_json_writer *w = orr__document_begin(&d, "orrery-chip");
 *     orr_json_put_fields(w, ORR_T("name", chip->name));
 *     return orr__document_save(&d, path, err); */
typedef struct orr__document {
    orr_buf text;
    orr_json_writer writer;
} orr__document;

orr_json_writer *orr__document_begin(orr__document *d, const char *format);
orr_code orr__document_save(orr__document *d, const char *path, orr_error *err);
/* The same of text; the buffer is empty afterwards. */
orr_code orr__text_save(orr_buf *b, const char *path, orr_error *err);

/* ---- bars ----
 *
 * A share as a bar of characters, for tables: #### is four tenths of ten cells.  Plain ASCII
 * without colour, so that it looks the same in every terminal and file. */

enum { ORR_BAR_ROOM = 33 }; /* 32 cells and the NUL */

/* The nearest number of cells, at most 32; a dot for a nonzero share below half a cell. */
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

/* b: comments, a header row that starts with "rank,", and one row per rank from 0 on.  On return,
 * rows start with the ranks they represent, as "0-7,12", and their number. */
void orr__csv_join_alike(orr_buf *b);

/* ---- packet networks in results: runs of flows, and of traces ---- */

/* Members of the open object: counts, then "pfc" with the ports paused longest. */
void orr__packet_put_figures(orr_json_writer *w, const orr__fabric_facts *f);
/* Pause storms and chains, what was skipped: one line each. */
void orr__packet_put_notes(orr_buf *b, const orr__fabric_facts *f);

/* ---- comparisons ---- */

enum { ORR__DIFF_PARTS = 7 };

struct orr__diff_store {
    orr_arena *arena;
    orr_intern *names; /* of operators: a row for each */
    orr_diff_row *rows;
    uint8_t *runs; /* by name: bit r: run r has work of that name */
    size_t room, runs_room;
    bool takes_others[2]; /* all of the run's spans are work */
    orr_diff_row kinds[ORR_SPAN_KINDS];
    orr_diff_row parts[ORR__DIFF_PARTS];
};

/* No span has a kind, as in a log without types; otherwise others are annotations. */
bool orr__has_others_only(const orr_timeline_parts *p);

/* Mean time of a rank. */
static inline orr_ps orr__diff_mean(const orr_diff *d, const orr_diff_row *r, int run)
{
    return d->ranks[run] ? r->time[run] / d->ranks[run] : 0;
}

#endif
