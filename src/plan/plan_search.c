/* SPDX-License-Identifier: Apache-2.0 */
/* plan_search.c - the search: list, bound, simulate in the order of the bounds, stop when nothing that is left
 * can be among the best.
 *
 * Candidates go in waves of a fixed size, and the limit moves between waves only: so the same plans are
 * simulated whatever the number of threads.  A candidate is dropped when its bound is above the time of
 * the best (or of the last place that must be sure); a bound is never above the simulated time, so it would not
 * have taken that place. */
#include "search_impl.h"

#include "base/threads/pool.h"

#include <orrery/lab/hardware.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WAVE = 32, TOP = 10, REFINED = 256 };

/* ---- words ---- */

static const char *const axis_names[ORR_PLAN_AXES] = {"tp",
                                                      "cp",
                                                      "pp",
                                                      "dp",
                                                      "ep",
                                                      "zero",
                                                      "micro-batch",
                                                      "pipeline",
                                                      "chunks",
                                                      "recompute",
                                                      "sequence-parallel"};
static const char *const recompute_names[] = {"none", "selective", "full", "operators"};

const char *orr_plan_axis_name(orr_plan_axis axis)
{
    return (unsigned)axis < ORR_PLAN_AXES ? axis_names[axis] : "?";
}

static bool read_value(orr_plan_axis axis, const char *text, uint64_t *out)
{
    orr_pipeline pipeline;
    char *end;
    if (axis == ORR_PLAN_PIPELINE) {
        if (!orr_pipeline_find(orr_str_of(text), &pipeline) || pipeline > ORR_PIPELINE_ZB_V)
            return false; /* the others are not searched */
        *out = pipeline;
        return true;
    }
    if (axis == ORR_PLAN_RECOMPUTE) {
        for (*out = 0; *out < 4; ++*out)
            if (strcmp(recompute_names[*out], text) == 0)
                return true;
        return false;
    }
    if (axis == ORR_PLAN_SEQUENCE_PARALLEL &&
        (strcmp(text, "on") == 0 || strcmp(text, "off") == 0)) {
        *out = text[1] == 'n';
        return true;
    }
    const uint64_t most = axis == ORR_PLAN_SEQUENCE_PARALLEL ? 1
                          : axis == ORR_PLAN_ZERO            ? 3
                                                             : UINT32_MAX;
    const uint64_t least = axis == ORR_PLAN_SEQUENCE_PARALLEL || axis == ORR_PLAN_ZERO ? 0 : 1;
    *out = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && !*end && strlen(text) < 12 && *out >= least &&
           *out <= most;
}

const char *search_value_text(orr_plan_axis axis, uint64_t value, char room[SEARCH_VALUE_ROOM])
{
    if (axis == ORR_PLAN_PIPELINE)
        return orr_pipeline_name((orr_pipeline)value);
    if (axis == ORR_PLAN_RECOMPUTE)
        return recompute_names[value & 3];
    if (axis == ORR_PLAN_SEQUENCE_PARALLEL)
        return value ? "on" : "off";
    snprintf(room, SEARCH_VALUE_ROOM, "%" PRIu64, value);
    return room;
}

orr_code orr_plan_fix(orr_plan_options *opt, const char *text, orr_error *err)
{
    static const char *const wanted[ORR_PLAN_AXES] = {
        [ORR_PLAN_ZERO] = "0 to 3",
        [ORR_PLAN_PIPELINE] = "1f1b, gpipe, interleaved, zero-bubble or zb-v",
        [ORR_PLAN_RECOMPUTE] = "none, selective, full or operators",
        [ORR_PLAN_SEQUENCE_PARALLEL] = "on or off"};
    const char *equals = strchr(text, '=');
    for (unsigned i = 0; equals && i < ORR_PLAN_AXES; i++) {
        const size_t len = strlen(axis_names[i]);
        if (len != (size_t)(equals - text) || memcmp(text, axis_names[i], len) != 0)
            continue;
        if (!read_value((orr_plan_axis)i, equals + 1, &opt->fixed[i]))
            return orr_fail(err, ORR_EUSAGE, NULL, "'%s': %s is %s", text, axis_names[i],
                            wanted[i] ? wanted[i] : "a whole number from 1 on");
        opt->is_fixed[i] = true;
        return ORR_OK;
    }
    return orr_fail(
        err, ORR_EUSAGE, NULL,
        "'%s' fixes nothing: expected AXIS=VALUE, where AXIS is tp, cp, pp, dp, ep, zero, "
        "micro-batch, pipeline, chunks, recompute or sequence-parallel",
        text);
}

size_t orr_plan_words(const orr_plan *p, char *out, size_t size)
{
    const orr_llm_options *o = &p->options;
    char cp[24] = "", ep[24] = "", pipeline[48] = "", recompute[48] = "";
    if (o->cp > 1)
        snprintf(cp, sizeof cp, " cp %u", o->cp);
    if (o->ep > 1)
        snprintf(ep, sizeof ep, " ep %u", o->ep);
    if (o->pp > 1 && o->chunks > 1)
        snprintf(pipeline, sizeof pipeline, ", %s x %u", orr_pipeline_name(o->pipeline), o->chunks);
    else if (o->pp > 1)
        snprintf(pipeline, sizeof pipeline, ", %s", orr_pipeline_name(o->pipeline));
    if (o->recompute)
        snprintf(recompute, sizeof recompute, ", recompute %s", recompute_names[o->recompute & 3]);
    const int n =
        snprintf(out, size, "tp %u%s pp %u dp %u%s, micro-batch %llu, zero %u%s%s%s", o->tp, cp,
                 o->pp, o->dp, ep, (unsigned long long)o->micro_batch, o->zero, pipeline, recompute,
                 o->tp > 1 && o->no_sequence_parallel ? ", no sp" : "");
    return n < 0 ? 0 : (size_t)n;
}

size_t orr_plan_command(const orr_plan *p, char *out, size_t size)
{
    const orr_llm_options *o = &p->options;
    char text[600];
    size_t n = 0;
#define PUT(...) n += (size_t)snprintf(text + n, sizeof text - n, __VA_ARGS__)
    PUT("--tp %u --pp %u --dp %u", o->tp, o->pp, o->dp);
    if (o->cp > 1)
        PUT(" --cp %u", o->cp);
    if (o->ep > 1)
        PUT(" --ep %u", o->ep);
    PUT(" --batch %llu --seq %llu --micro-batch %llu", (unsigned long long)o->batch,
        (unsigned long long)o->seq, (unsigned long long)o->micro_batch);
    if (o->zero)
        PUT(" --zero %u", o->zero);
    if (o->sync_every_micro_batch)
        PUT(" --sync-every-micro-batch");
    if (o->pp > 1)
        PUT(" --pipeline %s", orr_pipeline_name(o->pipeline));
    if (o->chunks > 1)
        PUT(" --chunks %u", o->chunks);
    if (o->recompute)
        PUT(" --recompute %s", recompute_names[o->recompute & 3]);
    if (o->no_sequence_parallel)
        PUT(" --no-sequence-parallel");
    if (o->dtype != ORR_DTYPE_BF16)
        PUT(" --dtype %s", orr_dtype_name(o->dtype));
    if (o->grads_fp32)
        PUT(" --grads-fp32");
    if (o->overlaps_tensor)
        PUT(" --tp-overlap");
    if (o->full_attention)
        PUT(" --attention full");
    if (o->context_form == ORR_CONTEXT_ALL_GATHER)
        PUT(" --context all-gather");
    if (o->context_form == ORR_CONTEXT_CONTIGUOUS)
        PUT(" --context contiguous");
    if (o->software && o->software != orr_software_at(0))
        PUT(" --software %s", o->software->name);
#undef PUT
    const int written = snprintf(out, size, "%s", text);
    return written < 0 ? 0 : (size_t)written;
}

/* ---- life ---- */

static orr_code find_machine(orr_plan_search *s, orr_error *err)
{
    orr_machine whole;
    orr_code code = orr_machine_find(s->opt.machine, &whole, err);
    if (!code && s->opt.devices)
        code = orr_machine_for(s->opt.machine, s->opt.devices, &s->machine, err);
    else if (!code)
        s->machine = whole;
    return code ? orr_because(err, code, "--machine %s", s->opt.machine) : ORR_OK;
}

static orr_code find_base(orr_plan_search *s, orr_error *err)
{
    const orr_plan_options *o = &s->opt;
    orr_system system;
    orr_code code = orr_machine_system(&s->machine, &system, err);
    if (code)
        return code;
    s->base = o->base;
    s->base.batch = o->batch ? o->batch : orr_machine_devices(&s->machine);
    s->base.seq = o->seq ? o->seq : o->model->max_positions ? o->model->max_positions : 4096;
    if (!s->base.device_bytes)
        s->base.device_bytes = s->machine.memory;
    if (!s->base.software && s->machine.software[0])
        s->base.software = orr_software_find(s->machine.software);
    if (!s->base.software)
        s->base.software = orr_software_at(0);
    s->peak_flops = system.peak_flops;
    if (s->base.dtype == ORR_DTYPE_FP8) {
        const orr_chip *chip = orr_chip_find(s->machine.chip);
        const double peak = chip ? chip->peak_tflops[ORR_TYPE_FP8] * 1e12 : 0;
        s->peak_flops = peak > 0 ? peak : s->peak_flops;
    }
    const orr_model_work sequence = {.tokens = s->base.seq, .is_square = s->base.full_attention};
    orr_model_flops flops;
    code = orr_model_compute(o->model, &sequence, &flops, err);
    if (!code)
        s->flops = (double)flops.training * (double)s->base.batch;
    return code;
}

orr_code orr_plan_search_create(const orr_plan_options *opt, orr_plan_search **out, orr_error *err)
{
    *out = NULL;
    if (!opt || opt->size != sizeof *opt || !opt->model || !opt->machine)
        return orr_fail(
            err, ORR_EUSAGE, NULL,
            "orr_plan_options: size must be sizeof(orr_plan_options), and model and machine given");
    orr_plan_search *s = orr_alloc(1, sizeof *s);
    if (!s)
        return orr_no_memory(err);
    s->opt = *opt;
    s->opt.top = opt->top ? opt->top : TOP;
    s->opt.sure = opt->sure ? opt->sure : 1;
    if (s->opt.top < s->opt.sure)
        s->opt.top = s->opt.sure;
    orr_code code = orr_model_check(opt->model, err);
    if (!code)
        code = find_machine(s, err);
    if (!code)
        code = find_base(s, err);
    if (!code)
        code = search_list(s, err);
    if (!code)
        code = search_bounds_create(s, err);
    if (!code && (!(s->order = orr_alloc(s->count, sizeof *s->order)) ||
                  !(s->heap = orr_alloc(s->count, sizeof *s->heap))))
        code = orr_no_memory(err);
    if (code)
        orr_plan_search_destroy(s);
    else
        *out = s;
    return code;
}

void orr_plan_search_destroy(orr_plan_search *s)
{
    if (!s)
        return;
    search_bounds_destroy(s->bounds);
    orr_free(s->list);
    orr_free(s->order);
    orr_free(s->heap);
    orr_free(s->plans);
    orr_free(s);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

double search_time_left(orr_plan_search *s)
{
    if (!s->end_ns)
        return 0;
    const double left = ((double)s->end_ns - (double)now_ns()) * 1e-9;
    return left == 0 ? -1 : left;
}

bool orr_plan_search_is_late(const orr_plan_search *s)
{
    return atomic_load(&s->is_late);
}

void orr_plan_search_stop(orr_plan_search *s)
{
    atomic_store(&s->is_stopped, true);
}

/* ---- the order ---- */

static bool by_memory(const orr_plan_search *s)
{
    return s->opt.goal == ORR_PLAN_MEMORY;
}

static int compare_numbers(double a, double b)
{
    return a < b ? -1 : a > b;
}

static int compare_bounds(const void *a, const void *b, void *context)
{
    const orr_plan_search *s = context;
    const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const search_candidate *x = &s->list[i], *y = &s->list[k];
    int order = by_memory(s) ? compare_numbers((double)x->memory, (double)y->memory) : 0;
    if (!order)
        order = compare_numbers(x->bound_s, y->bound_s);
    return order ? order : i < k ? -1 : i > k;
}

/* By what was simulated; equal ones as they were listed. */
static int compare_plans(const void *a, const void *b, void *context)
{
    const orr_plan_search *s = context;
    const search_result *x = a, *y = b;
    const int memory = compare_numbers((double)x->plan.memory.peak, (double)y->plan.memory.peak);
    const int time = compare_numbers(x->plan.step_s, y->plan.step_s);
    const int first = by_memory(s) ? memory : time, second = by_memory(s) ? time : memory;
    return first ? first : second ? second : x->candidate < y->candidate ? -1 : 1;
}

/* Can it still be among the best? */
static bool is_hopeless(const orr_plan_search *s, const search_candidate *c)
{
    if (s->opt.no_prune || s->plan_count < s->opt.top)
        return false;
    const orr_plan *worst = &s->plans[s->opt.sure - 1].plan;
    if (by_memory(s) && c->memory != worst->memory.peak)
        return c->memory > worst->memory.peak;
    return c->bound_s > worst->step_s;
}

/* ---- work on threads ---- */

typedef struct wave {
    orr_plan_search *s;
    const uint32_t *items;
    orr_plan *results;
    orr_error *errors; /* of those that came to a standstill */
} wave;

/* By hand, or because its time is over. */
static orr_code check_stop(orr_plan_search *s, orr_error *err)
{
    if (search_time_left(s) < 0)
        atomic_store(&s->is_late, true);
    if (!atomic_load(&s->is_stopped) && !atomic_load(&s->is_late))
        return ORR_OK;
    return orr_fail(err, ORR_ESTOP, NULL, "stopped");
}

static orr_code bound_one(void *context, size_t i, orr_error *err)
{
    orr_plan_search *s = context;
    if (check_stop(s, err))
        return ORR_ESTOP;
    return search_bound(s, &s->list[i], SEARCH_ROUGH, err);
}

static orr_code refine_one(void *context, size_t i, orr_error *err)
{
    orr_plan_search *s = context;
    if (check_stop(s, err))
        return ORR_ESTOP;
    search_candidate *c = &s->list[s->order[s->refined + i]];
    orr_code code = search_bound(s, c, SEARCH_FINE, err);
    if (!code && !is_hopeless(s, c))
        code = search_bound(s, c, SEARCH_FINEST, err);
    return code;
}

static orr_code simulate_one(void *context, size_t i, orr_error *err)
{
    const wave *w = context;
    if (check_stop(w->s, err))
        return ORR_ESTOP;
    const orr_code code = search_simulate(w->s, &w->s->list[w->items[i]], &w->results[i], err);
    if (code == ORR_ESTOP)
        (void)!check_stop(w->s, err); /* the time was over in the middle of it */
    if (code != ORR_EINPUT)
        return code;
    w->errors[i] = *err; /* this plan alone cannot be simulated */
    return ORR_OK;
}

static void tell(orr_plan_search *s, size_t left)
{
    s->counts.simulated = s->plan_count;
    s->counts.to_do = left;
    if (s->opt.progress)
        s->opt.progress(s->opt.context, &s->counts);
}

/* ---- those that have their fine bound, the smallest on top ---- */

static bool is_before(orr_plan_search *s, uint32_t a, uint32_t b)
{
    return compare_bounds(&a, &b, s) < 0;
}

static void push(orr_plan_search *s, uint32_t item)
{
    size_t i = s->heap_count++;
    for (; i && is_before(s, item, s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = item;
}

static uint32_t pop(orr_plan_search *s)
{
    const uint32_t top = s->heap[0], last = s->heap[--s->heap_count];
    size_t i = 0, child;
    while ((child = 2 * i + 1) < s->heap_count) {
        if (child + 1 < s->heap_count && is_before(s, s->heap[child + 1], s->heap[child]))
            child++;
        if (!is_before(s, s->heap[child], last))
            break;
        s->heap[i] = s->heap[child];
        i = child;
    }
    s->heap[i] = last;
    return top;
}

/* Until the top of the heap is the smallest bound of all: no rough one is below it. */
static orr_code refine(orr_plan_search *s, orr_error *err)
{
    orr_code code = ORR_OK;
    while (!code && s->refined < s->count) {
        const uint32_t next = s->order[s->refined];
        const size_t left = s->count - s->refined, count = left < REFINED ? left : REFINED;
        if (is_hopeless(s, &s->list[next]) || (s->heap_count && is_before(s, s->heap[0], next)))
            break;
        code = orr_pool_for(s->opt.threads, count, refine_one, s, err);
        for (size_t i = 0; i < count && !code; i++)
            push(s, s->order[s->refined + i]);
        s->refined += count;
    }
    return code;
}

static orr_code next_wave(orr_plan_search *s, uint32_t items[WAVE], size_t *count, orr_error *err)
{
    orr_code code = refine(s, err);
    *count = 0;
    while (!code && *count < WAVE && s->heap_count && !is_hopeless(s, &s->list[s->heap[0]])) {
        items[(*count)++] = pop(s);
        code = refine(s, err);
    }
    return code;
}

/* Simulations that are still needed, as far as is known. */
static size_t still_hopeful(const orr_plan_search *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->heap_count; i++)
        n += !is_hopeless(s, &s->list[s->heap[i]]);
    for (size_t i = s->refined; i < s->count && !is_hopeless(s, &s->list[s->order[i]]); i++)
        n++;
    return n;
}

/* It was stopped: how many might be better than the best so far, and by how much. */
static void count_open(orr_plan_search *s)
{
    const double best = s->plan_count && !by_memory(s) ? s->plans[0].plan.step_s : INFINITY;
    const size_t late = s->count - s->refined;
    double least = INFINITY;
    s->counts.to_do = 0;
    for (size_t i = 0; i < s->heap_count + late; i++) {
        const uint32_t item =
            i < s->heap_count ? s->heap[i] : s->order[s->refined + i - s->heap_count];
        least = fmin(least, s->list[item].bound_s);
        s->counts.to_do += s->list[item].bound_s < best;
    }
    s->counts.least_s = isfinite(least) ? least : 0;
}

/* A wave; what ended before a stop is kept. */
static orr_code run_wave(orr_plan_search *s, const uint32_t *items, size_t count, orr_error *err)
{
    orr_plan results[WAVE] = {0};
    orr_error errors[WAVE] = {0};
    wave w = {.s = s, .items = items, .results = results, .errors = errors};
    if (!orr_grow(&s->plans, &s->plan_room, s->plan_count + count))
        return orr_no_memory(err);
    const orr_code code = orr_pool_for(s->opt.threads, count, simulate_one, &w, err);
    for (size_t i = 0; i < count; i++)
        if (results[i].step_s > 0) {
            s->plans[s->plan_count++] = (search_result){results[i], items[i]};
        } else if (errors[i].code) {
            if (!s->counts.failed++)
                snprintf(s->failure, sizeof s->failure, "%.*s", (int)sizeof s->failure - 1,
                         errors[i].message);
        } else {
            push(s, items[i]); /* not done */
        }
    qsort_r(s->plans, s->plan_count, sizeof *s->plans, compare_plans, s);
    return code;
}

orr_code orr_plan_search_run(orr_plan_search *s, orr_error *err)
{
    uint32_t items[WAVE];
    size_t count = 1;
    s->end_ns = s->opt.max_seconds > 0 ? now_ns() + (uint64_t)(s->opt.max_seconds * 1e9) : 0;
    orr_code code = orr_pool_for(s->opt.threads, s->count, bound_one, s, err);
    for (uint32_t i = 0; i < s->count; i++)
        s->order[i] = i;
    const bool is_ordered = !code;
    if (!code)
        qsort_r(s->order, s->count, sizeof *s->order, compare_bounds, s);
    while (!code && count) {
        code = next_wave(s, items, &count, err);
        if (!code && count)
            code = run_wave(s, items, count, err);
        tell(s, still_hopeful(s));
    }
    if (code == ORR_ESTOP && is_ordered)
        count_open(s);
    s->end_ns = 0; /* runs after the search have limits of their own */
    s->counts.bounded = s->count - s->plan_count - s->counts.failed;
    if (!code && !s->plan_count)
        code = orr_fail(err, ORR_EINPUT, NULL, "no plan could be simulated: %s", s->failure);
    return code;
}

/* ---- results ---- */

void orr_plan_search_counts(const orr_plan_search *s, orr_plan_counts *out)
{
    *out = s->counts;
}

const char *orr_plan_search_failure(const orr_plan_search *s)
{
    return s->failure;
}

const orr_machine *orr_plan_search_machine(const orr_plan_search *s)
{
    return &s->machine;
}

size_t orr_plan_count(const orr_plan_search *s)
{
    return s->plan_count;
}

const orr_plan *orr_plan_at(const orr_plan_search *s, size_t i)
{
    return i < s->plan_count ? &s->plans[i].plan : NULL;
}
