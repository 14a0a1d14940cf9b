/* SPDX-License-Identifier: Apache-2.0 */
/* old_stage.c - STAGE's main.py by the name stage, and orrery stage --compat: the traces of its
 * training steps, byte for byte (stage.md 1).  Options have its names, with a dash for each
 * underscore; the parser accepts both. */
#include "base/text/text.h"
#include "command.h"
#include "old.h"

#include <orrery/lab/stage.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { PATH_ROOM = 4096 };

#define COUNT(name, fallback_, help_)                           \
    {                                                           \
        name, 0, "N", help_, CLI_COUNT, 1, INT32_MAX, fallback_ \
    }
#define YES_NO(name, fallback_, help_)                \
    {                                                 \
        name, 0, "BOOL", help_, .fallback = fallback_ \
    }

static const cli_option options[] = {
    {"output", 'o', "OUT", "a .orr file, or a file name prefix"},
    {"output-dir", 0, "DIR", "folder for the files, made if it is not there"},
    {"output-name", 0, "NAME", "file names in it; %d is the rank"},
    {"model-type", 0, "NAME", "dense, llama, gpt, moe or debug", .fallback = "dense"},
    COUNT("dp", "1", "data parallel degree"),
    COUNT("tp", "1", "tensor parallel degree"),
    COUNT("sp", "1", "degree in which the sequence is divided"),
    COUNT("ep", "1", "expert parallel degree; multiplies tp without experts"),
    COUNT("pp", "1", "pipeline stages"),
    COUNT("layers", NULL, "layers"),
    COUNT("num-stacks", "80", "the same"),
    COUNT("dmodel", "8192", "width of the model"),
    COUNT("dff", "28672", "width of the feed-forward network"),
    COUNT("head", "64", "attention heads"),
    COUNT("kvhead", "8", "heads of keys and values"),
    COUNT("dvocal", "32000", "size of the vocabulary"),
    COUNT("seq", "1024", "length of a sequence"),
    COUNT("batch", "64", "sequences of a step"),
    {"micro-batch", 0, "N", "sequences of a micro-batch; -1: all", .fallback = "-1"},
    COUNT("experts", "8", "moe: experts"),
    COUNT("kexperts", "2", "moe: experts a token goes to"),
    YES_NO("weight-sharded", "false", "divide layer weights over dp (FSDP)"),
    YES_NO("tpsp", "true", "tensor parallelism with sequence parallelism"),
    YES_NO("mixed-precision", "false", "sizes in inputs and outputs; llama as llama"),
    YES_NO("activation-recompute", "false", "accepted, ignored"),
    YES_NO("print-gpu-vram", "false", "print what each rank keeps in memory"),
    {"chakra-schema-version", 0, "NAME", "json: as --format json; else ignored",
     .fallback = "v0.0.4"},
    {"comm-group-file", 0, "NAME", "file of communicator groups in the folder"},
    {"templates", 0, "DIR", "modules to use instead of the built-in ones"},
    {"graph", 0, "NAME", "also write the tensor graph, NAME.csv and NAME.json"},
    {"format", 0, "et|json", "form of rank files", .fallback = "et"},
    {"tag-base", 0, "N", "the first tag of a message", CLI_COUNT, 0, 1 << 30, "0"},
    {"compress", 'z', NULL, "compress a .orr file"},
    {"json", 0, NULL, "print one JSON object"},
    {0},
};

/* As in the old program: a few words mean yes, everything else no. */
static bool is_yes(const cli_context *c, const char *name)
{
    static const char *const words[] = {"true", "t", "1", "yes", "y"};
    const char *text = cli_text(c, name);
    for (size_t i = 0; text && i < sizeof words / sizeof *words; i++) {
        if (strcasecmp(text, words[i]) == 0)
            return true;
    }
    return false;
}

static void read_environment(orr_stage_options *opt)
{
    const char *legacy = getenv("STAGE_LEGACY_ATTR"), *merge = getenv("STAGE_MERGE_COMMS"),
               *clones = getenv("STAGE_MICROBATCH_OPTIMIZE");
    opt->legacy_attr = legacy && strcmp(legacy, "1") == 0;
    opt->merge_comms = merge && strtol(merge, NULL, 10) > 0;
    opt->clones = clones && strcmp(clones, "0") != 0;
    opt->whole_backward = clones && strcmp(clones, "1") != 0;
}

static orr_code read_model(const cli_context *c, orr_stage_model *out, orr_error *err)
{
    const char *name = cli_text(c, "model-type");
    const char *near = NULL;
    if (orr_stage_model_find(name, out))
        return ORR_OK;
    for (int i = 0; i < ORR_STAGE_MODELS; i++)
        near = cli_nearer(name, near, orr_stage_model_name((orr_stage_model)i));
    return orr_fail(err, ORR_EINPUT, NULL,
                    "model type '%s' is not one of dense, llama, gpt, moe, debug%s%s%s", name,
                    near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static orr_code read_options(const cli_context *c, orr_stage_options *opt, orr_error *err)
{
    *opt = orr_stage_defaults();
    opt->dp = cli_count(c, "dp");
    opt->tp = cli_count(c, "tp");
    opt->sp = cli_count(c, "sp");
    opt->ep = cli_count(c, "ep");
    opt->pp = cli_count(c, "pp");
    opt->layers = cli_count(c, cli_given(c, "layers") ? "layers" : "num-stacks");
    opt->dmodel = cli_count(c, "dmodel");
    opt->dff = cli_count(c, "dff");
    opt->head = cli_count(c, "head");
    opt->kvhead = cli_count(c, "kvhead");
    opt->dvocal = cli_count(c, "dvocal");
    opt->seq = cli_count(c, "seq");
    opt->batch = cli_count(c, "batch");
    opt->experts = cli_count(c, "experts");
    opt->kexperts = cli_count(c, "kexperts");
    opt->weight_sharded = is_yes(c, "weight-sharded");
    opt->tpsp = is_yes(c, "tpsp");
    opt->mixed_precision = is_yes(c, "mixed-precision");
    opt->templates = cli_text(c, "templates");
    opt->tag_base = cli_count(c, "tag-base");
    read_environment(opt);
    const orr_code code = read_model(c, &opt->model, err);
    return code ? code : cli_stage_micro_batch(cli_text(c, "micro-batch"), &opt->micro_batch, err);
}

/* ---- output ---- */

typedef struct target {
    bool is_set;             /* a .orr file */
    bool is_one;             /* one .et file */
    char pattern[PATH_ROOM]; /* of the rank files, or the single file */
    char groups[PATH_ROOM];  /* the group file; empty: none */
    const char *folder;      /* to be created; NULL: none */
} target;

/* Replace every `what` in a text, as in Python. */
static bool replace_all(const char *from, const char *what, const char *by, char *out, size_t room)
{
    const size_t len = strlen(what), by_len = strlen(by);
    size_t n = 0;
    while (*from) {
        const bool is_here = strncmp(from, what, len) == 0;
        const size_t add = is_here ? by_len : 1;
        if (n + add >= room)
            return false;
        memcpy(out + n, is_here ? by : from, add);
        n += add;
        from += is_here ? len : 1;
    }
    out[n] = '\0';
    return true;
}

static orr_code too_long(orr_error *err)
{
    return cli_misuse(err, "the output name is longer than 4,000 bytes");
}

static bool join(char out[PATH_ROOM], const char *folder, const char *name, const char *end)
{
    const int n = folder ? snprintf(out, PATH_ROOM, "%s/%s%s", folder, name, end)
                         : snprintf(out, PATH_ROOM, "%s%s", name, end);
    return n >= 0 && n < PATH_ROOM;
}

/* --format json, or --chakra_schema_version json, as in STAGE's documentation. */
static bool wants_json(const cli_context *c)
{
    return strcmp(cli_text(c, "format"), "json") == 0 ||
           strcmp(cli_text(c, "chakra-schema-version"), "json") == 0;
}

/* "w.%d.et" -> "w.json"; a name without %d gets ".%d.et" first. */
static orr_code name_files(const cli_context *c, target *t, const char *name, orr_error *err)
{
    char full[PATH_ROOM], bare[PATH_ROOM], groups[PATH_ROOM];
    const char *chosen = cli_text(c, "comm-group-file");
    bool fits = join(full, NULL, name, t->is_one || strstr(name, "%d") ? "" : ".%d.et") &&
                replace_all(full, ".%d", "", bare, sizeof bare) &&
                replace_all(bare, ".et", ".json", groups, sizeof groups);
    fits = fits && join(t->pattern, t->folder, full, "") &&
           join(t->groups, t->folder, chosen ? chosen : groups, "");
    return fits ? ORR_OK : too_long(err);
}

static orr_code name_output(const cli_context *c, target *t, orr_error *err)
{
    const char *out = cli_text(c, "output"), *name = cli_text(c, "output-name");
    const char *groups = cli_text(c, "comm-group-file");
    *t = (target){.is_set = out && orr_text_ends(out, ".orr"),
                  .is_one = out && orr_text_ends(out, ".et") && !strstr(out, "%d")};
    if (out && (cli_given(c, "output-dir") || name))
        return cli_misuse(err, "--output and --output-dir both say where to write");
    if (t->is_set && wants_json(c))
        return cli_misuse(err, "a .orr file holds traces, not --format json");
    if (t->is_one && wants_json(c))
        return cli_misuse(err, "with --format json, OUT is a name with %%d");
    if (!t->is_set && cli_flag(c, "compress"))
        return cli_misuse(err, "--compress requires a .orr file");
    if (t->is_set)
        return join(t->pattern, NULL, out, "") && join(t->groups, NULL, groups ? groups : "", "")
                   ? ORR_OK
                   : too_long(err);
    if (out)
        return name_files(c, t, out, err);
    t->folder = cli_text(c, "output-dir");
    if (!t->folder || !name)
        return cli_misuse(err, "missing option: %s",
                          t->folder         ? "--output_name NAME"
                          : c->command->now ? "--output_dir DIR"
                                            : "--output OUT, or --output-dir and --output-name");
    return name_files(c, t, name, err);
}

/* Create the folder and its parents. */
static orr_code make_folder(const char *path, orr_error *err)
{
    char part[PATH_ROOM];
    const orr_where at = orr_where_line(path, 0, 0);
    if (!join(part, NULL, path, ""))
        return too_long(err);
    for (char *p = part + 1;; p++) {
        const char c = *p;
        if (c && c != '/')
            continue;
        *p = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return orr_fail(err, ORR_EIO, &at, "cannot create the folder: %s", strerror(errno));
        *p = c;
        if (!c)
            return ORR_OK;
    }
}

/* ---- the work ---- */

static orr_code write_set(const cli_context *c, orr_stage *job, const target *t, orr_error *err)
{
    const orr_set_save_options opt = {.size = sizeof opt, .compress = cli_flag(c, "compress")};
    orr_set *set;
    orr_code code = orr_stage_set(job, &set, err);
    if (code)
        return code;
    code = orr_set_save(set, t->pattern, &opt, err);
    orr_set_close(set);
    return code;
}

static orr_code write_one(orr_stage *job, const target *t, orr_error *err)
{
    orr_trace *trace;
    if (orr_stage_rank_count(job) > 1)
        return cli_misuse(err,
                          "'%s' is one file, but there are %" PRIu32 " ranks: give a .orr file, or "
                          "what the file names begin with",
                          t->pattern, orr_stage_rank_count(job));
    orr_code code = orr_stage_trace(job, 0, &trace, err);
    if (!code)
        code = orr_trace_write(trace, t->pattern, NULL, err);
    orr_trace_destroy(trace);
    return code;
}

static orr_code write_ranks(const cli_context *c, orr_stage *job, const target *t, orr_error *err)
{
    if (t->is_set)
        return write_set(c, job, t, err);
    if (t->is_one)
        return write_one(job, t, err);
    return orr_stage_write_files(job, t->pattern, wants_json(c) ? ORR_STAGE_JSON : ORR_STAGE_ET, 0,
                                 err);
}

static orr_code write_all(const cli_context *c, orr_stage *job, const target *t, orr_error *err)
{
    orr_code code = t->folder ? make_folder(t->folder, err) : ORR_OK;
    if (!code)
        code = write_ranks(c, job, t, err);
    if (!code && t->groups[0])
        code = orr_stage_write_groups(job, t->groups, err);
    if (!code && cli_given(c, "graph"))
        code = orr_stage_write_graph(job, cli_text(c, "graph"), err);
    return code;
}

static void print_memory(const orr_stage *job)
{
    char line[400];
    for (uint32_t r = 0; r < orr_stage_rank_count(job); r++) {
        if (*orr_stage_memory_line(job, r, line, sizeof line))
            printf("%s\n", line);
    }
}

static void report_json(const orr_stage *job, const orr_stage_options *opt, const target *t)
{
    const uint32_t ranks = orr_stage_rank_count(job), stages = (uint32_t)opt->pp;
    cli_json j;
    orr_json_writer *w = cli_json_open(&j, "orrery-stage");
    orr_json_put_fields(
        w, ORR_B("compat", true), ORR_T("output", t->pattern), ORR_T("groups", t->groups),
        ORR_T("model_type", orr_stage_model_name(opt->model)), ORR_U("ranks", ranks),
        ORR_U("pipeline_stages", stages), ORR_U("node_count", orr_stage_node_count(job)));
    orr_json_put_array(w, "memory");
    for (uint32_t s = 0; s < stages; s++) {
        const orr_stage_memory m = orr_stage_rank_memory(job, s * (ranks / stages));
        orr_json_line(w, 2);
        orr_json_put_row(w, ORR_U("stage", s), ORR_F("weights_bytes", "%.0f", m.weights),
                         ORR_F("optimizer_bytes", "%.0f", m.optimizer),
                         ORR_F("activations_bytes", "%.0f", m.activations),
                         ORR_F("gradients_bytes", "%.0f", m.gradients));
    }
    orr_json_end_array(w);
    cli_json_close(&j);
}

static void report(const cli_context *c,
                   const orr_stage *job,
                   const orr_stage_options *opt,
                   const target *t)
{
    if (cli_flag(c, "json")) {
        report_json(job, opt, t);
        return;
    }
    if (is_yes(c, "print-gpu-vram"))
        print_memory(job);
    if (!c->command->now)
        cli_note(c, "%s: %" PRIu32 " rank%s in %" PRIu64 " pipeline stage%s, %" PRIu64 " nodes\n",
                 t->pattern, orr_stage_rank_count(job), orr__plural(orr_stage_rank_count(job)),
                 opt->pp, orr__plural(opt->pp), orr_stage_node_count(job));
}

static orr_code run_stage(cli_context *c, orr_error *err)
{
    orr_stage_options opt;
    orr_stage *job;
    target t;
    orr_code code;
    if ((code = read_options(c, &opt, err)) || (code = name_output(c, &t, err)) ||
        (code = orr_stage_create(&opt, &job, err)))
        return code;
    code = write_all(c, job, &t, err);
    if (!code)
        report(c, job, &opt, &t);
    orr_stage_destroy(job);
    return code;
}

const cli_command cli_old_stage = {
    .name = "stage",
    .summary = "write the traces of a language model's training step, as STAGE's main.py",
    .now = "orrery stage --compat",
    .options = options,
    .run = run_stage,
};

/* The same as a form of orrery stage. */
const cli_command cli_stage_compat = {
    .name = "stage",
    .summary = "make the traces that STAGE makes, byte for byte",
    .description =
        "The options are those of STAGE, ASTRA-sim's symbolic tensor graph generator, with dashes or "
        "underscores; its environment variables count too.",
    .options = options,
    .see_also = "orrery-check(1), orrery-info(1), orrery-run(1), orrery-old-names(7)",
    .run = run_stage,
};
