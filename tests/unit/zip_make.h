/* SPDX-License-Identifier: Apache-2.0 */
/* zip_make.h - zip archives for tests, byte by byte, so that each byte can also be a lie. */
#ifndef ORR_TESTS_ZIP_MAKE_H
#define ORR_TESTS_ZIP_MAKE_H

#include "check.h"

#include "base/memory/buffer.h"

#include <zlib.h>

enum { ZIP_ITEMS = 8 };

typedef struct zip_item {
    const char *name;
    const void *bytes;
    size_t len;
    bool is_deflated;
    bool has_descriptor; /* sizes behind the data */
    bool is_zip64;       /* sizes in an extra field */
    /* filled in: */
    size_t local, data, record, packed;
} zip_item;

__attribute__((unused)) static void zip_put(orr_buf *b, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        orr_buf_byte(b, (uint8_t)(i < 8 ? v >> 8 * i : 0));
}

__attribute__((unused)) static void zip_patch(orr_buf *b, size_t at, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        b->ptr[at + i] = (uint8_t)(v >> 8 * i);
}

__attribute__((unused)) static uint32_t zip_crc(const zip_item *it)
{
    return (uint32_t)crc32(crc32(0, NULL, 0), it->bytes, (uInt)it->len);
}

__attribute__((unused)) static void zip_data(orr_buf *b, zip_item *it)
{
    it->data = b->len;
    if (!it->is_deflated) {
        orr_buf_add(b, it->bytes, it->len);
        it->packed = it->len;
        return;
    }
    z_stream z = {0};
    CHECK_EQ(deflateInit2(&z, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    const size_t room = deflateBound(&z, it->len) + 64;
    z.next_in = (Bytef *)(uintptr_t)it->bytes;
    z.avail_in = (uInt)it->len;
    z.next_out = orr_buf_reserve(b, room);
    z.avail_out = (uInt)room;
    CHECK_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
    it->packed = room - z.avail_out;
    b->len += it->packed;
    deflateEnd(&z);
}

__attribute__((unused)) static void zip_local(orr_buf *b, zip_item *it)
{
    it->local = b->len;
    zip_put(b, 0x04034b50, 4);
    zip_put(b, 20, 2);
    zip_put(b, (it->has_descriptor ? 8 : 0) | 0x800, 2);
    zip_put(b, it->is_deflated ? 8 : 0, 2);
    zip_put(b, 0, 4); /* time, date */
    const size_t sizes = b->len;
    zip_put(b, 0, 12);
    zip_put(b, strlen(it->name), 2);
    zip_put(b, it->is_zip64 ? 20 : 0, 2);
    orr_buf_text(b, it->name);
    const size_t extra = b->len;
    if (it->is_zip64)
        zip_put(b, 1 | 16 << 16, 20);
    zip_data(b, it);
    if (it->has_descriptor) {
        const size_t wide = it->is_zip64 ? 8 : 4;
        zip_put(b, 0x08074b50, 4);
        zip_put(b, zip_crc(it), 4);
        zip_put(b, it->packed, wide);
        zip_put(b, it->len, wide);
        return;
    }
    zip_patch(b, sizes, zip_crc(it), 4);
    zip_patch(b, sizes + 4, it->is_zip64 ? UINT32_MAX : it->packed, 4);
    zip_patch(b, sizes + 8, it->is_zip64 ? UINT32_MAX : it->len, 4);
    if (it->is_zip64) {
        zip_patch(b, extra + 4, it->len, 8);
        zip_patch(b, extra + 12, it->packed, 8);
    }
}

/* A record: mark 0, made by 4, needs 6, flags 8, method 10, time 12, crc 16, packed 20, size 24,
 * name 28, extra 30, comment 32, disk 34, attributes 36, local header 42, then the name. */
__attribute__((unused)) static void zip_record(orr_buf *b, zip_item *it)
{
    it->record = b->len;
    zip_put(b, 0x02014b50, 4);
    zip_put(b, 20 | 20 << 16, 4);
    zip_put(b, (it->has_descriptor ? 8 : 0) | 0x800, 2);
    zip_put(b, it->is_deflated ? 8 : 0, 2);
    zip_put(b, 0, 4);
    zip_put(b, zip_crc(it), 4);
    zip_put(b, it->is_zip64 ? UINT32_MAX : it->packed, 4);
    zip_put(b, it->is_zip64 ? UINT32_MAX : it->len, 4);
    zip_put(b, strlen(it->name), 2);
    zip_put(b, it->is_zip64 ? 28 : 0, 2);
    zip_put(b, 0, 10); /* comment, disk, attributes */
    zip_put(b, it->is_zip64 ? UINT32_MAX : it->local, 4);
    orr_buf_text(b, it->name);
    if (it->is_zip64) {
        zip_put(b, 1 | 24 << 16, 4);
        zip_put(b, it->len, 8);
        zip_put(b, it->packed, 8);
        zip_put(b, it->local, 8);
    }
}

/* An end record: mark 0, disks 4 and 6, entries 8 and 10, size 12, start 16, comment 20. */
__attribute__((unused)) static void zip_end(
    orr_buf *b, size_t start, size_t count, bool is_zip64, const char *comment)
{
    const size_t size = b->len - start, end64 = b->len;
    if (is_zip64) {
        zip_put(b, 0x06064b50, 4);
        zip_put(b, 44, 8);
        zip_put(b, 45 | 45 << 16, 4);
        zip_put(b, 0, 8); /* disks */
        zip_put(b, count, 8);
        zip_put(b, count, 8);
        zip_put(b, size, 8);
        zip_put(b, start, 8);
        zip_put(b, 0x07064b50, 4);
        zip_put(b, 0, 4);
        zip_put(b, end64, 8);
        zip_put(b, 1, 4);
    }
    zip_put(b, 0x06054b50, 4);
    zip_put(b, 0, 4);
    zip_put(b, is_zip64 ? 0xFFFF : count, 2);
    zip_put(b, is_zip64 ? 0xFFFF : count, 2);
    zip_put(b, is_zip64 ? UINT32_MAX : size, 4);
    zip_put(b, is_zip64 ? UINT32_MAX : start, 4);
    zip_put(b, strlen(comment), 2);
    orr_buf_text(b, comment);
}

/* The caller frees it with orr_buf_fini. */
__attribute__((unused)) static orr_buf zip_make(zip_item *items, size_t count, bool is_zip64)
{
    orr_buf b = {0};
    for (size_t i = 0; i < count; i++)
        zip_local(&b, &items[i]);
    const size_t start = b.len;
    for (size_t i = 0; i < count; i++)
        zip_record(&b, &items[i]);
    zip_end(&b, start, count, is_zip64, "");
    return b;
}

#endif
