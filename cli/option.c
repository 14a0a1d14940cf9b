/* SPDX-License-Identifier: Apache-2.0 */
/* option.c - parses a command line according to the command's table.
 *
 * Understood: --name value, --name=value, -n value, -nvalue, -qn value; for some old names
 * -name=value; "--" ends the options, "-" is an argument (stdin or stdout).  Options and arguments
 * may be mixed.  A value given twice: the last one counts.  Invariant: arguments found so far are
 * argv[0..arg_count), always at or before the current position, so moving them to the front needs
 * no memory.  A value that is itself the name of an option is refused, because "--output --json"
 * most likely lacks a value; "--output=--json" is possible. */
#include "command.h"

#include <orrery/lab/folders.h>

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* "did you mean": the candidate with the fewest typing mistakes between it and what was typed.
 *
 * A mistake is an insertion, a deletion, a substitution or a swap of neighbours (the restricted
 * Damerau-Levenshtein distance).  A candidate is near if at most a third of its letters are wrong,
 * or if the typed word is its prefix.  Ties: the first candidate. */

enum { NAME_MAX_LEN = 48, FAR_AWAY = 1000 };

static int min_of(int a, int b)
{
    return a < b ? a : b;
}

static int distance(const char *a, const char *b)
{
    /* Three rows of the usual table: two back (for swaps), one back, the current one. */
    int rows[3][NAME_MAX_LEN + 1];
    const size_t la = strlen(a), lb = strlen(b);
    if (la > NAME_MAX_LEN || lb > NAME_MAX_LEN)
        return FAR_AWAY;
    for (size_t j = 0; j <= lb; j++)
        rows[0][j] = (int)j;
    for (size_t i = 1; i <= la; i++) {
        int *now = rows[i % 3];
        const int *up = rows[(i - 1) % 3], *up2 = rows[(i + 1) % 3];
        now[0] = (int)i;
        for (size_t j = 1; j <= lb; j++) {
            now[j] = min_of(up[j - 1] + (a[i - 1] != b[j - 1]), 1 + min_of(up[j], now[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = min_of(now[j], up2[j - 2] + 1);
        }
    }
    return rows[la % 3][lb];
}

static int badness(const char *typed, const char *candidate)
{
    const size_t len = strlen(candidate);
    const int limit = len < 3 ? 0 : (int)((len + 2) / 3);
    const int d = distance(typed, candidate);
    if (d <= limit)
        return d;
    return typed[0] && typed[1] && strncmp(candidate, typed, strlen(typed)) == 0 ? limit + 1
                                                                                 : FAR_AWAY;
}

const char *cli_nearer(const char *typed, const char *best, const char *candidate)
{
    const int old = best ? badness(typed, best) : FAR_AWAY;
    return badness(typed, candidate) < old ? candidate : best;
}

/* ---- reading ---- */

const cli_option cli_common[] = {
    {"allow-folder", 0, "DIR", "inputs may name files in DIR; may be repeated"},
    {"quiet", 'q', NULL, "suppress progress and notes"},
    {"color", 0, "auto|always|never", "colour on a terminal", .fallback = "auto"},
    {"help", 'h', NULL, "show this help"},
    {0},
};

/* The old programs open any file that their inputs name; the first row does not apply to them. */
const cli_option *cli_common_of(const cli_command *command)
{
    return command->now ? cli_common + 1 : cli_common;
}

/* State of the parser. */
typedef struct reader {
    cli_context *c;
    int argc, at;
    char **argv;
    const char *implied;               /* the option before this word, if it has no value */
    const char *parted, *parted_value; /* such an option, and the argument after it */
    orr_error *err;
} reader;

const char *cli_choice(const char *choices, int i, size_t *len)
{
    while (choices && i-- > 0) {
        choices = strchr(choices, '|');
        choices = choices ? choices + 1 : NULL;
    }
    if (choices)
        *len = strcspn(choices, "|");
    return choices;
}

bool cli_is_choice(const char *arg)
{
    return arg && strchr(arg, '|');
}

static bool is_among(const char *choices, const char *value)
{
    size_t len;
    const char *word;
    for (int i = 0; (word = cli_choice(choices, i, &len)); i++) {
        if (strlen(value) == len && memcmp(value, word, len) == 0)
            return true;
    }
    return false;
}

static orr_code check_choice(const char *what,
                             const char *choices,
                             const char *value,
                             orr_error *err)
{
    if (!cli_is_choice(choices) || is_among(choices, value))
        return ORR_OK;
    return cli_misuse(err, "%s '%s' is not one of %s", what, value, choices);
}

/* Decimal digits only: no sign, no blanks, no octal, no silent overflow. */
static bool read_count(const char *text, uint64_t *out)
{
    uint64_t v = 0;
    if (!*text)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return false;
        if (__builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (unsigned)(*text - '0'), &v))
            return false;
    }
    *out = v;
    return true;
}

static orr_code check_count(const cli_option *o, const char *value, orr_error *err)
{
    const uint64_t max = o->max ? o->max : UINT64_MAX;
    uint64_t v;
    if (read_count(value, &v) && v >= o->min && v <= max)
        return ORR_OK;
    if (o->max)
        return cli_misuse(err, "--%s '%s' is not a whole number from %" PRIu64 " to %" PRIu64,
                          o->name, value, o->min, max);
    return cli_misuse(err, "--%s '%s' is not a whole number of at least %" PRIu64, o->name, value,
                      o->min);
}

static const cli_option *find_exact(const cli_option *table, const char *name, size_t len)
{
    for (const cli_option *o = table; o && o->name; o++) {
        if (strlen(o->name) == len && memcmp(o->name, name, len) == 0)
            return o;
    }
    return NULL;
}

/* Underscores and dashes are equivalent, as some old programs use underscores. */
static bool is_spelled(const char *a, const char *b, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const char x = a[i] == '_' ? '-' : a[i], y = b[i] == '_' ? '-' : b[i];
        if (x != y || !x)
            return false;
    }
    return true;
}

static const cli_option *find_spelled(const cli_option *table, const char *name, size_t len)
{
    for (const cli_option *o = table; o && o->name; o++) {
        if (strlen(o->name) == len && is_spelled(o->name, name, len))
            return o;
    }
    return NULL;
}

static const cli_option *find_letter(const cli_context *c, char letter)
{
    for (const cli_option *o = c->command->options; o && o->name; o++) {
        if (o->letter == letter)
            return o;
    }
    for (const cli_option *o = cli_common; o->name; o++) {
        if (o->letter == letter)
            return o;
    }
    return NULL;
}

/* Old programs accept unique prefixes of long options. */
static const cli_option *find_unique_start(const cli_option *table,
                                           const char *name,
                                           size_t len,
                                           bool is_strict)
{
    const cli_option *found = NULL;
    for (const cli_option *o = table; o && o->name; o++) {
        if (!is_spelled(o->name, name, len) || (is_strict && strncmp(o->name, name, len) != 0))
            continue;
        if (found)
            return NULL;
        found = o;
    }
    return found;
}

static const cli_option *find_name(const cli_context *c, const char *name, size_t len)
{
    const cli_option *o = find_exact(c->command->options, name, len);
    if (!o)
        o = find_exact(cli_common_of(c->command), name, len);
    if (!o)
        o = find_spelled(c->command->options, name, len);
    if (!o && c->command->now && len > 0)
        o = find_unique_start(c->command->options, name, len, true);
    if (!o && c->command->now && len > 0)
        o = find_unique_start(c->command->options, name, len, false);
    return o;
}

static orr_code unknown_name(const cli_context *c, const char *name, size_t len, orr_error *err)
{
    char typed[64];
    const char *near = NULL;
    if (len < sizeof typed) {
        memcpy(typed, name, len);
        typed[len] = '\0';
        for (const cli_option *o = c->command->options; o && o->name; o++)
            near = cli_nearer(typed, near, o->name);
        for (const cli_option *o = cli_common_of(c->command); o->name; o++)
            near = cli_nearer(typed, near, o->name);
    }
    if (near)
        return cli_misuse(err, "unknown option --%.*s; did you mean --%s?", (int)len, name, near);
    return cli_misuse(err, "unknown option --%.*s", (int)len, name);
}

static bool is_common(const cli_option *o)
{
    return o >= cli_common && o < cli_common + sizeof cli_common / sizeof *cli_common;
}

static orr_code allow_folder(const cli_context *c, const char *folder, orr_error *err)
{
    return c->is_of_file ? cli_misuse(err, "--allow-folder is for the command line, not for a file")
                         : orr_folder_allow(folder, err);
}

static orr_code store_common(cli_context *c, const cli_option *o, const char *value, orr_error *err)
{
    if (o == cli_common)
        return allow_folder(c, value, err);
    if (o->letter == 'q')
        c->quiet = true;
    else if (o->letter == 'h')
        c->wants_help = true;
    else
        c->color = value;
    return ORR_OK;
}

/* An empty value is never a file, number, name or list; it may be a text or an optional value
 * (--flows).  Old programs keep their behaviour. */
static bool may_be_empty(const cli_command *c, const cli_option *o)
{
    return c->now || !o->arg || o->implied || strcmp(o->arg, "TEXT") == 0 ||
           strcmp(o->arg, "WORDS") == 0 || strcmp(o->arg, "EXPR") == 0;
}

static orr_code store(reader *r, const cli_option *o, const char *value)
{
    orr_code code = ORR_OK;
    if (o->kind == CLI_COUNT)
        code = check_count(o, value, r->err);
    else if (value && !*value && !may_be_empty(r->c->command, o))
        code = orr_fail(r->err, ORR_EUSAGE, NULL, "--%s requires a value: %s", o->name, o->arg);
    else if (o->arg) {
        char what[72];
        snprintf(what, sizeof what, "--%s", o->name);
        code = check_choice(what, o->arg, value, r->err);
    }
    if (code)
        return code;
    if (is_common(o))
        code = store_common(r->c, o, value, r->err);
    else
        r->c->value[o - r->c->command->options] = value;
    return code;
}

/* The value of an option, from the next word. */
static orr_code next_value(reader *r, const cli_option *o, const char **out)
{
    const char *word = r->at < r->argc ? r->argv[r->at] : NULL;
    if (!word)
        return cli_misuse(r->err, "--%s requires a value: %s", o->name, o->arg);
    if (strncmp(word, "--", 2) == 0 && find_name(r->c, word + 2, strcspn(word + 2, "=")))
        return cli_misuse(r->err, "--%s requires a value, %s, but is followed by the option %s",
                          o->name, o->arg, word);
    r->at++;
    *out = word;
    return ORR_OK;
}

static orr_code read_long(reader *r, const char *word)
{
    const size_t len = strcspn(word, "=");
    const cli_option *o = find_name(r->c, word, len);
    const char *value = word[len] ? word + len + 1 : NULL;
    if (!o && r->c->command->ignores_unknown) {
        if (!value && r->at < r->argc && r->argv[r->at][0] != '-')
            r->at++; /* probably its value */
        return ORR_OK;
    }
    if (!o)
        return unknown_name(r->c, word, len, r->err);
    if (!o->arg && value)
        return cli_misuse(r->err, "--%s takes no value, '%s' given", o->name, value);
    if (!o->arg)
        return store(r, o, "");
    if (!value && o->implied) {
        r->implied = o->name;
        return store(r, o, o->implied);
    }
    const orr_code code = value ? ORR_OK : next_value(r, o, &value);
    return code ? code : store(r, o, value);
}

static orr_code read_letters(reader *r, const char *word)
{
    for (; *word; word++) {
        const cli_option *o = find_letter(r->c, *word);
        const char *value = word[1] ? word + 1 : NULL;
        orr_code code = ORR_OK;
        if (!o)
            return cli_misuse(r->err, "unknown option -%c", *word);
        if (o->arg) {
            if (!value && o->implied)
                value = o->implied;
            else if (!value)
                code = next_value(r, o, &value);
            return code ? code : store(r, o, value);
        }
        if ((code = store(r, o, "")))
            return code;
    }
    return ORR_OK;
}

/* How many arguments the table takes: from *min to *max. */
static void argument_range(const cli_argument *a, int *min, int *max)
{
    *min = *max = 0;
    for (; a && a->name; a++) {
        *min += a->times == CLI_ONCE || a->times == CLI_SOME;
        *max = a->times == CLI_SOME || a->times == CLI_ANY ? INT32_MAX : *max + 1;
    }
}

/* The length of P in P.N.et; 0: not the file of one rank. */
static size_t rank_prefix(const char *path)
{
    size_t n = strlen(path);
    if (n < 4 || strcmp(path + n - 3, ".et") != 0)
        return 0;
    const size_t end = n -= 3;
    while (n && path[n - 1] >= '0' && path[n - 1] <= '9')
        n--;
    return n > 1 && n < end && path[n - 1] == '.' ? n - 1 : 0;
}

/* The error for an extra argument, with what was probably meant. */
static orr_code fail_extra(const reader *r, int max, orr_error *err)
{
    const cli_context *c = r->c;
    const char *extra = c->args[max];
    const size_t prefix = rank_prefix(extra);
    if (r->parted)
        return cli_misuse(err, "extra argument '%s'; the value of --%s needs a '=': --%s=%s", extra,
                          r->parted, r->parted, r->parted_value);
    if (prefix && max > 0 && rank_prefix(c->args[0]) == prefix &&
        strncmp(c->args[0], extra, prefix) == 0)
        return cli_misuse(err,
                          "extra argument '%s'; the files of all ranks are one argument, '%.*s'",
                          extra, (int)prefix, extra);
    return cli_misuse(err, "extra argument '%s'", extra);
}

static orr_code check_arguments(const reader *r, orr_error *err)
{
    const cli_context *c = r->c;
    const cli_argument *a = c->command->arguments;
    int min, max;
    argument_range(a, &min, &max);
    if (c->arg_count > max)
        return fail_extra(r, max, err);
    for (int i = 0; a && a->name; i++, a++) {
        if (i >= c->arg_count && i < min)
            return cli_misuse(err, "missing argument: %s", a->name);
        if (i >= c->arg_count)
            break;
        const orr_code code = check_choice("argument", a->name, c->args[i], err);
        if (code)
            return code;
    }
    return ORR_OK;
}

static orr_code check_required(const cli_context *c, orr_error *err)
{
    for (const cli_option *o = c->command->options; o && o->name; o++) {
        if (o->required && !c->value[o - c->command->options])
            return cli_misuse(err, "missing option: --%s %s", o->name, o->arg);
    }
    return ORR_OK;
}

/* ---- outputs ---- */

/* Identifies a file, existing or not, by its folder and the last part of its path. */
static bool find_place(const char *path, struct stat *st, const char **name)
{
    const char *slash = strrchr(path, '/');
    char folder[4096] = ".";
    *name = NULL;
    if (stat(path, st) == 0)
        return S_ISREG(st->st_mode);
    if (slash)
        snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    *name = slash ? slash + 1 : path;
    return stat(folder, st) == 0 && S_ISDIR(st->st_mode);
}

static bool is_same_place(const char *a, const char *b)
{
    struct stat x, y;
    const char *name_a, *name_b;
    if (!find_place(a, &x, &name_a) || !find_place(b, &y, &name_b))
        return false;
    return x.st_dev == y.st_dev && x.st_ino == y.st_ino && !name_a == !name_b &&
           (!name_a || strcmp(name_a, name_b) == 0);
}

/* P.0.et for the prefix P. */
static bool is_rank_of(const char *path, const char *prefix)
{
    const size_t n = strlen(prefix);
    const char *at = path + n;
    if (!n || strncmp(path, prefix, n) != 0 || *at++ != '.' || *at < '0' || *at > '9')
        return false;
    return strcmp(at + strspn(at, "0123456789"), ".et") == 0;
}

/* Does one of the comma-separated words name the file? */
static bool names_file(const char *words, const char *path)
{
    char word[4096];
    if (is_same_place(words, path) || is_rank_of(path, words))
        return true;
    for (const char *at = words; *at;) {
        const size_t n = strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", n < sizeof word ? (int)n : 0, at);
        if (n && (is_same_place(word, path) || is_rank_of(path, word)))
            return true;
        at += n + (at[n] == ',');
    }
    return false;
}

static const char *value_of(const cli_context *c, const cli_option *o)
{
    const char *given = c->value[o - c->command->options];
    return given ? given : o->fallback;
}

/* Is the value of the option a file, judging by its placeholder? */
static bool takes_files(const cli_option *o)
{
    return o->arg && o->kind != CLI_COUNT &&
           (strstr(o->arg, "FILE") || strcmp(o->arg, "OUT") == 0 || strcmp(o->arg, "DB") == 0 ||
            strcmp(o->arg, "PLACEMENT") == 0 || strcmp(o->arg, "MACHINE") == 0);
}

static bool may_be_in_place(const cli_context *c)
{
    const char *with = c->command->in_place;
    return c->command->now || /* as the old program did */
           (with && (!*with || (c->arg_count && strcmp(c->args[0], with) == 0)));
}

/* Refuse outputs that would overwrite an input or another output. */
static orr_code check_same(const cli_context *c, const cli_option *out, orr_error *err)
{
    const char *path = value_of(c, out);
    const cli_argument *a = c->command->arguments;
    const int count = c->command->keeps_rest && c->arg_count ? 1 : c->arg_count;
    for (const cli_option *o = c->command->options; o->name; o++) {
        const char *other = c->value[o - c->command->options];
        const bool is_later_output = o->kind == CLI_OUTPUT && o >= out;
        if (other && takes_files(o) && !is_later_output && names_file(other, path))
            return cli_misuse(err, "--%s %s: same file as --%s", out->name, path, o->name);
    }
    for (int i = 0; i < count && !c->given; i++) {
        struct stat st;
        /* If no such file exists, the argument is the name of a pattern or a model. */
        const bool is_name = stat(path, &st) && stat(c->args[i], &st);
        if (!is_name && names_file(c->args[i], path))
            return cli_misuse(err, "--%s %s: same file as %s", out->name, path,
                              a && a->name ? a->name : c->args[i]);
        if (a && a->name && a[1].name)
            a++;
    }
    return ORR_OK;
}

static orr_code check_outputs(const cli_context *c, orr_error *err)
{
    orr_code code = ORR_OK;
    for (const cli_option *o = c->command->options; o && o->name && !may_be_in_place(c); o++) {
        const char *path = value_of(c, o);
        if (o->kind == CLI_OUTPUT && path && strcmp(path, "-") != 0 &&
            (code = check_same(c, o, err)))
            return code;
    }
    for (const cli_option *o = c->command->options; o && o->name && !code; o++) {
        const char *path = value_of(c, o);
        if (!path || strcmp(path, "-") == 0)
            continue;
        if (o->kind == CLI_FOLDER)
            code = cli_check_folder(path, err);
        else if (o->kind == CLI_OUTPUT)
            code = strcmp(o->arg, "OUT") == 0 ? cli_check_prefix(path, err)
                                              : cli_check_place(path, err);
    }
    return code;
}

static orr_code read_word(reader *r, char *word)
{
    if (word[0] == '-' && word[1])
        r->implied = NULL;
    if (word[0] == '-' && word[1] == '-')
        return read_long(r, word + 2);
    if (word[0] == '-' && word[1] && r->c->command->one_dash &&
        find_exact(r->c->command->options, word + 1, strcspn(word + 1, "=")))
        return read_long(r, word + 1);
    if (word[0] == '-' && word[1])
        return read_letters(r, word + 1);
    if (r->implied) {
        r->parted = r->implied;
        r->parted_value = word;
    }
    r->implied = NULL;
    r->c->args[r->c->arg_count++] = word;
    return ORR_OK;
}

orr_code cli_parse(cli_context *c, int argc, char **argv, orr_error *err)
{
    reader r = {.c = c, .argc = argc, .argv = argv, .err = err};
    /* Options of the program precede the command's name; what follows belongs to the command. */
    const bool stops_early = c->command == &cli_program || c->command->keeps_rest;
    c->args = argv;
    c->arg_count = 0;
    while (r.at < argc && !c->wants_help) {
        char *word = argv[r.at++];
        if (strcmp(word, "--") == 0)
            break;
        const orr_code code = read_word(&r, word);
        if (code)
            return code;
        if (stops_early && c->arg_count)
            break;
    }
    if (c->wants_help)
        return ORR_OK;
    while (r.at < argc)
        c->args[c->arg_count++] = argv[r.at++];
    orr_code code = check_required(c, err);
    if (!code)
        code = check_arguments(&r, err);
    return code ? code : check_outputs(c, err);
}

/* The row of a name that the command's code uses; -1 would be a bug, which any test of the command
 * finds. */
static int row_of(const cli_context *c, const char *name)
{
    const cli_option *o = find_exact(c->command->options, name, strlen(name));
    assert(o);
    return o ? (int)(o - c->command->options) : -1;
}

const char *cli_text_if(const cli_context *c, const char *name)
{
    const cli_option *o = find_exact(c->command->options, name, strlen(name));
    return o ? cli_text(c, name) : NULL;
}

bool cli_given(const cli_context *c, const char *name)
{
    const int row = row_of(c, name);
    return row >= 0 && c->value[row];
}

bool cli_flag(const cli_context *c, const char *name)
{
    return cli_given(c, name);
}

const char *cli_text(const cli_context *c, const char *name)
{
    const int row = row_of(c, name);
    if (row < 0)
        return NULL;
    return c->value[row] ? c->value[row] : c->command->options[row].fallback;
}

uint64_t cli_count(const cli_context *c, const char *name)
{
    const char *text = cli_text(c, name);
    uint64_t v = 0;
    if (text)
        read_count(text, &v);
    return v;
}
