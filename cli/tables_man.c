/* SPDX-License-Identifier: Apache-2.0 */
/* tables_man.c - man pages: a hand-written template in which lines of one @WORD@ are filled from the tables.
 *
 * The page is in mdoc(7).  Words, each alone on its line:
 *     @NAME@       title, NAME and SYNOPSIS of the command; DESCRIPTION begins with the table's text
 *     @OPTIONS@    the list of arguments and options
 *     @EXAMPLES@   EXIT STATUS, EXAMPLES and SEE ALSO
 *     @COMMANDS@   the list of all commands          @COMMON@   the options every command has
 *     @OLD_NAMES@  one subsection per old program name
 * Everything else is copied. */
#include "tables.h"

#include <ctype.h>
#include <string.h>

/* Text between macros: a backslash is special everywhere, a dot or a quote at the start of a line. */
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

/* mdoc wants each sentence on a line of its own. */
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
    if (o->fallback || o->implied)
        printf(" (default %s)", o->fallback ? o->fallback : o->implied);
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

/* The page of "gen goal" is called orrery-gen-goal. */
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
    puts("4 when the system refuses, 130 when interrupted; see");
    puts(".Xr orrery 1 .");
    puts(".Sh EXAMPLES");
    for (const cli_example *e = command->examples; e && e->line; e++) {
        const bool goes_on = e[1].line && !*e[1].what; /* the next line belongs to this one */
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

/* "gen" or "gen-goal"; NULL: the page is of no command. */
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

int tables_man(const char *page, const char *template_path)
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
            fputs(line, stdout);
        else if (!print_word(line, command)) {
            fprintf(stderr, "%s: no meaning for %s", template_path, line);
            fclose(in);
            return 3;
        }
    }
    fclose(in);
    return 0;
}
