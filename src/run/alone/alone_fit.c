/* SPDX-License-Identifier: Apache-2.0 */
/* alone_fit.c - the constants of a machine from measured rows, and how sure they are.
 *
 * The fit is nccl_fit's.  It is repeated five times with a fifth of the rows left out: what the
 * constants do then is their interval (jackknife), and how far the rows left out lie from the model
 * is the interval of its times. */
#include "alone.h"

#include "base/io/input.h"
#include "base/memory/memory.h"
#include "models/collective/nccl/nccl_fit.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* Which operation it was, where the text has no name: by redop, root and busbw over algbw. */
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

/* 90 % of the ratios of each size class; a class with few rows keeps what it had, or all rows'. */
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
        qsort(of, n, sizeof *of, compare);
        cut = n / 20;
        k->spread[class].low = of[cut] < 0.97 ? of[cut] : 0.97;
        k->spread[class].high = of[n - 1 - cut] > 1.03 ? of[n - 1 - cut] : 1.03;
    }
    return ORR_OK;
}

typedef struct folded {
    double (*value)[FOLDS]; /* of each knob */
    double *ratio;          /* of each row, when it was left out */
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

/* Constants that moved, with the jackknife's interval in the logarithm. */
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
