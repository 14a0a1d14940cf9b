/* SPDX-License-Identifier: Apache-2.0 */
/* chrome_trace_read.c - files of trace events, in one pass: {"traceEvents": [..], ..} or the bare
 * list.
 *
 * One event is in memory at a time, besides the result.  Metadata of a file (our otherData,
 * Kineto's distributedInfo etc.) may come before or after its events: our own format comes first,
 * and the rest is not needed before the end. */
#include "chrome_event.h"

#include <orrery/lab/chrome_trace.h>
#include <orrery/trace.h>

#include "base/dtypes.h"
#include "base/io/input.h"
#include "base/memory/map.h"
#include "base/short_forms.h"
#include "base/text/number.h"
#include "trace/known_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Names of processes and threads may come after the events they belong to, so nothing is added to
 * the timeline before the end of the file: spans, arrow ends and samples wait in arrays, with
 * thread numbers instead of tracks. */

#define CHROME_NONE UINT32_MAX

typedef struct chrome_process {
    uint32_t pid;    /* a word: the value verbatim */
    uint32_t name;   /* a text of the timeline, or ORR_NO_TEXT */
    uint64_t number; /* the pid as a number; UINT64_MAX: not a number */
    uint32_t rank;   /* found at the end */
} chrome_process;

typedef struct chrome_thread {
    uint32_t process;
    uint32_t tid;     /* a word */
    uint32_t name;    /* a text; see has_name */
    uint32_t lane_of; /* the thread whose track it shares, or CHROME_NONE */
    uint32_t track;
    bool has_name, has_spans;
    uint32_t open; /* the innermost open span; CHROME_NONE: none */
} chrome_thread;

typedef struct chrome_flow_end {
    uint32_t key; /* a word: category and id */
    uint32_t name;
    uint32_t thread;
    uint32_t span;    /* given by our own files, or CHROME_NONE */
    orr_ps at, exact; /* exact: of the arrow itself; at: where viewers draw it */
    bool is_start;
} chrome_flow_end;

typedef struct chrome_sample {
    orr_ps at;
    int64_t value;
    uint32_t counter;
} chrome_sample;

typedef struct chrome_counter {
    uint32_t process, name, unit; /* texts */
} chrome_counter;

typedef struct chrome_file {
    orr_timeline *t;
    orr_json *json;
    const char *path;
    orr_error *err;
    orr_intern *words;
    orr_map *process_of, *thread_of, *counter_of;
    chrome_process *processes;
    chrome_thread *threads;
    orr_timespan *spans; /* .track: a thread */
    uint32_t *outer;     /* by begun span: the one around it */
    chrome_flow_end *flows;
    chrome_sample *samples;
    chrome_counter *counters;
    size_t process_count, process_room, thread_count, thread_room, span_count, span_room;
    size_t outer_room, flow_count, flow_room, sample_count, sample_room, counter_count;
    size_t counter_room;
    bool is_ours, is_kineto;
    bool has_events;
    bool has_rank;
    uint32_t rank;       /* with has_rank: distributedInfo */
    uint32_t first_span; /* the index of this file's first span in the timeline */
    bool has_base;
    __int128 base; /* subtracted from all times: 0, unless they do not fit */
    orr_ps latest;
} chrome_file;

/* ==== the kind of a span in a trace file.
 *
 * In our own files the category is the name of a kind, and the arguments are the fields of a span.
 * Kineto has other categories, and NCCL's operations are recognised by kernel names and by
 * arguments added by PyTorch (collective name, number of elements, type, group). */

/* ---- communication by name ---- */

static void set_communication(orr_str name, orr_timespan *span)
{
    char plain[256];
    orr__plain_letters(name, plain, sizeof plain);
    const uint8_t collective = orr__collective_in(plain);
    const bool sends = strstr(plain, "send"), receives = strstr(plain, "recv");
    span->kind = ORR_SPAN_COLLECTIVE;
    if (collective || sends || receives)
        span->collective = collective;
    if (!collective && (sends || receives)) /* "sendrecv": as a receive */
        span->kind = sends && !strstr(plain, "sendrecv") ? ORR_SPAN_SEND : ORR_SPAN_RECEIVE;
}

/* ---- Kineto ---- */

static orr_code set_group(chrome_file *c, orr_str group, orr_timespan *span)
{
    return group.len ? orr_timeline_add_text(c->t, group, &span->group, c->err) : ORR_OK;
}

/* Arguments as they are wanted; false: they are something else. */
static bool text_of(orr_json_value v, orr_str *out)
{
    return orr_json_type_of(v) == ORR_JSON_STRING && orr_json_get_str(v, out, NULL) == ORR_OK;
}

static bool number_of(orr_json_value v, uint64_t *out)
{
    orr_str text;
    if (orr_json_type_of(v) == ORR_JSON_INT)
        return orr_json_get_u64(v, out, NULL) == ORR_OK;
    return text_of(v, &text) && orr_text_u64(text, out);
}

static bool chrome_text(const chrome_event *e, const char *key, orr_str *out)
{
    orr_json_value v;
    return chrome_has(e, CHROME_ARGS) && orr_json_find(e->of[CHROME_ARGS], key, &v) &&
           text_of(v, out);
}

/* A small number in the arguments of an event; false: missing, or not such a number. */
static bool u64(const chrome_event *e, const char *key, uint64_t *out)
{
    orr_json_value v;
    return chrome_has(e, CHROME_ARGS) && orr_json_find(e->of[CHROME_ARGS], key, &v) &&
           number_of(v, out);
}

static orr_code read_nccl(chrome_file *c, const chrome_event *e, orr_timespan *span)
{
    orr_str name = e->name, type = {0}, group = {0};
    uint64_t elements = 0, members = 0, peer = 0;
    chrome_text(e, "Collective name", &name);
    set_communication(name, span);
    if (chrome_text(e, "dtype", &type) && u64(e, "In msg nelems", &elements) &&
        elements < UINT64_MAX / 16)
        span->size = elements * orr__dtype_scalar_bytes(type);
    if (u64(e, "Group size", &members) && members <= ORR_CHROME_TRACE_RANKS &&
        span->kind == ORR_SPAN_COLLECTIVE)
        span->members = (uint32_t)members;
    const bool is_send = span->kind == ORR_SPAN_SEND;
    if (span->kind != ORR_SPAN_COLLECTIVE && u64(e, is_send ? "Dst Rank" : "Src Rank", &peer) &&
        peer < ORR_CHROME_TRACE_RANKS) {
        span->has |= ORR_SPAN_HAS_PEER;
        span->peer = (uint32_t)peer;
    }
    chrome_text(e, "Process Group Name", &group);
    return set_group(c, group, span);
}

static const orr_word kineto_kinds[] = {
    {"kernel", ORR_SPAN_COMPUTE},        {"gpu_memcpy", ORR_SPAN_MEMORY},
    {"gpu_memset", ORR_SPAN_MEMORY},     {"cpu_op", ORR_SPAN_HOST},
    {"cuda_runtime", ORR_SPAN_HOST},     {"cuda_driver", ORR_SPAN_HOST},
    {"python_function", ORR_SPAN_HOST},  {"privateuse1_runtime", ORR_SPAN_HOST},
    {"user_annotation", ORR_SPAN_OTHER}, {"gpu_user_annotation", ORR_SPAN_OTHER},
    {"overhead", ORR_SPAN_HOST},         {"mtia_ccp_events", ORR_SPAN_COMPUTE},
    {"hpu_op", ORR_SPAN_COMPUTE},        {"mtia_workloadd", ORR_SPAN_COMPUTE},
    {"hip_runtime", ORR_SPAN_HOST},      {"xpu_runtime", ORR_SPAN_HOST},
    {"mtia_runtime", ORR_SPAN_HOST},     {"privateuse1_driver", ORR_SPAN_HOST},
    {"npu_kernel", ORR_SPAN_COMPUTE},    {"privateuse1_kernel", ORR_SPAN_COMPUTE},
    {"xpu_kernel", ORR_SPAN_COMPUTE},    {"collective_comm", ORR_SPAN_COLLECTIVE},
};

static orr_code classify_kineto(chrome_file *c, const chrome_event *e, orr_timespan *span)
{
    uint64_t bytes;
    span->kind = (uint8_t)orr_word_find(kineto_kinds, ORR_COUNT(kineto_kinds), e->cat, span->kind);
    if (span->kind == ORR_SPAN_MEMORY && u64(e, "bytes", &bytes))
        span->size = bytes;
    const orr__comm_by by =
        span->kind == ORR_SPAN_COMPUTE ? orr__comm_kernel(e->name) : ORR__COMM_NOT;
    if (by == ORR__COMM_ONE_SIDED) {
        span->kind = ORR_SPAN_COLLECTIVE;
        span->collective = orr__comm_one_sided_kind(e->name);
    }
    /* Libraries that communicate on the host have no kernels; NCCL calls there only start one. */
    if (by == ORR__COMM_NCCL ||
        (orr_str_is(e->cat, "user_annotation") && orr__comm_on_host(e->name)))
        return read_nccl(c, e, span);
    return ORR_OK;
}

/* ---- our own ---- */

/* Arguments of our own events: looked through once, since a file has many events and each of them
 * several. */
typedef enum own_arg {
    OWN_NODE,
    OWN_BYTES,
    OWN_PEER,
    OWN_LAST_RANK,
    OWN_WAITED_NS,
    OWN_GROUP,
    OWN_GROUP_RANKS,
    OWN_COLLECTIVE,
    OWN_UNFINISHED,
    OWN_ARGS
} own_arg;

typedef struct own_args {
    orr_json_value of[OWN_ARGS]; /* of those present */
    uint32_t has;                /* bit for each */
} own_args;

static own_arg own_arg_of(orr_str key)
{
    switch (key.len) {
    case 4:
        return orr_str_is(key, "node") ? OWN_NODE : orr_str_is(key, "peer") ? OWN_PEER : OWN_ARGS;
    case 5:
        return orr_str_is(key, "bytes")   ? OWN_BYTES
               : orr_str_is(key, "group") ? OWN_GROUP
                                          : OWN_ARGS;
    case 9:
        return orr_str_is(key, "last_rank")   ? OWN_LAST_RANK
               : orr_str_is(key, "waited_ns") ? OWN_WAITED_NS
                                              : OWN_ARGS;
    case 10:
        return orr_str_is(key, "collective")   ? OWN_COLLECTIVE
               : orr_str_is(key, "unfinished") ? OWN_UNFINISHED
                                               : OWN_ARGS;
    case 11:
        return orr_str_is(key, "group_ranks") ? OWN_GROUP_RANKS : OWN_ARGS;
    default:
        return OWN_ARGS;
    }
}

/* Of an argument that is given twice the last counts. */
static void read_own_args(const chrome_event *e, own_args *out)
{
    orr_str key;
    orr_json_value v;
    out->has = 0;
    if (!chrome_has(e, CHROME_ARGS))
        return;
    for (orr_json_iter it = orr_json_iterate(e->of[CHROME_ARGS]);
         orr_json_next_member(&it, &key, &v);) {
        const own_arg k = own_arg_of(key);
        if (k == OWN_ARGS)
            continue;
        out->of[k] = v;
        out->has |= 1u << k;
    }
}

static bool own_u64(const own_args *a, own_arg k, uint64_t *out)
{
    return a->has >> k & 1 && number_of(a->of[k], out);
}

static bool own_text(const own_args *a, own_arg k, orr_str *out)
{
    return a->has >> k & 1 && text_of(a->of[k], out);
}

static void set_peer(const own_args *a, orr_timespan *span)
{
    uint64_t peer;
    const own_arg k = span->kind == ORR_SPAN_COLLECTIVE ? OWN_LAST_RANK : OWN_PEER;
    if (!own_u64(a, k, &peer) || peer > UINT32_MAX)
        return;
    span->has |= ORR_SPAN_HAS_PEER;
    span->peer = (uint32_t)peer;
}

/* Of a span whose peers are not in the file: it waited for them. */
static void set_flows(const own_args *a, orr_timespan *span)
{
    uint64_t waited;
    if (!own_u64(a, OWN_WAITED_NS, &waited) ||
        waited > ((uint64_t)span->end - (uint64_t)span->start) / 1000)
        return;
    span->has |= ORR_SPAN_HAS_FLOWS;
    span->flows = span->start + (orr_ps)waited * 1000;
}

static void set_collective(const own_args *a, orr_timespan *span)
{
    orr_str name;
    uint64_t members;
    if (own_u64(a, OWN_GROUP_RANKS, &members) && members <= UINT32_MAX)
        span->members = (uint32_t)members;
    if (!own_text(a, OWN_COLLECTIVE, &name))
        return;
    for (uint32_t k = 0; k < ORR_COLL_COUNT; k++)
        if (orr_str_is(name, orr_collective_name(k))) {
            span->collective = (uint8_t)(k + 1);
            return;
        }
}

static orr_code classify_ours(chrome_file *c, const chrome_event *e, orr_timespan *span)
{
    orr_str group = {0};
    bool is_open = false;
    own_args a;
    read_own_args(e, &a);
    for (unsigned k = 0; k < ORR_SPAN_KINDS; k++)
        if (orr_str_is(e->cat, orr_span_kind_name((orr_span_kind)k))) {
            span->kind = (uint8_t)k;
            break;
        }
    uint64_t id;
    if (own_u64(&a, OWN_NODE, &id)) {
        span->has |= ORR_SPAN_HAS_ID;
        span->id = id;
    }
    uint64_t size;
    if (own_u64(&a, OWN_BYTES, &size))
        span->size = size;
    set_peer(&a, span);
    set_flows(&a, span);
    if (span->kind == ORR_SPAN_COLLECTIVE)
        set_collective(&a, span);
    if (a.has >> OWN_UNFINISHED & 1 &&
        orr_json_get_bool(a.of[OWN_UNFINISHED], &is_open, NULL) == ORR_OK)
        span->is_open = is_open;
    own_text(&a, OWN_GROUP, &group);
    return set_group(c, group, span);
}

static bool is_kineto_category(orr_str category)
{
    return orr_word_find(kineto_kinds, ORR_COUNT(kineto_kinds), category, -1) >= 0;
}

/* Classifies a span by its category, name and arguments.  May add texts. */
static orr_code classify(chrome_file *c, const chrome_event *e, orr_timespan *span)
{
    if (c->is_ours)
        return classify_ours(c, e, span);
    if (c->is_kineto || is_kineto_category(e->cat)) {
        c->is_kineto = true;
        return classify_kineto(c, e, span);
    }
    return classify_ours(c, e, span); /* anyone may use our words */
}

/* ==== one trace event at a time.
 *
 * Times are decimal microseconds of any size: they are parsed from digits, because a double of
 * microseconds since 1970 has a resolution of a quarter of a microsecond. */

enum { MOST_ARGUMENTS = 64 };
#define LARGE_PS (INT64_MAX / 4) /* a whole timeline is at most three times as long */
#define HOUR_PS ((__int128)3600 * 1000000000000)

static orr_code refuse(const chrome_file *c, orr_json_value at, const char *what)
{
    return orr_fail(c->err, ORR_EINPUT, ORR_AT(orr_json_where(at)), "%s", what);
}

/* ---- arguments ---- */

/* ---- times ---- */

static orr_code read_us(chrome_file *c, orr_json_value v, __int128 *ps)
{
    orr_str text = orr_json_raw(v);
    if (orr_json_type_of(v) == ORR_JSON_STRING) /* some writers quote numbers */
        text = (orr_str){text.ptr + 1, text.len - 2};
    else if (orr_json_type_of(v) != ORR_JSON_INT && orr_json_type_of(v) != ORR_JSON_REAL)
        return refuse(c, v, "this time is not a number of microseconds");
    return orr__micros_ps(text, ps) ? ORR_OK
                                    : refuse(c, v, "this time is not a number of microseconds");
}

/* Times since 1970 do not fit into 64 bits of picoseconds; then all of them count from the hour
 * before the first. */
static orr_code read_time(chrome_file *c, orr_json_value v, orr_ps *out)
{
    __int128 ps;
    const orr_code code = read_us(c, v, &ps);
    if (code)
        return code;
    if (!c->has_base && (ps > LARGE_PS || ps < -LARGE_PS))
        c->base = ps / HOUR_PS * HOUR_PS - HOUR_PS;
    c->has_base = true;
    ps -= c->base;
    if (ps > LARGE_PS || ps < -LARGE_PS)
        return refuse(c, v, "this time is more than 26 days from the first one");
    *out = (orr_ps)ps;
    return ORR_OK;
}

static orr_code read_length(chrome_file *c, orr_json_value v, orr_ps *out)
{
    __int128 ps;
    const orr_code code = read_us(c, v, &ps);
    if (code)
        return code;
    if (ps < 0 || ps > LARGE_PS)
        return refuse(c, v, ps < 0 ? "a duration below 0" : "a duration of more than 26 days");
    *out = (orr_ps)ps;
    return ORR_OK;
}

/* ---- processes and threads ---- */

static orr_code add_word(chrome_file *c, orr_str text, uint32_t *out)
{
    return orr_intern_add(c->words, text, out) ? ORR_OK : orr_no_memory(c->err);
}

static orr_code find_process(chrome_file *c, const chrome_event *e, uint32_t *out)
{
    static const orr_str nothing = {"", 0};
    uint32_t word;
    orr_code code =
        add_word(c, chrome_has(e, CHROME_PID) ? orr_json_raw(e->of[CHROME_PID]) : nothing, &word);
    if (code)
        return code;
    *out = orr_map_find(c->process_of, word, CHROME_NONE);
    if (*out != CHROME_NONE)
        return ORR_OK;
    *out = (uint32_t)c->process_count;
    if (!orr_grow(&c->processes, &c->process_room, c->process_count + 1) ||
        !orr_map_put(c->process_of, word, *out, NULL))
        return orr_no_memory(c->err);
    chrome_process *p = &c->processes[c->process_count++];
    *p = (chrome_process){.pid = word, .number = UINT64_MAX};
    if (chrome_has(e, CHROME_PID) && orr_json_type_of(e->of[CHROME_PID]) == ORR_JSON_INT)
        (void)!orr_json_get_u64(e->of[CHROME_PID], &p->number, NULL);
    return ORR_OK;
}

static orr_code find_thread(chrome_file *c, const chrome_event *e, uint32_t *out)
{
    static const orr_str nothing = {"", 0};
    uint32_t process, word;
    orr_code code = find_process(c, e, &process);
    if (!code)
        code = add_word(c, chrome_has(e, CHROME_TID) ? orr_json_raw(e->of[CHROME_TID]) : nothing,
                        &word);
    if (code)
        return code;
    const uint64_t key = (uint64_t)process << 32 | word;
    *out = orr_map_find(c->thread_of, key, CHROME_NONE);
    if (*out != CHROME_NONE)
        return ORR_OK;
    *out = (uint32_t)c->thread_count;
    if (!orr_grow(&c->threads, &c->thread_room, c->thread_count + 1) ||
        !orr_map_put(c->thread_of, key, *out, NULL))
        return orr_no_memory(c->err);
    c->threads[c->thread_count++] = (chrome_thread){
        .process = process, .tid = word, .lane_of = CHROME_NONE, .open = CHROME_NONE};
    return ORR_OK;
}

static orr_str trim(orr_str s)
{
    while (s.len && s.ptr[s.len - 1] == ' ')
        s.len--;
    return s;
}

/* One of our threads that carries spans overlapping on the previous thread. */
static void join_lane(chrome_file *c, const chrome_event *e, uint32_t thread)
{
    uint64_t lane;
    if (c->is_ours && u64(e, "lane", &lane) && lane > 0 && lane <= thread &&
        c->threads[thread - lane].process == c->threads[thread].process)
        c->threads[thread].lane_of = thread - (uint32_t)lane;
}

static orr_code take_name(chrome_file *c, const chrome_event *e)
{
    orr_str name;
    uint32_t process, thread;
    orr_code code;
    if (!chrome_text(e, "name", &name))
        return ORR_OK;
    if (orr_str_is(e->name, "process_name")) {
        if ((code = find_process(c, e, &process)))
            return code;
        return orr_timeline_add_text(c->t, name, &c->processes[process].name, c->err);
    }
    if (!orr_str_is(e->name, "thread_name"))
        return ORR_OK;
    if ((code = find_thread(c, e, &thread)))
        return code;
    join_lane(c, e, thread);
    c->threads[thread].has_name = true;
    return orr_timeline_add_text(c->t, c->is_ours ? name : trim(name), &c->threads[thread].name,
                                 c->err);
}

/* ---- spans ---- */

static orr_code add_span(chrome_file *c, const chrome_event *e, orr_timespan *span)
{
    orr_code code;
    if ((code = find_thread(c, e, &span->track)) ||
        (code = orr_timeline_add_text(c->t, e->name, &span->name, c->err)) ||
        (code = classify(c, e, span)))
        return code;
    if (c->span_count >= CHROME_NONE - 1)
        return refuse(c, e->self, "more spans than can be counted");
    if (!orr_grow(&c->spans, &c->span_room, c->span_count + 1))
        return orr_no_memory(c->err);
    c->threads[span->track].has_spans = true;
    c->spans[c->span_count++] = *span;
    if (span->end > c->latest)
        c->latest = span->end;
    return ORR_OK;
}

static orr_code need_time(chrome_file *c, const chrome_event *e, orr_ps *out)
{
    return chrome_has(e, CHROME_TS) ? read_time(c, e->of[CHROME_TS], out)
                                    : refuse(c, e->self, "this event has no time \"ts\"");
}

/* Kineto's frame around the whole recording is not an event. */
static bool is_frame(const chrome_event *e)
{
    return orr_str_is(e->cat, "Trace");
}

static orr_code take_complete(chrome_file *c, const chrome_event *e)
{
    orr_timespan span = {0};
    orr_ps length = 0;
    orr_code code = need_time(c, e, &span.start);
    if (!code && chrome_has(e, CHROME_DUR))
        code = read_length(c, e->of[CHROME_DUR], &length);
    if (code || is_frame(e))
        return code;
    span.end = span.start + length;
    return add_span(c, e, &span);
}

static orr_code take_begin(chrome_file *c, const chrome_event *e)
{
    orr_timespan span = {0};
    orr_code code = need_time(c, e, &span.start);
    span.end = span.start;
    if (!code)
        code = add_span(c, e, &span);
    if (code)
        return code;
    const uint32_t i = (uint32_t)c->span_count - 1;
    chrome_thread *thread = &c->threads[c->spans[i].track];
    if (!orr_grow(&c->outer, &c->outer_room, c->span_count))
        return orr_no_memory(c->err);
    c->spans[i].is_open = true; /* until its end is found */
    c->outer[i] = thread->open;
    thread->open = i;
    return ORR_OK;
}

static orr_code take_end(chrome_file *c, const chrome_event *e)
{
    uint32_t thread;
    orr_ps at;
    orr_code code = need_time(c, e, &at);
    if (!code)
        code = find_thread(c, e, &thread);
    if (code)
        return code;
    const uint32_t i = c->threads[thread].open;
    if (i == CHROME_NONE)
        return refuse(c, e->self, "an end (E) without a beginning (B) on its thread");
    if (at < c->spans[i].start)
        return refuse(c, e->self, "an end (E) before its beginning (B)");
    c->spans[i].end = at;
    c->spans[i].is_open = false;
    c->threads[thread].open = c->outer[i];
    if (at > c->latest)
        c->latest = at;
    return ORR_OK;
}

/* ---- arrows ---- */

static orr_code flow_key(chrome_file *c, const chrome_event *e, uint32_t *out)
{
    orr_buf key = {0};
    const orr_str id = chrome_has(e, CHROME_ID) ? orr_json_raw(e->of[CHROME_ID]) : (orr_str){"", 0};
    orr_buf_add(&key, e->cat.ptr, e->cat.len);
    orr_buf_byte(&key, '\0');
    orr_buf_add(&key, id.ptr, id.len);
    const orr_code code = key.failed ? orr_no_memory(c->err)
                                     : add_word(c, (orr_str){(const char *)key.ptr, key.len}, out);
    orr_buf_fini(&key);
    return code;
}

static orr_code take_flow(chrome_file *c, const chrome_event *e)
{
    chrome_flow_end f = {.is_start = orr_str_is(e->ph, "s"), .span = CHROME_NONE};
    orr_json_value exact;
    uint64_t span;
    orr_code code = need_time(c, e, &f.at);
    f.exact = f.at;
    if (!code && chrome_has(e, CHROME_ARGS) && orr_json_find(e->of[CHROME_ARGS], "us", &exact))
        code = read_time(c, exact, &f.exact);
    if (code || (code = flow_key(c, e, &f.key)) || (code = find_thread(c, e, &f.thread)) ||
        (code = orr_timeline_add_text(c->t, e->name, &f.name, c->err)))
        return code;
    if (c->is_ours && u64(e, "span", &span) && span < CHROME_NONE)
        f.span = (uint32_t)span;
    return orr_push(c->flows, c->flow_count, c->flow_room, f) ? ORR_OK : orr_no_memory(c->err);
}

/* ---- counters ---- */

static orr_code find_counter(
    chrome_file *c, uint32_t process, orr_str name, orr_str unit, uint32_t *out)
{
    uint32_t name_text, unit_text, word;
    orr_code code = orr_timeline_add_text(c->t, name, &name_text, c->err);
    if (!code)
        code = orr_timeline_add_text(c->t, unit, &unit_text, c->err);
    if (code)
        return code;
    const uint32_t parts[] = {process, name_text, unit_text};
    /* The three numbers as a word: a separate map keeps these apart from other words. */
    if ((code = add_word(c, (orr_str){(const char *)parts, sizeof parts}, &word)))
        return code;
    *out = orr_map_find(c->counter_of, word, CHROME_NONE);
    if (*out != CHROME_NONE)
        return ORR_OK;
    *out = (uint32_t)c->counter_count;
    if (!orr_grow(&c->counters, &c->counter_room, c->counter_count + 1) ||
        !orr_map_put(c->counter_of, word, *out, NULL))
        return orr_no_memory(c->err);
    c->counters[c->counter_count++] = (chrome_counter){process, name_text, unit_text};
    return ORR_OK;
}

static orr_code add_sample(
    chrome_file *c, uint32_t process, orr_str name, orr_str unit, orr_ps at, int64_t value)
{
    uint32_t counter;
    const orr_code code = find_counter(c, process, name, unit, &counter);
    if (code)
        return code;
    return orr_push(c->samples, c->sample_count, c->sample_room,
                    (chrome_sample){.at = at, .value = value, .counter = counter})
               ? ORR_OK
               : orr_no_memory(c->err);
}

static bool read_value(orr_json_value v, int64_t *out)
{
    double d;
    if (orr_json_type_of(v) == ORR_JSON_INT && orr_json_get_i64(v, out, NULL) == ORR_OK)
        return true;
    if (orr_json_type_of(v) != ORR_JSON_REAL || orr_json_get_double(v, &d, NULL) != ORR_OK ||
        !(d > -9e18 && d < 9e18))
        return false;
    *out = (int64_t)(d < 0 ? d - 0.5 : d + 0.5);
    return true;
}

static orr_code take_counter(chrome_file *c, const chrome_event *e)
{
    uint32_t process;
    orr_ps at;
    orr_str key;
    orr_json_value v;
    orr_code code = need_time(c, e, &at);
    if (!code)
        code = find_process(c, e, &process);
    if (code || !chrome_has(e, CHROME_ARGS))
        return code;
    unsigned left = MOST_ARGUMENTS;
    for (orr_json_iter it = orr_json_iterate(e->of[CHROME_ARGS]);
         !code && left-- && orr_json_next_member(&it, &key, &v);) {
        int64_t value;
        if (read_value(v, &value))
            code = add_sample(c, process, e->name, key, at, value);
    }
    return code;
}

/* Profiler records of memory allocation and release. */
static orr_code take_memory(chrome_file *c, const chrome_event *e)
{
    uint64_t total, device;
    uint32_t process;
    orr_ps at;
    if (!u64(e, "Total Allocated", &total) || total > INT64_MAX ||
        !u64(e, "Device Type", &device) || device != 1)
        return ORR_OK;
    orr_code code = need_time(c, e, &at);
    if (!code)
        code = find_process(c, e, &process);
    c->is_kineto = true;
    return code ? code
                : add_sample(c, process, orr_str_of("memory"), orr_str_of("bytes"), at,
                             (int64_t)total);
}

/* ---- any event ---- */

/* One event of the list. */
static orr_code take(void *context, orr_json_value event)
{
    chrome_file *c = context;
    chrome_event e;
    if (!chrome_event_read(event, &e))
        return refuse(c, event, "an event is an object");
    if (!chrome_has(&e, CHROME_PH) || orr_json_type_of(e.of[CHROME_PH]) != ORR_JSON_STRING)
        return refuse(c, event, "this event has no type (\"ph\")");
    switch (e.ph.len == 1 ? e.ph.ptr[0] : '?') {
    case 'X':
        return take_complete(c, &e);
    case 'B':
        return take_begin(c, &e);
    case 'E':
        return take_end(c, &e);
    case 's':
    case 'f':
        return take_flow(c, &e);
    case 'C':
        return take_counter(c, &e);
    case 'M':
        return take_name(c, &e);
    case 'i':
        return orr_str_is(e.name, "[memory]") ? take_memory(c, &e) : ORR_OK;
    default:
        return ORR_OK;
    }
}

/* ==== from the events of a file to the timeline.
 *
 * Only now all names are known: the rank of each process, the names of threads, and the spans of an
 * arrow.  Our own files state the last; in others an arrow end belongs to the innermost span of its
 * thread that contains it. */

enum { LOOK_BACK = 1000 };

/* ---- ranks ---- */

static bool are_ranks(const chrome_file *c)
{
    for (size_t i = 0; i < c->process_count; i++)
        if (c->processes[i].number >= ORR_CHROME_TRACE_RANKS)
            return false;
    return true;
}

static orr_code set_ranks(chrome_file *c, uint32_t rank_otherwise)
{
    const bool are_numbers = are_ranks(c);
    const uint32_t only = c->has_rank ? c->rank : rank_otherwise;
    for (size_t i = 0; i < c->process_count; i++) {
        chrome_process *p = &c->processes[i];
        const orr_str name = orr_timeline_text(c->t, p->name);
        if (c->is_ours && orr_str_is(name, "all ranks"))
            p->rank = ORR_NO_RANK;
        else if (c->is_kineto && !c->is_ours)
            p->rank = only;
        else
            p->rank = are_numbers ? (uint32_t)p->number : (uint32_t)i;
    }
    if ((c->is_kineto && only >= ORR_CHROME_TRACE_RANKS) ||
        (!c->is_kineto && c->process_count > ORR_CHROME_TRACE_RANKS))
        return orr_fail(c->err, ORR_EINPUT, ORR_AT(orr_where_byte(c->path, ORR_NO_BYTE)),
                        "a rank above %d", ORR_CHROME_TRACE_RANKS - 1);
    return ORR_OK;
}

/* ---- ranks represented by others ---- */

static bool take_number(orr_str *at, uint32_t *out)
{
    uint64_t v = 0;
    size_t n = 0;
    for (; n < at->len && at->ptr[n] >= '0' && at->ptr[n] <= '9'; n++)
        v = v < ORR_CHROME_TRACE_RANKS ? v * 10 + (uint64_t)(at->ptr[n] - '0') : v;
    *at = (orr_str){at->ptr + n, at->len - n};
    *out = (uint32_t)v;
    return n > 0 && v < ORR_CHROME_TRACE_RANKS;
}

static bool take_sign(orr_str *at, char sign)
{
    if (at->len == 0 || at->ptr[0] != sign)
        return false;
    *at = (orr_str){at->ptr + 1, at->len - 1};
    return true;
}

/* "ranks 0-7,16-64/8": other forms are ignored, and so are more ranks than permitted. */
static orr_code add_alike(chrome_file *c, uint32_t shown, orr_str list, uint32_t *left)
{
    orr_code code = ORR_OK;
    do {
        uint32_t first, last, step = 1;
        if (!take_number(&list, &first))
            return ORR_OK;
        last = first;
        if (take_sign(&list, '-') && (!take_number(&list, &last) || last < first))
            return ORR_OK;
        if (take_sign(&list, '/') && (!take_number(&list, &step) || step == 0))
            return ORR_OK;
        for (uint32_t r = first; r <= last && *left && !code; r += step, --*left)
            if (r != shown)
                code = orr_timeline_add_alike(c->t, shown, r, c->err);
    } while (!code && *left && take_sign(&list, ','));
    return code;
}

static orr_code add_all_alike(chrome_file *c)
{
    static const char before[] = "ranks ";
    const size_t n = sizeof before - 1;
    uint32_t left = ORR_CHROME_TRACE_RANKS;
    orr_code code = ORR_OK;
    for (size_t i = 0; c->is_ours && i < c->process_count && !code; i++) {
        const orr_str name = orr_timeline_text(c->t, c->processes[i].name);
        if (c->processes[i].rank != ORR_NO_RANK && orr_str_begins(name, before))
            code = add_alike(c, c->processes[i].rank, (orr_str){name.ptr + n, name.len - n}, &left);
    }
    return code;
}

/* ---- tracks ---- */

static orr_code add_track(chrome_file *c, chrome_thread *thread)
{
    const uint32_t rank = c->processes[thread->process].rank;
    char room[64];
    orr_str name = orr_timeline_text(c->t, thread->name);
    if (!thread->has_name) {
        const orr_str tid = orr_intern_get(c->words, thread->tid);
        const int len = snprintf(room, sizeof room, "thread %.*s", ORR_SHOWN(tid, 40));
        name = (orr_str){room, (size_t)len};
    }
    return orr_timeline_add_track(c->t, rank, name, &thread->track, c->err);
}

static orr_code add_tracks(chrome_file *c)
{
    orr_code code = ORR_OK;
    for (size_t i = 0; i < c->thread_count && !code; i++) {
        chrome_thread *thread = &c->threads[i];
        if (thread->lane_of != CHROME_NONE) /* an earlier one, which has a track */
            thread->track = c->threads[thread->lane_of].track;
        else if (thread->has_spans || c->is_ours)
            code = add_track(c, thread);
    }
    return code;
}

/* ---- arrows ---- */

typedef struct finder {
    const chrome_file *c;
    uint32_t *order; /* spans by thread and start */
    uint32_t *first; /* by thread */
} finder;

static int compare_spans(const void *a, const void *b, void *context)
{
    const orr_timespan *spans = context;
    const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    if (spans[i].track != spans[k].track)
        return spans[i].track < spans[k].track ? -1 : 1;
    if (spans[i].start != spans[k].start)
        return spans[i].start < spans[k].start ? -1 : 1;
    if (spans[i].end != spans[k].end)
        return spans[i].end > spans[k].end ? -1 : 1;
    return i < k ? -1 : i > k;
}

static bool sort_spans(finder *f)
{
    const chrome_file *c = f->c;
    f->order = orr_alloc(c->span_count, sizeof *f->order);
    f->first = orr_alloc(c->thread_count + 1, sizeof *f->first);
    if (!f->order || !f->first)
        return false;
    for (uint32_t i = 0; i < c->span_count; i++) {
        f->order[i] = i;
        f->first[c->spans[i].track + 1]++;
    }
    for (size_t k = 0; k < c->thread_count; k++)
        f->first[k + 1] += f->first[k];
    qsort_r(f->order, c->span_count, sizeof *f->order, compare_spans, c->spans);
    return true;
}

static uint32_t span_at(const finder *f, uint32_t thread, orr_ps at)
{
    const orr_timespan *spans = f->c->spans;
    uint32_t low = f->first[thread], high = f->first[thread + 1];
    while (low < high) { /* the first that starts later */
        const uint32_t mid = low + (high - low) / 2;
        if (spans[f->order[mid]].start <= at)
            low = mid + 1;
        else
            high = mid;
    }
    for (uint32_t k = low; k > f->first[thread] && low - k < LOOK_BACK; k--)
        if (spans[f->order[k - 1]].end >= at)
            return f->order[k - 1];
    return CHROME_NONE;
}

static uint32_t span_of(const finder *f, const chrome_flow_end *end)
{
    if (end->span == CHROME_NONE)
        return span_at(f, end->thread, end->at);
    return end->span < f->c->span_count ? end->span : CHROME_NONE;
}

static orr_code add_arrow(const finder *f, const chrome_flow_end *from, const chrome_flow_end *to)
{
    orr_arrow arrow = {.from = span_of(f, from),
                       .to = span_of(f, to),
                       .left = from->exact,
                       .arrived = to->exact,
                       .name = from->name};
    if (arrow.from == CHROME_NONE || arrow.to == CHROME_NONE)
        return ORR_OK;
    arrow.from += f->c->first_span;
    arrow.to += f->c->first_span;
    return orr_timeline_add_arrow(f->c->t, &arrow, f->c->err);
}

/* The start of each key, before or after its ends in the file; of several the last. */
static bool find_starts(const chrome_file *c, orr_map *start_of)
{
    bool ok = true;
    for (uint32_t i = 0; i < c->flow_count && ok; i++)
        if (c->flows[i].is_start)
            ok = orr_map_put(start_of, c->flows[i].key, i, NULL);
    return ok;
}

static orr_code add_arrows(chrome_file *c)
{
    finder f = {.c = c};
    orr_map *start_of = c->flow_count ? orr_map_create(0) : NULL;
    orr_code code = ORR_OK;
    if (c->flow_count && (!start_of || !find_starts(c, start_of) || !sort_spans(&f)))
        code = orr_no_memory(c->err);
    for (size_t i = 0; i < c->flow_count && !code; i++) {
        if (c->flows[i].is_start)
            continue;
        const uint32_t from = orr_map_find(start_of, c->flows[i].key, CHROME_NONE);
        if (from != CHROME_NONE)
            code = add_arrow(&f, &c->flows[from], &c->flows[i]);
    }
    orr_map_destroy(start_of);
    orr_free(f.order);
    orr_free(f.first);
    return code;
}

/* ---- the rest ---- */

static orr_code add_spans(chrome_file *c)
{
    orr_code code = ORR_OK;
    for (size_t i = 0; i < c->span_count && !code; i++) {
        orr_timespan span = c->spans[i];
        span.track = c->threads[span.track].track;
        if (span.is_open && span.end < c->latest && !c->is_ours)
            span.end = c->latest;
        code = orr_timeline_add_span(c->t, &span, NULL, c->err);
    }
    return code;
}

static orr_code add_counters(chrome_file *c)
{
    uint32_t *number = orr_alloc(c->counter_count, sizeof *number);
    orr_code code = number ? ORR_OK : orr_no_memory(c->err);
    for (size_t i = 0; i < c->counter_count && !code; i++) {
        const chrome_counter *k = &c->counters[i];
        code = orr_timeline_add_counter(c->t, c->processes[k->process].rank,
                                        orr_timeline_text(c->t, k->name),
                                        orr_timeline_text(c->t, k->unit), &number[i], c->err);
    }
    for (size_t i = 0; i < c->sample_count && !code; i++)
        code = orr_timeline_add_sample(c->t, number[c->samples[i].counter], c->samples[i].at,
                                       c->samples[i].value, c->err);
    orr_free(number);
    return code;
}

/* At the end of a file: adds everything to the timeline. */
static orr_code chrome_join(chrome_file *c, uint32_t rank_otherwise)
{
    orr_code code;
    if ((code = set_ranks(c, rank_otherwise)) || (code = add_all_alike(c)) ||
        (code = add_tracks(c)) || (code = add_spans(c)) || (code = add_arrows(c)))
        return code;
    return add_counters(c);
}

static orr_code refuse_file(const chrome_file *c, const char *what)
{
    return orr_fail(c->err, ORR_EINPUT, ORR_AT(orr_json_place(c->json, 0)), "%s", what);
}

/* ---- metadata of the file ---- */

static orr_code take_notes(chrome_file *c, orr_json_value v)
{
    orr_str key, text;
    orr_json_value format;
    orr_code code = ORR_OK;
    c->is_ours = orr_json_find(v, "format", &format) &&
                 orr_json_get_str(format, &text, NULL) == ORR_OK &&
                 orr_str_is(text, "orrery-timeline");
    for (orr_json_iter it = orr_json_iterate(v); !code && orr_json_next_member(&it, &key, &v);) {
        const bool is_format = orr_str_is(key, "format") || orr_str_is(key, "version");
        if ((c->is_ours && is_format) || orr_json_type_of(v) != ORR_JSON_STRING ||
            orr_json_get_str(v, &text, NULL) != ORR_OK)
            continue;
        code = orr_timeline_add_note(c->t, key, text, c->err);
    }
    return code;
}

static orr_code take_distributed(chrome_file *c, orr_json_value v)
{
    uint64_t rank;
    orr_json_value found;
    if (!orr_json_find(v, "rank", &found))
        return ORR_OK;
    const orr_code code = orr_json_get_u64(found, &rank, c->err);
    if (code)
        return code;
    c->is_kineto = true;
    c->has_rank = true;
    c->rank = rank < ORR_CHROME_TRACE_RANKS ? (uint32_t)rank : ORR_CHROME_TRACE_RANKS;
    return ORR_OK;
}

static orr_code take_member(void *context, const orr_json_item *item)
{
    chrome_file *c = context;
    orr_json_value v;
    const bool is_notes = orr_str_is(item->key, "otherData");
    const bool is_job = orr_str_is(item->key, "distributedInfo");
    if (orr_str_is(item->key, "traceEvents"))
        return refuse_file(c, "\"traceEvents\" is not a list");
    if (orr_str_is(item->key, "deviceProperties") || orr_str_is(item->key, "schemaVersion"))
        c->is_kineto = true;
    if (item->type != ORR_JSON_OBJECT || (!is_notes && !is_job))
        return ORR_OK;
    const orr_code code = orr_json_load(c->json, &v, c->err);
    if (code)
        return code;
    return is_notes ? take_notes(c, v) : take_distributed(c, v);
}

/* ---- events ---- */

static orr_code begin_events(void *context, const orr_json_item *list)
{
    chrome_file *c = context;
    (void)list;
    if (c->has_events)
        return refuse_file(c, "there are two lists \"traceEvents\"");
    c->has_events = true;
    return ORR_OK;
}

static orr_code walk(chrome_file *c)
{
    static const orr_json_list how = {.key = "traceEvents",
                                      .what = "a file of trace events",
                                      .takes_bare = true,
                                      .begin = begin_events,
                                      .item = take,
                                      .member = take_member};
    const orr_code code = orr_json_walk_list(c->json, &how, c, c->err);
    if (code || c->has_events)
        return code;
    return refuse_file(c, "not a file of trace events: there is no \"traceEvents\"");
}

static void fini(chrome_file *c)
{
    orr_json_close(c->json);
    orr_intern_destroy(c->words);
    orr_map_destroy(c->process_of);
    orr_map_destroy(c->thread_of);
    orr_map_destroy(c->counter_of);
    orr_free(c->processes);
    orr_free(c->threads);
    orr_free(c->spans);
    orr_free(c->outer);
    orr_free(c->flows);
    orr_free(c->samples);
    orr_free(c->counters);
}

typedef struct reader {
    orr_timeline *t;
    uint32_t next_rank, span_count;
} reader;

static orr_code read_bytes(reader *r, orr_span bytes, const char *path, orr_error *err)
{
    chrome_file c = {.t = r->t, .path = path, .err = err, .first_span = r->span_count};
    orr_code code = orr_json_open(bytes, path, &c.json, err);
    c.words = orr_intern_create();
    c.process_of = orr_map_create(0);
    c.thread_of = orr_map_create(0);
    c.counter_of = orr_map_create(0);
    if (!code && (!c.words || !c.process_of || !c.thread_of || !c.counter_of))
        code = orr_no_memory(err);
    if (!code)
        code = walk(&c);
    if (!code)
        code = chrome_join(&c, r->next_rank);
    r->next_rank += c.is_kineto && !c.has_rank;
    r->span_count += (uint32_t)c.span_count;
    fini(&c);
    return code;
}

static orr_code read_file(reader *r, const char *path, orr_error *err)
{
    orr_input *in;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    code = read_bytes(r, orr_input_bytes(in), path, err);
    orr_input_close(in);
    return code;
}

static orr_code finish(reader *r, orr_code code, orr_timeline **out, orr_error *err)
{
    if (!code)
        code = orr_timeline_seal(r->t, err);
    if (code)
        orr_timeline_destroy(r->t);
    else
        *out = r->t;
    return code;
}

orr_code orr_chrome_trace_read(const char *const *paths,
                               size_t count,
                               const orr_chrome_trace_options *opt,
                               orr_timeline **out,
                               orr_error *err)
{
    reader r = {.next_rank = opt ? opt->rank : 0};
    *out = NULL;
    orr_code code = orr_timeline_create(&r.t, err);
    for (size_t i = 0; i < count && !code; i++)
        code = read_file(&r, paths[i], err);
    return finish(&r, code, out, err);
}

orr_code orr_chrome_trace_parse(orr_span bytes,
                                const char *path,
                                const orr_chrome_trace_options *opt,
                                orr_timeline **out,
                                orr_error *err)
{
    reader r = {.next_rank = opt ? opt->rank : 0};
    *out = NULL;
    orr_code code = orr_timeline_create(&r.t, err);
    if (!code)
        code = read_bytes(&r, bytes, path, err);
    return finish(&r, code, out, err);
}

/* ---- recognising ---- */

enum { LOOK = 1 << 16 };

static bool has_word(orr_span bytes, const char *word)
{
    return bytes.len && memmem(bytes.ptr, bytes.len, word, strlen(word));
}

static orr_chrome_trace_look look_at(orr_span bytes)
{
    size_t i = 0;
    if (bytes.len >= 3 && memcmp(bytes.ptr, "\xEF\xBB\xBF", 3) == 0)
        i = 3;
    while (i < bytes.len && (bytes.ptr[i] == ' ' || bytes.ptr[i] == '\n' || bytes.ptr[i] == '\t' ||
                             bytes.ptr[i] == '\r'))
        i++;
    const bool is_json = i < bytes.len && (bytes.ptr[i] == '{' || bytes.ptr[i] == '[');
    /* A trace as JSON, ours or chakra_jsonizer's, has no times. */
    if (is_json && !has_word(bytes, "traceEvents") &&
        (has_word(bytes, "orrery-trace") || has_word(bytes, "_NODE\"")))
        return ORR_CHROME_TRACE_OTHER;
    if (is_json)
        return ORR_CHROME_TRACE_EVENTS;
    const bool is_text = bytes.len && !memchr(bytes.ptr, '\0', bytes.len);
    return is_text && (has_word(bytes, "issue,") || has_word(bytes, "callback,"))
               ? ORR_CHROME_TRACE_LINES
               : ORR_CHROME_TRACE_OTHER;
}

orr_chrome_trace_look orr_chrome_trace_recognise(const char *path)
{
    orr_chrome_trace_look look = ORR_CHROME_TRACE_OTHER;
    orr_error err;
    orr_stream *s;
    orr_span bytes;
    if (orr_stream_open(path, &s, &err))
        return look;
    if (orr_stream_peek(s, LOOK, &bytes, &err) == ORR_OK)
        look = look_at((orr_span){bytes.ptr, bytes.len < LOOK ? bytes.len : LOOK});
    orr_stream_put_back(s);
    return look;
}
