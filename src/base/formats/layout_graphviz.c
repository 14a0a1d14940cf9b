/* SPDX-License-Identifier: Apache-2.0 */
/* layout_graphviz.c - Graphviz's libraries behind one function.
 *
 * Why text goes in: its own reader is what everybody's DOT files are judged by, and a graph of the
 * size that can be laid out is read in no time.  Its messages are kept off stderr; the last one
 * goes into our error. Graphviz keeps its state in globals, so the calls are made under a lock, and
 * one context serves the whole process: the text plugin remembers a font by its address, which
 * belongs to the context, so that a second context would read what was freed with the first.  Cost:
 * the layout's.  An edge is a chain of one node for each level it spans, and the time grows with
 * about the square of all these nodes: 1,800 take half a second, 4,300 take 4 s, 7,300 take 11 s,
 * and the 200,000 of a recorded training step with 800 operators take hours.  What has more than
 * MOST_CELLS of them gets plain rows instead, by this rule alone, so that the same graph always
 * gives the same bytes. */
#include "layout_graphviz.h"

#include "base/io/late_library.h"
#include "base/late_names.h"
#include "base/memory/memory.h"

#include <gvc.h>
#include <pthread.h>

enum { MOST_CELLS = 5000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- the libraries: loaded with the first graph, under the lock ---- */

#define CGRAPH_CALLS(X) \
    X(agclose)          \
    X(agfstnode)        \
    X(agfstout)         \
    X(aglasterr)        \
    X(agmemread)        \
    X(agnnodes)         \
    X(agnxtnode)        \
    X(agnxtout)         \
    X(agsafeset)        \
    X(agseterr)

#define GV_CALLS(X)     \
    X(gvContext)        \
    X(gvFreeLayout)     \
    X(gvFreeRenderData) \
    X(gvLayout)         \
    X(gvRenderData)

static struct {
    ORR_LATE_FIELDS(CGRAPH_CALLS)
} cgraph;
static struct {
    ORR_LATE_FIELDS(GV_CALLS)
} gv;

static orr_code load_libraries(orr_error *err)
{
    static const char *const cgraph_names[] = {ORR_LATE_NAMES(CGRAPH_CALLS)};
    static const char *const gv_names[] = {ORR_LATE_NAMES(GV_CALLS)};
    static bool is_loaded;
    const char *why = NULL;
    is_loaded =
        is_loaded ||
        (orr_late_load(ORR_LIBCGRAPH, cgraph_names, sizeof cgraph_names / sizeof *cgraph_names,
                       &cgraph, &why) &&
         orr_late_load(ORR_LIBGVC, gv_names, sizeof gv_names / sizeof *gv_names, &gv, &why));
    return is_loaded ? ORR_OK
                     : orr_fail(err, ORR_EIO, NULL, "Graphviz's libraries cannot be loaded: %s",
                                why ? why : ORR_LIBGVC);
}

/* Graphviz and its font libraries keep memory until the process ends; excluded from leak checks. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

static orr_code fail_layout(const char *what, orr_error *err)
{
    const char *why = cgraph.aglasterr();
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

/* A graph without a name is called by a counter of the process, "%47", and an SVG shows it in two
 * places.  Every drawing gets the name that the first one has. */
static void add_svg(orr_buf *out, const char *svg, size_t len)
{
    static const char *const before[] = {"<!-- Title: %", "<title>%"};
    size_t from = 0;
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        const char *found = memmem(svg + from, len - from, before[i], strlen(before[i]));
        if (!found)
            break;
        const size_t at = (size_t)(found - svg) + strlen(before[i]);
        orr_buf_add(out, svg + from, at - from);
        orr_buf_byte(out, '3');
        for (from = at; from < len && svg[from] >= '0' && svg[from] <= '9'; from++)
            continue;
    }
    orr_buf_add(out, svg + from, len - from);
}

/* ---- how large a graph is to the layout ---- */

typedef struct levels {
    Agnode_t **queue;
    uint32_t *of, *waits, *filled; /* by number of the node, from 1; nodes of a level so far */
    uint32_t nodes, highest;
    uint64_t cells;
} levels;

static void count_parents(Agraph_t *g, levels *v)
{
    for (Agnode_t *n = cgraph.agfstnode(g); n; n = cgraph.agnxtnode(g, n)) {
        for (Agedge_t *e = cgraph.agfstout(g, n); e; e = cgraph.agnxtout(g, e))
            v->waits[AGSEQ(aghead(e))]++;
    }
}

/* A node is one level below its lowest parent; those in cycles keep their level. */
static void set_levels(Agraph_t *g, levels *v)
{
    uint32_t known = 0, done = 0;
    count_parents(g, v);
    for (Agnode_t *n = cgraph.agfstnode(g); n; n = cgraph.agnxtnode(g, n)) {
        if (v->waits[AGSEQ(n)] == 0)
            v->queue[known++] = n;
    }
    while (done < known) {
        Agnode_t *n = v->queue[done++];
        for (Agedge_t *e = cgraph.agfstout(g, n); e; e = cgraph.agnxtout(g, e)) {
            const uint64_t to = AGSEQ(aghead(e)), below = v->of[AGSEQ(n)] + UINT64_C(1);
            v->of[to] = v->of[to] > below ? v->of[to] : (uint32_t)below;
            v->highest = v->of[to] > v->highest ? v->of[to] : v->highest;
            if (--v->waits[to] == 0)
                v->queue[known++] = aghead(e);
        }
    }
}

static void count_cells(Agraph_t *g, levels *v)
{
    for (Agnode_t *n = cgraph.agfstnode(g); n; n = cgraph.agnxtnode(g, n)) {
        for (Agedge_t *e = cgraph.agfstout(g, n); e; e = cgraph.agnxtout(g, e)) {
            const uint32_t a = v->of[AGSEQ(n)], b = v->of[AGSEQ(aghead(e))];
            v->cells += b > a ? b - a : a - b + 1;
        }
    }
}

static bool measure(Agraph_t *g, orr_arena *arena, levels *v)
{
    v->nodes = (uint32_t)cgraph.agnnodes(g);
    const size_t room = (size_t)v->nodes + 2; /* numbers of a graph that was read have no gaps */
    v->queue = orr_arena_new(arena, room, Agnode_t *);
    v->of = orr_arena_new(arena, room, uint32_t);
    v->waits = orr_arena_new(arena, room, uint32_t);
    v->filled = orr_arena_new(arena, room, uint32_t);
    if (!v->queue || !v->of || !v->waits || !v->filled)
        return false;
    set_levels(g, v);
    count_cells(g, v);
    return true;
}

/* Rows from top to bottom, in the order of the file. */
static void place_nodes(Agraph_t *g, levels *v)
{
    enum { COLUMN = 260, ROW = 60 }; /* points */
    static char key[] = "pos", none[] = "";
    for (Agnode_t *n = cgraph.agfstnode(g); n; n = cgraph.agnxtnode(g, n)) {
        const uint32_t level = v->of[AGSEQ(n)];
        char at[64];
        snprintf(at, sizeof at, "%lu,%lu", (unsigned long)v->filled[level]++ * COLUMN,
                 (unsigned long)(v->highest - level) * ROW);
        cgraph.agsafeset(n, key, at, none);
    }
    cgraph.agsafeset(g, (char[]){"splines"}, (char[]){"line"}, none);
}

static orr_code render(
    GVC_t *gvc, Agraph_t *g, const char *engine, const char *format, orr_buf *out, orr_error *err)
{
    char *data = NULL;
    unsigned len = 0;
    if (gv.gvLayout(gvc, g, engine) != 0)
        return fail_layout("lay out the graph", err);
    const bool is_done = gv.gvRenderData(gvc, g, format, &data, &len) == 0 && data;
    const orr_code code = is_done ? ORR_OK : fail_layout("draw the graph", err);
    const size_t from = out->len;
    if (is_done && strcmp(format, "svg") == 0)
        add_svg(out, data, len);
    else if (is_done)
        orr_buf_add(out, data, len);
    if (strcmp(format, "pdf") == 0 && !out->failed)
        set_date(out, from);
    gv.gvFreeRenderData(data);
    gv.gvFreeLayout(gvc, g);
    return code;
}

static orr_code choose_and_render(
    GVC_t *gvc, Agraph_t *g, const char *format, orr_buf *out, bool *is_plain, orr_error *err)
{
    orr_arena *arena = orr_arena_create();
    levels v = {.nodes = 0};
    orr_code code = arena && measure(g, arena, &v) ? ORR_OK : orr_no_memory(err);
    *is_plain = !code && v.cells > MOST_CELLS;
    if (*is_plain && strcmp(format, "dot") != 0)
        place_nodes(g, &v);
    orr_arena_destroy(arena);
    if (code || (*is_plain && strcmp(format, "dot") == 0))
        return code;
    return render(gvc, g, *is_plain ? "nop" : "dot", format, out, err);
}

static orr_code read_and_render(
    const char *text, const char *format, orr_buf *out, bool *is_plain, orr_error *err)
{
    static GVC_t *gvc;
    const orr_code loaded = load_libraries(err);
    if (loaded)
        return loaded;
    cgraph.agseterr(AGMAX);
    if (!gvc)
        gvc = gv.gvContext();
    if (!gvc)
        return orr_no_memory(err);
    Agraph_t *g = cgraph.agmemread(text);
    const orr_code code = g ? choose_and_render(gvc, g, format, out, is_plain, err)
                            : fail_layout("read the graph", err);
    if (g)
        cgraph.agclose(g);
    return code;
}

orr_code orr_layout_render(
    orr_str text, const char *format, orr_buf *out, bool *is_plain, orr_error *err)
{
    orr_buf copy = {0};
    *is_plain = false;
    orr_buf_add(&copy, text.ptr, text.len);
    orr_buf_byte(&copy, '\0');
    if (copy.failed)
        return orr_no_memory(err);
    pthread_mutex_lock(&lock);
    if (__lsan_disable)
        __lsan_disable();
    orr_code code = read_and_render((const char *)copy.ptr, format, out, is_plain, err);
    if (__lsan_enable)
        __lsan_enable();
    pthread_mutex_unlock(&lock);
    orr_buf_fini(&copy);
    if (!code && *is_plain && strcmp(format, "dot") == 0)
        orr_buf_add(out, text.ptr, text.len);
    return code ? code : out->failed ? orr_no_memory(err) : ORR_OK;
}
