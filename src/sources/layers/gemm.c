/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.c - from shapes to a table of layers: work out each layer, cost it, round its times.
 *
 * All numbers are those of the slowest NPU.  The three times of a layer and its update are integers
 * in the unit of the table; a nonzero time is never rounded to zero.  The total rounding error is
 * kept, for tables of short layers in microseconds. */
#include "base/arithmetic.h"
#include "base/memory/hash.h"
#include "base/memory/map.h"
#include "gemm_impl.h"

#include <inttypes.h>
#include <math.h>

typedef struct lay_cost lay_cost;
static void lay_cost_destroy(lay_cost *c);

/* How many cycles an operation takes: the arrays, the vector unit or memory, whichever is slowest.
 *
 * Several arrays share the products of an operation in the better of two ways: each array takes
 * whole products, or each product is cut into a grid of pieces, one per array; the fastest grid
 * that fits counts.  Sums are never split: that would need another operation to add them up.
 * Everything is in whole cycles, rounded up once per part. Cost: O(sqrt(arrays)) evaluations of the
 * systolic model per distinct product; equal ones are looked up. */

typedef unsigned __int128 wide;

enum { NO_ENTRY = UINT32_MAX };

typedef struct entry {
    uint64_t count, m, n, k, cycles;
    uint32_t next; /* another product with the same hash */
} entry;

struct lay_cost {
    orr_systolic_array array;
    uint64_t arrays, clock_hz, vector_width, overhead_cycles;
    orr_Bps bandwidth; /* 0: memory is not the limit */
    uint32_t datatype_bytes;
    orr_map *found;
    entry *entries;
    size_t count, room;
};

/* ---- construction ---- */

static orr_code too_large(orr_error *err)
{
    return orr_fail(err, ORR_EINPUT, NULL, "the layer is too large: 2^61 cycles or more");
}

/* a * b / c, rounded up. */
static orr_code scale_up(uint64_t a, uint64_t b, uint64_t c, uint64_t *out, orr_error *err)
{
    const wide value = ((wide)a * b + (c - 1)) / c;
    *out = (uint64_t)value;
    return value < (wide)1 << 61 ? ORR_OK : too_large(err);
}

static orr_code lay_cost_create(const orr_hardware *hw,
                                const orr_systolic_array *array,
                                uint32_t datatype_bytes,
                                lay_cost **out,
                                orr_error *err)
{
    static const uint64_t second = 1000000000000; /* picoseconds */
    lay_cost *c = orr_alloc(1, sizeof *c);
    orr_code code = ORR_OK;
    *out = NULL;
    if (!c || !(c->found = orr_map_create(64))) {
        lay_cost_destroy(c);
        return orr_no_memory(err);
    }
    c->datatype_bytes = datatype_bytes;
    c->arrays = 1;
    if (hw) {
        c->array = (orr_systolic_array){
            .rows = hw->rows, .columns = hw->columns, .dataflow = hw->dataflow};
        c->arrays = hw->arrays;
        c->clock_hz = hw->clock_hz;
        c->bandwidth = hw->memory_bandwidth;
        c->vector_width = hw->vector_width;
        code = scale_up((uint64_t)hw->overhead, hw->clock_hz, second, &c->overhead_cycles, err);
    } else {
        c->array = *array;
    }
    if (code) {
        lay_cost_destroy(c);
        return code;
    }
    *out = c;
    return ORR_OK;
}

/* NULL is fine */
static void lay_cost_destroy(lay_cost *c)
{
    if (!c)
        return;
    orr_map_destroy(c->found);
    orr_free(c->entries);
    orr_free(c);
}

/* of all arrays: multiplications per cycle */
static uint64_t lay_cost_elements(const lay_cost *c)
{
    return c->arrays * c->array.rows * c->array.columns; /* hardware files keep this below 2^52 */
}

/* Time in memory alone. */
static orr_code lay_cost_time(const lay_cost *c, uint64_t cycles, orr_ps *out, orr_error *err)
{
    uint64_t ps = 0;
    const orr_code code =
        c->clock_hz ? scale_up(cycles, 1000000000000, c->clock_hz, &ps, err) : ORR_OK;
    *out = (orr_ps)ps;
    return code;
}

static orr_code lay_cost_memory(const lay_cost *c,
                                orr_bytes bytes,
                                uint64_t *cycles,
                                orr_error *err)
{
    *cycles = 0;
    return c->bandwidth ? scale_up(bytes, c->clock_hz, c->bandwidth, cycles, err) : ORR_OK;
}

/* ---- products ---- */

orr_code lay_array_cycles(const orr_systolic_array *a,
                          const orr_rules_systolic *rules,
                          uint64_t m,
                          uint64_t n,
                          uint64_t k,
                          uint64_t *out,
                          orr_error *err)
{
    const orr_systolic_layer layer = orr_systolic_gemm(m, n, k);
    orr_systolic_result all;
    if (!(a->bandwidth > 0))
        return orr_systolic_cycles(a, &layer, rules, out, err);
    const orr_code code = orr_systolic_run(a, &layer, rules, &all, err);
    *out = code ? 0 : all.cycles;
    return code;
}

/* One product over several arrays.  For every number of columns of the grid that gives a different
 * number of rows: the most rows for which there are arrays. */
static orr_code over_grid(const lay_cost *c,
                          uint64_t arrays,
                          uint64_t m,
                          uint64_t n,
                          uint64_t k,
                          uint64_t *out,
                          orr_error *err)
{
    *out = UINT64_MAX;
    for (uint64_t rows = 1; rows <= arrays; rows++) {
        const uint64_t columns = arrays / rows;
        uint64_t cycles;
        rows = arrays / columns;
        const orr_code code = lay_array_cycles(&c->array, NULL, orr_div_up(m, rows),
                                               orr_div_up(n, columns), k, &cycles, err);
        if (code)
            return code;
        *out = cycles < *out ? cycles : *out;
    }
    return ORR_OK;
}

/* `together` products at a time, each over its part of the arrays. */
static orr_code in_rounds(
    const lay_cost *c, const entry *e, uint64_t together, uint64_t *out, orr_error *err)
{
    uint64_t cycles;
    const orr_code code = over_grid(c, c->arrays / together, e->m, e->n, e->k, &cycles, err);
    return code ? code : scale_up(cycles, orr_div_up(e->count, together), 1, out, err);
}

static orr_code evaluate(const lay_cost *c, entry *e, orr_error *err)
{
    const uint64_t most = e->count < c->arrays ? e->count : c->arrays;
    uint64_t apart;
    orr_code code = in_rounds(c, e, 1, &e->cycles, err);
    if (code || most == 1)
        return code;
    code = in_rounds(c, e, most, &apart, err);
    if (!code && apart < e->cycles)
        e->cycles = apart;
    return code;
}

static uint64_t hash_of(const lay_product *p)
{
    const uint64_t key[] = {p->count, p->m, p->n, p->k};
    return orr_hash_bytes(key, sizeof key, 0);
}

static bool is_same(const entry *e, const lay_product *p)
{
    return e->count == p->count && e->m == p->m && e->n == p->n && e->k == p->k;
}

/* Cycles of a product of which everything is computed. */
static orr_code whole_cycles(lay_cost *c, const lay_product *p, uint64_t *out, orr_error *err)
{
    const uint64_t hash = hash_of(p);
    const uint32_t first = orr_map_find(c->found, hash, NO_ENTRY);
    for (uint32_t i = first; i != NO_ENTRY; i = c->entries[i].next) {
        if (is_same(&c->entries[i], p)) {
            *out = c->entries[i].cycles;
            return ORR_OK;
        }
    }
    entry e = {p->count, p->m, p->n, p->k, 0, first};
    const orr_code code = evaluate(c, &e, err);
    if (code)
        return code;
    if (!orr_grow(&c->entries, &c->room, c->count + 1) ||
        !orr_map_put(c->found, hash, (uint32_t)c->count, NULL))
        return orr_no_memory(err);
    c->entries[c->count++] = e;
    *out = e.cycles;
    return ORR_OK;
}

/* ---- operations ---- */

/* Multiplications that are done, all of `count` products together. */
static orr_code multiplications(const lay_product *p, uint64_t *out, orr_error *err)
{
    orr_code code;
    if ((code = scale_up(p->m, p->n, 1, out, err)) || (code = scale_up(*out, p->k, 1, out, err)) ||
        (code = scale_up(*out, p->part, p->whole, out, err)))
        return code;
    return scale_up(*out, p->count, 1, out, err);
}

static orr_code add_products(lay_cost *c, const lay_op *op, orr_gemm_pass *out, orr_error *err)
{
    for (size_t i = 0; i < op->product_count; i++) {
        const lay_product *p = &op->product[i];
        uint64_t cycles = 0, done;
        orr_code code;
        if ((code = whole_cycles(c, p, &cycles, err)) ||
            (code = scale_up(cycles, p->part, p->whole, &cycles, err)) ||
            (code = multiplications(p, &done, err)))
            return code;
        out->array_cycles += cycles; /* five numbers below 2^61 */
        out->products += done;
    }
    return ORR_OK;
}

static orr_code op_cycles(lay_cost *c, const lay_op *op, orr_gemm_pass *out, orr_error *err)
{
    orr_code code = add_products(c, op, out, err);
    out->vector_cycles = c->vector_width ? orr_div_up(op->vector_ops, c->vector_width) : 0;
    out->overhead_cycles = c->overhead_cycles;
    if (!code && __builtin_mul_overflow(op->elements, c->datatype_bytes, &out->traffic))
        code = too_large(err);
    if (!code)
        code = lay_cost_memory(c, out->traffic, &out->memory_cycles, err);
    out->cycles =
        orr_max_u64(orr_max_u64(out->array_cycles, out->vector_cycles), out->memory_cycles);
    return code;
}

static bool sum(uint64_t *to, uint64_t more)
{
    return !__builtin_add_overflow(*to, more, to) && *to < 1ull << 61;
}

static orr_code sum_op(const orr_gemm_pass *op, orr_gemm_pass *to, orr_error *err)
{
    const bool fits = sum(&to->cycles, op->cycles) && sum(&to->cycles, op->overhead_cycles) &&
                      sum(&to->array_cycles, op->array_cycles) &&
                      sum(&to->vector_cycles, op->vector_cycles) &&
                      sum(&to->memory_cycles, op->memory_cycles) &&
                      sum(&to->overhead_cycles, op->overhead_cycles) &&
                      sum(&to->products, op->products) && sum(&to->traffic, op->traffic);
    return fits ? ORR_OK : too_large(err);
}

/* One of hardware and array is NULL. */
static orr_code lay_cost_pass(lay_cost *c,
                              const lay_pass_work *work,
                              orr_gemm_pass *out,
                              orr_error *err)
{
    orr_code code = ORR_OK;
    *out = (orr_gemm_pass){.comm = work->comm};
    for (size_t i = 0; i < work->op_count && !code; i++) {
        orr_gemm_pass op = {.cycles = 0};
        code = op_cycles(c, &work->op[i], &op, err);
        if (!code)
            code = sum_op(&op, out, err);
    }
    return code ? code : lay_cost_time(c, out->cycles, &out->time, err);
}

static orr_code count_products(const lay_pass_work *work, orr_gemm_pass *out, orr_error *err)
{
    for (size_t i = 0; i < work->op_count; i++) {
        for (size_t k = 0; k < work->op[i].product_count; k++) {
            uint64_t done;
            const orr_code code = multiplications(&work->op[i].product[k], &done, err);
            if (code)
                return code;
            if (!sum(&out->products, done))
                return too_large(err);
        }
    }
    return ORR_OK;
}

/* ---- gemm ---- */

enum { NPUS = 8, DATATYPE_BYTES = 2, MOST_NPUS = 1 << 24, MOST_COPIED = 1 << 20, SHOWN = 60 };

/* ---- options ---- */

static orr_gemm_options with_defaults(const orr_gemm_options *opt)
{
    orr_gemm_options o = *opt;
    o.npus = o.npus ? o.npus : NPUS;
    o.packages = o.packages ? o.packages : 1;
    if (!o.datatype_bytes)
        o.datatype_bytes =
            o.has_type ? (uint32_t)ceil(orr_kernel_type_bytes(o.type)) : DATATYPE_BYTES;
    o.repeat = o.repeat ? o.repeat : 1;
    return o;
}

static bool is_shared_policy(orr_policy p)
{
    return p == ORR_POLICY_DATA || p == ORR_POLICY_MODEL || p == ORR_POLICY_HYBRID_DATA_MODEL ||
           p == ORR_POLICY_HYBRID_MODEL_DATA || p == ORR_POLICY_HYBRID_CUSTOMIZED;
}

static orr_code check_options(const orr_gemm_options *o, orr_error *err)
{
    if (!is_shared_policy(o->policy))
        return orr_fail(err, ORR_EUSAGE, NULL, "layers cannot be shared out by %s",
                        orr_policy_name(o->policy) ? orr_policy_name(o->policy) : "no policy");
    if (o->npus > MOST_NPUS)
        return orr_fail(err, ORR_EUSAGE, NULL, "%" PRIu32 " NPUs are more than %d", o->npus,
                        MOST_NPUS);
    if (o->npus % o->packages)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "%" PRIu32 " NPUs cannot be in %" PRIu32 " packages of equal size", o->npus,
                        o->packages);
    if (!o->chip + !o->hardware + !o->array != 2)
        return orr_fail(err, ORR_EUSAGE, NULL, "one of chip, hardware and array must be given");
    orr_kernel_type type;
    if (o->chip && !o->has_type && !lay_type_of_bytes(o->chip, o->datatype_bytes, &type))
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "products on a chip have 1, 2, 4 or 8 bytes per element, not %" PRIu32
                        ", unless their type is given",
                        o->datatype_bytes);
    if (o->rules && !o->array)
        return orr_fail(err, ORR_EUSAGE, NULL, "the old generator needs an array");
    if (o->array && (o->times == ORR_TIMES_US || o->times == ORR_TIMES_NS))
        return orr_fail(err, ORR_EUSAGE, NULL, "without a clock there are no times, only cycles");
    return ORR_OK;
}

/* ---- the layers ---- */

static orr_code weights_too_large(orr_error *err)
{
    return orr_fail(err, ORR_EINPUT, NULL,
                    "the layer is too large: its weights do not fit into 64 bits");
}

/* A word of an array's buffers is a byte, as SCALE-Sim has it. */
static lay_buffers buffers_of(const orr_gemm *g)
{
    const orr_hardware *hw = g->opt.hardware;
    const orr_systolic_array *a = g->opt.array;
    if (g->opt.chip) /* which its kernels know */
        return (lay_buffers){UINT64_MAX, UINT64_MAX, UINT64_MAX};
    const orr_bytes sizes[] = {hw ? hw->input_buffer : a->ifmap_words,
                               hw ? hw->weight_buffer : a->filter_words,
                               hw ? hw->output_buffer : a->ofmap_words};
    uint64_t elements[3];
    for (size_t i = 0; i < 3; i++) {
        const uint64_t n = sizes[i] / g->opt.datatype_bytes;
        elements[i] = sizes[i] == 0 ? UINT64_MAX : n ? n : 1;
    }
    return (lay_buffers){elements[0], elements[1], elements[2]};
}

static orr_code find_policy(const orr_gemm *g, const lay_shape *s, orr_policy *out, orr_error *err)
{
    *out = g->opt.policy;
    if (g->opt.policy != ORR_POLICY_HYBRID_CUSTOMIZED)
        return ORR_OK;
    *out = s->policy;
    if (s->has_policy)
        return ORR_OK;
    return orr_fail(
        err, ORR_EINPUT,
        ORR_AT(orr_where_line(g->label, s->line, s->policy_column ? s->policy_column : 1)),
        "%.*s: HYBRID_CUSTOMIZED takes a strategy for each layer: " ORR__STRATEGIES,
        ORR_SHOWN(s->name, SHOWN));
}

/* What times a layer: one of the two. */
typedef struct lay_timer {
    lay_cost *design;
    lay_chip *chip;
} lay_timer;

static orr_code chip_update(
    const orr_gemm *g, lay_chip *c, const lay_work *work, orr_gemm_layer *l, orr_error *err)
{
    orr_gemm_pass update;
    const orr_code code = lay_chip_update(c, g->opt.update, work->updated, &update, err);
    l->update_cycles = update.cycles;
    l->update_time = update.time;
    l->update_low = update.low;
    l->update_high = update.high;
    l->update_kernel = update.kernels;
    return code;
}

static orr_code update_cycles(
    const orr_gemm *g, const lay_cost *c, const lay_work *work, orr_gemm_layer *l, orr_error *err)
{
    static const uint64_t touched[] = {
        [ORR_UPDATE_SGD] = 3, [ORR_UPDATE_MOMENTUM] = 5, [ORR_UPDATE_ADAM] = 7};
    orr_bytes bytes;
    if (g->opt.update >= ORR_UPDATE_NONE)
        return ORR_OK;
    if (__builtin_mul_overflow(work->updated, touched[g->opt.update], &bytes) ||
        __builtin_mul_overflow(bytes, g->opt.datatype_bytes, &bytes))
        return weights_too_large(err);
    const orr_code code = lay_cost_memory(c, bytes, &l->update_cycles, err);
    return code ? code : lay_cost_time(c, l->update_cycles, &l->update_time, err);
}

static orr_code cost_pass(const orr_gemm *g,
                          const lay_timer *by,
                          const lay_pass_work *work,
                          orr_gemm_pass *out,
                          orr_error *err)
{
    orr_code code;
    if (by->design) {
        code = lay_cost_pass(by->design, work, out, err);
    } else {
        *out = (orr_gemm_pass){.comm = work->comm};
        code = count_products(work, out, err);
        if (!code)
            code = lay_chip_pass(by->chip, work, out, err);
    }
    if (!code &&
        __builtin_mul_overflow(work->comm_elements, g->opt.datatype_bytes, &out->comm_bytes))
        code = too_large(err);
    return code;
}

/* Of multiply-adds in all passes, of what the hardware could do in the time. */
static double utilisation_of(const orr_gemm *g, const lay_timer *by, const orr_gemm_layer *l)
{
    double cycles = 0, products = 0, seconds = 0;
    for (int i = 0; i < ORR_PASSES; i++) {
        cycles += (double)l->pass[i].cycles;
        products += (double)l->pass[i].products;
        seconds += (double)l->pass[i].time * 1e-12;
    }
    if (by->design)
        return cycles > 0 ? products / (cycles * (double)lay_cost_elements(by->design)) : 0;
    const double peak = g->opt.chip->peak_tflops[g->opt.type] * 1e12;
    return seconds > 0 && peak > 0 ? 2 * products / (seconds * peak) : 0;
}

static orr_code cost_layer(
    const orr_gemm *g, const lay_timer *by, const lay_work *work, orr_gemm_layer *l, orr_error *err)
{
    orr_code code = ORR_OK;
    for (int i = 0; i < ORR_PASSES && !code; i++)
        code = cost_pass(g, by, &work->pass[i], &l->pass[i], err);
    if (code)
        return code;
    l->utilisation = utilisation_of(g, by, l);
    l->imbalance = work->imbalance;
    if (__builtin_mul_overflow(work->weights, g->opt.datatype_bytes, &l->weights))
        return weights_too_large(err);
    return by->design ? update_cycles(g, by->design, work, l, err)
                      : chip_update(g, by->chip, work, l, err);
}

/* The systolic model speaks of a layer without knowing where it came from. */
static orr_code with_place(const orr_gemm *g, const lay_shape *s, orr_code code, orr_error *err)
{
    if (!err || code != ORR_EINPUT || err->where.path[0])
        return code;
    err->where = orr_where_line(g->label, s->line, 1);
    return orr_because(err, code, "%.*s", ORR_SHOWN(s->name, SHOWN));
}

static orr_code add_layer(orr_gemm *g,
                          const lay_timer *by,
                          const lay_buffers *buffers,
                          const lay_shape *s,
                          orr_error *err)
{
    orr_gemm_layer l = {.kind = s->kind, .name.len = s->name.len};
    lay_work work;
    orr_code code;
    if ((code = find_policy(g, s, &l.policy, err)) ||
        (code = lay_work_of(s, lay_ways_of(l.policy, g->opt.npus, g->opt.packages), buffers,
                            g->label, &work, err)) ||
        (code = with_place(g, s, cost_layer(g, by, &work, &l, err), err)))
        return code;
    l.name.ptr = orr_arena_text(g->arena, s->name);
    if (!l.name.ptr)
        return orr_no_memory(err);
    g->layers[g->count++] = l;
    return ORR_OK;
}

static orr_code add_layers(orr_gemm *g, const orr_shapes *s, orr_error *err)
{
    const lay_buffers buffers = buffers_of(g);
    lay_timer by = {NULL, NULL};
    orr_code code = g->opt.chip ? lay_chip_create(g->opt.chip, g->opt.type, g->arena, &by.chip, err)
                                : lay_cost_create(g->opt.hardware, g->opt.array,
                                                  g->opt.datatype_bytes, &by.design, err);
    for (size_t i = 0; i < s->count && !code; i++)
        code = add_layer(g, &by, &buffers, &s->all[i], err);
    if (!code && by.chip)
        lay_chip_total(by.chip, g->opt.repeat, &g->chip_sum);
    lay_cost_destroy(by.design);
    lay_chip_destroy(by.chip);
    return code;
}

/* ---- times of the table ---- */

/* Rounded to nearest, halves up, but never from nonzero to zero. */
static uint64_t in_units(orr_ps time, uint64_t unit)
{
    const uint64_t t = (uint64_t)time;
    const uint64_t units = t / unit + (t % unit >= unit - unit / 2);
    return t && !units ? 1 : units;
}

static uint64_t in_table(const orr_gemm *g, uint64_t cycles, orr_ps time)
{
    if (g->opt.times == ORR_TIMES_CYCLES)
        return cycles;
    return in_units(time, g->opt.times == ORR_TIMES_US ? 1000000 : 1000);
}

static void round_times(orr_gemm *g)
{
    const double unit = g->opt.times == ORR_TIMES_US ? 1e6 : 1e3;
    double exact = 0, rounded = 0;
    for (size_t i = 0; i < g->count; i++) {
        orr_gemm_layer *l = &g->layers[i];
        for (int k = 0; k < ORR_PASSES; k++) {
            l->pass[k].in_table = in_table(g, l->pass[k].cycles, l->pass[k].time);
            exact += (double)l->pass[k].time;
            rounded += (double)l->pass[k].in_table * unit;
        }
        l->update_in_table = g->opt.update == ORR_UPDATE_GIVEN
                                 ? g->opt.update_time
                                 : in_table(g, l->update_cycles, l->update_time);
    }
    if (g->opt.times != ORR_TIMES_CYCLES && exact > 0)
        g->rounding = rounded / exact - 1;
}

/* ---- everything ---- */

void orr_gemm_destroy(orr_gemm *g)
{
    if (!g)
        return;
    orr_arena_destroy(g->arena);
    orr_free(g->layers);
    orr_free(g->shards);
    orr_buf_fini(&g->text);
    orr_free(g);
}

static orr_code prepare(const orr_shapes *s,
                        const orr_gemm_options *o,
                        orr_gemm **out,
                        orr_error *err)
{
    orr_gemm *g = orr_alloc(1, sizeof *g);
    if (!g || !(g->arena = orr_arena_create()) ||
        !(g->layers = orr_alloc(s->count ? s->count : 1, sizeof *g->layers)) ||
        !(g->label = orr_arena_text(g->arena, orr_str_of(s->label)))) {
        orr_gemm_destroy(g);
        return orr_no_memory(err);
    }
    g->opt = *o;
    g->hash = s->hash;
    if (o->chip) {
        /* Built-in ones are found by their place. */
        g->own_chip = *o->chip;
        g->opt.chip = o->chip->base ? &g->own_chip : o->chip;
        if (!o->has_type)
            lay_type_of_bytes(o->chip, o->datatype_bytes, &g->opt.type);
    } else if (o->hardware) {
        g->hardware = *o->hardware;
        g->opt.hardware = &g->hardware;
    } else {
        g->array = *o->array;
        g->opt.array = &g->array;
    }
    if (o->times == ORR_TIMES_BEST)
        g->opt.times = o->array ? ORR_TIMES_CYCLES : ORR_TIMES_US;
    *out = g;
    return ORR_OK;
}

orr_code orr_gemm_create(const orr_shapes *s,
                         const orr_gemm_options *opt,
                         orr_gemm **out,
                         orr_error *err)
{
    const orr_gemm_options o = with_defaults(opt);
    orr_gemm *g = NULL;
    orr_code code = check_options(&o, err);
    *out = NULL;
    if (code || (code = prepare(s, &o, &g, err)))
        return code;
    if (o.rules) {
        code = o.rules->fill(g, s, err);
    } else {
        code = add_layers(g, s, err);
        round_times(g);
    }
    if (code) {
        orr_gemm_destroy(g);
        return code;
    }
    *out = g;
    return ORR_OK;
}

/* ---- other generators ---- */

orr_layers_style orr_gemm_style(const orr_rules_gemm *rules)
{
    return rules ? rules->style : ORR_LAYERS_PLAIN;
}

orr_code orr_gemm_check_run_name(const orr_rules_gemm *rules,
                                 const char *path,
                                 const char *run_name,
                                 orr_error *err)
{
    if (!rules || !run_name[0] || (run_name[0] == '"') == rules->is_run_name_quoted)
        return ORR_OK;
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_line(path, 0, 0)),
                    "run_name: SCALE-Sim %s takes %s %s; otherwise the old generator does not "
                    "find its reports (this looks like a configuration for --compat %s)",
                    rules->name, run_name,
                    rules->is_run_name_quoted ? "in double quotes" : "without quotes",
                    rules->is_run_name_quoted ? "v2" : "v1");
}

orr_code orr_gemm_write_intermediate(const orr_gemm *g,
                                     const char *folder,
                                     const char *stem,
                                     orr_error *err)
{
    if (g->opt.rules)
        return g->opt.rules->write_intermediate(g, folder, stem, err);
    return orr_fail(err, ORR_EUSAGE, NULL, "only the old generator has intermediate files");
}

size_t orr_gemm_count(const orr_gemm *g)
{
    return g->count;
}

const orr_gemm_layer *orr_gemm_layer_at(const orr_gemm *g, size_t i)
{
    return &g->layers[i];
}

/* ---- the table ---- */

static orr_layer_pass row_pass(const orr_gemm_pass *p)
{
    return (orr_layer_pass){
        .time = p->in_table, .comm = orr_str_of(p->comm), .bytes = p->comm_bytes};
}

/* Copies are distinguished by a number behind the name. */
static orr_code add_row(
    const orr_gemm *g, const orr_gemm_layer *l, uint32_t copy, orr_layers *to, orr_error *err)
{
    orr_buf name = {0}, update = {0};
    orr_buf_add(&name, l->name.ptr, l->name.len);
    if (g->opt.repeat > 1)
        orr_buf_print(&name, ".%" PRIu32, copy);
    orr_buf_u64(&update, l->update_in_table);
    orr_code code = ORR_ENOMEM;
    if (!name.failed && !update.failed) {
        const orr_layer row = {
            .name = {(const char *)name.ptr, name.len},
            .reserved = orr_str_of("-1"),
            .forward = row_pass(&l->pass[ORR_PASS_FORWARD]),
            .input_grad = row_pass(&l->pass[ORR_PASS_INPUT_GRAD]),
            .weight_grad = row_pass(&l->pass[ORR_PASS_WEIGHT_GRAD]),
            .update_time = {(const char *)update.ptr, update.len},
            .policy = l->policy,
        };
        code = orr_layers_add(to, &row, err);
    }
    orr_buf_fini(&name);
    orr_buf_fini(&update);
    return code == ORR_ENOMEM ? orr_no_memory(err) : code;
}

orr_code orr_gemm_table(const orr_gemm *g, orr_layers **out, orr_error *err)
{
    orr_layers *t;
    *out = NULL;
    if (g->opt.repeat > 1 && g->count > MOST_COPIED / g->opt.repeat)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "%zu layers repeated %" PRIu32 " times are more than %d", g->count,
                        g->opt.repeat, MOST_COPIED);
    orr_code code = orr_layers_create(g->opt.policy, &t, err);
    if (code)
        return code;
    for (uint32_t copy = 0; copy < g->opt.repeat && !code; copy++)
        for (size_t i = 0; i < g->count && !code; i++)
            code = add_row(g, &g->layers[i], copy, t, err);
    if (code) {
        orr_layers_free(t);
        return code;
    }
    *out = t;
    return ORR_OK;
}
