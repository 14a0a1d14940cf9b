/* SPDX-License-Identifier: Apache-2.0 */
/* ss_v3.c - all figures of SCALE-Sim v3's reports, including its defects (scale-sim.md 12).
 *
 * v3 is v2 with different stalls, pruned zero weights and banked buffers.  Layers without the last
 * two are simulated as in v2, from event to event; for the others operands are generated word by
 * word. */
#include "scale_sim.h"
#include "ss_impl.h"

#include "base/memory/memory.h"
#include "models/compute/systolic/scalesim_impl.h"

/* ---- random fill: the Mersenne Twister as numpy uses it ---- */

enum { TWIST = 624, TWIST_FAR = 397 };

typedef struct twister {
    uint32_t state[TWIST];
    int next;
} twister;

static void twister_seed(twister *t, uint32_t seed)
{
    t->state[0] = seed;
    for (uint32_t i = 1; i < TWIST; i++)
        t->state[i] = 1812433253u * (t->state[i - 1] ^ (t->state[i - 1] >> 30)) + i;
    t->next = TWIST;
}

static void twister_turn(twister *t)
{
    for (int i = 0; i < TWIST; i++) {
        const uint32_t y = (t->state[i] & 0x80000000u) | (t->state[(i + 1) % TWIST] & 0x7fffffffu);
        t->state[i] = t->state[(i + TWIST_FAR) % TWIST] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    t->next = 0;
}

static uint32_t twister_draw(twister *t)
{
    if (t->next == TWIST)
        twister_turn(t);
    uint32_t y = t->state[t->next++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

/* Uniform in 0..most: masked draws until one fits; no draw if there is no choice. */
static uint32_t twister_upto(twister *t, uint32_t most)
{
    uint32_t mask = most, value;
    if (most == 0)
        return 0;
    for (int shift = 1; shift < 32; shift *= 2)
        mask |= mask >> shift;
    do
        value = twister_draw(t) & mask;
    while (value > most);
    return value;
}

/* ---- matrices ---- */

static orr_code open_packed(ss_matrices *m, orr_error *err)
{
    const orr_systolic_sparsity *sparsity = &m->s->array->sparsity;
    twister t;
    m->is_packed = true;
    m->block = sparsity->block;
    m->rows = orr_div_up(m->s->T, 2 * m->block) * m->block;
    if (!(m->fill = orr_alloc(m->s->N, sizeof *m->fill)))
        return orr_no_memory(err);
    twister_seed(&t, sparsity->seed);
    for (uint64_t i = 0; i < m->s->N; i++)
        m->fill[i] = 1 + twister_upto(&t, (uint32_t)(m->block / 2) - 1);
    return ORR_OK;
}

static void open_pruned(ss_matrices *m)
{
    const orr__systolic *s = m->s;
    const orr_systolic_layer *l = s->layer;
    m->is_pruned = true;
    m->nonzero = l->block ? l->nonzero : 1;
    m->block = l->block ? l->block : 1;
    m->columns = s->T / m->block * m->nonzero + orr_min_u64(s->T % m->block, m->nonzero);
    m->rows = m->columns;
    /* Rows that are 0 in every filter are dropped at the end, and address 0 passes for a 0. */
    if (s->array->filter_offset == 0 && s->N == 1 && s->T <= m->block)
        m->rows--;
}

orr_code ss_v3_matrices(const orr__systolic *s, ss_matrices *out, orr_error *err)
{
    const orr_systolic_sparsity *sparsity = &s->array->sparsity;
    *out = (ss_matrices){.s = s, .columns = s->T, .rows = s->T};
    if (!sparsity->is_on)
        return ORR_OK;
    if (sparsity->is_optimized)
        return open_packed(out, err);
    open_pruned(out);
    return ORR_OK;
}

/* Shapes that the reference cannot multiply. */
static orr_code check_matrices(const ss_matrices *m, orr_error *err)
{
    if (m->rows == 0)
        return orr_fail(err, ORR_EINPUT, NULL,
                        "SCALE-Sim v3 fails here: its only weight has address 0");
    if (m->s->array->dataflow == ORR_DATAFLOW_WS || m->rows == m->columns)
        return ORR_OK;
    return orr_fail(err, ORR_EINPUT, NULL,
                    "SCALE-Sim v3 fails here: %llu columns of the ifmap meet %llu rows of the "
                    "filters; %s",
                    (unsigned long long)m->columns, (unsigned long long)m->rows,
                    m->is_packed ? "OptimizedMapping is for the dataflow ws" : "FilterOffset is 0");
}

/* ---- counts ---- */

static uint64_t nonzero_weights(const ss_matrices *m)
{
    const orr__systolic *s = m->s;
    uint64_t sum = 0;
    if (!m->is_packed)
        return m->columns * s->N;
    for (uint64_t i = 0; i < s->N; i++)
        sum += s->T / m->block * m->fill[i] + orr_min_u64(s->T % m->block, m->fill[i]);
    return sum;
}

/* scale-sim.md 12.5 */
static void count_storage(const ss_matrices *m, orr_systolic_result *out)
{
    const orr__systolic *s = m->s;
    const orr_systolic_storage storage = s->array->sparsity.storage;
    out->filter_words = s->T * s->N;
    if (storage == ORR_STORAGE_ELLPACK_BLOCK) {
        uint64_t bits = 0;
        while (s->layer->block > (uint64_t)1 << bits)
            bits++;
        out->filter_metadata = (double)(m->rows * s->N * bits) / 32;
        out->filter_stored = (double)(m->rows * s->N) + out->filter_metadata;
        return;
    }
    const uint64_t kept = nonzero_weights(m);
    const uint64_t pointers = (storage == ORR_STORAGE_CSR ? s->T : s->N) + 1;
    out->filter_metadata = (double)(kept + pointers);
    out->filter_stored = (double)(2 * kept + pointers);
}

/* Weight stationary: the ifmap is read as if it had all its columns, or in whole blocks. */
static double count_ifmap(const ss_matrices *m, const orr__folds *f)
{
    const orr__systolic *s = m->s;
    const double more =
        m->is_packed ? 1 : (double)m->block / (double)m->nonzero; /* not rounded (scale-sim.md
                                                                   * 12.4) */
    double sum = 0;
    for (uint64_t v = 0; v < f->outer; v++)
        for (uint64_t h = 0; h < f->inner; h++) {
            if (m->is_packed)
                sum +=
                    (double)((s->E + s->R - 1) * (2 * s->R / m->block * (m->block / 2) * m->block));
            else
                sum += (double)(s->E * orr_min_u64(s->R, m->columns - h * s->R)) * more;
        }
    return sum;
}

/* Weight stationary, packed: array elements with a weight, summed over the folds. */
static double count_mapping(const ss_matrices *m, const orr__folds *f)
{
    const orr__systolic *s = m->s;
    const double array = (double)(s->R * s->C);
    double sum = 0;
    for (uint64_t v = 0; v < f->outer; v++)
        for (uint64_t h = 0; h < f->inner; h++) {
            uint64_t held = 0;
            for (uint64_t r = h * s->R; r < m->rows && r < (h + 1) * s->R; r++)
                for (uint64_t c = v * s->C; c < s->N && c < (v + 1) * s->C; c++)
                    held += ss_filter_at(m, r, c) != SS_NO_WORD;
            sum += (double)held / array;
        }
    return sum / (double)(f->inner * f->outer) * 100;
}

static void count_sparse(const ss_matrices *m, const orr__systolic *folds, orr_systolic_result *out)
{
    uint64_t steps;
    const orr__folds f = orr__systolic_true_folds(folds, &steps);
    orr_systolic_traffic *ifmap = &out->sram[ORR_OPERAND_IFMAP];
    out->ifmap_reads = (double)ifmap->words;
    if (folds->array->dataflow == ORR_DATAFLOW_WS) {
        out->ifmap_reads = count_ifmap(m, &f);
        ifmap->words = (uint64_t)out->ifmap_reads;
        ifmap->average = out->ifmap_reads / (double)out->cycles;
        if (m->is_packed)
            out->mapping = count_mapping(m, &f);
    }
    count_storage(m, out);
}

/* ---- a layer ---- */

static orr_code run_words(const orr__systolic *s,
                          const ss_matrices *m,
                          ss_memory *memory,
                          orr_systolic_result *out,
                          orr_error *err)
{
    const orr_systolic_array *a = s->array;
    orr__systolic folds = *s;
    orr_code code = check_matrices(m, err);
    folds.T = m->rows;
    const bool is_sparse = a->sparsity.is_on, has_user = memory->bandwidth[0] > 0;
    if (!code && (is_sparse || (has_user && a->ifmap_banks.has_layout)))
        code = ss_words_open(m, &folds, false, memory->bandwidth[0], &memory->words[0], err);
    if (!code && (is_sparse || (has_user && a->filter_banks.has_layout)))
        code = ss_words_open(m, &folds, true, memory->bandwidth[1], &memory->words[1], err);
    if (code)
        return code;
    out->cycles = (uint64_t)ss_v2_cycles(&folds);
    code = ss_v2_memory(&folds, memory, out, err);
    if (!code && out->cycles == 0)
        code = orr_fail(err, ORR_EINPUT, NULL,
                        "SCALE-Sim v3 divides by zero here: it sees a run of no cycles");
    if (code)
        return code;
    ss_v2_counts(&folds, out);
    if (is_sparse)
        count_sparse(m, &folds, out);
    return ORR_OK;
}

static orr_code ss_v3_run(const orr__systolic *s, orr_systolic_result *out, orr_error *err)
{
    const orr_systolic_array *a = s->array;
    ss_memory memory = {.is_v3 = true};
    ss_matrices m;
    if (a->bandwidth > 0) {
        memory.bandwidth[ORR_OPERAND_IFMAP] = a->ifmap_banks.bandwidth;
        memory.bandwidth[ORR_OPERAND_FILTER] = a->filter_banks.bandwidth;
        memory.bandwidth[ORR_OPERAND_OFMAP] = (uint64_t)a->bandwidth;
    }
    orr_code code = ss_v3_matrices(s, &m, err);
    if (!code)
        code = run_words(s, &m, &memory, out, err);
    ss_words_close(memory.words[0]);
    ss_words_close(memory.words[1]);
    orr_free(m.fill);
    return code;
}

/* ---- configurations ---- */

static orr_code check_banks(const orr_scalesim_config *c,
                            const orr_systolic_banks *b,
                            const char *name,
                            const orr_where *w,
                            orr_error *err)
{
    if (c->array.bandwidth == 0 || b->bandwidth % b->count == 0)
        return ORR_OK;
    return orr_fail(
        err, ORR_EINPUT, w,
        "%sSRAMBankBandwidth %llu is not a multiple of %sSRAMBankNum %llu, as SCALE-Sim "
        "v3 requires",
        name, (unsigned long long)b->bandwidth, name, (unsigned long long)b->count);
}

/* A permutation of the axes. */
static bool is_order(const uint64_t *order, uint64_t axes)
{
    uint64_t seen = 0;
    for (uint64_t i = 0; i < axes; i++)
        seen |= order[i] < axes ? (uint64_t)1 << order[i] : 0;
    return seen == ((uint64_t)1 << axes) - 1;
}

static uint64_t product(const uint64_t *factors, int count)
{
    uint64_t all = 1;
    for (int i = 0; i < count; i++)
        all = factors[i] && all <= UINT32_MAX ? all * factors[i] : UINT64_MAX;
    return all;
}

static orr_code check_layout(const orr_systolic_array *a, const orr_where *w, orr_error *err)
{
    const orr_systolic_layout *l = &a->layout;
    const uint64_t ifmap = product(l->ifmap_factors, 3), filter = product(l->filter_factors, 4);
    if (a->ifmap_banks.has_layout && !l->ifmap_factors[0])
        return orr_fail(err, ORR_EINPUT, w, "IfmapCustomLayout needs a layout: --layout FILE");
    if (a->filter_banks.has_layout && !l->filter_factors[0])
        return orr_fail(err, ORR_EINPUT, w, "FilterCustomLayout needs a layout: --layout FILE");
    if (a->ifmap_banks.has_layout &&
        (ifmap > a->ifmap_banks.bandwidth || !is_order(l->ifmap_order, 6)))
        return orr_fail(err, ORR_EINPUT, w,
                        "the layout of the ifmap does not fit: its intraline factors must multiply "
                        "to at most IfmapSRAMBankBandwidth, its orders name 0 to 5 once each");
    if (a->filter_banks.has_layout &&
        (filter != a->filter_banks.bandwidth || !is_order(l->filter_order, 8)))
        return orr_fail(err, ORR_EINPUT, w,
                        "the layout of the filters does not fit: its intraline factors must "
                        "multiply to FilterSRAMBankBandwidth, its orders name 0 to 7 once each");
    return ORR_OK;
}

static orr_code check_sparsity(const orr_systolic_array *a, const orr_where *w, orr_error *err)
{
    const orr_systolic_sparsity *s = &a->sparsity;
    if (!s->is_on || !s->is_optimized)
        return ORR_OK;
    if (s->block < 2 || s->block > a->rows)
        return orr_fail(err, ORR_EINPUT, w, "BlockSize %llu is not from 2 to ArrayHeight, %llu",
                        (unsigned long long)s->block, (unsigned long long)a->rows);
    if (a->dataflow == ORR_DATAFLOW_WS && 2 * a->rows % s->block)
        return orr_fail(
            err, ORR_EINPUT, w,
            "BlockSize %llu does not divide twice ArrayHeight, as SCALE-Sim v3 requires",
            (unsigned long long)s->block);
    return ORR_OK;
}

static orr_code ss_v3_check(const orr_scalesim *r, orr_error *err)
{
    const orr_scalesim_config *c = &r->config;
    const orr_where w = orr_where_byte(c->path, ORR_NO_BYTE);
    const double b = c->array.bandwidth;
    if (b > 0 && !c->has_banks)
        return orr_fail(err, ORR_EINPUT, &w,
                        "SCALE-Sim v3 needs IfmapSRAMBankBandwidth and FilterSRAMBankBandwidth in "
                        "section [layout] when InterfaceBandwidth is USER");
    if (b > 0 && (b < 1 || b > 1e9 || b != (double)(uint64_t)b))
        return orr_fail(
            err, ORR_EINPUT, &w,
            "Bandwidth: SCALE-Sim v3 supports only whole numbers of words per cycle, from 1 to "
            "10^9");
    if (c->has_ramulator && b > 0)
        return orr_fail(err, ORR_EINPUT, &w,
                        "UseRamulatorTrace needs the files of Ramulator, which are not read here: "
                        "set it to False");
    orr_code code;
    if ((code = check_banks(c, &c->array.ifmap_banks, "Ifmap", &w, err)) ||
        (code = check_banks(c, &c->array.filter_banks, "Filter", &w, err)) ||
        (code = check_layout(&c->array, &w, err)))
        return code;
    return check_sparsity(&c->array, &w, err);
}

const orr_rules_systolic orr__scale_sim_v3 = {
    .name = "v3",
    .size = ORR__SIZE_UP,
    .least_words = 100, /* a buffer is a hundred sets */
    .needs_bandwidth_key = true,
    .check_config = ss_v3_check,
    .cycles = ss_v2_cycles,
    .run = ss_v3_run,
    .rows = ORR__ROWS_BY_FORM,
    .has_sparsity = true,
    .write = ss_v3_write,
    .write_traces = ss_v2_write_traces,
};
