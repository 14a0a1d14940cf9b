/* SPDX-License-Identifier: Apache-2.0 */
/* bench_json.c - reading and writing a large Kineto trace.
 *
 * Input: the reference trace of one GPT-2 step, its events repeated until the text has 100 MB.
 * Reading extracts from every event name, cat, ph, ts, dur, pid, tid and all of args, numbers as
 * doubles; skipping only checks; writing writes the same events from their trees. */
#include "bench_input.h"

#include "base/formats/json.h"
#include "base/io/input.h"

#include <string.h>
#include <unistd.h>

enum { WANTED = 100 * 1000 * 1000 };

typedef struct totals {
    size_t events, args, text_bytes;
    double sum;
} totals;

typedef struct job {
    orr_buf text;
    totals read;
    orr_buf out;
} job;

/* ---- the input ---- */

static void fill(orr_buf *text, orr_span trace)
{
    static const char key[] = "\"traceEvents\": [";
    const uint8_t *array = memmem(trace.ptr, trace.len, key, strlen(key));
    const uint8_t *end = memrchr(trace.ptr, ']', trace.len);
    bench_require(array && end && array < end, "the trace has no traceEvents");
    array += strlen(key);
    orr_buf_add(text, trace.ptr, (size_t)(end - trace.ptr));
    while (text->len < WANTED && !text->failed) {
        orr_buf_byte(text, ',');
        orr_buf_add(text, array, (size_t)(end - array));
    }
    orr_buf_add(text, end, (size_t)(trace.ptr + trace.len - end));
    bench_require(!text->failed, "out of memory");
}

static void prepare(job *j)
{
    char path[512];
    orr_input *in;
    orr_error err;
    const char *root = getenv("ORR_GOLDEN");
    bench_require(root != NULL, "ORR_GOLDEN is not set; bench/run sets it");
    snprintf(path, sizeof path, "%s/h200/gpt2_124m_kineto.json.gz", root);
    bench_check(orr_input_open(path, &in, &err), &err);
    fill(&j->text, orr_input_bytes(in));
    orr_input_close(in);
}

/* ---- reading ---- */

static void add_scalar(totals *t, orr_json_value v)
{
    orr_error err;
    orr_str s;
    double d;
    switch (orr_json_type_of(v)) {
    case ORR_JSON_INT:
    case ORR_JSON_REAL:
        bench_check(orr_json_get_double(v, &d, &err), &err);
        t->sum += d;
        break;
    case ORR_JSON_STRING:
        bench_check(orr_json_get_str(v, &s, &err), &err);
        t->text_bytes += s.len;
        break;
    default:
        break;
    }
}

static void add_any(totals *t, orr_json_value v)
{
    orr_json_value inner;
    if (orr_json_type_of(v) < ORR_JSON_ARRAY) {
        add_scalar(t, v);
        return;
    }
    for (orr_json_iter it = orr_json_iterate(v); orr_json_next_value(&it, &inner);)
        add_any(t, inner);
}

static bool is_wanted(orr_str key)
{
    return orr_str_is(key, "name") || orr_str_is(key, "cat") || orr_str_is(key, "ph") ||
           orr_str_is(key, "ts") || orr_str_is(key, "dur") || orr_str_is(key, "pid") ||
           orr_str_is(key, "tid");
}

static void add_event(totals *t, orr_json_value event)
{
    orr_json_value v;
    orr_str key;
    t->events++;
    for (orr_json_iter it = orr_json_iterate(event); orr_json_next_member(&it, &key, &v);) {
        if (is_wanted(key)) {
            add_scalar(t, v);
        } else if (orr_str_is(key, "args")) {
            t->args += orr_json_count(v);
            add_any(t, v);
        }
    }
}

static orr_json *open_job(const job *j)
{
    orr_json *reader;
    orr_error err;
    bench_check(
        orr_json_open((orr_span){.ptr = j->text.ptr, .len = j->text.len}, "bench", &reader, &err),
        &err);
    return reader;
}

/* Calls `each` for every event. */
static void for_events(job *j, void (*each)(void *, orr_json_value), void *context)
{
    orr_json *reader = open_job(j);
    orr_json_item item;
    orr_json_value event;
    orr_error err;
    orr_code code;
    bench_check(orr_json_next(reader, &item, &err), &err);
    bench_check(orr_json_enter(reader, &err), &err);
    while ((code = orr_json_next(reader, &item, &err)) == ORR_OK) {
        if (!orr_str_is(item.key, "traceEvents"))
            continue;
        bench_check(orr_json_enter(reader, &err), &err);
        while ((code = orr_json_next(reader, &item, &err)) == ORR_OK) {
            bench_check(orr_json_load(reader, &event, &err), &err);
            each(context, event);
        }
        bench_check(code, &err);
    }
    bench_check(code, &err);
    orr_json_close(reader);
}

static void read_event(void *context, orr_json_value event)
{
    add_event(context, event);
}

static void run_read(void *context)
{
    job *j = context;
    j->read = (totals){0};
    for_events(j, read_event, &j->read);
    bench_require(j->read.events > 300000 && j->read.sum > 0, "events are missing");
}

static void run_pass_over(void *context)
{
    orr_json *reader = open_job(context);
    orr_json_item item;
    orr_error err;
    size_t documents = 0;
    orr_code code;
    while ((code = orr_json_next(reader, &item, &err)) == ORR_OK)
        documents++;
    bench_check(code, &err);
    bench_require(documents == 1, "one document expected");
    orr_json_close(reader);
}

/* ---- writing ---- */

static void write_any(orr_json_writer *w, orr_json_value v)
{
    orr_error err;
    orr_json_value inner;
    orr_str s;
    orr_json_iter it = orr_json_iterate(v);
    switch (orr_json_type_of(v)) {
    case ORR_JSON_ARRAY:
        orr_json_begin_array(w);
        while (orr_json_next_value(&it, &inner))
            write_any(w, inner);
        orr_json_end_array(w);
        break;
    case ORR_JSON_OBJECT:
        orr_json_begin_object(w);
        while (orr_json_next_member(&it, &s, &inner)) {
            orr_json_key_str(w, s);
            write_any(w, inner);
        }
        orr_json_end_object(w);
        break;
    case ORR_JSON_STRING:
        bench_check(orr_json_get_str(v, &s, &err), &err);
        orr_json_str(w, s);
        break;
    default:
        orr_json_raw_text(w, orr_json_raw(v));
    }
}

typedef struct sample {
    orr_json_value first;
    orr_buf *out;
    size_t times;
} sample;

/* The same tree repeatedly, so that only writing is measured. */
static void run_write(void *context)
{
    sample *s = context;
    orr_json_writer w;
    s->out->len = 0;
    orr_json_writer_init(&w, s->out, NULL);
    for (size_t i = 0; i < s->times; i++)
        write_any(&w, s->first);
    bench_require(!s->out->failed && s->out->len > WANTED / 2, "output is missing");
}

static void run_write_numbers(void *context)
{
    orr_buf *out = context;
    orr_json_writer w;
    out->len = 0;
    orr_json_writer_init(&w, out, NULL);
    orr_json_begin_array(&w);
    for (int i = 0; i < 1000000; i++) {
        orr_json_double(&w, 3868350895893.466 + i * 0.001);
        orr_json_i64(&w, (int64_t)i * 7919);
    }
    orr_json_end_array(&w);
    bench_require(!out->failed, "out of memory");
}

static void measure_writing(job *j)
{
    orr_json *reader = open_job(j);
    orr_json_item item;
    orr_error err;
    sample s = {.out = &j->out};
    bench_check(orr_json_next(reader, &item, &err), &err);
    bench_check(orr_json_enter(reader, &err), &err);
    do
        bench_check(orr_json_next(reader, &item, &err), &err);
    while (!orr_str_is(item.key, "traceEvents"));
    bench_check(orr_json_enter(reader, &err), &err);
    for (int i = 0; i < 5; i++) /* the fifth event has a full set of args */
        bench_check(orr_json_next(reader, &item, &err), &err);
    bench_check(orr_json_load(reader, &s.first, &err), &err);
    s.times = WANTED / orr_json_raw(s.first).len;
    run_write(&s);
    bench_measure("json__write_events_100mb", "MB", (double)j->out.len / 1e6, run_write, &s);
    run_write_numbers(&j->out);
    bench_measure("json__write_numbers_2m", "MB", (double)j->out.len / 1e6, run_write_numbers,
                  &j->out);
    orr_json_close(reader);
}

int main(void)
{
    job j = {0};
    prepare(&j);
    printf("json: %.1f MB of Kineto trace, in memory\n", (double)j.text.len / 1e6);
    const double before = bench_peak_mb();
    bench_measure("json__read_kineto_100mb", "MB", (double)j.text.len / 1e6, run_read, &j);
    bench_measure("json__pass_over_kineto_100mb", "MB", (double)j.text.len / 1e6, run_pass_over,
                  &j);
    printf("json: %.1f MB beyond the text\n", bench_peak_mb() - before);
    measure_writing(&j);
    orr_buf_fini(&j.out);
    orr_buf_fini(&j.text);
    return 0;
}
