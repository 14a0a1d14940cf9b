/* SPDX-License-Identifier: Apache-2.0 */
/* serve_requests.c - lists of requests: arrival, prompt length and output length.
 *
 * Tables (CSV or tabs) name their columns in the first line, JSON has a key for each; one table
 * maps names to meaning and unit, so that our own list, the traces of Azure, Splitwise, Vidur,
 * BurstGPT, LLMServingSim and Mooncake and vLLM's benchmark output are read by the same code.
 * Memory grows with the rows read, never by a number in the file. */
#include "base/formats/csv.h"
#include "base/formats/json.h"
#include "base/io/input.h"
#include "base/text/number.h"
#include "base/text/text.h"
#include "serve_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 3, SHOWN = 60 };

typedef enum column { ARRIVAL, PROMPT, OUTPUT } column;

/* How a value is written. */
typedef enum form {
    EXACT,   /* our own: a whole number of microseconds or tokens, and nothing else */
    COUNT,   /* of tokens in others' files: 0 means that the request failed, and is left out */
    SECONDS, /* with a fraction */
    MILLISECONDS,
    NANOSECONDS,
    DATE /* 2023-11-16 18:15:46.6805900, with or without +00:00; counted from the first */
} form;

static const struct {
    const char *name;
    column what;
    form form;
} names[] = {
    {"arrival_us", ARRIVAL, EXACT},
    {"prompt", PROMPT, EXACT},
    {"output", OUTPUT, EXACT},
    {"arrival_s", ARRIVAL, SECONDS},
    {"TIMESTAMP", ARRIVAL, DATE},
    {"ContextTokens", PROMPT, COUNT}, /* Azure */
    {"GeneratedTokens", OUTPUT, COUNT},
    {"arrival_timestamp", ARRIVAL, SECONDS}, /* Splitwise */
    {"prompt_size", PROMPT, COUNT},
    {"token_size", OUTPUT, COUNT},
    {"arrived_at", ARRIVAL, SECONDS},
    {"num_prefill_tokens", PROMPT, COUNT}, /* Vidur */
    {"num_decode_tokens", OUTPUT, COUNT},
    {"Timestamp", ARRIVAL, SECONDS}, /* BurstGPT */
    {"Request tokens", PROMPT, COUNT},
    {"Response tokens", OUTPUT, COUNT},
    {"arrival_time_ns", ARRIVAL, NANOSECONDS},
    {"input_toks", PROMPT, COUNT}, /* LLMServingSim */
    {"output_toks", OUTPUT, COUNT},
    {"timestamp", ARRIVAL, MILLISECONDS}, /* Mooncake */
    {"input_length", PROMPT, COUNT},
    {"output_length", OUTPUT, COUNT},
};

enum { NAMES = sizeof names / sizeof *names };

static const struct {
    const char *name;
    uint64_t least, most;
} columns[COLUMNS] = {
    {"arrival_us", 0, LLM_MOST_ARRIVAL},
    {"prompt", 1, LLM_MOST_TOKENS},
    {"output", 1, LLM_MOST_TOKENS},
};

typedef struct list {
    orr_serve_request *items;
    size_t count, room;
    bool is_dated; /* arrivals count from the earliest */
} list;

static int find_name(orr_str name)
{
    for (int i = 0; i < NAMES; i++)
        if (orr_str_is(name, names[i].name))
            return i;
    return -1;
}

/* ---- values ---- */

/* Digits at *at, at most `most` of them. */
static bool take_digits(orr_str s, size_t *at, size_t most, uint64_t *out)
{
    const size_t from = *at;
    *out = 0;
    for (; *at < s.len && *at - from < most && s.ptr[*at] >= '0' && s.ptr[*at] <= '9'; (*at)++)
        *out = *out * 10 + (uint64_t)(s.ptr[*at] - '0');
    return *at > from;
}

static bool take_sign(orr_str s, size_t *at, const char *signs)
{
    if (*at >= s.len || s.ptr[*at] == '\0' || !strchr(signs, s.ptr[*at]))
        return false;
    (*at)++;
    return true;
}

/* Days from 1970-01-01; years begin in March, so that leap days come last. */
static uint64_t days_before(uint64_t year, uint64_t month, uint64_t day)
{
    const uint64_t y = month <= 2 ? year - 1 : year, m = month <= 2 ? month + 9 : month - 3;
    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

static bool read_clock(orr_str s, size_t *at, uint64_t *us)
{
    uint64_t hours, minutes, seconds, fraction = 0, scale = 1000000;
    if (!take_digits(s, at, 2, &hours) || !take_sign(s, at, ":") ||
        !take_digits(s, at, 2, &minutes) || !take_sign(s, at, ":") ||
        !take_digits(s, at, 2, &seconds) || hours > 23 || minutes > 59 || seconds > 60)
        return false;
    if (take_sign(s, at, "."))
        for (; *at < s.len && s.ptr[*at] >= '0' && s.ptr[*at] <= '9'; (*at)++) {
            scale /= 10; /* from the seventh digit on: nothing */
            fraction += (uint64_t)(s.ptr[*at] - '0') * scale;
        }
    *us = ((hours * 60 + minutes) * 60 + seconds) * 1000000 + fraction;
    return true;
}

static bool read_date(orr_str s, uint64_t *us)
{
    uint64_t year, month, day, zone_hours = 0, zone_minutes = 0;
    size_t at = 0;
    if (!take_digits(s, &at, 4, &year) || !take_sign(s, &at, "-") ||
        !take_digits(s, &at, 2, &month) || !take_sign(s, &at, "-") ||
        !take_digits(s, &at, 2, &day) || !take_sign(s, &at, " T") || !read_clock(s, &at, us) ||
        year < 1971 || month < 1 || month > 12 || day < 1 || day > 31)
        return false;
    *us += days_before(year, month, day) * 86400 * 1000000;
    if (at == s.len || (take_sign(s, &at, "Z") && at == s.len))
        return true;
    const bool is_behind = at < s.len && s.ptr[at] == '-';
    if (!take_sign(s, &at, "+-") || !take_digits(s, &at, 2, &zone_hours) ||
        !take_sign(s, &at, ":") || !take_digits(s, &at, 2, &zone_minutes) || at != s.len)
        return false;
    const uint64_t zone = (zone_hours * 60 + zone_minutes) * 60 * 1000000;
    *us = is_behind ? *us + zone : *us - zone;
    return true;
}

/* To the nearest microsecond; false: not such a number, or too large. */
static bool read_time(orr_str s, form f, uint64_t *us)
{
    const double unit = f == SECONDS ? 1e6 : f == MILLISECONDS ? 1e3 : 1e-3;
    double v;
    if (f == DATE)
        return read_date(s, us);
    if (!orr_text_double(s, &v) || !(v >= 0) || v * unit > (double)LLM_MOST_ARRIVAL)
        return false;
    *us = (uint64_t)(v * unit + 0.5);
    return true;
}

static orr_code not_a_value(orr_where w, orr_str text, int name, orr_error *err)
{
    static const char *const forms[] = {[SECONDS] = "seconds",
                                        [MILLISECONDS] = "milliseconds",
                                        [NANOSECONDS] = "nanoseconds",
                                        [DATE] = "a date such as 2023-11-16 18:15:46.68"};
    const int shown = (int)(text.len < SHOWN ? text.len : SHOWN);
    if (names[name].form == COUNT)
        return orr_fail(err, ORR_EINPUT, &w,
                        "%s: \"%.*s\" is not a whole number from 0 to %" PRIu64, names[name].name,
                        shown, text.ptr, LLM_MOST_TOKENS);
    return orr_fail(err, ORR_EINPUT, &w, "%s: \"%.*s\" is not %s of at most %" PRIu64 " days",
                    names[name].name, shown, text.ptr, forms[names[name].form],
                    LLM_MOST_ARRIVAL / 1000000 / 86400);
}

/* A value of any form but EXACT. */
static orr_code read_value(orr_where w, orr_str text, int name, uint64_t *out, orr_error *err)
{
    bool is_good;
    if (names[name].form == COUNT)
        is_good = orr_text_u64(text, out) && *out <= LLM_MOST_TOKENS;
    else
        is_good = read_time(text, names[name].form, out);
    return is_good ? ORR_OK : not_a_value(w, text, name, err);
}

static orr_code add_request(list *l, const uint64_t values[COLUMNS], orr_where w, orr_error *err)
{
    if (values[PROMPT] == 0 || values[OUTPUT] == 0)
        return ORR_OK; /* it failed */
    if (l->count == LLM_MOST_REQUESTS)
        return orr_fail(err, ORR_EINPUT, &w, "more than %d requests", LLM_MOST_REQUESTS);
    if (!orr_grow(&l->items, &l->room, l->count + 1))
        return orr_no_memory(err);
    l->items[l->count++] = (orr_serve_request){values[ARRIVAL], values[PROMPT], values[OUTPUT]};
    return ORR_OK;
}

/* ---- tables ---- */

/* Which field of a row has a column, and under which name; SIZE_MAX: none. */
typedef struct places {
    size_t field[COLUMNS];
    int name[COLUMNS];
} places;

/* Vidur's length tables have no times: all requests arrive at once. */
static bool may_lack_times(const places *p)
{
    return p->field[PROMPT] != SIZE_MAX &&
           strcmp(names[p->name[PROMPT]].name, "num_prefill_tokens") == 0;
}

static orr_code read_names(const orr_csv *csv, const orr_csv_row *row, places *p, orr_error *err)
{
    for (int i = 0; i < COLUMNS; i++)
        p->field[i] = SIZE_MAX;
    for (size_t k = 0; k < row->count; k++) {
        const int name = find_name(row->fields[k].text);
        const orr_where w = orr_csv_where(csv, &row->fields[k]);
        if (name < 0)
            continue;
        if (p->field[names[name].what] != SIZE_MAX)
            return orr_fail(err, ORR_EINPUT, &w, "a second column %s",
                            columns[names[name].what].name);
        p->field[names[name].what] = k;
        p->name[names[name].what] = name;
    }
    for (int i = 0; i < COLUMNS; i++) {
        const orr_where w = orr_where_line(csv->path, row->line, 1);
        const bool is_missing = p->field[i] == SIZE_MAX && !(i == ARRIVAL && may_lack_times(p));
        for (size_t k = 0; is_missing && k < row->count; k++) {
            const orr_str found = row->fields[k].text;
            const orr_where at = orr_csv_where(csv, &row->fields[k]);
            if (find_name(found) < 0 &&
                orr_nearest(found, (const char *const[]){columns[i].name, NULL}))
                return orr_fail(
                    err, ORR_EINPUT, &at, "unknown column \"%.*s\"; did you mean \"%s\"?",
                    (int)(found.len < SHOWN ? found.len : SHOWN), found.ptr, columns[i].name);
        }
        if (is_missing)
            return orr_fail(err, ORR_EINPUT, &w,
                            "no column %s: the first line names the columns, among them "
                            "arrival_us, prompt and output",
                            columns[i].name);
    }
    return ORR_OK;
}

static orr_code read_field(const orr_csv *csv,
                           const orr_csv_row *row,
                           const places *p,
                           int i,
                           uint64_t *out,
                           orr_error *err)
{
    const orr_where w = orr_where_line(csv->path, row->line, 1);
    *out = 0;
    if (p->field[i] == SIZE_MAX)
        return ORR_OK;
    if (p->field[i] >= row->count)
        return orr_fail(err, ORR_EINPUT, &w, "%zu fields: there is none for %s", row->count,
                        columns[i].name);
    const orr_csv_field *f = &row->fields[p->field[i]];
    if (names[p->name[i]].form == EXACT)
        return orr_csv_u64(csv, f, columns[i].name, columns[i].least, columns[i].most, out, err);
    return read_value(orr_csv_where(csv, f), f->text, p->name[i], out, err);
}

static orr_code read_rows(orr_csv *csv, const places *p, list *l, orr_error *err)
{
    orr_csv_row row;
    orr_code code;
    while ((code = orr_csv_next(csv, &row, err)) == ORR_OK) {
        uint64_t values[COLUMNS];
        for (int i = 0; i < COLUMNS && !code; i++)
            code = read_field(csv, &row, p, i, &values[i], err);
        if (!code)
            code = add_request(l, values, orr_where_line(csv->path, row.line, 1), err);
        if (code)
            return code;
    }
    return code == ORR_END ? ORR_OK : code;
}

static orr_code read_table(orr_csv *csv, list *l, orr_error *err)
{
    const orr_where top = orr_where_line(csv->path, 1, 1);
    places p;
    orr_csv_row row;
    orr_code code = orr_csv_next(csv, &row, err);
    if (code == ORR_END)
        return orr_fail(err, ORR_EINPUT, &top,
                        "empty: expected a line \"arrival_us,prompt,output\" and requests");
    if (!code)
        code = read_names(csv, &row, &p, err);
    if (!code)
        code = read_rows(csv, &p, l, err);
    if (!code && l->count == 0)
        return orr_fail(err, ORR_EINPUT, &top, "no requests after the header row");
    l->is_dated = !code && p.field[ARRIVAL] != SIZE_MAX && names[p.name[ARRIVAL]].form == DATE;
    return code;
}

static bool is_tabbed(orr_span bytes)
{
    const uint8_t *line = memchr(bytes.ptr, '\n', bytes.len);
    const size_t n = line ? (size_t)(line - bytes.ptr) : bytes.len;
    return n && memchr(bytes.ptr, '\t', n) && !memchr(bytes.ptr, ',', n);
}

static orr_code parse_table(orr_span bytes, const char *label, list *l, orr_error *err)
{
    orr_csv csv;
    orr_csv_init(&csv, bytes, label);
    if (is_tabbed(bytes))
        csv.separator = '\t';
    const orr_code code = read_table(&csv, l, err);
    orr_csv_fini(&csv);
    return code;
}

/* ---- JSON ---- */

static orr_code read_json_value(orr_json_value v, int name, uint64_t *out, orr_error *err)
{
    const orr_where w = orr_json_where(v);
    orr_str text = orr_json_raw(v);
    if (orr_json_type_of(v) == ORR_JSON_STRING && orr_json_get_str(v, &text, NULL))
        return not_a_value(w, text, name, err);
    if (names[name].form == EXACT && (!orr_text_u64(text, out) || *out > LLM_MOST_ARRIVAL))
        return orr_fail(err, ORR_EINPUT, &w, "%s: expected a whole number", names[name].name);
    return names[name].form == EXACT ? ORR_OK : read_value(w, text, name, out, err);
}

/* A request: one object with a key for each column. */
static orr_code read_object(orr_json_value object, list *l, orr_error *err)
{
    const orr_where w = orr_json_where(object);
    bool is_there[COLUMNS] = {false};
    uint64_t values[COLUMNS] = {0};
    orr_json_iter it = orr_json_iterate(object);
    orr_json_value v;
    orr_str key;
    while (orr_json_type_of(object) == ORR_JSON_OBJECT && orr_json_next_member(&it, &key, &v)) {
        const int name = find_name(key);
        if (name < 0)
            continue;
        if (is_there[names[name].what])
            return orr_fail(err, ORR_EINPUT, &w, "a second %s", columns[names[name].what].name);
        is_there[names[name].what] = true;
        const orr_code code = read_json_value(v, name, &values[names[name].what], err);
        if (code)
            return code;
        l->is_dated |= names[name].form == DATE;
    }
    for (int i = 0; i < COLUMNS; i++)
        if (!is_there[i])
            return orr_fail(
                err, ORR_EINPUT, &w,
                "no %s: expected timestamp, input_length and output_length (Mooncake), "
                "arrival_time_ns, input_toks and output_toks (LLMServingSim) or arrival_us, prompt "
                "and output",
                columns[i].name);
    return add_request(l, values, w, err);
}

/* What vLLM's benchmark writes: lists of lengths, and with --save-detailed of times. */
typedef struct benchmark {
    orr_json_iter input, output, start;
    bool has_times;
    double rate; /* requests per second; 0: all at once */
} benchmark;

static orr_code open_benchmark(orr_json_value root, benchmark *b, orr_error *err)
{
    orr_json_value in, out, v = root;
    if (!orr_json_find(root, "input_lens", &in))
        in = root;
    const orr_where w = orr_json_where(in);
    if (!orr_json_find(root, "output_lens", &out) || orr_json_type_of(in) != ORR_JSON_ARRAY ||
        orr_json_type_of(out) != ORR_JSON_ARRAY || orr_json_count(in) != orr_json_count(out))
        return orr_fail(
            err, ORR_EINPUT, &w,
            "expected lists input_lens and output_lens of the same length (vLLM writes them with "
            "--save-detailed)");
    *b = (benchmark){.input = orr_json_iterate(in), .output = orr_json_iterate(out)};
    b->has_times = orr_json_find(root, "start_times", &v) &&
                   orr_json_type_of(v) == ORR_JSON_ARRAY && orr_json_count(v) == orr_json_count(in);
    if (b->has_times)
        b->start = orr_json_iterate(v);
    else if (orr_json_find(root, "request_rate", &v) &&
             (orr_json_get_double(v, &b->rate, NULL) || !(b->rate > 0) || b->rate > 1e9))
        b->rate = 0; /* "inf" */
    const orr_where rate = orr_json_where(v);
    const size_t count = orr_json_count(in),
                 before = count ? count - 1 : 0; /* the first comes at 0 */
    if (b->rate > 0 && (double)before / b->rate * 1e6 > (double)LLM_MOST_ARRIVAL)
        return orr_fail(err, ORR_EINPUT, &rate,
                        "request_rate: the last request would come after more than %" PRIu64
                        " days",
                        LLM_MOST_ARRIVAL / 1000000 / 86400);
    return ORR_OK;
}

/* Seconds of some clock, however long it has been running. */
static orr_code read_start(orr_json_value v, uint64_t *out, orr_error *err)
{
    const orr_where w = orr_json_where(v);
    double s;
    if (orr_json_get_double(v, &s, NULL) || !(s >= 0) || s > 1e12)
        return orr_fail(err, ORR_EINPUT, &w, "start_times: expected seconds");
    *out = (uint64_t)(s * 1e6 + 0.5);
    return ORR_OK;
}

static orr_code read_benchmark(orr_json_value root, list *l, orr_error *err)
{
    const int count = find_name(orr_str_of("input_toks"));
    benchmark b;
    orr_json_value in, out, v;
    orr_code code = open_benchmark(root, &b, err);
    for (uint64_t i = 0;
         !code && orr_json_next_value(&b.input, &in) && orr_json_next_value(&b.output, &out); i++) {
        uint64_t values[COLUMNS] = {0};
        code = read_json_value(in, count, &values[PROMPT], err);
        if (!code)
            code = read_json_value(out, count, &values[OUTPUT], err);
        if (!code && b.has_times && orr_json_next_value(&b.start, &v))
            code = read_start(v, &values[ARRIVAL], err);
        else if (b.rate > 0)
            values[ARRIVAL] = (uint64_t)((double)i / b.rate * 1e6 + 0.5);
        if (!code)
            code = add_request(l, values, orr_json_where(in), err);
    }
    l->is_dated = true;
    return code;
}

static orr_code read_document(orr_json_value root, list *l, orr_error *err)
{
    orr_json_iter it = orr_json_iterate(root);
    orr_json_value v;
    orr_code code = ORR_OK;
    if (orr_json_find(root, "input_lens", &v) || orr_json_find(root, "output_lens", &v))
        return read_benchmark(root, l, err);
    if (orr_json_type_of(root) != ORR_JSON_ARRAY)
        return read_object(root, l, err);
    while (!code && orr_json_next_value(&it, &v))
        code = read_object(v, l, err);
    return code;
}

static orr_code parse_json(orr_span bytes, const char *label, list *l, orr_error *err)
{
    const orr_where top = orr_where_line(label, 1, 1);
    orr_json *j;
    orr_json_value root;
    orr_code code = orr_json_open(bytes, label, &j, err);
    if (code)
        return code;
    while ((code = orr_json_document(j, &root, err)) == ORR_OK)
        if ((code = read_document(root, l, err)))
            break;
    orr_json_close(j);
    if (code != ORR_END)
        return code;
    return l->count ? ORR_OK : orr_fail(err, ORR_EINPUT, &top, "no requests");
}

static bool is_json(orr_span bytes)
{
    size_t at = bytes.len >= 3 && memcmp(bytes.ptr, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    while (at < bytes.len && bytes.ptr[at] && strchr(" \t\r\n", bytes.ptr[at]))
        at++;
    return at < bytes.len && (bytes.ptr[at] == '{' || bytes.ptr[at] == '[');
}

/* ---- in the order of arrival ---- */

/* Two runs of sorted items into one; of equal arrivals the left one's first. */
static void merge(
    const orr_serve_request *from, size_t first, size_t middle, size_t end, orr_serve_request *to)
{
    size_t a = first, b = middle;
    for (size_t i = first; i < end; i++) {
        const bool is_left = a < middle && (b >= end || from[a].arrival_us <= from[b].arrival_us);
        to[i] = is_left ? from[a++] : from[b++];
    }
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static bool is_sorted(const list *l)
{
    for (size_t i = 1; i < l->count; i++)
        if (l->items[i - 1].arrival_us > l->items[i].arrival_us)
            return false;
    return true;
}

static bool sort(list *l)
{
    if (is_sorted(l))
        return true;
    orr_serve_request *other = orr_alloc(l->count, sizeof *other);
    if (!other)
        return false;
    for (size_t width = 1; width < l->count; width *= 2) {
        for (size_t i = 0; i < l->count; i += 2 * width)
            merge(l->items, i, least(i + width, l->count), least(i + 2 * width, l->count), other);
        orr_serve_request *const sorted = other;
        other = l->items;
        l->items = sorted;
    }
    orr_free(other);
    return true;
}

/* Dates and clocks of another program: from the earliest on. */
static orr_code begin_at_first(list *l, const char *label, orr_error *err)
{
    const orr_where top = orr_where_line(label, 1, 1);
    const uint64_t first = l->count ? l->items[0].arrival_us : 0;
    for (size_t i = 0; i < l->count && l->is_dated; i++)
        l->items[i].arrival_us -= first;
    if (l->count && l->items[l->count - 1].arrival_us > LLM_MOST_ARRIVAL)
        return orr_fail(err, ORR_EINPUT, &top,
                        "more than %" PRIu64 " days from the first request "
                        "to the last",
                        LLM_MOST_ARRIVAL / 1000000 / 86400);
    return ORR_OK;
}

orr_code orr_requests_parse(
    orr_span bytes, const char *label, orr_serve_request **out, size_t *count, orr_error *err)
{
    list l = {0};
    *out = NULL;
    *count = 0;
    orr_code code =
        is_json(bytes) ? parse_json(bytes, label, &l, err) : parse_table(bytes, label, &l, err);
    if (!code && !sort(&l))
        code = orr_no_memory(err);
    if (!code)
        code = begin_at_first(&l, label, err);
    if (code) {
        orr_free(l.items);
        return code;
    }
    *out = l.items;
    *count = l.count;
    return ORR_OK;
}

orr_code orr_requests_read(const char *path, orr_serve_request **out, size_t *count, orr_error *err)
{
    orr_input *in;
    *out = NULL;
    *count = 0;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    code = orr_requests_parse(orr_input_bytes(in), path, out, count, err);
    orr_input_close(in);
    return code;
}

void orr_requests_free(orr_serve_request *requests)
{
    orr_free(requests);
}
