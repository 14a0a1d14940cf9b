/* SPDX-License-Identifier: Apache-2.0 */
/* command.c - the program's own table, finding commands, messages on stderr. */
#include "command.h"

#include "base/io/output.h"
#include "base/text/text.h"

#include <orrery/lab/software.h>
#include <orrery/lab/units.h>

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const cli_option program_options[] = {
    {"version", 'V', NULL, "print the version"},
    {0},
};

static const cli_argument program_arguments[] = {
    {"COMMAND", "what to do", CLI_MAYBE},
    {"ARGUMENT", "what the command needs", CLI_ANY},
    {0},
};

const cli_command cli_program = {
    .name = "orrery",
    .summary = "execution traces of distributed AI workloads: generate, check, simulate, report",
    .options = program_options,
    .arguments = program_arguments,
};

#define ADDRESS(name) &cli_cmd_##name,
const cli_command *const cli_commands[] = {CLI_COMMANDS(ADDRESS) NULL};

const cli_command *cli_command_find(const char *name)
{
    for (const cli_command *const *c = cli_commands; *c; c++) {
        if (strcmp((*c)->name, name) == 0)
            return *c;
    }
    return NULL;
}

const cli_command *cli_command_deeper(const cli_command *c, const char *word)
{
    const size_t first = strlen(c->name);
    for (const cli_command *const *d = c->deeper; d && *d; d++) {
        if (strcmp((*d)->name + first + 1, word) == 0)
            return *d;
    }
    return NULL;
}

const char *cli_command_nearest(const char *name)
{
    const char *near = NULL;
    for (const cli_command *const *c = cli_commands; *c; c++)
        near = cli_nearer(name, near, (*c)->name);
    return near;
}

const char *cli_program_name(const cli_command *command)
{
    return command == &cli_program || command->now ? "" : "orrery ";
}

/* Names and paths may come from untrusted files: control characters are printed as '?'. */
static void put_plain(char *text)
{
    const orr_str all = orr_str_of(text);
    for (size_t i = 0; i < all.len; i++)
        if (orr_is_control(all, i) && text[i] != '\n')
            text[i] = '?';
}

void cli_note(const cli_context *c, const char *fmt, ...)
{
    va_list args;
    if (c->quiet)
        return;
    char text[2000];
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    put_plain(text);
    fputs(text, stderr);
}

void cli_answer_no(cli_context *c)
{
    c->answer_is_no = true;
}

bool cli_is_colored(const cli_context *c, FILE *to)
{
    if (c->color && strcmp(c->color, "always") == 0)
        return true;
    if (c->color && strcmp(c->color, "never") == 0)
        return false;
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return !(no && *no) && term && strcmp(term, "dumb") != 0 && isatty(fileno(to));
}

/* An error with a location is printed as compilers do, so that editors can jump to it; others begin
 * with the name of the command. */
void cli_report(cli_context *c, const orr_error *err)
{
    const char *red = cli_is_colored(c, stderr) ? "\033[31m" : "";
    const char *plain = *red ? "\033[0m" : "";
    const char *program = cli_program_name(c->command);
    char text[600];
    if (c->has_reported)
        return;
    c->has_reported = true;
    orr_error_text(err, text, sizeof text);
    put_plain(text);
    if (err->where.path[0])
        fprintf(stderr, "%s%s%s\n", red, text, plain);
    else
        fprintf(stderr, "%s%s%s: %s%s\n", red, program, c->command->name, text, plain);
    if (err->code != ORR_EUSAGE)
        return;
    if (c->command->now || c->command == &cli_program)
        fprintf(stderr, "Try '%s --help'.\n", c->command->name);
    else
        fprintf(stderr, "Try 'orrery help %s'.\n", c->command->name);
}

static orr_code fail_write(const char *path, orr_error *err)
{
    const orr_where w = orr_where_byte(path, ORR_NO_BYTE);
    return orr_fail(err, ORR_EIO, &w, "cannot write: %s", strerror(errno));
}

/* A file in memory rather than open_memstream, which silently loses text when memory runs out. */
orr_code cli_file_open(const char *path, cli_file *out, orr_error *err)
{
    *out = (cli_file){.path = path, .f = stdout};
    if (strcmp(path, "-") == 0)
        return ORR_OK;
    const int fd = memfd_create("orrery", MFD_CLOEXEC);
    out->f = fd < 0 ? NULL : fdopen(fd, "w+");
    if (out->f)
        return ORR_OK;
    if (fd >= 0)
        close(fd);
    return fail_write(path, err);
}

/* Copy the text from memory to the named file. */
static orr_code copy_out(const cli_file *file, orr_error *err)
{
    char piece[1 << 14];
    orr_output *to;
    size_t n;
    orr_code code = orr_output_open(file->path, &to, err);
    if (code)
        return code;
    rewind(file->f);
    while ((n = fread(piece, 1, sizeof piece, file->f)) > 0)
        orr_output_add(to, piece, n);
    if (!ferror(file->f))
        return orr_output_commit(&to, err);
    code = fail_write(file->path, err);
    orr_output_discard(to);
    return code;
}

orr_code cli_file_close(cli_file *file, orr_code code, orr_error *err)
{
    const bool is_fine = fflush(file->f) == 0 && !ferror(file->f);
    if (!code && !is_fine)
        code = fail_write(file->path, err);
    if (file->f == stdout)
        return code;
    if (!code)
        code = copy_out(file, err);
    fclose(file->f);
    return code;
}

orr_code cli_check_prefix(const char *path, orr_error *err)
{
    struct stat st;
    const size_t len = strlen(path);
    if (len && path[len - 1] == '/')
        return ORR_OK; /* not a prefix: the command reports it */
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? ORR_OK : cli_check_place(path, err);
}

orr_code cli_check_folder(const char *path, orr_error *err)
{
    struct stat st;
    const orr_where w = orr_where_byte(path, ORR_NO_BYTE);
    char above[4096];
    while (stat(path, &st) != 0) { /* missing folders will be created: check the first that
                                    * exists */
        const char *slash = strrchr(path, '/');
        if (errno != ENOENT || !slash || slash == path || (size_t)(slash - path) >= sizeof above)
            return cli_check_place(path, err);
        memmove(above, path, (size_t)(slash - path));
        above[slash - path] = '\0';
        path = above;
    }
    if (!S_ISDIR(st.st_mode))
        return orr_fail(err, ORR_EIO, &w, "cannot make this directory: a file has its name");
    if (access(path, W_OK | X_OK) != 0)
        return orr_fail(err, ORR_EIO, &w, "cannot write: %s", strerror(errno));
    return ORR_OK;
}

orr_code cli_check_place(const char *path, orr_error *err)
{
    const orr_where w = orr_where_byte(path, ORR_NO_BYTE);
    const char *slash = strrchr(path, '/');
    char folder[4096] = ".";
    struct stat st;
    if (slash)
        snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return orr_fail(err, ORR_EIO, &w, "cannot write: it is a directory");
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return ORR_OK; /* a device or a pipe */
    if (stat(folder, &st) != 0)
        return orr_fail(err, ORR_EIO, &w, "cannot create: %s", strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return orr_fail(err, ORR_EIO, &w, "cannot create: %s is not a directory", folder);
    if (access(folder, W_OK | X_OK) != 0)
        return orr_fail(err, ORR_EIO, &w, "cannot create: %s", strerror(errno));
    return ORR_OK;
}

uint64_t cli_count_nodes(const orr_set *s)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < orr_set_class_count(s); i++)
        n += (uint64_t)orr_set_class_ranks(s, i) * orr_trace_columns(orr_set_trace(s, i))->count;
    return n;
}

/* ---- The JSON that commands print, through the library's writer. ---- */

static orr_json_writer *open_with(cli_json *j, const char *format, orr_json_style style)
{
    *j = (cli_json){0};
    orr_json_writer_init(&j->writer, &j->text, &style);
    orr_json_begin_object(&j->writer);
    orr_json_put_text(&j->writer, "format", format);
    orr_json_put_u64(&j->writer, "version", 1);
    return &j->writer;
}

orr_json_writer *cli_json_open(cli_json *j, const char *format)
{
    return open_with(j, format, (orr_json_style){.spaced = true});
}

orr_json_writer *cli_json_open_tight(cli_json *j, const char *format)
{
    return open_with(j, format, (orr_json_style){0});
}

void cli_print(orr_str text)
{
    if (text.len) /* an empty text may have a NULL pointer */
        fwrite(text.ptr, 1, text.len, stdout);
}

void cli_json_close(cli_json *j)
{
    orr_json_end_object(&j->writer);
    orr_buf_byte(&j->text, '\n');
    if (j->text.failed) { /* never print a partial object */
        fputs("orrery: out of memory\n", stderr);
        exit(4);
    }
    cli_print((orr_str){(const char *)j->text.ptr, j->text.len});
    orr_buf_fini(&j->text);
}

/* ---- Ctrl-C during a run: it stops between two events, so that the results so far can be printed.
 *
 * A signal handler has no context argument, so the run is in a static variable: a process has one
 * run at a time.  A second Ctrl-C has the default effect. */

static orr_run *volatile running;

static void stop_running(int signal_number)
{
    orr_run *r = running;
    (void)signal_number;
    if (r)
        orr_run_stop(r);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void cli_limits_used(const cli_context *c, orr_run_config *config)
{
    config->used_seconds = config->max_seconds > 0 ? now() - c->limited_since : 0;
}

/* Errors name the option with the invalid value. */
orr_code cli_limits(cli_context *c, orr_run_config *config, orr_error *err)
{
    orr_ps time = 0;
    orr_bytes bytes = 0;
    if (cli_given(c, "max-time") && orr_time_parse(cli_text(c, "max-time"), &time, err))
        return orr_because(err, ORR_EUSAGE, "--max-time");
    if (cli_given(c, "max-memory") && orr_bytes_parse(cli_text(c, "max-memory"), &bytes, err))
        return orr_because(err, ORR_EUSAGE, "--max-memory");
    if ((cli_given(c, "max-time") && time <= 0) || (cli_given(c, "max-memory") && !bytes))
        return cli_misuse(err, "--%s must be above 0",
                          time <= 0 && cli_given(c, "max-time") ? "max-time" : "max-memory");
    config->max_seconds = (double)time * 1e-12;
    if (config->max_seconds > 0 && c->limited_since == 0)
        c->limited_since = now();
    else
        cli_limits_used(c, config);
    config->max_bytes = bytes;
    config->max_events = cli_given(c, "max-events") ? cli_count(c, "max-events") : 0;
    return ORR_OK;
}

orr_code cli_run_to_end(orr_run *r, orr_error *err)
{
    struct sigaction old, stop = {.sa_handler = stop_running, .sa_flags = (int)SA_RESETHAND};
    const bool is_ignored = sigaction(SIGINT, NULL, &old) != 0 || old.sa_handler == SIG_IGN;
    running = r;
    if (!is_ignored)
        sigaction(SIGINT, &stop, NULL);
    const orr_code code = orr_run_to_end(r, err);
    if (!is_ignored)
        sigaction(SIGINT, &old, NULL);
    running = NULL;
    return code;
}

orr_code cli_run_start(const cli_context *c,
                       const orr_run_config *config,
                       orr_run **out,
                       orr_error *err)
{
    const char *line;
    const orr_code code = orr_run_create(config, out, err);
    for (size_t i = 0; !code && (line = orr_run_warning(*out, i)); i++)
        cli_note(c, "%s\n", line);
    return code ? code : cli_run_to_end(*out, err);
}

void cli_explain(cli_context *c, orr_run *r, const orr_error *err)
{
    const char *line;
    if (!r || !orr_run_stall_line(r, 0))
        return;
    cli_report(c, err);
    for (size_t i = 0; (line = orr_run_stall_line(r, i)); i++)
        fprintf(stderr, "%s\n", line);
}

orr_code cli_no_software(const char *name, orr_error *err)
{
    const char *near = NULL;
    for (size_t i = 0; orr_software_at(i); i++)
        near = cli_nearer(name, near, orr_software_at(i)->name);
    if (near)
        return cli_misuse(err, "unknown software '%s'; did you mean '%s'?", name, near);
    return cli_misuse(err, "unknown software '%s'; 'orrery help stage' lists the presets", name);
}
