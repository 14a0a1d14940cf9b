/* SPDX-License-Identifier: Apache-2.0 */
/* spec.c - reads the file of a sweep.
 *
 * Every name is looked up in the tables of the commands when it is read, so that a typing mistake is
 * found before the first point runs, with its place.  A name without a command in front goes to
 * every command that has it: one `machine` serves `stage` and `run`. */
#include "figures.h"

#include "base/formats/yaml_fields.h"
#include "base/text/number.h"
#include "base/text/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const keys[] = {"command",     "title",     "arguments", "options", "axes",
                                   "points",      "variables", "sample",    "files",   "measures",
                                   "constraints", "rows",      "goal",      NULL};

static char *keep(orr_sweep *s, orr_str text)
{
    return orr_arena_text(s->arena, text);
}

static orr_code fail_at(orr_yaml_value v, orr_error *err, const char *what)
{
    const orr_where w = orr_yaml_where(v);
    return orr_fail(err, ORR_EINPUT, &w, "%s", what);
}

orr_where swp_text_place(const orr_sweep *s, orr_yaml_value v)
{
    orr_where w = orr_yaml_where(v);
    const char *at = s->text.ptr, *end = at + s->text.len;
    for (uint32_t line = 1; line < w.line && at; line++) {
        at = memchr(at, '\n', (size_t)(end - at));
        at = at ? at + 1 : NULL;
    }
    if (at && w.column && (size_t)(end - at) >= w.column &&
        (at[w.column - 1] == '"' || at[w.column - 1] == '\''))
        w.column++;
    return w;
}

/* ---- templates ---- */

/* The brace that closes the one before `at`; texts in quotes may hold braces. */
static const char *closing(const char *at, const char *end)
{
    for (char quote = 0; at < end; at++) {
        if (quote)
            quote = *at == quote ? 0 : quote;
        else if (*at == '\'' || *at == '"')
            quote = *at;
        else if (*at == '}')
            return at;
    }
    return NULL;
}

static orr_code add_piece(orr_sweep *s, swp_template *t, size_t *room, swp_piece p, orr_error *err)
{
    if (t->count == *room) {
        swp_piece *more = orr_arena_new(s->arena, *room * 2 + 4, swp_piece);
        if (!more)
            return orr_no_memory(err);
        if (t->count)
            memcpy(more, t->pieces, t->count * sizeof *more);
        t->pieces = more;
        *room = *room * 2 + 4;
    }
    t->pieces[t->count++] = p;
    return ORR_OK;
}

/* "dgx-h100:{devices // 8}" */
static orr_code read_template(orr_sweep *s, orr_yaml_value v, swp_template *t, orr_error *err)
{
    if (orr_yaml_type_of(v) != ORR_YAML_SCALAR)
        return fail_at(v, err, "expected one value");
    const orr_where where = swp_text_place(s, v);
    const char *text = keep(s, orr_yaml_text(v));
    size_t room = 0;
    orr_code code = text ? ORR_OK : orr_no_memory(err);
    for (const char *at = text; !code;) {
        const char *brace = strchr(at, '{');
        const size_t len = brace ? (size_t)(brace - at) : strlen(at);
        if (len || (!brace && !t->count))
            code = add_piece(s, t, &room, (swp_piece){.text = {at, len}}, err);
        if (!brace || code)
            break;
        const char *end = closing(brace + 1, text + strlen(text));
        orr_where w = where;
        w.column += (uint32_t)(brace + 1 - text);
        if (!end)
            return orr_fail(err, ORR_EINPUT, &w, "'%s': '{' without '}'", text);
        swp_piece p = {.text = {brace + 1, (size_t)(end - brace - 1)}};
        code = swp_expr_parse(p.text, &w, &p.expr, err);
        if (!code && (code = add_piece(s, t, &room, p, err)))
            swp_expr_free(p.expr);
        at = end + 1;
    }
    return code;
}

static void free_template(swp_template *t)
{
    for (size_t i = 0; i < t->count; i++)
        swp_expr_free(t->pieces[i].expr);
}

/* ---- commands ---- */

static orr_code add_command(orr_sweep *s, orr_yaml_value v, orr_str text, orr_error *err)
{
    const orr_where w = orr_yaml_where(v);
    if (s->step_count == SWP_MOST_STEPS)
        return orr_fail(err, ORR_EINPUT, &w, "more than %d commands", SWP_MOST_STEPS);
    const char **words = orr_arena_new(s->arena, text.len + 1, const char *);
    char *copy = keep(s, text);
    if (!words || !copy)
        return orr_no_memory(err);
    size_t count = 0;
    for (char *save = NULL, *word = strtok_r(copy, " \t", &save); word;
         word = strtok_r(NULL, " \t", &save))
        words[count++] = word;
    if (count && strcmp(words[0], "orrery") == 0) {
        words++;
        count--;
    }
    if (!count)
        return orr_fail(err, ORR_EINPUT, &w, "command: expected the name of a command");
    uint32_t place;
    if (s->hooks->find(s->hooks->context, words[0], NULL, &place) == ORR_SWEEP_NOTHING) {
        const char *near = s->hooks->nearest(s->hooks->context, NULL, words[0]);
        return orr_fail(err, ORR_EINPUT, &w, "unknown command '%s'%s%s%s", words[0],
                        near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    for (uint32_t i = 0; i < s->step_count; i++)
        if (strcmp(s->steps[i].command, words[0]) == 0)
            return orr_fail(err, ORR_EINPUT, &w, "command '%s' is given twice", words[0]);
    s->steps[s->step_count].command = words[0];
    s->steps[s->step_count].words = words + 1;
    s->steps[s->step_count++].word_count = count - 1;
    return ORR_OK;
}

/* "stage, run", or a list. */
static orr_code read_commands(orr_sweep *s, orr_yaml_value root, orr_error *err)
{
    orr_yaml_value v;
    orr_code code = orr_yaml_need(root, "command", &v, err);
    if (code)
        return code;
    if (orr_yaml_type_of(v) == ORR_YAML_LIST) {
        for (uint32_t i = 0; i < orr_yaml_count(v) && !code; i++)
            code = add_command(s, orr_yaml_item(v, i), orr_yaml_text(orr_yaml_item(v, i)), err);
        return code || s->step_count ? code : fail_at(v, err, "command: the list is empty");
    }
    orr_str rest = orr_yaml_text(v);
    while (!code) {
        const char *comma = rest.len ? memchr(rest.ptr, ',', rest.len) : NULL;
        const size_t len = comma ? (size_t)(comma - rest.ptr) : rest.len;
        code = add_command(s, v, (orr_str){rest.ptr, len}, err);
        if (!comma)
            break;
        rest = (orr_str){comma + 1, rest.len - len - 1};
    }
    return code;
}

static orr_code read_arguments(orr_sweep *s, orr_yaml_value root, orr_error *err)
{
    orr_yaml_value v;
    orr_code code = ORR_OK;
    if (!orr_yaml_find(root, "arguments", &v))
        return ORR_OK;
    const bool is_list = orr_yaml_type_of(v) == ORR_YAML_LIST;
    const uint32_t n = is_list ? orr_yaml_count(v) : 1;
    s->arguments = orr_arena_new(s->arena, n + 1, swp_template);
    if (!s->arguments)
        return orr_no_memory(err);
    for (uint32_t i = 0; i < n && !code; i++) {
        s->argument_count++;
        code = read_template(s, is_list ? orr_yaml_item(v, i) : v, &s->arguments[i], err);
    }
    return code;
}

/* ---- names ---- */

static orr_code unknown_name(const orr_sweep *s,
                             const orr_where *w,
                             const char *kind,
                             const char *name,
                             const char *only,
                             orr_error *err)
{
    const char *near = NULL;
    char commands[120];
    size_t used = 0;
    for (uint32_t i = 0; i < s->step_count; i++) {
        if (only && strcmp(only, s->steps[i].command) != 0)
            continue;
        if (!near)
            near = s->hooks->nearest(s->hooks->context, s->steps[i].command, name);
        const int n = snprintf(commands + used, sizeof commands - used, "%s%s", used ? " or " : "",
                               s->steps[i].command);
        used += n > 0 && (size_t)n < sizeof commands - used ? (size_t)n : 0;
    }
    if (near)
        return orr_fail(err, ORR_EINPUT, w,
                        "%s '%s' is not an option of orrery %s; did you mean '%s'?", kind, name,
                        commands, near);
    return orr_fail(err, ORR_EINPUT, w,
                    "%s '%s' is not an option of orrery %s; a name for expressions only belongs "
                    "under 'variables'",
                    kind, name, commands);
}

/* Finds the options that a name means: "tp", or "run.network" for one command. */
static orr_code find_targets(orr_sweep *s, swp_name *n, const char *kind, orr_error *err)
{
    const char *dot = strchr(n->name, '.'), *only = NULL, *name = n->name;
    for (uint32_t i = 0; i < s->step_count; i++) {
        const size_t len = strlen(s->steps[i].command);
        if (dot && (size_t)(dot - n->name) == len &&
            memcmp(n->name, s->steps[i].command, len) == 0) {
            only = s->steps[i].command;
            name = dot + 1;
        }
    }
    for (uint32_t i = 0; i < s->step_count; i++) {
        if (only && strcmp(only, s->steps[i].command) != 0)
            continue;
        swp_target t = {.step = i, .option = name};
        t.form = s->hooks->find(s->hooks->context, s->steps[i].command, &t.option, &t.place);
        /* What the command's own words say already is not an argument that is still open. */
        if (t.form == ORR_SWEEP_ARGUMENT && t.place < s->steps[i].word_count)
            t.form = ORR_SWEEP_NOTHING;
        if (t.form != ORR_SWEEP_NOTHING)
            n->targets[n->target_count++] = t;
    }
    return n->target_count ? ORR_OK : unknown_name(s, &n->where, kind, name, only, err);
}

static orr_code add_name(
    orr_sweep *s, orr_yaml_value key, const char *kind, bool is_axis, uint32_t *out, orr_error *err)
{
    const orr_where w = orr_yaml_where(key);
    const orr_str text = orr_yaml_text(key);
    if (orr_yaml_type_of(key) != ORR_YAML_SCALAR || text.len == 0)
        return orr_fail(err, ORR_EINPUT, &w, "expected a name");
    if (s->name_count == SWP_MOST_NAMES - 1)
        return orr_fail(err, ORR_EINPUT, &w, "more than %d names", SWP_MOST_NAMES - 1);
    for (uint32_t i = 0; i < s->name_count; i++)
        if (swp_same_name(text, s->names[i].name))
            return orr_fail(err, ORR_EINPUT, &w, "'%s' is given twice (first on line %u)",
                            s->names[i].name, s->names[i].where.line);
    swp_name *n = &s->names[s->name_count];
    *n = (swp_name){.name = keep(s, text), .where = w, .is_axis = is_axis};
    if (!n->name)
        return orr_no_memory(err);
    if (is_axis)
        s->axis_names[s->axis_name_count++] = s->name_count;
    *out = s->name_count++;
    return kind ? find_targets(s, n, kind, err) : ORR_OK;
}

static orr_code read_options(orr_sweep *s, orr_yaml_value root, orr_error *err)
{
    orr_yaml_value map;
    orr_code code = ORR_OK;
    if (!orr_yaml_find(root, "options", &map))
        return ORR_OK;
    if (orr_yaml_type_of(map) != ORR_YAML_MAP)
        return fail_at(map, err, "options: expected names and values");
    for (uint32_t i = 0; i < orr_yaml_count(map) && !code; i++) {
        uint32_t n;
        code = add_name(s, orr_yaml_key(map, i), "option", false, &n, err);
        if (!code)
            code = read_template(s, orr_yaml_item(map, i), &s->names[n].value, err);
    }
    return code;
}

/* ---- axes ---- */

static bool is_written_whole(orr_yaml_value v)
{
    int64_t whole;
    return orr_text_i64(orr_yaml_text(v), &whole);
}

static orr_code take_number(orr_yaml_value map, const char *key, double *out, orr_error *err)
{
    return orr_yaml_take_number(map, key, -1e300, 1e300, out, err);
}

typedef struct axis_range {
    double from, to, step, factor;
    uint64_t count;
    bool is_log, has_step, has_factor, has_count;
} axis_range;

static orr_code read_range(orr_yaml_value v, axis_range *r, orr_error *err)
{
    static const char *const allowed[] = {"from", "to", "step", "factor", "count", "log", NULL};
    orr_yaml_value x;
    *r = (axis_range){.step = 1};
    orr_code code = orr_yaml_check_keys(v, allowed, err);
    if (!code)
        code = orr_yaml_need(v, "from", &x, err);
    if (!code)
        code = orr_yaml_need(v, "to", &x, err);
    if (!code)
        code = take_number(v, "from", &r->from, err);
    if (!code)
        code = take_number(v, "to", &r->to, err);
    if (!code)
        code = take_number(v, "step", &r->step, err);
    if (!code)
        code = take_number(v, "factor", &r->factor, err);
    if (!code)
        code = orr_yaml_take_u64(v, "count", 2, SWP_MOST_POINTS, &r->count, err);
    if (!code)
        code = orr_yaml_take_bool(v, "log", &r->is_log, err);
    if (code)
        return code;
    r->has_step = orr_yaml_find(v, "step", &x);
    r->has_factor = orr_yaml_find(v, "factor", &x);
    r->has_count = orr_yaml_find(v, "count", &x);
    if (r->to < r->from)
        return fail_at(v, err, "a range: 'to' is below 'from'");
    if (r->has_step + r->has_factor + r->has_count > 1)
        return fail_at(v, err, "a range has one of 'step', 'factor' and 'count'");
    if (r->has_step && !(r->step > 0))
        return fail_at(v, err, "a range: 'step' must be above 0");
    if (r->has_factor && !(r->factor > 1))
        return fail_at(v, err, "a range: 'factor' must be above 1");
    if ((r->has_factor || r->is_log) && !(r->from > 0))
        return fail_at(v, err, "a logarithmic range starts above 0");
    if (r->has_step && r->is_log)
        return fail_at(v, err, "a logarithmic range has 'factor' or 'count', not 'step'");
    return ORR_OK;
}

/* The values, in order; each from the first, so that rounding does not add up. */
static double range_at(const axis_range *r, uint64_t i)
{
    if (r->has_factor)
        return r->from * pow(r->factor, (double)i);
    if (r->has_count) {
        const double share = (double)i / (double)(r->count - 1);
        if (i + 1 == r->count)
            return r->to;
        return r->is_log ? r->from * pow(r->to / r->from, share)
                         : r->from + (r->to - r->from) * share;
    }
    return r->from + r->step * (double)i;
}

static uint64_t range_count(const axis_range *r)
{
    const double slack = 1 + 1e-9;
    if (r->has_count)
        return r->count;
    const double n = r->has_factor ? log(r->to / r->from * slack) / log(r->factor)
                                   : (r->to - r->from) / r->step * slack;
    return n >= SWP_MOST_POINTS ? SWP_MOST_POINTS + 1 : (uint64_t)n + 1;
}

static orr_code list_range(
    orr_sweep *s, orr_yaml_value v, const axis_range *r, swp_axis *axis, orr_error *err)
{
    const uint64_t n = range_count(r);
    orr_yaml_value from, to;
    const bool is_whole = orr_yaml_find(v, "from", &from) && orr_yaml_find(v, "to", &to) &&
                          is_written_whole(from) && is_written_whole(to);
    if (n > SWP_MOST_POINTS)
        return fail_at(v, err, "a range of more than 10,000,000 values");
    axis->values = orr_arena_new(s->arena, n, const char *);
    if (!axis->values)
        return orr_no_memory(err);
    const char *last = NULL;
    for (uint64_t i = 0; i < n; i++) {
        double x = range_at(r, i);
        if (is_whole && r->has_count)
            x = nearbyint(x);
        const char *text = swp_number_text(s->arena, x);
        if (!text)
            return orr_no_memory(err);
        if (last && strcmp(last, text) == 0)
            continue; /* whole numbers that rounding brought together */
        axis->values[axis->count++] = last = text;
    }
    return ORR_OK;
}

static orr_code read_axis_map(orr_sweep *s, orr_yaml_value v, swp_axis *axis, orr_error *err)
{
    axis_range r;
    orr_yaml_value from, to;
    const orr_code code = read_range(v, &r, err);
    if (code)
        return code;
    const bool is_open = !r.has_step && !r.has_factor && !r.has_count;
    if (s->method == SWP_GRID && is_open && r.is_log)
        return fail_at(v, err, "a logarithmic range of a grid needs 'factor' or 'count'");
    if (s->method == SWP_GRID || !is_open)
        return list_range(s, v, &r, axis, err);
    axis->from = r.from;
    axis->to = r.to;
    axis->is_log = r.is_log;
    axis->is_whole = orr_yaml_find(v, "from", &from) && orr_yaml_find(v, "to", &to) &&
                     is_written_whole(from) && is_written_whole(to);
    return ORR_OK;
}

static orr_code read_axis_values(orr_sweep *s, orr_yaml_value v, swp_axis *axis, orr_error *err)
{
    const bool is_list = orr_yaml_type_of(v) == ORR_YAML_LIST;
    const uint32_t n = is_list ? orr_yaml_count(v) : 1;
    if (orr_yaml_type_of(v) == ORR_YAML_MAP)
        return read_axis_map(s, v, axis, err);
    if (n == 0)
        return fail_at(v, err, "an axis without values");
    axis->values = orr_arena_new(s->arena, n, const char *);
    if (!axis->values)
        return orr_no_memory(err);
    for (uint32_t i = 0; i < n; i++) {
        const orr_yaml_value x = is_list ? orr_yaml_item(v, i) : v;
        if (orr_yaml_type_of(x) != ORR_YAML_SCALAR)
            return fail_at(x, err, "a value of an axis: expected a number or a text");
        if (!(axis->values[axis->count++] = keep(s, orr_yaml_text(x))))
            return orr_no_memory(err);
    }
    return ORR_OK;
}

static orr_code read_axes(
    orr_sweep *s, orr_yaml_value root, const char *key, const char *kind, orr_error *err)
{
    orr_yaml_value map;
    orr_code code = ORR_OK;
    if (!orr_yaml_find(root, key, &map))
        return ORR_OK;
    if (orr_yaml_type_of(map) != ORR_YAML_MAP)
        return fail_at(map, err, "expected names, each with its values");
    for (uint32_t i = 0; i < orr_yaml_count(map) && !code; i++) {
        const orr_yaml_value v = orr_yaml_item(map, i);
        swp_axis *axis = &s->axes[s->axis_count];
        axis->width = 1;
        /* A variable with one value is a constant or an expression of others. */
        if (!kind && orr_yaml_type_of(v) == ORR_YAML_SCALAR) {
            uint32_t n;
            code = add_name(s, orr_yaml_key(map, i), NULL, false, &n, err);
            if (!code)
                code = read_template(s, v, &s->names[n].value, err);
            continue;
        }
        code = add_name(s, orr_yaml_key(map, i), kind, true, &axis->names[0], err);
        if (!code)
            code = read_axis_values(s, v, axis, err);
        s->axis_count += !code;
    }
    return code;
}

static orr_code read_point(
    orr_sweep *s, orr_yaml_value v, orr_yaml_value first, swp_axis *axis, orr_error *err)
{
    if (orr_yaml_type_of(v) != ORR_YAML_MAP || orr_yaml_count(v) != axis->width)
        return fail_at(v, err, "points: each has the same names");
    for (uint32_t k = 0; k < axis->width; k++) {
        orr_yaml_value x;
        const char *name = s->names[axis->names[k]].name;
        if (!orr_yaml_find(v, name, &x) || orr_yaml_type_of(x) != ORR_YAML_SCALAR)
            return fail_at(v, err, "points: each has the same names, with one value each");
        if (!(axis->values[axis->count * axis->width + k] = keep(s, orr_yaml_text(x))))
            return orr_no_memory(err);
    }
    (void)first;
    axis->count++;
    return ORR_OK;
}

/* points: a list of maps, all with the same names. */
static orr_code read_points(orr_sweep *s, orr_yaml_value root, orr_error *err)
{
    orr_yaml_value list;
    if (!orr_yaml_find(root, "points", &list))
        return ORR_OK;
    const uint32_t n = orr_yaml_count(list);
    if (orr_yaml_type_of(list) != ORR_YAML_LIST || n == 0)
        return fail_at(list, err, "points: expected a list of points");
    const orr_yaml_value first = orr_yaml_item(list, 0);
    const uint32_t width = orr_yaml_type_of(first) == ORR_YAML_MAP ? orr_yaml_count(first) : 0;
    swp_axis *axis = &s->axes[s->axis_count];
    if (width == 0 || width > SWP_MOST_NAMES)
        return fail_at(first, err, "points: a point is a map, as {tp: 1, pp: 2}");
    orr_code code = ORR_OK;
    axis->values = orr_arena_new(s->arena, (size_t)n * width, const char *);
    if (!axis->values)
        return orr_no_memory(err);
    for (uint32_t k = 0; k < width && !code; k++, axis->width += !code)
        code = add_name(s, orr_yaml_key(first, k), "axis", true, &axis->names[k], err);
    for (uint32_t i = 0; i < n && !code; i++)
        code = read_point(s, orr_yaml_item(list, i), first, axis, err);
    s->axis_count += !code;
    return code;
}

/* ---- the rest ---- */

static orr_code read_sample(orr_sweep *s, orr_yaml_value root, orr_error *err)
{
    static const char *const allowed[] = {"method", "count", "seed", NULL};
    static const char *const methods[] = {"grid", "random", "latin-hypercube", NULL};
    orr_yaml_value v, x;
    unsigned method = SWP_RANDOM;
    if (!orr_yaml_find(root, "sample", &v))
        return ORR_OK;
    s->seed = 1;
    orr_code code = orr_yaml_check_keys(v, allowed, err);
    if (!code)
        code = orr_yaml_take_word(v, "method", methods, &method, err);
    s->method = (swp_method)method;
    if (!code && s->method != SWP_GRID)
        code = orr_yaml_need(v, "count", &x, err);
    if (!code)
        code = orr_yaml_take_u64(v, "count", 1, SWP_MOST_POINTS, &s->samples, err);
    return code ? code : orr_yaml_take_u64(v, "seed", 0, UINT64_MAX, &s->seed, err);
}

static orr_code read_constraints(orr_sweep *s, orr_yaml_value root, orr_error *err)
{
    orr_yaml_value v;
    orr_code code = ORR_OK;
    if (!orr_yaml_find(root, "constraints", &v))
        return ORR_OK;
    const bool is_list = orr_yaml_type_of(v) == ORR_YAML_LIST;
    const uint32_t n = is_list ? orr_yaml_count(v) : 1;
    s->constraints = orr_arena_new(s->arena, n + 1, swp_expr *);
    if (!s->constraints)
        return orr_no_memory(err);
    for (uint32_t i = 0; i < n && !code; i++) {
        const orr_yaml_value x = is_list ? orr_yaml_item(v, i) : v;
        const orr_where w = swp_text_place(s, x);
        if (orr_yaml_type_of(x) != ORR_YAML_SCALAR)
            return fail_at(x, err, "a constraint: expected an expression");
        code = swp_expr_parse(orr_yaml_text(x), &w, &s->constraints[i], err);
        s->constraint_count += !code;
    }
    return code;
}

static orr_code read_files(orr_sweep *s, orr_yaml_value root, orr_error *err)
{
    orr_yaml_value v;
    if (!orr_yaml_find(root, "files", &v))
        return ORR_OK;
    if (orr_yaml_type_of(v) != ORR_YAML_LIST)
        return fail_at(v, err, "files: expected a list of paths");
    s->files = orr_arena_new(s->arena, orr_yaml_count(v) + 1, const char *);
    if (!s->files)
        return orr_no_memory(err);
    for (uint32_t i = 0; i < orr_yaml_count(v); i++) {
        if (orr_yaml_type_of(orr_yaml_item(v, i)) != ORR_YAML_SCALAR)
            return fail_at(orr_yaml_item(v, i), err, "files: expected a path");
        if (!(s->files[s->file_count++] = keep(s, orr_yaml_text(orr_yaml_item(v, i)))))
            return orr_no_memory(err);
    }
    return ORR_OK;
}

static orr_code read_measures(orr_sweep *s, orr_yaml_value root, orr_error *err)
{
    orr_yaml_value map;
    orr_code code = ORR_OK;
    if (!orr_yaml_find(root, "measures", &map))
        return ORR_OK;
    if (orr_yaml_type_of(map) != ORR_YAML_MAP)
        return fail_at(map, err, "measures: expected names and expressions");
    for (uint32_t i = 0; i < orr_yaml_count(map) && !code; i++) {
        const orr_yaml_value v = orr_yaml_item(map, i);
        if (s->measure_count == SWP_MOST_NAMES)
            return fail_at(map, err, "too many measures");
        swp_measure *m = &s->measures[s->measure_count];
        m->name = keep(s, orr_yaml_text(orr_yaml_key(map, i)));
        m->text = keep(s, orr_yaml_text(v));
        m->where = swp_text_place(s, v);
        if (!m->name || !m->text)
            return orr_no_memory(err);
        if (orr_yaml_type_of(v) != ORR_YAML_SCALAR)
            return fail_at(v, err, "a measure: expected an expression");
        swp_expr *e;
        code = swp_expr_parse(orr_yaml_text(v), &m->where, &e, err);
        if (!code)
            swp_expr_free(e);
        s->measure_count += !code;
    }
    return code;
}

static orr_code read_goal(orr_sweep *s, orr_yaml_value root, orr_error *err)
{
    orr_yaml_value v;
    if (!orr_yaml_find(root, "goal", &v))
        return ORR_OK;
    const orr_str text = orr_yaml_text(v);
    if (text.len < 5 || (!orr_str_begins(text, "min ") && !orr_str_begins(text, "max ")))
        return fail_at(v, err, "goal: expected 'min NAME' or 'max NAME'");
    s->goal = keep(s, text);
    return s->goal ? ORR_OK : orr_no_memory(err);
}

/* ---- expressions know the names ---- */

static orr_code bind_template(swp_template *t, const char *const *names, orr_error *err)
{
    orr_code code = ORR_OK;
    for (size_t i = 0; i < t->count && !code; i++)
        if (t->pieces[i].expr)
            code = swp_expr_bind(t->pieces[i].expr, names, err);
    return code;
}

static bool reads(const swp_template *t, uint32_t place)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->pieces[i].expr && swp_expr_uses(t->pieces[i].expr, place))
            return true;
    return false;
}

/* What a name's expression reads is worked out before it. */
static orr_code order_names(orr_sweep *s, orr_error *err)
{
    bool is_known[SWP_MOST_NAMES];
    for (uint32_t i = 0; i < s->name_count; i++)
        is_known[i] = s->names[i].is_axis;
    const uint32_t wanted = s->name_count - s->axis_name_count;
    while (s->order_count < wanted) {
        const uint32_t before = s->order_count;
        uint32_t stuck = 0;
        for (uint32_t i = 0; i < s->name_count; i++) {
            bool is_ready = !is_known[i];
            for (uint32_t k = 0; k < s->name_count && is_ready; k++)
                is_ready = is_known[k] || !reads(&s->names[i].value, k);
            if (is_ready) {
                is_known[i] = true;
                s->order[s->order_count++] = i;
            } else if (!is_known[i]) {
                stuck = i;
            }
        }
        if (s->order_count == before)
            return orr_fail(err, ORR_EINPUT, &s->names[stuck].where, "'%s' depends on itself",
                            s->names[stuck].name);
    }
    return ORR_OK;
}

static orr_code bind_all(orr_sweep *s, orr_error *err)
{
    const char *names[SWP_MOST_NAMES + 1] = {NULL};
    orr_code code = ORR_OK;
    for (uint32_t i = 0; i < s->name_count; i++)
        names[i] = s->names[i].name;
    for (uint32_t i = 0; i < s->name_count && !code; i++)
        code = bind_template(&s->names[i].value, names, err);
    for (size_t i = 0; i < s->argument_count && !code; i++)
        code = bind_template(&s->arguments[i], names, err);
    for (size_t i = 0; i < s->constraint_count && !code; i++)
        code = swp_expr_bind(s->constraints[i], names, err);
    return code ? code : order_names(s, err);
}

static orr_code read_all(orr_sweep *s, orr_yaml_value root, orr_error *err)
{
    orr_yaml_value v;
    orr_code code = orr_yaml_check_keys(root, keys, err);
    if (!code)
        code = read_commands(s, root, err);
    if (!code && orr_yaml_find(root, "title", &v) && !(s->title = keep(s, orr_yaml_text(v))))
        code = orr_no_memory(err);
    if (!code)
        code = read_arguments(s, root, err);
    if (!code)
        code = read_sample(s, root, err);
    if (!code)
        code = read_axes(s, root, "axes", "axis", err);
    if (!code)
        code = read_points(s, root, err);
    if (!code)
        code = read_axes(s, root, "variables", NULL, err);
    if (!code)
        code = read_options(s, root, err);
    if (!code)
        code = read_constraints(s, root, err);
    if (!code)
        code = read_files(s, root, err);
    if (!code)
        code = read_measures(s, root, err);
    if (!code)
        code = swp_rows_read(s, root, err);
    if (!code)
        code = read_goal(s, root, err);
    return code ? code : bind_all(s, err);
}

orr_code swp_spec_read(orr_sweep *s, orr_error *err)
{
    orr_yaml *y;
    const orr_span bytes = {.ptr = (const uint8_t *)s->text.ptr, .len = s->text.len};
    orr_code code = orr_yaml_open(bytes, s->path, &y, err);
    if (code)
        return code;
    code = read_all(s, orr_yaml_root(y), err);
    orr_yaml_close(y);
    return code;
}

void swp_spec_fini(orr_sweep *s)
{
    for (uint32_t i = 0; i < s->name_count; i++)
        free_template(&s->names[i].value);
    for (size_t i = 0; i < s->argument_count; i++)
        free_template(&s->arguments[i]);
    for (size_t i = 0; i < s->constraint_count; i++)
        swp_expr_free(s->constraints[i]);
    swp_rows_fini(s);
}
