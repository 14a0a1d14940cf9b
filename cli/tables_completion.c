/* SPDX-License-Identifier: Apache-2.0 */
/* tables_completion.c - completion for bash, zsh and fish: commands, options, words to choose from, files.
 *
 * Each shell gets a static script: completing starts no program, so it is instant and safe to run anywhere. */
#include "tables.h"

#include <string.h>

/* Text inside '...' of a shell: a quote ends it, is written, and begins it anew; `special` gets a backslash. */
static void print_quoted(const char *text, const char *quote, const char *special)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs(quote, stdout);
        else if (strchr(special, *text))
            printf("\\%c", *text);
        else
            putchar(*text);
    }
}

static void print_choices(const char *choices)
{
    size_t len;
    const char *word;
    for (int i = 0; (word = cli_choice(choices, i, &len)); i++)
        printf("%s%.*s", i ? " " : "", (int)len, word);
}

/* ---- bash ---- */

static void bash_names(const cli_option *o)
{
    for (; o && o->name; o++)
        printf(" --%s", o->name);
}

static void bash_values(const cli_command *c, const cli_option *o)
{
    for (; o && o->name; o++) {
        if (!o->arg || o->implied)
            continue;
        printf("    '%s --%s'", c->name, o->name);
        if (o->letter)
            printf("|'%s -%c'", c->name, o->letter);
        printf(") values='");
        if (cli_is_choice(o->arg))
            print_choices(o->arg);
        printf("'; takes_value=1 ;;\n");
    }
}

static void for_all(void (*print)(const cli_command *c))
{
    for (const cli_command *const *c = cli_commands; *c; c++)
        print(*c);
    const cli_command *old;
    for (size_t i = 0; (old = cli_old_name_at(i)) != NULL; i++)
        print(old);
}

/* Those of two words too, before the one they begin with. */
static void for_all_deep(void (*print)(const cli_command *c))
{
    for (const cli_command *const *c = cli_commands; *c; c++) {
        for (const cli_command *const *d = (*c)->deeper; d && *d; d++)
            print(*d);
    }
    for_all(print);
}

/* The second words of a command, each behind a blank. */
static void print_second_words(const cli_command *c)
{
    for (const cli_command *const *d = c->deeper; d && *d; d++)
        printf(" %s", (*d)->name + strlen(c->name) + 1);
}

/* A shell's pattern for all commands of two words; one that never fits when there are none. */
static void print_two_words(void)
{
    printf("'-'");
    for (const cli_command *const *c = cli_commands; *c; c++) {
        for (const cli_command *const *d = (*c)->deeper; d && *d; d++)
            printf("|'%s'", (*d)->name);
    }
}

static void bash_command(const cli_command *c)
{
    printf("    '%s')\n        names='", c->name);
    bash_names(c->options);
    bash_names(cli_common);
    printf("'\n        words='");
    for (const cli_argument *a = c->arguments; a && a->name; a++) {
        if (cli_is_choice(a->name))
            print_choices(a->name);
    }
    print_second_words(c);
    printf("' ;;\n");
}

static void bash_all_values(const cli_command *c)
{
    bash_values(c, c->options);
    bash_values(c, cli_common);
}

static void print_space_name(const cli_command *c)
{
    printf(" %s", c->name);
}

int tables_bash(void)
{
    puts("# orrery: completion for bash; made from the command tables.");
    puts("_orrery() {");
    puts(
        "    local cur=${COMP_WORDS[COMP_CWORD]} prev= command=${1##*/} i names= words= values= takes_value=");
    puts("    [ \"$COMP_CWORD\" -gt 0 ] && prev=${COMP_WORDS[COMP_CWORD-1]}");
    puts("    [ \"$cur\" = '=' ] && cur=");
    puts("    [ \"$prev\" = '=' ] && prev=${COMP_WORDS[COMP_CWORD-2]}");
    puts("    if [ \"$command\" = orrery ]; then");
    puts("        for ((i = 1; i < COMP_CWORD; i++)); do");
    puts("            case ${COMP_WORDS[i]} in -*) ;; *) command=${COMP_WORDS[i]}; break ;; esac");
    puts("        done");
    printf("        case \"$command ${COMP_WORDS[i+1]-}\" in ");
    print_two_words();
    puts(
        ") [ $((i + 1)) -lt \"$COMP_CWORD\" ] && command=\"$command ${COMP_WORDS[i+1]-}\" ;; esac");
    puts("    fi");
    puts("    case $command in");
    printf("    orrery)\n        names='");
    bash_names(cli_program.options);
    bash_names(cli_common);
    printf("'\n        words='");
    for (const cli_command *const *c = cli_commands; *c; c++)
        print_space_name(*c);
    puts("' ;;");
    for_all_deep(bash_command);
    puts("    esac");
    puts("    case \"$command $prev\" in");
    bash_values(&cli_program, cli_common);
    for_all_deep(bash_all_values);
    printf("    'help help') words='");
    for_all(print_space_name);
    puts("' ;;");
    puts("    esac");
    puts("    if [ -n \"$takes_value\" ]; then words=$values names=; fi");
    puts("    case $cur in -*) words=$names ;; esac");
    puts("    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))");
    puts("}");
    printf("complete -o bashdefault -o default -F _orrery orrery");
    const cli_command *old;
    for (size_t i = 0; (old = cli_old_name_at(i)) != NULL; i++)
        print_space_name(old);
    putchar('\n');
    return 0;
}

/* ---- zsh ---- */

static void zsh_help(const char *help)
{
    print_quoted(help, "'\\''", "[]:\\");
}

static void zsh_option(const cli_option *o)
{
    if (o->letter)
        printf("        '(-%c --%s)'{-%c,--%s}'[", o->letter, o->name, o->letter, o->name);
    else
        printf("        '--%s[", o->name);
    zsh_help(o->help);
    putchar(']');
    if (cli_is_choice(o->arg)) {
        printf(":value:(");
        print_choices(o->arg);
        putchar(')');
    } else if (o->arg && !o->implied) {
        printf(":%s:_files", o->arg);
    }
    puts("' \\");
}

static void zsh_arguments(const cli_argument *a)
{
    for (; a && a->name; a++) {
        const bool is_many = a->times == CLI_SOME || a->times == CLI_ANY;
        if (cli_is_choice(a->name)) {
            printf("        ':argument:(");
            print_choices(a->name);
            puts(")' \\");
        } else {
            printf("        '%s:%s:_files' \\\n", is_many ? "*" : "", a->name);
        }
    }
}

static void zsh_command(const cli_command *c)
{
    printf("    '%s')\n        _arguments \\\n", c->name);
    for (const cli_option *o = c->options; o && o->name; o++)
        zsh_option(o);
    for (const cli_option *o = cli_common; o->name; o++)
        zsh_option(o);
    if (c == &cli_cmd_help) {
        printf("        ':command:(");
        for_all(print_space_name);
        puts(")' ;;");
        return;
    }
    zsh_arguments(c->arguments);
    puts("        && return ;;");
}

int tables_zsh(void)
{
    printf("#compdef orrery");
    const cli_command *old;
    for (size_t i = 0; (old = cli_old_name_at(i)) != NULL; i++)
        print_space_name(old);
    puts("\n# orrery: completion for zsh; made from the command tables.");
    puts("_orrery() {");
    puts("    local command=$service");
    puts("    local -a commands");
    puts("    commands=(");
    for (const cli_command *const *c = cli_commands; *c; c++) {
        printf("        '%s:", (*c)->name);
        zsh_help((*c)->summary);
        puts("'");
    }
    puts("    )");
    puts("    if [[ $command = orrery ]]; then");
    puts("        if (( CURRENT == 2 )); then");
    puts("            _describe command commands");
    puts("            return");
    puts("        fi");
    puts("        shift words");
    puts("        (( CURRENT-- ))");
    puts("        command=$words[1]");
    printf("        case \"$words[1] $words[2]\" in ");
    print_two_words();
    puts(")");
    puts(
        "            if (( CURRENT > 2 )); then command=\"$words[1] $words[2]\"; shift words; (( CURRENT-- )); fi ;;");
    puts("        esac");
    puts("    fi");
    puts("    case $command in");
    for_all_deep(zsh_command);
    puts("    esac");
    puts("}");
    puts("_orrery \"$@\"");
    return 0;
}

/* ---- fish ---- */

static void fish_option(const char *program, const char *command, const cli_option *o)
{
    printf("complete -c %s", program);
    if (command)
        printf(" -n '__fish_seen_subcommand_from %s'", command);
    printf(" -l %s", o->name);
    if (o->letter)
        printf(" -s %c", o->letter);
    if (cli_is_choice(o->arg)) {
        printf(" -x -a '");
        print_choices(o->arg);
        putchar('\'');
    } else if (o->arg && !o->implied) {
        printf(" -r");
    }
    printf(" -d '");
    print_quoted(o->help, "\\'", "\\");
    puts("'");
}

static void fish_arguments(const cli_command *c)
{
    for (const cli_argument *a = c->arguments; a && a->name; a++) {
        if (!cli_is_choice(a->name))
            continue;
        printf("complete -c orrery -n '__fish_seen_subcommand_from %s' -a '", c->name);
        print_choices(a->name);
        puts("'");
    }
}

/* The second word of a command, and its options behind it. */
static void fish_deeper(const cli_command *c)
{
    for (const cli_command *const *d = c->deeper; d && *d; d++) {
        const char *word = (*d)->name + strlen(c->name) + 1;
        printf("complete -c orrery -n '__fish_seen_subcommand_from %s' -a %s -d '", c->name, word);
        print_quoted((*d)->summary, "\\'", "\\");
        puts("'");
        for (const cli_option *o = (*d)->options; o && o->name; o++)
            fish_option("orrery", word, o);
    }
}

static void fish_command(const cli_command *c)
{
    const char *program = c->now ? c->name : "orrery";
    const char *command = c->now ? NULL : c->name;
    if (command) {
        printf("complete -c orrery -n __fish_use_subcommand -f -a %s -d '", command);
        print_quoted(c->summary, "\\'", "\\");
        puts("'");
        fish_arguments(c);
        fish_deeper(c);
    }
    for (const cli_option *o = c->options; o && o->name; o++)
        fish_option(program, command, o);
}

int tables_fish(void)
{
    puts("# orrery: completion for fish; made from the command tables.");
    for (const cli_option *o = cli_program.options; o->name; o++)
        fish_option("orrery", NULL, o);
    for (const cli_option *o = cli_common; o->name; o++)
        fish_option("orrery", NULL, o);
    for_all(fish_command);
    printf("complete -c orrery -n '__fish_seen_subcommand_from help' -f -a '");
    for_all(print_space_name);
    puts("'");
    return 0;
}
