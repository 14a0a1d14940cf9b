/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_nccl.c - orrery nccl: convert Nsight Systems exports of an NCCL job to a GOAL schedule. */
#include "command.h"

#include <orrery/lab/compat.h>
#include <orrery/lab/nccl.h>
#include <orrery/lab/units.h>

#include <inttypes.h>
#include <string.h>

static const cli_option options[] = {
    {"output", 'o', "FILE", "output file; - is standard output; default: print figures only",
     .kind = CLI_OUTPUT},
    {"simple", 's', "FILE", "NPKit's timings of protocol Simple (JSON)"},
    {"ll", 'l', "FILE", "NPKit's timings of protocol LL (JSON)"},
    {"merge", 'm', NULL, "one stream per GPU where no kernels overlap"},
    {"events", 0, "FILE", "also write the schedule of whole calls", .kind = CLI_OUTPUT},
    {"log", 0, "FILE", "NCCL's log, for communicators without markers"},
    {"seed", 0, "N", "draw timings from the samples with this seed; default: use means", CLI_COUNT},
    {"tag-bits", 0, "32|64", "bits of tags; 32: reuse tags if needed", .fallback = "64"},
    {"id-width", 0, "N", "digits of a message's number in tags", CLI_COUNT, 1, 18},
    {"context-width", 0, "N", "digits of an operation's number in tags", CLI_COUNT, 1, 18},
    {"contexts", 0, "FILE", "with --compat: contexts in tags (CSV: communicator, call, context)"},
    {"plan", 0, "FILES",
     "write collectives by these plans of MSCCL (XML) or MSCCL++ (JSON), comma-separated"},
    {"keep-unmatched", 0, NULL, "keep calls that are missing on some of their ranks"},
    {"memory", 0, "SIZE", "memory for rows before GPUs are read one at a time",
     .fallback = "512MiB"},
    {"compat", 0, NULL, "exactly as nccl_generator_v2, byte for byte"},
    {"json", 0, NULL, "print one JSON object"},
    {0},
};

static const cli_argument arguments[] = {
    {"EXPORT", "an .sqlite file of 'nsys export', or a folder of them", CLI_SOME},
    {0},
};

static const cli_example examples[] = {
    {"Every export of a job, with measured reductions and copies:",
     "orrery nccl traces -s simple.json -l ll.json -o job.goal", 0},
    {"One stream per GPU, also the schedule of calls, figures as JSON:",
     "orrery nccl traces -m --events calls.goal -o job.goal --json", 0},
    {"As the old generator wrote it:",
     "orrery nccl traces -s simple.json -l ll.json --compat -o old.goal", 0},
    {0},
};

/* ---- reporting ---- */

static void remark(const cli_context *c, uint64_t count, const char *one, const char *many)
{
    if (count)
        cli_note(c, "%" PRIu64 " %s\n", count, count == 1 ? one : many);
}

void cli_nccl_remarks(const cli_context *c, const orr_nccl_report *r)
{
    if (r->is_inferred)
        cli_note(c, "communicators are not announced; inferred from the GPUs that use them\n");
    remark(c, r->by_time, "GPU's kernels were found by time, not by stream",
           "GPUs' kernels were found by time, not by stream");
    remark(c, r->left_out_calls,
           "call or message is left out: its details or its partners are missing",
           "calls or messages are left out: their details or partners are missing");
    remark(c, r->overlaps, "operation began before the previous one on its stream had ended",
           "operations began before the previous one on their stream had ended");
    if (r->most_tag >= UINT32_MAX)
        cli_note(c, "tags need more than 32 bits; --tag-bits 32 keeps them within\n");
    remark(c, r->unmatched, "message is unmatched", "messages are unmatched");
    remark(c, r->planned, "collective of a rank is written by a plan",
           "collectives of all ranks together are written by plans");
}

static void print_text(const orr_nccl_report *r)
{
    char a[4][ORR_UNIT_ROOM];
    printf("%u file%s, %s rows: %s calls of NCCL, %s kernels\n", r->files, r->files == 1 ? "" : "s",
           orr_count_text(r->rows, a[0]), orr_count_text(r->calls, a[1]),
           orr_count_text(r->kernels, a[2]));
    printf("%u rank%s, %u communicator%s%s\n", r->ranks, r->ranks == 1 ? "" : "s", r->communicators,
           r->communicators == 1 ? "" : "s", r->is_merged ? ", streams merged" : "");
    printf("%s operations, %s messages, %s between nodes\n", orr_count_text(r->operations, a[0]),
           orr_count_text(r->messages, a[1]), orr_bytes_text(r->bytes, a[2]));
}

static void print_json(const cli_context *c, const orr_nccl_report *r)
{
    const char *to = cli_text(c, "output");
    cli_json j;
    orr_json_writer *w = cli_json_open(&j, "orrery-nccl");
    orr_json_put_text(w, "output", to);
    orr_json_line(w, 2);
    orr_json_put_fields(w, ORR_U("files", r->files), ORR_U("rows", r->rows),
                        ORR_U("calls", r->calls), ORR_U("kernels", r->kernels),
                        ORR_U("gpus", r->gpus));
    orr_json_line(w, 2);
    orr_json_put_fields(w, ORR_U("ranks", r->ranks), ORR_U("communicators", r->communicators),
                        ORR_B("merged", r->is_merged), ORR_B("inferred", r->is_inferred));
    orr_json_line(w, 2);
    orr_json_put_fields(w, ORR_U("operations", r->operations), ORR_U("messages", r->messages),
                        ORR_U("message_bytes", r->bytes));
    orr_json_put_known(w, "largest_tag", to, r->most_tag); /* tags are assigned on writing */
    orr_json_line(w, 2);
    orr_json_put_fields(w, ORR_U("gpus_by_time", r->by_time),
                        ORR_U("calls_left_out", r->left_out_calls), ORR_U("overlaps", r->overlaps),
                        ORR_U("unmatched", r->unmatched));
    if (cli_given(c, "plan"))
        orr_json_put_u64(w, "planned", r->planned);
    cli_json_close(&j);
}

/* ---- the command ---- */

static orr_code read_options(const cli_context *c, orr_nccl_options *o, orr_error *err)
{
    orr_bytes memory = 0;
    const orr_code code = orr_bytes_parse(cli_text(c, "memory"), &memory, err);
    *o = (orr_nccl_options){
        .output = cli_text(c, "output"),
        .events = cli_text(c, "events"),
        .simple_table = cli_text(c, "simple"),
        .ll_table = cli_text(c, "ll"),
        .log = cli_text(c, "log"),
        .is_merged = cli_flag(c, "merge"),
        .allows_unmatched = cli_flag(c, "keep-unmatched"),
        .shows_progress = !c->quiet,
        .has_seed = cli_given(c, "seed"),
        .seed = cli_count(c, "seed"),
        .tag_bits = strcmp(cli_text(c, "tag-bits"), "32") == 0 ? 32 : 64,
        .id_width = (uint32_t)cli_count(c, "id-width"),
        .context_width = (uint32_t)cli_count(c, "context-width"),
        .contexts = cli_text(c, "contexts"),
        .plans = cli_text(c, "plan"),
        .memory = memory ? memory : 1,
    };
    if (code)
        return orr_because(err, code, "--memory");
    if (!cli_flag(c, "compat"))
        return ORR_OK;
    const orr_compat *old;
    const orr_code code2 = orr_compat_find(ORR_RULES_NCCL, "v2", &old, err);
    o->rules = code2 ? NULL : old->nccl;
    return code2;
}

static orr_code check_options(const cli_context *c, const orr_nccl_options *o, orr_error *err)
{
    if (o->rules && cli_given(c, "tag-bits"))
        return cli_misuse(err, "--compat uses the old tags; --tag-bits cannot be given");
    if (o->plans && o->rules)
        return cli_misuse(err, "--plan cannot be used with --compat");
    if (o->contexts && !o->rules)
        return cli_misuse(err, "--contexts needs --compat: other tags have none");
    if (o->id_width + o->context_width > 18)
        return cli_misuse(err, "--id-width and --context-width: more than 18 digits");
    return ORR_OK;
}

static bool is_stdout(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

static orr_code nccl_run(cli_context *c, orr_error *err)
{
    orr_nccl_options o;
    orr_nccl_report r;
    orr_code code;
    if ((code = read_options(c, &o, err)) || (code = check_options(c, &o, err)) ||
        (code = orr_nccl_convert((const char *const *)c->args, (size_t)c->arg_count, &o, &r, err)))
        return code;
    cli_nccl_remarks(c, &r);
    if (cli_given(c, "plan") && r.planned == 0)
        cli_note(c, "no collective matches a plan in kind, size and number of ranks\n");
    if (is_stdout(o.output) || is_stdout(o.events))
        return ORR_OK; /* the result has been written */
    if (cli_flag(c, "json"))
        print_json(c, &r);
    else
        print_text(&r);
    return ORR_OK;
}

const cli_command cli_cmd_nccl = {
    .name = "nccl",
    .summary = "convert Nsight exports of an NCCL job to a GOAL schedule",
    .description =
        "Reads the markers that an annotated NCCL, or NCCL from 2.22 on by itself, left in the exports of all ranks, finds the "
        "kernel of each call, and splits collectives into the messages that their algorithm and protocol send.  "
        "Every message that is sent is received: calls that were not profiled on all of their ranks are left out.\n\n"
        "Without timings, reductions and copies take no time.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-run(1), orrery-view(1)",
    .run = nccl_run,
};
