/* SPDX-License-Identifier: Apache-2.0 */
/* test_golden_feeder.c - issue orders against those of the reference feeders, V2 exactly and V3 by
 * its rules.
 *
 *     test_golden_feeder              the graphs below, then the files of the golden data
 *     test_golden_feeder FOLDER...    FOLDER/case.et against case.v2.order and case.v2.waves beside it, and
 *                                     written again from its decoded parts, against its own bytes
 *
 * The graphs are those of the golden data's small feeder cases. */
#include <orrery/feeder.h>

#include "base/memory/buffer.h"
#include "golden.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned tests, failures;
static orr_error err;

static void report(bool ok, const char *what, const char *name, const char *detail)
{
    tests++;
    failures += !ok;
    printf("%sok %u - %s %s\n", ok ? "" : "not ", tests, name, what);
    if (!ok && detail)
        printf("# %s\n", detail);
}

static const char *error_text(void)
{
    static char text[600];
    return orr_error_text(&err, text, sizeof text);
}

/* ---- what a feeder does, in the words of the golden data ---- */

/* Take the next node and complete it at once. */
static void print_order(orr_feeder *f, orr_buf *out)
{
    orr_node node;
    unsigned count = 0;
    while (orr_feeder_next(f, &node, &err) == ORR_OK) {
        orr_buf_print(out, "%" PRIu64 "\n", node.id);
        if (orr_feeder_finish(f, node.id, &err))
            orr_buf_print(out, "error: %s\n", error_text());
        count++;
    }
    if (orr_feeder_left(f))
        orr_buf_print(out, "stuck after %u\n", count);
}

/* Take all that is ready, then complete it in that order. */
static void print_waves(orr_feeder *f, orr_buf *out)
{
    uint64_t *wave = NULL;
    size_t room = 0;
    for (unsigned number = 0; orr_feeder_has_ready(f); number++) {
        size_t count = 0;
        orr_node node;
        orr_buf_print(out, "wave %u:", number);
        while (orr_feeder_next(f, &node, &err) == ORR_OK && orr_grow(&wave, &room, count + 1)) {
            orr_buf_print(out, " %" PRIu64, node.id);
            wave[count++] = node.id;
        }
        orr_buf_print(out, "\n");
        for (size_t i = 0; i < count; i++)
            if (orr_feeder_finish(f, wave[i], &err))
                orr_buf_print(out, "error: %s\n", error_text());
    }
    if (orr_feeder_left(f))
        orr_buf_print(out, "stuck\n");
    orr_free(wave);
}

typedef void (*printer)(orr_feeder *f, orr_buf *out);

static void check_text(
    printer print, const orr_trace *t, orr_span want, const char *what, const char *name)
{
    orr_feeder *f;
    orr_buf got = {0};
    if (orr_feeder_create(
            t, &(orr_feeder_options){.size = sizeof(orr_feeder_options), .order = ORR_FEED_AS_V2},
            &f, &err)) {
        report(false, what, name, error_text());
        return;
    }
    print(f, &got);
    orr_feeder_close(f);
    report(got.len == want.len && (want.len == 0 || memcmp(got.ptr, want.ptr, want.len) == 0), what,
           name, NULL);
    orr_buf_fini(&got);
}

/* ---- graphs in this file ---- */

typedef struct graph_node {
    uint64_t id;
    uint64_t data[3], ctrl[1]; /* up to the first 0 */
} graph_node;

typedef struct graph {
    const char *name, *order, *waves;
    const char *refusal;  /* what the default feeder says; NULL: it feeds them all */
    graph_node nodes[10]; /* up to the first without an id */
} graph;

static const graph graphs[] = {
    {"all_cycle",
     "stuck after 0\n",
     "stuck\n",
     "cycle of 2 nodes: 3 -> 2 -> 3",
     {{2, {3}, {0}}, {3, {2}, {0}}}},
    {"ctrl_only",
     "1\n2\n3\n",
     "wave 0: 1 2\nwave 1: 3\n",
     NULL,
     {{1, {0}, {0}}, {2, {0}, {1}}, {3, {1}, {2}}}},
    {"cycle",
     "1\nstuck after 1\n",
     "wave 0: 1\nstuck\n",
     "cycle of 2 nodes: 3 -> 2 -> 3",
     {{1, {0}, {0}}, {2, {3}, {0}}, {3, {2}, {0}}}},
    {"dup_deps",
     "1\nstuck after 1\n",
     "wave 0: 1\nstuck\n",
     NULL,
     {{1, {0}, {0}}, {2, {1, 1}, {0}}, {3, {2}, {0}}}},
    {"dup_ids",
     "1\n2\n",
     "wave 0: 1\nwave 1: 2\n",
     "an earlier node has the same id 1",
     {{1, {0}, {0}}, {1, {0}, {0}}, {2, {1}, {0}}}},
    {"missing_parent",
     "1\n3\nstuck after 2\n",
     "wave 0: 1\nwave 1: 3\nstuck\n",
     "not in the trace: node 99",
     {{1, {0}, {0}}, {2, {1, 99}, {0}}, {3, {1}, {0}}}},
    {"only_meta", "", "", NULL, {{0, {0}, {0}}}},
    {"priority",
     "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
     "wave 0: 1 2 4 5 7 8\nwave 1: 3 6 9\n",
     NULL,
     {{9, {8}, {0}},
      {1, {0}, {0}},
      {7, {0}, {0}},
      {3, {2}, {0}},
      {5, {0}, {0}},
      {8, {0}, {0}},
      {2, {0}, {0}},
      {6, {5}, {0}},
      {4, {0}, {0}}}},
    {"reverse_file_order",
     "1\n2\n3\n4\n",
     "wave 0: 1\nwave 1: 2 3\nwave 2: 4\n",
     NULL,
     {{4, {2, 3}, {0}}, {3, {1}, {0}}, {2, {1}, {0}}, {1, {0}, {0}}}},
};

static size_t count_ids(const uint64_t *ids, size_t most)
{
    size_t n = 0;
    while (n < most && ids[n])
        n++;
    return n;
}

static orr_trace *build(const graph *g)
{
    orr_trace *t;
    orr_code code = orr_trace_create(&(orr_meta){.version = orr_str_of("1.0.0")}, &t, &err);
    for (const graph_node *n = g->nodes; n->id && !code; n++) {
        const orr_draft d = {.id = n->id,
                             .type = ORR_NODE_COMP,
                             .data_deps = n->data,
                             .data_count = count_ids(n->data, 3),
                             .ctrl_deps = n->ctrl,
                             .ctrl_count = count_ids(n->ctrl, 1)};
        code = orr_trace_append(t, &d, &err);
    }
    if (!code)
        code = orr_trace_seal(t, &err);
    if (!code)
        return t;
    orr_trace_destroy(t);
    return NULL;
}

/* ---- the default order: any that V3 could have taken ---- */

/* Each node once, after all its data and control dependencies. */
static bool is_valid_order(const orr_trace *t, const uint32_t *order, uint32_t count)
{
    const orr_columns *c = orr_trace_columns(t);
    uint32_t *at = calloc(c->count + 1u, sizeof *at); /* 1 + the place in the order */
    bool ok = at && count == c->count;
    for (uint32_t k = 0; ok && k < count; k++) {
        ok = at[order[k]] == 0;
        at[order[k]] = k + 1;
    }
    for (uint32_t i = 0; ok && i < c->count; i++) {
        for (uint32_t e = c->data_first[i]; e < c->data_first[i + 1]; e++)
            ok = ok && at[c->data_dep[e]] < at[i];
        for (uint32_t e = c->ctrl_first ? c->ctrl_first[i] : 0;
             c->ctrl_first && e < c->ctrl_first[i + 1]; e++)
            ok = ok && at[c->ctrl_dep[e]] < at[i];
    }
    free(at);
    return ok;
}

static void check_default(const orr_trace *t, const char *refusal, const char *name)
{
    orr_feeder *f;
    const orr_code code = orr_feeder_create(t, NULL, &f, &err);
    if (refusal || code) {
        const bool is_right = refusal && code == ORR_EINPUT && strstr(error_text(), refusal);
        report(is_right, "is refused by the default feeder", name,
               code ? error_text() : "it was fed");
        orr_feeder_close(f);
        return;
    }
    const uint32_t count = orr_trace_columns(t)->count;
    uint32_t *order = malloc((count + 1) * sizeof *order), fed = 0, node;
    while (order && fed < count && (node = orr_feeder_take(f)) != ORR_NO_NODE) {
        order[fed++] = node;
        orr_feeder_done(f, node);
    }
    report(order && is_valid_order(t, order, fed) && orr_feeder_left(f) == 0,
           "in a valid default order", name, NULL);
    free(order);
    orr_feeder_close(f);
}

static void check_graph(const graph *g)
{
    orr_trace *t = build(g);
    if (!t) {
        report(false, "is built", g->name, error_text());
        return;
    }
    check_text(print_order, t, (orr_span){(const uint8_t *)g->order, strlen(g->order)},
               "(graph): V2 order", g->name);
    check_text(print_waves, t, (orr_span){(const uint8_t *)g->waves, strlen(g->waves)},
               "(graph): V2 waves", g->name);
    check_default(t, g->refusal, g->name);
    orr_trace_destroy(t);
}

/* ---- files ---- */

/* False: there is no such file. */
static bool read_file(const char *path, orr_buf *out)
{
    FILE *f = fopen(path, "rb");
    size_t got = f ? 1 : 0;
    while (got) {
        uint8_t *to = orr_buf_reserve(out, 1 << 16);
        got = to ? fread(to, 1, 1 << 16, f) : 0;
        out->len += got;
    }
    if (f)
        fclose(f);
    return f != NULL;
}

static void check_golden(const char *base,
                         const char *ending,
                         printer print,
                         const orr_trace *t,
                         const char *what,
                         const char *name)
{
    char path[4200];
    orr_buf want = {0};
    snprintf(path, sizeof path, "%s%s", base, ending);
    if (read_file(path, &want))
        check_text(print, t, (orr_span){want.ptr, want.len}, what, name);
    orr_buf_fini(&want);
}

/* base: the path without .et.  The goldens that lie beside it are compared. */
static void check_v2(const char *base, const char *name)
{
    char path[4200];
    orr_trace *t;
    snprintf(path, sizeof path, "%s.et", base);
    if (orr_trace_read(
            path,
            &(orr_read_options){.size = sizeof(orr_read_options), .leniency = ORR_AS_FEEDER_V2}, &t,
            &err)) {
        report(false, "is read", name, error_text());
        return;
    }
    check_golden(base, ".v2.order", print_order, t, "V2 order", name);
    check_golden(base, ".v2.waves", print_waves, t, "V2 waves", name);
    orr_trace_destroy(t);
}

/* V3 refuses what we refuse, and more: it feeds dup_ids and half of cycle, which are errors here,
 * and refuses only_meta, which here is simply done. */
static const struct {
    const char *folder, *name, *refusal;
} files[] = {
    {"feeder", "all_cycle", "cycle of 2 nodes"},
    {"feeder", "ctrl_only", NULL},
    {"feeder", "cycle", "cycle of 2 nodes"},
    {"feeder", "diamond_wide", NULL},
    {"feeder", "dlrm", NULL},
    {"feeder", "dlrm_gz", NULL},
    {"feeder", "dlrm_npu1", NULL},
    {"feeder", "dup_deps", NULL},
    {"feeder", "dup_ids", "an earlier node has the same id 1"},
    {"feeder", "invalid_type", NULL},
    {"feeder", "missing_parent", "its data dependency is not in the trace: node 99"},
    {"feeder", "only_meta", NULL},
    {"feeder", "priority", NULL},
    {"feeder", "pytorch", "its control dependency is not in the trace: node 0"},
    {"feeder", "reverse_file_order", NULL},
    {"feeder", "truncated", NULL},
    {"wild", "astrasim_custom_ring", NULL},
    {"wild", "astrasim_reduce_scatter", NULL},
    {"wild", "real_2023", "its control dependency is not in the trace"},
    {"wild", "service_allreduce_1mb", NULL},
    {"wild", "tutorial_allreduce_1d", NULL},
    {"wild", "tutorial_mlp_model", NULL},
};

static void check_file(const char *root, const char *folder, const char *name, const char *refusal)
{
    char base[4096], path[4200];
    orr_trace *t;
    snprintf(base, sizeof base, "%s/%s/%s", root, folder, name);
    snprintf(path, sizeof path, "%s.et", base);
    check_v2(base, name);
    const orr_code code = orr_trace_read(path, NULL, &t, &err);
    if (strcmp(name, "truncated") == 0) {
        report(code == ORR_EINPUT && err.where.byte != ORR_NO_BYTE, "is refused when read strictly",
               name, error_text());
        orr_trace_destroy(t);
        return;
    }
    if (code) {
        report(false, "is read strictly", name, error_text());
        return;
    }
    check_default(t, refusal, name);
    orr_trace_destroy(t);
}

static void check_files(void)
{
    char root[3072]; /* leaves room for the rest of a path */
    golden_path(root, sizeof root, "chakra");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        check_file(root, files[i].folder, files[i].name, files[i].refusal);
}

/* ---- decoded and encoded again ---- */

typedef struct parts {
    uint64_t *data, *ctrl;
    orr_attr *attrs;
    size_t data_room, ctrl_room, attr_room;
    orr_value **items; /* one array for each attribute that is a list */
    size_t item_count, item_room;
} parts;

static size_t take_ids(orr_list it, uint64_t **ids, size_t *room)
{
    size_t n = 0;
    orr_value v;
    while (orr_list_next(&it, &v) && orr_grow(ids, room, n + 1))
        (*ids)[n++] = v.u;
    return n;
}

static void take_items(parts *p, orr_attr *a)
{
    orr_value *items = NULL, v;
    size_t room = 0;
    a->item_count = 0;
    for (orr_list it = orr_attr_items(a);
         orr_list_next(&it, &v) && orr_grow(&items, &room, a->item_count + 1);)
        items[a->item_count++] = v;
    a->items = items;
    a->list = (orr_span){NULL, 0};
    if (orr_grow(&p->items, &p->item_room, p->item_count + 1))
        p->items[p->item_count++] = items;
}

static orr_code append_again(orr_trace *to, const orr_node *n, parts *p)
{
    orr_draft d = {.id = n->id,
                   .name = n->name,
                   .type = n->type,
                   .start_us = n->start_us,
                   .duration_us = n->duration_us,
                   .inputs = n->has_inputs ? &n->inputs : NULL,
                   .outputs = n->has_outputs ? &n->outputs : NULL};
    orr_attrs it = orr_node_attrs(n);
    d.data_count = take_ids(orr_node_data_deps(n), &p->data, &p->data_room);
    d.ctrl_count = take_ids(orr_node_ctrl_deps(n), &p->ctrl, &p->ctrl_room);
    while (orr_grow(&p->attrs, &p->attr_room, d.attr_count + 1) &&
           orr_attrs_next(&it, &p->attrs[d.attr_count])) {
        if (p->attrs[d.attr_count].is_list)
            take_items(p, &p->attrs[d.attr_count]);
        d.attr_count++;
    }
    d.data_deps = p->data;
    d.ctrl_deps = p->ctrl;
    d.attrs = p->attrs;
    const orr_code code = orr_trace_append(to, &d, &err);
    while (p->item_count)
        orr_free(p->items[--p->item_count]);
    return code;
}

static orr_code write_again(const char *from, const char *to)
{
    orr_trace *t, *copy = NULL;
    parts p = {0};
    orr_code code = orr_trace_read(from, NULL, &t, &err);
    if (code)
        return code;
    code = orr_trace_create(&(orr_meta){.version = orr_trace_version(t)}, &copy, &err);
    for (uint32_t i = 0; i < orr_trace_columns(t)->count && !code; i++) {
        orr_node node;
        orr_trace_node(t, i, &node);
        code = append_again(copy, &node, &p);
    }
    if (!code)
        code = orr_trace_seal(copy, &err);
    if (!code)
        code = orr_trace_write(copy, to, NULL, &err);
    orr_free(p.data);
    orr_free(p.ctrl);
    orr_free(p.attrs);
    orr_free(p.items);
    orr_trace_destroy(copy);
    orr_trace_destroy(t);
    return code;
}

static void check_folder(const char *folder)
{
    char base[4096], from[4200];
    orr_buf want = {0}, got = {0};
    snprintf(base, sizeof base, "%s/case", folder);
    snprintf(from, sizeof from, "%s.et", base);
    check_v2(base, folder);
    if (write_again(from, "again.et"))
        report(false, "is written again", folder, error_text());
    else
        report(read_file(from, &want) && read_file("again.et", &got) && want.len == got.len &&
                   memcmp(want.ptr, got.ptr, want.len) == 0,
               "is the same when written again", folder, NULL);
    orr_buf_fini(&want);
    orr_buf_fini(&got);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        check_folder(argv[i]);
    if (argc == 1) {
        for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++)
            check_graph(&graphs[i]);
        check_files();
    }
    printf("1..%u\n", tests);
    return failures ? 1 : 0;
}
