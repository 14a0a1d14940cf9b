/* SPDX-License-Identifier: Apache-2.0 */
/* patterns_impl.h - how patterns are written down: nodes added one after the other, each after others.
 *
 *     const uint64_t fwd = pat_comp(g, "FWD", 5, NOTHING);
 *     const uint64_t bwd = pat_comp(g, "BWD", 5, AFTER(fwd));
 *     pat_collective(g, "GRAD", ORR_COLL_ALL_REDUCE, 65536, AFTER(fwd, bwd));
 *
 * Ids count up from 0.  The first failure sticks and turns all later calls into nothing, so a pattern reads
 * as a list of nodes; orr_pattern_trace asks once at the end. */
#ifndef ORR_PATTERNS_IMPL_H
#define ORR_PATTERNS_IMPL_H

#include <orrery/lab/gen.h>

#include "trace/builder.h"

struct orr_gen {
    const orr_gen_options *opt;
    uint32_t rank;
    orr__builder b;
};

typedef struct pat_after {
    const uint64_t *ids;
    size_t count;
} pat_after;

#define NOTHING ((pat_after){NULL, 0})
#define AFTER(...)                                \
    ((pat_after){(const uint64_t[]){__VA_ARGS__}, \
                 sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)})

enum { PAT_NAME_MAX = 64, PAT_DIMS_MAX = 64 };

/* Begins a node, to be ended by orr__build_add. */
orr__builder *pat_begin(orr_gen *g, orr_node_type type, const char *name, pat_after after);
/* All return the new node's id. */
uint64_t pat_invalid(orr_gen *g, pat_after after);
uint64_t pat_comp(orr_gen *g, const char *name, uint64_t runtime_us, pat_after after);
/* A node that carries tensor_size: memory, or a send or receive without peer. */
uint64_t pat_tensor(orr_gen *g, orr_node_type type);
uint64_t pat_collective(
    orr_gen *g, const char *name, orr_collective kind, uint64_t size, pat_after after);

typedef struct pat_transfer {
    orr_node_type type; /* COMM_SEND or COMM_RECV */
    const char *name;
    uint32_t src, dst, tag;
    uint64_t size;
} pat_transfer;
uint64_t pat_message(orr_gen *g, const pat_transfer *m, pat_after after);

/* The patterns, by file. */
void pat_build_metadata_all_types(orr_gen *g);
void pat_build_mem_load(orr_gen *g);
void pat_build_mem_store(orr_gen *g);
void pat_build_send(orr_gen *g);
void pat_build_recv(orr_gen *g);
void pat_build_one_comp(orr_gen *g);
void pat_build_two_comp_independent(orr_gen *g);
void pat_build_two_comp_dependent(orr_gen *g);
void pat_build_all_reduce(orr_gen *g);
void pat_build_all_to_all(orr_gen *g);
void pat_build_all_gather(orr_gen *g);
void pat_build_reduce_scatter(orr_gen *g);
void pat_build_broadcast(orr_gen *g);
void pat_build_barrier(orr_gen *g);
void pat_build_send_recv_ring(orr_gen *g);
void pat_build_invalid_last(orr_gen *g);
void pat_build_invalid_between(orr_gen *g);
void pat_build_invalid_first(orr_gen *g);
void pat_build_invalid_fork(orr_gen *g);

void pat_build_three_layers(orr_gen *g);
void pat_build_three_layers_in_sequence(orr_gen *g);
void pat_build_compare_data(orr_gen *g);
void pat_build_compare_model(orr_gen *g);
void pat_build_compare_pipeline(orr_gen *g);
void pat_build_data_parallel(orr_gen *g);

void pat_build_layered(orr_gen *g);

#endif
