/* SPDX-License-Identifier: Apache-2.0 */
/* bench_base.c - basic data structures: hashes, maps, queues. */
#include "bench.h"

#include "base/memory/bitset_queue.h"
#include "base/memory/hash.h"
#include "base/memory/heap.h"
#include "base/memory/map.h"
#include "base/rng.h"

#include <string.h>

enum { BYTES = 64 * 1000 * 1000, ITEMS = 1000 * 1000, LOOKUPS = 10 * ITEMS, NAMES = 5000 };

typedef struct job {
    uint8_t *bytes;
    uint64_t *keys;
    orr_map *map;
    orr_intern *intern;
    orr_str names[NAMES];
    char name_text[NAMES][24];
    volatile uint64_t result; /* so that nothing is optimised away */
} job;

static void run_hash(void *context)
{
    job *j = context;
    j->result = orr_hash_bytes(j->bytes, BYTES, 0);
}

static void run_content_hash(void *context)
{
    job *j = context;
    j->result = orr_content_hash_of((orr_span){.ptr = j->bytes, .len = BYTES}).low;
}

static void run_map_put(void *context)
{
    job *j = context;
    orr_map_destroy(j->map);
    j->map = orr_map_create(0);
    bench_require(j->map != NULL, "out of memory");
    for (uint32_t i = 0; i < ITEMS; i++)
        bench_require(orr_map_put(j->map, j->keys[i], i, NULL), "out of memory");
    bench_require(orr_map_count(j->map) == ITEMS, "keys are missing");
}

static void run_map_find(void *context)
{
    job *j = context;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < LOOKUPS; i++)
        sum += orr_map_find(j->map, j->keys[i % ITEMS], 0);
    bench_require(sum == (uint64_t)ITEMS * (ITEMS - 1) / 2 * (LOOKUPS / ITEMS), "wrong values");
}

static void run_intern(void *context)
{
    job *j = context;
    uint32_t number = 0;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < LOOKUPS; i++) {
        bench_require(orr_intern_add(j->intern, j->names[i * 7919u % NAMES], &number),
                      "out of memory");
        sum += number;
    }
    j->result = sum;
    bench_require(orr_intern_count(j->intern) == NAMES, "wrong count");
}

static void run_heap(void *context)
{
    job *j = context;
    orr_heap h = {0};
    orr_heap_entry e = {0};
    uint64_t last = 0;
    for (uint32_t i = 0; i < ITEMS; i++)
        bench_require(orr_heap_push(&h, j->keys[i], i), "out of memory");
    while (orr_heap_pop(&h, &e)) {
        bench_require(e.key >= last, "out of order");
        last = e.key;
    }
    orr_heap_fini(&h);
}

static void run_bitset(void *context)
{
    job *j = context;
    orr_bitset_queue q;
    uint64_t taken = 0;
    bench_require(orr_bitset_init(&q, ITEMS), "out of memory");
    for (uint32_t i = 0; i < ITEMS; i++)
        orr_bitset_insert(&q, (uint32_t)(j->keys[i] % ITEMS));
    while (!orr_bitset_is_empty(&q)) {
        j->result = orr_bitset_pop(&q);
        taken++;
    }
    bench_require(taken > ITEMS / 2, "members are missing"); /* 63 % are distinct */
    orr_bitset_fini(&q);
}

static void prepare(job *j)
{
    orr_rng r;
    orr_rng_init(&r, 1, 0);
    j->bytes = orr_alloc(BYTES, 1);
    j->keys = orr_alloc(ITEMS, sizeof *j->keys);
    j->intern = orr_intern_create();
    bench_require(j->bytes && j->keys && j->intern, "out of memory");
    for (size_t i = 0; i < BYTES; i++)
        j->bytes[i] = (uint8_t)orr_rng_next(&r);
    for (size_t i = 0; i < ITEMS; i++)
        j->keys[i] = orr_rng_next(&r);
    for (size_t i = 0; i < NAMES; i++) {
        const int n = snprintf(j->name_text[i], sizeof j->name_text[i], "aten::operator_%zu", i);
        j->names[i] = (orr_str){.ptr = j->name_text[i], .len = (size_t)n};
    }
}

int main(void)
{
    static job j;
    prepare(&j);
    bench_measure("base__hash_64mb", "GB", BYTES / 1e9, run_hash, &j);
    bench_measure("base__content_hash_64mb", "GB", BYTES / 1e9, run_content_hash, &j);
    bench_measure("base__map_put_1m", "M", ITEMS / 1e6, run_map_put, &j);
    bench_measure("base__map_find_10m", "M", LOOKUPS / 1e6, run_map_find, &j);
    bench_measure("base__intern_add_10m", "M", LOOKUPS / 1e6, run_intern, &j);
    bench_measure("base__heap_push_pop_1m", "M", ITEMS / 1e6, run_heap, &j);
    bench_measure("base__bitset_insert_pop_1m", "M", ITEMS / 1e6, run_bitset, &j);
    orr_map_destroy(j.map);
    orr_intern_destroy(j.intern);
    orr_free(j.keys);
    orr_free(j.bytes);
    return 0;
}
