/* SPDX-License-Identifier: Apache-2.0 */
/* chrome_events.c - one trace event at a time.
 *
 * Times are decimal microseconds of any size: they are read from their digits, because a double of
 * microseconds since 1970 has a quarter of a microsecond left for what follows. */
#include "chrome_trace_impl.h"
#include "micros.h"

#include "base/text/number.h"

#include <inttypes.h>

enum { MOST_ARGUMENTS = 64 };
#define LARGE_PS (INT64_MAX / 4) /* the whole of a timeline is at most three times as long */
#define HOUR_PS ((__int128)3600 * 1000000000000)

static orr_code refuse(const chrome_file *c, orr_json_value at, const char *what)
{
    const orr_where where = orr_json_where(at);
    return orr_fail(c->err, ORR_EINPUT, &where, "%s", what);
}

/* ---- arguments ---- */

bool chrome_u64(const chrome_event *e, const char *key, uint64_t *out)
{
    orr_json_value v;
    if (!chrome_has(e, CHROME_ARGS) || !orr_json_find(e->of[CHROME_ARGS], key, &v))
        return false;
    if (orr_json_type_of(v) == ORR_JSON_INT)
        return orr_json_get_u64(v, out, NULL) == ORR_OK;
    orr_str text;
    return orr_json_type_of(v) == ORR_JSON_STRING && orr_json_get_str(v, &text, NULL) == ORR_OK &&
           orr_text_u64(text, out);
}

bool chrome_text(const chrome_event *e, const char *key, orr_str *out)
{
    orr_json_value v;
    return chrome_has(e, CHROME_ARGS) && orr_json_find(e->of[CHROME_ARGS], key, &v) &&
           orr_json_type_of(v) == ORR_JSON_STRING && orr_json_get_str(v, out, NULL) == ORR_OK;
}

/* ---- times ---- */

static orr_code read_us(chrome_file *c, orr_json_value v, __int128 *ps)
{
    orr_str text = orr_json_raw(v);
    if (orr_json_type_of(v) == ORR_JSON_STRING) /* some writers quote their numbers */
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

/* A thread of ours that carries what overlaps on the thread before it. */
static void join_lane(chrome_file *c, const chrome_event *e, uint32_t thread)
{
    uint64_t lane;
    if (c->is_ours && chrome_u64(e, "lane", &lane) && lane > 0 && lane <= thread &&
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
    orr_code code = find_thread(c, e, &span->track);
    if (!code)
        code = orr_timeline_add_text(c->t, e->name, &span->name, c->err);
    if (!code)
        code = chrome_classify(c, e, span);
    if (code)
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

/* Kineto's frame around the whole recording is nothing that happened. */
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
    if (c->is_ours && chrome_u64(e, "span", &span) && span < CHROME_NONE)
        f.span = (uint32_t)span;
    if (!orr_grow(&c->flows, &c->flow_room, c->flow_count + 1))
        return orr_no_memory(c->err);
    c->flows[c->flow_count++] = f;
    return ORR_OK;
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
    /* The three numbers as a word: a map of its own keeps these apart from other words. */
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
    if (!orr_grow(&c->samples, &c->sample_room, c->sample_count + 1))
        return orr_no_memory(c->err);
    c->samples[c->sample_count++] = (chrome_sample){.at = at, .value = value, .counter = counter};
    return ORR_OK;
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

/* What the profiler notes when memory is taken or given back. */
static orr_code take_memory(chrome_file *c, const chrome_event *e)
{
    uint64_t total, device;
    uint32_t process;
    orr_ps at;
    if (!chrome_u64(e, "Total Allocated", &total) || total > INT64_MAX ||
        !chrome_u64(e, "Device Type", &device) || device != 1)
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

orr_code chrome_take(void *context, orr_json_value event)
{
    chrome_file *c = context;
    chrome_event e;
    if (!chrome_event_read(event, &e))
        return refuse(c, event, "an event is an object");
    if (!chrome_has(&e, CHROME_PH) || orr_json_type_of(e.of[CHROME_PH]) != ORR_JSON_STRING)
        return refuse(c, event, "this event does not say what it is: \"ph\"");
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
