/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_model.c - orrery model: parameters, FLOPs and memory of a language model. */
#include "command.h"

#include <orrery/lab/model.h>
#include <orrery/lab/units.h>
#include <orrery/version.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { USUAL_TOKENS = 4096, KV_BYTES = 2 };

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

/* A model and the figures requested. */
typedef struct subject {
    orr_model m;
    orr_model_work work;
    orr_model_counts counts;
    orr_model_flops flops;
    uint64_t cache; /* elements in the KV cache */
} subject;

/* ---- figures ---- */

typedef struct dtype {
    const char *name;
    uint64_t bytes;
} dtype;

static const dtype dtypes[] = {{"fp32", 4}, {"bf16", 2}, {"fp8", 1}};

enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static uint64_t per_token(const subject *s, uint64_t flops)
{
    const uint64_t n = s->work.tokens;
    return flops / n + (flops % n >= n - flops % n); /* rounded to nearest */
}

static orr_code examine(const cli_context *c, subject *s, orr_error *err)
{
    const uint64_t most = s->m.max_positions;
    s->work = (orr_model_work){.tokens = most && most < USUAL_TOKENS ? most : USUAL_TOKENS,
                               .past = cli_count(c, "past"),
                               .is_square = cli_flag(c, "square"),
                               .is_mla_absorbed = cli_flag(c, "absorbed")};
    if (cli_given(c, "seq"))
        s->work.tokens = cli_count(c, "seq");
    orr_model_count(&s->m, &s->counts);
    orr_code code = orr_model_compute(&s->m, &s->work, &s->flops, err);
    if (!code)
        code = orr_model_kv_cache(&s->m, s->work.tokens + s->work.past, &s->cache, err);
    if (!code && s->cache > UINT64_MAX / KV_BYTES)
        code = cli_misuse(err, "the KV cache has more than 2^64 bytes");
    return code;
}

static void say_notes(const cli_context *c, const subject *s)
{
    const orr_model *m = &s->m;
    if (m->note[0])
        cli_note(c, "%s: %s\n", m->name, m->note);
    if (m->max_positions && s->work.tokens + s->work.past > m->max_positions)
        cli_note(c, "%s: %" PRIu64 " tokens exceed the model's limit of %" PRIu64 "\n", m->name,
                 s->work.tokens + s->work.past, m->max_positions);
}

/* ---- for people ---- */

static void print_linear(const orr_model *m)
{
    if (m->linear_heads)
        printf("  linear      %" PRIu64 " heads of %" PRIu64 " x %" PRIu64 ", %" PRIu64
               " for keys\n",
               m->linear_heads, m->linear_key_dim, m->linear_value_dim, m->linear_key_heads);
    if (m->ssm_inner)
        printf("  state space %" PRIu64 " wide, %" PRIu64 " states%s", m->ssm_inner, m->ssm_state,
               m->ssm_heads ? "" : "\n");
    if (m->ssm_inner && m->ssm_heads)
        printf(", %" PRIu64 " heads\n", m->ssm_heads);
}

/* Kinds of layers, in order of first occurrence. */
typedef struct kind {
    uint64_t first, count;
} kind;

enum { KINDS = 64 };

static size_t list_kinds(const orr_model *m, kind out[KINDS])
{
    size_t n = 0;
    for (uint64_t i = 0; i < m->layers; i++) {
        size_t k = 0;
        while (k < n && !orr_model_is_alike(m, out[k].first, i))
            k++;
        if (k == n && n < KINDS)
            out[n++] = (kind){.first = i};
        if (k < n)
            out[k].count++;
    }
    return n;
}

static void print_kinds(const orr_model *m)
{
    kind kinds[KINDS];
    char name[ORR_MODEL_NAME];
    if (m->mixers[0] == '\0' && m->ffns[0] == '\0')
        return;
    const size_t n = list_kinds(m, kinds);
    for (size_t i = 0; i < n; i++)
        printf("              %" PRIu64 " %s%s\n", kinds[i].count,
               orr_model_layer_name(m, kinds[i].first, name), kinds[i].count == 1 ? "" : "s");
}

static void print_attention(const orr_model *m)
{
    static const char *const positions[] = {"rotary", "learned", "ALiBi", "no"};
    print_kinds(m);
    print_linear(m);
    if (m->heads == 0) {
        printf("  positions   %s\n", positions[m->position]);
        return;
    }
    if (orr_model_is_mla(m))
        printf("  attention   %" PRIu64 " heads, MLA: queries and keys of %" PRIu64 " + %" PRIu64
               ", values of %" PRIu64 ";\n              compressed to %" PRIu64 " + %" PRIu64,
               m->heads, m->qk_nope_head_dim, m->qk_rope_head_dim, m->v_head_dim, m->kv_lora_rank,
               m->qk_rope_head_dim);
    else
        printf("  attention   %" PRIu64 " heads of %" PRIu64 ", %" PRIu64 " for keys and values",
               m->heads, m->head_dim, m->kv_heads);
    if (m->has_qkv_bias || m->has_output_bias)
        printf("; biases%s", !m->has_output_bias ? " but at the output"
                             : !m->has_qkv_bias  ? " at the output"
                                                 : "");
    if (m->window)
        printf("\n              window of %" PRIu64 " tokens", m->window);
    if (m->window && m->global_every)
        printf("; one layer in %" PRIu64 " sees all", m->global_every);
    if (m->window && m->window_from)
        printf("; layers before %" PRIu64 " see all", m->window_from);
    printf("\n  positions   %s", positions[m->position]);
    if (m->max_positions)
        printf(", at most %" PRIu64, m->max_positions);
    printf("\n");
}

static void print_experts(const orr_model *m)
{
    printf("  experts     %" PRIu64 " of %" PRIu64 ", %" PRIu64 " per token", m->experts,
           m->expert_ffn, m->experts_per_token);
    if (m->shared_experts)
        printf(", %" PRIu64 " shared of %" PRIu64, m->shared_experts, m->shared_ffn);
    if (m->dense_first)
        printf("; from layer %" PRIu64 " on", m->dense_first);
    if (m->moe_every)
        printf("; one layer in %" PRIu64, m->moe_every);
    printf("\n");
}

static void print_ffn(const orr_model *m)
{
    printf("  FFN         ");
    if (m->ffn)
        printf("%" PRIu64 " wide, ", m->ffn);
    printf("%s%s\n", m->is_gated ? "gated" : "not gated", m->has_ffn_bias ? ", with biases" : "");
    if (m->experts)
        print_experts(m);
}

static void print_head(const orr_model *m)
{
    static const char *const norms[] = {"RMS", "layer", "layer, without biases", "without weights"};
    printf("%s\n  layers      %" PRIu64 ", %" PRIu64 " wide%s\n", m->name, m->layers, m->hidden,
           m->is_parallel ? ", attention and FFN side by side" : "");
    print_attention(m);
    print_ffn(m);
    printf("  norms       %s, %" PRIu64 " per layer%s\n", norms[m->norm], m->block_norms,
           m->qk_norm ? ", and of queries and keys" : "");
    printf("  vocabulary  %" PRIu64 "%s\n", orr_model_vocab_rows(m),
           m->is_tied ? ", the head is the embedding" : "");
}

static void print_parts(const subject *s)
{
    char n[ORR_UNIT_ROOM], share[ORR_UNIT_ROOM];
    printf("\n  %-16s %22s %8s\n", "part", "parameters", "share");
    for (int p = 0; p < ORR_MODEL_PARTS; p++) {
        const uint64_t size = s->counts.part[p];
        if (size)
            printf("  %-16s %22s %8s\n", orr_model_part_name((orr_model_part)p),
                   orr_count_text(size, n), orr_percent_text(size, s->counts.total, share));
    }
    printf("  %-16s %22s\n", "total", orr_count_text(s->counts.total, n));
    if (s->counts.active != s->counts.total)
        printf("  %-16s %22s %8s\n", "active per token", orr_count_text(s->counts.active, n),
               orr_percent_text(s->counts.active, s->counts.total, share));
    if (s->m.mtp_layers)
        printf("  %-16s %22s  not in the total: %" PRIu64
               " layer%s that predict%s further tokens\n",
               "MTP", orr_count_text(orr_model_mtp_count(&s->m), n), s->m.mtp_layers,
               s->m.mtp_layers == 1 ? "" : "s", s->m.mtp_layers == 1 ? "s" : "");
    if (s->m.is_uncertain)
        printf("  not certain: %s\n", s->m.note);
}

static void print_flops(const subject *s)
{
    const orr_model_flops *f = &s->flops;
    const struct {
        const char *name;
        uint64_t flops;
    } rows[] = {{"attention", f->attention},
                {"scores", f->scores},
                {"router", f->router},
                {"FFN", f->ffn},
                {"head", f->head}};
    char n[ORR_UNIT_ROOM], share[ORR_UNIT_ROOM];
    printf("\n  %" PRIu64 " token%s", s->work.tokens, s->work.tokens == 1 ? "" : "s");
    if (s->work.past)
        printf(" after %" PRIu64 " others", s->work.past);
    printf("\n  %-16s %22s %8s\n", "FLOPs per token", "forward", "share");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].flops)
            printf("  %-16s %22s %8s\n", rows[i].name,
                   orr_count_text(per_token(s, rows[i].flops), n),
                   orr_percent_text(rows[i].flops, f->forward, share));
    }
    printf("  %-16s %22s\n", "total", orr_count_text(per_token(s, f->forward), n));
    if (s->work.past == 0)
        printf("  %-16s %22s\n", "in training", orr_count_text(per_token(s, f->training), n));
}

static void print_memory(const subject *s)
{
    char a[ORR_UNIT_ROOM];
    printf("\n  weights     ");
    for (size_t i = 0; i < DTYPES; i++)
        printf("%s%s in %s", i ? ", " : "", orr_bytes_text(s->counts.total * dtypes[i].bytes, a),
               dtypes[i].name);
    if (s->m.mixers[0]) {
        printf("\n  KV cache    %s in all, states included\n",
               orr_bytes_text(s->cache * KV_BYTES, a));
        return;
    }
    printf("\n  KV cache    %s per token and layer in bf16",
           orr_bytes_text(orr_model_kv_elements(&s->m) * KV_BYTES, a));
    printf("; %s in all\n", orr_bytes_text(s->cache * KV_BYTES, a));
}

static void print_tensor(const orr_model_tensor *t)
{
    char shape[64], n[ORR_UNIT_ROOM];
    if (t->copies > 1)
        snprintf(shape, sizeof shape, "%" PRIu64 " x %" PRIu64 " x %" PRIu64, t->copies, t->rows,
                 t->columns);
    else
        snprintf(shape, sizeof shape, "%" PRIu64 " x %" PRIu64, t->rows, t->columns);
    printf("  %-20s %26s  %-6s %20s\n", t->name, shape, t->has_bias ? "+ bias" : "",
           t->is_tied ? "tied" : orr_count_text(orr_model_tensor_size(t), n));
}

static void print_kind(const orr_model *m, const kind *k)
{
    orr_model_tensor t[ORR_MODEL_TENSORS];
    char name[ORR_MODEL_NAME];
    orr_model_layer_name(m, k->first, name);
    printf("\n  %s %s, of which there %s %" PRIu64 "\n", strchr("aAMR", name[0]) ? "an" : "a", name,
           k->count == 1 ? "is" : "are", k->count);
    const size_t n = orr_model_layer_tensors(m, k->first, t);
    for (size_t i = 0; i < n; i++)
        print_tensor(&t[i]);
}

/* Dense layers, and MoE layers: within each kind all layers have the same tensors. */
static void print_tensors(const orr_model *m)
{
    orr_model_tensor t[ORR_MODEL_TENSORS];
    kind kinds[KINDS];
    const size_t count = list_kinds(m, kinds);
    for (int is_moe = 0; is_moe < 2; is_moe++)
        for (size_t i = 0; i < count; i++)
            if (orr_model_is_moe(m, kinds[i].first) == is_moe)
                print_kind(m, &kinds[i]);
    printf("\n  embedding and head\n");
    const size_t n = orr_model_end_tensors(m, t);
    for (size_t i = 0; i < n; i++)
        print_tensor(&t[i]);
}

/* ---- for programs ---- */

static void put_parts(orr_json_writer *w, const orr_model_counts *n, uint64_t mtp)
{
    static const char *const keys[ORR_MODEL_PARTS] = {
        "embedding", "positions", "attention",      "linear", "ffn",
        "router",    "experts",   "shared_experts", "norms",  "head"};
    orr_json_put_object(w, "parameters");
    orr_json_put_fields(w, ORR_U("total", n->total), ORR_U("active", n->active),
                        ORR_U("matmul", n->matmul), ORR_U("mtp", mtp));
    for (int p = 0; p < ORR_MODEL_PARTS; p++)
        orr_json_put_u64(w, keys[p], n->part[p]);
    orr_json_end_object(w);
}

static void put_flops(orr_json_writer *w, const subject *s)
{
    const orr_model_flops *f = &s->flops;
    orr_json_put_object(w, "flops");
    orr_json_put_fields(w, ORR_U("attention", f->attention), ORR_U("scores", f->scores),
                        ORR_U("router", f->router), ORR_U("ffn", f->ffn), ORR_U("head", f->head),
                        ORR_U("forward", f->forward), ORR_U("training", f->training));
    orr_json_end_object(w);
    orr_json_line(w, 1);
    orr_json_put_u64(w, "forward_flops_per_token", per_token(s, f->forward));
    orr_json_put_u64(w, "training_flops_per_token", per_token(s, f->training));
}

static void put_tensors(orr_json_writer *w, const orr_model *m, uint64_t layer, bool is_end)
{
    orr_model_tensor t[ORR_MODEL_TENSORS];
    const size_t n = is_end ? orr_model_end_tensors(m, t) : orr_model_layer_tensors(m, layer, t);
    orr_json_begin_array(w);
    for (size_t i = 0; i < n; i++) {
        orr_json_line(w, 3);
        orr_json_put_row(w, ORR_T("name", t[i].name), ORR_U("rows", t[i].rows),
                         ORR_U("columns", t[i].columns), ORR_U("copies", t[i].copies),
                         ORR_U("active", t[i].active), ORR_B("has_bias", t[i].has_bias),
                         ORR_B("is_tied", t[i].is_tied),
                         ORR_U("parameters", orr_model_tensor_size(&t[i])));
    }
    orr_json_end_array(w);
}

/* "layer" and "moe_layer"; layers of other kinds are named after their mixer. */
static void put_layers(orr_json_writer *w, const orr_model *m)
{
    char key[ORR_MODEL_NAME];
    kind kinds[KINDS];
    const size_t count = list_kinds(m, kinds);
    orr_json_line(w, 1);
    orr_json_key(w, "ends");
    put_tensors(w, m, 0, true);
    for (size_t i = 0; i < count; i++) {
        orr_model_layer_name(m, kinds[i].first, key);
        for (char *p = key; *p; p++)
            *p = *p == ' ' || *p == '-'   ? '_'
                 : *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a')
                                          : *p;
        orr_json_line(w, 1);
        orr_json_key(w, key);
        put_tensors(w, m, kinds[i].first, false);
    }
}

static void print_json(const cli_context *c, const subject *s)
{
    char text[ORR_MODEL_TEXT];
    cli_json j;
    orr_json_writer *w = cli_json_open(&j, "orrery-model-report");
    orr_model_json(&s->m, text, sizeof text);
    orr_json_put_text(w, "program", "orrery " ORR_VERSION);
    orr_json_line(w, 1);
    orr_json_key(w, "model");
    orr_json_raw_text(w, orr_str_of(text));
    orr_json_line(w, 1);
    orr_json_put_fields(w, ORR_T("note", s->m.note), ORR_B("is_certain", !s->m.is_uncertain));
    orr_json_line(w, 1);
    put_parts(w, &s->counts, orr_model_mtp_count(&s->m));
    orr_json_line(w, 1);
    orr_json_put_fields(w, ORR_U("tokens", s->work.tokens), ORR_U("past", s->work.past),
                        ORR_B("is_square", s->work.is_square),
                        ORR_B("is_mla_absorbed", s->work.is_mla_absorbed));
    orr_json_line(w, 1);
    put_flops(w, s);
    orr_json_line(w, 1);
    orr_json_put_object(w, "weight_bytes");
    for (size_t i = 0; i < DTYPES; i++)
        orr_json_put_u64(w, dtypes[i].name, s->counts.total * dtypes[i].bytes);
    orr_json_end_object(w);
    orr_json_line(w, 1);
    orr_json_put_fields(w, ORR_U("kv_elements_per_token_and_layer", orr_model_kv_elements(&s->m)),
                        ORR_U("kv_elements", s->cache),
                        ORR_U("kv_bytes_bf16", s->cache * KV_BYTES));
    if (cli_flag(c, "tensors"))
        put_layers(w, &s->m);
    cli_json_close(&j);
}

/* ---- the list ---- */

static void list(void)
{
    printf("%-18s %10s %10s %7s %7s %6s %4s %9s\n", "name", "parameters", "active", "layers",
           "hidden", "heads", "kv", "positions");
    for (size_t i = 0; orr_model_at(i); i++) {
        const orr_model *m = orr_model_at(i);
        char total[ORR_UNIT_ROOM], active[ORR_UNIT_ROOM];
        orr_model_counts n;
        orr_model_count(m, &n);
        printf("%-18s %10s %10s %7" PRIu64 " %7" PRIu64 " %6" PRIu64, m->name,
               orr_short_text(n.total, total), orr_short_text(n.active, active), m->layers,
               m->hidden, m->heads);
        if (orr_model_is_mla(m))
            printf(" %4s", "MLA");
        else
            printf(" %4" PRIu64, m->kv_heads);
        printf(" %9" PRIu64 "\n", m->max_positions);
    }
}

static void list_json(void)
{
    char text[ORR_MODEL_TEXT];
    cli_json j;
    orr_json_writer *w = cli_json_open(&j, "orrery-models");
    orr_json_put_array(w, "models");
    for (size_t i = 0; orr_model_at(i); i++) {
        const orr_model *m = orr_model_at(i);
        orr_model_counts n;
        orr_model_count(m, &n);
        orr_model_json(m, text, sizeof text);
        orr_json_line(w, 2);
        orr_json_begin_object(w);
        orr_json_put_fields(w, ORR_U("parameters", n.total), ORR_U("active_parameters", n.active));
        orr_json_key(w, "model");
        orr_json_raw_text(w, orr_str_of(text));
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    cli_json_close(&j);
}

/* ---- the command ---- */

static orr_code describe(const cli_context *c, subject *s, orr_error *err)
{
    char text[ORR_MODEL_TEXT];
    if (cli_flag(c, "print")) {
        orr_model_text(&s->m, text, sizeof text);
        fputs(text, stdout);
        return ORR_OK;
    }
    const orr_code code = examine(c, s, err);
    if (code)
        return code;
    say_notes(c, s);
    if (cli_flag(c, "json")) {
        print_json(c, s);
        return ORR_OK;
    }
    print_head(&s->m);
    print_parts(s);
    print_flops(s);
    print_memory(s);
    if (cli_flag(c, "tensors"))
        print_tensors(&s->m);
    return ORR_OK;
}

static orr_code model_run(cli_context *c, orr_error *err)
{
    subject s;
    if (cli_flag(c, "list")) {
        if (cli_flag(c, "json"))
            list_json();
        else
            list();
        return ORR_OK;
    }
    if (c->arg_count == 0)
        return cli_misuse(err, "missing argument: MODEL; see 'orrery model --list'");
    const orr_code code = orr_model_load(c->args[0], &s.m, err);
    return code ? code : describe(c, &s, err);
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
