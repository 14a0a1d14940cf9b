/* SPDX-License-Identifier: Apache-2.0 */
/* Orders of passes: every pass once, none waits for ever, and what the schedules promise of gaps
 * and memory. */
#include "check.h"

#include <orrery/lab/llm.h>

#include "base/memory/memory.h"
#include "sources/llm/llm_impl.h"

enum { RANKS_MOST = 16, BATCHES_MOST = 80 };

typedef struct played {
    uint64_t begin[RANKS_MOST], end[RANKS_MOST], held[RANKS_MOST], most[RANKS_MOST];
    uint64_t at[2 * RANKS_MOST][BATCHES_MOST][2]; /* when a pass of a stage is over; 0: not yet */
    bool is_done;
} played;

/* 0: its inputs are not there yet. */
static bool can_start(
    const played *p, uint32_t stages, uint32_t stage, const llm_task *t, uint64_t *from)
{
    *from = 0;
    if (t->kind == LLM_WEIGHTS)
        return true;
    const bool is_forward = t->kind == LLM_FORWARD;
    if (is_forward && stage == 0)
        return true;
    *from = !is_forward && stage + 1 == stages ? p->at[stage][t->micro_batch][0]
            : is_forward                       ? p->at[stage - 1][t->micro_batch][0]
                                               : p->at[stage + 1][t->micro_batch][1];
    return *from > 0;
}

/* Beside the forward pass before it. */
static bool can_follow(const played *p, const llm_job *g, uint32_t rank, const llm_task *t)
{
    uint64_t from;
    return can_start(p, g->virtual_stages, llm_stage_of(g, rank, t->chunk), t, &from);
}

static uint64_t length(const llm_task *t)
{
    return t->kind == LLM_BACKWARD && !t->is_cut ? 2 : 1;
}

/* Passes of equal length, messages that take no time. */
static played *play(const llm_job *g)
{
    llm_task *tasks[RANKS_MOST];
    size_t count[RANKS_MOST], at[RANKS_MOST] = {0};
    played *p = orr_alloc(1, sizeof *p);
    for (uint32_t r = 0; r < g->opt.pp; r++)
        CHECK((tasks[r] = llm_schedule_tasks(g, r, &count[r])) != NULL);
    for (bool is_moving = true; is_moving;) {
        is_moving = false;
        for (uint32_t r = 0; r < g->opt.pp; r++)
            for (; at[r] < count[r]; at[r]++, is_moving = true) {
                const llm_task *t = &tasks[r][at[r]];
                const uint32_t stage = llm_stage_of(g, r, t->chunk);
                uint64_t from;
                if (!can_start(p, g->virtual_stages, stage, t, &from) ||
                    (at[r] + 1 < count[r] && llm_is_pair(&g->opt, t) &&
                     !can_follow(p, g, r, t + 1)))
                    break;
                from = from > p->end[r] ? from : p->end[r];
                p->begin[r] = at[r] ? p->begin[r] : from;
                p->end[r] = from + length(t);
                if (t->kind != LLM_WEIGHTS)
                    p->at[stage][t->micro_batch][t->kind == LLM_BACKWARD] = p->end[r];
                p->held[r] += t->kind == LLM_FORWARD;
                p->most[r] = p->held[r] > p->most[r] ? p->held[r] : p->most[r];
                p->held[r] -= t->kind != LLM_FORWARD && !t->is_cut;
            }
    }
    p->is_done = true;
    for (uint32_t r = 0; r < g->opt.pp; r++) {
        p->is_done = p->is_done && at[r] == count[r] && p->held[r] == 0;
        orr_free(tasks[r]);
    }
    return p;
}

static llm_job job(orr_pipeline pipeline, uint32_t pp, uint64_t batches)
{
    return (llm_job){.opt = {.pp = pp, .chunks = 2, .pipeline = pipeline},
                     .micro_batches = batches,
                     .virtual_stages = 2 * pp};
}

TEST(test_pipeline_order__zb_v_has_no_gap_and_holds_what_1f1b_holds)
{
    for (uint32_t pp = 2; pp <= RANKS_MOST; pp++)
        for (uint64_t batches = 2 * pp; batches <= 5 * (uint64_t)pp; batches += pp / 2 + 1) {
            const llm_job g = job(ORR_PIPELINE_ZB_V, pp, batches);
            played *p = play(&g);
            CHECK(p->is_done);
            for (uint32_t r = 0; r < pp; r++) {
                CHECK_EQ_U(p->begin[r], r);
                CHECK_EQ_U(p->end[r] - p->begin[r], 6 * batches);
                CHECK(p->most[r] <=
                      2 * (uint64_t)pp); /* of half a rank's layers: 1F1B holds pp whole ones */
            }
            orr_free(p);
        }
}

/* Without pairs it has the gaps that its cut passes do not fill: at most one a rank before it. */
TEST(test_pipeline_order__dualpipe_v_ends)
{
    for (uint32_t pp = 2; pp <= RANKS_MOST; pp++)
        for (uint64_t batches = 2 * pp; batches <= 5 * (uint64_t)pp; batches += pp / 2 + 1) {
            const llm_job g = job(ORR_PIPELINE_DUALPIPE_V, pp, batches);
            played *p = play(&g);
            CHECK(p->is_done);
            for (uint32_t r = 0; r < pp; r++) {
                CHECK_EQ_U(p->end[r] - p->begin[r], 6 * batches + pp - 1 - r);
                CHECK(p->most[r] <= 2 * (uint64_t)pp + 1);
            }
            orr_free(p);
        }
}

/* Half of the micro-batches each way: the work of all of them, and gaps of half a pipeline. */
TEST(test_pipeline_order__dualpipe_ends)
{
    for (uint32_t pp = 2; pp <= RANKS_MOST; pp += 2)
        for (uint64_t batches = 2 * pp; batches <= 5 * (uint64_t)pp; batches += 2) {
            llm_job g = job(ORR_PIPELINE_DUALPIPE, pp, batches);
            g.virtual_stages = pp;
            played *p = play(&g);
            CHECK(p->is_done);
            for (uint32_t r = 0; r < pp; r++) {
                const uint32_t near = r < pp - 1 - r ? r : pp - 1 - r;
                CHECK_EQ_U(p->end[r] - p->begin[r], 3 * batches + pp / 2 - 1 - near);
                CHECK(p->most[r] <= (uint64_t)pp + 1);
            }
            orr_free(p);
        }
}

/* The ends of the model are on rank 0, and no message goes where a rank has both sides of it. */
TEST(test_pipeline_order__v_turns_on_the_last_rank)
{
    const llm_job g = job(ORR_PIPELINE_ZB_V, 4, 8);
    CHECK(llm_ends_meet(&g.opt) && llm_comes_back(&g.opt));
    CHECK_EQ_U(llm_stage_of(&g, 3, 0), 3);
    CHECK_EQ_U(llm_stage_of(&g, 3, 1), 4);
    CHECK_EQ_U(llm_stage_of(&g, 0, 1), 7);
    const llm_job loop = job(ORR_PIPELINE_INTERLEAVED, 4, 8);
    CHECK(!llm_ends_meet(&loop.opt));
    CHECK_EQ_U(llm_stage_of(&loop, 0, 1), 4);
}

/* As many micro-batches as pipeline ranks, or fewer, leave nothing but warm-up. */
TEST(test_pipeline_order__pairs_never_wait_for_each_other)
{
    static const orr_pipeline pipelines[] = {ORR_PIPELINE_1F1B, ORR_PIPELINE_INTERLEAVED,
                                             ORR_PIPELINE_DUALPIPE_V};
    for (size_t i = 0; i < sizeof pipelines / sizeof *pipelines; i++)
        for (uint32_t pp = 2; pp <= 8; pp++)
            for (uint64_t batches = 1; batches <= 4 * pp; batches++) {
                llm_job g = job(pipelines[i], pp, batches);
                const bool is_plain = pipelines[i] == ORR_PIPELINE_1F1B;
                g.opt.overlaps_experts = true;
                g.opt.chunks = is_plain ? 1 : 2;
                g.virtual_stages = g.opt.chunks * pp;
                if ((pipelines[i] == ORR_PIPELINE_INTERLEAVED && batches % pp) ||
                    (pipelines[i] == ORR_PIPELINE_DUALPIPE_V && batches < 2 * pp))
                    continue; /* refused */
                played *p = play(&g);
                if (!p->is_done)
                    print_message("pipeline %zu, pp %u, %zu micro-batches\n", i, pp,
                                  (size_t)batches);
                CHECK(p->is_done);
                orr_free(p);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(test_pipeline_order__pairs_never_wait_for_each_other),
        RUN(test_pipeline_order__zb_v_has_no_gap_and_holds_what_1f1b_holds),
        RUN(test_pipeline_order__dualpipe_v_ends),
        RUN(test_pipeline_order__dualpipe_ends),
        RUN(test_pipeline_order__v_turns_on_the_last_rank),
    };
    return RUN_ALL(tests);
}
