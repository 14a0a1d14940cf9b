/* SPDX-License-Identifier: Apache-2.0 */
/* serve.c - the nodes of one class of ranks: a replica's turns, one after the other, as one stage
 * does them.
 *
 * A turn waits for the previous one; in the first stage also for its input tokens, which the last
 * stage sends back, and for arrivals; in decode ranks for the KV caches of new sequences.  KV
 * caches are sent after their turn, while the next one runs. */
#include <orrery/lab/units.h>

#include "base/memory/sort.h"
#include "llm_impl.h"
#include "serve_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

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
uint64_t llm_put_sampling(llm_pen *p, const llm_tokens *tokens, uint64_t input)
{
    const llm_job *g = p->g;
    const uint64_t sampled = g->pass->sampled, logits = sampled * llm_vocab_share(g);
    llm_steps s;
    llm_describe_head(g, &s);
    uint64_t at = llm_steps_forward(p, &s, "", 0, input);
    at = llm_put_collect(p, "head.gather_logits", ORR_COLL_ALL_GATHER, logits * g->act, LLM_AXIS_TP,
                         LLM_AFTER(at));
    p->tokens = tokens;
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
        at = llm_put_sampling(w->p, &w->turn->tokens, at);
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

static orr_code llm_write_class(
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

/* From options to the traces of all ranks: pools, their schedules, classes of equal ranks, the set.
 *
 * Prefill jobs are scheduled first; after their caches have been transferred they become decode
 * jobs.  Ranks form a class if their replicas have the same script, they are in the same stage, and
 * transfer the same parts of caches: the cost depends on distinct scripts, not on ranks. */

enum { POOLS = 2 };

/* What a pool's ranks do with caches that move, as far as it differs. */
typedef struct patterns {
    llm_shares *of; /* by rank of a replica */
    uint32_t *same; /* by rank: the first rank of its stage that does the same */
} patterns;

typedef struct server {
    const orr_model *m;
    orr_serve_options opt; /* complete */
    llm_pool pools[POOLS];
    unsigned pool_count;
    llm_schedule schedules[POOLS];
    patterns moves[POOLS];
    llm_network *network; /* of the machine; NULL: rates */
    orr_set *set;
    orr_serve_report report;
    orr_error *err;
} server;

static uint32_t ranks_of_replica(const llm_pool *p)
{
    return p->ranks.tp * p->ranks.cp * p->ranks.pp;
}

static const llm_pool *other_pool(const server *v, unsigned i)
{
    return v->pool_count == POOLS ? &v->pools[POOLS - 1 - i] : NULL;
}

/* ---- pools ---- */

static llm_duty duty_of(const server *v, unsigned i)
{
    if (v->pool_count == POOLS)
        return i == 0 ? LLM_DOES_PREFILL : LLM_DOES_DECODE;
    return v->opt.phase == ORR_SERVE_PREFILL  ? LLM_DOES_PREFILL
           : v->opt.phase == ORR_SERVE_DECODE ? LLM_DOES_DECODE
                                              : LLM_DOES_ALL;
}

static orr_code open_pools(server *v)
{
    uint32_t first_rank = 0;
    uint64_t group = 1;
    orr_code code = llm_network_open(&v->opt.machine, &v->network, v->err);
    v->pool_count = serve_is_split(&v->opt) ? POOLS : 1;
    for (unsigned i = 0; i < v->pool_count && !code; i++) {
        llm_pool *p = &v->pools[i];
        *p = (llm_pool){.m = v->m, .opt = &v->opt, .hands_over = v->pool_count == POOLS};
        p->duty = duty_of(v, i);
        code = llm_pool_init(p, i == 0 ? &v->opt.ranks : &v->opt.decode, v->err);
        if (!code)
            group = llm_layout_init_serving(&p->g.layout, &p->g.opt, first_rank, group);
        first_rank += p->report.ranks;
    }
    for (unsigned i = 0; i < v->pool_count && !code; i++) {
        v->pools[i].deviations = orr_highest_of(first_rank);
        code = llm_pool_place(&v->pools[i], v->network, v->err);
    }
    return code;
}

static uint64_t stage_of_least_room(const llm_pool *p, const uint64_t blocks[LLM_SIGHTS])
{
    for (uint32_t i = 0; i < p->ranks.pp; i++)
        if (llm_cache_bytes(p, i, blocks) > p->stages[i].kv_room)
            return i;
    return UINT64_MAX;
}

/* A request that does not fit alone never would. */
static orr_code check_room(const server *v, const llm_pool *p, size_t number, const serve_job *j)
{
    uint64_t blocks[LLM_SIGHTS];
    llm_cache_blocks(p, llm_cached_tokens(p, j->prompt, j->output), blocks);
    const uint64_t stage = stage_of_least_room(p, blocks);
    if (stage == UINT64_MAX)
        return ORR_OK;
    const llm_stage *s = &p->stages[stage];
    char a[ORR_UNIT_ROOM], b[ORR_UNIT_ROOM];
    if (s->kv_room == 0)
        return orr_fail(v->err, ORR_EUSAGE, NULL,
                        "the weights of %s take %s per rank, but 90 %% of its memory is %s: "
                        "use more tp or pp, or more memory",
                        v->m->name, orr_bytes_text(s->weight_bytes, a),
                        orr_bytes_text(v->opt.device_bytes / 10 * 9, b));
    return orr_fail(v->err, ORR_EUSAGE, NULL,
                    "request %zu: its cache of %" PRIu64
                    " tokens takes %s per rank, but there is room for %s",
                    number, llm_cached_tokens(p, j->prompt, j->output),
                    orr_bytes_text(llm_cache_bytes(p, (uint32_t)stage, blocks), a),
                    orr_bytes_text(s->kv_room, b));
}

/* ---- schedules ---- */

static orr_serve_request request_at(const server *v, size_t i)
{
    if (v->opt.requests)
        return v->opt.requests[i];
    return (orr_serve_request){.prompt = v->opt.prompt, .output = v->opt.output};
}

static size_t request_count(const server *v)
{
    return v->opt.requests ? v->opt.request_count : (size_t)v->opt.batch;
}

typedef struct sent_cache {
    uint64_t at; /* ps: the last of it has been sent */
    size_t job;
} sent_cache;

static int compare_sent(const void *a, const void *b)
{
    const sent_cache *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->job < y->job ? -1 : x->job > y->job;
}

/* When jobs of the decode ranks can begin: their caches are there.  Several prefill replicas may
 * send to one decode replica, which receives while they send, one cache after another. */
static orr_code wait_for_caches(server *v)
{
    llm_schedule *s = &v->schedules[1];
    const llm_pool *p = &v->pools[1];
    sent_cache *list = orr_alloc(s->job_count + 1, sizeof *list);
    uint64_t *link_free = orr_alloc(p->ranks.dp, sizeof *link_free);
    for (size_t i = 0; list && i < s->job_count; i++)
        list[i] = (sent_cache){v->schedules[0].jobs[i].done_at, i};
    if (list && link_free)
        orr_sort(list, s->job_count, sizeof *list, compare_sent);
    for (size_t i = 0; list && link_free && i < s->job_count; i++) {
        serve_job *j = &s->jobs[list[i].job];
        uint64_t blocks[LLM_SIGHTS], *at = &link_free[list[i].job % p->ranks.dp];
        j->at = list[i].at;
        if (j->output == 1)
            continue;
        llm_cache_blocks(p, j->prompt, blocks);
        const uint64_t earliest = llm_later(*at, llm_move_time(p, blocks));
        *at = j->at = j->at > earliest ? j->at : earliest;
    }
    const bool ok = list && link_free;
    orr_free(list);
    orr_free(link_free);
    return ok ? ORR_OK : orr_no_memory(v->err);
}

static orr_code make_schedule(server *v, unsigned pool)
{
    llm_schedule *s = &v->schedules[pool];
    orr_code code = ORR_OK;
    s->job_count = request_count(v);
    s->only_figures = v->opt.only_figures;
    s->jobs = orr_alloc(s->job_count, sizeof *s->jobs);
    if (!s->jobs)
        return orr_no_memory(v->err);
    for (size_t i = 0; i < s->job_count && !code; i++) {
        const orr_serve_request q = request_at(v, i);
        s->jobs[i] =
            (serve_job){.at = q.arrival_us * 1000000, .prompt = q.prompt, .output = q.output};
        code = check_room(v, &v->pools[pool], i + 1, &s->jobs[i]);
    }
    if (!code && pool == 1)
        code = wait_for_caches(v);
    return code ? code : llm_schedule_make(&v->pools[pool], s, v->err);
}

/* ---- who moves what ---- */

static orr_code find_patterns(server *v, unsigned pool)
{
    llm_pool *p = &v->pools[pool];
    patterns *m = &v->moves[pool];
    const uint32_t count = ranks_of_replica(p), stage = count / p->ranks.pp;
    orr_code code = ORR_OK;
    m->of = orr_alloc(count, sizeof *m->of);
    m->same = orr_alloc(count, sizeof *m->same);
    if (!m->of || !m->same)
        return orr_no_memory(v->err);
    for (uint32_t i = 0; i < count && !code; i++) {
        m->same[i] = i - i % stage;
        if (v->pool_count < POOLS)
            continue;
        code = llm_shares_of(p, other_pool(v, pool), pool == 0, i, &m->of[i], v->err);
        while (m->same[i] < i && !llm_shares_alike(&m->of[m->same[i]], &m->of[i]))
            m->same[i]++;
    }
    return code;
}

static void count_moves(server *v)
{
    const llm_pool *p = &v->pools[0];
    for (size_t i = 0; v->pool_count == POOLS && i < request_count(v); i++) {
        const orr_serve_request q = request_at(v, i);
        for (uint32_t r = 0; r < ranks_of_replica(p) && q.output > 1; r++) {
            const llm_shares *s = &v->moves[0].of[r];
            for (size_t k = 0; k < s->count; k++) {
                v->report.moved_messages += !s->list[k].is_token;
                v->report.moved_bytes +=
                    s->list[k].is_token ? 0 : llm_share_bytes(p, &s->list[k], q.prompt);
            }
        }
    }
}

/* ---- classes and ranks ---- */

/* classes[script * ranks of a replica + rank]; only those of first ranks are filled in. */
static orr_code write_classes(server *v, unsigned pool, uint32_t *classes)
{
    llm_pool *p = &v->pools[pool];
    const uint32_t count = ranks_of_replica(p);
    const llm_schedule *s = &v->schedules[pool];
    const bool moves = v->pool_count == POOLS;
    orr_code code = ORR_OK;
    for (size_t i = 0; i < s->script_count; i++)
        for (uint32_t r = 0; r < count && !code; r++) {
            const llm_class_job job = {.pool = p,
                                       .prefill = &v->pools[0],
                                       .script = &s->scripts[i],
                                       .stage = r / (count / p->ranks.pp),
                                       .shares = moves ? &v->moves[pool].of[r] : NULL,
                                       .partners =
                                           moves ? llm_partners(p, other_pool(v, pool)) : 1};
            if (v->moves[pool].same[r] == r)
                code = llm_write_class(&job, v->set, &classes[i * count + r], &v->report.nodes,
                                       v->err);
        }
    return code;
}

/* A rank by its place in a replica. */
static int64_t rank_at(const llm_pool *p, uint32_t replica, uint32_t rank)
{
    const uint32_t stage = ranks_of_replica(p) / p->ranks.pp;
    return (int64_t)p->g.layout.first_rank +
           ((int64_t)(rank / stage) * p->ranks.dp + replica) * stage + rank % stage;
}

static void fill_peers(
    const server *v, unsigned pool, uint32_t replica, uint32_t rank, int64_t *out)
{
    const llm_pool *p = &v->pools[pool], *other = other_pool(v, pool);
    const llm_shares *s = &v->moves[pool].of[rank];
    const uint32_t partners = other ? llm_partners(p, other) : 0;
    const uint32_t turn = other && pool == 0 ? llm_sender_turn(p, other, replica, rank) : 0;
    for (uint32_t k = 0; k < partners; k++)
        for (size_t i = 0; i < s->count; i++)
            *out++ = rank_at(other, llm_partner_replica(p, other, replica, k),
                             llm_turned_rank(s, i, turn));
}

static size_t slots_most(const server *v, unsigned pool)
{
    const llm_pool *p = &v->pools[pool], *other = other_pool(v, pool);
    const size_t partners = other ? llm_partners(p, other) : 0;
    size_t most = 0;
    for (uint32_t r = 0; r < ranks_of_replica(p); r++)
        most = v->moves[pool].of[r].count > most ? v->moves[pool].of[r].count : most;
    return LLM_SLOTS + partners * most;
}

static orr_code add_ranks(server *v, unsigned pool, const uint32_t *classes)
{
    const llm_pool *p = &v->pools[pool];
    const uint32_t count = ranks_of_replica(p), stage = count / p->ranks.pp, dp = p->ranks.dp;
    int64_t *values = orr_alloc(slots_most(v, pool), sizeof *values);
    orr_code code = values ? ORR_OK : orr_no_memory(v->err);
    for (uint32_t r = 0; r < p->report.ranks && !code; r++) {
        const uint32_t replica = r / stage % dp, rank = r / (stage * dp) * stage + r % stage;
        const size_t script = v->schedules[pool].script_of[replica];
        llm_layout_values(&p->g.layout, r, values);
        fill_peers(v, pool, replica, rank, values + LLM_SLOTS);
        code = orr_set_add_rank_values(v->set, classes[script * count + v->moves[pool].same[rank]],
                                       0, values, v->err);
    }
    orr_free(values);
    return code;
}

static orr_code too_many(const server *v, uint64_t passes)
{
    return orr_fail(v->err, ORR_EUSAGE, NULL,
                    "%" PRIu64 " passes through a layer, in traces that differ: more than the "
                    "%" PRIu64 " that can be kept; figures alone (no output) have no such limit",
                    passes, LLM_MOST_LAYER_PASSES);
}

/* Replicas with scripts of their own have classes of their own. */
static uint64_t count_passes(const server *v, unsigned pool)
{
    const llm_schedule *s = &v->schedules[pool];
    const uint32_t count = ranks_of_replica(&v->pools[pool]);
    uint64_t turns = 0, kinds = 0, passes;
    for (size_t i = 0; i < s->script_count; i++)
        turns += s->scripts[i].turn_count;
    for (uint32_t r = 0; r < count; r++)
        kinds += v->moves[pool].same[r] == r;
    const uint64_t layers = (v->m->layers + v->pools[pool].ranks.pp - 1) / v->pools[pool].ranks.pp;
    return __builtin_mul_overflow(turns, kinds * layers, &passes) ? UINT64_MAX : passes;
}

/* Would large traces be made that nobody needs? */
static bool is_for_nobody(const server *v)
{
    bool is_large = false;
    if (v->opt.no_traces)
        return true;
    for (unsigned i = 0; i < v->pool_count; i++)
        is_large |= v->schedules[i].is_dropped || count_passes(v, i) > LLM_FEW_LAYER_PASSES;
    return v->opt.only_figures && is_large;
}

static orr_code add_pool(server *v, unsigned pool)
{
    const size_t count = ranks_of_replica(&v->pools[pool]);
    const uint64_t passes = count_passes(v, pool);
    if (passes > LLM_MOST_LAYER_PASSES)
        return too_many(v, passes);
    uint32_t *classes = orr_alloc(count * (v->schedules[pool].script_count + 1), sizeof *classes);
    if (!classes)
        return orr_no_memory(v->err);
    orr_code code = write_classes(v, pool, classes);
    if (!code)
        code = add_ranks(v, pool, classes);
    orr_free(classes);
    return code;
}

static orr_code make_set(server *v)
{
    orr_code code = orr_set_create(&v->set, v->err);
    for (unsigned i = 0; i < v->pool_count && !code; i++)
        code = add_pool(v, i);
    for (unsigned i = 0; i < v->pool_count && !code; i++)
        code = llm_layout_add_groups(&v->pools[i].g.layout, v->set, v->err);
    return code;
}

/* ---- the report ---- */

static void report_times(server *v)
{
    const llm_schedule *first = &v->schedules[0], *last = &v->schedules[v->pool_count - 1];
    unsigned __int128 waits = 0, between = 0;
    uint64_t gaps = 0;
    orr_serve_report *r = &v->report;
    for (size_t i = 0; i < first->job_count; i++) {
        const serve_job *a = &first->jobs[i], *b = &last->jobs[i];
        const uint64_t wait = a->first_at - a->at;
        const uint64_t made = v->opt.phase == ORR_SERVE_PREFILL ? 1 : a->output;
        const uint64_t end = made > 1 ? b->done_at : a->first_at;
        waits += wait;
        between += end - a->first_at;
        gaps += made - 1;
        r->prompt_tokens += a->prompt;
        r->output_tokens += made;
        r->first_token_most =
            (int64_t)wait > r->first_token_most ? (int64_t)wait : r->first_token_most;
        r->time = (int64_t)end > r->time ? (int64_t)end : r->time;
    }
    r->first_token_mean = (int64_t)(waits / first->job_count);
    r->next_token_mean = gaps ? (int64_t)(between / gaps) : 0;
}

/* All stages and iterations have the same error: what a request waits for is the same compute and
 * communication. */
static void report_deviations(server *v)
{
    llm_certainty all = {0};
    orr_serve_report *r = &v->report;
    uint64_t latest = 0;
    uint32_t ranks = 0;
    for (unsigned i = 0; i < v->pool_count; i++) {
        const llm_certainty *c = &v->pools[i].certainty;
        all.all += c->all;
        all.moved += c->moved;
        all.low += c->low;
        all.high += c->high;
        ranks += v->pools[i].report.ranks;
    }
    if (!(all.all > 0))
        return;
    const job_errors e =
        orr__job_errors_of(all.all, all.moved, all.low, all.high, ranks > 1, v->m->experts > 0);
    r->low_share = e.low < all.all ? e.low / all.all : 1;
    r->high_share = e.high / all.all;
    r->own_low_share = e.own_low < all.all ? e.own_low / all.all : 1;
    r->own_high_share = e.own_high / all.all;
    for (size_t i = 0; i < v->schedules[0].job_count; i++)
        latest = request_at(v, i).arrival_us > latest ? request_at(v, i).arrival_us : latest;
    /* Requests arrive when they do, however fast they are served. */
    const double least = (double)latest * 1e6, low = (double)r->time * (1 - r->low_share);
    r->time_low = (orr_ps)(low > least ? low : least);
    const double high = (double)r->time * (1 + r->high_share);
    r->time_high = high < (double)INT64_MAX ? (orr_ps)high : INT64_MAX;
}

static void make_report(server *v)
{
    v->report.requests = request_count(v);
    for (unsigned i = 0; i < v->pool_count; i++) {
        orr_serve_pool *p = &v->pools[i].report;
        p->fits = p->weight_bytes + p->kv_peak + p->working_bytes <= v->opt.device_bytes;
        v->report.pools[i] = *p;
    }
    report_times(v);
    report_deviations(v);
    count_moves(v);
}

/* ---- everything ---- */

static void close_server(server *v)
{
    for (unsigned i = 0; i < POOLS; i++) {
        const uint32_t count = v->moves[i].of ? ranks_of_replica(&v->pools[i]) : 0;
        for (uint32_t r = 0; r < count; r++)
            orr_free(v->moves[i].of[r].list);
        orr_free(v->moves[i].of);
        orr_free(v->moves[i].same);
        llm_schedule_fini(&v->schedules[i]);
        llm_pool_fini(&v->pools[i]);
    }
    llm_network_close(v->network);
    orr_set_close(v->set);
}

orr_code orr_serve(const orr_model *m,
                   const orr_serve_options *opt,
                   orr_set **out,
                   orr_serve_report *report,
                   orr_error *err)
{
    server v = {.m = m, .opt = *opt, .err = err};
    *out = NULL;
    orr_code code = orr_serve_complete(m, &v.opt, err);
    if (!code)
        code = open_pools(&v);
    for (unsigned i = 0; i < v.pool_count && !code; i++)
        code = make_schedule(&v, i);
    const bool has_moves = v.pool_count == POOLS || !v.opt.no_traces; /* the report counts them */
    for (unsigned i = 0; i < v.pool_count && !code && has_moves; i++)
        code = find_patterns(&v, i);
    if (!code && !is_for_nobody(&v))
        code = make_set(&v);
    if (!code) {
        make_report(&v);
        if (report)
            *report = v.report;
        *out = v.set;
        v.set = NULL;
    }
    close_server(&v);
    return code;
}
