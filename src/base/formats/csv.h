/* SPDX-License-Identifier: Apache-2.0 */
/* csv.h - lines of fields between commas, each with its place.
 *
 *     orr_csv csv;
 *     orr_csv_row row;
 *     orr_csv_init(&csv, bytes, "layers.csv");
 *     while ((code = orr_csv_next(&csv, &row, &err)) == ORR_OK)
 *         if ((code = orr_csv_u64(&csv, &row.fields[1], "m", 1, most, &m, &err))) break;
 *     orr_csv_fini(&csv);                                  // code is ORR_END when all went well
 *
 * Blank lines and lines that begin with # are skipped.  Lines end in LF or CRLF, the last one in
 * nothing if it likes.  Blanks around a field go.  A comma at the end of a line is followed by one
 * more field, an empty one: whether that is right the caller knows.  A field that begins with a
 * double quote ends with the next single one; two of them stand for one.  A byte order mark at the
 * start is skipped.  Another separator than the comma, such as a tab, may be set after
 * orr_csv_init. */
#ifndef ORR_BASE_CSV_H
#define ORR_BASE_CSV_H

#include "base/memory/buffer.h"

typedef struct orr_csv_field {
    orr_str text; /* lives as long as the bytes; a quoted field until the next row */
    orr_str raw;  /* as it stands, from its first byte to the comma, blanks and quotes included */
    uint32_t line, column; /* from 1; of its first byte, the quote if there is one */
} orr_csv_field;

typedef struct orr_csv_row {
    const orr_csv_field *fields; /* until the next row */
    size_t count;                /* at least 1 */
    uint32_t line;
} orr_csv_row;

typedef struct orr_csv {
    const char *path; /* borrowed, as are the bytes */
    const char *at, *end;
    uint32_t line; /* of the byte at `at` */
    char separator;
    orr_csv_field *fields;
    size_t room;
    orr_arena *unquoted; /* made when the first quoted field is met */
} orr_csv;

void orr_csv_init(orr_csv *c, orr_span bytes, const char *path);
/* ORR_END after the last row. */
orr_code orr_csv_next(orr_csv *c, orr_csv_row *out, orr_error *err) ORR_MUST_CHECK;
void orr_csv_fini(orr_csv *c);

orr_where orr_csv_where(const orr_csv *c, const orr_csv_field *f);
/* A whole number from min to max; the error names `what`, the text found and the numbers
 * allowed. */
orr_code orr_csv_u64(const orr_csv *c,
                     const orr_csv_field *f,
                     const char *what,
                     uint64_t min,
                     uint64_t max,
                     uint64_t *out,
                     orr_error *err) ORR_MUST_CHECK;

/* Writes a field that is a text: in quotes where it would be misread, behind an apostrophe where a
 * spreadsheet would take it for a formula and run it. */
void orr_csv_put(orr_buf *to, orr_str text);

#endif
