/* SPDX-License-Identifier: Apache-2.0 */
/* llm_schedule.c - what a pipeline rank does, and in which order.
 *
 * GPipe: all forward passes, then all backward passes.
 * 1F1B: as many forward passes as there are stages behind, then one backward for each forward: a stage holds the
 *   activations of at most pp - rank micro-batches.
 * Interleaved: 1F1B over chunks of layers; micro-batches go in rounds of pp, chunk by chunk.
 * Zero bubble (ZB-H1): backward passes are cut in two, and the gradients of weights wait `rank` micro-batches, so
 *   that no stage holds more than pp of them; they fill what would be a gap at the end. */
#include "llm_impl.h"

typedef struct list {
    llm_task *tasks;
    size_t count;
} list;

static void add(list *l, llm_task_kind kind, uint32_t chunk, uint64_t micro_batch)
{
    l->tasks[l->count++] = (llm_task){kind, chunk, micro_batch};
}

static void add_gpipe(list *l, uint64_t batches)
{
    for (uint64_t i = 0; i < batches; i++)
        add(l, LLM_FORWARD, 0, i);
    for (uint64_t i = batches; i-- > 0;)
        add(l, LLM_BACKWARD, 0, i);
}

/* delay: after how many more backward passes the weights' gradients follow; none when they are not apart. */
static void add_1f1b(list *l, uint64_t batches, uint64_t ahead, bool is_cut, uint64_t delay)
{
    const uint64_t warm = ahead < batches ? ahead : batches;
    uint64_t weights = 0;
    for (uint64_t i = 0; i < warm; i++)
        add(l, LLM_FORWARD, 0, i);
    for (uint64_t i = 0; i < batches; i++) {
        if (warm + i < batches)
            add(l, LLM_FORWARD, 0, warm + i);
        add(l, LLM_BACKWARD, 0, i);
        if (is_cut && i >= delay)
            add(l, LLM_WEIGHTS, 0, weights++);
    }
    for (; is_cut && weights < batches; weights++)
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
    const uint64_t ahead = (pp - rank - 1) * 2 + (g->opt.chunks - 1) * pp;
    const uint64_t warm = g->micro_batches == pp ? total : ahead < total ? ahead : total;
    for (uint64_t i = 0; i < warm; i++)
        add_interleaved_pass(l, g, LLM_FORWARD, i);
    for (uint64_t i = 0; i < total; i++) {
        if (warm + i < total)
            add_interleaved_pass(l, g, LLM_FORWARD, warm + i);
        add_interleaved_pass(l, g, LLM_BACKWARD, i);
    }
}

llm_task *llm_schedule_tasks(const llm_job *g, uint32_t pipeline_rank, size_t *count)
{
    const uint64_t batches = g->micro_batches, ahead = g->opt.pp - pipeline_rank - 1;
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
        add_1f1b(&l, batches, ahead, true, pipeline_rank);
        break;
    default:
        add_1f1b(&l, batches, ahead, false, 0);
    }
    *count = l.count;
    return l.tasks;
}

void llm_stage_layers(const llm_job *g, uint32_t stage, uint64_t *first, uint64_t *end)
{
    const uint64_t each = g->m->layers / g->virtual_stages, more = g->m->layers % g->virtual_stages;
    *first = stage * each + (stage < more ? stage : more);
    *end = *first + each + (stage < more);
}
