/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <orrery/lab/layers.h>

static orr_error err;

static orr_layer layer_of(const char *name)
{
    return (orr_layer){.name = orr_str_of(name),
                       .reserved = orr_str_of("-1"),
                       .forward = {10, orr_str_of("NONE"), 0},
                       .input_grad = {20, orr_str_of("NONE"), 0},
                       .weight_grad = {30, orr_str_of("ALLREDUCE"), 4096},
                       .update_time = orr_str_of("5"),
                       .policy = ORR_POLICY_DATA};
}

TEST(test_layers__every_policy_is_found_by_its_name)
{
    for (unsigned p = 0; p < ORR_POLICY_COUNT; p++) {
        orr_policy found = ORR_POLICY_COUNT;
        CHECK(orr_policy_find(orr_str_of(orr_policy_name((orr_policy)p)), &found));
        CHECK_EQ(found, p);
    }
    CHECK(orr_policy_name(ORR_POLICY_COUNT) == NULL);
}

TEST(test_layers__names_are_compared_as_a_whole)
{
    orr_policy p;
    CHECK(!orr_policy_find(orr_str_of("DAT"), &p));
    CHECK(!orr_policy_find(orr_str_of("DATA "), &p));
    CHECK(!orr_policy_find(orr_str_of("data"), &p));
    CHECK(!orr_policy_find(orr_str_of(""), &p));
}

TEST(test_layers__a_table_keeps_what_was_added)
{
    char name[] = "conv1";
    const orr_layer l = layer_of(name);
    orr_layers *t;
    CHECK_OK(orr_layers_create(ORR_POLICY_DATA, &t, &err), &err);
    CHECK_OK(orr_layers_add(t, &l, &err), &err);
    name[0] = 'x'; /* texts are copied */
    CHECK_EQ(orr_layers_policy(t), ORR_POLICY_DATA);
    CHECK_EQ(orr_layers_count(t), 1);
    const orr_layer *got = orr_layers_get(t, 0);
    CHECK_TEXT(got->name.ptr, "conv1");
    CHECK_TEXT(got->weight_grad.comm.ptr, "ALLREDUCE");
    CHECK_EQ(got->weight_grad.bytes, 4096);
    CHECK_EQ(got->input_grad.time, 20);
    CHECK_TEXT(got->update_time.ptr, "5");
    orr_layers_free(t);
}

TEST(test_layers__arguments_are_copied)
{
    uint32_t kept[] = {2, 11};
    orr_layers *t;
    CHECK_OK(orr_layers_create(ORR_POLICY_HYBRID_TRANSFORMER_FWD_IN_BCKWD, &t, &err), &err);
    const orr_policy_args args = {.model_group = 4, .checkpoints = kept, .checkpoint_count = 2};
    CHECK_OK(orr_layers_set_args(t, &args, &err), &err);
    kept[1] = 99;
    CHECK_EQ(orr_layers_args(t)->model_group, 4);
    CHECK_EQ(orr_layers_args(t)->checkpoint_count, 2);
    CHECK_EQ(orr_layers_args(t)->checkpoints[1], 11);
    CHECK_EQ(orr_layers_args(t)->initiate_count, 0);
    orr_layers_free(t);
}

TEST(test_layers__policies_that_do_not_exist_are_refused)
{
    orr_layer l = layer_of("a");
    orr_layers *t;
    CHECK_CODE(orr_layers_create(ORR_POLICY_COUNT, &t, &err), ORR_EUSAGE, &err);
    CHECK(t == NULL);
    CHECK_OK(orr_layers_create(ORR_POLICY_DATA, &t, &err), &err);
    l.policy = ORR_POLICY_COUNT;
    CHECK_CODE(orr_layers_add(t, &l, &err), ORR_EUSAGE, &err);
    CHECK_EQ(orr_layers_count(t), 0);
    orr_layers_free(t);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_layers__every_policy_is_found_by_its_name),
        RUN(test_layers__names_are_compared_as_a_whole),
        RUN(test_layers__a_table_keeps_what_was_added),
        RUN(test_layers__arguments_are_copied),
        RUN(test_layers__policies_that_do_not_exist_are_refused),
    };
    return RUN_ALL(tests);
}
