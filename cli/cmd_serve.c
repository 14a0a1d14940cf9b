/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_serve.c - orrery serve: the traces of ranks that answer requests with a language model
 * (serve.h). */
#include "base/text/text.h"
#include "command.h"

#include <orrery/lab/chip.h>
#include <orrery/lab/hardware.h>
#include <orrery/lab/machine.h>
#include <orrery/lab/serve.h>
#include <orrery/lab/units.h>

#include <inttypes.h>
#include <string.h>

enum { PATH_ROOM = 4096, INTERVAL_ROOM = 64 };

#define DEGREE(name, help_)                        \
    {                                              \
        name, 0, "N", help_, CLI_COUNT, 1, 1 << 22 \
    }
#define TOKENS(name, letter, help_)                             \
    {                                                           \
        name, letter, "N", help_, CLI_COUNT, 1, UINT32_MAX >> 1 \
    }

static const cli_option options[] = {
    {"output", 'o', "OUT", "a .orr file, or a prefix of .et files", .kind = CLI_OUTPUT},
    {"compress", 0, NULL, "compress the .orr file"},
    DEGREE("tp", "tensor parallel degree (1)"),
    DEGREE("pp", "pipeline stages (1)"),
    DEGREE("dp", "replicas, each with its own requests (1)"),
    DEGREE("ep", "expert parallel degree (1)"),
    DEGREE("cp", "context parallel degree, for prompts (1)"),
    DEGREE("decode-tp", "decode on separate ranks, with this tp"),
    DEGREE("decode-pp", "the same, with this pp"),
    DEGREE("decode-dp", "the same, with this dp"),
    DEGREE("decode-ep", "the same, with this ep"),
    {"phase", 0, "all|prefill|decode", "only this phase", .fallback = "all"},
    {"dtype", 0, "bf16|fp16|fp8|fp32", "data type of the weights", .fallback = "bf16"},
    {"kv-dtype", 0, "bf16|fp16|fp8|fp32", "data type of the KV caches", .fallback = "bf16"},
    {"requests", 'r', "FILE", "CSV or JSON lines: ours, Azure, Splitwise, Vidur, Mooncake, ..."},
    {"batch", 'b', "N",
     "without --requests: this many identical requests; default: one per replica", CLI_COUNT, 1,
     1 << 20},
    TOKENS("prompt-tokens", 'p', "prompt length (1024)"),
    TOKENS("output-tokens", 'n', "tokens generated per request (128)"),
    {"max-batch", 0, "N", "maximum number of sequences per iteration", CLI_COUNT, 1, 1 << 16,
     "256"},
    TOKENS("max-tokens", 0, "maximum number of tokens per iteration (no limit)"),
    TOKENS("chunk", 0, "chunked prefill: prompt tokens per iteration"),
    {"kv-block", 0, "N", "tokens per KV cache block", CLI_COUNT, 1, 1 << 16, "16"},
    {"software", 0, "NAME",
     "launch the kernels of this software: vllm, torch-eager, cuda-graph, ...", .fallback = "vllm"},
    {"sequence-parallel", 0, NULL, "all-gather and reduce-scatter instead of all-reduces"},
    {"context", 0, "ring|all-gather", "how cp ranks exchange keys and values", .fallback = "ring"},
    {"machine", 0, "MACHINE",
     "chip, memory and rates of this cluster ('orrery machine list'); ranks must fit"},
    {"hardware", 'w', "CHIP",
     "estimate with the measured kernels of this chip ('orrery chip list'); default h100"},
    {"ideal", 0, NULL, "estimate at the peak rates of the chip"},
    {"tflops", 0, "N", "estimate at this rate instead of a chip's (989; fp8: 1979)", CLI_COUNT, 1,
     1000000},
    {"memory-rate", 0, "RATE", "the same for memory (3.35TB/s)"},
    {"link-rate", 0, "RATE", "send bandwidth of a rank", .fallback = "450GB/s"},
    {"transfer-rate", 0, "RATE", "bandwidth for moving KV caches", .fallback = "50GB/s"},
    {"device-memory", 0, "SIZE", "memory per device; default: the machine's, the chip's, or 80GB"},
    {"kv-memory", 0, "SIZE", "memory for KV caches; default: 90 % of the device minus weights"},
    {"json", 0, NULL, "print one JSON object"},
    {0},
};

static const cli_argument arguments[] = {
    {"MODEL", "a name from 'orrery model --list', or a file", CLI_ONCE},
    {0},
};

static const cli_example examples[] = {
    {"32 prompts of 2,048 tokens, 16 tokens each, on eight ranks:",
     "orrery serve llama-3-70b --tp 8 -b 32 -p 2048 -n 16 -o serve.orr", 0},
    {"One decode step after 8,191 tokens:",
     "orrery serve llama-3-8b --phase decode -b 64 -p 8191 -n 1 -o step", 0},
    {"Requests from a file, with chunked prefill:",
     "orrery serve llama-3-8b -r requests.csv --chunk 512 -o requests.orr", 0},
    {"Prefill on four ranks, decode on two replicas of eight:",
     "orrery serve llama-3-70b --tp 4 --decode-tp 8 --decode-dp 2 -n 4 -o pd.orr", 0},
    {"Check it:", "orrery check pd.orr", 0},
    {"Experts over all replicas, figures only, as JSON:",
     "orrery serve deepseek-v3 --dtype fp8 --tp 4 --dp 8 --ep 32 -n 2 --json", 0},
    {0},
};

/* ---- options ---- */

static orr_code read_rate(const cli_context *c, const char *name, orr_Bps *out, orr_error *err)
{
    const orr_code code = cli_given(c, name) ? orr_rate_parse(cli_text(c, name), out, err) : ORR_OK;
    if (!code && cli_given(c, name) && *out == 0)
        return cli_misuse(err, "--%s must be above 0", name);
    return code;
}

static orr_code read_bytes(const cli_context *c, const char *name, uint64_t *out, orr_error *err)
{
    orr_bytes bytes = 0;
    const orr_code code =
        cli_given(c, name) ? orr_bytes_parse(cli_text(c, name), &bytes, err) : ORR_OK;
    if (!code && cli_given(c, name) && bytes == 0)
        return cli_misuse(err, "--%s must be above 0", name);
    *out = bytes;
    return code;
}

/* Speedup of products in the type of the weights over those in 16 bits. */
static double narrow_gain(const orr_serve_options *o)
{
    const double wide = o->chip ? o->chip->peak_tflops[ORR_TYPE_BF16] : 0;
    const double narrow = o->chip ? o->chip->peak_tflops[ORR_TYPE_FP8] : 0;
    return o->dtype == ORR_DTYPE_FP8 && wide > 0 && narrow > 0 ? narrow / wide : 1;
}

static orr_code read_hardware(const cli_context *c,
                              cli_hardware *hw,
                              orr_serve_options *o,
                              orr_error *err)
{
    const char *name = cli_text(c, "hardware");
    if (!name)
        return ORR_OK;
    const orr_code code = cli_hardware_find(name, hw, err);
    if (code)
        return code;
    o->chip = hw->chip;
    if (o->chip && o->chip->memory_GB > 0 && !cli_given(c, "machine"))
        o->device_bytes = (uint64_t)(o->chip->memory_GB * 1e9);
    const double peak =
        o->chip ? o->chip->peak_tflops[ORR_TYPE_BF16] * 1e12 : orr_hardware_peak(&hw->design);
    o->peak = (uint64_t)(peak * narrow_gain(o) + 0.5);
    o->memory_rate = o->chip ? (orr_Bps)(o->chip->memory_GBps * 1e9) : hw->design.memory_bandwidth;
    return ORR_OK;
}

/* Rates that the machine lacks keep their values. */
static orr_code read_machine(const cli_context *c,
                             cli_hardware *hw,
                             orr_serve_options *o,
                             orr_error *err)
{
    orr_machine m;
    orr_system system;
    if (!cli_given(c, "machine"))
        return ORR_OK;
    orr_code code = orr_machine_for(cli_text(c, "machine"), orr_serve_rank_count(o), &m, err);
    if (!code)
        code = orr_machine_system(&m, &system, err);
    if (!code && cli_is_file(m.chip))
        code = cli_hardware_find(m.chip, hw, err);
    if (code)
        return orr_because(err, code, "--machine %s", cli_text(c, "machine"));
    o->chip = cli_is_file(m.chip) ? hw->chip : orr_chip_find(m.chip);
    o->peak = (uint64_t)(system.peak_flops * narrow_gain(o));
    o->memory_rate = system.memory_bandwidth;
    orr_serve_on(o, &m);
    return ORR_OK;
}

/* The device: options override the chip, and the chip overrides the machine. */
static orr_code read_device(const cli_context *c,
                            cli_hardware *hw,
                            orr_serve_options *o,
                            orr_error *err)
{
    orr_code code = read_machine(c, hw, o, err);
    if (!code)
        code = read_hardware(c, hw, o, err);
    if (!cli_given(c, "machine") && !cli_given(c, "hardware"))
        o->chip = orr_chip_find("h100");
    if (cli_given(c, "tflops") || cli_given(c, "memory-rate") || cli_flag(c, "ideal"))
        o->chip = NULL;
    if (cli_given(c, "tflops"))
        o->peak = cli_count(c, "tflops") * UINT64_C(1000000000000);
    if (!code)
        code = read_rate(c, "memory-rate", &o->memory_rate, err);
    if (!code)
        code = read_rate(c, "link-rate", &o->link_rate, err);
    if (cli_given(c, "link-rate")) { /* applies to all ranks, in any node */
        o->node_ranks = 0;
        o->is_mesh = false;
        o->machine.size = 0;
    }
    if (!code)
        code = read_rate(c, "transfer-rate", &o->transfer_rate, err);
    if (!code && cli_given(c, "device-memory"))
        code = read_bytes(c, "device-memory", &o->device_bytes, err);
    return code ? code : read_bytes(c, "kv-memory", &o->kv_bytes, err);
}

static orr_serve_phase phase_of(const char *word)
{
    return strcmp(word, "prefill") == 0  ? ORR_SERVE_PREFILL
           : strcmp(word, "decode") == 0 ? ORR_SERVE_DECODE
                                         : ORR_SERVE_ALL;
}

static orr_code read_options(const cli_context *c,
                             cli_hardware *hw,
                             orr_serve_options *o,
                             orr_error *err)
{
    *o = (orr_serve_options){
        .ranks = {.tp = (uint32_t)cli_count(c, "tp"),
                  .cp = (uint32_t)cli_count(c, "cp"),
                  .pp = (uint32_t)cli_count(c, "pp"),
                  .dp = (uint32_t)cli_count(c, "dp"),
                  .ep = (uint32_t)cli_count(c, "ep")},
        .decode = {.tp = (uint32_t)cli_count(c, "decode-tp"),
                   .pp = (uint32_t)cli_count(c, "decode-pp"),
                   .dp = (uint32_t)cli_count(c, "decode-dp"),
                   .ep = (uint32_t)cli_count(c, "decode-ep")},
        .phase = phase_of(cli_text(c, "phase")),
        .batch = cli_count(c, "batch"),
        .prompt = cli_count(c, "prompt-tokens"),
        .output = cli_count(c, "output-tokens"),
        .max_batch = cli_count(c, "max-batch"),
        .max_tokens = cli_count(c, "max-tokens"),
        .chunk = cli_count(c, "chunk"),
        .kv_block = cli_count(c, "kv-block"),
        .software = orr_software_find(cli_text(c, "software")),
        .sequence_parallel = cli_flag(c, "sequence-parallel"),
        .context_form =
            strcmp(cli_text(c, "context"), "ring") == 0 ? ORR_CONTEXT_RING : ORR_CONTEXT_ALL_GATHER,
    };
    if (!o->software)
        return cli_no_software(cli_text(c, "software"), err);
    orr_dtype_find(orr_str_of(cli_text(c, "dtype")), &o->dtype);
    orr_dtype_find(orr_str_of(cli_text(c, "kv-dtype")), &o->kv_dtype);
    return read_device(c, hw, o, err);
}

/* ---- writing ---- */

static orr_code check_output(const cli_context *c, orr_error *err)
{
    const char *to = cli_text(c, "output");
    if (cli_given(c, "requests") &&
        (cli_given(c, "batch") || cli_given(c, "prompt-tokens") || cli_given(c, "output-tokens")))
        return cli_misuse(err, "--requests replaces --batch, --prompt-tokens and "
                               "--output-tokens");
    if (to && strlen(to) > PATH_ROOM - 96)
        return cli_misuse(err, "the output name is longer than 4,000 bytes");
    if (cli_flag(c, "compress") && !(to && orr_has_suffix(to, ".orr")))
        return cli_misuse(err, "--compress requires a .orr file");
    return ORR_OK;
}

static orr_code write_out(const cli_context *c, const orr_set *s, orr_error *err)
{
    const char *to = cli_text(c, "output");
    char groups[PATH_ROOM];
    if (!to)
        return ORR_OK;
    if (orr_has_suffix(to, ".orr"))
        return orr_set_save(s, to,
                            &(orr_set_save_options){.size = sizeof(orr_set_save_options),
                                                    .compress = cli_flag(c, "compress")},
                            err);
    snprintf(groups, sizeof groups, "%s.json", to);
    const orr_code code = orr_set_write_files(s, to, NULL, 0, err);
    return code || orr_set_group_count(s) == 0 ? code : orr_set_write_groups(s, groups, err);
}

/* ---- reporting ---- */

typedef struct result {
    const cli_context *c;
    const orr_model *m;
    cli_hardware hardware; /* o points to it */
    orr_serve_options o;   /* complete */
    orr_serve_report r;
    const orr_set *s;
    bool is_split;
} result;

static const orr_serve_ranks *ranks_of(const result *r, int pool)
{
    return pool == 0 ? &r->o.ranks : &r->o.decode;
}

static const char *pool_name(const result *r, int pool)
{
    static const char *const phases[] = {"all", "prefill", "decode"};
    return r->is_split ? phases[1 + pool] : phases[r->o.phase];
}

static double tokens_per_second(const result *r)
{
    return r->r.time ? (double)r->r.output_tokens / ((double)r->r.time / 1e12) : 0;
}

static void print_pools(const result *r)
{
    char a[5][ORR_UNIT_ROOM];
    bool fits = true;
    printf("\n%-8s %6s %4s %4s %4s %5s %4s %11s %10s %10s %10s %10s\n", "phase", "ranks", "tp",
           "cp", "pp", "dp", "ep", "iterations", "weights", "caches", "room", "working");
    for (int i = 0; i < 1 + r->is_split; i++) {
        const orr_serve_pool *p = &r->r.pools[i];
        const orr_serve_ranks *d = ranks_of(r, i);
        printf("%-8s %6u %4u %4u %4u %5u %4u %11s %10s %10s %10s %10s%s\n", pool_name(r, i),
               p->ranks, d->tp, d->cp, d->pp, d->dp, d->ep, orr_count_text(p->iterations, a[0]),
               orr_bytes_text(p->weight_bytes, a[1]), orr_bytes_text(p->kv_peak, a[2]),
               orr_bytes_text(p->kv_room, a[3]), orr_bytes_text(p->working_bytes, a[4]),
               p->fits ? "" : " !");
        fits = fits && p->fits;
    }
    printf("%s a device of %s: weights, peak KV cache and the largest operation\n",
           fits ? "fits into" : "does not fit (!) into", orr_bytes_text(r->o.device_bytes, a[0]));
}

static double low_of(const result *r, orr_ps ps)
{
    return (double)ps * (1 - r->r.low_share);
}

static double high_of(const result *r, orr_ps ps)
{
    return (double)ps * (1 + r->r.high_share);
}

/* " (", the interval of a time as it was printed, and what comes after; empty: it is not known. */
static const char *interval(const result *r,
                            const char *value,
                            double low,
                            double high,
                            const char *after,
                            char out[INTERVAL_ROOM])
{
    char ends[INTERVAL_ROOM / 2];
    out[0] = '\0';
    if (r->r.high_share > 0 && strchr(value, ' '))
        snprintf(out, INTERVAL_ROOM, "%s%s", orr_ends_text(value, low, high, ends, sizeof ends),
                 after);
    return out;
}

static void print_times(const result *r)
{
    const orr_serve_report *p = &r->r;
    char a[4][ORR_UNIT_ROOM], range[INTERVAL_ROOM];
    orr_time_text(p->time, a[0]);
    interval(r, a[0], (double)p->time_low, (double)p->time_high, ")", range);
    printf("%s%s%s in total, %s tokens/s;\n", a[0], range[0] ? " (" : "", range,
           orr_figure_text(tokens_per_second(r), a[3]));
    orr_time_text(p->first_token_mean, a[1]);
    interval(r, a[1], low_of(r, p->first_token_mean), high_of(r, p->first_token_mean), "; ", range);
    printf("first token after %s (%s%s at most)", a[1], range,
           orr_time_text(p->first_token_most, a[2]));
    if (p->next_token_mean) {
        orr_time_text(p->next_token_mean, a[0]);
        interval(r, a[0], low_of(r, p->next_token_mean), high_of(r, p->next_token_mean), ")",
                 range);
        printf(", the next after %s%s%s", a[0], range[0] ? " (" : "", range);
    }
    printf("\n");
}

static void print_text(const result *r)
{
    const orr_serve_report *p = &r->r;
    char a[3][ORR_UNIT_ROOM];
    printf("%s: weights in %s, caches in %s\n", r->m->name, orr_dtype_name(r->o.dtype),
           orr_dtype_name(r->o.kv_dtype));
    printf("%s request%s: %s token%s in, %s token%s out\n", orr_count_text(p->requests, a[0]),
           p->requests == 1 ? "" : "s", orr_count_text(p->prompt_tokens, a[1]),
           p->prompt_tokens == 1 ? "" : "s", orr_count_text(p->output_tokens, a[2]),
           p->output_tokens == 1 ? "" : "s");
    printf("estimated with %s%s: ", r->o.chip ? "kernels of " : "peaks, without losses",
           r->o.chip ? r->o.chip->name : "");
    print_times(r);
    if (r->is_split)
        printf("KV caches moved: %s in %s messages\n", orr_bytes_text(p->moved_bytes, a[0]),
               orr_count_text(p->moved_messages, a[1]));
    const uint32_t distinct = r->s ? orr_set_class_count(r->s) : 0;
    if (r->s)
        printf("%s nodes in %u different rank%s\n", orr_count_text(cli_count_nodes(r->s), a[0]),
               distinct, distinct == 1 ? "" : "s");
    print_pools(r);
}

static void put_pools(orr_json_writer *w, const result *r)
{
    orr_json_put_array(w, "pools");
    for (int i = 0; i < 1 + r->is_split; i++) {
        const orr_serve_pool *p = &r->r.pools[i];
        const orr_serve_ranks *d = ranks_of(r, i);
        orr_json_line(w, 4);
        orr_json_put_row(
            w, ORR_T("phase", pool_name(r, i)), ORR_U("ranks", p->ranks), ORR_U("tp", d->tp),
            ORR_U("cp", d->cp), ORR_U("pp", d->pp), ORR_U("dp", d->dp), ORR_U("ep", d->ep),
            ORR_U("iterations", p->iterations), ORR_U("weights_bytes", p->weight_bytes),
            ORR_U("caches_peak_bytes", p->kv_peak), ORR_U("caches_room_bytes", p->kv_room),
            ORR_U("working_bytes", p->working_bytes), ORR_B("fits", p->fits));
    }
    orr_json_end_array(w);
}

static void put_interval(orr_json_writer *w, const char *key, double low, double high)
{
    orr_json_put_array(w, key);
    orr_json_u64(w, (uint64_t)low);
    orr_json_u64(w, high < (double)INT64_MAX ? (uint64_t)high : INT64_MAX); /* as time_high */
    orr_json_end_array(w);
}

/* 90 %, named as in the JSON of a run. */
static void put_intervals(orr_json_writer *w, const result *r)
{
    const orr_serve_report *p = &r->r;
    if (!(p->high_share > 0))
        return;
    put_interval(w, "interval_ps", (double)p->time_low, (double)p->time_high);
    put_interval(w, "first_token_mean_interval_ps", low_of(r, p->first_token_mean),
                 high_of(r, p->first_token_mean));
    if (p->next_token_mean)
        put_interval(w, "next_token_mean_interval_ps", low_of(r, p->next_token_mean),
                     high_of(r, p->next_token_mean));
}

static void print_json(const result *r)
{
    const orr_serve_report *p = &r->r;
    cli_json j;
    orr_json_writer *w = cli_json_open(&j, "orrery-serve");
    orr_json_put_fields(w, ORR_T("output", cli_text(r->c, "output")), ORR_T("model", r->m->name));
    orr_json_line(w, 2);
    orr_json_put_fields(w, ORR_T("dtype", orr_dtype_name(r->o.dtype)),
                        ORR_T("kv_dtype", orr_dtype_name(r->o.kv_dtype)),
                        ORR_U("ranks", orr_serve_rank_count(&r->o)));
    if (r->s) {
        orr_json_put_fields(w, ORR_U("distinct_ranks", orr_set_class_count(r->s)),
                            ORR_U("node_count", cli_count_nodes(r->s)));
    }
    orr_json_line(w, 2);
    orr_json_put_fields(w, ORR_U("requests", p->requests), ORR_U("prompt_tokens", p->prompt_tokens),
                        ORR_U("output_tokens", p->output_tokens),
                        ORR_U("moved_messages", p->moved_messages),
                        ORR_U("moved_bytes", p->moved_bytes));
    orr_json_line(w, 2);
    orr_json_put_object(w, "estimate");
    orr_json_put_fields(
        w, ORR_U("peak_operations_per_s", r->o.peak), ORR_U("memory_bytes_per_s", r->o.memory_rate),
        ORR_T("chip", r->o.chip ? r->o.chip->name : NULL),
        ORR_U("link_bytes_per_s", r->o.link_rate),
        ORR_KU("node_ranks", r->o.node_ranks, r->o.node_ranks),
        ORR_KU("node_bytes_per_s", r->o.node_ranks, r->o.node_rate),
        ORR_U("transfer_bytes_per_s", r->o.transfer_rate), ORR_I("time_ps", p->time),
        ORR_I("first_token_mean_ps", p->first_token_mean),
        ORR_I("first_token_most_ps", p->first_token_most),
        ORR_I("next_token_mean_ps", p->next_token_mean));
    put_intervals(w, r);
    orr_json_end_object(w);
    orr_json_line(w, 2);
    orr_json_put_u64(w, "device_bytes", r->o.device_bytes);
    put_pools(w, r);
    cli_json_close(&j);
}

static void say(const result *r)
{
    const char *to = cli_text(r->c, "output");
    if (cli_flag(r->c, "json")) {
        print_json(r);
        return;
    }
    print_text(r);
    if (to)
        cli_note(r->c, "%s: %u rank%s\n", to, orr_serve_rank_count(&r->o),
                 orr_serve_rank_count(&r->o) == 1 ? "" : "s");
}

/* Rotary positions go on, answers of such a model do not: learned ones are refused. */
static void say_longest(const result *r)
{
    const orr_serve_options *o = &r->o;
    const uint64_t prompt = o->prompt ? o->prompt : 1024, output = o->output ? o->output : 128;
    uint64_t most = o->request_count ? 0 : prompt + output - 1;
    for (size_t i = 0; i < o->request_count; i++) {
        const orr_serve_request *q = &o->requests[i];
        if (q->prompt <= UINT64_MAX - q->output && q->prompt + q->output > most + 1)
            most = q->prompt + q->output - 1;
    }
    if (r->m->position != ORR_MODEL_LEARNED && r->m->max_positions && most > r->m->max_positions)
        cli_note(r->c, "%s: sequences of %" PRIu64 " tokens; made for at most %" PRIu64 "\n",
                 r->m->name, most, r->m->max_positions);
}

/* ---- the command ---- */

static orr_code make(result *r, orr_error *err)
{
    orr_set *s = NULL;
    r->o.only_figures = !cli_given(r->c, "output") && !r->c->made;
    r->is_split = r->o.decode.tp || r->o.decode.pp || r->o.decode.dp || r->o.decode.ep;
    orr_code code = orr_serve_complete(r->m, &r->o, err);
    if (!code)
        code = orr_serve(r->m, &r->o, &s, &r->r, err);
    if (!code)
        code = write_out(r->c, s, err);
    r->s = s;
    if (!code)
        say(r);
    if (!code && r->c->made) {
        *r->c->made = s;
        return ORR_OK;
    }
    orr_set_close(s);
    return code;
}

static orr_code serve_run(cli_context *c, orr_error *err)
{
    orr_model m;
    orr_serve_request *requests = NULL;
    size_t count = 0;
    result r = {.c = c, .m = &m};
    orr_code code = check_output(c, err);
    if (!code)
        code = orr_model_load(c->args[0], &m, err);
    if (!code)
        code = read_options(c, &r.hardware, &r.o, err);
    if (!code && cli_given(c, "requests"))
        code = orr_requests_read(cli_text(c, "requests"), &requests, &count, err);
    if (code)
        return code;
    r.o.requests = requests;
    r.o.request_count = count;
    if (m.note[0])
        cli_note(c, "%s: %s\n", m.name, m.note);
    say_longest(&r);
    code = make(&r, err);
    orr_requests_free(requests);
    return code;
}

const cli_command cli_cmd_serve = {
    .name = "serve",
    .summary = "generate traces of LLM serving",
    .description =
        "Prompts pass through the model whole or in chunks (prefill), then each sequence "
        "grows by one token per iteration (decode), with continuous batching.  Decoding can "
        "run on separate ranks; the KV caches are then moved there.\n\nRequests come from a "
        "file, or are a number of identical ones.  Prints what was generated, an estimate of "
        "its time and the memory it needs per device; -o writes the traces.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-check(1), orrery-model(1), orrery-run(1), orrery-stage(1)",
    .run = serve_run,
};
