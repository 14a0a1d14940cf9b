/* SPDX-License-Identifier: Apache-2.0 */
/* serve_impl.h - what serving adds to llm_impl.h.
 *
 * serve_options.c   options completed and held against the model
 * serve_requests.c  a request list from a CSV file
 * serve_pool.c      ranks that work alike: their sizes, what they keep, how long an iteration takes
 * serve_schedule.c  which tokens go through the model together; equal replicas found
 * serve_kv.c        who sends which part of a cache to whom
 * serve_write.c     the nodes of one class of ranks
 * serve.c           all of it together
 *
 *     requests -> schedule (parts of sequences in iterations) -> scripts (what a replica does) -> classes
 */
#ifndef ORR_SERVE_IMPL_H
#define ORR_SERVE_IMPL_H

#include "llm_impl.h"

#include <orrery/lab/serve.h>

/* ---- what goes through the model at once ---- */

/* Layers see all tokens before them, or a window of them; what depends on it is counted for both. */
enum { ORR__SEES_ALL, ORR__SEES_WINDOW, ORR__SIGHTS };

typedef struct orr__sight {
    uint64_t prompt_pairs, decode_pairs; /* of a query and a key it sees, in one head */
    uint64_t prompt_keys, decode_keys;   /* tokens whose keys and values are read */
} orr__sight;

/* Numbers only, so that two can be compared byte by byte. */
struct orr__pass {
    uint64_t prompt_tokens, decode_tokens;
    uint64_t sampled;       /* sequences that get a new token */
    uint64_t busiest;       /* tokens of the replica that has most, of those that share experts */
    uint64_t shared_tokens; /* of all of these together */
    orr__sight sight[ORR__SIGHTS];
};

/* ---- bounds ---- */

#define ORR__MOST_TOKENS (UINT64_C(1) << 24)       /* of a prompt, of an output */
#define ORR__MOST_ARRIVAL UINT64_C(1000000000000)  /* us: 11 days */
#define ORR__MOST_LAYER_PASSES (UINT64_C(1) << 22) /* layers times iterations, of all classes */
enum { ORR__MOST_REQUESTS = 1 << 20, ORR__TOKEN_BYTES = 4 };

bool orr__serve_is_split(const orr_serve_options *o); /* has decode ranks of their own */

/* ---- pools ---- */

enum { ORR__LAYER_KINDS = 4 }; /* with experts or without, seeing all or a window */

/* What a pipeline stage has. */
typedef struct orr__stage {
    uint64_t first, end;                /* layers */
    uint64_t count[ORR__LAYER_KINDS];   /* so many of a kind */
    uint64_t example[ORR__LAYER_KINDS]; /* one of them */
    uint64_t weight_bytes, kv_room;
} orr__stage;

/* What a pool's ranks do. */
typedef enum orr__duty { ORR__DOES_ALL, ORR__DOES_PREFILL, ORR__DOES_DECODE } orr__duty;

/* Ranks that work alike. */
typedef struct orr__pool {
    const orr_model *m;
    const orr_serve_options *opt;
    orr_serve_ranks ranks;
    orr__duty duty;
    bool hands_over; /* prefill: sequences go on elsewhere; decode: they come from there */
    orr__llm g;      /* sizes; the pass of the iteration at hand */
    orr__stage *stages;
    uint64_t example[ORR__SIGHTS]; /* a layer that sees all, one with a window; UINT64_MAX: none */
    uint32_t in_step;              /* replicas that share experts */
    uint64_t block_bytes;          /* of a cache block, in one layer */
    orr_serve_pool report;
} orr__pool;

orr_code orr__pool_init(orr__pool *p, const orr_serve_ranks *ranks, orr_error *err);
void orr__pool_fini(orr__pool *p);

/* Blocks that a cache of so many tokens has on a rank, in a layer that sees all and in one with a window. */
void orr__cache_blocks(const orr__pool *p, uint64_t tokens, uint64_t blocks[ORR__SIGHTS]);
/* Their bytes on a rank of a stage. */
uint64_t orr__cache_bytes(const orr__pool *p, uint32_t stage, const uint64_t blocks[ORR__SIGHTS]);

/* One more part of a sequence. */
void orr__pass_add(
    const orr__pool *p, orr__pass *pass, uint64_t tokens, uint64_t past, bool is_decode);
static inline uint64_t orr__pass_tokens(const orr__pass *pass)
{
    return pass->prompt_tokens + pass->decode_tokens;
}
/* From here on the pool's sizes are those of this pass; NULL: of none. */
void orr__pool_set_pass(orr__pool *p, const orr__pass *pass);
/* How long a stage takes for the pass at hand, in ps. */
uint64_t orr__stage_time(orr__pool *p, uint32_t stage);
/* The largest operation of the pass at hand. */
uint64_t orr__working_bytes(orr__pool *p);

/* Two times added, never more than 106 days. */
static inline uint64_t orr__later(uint64_t a, uint64_t b)
{
    return b < INT64_MAX - a ? a + b : INT64_MAX;
}

/* ---- what is done when ---- */

/* A request as a pool sees it. */
typedef struct orr__job {
    uint64_t at; /* ps: it can begin */
    uint64_t prompt, output;
    uint64_t first_at, done_at; /* ps: its first and its last token are there */
} orr__job;

/* A cache that comes before a turn (decode) or leaves after it (prefill).  Jobs are numbered in their replica. */
typedef struct orr__move {
    uint64_t job, tokens;
} orr__move;

/* One iteration of a replica.  Numbers only. */
typedef struct orr__turn {
    orr__pass pass;
    uint64_t needs;      /* the turn that made its newest tokens, from 1; 0: none did */
    uint64_t arrival_us; /* it does not begin before */
    uint64_t first_move, move_count;
} orr__turn;

/* All that a replica does.  Replicas whose jobs are alike share one. */
typedef struct orr__script {
    orr__turn *turns;
    size_t turn_count, turn_room;
    orr__move *moves;
    size_t move_count, move_room;
} orr__script;

typedef struct orr__schedule {
    orr__job *jobs; /* of all requests, in the order in which they came */
    size_t job_count;
    orr__script *scripts;
    size_t script_count;
    uint32_t *script_of; /* by replica */
} orr__schedule;

/* Tokens whose keys and values the pool keeps of a request in the end. */
uint64_t orr__cached_tokens(const orr__pool *p, uint64_t prompt, uint64_t output);
/* Job j goes to replica j % dp. */
orr_code orr__schedule_make(orr__pool *p, orr__schedule *s, orr_error *err);
void orr__schedule_fini(orr__schedule *s);

/* ---- caches that move ---- */

/* What a rank has in common with one of the other pool. */
typedef struct orr__share {
    uint32_t rank; /* of the other, in its replica: (stage * cp + context) * tp + tensor */
    uint32_t layers[ORR__SIGHTS]; /* that both have, by what they see */
    uint64_t heads;               /* of keys and values that both have; MLA: 1 */
    bool is_token;                /* not of the cache: the first token itself */
} orr__share;

typedef struct orr__shares {
    orr__share *list;
    size_t count, room;
} orr__shares;

/* Of the rank numbered as above; `other` is the other pool, is_sender: p is the one that prefills. */
orr_code orr__shares_of(const orr__pool *p,
                        const orr__pool *other,
                        bool is_sender,
                        uint32_t rank,
                        orr__shares *out,
                        orr_error *err);
/* Do two ranks send, or get, the same in the same order, if from others? */
bool orr__shares_alike(const orr__shares *a, const orr__shares *b);
uint64_t orr__share_bytes(const orr__pool *prefill, const orr__share *s, uint64_t tokens);

/* Replicas of the other pool that jobs of one replica go to, or come from.  They take turns: a replica's job k is the
 * (k / partners)-th with partner k % partners, on both sides. */
uint32_t orr__partners(const orr__pool *p, const orr__pool *other);
/* Which replica of the other pool that is. */
uint32_t orr__partner_replica(const orr__pool *p,
                              const orr__pool *other,
                              uint32_t replica,
                              uint32_t partner);

/* ---- nodes ---- */

/* Ranks of a stage that do the same but for their groups and peers. */
typedef struct orr__class_job {
    orr__pool *pool;
    const orr__pool *prefill; /* whose caches move; NULL: none do */
    const orr__script *script;
    uint32_t stage;
    const orr__shares *shares;
    uint32_t partners;
} orr__class_job;

/* Norm, head, and a token for each sequence that gets one. */
uint64_t orr__put_sampling(orr__pen *p, uint64_t input);
/* Bytes of what goes from stage to stage. */
uint64_t orr__stage_message(const orr__llm *g);

orr_code orr__write_class(
    const orr__class_job *job, orr_set *s, uint32_t *class_index, uint64_t *nodes, orr_error *err);

#endif
