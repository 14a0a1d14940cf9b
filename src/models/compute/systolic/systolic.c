/* SPDX-License-Identifier: Apache-2.0 */
/* systolic.c - entry points of the systolic model: arguments are checked here, once, and passed to
 * the rules.
 *
 * Bounds ensure that no sum of the closed forms exceeds 128 bits and no count 63: see
 * orr__systolic. */
#include "systolic_impl.h"

#include <math.h>

#define MOST_SIZE ((uint64_t)1 << 32)
#define MOST_WORK ((uint64_t)1 << 62)
#define MOST_FOLLOWED ((uint64_t)1 << 33) /* some 20 s */

const orr_rules_systolic *orr__systolic_rules(const orr_rules_systolic *rules)
{
    static const orr_rules_systolic ours = {
        .name = "true", .cycles = orr__systolic_true_cycles, .run = orr__systolic_true_run};
    return rules ? rules : &ours;
}

orr__folds orr__folds_of(uint64_t down, uint64_t across, uint64_t R, uint64_t C)
{
    orr__folds f = {.inner = orr_div_up(down, R), .outer = orr_div_up(across, C)};
    f.rows = R;
    f.columns = C;
    f.last_rows = down - (f.inner - 1) * R;
    f.last_columns = across - (f.outer - 1) * C;
    return f;
}

static orr_code check_sizes(const orr_systolic_array *a,
                            const orr_systolic_layer *l,
                            orr_error *err)
{
    const struct {
        const char *what;
        uint64_t value, most;
    } sizes[] = {
        {"rows of the array", a->rows, ORR_SYSTOLIC_MOST_ROWS},
        {"columns of the array", a->columns, ORR_SYSTOLIC_MOST_ROWS},
        {"ifmap height", l->ifmap_height, MOST_SIZE},
        {"ifmap width", l->ifmap_width, MOST_SIZE},
        {"filter height", l->filter_height, MOST_SIZE},
        {"filter width", l->filter_width, MOST_SIZE},
        {"channels", l->channels, MOST_SIZE},
        {"filters", l->filters, MOST_SIZE},
        {"stride height", l->stride_height, MOST_SIZE},
        {"stride width", l->stride_width, MOST_SIZE},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value < 1 || sizes[i].value > sizes[i].most)
            return orr_fail(err, ORR_EINPUT, NULL, "%s: %llu is not from 1 to %llu", sizes[i].what,
                            (unsigned long long)sizes[i].value, (unsigned long long)sizes[i].most);
    if (l->filter_height > l->ifmap_height || l->filter_width > l->ifmap_width)
        return orr_fail(err, ORR_EINPUT, NULL,
                        "the filter, %llu x %llu, is larger than the ifmap, %llu x %llu",
                        (unsigned long long)l->filter_height, (unsigned long long)l->filter_width,
                        (unsigned long long)l->ifmap_height, (unsigned long long)l->ifmap_width);
    return ORR_OK;
}

static orr_code check_work(const orr__systolic *s, orr_error *err)
{
    orr__wide work = (orr__wide)s->out_h * s->out_w;
    const uint64_t more[] = {s->layer->filter_height, s->layer->filter_width, s->layer->channels,
                             s->N};
    for (size_t i = 0; i < sizeof more / sizeof *more && work < MOST_WORK; i++)
        work *= more[i];
    /* The ifmap may be larger than the part that is read, and its addresses count too. */
    orr__wide image = (orr__wide)s->layer->ifmap_height * s->layer->ifmap_width;
    if (image < MOST_WORK)
        image *= s->layer->channels;
    if (work < MOST_WORK && image < MOST_WORK)
        return ORR_OK;
    return orr_fail(err, ORR_EINPUT, NULL, "the layer is too large: %s",
                    work < MOST_WORK ? "2^62 words or more" : "2^62 multiply-accumulates or more");
}

orr_code orr__systolic_check(const orr_systolic_array *a,
                             const orr_systolic_layer *l,
                             const orr_rules_systolic *rules,
                             orr__systolic *out,
                             orr_error *err)
{
    orr_code code = check_sizes(a, l, err);
    if (code)
        return code;
    if (rules->has_one_stride && l->stride_height != l->stride_width)
        return orr_fail(err, ORR_EINPUT, NULL, "SCALE-Sim %s has one stride for both directions",
                        rules->name);
    const uint64_t more_h = l->ifmap_height - l->filter_height;
    const uint64_t more_w = l->ifmap_width - l->filter_width;
    const bool up =
        rules->size == ORR__SIZE_UP || (rules->size == ORR__SIZE_AS_TOLD && a->round_up);
    *out = (orr__systolic){.array = a, .layer = l, .R = a->rows, .C = a->columns, .N = l->filters};
    out->out_h = (up ? orr_div_up(more_h, l->stride_height) : more_h / l->stride_height) + 1;
    out->out_w = (up ? orr_div_up(more_w, l->stride_width) : more_w / l->stride_width) + 1;
    out->exact_h = (double)(more_h + l->stride_height) / (double)l->stride_height;
    out->exact_w = (double)(more_w + l->stride_width) / (double)l->stride_width;
    code = check_work(out, err);
    if (code)
        return code;
    out->E = out->out_h * out->out_w;
    out->T = l->filter_height * l->filter_width * l->channels;
    return ORR_OK;
}

/* Cycles without stalls, which must be few enough for derived figures. */
static orr_code check_cycles(const orr__systolic *s,
                             const orr_rules_systolic *rules,
                             uint64_t *out,
                             orr_error *err)
{
    const orr__wide cycles = rules->cycles(s);
    if (cycles >= MOST_WORK)
        return orr_fail(err, ORR_EINPUT, NULL, "the layer is too large: 2^62 cycles or more");
    *out = (uint64_t)cycles;
    return ORR_OK;
}

orr_code orr_systolic_cycles(const orr_systolic_array *a,
                             const orr_systolic_layer *l,
                             const orr_rules_systolic *rules,
                             uint64_t *out,
                             orr_error *err)
{
    orr__systolic s;
    rules = orr__systolic_rules(rules);
    const orr_code code = orr__systolic_check(a, l, rules, &s, err);
    return code ? code : check_cycles(&s, rules, out, err);
}

static orr_code check_buffers(const orr_systolic_array *a,
                              const orr_rules_systolic *rules,
                              orr_error *err)
{
    const uint64_t least = rules->least_words;
    if (a->ifmap_words < least || a->filter_words < least || a->ofmap_words < least)
        return orr_fail(err, ORR_EINPUT, NULL, "a buffer has fewer than %llu words",
                        (unsigned long long)least);
    if (a->ifmap_words >= MOST_WORK || a->filter_words >= MOST_WORK || a->ofmap_words >= MOST_WORK)
        return orr_fail(err, ORR_EINPUT, NULL, "a buffer has 2^62 words or more");
    if (!(a->bandwidth >= 0 && a->bandwidth < (double)MOST_WORK))
        return orr_fail(err, ORR_EINPUT, NULL, "the bandwidth is not a number of words per cycle");
    return ORR_OK;
}

orr_code orr_systolic_run(const orr_systolic_array *a,
                          const orr_systolic_layer *l,
                          const orr_rules_systolic *rules,
                          orr_systolic_result *out,
                          orr_error *err)
{
    orr__systolic s;
    uint64_t cycles = 0;
    *out = (orr_systolic_result){0};
    rules = orr__systolic_rules(rules);
    orr_code code = orr__systolic_check(a, l, rules, &s, err);
    if (!code)
        code = check_cycles(&s, rules, &cycles, err);
    if (!code)
        code = check_buffers(a, rules, err);
    /* The old rules simulate every cycle.  The programs themselves hold a matrix row for each, a
     * terabyte here. */
    if (!code && rules->run != orr__systolic_true_run && cycles > MOST_FOLLOWED)
        code = orr_fail(
            err, ORR_EINPUT, NULL,
            "the layer takes %llu cycles: the old programs' way of counting is followed up to "
            "2^33; sizes of ten digits are rarely meant",
            (unsigned long long)cycles);
    if (code)
        return code;
    out->macs = s.E * s.T * s.N;
    return rules->run(&s, out, err);
}
