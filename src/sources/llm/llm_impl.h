/* SPDX-License-Identifier: Apache-2.0 */
/* llm_impl.h - what the generator's files share: the layout of ranks, the pen that writes nodes, the tasks of a
 * pipeline rank, and the recipes of layers.
 *
 * llm_layout.c   which rank is where, its groups and neighbours
 * llm_pen.c      nodes of one class of ranks, with holes where its ranks differ
 * llm_schedule.c what a pipeline rank does, in order
 * layer_forward.c, layer_backward.c   the operations of a layer
 * llm_ends.c     embedding, head and loss
 * llm_sync.c     gradients, weights and the optimizer
 * llm_training.c all of it together
 * serve_impl.h   what serving adds */
#ifndef ORR_LLM_IMPL_H
#define ORR_LLM_IMPL_H

#include <orrery/lab/llm.h>

#include "base/memory/buffer.h"
#include "base/memory/memory.h"
#include "trace/builder.h"

/* ---- layout ---- */

/* Groups a rank is in, and ranks it talks to: the slots of every class. */
typedef enum orr__axis {
    ORR__AXIS_TP,
    ORR__AXIS_CP,
    ORR__AXIS_DATA, /* dp and cp together: whose gradients are added up */
    ORR__AXIS_EP,
    ORR__AXIS_EXPERT_DATA, /* ranks with the same experts */
    ORR__AXIS_TIED,        /* first and last stage, which share the embedding */
    ORR__AXIS_WORLD,
    ORR__AXES
} orr__axis;

typedef enum orr__peer {
    ORR__PEER_NEXT = ORR__AXES, /* pipeline */
    ORR__PEER_PREVIOUS,
    ORR__PEER_CP_NEXT,
    ORR__PEER_CP_PREVIOUS,
    ORR__LLM_SLOTS
} orr__peer;

typedef struct orr__layout {
    uint32_t tp, cp, pp, dp, ep;
    uint32_t degree[ORR__AXES]; /* ranks of a group */
    uint64_t first[ORR__AXES];  /* number of the axis's first group; 0: it has none */
    uint32_t ranks;
    uint32_t first_rank; /* of the set, where several layouts make one */
    bool spans_tensor;   /* experts are spread over tensor-parallel ranks too: serving */
} orr__layout;

void orr__layout_init(orr__layout *l, const orr_llm_options *opt, bool is_tied);
/* rank = ((pipeline * dp + data) * cp + context) * tp + tensor */
void orr__layout_values(const orr__layout *l, uint32_t rank, int64_t values[ORR__LLM_SLOTS]);
/* Groups of tensor, context and expert parallelism only, numbered from first_group; returns the next number. */
uint64_t orr__layout_init_serving(orr__layout *l,
                                  const orr_llm_options *opt,
                                  uint32_t first_rank,
                                  uint64_t first_group);
orr_code orr__layout_add_groups(const orr__layout *l, orr_set *s, orr_error *err);

/* ---- what is being made ---- */

enum { ORR__CHUNKS_MOST = 64 };

typedef struct orr__pass orr__pass; /* serve_impl.h */

typedef struct orr__llm {
    const orr_model *m;
    orr_llm_options opt; /* complete */
    orr__layout layout;
    uint64_t micro_batches;
    uint64_t act, mat, weight,
        grad;             /* bytes a number: between products, in them, of weights, of gradients */
    uint64_t tokens;      /* of a micro-batch on a rank: micro_batch * seq / cp */
    uint64_t thin_tokens; /* of those a tensor-parallel rank holds between products */
    bool is_sequence_parallel;
    uint32_t virtual_stages; /* pp * chunks */
    const orr__pass *pass;   /* what goes through the model while it is served; NULL: training */
    uint64_t kv;             /* serving: bytes a number in the cache */
    uint32_t expert_tp;      /* serving: ranks that share an expert; 0: tp */
    uint64_t job_tokens;     /* training: of all steps and ranks together; 0: not said */
    double job_flops;        /* that the model needs for them */
} orr__llm;

orr_code orr__llm_init(orr__llm *g, const orr_model *m, const orr_llm_options *opt, orr_error *err);

/* Layers [first, end) of a virtual stage; the first stages have one more where it does not come out even. */
void orr__stage_layers(const orr__llm *g, uint32_t stage, uint64_t *first, uint64_t *end);

/* ---- the pen ---- */

/* Communication of different streams goes on at the same time, that of one stream in order. */
typedef enum llm_stream {
    ORR__ON_COMPUTE = 0,
    ORR__ON_TP,
    ORR__ON_DATA,
    ORR__ON_NEXT,
    ORR__ON_PREVIOUS,
    ORR__ON_CP,
    ORR__ON_EP,
    ORR__ON_KV /* caches that move to other ranks */
} llm_stream;

/* What nodes would take, added up instead of being written: each the longer of its operations and its bytes, or the
 * bytes that a rank puts on its link. */
typedef struct orr__meter {
    uint64_t peak; /* operations a second */
    orr_Bps memory_rate, link_rate;
    uint64_t time; /* ps */
} orr__meter;

typedef struct orr__pen {
    const orr__llm *g;
    orr__meter *meter;   /* NULL: write */
    uint32_t slot_count; /* of the class; more than ORR__LLM_SLOTS where it has peers of its own */
    orr__builder b;
    uint64_t barrier[8]; /* what the next computation waits for, besides its data; 0: nothing */
    uint64_t held;       /* the next node says that its rank holds so many bytes; see has_held */
    bool has_held;
    char prefix[80]; /* of names: "mb2.layer17." */
} orr__pen;

/* Ids of nodes that come before; 0 means none and is left out. */
typedef struct orr__deps {
    const uint64_t *ids;
    size_t count;
} orr__deps;
#define ORR__AFTER(...)                           \
    ((orr__deps){(const uint64_t[]){__VA_ARGS__}, \
                 sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)})

void orr__pen_open(orr__pen *p, const orr__llm *g, orr_error *err);
/* The class goes into the set; the pen is empty afterwards, also on failure. */
orr_code orr__pen_close(orr__pen *p, orr_set *s, uint32_t *class_index);
void orr__pen_prefix(orr__pen *p, const char *fmt, ...) ORR_PRINTF(2, 3);

/* All return the new node's id. */
uint64_t orr__put_compute(
    orr__pen *p, const char *name, uint64_t operations, uint64_t bytes, orr__deps after);
/* A few operations a number on what is read and written once: norms, activations, sums. */
uint64_t orr__put_elementwise(orr__pen *p,
                              const char *name,
                              uint64_t numbers,
                              uint64_t operations,
                              uint64_t moved,
                              orr__deps after);
/* One rank alone communicates with nobody: no node, and the answer is `after`'s only id. */
uint64_t orr__put_collect(orr__pen *p,
                          const char *name,
                          orr_collective kind,
                          uint64_t bytes,
                          orr__axis axis,
                          orr__deps after);
uint64_t orr__put_send(
    orr__pen *p, const char *name, uint64_t bytes, uint64_t tag, orr__peer to, orr__deps after);
/* Time goes by on the host: `after`, and so much. */
uint64_t orr__put_wait(orr__pen *p, const char *name, uint64_t duration_us, orr__deps after);
uint64_t orr__put_receive(
    orr__pen *p, const char *name, uint64_t bytes, uint64_t tag, orr__peer from, orr__deps after);

/* ---- the schedule ---- */

typedef enum orr__task_kind {
    ORR__FORWARD,
    ORR__BACKWARD, /* zero bubble: of the inputs only */
    ORR__WEIGHTS   /* zero bubble: the weights' gradients */
} orr__task_kind;

typedef struct orr__task {
    orr__task_kind kind;
    uint32_t chunk;
    uint64_t micro_batch;
} orr__task;

/* NULL: out of memory.  The caller frees it. */
orr__task *orr__schedule_tasks(const orr__llm *g, uint32_t pipeline_rank, size_t *count);

/* ---- layers ---- */

/* What a recipe of the backward pass is to write. */
enum { ORR__INPUT_GRADS = 1, ORR__WEIGHT_GRADS = 2 };

enum { ORR__GRADS_OF_LAYER = 16 };

/* Nodes after which the gradients of a layer's weights are there. */
typedef struct orr__grads {
    uint64_t dense[ORR__GRADS_OF_LAYER], expert[ORR__GRADS_OF_LAYER];
    size_t dense_count, expert_count;
} orr__grads;

/* Both return the node after which the result is there; `tag` is the first of ORR__RING_TAGS of its own. */
uint64_t orr__layer_forward(orr__pen *p, uint64_t layer, uint64_t tag, uint64_t input);
uint64_t orr__layer_backward(
    orr__pen *p, uint64_t layer, uint64_t tag, int parts, uint64_t output_grad, orr__grads *grads);
enum { ORR__RING_TAGS = 8 };

/* Parameters of a layer on one rank, those of experts apart. */
void orr__layer_parameters(const orr__llm *g, uint64_t layer, uint64_t *dense, uint64_t *expert);

/* Numbers of keys and values of the tokens on a rank. */
uint64_t orr__kv_numbers(const orr__llm *g);
/* Numbers that a rank's cache keeps of one token in one layer. */
uint64_t orr__kv_kept(const orr__llm *g);

/* ---- gradients, weights, the optimizer ---- */

/* Gradients that wait for their bucket to be full; one for dense weights, one for experts. */
typedef struct orr__bucket {
    orr__axis axis;
    uint64_t bytes;
    uint64_t after[64];
    size_t count;
} orr__bucket;

typedef struct orr__sync {
    orr__pen *p;
    orr__bucket dense, expert;
    uint64_t dense_parameters, expert_parameters; /* of the class, on one rank */
    orr__grads last;                              /* of the layer that came last */
} orr__sync;

void orr__sync_open(orr__sync *y, orr__pen *p);
/* Zero 3: gather a layer's weights once `after` is there; the next computation waits for them. */
void orr__sync_weights(orr__sync *y, uint64_t layer, uint64_t after, uint64_t out[2]);
/* A layer's gradients are complete after these nodes. */
void orr__sync_grads(orr__sync *y, uint64_t dense, uint64_t expert, const orr__grads *grads);
/* The end of a step; afterwards the next computation waits for the new weights. */
void orr__sync_step(orr__sync *y, bool is_tied_end, uint64_t tied_parameters);

/* ---- both ends ---- */

uint64_t orr__embedding_forward(orr__pen *p);
/* The same once there are tokens to look up. */
uint64_t orr__embedding_after(orr__pen *p, orr__deps tokens);
void orr__embedding_backward(orr__pen *p, uint64_t output_grad, orr__grads *grads);
/* Norm, head and loss. */
uint64_t orr__head_forward(orr__pen *p, uint64_t input);
uint64_t orr__head_backward(orr__pen *p, int parts, uint64_t loss, orr__grads *grads);
/* Rows of the vocabulary on one rank; padded where they do not come out even. */
uint64_t orr__vocab_share(const orr__llm *g);
uint64_t orr__embedding_parameters(const orr__llm *g); /* on one rank */
uint64_t orr__head_parameters(const orr__llm *g);

#endif
