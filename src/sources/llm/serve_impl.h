/* SPDX-License-Identifier: Apache-2.0 */
/* serve_impl.h - additions of serving to llm_impl.h.
 *
 * serve_options.c    options completed and checked against the model
 * llm_network.c      times of collectives and messages on a machine, for the estimate
 * serve_requests.c   request lists: CSV, JSON lines, vLLM's benchmark
 * serve_schedule.c   pools of ranks: sizes, memory, time of an iteration; continuous batching;
 * equal replicas; who sends which part of a KV cache to whom
 * serve.c            the nodes of one class of ranks; the whole set
 *
 * requests -> schedule (parts of sequences in iterations) -> scripts (per replica) -> classes
 */
#ifndef ORR_SERVE_IMPL_H
#define ORR_SERVE_IMPL_H

#include "llm_impl.h"

#include <orrery/lab/serve.h>

/* ---- what goes through the model at once ---- */

/* Layers see all tokens before them, a window of them, or a state of fixed size (linear attention,
 * state spaces), or keep nothing; dependent quantities are counted per kind. */
typedef enum llm_sees {
    LLM_SEES_ALL,
    LLM_SEES_WINDOW,
    LLM_SEES_STATE,
    LLM_SEES_NOTHING,
    LLM_SIGHTS
} llm_sees;

llm_sees llm_layer_sees(const orr_model *m, uint64_t layer);

typedef struct llm_sight {
    uint64_t prompt_pairs, decode_pairs; /* of a query and a key it sees, in one head */
    uint64_t prompt_keys, decode_keys;   /* tokens whose keys and values are read; states */
} llm_sight;

/* Numbers only, so that two can be compared byte by byte. */
struct llm_pass {
    uint64_t prompt_tokens, decode_tokens;
    uint64_t sampled;       /* sequences that get a new token */
    uint64_t busiest;       /* tokens of the replica that has most, of those that share experts */
    uint64_t shared_tokens; /* of all of these together */
    llm_sight sight[LLM_SIGHTS];
};

/* ---- times on a machine (llm_network.c) ---- */

#define LLM_NO_SHAPE UINT32_MAX
enum { LLM_MESSAGE = ORR_COLL_COUNT }; /* to the other rank of two; else an orr_collective */

typedef struct llm_moved {
    uint64_t ps, latency; /* latency: of that, after the last byte has left */
} llm_moved;

/* *out is NULL if the machine has no model of collectives. */
orr_code llm_network_open(const orr_machine *m, llm_network **out, orr_error *err);
void llm_network_close(llm_network *w); /* NULL is fine */
/* The number of the placement of the ranks first, first + stride, ...  LLM_NO_SHAPE: a single rank,
 * ranks that the machine does not have, or no memory: ask llm_network_lacks_memory, since without
 * its shape a group would be timed by the rates of links, silently. */
uint32_t llm_network_place(llm_network *w, uint64_t first, uint32_t count, uint64_t stride);
bool llm_network_lacks_memory(const llm_network *w);
/* bytes: as a node has them.  false: not known. */
bool llm_network_time(
    llm_network *w, uint32_t shape, uint32_t kind, uint64_t bytes, llm_moved *out);

/* ---- bounds ---- */

#define LLM_MOST_TOKENS (UINT64_C(1) << 24)       /* of a prompt, of an output */
#define LLM_MOST_ARRIVAL UINT64_C(8000000000000)  /* us: 92 days, as much as 63 bits have in ps */
#define LLM_MOST_LAYER_PASSES (UINT64_C(1) << 22) /* layers times iterations, of all classes */
#define LLM_FEW_LAYER_PASSES (UINT64_C(1) << 18) /* traces of more are not made for figures alone */
enum { LLM_MOST_REQUESTS = 1 << 26, LLM_TOKEN_BYTES = 4 };

bool serve_is_split(const orr_serve_options *o); /* has decode ranks of their own */

/* ---- how sure the estimate is ---- */

/* Of a stage's time in an iteration, or of many: us, and 90 % deviations of its kernels and host
 * below and above. */
typedef struct llm_certainty {
    double all, moved; /* moved: of all, collectives and messages */
    double low, high;
} llm_certainty;

/* ---- pools ---- */

enum { LLM_LAYER_KINDS = 3 * LLM_SIGHTS }; /* dense, with experts or no FFN, by what they see */

/* What a pipeline stage has. */
typedef struct llm_stage {
    uint64_t first, end;               /* layers */
    uint64_t count[LLM_LAYER_KINDS];   /* so many of a kind */
    uint64_t example[LLM_LAYER_KINDS]; /* one of them */
    uint64_t weight_bytes, kv_room;
    uint32_t shapes[LLM_SLOTS]; /* placement of its groups and peers (llm_network_place) */
} llm_stage;

/* What a pool's ranks do. */
typedef enum llm_duty { LLM_DOES_ALL, LLM_DOES_PREFILL, LLM_DOES_DECODE } llm_duty;

/* Ranks that work alike. */
typedef struct llm_pool {
    const orr_model *m;
    const orr_serve_options *opt;
    orr_serve_ranks ranks;
    llm_duty duty;
    bool hands_over; /* prefill: sequences go on elsewhere; decode: they come from there */
    llm_job g;       /* sizes; the pass of the current iteration */
    llm_stage *stages;
    uint64_t example[LLM_SIGHTS]; /* a layer of each; UINT64_MAX: none */
    uint32_t in_step;             /* replicas that share experts */
    double deviations;            /* of the slowest of all devices from the mean one, as in a run */
    uint64_t block_bytes;         /* of a cache block, in one layer */
    uint64_t state_bytes;         /* of the state of a sequence, in one layer */
    orr_serve_pool report;
    llm_network *network;    /* of the machine; NULL: none */
    llm_certainty certainty; /* of all stages and iterations; all 0: there is no chip */
    llm_meter refused;       /* is_impossible: names a kernel that the chip cannot run */
} llm_pool;

orr_code llm_pool_init(llm_pool *p, const orr_serve_ranks *ranks, orr_error *err);
void llm_pool_fini(llm_pool *p);
/* On this network, once its ranks have their numbers. */
orr_code llm_pool_place(llm_pool *p, llm_network *network, orr_error *err);

/* Blocks of a cache of so many tokens on a rank, per kind of layer; a state counts as one. */
void llm_cache_blocks(const llm_pool *p, uint64_t tokens, uint64_t blocks[LLM_SIGHTS]);
/* Their bytes on a rank of a stage. */
uint64_t llm_cache_bytes(const llm_pool *p, uint32_t stage, const uint64_t blocks[LLM_SIGHTS]);
/* Sending or receiving a cache takes the fullest rank so long, in ps. */
uint64_t llm_move_time(const llm_pool *p, const uint64_t blocks[LLM_SIGHTS]);

/* One more part of a sequence. */
static inline uint64_t llm_pass_tokens(const llm_pass *pass)
{
    return pass->prompt_tokens + pass->decode_tokens;
}
/* From here on the pool's sizes are those of this pass; NULL: of none. */
void llm_pool_set_pass(llm_pool *p, const llm_pass *pass);

/* Sum of two times, saturating at 106 days. */
static inline uint64_t llm_later(uint64_t a, uint64_t b)
{
    return b < INT64_MAX - a ? a + b : INT64_MAX;
}

/* ---- what is done when ---- */

/* A request as a pool sees it. */
typedef struct serve_job {
    uint64_t at; /* ps: it can begin */
    uint64_t prompt, output;
    uint64_t first_at, done_at; /* ps: its first and its last token are there */
} serve_job;

/* A cache that comes before a turn (decode) or leaves after it (prefill).  Jobs are numbered in
 * their replica. */
typedef struct llm_move {
    uint64_t job, tokens;
} llm_move;

/* One iteration of a replica.  Numbers only. */
typedef struct llm_turn {
    llm_pass pass;
    uint64_t needs;      /* the turn that made its newest tokens, from 1; 0: none did */
    uint64_t arrival_us; /* it does not begin before */
    uint64_t first_move, move_count;
    llm_tokens tokens;
} llm_turn;

/* Everything a replica does.  Replicas with equal jobs share one. */
typedef struct llm_script {
    llm_turn *turns;
    size_t turn_count, turn_room;
    llm_move *moves;
    size_t move_count, move_room;
} llm_script;

typedef struct llm_schedule {
    serve_job *jobs; /* of all requests, in the order in which they came */
    size_t job_count;
    bool only_figures; /* turns are not stored once there are many */
    bool is_dropped;   /* ... which they were */
    llm_script *scripts;
    size_t script_count;
    uint32_t *script_of; /* by replica */
} llm_schedule;

/* Tokens whose keys and values the pool keeps of a request in the end. */
uint64_t llm_cached_tokens(const llm_pool *p, uint64_t prompt, uint64_t output);
/* Job j goes to replica j % dp. */
orr_code llm_schedule_make(llm_pool *p, llm_schedule *s, orr_error *err);
void llm_schedule_fini(llm_schedule *s);

/* ---- caches that move ---- */

/* What a rank has in common with one of the other pool. */
typedef struct llm_share {
    uint32_t rank; /* of the other, in its replica: (stage * cp + context) * tp + tensor */
    uint32_t layers[LLM_SIGHTS]; /* that both have, by what they see */
    uint64_t heads;              /* of keys and values that both have; MLA: 1 */
    bool is_token;               /* not of the cache: the first token itself */
} llm_share;

typedef struct llm_shares {
    llm_share *list;
    size_t count, room;
} llm_shares;

/* Of the rank numbered as above; `other` is the other pool, is_sender: p is the one that
 * prefills. */
orr_code llm_shares_of(const llm_pool *p,
                       const llm_pool *other,
                       bool is_sender,
                       uint32_t rank,
                       llm_shares *out,
                       orr_error *err);
/* Do two ranks transfer the same in the same order, if with other peers? */
bool llm_shares_alike(const llm_shares *a, const llm_shares *b);
uint64_t llm_share_bytes(const llm_pool *prefill, const llm_share *s, uint64_t tokens);
/* The rank that takes the place of share i's, where shares of the same size change places
 * cyclically, by `turn` of them. */
uint32_t llm_turned_rank(const llm_shares *s, size_t i, uint32_t turn);

/* Number of replicas of the other pool that exchange jobs with one replica.  Round-robin: a
 * replica's job k is the (k / partners)-th with partner k % partners, on both sides. */
uint32_t llm_partners(const llm_pool *p, const llm_pool *other);
/* Which replica of the other pool that is. */
uint32_t llm_partner_replica(const llm_pool *p,
                             const llm_pool *other,
                             uint32_t replica,
                             uint32_t partner);
/* Senders that have the same receivers have different numbers, from 0. */
uint32_t llm_sender_turn(const llm_pool *p, const llm_pool *other, uint32_t replica, uint32_t rank);

/* ---- nodes ---- */

/* Ranks of a stage that do the same except for their groups and peers. */
typedef struct llm_class_job {
    llm_pool *pool;
    const llm_pool *prefill; /* whose caches move; NULL: none do */
    const llm_script *script;
    uint32_t stage;
    const llm_shares *shares;
    uint32_t partners;
} llm_class_job;

/* Attention of a pass (llm_kernels.c). */
void llm_launch_served_attention(llm_pen *p, const llm_sight *seen);

/* Norm, head, and a token for each sequence that gets one; tokens NULL: nobody asks which. */
uint64_t llm_put_sampling(llm_pen *p, const llm_tokens *tokens, uint64_t input);
/* Bytes of what goes from stage to stage. */
uint64_t llm_stage_message(const llm_job *g);

#endif
