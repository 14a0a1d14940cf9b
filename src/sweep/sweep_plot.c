/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_plot.c - two columns of a table against each other: SVG.
 *
 * Axes that are texts have one place per text, in the order of first appearance.  Ticks are 1, 2 or
 * 5 times a power of ten; on a logarithmic axis powers of ten, or of two where all values are such.
 * Colours repeat after eight groups; each group has a shape of its own as well. */
#include "sweep_table.h"

#include "base/io/output.h"
#include "base/text/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    WIDTH = 880,
    HEIGHT = 520,
    LEFT = 90,
    TOP = 48,
    PLOT_WIDTH = 600,
    PLOT_HEIGHT = 400,
    MOST_GROUPS = 32,
    MOST_TICKS = 24,
    COLOURS = 8
};

static const char *const colours[COLOURS] = {"#2a7ab8", "#e2972b", "#178f6c", "#cc5a1c",
                                             "#8b5fbf", "#bf6a98", "#636b79", "#7fbde6"};

typedef struct plot_axis {
    uint32_t column;
    bool is_log, is_text;
    double from, to;
    const char *texts[MOST_TICKS]; /* of a text axis */
    size_t text_count;
} plot_axis;

typedef struct plot_point {
    double x, y;
    uint32_t group;
    uint64_t point;
} plot_point;

typedef struct plot_job {
    const orr_sweep_table *t;
    const orr_sweep_plot *p;
    orr_arena *a;
    plot_axis x, y;
    uint32_t group_column;
    const char *groups[MOST_GROUPS];
    size_t group_count;
    plot_point *points;
    size_t count;
    orr_buf *to;
} plot_job;

static void add_escaped(orr_buf *to, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            orr_buf_text(to, "&lt;");
        else if (*text == '>')
            orr_buf_text(to, "&gt;");
        else if (*text == '&')
            orr_buf_text(to, "&amp;");
        else if (*text == '"')
            orr_buf_text(to, "&quot;");
        else if ((uint8_t)*text >= 0x20)
            orr_buf_byte(to, (uint8_t)*text);
    }
}

/* ---- values ---- */

/* The place of a text in a list, added when it is new; `most` where the list is full. */
static size_t place_text(const char **list, size_t *count, size_t most, const char *text)
{
    for (size_t i = 0; i < *count; i++)
        if (strcmp(list[i], text) == 0)
            return i;
    if (*count < most)
        list[(*count)++] = text;
    return *count - 1;
}

static bool take_value(plot_job *j, plot_axis *axis, const swp_row *r, double *out)
{
    const swp_value v = r->values[axis->column];
    if (v.kind == SWP_NONE)
        return false;
    if (axis->is_text) {
        const char *text = swp_cell_text(j->a, v, false);
        *out = text ? (double)place_text(axis->texts, &axis->text_count, MOST_TICKS, text) : 0;
        return text != NULL;
    }
    *out = v.number;
    return !axis->is_log || v.number > 0;
}

static bool has_text(const orr_sweep_table *t, uint32_t column)
{
    for (size_t i = 0; i < t->row_count; i++)
        if (t->rows[i].values[column].kind == SWP_TEXT)
            return true;
    return false;
}

static int compare_points(const void *x, const void *y)
{
    const plot_point *a = x, *b = y;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    if (a->x != b->x)
        return a->x < b->x ? -1 : 1;
    return a->point < b->point ? -1 : a->point > b->point;
}

static orr_code gather(plot_job *j, orr_error *err)
{
    const orr_sweep_table *t = j->t;
    j->points = orr_arena_new(j->a, t->row_count + 1, plot_point);
    if (!j->points)
        return orr_no_memory(err);
    for (size_t i = 0; i < t->row_count; i++) {
        plot_point *p = &j->points[j->count];
        if (!take_value(j, &j->x, &t->rows[i], &p->x) || !take_value(j, &j->y, &t->rows[i], &p->y))
            continue;
        if (j->p->group) {
            const char *text = swp_cell_text(j->a, t->rows[i].values[j->group_column], true);
            p->group =
                (uint32_t)place_text(j->groups, &j->group_count, MOST_GROUPS, text ? text : "-");
        }
        p->point = t->rows[i].point;
        j->count++;
    }
    if (orr_arena_has_failed(j->a))
        return orr_no_memory(err);
    if (!j->count)
        return orr_fail(err, ORR_EUSAGE, NULL, "no point has both '%s' and '%s'%s", j->p->x,
                        j->p->y, j->x.is_log || j->y.is_log ? " above 0" : "");
    qsort(j->points, j->count, sizeof *j->points, compare_points);
    return ORR_OK;
}

/* A little room around the values; from 0 where that is near. */
static void set_range(plot_axis *a, double least, double most)
{
    if (a->is_text) {
        a->from = -0.5;
        a->to = (double)a->text_count - 0.5;
    } else if (a->is_log) {
        a->from = least / 1.1;
        a->to = most * 1.1;
    } else {
        const double room = most > least ? (most - least) * 0.05 : fabs(most) * 0.1 + 0.5;
        a->from = least >= 0 && least < 0.4 * most ? 0 : least - room;
        a->to = most + room;
    }
}

static void set_ranges(plot_job *j)
{
    double low[2] = {j->points[0].x, j->points[0].y}, high[2] = {low[0], low[1]};
    for (size_t i = 1; i < j->count; i++) {
        low[0] = fmin(low[0], j->points[i].x);
        low[1] = fmin(low[1], j->points[i].y);
        high[0] = fmax(high[0], j->points[i].x);
        high[1] = fmax(high[1], j->points[i].y);
    }
    set_range(&j->x, low[0], high[0]);
    set_range(&j->y, low[1], high[1]);
}

/* From 0 to 1 along the axis. */
static double share(const plot_axis *a, double v)
{
    return a->is_log ? log(v / a->from) / log(a->to / a->from) : (v - a->from) / (a->to - a->from);
}

static double x_of(const plot_job *j, double v)
{
    return LEFT + PLOT_WIDTH * share(&j->x, v);
}

static double y_of(const plot_job *j, double v)
{
    return TOP + PLOT_HEIGHT * (1 - share(&j->y, v));
}

/* ---- ticks ---- */

static size_t log_ticks(const plot_axis *a, double out[MOST_TICKS])
{
    const double base = a->to / a->from < 300 ? 2 : 10;
    size_t n = 0;
    double v = pow(base, ceil(log(a->from) / log(base) - 1e-9));
    double step = base;
    while (log(a->to / v) / log(step) > 10)
        step *= base;
    for (; v <= a->to && n < MOST_TICKS; v *= step)
        out[n++] = v;
    return n;
}

static size_t ticks_of(const plot_axis *a, double out[MOST_TICKS])
{
    size_t n = 0;
    if (a->is_text) {
        for (; n < a->text_count; n++)
            out[n] = (double)n;
        return n;
    }
    if (a->is_log)
        return log_ticks(a, out);
    const double least = (a->to - a->from) / 8, power = pow(10, floor(log10(least)));
    const double times = least / power;
    const double step = power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
    for (double k = ceil(a->from / step); k * step <= a->to && n < MOST_TICKS; k++)
        out[n++] = k * step;
    return n;
}

/* 1.2M, 35k, 0.25: columns say their unit by name. */
static void tick_text(const plot_axis *a, double v, char *out, size_t room)
{
    static const struct {
        double scale;
        const char *unit;
    } units[] = {{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e4, "k"}};
    const size_t i = a->is_text ? (size_t)(v + 0.5) : 0;
    if (a->is_text) {
        snprintf(out, room, "%.40s", a->texts[i]);
        return;
    }
    for (size_t k = 0; k < sizeof units / sizeof *units; k++)
        if (fabs(v) >= units[k].scale) {
            const double scale = k == 4 ? 1e3 : units[k].scale;
            snprintf(out, room, "%.4g%s", v / scale, units[k].unit);
            return;
        }
    snprintf(out, room, "%.4g", fabs(v) < 1e-12 ? 0 : v);
}

/* ---- drawing ---- */

static void draw_axes(plot_job *j)
{
    double ticks[MOST_TICKS];
    char text[64];
    size_t n = ticks_of(&j->x, ticks);
    for (size_t i = 0; i < n; i++) {
        tick_text(&j->x, ticks[i], text, sizeof text);
        orr_buf_print(
            j->to,
            "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/><text x=\"%.1f\" y=\"%d\" "
            "text-anchor=\"middle\">",
            x_of(j, ticks[i]), TOP, x_of(j, ticks[i]), TOP + PLOT_HEIGHT, x_of(j, ticks[i]),
            TOP + PLOT_HEIGHT + 18);
        add_escaped(j->to, text);
        orr_buf_text(j->to, "</text>\n");
    }
    n = ticks_of(&j->y, ticks);
    for (size_t i = 0; i < n; i++) {
        tick_text(&j->y, ticks[i], text, sizeof text);
        orr_buf_print(
            j->to,
            "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/><text x=\"%d\" y=\"%.1f\" "
            "text-anchor=\"end\">",
            LEFT, y_of(j, ticks[i]), LEFT + PLOT_WIDTH, y_of(j, ticks[i]), LEFT - 8,
            y_of(j, ticks[i]) + 4);
        add_escaped(j->to, text);
        orr_buf_text(j->to, "</text>\n");
    }
}

static void draw_name(plot_job *j, const char *name, int x, int y, bool is_turned)
{
    orr_buf_print(j->to, "<text class=\"name\" text-anchor=\"middle\" x=\"%d\" y=\"%d\"", x, y);
    if (is_turned)
        orr_buf_print(j->to, " transform=\"rotate(-90 %d %d)\"", x, y);
    orr_buf_text(j->to, ">");
    add_escaped(j->to, name);
    orr_buf_text(j->to, "</text>\n");
}

/* A shape per group, so that colours are not the only cue. */
static void draw_mark(plot_job *j, double x, double y, uint32_t group)
{
    const char *colour = colours[group % COLOURS];
    switch (group % 4) {
    case 0:
        orr_buf_print(j->to, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\">", x, y, colour);
        break;
    case 1:
        orr_buf_print(j->to, "<rect x=\"%.1f\" y=\"%.1f\" width=\"7\" height=\"7\" fill=\"%s\">",
                      x - 3.5, y - 3.5, colour);
        break;
    case 2:
        orr_buf_print(j->to, "<path d=\"M%.1f %.1fl5 9h-10z\" fill=\"%s\">", x, y - 5, colour);
        break;
    default:
        orr_buf_print(j->to, "<path d=\"M%.1f %.1fl5 5l-5 5l-5 -5z\" fill=\"%s\">", x, y - 5,
                      colour);
    }
}

static void end_mark(plot_job *j, uint32_t group)
{
    static const char *const ends[] = {"</circle>", "</rect>", "</path>", "</path>"};
    orr_buf_text(j->to, ends[group % 4]);
}

static void draw_points(plot_job *j)
{
    for (size_t i = 0; i < j->count && j->p->has_lines; i++) {
        const plot_point *p = &j->points[i];
        const bool is_first = i == 0 || p[-1].group != p->group;
        const bool is_last = i + 1 == j->count || p[1].group != p->group;
        if (is_first)
            orr_buf_text(j->to, "<polyline fill=\"none\" points=\"");
        orr_buf_print(j->to, "%.1f,%.1f ", x_of(j, p->x), y_of(j, p->y));
        if (is_last)
            orr_buf_print(j->to, "\" stroke=\"%s\"/>\n", colours[p->group % COLOURS]);
    }
    for (size_t i = 0; i < j->count; i++) {
        const plot_point *p = &j->points[i];
        draw_mark(j, x_of(j, p->x), y_of(j, p->y), p->group);
        orr_buf_print(j->to, "<title>point %llu</title>", (unsigned long long)p->point);
        end_mark(j, p->group);
        orr_buf_byte(j->to, '\n');
    }
}

static void draw_legend(plot_job *j)
{
    if (!j->p->group)
        return;
    orr_buf_print(j->to, "<text class=\"name\" x=\"%d\" y=\"%d\">", LEFT + PLOT_WIDTH + 24,
                  TOP + 6);
    add_escaped(j->to, j->p->group);
    orr_buf_text(j->to, "</text>\n");
    for (size_t i = 0; i < j->group_count && i < 18; i++) {
        const int y = TOP + 28 + (int)i * 21;
        draw_mark(j, LEFT + PLOT_WIDTH + 30, y - 4, (uint32_t)i);
        end_mark(j, (uint32_t)i);
        orr_buf_print(j->to, "<text x=\"%d\" y=\"%d\">", LEFT + PLOT_WIDTH + 42, y);
        add_escaped(j->to, j->groups[i]);
        orr_buf_text(j->to, "</text>\n");
    }
}

static void draw(plot_job *j)
{
    orr_buf_print(j->to,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                  "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
                  "<style>line{stroke:#dfe2e8}text{fill:#636b79}.name{fill:#1b1f27;font-weight:600}"
                  "polyline{stroke-width:1.5;stroke-opacity:0.6}</style>\n"
                  "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
                  WIDTH, HEIGHT, WIDTH, HEIGHT);
    draw_axes(j);
    draw_name(j, j->p->x, LEFT + PLOT_WIDTH / 2, TOP + PLOT_HEIGHT + 44, false);
    draw_name(j, j->p->y, 22, TOP + PLOT_HEIGHT / 2, true);
    if (j->t->title && *j->t->title)
        draw_name(j, j->t->title, LEFT + PLOT_WIDTH / 2, TOP - 20, false);
    draw_points(j);
    draw_legend(j);
    orr_buf_text(j->to, "</svg>\n");
}

static orr_code find_columns(plot_job *j, orr_error *err)
{
    const orr_sweep_plot *p = j->p;
    orr_code code = swp_table_column(j->t, orr_str_of(p->x), "--x", &j->x.column, err);
    if (!code)
        code = swp_table_column(j->t, orr_str_of(p->y), "--y", &j->y.column, err);
    if (!code && p->group)
        code = swp_table_column(j->t, orr_str_of(p->group), "--group", &j->group_column, err);
    if (code)
        return code;
    j->x.is_text = has_text(j->t, j->x.column);
    j->y.is_text = has_text(j->t, j->y.column);
    j->x.is_log = p->log_x && !j->x.is_text;
    j->y.is_log = p->log_y && !j->y.is_text;
    return ORR_OK;
}

orr_code orr_sweep_table_plot(const orr_sweep_table *t,
                              const orr_sweep_plot *p,
                              const char *path,
                              orr_error *err)
{
    orr_buf all = {0};
    plot_job j = {.t = t, .p = p, .a = orr_arena_create(), .to = &all};
    orr_code code = j.a ? find_columns(&j, err) : orr_no_memory(err);
    if (!code)
        code = gather(&j, err);
    if (!code) {
        set_ranges(&j);
        draw(&j);
        code = orr_output_save(&all, path, err);
    }
    orr_buf_fini(&all);
    orr_arena_destroy(j.a);
    return code;
}
