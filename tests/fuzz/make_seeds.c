/* SPDX-License-Identifier: Apache-2.0 */
/* make_seeds.c - writes the seeds of the fuzz targets that read traces: make_seeds FOLDER fills
 * FOLDER/et, FOLDER/orr and FOLDER/trace_json.  The files in tests/fuzz/seeds were made by it; when
 * the formats or the patterns change, run it again.
 *
 * Small inputs that together touch every part of each format: every member of an attribute, every
 * generation, patterns with two ranks, graphs that are not as they should be, sets with holes and
 * groups, each form of JSON. */
#include <orrery/lab/gen.h>
#include <orrery/set.h>
#include <orrery/trace.h>
#include <orrery/view.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static orr_error err;
static const char *folder;

static void must(orr_code code)
{
    char text[600];
    if (code == ORR_OK)
        return;
    fprintf(stderr, "make_seeds: %s\n", orr_error_text(&err, text, sizeof text));
    exit(1);
}

static const char *path_of(const char *what, const char *name, const char *extension)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, what);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%s.%s", folder, what, name, extension);
    return path;
}

/* Each trace as .et and in each form of JSON. */
static void save(const orr_trace *t, const char *name)
{
    static const char *const extensions[] = {"json", "jsonl", "concat.json"};
    must(orr_trace_write(t, path_of("et", name, "et"), NULL, &err));
    for (int form = 0; form < 3; form++)
        must(orr_view_json(t, path_of("trace_json", name, extensions[form]),
                           &(orr_view_json_options){.size = sizeof(orr_view_json_options),
                                                    .form = (orr_view_form)form},
                           &err));
}

/* ---- every member ---- */

static orr_value value_of(orr_value_kind kind, int variant)
{
    static const char *const texts[] = {"", "text", "\xC3\xA4"};
    if (kind == ORR_VALUE_DOUBLE || kind == ORR_VALUE_FLOAT)
        return (orr_value){.d = variant * 0.5};
    if (kind == ORR_VALUE_STRING || kind == ORR_VALUE_BYTES)
        return (orr_value){.s = orr_str_of(texts[variant])};
    if (kind == ORR_VALUE_BOOL)
        return (orr_value){.u = variant != 0};
    if (kind == ORR_VALUE_INT32 || kind == ORR_VALUE_SINT32 || kind == ORR_VALUE_SFIXED32)
        return (orr_value){.i = variant == 2 ? INT32_MIN : variant};
    if (kind == ORR_VALUE_INT64 || kind == ORR_VALUE_SINT64 || kind == ORR_VALUE_SFIXED64)
        return (orr_value){.i = variant == 2 ? INT64_MIN : variant};
    return (orr_value){.u = variant == 2 ? UINT32_MAX : (uint64_t)variant};
}

static void append_members(orr_trace *t)
{
    for (uint32_t kind = 1; kind < ORR_VALUE_KIND_COUNT; kind++) {
        const orr_value items[3] = {value_of(kind, 0), value_of(kind, 1), value_of(kind, 2)};
        const orr_attr attrs[] = {
            {.name = orr_str_of("one"), .doc = orr_str_of("why"), .kind = kind, .value = items[2]},
            {.name = orr_str_of("many"),
             .kind = kind,
             .is_list = true,
             .items = items,
             .item_count = 3},
            {.name = orr_str_of("comm_size"), .kind = kind, .value = items[1]}};
        const orr_io io = {orr_str_of("[1]"), orr_str_of("[[]]"), orr_str_of("Tensor")};
        const uint64_t deps[] = {kind - 1, kind - 2};
        const orr_draft d = {.id = kind,
                             .name = orr_str_of("node"),
                             .type = kind % 8,
                             .data_deps = deps,
                             .data_count = kind > 2 ? 2 : 0,
                             .ctrl_deps = deps,
                             .ctrl_count = kind > 1,
                             .start_us = kind,
                             .duration_us = 1u << kind,
                             .inputs = &io,
                             .outputs = kind % 2 ? &io : NULL,
                             .attrs = attrs,
                             .attr_count = 3};
        must(orr_trace_append(t, &d, &err));
    }
}

static void save_members(void)
{
    const orr_attr attr = {
        .name = orr_str_of("schema"), .kind = ORR_VALUE_STRING, .value.s = orr_str_of("1.0.2")};
    const orr_meta meta = {.version = orr_str_of("0.0.4"), .attrs = &attr, .attr_count = 1};
    orr_trace *t;
    must(orr_trace_create(&meta, &t, &err));
    append_members(t);
    must(orr_trace_seal(t, &err));
    save(t, "members");
    orr_trace_destroy(t);
}

/* ---- graphs that are not as they should be ---- */

static void add_node(orr_trace *t, uint64_t id, uint64_t data, uint64_t ctrl)
{
    const orr_draft d = {.id = id,
                         .name = orr_str_of("n"),
                         .type = ORR_NODE_COMP,
                         .data_deps = &data,
                         .data_count = 1,
                         .ctrl_deps = &ctrl,
                         .ctrl_count = ctrl != 0};
    must(orr_trace_append(t, &d, &err));
}

static void save_graph(const char *name, const uint64_t (*nodes)[3], size_t count)
{
    orr_trace *t;
    must(orr_trace_create(NULL, &t, &err));
    for (size_t i = 0; i < count; i++)
        add_node(t, nodes[i][0], nodes[i][1], nodes[i][2]);
    must(orr_trace_seal(t, &err));
    save(t, name);
    orr_trace_destroy(t);
}

static void save_graphs(void)
{
    static const uint64_t cycle[][3] = {{1, 3, 0}, {2, 1, 0}, {3, 2, 1}};
    static const uint64_t missing[][3] = {{5, 900, 0}, {6, 5, UINT64_MAX}};
    static const uint64_t twice[][3] = {{7, 8, 0}, {8, 6, 0}, {7, 8, 7}, {6, 0, 0}};
    static const uint64_t sparse[][3] = {{1u << 20, 1, 0}, {3, 1u << 20, 0}, {1ull << 40, 3, 0}};
    save_graph("cycle", cycle, 3);
    save_graph("missing", missing, 2);
    save_graph("twice", twice, 4);
    save_graph("sparse", sparse, 3);
}

/* ---- patterns, generations, sets ---- */

static orr_gen_options small(const orr_pattern *p)
{
    orr_gen_options opt = p->defaults;
    opt.ranks = p->min_ranks > 2 ? p->min_ranks : 2;
    opt.nodes = 12;
    opt.width = 3;
    opt.layers = 2;
    return opt;
}

/* The first generation can hold what its own generator made, and the others can hold that too. */
static void save_generations(void)
{
    const orr_pattern *p = orr_pattern_find("three_layer_data_parallel");
    orr_gen_options opt = small(p);
    orr_trace *t;
    opt.style = ORR_GEN_EG;
    opt.dims = 2;
    must(orr_pattern_trace(p, &opt, 0, &t, &err));
    for (int schema = ORR_SCHEMA_2023_10; schema < ORR_SCHEMA_COUNT; schema++) {
        const char *extension = schema == ORR_SCHEMA_EG ? "eg" : "et";
        const char *path = path_of("et", orr_schema_name((orr_schema)schema), extension);
        must(orr_trace_write(
            t, path,
            &(orr_write_options){.size = sizeof(orr_write_options), .schema = (orr_schema)schema},
            &err));
    }
    orr_trace_destroy(t);
}

static void save_pattern(const orr_pattern *p)
{
    const orr_gen_options opt = small(p);
    orr_trace *t;
    orr_set *s;
    must(orr_pattern_trace(p, &opt, 0, &t, &err));
    save(t, p->name);
    if (strcmp(p->name, "layered") == 0) {
        must(orr_trace_write(t, path_of("et", "layered", "et.gz"), NULL, &err));
        must(orr_trace_write(t, path_of("et", "layered", "et.zst"), NULL, &err));
    }
    orr_trace_destroy(t);
    must(orr_pattern_set(p, &opt, &s, &err));
    must(orr_set_save(s, path_of("orr", p->name, "orr"), NULL, &err));
    if (strcmp(p->name, "layered") == 0)
        must(orr_set_save(
            s, path_of("orr", "packed", "orr"),
            &(orr_set_save_options){.size = sizeof(orr_set_save_options), .compress = true}, &err));
    orr_set_close(s);
}

/* ---- holes and groups ---- */

/* A collective and a message; the group, the peer and the tag are each rank's own. */
static orr_trace *make_stage(bool is_first)
{
    const orr_attr attrs[] = {
        {.name = orr_str_of("comm_type"), .kind = ORR_VALUE_INT64, .value.i = ORR_COLL_ALL_REDUCE},
        {.name = orr_str_of("comm_size"), .kind = ORR_VALUE_INT64, .value.i = 64},
        {.name = orr_str_of("pg_name"), .kind = ORR_VALUE_STRING, .value.s = orr_str_of("1")},
        {.name = orr_str_of(is_first ? "comm_dst" : "comm_src"), .kind = ORR_VALUE_INT32},
        {.name = orr_str_of("comm_tag"), .kind = ORR_VALUE_INT32}};
    const uint64_t before = 1;
    const orr_draft coll = {.id = 1, .type = ORR_NODE_COMM_COLL, .attrs = attrs, .attr_count = 3};
    const orr_draft message = {.id = 2,
                               .type = is_first ? ORR_NODE_COMM_SEND : ORR_NODE_COMM_RECV,
                               .data_deps = &before,
                               .data_count = 1,
                               .attrs = attrs + 1,
                               .attr_count = 4};
    orr_trace *t;
    must(orr_trace_create(NULL, &t, &err));
    must(orr_trace_append(t, &coll, &err));
    must(orr_trace_append(t, &message, &err));
    must(orr_trace_seal(t, &err));
    return t;
}

/* Two stages of two ranks. */
static void save_holes(void)
{
    static const uint32_t members[2][2] = {{0, 1}, {2, 3}};
    orr_set *s;
    uint32_t k;
    must(orr_set_create(&s, &err));
    for (uint32_t stage = 0; stage < 2; stage++) {
        const orr_hole holes[] = {{0, ORR_HOLE_PG_NAME, 0},
                                  {1, stage ? ORR_HOLE_COMM_SRC : ORR_HOLE_COMM_DST, 1},
                                  {1, ORR_HOLE_COMM_TAG, 2}};
        must(orr_set_add_class(s, make_stage(stage == 0), holes, 3, 3, &k, &err));
    }
    for (uint32_t r = 0; r < 4; r++) {
        const int64_t values[] = {1 + r / 2, (r + 2) % 4, r % 2};
        must(orr_set_add_rank_values(s, r / 2, 10 * (r % 2), values, &err));
    }
    must(orr_set_save(s, path_of("orr", "holes", "orr"), NULL, &err));
    for (uint32_t i = 0; i < 2; i++)
        must(orr_set_add_group(s, i + 1, members[i], 2, &err));
    must(orr_set_save(
        s, path_of("orr", "holes_and_groups", "orr"),
        &(orr_set_save_options){.size = sizeof(orr_set_save_options), .compress = true}, &err));
    orr_set_close(s);
}

static void save_bytes(const char *path, const void *bytes, size_t size)
{
    FILE *out = fopen(path, "wb");
    if (!out || fwrite(bytes, 1, size, out) != size || fclose(out) != 0) {
        perror("make_seeds");
        exit(1);
    }
}

/* What the library does not write: the form of JSON that only the C++ feeder knows, and a trace
 * whose first byte is that of a .orr (a length of 9 in three bytes). */
static void save_others(void)
{
    static const char text[] =
        "{\"workload_graph\": [{\"Id\": 0, \"Name\": \"a\", \"NodeType\": 4, \"is_cpu_op\": true, \"runtime\": 5, "
        "\"data_deps\": []}, {\"Id\": 1, \"Name\": \"b\", \"NodeType\": 7, \"is_cpu_op\": false, \"data_deps\": [0], "
        "\"comm_type\": 0, \"comm_size\": 64, \"comm_priority\": 0, \"comm_src\": 0, \"comm_dst\": 1, \"comm_tag\": 2, "
        "\"tensor_size\": 8}]}\n";
    static const char trace[] = "\x89\x80\x00is_cpu_ov";
    save_bytes(path_of("trace_json", "workload_graph", "json"), text, sizeof text - 1);
    save_bytes(path_of("orr", "trace_like_orr", "et"), trace, sizeof trace - 1);
}

int main(int argc, char **argv)
{
    /* Between them these have every type of node and attribute that patterns make. */
    static const char *const names[] = {
        "one_comp_node",  "one_metadata_node_all_types", "all_reduce",
        "send_recv_ring", "invalid_node_between",        "data_parallel",
        "layered"};
    if (argc != 2) {
        fprintf(stderr, "usage: make_seeds FOLDER\n");
        return 2;
    }
    folder = argv[1];
    save_members();
    save_graphs();
    save_others();
    save_generations();
    save_holes();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        save_pattern(orr_pattern_find(names[i]));
    return 0;
}
