/* SPDX-License-Identifier: Apache-2.0 */
/* bars_view.c - times side by side, as a drawing (SVG): one group of bars per input, one bar per
 * way to compute it.
 *
 *     200 % |      _                     bars are times as shares of the first of their group,
 *           |     | |                    so that small and large inputs stand beside each other;
 *     100 % |-|x|-| |-|/|----            the first one's time is written below
 *           |_|x|_|_|_|/|____
 *             16k   1m ...
 *
 * Bars differ in fill (full, light, hatched, outlined) as well as in colour, and their shares are
 * written above them.  The drawing follows the reader's colour scheme, light or dark. */
#include <orrery/lab/units.h>
#include <orrery/view.h>

#include "base/io/output.h"
#include "views_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LEFT = 56, TOP = 44, HEIGHT = 220, BAR = 34, GAP = 26, FOOT = 48, FILLS = 4, MOST = 256 };

typedef struct drawing {
    const orr_view_bars *v;
    orr_buf *b;
    double most; /* the largest share */
} drawing;

static double share_of(const orr_view_bars *v, size_t group, size_t bar)
{
    const double first = (double)v->ps[group * v->bar_count];
    return first > 0 ? (double)v->ps[group * v->bar_count + bar] / first : 0;
}

static double height_of(const drawing *d, double share)
{
    return share / d->most * HEIGHT;
}

static size_t width_of(const orr_view_bars *v)
{
    return LEFT + v->group_count * (v->bar_count * BAR + GAP) + GAP;
}

static void put_text(orr_buf *b, double x, double y, const char *anchor, const char *s)
{
    orr_buf_print(b, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    orr__put_html(b, orr_str_of(s));
    orr_buf_text(b, "</text>\n");
}

static void put_head(const drawing *d)
{
    const size_t width = width_of(d->v);
    orr_buf_print(d->b,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%zu\" height=\"%d\" "
                  "viewBox=\"0 0 %zu %d\" role=\"img\">\n<title>",
                  width, TOP + HEIGHT + FOOT, width, TOP + HEIGHT + FOOT);
    orr__put_html(d->b, orr_str_of(d->v->title));
    orr_buf_text(d->b, "</title>\n<style>\n"
                       "text{font:12px sans-serif;fill:#222}.axis{stroke:#888}\n"
                       ".f0{fill:#1f5fa8;stroke:#1f5fa8}.f1{fill:#9cc3ea;stroke:#1f5fa8}\n"
                       ".f2{fill:url(#hatch);stroke:#b4540a}.f3{fill:none;stroke:#444}\n"
                       "@media(prefers-color-scheme:dark){text{fill:#ddd}.f3{stroke:#bbb}}\n"
                       "</style>\n<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" "
                       "patternUnits=\"userSpaceOnUse\"><path d=\"M0 6L6 0\" stroke=\"#b4540a\" "
                       "stroke-width=\"2\"/></pattern></defs>\n");
}

/* The legend, above the bars. */
static void put_legend(const drawing *d)
{
    double x = LEFT;
    for (size_t i = 0; i < d->v->bar_count; i++) {
        orr_buf_print(d->b,
                      "<rect class=\"f%zu\" x=\"%.1f\" y=\"10\" width=\"14\" height=\"12\"/>\n",
                      i % FILLS, x);
        put_text(d->b, x + 19, 20, "start", d->v->bars[i]);
        x += 40 + 7.5 * (double)strlen(d->v->bars[i]);
    }
}

static void put_axis(const drawing *d)
{
    const double right = (double)width_of(d->v) - GAP / 2.0;
    char label[16];
    const double step = d->most > 4 ? 1 : 0.5;
    for (double share = 0; share <= d->most; share += step) {
        const double y = TOP + HEIGHT - height_of(d, share);
        orr_buf_print(d->b, "<path class=\"axis\" d=\"M%d %.1fH%.1f\"%s/>\n", LEFT, y, right,
                      share == 0 ? "" : " stroke-dasharray=\"2 4\"");
        snprintf(label, sizeof label, "%.0f %%", 100 * share);
        put_text(d->b, LEFT - 6, y + 4, "end", label);
    }
}

static void put_group(const drawing *d, size_t group)
{
    const orr_view_bars *v = d->v;
    const size_t left = LEFT + GAP + group * (v->bar_count * BAR + GAP);
    const double middle = (double)left + (double)(v->bar_count * BAR) / 2;
    const uint64_t first = v->ps[group * v->bar_count];
    char label[64], time[ORR_UNIT_ROOM];
    for (size_t i = 0; i < v->bar_count; i++) {
        const double share = share_of(v, group, i), tall = height_of(d, share);
        const double x = (double)(left + i * BAR);
        orr_buf_print(d->b,
                      "<rect class=\"f%zu\" x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%.1f\"/>\n",
                      i % FILLS, x + 3, TOP + HEIGHT - tall, BAR - 6, tall);
        snprintf(label, sizeof label, "%.0f", 100 * share);
        put_text(d->b, x + BAR / 2.0, TOP + HEIGHT - tall - 4, "middle", label);
    }
    put_text(d->b, middle, TOP + HEIGHT + 16, "middle", v->groups[group]);
    put_text(d->b, middle, TOP + HEIGHT + 32, "middle",
             orr_time_text(first < INT64_MAX ? (orr_ps)first : INT64_MAX, time));
}

orr_code orr_view_bars_svg(const orr_view_bars *v, const char *path, orr_error *err)
{
    orr_buf b = {0};
    orr_output *out;
    drawing d = {v, &b, 1};
    if (!v->bar_count || !v->group_count || v->bar_count > MOST || v->group_count > MOST)
        return orr_fail(err, ORR_EUSAGE, NULL, "a drawing of bars needs 1 to %d of each", MOST);
    for (size_t g = 0; g < v->group_count; g++)
        for (size_t i = 0; i < v->bar_count; i++)
            d.most = share_of(v, g, i) > d.most ? share_of(v, g, i) : d.most;
    put_head(&d);
    put_legend(&d);
    put_axis(&d);
    for (size_t g = 0; g < v->group_count; g++)
        put_group(&d, g);
    orr_buf_text(&b, "</svg>\n");
    orr_code code = b.failed ? orr_no_memory(err) : orr_output_open(path, &out, err);
    if (!code) {
        orr_output_drain(out, &b);
        code = orr_output_commit(&out, err);
    }
    orr_buf_fini(&b);
    return code;
}
