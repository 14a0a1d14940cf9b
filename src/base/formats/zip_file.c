/* SPDX-License-Identifier: Apache-2.0 */
/* zip_file.c - zip archives: the directory first, then each local header against it, then the data
 * of one file.
 *
 *     [local header, data, sizes?] ...  [directory record] ...  [zip64 end, its locator]?  [end, comment]
 *
 * Why our own: the archives that matter here (PyTorch's) are stored, of a few entries, and mapped;
 * what is wanted is one file of them in place, and words for everything that does not hold
 * together. Invariants after open: names are unique and cannot lead out of a folder; every file
 * lies whole before the directory and shares no byte with another, so that what comes out is
 * bounded by what went in times what deflate can do. Cost: open O(n log n) in the entries; reading
 * a stored file is its checksum, no copy. */
#include "zip_file.h"

#include "base/memory/map.h"
#include "base/memory/sort.h"
#include "base/short_forms.h"

#include <inttypes.h>
#include <stdlib.h>
#include <zlib.h>

enum {
    END_BYTES = 22,
    END64_BYTES = 56,
    LOCATOR_BYTES = 20,
    RECORD_BYTES = 46,
    LOCAL_BYTES = 30,
    EXTRA_ZIP64 = 1,
};
enum { FLAG_ENCRYPTED = 1, FLAG_DESCRIPTOR = 1 << 3, FLAG_STRONG = 1 << 6, FLAG_MASKED = 1 << 13 };
enum { METHOD_STORED = 0, METHOD_DEFLATED = 8 };

/* Deflate cannot exceed 1,032 to 1, and program text stays far below 200.  Small files are exempt:
 * a megabyte does no harm. */
enum { RATIO_MOST = 512, RATIO_FROM = 1 << 20, PIECE = 1 << 18 };

static const uint32_t end_mark = 0x06054b50, end64_mark = 0x06064b50, locator_mark = 0x07064b50;
static const uint32_t record_mark = 0x02014b50, local_mark = 0x04034b50;
static const uint32_t descriptor_mark = 0x08074b50;

struct orr_zip {
    orr_span bytes;
    char *path;
    orr_zip_entry *entries;
    size_t count;
    orr_arena *arena;
};

static uint16_t get16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)get16(p) | (uint32_t)get16(p + 2) << 16;
}

static uint64_t get64(const uint8_t *p)
{
    return (uint64_t)get32(p) | (uint64_t)get32(p + 4) << 32;
}

/* Do n bytes from `at` on end before `end`? */
static bool has_room(uint64_t at, uint64_t n, uint64_t end)
{
    return at <= end && n <= end - at;
}

static orr_code fail_here(const orr_zip *z, uint64_t byte, orr_error *err, const char *words)
{
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_byte(z->path, byte)), "%s", words);
}

/* Only for validated names: they hold no terminal control characters. */
static orr_code fail_entry(
    const orr_zip *z, const orr_zip_entry *e, uint64_t byte, orr_error *err, const char *words)
{
    const int len = e->name.len > 120 ? 120 : (int)e->name.len;
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_byte(z->path, byte)),
                    "'%.*s' in the archive: %s", len, e->name.ptr, words);
}

bool orr_zip_is(orr_span bytes)
{
    return bytes.len >= 4 && (get32(bytes.ptr) == local_mark || get32(bytes.ptr) == end_mark);
}

/* ---- where the directory is ---- */

typedef struct directory {
    uint64_t start, size, count;
} directory;

/* The last end record whose comment reaches exactly to the end of the file. */
static bool find_end(orr_span b, uint64_t *out)
{
    const size_t most = END_BYTES + UINT16_MAX;
    const size_t stop = b.len > most ? b.len - most : 0;
    if (b.len < END_BYTES)
        return false;
    for (size_t at = b.len - END_BYTES;; at--) {
        if (get32(b.ptr + at) == end_mark && get16(b.ptr + at + 20) == b.len - at - END_BYTES) {
            *out = at;
            return true;
        }
        if (at == stop)
            return false;
    }
}

static bool agrees16(uint16_t small, uint64_t large)
{
    return small == UINT16_MAX || small == large;
}

static bool agrees32(uint32_t small, uint64_t large)
{
    return small == UINT32_MAX || small == large;
}

/* The zip64 end record, which the locator before the end record points to.  Fields that fit the end
 * record are in both. */
static orr_code read_end64(
    const orr_zip *z, uint64_t end, uint64_t *behind, directory *d, orr_error *err)
{
    const uint8_t *b = z->bytes.ptr, *e = b + end, *locator = e - LOCATOR_BYTES;
    const uint64_t at = get64(locator + 8), locator_at = end - LOCATOR_BYTES;
    if (get32(locator + 4) != 0 || get32(locator + 16) > 1)
        return fail_here(z, locator_at, err, "the archive has several parts; one is expected");
    if (!has_room(at, END64_BYTES, locator_at) || get32(b + at) != end64_mark)
        return fail_here(z, locator_at + 8, err,
                         "the zip64 locator does not lead to a zip64 end record");
    const uint8_t *p = b + at;
    if (get64(p + 4) != locator_at - at - 12)
        return fail_here(z, at + 4, err, "the zip64 end record has another size than it says");
    if (get32(p + 16) || get32(p + 20) || get64(p + 24) != get64(p + 32))
        return fail_here(z, at + 16, err, "the archive has several parts; one is expected");
    *d = (directory){.count = get64(p + 32), .size = get64(p + 40), .start = get64(p + 48)};
    *behind = at;
    if (!agrees16(get16(e + 10), d->count) || !agrees32(get32(e + 12), d->size) ||
        !agrees32(get32(e + 16), d->start))
        return fail_here(z, end, err, "the two end records of the archive contradict each other");
    return ORR_OK;
}

static orr_code find_directory(const orr_zip *z, directory *d, orr_error *err)
{
    const uint8_t *b = z->bytes.ptr;
    uint64_t end, behind;
    orr_code code;
    if (!find_end(z->bytes, &end))
        return fail_here(
            z, z->bytes.len, err,
            "the zip archive has no end record: it is cut short, or something follows it");
    const uint8_t *e = b + end;
    const bool is_64 = end >= LOCATOR_BYTES && get32(e - LOCATOR_BYTES) == locator_mark;
    if (!agrees16(get16(e + 4), 0) || !agrees16(get16(e + 6), 0) || get16(e + 8) != get16(e + 10))
        return fail_here(z, end + 4, err, "the archive has several parts; one is expected");
    behind = end;
    *d = (directory){.count = get16(e + 10), .size = get32(e + 12), .start = get32(e + 16)};
    if (is_64 && (code = read_end64(z, end, &behind, d, err)))
        return code;
    if (!has_room(d->start, d->size, behind))
        return fail_here(
            z, end, err,
            "the archive's directory is beyond its end: the file is truncated or damaged");
    if (d->start + d->size != behind)
        return fail_here(z, d->start + d->size, err, "there is data after the archive's directory");
    if (d->count > d->size / RECORD_BYTES)
        return fail_here(z, end, err,
                         "the archive says it has more entries than its directory has room for");
    return ORR_OK;
}

/* ---- names ---- */

static const char *part_fault(orr_str part)
{
    if (part.len == 0)
        return "has an empty part in its name";
    if (orr_str_is(part, ".") || orr_str_is(part, ".."))
        return "has a part '.' or '..' in its name";
    return NULL;
}

/* Bytes that no name needs and some readers mishandle. */
static const char *byte_fault(orr_str name)
{
    const uint8_t *p = (const uint8_t *)name.ptr;
    for (size_t i = 0, n; i < name.len; i += n) {
        n = orr_utf8_length(p + i, name.len - i);
        if (n == 0)
            return "has a name that is not UTF-8";
        if (p[i] < 0x20 || p[i] == 0x7F)
            return "has a control character in its name";
        if (p[i] == '\\')
            return "has a backslash in its name";
    }
    return NULL;
}

/* What is wrong with a name, or NULL. */
static const char *name_fault(orr_str name)
{
    if (name.len == 0)
        return "has no name";
    if (name.ptr[0] == '/' || (name.len > 1 && name.ptr[1] == ':'))
        return "has an absolute path as its name";
    const char *fault = byte_fault(name);
    for (size_t from = 0, i = 0; i <= name.len && !fault; i++) {
        if (i < name.len && name.ptr[i] != '/')
            continue;
        if (i < name.len || from < name.len) /* a slash at the end makes it a folder */
            fault = part_fault((orr_str){name.ptr + from, i - from});
        from = i + 1;
    }
    return fault;
}

/* ---- one entry ---- */

/* Numbers too large for their fields are in an extra field, in this order and only those. */
static bool take_zip64(const uint8_t *extra, size_t len, uint64_t *const values[], size_t count)
{
    size_t needed = 0;
    for (size_t i = 0; i < count; i++)
        needed += *values[i] == UINT32_MAX;
    while (needed && len >= 4) {
        const size_t n = get16(extra + 2);
        if (n > len - 4)
            return false;
        if (get16(extra) != EXTRA_ZIP64) {
            extra += 4 + n;
            len -= 4 + n;
            continue;
        }
        if (n < needed * 8)
            return false;
        extra += 4;
        for (size_t i = 0; i < count; i++) {
            if (*values[i] != UINT32_MAX)
                continue;
            *values[i] = get64(extra);
            extra += 8;
        }
        return true;
    }
    return needed == 0;
}

/* The directory record at `at`; *next is after it. */
static orr_code read_record(
    const orr_zip *z, uint64_t at, uint64_t stop, orr_zip_entry *e, uint64_t *next, orr_error *err)
{
    if (!has_room(at, RECORD_BYTES, stop))
        return fail_here(z, at, err, "the archive's directory ends inside a record");
    const uint8_t *p = z->bytes.ptr + at;
    if (get32(p) != record_mark)
        return fail_here(z, at, err,
                         "the archive's directory has no record where one should begin");
    const size_t name = get16(p + 28), extra = get16(p + 30), comment = get16(p + 32);
    if (!has_room(at + RECORD_BYTES, name + extra + comment, stop))
        return fail_here(z, at, err, "the archive's directory ends inside a record");
    *e = (orr_zip_entry){
        .name = {(const char *)p + RECORD_BYTES, name},
        .flags = get16(p + 8),
        .method = get16(p + 10),
        .crc = get32(p + 16),
        .packed = get32(p + 20),
        .size = get32(p + 24),
        .start = get32(p + 42),
        .at = at,
    };
    uint64_t *const large[] = {&e->size, &e->packed, &e->start};
    if (!take_zip64(p + RECORD_BYTES + name, extra, large, 3))
        return fail_here(z, at, err, "a zip64 field of the archive's directory is too short");
    *next = at + RECORD_BYTES + name + extra + comment;
    const char *fault = name_fault(e->name);
    if (fault)
        return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_byte(z->path, at + RECORD_BYTES)),
                        "a file in the archive %s", fault);
    return ORR_OK;
}

/* Sizes unknown when the header was written follow the data, in one of four forms. */
static bool descriptor_fits(const uint8_t *p, uint64_t left, const orr_zip_entry *e, size_t *len)
{
    const size_t mark = left >= 4 && get32(p) == descriptor_mark ? 4 : 0;
    for (size_t skip = mark;; skip = 0) {
        const uint8_t *q = p + skip;
        const uint64_t n = left - skip;
        if (n >= 20 && get32(q) == e->crc && get64(q + 4) == e->packed &&
            get64(q + 12) == e->size) {
            *len = skip + 20;
            return true;
        }
        if (n >= 12 && get32(q) == e->crc && get32(q + 4) == e->packed && get32(q + 8) == e->size) {
            *len = skip + 12;
            return true;
        }
        if (skip == 0)
            return false;
    }
}

/* The sizes of the local header; none if they follow the data. */
static bool local_sizes_agree(const uint8_t *p, const orr_zip_entry *e, size_t name, size_t extra)
{
    uint64_t packed = get32(p + 18), size = get32(p + 22);
    uint64_t *const large[] = {&size, &packed};
    if (!take_zip64(p + LOCAL_BYTES + name, extra, large, 2))
        return false;
    if ((e->flags & FLAG_DESCRIPTOR) && packed == 0 && size == 0 && get32(p + 14) == 0)
        return true;
    return packed == e->packed && size == e->size && get32(p + 14) == e->crc;
}

/* Checks the local header against the directory; finds the data. */
static orr_code read_local(const orr_zip *z, orr_zip_entry *e, uint64_t stop, orr_error *err)
{
    if (!has_room(e->start, LOCAL_BYTES, stop) || get32(z->bytes.ptr + e->start) != local_mark)
        return fail_entry(z, e, e->at, err, "the directory does not lead to its header");
    const uint8_t *p = z->bytes.ptr + e->start;
    const size_t name = get16(p + 26), extra = get16(p + 28);
    if (!has_room(e->start + LOCAL_BYTES, name + extra, stop))
        return fail_entry(z, e, e->start, err, "the header is cut short");
    if (!orr_str_equal((orr_str){(const char *)p + LOCAL_BYTES, name}, e->name))
        return fail_entry(z, e, e->start, err, "the header has another name than the directory");
    if (get16(p + 8) != e->method || get16(p + 6) != e->flags)
        return fail_entry(z, e, e->start, err, "the header has another method than the directory");
    if (!local_sizes_agree(p, e, name, extra))
        return fail_entry(z, e, e->start, err, "the header has another size than the directory");
    e->data = e->start + LOCAL_BYTES + name + extra;
    if (!has_room(e->data, e->packed, stop))
        return fail_entry(z, e, e->at, err, "its data extends into the directory");
    if (e->method == METHOD_STORED && e->packed != e->size)
        return fail_entry(z, e, e->at, err, "it is stored uncompressed, but its two sizes differ");
    e->end = e->data + e->packed;
    size_t len = 0;
    if ((e->flags & FLAG_DESCRIPTOR) &&
        !descriptor_fits(z->bytes.ptr + e->end, stop - e->end, e, &len))
        return fail_entry(z, e, e->end, err,
                          "the sizes after its data differ from the directory's");
    e->end += len;
    return ORR_OK;
}

/* ---- all entries ---- */

static int by_start(const void *a, const void *b)
{
    const orr_zip_entry *x = *(const orr_zip_entry *const *)a,
                        *y = *(const orr_zip_entry *const *)b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Overlapping files let a small archive unpack to a huge one; no archiver writes such. */
static orr_code check_overlaps(const orr_zip *z, orr_error *err)
{
    const orr_zip_entry **order = orr_arena_new(z->arena, z->count, const orr_zip_entry *);
    if (z->count && !order)
        return orr_no_memory(err);
    for (size_t i = 0; i < z->count; i++)
        order[i] = &z->entries[i];
    if (z->count)
        orr_sort(order, z->count, sizeof *order, by_start);
    for (size_t i = 1; i < z->count; i++) {
        if (order[i]->start < order[i - 1]->end)
            return fail_entry(z, order[i], order[i]->start, err, "it overlaps another file");
    }
    return ORR_OK;
}

static orr_code read_entries(orr_zip *z, const directory *d, orr_intern *names, orr_error *err)
{
    uint64_t at = d->start;
    z->entries = orr_arena_new(z->arena, (size_t)d->count, orr_zip_entry);
    if (d->count && !z->entries)
        return orr_no_memory(err);
    for (; z->count < d->count; z->count++) {
        orr_zip_entry *e = &z->entries[z->count];
        uint32_t number;
        orr_code code = read_record(z, at, d->start + d->size, e, &at, err);
        if (code)
            return code;
        if (!orr_intern_add(names, e->name, &number))
            return orr_no_memory(err);
        if (number != z->count)
            return fail_entry(z, e, e->at, err, "there are two files of this name");
        if ((code = read_local(z, e, d->start, err)))
            return code;
    }
    if (at != d->start + d->size)
        return fail_here(z, at, err, "the archive's directory has more entries than it says");
    return check_overlaps(z, err);
}

orr_code orr_zip_open(orr_span bytes, const char *path, orr_zip **out, orr_error *err)
{
    directory d = {0};
    *out = NULL;
    orr_zip *z = orr_alloc(1, sizeof *z);
    orr_intern *names = orr_intern_create();
    if (z) {
        z->bytes = bytes;
        z->arena = orr_arena_create();
        z->path = z->arena ? orr_arena_text(z->arena, orr_str_of(path)) : NULL;
    }
    orr_code code = !z || !names || !z->path ? orr_no_memory(err) : find_directory(z, &d, err);
    if (!code)
        code = read_entries(z, &d, names, err);
    orr_intern_destroy(names);
    if (code)
        orr_zip_close(z);
    else
        *out = z;
    return code;
}

void orr_zip_close(orr_zip *z)
{
    if (!z)
        return;
    orr_arena_destroy(z->arena);
    orr_free(z);
}

size_t orr_zip_count(const orr_zip *z)
{
    return z->count;
}

const orr_zip_entry *orr_zip_entry_at(const orr_zip *z, size_t i)
{
    return &z->entries[i];
}

/* ---- the data of one ---- */

typedef struct unpacking {
    const orr_zip *z;
    const orr_zip_entry *e;
    z_stream s;
    const uint8_t *in; /* not given to zlib yet, which counts in 32 bits */
    uint64_t left;
    orr_buf *to;
} unpacking;

static orr_code fail_unpacking(const unpacking *u, orr_error *err, const char *words)
{
    const uint64_t at = u->e->data + u->e->packed - u->left - u->s.avail_in;
    return fail_entry(u->z, u->e, at, err, words);
}

/* Larger than declared, or more than its packed bytes plausibly become. */
static const char *growth_fault(const unpacking *u)
{
    const uint64_t used = u->e->packed - u->left - u->s.avail_in;
    if (u->to->len > u->e->size)
        return "it unpacks to more bytes than the directory says";
    if (u->to->len > RATIO_FROM && u->to->len / RATIO_MOST > used)
        return "it unpacks to more than 512 times its size, as archives made to fill memory do";
    return NULL;
}

/* One piece; *is_done at the end of the compressed data. */
static orr_code unpack_piece(unpacking *u, bool *is_done, orr_error *err)
{
    if (u->s.avail_in == 0 && u->left) {
        u->s.next_in = (Bytef *)(uintptr_t)u->in; /* zlib does not write to it */
        u->s.avail_in = u->left > UINT32_MAX ? UINT32_MAX : (uInt)u->left;
        u->in += u->s.avail_in;
        u->left -= u->s.avail_in;
    }
    u->s.next_out = orr_buf_reserve(u->to, PIECE);
    if (!u->s.next_out)
        return orr_no_memory(err);
    u->s.avail_out = PIECE;
    const int status = inflate(&u->s, Z_NO_FLUSH);
    u->to->len += PIECE - u->s.avail_out;
    *is_done = status == Z_STREAM_END;
    const char *fault = growth_fault(u);
    if (fault)
        return fail_unpacking(u, err, fault);
    if (status == Z_MEM_ERROR)
        return orr_no_memory(err);
    if (status == Z_BUF_ERROR && u->left == 0 && u->s.avail_in == 0)
        return fail_unpacking(u, err, "the compressed data is cut short");
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
        return fail_unpacking(u, err, "the compressed data is damaged");
    return ORR_OK;
}

static orr_code unpack(unpacking *u, orr_error *err)
{
    bool is_done = false;
    orr_code code = ORR_OK;
    while (!is_done && !code)
        code = unpack_piece(u, &is_done, err);
    if (code)
        return code;
    if (u->left || u->s.avail_in)
        return fail_unpacking(u, err, "bytes follow the end of its compressed data");
    if (u->to->len != u->e->size)
        return fail_unpacking(u, err, "it unpacks to fewer bytes than the directory says");
    return ORR_OK;
}

static orr_code inflate_entry(const orr_zip *z,
                              const orr_zip_entry *e,
                              orr_buf *room,
                              orr_error *err)
{
    unpacking u = {.z = z, .e = e, .in = z->bytes.ptr + e->data, .left = e->packed, .to = room};
    if (inflateInit2(&u.s, -15) != Z_OK) /* bare deflate: zip has its own header and checksum */
        return orr_no_memory(err);
    const orr_code code = unpack(&u, err);
    inflateEnd(&u.s);
    return code;
}

uint32_t orr_zip_crc(orr_span s)
{
    uLong sum = crc32(0, NULL, 0);
    for (size_t at = 0, n; at < s.len; at += n) {
        n = s.len - at > PIECE ? PIECE : s.len - at;
        sum = crc32(sum, s.ptr + at, (uInt)n);
    }
    return (uint32_t)sum;
}

static orr_code check_method(const orr_zip *z, const orr_zip_entry *e, orr_error *err)
{
    if (e->flags & (FLAG_ENCRYPTED | FLAG_STRONG | FLAG_MASKED))
        return fail_entry(z, e, e->at, err, "it is encrypted; unpack it with its password first");
    if (e->method == METHOD_STORED || e->method == METHOD_DEFLATED)
        return ORR_OK;
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_byte(z->path, e->at)),
                    "'%.*s' in the archive: compressed by method %u; only stored (0) and deflated "
                    "(8) files are read",
                    e->name.len > 120 ? 120 : (int)e->name.len, e->name.ptr, e->method);
}

orr_code orr_zip_read(const orr_zip *z,
                      const orr_zip_entry *e,
                      uint64_t most,
                      orr_buf *room,
                      orr_span *out,
                      orr_error *err)
{
    orr_code code = check_method(z, e, err);
    if (code)
        return code;
    if (e->size > most)
        return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_byte(z->path, e->at)),
                        "'%.*s' in the archive: %" PRIu64 " bytes; %" PRIu64 " at most are read",
                        e->name.len > 120 ? 120 : (int)e->name.len, e->name.ptr, e->size, most);
    if (e->method == METHOD_DEFLATED && (code = inflate_entry(z, e, room, err)))
        return code;
    *out = e->method == METHOD_STORED ? (orr_span){z->bytes.ptr + e->data, (size_t)e->size}
                                      : (orr_span){room->ptr, room->len};
    if (orr_zip_crc(*out) != e->crc)
        return fail_entry(z, e, e->data, err,
                          "its checksum does not match the directory's: it is "
                          "damaged");
    return ORR_OK;
}
