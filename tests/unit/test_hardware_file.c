/* SPDX-License-Identifier: Apache-2.0 */
/* Hardware: the chips that are built in, and the file. */
#include "check.h"

#include <orrery/lab/hardware.h>

static orr_code parse(const char *text, orr_hardware *hw, orr_error *err)
{
    return orr_hardware_parse((orr_span){(const uint8_t *)text, strlen(text)}, "chip.yml", hw, err);
}

/* The text is refused with these words, at this place. */
static void refuse(const char *text, uint32_t line, uint32_t column, const char *words)
{
    orr_hardware hw = {.rows = 77};
    orr_error err;
    CHECK_CODE(parse(text, &hw, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, words);
    CHECK_EQ_U(err.where.line, line);
    CHECK_EQ_U(err.where.column, column);
    CHECK_EQ_U(hw.rows, 77); /* untouched */
}

TEST(test_hardware__peaks_are_those_published)
{
    /* Dense 16-bit TFLOPS of the makers' data sheets; 8-bit TOPS of the first TPU. */
    static const struct {
        const char *name;
        double tera;
    } published[] = {{"h200-peak", 989.4}, {"h100", 989.4},  {"a100", 312},   {"v100", 125},
                     {"mi300x", 1307.4},   {"tpu-v5e", 197}, {"tpu-v4", 275}, {"tpu-v3", 123},
                     {"tpu-v2", 46},       {"tpu-v1", 92}};
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        const orr_hardware *hw = orr_hardware_find(published[i].name);
        CHECK(hw != NULL);
        const double ratio = orr_hardware_peak(hw) / (published[i].tera * 1e12);
        CHECK(ratio > 0.99 && ratio < 1.01);
    }
    CHECK(orr_hardware_find("no such chip") == NULL);
}

TEST(test_hardware__text_reads_back_the_same)
{
    for (size_t i = 0; orr_hardware_at(i); i++) {
        const orr_hardware *hw = orr_hardware_at(i);
        orr_hardware again;
        orr_error err;
        char text[1000], text_again[1000];
        CHECK(orr_hardware_text(hw, text, sizeof text) < sizeof text);
        CHECK_OK(parse(text, &again, &err), &err);
        CHECK(orr_hardware_text(&again, text_again, sizeof text_again) < sizeof text_again);
        CHECK_TEXT(text, text_again);
        CHECK(orr_hardware_peak(hw) == orr_hardware_peak(&again));
    }
}

TEST(test_hardware__text_counts_what_does_not_fit)
{
    char text[20];
    const orr_hardware *hw = orr_hardware_at(0);
    const size_t whole = orr_hardware_text(hw, NULL, 0);
    CHECK_EQ_U(orr_hardware_text(hw, text, sizeof text), whole);
    CHECK_EQ_U(strlen(text), sizeof text - 1);
}

TEST(test_hardware__file_gives_every_field)
{
    orr_hardware hw;
    orr_error err;
    CHECK_OK(parse("name: mine\nnote: a note\narrays: 4\nrows: 16\ncolumns: 8\ndataflow: is\n"
                   "clock: 1.5GHz\nmemory_bandwidth: 800Gb/s\ninput_buffer: 1MiB\n"
                   "weight_buffer: 2kB\noutput_buffer: 3B\nvector_width: 64\noverhead: 2us\n",
                   &hw, &err),
             &err);
    CHECK_TEXT(hw.name, "mine");
    CHECK_TEXT(hw.note, "a note");
    CHECK_EQ_U(hw.arrays, 4);
    CHECK_EQ_U(hw.rows, 16);
    CHECK_EQ_U(hw.columns, 8);
    CHECK_EQ(hw.dataflow, ORR_DATAFLOW_IS);
    CHECK_EQ_U(hw.clock_hz, 1500000000);
    CHECK_EQ_U(hw.memory_bandwidth, 100000000000); /* bits to bytes */
    CHECK_EQ_U(hw.input_buffer, 1048576);
    CHECK_EQ_U(hw.weight_buffer, 2000);
    CHECK_EQ_U(hw.output_buffer, 3);
    CHECK_EQ_U(hw.vector_width, 64);
    CHECK_EQ(hw.overhead, 2000000);
    CHECK(orr_hardware_peak(&hw) == 2.0 * 4 * 16 * 8 * 1.5e9);
}

TEST(test_hardware__what_is_left_out_is_no_limit)
{
    orr_hardware hw;
    orr_error err;
    CHECK_OK(parse("{rows: 2, columns: 3, clock: 1GHz}", &hw, &err), &err);
    CHECK_TEXT(hw.name, "unnamed");
    CHECK_EQ_U(hw.arrays, 1);
    CHECK_EQ(hw.dataflow, ORR_DATAFLOW_WS);
    CHECK(hw.memory_bandwidth == 0 && hw.input_buffer == 0 && hw.vector_width == 0 &&
          hw.overhead == 0);
}

TEST(test_hardware__errors_name_key_and_place)
{
    refuse("rows: 2\ncolumns: 3\n", 1, 1, "\"clock\" is missing");
    refuse("rows: 0\ncolumns: 3\nclock: 1GHz\n", 1, 7, "rows: \"0\" is not a whole number");
    refuse("rows: 2\ncolumns: 3\nclock: 1000\n", 3, 8, "clock: \"1000\" is not a frequency");
    refuse("rows: 2\ncolumns: 3\nclock: 10Hz\n", 3, 8, "from 1MHz");
    refuse("rows: 2\ncolumns: 3\nclock: [1GHz]\n", 3, 8, "expected");
    refuse("rows: 2\ncolumns: 3\nclock: 1GHz\nspeed: 3\n", 4, 1, "unknown key \"speed\"");
    refuse("rows: 2\nrows: 2\ncolumns: 3\nclock: 1GHz\n", 2, 1, "duplicate key");
    refuse("rows: 2\ncolumns: 3\nclock: 1GHz\ndataflow: rs\n", 4, 11, "os or ws or is");
    refuse("rows: 2\ncolumns: 3\nclock: 1GHz\noverhead: -5us\n", 4, 11, "overhead");
    refuse("rows: 2\ncolumns: 3\nclock: 1GHz\nmemory_bandwidth: 0\n", 4, 19, "a rate above 0");
    refuse("rows: 2\ncolumns: 3\nclock: 1GHz\nname: \"\"\n", 4, 7, "plain characters");
    refuse("- 1\n", 1, 1, "a map");
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_hardware__peaks_are_those_published),
        RUN(test_hardware__text_reads_back_the_same),
        RUN(test_hardware__text_counts_what_does_not_fit),
        RUN(test_hardware__file_gives_every_field),
        RUN(test_hardware__what_is_left_out_is_no_limit),
        RUN(test_hardware__errors_name_key_and_place),
    };
    return RUN_ALL(tests);
}
