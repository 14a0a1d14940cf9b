/* SPDX-License-Identifier: Apache-2.0 */
/* set_find.c - which files make up a set: a file, a prefix, a directory.
 *
 * Rank files are called PREFIX.<rank>.et, as simulators expect (also .eg, .json, .jsonl, and any of
 * these with .gz or .zst).  The ranks of a prefix must be 0 to n - 1 without a gap: a missing file
 * is far more often an accident than intended. */
#include "set_impl.h"

#include "base/memory/sort.h"
#include "base/short_forms.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

typedef struct found {
    orr_str prefix; /* of the name, without the folder; all of it when there is no rank */
    uint64_t rank;
    bool has_rank;
    char *name;
} found;

typedef struct folder {
    found *files;
    size_t count, room;
} folder;

static orr_code fail_path(const char *path, orr_error *err, const char *what)
{
    return orr_fail(err, ORR_EIO, ORR_AT(orr_where_byte(path, ORR_NO_BYTE)), "%s", what);
}

static bool strip_tail(orr_str *s, const char *tail)
{
    const size_t n = strlen(tail);
    if (s->len <= n || memcmp(s->ptr + s->len - n, tail, n) != 0)
        return false;
    s->len -= n;
    return true;
}

/* A name without its extensions; false when it is not the name of a trace. */
static bool strip_extension(orr_str *name)
{
    if (!strip_tail(name, ".gz"))
        strip_tail(name, ".zst");
    return strip_tail(name, ".et") || strip_tail(name, ".eg") || strip_tail(name, ".jsonl") ||
           strip_tail(name, ".json");
}

/* The ".<digits>" at the end of a name. */
static void split_rank(found *f)
{
    size_t at = f->prefix.len;
    uint64_t rank = 0, unit = 1;
    while (at && f->prefix.ptr[at - 1] >= '0' && f->prefix.ptr[at - 1] <= '9' &&
           unit < 10000000000u) {
        at--;
        rank += unit * (uint64_t)(f->prefix.ptr[at] - '0');
        unit *= 10;
    }
    if (at == f->prefix.len || at < 2 || f->prefix.ptr[at - 1] != '.')
        return;
    f->prefix.len = at - 1;
    f->rank = rank;
    f->has_rank = true;
}

static int compare_text(orr_str a, orr_str b)
{
    const int c = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
    return c ? c : (a.len < b.len ? -1 : a.len > b.len);
}

static int compare_found(const void *p, const void *q)
{
    const found *a = p, *b = q;
    const int c =
        a->has_rank != b->has_rank ? (a->has_rank ? -1 : 1) : compare_text(a->prefix, b->prefix);
    if (c)
        return c;
    return a->rank != b->rank ? (a->rank < b->rank ? -1 : 1) : strcmp(a->name, b->name);
}

static orr_code note_name(folder *d, orr_arena *arena, const char *name, orr_error *err)
{
    orr_str stem = orr_str_of(name);
    if (name[0] == '.' || !strip_extension(&stem))
        return ORR_OK;
    char *copy = orr_arena_text(arena, orr_str_of(name));
    if (!copy || !orr_grow(&d->files, &d->room, d->count + 1))
        return orr_no_memory(err);
    found f = {.prefix = {copy, stem.len}, .name = copy};
    split_rank(&f);
    d->files[d->count++] = f;
    return ORR_OK;
}

static orr_code list_folder(const char *path, orr_arena *arena, folder *d, orr_error *err)
{
    DIR *dir = opendir(path);
    if (!dir)
        return fail_path(path, err, strerror(errno));
    orr_code code = ORR_OK;
    struct dirent *e;
    while (!code && (e = readdir(dir)))
        code = note_name(d, arena, e->d_name, err);
    closedir(dir);
    if (!code && d->count)
        orr_sort(d->files, d->count, sizeof *d->files, compare_found);
    return code;
}

static orr_code add_path(orr__file_list *list,
                         const char *folder_path,
                         const char *name,
                         orr_error *err)
{
    const size_t n = strlen(folder_path);
    const char *slash = n && folder_path[n - 1] != '/' ? "/" : "";
    char *path = orr_arena_print(list->arena, "%s%s%s", folder_path, slash, name);
    if (!path || !orr_grow(&list->paths, &list->room, list->count + 1))
        return orr_no_memory(err);
    list->paths[list->count++] = path;
    return ORR_OK;
}

/* PREFIX.json, beside PREFIX.0.et, PREFIX.1.et, ... */
static orr_code note_groups(orr__file_list *list,
                            const char *folder_path,
                            orr_str prefix,
                            orr_error *err)
{
    const size_t n = strlen(folder_path);
    const char *slash = n && folder_path[n - 1] != '/' ? "/" : "";
    list->groups = orr_arena_print(list->arena, "%s%s%.*s.json", folder_path, slash,
                                   (int)prefix.len, prefix.ptr);
    return list->groups ? ORR_OK : orr_no_memory(err);
}

static bool is_json_name(const found *f)
{
    return strstr(f->name, ".json") != NULL;
}

/* Users keep the JSON text of a trace beside it; then the trace is meant. */
static bool is_text_of_previous(const found *f, size_t i)
{
    return i && f[i].rank == f[i - 1].rank && is_json_name(&f[i]) && !is_json_name(&f[i - 1]);
}

static orr_code refuse_rank(
    const char *folder_path, const found *f, size_t i, uint64_t rank, orr_error *err)
{
    const orr_where w = orr_where_byte(folder_path, ORR_NO_BYTE);
    const unsigned long long found_rank = f[i].rank, wanted = rank;
    if (i && f[i].rank == f[i - 1].rank)
        return orr_fail(err, ORR_EUSAGE, &w, "rank %llu has two files: %s and %s", found_rank,
                        f[i - 1].name, f[i].name);
    return orr_fail(err, ORR_EIO, &w, "rank %llu of %.*s has no file, but rank %llu has one: %s",
                    wanted, (int)f[i].prefix.len, f[i].prefix.ptr, found_rank, f[i].name);
}

/* One group of equal prefixes: its ranks must be 0, 1, 2, ... */
static orr_code add_ranks(
    orr__file_list *list, const char *folder_path, const found *f, size_t count, orr_error *err)
{
    orr_code code = ORR_OK;
    uint64_t rank = 0;
    for (size_t i = 0; i < count && !code; i++) {
        if (is_text_of_previous(f, i))
            continue;
        if (f[i].rank != rank)
            return refuse_rank(folder_path, f, i, rank, err);
        rank++;
        code = add_path(list, folder_path, f[i].name, err);
    }
    return code ? code : note_groups(list, folder_path, f[0].prefix, err);
}

static size_t run_length(const folder *d, size_t at)
{
    size_t n = 1;
    while (at + n < d->count && d->files[at + n].has_rank &&
           compare_text(d->files[at].prefix, d->files[at + n].prefix) == 0)
        n++;
    return n;
}

/* A directory: the one prefix it holds, or all trace files in the order of their names. */
static orr_code take_folder(const char *path, const folder *d, orr__file_list *list, orr_error *err)
{
    if (d->count == 0)
        return fail_path(path, err, "no trace files in this directory (NAME.<rank>.et or NAME.et)");
    if (d->files[0].has_rank) {
        const size_t n = run_length(d, 0);
        if (n == d->count || !d->files[n].has_rank)
            return add_ranks(list, path, d->files, n, err);
        return orr_fail(
            err, ORR_EUSAGE, ORR_AT(orr_where_byte(path, ORR_NO_BYTE)),
            "holds several sets (%.*s, %.*s, ...): name one of them, as in DIRECTORY/%.*s",
            (int)d->files[0].prefix.len, d->files[0].prefix.ptr, (int)d->files[n].prefix.len,
            d->files[n].prefix.ptr, (int)d->files[0].prefix.len, d->files[0].prefix.ptr);
    }
    orr_code code = ORR_OK;
    for (size_t i = 0; i < d->count && !code; i++)
        code = add_path(list, path, d->files[i].name, err);
    return code;
}

/* ---- a prefix that does not exist: suggest one ---- */

enum { MOST_NAMED = 3, MOST_LETTERS = 64 };

/* Letters and digits in lower case: oneCommNode and one_comm_node match. */
static size_t letters_of(orr_str s, char out[MOST_LETTERS])
{
    size_t n = 0;
    for (size_t i = 0; i < s.len && n < MOST_LETTERS; i++) {
        const char c = s.ptr[i];
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'))
            out[n++] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    return n;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edit distance. */
static size_t distance(orr_str a, orr_str b)
{
    char x[MOST_LETTERS], y[MOST_LETTERS];
    const size_t n = letters_of(a, x), m = letters_of(b, y);
    size_t row[MOST_LETTERS + 1];
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            const size_t above = row[j];
            row[j] = least(corner + (x[i - 1] != y[j - 1]), least(row[j - 1], above) + 1);
            corner = above;
        }
    }
    return row[m];
}

typedef struct near_prefix {
    orr_str name;
    size_t distance;
} near_prefix;

static orr_code refuse_prefix(const char *path, orr_str prefix, const folder *d, orr_error *err)
{
    static const char none[] =
        "no such file, and no files of that prefix (PREFIX.0.et, PREFIX.1.et, ...)";
    near_prefix near[MOST_NAMED + 1];
    size_t count = 0;
    for (size_t i = 0; i < d->count && d->files[i].has_rank; i += run_length(d, i)) {
        const near_prefix one = {d->files[i].prefix, distance(prefix, d->files[i].prefix)};
        size_t at = count;
        for (; at && near[at - 1].distance > one.distance; at--)
            near[at] = near[at - 1];
        near[at] = one;
        count = least(count + 1, MOST_NAMED);
    }
    if (count == 0)
        return fail_path(path, err, none);
    for (size_t i = count; i < MOST_NAMED; i++)
        near[i].name = (orr_str){"", 0};
    return orr_fail(err, ORR_EIO, ORR_AT(orr_where_byte(path, ORR_NO_BYTE)),
                    "%s; nearest here: %.*s%s%.*s%s%.*s", none, (int)near[0].name.len,
                    near[0].name.ptr, count > 1 ? ", " : "", (int)near[1].name.len,
                    near[1].name.ptr, count > 2 ? ", " : "", (int)near[2].name.len,
                    near[2].name.ptr);
}

static orr_code take_prefix(const char *path,
                            const char *folder_path,
                            const folder *d,
                            orr__file_list *list,
                            orr_error *err)
{
    const char *slash = strrchr(path, '/');
    orr_str prefix = orr_str_of(slash ? slash + 1 : path);
    if (prefix.len && prefix.ptr[prefix.len - 1] == '.')
        prefix.len--;
    for (size_t i = 0; i < d->count && d->files[i].has_rank; i++)
        if (compare_text(d->files[i].prefix, prefix) == 0)
            return add_ranks(list, folder_path, d->files + i, run_length(d, i), err);
    return refuse_prefix(path, prefix, d, err);
}

bool orr__is_orr(orr_span head)
{
    static const uint8_t magic[8] = {0x89, 'O', 'R', 'R', '\r', '\n', 0x1a, '\n'};
    return head.len >= 8 && memcmp(head.ptr, magic, 8) == 0;
}

/* NAME.et alone has its groups in NAME.json; one file of several ranks, and JSON, has none. */
static orr_code note_groups_of_file(const char *path, orr__file_list *list, orr_error *err)
{
    const char *slash = strrchr(path, '/');
    found f = {.prefix = orr_str_of(slash ? slash + 1 : path)};
    if (!strip_extension(&f.prefix))
        return ORR_OK;
    split_rank(&f);
    f.name = orr_arena_text(list->arena, orr_str_of(path));
    if (!f.name)
        return orr_no_memory(err);
    if (f.has_rank || is_json_name(&f))
        return ORR_OK;
    return note_groups(list, "", (orr_str){path, (size_t)(f.prefix.ptr - path) + f.prefix.len},
                       err);
}

static orr_code take_file(const char *path, orr__file_list *list, orr_error *err)
{
    orr_stream *s = NULL;
    orr_span head;
    orr_code code = orr_stream_open(path, &s, err);
    if (!code && !(code = orr_stream_peek(s, 8, &head, err)))
        list->is_orr = orr__is_orr(head);
    list->stream = s;
    if (code || (code = add_path(list, "", path, err)) || list->is_orr || strcmp(path, "-") == 0)
        return code;
    return note_groups_of_file(path, list, err);
}

orr_code orr__set_find_files(const char *path, orr__file_list *list, orr_error *err)
{
    struct stat st;
    folder d = {0};
    orr_code code;
    if (!(list->arena = orr_arena_create()))
        return orr_no_memory(err);
    if (strcmp(path, "-") == 0)
        return take_file(path, list, err);
    const bool is_there = stat(path, &st) == 0;
    if (is_there && !S_ISDIR(st.st_mode))
        return take_file(path, list, err);
    if (is_there) {
        code = list_folder(path, list->arena, &d, err);
        if (!code)
            code = take_folder(path, &d, list, err);
    } else {
        const char *slash = strrchr(path, '/');
        const char *folder_path =
            slash ? orr_arena_text(list->arena, (orr_str){path, (size_t)(slash - path) + 1}) : "";
        code = folder_path ? list_folder(*folder_path ? folder_path : ".", list->arena, &d, err)
                           : orr_no_memory(err);
        if (code == ORR_EIO)
            code = fail_path(path, err, "no such file or directory");
        if (!code)
            code = take_prefix(path, folder_path, &d, list, err);
    }
    orr_free(d.files);
    return code;
}
