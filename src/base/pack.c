/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c - zstd for single blocks. */
#include "pack.h"

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

/* One step; false when it got nowhere or the block is damaged. */
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
