/* SPDX-License-Identifier: Apache-2.0 */
/* log_file.c - append-only log files, with rotation.
 *
 * A log that grows from run to run cannot appear as a whole, as files of output.h do: it is written
 * with O_APPEND in blocks of 64 KiB, so that two programs can share it.  A log that starts empty is
 * an orr_output.  Rotation renames the oldest file first. */
#include "base/io/output.h"
#include "base/short_forms.h"
#include "config_logging.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GATHER = 1 << 16 };

struct orr_log_file {
    orr_log_file_options opt;
    orr_arena *arena, *scratch;
    char *path;
    orr_output *whole; /* used instead of fd by logs that start empty */
    int fd;
    uint64_t size; /* including bytes not yet written */
    orr_buf gather;
    int problem; /* errno of the first failure */
    const char *attempt;
};

static orr_code fail_system(const orr_log_file *f, orr_error *err)
{
    return orr_fail(err, ORR_EIO, ORR_AT(orr_where_byte(f->path, ORR_NO_BYTE)), "cannot %s: %s",
                    f->attempt, strerror(f->problem));
}

static void note_problem(orr_log_file *f, const char *attempt)
{
    if (f->problem)
        return;
    f->problem = errno;
    f->attempt = attempt;
}

/* Offset of the file name in a path. */
static size_t name_at(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

char *orr_path_insert(orr_arena *a, const char *path, const char *text)
{
    const char *name = path + name_at(path);
    const char *dot = strrchr(name, '.');
    const bool has_end = dot && dot != name && dot[1]; /* ".log" and "log." have no extension */
    const size_t stem = has_end ? (size_t)(dot - path) : strlen(path);
    return orr_arena_print(a, "%.*s%s%s", (int)stem, path, text, path + stem);
}

static void make_folders(orr_log_file *f)
{
    for (char *slash = strchr(f->path, '/'); slash; slash = strchr(slash + 1, '/')) {
        if (slash == f->path)
            continue;
        *slash = '\0';
        const bool is_there = mkdir(f->path, 0777) == 0 || errno == EEXIST;
        *slash = '/';
        if (!is_there)
            note_problem(f, "make the folder");
    }
}

/* ---- one file ---- */

static void open_end(orr_log_file *f, int more)
{
    struct stat st;
    const bool is_stderr = strcmp(f->path, "/dev/stderr") == 0;
    f->fd = is_stderr ? dup(STDERR_FILENO)
                      : open(f->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | more, 0666);
    if (f->fd < 0 || fstat(f->fd, &st))
        note_problem(f, "open");
    else
        f->size = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

static void write_gathered(orr_log_file *f)
{
    const uint8_t *p = f->gather.ptr;
    size_t left = f->gather.len;
    while (left && !f->problem) {
        const ssize_t done = write(f->fd, p, left);
        if (done < 0 && errno != EINTR)
            note_problem(f, "write");
        if (done > 0) {
            p += done;
            left -= (size_t)done;
        }
    }
    f->gather.len = 0;
}

/* ---- rotation ---- */

/* Rename run.log to run.1.log, replacing an existing one.  A missing source is fine. */
static void move_one(orr_log_file *f, uint64_t i)
{
    char number[32], before[32];
    snprintf(number, sizeof number, ".%llu", (unsigned long long)i);
    snprintf(before, sizeof before, ".%llu", (unsigned long long)(i - 1));
    const char *to = orr_path_insert(f->scratch, f->path, number);
    const char *from = i > 1 ? orr_path_insert(f->scratch, f->path, before) : f->path;
    if (!from || !to)
        f->gather.failed = true;
    else if (rename(from, to) && errno != ENOENT)
        note_problem(f, "move the full file aside");
    orr_arena_reset(f->scratch);
}

static void turn_over(orr_log_file *f)
{
    write_gathered(f);
    close(f->fd);
    f->fd = -1;
    for (uint64_t i = f->opt.max_files; i > 0 && !f->problem; i--)
        move_one(f, i);
    if (!f->problem && !f->gather.failed)
        open_end(f, O_TRUNC);
}

/* ---- interface ---- */

static orr_code discard(orr_log_file *f, orr_code code)
{
    orr_output_discard(f->whole);
    if (f->fd >= 0)
        close(f->fd);
    orr_buf_fini(&f->gather);
    orr_arena_destroy(f->arena);
    orr_arena_destroy(f->scratch);
    orr_free(f);
    return code;
}

orr_code orr_log_file_open(const char *path,
                           const orr_log_file_options *opt,
                           orr_log_file **out,
                           orr_error *err)
{
    *out = NULL;
    orr_log_file *f = orr_alloc(1, sizeof *f);
    if (!f)
        return orr_no_memory(err);
    f->fd = -1;
    f->opt = opt ? *opt : (orr_log_file_options){0};
    f->arena = orr_arena_create();
    f->scratch = orr_arena_create();
    f->path = f->arena ? orr_arena_text(f->arena, orr_str_of(path)) : NULL;
    if (!f->path || !f->scratch)
        return discard(f, orr_no_memory(err));
    make_folders(f);
    if (!f->problem && f->opt.truncates) {
        const char *name = strcmp(path, "-") == 0 ? "./-" : path; /* the file "-", not standard
                                                                   * output */
        const orr_code code = orr_output_open(name, &f->whole, err);
        if (code)
            return discard(f, code);
    } else if (!f->problem) {
        open_end(f, 0);
    }
    if (f->problem)
        return discard(f, fail_system(f, err));
    *out = f;
    return ORR_OK;
}

void orr_log_file_add(orr_log_file *f, orr_str line)
{
    if (f->whole) {
        orr_output_add(f->whole, line.ptr, line.len);
        return;
    }
    if (f->problem || f->gather.failed)
        return;
    const uint64_t room = f->opt.max_size > f->size ? f->opt.max_size - f->size : 0;
    if (f->opt.max_size && f->size && line.len > room)
        turn_over(f);
    orr_buf_add(&f->gather, line.ptr, line.len);
    f->size += line.len;
    if (f->gather.len > GATHER)
        write_gathered(f);
}

orr_code orr_log_file_close(orr_log_file **out, orr_error *err)
{
    orr_log_file *f = *out;
    orr_code code = ORR_OK;
    *out = NULL;
    if (f->whole)
        return discard(f, orr_output_commit(&f->whole, err));
    write_gathered(f);
    if (f->gather.failed)
        code = orr_no_memory(err);
    else if (f->problem)
        code = fail_system(f, err);
    return discard(f, code);
}
