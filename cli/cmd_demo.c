/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_demo.c - orrery demo: the whole way on an example, step by step.
 *
 * The steps are those a user would type, printed as such, and run through the same functions as the commands:
 * make the traces of a training step, read them back from their files, check them, say what is in them. */
#include "command.h"

#include <orrery/check.h>
#include <orrery/gen.h>
#include <orrery/info.h>

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static const cli_option options[] = {
    {"output", 'o', "DIR", "where the traces go", .fallback = "orrery-demo"},
    {"ranks", 'n', "N", "how many ranks", CLI_COUNT, 2, 65536, "16"},
    {0},
};

static const cli_example examples[] = {
    {"Sixteen ranks, into orrery-demo/:", "orrery demo", 0},
    {"More of them, elsewhere:", "orrery demo --ranks 64 -o large", 0},
    {0},
};

/* The command a user would type for the step that follows. */
static void print_step(const cli_context *c, const char *words, const char *prefix)
{
    const bool is_colored = cli_is_colored(c, stdout);
    printf(is_colored ? "\033[1m$ " : "$ ");
    printf("orrery %s %s", words, prefix);
    printf(is_colored ? "\033[0m\n" : "\n");
}

static void print_text(orr_str text)
{
    fwrite(text.ptr, 1, text.len, stdout); /* main looks whether it arrived */
    putchar('\n');
}

static orr_code make_folder(const char *folder, orr_error *err)
{
    if (mkdir(folder, 0777) == 0 || errno == EEXIST)
        return ORR_OK;
    const orr_where where = orr_where_line(folder, 0, 0);
    return orr_fail(err, ORR_EIO, &where, "cannot make the folder: %s", strerror(errno));
}

static orr_code make_traces(const cli_context *c, const char *prefix, orr_error *err)
{
    const orr_pattern *p = orr_pattern_find("data_parallel");
    orr_gen_options opt = p->defaults;
    char words[80];
    orr_set *set;
    opt.ranks = (uint32_t)cli_count(c, "ranks");
    snprintf(words, sizeof words, "gen data_parallel --ranks %u -o", opt.ranks);
    print_step(c, words, prefix);
    orr_code code = orr_pattern_set(p, &opt, &set, err);
    if (code)
        return code;
    code = orr_set_write_files(set, prefix, NULL, 0, err);
    if (!code)
        printf("%s.0.et to %s.%u.et:\n"
               "one training step, %u layers, on %u ranks that each have a part of the batch.\n\n",
               prefix, prefix, opt.ranks - 1, (unsigned)opt.layers, opt.ranks);
    orr_set_close(set);
    return code;
}

static orr_code check_traces(cli_context *c, const orr_set *set, const char *prefix, orr_error *err)
{
    orr_check_report *r;
    orr_str text = {0};
    print_step(c, "check", prefix);
    orr_code code = orr_check_set(set, NULL, &r, err);
    if (code)
        return code;
    const orr_check_style style = {.input = prefix, .is_colored = cli_is_colored(c, stdout)};
    code = orr_check_text(r, &style, &text, err);
    if (!code)
        print_text(text);
    if (!code && (r->errors || r->read_status))
        cli_answer_no(c);
    orr_check_report_destroy(r);
    return code;
}

static orr_code show_traces(const cli_context *c,
                            const orr_set *set,
                            const char *prefix,
                            orr_error *err)
{
    const orr_info_options opt = {.path = prefix, .program = "orrery " ORRERY_VERSION, .top = 5};
    orr_info *info;
    orr_str text = {0};
    print_step(c, "info --top 5", prefix);
    orr_code code = orr_info_create(set, &opt, &info, err);
    if (code)
        return code;
    if (!(code = orr_info_text(info, &text, err)))
        print_text(text);
    orr_info_destroy(info);
    return code;
}

static orr_code demo_run(cli_context *c, orr_error *err)
{
    const char *folder = cli_text(c, "output");
    const orr_set_options read = {.keep_going = true};
    char prefix[4096];
    orr_set *set;
    const int n = snprintf(prefix, sizeof prefix, "%s/step", folder);
    if (n < 0 || (size_t)n >= sizeof prefix)
        return orr_fail(err, ORR_EUSAGE, NULL, "the folder's name is too long");
    orr_code code = make_folder(folder, err);
    if (code || (code = make_traces(c, prefix, err)) ||
        (code = orr_set_open(prefix, &read, &set, err)))
        return code;
    code = check_traces(c, set, prefix, err);
    if (!code && !c->answer_is_no)
        code = show_traces(c, set, prefix, err);
    orr_set_close(set);
    if (!code && !c->answer_is_no)
        printf("That is the whole way so far.  'orrery help' shows what else there is.\n");
    return code;
}

const cli_command cli_cmd_demo = {
    .name = "demo",
    .summary = "go the whole way on an example: make traces, check them, look at them",
    .description = "The traces of one training step are made for all ranks, read back, checked and "
                   "summarised.  Each step is shown as the command that does the same.",
    .options = options,
    .examples = examples,
    .see_also = "orrery-check(1), orrery-gen(1), orrery-info(1)",
    .run = demo_run,
};
