/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - from argv to an exit status.
 *
 * Option table: an old program name (argv[0]) has its own, else the first argument names the
 * command.  Exit: 0 success; 1 the answer is no; 2 usage; 3 bad input; 4 system; 70 our bug; 128 +
 * n stopped by signal n (130 interrupted).  This file is the only one that turns a code into a
 * status.  Signals: a stop ends at once and quietly, SIGPIPE too (`orrery ...  | head`).  The
 * library writes to unnamed files until they are complete, so there is nothing to clean up. */
#include "command.h"

#include <orrery/lab/folders.h>
#include <orrery/version.h>

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_YES = 0, EXIT_NO = 1, EXIT_USAGE = 2, EXIT_INPUT = 3, EXIT_SYSTEM = 4, EXIT_BUG = 70 };

static void stop(int signal_number)
{
    _exit(128 + signal_number);
}

static void catch_signals(void)
{
    static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++) {
        struct sigaction old, new = {.sa_handler = stop};
        /* Signals ignored at start (nohup) stay ignored. */
        if (sigaction(caught[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(caught[i], &new, NULL);
    }
}

static int exit_status(const cli_context *c, orr_code code)
{
    switch (code) {
    case ORR_OK:
    case ORR_END:
        return c->answer_is_no ? EXIT_NO : EXIT_YES;
    case ORR_EUSAGE:
        return EXIT_USAGE;
    case ORR_EINPUT:
        return EXIT_INPUT;
    case ORR_EIO:
    case ORR_ENOMEM:
        return EXIT_SYSTEM;
    case ORR_ESTOP:
        return 128 + SIGINT;
    case ORR_EBUG:
        break;
    }
    return EXIT_BUG;
}

/* Check that the output was written: a full disk behind `> file` is an error. */
static orr_code flush_stdout(orr_error *err)
{
    const bool had_error = ferror(stdout) != 0;
    if (fflush(stdout) == 0 && !had_error)
        return ORR_OK;
    if (errno == EPIPE)
        return ORR_ESTOP;
    const orr_where where = orr_where_line("standard output", 0, 0);
    return orr_fail(err, ORR_EIO, &where, "cannot write: %s", strerror(errno));
}

static int finish(cli_context *c, orr_code code, orr_error *err)
{
    orr_error flush_err;
    const orr_code flushed = flush_stdout(&flush_err);
    if (code != ORR_OK && code != ORR_END && code != ORR_ESTOP) {
        cli_report(c, err);
        return exit_status(c, code);
    }
    if (flushed == ORR_ESTOP)
        return 128 + SIGPIPE;
    if (flushed) {
        cli_report(c, &flush_err);
        return exit_status(c, flushed);
    }
    return exit_status(c, code);
}

/* Allow the folder of each path in a word: a list of files, FILE:4, KEY=FILE, keys and values in
 * one word. */
static orr_code name_folders_of(const char *word, orr_error *err)
{
    char part[PATH_MAX];
    orr_code code = orr_folder_named(word, err);
    while (*word && !code) {
        const size_t n = strcspn(word, ",:= \t\n");
        if (n && n < sizeof part) {
            memcpy(part, word, n);
            part[n] = 0;
            code = orr_folder_named(part, err);
        }
        word += n + (word[n] != 0);
    }
    return code;
}

/* Inputs may only name files in folders that the command line names (orrery/lab/folders.h). */
static orr_code name_folders(const cli_context *c, orr_error *err)
{
    orr_code code = ORR_OK;
    if (c->command->now)
        return ORR_OK;
    for (int i = 0; i < c->arg_count && !code; i++)
        code = name_folders_of(c->args[i], err);
    const cli_option *o = c->command->options;
    for (size_t i = 0; o && o[i].name && !code; i++)
        if (o[i].arg && c->value[i] && o[i].kind != CLI_COUNT && !cli_is_choice(o[i].arg))
            code = name_folders_of(c->value[i], err);
    return code;
}

static int run_command(cli_context *c, int argc, char **argv)
{
    orr_error err;
    orr_code code = cli_parse(c, argc, argv, &err);
    if (!code && !c->wants_help)
        code = name_folders(c, &err);
    if (!code && c->wants_help)
        cli_help_command(stdout, c->command);
    else if (!code)
        code = c->command->run(c, &err);
    return finish(c, code, &err);
}

static int unknown_command(cli_context *c, const char *name)
{
    orr_error err;
    const char *near = cli_command_nearest(name);
    if (near)
        cli_misuse(&err, "unknown command '%s'; did you mean '%s'?", name, near);
    else
        cli_misuse(&err, "unknown command '%s'", name);
    return finish(c, ORR_EUSAGE, &err);
}

/* Removes a word from the options, if present. */
static bool take_out(int *argc, char **argv, const char *word)
{
    for (int i = 0; i < *argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], word) != 0)
            continue;
        for (--*argc; i < *argc; i++)
            argv[i] = argv[i + 1];
        return true;
    }
    return false;
}

/* "orrery version", "orrery run --version": accepted like --version. */
static bool asks_version(const cli_context *c)
{
    if (c->arg_count == 1)
        return strcmp(c->args[0], "version") == 0;
    return c->arg_count == 2 && strcmp(c->args[1], "--version") == 0 &&
           cli_command_find(c->args[0]);
}

static int run_program(int argc, char **argv)
{
    orr_error err;
    cli_context c = {.command = &cli_program};
    const orr_code code = cli_parse(&c, argc, argv, &err);
    if (code)
        return finish(&c, code, &err);
    if (c.wants_help) {
        cli_help_overview(stdout);
        return finish(&c, ORR_OK, &err);
    }
    if (cli_flag(&c, "version") || asks_version(&c)) {
        printf("orrery %s\n", orr_version());
        return finish(&c, ORR_OK, &err);
    }
    if (c.arg_count == 0) {
        cli_help_overview(stderr); /* a missing command is an error that scripts must notice */
        return EXIT_USAGE;
    }
    cli_context sub = {.command = cli_command_find(c.args[0]), .quiet = c.quiet, .color = c.color};
    if (!sub.command)
        return unknown_command(&c, c.args[0]);
    const cli_command *deeper = c.arg_count > 1 ? cli_command_deeper(sub.command, c.args[1]) : NULL;
    if (deeper)
        sub.command = deeper;
    const int words = deeper ? 2 : 1;
    int count = c.arg_count - words;
    char **rest = c.args + words;
    const cli_command *form = cli_compat_form(sub.command);
    if (form && take_out(&count, rest, "--compat"))
        sub.command = form;
    return run_command(&sub, count, rest);
}

int main(int argc, char **argv)
{
    catch_signals();
    if (argc < 1)
        return EXIT_USAGE;
    const char *left_out;
    cli_context old = {.command = cli_old_name_find(argv[0], &left_out)};
    if (old.command)
        return run_command(&old, argc - 1, argv + 1);
    if (left_out) {
        fprintf(stderr, "%s: this build of orrery leaves out compatibility with %s\n", argv[0],
                left_out);
        return EXIT_USAGE;
    }
    return run_program(argc - 1, argv + 1);
}
