/* SPDX-License-Identifier: Apache-2.0 */
/* output_files.c - the files of the old program: fct.txt, pfc.txt, queue lengths, packet trace
 * (packet-network.md 11).  They appear whole when the run is committed, or not at all. */
#include "models/network/packet/engine/fabric_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DRAIN_AT = 1 << 16, RECORD_BYTES = 56, SHOWN_FROM = 1000, NO_FILES = 4 };
enum { FCT, PFC, QLEN, TRACE };

struct fab_writer {
    orr_output *files[NO_FILES]; /* NULL: not wanted */
    orr_buf texts[NO_FILES];
    bool *is_traced;
};

static void drain_if_full(fab_writer *w, int i)
{
    if (w->texts[i].len >= DRAIN_AT)
        orr_output_drain(w->files[i], &w->texts[i]);
}

/* ---- fct.txt ---- */

/* A line a flow, of flows of a packet or two: so digits are written here, not by a format. */
static void put_digits(orr_buf *b, uint32_t value, unsigned base, unsigned count)
{
    uint8_t *to = orr_buf_reserve(b, count);
    if (!to)
        return;
    for (unsigned i = count; i-- > 0; value /= base)
        to[i] = (uint8_t) "0123456789abcdef"[value % base];
    b->len += count;
}

/* Nanoseconds; picoseconds behind a point when time is in them. */
static void put_time(orr_buf *b, const fab *f, uint64_t ticks)
{
    orr_buf_u64(b, ticks / f->unit);
    if (f->unit == 1)
        return;
    orr_buf_byte(b, '.');
    put_digits(b, (uint32_t)(ticks % f->unit), 10, 3);
}

uint64_t fab_flow_ideal(const fab *f, const fab_flow *w)
{
    fab_path path;
    if (!fab_find_path(f, w->src, w->dst, &path))
        return 0;
    const uint64_t packets = (w->size + f->config.payload - 1) / f->config.payload;
    uint64_t bytes = w->size + packets * 48;
    if (f->rules.narrows_ideal)
        bytes &= UINT32_MAX;
    return fab_path_rtt(&path) +
           (uint64_t)((unsigned __int128)bytes * 8 * 1000000000u * f->unit / path.bandwidth);
}

bool fab_writer_lists_flows(const fab *f)
{
    return f->writer && f->writer->files[FCT];
}

void fab_put_fct(orr_buf *b, const fab *f, const fab_flow *w, uint64_t ideal)
{
    put_digits(b, fab_host_address(w->src), 16, 8);
    orr_buf_byte(b, ' ');
    put_digits(b, fab_host_address(w->dst), 16, 8);
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

void fab_write_fct(fab *f, const fab_flow *w, uint64_t ideal)
{
    if (!fab_writer_lists_flows(f))
        return;
    fab_put_fct(&f->writer->texts[FCT], f, w, ideal);
    drain_if_full(f->writer, FCT);
}

void fab_write_fct_lines(fab *f, const uint8_t *lines, size_t length)
{
    if (length == 0)
        return;
    orr_buf_add(&f->writer->texts[FCT], lines, length);
    drain_if_full(f->writer, FCT);
}

/* ---- pfc.txt ---- */

void fab_write_pfc(fab *f, const fab_port *p, bool pauses)
{
    fab_writer *to = f->writer;
    if (!to->files[PFC])
        return;
    if (f->is_in_window) {
        fab_lanes_note_pause(f, p, pauses);
        return;
    }
    put_time(&to->texts[PFC], f, f->now);
    orr_buf_print(&to->texts[PFC], " %u %d %u %d\n", p->node, p->is_switch, p->number, pauses);
    drain_if_full(to, PFC);
}

/* ---- queue lengths ---- */

bool fab_writer_samples(const fab *f)
{
    return f->writer && f->writer->files[QLEN];
}

bool fab_writer_lists_pauses(const fab *f)
{
    return f->writer && f->writer->files[PFC];
}

static uint64_t egress_bytes(const fab *f, uint32_t port)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < FAB_CLASSES; i++)
        sum += f->queues[(size_t)port * FAB_CLASSES + i].egress;
    return sum;
}

/* "time T S j P B j P B": a blank is left before the end of the line unless the last port is in it
 * (packet-network.md 11.3). */
static void sample_switch(fab *f, orr_buf *b, uint32_t node)
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

void fab_write_sample(fab *f)
{
    for (uint32_t n = 0; n < f->node_count; n++)
        if (f->nodes[n].kind != ORR__HOST)
            sample_switch(f, &f->writer->texts[QLEN], n);
    drain_if_full(f->writer, QLEN);
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
    put(r + 16, fab_host_address(w->src), 4);
    put(r + 20, fab_host_address(w->dst), 4);
    put(r + 32, w->src_port, 2);
    put(r + 34, w->dst_port, 2);
    put(r + 36, m->sequence, 4);
    put(r + 48, m->class, 2);
    put(r + 50, m->payload, 2);
}

static void put_ack(uint8_t *r, const fab_flow *w, const fab_frame *m)
{
    put(r + 16, fab_host_address(w->dst), 4);
    put(r + 20, fab_host_address(w->src), 4);
    put(r + 32, w->dst_port, 2);
    put(r + 34, w->src_port, 2);
    put(r + 36, m->echoes_mark, 2);
    put(r + 38, m->class, 2);
    put(r + 40, m->sequence, 4);
}

void fab_write_trace(fab *f, const fab_port *p, const fab_frame *m, unsigned event, unsigned queue)
{
    static const uint8_t protocols[] = {0x11, 0xFC, 0xFD, 0xFE, 0x11};
    uint8_t r[RECORD_BYTES] = {0};
    if (!f->writer->is_traced[p->node])
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
    orr_buf_add(&f->writer->texts[TRACE], r, sizeof r);
    drain_if_full(f->writer, TRACE);
}

/* How many ports, each with its speed, and the largest product of bandwidth and delay. */
static void put_settings(fab *f)
{
    orr_buf *b = &f->writer->texts[TRACE];
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

/* ---- all of them ---- */

static orr_code open_files(fab_writer *w,
                           const fab_output_paths *paths,
                           bool is_simai, /* then monitor.c writes queue lengths */
                           orr_error *err)
{
    const char *const names[NO_FILES] = {paths->fct, paths->pfc, is_simai ? "" : paths->qlen,
                                         paths->trace};
    orr_code code = ORR_OK;
    for (int i = 0; i < NO_FILES && !code; i++)
        if (names[i] && *names[i])
            code = orr_output_open(names[i], &w->files[i], err);
    return code;
}

orr_code fab_writer_create(fab *f, const fab_output_paths *paths, orr_error *err)
{
    fab_writer *w = f->writer = orr_alloc(1, sizeof *w);
    if (!w)
        return orr_no_memory(err);
    if (!paths)
        return ORR_OK;
    const orr_code code = open_files(w, paths, f->config.is_simai, err);
    if (code || !w->files[TRACE])
        return code;
    if (!(w->is_traced = orr_alloc(f->node_count, sizeof *w->is_traced)))
        return orr_no_memory(err);
    for (uint32_t n = 0; n < f->node_count && paths->is_traced; n++) {
        w->is_traced[n] = paths->is_traced[n];
        f->has_trace |= w->is_traced[n];
    }
    put_settings(f);
    return ORR_OK;
}

void fab_writer_destroy(fab_writer *w)
{
    if (!w)
        return;
    for (int i = 0; i < NO_FILES; i++) {
        orr_output_discard(w->files[i]);
        orr_buf_fini(&w->texts[i]);
    }
    orr_free(w->is_traced);
    orr_free(w);
}

orr_code fab_writer_commit(fab_writer *w, orr_error *err)
{
    orr_code code = ORR_OK;
    for (int i = 0; i < NO_FILES && !code; i++) {
        if (!w->files[i])
            continue;
        if (w->texts[i].failed)
            return orr_no_memory(err);
        orr_output_drain(w->files[i], &w->texts[i]);
        code = orr_output_commit(&w->files[i], err);
    }
    return code;
}
