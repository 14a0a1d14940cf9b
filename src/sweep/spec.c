/* SPDX-License-Identifier: Apache-2.0 */
/* spec.c - reads the file of a sweep.
 *
 * Every name is looked up in the tables of the commands when it is read, so that a typo is found
 * before the first point runs, with its location.  A name without a command prefix goes to every
 * command that has it: one `machine` serves `stage` and `run`. */
#include "spec.h"

#include "base/formats/json.h"
#include "base/formats/yaml.h"
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

/* Of the first character of a scalar's text, excluding quotes. */
static orr_where text_place(const orr_sweep *s, orr_yaml_value v)
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

/* The matching closing brace; quoted texts may contain braces. */
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
    const orr_where where = text_place(s, v);
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

/* Resolves a name to options: "tp", or "run.network" for one command. */
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
        /* An argument already given in the command's words is not open any more. */
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
    orr_code code;
    if ((code = orr_yaml_check_keys(v, allowed, err)) ||
        (code = orr_yaml_need(v, "from", &x, err)) || (code = orr_yaml_need(v, "to", &x, err)) ||
        (code = take_number(v, "from", &r->from, err)) ||
        (code = take_number(v, "to", &r->to, err)) ||
        (code = take_number(v, "step", &r->step, err)) ||
        (code = take_number(v, "factor", &r->factor, err)) ||
        (code = orr_yaml_take_u64(v, "count", 2, SWP_MOST_POINTS, &r->count, err)) ||
        (code = orr_yaml_take_bool(v, "log", &r->is_log, err)))
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

/* Each value is computed from the first, so that rounding errors do not accumulate. */
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
    if (n > s->most_points)
        return fail_at(v, err, "a range of more values than there may be points");
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
            continue; /* integers that coincide after rounding */
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
        return fail_at(v, err, "points: all must have the same names");
    for (uint32_t k = 0; k < axis->width; k++) {
        orr_yaml_value x;
        const char *name = s->names[axis->names[k]].name;
        if (!orr_yaml_find(v, name, &x) || orr_yaml_type_of(x) != ORR_YAML_SCALAR)
            return fail_at(v, err, "points: all must have the same names, with one value each");
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
        code = orr_yaml_take_u64(v, "count", 1, s->most_points, &s->samples, err);
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
        const orr_where w = text_place(s, x);
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
        m->where = text_place(s, v);
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

static orr_code rows_read(orr_sweep *s, orr_yaml_value root, orr_error *err);
static void rows_fini(orr_sweep *s);

/* ---- binding of expressions ---- */

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

/* Topological order: the names an expression reads are evaluated before it. */
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
        code = rows_read(s, root, err);
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
    rows_fini(s);
}

/* Flattens results: numbers, texts and booleans of a point under dotted names, and rows of its
 * lists.
 *
 * Lists of a result have hundreds of rows (ranks, links) where a table has one row per point.
 * Lists not in `rows` cost one pass per member of their first row. */

enum { PATH_MOST = 400, DEEPEST_OBJECT = 16, MOST_MEMBERS = 64, LONGEST_LIST = 16 };

typedef enum rows_take {
    TAKE_MAX, /* of each number, independently */
    TAKE_MIN,
    TAKE_MEAN,
    TAKE_SUM,
    TAKE_LARGEST, /* the whole row with the largest `by` */
    TAKE_SMALLEST,
    TAKE_ROW /* by index; negative from the end */
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
    const orr_where w = text_place(s, v);
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
            return fail_at(key, err, "duplicate name");
    if (orr_yaml_find(v, "take", &x))
        code = read_take(s, x, r, err);
    return !code && orr_yaml_find(v, "where", &x) ? read_where(s, x, r, err) : code;
}

/* The entries of `rows`, read from the specification. */
static orr_code rows_read(orr_sweep *s, orr_yaml_value root, orr_error *err)
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
        s->rows_count++; /* also after a failure: it may hold an expression */
    }
    return code;
}

static void rows_fini(orr_sweep *s)
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

/* The row to be taken whole; false: there is none. */
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

/* Of a short list of numbers both ends; of texts, such as warnings, their number and the first. */
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
