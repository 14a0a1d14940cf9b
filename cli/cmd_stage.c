/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_stage.c - orrery stage MODEL: a training step of a language model (llm.h).  With --compat it
 * is another program with another table: old/old_stage.c. */
#include "base/text/text.h"
#include "command.h"

#include <orrery/lab/compat.h>
#include <orrery/lab/llm.h>
#include <orrery/lab/machine.h>
#include <orrery/lab/software.h>
#include <orrery/lab/units.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_ROOM = 4096 };

#define COUNT(name, fallback_, help_)                           \
    {                                                           \
        name, 0, "N", help_, CLI_COUNT, 1, INT32_MAX, fallback_ \
    }
static const cli_option options[] = {
    {"output", 'o', "OUT", "a .orr file, or a file name prefix", .kind = CLI_OUTPUT},
    COUNT("dp", "1", "data parallel degree"),
    COUNT("tp", "1", "tensor parallel degree"),
    COUNT("pp", "1", "pipeline stages"),
    COUNT("ep", "1", "expert parallel degree"),
    COUNT("cp", "1", "context parallel degree"),
    COUNT("sp", NULL, "the same as --cp"),
    COUNT("seq", NULL, "tokens per sequence (default: the model's)"),
    COUNT("batch", NULL, "sequences per step (default: dp x micro-batch)"),
    {"micro-batch", 0, "N", "sequences per micro-batch (default 1); -1: all"},
    COUNT("layers", NULL, "this many layers instead of the model's"),
    COUNT("hidden", NULL, "this hidden size instead of the model's"),
    COUNT("heads", NULL, "this many heads"),
    COUNT("kv-heads", NULL, "this many KV heads"),
    COUNT("ffn", NULL, "this FFN width"),
    COUNT("vocab", NULL, "this vocabulary size"),
    {"zero", 0, "N", "ZeRO stage: 1 shards the optimizer, 2 also gradients, 3 also weights",
     CLI_COUNT, 0, 3, "0"},
    {"pipeline", 0, "1f1b|gpipe|interleaved|zero-bubble|zb-v|dualpipe-v|dualpipe",
     "pipeline schedule", .fallback = "1f1b"},
    {"order", 0, "FILE", "a pipeline schedule of your own: the passes of each rank, in order"},
    COUNT("chunks", "2", "interleaved: model chunks per rank"),
    {"first-layers", 0, "N",
     "layers of the first stage, interleaved: of its first chunk (default: an even share); 0: only "
     "the embedding",
     CLI_COUNT, 0, INT32_MAX},
    {"last-layers", 0, "N",
     "layers of the last stage, interleaved: of its last chunk (default: an even share); 0: only "
     "the loss",
     CLI_COUNT, 0, INT32_MAX},
    {"layout", 0, "TEXT",
     "what each stage has, as in Megatron-Core: E embedding, t layer, m MTP layer, L loss, | next "
     "stage: 'Et*2|(tt|)*29,t|mL'"},
    {"no-sequence-parallel", 0, NULL, "tensor parallelism with all-reduces instead"},
    {"recompute", 0, "none|selective|full|operators",
     "activation recomputation: of attention, of layers, of everything but attention and half of "
     "the GEMMs",
     .fallback = "none"},
    {"software", 0, "NAME",
     "launch the kernels of this software: megatron-core, megatron-core-layers, "
     "megatron-core-router, megatron-core-graph, megatron-core-graph-2026-06, megatron-core-2024, "
     "megatron-core-2024-flash2, megatron-2022, megatron-2021, megatron-deepspeed, deepspeed, "
     "fsdp2-eager, fsdp2-fused, torch-compile, torch-compile-whole, fsdp2-eager-2024, "
     "torch-compile-2024, fsdp-compile-2024, fsdp-2023, torch-eager or cuda-graph",
     .fallback = "megatron-core"},
    CLI_TRAINING_OPTIONS,
    {"forward", 0, NULL, "the forward pass only"},
    COUNT("steps", "1", "training steps"),
    {"machine", 0, "MACHINE",
     "for this cluster ('orrery machine list'): its device memory; ranks must fit"},
    {"device-memory", 0, "BYTES", "memory per device; default: 80GB, or the machine's"},
    {"memory", 0, "FILE", "write the memory of each stage over time (CSV)", .kind = CLI_OUTPUT},
    {"compress", 'z', NULL, "compress a .orr file"},
    {"json", 0, NULL, "print one JSON object"},
    {"compat", 0, NULL, "the traces of STAGE, byte for byte, with its options"},
    {0},
};

static const cli_argument arguments[] = {
    {"MODEL", "a name from 'orrery model --list', or a file", CLI_MAYBE},
    {0},
};

static const cli_example examples[] = {
    {"A step of Llama 3 8B on 16 ranks, and the memory it needs:",
     "orrery stage llama-3-8b --tp 4 --pp 2 --dp 2 --batch 32 -o step.orr", 0},
    {"A GPT-2 of 24 layers, on devices of 40 GB:",
     "orrery stage gpt2 --layers 24 --device-memory 40G", 0},
    {"Experts over 8 ranks, ZeRO 1, figures only:",
     "orrery stage mixtral-8x7b --dp 8 --ep 8 --zero 1 --json", 0},
    {"The output of STAGE for a small GPT on four ranks, as gpt.0.et to gpt.3.et, gpt.json:",
     "orrery stage --compat --model-type gpt --dp 2 --pp 2 --layers 4 -o gpt", 0},
    {"The same under the old name, with its flags:",
     "stage --output_dir o --output_name w --model_type gpt --dp 2 --pp 2", 0},
    {0},
};

static const char *const recompute_words[] = {"none", "selective", "full", "operators", NULL};

/* The index of an option's value in `words`, which follow an enumeration. */
static int word_index(const char *const *words, const char *text)
{
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], text) == 0)
            return i;
    return 0; /* the parser accepts nothing else */
}

static orr_code read_device_memory(const cli_context *c, uint64_t *out, orr_error *err)
{
    orr_bytes bytes = 0;
    if (!cli_given(c, "device-memory"))
        return ORR_OK;
    const orr_code code = orr_bytes_parse(cli_text(c, "device-memory"), &bytes, err);
    *out = (uint64_t)bytes;
    return code;
}

orr_code cli_stage_micro_batch(const char *text, uint64_t *out, orr_error *err)
{
    char *end;
    *out = 0;
    if (strcmp(text, "-1") == 0)
        return ORR_OK;
    errno = 0;
    const unsigned long long v = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || v < 1 || v > INT32_MAX)
        return cli_misuse(err, "--micro-batch '%s' is not -1 or a whole number from 1 to %d", text,
                          INT32_MAX);
    *out = v;
    return ORR_OK;
}

/* The number given, or 0 for the library's default. */
static uint64_t given(const cli_context *c, const char *name)
{
    return cli_given(c, name) ? cli_count(c, name) : 0;
}

static uint32_t at_least_1(uint32_t n)
{
    return n ? n : 1;
}

/* Take the machine's memory, and check that it has a device per rank. */
static orr_code read_machine(const cli_context *c, orr_llm_options *o, orr_error *err)
{
    const uint64_t ranks =
        (uint64_t)at_least_1(o->tp) * at_least_1(o->cp) * at_least_1(o->pp) * at_least_1(o->dp);
    orr_machine m;
    if (!cli_given(c, "machine"))
        return ORR_OK;
    const orr_code code = orr_machine_for(
        cli_text(c, "machine"), ranks < UINT32_MAX ? (uint32_t)ranks : UINT32_MAX, &m, err);
    if (code)
        return orr_because(err, code, "--machine %s", cli_text(c, "machine"));
    o->device_bytes = m.memory;
    if (o->sends_once && !o->node_ranks)
        o->node_ranks = m.devices;
    if (m.software[0] && !cli_given(c, "software"))
        o->software = orr_software_find(m.software);
    return o->software ? ORR_OK : cli_no_software(m.software, err);
}

static orr_code read_options(const cli_context *c, orr_llm_options *o, orr_error *err)
{
    *o = (orr_llm_options){
        .tp = (uint32_t)given(c, "tp"),
        .cp = (uint32_t)given(c, cli_given(c, "cp") ? "cp" : "sp"),
        .pp = (uint32_t)given(c, "pp"),
        .dp = (uint32_t)given(c, "dp"),
        .ep = (uint32_t)given(c, "ep"),
        .first_layers = given(c, "first-layers"),
        .last_layers = given(c, "last-layers"),
        .bare_first = cli_given(c, "first-layers") && !given(c, "first-layers"),
        .bare_last = cli_given(c, "last-layers") && !given(c, "last-layers"),
        .batch = given(c, "batch"),
        .seq = given(c, "seq"),
        .no_sequence_parallel = cli_flag(c, "no-sequence-parallel"),
        .chunks = (uint32_t)given(c, "chunks"),
        .zero = (uint32_t)cli_count(c, "zero"),
        .forward_only = cli_flag(c, "forward"),
        .recompute = (orr_recompute)word_index(recompute_words, cli_text(c, "recompute")),
        .steps = (uint32_t)given(c, "steps"),
    };
    orr_pipeline_find(orr_str_of(cli_text(c, "pipeline")), &o->pipeline);
    if (cli_given(c, "order") && cli_given(c, "pipeline"))
        return cli_misuse(err, "--order and --pipeline cannot be used together");
    if (cli_given(c, "order"))
        o->pipeline = ORR_PIPELINE_OWN;
    o->software = orr_software_find(cli_text(c, "software"));
    if (!o->software)
        return cli_no_software(cli_text(c, "software"), err);
    if (cli_given(c, "recompute-parts") && cli_given(c, "recompute"))
        return cli_misuse(err, "--recompute-parts and --recompute cannot be used together");
    const char *micro = cli_given(c, "micro-batch") ? cli_text(c, "micro-batch") : NULL;
    orr_code code = micro ? cli_stage_micro_batch(micro, &o->micro_batch, err) : ORR_OK;
    if (!code)
        code = cli_training_options(c, o, err);
    if (!code)
        code = read_machine(c, o, err);
    return code ? code : read_device_memory(c, &o->device_bytes, err);
}

/* ---- writing ---- */

static orr_code write_files(const orr_set *s, const char *prefix, orr_error *err)
{
    char groups[PATH_ROOM];
    const int n = snprintf(groups, sizeof groups, "%s.json", prefix);
    if (n < 0 || (size_t)n >= sizeof groups)
        return cli_misuse(err, "the output name is longer than 4,000 bytes");
    const orr_code code = orr_set_write_files(s, prefix, NULL, 0, err);
    return code || orr_set_group_count(s) == 0 ? code : orr_set_write_groups(s, groups, err);
}

static orr_code write_out(const cli_context *c, const orr_set *s, const char *to, orr_error *err)
{
    if (orr_has_suffix(to, ".orr"))
        return orr_set_save(s, to,
                            &(orr_set_save_options){.size = sizeof(orr_set_save_options),
                                                    .compress = cli_flag(c, "compress")},
                            err);
    if (cli_flag(c, "compress"))
        return cli_misuse(err, "--compress requires a .orr file, not '%s'", to);
    return write_files(s, to, err);
}

/* ---- reporting ---- */

typedef struct result {
    const cli_context *c;
    const orr_model *m;
    orr_llm_options o; /* complete */
    const orr_set *s;
    const char *to;         /* NULL: nothing was written */
    orr_model_flops flops;  /* of one sequence */
    orr_llm_memory *memory; /* by pipeline rank */
} result;

static const char *bytes(uint64_t n, char room[ORR_UNIT_ROOM])
{
    return orr_bytes_text((orr_bytes)n, room);
}

static void print_memory_row(const char *name, const orr_llm_memory *m)
{
    char a[6][ORR_UNIT_ROOM];
    printf("%-9s %10s %10s %10s %11s %10s %10s%s\n", name, bytes(m->weights, a[0]),
           bytes(m->grads, a[1]), bytes(m->optimizer, a[2]), bytes(m->activations, a[3]),
           bytes(m->working, a[4]), bytes(m->peak, a[5]), m->fits ? "" : " !");
}

static bool is_same_memory(const orr_llm_memory *a, const orr_llm_memory *b)
{
    return a->weights == b->weights && a->grads == b->grads && a->optimizer == b->optimizer &&
           a->activations == b->activations && a->working == b->working;
}

static void print_memory(const result *r)
{
    char room[ORR_UNIT_ROOM], name[32];
    bool fits = true;
    printf("\nstage        weights  gradients  optimizer activations    working       peak\n");
    for (uint32_t p = 0, end; p < r->o.pp; p = end) {
        for (end = p + 1; end < r->o.pp && is_same_memory(&r->memory[p], &r->memory[end]);)
            end++;
        snprintf(name, sizeof name, end == p + 1 ? "%u" : "%u-%u", p, end - 1);
        print_memory_row(name, &r->memory[p]);
        fits = fits && r->memory[p].fits;
    }
    printf("%s a device of %s\n", fits ? "fits into" : "does not fit (!) into",
           bytes(r->o.device_bytes, room));
}

static double step_flops(const result *r)
{
    const uint64_t sequence = r->o.forward_only ? r->flops.forward : r->flops.training;
    return (double)sequence * (double)r->o.batch;
}

static void print_text(const result *r)
{
    const orr_llm_options *o = &r->o;
    char a[4][ORR_UNIT_ROOM];
    orr_model_counts n;
    orr_model_count(r->m, &n);
    printf("%s: %s parameters, %s active per token\n", r->m->name, orr_short_text(n.total, a[0]),
           orr_short_text(n.active, a[1]));
    printf("%u rank%s: tp %u x cp %u x dp %u x pp %u", orr_llm_ranks(o),
           orr_llm_ranks(o) == 1 ? "" : "s", o->tp, o->cp, o->dp, o->pp);
    printf(o->ep > 1 ? ", ep %u; " : "; ", o->ep);
    printf("%s, %s%s, zero %u\n", orr_dtype_name(o->dtype),
           o->pp > 1 ? orr_pipeline_name(o->pipeline) : "one stage",
           o->tp > 1 && !o->no_sequence_parallel ? ", sequence parallel" : "", o->zero);
    const uint64_t batches = o->batch / (o->dp * o->micro_batch);
    printf("per step: %s sequence%s of %s tokens in %s micro-batch%s per rank, ",
           orr_count_text(o->batch, a[0]), o->batch == 1 ? "" : "s", orr_count_text(o->seq, a[1]),
           orr_count_text(batches, a[2]), batches == 1 ? "" : "es");
    printf("%.4g PFLOP\n", step_flops(r) / 1e15);
    printf("%s nodes, %u different rank%s\n", orr_count_text(cli_count_nodes(r->s), a[0]),
           orr_set_class_count(r->s), orr_set_class_count(r->s) == 1 ? "" : "s");
    print_memory(r);
}

static void put_memory(orr_json_writer *w, const result *r)
{
    orr_json_put_array(w, "memory");
    for (uint32_t p = 0; p < r->o.pp; p++) {
        const orr_llm_memory *m = &r->memory[p];
        orr_json_line(w, 4);
        orr_json_put_row(
            w, ORR_U("stage", p), ORR_U("parameters", m->parameters),
            ORR_U("weights_bytes", m->weights), ORR_U("gradients_bytes", m->grads),
            ORR_U("optimizer_bytes", m->optimizer), ORR_U("activations_bytes", m->activations),
            ORR_U("working_bytes", m->working), ORR_U("peak_bytes", m->peak),
            ORR_U("micro_batches_kept", m->micro_batches_kept), ORR_B("fits", m->fits));
    }
    orr_json_end_array(w);
}

static void print_json(const result *r)
{
    const orr_llm_options *o = &r->o;
    orr_model_counts n;
    cli_json j;
    orr_json_writer *w = cli_json_open(&j, "orrery-stage");
    orr_model_count(r->m, &n);
    orr_json_put_fields(w, ORR_B("compat", false), ORR_T("output", r->to),
                        ORR_T("model", r->m->name));
    orr_json_line(w, 2);
    orr_json_put_fields(w, ORR_U("parameters", n.total), ORR_U("active_parameters", n.active),
                        ORR_U("ranks", orr_llm_ranks(o)),
                        ORR_U("distinct_ranks", orr_set_class_count(r->s)));
    orr_json_put_u64(w, "node_count", cli_count_nodes(r->s));
    orr_json_line(w, 2);
    orr_json_put_fields(
        w, ORR_U("tp", o->tp), ORR_U("cp", o->cp), ORR_U("dp", o->dp), ORR_U("pp", o->pp),
        ORR_U("ep", o->ep), ORR_U("zero", o->zero), ORR_T("dtype", orr_dtype_name(o->dtype)),
        ORR_T("pipeline", orr_pipeline_name(o->pipeline)), ORR_U("chunks", o->chunks));
    orr_json_line(w, 2);
    orr_json_put_fields(
        w, ORR_U("batch_sequences", o->batch), ORR_U("micro_batch_sequences", o->micro_batch),
        ORR_U("sequence_tokens", o->seq), ORR_F("step_flops", "%.17g", step_flops(r)),
        ORR_U("device_bytes", o->device_bytes));
    orr_json_line(w, 2);
    put_memory(w, r);
    cli_json_close(&j);
}

/* ---- memory over time ---- */

typedef struct memory_file {
    FILE *f;
    uint32_t stage;
    uint64_t task, resident; /* resident: memory held throughout */
} memory_file;

static void write_moment(void *context, const orr_llm_moment *m)
{
    static const char *const names[] = {"forward", "backward", "weights"};
    memory_file *w = context;
    fprintf(w->f, "%u,%" PRIu64 ",%s,%u,%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", w->stage, w->task++,
            names[m->task], m->chunk, m->micro_batch, m->activations, w->resident + m->activations);
}

static orr_code write_moments(const result *r, FILE *f, orr_error *err)
{
    orr_code code = ORR_OK;
    fprintf(f, "stage,task,kind,chunk,micro_batch,activations_bytes,held_bytes\n");
    for (uint32_t p = 0; p < r->o.pp && !code; p++) {
        const orr_llm_memory *m = &r->memory[p];
        memory_file w = {.f = f, .stage = p, .resident = m->weights + m->grads + m->optimizer};
        code = orr_llm_moments(r->m, &r->o, p, write_moment, &w, err);
    }
    return code;
}

static orr_code write_memory(const result *r, const char *path, orr_error *err)
{
    cli_file to;
    const orr_code code = cli_file_open(path, &to, err);
    return code ? code : cli_file_close(&to, write_moments(r, to.f, err), err);
}

/* ---- the command ---- */

static orr_code measure(result *r, orr_error *err)
{
    const orr_model_work work = {
        .tokens = r->o.seq, .is_square = r->o.full_attention, .has_mtp = r->o.has_mtp};
    orr_code code = orr_model_compute(r->m, &work, &r->flops, err);
    for (uint32_t p = 0; p < r->o.pp && !code; p++)
        code = orr_llm_memory_of(r->m, &r->o, p, &r->memory[p], err);
    return code;
}

static void say(const result *r)
{
    if (cli_flag(r->c, "json")) {
        print_json(r);
        return;
    }
    print_text(r);
    if (r->to)
        cli_note(r->c, "%s: %u rank%s\n", r->to, orr_llm_ranks(&r->o),
                 orr_llm_ranks(&r->o) == 1 ? "" : "s");
}

static orr_code change_sizes(const cli_context *c, orr_model *m, orr_error *err)
{
    const orr_model_sizes sizes = {.layers = given(c, "layers"),
                                   .hidden = given(c, "hidden"),
                                   .heads = given(c, "heads"),
                                   .kv_heads = given(c, "kv-heads"),
                                   .ffn = given(c, "ffn"),
                                   .vocab = given(c, "vocab")};
    return orr_model_resize(m, &sizes, err);
}

static void say_notes(const result *r)
{
    const orr_llm_options *o = &r->o;
    const uint64_t batches = o->batch / (o->dp * o->micro_batch);
    if (r->m->note[0])
        cli_note(r->c, "%s: %s\n", r->m->name, r->m->note);
    if (r->m->max_positions && o->seq > r->m->max_positions)
        cli_note(r->c,
                 "%s: sequences of %" PRIu64 " tokens exceed the model's limit of %" PRIu64 "\n",
                 r->m->name, o->seq, r->m->max_positions);
    if (o->pp > 1 && batches == 1)
        cli_note(r->c,
                 "1 micro-batch per rank: %u of %u pipeline stages are idle at any time; --batch "
                 "makes more\n",
                 o->pp - 1, o->pp);
}

/* Read the model and the options. */
static orr_code prepare(cli_context *c, orr_model *m, orr_llm_options *o, orr_error *err)
{
    orr_code code = orr_model_load(c->args[0], m, err);
    if (!code)
        code = read_options(c, o, err);
    if (!code && cli_given(c, "order"))
        code = orr_pipeline_order_open(cli_text(c, "order"), &o->order, err);
    if (!code && cli_given(c, "layout"))
        code = orr_stage_layout_parse(cli_text(c, "layout"), &o->layout, err);
    if (!code)
        code = change_sizes(c, m, err);
    return code ? code : orr_llm_complete(m, o, err);
}

static orr_code run(cli_context *c, orr_error *err)
{
    orr_model m;
    orr_set *s = NULL;
    result r = {.c = c, .m = &m, .to = cli_text(c, "output")};
    orr_code code = prepare(c, &m, &r.o, err);
    if (!code)
        say_notes(&r);
    if (!code && !(r.memory = calloc(r.o.pp, sizeof *r.memory)))
        code = orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
    if (!code)
        code = orr_llm_training(&m, &r.o, &s, err);
    r.s = s;
    if (!code)
        code = measure(&r, err);
    if (!code && r.to)
        code = write_out(c, s, r.to, err);
    if (!code && cli_given(c, "memory"))
        code = write_memory(&r, cli_text(c, "memory"), err);
    if (!code)
        say(&r);
    free(r.memory);
    orr_pipeline_order_close(r.o.order);
    orr_stage_layout_close(r.o.layout);
    if (!code && c->made) {
        *c->made = s;
        return ORR_OK;
    }
    orr_set_close(s);
    return code;
}

static orr_code stage_run(cli_context *c, orr_error *err)
{
    const orr_compat *old;
    /* With --compat and STAGE built in, main.c has chosen STAGE's table instead. */
    if (cli_flag(c, "compat"))
        return orr_compat_find(ORR_RULES_STAGE, NULL, &old, err);
    if (!c->arg_count)
        return cli_misuse(err, "missing argument: MODEL; see 'orrery model --list'");
    return run(c, err);
}

const cli_command cli_cmd_stage = {
    .name = "stage",
    .summary = "generate traces of LLM training",
    .description =
        "Generates the traces of all ranks for a model and its parallelism: each operation with its "
        "FLOPs and bytes, each collective with its group, in the order of the pipeline schedule. Prints the memory that the step needs on "
        "each device; without --output nothing is written.\n\n"
        "With --compat the traces are those of STAGE, ASTRA-sim's symbolic tensor graph generator, byte for "
        "byte, and so are the options and their defaults, which differ: orrery stage --compat --help.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-check(1), orrery-info(1), orrery-run(1), orrery-old-names(7)",
    .run = stage_run,
};
