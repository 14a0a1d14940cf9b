/* SPDX-License-Identifier: Apache-2.0 */
/* patterns.c - the table of patterns, and from a row of it to a trace or a set of traces.
 *
 * A pattern is a name, a line of help, the options it looks at, and a function that adds one rank's nodes.
 * Cost of a set: one trace when the ranks are alike, whatever their number; else one a rank. */
#include "patterns_impl.h"

#include "base/memory/memory.h"

#include <inttypes.h>
#include <stdio.h>

/* Defaults of Chakra's generators, which most patterns share. */
#define SAMPLE .ranks = 1, .runtime_us = 5, .tensor_size = 1024, .comm_size = 65536

static const orr_pattern table[] = {
    {.name = "one_comp_node",
     .old_name = "oneCompNode",
     .help = "one compute node",
     .uses = ORR_GEN_RUNTIME,
     .defaults = {SAMPLE},
     .build = pat_build_one_comp},
    {.name = "two_comp_nodes_independent",
     .old_name = "twoCompNodesIndependent",
     .help = "two compute nodes that may run together",
     .uses = ORR_GEN_RUNTIME,
     .defaults = {SAMPLE},
     .build = pat_build_two_comp_independent},
    {.name = "two_comp_nodes_dependent",
     .old_name = "twoCompNodesDependent",
     .help = "two compute nodes, one after the other",
     .uses = ORR_GEN_RUNTIME,
     .defaults = {SAMPLE},
     .build = pat_build_two_comp_dependent},
    {.name = "one_metadata_node_all_types",
     .old_name = "one_metadata_node_all_types",
     .help = "a metadata node, an attribute of every kind",
     .defaults = {SAMPLE},
     .build = pat_build_metadata_all_types},
    {.name = "one_remote_mem_load_node",
     .old_name = "one_remote_mem_load_node",
     .help = "one load from memory",
     .uses = ORR_GEN_TENSOR_SIZE,
     .defaults = {SAMPLE},
     .build = pat_build_mem_load},
    {.name = "one_remote_mem_store_node",
     .old_name = "one_remote_mem_store_node",
     .help = "one store to memory",
     .uses = ORR_GEN_TENSOR_SIZE,
     .defaults = {SAMPLE},
     .build = pat_build_mem_store},
    {.name = "all_reduce",
     .old_name = "ALL_REDUCE",
     .help = "one all-reduce",
     .uses = ORR_GEN_COMM_SIZE | ORR_GEN_DIMS,
     .defaults = {SAMPLE},
     .build = pat_build_all_reduce},
    {.name = "all_to_all",
     .old_name = "ALL_TO_ALL",
     .help = "one all-to-all",
     .uses = ORR_GEN_COMM_SIZE | ORR_GEN_DIMS,
     .defaults = {SAMPLE},
     .build = pat_build_all_to_all},
    {.name = "all_gather",
     .old_name = "ALL_GATHER",
     .help = "one all-gather",
     .uses = ORR_GEN_COMM_SIZE | ORR_GEN_DIMS,
     .defaults = {SAMPLE},
     .build = pat_build_all_gather},
    {.name = "reduce_scatter",
     .old_name = "REDUCE_SCATTER",
     .help = "one reduce-scatter",
     .uses = ORR_GEN_COMM_SIZE | ORR_GEN_DIMS,
     .defaults = {SAMPLE},
     .build = pat_build_reduce_scatter},
    {.name = "broadcast",
     .old_name = "BROADCAST",
     .help = "one broadcast",
     .uses = ORR_GEN_COMM_SIZE | ORR_GEN_DIMS,
     .defaults = {SAMPLE},
     .build = pat_build_broadcast},
    {.name = "barrier",
     .old_name = "BARRIER",
     .help = "one barrier: a collective without data",
     .uses = ORR_GEN_DIMS,
     .defaults = {SAMPLE},
     .build = pat_build_barrier},
    {.name = "one_comm_send_node",
     .old_name = "one_comm_send_node",
     .help = "one send that names no peer (for readers only)",
     .uses = ORR_GEN_TENSOR_SIZE,
     .defaults = {SAMPLE},
     .build = pat_build_send},
    {.name = "one_comm_recv_node",
     .old_name = "one_comm_recv_node",
     .help = "one receive that names no peer (for readers only)",
     .uses = ORR_GEN_TENSOR_SIZE,
     .defaults = {SAMPLE},
     .build = pat_build_recv},
    {.name = "send_recv_ring",
     .old_name = "commNodesSingleSendSingleRecv",
     .help = "each rank sends to the next one, in a ring",
     .uses = ORR_GEN_COMM_SIZE,
     .ranks_differ = true,
     .defaults = {SAMPLE},
     .build = pat_build_send_recv_ring},
    {.name = "invalid_node_last",
     .old_name = "invalidNodeCase1",
     .help = "compute, then an INVALID node",
     .uses = ORR_GEN_RUNTIME,
     .defaults = {SAMPLE},
     .build = pat_build_invalid_last},
    {.name = "invalid_node_between",
     .old_name = "invalidNodeCase2",
     .help = "compute, then an INVALID node, then compute",
     .uses = ORR_GEN_RUNTIME,
     .defaults = {SAMPLE},
     .build = pat_build_invalid_between},
    {.name = "invalid_node_first",
     .old_name = "invalidNodeCase3",
     .help = "an INVALID node, then compute",
     .uses = ORR_GEN_RUNTIME,
     .defaults = {SAMPLE},
     .build = pat_build_invalid_first},
    {.name = "invalid_node_fork",
     .old_name = "invalidNodeCase4",
     .help = "an INVALID node, then two compute nodes",
     .uses = ORR_GEN_RUNTIME,
     .defaults = {SAMPLE},
     .build = pat_build_invalid_fork},
    {.name = "three_layer_data_parallel",
     .old_name = "threeLayerDataParallel",
     .help = "three layers, communication overlapped",
     .uses = ORR_GEN_RUNTIME | ORR_GEN_COMM_SIZE | ORR_GEN_DIMS,
     .defaults = {SAMPLE},
     .build = pat_build_three_layers},
    {.name = "three_layer_sequential",
     .old_name = "threeLayerDataParallelSequentiallyDependent",
     .help = "three layers, each node after the one before",
     .uses = ORR_GEN_RUNTIME | ORR_GEN_COMM_SIZE | ORR_GEN_DIMS,
     .defaults = {SAMPLE},
     .build = pat_build_three_layers_in_sequence},
    {.name = "compare_data_parallel",
     .old_name = "parallelismComparisonDataParallel",
     .help = "one layer a rank, the batch shared out",
     .uses = ORR_GEN_LAYERS | ORR_GEN_DIMS,
     .defaults = {SAMPLE},
     .build = pat_build_compare_data},
    {.name = "compare_model_parallel",
     .old_name = "parallelismComparisonModelParallel",
     .help = "one layer a rank, each layer shared out",
     .uses = ORR_GEN_LAYERS | ORR_GEN_DIMS,
     .defaults = {SAMPLE},
     .build = pat_build_compare_model},
    {.name = "compare_pipeline_parallel",
     .old_name = "parallelismComparisonPipelineParallel",
     .help = "one layer a rank, the batch passed on in pieces",
     .uses = ORR_GEN_MICROBATCHES,
     .min_ranks = 2,
     .ranks_differ = true,
     .defaults = {.ranks = 4, .microbatches = 64},
     .build = pat_build_compare_pipeline},
    {.name = "data_parallel",
     .help = "a training step with all-reduces in buckets",
     .uses = ORR_GEN_RUNTIME | ORR_GEN_TENSOR_SIZE | ORR_GEN_COMM_SIZE | ORR_GEN_LAYERS |
             ORR_GEN_BUCKET,
     .defaults = {.ranks = 16,
                  .runtime_us = 2000,
                  .tensor_size = 33554432,
                  .comm_size = 100663296,
                  .layers = 12,
                  .bucket = 3},
     .build = pat_build_data_parallel},
    {.name = "layered",
     .help = "a large random graph in the shape of a real trace",
     .uses = ORR_GEN_NODES | ORR_GEN_WIDTH | ORR_GEN_SEED,
     .defaults = {.ranks = 1, .nodes = 1000, .width = 64, .seed = 1},
     .build = pat_build_layered},
};

enum { PATTERNS = sizeof table / sizeof *table };

const orr_pattern *orr_pattern_at(size_t index)
{
    return index < PATTERNS ? &table[index] : NULL;
}

const orr_pattern *orr_pattern_find(const char *name)
{
    for (size_t i = 0; i < PATTERNS; i++) {
        const orr_pattern *p = &table[i];
        if (strcmp(p->name, name) == 0 || (p->old_name && strcmp(p->old_name, name) == 0))
            return p;
    }
    return NULL;
}

/* ---- are the options possible? ---- */

/* What an option is called, where it lies and what it may be: `min` to `max`, both included. */
typedef struct option_row {
    uint32_t bit;
    const char *name;
    size_t at;
    uint64_t min, max;
} option_row;

/* Ranks and nodes are bounded so that a slip of the finger fails with words and not with the memory. */
enum { RANKS_MAX = 1 << 20 };

#define AT(field) offsetof(orr_gen_options, field)
static const option_row rows[] = {
    {ORR_GEN_DIMS, "dims", AT(dims), 0, PAT_DIMS_MAX},
    {ORR_GEN_RUNTIME, "runtime", AT(runtime_us), 0, UINT64_MAX},
    {ORR_GEN_TENSOR_SIZE, "tensor-size", AT(tensor_size), 0, UINT64_MAX},
    {ORR_GEN_COMM_SIZE, "comm-size", AT(comm_size), 0, INT64_MAX},
    {ORR_GEN_LAYERS, "layers", AT(layers), 0, 1 << 20},
    {ORR_GEN_MICROBATCHES, "microbatches", AT(microbatches), 1, 512}, /* the batch is 512 */
    {ORR_GEN_BUCKET, "bucket", AT(bucket), 1, 1 << 20},
    {ORR_GEN_NODES, "nodes", AT(nodes), 1, UINT32_MAX - 1},
    {ORR_GEN_WIDTH, "width", AT(width), 1, 1 << 24},
    {ORR_GEN_SEED, "seed", AT(seed), 0, UINT64_MAX},
};

static uint64_t value_of(const orr_gen_options *opt, const option_row *row)
{
    uint64_t v;
    memcpy(&v, (const char *)opt + row->at, sizeof v);
    return v;
}

static orr_code check_options(const orr_pattern *p, const orr_gen_options *opt, orr_error *err)
{
    /* The first generation's program did not mind a pipeline of one rank. */
    const uint32_t min_ranks = p->min_ranks && opt->style != ORR_GEN_EG ? p->min_ranks : 1;
    if (opt->ranks < min_ranks || opt->ranks > RANKS_MAX)
        return orr_fail(err, ORR_EUSAGE, NULL, "%s: ranks is %u; it goes from %u to %d", p->name,
                        opt->ranks, min_ranks, RANKS_MAX);
    if (opt->style == ORR_GEN_EG && (p->uses & ORR_GEN_COMM_SIZE) && opt->comm_size > UINT32_MAX)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "%s: comm-size is %" PRIu64 "; the schema eg has 32 bits for it", p->name,
                        opt->comm_size);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint64_t v = value_of(opt, &rows[i]);
        if ((p->uses & rows[i].bit) && (v < rows[i].min || v > rows[i].max))
            return orr_fail(err, ORR_EUSAGE, NULL,
                            "%s: %s is %" PRIu64 "; it goes from %" PRIu64 " to %" PRIu64, p->name,
                            rows[i].name, v, rows[i].min, rows[i].max);
    }
    return ORR_OK;
}

/* ---- traces ---- */

/* Ours say how they were made; the imitated ones carry what their originals carry. */
static void describe(const orr_pattern *p, const orr_gen_options *opt, char *out, size_t size)
{
    int len = snprintf(out, size, "orrery gen %s --ranks %u", p->name, opt->ranks);
    for (size_t i = 0; i < sizeof rows / sizeof *rows && len > 0 && (size_t)len < size; i++) {
        if (p->uses & rows[i].bit)
            len += snprintf(out + len, size - (size_t)len, " --%s %" PRIu64, rows[i].name,
                            value_of(opt, &rows[i]));
    }
}

static void create_trace(const orr_pattern *p, const orr_gen_options *opt, orr__builder *b)
{
    char words[400];
    if (opt->style != ORR_GEN_EG && !p->old_name) {
        describe(p, opt, words, sizeof words);
        orr__put_text(b, ORR__ATTR_GENERATOR, orr_str_of(words));
    }
    orr__build_trace(b, opt->style == ORR_GEN_EG      ? NULL
                        : opt->style == ORR_GEN_0_0_4 ? "0.0.4"
                                                      : "1.0.0");
}

orr_code orr_pattern_trace(const orr_pattern *p,
                           const orr_gen_options *opt,
                           uint32_t rank,
                           orr_trace **out,
                           orr_error *err)
{
    orr_gen g = {.opt = opt, .rank = rank};
    *out = NULL;
    orr_code code = check_options(p, opt, err);
    if (!code && rank >= opt->ranks)
        code = orr_fail(err, ORR_EUSAGE, NULL, "%s: there is no rank %u among %u", p->name, rank,
                        opt->ranks);
    if (code)
        return code;
    orr__build_open(&g.b, err);
    create_trace(p, opt, &g.b);
    p->build(&g);
    return orr__build_seal(&g.b, out);
}

static orr_code add_rank(
    const orr_pattern *p, const orr_gen_options *opt, uint32_t rank, orr_set *set, orr_error *err)
{
    orr_trace *t;
    if (rank > 0 && !p->ranks_differ)
        return orr_set_add_like(set, 0, 0, err);
    const orr_code code = orr_pattern_trace(p, opt, rank, &t, err);
    return code ? code : orr_set_add(set, t, err);
}

orr_code orr_pattern_set(const orr_pattern *p,
                         const orr_gen_options *opt,
                         orr_set **out,
                         orr_error *err)
{
    *out = NULL;
    orr_set *set;
    orr_code code = check_options(p, opt, err);
    if (code || (code = orr_set_create(&set, err)))
        return code;
    for (uint32_t rank = 0; rank < opt->ranks && !code; rank++)
        code = add_rank(p, opt, rank, set, err);
    if (code) {
        orr_set_close(set);
        return code;
    }
    *out = set;
    return ORR_OK;
}
