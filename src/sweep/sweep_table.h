/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_table.h - the results of a sweep as a table: for the files that write one. */
#ifndef ORR_SWEEP_TABLE_H
#define ORR_SWEEP_TABLE_H

#include "store.h"

typedef enum swp_column_kind { SWP_AXIS, SWP_MEASURE, SWP_FIGURE } swp_column_kind;

typedef struct swp_column {
    const char *name;
    const char *key; /* of a figure: its name in results */
    swp_column_kind kind;
} swp_column;

typedef struct swp_row {
    uint64_t point, ns;
    swp_status status;
    const char *error; /* of one that failed */
    swp_value *values; /* by column */
    swp_value key;     /* that it is sorted by */
} swp_row;

struct orr_sweep_table {
    orr_arena *arena;
    const char *title, *goal, *commands, *program;
    swp_column *columns;
    size_t column_count, column_room;
    swp_row *rows; /* those that the query asks for, sorted */
    size_t row_count, row_room;
    uint32_t *shown; /* columns to show */
    size_t shown_count;
    uint64_t failed, open, point_count;
    bool with_failed;
};

/* As it is printed; NULL: nothing. */
const char *swp_cell_text(orr_arena *a, swp_value v, bool is_short);
/* By name; an unknown one is an error that suggests a near one.  what: for the message. */
orr_code swp_table_column(const orr_sweep_table *t,
                          orr_str name,
                          const char *what,
                          uint32_t *out,
                          orr_error *err) ORR_MUST_CHECK;

#endif
