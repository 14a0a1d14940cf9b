/* SPDX-License-Identifier: Apache-2.0 */
/* room: chakra */
#include "check.h"

#include "compat/chakra/chakra.h"

#include <orrery/lab/layers.h>

static orr_error err;

#define ROW " -1 10 NONE 0 20 NONE 0 30 ALLREDUCE 4096 5"

static orr_code parse(const char *text, bool is_compat, orr_layers **out)
{
    const orr_layers_read_options opt = {.rules = is_compat ? &chakra_text_rules : NULL};
    return orr_layers_parse((orr_span){(const uint8_t *)text, strlen(text)}, "w.txt", &opt, out,
                            &err);
}

static orr_layers *good(const char *text)
{
    orr_layers *t;
    CHECK_OK(parse(text, false, &t), &err);
    return t;
}

/* Refused, at this line and column, with words that contain `part`. */
static void bad_as(
    bool is_compat, const char *text, uint32_t line, uint32_t column, const char *part)
{
    orr_layers *t;
    CHECK_CODE(parse(text, is_compat, &t), ORR_EINPUT, &err);
    CHECK(t == NULL);
    CHECK_SAYS(&err, part);
    CHECK_EQ(err.where.line, line);
    CHECK_EQ(err.where.column, column);
}

static void bad(const char *text, uint32_t line, uint32_t column, const char *part)
{
    bad_as(false, text, line, column, part);
}

static void bad_in_both(const char *text, uint32_t line, uint32_t column, const char *part)
{
    bad_as(false, text, line, column, part);
    bad_as(true, text, line, column, part);
}

TEST(test_layers_read__a_row_has_twelve_columns)
{
    orr_layers *t = good("MODEL\n1\nmlp0 -1 7 ALLGATHER 1 8 REDUCESCATTER 2 9 NONE 3 44\n");
    const orr_layer *l = orr_layers_get(t, 0);
    CHECK_EQ(orr_layers_policy(t), ORR_POLICY_MODEL);
    CHECK_TEXT(l->name.ptr, "mlp0");
    CHECK_TEXT(l->reserved.ptr, "-1");
    CHECK_EQ(l->forward.time, 7);
    CHECK_TEXT(l->forward.comm.ptr, "ALLGATHER");
    CHECK_EQ(l->forward.bytes, 1);
    CHECK_EQ(l->input_grad.time, 8);
    CHECK_TEXT(l->input_grad.comm.ptr, "REDUCESCATTER");
    CHECK_EQ(l->weight_grad.bytes, 3);
    CHECK_TEXT(l->update_time.ptr, "44");
    orr_layers_free(t);
}

TEST(test_layers_read__white_space_comments_and_line_ends_do_not_matter)
{
    orr_layers *t = good("\xEF\xBB\xBF# a comment\n\n  DATA\t\t \r\n\t2 \r\n a" ROW "\t\t\r\n"
                         "\r\n  # one more\r b\t" ROW);
    CHECK_EQ(orr_layers_count(t), 2);
    CHECK_TEXT(orr_layers_get(t, 1)->name.ptr, "b");
    orr_layers_free(t);
}

TEST(test_layers_read__columns_past_the_twelfth_are_free)
{
    orr_layers *t = good("DATA\n2\na" ROW " DATA\nb" ROW " anything at all\n");
    CHECK_EQ(orr_layers_count(t), 2);
    orr_layers_free(t);
}

TEST(test_layers_read__a_customized_table_has_a_policy_in_every_row)
{
    orr_layers *t = good("HYBRID_CUSTOMIZED\n2\na" ROW " MODEL\nb" ROW "\tHYBRID_DATA_MODEL\n");
    CHECK_EQ(orr_layers_get(t, 0)->policy, ORR_POLICY_MODEL);
    CHECK_EQ(orr_layers_get(t, 1)->policy, ORR_POLICY_HYBRID_DATA_MODEL);
    orr_layers_free(t);
    bad("HYBRID_CUSTOMIZED\n1\na" ROW "\n", 3, 45, "the policy of the layer (column 13)");
    bad("HYBRID_CUSTOMIZED\n1\na" ROW " DLRM\n", 3, 46, "'DLRM' is not the policy of a layer");
    bad("HYBRID_CUSTOMIZED\n1\na" ROW " HYBRID_TRANSFORMER\n", 3, 46, "is not the policy of");
}

TEST(test_layers_read__policies_have_their_arguments)
{
    orr_layers *t = good("HYBRID_DLRM 4\n1\na" ROW);
    CHECK_EQ(orr_layers_args(t)->last_bottom, 4);
    orr_layers_free(t);
    t = good("HYBRID_TRANSFORMER\tmodel_parallel_NPU_group: 4\t\t\r\n1\r\na" ROW "\r\n");
    CHECK_EQ(orr_layers_args(t)->model_group, 4);
    orr_layers_free(t);
    t = good("HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 checkpoints: 2 2 11 "
             "checkpoint_initiates: 3 19 10 4\n1\na" ROW);
    const orr_policy_args *args = orr_layers_args(t);
    CHECK_EQ(args->model_group, 8);
    CHECK_EQ(args->checkpoint_count, 2);
    CHECK_EQ(args->checkpoints[1], 11);
    CHECK_EQ(args->initiate_count, 3);
    CHECK_EQ(args->initiates[2], 4);
    orr_layers_free(t);
}

TEST(test_layers_read__a_header_with_something_missing_or_too_much_is_an_error)
{
    bad_in_both("", 1, 1, "begins with no policy");
    bad("\n# nothing\n", 1, 1, "begins with no policy");
    bad_in_both("DATUM\n1\na" ROW, 1, 1, "'DATUM' is not a policy");
    bad("DATA 3\n1\na" ROW, 1, 6, "'3' is not expected here");
    bad_in_both("HYBRID_DLRM\n1\na" ROW, 1, 12, "the index of the last bottom layer");
    bad_in_both("HYBRID_DLRM four\n1\na" ROW, 1, 13, "'four' is not the index");
    bad("HYBRID_TRANSFORMER 4\n1\na" ROW, 1, 20, "'4' is not the label");
    bad("HYBRID_TRANSFORMER npus:\n1\na" ROW, 1, 25, "the size of a model-parallel group");
    bad("HYBRID_TRANSFORMER_FWD_IN_BCKWD g: 4 c: 3 1 2\n1\na" ROW, 1, 46, "the number of a layer");
    bad("HYBRID_TRANSFORMER_FWD_IN_BCKWD g: 4 c: 99999999\n1\na" ROW, 1, 49,
        "has no room for 99999999 layers");
    bad_in_both("DATA", 1, 5, "the number of layers");
}

TEST(test_layers_read__the_announced_number_of_layers_is_compared)
{
    bad("DATA\n3\na" ROW "\nb" ROW "\n", 2, 1, "the number of layers is 3, but 2 follow");
    bad("DATA\n1\na" ROW "\nb" ROW "\n", 2, 1, "the number of layers is 1, but 2 follow");
    bad("DATA\n0\n", 2, 1, "there are no layers");
    bad_in_both("DATA\nx\na" ROW, 2, 1, "the number of layers 'x' is not a whole number");
    bad_in_both("DATA\n1 2\na" ROW, 2, 3, "'2' is not expected after the number of layers");
}

TEST(test_layers_read__a_wrong_column_is_named_with_its_place)
{
    bad_in_both("DATA\n1\na -1 10.5 NONE 0 20 NONE 0 30 NONE 0 5", 3, 6, "forward time '10.5'");
    bad_in_both("DATA\n1\na -1 -10 NONE 0 20 NONE 0 30 NONE 0 5", 3, 6, "time '-10' is negative");
    bad("DATA\n1\na -1 10 NONE -4 20 NONE 0 30 NONE 0 5", 3, 14, "size '-4' is negative");
    bad_in_both("DATA\n1\na -1 10 NONE 0 0x5 NONE 0 30 NONE 0 5", 3, 16, "input gradient time");
    bad_in_both("DATA\n1\na -1 10 NONE 0 20 NONE 0 30 NONE 9223372036854775808 5", 3, 34,
                "weight gradient size '9223372036854775808' is larger than 9223372036854775807");
    bad_in_both("DATA\n1\na -1 18446744073709551616 NONE 0 20 NONE 0 30 NONE 0 5", 3, 6,
                "is larger than 18446744073709551615");
    bad_in_both("DATA\n1\na -1 10 NONE 0 20 NONE 0 30 NONE 0", 3, 35, "11 columns");
    bad("DATA\n1\na -1 10 NONE 0 20 NONE 0 30 NONE 0 soon", 3, 36, "update time 'soon'");
    bad("DATA\n1\na -1 10 NONE 0 20 BROADCAST 0 30 NONE 0 5", 3, 19, "'BROADCAST' is not a coll");
}

TEST(test_layers_read__numbers_have_64_bits)
{
    orr_layers *t = good(
        "DATA\n1\na -1 18446744073709551615 NONE 0 +7 NONE 0 30 ALLREDUCE 9223372036854775807 5");
    CHECK_EQ_U(orr_layers_get(t, 0)->forward.time, UINT64_MAX);
    CHECK_EQ(orr_layers_get(t, 0)->input_grad.time, 7);
    CHECK_EQ(orr_layers_get(t, 0)->weight_grad.bytes, INT64_MAX);
    orr_layers_free(t);
}

TEST(test_layers_read__text_that_is_not_utf8_is_an_error)
{
    bad_in_both("DATA\n1\nb\xff" ROW, 3, 2, "byte 0xff is not UTF-8");
    orr_layers *t = good("DATA\n1\nSchicht\xC3\xA4" ROW);
    orr_layers_free(t);
}

/* chakra.md 4.3: the count is not compared, words past those needed are free, blank lines are
 * not. */
TEST(test_layers_read__compat_reads_as_the_converter)
{
    orr_layers *t;
    CHECK_OK(parse("DATA whatever\n-7\na -1 1 FOO 0 2 BAR 0 3 BAZ 0 soon\n", true, &t), &err);
    CHECK_TEXT(orr_layers_get(t, 0)->forward.comm.ptr, "FOO");
    orr_layers_free(t);
    CHECK_OK(parse("DATA\n1\na -1 1 NONE -4 2 NONE 0 3 NONE 0 5\n", true, &t), &err);
    CHECK_EQ_U(orr_layers_get(t, 0)->forward.bytes, (uint64_t)-4);
    orr_layers_free(t);
    CHECK_OK(parse("DATA\n0\n", true, &t), &err);
    CHECK_EQ(orr_layers_count(t), 0);
    orr_layers_free(t);
    bad_as(true, "DATA\n1\na" ROW "\n\n", 4, 1, "a blank line");
    bad_as(true, "# no\nDATA\n1\na" ROW, 1, 1, "'#' is not a policy");
    bad_as(true, "HYBRID_CUSTOMIZED\n1\na" ROW " DATA", 1, 1, "'orrery convert text' does");
}

TEST(test_layers_read__a_missing_file_is_the_systems_fault)
{
    orr_layers *t;
    CHECK_CODE(orr_layers_read("nowhere.txt", NULL, &t, &err), ORR_EIO, &err);
    CHECK(t == NULL);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_layers_read__a_row_has_twelve_columns),
        RUN(test_layers_read__white_space_comments_and_line_ends_do_not_matter),
        RUN(test_layers_read__columns_past_the_twelfth_are_free),
        RUN(test_layers_read__a_customized_table_has_a_policy_in_every_row),
        RUN(test_layers_read__policies_have_their_arguments),
        RUN(test_layers_read__a_header_with_something_missing_or_too_much_is_an_error),
        RUN(test_layers_read__the_announced_number_of_layers_is_compared),
        RUN(test_layers_read__a_wrong_column_is_named_with_its_place),
        RUN(test_layers_read__numbers_have_64_bits),
        RUN(test_layers_read__text_that_is_not_utf8_is_an_error),
        RUN(test_layers_read__compat_reads_as_the_converter),
        RUN(test_layers_read__a_missing_file_is_the_systems_fault),
    };
    return RUN_ALL(tests);
}
