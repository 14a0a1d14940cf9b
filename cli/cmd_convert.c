/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_convert.c - orrery convert: from one form of a workload to another.
 *
 * What there is to convert is one table, `kinds`: a new converter is a row there.  A kind makes the traces; which
 * ranks are kept and what is written is the same for all.  `et` is the first: any trace, in any form we read. */
#include "convert.h"

#include <inttypes.h>
#include <string.h>

static const cli_option options[] = {
    {"output", 'o', "OUT", "output file; its ending selects the format", .required = true},
    {"ranks", 'r', "A-B", "only these ranks (or one, A); renumbered from 0 in the output"},
    {"npus", 'n', "N", "text: number of ranks", CLI_COUNT, 1, 1 << 20},
    {"passes", 0, "N", "text: number of training passes", CLI_COUNT, 0, 1 << 24, "1"},
    {"dims", 0, "DIMS", "text: dimensions of the network: their number, or sizes such as 8x4"},
    {"updates", 0, NULL, "text: add the update time as a compute node after each collective"},
    {"frequency", 0, "MHZ", "flexflow: run times in cycles of this clock instead of microseconds",
     CLI_COUNT, 1, 1 << 20},
    {"world-size", 0, "N", "fx, export: number of ranks, when the input does not say", CLI_COUNT, 1,
     1 << 24},
    {"hardware", 0, "NAME",
     "fx, export: compute times of this chip ('orrery gemm --list-hardware')"},
    {"dim", 0, "S=N,...", "export: values of symbolic sizes, such as s0=8,s1=128"},
    {"model", 0, "NAME", "export: program name, when the archive has several"},
    {"rank", 0, "N", "pytorch: rank of this trace", CLI_COUNT, 0, (1 << 20) - 1},
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
    {"KIND", "kind of the input: et, text, flexflow, pytorch, fx, export or goal", CLI_ONCE},
    {"IN", "et: a file, a prefix P of P.0.et, P.1.et, ..., a directory, or a .orr; else a file",
     CLI_ONCE},
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

orr_code cli_keep_ranks(const cli_context *c, orr_set *s, orr_error *err)
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

/* ---- kinds ---- */

static orr_code et_make(cli_context *c, orr_set **out, orr_error *err)
{
    const orr_read_options read = {
        .size = sizeof read, .leniency = cli_flag(c, "lenient") ? ORR_KEEP_UNKNOWN : ORR_STRICT};
    const orr_set_options opt = {
        .size = sizeof opt, .read = &read, .threads = (unsigned)cli_count(c, "threads")};
    return orr_set_open(c->args[1], &opt, out, err);
}

static const char *const et_options[] = {"same-schema", "lenient", NULL};
static const cli_converter convert_et = {"et", et_options, et_make, NULL};

static const cli_converter *const kinds[] = {
    &convert_et,     &cli_convert_text,   &cli_convert_flexflow, &cli_convert_pytorch,
    &cli_convert_fx, &cli_convert_export, &cli_convert_goal};
enum { KINDS = sizeof kinds / sizeof *kinds };

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
        return orr_fail(err, ORR_EUSAGE, NULL, "no kind '%s'; did you mean '%s'?", name, near);
    return orr_fail(err, ORR_EUSAGE, NULL,
                    "no kind '%s'; there are: et, text, flexflow, pytorch, fx, export, goal", name);
}

static bool takes(const cli_converter *k, const char *option)
{
    for (const char *const *o = k->options; *o; o++) {
        if (strcmp(*o, option) == 0)
            return true;
    }
    return false;
}

/* An option of another kind would do nothing, which is never what was meant. */
static orr_code check_options(const cli_context *c, const cli_converter *kind, orr_error *err)
{
    for (size_t i = 0; i < KINDS; i++) {
        for (const char *const *o = kinds[i]->options; *o; o++) {
            if (cli_given(c, *o) && !takes(kind, *o))
                return orr_fail(err, ORR_EUSAGE, NULL, "--%s has no effect on kind '%s'", *o,
                                kind->name);
        }
    }
    return ORR_OK;
}

static orr_code convert_run(cli_context *c, orr_error *err)
{
    const cli_target to = cli_target_of(cli_text(c, "output"));
    const cli_converter *kind;
    orr_set *s;
    orr_code code = find_kind(c->args[0], &kind, err);
    if (code || (code = check_options(c, kind, err)))
        return code;
    if (kind->run)
        return kind->run(c, err);
    if ((code = cli_target_check(c, &to, err)) || (code = kind->make(c, &s, err)))
        return code;
    code = cli_keep_ranks(c, s, err);
    if (!code)
        code = cli_target_write(c, s, &to, err);
    if (!code)
        cli_target_report(c, s, &to);
    orr_set_close(s);
    return code;
}

const cli_command cli_cmd_convert = {
    .name = "convert",
    .summary = "convert workloads to traces, and traces to other formats",
    .description =
        "KIND et: IN is any trace: .et of any version, JSON, a set; plain or compressed.  KIND text: IN is a table "
        "of layers, the text workload of ASTRA-sim 1.0.  KIND flexflow: IN is a task graph of FlexFlow in the DOT "
        "language.  KIND pytorch: IN is a PyTorch trace of one rank, linked by 'orrery link' or chakra_trace_link, or a "
        "host trace alone.  KIND fx: IN is a training step captured from PyTorch by 'orrery capture'; the output has all ranks of the "
        "job.  KIND export: IN is a program saved by torch.export (.pt2), or the JSON in it.  KIND goal: IN is a GOAL schedule, text or binary, or any trace; OUT is a schedule (text, or binary "
        "when it ends in .bin) or, by its ending, traces.\n\n"
        "The ending of OUT selects the format: .orr one file for all ranks; .et one trace, .eg one of early 2023; "
        ".json or .jsonl JSON; all but .orr may be followed by .gz or .zst.  With several ranks, "
        "the rank number goes before the ending.  Any other OUT is a file name prefix: OUT.0.et, "
        "OUT.1.et and so on.  Conversion between trace formats is lossless.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-check(1), orrery-gen(1), orrery-run(1), orrery-view(1)",
    .run = convert_run,
};
