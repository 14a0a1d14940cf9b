/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_link.c - orrery link: merge PyTorch's host and device traces, of one rank or of all.
 *
 * The extension of OUT selects the output: .json is the linked trace in the format of
 * chakra_trace_link, anything else a trace or a set that can be simulated.  With --compat it
 * behaves like that program. */
#include "command.h"
#include "convert.h"

#include <orrery/check.h>
#include <orrery/lab/compat.h>
#include <orrery/lab/link.h>
#include <orrery/view.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const cli_option options[] = {
    {"output", 'o', "OUT", "output file; its ending selects the format", .required = true,
     .kind = CLI_OUTPUT},
    {"ranks", 'r', "DIR", "link all ranks of a job: all host and device traces in this folder"},
    {"step", 0, "N", "only this profiler step (ProfilerStep#N), or all", .fallback = "all"},
    {"host-scale", 0, "FACTOR", CLI_HOST_SCALE_HELP, .fallback = "auto"},
    {"timeline", 0, "FILE", "write the measured timeline, for Perfetto", .kind = CLI_OUTPUT},
    {"strict", 0, NULL, "treat any problem with the input as an error"},
    {"compat", 0, NULL, "exactly as chakra_trace_link, including its defects"},
    {"compress", 'z', NULL, "compress a .orr file"},
    {"threads", 'j', "N", "threads; 0: one per core", CLI_COUNT, 0, 1024, "0"},
    {"json", 0, NULL, "print one JSON object"},
    {0},
};

static const cli_argument arguments[] = {
    {"FILE", "a host trace, a device trace, or both; in any order, compressed or not", CLI_ANY},
    {0},
};

static const cli_example examples[] = {
    {"Merge the two traces of a rank:", "orrery link host.json device.json -o rank.et", 0},
    {"", "orrery info rank.et", 0},
    {"The same in the format of chakra_trace_link:",
     "orrery link host.json device.json -o linked.json", 0},
    {"Exactly what chakra_trace_link writes:",
     "orrery link --compat host.json device.json -o linked.json", 0},
    {"A device trace alone, with a timeline:",
     "orrery link device.json --timeline run.json -o device.et", 0},
    {"All ranks of a job, whatever the file names:", "orrery link --ranks traces -o job.orr", 0},
    {0},
};

/* ---- what the user asked for ---- */

static orr_code read_step(const cli_context *c, orr_link_options *opt, orr_error *err)
{
    const char *text = cli_text(c, "step");
    char *end;
    if (strcmp(text, "all") == 0)
        return ORR_OK;
    const long long n = strtoll(text, &end, 10);
    if (end == text || *end || n < 0)
        return cli_misuse(err, "--step '%s' is neither a number nor 'all'", text);
    opt->has_step = true;
    opt->step = n;
    return ORR_OK;
}

static orr_code check_usage(const cli_context *c, const cli_target *to, orr_error *err)
{
    const bool has_ranks = cli_given(c, "ranks");
    if (has_ranks && c->arg_count)
        return cli_misuse(err, "--ranks DIR and files cannot be used together");
    if (!has_ranks && !c->arg_count)
        return cli_misuse(err, "no files: give a host and a device trace, or --ranks DIR");
    if (c->arg_count > 2)
        return cli_misuse(err,
                          "more than two files: the ranks of a job are linked with --ranks DIR");
    if (cli_flag(c, "compat") && (c->arg_count != 2 || cli_given(c, "timeline") ||
                                  cli_given(c, "step") || cli_given(c, "host-scale")))
        return cli_misuse(err, "--compat takes a host trace, a device trace and nothing else");
    if (cli_given(c, "host-scale") && to->form == CLI_FORM_JSON)
        return cli_misuse(err,
                          "--host-scale is for traces; a linked .json keeps the recorded times");
    if (cli_flag(c, "compress") && to->form != CLI_FORM_SET)
        return cli_misuse(err, "--compress is for .orr files; give '%s' the ending .gz or .zst",
                          to->path);
    if (cli_flag(c, "json") && strcmp(to->path, "-") == 0)
        return cli_misuse(err, "--json and -o - both write to standard output");
    return ORR_OK;
}

/* ---- words ---- */

static orr_link_counts sum_counts(const orr_link_job *job)
{
    orr_link_counts sum = {{0}};
    for (uint32_t i = 0; i < orr_link_job_rank_count(job); i++) {
        for (int k = 0; k < ORR_LINK_COUNTERS; k++)
            sum.of[k] += orr_link_job_rank(job, i)->counts.of[k];
    }
    return sum;
}

static void say_counts(const cli_context *c, const orr_link_counts *counts)
{
    for (int k = 0; k < ORR_LINK_COUNTERS; k++) {
        const orr_link_counter counter = (orr_link_counter)k;
        if (counts->of[k])
            cli_note(c, "%10" PRIu64 "  %s%s\n", counts->of[k],
                     orr_link_counter_is_trouble(counter) ? "warning: " : "",
                     orr_link_counter_help(counter));
    }
}

/* Nodes whose parent does not precede them, by their ids in the input.  If both traces are linked,
 * they are found in the host trace; a host trace alone is used as it is, and the conversion finds
 * them. */
static const orr_pytorch_later *later_of(const orr_link_rank *r, uint64_t *count)
{
    const bool is_merged = r->host && r->device;
    *count = is_merged ? r->counts.of[ORR_LINK_LATER_PARENTS] : r->report.parents_later;
    return is_merged ? r->counts.later_nodes : r->report.later_nodes;
}

static void say_later(const cli_context *c,
                      const char *path,
                      const orr_pytorch_later *nodes,
                      uint64_t count)
{
    char text[CLI_NODES_ROOM];
    if (count)
        cli_note(c, "%s: warning: parent does not precede its child, as in a cycle: node%s %s\n",
                 path, count == 1 ? "" : "s", cli_nodes_text(nodes, count, text));
}

static void say_other_kinds(const cli_context *c, const orr_link_job *job)
{
    for (uint32_t i = 0; i < orr_link_job_rank_count(job); i++) {
        const orr_link_rank *r = orr_link_job_rank(job, i);
        if (r->counts.other_kinds[0])
            cli_note(c, "%s: unknown categories: %s\n", r->device, r->counts.other_kinds);
    }
}

static void say_later_nodes(const cli_context *c, const orr_link_job *job)
{
    for (uint32_t i = 0; i < orr_link_job_rank_count(job); i++) {
        const orr_link_rank *r = orr_link_job_rank(job, i);
        uint64_t count;
        const orr_pytorch_later *nodes = later_of(r, &count);
        say_later(c, r->host ? r->host : r->device, nodes, count);
    }
}

static void put_later(orr_json_writer *w, const orr_pytorch_later *nodes, uint64_t count)
{
    orr_json_put_array(w, "later_nodes");
    for (uint64_t i = 0; i < count && i < ORR_PYTORCH_SHOWN; i++) {
        orr_json_put_row(w, ORR_U("node", nodes[i].node), ORR_U("parent", nodes[i].parent));
    }
    orr_json_end_array(w);
}

/* Oddities found while making the traces. */
static const struct {
    const char *name, *help;
    size_t at;
} odd[] = {
#define ODD(field, help)                                  \
    {                                                     \
#field, help, offsetof(orr_pytorch_report, field) \
    }
    ODD(collectives, "collectives"),
    ODD(messages, "messages"),
    ODD(one_sided,
        "kernels of DeepEP, NVSHMEM and similar libraries: communication with its measured time"),
    ODD(kinds_unknown, "warning: communication of unknown type"),
    ODD(sizes_unknown, "warning: communication without a size"),
    ODD(peers_unknown, "warning: messages without a peer"),
    ODD(parents_missing, "warning: nodes with a missing parent"),
    ODD(parents_later, "warning: nodes whose parent comes later; parent dropped"),
    ODD(dependencies_missing, "warning: dependencies on missing nodes"),
    ODD(dependencies_refused, "warning: dependencies that contradict the timestamps"),
    ODD(dependencies_circular, "warning: cyclic dependencies, dropped"),
#undef ODD
};
enum { ODDS = sizeof odd / sizeof *odd, FIRST_WARNING = 3 };

static uint64_t sum_odd(const orr_link_job *job, int k)
{
    uint64_t sum = 0, v;
    for (uint32_t i = 0; i < orr_link_job_rank_count(job); i++) {
        memcpy(&v, (const char *)&orr_link_job_rank(job, i)->report + odd[k].at, sizeof v);
        sum += v;
    }
    return sum;
}

/* With --strict an oddity is an error, before anything is written. */
static orr_code check_odd(const cli_context *c, const orr_link_job *job, orr_error *err)
{
    const size_t word = sizeof "warning: " - 1;
    for (int k = FIRST_WARNING; k < ODDS && cli_flag(c, "strict"); k++) {
        const uint64_t n = sum_odd(job, k);
        if (n)
            return orr_fail(err, ORR_EINPUT, NULL, "%s: %" PRIu64 " (an error with --strict)",
                            odd[k].help + word, n);
    }
    return ORR_OK;
}

static void say_ranks(const cli_context *c, const orr_link_job *job)
{
    bool has_host = false, has_device = false;
    for (uint32_t i = 0; i < orr_link_job_rank_count(job); i++) {
        has_host |= orr_link_job_rank(job, i)->host != NULL;
        has_device |= orr_link_job_rank(job, i)->device != NULL;
    }
    for (uint32_t i = 0; i < orr_link_job_rank_count(job); i++) {
        const orr_link_rank *r = orr_link_job_rank(job, i);
        cli_note(c, "rank %" PRIu32 "%s: %s%s%s", r->rank,
                 r->is_guessed ? " (in order of file names)" : "", r->host ? r->host : "",
                 r->host && r->device ? " + " : "", r->device ? r->device : "");
        if (r->is_aligned)
            cli_note(c, "; clock %+.3f us, by %" PRIu64 " collectives", (double)r->clock_ns / 1000,
                     r->shared);
        if ((has_host && !r->host) || (has_device && !r->device))
            cli_note(c, "; warning: no %s trace, unlike other ranks", r->host ? "device" : "host");
        cli_note(c, "\n");
    }
}

static void say_job(const cli_context *c, const orr_link_job *job)
{
    const orr_link_counts sum = sum_counts(job);
    if (orr_link_job_rank_count(job) > 1)
        say_ranks(c, job);
    say_counts(c, &sum);
    for (int k = 0; k < ODDS; k++) {
        const uint64_t n = sum_odd(job, k);
        if (n)
            cli_note(c, "%10" PRIu64 "  %s\n", n, odd[k].help);
    }
    if (orr_link_job_inferred(job))
        cli_note(c, "%10" PRIu64 "  collectives with a group inferred by comparing ranks\n",
                 orr_link_job_inferred(job));
    if (orr_link_job_unknown(job))
        cli_note(c,
                 "%10" PRIu64 "  warning: collectives without a recorded group, assumed to span "
                 "all ranks; link all ranks at once to find it: orrery link --ranks "
                 "FOLDER\n",
                 orr_link_job_unknown(job));
    cli_host_range host = {.ranks = 0};
    for (uint32_t i = 0; i < orr_link_job_rank_count(job); i++)
        cli_host_add(&host, &orr_link_job_rank(job, i)->report.host);
    cli_host_note(c, &host);
    bool has_times = false;
    for (uint32_t i = 0; i < orr_link_job_rank_count(job); i++)
        has_times |= orr_link_job_rank(job, i)->device != NULL;
    if (!has_times)
        cli_note(c, "warning: a host trace alone has no times: a run of it takes none\n");
    say_other_kinds(c, job);
    say_later_nodes(c, job);
}

static void put_counts(orr_json_writer *w, const orr_link_counts *counts)
{
    for (int k = 0; k < ORR_LINK_COUNTERS; k++)
        orr_json_put_u64(w, orr_link_counter_name((orr_link_counter)k), counts->of[k]);
}

static void put_rank(orr_json_writer *w, const orr_link_rank *r)
{
    uint64_t later;
    const orr_pytorch_later *nodes = later_of(r, &later);
    orr_json_begin_object(w);
    orr_json_put_fields(w, ORR_U("rank", r->rank), ORR_B("is_guessed", r->is_guessed),
                        ORR_T("host", r->host), ORR_T("device", r->device),
                        ORR_I("clock_ns", r->clock_ns), ORR_U("clock_collectives", r->shared));
    put_counts(w, &r->counts);
    cli_host_json(w, &r->report.host);
    put_later(w, nodes, later);
    orr_json_end_object(w);
}

static void print_job(const orr_link_job *job, const orr_check_report *report)
{
    const orr_link_counts sum = sum_counts(job);
    cli_json j;
    orr_json_writer *w = cli_json_open(&j, "orrery link");
    orr_json_put_array(w, "ranks");
    for (uint32_t i = 0; i < orr_link_job_rank_count(job); i++)
        put_rank(w, orr_link_job_rank(job, i));
    orr_json_end_array(w);
    put_counts(w, &sum);
    for (int k = 0; k < ODDS; k++)
        orr_json_put_u64(w, odd[k].name, sum_odd(job, k));
    orr_json_put_u64(w, "groups_inferred", orr_link_job_inferred(job));
    orr_json_put_u64(w, "groups_unknown", orr_link_job_unknown(job));
    orr_json_put_array(w, "mismatches");
    for (size_t i = 0; report && i < report->finding_count; i++)
        orr_json_text(w, report->findings[i].text);
    orr_json_end_array(w);
    cli_json_close(&j);
}

/* ---- writing ---- */

static orr_code write_timeline(const cli_context *c, const orr_link_job *job, orr_error *err)
{
    orr_timeline *t;
    orr_code code;
    if (!cli_given(c, "timeline"))
        return ORR_OK;
    if ((code = orr_link_job_timeline(job, &t, err)))
        return code;
    code = orr_view_chrome(t, cli_text(c, "timeline"), err);
    orr_timeline_destroy(t);
    return code;
}

/* Write the linked traces as JSON: OUT, or one file per rank with the rank before the extension. */
static orr_code write_linked(const orr_link_job *job, const cli_target *to, orr_error *err)
{
    const uint32_t count = orr_link_job_rank_count(job);
    orr_code code = ORR_OK;
    if (count == 1)
        return orr_link_write(orr_link_job_link(job, 0), to->path, err);
    for (uint32_t i = 0; i < count && !code; i++) {
        char path[4096];
        const int n = snprintf(path, sizeof path, "%.*s.%" PRIu32 "%s", (int)to->stem, to->path, i,
                               to->path + to->stem);
        if (n < 0 || (size_t)n >= sizeof path)
            return cli_misuse(err, "the output name is longer than 4,000 bytes");
        code = orr_link_write(orr_link_job_link(job, i), path, err);
    }
    return code;
}

static orr_code write_traces(const cli_context *c,
                             const orr_set *s,
                             const cli_target *to,
                             orr_error *err)
{
    if (to->form == CLI_FORM_SET)
        return orr_set_save(s, to->path,
                            &(orr_set_save_options){.size = sizeof(orr_set_save_options),
                                                    .compress = cli_flag(c, "compress")},
                            err);
    if (to->form == CLI_FORM_JSONL && orr_set_rank_count(s) == 1)
        return orr_view_json(
            orr_set_trace(s, 0), to->path,
            &(orr_view_json_options){.size = sizeof(orr_view_json_options), .form = ORR_VIEW_JSONL},
            err);
    if (to->form == CLI_FORM_ET && orr_set_rank_count(s) == 1)
        return orr_trace_write(orr_set_trace(s, 0), to->path, NULL, err);
    if (to->form != CLI_FORM_PREFIX)
        return cli_misuse(err, "all ranks in one file need a .orr file, not '%s'", to->path);
    return orr_set_write_files(s, to->path, &(orr_write_options){.size = sizeof(orr_write_options)},
                               (unsigned)cli_count(c, "threads"), err);
}

/* Check that the ranks are consistent with each other.  Oddities of single ranks are counted
 * already. */
static orr_code compare_ranks(cli_context *c,
                              const orr_set *s,
                              orr_check_report **out,
                              orr_error *err)
{
    orr_code code = orr_set_rank_count(s) > 1 ? orr_check_set(s, NULL, out, err) : ORR_OK;
    if (code || !*out)
        return code;
    for (size_t i = 0; i < (*out)->finding_count; i++)
        cli_note(c, "%s\n", (*out)->findings[i].text);
    return ORR_OK;
}

static orr_code write_job(cli_context *c, orr_link_job *job, const cli_target *to, orr_error *err)
{
    orr_check_report *report = NULL;
    const orr_set *s;
    orr_code code = ORR_OK;
    if (to->form == CLI_FORM_JSON) {
        code = write_linked(job, to, err);
    } else if (!(code = orr_link_job_set(job, &s, err)) && !(code = check_odd(c, job, err)) &&
               !(code = write_traces(c, s, to, err))) {
        say_job(c, job);
        code = compare_ranks(c, s, &report, err);
    }
    if (!code)
        code = write_timeline(c, job, err);
    if (!code && to->form == CLI_FORM_JSON)
        say_job(c, job);
    if (!code && cli_flag(c, "json"))
        print_job(job, report);
    orr_check_report_destroy(report);
    return code;
}

static orr_code link_compat(cli_context *c, orr_error *err)
{
    orr_link *l;
    const orr_compat *old;
    orr_code code = orr_compat_find(ORR_RULES_LINK, NULL, &old, err);
    if (code)
        return code;
    const orr_link_options opt = {.rules = old->link, .is_strict = cli_flag(c, "strict")};
    if ((code = orr_link_open(c->args[0], c->args[1], &opt, &l, err)))
        return code;
    if (!(code = orr_link_write(l, cli_text(c, "output"), err))) {
        const orr_link_counts *counts = orr_link_counts_of(l);
        const uint64_t later = counts->of[ORR_LINK_LATER_PARENTS];
        say_counts(c, counts);
        say_later(c, c->args[0], counts->later_nodes, later);
        if (cli_flag(c, "json")) {
            cli_json j;
            orr_json_writer *w = cli_json_open(&j, "orrery link");
            put_counts(w, counts);
            put_later(w, counts->later_nodes, later);
            cli_json_close(&j);
        }
    }
    orr_link_close(l);
    return code;
}

static orr_code link_run(cli_context *c, orr_error *err)
{
    const cli_target to = cli_target_of(cli_text(c, "output"));
    orr_link_options opt = {.is_strict = cli_flag(c, "strict"),
                            .threads = (unsigned)cli_count(c, "threads")};
    const char *folder = cli_text(c, "ranks");
    orr_link_job *job;
    orr_code code = check_usage(c, &to, err);
    if (code || (code = read_step(c, &opt, err)) ||
        (code = cli_host_scale(c, &opt.host_scale, err)))
        return code;
    if (cli_flag(c, "compat"))
        return link_compat(c, err);
    const char *const *paths = folder ? &folder : (const char *const *)c->args;
    if ((code = orr_link_job_open(paths, folder ? 1 : (size_t)c->arg_count, &opt, &job, err)))
        return code;
    code = write_job(c, job, &to, err);
    orr_link_job_close(job);
    return code;
}

const cli_command cli_cmd_link = {
    .name = "link",
    .summary = "merge PyTorch host and device traces",
    .description =
        "A rank of a PyTorch job is recorded twice: the observer writes which operators ran on which tensors (the execution "
        "trace of the host), the profiler writes when they ran and what they launched on the device (the Kineto trace).  This "
        "command merges the two, for one rank or for all.  Type and rank of each file are detected from its content.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-check(1), orrery-convert(1), orrery-run(1)",
    .run = link_run,
};
