/* SPDX-License-Identifier: Apache-2.0 */
/* csv_rows.c - rows of ranks with the same figures as one row, which says for which ranks it
 * stands.
 *
 * Works on the text of the rows, so that "the same" means what a reader of the file sees, whatever
 * columns there are and whether the run was folded.  Rows stay in the order of their first ranks.
 * Cost: linear in the text. */
#include "views_impl.h"

#include "base/memory/hash.h"
#include "base/memory/map.h"
#include "info_impl.h"

typedef struct row {
    orr_str rest;    /* of the line: from the comma after the rank to its end */
    uint32_t count;  /* ranks */
    uint32_t first;  /* place of the first one in `members` */
    uint32_t filled; /* of these so far */
} row;

typedef struct rows {
    orr_arena *arena;
    orr_map *by_rest; /* hash -> row */
    row *rows;
    uint32_t count, ranks;
    uint32_t *row_of; /* by rank */
    uint32_t *members;
} rows;

static orr_str next_line(const orr_buf *b, size_t *at)
{
    const char *from = (const char *)b->ptr + *at;
    const char *end = memchr(from, '\n', b->len - *at);
    const orr_str line = {from, end ? (size_t)(end - from) + 1 : b->len - *at};
    *at += line.len;
    return line;
}

static orr_str after_rank(orr_str line)
{
    const char *comma = memchr(line.ptr, ',', line.len);
    const size_t skipped = comma ? (size_t)(comma - line.ptr) : line.len;
    return (orr_str){line.ptr + skipped, line.len - skipped};
}

/* False: out of memory. */
static bool add_rank(rows *v, orr_str rest)
{
    uint64_t key = orr_hash_bytes(rest.ptr, rest.len, 0);
    uint32_t i;
    while ((i = orr_map_find(v->by_rest, key, v->count)) != v->count) {
        const orr_str known = v->rows[i].rest;
        if (known.len == rest.len && memcmp(known.ptr, rest.ptr, rest.len) == 0)
            break;
        key++; /* another text with this hash */
    }
    if (i == v->count) {
        if (!orr_map_put(v->by_rest, key, i, NULL))
            return false;
        v->rows[v->count++] = (row){.rest = rest};
    }
    v->rows[i].count++;
    v->row_of[v->ranks++] = i;
    return true;
}

static bool group_rows(rows *v, const orr_buf *b, size_t from)
{
    size_t lines = 0;
    for (size_t i = from; i < b->len; i++)
        lines += b->ptr[i] == '\n';
    v->rows = orr_arena_new(v->arena, lines + 1, row);
    v->row_of = orr_arena_new(v->arena, lines + 1, uint32_t);
    v->members = orr_arena_new(v->arena, lines + 1, uint32_t);
    bool ok = v->rows && v->row_of && v->members;
    for (size_t at = from; ok && at < b->len;)
        ok = add_rank(v, after_rank(next_line(b, &at)));
    for (uint32_t i = 0, at = 0; ok && i < v->count; at += v->rows[i++].count)
        v->rows[i].first = at;
    for (uint32_t r = 0; ok && r < v->ranks; r++) {
        row *w = &v->rows[v->row_of[r]];
        v->members[w->first + w->filled++] = r;
    }
    return ok;
}

void orr__csv_join_alike(orr_buf *b)
{
    orr_buf out = {0};
    size_t at = 0;
    orr_str line = {0};
    if (b->failed)
        return;
    /* Remarks stay as they are; then comes the header row. */
    while (at < b->len && (line = next_line(b, &at)).ptr[0] == '#')
        orr_buf_add(&out, line.ptr, line.len);
    orr_buf_text(&out, "ranks,rank_count");
    line = after_rank(line);
    orr_buf_add(&out, line.ptr, line.len);
    rows v = {.arena = orr_arena_create(), .by_rest = orr_map_create(0)};
    out.failed |= !v.arena || !v.by_rest || !group_rows(&v, b, at);
    for (uint32_t i = 0; !out.failed && i < v.count; i++) {
        const row *w = &v.rows[i];
        const char *ranks = orr__rank_ranges(v.arena, v.members + w->first, w->count);
        out.failed |= !ranks;
        if (ranks)
            orr_buf_print(&out, "\"%s\",%u", ranks, w->count);
        orr_buf_add(&out, w->rest.ptr, w->rest.len);
    }
    orr_map_destroy(v.by_rest);
    orr_arena_destroy(v.arena);
    orr_buf_fini(b);
    *b = out;
}
