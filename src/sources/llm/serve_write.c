/* SPDX-License-Identifier: Apache-2.0 */
/* serve_write.c - the nodes of one class of ranks: a replica's turns, one after the other, as one stage does them.
 *
 * A turn waits for the one before it; in the first stage for the tokens it feeds as well, which the last stage sends
 * back, and for the requests that came; in ranks that only decode for the caches of sequences that are new.  Sequences
 * whose cache moves leave after their turn, while the next one goes on. */
#include "layer_steps.h"
#include "serve_impl.h"

#include <inttypes.h>
#include <stdio.h>

enum { JOIN_MOST = 60 };

/* Tags of messages between two ranks: which turn or job, and what. */
typedef enum message { HIDDEN, TOKENS, CACHE, FIRST_TOKEN, MESSAGES } message;

static uint64_t tag_of(message what, uint64_t number)
{
    return number * MESSAGES + what;
}

uint64_t llm_stage_message(const llm_job *g)
{
    return g->thin_tokens * g->m->hidden * g->act;
}

/* Every rank gets all logits and draws the same tokens from them. */
uint64_t llm_put_sampling(llm_pen *p, uint64_t input)
{
    const llm_job *g = p->g;
    const uint64_t sampled = g->pass->sampled, logits = sampled * llm_vocab_share(g);
    llm_steps s;
    llm_describe_head(g, &s);
    uint64_t at = llm_steps_forward(p, &s, "", 0, input);
    at = llm_put_collect(p, "head.gather_logits", ORR_COLL_ALL_GATHER, logits * g->act, LLM_AXIS_TP,
                         LLM_AFTER(at));
    return llm_put_elementwise(p, "sample", logits * g->opt.tp, 4, 1, LLM_AFTER(at));
}

typedef struct writer {
    const llm_class_job *job;
    llm_pen *p;
    const llm_job *g;
    const llm_turn *turn;
    uint64_t number; /* of the turn, from 1 */
    uint64_t last;   /* node with which the turn before ended */
    uint64_t clock;  /* node after which the latest arrival has come */
    uint64_t clock_us;
    uint64_t newest;  /* node that received the newest tokens */
    uint64_t *tokens; /* by turn: the node after which its tokens are there */
} writer;

static bool is_first(const writer *w)
{
    return w->job->stage == 0;
}

static bool is_last(const writer *w)
{
    return w->job->stage + 1 == w->job->pool->ranks.pp;
}

static void name_turn(writer *w)
{
    const llm_pass *pass = &w->turn->pass;
    const char *what = !llm_pass_tokens(pass) ? "idle"
                       : !pass->decode_tokens ? "prefill"
                       : !pass->prompt_tokens ? "decode"
                                              : "mixed";
    llm_pen_prefix(w->p, "%s%" PRIu64 ".", what, w->number);
}

static void name_layer(writer *w, uint64_t layer)
{
    const size_t used = strlen(w->p->prefix);
    snprintf(w->p->prefix + used, sizeof w->p->prefix - used, "layer%" PRIu64 ".", layer);
}

/* ---- caches ---- */

/* The slot of one of a partner's ranks. */
static llm_peer slot_of(const writer *w, uint64_t number, size_t share)
{
    const uint64_t partner = number % w->job->partners;
    return (llm_peer)(LLM_SLOTS + partner * w->job->shares->count + share);
}

static uint64_t move_tag(const writer *w, const llm_share *s, uint64_t number)
{
    return tag_of(s->is_token ? FIRST_TOKEN : CACHE, number / w->job->partners);
}

static void send_cache(writer *w, const llm_move *m, uint64_t after)
{
    const llm_shares *shares = w->job->shares;
    llm_pen_prefix(w->p, "job%" PRIu64 ".", m->job);
    for (size_t i = 0; i < shares->count; i++) {
        const llm_share *s = &shares->list[i];
        llm_put_send(w->p, s->is_token ? "token.send" : "kv.send",
                     llm_share_bytes(w->job->prefill, s, m->tokens), move_tag(w, s, m->job),
                     slot_of(w, m->job, i), LLM_AFTER(after));
    }
}

static void send_caches(writer *w, uint64_t after)
{
    const llm_turn *t = w->turn;
    const llm_script *s = w->job->script;
    if (w->job->pool->duty != LLM_DOES_PREFILL)
        return;
    for (uint64_t i = 0; i < t->move_count; i++)
        send_cache(w, &s->moves[t->first_move + i], after);
}

/* Nodes that become one: a look at the tables of blocks, which have a number for each. */
typedef struct join {
    uint64_t ids[JOIN_MOST];
    size_t count;
    uint64_t blocks;
} join;

static void join_end(writer *w, join *j)
{
    if (j->count == 0)
        return;
    const uint64_t id =
        llm_put_compute(w->p, "kv.ready", j->blocks, 8 * j->blocks, (llm_deps){j->ids, j->count});
    *j = (join){.ids = {id}, .count = 1};
}

static void join_add(writer *w, join *j, uint64_t id, uint64_t blocks)
{
    if (j->count == JOIN_MOST)
        join_end(w, j);
    j->ids[j->count++] = id;
    j->blocks += blocks;
}

static void receive_cache(writer *w, const llm_move *m, join *j)
{
    const llm_shares *shares = w->job->shares;
    const uint64_t block = w->job->pool->opt->kv_block;
    llm_pen_prefix(w->p, "job%" PRIu64 ".", m->job);
    for (size_t i = 0; i < shares->count; i++) {
        const llm_share *s = &shares->list[i];
        const uint64_t id =
            llm_put_receive(w->p, s->is_token ? "token.receive" : "kv.receive",
                            llm_share_bytes(w->job->prefill, s, m->tokens), move_tag(w, s, m->job),
                            slot_of(w, m->job, i), LLM_AFTER(0));
        join_add(w, j, id, s->is_token ? 1 : (m->tokens + block - 1) / block);
    }
}

/* The node after which the caches of new sequences are there; 0: there are none. */
static uint64_t receive_caches(writer *w)
{
    const llm_turn *t = w->turn;
    join j = {.count = 0};
    if (w->job->pool->duty != LLM_DOES_DECODE || t->move_count == 0)
        return 0;
    for (uint64_t i = 0; i < t->move_count; i++)
        receive_cache(w, &w->job->script->moves[t->first_move + i], &j);
    name_turn(w);
    join_end(w, &j);
    return j.ids[0];
}

/* ---- a turn ---- */

static uint64_t wait_for_arrival(writer *w)
{
    const uint64_t us = w->turn->arrival_us;
    if (!is_first(w) || us <= w->clock_us)
        return w->clock;
    w->clock = llm_put_wait(w->p, "arrival", us - w->clock_us, LLM_AFTER(w->clock));
    w->clock_us = us;
    return w->clock;
}

static uint64_t begin(writer *w)
{
    const uint64_t caches = receive_caches(w);
    if (!is_first(w))
        return llm_put_receive(w->p, "receive", llm_stage_message(w->g), tag_of(HIDDEN, w->number),
                               LLM_PEER_PREVIOUS, LLM_AFTER(caches));
    const uint64_t arrival = w->turn->arrival_us ? wait_for_arrival(w) : 0;
    const uint64_t tokens = w->turn->needs ? w->tokens[w->turn->needs - 1] : 0;
    return llm_embedding_after(w->p, LLM_AFTER(tokens, caches, arrival));
}

static uint64_t layer_tag(const writer *w, uint64_t layer)
{
    return ((w->number - 1) * w->g->m->layers + layer) * LLM_RING_TAGS;
}

static uint64_t write_layers(writer *w, uint64_t at)
{
    const llm_stage *stage = &w->job->pool->stages[w->job->stage];
    for (uint64_t layer = stage->first; layer < stage->end && !w->p->b.code; layer++) {
        llm_steps s;
        if (w->g->tokens)
            llm_describe_layer(w->g, layer, &s);
        else
            llm_describe_idle_layer(w->g, layer, &s);
        name_turn(w);
        name_layer(w, layer);
        at = llm_steps_forward(w->p, &s, "", layer_tag(w, layer), at);
    }
    name_turn(w);
    return at;
}

/* What the last stage made goes back to the first. */
static void send_tokens(writer *w, uint64_t at)
{
    const uint64_t bytes = w->turn->pass.sampled * LLM_TOKEN_BYTES;
    if (is_first(w))
        w->tokens[w->number - 1] = at;
    else
        llm_put_send(w->p, "token.send", bytes, tag_of(TOKENS, w->number), LLM_PEER_NEXT,
                     LLM_AFTER(at));
}

static void receive_tokens(writer *w)
{
    const uint64_t bytes = w->turn->pass.sampled * LLM_TOKEN_BYTES;
    w->newest = llm_put_receive(w->p, "token.receive", bytes, tag_of(TOKENS, w->number),
                                LLM_PEER_PREVIOUS, LLM_AFTER(w->newest));
    w->tokens[w->number - 1] = w->newest;
}

static uint64_t end(writer *w, uint64_t at)
{
    const bool samples = w->turn->pass.sampled > 0;
    /* Ranks that prefill only do not go on with what they made. */
    const bool returns = samples && w->job->pool->duty != LLM_DOES_PREFILL;
    if (is_last(w) && samples)
        at = llm_put_sampling(w->p, at);
    if (is_last(w) && returns)
        send_tokens(w, at);
    if (!is_last(w))
        llm_put_send(w->p, "send", llm_stage_message(w->g), tag_of(HIDDEN, w->number),
                     LLM_PEER_NEXT, LLM_AFTER(at));
    if (is_first(w) && !is_last(w) && returns)
        receive_tokens(w);
    return at;
}

static void write_turn(writer *w)
{
    llm_pool_set_pass(w->job->pool, &w->turn->pass);
    name_turn(w);
    if (w->g->tokens == 0) {
        w->last = write_layers(w, w->last);
        return;
    }
    uint64_t at = begin(w);
    at = write_layers(w, at);
    w->last = w->p->barrier[0] = end(w, at);
    send_caches(w, w->last);
}

orr_code llm_write_class(
    const llm_class_job *job, orr_set *s, uint32_t *class_index, uint64_t *nodes, orr_error *err)
{
    const llm_script *script = job->script;
    llm_pen pen;
    writer w = {.job = job, .p = &pen, .g = &job->pool->g};
    w.tokens = orr_alloc(script->turn_count + 1, sizeof *w.tokens);
    llm_pen_open(&pen, &job->pool->g, err);
    if (!w.tokens)
        pen.b.code = orr_no_memory(err);
    if (job->shares)
        pen.slot_count += (uint32_t)(job->partners * job->shares->count);
    for (size_t i = 0; i < script->turn_count && !pen.b.code; i++) {
        w.turn = &script->turns[i];
        w.number = i + 1;
        write_turn(&w);
    }
    if (pen.b.next_id == 1) /* no request came here: a trace has at least one node */
        llm_put_compute(&pen, "idle", 1, 1, LLM_AFTER(0));
    *nodes += pen.b.next_id - 1;
    orr_free(w.tokens);
    llm_pool_set_pass(job->pool, NULL);
    return llm_pen_close(&pen, s, class_index);
}
