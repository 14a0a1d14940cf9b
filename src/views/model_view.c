/* SPDX-License-Identifier: Apache-2.0 */
/* model_view.c - parameters, FLOPs and memory of a language model, and the list of the built-in
 * ones, as text and as JSON (docs/format/model.md). */
#include <orrery/lab/show.h>
#include <orrery/lab/units.h>
#include <orrery/version.h>

#include "views_impl.h"

#include <inttypes.h>
#include <stdio.h>

static const orr_dtype dtypes[] = {ORR_DTYPE_FP32, ORR_DTYPE_BF16, ORR_DTYPE_FP8};

enum { KV_BYTES = 2, DTYPES = sizeof dtypes / sizeof *dtypes };

static uint64_t per_token(const orr_model_figures *s, uint64_t flops)
{
    const uint64_t n = s->work.tokens;
    return flops / n + (flops % n >= n - flops % n); /* rounded to nearest */
}

/* ---- for people ---- */

static void print_linear(orr_buf *b, const orr_model *m)
{
    if (m->linear_heads)
        orr_buf_print(b,
                      "  linear      %" PRIu64 " heads of %" PRIu64 " x %" PRIu64 ", %" PRIu64
                      " for keys\n",
                      m->linear_heads, m->linear_key_dim, m->linear_value_dim, m->linear_key_heads);
    if (m->ssm_inner)
        orr_buf_print(b, "  state space %" PRIu64 " wide, %" PRIu64 " states%s", m->ssm_inner,
                      m->ssm_state, m->ssm_heads ? "" : "\n");
    if (m->ssm_inner && m->ssm_heads)
        orr_buf_print(b, ", %" PRIu64 " heads\n", m->ssm_heads);
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

static void print_kinds(orr_buf *b, const orr_model *m)
{
    kind kinds[KINDS];
    char name[ORR_MODEL_NAME];
    if (m->mixers[0] == '\0' && m->ffns[0] == '\0')
        return;
    const size_t n = list_kinds(m, kinds);
    for (size_t i = 0; i < n; i++)
        orr_buf_print(b, "              %" PRIu64 " %s%s\n", kinds[i].count,
                      orr_model_layer_name(m, kinds[i].first, name),
                      kinds[i].count == 1 ? "" : "s");
}

static void print_attention(orr_buf *b, const orr_model *m)
{
    static const char *const positions[] = {"rotary", "learned", "ALiBi", "no"};
    print_kinds(b, m);
    print_linear(b, m);
    if (m->heads == 0) {
        orr_buf_print(b, "  positions   %s\n", positions[m->position]);
        return;
    }
    if (orr_model_is_mla(m))
        orr_buf_print(b,
                      "  attention   %" PRIu64 " heads, MLA: queries and keys of %" PRIu64
                      " + %" PRIu64 ", values of %" PRIu64 ";\n              compressed to %" PRIu64
                      " + %" PRIu64,
                      m->heads, m->qk_nope_head_dim, m->qk_rope_head_dim, m->v_head_dim,
                      m->kv_lora_rank, m->qk_rope_head_dim);
    else
        orr_buf_print(
            b, "  attention   %" PRIu64 " heads of %" PRIu64 ", %" PRIu64 " for keys and values",
            m->heads, m->head_dim, m->kv_heads);
    if (m->has_qkv_bias || m->has_output_bias)
        orr_buf_print(b, "; biases%s",
                      !m->has_output_bias ? " but at the output"
                      : !m->has_qkv_bias  ? " at the output"
                                          : "");
    if (m->window)
        orr_buf_print(b, "\n              window of %" PRIu64 " tokens", m->window);
    if (m->window && m->global_every)
        orr_buf_print(b, "; one layer in %" PRIu64 " sees all", m->global_every);
    if (m->window && m->window_from)
        orr_buf_print(b, "; layers before %" PRIu64 " see all", m->window_from);
    orr_buf_print(b, "\n  positions   %s", positions[m->position]);
    if (m->max_positions)
        orr_buf_print(b, ", at most %" PRIu64, m->max_positions);
    orr_buf_print(b, "\n");
}

static void print_experts(orr_buf *b, const orr_model *m)
{
    orr_buf_print(b, "  experts     %" PRIu64 " of %" PRIu64 ", %" PRIu64 " per token", m->experts,
                  m->expert_ffn, m->experts_per_token);
    if (m->shared_experts)
        orr_buf_print(b, ", %" PRIu64 " shared of %" PRIu64, m->shared_experts, m->shared_ffn);
    if (m->dense_first)
        orr_buf_print(b, "; from layer %" PRIu64 " on", m->dense_first);
    if (m->moe_every)
        orr_buf_print(b, "; one layer in %" PRIu64, m->moe_every);
    orr_buf_print(b, "\n");
}

static void print_ffn(orr_buf *b, const orr_model *m)
{
    orr_buf_print(b, "  FFN         ");
    if (m->ffn)
        orr_buf_print(b, "%" PRIu64 " wide, ", m->ffn);
    orr_buf_print(b, "%s%s\n", m->is_gated ? "gated" : "not gated",
                  m->has_ffn_bias ? ", with biases" : "");
    if (m->experts)
        print_experts(b, m);
}

static void print_head(orr_buf *b, const orr_model *m)
{
    static const char *const norms[] = {"RMS", "layer", "layer, without biases", "without weights"};
    orr_buf_print(b, "%s\n  layers      %" PRIu64 ", %" PRIu64 " wide%s\n", m->name, m->layers,
                  m->hidden, m->is_parallel ? ", attention and FFN side by side" : "");
    print_attention(b, m);
    print_ffn(b, m);
    orr_buf_print(b, "  norms       %s, %" PRIu64 " per layer%s\n", norms[m->norm], m->block_norms,
                  m->qk_norm ? ", and of queries and keys" : "");
    orr_buf_print(b, "  vocabulary  %" PRIu64 "%s\n", orr_model_vocab_rows(m),
                  m->is_tied ? ", the head is the embedding" : "");
}

static void print_parts(orr_buf *b, const orr_model_figures *s)
{
    char n[ORR_UNIT_ROOM], share[ORR_UNIT_ROOM];
    orr_buf_print(b, "\n  %-16s %22s %8s\n", "part", "parameters", "share");
    for (int p = 0; p < ORR_MODEL_PARTS; p++) {
        const uint64_t size = s->counts.part[p];
        if (size)
            orr_buf_print(b, "  %-16s %22s %8s\n", orr_model_part_name((orr_model_part)p),
                          orr_count_text(size, n), orr_percent_text(size, s->counts.total, share));
    }
    orr_buf_print(b, "  %-16s %22s\n", "total", orr_count_text(s->counts.total, n));
    if (s->counts.active != s->counts.total)
        orr_buf_print(b, "  %-16s %22s %8s\n", "active per token",
                      orr_count_text(s->counts.active, n),
                      orr_percent_text(s->counts.active, s->counts.total, share));
    if (s->model->mtp_layers)
        orr_buf_print(b,
                      "  %-16s %22s  not in the total: %" PRIu64
                      " layer%s that predict%s further tokens\n",
                      "MTP", orr_count_text(orr_model_mtp_count(s->model), n), s->model->mtp_layers,
                      s->model->mtp_layers == 1 ? "" : "s", s->model->mtp_layers == 1 ? "s" : "");
    if (s->model->is_uncertain)
        orr_buf_print(b, "  not certain: %s\n", s->model->note);
}

static void print_flops(orr_buf *b, const orr_model_figures *s)
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
    orr_buf_print(b, "\n  %" PRIu64 " token%s", s->work.tokens, s->work.tokens == 1 ? "" : "s");
    if (s->work.past)
        orr_buf_print(b, " after %" PRIu64 " others", s->work.past);
    orr_buf_print(b, "\n  %-16s %22s %8s\n", "FLOPs per token", "forward", "share");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].flops)
            orr_buf_print(b, "  %-16s %22s %8s\n", rows[i].name,
                          orr_count_text(per_token(s, rows[i].flops), n),
                          orr_percent_text(rows[i].flops, f->forward, share));
    }
    orr_buf_print(b, "  %-16s %22s\n", "total", orr_count_text(per_token(s, f->forward), n));
    if (s->work.past == 0)
        orr_buf_print(b, "  %-16s %22s\n", "in training",
                      orr_count_text(per_token(s, f->training), n));
}

static void print_memory(orr_buf *b, const orr_model_figures *s)
{
    char a[ORR_UNIT_ROOM];
    orr_buf_print(b, "\n  weights     ");
    for (size_t i = 0; i < DTYPES; i++)
        orr_buf_print(b, "%s%s in %s", i ? ", " : "",
                      orr_bytes_text(s->counts.total * orr_dtype_bytes(dtypes[i]), a),
                      orr_dtype_name(dtypes[i]));
    if (s->model->mixers[0]) {
        orr_buf_print(b, "\n  KV cache    %s in all, states included\n",
                      orr_bytes_text(s->kv_elements * KV_BYTES, a));
        return;
    }
    orr_buf_print(b, "\n  KV cache    %s per token and layer in bf16",
                  orr_bytes_text(orr_model_kv_elements(s->model) * KV_BYTES, a));
    orr_buf_print(b, "; %s in all\n", orr_bytes_text(s->kv_elements * KV_BYTES, a));
}

static void print_tensor(orr_buf *b, const orr_model_tensor *t)
{
    char shape[64], n[ORR_UNIT_ROOM];
    if (t->copies > 1)
        snprintf(shape, sizeof shape, "%" PRIu64 " x %" PRIu64 " x %" PRIu64, t->copies, t->rows,
                 t->columns);
    else
        snprintf(shape, sizeof shape, "%" PRIu64 " x %" PRIu64, t->rows, t->columns);
    orr_buf_print(b, "  %-20s %26s  %-6s %20s\n", t->name, shape, t->has_bias ? "+ bias" : "",
                  t->is_tied ? "tied" : orr_count_text(orr_model_tensor_size(t), n));
}

static void print_kind(orr_buf *b, const orr_model *m, const kind *k)
{
    orr_model_tensor t[ORR_MODEL_TENSORS];
    char name[ORR_MODEL_NAME];
    orr_model_layer_name(m, k->first, name);
    orr_buf_print(b, "\n  %s %s, of which there %s %" PRIu64 "\n",
                  strchr("aAMR", name[0]) ? "an" : "a", name, k->count == 1 ? "is" : "are",
                  k->count);
    const size_t n = orr_model_layer_tensors(m, k->first, t);
    for (size_t i = 0; i < n; i++)
        print_tensor(b, &t[i]);
}

/* Dense layers, and MoE layers: within each kind all layers have the same tensors. */
static void print_tensors(orr_buf *b, const orr_model *m)
{
    orr_model_tensor t[ORR_MODEL_TENSORS];
    kind kinds[KINDS];
    const size_t count = list_kinds(m, kinds);
    for (int is_moe = 0; is_moe < 2; is_moe++)
        for (size_t i = 0; i < count; i++)
            if (orr_model_is_moe(m, kinds[i].first) == is_moe)
                print_kind(b, m, &kinds[i]);
    orr_buf_print(b, "\n  embedding and head\n");
    const size_t n = orr_model_end_tensors(m, t);
    for (size_t i = 0; i < n; i++)
        print_tensor(b, &t[i]);
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

static void put_flops(orr_json_writer *w, const orr_model_figures *s)
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

static void put_model(orr_json_writer *w, const orr_model *m)
{
    char text[ORR_MODEL_TEXT];
    orr_model_json(m, text, sizeof text);
    orr_json_key(w, "model");
    orr_json_raw_text(w, orr_str_of(text));
}

static orr_code save_json(const orr_model_figures *s,
                          bool has_tensors,
                          const char *path,
                          orr_error *err)
{
    orr__document d;
    orr_json_writer *w = orr__document_begin(&d, "orrery-model-report");
    orr_json_put_text(w, "program", "orrery " ORR_VERSION);
    orr_json_line(w, 1);
    put_model(w, s->model);
    orr_json_line(w, 1);
    orr_json_put_fields(w, ORR_T("note", s->model->note),
                        ORR_B("is_certain", !s->model->is_uncertain));
    orr_json_line(w, 1);
    put_parts(w, &s->counts, orr_model_mtp_count(s->model));
    orr_json_line(w, 1);
    orr_json_put_fields(w, ORR_U("tokens", s->work.tokens), ORR_U("past", s->work.past),
                        ORR_B("is_square", s->work.is_square),
                        ORR_B("is_mla_absorbed", s->work.is_mla_absorbed));
    orr_json_line(w, 1);
    put_flops(w, s);
    orr_json_line(w, 1);
    orr_json_put_object(w, "weight_bytes");
    for (size_t i = 0; i < DTYPES; i++)
        orr_json_put_u64(w, orr_dtype_name(dtypes[i]),
                         s->counts.total * orr_dtype_bytes(dtypes[i]));
    orr_json_end_object(w);
    orr_json_line(w, 1);
    orr_json_put_fields(
        w, ORR_U("kv_elements_per_token_and_layer", orr_model_kv_elements(s->model)),
        ORR_U("kv_elements", s->kv_elements), ORR_U("kv_bytes_bf16", s->kv_elements * KV_BYTES));
    if (has_tensors)
        put_layers(w, s->model);
    return orr__document_save(&d, path, err);
}

orr_code orr_show_model(const orr_model_figures *f,
                        bool has_tensors,
                        orr_show_form form,
                        const char *path,
                        orr_error *err)
{
    orr_buf b = {0};
    if (form == ORR_SHOW_JSON)
        return save_json(f, has_tensors, path, err);
    print_head(&b, f->model);
    print_parts(&b, f);
    print_flops(&b, f);
    print_memory(&b, f);
    if (has_tensors)
        print_tensors(&b, f->model);
    return orr__text_save(&b, path, err);
}

/* ---- the list ---- */

static void print_row(orr_buf *b, const orr_model *m)
{
    char total[ORR_UNIT_ROOM], active[ORR_UNIT_ROOM];
    orr_model_counts n;
    orr_model_count(m, &n);
    orr_buf_print(b, "%-18s %10s %10s %7" PRIu64 " %7" PRIu64 " %6" PRIu64, m->name,
                  orr_short_text(n.total, total), orr_short_text(n.active, active), m->layers,
                  m->hidden, m->heads);
    if (orr_model_is_mla(m))
        orr_buf_print(b, " %4s", "MLA");
    else
        orr_buf_print(b, " %4" PRIu64, m->kv_heads);
    orr_buf_print(b, " %9" PRIu64 "\n", m->max_positions);
}

static void put_row(orr_json_writer *w, const orr_model *m)
{
    orr_model_counts n;
    orr_model_count(m, &n);
    orr_json_line(w, 2);
    orr_json_begin_object(w);
    orr_json_put_fields(w, ORR_U("parameters", n.total), ORR_U("active_parameters", n.active));
    put_model(w, m);
    orr_json_end_object(w);
}

orr_code orr_show_models(orr_show_form form, const char *path, orr_error *err)
{
    orr_buf b = {0};
    orr__document d;
    if (form == ORR_SHOW_JSON) {
        orr_json_writer *w = orr__document_begin(&d, "orrery-models");
        orr_json_put_array(w, "models");
        for (size_t i = 0; orr_model_at(i); i++)
            put_row(w, orr_model_at(i));
        orr_json_end_array(w);
        return orr__document_save(&d, path, err);
    }
    orr_buf_print(&b, "%-18s %10s %10s %7s %7s %6s %4s %9s\n", "name", "parameters", "active",
                  "layers", "hidden", "heads", "kv", "positions");
    for (size_t i = 0; orr_model_at(i); i++)
        print_row(&b, orr_model_at(i));
    return orr__text_save(&b, path, err);
}
