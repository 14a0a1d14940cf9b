/* SPDX-License-Identifier: Apache-2.0 */
/* alone_fit.c - the constants of a machine fitted to measured rows, with intervals.
 *
 * The fit is nccl_fit's.  It is repeated five times with a fifth of the rows left out: the
 * variation of the constants gives their interval (jackknife), and the error on the rows left out
 * gives the interval of predicted times. */
#include "alone.h"

#include "base/io/input.h"
#include "base/memory/map.h"
#include "base/memory/memory.h"
#include "base/memory/sort.h"
#include "base/text/number.h"
#include "base/text/text.h"
#include "models/collective/nccl/nccl_parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- The text that nccl-tests prints.
 *
 *     # Collective test starting: all_reduce_perf              newer versions
 *     #  Rank  0 Group  0 Pid  1234 on  node1 device  0 [...]  one per rank
 *     #       size         count      type   redop    root     time   algbw   busbw #wrong ...
 *     #        (B)    (elements)                               (us)  (GB/s)  (GB/s)        ...
 *         1048576        262144     float     sum      -1    27.37   38.31   67.04      0 ...
 *     # Avg bus bandwidth    : 125.4
 *
 * Columns are found by the names in the header.  Between rows NCCL and launchers may print their
 * own lines, which do not begin with a number.  A truncated row, an inconsistent one (size / time
 * is not algbw), and output without its last lines are refused: half an output would silently shift
 * a fit. */

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
    /* column indices; SIZE_MAX: none */
    size_t size, count, redop, root, time, algbw, busbw, columns;
    bool has_header, has_end;
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

enum { FOLDS = 5, LEAST_ROWS = 8, CLASS_ROWS = 8, TABLE_ROOM = 8192 };

struct orr_calibration {
    orr_machine machine;
    orr_alone *start; /* the machine's own table, if it has one */
    orr_arena *arena;
    nccl_row *rows;
    orr_calibration_row *shown;
    size_t count, room, shown_room;
    orr_calibration_result result;
    char table[TABLE_ROOM];
};

orr_code orr_calibration_open(const orr_machine *m, orr_calibration **out, orr_error *err)
{
    orr_calibration *c = orr_alloc(1, sizeof *c);
    orr_code code;
    *out = NULL;
    if (!c)
        return orr_no_memory(err);
    c->machine = *m;
    c->arena = orr_arena_create();
    code = c->arena ? orr_alone_open(m, &c->start, err) : orr_no_memory(err);
    if (code)
        orr_calibration_close(c);
    else
        *out = c;
    return code;
}

void orr_calibration_close(orr_calibration *c)
{
    if (!c)
        return;
    orr_alone_close(c->start);
    orr_free(c->rows);
    orr_free(c->shown);
    if (c->arena)
        orr_arena_destroy(c->arena);
    orr_free(c);
}

/* ---- rows ---- */

/* Infers the operation if the text has no name: from redop, root and busbw over algbw. */
static const orr_alone_op *guess(const alone_text *t)
{
    const orr_alone_op *found = NULL;
    if (t->ranks < 2 || !(t->bus_over_alg > 0))
        return NULL;
    for (size_t i = 0; alone_op_at(i); i++) {
        const orr_alone_op *op = alone_op_at(i);
        if (op->reduces != t->reduces || op->has_root != t->has_root ||
            fabs(t->bus_over_alg / orr_alone_bus_factor(op, t->ranks) - 1) > 0.02)
            continue;
        if (found)
            return NULL;
        found = op;
    }
    return found;
}

static orr_code add_rows(orr_calibration *c,
                         const char *path,
                         const alone_text *t,
                         const orr_alone_op *op,
                         const nccl_shape *s,
                         orr_error *err)
{
    char *label = orr_arena_text(c->arena, (orr_str){path, strlen(path)});
    if (!label || !orr_grow(&c->rows, &c->room, c->count + t->count) ||
        !orr_grow(&c->shown, &c->shown_room, c->count + t->count))
        return orr_no_memory(err);
    for (size_t i = 0; i < t->count; i++, c->count++) {
        c->rows[c->count] = (nccl_row){.shape = *s,
                                       .kind = op->kind,
                                       .is_message = op->is_message,
                                       .bytes = t->rows[i].bytes,
                                       .ns = t->rows[i].us * 1e3};
        c->shown[c->count] = (orr_calibration_row){.path = label,
                                                   .line = t->rows[i].line,
                                                   .op = op,
                                                   .ranks = s->ranks,
                                                   .nodes = s->nodes,
                                                   .bytes = t->rows[i].bytes,
                                                   .us = t->rows[i].us};
    }
    return ORR_OK;
}

static orr_code add_text(orr_calibration *c,
                         const char *path,
                         alone_text *t,
                         const orr_alone_op *op,
                         uint32_t ranks,
                         uint32_t per_node,
                         orr_error *err)
{
    const orr_where w = orr_where_line(path, 0, 0);
    nccl_shape s;
    t->ranks = ranks ? ranks : t->ranks;
    t->per_node = per_node ? per_node : t->per_node;
    op = op ? op : t->op ? t->op : guess(t);
    if (t->ranks == 0)
        return orr_fail(
            err, ORR_EINPUT, &w,
            "the text has no list of ranks (\"# Rank 0 ... on HOST device 0\"): --ranks is needed");
    if (!op)
        return orr_fail(err, ORR_EINPUT, &w, "the operation is not recorded: --op is required");
    if (t->ranks < 2)
        return orr_fail(err, ORR_EINPUT, &w, "collectives need at least 2 ranks");
    orr_code code = alone_shape(&c->machine, op, t->ranks, t->per_node, &s, err);
    return code ? code : add_rows(c, path, t, op, &s, err);
}

orr_code orr_calibration_add_nccl_tests(orr_calibration *c,
                                        const char *path,
                                        const orr_alone_op *op,
                                        uint32_t ranks,
                                        uint32_t per_node,
                                        orr_error *err)
{
    orr_input *in;
    alone_text t;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    code = alone_read(orr_input_bytes(in), path, c->arena, &t, err);
    orr_input_close(in);
    return code ? code : add_text(c, path, &t, op, ranks, per_node, err);
}

/* ---- the fit ---- */

static double mean_error(
    const nccl_row *rows, size_t count, const nccl_constants *k, bool left_out, size_t *seen)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        const double ratio = nccl_ratio(&rows[i], k);
        if (ratio > 0 && (!left_out || rows[i].left_out)) {
            sum += fabs(1 / ratio - 1);
            ++*seen;
        }
    }
    return sum;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* 90 % of the ratios per size class; a class with few rows keeps its old interval, or gets that of
 * all rows. */
static orr_code spread(const orr_calibration *c,
                       const double *ratio,
                       nccl_constants *k,
                       orr_error *err)
{
    double *of = orr_arena_new(c->arena, c->count, double);
    if (!of)
        return orr_no_memory(err);
    for (int class = 0; class < 3; class ++) {
        size_t n = 0, cut;
        for (size_t i = 0; i < c->count; i++)
            if (ratio[i] > 0 && nccl_size_class((double)c->rows[i].bytes) == class)
                of[n++] = ratio[i];
        if (n < CLASS_ROWS)
            continue;
        orr_sort(of, n, sizeof *of, compare);
        cut = n / 20;
        k->spread[class].low = of[cut] < 0.97 ? of[cut] : 0.97;
        k->spread[class].high = of[n - 1 - cut] > 1.03 ? of[n - 1 - cut] : 1.03;
    }
    return ORR_OK;
}

typedef struct folded {
    double (*value)[FOLDS]; /* of each knob */
    double *ratio;          /* of each row, from the fit without it */
} folded;

static orr_code fold(orr_calibration *c, const nccl_constants *start, folded *f, orr_error *err)
{
    double sum = 0;
    size_t seen = 0;
    f->value = orr_arena_take(c->arena, nccl_knobs() * sizeof *f->value);
    f->ratio = orr_arena_new(c->arena, c->count, double);
    if (!f->value || !f->ratio)
        return orr_no_memory(err);
    for (size_t n = 0; n < FOLDS; n++) {
        nccl_constants k = *start;
        for (size_t i = 0; i < c->count; i++)
            c->rows[i].left_out = i % FOLDS == n;
        nccl_fit(c->rows, c->count, &k);
        sum += mean_error(c->rows, c->count, &k, true, &seen);
        for (size_t i = 0; i < nccl_knobs(); i++)
            f->value[i][n] = nccl_knob(&k, i);
        for (size_t i = n; i < c->count; i += FOLDS)
            f->ratio[i] = nccl_ratio(&c->rows[i], &k);
    }
    for (size_t i = 0; i < c->count; i++)
        c->rows[i].left_out = false;
    c->result.held_out = seen ? sum / (double)seen : 0;
    return ORR_OK;
}

/* Constants that changed, with the jackknife interval in the logarithm. */
static orr_code list_items(orr_calibration *c,
                           const nccl_constants *start,
                           const nccl_constants *k,
                           const folded *f,
                           orr_error *err)
{
    orr_calibration_item *items = orr_arena_new(c->arena, nccl_knobs(), orr_calibration_item);
    size_t n = 0;
    if (!items)
        return orr_no_memory(err);
    for (size_t i = 0; i < nccl_knobs(); i++) {
        const double was = nccl_knob(start, i), now = nccl_knob(k, i);
        double mean = 0, sum = 0, scale;
        bool moved = fabs(log(now / was)) > 1e-3;
        for (int j = 0; j < FOLDS; j++) {
            mean += log(f->value[i][j]) / FOLDS;
            moved = moved || fabs(log(f->value[i][j] / was)) > 1e-3;
        }
        for (int j = 0; j < FOLDS; j++)
            sum += pow(log(f->value[i][j]) - mean, 2);
        if (!moved)
            continue;
        scale = strcmp(nccl_knob_unit(i), "us") == 0 ? 1e-3 : 1;
        const double away = 1.645 * sqrt(sum * (FOLDS - 1) / FOLDS);
        items[n++] = (orr_calibration_item){.name = nccl_knob_name(i),
                                            .unit = nccl_knob_unit(i),
                                            .before = was * scale,
                                            .value = now * scale,
                                            .low = now * exp(-away) * scale,
                                            .high = now * exp(away) * scale};
    }
    c->result.items = items;
    c->result.item_count = n;
    return ORR_OK;
}

static void fill_rows(orr_calibration *c, const nccl_constants *start, const nccl_constants *k)
{
    size_t inside = 0, seen = 0;
    c->result.worst = 0;
    for (size_t i = 0; i < c->count; i++) {
        orr_calibration_row *row = &c->shown[i];
        const double before = nccl_ratio(&c->rows[i], start), after = nccl_ratio(&c->rows[i], k);
        const int class = nccl_size_class((double)row->bytes);
        if (!(before > 0) || !(after > 0))
            continue;
        row->before_us = row->us / before;
        row->model_us = row->us / after;
        row->low_us = row->model_us * k->spread[class].low;
        row->high_us = row->model_us * k->spread[class].high;
        c->result.worst = fmax(c->result.worst, fabs(1 / after - 1));
        inside += row->us >= row->low_us && row->us <= row->high_us;
        seen++;
    }
    c->result.covered = seen ? (double)inside / (double)seen : 0;
}

static void make_table(orr_calibration *c, const nccl_constants *k)
{
    nccl_custom t = {.generation = c->rows[0].shape.generation, .k = *k};
    memcpy(t.name, c->machine.name, sizeof t.name);
    if (c->start->has_table)
        t.generation = c->start->table.generation;
    t.k.rows = (uint32_t)(c->count > UINT32_MAX ? UINT32_MAX : c->count);
    t.k.ranks_most = 0;
    t.k.bytes_most = 0;
    for (size_t i = 0; i < c->count; i++) {
        const nccl_row *r = &c->rows[i];
        t.k.ranks_most = r->shape.ranks > t.k.ranks_most ? r->shape.ranks : t.k.ranks_most;
        t.k.bytes_most = r->bytes > t.k.bytes_most ? r->bytes : t.k.bytes_most;
    }
    c->result.table_length = nccl_custom_text(&t, c->table, sizeof c->table);
    c->result.table = c->table;
}

orr_code orr_calibration_fit(orr_calibration *c, const orr_calibration_result **out, orr_error *err)
{
    folded f;
    size_t seen = 0, again = 0;
    orr_code code;
    if (c->count < LEAST_ROWS)
        return orr_fail(err, ORR_EINPUT, NULL,
                        "%zu rows are too few for a fit: at least %d are needed", c->count,
                        LEAST_ROWS);
    const nccl_constants start =
        c->start->has_table ? c->start->table.k : nccl_table[c->rows[0].shape.generation];
    nccl_constants k = start;
    c->result.before = mean_error(c->rows, c->count, &start, false, &seen);
    nccl_fit(c->rows, c->count, &k);
    c->result.after = mean_error(c->rows, c->count, &k, false, &again);
    c->result.before /= seen ? (double)seen : 1;
    c->result.after /= again ? (double)again : 1;
    if ((code = fold(c, &start, &f, err)) || (code = spread(c, f.ratio, &k, err)) ||
        (code = list_items(c, &start, &k, &f, err)))
        return code;
    fill_rows(c, &start, &k);
    make_table(c, &k);
    c->result.rows = c->shown;
    c->result.row_count = c->count;
    *out = &c->result;
    return ORR_OK;
}
