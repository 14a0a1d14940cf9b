/* SPDX-License-Identifier: Apache-2.0 */
/* plan_page.c - orrery plan --report: the page of web/plan.html or plan_serve.html with its data, and beside the first the
 * report of the best plan's own run. */
#include "plan.h"

#include "html_report.h"
#include "json_out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

extern const char cli_plan_html[], cli_plan_serve_html[], cli_plan_css[], cli_plan_style[],
    cli_plan_parts[];

static void put_title(FILE *f, const char *title)
{
    for (const char *p = title; *p; p++)
        if (*p == '<' || *p == '&')
            fputs(*p == '<' ? "&lt;" : "&amp;", f);
        else
            fputc(*p, f);
}

/* The page up to a mark, and the rest in *at. */
static void put_until(FILE *f, const char **at, const char *mark)
{
    const char *found = strstr(*at, mark);
    const char *end = found ? found : *at + strlen(*at);
    fwrite(*at, 1, (size_t)(end - *at), f);
    *at = found ? found + strlen(mark) : end;
}

orr_code cli_plan_page(
    bool is_serving, const char *title, const orr_buf *json, const char *path, orr_error *err)
{
    const char *at = is_serving ? cli_plan_serve_html : cli_plan_html;
    orr_buf data = {0};
    cli_file to;
    orr_json_in_page(json, &data);
    orr_code code = data.failed ? orr_fail(err, ORR_ENOMEM, NULL, "out of memory")
                                : cli_file_open(path, &to, err);
    if (!code) {
        put_until(to.f, &at, "<!--orrery:title-->");
        put_title(to.f, title);
        put_until(to.f, &at, "<!--orrery:css-->");
        fputs(cli_plan_css, to.f);
        put_until(to.f, &at, "<!--orrery:style-->");
        fputs(cli_plan_style, to.f);
        put_until(to.f, &at, "<!--orrery:data-->");
        fwrite(data.ptr, 1, data.len, to.f);
        put_until(to.f, &at, "<!--orrery:parts-->");
        fputs(cli_plan_parts, to.f);
        fputs(at, to.f);
        code = cli_file_close(&to, ORR_OK, err);
    }
    orr_buf_fini(&data);
    return code;
}

/* "plan.html" -> "plan.best.html" */
static bool name_best(const char *path, char *out, size_t size)
{
    const size_t length = strlen(path);
    const bool is_html = length > 5 && strcmp(path + length - 5, ".html") == 0;
    const int n = snprintf(out, size, "%.*s.best.html", (int)(is_html ? length - 5 : length), path);
    return n > 0 && (size_t)n < size;
}

static orr_code write_best(cli_context *c, const cli_plan *x, const char *path, orr_error *err)
{
    const orr_plan *best = orr_plan_at(x->search, 0);
    orr_set *set = NULL;
    orr_run *run = NULL;
    char name[400];
    snprintf(name, sizeof name, "%.180s, the best plan on %.180s", x->name, x->machine);
    orr_code code = orr_llm_training(x->model, &best->options, &set, err);
    const orr_run_config config = {.size = sizeof config,
                                   .set = set,
                                   .traces = x->name,
                                   .machine = x->machine,
                                   .software =
                                       best->options.software ? best->options.software->name : NULL,
                                   .records = ORR_RUN_SPANS | ORR_RUN_HISTORY};
    if (!code)
        code = orr_run_create(&config, &run, err);
    if (!code)
        code = orr_run_to_end(run, err);
    const orr_explain_options about = {.name = name, .what_if = ORR_WHAT_IF_ESTIMATE};
    if (!code)
        code = cli_report_one(c, run, &about, path, err);
    orr_run_destroy(run);
    orr_set_close(set);
    return code;
}

orr_code cli_plan_report(cli_context *c, const cli_plan *x, const char *path, orr_error *err)
{
    char best[4096] = "", title[300];
    orr_buf text = {0};
    orr_json_writer w;
    char *line = cli_command_line(c);
    orr_code code = line ? ORR_OK : orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
    if (!code && strcmp(path, "-") != 0 && name_best(path, best, sizeof best))
        code = write_best(c, x, best, err);
    orr_json_writer_init(&w, &text, NULL);
    orr_json_begin_object(&w);
    cli_plan_put(x, &w, SIZE_MAX);
    cli_plan_put_others(x, &w);
    const char *slash = strrchr(best, '/');
    orr_json_put_text(&w, "best_report", best[0] ? (slash ? slash + 1 : best) : NULL);
    orr_json_put_text(&w, "made_from", line);
    orr_json_end_object(&w);
    snprintf(title, sizeof title, "%.140s on %.140s", x->name, x->machine);
    if (!code)
        code = cli_plan_page(false, title, &text, path, err);
    orr_buf_fini(&text);
    free(line);
    return code;
}
