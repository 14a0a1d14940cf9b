/* SPDX-License-Identifier: Apache-2.0 */
/* chakra_samples.c - the samples of Chakra's own generators: file names, contents and node ids.
 *
 * The Python generators keep counting node ids across samples and ranks; the first one, in C++,
 * starts every file at 0 (chakra.md 5).  Equal ranks are generated once and written with shifted
 * ids. */
#include <orrery/lab/gen.h>

#include "base/memory/memory.h"

typedef struct sample {
    const char *file; /* NAME.<rank>.et */
    const char *pattern;
    uint64_t comm_size; /* 0: from the options */
} sample;

static const sample current[] = {
    {"one_metadata_node_all_types", "one_metadata_node_all_types"},
    {"one_remote_mem_load_node", "one_remote_mem_load_node"},
    {"one_remote_mem_store_node", "one_remote_mem_store_node"},
    {"one_comp_node", "one_comp_node"},
    {"two_comp_nodes_independent", "two_comp_nodes_independent"},
    {"two_comp_nodes_dependent", "two_comp_nodes_dependent"},
    {"ALL_REDUCE", "all_reduce"},
    {"ALL_TO_ALL", "all_to_all"},
    {"ALL_GATHER", "all_gather"},
    {"REDUCE_SCATTER", "reduce_scatter"},
    {"BROADCAST", "broadcast"},
    {"BARRIER", "barrier"},
    {"one_comm_send_node", "one_comm_send_node"},
    {"one_comm_recv_node", "one_comm_recv_node"},
    {NULL},
};

static const sample with_dims[] = {
    {"one_metadata_node_all_types", "one_metadata_node_all_types"},
    {"one_remote_mem_load_node", "one_remote_mem_load_node"},
    {"one_remote_mem_store_node", "one_remote_mem_store_node"},
    {"one_comp_node", "one_comp_node"},
    {"two_comp_nodes_independent", "two_comp_nodes_independent"},
    {"two_comp_nodes_dependent", "two_comp_nodes_dependent"},
    {"one_comm_coll_node_allreduce", "all_reduce"},
    {"one_comm_coll_node_alltoall", "all_to_all"},
    {"one_comm_coll_node_allgather", "all_gather"},
    {"one_comm_coll_node_reducescatter", "reduce_scatter"},
    {NULL},
};

static const sample first_ones[] = {
    {"oneCompNode", "one_comp_node"},
    {"twoCompNodesIndependent", "two_comp_nodes_independent"},
    {"twoCompNodesDependent", "two_comp_nodes_dependent"},
    {"oneCommNodeAllReduce", "all_reduce"},
    {"oneCommNodeAllToAll", "all_to_all"},
    {"oneCommNodeAllGather", "all_gather"},
    {"oneCommNodeReduceScatter", "reduce_scatter"},
    {"commNodesSingleSendSingleRecv.64", "send_recv_ring", 64},
    {"commNodesSingleSendSingleRecv.128", "send_recv_ring", 128},
    {"commNodesSingleSendSingleRecv.256", "send_recv_ring", 256},
    {"commNodesSingleSendSingleRecv.512", "send_recv_ring", 512},
    {"commNodesSingleSendSingleRecv.1024", "send_recv_ring", 1024},
    {"commNodesSingleSendSingleRecv.2048", "send_recv_ring", 2048},
    {"commNodesSingleSendSingleRecv.4096", "send_recv_ring", 4096},
    {"commNodesSingleSendSingleRecv.8192", "send_recv_ring", 8192},
    {"commNodesSingleSendSingleRecv.16384", "send_recv_ring", 16384},
    {"commNodesSingleSendSingleRecv.32768", "send_recv_ring", 32768},
    {"commNodesSingleSendSingleRecv.65536", "send_recv_ring", 65536},
    {"invalidNodeCase1", "invalid_node_last"},
    {"invalidNodeCase2", "invalid_node_between"},
    {"invalidNodeCase3", "invalid_node_first"},
    {"invalidNodeCase4", "invalid_node_fork"},
    {"threeLayerDataParallel", "three_layer_data_parallel"},
    {"threeLayerDataParallelSequentiallyDependent", "three_layer_sequential"},
    {"parallelismComparisonDataParallel", "compare_data_parallel"},
    {"parallelismComparisonModelParallel", "compare_model_parallel"},
    {"parallelismComparisonPipelineParallel", "compare_pipeline_parallel"},
    {NULL},
};

static const sample *const samples[] = {
    [ORR_GEN_CURRENT] = current,
    [ORR_GEN_0_0_4] = with_dims,
    [ORR_GEN_EG] = first_ones,
};

/* One run: options, destination, and the node ids used so far. */
typedef struct run {
    orr_gen_options opt;
    const char *folder;
    uint64_t next_id;
    bool is_early;    /* ids start at 0 in every file */
    orr_arena *names; /* reset after each file */
    orr_error *err;
} run;

static orr_code write_rank(run *r, const sample *s, uint32_t rank, const orr_trace *t)
{
    const bool is_eg = r->opt.style == ORR_GEN_EG;
    orr_arena_reset(r->names);
    const char *path =
        orr_arena_print(r->names, "%s/%s.%u.%s", r->folder, s->file, rank, is_eg ? "eg" : "et");
    if (!path)
        return orr_no_memory(r->err);
    const orr_write_options opt = {.size = sizeof opt,
                                   .schema = is_eg ? ORR_SCHEMA_EG : ORR_SCHEMA_CURRENT,
                                   .id_shift = r->is_early ? 0 : r->next_id};
    r->next_id += orr_trace_columns(t)->count;
    return orr_trace_write(t, path, &opt, r->err);
}

static orr_code write_sample(run *r, const sample *s)
{
    const orr_pattern *p = orr_pattern_find(s->pattern);
    orr_gen_options opt = r->opt;
    opt.layers = 0;
    opt.microbatches = p->defaults.microbatches;
    if (s->comm_size)
        opt.comm_size = s->comm_size;
    orr_trace *t = NULL;
    orr_code code = ORR_OK;
    for (uint32_t rank = 0; rank < opt.ranks && !code; rank++) {
        if (!t || p->ranks_differ) {
            orr_trace_destroy(t);
            code = orr_pattern_trace(p, &opt, rank, &t, r->err);
        }
        if (!code)
            code = write_rank(r, s, rank, t);
    }
    orr_trace_destroy(t);
    return code;
}

orr_code orr_gen_write_samples(const orr_gen_options *opt, const char *folder, orr_error *err)
{
    run r = {.opt = *opt,
             .folder = folder,
             .is_early = opt->style == ORR_GEN_EG,
             .names = orr_arena_create(),
             .err = err};
    orr_code code = r.names ? ORR_OK : orr_no_memory(err);
    for (const sample *s = samples[opt->style]; s->file && !code; s++)
        code = write_sample(&r, s);
    r.is_early |= opt->has_early_names;
    for (const sample *s = first_ones; opt->has_early_names && s->file && !code; s++)
        if (opt->ranks >= orr_pattern_find(s->pattern)->min_ranks)
            code = write_sample(&r, s);
    orr_arena_destroy(r.names);
    return code;
}
