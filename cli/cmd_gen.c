/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_gen.c - orrery gen: write a pattern of nodes, for a number of ranks, to files; and the old
 * generators' names.
 *
 * The patterns, and the options that each uses, are a table of the library (gen.h).  An option that
 * the pattern does not use is refused, as it is most likely a mistake.  Only `all` accepts options
 * that some of its patterns ignore. */
#include "base/text/text.h"
#include "command.h"

#include <orrery/lab/gen.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Options that change the content of a trace; `bit` marks the patterns that use it, `at` is the
 * offset of its uint64_t in orr_gen_options. */
typedef struct knob {
    const char *option;
    const char *json_key;
    uint32_t bit;
    size_t at;
} knob;

#define AT(field) offsetof(orr_gen_options, field)

static const knob knobs[] = {
    {"dims", "dims", ORR_GEN_DIMS, AT(dims)},
    {"runtime", "runtime_us", ORR_GEN_RUNTIME, AT(runtime_us)},
    {"tensor-size", "tensor_size_bytes", ORR_GEN_TENSOR_SIZE, AT(tensor_size)},
    {"comm-size", "comm_size_bytes", ORR_GEN_COMM_SIZE, AT(comm_size)},
    {"layers", "layers", ORR_GEN_LAYERS, AT(layers)},
    {"microbatches", "microbatches", ORR_GEN_MICROBATCHES, AT(microbatches)},
    {"bucket", "bucket", ORR_GEN_BUCKET, AT(bucket)},
    {"nodes", "nodes", ORR_GEN_NODES, AT(nodes)},
    {"width", "width", ORR_GEN_WIDTH, AT(width)},
    {"seed", "seed", ORR_GEN_SEED, AT(seed)},
};

enum { KNOBS = sizeof knobs / sizeof *knobs, NAME_COLUMN = 28 };

static const cli_option options[] = {
    {"output", 'o', "OUT", "a .orr file, a .et file for one rank, or a file name prefix",
     .kind = CLI_OUTPUT},
    {"ranks", 'n', "N", "number of ranks", CLI_COUNT, 1, 1 << 20},
    {"runtime", 0, "US", "duration of a compute node in microseconds", CLI_COUNT},
    {"comm-size", 0, "BYTES", "size of a collective or message", CLI_COUNT, .max = INT64_MAX},
    {"tensor-size", 0, "BYTES", "size of a memory access", CLI_COUNT},
    {"dims", 0, "N", "network dimensions in involved_dim; 0: omit", CLI_COUNT, .max = 64},
    {"layers", 0, "N", "layers of a network", CLI_COUNT, .max = 1 << 20},
    {"bucket", 0, "N", "layers whose gradients are reduced together", CLI_COUNT, 1, 1 << 20},
    {"microbatches", 0, "N", "micro-batches per pipeline", CLI_COUNT, 1, 512},
    {"nodes", 0, "N", "nodes of a random graph", CLI_COUNT, 1, 1 << 26},
    {"width", 0, "N", "random graph: nodes that can run concurrently", CLI_COUNT, 1, 1 << 24},
    {"seed", 0, "N", "random seed", CLI_COUNT},
    {"schema", 0, "current|0.0.4|eg", "schema of the nodes: current, of 2023-11 or of 2023-01",
     .fallback = "current"},
    {"compress", 'z', NULL, "compress a .orr file"},
    {"list", 'l', NULL, "list the patterns, or the options PATTERN uses"},
    {"json", 0, NULL, "print one JSON object"},
    {0},
};

static const cli_argument arguments[] = {
    {"PATTERN", "a name from --list, or all", CLI_MAYBE},
    {0},
};

static const cli_example examples[] = {
    {"List the patterns:", "orrery gen --list", 0},
    {"A 1 MiB all-reduce over four ranks, as ring.0.et to ring.3.et:",
     "orrery gen all_reduce --ranks 4 --comm-size 1048576 -o ring", 0},
    {"A training step of 1,024 ranks in one small file:",
     "orrery gen data_parallel --ranks 1024 -o step.orr", 0},
    {"A graph of 100,000 nodes:", "orrery gen layered --nodes 100000 --seed 7 -o big.et", 0},
    {"Every pattern, two ranks each, into a folder:", "orrery gen all --ranks 2 -o samples", 0},
    {0},
};

/* ---- options to values ---- */

static uint64_t knob_value(const orr_gen_options *opt, const knob *k)
{
    uint64_t v;
    memcpy(&v, (const char *)opt + k->at, sizeof v);
    return v;
}

/* Both old programs use the same words for their generations. */
orr_gen_style cli_gen_style(const char *schema)
{
    if (strcmp(schema, "eg") == 0)
        return ORR_GEN_EG;
    return strcmp(schema, "0.0.4") == 0 ? ORR_GEN_0_0_4 : ORR_GEN_CURRENT;
}

static orr_gen_options read_options(const cli_context *c, const orr_pattern *p)
{
    orr_gen_options opt = p->defaults;
    opt.style = cli_gen_style(cli_text(c, "schema"));
    if (cli_given(c, "ranks"))
        opt.ranks = (uint32_t)cli_count(c, "ranks");
    for (size_t i = 0; i < KNOBS; i++) {
        if (cli_given(c, knobs[i].option))
            memcpy((char *)&opt + knobs[i].at, &(uint64_t){cli_count(c, knobs[i].option)},
                   sizeof(uint64_t));
    }
    return opt;
}

static orr_code check_knobs(const cli_context *c, const orr_pattern *p, orr_error *err)
{
    for (size_t i = 0; i < KNOBS; i++) {
        if (cli_given(c, knobs[i].option) && !(p->uses & knobs[i].bit))
            return cli_misuse(err, "%s does not use --%s; 'orrery gen --list %s' lists its options",
                              p->name, knobs[i].option, p->name);
    }
    return ORR_OK;
}

/* ---- the list ---- */

static void list_all(void)
{
    for (size_t i = 0; orr_pattern_at(i); i++) {
        const orr_pattern *p = orr_pattern_at(i);
        printf("%-*s %s\n", NAME_COLUMN, p->name, p->help);
    }
}

static void list_one(const orr_pattern *p)
{
    printf("%s\n  %s\n", p->name, p->help);
    if (p->old_name && strcmp(p->old_name, p->name) != 0)
        printf("  in Chakra: %s\n", p->old_name);
    printf("  --%-14s %" PRIu32 "\n", "ranks", p->defaults.ranks);
    for (size_t i = 0; i < KNOBS; i++) {
        if (p->uses & knobs[i].bit)
            printf("  --%-14s %" PRIu64 "\n", knobs[i].option, knob_value(&p->defaults, &knobs[i]));
    }
}

static void put_pattern(orr_json_writer *w, const orr_pattern *p)
{
    orr_json_begin_object(w);
    orr_json_put_fields(w, ORR_T("name", p->name), ORR_T("old_name", p->old_name),
                        ORR_T("help", p->help), ORR_B("ranks_alike", !p->ranks_differ));
    orr_json_put_object(w, "defaults");
    orr_json_put_u64(w, "ranks", p->defaults.ranks);
    for (size_t i = 0; i < KNOBS; i++)
        if (p->uses & knobs[i].bit)
            orr_json_put_u64(w, knobs[i].json_key, knob_value(&p->defaults, &knobs[i]));
    orr_json_end_object(w);
    orr_json_end_object(w);
}

static void list_json(const orr_pattern *only)
{
    cli_json j;
    orr_json_writer *w = cli_json_open(&j, "orrery-patterns");
    orr_json_put_array(w, "patterns");
    if (only)
        put_pattern(w, only);
    for (size_t i = 0; !only && orr_pattern_at(i); i++) {
        orr_json_line(w, 2);
        put_pattern(w, orr_pattern_at(i));
    }
    orr_json_end_array(w);
    cli_json_close(&j);
}

/* ---- writing ---- */

/* Is it the name of a single file, and not a prefix? */
static bool is_one_file(const char *path)
{
    static const char *const ends[] = {".et", ".et.gz", ".et.zst", ".eg", ".eg.gz", ".eg.zst"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (orr_text_ends(path, ends[i]))
            return true;
    }
    return strcmp(path, "-") == 0;
}

static orr_code write_one(const orr_set *set,
                          const char *to,
                          const orr_write_options *opt,
                          orr_error *err)
{
    const orr_trace *t;
    orr_trace *owned;
    orr_code code = orr_set_rank_trace(set, 0, &t, &owned, err);
    if (!code)
        code = orr_trace_write(t, to, opt, err);
    orr_trace_destroy(owned);
    return code;
}

static orr_code write_set(
    const cli_context *c, const orr_set *set, orr_gen_style style, const char *to, orr_error *err)
{
    const bool is_eg = style == ORR_GEN_EG;
    const orr_write_options opt = {.size = sizeof opt,
                                   .schema = is_eg ? ORR_SCHEMA_EG : ORR_SCHEMA_CURRENT};
    if (orr_text_ends(to, ".orr") && is_eg)
        return cli_misuse(err, "a .orr file has traces of the current schema, not of --schema eg");
    if (orr_text_ends(to, ".orr"))
        return orr_set_save(set, to,
                            &(orr_set_save_options){.size = sizeof(orr_set_save_options),
                                                    .compress = cli_flag(c, "compress")},
                            err);
    if (cli_flag(c, "compress"))
        return cli_misuse(err, "--compress requires a .orr file, not '%s'", to);
    if (is_one_file(to) && orr_set_rank_count(set) > 1)
        return cli_misuse(err,
                          "'%s' is one file, but there are %u ranks: give a .orr file or a file "
                          "name prefix",
                          to, orr_set_rank_count(set));
    if (is_one_file(to))
        return write_one(set, to, &opt, err);
    return orr_set_write_files(set, to, &opt, 0, err);
}

/* State shared by the functions that make traces. */
typedef struct job {
    const cli_context *c;
    orr_json_writer *json; /* NULL: notes on stderr instead */
} job;

static void report_json(const job *b,
                        const orr_pattern *p,
                        const orr_gen_options *opt,
                        const orr_set *set,
                        const char *to)
{
    orr_json_writer *w = b->json;
    orr_json_line(w, 2);
    orr_json_begin_object(w);
    orr_json_put_fields(
        w, ORR_T("pattern", p->name), ORR_T("output", to), ORR_U("ranks", orr_set_rank_count(set)),
        ORR_U("distinct_ranks", orr_set_class_count(set)),
        ORR_U("node_count", cli_count_nodes(set)), ORR_T("schema", cli_text(b->c, "schema")));
    orr_json_put_object(w, "options");
    for (size_t i = 0; i < KNOBS; i++)
        if (p->uses & knobs[i].bit)
            orr_json_put_u64(w, knobs[i].json_key, knob_value(opt, &knobs[i]));
    orr_json_end_object(w);
    orr_json_end_object(w);
}

/* Print what was written, as text. */
static void report(const cli_context *c,
                   const orr_gen_style style,
                   const orr_set *set,
                   const char *to)
{
    const uint32_t ranks = orr_set_rank_count(set);
    const uint64_t nodes = cli_count_nodes(set);
    const char *end = style == ORR_GEN_EG ? "eg" : "et";
    cli_note(c, "%s", to);
    if (!is_one_file(to) && !orr_text_ends(to, ".orr")) {
        cli_note(c, ".0.%s", end);
        if (ranks > 1)
            cli_note(c, " to %s.%" PRIu32 ".%s", to, ranks - 1, end);
    }
    cli_note(c, ": %" PRIu32 " rank%s, %" PRIu32 " distinct, %" PRIu64 " node%s\n", ranks,
             ranks == 1 ? "" : "s", orr_set_class_count(set), nodes, nodes == 1 ? "" : "s");
}

static orr_code make(const job *b, const orr_pattern *p, const char *to, orr_error *err)
{
    const orr_gen_options opt = read_options(b->c, p);
    orr_set *set;
    orr_code code = orr_pattern_set(p, &opt, &set, err);
    if (code)
        return code;
    code = b->c->made ? ORR_OK : write_set(b->c, set, opt.style, to, err);
    if (!code && b->json)
        report_json(b, p, &opt, set, to);
    else if (!code && strcmp(to, "-") != 0)
        report(b->c, opt.style, set, to);
    if (!code && b->c->made) {
        orr_set_close(*b->c->made); /* the last of several is kept */
        *b->c->made = set;
        return ORR_OK;
    }
    orr_set_close(set);
    return code;
}

static orr_code make_in(const job *b, const orr_pattern *p, const char *folder, orr_error *err)
{
    char to[4096];
    const int n = snprintf(to, sizeof to, "%s/%s", folder, p->name);
    if (n < 0 || (size_t)n >= sizeof to)
        return cli_misuse(err, "the folder name is too long");
    return make(b, p, to, err);
}

static orr_code prepare_all(const cli_context *c, const char *folder, orr_error *err)
{
    /* Not every pattern can be expressed in an old schema; the others have a program of their
     * own. */
    if (strcmp(cli_text(c, "schema"), "current") != 0)
        return cli_misuse(err,
                          "'all' needs the current schema; 'et_generator --schema %s' writes all "
                          "samples of that schema",
                          cli_text(c, "schema"));
    if (mkdir(folder, 0777) == 0 || errno == EEXIST)
        return ORR_OK;
    const orr_where where = orr_where_line(folder, 0, 0);
    return orr_fail(err, ORR_EIO, &where, "cannot create the folder: %s", strerror(errno));
}

/* Write every pattern into one folder. */
static orr_code make_all(const job *b, const char *folder, orr_error *err)
{
    const cli_context *c = b->c;
    orr_code code = prepare_all(c, folder, err);
    for (size_t i = 0; orr_pattern_at(i) && !code; i++) {
        const orr_pattern *p = orr_pattern_at(i);
        if (cli_given(c, "ranks") && cli_count(c, "ranks") < p->min_ranks) {
            cli_note(c, "%s: skipped, needs at least %" PRIu32 " ranks\n", p->name, p->min_ranks);
            continue;
        }
        code = make_in(b, p, folder, err);
    }
    return code;
}

static orr_code find_pattern(const char *name, const orr_pattern **out, orr_error *err)
{
    const char *near = NULL;
    if ((*out = orr_pattern_find(name)))
        return ORR_OK;
    for (size_t i = 0; orr_pattern_at(i); i++)
        near = cli_nearer(name, near, orr_pattern_at(i)->name);
    if (near)
        return cli_misuse(err, "unknown pattern '%s'; did you mean '%s'?", name, near);
    return cli_misuse(err, "unknown pattern '%s'; see 'orrery gen --list'", name);
}

static void list(const orr_pattern *p, bool as_json)
{
    if (as_json)
        list_json(p);
    else if (p)
        list_one(p);
    else
        list_all();
}

/* p NULL: all of them. */
static orr_code gen_make(const cli_context *c, const orr_pattern *p, const char *to, orr_error *err)
{
    const bool as_json = cli_flag(c, "json");
    orr_code code = p ? check_knobs(c, p, err) : ORR_OK;
    if (!code && as_json && to && strcmp(to, "-") == 0)
        code = cli_misuse(err, "--json and -o - both write to standard output");
    if (code)
        return code;
    cli_json j;
    const job b = {c, as_json ? cli_json_open(&j, "orrery-gen") : NULL};
    if (as_json)
        orr_json_put_array(b.json, "made");
    code = p ? make(&b, p, to ? to : p->name, err) : make_all(&b, to ? to : "samples", err);
    if (as_json) {
        orr_json_end_array(b.json);
        cli_json_close(&j);
    }
    return code;
}

static orr_code gen_run(cli_context *c, orr_error *err)
{
    const char *name = c->arg_count ? c->args[0] : NULL;
    const bool is_all = name && strcmp(name, "all") == 0;
    const orr_pattern *p = NULL;
    orr_code code = ORR_OK;
    if (name && !is_all && (code = find_pattern(name, &p, err)))
        return code;
    if (cli_flag(c, "list")) {
        list(p, cli_flag(c, "json"));
        return ORR_OK;
    }
    if (!name)
        return cli_misuse(err, "missing argument: PATTERN; see 'orrery gen --list'");
    return gen_make(c, p, cli_text(c, "output"), err);
}

static const cli_command *const deeper[] = {&cli_cmd_gen_goal, &cli_cmd_gen_topology, NULL};

const cli_command cli_cmd_gen = {
    .name = "gen",
    .summary = "generate small synthetic traces",
    .description =
        "A pattern is a small graph of operations: one compute node, one all-reduce, a training step. "
        "Each rank gets a trace; without -o the files are PATTERN.0.et, PATTERN.1.et and so on. "
        "'orrery gen goal' makes GOAL schedules of communication patterns, "
        "'orrery gen topology' makes networks.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also =
        "orrery-check(1), orrery-gen-goal(1), orrery-gen-topology(1), orrery-info(1), orrery-view(1)",
    .deeper = deeper,
    .run = gen_run,
};
