/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_convert.c - orrery convert: from one form of a workload to another.
 *
 * What there is to convert is one table, `kinds`: a new converter is a row there.  `et` is the first: any
 * trace, in any form we read, to any form we write. */
#include "command.h"

#include <orrery/set.h>
#include <orrery/view.h>

#include <inttypes.h>
#include <string.h>

typedef struct kind {
    const char *name;
    orr_code (*run)(cli_context *c, orr_error *err);
} kind;

static const cli_option options[] = {
    {"output", 'o', "OUT", "what to write; its ending says in which form", .required = true},
    {"ranks", 'r', "A-B", "only these ranks (or one, A); they count from 0 in what is written"},
    {"schema", 0, "current|2023-10|0.0.3u|0.0.3|0.0.2|eg", "generation of the .et format to write"},
    {"same-schema", 0, NULL, "write the generation that was read"},
    {"compress", 'z', NULL, "compress a .orr file"},
    {"threads", 'j', "N", "how many files at a time; 0: one per core", CLI_COUNT, 0, 1024, "0"},
    {"lenient", 0, NULL, "keep node types that have no name"},
    {0},
};

static const cli_argument arguments[] = {
    {"KIND", "what to convert: et", CLI_ONCE},
    {"IN", "a file, a prefix P of P.0.et, P.1.et, ..., a directory, or a .orr", CLI_ONCE},
    {0},
};

static const cli_example examples[] = {
    {"Four rank files to begin with:", "orrery gen all_reduce --ranks 4 -o ring", 0},
    {"All ranks in one file:", "orrery convert et ring -o ring.orr", 0},
    {"And back into files, again.0.et to again.3.et:", "orrery convert et ring.orr -o again", 0},
    {"One rank as JSON lines:", "orrery convert et ring.orr --ranks 2 -o two.jsonl", 0},
    {"Changed with a text tool, and back:",
     "sed s/65536/1048576/ two.jsonl | orrery convert et - -o two.et", 0},
    {"A file as the tools of July 2023 read it, compressed:",
     "orrery convert et ring.0.et --schema 0.0.3 -o old.et.gz", 0},
    {0},
};

/* ---- what OUT means ---- */

typedef enum form { FORM_PREFIX, FORM_ET, FORM_EG, FORM_JSON, FORM_JSONL, FORM_SET } form;

/* OUT, and where in it the number of a rank goes. */
typedef struct target {
    const char *path;
    form form;
    size_t stem; /* length without the ending */
} target;

static const struct {
    const char *tail;
    form form;
} endings[] = {
    {".et", FORM_ET},       {".eg", FORM_EG},   {".json", FORM_JSON},
    {".jsonl", FORM_JSONL}, {".orr", FORM_SET},
};

static bool ends_in(const char *s, size_t len, const char *tail)
{
    const size_t n = strlen(tail);
    return len > n && memcmp(s + len - n, tail, n) == 0;
}

static target target_of(const char *path)
{
    const size_t whole = strlen(path);
    const size_t packing = ends_in(path, whole, ".gz") ? 3 : ends_in(path, whole, ".zst") ? 4 : 0;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        if (ends_in(path, whole - packing, endings[i].tail))
            return (target){path, endings[i].form, whole - packing - strlen(endings[i].tail)};
    }
    return (target){path, strcmp(path, "-") == 0 ? FORM_ET : FORM_PREFIX, whole};
}

static bool is_json(form f)
{
    return f == FORM_JSON || f == FORM_JSONL;
}

static orr_code check_target(const cli_context *c, const target *to, orr_error *err)
{
    const bool picks_schema = cli_given(c, "schema") || cli_flag(c, "same-schema");
    if (to->stem == 0 || to->path[to->stem - 1] == '/')
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "'%s' names a folder: add what the files' names begin with", to->path);
    if (cli_given(c, "schema") && cli_flag(c, "same-schema"))
        return orr_fail(err, ORR_EUSAGE, NULL, "--schema and --same-schema exclude each other");
    if (picks_schema && (is_json(to->form) || to->form == FORM_SET))
        return orr_fail(err, ORR_EUSAGE, NULL, "only .et files have generations; '%s' is none",
                        to->path);
    if (cli_flag(c, "compress") && to->form != FORM_SET)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "--compress is for .orr files; let '%s' end in .gz or .zst", to->path);
    if (to->form == FORM_SET && to->path[to->stem + strlen(".orr")])
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "a .orr file is compressed with --compress, not by its name");
    return ORR_OK;
}

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

static orr_code keep_ranks(const cli_context *c, orr_set *s, orr_error *err)
{
    const char *text = cli_text(c, "ranks");
    const uint32_t count = orr_set_rank_count(s);
    uint32_t first, last;
    if (!text)
        return ORR_OK;
    if (!read_range(text, &first, &last))
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "--ranks '%s' is neither a rank nor a range such as 0-3", text);
    if (last >= count)
        return orr_fail(err, ORR_EUSAGE, NULL, "--ranks %s: '%s' ends with rank %" PRIu32, text,
                        c->args[1], count - 1);
    return orr_set_keep(s, first, last - first + 1, err);
}

/* ---- writing ---- */

static orr_write_options write_options(const cli_context *c, const target *to)
{
    orr_write_options opt = {.same_schema = cli_flag(c, "same-schema")};
    const char *schema = cli_text(c, "schema");
    if (schema)
        orr_schema_find(orr_str_of(schema), &opt.schema);
    else if (to->form == FORM_EG && !opt.same_schema)
        opt.schema = ORR_SCHEMA_EG;
    return opt;
}

static orr_code write_trace(const cli_context *c,
                            const orr_trace *t,
                            uint64_t shift,
                            const target *to,
                            const char *path,
                            orr_error *err)
{
    if (is_json(to->form)) {
        const orr_view_json_options opt = {
            .form = to->form == FORM_JSONL ? ORR_VIEW_JSONL : ORR_VIEW_JSON, .id_shift = shift};
        return orr_view_json(t, path, &opt, err);
    }
    orr_write_options opt = write_options(c, to);
    opt.id_shift = shift;
    return orr_trace_write(t, path, &opt, err);
}

static orr_code write_rank(const cli_context *c,
                           const orr_set *s,
                           uint32_t rank,
                           const target *to,
                           const char *path,
                           orr_error *err)
{
    const orr_trace *t;
    orr_trace *owned;
    orr_code code = orr_set_rank_trace(s, rank, &t, &owned, err);
    if (!code)
        code = write_trace(c, t, orr_set_id_shift(s, rank), to, path, err);
    orr_trace_destroy(owned);
    return code;
}

/* OUT with the rank in front of its ending, for every rank: out.jsonl becomes out.0.jsonl, out.1.jsonl. */
static orr_code write_ranks(const cli_context *c,
                            const orr_set *s,
                            const target *to,
                            orr_error *err)
{
    orr_code code = ORR_OK;
    for (uint32_t r = 0; r < orr_set_rank_count(s) && !code; r++) {
        char path[4096];
        const int n = snprintf(path, sizeof path, "%.*s.%" PRIu32 "%s", (int)to->stem, to->path, r,
                               to->path + to->stem);
        if (n < 0 || (size_t)n >= sizeof path)
            return orr_fail(err, ORR_EUSAGE, NULL, "the output's name is longer than 4,000 bytes");
        code = write_rank(c, s, r, to, path, err);
    }
    return code;
}

static orr_code write_set(const cli_context *c, const orr_set *s, const target *to, orr_error *err)
{
    const bool is_stdout = strcmp(to->path, "-") == 0;
    if (to->form == FORM_SET)
        return orr_set_save(s, to->path,
                            &(orr_set_save_options){.compress = cli_flag(c, "compress")}, err);
    if (to->form == FORM_PREFIX) {
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

/* ---- kinds ---- */

/* The names that were written, and how many ranks there are. */
static void report(const cli_context *c, const orr_set *s, const target *to)
{
    const uint32_t ranks = orr_set_rank_count(s), distinct = orr_set_class_count(s);
    const bool is_prefix = to->form == FORM_PREFIX;
    const char *tail = !is_prefix                                     ? to->path + to->stem
                       : write_options(c, to).schema == ORR_SCHEMA_EG ? ".eg"
                                                                      : ".et";
    if (strcmp(to->path, "-") == 0)
        return;
    if (to->form == FORM_SET || (ranks == 1 && !is_prefix))
        cli_note(c, "%s", to->path);
    else
        cli_note(c, "%.*s.0%s", (int)to->stem, to->path, tail);
    if (to->form != FORM_SET && ranks > 1)
        cli_note(c, " to %.*s.%" PRIu32 "%s", (int)to->stem, to->path, ranks - 1, tail);
    cli_note(c, ": %" PRIu32 " rank%s, %" PRIu32 " distinct\n", ranks, ranks == 1 ? "" : "s",
             distinct);
}

static orr_code convert_et(cli_context *c, orr_error *err)
{
    const orr_set_options opt = {.read.leniency =
                                     cli_flag(c, "lenient") ? ORR_KEEP_UNKNOWN : ORR_STRICT,
                                 .threads = (unsigned)cli_count(c, "threads")};
    const target to = target_of(cli_text(c, "output"));
    orr_set *s;
    orr_code code = check_target(c, &to, err);
    if (code || (code = orr_set_open(c->args[1], &opt, &s, err)))
        return code;
    code = keep_ranks(c, s, err);
    if (!code)
        code = write_set(c, s, &to, err);
    if (!code)
        report(c, s, &to);
    orr_set_close(s);
    return code;
}

static const kind kinds[] = {
    {"et", convert_et},
};

static orr_code convert_run(cli_context *c, orr_error *err)
{
    const char *near = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, c->args[0]) == 0)
            return kinds[i].run(c, err);
        near = cli_nearer(c->args[0], near, kinds[i].name);
    }
    if (near)
        return orr_fail(err, ORR_EUSAGE, NULL, "no kind '%s'; did you mean '%s'?", c->args[0],
                        near);
    return orr_fail(err, ORR_EUSAGE, NULL, "no kind '%s'; there is: et", c->args[0]);
}

const cli_command cli_cmd_convert = {
    .name = "convert",
    .summary = "turn traces from one form into another",
    .description =
        "IN is any trace: .et of any generation, JSON, a set; plain or compressed.  The ending of OUT says what "
        "is written: .orr one file for all ranks; .et one trace, .eg one of early 2023; .json or .jsonl the same as "
        "text; behind all but .orr may stand .gz or .zst.  Where IN has several ranks, the number of the rank goes "
        "in front of the ending.  Any other OUT is what file names begin with: OUT.0.et, OUT.1.et and so on.  "
        "Nothing in a trace is lost on the way.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-check(1), orrery-gen(1), orrery-view(1)",
    .run = convert_run,
};
