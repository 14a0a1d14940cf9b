/* SPDX-License-Identifier: Apache-2.0 */
/* test_child_process.c - programs are started, waited for and understood; folders go with all that
 * is in them. */
#include "check.h"
#include "files.h"

#include "base/io/child_process.h"

#include <sys/resource.h>
#include <sys/stat.h>

static orr_error err;

/* sh -c text, its words in out.txt. */
static orr_code run_text(const char *text, const char *const *environment, orr_child_end *end)
{
    const char *arguments[] = {"sh", "-c", text, NULL};
    orr_held_signals held;
    orr_signals_hold(&held);
    const orr_code code = orr_child_run(&(orr_child){.path = "/bin/sh",
                                                     .arguments = arguments,
                                                     .environment = environment,
                                                     .output = "out.txt"},
                                        &held, end, &err);
    orr_signals_release(&held);
    return code;
}

static void check_printed(const char *words)
{
    check_file("out.txt", words, strlen(words));
}

TEST(test_child_process__its_status_is_told)
{
    orr_child_end end;
    CHECK_OK(run_text("exit 0", NULL, &end), &err);
    CHECK(end.status == 0 && end.signal == 0);
    CHECK_OK(run_text("exit 41", NULL, &end), &err);
    CHECK(end.status == 41 && end.signal == 0);
    CHECK_OK(run_text("kill -9 $$", NULL, &end), &err);
    CHECK(end.status == -1 && end.signal == 9);
}

TEST(test_child_process__what_it_prints_goes_to_the_file)
{
    orr_child_end end;
    CHECK_OK(run_text("echo one; echo two >&2", NULL, &end), &err);
    check_printed("one\ntwo\n");
    CHECK_OK(run_text("cat; echo empty", NULL, &end), &err); /* its standard input is */
    check_printed("empty\n");
}

TEST(test_child_process__variables_are_added_and_replaced)
{
    const char *const environment[] = {"ORR_NEW=1", "ORR_OLD=2", NULL};
    orr_child_end end;
    CHECK(setenv("ORR_OLD", "0", 1) == 0 && setenv("ORR_OLDER", "3", 1) == 0);
    CHECK_OK(run_text("echo $ORR_NEW $ORR_OLD $ORR_OLDER", environment, &end), &err);
    check_printed("1 2 3\n");
}

TEST(test_child_process__what_cannot_be_started_is_told)
{
    const char *arguments[] = {"x", NULL};
    orr_held_signals held;
    orr_child_end end;
    orr_signals_hold(&held);
    CHECK_CODE(
        orr_child_run(&(orr_child){.path = "./none", .arguments = arguments}, &held, &end, &err),
        ORR_EIO, &err);
    CHECK_SAYS(&err, "cannot be started: No such file or directory");
    CHECK_CODE(
        orr_child_run(
            &(orr_child){.path = "/bin/sh", .arguments = arguments, .output = "none/out.txt"},
            &held, &end, &err),
        ORR_EIO, &err);
    orr_signals_release(&held);
}

/* The child has our signals as they were before they were held. */
TEST(test_child_process__signals_reach_the_child)
{
    orr_child_end end;
    CHECK_OK(run_text("kill -15 $$; echo still here", NULL, &end), &err);
    CHECK_EQ(end.signal, SIGTERM);
}

static volatile sig_atomic_t stops;

static void count_stop(int number)
{
    (void)number;
    stops++;
}

/* An interrupt ends the child and what it started, and is not seen again afterwards. */
TEST(test_child_process__an_interrupt_ends_all_of_it)
{
    orr_child_end end;
    char text[100];
    struct sigaction old, counted = {.sa_handler = count_stop};
    CHECK(sigaction(SIGTERM, &counted, &old) == 0);
    snprintf(text, sizeof text, "sleep 60 & echo $! > pid; kill -15 %ld; wait", (long)getpid());
    CHECK_CODE(run_text(text, NULL, &end), ORR_ESTOP, &err);
    CHECK_EQ(end.signal, SIGTERM);
    CHECK_EQ(stops, 0);
    orr_buf b = read_file("pid");
    orr_buf_byte(&b, 0);
    const pid_t grandchild = (pid_t)strtol((const char *)b.ptr, NULL, 10);
    for (int i = 0; i < 50 && kill(grandchild, 0) == 0; i++)
        usleep(100000); /* it is gone once whoever adopts orphans has noticed */
    orr_buf_fini(&b);
    CHECK(sigaction(SIGTERM, &old, NULL) == 0);
}

/* One that comes while no child runs waits until it is let through. */
TEST(test_child_process__held_signals_wait)
{
    orr_held_signals held;
    struct sigaction old, counted = {.sa_handler = count_stop};
    stops = 0;
    CHECK(sigaction(SIGTERM, &counted, &old) == 0);
    orr_signals_hold(&held);
    raise(SIGTERM);
    CHECK_EQ(stops, 0);
    orr_signals_release(&held);
    CHECK_EQ(stops, 1);
    CHECK(sigaction(SIGTERM, &old, NULL) == 0);
}

static const char *find(orr_arena *a, const char *name)
{
    char *path;
    CHECK_OK(orr_program_find(a, name, &path, &err), &err);
    return path;
}

TEST(test_child_process__programs_are_found_as_a_shell_does)
{
    orr_arena *a = orr_arena_create();
    char *before = getenv("PATH") ? strdup(getenv("PATH")) : NULL;
    CHECK(mkdir("bin", 0777) == 0 && mkdir("bin/folder", 0777) == 0);
    write_file("bin/tool", "#!/bin/sh\n", 10);
    write_file("bin/text", "x", 1);
    CHECK(chmod("bin/tool", 0755) == 0);
    CHECK(setenv("PATH", "/none:bin:/usr/bin", 1) == 0);
    CHECK_TEXT(find(a, "tool"), "bin/tool");
    CHECK(find(a, "text") == NULL); /* may not be run */
    CHECK(find(a, "folder") == NULL);
    CHECK(find(a, "no_such_tool") == NULL);
    CHECK_TEXT(find(a, "bin/tool"), "bin/tool");
    CHECK(find(a, "./tool") == NULL);
    if (before)
        setenv("PATH", before, 1);
    free(before);
    orr_arena_destroy(a);
}

TEST(test_child_process__folders_go_with_all_that_is_in_them)
{
    orr_arena *a = orr_arena_create();
    orr_folder folder;
    char path[4200], kept_path[4200];
    struct stat st;
    CHECK(mkdir("top", 0777) == 0 && setenv("TMPDIR", "top", 1) == 0);
    CHECK_OK(orr_folder_create(a, &folder, &err), &err);
    CHECK(folder.path[0] == '/' && strstr(folder.path, "/top/orrery-"));
    snprintf(kept_path, sizeof kept_path, "%s", folder.path);
    CHECK(stat(folder.path, &st) == 0 && (st.st_mode & 0777) == 0700);
    snprintf(path, sizeof path, "%s/a", folder.path);
    CHECK(mkdir(path, 0777) == 0);
    snprintf(path, sizeof path, "%s/a/b", folder.path);
    write_file(path, "x", 1);
    write_file("kept", "y", 1);
    snprintf(path, sizeof path, "%s/link", folder.path);
    CHECK(symlink("../../", path) == 0); /* links are not followed */
    orr_folder_remove(&folder);
    CHECK(stat(kept_path, &st) != 0 && stat("kept", &st) == 0);
    orr_folder_remove(&folder);
    CHECK(setenv("TMPDIR", "none", 1) == 0);
    CHECK_CODE(orr_folder_create(a, &folder, &err), ORR_EIO, &err);
    CHECK_SAYS(&err, "cannot make a temporary folder here");
    unsetenv("TMPDIR");
    orr_arena_destroy(a);
}

TEST(test_child_process__a_folder_is_removed_where_no_file_can_be_opened)
{
    orr_arena *a = orr_arena_create();
    orr_folder folder;
    char path[4200];
    struct stat st;
    struct rlimit limit, none;
    CHECK_OK(orr_folder_create(a, &folder, &err), &err);
    snprintf(path, sizeof path, "%s", folder.path);
    char *file = orr_arena_print(a, "%s/x", folder.path);
    write_file(file, "x", 1);
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    none = limit;
    none.rlim_cur = 0;
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    orr_folder_remove(&folder);
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK(stat(path, &st) != 0);
    orr_arena_destroy(a);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_child_process__its_status_is_told),
        RUN(test_child_process__what_it_prints_goes_to_the_file),
        RUN(test_child_process__variables_are_added_and_replaced),
        RUN(test_child_process__what_cannot_be_started_is_told),
        RUN(test_child_process__signals_reach_the_child),
        RUN(test_child_process__an_interrupt_ends_all_of_it),
        RUN(test_child_process__held_signals_wait),
        RUN(test_child_process__programs_are_found_as_a_shell_does),
        RUN(test_child_process__folders_go_with_all_that_is_in_them),
        RUN(test_child_process__a_folder_is_removed_where_no_file_can_be_opened),
    };
    return RUN_ALL(tests);
}
