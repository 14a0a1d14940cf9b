/* SPDX-License-Identifier: Apache-2.0 */
/* ss_traces_v2.c - v2's and v3's traces of every word, byte for byte (scale-sim.md 12.7).
 *
 * v3 always writes them, v2 if its library is asked to.  Reports come from closed forms elsewhere;
 * here the schedule is executed line by line, because each line is one of the file.  Buffer traces
 * are streamed.  Memory traces are kept until the end of the layer, because the widest prefetch
 * determines the width of all lines: eight bytes per fetched word. */
#include "scale_sim.h"

#include "base/io/output.h"
#include "base/memory/memory.h"
#include "base/text/number.h"
#include "base/text/text.h"
#include "models/compute/systolic/scalesim_impl.h"
#include "ss_impl.h"

enum { FULL = 1 << 20, SETS = 100, HALF = SETS / 2, FIRST_RATE = 10 };
enum { SRAM, DRAM, PLACES };

/* Lines of a memory trace that were requested together. */
typedef struct burst {
    int64_t from;   /* cycle of the first line, as printed */
    uint64_t lines; /* one per cycle */
    uint64_t rate;  /* words per line */
    size_t first;   /* index of its first word; missing ones are blank */
    size_t count;
} burst;

typedef struct trace_file {
    orr_output *out;
    orr_buf text;
} trace_file;

/* An operand that is read. */
typedef struct trace_reader {
    ss_words *words;
    uint64_t size, bandwidth; /* buffer size in words; words per cycle, 0: CALC */
    burst *bursts;
    size_t burst_count, burst_room;
    uint64_t *held; /* addresses of the bursts, in order */
    size_t held_count, held_room;

    /* CALC: fifty sets are filled, charged to an interval and dropped. */
    uint64_t low, *member; /* per address: 1 + the set it was last added to */
    python_set open;
    uint64_t set, sets, start, end;
    size_t charged; /* addresses already assigned to a burst */
    int64_t first;  /* cycle of the first request; -1: none yet */
    int64_t from, to;
    bool has_pending;

    /* USER: rows of the prefetch order. */
    uint64_t *order, rows, next_row, next_column, requests;
    bool has_begun;
} trace_reader;

/* The output: lines of `bandwidth` words, drained one per cycle. */
typedef struct trace_writer {
    uint64_t bandwidth, size;
    int64_t free, busy, *cycles;
    uint64_t *held; /* every line */
    size_t lines, room, column, drained, cycle_room;
} trace_writer;

typedef struct tracing {
    const orr__systolic *s; /* with as many elements as the filters have rows */
    orr__folds f;
    uint64_t pitch;
    trace_file files[ORR_OPERANDS][PLACES];
    trace_reader readers[2];
    trace_writer writer;
    bool has_failed; /* out of memory */
} tracing;

static int64_t latest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- text ---- */

static orr_buf *file_text(trace_file *f)
{
    if (f->text.len > FULL)
        orr_output_drain(f->out, &f->text);
    return &f->text;
}

static void add_word(orr_buf *b, uint64_t word)
{
    orr_buf_byte(b, ',');
    if (word == SS_NO_WORD)
        orr_buf_text(b, "-1.0");
    else
        ss_put_double(b, (double)word);
}

/* A line of a buffer trace: the cycle it is served in, then all lanes. */
static void add_lanes(
    tracing *t, int operand, int64_t cycle, const uint64_t *lanes, size_t count, const ss_words *w)
{
    orr_buf *b = file_text(&t->files[operand][SRAM]);
    orr_buf_i64(b, cycle);
    for (size_t i = 0; i < count; i++) {
        if (lanes[i] == SS_NO_WORD) {
            orr_buf_text(b, ",-1");
            continue;
        }
        orr_buf_byte(b, ',');
        orr_buf_u64(b, w ? ss_words_address(w, lanes[i]) : lanes[i]);
    }
    orr_buf_byte(b, '\n');
}

/* All lines are as wide as the widest burst; the reference pads with 1. */
static void write_bursts(tracing *t, int operand)
{
    const trace_reader *r = &t->readers[operand];
    uint64_t widest = 0;
    for (size_t i = 0; i < r->burst_count; i++)
        widest = orr_max_u64(widest, r->bursts[i].rate);
    for (size_t i = 0; i < r->burst_count; i++) {
        const burst *u = &r->bursts[i];
        for (uint64_t line = 0; line < u->lines; line++) {
            orr_buf *b = file_text(&t->files[operand][DRAM]);
            ss_put_double(b, (double)(u->from + (int64_t)line));
            for (uint64_t c = 0; c < u->rate; c++) {
                const uint64_t at = line * u->rate + c;
                add_word(b, at < u->count ? r->held[u->first + at] : SS_NO_WORD);
            }
            for (uint64_t c = u->rate; c < widest; c++)
                orr_buf_text(b, ",1.0");
            orr_buf_byte(b, '\n');
        }
    }
}

/* ---- reading, both modes ---- */

static void hold(tracing *t, trace_reader *r, uint64_t word)
{
    if (orr_grow(&r->held, &r->held_room, r->held_count + 1))
        r->held[r->held_count++] = word;
    else
        t->has_failed = true;
}

static void add_burst(tracing *t, trace_reader *r, const burst *u)
{
    if (orr_grow(&r->bursts, &r->burst_room, r->burst_count + 1))
        r->bursts[r->burst_count++] = *u;
    else
        t->has_failed = true;
}

/* ---- CALC: scale-sim.md 6.3 ---- */

static void close_set(tracing *t, trace_reader *r)
{
    while (r->open.used)
        hold(t, r, python_set_pop(&r->open));
    t->has_failed = t->has_failed || r->open.has_failed;
    python_set_fini(&r->open);
    python_set_init(&r->open);
}

/* Charge the held words to cycles [from, to]; the port answers one cycle later. */
static void charge(tracing *t, trace_reader *r, int64_t from, int64_t to, uint64_t rate)
{
    const burst u = {from + 1, (uint64_t)(to - from + 1), rate, r->charged,
                     r->held_count - r->charged};
    add_burst(t, r, &u);
    r->charged = r->held_count;
}

static void charge_pending(tracing *t, trace_reader *r, uint64_t words)
{
    charge(t, r, r->from, r->to, orr_div_up(words, (uint64_t)(r->to - r->from + 1)));
}

static void half_filled(tracing *t, trace_reader *r, int64_t cycle)
{
    const int64_t needed = (int64_t)orr_div_up(HALF * r->set, FIRST_RATE);
    if (r->has_pending)
        charge_pending(t, r, HALF * r->set);
    else
        charge(t, r, r->first - 1 - needed, r->first - 2, FIRST_RATE);
    r->from = r->has_pending ? r->to + 1 : r->first - 1;
    r->to = cycle;
    r->has_pending = true;
    r->start += HALF;
    r->end += HALF;
}

static void take(tracing *t, trace_reader *r, uint64_t word, int64_t cycle)
{
    uint64_t *member = &r->member[word - r->low];
    if (*member > r->start)
        return;
    *member = r->sets + 1;
    python_set_add(&r->open, ss_words_address(r->words, word));
    t->has_failed = t->has_failed || r->open.has_failed;
    if (r->open.used < r->set)
        return;
    close_set(t, r);
    if (++r->sets == r->end + 1)
        half_filled(t, r, cycle);
}

static void finish_calc(tracing *t, trace_reader *r)
{
    const uint64_t sets = r->sets + (r->open.used > 0);
    close_set(t, r);
    if (r->has_pending)
        charge_pending(t, r, (sets - r->start) * r->set);
    else
        charge(t, r, -1 - (int64_t)orr_div_up(sets * r->set, FIRST_RATE), -2, FIRST_RATE);
}

static orr_code open_calc(trace_reader *r, orr_error *err)
{
    r->low = ss_words_low(r->words);
    r->set = r->size / SETS;
    r->end = HALF - 1;
    r->first = -1;
    r->member = orr_alloc(ss_words_high(r->words) - r->low + 1, sizeof *r->member);
    return r->member ? ORR_OK : orr_no_memory(err);
}

/* ---- USER: rows of the order, continuing where the last prefetch appears to have ended ---- */

/* Request rows; a row that does not exist crashes the reference. */
static bool ask_rows(tracing *t, trace_reader *r, uint64_t lines, int64_t from)
{
    const uint64_t wide = r->bandwidth;
    burst u = {from, lines, wide, r->held_count, lines * wide};
    const bool wraps = r->next_row + lines > r->rows;
    if (wraps &&
        orr_min_u64(r->next_row + lines - r->rows, r->next_row) + r->rows - r->next_row != lines)
        return false;
    for (uint64_t i = 0; i < lines; i++) {
        uint64_t *row = &r->order[(r->next_row + i) % r->rows * wide];
        for (uint64_t c = 0; c < wide; c++)
            hold(t, r, row[c]);
    }
    if (t->has_failed)
        return true;
    /* Columns of an earlier request and those beyond the buffer are blank: also in the order
     * itself, unless the rows were copied because they wrap around its end. */
    const uint64_t active = orr_div_up(r->size, 2);
    uint64_t *held = &r->held[u.first], *kept = &r->order[r->next_row * wide];
    for (uint64_t c = 0; c < r->next_column && r->has_begun; c++) {
        held[c] = SS_NO_WORD;
        if (!wraps)
            kept[c] = SS_NO_WORD;
    }
    const bool is_over = lines * wide > active;
    for (uint64_t c = is_over ? active % wide : wide; c < wide; c++) {
        held[(lines - 1) * wide + c] = SS_NO_WORD;
        if (!wraps)
            kept[(lines - 1) * wide + c] = SS_NO_WORD;
    }
    if (!r->has_begun)
        r->next_column = is_over ? active % wide : 0;
    r->has_begun = true;
    r->next_row = (is_over ? lines : lines + 1) % r->rows;
    add_burst(t, r, &u);
    return true;
}

static orr_code open_user(trace_reader *r, bool is_v2, tracing *t, orr_error *err)
{
    const uint64_t places = ss_words_places(r->words);
    r->rows = orr_div_up(places, r->bandwidth);
    r->order = orr_alloc(r->rows * r->bandwidth, sizeof *r->order);
    if (!r->order)
        return orr_no_memory(err);
    ss_words_order(r->words, r->order);
    for (uint64_t i = 0; i < r->rows * r->bandwidth; i++)
        r->order[i] = i < places && r->order[i] != SS_NO_WORD
                          ? ss_words_address(r->words, r->order[i])
                          : SS_NO_WORD;
    if (is_v2)
        ss_words_count_once(r->words);
    const uint64_t lines = orr_min_u64(orr_div_up(orr_div_up(r->size, 2), r->bandwidth), r->rows);
    (void)ask_rows(t, r, lines, -(int64_t)lines);
    return ORR_OK;
}

/* The cycle in which a line is served; false: the reference crashes. */
static bool read_user(tracing *t, trace_reader *r, uint64_t line, int64_t *served)
{
    const uint64_t request = orr_div_up(r->size - orr_div_up(r->size, 2), r->bandwidth);
    uint64_t requests = r->requests;
    bool has_words;
    if (!ss_words_serve(r->words, line, request, &requests, served, &has_words))
        return false;
    for (; r->requests < requests; r->requests++)
        if (!ask_rows(t, r, request, (int64_t)(r->requests * (request + 1)) + 1))
            return false;
    return true;
}

/* ---- a line of the schedule ---- */

static bool read_line(tracing *t, int operand, uint64_t line, int64_t cycle, int64_t *late)
{
    trace_reader *r = &t->readers[operand];
    int64_t served = cycle + 1;
    const uint64_t *lanes;
    if (r->bandwidth && !read_user(t, r, line, &served))
        return false;
    const size_t count = ss_words_lanes(r->words, line, &lanes);
    for (size_t i = 0; i < count && !r->bandwidth; i++) {
        if (lanes[i] == SS_NO_WORD)
            continue;
        if (r->first < 0)
            r->first = cycle;
        take(t, r, lanes[i], cycle);
    }
    add_lanes(t, operand, served, lanes, count, r->words);
    *late = latest(*late, served - cycle - 1);
    return true;
}

/* What leaves the array in a line (scale-sim.md 6.2). */
static uint64_t result_at(const tracing *t, uint64_t line, uint64_t lane)
{
    const orr__systolic *s = t->s;
    const uint64_t fold = line / t->pitch, v = fold / t->f.inner, h = fold % t->f.inner;
    const uint64_t at = line % t->pitch, column = v * s->C + lane;
    uint64_t pixel, filter;
    if (s->array->dataflow == ORR_DATAFLOW_OS) {
        const uint64_t last = s->T - 1 + s->R - 1 + lane; /* row 0 leaves then */
        if (at > last || last - at >= s->R)
            return SS_NO_WORD;
        pixel = h * s->R + (last - at);
        filter = column;
    } else {
        if (at < 2 * s->R - 1 + lane)
            return SS_NO_WORD;
        const uint64_t step = at - (2 * s->R - 1 + lane);
        const bool is_ws = s->array->dataflow == ORR_DATAFLOW_WS;
        pixel = is_ws ? step : column;
        filter = is_ws ? column : step;
    }
    return pixel < s->E && filter < s->N ? s->array->ofmap_offset + pixel * s->N + filter
                                         : SS_NO_WORD;
}

/* Drain lines from this cycle on; returns the cycle of the last one. */
static int64_t drain(tracing *t, int64_t cycle)
{
    trace_writer *w = &t->writer;
    const uint64_t most = orr_div_up(w->size - orr_div_up(w->size, 2), w->bandwidth);
    const size_t count = (size_t)orr_min_u64(most, w->lines - w->drained);
    if (!orr_grow(&w->cycles, &w->cycle_room, w->drained + count)) {
        t->has_failed = true;
        return cycle;
    }
    w->free += (int64_t)(count * w->bandwidth);
    for (uint64_t c = 0; c < w->bandwidth; c++) /* only the last line's blanks are counted */
        w->free -= w->held[(w->drained + count - 1) * w->bandwidth + c] == SS_NO_WORD;
    for (size_t i = 0; i < count; i++)
        w->cycles[w->drained++] = cycle + (int64_t)i;
    return cycle + (int64_t)count - 1;
}

static void store(tracing *t, uint64_t word)
{
    trace_writer *w = &t->writer;
    if (w->column == 0) {
        if (!orr_grow(&w->held, &w->room, (w->lines + 1) * w->bandwidth)) {
            t->has_failed = true;
            return;
        }
        for (uint64_t c = 0; c < w->bandwidth; c++)
            w->held[w->lines * w->bandwidth + c] = SS_NO_WORD;
        w->lines++;
    }
    w->held[(w->lines - 1) * w->bandwidth + w->column] = word;
    w->column = (w->column + 1) % w->bandwidth;
    w->free--;
}

static int64_t write_line(tracing *t, uint64_t line, int64_t cycle, uint64_t *lanes)
{
    trace_writer *w = &t->writer;
    const int64_t low = (int64_t)orr_div_up(w->size, 2);
    int64_t now = cycle;
    for (uint64_t lane = 0; lane < t->s->C; lane++) {
        lanes[lane] = result_at(t, line, lane);
        if (lanes[lane] == SS_NO_WORD || t->has_failed)
            continue;
        store(t, lanes[lane]);
        if (now < w->busy) {
            if (w->free <= 0)
                now = w->busy;
        } else if (w->free < low && !t->has_failed) {
            w->column = 0; /* a line that was started goes out as it is */
            w->busy = drain(t, now);
        }
    }
    add_lanes(t, ORR_OPERAND_OFMAP, now, lanes, t->s->C, NULL);
    return now;
}

static void write_drained(tracing *t)
{
    const trace_writer *w = &t->writer;
    for (size_t i = 0; i < w->drained; i++) {
        orr_buf *b = file_text(&t->files[ORR_OPERAND_OFMAP][DRAM]);
        ss_put_double(b, (double)w->cycles[i]);
        for (uint64_t c = 0; c < w->bandwidth; c++)
            add_word(b, w->held[i * w->bandwidth + c]);
        orr_buf_byte(b, '\n');
    }
}

/* ---- a layer ---- */

static bool has_failed(const tracing *t)
{
    bool failed = t->has_failed;
    for (int i = 0; i < ORR_OPERANDS; i++)
        for (int k = 0; k < PLACES; k++)
            failed = failed || t->files[i][k].text.failed;
    return failed;
}

static orr_code go_through(tracing *t, orr_error *err)
{
    const uint64_t lines = t->f.inner * t->f.outer * t->pitch;
    uint64_t *lanes = orr_alloc(t->s->C, sizeof *lanes);
    int64_t stalls = 0, written = 0;
    bool is_fine = true;
    for (uint64_t line = 0; lanes && line < lines && is_fine && !has_failed(t); line++) {
        const int64_t cycle = (int64_t)line + stalls;
        int64_t late = 0;
        is_fine = read_line(t, ORR_OPERAND_IFMAP, line, cycle, &late) &&
                  read_line(t, ORR_OPERAND_FILTER, line, cycle, &late);
        written = write_line(t, line, cycle, lanes);
        stalls += latest(late, written - cycle);
    }
    orr_free(lanes);
    if (!lanes || has_failed(t))
        return orr_no_memory(err);
    if (!is_fine)
        return orr_fail(err, ORR_EINPUT, NULL,
                        "SCALE-Sim fails here: it prefetches more lines than the operand has");
    for (int i = 0; i < 2; i++) {
        if (!t->readers[i].bandwidth)
            finish_calc(t, &t->readers[i]);
        write_bursts(t, i);
    }
    while (t->writer.drained < t->writer.lines && !has_failed(t))
        written = drain(t, written) + 1;
    write_drained(t);
    return has_failed(t) ? orr_no_memory(err) : ORR_OK;
}

static orr_code open_files(tracing *t, const char *folder, size_t layer, orr_error *err)
{
    static const char *const names[] = {"IFMAP", "FILTER", "OFMAP"};
    static const char *const places[] = {"SRAM", "DRAM"};
    orr_code code = ORR_OK;
    for (int i = 0; i < ORR_OPERANDS * PLACES && !code; i++) {
        orr_buf path = {0};
        orr_buf_print(&path, "%s/layer%zu/%s_%s_TRACE.csv", folder, layer, names[i / PLACES],
                      places[i % PLACES]);
        orr_buf_byte(&path, '\0');
        code = path.failed ? orr_no_memory(err)
                           : orr_output_open_deep((const char *)path.ptr,
                                                  &t->files[i / PLACES][i % PLACES].out, err);
        orr_buf_fini(&path);
    }
    return code;
}

static orr_code close_files(tracing *t, orr_code code, orr_error *err)
{
    for (int i = 0; i < ORR_OPERANDS * PLACES; i++) {
        trace_file *f = &t->files[i / PLACES][i % PLACES];
        if (!code) {
            orr_output_drain(f->out, &f->text);
            code = orr_output_commit(&f->out, err);
        }
        orr_output_discard(f->out);
        orr_buf_fini(&f->text);
    }
    return code;
}

static orr_code open_operands(tracing *t, const ss_matrices *m, bool is_v2, orr_error *err)
{
    const orr_systolic_array *a = t->s->array;
    const bool has_user = a->bandwidth > 0;
    const uint64_t common = (uint64_t)a->bandwidth;
    t->readers[0].size = a->ifmap_words;
    t->readers[1].size = a->filter_words;
    t->readers[0].bandwidth = !has_user ? 0 : is_v2 ? common : a->ifmap_banks.bandwidth;
    t->readers[1].bandwidth = !has_user ? 0 : is_v2 ? common : a->filter_banks.bandwidth;
    t->writer.bandwidth = has_user ? common : t->s->C;
    t->writer.size = a->ofmap_words;
    t->writer.free = (int64_t)a->ofmap_words;
    orr_code code = ORR_OK;
    for (int i = 0; i < 2 && !code; i++) {
        trace_reader *r = &t->readers[i];
        python_set_init(&r->open);
        code = ss_words_open(m, t->s, i == 1, r->bandwidth, &r->words, err);
        if (!code)
            code = r->bandwidth ? open_user(r, is_v2, t, err) : open_calc(r, err);
    }
    return code;
}

static void close_operands(tracing *t)
{
    for (int i = 0; i < 2; i++) {
        trace_reader *r = &t->readers[i];
        ss_words_close(r->words);
        python_set_fini(&r->open);
        orr_free(r->bursts);
        orr_free(r->held);
        orr_free(r->member);
        orr_free(r->order);
    }
    orr_free(t->writer.held);
    orr_free(t->writer.cycles);
}

static orr_code trace_layer(const orr_scalesim *r, size_t i, const char *folder, orr_error *err)
{
    const bool is_v2 = r->opt.rules == &orr__scale_sim_v2;
    const orr_scalesim_layer *l = &r->network->layers[i];
    orr__systolic s;
    ss_matrices m = {0};
    tracing t = {0};
    uint64_t steps;
    orr_code code = orr__systolic_check(&r->config.array, &l->layer, r->opt.rules, &s, err);
    if (!code)
        code = ss_v3_matrices(&s, &m, err);
    if (code)
        return code;
    orr__systolic folds = s;
    folds.T = m.rows;
    t.s = &folds;
    t.f = orr__systolic_true_folds(&folds, &steps);
    t.pitch = ss_v2_fold_cycles(&folds);
    code = open_files(&t, folder, i, err);
    if (!code)
        code = open_operands(&t, &m, is_v2, err);
    if (!code)
        code = go_through(&t, err);
    code = close_files(&t, code, err);
    close_operands(&t);
    orr_free(m.fill);
    return code;
}

orr_code ss_v2_write_traces(const orr_scalesim *r, const char *folder, orr_error *err)
{
    orr_code code = ORR_OK;
    for (size_t i = 0; i < r->network->count && !code; i++)
        code = trace_layer(r, i, folder, err);
    return code;
}
