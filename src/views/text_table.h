/* SPDX-License-Identifier: Apache-2.0 */
/* text_table.h - rows of text whose columns line up, for people with 80 columns.
 *
 *     orr__table t = {.arena = a, .columns = 3, .left = 1};
 *     orr__table_add(&t, "operator");  orr__table_add(&t, "count");  orr__table_add(&t, "total us");
 *     orr__table_add(&t, orr__cell_text(a, name));  ...
 *     orr__table_print(&t, &buf);
 *
 * Cells are given row by row and belong to the arena (or are literals); NULL stands for one that
 * memory ran out for.  The first `left` columns are set to the left, the others to the right.  A
 * table that is too wide has its left columns cut, the widest first. */
#ifndef ORR_VIEWS_TEXT_TABLE_H
#define ORR_VIEWS_TEXT_TABLE_H

#include "base/memory/buffer.h"

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
const char *orr__cell_text(orr_arena *a, orr_str s);   /* nothing that moves a terminal's pen */
const char *orr__cell_count(orr_arena *a, uint64_t v); /* 1,234,567; from 1e9 on 1.23 G */
const char *orr__cell_bytes(orr_arena *a, uint64_t v); /* 512 B, 64.0 KiB, 1.50 GiB */
const char *orr__cell_share(orr_arena *a, uint64_t part, uint64_t whole);    /* 12.5 % */
const char *orr__cell_bar(orr_arena *a, uint64_t part, uint64_t whole);      /* ####, of ten */
const char *orr__cell_average(orr_arena *a, uint64_t total, uint64_t count); /* 1,234.5 */

#endif
