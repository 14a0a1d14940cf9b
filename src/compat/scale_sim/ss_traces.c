/* SPDX-License-Identifier: Apache-2.0 */
/* ss_traces.c - v1's traces of every word, byte for byte (scale-sim.md 5).
 *
 * The only place that handles words one by one: one line per cycle that reads or writes, with an
 * empty field per idle lane; memory traffic follows from these lines.  The files are large (1.2 GB
 * for ResNet-50) and are streamed; memory is that of the modelled buffers. */
#include "models/compute/systolic/scalesim_impl.h"
#include "scale_sim.h"
#include "ss_impl.h"

#include "base/io/output.h"
#include "base/text/number.h"
#include "base/text/text.h"

enum { SRAM_READ, SRAM_WRITE, DRAM_IFMAP, DRAM_FILTER, DRAM_OFMAP, FILES };
enum { FULL = 1 << 20, FIRST_RATE = 10, LAST_RATE = 10 };

static const char *const endings[FILES] = {"sram_read", "sram_write", "dram_ifmap_read",
                                           "dram_filter_read", "dram_ofmap_write"};

#define BLANK UINT64_MAX

typedef struct reading {
    python_set held;
    uint64_t size, low, high;
    int64_t from, to; /* cycles in which the current contents are fetched */
    bool has_from;
    bool is_float; /* the reference's clock has become a float */
} reading;

typedef struct writing {
    python_set halves[2];
    int filling;
    uint64_t size;
    int64_t swapped, now;
} writing;

typedef struct tracer {
    const orr__systolic *s;
    const uint64_t *walk;
    orr_output *out[FILES];
    orr_buf text[FILES];
    uint64_t *cells; /* of the current line */
    size_t count, room;
    reading reads[2];
    writing writes;
    bool has_failed;
} tracer;

/* ---- lines ---- */

static void put(tracer *t, uint64_t address)
{
    if (!orr_grow(&t->cells, &t->room, t->count + 1)) {
        t->has_failed = true;
        return;
    }
    t->cells[t->count++] = address;
}

static void put_blanks(tracer *t, uint64_t count)
{
    for (uint64_t i = 0; i < count && !t->has_failed; i++)
        put(t, BLANK);
}

static orr_buf *text_of(tracer *t, int file)
{
    if (t->text[file].len > FULL)
        orr_output_drain(t->out[file], &t->text[file]);
    return &t->text[file];
}

static void add_line(tracer *t, int file, uint64_t cycle)
{
    orr_buf *b = text_of(t, file);
    orr_buf_u64(b, cycle);
    orr_buf_text(b, ", ");
    for (size_t i = 0; i < t->count; i++) {
        if (t->cells[i] != BLANK)
            orr_buf_u64(b, t->cells[i]);
        orr_buf_text(b, ", ");
    }
    orr_buf_byte(b, '\n');
}

/* Empty a set at `rate` words per cycle from `cycle` on; returns the cycle after the last. */
static int64_t drain(
    tracer *t, int file, python_set *set, int64_t cycle, uint64_t rate, bool is_float)
{
    for (; set->used && !set->has_failed; cycle++) {
        orr_buf *b = text_of(t, file);
        if (is_float)
            ss_put_double(b, (double)cycle);
        else
            orr_buf_i64(b, cycle);
        orr_buf_text(b, ", ");
        for (uint64_t i = 0; i < rate && set->used; i++) {
            ss_put_double(b, (double)python_set_pop(set));
            orr_buf_text(b, ", ");
        }
        orr_buf_byte(b, '\n');
    }
    return cycle;
}

/* ---- buffers, scale-sim.md 4.1 and 4.2 ---- */

static void empty_reads(tracer *t, int operand)
{
    reading *r = &t->reads[operand];
    if (r->held.used == 0 || r->held.has_failed)
        return;
    if (!r->has_from)
        r->from = r->to - (int64_t)orr_div_up(r->held.used, FIRST_RATE);
    r->has_from = true;
    const uint64_t span = r->to > r->from ? (uint64_t)(r->to - r->from) : 1;
    drain(t, DRAM_IFMAP + operand, &r->held, r->from, orr_div_up(r->held.used, span), r->is_float);
}

static void take_read(tracer *t, int operand, uint64_t cycle, uint64_t address)
{
    reading *r = &t->reads[operand];
    if (address < r->low || address >= r->high || python_set_has(&r->held, address))
        return;
    if (r->held.used == r->size) {
        const bool is_first = !r->has_from;
        empty_reads(t, operand);
        r->from = r->to;
        r->is_float = !is_first; /* the first end is 0, an integer */
        r->to = (int64_t)cycle;
    }
    python_set_add(&r->held, address);
}

static void end_read(tracer *t, uint64_t cycle)
{
    add_line(t, SRAM_READ, cycle);
    for (int operand = 0; operand < 2; operand++)
        for (size_t i = 0; i < t->count; i++)
            if (t->cells[i] != BLANK)
                take_read(t, operand, cycle, t->cells[i]);
    t->count = 0;
}

static void end_write(tracer *t, uint64_t cycle)
{
    writing *w = &t->writes;
    uint64_t words = 0;
    add_line(t, SRAM_WRITE, cycle);
    for (size_t i = 0; i < t->count; i++)
        words += t->cells[i] != BLANK;
    w->now = (int64_t)cycle;
    if (w->halves[w->filling].used + words >= w->size) {
        python_set *other = &w->halves[!w->filling];
        if (other->used)
            drain(t, DRAM_OFMAP, other, w->swapped + 1,
                  orr_div_up(other->used, (uint64_t)(w->now - w->swapped)), true);
        w->filling = !w->filling;
        w->swapped = w->now;
    }
    for (size_t i = 0; i < t->count; i++)
        if (t->cells[i] != BLANK)
            python_set_add(&w->halves[w->filling], t->cells[i]);
    t->count = 0;
}

static void finish_buffers(tracer *t)
{
    writing *w = &t->writes;
    int64_t after = w->now;
    empty_reads(t, 0);
    empty_reads(t, 1);
    if (w->halves[!w->filling].used) {
        const int64_t end =
            drain(t, DRAM_OFMAP, &w->halves[!w->filling], w->swapped + 1, LAST_RATE, true);
        after = after > end ? after : end;
    }
    drain(t, DRAM_OFMAP, &w->halves[w->filling], after + 1, LAST_RATE, true);
}

/* ---- output stationary ---- */

static void put_os_filters(tracer *t, uint64_t cycle)
{
    const orr__systolic *s = t->s;
    const ss_os_folds g = ss_v1_os(s);
    for (uint64_t c = 0; c < s->C; c++) {
        const uint64_t x = cycle - c, f = x / (g.repeats * s->T) * s->C + c;
        const bool is_there = c < s->N && cycle >= c && f < s->N;
        put(t, is_there ? s->array->filter_offset + f * s->T + x % s->T : BLANK);
    }
}

static void os_row(tracer *t, const orr__folds *f, uint64_t cycle)
{
    const orr__systolic *s = t->s;
    for (uint64_t r = 0; r < s->R; r++) {
        const uint64_t pass = f->inner * s->T, x = cycle - r, y = x % pass;
        const uint64_t pixel = y / s->T * s->R + r;
        const bool is_there = r < s->E && cycle >= r && x / pass < f->outer && pixel < s->E;
        put(t, is_there ? ss_v1_word(s, pixel, y % s->T) : BLANK);
    }
}

static void lane_word(void *ctx, uint64_t cycle, uint64_t row, uint64_t address)
{
    tracer *t = ctx;
    (void)cycle;
    put_blanks(t, row - t->count);
    put(t, address);
}

static void lane_cycle(void *ctx, uint64_t cycle)
{
    tracer *t = ctx;
    put_blanks(t, t->s->R - t->count);
    put_os_filters(t, cycle);
    end_read(t, cycle);
}

static void write_os(tracer *t, const orr__folds *f)
{
    const orr__systolic *s = t->s;
    for (uint64_t v = 0; v < f->outer; v++)
        for (uint64_t h = 0; h < f->inner; h++) {
            const uint64_t start = ss_v1_os_write(s, v, h);
            for (uint64_t r = 0; r < orr__fold_rows(f, h); r++) {
                for (uint64_t c = 0; c < orr__fold_columns(f, v); c++)
                    put(t, s->array->ofmap_offset + (h * s->R + r) * s->N + v * s->C + c);
                end_write(t, start + r);
            }
        }
}

static orr_code trace_os(tracer *t, orr_error *err)
{
    const ss_os_folds g = ss_v1_os(t->s);
    const uint64_t cycles = (uint64_t)(g.column_end > g.row_end ? g.column_end : g.row_end);
    orr_code code = ORR_OK;
    if (ss_v1_is_degenerate(t->s)) {
        ss_v1_lane_counts lanes;
        const ss_v1_visitor visitor = {t, lane_word, lane_cycle};
        code = ss_v1_lanes(t->s, &visitor, &lanes, err);
    } else {
        for (uint64_t cycle = 0; cycle < cycles; cycle++) {
            os_row(t, &g.f, cycle);
            put_os_filters(t, cycle);
            end_read(t, cycle);
        }
    }
    write_os(t, &g.f);
    return code;
}

/* ---- folds of ws and is ---- */

/* One fold: `stacked` windows of `depth` elements from k on, over `mapped` columns. */
typedef struct fold {
    uint64_t v, start;
    uint64_t k, depth, stacked, mapped;
    uint64_t first; /* filter or pixel of column 0 */
} fold;

static uint64_t window_word(const tracer *t, uint64_t pixel, uint64_t k)
{
    if (t->walk)
        return t->walk[pixel] + ss_v1_word(t->s, 0, k);
    return ss_v1_word(t->s, pixel, k);
}

static void load_fold(tracer *t, const fold *f, bool is_ws, bool is_folded)
{
    const orr__systolic *s = t->s;
    for (uint64_t i = 0; i < f->stacked * f->depth; i++) {
        const uint64_t w = i / f->depth, k = f->k + i % f->depth;
        const uint64_t columns = orr_min_u64(s->C, f->mapped - w * s->C);
        put_blanks(t, s->R);
        for (uint64_t c = 0; c < columns; c++) {
            const uint64_t object = f->first + w * s->C + c;
            put(t, is_ws ? s->array->filter_offset + object * s->T + k
                         : s->array->ifmap_offset + ss_v1_word(s, object, k));
        }
        /* ws pads only stacked windows, and then with one field too many. */
        if (columns < s->C && !(is_ws && is_folded))
            put_blanks(t, s->C - columns + is_ws);
        end_read(t, f->start + i);
    }
}

static void stream_fold(tracer *t, const fold *f, bool is_ws, bool is_folded)
{
    const orr__systolic *s = t->s;
    const uint64_t steps = !is_ws ? s->N : is_folded ? ss_v1_streamed(s) : s->E;
    const uint64_t first = f->start + f->stacked * f->depth, used = f->stacked * f->depth;
    for (uint64_t x = 0; x < steps; x++) {
        for (uint64_t i = 0; i < used; i++) {
            const uint64_t k = f->k + f->depth - 1 - i % f->depth;
            /* is: filters are not rewound between columns (scale-sim.md 4) */
            const uint64_t filter = x + (is_folded ? f->v : 0);
            put(t, is_ws ? window_word(t, x, k) : s->array->filter_offset + filter * s->T + k);
        }
        if (is_folded)
            put_blanks(t, is_ws ? s->C : f->mapped);
        else
            put_blanks(t, s->R - used + (is_ws ? 2 : 1) * s->C);
        end_read(t, first + x);
    }
}

static void write_ws_fold(tracer *t, const fold *f, uint64_t done)
{
    const orr__systolic *s = t->s;
    const uint64_t lag = f->stacked > 1 ? s->C : f->mapped;
    for (uint64_t e = 0; e < s->E; e++) {
        for (uint64_t c = 0; c < f->mapped; c++)
            put(t, s->array->ofmap_offset + e * s->N + done + c);
        end_write(t, f->start + (f->stacked + 1) * f->depth + lag + e);
    }
}

static void write_is_fold(tracer *t, const fold *f)
{
    const orr__systolic *s = t->s;
    for (uint64_t x = 0; x < s->N + orr_min_u64(s->C, f->mapped); x++) {
        for (uint64_t c = 0; c < f->mapped; c++) {
            const uint64_t late = c % s->C, pixel = s->C * f->v * f->stacked + c;
            const bool is_there = x >= late && x - late < s->N;
            put(t, is_there ? s->array->ofmap_offset + pixel * s->N + x - late : BLANK);
        }
        end_write(t, f->start + (f->stacked + 1) * f->depth + x);
    }
}

static void trace_fold(tracer *t, const fold *f, uint64_t done)
{
    const bool is_ws = t->s->array->dataflow == ORR_DATAFLOW_WS, is_folded = t->s->T > t->s->R;
    load_fold(t, f, is_ws, is_folded);
    stream_fold(t, f, is_ws, is_folded);
    if (is_ws)
        write_ws_fold(t, f, done);
    else
        write_is_fold(t, f);
}

static void trace_folded(tracer *t)
{
    const orr__systolic *s = t->s;
    const orr__folds f =
        orr__folds_of(s->T, s->array->dataflow == ORR_DATAFLOW_WS ? s->N : s->E, s->R, s->C);
    uint64_t start = 0;
    for (uint64_t v = 0; v < f.outer; v++)
        for (uint64_t h = 0; h < f.inner && !t->has_failed; h++) {
            const uint64_t rows = orr__fold_rows(&f, h), columns = orr__fold_columns(&f, v);
            trace_fold(t, &(fold){v, start, h * s->R, rows, 1, columns, v * s->C}, v * s->C);
            start += ss_v1_fold(s, rows, columns);
        }
}

static void trace_stacked(tracer *t)
{
    const orr__systolic *s = t->s;
    const bool is_ws = s->array->dataflow == ORR_DATAFLOW_WS;
    const uint64_t across = is_ws ? s->N : s->E, width = s->R / s->T * s->C;
    uint64_t start = 0;
    for (uint64_t v = 0; v * width < across && !t->has_failed; v++) {
        const uint64_t done = v * width, mapped = orr_min_u64(width, across - done);
        const uint64_t stacked = orr_div_up(mapped, s->C);
        trace_fold(t, &(fold){v, start, 0, s->T, stacked, mapped, is_ws ? v * s->C : done}, done);
        start += ss_v1_stacked(s, mapped);
    }
}

/* ---- one layer ---- */

static void set_up(tracer *t)
{
    const orr_systolic_array *a = t->s->array;
    const uint64_t from[] = {a->ifmap_offset, a->filter_offset, a->ofmap_offset};
    for (int i = 0; i < 2; i++) {
        t->reads[i] = (reading){.low = from[i], .high = from[i + 1]};
        t->reads[i].size = i ? a->filter_words : a->ifmap_words;
        python_set_init(&t->reads[i].held);
        python_set_init(&t->writes.halves[i]);
    }
    t->writes.size = a->ofmap_words;
}

static bool has_failed(const tracer *t)
{
    bool failed = t->has_failed;
    for (int i = 0; i < 2; i++)
        failed = failed || t->reads[i].held.has_failed || t->writes.halves[i].has_failed;
    for (int i = 0; i < FILES; i++)
        failed = failed || t->text[i].failed;
    return failed;
}

static orr_code trace_words(tracer *t, orr_error *err)
{
    orr_code code = ORR_OK;
    if (t->s->array->dataflow == ORR_DATAFLOW_OS)
        code = trace_os(t, err);
    else if (t->s->T > t->s->R)
        trace_folded(t);
    else
        trace_stacked(t);
    if (code)
        return code;
    finish_buffers(t);
    return has_failed(t) ? orr_no_memory(err) : ORR_OK;
}

static orr_code open_files(
    tracer *t, const orr_scalesim *r, orr_str name, const char *folder, orr_error *err)
{
    orr_code code = ORR_OK;
    for (int i = 0; i < FILES && !code; i++) {
        orr_buf path = {0};
        orr_buf_print(&path, "%s/%s_%.*s_%s.csv", folder, r->network->name, (int)name.len, name.ptr,
                      endings[i]);
        orr_buf_byte(&path, '\0');
        code = path.failed ? orr_no_memory(err)
                           : orr_output_open((const char *)path.ptr, &t->out[i], err);
        orr_buf_fini(&path);
    }
    return code;
}

static orr_code trace_layer(const orr_scalesim *r, size_t i, const char *folder, orr_error *err)
{
    const orr_scalesim_layer *l = &r->network->layers[i];
    orr__systolic s;
    uint64_t *walk = NULL;
    tracer t = {.s = &s};
    orr_code code = orr__systolic_check(&r->config.array, &l->layer, &orr__scale_sim_v1, &s, err);
    if (!code)
        code = ss_v1_walk(&s, &walk, err);
    t.walk = walk;
    set_up(&t);
    if (!code)
        code = open_files(&t, r, l->name, folder, err);
    if (!code)
        code = trace_words(&t, err);
    for (int k = 0; k < FILES; k++) {
        if (!code) {
            orr_output_drain(t.out[k], &t.text[k]);
            code = orr_output_commit(&t.out[k], err);
        }
        orr_output_discard(t.out[k]);
        orr_buf_fini(&t.text[k]);
    }
    for (int k = 0; k < 2; k++) {
        python_set_fini(&t.reads[k].held);
        python_set_fini(&t.writes.halves[k]);
    }
    orr_free(t.cells);
    orr_free(walk);
    return code;
}

/* Names become parts of file names. */
orr_code ss_v1_check_names(const orr_scalesim *r, orr_error *err)
{
    const orr_scalesim_network *n = r->network;
    for (size_t i = 0; i < n->count; i++) {
        const orr_str name = n->layers[i].name;
        const orr_where w = orr_where_line(n->path, n->layers[i].line, 1);
        if (memchr(name.ptr, '/', name.len) || memchr(name.ptr, '\0', name.len))
            return orr_fail(err, ORR_EINPUT, &w,
                            "the layer's name cannot be a part of a file's name");
        for (size_t k = 0; k < i; k++)
            if (orr_str_equal(name, n->layers[k].name))
                return orr_fail(err, ORR_EINPUT, &w,
                                "a layer of this name is in line %u already, and both would have "
                                "the same trace files",
                                n->layers[k].line);
    }
    return ORR_OK;
}

orr_code ss_v1_write_traces(const orr_scalesim *r, const char *folder, orr_error *err)
{
    orr_code code = ORR_OK;
    for (size_t i = 0; i < r->network->count && !code; i++)
        code = trace_layer(r, i, folder, err);
    return code;
}
