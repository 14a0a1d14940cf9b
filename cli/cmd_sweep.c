/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_sweep.c - orrery sweep: many runs of commands, and their results. */
#include <orrery/lab/folders.h>
#include <orrery/lab/sweep.h>
#include <orrery/set.h>
#include <orrery/version.h>

#include "base/text/text.h"
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The commands of a point, run in sequence by a worker process.
 *
 * A command is called as main.c calls it, with --json; standard output is redirected to a file in
 * memory.  Traces that a command makes stay in memory: the next command takes them, and so do later
 * points whose first command is the same.  Trace files are read once.  The latest few sets are
 * kept, since consecutive points of a sweep differ in few axes. */

enum { KEPT_SETS = 2, MOST_WORDS = 256, MOST_CHARS = 65536 };

/* Traces in memory, and the output of the command that made them. */
typedef struct kept_set {
    char *key;
    char *json;
    size_t json_len;
    orr_set *set;
} kept_set;

static struct {
    int out; /* the file in memory that replaces standard output; 0: none yet */
    kept_set kept[KEPT_SETS];
    size_t next;
    const char *spec; /* the specification file */
    const char *max_memory, *max_events;
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
    /* With up to two letters nothing counts as near; a longer word may have one letter too many. */
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

/* Take the output, in malloc'ed memory, and empty the file. */
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
    /* stderr is a file in memory too: messages of successful points are dropped */
    if (lseek(STDERR_FILENO, 0, SEEK_CUR) > 0 && ftruncate(STDERR_FILENO, 0) == 0)
        lseek(STDERR_FILENO, 0, SEEK_SET);
    return ORR_OK;
}

/* ---- cached sets ---- */

static kept_set *find_kept(const char *key)
{
    for (size_t i = 0; i < KEPT_SETS; i++)
        if (worker.kept[i].key && strcmp(worker.kept[i].key, key) == 0)
            return &worker.kept[i];
    return NULL;
}

/* Takes ownership of set and json.  NULL: out of memory, and both are freed. */
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
        return cli_misuse(err, "the command line of a point is too long");
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

/* Build the command line: with --json, and on one core, since points run in parallel. */
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

/* Does orrery run read the trace files unchanged? */
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

/* Files that a specification names, to be read or written, must lie in a folder that the user named
 * (orrery/lab/folders.h).  Any other word is not a path. */
static orr_code check_word(const char *word, bool is_path, orr_error *err)
{
    struct stat st;
    const orr_where at = orr_where_byte(worker.spec, ORR_NO_BYTE);
    return is_path || strchr(word, '/') || stat(word, &st) == 0
               ? orr_folder_check(word, worker.spec, &at, err)
               : ORR_OK;
}

/* Values may have several words: lists, KEY=FILE, keys and values of --packet-keys. */
static orr_code check_value(const char *value, bool is_path, orr_error *err)
{
    char part[MOST_CHARS];
    bool names_file = false;
    orr_code code = check_word(value, is_path, err);
    while (*value && !code) {
        const size_t n = strcspn(value, ",:= \t\n");
        memcpy(part, value, n);
        part[n] = 0;
        if (n)
            code = check_word(part, names_file, err);
        names_file = n > 5 && strcmp(part + n - 5, "_FILE") == 0;
        value += n + (value[n] != 0);
    }
    return code;
}

static orr_code check_paths(const cli_context *c, int from, orr_error *err)
{
    orr_code code = ORR_OK;
    for (int i = from; i < c->arg_count && !code; i++)
        code = check_value(c->args[i], false, err);
    const cli_option *o = c->command->options;
    for (size_t i = 0; o && o[i].name && !code; i++)
        if (o[i].arg && c->value[i] && o[i].kind != CLI_COUNT && !cli_is_choice(o[i].arg))
            code =
                check_value(c->value[i], o[i].kind == CLI_OUTPUT || o[i].kind == CLI_FOLDER, err);
    return code;
}

/* Limits on the user's command line override those of the specification. */
static void set_limit(cli_context *c, const char *name, const char *value)
{
    const cli_option *o = value ? find_option(c->command, name) : NULL;
    if (o)
        c->value[o - c->command->options] = value;
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
                     .is_of_file = true,
                     .is_brief = !step->all_rows};
    if (!command)
        return cli_misuse(err, "unknown command '%s'", step->command);
    if (command->keeps_rest)
        return cli_misuse(err, "orrery %s runs a program; a sweep file may not request it",
                          command->name);
    orr_code code = build_line(step, command, given ? from : NULL, &l, err);
    const bool is_deeper = command != cli_command_find(step->command);
    if (!code)
        code = cli_parse(&c, l.count - is_deeper, l.words + is_deeper, err);
    set_limit(&c, "max-memory", worker.max_memory);
    set_limit(&c, "max-events", worker.max_events);
    if (!code)
        code = check_paths(&c, given ? 1 : 0, err);
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

/* Run the command that makes the traces, or reuse its earlier result. */
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
                code = cli_misuse(err, "orrery %s makes no traces for orrery %s", steps[i].command,
                                  steps[i + 1].command);
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
    const cli_context always = {0}; /* never quiet: a point has failed */
    (void)context;
    cli_note(&always, "orrery sweep: %s\n", line); /* it may contain text of other processes */
}

/* ---- the program ---- */

/* Each build counts as a version, since results may differ. */
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

/* The commands of this program, for orr_sweep_open. */
static const orr_sweep_hooks *sweep_hooks(void)
{
    static orr_sweep_hooks hooks = {
        .find = find_name, .nearest = nearest_name, .run = run_point, .note = print_note};
    hooks.program = program_name();
    return &hooks;
}

/* The actions that an option applies to. */
enum {
    FOR_RUN = 1 << 0,
    FOR_SHOW = 1 << 1,
    FOR_BEST = 1 << 2,
    FOR_EXPORT = 1 << 3,
    FOR_STATUS = 1 << 4,
    FOR_MERGE = 1 << 5,
    FOR_PLOT = 1 << 6,
    FOR_REPORT = 1 << 7,
    FOR_TABLES = FOR_SHOW | FOR_BEST | FOR_EXPORT | FOR_PLOT | FOR_REPORT
};

static const cli_option options[] = {
    {"output", 'o', "FILE",
     "SPEC: the database, default SPEC's name with .db; else: the file to write",
     .needs = FOR_RUN | FOR_EXPORT | FOR_PLOT | FOR_REPORT, .kind = CLI_OUTPUT},
    {"jobs", 'j', "N", "worker processes; 0: one per core, under mpirun and srun one", CLI_COUNT, 0,
     4096, "0", .needs = FOR_RUN},
    {"cache", 0, "FILE", "database of results shared between sweeps: reused and extended",
     .needs = FOR_RUN, .kind = CLI_OUTPUT},
    {"shard", 0, "I/N", "compute the I-th of N parts, into SPEC.I-of-N.db; see sweep merge",
     .needs = FOR_RUN},
    {"timeout", 0, "SECONDS", "points that take longer fail", CLI_COUNT, 1, 1000000,
     .needs = FOR_RUN},
    {"max-time", 0, "TIME",
     "stop after this much wall-clock time (10s, 5min); the same command continues",
     .needs = FOR_RUN},
    {"max-memory", 0, "SIZE", "runs stop above this memory use (8GiB), and their points fail",
     .needs = FOR_RUN},
    {"max-events", 0, "N", "runs stop after this many events, and their points fail", CLI_COUNT, 1,
     UINT64_MAX, .needs = FOR_RUN},
    {"retry", 0, NULL, "recompute points that failed", .needs = FOR_RUN},
    {"recompute", 0, NULL, "recompute points that another build of this program computed",
     .needs = FOR_RUN},
    {"dry-run", 0, NULL, "list the points and their command lines, compute nothing",
     .needs = FOR_RUN},
    {"where", 0, "EXPR", "only points for which this is true, e.g. 'tp <= 8 and fits'",
     .needs = FOR_TABLES},
    {"sort", 0, "EXPR", "order by this column or expression; -NAME: largest first",
     .needs = FOR_TABLES},
    {"columns", 0, "LIST", "these columns, comma-separated, or all", .needs = FOR_TABLES},
    {"top", 0, "N", "the first N points; best: default 10", CLI_COUNT, 1, 100000000,
     .needs = FOR_TABLES},
    {"x", 0, "COLUMN", "plot: horizontal", .needs = FOR_PLOT},
    {"y", 0, "COLUMN", "plot: vertical", .needs = FOR_PLOT},
    {"group", 0, "COLUMN", "plot: a colour and a shape per value", .needs = FOR_PLOT},
    {"log", 0, "x|y|xy", "plot: logarithmic axes", .needs = FOR_PLOT},
    {"lines", 0, NULL, "plot: connect the points of a group", .needs = FOR_PLOT},
    {"failed", 0, NULL, "also show failed and pending points", .needs = FOR_SHOW | FOR_EXPORT},
    {"json", 0, NULL, "print one JSON object",
     .needs = FOR_RUN | FOR_SHOW | FOR_BEST | FOR_STATUS | FOR_MERGE},
    {0},
};

static const cli_argument arguments[] = {
    {"SPEC",
     "specification of the sweep (YAML), or: show, best, export, plot, report, status, merge",
     CLI_ONCE},
    {"DB", "databases; export: csv, json or columns first; merge: the new one first", CLI_ANY},
    {0},
};

static const cli_example examples[] = {
    {"Two degrees of tensor parallelism on two machines:",
     "printf 'command: stage, run\\ngoal: min throughput.step_ns\\n' > tp.yaml", 0},
    {"", "printf 'options: {model: llama-3-8b, layers: 2, batch: 16}\\n' >> tp.yaml", 0},
    {"", "printf 'axes: {tp: [1, 2], machine: [dgx-a100, dgx-h100]}\\n' >> tp.yaml", 0},
    {"What would be run?", "orrery sweep tp.yaml --dry-run", 0},
    {"Run it, on all cores; interrupted, the same command continues:", "orrery sweep tp.yaml", 0},
    {"The table, and the best three points:", "orrery sweep show tp.db", 0},
    {"", "orrery sweep best tp.db --top 3", 0},
    {"How far along is it?", "orrery sweep status tp.db", 0},
    {"For a spreadsheet:", "orrery sweep export csv tp.db -o tp.csv --where 'tp >= 2'", 0},
    {"For NumPy, one array per column:", "orrery sweep export columns tp.db -o tp.npz", 0},
    {"A picture:", "orrery sweep plot tp.db --x tp --y simulated_ns -o tp.svg", 0},
    {"A page with filters and plots:", "orrery sweep report tp.db -o tp.html", 0},
    {"In two parts, as the tasks of a Slurm array would, then together:",
     "orrery sweep tp.yaml --shard 1/2", 0},
    {"", "orrery sweep tp.yaml --shard 2/2", 0},
    {"", "orrery sweep merge all.db tp.1-of-2.db tp.2-of-2.db", 0},
    {0},
};

/* ---- options that depend on each other ---- */

static orr_code check_options(const cli_context *c,
                              uint32_t action,
                              const char *word,
                              orr_error *err)
{
    for (const cli_option *o = options; o->name; o++)
        if (cli_given(c, o->name) && !(o->needs & action))
            return cli_misuse(err, "--%s does not apply to orrery sweep %s", o->name, word);
    return ORR_OK;
}

/* ---- running ---- */

enum { PATH_ROOM = 4096 };

/* "grid.yaml" becomes "grid.db", of a shard "grid.1-of-4.db". */
static void name_database(const cli_context *c, const orr_sweep_options *o, char out[PATH_ROOM])
{
    const char *spec = c->args[0], *dot = strrchr(spec, '.'), *slash = strrchr(spec, '/');
    const int n = dot && (!slash || dot > slash + 1) ? (int)(dot - spec) : (int)strlen(spec);
    if (o->shards)
        snprintf(out, PATH_ROOM, "%.*s.%u-of-%u.db", n, spec, o->shard, o->shards);
    else
        snprintf(out, PATH_ROOM, "%.*s.db", n, spec);
}

static orr_code read_shard(const cli_context *c, orr_sweep_options *o, orr_error *err)
{
    const char *text = cli_text(c, "shard");
    char *end;
    if (!text)
        return ORR_OK;
    const unsigned long i = strtoul(text, &end, 10);
    const unsigned long n = end > text && *end == '/' ? strtoul(end + 1, &end, 10) : 0;
    if (text[0] == '-' || *end || i < 1 || n < 1 || i > n || n > 1000000)
        return cli_misuse(err, "--shard '%s': expected I/N with 1 <= I <= N", text);
    o->shard = (uint32_t)i;
    o->shards = (uint32_t)n;
    return ORR_OK;
}

static orr_code list_points(const cli_context *c, orr_sweep *s, orr_error *err)
{
    static char line[65536];
    cli_json j;
    const bool is_json = cli_flag(c, "json");
    orr_json_writer *w = is_json ? cli_json_open(&j, "orrery-sweep-points") : NULL;
    orr_code code = ORR_OK;
    if (w)
        orr_json_put_array(w, "points");
    for (size_t i = 0; i < orr_sweep_count(s) && !code; i++) {
        code = orr_sweep_line(s, i, line, sizeof line, err);
        if (!code && w) {
            orr_json_line(w, 2);
            orr_json_text(w, line);
        } else if (!code) {
            printf("%s\n", line);
        }
    }
    if (w) {
        orr_json_end_array(w);
        cli_json_close(&j);
    }
    return code;
}

static void print_summary(const cli_context *c, const orr_sweep_summary *s, const char *database)
{
    if (cli_flag(c, "json")) {
        cli_json j;
        orr_json_writer *w = cli_json_open(&j, "orrery-sweep-summary");
        orr_json_put_fields(w, ORR_T("database", database), ORR_U("points", s->points),
                            ORR_U("computed", s->computed), ORR_U("reused", s->reused),
                            ORR_U("failed", s->failed), ORR_U("not_computed", s->left),
                            ORR_U("workers", s->workers),
                            ORR_F("wall_s", "%.3f", (double)s->wall_ns / 1e9),
                            ORR_F("computing_s", "%.3f", (double)s->busy_ns / 1e9),
                            ORR_F("cpu_s", "%.3f", (double)s->cpu_ns / 1e9),
                            ORR_F("most_cpu_s", "%.3f", (double)s->most_cpu_ns / 1e9),
                            ORR_F("waited_s", "%.3f", (double)s->waited_ns / 1e9));
        cli_json_close(&j);
        return;
    }
    printf("%" PRIu64 " point%s: %" PRIu64 " computed, %" PRIu64 " reused, %" PRIu64 " failed\n",
           s->points, s->points == 1 ? "" : "s", s->computed, s->reused, s->failed);
    if (s->failed && s->failed < s->points)
        cli_note(c, "%s\n", s->failure);
    cli_note(c, "%s: %.3g s with %u worker%s\n", database, (double)s->wall_ns / 1e9, s->workers,
             s->workers == 1 ? "" : "s");
}

static orr_code run_sweep(cli_context *c, orr_error *err)
{
    char database[PATH_ROOM];
    orr_sweep *s;
    orr_sweep_summary sum = {0};
    orr_sweep_options o = {
        .size = sizeof o,
        .cache = cli_text(c, "cache"),
        .jobs = (uint32_t)cli_count(c, "jobs"),
        .timeout_s = (uint32_t)cli_count(c, "timeout"),
        .retries_failed = cli_flag(c, "retry"),
        .recomputes = cli_flag(c, "recompute"),
        .is_quiet = c->quiet,
    };
    if (c->arg_count > 1)
        return cli_misuse(err, "extra argument '%s'", c->args[1]);
    orr_run_config limits = {0};
    orr_code code = read_shard(c, &o, err);
    if (!code)
        code = cli_limits(c, &limits, err);
    o.max_seconds = limits.max_seconds;
    worker.max_memory = cli_text(c, "max-memory");
    worker.max_events = cli_text(c, "max-events");
    if (!code)
        code = orr_sweep_open(worker.spec = c->args[0], sweep_hooks(), &s, err);
    if (code)
        return code;
    name_database(c, &o, database);
    o.database = cli_given(c, "output") ? cli_text(c, "output") : database;
    if (cli_flag(c, "dry-run")) {
        code = list_points(c, s, err);
    } else {
        code = orr_sweep_run(s, &o, &sum, err);
        if (code == ORR_ESTOP)
            cli_report(c, err);
        if (!code && !sum.is_worker)
            print_summary(c, &sum, o.database);
        if (!code && sum.points && sum.failed == sum.points) {
            const bool is_limit =
                (worker.max_memory || worker.max_events) && strstr(sum.failure, ": the limit of ");
            code = orr_fail(err, is_limit ? ORR_ESTOP : ORR_EINPUT, NULL,
                            "all %" PRIu64 " points failed; %s", sum.points, sum.failure);
            if (is_limit)
                cli_report(c, err);
        }
    }
    orr_sweep_close(s);
    return code;
}

/* ---- results ---- */

typedef enum columns_wanted { ALL_COLUMNS, BRIEF_COLUMNS, VARYING_COLUMNS } columns_wanted;

static orr_code open_table(const cli_context *c,
                           const char *database,
                           bool is_best,
                           columns_wanted columns,
                           orr_sweep_table **out,
                           orr_error *err)
{
    const orr_sweep_query q = {
        .size = sizeof q,
        .where = cli_text(c, "where"),
        .sort = cli_text(c, "sort"),
        .columns = cli_text(c, "columns"),
        .limit = cli_given(c, "top") ? cli_count(c, "top")
                 : is_best           ? 10
                                     : 0,
        .by_goal = is_best && !cli_given(c, "sort"),
        .brief = columns == BRIEF_COLUMNS,
        .only_varying = columns == VARYING_COLUMNS,
        .with_failed = cli_flag(c, "failed") || columns == VARYING_COLUMNS,
    };
    return orr_sweep_table_open(database, &q, out, err);
}

static orr_code need_one(const cli_context *c, int count, const char *usage, orr_error *err)
{
    return c->arg_count == count ? ORR_OK : cli_misuse(err, "expected: orrery sweep %s", usage);
}

static orr_code show(cli_context *c, bool is_best, orr_error *err)
{
    orr_sweep_table *t;
    orr_code code = need_one(c, 2, is_best ? "best DB" : "show DB", err);
    if (!code)
        code = open_table(c, c->args[1], is_best, BRIEF_COLUMNS, &t, err);
    if (code)
        return code;
    code =
        orr_sweep_table_write(t, cli_flag(c, "json") ? ORR_SWEEP_JSON : ORR_SWEEP_TEXT, "-", err);
    orr_sweep_table_close(t);
    return code;
}

static orr_code run_show(cli_context *c, orr_error *err)
{
    return show(c, false, err);
}

static orr_code run_best(cli_context *c, orr_error *err)
{
    return show(c, true, err);
}

static orr_code run_export(cli_context *c, orr_error *err)
{
    orr_sweep_table *t;
    orr_code code = need_one(c, 3, "export csv|json|columns DB", err);
    if (code)
        return code;
    static const char *const words[] = {"csv", "json", "columns"};
    static const orr_sweep_format formats[] = {ORR_SWEEP_CSV, ORR_SWEEP_JSON, ORR_SWEEP_COLUMNS};
    size_t i = 0;
    while (i < 3 && strcmp(c->args[1], words[i]) != 0)
        i++;
    if (i == 3)
        return cli_misuse(err, "export '%s': expected csv, json or columns", c->args[1]);
    if (formats[i] == ORR_SWEEP_COLUMNS && !cli_given(c, "output"))
        return cli_misuse(err, "missing option: --output FILE.npz");
    code = open_table(c, c->args[2], false, ALL_COLUMNS, &t, err);
    if (code)
        return code;
    code = orr_sweep_table_write(t, formats[i],
                                 cli_given(c, "output") ? cli_text(c, "output") : "-", err);
    orr_sweep_table_close(t);
    return code;
}

static orr_code run_plot(cli_context *c, orr_error *err)
{
    orr_sweep_table *t;
    const char *log = cli_text(c, "log");
    const orr_sweep_plot p = {
        .x = cli_text(c, "x"),
        .y = cli_text(c, "y"),
        .group = cli_text(c, "group"),
        .log_x = log && strchr(log, 'x'),
        .log_y = log && strchr(log, 'y'),
        .has_lines = cli_flag(c, "lines"),
    };
    orr_code code = need_one(c, 2, "plot DB --x COLUMN --y COLUMN -o FILE", err);
    if (!code && (!p.x || !p.y))
        code = cli_misuse(err, "missing option: --x COLUMN and --y COLUMN");
    if (!code)
        code = open_table(c, c->args[1], false, ALL_COLUMNS, &t, err);
    if (code)
        return code;
    code = orr_sweep_table_plot(t, &p, cli_given(c, "output") ? cli_text(c, "output") : "-", err);
    orr_sweep_table_close(t);
    return code;
}

static orr_code run_report(cli_context *c, orr_error *err)
{
    orr_sweep_table *t;
    orr_code code = need_one(c, 2, "report DB -o FILE", err);
    if (!code && !cli_given(c, "output"))
        code = cli_misuse(err, "missing option: --output FILE");
    if (!code)
        code = open_table(c, c->args[1], false, VARYING_COLUMNS, &t, err);
    if (code)
        return code;
    code = orr_sweep_table_write(t, ORR_SWEEP_HTML, cli_text(c, "output"), err);
    orr_sweep_table_close(t);
    return code;
}

static void print_state(const cli_context *c, const orr_sweep_state *s, const char *database)
{
    if (cli_flag(c, "json")) {
        cli_json j;
        orr_json_writer *w = cli_json_open(&j, "orrery-sweep-status");
        orr_json_put_fields(w, ORR_T("database", database), ORR_T("commands", s->commands),
                            ORR_T("program", s->program), ORR_U("points", s->points),
                            ORR_U("done", s->done), ORR_U("failed", s->failed),
                            ORR_U("results", s->results), ORR_B("running", s->is_running));
        cli_json_close(&j);
        return;
    }
    printf("%s: orrery %s\n", database, s->commands);
    printf("%" PRIu64 " of %" PRIu64 " points done, %" PRIu64 " of them failed; %s\n", s->done,
           s->points, s->failed, s->is_running ? "running" : "not running");
    if (s->failed)
        printf("first failure: %s\n", s->failure);
}

static orr_code run_status(cli_context *c, orr_error *err)
{
    orr_sweep_state s;
    orr_code code = need_one(c, 2, "status DB", err);
    if (!code)
        code = orr_sweep_status(c->args[1], &s, err);
    if (!code)
        print_state(c, &s, c->args[1]);
    return code;
}

static orr_code run_merge(cli_context *c, orr_error *err)
{
    orr_sweep_state s;
    if (c->arg_count < 3)
        return cli_misuse(err, "expected: orrery sweep merge NEW DB...");
    const orr_code code = orr_sweep_merge(c->args[1], (const char *const *)c->args + 2,
                                          (size_t)(c->arg_count - 2), &s, err);
    if (!code)
        print_state(c, &s, c->args[1]);
    return code;
}

static orr_code sweep_run(cli_context *c, orr_error *err)
{
    static const struct {
        const char *word;
        uint32_t bit;
        orr_code (*run)(cli_context *c, orr_error *err);
    } actions[] = {{"show", FOR_SHOW, run_show},       {"best", FOR_BEST, run_best},
                   {"export", FOR_EXPORT, run_export}, {"status", FOR_STATUS, run_status},
                   {"merge", FOR_MERGE, run_merge},    {"plot", FOR_PLOT, run_plot},
                   {"report", FOR_REPORT, run_report}, {"SPEC", FOR_RUN, run_sweep}};
    size_t i = 0;
    while (i + 1 < sizeof actions / sizeof *actions && strcmp(actions[i].word, c->args[0]) != 0)
        i++;
    const orr_code code = check_options(c, actions[i].bit, actions[i].word, err);
    return code ? code : actions[i].run(c, err);
}

const cli_command cli_cmd_sweep = {
    .name = "sweep",
    .summary = "run a command for many values of its options",
    .description =
        "SPEC says which commands to run, and which of their options vary: lists, ranges, samples, "
        "constraints (docs/format/sweep.md).  Points run on all cores, each in its own process; "
        "results go into one SQLite file as they arrive.  After an interruption, the same command "
        "continues; identical points are computed once.\n\n"
        "Under mpirun or srun the processes share the points.  --shard computes a part, for job "
        "arrays; merge combines the parts.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-run(1), orrery-serve(1), orrery-stage(1)",
    .run = sweep_run,
};
