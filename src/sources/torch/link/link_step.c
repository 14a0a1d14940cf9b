/* SPDX-License-Identifier: Apache-2.0 */
/* link_step.c - one step out of several: what the host did while ProfilerStep#N was open, and what it launched then.
 *
 * Done on the events, before anything is made of them: what is not there needs no exception later.  Host nodes that
 * belong to other steps lose their operators and then count as not measured.
 * Cost: two passes. */
#include "link_impl.h"

#include "base/memory/map.h"
#include "base/text/number.h"

#include <inttypes.h>

typedef struct window {
    double from, to;
    int64_t first, last; /* numbers of the steps there are */
    bool is_found;
} window;

/* N of "ProfilerStep#N". */
static bool step_number(orr_str name, int64_t *out)
{
    const char *hash = name.len ? memchr(name.ptr, '#', name.len) : NULL;
    if (!hash)
        return false;
    return orr_text_i64((orr_str){hash + 1, name.len - (size_t)(hash + 1 - name.ptr)}, out);
}

static void widen(window *w, const kin_event *e)
{
    if (!w->is_found || e->ts < w->from)
        w->from = e->ts;
    if (!w->is_found || kin_end(e) > w->to)
        w->to = kin_end(e);
    w->is_found = true;
}

static window find_window(const orr_link *l)
{
    window w = {.first = INT64_MAX, .last = INT64_MIN};
    for (size_t i = 0; i < l->device.count; i++) {
        const kin_event *e = &l->device.events[i];
        int64_t n;
        if (e->kind != KIN_STEP ||
            !step_number(orr_intern_get(l->device.texts, e->name), &n))
            continue;
        w.first = n < w.first ? n : w.first;
        w.last = n > w.last ? n : w.last;
        if (n == l->opt.step)
            widen(&w, e);
    }
    return w;
}

static orr_code no_such_step(const orr_link *l, const window *w, orr_error *err)
{
    if (w->first > w->last)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "step %" PRId64 ": %s has no annotation ProfilerStep", l->opt.step,
                        l->device_path);
    return orr_fail(err, ORR_EUSAGE, NULL, "step %" PRId64 ": %s has steps %" PRId64 " to %" PRId64,
                    l->opt.step, l->device_path, w->first, w->last);
}

static bool is_inside(const window *w, const kin_event *e)
{
    return e->ts >= w->from && e->ts < w->to;
}

/* A device operation belongs to the step that launched it. */
static bool is_kept(const orr_link *l, const window *w, const orr_map *calls, const kin_event *e)
{
    if (!kin_is_device(e))
        return is_inside(w, e);
    const uint32_t call = orr_map_find(calls, (uint64_t)e->correlation, LINK_NONE);
    return call != LINK_NONE && is_inside(w, &l->device.events[call]);
}

static bool find_calls(const orr_link *l, orr_map *calls)
{
    for (uint32_t i = 0; i < l->device.count; i++) {
        const kin_event *e = &l->device.events[i];
        if (e->kind == KIN_RUNTIME && e->correlation != -1 &&
            orr_map_find(calls, (uint64_t)e->correlation, LINK_NONE) == LINK_NONE &&
            !orr_map_put(calls, (uint64_t)e->correlation, i, NULL))
            return false;
    }
    return true;
}

/* Which events stay is decided before any of them moves. */
static bool keep_window(orr_link *l, const window *w, const orr_map *calls)
{
    kin_trace *k = &l->device;
    bool *kept = orr_alloc(k->count + 1, sizeof *kept);
    size_t n = 0;
    if (!kept)
        return false;
    for (size_t i = 0; i < k->count; i++)
        kept[i] = is_kept(l, w, calls, &k->events[i]);
    for (size_t i = 0; i < k->count; i++) {
        if (kept[i])
            k->events[n++] = k->events[i];
    }
    k->count = n;
    orr_free(kept);
    return true;
}

orr_code link_pick_step(orr_link *l, orr_error *err)
{
    if (!l->opt.has_step)
        return ORR_OK;
    const window w = find_window(l);
    if (!w.is_found)
        return no_such_step(l, &w, err);
    orr_map *calls = orr_map_create(1024);
    const bool is_done = calls && find_calls(l, calls) && keep_window(l, &w, calls);
    orr_map_destroy(calls);
    return is_done ? ORR_OK : orr_no_memory(err);
}
