/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of layers as text: the three styles, and reading back what was written. */
#include "files.h"

#include <orrery/lab/layers.h>

static orr_str word(const char *s)
{
    return orr_str_of(s);
}

static orr_layers *table_of(orr_policy policy, const char *name)
{
    const orr_layer l = {.name = word(name),
                         .reserved = word("-1"),
                         .forward = {12, word("ALLGATHER"), 34},
                         .input_grad = {56, word("NONE"), 0},
                         .weight_grad = {18446744073709551615u, word("ALLREDUCE"), 90},
                         .update_time = word("100"),
                         .policy = ORR_POLICY_MODEL};
    orr_layers *t;
    orr_error err;
    CHECK_OK(orr_layers_create(policy, &t, &err), &err);
    CHECK_OK(orr_layers_add(t, &l, &err), &err);
    CHECK_OK(orr_layers_add(t, &l, &err), &err);
    return t;
}

static void check_text(orr_policy policy, orr_layers_style style, const char *wanted)
{
    orr_layers *t = table_of(policy, "a");
    orr_error err;
    CHECK_OK(orr_layers_write(t, "out.txt", style, &err), &err);
    check_file("out.txt", wanted, strlen(wanted));
    orr_layers_free(t);
}

#define ROW "a\t-1\t12\tALLGATHER\t34\t56\tNONE\t0\t18446744073709551615\tALLREDUCE\t90\t100"
#define ROW_V2 "a\t-1\t 12\tALLGATHER\t34\t 56\tNONE\t0\t 18446744073709551615\tALLREDUCE\t90\t100"

TEST(test_layers_write__styles)
{
    check_text(ORR_POLICY_DATA, ORR_LAYERS_PLAIN, "DATA\n2\n" ROW "\n" ROW "\n");
    check_text(ORR_POLICY_HYBRID_CUSTOMIZED, ORR_LAYERS_PLAIN,
               "HYBRID_CUSTOMIZED\n2\n" ROW "\tMODEL\n" ROW "\tMODEL\n");
    check_text(ORR_POLICY_DATA, ORR_LAYERS_GENERATOR_V1, "DATA\n2\n" ROW "\tMODEL\n" ROW "\tMODEL");
    check_text(ORR_POLICY_DATA, ORR_LAYERS_GENERATOR_V2,
               "DATA\n2\n" ROW_V2 "\tMODEL\n" ROW_V2 "\tMODEL");
}

/* Every policy, with what stands behind it. */
TEST(test_layers_write__can_be_read_again)
{
    static const uint32_t some[] = {0, 1};
    const orr_policy_args args = {.last_bottom = 1,
                                  .model_group = 4,
                                  .checkpoints = some,
                                  .checkpoint_count = 2,
                                  .initiates = some + 1,
                                  .initiate_count = 1};
    for (unsigned p = 0; p < ORR_POLICY_COUNT; p++) {
        orr_layers *t = table_of((orr_policy)p, "a"), *again;
        orr_error err;
        CHECK_OK(orr_layers_set_args(t, &args, &err), &err);
        CHECK_OK(orr_layers_write(t, "out.txt", ORR_LAYERS_PLAIN, &err), &err);
        CHECK_OK(orr_layers_read("out.txt", NULL, &again, &err), &err);
        CHECK_EQ(orr_layers_policy(again), p);
        CHECK_EQ_U(orr_layers_count(again), 2);
        CHECK_EQ_U(orr_layers_get(again, 1)->forward.time, 12);
        CHECK_EQ_U(orr_layers_get(again, 1)->weight_grad.bytes, 90);
        if (p == ORR_POLICY_HYBRID_TRANSFORMER_FWD_IN_BCKWD) {
            CHECK_EQ_U(orr_layers_args(again)->model_group, 4);
            CHECK_EQ_U(orr_layers_args(again)->checkpoint_count, 2);
            CHECK_EQ_U(orr_layers_args(again)->initiates[0], 1);
        }
        orr_layers_free(again);
        orr_layers_free(t);
    }
}

TEST(test_layers_write__refuses_words_that_are_two)
{
    orr_layers *t = table_of(ORR_POLICY_DATA, "a b");
    orr_error err;
    CHECK_CODE(orr_layers_write(t, "none.txt", ORR_LAYERS_PLAIN, &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "\"a b\" is not one word");
    CHECK(access("none.txt", F_OK) != 0);
    CHECK_OK(orr_layers_write(t, "old.txt", ORR_LAYERS_GENERATOR_V1, &err), &err);
    orr_layers_free(t);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_layers_write__styles),
        RUN(test_layers_write__can_be_read_again),
        RUN(test_layers_write__refuses_words_that_are_two),
    };
    return RUN_ALL(tests);
}
