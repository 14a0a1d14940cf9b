/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - the report as an object, and the page around the data.
 *
 * Runs are evaluated and rendered when they are added, so a report holds only text and a timeline
 * can be freed at once.  The page itself is a constant (tools/embed.c makes it from web/): head,
 * title, style, data, script. */
#include <orrery/report.h>

#include "base/arithmetic.h"
#include "base/formats/json.h"
#include "base/io/input.h"
#include "base/io/output.h"
#include "base/io/pack.h"
#include "base/memory/memory.h"
#include "base/memory/sort.h"
#include "base/options.h"
#include "base/text/base64.h"
#include "base/text/text.h"
#include "report_impl.h"
#include "views_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char orr__page_before_title[];
extern const char orr__page_before_data[];
extern const char orr__page_after_data[];

/* A timeline packed for the page: columns of small numbers, deflated, in base64.
 *
 * Not everything is included.  Ranks like another one are left out unless requested; above the
 * limit phases are dropped first, then the shortest spans, of equal ones the later; counters are
 * thinned.  The page tells what was left out.  docs/format/report.md defines the format byte by
 * byte.
 *
 * Cost: linear in the spans, plus a selection by length if there are too many. */

enum { MAGIC = 0x3154524f, MOST_SAMPLES = 20000, OPEN_BIT = 0x80, COLUMNS = 11 };
#define MOST_VALUE ((UINT64_C(1) << 53) - 1) /* the largest exact integer in JavaScript */

typedef enum column {
    FIRST,
    START,
    LENGTH,
    NAME,
    KIND,
    GROUP,
    SIZE,
    ID,
    PEER,
    ARROWS,
    SAMPLES
} column;

typedef struct packer {
    orr__study *s;
    const orr_timeline_parts *p;
    orr__events *e;
    bool *is_shown;      /* by place */
    uint32_t *number;    /* in the page, by span; ORR__NO_PLACE: left out */
    uint32_t *order;     /* spans of each track, as they are drawn */
    orr_sample *samples; /* those kept, by counter and time */
    size_t sample_count;
    orr_buf columns[COLUMNS];
} packer;

/* ---- which ranks ---- */

/* A rank missing from the timeline is shown by its representative. */
static void show_ranks(packer *k, uint32_t first, uint32_t last)
{
    for (uint32_t r = first; r <= last && r < k->s->p->alike_count; r++) {
        const uint32_t place = orr__place_of_rank(k->s, r);
        if (place != ORR__NO_PLACE)
            k->is_shown[place] = true;
    }
    for (uint32_t place = 0; place < k->s->rank_count; place++)
        k->is_shown[place] |= k->s->ranks[place].rank >= first && k->s->ranks[place].rank <= last;
}

static orr_code show_list(packer *k, const char *text)
{
    const char *at = text;
    uint32_t first, last;
    orr_code code;
    while (!(code = orr_rank_list_next(text, &at, &first, &last, k->s->err)))
        show_ranks(k, first, last);
    return code == ORR_END ? ORR_OK : code;
}

static orr_code choose_ranks(packer *k)
{
    const char *text = k->s->run->ranks_shown;
    orr_code code = ORR_OK;
    if (text && strcmp(text, "all") == 0)
        show_ranks(k, 0, ORR_NO_RANK - 1);
    else if (text)
        code = show_list(k, text);
    for (uint32_t g = 0; !text && g < k->s->group_count; g++)
        k->is_shown[k->s->groups[g].shown] = true;
    k->e->ranks_left_out = k->s->all_ranks;
    for (uint32_t place = 0; place < k->s->rank_count; place++)
        k->e->ranks_left_out -= k->is_shown[place];
    return code;
}

static bool is_shown(const packer *k, uint32_t rank, uint32_t place)
{
    return rank == ORR_NO_RANK || (place != ORR__NO_PLACE && k->is_shown[place]);
}

/* ---- which spans ---- */

static bool list_tracks(packer *k)
{
    orr__events *e = k->e;
    e->track_number = orr_arena_new(k->s->arena, k->p->track_count, uint32_t);
    e->tracks = orr_arena_new(k->s->arena, k->p->track_count, uint32_t);
    if (!e->track_number || !e->tracks)
        return false;
    for (uint32_t t = 0; t < k->p->track_count; t++) {
        const bool has_it = is_shown(k, k->p->tracks[t].rank, k->s->place_of_track[t]);
        e->track_number[t] = has_it ? e->track_count : ORR__NO_PLACE;
        if (has_it)
            e->tracks[e->track_count++] = t;
    }
    return true;
}

static int compare_lengths(const void *a, const void *b)
{
    const orr_ps x = *(const orr_ps *)a, y = *(const orr_ps *)b;
    return x > y ? -1 : x < y;
}

/* The length of the last of the `most` longest spans, and how many of exactly that length may
 * stay. */
static bool find_limit(
    const packer *k, bool has_phases, uint64_t most, orr_ps *limit, uint64_t *equal)
{
    orr_ps *lengths = orr_alloc(k->p->span_count, sizeof *lengths);
    uint64_t n = 0, longer = 0;
    if (!lengths)
        return false;
    for (uint32_t i = 0; i < k->p->span_count; i++) {
        const orr_timespan *s = &k->p->spans[i];
        if (k->e->track_number[s->track] != ORR__NO_PLACE &&
            (has_phases || s->kind != ORR_SPAN_PHASE))
            lengths[n++] = s->end - s->start;
    }
    orr_sort(lengths, n, sizeof *lengths, compare_lengths);
    *limit = lengths[most - 1];
    while (lengths[longer] > *limit)
        longer++;
    *equal = most - longer;
    orr_free(lengths);
    return true;
}

/* A receive is drawn from when its message left: before that nothing is in flight. */
static orr_ps drawn_start(const packer *k, uint32_t i)
{
    const orr_timespan *s = &k->p->spans[i];
    return s->kind == ORR_SPAN_RECEIVE ? k->s->since[i] : s->start;
}

static int compare_drawn(const void *a, const void *b, void *packer_)
{
    const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const orr_ps x = drawn_start(packer_, i), y = drawn_start(packer_, j);
    if (x != y)
        return x < y ? -1 : 1;
    return i < j ? -1 : i > j;
}

static bool order_spans(packer *k)
{
    const orr_timeline_parts *p = k->p;
    k->order = orr_arena_take(k->s->arena, (size_t)p->span_count * sizeof *k->order + 1);
    if (!k->order)
        return false;
    if (p->span_count)
        memcpy(k->order, p->order, p->span_count * sizeof *k->order);
    for (uint32_t t = 0; t < p->track_count; t++) {
        bool is_ordered = true;
        for (uint32_t j = p->first[t] + 1; j < p->first[t + 1] && is_ordered; j++)
            is_ordered = drawn_start(k, k->order[j - 1]) <= drawn_start(k, k->order[j]);
        if (!is_ordered)
            qsort_r(k->order + p->first[t], p->first[t + 1] - p->first[t], sizeof *k->order,
                    compare_drawn, k);
    }
    return true;
}

/* Spans are numbered in the order of tracks and time. */
static bool choose_spans(packer *k)
{
    const orr_timeline_parts *p = k->p;
    uint64_t all = 0, phases = 0, equal = UINT64_MAX;
    orr_ps limit = -1;
    for (uint32_t i = 0; i < p->span_count; i++) {
        const bool is_in = k->e->track_number[p->spans[i].track] != ORR__NO_PLACE;
        all += is_in;
        phases += is_in && p->spans[i].kind == ORR_SPAN_PHASE;
    }
    const bool has_phases = all <= k->s->most_spans;
    if (!has_phases && all - phases > k->s->most_spans &&
        !find_limit(k, has_phases, k->s->most_spans, &limit, &equal))
        return false;
    for (uint32_t j = 0; j < p->span_count; j++) {
        const uint32_t i = k->order[j];
        const orr_timespan *s = &p->spans[i];
        const orr_ps length = s->end - s->start;
        k->number[i] = ORR__NO_PLACE;
        if (k->e->track_number[s->track] == ORR__NO_PLACE || length < limit ||
            (!has_phases && s->kind == ORR_SPAN_PHASE) || (length == limit && equal == 0))
            continue;
        equal -= length == limit;
        k->number[i] = (uint32_t)k->e->spans++;
    }
    k->e->left_out = all - k->e->spans;
    return true;
}

/* ---- counters ---- */

static int compare_samples(const void *a, const void *b)
{
    const orr_sample *x = a, *y = b;
    if (x->counter != y->counter)
        return x->counter < y->counter ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static void thin(packer *k)
{
    size_t n = 0;
    for (size_t from = 0, to; from < k->sample_count; from = to) {
        for (to = from; to < k->sample_count && k->samples[to].counter == k->samples[from].counter;)
            to++;
        const size_t left = orr__thin_samples(k->samples + from, to - from, MOST_SAMPLES);
        memmove(k->samples + n, k->samples + from, left * sizeof *k->samples);
        n += left;
        k->e->samples_left_out += to - from - left;
    }
    k->sample_count = n;
}

static bool choose_samples(packer *k)
{
    const orr_timeline_parts *p = k->p;
    orr__events *e = k->e;
    uint32_t *number = orr_arena_new(k->s->arena, p->counter_count, uint32_t);
    bool is_ordered = true;
    e->counters = orr_arena_new(k->s->arena, p->counter_count, uint32_t);
    k->samples = orr_alloc(p->sample_count, sizeof *k->samples);
    if (!number || !e->counters || !k->samples)
        return false;
    for (uint32_t c = 0; c < p->counter_count; c++) {
        const uint32_t rank = p->counters[c].rank;
        const bool has_it = is_shown(k, rank, orr__place_of_rank(k->s, rank));
        number[c] = has_it ? e->counter_count : ORR__NO_PLACE;
        if (has_it)
            e->counters[e->counter_count++] = c;
    }
    for (uint32_t i = 0; i < p->sample_count; i++) {
        if (number[p->samples[i].counter] == ORR__NO_PLACE)
            continue;
        k->samples[k->sample_count] = p->samples[i];
        k->samples[k->sample_count].counter = number[p->samples[i].counter];
        is_ordered &= k->sample_count == 0 || compare_samples(&k->samples[k->sample_count - 1],
                                                              &k->samples[k->sample_count]) <= 0;
        k->sample_count++;
    }
    if (!is_ordered)
        orr_sort(k->samples, k->sample_count, sizeof *k->samples, compare_samples);
    thin(k);
    return true;
}

/* ---- the tick ---- */

/* Most values are a multiple of the current tick, so one division is enough. */
static void divide(uint64_t *tick, orr_ps time)
{
    const uint64_t v = (uint64_t)time;
    if (*tick == 0 || v % *tick)
        *tick = orr_gcd(*tick, v);
}

static bool is_kept(const packer *k, const orr_arrow *a)
{
    return k->number[a->from] != ORR__NO_PLACE && k->number[a->to] != ORR__NO_PLACE;
}

/* The largest lossless tick, unless numbers would get too large. */
static void find_tick(packer *k)
{
    const orr_timeline_parts *p = k->p;
    const orr_ps start = k->s->start;
    uint64_t tick = 0;
    for (uint32_t i = 0; i < p->span_count && tick != 1; i++) {
        if (k->number[i] == ORR__NO_PLACE)
            continue;
        divide(&tick, drawn_start(k, i) - start);
        divide(&tick, p->spans[i].end - drawn_start(k, i));
    }
    for (uint32_t i = 0; i < p->arrow_count && tick != 1; i++) {
        if (!is_kept(k, &p->arrows[i]))
            continue;
        divide(&tick, p->arrows[i].left - start);
        divide(&tick, p->arrows[i].arrived - start);
    }
    for (size_t i = 0; i < k->sample_count && tick != 1; i++)
        divide(&tick, k->samples[i].at - start);
    if (tick == 0)
        tick = 1000;
    while ((uint64_t)orr__total(k->s) / tick > MOST_VALUE)
        tick *= 2;
    k->e->tick = (orr_ps)tick;
}

/* ---- columns ---- */

static void put(orr_buf *b, uint64_t v)
{
    uint8_t *to = orr_buf_reserve(b, 10);
    if (!to)
        return;
    for (; v >= 0x80; v >>= 7)
        *to++ = (uint8_t)(v | 0x80);
    *to++ = (uint8_t)v;
    b->len = (size_t)(to - b->ptr);
}

static uint64_t ticks(const packer *k, orr_ps time)
{
    return time > 0 ? (uint64_t)time / (uint64_t)k->e->tick : 0;
}

static uint64_t at_most(uint64_t v)
{
    return v < MOST_VALUE ? v : MOST_VALUE;
}

/* Texts are numbered by first use; the empty one is 0. */
static uint32_t text_number(packer *k, uint32_t text)
{
    orr__events *e = k->e;
    if (text != ORR_NO_TEXT && e->text_number[text] == 0) {
        e->text_number[text] = e->text_count;
        e->texts[e->text_count++] = text;
    }
    return e->text_number[text];
}

static void put_span(packer *k, uint32_t i, uint64_t *before)
{
    orr_buf *c = k->columns;
    const orr_timespan *s = &k->p->spans[i];
    const orr_ps from = drawn_start(k, i);
    const uint64_t start = ticks(k, from - k->s->start);
    put(&c[START], start - *before);
    *before = start;
    put(&c[LENGTH], ticks(k, s->end - from));
    put(&c[NAME], text_number(k, s->name));
    orr_buf_byte(&c[KIND], (uint8_t)(s->kind | (s->is_open ? OPEN_BIT : 0)));
    put(&c[GROUP], text_number(k, s->group));
    put(&c[SIZE], at_most(s->size));
    put(&c[ID], s->has & ORR_SPAN_HAS_ID && s->id < MOST_VALUE ? s->id + 1 : 0);
    put(&c[PEER], s->has & ORR_SPAN_HAS_PEER ? (uint64_t)s->peer + 1 : 0);
}

static void put_spans(packer *k)
{
    const orr_timeline_parts *p = k->p;
    for (uint32_t n = 0; n < k->e->track_count; n++) {
        const uint32_t track = k->e->tracks[n];
        uint64_t before = 0, count = 0;
        for (uint32_t j = p->first[track]; j < p->first[track + 1]; j++) {
            if (k->number[k->order[j]] == ORR__NO_PLACE)
                continue;
            put_span(k, k->order[j], &before);
            count++;
        }
        put(&k->columns[FIRST], count);
    }
}

static void put_arrows(packer *k)
{
    for (uint32_t i = 0; i < k->p->arrow_count; i++) {
        const orr_arrow *a = &k->p->arrows[i];
        if (!is_kept(k, a))
            continue;
        const uint64_t left = ticks(k, a->left - k->s->start);
        const uint64_t arrived = ticks(k, a->arrived - k->s->start);
        put(&k->columns[ARROWS], k->number[a->from]);
        put(&k->columns[ARROWS], k->number[a->to]);
        put(&k->columns[ARROWS], left);
        put(&k->columns[ARROWS], arrived > left ? arrived - left : 0);
    }
}

static void put_samples(packer *k)
{
    uint64_t before = 0;
    for (size_t i = 0; i < k->sample_count; i++) {
        const orr_sample *s = &k->samples[i];
        const uint64_t at = ticks(k, s->at - k->s->start);
        if (i == 0 || k->samples[i - 1].counter != s->counter)
            before = 0;
        put(&k->columns[SAMPLES], s->counter);
        put(&k->columns[SAMPLES], at - before);
        put(&k->columns[SAMPLES], at_most((uint64_t)s->value << 1 ^ (uint64_t)(s->value >> 63)));
        before = at;
    }
}

static void put_u32(orr_buf *b, uint32_t v)
{
    for (unsigned i = 0; i < 4; i++)
        orr_buf_byte(b, (uint8_t)(v >> 8 * i));
}

/* False: out of memory, or a column too large. */
static bool join(packer *k, orr_buf *out)
{
    put_u32(out, MAGIC);
    for (unsigned c = 0; c < COLUMNS; c++) {
        if (k->columns[c].failed || k->columns[c].len > UINT32_MAX)
            return false;
        put_u32(out, (uint32_t)k->columns[c].len);
        orr_buf_add(out, k->columns[c].ptr, k->columns[c].len);
        orr_buf_fini(&k->columns[c]);
    }
    return !out->failed;
}

static orr_code wrap(packer *k)
{
    orr_buf joined = {0}, packed = {0};
    orr_code code = join(k, &joined) ? ORR_OK : orr_no_memory(k->s->err);
    if (!code)
        code = orr_deflate((orr_span){joined.ptr, joined.len}, &packed, k->s->err);
    orr_buf *out = &k->e->packed;
    uint8_t *to = code ? NULL : orr_buf_reserve(out, orr_base64_length(packed.len));
    if (to)
        out->len += (size_t)(orr_base64_put(to, (orr_span){packed.ptr, packed.len}) - to);
    else if (!code)
        code = orr_no_memory(k->s->err);
    orr_buf_fini(&joined);
    orr_buf_fini(&packed);
    return code;
}

static bool prepare(packer *k, uint32_t text_count)
{
    k->is_shown = orr_arena_new(k->s->arena, k->s->rank_count, bool);
    k->number = orr_arena_new(k->s->arena, k->p->span_count, uint32_t);
    k->e->text_number = orr_arena_new(k->s->arena, text_count, uint32_t);
    k->e->texts = orr_arena_new(k->s->arena, text_count, uint32_t);
    k->e->text_count = 1;
    return k->is_shown && k->number && k->e->text_number && k->e->texts;
}

/* Texts of spans, of which the page uses some. */
static uint32_t count_texts(const orr_timeline_parts *p)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < p->span_count; i++) {
        most = p->spans[i].name > most ? p->spans[i].name : most;
        most = p->spans[i].group > most ? p->spans[i].group : most;
    }
    return most + 1;
}

static orr_code study_events(orr__study *s)
{
    packer k = {.s = s, .p = s->p, .e = &s->events};
    orr_code code = prepare(&k, count_texts(s->p)) ? choose_ranks(&k) : orr_no_memory(s->err);
    if (!code && (!list_tracks(&k) || !order_spans(&k) || !choose_spans(&k) || !choose_samples(&k)))
        code = orr_no_memory(s->err);
    if (!code) {
        find_tick(&k);
        put_spans(&k);
        put_arrows(&k);
        put_samples(&k);
        code = wrap(&k);
    }
    orr_free(k.samples);
    for (unsigned c = 0; c < COLUMNS; c++)
        orr_buf_fini(&k.columns[c]);
    return code;
}

/* A run in a report from the output of `orrery run --json`: headline figures and the mean split of
 * a rank's time, for comparison; without a timeline. */

/* A number in a nested object; 0: missing. */
static double number_in(orr_json_value root, const char *object, const char *key)
{
    orr_json_value v = root;
    orr_error why;
    double out = 0;
    if ((object && !orr_json_find(root, object, &v)) || !orr_json_find(v, key, &v) ||
        orr_json_get_double(v, &out, &why))
        return 0;
    return out;
}

static const char *text_in(orr_json_value root, const char *object, const char *key, orr_arena *a)
{
    orr_json_value v;
    orr_error why;
    orr_str s;
    return orr_json_find(root, object, &v) && orr_json_find(v, key, &v) &&
                   !orr_json_get_str(v, &s, &why)
               ? orr_arena_text(a, s)
               : NULL;
}

static bool is_run(orr_json_value root)
{
    orr_json_value v;
    orr_error why;
    orr_str s;
    return orr_json_find(root, "format", &v) && !orr_json_get_str(v, &s, &why) &&
           orr_str_is(s, "orrery-run");
}

/* Recognised by the first bytes, so that no large file is read in vain. */
static bool begins_as_run(orr_span bytes)
{
    static const char mark[] = "\"orrery-run\"";
    const size_t looked = bytes.len < 128 ? bytes.len : 128;
    for (size_t i = 0; i + sizeof mark - 1 <= looked; i++)
        if (memcmp(bytes.ptr + i, mark, sizeof mark - 1) == 0)
            return true;
    return false;
}

/* 0: unknown, or out of range. */
static orr_ps time_of(double ns)
{
    return ns > 0 && ns < 9e15 ? (orr_ps)(ns * 1000) : 0;
}

static uint64_t count_of(double v)
{
    return v >= 1 && v < 0x1p63 ? (uint64_t)v : 0;
}

/* The mean of one figure over ranks; 0: not split. */
static orr_ps mean_of(orr_json_value root, const char *figure)
{
    orr_json_value over;
    return time_of(orr_json_find(root, "over_ranks", &over) ? number_in(over, figure, "mean") : 0);
}

/* [low, high] of the run time; 0: unknown. */
static void take_interval(orr_json_value root, double out[2])
{
    orr_json_value list, v;
    orr_error why;
    out[0] = out[1] = 0;
    if (!orr_json_find(root, "interval_ns", &list) || orr_json_type_of(list) != ORR_JSON_ARRAY ||
        orr_json_count(list) != 2)
        return;
    unsigned i = 0;
    for (orr_json_iter it = orr_json_iterate(list); orr_json_next_value(&it, &v); i++)
        if (orr_json_get_double(v, &out[i], &why))
            out[i] = 0;
}

static orr_code add_root(
    orr_report *r, const char *name, orr_json_value root, orr_arena *a, orr_error *err)
{
    const double seconds = number_in(root, NULL, "simulated_ns") / 1e9;
    const double ranks = number_in(root, NULL, "ranks");
    const double per_device = number_in(root, "throughput", "tflops_per_device") * 1e12;
    static const char *const no_timeline[] = {
        "Read from the output of orrery run --json: its figures are here, its timeline is not."};
    orr_json_value from, options;
    orr_report_option list[3];
    size_t count = 0;
    if (orr_json_find(root, "provenance", &from) && orr_json_find(from, "options", &options))
        for (unsigned i = 0; i < 3; i++) {
            static const char *const keys[] = {"network", "machine", "compute"};
            const char *value = text_in(from, "options", keys[i], a);
            if (value)
                list[count++] = (orr_report_option){keys[i], value};
        }
    const orr_report_serving serving = {
        .requests = count_of(number_in(root, "serving", "requests")),
        .first_token_ns = number_in(root, "serving", "first_token_mean_ns"),
        .first_token_max_ns = number_in(root, "serving", "first_token_max_ns"),
        .next_token_ns = number_in(root, "serving", "next_token_mean_ns"),
        .tokens_per_s = number_in(root, "serving", "tokens_per_s")};
    const orr_ps compute = mean_of(root, "compute_ns"),
                 exposed = mean_of(root, "exposed_communication_ns");
    const orr_ps all = mean_of(root, "communication_ns");
    const orr_report_times times = {.compute = compute,
                                    .exposed = exposed,
                                    .overlapped = all > exposed ? all - exposed : 0,
                                    .memory = mean_of(root, "remote_memory_ns"),
                                    .host = mean_of(root, "host_ns"),
                                    .waiting = mean_of(root, "waiting_ns"),
                                    .bubble = mean_of(root, "bubble_ns"),
                                    .idle = mean_of(root, "idle_ns")};
    /* Not their sum, which may overflow. */
    const bool is_split = compute > 0 || exposed > 0 || times.memory > 0 || times.host > 0 ||
                          times.waiting > 0 || times.bubble > 0 || times.idle > 0;
    double interval[2];
    take_interval(root, interval);
    const orr_report_run run = {.name = name,
                                .length_ps = time_of(number_in(root, NULL, "simulated_ns")),
                                .ranks = ranks >= 1 && ranks < UINT32_MAX ? (uint32_t)ranks : 0,
                                .events = count_of(number_in(root, NULL, "events")),
                                .tokens = number_in(root, "throughput", "tokens_per_s") * seconds,
                                .flops = per_device * ranks * seconds,
                                .peak_flops = number_in(root, "throughput", "peak_tflops") * 1e12,
                                .peak_of = text_in(root, "throughput", "peak_of", a),
                                .options = list,
                                .option_count = count,
                                .notes = no_timeline,
                                .note_count = 1,
                                .low_ns = interval[0],
                                .high_ns = interval[1],
                                .times = is_split ? &times : NULL,
                                .serving = serving.requests ? &serving : NULL};
    return orr_report_add(r, &run, err);
}

orr_code orr_report_add_saved(
    orr_report *r, const char *path, const char *name, bool *is_it, orr_error *err)
{
    orr_input *in;
    orr_json *j = NULL;
    orr_json_value root;
    orr_error why;
    *is_it = false;
    orr_code code = ORR_OK;
    if (orr_input_open(path, &in, &why))
        return ORR_OK; /* the next reader reports the error */
    orr_arena *a = orr_arena_create();
    if (!a)
        code = orr_no_memory(err);
    else if (begins_as_run(orr_input_bytes(in)) &&
             !orr_json_open(orr_input_bytes(in), path, &j, &why) &&
             !orr_json_only(j, &root, &why) && is_run(root)) {
        *is_it = true;
        code = add_root(r, name, root, a, err);
    }
    orr_json_close(j);
    orr_arena_destroy(a);
    orr_input_close(in);
    return code;
}

enum { MOST_SPANS = 1000000 };

typedef struct run {
    orr_buf document; /* its object in "runs" */
    orr_buf events;   /* base64 */
    orr__sums sums;
    char *name;
} run;

struct orr_report {
    orr_arena *arena;
    const char *title, *program, *made_from;
    uint32_t most_spans;
    run *runs;
    size_t count, room;
};

static bool copy_text(orr_arena *a, const char *text, const char **out)
{
    *out = text ? orr_arena_text(a, orr_str_of(text)) : NULL;
    return !text || *out;
}

orr_code orr_report_create(const orr_report_options *opt, orr_report **out, orr_error *err)
{
    orr_report_options own;
    *out = NULL;
    const orr_code code = ORR__TAKE_OPTIONS(&own, opt, orr_report_options, err);
    if (code)
        return code;
    orr_report *r = orr_alloc(1, sizeof *r);
    if (r)
        r->arena = orr_arena_create();
    if (!r || !r->arena || !copy_text(r->arena, own.title, &r->title) ||
        !copy_text(r->arena, own.program, &r->program) ||
        !copy_text(r->arena, own.made_from, &r->made_from)) {
        orr_report_destroy(r);
        return orr_no_memory(err);
    }
    r->most_spans = own.most_spans ? own.most_spans : MOST_SPANS;
    *out = r;
    return ORR_OK;
}

void orr_report_destroy(orr_report *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->count; i++) {
        orr_buf_fini(&r->runs[i].document);
        orr_buf_fini(&r->runs[i].events);
        orr__sums_fini(&r->runs[i].sums);
    }
    orr_free(r->runs);
    orr_arena_destroy(r->arena);
    orr_free(r);
}

/* ---- adding a run ---- */

/* The track of each step of the critical path: that of the span of the same rank and node. */
static bool find_step_tracks(orr__study *s)
{
    const orr_report_run *r = s->run;
    orr_map *span_of = orr_map_create(0);
    bool ok = span_of != NULL;
    s->step_track = orr_arena_new(s->arena, r->step_count, uint32_t);
    ok = ok && s->step_track;
    for (size_t i = 0; ok && i < r->step_count; i++)
        if (r->steps[i].has_node)
            ok = orr_map_put(span_of, r->steps[i].node << 20 ^ r->steps[i].rank, ORR__NO_PLACE,
                             NULL);
    for (uint32_t i = 0; ok && i < s->p->span_count; i++) {
        const orr_timespan *span = &s->p->spans[i];
        const uint64_t key = span->id << 20 ^ s->p->tracks[span->track].rank;
        if (span->has & ORR_SPAN_HAS_ID && span->kind != ORR_SPAN_PHASE &&
            orr_map_find(span_of, key, 0))
            ok = orr_map_put(span_of, key, i, NULL);
    }
    for (size_t i = 0; ok && i < r->step_count; i++) {
        const orr_report_step *step = &r->steps[i];
        const uint32_t k = orr_map_find(span_of, step->node << 20 ^ step->rank, ORR__NO_PLACE);
        const bool is_it = step->has_node && k != ORR__NO_PLACE &&
                           s->p->spans[k].id == step->node &&
                           s->p->tracks[s->p->spans[k].track].rank == step->rank;
        s->step_track[i] = is_it ? s->events.track_number[s->p->spans[k].track] : ORR__NO_PLACE;
    }
    orr_map_destroy(span_of);
    return ok;
}

/* For a run without a timeline, its own figures: one row for all ranks. */
static orr_code take_times(orr__study *s)
{
    const orr_report_times *t = s->run->times;
    char ranks[40];
    if (s->run->timeline || !t || !s->run->ranks)
        return ORR_OK;
    snprintf(ranks, sizeof ranks, "0%s%.0u", s->run->ranks > 1 ? "-" : "", s->run->ranks - 1);
    s->ranks = orr_arena_new(s->arena, 1, orr__rank_times);
    s->groups = orr_arena_new(s->arena, 1, orr__like_ranks);
    const char *name = orr_arena_text(s->arena, orr_str_of(ranks));
    if (!s->ranks || !s->groups || !name)
        return orr_no_memory(s->err);
    s->rank_count = s->group_count = 1;
    s->all_ranks = s->run->ranks;
    s->ranks[0] = (orr__rank_times){.alike = s->all_ranks,
                                    .stage = ORR__NO_STAGE,
                                    .compute = t->compute,
                                    .exposed = t->exposed,
                                    .overlapped = t->overlapped,
                                    .memory = t->memory,
                                    .host = t->host,
                                    .waiting = t->waiting,
                                    .bubble = t->bubble,
                                    .idle = t->idle};
    const orr__ps_sum n = s->all_ranks;
    s->groups[0] = (orr__like_ranks){.count = s->all_ranks,
                                     .stage = ORR__NO_STAGE,
                                     .ranks = name,
                                     .sum = {.compute = t->compute * n,
                                             .exposed = t->exposed * n,
                                             .overlapped = t->overlapped * n,
                                             .memory = t->memory * n,
                                             .host = t->host * n,
                                             .waiting = t->waiting * n,
                                             .bubble = t->bubble * n,
                                             .idle = t->idle * n}};
    return ORR_OK;
}

static orr_code study(orr__study *s, orr__sums *sums)
{
    orr_code code;
    if ((code = orr__study_times(s)) || (code = orr__study_pipeline(s)) ||
        (code = orr__study_groups(s)) || (code = orr__study_memory(s)) ||
        (code = study_events(s)) || (code = orr__study_sums(s, sums)) || (code = take_times(s)))
        return code;
    return find_step_tracks(s) ? ORR_OK : orr_no_memory(s->err);
}

/* A simulation starts at 0; a measured run at its first event. */
orr_code orr__study_bounds(orr__study *s)
{
    orr_ps length;
    s->start = s->run->is_measured || s->p->start < 0 ? s->p->start : 0;
    s->end = s->p->end > s->start ? s->p->end : s->start;
    if (!s->run->timeline && s->run->length_ps > s->end)
        s->end = s->run->length_ps;
    if (__builtin_sub_overflow(s->end, s->start, &length))
        return orr_fail(s->err, ORR_EUSAGE, NULL, "the timeline is longer than 106 days");
    return ORR_OK;
}

static orr_code study_run(orr_report *r, orr__study *s, run *out)
{
    orr_timeline *empty = NULL;
    orr_code code = ORR_OK;
    if (!s->run->timeline && !(code = orr_timeline_create(&empty, s->err)))
        code = orr_timeline_seal(empty, s->err);
    if (code) {
        orr_timeline_destroy(empty);
        return code;
    }
    s->t = empty ? empty : s->run->timeline;
    s->p = orr_timeline_view(s->t);
    code = s->p->first ? orr__study_bounds(s)
                       : orr_fail(s->err, ORR_EUSAGE, NULL, "the timeline is not sealed");
    if (!code && !(code = study(s, &out->sums))) {
        orr_json_writer w;
        orr_json_writer_init(&w, &out->document, NULL);
        orr__put_run(s, (uint32_t)r->count, &w);
        out->events = s->events.packed;
        s->events.packed = (orr_buf){0};
        code = out->document.failed ? orr_no_memory(s->err) : ORR_OK;
    }
    orr_timeline_destroy(empty);
    return code;
}

orr_code orr_report_add(orr_report *r, const orr_report_run *added, orr_error *err)
{
    run new = {0};
    orr__study s = {
        .run = added, .arena = orr_arena_create(), .err = err, .most_spans = r->most_spans};
    new.name = orr_arena_text(r->arena, orr_str_of(added->name ? added->name : "run"));
    orr_code code = s.arena && new.name &&orr_grow(&r->runs, &r->room, r->count + 1)
                        ? study_run(r, &s, &new)
                        : orr_no_memory(err);
    orr_free(s.rows);
    orr_buf_fini(&s.events.packed);
    orr_arena_destroy(s.arena);
    if (code) {
        orr_buf_fini(&new.document);
        orr_buf_fini(&new.events);
        orr__sums_fini(&new.sums);
        return code;
    }
    r->runs[r->count++] = new;
    return ORR_OK;
}

/* ---- the document ---- */

static void put_title(const orr_report *r, orr_buf *b)
{
    if (r->title)
        orr_buf_text(b, r->title);
    for (size_t i = 0; !r->title && i < r->count; i++) {
        orr_buf_text(b, i ? ", " : "");
        orr_buf_text(b, r->runs[i].name);
    }
}

static bool put_comparison(const orr_report *r, orr_json_writer *w)
{
    orr__sums *sums = orr_alloc(r->count, sizeof *sums);
    if (!sums)
        return false;
    for (size_t i = 0; i < r->count; i++)
        sums[i] = r->runs[i].sums;
    orr__put_comparison(sums, (uint32_t)r->count, w);
    orr_free(sums);
    return true;
}

static bool put_document(const orr_report *r, orr_buf *b)
{
    orr_json_writer w;
    orr_buf title = {0};
    orr_json_writer_init(&w, b, NULL);
    put_title(r, &title);
    orr_json_begin_object(&w);
    orr_json_put_fields(&w, ORR_U("format", 1), ORR_T("program", r->program));
    orr_json_key(&w, "title");
    orr_json_str(&w, (orr_str){(const char *)title.ptr, title.len});
    orr_json_put_text(&w, "made_from", r->made_from);
    orr_json_put_array(&w, "runs");
    for (size_t i = 0; i < r->count; i++)
        orr_json_raw_text(
            &w, (orr_str){(const char *)r->runs[i].document.ptr, r->runs[i].document.len});
    orr_json_end_array(&w);
    if (r->count > 1 && !put_comparison(r, &w))
        b->failed = true;
    orr_json_end_object(&w);
    b->failed |= title.failed;
    orr_buf_fini(&title);
    return !b->failed;
}

/* ---- the page ---- */

/* "<" could start a tag in HTML; in JSON it occurs in strings only, where it can be escaped. */
static void add_escaped(orr_output *o, const orr_buf *json)
{
    const char *p = (const char *)json->ptr, *const end = p + json->len;
    while (p < end) {
        const char *found = memchr(p, '<', (size_t)(end - p));
        orr_output_add(o, p, (size_t)((found ? found : end) - p));
        if (found)
            orr_output_add(o, "\\u003c", 6);
        p = found ? found + 1 : end;
    }
}

static void add_text(orr_output *o, const char *text)
{
    orr_output_add(o, text, strlen(text));
}

static void add_data(const orr_report *r, orr_output *o, const orr_buf *document)
{
    add_text(o, "<script type=\"application/json\" id=\"orrery-data\">");
    add_escaped(o, document);
    add_text(o, "</script>\n");
    for (size_t i = 0; i < r->count; i++) {
        orr_buf tag = {0};
        if (r->runs[i].events.len == 0)
            continue;
        orr_buf_print(&tag, "<script type=\"text/plain\" id=\"events-%zu\">", i);
        orr_output_drain(o, &tag);
        orr_output_add(o, r->runs[i].events.ptr, r->runs[i].events.len);
        add_text(o, "</script>\n");
        orr_buf_fini(&tag);
    }
}

orr_code orr_report_write(const orr_report *r, const char *path, orr_error *err)
{
    orr_buf document = {0}, title = {0}, html = {0};
    orr_output *o = NULL;
    put_title(r, &title);
    orr_code code = put_document(r, &document) && !title.failed ? orr_output_open(path, &o, err)
                                                                : orr_no_memory(err);
    if (!code) {
        add_text(o, orr__page_before_title);
        orr__put_html(&html, (orr_str){(const char *)title.ptr, title.len});
        orr_output_drain(o, &html);
        add_text(o, orr__page_before_data);
        add_data(r, o, &document);
        add_text(o, orr__page_after_data);
        code = orr_output_commit(&o, err);
    }
    orr_buf_fini(&document);
    orr_buf_fini(&title);
    orr_buf_fini(&html);
    return code;
}

orr_code orr_report_write_json(const orr_report *r, const char *path, orr_error *err)
{
    orr_buf document = {0};
    orr_output *o = NULL;
    const bool ok = put_document(r, &document);
    orr_buf_byte(&document, '\n');
    orr_code code = ok && !document.failed ? orr_output_open(path, &o, err) : orr_no_memory(err);
    if (!code) {
        orr_output_drain(o, &document);
        code = orr_output_commit(&o, err);
    }
    orr_buf_fini(&document);
    return code;
}
