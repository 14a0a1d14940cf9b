/* SPDX-License-Identifier: Apache-2.0 */
/* chakra_write.c - the linked trace as chakra_trace_link writes it: the host trace with more in it
 * (chakra.md 3.8).
 *
 * Every key of the host file is kept, in its order; nodes are renumbered and written in that order.
 * A device node is its host node once more, with other values for some keys.
 * Cost: linear in the output, of which never more than a piece is in memory. */
#include "chakra_link.h"

#include "sources/torch/link/json_repaint.h"

#include "base/io/output.h"

#include "base/memory/map.h"
#include <stdio.h>

enum { PIECE = 1 << 20 };

typedef struct writer {
    const orr_link *l;
    orr_output *out;
    orr_buf buf;    /* the text so far */
    orr_buf values; /* of overrides, one after the other */
    orr_map *spare; /* parents that are not there -> their new id */
    uint64_t next_spare;
    size_t next_sync;
    bool failed;
} writer;

/* ---- the values of a node ---- */

static orr_json_writer begin_value(writer *w, repaint_overrides *v, const char *key)
{
    return repaint_override_begin(v, &w->values, key);
}

static void add_u64(writer *w, repaint_overrides *v, const char *key, uint64_t n)
{
    orr_json_writer j = begin_value(w, v, key);
    orr_json_u64(&j, n);
}

static void add_number(writer *w, repaint_overrides *v, const char *key, double n, bool is_real)
{
    orr_json_writer j = begin_value(w, v, key);
    char digits[400];
    if (is_real) {
        orr_json_double(&j, n);
    } else if (n > -9e18 && n < 9e18) {
        orr_json_i64(&j, (int64_t)n);
    } else {
        const int length = snprintf(digits, sizeof digits, "%.0f", n);
        orr_json_raw_text(&j, (orr_str){digits, length > 0 ? (size_t)length : 0});
    }
}

/* When it started, as it stands in the file. */
static void add_start(writer *w, repaint_overrides *v, const kin_event *e)
{
    if (e->flags & KIN_TS_REAL) {
        add_number(w, v, "ts", e->ts, true);
        return;
    }
    orr_json_writer j = begin_value(w, v, "ts");
    if (e->flags & KIN_TS_HUGE)
        orr_json_raw_text(&j, orr_intern_get(w->l->device.texts, (uint32_t)e->start_ns));
    else
        orr_json_i64(&j, e->start_ns);
}

static void add_text(writer *w, repaint_overrides *v, const char *key, uint32_t text)
{
    orr_json_writer j = begin_value(w, v, key);
    if (text == KIN_NO_TEXT)
        orr_json_null(&j);
    else
        orr_json_str(&j, orr_intern_get(w->l->device.texts, text));
}

static void write_node(writer *w, const chakra_host_node *n, repaint_overrides *v)
{
    repaint_override_finish(v, &w->values);
    repaint_object(&w->buf, chakra_of(w->l)->host.text.ptr + n->at, 2, v->of, v->count);
    if (w->buf.len > PIECE)
        orr_output_drain(w->out, &w->buf);
}

/* ---- parents ---- */

/* A parent that is not in the trace gets a number too, after all nodes. */
static uint64_t new_parent(writer *w, int64_t id)
{
    const uint32_t h = chakra_host_find(&chakra_of(w->l)->host, id);
    if (h != UINT32_MAX)
        return chakra_of(w->l)->new_id[h];
    uint32_t number = orr_map_find(w->spare, (uint64_t)id, LINK_NONE);
    if (number == LINK_NONE) {
        number = (uint32_t)w->next_spare++;
        w->failed |= !orr_map_put(w->spare, (uint64_t)id, number, NULL);
    }
    return chakra_of(w->l)->node_count + number;
}

static bool has_parent(const chakra_host_node *n)
{
    return n->parent != INT64_MIN;
}

/* ---- nodes ---- */

static void add_syncs(writer *w, repaint_overrides *v, uint64_t id)
{
    const orr_link *l = w->l;
    if (w->next_sync == chakra_of(l)->sync_count || chakra_of(l)->syncs[w->next_sync].node != id)
        return;
    orr_json_writer j = begin_value(w, v, "sync_dep");
    j.style.indent = 4;
    j.depth = 3;
    orr_json_begin_array(&j);
    for (; w->next_sync < chakra_of(l)->sync_count && chakra_of(l)->syncs[w->next_sync].node == id;
         w->next_sync++)
        orr_json_u64(&j, chakra_of(l)->syncs[w->next_sync].from);
    orr_json_end_array(&j);
}

static void add_waits_for(writer *w, repaint_overrides *v, uint32_t h)
{
    const uint32_t other = chakra_of(w->l)->waits_for[h];
    if (other != LINK_NONE) {
        add_u64(w, v, "inter_thread_dep", chakra_of(w->l)->new_id[other]);
        return;
    }
    orr_json_writer j = begin_value(w, v, "inter_thread_dep");
    orr_json_null(&j);
}

static void add_measured(writer *w, repaint_overrides *v, uint32_t h)
{
    const orr_link *l = w->l;
    const uint32_t op = chakra_of(l)->op_of[h];
    const kin_event *e = link_op(l, op);
    add_number(w, v, "inclusive_dur", e->dur, e->flags & KIN_DUR_REAL);
    add_number(w, v, "exclusive_dur", l->ops.own[op], l->ops.own_is_real[op]);
    add_start(w, v, e);
    add_waits_for(w, v, h);
}

static void write_host(writer *w, uint32_t h)
{
    const chakra_host_node *n = &chakra_of(w->l)->host.nodes[h];
    repaint_overrides v = {0};
    w->values.len = 0;
    add_u64(w, &v, "id", chakra_of(w->l)->new_id[h]);
    if (has_parent(n) && !chakra_of(w->l)->host.is_flat)
        add_u64(w, &v, "ctrl_deps", new_parent(w, n->parent));
    if (chakra_of(w->l)->op_of[h] != LINK_NONE)
        add_measured(w, &v, h);
    add_syncs(w, &v, chakra_of(w->l)->new_id[h]);
    write_node(w, n, &v);
}

/* Is the name one of NCCL's kernels of today? */
static bool is_nccl(const orr_link *l, const kin_event *e)
{
    static const char word[] = "ncclDevKernel";
    const orr_str name = orr_intern_get(l->device.texts, e->name);
    for (size_t i = 0; i + sizeof word - 1 <= name.len; i++) {
        if (memcmp(name.ptr + i, word, sizeof word - 1) == 0)
            return true;
    }
    return false;
}

static const char *category(const kin_event *e)
{
    return e->kind == KIN_KERNEL ? "kernel" : e->kind == KIN_MEMCPY ? "gpu_memcpy" : "gpu_memset";
}

/* The group's name as it stands in the event, which need not be a text. */
static void add_group(writer *w, repaint_overrides *v, const kin_event *e)
{
    const kin_trace *k = &w->l->device;
    if (e->extra == KIN_NO_TEXT || !is_nccl(w->l, e) || k->extras[e->extra].group == KIN_NO_TEXT)
        return;
    const orr_str raw = orr_intern_get(k->texts, k->extras[e->extra].group);
    if (orr_str_is(raw, "null"))
        return;
    begin_value(w, v, "pg_name");
    repaint_value(&w->values, raw.ptr, 3);
}

/* Keys that the host node already has keep their places; of the rest the host's come first. */
static void write_device(writer *w, uint32_t h, const kin_event *e, uint64_t id)
{
    const chakra_host_node *n = &chakra_of(w->l)->host.nodes[h];
    repaint_overrides v = {0};
    w->values.len = 0;
    const bool dur_is_real = e->flags & KIN_DUR_REAL;
    add_u64(w, &v, "id", id);
    add_text(w, &v, "name", e->name);
    add_number(w, &v, "inclusive_dur", e->dur, dur_is_real);
    add_number(w, &v, "exclusive_dur", e->dur, dur_is_real);
    add_start(w, &v, e);
    add_waits_for(w, &v, h);
    add_u64(w, &v, "ctrl_deps", chakra_of(w->l)->new_id[h]);
    orr_json_writer j = begin_value(w, &v, "cat");
    orr_json_text(&j, category(e));
    add_text(w, &v, "ph", e->ph);
    j = begin_value(w, &v, "stream");
    if (e->stream == KIN_NO_NUMBER)
        orr_json_null(&j);
    else
        orr_json_i64(&j, e->stream);
    add_group(w, &v, e);
    add_syncs(w, &v, id);
    write_node(w, n, &v);
}

static void write_nodes(writer *w)
{
    const orr_link *l = w->l;
    orr_buf_byte(&w->buf, '[');
    for (uint32_t h = 0; h < chakra_of(l)->host.count && !w->failed; h++) {
        if (h)
            orr_buf_byte(&w->buf, ',');
        repaint_line(&w->buf, 2);
        write_host(w, h);
        for (uint32_t p = chakra_of(l)->placed.first[h]; p < chakra_of(l)->placed.first[h + 1];
             p++) {
            orr_buf_byte(&w->buf, ',');
            repaint_line(&w->buf, 2);
            write_device(w, h, &l->device.events[chakra_of(l)->placed.list[p]],
                         chakra_of(l)->new_id[h] + 1 + (p - chakra_of(l)->placed.first[h]));
        }
    }
    if (chakra_of(l)->host.count)
        repaint_line(&w->buf, 1);
    orr_buf_byte(&w->buf, ']');
}

/* ---- the document ---- */

static const char *write_member(writer *w, const char *p)
{
    const char *text = chakra_of(w->l)->host.text.ptr;
    repaint_line(&w->buf, 1);
    p = repaint_space(repaint_value(&w->buf, p, 1)) + 1; /* the key; past the colon */
    orr_buf_add(&w->buf, ": ", 2);
    p = repaint_space(p);
    if ((uint64_t)(p - text) != chakra_of(w->l)->host.nodes_at)
        return repaint_value(&w->buf, p, 1);
    write_nodes(w);
    return text + chakra_of(w->l)->host.nodes_end;
}

static void write_document(writer *w)
{
    const char *p =
        repaint_space(chakra_of(w->l)->host.text.ptr + chakra_of(w->l)->host.document_at);
    orr_buf_byte(&w->buf, '{');
    for (p = repaint_space(p + 1); *p != '}' && !w->failed; p = repaint_space(p)) {
        if (*p == ',') {
            orr_buf_byte(&w->buf, ',');
            p = repaint_space(p + 1);
        }
        p = write_member(w, p);
    }
    repaint_line(&w->buf, 0);
    orr_buf_byte(&w->buf, '}');
}

orr_code chakra_write(const orr_link *l, const char *path, orr_error *err)
{
    writer w = {.l = l, .spare = orr_map_create(16)};
    orr_code code = w.spare ? orr_output_open(path, &w.out, err) : orr_no_memory(err);
    if (code) {
        orr_map_destroy(w.spare);
        return code;
    }
    write_document(&w);
    if (w.failed || w.buf.failed || w.values.failed) {
        code = orr_no_memory(err);
        orr_output_discard(w.out);
    } else {
        orr_output_drain(w.out, &w.buf);
        code = orr_output_commit(&w.out, err);
    }
    orr_map_destroy(w.spare);
    orr_buf_fini(&w.buf);
    orr_buf_fini(&w.values);
    return code;
}
