/* SPDX-License-Identifier: Apache-2.0 */
/* chrome_trace_read.c - files of trace events, walked once: {"traceEvents": [..], ..} or the bare
 * list.
 *
 * One event is in memory at a time, besides what becomes of it.  What a file says about itself
 * (otherData of ours, distributedInfo and the like of Kineto) may stand on either side of its
 * events: our own format stands first, and the rest is not needed before the end. */
#include "chrome_trace_impl.h"

#include "base/io/input.h"

static orr_code refuse_file(const chrome_file *c, const char *what)
{
    const orr_where where = orr_json_place(c->json, 0);
    return orr_fail(c->err, ORR_EINPUT, &where, "%s", what);
}

/* ---- what the file says about itself ---- */

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
                                      .item = chrome_take,
                                      .member = take_member};
    const orr_code code = orr_json_walk_list(c->json, &how, c, c->err);
    if (code || c->has_events)
        return code;
    return refuse_file(c, "not a file of trace events: there is no \"traceEvents\"");
}

static void chrome_fini(chrome_file *c)
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
    chrome_fini(&c);
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
    /* A trace as JSON, of ours or of chakra_jsonizer, is not when things happened. */
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
