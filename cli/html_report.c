/* SPDX-License-Identifier: Apache-2.0 */
/* html_report.c - a run as one HTML page: the library's facts (explain.h) into its report
 * (report.h), with the command line as the page's origin. */
#include "command.h"
#include <orrery/version.h>

#include <stdlib.h>
#include <string.h>

orr_what_if cli_what_if_of(const char *word)
{
    static const char *const words[] = {"auto", "off", "estimate", "simulate"};
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i]) == 0)
            return (orr_what_if)i;
    return ORR_WHAT_IF_AUTO;
}

/* ---- the command line ---- */

static bool is_plain(const char *text)
{
    return *text && strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                 "_-./:,=+@%") == strlen(text);
}

static void print_word(FILE *to, const char *word)
{
    if (is_plain(word)) {
        fprintf(to, " %s", word);
        return;
    }
    fputs(" '", to);
    for (; *word; word++)
        fputs(*word == '\'' ? "'\\''" : (char[2]){*word, '\0'}, to);
    fputc('\'', to);
}

/* An optional value needs "=": without it, it would be an argument. */
static void print_option(FILE *to, const cli_option *o, const char *value)
{
    fprintf(to, " --%s", o->name);
    if (!o->arg || (o->implied && strcmp(value, o->implied) == 0))
        return;
    if (o->implied && is_plain(value))
        fprintf(to, "=%s", value);
    else
        print_word(to, value);
}

char *cli_command_line(const cli_context *c)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    fprintf(to, "%s%s", cli_program_name(c->command), c->command->name);
    for (int i = 0; i < c->arg_count; i++)
        print_word(to, c->args[i]);
    for (unsigned i = 0; c->command->options && c->command->options[i].name; i++) {
        if (!c->value[i])
            continue;
        print_option(to, &c->command->options[i], c->value[i]);
    }
    const bool failed = ferror(to);
    if (fclose(to) == 0 && !failed)
        return text;
    free(text);
    return NULL;
}

/* ---- the page ---- */

orr_code cli_report_add(orr_report *page,
                        orr_run *r,
                        const orr_explain_options *opt,
                        orr_error *err)
{
    orr_explanation *e;
    orr_explain_options with = *opt;
    with.run = cli_run_to_end;
    orr_code code = orr_run_explain(r, &with, &e, err);
    if (code)
        return code;
    code = orr_report_add(page, orr_explanation_run(e), err);
    orr_explanation_destroy(e);
    return code;
}

/* "flows.txt on topology.txt" */
static void name_page(const orr_run *r, char *out, size_t room)
{
    const char *flows = "flows", *topology = "a network";
    orr_run_input in;
    orr_error why;
    for (size_t i = 0; orr_run_input_at(r, i, &in, &why) == ORR_OK; i++) {
        if (strcmp(in.role, "flows") == 0)
            flows = in.path;
        else if (strcmp(in.role, "topology") == 0)
            topology = in.path;
    }
    snprintf(out, room, "%.250s on %.250s", flows, topology);
}

orr_code cli_report_one(const cli_context *c,
                        orr_run *r,
                        const orr_explain_options *opt,
                        const char *path,
                        orr_error *err)
{
    char title[2 * 256 + 8];
    char *line = cli_command_line(c);
    orr_report *page = NULL;
    if (!opt->name)
        name_page(r, title, sizeof title);
    const orr_report_options about = {.size = sizeof about,
                                      .title = opt->name ? opt->name : title,
                                      .program = "orrery " ORR_VERSION,
                                      .made_from = line};
    orr_code code = line ? orr_report_create(&about, &page, err)
                         : orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
    if (!code && !(code = cli_report_add(page, r, opt, err)))
        code = orr_report_write(page, path, err);
    orr_report_destroy(page);
    free(line);
    return code;
}
