/* SPDX-License-Identifier: Apache-2.0 */
/* llm_impl.h - what the generator's files share: the layout of ranks, the pen that writes nodes,
 * the tasks of a pipeline rank, and the recipes of layers.
 *
 *     llm_options.c      which rank is where, its groups and neighbours
 *     llm_pen.c          nodes of one class of ranks, with holes where its ranks differ
 *     pipeline_order.c   in which order a pipeline rank takes its passes
 *     llm_layer.c        the operations of a layer
 *     llm_training.c     embedding, head, loss, gradients and optimizer; all of it together
 *     llm_variants.c     how a step was made, and the same made otherwise
 *     serve_impl.h       what serving adds */
#ifndef ORR_LLM_IMPL_H
#define ORR_LLM_IMPL_H

#include <orrery/lab/chip.h>
#include <orrery/lab/llm.h>
#include <orrery/lab/software.h>

#include "base/memory/buffer.h"
#include "base/memory/memory.h"
#include "llm_tape.h"
#include "trace/builder.h"

/* ---- layout ---- */

/* Groups a rank is in, and ranks it talks to: the slots of every class. */
typedef enum llm_axis {
    LLM_AXIS_TP,
    LLM_AXIS_CP,
    LLM_AXIS_DATA, /* dp and cp together: whose gradients are added up; HSDP: of one replica */
    LLM_AXIS_EP,
    LLM_AXIS_EXPERT_DATA, /* ranks with the same experts */
    LLM_AXIS_TIED,        /* first and last stage, which share the embedding */
    LLM_AXIS_WORLD,
    LLM_AXIS_REPLICA, /* HSDP: ranks with the same share */
    LLM_AXIS_STAGE,   /* all of a pipeline rank, where they agree on scales of fp8 */
    LLM_AXES
} llm_axis;

typedef enum llm_peer {
    LLM_PEER_NEXT = LLM_AXES, /* pipeline */
    LLM_PEER_PREVIOUS,
    LLM_PEER_CP_NEXT,
    LLM_PEER_CP_PREVIOUS,
    LLM_SLOTS
} llm_peer;

typedef struct llm_layout {
    uint32_t tp, cp, pp, dp, ep;
    uint32_t shard;            /* of dp x cp, those that share out; all, but for HSDP */
    uint32_t degree[LLM_AXES]; /* ranks of a group */
    uint64_t first[LLM_AXES];  /* number of the axis's first group; 0: it has none */
    uint32_t ranks;
    uint32_t first_rank; /* of the set, where several layouts make one */
    bool is_dual;        /* the rank opposite in the pipeline has copies of the same weights */
    bool spans_tensor;   /* experts are spread over tensor-parallel ranks too */
} llm_layout;

void llm_layout_init(llm_layout *l, const orr_llm_options *opt, bool is_tied);
/* rank = ((pipeline * dp + data) * cp + context) * tp + tensor */
void llm_layout_values(const llm_layout *l, uint32_t rank, int64_t values[LLM_SLOTS]);
/* Groups of tensor, context and expert parallelism only, numbered from first_group; returns the
 * next number. */
uint64_t llm_layout_init_serving(llm_layout *l,
                                 const orr_llm_options *opt,
                                 uint32_t first_rank,
                                 uint64_t first_group);
orr_code llm_layout_add_groups(const llm_layout *l, orr_set *s, orr_error *err);

/* ---- what is being made ---- */

enum { LLM_CHUNKS_MOST = 64 };

typedef struct llm_pass llm_pass; /* serve_impl.h */

typedef struct llm_job {
    const orr_model *m;
    orr_llm_options opt; /* complete */
    llm_layout layout;
    uint64_t micro_batches;
    uint64_t act, mat, weight,
        grad;             /* bytes a number: between products, in them, of weights, of gradients */
    uint64_t tokens;      /* of a micro-batch on a rank: micro_batch * seq / cp */
    uint64_t thin_tokens; /* of those a tensor-parallel rank holds between products */
    bool is_sequence_parallel;
    uint32_t virtual_stages; /* pp * chunks */
    const llm_pass *pass;    /* what goes through the model while it is served; NULL: training */
    uint64_t kv;             /* serving: bytes a number in the cache */
    uint32_t expert_tp;      /* ranks that share an expert; 0: tp */
    const orr_software *software;
    bool has_dropout, is_pure; /* pure: weights and moments are kept in the type of products */
    orr_str made_by;           /* training: how to make it again (llm_variants.c) */
    uint64_t job_tokens;       /* training: of all steps and ranks together; 0: not said */
    double job_flops;          /* that the model needs for them */
    uint64_t token_ranks;      /* serving: so many ranks make the same tokens */
} llm_job;

/* Serving: tokens that one iteration of a replica makes.  Numbers only. */
typedef struct llm_tokens {
    uint64_t made;
    uint64_t first, last; /* of them: the first, the last ones of their requests */
    uint64_t arrivals_us; /* when the requests of the first ones came, all added up */
    uint64_t earliest_us; /* the earliest of those */
} llm_tokens;

/* What of a model cannot be shared out over ranks yet: words such as "layers that share keys and
 * values"; NULL: nothing. */
const char *llm_cannot_share(const orr_model *m);

orr_code llm_init(llm_job *g, const orr_model *m, const orr_llm_options *opt, orr_error *err);

/* Layers [first, end) of a virtual stage; the first stages have one more where it does not come out
 * even. */
void llm_stage_layers(const llm_job *g, uint32_t stage, uint64_t *first, uint64_t *end);

/* ---- the pen ---- */

/* Communication of different streams goes on at the same time, that of one stream in order. */
typedef enum llm_stream {
    LLM_ON_COMPUTE = 0,
    LLM_ON_TP,
    LLM_ON_DATA,
    LLM_ON_NEXT,
    LLM_ON_PREVIOUS,
    LLM_ON_CP,
    LLM_ON_EP,
    LLM_ON_KV, /* caches that move to other ranks */
    LLM_ON_EP_BESIDE = ORR__STREAM_BESIDE
} llm_stream;

/* What nodes would take, added up instead of being written: each the longer of its operations and
 * its bytes, or the bytes that a rank puts on its link. */
typedef struct llm_meter {
    uint64_t peak; /* operations a second */
    orr_Bps memory_rate, link_rate, node_rate;
    uint32_t node_ranks;  /* beyond which node_rate counts; 0: link_rate does everywhere */
    bool is_mesh;         /* link_rate is of links to all others of a node, one each */
    const orr_chip *chip; /* NULL: rates; else kernels take their time on it */
    uint64_t pending;     /* ps: kernels of the next computation */
    uint64_t time;        /* ps; on a chip at its highest clock, of which: */
    double clocked_us;    /* that scales with the clock */
    double flops;         /* that hold the clock down */
} llm_meter;

enum { LLM_BARRIERS = 8, LLM_PREFIX_MOST = 80 };

typedef struct llm_pen {
    const llm_job *g;
    llm_meter *meter;       /* NULL: write */
    struct orr__tape *tape; /* instead of a trace; NULL: write */
    uint32_t slot_count;    /* of the class; more than LLM_SLOTS where it has peers of its own */
    orr__builder b;
    uint64_t barrier
        [LLM_BARRIERS]; /* what the next computation waits for, besides its data; 0: nothing */
    uint64_t held;      /* the next node says that its rank holds so many bytes; see has_held */
    bool has_held;
    const llm_tokens *tokens;       /* that the next computation makes; NULL: none */
    bool is_beside;                 /* a forward and a backward pass are written in turns */
    char prefix[LLM_PREFIX_MOST];   /* of names: "mb2.layer17." */
    orr_buf kernels;                /* that the next computation launches, as text */
    struct llm_known_kernel *known; /* texts written before (llm_kernels.c); or NULL */
} llm_pen;

/* Ids of nodes that come before; 0 means none and is left out. */
typedef struct llm_deps {
    const uint64_t *ids;
    size_t count;
} llm_deps;
#define LLM_AFTER(...)                           \
    ((llm_deps){(const uint64_t[]){__VA_ARGS__}, \
                sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)})

void llm_put_made_by(orr_buf *b, const llm_job *g);
void llm_pen_open(llm_pen *p, const llm_job *g, orr_error *err);
/* The class goes into the set; the pen is empty afterwards, also on failure. */
orr_code llm_pen_close(llm_pen *p, orr_set *s, uint32_t *class_index);
void llm_pen_prefix(llm_pen *p, const char *fmt, ...) ORR_PRINTF(2, 3);

/* All return the new node's id. */
uint64_t llm_put_compute(
    llm_pen *p, const char *name, uint64_t operations, uint64_t bytes, llm_deps after);
/* A few operations a number on what is read and written once: norms, activations, sums. */
uint64_t llm_put_elementwise(llm_pen *p,
                             const char *name,
                             uint64_t numbers,
                             uint64_t operations,
                             uint64_t moved,
                             llm_deps after);
/* One rank alone communicates with nobody: no node, and the answer is `after`'s only id. */
uint64_t llm_put_collect(llm_pen *p,
                         const char *name,
                         orr_collective kind,
                         uint64_t bytes,
                         llm_axis axis,
                         llm_deps after);
uint64_t llm_put_send(
    llm_pen *p, const char *name, uint64_t bytes, uint64_t tag, llm_peer to, llm_deps after);
/* Time goes by on the host: `after`, and so much. */
uint64_t llm_put_wait(llm_pen *p, const char *name, uint64_t duration_us, llm_deps after);
uint64_t llm_put_receive(
    llm_pen *p, const char *name, uint64_t bytes, uint64_t tag, llm_peer from, llm_deps after);

/* ---- what the next computation launches (llm_kernels.c) ---- */

typedef enum llm_loss_part {
    LLM_LOSS_MAX,
    LLM_LOSS_EXPONENTIALS,
    LLM_LOSS_MEAN,
    LLM_LOSS_GRAD
} llm_loss_part;

/* A pass over numbers, unless something was launched already. */
void llm_launch_elementwise(llm_pen *p, uint64_t numbers, uint64_t moved);
/* pairs: of a query and a key it sees, in one head of one sequence. */
void llm_launch_attention(llm_pen *p, uint64_t pairs, bool is_backward, bool is_whole);
/* Before attention where keys and values are repeated for all heads, and behind its gradients. */
void llm_launch_repeat(llm_pen *p, bool is_backward);
/* What merging a block of a ring takes beside its attention. */
void llm_launch_merge(llm_pen *p, uint64_t numbers, bool is_half, bool is_backward);
/* What a ring of Transformer Engine does beside attention itself: queries, keys and values are
 * numbers of this rank. */
void llm_launch_correction(llm_pen *p,
                           uint64_t queries,
                           uint64_t keys_values,
                           uint32_t block,
                           bool has_halves,
                           bool is_backward);
void llm_launch_embedding(llm_pen *p, bool is_backward);
void llm_launch_loss(llm_pen *p, llm_loss_part part);
void llm_launch_clipping(llm_pen *p, uint64_t own, uint64_t tensors);
void llm_launch_update(llm_pen *p, uint64_t own, uint64_t tensors);

/* ---- the schedule ---- */

typedef enum llm_task_kind {
    LLM_FORWARD,
    LLM_BACKWARD,
    LLM_WEIGHTS /* gradients of the weights, of a backward pass that is cut */
} llm_task_kind;

typedef struct llm_task {
    llm_task_kind kind;
    bool is_cut; /* a backward pass of the inputs only */
    uint32_t chunk;
    uint64_t micro_batch;
    uint32_t column; /* where an own order says it */
} llm_task;

typedef struct llm_order_rank {
    size_t first, count; /* tasks */
    uint32_t line;
} llm_order_rank;

struct orr_pipeline_order {
    char *path;
    bool comes_back; /* placement: v */
    llm_order_rank *ranks;
    uint32_t rank_count;
    llm_task *tasks;
    size_t task_count;
};

/* Every other chunk of layers goes back from the last rank to the first. */
bool llm_comes_back(const orr_llm_options *o);
/* Two copies of the weights, for micro-batches that go either way; chunk 1 is the second. */
bool llm_is_dual(const orr_llm_options *o);
/* The first and the last stage are on one rank. */
bool llm_ends_meet(const orr_llm_options *o);
uint32_t llm_stage_of(const llm_job *g, uint32_t pipeline_rank, uint32_t chunk);
orr_code llm_check_order(const orr_llm_options *opt, uint64_t micro_batches, orr_error *err);

/* NULL: out of memory.  The caller frees it. */
llm_task *llm_schedule_tasks(const llm_job *g, uint32_t pipeline_rank, size_t *count);

/* ---- layers ---- */

/* What a recipe of the backward pass is to write. */
enum { LLM_INPUT_GRADS = 1, LLM_WEIGHT_GRADS = 2 };

enum { LLM_GRADS_OF_LAYER = 16 };

/* Nodes after which the gradients of a layer's weights are there. */
typedef struct llm_grads {
    uint64_t dense[LLM_GRADS_OF_LAYER], expert[LLM_GRADS_OF_LAYER];
    size_t dense_count, expert_count;
} llm_grads;

/* Both return the node after which the result is there; `tag` is the first of LLM_RING_TAGS of its
 * own. */
bool llm_is_recomputed(const llm_job *g, uint64_t layer); /* in full */
uint64_t llm_layer_forward(llm_pen *p, uint64_t layer, uint64_t tag, uint64_t input);
uint64_t llm_layer_backward(
    llm_pen *p, uint64_t layer, uint64_t tag, int parts, uint64_t output_grad, llm_grads *grads);

/* One of two passes that are written in turns. */
typedef struct llm_side {
    uint64_t layer, tag;
    uint64_t at;                    /* what goes into the layer; afterwards what comes out of it */
    char prefix[LLM_PREFIX_MOST];   /* of names */
    uint64_t barrier[LLM_BARRIERS]; /* what its first computation waits for */
} llm_side;

/* A layer forward and one backward, of different micro-batches. */
void llm_layer_turns(llm_pen *p, llm_side *forth, llm_side *back, int parts, llm_grads *grads);
enum { LLM_RING_TAGS = 8 };

/* Parameters of a layer on one rank, those of experts apart. */
void llm_layer_parameters(const llm_job *g, uint64_t layer, uint64_t *dense, uint64_t *expert);

/* The layer that those which predict further tokens are like, and their parameters on one rank. */
uint64_t llm_mtp_layer(const llm_job *g);
void llm_mtp_parameters(const llm_job *g, uint64_t *dense, uint64_t *expert);

/* Numbers that a rank's cache keeps of one token in one layer. */
uint64_t kv_kept(const llm_job *g);
/* What a rank keeps of a sequence in a layer with a state: in single precision, as kernels do. */
uint64_t llm_state_bytes(const llm_job *g, uint64_t layer);

/* ---- gradients, weights, the optimizer ---- */

/* Gradients that wait for their bucket to be full; one for dense weights, one for experts. */
typedef struct llm_bucket {
    llm_axis axis;
    uint64_t bytes;
    uint64_t after[64];
    size_t count;
} llm_bucket;

typedef struct llm_sync {
    llm_pen *p;
    llm_bucket dense, expert;
    uint64_t dense_parameters, expert_parameters; /* of the class, on one rank */
    uint64_t tensors;
    llm_grads last;   /* of the layer that came last */
    uint64_t updated; /* the last step's update; 0: there was none */
} llm_sync;

/* ---- both ends ---- */

/* The same once there are tokens to look up. */
uint64_t llm_embedding_after(llm_pen *p, llm_deps tokens);
/* Rows of the vocabulary on one rank; padded where they do not come out even, and as the software
 * pads them: products of odd widths are several times slower. */
uint64_t llm_vocab_share(const llm_job *g);
uint64_t llm_embedding_parameters(const llm_job *g); /* on one rank */
uint64_t llm_head_parameters(const llm_job *g);

/* ---- steps of a layer ----
 *
 * A layer as a small graph of steps, from which both passes are written.
 *
 * A step takes the result of one step, or of two, that stand before it in the list.  The forward
 * pass writes the list from front to back; the backward pass from back to front, each step giving
 * gradients to those it took from. */

typedef enum llm_step_kind {
    LLM_STEP_INPUT,       /* what the layer gets */
    LLM_STEP_ELEMENTWISE, /* norms, activations, sums */
    LLM_STEP_PRODUCT,     /* with weights */
    LLM_STEP_ATTENTION,
    LLM_STEP_ENTER,    /* all tokens for a part of the columns: tensor parallelism begins */
    LLM_STEP_LEAVE,    /* ... and ends, adding up */
    LLM_STEP_EXCHANGE, /* all to all between experts */
    LLM_STEP_GATHER    /* tokens of which each tensor-parallel rank has some: serving */
} llm_step_kind;

/* What an elementwise step is, for the kernels that it launches. */
typedef enum llm_role {
    LLM_ROLE_PLAIN = 0,
    LLM_ROLE_NORM,
    LLM_ROLE_SUM,
    LLM_ROLE_ACTIVATION,
    LLM_ROLE_ROTARY,
    LLM_ROLE_SELECT,  /* experts of a token */
    LLM_ROLE_PERMUTE, /* rows by index */
    LLM_ROLE_WEIGH,   /* and back, each with its weight */
    LLM_ROLE_CACHE    /* into the cache of keys and values */
} llm_role;

typedef struct llm_step {
    llm_step_kind kind;
    llm_role role;
    const char *name;
    int from, also;                 /* steps; also -1: none */
    int behind;                     /* product: starts when this step is done; 0: at any time */
    bool is_expert;                 /* its weights belong to experts */
    bool is_dispatch;               /* exchange: to the experts, not back */
    bool is_sum;                    /* of two: gradients pass through it */
    bool is_residual;               /* a sum with the layer's input; a norm of such a sum */
    bool has_bias;                  /* product */
    bool joins_next;                /* product: its bias can be added by what comes next */
    bool is_dropped;                /* product: dropout follows, before the residual sum */
    bool is_pair;                   /* product: gate and up */
    bool is_down;                   /* product: back from the width of an FFN */
    bool is_gathered, is_scattered; /* product: its input was gathered, its result will be added up
                                       over tensor-parallel ranks */
    uint64_t width;                 /* elementwise: of a row; 0: hidden */
    uint64_t m, n, k;               /* product: of all copies together m rows */
    uint64_t copies;                /* of the weights */
    /* Elementwise: how many; exchange, gather: how many a rank sends; enter, leave: of all tokens.
     * */
    uint64_t numbers;
    uint64_t operations; /* elementwise: for each number */
    /* Elementwise: moved, where it is not the usual; exchange: that go with the numbers, both ways. */
    uint64_t bytes;
} llm_step;

enum { LLM_STEPS_MOST = 64 };

typedef struct llm_steps {
    const llm_job *g;
    uint64_t layer;
    llm_step list[LLM_STEPS_MOST];
    int count;
} llm_steps;

void llm_describe_layer(const llm_job *g, uint64_t layer, llm_steps *out);
void llm_describe_head(const llm_job *g, llm_steps *out);
void llm_describe_join(const llm_job *g, llm_steps *out); /* before a layer of further tokens */
/* Serving: what a replica without tokens of its own does for those that share its experts; no
 * steps: nothing. */
void llm_describe_idle_layer(const llm_job *g, uint64_t layer, llm_steps *out);

/* ---- what the next computation launches (llm_kernels.c) ---- */

void llm_launch_forward(llm_pen *p, const llm_step *s);
void llm_launch_backward(llm_pen *p, const llm_step *s, int part);

/* Recomputing by operators: is the result of this step kept?  *products counts, from 0. */
bool llm_keeps_result(const llm_step *s, int *products);
/* Recomputing by parts: is this step in one of them? */
bool llm_is_in_parts(const llm_step *s, uint32_t parts);
/* The steps after the input, from front to back.  suffix: behind every name. */
uint64_t llm_steps_forward(
    llm_pen *p, const llm_steps *s, const char *suffix, uint64_t tag, uint64_t input);
uint64_t llm_steps_backward(llm_pen *p,
                            const llm_steps *s,
                            uint64_t tag,
                            int parts,
                            uint64_t output_grad,
                            llm_grads *grads);

/* ---- tapes ----
 *
 * How the pen writes onto a tape. */

/* Empties the tape and writes node 0; its id, as those below: one more than the place on the tape.
 */
uint64_t llm_tape_begin(orr__tape *t);
uint64_t llm_tape_input(orr__tape *t); /* one more */
void llm_tape_kernel(orr__tape *t, const orr_kernel *k);
uint64_t llm_tape_compute(llm_pen *p, uint64_t operations, uint64_t bytes, llm_deps after);
uint64_t llm_tape_collect(orr__tape *t,
                          orr_collective kind,
                          uint64_t bytes,
                          llm_axis axis,
                          llm_stream stream,
                          llm_deps after);
uint64_t llm_tape_message(
    orr__tape *t, bool is_send, uint64_t bytes, llm_stream stream, llm_deps after);

#endif
