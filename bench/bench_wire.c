/* SPDX-License-Identifier: Apache-2.0 */
/* bench_wire.c - our protobuf reader and writer compared with protobuf-c, on the same file of a
 * million nodes.
 *
 * Reading: ours checks every record and fills the columns; protobuf-c unpacks every record into
 * structures and frees them again, the minimum for a program that uses it.  Both sum up durations,
 * dependencies and attributes, and must agree.  Writing: every record from its decoded form.  Built
 * without protobuf-c only our rows are printed. */
#include "bench_input.h"

#include "base/formats/wire.h"
#include "base/io/input.h"

#ifdef ORR_HAVE_PROTOBUF_C
#include "et.pb-c.h"
#endif

typedef struct sums {
    uint64_t nodes, duration, deps, attrs;
} sums;

typedef struct job {
    const char *path;
    sums want;
} job;

static void check_sums(const job *j, const sums *got)
{
    bench_require(got->nodes == LAYERED_NODES, "nodes are missing");
    bench_require(j->want.nodes == 0 || memcmp(&j->want, got, sizeof *got) == 0,
                  "the readers do not agree");
}

/* ---- ours ---- */

/* The columns and, since protobuf-c always decodes them, every attribute of every node. */
static sums sum_trace(const orr_trace *t, bool with_attrs)
{
    const orr_columns *c = orr_trace_columns(t);
    sums s = {.nodes = c->count, .deps = c->data_first[c->count]};
    orr_node node;
    orr_attr attr;
    for (uint32_t i = 0; i < c->count; i++)
        s.duration += c->duration_us[i];
    for (uint32_t i = 0; with_attrs && i < c->count; i++) {
        orr_trace_node(t, i, &node);
        for (orr_attrs it = orr_node_attrs(&node); orr_attrs_next(&it, &attr);)
            s.attrs++;
    }
    return s;
}

static double run_ours(void *context)
{
    const job *j = context;
    orr_trace *t;
    orr_error err;
    bench_check(orr_trace_read(j->path, NULL, &t, &err), &err);
    const sums s = sum_trace(t, false);
    bench_require(s.nodes == LAYERED_NODES && s.duration == j->want.duration,
                  "the readers do not agree");
    orr_trace_destroy(t);
    return bench_file_mb(j->path);
}

static double run_ours_all(void *context)
{
    const job *j = context;
    orr_trace *t;
    orr_error err;
    bench_check(orr_trace_read(j->path, NULL, &t, &err), &err);
    const sums s = sum_trace(t, true);
    check_sums(j, &s);
    orr_trace_destroy(t);
    return bench_file_mb(j->path);
}

/* In a separate process, like everything here. */
static double run_want(void *context)
{
    const job *j = context;
    orr_trace *t;
    orr_error err;
    bench_check(orr_trace_read(j->path, NULL, &t, &err), &err);
    const sums s = sum_trace(t, true);
    orr_trace_destroy(t);
    char path[600];
    FILE *out = fopen(bench_path(path, sizeof path, "sums"), "wb");
    bench_require(out && fwrite(&s, sizeof s, 1, out) == 1 && fclose(out) == 0,
                  "cannot keep the sums");
    return 1;
}

static sums find_sums(const char *path)
{
    job j = {.path = path};
    char file[600];
    sums s = {0};
    bench_once(&(bench_job){"sums", "", run_want, NULL, &j});
    FILE *in = fopen(bench_path(file, sizeof file, "sums"), "rb");
    bench_require(in && fread(&s, sizeof s, 1, in) == 1 && fclose(in) == 0, "cannot find the sums");
    unlink(file);
    return s;
}

/* ---- protobuf-c ---- */

#ifdef ORR_HAVE_PROTOBUF_C

static orr_span next_record(orr_wire *w)
{
    orr_span body = {0};
    bench_require(orr_wire_bytes(w, &body), "a record is cut off");
    return body;
}

static void add_node(sums *s, const Peer__Node *n)
{
    s->nodes++;
    s->duration += n->duration_micros;
    s->deps += n->n_data_deps;
    s->attrs += n->n_attr;
}

static double for_nodes(const job *j,
                        void (*each)(void *context, const Peer__Node *n),
                        void *context)
{
    orr_input *in;
    orr_error err;
    bench_check(orr_input_open(j->path, &in, &err), &err);
    orr_wire w = orr_wire_of(orr_input_bytes(in));
    next_record(&w); /* metadata */
    sums s = {0};
    while (w.at < w.end) {
        const orr_span body = next_record(&w);
        Peer__Node *n = peer__node__unpack(NULL, body.len, body.ptr);
        bench_require(n != NULL, "protobuf-c cannot read a node");
        add_node(&s, n);
        if (each)
            each(context, n);
        peer__node__free_unpacked(n, NULL);
    }
    check_sums(j, &s);
    orr_input_close(in);
    return bench_file_mb(j->path);
}

static double run_peer(void *context)
{
    return for_nodes(context, NULL, NULL);
}

static void pack_node(void *context, const Peer__Node *n)
{
    orr_buf *b = context;
    b->len = 0;
    uint8_t *to = orr_buf_reserve(b, peer__node__get_packed_size(n));
    bench_require(to && peer__node__pack(n, to) > 0, "protobuf-c cannot write a node");
}

static double run_peer_pack(void *context)
{
    orr_buf b = {0};
    const double mb = for_nodes(context, pack_node, &b);
    orr_buf_fini(&b);
    return mb;
}

#endif

/* Decode every record and encode it again, as protobuf-c does above. */
static double run_ours_pack(void *context)
{
    const job *j = context;
    orr_trace *t, *copy;
    orr_error err;
    orr_node node;
    bench_check(orr_trace_read(j->path, NULL, &t, &err), &err);
    bench_check(orr_trace_create(NULL, &copy, &err), &err);
    for (uint32_t i = 0; i < LAYERED_NODES; i++) {
        orr_trace_node(t, i, &node);
        bench_check(orr_trace_copy(copy, &node, &(orr_edit){.sets_id = true, .id = node.id}, &err),
                    &err);
    }
    bench_check(orr_trace_seal(copy, &err), &err);
    orr_trace_destroy(copy);
    orr_trace_destroy(t);
    return bench_file_mb(j->path);
}

int main(void)
{
    job j = {.path = bench_layered_file()};
    j.want = find_sums(j.path);
    bench_apart(&(bench_job){"wire__read_layered_1m_ours", "MB", run_ours, NULL, &j, j.path});
    bench_apart(
        &(bench_job){"wire__read_layered_1m_ours_all_attrs", "MB", run_ours_all, NULL, &j, j.path});
#ifdef ORR_HAVE_PROTOBUF_C
    bench_apart(&(bench_job){"wire__read_layered_1m_protobuf_c", "MB", run_peer, NULL, &j, j.path});
#else
    printf("wire: built without protobuf-c, so there is nothing to compare with\n");
#endif
    bench_apart(
        &(bench_job){"wire__read_write_layered_1m_ours", "MB", run_ours_pack, NULL, &j, j.path});
#ifdef ORR_HAVE_PROTOBUF_C
    bench_apart(&(bench_job){"wire__read_write_layered_1m_protobuf_c", "MB", run_peer_pack, NULL,
                             &j, j.path});
#endif
    return 0;
}
