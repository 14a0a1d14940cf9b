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

uint64_t orr__stage_message(const orr__llm *g)
{
    return g->thin_tokens * g->m->hidden * g->act;
}

/* Every rank gets all logits and draws the same tokens from them. */
uint64_t orr__put_sampling(orr__pen *p, uint64_t input)
{
    const orr__llm *g = p->g;
    const uint64_t sampled = g->pass->sampled, logits = sampled * orr__vocab_share(g);
    orr__steps s;
    orr__describe_head(g, &s);
    uint64_t at = orr__steps_forward(p, &s, "", 0, input);
    at = orr__put_collect(p, "head.gather_logits", ORR_COLL_ALL_GATHER, logits * g->act,
                          ORR__AXIS_TP, ORR__AFTER(at));
    return orr__put_elementwise(p, "sample", logits * g->opt.tp, 4, 1, ORR__AFTER(at));
}

typedef struct writer {
    const orr__class_job *job;
    orr__pen *p;
    const orr__llm *g;
    const orr__turn *turn;
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
    const orr__pass *pass = &w->turn->pass;
    const char *what = !orr__pass_tokens(pass) ? "idle"
                       : !pass->decode_tokens  ? "prefill"
                       : !pass->prompt_tokens  ? "decode"
                                               : "mixed";
    orr__pen_prefix(w->p, "%s%" PRIu64 ".", what, w->number);
}

static void name_layer(writer *w, uint64_t layer)
{
    const size_t used = strlen(w->p->prefix);
    snprintf(w->p->prefix + used, sizeof w->p->prefix - used, "layer%" PRIu64 ".", layer);
}

/* ---- caches ---- */

/* The slot of one of a partner's ranks. */
static orr__peer slot_of(const writer *w, uint64_t number, size_t share)
{
    const uint64_t partner = number % w->job->partners;
    return (orr__peer)(ORR__LLM_SLOTS + partner * w->job->shares->count + share);
}

static uint64_t move_tag(const writer *w, const orr__share *s, uint64_t number)
{
    return tag_of(s->is_token ? FIRST_TOKEN : CACHE, number / w->job->partners);
}

static void send_cache(writer *w, const orr__move *m, uint64_t after)
{
    const orr__shares *shares = w->job->shares;
    orr__pen_prefix(w->p, "job%" PRIu64 ".", m->job);
    for (size_t i = 0; i < shares->count; i++) {
        const orr__share *s = &shares->list[i];
        orr__put_send(w->p, s->is_token ? "token.send" : "kv.send",
                      orr__share_bytes(w->job->prefill, s, m->tokens), move_tag(w, s, m->job),
                      slot_of(w, m->job, i), ORR__AFTER(after));
    }
}

static void send_caches(writer *w, uint64_t after)
{
    const orr__turn *t = w->turn;
    const orr__script *s = w->job->script;
    if (w->job->pool->duty != ORR__DOES_PREFILL)
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
        orr__put_compute(w->p, "kv.ready", j->blocks, 8 * j->blocks, (orr__deps){j->ids, j->count});
    *j = (join){.ids = {id}, .count = 1};
}

static void join_add(writer *w, join *j, uint64_t id, uint64_t blocks)
{
    if (j->count == JOIN_MOST)
        join_end(w, j);
    j->ids[j->count++] = id;
    j->blocks += blocks;
}

static void receive_cache(writer *w, const orr__move *m, join *j)
{
    const orr__shares *shares = w->job->shares;
    const uint64_t block = w->job->pool->opt->kv_block;
    orr__pen_prefix(w->p, "job%" PRIu64 ".", m->job);
    for (size_t i = 0; i < shares->count; i++) {
        const orr__share *s = &shares->list[i];
        const uint64_t id =
            orr__put_receive(w->p, s->is_token ? "token.receive" : "kv.receive",
                             orr__share_bytes(w->job->prefill, s, m->tokens),
                             move_tag(w, s, m->job), slot_of(w, m->job, i), ORR__AFTER(0));
        join_add(w, j, id, s->is_token ? 1 : (m->tokens + block - 1) / block);
    }
}

/* The node after which the caches of new sequences are there; 0: there are none. */
static uint64_t receive_caches(writer *w)
{
    const orr__turn *t = w->turn;
    join j = {.count = 0};
    if (w->job->pool->duty != ORR__DOES_DECODE || t->move_count == 0)
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
    w->clock = orr__put_wait(w->p, "arrival", us - w->clock_us, ORR__AFTER(w->clock));
    w->clock_us = us;
    return w->clock;
}

static uint64_t begin(writer *w)
{
    const uint64_t caches = receive_caches(w);
    if (!is_first(w))
        return orr__put_receive(w->p, "receive", orr__stage_message(w->g),
                                tag_of(HIDDEN, w->number), ORR__PEER_PREVIOUS, ORR__AFTER(caches));
    const uint64_t arrival = w->turn->arrival_us ? wait_for_arrival(w) : 0;
    const uint64_t tokens = w->turn->needs ? w->tokens[w->turn->needs - 1] : 0;
    return orr__embedding_after(w->p, ORR__AFTER(tokens, caches, arrival));
}

static uint64_t layer_tag(const writer *w, uint64_t layer)
{
    return ((w->number - 1) * w->g->m->layers + layer) * ORR__RING_TAGS;
}

static uint64_t write_layers(writer *w, uint64_t at)
{
    const orr__stage *stage = &w->job->pool->stages[w->job->stage];
    for (uint64_t layer = stage->first; layer < stage->end && !w->p->b.code; layer++) {
        orr__steps s;
        if (w->g->tokens)
            orr__describe_layer(w->g, layer, &s);
        else
            orr__describe_idle_layer(w->g, layer, &s);
        name_turn(w);
        name_layer(w, layer);
        at = orr__steps_forward(w->p, &s, "", layer_tag(w, layer), at);
    }
    name_turn(w);
    return at;
}

/* What the last stage made goes back to the first. */
static void send_tokens(writer *w, uint64_t at)
{
    const uint64_t bytes = w->turn->pass.sampled * ORR__TOKEN_BYTES;
    if (is_first(w))
        w->tokens[w->number - 1] = at;
    else
        orr__put_send(w->p, "token.send", bytes, tag_of(TOKENS, w->number), ORR__PEER_NEXT,
                      ORR__AFTER(at));
}

static void receive_tokens(writer *w)
{
    const uint64_t bytes = w->turn->pass.sampled * ORR__TOKEN_BYTES;
    w->newest = orr__put_receive(w->p, "token.receive", bytes, tag_of(TOKENS, w->number),
                                 ORR__PEER_PREVIOUS, ORR__AFTER(w->newest));
    w->tokens[w->number - 1] = w->newest;
}

static uint64_t end(writer *w, uint64_t at)
{
    const bool samples = w->turn->pass.sampled > 0;
    /* Ranks that prefill only do not go on with what they made. */
    const bool returns = samples && w->job->pool->duty != ORR__DOES_PREFILL;
    if (is_last(w) && samples)
        at = orr__put_sampling(w->p, at);
    if (is_last(w) && returns)
        send_tokens(w, at);
    if (!is_last(w))
        orr__put_send(w->p, "send", orr__stage_message(w->g), tag_of(HIDDEN, w->number),
                      ORR__PEER_NEXT, ORR__AFTER(at));
    if (is_first(w) && !is_last(w) && returns)
        receive_tokens(w);
    return at;
}

static void write_turn(writer *w)
{
    orr__pool_set_pass(w->job->pool, &w->turn->pass);
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

orr_code orr__write_class(
    const orr__class_job *job, orr_set *s, uint32_t *class_index, uint64_t *nodes, orr_error *err)
{
    const orr__script *script = job->script;
    orr__pen pen;
    writer w = {.job = job, .p = &pen, .g = &job->pool->g};
    w.tokens = orr_alloc(script->turn_count + 1, sizeof *w.tokens);
    orr__pen_open(&pen, &job->pool->g, err);
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
        orr__put_compute(&pen, "idle", 1, 1, ORR__AFTER(0));
    *nodes += pen.b.next_id - 1;
    orr_free(w.tokens);
    orr__pool_set_pass(job->pool, NULL);
    return orr__pen_close(&pen, s, class_index);
}
