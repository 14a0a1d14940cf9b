/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_help.c - orrery help: the overview, or one command's help (the same text as `orrery COMMAND --help`),
 * the collective algorithms or the network models. */
#include "command.h"

#include <orrery/collective.h>
#include <orrery/network.h>

static const cli_argument arguments[] = {
    {"COMMAND", "a command, an old program name, 'algorithms' or 'networks'", CLI_MAYBE},
    {"WORD", "the second word of a command that has two", CLI_MAYBE},
    {0},
};

static const cli_example examples[] = {
    {"All commands:", "orrery help", 0},
    {"One command:", "orrery help help", 0},
    {"The collective algorithms that a system file may name:", "orrery help algorithms", 0},
    {"The network models that --network takes:", "orrery help networks", 0},
    {0},
};

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
        printf("%-10s %s\n", "loggops", "schedules only: latency, overheads and gaps (LogGOPS)");
        return ORR_OK;
    }
    const cli_command *command = cli_command_find(name);
    const char *left_out = NULL;
    if (!command)
        command = cli_old_name_find(name, &left_out);
    if (left_out)
        return orr_fail(err, ORR_EUSAGE, NULL, "'%s': this build leaves out compatibility with %s",
                        name, left_out);
    if (!command) {
        const char *near = cli_command_nearest(name);
        return orr_fail(err, ORR_EUSAGE, NULL, "no command '%s'%s%s%s", name,
                        near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    if (c->arg_count > 1) {
        const cli_command *deeper = cli_command_deeper(command, c->args[1]);
        if (!command->deeper)
            return orr_fail(err, ORR_EUSAGE, NULL, "extra argument '%s'", c->args[1]);
        if (!deeper)
            return orr_fail(err, ORR_EUSAGE, NULL, "no command '%s %s'", name, c->args[1]);
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
