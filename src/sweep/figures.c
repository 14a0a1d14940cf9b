/* SPDX-License-Identifier: Apache-2.0 */
/* figures.c - numbers, texts and booleans of a point under dotted names, and rows of its lists.
 *
 * Lists of a result have hundreds of rows (ranks, links) where a table has one row per point.  What
 * is not asked for by `rows` costs one pass over the list per member of its first row. */
#include "figures.h"

#include "base/formats/json.h"
#include "base/formats/yaml_fields.h"
#include "base/text/number.h"
#include "base/text/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PATH_MOST = 400, DEEPEST_OBJECT = 16, MOST_MEMBERS = 64, LONGEST_LIST = 16 };

typedef enum rows_take {
    TAKE_MAX, /* of each number, each on its own */
    TAKE_MIN,
    TAKE_MEAN,
    TAKE_SUM,
    TAKE_LARGEST, /* the row in which `by` is largest, whole */
    TAKE_SMALLEST,
    TAKE_ROW /* by its number; from the end below 0 */
} rows_take;

static const char *const take_words[] = {"max", "min", "mean", "sum", "largest", "smallest", NULL};

/* "slowest: {of: per_rank, where: EXPR, take: largest finished_at_ns}" */
struct swp_rows {
    const char *name, *of;
    const char *take_text;
    swp_expr *where; /* NULL: every row */
    orr_str where_names[SWP_MOST_NAMES];
    uint32_t where_count;
    rows_take take;
    const char *by;
    int64_t row;
};

/* ---- the specification ---- */

static orr_code fail_at(orr_yaml_value v, orr_error *err, const char *what)
{
    const orr_where w = orr_yaml_where(v);
    return orr_fail(err, ORR_EINPUT, &w, "%s", what);
}

static orr_code read_take(orr_sweep *s, orr_yaml_value v, struct swp_rows *r, orr_error *err)
{
    const char *text = r->take_text = orr_arena_text(s->arena, orr_yaml_text(v));
    if (!text)
        return orr_no_memory(err);
    if (orr_text_i64(orr_str_of(text), &r->row)) {
        r->take = TAKE_ROW;
        return ORR_OK;
    }
    for (unsigned i = 0; take_words[i]; i++) {
        const size_t n = strlen(take_words[i]);
        const bool needs_name = i == TAKE_LARGEST || i == TAKE_SMALLEST;
        if (strncmp(text, take_words[i], n) != 0 || text[n] != (needs_name ? ' ' : 0))
            continue;
        r->take = (rows_take)i;
        r->by = text + n + strspn(text + n, " ");
        if (needs_name && !*r->by)
            break;
        return ORR_OK;
    }
    return fail_at(v, err,
                   "take: expected max, min, mean, sum, largest NAME, smallest NAME, or the number "
                   "of a row (0: the first, -1: the last)");
}

static orr_code read_where(orr_sweep *s, orr_yaml_value v, struct swp_rows *r, orr_error *err)
{
    const orr_where w = swp_text_place(s, v);
    if (orr_yaml_type_of(v) != ORR_YAML_SCALAR)
        return fail_at(v, err, "where: expected an expression");
    const orr_code code = swp_expr_parse(orr_yaml_text(v), &w, &r->where, err);
    return code
               ? code
               : swp_expr_bind_open(r->where, r->where_names, SWP_MOST_NAMES, &r->where_count, err);
}

static orr_code read_entry(
    orr_sweep *s, orr_yaml_value key, orr_yaml_value v, struct swp_rows *r, orr_error *err)
{
    static const char *const allowed[] = {"of", "where", "take", NULL};
    orr_yaml_value x;
    const orr_str name = orr_yaml_text(key);
    if (orr_yaml_type_of(key) != ORR_YAML_SCALAR || !name.len)
        return fail_at(key, err, "expected a name");
    orr_code code = orr_yaml_check_keys(v, allowed, err);
    if (!code)
        code = orr_yaml_need(v, "of", &x, err);
    if (code)
        return code;
    if (orr_yaml_type_of(x) != ORR_YAML_SCALAR || !orr_yaml_text(x).len)
        return fail_at(x, err, "of: expected the dotted name of a list, as per_rank");
    r->name = orr_arena_text(s->arena, name);
    r->of = orr_arena_text(s->arena, orr_yaml_text(x));
    r->take_text = "max";
    if (!r->name || !r->of)
        return orr_no_memory(err);
    for (uint32_t i = 0; i < s->rows_count; i++)
        if (strcmp(s->rows[i].name, r->name) == 0)
            return fail_at(key, err, "this name is given twice");
    if (orr_yaml_find(v, "take", &x))
        code = read_take(s, x, r, err);
    return !code && orr_yaml_find(v, "where", &x) ? read_where(s, x, r, err) : code;
}

orr_code swp_rows_read(orr_sweep *s, orr_yaml_value root, orr_error *err)
{
    orr_yaml_value map;
    orr_code code = ORR_OK;
    if (!orr_yaml_find(root, "rows", &map))
        return ORR_OK;
    if (orr_yaml_type_of(map) != ORR_YAML_MAP)
        return fail_at(map, err, "rows: expected names, each with its 'of'");
    const uint32_t n = orr_yaml_count(map);
    if (n > SWP_MOST_NAMES)
        return fail_at(map, err, "too many rows");
    s->rows = orr_arena_zeroed(s->arena, n + 1, sizeof *s->rows);
    if (!s->rows)
        return orr_no_memory(err);
    for (uint32_t i = 0; i < n && !code; i++) {
        struct swp_rows *r = &s->rows[i];
        code = read_entry(s, orr_yaml_key(map, i), orr_yaml_item(map, i), r, err);
        s->rows_count++; /* also of one that failed: it may hold an expression */
    }
    return code;
}

void swp_rows_fini(orr_sweep *s)
{
    for (uint32_t i = 0; i < s->rows_count; i++)
        swp_expr_free(s->rows[i].where);
}

void swp_rows_identify(const orr_sweep *s, orr_buf *to)
{
    for (uint32_t i = 0; i < s->rows_count; i++) {
        const struct swp_rows *r = &s->rows[i];
        const orr_str where = r->where ? swp_expr_text(r->where) : (orr_str){"", 0};
        orr_buf_print(to, "rows %s of %s take %s where %.*s", r->name, r->of, r->take_text,
                      (int)where.len, where.ptr);
        orr_buf_byte(to, 0);
    }
}

/* ---- values ---- */

static bool is_number(orr_json_value v)
{
    return orr_json_type_of(v) == ORR_JSON_INT || orr_json_type_of(v) == ORR_JSON_REAL;
}

static bool is_plain(orr_json_value v)
{
    const orr_json_type t = orr_json_type_of(v);
    return t != ORR_JSON_OBJECT && t != ORR_JSON_ARRAY && t != ORR_JSON_NULL;
}

static bool read_number(orr_json_value v, double *out)
{
    return is_number(v) && orr_json_get_double(v, out, NULL) == ORR_OK;
}

static swp_value value_of(orr_json_value v)
{
    swp_value out = {.kind = SWP_NONE};
    orr_str text;
    bool yes;
    if (read_number(v, &out.number)) {
        out.kind = isfinite(out.number) ? SWP_NUMBER : SWP_NONE;
    } else if (orr_json_type_of(v) == ORR_JSON_BOOL && !orr_json_get_bool(v, &yes, NULL)) {
        out = (swp_value){.kind = SWP_NUMBER, .number = yes};
    } else if (orr_json_type_of(v) == ORR_JSON_STRING && !orr_json_get_str(v, &text, NULL)) {
        out = (swp_value){.kind = SWP_TEXT, .text = text};
    }
    return out;
}

/* ---- rows that are asked for ---- */

typedef struct figures {
    const orr_sweep *s;
    orr_json_writer w;
    char path[PATH_MOST + 8];
    bool is_found[SWP_MOST_NAMES]; /* the lists of `rows` */
} figures;

static bool is_wanted(const struct swp_rows *r, orr_json_value row)
{
    swp_value values[SWP_MOST_NAMES];
    if (orr_json_type_of(row) != ORR_JSON_OBJECT)
        return false;
    if (!r->where)
        return true;
    for (uint32_t i = 0; i < r->where_count; i++)
        values[i] = (swp_value){.kind = SWP_NONE};
    orr_json_value v;
    orr_str key;
    orr_json_iter members = orr_json_iterate(row);
    while (orr_json_next_member(&members, &key, &v))
        for (uint32_t i = 0; i < r->where_count; i++)
            if (orr_str_equal(key, r->where_names[i]))
                values[i] = value_of(v);
    return swp_is_true(swp_expr_evaluate(r->where, values));
}

static void put_row(figures *f, const char *name, orr_json_value row)
{
    orr_json_value v;
    orr_str key;
    orr_json_iter members = orr_json_iterate(row);
    while (orr_json_next_member(&members, &key, &v)) {
        if (!is_plain(v))
            continue;
        snprintf(f->path, PATH_MOST, "%.100s.%.*s", name, (int)key.len, key.ptr);
        orr_json_key(&f->w, f->path);
        orr_json_raw_text(&f->w, orr_json_raw(v));
    }
}

/* The row that is taken whole; false: there is none. */
static bool pick_row(const struct swp_rows *r,
                     orr_json_value list,
                     size_t count,
                     orr_json_value *out)
{
    orr_json_iter rows = orr_json_iterate(list);
    orr_json_value row, v;
    const int64_t place = r->row < 0 ? r->row + (int64_t)count : r->row;
    double best = 0;
    bool has_one = false;
    for (int64_t i = 0; orr_json_next_value(&rows, &row);) {
        double x;
        if (!is_wanted(r, row))
            continue;
        if (r->take == TAKE_ROW && i++ == place) {
            *out = row;
            return true;
        }
        if (r->take == TAKE_ROW || !orr_json_find(row, r->by, &v) || !read_number(v, &x) ||
            (has_one && (r->take == TAKE_LARGEST ? x <= best : x >= best)))
            continue;
        best = x;
        *out = row;
        has_one = true;
    }
    return has_one;
}

typedef struct tally {
    double most, least, sum;
    orr_str most_text, least_text;
    uint64_t count;
} tally;

static tally count_member(const struct swp_rows *r, orr_json_value list, const char *name)
{
    tally t = {0};
    orr_json_iter rows = orr_json_iterate(list);
    orr_json_value row, v;
    double x;
    while (orr_json_next_value(&rows, &row)) {
        if ((r && !is_wanted(r, row)) || !orr_json_find(row, name, &v) || !read_number(v, &x))
            continue;
        if (!t.count || x > t.most) {
            t.most = x;
            t.most_text = orr_json_raw(v);
        }
        if (!t.count || x < t.least) {
            t.least = x;
            t.least_text = orr_json_raw(v);
        }
        t.sum += x;
        t.count++;
    }
    return t;
}

static void put_number(orr_json_writer *w, double v)
{
    if (v == floor(v) && fabs(v) < 0x1p53)
        orr_json_i64(w, (int64_t)v);
    else
        orr_json_double(w, v);
}

/* One figure per member of the list's first object. */
static void put_members(
    figures *f, const struct swp_rows *r, rows_take take, const char *prefix, orr_json_value list)
{
    orr_json_value first, v;
    orr_str key;
    orr_json_iter rows = orr_json_iterate(list);
    if (!orr_json_next_value(&rows, &first) || orr_json_type_of(first) != ORR_JSON_OBJECT)
        return;
    char start[PATH_MOST];
    const size_t len = (size_t)snprintf(start, sizeof start, "%s", prefix);
    orr_json_iter members = orr_json_iterate(first);
    for (int n = 0; n < MOST_MEMBERS && orr_json_next_member(&members, &key, &v); n++) {
        const int more = snprintf(f->path, PATH_MOST, "%s%.*s", start, (int)key.len, key.ptr);
        if (more < 0 || more >= PATH_MOST)
            continue;
        const tally t = count_member(r, list, f->path + len);
        if (!t.count)
            continue;
        orr_json_key(&f->w, f->path);
        if (take == TAKE_MAX)
            orr_json_raw_text(&f->w, t.most_text);
        else if (take == TAKE_MIN)
            orr_json_raw_text(&f->w, t.least_text);
        else
            put_number(&f->w, take == TAKE_SUM ? t.sum : t.sum / (double)t.count);
    }
}

static void put_rows(figures *f, const struct swp_rows *r, orr_json_value list)
{
    orr_json_iter rows = orr_json_iterate(list);
    orr_json_value row;
    size_t count = 0;
    char prefix[PATH_MOST];
    while (orr_json_next_value(&rows, &row))
        count += is_wanted(r, row);
    snprintf(prefix, sizeof prefix, "%.100s.", r->name);
    snprintf(f->path, PATH_MOST, "%.100s.row_count", r->name);
    orr_json_put_u64(&f->w, f->path, count);
    if (r->take < TAKE_LARGEST)
        put_members(f, r, r->take, prefix, list);
    else if (pick_row(r, list, count, &row))
        put_row(f, r->name, row);
}

/* ---- flat ---- */

/* Of a short list of numbers both ends; of texts, as warnings are, how many and the first. */
static void put_plain_list(figures *f, size_t len, orr_json_value list)
{
    orr_json_iter items = orr_json_iterate(list);
    orr_json_value v, first, least = list, most = list;
    double x, low = 0, high = 0;
    const uint32_t count = orr_json_count(list);
    bool are_numbers = count > 0;
    for (uint32_t i = 0; orr_json_next_value(&items, &v); i++) {
        if (i == 0)
            first = v;
        if (!read_number(v, &x)) {
            are_numbers = false;
            continue;
        }
        if (i == 0 || x < low) {
            low = x;
            least = v;
        }
        if (i == 0 || x > high) {
            high = x;
            most = v;
        }
    }
    if (are_numbers && count <= LONGEST_LIST) {
        snprintf(f->path + len, PATH_MOST - len, "min");
        orr_json_key(&f->w, f->path);
        orr_json_raw_text(&f->w, orr_json_raw(least));
        snprintf(f->path + len, PATH_MOST - len, "max");
        orr_json_key(&f->w, f->path);
        orr_json_raw_text(&f->w, orr_json_raw(most));
    } else if (count && orr_json_type_of(first) == ORR_JSON_STRING) {
        snprintf(f->path + len, PATH_MOST - len, "count");
        orr_json_put_u64(&f->w, f->path, count);
        snprintf(f->path + len, PATH_MOST - len, "first");
        orr_json_key(&f->w, f->path);
        orr_json_raw_text(&f->w, orr_json_raw(first));
    }
    f->path[len] = 0;
}

/* f->path ends in a dot at len. */
static void put_list(figures *f, size_t len, orr_json_value list)
{
    char prefix[PATH_MOST + 8];
    orr_json_iter items = orr_json_iterate(list);
    orr_json_value first;
    if (!orr_json_next_value(&items, &first))
        return;
    if (orr_json_type_of(first) != ORR_JSON_OBJECT) {
        put_plain_list(f, len, list);
        return;
    }
    memcpy(prefix, f->path, len);
    prefix[len - 1] = 0;
    for (uint32_t i = 0; i < f->s->rows_count; i++)
        if (strcmp(f->s->rows[i].of, prefix) == 0) {
            put_rows(f, &f->s->rows[i], list);
            f->is_found[i] = true;
        }
    snprintf(prefix + len - 1, sizeof prefix - len + 1, ".max.");
    put_members(f, NULL, TAKE_MAX, prefix, list);
}

static bool is_about_the_file(orr_str key)
{
    return orr_str_is(key, "format") || orr_str_is(key, "version") || orr_str_is(key, "provenance");
}

static void put_object(figures *f, size_t len, orr_json_value object, int depth)
{
    orr_json_value v;
    orr_str key;
    orr_json_iter members = orr_json_iterate(object);
    while (orr_json_next_member(&members, &key, &v)) {
        if (depth == 0 && is_about_the_file(key))
            continue;
        const int n = snprintf(f->path + len, PATH_MOST - len, "%.*s", (int)key.len, key.ptr);
        if (n < 0 || (size_t)n + 1 >= PATH_MOST - len)
            continue;
        if (is_plain(v)) {
            orr_json_key(&f->w, f->path);
            orr_json_raw_text(&f->w, orr_json_raw(v));
            continue;
        }
        char here[PATH_MOST + 8];
        size_t deeper = len + (size_t)n;
        f->path[deeper++] = '.';
        f->path[deeper] = 0;
        memcpy(here, f->path, len);
        if (orr_json_type_of(v) == ORR_JSON_OBJECT && depth < DEEPEST_OBJECT)
            put_object(f, deeper, v, depth + 1);
        else if (orr_json_type_of(v) == ORR_JSON_ARRAY)
            put_list(f, deeper, v);
        memcpy(f->path, here, len);
    }
    f->path[len] = 0;
}

static orr_code flatten_step(figures *f, uint32_t step, const orr_buf *json, orr_error *err)
{
    orr_json *j;
    orr_json_value root;
    const char *command = f->s->steps[step].command;
    if (json->failed)
        return orr_no_memory(err);
    if (!json->len)
        return ORR_OK; /* a command without figures */
    const bool is_last = step + 1 == f->s->step_count;
    orr_code code = orr_json_open((orr_span){json->ptr, json->len}, command, &j, err);
    if (code)
        return code;
    code = orr_json_only(j, &root, err);
    const size_t len = is_last ? 0 : (size_t)snprintf(f->path, PATH_MOST, "%.60s.", command);
    if (!code && orr_json_type_of(root) == ORR_JSON_OBJECT)
        put_object(f, len, root, 0);
    orr_json_close(j);
    return code;
}

orr_code swp_figures_flatten(const orr_sweep *s,
                             const orr_buf json[SWP_MOST_STEPS],
                             orr_buf *to,
                             orr_error *err)
{
    figures f = {.s = s};
    orr_code code = ORR_OK;
    to->len = 0;
    orr_json_writer_init(&f.w, to, NULL);
    orr_json_begin_object(&f.w);
    for (uint32_t i = 0; i < s->step_count && !code; i++)
        code = flatten_step(&f, i, &json[i], err);
    for (uint32_t i = 0; i < s->rows_count; i++)
        if (!f.is_found[i]) {
            snprintf(f.path, PATH_MOST, "%.100s.row_count", s->rows[i].name);
            orr_json_put_u64(&f.w, f.path, 0);
        }
    orr_json_end_object(&f.w);
    return code ? code : to->failed ? orr_no_memory(err) : ORR_OK;
}
