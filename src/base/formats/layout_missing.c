/* SPDX-License-Identifier: Apache-2.0 */
/* layout_missing.c - replaces layout_graphviz.c in a build without Graphviz: reports what is
 * missing. */
#include "layout_graphviz.h"

orr_code orr_layout_render(
    orr_str text, const char *format, orr_buf *out, bool *is_plain, orr_error *err)
{
    *is_plain = false;
    (void)text, (void)out;
    return orr_fail(
        err, ORR_EUSAGE, NULL,
        "%s: this build cannot lay out graphs: Graphviz (libgvc) is missing; build with "
        "-Ddrawing=enabled, or use json, graphml or dot without a layout",
        format);
}
