/* SPDX-License-Identifier: Apache-2.0 */
/* identity.c - what makes two points the same: commands, options, the contents of the files they
 * name, and the program.
 *
 * Any value that is the path of a file or a folder, or the prefix of the files of ranks, counts with
 * its content: which options take files need not be listed here, and a new one is not forgotten.
 * Files that such a file names in turn are not followed; `files` in the specification adds them.
 * Each path is read once per process. */
#include "figures.h"

#include "base/io/input.h"
#include "base/text/text.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

struct swp_file_memo {
    const char *path;
    orr_content_hash hash;
    bool is_file;
};

enum { DEEPEST_FOLDER = 32 };

static void add_hash(orr_buf *to, orr_content_hash h)
{
    char text[ORR_CONTENT_HASH_ROOM];
    orr_buf_text(to, orr_content_hash_text(h, text));
    orr_buf_byte(to, '\n');
}

static orr_code hash_file(const char *path, orr_content_hash *out, orr_error *err)
{
    orr_input *in;
    const orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    *out = orr_content_hash_of(orr_input_bytes(in));
    orr_input_close(in);
    return ORR_OK;
}

static int compare_words(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names in a folder that begin and end like this, sorted; from the arena. */
static orr_code list_folder(orr_arena *a,
                            const char *folder,
                            const char *prefix,
                            const char *ending,
                            const char ***names,
                            size_t *count,
                            orr_error *err)
{
    const orr_where w = orr_where_line(folder, 0, 0);
    size_t room = 0;
    DIR *d = opendir(folder);
    *names = NULL;
    *count = 0;
    if (!d)
        return orr_fail(err, ORR_EIO, &w, "cannot read: %s", strerror(errno));
    orr_code code = ORR_OK;
    for (struct dirent *e; !code && (e = readdir(d));) {
        const char *name = e->d_name;
        if (name[0] == '.' || strncmp(name, prefix, strlen(prefix)) != 0 ||
            !orr_text_ends(name, ending))
            continue;
        const char *copy = orr_arena_text(a, orr_str_of(name));
        if (!copy || !orr_grow(names, &room, *count + 1))
            code = orr_no_memory(err);
        else
            (*names)[(*count)++] = copy;
    }
    closedir(d);
    if (*count)
        qsort(*names, *count, sizeof **names, compare_words);
    return code;
}

/* The contents of those files, and of all in the folders among them. */
static orr_code hash_folder(orr_arena *a,
                            const char *folder,
                            const char *prefix,
                            const char *ending,
                            unsigned depth,
                            orr_buf *to,
                            orr_error *err)
{
    const char **names;
    size_t count;
    orr_code code = list_folder(a, folder, prefix, ending, &names, &count, err);
    for (size_t i = 0; i < count && !code; i++) {
        struct stat st;
        orr_content_hash h;
        const char *path = orr_arena_print(a, "%s/%s", folder, names[i]);
        if (!path)
            code = orr_no_memory(err);
        if (code || stat(path, &st) != 0)
            continue;
        orr_buf_text(to, names[i]);
        orr_buf_byte(to, 0);
        if (S_ISDIR(st.st_mode) && depth < DEEPEST_FOLDER)
            code = hash_folder(a, path, "", "", depth + 1, to, err);
        else if (S_ISREG(st.st_mode) && !(code = hash_file(path, &h, err)))
            add_hash(to, h);
    }
    orr_free(names);
    return code;
}

/* P of P.0.et, P.1.et, ...: is there one? */
static bool is_prefix(orr_arena *a, const char *path)
{
    struct stat st;
    const char *first = orr_arena_print(a, "%s.0.et", path);
    return first && stat(first, &st) == 0;
}

static orr_code hash_path(
    orr_arena *a, const char *path, orr_content_hash *out, bool *is_file, orr_error *err)
{
    struct stat st;
    orr_buf all = {0};
    orr_code code = ORR_OK;
    *is_file = true;
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
        return hash_file(path, out, err);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        code = hash_folder(a, path, "", "", 0, &all, err);
    } else if (is_prefix(a, path)) {
        const char *slash = strrchr(path, '/');
        const char *folder =
            slash ? orr_arena_text(a, (orr_str){path, (size_t)(slash - path) + 1}) : ".";
        if (!folder)
            return orr_no_memory(err);
        code = hash_folder(a, folder, slash ? slash + 1 : path, ".et", 0, &all, err);
    } else {
        *is_file = false;
        return ORR_OK;
    }
    *out = orr_content_hash_of((orr_span){all.ptr, all.len});
    if (!code && all.failed)
        code = orr_no_memory(err);
    orr_buf_fini(&all);
    return code;
}

static orr_code find_content(orr_sweep *s,
                             const char *path,
                             const struct swp_file_memo **out,
                             orr_error *err)
{
    for (size_t i = 0; i < s->memo_count; i++)
        if (strcmp(s->memo[i].path, path) == 0) {
            *out = &s->memo[i];
            return ORR_OK;
        }
    struct swp_file_memo m = {.path = orr_arena_text(s->arena, orr_str_of(path))};
    if (!m.path || !orr_grow(&s->memo, &s->memo_room, s->memo_count + 1))
        return orr_no_memory(err);
    const orr_code code = hash_path(s->arena, path, &m.hash, &m.is_file, err);
    if (code)
        return code;
    s->memo[s->memo_count] = m;
    *out = &s->memo[s->memo_count++];
    return ORR_OK;
}

/* One path, or "mine.yml:16", a machine of so many nodes. */
static orr_code add_path(orr_sweep *s, orr_arena *a, orr_str path, orr_buf *to, orr_error *err)
{
    const struct swp_file_memo *m;
    const char *text = orr_arena_text(a, path);
    if (!text)
        return orr_no_memory(err);
    orr_code code = *text ? find_content(s, text, &m, err) : ORR_END;
    if (!code && m->is_file)
        add_hash(to, m->hash);
    const char *colon = strrchr(text, ':');
    if (code || m->is_file || !colon || colon == text ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1))
        return code == ORR_END ? ORR_OK : code;
    return add_path(s, a, (orr_str){text, (size_t)(colon - text)}, to, err);
}

/* The content of what a value names; a comma-separated list of paths counts with each. */
static orr_code add_content(
    orr_sweep *s, orr_arena *a, const char *value, orr_buf *to, orr_error *err)
{
    const size_t before = to->len;
    orr_code code = add_path(s, a, orr_str_of(value), to, err);
    if (code || to->len > before || !strchr(value, ','))
        return code;
    for (const char *at = value; !code && *at;) {
        const size_t len = strcspn(at, ",");
        code = add_path(s, a, (orr_str){at, len}, to, err);
        at += len + (at[len] == ',');
    }
    return code;
}

static orr_code add_step(
    orr_sweep *s, orr_arena *a, const orr_sweep_step *step, orr_buf *to, orr_error *err)
{
    orr_code code = ORR_OK;
    const char **sorted = orr_arena_new(a, step->word_count + 1, const char *);
    size_t n = 0;
    if (!sorted)
        return orr_no_memory(err);
    orr_buf_text(to, step->command);
    orr_buf_byte(to, 0);
    for (size_t i = 0; i < step->word_count && !code; i++) {
        if (strncmp(step->words[i], "--", 2) == 0) {
            sorted[n++] = step->words[i];
            continue;
        }
        orr_buf_text(to, step->words[i]);
        orr_buf_byte(to, 0);
        code = add_content(s, a, step->words[i], to, err);
    }
    qsort(sorted, n, sizeof *sorted, compare_words);
    for (size_t i = 0; i < n && !code; i++) {
        const char *value = strchr(sorted[i], '=');
        orr_buf_text(to, sorted[i]);
        orr_buf_byte(to, 0);
        if (value)
            code = add_content(s, a, value + 1, to, err);
    }
    orr_buf_byte(to, 1);
    return code;
}

orr_code swp_point_hash(
    orr_sweep *s, size_t point, orr_arena *a, orr_content_hash *out, orr_error *err)
{
    orr_sweep_step steps[SWP_MOST_STEPS];
    orr_buf all = {0};
    orr_code code = swp_point_steps(s, point, a, steps, err);
    orr_buf_text(&all, s->hooks->program);
    orr_buf_byte(&all, 0);
    for (uint32_t i = 0; i < s->step_count && !code; i++)
        code = add_step(s, a, &steps[i], &all, err);
    swp_rows_identify(s, &all);
    for (size_t i = 0; i < s->file_count && !code; i++) {
        const struct swp_file_memo *m;
        code = find_content(s, s->files[i], &m, err);
        if (!code && !m->is_file) {
            const orr_where w = orr_where_line(s->files[i], 0, 0);
            code =
                orr_fail(err, ORR_EINPUT, &w, "no such file (named under 'files' in %s)", s->path);
        }
        if (!code)
            add_hash(&all, m->hash);
    }
    if (!code && all.failed)
        code = orr_no_memory(err);
    if (!code)
        *out = orr_content_hash_of((orr_span){all.ptr, all.len});
    orr_buf_fini(&all);
    return code;
}

orr_content_hash swp_spec_hash(orr_sweep *s, bool *has_failed)
{
    orr_buf all = {0};
    for (uint32_t i = 0; i < s->step_count; i++) {
        orr_buf_text(&all, s->steps[i].command);
        orr_buf_byte(&all, ' ');
        for (size_t k = 0; k < s->steps[i].word_count; k++) {
            orr_buf_text(&all, s->steps[i].words[k]);
            orr_buf_byte(&all, 0);
        }
    }
    for (size_t i = 0; i < s->argument_count; i++)
        for (size_t k = 0; k < s->arguments[i].count; k++)
            orr_buf_add(&all, s->arguments[i].pieces[k].text.ptr,
                        s->arguments[i].pieces[k].text.len);
    for (uint32_t i = 0; i < s->name_count; i++) {
        const swp_name *n = &s->names[i];
        orr_buf_text(&all, n->name);
        orr_buf_byte(&all, n->is_axis ? 1 : 2);
        for (size_t k = 0; k < n->value.count; k++)
            orr_buf_add(&all, n->value.pieces[k].text.ptr, n->value.pieces[k].text.len);
    }
    swp_rows_identify(s, &all);
    for (size_t i = 0; i < s->point_count * s->axis_name_count; i++) {
        orr_buf_text(&all, s->points[i]);
        orr_buf_byte(&all, 0);
    }
    *has_failed = all.failed;
    const orr_content_hash h = orr_content_hash_of((orr_span){all.ptr, all.len});
    orr_buf_fini(&all);
    return h;
}

orr_code orr_sweep_file_hash(const char *path, char out[33], orr_error *err)
{
    orr_content_hash h;
    const orr_code code = hash_file(path, &h, err);
    if (!code)
        orr_content_hash_text(h, out);
    return code;
}
