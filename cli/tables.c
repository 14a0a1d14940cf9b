/* SPDX-License-Identifier: Apache-2.0 */
/* tables.c - a program for the build, not installed: prints what is made from the command tables.
 *
 *     orrery_tables commands             the names of all commands, one a line
 *     orrery_tables old-names            the old program names that work
 *     orrery_tables man NAME TEMPLATE    a man page: the template with its @WORDS@ filled in
 *     orrery_tables bash|zsh|fish        shell completion */
#include "tables.h"

#include <string.h>

static int print_names(const cli_command *const *list)
{
    for (; *list; list++) {
        if ((*list)->run)
            puts((*list)->name);
    }
    return 0;
}

static int print_old_names(void)
{
    const cli_command *c;
    for (size_t i = 0; (c = cli_old_name_at(i)) != NULL; i++)
        puts(c->name);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "commands") == 0)
        return print_names(cli_commands);
    if (strcmp(what, "old-names") == 0)
        return print_old_names();
    if (strcmp(what, "man") == 0 && argc == 4)
        return tables_man(argv[2], argv[3]);
    if (strcmp(what, "bash") == 0)
        return tables_bash();
    if (strcmp(what, "zsh") == 0)
        return tables_zsh();
    if (strcmp(what, "fish") == 0)
        return tables_fish();
    fprintf(stderr, "usage: orrery_tables commands|old-names|bash|zsh|fish|man NAME TEMPLATE\n");
    return 2;
}
