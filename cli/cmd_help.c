/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_help.c - orrery help: the overview, or one command's help (the same text as `orrery COMMAND
 * --help`), the collective algorithms, the network models or the figures of old documents. */
#include <orrery/collective.h>
#include <orrery/network.h>

#include "command.h"
#include "option.h"

#include <string.h>

/* ---- help texts in 80 columns, from the command tables.  ---- */

enum { COLUMNS = 80, HELP_COLUMN_MAX = 30 };

/* Print word by word, breaking the line where the next word does not fit.  `column`: the current
 * column. */
static void wrap(FILE *to, const char *text, size_t indent, size_t column)
{
    bool is_first = true;
    while (*text) {
        const size_t blanks = strspn(text, " \n");
        const bool is_paragraph = memchr(text, '\n', blanks) && !is_first;
        text += blanks;
        const size_t len = strcspn(text, " \n");
        if (is_paragraph) {
            fprintf(to, "\n\n%*s", (int)indent, "");
            column = indent;
        } else if (!is_first && column + 1 + len > COLUMNS) {
            fprintf(to, "\n%*s", (int)indent, "");
            column = indent;
        } else if (!is_first && len) {
            column += (size_t)fprintf(to, " ");
        }
        column += (size_t)fprintf(to, "%.*s", (int)len, text);
        text += len;
        is_first = false;
    }
    fputc('\n', to);
}

static size_t print_left(FILE *to, const cli_option *o)
{
    int n = o->letter ? fprintf(to, "  -%c, ", o->letter) : fprintf(to, "      ");
    n += fprintf(to, "--%s", o->name);
    if (o->arg)
        n += fprintf(to, o->implied ? "[=%s]" : " %s", o->arg);
    return (size_t)n;
}

static size_t left_width(const cli_option *o)
{
    return strlen("  -x, --") + strlen(o->name) + (o->arg ? 1 + strlen(o->arg) : 0) +
           (o->implied ? 2 : 0);
}

static size_t wider(size_t widest, size_t width)
{
    return width > widest && width <= HELP_COLUMN_MAX - 2 ? width : widest;
}

/* The column of the help texts: after the longest left part that is not overlong. */
static size_t help_column(const cli_command *command)
{
    size_t widest = 0;
    for (const cli_argument *a = command->arguments; a && a->name; a++)
        widest = wider(widest, 2 + strlen(a->name));
    for (const cli_option *o = command->options; o && o->name; o++)
        widest = wider(widest, left_width(o));
    for (const cli_option *o = cli_common_of(command); o->name; o++)
        widest = wider(widest, left_width(o));
    return widest + 2;
}

static void print_right(FILE *to, const char *text, size_t column, size_t used)
{
    if (used + 2 > column)
        fprintf(to, "\n%*s", (int)column, "");
    else
        fprintf(to, "%*s", (int)(column - used), "");
    wrap(to, text, column, column);
}

static void print_options(FILE *to, const cli_option *o, size_t column)
{
    for (; o && o->name; o++) {
        char text[512];
        const size_t used = print_left(to, o);
        snprintf(text, sizeof text, "%s%s%s%s%s", o->help, o->fallback ? " (default " : "",
                 o->fallback ? o->fallback : "", o->fallback ? ")" : "",
                 o->required ? " (required)" : "");
        print_right(to, text, column, used);
    }
}

static void print_arguments(FILE *to, const cli_argument *a, size_t column)
{
    fprintf(to, "\nArguments:\n");
    for (; a->name; a++) {
        const size_t used = (size_t)fprintf(to, "  %s", a->name);
        print_right(to, a->help, column, used);
    }
}

static void print_examples(FILE *to, const cli_example *e)
{
    fprintf(to, "\nExamples:\n");
    for (; e->line; e++) {
        if (*e->what) { /* empty: the line belongs to the previous example */
            fprintf(to, "  ");
            wrap(to, e->what, 2, 2);
        }
        fprintf(to, "    $ %s\n", e->line);
    }
}

/* "orrery gen [OPTION...] KIND" */
static void print_usage(FILE *to, const cli_command *command)
{
    static const char *const before[] = {" ", " [", " ", " ["};
    static const char *const behind[] = {"", "]", "...", "...]"};
    fprintf(to, "%s%s", cli_program_name(command), command->name);
    for (const cli_option *o = command->options; o && o->name; o++) {
        if (o->required)
            fprintf(to, " --%s %s", o->name, o->arg);
    }
    fprintf(to, " [OPTION...]");
    for (const cli_argument *a = command->arguments; a && a->name; a++)
        fprintf(to, "%s%s%s", before[a->times], a->name, behind[a->times]);
    fputc('\n', to);
}

/* "show this" -> "Show this.": capital letter and full stop. */
static void print_summary(FILE *to, const char *summary)
{
    const char first = summary[0];
    fprintf(to, "%c%s.\n", first >= 'a' && first <= 'z' ? first - 'a' + 'A' : first, summary + 1);
}

void cli_help_command(FILE *to, const cli_command *command)
{
    const size_t column = help_column(command);
    fprintf(to, "Usage: ");
    print_usage(to, command);
    print_summary(to, command->summary);
    if (command->now)
        fprintf(to, "Old name, kept for scripts; same as: %s\n", command->now);
    if (command->description) {
        fputc('\n', to);
        wrap(to, command->description, 0, 0);
    }
    if (command->arguments)
        print_arguments(to, command->arguments, column);
    fprintf(to, "\nOptions:\n");
    print_options(to, command->options, column);
    print_options(to, cli_common_of(command), column);
    if (command->examples)
        print_examples(to, command->examples);
}

void cli_help_overview(FILE *to)
{
    fprintf(to, "Usage: orrery COMMAND [OPTION...] [ARGUMENT...]\n");
    print_summary(to, cli_program.summary);
    fprintf(to, "\nCommands:\n");
    for (const cli_command *const *c = cli_commands; *c; c++)
        fprintf(to, "  %-10s %s\n", (*c)->name, (*c)->summary);
    fprintf(to, "\nOptions:\n");
    print_options(to, cli_program.options, help_column(&cli_program));
    print_options(to, cli_common, help_column(&cli_program));
    fprintf(to, "\nHelp on one command: orrery help COMMAND, or man orrery-COMMAND.\n");
}

/* ---- the command ---- */

static const cli_argument arguments[] = {
    {"COMMAND", "a command, an old program name, 'algorithms', 'networks' or 'figures'", CLI_MAYBE},
    {"WORD", "the second word of a command that has two", CLI_MAYBE},
    {0},
};

static const cli_example examples[] = {
    {"All commands:", "orrery help", 0},
    {"One command:", "orrery help help", 0},
    {"The collective algorithms that a system file may name:", "orrery help algorithms", 0},
    {"The network models that --network takes:", "orrery help networks", 0},
    {"Why ASTRA-sim's 2023 documents give other times:", "orrery help figures", 0},
    {0},
};

/* docs/figures.md has the arithmetic; tests/cli/figures.sh runs the commands. */
static const char FIGURES[] =
    "Two jobs from ASTRA-sim's documents, each with two times. 64 NPUs on one switch,\n"
    "halving-doubling in 4 chunks, endpoint-delay 10, congestion-unaware:\n"
    "\n"
    "                                     documents of 2023    ASTRA-sim since 2024\n"
    "  all-reduce of 65536 bytes               50904 cycles            52776 cycles\n"
    "  Resnet50_DataParallel.txt             6749042 cycles       1082500920 cycles\n"
    "\n"
    "A cycle is 1 ns. orrery has the times of today; --compat astra2023 gives those\n"
    "of 2023. Two changes of ASTRA-sim make the difference:\n"
    "\n"
    "  Reductions. Each received message that is reduced costs 3 x its size divided\n"
    "  by local-mem-bw (50 GB/s here). Until October 2024 that time was computed in\n"
    "  seconds and truncated to 0.\n"
    "\n"
    "  Durations. A trace has them in microseconds. Until the end of 2023 they were\n"
    "  read as nanoseconds, so that computing was 1000 times faster, and ResNet-50\n"
    "  was bound by communication instead of by computing.\n"
    "\n"
    "All four, with Switch.json, Switch.yml and Resnet50_DataParallel.txt of\n"
    "ASTRA-sim:\n"
    "\n"
    "  $ orrery gen all_reduce --ranks 64 --comm-size 65536 -o ar.orr\n"
    "  $ orrery run ar.orr -s Switch.json -t Switch.yml -n unaware\n"
    "  $ orrery run ar.orr -s Switch.json -t Switch.yml --compat astra2023\n"
    "  $ orrery convert text Resnet50_DataParallel.txt --npus 64 -o rn.orr\n"
    "  $ orrery run rn.orr -s Switch.json -t Switch.yml -n unaware\n"
    "  $ orrery run rn.orr -s Switch.json -t Switch.yml --compat astra2023\n"
    "\n"
    "AstraSim_Analytical_Congestion_Unaware takes --compat=astra2023 as well.\n"
    "docs/figures.md has the files and the arithmetic.\n";

static orr_code help_run(cli_context *c, orr_error *err)
{
    if (c->arg_count == 0) {
        cli_help_overview(stdout);
        return ORR_OK;
    }
    const char *name = c->args[0];
    if (strcmp(name, "algorithms") == 0) {
        char text[4000];
        orr_coll_describe(NULL, text, sizeof text);
        fputs(text, stdout);
        return ORR_OK;
    }
    if (strcmp(name, "networks") == 0) {
        for (size_t i = 0; orr_net_at(i); i++)
            printf("%-10s %s\n", orr_net_at(i)->name, orr_net_at(i)->help);
        printf("%-10s %s\n", "loggops",
               "GOAL schedules, also made of traces: latency, overheads and gaps");
        return ORR_OK;
    }
    if (strcmp(name, "figures") == 0) {
        fputs(FIGURES, stdout);
        return ORR_OK;
    }
    const cli_command *command = cli_command_find(name);
    const char *left_out = NULL;
    if (!command)
        command = cli_old_name_find(name, &left_out);
    if (left_out)
        return cli_misuse(err, "'%s': this build leaves out compatibility with %s", name, left_out);
    if (!command) {
        const char *near = cli_command_nearest(name);
        return cli_misuse(err, "unknown command '%s'%s%s%s", name, near ? "; did you mean '" : "",
                          near ? near : "", near ? "'?" : "");
    }
    if (c->arg_count > 1) {
        const cli_command *deeper = cli_command_deeper(command, c->args[1]);
        if (!command->deeper)
            return cli_misuse(err, "extra argument '%s'", c->args[1]);
        if (!deeper)
            return cli_misuse(err, "unknown command '%s %s'", name, c->args[1]);
        command = deeper;
    }
    cli_help_command(stdout, command);
    return ORR_OK;
}

const cli_command cli_cmd_help = {
    .name = "help",
    .summary = "list the commands, or show help on one",
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery(1)",
    .run = help_run,
};
