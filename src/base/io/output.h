/* SPDX-License-Identifier: Apache-2.0 */
/* output.h - files that appear whole or not at all.
 *
 *     orr_output *out;
 *     if (orr_output_open("set.orr", &out, &err)) ...
 *     orr_output_add(out, bytes, n);             // keeps the first failure for commit
 *     if (orr_output_commit(&out, &err)) ...      // now the file is there; *out is NULL either way
 *     orr_output_discard(out);                    // or: as if nothing had happened; NULL is fine
 *
 * "-" is standard output, which of course cannot be taken back.  A name ending in .gz or .zst is
 * compressed. */
#ifndef ORR_BASE_OUTPUT_H
#define ORR_BASE_OUTPUT_H

#include "base/memory/buffer.h"

typedef struct orr_output orr_output;

orr_code orr_output_open(const char *path, orr_output **out, orr_error *err) ORR_MUST_CHECK;
/* The same for a path from a configuration: missing folders are created. */
orr_code orr_output_open_deep(const char *path, orr_output **out, orr_error *err) ORR_MUST_CHECK;
void orr_output_add(orr_output *o, const void *p, size_t n);
void orr_output_drain(orr_output *o, orr_buf *b); /* add all of b and empty it */
bool orr_output_has_failed(const orr_output *o);  /* long writers may stop early */
/* Writes everything and frees its memory; what is left is a file without a name.  Several may wait
 * like this to be committed together. */
orr_code orr_output_settle(orr_output *o, orr_error *err) ORR_MUST_CHECK;
orr_code orr_output_commit(orr_output **o, orr_error *err) ORR_MUST_CHECK;
void orr_output_discard(orr_output *o);
/* A whole file that is in memory: opened, filled with b, committed.  A buffer that has failed is
 * ORR_ENOMEM. */
orr_code orr_output_save(orr_buf *b, const char *path, orr_error *err) ORR_MUST_CHECK;

#endif
