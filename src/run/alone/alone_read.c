/* SPDX-License-Identifier: Apache-2.0 */
/* alone_read.c - the text that nccl-tests prints.
 *
 *     # Collective test starting: all_reduce_perf              newer versions
 *     #  Rank  0 Group  0 Pid  1234 on  node1 device  0 [...]  one per rank
 *     #       size         count      type   redop    root     time   algbw   busbw #wrong ...
 *     #        (B)    (elements)                               (us)  (GB/s)  (GB/s)        ...
 *         1048576        262144     float     sum      -1    27.37   38.31   67.04      0 ...
 *     # Avg bus bandwidth    : 125.4
 *
 * Columns are found by the names in the header.  Between rows NCCL and launchers may print lines of
 * their own, which begin with no number.  A row that is cut off, that does not go with itself (size
 * / time is not algbw), or a text without its last lines is refused: half an output would shift a
 * fit without a word. */
#include "alone.h"

#include "base/memory/intern.h"
#include "base/text/number.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { COLUMNS_MOST = 64, SIZE_FIRST = 0 };

typedef struct reader {
    orr_span bytes;
    size_t at;
    uint64_t line;
    const char *label;
    orr_arena *arena;
    orr_intern *hosts;
    uint32_t *on_host;
    size_t host_room;
    alone_row *rows;
    size_t room;
    size_t size, count, redop, root, time, algbw, busbw, columns; /* places; SIZE_MAX: none */
    bool has_header, has_units, has_end;
    alone_text *out;
} reader;

static orr_code fail(const reader *r, orr_error *err, const char *what)
{
    const orr_where w =
        orr_where_line(r->label, (uint32_t)(r->line > UINT32_MAX ? UINT32_MAX : r->line), 1);
    return orr_fail(err, ORR_EINPUT, &w, "%s", what);
}

static bool next_line(reader *r, orr_str *out)
{
    const char *p = (const char *)r->bytes.ptr + r->at;
    const size_t left = r->bytes.len - r->at;
    if (left == 0)
        return false;
    const char *end = memchr(p, '\n', left);
    const size_t n = end ? (size_t)(end - p) : left;
    r->at += n + (end ? 1 : 0);
    r->line++;
    *out = (orr_str){p, n};
    while (out->len && orr_is_space(out->ptr[out->len - 1]))
        out->len--;
    while (out->len && orr_is_space(*out->ptr)) {
        out->ptr++;
        out->len--;
    }
    return true;
}

static size_t split(orr_str s, orr_str *words)
{
    size_t n = 0, i = 0;
    while (i < s.len && n < COLUMNS_MOST) {
        size_t from;
        while (i < s.len && orr_is_space(s.ptr[i]))
            i++;
        from = i;
        while (i < s.len && !orr_is_space(s.ptr[i]))
            i++;
        if (i > from)
            words[n++] = (orr_str){s.ptr + from, i - from};
    }
    return n;
}

/* ---- remarks ---- */

/* "./build/all_reduce_perf" -> all_reduce */
static void take_program(reader *r, orr_str path)
{
    char name[32];
    size_t from = path.len;
    while (from && path.ptr[from - 1] != '/')
        from--;
    path.ptr += from;
    path.len -= from;
    for (size_t i = 0; i + 5 <= path.len; i++) {
        if (memcmp(path.ptr + i, "_perf", 5) == 0 && i < sizeof name) {
            memcpy(name, path.ptr, i);
            name[i] = '\0';
            r->out->op = orr_alone_op_find(name);
            return;
        }
    }
}

/* "Rank 0 Group 0 Pid 1 on HOST device 0 ..." */
static orr_code take_rank(reader *r, const orr_str *words, size_t n, orr_error *err)
{
    uint32_t host;
    for (size_t i = 0; i + 2 < n; i++) {
        if (!orr_str_is(words[i], "on") || !orr_str_is(words[i + 2], "device"))
            continue;
        if (!orr_intern_add(r->hosts, words[i + 1], &host) ||
            !orr_grow(&r->on_host, &r->host_room, host + 1))
            return orr_no_memory(err);
        if (host == r->out->nodes) {
            r->on_host[host] = 0;
            r->out->nodes++;
        }
        r->on_host[host]++;
        r->out->ranks++;
        if (r->on_host[host] > r->out->per_node)
            r->out->per_node = r->on_host[host];
        return ORR_OK;
    }
    return ORR_OK;
}

static size_t place_of(const orr_str *words, size_t n, const char *word)
{
    for (size_t i = 0; i < n; i++)
        if (orr_str_is(words[i], word))
            return i;
    return SIZE_MAX;
}

static orr_code take_header(reader *r, const orr_str *words, size_t n, orr_error *err)
{
    if (r->has_header)
        return fail(r, err, "a second table: give each output of nccl-tests as a separate file");
    r->size = place_of(words, n, "size");
    r->count = place_of(words, n, "count");
    r->redop = place_of(words, n, "redop");
    r->root = place_of(words, n, "root");
    r->time = place_of(words, n, "time");
    r->algbw = place_of(words, n, "algbw");
    r->busbw = place_of(words, n, "busbw");
    r->columns = n;
    if (r->size != SIZE_FIRST || r->time == SIZE_MAX || r->algbw == SIZE_MAX ||
        r->busbw == SIZE_MAX)
        return fail(
            r, err,
            "these are not the columns of nccl-tests: size, count, type, redop, root, time, algbw, busbw");
    r->has_header = true;
    return ORR_OK;
}

static orr_code take_remark(reader *r, orr_str s, orr_error *err)
{
    orr_str words[COLUMNS_MOST];
    size_t n;
    s.ptr++;
    s.len--;
    n = split(s, words);
    if (n >= 4 && orr_str_is(words[0], "Collective") && orr_str_is(words[2], "starting:"))
        take_program(r, words[3]);
    else if (n > 0 && orr_str_is(words[0], "Rank"))
        return take_rank(r, words, n, err);
    else if (n > 5 && orr_str_is(words[0], "size"))
        return take_header(r, words, n, err);
    else if (n > 2 && orr_str_is(words[0], "(B)")) {
        if (place_of(words, n, "(us)") == SIZE_MAX || place_of(words, n, "(GB/s)") == SIZE_MAX)
            return fail(r, err, "expected times in (us) and bandwidths in (GB/s)");
        r->has_units = true;
    } else if (orr_str_has(s, "Avg bus bandwidth"))
        r->has_end = true;
    return ORR_OK;
}

/* ---- rows ---- */

static orr_code take_row(reader *r, orr_str s, orr_error *err)
{
    orr_str words[COLUMNS_MOST];
    const size_t n = split(s, words);
    uint64_t size = 0;
    double us = 0, alg = 0, bus = 0, seen;
    if (*s.ptr == '-')
        return fail(r, err, "a size below 0");
    if (n < r->columns)
        return fail(r, err, "the row is cut off: it has fewer columns than the header");
    if (!orr_text_u64(words[r->size], &size))
        return fail(r, err, "size: expected a whole number of bytes");
    if (!orr_text_double(words[r->time], &us) || !isfinite(us) || us < 0)
        return fail(r, err, "time: expected a number of microseconds, not below 0");
    if (!orr_text_double(words[r->algbw], &alg) || !orr_text_double(words[r->busbw], &bus) ||
        !isfinite(alg) || !isfinite(bus) || alg < 0 || bus < 0)
        return fail(r, err, "algbw, busbw: expected numbers of GB/s, not below 0");
    if (size == 0 || us == 0) /* nothing was sent */
        return ORR_OK;
    seen = (double)size / us / 1e3;
    if (alg >= 1 && fabs(seen / alg - 1) > 0.05)
        return fail(r, err, "size over time is not algbw: other units or other columns");
    if (r->redop != SIZE_MAX && !orr_str_is(words[r->redop], "none"))
        r->out->reduces = true;
    if (r->root != SIZE_MAX && !orr_str_is(words[r->root], "-1"))
        r->out->has_root = true;
    if (alg >= 0.5)
        r->out->bus_over_alg = bus / alg;
    if (!orr_grow(&r->rows, &r->room, r->out->count + 1))
        return orr_no_memory(err);
    r->rows[r->out->count++] = (alone_row){r->line, size, us};
    return ORR_OK;
}

static orr_code read_all(reader *r, orr_error *err)
{
    orr_str s;
    orr_code code = ORR_OK;
    while (!code && next_line(r, &s)) {
        if (s.len == 0)
            continue;
        if (*s.ptr == '#')
            code = take_remark(r, s, err);
        else if (r->has_header && !r->has_end &&
                 (orr_is_digit(*s.ptr) || (*s.ptr == '-' && s.len > 1 && orr_is_digit(s.ptr[1]))))
            code = take_row(r, s, err);
    }
    if (code)
        return code;
    if (!r->has_header)
        return fail(
            r, err,
            "no table of nccl-tests: expected a line \"# size count type redop root time ...\"");
    if (!r->has_end)
        return fail(r, err, "the output is cut off: its line \"# Avg bus bandwidth\" is missing");
    if (r->out->count == 0)
        return fail(r, err, "the table has no rows");
    return ORR_OK;
}

orr_code alone_read(
    orr_span bytes, const char *label, orr_arena *arena, alone_text *out, orr_error *err)
{
    reader r = {.bytes = bytes, .label = label, .arena = arena, .out = out};
    orr_code code;
    memset(out, 0, sizeof *out);
    r.hosts = orr_intern_create();
    if (!r.hosts)
        return orr_no_memory(err);
    code = read_all(&r, err);
    if (!code) {
        out->rows = orr_arena_take(arena, out->count * sizeof *out->rows);
        if (out->rows)
            memcpy(out->rows, r.rows, out->count * sizeof *out->rows);
        else
            code = orr_no_memory(err);
    }
    orr_intern_destroy(r.hosts);
    orr_free(r.on_host);
    orr_free(r.rows);
    return code;
}
