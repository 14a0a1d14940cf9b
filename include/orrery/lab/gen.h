/* SPDX-License-Identifier: Apache-2.0 */
/* gen.h - small synthetic traces: one compute node, one all-reduce, a training step, a large random
 * graph.
 *
 *     const orr_pattern *p = orr_pattern_find("data_parallel");
 *     orr_gen_options opt = p->defaults;
 *     opt.ranks = 16;
 *     orr_set *set;
 *     if (orr_pattern_set(p, &opt, &set, &err)) return report(&err);
 *     orr_set_save(set, "step.orr", NULL, &err);
 *     orr_set_close(set);
 *
 * The same options give the same bytes, on every machine.  Ranks of a pattern whose traces are
 * alike are made once and cost a table entry each, so 32,768 ranks of an all-reduce cost hardly
 * more than one. */
#ifndef ORRERY_LAB_GEN_H
#define ORRERY_LAB_GEN_H

#include <orrery/set.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whose nodes to imitate: node attributes have changed over the years (docs/format/et.md).  Ours
 * are those of the current generator; the others serve the names of its predecessors. */
typedef enum orr_gen_style {
    ORR_GEN_CURRENT = 0, /* version 1.0.0: is_cpu_op everywhere, comm_size signed */
    ORR_GEN_0_0_4,       /* 2023-11 to 2024-02: involved_dim, comm_size unsigned */
    ORR_GEN_EG           /* 2023-01 to 2023-07: no metadata; to be written with ORR_SCHEMA_EG */
} orr_gen_style;

/* Start from a pattern's defaults and change what matters.  A pattern reads only the options in its
 * `uses`; the others are ignored. */
typedef struct orr_gen_options {
    orr_gen_style style;
    uint32_t ranks;        /* number of ranks */
    uint64_t dims;         /* network dimensions named by involved_dim; 0: no such attribute */
    uint64_t runtime_us;   /* of a compute node */
    uint64_t tensor_size;  /* bytes of a memory node, or of a send or receive without peer */
    uint64_t comm_size;    /* bytes of a collective or a message */
    uint64_t layers;       /* of a network; 0: one per rank */
    uint64_t microbatches; /* micro-batches in a pipeline */
    uint64_t bucket;       /* layers whose gradients are reduced together */
    uint64_t nodes;        /* of a random graph */
    uint64_t width;        /* nodes that may run at the same time */
    uint64_t seed;
    bool has_early_names; /* samples: also those of June 2023, under their names */
} orr_gen_options;

/* Bits of orr_pattern.uses, in the order of the fields above. */
enum {
    ORR_GEN_DIMS = 1 << 0,
    ORR_GEN_RUNTIME = 1 << 1,
    ORR_GEN_TENSOR_SIZE = 1 << 2,
    ORR_GEN_COMM_SIZE = 1 << 3,
    ORR_GEN_LAYERS = 1 << 4,
    ORR_GEN_MICROBATCHES = 1 << 5,
    ORR_GEN_BUCKET = 1 << 6,
    ORR_GEN_NODES = 1 << 7,
    ORR_GEN_WIDTH = 1 << 8,
    ORR_GEN_SEED = 1 << 9
};

typedef struct orr_gen orr_gen; /* a trace being made; src/sources/patterns */

typedef struct orr_pattern {
    const char *name;
    const char *old_name; /* its name in Chakra's generators; NULL: it is ours */
    const char *help;     /* one line */
    uint32_t uses;
    uint32_t min_ranks;
    bool ranks_differ; /* peers are named by number, so no two ranks are equal */
    orr_gen_options defaults;
    void (*build)(orr_gen *g); /* add the nodes of one rank */
    int what;                  /* for build: a node type or a collective */
} orr_pattern;

/* The table, in reading order; NULL past the last. */
ORR_API const orr_pattern *orr_pattern_at(size_t index);
/* By name or old name; NULL: there is none. */
ORR_API const orr_pattern *orr_pattern_find(const char *name);

/* The trace of one rank; its ids start at 0. */
ORR_API orr_code orr_pattern_trace(const orr_pattern *p,
                                   const orr_gen_options *opt,
                                   uint32_t rank,
                                   orr_trace **out,
                                   orr_error *err) ORR_MUST_CHECK;
/* The traces of all ranks. */
ORR_API orr_code orr_pattern_set(const orr_pattern *p,
                                 const orr_gen_options *opt,
                                 orr_set **out,
                                 orr_error *err) ORR_MUST_CHECK;

/* The output of Chakra's own generator of that time: all its samples, as FOLDER/<sample>.<rank>.et
 * (.eg in the first generation), byte for byte.  Read from opt: style, ranks, dims, runtime_us,
 * tensor_size, comm_size, has_early_names. */
ORR_API orr_code orr_gen_write_samples(const orr_gen_options *opt,
                                       const char *folder,
                                       orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
