/* SPDX-License-Identifier: Apache-2.0 */
/* kineto_read.c - a device trace from its JSON, one event at a time (chakra.md 3.3).
 *
 * Why records and not trees: a trace of some seconds has a million events, of which a dozen fields
 * matter. Which fields an event has depends on its writer: CUDA, ROCm and the host side differ, and
 * so do versions of PyTorch.  Only traceEvents is required; a field of the wrong type makes a bad
 * event, which is counted, or by other rules an error at its place.
 * Cost: one pass; an index of one piece of the file, one record per relevant event. */
#include "kineto.h"

#include "base/text/number.h"
#include "trace/formats/chrome_event.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>

/* The difference of two times must fit. */
#define MAX_NS (INT64_MAX / 2)
#define MAX_EXACT (INT64_C(1) << 53) /* whole numbers up to here are doubles */

typedef struct reader {
    orr_json *j;
    const kin_options *opt;
    kin_trace *k;
    orr_error *err;
} reader;

/* An event while its fields arrive, in any order. */
typedef struct draft {
    kin_event e;
    kin_extra x;
    chrome_event in;
    orr_str ph;
    bool has_ts, has_dur, has_name, has_id, has_extra, is_bad;
    const char *bad; /* which field */
} draft;

/* ---- values ---- */

static void is_bad(draft *d, const char *field)
{
    if (!d->is_bad)
        d->bad = field;
    d->is_bad = true;
}

/* An integer, also as a string or with a decimal point: writers differ. */
static bool lenient_i64(orr_json_value v, int64_t *out)
{
    orr_str s;
    double r;
    switch (orr_json_type_of(v)) {
    case ORR_JSON_INT:
        return orr_text_i64(orr_json_raw(v), out);
    case ORR_JSON_REAL:
        if (orr_json_get_double(v, &r, NULL) || !(fabs(r) < 9e15))
            return false;
        *out = (int64_t)r;
        return true;
    case ORR_JSON_STRING:
        return !orr_json_get_str(v, &s, NULL) && orr_text_i64(s, out);
    default:
        return false;
    }
}

static void take_id(draft *d, const char *field, orr_json_value v, int64_t *out)
{
    int64_t id;
    if (lenient_i64(v, &id))
        *out = id;
    else if (orr_json_type_of(v) != ORR_JSON_NULL)
        is_bad(d, field);
}

/* As take_id, for fields that some writers fill differently: "0x0" for a stream. */
static void take_hint(orr_json_value v, int64_t *out)
{
    int64_t id;
    if (lenient_i64(v, &id))
        *out = id;
}

static bool is_number(orr_json_value v)
{
    return orr_json_type_of(v) == ORR_JSON_INT || orr_json_type_of(v) == ORR_JSON_REAL;
}

static bool take_duration(const reader *r, draft *d, orr_json_value v)
{
    int64_t ns;
    d->e.flags |= orr_json_type_of(v) == ORR_JSON_REAL ? KIN_DUR_REAL : 0;
    const bool is_fine = is_number(v) && !orr_json_get_double(v, &d->e.dur, NULL);
    if (is_fine && r->opt->rules->keeps_micros)
        return true;
    if (!is_fine || !orr__micros_ns(orr_json_raw(v), &ns)) {
        is_bad(d, "dur");
        return false;
    }
    d->e.dur = (double)ns;
    return true;
}

/* A string, or a bad event. */
static bool take_str(draft *d, chrome_field f, const char *field)
{
    if (!chrome_has(&d->in, f))
        return false;
    const bool is_text = orr_json_type_of(d->in.of[f]) == ORR_JSON_STRING;
    if (!is_text)
        is_bad(d, field);
    return is_text;
}

static orr_code intern(reader *r, orr_str s, uint32_t *out)
{
    return orr_intern_add(r->k->texts, s, out) ? ORR_OK : orr_no_memory(r->err);
}

static orr_code intern_value(reader *r, orr_json_value v, uint32_t *out)
{
    orr_str s;
    if (orr_json_type_of(v) != ORR_JSON_STRING || orr_json_get_str(v, &s, NULL))
        s = orr_json_raw(v);
    return intern(r, s, out);
}

/* As in Python: a double, or an integer of any size (chakra.md 3.3).  The double is for values that
 * cannot be compared otherwise. */
static orr_code take_micros(reader *r, draft *d, orr_json_value v)
{
    uint32_t text = 0;
    d->has_ts = true;
    if (d->e.flags & KIN_TS_REAL) {
        r->k->has_real_start = true;
        return ORR_OK;
    }
    if (!orr_text_i64(orr_json_raw(v), &d->e.start_ns)) {
        r->k->has_huge_start = true;
        d->e.flags |= KIN_TS_HUGE;
        if (intern(r, orr_json_raw(v), &text))
            return ORR_ENOMEM;
        d->e.start_ns = text;
    } else if (d->e.start_ns > MAX_EXACT || d->e.start_ns < -MAX_EXACT) {
        r->k->has_wide_start = true;
    }
    return ORR_OK;
}

/* Timestamps have 16 digits before the point and three after it, more than a double holds: so both
 * forms. */
static orr_code take_start(reader *r, draft *d, orr_json_value v)
{
    d->e.flags |= orr_json_type_of(v) == ORR_JSON_REAL ? KIN_TS_REAL : 0;
    const bool is_fine = is_number(v) && !orr_json_get_double(v, &d->e.ts, NULL);
    if (is_fine && r->opt->rules->keeps_micros)
        return take_micros(r, d, v);
    d->has_ts = is_fine && orr__micros_ns(orr_json_raw(v), &d->e.start_ns) &&
                d->e.start_ns > -MAX_NS && d->e.start_ns < MAX_NS;
    if (!d->has_ts)
        is_bad(d, "ts");
    return ORR_OK;
}

/* ---- args ---- */

/* How a field of `args` is read, and where it is stored. */
typedef enum arg_kind {
    ARG_ID,     /* a number of the event; without one the event is bad */
    ARG_HINT,   /* a number of the event, optional */
    ARG_STREAM, /* ROCm writes "0x0" for calls */
    ARG_DEVICE,
    ARG_EXTRA, /* a number of what communicates */
    ARG_WORD,  /* ... a text */
    ARG_RAW    /* ... a string or list, verbatim */
} arg_kind;

static const struct {
    const char *name;
    arg_kind kind;
    size_t at; /* of a kin_event; from ARG_EXTRA on of a kin_extra */
} args[] = {
    {"External id", ARG_ID, offsetof(kin_event, external)},
    {"external id", ARG_ID, offsetof(kin_event, external)},
    {"Record function id", ARG_HINT, offsetof(kin_event, rf)},
    {"correlation", ARG_ID, offsetof(kin_event, correlation)},
    {"stream", ARG_STREAM, offsetof(kin_event, stream)},
    {"device", ARG_DEVICE, offsetof(kin_event, device)},
    {"Process Group Name", ARG_RAW, offsetof(kin_extra, group)},
    {"Collective name", ARG_WORD, offsetof(kin_extra, collective)},
    {"dtype", ARG_WORD, offsetof(kin_extra, dtype)},
    {"Process Group Ranks", ARG_WORD, offsetof(kin_extra, ranks)},
    {"In msg nelems", ARG_EXTRA, offsetof(kin_extra, in_elements)},
    {"Out msg nelems", ARG_EXTRA, offsetof(kin_extra, out_elements)},
    {"Group size", ARG_EXTRA, offsetof(kin_extra, group_size)},
    {"Src Rank", ARG_EXTRA, offsetof(kin_extra, source)},
    {"Dst Rank", ARG_EXTRA, offsetof(kin_extra, target)},
    {"Seq", ARG_EXTRA, offsetof(kin_extra, sequence)},
    {"wait_on_stream", ARG_EXTRA, offsetof(kin_extra, wait_stream)},
    {"wait_on_cuda_event_record_corr_id", ARG_EXTRA, offsetof(kin_extra, wait_record)},
    {"bytes", ARG_EXTRA, offsetof(kin_extra, bytes)},
    {"graph node id", ARG_EXTRA, offsetof(kin_extra, graph_node)},
};

static orr_code take_arg(reader *r, draft *d, orr_str key, orr_json_value v)
{
    size_t i = 0;
    while (i < ORR_COUNT(args) &&
           (!key.len || key.ptr[0] != args[i].name[0] || !orr_str_is(key, args[i].name)))
        i++;
    if (i == ORR_COUNT(args))
        return ORR_OK;
    const arg_kind kind = args[i].kind;
    void *to = kind < ARG_EXTRA ? (char *)&d->e + args[i].at : (char *)&d->x + args[i].at;
    int64_t device = -1;
    d->has_extra |= kind >= ARG_EXTRA;
    switch (kind) {
    case ARG_ID:
        take_id(d, key.ptr[0] == 'c' ? "correlation" : "External id", v, to);
        return ORR_OK;
    case ARG_STREAM:
        if (r->opt->rules->refuse && orr_json_type_of(v) == ORR_JSON_STRING)
            is_bad(d, "stream");
        break;
    case ARG_DEVICE:
        take_hint(v, &device);
        d->e.device = device < 0 || device > INT16_MAX ? -1 : (int16_t)device;
        return ORR_OK;
    case ARG_WORD:
        return intern_value(r, v, to);
    case ARG_RAW:
        return intern(r, orr_json_raw(v), to);
    default:
        break;
    }
    take_hint(v, to);
    return ORR_OK;
}

static orr_code take_args(reader *r, draft *d, orr_json_value v)
{
    orr_str key;
    orr_json_value arg;
    for (orr_json_iter it = orr_json_iterate(v); orr_json_next_member(&it, &key, &arg);) {
        const orr_code code = take_arg(r, d, key, arg);
        if (code)
            return code;
    }
    return ORR_OK;
}

/* ---- one event ---- */

static orr_code take_fields(reader *r, draft *d)
{
    const chrome_event *in = &d->in;
    if (chrome_has(in, CHROME_TS) && take_start(r, d, in->of[CHROME_TS]))
        return ORR_ENOMEM;
    d->has_dur = chrome_has(in, CHROME_DUR) && take_duration(r, d, in->of[CHROME_DUR]);
    d->has_name = take_str(d, CHROME_NAME, "name");
    (void)take_str(d, CHROME_CAT, "cat");
    if (take_str(d, CHROME_PH, "ph"))
        d->ph = in->ph;
    d->has_id = chrome_has(in, CHROME_ID) && orr_json_type_of(in->of[CHROME_ID]) != ORR_JSON_NULL;
    if (chrome_has(in, CHROME_TID) &&
        !orr_intern_add(r->k->threads, orr_json_raw(in->of[CHROME_TID]), &d->e.tid))
        return orr_no_memory(r->err);
    return chrome_has(in, CHROME_ARGS) ? take_args(r, d, in->of[CHROME_ARGS]) : ORR_OK;
}

/* The names by which chakra_trace_link knows a launch (chakra.md 3.3). */
static bool is_known_launch(orr_str name)
{
    static const char *const names[] = {
        "cuLaunchKernel",        "cuLaunchKernelEx",     "cudaLaunchKernel",
        "cudaLaunchKernelExC",   "cudaMemcpy",           "cudaMemcpyAsync",
        "cudaMemcpyToSymbol",    "cudaMemcpyFromSymbol", "cudaLaunchCooperativeKernel",
        "hipLaunchKernel",       "hipExtLaunchKernel",   "hipExtModuleLaunchKernel",
        "hipModuleLaunchKernel", "hipMemcpyWithStream",  "hipMemcpyAsync",
    };
    return orr_str_among(name, names, ORR_COUNT(names));
}

static kin_class class_of(const draft *d)
{
    static const orr_word kinds[] = {
        {"cpu_op", KIN_OPERATOR},
        {"user_annotation", KIN_OPERATOR},
        {"cuda_runtime", KIN_RUNTIME},
        {"cuda_driver", KIN_RUNTIME},
        {"hip_runtime", KIN_RUNTIME},
        {"privateuse1_runtime", KIN_RUNTIME},
        {"xpu_runtime", KIN_RUNTIME},
        {"mtia_runtime", KIN_RUNTIME},
        {"kernel", KIN_KERNEL},
        {"gpu_memcpy", KIN_MEMCPY},
        {"gpu_memset", KIN_MEMSET},
        {"cuda_sync", KIN_SYNC},
        {"gpu_user_annotation", KIN_ANNOTATION},
    };
    return (kin_class)orr_word_find(kinds, ORR_COUNT(kinds), d->in.cat, KIN_OTHER);
}

/* ---- accelerators other than GPUs ----
 *
 * MTIA, HPUs and other devices have their own categories, which chakra_trace_link does not know.
 * Unknown ones are counted, and the category is named. */

static kin_class class_of_others(orr_str cat)
{
    static const orr_word kinds[] = {
        {"mtia_ccp_events", KIN_KERNEL},
        {"mtia_workloadd", KIN_KERNEL},
        {"hpu_op", KIN_KERNEL},
        {"npu_kernel", KIN_KERNEL},
        {"xpu_kernel", KIN_KERNEL},
        {"privateuse1_kernel", KIN_KERNEL},
        {"collective_comm", KIN_KERNEL},
        {"xpu_memcpy", KIN_MEMCPY},
        {"hpu_memcpy", KIN_MEMCPY},
        {"npu_memcpy", KIN_MEMCPY},
        {"privateuse1_memcpy", KIN_MEMCPY},
        {"xpu_memset", KIN_MEMSET},
        {"npu_memset", KIN_MEMSET},
        {"privateuse1_memset", KIN_MEMSET},
        {"xpu_driver", KIN_RUNTIME},
        {"privateuse1_driver", KIN_RUNTIME},
        {"hpu_runtime", KIN_RUNTIME},
        {"npu_runtime", KIN_RUNTIME},
        {"glow_runtime", KIN_RUNTIME},
    };
    return (kin_class)orr_word_find(kinds, ORR_COUNT(kinds), cat, KIN_OTHER);
}

/* Of the host, or about other events. */
static bool is_passed_over(orr_str cat)
{
    static const char *const known[] = {
        "python_function",
        "overhead",
        "Trace",
        "cpu_instant_event",
        "external_correlation",
        "ac2g",
        "async_gpu",
        "async_cpu_to_gpu",
        "fwdbwd",
        "cuda_event",
        "mtia_insight",
        "mtia_counters",
        "cuda_profiler_range",
        "xpu_sync",
        "async_npu",
    };
    return cat.len == 0 || orr_str_among(cat, known, ORR_COUNT(known));
}

/* Device events without a stream run on that of their row. */
static void set_stream(const reader *r, draft *d)
{
    int64_t row;
    if (d->e.stream == KIN_NO_NUMBER && chrome_has(&d->in, CHROME_TID) &&
        orr_text_i64(orr_intern_get(r->k->threads, d->e.tid), &row))
        d->e.stream = row;
}

static void note_other_kind(orr_link_counts *c, orr_str cat)
{
    const size_t used = strlen(c->other_kinds), room = sizeof c->other_kinds;
    for (const char *p = c->other_kinds; (p = memmem(p, strlen(p), cat.ptr, cat.len)); p++) {
        const bool begins = p == c->other_kinds || p[-1] == ' ';
        if (begins && (p[cat.len] == ',' || p[cat.len] == '\0'))
            return;
    }
    if (used + cat.len + 3 < room)
        snprintf(c->other_kinds + used, room - used, "%s%.*s", used ? ", " : "", (int)cat.len,
                 cat.ptr);
}

static orr_code classify_others(reader *r, draft *d)
{
    orr_link_counts *c = &r->opt->tally->counts;
    if (r->opt->rules->refuse || d->e.kind != KIN_OTHER)
        return ORR_OK;
    d->e.kind = (uint8_t)class_of_others(d->in.cat);
    if (kin_is_device(&d->e))
        set_stream(r, d);
    if (d->e.kind != KIN_OTHER || !d->has_dur || is_passed_over(d->in.cat))
        return ORR_OK;
    note_other_kind(c, d->in.cat);
    return link_count(r->opt->tally, ORR_LINK_OTHER_KINDS, NULL, r->err);
}

/* Trouble with an event.  Finding its line rereads the file: only for the one that ends the
 * program. */
static orr_code count_trouble(const reader *r, const draft *d, orr_link_counter c)
{
    link_tally *t = r->opt->tally;
    const orr_where at = t->is_strict ? orr_json_where(d->in.self) : (orr_where){0};
    return link_count(t, c, &at, r->err);
}

static orr_code refuse_field(const reader *r, const draft *d)
{
    return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr_json_where(d->in.self)),
                    "\"%s\" of this event has the wrong type", d->bad);
}

static orr_code check_fields(const reader *r, draft *d)
{
    if (d->is_bad)
        return r->opt->rules->refuse ? refuse_field(r, d)
                                     : count_trouble(r, d, ORR_LINK_BAD_EVENTS);
    if (d->e.dur < 0 && !r->opt->rules->refuse) {
        d->e.dur = 0;
        return count_trouble(r, d, ORR_LINK_NEGATIVE_TIMES);
    }
    return ORR_OK;
}

/* A complete event needs a name, a start and a duration to be useful. */
static orr_code check_missing(const reader *r, draft *d)
{
    if (r->opt->rules->refuse || d->e.kind == KIN_OTHER || d->is_bad ||
        (d->has_name && d->has_ts && d->has_dur))
        return ORR_OK;
    d->is_bad = true;
    return count_trouble(r, d, ORR_LINK_BAD_EVENTS);
}

static orr_code keep(reader *r, draft *d)
{
    kin_trace *k = r->k;
    if (d->has_extra) {
        if (!orr_grow(&k->extras, &k->extra_room, k->extra_count + 1))
            return orr_no_memory(r->err);
        d->e.extra = (uint32_t)k->extra_count;
        k->extras[k->extra_count++] = d->x;
    }
    if (intern(r, d->in.name, &d->e.name) || (d->ph.ptr && intern(r, d->ph, &d->e.ph)))
        return ORR_ENOMEM;
    if (k->count == UINT32_MAX - 1 || !orr_grow(&k->events, &k->room, k->count + 1))
        return orr_no_memory(r->err);
    k->events[k->count++] = d->e;
    return ORR_OK;
}

static const draft empty = {
    .e = {.external = -1,
          .rf = KIN_NO_NUMBER,
          .correlation = -1,
          .stream = KIN_NO_NUMBER,
          .ph = KIN_NO_TEXT,
          .extra = KIN_NO_TEXT,
          .device = -1},
    .x = {.group = KIN_NO_TEXT,
          .collective = KIN_NO_TEXT,
          .dtype = KIN_NO_TEXT,
          .ranks = KIN_NO_TEXT,
          .in_elements = KIN_NO_NUMBER,
          .out_elements = KIN_NO_NUMBER,
          .group_size = KIN_NO_NUMBER,
          .source = KIN_NO_NUMBER,
          .target = KIN_NO_NUMBER,
          .sequence = KIN_NO_NUMBER,
          .wait_stream = KIN_NO_NUMBER,
          .wait_record = KIN_NO_NUMBER,
          .bytes = KIN_NO_NUMBER,
          .graph_node = KIN_NO_NUMBER},
};

static void classify(reader *r, draft *d)
{
    d->e.kind = (uint8_t)class_of(d);
    const bool is_step = orr_str_has(d->in.name, "ProfilerStep");
    r->k->has_step |= is_step;
    if (d->e.kind == KIN_OPERATOR && is_step)
        d->e.kind = KIN_STEP;
    if (d->e.kind == KIN_OPERATOR && d->in.cat.ptr[0] == 'u')
        d->e.flags |= KIN_USER;
    if (d->e.kind == KIN_RUNTIME && is_known_launch(d->in.name))
        d->e.flags |= KIN_LAUNCH;
}

static orr_code read_event(void *context, orr_json_value event)
{
    reader *r = context;
    draft d = empty;
    d.e.index = (uint32_t)r->opt->tally->counts.of[ORR_LINK_DEVICE_EVENTS]++;
    if (!chrome_event_read(event, &d.in))
        is_bad(&d, "{}");
    else
        r->k->has_phase |= chrome_has(&d.in, CHROME_PH);
    orr_code code = take_fields(r, &d);
    if (code)
        return code;
    classify(r, &d);
    if ((code = classify_others(r, &d)))
        return code;
    if (r->opt->rules->refuse)
        code = r->opt->rules->refuse(&(kin_look){d.in.cat, d.ph, d.has_id, event}, r->err);
    if (code || (code = check_fields(r, &d)) || (code = check_missing(r, &d)))
        return code;
    if (d.is_bad || (d.e.kind == KIN_OTHER && d.e.external == -1))
        return ORR_OK;
    return keep(r, &d);
}

static orr_code begin_events(void *context, const orr_json_item *list)
{
    (void)list;
    ((reader *)context)->k->has_events = true;
    return ORR_OK;
}

/* ---- the job ---- */

static orr_code read_job(reader *r)
{
    orr_json_value info, v;
    orr_code code = orr_json_load(r->j, &info, r->err);
    if (code)
        return code;
    if (orr_json_find(info, "rank", &v))
        take_hint(v, &r->k->rank);
    if (orr_json_find(info, "world_size", &v))
        take_hint(v, &r->k->world);
    if (!orr_json_find(info, "pg_config", &v) || orr_json_type_of(v) != ORR_JSON_ARRAY)
        return ORR_OK;
    const orr_str raw = orr_json_raw(v);
    r->k->groups = (orr_str){orr_arena_text(r->k->arena, raw), raw.len};
    return r->k->groups.ptr ? ORR_OK : orr_no_memory(r->err);
}

static orr_code read_member(void *context, const orr_json_item *item)
{
    const bool is_job = orr_str_is(item->key, "distributedInfo") && item->type == ORR_JSON_OBJECT;
    return is_job ? read_job(context) : ORR_OK;
}

orr_code kin_read(orr_json *j, const kin_options *opt, kin_trace *out, orr_error *err)
{
    reader r = {.j = j, .opt = opt, .k = out, .err = err};
    uint32_t none;
    *out = (kin_trace){.rank = KIN_NO_NUMBER, .world = KIN_NO_NUMBER};
    out->texts = orr_intern_create();
    out->threads = orr_intern_create();
    /* Thread 0 is that of events without a tid, as the number 0 is to chakra_trace_link. */
    out->arena = orr_arena_create();
    if (!out->arena || !out->texts || !out->threads ||
        !orr_intern_add(out->threads, orr_str_of("0"), &none))
        return orr_no_memory(err);
    const orr_json_list how = {.key = "traceEvents",
                               .what = "a device trace",
                               .takes_bare = !opt->rules->refuse,
                               .begin = begin_events,
                               .item = read_event,
                               .member = read_member};
    const orr_code code = orr_json_walk_list(j, &how, &r, err);
    const uint64_t seen = opt->tally->counts.of[ORR_LINK_DEVICE_EVENTS];
    if (code || (out->has_events && (out->has_phase || !seen || opt->rules->refuse)))
        return code;
    const orr_where at = orr_json_place(j, 0);
    if (out->has_events)
        return orr_fail(err, ORR_EINPUT, &at,
                        "this is not a device trace: none of %" PRIu64
                        " entries is an event (an object with \"ph\")",
                        seen);
    return orr_fail(err, ORR_EINPUT, &at, "no traceEvents: this is not a device trace");
}

void kin_fini(kin_trace *k)
{
    orr_free(k->events);
    orr_free(k->extras);
    orr_arena_destroy(k->arena);
    orr_intern_destroy(k->texts);
    orr_intern_destroy(k->threads);
    *k = (kin_trace){0};
}
