/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c - zstd and zlib for single blocks. */
#include "pack.h"

#include <limits.h>
#include <zlib.h>
#include <zstd.h>

orr_code orr_pack(orr_span bytes, orr_buf *out, orr_error *err)
{
    const size_t room = ZSTD_compressBound(bytes.len);
    uint8_t *to = ZSTD_isError(room) ? NULL : orr_buf_reserve(out, room);
    if (!to)
        return orr_no_memory(err);
    const size_t n = ZSTD_compress(to, room, bytes.ptr, bytes.len, 3);
    if (ZSTD_isError(n))
        return orr_no_memory(err); /* the room suffices, so nothing else can fail */
    out->len += n;
    return ORR_OK;
}

/* One step; false if there was no progress or the block is damaged. */
static bool unpack_some(ZSTD_DStream *z, ZSTD_inBuffer *in, orr_buf *out, size_t *left)
{
    const size_t room = ZSTD_DStreamOutSize(), before = in->pos;
    ZSTD_outBuffer part = {orr_buf_reserve(out, room), room, 0};
    if (!part.dst)
        return false;
    *left = ZSTD_decompressStream(z, &part, in);
    if (ZSTD_isError(*left))
        return false;
    out->len += part.pos;
    return part.pos || in->pos != before || *left == 0;
}

orr_code orr_unpack(orr_span block, uint64_t len, orr_buf *out, orr_error *err)
{
    ZSTD_DStream *z = ZSTD_createDStream();
    ZSTD_inBuffer in = {block.ptr, block.len, 0};
    const size_t begin = out->len;
    size_t left = 1;
    bool ok = z != NULL;
    while (ok && left && out->len - begin <= len)
        ok = unpack_some(z, &in, out, &left);
    ZSTD_freeDStream(z);
    if (!z || out->failed)
        return orr_no_memory(err);
    return ok && !left && out->len - begin == len ? ORR_OK : ORR_EINPUT;
}

/* zlib counts in 32 bits, so large blocks go in parts. */
static int deflate_part(z_stream *z, orr_buf *out, int flush)
{
    enum { PART = 1 << 18 };
    int status = Z_OK;
    do {
        uint8_t *to = orr_buf_reserve(out, PART);
        if (!to)
            return Z_MEM_ERROR;
        z->next_out = to;
        z->avail_out = PART;
        status = deflate(z, flush);
        out->len += PART - z->avail_out;
    } while (status == Z_OK && z->avail_out == 0);
    return status == Z_BUF_ERROR && flush == Z_NO_FLUSH ? Z_OK
                                                        : status; /* nothing was left to do */
}

orr_code orr_deflate(orr_span bytes, orr_buf *out, orr_error *err)
{
    enum { LEVEL = 4 }; /* near the size of the default, at twice its speed */
    z_stream z = {0};
    size_t at = 0;
    int status = deflateInit(&z, LEVEL);
    if (status != Z_OK)
        return orr_no_memory(err);
    do {
        const size_t left = bytes.len - at, part = left < INT_MAX ? left : INT_MAX;
        z.next_in = (Bytef *)(uintptr_t)(bytes.ptr + at);
        z.avail_in = (uInt)part;
        at += part;
        status = deflate_part(&z, out, at == bytes.len ? Z_FINISH : Z_NO_FLUSH);
    } while (status == Z_OK && at < bytes.len);
    deflateEnd(&z);
    return status == Z_STREAM_END ? ORR_OK : orr_no_memory(err);
}
