/* SPDX-License-Identifier: Apache-2.0 */
/* report_events.c - a timeline packed for the page: columns of small numbers, deflated, in base64.
 *
 * Not everything goes in.  Ranks that are like another one are left out unless asked for; above the
 * limit phases go first, then the shortest spans, of equals the later ones; counters are
 * thinned.  What was left out is counted, and the page says so.  docs/format/report.md has the form
 * byte by byte.
 *
 * Cost: linear in the spans, but for a selection by length when there are too many. */
#include "report_impl.h"

#include "base/io/pack.h"
#include "base/text/base64.h"

#include <stdlib.h>

enum { MAGIC = 0x3154524f, MOST_SAMPLES = 20000, OPEN_BIT = 0x80, COLUMNS = 11 };
#define MOST_VALUE ((UINT64_C(1) << 53) - 1) /* what a number of JavaScript can hold */

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

static orr_code refuse_ranks(const packer *k, const char *text)
{
    return orr_fail(k->s->err, ORR_EUSAGE, NULL,
                    "ranks to show: \"%s\" is not \"all\", and no list of ranks such as 0-7,12",
                    text);
}

/* Digits at *at; it moves behind them. */
static bool take_number(const char **at, uint32_t *out)
{
    uint64_t v = 0;
    const char *p = *at;
    for (; *p >= '0' && *p <= '9' && v < ORR_NO_RANK; p++)
        v = v * 10 + (uint64_t)(*p - '0');
    if (p == *at || v >= ORR_NO_RANK)
        return false;
    *at = p;
    *out = (uint32_t)v;
    return true;
}

/* One that is not in the timeline is shown as the one that stands for it. */
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
    for (;;) {
        if (!take_number(&at, &first))
            return refuse_ranks(k, text);
        last = first;
        if (*at == '-') {
            at++;
            if (!take_number(&at, &last) || last < first)
                return refuse_ranks(k, text);
        }
        show_ranks(k, first, last);
        if (*at == '\0')
            return ORR_OK;
        if (*at++ != ',')
            return refuse_ranks(k, text);
    }
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

/* The length that the last of the `most` longest spans has, and how many of exactly that length may
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
    qsort(lengths, n, sizeof *lengths, compare_lengths);
    *limit = lengths[most - 1];
    while (lengths[longer] > *limit)
        longer++;
    *equal = most - longer;
    orr_free(lengths);
    return true;
}

/* A receive is drawn from when its message left: before that nothing is under way. */
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

/* Numbers of spans in the page are given in the order of tracks and time. */
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
        qsort(k->samples, k->sample_count, sizeof *k->samples, compare_samples);
    thin(k);
    return true;
}

/* ---- the tick ---- */

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Most values are a multiple of what there is already, and then one division is enough. */
static void divide(uint64_t *tick, orr_ps time)
{
    const uint64_t v = (uint64_t)time;
    if (*tick == 0 || v % *tick)
        *tick = gcd(*tick, v);
}

static bool is_kept(const packer *k, const orr_arrow *a)
{
    return k->number[a->from] != ORR__NO_PLACE && k->number[a->to] != ORR__NO_PLACE;
}

/* The largest tick that loses nothing, unless numbers would get too large for it. */
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

/* Texts get numbers in the order in which they are first used; the empty one is 0. */
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

/* False: no memory, or a column too large. */
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

/* Texts of spans, from which those of the page are taken. */
static uint32_t count_texts(const orr_timeline_parts *p)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < p->span_count; i++) {
        most = p->spans[i].name > most ? p->spans[i].name : most;
        most = p->spans[i].group > most ? p->spans[i].group : most;
    }
    return most + 1;
}

orr_code orr__study_events(orr__study *s)
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
