/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_orr.c - any bytes into the reader of .orr files.
 *
 * Hashes would stop nearly every changed input at the door.  So each is tried as it is, and once
 * more with size and hashes put right wherever the tables can be found (docs/format/orr.md has the
 * layout). */
#include "fuzz_trace.h"

#include "base/memory/hash.h"

static const orr_set_options one_thread = {.size = sizeof one_thread, .threads = 1};

enum { HEADER = 16, TRAILER = 56, CLASS_ENTRY = 56, PEEK_RANKS = 4 };

static const uint8_t head[] = {0x89, 'O', 'R', 'R', '\r', '\n', 0x1a, '\n', 1, 0, 0, 0, 0, 0, 0, 0};

static uint64_t get(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    memcpy(&v, p, n);
    return v;
}

static void put(uint8_t *p, uint64_t v)
{
    memcpy(p, &v, 8);
}

/* All eight bytes: a trace may well begin with the first of them. */
static bool has_magic(const uint8_t *data, size_t size)
{
    return size >= 8 && memcmp(data, head, 8) == 0;
}

static void mend_class(uint8_t *data, uint64_t class_table, uint8_t *entry)
{
    const uint64_t at = get(entry, 8), stored = get(entry + 8, 8);
    if (at <= class_table && stored <= class_table - at && get(entry + 44, 4) == 0)
        put(entry + 24, orr_hash_bytes(data + at, (size_t)stored, 0));
}

static void mend(uint8_t *data, size_t size)
{
    if (size < HEADER + TRAILER)
        return;
    uint8_t *trailer = data + size - TRAILER;
    const uint8_t features = data[12] & 3; /* holes, groups */
    memcpy(data, head, sizeof head);
    data[12] = features;
    memcpy(trailer + 48, "ORR end\n", 8);
    put(trailer + 32, size);
    put(trailer + 40, features);
    const uint64_t class_table = get(trailer, 8), classes = get(trailer + 16, 4),
                   end = size - TRAILER;
    if (class_table < HEADER || class_table > end)
        return;
    for (uint64_t i = 0; i < classes && (i + 1) * CLASS_ENTRY <= end - class_table; i++)
        mend_class(data, class_table, data + class_table + i * CLASS_ENTRY);
    put(trailer + 24, orr_hash_bytes(data + class_table, (size_t)(end - class_table), 0));
}

static void save_again(const orr_set *s, bool compress)
{
    fuzz_sink *sink = fuzz_writable();
    const orr_set_save_options opt = {.size = sizeof opt, .compress = compress};
    orr_set *again;
    orr_error err;
    REQUIRE(orr_set_save(s, sink->path, &opt, &err) == ORR_OK);
    const orr_span bytes = fuzz_take(sink);
    REQUIRE(orr_set_open(fuzz_file(1, bytes.ptr, bytes.len), &one_thread, &again, &err) == ORR_OK);
    REQUIRE(orr_set_rank_count(again) == orr_set_rank_count(s));
    REQUIRE(orr_set_class_count(again) == orr_set_class_count(s));
    for (uint32_t r = 0; r < orr_set_rank_count(s); r++) {
        REQUIRE(orr_set_class_of(again, r) == orr_set_class_of(s, r));
        REQUIRE(orr_set_id_shift(again, r) == orr_set_id_shift(s, r));
    }
    orr_set_close(again);
}

static void look_at_set(const orr_set *s)
{
    orr_info *info;
    orr_check_report *r;
    orr_error err;
    orr_str text;
    for (uint32_t k = 0; k < orr_set_class_count(s); k++)
        fuzz_look_at(orr_set_trace(s, k), SIZE_MAX);
    for (uint32_t i = 0; i < orr_set_rank_count(s); i++)
        REQUIRE(orr_set_class_of(s, i) < orr_set_class_count(s) && orr_set_rank_path(s, i));
    for (uint32_t i = 0; i < orr_set_group_count(s); i++)
        REQUIRE(orr_set_group(s, i).count && orr_set_group(s, i).id);
    REQUIRE(orr_info_create(s, NULL, &info, &err) == ORR_OK &&
            orr_info_json(info, &text, &err) == ORR_OK);
    orr_info_destroy(info);
    REQUIRE(orr_check_set(s, NULL, &r, &err) == ORR_OK);
    orr_check_report_destroy(r);
}

static void try_bytes(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(0, data, size);
    orr_set *s;
    orr_trace *t;
    orr_error err;
    uint64_t shift;
    uint32_t ranks = 0;
    const bool is_orr = has_magic(data, size); /* else it was read as a trace */
    if (orr_set_open(path, &one_thread, &s, &err) == ORR_OK) {
        ranks = orr_set_rank_count(s);
        look_at_set(s);
    } else {
        REQUIRE(!s && err.message[0]);
    }
    FUZZ_WAYS(r, PEEK_RANKS, data, size)
    {
        const orr_code code = orr_set_read_rank(path, r, NULL, &t, &shift, &err);
        if (code == ORR_OK)
            orr_trace_destroy(t);
        REQUIRE(r >= ranks || code == ORR_OK || !is_orr);
    }
    if (!s)
        return;
    if (size <= FUZZ_WRITE_MAX)
        FUZZ_WAYS(way, 2, data, size)
    save_again(s, way == 1);
    orr_set_close(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    REQUIRE(copy != NULL);
    if (has_magic(data, size) || size % 8 == 0)
        try_bytes(data, size);
    if (size)
        memcpy(copy, data, size);
    mend(copy, size);
    try_bytes(copy, size);
    free(copy);
    return 0;
}
