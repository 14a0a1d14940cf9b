/* SPDX-License-Identifier: Apache-2.0 */
/* input.c - mapped files, and gzip/zstd unpacking as a pull stream.
 *
 * The stream is the one primitive: a file descriptor, an optional unpacker, and a window of
 * unpacked bytes
 *
 *     window:  [ used up | ready ......... | room ]
 *                        ^at               ^end
 *
 * that moves its ready part to the front when it needs room.  A whole compressed file is a stream
 * read to its end.  Small plain files are read, larger ones mapped: below some 256 KiB the page
 * faults cost more than the copy. */
#include "input.h"

#include "base/short_forms.h"
#include "base/threads/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

enum { PACKED_ROOM = 1 << 17, WINDOW_ROOM = 1 << 18, LEAST_ROOM = 1 << 12, MAP_FROM = 1 << 18 };

/* Protection against decompression bombs: zeros shrink 1,000 times in gzip and more in zstd, traces
 * some 10 to 50 times.  Small files are exempt. */
enum { BOMB_FROM = 1 << 28, BOMB_RATIO = 250 };

typedef enum packing { PLAIN, GZIP, ZSTD } packing;

struct orr_stream {
    int fd;
    char *path;
    packing kind;
    uint8_t *window;
    size_t at, end, room;
    uint64_t offset; /* of window[at] in the unpacked stream */
    bool is_at_end;  /* nothing more will come into the window */
    uint8_t *packed; /* bytes of the file, before unpacking */
    size_t packed_at, packed_end;
    bool packed_is_at_end, inside_frame;
    uint64_t packed_all, unpacked_all; /* bytes so far, before and after unpacking */
    uint64_t frame_size, frame_got;    /* zstd: bytes announced by the frame, and received */
    z_stream z;
    bool z_is_open;
    ZSTD_DStream *zstd;
};

static orr_code fail_here(const orr_stream *s, orr_code code, const char *what, orr_error *err)
{
    return orr_fail(err, code, ORR_AT(orr_where_byte(s->path, s->offset + (s->end - s->at))), "%s",
                    what);
}

/* A pipe may stay silent forever; work that can be stopped must not block in it.  False: stop
 * requested. */
static bool wait_for_bytes(int fd)
{
    enum { LOOK_MS = 50 };
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (orr__stop_flag && poll(&p, 1, LOOK_MS) == 0)
        if (orr__stop_asked())
            return false;
    return true;
}

static orr_code read_some(orr_stream *s, uint8_t *to, size_t room, size_t *got, orr_error *err)
{
    ssize_t n;
    do {
        if (!wait_for_bytes(s->fd))
            return orr_no_memory(err);
        n = read(s->fd, to, room);
    } while (n < 0 && (errno == EINTR || (errno == EAGAIN && orr__stop_flag)));
    if (n < 0)
        return orr_fail(err, ORR_EIO, ORR_AT(orr_where_byte(s->path, ORR_NO_BYTE)),
                        "cannot read: %s", strerror(errno));
    *got = (size_t)n;
    return ORR_OK;
}

static orr_code fill_packed(orr_stream *s, orr_error *err)
{
    size_t got = 0;
    if (s->packed_at < s->packed_end || s->packed_is_at_end)
        return ORR_OK;
    const orr_code code = read_some(s, s->packed, PACKED_ROOM, &got, err);
    if (code)
        return code;
    s->packed_at = 0;
    s->packed_end = got;
    s->packed_all += got;
    s->packed_is_at_end = got == 0;
    return ORR_OK;
}

static bool has_magic(const uint8_t *p, size_t n, packing kind)
{
    static const uint8_t zstd_magic[4] = {0x28, 0xb5, 0x2f, 0xfd};
    if (kind == GZIP)
        return n >= 2 && p[0] == 0x1f && p[1] == 0x8b;
    return n >= 4 && memcmp(p, zstd_magic, 4) == 0;
}

/* The size announced by the header of a zstd frame.  libzstd itself checks it only for some buffer
 * sizes: whether a frame whose last block is empty is damaged would depend on how it is read. */
static orr_code begin_zstd_frame(orr_stream *s, orr_error *err)
{
    enum { LONGEST_HEAD = 18 };
    orr_code code = ORR_OK;
    if (s->packed_end - s->packed_at < LONGEST_HEAD) {
        s->packed_end -= s->packed_at;
        memmove(s->packed, s->packed + s->packed_at, s->packed_end);
        s->packed_at = 0;
    }
    for (size_t got = 1; !code && got && s->packed_end - s->packed_at < LONGEST_HEAD;) {
        code = read_some(s, s->packed + s->packed_end, PACKED_ROOM - s->packed_end, &got, err);
        s->packed_end += code ? 0 : got;
        s->packed_all += code ? 0 : got;
    }
    s->frame_size =
        ZSTD_getFrameContentSize(s->packed + s->packed_at, s->packed_end - s->packed_at);
    s->frame_got = 0;
    return code;
}

/* Between two frames: another frame, padding zeros, or something that does not belong there. */
static orr_code next_frame(orr_stream *s, orr_error *err)
{
    orr_code code;
    for (;;) {
        if ((code = fill_packed(s, err)))
            return code;
        if (s->packed_is_at_end) {
            s->is_at_end = true;
            return ORR_OK;
        }
        if (s->packed[s->packed_at] != 0)
            break;
        s->packed_at++;
    }
    if (s->packed[s->packed_at] != (s->kind == GZIP ? 0x1f : 0x28))
        return fail_here(s, ORR_EINPUT,
                         "something that is not compressed data follows the compressed data", err);
    s->inside_frame = true;
    if (s->kind == ZSTD)
        return begin_zstd_frame(s, err);
    if (inflateReset(&s->z) != Z_OK)
        return fail_here(s, ORR_EBUG, "zlib cannot be reset", err);
    return ORR_OK;
}

static orr_code unpack_gzip(orr_stream *s, uint8_t *to, size_t room, size_t *got, orr_error *err)
{
    s->z.next_in = s->packed + s->packed_at;
    s->z.avail_in = (uInt)(s->packed_end - s->packed_at);
    s->z.next_out = to;
    s->z.avail_out = (uInt)room;
    const int r = inflate(&s->z, Z_NO_FLUSH);
    s->packed_at = s->packed_end - s->z.avail_in;
    *got = room - s->z.avail_out;
    if (r == Z_STREAM_END)
        s->inside_frame = false;
    else if (r == Z_MEM_ERROR)
        return orr_no_memory(err);
    else if (r != Z_OK && r != Z_BUF_ERROR)
        return fail_here(s, ORR_EINPUT, "the gzip data is damaged", err);
    return ORR_OK;
}

static orr_code unpack_zstd(orr_stream *s, uint8_t *to, size_t room, size_t *got, orr_error *err)
{
    ZSTD_inBuffer in = {s->packed, s->packed_end, s->packed_at};
    ZSTD_outBuffer out = {to, room, 0};
    const size_t r = ZSTD_decompressStream(s->zstd, &out, &in);
    s->packed_at = in.pos;
    *got = out.pos;
    s->frame_got += out.pos;
    const bool is_short = r == 0 && s->frame_size != ZSTD_CONTENTSIZE_UNKNOWN &&
                          s->frame_size != ZSTD_CONTENTSIZE_ERROR && s->frame_got != s->frame_size;
    if (ZSTD_isError(r) || is_short)
        return fail_here(s, ORR_EINPUT, "the zstd data is damaged", err);
    s->inside_frame = r != 0;
    return ORR_OK;
}

static orr_code unpack_some(orr_stream *s, uint8_t *to, size_t room, size_t *got, orr_error *err)
{
    orr_code code;
    *got = 0;
    if (!s->inside_frame && ((code = next_frame(s, err)) || s->is_at_end))
        return code;
    if ((code = fill_packed(s, err)))
        return code;
    if (s->packed_is_at_end)
        return fail_here(s, ORR_EINPUT, "the compressed data is cut short", err);
    code =
        s->kind == GZIP ? unpack_gzip(s, to, room, got, err) : unpack_zstd(s, to, room, got, err);
    s->unpacked_all += *got;
    if (!code && s->unpacked_all > BOMB_FROM && s->unpacked_all / BOMB_RATIO > s->packed_all)
        return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_byte(s->path, ORR_NO_BYTE)),
                        "the compressed data unpacks to more than %d times its size; if that is "
                        "meant, unpack it first",
                        BOMB_RATIO);
    return code;
}

static orr_code fill_window(orr_stream *s, orr_error *err)
{
    size_t got = 0;
    uint8_t *to = s->window + s->end;
    const size_t room =
        s->room - s->end < UINT32_MAX ? s->room - s->end : UINT32_MAX; /* zlib counts in 32 bits */
    const orr_code code =
        s->kind == PLAIN ? read_some(s, to, room, &got, err) : unpack_some(s, to, room, &got, err);
    if (code)
        return code;
    if (s->kind == PLAIN && got == 0)
        s->is_at_end = true;
    s->end += got;
    return ORR_OK;
}

/* Room for `need` ready bytes.  The window grows only to a size that a caller has seen announced,
 * by half at a time as the bytes really arrive. */
static bool make_room(orr_stream *s, size_t need)
{
    const size_t ready = s->end - s->at;
    if (s->at && s->room - s->at < need) {
        memmove(s->window, s->window + s->at, ready);
        s->at = 0;
        s->end = ready;
    }
    return s->end < s->room || orr_grow(&s->window, &s->room, s->room + 1);
}

orr_code orr_stream_peek(orr_stream *s, size_t need, orr_span *out, orr_error *err)
{
    orr_code code;
    while (s->end - s->at < need && !s->is_at_end) {
        if (!make_room(s, need))
            return orr_no_memory(err);
        if ((code = fill_window(s, err)))
            return code;
    }
    *out = (orr_span){s->window + s->at, s->end - s->at};
    return ORR_OK;
}

void orr_stream_skip(orr_stream *s, size_t n)
{
    s->at += n;
    s->offset += n;
}

uint64_t orr_stream_offset(const orr_stream *s)
{
    return s->offset;
}

void orr_stream_close(orr_stream *s)
{
    if (!s)
        return;
    if (s->fd > 0)
        close(s->fd);
    if (s->z_is_open)
        inflateEnd(&s->z);
    ZSTD_freeDStream(s->zstd);
    orr_free(s->packed);
    orr_free(s->window);
    orr_free(s->path);
    orr_free(s);
}

/* A stream that this thread has peeked at and will reopen: a pipe delivers its bytes only once. */
static ORR_THREAD_LOCAL orr_stream *put_back;

static bool can_be_read_again(const orr_stream *s)
{
    struct stat st;
    return s->fd != STDIN_FILENO && fstat(s->fd, &st) == 0 && S_ISREG(st.st_mode);
}

void orr_stream_put_back(orr_stream *s)
{
    if (!s || s->offset || can_be_read_again(s)) {
        orr_stream_close(s);
        return;
    }
    orr_stream_close(put_back);
    put_back = s;
}

/* The stream of this path that was put back, or NULL. */
static orr_stream *take_back(const char *path)
{
    orr_stream *s = put_back;
    if (!s || strcmp(s->path, path) != 0)
        return NULL;
    put_back = NULL;
    return s;
}

/* The first bytes decide.  They become packed input, or ready bytes of a plain file. */
static orr_code choose_packing(orr_stream *s, orr_error *err)
{
    orr_span head;
    orr_code code = orr_stream_peek(s, 4, &head, err);
    if (code)
        return code;
    s->kind = has_magic(head.ptr, head.len, GZIP)   ? GZIP
              : has_magic(head.ptr, head.len, ZSTD) ? ZSTD
                                                    : PLAIN;
    if (s->kind == PLAIN)
        return ORR_OK;
    s->packed = orr_alloc(1, s->end > PACKED_ROOM ? s->end : PACKED_ROOM);
    if (!s->packed)
        return orr_no_memory(err);
    memcpy(s->packed, s->window, s->end);
    s->packed_end = s->end;
    s->end = 0;
    s->inside_frame = false;
    s->is_at_end = false;
    if (s->kind == GZIP) {
        s->z_is_open = inflateInit2(&s->z, 15 + 16) == Z_OK;
        return s->z_is_open ? ORR_OK : orr_no_memory(err);
    }
    s->zstd = ZSTD_createDStream();
    if (!s->zstd)
        return orr_no_memory(err);
    ZSTD_DCtx_setParameter(s->zstd, ZSTD_d_windowLogMax,
                           27); /* 128 MiB: a frame cannot ask for more */
    return ORR_OK;
}

/* *room: of the window.  Most files are small: a window of their size comes from the heap instead
 * of pages that the kernel maps, clears and unmaps. */
static orr_code open_fd(const char *path, int *fd, size_t *room, orr_error *err)
{
    struct stat st;
    const orr_where w = orr_where_byte(path, ORR_NO_BYTE);
    *room = WINDOW_ROOM;
    if (strcmp(path, "-") == 0) {
        *fd = STDIN_FILENO;
        return ORR_OK;
    }
    /* Without O_NONBLOCK, opening a pipe blocks until it has a writer, possibly forever. */
    *fd = open(path, O_RDONLY | O_CLOEXEC | (orr__stop_flag ? O_NONBLOCK : 0));
    if (*fd < 0)
        return orr_fail(err, ORR_EIO, &w, "cannot open: %s", strerror(errno));
    if (fstat(*fd, &st))
        return ORR_OK;
    if (S_ISDIR(st.st_mode)) {
        close(*fd);
        return orr_fail(err, ORR_EIO, &w, "is a directory; expected a file");
    }
    /* Endless zeros and random bytes; /dev/null is allowed as an empty file. */
    if ((S_ISCHR(st.st_mode) && !isatty(*fd) && st.st_rdev != makedev(1, 3)) ||
        S_ISBLK(st.st_mode)) {
        close(*fd);
        return orr_fail(err, ORR_EINPUT, &w, "is a device; a file was expected");
    }
    if (S_ISREG(st.st_mode) && st.st_size < WINDOW_ROOM - LEAST_ROOM)
        *room = (size_t)st.st_size + LEAST_ROOM; /* the end is seen without growing */
    return ORR_OK;
}

static char *copy_text(const char *s)
{
    const size_t n = strlen(s) + 1;
    char *p = orr_alloc(n, 1);
    return p ? memcpy(p, s, n) : NULL;
}

orr_code orr_stream_open(const char *path, orr_stream **out, orr_error *err)
{
    int fd;
    size_t room;
    *out = take_back(path);
    if (*out)
        return ORR_OK;
    orr_code code = open_fd(path, &fd, &room, err);
    if (code)
        return code;
    orr_stream *s = orr_alloc(1, sizeof *s);
    if (!s) {
        if (fd)
            close(fd);
        return orr_no_memory(err);
    }
    s->fd = fd;
    s->path = copy_text(path);
    if (!s->path || !orr_grow(&s->window, &s->room, room))
        code = orr_no_memory(err);
    else
        code = choose_packing(s, err);
    if (code) {
        orr_stream_close(s);
        return code;
    }
    *out = s;
    return ORR_OK;
}

/* ---- whole files ---- */

struct orr_input {
    char *path;
    const uint8_t *ptr;
    size_t len;
    void *map;      /* the mapping, or NULL */
    uint8_t *owned; /* the unpacked or read bytes, or NULL */
};

/* A plain regular file of some size is mapped.  False: read it as a stream instead. */
static bool try_map(orr_input *in, orr_stream *s)
{
    struct stat st;
    if (s->kind != PLAIN || fstat(s->fd, &st) || !S_ISREG(st.st_mode) || st.st_size < MAP_FROM)
        return false;
    if (lseek(s->fd, 0, SEEK_CUR) != (off_t)s->end) /* standard input that somebody has read from */
        return false;
    void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, s->fd, 0);
    if (map == MAP_FAILED)
        return false;
    madvise(map, (size_t)st.st_size, MADV_SEQUENTIAL);
    in->map = map;
    in->ptr = map;
    in->len = (size_t)st.st_size;
    return true;
}

static orr_code read_all(orr_input *in, orr_stream *s, orr_error *err)
{
    orr_span all = {0};
    size_t need = 1;
    while (!s->is_at_end) {
        const orr_code code = orr_stream_peek(s, need, &all, err);
        if (code)
            return code;
        need = s->end - s->at + 1;
    }
    in->owned = s->window;
    in->ptr = s->window + s->at;
    in->len = s->end - s->at;
    s->window = NULL;
    return ORR_OK;
}

orr_code orr_input_open(const char *path, orr_input **out, orr_error *err)
{
    orr_stream *s;
    *out = NULL;
    const orr_code code = orr_stream_open(path, &s, err);
    return code ? code : orr_input_of_stream(s, out, err);
}

orr_code orr_input_of_stream(orr_stream *s, orr_input **out, orr_error *err)
{
    orr_code code = ORR_OK;
    *out = NULL;
    orr_input *in = orr_alloc(1, sizeof *in);
    if (!in || !(in->path = copy_text(s->path)))
        code = orr_no_memory(err);
    else if (!try_map(in, s))
        code = read_all(in, s, err);
    orr_stream_close(s);
    if (code) {
        orr_input_close(in);
        return code;
    }
    *out = in;
    return ORR_OK;
}

orr_span orr_input_bytes(const orr_input *in)
{
    return (orr_span){in->ptr, in->len};
}

void orr_input_release(const orr_input *in, size_t from, size_t to)
{
    const size_t page = 4096;
    from = (from + page - 1) & ~(page - 1);
    to &= ~(page - 1);
    if (in->map && from < to)
        madvise((uint8_t *)in->map + from, to - from, MADV_DONTNEED);
}

void orr_input_close(orr_input *in)
{
    if (!in)
        return;
    if (in->map)
        munmap(in->map, in->len);
    orr_free(in->owned);
    orr_free(in->path);
    orr_free(in);
}
