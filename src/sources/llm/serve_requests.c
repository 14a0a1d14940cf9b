/* SPDX-License-Identifier: Apache-2.0 */
/* serve_requests.c - a request list from a CSV file: when each came, how long its prompt is and how many tokens it
 * is answered with.
 *
 * The first line names the columns, so logs with more of them can be used as they are.  Memory grows with the rows
 * that were read, never with a number in the file. */
#include "serve_impl.h"

#include "base/formats/csv.h"
#include "base/io/input.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <stdlib.h>

enum { COLUMNS = 3, SHOWN = 60 };

static const struct {
    const char *name;
    uint64_t least, most;
} columns[COLUMNS] = {
    {"arrival_us", 0, LLM_MOST_ARRIVAL},
    {"prompt", 1, LLM_MOST_TOKENS},
    {"output", 1, LLM_MOST_TOKENS},
};

typedef struct list {
    orr_serve_request *items;
    size_t count, room;
} list;

/* ---- the line of names ---- */

static int column_named(orr_str name)
{
    for (int i = 0; i < COLUMNS; i++)
        if (orr_str_is(name, columns[i].name))
            return i;
    return -1;
}

/* place[i]: which field of a row has column i. */
static orr_code read_names(const orr_csv *csv,
                           const orr_csv_row *row,
                           size_t place[COLUMNS],
                           orr_error *err)
{
    for (int i = 0; i < COLUMNS; i++)
        place[i] = SIZE_MAX;
    for (size_t k = 0; k < row->count; k++) {
        const int i = column_named(row->fields[k].text);
        const orr_where w = orr_csv_where(csv, &row->fields[k]);
        if (i >= 0 && place[i] != SIZE_MAX)
            return orr_fail(err, ORR_EINPUT, &w, "a second column %s", columns[i].name);
        if (i >= 0)
            place[i] = k;
    }
    for (int i = 0; i < COLUMNS; i++) {
        const orr_where w = orr_where_line(csv->path, row->line, 1);
        if (place[i] == SIZE_MAX)
            return orr_fail(err, ORR_EINPUT, &w,
                            "no column %s: the first line names the columns, among them "
                            "arrival_us, prompt and output",
                            columns[i].name);
    }
    return ORR_OK;
}

/* ---- rows ---- */

static orr_code read_row(const orr_csv *csv,
                         const orr_csv_row *row,
                         const size_t place[COLUMNS],
                         orr_serve_request *out,
                         orr_error *err)
{
    uint64_t values[COLUMNS];
    for (int i = 0; i < COLUMNS; i++) {
        const orr_where w = orr_where_line(csv->path, row->line, 1);
        if (place[i] >= row->count)
            return orr_fail(err, ORR_EINPUT, &w, "%zu fields: there is none for %s", row->count,
                            columns[i].name);
        const orr_code code = orr_csv_u64(csv, &row->fields[place[i]], columns[i].name,
                                          columns[i].least, columns[i].most, &values[i], err);
        if (code)
            return code;
    }
    *out = (orr_serve_request){values[0], values[1], values[2]};
    return ORR_OK;
}

static orr_code read_rows(orr_csv *csv, const size_t place[COLUMNS], list *l, orr_error *err)
{
    orr_csv_row row;
    orr_code code;
    while ((code = orr_csv_next(csv, &row, err)) == ORR_OK) {
        const orr_where w = orr_where_line(csv->path, row.line, 1);
        if (l->count == LLM_MOST_REQUESTS)
            return orr_fail(err, ORR_EINPUT, &w, "more than %d requests", LLM_MOST_REQUESTS);
        if (!orr_grow(&l->items, &l->room, l->count + 1))
            return orr_no_memory(err);
        if ((code = read_row(csv, &row, place, &l->items[l->count], err)))
            return code;
        l->count++;
    }
    return code == ORR_END ? ORR_OK : code;
}

static orr_code read_table(orr_csv *csv, list *l, orr_error *err)
{
    const orr_where top = orr_where_line(csv->path, 1, 1);
    size_t place[COLUMNS];
    orr_csv_row row;
    orr_code code = orr_csv_next(csv, &row, err);
    if (code == ORR_END)
        return orr_fail(err, ORR_EINPUT, &top,
                        "empty: a line \"arrival_us,prompt,output\" and requests were expected");
    if (!code)
        code = read_names(csv, &row, place, err);
    if (!code)
        code = read_rows(csv, place, l, err);
    if (!code && l->count == 0)
        return orr_fail(err, ORR_EINPUT, &top, "no requests behind the line of names");
    return code;
}

/* ---- in the order of arrival ---- */

/* Two runs of sorted items into one; of equal arrivals the left one's first. */
static void merge(
    const orr_serve_request *from, size_t first, size_t middle, size_t end, orr_serve_request *to)
{
    size_t a = first, b = middle;
    for (size_t i = first; i < end; i++) {
        const bool is_left = a < middle && (b >= end || from[a].arrival_us <= from[b].arrival_us);
        to[i] = is_left ? from[a++] : from[b++];
    }
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static bool is_sorted(const list *l)
{
    for (size_t i = 1; i < l->count; i++)
        if (l->items[i - 1].arrival_us > l->items[i].arrival_us)
            return false;
    return true;
}

static bool sort(list *l)
{
    if (is_sorted(l))
        return true;
    orr_serve_request *other = orr_alloc(l->count, sizeof *other);
    if (!other)
        return false;
    for (size_t width = 1; width < l->count; width *= 2) {
        for (size_t i = 0; i < l->count; i += 2 * width)
            merge(l->items, i, least(i + width, l->count), least(i + 2 * width, l->count), other);
        orr_serve_request *const sorted = other;
        other = l->items;
        l->items = sorted;
    }
    orr_free(other);
    return true;
}

orr_code orr_requests_parse(
    orr_span bytes, const char *label, orr_serve_request **out, size_t *count, orr_error *err)
{
    orr_csv csv;
    list l = {0};
    *out = NULL;
    *count = 0;
    orr_csv_init(&csv, bytes, label);
    orr_code code = read_table(&csv, &l, err);
    orr_csv_fini(&csv);
    if (!code && !sort(&l))
        code = orr_no_memory(err);
    if (code) {
        orr_free(l.items);
        return code;
    }
    *out = l.items;
    *count = l.count;
    return ORR_OK;
}

orr_code orr_requests_read(const char *path, orr_serve_request **out, size_t *count, orr_error *err)
{
    orr_input *in;
    *out = NULL;
    *count = 0;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    code = orr_requests_parse(orr_input_bytes(in), path, out, count, err);
    orr_input_close(in);
    return code;
}

void orr_requests_free(orr_serve_request *requests)
{
    orr_free(requests);
}
