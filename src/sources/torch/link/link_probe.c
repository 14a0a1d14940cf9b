/* SPDX-License-Identifier: Apache-2.0 */
/* link_probe.c - what a file is, by what is in it: a host trace, a device trace, or neither.
 *
 * Names tell nothing for certain: every script has its own.  Both kinds say what they are in their first members,
 * and both name the process they were recorded in, which is what pairs them.
 * Cost: a few thousand bytes of each file (all of it when it is compressed). */
#include "link_job.h"

#include "base/text/number.h"
#include "base/text/text.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { EVENTS_MAX = 4096 }; /* to look through for one that names its process */

typedef struct prober {
    orr_json *j;
    link_file *f;
    bool is_done;
} prober;

static orr_code take_pid(prober *p, orr_error *err)
{
    orr_json_value v;
    int64_t pid;
    const orr_code code = orr_json_load(p->j, &v, err);
    if (!code && !orr_json_get_i64(v, &pid, NULL))
        p->f->pid = pid;
    return code;
}

static bool is_host_event(orr_json_value event)
{
    orr_json_value v;
    orr_str cat;
    return orr_json_find(event, "cat", &v) && !orr_json_get_str(v, &cat, NULL) &&
           (orr_str_is(cat, "cpu_op") || orr_str_is(cat, "user_annotation"));
}

/* Until the first event of the host side, which is of the process itself. */
static orr_code look_at_events(prober *p, orr_error *err)
{
    orr_json_item item;
    orr_json_value event, v;
    orr_code code = orr_json_enter(p->j, err);
    p->f->kind = LINK_FILE_DEVICE;
    p->is_done = true;
    for (int i = 0; i < EVENTS_MAX && !code && !(code = orr_json_next(p->j, &item, err)); i++) {
        if ((code = orr_json_load(p->j, &event, err)) || !is_host_event(event) ||
            !orr_json_find(event, "pid", &v) || orr_json_get_i64(v, &p->f->pid, NULL))
            continue;
        break;
    }
    return code == ORR_END ? ORR_OK : code;
}

static orr_code look_at_member(prober *p, const orr_json_item *item, orr_error *err)
{
    if (orr_str_is(item->key, "traceEvents") && item->type == ORR_JSON_ARRAY)
        return look_at_events(p, err);
    if (orr_str_is(item->key, "pid") && item->type == ORR_JSON_INT)
        return take_pid(p, err);
    if (orr_str_is(item->key, "schemaVersion") || orr_str_is(item->key, "deviceProperties"))
        p->f->kind = LINK_FILE_DEVICE;
    if (orr_str_is(item->key, "nodes") && item->type == ORR_JSON_ARRAY) {
        p->f->kind = LINK_FILE_HOST;
        p->is_done = true;
    }
    return ORR_OK;
}

static orr_code look(prober *p, orr_error *err)
{
    orr_json_item item;
    orr_code code = orr_json_next(p->j, &item, err);
    if (code)
        return code == ORR_END ? ORR_OK : code;
    if (item.type == ORR_JSON_ARRAY)
        return look_at_events(p, err);
    if (item.type != ORR_JSON_OBJECT)
        return ORR_OK;
    code = orr_json_enter(p->j, err);
    while (!code && !p->is_done && !(code = orr_json_next(p->j, &item, err)))
        code = look_at_member(p, &item, err);
    return code == ORR_END ? ORR_OK : code;
}

static bool looks_like_json(orr_span bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        const uint8_t c = bytes.ptr[i];
        if (c != ' ' && c != '\n' && c != '\t' && c != '\r')
            return c == '{' || c == '[' || c == 0xEF;
    }
    return false;
}

/* A damaged file of a kind that is known is left to the reader of that kind, whose words are better. */
static orr_code probe_file(link_file *f, orr_error *err)
{
    orr_input *in;
    prober p = {.f = f};
    orr_code code = orr_input_open(f->path, &in, err);
    if (code)
        return code;
    if (looks_like_json(orr_input_bytes(in))) {
        code = orr_json_open(orr_input_bytes(in), f->path, &p.j, err);
        if (!code && (code = look(&p, err)) == ORR_EINPUT && f->kind != LINK_FILE_OTHER)
            code = ORR_OK;
    }
    orr_json_close(p.j);
    orr_input_close(in);
    return code;
}

static orr_code keep_file(orr_link_job *job, const link_file *f, orr_error *err)
{
    if (!orr_grow(&job->files, &job->file_room, job->file_count + 1))
        return orr_no_memory(err);
    job->files[job->file_count++] = *f;
    return ORR_OK;
}

static bool is_pipe(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
}

/* A file that the user named must be one of the two kinds. */
static orr_code probe_named(orr_link_job *job, const char *path, orr_error *err)
{
    link_file f = {.path = orr_arena_text(job->arena, orr_str_of(path)),
                         .pid = KIN_NO_NUMBER};
    if (!f.path)
        return orr_no_memory(err);
    if (strcmp(path, "-") == 0)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "standard input can be read only once: traces must be files");
    if (is_pipe(path))
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "%s: a pipe can be read only once: traces must be files", path);
    const orr_code code = probe_file(&f, err);
    if (code)
        return code;
    const orr_where at = orr_where_line(path, 1, 1);
    if (f.kind == LINK_FILE_OTHER)
        return orr_fail(
            err, ORR_EINPUT, &at,
            "neither a host trace (an object with nodes) nor a device trace (one with traceEvents)");
    return keep_file(job, &f, err);
}

/* ---- folders ---- */

static int by_path(const void *a, const void *b)
{
    return strcmp(((const link_file *)a)->path, ((const link_file *)b)->path);
}

static bool is_regular(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* In a folder anything may lie; what is not one of the two kinds is passed over.  What cannot be read may be one: a
 * rank without its file, or with one of its two, would be a wrong job. */
static orr_code probe_entry(orr_link_job *job, const char *folder, const char *name, orr_error *err)
{
    link_file f = {.path = orr_arena_print(job->arena, "%s/%s", folder, name),
                         .pid = KIN_NO_NUMBER};
    if (!f.path)
        return orr_no_memory(err);
    if (name[0] == '.' || !is_regular(f.path))
        return ORR_OK;
    const orr_code code = probe_file(&f, err);
    if (code)
        return code;
    return f.kind == LINK_FILE_OTHER ? ORR_OK : keep_file(job, &f, err);
}

static orr_code probe_folder(orr_link_job *job, const char *path, orr_error *err)
{
    const orr_where at = orr_where_byte(path, ORR_NO_BYTE);
    const size_t before = job->file_count;
    DIR *dir = opendir(path);
    orr_code code = ORR_OK;
    struct dirent *e;
    if (!dir)
        return orr_fail(err, ORR_EIO, &at, "cannot open: %s", strerror(errno));
    while (!code && (e = readdir(dir)))
        code = probe_entry(job, path, e->d_name, err);
    closedir(dir);
    if (code)
        return code;
    if (job->file_count == before)
        return orr_fail(err, ORR_EINPUT, &at, "no host trace and no device trace in this folder");
    qsort(job->files + before, job->file_count - before, sizeof *job->files, by_path);
    return ORR_OK;
}

orr_code link_probe_path(orr_link_job *job, const char *path, orr_error *err)
{
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return probe_folder(job, path, err);
    return probe_named(job, path, err);
}
