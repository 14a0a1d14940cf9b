/* SPDX-License-Identifier: Apache-2.0 */
/* link.c - the steps of linking: read and match both files, then find dependencies.
 *
 * Memory: the files are mapped, or decompressed; plus a record per event and node. */
#include "json_repaint.h"
#include "link_impl.h"

#include "base/io/output.h"
#include "base/memory/sort.h"

#include <stdlib.h>

/* ==== the linked trace as JSON in the form that chakra_trace_link writes, with additional facts
 * (docs/format/linked.md).
 *
 * A node of the host trace is copied from its file, with more keys; others have the same form.
 * Facts without a key in the old format get new ones: `wait_dur`, facts of a collective, and
 * sync_dep on device nodes for streams that wait for each other.
 * Cost: linear in the output, of which never more than a piece is in memory. */

enum { PIECE = 1 << 20 };

typedef struct writer {
    const orr_link *l;
    orr_output *out;
    /* buf: text not yet written; values: additional or replaced values of the current node */
    orr_buf buf, values;
    linked_edge *edges; /* by the node that waits */
    size_t next_edge;   /* the first that no node was given yet */
} writer;

/* ---- values ---- */

static orr_json_writer begin_value(writer *w, repaint_overrides *v, const char *key)
{
    return repaint_override_begin(v, &w->values, key);
}

static void add_i64(writer *w, repaint_overrides *v, const char *key, int64_t n)
{
    orr_json_writer j = begin_value(w, v, key);
    orr_json_i64(&j, n);
}

static void add_str(writer *w, repaint_overrides *v, const char *key, orr_str s)
{
    orr_json_writer j = begin_value(w, v, key);
    orr_json_str(&j, s);
}

/* Microseconds, exactly: a double would not hold the time of day. */
static void add_micros(writer *w, repaint_overrides *v, const char *key, int64_t ns)
{
    begin_value(w, v, key);
    if (ns < 0)
        orr_buf_byte(&w->values, '-');
    const uint64_t n = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    const unsigned part = (unsigned)(n % 1000); /* zeros at the end are left out */
    const unsigned cut = part % 10 ? 1 : part % 100 ? 10 : 100;
    orr_buf_u64(&w->values, n / 1000);
    orr_buf_print(&w->values, ".%0*u", cut == 1 ? 3 : cut == 10 ? 2 : 1, part / cut);
}

static void add_text_if(writer *w, repaint_overrides *v, const char *key, orr_str s)
{
    if (s.len)
        add_str(w, v, key, s);
}

/* -1 means not recorded: it gets no key, since a reader would take it for a size or a rank. */
static void add_number_if(writer *w, repaint_overrides *v, const char *key, int64_t n)
{
    if (n != -1)
        add_i64(w, v, key, n);
}

/* ---- one node ---- */

/* Facts that are already attributes of the host node are not repeated. */
static void add_comm(writer *w, repaint_overrides *v, const linked_node *n)
{
    const orr_linked *d = w->l->linked;
    if (n->comm == LINKED_NO_COMM)
        return;
    const linked_comm *c = &d->comms[n->comm];
    add_text_if(w, v, "pg_name", c->group);
    if (n->kind != LINKED_ON_DEVICE && n->byte != ORR_NO_BYTE)
        return;
    add_text_if(w, v, "collective_name", c->collective);
    add_text_if(w, v, "dtype", c->dtype);
    add_text_if(w, v, "pg_ranks", c->ranks);
    add_number_if(w, v, "in_msg_nelems", c->in_elements);
    add_number_if(w, v, "out_msg_nelems", c->out_elements);
    add_number_if(w, v, "pg_size", c->group_size);
    add_number_if(w, v, "src_rank", c->src);
    add_number_if(w, v, "dst_rank", c->dst);
    add_number_if(w, v, "comm_seq", c->sequence);
}

/* Edges are sorted by the waiting node and nodes are written by ascending id, so the two lists are
 * merged. */
static void add_edges(writer *w, repaint_overrides *v, uint64_t id)
{
    const orr_linked *d = w->l->linked;
    const size_t first = w->next_edge;
    size_t end = first, others = 0;
    for (; end < d->edge_count && w->edges[end].to == id; end++)
        others += w->edges[end].kind != LINKED_EDGE_THREAD;
    w->next_edge = end;
    for (size_t i = first; i < end; i++) {
        if (w->edges[i].kind == LINKED_EDGE_THREAD)
            add_i64(w, v, "inter_thread_dep", (int64_t)w->edges[i].from);
    }
    if (!others)
        return;
    orr_json_writer j = begin_value(w, v, "sync_dep");
    j.style.indent = 4;
    j.depth = 3;
    orr_json_begin_array(&j);
    for (size_t i = first; i < end; i++) {
        if (w->edges[i].kind != LINKED_EDGE_THREAD)
            orr_json_u64(&j, w->edges[i].from);
    }
    orr_json_end_array(&j);
}

static void add_times(writer *w, repaint_overrides *v, const linked_node *n)
{
    if (n->start_ns == LINKED_NO_TIME)
        return;
    add_micros(w, v, "inclusive_dur", n->duration_ns);
    add_micros(w, v, "exclusive_dur", n->own_ns);
    add_micros(w, v, "ts", n->start_ns);
    if (n->wait_ns)
        add_micros(w, v, "wait_dur", n->wait_ns);
}

static void add_device(writer *w, repaint_overrides *v, const linked_node *n)
{
    if (n->kind != LINKED_ON_DEVICE)
        return;
    const bool is_copy = n->name.len >= 6 && memcmp(n->name.ptr, "Memcpy", 6) == 0;
    add_str(w, v, "cat",
            orr_str_of(!n->is_memory ? "kernel"
                       : is_copy     ? "gpu_memcpy"
                                     : "gpu_memset"));
    add_str(w, v, "ph", orr_str_of("X"));
    add_i64(w, v, "stream", n->stream);
}

/* The form of a node without a host node; what is missing comes from the values. */
static const char plain_node[] =
    "{\"id\":0,\"name\":\"\",\"ctrl_deps\":0,\"inputs\":{\"values\":[],\"shapes\":[],\"types\":[]},"
    "\"outputs\":{\"values\":[],\"shapes\":[],\"types\":[]},\"attrs\":0}";

static void add_attrs(writer *w, repaint_overrides *v, const linked_node *n)
{
    const struct {
        const char *name, *type;
        int64_t value;
    } numbers[] = {{"rf_id", "uint64", n->rf_id},  {"fw_parent", "uint64", n->fw_parent},
                   {"seq_id", "int64", n->seq_id}, {"scope", "uint64", n->scope},
                   {"tid", "uint64", n->tid},      {"fw_tid", "uint64", n->fw_tid}};
    orr_json_writer j = begin_value(w, v, "attrs");
    j.style.indent = 4;
    j.depth = 3;
    orr_json_begin_array(&j);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        orr_json_begin_object(&j);
        orr_json_put_text(&j, "name", numbers[i].name);
        orr_json_put_text(&j, "type", numbers[i].type);
        orr_json_key(&j, "value");
        orr_json_i64(&j, numbers[i].value);
        orr_json_end_object(&j);
    }
    orr_json_begin_object(&j);
    orr_json_put_text(&j, "name", "op_schema");
    orr_json_put_text(&j, "type", "string");
    orr_json_key(&j, "value");
    orr_json_str(&j, n->op_schema);
    orr_json_end_object(&j);
    orr_json_end_array(&j);
}

static void write_node(writer *w, const linked_node *n)
{
    const bool is_plain = n->byte == ORR_NO_BYTE;
    repaint_overrides v = {0};
    w->values.len = 0;
    add_i64(w, &v, "id", (int64_t)n->id);
    add_str(w, &v, "name", n->name);
    add_i64(w, &v, "ctrl_deps", n->parent == LINKED_NO_ID ? 0 : (int64_t)n->parent);
    if (is_plain)
        add_attrs(w, &v, n);
    add_times(w, &v, n);
    add_device(w, &v, n);
    add_comm(w, &v, n);
    add_edges(w, &v, n->id);
    repaint_override_finish(&v, &w->values);
    /* The text of the host trace is mapped as a whole: its node is read in place, however far that
     * is from the previous one. */
    const char *text = is_plain ? plain_node : (const char *)w->l->linked->text.ptr + n->byte;
    repaint_object(&w->buf, text, 2, v.of, v.count);
    if (w->buf.len > PIECE)
        orr_output_drain(w->out, &w->buf);
}

/* ---- the document ---- */

static int by_target(const void *a, const void *b)
{
    const linked_edge *x = a, *y = b;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return (int)x->kind - (int)y->kind;
}

/* By kind too, so that the output does not depend on the order in which edges were found. */
static bool sort_edges(writer *w)
{
    const orr_linked *d = w->l->linked;
    w->edges = orr_alloc(d->edge_count + 1, sizeof *w->edges);
    if (!w->edges)
        return false;
    if (d->edge_count) {
        memcpy(w->edges, d->edges, d->edge_count * sizeof *w->edges);
        orr_sort(w->edges, d->edge_count, sizeof *w->edges, by_target);
    }
    return true;
}

static void begin_member(writer *w, const char *key, bool is_first)
{
    if (!is_first)
        orr_buf_byte(&w->buf, ',');
    repaint_line(&w->buf, 1);
    orr_json_quote(&w->buf, orr_str_of(key), true);
    orr_buf_add(&w->buf, ": ", 2);
}

static void write_head(writer *w)
{
    const orr_linked *d = w->l->linked;
    /* Where the host trace names none, or is missing: the newest known (link_knows_schema). */
    const orr_str schema = d->schema.len ? d->schema : orr_str_of("1.1.1-chakra.0.0.4");
    orr_buf_byte(&w->buf, '{');
    begin_member(w, "schema", true);
    orr_json_quote(&w->buf, schema, true);
    begin_member(w, "pid", false);
    orr_buf_u64(&w->buf, d->pid);
    begin_member(w, "time", false);
    orr_json_quote(&w->buf, d->time, true);
    begin_member(w, "start_ts", false);
    orr_buf_u64(&w->buf, d->start_ts);
    begin_member(w, "finish_ts", false);
    orr_buf_u64(&w->buf, d->finish_ts);
}

static void write_job(writer *w)
{
    const orr_link *l = w->l;
    if (l->linked->rank < 0)
        return;
    begin_member(w, "distributedInfo", false);
    orr_buf_print(&w->buf, "{\"rank\": %lld, \"world_size\": %lld", (long long)l->linked->rank,
                  (long long)l->linked->world);
    if (l->device.groups.len) {
        orr_buf_text(&w->buf, ", \"pg_config\": ");
        repaint_value(&w->buf, l->device.groups.ptr, 2);
    }
    orr_buf_byte(&w->buf, '}');
}

static void write_document(writer *w)
{
    const orr_linked *d = w->l->linked;
    write_head(w);
    write_job(w);
    begin_member(w, "nodes", false);
    orr_buf_byte(&w->buf, '[');
    for (size_t i = 0; i < d->node_count; i++) {
        if (i)
            orr_buf_byte(&w->buf, ',');
        repaint_line(&w->buf, 2);
        write_node(w, &d->nodes[i]);
    }
    repaint_line(&w->buf, 1);
    orr_buf_byte(&w->buf, ']');
    repaint_line(&w->buf, 0);
    orr_buf_byte(&w->buf, '}');
}

static orr_code write_json(const orr_link *l, const char *path, orr_error *err)
{
    writer w = {.l = l};
    orr_code code = sort_edges(&w) ? orr_output_open(path, &w.out, err) : orr_no_memory(err);
    if (!code) {
        write_document(&w);
        /* A buffer without memory drops its input and remembers the failure, so it is checked once,
         * before the file is committed. */
        if (w.buf.failed || w.values.failed) {
            orr_output_discard(w.out);
            code = orr_no_memory(err);
        } else {
            orr_output_drain(w.out, &w.buf);
            code = orr_output_commit(&w.out, err);
        }
    }
    orr_free(w.edges);
    orr_buf_fini(&w.buf);
    orr_buf_fini(&w.values);
    return code;
}

/* A trace that is read, from its file or from memory. */
typedef struct source {
    const char *path; /* or what messages call it */
    const orr_span *bytes;
    orr_input *input; /* of a file */
    orr_json *json;
} source;

static orr_code open_source(source *f, orr_error *err)
{
    if (f->bytes)
        return orr_json_open(*f->bytes, f->path, &f->json, err);
    const orr_code code = orr_input_open(f->path, &f->input, err);
    return code ? code : orr_json_open(orr_input_bytes(f->input), f->path, &f->json, err);
}

/* The file is closed before anything is derived from it: of a trace of gigabytes only the records
 * stay. */
orr_code link_read_device(orr_link *l, orr_error *err)
{
    const kin_options opt = {.rules = &l->rules->read, .tally = &l->tally};
    source f = {.path = l->device_path, .bytes = l->device_bytes};
    orr_code code = open_source(&f, err);
    if (!code)
        code = kin_read(f.json, &opt, &l->device, err);
    orr_json_close(f.json);
    orr_input_close(f.input); /* all that counts is in the records */
    return code;
}

/* Only the schemas read by chakra_trace_link; our own reader goes by the form of a node and accepts
 * any schema. */
bool link_knows_schema(orr_str s)
{
    static const char *const known[] = {
        "1.0.1",
        "1.0.2-chakra.0.0.4",
        "1.0.3-chakra.0.0.4",
        "1.0.4-chakra.0.0.4",
        "1.1.0-chakra.0.0.4",
        "1.1.1-chakra.0.0.4",
    };
    return orr_str_among(s, known, ORR_COUNT(known));
}

static orr_code read_linked_host(orr_link *l, orr_error *err)
{
    if (!l->host_path) {
        l->linked = linked_create(l->device_path);
        return l->linked ? ORR_OK : orr_no_memory(err);
    }
    const orr_code code =
        l->host_bytes ? orr_linked_parse(*l->host_bytes, l->host_path, NULL, &l->linked, err)
                      : orr_linked_read(l->host_path, NULL, &l->linked, err);
    if (code)
        return code;
    l->tally.counts.of[ORR_LINK_HOST_NODES] = l->linked->node_count;
    const orr_where at = orr_where_line(l->host_path, 1, 1);
    if (!link_knows_schema(l->linked->schema))
        return link_count(&l->tally, ORR_LINK_NEW_SCHEMA, &at, err);
    return ORR_OK;
}

/* The steps, each of which needs the previous one:
 *
 *     link_read_device     events as records; unreadable ones are counted
 *     link_sort            by time, counted from the first event so that doubles hold it exactly
 *     link_pick_step       selects one of several steps, before times are computed
 *     link_time            operators by thread, and their self times
 *     link_find_waits      what waited for the device, as recorded or inferred from calls
 *     link_guess_streams   infers which streams waited for each other, if not recorded
 *     link_merge           host nodes and events as one list of nodes with edges
 *
 * Events are selected before waits are searched, and waits are found on events, not on nodes: a
 * wait is between a call and a kernel, and calls do not become nodes.  A host trace alone is
 * already a linked trace, of nodes without times. */
static orr_code link_ours(orr_link *l, orr_error *err)
{
    if (!l->host_path && !l->device_path)
        return orr_fail(err, ORR_EUSAGE, NULL, "neither a host trace nor a device trace");
    orr_code code = read_linked_host(l, err);
    if (code || !l->device_path)
        return code;
    if ((code = link_read_device(l, err)) || (code = link_sort(l, err)) ||
        (code = link_pick_step(l, err)) || (code = link_time(l, err)) ||
        (code = link_find_waits(l, err)) || (code = link_guess_streams(l, err)))
        return code;
    return link_merge(l, err);
}

static const orr_rules_link ours = {.link = link_ours, .write = write_json};

static orr_code open_link(const source *host,
                          const source *device,
                          const orr_link_options *opt,
                          orr_link **out,
                          orr_error *err)
{
    *out = NULL;
    orr_link *l = orr_alloc(1, sizeof *l);
    if (!l)
        return orr_no_memory(err);
    if (opt)
        l->opt = *opt;
    l->rules = l->opt.rules ? l->opt.rules : &ours;
    l->tally.is_strict = l->opt.is_strict;
    l->arena = orr_arena_create();
    l->host_bytes = host->bytes;
    l->device_bytes = device->bytes;
    l->host_path = l->arena && host->path ? orr_arena_text(l->arena, orr_str_of(host->path)) : NULL;
    l->device_path =
        l->arena && device->path ? orr_arena_text(l->arena, orr_str_of(device->path)) : NULL;
    const bool has_room =
        l->arena && (!host->path || l->host_path) && (!device->path || l->device_path);
    const orr_code code = has_room ? l->rules->link(l, err) : orr_no_memory(err);
    if (code)
        orr_link_close(l);
    else
        *out = l;
    return code;
}

orr_code orr_link_open(const char *host,
                       const char *device,
                       const orr_link_options *opt,
                       orr_link **out,
                       orr_error *err)
{
    return open_link(&(source){.path = host}, &(source){.path = device}, opt, out, err);
}

orr_code orr_link_parse(const orr_span *host,
                        const orr_span *device,
                        const orr_link_options *opt,
                        orr_link **out,
                        orr_error *err)
{
    return open_link(&(source){.path = host ? "host" : NULL, .bytes = host},
                     &(source){.path = device ? "device" : NULL, .bytes = device}, opt, out, err);
}

void orr_link_close(orr_link *l)
{
    if (!l)
        return;
    orr_linked_free(l->linked);
    if (l->rules->close)
        l->rules->close(l);
    kin_fini(&l->device);
    orr_free(l->waits);
    orr_arena_destroy(l->arena);
    orr_free(l);
}

const orr_link_counts *orr_link_counts_of(const orr_link *l)
{
    return &l->tally.counts;
}

orr_code orr_link_write(const orr_link *l, const char *path, orr_error *err)
{
    return l->rules->write(l, path, err);
}
