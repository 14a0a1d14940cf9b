/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_zip.c - any bytes as a zip archive, all of whose files are read.  What is refused has words
 * and a byte; what is read has the size and checksum that its directory says, and lies whole inside
 * the archive. */
#include "base/formats/zip_file.h"

#include <stdlib.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_file(const orr_zip *z, const orr_zip_entry *e, size_t size)
{
    orr_buf room = {0};
    orr_span all = {0};
    orr_error err = {0};
    require(e->name.len && e->start < e->data && e->data <= e->end && e->end <= size);
    require(!memchr(e->name.ptr, '\\', e->name.len) && e->name.ptr[0] != '/');
    if (orr_zip_read(z, e, 1 << 24, &room, &all, &err))
        require(err.message[0] && err.where.path[0] && err.where.byte <= size);
    else
        require(all.len == e->size && crc32(crc32(0, NULL, 0), all.ptr, (uInt)all.len) == e->crc);
    orr_buf_fini(&room);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    orr_zip *z;
    orr_error err = {0};
    if (orr_zip_open((orr_span){data, size}, "fuzz.zip", &z, &err)) {
        require(!z && err.message[0] && err.where.byte <= size);
        return 0;
    }
    for (size_t i = 0; i < orr_zip_count(z); i++)
        check_file(z, orr_zip_entry_at(z, i), size);
    orr_zip_close(z);
    return 0;
}
