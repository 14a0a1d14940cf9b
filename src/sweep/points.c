/* SPDX-License-Identifier: Apache-2.0 */
/* points.c - the points of a sweep: grid or sample, minus those refused by constraints; and the
 * command lines of one.
 *
 * A point stores only the texts of its axes; options and expressions follow from them.  A grid is
 * in the order of nested loops, the last axis fastest.  Samples come from one generator per axis,
 * so that adding an axis does not change the others. */
#include "spec.h"

#include "base/io/input.h"
#include "base/memory/sort.h"
#include "base/rng.h"
#include "base/text/number.h"
#include "base/text/text.h"

#include <orrery/lab/folders.h>

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* The identity of a point: commands, options, the contents of the files they
 * name, and the program.
 *
 * Any value that is the path of a file or folder, or a prefix of rank files, counts with its
 * content: so options that take files need not be listed here, and new ones are covered.  Files
 * named inside files are not followed; `files` in the specification adds them.  Each path is read
 * once per process. */

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
        orr_sort(*names, *count, sizeof **names, compare_words);
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

/* P of P.0.et, P.1.et, ...: does one exist? */
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
    const orr_where at = orr_where_byte(s->path, ORR_NO_BYTE);
    struct stat st;
    orr_code code = stat(path, &st) == 0 || is_prefix(s->arena, path)
                        ? orr_folder_check(path, s->path, &at, err)
                        : ORR_OK;
    if (!code)
        code = hash_path(s->arena, path, &m.hash, &m.is_file, err);
    if (code)
        return code;
    s->memo[s->memo_count] = m;
    *out = &s->memo[s->memo_count++];
    return ORR_OK;
}

/* One path, or "mine.yml:16", a machine with a number of nodes. */
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

/* The content of the files a value names; in a comma-separated list each path counts. */
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
    orr_sort(sorted, n, sizeof *sorted, compare_words);
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

enum { TRIES_PER_POINT = 10, TRIES_PER_SAMPLE = 1000 };

static size_t print_number(double v, char text[ORR_NUMBER_ROOM])
{
    if (v == floor(v) && fabs(v) < 0x1p53)
        return (size_t)snprintf(text, ORR_NUMBER_ROOM, "%.0f", v == 0 ? 0.0 : v);
    const size_t n = orr_double_text(v, text);
    text[n] = 0;
    return n;
}

const char *swp_number_text(orr_arena *a, double v)
{
    char text[ORR_NUMBER_ROOM + 1];
    const size_t n = print_number(v, text);
    return orr_arena_text(a, (orr_str){text, n});
}

/* ---- values ---- */

/* A single expression keeps its number; otherwise the pieces are concatenated. */
static orr_code fill(
    const swp_template *t, orr_arena *a, const swp_value *values, swp_value *out, orr_error *err)
{
    if (t->count == 1) {
        *out = t->pieces[0].expr ? swp_expr_evaluate(t->pieces[0].expr, values)
                                 : swp_value_of(t->pieces[0].text);
        return ORR_OK;
    }
    const char *text = "";
    for (size_t i = 0; i < t->count && text; i++) {
        orr_str more = t->pieces[i].text;
        if (t->pieces[i].expr) {
            const swp_value v = swp_expr_evaluate(t->pieces[i].expr, values);
            *out = (swp_value){.kind = SWP_NONE};
            if (v.kind == SWP_NONE)
                return ORR_OK;
            const char *number = v.kind == SWP_NUMBER ? swp_number_text(a, v.number) : NULL;
            if (v.kind == SWP_NUMBER && !number)
                return orr_no_memory(err);
            more = number ? orr_str_of(number) : v.text;
        }
        text = orr_arena_print(a, "%s%.*s", text, (int)more.len, more.ptr);
    }
    if (!text)
        return orr_no_memory(err);
    *out = swp_value_of(orr_str_of(text));
    return ORR_OK;
}

static orr_code fill_values(
    const orr_sweep *s, const char *const *texts, orr_arena *a, swp_value *values, orr_error *err)
{
    orr_code code = ORR_OK;
    for (uint32_t i = 0; i < s->name_count; i++)
        values[i] = (swp_value){.kind = SWP_NONE};
    for (uint32_t k = 0; k < s->axis_name_count; k++)
        values[s->axis_names[k]] = swp_value_of(orr_str_of(texts[k]));
    for (uint32_t k = 0; k < s->order_count && !code; k++)
        code = fill(&s->names[s->order[k]].value, a, values, &values[s->order[k]], err);
    return code;
}

/* "tp=8 pp=2" for messages. */
static void say_point(const orr_sweep *s, const char *const *texts, char *out, size_t room)
{
    size_t used = 0;
    out[0] = 0;
    for (uint32_t k = 0; k < s->axis_name_count; k++) {
        const int n = snprintf(out + used, room - used, "%s%s=%s", k ? " " : "",
                               s->names[s->axis_names[k]].name, texts[k]);
        if (n < 0 || (size_t)n >= room - used)
            break;
        used += (size_t)n;
    }
}

/* ---- constraints ---- */

typedef struct point_list {
    orr_sweep *s;
    orr_arena *scratch;
    swp_value values[SWP_MOST_NAMES];
    const char *texts[SWP_MOST_NAMES];
    char drawn[SWP_MOST_NAMES][ORR_NUMBER_ROOM + 1]; /* texts of samples, until accepted */
    size_t room;
    uint64_t tries;
    size_t last_removed; /* the constraint that refused the latest candidate */
    orr_error *err;
} point_list;

/* An option must have a value; without one a point would run something else. */
static orr_code check_names(const point_list *l)
{
    const orr_sweep *s = l->s;
    char point[160];
    for (uint32_t i = 0; i < s->name_count; i++) {
        const swp_name *n = &s->names[i];
        if (l->values[i].kind != SWP_NONE || n->is_axis || !n->target_count)
            continue;
        say_point(s, l->texts, point, sizeof point);
        return orr_fail(l->err, ORR_EINPUT, &n->where, "option '%s' has no value at %s", n->name,
                        point);
    }
    for (uint32_t i = 0; i < s->name_count; i++) {
        const swp_name *n = &s->names[i];
        const swp_value *v = &l->values[i];
        bool is_flag = false;
        for (uint32_t k = 0; k < n->target_count; k++)
            is_flag = is_flag || n->targets[k].form == ORR_SWEEP_FLAG;
        if (is_flag && !(v->kind == SWP_NUMBER && (v->number == 0 || v->number == 1)))
            return orr_fail(l->err, ORR_EINPUT, &n->where,
                            "'%s' takes no value: expected true or false", n->name);
    }
    return ORR_OK;
}

/* ORR_END: refused. */
static orr_code check_candidate(point_list *l)
{
    orr_sweep *s = l->s;
    orr_arena_reset(l->scratch);
    orr_code code = fill_values(s, l->texts, l->scratch, l->values, l->err);
    for (size_t i = 0; i < s->constraint_count && !code; i++) {
        const swp_value v = swp_expr_evaluate(s->constraints[i], l->values);
        if (v.kind != SWP_NUMBER) {
            const orr_where w = swp_expr_where(s->constraints[i]);
            char point[160];
            say_point(s, l->texts, point, sizeof point);
            return orr_fail(l->err, ORR_EINPUT, &w, "'%s' is neither true nor false at %s",
                            swp_expr_text(s->constraints[i]).ptr, point);
        }
        if (!swp_is_true(v)) {
            l->last_removed = i;
            return ORR_END;
        }
    }
    return code ? code : check_names(l);
}

/* Refused samples, possibly a thousand per point, are not stored. */
static bool keep_samples(point_list *l)
{
    bool is_kept = true;
    for (uint32_t k = 0; k < l->s->axis_name_count && is_kept; k++)
        if (l->texts[k] == l->drawn[k])
            is_kept = (l->texts[k] = orr_arena_text(l->s->arena, orr_str_of(l->drawn[k]))) != NULL;
    return is_kept;
}

static orr_code add_candidate(point_list *l)
{
    orr_sweep *s = l->s;
    const uint32_t width = s->axis_name_count;
    if (++l->tries > TRIES_PER_POINT * s->most_points)
        return orr_fail(l->err, ORR_EINPUT, NULL, "%s: more than %" PRIu64 " combinations", s->path,
                        TRIES_PER_POINT * s->most_points);
    const orr_code code = check_candidate(l);
    if (code)
        return code == ORR_END ? ORR_OK : code;
    if (s->point_count == s->most_points)
        return orr_fail(l->err, ORR_EINPUT, NULL, "%s: more than %" PRIu64 " points", s->path,
                        s->most_points);
    if (!keep_samples(l) || !orr_grow(&s->points, &l->room, (s->point_count + 1) * width + 1))
        return orr_no_memory(l->err);
    memcpy(s->points + s->point_count * width, l->texts, width * sizeof *l->texts);
    s->point_count++;
    return ORR_OK;
}

/* ---- grid ---- */

/* Where each axis begins in a point's texts. */
static void put_value(point_list *l, uint32_t axis, size_t value, uint32_t at)
{
    const swp_axis *x = &l->s->axes[axis];
    for (uint32_t k = 0; k < x->width; k++)
        l->texts[at + k] = x->values[value * x->width + k];
}

static orr_code list_grid(point_list *l)
{
    orr_sweep *s = l->s;
    size_t at[SWP_MOST_NAMES] = {0};
    uint32_t first[SWP_MOST_NAMES], place = 0;
    for (uint32_t i = 0; i < s->axis_count; i++) {
        first[i] = place;
        place += s->axes[i].width;
        put_value(l, i, 0, first[i]);
    }
    for (;;) {
        const orr_code code = add_candidate(l);
        if (code)
            return code;
        uint32_t i = s->axis_count;
        while (i && ++at[i - 1] == s->axes[i - 1].count) {
            at[i - 1] = 0;
            put_value(l, i - 1, 0, first[i - 1]);
            i--;
        }
        if (!i)
            return ORR_OK;
        put_value(l, i - 1, at[i - 1], first[i - 1]);
    }
}

/* ---- samples ---- */

/* A position in [0, 1) on an axis. */
static void put_sample(point_list *l, uint32_t axis, double u, uint32_t at)
{
    const swp_axis *x = &l->s->axes[axis];
    if (x->count) {
        size_t i = (size_t)(u * (double)x->count);
        put_value(l, axis, i < x->count ? i : x->count - 1, at);
        return;
    }
    double v = x->is_log ? x->from * pow(x->to / x->from, u) : x->from + (x->to - x->from) * u;
    if (x->is_whole) /* each integer gets an equal share */
        v = x->is_log ? nearbyint(v) : floor(x->from + (x->to - x->from + 1) * u);
    print_number(v, l->drawn[at]);
    l->texts[at] = l->drawn[at];
}

static orr_code list_random(point_list *l, orr_rng *rngs)
{
    orr_sweep *s = l->s;
    const uint64_t most = s->samples * TRIES_PER_SAMPLE;
    for (uint64_t t = 0; s->point_count < s->samples && t < most; t++) {
        for (uint32_t i = 0, at = 0; i < s->axis_count; at += s->axes[i++].width)
            put_sample(l, i, orr_rng_double(&rngs[i]), at);
        const orr_code code = add_candidate(l);
        if (code)
            return code;
    }
    return ORR_OK;
}

/* Each axis is cut into as many equal parts as there are samples, and each part is used once
 * (McKay, Beckman, Conover 1979). */
static orr_code list_latin(point_list *l, orr_rng *rngs)
{
    orr_sweep *s = l->s;
    const size_t n = s->samples;
    uint32_t *parts = orr_arena_new(s->arena, n * s->axis_count, uint32_t);
    if (!parts)
        return orr_no_memory(l->err);
    for (uint32_t i = 0; i < s->axis_count; i++) {
        uint32_t *p = parts + i * n;
        for (size_t k = 0; k < n; k++)
            p[k] = (uint32_t)k;
        for (size_t k = n; k > 1; k--) {
            const size_t other = orr_rng_below(&rngs[i], k);
            const uint32_t v = p[k - 1];
            p[k - 1] = p[other];
            p[other] = v;
        }
    }
    for (size_t k = 0; k < n; k++) {
        for (uint32_t i = 0, at = 0; i < s->axis_count; at += s->axes[i++].width) {
            const double u = (parts[i * n + k] + orr_rng_double(&rngs[i])) / (double)n;
            put_sample(l, i, u, at);
        }
        const orr_code code = add_candidate(l);
        if (code)
            return code;
    }
    return ORR_OK;
}

static orr_code list_samples(point_list *l)
{
    orr_sweep *s = l->s;
    orr_rng rngs[SWP_MOST_NAMES];
    for (uint32_t i = 0; i < s->axis_count; i++)
        orr_rng_init(&rngs[i], s->seed, i);
    return s->method == SWP_LATIN ? list_latin(l, rngs) : list_random(l, rngs);
}

orr_code swp_points_list(orr_sweep *s, orr_error *err)
{
    point_list l = {.s = s, .scratch = orr_arena_create(), .err = err};
    if (!l.scratch)
        return orr_no_memory(err);
    orr_code code = s->method == SWP_GRID ? list_grid(&l) : list_samples(&l);
    orr_arena_destroy(l.scratch);
    if (code || s->point_count)
        return code;
    const orr_where w = swp_expr_where(s->constraints[l.last_removed]);
    return orr_fail(
        err, ORR_EINPUT, &w,
        "no point is left of %" PRIu64 " combinations: this constraint removes the last", l.tries);
}

/* ---- command lines ---- */

static bool is_left_out(swp_value v)
{
    return v.kind == SWP_TEXT && (orr_str_is(v.text, "null") || orr_str_is(v.text, "~"));
}

static const char *value_text(orr_arena *a, swp_value v)
{
    return v.text.ptr ? orr_arena_text(a, v.text) : swp_number_text(a, v.number);
}

/* The arguments of a step that names give, by place. */
static orr_code add_arguments(const orr_sweep *s,
                              uint32_t step,
                              const swp_value *values,
                              orr_arena *a,
                              const char **words,
                              size_t *count,
                              orr_error *err)
{
    for (uint32_t place = 0; place < SWP_MOST_NAMES; place++)
        for (uint32_t i = 0; i < s->name_count; i++)
            for (uint32_t k = 0; k < s->names[i].target_count; k++) {
                const swp_target *t = &s->names[i].targets[k];
                if (t->step != step || t->form != ORR_SWEEP_ARGUMENT || t->place != place ||
                    is_left_out(values[i]))
                    continue;
                if (!(words[(*count)++] = value_text(a, values[i])))
                    return orr_no_memory(err);
            }
    return ORR_OK;
}

static orr_code add_options(const orr_sweep *s,
                            uint32_t step,
                            const swp_value *values,
                            orr_arena *a,
                            const char **words,
                            size_t *count,
                            orr_error *err)
{
    for (uint32_t i = 0; i < s->name_count; i++)
        for (uint32_t k = 0; k < s->names[i].target_count; k++) {
            const swp_target *t = &s->names[i].targets[k];
            const char *word = NULL;
            if (t->step != step || t->form == ORR_SWEEP_ARGUMENT || is_left_out(values[i]))
                continue;
            if (t->form == ORR_SWEEP_FLAG && !swp_is_true(values[i]))
                continue;
            if (t->form == ORR_SWEEP_FLAG) {
                word = orr_arena_print(a, "--%s", t->option);
            } else {
                const char *text = value_text(a, values[i]);
                word = text ? orr_arena_print(a, "--%s=%s", t->option, text) : NULL;
            }
            if (!word)
                return orr_no_memory(err);
            words[(*count)++] = word;
        }
    return ORR_OK;
}

orr_code swp_point_steps(const orr_sweep *s,
                         size_t point,
                         orr_arena *a,
                         orr_sweep_step steps[SWP_MOST_STEPS],
                         orr_error *err)
{
    swp_value values[SWP_MOST_NAMES];
    orr_code code = fill_values(s, s->points + point * s->axis_name_count, a, values, err);
    for (uint32_t i = 0; i < s->step_count && !code; i++) {
        size_t count = 0, most = s->steps[i].word_count + s->argument_count;
        for (uint32_t k = 0; k < s->name_count; k++)
            most += s->names[k].target_count;
        const char **words = orr_arena_new(a, most + 1, const char *);
        if (!words)
            return orr_no_memory(err);
        for (size_t k = 0; k < s->steps[i].word_count; k++)
            words[count++] = s->steps[i].words[k];
        code = add_arguments(s, i, values, a, words, &count, err);
        for (size_t k = 0; i == 0 && k < s->argument_count && !code; k++) {
            swp_value v;
            code = fill(&s->arguments[k], a, values, &v, err);
            if (!code && v.kind == SWP_NONE)
                code = orr_fail(err, ORR_EINPUT, NULL, "an argument has no value");
            if (!code && !(words[count++] = value_text(a, v)))
                code = orr_no_memory(err);
        }
        if (!code)
            code = add_options(s, i, values, a, words, &count, err);
        steps[i] = (orr_sweep_step){s->steps[i].command, words, count, s->rows_count > 0};
    }
    return code;
}
