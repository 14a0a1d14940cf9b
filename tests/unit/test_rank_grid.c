/* SPDX-License-Identifier: Apache-2.0 */
/* room: stage */
#include "check.h"
#include "compat/stage/lower.h"

static stg_grid make(
    orr_stage_model model, uint64_t dp, uint64_t tp, uint64_t sp, uint64_t ep, uint64_t pp)
{
    const orr_stage_options opt = {
        .model = model, .dp = dp, .tp = tp, .sp = sp, .ep = ep, .pp = pp};
    return stg_grid_of(&opt);
}

TEST(test_rank_grid__counts_dp_fastest_and_stages_slowest)
{
    const stg_grid g = make(ORR_STAGE_MOE, 2, 3, 5, 7, 11);
    const stg_spot s = {.stage = 4,
                        .at = {[ORR__DP] = 1, [ORR__TP] = 2, [ORR__CP] = 3, [ORR__EP] = 6}};
    CHECK_EQ_U(stg_grid_rank(&g, &s), (((4 * 7 + 6) * 5 + 3) * 3 + 2) * 2 + 1);
}

TEST(test_rank_grid__finds_a_spot_again)
{
    const stg_grid g = make(ORR_STAGE_MOE, 2, 3, 2, 2, 3);
    for (uint32_t r = 0; r < g.per_stage * g.stages; r++) {
        const stg_spot s = stg_grid_spot(&g, r);
        CHECK_EQ_U(stg_grid_rank(&g, &s), r);
    }
}

TEST(test_rank_grid__multiplies_tp_by_ep_without_experts)
{
    const stg_grid g = make(ORR_STAGE_GPT, 2, 3, 1, 4, 1);
    CHECK_EQ_U(g.degree[ORR__TP], 12);
    CHECK_EQ_U(g.degree[ORR__EP], 1);
    CHECK_EQ_U(g.axes, 3);
    CHECK_EQ_U(g.per_stage, 24);
}

/* dp = tp = pp = 2, the example of the specification: {"1": [0, 1], ..., "5": [0, 2], ..., "9":
 * [0], ...}. */
TEST(test_rank_grid__numbers_groups_from_one_axis_by_axis)
{
    const stg_grid g = make(ORR_STAGE_GPT, 2, 2, 1, 1, 2);
    const uint32_t want[][3] = {{0, 2, 1}, {2, 2, 1}, {4, 2, 1}, {6, 2, 1}, {0, 2, 2},
                                {1, 2, 2}, {4, 2, 2}, {5, 2, 2}, {0, 1, 4}};
    uint32_t count, stride;
    for (uint32_t i = 0; i < 9; i++) {
        CHECK_EQ_U(stg_grid_members(&g, i + 1, &count, &stride), want[i][0]);
        CHECK_EQ_U(count, want[i][1]);
        if (count > 1)
            CHECK_EQ_U(stride, want[i][2]);
    }
    CHECK_EQ_U(g.first_group[ORR__AXES], 1 + 4 + 4 + 8);
}

/* Every rank is in the one group of each axis that lists it, at the place that its coordinate
 * says. */
TEST(test_rank_grid__groups_and_members_agree)
{
    const stg_grid g = make(ORR_STAGE_MOE, 3, 2, 2, 2, 2);
    for (uint32_t id = 1; id < g.first_group[ORR__AXES]; id++) {
        uint32_t count, stride, axis = 0;
        const uint32_t first = stg_grid_members(&g, id, &count, &stride);
        while (id >= g.first_group[axis + 1])
            axis++;
        for (uint32_t i = 0; i < count; i++) {
            const stg_spot s = stg_grid_spot(&g, first + i * stride);
            CHECK_EQ_U(stg_grid_group(&g, &s, (stg_axis)axis), id);
            CHECK_EQ_U(s.at[axis], i);
        }
    }
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_rank_grid__counts_dp_fastest_and_stages_slowest),
        RUN(test_rank_grid__finds_a_spot_again),
        RUN(test_rank_grid__multiplies_tp_by_ep_without_experts),
        RUN(test_rank_grid__numbers_groups_from_one_axis_by_axis),
        RUN(test_rank_grid__groups_and_members_agree),
    };
    return RUN_ALL(tests);
}
