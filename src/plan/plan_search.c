/* SPDX-License-Identifier: Apache-2.0 */
/* plan_search.c - the search: list, bound, simulate in the order of the bounds, stop when no
 * remaining plan can be among the best.
 *
 * Candidates are simulated in waves of a fixed size, and the limit changes only between waves: so
 * the same plans are simulated for any number of threads.  A candidate is dropped if its bound
 * exceeds the best time (or that of the last place to be proven); a bound never exceeds the
 * simulated time, so it could not have taken that place. */
#include "search_impl.h"

#include <orrery/lab/hardware.h>
#include <orrery/lab/units.h>

#include "base/threads/pool.h"
#include "sources/llm/llm_tape.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
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
enum { RECOMPUTES = ORR_RECOMPUTE_PARTS + 1 };
static const char *const recompute_names[RECOMPUTES] = {"none", "selective", "full", "operators",
                                                        "parts"};

static const char *recompute_name(uint64_t recompute)
{
    return recompute < RECOMPUTES ? recompute_names[recompute] : "?";
}

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
        for (*out = 0; *out < RECOMPUTES; ++*out)
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

static const char *value_text(orr_plan_axis axis, uint64_t value, char room[SEARCH_VALUE_ROOM])
{
    if (axis == ORR_PLAN_PIPELINE)
        return orr_pipeline_name((orr_pipeline)value);
    if (axis == ORR_PLAN_RECOMPUTE)
        return recompute_name(value);
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
        [ORR_PLAN_RECOMPUTE] = "none, selective, full, operators or, with recompute-parts, parts",
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
        snprintf(recompute, sizeof recompute, ", recompute %s", recompute_name(o->recompute));
    const int n =
        snprintf(out, size, "tp %u%s pp %u dp %u%s, micro-batch %llu, zero %u%s%s%s", o->tp, cp,
                 o->pp, o->dp, ep, (unsigned long long)o->micro_batch, o->zero, pipeline, recompute,
                 o->tp > 1 && o->no_sequence_parallel ? ", no sp" : "");
    return n < 0 ? 0 : (size_t)n;
}

/* A text in memory of the caller; length: of all of it, as snprintf counts. */
typedef struct command_text {
    char *out;
    size_t size, length;
} command_text;

static void put(command_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(command_text *t, const char *format, ...)
{
    const size_t at = t->length < t->size ? t->length : t->size;
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(t->size > at ? t->out + at : NULL, t->size - at, format, args);
    va_end(args);
    t->length += n > 0 ? (size_t)n : 0;
}

/* What the search decides; the rest follows from the library's table. */
static void put_searched(command_text *t, const orr_llm_options *o)
{
    put(t, "--tp %u --pp %u --dp %u", o->tp, o->pp, o->dp);
    if (o->cp > 1)
        put(t, " --cp %u", o->cp);
    if (o->ep > 1)
        put(t, " --ep %u", o->ep);
    put(t, " --batch %" PRIu64 " --seq %" PRIu64 " --micro-batch %" PRIu64, o->batch, o->seq,
        o->micro_batch);
    if (o->zero)
        put(t, " --zero %u", o->zero);
    if (o->pp > 1)
        put(t, " --pipeline %s", orr_pipeline_name(o->pipeline));
    if (o->chunks > 1)
        put(t, " --chunks %u", o->chunks);
    if (o->recompute && o->recompute != ORR_RECOMPUTE_PARTS)
        put(t, " --recompute %s", recompute_name(o->recompute));
    if (o->no_sequence_parallel)
        put(t, " --no-sequence-parallel");
}

size_t orr_plan_command(const orr_plan *p, char *out, size_t size)
{
    const orr_llm_options *o = &p->options;
    const orr_llm_option *n;
    command_text t = {.out = out, .size = size};
    put_searched(&t, o);
    for (size_t i = 0; (n = orr_llm_option_at(i)); i++) {
        char value[ORR_LLM_OPTION_ROOM];
        if (!orr_llm_option_text(o, n->name, value, sizeof value))
            continue;
        put(&t, " --%s", n->name);
        if (n->kind != ORR_LLM_FLAG)
            put(&t, " %s", value);
    }
    return t.length;
}

/* ---- life cycle ---- */

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

/* Of the data type of products, as `run` has it for MFU. */
static double peak_of(const run_chip *found, orr_dtype dtype, double wide)
{
    const bool is_byte = dtype == ORR_DTYPE_FP8 || dtype == ORR_DTYPE_MXFP8;
    const orr_kernel_type type = dtype == ORR_DTYPE_NVFP4 ? ORR_TYPE_NVFP4 : ORR_TYPE_FP8;
    const double peak = found->chip && (is_byte || dtype == ORR_DTYPE_NVFP4)
                            ? found->chip->peak_tflops[type] * 1e12
                            : 0;
    return peak > 0 ? peak : wide;
}

/* What orr_llm_complete would fill in: views of plans (llm_tape.h) are opened without it. */
static void complete_base(orr_llm_options *b, const orr_machine *m)
{
    if (b->sends_once && !b->node_ranks)
        b->node_ranks = m->devices;
    b->node_ranks = b->node_ranks ? b->node_ranks : 8;
    b->expert_load = b->expert_load ? b->expert_load : 100;
    if (b->offload_layers && !b->offload_percent)
        b->offload_percent = 100;
    const uint64_t bucket = b->bucket_bytes; /* its default depends on the ZeRO stage */
    search_fill_in(b);
    b->bucket_bytes = bucket;
}

/* What is impossible whatever the plan, so that the message is about that: on one rank, without
 * what is about several. */
static orr_code check_alone(const orr_plan_options *o, orr_error *err)
{
    orr_llm_options b = o->base;
    b.tp = b.cp = b.pp = b.dp = b.ep = b.chunks = 1;
    b.shard = b.expert_tp = b.zero = 0;
    b.batch = b.micro_batch = b.seq = 1;
    b.pipeline = ORR_PIPELINE_1F1B;
    b.recompute = b.recompute_parts    ? ORR_RECOMPUTE_PARTS
                  : b.recompute_layers ? ORR_RECOMPUTE_FULL
                                       : ORR_RECOMPUTE_NONE;
    if (b.recompute != ORR_RECOMPUTE_FULL)
        b.recompute_layers = 0;
    return orr_llm_complete(o->model, &b, err);
}

/* Options of one pipeline, and what one value of a fixed axis rules out. */
static orr_code check_base(const orr_plan_options *o, orr_error *err)
{
    const orr_llm_options *b = &o->base;
    const bool is_fixed = o->is_fixed[ORR_PLAN_RECOMPUTE];
    const uint64_t recompute = o->fixed[ORR_PLAN_RECOMPUTE];
    if (b->layout || b->first_layers || b->last_layers || b->bare_first || b->bare_last || b->order)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "layers of stages and orders of passes belong to one pipeline: they are "
                        "options of stage, not of a search");
    if (b->forward_only || b->steps > 1)
        return orr_fail(err, ORR_EUSAGE, NULL, "a search is for one whole training step");
    if (b->recompute_layers && is_fixed && recompute != ORR_RECOMPUTE_FULL)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "recompute-layers requires recompute full, but recompute is fixed to %s",
                        recompute_name(recompute));
    if (b->recompute_parts && is_fixed && recompute != ORR_RECOMPUTE_PARTS)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "recompute-parts requires recompute parts, but recompute is fixed to %s",
                        recompute_name(recompute));
    if (!b->recompute_parts && is_fixed && recompute == ORR_RECOMPUTE_PARTS)
        return orr_fail(err, ORR_EUSAGE, NULL, "recompute=parts requires recompute-parts");
    return check_alone(o, err);
}

static orr_code find_base(orr_plan_search *s, orr_error *err)
{
    const orr_plan_options *o = &s->opt;
    orr_system system;
    run_chip found;
    orr_code code = orr_machine_system(&s->machine, &system, err);
    if (code || (code = run_chip_of(&s->machine, &found, err)))
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
    complete_base(&s->base, &s->machine);
    s->peak_flops = peak_of(&found, s->base.dtype, system.peak_flops);
    const orr_model_work sequence = {
        .tokens = s->base.seq, .is_square = s->base.full_attention, .has_mtp = s->base.has_mtp};
    orr_model_flops flops;
    code = orr_model_compute(o->model, &sequence, &flops, err);
    if (!code)
        s->flops = (double)flops.training * (double)s->base.batch;
    return code;
}

static orr_code list_plans(orr_plan_search *s, orr_error *err);
orr_code orr_plan_search_create(const orr_plan_options *opt, orr_plan_search **out, orr_error *err)
{
    *out = NULL;
    if (!opt || opt->size != sizeof *opt || !opt->model || !opt->machine)
        return orr_fail(
            err, ORR_EUSAGE, NULL,
            "orr_plan_options: size must be sizeof(orr_plan_options), and model and machine given");
    /* Divisors of both are enumerated: limits how long that takes. */
    if (opt->batch > INT32_MAX || opt->seq > INT32_MAX)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "orr_plan_options: batch and seq are at most %" PRId32, INT32_MAX);
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
        code = check_base(opt, err);
    if (!code)
        code = find_machine(s, err);
    if (!code)
        code = find_base(s, err);
    if (!code)
        code = list_plans(s, err);
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

bool orr_plan_search_is_full(const orr_plan_search *s)
{
    return atomic_load(&s->is_full);
}

bool orr_plan_search_is_spent(const orr_plan_search *s)
{
    return s->is_spent;
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

/* By simulated time; ties in list order. */
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
    orr_error *errors;            /* of those that stalled */
    atomic_uint_fast64_t *events; /* of those that came to an end, of any kind */
    atomic_size_t spent;          /* the first whose events did not suffice */
} wave;

/* By request, or because time is up. */
static orr_code check_stop(orr_plan_search *s, orr_error *err)
{
    if (search_time_left(s) < 0)
        atomic_store(&s->is_late, true);
    if (!atomic_load(&s->is_stopped) && !atomic_load(&s->is_late) && !atomic_load(&s->is_full))
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

/* Events of a limit are handed out in the order of the wave.  Those before i that still run count
 * as nothing, so a plan may get more than its share and end where it should not: keep_wave() drops
 * it.  It never gets less, so which plans are kept depends on no thread.  0: nothing is left. */
static uint64_t events_for(const wave *w, size_t i)
{
    uint64_t left = w->s->events_left;
    if (atomic_load(&w->spent) < i)
        return 0;
    for (size_t k = 0; k < i && left; k++) {
        const uint64_t used = atomic_load(&w->events[k]);
        left -= used < left ? used : left;
    }
    return left;
}

static void mark_spent(wave *w, size_t i)
{
    size_t first = atomic_load(&w->spent);
    while (i < first && !atomic_compare_exchange_weak(&w->spent, &first, i))
        ;
}

static orr_code simulate_one(void *context, size_t i, orr_error *err)
{
    wave *w = context;
    search_events events = {0};
    if (check_stop(w->s, err))
        return ORR_ESTOP;
    if (w->s->opt.max_events && !(events.most = events_for(w, i))) {
        mark_spent(w, i);
        return ORR_OK;
    }
    const orr_code code =
        search_simulate(w->s, &w->s->list[w->items[i]], &events, &w->results[i], err);
    atomic_store(&w->events[i], events.used);
    if (events.is_spent) {
        mark_spent(w, i);
        return ORR_OK;
    }
    if (code == ORR_ESTOP)
        (void)!check_stop(w->s, err); /* the time was over in the middle of it */
    if (code != ORR_EINPUT)
        return code;
    w->errors[i] = *err; /* only this plan cannot be simulated */
    return ORR_OK;
}

static void tell(orr_plan_search *s, size_t left)
{
    s->counts.simulated = s->plan_count;
    s->counts.to_do = left;
    if (s->opt.progress)
        s->opt.progress(s->opt.context, &s->counts);
}

/* ---- those with a fine bound, as a heap ---- */

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

/* Remaining simulations, as far as known. */
static size_t still_hopeful(const orr_plan_search *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->heap_count; i++)
        n += !is_hopeless(s, &s->list[s->heap[i]]);
    for (size_t i = s->refined; i < s->count && !is_hopeless(s, &s->list[s->order[i]]); i++)
        n++;
    return n;
}

/* Stopped: how many might beat the best so far, and by how much. */
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

/* What ended before a stop is kept, as far as the events of the limit go. */
static void keep_wave(orr_plan_search *s, const wave *w, size_t count)
{
    const size_t spent = atomic_load(&w->spent);
    for (size_t i = 0; i < count; i++) {
        const uint64_t used = atomic_load(&w->events[i]);
        if (s->opt.max_events && (i >= spent || used > s->events_left))
            s->is_spent = true;
        if (s->is_spent) {
            push(s, w->items[i]); /* not done */
            continue;
        }
        s->events_left -= s->opt.max_events ? used : 0;
        if (w->results[i].step_s > 0) {
            s->plans[s->plan_count++] = (search_result){w->results[i], w->items[i]};
        } else if (w->errors[i].code) {
            if (!s->counts.failed++)
                snprintf(s->failure, sizeof s->failure, "%.*s", (int)sizeof s->failure - 1,
                         w->errors[i].message);
        } else {
            push(s, w->items[i]); /* not done */
        }
    }
}

static orr_code run_wave(orr_plan_search *s, const uint32_t *items, size_t count, orr_error *err)
{
    orr_plan results[WAVE] = {0};
    orr_error errors[WAVE] = {0};
    atomic_uint_fast64_t events[WAVE] = {0};
    wave w = {.s = s,
              .items = items,
              .results = results,
              .errors = errors,
              .events = events,
              .spent = SIZE_MAX};
    if (!orr_grow(&s->plans, &s->plan_room, s->plan_count + count))
        return orr_no_memory(err);
    const orr_code code = orr_pool_for(s->opt.threads, count, simulate_one, &w, err);
    keep_wave(s, &w, count);
    qsort_r(s->plans, s->plan_count, sizeof *s->plans, compare_plans, s);
    return code;
}

/* ORR_ESTOP: no events are left for another wave. */
static orr_code check_events(orr_plan_search *s, orr_error *err)
{
    if (s->opt.max_events && !s->events_left)
        s->is_spent = true;
    return s->is_spent ? orr_fail(err, ORR_ESTOP, NULL, "stopped") : ORR_OK;
}

/* Deferred until a search runs: it would double the time of listing plans. */
static orr_code make_bounds(orr_plan_search *s, orr_error *err)
{
    const orr_code code = s->bounds ? ORR_OK : search_bounds_create(s, err);
    if (!code)
        return orr_pool_for(s->opt.threads, s->count, bound_one, s, err);
    search_bounds_destroy(s->bounds);
    s->bounds = NULL;
    return code;
}

/* As runs say it. */
static orr_code say_limit(const orr_plan_search *s, orr_error *err)
{
    const orr_plan_options *o = &s->opt;
    char text[ORR_UNIT_ROOM];
    if (atomic_load(&s->is_late))
        return orr_fail(err, ORR_ESTOP, NULL, "the limit of %.6g s is reached", o->max_seconds);
    if (atomic_load(&s->is_full)) {
        orr_bytes_text((orr_bytes)o->max_bytes, text);
        return orr_fail(err, ORR_ESTOP, NULL, "the limit of %s of memory is reached", text);
    }
    if (s->is_spent)
        return orr_fail(err, ORR_ESTOP, NULL, "the limit of %" PRIu64 " event%s is reached",
                        o->max_events, o->max_events == 1 ? "" : "s");
    return orr_fail(err, ORR_ESTOP, NULL, "interrupted");
}

enum { LONGEST_S = 1 << 30 }; /* 34 years */

static uint64_t end_after(double seconds)
{
    const double some = seconds < LONGEST_S ? seconds : LONGEST_S;
    return seconds > 0 ? now_ns() + (uint64_t)(some * 1e9) : 0;
}

orr_code orr_plan_search_run(orr_plan_search *s, orr_error *err)
{
    uint32_t items[WAVE];
    size_t count = 1;
    s->events_left = s->opt.max_events;
    s->end_ns = end_after(s->opt.max_seconds);
    orr_code code = make_bounds(s, err);
    for (uint32_t i = 0; i < s->count; i++)
        s->order[i] = i;
    const bool is_ordered = !code;
    if (!code)
        qsort_r(s->order, s->count, sizeof *s->order, compare_bounds, s);
    while (!code && count) {
        code = next_wave(s, items, &count, err);
        if (!code && count)
            code = check_events(s, err);
        if (!code && count)
            code = run_wave(s, items, count, err);
        else if (code == ORR_ESTOP)
            for (size_t i = 0; i < count; i++)
                push(s, items[i]); /* not done */
        tell(s, still_hopeful(s));
    }
    if (code == ORR_ESTOP && is_ordered)
        count_open(s);
    s->end_ns = 0; /* runs after the search have limits of their own */
    s->counts.events = s->opt.max_events - s->events_left;
    s->counts.bounded = s->count - s->plan_count - s->counts.failed;
    if (!code && !s->plan_count)
        code = orr_fail(err, ORR_EINPUT, NULL, "no plan could be simulated: %s", s->failure);
    return code == ORR_ESTOP ? say_limit(s, err) : code;
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

/* Every legal plan, and which of them fit into memory.
 *
 * Degrees are divisors of the number of devices, micro-batches divisors of a data-parallel rank's
 * share; all other constraints are checked by orr_llm_complete and depend neither on the ZeRO stage
 * nor on recomputation, so one check covers all of these.  Axes without effect (the schedule of one
 * stage, ZeRO of one rank) have one value.
 *
 * If nothing is left, the constraint that removed the last plan is reported: the reasons are
 * counted on the way. */

/* MOST_ASKED: limit on combinations of degrees, micro-batch and schedule; 70B on 1,024 devices has
 * some 30,000. */
enum { MOST_CHUNKS = 64, REASON_ROOM = 200, MOST_ASKED = 1 << 20 };

/* The part of the space that has these degrees. */
typedef struct space {
    const orr_plan_search *s;
    atomic_uint *asked; /* over all parts */
    search_candidate like;
    search_candidate *list;
    size_t count, room;
    uint64_t legal;
    char illegal[REASON_ROOM]; /* why the last one was illegal; "": none was */
    uint64_t illegal_count;
    search_candidate leanest; /* that does not fit */
    uint64_t leanest_bytes;
    bool failed;
} space;

static bool is_allowed(const orr_plan_search *s, orr_plan_axis axis, uint64_t value)
{
    return !s->opt.is_fixed[axis] || s->opt.fixed[axis] == value;
}

uint64_t search_next_divisor(uint64_t n, uint64_t after)
{
    uint64_t d = after + 1;
    for (; d <= n / d; d++)
        if (n % d == 0)
            return d;
    /* Divisors above the root have a partner below it, in descending order. */
    for (uint64_t q = d <= n ? n / d : 0; q; q--)
        if (n % q == 0)
            return n / q;
    return 0;
}

orr_llm_options search_options(const orr_plan_search *s, const search_candidate *c)
{
    orr_llm_options o = s->base;
    o.tp = c->tp;
    o.cp = c->cp;
    o.pp = c->pp;
    o.dp = c->dp;
    o.ep = c->ep;
    o.micro_batch = c->micro_batch;
    o.zero = c->zero;
    o.pipeline = (orr_pipeline)c->pipeline;
    o.chunks = c->chunks;
    o.recompute = (orr_recompute)c->recompute;
    if (o.recompute != ORR_RECOMPUTE_FULL)
        o.recompute_layers = 0;
    if (o.recompute != ORR_RECOMPUTE_PARTS)
        o.recompute_parts = 0;
    o.no_sequence_parallel = c->no_sequence_parallel;
    o.sync_every_micro_batch = c->is_synced;
    o.bucket_bytes = orr__llm_bucket_bytes(&o);
    return o;
}

void search_fill_in(orr_llm_options *o)
{
    o->steps = o->steps ? o->steps : 1;
    o->prefetch = o->prefetch ? o->prefetch : 1;
    o->bucket_bytes = orr__llm_bucket_bytes(o);
}

/* ---- memory ---- */

static void add(space *x, search_candidate c)
{
    if (!orr_grow(&x->list, &x->room, x->count + 1)) {
        x->failed = true;
        return;
    }
    x->list[x->count++] = c;
}

static uint64_t room_of(const orr_plan_search *s)
{
    const uint64_t all = s->base.device_bytes, kept = s->opt.reserve;
    return all > kept ? all - kept : 0;
}

/* All ZeRO stages of a plan: one if weights are the same on all ranks. */
static void add_zeros(space *x, search_candidate c, const orr__llm_view *v, orr_error *err)
{
    const orr_plan_search *s = x->s;
    const uint32_t zeros = (uint64_t)c.dp * c.cp > 1 ? ORR_LLM_ZEROS : 1;
    orr_llm_memory memory[ORR_LLM_ZEROS];
    if (orr__llm_view_memory(v, memory, err)) {
        x->failed = true;
        return;
    }
    const bool is_several = s->base.batch > (uint64_t)c.dp * c.micro_batch;
    for (uint32_t zero = s->base.shard ? 1 : 0; zero < zeros; zero++) {
        if (!is_allowed(s, ORR_PLAN_ZERO, zero))
            continue;
        /* With one micro-batch the step equals that of ZeRO 2, which needs less memory. */
        if (zero == 1 && is_allowed(s, ORR_PLAN_ZERO, 2) && !is_several)
            continue;
        x->legal++;
        c.zero = (uint8_t)zero;
        /* A rank that keeps only its shard of the gradients cannot accumulate those of all
         * micro-batches. */
        c.is_synced = is_several && (zero >= 2 || s->base.sync_every_micro_batch);
        c.memory = memory[zero].peak;
        if (c.memory <= room_of(s)) {
            add(x, c);
        } else if (!x->leanest_bytes || c.memory < x->leanest_bytes) {
            x->leanest = c;
            x->leanest_bytes = c.memory;
        }
    }
}

static void note_illegal(space *x, const orr_error *why)
{
    if (!why)
        return;
    x->illegal_count++;
    snprintf(x->illegal, sizeof x->illegal, "%.*s", REASON_ROOM - 1, why->message);
}

/* The rest of the options may rule it out. */
static bool can_recompute(const space *x, search_candidate c, orr_error *err)
{
    const orr_plan_search *s = x->s;
    if (c.recompute == ORR_RECOMPUTE_PARTS && !s->base.recompute_parts)
        return false;
    if (!s->base.fp8_kept && c.recompute != ORR_RECOMPUTE_PARTS)
        return true;
    orr_llm_options o = search_options(s, &c);
    o.zero = s->base.shard ? 1 : 0;
    return !orr_llm_complete(s->opt.model, &o, err);
}

static void add_recomputed(space *x, search_candidate c, const orr_llm_options *o, orr_error *err)
{
    orr__llm_view v;
    if (orr__llm_view_open(x->s->opt.model, o, &v, err)) {
        x->failed = true;
        return;
    }
    for (uint8_t r = ORR_RECOMPUTE_NONE; r < RECOMPUTES; r++) {
        c.recompute = r;
        if (!is_allowed(x->s, ORR_PLAN_RECOMPUTE, r))
            continue;
        if (!can_recompute(x, c, err)) {
            note_illegal(x, r == ORR_RECOMPUTE_PARTS && !x->s->base.recompute_parts ? NULL : err);
            continue;
        }
        const orr_llm_options own = search_options(x->s, &c);
        orr__llm_view_recompute(&v, &own);
        add_zeros(x, c, &v, err);
    }
    orr__llm_view_close(&v);
}

/* ---- legality ---- */

static bool is_enough(const space *x)
{
    return atomic_load(x->asked) > MOST_ASKED;
}

static void add_if_legal(space *x, search_candidate c, orr_error *err)
{
    orr_llm_options o = search_options(x->s, &c);
    atomic_fetch_add(x->asked, 1);
    o.zero = x->s->base.shard ? 1 : 0; /* shards are of something */
    if (orr_llm_complete(x->s->opt.model, &o, err))
        note_illegal(x, err);
    else
        add_recomputed(x, c, &o, err);
}

static void add_sequences(space *x, search_candidate c, orr_error *err)
{
    const bool has_choice = c.tp > 1;
    for (int sp = 1; sp >= 0; sp--) {
        if (!has_choice && !sp)
            continue;
        if (has_choice && !is_allowed(x->s, ORR_PLAN_SEQUENCE_PARALLEL, (uint64_t)sp))
            continue;
        c.no_sequence_parallel = !sp;
        add_if_legal(x, c, err);
    }
}

static void add_schedule(
    space *x, search_candidate c, orr_pipeline p, uint32_t chunks, orr_error *err)
{
    const bool has_choice = c.pp > 1;
    if ((has_choice && !is_allowed(x->s, ORR_PLAN_PIPELINE, p)) ||
        !is_allowed(x->s, ORR_PLAN_CHUNKS, chunks))
        return;
    c.pipeline = (uint8_t)p;
    c.chunks = (uint8_t)chunks;
    add_sequences(x, c, err);
}

/* Chunks with equal numbers of layers; the ends, which have embedding and loss, may have one
 * fewer. */
static bool comes_out_even(const orr_plan_search *s, uint64_t stages)
{
    const uint64_t layers = s->opt.model->layers;
    /* MTP layers and the loss count as layers of the last stage (stage_layout.c). */
    const uint64_t all = layers + s->opt.model->mtp_layers + 1;
    if (s->base.has_mtp)
        return stages <= layers + 1 && (all + 1) / stages * stages >= all;
    return stages <= layers + 2 && (layers + 2) / stages * stages >= layers;
}

static void add_schedules(space *x, search_candidate c, orr_error *err)
{
    const uint64_t batches = x->s->base.batch / ((uint64_t)c.dp * c.micro_batch);
    add_schedule(x, c, ORR_PIPELINE_1F1B, 1, err);
    if (c.pp == 1)
        return;
    add_schedule(x, c, ORR_PIPELINE_GPIPE, 1, err);
    add_schedule(x, c, ORR_PIPELINE_ZERO_BUBBLE, 1, err);
    if (batches >= 2 * (uint64_t)c.pp && comes_out_even(x->s, (uint64_t)c.pp * 2))
        add_schedule(x, c, ORR_PIPELINE_ZB_V, 2, err);
    for (uint32_t chunks = 2; chunks <= MOST_CHUNKS && batches % c.pp == 0; chunks++)
        if (comes_out_even(x->s, (uint64_t)c.pp * chunks))
            add_schedule(x, c, ORR_PIPELINE_INTERLEAVED, chunks, err);
}

static void add_micro_batches(space *x, search_candidate c, orr_error *err)
{
    const uint64_t batch = x->s->base.batch, each = batch / c.dp;
    if (batch % c.dp || each == 0) {
        x->illegal_count++;
        snprintf(x->illegal, sizeof x->illegal,
                 "a batch of %" PRIu64 " sequences is not a multiple of dp %u", batch, c.dp);
        return;
    }
    for (uint64_t mb = 1; mb && mb <= UINT32_MAX && !is_enough(x);
         mb = search_next_divisor(each, mb)) {
        if (!is_allowed(x->s, ORR_PLAN_MICRO_BATCH, mb))
            continue;
        c.micro_batch = (uint32_t)mb;
        add_schedules(x, c, err);
    }
}

static void add_experts(space *x, search_candidate c, orr_error *err)
{
    const uint64_t experts = x->s->opt.model->experts, whole = x->s->base.expert_tp;
    /* Whole experts are spread over tensor-parallel ranks, too. */
    const uint64_t blocks = (uint64_t)c.dp * c.cp * (whole && whole < c.tp ? c.tp : 1);
    for (uint64_t ep = 1; ep && (ep == 1 || ep <= experts); ep = search_next_divisor(blocks, ep)) {
        if (ep > 1 && experts % ep)
            continue;
        if (!is_allowed(x->s, ORR_PLAN_EP, ep))
            continue;
        c.ep = (uint32_t)ep;
        add_micro_batches(x, c, err);
    }
}

/* ---- all degrees ---- */

typedef struct spaces {
    space *list;
    size_t count, room;
    atomic_uint asked;
} spaces;

static bool add_degrees(orr_plan_search *s, spaces *all, search_candidate c)
{
    if (!is_allowed(s, ORR_PLAN_TP, c.tp) || !is_allowed(s, ORR_PLAN_CP, c.cp) ||
        !is_allowed(s, ORR_PLAN_PP, c.pp) || !is_allowed(s, ORR_PLAN_DP, c.dp))
        return true;
    if (!orr_grow(&all->list, &all->room, all->count + 1))
        return false;
    all->list[all->count++] = (space){.s = s, .asked = &all->asked, .like = c};
    return true;
}

/* In the order of tp, cp and pp. */
static bool list_degrees(orr_plan_search *s, spaces *all)
{
    const uint32_t n = orr_machine_devices(&s->machine);
    bool ok = true;
    for (uint64_t tp = 1; tp; tp = search_next_divisor(n, tp))
        for (uint64_t cp = 1; cp; cp = search_next_divisor(n / tp, cp))
            for (uint64_t left = n / tp / cp, pp = 1; ok && pp; pp = search_next_divisor(left, pp))
                ok = all->count < MOST_ASKED &&
                     add_degrees(s, all,
                                 (search_candidate){.tp = (uint32_t)tp,
                                                    .cp = (uint32_t)cp,
                                                    .pp = (uint32_t)pp,
                                                    .dp = (uint32_t)(left / pp)});
    return ok;
}

static orr_code fill_space(void *context, size_t i, orr_error *err)
{
    space *x = &((spaces *)context)->list[i];
    orr_error why;
    add_experts(x, x->like, &why);
    return is_enough(x) ? orr_fail(err, ORR_EUSAGE, NULL,
                                   "more than %d ways to divide the work among %u devices: fix the "
                                   "micro-batch or some of tp, cp, pp, dp",
                                   MOST_ASKED, orr_machine_devices(&x->s->machine))
                        : ORR_OK;
}

/* Concatenates all parts, in the order of their degrees. */
static bool join(orr_plan_search *s, const spaces *all, space *out)
{
    for (size_t i = 0; i < all->count; i++) {
        const space *x = &all->list[i];
        if (x->failed || !orr_grow(&s->list, &s->room, s->count + x->count))
            return false;
        if (x->count)
            memcpy(&s->list[s->count], x->list, x->count * sizeof *x->list);
        s->count += x->count;
        out->legal += x->legal;
        out->illegal_count += x->illegal_count;
        if (x->illegal[0])
            memcpy(out->illegal, x->illegal, sizeof out->illegal);
        if (x->leanest_bytes && (!out->leanest_bytes || x->leanest_bytes < out->leanest_bytes)) {
            out->leanest = x->leanest;
            out->leanest_bytes = x->leanest_bytes;
        }
    }
    return true;
}

static orr_code list_all(orr_plan_search *s, space *x, orr_error *err)
{
    spaces all = {0};
    orr_code code = list_degrees(s, &all) ? ORR_OK : orr_no_memory(err);
    if (!code)
        code = orr_pool_for(s->opt.threads, all.count, fill_space, &all, err);
    if (!code && !join(s, &all, x))
        code = orr_no_memory(err);
    for (size_t i = 0; i < all.count; i++)
        orr_free(all.list[i].list);
    orr_free(all.list);
    return code;
}

/* ---- nothing left ---- */

enum { WORDS_ROOM = 400 };

static void add_words(char out[WORDS_ROOM], size_t *used, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(out + *used, WORDS_ROOM - *used, format, args);
    va_end(args);
    *used += n < 0 ? 0 : (size_t)n;
    *used = *used < WORDS_ROOM ? *used : WORDS_ROOM - 1;
}

static void list_fixed(const orr_plan_search *s, char out[WORDS_ROOM])
{
    size_t used = 0;
    char room[SEARCH_VALUE_ROOM];
    out[0] = 0;
    for (unsigned i = 0; i < ORR_PLAN_AXES; i++)
        if (s->opt.is_fixed[i])
            add_words(out, &used, "%s%s=%s", used ? ", " : "", orr_plan_axis_name((orr_plan_axis)i),
                      value_text((orr_plan_axis)i, s->opt.fixed[i], room));
}

static uint64_t value_of(const search_candidate *c, orr_plan_axis axis)
{
    const uint64_t values[ORR_PLAN_AXES] = {
        [ORR_PLAN_TP] = c->tp,
        [ORR_PLAN_CP] = c->cp,
        [ORR_PLAN_PP] = c->pp,
        [ORR_PLAN_DP] = c->dp,
        [ORR_PLAN_EP] = c->ep,
        [ORR_PLAN_ZERO] = c->zero,
        [ORR_PLAN_MICRO_BATCH] = c->micro_batch,
        [ORR_PLAN_PIPELINE] = c->pipeline,
        [ORR_PLAN_CHUNKS] = c->chunks,
        [ORR_PLAN_RECOMPUTE] = c->recompute,
        [ORR_PLAN_SEQUENCE_PARALLEL] = !c->no_sequence_parallel,
    };
    return values[axis];
}

enum { MOST_VALUES = 8 };

/* The possible values of an axis if it were free: "tp=3 (could be 1, 2, 4)".  Nothing: it is not
 * the cause. */
static orr_code blame(const orr_plan_search *s,
                      orr_plan_axis axis,
                      char out[WORDS_ROOM],
                      size_t *used,
                      orr_error *err)
{
    orr_plan_search t = {.opt = s->opt, .machine = s->machine, .base = s->base};
    space x = {.s = &t};
    uint64_t seen[MOST_VALUES];
    size_t count = 0;
    char room[SEARCH_VALUE_ROOM];
    t.opt.is_fixed[axis] = false;
    const orr_code code = list_all(&t, &x, err);
    for (size_t i = 0; i < t.count && !code; i++) {
        const uint64_t v = value_of(&t.list[i], axis);
        size_t k = 0;
        while (k < count && k < MOST_VALUES && seen[k] != v)
            k++;
        if (k < count || count > MOST_VALUES)
            continue;
        if (count == 0)
            add_words(out, used, "%s%s=%s (could be ", *used ? ", " : "", orr_plan_axis_name(axis),
                      value_text(axis, s->opt.fixed[axis], room));
        if (count < MOST_VALUES)
            seen[count] = v;
        add_words(out, used, "%s%s", count ? ", " : "",
                  count < MOST_VALUES ? value_text(axis, v, room) : "...");
        count++;
    }
    if (count)
        add_words(out, used, ")");
    orr_free(t.list);
    return code;
}

static orr_code refuse(const space *x, orr_error *err)
{
    const orr_plan_search *s = x->s;
    char fixed[WORDS_ROOM], guilty[WORDS_ROOM] = "", a[4][ORR_UNIT_ROOM], words[160];
    size_t used = 0, fixed_count = 0;
    if (x->legal) {
        const orr_plan p = {.options = search_options(s, &x->leanest)};
        orr_plan_words(&p, words, sizeof words);
        return orr_fail(
            err, ORR_EUSAGE, NULL,
            "no plan fits into memory: the smallest of %s legal plans (%s) needs %s per device, "
            "which has %s, %s of them reserved",
            orr_count_text(x->legal, a[0]), words,
            orr_bytes_text((orr_bytes)x->leanest_bytes, a[1]),
            orr_bytes_text((orr_bytes)s->base.device_bytes, a[2]),
            orr_bytes_text((orr_bytes)s->opt.reserve, a[3]));
    }
    list_fixed(s, fixed);
    for (unsigned i = 0; i < ORR_PLAN_AXES; i++) {
        if (!s->opt.is_fixed[i])
            continue;
        fixed_count++;
        const orr_code code = blame(s, (orr_plan_axis)i, guilty, &used, err);
        if (code)
            return code;
    }
    const bool has_reason = x->illegal_count && (fixed_count < 2 || !guilty[0]);
    if (guilty[0])
        return orr_fail(err, ORR_EUSAGE, NULL, "no plan is left: %s%s removes the last one%s%s",
                        guilty, strchr(guilty, '=') != strrchr(guilty, '=') ? ": any of them" : "",
                        has_reason ? ": " : "", has_reason ? x->illegal : "");
    if (x->illegal_count)
        return orr_fail(err, ORR_EUSAGE, NULL, "no plan is legal%s%s: the last one refused: %s",
                        fixed[0] ? " with " : "", fixed, x->illegal);
    return orr_fail(
        err, ORR_EUSAGE, NULL,
        "no plan is left with %s, and no single constraint is the cause: tp x cp x pp x dp "
        "must be the %u devices, chunks require the interleaved schedule, ep requires experts, "
        "and ZeRO several data-parallel ranks",
        fixed, orr_machine_devices(&s->machine));
}

/* plan_search.c: fills the list.  ORR_EUSAGE: nothing is legal, or nothing fits, and why. */
static orr_code list_plans(orr_plan_search *s, orr_error *err)
{
    space x = {.s = s};
    const orr_code code = list_all(s, &x, err);
    s->counts.legal = x.legal;
    s->counts.fitting = s->count;
    return code || s->count ? code : refuse(&x, err);
}
