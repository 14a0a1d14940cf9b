/* SPDX-License-Identifier: Apache-2.0 */
/* lgs_noise.c - interruptions by the operating system, replayed from a file (goal.md 3.6).
 *
 *     # start   duration, both in nanoseconds
 *     0         100
 *     10037     161
 *
 * Each rank starts at a random position in the file; the file repeats.  An operation is lengthened
 * by the rest of the interruption it starts in, and by each that starts while it runs.  Why a
 * Mersenne Twister: its first draws are the positions of the ranks, and golden runs have those of
 * seed 12345. */
#include "lgs_impl.h"

#include "base/io/input.h"
#include "base/rng.h"
#include "base/text/number.h"

#include <math.h>

typedef struct lgs_sample { /* ns */
    uint64_t start, duration;
    uint32_t line; /* of the file */
} lgs_sample;

struct lgs_noise {
    lgs_sample *samples;
    size_t count, room;
    uint64_t length, sum;     /* the last start; all durations but the last */
    uint64_t *offset, *total; /* by rank */
    const lgs_rules *rules;
    bool is_old; /* they are those of another program */
};

/* ---- the file */

static orr_str take_field(orr_str *line)
{
    while (line->len && (*line->ptr == ' ' || *line->ptr == '\t' || *line->ptr == '\r')) {
        line->ptr++;
        line->len--;
    }
    orr_str field = {line->ptr, 0};
    while (field.len < line->len && !strchr(" \t\r", field.ptr[field.len]))
        field.len++;
    line->ptr += field.len;
    line->len -= field.len;
    return field;
}

static orr_code read_time(
    orr_str field, const char *what, const orr_where *at, uint64_t *out, orr_error *err)
{
    double v;
    if (!orr_text_double(field, &v) || !(v >= 0) || v >= 9e18)
        return orr_fail(err, ORR_EINPUT, at,
                        "expected the %s of an interruption in nanoseconds, found \"%.*s\"", what,
                        (int)(field.len > 40 ? 40 : field.len), field.ptr);
    *out = (uint64_t)round(v);
    return ORR_OK;
}

static orr_code add_line(struct lgs_noise *n, orr_str line, const orr_where *at, orr_error *err)
{
    lgs_sample s = {.line = at->line};
    const orr_str start = take_field(&line), duration = take_field(&line);
    if (start.len == 0 || start.ptr[0] == '#')
        return ORR_OK;
    orr_code code = read_time(start, "start", at, &s.start, err);
    if (code || (code = read_time(duration, "duration", at, &s.duration, err)))
        return code;
    if (n->count && s.start < n->samples[n->count - 1].start)
        return orr_fail(err, ORR_EINPUT, at,
                        "an interruption at %llu ns after one at %llu ns: they must be in order",
                        (unsigned long long)s.start,
                        (unsigned long long)n->samples[n->count - 1].start);
    /* Room for one more: the last may be repeated (read_lines). */
    if (!orr_grow(&n->samples, &n->room, n->count + 2))
        return orr_no_memory(err);
    n->samples[n->count++] = s;
    return ORR_OK;
}

/* The line from which on no time is left. */
static orr_code fail_sum(const struct lgs_noise *n, const char *path, uint32_t line, orr_error *err)
{
    const orr_where at = orr_where_line(path, line, 1);
    return orr_fail(err, ORR_EINPUT, &at,
                    "interruptions of more than %llu ns in %llu ns: more than there are",
                    (unsigned long long)n->length, (unsigned long long)n->length);
}

static orr_code read_lines(struct lgs_noise *n, orr_span bytes, const char *path, orr_error *err)
{
    const char *p = (const char *)bytes.ptr, *const end = p + bytes.len;
    for (uint32_t line = 1; p < end; line++) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        const orr_str text = {p, (size_t)((nl ? nl : end) - p)};
        const orr_where at = orr_where_line(path, line, 1);
        const orr_code code = add_line(n, text, &at, err);
        if (code)
            return code;
        p = nl ? nl + 1 : end;
    }
    const orr_where whole = orr_where_line(path, 0, 0);
    if (n->count < 2 || n->samples[n->count - 1].start == 0)
        return orr_fail(err, ORR_EINPUT, &whole, "fewer than two interruptions at different times");
    if (n->rules->repeats_last_noise && bytes.ptr[bytes.len - 1] == '\n') {
        n->samples[n->count] = n->samples[n->count - 1];
        n->count++;
    }
    n->length = n->samples[n->count - 1].start;
    for (size_t i = 0; n->samples[i].start < n->length; i++) {
        n->sum += n->samples[i].duration;
        /* This also keeps times within 64 bits; the replaced programs do not check. */
        if (!n->is_old && n->sum > n->length)
            return fail_sum(n, path, n->samples[i].line, err);
    }
    return ORR_OK;
}

/* The first draw is for all ranks together, then one per rank. */
static void draw_offsets(const lgs_sim *s, struct lgs_noise *n)
{
    orr_twister t;
    orr_twister_init(&t, (uint32_t)s->opt.noise_seed);
    const double common = (double)orr_twister_next(&t) / UINT32_MAX * (double)n->length;
    for (uint32_t r = 0; r < s->hosts; r++) {
        n->offset[r] =
            s->opt.has_common_noise
                ? (uint64_t)common
                : (uint64_t)((double)orr_twister_next(&t) / UINT32_MAX * (double)n->length);
    }
}

orr_code lgs_noise_open(const lgs_sim *s, struct lgs_noise **out, orr_error *err)
{
    orr_input *in;
    orr_code code = orr_input_open(s->opt.noise, &in, err);
    if (code)
        return code;
    struct lgs_noise *n = orr_alloc(1, sizeof *n);
    *out = n;
    if (n) {
        n->rules = s->rules;
        n->is_old = s->opt.rules != NULL;
        n->offset = orr_alloc(s->hosts, sizeof *n->offset);
        n->total = orr_alloc(s->hosts, sizeof *n->total);
    }
    if (!n || !n->offset || !n->total)
        code = orr_no_memory(err);
    else
        code = read_lines(n, orr_input_bytes(in), s->opt.noise, err);
    orr_input_close(in);
    if (!code)
        draw_offsets(s, n);
    return code;
}

void lgs_noise_close(struct lgs_noise *n)
{
    if (!n)
        return;
    orr_free(n->samples);
    orr_free(n->offset);
    orr_free(n->total);
    orr_free(n);
}

/* ---- lookup */

/* The last sample that starts at or before p. */
static size_t find_sample(const struct lgs_noise *n, uint64_t p)
{
    size_t low = 0, high = n->count; /* low starts at or before p, or is 0 */
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (n->samples[middle].start <= p)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Interruptions of [p, p + length), which ends before the file does. */
static uint64_t noise_within(const struct lgs_noise *n, uint64_t p, uint64_t length)
{
    uint64_t noise = 0;
    size_t at = find_sample(n, p);
    const lgs_sample *s = &n->samples[at];
    const bool skips_first = n->rules->skips_first_noise;
    const bool is_inside = skips_first ? p > n->samples[0].start : s->start <= p;
    if (is_inside && s->start + s->duration > p)
        noise = s->start + s->duration - p;
    if (!is_inside && !skips_first && s->start < p + length)
        noise = s->duration;
    while (at + 1 < n->count && n->samples[at + 1].start < p + length)
        noise += n->samples[++at].duration;
    return noise;
}

uint64_t lgs_noise_get(struct lgs_noise *n, uint32_t host, uint64_t start, uint64_t length)
{
    /* An operation longer than the file sees all of it repeatedly; the references loop forever. */
    uint64_t noise = length / n->length * n->sum;
    length %= n->length;
    /* The operation is placed so that it ends within the file, as in the references: one that would
     * extend beyond the end begins elsewhere. */
    noise += noise_within(n, (start + n->offset[host]) % (n->length - length), length);
    n->total[host] += noise;
    return noise;
}

uint64_t lgs_noise_total(const struct lgs_noise *n, uint32_t host)
{
    return n->total[host];
}

size_t lgs_noise_samples(const struct lgs_noise *n)
{
    return n->count;
}

uint64_t lgs_noise_span(const struct lgs_noise *n)
{
    return n->length;
}
