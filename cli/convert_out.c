/* SPDX-License-Identifier: Apache-2.0 */
/* convert_out.c - what the ending of OUT means, and writing that. */
#include "convert.h"
#include "json_out.h"

#include <orrery/view.h>

#include <inttypes.h>
#include <string.h>

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
        return orr_fail(err, ORR_EUSAGE, NULL, "'%s' is a folder: add a file name prefix",
                        to->path);
    if (cli_given(c, "schema") && cli_flag(c, "same-schema"))
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "--schema and --same-schema cannot be used together");
    if (picks_schema && (is_json(to->form) || to->form == CLI_FORM_SET))
        return orr_fail(err, ORR_EUSAGE, NULL, "only .et files have generations; '%s' is none",
                        to->path);
    if (cli_flag(c, "compress") && to->form != CLI_FORM_SET)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "--compress is for .orr files; let '%s' end in .gz or .zst", to->path);
    if (to->form == CLI_FORM_SET && to->path[to->stem + strlen(".orr")])
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "a .orr file is compressed with --compress, not by its name");
    if (cli_flag(c, "json") && strcmp(to->path, "-") == 0)
        return orr_fail(err, ORR_EUSAGE, NULL, "--json and -o - both write to standard output");
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

/* OUT with the rank in front of its ending, for every rank: out.jsonl becomes out.0.jsonl,
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
            return orr_fail(err, ORR_EUSAGE, NULL, "the output name is longer than 4,000 bytes");
        code = write_rank(c, s, r, to, path, err);
    }
    return code;
}

/* Rank files have no place for groups: they go beside them, where orr_set_open finds them. */
static orr_code write_groups(const orr_set *s, const cli_target *to, orr_error *err)
{
    char path[4096];
    if (orr_set_group_count(s) == 0)
        return ORR_OK;
    const int n = snprintf(path, sizeof path, "%.*s.json", (int)to->stem, to->path);
    if (n < 0 || (size_t)n >= sizeof path)
        return orr_fail(err, ORR_EUSAGE, NULL, "the output name is longer than 4,000 bytes");
    /* The trace of a lonely rank may have that name already. */
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
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "'%s' holds %" PRIu32 " ranks: pick one with --ranks for standard output",
                        c->args[1], orr_set_rank_count(s));
    return write_ranks(c, s, to, err);
}

orr_code cli_target_write(const cli_context *c,
                          const orr_set *s,
                          const cli_target *to,
                          orr_error *err)
{
    const orr_code code = write_target(c, s, to, err);
    return code || to->form == CLI_FORM_SET || strcmp(to->path, "-") == 0
               ? code
               : write_groups(s, to, err);
}

/* ---- saying what was written ---- */

/* "ring.0.et" or the whole of OUT; behind is what stands after the number of a rank. */
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

static uint64_t count_nodes(const orr_set *s)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < orr_set_class_count(s); i++)
        n += (uint64_t)orr_set_class_ranks(s, i) * orr_trace_columns(orr_set_trace(s, i))->count;
    return n;
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

static void report_json(const cli_context *c,
                        const orr_set *s,
                        const cli_target *to,
                        cli_more_json *more,
                        const void *data)
{
    cli_json j;
    orr_json_writer *w = cli_json_open(&j, "orrery-convert");
    orr_json_put_text(w, "kind", c->args[0]);
    orr_json_put_text(w, "input", c->args[1]);
    orr_json_put_text(w, "output", to->path);
    orr_json_put_u64(w, "ranks", orr_set_rank_count(s));
    orr_json_put_u64(w, "distinct_ranks", orr_set_class_count(s));
    orr_json_put_u64(w, "node_count", count_nodes(s));
    if (more)
        more(w, data);
    cli_json_close(&j);
}

void cli_target_report_with(const cli_context *c,
                            const orr_set *s,
                            const cli_target *to,
                            cli_more_json *more,
                            const void *data)
{
    if (strcmp(to->path, "-") == 0)
        return;
    if (cli_flag(c, "json"))
        report_json(c, s, to, more, data);
    else
        report_words(c, s, to);
}

void cli_target_report(const cli_context *c, const orr_set *s, const cli_target *to)
{
    cli_target_report_with(c, s, to, NULL, NULL);
}
