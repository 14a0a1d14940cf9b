/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate_plot.c - a fit as a picture: measured against fitted, and how far each row is off.
 *
 * SVG by hand, both panels on logarithmic times; colours that stay apart in print and for most eyes
 * (Okabe and Ito).  Numbers are rounded to a hundredth of a pixel, so that the same rows give the
 * same bytes. */
#include "calibrate.h"
#include "command.h"

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

static scale decades(const cal_points *p)
{
    scale s = {INFINITY, -INFINITY};
    for (size_t i = 0; i < p->count; i++) {
        s.low = fmin(s.low, log10(fmin(p->points[i].measured, p->points[i].fitted)));
        s.high = fmax(s.high, log10(fmax(p->points[i].measured, p->points[i].fitted)));
    }
    return (scale){floor(s.low), fmax(ceil(s.high), floor(s.low) + 1)};
}

/* Residuals in per cent, and to which the panel reaches. */
static double residual(const cal_point *p)
{
    return (p->fitted / p->measured - 1) * 100;
}

static double residual_most(const cal_points *p)
{
    double most = 10;
    for (size_t i = 0; i < p->count; i++)
        most = fmax(most, fabs(residual(&p->points[i])));
    return fmin(ceil(most / 10) * 10, 100);
}

static void put_frame(FILE *f, double x, const char *title)
{
    fprintf(f,
            "<rect x=\"%.0f\" y=\"%d\" width=\"%d\" height=\"%d\" class=\"frame\"/>\n"
            "<text x=\"%.0f\" y=\"%d\" class=\"title\">%s</text>\n",
            x, TOP, SIDE, SIDE, x, TOP - 12, title);
}

static void put_decades(FILE *f, const scale *s, double x, bool is_upright, const char *unit)
{
    for (double d = s->low; d <= s->high + 0.5; d++) {
        const double at = (d - s->low) / (s->high - s->low) * SIDE;
        if (is_upright)
            fprintf(f, "<text x=\"%.2f\" y=\"%.2f\" class=\"end\">%g</text>\n", x - 6,
                    TOP + SIDE - at + 4, pow(10, d));
        else
            fprintf(f, "<text x=\"%.2f\" y=\"%d\" class=\"middle\">%g%s%s</text>\n", x + at,
                    TOP + SIDE + 18, pow(10, d), d > s->high - 0.5 ? " " : "",
                    d > s->high - 0.5 ? unit : "");
    }
}

static void put_points(FILE *f, const cal_points *p, const scale *s, double x, double most)
{
    for (size_t i = 0; i < p->count; i++) {
        const cal_point *r = &p->points[i];
        const double off = fmax(-most, fmin(most, residual(r)));
        const double y = most > 0 ? TOP + SIDE / 2.0 - off / most * (SIDE / 2.0)
                                  : TOP + SIDE - place(s, r->fitted);
        fprintf(f, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"2.5\" fill=\"%s\"/>\n",
                x + place(s, r->measured), y, colours[r->series % SERIES_SHOWN]);
    }
}

static void put_series(FILE *f, const cal_points *p)
{
    double x = LEFT;
    for (size_t i = 0; i < p->series_count; i++) {
        fprintf(f,
                "<circle cx=\"%.0f\" cy=\"%d\" r=\"4\" fill=\"%s\"/><text x=\"%.0f\" y=\"%d\">%s"
                "</text>\n",
                x, TOP + SIDE + 42, colours[i % SERIES_SHOWN], x + 9, TOP + SIDE + 46,
                p->series[i]);
        x += 30 + 8.0 * (double)strlen(p->series[i]);
    }
}

orr_code cal_plot(const cal_points *p, const char *path, orr_error *err)
{
    const double second = LEFT + SIDE + GAP, most = residual_most(p);
    const scale s = decades(p);
    cli_file to;
    const orr_code code = cli_file_open(path, &to, err);
    if (code)
        return code;
    FILE *f = to.f;
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n"
            "<style>.frame{fill:none;stroke:#888}.line{stroke:#888;stroke-dasharray:4 "
            "3}.end{text-anchor:end}.middle{text-anchor:middle}.title{font-size:14px}</style>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            (int)second + SIDE + 30, TOP + SIDE + 64);
    put_frame(f, LEFT, "fitted against measured");
    put_decades(f, &s, LEFT, true, p->unit);
    put_decades(f, &s, LEFT, false, p->unit);
    fprintf(f, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" class=\"line\"/>\n", LEFT, TOP + SIDE,
            LEFT + SIDE, TOP);
    put_points(f, p, &s, LEFT, 0);
    put_frame(f, second, "error of the fit in percent");
    put_decades(f, &s, second, false, p->unit);
    for (int i = -1; i <= 1; i++)
        fprintf(f, "<text x=\"%.0f\" y=\"%.0f\" class=\"end\">%+g</text>\n", second - 6,
                TOP + SIDE / 2.0 - i * SIDE / 2.0 + 4, i * most);
    fprintf(f, "<line x1=\"%.0f\" y1=\"%.0f\" x2=\"%.0f\" y2=\"%.0f\" class=\"line\"/>\n", second,
            TOP + SIDE / 2.0, second + SIDE, TOP + SIDE / 2.0);
    put_points(f, p, &s, second, most);
    put_series(f, p);
    fprintf(f, "</svg>\n");
    return cli_file_close(&to, ORR_OK, err);
}
