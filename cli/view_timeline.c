/* SPDX-License-Identifier: Apache-2.0 */
/* view_timeline.c - orrery view timeline: when things happened, for a viewer or in characters. */
#include "timeline_load.h"

#include <orrery/lab/units.h>
#include <orrery/view.h>

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* "3" or "0-7". */
static orr_code parse_ranks(const char *text, orr_timeline_window *w, orr_error *err)
{
    char *end = NULL;
    unsigned long long first = 0, last = 0;
    bool is_good = *text >= '0' && *text <= '9';
    if (is_good) {
        first = last = strtoull(text, &end, 10);
        if (*end == '-' && end[1] >= '0' && end[1] <= '9')
            last = strtoull(end + 1, &end, 10);
        is_good = !*end && first <= last && last < ORR_NO_RANK;
    }
    if (!is_good)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "--ranks: \"%s\" is not a range such as 0-7 or a rank", text);
    w->has_ranks = true;
    w->first_rank = (uint32_t)first;
    w->last_rank = (uint32_t)last;
    return ORR_OK;
}

static orr_code parse_time(
    const cli_context *c, const char *name, bool *has, orr_ps *out, orr_error *err)
{
    *has = cli_given(c, name);
    if (!*has)
        return ORR_OK;
    const orr_code code = orr_time_parse(cli_text(c, name), out, err);
    return code ? orr_because(err, code, "--%s", name) : ORR_OK;
}

static orr_code parse_window(const cli_context *c, orr_timeline_window *w, orr_error *err)
{
    orr_code code = ORR_OK;
    *w = (orr_timeline_window){0};
    if (cli_given(c, "ranks"))
        code = parse_ranks(cli_text(c, "ranks"), w, err);
    if (!code)
        code = parse_time(c, "from", &w->has_from, &w->from, err);
    if (!code)
        code = parse_time(c, "to", &w->has_to, &w->to, err);
    if (!code && w->has_from && w->has_to && w->from >= w->to)
        return orr_fail(err, ORR_EUSAGE, NULL, "--from is not before --to");
    return code;
}

/* ---- the drawing ---- */

static uint32_t terminal_width(const char *to)
{
    struct winsize size;
    if (strcmp(to, "-") != 0 || !isatty(STDOUT_FILENO) ||
        ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        return 0;
    return size.ws_col;
}

/* As the C library decides: the first of these that says something. */
static bool is_utf8_locale(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strstr(value, "UTF-8") || strstr(value, "utf8") || strstr(value, "utf-8");
    }
    return false;
}

static orr_code draw(const cli_context *c,
                     const orr_timeline *t,
                     const char *to,
                     const orr_timeline_window *w,
                     orr_error *err)
{
    const orr_view_gantt_options opt = {
        .size = sizeof opt,
        .width = cli_given(c, "width") ? (uint32_t)cli_count(c, "width") : terminal_width(to),
        .is_ascii = cli_flag(c, "ascii") || !is_utf8_locale(),
        .window = *w,
    };
    return orr_view_gantt(t, to, &opt, err);
}

orr_code cli_print_gantt(const orr_timeline *t, orr_error *err)
{
    const orr_view_gantt_options opt = {
        .size = sizeof opt, .width = terminal_width("-"), .is_ascii = !is_utf8_locale()};
    return orr_view_gantt(t, "-", &opt, err);
}

/* ---- the command ---- */

static orr_code write_chrome(const orr_timeline *t,
                             const char *to,
                             const orr_timeline_window *w,
                             orr_error *err)
{
    orr_timeline *part;
    if (!w->has_ranks && !w->has_from && !w->has_to)
        return orr_view_chrome(t, to, err);
    orr_code code = orr_timeline_slice(t, w, &part, err);
    if (code)
        return code;
    code = orr_view_chrome(part, to, err);
    orr_timeline_destroy(part);
    return code;
}

/* Anything that cannot be recognised is a log. */
static orr_code read_timeline(const cli_context *c, orr_timeline **out, orr_error *err)
{
    const char *path = c->args[1];
    cli_run_kind kind;
    orr_code code = cli_timeline_load(c, path, &kind, out, err);
    if (!code && kind == CLI_RUN_OTHER)
        return cli_timeline_load_log(c, path, out, err);
    if (!code && kind == CLI_RUN_TIMED && cli_given(c, "frequency")) {
        orr_timeline_destroy(*out);
        code = orr_fail(err, ORR_EUSAGE, NULL, "--frequency: '%s' has times, not cycles", path);
    }
    return code;
}

orr_code cli_view_timeline(const cli_context *c, orr_error *err)
{
    const char *to = cli_text(c, "output");
    orr_timeline_window w;
    orr_timeline *t;
    orr_code code = parse_window(c, &w, err);
    if (code || (code = read_timeline(c, &t, err)))
        return code;
    code = cli_flag(c, "text") ? draw(c, t, to, &w, err) : write_chrome(t, to, &w, err);
    orr_timeline_destroy(t);
    return code;
}
