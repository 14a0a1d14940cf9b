/* SPDX-License-Identifier: Apache-2.0 */
/* fit_view.c - a fit as a picture: measured against fitted, and how far each row is off; for steps,
 * their times in order.
 *
 * SVG by hand, the panels of rows on logarithmic times; colours that stay apart in print and for
 * most eyes (Okabe and Ito).  Numbers are rounded to a hundredth of a pixel, so that the same rows
 * give the same bytes. */
#include <orrery/view.h>

#include "base/io/output.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 360, LEFT = 64, TOP = 40, GAP = 84, SERIES_SHOWN = 8 };

static const char *const colours[SERIES_SHOWN] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                  "#e69f00", "#56b4e9", "#000000", "#999999"};

typedef struct scale {
    double low, high; /* decades */
} scale;

static double place(const scale *s, double value)
{
    return (log10(value) - s->low) / (s->high - s->low) * SIDE;
}

static scale decades(const orr_view_fit *p)
{
    scale s = {INFINITY, -INFINITY};
    for (size_t i = 0; i < p->count; i++) {
        s.low = fmin(s.low, log10(fmin(p->points[i].measured, p->points[i].fitted)));
        s.high = fmax(s.high, log10(fmax(p->points[i].measured, p->points[i].fitted)));
    }
    return (scale){floor(s.low), fmax(ceil(s.high), floor(s.low) + 1)};
}

/* Residuals in per cent, and to which the panel reaches. */
static double residual(const orr_view_fit_point *p)
{
    return (p->fitted / p->measured - 1) * 100;
}

static double residual_most(const orr_view_fit *p)
{
    double most = 10;
    for (size_t i = 0; i < p->count; i++)
        most = fmax(most, fabs(residual(&p->points[i])));
    return fmin(ceil(most / 10) * 10, 100);
}

static void put_frame(orr_buf *b, double x, const char *title)
{
    orr_buf_print(b,
                  "<rect x=\"%.0f\" y=\"%d\" width=\"%d\" height=\"%d\" class=\"frame\"/>\n"
                  "<text x=\"%.0f\" y=\"%d\" class=\"title\">%s</text>\n",
                  x, TOP, SIDE, SIDE, x, TOP - 12, title);
}

static void put_decades(orr_buf *b, const scale *s, double x, bool is_upright, const char *unit)
{
    for (double d = s->low; d <= s->high + 0.5; d++) {
        const double at = (d - s->low) / (s->high - s->low) * SIDE;
        if (is_upright)
            orr_buf_print(b, "<text x=\"%.2f\" y=\"%.2f\" class=\"end\">%g</text>\n", x - 6,
                          TOP + SIDE - at + 4, pow(10, d));
        else
            orr_buf_print(b, "<text x=\"%.2f\" y=\"%d\" class=\"middle\">%g%s%s</text>\n", x + at,
                          TOP + SIDE + 18, pow(10, d), d > s->high - 0.5 ? " " : "",
                          d > s->high - 0.5 ? unit : "");
    }
}

static void put_points(orr_buf *b, const orr_view_fit *p, const scale *s, double x, double most)
{
    for (size_t i = 0; i < p->count; i++) {
        const orr_view_fit_point *r = &p->points[i];
        const double off = fmax(-most, fmin(most, residual(r)));
        const double y = most > 0 ? TOP + SIDE / 2.0 - off / most * (SIDE / 2.0)
                                  : TOP + SIDE - place(s, r->fitted);
        orr_buf_print(b, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"2.5\" fill=\"%s\"/>\n",
                      x + place(s, r->measured), y, colours[r->series % SERIES_SHOWN]);
    }
}

static void put_series(orr_buf *b, const orr_view_fit *p)
{
    double x = LEFT;
    for (size_t i = 0; i < p->series_count; i++) {
        orr_buf_print(
            b,
            "<circle cx=\"%.0f\" cy=\"%d\" r=\"4\" fill=\"%s\"/><text x=\"%.0f\" y=\"%d\">%s"
            "</text>\n",
            x, TOP + SIDE + 42, colours[i % SERIES_SHOWN], x + 9, TOP + SIDE + 46, p->series[i]);
        x += 30 + 8.0 * (double)strlen(p->series[i]);
    }
}

static void begin(orr_buf *b, int width)
{
    orr_buf_print(
        b,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n"
        "<style>.frame{fill:none;stroke:#888}.line{stroke:#888;stroke-dasharray:4 "
        "3}.end{text-anchor:end}.middle{text-anchor:middle}.title{font-size:14px}</style>\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
        width, TOP + SIDE + 64);
}

orr_code orr_view_fit_svg(const orr_view_fit *p, const char *path, orr_error *err)
{
    const double second = LEFT + SIDE + GAP, most = residual_most(p);
    const scale s = decades(p);
    orr_buf text = {0}, *b = &text;
    if (!p->count)
        return orr_fail(err, ORR_EUSAGE, NULL, "a drawing of a fit needs at least one point");
    begin(b, (int)second + SIDE + 30);
    put_frame(b, LEFT, "fitted against measured");
    put_decades(b, &s, LEFT, true, p->unit);
    put_decades(b, &s, LEFT, false, p->unit);
    orr_buf_print(b, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" class=\"line\"/>\n", LEFT,
                  TOP + SIDE, LEFT + SIDE, TOP);
    put_points(b, p, &s, LEFT, 0);
    put_frame(b, second, "error of the fit in percent");
    put_decades(b, &s, second, false, p->unit);
    for (int i = -1; i <= 1; i++)
        orr_buf_print(b, "<text x=\"%.0f\" y=\"%.0f\" class=\"end\">%+g</text>\n", second - 6,
                      TOP + SIDE / 2.0 - i * SIDE / 2.0 + 4, i * most);
    orr_buf_print(b, "<line x1=\"%.0f\" y1=\"%.0f\" x2=\"%.0f\" y2=\"%.0f\" class=\"line\"/>\n",
                  second, TOP + SIDE / 2.0, second + SIDE, TOP + SIDE / 2.0);
    put_points(b, p, &s, second, most);
    put_series(b, p);
    orr_buf_print(b, "</svg>\n");
    const orr_code code = orr_output_save(b, path, err);
    orr_buf_fini(b);
    return code;
}

/* ---- steps ---- */

enum { STEPS_WIDE = 2 * SIDE + GAP };

/* 1, 2 or 5 times a power of ten, about a fifth of the range. */
static double tick_of(double range)
{
    const double unit = pow(10, floor(log10(range / 5)));
    const double times = range / 5 / unit;
    return unit * (times < 1.5 ? 1 : times < 3.5 ? 2 : times < 7.5 ? 5 : 10);
}

static double height_of(double ms, double low, double high)
{
    return TOP + SIDE - (fmax(low, fmin(high, ms)) - low) / (high - low) * SIDE;
}

static void put_level(orr_buf *b, double y, const char *colour, const char *name, int at)
{
    orr_buf_print(b,
                  "<line x1=\"%d\" y1=\"%.2f\" x2=\"%d\" y2=\"%.2f\" stroke=\"%s\"/>\n"
                  "<text x=\"%d\" y=\"%d\" fill=\"%s\">%s</text>\n",
                  LEFT, y, LEFT + STEPS_WIDE, y, colour, LEFT + at, TOP + SIDE + 46, colour, name);
}

orr_code orr_view_steps_svg(const orr_view_steps *p, const char *path, orr_error *err)
{
    orr_buf text = {0}, *b = &text;
    if (p->skipped >= p->count)
        return orr_fail(err, ORR_EUSAGE, NULL, "a drawing of steps needs at least one step");
    /* Warm-up is slower by far and is cut off at the top. */
    double low = fmin(p->low, p->predicted), high = fmax(p->high, p->predicted);
    for (size_t i = p->skipped; i < p->count; i++) {
        low = fmin(low, p->times[i]);
        high = fmax(high, p->times[i]);
    }
    const double margin = fmax((high - low) / 10, high / 1000);
    const double tick = tick_of(high - low + 2 * margin);
    low = fmax(0, low - margin);
    high += margin;
    begin(b, LEFT + STEPS_WIDE + 30);
    const double top = height_of(p->high, low, high);
    orr_buf_print(b, "<rect x=\"%d\" y=\"%.2f\" width=\"%d\" height=\"%.2f\" fill=\"#e8f0f8\"/>\n",
                  LEFT, top, STEPS_WIDE, height_of(p->low, low, high) - top);
    orr_buf_print(b,
                  "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" class=\"frame\"/>\n"
                  "<text x=\"%d\" y=\"%d\" class=\"title\">time per step in %s</text>\n",
                  LEFT, TOP, STEPS_WIDE, SIDE, LEFT, TOP - 12, p->unit);
    for (double at = ceil(low / tick) * tick; at <= high; at += tick)
        orr_buf_print(b, "<text x=\"%d\" y=\"%.2f\" class=\"end\">%g</text>\n", LEFT - 6,
                      height_of(at, low, high) + 4, at);
    for (size_t i = 0; i < p->count; i++)
        orr_buf_print(b, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"2.5\" fill=\"%s\"/>\n",
                      LEFT + ((double)i + 0.5) / (double)p->count * STEPS_WIDE,
                      height_of(p->times[i], low, high), i < p->skipped ? "#999999" : "#000000");
    put_level(b, height_of(p->median, low, high), colours[0], "median and interval", 0);
    put_level(b, height_of(p->predicted, low, high), colours[1], "predicted", 140);
    if (p->skipped)
        orr_buf_print(b, "<text x=\"%d\" y=\"%d\" fill=\"#999999\">grey: skipped</text>\n",
                      LEFT + 240, TOP + SIDE + 46);
    orr_buf_print(b, "<text x=\"%d\" y=\"%d\" class=\"end\">step %zu</text>\n</svg>\n",
                  LEFT + STEPS_WIDE, TOP + SIDE + 18, p->count);
    const orr_code code = orr_output_save(b, path, err);
    orr_buf_fini(b);
    return code;
}
