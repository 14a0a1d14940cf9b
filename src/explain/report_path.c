/* SPDX-License-Identifier: Apache-2.0 */
/* report_path.c - the critical path in reports: how much of it is which kind of work, and its longest steps. */
#include "run_report.h"

#include "base/text/bar.h"

#include <orrery/critical_path.h>
#include <orrery/units.h>

#include <inttypes.h>
#include <stdlib.h>

enum { BAR_CELLS = 16 };

/* ---- for people ---- */

/* Steps of one rank and one kind of work that follow each other, none of them held by another rank but perhaps
 * the first: one line. */
typedef struct stretch {
    uint32_t first, last; /* steps */
    uint32_t steps;       /* those that take time */
    uint64_t from, to;
} stretch;

static bool goes_on(const orr_critical_path *p, const stretch *r, const orr_path_step *s)
{
    const orr_path_step *first = &p->steps[r->first];
    return s->rank == first->rank && s->held == ORR_PATH_NOT_HELD &&
           strcmp(s->what, first->what) == 0;
}

static stretch *find_stretches(const orr_critical_path *p, uint32_t *count)
{
    stretch *rows = orr_alloc(p->step_count, sizeof *rows);
    *count = 0;
    for (uint32_t i = 0; rows && i < p->step_count; i++) {
        const orr_path_step *s = &p->steps[i];
        stretch *r = *count ? &rows[*count - 1] : NULL;
        if (s->from == s->to)
            continue;
        if (!r || !goes_on(p, r, s)) {
            r = &rows[(*count)++];
            *r = (stretch){.first = i, .from = s->from};
        }
        r->last = i;
        r->steps++;
        r->to = s->to;
    }
    return rows;
}

static int compare_stretch(const void *a, const void *b)
{
    const stretch *x = a, *y = b;
    if (x->to - x->from != y->to - y->from)
        return x->to - x->from > y->to - y->from ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

static int compare_first(const void *a, const void *b)
{
    const stretch *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

static void print_shares(orr_buf *b, const orr_critical_path *p)
{
    char time[ORR_UNIT_ROOM], share[ORR_UNIT_ROOM], steps[ORR_UNIT_ROOM], bar[ORR_BAR_ROOM];
    orr_buf_print(b, "\n%-22s %12s %11s %13s\n", "critical path", "steps", "time", "share");
    for (size_t i = 0; i < p->share_count; i++)
        orr_buf_print(
            b, "%-22s %12s %11s %13s%s%s\n", p->shares[i].what,
            orr_count_text(p->shares[i].steps, steps), orr__ns_text(p->shares[i].time, time),
            orr_percent_text(p->shares[i].time, p->total, share), p->shares[i].time ? "  " : "",
            orr_bar_text(p->shares[i].time, p->total, BAR_CELLS, bar));
}

/* What kept a step from being over earlier, in a few words. */
static void print_reason(orr_buf *b, const orr_critical_path *p, uint32_t i)
{
    const orr_path_step *s = &p->steps[i], *before = i ? s - 1 : NULL;
    switch (s->held) {
    case ORR_PATH_MESSAGE:
        orr_buf_print(b, "message from rank %u", s->held_rank);
        return;
    case ORR_PATH_RECEIVER:
        orr_buf_print(b, "rank %u was not ready", s->held_rank);
        return;
    case ORR_PATH_LAST_RANK:
        orr_buf_print(b, "rank %u came last", s->held_rank);
        return;
    default:
        break;
    }
    if (!before)
        orr_buf_text(b, "the start");
    else if (s->after == ORR_PATH_START)
        orr_buf_text(b, "its late start");
    else if (s->after == ORR_PATH_DEPENDENCY)
        orr_buf_print(b, "needs node %" PRIu64, before->node);
    else if (s->after == ORR_PATH_SLOT)
        orr_buf_print(b, "slot of node %" PRIu64, before->node);
    else if (s->after == ORR_PATH_SERVER)
        orr_buf_print(b, "server, for rank %u", before->rank);
    else
        orr_buf_print(b, "turn after node %" PRIu64, before->node);
}

/* A text from a file must not move a terminal's pen, nor a column. */
static void print_cell(orr_buf *b, const char *text, size_t length, size_t width)
{
    for (size_t n = 0; n < width; n++) {
        const char c = n < length ? text[n] : ' ';
        const bool is_cut = n + 1 == width && length > width;
        orr_buf_byte(b, (uint8_t)(is_cut ? '~' : c >= 0x20 && c < 0x7f ? c : '?'));
    }
}

static void print_stretch(orr_buf *b, const orr_critical_path *p, const stretch *r)
{
    enum { WHAT_WIDTH = 30 };
    const orr_path_step *s = &p->steps[r->first];
    char from[ORR_UNIT_ROOM], took[ORR_UNIT_ROOM];
    orr_buf what = {0};
    if (r->steps > 1)
        orr_buf_print(&what, "%u x %s, nodes %" PRIu64 "-%" PRIu64, r->steps, s->what, s->node,
                      p->steps[r->last].node);
    else
        orr_buf_print(&what, "%s, node %" PRIu64 " %s", s->what, s->node, s->name);
    orr_buf_print(b, "%9s %9s %6u ", orr__ns_text(r->from, from),
                  orr__ns_text(r->to - r->from, took), s->rank);
    print_cell(b, (const char *)what.ptr, what.len, WHAT_WIDTH);
    orr_buf_byte(b, ' ');
    print_reason(b, p, r->first);
    orr_buf_byte(b, '\n');
    b->failed |= what.failed;
    orr_buf_fini(&what);
}

orr_code orr__print_path(const orr_sim *s, orr_buf *b, orr_error *err)
{
    orr_critical_path *p;
    uint32_t count;
    const orr_code code = orr_sim_critical_path(s, &p, err);
    if (code)
        return code;
    stretch *rows = find_stretches(p, &count);
    if (rows) {
        print_shares(b, p);
        qsort(rows, count, sizeof *rows, compare_stretch);
        const uint32_t shown = count < s->opt.critical_path ? count : s->opt.critical_path;
        qsort(rows, shown, sizeof *rows, compare_first);
        orr_buf_print(b, "\n%9s %9s %6s %-30s %s\n", "from", "took", "rank",
                      shown < count ? "the longest parts of it" : "step by step", "waited for");
        for (uint32_t i = 0; i < shown; i++)
            print_stretch(b, p, &rows[i]);
    }
    orr_free(rows);
    orr_critical_path_destroy(p);
    return rows ? ORR_OK : orr_no_memory(err);
}

/* ---- for programs: the longest steps, in the order of time ---- */

static int compare_length(const void *a, const void *b, void *steps)
{
    const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const orr_path_step *all = steps, *x = &all[i], *y = &all[k];
    if (x->to - x->from != y->to - y->from)
        return x->to - x->from > y->to - y->from ? -1 : 1;
    return i < k ? -1 : i > k;
}

static int compare_place(const void *a, const void *b)
{
    const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    return i < k ? -1 : i > k;
}

/* Steps that take no time are never among them. */
static uint32_t *longest_steps(const orr_critical_path *p, uint32_t wanted, uint32_t *count)
{
    uint32_t *all = orr_alloc(p->step_count, sizeof *all);
    uint32_t n = 0;
    if (!all)
        return NULL;
    for (uint32_t i = 0; i < p->step_count; i++)
        if (p->steps[i].to > p->steps[i].from)
            all[n++] = i;
    qsort_r(all, n, sizeof *all, compare_length, (void *)(uintptr_t)p->steps);
    *count = n < wanted ? n : wanted;
    qsort(all, *count, sizeof *all, compare_place);
    return all;
}

static void put_step(orr_json_writer *w, const orr_path_step *s)
{
    orr_json_begin_object(w);
    orr__put_u64(w, "from_ns", s->from);
    orr__put_u64(w, "to_ns", s->to);
    orr__put_u64(w, "rank", s->rank);
    orr__put_u64(w, "node", s->node);
    orr__put_text(w, "name", s->name);
    orr__put_text(w, "work", s->what);
    orr__put_u64(w, "size_bytes", s->size);
    orr__put_text(w, "after", orr_path_after_name((orr_path_after)s->after));
    orr__put_text(w, "held_by", orr_path_held_name((orr_path_held)s->held));
    orr_json_key(w, "held_by_rank");
    if (s->held)
        orr_json_u64(w, s->held_rank);
    else
        orr_json_null(w);
    orr_json_key(w, "held_by_node");
    if (s->held)
        orr_json_u64(w, s->held_node);
    else
        orr_json_null(w);
    orr_json_end_object(w);
}

static void put_path(const orr_sim *s, orr_json_writer *w, const orr_critical_path *p)
{
    uint32_t count = 0;
    uint32_t *rows = longest_steps(p, s->opt.critical_path, &count);
    w->to->failed |= !rows;
    orr_json_begin_object(w);
    orr__put_u64(w, "duration_ns", p->total);
    orr__put_u64(w, "ranks", p->ranks);
    orr__put_u64(w, "steps_total", p->step_count);
    orr_json_key(w, "work");
    orr_json_begin_array(w);
    for (size_t i = 0; i < p->share_count; i++) {
        orr_json_begin_object(w);
        orr__put_text(w, "work", p->shares[i].what);
        orr__put_u64(w, "steps", p->shares[i].steps);
        orr__put_u64(w, "duration_ns", p->shares[i].time);
        orr_json_key(w, "share");
        orr_json_double(w, p->total ? (double)p->shares[i].time / (double)p->total : 0);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    orr_json_key(w, "longest_steps");
    orr_json_begin_array(w);
    for (uint32_t i = 0; rows && i < count; i++)
        put_step(w, &p->steps[rows[i]]);
    orr_json_end_array(w);
    orr_json_end_object(w);
    orr_free(rows);
}

void orr__put_path(const orr_sim *s, orr_json_writer *w)
{
    orr_critical_path *p = NULL;
    orr_error ignored;
    const bool is_wanted = s->opt.critical_path && s->finished == s->npu_count;
    orr_json_key(w, "critical_path");
    if (is_wanted && orr_sim_critical_path(s, &p, &ignored) == ORR_OK)
        put_path(s, w, p);
    else
        orr_json_null(w);
    w->to->failed |= is_wanted && !p && ignored.code == ORR_ENOMEM;
    orr_critical_path_destroy(p);
}
