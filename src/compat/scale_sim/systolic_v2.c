/* SPDX-License-Identifier: Apache-2.0 */
/* systolic_v2.c - every figure of SCALE-Sim v2's reports, its defects included (scale-sim.md, section 6).
 *
 * Compute figures are closed forms.  Without a bandwidth (CALC) the read buffers never wait: fifty of a hundred
 * sets are filled word by word and then forgotten at once, which systolic_fill.c does.  The outputs' buffer drains
 * as fast as the array writes, so nothing stalls: a drain of n lines begins with more than n - 1 lines' words
 * freed, and in the n - 1 cycles until it ends no more than that are written. */
#include "systolic_v2.h"

#include "systolic_fill.h"

enum { SETS = 100, HALF = SETS / 2, FIRST_RATE = 10, MOST_TERMS = 1 << 22 };

/* ---- read buffers, CALC ---- */

typedef struct prefetch {
    int64_t first;    /* cycle of the first request */
    uint64_t set;     /* words of a set */
    bool has_pending; /* a span that ends with the last trigger */
    bool is_broken;
    int64_t from, to;
    bool has_begun;
    orr_systolic_traffic *out;
} prefetch;

static bool charge(prefetch *p, int64_t from, int64_t to)
{
    if (to < from) {
        p->is_broken = true;
        return false;
    }
    if (!p->has_begun)
        p->out->first = from + 1; /* the port answers a cycle later */
    p->has_begun = true;
    p->out->last = to + 1;
    return true;
}

static bool half_filled(void *ctx, uint64_t cycle)
{
    prefetch *p = ctx;
    const int64_t needed = (int64_t)orr__cdiv(HALF * p->set, FIRST_RATE);
    const bool is_fine =
        p->has_pending ? charge(p, p->from, p->to) : charge(p, p->first - 1 - needed, p->first - 2);
    p->from = p->has_pending ? p->to + 1 : p->first - 1;
    p->to = (int64_t)cycle;
    p->has_pending = true;
    return is_fine;
}

static orr_code estimate(const orr__stream *st,
                         uint64_t size,
                         const char *name,
                         orr_systolic_traffic *out,
                         orr_error *err)
{
    prefetch p = {.first = (int64_t)st->at(st, 0).start, .set = size / SETS, .out = out};
    const orr__fill_rules rules = {.size = HALF * p.set,
                                   .is_eager = true,
                                   .high = UINT64_MAX,
                                   .ctx = &p,
                                   .emptied = half_filled};
    orr__fill_counts counts;
    const orr_code code =
        orr__fill_run(&rules, st->is_filter ? NULL : st, st->is_filter ? st : NULL, &counts, err);
    if (code)
        return code;
    if (p.has_pending)
        (void)charge(&p, p.from, p.to);
    else
        (void)charge(&p, -1 - (int64_t)orr__cdiv(orr__cdiv(counts.held, p.set) * p.set, FIRST_RATE),
                     -2);
    if (p.is_broken)
        return orr_fail(err, ORR_EINPUT, NULL,
                        "SCALE-Sim v2 divides by zero here: half of the %s buffer, %llu words, is "
                        "filled more than once in a cycle",
                        name, (unsigned long long)rules.size);
    out->words = counts.taken;
    out->average = (double)out->words / (double)(out->last - out->first + 1);
    return ORR_OK;
}

static orr_code calc_writes(const orr__systolic *s, orr_systolic_result *out, orr_error *err)
{
    orr__lines *lines;
    uint64_t first, last, event;
    orr_code code = orr__lines_open(s, s->C, &lines, err);
    if (code)
        return code;
    while ((event = orr__lines_next(lines, 0)) != UINT64_MAX)
        (void)orr__lines_write(lines, event, 0);
    orr__lines_ends(lines, &first, &last);
    out->sram[ORR_OPERAND_OFMAP].first = (int64_t)first;
    out->sram[ORR_OPERAND_OFMAP].last = (int64_t)last;
    orr__lines_skip(lines, last + 1);
    code = orr__lines_finish(lines, out->cycles, &out->dram[ORR_OPERAND_OFMAP], err);
    orr__lines_close(lines);
    return code;
}

static orr_code calculate(const orr__systolic *s, orr_systolic_result *out, orr_error *err)
{
    orr__stream streams[2];
    const uint64_t sizes[] = {s->array->ifmap_words, s->array->filter_words};
    static const char *const names[] = {"ifmap", "filter"};
    orr_code code = ORR_OK;
    orr__streams_v2(s, &streams[0], &streams[1]);
    for (int i = 0; i < 2 && !code; i++) {
        out->sram[i].first = (int64_t)streams[i].at(&streams[i], 0).start + 1;
        out->sram[i].last = (int64_t)orr__stream_last(&streams[i]) + 1;
        code = estimate(&streams[i], sizes[i], names[i], &out->dram[i], err);
    }
    return code ? code : calc_writes(s, out, err);
}

/* ---- compute report and counts ---- */

static void count_sram(const orr__systolic *s, const orr__folds *f, orr_systolic_result *out)
{
    const bool is_os = s->array->dataflow == ORR_DATAFLOW_OS;
    const bool is_ws = s->array->dataflow == ORR_DATAFLOW_WS;
    uint64_t *ifmap = &out->sram[ORR_OPERAND_IFMAP].words;
    uint64_t *filter = &out->sram[ORR_OPERAND_FILTER].words;
    uint64_t *ofmap = &out->sram[ORR_OPERAND_OFMAP].words;
    *ifmap = s->E * s->T * (is_os || is_ws ? f->outer : 1);
    *filter = s->N * s->T * (is_os ? f->inner : is_ws ? 1 : f->outer);
    *ofmap = s->E * s->N * (is_os ? 1 : f->inner);
    if (is_os) /* blank places are counted, 6.2 */
        *ofmap += out->folds * (s->R + s->C);
    out->sram_read.words = *ifmap + *filter;
}

/* Means over the folds; added up fold by fold as the reference does, if there are not too many, so that even the
 * last digit is its. */
static void average_folds(const orr__systolic *s,
                          const orr__folds *f,
                          uint64_t steps,
                          uint64_t charged,
                          orr_systolic_result *out)
{
    const double array = (double)(s->R * s->C), folds = (double)out->folds;
    double mapping = 0, busy = 0;
    if (out->folds > MOST_TERMS) {
        out->mapping = 100 * (double)out->macs / (double)steps / (folds * array);
        out->busy = 100 * (double)out->macs / (folds * array) / (double)charged;
        return;
    }
    for (uint64_t v = 0; v < f->outer; v++)
        for (uint64_t h = 0; h < f->inner; h++) {
            const uint64_t used = orr__fold_rows(f, h) * orr__fold_columns(f, v);
            mapping += (double)used / array;
            busy += (double)(used * steps) / (array * (double)charged);
        }
    out->mapping = mapping / folds * 100;
    out->busy = busy / folds * 100;
}

static orr_code check_bandwidth(const orr__systolic *s, orr_error *err)
{
    const double b = s->array->bandwidth;
    if (b > 0 && (b < 1 || b > 1e9 || b != (double)(uint64_t)b))
        return orr_fail(err, ORR_EINPUT, NULL,
                        "SCALE-Sim v2 knows whole numbers of words a cycle, from 1 to 10^9");
    return ORR_OK;
}

orr_code orr__systolic_v2_run(const orr__systolic *s, orr_systolic_result *out, orr_error *err)
{
    uint64_t steps;
    const orr__folds f = orr__systolic_true_folds(s, &steps);
    const uint64_t fold = orr__systolic_v2_fold_cycles(s);
    const uint64_t charged = fold + (s->array->dataflow == ORR_DATAFLOW_OS ? 0 : s->C - 1);
    out->folds = f.inner * f.outer;
    out->cycles = (uint64_t)orr__systolic_v2_cycles(s);
    orr_code code = check_bandwidth(s, err);
    if (!code)
        code =
            s->array->bandwidth > 0 ? orr__systolic_v2_user(s, out, err) : calculate(s, out, err);
    if (code)
        return code;
    if (out->cycles == 0)
        return orr_fail(err, ORR_EINPUT, NULL,
                        "SCALE-Sim v2 divides by zero here: it sees a run of no cycles");
    average_folds(s, &f, steps, charged, out);
    out->utilisation = 100 * (double)out->macs / ((double)out->cycles * (double)(s->R * s->C));
    count_sram(s, &f, out);
    for (int i = 0; i < ORR_OPERANDS; i++)
        out->sram[i].average = (double)out->sram[i].words / (double)out->cycles;
    out->sram_read.average = (double)out->sram_read.words / (double)out->cycles;
    return ORR_OK;
}
