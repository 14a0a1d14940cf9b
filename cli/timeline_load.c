/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_load.c - read recorded runs: trace events, a folder with one file per rank, an export of
 * Nsight Systems, a log of issued nodes. */
#include "base/text/text.h"
#include "command.h"

#include <orrery/lab/chrome_trace.h>
#include <orrery/lab/issue_log.h>
#include <orrery/lab/nsys.h>
#include <orrery/lab/units.h>

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Pipes are not examined: their readers need the first bytes. */
static bool starts_with(const char *path, const char *magic)
{
    const size_t length = strlen(magic);
    char start[16] = {0};
    struct stat s;
    FILE *f = stat(path, &s) == 0 && S_ISREG(s.st_mode) ? fopen(path, "rb") : NULL;
    if (!f)
        return false;
    const bool is_read = fread(start, 1, length, f) == length;
    fclose(f);
    return is_read && memcmp(start, magic, length) == 0;
}

/* ---- logs ---- */

enum { MOST_MHZ = 1000000000 };

/* "1.5GHz", or a number of MHz, as in the old program. */
static orr_code parse_frequency(const char *text, uint64_t *hz, orr_error *err)
{
    char *end;
    const unsigned long long mhz = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && mhz <= MOST_MHZ) {
        *hz = mhz * 1000000u;
    } else {
        const orr_code code = orr_frequency_parse(text, hz, err);
        if (code)
            return orr_because(err, code, "--frequency");
    }
    return *hz ? ORR_OK : cli_misuse(err, "--frequency: 0 is not a frequency");
}

orr_code cli_timeline_load_log(const cli_context *c,
                               const char *path,
                               orr_timeline **out,
                               orr_error *err)
{
    orr_issue_log *log;
    uint64_t hz;
    orr_code code = parse_frequency(cli_text(c, "frequency"), &hz, err);
    if (code || (code = orr_issue_log_read(path, NULL, &log, err)))
        return code;
    code = orr_issue_log_timeline(log, hz, out, err);
    if (!code && orr_issue_log_open_count(log))
        cli_note(c, "%s: %zu node%s without a callback: shown as running until the last cycle\n",
                 path, orr_issue_log_open_count(log), orr__plural(orr_issue_log_open_count(log)));
    orr_issue_log_free(log);
    return code;
}

/* ---- folders ---- */

static bool is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

static bool is_json_name(const char *name)
{
    return orr_has_suffix(name, ".json") || orr_has_suffix(name, ".json.gz") ||
           orr_has_suffix(name, ".json.zst");
}

static int is_timeline_name(const struct dirent *entry)
{
    return is_json_name(entry->d_name);
}

typedef struct names {
    struct dirent **list;
    int count;
} names;

static void names_fini(names *n)
{
    for (int i = 0; i < n->count; i++)
        free(n->list[i]);
    free(n->list);
}

/* Numbers in names are compared as numbers: rank10 comes after rank9. */
static names timelines_in(const char *folder)
{
    names n = {0};
    n.count = scandir(folder, &n.list, is_timeline_name, versionsort);
    return n.count < 0 ? (names){0} : n;
}

static orr_code read_folder(const char *folder, const names *n, orr_timeline **out, orr_error *err)
{
    char **paths = calloc((size_t)n->count, sizeof *paths);
    bool ok = paths != NULL;
    for (int i = 0; ok && i < n->count; i++) {
        const size_t size = strlen(folder) + strlen(n->list[i]->d_name) + 2;
        paths[i] = malloc(size);
        ok = paths[i] != NULL;
        if (ok)
            snprintf(paths[i], size, "%s/%s", folder, n->list[i]->d_name);
    }
    const orr_code code =
        ok ? orr_chrome_trace_read((const char *const *)paths, (size_t)n->count, NULL, out, err)
           : orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
    for (int i = 0; paths && i < n->count; i++)
        free(paths[i]);
    free(paths);
    return code;
}

/* ---- detecting the kind ---- */

orr_code cli_timeline_refuse_traces(const char *path, orr_error *err)
{
    const orr_where w = orr_where_line(path, 0, 0);
    struct stat s;
    const bool is_there = stat(path, &s) == 0 && S_ISREG(s.st_mode);
    const bool is_named = orr_has_suffix(path, ".orr") || orr_has_suffix(path, ".et");
    return is_there && (is_named || starts_with(path, "\x89"
                                                      "ORR"))
               ? orr_fail(err, ORR_EINPUT, &w,
                          "traces, not a timeline of a run: 'orrery run --timeline FILE' makes one")
               : ORR_OK;
}

orr_code cli_timeline_load_events(const char *path, orr_timeline **out, orr_error *err)
{
    const orr_code code = cli_timeline_refuse_traces(path, err);
    return code ? code : orr_chrome_trace_read(&path, 1, NULL, out, err);
}

static orr_code load_folder(const char *path,
                            cli_run_kind *kind,
                            orr_timeline **out,
                            orr_error *err)
{
    names n = timelines_in(path);
    orr_code code = ORR_OK;
    if (n.count) {
        *kind = CLI_RUN_TIMED;
        code = read_folder(path, &n, out, err);
    }
    names_fini(&n);
    return code;
}

orr_code cli_timeline_load(
    const cli_context *c, const char *path, cli_run_kind *kind, orr_timeline **out, orr_error *err)
{
    *out = NULL;
    *kind = CLI_RUN_OTHER;
    if (is_folder(path))
        return load_folder(path, kind, out, err);
    if (starts_with(path, "SQLite format 3")) {
        *kind = CLI_RUN_TIMED;
        return orr_nsys_timeline(path, out, err);
    }
    const orr_chrome_trace_look is = orr_chrome_trace_recognise(path);
    if (is == ORR_CHROME_TRACE_LINES) {
        *kind = CLI_RUN_LOG;
        return cli_timeline_load_log(c, path, out, err);
    }
    if (is != ORR_CHROME_TRACE_EVENTS)
        return ORR_OK;
    *kind = CLI_RUN_TIMED;
    return cli_timeline_load_events(path, out, err);
}
