/* SPDX-License-Identifier: Apache-2.0 */
/* named_folders.c - the one rule for files that inputs name (orrery/lab/folders.h).
 *
 * A path is resolved first: ".." and symbolic links lead out of a folder as well as a path from the
 * root does.  Of a file that is not there yet, or of a prefix of files, the folder is resolved.
 * What has no folder either cannot be opened, and opening it says so better.  The root is never
 * meant by a file that happens to lie there: it must be allowed by name. Who can exchange links
 * while we run is not kept out. Cost: a few system calls for each file. */
#include "base/memory/memory.h"

#include <orrery/lab/folders.h>

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_ROOM = PATH_MAX };

/* The user's list is the same for all that a process reads, and readers share no object that could
 * carry it. */
static struct {
    pthread_mutex_t lock;
    char **list; /* resolved */
    size_t count, room;
} folders = {.lock = PTHREAD_MUTEX_INITIALIZER};

static orr_code add_folder(const char *resolved, orr_error *err)
{
    pthread_mutex_lock(&folders.lock);
    size_t i = 0;
    while (i < folders.count && strcmp(folders.list[i], resolved) != 0)
        i++;
    bool ok = i < folders.count;
    if (!ok && orr_grow(&folders.list, &folders.room, folders.count + 1)) {
        const size_t n = strlen(resolved) + 1;
        char *copy = orr_alloc(1, n);
        ok = copy != NULL;
        if (ok)
            folders.list[folders.count++] = memcpy(copy, resolved, n);
    }
    pthread_mutex_unlock(&folders.lock);
    return ok ? ORR_OK : orr_no_memory(err);
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The folder of a path, resolved; false: it has none. */
static bool folder_of(const char *path, char out[PATH_ROOM])
{
    char folder[PATH_ROOM];
    const char *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) : 0;
    if (n >= sizeof folder)
        return false;
    memcpy(folder, path, n);
    folder[n] = 0;
    return realpath(!slash ? "." : n ? folder : "/", out) != NULL;
}

/* In or below; both are resolved. */
static bool is_inside(const char *path, const char *folder)
{
    const size_t n = strlen(folder);
    if (n == 1)
        return true; /* the root */
    return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == 0);
}

orr_code orr_folder_allow(const char *folder, orr_error *err)
{
    char resolved[PATH_ROOM];
    if (!realpath(folder, resolved))
        return orr_fail(err, ORR_EUSAGE, NULL, "%s cannot be a folder to allow: %s", folder,
                        strerror(errno));
    if (!is_folder(resolved))
        return orr_fail(err, ORR_EUSAGE, NULL, "%s cannot be a folder to allow: it is a file",
                        folder);
    return add_folder(resolved, err);
}

/* The folder of a path, open, and the last word of the path. */
static DIR *open_folder_of(const char *path, char folder[PATH_ROOM], const char **word)
{
    const char *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) + 1 : 0;
    *word = path + n;
    if (n >= PATH_ROOM)
        return NULL;
    memcpy(folder, path, n);
    folder[n] = 0;
    return opendir(n ? folder : ".");
}

/* The next file of a rank that the prefix stands for, PREFIX.N.et with any extension; NULL: no
 * more. */
static const char *next_of_prefix(DIR *folder, const char *word)
{
    const size_t n = strlen(word);
    const struct dirent *e;
    while (n && (e = readdir(folder)))
        if (strncmp(e->d_name, word, n) == 0 && e->d_name[n] == '.' && e->d_name[n + 1] >= '0' &&
            e->d_name[n + 1] <= '9')
            return e->d_name;
    return NULL;
}

static bool begins_files(const char *path)
{
    char folder[PATH_ROOM];
    const char *word;
    DIR *const d = open_folder_of(path, folder, &word);
    const bool is_prefix = d && next_of_prefix(d, word);
    if (d)
        closedir(d);
    return is_prefix;
}

orr_code orr_folder_named(const char *path, orr_error *err)
{
    char resolved[PATH_ROOM];
    struct stat st;
    const bool is_there = stat(path, &st) == 0;
    if (is_there && S_ISDIR(st.st_mode))
        return realpath(path, resolved) && strcmp(resolved, "/") != 0 ? add_folder(resolved, err)
                                                                      : ORR_OK;
    /* A pipe or a device names no other files.  A word without a slash that is not a file is just a
     * word. */
    if (is_there ? !S_ISREG(st.st_mode) : !strchr(path, '/') && !begins_files(path))
        return ORR_OK;
    return folder_of(path, resolved) && strcmp(resolved, "/") != 0 ? add_folder(resolved, err)
                                                                   : ORR_OK;
}

static bool is_in_list(const char *resolved)
{
    bool is_in = false;
    pthread_mutex_lock(&folders.lock);
    for (size_t i = 0; i < folders.count && !is_in; i++)
        is_in = is_inside(resolved, folders.list[i]);
    pthread_mutex_unlock(&folders.lock);
    return is_in;
}

static bool is_in_environment(const char *resolved)
{
    const char *at = getenv("ORRERY_ALLOW_FOLDERS");
    char folder[PATH_ROOM], real[PATH_ROOM];
    while (at && *at) {
        const size_t n = strcspn(at, ":");
        if (n && n < sizeof folder) {
            memcpy(folder, at, n);
            folder[n] = 0;
            if (realpath(folder, real) && is_inside(resolved, real))
                return true;
        }
        at += n + (at[n] == ':');
    }
    return false;
}

static bool is_beside(const char *resolved, const char *from)
{
    char folder[PATH_ROOM];
    struct stat st;
    return stat(from, &st) == 0 && S_ISREG(st.st_mode) && folder_of(from, folder) &&
           strcmp(folder, "/") != 0 && is_inside(resolved, folder);
}

/* Where the path leads; *folder: what must be allowed for it.  False: nowhere. */
static bool resolve(const char *path, char out[PATH_ROOM], char folder[PATH_ROOM])
{
    const char *slash = strrchr(path, '/');
    if (realpath(path, out)) {
        if (!is_folder(out))
            return folder_of(out, folder);
        memcpy(folder, out, strlen(out) + 1);
        return true;
    }
    struct stat st;
    if (lstat(path, &st) == 0) { /* a dangling link: where it would be created is unknown */
        out[0] = 0;
        snprintf(folder, PATH_ROOM, "the folder it leads to");
        return true;
    }
    if (!folder_of(path, folder))
        return false;
    const char *name = slash ? slash + 1 : path;
    const size_t n = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
    if (n + 1 + strlen(name) + 1 > PATH_ROOM)
        return false;
    memcpy(out, folder, n);
    out[n] = '/';
    memcpy(out + n + 1, name, strlen(name) + 1);
    return true;
}

/* Each of a prefix's files may be a link. */
static orr_code check_files(const char *prefix,
                            const char *from,
                            const orr_where *at,
                            orr_error *err)
{
    char folder[PATH_ROOM], path[PATH_ROOM];
    const char *word, *name;
    DIR *const d = open_folder_of(prefix, folder, &word);
    orr_code code = ORR_OK;
    while (d && !code && (name = next_of_prefix(d, word))) {
        struct stat st;
        const int n = snprintf(path, sizeof path, "%s%s", folder, name);
        if (n > 0 && (size_t)n < sizeof path && lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
            code = orr_folder_check(path, from, at, err);
    }
    if (d)
        closedir(d);
    return code;
}

orr_code orr_folder_check(const char *path, const char *from, const orr_where *at, orr_error *err)
{
    char resolved[PATH_ROOM], folder[PATH_ROOM];
    if (strcmp(path, "-") == 0)
        return orr_fail(err, ORR_EINPUT, at,
                        "names standard input or output, which only a command line may");
    if (strcmp(path, "/dev/null") == 0 || !resolve(path, resolved, folder) ||
        is_beside(resolved, from) || is_in_list(resolved) || is_in_environment(resolved))
        return check_files(path, from, at, err);
    return orr_fail(
        err, ORR_EINPUT, at,
        "names %.90s, which is outside the folders that the command line names; if that is meant: "
        "--allow-folder %.90s",
        path, folder);
}
