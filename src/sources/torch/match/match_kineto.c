/* SPDX-License-Identifier: Apache-2.0 */
/* match_kineto.c - measured operators from a trace of PyTorch's profiler (Kineto), recorded with record_shapes.
 *
 * Who called whom is a matter of time: on one thread, an operator that begins and ends inside another was called by it.  A
 * kernel's time goes to the operator with its "External id".  Of several steps (ProfilerStep#) the last one counts.  What
 * operators made is not in it, so bytes are not known.  Cost: a sort over the operators. */
#include "match_impl.h"
#include "match_tensors.h"

#include <stdlib.h>

#define TIME_MOST 1e15 /* microseconds */

/* An operator, or a step, on its thread. */
typedef struct interval {
    double from, to;
    int64_t thread;
    uint32_t call;
} interval;

typedef struct kernel {
    uint64_t external;
    orr_ps time;
} kernel;

typedef struct kineto {
    match *m;
    orr_json *j;
    interval *intervals;
    size_t interval_count, interval_room;
    kernel *kernels;
    size_t kernel_count, kernel_room;
    orr_map *by_external; /* to a call */
    interval step;        /* to <= from: there is none */
    match_tensors tensors;
    orr_error *err;
} kineto;

/* ---- tensors ---- */

static orr_code add_tensor(kineto *k, orr_json_value shape)
{
    operator_tensor t = {0};
    const orr_code code = match_sizes(&k->tensors, shape, &t.rank);
    return code ? code : match_tensor(&k->tensors, &t, shape);
}

/* Numbers and lists of numbers have types, too, but no shapes. */
static bool is_tensor_type(orr_str type)
{
    return type.len && !orr_str_is(type, "Scalar") && !orr_str_is(type, "ScalarList") &&
           !orr_str_is(type, "GenericList");
}

static orr_code add_shape(kineto *k, orr_json_value shape, orr_str type)
{
    orr_json_iter it = orr_json_iterate(shape);
    orr_json_value first, v;
    const bool is_list =
        orr_json_next_value(&it, &first) && orr_json_type_of(first) == ORR_JSON_ARRAY;
    if (!is_list)
        return is_tensor_type(type) || orr_json_count(shape) ? add_tensor(k, shape) : ORR_OK;
    orr_code code = ORR_OK;
    for (it = orr_json_iterate(shape); !code && orr_json_next_value(&it, &v);)
        code = add_tensor(k, v);
    return code;
}

static orr_code add_shapes(kineto *k, orr_json_value args)
{
    orr_json_value shapes, types, shape, type;
    orr_json_iter t = {0};
    k->tensors.count = k->tensors.dim_count = 0;
    if (!orr_json_find(args, "Input Dims", &shapes))
        return ORR_OK;
    const bool has_types = orr_json_find(args, "Input type", &types);
    if (has_types)
        t = orr_json_iterate(types);
    for (orr_json_iter s = orr_json_iterate(shapes); orr_json_next_value(&s, &shape);) {
        orr_str word = {"", 0};
        orr_code code = ORR_OK;
        if (has_types && orr_json_next_value(&t, &type))
            code = orr_json_get_str(type, &word, k->err);
        if (code || (code = add_shape(k, shape, word)))
            return code;
    }
    const uint64_t *at = k->tensors.dims; /* only now do the sizes stay where they are */
    for (size_t i = 0; i < k->tensors.count; i++) {
        k->tensors.list[i].shape = at;
        at += k->tensors.list[i].rank;
    }
    return ORR_OK;
}

/* ---- events ---- */

static orr_code get_time(kineto *k, orr_json_value event, const char *key, double *out)
{
    orr_json_value v;
    if (!orr_json_find(event, key, &v))
        return match_fail(k->err, event, "a complete event without \"%s\"", key);
    const orr_code code = orr_json_get_double(v, out, k->err);
    if (code || (*out >= -TIME_MOST && *out <= TIME_MOST))
        return code;
    return match_fail(k->err, event, "\"%s\" is out of range: microseconds were expected", key);
}

static orr_code get_interval(kineto *k, orr_json_value event, interval *out)
{
    double length;
    orr_json_value tid;
    *out = (interval){.call = MATCH_NONE};
    orr_code code = get_time(k, event, "ts", &out->from);
    if (code || (code = get_time(k, event, "dur", &length)))
        return code;
    out->to = out->from + (length > 0 ? length : 0);
    if (orr_json_find(event, "tid", &tid) && orr_json_type_of(tid) == ORR_JSON_INT)
        return orr_json_get_i64(tid, &out->thread, k->err);
    return ORR_OK;
}

/* 0: there is none. */
static uint64_t external_of(orr_json_value args)
{
    orr_json_value v;
    uint64_t id;
    return orr_json_find(args, "External id", &v) && !orr_json_get_u64(v, &id, NULL) ? id : 0;
}

static orr_code add_operator(kineto *k, orr_json_value event, orr_json_value args, orr_str name)
{
    interval span;
    match_side *s = &k->m->sides[MATCH_MEASURED];
    orr_code code = get_interval(k, event, &span);
    if (code || (code = add_shapes(k, args)))
        return code;
    const match_draft draft = {
        .call = {.name = name, .in = k->tensors.list, .in_count = (uint32_t)k->tensors.count},
        .caller = MATCH_NONE,
        .count = 1};
    span.call = (uint32_t)s->count;
    if ((code = match_add(k->m, MATCH_MEASURED, &draft, k->err)) || s->count == span.call)
        return code;
    if (!orr_grow(&k->intervals, &k->interval_room, k->interval_count + 1) ||
        !orr_map_put(k->by_external, external_of(args), span.call, NULL))
        return orr_no_memory(k->err);
    k->intervals[k->interval_count++] = span;
    return ORR_OK;
}

static orr_code add_kernel(kineto *k, orr_json_value event, orr_json_value args)
{
    double us;
    const orr_code code = get_time(k, event, "dur", &us);
    if (code)
        return code;
    if (!orr_grow(&k->kernels, &k->kernel_room, k->kernel_count + 1))
        return orr_no_memory(k->err);
    /* At most 1e15 us: more than any time that is kept, so it ends there. */
    const double ps = us > 0 ? us * 1e6 + 0.5 : 0;
    k->kernels[k->kernel_count++] =
        (kernel){external_of(args), ps < 9e18 ? (orr_ps)ps : (orr_ps)9e18};
    return ORR_OK;
}

static orr_code read_event(kineto *k, orr_json_value event)
{
    orr_json_value v, args = event;
    orr_str phase, category, name;
    if (!orr_json_find(event, "ph", &v) || orr_json_get_str(v, &phase, NULL) ||
        !orr_str_is(phase, "X") || !orr_json_find(event, "cat", &v) ||
        orr_json_get_str(v, &category, NULL) || !orr_json_find(event, "name", &v) ||
        orr_json_get_str(v, &name, NULL))
        return ORR_OK;
    (void)orr_json_find(event, "args", &args);
    if (orr_str_is(category, "cpu_op") && orr_str_begins(name, "aten::"))
        return add_operator(k, event, args, name);
    if (orr_str_is(category, "kernel") || orr_str_begins(category, "gpu_mem"))
        return add_kernel(k, event, args);
    if (orr_str_is(category, "user_annotation") && orr_str_begins(name, "ProfilerStep#")) {
        interval step;
        const orr_code code = get_interval(k, event, &step);
        if (!code && (k->step.to <= k->step.from || step.from > k->step.from))
            k->step = step;
        return code;
    }
    return ORR_OK;
}

static orr_code read_events(kineto *k)
{
    orr_json_item item;
    orr_json_value v;
    orr_code code = orr_json_enter(k->j, k->err);
    while (!code && !(code = orr_json_next(k->j, &item, k->err))) {
        if (!(code = orr_json_load(k->j, &v, k->err)))
            code = read_event(k, v);
    }
    return code == ORR_END ? ORR_OK : code;
}

static orr_code read_document(kineto *k)
{
    orr_json_item item;
    orr_code code = orr_json_next(k->j, &item, k->err);
    if (code || (code = orr_json_enter(k->j, k->err)))
        return code;
    while ((code = orr_json_next(k->j, &item, k->err)) == ORR_OK) {
        if (orr_str_is(item.key, "traceEvents") && item.type == ORR_JSON_ARRAY &&
            (code = read_events(k)))
            return code;
    }
    if (code != ORR_END)
        return code;
    const orr_where w = orr_json_place(k->j, 0);
    if (k->interval_count == 0)
        return orr_fail(
            k->err, ORR_EINPUT, &w,
            "no operators (\"cat\": \"cpu_op\", \"name\": \"aten::...\") among \"traceEvents\"");
    return ORR_OK;
}

/* ---- when all events are there ---- */

static int by_start(const void *a, const void *b)
{
    const interval *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->from < y->from || x->from > y->from)
        return x->from < y->from ? -1 : 1;
    if (x->to < y->to || x->to > y->to)
        return x->to > y->to ? -1 : 1;
    return x->call < y->call ? -1 : x->call > y->call;
}

/* The stack of open operators lies in the list itself: callers lead from the innermost outwards. */
static void find_callers(kineto *k)
{
    match_call *calls = k->m->sides[MATCH_MEASURED].calls;
    size_t depth = 0;
    interval *open =
        k->intervals; /* entries before the one that is looked at are not needed any more */
    qsort(k->intervals, k->interval_count, sizeof *k->intervals, by_start);
    for (size_t i = 0; i < k->interval_count; i++) {
        const interval at = k->intervals[i];
        while (depth && (open[depth - 1].thread != at.thread || open[depth - 1].to <= at.from))
            depth--;
        calls[at.call].caller = depth ? open[depth - 1].call : MATCH_NONE;
        open[depth++] = at;
    }
}

static void give_times(kineto *k)
{
    match_side *s = &k->m->sides[MATCH_MEASURED];
    for (size_t i = 0; i < k->kernel_count; i++) {
        const uint32_t call = orr_map_find(k->by_external, k->kernels[i].external, MATCH_NONE);
        if (call == MATCH_NONE || k->kernels[i].external == 0)
            continue;
        if (__builtin_add_overflow(s->calls[call].time, k->kernels[i].time, &s->calls[call].time))
            s->calls[call].time = INT64_MAX;
        s->has_times |= k->kernels[i].time > 0;
    }
}

/* Operators outside of the last step do not count. */
static void keep_step(kineto *k)
{
    match_call *calls = k->m->sides[MATCH_MEASURED].calls;
    for (size_t i = 0; k->step.to > k->step.from && i < k->interval_count; i++) {
        const interval *at = &k->intervals[i];
        if (at->from >= k->step.from && at->from < k->step.to)
            continue;
        match_call *c = &calls[at->call];
        c->count = c->flops = c->bytes = 0;
        c->time = 0;
        c->is_free = true;
    }
}

orr_code match_kineto(match *m, orr_span bytes, const char *label, orr_error *err)
{
    kineto k = {.m = m, .by_external = orr_map_create(1024), .tensors = {.err = err}, .err = err};
    orr_code code = k.by_external ? orr_json_open(bytes, label, &k.j, err) : orr_no_memory(err);
    if (!code && !(code = read_document(&k))) {
        give_times(&k);
        keep_step(&k);
        find_callers(&k);
    }
    orr_json_close(k.j);
    orr_map_destroy(k.by_external);
    orr_free(k.intervals);
    orr_free(k.kernels);
    match_tensors_fini(&k.tensors);
    return code;
}
