/* SPDX-License-Identifier: Apache-2.0 */
/* npkit.c - how long reductions and copies take: samples by size, measured with NPKit (goal.md
 * 5.8).
 *
 *     {"NPKIT_EVENT_GPU_RECV_REDUCE_SEND": {"8192": [812, 799, ...], ...},
 *      "NPKIT_EVENT_GPU_DIRECT_RECV_COPY_SEND": {...}, ...}
 *
 * Sizes in bytes, samples in ns.  Below the smallest and above the largest size that size's samples
 * count; between two the line through their means.  A drawn time is a sample of its size, or 1 %
 * around that line; the same seed draws the same time for a size, so that all ranks agree on it.
 * Invariant: sizes ascend; each has a sample; means are finite and not negative. */
#include <orrery/lab/nccl.h>

#include "base/formats/json.h"
#include "base/io/input.h"
#include "base/memory/hash.h"
#include "base/memory/sort.h"
#include "base/rng.h"
#include "base/short_forms.h"
#include "base/text/number.h"

#include <stdlib.h>

typedef struct row {
    uint64_t bytes;
    size_t first; /* its samples, in table.samples */
    size_t count;
    double mean;
} row;

typedef struct table {
    row *rows;
    size_t count, room;
    double *samples;
    size_t sample_count, sample_room;
} table;

struct orr_npkit {
    table of[2]; /* by orr_npkit_what */
};

static const char *const keys[2] = {"NPKIT_EVENT_GPU_RECV_REDUCE_SEND",
                                    "NPKIT_EVENT_GPU_DIRECT_RECV_COPY_SEND"};

static const double most_ns = 9e15; /* 104 days: whole numbers of doubles are exact up to here */

static orr_code read_sample(orr_json_value v, double *out, orr_error *err)
{
    const orr_code code = orr_json_get_double(v, out, err);
    if (code)
        return code;
    if (!(*out >= 0 && *out <= most_ns))
        return orr_fail(err, ORR_EINPUT, ORR_AT(orr_json_where(v)),
                        "a sample is not a time from 0 to 9e15 ns");
    return ORR_OK;
}

static orr_code read_row(orr_str key, orr_json_value samples, table *t, orr_error *err)
{
    row r = {.first = t->sample_count};
    double sum = 0, sample;
    orr_json_value v;
    const orr_where at = orr_json_where(samples);
    if (!orr_text_u64(key, &r.bytes))
        return orr_fail(err, ORR_EINPUT, &at, "\"%.*s\" is not a size in bytes",
                        ORR_SHOWN(key, 40));
    if (orr_json_type_of(samples) != ORR_JSON_ARRAY || orr_json_count(samples) == 0)
        return orr_fail(err, ORR_EINPUT, &at, "expected a list of samples, and at least one");
    for (orr_json_iter it = orr_json_iterate(samples); orr_json_next_value(&it, &v); r.count++) {
        const orr_code code = read_sample(v, &sample, err);
        if (code)
            return code;
        if (!orr_push(t->samples, t->sample_count, t->sample_room, sample))
            return orr_no_memory(err);
        sum += sample;
    }
    r.mean = sum / (double)r.count;
    return orr_push(t->rows, t->count, t->room, r) ? ORR_OK : orr_no_memory(err);
}

static int by_bytes(const void *a, const void *b)
{
    const row *x = a, *y = b;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

static orr_code read_table(orr_json_value root, const char *name, table *t, orr_error *err)
{
    orr_json_value sizes, samples;
    orr_str key;
    orr_where at = orr_json_where(root);
    if (!orr_json_find(root, name, &sizes))
        return orr_fail(err, ORR_EINPUT, &at, "no \"%s\"", name);
    at = orr_json_where(sizes);
    if (orr_json_type_of(sizes) != ORR_JSON_OBJECT || orr_json_count(sizes) == 0)
        return orr_fail(err, ORR_EINPUT, &at, "%s: expected an object of sizes, and at least one",
                        name);
    for (orr_json_iter it = orr_json_iterate(sizes); orr_json_next_member(&it, &key, &samples);) {
        const orr_code code = read_row(key, samples, t, err);
        if (code)
            return code;
    }
    orr_sort(t->rows, t->count, sizeof *t->rows, by_bytes);
    for (size_t i = 1; i < t->count; i++)
        if (t->rows[i].bytes == t->rows[i - 1].bytes)
            return orr_fail(err, ORR_EINPUT, &at, "%s: duplicate size %llu", name,
                            (unsigned long long)t->rows[i].bytes);
    return ORR_OK;
}

orr_code orr_npkit_parse(orr_span bytes, const char *path, orr_npkit **out, orr_error *err)
{
    orr_json *j = NULL;
    orr_json_value root;
    *out = NULL;
    orr_npkit *t = orr_alloc(1, sizeof *t);
    if (!t)
        return orr_no_memory(err);
    orr_code code = orr_json_open(bytes, path, &j, err);
    if (!code)
        code = orr_json_only(j, &root, err);
    for (int what = 0; !code && what < 2; what++)
        code = read_table(root, keys[what], &t->of[what], err);
    orr_json_close(j);
    if (code) {
        orr_npkit_free(t);
        return code;
    }
    *out = t;
    return ORR_OK;
}

orr_code orr_npkit_read(const char *path, orr_npkit **out, orr_error *err)
{
    orr_input *in;
    *out = NULL;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    code = orr_npkit_parse(orr_input_bytes(in), path, out, err);
    orr_input_close(in);
    return code;
}

void orr_npkit_free(orr_npkit *t)
{
    if (!t)
        return;
    for (int what = 0; what < 2; what++) {
        orr_free(t->of[what].rows);
        orr_free(t->of[what].samples);
    }
    orr_free(t);
}

/* The first row of at least so many bytes; t->count: none. */
static size_t row_at(const table *t, uint64_t bytes)
{
    size_t low = 0, high = t->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (t->rows[middle].bytes < bytes)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* About normal: twelve even numbers have a sum of variance 1.  (No logarithm: libraries differ in
 * its last bit.) */
static double bell(orr_rng *r)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += orr_rng_double(r);
    return sum;
}

static double of_row(const table *t, const row *r, const orr_npkit_choice *c, orr_rng *rng)
{
    const double *samples = t->samples + r->first;
    switch (c->how) {
    case ORR_NPKIT_FIRST:
        return samples[0];
    case ORR_NPKIT_DRAWN:
        return samples[orr_rng_below(rng, r->count)];
    default:
        return r->mean + 0.5;
    }
}

uint64_t orr_npkit_time(const orr_npkit *t,
                        orr_npkit_what what,
                        const orr_npkit_choice *c,
                        uint64_t bytes)
{
    const table *of = &t->of[what == ORR_NPKIT_COPY];
    const size_t at = row_at(of, bytes);
    orr_rng rng;
    if (c->how == ORR_NPKIT_DRAWN)
        orr_rng_init(&rng, c->seed, orr_hash_mix(bytes + 1, 2 + (uint64_t)what));
    if (at == of->count || at == 0 || of->rows[at].bytes == bytes)
        return (uint64_t)of_row(of, &of->rows[at == of->count ? at - 1 : at], c, &rng);
    const row *a = &of->rows[at - 1], *b = &of->rows[at];
    const double slope = (b->mean - a->mean) / (double)(b->bytes - a->bytes);
    double time = slope * (double)(bytes - a->bytes) + a->mean;
    if (c->how == ORR_NPKIT_DRAWN)
        time += 0.01 * time * bell(&rng);
    return time > 0 ? (uint64_t)time : 0; /* cut off, as the old generator does */
}
