/* SPDX-License-Identifier: Apache-2.0 */
/* input.h - bytes from files, whatever they are wrapped in.
 *
 * input: a whole file as one span.  Plain files are mapped, not copied; gzip and zstd (known by
 * their first bytes, never by name) are unpacked into memory; "-" is standard input.
 *
 *     orr_input *in;
 *     if (orr_input_open("rank0.et", &in, &err)) ...
 *     orr_span all = orr_input_bytes(in);
 *     orr_input_close(in);
 *
 * stream: the same bytes a piece at a time, for files larger than memory. */
#ifndef ORR_BASE_INPUT_H
#define ORR_BASE_INPUT_H

#include "base/memory/memory.h"

typedef struct orr_input orr_input;

orr_code orr_input_open(const char *path, orr_input **out, orr_error *err) ORR_MUST_CHECK;
orr_span orr_input_bytes(const orr_input *in);
/* These bytes will not be read soon: their pages may be dropped (they are reloaded on access). */
void orr_input_release(const orr_input *in, size_t from, size_t to);
void orr_input_close(orr_input *in); /* NULL is fine */

typedef struct orr_stream orr_stream;

orr_code orr_stream_open(const char *path, orr_stream **out, orr_error *err) ORR_MUST_CHECK;
/* At least `need` bytes in *out, fewer only at the end of the stream; valid until the next call. */
orr_code orr_stream_peek(orr_stream *s, size_t need, orr_span *out, orr_error *err) ORR_MUST_CHECK;
void orr_stream_skip(orr_stream *s, size_t n);   /* n: at most what peek showed */
uint64_t orr_stream_offset(const orr_stream *s); /* of the next byte, in the unpacked stream */
void orr_stream_close(orr_stream *s);
/* All of a stream that was only peeked at.  Takes the stream, also on failure. */
orr_code orr_input_of_stream(orr_stream *s, orr_input **out, orr_error *err) ORR_MUST_CHECK;
/* Closes a stream that was only peeked at.  If a file cannot be read twice (standard input, a
 * pipe), the next stream of the same path opened by this thread starts with what was seen; each
 * thread keeps one such stream. */
void orr_stream_put_back(orr_stream *s);

#endif
