/* SPDX-License-Identifier: Apache-2.0 */
/* error.h - one error type, always with a location.
 *
 *     orr_error err;
 *     if (orr_trace_read("rank0.et", NULL, &trace, &err))
 *         fprintf(stderr, "%s\n", orr_error_text(&err, line, sizeof line));
 *
 * Few codes for programs to branch on, detailed text for people.  The caller owns the struct and
 * its size is fixed, so reporting never allocates.  Every function that takes an `err` accepts
 * NULL. */
#ifndef ORRERY_ERROR_H
#define ORRERY_ERROR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ORR_MUST_CHECK __attribute__((warn_unused_result))
#define ORR_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define ORR_API __attribute__((visibility("default")))
#else
#define ORR_MUST_CHECK
#define ORR_PRINTF(fmt, first)
#define ORR_API
#endif

typedef enum orr_code {
    ORR_OK = 0,
    ORR_END,    /* no more records: an answer, not a failure */
    ORR_EUSAGE, /* the caller asked for something impossible */
    ORR_EINPUT, /* the input is malformed; err->where says where */
    ORR_EIO,    /* open, read or write failed */
    ORR_ENOMEM,
    ORR_EBUG, /* an internal invariant was violated */
    ORR_ESTOP /* the user interrupted */
} orr_code;

/* Location in the input.  Without a byte offset, byte is ORR_NO_BYTE; without a line, line is 0. */
#define ORR_NO_BYTE UINT64_MAX
typedef struct orr_where {
    char path[200];        /* as the user typed it; truncated from the left if too long */
    uint64_t byte;         /* offset in the decompressed stream */
    uint32_t line, column; /* from 1; 0 in binary input */
} orr_where;

typedef struct orr_error {
    orr_code code;
    orr_where where;
    char message[312];
} orr_error;

/* A location in binary input (byte) and in text (line and column). */
ORR_API orr_where orr_where_byte(const char *path, uint64_t byte);
ORR_API orr_where orr_where_line(const char *path, uint32_t line, uint32_t column);

/* Fill err (unless NULL) and return code.  where may be NULL: no location. */
ORR_API orr_code orr_fail(
    orr_error *err, orr_code code, const orr_where *where, const char *fmt, ...) ORR_PRINTF(4, 5);

/* Prefix an error with context; its location is kept. */
ORR_API orr_code orr_because(orr_error *err, orr_code code, const char *fmt, ...) ORR_PRINTF(3, 4);

/* "path:line:column: message" or "path: byte N: message", in buf; returns buf. */
ORR_API char *orr_error_text(const orr_error *err, char *buf, size_t size);

#ifdef __cplusplus
}
#endif
#endif
