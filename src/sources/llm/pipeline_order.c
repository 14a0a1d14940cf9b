/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_order.c - in which order a pipeline rank takes its forward and backward passes.
 *
 * GPipe: all forward passes, then all backward passes.
 * 1F1B: as many forward passes as there are stages behind, then one backward for each forward: a
 *   stage holds the activations of at most pp - rank micro-batches.
 * Interleaved: 1F1B over chunks of layers; micro-batches go in rounds of pp, chunk by chunk.
 * Zero bubble (ZB-H1): backward passes are cut in two, and the gradients of weights wait `rank`
 *   micro-batches, so that no stage holds more than pp of them; they fill what would be a gap at
 *   the end.
 * ZB-V, DualPipeV: two chunks a rank, and the second half of the layers comes back the way the
 *   first half went, so rank 0 has both ends.  A rank then has its first backward pass soon after
 *   its first forward pass.  With forward, backward and weight passes of equal length, ZB-V leaves
 *   no gap between a rank's first and last pass and holds what 1F1B holds on rank 0
 *   (tests/unit/test_pipeline_order.c).  DualPipeV pairs a forward with a backward pass, so that
 *   one's all-to-all travels while the other computes, and cuts backward passes only at its ends.
 * DualPipe: the same order with two copies of the weights: a rank has its own stage and that of the
 *   rank opposite, and micro-batches start at both ends, half of them each.  Ranks opposite each
 *   other have the same order, so what they reduce together they reduce in the same order.
 *   Sources: Qi et al., Zero Bubble Pipeline Parallelism, 2023; DeepSeek-AI, DualPipe, 2025.
 * Own: from a file, one line per rank:
 *
 *     placement: v            # or loop, as interleaved; only said with several chunks
 *     0: F0.0 F1.0 F0.1 B0.1 W0.1 B0.0 ...
 *
 *   F, B and W: forward, backward, gradients of weights of a micro-batch and a chunk.  A backward
 *   pass without a W of its own makes all gradients. */
#include "base/io/input.h"
#include "base/text/text.h"
#include "llm_impl.h"

#include <inttypes.h>
#include <stdio.h>

enum { MICRO_BATCHES_MOST = 1 << 20 };

typedef struct list {
    llm_task *tasks;
    size_t count;
} list;

static void add(list *l, llm_task_kind kind, uint32_t chunk, uint64_t micro_batch)
{
    l->tasks[l->count++] = (llm_task){.kind = kind, .chunk = chunk, .micro_batch = micro_batch};
}

/* A backward pass whose weights' gradients follow as a task of their own. */
static void add_cut(list *l, uint32_t chunk, uint64_t micro_batch)
{
    add(l, LLM_BACKWARD, chunk, micro_batch);
    l->tasks[l->count - 1].is_cut = true;
}

/* The last one would go beside the first backward pass, which waits for it on the next stage, if
 * there are no more forward passes than these. */
static void add_warm(list *l, uint32_t chunk, uint64_t micro_batch)
{
    add(l, LLM_FORWARD, chunk, micro_batch);
    l->tasks[l->count - 1].is_warm = true;
}

static void add_gpipe(list *l, uint64_t batches)
{
    for (uint64_t i = 0; i < batches; i++)
        add(l, LLM_FORWARD, 0, i);
    for (uint64_t i = batches; i-- > 0;)
        add(l, LLM_BACKWARD, 0, i);
}

static void add_1f1b(list *l, uint64_t batches, uint64_t ahead)
{
    const uint64_t warm = ahead < batches ? ahead : batches;
    for (uint64_t i = 0; i < warm; i++)
        add_warm(l, 0, i);
    for (uint64_t i = 0; i < batches; i++) {
        if (warm + i < batches)
            add(l, LLM_FORWARD, 0, warm + i);
        add(l, LLM_BACKWARD, 0, i);
    }
}

/* delay: after how many more backward passes the weights' gradients follow. */
static void add_zero_bubble(list *l, uint64_t batches, uint64_t ahead, uint64_t delay)
{
    const uint64_t warm = ahead < batches ? ahead : batches;
    uint64_t weights = 0;
    for (uint64_t i = 0; i < warm; i++)
        add(l, LLM_FORWARD, 0, i);
    for (uint64_t i = 0; i < batches; i++) {
        if (warm + i < batches)
            add(l, LLM_FORWARD, 0, warm + i);
        add_cut(l, 0, i);
        if (i >= delay)
            add(l, LLM_WEIGHTS, 0, weights++);
    }
    for (; weights < batches; weights++)
        add(l, LLM_WEIGHTS, 0, weights);
}

/* The i-th pass of a kind: rounds of pp micro-batches go through the chunks one after the other. */
static void add_interleaved_pass(list *l, const llm_job *g, llm_task_kind kind, uint64_t i)
{
    const uint64_t pp = g->opt.pp, chunks = g->opt.chunks, round = pp * chunks;
    const uint64_t chunk = i % round / pp;
    add(l, kind, (uint32_t)(kind == LLM_FORWARD ? chunk : chunks - 1 - chunk),
        i / round * pp + i % pp);
}

static void add_interleaved(list *l, const llm_job *g, uint32_t rank)
{
    const uint64_t pp = g->opt.pp, total = g->micro_batches * g->opt.chunks;
    const uint64_t ahead =
        (pp - rank - 1) * 2 + (g->opt.chunks - 1) * pp + (g->opt.overlaps_experts ? 1 : 0);
    const uint64_t warm = g->micro_batches == pp ? total : ahead < total ? ahead : total;
    for (uint64_t i = 0; i < warm; i++) {
        add_interleaved_pass(l, g, LLM_FORWARD, i);
        l->tasks[l->count - 1].is_warm = true;
    }
    for (uint64_t i = 0; i < total; i++) {
        if (warm + i < total)
            add_interleaved_pass(l, g, LLM_FORWARD, warm + i);
        add_interleaved_pass(l, g, LLM_BACKWARD, i);
    }
}

/* ---- V ---- */

/* Passes of each chunk go in the order of micro-batches, gradients of weights in that of the
 * backward passes that left them. */
typedef struct v_writer {
    list *l;
    uint64_t forward[2], backward[2];
    size_t waiting; /* the first backward pass whose weights' gradients may still be owed */
} v_writer;

static void put_v(v_writer *v, const char *passes, uint64_t times)
{
    while (times-- > 0)
        for (const char *c = passes; *c; c++) {
            const uint32_t chunk = *c == 'F' || *c == 'B' || *c == 'A';
            if (*c == 'f' || *c == 'F') {
                add(v->l, LLM_FORWARD, chunk, v->forward[chunk]++);
            } else if (*c == 'a' || *c == 'A') {
                add(v->l, LLM_BACKWARD, chunk, v->backward[chunk]++);
            } else if (*c == 'b' || *c == 'B') {
                add_cut(v->l, chunk, v->backward[chunk]++);
            } else {
                while (!v->l->tasks[v->waiting].is_cut)
                    v->waiting++;
                const llm_task t = v->l->tasks[v->waiting++];
                add(v->l, LLM_WEIGHTS, t.chunk, t.micro_batch);
            }
        }
}

/* How many backward passes are cut whose weights' gradients are not there yet. */
static uint64_t owed(const v_writer *v)
{
    uint64_t n = 0;
    for (size_t i = v->waiting; i < v->l->count; i++)
        n += v->l->tasks[i].is_cut;
    return n;
}

/* Letters: f F forward of chunk 0, 1; b B backward, cut; a A backward with all gradients; w the
 * oldest weights' gradients that are owed.  The warm-up fills the V: rank r lets 2 (pp - r - 1)
 * micro-batches pass before its second chunk has work. */
static void add_v(list *l, const llm_job *g, uint64_t ranks, uint64_t rank, uint64_t batches)
{
    const uint64_t behind = ranks - rank - 1, before = rank + 1;
    const uint64_t steady = batches - 2 * ranks + before;
    v_writer v = {.l = l};
    put_v(&v, "f", 2 * behind);
    put_v(&v, "fF", before);
    put_v(&v, "BwF", behind);
    if (g->opt.pipeline == ORR_PIPELINE_ZB_V) {
        put_v(&v, "BwfbwF", steady);
        put_v(&v, "BwbwF", behind);
        put_v(&v, "Bb", before);
    } else {
        put_v(&v, "fAFa", steady);
        put_v(&v, "AFa", behind);
        /* From the middle of its last passes on, a rank leaves weights for the end. */
        put_v(&v, "Aa", before / 2);
        if (before % 2)
            put_v(&v, "Ab", 1);
        put_v(&v, "Bb", before / 2);
    }
    put_v(&v, "wb", behind);
    put_v(&v, "w", owed(&v));
}

/* As on the ranks of a V of half the length; chunk 0 of those is the way that starts nearer. */
static void add_dual(list *l, const llm_job *g, uint32_t rank)
{
    const uint32_t pp = g->opt.pp, mirror = pp - 1 - rank;
    const uint64_t half = g->micro_batches / 2;
    add_v(l, g, pp / 2, rank < mirror ? rank : mirror, half);
    for (size_t i = 0; i < l->count; i++) {
        llm_task *t = &l->tasks[i];
        t->chunk ^= rank > mirror;
        t->micro_batch += t->chunk * half;
    }
}

bool llm_is_dual(const orr_llm_options *o)
{
    return o->pipeline == ORR_PIPELINE_DUALPIPE;
}

bool llm_comes_back(const orr_llm_options *o)
{
    return llm_is_dual(o) || o->pipeline == ORR_PIPELINE_ZB_V ||
           o->pipeline == ORR_PIPELINE_DUALPIPE_V ||
           (o->pipeline == ORR_PIPELINE_OWN && o->order && o->order->comes_back);
}

bool llm_ends_meet(const orr_llm_options *o)
{
    return o->pp == 1 || (llm_comes_back(o) && o->chunks % 2 == 0);
}

uint32_t llm_stage_of(const llm_job *g, uint32_t rank, uint32_t chunk)
{
    const bool is_back = chunk % 2 && llm_comes_back(&g->opt);
    return (llm_is_dual(&g->opt) ? 0 : chunk * g->opt.pp) + (is_back ? g->opt.pp - 1 - rank : rank);
}

uint32_t llm_rank_of(const orr_llm_options *o, uint32_t stage)
{
    const bool is_back = llm_comes_back(o) && stage / o->pp % 2;
    return is_back ? o->pp - 1 - stage % o->pp : stage % o->pp;
}

static llm_task *copy_own(const orr_pipeline_order *o, uint32_t rank, size_t *count)
{
    llm_task *tasks = orr_alloc(o->ranks[rank].count + 1, sizeof *tasks);
    if (tasks)
        memcpy(tasks, o->tasks + o->ranks[rank].first, o->ranks[rank].count * sizeof *tasks);
    *count = o->ranks[rank].count;
    return tasks;
}

static llm_task *all_tasks(const llm_job *g, uint32_t pipeline_rank, size_t *count)
{
    const uint64_t batches = g->micro_batches;
    /* One more, so that the passes of a pair are of different micro-batches. */
    const uint64_t ahead = g->opt.pp - pipeline_rank - 1 + (g->opt.overlaps_experts ? 1 : 0);
    if (g->opt.pipeline == ORR_PIPELINE_OWN)
        return copy_own(g->opt.order, pipeline_rank, count);
    list l = {.tasks = orr_alloc((size_t)batches * g->opt.chunks * 3, sizeof *l.tasks)};
    if (!l.tasks)
        return NULL;
    switch (g->opt.pipeline) {
    case ORR_PIPELINE_GPIPE:
        add_gpipe(&l, batches);
        break;
    case ORR_PIPELINE_INTERLEAVED:
        add_interleaved(&l, g, pipeline_rank);
        break;
    case ORR_PIPELINE_ZERO_BUBBLE:
        add_zero_bubble(&l, batches, ahead, pipeline_rank);
        break;
    case ORR_PIPELINE_ZB_V:
    case ORR_PIPELINE_DUALPIPE_V:
        add_v(&l, g, g->opt.pp, pipeline_rank, batches);
        break;
    case ORR_PIPELINE_DUALPIPE:
        add_dual(&l, g, pipeline_rank);
        break;
    default:
        add_1f1b(&l, batches, ahead);
    }
    *count = l.count;
    return l.tasks;
}

bool llm_is_pair(const orr_llm_options *o, const llm_task *t)
{
    return o->overlaps_experts && !o->forward_only && t->kind == LLM_FORWARD && !t->is_warm &&
           t[1].kind == LLM_BACKWARD &&
           (t->micro_batch != t[1].micro_batch || t->chunk != t[1].chunk);
}

llm_task *llm_schedule_tasks(const llm_job *g, uint32_t pipeline_rank, size_t *count)
{
    llm_task *tasks = all_tasks(g, pipeline_rank, count);
    size_t forward = 0;
    if (!tasks || !g->opt.forward_only)
        return tasks;
    for (size_t i = 0; i < *count; i++)
        if (tasks[i].kind == LLM_FORWARD)
            tasks[forward++] = tasks[i];
    *count = forward;
    return tasks;
}

/* ---- an own order: reading ---- */

typedef struct order_reader {
    orr_pipeline_order *o;
    const char *at, *line_start;
    uint32_t line;
    size_t task_room, rank_room;
    orr_error *err;
} order_reader;

static orr_code fail_at(const order_reader *r, const char *at, const char *words, orr_str what)
{
    const orr_where w = orr_where_line(r->o->path, r->line, (uint32_t)(at - r->line_start) + 1);
    return orr_fail(r->err, ORR_EINPUT, &w, "%s: '%.*s'", words,
                    (int)(what.len < 40 ? what.len : 40), what.ptr);
}

/* "3.1": false where it is none, or too large. */
static bool read_number(const char **at, const char *end, uint64_t most, uint64_t *out)
{
    const char *p = *at;
    for (*out = 0; p < end && *p >= '0' && *p <= '9' && *out <= most; p++)
        *out = *out * 10 + (uint64_t)(*p - '0');
    const bool is_good = p > *at && *out < most;
    *at = p;
    return is_good;
}

static orr_code read_task(order_reader *r, orr_str word)
{
    static const char letters[] = "FBW";
    orr_pipeline_order *o = r->o;
    const char *at = word.ptr + 1, *end = word.ptr + word.len;
    const char *kind = strchr(letters, *word.ptr);
    uint64_t micro_batch, chunk = 0;
    bool is_good = kind && *kind && read_number(&at, end, MICRO_BATCHES_MOST, &micro_batch);
    if (is_good && at < end && *at == '.') {
        at++;
        is_good = read_number(&at, end, LLM_CHUNKS_MOST, &chunk);
    }
    if (!is_good || at != end)
        return fail_at(r, word.ptr, "expected a pass such as F3, B3, W3 or, with chunks, F3.1",
                       word);
    if (!orr_grow(&o->tasks, &r->task_room, o->task_count + 1))
        return orr_no_memory(r->err);
    o->tasks[o->task_count++] = (llm_task){.kind = (llm_task_kind)(kind - letters),
                                           .chunk = (uint32_t)chunk,
                                           .micro_batch = micro_batch,
                                           .column = (uint32_t)(word.ptr - r->line_start) + 1};
    o->ranks[o->rank_count - 1].count++;
    return ORR_OK;
}

/* The next word of a line, which '#' ends; empty at the end. */
static orr_str next_word(order_reader *r, const char *line_end)
{
    while (r->at < line_end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\r'))
        r->at++;
    const char *start = r->at;
    if (r->at < line_end && *r->at == '#')
        r->at = line_end;
    else
        while (r->at < line_end && !strchr(" \t\r#", *r->at))
            r->at++;
    return (orr_str){start, start < line_end && *start != '#' ? (size_t)(r->at - start) : 0};
}

static orr_code read_placement(order_reader *r, const char *line_end)
{
    const orr_str word = next_word(r, line_end);
    r->o->comes_back = orr_str_is(word, "v");
    if (!r->o->comes_back && !orr_str_is(word, "loop"))
        return fail_at(r, word.ptr, "a placement is loop or v", word);
    return ORR_OK;
}

static orr_code read_line(order_reader *r, const char *line_end)
{
    orr_pipeline_order *o = r->o;
    orr_str word = next_word(r, line_end);
    const char *at = word.ptr;
    uint64_t rank;
    orr_code code = ORR_OK;
    if (word.len == 0)
        return ORR_OK;
    if (orr_str_is(word, "placement:")) {
        code = read_placement(r, line_end);
    } else {
        if (!read_number(&at, word.ptr + word.len, 1 << 22, &rank) || rank != o->rank_count ||
            at + 1 != word.ptr + word.len || *at != ':')
            return fail_at(r, word.ptr, "expected 'placement:', or the next rank, from 0: on",
                           word);
        if (!orr_grow(&o->ranks, &r->rank_room, (size_t)o->rank_count + 1))
            return orr_no_memory(r->err);
        o->ranks[o->rank_count++] = (llm_order_rank){.first = o->task_count, .line = r->line};
        while (!code && (word = next_word(r, line_end)).len)
            code = read_task(r, word);
    }
    word = code ? word : next_word(r, line_end);
    return code || !word.len ? code : fail_at(r, word.ptr, "unexpected text", word);
}

orr_code orr_pipeline_order_parse(orr_span all,
                                  const char *path,
                                  orr_pipeline_order **out,
                                  orr_error *err)
{
    orr_pipeline_order *o = orr_alloc(1, sizeof *o);
    orr_code code = ORR_OK;
    *out = NULL;
    if (o)
        o->path = orr_alloc(strlen(path) + 1, 1);
    if (!o || !o->path)
        code = orr_no_memory(err);
    else
        memcpy(o->path, path, strlen(path) + 1);
    order_reader r = {.o = o, .at = (const char *)all.ptr, .err = err};
    const char *end = r.at + all.len;
    while (!code && r.at < end) {
        const char *line_end = memchr(r.at, '\n', (size_t)(end - r.at));
        line_end = line_end ? line_end : end;
        r.line++;
        r.line_start = r.at;
        code = read_line(&r, line_end);
        r.at = line_end < end ? line_end + 1 : end;
    }
    if (code) {
        orr_pipeline_order_close(o);
        return code;
    }
    *out = o;
    return ORR_OK;
}

orr_code orr_pipeline_order_open(const char *path, orr_pipeline_order **out, orr_error *err)
{
    orr_input *in;
    *out = NULL;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    code = orr_pipeline_order_parse(orr_input_bytes(in), path, out, err);
    orr_input_close(in);
    return code;
}

void orr_pipeline_order_close(orr_pipeline_order *o)
{
    if (!o)
        return;
    orr_free(o->ranks);
    orr_free(o->tasks);
    orr_free(o->path);
    orr_free(o);
}

/* ---- an own order: whether it can be ---- */

/* What was met of a micro-batch on a stage. */
enum { SAW_FORWARD = 1, SAW_BACKWARD = 2, SAW_WEIGHTS = 4 };

typedef struct order_check {
    orr_pipeline_order *o;
    llm_job g; /* only what llm_stage_of asks for */
    uint64_t batches;
    uint8_t *seen; /* by stage and micro-batch */
    size_t *at;    /* by rank: its next task */
    uint32_t *wake;
    bool *is_awake;
    orr_error *err;
} order_check;

static char letter(const llm_task *t)
{
    return "FBW"[t->kind];
}

static orr_code fail_task(const order_check *c, uint32_t rank, const llm_task *t, const char *words)
{
    const orr_where w = orr_where_line(c->o->path, c->o->ranks[rank].line, t->column);
    return orr_fail(c->err, ORR_EINPUT, &w, "%c%" PRIu64 ".%u of rank %u %s", letter(t),
                    t->micro_batch, t->chunk, rank, words);
}

static uint8_t *seen_of(const order_check *c, uint32_t rank, const llm_task *t)
{
    return &c->seen[llm_stage_of(&c->g, rank, t->chunk) * c->batches + t->micro_batch];
}

/* Every pass once, each after what it needs of its own rank. */
static orr_code check_rank(order_check *c, uint32_t rank)
{
    const llm_order_rank *x = &c->o->ranks[rank];
    size_t forward = 0, backward = 0;
    for (size_t i = 0; i < x->count; i++) {
        llm_task *t = &c->o->tasks[x->first + i];
        if (t->chunk >= c->g.opt.chunks)
            return fail_task(c, rank, t, "names a chunk that does not exist: see --chunks");
        if (t->micro_batch >= c->batches)
            return fail_task(c, rank, t, "names a micro-batch that does not exist");
        uint8_t *seen = seen_of(c, rank, t);
        const uint8_t now = (uint8_t)(1 << t->kind), before = (uint8_t)(now >> 1);
        if (*seen & now)
            return fail_task(c, rank, t, "occurs twice");
        if (before && !(*seen & before))
            return fail_task(c, rank, t,
                             t->kind == LLM_WEIGHTS ? "comes before its backward pass"
                                                    : "comes before its forward pass");
        *seen |= now;
        forward += t->kind == LLM_FORWARD;
        backward += t->kind == LLM_BACKWARD;
    }
    for (size_t i = 0; i < x->count; i++) {
        llm_task *t = &c->o->tasks[x->first + i];
        t->is_cut = t->kind == LLM_BACKWARD && *seen_of(c, rank, t) & SAW_WEIGHTS;
    }
    const orr_where w = orr_where_line(c->o->path, x->line, 1);
    const uint64_t all = c->batches * c->g.opt.chunks;
    if (forward == all && backward == all)
        return ORR_OK;
    return orr_fail(c->err, ORR_EINPUT, &w,
                    "rank %u has %zu forward and %zu backward passes: %" PRIu64
                    " micro-batches x %u chunks make %" PRIu64,
                    rank, forward, backward, c->batches, c->g.opt.chunks, all);
}

/* The pass of a neighbouring stage that a task waits for; false: none. */
static bool needs(const order_check *c, uint32_t rank, const llm_task *t, uint64_t *where)
{
    const uint32_t stage = llm_stage_of(&c->g, rank, t->chunk);
    if (t->kind == LLM_WEIGHTS || (t->kind == LLM_FORWARD && stage == 0))
        return false;
    if (t->kind == LLM_BACKWARD && stage + 1 == c->g.opt.pp * c->g.opt.chunks)
        return false;
    const uint32_t other = t->kind == LLM_FORWARD ? stage - 1 : stage + 1;
    *where = other * c->batches + t->micro_batch;
    return !(c->seen[*where] & (1 << t->kind));
}

static void wake_up(order_check *c, uint32_t rank, size_t *count)
{
    if (!c->is_awake[rank])
        c->wake[(*count)++] = rank;
    c->is_awake[rank] = true;
}

/* How many tasks run at once from t on; *stuck: that which waits. */
static size_t can_run(
    const order_check *c, uint32_t rank, const llm_task *t, size_t left, const llm_task **stuck)
{
    const size_t count = left > 1 && llm_is_pair(&c->g.opt, t) ? 2 : 1;
    uint64_t where;
    for (size_t i = 0; i < count; i++)
        if (needs(c, rank, *stuck = &t[i], &where))
            return 0;
    return count;
}

/* Runs the passes in zero time: whatever is left is deadlocked.  Stages of neighbouring ranks only,
 * so a finished pass can release only those two. */
static orr_code check_waits(order_check *c)
{
    const uint32_t pp = c->g.opt.pp;
    size_t count = 0;
    const llm_task *t;
    memset(c->seen, 0, (size_t)(c->batches * pp * c->g.opt.chunks));
    for (uint32_t r = 0; r < pp; r++)
        wake_up(c, r, &count);
    while (count) {
        const uint32_t r = c->wake[--count];
        const llm_order_rank *x = &c->o->ranks[r];
        const size_t from = c->at[r];
        c->is_awake[r] = false;
        while (c->at[r] < x->count) {
            const llm_task *next = &c->o->tasks[x->first + c->at[r]];
            const size_t runs = can_run(c, r, next, x->count - c->at[r], &t);
            for (size_t i = 0; i < runs; i++)
                *seen_of(c, r, &next[i]) |= (uint8_t)(1 << next[i].kind);
            c->at[r] += runs;
            if (!runs)
                break;
        }
        if (c->at[r] > from) {
            wake_up(c, (r + 1) % pp, &count);
            wake_up(c, (r + pp - 1) % pp, &count);
        }
    }
    for (uint32_t r = 0; r < pp; r++)
        if (c->at[r] < c->o->ranks[r].count) {
            const llm_order_rank *x = &c->o->ranks[r];
            const llm_task *next = &c->o->tasks[x->first + c->at[r]];
            (void)can_run(c, r, next, x->count - c->at[r], &t);
            return fail_task(c, r, t,
                             t->kind == LLM_FORWARD
                                 ? "never starts: the stage before it waits for this rank in turn"
                             : t != next
                                 ? "never starts: the next stage waits for the forward pass "
                                   "that goes beside it (ep-overlap)"
                                 : "never starts: the next stage waits for this rank");
        }
    return ORR_OK;
}

orr_code llm_check_order(const orr_llm_options *opt, uint64_t batches, orr_error *err)
{
    orr_pipeline_order *o = opt->order;
    if (!o)
        return orr_fail(err, ORR_EUSAGE, NULL, "a custom order of passes requires its file");
    const orr_where w = orr_where_line(o->path, 1, 1);
    if (o->rank_count != opt->pp)
        return orr_fail(err, ORR_EINPUT, &w, "passes of %u pipeline ranks, and pp is %u",
                        o->rank_count, opt->pp);
    order_check c = {.o = o, .g = {.opt = *opt}, .batches = batches, .err = err};
    orr_code code = ORR_OK;
    c.seen = orr_alloc((size_t)batches * opt->pp * opt->chunks, 1);
    c.at = orr_alloc(opt->pp, sizeof *c.at);
    c.wake = orr_alloc(opt->pp, sizeof *c.wake);
    c.is_awake = orr_alloc(opt->pp, sizeof *c.is_awake);
    if (!c.seen || !c.at || !c.wake || !c.is_awake)
        code = orr_no_memory(err);
    for (uint32_t r = 0; r < opt->pp && !code; r++)
        code = check_rank(&c, r);
    if (!code)
        code = check_waits(&c);
    orr_free(c.seen);
    orr_free(c.at);
    orr_free(c.wake);
    orr_free(c.is_awake);
    return code;
}
