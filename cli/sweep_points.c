/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_points.c - the commands of a point, one after the other, in the process of a worker.
 *
 * A command is called as main.c calls it, with --json; what it prints goes to a file in memory that
 * stands in for standard output.  Traces that a command makes stay in memory: the next command takes
 * them, and so do later points whose first command says the same.  Files of traces are read once.
 * The latest few sets are kept, for the points of a sweep come in the order of its axes. */
#include "sweep_points.h"

#include "command.h"
#include "goal.h"

#include <orrery/set.h>
#include <orrery/version.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text/text.h"

enum { KEPT_SETS = 2, MOST_WORDS = 256, MOST_CHARS = 65536 };

/* Traces in memory, and what the command that made them printed. */
typedef struct kept_set {
    char *key;
    char *json;
    size_t json_len;
    orr_set *set;
} kept_set;

static struct {
    int out; /* the file in memory behind standard output; 0: not yet */
    kept_set kept[KEPT_SETS];
    size_t next;
} worker;

/* ---- names ---- */

static const cli_option *find_option(const cli_command *c, const char *name)
{
    for (const cli_option *o = c->options; o && o->name; o++) {
        const char *a = o->name, *b = name;
        while (*a && (*a == *b || (*a == '-' && *b == '_')))
            a++, b++;
        if (!*a && !*b)
            return o;
    }
    return NULL;
}

static bool is_word(const char *argument, const char *name)
{
    for (; *argument && *name; argument++, name++) {
        const char a = *argument >= 'A' && *argument <= 'Z' ? (char)(*argument + 32) : *argument;
        if (a != *name)
            return false;
    }
    return !*argument && !*name;
}

static orr_sweep_form find_name(void *context,
                                const char *command,
                                const char **name,
                                uint32_t *place)
{
    (void)context;
    const cli_command *c = cli_command_find(command);
    if (!c || !c->run || strcmp(command, "sweep") == 0)
        return ORR_SWEEP_NOTHING;
    if (!name)
        return ORR_SWEEP_OPTION;
    const cli_option *o = find_option(c, *name);
    if (o) {
        *name = o->name;
        return o->arg ? ORR_SWEEP_OPTION : ORR_SWEEP_FLAG;
    }
    *place = 0;
    for (const cli_argument *a = c->arguments; a && a->name; a++, ++*place)
        if (is_word(a->name, *name))
            return ORR_SWEEP_ARGUMENT;
    return ORR_SWEEP_NOTHING;
}

static const char *nearest_name(void *context, const char *command, const char *typed)
{
    (void)context;
    if (!command)
        return cli_command_nearest(typed);
    const char *near = NULL;
    const cli_command *c = cli_command_find(command);
    const cli_option *const table = c ? c->options : NULL;
    for (const cli_option *o = table; o && o->name; o++)
        near = cli_nearer(typed, near, o->name);
    /* Two letters are near to nothing; one letter too many is still worth a guess. */
    const size_t n = strlen(typed);
    for (const cli_option *o = table; o && o->name && !near; o++)
        if (n > 2 && strlen(o->name) + 1 == n && strncmp(o->name, typed, n - 1) == 0)
            near = o->name;
    return near;
}

/* ---- standard output in memory ---- */

static orr_code begin_capture(orr_error *err)
{
    if (worker.out)
        return ORR_OK;
    worker.out = memfd_create("orrery-point", MFD_CLOEXEC);
    if (worker.out <= 0 || dup2(worker.out, STDOUT_FILENO) < 0)
        return orr_fail(err, ORR_EIO, NULL, "cannot keep the output of a point: %s",
                        strerror(errno));
    return ORR_OK;
}

/* What was printed, from malloc; the file is empty again. */
static orr_code take_output(char **text, size_t *len, orr_error *err)
{
    fflush(stdout);
    const off_t size = lseek(STDOUT_FILENO, 0, SEEK_CUR);
    *len = size > 0 ? (size_t)size : 0;
    *text = malloc(*len + 1);
    if (!*text)
        return orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
    const ssize_t n = *len ? pread(STDOUT_FILENO, *text, *len, 0) : 0;
    *len = n > 0 ? (size_t)n : 0;
    (*text)[*len] = 0;
    if (ftruncate(STDOUT_FILENO, 0) != 0 || lseek(STDOUT_FILENO, 0, SEEK_SET) != 0)
        return orr_fail(err, ORR_EIO, NULL, "cannot keep the output of a point: %s",
                        strerror(errno));
    /* stderr is a file in memory as well: what was said of points that went well is not kept */
    if (lseek(STDERR_FILENO, 0, SEEK_CUR) > 0 && ftruncate(STDERR_FILENO, 0) == 0)
        lseek(STDERR_FILENO, 0, SEEK_SET);
    return ORR_OK;
}

/* ---- sets that are kept ---- */

static kept_set *find_kept(const char *key)
{
    for (size_t i = 0; i < KEPT_SETS; i++)
        if (worker.kept[i].key && strcmp(worker.kept[i].key, key) == 0)
            return &worker.kept[i];
    return NULL;
}

/* Takes set and json; NULL: out of memory, and they are gone. */
static kept_set *keep_set(const char *key, orr_set *set, char *json, size_t len)
{
    kept_set *k = &worker.kept[worker.next++ % KEPT_SETS];
    orr_set_close(k->set);
    free(k->key);
    free(k->json);
    *k = (kept_set){.key = strdup(key), .json = json, .json_len = len, .set = set};
    if (k->key)
        return k;
    orr_set_close(set);
    free(json);
    *k = (kept_set){0};
    return NULL;
}

/* ---- one command ---- */

typedef struct command_line {
    char text[MOST_CHARS];
    char *words[MOST_WORDS];
    int count;
    size_t used;
} command_line;

static orr_code add_word(command_line *l, const char *word, orr_error *err)
{
    const size_t n = strlen(word) + 1;
    if (l->count == MOST_WORDS || l->used + n > sizeof l->text)
        return orr_fail(err, ORR_EUSAGE, NULL, "the command line of a point is too long");
    l->words[l->count++] = memcpy(l->text + l->used, word, n);
    l->used += n;
    return ORR_OK;
}

static bool has_word(const orr_sweep_step *s, const char *option)
{
    const size_t n = strlen(option);
    for (size_t i = 0; i < s->word_count; i++) {
        const char *w = s->words[i];
        if (strncmp(w, "--", 2) == 0 && strncmp(w + 2, option, n) == 0 &&
            (w[n + 2] == 0 || w[n + 2] == '='))
            return true;
    }
    return false;
}

/* As --json prints it; on one core, since every core has a point of its own. */
static orr_code build_line(const orr_sweep_step *s,
                           const cli_command *c,
                           const char *traces,
                           command_line *l,
                           orr_error *err)
{
    orr_code code = traces ? add_word(l, traces, err) : ORR_OK;
    for (size_t i = 0; i < s->word_count && !code; i++)
        code = add_word(l, s->words[i], err);
    if (!code && find_option(c, "json") && !has_word(s, "json"))
        code = add_word(l, "--json", err);
    if (!code && find_option(c, "threads") && !has_word(s, "threads"))
        code = add_word(l, "--threads=1", err);
    return code;
}

static bool is_run(const cli_command *c)
{
    return strcmp(c->name, "run") == 0;
}

/* Files of traces that orrery run reads as they are. */
static bool reads_set(const cli_context *c)
{
    static const char *const others[] = {"job", "placement", "hosts", "compare", "flows"};
    if (!is_run(c->command) || c->arg_count != 1 || c->given)
        return false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (cli_given(c, others[i]))
            return false;
    const char *network = cli_text(c, "network");
    return !(network && strcmp(network, "loggops") == 0) && !cli_brings_goal(c->args[0]);
}

static orr_code share_file(cli_context *c, orr_error *err)
{
    kept_set *k = find_kept(c->args[0]);
    if (!k) {
        orr_set *set;
        const orr_code code = orr_set_open(c->args[0], NULL, &set, err);
        if (code)
            return code;
        if (!(k = keep_set(c->args[0], set, NULL, 0)))
            return orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
    }
    c->given = k->set;
    return ORR_OK;
}

static const cli_command *find_command(const orr_sweep_step *s)
{
    const cli_command *c = cli_command_find(s->command);
    const cli_command *deeper = c && s->word_count ? cli_command_deeper(c, s->words[0]) : NULL;
    return deeper ? deeper : c;
}

static orr_code run_step(const orr_sweep_step *step,
                         const orr_set *given,
                         const char *from,
                         orr_set **made,
                         orr_error *err)
{
    static command_line l;
    l.count = 0;
    l.used = 0;
    const cli_command *command = find_command(step);
    cli_context c = {.command = command,
                     .quiet = true,
                     .color = "never",
                     .made = made,
                     .is_brief = !step->all_rows};
    if (!command)
        return orr_fail(err, ORR_EUSAGE, NULL, "unknown command '%s'", step->command);
    orr_code code = build_line(step, command, given ? from : NULL, &l, err);
    const bool is_deeper = command != cli_command_find(step->command);
    if (!code)
        code = cli_parse(&c, l.count - is_deeper, l.words + is_deeper, err);
    if (!code && given)
        c.given = given;
    else if (!code && reads_set(&c))
        code = share_file(&c, err);
    return code ? code : command->run(&c, err);
}

/* ---- a point ---- */

static void write_key(const orr_sweep_step *s, char *key, size_t room)
{
    size_t used = (size_t)snprintf(key, room, "%s", s->command);
    for (size_t i = 0; i < s->word_count && used < room; i++)
        used += (size_t)snprintf(key + used, room - used, "\n%s", s->words[i]);
}

/* The command that makes traces, or what it made before. */
static orr_code make_traces(const orr_sweep_step *step, kept_set **out, orr_error *err)
{
    static char key[MOST_CHARS];
    write_key(step, key, sizeof key);
    if ((*out = find_kept(key)))
        return ORR_OK;
    orr_set *set = NULL;
    char *json;
    size_t len;
    orr_code code = run_step(step, NULL, NULL, &set, err);
    const orr_code taken = take_output(&json, &len, code ? NULL : err);
    if (code || taken) {
        orr_set_close(set);
        free(json);
        return code ? code : taken;
    }
    *out = keep_set(key, set, json, len);
    return *out ? ORR_OK : orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
}

static orr_code run_point(
    void *context, const orr_sweep_step *steps, size_t count, orr_sweep_out *out, orr_error *err)
{
    (void)context;
    const orr_set *given = NULL;
    orr_code code = begin_capture(err);
    for (size_t i = 0; i < count && !code; i++) {
        if (i + 1 < count) {
            kept_set *k;
            code = make_traces(&steps[i], &k, err);
            if (!code && !k->set)
                code = orr_fail(err, ORR_EUSAGE, NULL, "orrery %s makes no traces for orrery %s",
                                steps[i].command, steps[i + 1].command);
            if (!code)
                orr_sweep_put(out, i, k->json, k->json_len);
            given = code ? NULL : k->set;
            continue;
        }
        char *json;
        size_t len;
        code = run_step(&steps[i], given, steps[0].command, NULL, err);
        const orr_code taken = take_output(&json, &len, code ? NULL : err);
        code = code ? code : taken;
        if (!code)
            orr_sweep_put(out, i, json, len);
        free(json);
    }
    return code;
}

static void print_note(void *context, const char *line)
{
    (void)context;
    fprintf(stderr, "orrery sweep: %s\n", line);
}

/* ---- the program ---- */

/* A build counts as a version: results of another may differ. */
static const char *program_name(void)
{
    static char name[96];
    if (!*name) {
        char build[33] = "unknown";
        (void)!orr_sweep_file_hash("/proc/self/exe", build, NULL);
        snprintf(name, sizeof name, "orrery %s (build %.8s)", orr_version(), build);
    }
    return name;
}

const orr_sweep_hooks *cli_sweep_hooks(void)
{
    static orr_sweep_hooks hooks = {
        .find = find_name, .nearest = nearest_name, .run = run_point, .note = print_note};
    hooks.program = program_name();
    return &hooks;
}
