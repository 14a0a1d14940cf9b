/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_convert.c - orrery convert: convert a workload from one format to another.
 *
 * Converters are rows of one table, `kinds`; options of a converter are listed in its row and
 * defined among the options below.  A converter makes the traces; selecting ranks and writing files
 * is common to all.  `et` is the first: a trace in any format we read. */
#include <orrery/lab/chip.h>
#include <orrery/lab/compat.h>
#include <orrery/lab/export.h>
#include <orrery/lab/flexflow.h>
#include <orrery/lab/fx.h>
#include <orrery/lab/goal_traces.h>
#include <orrery/lab/hardware.h>
#include <orrery/lab/layers.h>
#include <orrery/lab/pytorch.h>
#include <orrery/lab/simai.h>
#include <orrery/lab/units.h>
#include <orrery/view.h>

#include "base/text/text.h"
#include "command.h"
#include "convert.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The output format, from the extension of OUT; and writing it. */

static const struct {
    const char *tail;
    cli_form form;
} endings[] = {
    {".et", CLI_FORM_ET},       {".eg", CLI_FORM_EG},   {".json", CLI_FORM_JSON},
    {".jsonl", CLI_FORM_JSONL}, {".orr", CLI_FORM_SET},
};

static bool ends_in(const char *s, size_t len, const char *tail)
{
    const size_t n = strlen(tail);
    return len > n && memcmp(s + len - n, tail, n) == 0;
}

cli_target cli_target_of(const char *path)
{
    const size_t whole = strlen(path);
    const size_t packing = ends_in(path, whole, ".gz") ? 3 : ends_in(path, whole, ".zst") ? 4 : 0;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        if (ends_in(path, whole - packing, endings[i].tail))
            return (cli_target){path, endings[i].form, whole - packing - strlen(endings[i].tail)};
    }
    return (cli_target){path, strcmp(path, "-") == 0 ? CLI_FORM_ET : CLI_FORM_PREFIX, whole};
}

static bool is_json(cli_form f)
{
    return f == CLI_FORM_JSON || f == CLI_FORM_JSONL;
}

orr_code cli_target_check(const cli_context *c, const cli_target *to, orr_error *err)
{
    const bool picks_schema = cli_given(c, "schema") || cli_flag(c, "same-schema");
    if (to->stem == 0 || to->path[to->stem - 1] == '/')
        return cli_misuse(err, "'%s' is a folder: add a file name prefix", to->path);
    if (cli_given(c, "schema") && cli_flag(c, "same-schema"))
        return cli_misuse(err, "--schema and --same-schema cannot be used together");
    if (picks_schema && (is_json(to->form) || to->form == CLI_FORM_SET))
        return cli_misuse(err, "'%s' is not a .et file; only those have versions", to->path);
    if (cli_flag(c, "compress") && to->form != CLI_FORM_SET)
        return cli_misuse(err, "--compress is for .orr files; give '%s' the ending .gz or .zst",
                          to->path);
    if (to->form == CLI_FORM_SET && to->path[to->stem + strlen(".orr")])
        return cli_misuse(err, "a .orr file is compressed with --compress, not by its name");
    if (cli_flag(c, "json") && strcmp(to->path, "-") == 0)
        return cli_misuse(err, "--json and -o - both write to standard output");
    return ORR_OK;
}

/* ---- writing ---- */

static orr_write_options write_options(const cli_context *c, const cli_target *to)
{
    orr_write_options opt = {.size = sizeof opt, .same_schema = cli_flag(c, "same-schema")};
    const char *schema = cli_text(c, "schema");
    if (schema)
        orr_schema_find(orr_str_of(schema), &opt.schema);
    else if (to->form == CLI_FORM_EG && !opt.same_schema)
        opt.schema = ORR_SCHEMA_EG;
    return opt;
}

static orr_code write_trace(const cli_context *c,
                            const orr_trace *t,
                            uint64_t shift,
                            const cli_target *to,
                            const char *path,
                            orr_error *err)
{
    if (is_json(to->form)) {
        const orr_view_json_options opt = {.size = sizeof opt,
                                           .form = to->form == CLI_FORM_JSONL ? ORR_VIEW_JSONL
                                                                              : ORR_VIEW_JSON,
                                           .id_shift = shift};
        return orr_view_json(t, path, &opt, err);
    }
    orr_write_options opt = write_options(c, to);
    opt.id_shift = shift;
    return orr_trace_write(t, path, &opt, err);
}

static orr_code write_rank(const cli_context *c,
                           const orr_set *s,
                           uint32_t rank,
                           const cli_target *to,
                           const char *path,
                           orr_error *err)
{
    const orr_trace *t;
    orr_trace *owned;
    orr_code code = orr_set_rank_trace(s, rank, &t, &owned, err);
    if (code)
        return code;
    code = write_trace(c, t, orr_set_id_shift(s, rank), to, path, err);
    orr_trace_destroy(owned);
    return code;
}

/* One file per rank, with the rank before the extension of OUT: out.jsonl becomes out.0.jsonl,
 * out.1.jsonl. */
static orr_code write_ranks(const cli_context *c,
                            const orr_set *s,
                            const cli_target *to,
                            orr_error *err)
{
    orr_code code = ORR_OK;
    for (uint32_t r = 0; r < orr_set_rank_count(s) && !code; r++) {
        char path[4096];
        const int n = snprintf(path, sizeof path, "%.*s.%" PRIu32 "%s", (int)to->stem, to->path, r,
                               to->path + to->stem);
        if (n < 0 || (size_t)n >= sizeof path)
            return cli_misuse(err, "the output name is longer than 4,000 bytes");
        code = write_rank(c, s, r, to, path, err);
    }
    return code;
}

/* Rank files cannot hold groups: they go into a file beside them, where orr_set_open finds them. */
static orr_code write_groups(const orr_set *s, const cli_target *to, orr_error *err)
{
    char path[4096];
    if (orr_set_group_count(s) == 0)
        return ORR_OK;
    const int n = snprintf(path, sizeof path, "%.*s.json", (int)to->stem, to->path);
    if (n < 0 || (size_t)n >= sizeof path)
        return cli_misuse(err, "the output name is longer than 4,000 bytes");
    /* With a single rank its trace may have that name already. */
    return strcmp(path, to->path) == 0 && orr_set_rank_count(s) == 1
               ? ORR_OK
               : orr_set_write_groups(s, path, err);
}

static orr_code write_target(const cli_context *c,
                             const orr_set *s,
                             const cli_target *to,
                             orr_error *err)
{
    const bool is_stdout = strcmp(to->path, "-") == 0;
    if (to->form == CLI_FORM_SET)
        return orr_set_save(s, to->path,
                            &(orr_set_save_options){.size = sizeof(orr_set_save_options),
                                                    .compress = cli_flag(c, "compress")},
                            err);
    if (to->form == CLI_FORM_PREFIX) {
        const orr_write_options opt = write_options(c, to);
        return orr_set_write_files(s, to->path, &opt, (unsigned)cli_count(c, "threads"), err);
    }
    if (orr_set_rank_count(s) == 1)
        return write_rank(c, s, 0, to, to->path, err);
    if (is_stdout)
        return cli_misuse(err,
                          "'%s' holds %" PRIu32 " ranks: pick one with --ranks for standard output",
                          c->args[1], orr_set_rank_count(s));
    return write_ranks(c, s, to, err);
}

static orr_code target_write(const cli_context *c,
                             const orr_set *s,
                             const cli_target *to,
                             orr_error *err)
{
    const orr_code code = write_target(c, s, to, err);
    return code || to->form == CLI_FORM_SET || strcmp(to->path, "-") == 0
               ? code
               : write_groups(s, to, err);
}

/* ---- reporting the output ---- */

/* Do file names contain ranks ("ring.0.et")?  If not, OUT is the only file.  *behind: what follows
 * the rank. */
static bool has_numbers(const cli_context *c,
                        const orr_set *s,
                        const cli_target *to,
                        const char **behind)
{
    const bool is_prefix = to->form == CLI_FORM_PREFIX;
    *behind = !is_prefix                                     ? to->path + to->stem
              : write_options(c, to).schema == ORR_SCHEMA_EG ? ".eg"
                                                             : ".et";
    return is_prefix || (to->form != CLI_FORM_SET && orr_set_rank_count(s) > 1);
}

static void report_words(const cli_context *c, const orr_set *s, const cli_target *to)
{
    const uint32_t ranks = orr_set_rank_count(s), distinct = orr_set_class_count(s);
    const char *behind;
    if (!has_numbers(c, s, to, &behind))
        cli_note(c, "%s", to->path);
    else
        cli_note(c, "%.*s.0%s", (int)to->stem, to->path, behind);
    if (to->form != CLI_FORM_SET && ranks > 1)
        cli_note(c, " to %.*s.%" PRIu32 "%s", (int)to->stem, to->path, ranks - 1, behind);
    cli_note(c, ": %" PRIu32 " rank%s, %" PRIu32 " distinct\n", ranks, ranks == 1 ? "" : "s",
             distinct);
}

static void report_written_json(const cli_context *c,
                                const orr_set *s,
                                const cli_target *to,
                                cli_more_json *more,
                                const void *data)
{
    cli_json j;
    orr_json_writer *w = cli_json_open(&j, "orrery-convert");
    orr_json_put_fields(w, ORR_T("kind", c->args[0]), ORR_T("input", c->args[1]),
                        ORR_T("output", to->path), ORR_U("ranks", orr_set_rank_count(s)),
                        ORR_U("distinct_ranks", orr_set_class_count(s)),
                        ORR_U("node_count", cli_count_nodes(s)));
    if (more)
        more(w, data);
    cli_json_close(&j);
}

static void target_report_with(const cli_context *c,
                               const orr_set *s,
                               const cli_target *to,
                               cli_more_json *more,
                               const void *data)
{
    if (strcmp(to->path, "-") == 0)
        return;
    if (cli_flag(c, "json"))
        report_written_json(c, s, to, more, data);
    else
        report_words(c, s, to);
}

/* Report the files written and their size: as a note, or as JSON on stdout. */
static void target_report(const cli_context *c, const orr_set *s, const cli_target *to)
{
    target_report_with(c, s, to, NULL, NULL);
}

/* A converter makes the traces; the rest is common to all. */
typedef struct cli_converter {
    const char *name;
    const char *const *options; /* options that not all converters have; ends with NULL */
    /* Read c->args[1] and make the traces of all ranks. */
    orr_code (*make)(cli_context *c, orr_set **out, orr_error *err);
    /* Instead of make, if the result is not traces: does everything. */
    orr_code (*run)(cli_context *c, orr_error *err);
} cli_converter;

static orr_code cli_keep_ranks(const cli_context *c, orr_set *s, orr_error *err);

/* ---- orrery convert text: a text workload of ASTRA-sim 1.0 to traces. ---- */

enum { DIMS_MAX = 64, RANKS_MAX = 1 << 20 };

/* --dims: a number of dimensions, or their sizes, dimension 0 first. */
typedef struct dims {
    uint32_t count;
    bool has_sizes;
    uint32_t sizes[DIMS_MAX];
    uint64_t product;
} dims;

/* Digits up to the next x or the end; 0 is invalid. */
static const char *read_size(const char *text, uint32_t *out)
{
    uint32_t v = 0;
    for (; *text >= '0' && *text <= '9' && v <= RANKS_MAX; text++)
        v = v * 10 + (uint32_t)(*text - '0');
    *out = v;
    return v > 0 && v <= RANKS_MAX && (*text == 'x' || *text == '\0') ? text : NULL;
}

static bool read_sizes(const char *text, dims *out)
{
    out->product = 1;
    for (out->count = 0; out->count < DIMS_MAX; text++) {
        uint32_t size;
        if (!(text = read_size(text, &size)))
            return false;
        out->sizes[out->count++] = size;
        out->product *= out->product <= RANKS_MAX ? size : 1;
        if (*text == '\0')
            return true;
    }
    return false;
}

static orr_code read_dims(const cli_context *c, dims *out, orr_error *err)
{
    const char *text = cli_text(c, "dims");
    *out = (dims){0};
    if (!text)
        return ORR_OK;
    const bool is_right = read_sizes(text, out);
    out->has_sizes = is_right && out->count > 1;
    if (is_right && !out->has_sizes)
        out->count = out->sizes[0];
    if (!is_right || out->count > DIMS_MAX)
        return cli_misuse(
            err,
            "--dims '%s' is neither a number of dimensions, up to %d, nor their sizes "
            "such as 8x4",
            text, DIMS_MAX);
    return ORR_OK;
}

static orr_code count_ranks(const cli_context *c, const dims *d, uint32_t *out, orr_error *err)
{
    if (!cli_given(c, "npus") && !d->has_sizes)
        return cli_misuse(err, "missing option: --npus N");
    const uint64_t ranks = cli_given(c, "npus") ? cli_count(c, "npus") : d->product;
    if (ranks > RANKS_MAX)
        return cli_misuse(err, "--dims %s makes more than %d ranks", cli_text(c, "dims"),
                          RANKS_MAX);
    if (d->has_sizes && ranks != d->product)
        return cli_misuse(err, "the product of --dims %s is not --npus %s", cli_text(c, "dims"),
                          cli_text(c, "npus"));
    *out = (uint32_t)ranks;
    return ORR_OK;
}

/* Note what the table contains and the traces cannot express. */
static void remark(const cli_context *c, const orr_layers *t, const orr_layers_expand *opt)
{
    const char *policy = orr_policy_name(orr_layers_policy(t));
    const size_t idle = orr_layers_idle(t);
    if (opt->rules)
        return;
    if (idle)
        cli_note(c, "%s: %s never starts %zu of the collectives in the table; they are left out\n",
                 c->args[1], policy, idle);
    if (orr_layers_needs_dims(t) && opt->dims == 0)
        cli_note(
            c,
            "%s: %s sends along some network dimensions only; without --dims, every collective "
            "spans all ranks\n",
            c->args[1], policy);
}

static orr_code text_make(cli_context *c, orr_set **out, orr_error *err)
{
    orr_layers_read_options how = {0};
    orr_layers_expand opt = {.passes = (uint32_t)cli_count(c, "passes"),
                             .with_updates = cli_flag(c, "updates")};
    dims d;
    orr_layers *t;
    const orr_compat *old;
    orr_code code = read_dims(c, &d, err);
    if (!code && cli_flag(c, "compat")) {
        code = orr_compat_find(ORR_RULES_LAYERS, "chakra", &old, err);
        how.rules = opt.rules = code ? NULL : old->layers;
    }
    if (code || (code = count_ranks(c, &d, &opt.ranks, err)))
        return code;
    if (how.rules && opt.with_updates)
        return cli_misuse(err, "--compat and --updates cannot be used together");
    opt.dims = d.count;
    opt.dim_sizes = d.has_sizes ? d.sizes : NULL;
    if ((code = orr_layers_read(c->args[1], &how, &t, err)))
        return code;
    code = opt.rules ? ORR_OK : cli_check_passes(orr_layers_count(t), opt.passes, err);
    if (!code)
        code = orr_layers_set(t, &opt, out, err);
    if (!code)
        remark(c, t, &opt);
    orr_layers_free(t);
    return code;
}

static const char *const text_options[] = {"npus", "passes", "dims", "updates", "compat", NULL};

static const cli_converter cli_convert_text = {"text", text_options, text_make, NULL};

/* ---- orrery convert flexflow: a task graph of FlexFlow to traces. ---- */

/* A set numbers its ranks from 0; only the old program writes files with gaps in the numbering. */
static orr_code check_numbers(const cli_context *c,
                              const orr_flexflow *g,
                              const orr_set *s,
                              orr_error *err)
{
    const orr_where at = orr_where_line(c->args[1], 1, 1);
    for (uint32_t r = 0; r < orr_set_rank_count(s); r++) {
        if (orr_flexflow_device(g, r) != r)
            return orr_fail(err, ORR_EINPUT, &at,
                            "no task computes on device %" PRIu32 ", but one does on device "
                            "%" PRIu32,
                            r, orr_flexflow_device(g, r));
    }
    return ORR_OK;
}

static orr_code flexflow_make(cli_context *c, orr_set **out, orr_error *err)
{
    orr_flexflow_expand opt = {.mhz = (uint32_t)cli_count(c, "frequency")};
    orr_flexflow *g;
    orr_code code = ORR_OK;
    if (cli_flag(c, "compat") && !opt.mhz)
        return cli_misuse(err, "--compat needs --frequency MHZ");
    if (cli_flag(c, "compat")) {
        const orr_compat *old;
        code = orr_compat_find(ORR_RULES_FLEXFLOW, "chakra", &old, err);
        if (code)
            return code;
        opt.rules = old->flexflow;
    }
    code = orr_flexflow_read(c->args[1], &g, err);
    if (code)
        return code;
    code = orr_flexflow_set(g, &opt, out, err);
    if (!code && opt.rules && (code = check_numbers(c, g, *out, err)))
        orr_set_close(*out);
    const size_t crossings = orr_flexflow_crossings(g);
    if (!code && crossings)
        cli_note(c, "%s: dependencies between devices without a message: %zu; %s\n", c->args[1],
                 crossings,
                 opt.rules ? "they point into other files" : "replaced by messages of one byte");
    orr_flexflow_free(g);
    return code;
}

static const char *const flexflow_options[] = {"frequency", "compat", NULL};

static const cli_converter cli_convert_flexflow = {"flexflow", flexflow_options, flexflow_make,
                                                   NULL};

/* ---- orrery convert simai: a workload of SimAI to traces. ---- */

static orr_code simai_make(cli_context *c, orr_set **out, orr_error *err)
{
    const orr_simai_options opt = {.ranks = (uint32_t)cli_count(c, "npus"),
                                   .passes = (uint32_t)cli_count(c, "passes")};
    orr_simai_report r;
    const orr_code code = orr_simai_read(c->args[1], &opt, out, &r, err);
    if (code)
        return code;
    cli_note(c, "%s: groups of %u (tensor), %u (data), %u (expert parallel)\n", c->args[1], r.tp,
             r.dp, r.ep);
    if (r.pp > 1)
        cli_note(c,
                 "%s: the table covers one of %u pipeline stages; messages between stages are not "
                 "included\n",
                 c->args[1], r.pp);
    if (r.missing)
        cli_note(c, "%s: layers announced in the header but missing in the file: %" PRIu64 "\n",
                 c->args[1], r.missing);
    if (r.broadcasts)
        cli_note(c, "%s: broadcasts, which SimAI leaves out: %" PRIu64 "\n", c->args[1],
                 r.broadcasts);
    if (r.alone)
        cli_note(c, "%s: collectives of groups of one rank, left out: %" PRIu64 "\n", c->args[1],
                 r.alone);
    return ORR_OK;
}

static const char *const simai_options[] = {"npus", "passes", NULL};

static const cli_converter cli_convert_simai = {"simai", simai_options, simai_make, NULL};

/* ---- orrery convert pytorch: a linked PyTorch trace of one rank to a trace. ---- */

/* Print each kind of defect of a trace once, with its count. */
static void note_count(const cli_context *c, uint64_t count, const char *what)
{
    if (count)
        cli_note(c, "%s: %s: %" PRIu64 "\n", c->args[1], what, count);
}

const char *cli_nodes_text(const orr_pytorch_later *nodes, uint64_t count, char out[CLI_NODES_ROOM])
{
    const uint64_t shown = count < ORR_PYTORCH_SHOWN ? count : ORR_PYTORCH_SHOWN;
    size_t at = 0; /* holds eight pairs of 20 digits each and a count */
    out[0] = '\0';
    for (uint64_t i = 0; i < shown; i++)
        at += (size_t)snprintf(out + at, CLI_NODES_ROOM - at, "%s%" PRIu64 " (parent %" PRIu64 ")",
                               i ? ", " : "", nodes[i].node, nodes[i].parent);
    if (count > shown)
        snprintf(out + at, CLI_NODES_ROOM - at, " and %" PRIu64 " more", count - shown);
    return out;
}

/* They are listed by id, since they suggest a cycle. */
static void note_later(const cli_context *c, const orr_pytorch_report *r)
{
    char nodes[CLI_NODES_ROOM];
    if (r->parents_later)
        cli_note(c,
                 "%s: nodes whose parent does not precede them, treated as having none: %" PRIu64
                 ": %s\n",
                 c->args[1], r->parents_later,
                 cli_nodes_text(r->later_nodes, r->parents_later, nodes));
}

static void note_report(const cli_context *c, const orr_pytorch_report *r)
{
    note_count(c, r->kinds_unknown,
               "send and receive kernels without a known call, treated as all-to-all");
    note_count(c, r->one_sided,
               "kernels of DeepEP, NVSHMEM and similar libraries, which keep their measured times");
    note_count(c, r->sizes_unknown, "communication without a size, treated as 0 bytes");
    note_count(c, r->peers_unknown, "messages without a peer, converted to pauses");
    note_count(c, r->parents_missing, "nodes whose parent is not in the file");
    note_later(c, r);
    note_count(c, r->durations_negative, "negative durations, set to 0");
    note_count(c, r->dependencies_missing,
               "dependencies on nodes that are not in the file, left out");
    note_count(c, r->dependencies_refused, "dependencies that contradict the clock, left out");
    note_count(c, r->dependencies_circular, "dependencies that would form a cycle, left out");
}

/* ---- profiling overhead on the host ---- */

orr_code cli_host_scale(const cli_context *c, double *out, orr_error *err)
{
    const char *text = cli_text(c, "host-scale");
    char *end;
    *out = -1;
    if (strcmp(text, "auto") == 0)
        return ORR_OK;
    *out = strtod(text, &end);
    if (end == text || *end || !(*out >= 1e-6 && *out <= 1e6))
        return cli_misuse(err, "--host-scale '%s' is neither 'auto' nor a factor from 1e-6 to 1e6",
                          text);
    return ORR_OK;
}

void cli_host_add(cli_host_range *r, const orr_pytorch_host *h)
{
    const orr_pytorch_host old = r->of;
    if (r->ranks++ == 0) {
        r->of = *h;
        r->most = h->scale;
        return;
    }
    r->of.how = h->how > old.how ? h->how : old.how;
    r->of.scale = h->scale < old.scale ? h->scale : old.scale;
    r->of.low = h->low < old.low ? h->low : old.low;
    r->of.high = h->high > old.high ? h->high : old.high;
    r->of.operators += h->operators;
    r->of.recorded_ns += h->recorded_ns;
    r->of.added_ns += h->added_ns;
    r->most = h->scale > r->most ? h->scale : r->most;
}

void cli_host_note(const cli_context *c, const cli_host_range *r)
{
    enum { WORTH_A_WORD = 100 }; /* operators */
    const double hardly = 0.98;
    const orr_pytorch_host *h = &r->of;
    if (h->how == ORR_HOST_UNKNOWN && h->operators >= WORTH_A_WORD)
        cli_note(c, "host times as recorded, with the profiler's overhead: too few views in the "
                    "trace to estimate it (--host-scale FACTOR)\n");
    if (h->how == ORR_HOST_COMPUTES && h->recorded_ns && h->operators >= WORTH_A_WORD)
        cli_note(c,
                 "host times as recorded, about %.0f %% of them the profiler's overhead; the host "
                 "computes, so only you can scale them (--host-scale FACTOR)\n",
                 100.0 * (double)h->added_ns / (double)h->recorded_ns);
    if (h->how < ORR_HOST_BY_LAUNCHES || h->scale > hardly)
        return;
    cli_note(c, "host times x %.2f", h->scale);
    if (r->most > h->scale)
        cli_note(c, " to %.2f by rank", r->most);
    cli_note(c,
             " (estimate, likely %.2f to %.2f): the profiler slowed the host about %.1f times; "
             "--host-scale 1 keeps the recorded times\n",
             h->low, h->high, 1 / h->scale);
}

void cli_host_json(orr_json_writer *w, const orr_pytorch_host *h)
{
    static const char *const how[] = {"recorded", "given", "unknown", "computes", "launches"};
    orr_json_put_object(w, "host_scale");
    orr_json_put_fields(w, ORR_F("factor", "%.4f", h->scale), ORR_F("low", "%.4f", h->low),
                        ORR_F("high", "%.4f", h->high), ORR_T("from", how[h->how]),
                        ORR_U("operators", h->operators), ORR_U("launches", h->launches),
                        ORR_U("recorded_ns", h->recorded_ns), ORR_U("added_ns", h->added_ns));
    orr_json_end_object(w);
}

static orr_code make_set(orr_trace *t, orr_set **out, orr_error *err)
{
    orr_code code = orr_set_create(out, err);
    if (code) {
        orr_trace_destroy(t);
        return code;
    }
    code = orr_set_add(*out, t, err);
    if (code)
        orr_set_close(*out);
    return code;
}

static orr_code pytorch_make(cli_context *c, orr_set **out, orr_error *err)
{
    const orr_compat *old = NULL;
    orr_pytorch_options opt = {.has_rank = cli_given(c, "rank"),
                               .rank = (uint32_t)cli_count(c, "rank")};
    cli_host_range host = {.ranks = 0};
    orr_pytorch_report report;
    orr_linked *l;
    orr_trace *t;
    orr_code code = ORR_OK;
    if ((code = cli_host_scale(c, &opt.host_scale, err)))
        return code;
    if (cli_flag(c, "compat") && cli_given(c, "host-scale"))
        return cli_misuse(err, "--compat keeps host times: no --host-scale");
    if (cli_flag(c, "compat") && (code = orr_compat_find(ORR_RULES_CONVERT, NULL, &old, err)))
        return code;
    const orr_linked_options how = {.rules = old ? old->convert : NULL};
    if ((code = orr_linked_read(c->args[1], &how, &l, err)))
        return code;
    code = orr_linked_trace(l, &opt, &t, &report, err);
    orr_linked_free(l);
    if (code)
        return code;
    note_report(c, &report);
    cli_host_add(&host, &report.host);
    cli_host_note(c, &host);
    return make_set(t, out, err);
}

static const char *const pytorch_options[] = {"rank", "host-scale", "compat", NULL};

static const cli_converter cli_convert_pytorch = {"pytorch", pytorch_options, pytorch_make};

/* orrery convert fx: convert a step captured from PyTorch to the traces of all ranks, and report
 * work, communication and memory of each captured rank, and operators without a cost. */

/* ---- words ---- */

static void note_bytes(const cli_context *c, const char *what, uint64_t bytes)
{
    char text[ORR_UNIT_ROOM];
    if (bytes)
        cli_note(c, ", %s %s", what, orr_bytes_text(bytes, text));
}

static void note_memory(const cli_context *c, const orr_fx_memory *m)
{
    char text[ORR_UNIT_ROOM];
    cli_note(c, "  memory: %s at most", orr_bytes_text(m->peak, text));
    note_bytes(c, "parameters", m->parameters);
    note_bytes(c, "buffers", m->buffers);
    note_bytes(c, "gradients", m->gradients);
    note_bytes(c, "optimizer", m->optimizer);
    note_bytes(c, "activations and other tensors", m->activations);
    cli_note(c, "\n");
}

/* 270 MFLOP, 16 FLOP */
static void note_flops(const cli_context *c, uint64_t flops)
{
    char text[ORR_UNIT_ROOM];
    orr_short_text(flops, text);
    cli_note(c, strchr(text, ' ') ? "%sFLOP" : "%s FLOP", text);
}

static void note_rank(const cli_context *c, const orr_fx_rank_report *r)
{
    char a[ORR_UNIT_ROOM], b[ORR_UNIT_ROOM];
    cli_note(c,
             "rank %" PRIu32 ", for %" PRIu32 " rank%s: %" PRIu64 " call%s, %" PRIu64
             " of them views; ",
             r->rank, r->ranks_like_it, r->ranks_like_it == 1 ? "" : "s", r->calls,
             r->calls == 1 ? "" : "s", r->views);
    note_flops(c, r->flops);
    cli_note(c, ", %s read, %s written\n", orr_bytes_text(r->bytes_read, a),
             orr_bytes_text(r->bytes_written, b));
    if (r->collectives)
        cli_note(c, "  collectives: %" PRIu64 ", %s\n", r->collectives,
                 orr_bytes_text(r->collective_bytes, a));
    if (r->sends || r->receives)
        cli_note(c, "  messages: %" PRIu64 " sent, %" PRIu64 " received, %s sent\n", r->sends,
                 r->receives, orr_bytes_text(r->send_bytes, a));
    if (r->setup)
        cli_note(c, "  before the step, left out: %" PRIu64 " call%s\n", r->setup,
                 r->setup == 1 ? "" : "s");
    note_memory(c, &r->memory);
}

static void fx_note_report(const cli_context *c, const orr_fx_report *r)
{
    for (size_t i = 0; i < r->rank_count; i++)
        if (r->ranks[i].like == r->ranks[i].rank)
            note_rank(c, &r->ranks[i]);
    for (size_t i = 0; i < r->note_count; i++)
        cli_note(c, "note: %.*s%s\n", (int)r->notes[i].text.len, r->notes[i].text.ptr,
                 r->notes[i].count == 1 ? "" : ", several times");
    if (r->unknown_count)
        cli_note(c, "operators without a cost: their bytes count, their arithmetic does not\n");
    for (size_t i = 0; i < r->unknown_count; i++)
        cli_note(c, "  %.*s: %" PRIu64 " call%s\n", (int)r->unknown[i].name.len,
                 r->unknown[i].name.ptr, r->unknown[i].count, r->unknown[i].count == 1 ? "" : "s");
}

/* ---- JSON ---- */

static void put_rank(orr_json_writer *w, const orr_fx_rank_report *r)
{
    const orr_fx_memory *m = &r->memory;
    orr_json_begin_object(w);
    orr_json_put_fields(
        w, ORR_U("rank", r->rank), ORR_U("like_rank", r->like),
        ORR_U("ranks_like_it", r->ranks_like_it), ORR_U("calls", r->calls),
        ORR_U("nodes", r->nodes), ORR_U("views", r->views), ORR_U("setup_calls", r->setup),
        ORR_U("flops", r->flops), ORR_U("read_bytes", r->bytes_read),
        ORR_U("written_bytes", r->bytes_written), ORR_U("collectives", r->collectives),
        ORR_U("collective_bytes", r->collective_bytes), ORR_U("sends", r->sends),
        ORR_U("receives", r->receives), ORR_U("send_bytes", r->send_bytes));
    orr_json_put_object(w, "memory");
    orr_json_put_fields(w, ORR_U("peak_bytes", m->peak), ORR_U("parameter_bytes", m->parameters),
                        ORR_U("buffer_bytes", m->buffers), ORR_U("gradient_bytes", m->gradients),
                        ORR_U("optimizer_bytes", m->optimizer),
                        ORR_U("activation_bytes", m->activations));
    orr_json_end_object(w);
    orr_json_end_object(w);
}

typedef struct printed {
    const orr_fx_report *report;
    const cli_fx_source *from;
} printed;

static void put_counted(
    orr_json_writer *w, const char *key, orr_str what, const char *of, uint64_t n)
{
    orr_json_begin_object(w);
    orr_json_key(w, key);
    orr_json_str(w, what);
    orr_json_put_u64(w, of, n);
    orr_json_end_object(w);
}

static void put_report(orr_json_writer *w, const void *data)
{
    const printed *p = data;
    const orr_fx_report *r = p->report;
    if (p->from->put)
        p->from->put(w, p->from->data);
    orr_json_put_array(w, "captured");
    for (size_t i = 0; i < r->rank_count; i++)
        put_rank(w, &r->ranks[i]);
    orr_json_end_array(w);
    orr_json_put_array(w, "unknown_operators");
    for (size_t i = 0; i < r->unknown_count; i++)
        put_counted(w, "name", r->unknown[i].name, "calls", r->unknown[i].count);
    orr_json_end_array(w);
    orr_json_put_array(w, "notes");
    for (size_t i = 0; i < r->note_count; i++)
        put_counted(w, "text", r->notes[i].text, "count", r->notes[i].count);
    orr_json_end_array(w);
}

/* ---- the command ---- */

static orr_code read_hardware(const cli_context *c,
                              cli_hardware *hw,
                              orr_fx_options *o,
                              orr_error *err)
{
    const char *name = cli_text(c, "hardware");
    if (!name)
        return ORR_OK;
    const orr_code code = cli_hardware_find(name, hw, err);
    const orr_hardware *design = &hw->design;
    if (!code && hw->chip)
        *o = (orr_fx_options){.chip = hw->chip};
    else if (!code)
        *o = (orr_fx_options){.peak_flops = orr_hardware_peak(design),
                              .vector_flops =
                                  (double)design->vector_width * (double)design->clock_hz,
                              .memory_rate = design->memory_bandwidth,
                              .overhead = design->overhead};
    return code;
}

static orr_code write_set(const cli_context *c,
                          orr_set *s,
                          const orr_fx_report *r,
                          const cli_fx_source *from,
                          orr_error *err)
{
    const cli_target to = cli_target_of(cli_text(c, "output"));
    orr_code code = cli_keep_ranks(c, s, err);
    if (code || (code = target_write(c, s, &to, err)))
        return code;
    if (!cli_flag(c, "json"))
        fx_note_report(c, r);
    const printed what = {r, from};
    target_report_with(c, s, &to, put_report, &what);
    return ORR_OK;
}

orr_code cli_fx_run(cli_context *c, const cli_fx_source *from, orr_error *err)
{
    const cli_target to = cli_target_of(cli_text(c, "output"));
    orr_fx_options opt = {0};
    cli_hardware hw;
    orr_fx_report report;
    orr_fx *capture = NULL;
    orr_set *s = NULL;
    orr_code code = cli_target_check(c, &to, err);
    if (code || (code = read_hardware(c, &hw, &opt, err)) ||
        (code = from->read(c, from->data, &capture, err)))
        return code;
    code = orr_fx_convert(capture, &opt, &s, &report, err);
    orr_fx_close(capture);
    if (code)
        return code;
    code = write_set(c, s, &report, from, err);
    orr_fx_report_fini(&report);
    orr_set_close(s);
    return code;
}

static orr_code read_capture(const cli_context *c, void *data, orr_fx **out, orr_error *err)
{
    (void)data;
    return orr_fx_read(c->args[1], (uint32_t)cli_count(c, "world-size"), out, err);
}

static orr_code fx_run(cli_context *c, orr_error *err)
{
    static const cli_fx_source from = {read_capture, NULL, NULL};
    return cli_fx_run(c, &from, err);
}

static const char *const fx_options[] = {"world-size", "hardware", NULL};

static const cli_converter cli_convert_fx = {"fx", fx_options, NULL, fx_run};

/* orrery convert export: convert a program saved by torch.export (.pt2) to traces, and report which
 * pass it is and the values of its symbolic sizes. */

/* ---- words ---- */

static void note_symbol(const cli_context *c, const orr_export_symbol *y)
{
    cli_note(c, "  size %.*s = %" PRId64, (int)y->name.len, y->name.ptr, y->value);
    if (y->is_given)
        cli_note(c, ", as given\n");
    else
        cli_note(c, ", the example in the file; --dim %.*s=N changes it\n", (int)y->name.len,
                 y->name.ptr);
}

static void note_program(const cli_context *c, const orr_export_report *r)
{
    cli_note(c,
             "%s: exported by PyTorch %.*s, %s; %" PRIu32 " node%s, %" PRIu32
             " parameter%s, %" PRIu32 " buffer%s, %" PRIu32 " input%s, %" PRIu32 " output%s\n",
             c->args[1], (int)r->torch_version.len, r->torch_version.ptr,
             r->is_joint ? "a joint graph: forward and backward pass" : "forward pass alone",
             r->nodes, r->nodes == 1 ? "" : "s", r->parameters, r->parameters == 1 ? "" : "s",
             r->buffers, r->buffers == 1 ? "" : "s", r->inputs, r->inputs == 1 ? "" : "s",
             r->outputs, r->outputs == 1 ? "" : "s");
    for (size_t i = 0; i < r->symbol_count; i++)
        note_symbol(c, &r->symbols[i]);
}

/* ---- JSON ---- */

static void put_symbol(orr_json_writer *w, const orr_export_symbol *y)
{
    orr_json_begin_object(w);
    orr_json_key(w, "name");
    orr_json_str(w, y->name);
    orr_json_put_fields(w, ORR_I("value", y->value), ORR_B("is_given", y->is_given));
    if (y->min != INT64_MIN)
        orr_json_put_fields(w, ORR_I("min", y->min));
    if (y->max != INT64_MAX)
        orr_json_put_fields(w, ORR_I("max", y->max));
    orr_json_end_object(w);
}

static void put_program(orr_json_writer *w, const void *data)
{
    const orr_export_report *r = data;
    char schema[32];
    snprintf(schema, sizeof schema, "%" PRIu32 ".%" PRIu32, r->schema_major, r->schema_minor);
    orr_json_put_object(w, "program");
    orr_json_key(w, "torch_version");
    orr_json_str(w, r->torch_version);
    orr_json_put_text(w, "schema", schema);
    orr_json_key(w, "model");
    orr_json_str(w, r->model);
    orr_json_put_fields(w, ORR_T("kind", r->is_joint ? "joint" : "forward"),
                        ORR_U("nodes", r->nodes), ORR_U("nested_graphs", r->nested),
                        ORR_U("parameters", r->parameters), ORR_U("buffers", r->buffers),
                        ORR_U("inputs", r->inputs), ORR_U("outputs", r->outputs));
    orr_json_put_array(w, "sizes");
    for (size_t i = 0; i < r->symbol_count; i++)
        put_symbol(w, &r->symbols[i]);
    orr_json_end_array(w);
    orr_json_end_object(w);
}

/* ---- the command ---- */

static orr_code read_export(const cli_context *c, void *data, orr_fx **out, orr_error *err)
{
    const orr_export_options opt = {.sizes = cli_text(c, "dim"),
                                    .model = cli_text(c, "model"),
                                    .ranks = (uint32_t)cli_count(c, "world-size")};
    orr_export_report *r = data;
    const orr_code code = orr_export_read(c->args[1], &opt, out, r, err);
    if (!code && !cli_flag(c, "json"))
        note_program(c, r);
    return code;
}

static orr_code export_run(cli_context *c, orr_error *err)
{
    orr_export_report r = {0};
    const cli_fx_source from = {read_export, put_program, &r};
    const orr_code code = cli_fx_run(c, &from, err);
    orr_export_report_fini(&r);
    return code;
}

static const char *const export_options[] = {"dim", "model", "world-size", "hardware", NULL};

static const cli_converter cli_convert_export = {"export", export_options, NULL, export_run};

/* orrery convert goal: GOAL schedules from text to binary and back; and the old names txt2bin
 * and bin2txt. */

/* By the file extension: .bin is binary. */
static orr_goal_form form_of(const char *path)
{
    const bool is_binary = orr_text_ends(path, ".bin") || orr_text_ends(path, ".bin.gz") ||
                           orr_text_ends(path, ".bin.zst");
    return is_binary ? ORR_GOAL_BINARY : ORR_GOAL_TEXT;
}

static void goal_remark(const cli_context *c, const char *path, const orr_goal_remarks *r)
{
    if (r->wrapped)
        cli_note(
            c, "%s:%" PRIu32 ": number too large for its field, truncated (%" PRIu64 " in total)\n",
            path, r->first_wrapped, r->wrapped);
    if (r->doubled)
        cli_note(c,
                 "%s:%" PRIu32 ": duplicate label; the first definition counts (%" PRIu64
                 " in total)\n",
                 path, r->first_doubled, r->doubled);
    if (r->ignored_from_line)
        cli_note(c, "%s:%" PRIu32 ": text after the last rank is ignored\n", path,
                 r->ignored_from_line);
}

orr_code cli_goal_read(const cli_context *c, const char *path, orr_goal **out, orr_error *err)
{
    orr_goal_remarks r;
    const orr_code code = orr_goal_read(path, &r, out, err);
    if (!code)
        goal_remark(c, path, &r);
    return code;
}

static void report_json(const orr_goal *g, const char *path, const char *form)
{
    const orr_goal_totals t = orr_goal_count(g);
    cli_json j;
    orr_json_writer *w = cli_json_open_tight(&j, "orrery-convert-goal");
    orr_json_put_fields(w, ORR_T("output", path), ORR_T("form", form),
                        ORR_U("ranks", orr_goal_ranks(g)), ORR_U("sends", t.sends),
                        ORR_U("receives", t.recvs), ORR_U("calculations", t.calcs),
                        ORR_U("dependencies", t.edges), ORR_U("sent_bytes", t.bytes_sent),
                        ORR_U("cpus", t.cpus), ORR_U("nics", t.nics));
    cli_json_close(&j);
}

static void report(const cli_context *c, const orr_goal *g, const char *path, orr_goal_form form)
{
    const orr_goal_totals t = orr_goal_count(g);
    const char *form_name = form == ORR_GOAL_BINARY ? "binary" : "text";
    if (cli_flag(c, "json")) {
        report_json(g, path, form_name);
        return;
    }
    cli_note(c,
             "%s: %s, %" PRIu32 " rank%s, %" PRIu64 " send%s, %" PRIu64 " receive%s, %" PRIu64
             " calculation%s, %" PRIu64 " dependenc%s\n",
             path, form_name, orr_goal_ranks(g), orr__plural(orr_goal_ranks(g)), t.sends,
             orr__plural(t.sends), t.recvs, orr__plural(t.recvs), t.calcs, orr__plural(t.calcs),
             t.edges, t.edges == 1 ? "y" : "ies");
}

static orr_goal_form form_wanted(const cli_context *c, const char *path)
{
    const char *form = cli_text(c, "form");
    if (form)
        return strcmp(form, "binary") == 0 ? ORR_GOAL_BINARY : ORR_GOAL_TEXT;
    return form_of(path);
}

static orr_code write_schedule(const cli_context *c,
                               const orr_goal *g,
                               const char *path,
                               orr_error *err)
{
    const orr_goal_form form = form_wanted(c, path);
    const orr_code code = orr_goal_write(g, path, form, err);
    if (!code)
        report(c, g, path, form);
    return code;
}

static orr_code write_traces(const cli_context *c,
                             const orr_goal *g,
                             const cli_target *to,
                             orr_error *err)
{
    orr_set *s;
    orr_code code = orr_goal_traces(g, c->args[1], &s, err);
    if (code)
        return orr_because(err, code, "%s", c->args[1]);
    code = target_write(c, s, to, err);
    if (!code)
        target_report(c, s, to);
    orr_set_close(s);
    return code;
}

/* Is the output traces, by its extension? */
static bool is_for_traces(const cli_context *c, const cli_target *to)
{
    return !cli_given(c, "form") && to->form != CLI_FORM_PREFIX;
}

static orr_code goal_run(cli_context *c, orr_error *err)
{
    const char *path = cli_text(c, "output");
    const cli_target to = cli_target_of(path);
    orr_goal *g;
    orr_code code = is_for_traces(c, &to) ? cli_target_check(c, &to, err) : ORR_OK;
    if (code || (code = cli_goal_load(c, c->args[1], &g, err)))
        return code;
    code = is_for_traces(c, &to) ? write_traces(c, g, &to, err) : write_schedule(c, g, path, err);
    orr_goal_free(g);
    return code;
}

static const char *const goal_options[] = {"form",   "system",   "topology", "groups",
                                           "memory", "hardware", NULL};

static const cli_converter cli_convert_goal = {"goal", goal_options, .run = goal_run};

/* ---- the command ---- */

static const cli_option options[] = {
    {"output", 'o', "OUT", "output file; its ending selects the format", .required = true,
     .kind = CLI_OUTPUT},
    {"ranks", 'r', "A-B", "only these ranks (or one, A); renumbered from 0 in the output"},
    {"npus", 'n', "N", "text, simai: number of ranks", CLI_COUNT, 1, 1 << 20},
    {"passes", 0, "N", "text, simai: number of training passes", CLI_COUNT, 0, 1 << 24, "1"},
    {"dims", 0, "DIMS", "text: dimensions of the network: their number, or sizes such as 8x4"},
    {"updates", 0, NULL, "text: add the update time as a compute node after each collective"},
    {"frequency", 0, "MHZ", "flexflow: run times in cycles of this clock instead of microseconds",
     CLI_COUNT, 1, 1 << 20},
    {"world-size", 0, "N", "fx, export: number of ranks, when the input does not say", CLI_COUNT, 1,
     1 << 24},
    {"hardware", 0, "NAME", "fx, export, goal: compute times of this chip ('orrery chip list')"},
    {"dim", 0, "S=N,...", "export: values of symbolic sizes, such as s0=8,s1=128"},
    {"model", 0, "NAME", "export: program name, when the archive has several"},
    {"rank", 0, "N", "pytorch: rank of this trace", CLI_COUNT, 0, (1 << 20) - 1},
    {"host-scale", 0, "FACTOR", "pytorch: " CLI_HOST_SCALE_HELP, .fallback = "auto"},
    {"compat", 0, NULL,
     "text, flexflow, pytorch: exactly as chakra_converter, including its defects"},
    {"schema", 0, "current|2023-10|0.0.3u|0.0.3|0.0.2|eg", "version of the .et format to write"},
    {"form", 0, "text|binary", "goal: text or binary; default: by the ending of OUT"},
    {"system", 0, "FILE", "goal: system file, for the algorithms of collectives (JSON)"},
    {"topology", 0, "FILE", "goal: network file, for their dimensions (YAML)"},
    {"groups", 0, "FILE", "goal: communicator groups (JSON)"},
    {"memory", 0, "FILE", "goal: remote memory file (JSON)"},
    {"same-schema", 0, NULL, "et: write the version that was read"},
    {"compress", 'z', NULL, "compress a .orr file"},
    {"threads", 'j', "N", "threads; 0: one per core", CLI_COUNT, 0, 1024, "0"},
    {"lenient", 0, NULL, "et: keep unknown node types"},
    {"json", 0, NULL, "print one JSON object"},
    {0},
};

static const cli_argument arguments[] = {
    {"KIND",
     "kind of the input: et, text, simai, flexflow, pytorch, fx, export or goal; optional if IN shows it",
     CLI_ONCE},
    {"IN", "et: a file, a prefix P of P.0.et, P.1.et, ..., a directory, or a .orr; else a file",
     CLI_MAYBE},
    {0},
};

static const cli_example examples[] = {
    {"Make four rank files:", "orrery gen all_reduce --ranks 4 -o ring", 0},
    {"All ranks in one file:", "orrery convert et ring -o ring.orr", 0},
    {"And back into files, again.0.et to again.3.et:", "orrery convert et ring.orr -o again", 0},
    {"One rank as JSON lines:", "orrery convert et ring.orr --ranks 2 -o two.jsonl", 0},
    {"Changed with a text tool, and back:",
     "sed s/65536/1048576/ two.jsonl | orrery convert et - -o two.et", 0},
    {"In the format of July 2023, compressed:",
     "orrery convert et ring.0.et --schema 0.0.3 -o old.et.gz", 0},
    {"A table of layers for 64 ranks, two passes:",
     "orrery convert text mlp.txt --npus 64 --passes 2 -o mlp.orr", 0},
    {"The same on a network of 8 by 8:", "orrery convert text mlp.txt --dims 8x8 -o mlp.orr", 0},
    {"A task graph of FlexFlow, times in cycles of 1 GHz:",
     "orrery convert flexflow tasks.dot --frequency 1000 -o tasks.orr", 0},
    {"A linked PyTorch trace:", "orrery convert pytorch linked.json -o rank0.et", 0},
    {"A captured step: 4-way tensor parallel, 2-way data parallel:",
     "orrery convert fx tp.json.gz -o tp.orr", 0},
    {"A program saved by torch.export, on eight equal ranks:",
     "orrery convert export tiny.pt2 --world-size 8 -o tiny.orr", 0},
    {"The messages of the all-reduce as a GOAL schedule, text and binary:",
     "orrery convert goal ring.orr -o ring.goal", 0},
    {"", "orrery convert goal ring.goal -o ring.bin", 0},
    {"And the schedule as traces:", "orrery convert goal ring.bin -o messages.orr", 0},
    {0},
};

/* ---- which ranks ---- */

static bool read_number(const char **at, uint32_t *out)
{
    uint64_t v = 0;
    const char *p = *at;
    for (; *p >= '0' && *p <= '9' && v < UINT32_MAX; p++)
        v = v * 10 + (uint64_t)(*p - '0');
    const bool is_number = p != *at && v < UINT32_MAX;
    *at = p;
    *out = (uint32_t)v;
    return is_number;
}

/* "3" or "3-5". */
static bool read_range(const char *text, uint32_t *first, uint32_t *last)
{
    if (!read_number(&text, first))
        return false;
    *last = *first;
    if (*text == '-') {
        text++;
        if (!read_number(&text, last))
            return false;
    }
    return *text == '\0' && *first <= *last;
}

/* --ranks (cmd_convert.c). */
static orr_code cli_keep_ranks(const cli_context *c, orr_set *s, orr_error *err)
{
    const char *text = cli_text(c, "ranks");
    const uint32_t count = orr_set_rank_count(s);
    uint32_t first, last;
    if (!text)
        return ORR_OK;
    if (!read_range(text, &first, &last))
        return cli_misuse(err, "--ranks '%s' is neither a rank nor a range such as 0-3", text);
    if (last >= count)
        return cli_misuse(err, "--ranks %s: '%s' ends with rank %" PRIu32, text, c->args[1],
                          count - 1);
    return orr_set_keep(s, first, last - first + 1, err);
}

/* ---- kinds ---- */

static orr_code et_make(cli_context *c, orr_set **out, orr_error *err)
{
    const orr_read_options read = {
        .size = sizeof read, .leniency = cli_flag(c, "lenient") ? ORR_KEEP_UNKNOWN : ORR_STRICT};
    const char *output = cli_text(c, "output");
    const size_t len = output ? strlen(output) : 0;
    const orr_set_options opt = {.size = sizeof opt,
                                 .read = &read,
                                 .threads = (unsigned)cli_count(c, "threads"),
                                 .joins_alike = len > 4 && strcmp(output + len - 4, ".orr") == 0};
    return orr_set_open(c->args[1], &opt, out, err);
}

static const char *const et_options[] = {"same-schema", "lenient", NULL};
static const cli_converter convert_et = {"et", et_options, et_make, NULL};

static const cli_converter *const kinds[] = {
    &convert_et,          &cli_convert_text, &cli_convert_simai,  &cli_convert_flexflow,
    &cli_convert_pytorch, &cli_convert_fx,   &cli_convert_export, &cli_convert_goal};
enum { KINDS = sizeof kinds / sizeof *kinds };

const char *cli_kind_at(size_t i)
{
    return i < KINDS ? kinds[i]->name : NULL;
}

static orr_code find_kind(const char *name, const cli_converter **out, orr_error *err)
{
    const char *near = NULL;
    for (size_t i = 0; i < KINDS; i++) {
        *out = kinds[i];
        if (strcmp(kinds[i]->name, name) == 0)
            return ORR_OK;
        near = cli_nearer(name, near, kinds[i]->name);
    }
    if (near)
        return cli_misuse(err, "unknown kind '%s'; did you mean '%s'?", name, near);
    return cli_misuse(
        err,
        "unknown kind '%s'; expected one of: et, text, simai, flexflow, pytorch, fx, export, "
        "goal",
        name);
}

/* ---- detecting the kind ---- */

enum { HEAD_ROOM = 4096, KIND_ROOM = 16 };

static bool has_word(const char *head, size_t size, const char *word)
{
    return memmem(head, size, word, strlen(word)) != NULL;
}

/* The kind according to the first bytes; NULL: unclear. */
static const char *kind_of_head(const char *path, const char *head, size_t size)
{
    static const uint8_t orr[4] = {0x89, 'O', 'R', 'R'}, zip[4] = {'P', 'K', 3, 4};
    const size_t length = strlen(path);
    if (size >= 4 && memcmp(head, orr, 4) == 0)
        return "et";
    if (size >= 4 && memcmp(head, zip, 4) == 0)
        return "export";
    if (length > 3 && strcmp(path + length - 3, ".et") == 0)
        return "et";
    if (has_word(head, size, "\"orrery-capture\""))
        return "fx";
    if (has_word(head, size, "\"orrery-trace\"") || has_word(head, size, "\"workload_graph\""))
        return "et";
    if (has_word(head, size, "\"nodes\"") && has_word(head, size, "\"schema\""))
        return "pytorch";
    if (has_word(head, size, "digraph"))
        return "flexflow";
    if (has_word(head, size, "num_ranks "))
        return "goal";
    return NULL;
}

static orr_code read_head(const char *path, char head[HEAD_ROOM], size_t *size, orr_error *err)
{
    const orr_where at = orr_where_byte(path, ORR_NO_BYTE);
    FILE *f = fopen(path, "rb");
    if (!f)
        return orr_fail(err, ORR_EIO, &at, "cannot open: %s", strerror(errno));
    *size = fread(head, 1, HEAD_ROOM, f);
    fclose(f);
    return ORR_OK;
}

/* `convert FILE`: insert the kind of the file before it. */
static orr_code guess_kind(cli_context *c, char name[KIND_ROOM], char *args[3], orr_error *err)
{
    static const char list[] = "et, text, simai, flexflow, pytorch, fx, export or goal";
    char head[HEAD_ROOM];
    size_t size = 0;
    const orr_code code = read_head(c->args[0], head, &size, err);
    if (code)
        return code;
    const char *kind = kind_of_head(c->args[0], head, size);
    if (!kind && has_word(head, size, "\"traceEvents\""))
        return cli_misuse(err, "%s is a device trace of PyTorch's profiler: use 'orrery link'",
                          c->args[0]);
    if (!kind)
        return cli_misuse(err,
                          "cannot recognise %s: give its kind (%s), as in 'orrery convert KIND %s'",
                          c->args[0], list, c->args[0]);
    snprintf(name, KIND_ROOM, "%s", kind);
    args[0] = name;
    args[1] = c->args[0];
    args[2] = NULL;
    c->args = args;
    c->arg_count = 2;
    return ORR_OK;
}

static bool is_kind(const char *name)
{
    for (size_t i = 0; i < KINDS; i++) {
        if (strcmp(kinds[i]->name, name) == 0)
            return true;
    }
    return false;
}

static bool takes(const cli_converter *k, const char *option)
{
    for (const char *const *o = k->options; *o; o++) {
        if (strcmp(*o, option) == 0)
            return true;
    }
    return false;
}

/* Refuse options of other kinds: they would have no effect. */
static orr_code check_options(const cli_context *c, const cli_converter *kind, orr_error *err)
{
    for (size_t i = 0; i < KINDS; i++) {
        for (const char *const *o = kinds[i]->options; *o; o++) {
            if (cli_given(c, *o) && !takes(kind, *o))
                return cli_misuse(err, "--%s has no effect on kind '%s'", *o, kind->name);
        }
    }
    return ORR_OK;
}

static orr_code convert_run(cli_context *c, orr_error *err)
{
    const cli_target to = cli_target_of(cli_text(c, "output"));
    const cli_converter *kind;
    char name[KIND_ROOM], *args[3];
    orr_set *s;
    orr_code code = ORR_OK;
    if (c->arg_count == 1 && is_kind(c->args[0]))
        return cli_misuse(err, "missing argument: IN");
    if (c->arg_count == 1 && (code = guess_kind(c, name, args, err)))
        return code;
    code = find_kind(c->args[0], &kind, err);
    if (code || (code = check_options(c, kind, err)))
        return code;
    if (kind->run)
        return kind->run(c, err);
    if ((code = cli_target_check(c, &to, err)) || (code = kind->make(c, &s, err)))
        return code;
    code = cli_keep_ranks(c, s, err);
    if (!code)
        code = target_write(c, s, &to, err);
    if (!code)
        target_report(c, s, &to);
    orr_set_close(s);
    return code;
}

const cli_command cli_cmd_convert = {
    .name = "convert",
    .in_place = "et",
    .summary = "convert workloads to traces, and traces to other formats",
    .description =
        "KIND et: IN is any trace: .et of any version, JSON, a set; plain or compressed.  KIND text: IN is a table "
        "of layers, the text workload of ASTRA-sim 1.0.  KIND simai: IN is a workload of SimAI, as AICB writes it.  KIND flexflow: IN is a task graph of FlexFlow in the DOT "
        "language.  KIND pytorch: IN is a PyTorch trace of one rank, linked by 'orrery link' or chakra_trace_link, or a "
        "host trace alone.  KIND fx: IN is a training step captured from PyTorch by 'orrery capture'; the output has all ranks of the "
        "job.  KIND export: IN is a program saved by torch.export (.pt2), or the JSON in it.  KIND goal: IN is a GOAL schedule, text or binary, or any trace; OUT is a schedule (text, or binary "
        "when it ends in .bin) or, by its ending, traces.\n\n"
        "The ending of OUT selects the format: .orr one file for all ranks; .et one trace, .eg one of early 2023; "
        ".json or .jsonl JSON; all but .orr may be followed by .gz or .zst.  With several ranks, "
        "the rank number goes before the ending.  Any other OUT is a file name prefix: OUT.0.et, "
        "OUT.1.et and so on; communicator groups go to OUT.json, where every command finds them.  "
        "Conversion between trace formats is lossless.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-check(1), orrery-gen(1), orrery-run(1), orrery-view(1)",
    .run = convert_run,
};
