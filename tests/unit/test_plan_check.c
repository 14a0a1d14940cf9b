/* SPDX-License-Identifier: Apache-2.0 */
/* Plans once more, in more detail: a smaller step tells what the whole one does, and what is run
 * follows from counts. */
#include "check.h"

#include <orrery/lab/plan.h>

#include <math.h>
#include <string.h>

/* The one plan of gpt2 on two nodes that has these axes. */
static orr_plan_search *searched(orr_model *model, unsigned threads)
{
    static const char *const fixed[] = {"tp=2",           "pp=2",          "cp=1",
                                        "zero=1",         "dp=4",          "micro-batch=1",
                                        "recompute=none", "pipeline=1f1b", "sequence-parallel=on"};
    orr_error err;
    orr_plan_search *s;
    orr_plan_options o = {.size = sizeof o,
                          .model = model,
                          .machine = "dgx-h100:2",
                          .batch = 64,
                          .seq = 512,
                          .threads = threads};
    assert_int_equal(orr_model_load("gpt2", model, &err), ORR_OK);
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        assert_int_equal(orr_plan_fix(&o, fixed[i], &err), ORR_OK);
    assert_int_equal(orr_plan_search_create(&o, &s, &err), ORR_OK);
    assert_int_equal(orr_plan_search_run(s, &err), ORR_OK);
    assert_int_equal(orr_plan_count(s), 1);
    return s;
}

static void check_levels(orr_plan_search *s, double budget, orr_plan_check out[ORR_PLAN_LEVELS])
{
    orr_error err;
    const orr_plan_check_options opt = {.size = sizeof opt, .budget_s = budget};
    for (int k = 0; k < ORR_PLAN_LEVELS; k++)
        out[k] = (orr_plan_check){.plan = orr_plan_at(s, 0), .level = (orr_plan_level)k};
    assert_int_equal(orr_plan_check_all(s, &opt, out, ORR_PLAN_LEVELS, &err), ORR_OK);
}

/* Link by link and message by message, half a budget gives the time of the whole step. */
static void test_plan_check__parts_tell_the_whole(void **state)
{
    (void)state;
    orr_model model;
    orr_plan_search *s = searched(&model, 1);
    orr_plan_check whole[ORR_PLAN_LEVELS], part[ORR_PLAN_LEVELS];
    check_levels(s, 20, whole);
    for (int k = 0; k < ORR_PLAN_LEVELS; k++) {
        if (whole[k].kind != ORR_PLAN_WHOLE)
            fail_msg("%s: %s%s", orr_plan_level_name((orr_plan_level)k), whole[k].what,
                     whole[k].why);
        assert_string_equal(whole[k].what, "whole step");
        assert_true(whole[k].cost_s > 0 && whole[k].run_s > 0 && whole[k].base_s > 0);
        assert_true(fabs(whole[k].step_s / whole[k].plan->step_s -
                         whole[k].run_s / whole[k].base_s) < 1e-9);
    }
    for (int k = 0; k < ORR_PLAN_PACKETS; k++) {
        check_levels(s, whole[k].cost_s / 2, part);
        assert_int_equal(part[k].kind, ORR_PLAN_PART);
        assert_true(part[k].cost_s > 0 && part[k].cost_s <= whole[k].cost_s / 2);
        assert_non_null(strstr(part[k].what, " of 16 micro-batches"));
        if (fabs(part[k].step_s / whole[k].step_s - 1) > 0.01)
            fail_msg("%s: %s gives %.6g s, the whole step %.6g s",
                     orr_plan_level_name((orr_plan_level)k), part[k].what, part[k].step_s,
                     whole[k].step_s);
    }
    orr_plan_search_destroy(s);
}

/* Too many packets for any step: each axis that is exposed has its heaviest collective. */
static void test_plan_check__collectives(void **state)
{
    (void)state;
    orr_model model;
    orr_plan_search *s = searched(&model, 1);
    orr_plan_check k[ORR_PLAN_LEVELS];
    check_levels(s, 0.05, k);
    const orr_plan_check *packets = &k[ORR_PLAN_PACKETS];
    if (packets->kind != ORR_PLAN_COLLECTIVES)
        fail_msg("kind %d: %s%s", packets->kind, packets->what, packets->why);
    assert_non_null(strstr(packets->what, "tensor "));
    assert_non_null(strstr(packets->what, " x "));
    assert_true(packets->cost_s <= 0.05 && packets->base_s == 0);
    assert_true(packets->step_s > 0.5 * packets->plan->step_s &&
                packets->step_s < 2 * packets->plan->step_s);
    orr_plan_search_destroy(s);
}

/* Nothing fits: every level says so, and what it would take. */
static void test_plan_check__no_budget(void **state)
{
    (void)state;
    orr_model model;
    orr_plan_search *s = searched(&model, 1);
    orr_plan_check k[ORR_PLAN_LEVELS];
    check_levels(s, 1e-6, k);
    for (int i = 0; i < ORR_PLAN_LEVELS; i++) {
        assert_int_equal(k[i].kind, ORR_PLAN_NOT_RUN);
        assert_true(k[i].step_s == 0);
        assert_non_null(strstr(k[i].why, "budget"));
    }
    orr_plan_search_destroy(s);
}

static void test_plan_check__threads_change_nothing(void **state)
{
    (void)state;
    orr_model one_model, two_model;
    orr_plan_search *one = searched(&one_model, 1), *two = searched(&two_model, 2);
    orr_plan_check a[ORR_PLAN_LEVELS], b[ORR_PLAN_LEVELS];
    check_levels(one, 0.05, a);
    check_levels(two, 0.05, b);
    for (int k = 0; k < ORR_PLAN_LEVELS; k++) {
        assert_int_equal(a[k].kind, b[k].kind);
        assert_string_equal(a[k].what, b[k].what);
        assert_true(a[k].step_s == b[k].step_s && a[k].cost_s == b[k].cost_s);
    }
    orr_plan_search_destroy(one);
    orr_plan_search_destroy(two);
}

static void test_plan_check__wrong_size(void **state)
{
    (void)state;
    orr_error err;
    const orr_plan_check_options opt = {0};
    assert_int_equal(orr_plan_check_all(NULL, &opt, NULL, 0, &err), ORR_EUSAGE);
    assert_string_equal(orr_plan_level_name(ORR_PLAN_LEVELS), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_check__parts_tell_the_whole),
        cmocka_unit_test(test_plan_check__collectives),
        cmocka_unit_test(test_plan_check__no_budget),
        cmocka_unit_test(test_plan_check__threads_change_nothing),
        cmocka_unit_test(test_plan_check__wrong_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
