/* SPDX-License-Identifier: Apache-2.0 */
/* packet_output.c - the files of the reference: fct.txt, pfc.txt, queue lengths, packet trace
 * (packet-network.md 11).  They are created whole when the run is committed, or not at all. */
#include "base/io/output.h"
#include "models/network/packet/engine/fabric_impl.h"
#include "models/network/packet/watch/watchers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DRAIN_AT = 1 << 16, RECORD_BYTES = 56, SHOWN_FROM = 1000, NO_FILES = 4 };
enum { FCT, PFC, QLEN, TRACE };

typedef struct fab_writer {
    orr_output *files[NO_FILES]; /* NULL: not wanted */
    orr_buf texts[NO_FILES];
    bool *is_traced;
} fab_writer;

static void drain_if_full(fab_writer *w, int i)
{
    if (w->texts[i].len >= DRAIN_AT)
        orr_output_drain(w->files[i], &w->texts[i]);
}

/* ---- fct.txt ---- */

/* One line per flow, and flows may be a packet or two: digits are written by hand, because printf
 * would dominate. */
static void put_digits(orr_buf *b, uint32_t value, unsigned base, unsigned count)
{
    uint8_t *to = orr_buf_reserve(b, count);
    if (!to)
        return;
    for (unsigned i = count; i-- > 0; value /= base)
        to[i] = (uint8_t) "0123456789abcdef"[value % base];
    b->len += count;
}

/* Nanoseconds; with three decimals if ticks are picoseconds. */
static void put_time(orr_buf *b, const fab *f, uint64_t ticks)
{
    orr_buf_u64(b, ticks / f->unit);
    if (f->unit == 1)
        return;
    orr_buf_byte(b, '.');
    put_digits(b, (uint32_t)(ticks % f->unit), 10, 3);
}

static void put_fct(orr_buf *b, const fab *f, const fab_flow *w, uint64_t ideal)
{
    put_digits(b, net_ecmp_address(w->src), 16, 8);
    orr_buf_byte(b, ' ');
    put_digits(b, net_ecmp_address(w->dst), 16, 8);
    orr_buf_byte(b, ' ');
    orr_buf_u64(b, w->src_port);
    orr_buf_byte(b, ' ');
    orr_buf_u64(b, w->dst_port);
    orr_buf_byte(b, ' ');
    orr_buf_u64(b, w->size);
    orr_buf_byte(b, ' ');
    put_time(b, f, w->started_at);
    orr_buf_byte(b, ' ');
    put_time(b, f, f->now - w->started_at);
    orr_buf_byte(b, ' ');
    put_time(b, f, ideal);
    orr_buf_byte(b, '\n');
}

static void flow_line(const fab *f, void *o, const fab_flow *w, uint64_t ideal, orr_buf *out)
{
    fab_writer *to = o;
    put_fct(out ? out : &to->texts[FCT], f, w, ideal);
    if (!out)
        drain_if_full(to, FCT);
}

static void flow_lines(void *o, const uint8_t *lines, size_t length)
{
    fab_writer *to = o;
    orr_buf_add(&to->texts[FCT], lines, length);
    drain_if_full(to, FCT);
}

/* ---- pfc.txt ---- */

static void pause(const fab *f, void *o, const fab_port *p, bool pauses)
{
    fab_writer *to = o;
    put_time(&to->texts[PFC], f, f->now);
    orr_buf_print(&to->texts[PFC], " %u %d %u %d\n", p->node, p->is_switch, p->number, pauses);
    drain_if_full(to, PFC);
}

/* ---- queue lengths ---- */

/* Always at the same times, even if some were skipped. */
static bool next_look(
    const fab *f, const void *o, unsigned which, uint64_t from, bool is_again, uint64_t *at)
{
    const uint64_t first = f->config.qlen_start_ns * f->unit;
    const uint64_t each = f->config.qlen_interval_ns * f->unit;
    (void)o, (void)which;
    if (f->config.qlen_start_ns > UINT64_MAX / 4 / f->unit)
        return false;
    *at = is_again        ? from + each
          : from <= first ? first
                          : first + ((from - first) / each + 1) * each;
    return !f->rules.honours_ends || *at / f->unit <= f->config.qlen_end_ns;
}

static uint64_t egress_bytes(const fab *f, uint32_t port)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < FAB_CLASSES; i++)
        sum += f->queues[(size_t)port * FAB_CLASSES + i].egress;
    return sum;
}

/* "time T S j P B j P B": a trailing space remains unless the last port is listed
 * (packet-network.md 11.3). */
static void sample_switch(const fab *f, orr_buf *b, uint32_t node)
{
    const fab_node *n = &f->nodes[node];
    bool has_begun = false;
    for (uint32_t i = 0; i < n->port_count; i++) {
        const uint32_t port = f->ports_of[n->first_port + i];
        const uint64_t bytes = egress_bytes(f, port);
        if (bytes < SHOWN_FROM)
            continue;
        if (!has_begun) {
            orr_buf_text(b, "time ");
            put_time(b, f, f->now);
            orr_buf_print(b, " %u ", node);
        }
        has_begun = true;
        orr_buf_print(b, i + 1 < n->port_count ? "j %u %" PRIu64 " " : "j %u %" PRIu64,
                      f->ports[port].number, bytes);
    }
    if (has_begun)
        orr_buf_byte(b, '\n');
}

static void look(fab *f, void *o, unsigned which)
{
    fab_writer *to = o;
    (void)which;
    for (uint32_t n = 0; n < f->node_count; n++)
        if (f->nodes[n].kind != ORR__HOST)
            sample_switch(f, &to->texts[QLEN], n);
    drain_if_full(to, QLEN);
}

/* ---- the packet trace (packet-network.md 11.4) ---- */

static void put(uint8_t *to, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t class_bytes(const fab *f, const fab_port *p, unsigned class)
{
    uint64_t sum = 0;
    if (!p->is_switch || !(p->queued >> class & 1))
        return 0;
    uint32_t i = f->queues[(size_t)fab_port_of(f, p) * FAB_CLASSES + class].head;
    for (; i != FAB_NONE; i = f->frames[i].next)
        sum += f->frames[i].size;
    return sum;
}

static void put_data(uint8_t *r, const fab_flow *w, const fab_frame *m)
{
    put(r + 16, net_ecmp_address(w->src), 4);
    put(r + 20, net_ecmp_address(w->dst), 4);
    put(r + 32, w->src_port, 2);
    put(r + 34, w->dst_port, 2);
    put(r + 36, m->sequence, 4);
    put(r + 48, m->class, 2);
    put(r + 50, m->payload, 2);
}

static void put_ack(uint8_t *r, const fab_flow *w, const fab_frame *m)
{
    put(r + 16, net_ecmp_address(w->dst), 4);
    put(r + 20, net_ecmp_address(w->src), 4);
    put(r + 32, w->dst_port, 2);
    put(r + 34, w->src_port, 2);
    put(r + 36, m->echoes_mark, 2);
    put(r + 38, m->class, 2);
    put(r + 40, m->sequence, 4);
}

static void frame(
    const fab *f, void *o, const fab_port *p, const fab_frame *m, unsigned event, unsigned queue)
{
    static const uint8_t protocols[] = {0x11, 0xFC, 0xFD, 0xFE, 0x11};
    uint8_t r[RECORD_BYTES] = {0};
    fab_writer *to = o;
    if (!to->is_traced[p->node])
        return;
    put(r, f->now / f->unit, 8);
    put(r + 8, p->node, 2);
    r[10] = (uint8_t)p->number;
    r[11] = (uint8_t)queue;
    put(r + 12, class_bytes(f, p, queue), 4);
    put(r + 24, m->size, 2);
    r[26] = protocols[m->kind];
    r[27] = (uint8_t)event;
    r[28] = m->is_marked ? 3 : 0;
    r[29] = p->is_switch;
    if (m->kind == FAB_FRAME_DATA || m->kind == FAB_FRAME_TRIMMED) {
        put_data(r, &f->flows[m->flow], m);
    } else if (m->kind == FAB_FRAME_PFC) {
        put(r + 20, UINT32_MAX, 4);
        put(r + 32, m->pauses ? f->config.pause_time_us : 0, 4);
        r[40] = m->class;
    } else {
        put_ack(r, &f->flows[m->flow], m);
    }
    orr_buf_add(&to->texts[TRACE], r, sizeof r);
    drain_if_full(to, TRACE);
}

/* The number of ports, the speed of each, and the largest bandwidth-delay product. */
static void put_settings(const fab *f, orr_buf *b)
{
    uint8_t r[11];
    put(r, f->port_count, 4);
    orr_buf_add(b, r, 4);
    for (uint32_t n = f->node_count; n-- > 0;)
        for (uint32_t i = f->nodes[n].port_count; i-- > 0;) {
            const fab_port *p = &f->ports[f->ports_of[f->nodes[n].first_port + i]];
            put(r, n, 2);
            r[2] = (uint8_t)p->number;
            put(r + 3, p->rate, 8);
            orr_buf_add(b, r, 11);
        }
    put(r, f->max_bdp, 4);
    orr_buf_add(b, r, 4);
}

/* ---- life cycle ---- */

static orr_code open_files(fab_writer *w,
                           const fab_output_paths *paths,
                           bool is_simai, /* then packet_monitor.c writes queue lengths */
                           orr_error *err)
{
    const char *const names[NO_FILES] = {paths->fct, paths->pfc, is_simai ? "" : paths->qlen,
                                         paths->trace};
    orr_code code = ORR_OK;
    for (int i = 0; i < NO_FILES && !code; i++)
        if (names[i] && *names[i])
            code = orr_output_open_deep(names[i], &w->files[i], err);
    return code;
}

static void destroy(void *o)
{
    fab_writer *w = o;
    for (int i = 0; i < NO_FILES; i++) {
        orr_output_discard(w->files[i]);
        orr_buf_fini(&w->texts[i]);
    }
    orr_free(w->is_traced);
    orr_free(w);
}

orr_code fab_commit_files(orr_output **files, orr_buf *texts, int count, orr_error *err)
{
    orr_code code = ORR_OK;
    for (int i = 0; i < count && !code; i++) {
        if (!files[i])
            continue;
        if (texts[i].failed)
            return orr_no_memory(err);
        orr_output_drain(files[i], &texts[i]);
        code = orr_output_commit(&files[i], err);
    }
    return code;
}

static orr_code commit(fab *f, void *o, orr_error *err)
{
    fab_writer *w = o;
    (void)f;
    return fab_commit_files(w->files, w->texts, NO_FILES, err);
}

static const fab_observer_ops ops = {.flow_line = flow_line,
                                     .flow_lines = flow_lines,
                                     .pause = pause,
                                     .frame = frame,
                                     .next_look = next_look,
                                     .look = look,
                                     .commit = commit,
                                     .destroy = destroy};

/* Some node is traced; false also without a trace file. */
static bool begin_trace(const fab *f, fab_writer *w, const bool *is_traced)
{
    bool is_any = false;
    for (uint32_t n = 0; n < f->node_count && is_traced; n++)
        is_any |= w->is_traced[n] = is_traced[n];
    put_settings(f, &w->texts[TRACE]);
    return is_any;
}

orr_code fab_watch_files(fab *f, const fab_output_paths *paths, orr_error *err)
{
    if (!paths)
        return ORR_OK;
    fab_writer *w = orr_alloc(1, sizeof *w);
    if (!w)
        return orr_no_memory(err);
    orr_code code = open_files(w, paths, f->config.is_simai, err);
    if (!code && w->files[TRACE] &&
        !(w->is_traced = orr_alloc(f->node_count, sizeof *w->is_traced)))
        code = orr_no_memory(err);
    if (code) {
        destroy(w);
        return code;
    }
    const bool has_trace = w->files[TRACE] && begin_trace(f, w, paths->is_traced);
    code = fab_observe(f, &ops, w,
                       (w->files[FCT] ? FAB_HEARS_LINES : 0u) |
                           (w->files[PFC] ? FAB_HEARS_PAUSES : 0u) |
                           (has_trace ? FAB_HEARS_FRAMES : 0u),
                       err);
    if (!code && w->files[QLEN])
        fab_add_look(f, 0, FAB_LOOK_RESTS);
    return code;
}
