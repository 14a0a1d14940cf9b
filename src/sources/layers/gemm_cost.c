/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_cost.c - how many cycles an operation takes: the arrays, the vector unit or memory, whichever is slowest.
 *
 * Several arrays share the products of an operation in the better of two ways: each array takes whole products,
 * or each product is cut into a grid of pieces, one an array; of all grids with at most so many pieces the fastest
 * counts.  Sums are never cut: that would take another operation to add them up.
 * Everything is a whole number of cycles, rounded up once for each part.
 * Cost: O(sqrt(arrays)) evaluations of the systolic model for a product that was not met before; equal ones are
 * looked up. */
#include "gemm_impl.h"

#include "base/memory/hash.h"
#include "base/memory/map.h"

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

/* ---- making one ---- */

static uint64_t div_up(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

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

orr_code lay_cost_create(const orr_hardware *hw,
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

void lay_cost_destroy(lay_cost *c)
{
    if (!c)
        return;
    orr_map_destroy(c->found);
    orr_free(c->entries);
    orr_free(c);
}

uint64_t lay_cost_elements(const lay_cost *c)
{
    return c->arrays * c->array.rows * c->array.columns; /* hardware files keep this below 2^52 */
}

orr_code lay_cost_time(const lay_cost *c, uint64_t cycles, orr_ps *out, orr_error *err)
{
    uint64_t ps = 0;
    const orr_code code =
        c->clock_hz ? scale_up(cycles, 1000000000000, c->clock_hz, &ps, err) : ORR_OK;
    *out = (orr_ps)ps;
    return code;
}

orr_code lay_cost_memory(const lay_cost *c, orr_bytes bytes, uint64_t *cycles, orr_error *err)
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

/* One product over so many arrays.  For every number of columns of the grid that differs from the last in its
 * number of rows: the most rows that there are arrays for. */
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
        const orr_code code =
            lay_array_cycles(&c->array, NULL, div_up(m, rows), div_up(n, columns), k, &cycles, err);
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
    return code ? code : scale_up(cycles, div_up(e->count, together), 1, out, err);
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
    orr_code code = scale_up(p->m, p->n, 1, out, err);
    if (!code)
        code = scale_up(*out, p->k, 1, out, err);
    if (!code)
        code = scale_up(*out, p->part, p->whole, out, err);
    return code ? code : scale_up(*out, p->count, 1, out, err);
}

static orr_code add_products(lay_cost *c, const lay_op *op, orr_gemm_pass *out, orr_error *err)
{
    for (size_t i = 0; i < op->product_count; i++) {
        const lay_product *p = &op->product[i];
        uint64_t cycles = 0, done;
        orr_code code = whole_cycles(c, p, &cycles, err);
        if (!code)
            code = scale_up(cycles, p->part, p->whole, &cycles, err);
        if (!code)
            code = multiplications(p, &done, err);
        if (code)
            return code;
        out->array_cycles += cycles; /* five numbers below 2^61 */
        out->products += done;
    }
    return ORR_OK;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static orr_code op_cycles(lay_cost *c, const lay_op *op, orr_gemm_pass *out, orr_error *err)
{
    orr_code code = add_products(c, op, out, err);
    out->vector_cycles = c->vector_width ? div_up(op->vector_ops, c->vector_width) : 0;
    out->overhead_cycles = c->overhead_cycles;
    if (!code && __builtin_mul_overflow(op->elements, c->datatype_bytes, &out->traffic))
        code = too_large(err);
    if (!code)
        code = lay_cost_memory(c, out->traffic, &out->memory_cycles, err);
    out->cycles = larger(larger(out->array_cycles, out->vector_cycles), out->memory_cycles);
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

orr_code lay_cost_pass(lay_cost *c, const lay_pass_work *work, orr_gemm_pass *out, orr_error *err)
{
    orr_code code = ORR_OK;
    *out = (orr_gemm_pass){.comm = work->comm};
    for (size_t i = 0; i < work->op_count && !code; i++) {
        orr_gemm_pass op = {0};
        code = op_cycles(c, &work->op[i], &op, err);
        if (!code)
            code = sum_op(&op, out, err);
    }
    if (!code && __builtin_mul_overflow(work->comm_elements, c->datatype_bytes, &out->comm_bytes))
        code = too_large(err);
    return code ? code : lay_cost_time(c, out->cycles, &out->time, err);
}
