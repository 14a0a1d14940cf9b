/* SPDX-License-Identifier: Apache-2.0 */
/* room: astra_sim */
#include "files.h"

#include "compat/astra_sim/config_logging.h"

#include <sys/stat.h>

static orr_error err;

/* Lines of three bytes: "a\n", with the letter twice. */
static void add_lines(const char *path, const orr_log_file_options *opt, const char *letters)
{
    orr_log_file *f;
    CHECK_OK(orr_log_file_open(path, opt, &f, &err), &err);
    for (; *letters; letters++) {
        const char line[] = {*letters, *letters, '\n'};
        orr_log_file_add(f, (orr_str){line, 3});
    }
    CHECK_OK(orr_log_file_close(&f, &err), &err);
    CHECK(f == NULL);
}

static void check_content(const char *path, const char *text)
{
    check_file(path, text, strlen(text));
}

TEST(test_log_file__goes_on_where_it_ended)
{
    add_lines("on.log", NULL, "ab");
    add_lines("on.log", NULL, "");
    add_lines("on.log", NULL, "c");
    check_content("on.log", "aa\nbb\ncc\n");
}

TEST(test_log_file__begins_anew_when_asked)
{
    const orr_log_file_options opt = {.truncates = true};
    add_lines("new.log", &opt, "ab");
    orr_log_file *f;
    CHECK_OK(orr_log_file_open("new.log", &opt, &f, &err), &err);
    orr_log_file_add(f, orr_str_of("c\n"));
    check_content("new.log", "aa\nbb\n"); /* nobody sees half of the new one */
    CHECK_OK(orr_log_file_close(&f, &err), &err);
    check_content("new.log", "c\n");
    add_lines("-", &opt, "a"); /* no standard output */
    check_content("./-", "aa\n");
}

TEST(test_log_file__makes_folders)
{
    add_lines("one/two/x.log", NULL, "a");
    add_lines("one/two/x.log", NULL, "b");
    check_content("one/two/x.log", "aa\nbb\n");
    write_file("plain", "", 0);
    orr_log_file *f;
    CHECK_CODE(orr_log_file_open("plain/x.log", NULL, &f, &err), ORR_EIO, &err);
    CHECK(f == NULL);
    CHECK_SAYS(&err, "plain/x.log: cannot open: Not a directory");
}

/* Two lines fit in six bytes. */
TEST(test_log_file__turns_over)
{
    const orr_log_file_options opt = {.max_size = 6, .max_files = 2};
    add_lines("r.log", &opt, "abc");
    check_content("r.log", "cc\n");
    check_content("r.1.log", "aa\nbb\n");
    add_lines("r.log", &opt, "de"); /* what is already defined counts */
    check_content("r.log", "ee\n");
    check_content("r.1.log", "cc\ndd\n");
    check_content("r.2.log", "aa\nbb\n");
    add_lines("r.log", &opt, "fg");
    check_content("r.1.log", "ee\nff\n");
    check_content("r.2.log", "cc\ndd\n"); /* the oldest is gone */
    CHECK(access("r.3.log", F_OK) != 0);
}

TEST(test_log_file__long_lines_and_no_further_files)
{
    add_lines("long.log", &(orr_log_file_options){.max_size = 2, .max_files = 1}, "ab");
    check_content("long.log", "bb\n");
    check_content("long.1.log", "aa\n");
    add_lines("none.log", &(orr_log_file_options){.max_size = 3}, "abc");
    check_content("none.log", "cc\n");
    CHECK(access("none.1.log", F_OK) != 0);
}

TEST(test_log_file__many_lines)
{
    orr_log_file *f;
    static char line[1000];
    struct stat st;
    memset(line, 'x', sizeof line);
    CHECK_OK(orr_log_file_open("many.log", NULL, &f, &err), &err);
    for (int i = 0; i < 1000; i++)
        orr_log_file_add(f, (orr_str){line, sizeof line});
    CHECK_OK(orr_log_file_close(&f, &err), &err);
    CHECK(stat("many.log", &st) == 0 && st.st_size == 1000000);
}

TEST(test_log_file__a_full_disk_is_an_error)
{
    orr_log_file *f;
    if (access("/dev/full", W_OK) != 0)
        skip();
    CHECK_OK(orr_log_file_open("/dev/full", NULL, &f, &err), &err);
    orr_log_file_add(f, orr_str_of("a\n"));
    CHECK_CODE(orr_log_file_close(&f, &err), ORR_EIO, &err);
    CHECK_SAYS(&err, "/dev/full: cannot write: No space left on device");
}

TEST(test_log_file__names_get_their_number_before_the_end)
{
    static const struct {
        const char *path, *want;
    } names[] = {
        {"run.log", "run.1.log"},     {"a.b/run", "a.b/run.1"},
        {".hidden", ".hidden.1"},     {"x/.hidden", "x/.hidden.1"},
        {"run.", "run..1"},           {"run", "run.1"},
        {"a/b.c.txt", "a/b.c.1.txt"}, {"/etc/rc.d/log", "/etc/rc.d/log.1"},
    };
    orr_arena *a = orr_arena_create();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK_TEXT(orr_path_insert(a, names[i].path, ".1"), names[i].want);
    orr_arena_destroy(a);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_log_file__goes_on_where_it_ended),
        RUN(test_log_file__begins_anew_when_asked),
        RUN(test_log_file__makes_folders),
        RUN(test_log_file__turns_over),
        RUN(test_log_file__long_lines_and_no_further_files),
        RUN(test_log_file__many_lines),
        RUN(test_log_file__a_full_disk_is_an_error),
        RUN(test_log_file__names_get_their_number_before_the_end),
    };
    return RUN_ALL(tests);
}
