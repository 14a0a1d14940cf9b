/* SPDX-License-Identifier: Apache-2.0 */
/* error.c - filling and printing orr_error.  Nothing here allocates: an error must be reportable
 * when out of memory. */
#include <orrery/error.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static orr_where where_at(const char *path)
{
    orr_where w = {.byte = ORR_NO_BYTE};
    if (path) {
        const size_t len = strlen(path);
        const size_t room = sizeof w.path - 1;
        const char *tail =
            len > room ? path + (len - room) : path; /* the file's name is at the end */
        memcpy(w.path, tail, strlen(tail) + 1);
    }
    return w;
}

orr_where orr_where_byte(const char *path, uint64_t byte)
{
    orr_where w = where_at(path);
    w.byte = byte;
    return w;
}

orr_where orr_where_line(const char *path, uint32_t line, uint32_t column)
{
    orr_where w = where_at(path);
    w.line = line;
    w.column = column;
    return w;
}

orr_code orr_fail(orr_error *err, orr_code code, const orr_where *where, const char *fmt, ...)
{
    if (!err)
        return code;
    va_list args;
    err->code = code;
    err->where = where ? *where : where_at(NULL);
    va_start(args, fmt);
    vsnprintf(err->message, sizeof err->message, fmt, args);
    va_end(args);
    return code;
}

/* Appends text after the first `at` bytes, as much as fits; returns the new length. */
static size_t append(char *to, size_t at, size_t size, const char *text)
{
    const size_t room = size - 1 - at, len = strlen(text), n = len < room ? len : room;
    memcpy(to + at, text, n);
    to[at + n] = '\0';
    return at + n;
}

orr_code orr_because(orr_error *err, orr_code code, const char *fmt, ...)
{
    if (!err)
        return code;
    char inner[sizeof err->message];
    va_list args;
    memcpy(inner, err->message, sizeof inner);
    va_start(args, fmt);
    const int used = vsnprintf(err->message, sizeof err->message, fmt, args);
    va_end(args);
    size_t at = used < 0 ? 0 : (size_t)used;
    if (at >= sizeof err->message)
        at = sizeof err->message - 1;
    at = append(err->message, at, sizeof err->message, ": ");
    append(err->message, at, sizeof err->message, inner);
    err->code = code;
    return code;
}

char *orr_error_text(const orr_error *err, char *buf, size_t size)
{
    const orr_where *w = &err->where;
    if (w->line && w->path[0])
        snprintf(buf, size, "%s:%" PRIu32 ":%" PRIu32 ": %s", w->path, w->line, w->column,
                 err->message);
    else if (w->byte != ORR_NO_BYTE && w->path[0])
        snprintf(buf, size, "%s: byte %" PRIu64 ": %s", w->path, w->byte, err->message);
    else if (w->path[0])
        snprintf(buf, size, "%s: %s", w->path, err->message);
    else
        snprintf(buf, size, "%s", err->message);
    return buf;
}
