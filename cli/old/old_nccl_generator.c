/* SPDX-License-Identifier: Apache-2.0 */
/* old_nccl_generator.c - nccl_generator_v2's main.py, by the name of its predecessor: one folder
 * in, one folder out (goal.md 5.1). */
#include "old.h"

#include <orrery/lab/compat.h>
#include <orrery/lab/nccl.h>
#include <orrery/lab/units.h>

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_ROOM = 4200 };

static const cli_option options[] = {
    {"trace_dir", 'i', "DIR", "searched for *.sqlite", .required = true},
    {"output_dir", 'o', "DIR", "where results go; made when it is not there", .required = true},
    {"npkit_data_simple", 's', "FILE", "timings of protocol Simple", .required = true},
    {"npkit_data_ll", 'l', "FILE", "timings of protocol LL", .required = true},
    {"merged", 'm', NULL, "merge the streams of a GPU when no kernels overlap"},
    {"parallel_generation", 'p', NULL, "write a file for each rank"},
    {"concatenate", 'c', NULL, "with -p: output.goal as well"},
    {"delete_parts", 'r', NULL, "with -p: output.goal alone"},
    {"write_buffer_size", 0, "SIZE", "not needed any more"},
    {"n_workers", 'w', "N", "not needed any more", CLI_COUNT, 1, 65536},
    {"intermediate_goal", 0, NULL, "write Events_Dependency.goal too"},
    {"intermediate_goal_only", 0, NULL, "write Events_Dependency.goal and nothing else"},
    {"nccl_log", 0, "FILE", "NCCL's log (the first ../log-*.out beside DIR)"},
    {"id_width", 0, "N", "digits of a message's number in tags (4)", CLI_COUNT, 1, 9},
    {"context_width", 0, "N", "digits of a context in tags (5)", CLI_COUNT, 1, 9},
    {"contexts", 0, "FILE", "contexts of one's own (CSV: communicator, call, context)"},
    {"no-compat", 0, NULL, "our own way"},
    {0},
};

/* Create all folders of the path. */
static orr_code make_folder(const char *path, orr_error *err)
{
    char part[PATH_ROOM];
    if (!path[0] || strlen(path) >= PATH_ROOM - 64)
        return cli_misuse(err, "the output's name is empty or longer than 4,000 bytes");
    for (const char *p = path; *p; p++) {
        if (*p == '/' || (p[1] && p[1] != '/'))
            continue;
        snprintf(part, sizeof part, "%.*s", (int)(p + 1 - path), path);
        if (mkdir(part, 0777) != 0 && errno != EEXIST) {
            const orr_where at = orr_where_line(part, 0, 0);
            return orr_fail(err, ORR_EIO, &at, "cannot create the folder: %s", strerror(errno));
        }
    }
    return ORR_OK;
}

/* The first of ../log-*.out next to the traces, by name; "": none. */
static void find_log(const char *folder, char out[PATH_ROOM])
{
    char pattern[PATH_ROOM];
    glob_t found;
    out[0] = 0;
    const int n = snprintf(pattern, sizeof pattern, "%s/../log-*.out", folder);
    if (n >= PATH_ROOM || glob(pattern, 0, NULL, &found) != 0)
        return;
    if (found.gl_pathc && strlen(found.gl_pathv[0]) < PATH_ROOM)
        snprintf(out, PATH_ROOM, "%s", found.gl_pathv[0]);
    globfree(&found);
}

/* A number, optionally with K, M, G, KB, MB, GB or B. */
static orr_code check_size(const char *text, orr_error *err)
{
    static const char *const ends[] = {"", "B", "K", "KB", "M", "MB", "G", "GB"};
    char *end;
    strtod(text, &end);
    for (size_t i = 0; end != text && i < sizeof ends / sizeof *ends; i++)
        if (strcasecmp(end, ends[i]) == 0)
            return ORR_OK;
    return cli_misuse(err, "--write_buffer_size: '%s' is not a size such as 512K or 1MB", text);
}

typedef struct names {
    char log[PATH_ROOM], goal[PATH_ROOM], events[PATH_ROOM];
} names;

static void choose_files(const cli_context *c, names *n, orr_nccl_options *o)
{
    const char *folder = cli_text(c, "output_dir");
    const bool has_parts = cli_flag(c, "parallel_generation");
    const bool is_whole = !has_parts || cli_flag(c, "concatenate") || cli_flag(c, "delete_parts");
    const bool only_events = cli_flag(c, "intermediate_goal_only");
    snprintf(n->goal, sizeof n->goal, "%s/output.goal", folder);
    snprintf(n->events, sizeof n->events, "%s/Events_Dependency.goal", folder);
    o->output = is_whole && !only_events ? n->goal : NULL;
    o->events = only_events || cli_flag(c, "intermediate_goal") ? n->events : NULL;
    o->parts = has_parts && !only_events && !cli_flag(c, "delete_parts") ? folder : NULL;
}

static orr_code run_nccl(cli_context *c, orr_error *err)
{
    names n;
    orr_nccl_report r;
    const char *traces = cli_text(c, "trace_dir");
    orr_nccl_options o = {.simple_table = cli_text(c, "npkit_data_simple"),
                          .ll_table = cli_text(c, "npkit_data_ll"),
                          .is_merged = cli_flag(c, "merged"),
                          .id_width = (uint32_t)cli_count(c, "id_width"),
                          .context_width = (uint32_t)cli_count(c, "context_width"),
                          .contexts = cli_text(c, "contexts"),
                          .shows_progress = !c->quiet};
    const orr_compat *old = NULL;
    orr_code code = ORR_OK;
    if (!cli_flag(c, "no-compat"))
        code = orr_compat_find(
            ORR_RULES_NCCL, cli_flag(c, "parallel_generation") ? "v2-parallel" : "v2", &old, err);
    o.rules = old ? old->nccl : NULL;
    if (!code && o.contexts && !o.rules)
        code = cli_misuse(err, "--contexts and --no-compat cannot be used together");
    if (!code && cli_given(c, "write_buffer_size"))
        code = check_size(cli_text(c, "write_buffer_size"), err);
    if (!code)
        code = make_folder(cli_text(c, "output_dir"), err);
    if (code)
        return code;
    choose_files(c, &n, &o);
    find_log(traces, n.log);
    o.log = cli_given(c, "nccl_log") ? cli_text(c, "nccl_log") : n.log[0] ? n.log : NULL;
    code = orr_nccl_convert(&traces, 1, &o, &r, err);
    if (!code)
        cli_nccl_remarks(c, &r);
    return code;
}

const cli_command cli_old_nccl = {
    .name = "nccl_goal_generator",
    .summary = "make a GOAL schedule from Nsight exports, as nccl_generator_v2's main.py",
    .now = "orrery nccl --compat",
    .options = options,
    .run = run_nccl,
};
