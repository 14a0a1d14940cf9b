/* SPDX-License-Identifier: Apache-2.0 */
/* room: astra_sim */
/* Files of rules; what comes of them in a run is tested in cli/old_astra_logging.sh. */
#include "check.h"

#include "compat/astra_sim/config_logging.h"

static orr_error err;
static orr_arena *arena;

static orr_code parse(const char *text, bool keeps_patterns, orr__logging *out)
{
    orr_arena_destroy(arena);
    arena = orr_arena_create();
    return orr__parse_logging((orr_span){(const uint8_t *)text, strlen(text)}, "l.toml",
                              keeps_patterns, arena, out, &err);
}

#define CONSOLE "[[sink]]\nname = 'c'\ntype = 'stdout_sink_mt'\n"
#define FILE_SINK "[[sink]]\nname = 'f'\ntype = 'basic_file_sink_st'\nfilename = 'f.log'\n"

TEST(test_config_logging__sinks)
{
    orr__logging l;
    CHECK_OK(parse(CONSOLE FILE_SINK
                   "truncate = true\nlevel = 'err'\ncreate_parent_dir = true\n"
                   "[[sink]]\nname = 'r'\ntype = 'rotating_file_sink_mt'\nbase_filename = 'r.log'\n"
                   "max_size = ' 10 M '\nmax_files = 3\n"
                   "[[sink]]\nname = 'd'\ntype = 'daily_file_sink_st'\nbase_filename = 'd.log'\n"
                   "rotation_hour = 23\nrotation_minute = 0\n"
                   "[[sink]]\nname = 'e'\ntype = 'color_stderr_sink_st'\nlevel = 'off'\n"
                   "[[sink]]\nname = 'n'\ntype = 'null_sink_st'\n"
                   "[[logger]]\nname = 'other'\nsinks = []\n",
                   false, &l),
             &err);
    CHECK_EQ_U(l.sink_count, 6);
    CHECK(l.sinks[0].kind == ORR__SINK_STDOUT && l.sinks[0].level == ORR__LOG_TRACE);
    CHECK(l.sinks[1].kind == ORR__SINK_FILE && l.sinks[1].level == ORR__LOG_ERROR);
    CHECK(l.sinks[1].truncates);
    CHECK_TEXT(l.sinks[1].path, "f.log");
    CHECK(l.sinks[2].kind == ORR__SINK_ROTATING && l.sinks[2].max_files == 3);
    CHECK_EQ_U(l.sinks[2].max_size, 10 << 20);
    CHECK(l.sinks[3].kind == ORR__SINK_DAILY);
    CHECK(l.sinks[4].kind == ORR__SINK_STDERR && l.sinks[4].level == ORR__LOG_OFF);
    CHECK(l.sinks[5].kind == ORR__SINK_NOTHING);
    for (unsigned i = 0; i < ORR__LOGGERS; i++)
        CHECK(l.rules[i].level == ORR__LOG_TRACE && l.rules[i].count == 0);
}

TEST(test_config_logging__loggers)
{
    orr__logging l;
    CHECK_OK(parse(CONSOLE FILE_SINK
                   "[[logger]]\nname = 'workload'\nsinks = ['f', 'c', 'f']\n"
                   "[[logger]]\nname = 'workload::LocalMemUsageTracker'\n"
                   "sinks = ['c']\nlevel = 'trace'\nflush_level = 'warn'\n"
                   "type = 'async'\noverflow_policy = 'overrun_oldest'\n"
                   "thread_pool = 'tp'\n"
                   "[[thread_pool]]\nname = 'tp'\nqueue_size = 8\nnum_threads = 1\n"
                   "[global_thread_pool]\nqueue_size = 8\n",
                   false, &l),
             &err);
    const orr__logger_rule *w = &l.rules[ORR__LOG_WORKLOAD], *t = &l.rules[ORR__LOG_TENSORS];
    CHECK(w->level == ORR__LOG_INFO && w->count == 3);
    CHECK(w->sinks[0] == 1 && w->sinks[1] == 0 && w->sinks[2] == 1);
    CHECK(t->level == ORR__LOG_TRACE && t->count == 1);
    CHECK(l.rules[ORR__LOG_SYSTEM].level == ORR__LOG_TRACE);
    CHECK(!l.has_unused_patterns);
}

/* The old program sets its own in the end. */
TEST(test_config_logging__patterns)
{
    static const char text[] =
        "global_pattern = 'g'\n" CONSOLE FILE_SINK "[[sink]]\nname = 'u'\ntype = 'stderr_sink_st'\n"
        "[[pattern]]\nname = 'p'\nvalue = 'P %v'\n"
        "[[logger]]\nname = 'a'\nsinks = ['c', 'f']\n"
        "[[logger]]\nname = 'b'\nsinks = ['f']\npattern = 'p'\n";
    orr__logging l;
    CHECK_OK(parse(text, true, &l), &err);
    CHECK_TEXT(l.sinks[0].pattern, "g");
    CHECK_TEXT(l.sinks[1].pattern, "P %v");
    CHECK_TEXT(l.sinks[2].pattern, orr__log_plain);
    CHECK(!l.has_unused_patterns);
    CHECK_OK(parse(text, false, &l), &err);
    for (int i = 0; i < 3; i++)
        CHECK_TEXT(l.sinks[i].pattern, "[%Y-%m-%dT%T%z] [%L] <%n>: %v");
    CHECK(l.has_unused_patterns);
}

TEST(test_config_logging__sizes)
{
    static const struct {
        const char *text;
        uint64_t size;
    } sizes[] = {{"7", 7},
                 {"64K", 65536},
                 {"64KB", 65536},
                 {"3g", UINT64_C(3) << 30},
                 {" 1 T ", UINT64_C(1) << 40},
                 {"8388607T", UINT64_C(8388607) << 40}};
    static const char *const wrong[] = {
        "", "0", "M", "10X", "1.5M", "-1", "1MBB", "8388608T", "99999999999999999999"};
    char text[300];
    orr__logging l;
    static const char frame[] =
        "[[sink]]\nname = 'r'\ntype = 'rotating_file_sink_st'\nbase_filename = 'r'\nmax_files = 1\n"
        "max_size = '%s'\n[[logger]]\nname = 'x'\nsinks = []\n";
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        snprintf(text, sizeof text, frame, sizes[i].text);
        CHECK_OK(parse(text, false, &l), &err);
        CHECK_EQ_U(l.sinks[0].max_size, sizes[i].size);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(text, sizeof text, frame, wrong[i]);
        CHECK_CODE(parse(text, false, &l), ORR_EINPUT, &err);
        CHECK_SAYS(&err, "l.toml:6:12: max_size");
    }
}

static void refuse(const char *text, const char *words)
{
    orr__logging l;
    CHECK_CODE(parse(text, false, &l), ORR_EINPUT, &err);
    CHECK_SAYS(&err, words);
}

TEST(test_config_logging__errors_name_the_place)
{
    refuse("", "l.toml:1:1: there is no [[sink]]");
    refuse(CONSOLE, "l.toml:1:1: there is no [[logger]]");
    refuse("sink = 1", "l.toml:1:8: sink: expected a list, this is a whole number");
    refuse("sink = [1]", "l.toml:1:9: sink: expected a table, this is a whole number");
    refuse("sinks = []", "l.toml:1:1: unknown key \"sinks\"");
    refuse(CONSOLE "colour = 1", "l.toml:4:1: unknown key \"colour\"");
    refuse("[[sink]]\ntype = 'null_sink_st'", "l.toml:1:3: the key \"name\" is missing");
    refuse("[[sink]]\nname = 'x'", "l.toml:1:3: the key \"type\" is missing");
    refuse("[[sink]]\nname = 'x'\ntype = 'null_sink'",
           "l.toml:3:8: type \"null_sink\" is not one of");
    refuse("[[sink]]\nname = 'x'\ntype = 'syslog_sink_st'", "l.toml:3:8: type \"syslog_sink_st\"");
    refuse(CONSOLE "level = 'error'",
           "l.toml:4:9: level \"error\" is not trace, debug, info, warn, "
           "err, critical or off");
    refuse(CONSOLE "level = 3", "l.toml:4:9: level: expected a text, this is a whole number");
    refuse(CONSOLE CONSOLE, "l.toml:4:3: duplicate sink \"c\"");
    refuse("[[sink]]\nname = 'x'\ntype = 'basic_file_sink_st'",
           "l.toml:1:3: the key \"filename\" is missing");
    refuse("[[sink]]\nname = 'x'\ntype = 'basic_file_sink_st'\nfilename = ''",
           "l.toml:4:12: filename: expected the name of a file");
    refuse("[[sink]]\nname = 'x'\ntype = 'basic_file_sink_st'\nfilename = \"a\\u0000\"",
           "l.toml:4:12: filename: a text with a NUL character");
    refuse(FILE_SINK "truncate = 1", "l.toml:5:12: truncate: expected true or false");
    refuse("[[sink]]\nname = 'x'\ntype = 'daily_file_sink_st'\nbase_filename = 'd'\n"
           "rotation_hour = 24\nrotation_minute = 0",
           "l.toml:5:17: rotation_hour: expected a number from 0 to 23");
    refuse(CONSOLE "[[logger]]\nname = 'x'", "l.toml:4:3: the key \"sinks\" is missing");
    refuse(CONSOLE "[[logger]]\nname = 'x'\nsinks = ['d']",
           "l.toml:6:10: there is no [[sink]] with the name \"d\"");
    refuse(CONSOLE "[[logger]]\nname = 'x'\nsinks = ['c']\npattern = 'p'",
           "l.toml:7:11: there is no [[pattern]] with the name \"p\"");
    refuse(CONSOLE "[[logger]]\nname = 'x'\nsinks = []\n[[logger]]\nname = 'x'\nsinks = []",
           "l.toml:7:3: duplicate logger \"x\"");
    refuse(CONSOLE "[[logger]]\nname = ''\nsinks = []", "name: the logger has an empty one");
    refuse(CONSOLE "[[logger]]\nname = 'x'\nsinks = []\ntype = 'both'",
           "l.toml:7:8: type \"both\" is not sync or async");
    refuse(CONSOLE "[[logger]]\nname = 'x'\nsinks = []\nthread_pool = 't'",
           "l.toml:7:15: there is no [[thread_pool]] with the name \"t\"");
    refuse(CONSOLE "[[pattern]]\nname = 'x'", "l.toml:4:3: the key \"value\" is missing");
    refuse(CONSOLE "[[sink]", "l.toml:4:8: expected \"]]\"");
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_config_logging__sinks),
        RUN(test_config_logging__loggers),
        RUN(test_config_logging__patterns),
        RUN(test_config_logging__sizes),
        RUN(test_config_logging__errors_name_the_place),
    };
    const int failed = RUN_ALL(tests);
    orr_arena_destroy(arena);
    return failed;
}
