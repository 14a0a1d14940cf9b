/* SPDX-License-Identifier: Apache-2.0 */
/* operator_match.c - matches the calls of both sides.
 *
 * A measured operator calls others.  It counts if the captured side has an operator of its name:
 * its callees are then its implementation.  Otherwise its callees count, down to operators whose
 * callees do no work.
 *
 * Calls are gathered by name and shapes; the smaller number of calls on the two sides is matched.
 * Without recorded shapes, remaining calls of the same name match.  Cost: sorting the kinds of
 * calls, and the callers of each call. */
#include "match_impl.h"

#include "base/arithmetic.h"
#include "base/io/input.h"
#include "base/memory/buffer.h"
#include "base/memory/sort.h"
#include "base/text/text.h"
#include "models/compute/atlas/chip_cost.h"
#include "models/compute/operators/operator_cost.h"

#include <stdlib.h>

/* ==== equivalent operators.
 *
 * A capture without a GPU dispatches what a CPU would, so a few names differ though the work is the
 * same: attention has a kernel for each device, gradients are added in place or not, fresh memory
 * is zeroed by one of several names. */

static const struct {
    const char *name, *counts_as;
} same[] = {
    {"_to_copy", "copy"},
    {"clone", "copy"},
    {"contiguous", "copy"},
    {"full", "fill"},
    {"full_like", "fill"},
    {"new_full", "fill"},
    {"new_ones", "fill"},
    {"new_zeros", "fill"},
    {"ones", "fill"},
    {"ones_like", "fill"},
    {"zero", "fill"},
    {"zeros", "fill"},
    {"zeros_like", "fill"},
    {"_unsafe_view", "view"},
    {"_reshape_alias", "view"},
    {"_log_softmax", "log_softmax"},
    {"_softmax", "softmax"},
    {"_fused_rms_norm", "rms_norm"},
    {"_fused_rms_norm_backward", "rms_norm_backward"},
};

static const char attention[] = "scaled_dot_product_attention";
static const char attention_backward[] = "scaled_dot_product_attention_backward";

/* Every attention kernel has a rule of its kind; NULL: not attention. */
static const char *attention_name(const operator_row *row)
{
    switch (row ? (operator_rule)row->rule : RULE_FREE) {
    case RULE_ATTENTION:
    case RULE_ATTENTION_ROWS:
        return attention;
    case RULE_ATTENTION_BACKWARD:
    case RULE_ATTENTION_ROWS_BACKWARD:
        return attention_backward;
    default:
        return NULL;
    }
}

static orr_str plain_name(orr_str text)
{
    const operator_name name = orr__operator_name(text);
    const operator_row *row = orr__operator_row(&name);
    if (!orr_str_is(name.space, "aten"))
        return text;
    if (attention_name(row))
        return orr_str_of(attention_name(row));
    const orr_str base = {name.base.ptr, name.base.len - (name.is_in_place ? 1 : 0)};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        if (orr_str_is(base, same[i].name))
            return orr_str_of(same[i].counts_as);
    }
    return base;
}

/* The canonical name of an operator and its equivalents on other devices. */
static bool name_of_op(match *m, orr_str op, uint32_t *number)
{
    const uint32_t before = orr_intern_count(m->names);
    if (!orr_intern_add(m->names, plain_name(op), number))
        return false;
    if (*number != before)
        return true;
    if (!orr_grow(&m->flags, &m->flag_room, (size_t)before + 1))
        return false;
    m->flags[before] = 0;
    return true;
}

/* The name of the single-tensor form of a list operation; MATCH_NONE: none. */
static bool single_of(match *m, uint32_t name, uint32_t *number)
{
    const orr_str text = orr_intern_get(m->names, name);
    const size_t mark = strlen("_foreach_");
    *number = MATCH_NONE;
    if (text.len <= mark || memcmp(text.ptr, "_foreach_", mark) != 0)
        return true;
    /* The table of texts may move while a new one is added. */
    char copy[128];
    if (text.len - mark >= sizeof copy)
        return true;
    memcpy(copy, text.ptr + mark, text.len - mark);
    return name_of_op(m, (orr_str){copy, text.len - mark}, number);
}

/* ---- shapes ---- */

enum { LIST_MOST = 8 };

/* How many tensors distinguish calls: of attention queries, keys and values, since the rest (sums
 * of exponentials, seeds) differs from kernel to kernel.  Long lists are not recorded. */
static uint32_t told_apart_by(const operator_call *call)
{
    const operator_name name = orr__operator_name(call->name);
    const operator_row *row = orr__operator_row(&name);
    const char *kernel = attention_name(row);
    if (kernel)
        return kernel == attention ? 3 : 4;
    if (name.is_list || (row && row->rule == RULE_OPTIMIZER))
        return 0;
    return row && row->rule == RULE_MOVE && call->in_count > LIST_MOST ? 0 : UINT32_MAX;
}

/* The distinguishing shapes as text. */
static bool shapes_of(match *m, const operator_call *call, uint32_t *number)
{
    const uint32_t most = told_apart_by(call);
    orr_buf text = {0};
    bool ok;
    for (uint32_t i = 0; i < call->in_count && i < most; i++) {
        const operator_tensor *t = &call->in[i];
        if (t->rank && text.len)
            orr_buf_byte(&text, '|');
        for (uint32_t k = 0; k < t->rank; k++) {
            if (k)
                orr_buf_byte(&text, 'x');
            orr_buf_u64(&text, t->shape[k]);
        }
    }
    ok = !text.failed &&
         orr_intern_add(m->shapes, (orr_str){text.len ? (const char *)text.ptr : "", text.len},
                        number);
    orr_buf_fini(&text);
    return ok;
}

/* ==== everything ==== */

enum { DEPTH_MOST = 1000 };

/* ---- one call ---- */

/* Work and launch overhead. */
static orr_ps predict(const orr_hardware *hw, const operator_cost *cost)
{
    const operator_rates rates = {.arrays = orr_hardware_peak(hw),
                                  .vector = (double)hw->vector_width * (double)hw->clock_hz,
                                  .memory = (double)hw->memory_bandwidth};
    const double seconds = orr__operator_seconds(cost, &rates) + (double)hw->overhead / 1e12;
    return seconds < 9e6 ? (orr_ps)(seconds * 1e12 + 0.5) : (orr_ps)9e18;
}

/* The kernels that convert fx writes for the call, at the chip's highest clock. */
static orr_ps predict_kernels(const orr_chip *chip,
                              const operator_call *call,
                              const operator_cost *cost)
{
    const operator_name name = orr__operator_name(call->name);
    orr_kernel kernels[OPERATOR_KERNELS];
    const size_t count =
        orr__operator_kernels(call, &name, orr__operator_row(&name), cost, kernels);
    double us = 0;
    for (size_t i = 0; i < count; i++) {
        chip_cost c;
        if (orr__chip_cost(chip, &kernels[i], 1, &c))
            us += c.fixed_us + c.clocked_us;
    }
    if (!count) {
        const chip_cost c = orr__chip_roofline(
            chip->peak_tflops[ORR_TYPE_BF16] * 1e12, chip->memory_GBps * 1e9, chip->launch_us,
            (double)cost->flops, (double)cost->bytes_read + (double)cost->bytes_written);
        us = c.fixed_us + c.clocked_us;
    }
    return us < 9e12 ? (orr_ps)(us * 1e6 + 0.5) : (orr_ps)9e18;
}

static orr_ps plus_time(orr_ps a, orr_ps b)
{
    orr_ps out;
    return __builtin_add_overflow(a, b, &out) ? INT64_MAX : out;
}

/* Whether a mask was causal or a convolution transposed is not recorded: taken from the captured
 * side. */
static operator_call with_hints(const match *m, int side, const operator_call *call, uint32_t name)
{
    operator_call out = *call;
    if (side == MATCH_MEASURED) {
        out.is_causal = m->flags[name] & MATCH_IS_CAUSAL;
        out.is_transposed = m->flags[name] & MATCH_IS_TRANSPOSED;
    }
    return out;
}

static void note_captured(match *m, const operator_call *call, uint32_t name)
{
    m->flags[name] |= MATCH_IS_CAPTURED;
    if (call->is_causal)
        m->flags[name] |= MATCH_IS_CAUSAL;
    if (call->is_transposed)
        m->flags[name] |= MATCH_IS_TRANSPOSED;
}

/* If the other side works tensor by tensor, a list operation counts as one call per tensor. */
static bool take_apart(match *m, const match_draft *d, uint32_t *name, uint64_t *count)
{
    uint32_t single;
    if (m->flags[*name] & MATCH_IS_CAPTURED)
        return true;
    if (!single_of(m, *name, &single))
        return false;
    if (single != MATCH_NONE && m->flags[single] & MATCH_IS_CAPTURED) {
        *name = single;
        *count = orr_sat_mul(*count, d->list_length ? d->list_length : 1);
    }
    return true;
}

orr_code match_add(match *m, int side, const match_draft *d, orr_error *err)
{
    match_side *s = &m->sides[side];
    match_call c = {.caller = d->caller, .cover = MATCH_NONE, .count = d->count, .time = d->time};
    if (!name_of_op(m, d->call.name, &c.name) || !shapes_of(m, &d->call, &c.shapes))
        return orr_no_memory(err);
    const operator_call call = with_hints(m, side, &d->call, c.name);
    const operator_cost cost = orr__operator_cost(&call);
    if (cost.kind == OPERATOR_COLLECTIVE || cost.kind == OPERATOR_WAIT)
        return ORR_OK;
    c.is_free = cost.kind == OPERATOR_FREE;
    c.is_blank = cost.kind == OPERATOR_COMPUTE && call.in_count + call.out_count == 0;
    c.flops = orr_sat_mul(cost.flops, d->count);
    c.bytes = orr_sat_mul(orr_sat_add(cost.bytes_read, cost.bytes_written), d->count);
    if (side == MATCH_CAPTURED) {
        note_captured(m, &call, c.name);
        c.is_counted = true;
        c.predicted = c.is_free ? 0
                      : m->chip ? predict_kernels(m->chip, &call, &cost)
                      : m->hw   ? predict(m->hw, &cost)
                                : 0;
    } else if (!take_apart(m, d, &c.name, &c.count)) {
        return orr_no_memory(err);
    }
    if (s->count == MATCH_NONE - 1 || !orr_grow(&s->calls, &s->room, s->count + 1))
        return orr_no_memory(err);
    s->calls[s->count++] = c;
    return ORR_OK;
}

/* ---- which measured calls count ---- */

enum { HAS_CALLEES = 1, HAS_WORK = 2 };

/* Marks calls with callees, and calls with callees that do work. */
static void mark_callers(const match_side *s, uint8_t *marks)
{
    for (size_t i = 0; i < s->count; i++) {
        const match_call *c = &s->calls[i];
        const uint8_t mark = HAS_CALLEES | (c->is_free ? 0 : HAS_WORK);
        uint32_t at = c->caller;
        for (int depth = 0; at < s->count && depth < DEPTH_MOST; depth++) {
            if ((marks[at] & mark) == mark)
                break; /* marked above already */
            marks[at] |= mark;
            at = s->calls[at].caller;
        }
    }
}

/* A view that turned out to be a copy does not end the search. */
static bool is_stop(const match *m, const match_call *c, uint8_t marks)
{
    return m->flags[c->name] & MATCH_IS_CAPTURED && (!c->is_free || !(marks & HAS_WORK));
}

static uint32_t outermost_stop(const match *m, const match_call *c, const uint8_t *marks)
{
    const match_side *s = &m->sides[MATCH_MEASURED];
    uint32_t found = MATCH_NONE, at = c->caller;
    for (int depth = 0; at < s->count && depth < DEPTH_MOST; depth++) {
        if (is_stop(m, &s->calls[at], marks[at]))
            found = s->calls[at].name;
        at = s->calls[at].caller;
    }
    return found;
}

static orr_code choose_calls(match *m, orr_error *err)
{
    match_side *s = &m->sides[MATCH_MEASURED];
    uint8_t *marks = orr_alloc(s->count + 1, 1);
    if (!marks)
        return orr_no_memory(err);
    memset(marks, 0, s->count + 1);
    mark_callers(s, marks);
    for (size_t i = 0; i < s->count; i++) {
        match_call *c = &s->calls[i];
        const bool is_leaf = !(marks[i] & (c->is_free ? HAS_CALLEES : HAS_WORK));
        c->cover = outermost_stop(m, c, marks);
        c->is_counted = c->cover == MATCH_NONE && (is_leaf || is_stop(m, c, marks[i]));
    }
    orr_free(marks);
    return ORR_OK;
}

/* ---- kinds of calls: one name, one list of shapes ---- */

typedef struct kind {
    uint32_t name, shapes;
    uint64_t calls[MATCH_SIDES], flops[MATCH_SIDES], bytes[MATCH_SIDES];
    uint64_t alike;
    orr_ps time, predicted;
} kind;

typedef struct kinds {
    kind *list;
    size_t count, room;
    orr_map *places;
} kinds;

static kind *kind_of(kinds *k, uint32_t name, uint32_t shapes)
{
    const uint64_t key = (uint64_t)name << 32 | shapes;
    uint32_t at = orr_map_find(k->places, key, MATCH_NONE);
    if (at != MATCH_NONE)
        return &k->list[at];
    if (!orr_grow(&k->list, &k->room, k->count + 1) ||
        !orr_map_put(k->places, key, (uint32_t)k->count, NULL))
        return NULL;
    at = (uint32_t)k->count++;
    k->list[at] = (kind){.name = name, .shapes = shapes};
    return &k->list[at];
}

static bool gather_side(match *m, int side, kinds *k, orr_operators *o)
{
    uint32_t no_shapes;
    if (!orr_intern_add(m->shapes, (orr_str){"", 0}, &no_shapes))
        return false;
    for (size_t i = 0; i < m->sides[side].count; i++) {
        const match_call *c = &m->sides[side].calls[i];
        if (c->is_free && c->is_counted)
            o->views[side] = orr_sat_add(o->views[side], c->count);
        if ((c->is_free || !c->is_counted) && c->time == 0)
            continue;
        const bool is_own = c->is_counted && !c->is_free;
        kind *to =
            kind_of(k, c->cover != MATCH_NONE ? c->cover : c->name, is_own ? c->shapes : no_shapes);
        if (!to)
            return false;
        to->time = plus_time(to->time, c->time);
        to->predicted = plus_time(to->predicted, c->predicted);
        to->calls[side] = orr_sat_add(to->calls[side], is_own ? c->count : 0);
        to->flops[side] = orr_sat_add(to->flops[side], is_own ? c->flops : 0);
        to->bytes[side] = orr_sat_add(to->bytes[side], is_own ? c->bytes : 0);
        if (is_own && side == MATCH_MEASURED && c->is_blank)
            o->without_shapes = orr_sat_add(o->without_shapes, c->count);
    }
    return true;
}

/* qsort has no context argument, so the entry holds the texts. */
typedef struct sorted {
    orr_str name, shapes;
    kind k;
} sorted;

static int compare_text(orr_str a, orr_str b)
{
    const size_t n = a.len < b.len ? a.len : b.len;
    const int order = n ? memcmp(a.ptr, b.ptr, n) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

/* Unrecorded shapes come last within a name, so that others match first. */
static int by_name(const void *a, const void *b)
{
    const sorted *x = a, *y = b;
    const int order = compare_text(x->name, y->name);
    if (order)
        return order;
    if ((x->shapes.len == 0) != (y->shapes.len == 0))
        return x->shapes.len == 0 ? 1 : -1;
    return compare_text(x->shapes, y->shapes);
}

/* Of a part of so many calls. */
static uint64_t share_of(uint64_t what, uint64_t part, uint64_t whole)
{
    return whole ? (uint64_t)((unsigned __int128)what * part / whole) : 0;
}

/* ---- one name ---- */

static void pair_shapes(sorted *list, size_t count, orr_operator_row *row)
{
    uint64_t left[MATCH_SIDES] = {0, 0};
    for (size_t i = 0; i < count; i++) {
        kind *k = &list[i].k;
        k->alike = orr_min_u64(k->calls[0], k->calls[1]);
        for (int s = 0; s < MATCH_SIDES; s++) {
            row->calls[s] = orr_sat_add(row->calls[s], k->calls[s]);
            row->flops[s] = orr_sat_add(row->flops[s], k->flops[s]);
            row->bytes[s] = orr_sat_add(row->bytes[s], k->bytes[s]);
            left[s] = orr_sat_add(left[s], k->calls[s] - k->alike);
        }
        row->time = plus_time(row->time, k->time);
        row->predicted = plus_time(row->predicted, k->predicted);
        row->alike = orr_sat_add(row->alike, k->alike);
    }
    row->matched = orr_min_u64(row->calls[0], row->calls[1]);
    /* The one without shapes comes last, if there is one. */
    kind *last = &list[count - 1].k;
    if (list[count - 1].shapes.len)
        return;
    const uint64_t unknown = orr_min_u64(last->calls[1] - last->alike, left[0]);
    last->alike = orr_sat_add(last->alike, unknown);
    row->alike = orr_sat_add(row->alike, unknown);
}

static uint64_t matched_flops(const sorted *list, size_t count)
{
    uint64_t flops = 0;
    for (size_t i = 0; i < count; i++)
        flops = orr_sat_add(flops, share_of(list[i].k.flops[1],
                                            orr_min_u64(list[i].k.alike, list[i].k.calls[1]),
                                            list[i].k.calls[1]));
    return flops;
}

static const char *reason(const orr_operator_row *row, const kind *k)
{
    if (row->calls[1] == 0)
        return "was captured only";
    if (row->calls[0] == 0)
        return "was measured only";
    if (row->calls[0] == row->calls[1])
        return "other shapes";
    return k->calls[0] > k->calls[1] ? "captured more often" : "measured more often";
}

static void add_gaps(orr_operators *o,
                     orr_operator_gap *gaps,
                     const sorted *list,
                     size_t count,
                     const orr_operator_row *row)
{
    for (size_t i = 0; i < count; i++) {
        const kind *k = &list[i].k;
        /* Left-over captured calls may be the measured ones without shapes. */
        const bool is_short = k->calls[1] > k->alike;
        const bool is_over = k->calls[0] > k->alike && row->calls[0] > row->alike;
        if (!is_short && !is_over)
            continue;
        gaps[o->gap_count++] = (orr_operator_gap){.name = list[i].name,
                                                  .shapes = list[i].shapes,
                                                  .calls = {k->calls[0], k->calls[1]},
                                                  .why = reason(row, k)};
    }
}

static void add_to_sums(orr_operators *o, const orr_operator_row *row)
{
    for (int s = 0; s < MATCH_SIDES; s++) {
        o->calls[s] = orr_sat_add(o->calls[s], row->calls[s]);
        o->flops[s] = orr_sat_add(o->flops[s], row->flops[s]);
        o->bytes[s] = orr_sat_add(o->bytes[s], row->bytes[s]);
    }
    o->matched = orr_sat_add(o->matched, row->matched);
    o->alike = orr_sat_add(o->alike, row->alike);
    o->time = plus_time(o->time, row->time);
    o->predicted = plus_time(o->predicted, row->predicted);
    if (row->calls[1])
        o->time_matched = plus_time(
            o->time_matched, (orr_ps)share_of((uint64_t)row->time, row->matched, row->calls[1]));
}

/* ---- the result ---- */

static int by_time(const void *a, const void *b)
{
    const orr_operator_row *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? 1 : -1;
    const uint64_t fx = orr_sat_add(x->flops[0], x->flops[1]),
                   fy = orr_sat_add(y->flops[0], y->flops[1]);
    if (fx != fy)
        return fx < fy ? 1 : -1;
    const uint64_t bx = orr_sat_add(x->bytes[0], x->bytes[1]),
                   by = orr_sat_add(y->bytes[0], y->bytes[1]);
    if (bx != by)
        return bx < by ? 1 : -1;
    return compare_text(x->name, y->name);
}

static orr_code fill_result(match *m, const kinds *k, orr_operators *o, orr_error *err)
{
    orr_arena *a = o->store->arena;
    sorted *list = orr_arena_new(a, k->count + 1, sorted);
    orr_operator_row *rows = orr_arena_new(a, k->count + 1, orr_operator_row);
    orr_operator_gap *gaps = orr_arena_new(a, k->count + 1, orr_operator_gap);
    if (!list || !rows || !gaps)
        return orr_no_memory(err);
    for (size_t i = 0; i < k->count; i++)
        list[i] = (sorted){orr_intern_get(m->names, k->list[i].name),
                           orr_intern_get(m->shapes, k->list[i].shapes), k->list[i]};
    orr_sort(list, k->count, sizeof *list, by_name);
    for (size_t from = 0, to; from < k->count; from = to) {
        orr_operator_row *row = &rows[o->row_count++];
        row->name = list[from].name;
        for (to = from + 1; to < k->count && list[to].k.name == list[from].k.name;)
            to++;
        pair_shapes(list + from, to - from, row);
        o->flops_matched = orr_sat_add(o->flops_matched, matched_flops(list + from, to - from));
        add_gaps(o, gaps, list + from, to - from, row);
        add_to_sums(o, row);
    }
    orr_sort(rows, o->row_count, sizeof *rows, by_time);
    o->rows = rows;
    o->gaps = gaps;
    o->has_bytes = m->sides[MATCH_MEASURED].has_bytes;
    o->has_times = m->sides[MATCH_MEASURED].has_times;
    o->has_hardware = m->chip || m->hw;
    o->launches =
        m->hw ? (orr_ps)orr_min_u64(orr_sat_mul((uint64_t)m->hw->overhead, o->calls[0]), INT64_MAX)
              : 0;
    return ORR_OK;
}

static orr_code make_result(match *m, orr_operators *o, orr_error *err)
{
    kinds k = {.places = orr_map_create(256)};
    orr_code code = k.places ? choose_calls(m, err) : orr_no_memory(err);
    if (!code && (!gather_side(m, MATCH_CAPTURED, &k, o) || !gather_side(m, MATCH_MEASURED, &k, o)))
        code = orr_no_memory(err);
    if (!code)
        code = fill_result(m, &k, o, err);
    orr_map_destroy(k.places);
    orr_free(k.list);
    return code;
}

/* ---- from files ---- */

/* The first non-blank byte: JSON is an object here, a table starts with a name. */
static bool is_json(orr_span bytes)
{
    size_t i = bytes.len >= 3 && memcmp(bytes.ptr, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    while (i < bytes.len && (bytes.ptr[i] == ' ' || (bytes.ptr[i] >= '\t' && bytes.ptr[i] <= '\r')))
        i++;
    return i < bytes.len && bytes.ptr[i] == '{';
}

/* Both kinds of JSON are one object; a trace of the profiler has "traceEvents" in it, a host trace
 * "nodes". */
static orr_code read_json(match *m, orr_span bytes, const char *label, orr_error *err)
{
    static const char mark[] = "\"traceEvents\"";
    const void *events = memmem(bytes.ptr, bytes.len, mark, sizeof mark - 1);
    return events ? match_kineto(m, bytes, label, err) : match_host(m, bytes, label, err);
}

static orr_code read_both(
    match *m, const orr_fx *captured, orr_span bytes, const char *label, orr_error *err)
{
    if (captured->graph_count == 0)
        return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_byte(captured->path, 0)),
                        "no captured rank");
    const orr_code code = match_captured(m, captured->graphs[0], err);
    if (code)
        return code;
    return is_json(bytes) ? read_json(m, bytes, label, err) : match_table(m, bytes, label, err);
}

static orr_operators *create_result(void)
{
    orr_arena *a = orr_arena_create();
    orr_operators *o = a ? orr_arena_new(a, 1, orr_operators) : NULL;
    struct orr__operators_store *store =
        o ? orr_arena_new(a, 1, struct orr__operators_store) : NULL;
    if (!store) {
        orr_arena_destroy(a);
        return NULL;
    }
    *store = (struct orr__operators_store){
        .arena = a, .names = orr_intern_create(), .shapes = orr_intern_create()};
    o->store = store;
    return o;
}

orr_code orr_operators_compare_bytes(const orr_fx *captured,
                                     orr_span measured,
                                     const char *label,
                                     const orr_chip *chip,
                                     const orr_hardware *hw,
                                     orr_operators **out,
                                     orr_error *err)
{
    orr_operators *o = *out = create_result();
    if (!o)
        return orr_no_memory(err);
    match m = {.names = o->store->names, .shapes = o->store->shapes, .chip = chip, .hw = hw};
    orr_code code =
        m.names && m.shapes ? read_both(&m, captured, measured, label, err) : orr_no_memory(err);
    if (!code)
        code = make_result(&m, o, err);
    for (int s = 0; s < MATCH_SIDES; s++)
        orr_free(m.sides[s].calls);
    orr_free(m.flags);
    if (code) {
        orr_operators_free(o);
        *out = NULL;
    }
    return code;
}

orr_code orr_operators_compare(const orr_fx *captured,
                               const char *measured,
                               const orr_chip *chip,
                               const orr_hardware *hw,
                               orr_operators **out,
                               orr_error *err)
{
    orr_input *in;
    *out = NULL;
    orr_code code = orr_input_open(measured, &in, err);
    if (code)
        return code;
    code = orr_operators_compare_bytes(captured, orr_input_bytes(in), measured, chip, hw, out, err);
    orr_input_close(in);
    return code;
}

void orr_operators_free(orr_operators *o)
{
    if (!o)
        return;
    orr_arena *a = o->store->arena;
    orr_intern_destroy(o->store->names);
    orr_intern_destroy(o->store->shapes);
    orr_arena_destroy(a);
}
