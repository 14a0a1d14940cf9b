/* SPDX-License-Identifier: Apache-2.0 */
/* series.c - time series of flows and ports.
 *
 * Watched are those named by the user and, besides, the busiest.  Ports: one that is 1.5 times as
 * busy as the least busy watched one replaces it; its series begins there. Flows: the largest; the
 * size of a flow is known at its start.  With lanes (fab_lanes.c) samples are taken when none runs;
 * the series learns of flows that start or complete in a window after it, in the global order.
 * Cost: a sample O(watched + LOOKED_AT ports), samples O(slots x log of the run's length); memory
 * O(slots x watched), which is refused beyond MOST_BYTES.  Output: src/views/packet_series.c. */
#include "watchers.h"

#include "base/text/number.h"
#include "base/text/text.h"

#include <string.h>

enum { SAMPLES_A_SLOT = 64, SAMPLES_A_DOUBLING = 1 << 16, LOOKED_AT = 1 << 14, NAMED_MOST = 4096 };
#define MOST_BYTES ((uint64_t)1 << 30)

/* ---- slots ---- */

static void add_slot(fab_series_slot *to, const fab_series_slot *from)
{
    to->a += from->a;
    to->b += from->b;
    to->sum += from->sum;
    to->sum2 += from->sum2;
    to->max = from->max > to->max ? from->max : to->max;
    to->samples += from->samples;
}

static void merge_watches(fab_series_watches *w, size_t count)
{
    for (size_t i = 0; i < w->count; i++) {
        fab_series_watch *one = &w->list[i];
        for (size_t k = 0; k < count / 2; k++) {
            fab_series_slot merged = one->slots[2 * k];
            add_slot(&merged, &one->slots[2 * k + 1]);
            one->slots[k] = merged;
        }
        memset(one->slots + count / 2, 0, (count - count / 2) * sizeof *one->slots);
        one->first /= 2;
        one->last /= 2;
    }
}

static void close_slot(fab_series *s)
{
    s->phase = 0;
    if (++s->count < s->limit)
        return;
    merge_watches(&s->ports, s->limit);
    merge_watches(&s->flows, s->limit);
    s->count /= 2;
    s->merged *= 2;
}

/* Skips `samples` intervals without activity. */
static void skip(fab_series *s, uint64_t samples)
{
    s->taken += samples;
    while (samples) {
        const uint64_t left = s->merged - s->phase, step = samples < left ? samples : left;
        s->phase += step;
        samples -= step;
        if (s->phase == s->merged)
            close_slot(s);
    }
}

static void note(const fab_series *s, fab_series_watch *w, const fab_series_slot *slot)
{
    add_slot(&w->slots[s->count], slot);
    w->last = s->count;
}

static void note_port(const fab *f, fab_series_watch *w)
{
    const fab_port *p = &f->ports[w->id];
    const uint64_t busy = fab_port_busy_ticks(f, p), paused = fab_port_paused_ticks(f, p);
    note(fab_series_of(f), w,
         &(fab_series_slot){.a = busy - w->last_a,
                            .b = paused - w->last_b,
                            .sum = p->queued_bytes,
                            .max = p->queued_bytes,
                            .samples = 1});
    w->last_a = busy;
    w->last_b = paused;
}

static void note_flow(const fab *f, fab_series_watch *w, const fab_flow_note *n)
{
    note(fab_series_of(f), w,
         &(fab_series_slot){
             .a = n->acked - w->last_a, .sum = n->window, .sum2 = n->in_flight, .samples = 1});
    w->last_a = n->acked;
}

/* ---- selection ---- */

/* A new entry; NULL: out of memory.  Its slots are empty. */
static fab_series_watch *add_watch(const fab_series *s, fab_series_watches *w)
{
    if (!orr_grow(&w->list, &w->room, w->count + 1))
        return NULL;
    fab_series_watch *one = &w->list[w->count];
    *one = (fab_series_watch){.slots = orr_alloc(s->limit, sizeof *one->slots)};
    if (!one->slots)
        return NULL;
    w->count++;
    return one;
}

static fab_series_watch *reuse(const fab_series *s, fab_series_watch *w)
{
    fab_series_slot *slots = w->slots;
    memset(slots, 0, s->limit * sizeof *slots);
    *w = (fab_series_watch){.slots = slots};
    return w;
}

/* The current interval counts for it if its counters at the start are known. */
static void begin_port(const fab *f, fab_series_watch *w, uint32_t port)
{
    struct fab_series_counts *c = &fab_series_of(f)->counts[port];
    const bool is_known = fab_series_of(f)->looks_every == 1;
    w->id = port;
    w->first = w->last = fab_series_of(f)->count;
    w->last_a = is_known ? c->busy : fab_port_busy_ticks(f, &f->ports[port]);
    w->last_b = is_known ? c->paused : fab_port_paused_ticks(f, &f->ports[port]);
    c->is_watched = true;
}

static fab_series_watch *find_watch(const fab_series_watches *w, uint32_t id)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->list[i].id == id && !w->list[i].is_over)
            return &w->list[i];
    return NULL;
}

static fab_series_watch *least_busy(const fab *f)
{
    const fab_series_watches *w = &fab_series_of(f)->ports;
    fab_series_watch *least = NULL;
    for (size_t i = 0; i < w->count; i++)
        if (!w->list[i].is_named &&
            (!least || f->ports[w->list[i].id].busy_ticks < f->ports[least->id].busy_ticks))
            least = &w->list[i];
    return least;
}

static bool out_of_memory(fab *f)
{
    fab_fail(f, ORR_ENOMEM, "out of memory");
    return false;
}

static void consider_all_ports(fab *f)
{
    fab_series *s = fab_series_of(f);
    fab_series_watches *w = &s->ports;
    fab_series_watch *least = least_busy(f);
    for (uint32_t i = 0; i < f->port_count && w->most; i++) {
        const uint64_t busy = f->ports[i].busy_ticks;
        const bool has_room = w->count - w->named < w->most;
        if (!busy || (!has_room && busy / 3 * 2 <= f->ports[least->id].busy_ticks) ||
            s->counts[i].is_watched)
            continue;
        if (!has_room)
            s->counts[least->id].is_watched = false;
        fab_series_watch *one = has_room ? add_watch(s, w) : reuse(s, least);
        if (!one) {
            (void)out_of_memory(f);
            return;
        }
        begin_port(f, one, i);
        least = least_busy(f);
    }
}

static void note_counts(fab *f)
{
    for (uint32_t i = 0; i < f->port_count; i++) {
        fab_series_of(f)->counts[i].busy = fab_port_busy_ticks(f, &f->ports[i]);
        fab_series_of(f)->counts[i].paused = fab_port_paused_ticks(f, &f->ports[i]);
    }
}

static bool is_pair_named(const fab_series *s, const fab_flow *flow)
{
    for (size_t i = 0; i < s->pair_count; i++)
        if (s->pairs[i].src == flow->src && s->pairs[i].dst == flow->dst)
            return true;
    return false;
}

static fab_series_watch *smallest_flow(const fab_series_watches *w)
{
    fab_series_watch *least = NULL;
    for (size_t i = 0; i < w->count; i++)
        if (!w->list[i].is_named && (!least || w->list[i].size < least->size))
            least = &w->list[i];
    return least;
}

static void flow_starts(fab *f, uint32_t flow)
{
    fab_series *s = fab_series_of(f);
    fab_series_watches *w = &s->flows;
    const fab_flow *of = &f->flows[flow];
    const bool is_named = w->named < s->named_most && is_pair_named(s, of);
    fab_series_watch *one = NULL, *least;
    if (is_named || w->count - w->named < w->most) {
        one = add_watch(s, w);
        if (!one)
            (void)out_of_memory(f);
    } else if ((least = smallest_flow(w)) && least->size < of->size) {
        one = reuse(s, least);
    }
    if (!one)
        return;
    w->named += is_named;
    one->is_named = is_named;
    one->id = flow;
    one->first = one->last = s->count;
    one->size = of->size;
    one->src = of->src;
    one->dst = of->dst;
    one->src_port = of->src_port;
    one->dst_port = of->dst_port;
}

static void flow_ends(const fab *f, const fab_flow_note *n)
{
    fab_series_watch *w = find_watch(&fab_series_of(f)->flows, n->flow);
    if (!w)
        return;
    note_flow(f, w, n);
    w->is_over = true;
}

static void hear_flow(fab *f, void *o, const fab_flow_note *n)
{
    (void)o;
    if (n->is_over)
        flow_ends(f, n);
    else
        flow_starts(f, n->flow);
}

/* ---- samples ---- */

static void note_all(fab *f)
{
    fab_series *s = fab_series_of(f);
    for (size_t i = 0; i < s->ports.count; i++)
        note_port(f, &s->ports.list[i]);
    for (size_t i = 0; i < s->flows.count; i++) {
        fab_series_watch *w = &s->flows.list[i];
        if (w->is_over)
            continue;
        const fab_flow_note n = fab_flow_state(f, w->id);
        note_flow(f, w, &n);
    }
}

/* Wide slots are sampled each_slot times, so a fine interval costs a long run no more than a coarse
 * one.  Both are powers of two: a sample never spans two slots. */
static bool next_look(
    const fab *f, const void *o, unsigned which, uint64_t from, bool is_again, uint64_t *at)
{
    const fab_series *s = o;
    const uint64_t stride = s->merged > s->each_slot ? s->merged / s->each_slot : 1;
    (void)f, (void)which, (void)is_again;
    *at = (from / s->every / stride + 1) * stride * s->every;
    return true;
}

static void sample(fab *f, void *o, unsigned which)
{
    fab_series *s = o;
    (void)which;
    const uint64_t whole = f->now / s->every;
    if (whole > s->taken + 1)
        skip(s, whole - s->taken - 1);
    const bool looks = s->samples++ % s->looks_every == 0;
    if (looks)
        consider_all_ports(f);
    note_all(f);
    if (looks)
        note_counts(f);
    skip(s, 1);
}

/* ---- from the configuration ---- */

/* "8.3": port 3 of node 8.  "0-5": flows from host 0 to host 5. */
static bool take_name(fab *f, fab_series *s, orr_str word, bool *has_memory)
{
    const char *dot = memchr(word.ptr, '.', word.len), *dash = memchr(word.ptr, '-', word.len);
    const char *middle = dot ? dot : dash;
    uint64_t a, b;
    if (!middle || !orr_text_u64((orr_str){word.ptr, (size_t)(middle - word.ptr)}, &a) ||
        !orr_text_u64((orr_str){middle + 1, word.len - (size_t)(middle + 1 - word.ptr)}, &b) ||
        a >= f->node_count)
        return false;
    if (!dot) {
        *has_memory = b >= f->node_count || orr_grow(&s->pairs, &s->pair_room, s->pair_count + 1);
        if (b < f->node_count && *has_memory)
            s->pairs[s->pair_count++] = (struct fab_series_pair){(uint32_t)a, (uint32_t)b};
        return b < f->node_count;
    }
    const fab_node *n = &f->nodes[a];
    if (b == 0 || b > n->port_count)
        return false;
    fab_series_watch *w = add_watch(s, &s->ports);
    *has_memory = w != NULL;
    if (!w)
        return true;
    w->id = f->ports_of[n->first_port + b - 1];
    w->is_named = true;
    s->counts[w->id].is_watched = true;
    s->ports.named++;
    return true;
}

static orr_code take_names(fab *f, fab_series *s, orr_error *err)
{
    const char *at = f->config.series_watch;
    const orr_where w = orr__packet_config_where(&f->config, "SERIES_WATCH");
    bool has_memory = true;
    while (*at) {
        const size_t len = strcspn(at, ",");
        const orr_str word = {at, len};
        if (len && !take_name(f, s, word, &has_memory))
            return orr_fail(err, ORR_EINPUT, w.path[0] ? &w : NULL,
                            "SERIES_WATCH: \"%.*s\" is neither a port of a node, as 8.3, nor a "
                            "pair of hosts, as 0-5",
                            (int)(len < 40 ? len : 40), at);
        if (!has_memory)
            return orr_no_memory(err);
        at += len + (at[len] == ',');
    }
    return ORR_OK;
}

/* Words of SERIES_WATCH: an upper bound on named ports. */
static uint64_t count_names(const orr__packet_config *c)
{
    uint64_t count = c->series_watch[0] != 0;
    for (const char *at = c->series_watch; *at; at++)
        count += *at == ',';
    return count;
}

/* Limits the number of watches by memory; named flows take what is left. */
static orr_code bound_memory(const fab *f, fab_series *s, orr_error *err)
{
    const orr_where w = orr__packet_config_where(&f->config, "SERIES_SAMPLES");
    const uint64_t each = s->limit * sizeof(fab_series_slot), most = MOST_BYTES / each;
    const uint64_t wanted = s->ports.most + s->flows.most + count_names(&f->config);
    if (wanted > most)
        return orr_fail(err, ORR_EINPUT, w.path[0] ? &w : NULL,
                        "SERIES_SAMPLES %llu: %llu ports and flows that are watched (SERIES_TOP "
                        "%llu of each) would take %llu MiB, more than 1024",
                        (unsigned long long)f->config.series_samples, (unsigned long long)wanted,
                        (unsigned long long)f->config.series_top,
                        (unsigned long long)(wanted * each >> 20));
    s->named_most = most - wanted < NAMED_MOST ? (size_t)(most - wanted) : NAMED_MOST;
    return ORR_OK;
}

/* Samples per slot, such that a doubling of the run takes at most SAMPLES_A_DOUBLING of them. */
static uint64_t samples_a_slot(size_t limit)
{
    uint64_t samples = SAMPLES_A_SLOT;
    while (samples > 1 && samples * limit > SAMPLES_A_DOUBLING)
        samples /= 2;
    return samples;
}

static orr_code set_up(fab *f, fab_series *s, orr_error *err)
{
    const orr__packet_config *c = &f->config;
    s->every = c->series_every_ps / (1000 / f->unit);
    s->every = s->every ? s->every : 1;
    s->merged = 1;
    s->limit = (size_t)(c->series_samples + c->series_samples % 2);
    s->ports.most = c->series_what & (ORR__SERIES_QUEUES | ORR__SERIES_LINKS) ? c->series_top : 0;
    s->flows.most = c->series_what & ORR__SERIES_FLOWS ? c->series_top : 0;
    if (!(s->counts = orr_alloc(f->port_count, sizeof *s->counts)))
        return orr_no_memory(err);
    s->each_slot = samples_a_slot(s->limit);
    s->looks_every = 1 + f->port_count / LOOKED_AT;
    orr_code code = bound_memory(f, s, err);
    if (!code)
        code = take_names(f, s, err);
    return code ? code : orr_output_open(c->series_out, &s->file, err);
}

static void drop_watches(fab_series_watches *w)
{
    for (size_t i = 0; i < w->count; i++)
        orr_free(w->list[i].slots);
    orr_free(w->list);
}

static void destroy(void *o)
{
    fab_series *s = o;
    drop_watches(&s->ports);
    drop_watches(&s->flows);
    orr_free(s->pairs);
    orr_free(s->counts);
    orr_output_discard(s->file);
    orr_free(s);
}

static orr_code commit(fab *f, void *o, orr_error *err)
{
    fab_series *s = o;
    orr_buf b = {0};
    /* cancelled timers may have advanced the clock; the last frame counts */
    const uint64_t whole = f->last_arrival / s->every;
    if (whole > s->taken)
        skip(s, whole - s->taken);
    s->end = s->taken * s->every > f->last_arrival ? s->taken * s->every : f->last_arrival;
    consider_all_ports(f);
    note_all(f);
    fab_series_write(f, &b);
    const orr_code code = fab_commit_files(&s->file, &b, 1, err);
    orr_buf_fini(&b);
    return code;
}

static const fab_observer_ops ops = {.flow = hear_flow,
                                     .next_look = next_look,
                                     .look = sample,
                                     .commit = commit,
                                     .destroy = destroy};

fab_series *fab_series_of(const fab *f)
{
    return fab_observer_state(f, &ops);
}

orr_code fab_watch_series(fab *f, orr_error *err)
{
    if (!f->config.series_out[0])
        return ORR_OK;
    fab_series *s = orr_alloc(1, sizeof *s);
    if (!s)
        return orr_no_memory(err);
    orr_code code = set_up(f, s, err);
    if (code) {
        destroy(s);
        return code;
    }
    code = fab_observe(f, &ops, s, FAB_HEARS_FLOWS, err);
    if (!code)
        fab_add_look(f, 0, FAB_LOOK_PLAIN);
    return code;
}
