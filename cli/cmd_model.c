/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_model.c - orrery model: parameters, FLOPs and memory of a language model. */
#include "command.h"

#include <orrery/lab/model.h>

#include <inttypes.h>
#include <stdio.h>

enum { USUAL_TOKENS = 4096, KV_BYTES = 2 /* bf16 */ };

static const cli_option options[] = {
    {"seq", 's', "N", "tokens per sequence; default: 4096, or the model's limit", CLI_COUNT, 1,
     1ull << 40},
    {"past", 0, "N", "tokens already in the KV cache", CLI_COUNT, .max = 1ull << 40,
     .fallback = "0"},
    {"square", 0, NULL, "count masked attention scores too, as many papers do"},
    {"absorbed", 0, NULL, "MLA: attend in the compressed space, as in decoding"},
    {"tensors", 't', NULL, "list the tensors of each kind of layer, embedding and head"},
    {"print", 'p', NULL, "print the model as a YAML file to start from"},
    {"list", 'l', NULL, "list the built-in models"},
    {"json", 0, NULL, "print one JSON object"},
    {0},
};

static const cli_argument arguments[] = {
    {"MODEL", "a name from --list, a file, or a folder with a config.json", CLI_MAYBE},
    {0},
};

static const cli_example examples[] = {
    {"List what is built in:", "orrery model --list", 0},
    {"Parameters, FLOPs and memory of one:", "orrery model llama-3-8b --seq 8192", 0},
    {"What a layer of DeepSeek-V3 is made of:", "orrery model deepseek-v3 --tensors", 0},
    {"Your own model, from the file of another:",
     "orrery model gpt2 --print | sed 's/^layers: .*/layers: 24/' > mine.yml", 0},
    {"A decode step, as JSON:", "orrery model mine.yml --seq 1 --past 1000 --json", 0},
    {0},
};

/* ---- figures ---- */

static orr_code examine(const cli_context *c, orr_model_figures *s, orr_error *err)
{
    const uint64_t most = s->model->max_positions;
    s->work = (orr_model_work){.tokens = most && most < USUAL_TOKENS ? most : USUAL_TOKENS,
                               .past = cli_count(c, "past"),
                               .is_square = cli_flag(c, "square"),
                               .is_mla_absorbed = cli_flag(c, "absorbed")};
    if (cli_given(c, "seq"))
        s->work.tokens = cli_count(c, "seq");
    orr_model_count(s->model, &s->counts);
    orr_code code = orr_model_compute(s->model, &s->work, &s->flops, err);
    if (!code)
        code = orr_model_kv_cache(s->model, s->work.tokens + s->work.past, &s->kv_elements, err);
    if (!code && s->kv_elements > UINT64_MAX / KV_BYTES)
        code = cli_misuse(err, "the KV cache has more than 2^64 bytes");
    return code;
}

static void say_notes(const cli_context *c, const orr_model_figures *s)
{
    const orr_model *m = s->model;
    if (m->note[0])
        cli_note(c, "%s: %s\n", m->name, m->note);
    if (m->max_positions && s->work.tokens + s->work.past > m->max_positions)
        cli_note(c, "%s: %" PRIu64 " tokens exceed the model's limit of %" PRIu64 "\n", m->name,
                 s->work.tokens + s->work.past, m->max_positions);
}

/* ---- the command ---- */

static orr_code describe(const cli_context *c, const orr_model *m, orr_error *err)
{
    char text[ORR_MODEL_TEXT];
    orr_model_figures f = {.model = m};
    if (cli_flag(c, "print")) {
        orr_model_text(m, text, sizeof text);
        fputs(text, stdout);
        return ORR_OK;
    }
    const orr_code code = examine(c, &f, err);
    if (code)
        return code;
    say_notes(c, &f);
    return orr_show_model(&f, cli_flag(c, "tensors"), cli_show_form(c), "-", err);
}

static orr_code model_run(cli_context *c, orr_error *err)
{
    orr_model m;
    if (cli_flag(c, "list"))
        return orr_show_models(cli_show_form(c), "-", err);
    if (c->arg_count == 0)
        return cli_misuse(err, "missing argument: MODEL; see 'orrery model --list'");
    const orr_code code = orr_model_load(c->args[0], &m, err);
    return code ? code : describe(c, &m, err);
}

const cli_command cli_cmd_model = {
    .name = "model",
    .summary = "show a model's parameters, FLOPs and memory",
    .description =
        "Prints the architecture, parameters by part, FLOPs per token, memory of weights and KV cache. A "
        "model is a built-in one, an Orrery file (YAML or JSON), or the config.json of a model "
        "on Hugging Face, of nearly any family.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-gen(1), orrery-run(1)",
    .run = model_run,
};
