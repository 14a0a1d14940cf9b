/* SPDX-License-Identifier: Apache-2.0 */
/* csv.h - comma-separated fields, each with its place.
 *
 *     orr_csv csv;
 *     orr_csv_row row;
 *     orr_csv_init(&csv, bytes, "layers.csv");
 *     while ((code = orr_csv_next(&csv, &row, &err)) == ORR_OK)
 *         if ((code = orr_csv_u64(&csv, &row.fields[1], "m", 1, most, &m, &err))) break;
 *     orr_csv_fini(&csv);                                  // code is ORR_END when all went well
 *
 * Blank lines and lines that begin with # are skipped.  Lines end in LF or CRLF, which the last may
 * lack.  White space around a field is trimmed.  A trailing comma is followed by an empty field:
 * the caller decides whether that is allowed.  A field that starts with a double quote ends at the
 * next undoubled one; a doubled quote is a quote.  A byte order mark at the start is skipped.
 * Another separator than the comma, such as a tab, may be set after orr_csv_init. */
#ifndef ORR_BASE_CSV_H
#define ORR_BASE_CSV_H

#include "base/memory/buffer.h"

typedef struct orr_csv_field {
    orr_str text; /* lives as long as the bytes; a quoted field until the next row */
    orr_str raw;  /* verbatim, from its first byte to the comma, white space and quotes included */
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
    orr_arena *unquoted; /* created with the first quoted field */
} orr_csv;

void orr_csv_init(orr_csv *c, orr_span bytes, const char *path);
/* ORR_END after the last row. */
orr_code orr_csv_next(orr_csv *c, orr_csv_row *out, orr_error *err) ORR_MUST_CHECK;
void orr_csv_fini(orr_csv *c);

orr_where orr_csv_where(const orr_csv *c, const orr_csv_field *f);
/* An integer from min to max; the error names `what`, the text found and the allowed range. */
orr_code orr_csv_u64(const orr_csv *c,
                     const orr_csv_field *f,
                     const char *what,
                     uint64_t min,
                     uint64_t max,
                     uint64_t *out,
                     orr_error *err) ORR_MUST_CHECK;

/* Writes a text field: quoted where it would be misread, after an apostrophe where a spreadsheet
 * would run it as a formula. */
void orr_csv_put(orr_buf *to, orr_str text);

#endif
