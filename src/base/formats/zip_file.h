/* SPDX-License-Identifier: Apache-2.0 */
/* zip_file.h - the files in a zip archive, read as untrusted data.
 *
 *     orr_zip *z;
 *     if (orr_zip_open(bytes, "model.pt2", &z, &err)) ...
 *     for (size_t i = 0; i < orr_zip_count(z); i++)
 *         if (is_wanted(orr_zip_entry_at(z, i)->name)) ...
 *     orr_buf room = {0};
 *     orr_span all;
 *     if (orr_zip_read(z, entry, 1 << 30, &room, &all, &err)) ...
 *     orr_buf_fini(&room);
 *     orr_zip_close(z);
 *
 * Stored and deflated files, zip64, sizes behind the data (data descriptors).  The directory at the
 * archive's end says what is there; everything else that the archive says about a file must agree
 * with it.  Nothing is ever written to disk, yet names that could lead out of a folder are refused,
 * as they have no other use.  The bytes are the caller's and must stay valid until close. */
#ifndef ORR_BASE_ZIP_FILE_H
#define ORR_BASE_ZIP_FILE_H

#include "base/memory/buffer.h"

typedef struct orr_zip orr_zip;

typedef struct orr_zip_entry {
    orr_str name;          /* UTF-8, parts joined by '/'; a folder's ends in one */
    uint64_t size, packed; /* bytes of the file, and in the archive */
    uint64_t at;           /* where its directory record is, for messages */
    uint64_t start;        /* its local header */
    uint64_t data, end;    /* its first byte; past all of it */
    uint32_t crc;
    uint16_t flags, method;
} orr_zip_entry;

bool orr_zip_is(orr_span bytes);      /* by the first bytes */
uint32_t orr_zip_crc(orr_span bytes); /* the checksum that archives have of a file */

/* path is for messages.  On failure *out is NULL. */
orr_code orr_zip_open(orr_span bytes, const char *path, orr_zip **out, orr_error *err)
    ORR_MUST_CHECK;
void orr_zip_close(orr_zip *z); /* NULL is fine */

size_t orr_zip_count(const orr_zip *z);
const orr_zip_entry *orr_zip_entry_at(const orr_zip *z, size_t i); /* in the directory's order */

/* The whole file, `most` bytes at most.  It is in the archive itself or in *room, which the caller
 * has emptied. */
orr_code orr_zip_read(const orr_zip *z,
                      const orr_zip_entry *e,
                      uint64_t most,
                      orr_buf *room,
                      orr_span *out,
                      orr_error *err) ORR_MUST_CHECK;

#endif
