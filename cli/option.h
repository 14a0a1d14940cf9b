/* SPDX-License-Identifier: Apache-2.0 */
/* option.h - a command is one constant table; the parser, --help, the man page and shell completion
 * read it.
 *
 *     static const cli_option options[] = {
 *         {"ranks", 'n', "N", "how many ranks", .kind = CLI_COUNT, .min = 1, .max = 65536, .fallback = "4"},
 *         {"order", 0, "id|time", "order of the nodes", .fallback = "id"},
 *         {"json", 0, NULL, "print one JSON object"},
 *         {0},
 *     };
 *     static const cli_argument arguments[] = {{"TRACE", "a .et file", CLI_SOME}, {0}};
 *
 *     const cli_command cli_cmd_show = {
 *         .name = "show",
 *         .summary = "summarize a trace",
 *         .options = options,
 *         .arguments = arguments,
 *         .run = show_run,
 *     };
 *
 * The table is enforced before run is called: values are within min..max and among the choices,
 * arguments are neither missing nor extra, so the getters below cannot fail.  cli/README.md has the
 * steps for adding a command. */
#ifndef ORR_CLI_OPTION_H
#define ORR_CLI_OPTION_H

#include <orrery/error.h>
#include <orrery/types.h>

#include <stdio.h>

typedef enum cli_kind {
    CLI_TEXT,   /* any text; or one of the words if arg is "one|two|three" */
    CLI_COUNT,  /* an integer, min to max */
    CLI_OUTPUT, /* a file to write, with arg "OUT" also a prefix: checked before the work */
    CLI_FOLDER, /* a folder to write into, likewise */
} cli_kind;

/* One option.  Tables end with a zero row. */
typedef struct cli_option {
    const char *name; /* without the dashes */
    char letter;      /* the short form, or 0 */
    const char *arg;  /* placeholder of the value; NULL: a flag */
    const char *help; /* lower case, no full stop */
    cli_kind kind;
    uint64_t min, max;    /* of a CLI_COUNT; max 0: no upper bound */
    const char *fallback; /* the value when not given; shown in the help */
    bool required;
    const char *implied; /* the value if given without one; any other value then needs "=" */
    uint32_t needs;      /* bits of the command; in cmd_run.c capabilities of engines */
    const char *with;    /* another option that it requires; NULL: none */
} cli_option;

typedef enum cli_times { CLI_ONCE, CLI_MAYBE, CLI_SOME, CLI_ANY } cli_times; /* 1, 0..1, 1.., 0.. */

/* One positional argument.  Only the last may be CLI_SOME or CLI_ANY. */
typedef struct cli_argument {
    const char *name; /* "TRACE", or the words to choose from: "json|dot" */
    const char *help;
    cli_times times;
} cli_argument;

/* Shown in the help and the man page, and run by the tests: all examples of a command, in order, in
 * one empty directory. */
typedef struct cli_example {
    const char *what; /* "Four ranks, one all-reduce each:" */
    const char *line; /* "orrery gen all_reduce --ranks 4" */
    int status;       /* its exit status */
} cli_example;

typedef struct cli_context cli_context;
struct orr_set;

typedef struct cli_command {
    const char *name;
    const char *summary;     /* one line: lower case, no full stop */
    const char *description; /* full sentences; blank lines separate paragraphs; may be NULL */
    const cli_option *options;
    const cli_argument *arguments;
    const cli_example *examples;
    const char *see_also; /* "orrery-info(1), orrery-check(1)" */
    const struct cli_command *const
        *deeper; /* two-word commands that begin with this one; ends with NULL */
    /* For an old program name: the equivalent command.  Its long options may be abbreviated. */
    const char *now;
    bool ignores_unknown; /* options it does not have are skipped, as the old program did */
    /* Words after the first argument are not parsed: they belong to another program. */
    bool keeps_rest;
    /* When the output may be the input: "": always; a word: if it is the first argument; NULL:
     * never. */
    const char *in_place;
    bool one_dash; /* long options may have a single dash, as in the old program */
    /* If the answer is no, call cli_answer_no and return ORR_OK.  NULL: not implemented, and
     * hidden. */
    orr_code (*run)(cli_context *c, orr_error *err);
} cli_command;

enum { CLI_OPTIONS_MAX = 64 };

struct cli_context {
    const cli_command *command;
    char **args; /* the positional arguments */
    int arg_count;
    bool quiet;
    bool wants_help;
    bool answer_is_no;
    bool has_reported; /* the error has been printed */
    const char *color; /* auto, always or never */
    /* In a sweep, which runs commands in sequence in one process (cmd_sweep.c): traces that this
     * command makes go here instead of to a file, ... */
    struct orr_set **made;
    const struct orr_set *given; /* ... the next takes them, and its argument is only a name */
    bool is_of_file;             /* ... the command line is from a file, not from the user */
    bool is_brief;               /* ... lists are reduced to their minimum and maximum */
    double limited_since; /* cli_limits: the first call, by a clock that never jumps; 0: none */
    const char *value[CLI_OPTIONS_MAX]; /* by row of the command's table; NULL: not given */
};

/* Options that every command has. */
extern const cli_option cli_common[];
const cli_option *cli_common_of(const cli_command *command); /* those that apply to this command */
extern const cli_command cli_program;                        /* "orrery" itself */

/* Parse argv (without the name of the program or command) by c->command's table.  argv is
 * reordered: arguments move to its front.  ORR_EUSAGE with a message on failure.  --help ends
 * parsing and sets wants_help. */
orr_code cli_parse(cli_context *c, int argc, char **argv, orr_error *err) ORR_MUST_CHECK;

/* Values.  Asking for a name that is not in the table is a bug. */
bool cli_flag(const cli_context *c, const char *name);
const char *cli_text(const cli_context *c,
                     const char *name); /* if not given: the fallback, or NULL */
/* The same for code shared by commands; NULL also if the command has no such option. */
const char *cli_text_if(const cli_context *c, const char *name);
uint64_t cli_count(const cli_context *c, const char *name); /* without any: 0 */
bool cli_given(const cli_context *c, const char *name);

/* All commands in the order a user meets them; ends with NULL. */
extern const cli_command *const cli_commands[];
const cli_command *cli_command_find(const char *name); /* NULL: unknown or not built yet */
/* The two-word command that c and this word form; NULL: none. */
const cli_command *cli_command_deeper(const cli_command *c, const char *word);

/* The i-th old program; NULL after the last. */
const cli_command *cli_old_name_at(size_t i);
/* Words that an argument may take, for completion; NULL past the last. */
const char *cli_view_at(size_t i);
const char *cli_kind_at(size_t i);
const char *cli_shape_at(size_t i);
/* By the last part of argv[0].  NULL: unknown, or *left_out is the folder of src/compat that this
 * build lacks. */
const cli_command *cli_old_name_find(const char *path, const char **left_out);
/* The table that replaces the command's with --compat; NULL: none. */
const cli_command *cli_compat_form(const cli_command *command);

const char *cli_command_nearest(const char *name); /* for "did you mean"; NULL: nothing is near */
const char *cli_program_name(
    const cli_command *command); /* "orrery " for a command, "" for a program */

/* The nearer of two candidates: keep `best` over a loop, starting with NULL.  It stays NULL if none
 * is near. */
const char *cli_nearer(const char *typed, const char *best, const char *candidate);

/* "one|two|three": the word at index i with its length in *len; NULL past the last. */
const char *cli_choice(const char *choices, int i, size_t *len);
bool cli_is_choice(const char *arg);

/* An invalid option or argument: ORR_EUSAGE, without a location. */
#define cli_misuse(err, ...) orr_fail(err, ORR_EUSAGE, NULL, __VA_ARGS__)

/* Messages. */
void cli_note(const cli_context *c, const char *fmt, ...)
    ORR_PRINTF(2, 3);               /* stderr, unless --quiet */
void cli_answer_no(cli_context *c); /* exit status 1 */
/* Print an error now, as main.c would, because more output follows; returning it later prints
 * nothing more. */
void cli_report(cli_context *c, const orr_error *err);
bool cli_is_colored(const cli_context *c, FILE *to);

void cli_help_overview(FILE *to);
void cli_help_command(FILE *to, const cli_command *command);

#endif
