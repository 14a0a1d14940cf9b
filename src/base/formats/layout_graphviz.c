/* SPDX-License-Identifier: Apache-2.0 */
/* layout_graphviz.c - Graphviz's libraries behind one function.
 *
 * Why text goes in: its own reader is what everybody's DOT files are judged by, and a graph of the
 * size that can be laid out is read in no time.  Its messages are kept off stderr; the last one
 * goes into our error. Graphviz keeps its state in globals, so the calls are made under a lock.
 * Cost: the layout's, which grows faster than the square of the number of nodes; callers limit what
 * they ask for. */
#include "layout_graphviz.h"

#include <gvc.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Graphviz and the font libraries behind it keep memory until the process ends; a leak checker is
 * told so. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

static orr_code fail_layout(const char *what, orr_error *err)
{
    const char *why = aglasterr();
    const int len = why ? (int)strcspn(why, "\n") : 0;
    return orr_fail(err, ORR_EBUG, NULL, "Graphviz cannot %s%s%.*s", what, len ? ": " : "", len,
                    why ? why : "");
}

/* A PDF is dated with the clock (cairo to 1.16 does not listen to SOURCE_DATE_EPOCH); the same
 * graph gives the same bytes, so digits are set to the beginning of time, which changes no
 * length. */
static void set_date(orr_buf *pdf, size_t from)
{
    static const char mark[] = "/CreationDate (D:", date[] = "19700101000000";
    if (pdf->len == from)
        return;
    uint8_t *found = memmem(pdf->ptr + from, pdf->len - from, mark, sizeof mark - 1);
    if (!found || (size_t)(pdf->ptr + pdf->len - found) < sizeof mark + sizeof date)
        return;
    found += sizeof mark - 1;
    for (size_t i = 0; date[i] && found[i] >= '0' && found[i] <= '9'; i++)
        found[i] = (uint8_t)date[i];
}

static orr_code render(GVC_t *gvc, Agraph_t *g, const char *format, orr_buf *out, orr_error *err)
{
    char *data = NULL;
    unsigned len = 0;
    if (gvLayout(gvc, g, "dot") != 0)
        return fail_layout("lay out the graph", err);
    const bool is_done = gvRenderData(gvc, g, format, &data, &len) == 0 && data;
    const orr_code code = is_done ? ORR_OK : fail_layout("draw the graph", err);
    const size_t from = out->len;
    if (is_done)
        orr_buf_add(out, data, len);
    if (strcmp(format, "pdf") == 0 && !out->failed)
        set_date(out, from);
    gvFreeRenderData(data);
    gvFreeLayout(gvc, g);
    return code;
}

static orr_code read_and_render(const char *text, const char *format, orr_buf *out, orr_error *err)
{
    agseterr(AGMAX);
    GVC_t *gvc = gvContext();
    if (!gvc)
        return orr_no_memory(err);
    Agraph_t *g = agmemread(text);
    const orr_code code = g ? render(gvc, g, format, out, err) : fail_layout("read the graph", err);
    if (g)
        agclose(g);
    gvFreeContext(gvc);
    return code;
}

orr_code orr_layout_render(orr_str text, const char *format, orr_buf *out, orr_error *err)
{
    orr_buf copy = {0};
    orr_buf_add(&copy, text.ptr, text.len);
    orr_buf_byte(&copy, '\0');
    if (copy.failed)
        return orr_no_memory(err);
    pthread_mutex_lock(&lock);
    if (__lsan_disable)
        __lsan_disable();
    orr_code code = read_and_render((const char *)copy.ptr, format, out, err);
    if (__lsan_enable)
        __lsan_enable();
    pthread_mutex_unlock(&lock);
    orr_buf_fini(&copy);
    return code ? code : out->failed ? orr_no_memory(err) : ORR_OK;
}
