/* SPDX-License-Identifier: Apache-2.0 */
/* test_option.c - the command-line parser, on a table made for the purpose. */
#include "check.h"

#include "option.h"

static orr_code run_nothing(cli_context *c, orr_error *err)
{
    (void)c;
    (void)err;
    return ORR_OK;
}

static const cli_option options[] = {
    {"ranks", 'n', "N", "how many", .kind = CLI_COUNT, .min = 1, .max = 100, .fallback = "4"},
    {"seed", 0, "N", "any number", .kind = CLI_COUNT},
    {"order", 0, "id|time", "the order", .fallback = "id"},
    {"output", 'o', "FILE", "where to"},
    {"json", 'j', NULL, "as JSON"},
    {"top", 't', "N", "the first few", .kind = CLI_COUNT, .implied = "10"},
    {0},
};

static const cli_argument arguments[] = {
    {"KIND", "what", CLI_ONCE},
    {"FILE", "which", CLI_ANY},
    {0},
};

static const cli_command command = {
    .name = "try",
    .summary = "try the parser",
    .options = options,
    .arguments = arguments,
    .run = run_nothing,
};

static const cli_option old_options[] = {
    {"input_filename", 0, "FILE", "in", .required = true},
    {"input_type", 0, "NAME", "what"},
    {"output_filename", 0, "FILE", "out"},
    {0},
};

static const cli_command old_command = {
    .name = "old_try",
    .summary = "an old name",
    .options = old_options,
    .now = "orrery try",
    .run = run_nothing,
};

static orr_error err;

/* Words parted by blanks, as a shell would hand them over. */
static orr_code parse(cli_context *c, const cli_command *table, const char *line)
{
    static char text[256];
    static char *words[32];
    int n = 0;
    snprintf(text, sizeof text, "%s", line);
    for (char *at = text; *at;) {
        words[n++] = at;
        at += strcspn(at, " ");
        if (*at)
            *at++ = '\0';
    }
    *c = (cli_context){.command = table};
    return cli_parse(c, n, words, &err);
}

static void refuse(const cli_command *table, const char *line, const char *words)
{
    cli_context c;
    CHECK_CODE(parse(&c, table, line), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, words);
}

TEST(test_option__values_in_every_spelling)
{
    static const char *const lines[] = {
        "a --ranks 7", "a --ranks=7", "a -n 7", "a -n7", "-jn7 a", "-n 9 -n 7 a",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        cli_context c;
        CHECK_OK(parse(&c, &command, lines[i]), &err);
        CHECK_EQ_U(cli_count(&c, "ranks"), 7);
        CHECK_EQ(c.arg_count, 1);
    }
}

TEST(test_option__fallbacks_when_not_given)
{
    cli_context c;
    CHECK_OK(parse(&c, &command, "a"), &err);
    CHECK_EQ_U(cli_count(&c, "ranks"), 4);
    CHECK_TEXT(cli_text(&c, "order"), "id");
    CHECK(cli_text(&c, "output") == NULL);
    CHECK(!cli_flag(&c, "json"));
    CHECK(!cli_given(&c, "ranks"));
}

TEST(test_option__options_and_arguments_mix)
{
    cli_context c;
    CHECK_OK(parse(&c, &command, "a x --json y -o - -- --ranks"), &err);
    CHECK_EQ(c.arg_count, 4);
    CHECK_TEXT(c.args[1], "x");
    CHECK_TEXT(c.args[2], "y");
    CHECK_TEXT(c.args[3], "--ranks");
    CHECK_TEXT(cli_text(&c, "output"), "-");
    CHECK(cli_flag(&c, "json"));
}

TEST(test_option__lone_dash_is_an_argument)
{
    cli_context c;
    CHECK_OK(parse(&c, &command, "a -"), &err);
    CHECK_TEXT(c.args[1], "-");
}

TEST(test_option__a_value_may_be_implied)
{
    cli_context c;
    CHECK_OK(parse(&c, &command, "a"), &err);
    CHECK(!cli_given(&c, "top"));
    CHECK_OK(parse(&c, &command, "a --top 5"), &err); /* 5 is an argument */
    CHECK_EQ_U(cli_count(&c, "top"), 10);
    CHECK_EQ(c.arg_count, 2);
    CHECK_OK(parse(&c, &command, "a --top=5"), &err);
    CHECK_EQ_U(cli_count(&c, "top"), 5);
    CHECK_OK(parse(&c, &command, "-t a"), &err);
    CHECK_EQ_U(cli_count(&c, "top"), 10);
    CHECK_OK(parse(&c, &command, "a -t7"), &err);
    CHECK_EQ_U(cli_count(&c, "top"), 7);
}

TEST(test_option__common_options_everywhere)
{
    cli_context c;
    CHECK_OK(parse(&c, &command, "-q a --color never"), &err);
    CHECK(c.quiet);
    CHECK_TEXT(c.color, "never");
}

TEST(test_option__help_wins_over_what_is_missing)
{
    cli_context c;
    CHECK_OK(parse(&c, &command, "--help"), &err);
    CHECK(c.wants_help);
    CHECK_OK(parse(&c, &old_command, "-h --nonsense"), &err);
    CHECK(c.wants_help);
}

TEST(test_option__refuses_numbers_out_of_range)
{
    refuse(&command, "a --ranks 0", "--ranks '0' is not a whole number from 1 to 100");
    refuse(&command, "a --ranks 101", "from 1 to 100");
    refuse(&command, "a --ranks 7x", "from 1 to 100");
    refuse(&command, "a --ranks=", "from 1 to 100");
    refuse(&command, "a --ranks=-1", "from 1 to 100");
    refuse(&command, "a --seed 18446744073709551616", "of at least 0"); /* 2^64 */
}

TEST(test_option__takes_the_largest_number)
{
    cli_context c;
    CHECK_OK(parse(&c, &command, "a --seed 18446744073709551615"), &err);
    CHECK(cli_count(&c, "seed") == UINT64_MAX);
}

TEST(test_option__refuses_other_words_than_the_choices)
{
    refuse(&command, "a --order tim", "--order 'tim' is not one of id|time");
    refuse(&command, "a --color sometimes", "auto|always|never");
}

TEST(test_option__suggests_the_nearest_name)
{
    refuse(&command, "a --rank 3", "unknown option --rank; did you mean --ranks?");
    refuse(&command, "a --oredr id", "did you mean --order?");
    refuse(&command, "a --out=x", "did you mean --output?");
    refuse(&command, "a -x", "unknown option -x");
    refuse(&command, "a --zzzzzz", "unknown option --zzzzzz");
    CHECK(!strstr(err.message, "did you mean"));
}

TEST(test_option__refuses_missing_and_extra_parts)
{
    refuse(&command, "", "missing argument: KIND");
    refuse(&command, "a --output", "--output requires a value: FILE");
    refuse(&command, "a --output --json", "followed by the option --json");
    refuse(&command, "a --json=1", "--json takes no value");
    refuse(&old_command, "--output_filename x", "missing option: --input_filename FILE");
    refuse(&old_command, "--input_filename x y", "extra argument 'y'");
}

TEST(test_option__old_names_may_be_abbreviated)
{
    cli_context c;
    CHECK_OK(parse(&c, &old_command, "--input_f a --out b"), &err);
    CHECK_TEXT(cli_text(&c, "input_filename"), "a");
    CHECK_TEXT(cli_text(&c, "output_filename"), "b");
    refuse(&old_command, "--input a", "unknown option --input"); /* fits two */
    refuse(&command, "a --ran 3", "unknown option --ran");       /* new names are written out */
}

TEST(test_option__choices_are_parted_by_bars)
{
    size_t len;
    CHECK(cli_choice("one|two", 0, &len) && len == 3);
    CHECK(memcmp(cli_choice("one|two", 1, &len), "two", 3) == 0 && len == 3);
    CHECK(cli_choice("one|two", 2, &len) == NULL);
    CHECK(cli_is_choice("one|two") && !cli_is_choice("FILE") && !cli_is_choice(NULL));
}

TEST(test_option__nearest_counts_typing_mistakes)
{
    CHECK_TEXT(cli_nearer("hlep", NULL, "help"), "help"); /* two neighbours swapped: one mistake */
    CHECK(cli_nearer("run", NULL, "info") == NULL);
    CHECK_TEXT(cli_nearer("chek", cli_nearer("chek", NULL, "cheque"), "check"), "check");
    CHECK(cli_nearer("a", NULL, "abc") == NULL);
}

TEST(test_option__dashes_and_underscores_are_the_same)
{
    cli_context c;
    CHECK_OK(parse(&c, &old_command, "--input-filename a --output_f b"), &err);
    CHECK_TEXT(cli_text(&c, "input_filename"), "a");
    CHECK_TEXT(cli_text(&c, "output_filename"), "b");
    CHECK_OK(parse(&c, &old_command, "--input_filename a --output-file=b"), &err);
    CHECK_TEXT(cli_text(&c, "output_filename"), "b");
    CHECK_CODE(parse(&c, &old_command, "--input-filenam-e a"), ORR_EUSAGE, &err);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_option__values_in_every_spelling),
        RUN(test_option__fallbacks_when_not_given),
        RUN(test_option__options_and_arguments_mix),
        RUN(test_option__lone_dash_is_an_argument),
        RUN(test_option__a_value_may_be_implied),
        RUN(test_option__common_options_everywhere),
        RUN(test_option__help_wins_over_what_is_missing),
        RUN(test_option__refuses_numbers_out_of_range),
        RUN(test_option__takes_the_largest_number),
        RUN(test_option__refuses_other_words_than_the_choices),
        RUN(test_option__suggests_the_nearest_name),
        RUN(test_option__refuses_missing_and_extra_parts),
        RUN(test_option__old_names_may_be_abbreviated),
        RUN(test_option__dashes_and_underscores_are_the_same),
        RUN(test_option__choices_are_parted_by_bars),
        RUN(test_option__nearest_counts_typing_mistakes),
    };
    return RUN_ALL(tests);
}
