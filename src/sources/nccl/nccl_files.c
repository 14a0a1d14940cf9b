/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_files.c - which exports there are, in which order, and from which node each of them is.
 *
 * The order of files decides how ranks are numbered, so it is that of their paths, byte by byte, and not the
 * directory's.  Symbolic links to folders are not followed: there could be circles. */
#include "nccl_impl.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEEPEST = 64 };

static const char ending[] = ".sqlite";

static size_t digits_at(orr_str s, size_t at)
{
    size_t n = 0;
    while (at + n < s.len && s.ptr[at + n] >= '0' && s.ptr[at + n] <= '9')
        n++;
    return n;
}

static bool stands_at(orr_str s, size_t at, const char *word)
{
    const size_t n = strlen(word);
    return at + n <= s.len && memcmp(s.ptr + at, word, n) == 0;
}

/* profile_<job>_<node>_<rank>.sqlite, from `at` to the end. */
static bool is_profile(orr_str name, size_t at, orr_str *node)
{
    orr_str found = {0};
    if (!stands_at(name, at, "profile"))
        return false;
    at += strlen("profile");
    for (int field = 0; field < 3; field++) {
        const size_t n = stands_at(name, at, "_") ? digits_at(name, at + 1) : 0;
        if (n == 0)
            return false;
        if (field == 1)
            found = (orr_str){.ptr = name.ptr + at + 1, .len = n};
        at += 1 + n;
    }
    if (!stands_at(name, at, ending) || at + strlen(ending) != name.len)
        return false;
    *node = found;
    return true;
}

orr_str nccl_node_of_file(orr_str name)
{
    orr_str node = {.ptr = "0", .len = 1};
    for (size_t at = 0; at < name.len; at++) {
        const size_t n = stands_at(name, at, "nid") ? digits_at(name, at + 3) : 0;
        if (n)
            return (orr_str){.ptr = name.ptr + at + 3, .len = n};
    }
    for (size_t at = 0; at < name.len; at++)
        if (is_profile(name, at, &node))
            return node;
    return node;
}

static orr_code cannot_read(const char *path, orr_error *err)
{
    const orr_where at = orr_where_line(path, 0, 0);
    return orr_fail(err, ORR_EIO, &at, "%s", strerror(errno));
}

static orr_code add_file(nccl_job *j, const char *path, orr_error *err)
{
    const char *slash = strrchr(path, '/');
    nccl_file f = {.path = orr_arena_text(j->arena, orr_str_of(path))};
    if (!f.path ||
        !orr_intern_add(j->texts, nccl_node_of_file(orr_str_of(slash ? slash + 1 : path)),
                        &f.node) ||
        !orr_grow(&j->files.at, &j->files.room, j->files.count + 1))
        return orr_no_memory(err);
    if (j->files.count >= (1u << 20))
        return orr_fail(err, ORR_EINPUT, NULL, "more than 1,048,576 files");
    j->files.at[j->files.count++] = f;
    return ORR_OK;
}

static bool ends_well(const char *name)
{
    const size_t n = strlen(name), m = strlen(ending);
    return n >= m && strcmp(name + n - m, ending) == 0;
}

static orr_code walk(nccl_job *j, const char *folder, int depth, orr_error *err);

static orr_code visit(nccl_job *j, const char *folder, const char *name, int depth, orr_error *err)
{
    struct stat s;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return ORR_OK;
    const size_t n = strlen(folder);
    const char *between = n && folder[n - 1] == '/' ? "" : "/";
    const char *path = orr_arena_print(j->arena, "%s%s%s", folder, between, name);
    if (!path)
        return orr_no_memory(err);
    if (lstat(path, &s) != 0)
        return cannot_read(path, err);
    if (S_ISDIR(s.st_mode))
        return depth < DEEPEST ? walk(j, path, depth + 1, err) : ORR_OK;
    return ends_well(name) ? add_file(j, path, err) : ORR_OK;
}

static orr_code walk(nccl_job *j, const char *folder, int depth, orr_error *err)
{
    DIR *dir = opendir(folder);
    orr_code code = ORR_OK;
    if (!dir)
        return cannot_read(folder, err);
    for (struct dirent *e; !code && (e = readdir(dir));)
        code = visit(j, folder, e->d_name, depth, err);
    closedir(dir);
    return code;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const nccl_file *)a)->path, ((const nccl_file *)b)->path);
}

orr_code nccl_job_find_files(nccl_job *j, const char *const *paths, size_t count, orr_error *err)
{
    for (size_t i = 0; i < count; i++) {
        struct stat s;
        const size_t before = j->files.count;
        if (stat(paths[i], &s) != 0)
            return cannot_read(paths[i], err);
        const orr_code code =
            S_ISDIR(s.st_mode) ? walk(j, paths[i], 0, err) : add_file(j, paths[i], err);
        if (code)
            return code;
        if (j->files.count == before) {
            const orr_where at = orr_where_line(paths[i], 0, 0);
            return orr_fail(err, ORR_EINPUT, &at, "no file that ends in %s is in it", ending);
        }
    }
    qsort(j->files.at, j->files.count, sizeof *j->files.at, by_path);
    j->report->files = (uint32_t)j->files.count;
    return ORR_OK;
}
