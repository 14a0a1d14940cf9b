/* SPDX-License-Identifier: Apache-2.0 */
/* tables.c - a build-time program, not installed: prints files generated from the command tables.
 *
 *     orrery_tables commands             the names of all commands, one a line
 *     orrery_tables old-names            the old program names that work
 *     orrery_tables files                options whose value is a file or a folder, and what each command needs beside them
 *     orrery_tables man NAME TEMPLATE DOCS  a man page: the template with its @WORDS@ filled in, and
 *                                        docs/ as the folder where the documents are installed
 *     orrery_tables old-man NAME         the man page of an old name
 *     orrery_tables bash|zsh|fish        shell completion
 *     orrery_tables options              every option that takes a value, one a line, for the tests: command, option,
 *                                        count or text, its value's name, what it
 *                                        needs beside it; tabs between */
#include "command.h"

#include <orrery/lab/gen.h>
#include <orrery/lab/hardware.h>
#include <orrery/lab/model.h>
#include <orrery/lab/schedgen.h>
#include <orrery/network.h>

#include <ctype.h>
#include <string.h>

/* Completion for bash, zsh and fish: commands, options, words to choose from, files.
 *
 * Each shell gets a static script: completion starts no program, so it is instant and safe. */

/* Text for '...' in a shell: a quote closes the string, is escaped, and reopens it; characters of
 * `special` get a backslash. */
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

/* Built-in names that an argument or an option's value may take, each after a space. */
static void print_known(const cli_command *c, const char *value)
{
    size_t count = 0;
    const orr_pattern *pattern;
    const orr_schedgen_pattern *schedule;
    const orr_chip *chip;
    const orr_hardware *design;
    const orr_model *model;
    const orr_net_ops *net;
    const char *(*const kind_at)(size_t) = strcmp(c->name, "view") == 0 ? cli_view_at : cli_kind_at;
    const char *word;
    if (strcmp(value, "PATTERN") == 0 && strcmp(c->name, "gen") == 0)
        for (; (pattern = orr_pattern_at(count)) != NULL; count++)
            printf(" %s", pattern->name);
    if (strcmp(value, "ptrn") == 0 ||
        (strcmp(value, "PATTERN") == 0 && strcmp(c->name, "gen goal") == 0))
        for (; (schedule = orr_schedgen_at(count)) != NULL; count++)
            printf(" %s", schedule->name);
    if (strcmp(value, "hardware") == 0)
        for (; (chip = orr_chip_at(count)) != NULL; count++)
            printf(" %s", chip->name);
    if (strcmp(value, "design") == 0)
        for (; (design = orr_hardware_at(count)) != NULL; count++)
            printf(" %s", design->name);
    if (strcmp(value, "MODEL") == 0)
        for (; (model = orr_model_at(count)) != NULL; count++)
            printf(" %s", model->name);
    if (strcmp(value, "network") == 0 || strcmp(value, "compare") == 0)
        for (; (net = orr_net_at(count)) != NULL; count++)
            printf(" %s", net->name);
    if (strcmp(value, "SHAPE") == 0)
        for (; (word = cli_shape_at(count)) != NULL; count++)
            printf(" %s", word);
    if (strcmp(value, "KIND") == 0)
        for (; (word = kind_at(count)) != NULL; count++)
            printf(" %s", word);
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
        print_known(c, o->name);
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

/* Two-word commands too, before the command they begin with. */
static void for_all_deep(void (*print)(const cli_command *c))
{
    for (const cli_command *const *c = cli_commands; *c; c++) {
        for (const cli_command *const *d = (*c)->deeper; d && *d; d++)
            print(*d);
    }
    for_all(print);
}

/* The second words of a command, each after a space. */
static void print_second_words(const cli_command *c)
{
    for (const cli_command *const *d = c->deeper; d && *d; d++)
        printf(" %s", (*d)->name + strlen(c->name) + 1);
}

/* A shell pattern that matches all two-word commands; one that never matches if there are none. */
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
    bash_names(cli_common_of(c));
    printf("'\n        words='");
    for (const cli_argument *a = c->arguments; a && a->name; a++) {
        if (cli_is_choice(a->name))
            print_choices(a->name);
        print_known(c, a->name);
    }
    print_second_words(c);
    printf("' ;;\n");
}

static void bash_all_values(const cli_command *c)
{
    bash_values(c, c->options);
    bash_values(c, cli_common_of(c));
}

static void print_space_name(const cli_command *c)
{
    printf(" %s", c->name);
}

static int tables_bash(void)
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

static void zsh_option(const cli_command *c, const cli_option *o)
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
        printf(":%s:{compadd --", o->arg);
        print_known(c, o->name);
        printf("; _files}");
    }
    puts("' \\");
}

static void zsh_arguments(const cli_command *c)
{
    for (const cli_argument *a = c->arguments; a && a->name; a++) {
        const bool is_many = a->times == CLI_SOME || a->times == CLI_ANY;
        if (cli_is_choice(a->name)) {
            printf("        ':argument:(");
            print_choices(a->name);
            puts(")' \\");
        } else {
            printf("        '%s:%s:{compadd --", is_many ? "*" : "", a->name);
            print_known(c, a->name);
            print_second_words(c);
            puts("; _files}' \\");
        }
    }
}

static void zsh_command(const cli_command *c)
{
    printf("    '%s')\n        _arguments \\\n", c->name);
    for (const cli_option *o = c->options; o && o->name; o++)
        zsh_option(c, o);
    for (const cli_option *o = cli_common_of(c); o->name; o++)
        zsh_option(c, o);
    if (c == &cli_cmd_help) {
        printf("        ':command:(");
        for_all(print_space_name);
        puts(")' ;;");
        return;
    }
    zsh_arguments(c);
    puts("        && return ;;");
}

static int tables_zsh(void)
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

static void fish_option(const cli_command *c,
                        const char *program,
                        const char *command,
                        const cli_option *o)
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
        printf(" -r -a '");
        print_known(c, o->name);
        putchar('\'');
    }
    printf(" -d '");
    print_quoted(o->help, "\\'", "\\");
    puts("'");
}

/* word: the last word of the command, which identifies it. */
static void fish_arguments(const cli_command *c, const char *word)
{
    for (const cli_argument *a = c->arguments; a && a->name; a++) {
        printf("complete -c orrery -n '__fish_seen_subcommand_from %s' -a '", word);
        if (cli_is_choice(a->name))
            print_choices(a->name);
        print_known(c, a->name);
        puts("'");
    }
}

/* The second word of a command, followed by its options. */
static void fish_deeper(const cli_command *c)
{
    for (const cli_command *const *d = c->deeper; d && *d; d++) {
        const char *word = (*d)->name + strlen(c->name) + 1;
        printf("complete -c orrery -n '__fish_seen_subcommand_from %s' -a %s -d '", c->name, word);
        print_quoted((*d)->summary, "\\'", "\\");
        puts("'");
        for (const cli_option *o = (*d)->options; o && o->name; o++)
            fish_option(*d, "orrery", word, o);
        fish_arguments(*d, word);
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
        fish_arguments(c, c->name);
        fish_deeper(c);
    }
    for (const cli_option *o = c->options; o && o->name; o++)
        fish_option(c, program, command, o);
}

static int tables_fish(void)
{
    puts("# orrery: completion for fish; made from the command tables.");
    for (const cli_option *o = cli_program.options; o->name; o++)
        fish_option(&cli_program, "orrery", NULL, o);
    for (const cli_option *o = cli_common; o->name; o++)
        fish_option(&cli_program, "orrery", NULL, o);
    for_all(fish_command);
    printf("complete -c orrery -n '__fish_seen_subcommand_from help' -f -a '");
    for_all(print_space_name);
    puts("'");
    return 0;
}

/* Man pages: a hand-written template in which a line with one @WORD@ is replaced by text from the
 * tables.
 *
 * The page is in mdoc(7).  Words, each alone on its line:
 *     @NAME@       title, NAME and SYNOPSIS of the command; DESCRIPTION begins with the table's text
 *     @OPTIONS@    the list of arguments and options
 *     @EXAMPLES@   EXIT STATUS, EXAMPLES and SEE ALSO
 *     @COMMANDS@   the list of all commands          @COMMON@   the options every command has
 *     @OLD_NAMES@  one subsection per old program name
 * Everything else is copied. */

/* Text between macros: a backslash is special everywhere, a dot or a quote at the start of a
 * line. */
static void print_text(const char *text)
{
    bool is_line_start = true;
    for (; *text; text++) {
        if (is_line_start && (*text == '.' || *text == '\''))
            fputs("\\&", stdout);
        if (*text == '\\')
            fputs("\\e", stdout);
        else
            putchar(*text);
        is_line_start = *text == '\n';
    }
}

/* In mdoc each sentence is on its own line. */
static void print_paragraphs(const char *text)
{
    char line[4096];
    size_t n = 0;
    for (; *text && n + 8 < sizeof line; text++) {
        const bool is_sentence_end = strchr(".:?", *text) && text[1] == ' ';
        line[n++] = *text;
        if (!is_sentence_end)
            continue;
        line[n++] = '\n';
        text += strspn(text + 1, " ");
    }
    line[n] = '\0';
    for (char *at = line, *end; at; at = end) {
        end = strstr(at, "\n\n");
        if (end)
            *end = '\0';
        print_text(at);
        fputs(end ? "\n.Pp\n" : "\n", stdout);
        end = end ? end + 2 : NULL;
    }
}

static void print_option(const cli_option *o)
{
    printf(".It ");
    if (o->letter)
        printf("Fl %c , ", o->letter);
    printf("Fl -%s", o->name);
    if (o->arg && cli_is_choice(o->arg))
        printf(" Cm %s", o->arg);
    else if (o->implied)
        printf(" Ns Oo = Ns Ar %s Oc", o->arg);
    else if (o->arg)
        printf(" Ar %s", o->arg);
    putchar('\n');
    print_text(o->help);
    if (o->kind == CLI_COUNT && o->max)
        printf(", %llu to %llu", (unsigned long long)o->min, (unsigned long long)o->max);
    const char *otherwise = o->fallback ? o->fallback : o->implied;
    if (otherwise && *otherwise)
        printf(" (default %s)", otherwise);
    if (o->required)
        printf(" (required)");
    putchar('\n');
}

static void print_options(const cli_option *o)
{
    for (; o && o->name; o++)
        print_option(o);
}

static void print_argument(const cli_argument *a)
{
    printf(".It Ar %s%s\n", a->name, a->times == CLI_SOME || a->times == CLI_ANY ? " ..." : "");
    print_text(a->help);
    putchar('\n');
}

static void print_option_list(const cli_command *command)
{
    puts(".Bl -tag -width Ds");
    for (const cli_argument *a = command->arguments; a && a->name; a++)
        print_argument(a);
    print_options(command->options);
    if (!command->now)
        print_options(cli_common);
    puts(".El");
}

static void print_synopsis(const cli_command *command)
{
    const bool is_old = command->now != NULL;
    printf(".Nm %s%s\n", is_old ? "" : "orrery ", command->name);
    for (const cli_option *o = command->options; o && o->name; o++) {
        if (o->required)
            printf(".Fl -%s Ar %s\n", o->name, o->arg);
    }
    puts(".Op Ar OPTION ...");
    for (const cli_argument *a = command->arguments; a && a->name; a++) {
        const bool is_optional = a->times == CLI_MAYBE || a->times == CLI_ANY;
        const bool is_many = a->times == CLI_SOME || a->times == CLI_ANY;
        printf(".%sAr %s%s\n", is_optional ? "Op " : "", a->name, is_many ? " ..." : "");
    }
}

/* The page of "gen goal" is orrery-gen-goal. */
static void print_page_name(const cli_command *command, int (*as)(int))
{
    for (const char *s = command->name; *s; s++)
        putchar(*s == ' ' ? '-' : as((unsigned char)*s));
}

static int as_is(int c)
{
    return c;
}

static void print_head(const cli_command *command)
{
    fputs(".Dt ORRERY-", stdout);
    print_page_name(command, toupper);
    fputs(" 1\n.Os Orrery\n.Sh NAME\n.Nm orrery-", stdout);
    print_page_name(command, as_is);
    printf("\n.Nd %s\n", command->summary);
    puts(".Sh SYNOPSIS");
    print_synopsis(command);
    puts(".Sh DESCRIPTION");
    if (command->description)
        print_paragraphs(command->description);
}

static void print_examples(const cli_command *command)
{
    puts(".Sh EXIT STATUS");
    puts("0 on success, 1 when the answer is no, 2 for a wrong command line, 3 for bad input,");
    puts("4 for a system error, 130 when interrupted; see");
    puts(".Xr orrery 1 .");
    puts(".Sh EXAMPLES");
    for (const cli_example *e = command->examples; e && e->line; e++) {
        const bool goes_on = e[1].line && !*e[1].what; /* the next example continues this one */
        if (*e->what) {
            print_text(e->what);
            putchar('\n');
        }
        if (e->status)
            printf(".\\\" exit %d\n", e->status);
        fputs(*e->what ? ".Pp\n.Dl $ " : ".Dl $ ", stdout);
        print_text(e->line);
        fputs(e[1].line && !goes_on ? "\n.Pp\n" : "\n", stdout);
    }
    if (!command->see_also)
        return;
    puts(".Sh SEE ALSO");
    for (const char *at = command->see_also; *at;) {
        const size_t name = strcspn(at, "("), end = strcspn(at, ",");
        printf(".Xr %.*s %c%s\n", (int)name, at, at[name + 1], at[end] ? " ," : "");
        at += end + strspn(at + end, ", ");
    }
}

static void print_commands(void)
{
    puts(".Bl -tag -width Ds");
    for (const cli_command *const *c = cli_commands; *c; c++) {
        printf(".It Xr orrery-%s 1\n", (*c)->name);
        print_text((*c)->summary);
        putchar('\n');
    }
    puts(".El");
}

static void print_old_names(void)
{
    const cli_command *c;
    for (size_t i = 0; (c = cli_old_name_at(i)) != NULL; i++) {
        printf(".Ss %s\n", c->name);
        print_synopsis(c);
        printf(".Pp\n%s.\nToday:\n.Ic %s .\n", c->summary, c->now);
        print_option_list(c);
    }
}

static bool print_word(const char *word, const cli_command *command)
{
    if (strcmp(word, "@COMMANDS@\n") == 0)
        print_commands();
    else if (strcmp(word, "@COMMON@\n") == 0)
        print_options(cli_common);
    else if (strcmp(word, "@OLD_NAMES@\n") == 0)
        print_old_names();
    else if (command && strcmp(word, "@NAME@\n") == 0)
        print_head(command);
    else if (command && strcmp(word, "@OPTIONS@\n") == 0)
        print_option_list(command);
    else if (command && strcmp(word, "@EXAMPLES@\n") == 0)
        print_examples(command);
    else
        return false;
    return true;
}

/* "gen" or "gen-goal"; NULL: the page belongs to no command. */
static const cli_command *find_page(const char *name)
{
    char first[64];
    const cli_command *command = cli_command_find(name);
    const size_t n = strcspn(name, "-");
    if (command || !name[n] || n >= sizeof first)
        return command;
    memcpy(first, name, n);
    first[n] = '\0';
    command = cli_command_find(first);
    return command ? cli_command_deeper(command, name + n + 1) : NULL;
}

/* A line of a template; docs/ becomes the installed folder. */
static void print_line(const char *line, const char *docs)
{
    for (const char *at; (at = strstr(line, "docs/")) != NULL; line = at + strlen("docs/"))
        printf("%.*s%s/", (int)(at - line), line, docs);
    fputs(line, stdout);
}

static int tables_man(const char *page, const char *template_path, const char *docs)
{
    const char *dash = strchr(page, '-');
    const cli_command *command = dash ? find_page(dash + 1) : NULL;
    char line[1024];
    FILE *in = fopen(template_path, "r");
    if (!in) {
        fprintf(stderr, "%s: cannot open\n", template_path);
        return 4;
    }
    while (fgets(line, sizeof line, in)) {
        if (line[0] != '@')
            print_line(line, docs);
        else if (!print_word(line, command)) {
            fprintf(stderr, "%s: no meaning for %s", template_path, line);
            fclose(in);
            return 3;
        }
    }
    fclose(in);
    return 0;
}

static int tables_old_man(const char *name)
{
    const char *left_out;
    const cli_command *command = cli_old_name_find(name, &left_out);
    if (!command)
        return 3;
    printf(".\\\" SPDX-License-Identifier: Apache-2.0\n.Dd November 15, 2026\n.Dt ");
    print_page_name(command, toupper);
    printf(" 1\n.Os Orrery\n.Sh NAME\n.Nm %s\n.Nd %s\n.Sh SYNOPSIS\n", command->name,
           command->summary);
    print_synopsis(command);
    puts(".Sh DESCRIPTION");
    if (command->description)
        print_paragraphs(command->description);
    printf("An old name, kept for scripts: a link to\n.Xr orrery 1 .\nToday:\n.Ic %s .\n",
           command->now);
    puts(".Pp\nThe options are:");
    print_option_list(command);
    puts(".Sh SEE ALSO\n.Xr orrery 1 ,\n.Xr orrery-old-names 7");
    return 0;
}

/* ---- the program ---- */

static int print_names(const cli_command *const *list)
{
    for (; *list; list++) {
        if ((*list)->run)
            puts((*list)->name);
    }
    return 0;
}

/* "COMMAND<tab>OPTION<tab>writes or reads<tab>what it is<tab>the arguments that cannot be left
 * out". */
static void print_files_of(const cli_command *c)
{
    for (const cli_option *o = c->options; o && o->name; o++) {
        const bool is_output = o->kind == CLI_OUTPUT || o->kind == CLI_FOLDER;
        if (!o->arg || !(is_output || strstr("FILE OUT DIR", o->arg)))
            continue;
        printf("%s\t--%s\t%s\t%s\t", c->name, o->name, is_output ? "writes" : "reads", o->help);
        for (const cli_argument *a = c->arguments; a && a->name; a++)
            if (a->times == CLI_ONCE || a->times == CLI_SOME)
                printf(" %.*s", (int)strcspn(a->name, "|"),
                       strchr(a->name, '|') ? a->name : "none");
        for (const cli_option *p = c->options; p->name; p++)
            if (p->required && p != o)
                printf(" --%s none", p->name);
        putchar('\n');
    }
}

static int print_files(const cli_command *const *list)
{
    for (; *list; list++) {
        if ((*list)->run)
            print_files_of(*list);
        if ((*list)->deeper)
            print_files((*list)->deeper);
    }
    return 0;
}

static int list_old_names(void)
{
    const cli_command *c;
    for (size_t i = 0; (c = cli_old_name_at(i)) != NULL; i++)
        puts(c->name);
    return 0;
}

static void list_options(const cli_command *c)
{
    for (const cli_option *o = c->options; o && o->name; o++)
        if (o->arg && !cli_is_choice(o->arg))
            printf("%s\t%s\t%s\t%s\t%s\n", c->name, o->name,
                   o->kind == CLI_COUNT ? "count" : "text", o->arg, o->with ? o->with : "");
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "commands") == 0)
        return print_names(cli_commands);
    if (strcmp(what, "old-names") == 0)
        return list_old_names();
    if (strcmp(what, "files") == 0)
        return print_files(cli_commands);
    if (strcmp(what, "man") == 0 && argc == 5)
        return tables_man(argv[2], argv[3], argv[4]);
    if (strcmp(what, "old-man") == 0 && argc == 3)
        return tables_old_man(argv[2]);
    if (strcmp(what, "bash") == 0)
        return tables_bash();
    if (strcmp(what, "zsh") == 0)
        return tables_zsh();
    if (strcmp(what, "fish") == 0)
        return tables_fish();
    if (strcmp(what, "options") == 0) {
        for_all_deep(list_options);
        return 0;
    }
    fprintf(
        stderr,
        "usage: orrery_tables commands|old-names|files|options|bash|zsh|fish|man NAME TEMPLATE DOCS|"
        "old-man NAME\n");
    return 2;
}
