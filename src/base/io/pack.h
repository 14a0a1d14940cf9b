/* SPDX-License-Identifier: Apache-2.0 */
/* pack.h - one block of bytes, compressed with zstd and back, or deflated for browsers.  Files are
 * compressed by input.h and output.h; this is for parts of a file. */
#ifndef ORR_BASE_PACK_H
#define ORR_BASE_PACK_H

#include "base/memory/buffer.h"

orr_code orr_pack(orr_span bytes, orr_buf *out, orr_error *err) ORR_MUST_CHECK;
/* Appends to out, which grows with what is really unpacked.  ORR_EINPUT (without text: the caller
 * knows the place): the block is damaged, or does not unpack to exactly `len` bytes. */
orr_code orr_unpack(orr_span block, uint64_t len, orr_buf *out, orr_error *err) ORR_MUST_CHECK;
/* As a zlib stream (RFC 1950), which browsers unpack. */
orr_code orr_deflate(orr_span bytes, orr_buf *out, orr_error *err) ORR_MUST_CHECK;

#endif
