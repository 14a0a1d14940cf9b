/* SPDX-License-Identifier: Apache-2.0 */
/* files.h - small files for unit tests: written, read back, packed, counted.  Every test runs in a
 * folder of its own, so plain names will do. */
#ifndef ORR_TESTS_FILES_H
#define ORR_TESTS_FILES_H

#include "check.h"

#include "base/memory/buffer.h"

#include <dirent.h>
#include <zlib.h>
#include <zstd.h>

__attribute__((unused)) static void write_file(const char *path, const void *bytes, size_t len)
{
    FILE *f = fopen(path, "wb");
    CHECK(f != NULL);
    CHECK_EQ_U(fwrite(bytes, 1, len, f), len);
    CHECK_EQ(fclose(f), 0);
}

/* The caller frees it with orr_buf_fini. */
__attribute__((unused)) static orr_buf read_file(const char *path)
{
    orr_buf b = {0};
    size_t got;
    FILE *f = fopen(path, "rb");
    CHECK(f != NULL);
    do {
        uint8_t *to = orr_buf_reserve(&b, 1 << 16);
        CHECK(to != NULL);
        got = fread(to, 1, 1 << 16, f);
        b.len += got;
    } while (got);
    fclose(f);
    return b;
}

__attribute__((unused)) static void check_file(const char *path, const void *bytes, size_t len)
{
    orr_buf b = read_file(path);
    CHECK_EQ_U(b.len, len);
    CHECK_BYTES(b.ptr, bytes, len);
    orr_buf_fini(&b);
}

/* One gzip member or zstd frame, added to b. */
__attribute__((unused)) static void add_gzip(orr_buf *b, const void *bytes, size_t len)
{
    z_stream z = {0};
    CHECK_EQ(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    const size_t room = deflateBound(&z, len) + 64;
    z.next_in = (Bytef *)(uintptr_t)bytes;
    z.avail_in = (uInt)len;
    z.next_out = orr_buf_reserve(b, room);
    z.avail_out = (uInt)room;
    CHECK_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
    b->len += room - z.avail_out;
    deflateEnd(&z);
}

__attribute__((unused)) static void add_zstd(orr_buf *b, const void *bytes, size_t len)
{
    const size_t room = ZSTD_compressBound(len);
    uint8_t *to = orr_buf_reserve(b, room);
    const size_t n = ZSTD_compress(to, room, bytes, len, 1);
    CHECK(!ZSTD_isError(n));
    b->len += n;
}

/* How many names a folder holds, hidden ones too. */
__attribute__((unused)) static unsigned count_names(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *e;
    unsigned n = 0;
    CHECK(d != NULL);
    while ((e = readdir(d)))
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

/* Numbers that look random and are the same in every run. */
__attribute__((unused)) static uint64_t next_random(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    uint64_t x = *state;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Bytes that a packer can shrink a little. */
__attribute__((unused)) static uint8_t *some_bytes(size_t len)
{
    uint8_t *p = malloc(len + 1);
    uint64_t state = len;
    CHECK(p != NULL);
    for (size_t i = 0; i < len; i++)
        p[i] = (uint8_t)(next_random(&state) % 23);
    return p;
}

#endif
