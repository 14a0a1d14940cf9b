/* SPDX-License-Identifier: Apache-2.0 */
/* output.c - whole-file output.
 *
 * The bytes go to a file without a name (O_TMPFILE) in the target's folder; commit gives it the
 * target's name, or, where that is taken, a temporary one that is renamed over the target.  So a
 * crash, a full disk or an interrupt leaves nothing behind, and nobody ever sees half a file; only
 * a kill between these last two calls leaves the whole file under its temporary name, since no
 * single call puts a nameless file in another's place.  Where the file system has no nameless
 * files, a named temporary takes their place.  Standard output and special files (/dev/null, a
 * pipe) are written directly. */
#include "output.h"
#include "base/text/text.h"
#include "base/threads/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

enum { GATHER = 1 << 18, PACK_ROOM = 1 << 17 };

struct orr_output {
    int fd;
    char *path;      /* the target */
    char *temporary; /* its name while it is written; only used from the start without O_TMPFILE */
    bool is_direct;  /* standard output or a special file: no temporary */
    bool has_name;   /* the temporary has a name in the folder */
    int problem;     /* errno of the first failed write */
    bool no_memory;
    bool is_settled; /* everything is written */
    orr_buf gather;  /* small writes are gathered */
    uint8_t *packed;
    z_stream z;
    bool is_gzip;
    ZSTD_CStream *zstd;
};

static orr_code fail_system(const char *path, const char *what, int problem, orr_error *err)
{
    const orr_where w =
        orr_where_byte(strcmp(path, "-") == 0 ? "standard output" : path, ORR_NO_BYTE);
    return orr_fail(err, ORR_EIO, &w, "cannot %s: %s", what, strerror(problem));
}

static void write_all(orr_output *o, const uint8_t *p, size_t n)
{
    while (n && !o->problem) {
        const ssize_t done = write(o->fd, p, n);
        if (done < 0 && errno != EINTR)
            o->problem = errno;
        if (done > 0) {
            p += done;
            n -= (size_t)done;
        }
    }
}

static void pack_gzip(orr_output *o, const uint8_t *p, size_t n, bool last)
{
    do {
        const size_t part = n < (1u << 30) ? n : 1u << 30; /* zlib counts in 32 bits */
        o->z.next_in = (uint8_t *)(uintptr_t)p;
        o->z.avail_in = (uInt)part;
        do {
            o->z.next_out = o->packed;
            o->z.avail_out = PACK_ROOM;
            deflate(&o->z, last && part == n ? Z_FINISH : Z_NO_FLUSH);
            write_all(o, o->packed, PACK_ROOM - o->z.avail_out);
        } while (o->z.avail_out == 0);
        p += part;
        n -= part;
    } while (n);
}

static void pack_zstd(orr_output *o, const uint8_t *p, size_t n, bool last)
{
    ZSTD_inBuffer in = {p, n, 0};
    size_t left;
    do {
        ZSTD_outBuffer out = {o->packed, PACK_ROOM, 0};
        left = ZSTD_compressStream2(o->zstd, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left)) {
            o->no_memory = true;
            return;
        }
        write_all(o, o->packed, out.pos);
    } while (last ? left != 0 : in.pos < in.size);
}

static void emit(orr_output *o, const uint8_t *p, size_t n, bool last)
{
    if (orr__stop_asked())
        o->no_memory = true;
    if (o->no_memory)
        return;
    if (o->is_gzip)
        pack_gzip(o, p, n, last);
    else if (o->zstd)
        pack_zstd(o, p, n, last);
    else
        write_all(o, p, n);
}

static void flush_gathered(orr_output *o, bool last)
{
    const uint8_t *from = o->gather.len ? o->gather.ptr : (const uint8_t *)"";
    if (o->gather.len || last)
        emit(o, from, o->gather.len, last);
    o->gather.len = 0;
}

void orr_output_add(orr_output *o, const void *p, size_t n)
{
    const bool is_large = n > GATHER / 2;
    if (is_large || o->gather.len + n > GATHER)
        flush_gathered(
            o, false); /* also before a large part, which must not overtake what was gathered */
    if (is_large)
        emit(o, p, n, false);
    else
        orr_buf_add(&o->gather, p, n);
}

void orr_output_drain(orr_output *o, orr_buf *b)
{
    o->no_memory |= b->failed;
    orr_output_add(o, b->ptr, b->len);
    b->len = 0;
}

bool orr_output_has_failed(const orr_output *o)
{
    return o->problem || o->no_memory || o->gather.failed;
}

static orr_code start_packing(orr_output *o, orr_error *err)
{
    const bool gzip = orr_has_suffix(o->path, ".gz"), zstd = orr_has_suffix(o->path, ".zst");
    if (!gzip && !zstd)
        return ORR_OK;
    o->packed = orr_alloc(PACK_ROOM, 1);
    if (gzip && o->packed)
        o->is_gzip = deflateInit2(&o->z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK;
    if (zstd && o->packed)
        o->zstd = ZSTD_createCStream();
    return o->is_gzip || o->zstd ? ORR_OK : orr_no_memory(err);
}

/* The folder of path: up to its last slash, "." without one. */
static size_t folder_len(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

static orr_code open_named(orr_output *o, orr_error *err)
{
    o->fd = open(o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (o->fd < 0)
        return fail_system(o->path, "create", errno, err);
    o->has_name = true;
    return ORR_OK;
}

static orr_code open_file(orr_output *o, orr_error *err)
{
    struct stat st;
    const size_t folder = folder_len(o->path);
    const size_t room = folder + 64;
    if (stat(o->path, &st) == 0 && S_ISDIR(st.st_mode))
        return fail_system(o->path, "write", EISDIR, err);
    if (stat(o->path, &st) == 0 && !S_ISREG(st.st_mode)) {
        o->is_direct = true;
        o->fd = open(o->path, O_WRONLY | O_CLOEXEC);
        return o->fd < 0 ? fail_system(o->path, "open", errno, err) : ORR_OK;
    }
    if (!(o->temporary = orr_alloc(room, 1)))
        return orr_no_memory(err);
    snprintf(o->temporary, room, "%.*s", (int)folder, o->path);
    o->fd = open(folder ? o->temporary : ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
    const int why = errno;
    /* Without the target's name, which may have the maximum length already. */
    snprintf(o->temporary, room, "%.*s.orrery-%ld-%p", (int)folder, o->path, (long)getpid(),
             (void *)o);
    if (o->fd >= 0)
        return ORR_OK;
    if (why == EOPNOTSUPP || why == EISDIR || why == EINVAL)
        return open_named(o, err);
    return fail_system(o->path, "create", why, err);
}

orr_code orr_output_open(const char *path, orr_output **out, orr_error *err)
{
    orr_code code;
    *out = NULL;
    orr_output *o = orr_alloc(1, sizeof *o);
    if (!o || !(o->path = orr_alloc(strlen(path) + 1, 1))) {
        orr_free(o);
        return orr_no_memory(err);
    }
    memcpy(o->path, path, strlen(path) + 1);
    o->fd = -1;
    if (strcmp(path, "-") == 0) {
        o->fd = STDOUT_FILENO;
        o->is_direct = true;
        code = ORR_OK;
    } else {
        code = open_file(o, err);
    }
    if (code || (code = start_packing(o, err))) {
        orr_output_discard(o);
        return code;
    }
    *out = o;
    return ORR_OK;
}

orr_code orr_output_open_deep(const char *path, orr_output **out, orr_error *err)
{
    char *part = orr_alloc(strlen(path) + 1, 1);
    *out = NULL;
    if (!part)
        return orr_no_memory(err);
    memcpy(part, path, strlen(path) + 1);
    for (char *slash = part; (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        (void)!mkdir(part, 0777); /* opening says what is wrong with it */
        *slash = '/';
    }
    orr_free(part);
    return orr_output_open(path, out, err);
}

/* Gives the nameless file a name that is not in use. */
static bool name_it(orr_output *o, const char *name)
{
    char self[40];
    snprintf(self, sizeof self, "/proc/self/fd/%d", o->fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
}

static orr_code put_in_place(orr_output *o, orr_error *err)
{
    struct stat old;
    if (stat(o->path, &old) == 0)
        fchmod(o->fd, old.st_mode & 07777); /* a file that is replaced keeps its permissions */
    else if (!o->has_name && name_it(o, o->path))
        return ORR_OK;
    if (!o->has_name && !(o->has_name = name_it(o, o->temporary)))
        return fail_system(o->path, "name the finished file", errno, err);
    if (rename(o->temporary, o->path))
        return fail_system(o->path, "replace", errno, err);
    o->has_name = false;
    return ORR_OK;
}

static void stop_packing(orr_output *o)
{
    if (o->is_gzip)
        deflateEnd(&o->z);
    ZSTD_freeCStream(o->zstd);
    orr_free(o->packed);
    orr_buf_fini(&o->gather);
    o->is_gzip = false;
    o->zstd = NULL;
    o->packed = NULL;
}

orr_code orr_output_settle(orr_output *o, orr_error *err)
{
    if (o->is_settled)
        return ORR_OK;
    flush_gathered(o, true);
    if (o->no_memory || o->gather.failed)
        return orr_no_memory(err);
    if (o->problem)
        return fail_system(o->path, "write", o->problem, err);
    stop_packing(o);
    o->is_settled = true;
    return ORR_OK;
}

orr_code orr_output_commit(orr_output **out, orr_error *err)
{
    orr_output *o = *out;
    *out = NULL;
    orr_code code = orr_output_settle(o, err);
    if (!code && !o->is_direct)
        code = put_in_place(o, err);
    orr_output_discard(o);
    return code;
}

void orr_output_discard(orr_output *o)
{
    if (!o)
        return;
    if (o->has_name)
        unlink(o->temporary);
    if (o->fd >= 0 && o->fd != STDOUT_FILENO)
        close(o->fd);
    stop_packing(o);
    orr_free(o->temporary);
    orr_free(o->path);
    orr_free(o);
}

orr_code orr_output_save(orr_buf *b, const char *path, orr_error *err)
{
    orr_output *o;
    if (b->failed)
        return orr_no_memory(err);
    const orr_code code = orr_output_open(path, &o, err);
    if (code)
        return code;
    orr_output_drain(o, b);
    return orr_output_commit(&o, err);
}
