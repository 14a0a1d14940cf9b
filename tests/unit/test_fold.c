/* SPDX-License-Identifier: Apache-2.0 */
/* test_fold.c - a run that simulates ranks of one kind once gives the results of every rank
 * simulated.
 *
 * Jobs are drawn by number: tensor, data and pipeline groups, groups of all ranks across stages,
 * messages between stages, chains that overlap, slow and late ranks, all algorithms that are folded
 * and some that are not; remote memory, a roofline, ranks whose messages and computations are
 * larger than those of others, and links of leaf-spine networks.  Each is run with ORR_SIM_FOLD_VERIFY, which compares every figure.
 * FOLD_SEEDS=1000-9000 draws others, FOLD_KEEP=DIR keeps the files, FOLD_WHY=1 says what became of
 * each, FOLD_ONLY=PATTERN runs some of the tests. */
#include "check.h"
#include "draw.h"
#include "files.h"

#include "run/sim.h"

#include <orrery/lab/critical_path.h>
#include <orrery/timeline.h>

#include <stdlib.h>

static orr_error err;

/* ---- drawing ---- */

typedef struct drawing {
    uint64_t state;
    uint32_t tp, dp, pp, ranks;
    uint32_t apart; /* between the ids of kinds of groups: 1000, and their tags may be mixed up */
    bool is_joint;  /* no algorithm is named, and the network is fluid */
    bool is_late;   /* some ranks begin later than the others, and many are alike */
    bool has_trees; /* collectives with a root, and double binary trees */
    uint32_t tp_root, dp_root, all_root; /* which member it is */
    bool roots_differ;                   /* from group to group */
    uint32_t streams;                    /* of communication; 0: nodes have none */
    bool is_many;      /* hundreds of groups, sizes up to 1 GiB, tags of their own */
    uint32_t variants; /* of the traces of a stage; 0: 1 */
    uint32_t
        variant; /* the one that is drawn: larger messages and computations than the one before */
    bool has_roofline, has_memory; /* computations without durations; remote memory */
    bool is_short;                 /* algorithms of the first dimension only */
} drawing;

#define PICK(d, ...)        \
    ((const char *const[]){ \
        __VA_ARGS__}[below(d, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))])

/* ---- traces: one body per stage ---- */

enum {
    TP_GROUP,
    DP_GROUP,
    ALL_GROUP,
    DP_TWIN,
    NEXT,
    PREVIOUS,
    TP_ROOT,
    DP_ROOT,
    ALL_ROOT,
    TAG,
    SLOTS,
    MOST_STAGES = 4,
    MOST_HOLES = 256,
    MOST_RANKS = 2048,
    MOST_ATTRS = 5,
    MOST_VARIANTS = 4
};

typedef struct stage {
    orr_trace *t;
    orr_hole holes[MOST_HOLES];
    size_t hole_count;
    uint64_t last; /* id of the newest node */
} stage;

static orr_attr int_attr(const char *name, int64_t v)
{
    return (orr_attr){.name = orr_str_of(name), .kind = ORR_VALUE_INT64, .value.i = v};
}

static void add_node(
    drawing *d, stage *s, uint32_t type, uint64_t us, const orr_attr *attrs, size_t count)
{
    uint64_t deps[2];
    size_t dep_count = 0;
    orr_attr all[MOST_ATTRS];
    CHECK(count < MOST_ATTRS);
    for (size_t i = 0; i < count; i++)
        all[i] = attrs[i];
    if (d->streams && type != ORR_NODE_COMP)
        all[count++] = int_attr("stream", 7 + below(d, d->streams));
    if (s->last && chance(d, 75))
        deps[dep_count++] = s->last;
    else if (s->last && chance(d, 60))
        deps[dep_count++] = 1 + below(d, (uint32_t)s->last);
    const orr_draft draft = {.id = ++s->last,
                             .name = orr_str_of("n"),
                             .type = type,
                             .duration_us = us,
                             .data_deps = deps,
                             .data_count = dep_count,
                             .attrs = all,
                             .attr_count = count};
    CHECK_OK(orr_trace_append(s->t, &draft, &err), &err);
}

static void add_hole(stage *s, orr_hole_field field, uint32_t slot)
{
    CHECK(s->hole_count < MOST_HOLES);
    s->holes[s->hole_count++] = (orr_hole){(uint32_t)s->last - 1, field, slot};
}

static void add_collective(drawing *d, stage *s, uint32_t kind, int64_t size, uint32_t slot)
{
    const orr_attr attrs[] = {
        int_attr("comm_type", kind),
        int_attr("comm_size", size),
        {.name = orr_str_of("pg_name"), .kind = ORR_VALUE_STRING, .value.s = orr_str_of("1")}};
    add_node(d, s, ORR_NODE_COMM_COLL, 0, attrs, 3);
    add_hole(s, ORR_HOLE_PG_NAME, slot);
}

static void add_rooted(
    drawing *d, stage *s, uint32_t kind, int64_t size, uint32_t slot, bool has_root)
{
    const bool is_source = kind == ORR_COLL_BROADCAST || kind == ORR_COLL_SCATTER;
    const orr_attr attrs[] = {
        int_attr("comm_type", kind),
        int_attr("comm_size", size),
        {.name = orr_str_of("pg_name"), .kind = ORR_VALUE_STRING, .value.s = orr_str_of("1")},
        int_attr(is_source ? "comm_src" : "comm_dst", 0)};
    add_node(d, s, ORR_NODE_COMM_COLL, 0, attrs, has_root ? 4 : 3);
    add_hole(s, ORR_HOLE_PG_NAME, slot);
    if (has_root)
        add_hole(s, is_source ? ORR_HOLE_COMM_SRC : ORR_HOLE_COMM_DST,
                 slot == TP_GROUP    ? TP_ROOT
                 : slot == ALL_GROUP ? ALL_ROOT
                                     : DP_ROOT);
}

static void add_message(
    drawing *d, stage *s, bool is_send, int64_t size, int64_t tag, uint32_t slot)
{
    const orr_attr attrs[] = {int_attr(is_send ? "comm_dst" : "comm_src", 0),
                              int_attr("comm_size", size), int_attr("comm_tag", tag)};
    add_node(d, s, is_send ? ORR_NODE_COMM_SEND : ORR_NODE_COMM_RECV, 0, attrs, 3);
    add_hole(s, is_send ? ORR_HOLE_COMM_DST : ORR_HOLE_COMM_SRC, slot);
    if (d->is_many && tag % 2)
        add_hole(s, ORR_HOLE_COMM_TAG, TAG);
}

/* A load or a store of remote memory, or none. */
static void add_memory(drawing *d, stage *s)
{
    const orr_attr attrs[] = {int_attr("tensor_size", 1000 << below(d, 8))};
    if (chance(d, 50))
        add_node(d, s, chance(d, 50) ? ORR_NODE_MEM_LOAD : ORR_NODE_MEM_STORE, 0, attrs, 1);
}

/* Some end at once: those without operations and bytes. */
static void add_computation(drawing *d, stage *s, uint64_t us)
{
    const uint64_t more = d->variant;
    const orr_attr attrs[] = {int_attr("num_ops", (int64_t)(us + more) * 100000),
                              int_attr("tensor_size", (int64_t)(us + more) * 1000)};
    add_node(d, s, ORR_NODE_COMP, us + more, attrs, d->has_roofline ? 2 : 0);
    if (d->has_memory && chance(d, 40))
        add_memory(d, s);
}

/* What all ranks do one after the other, or some of them. */
static void add_operation(drawing *d, stage *stages, int64_t tag)
{
    static const uint32_t kinds[] = {ORR_COLL_ALL_REDUCE,     ORR_COLL_ALL_GATHER,
                                     ORR_COLL_REDUCE_SCATTER, ORR_COLL_ALL_TO_ALL,
                                     ORR_COLL_BROADCAST,      ORR_COLL_REDUCE};
    static const int64_t sizes[] = {64, 1000, 4096, 65536, 1 << 20};
    static const int64_t large[] = {1, 12345678, 1 << 20, 1 << 26, 1 << 30};
    const uint32_t what = below(d, 10), one = below(d, d->pp);
    const uint32_t kind = kinds[below(d, d->is_joint ? 6 : 4)];
    const int64_t size = (d->is_many ? large : sizes)[below(d, 5)];
    const int64_t message = size + 300 * (int64_t)d->variant;
    const bool is_everywhere = chance(d, 60);
    static const uint32_t rooted[] = {ORR_COLL_BROADCAST, ORR_COLL_REDUCE, ORR_COLL_GATHER,
                                      ORR_COLL_SCATTER, ORR_COLL_BARRIER};
    const bool is_rooted = d->has_trees && chance(d, 50);
    const uint32_t rooted_kind = is_rooted ? rooted[below(d, 5)] : 0;
    const bool has_root = is_rooted && rooted_kind != ORR_COLL_BARRIER && chance(d, 60);
    if (what < 4) {
        for (uint32_t k = 0; k < d->pp; k++)
            if (is_everywhere || k == one)
                add_computation(d, &stages[k], below(d, 4) * 5);
    } else if (what < 8) {
        const uint32_t slot = what == 7   ? ALL_GROUP
                              : what == 6 ? (chance(d, 30) ? DP_TWIN : DP_GROUP)
                                          : TP_GROUP;
        for (uint32_t k = 0; k < d->pp; k++)
            if (slot != ALL_GROUP && !is_everywhere && k != one)
                continue;
            else if (is_rooted)
                add_rooted(d, &stages[k], rooted_kind, size, slot, has_root);
            else
                add_collective(d, &stages[k], kind, size, slot);
    } else if (d->pp > 1) {
        const uint32_t k = below(d, d->pp - 1);
        const bool is_forward = chance(d, 50);
        add_message(d, &stages[k], is_forward, message, tag, NEXT);
        add_message(d, &stages[k + 1], !is_forward, message, tag, PREVIOUS);
    }
}

/* The traces of all stages, in the variant that is wanted. */
static void draw_stages(drawing *d, stage stages[MOST_STAGES])
{
    const orr_attr streams = {.name = orr_str_of("streams"), .kind = ORR_VALUE_BOOL, .value.u = 1};
    for (uint32_t k = 0; k < d->pp; k++)
        CHECK_OK(orr_trace_create(&(orr_meta){.version = orr_str_of("1.0.0"),
                                              .attrs = &streams,
                                              .attr_count = d->streams ? 1 : 0},
                                  &stages[k].t, &err),
                 &err);
    const uint32_t operations = d->ranks > 1000 ? 3 : 4 + below(d, d->is_many ? 5 : 30);
    for (uint32_t i = 0; i < operations; i++)
        add_operation(d, stages, 1 + (chance(d, 50) ? 0 : i));
    for (uint32_t k = 0; k < d->pp; k++)
        if (!stages[k].last)
            add_node(d, &stages[k], ORR_NODE_COMP, 1, NULL, 0);
}

/* By replica and shard, the same in all stages: the variant of its traces.  One that differs, every
 * second replica, or any. */
static void draw_variants(drawing *d, uint32_t variant_of[MOST_RANKS])
{
    const uint32_t size = d->tp * d->dp, how = d->variants > 1 ? below(d, 3) : 0;
    const uint32_t odd = d->variants > 1 ? below(d, size) : size;
    for (uint32_t i = 0; i < size; i++)
        variant_of[i] = how == 0 ? i == odd : how == 1 ? i / d->tp % 2 : below(d, d->variants);
}

/* Rank = (stage * dp + replica) * tp + shard. */
static orr_set *draw_set(drawing *d)
{
    stage stages[MOST_VARIANTS][MOST_STAGES] = {0};
    uint32_t index[MOST_VARIANTS][MOST_STAGES], variant_of[MOST_RANKS];
    const uint32_t variants = d->variants ? d->variants : 1;
    orr_set *set;
    CHECK(d->ranks <= MOST_RANKS && variants <= MOST_VARIANTS);
    const uint64_t state = d->state;
    CHECK_OK(orr_set_create(&set, &err), &err);
    for (d->variant = 0; d->variant < variants; d->variant++) {
        d->state = state; /* the same choices for each of them */
        draw_stages(d, stages[d->variant]);
    }
    d->variant = 0;
    draw_variants(d, variant_of);
    for (uint32_t k = 0; k < d->pp; k++) {
        for (uint32_t v = 0; v < variants; v++) {
            stage *s = &stages[v][k];
            CHECK_OK(orr_trace_seal(s->t, &err), &err);
            CHECK_OK(
                orr_set_add_class(set, s->t, s->holes, s->hole_count, SLOTS, &index[v][k], &err),
                &err);
        }
        const uint32_t size = d->tp * d->dp;
        for (uint32_t r = k * size; r < (k + 1) * size; r++) {
            const int64_t group = k * d->tp + r % d->tp;
            const uint32_t turn = d->roots_differ ? r / d->tp : 0;
            const uint32_t replica = (d->dp_root + (d->roots_differ ? r % d->tp : 0)) % d->dp;
            const int64_t values[] = {1 + r / d->tp,
                                      1 + d->apart + group,
                                      5 * d->apart,
                                      1 + 2 * d->apart + group,
                                      (r + size) % d->ranks,
                                      (r + d->ranks - size) % d->ranks,
                                      r / d->tp * d->tp + (d->tp_root + turn) % d->tp,
                                      (k * d->dp + replica) * d->tp + r % d->tp,
                                      d->all_root,
                                      100 + r % size % 3};
            CHECK_OK(orr_set_add_rank_values(set, index[variant_of[r % size]][k], 0, values, &err),
                     &err);
        }
    }
    uint32_t members[MOST_RANKS];
    for (uint32_t g = 0; g < d->ranks / d->tp; g++) {
        for (uint32_t i = 0; i < d->tp; i++)
            members[i] = g * d->tp + i;
        CHECK_OK(orr_set_add_group(set, 1 + g, members, d->tp, &err), &err);
    }
    const uint32_t shards = d->pp * d->tp;
    for (uint32_t g = 0; g < 2 * shards; g++) { /* twice, for the twins */
        for (uint32_t i = 0; i < d->dp; i++)
            members[i] = (g % shards / d->tp * d->dp + i) * d->tp + g % d->tp;
        const uint64_t id = g < shards ? 1 + d->apart + g : 1 + 2 * d->apart + g - shards;
        CHECK_OK(orr_set_add_group(set, id, members, d->dp, &err), &err);
    }
    for (uint32_t i = 0; i < d->ranks; i++)
        members[i] = i;
    CHECK_OK(orr_set_add_group(set, 5 * d->apart, members, d->ranks, &err), &err);
    return set;
}

/* ---- files ---- */

/* FOLD_KEEP=DIR: the files of the job stay there, for orrery run. */
static void write_text(const char *path, const char *text)
{
    char kept[400];
    write_file(path, text, strlen(text));
    if (getenv("FOLD_KEEP") && getenv("FOLD_SEEDS")) {
        snprintf(kept, sizeof kept, "%s/%s", getenv("FOLD_KEEP"), path);
        write_file(kept, text, strlen(text));
    }
}

static void draw_network(drawing *d)
{
    char text[300];
    const uint32_t inner = d->tp > 1 && d->tp < d->ranks && chance(d, 60) ? d->tp : 0;
    const char *a = PICK(d, "Ring", "Switch", "FullyConnected"),
               *b = PICK(d, "Ring", "Switch", "FullyConnected");
    static const unsigned latencies[] = {1, 10, 500, 5000};
    if (inner)
        snprintf(
            text, sizeof text,
            "topology: [%s, %s]\nnpus_count: [%u, %u]\nbandwidth: [400, 50]\nlatency: [%u, %u]\n",
            a, b, inner, d->ranks / inner, latencies[below(d, 4)], latencies[below(d, 4)]);
    else
        snprintf(text, sizeof text,
                 "topology: [%s]\nnpus_count: [%u]\nbandwidth: [%u]\nlatency: [%u]\n", a, d->ranks,
                 chance(d, 50) ? 50 : 400, latencies[below(d, 4)]);
    write_text("net.yml", text);
    const bool is_power =
        !(d->tp & (d->tp - 1)) && !(d->dp & (d->dp - 1)) && !(d->ranks & (d->ranks - 1));
    char lists[1000];
    size_t at = 0;
    static const char *const names[] = {"all-reduce", "all-gather", "reduce-scatter",
                                        "all-to-all", "broadcast",  "reduce",
                                        "gather",     "scatter",    "barrier"};
    for (unsigned k = 0; k < (d->has_trees ? 9 : 4); k++) {
        at += (size_t)snprintf(lists + at, sizeof lists - at, "\"%s-implementation\":[", names[k]);
        for (unsigned i = 0; i < (inner && !d->is_short ? 2 : 1); i++) {
            const char *word = k > 3 ? PICK(d, "ring", "direct", "tree")
                               : d->has_trees && inner && is_power && k == 0 && chance(d, 60)
                                   ? "doubleBinaryTree"
                               : is_power && k < 3
                                   ? PICK(d, "ring", "ring", "direct", "halvingDoubling", "direct2")
                                   : PICK(d, "ring", "ring", "direct", "direct2");
            at += (size_t)snprintf(lists + at, sizeof lists - at, "%s\"%s\"", i ? "," : "", word);
        }
        at += (size_t)snprintf(lists + at, sizeof lists - at, "],");
    }
    char system[2000];
    snprintf(
        system, sizeof system,
        "{%s%s\"scheduling-policy\":\"%s\",\"local-mem-bw\":%s,\"preferred-dataset-splits\":%s,"
        "\"active-chunks-per-dimension\":%s,\"endpoint-delay\":%s,\"collective-optimization\":\"%s\"}",
        lists, d->has_roofline ? "\"roofline-enabled\":1,\"peak-perf\":1," : "",
        PICK(d, "LIFO", "FIFO"), PICK(d, "100", "3350"), PICK(d, "1", "2", "4"),
        PICK(d, "1", "2", "4"), PICK(d, "0", "1", "10", "100"),
        PICK(d, "baseline", "localBWAware"));
    write_text("sys.json", system);
}

/* Links and devices, under routes that are always the same; now and then a link is slow. */
static const char *draw_topology(drawing *d)
{
    const uint32_t host = d->tp > 1 ? d->tp : d->ranks % 2 ? 1 : 2, hosts = d->ranks / host;
    char shape[300], text[500];
    const uint32_t kind = below(d, 3);
    if (host < 2 || hosts < 2)
        snprintf(shape, sizeof shape,
                 "{type: switch, ranks: %u, bandwidth: 50GB/s, latency: 500ns}", d->ranks);
    else if (kind == 0)
        snprintf(shape, sizeof shape,
                 "{type: leaf-spine, ranks: %u, ranks_per_leaf: %u, spines: %u, bandwidth: 50GB/s, "
                 "latency: 500ns}",
                 d->ranks, host, 1 + below(d, 3));
    else
        snprintf(shape, sizeof shape,
                 "{type: %s, domains: %u, ranks_per_domain: %u, spines: %u, nvlink_bandwidth: "
                 "400GB/s, nvlink_latency: 200ns, bandwidth: 50GB/s, latency: 1us}",
                 kind == 1 ? "servers" : "rails", hosts, host, kind == 1 ? 0 : 1 + below(d, 2));
    snprintf(text, sizeof text, "generate: %s\nrouting: first\ndims: [%u, %u]\n", shape, host,
             hosts);
    if (hosts < 2 || host < 2)
        snprintf(text, sizeof text, "generate: %s\nrouting: first\n", shape);
    write_text("net.yml", text);
    if (chance(d, 85) || host < 2 || hosts < 2)
        return NULL;
    snprintf(text, sizeof text, "links:\n  - {from: %u, to: %s0, bandwidth: 0.5}\n", below(d, host),
             kind == 0 ? "leaf" : "nvswitch");
    write_text("ranks.yml", text);
    return "ranks.yml";
}

static const char *draw_memory(drawing *d)
{
    char text[200];
    snprintf(text, sizeof text,
             "{\"memory-type\":\"%s\",\"remote-mem-latency\":%u,\"remote-mem-bw\":%u,"
             "\"num-nodes\":%u,\"num-npus-per-node\":%u}",
             chance(d, 90) ? "PER_NPU_MEMORY_EXPANSION" : "MEMORY_POOL", below(d, 3) * 100,
             1 + below(d, 50), d->ranks / d->tp, d->tp);
    write_text("mem.json", text);
    return "mem.json";
}

static const char *draw_ranks_file(drawing *d)
{
    char text[200];
    if (d->is_late) {
        snprintf(text, sizeof text,
                 "ranks:\n  - {ranks: %u, delay: %s}\n  - {ranks: %u, delay: %s}\n",
                 below(d, d->ranks / 2), PICK(d, "777ns", "20us"),
                 d->ranks / 2 + below(d, d->ranks / 2), PICK(d, "777ns", "1us", "100us"));
        write_text("ranks.yml", text);
        return "ranks.yml";
    }
    if (chance(d, 70))
        return NULL;
    snprintf(text, sizeof text, "ranks:\n  - {ranks: %u, %s}\n", below(d, d->ranks),
             PICK(d, "compute: 0.5", "delay: 777ns", "compute: 0.9, delay: 3us", "memory: 0.5"));
    write_text("ranks.yml", text);
    return "ranks.yml";
}

/* ---- runs ---- */

typedef struct counts {
    unsigned folded, whole, stuck;
    unsigned merged; /* fewer ranks were simulated at the end than at the beginning */
    unsigned steady; /* not all steps in a row were simulated */
} counts;

/* Ports that flows share, and collectives of all members at once: ranks go in lock step. */
static void draw_ports(drawing *d)
{
    char text[300];
    uint32_t inner = d->tp > 1 && d->tp < d->ranks && chance(d, 60) ? d->tp : 0;
    if (inner && d->ranks % (2 * inner) == 0 && 2 * inner < d->ranks && chance(d, 30))
        inner *= 2; /* stages or replicas that share a host: some messages go by other ranks */
    const uint32_t middle = chance(d, 50) ? d->dp : d->pp;
    /* Ports of their own, or links that ranks share. */
    const bool has_links = chance(d, 50);
    const char *shape[3];
    for (unsigned i = 0; i < 3; i++)
        shape[i] = has_links ? PICK(d, "Ring", "Switch", "FullyConnected") : "Switch";
    if (inner && middle > 1 && d->ranks / inner % middle == 0 && d->ranks / inner > middle &&
        chance(d, 50))
        snprintf(text, sizeof text,
                 "topology: [%s, %s, %s]\nnpus_count: [%u, %u, %u]\n"
                 "bandwidth: [400, 50, 25]\nlatency: [250, 1000, 3000]\n",
                 shape[0], shape[1], shape[2], inner, middle, d->ranks / inner / middle);
    else if (inner)
        snprintf(text, sizeof text,
                 "topology: [%s, %s]\nnpus_count: [%u, %u]\nbandwidth: [400, 50]\n"
                 "latency: [250, 1000]\n",
                 shape[0], shape[1], inner, d->ranks / inner);
    else
        snprintf(text, sizeof text,
                 "topology: [%s]\nnpus_count: [%u]\nbandwidth: [%u]\nlatency: [500]\n", shape[0],
                 d->ranks, chance(d, 50) ? 50 : 400);
    write_text("net.yml", text);
    write_text("sys.json", "{}");
}

/* steps: most, in a row. */
enum { PLAIN, LATE, TREES, STREAMS, MANY, ODD };

static void try_job(uint64_t number, const char *network, uint32_t steps, unsigned how, counts *c)
{
    const bool is_joint = strcmp(network, "fluid") == 0, is_late = how == LATE;
    drawing d = {.state = number * 0x9e3779b97f4a7c15u + 1,
                 .is_joint = is_joint,
                 .is_late = is_late,
                 .has_trees = how == TREES || (how == STREAMS && number % 2),
                 .streams = how == STREAMS ? 2 + number % 2 : 0,
                 .is_many = how == MANY,
                 .variants = how == ODD ? 1 + number / 2 % MOST_VARIANTS : 0,
                 .has_roofline = how == ODD && !is_joint && number % 3 == 0,
                 .has_memory = how == ODD && number % 5 < 3,
                 .is_short = how == ODD && number % 11 == 0};
    below(&d, 2);
    d.apart = !is_joint && strcmp(network, "unaware") != 0 && number % 8 ? 90 : 1000;
    d.tp = 1u << below(&d, 3);
    d.dp = how == LATE || how == TREES ? 8 + below(&d, 9) : 1 + below(&d, 4);
    if (how == STREAMS)
        d.dp *= 2;
    if (how == ODD)
        d.dp = d.dp * 4 + (uint32_t)(number % 3);
    if (how == MANY)
        d.dp = number % 8 ? 16 + below(&d, 48) : 170;
    d.pp = 1 + below(&d, 3);
    if (how == MANY && number % 8 == 0) {
        d.tp = 2;
        d.pp = 3;
    }
    d.ranks = d.tp * d.dp * d.pp;
    if (d.ranks < 2)
        d.ranks = d.tp = 2;
    if (d.has_trees) {
        d.tp_root = below(&d, d.tp);
        d.dp_root = below(&d, d.dp);
        d.all_root = below(&d, d.ranks);
        d.roots_differ = chance(&d, 15);
    }
    orr_set *set = draw_set(&d);
    if (is_joint)
        draw_ports(&d);
    else
        draw_network(&d);
    orr_sim_options opt = {.system = "sys.json",
                           .network = "net.yml",
                           .fidelity = network,
                           .set = set,
                           .ranks_file = draw_ranks_file(&d),
                           .queues_per_dim = chance(&d, 20) ? 2 : 1,
                           .fold = ORR_SIM_FOLD_VERIFY};
    if (d.has_memory)
        opt.memory = draw_memory(&d);
    if (how == ODD && strcmp(network, "graph") == 0) {
        const char *links = draw_topology(&d);
        opt.ranks_file = links ? links : opt.ranks_file;
    }
    if (steps > 1)
        opt.steps = 2 + below(&d, steps - 1);
    if (number % 2) /* the log of steps is compared, too */
        opt.record = ORR_SIM_RECORD_PHASES;
    orr_sim *s;
    if (getenv("FOLD_KEEP")) {
        char kept[400];
        snprintf(kept, sizeof kept, "%s/job.orr", getenv("FOLD_KEEP"));
        CHECK_OK(orr_set_save(set, kept, NULL, &err), &err);
    }
    CHECK_OK(orr_sim_create(&opt, &s, &err), &err);
    const orr_code code = orr_sim_run(s, &err);
    if (code == ORR_EBUG)
        check_fail(__FILE__, __LINE__, "job %llu: %s", (unsigned long long)number, err.message);
    if (getenv("FOLD_WHY"))
        fprintf(stderr, "job %llu: %s %s\n", (unsigned long long)number, orr_sim_fold_why(s),
                code ? err.message : "");
    c->stuck += code != ORR_OK;
    c->folded += !code && strstr(orr_sim_fold_why(s), "verified") != NULL;
    c->whole += !code && strstr(orr_sim_fold_why(s), "verified") == NULL;
    c->merged += !code && strstr(orr_sim_fold_why(s), "at the end") != NULL;
    unsigned simulated, asked;
    const char *in_a_row = strstr(orr_sim_fold_why(s), "ranks, ");
    c->steady += !code && in_a_row &&
                 sscanf(in_a_row, "ranks, %u of %u steps", &simulated, &asked) == 2 &&
                 simulated < asked;
    orr_sim_destroy(s);
    orr_set_close(set);
}

/* Eight times as many in make check. */
static unsigned long long as_many(unsigned long long count)
{
    const char *much = getenv("ORR_MUCH");
    return much && strcmp(much, "1") == 0 ? 8 * count : count;
}

/* Of the jobs that a test draws: 1 to count, or what FOLD_SEEDS says. */
typedef struct numbers {
    unsigned long long first, last;
} numbers;

static numbers numbers_of(unsigned long long count)
{
    numbers n = {1, as_many(count)};
    const char *asked = getenv("FOLD_SEEDS");
    if (asked)
        CHECK(sscanf(asked, "%llu-%llu", &n.first, &n.last) == 2);
    return n;
}

static void try_one(uint64_t number, const char *network, uint32_t steps, counts *c)
{
    try_job(number, network, steps, PLAIN, c);
}

TEST(test_fold__a_folded_run_is_exact)
{
    const numbers n = numbers_of(400);
    counts c = {0};
    for (unsigned long long i = n.first; i <= n.last; i++)
        try_one(i, "unaware", 1, &c);
    fprintf(stderr, "# %u folded, %u with every rank, %u do not finish\n", c.folded, c.whole,
            c.stuck);
    CHECK(c.folded * 4 > c.whole + c.folded); /* or nothing is tested */
}

/* Ranks that begin late are set apart; what they wait for makes them equal again, or does not. */
TEST(test_fold__classes_become_one_again)
{
    const numbers n = numbers_of(200);
    counts c = {0};
    for (unsigned long long i = n.first; i <= n.last; i++)
        try_job(i, "unaware", 1, LATE, &c);
    fprintf(
        stderr,
        "# %u folded, %u of them with fewer ranks at the end, %u with every rank, %u do not finish\n",
        c.folded, c.merged, c.whole, c.stuck);
    CHECK(c.merged * 16 > c.folded); /* or nothing is tested */
}

/* Collectives with a root, by all algorithms, and double binary trees. */
TEST(test_fold__trees_are_exact)
{
    const numbers n = numbers_of(300);
    counts c = {0};
    for (unsigned long long i = n.first; i <= n.last; i++)
        try_job(i, "unaware", i % 4 ? 1 : 9, TREES, &c);
    /* Phases of groups that are not alike end together, in the order of their timers. */
    try_job(864, "unaware", 9, TREES, &c);
    fprintf(stderr, "# %u folded, %u with every rank, %u do not finish; steady: %u\n", c.folded,
            c.whole, c.stuck, c.steady);
    CHECK(c.folded * 4 > c.whole + c.folded); /* or nothing is tested */
}

/* Communication of several streams goes on at once, also with roots and in steps in a row: the chunks of a group are
 * numbered as they come. */
TEST(test_fold__streams_are_exact)
{
    const numbers n = numbers_of(300);
    counts c = {0};
    for (unsigned long long i = n.first; i <= n.last; i++)
        try_job(i, "unaware", i % 4 ? 9 : 1, STREAMS, &c);
    /* Two streams have a group's collectives, in the other order in the second step. */
    try_job(2542, "unaware", 9, STREAMS, &c);
    /* A collective of one rank is over at once, before a message that came in its tick. */
    try_job(100008, "unaware", 1, STREAMS, &c);
    fprintf(stderr, "# %u folded, %u with every rank, %u do not finish; steady: %u\n", c.folded,
            c.whole, c.stuck, c.steady);
    CHECK(c.folded * 8 > c.whole + c.folded); /* or nothing is tested */
}

/* Hundreds of ranks and groups, more than tags can tell apart among them, and messages of up to 1 GiB. */
TEST(test_fold__many_groups_are_exact)
{
    const numbers n = getenv("FOLD_SEEDS") ? numbers_of(8) : (numbers){1, 8}; /* they take long */
    counts c = {0};
    for (unsigned long long i = n.first; i <= n.last; i++)
        try_job(i, i % 4 == 1 ? "fluid" : "unaware", i % 4 == 2 ? 5 : 1, MANY, &c);
    fprintf(stderr, "# %u folded, %u with every rank, %u do not finish; steady: %u\n", c.folded,
            c.whole, c.stuck, c.steady);
    CHECK(c.folded * 4 > c.whole + c.folded); /* or nothing is tested */
}

TEST(test_fold__lock_step_is_exact)
{
    const numbers n = numbers_of(200);
    counts c = {0};
    for (unsigned long long i = n.first; i <= n.last; i++)
        try_one(i, "fluid", 1, &c);
    fprintf(stderr, "# %u folded, %u with every rank, %u do not finish\n", c.folded, c.whole,
            c.stuck);
    CHECK(c.folded * 4 > c.whole + c.folded); /* or nothing is tested */
}

/* Messages delay each other: by symmetry of the network, of dimensions or of links. */
TEST(test_fold__symmetry_is_exact)
{
    const numbers n = numbers_of(400);
    counts c = {0};
    for (unsigned long long i = n.first; i <= n.last; i++)
        try_one(i, i % 3 ? "aware" : "graph", i % 4 ? 1 : 4, &c);
    fprintf(stderr, "# %u folded, %u with every rank, %u do not finish\n", c.folded, c.whole,
            c.stuck);
    CHECK(c.folded * 8 > c.whole + c.folded); /* or nothing is tested */
}

/* Ranks with larger messages and computations than others of their stage, remote memory, a roofline;
 * leaf-spine networks and servers, some with a slow link. */
TEST(test_fold__odd_jobs_are_exact)
{
    static const char *const networks[] = {"unaware", "fluid",   "unaware", "aware",
                                           "graph",   "unaware", "fluid"};
    const numbers n = numbers_of(350);
    counts c = {0};
    for (unsigned long long i = n.first; i <= n.last; i++)
        try_job(i, networks[i % 7], i % 4 ? 1 : 5, ODD, &c);
    fprintf(stderr, "# %u folded, %u with every rank, %u do not finish; steady: %u\n", c.folded,
            c.whole, c.stuck, c.steady);
    CHECK(c.folded * 4 > c.whole + c.folded); /* or nothing is tested */
}

/* The same traces several times in a row: recognised or not, what comes out is what all steps
 * simulated give. */
static void try_steps(const char *network)
{
    const numbers n = numbers_of(150);
    counts c = {0};
    for (unsigned long long i = n.first; i <= n.last; i++)
        try_one(i, network, 9, &c);
    fprintf(stderr, "# %u folded, %u with every rank, %u do not end; steady: %u\n", c.folded,
            c.whole, c.stuck, c.steady);
    CHECK(c.steady * 16 > c.whole + c.folded); /* or nothing is tested */
}

TEST(test_fold__steps_in_a_row_are_exact)
{
    try_steps("unaware");
}

TEST(test_fold__steps_in_a_row_are_exact_in_lock_step)
{
    try_steps("fluid");
}

/* Many ranks, one of which stands for all; nothing else could do this many in the time of a
 * test. */
/* ---- the log of some ranks ---- */

/* Tracks of a rank, in order; how many. */
static uint32_t tracks_of(const orr_timeline_parts *p, uint32_t rank, uint32_t out[64])
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->track_count && n < 64; k++)
        if (p->tracks[k].rank == rank)
            out[n++] = k;
    return n;
}

static bool is_same_span(const orr_timespan *a, const orr_timespan *b, bool is_own)
{
    return a->start == b->start && a->end == b->end && a->kind == b->kind && a->size == b->size &&
           a->members == b->members &&
           (!is_own || (a->id == b->id && ((a->has ^ b->has) & ~ORR_SPAN_HAS_FLOWS) == 0 &&
                        a->peer == b->peer));
}

/* Every rank has the spans of the one that stands for it; that one has its own, with its peers. */
static void compare_rows(uint64_t number, const orr_timeline *some, const orr_timeline *all)
{
    const orr_timeline_parts *a = orr_timeline_view(some), *b = orr_timeline_view(all);
    uint32_t last = 0;
    for (uint32_t k = 0; k < b->track_count; k++)
        last =
            b->tracks[k].rank != ORR_NO_RANK && b->tracks[k].rank > last ? b->tracks[k].rank : last;
    for (uint32_t r = 0; r <= last; r++) {
        const uint32_t shown = orr_timeline_shown(a, r);
        uint32_t mine[64], whole[64];
        const uint32_t n = tracks_of(b, r, whole);
        bool ok = tracks_of(a, shown, mine) == n;
        for (uint32_t k = 0; ok && k < n; k++) {
            const uint32_t from = a->first[mine[k]], to = b->first[whole[k]];
            const uint32_t count = a->first[mine[k] + 1] - from;
            ok = count == b->first[whole[k] + 1] - to;
            for (uint32_t i = 0; ok && i < count; i++)
                ok = is_same_span(&a->spans[a->order[from + i]], &b->spans[b->order[to + i]],
                                  shown == r);
        }
        if (!ok)
            check_fail(__FILE__, __LINE__, "job %llu: the spans of rank %u, as those of rank %u",
                       (unsigned long long)number, r, shown);
    }
}

static void compare_paths(uint64_t number, const orr_sim *some, const orr_sim *all)
{
    orr_critical_path *a, *b;
    CHECK_OK(orr_sim_critical_path(some, &a, &err), &err);
    CHECK_OK(orr_sim_critical_path(all, &b, &err), &err);
    bool ok = a->step_count == b->step_count && a->total == b->total;
    for (size_t i = 0; ok && i < a->step_count; i++) {
        const orr_path_step *x = &a->steps[i], *y = &b->steps[i];
        ok = x->from == y->from && x->to == y->to && x->rank == y->rank && x->node == y->node &&
             x->held == y->held && x->after == y->after && x->held_rank == y->held_rank;
    }
    if (!ok)
        check_fail(__FILE__, __LINE__, "job %llu: the critical path", (unsigned long long)number);
    orr_critical_path_destroy(a);
    orr_critical_path_destroy(b);
}

/* A folded run is asked for some of its ranks only; the same run with every rank simulated has
 * all. */
static bool try_rows(uint64_t number, const char *network)
{
    drawing d = {.state = number * 0x9e3779b97f4a7c15u + 1,
                 .is_joint = strcmp(network, "fluid") == 0};
    below(&d, 2);
    d.apart = !d.is_joint && strcmp(network, "unaware") != 0 ? 90 : 1000;
    d.tp = 1u << below(&d, 3);
    d.dp = 2 + below(&d, 3);
    d.pp = 1 + below(&d, 3);
    d.ranks = d.tp * d.dp * d.pp;
    orr_set *set = draw_set(&d);
    if (d.is_joint)
        draw_ports(&d);
    else
        draw_network(&d);
    orr_sim_options opt = {.system = "sys.json",
                           .network = "net.yml",
                           .fidelity = network,
                           .set = set,
                           .ranks_file = draw_ranks_file(&d),
                           .queues_per_dim = 1,
                           .record = ORR_SIM_RECORD_PHASES};
    orr_sim *folded, *whole;
    orr_timeline *some, *all;
    bool has_alike = false;
    CHECK_OK(orr_sim_create(&opt, &folded, &err), &err);
    opt.fold = ORR_SIM_FOLD_OFF;
    CHECK_OK(orr_sim_create(&opt, &whole, &err), &err);
    if (!orr_sim_run(folded, &err)) {
        CHECK_OK(orr_sim_run(whole, &err), &err);
        compare_paths(number, folded, whole);
        CHECK_OK(orr_sim_timeline_of(folded, NULL, NULL, &some, &err), &err);
        CHECK_OK(orr_sim_timeline(whole, NULL, &all, &err), &err);
        compare_rows(number, some, all);
        has_alike = orr_timeline_view(some)->alike != NULL;
        orr_timeline_destroy(some);
        orr_timeline_destroy(all);
        compare_paths(number, folded, whole); /* the log is written again */
    }
    orr_sim_destroy(folded);
    orr_sim_destroy(whole);
    orr_set_close(set);
    return has_alike;
}

TEST(test_fold__a_log_of_some_ranks_is_exact)
{
    static const char *const networks[] = {"unaware", "fluid", "aware", "graph"};
    unsigned long long first = 1, last = 200;
    const char *asked = getenv("FOLD_SEEDS");
    unsigned alike[4] = {0};
    if (asked)
        CHECK(sscanf(asked, "%llu-%llu", &first, &last) == 2);
    for (unsigned long long i = first; i <= last; i++)
        alike[i % 4] += try_rows(i, networks[i % 4]);
    fprintf(stderr,
            "# with ranks that stand for others: %u unaware, %u fluid, %u aware, %u graph\n",
            alike[0], alike[1], alike[2], alike[3]);
    CHECK(asked || (alike[0] && alike[1] && alike[2])); /* or nothing is tested */
}

/* ---- threads ---- */

static void write_all(orr_sim *s, orr_code code, uint32_t threads, bool has_links)
{
    char path[64];
    snprintf(path, sizeof path, "threads%u.json", threads);
    CHECK_OK(orr_sim_write_json(s, path, &err), &err);
    snprintf(path, sizeof path, "threads%u.csv", threads);
    if (!code)
        CHECK_OK(orr_sim_write_csv(s, false, path, &err), &err);
    else
        write_text(path, "");
    snprintf(path, sizeof path, "threads%u.links", threads);
    if (has_links)
        CHECK_OK(orr_sim_write_links(s, path, &err), &err);
    else
        write_text(path, "");
}

static void compare_files(uint64_t number, const char *ending, uint32_t threads)
{
    char a[64], b[64];
    snprintf(a, sizeof a, "threads1.%s", ending);
    snprintf(b, sizeof b, "threads%u.%s", threads, ending);
    orr_buf x = read_file(a), y = read_file(b);
    if (x.len != y.len || (x.len && memcmp(x.ptr, y.ptr, x.len) != 0))
        check_fail(__FILE__, __LINE__, "job %llu: %s differs with %u threads",
                   (unsigned long long)number, ending, threads);
    orr_buf_fini(&x);
    orr_buf_fini(&y);
}

/* Ranks on several threads: the same bytes, also where nearly everything happens in one tick.
 * True: there were threads. */
static bool try_threads(const char *network, uint64_t number)
{
    drawing d = {.state = number * 0x9e3779b97f4a7c15u + 1, .apart = 1000};
    below(&d, 2);
    d.is_late = number % 16 == 0;
    d.tp = 1u << below(&d, 3);
    d.dp = 1 + below(&d, 4);
    d.pp = 1 + below(&d, 3);
    d.ranks = d.tp * d.dp * d.pp;
    if (d.ranks < 2)
        d.ranks = d.tp = 2;
    orr_set *set = draw_set(&d);
    draw_network(&d);
    orr_sim_options opt = {.system = "sys.json",
                           .network = "net.yml",
                           .fidelity = network,
                           .set = set,
                           .ranks_file = draw_ranks_file(&d),
                           .queues_per_dim = chance(&d, 20) ? 2 : 1,
                           .most_trails = chance(&d, 50) ? 20 : 0,
                           .wants_links = strcmp(network, "unaware") != 0,
                           .fold = ORR_SIM_FOLD_OFF};
    if (number % 2)
        opt.record = ORR_SIM_RECORD_PHASES;
    bool has_threads = false;
    orr_sim *one = NULL;
    orr_error why = {0};
    orr_code wanted = ORR_OK;
    for (uint32_t t = 1; t <= 8; t += t < 4 ? 1 : 4) {
        orr_sim *s;
        opt.threads = t;
        if (getenv("FOLD_KEEP")) {
            char kept[400];
            snprintf(kept, sizeof kept, "%s/job.orr", getenv("FOLD_KEEP"));
            CHECK_OK(orr_set_save(set, kept, NULL, &err), &err);
        }
        CHECK_OK(orr_sim_create(&opt, &s, &err), &err);
        const orr_code code = orr_sim_run(s, &err);
        const orr_error said = err;
        write_all(s, code, t, opt.wants_links);
        if (t == 1) {
            one = s;
            wanted = code;
            why = said;
            continue;
        }
        has_threads = has_threads || orr_sim_threads(s) > 1;
        if (code != wanted || (code && strcmp(said.message, why.message) != 0))
            check_fail(__FILE__, __LINE__, "job %llu: %s with %u threads",
                       (unsigned long long)number, code ? said.message : "it finishes", t);
        compare_files(number, "json", t);
        compare_files(number, "csv", t);
        compare_files(number, "links", t);
        if (orr_sim_events(s) != orr_sim_events(one))
            check_fail(__FILE__, __LINE__, "job %llu: %llu events instead of %llu",
                       (unsigned long long)number, (unsigned long long)orr_sim_events(s),
                       (unsigned long long)orr_sim_events(one));
        if (!code && opt.record) {
            orr_timeline *some, *all;
            compare_paths(number, s, one);
            CHECK_OK(orr_sim_timeline(s, NULL, &some, &err), &err);
            CHECK_OK(orr_sim_timeline(one, NULL, &all, &err), &err);
            compare_rows(number, some, all);
            orr_timeline_destroy(some);
            orr_timeline_destroy(all);
        }
        orr_sim_destroy(s);
    }
    orr_sim_destroy(one);
    orr_set_close(set);
    return has_threads;
}

TEST(test_fold__threads_give_the_same)
{
    unsigned long long first = 1, last = 120;
    const char *asked = getenv("FOLD_SEEDS");
    unsigned with = 0;
    if (asked)
        CHECK(sscanf(asked, "%llu-%llu", &first, &last) == 2);
    for (unsigned long long i = first; i <= last; i++)
        with += try_threads("unaware", i);
    with += try_threads("unaware", 500749); /* two kinds of collectives are the fastest */
    fprintf(stderr, "# %u with threads\n", with);
    CHECK(with * 3 > last - first); /* or nothing is tested */
}

/* Links that delay messages, each served by one of the threads: what they carried is compared as
 * well. */
TEST(test_fold__threads_give_the_same_on_links)
{
    unsigned long long first = 1, last = 60;
    const char *asked = getenv("FOLD_SEEDS");
    unsigned with = 0;
    if (asked)
        CHECK(sscanf(asked, "%llu-%llu", &first, &last) == 2);
    for (unsigned long long i = first; i <= last; i++)
        with += try_threads(i % 2 ? "aware" : "graph", i + 500000);
    fprintf(stderr, "# %u with threads\n", with);
    CHECK(with * 3 > last - first); /* or nothing is tested */
}

TEST(test_fold__the_time_does_not_grow_with_ranks)
{
    orr_trace *t;
    orr_set *set;
    orr_sim *s;
    unsetenv("FOLD_SEEDS");
    const orr_attr attrs[] = {int_attr("comm_type", ORR_COLL_ALL_REDUCE),
                              int_attr("comm_size", 1 << 30)};
    const orr_draft draft = {.id = 1,
                             .name = orr_str_of("a"),
                             .type = ORR_NODE_COMM_COLL,
                             .attrs = attrs,
                             .attr_count = 2};
    CHECK_OK(orr_trace_create(&(orr_meta){.version = orr_str_of("1.0.0")}, &t, &err), &err);
    CHECK_OK(orr_trace_append(t, &draft, &err), &err);
    CHECK_OK(orr_trace_seal(t, &err), &err);
    CHECK_OK(orr_set_create(&set, &err), &err);
    CHECK_OK(orr_set_add(set, t, &err), &err);
    for (int r = 1; r < 16384; r++)
        CHECK_OK(orr_set_add_rank(set, 0, 0, &err), &err);
    write_text("net.yml",
               "topology: [Switch]\nnpus_count: [16384]\nbandwidth: [50]\nlatency: [500]\n");
    write_text(
        "sys.json",
        "{\"scheduling-policy\":\"LIFO\",\"local-mem-bw\":1600,\"preferred-dataset-splits\":1,"
        "\"endpoint-delay\":10,\"all-reduce-implementation\":[\"ring\"]}");
    const orr_sim_options opt = {
        .system = "sys.json", .network = "net.yml", .fidelity = "unaware", .set = set};
    CHECK_OK(orr_sim_create(&opt, &s, &err), &err);
    CHECK_OK(orr_sim_run(s, &err), &err);
    CHECK_EQ_U(orr_sim_simulated(s), 1);
    CHECK_EQ_U(orr_sim_messages(s), 2ull * 16383 * 16384);
    /* 65,536 bytes take 1000 + 65536 / 53.687 = 2220 ns, a reduction 3 x 40; 10 ns at each end. */
    CHECK_EQ_U(orr_sim_rank(s, 16383)->finished_at,
               10 + 2ull * 16383 * (2220 + 10) + 16383 * 3 * 40);
    orr_sim_destroy(s);
    orr_set_close(set);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_fold__a_folded_run_is_exact),
        RUN(test_fold__classes_become_one_again),
        RUN(test_fold__trees_are_exact),
        RUN(test_fold__streams_are_exact),
        RUN(test_fold__many_groups_are_exact),
        RUN(test_fold__odd_jobs_are_exact),
        RUN(test_fold__lock_step_is_exact),
        RUN(test_fold__steps_in_a_row_are_exact),
        RUN(test_fold__steps_in_a_row_are_exact_in_lock_step),
        RUN(test_fold__symmetry_is_exact),
        RUN(test_fold__a_log_of_some_ranks_is_exact),
        RUN(test_fold__threads_give_the_same),
        RUN(test_fold__threads_give_the_same_on_links),
        RUN(test_fold__the_time_does_not_grow_with_ranks),
    };
    if (getenv("FOLD_ONLY"))
        cmocka_set_test_filter(getenv("FOLD_ONLY"));
    return RUN_ALL(tests);
}
