/* SPDX-License-Identifier: Apache-2.0 */
/* model.h - the architecture of a language model: its layers, their parameters, FLOPs and KV cache.
 * Nothing here depends on how the model is distributed over ranks.
 *
 *     orr_model m;
 *     orr_model_counts n;
 *     if (orr_model_load("llama-3-8b", &m, &err)) return report(&err);    // a preset, or a file
 *     orr_model_count(&m, &n);                                            // n.total: 8,030,261,248
 *
 * orr_model_layer_tensors lists the tensors of a layer.  Parameters, active parameters and the
 * FLOPs of products are sums over it, so they cannot disagree.  A preset, a model that was read,
 * and a model that passed orr_model_check are *good*: none of their counts overflows.  The
 * functions below require good models.
 *
 * docs/format/model.md describes our file format and what is read from a Hugging Face config.json.
 * Experimental: may change in the next release. */
#ifndef ORRERY_LAB_MODEL_H
#define ORRERY_LAB_MODEL_H

#include <orrery/error.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum orr_model_norm {
    ORR_MODEL_RMS_NORM = 0,       /* a weight */
    ORR_MODEL_LAYER_NORM,         /* a weight and a bias */
    ORR_MODEL_LAYER_NORM_NO_BIAS, /* a weight */
    ORR_MODEL_PLAIN_NORM          /* neither */
} orr_model_norm;

typedef enum orr_model_qk_norm {
    ORR_MODEL_NO_QK_NORM = 0,
    ORR_MODEL_QK_NORM_HEAD, /* one of head_dim for queries, one for keys, shared by all heads */
    ORR_MODEL_QK_NORM_ALL_HEADS, /* over all heads: heads * head_dim and kv_heads * head_dim */
    ORR_MODEL_QK_NORM_EACH_HEAD  /* a separate weight per head, no bias (StableLM 2 12B) */
} orr_model_qk_norm;

typedef enum orr_model_position {
    ORR_MODEL_ROTARY = 0,
    ORR_MODEL_LEARNED, /* an embedding of `position_rows` rows */
    ORR_MODEL_ALIBI,
    ORR_MODEL_NO_POSITION
} orr_model_position;

/* What scales the output of attention before its last product. */
typedef enum orr_model_gate {
    ORR_MODEL_NO_GATE = 0,
    ORR_MODEL_GATE_WIDE, /* one number per column (Qwen3-Next, Kimi K3) */
    ORR_MODEL_GATE_HEAD  /* one number per head */
} orr_model_gate;

/* How the tokens of a layer see earlier ones: the letters of `mixers`. */
typedef enum orr_model_mixer {
    ORR_MIX_ALL = 'a',         /* attention to all earlier tokens */
    ORR_MIX_WINDOW = 'w',      /* attention within the window */
    ORR_MIX_DELTA = 'd',       /* gated delta net (Qwen3-Next, Qwen3.5, OLMo Hybrid) */
    ORR_MIX_KDA = 'k',         /* Kimi delta attention: one decay per channel */
    ORR_MIX_LIGHTNING = 'l',   /* lightning attention (MiniMax-01) */
    ORR_MIX_MAMBA = 'm',       /* Mamba: selective state space */
    ORR_MIX_MAMBA2 = 's',      /* Mamba-2: state space duality */
    ORR_MIX_BOTH = 'b',        /* attention and Mamba-2 side by side (Falcon-H1) */
    ORR_MIX_BLOCK = 'z',       /* Mamba or Mamba-2, and a block shared between layers (Zamba) */
    ORR_MIX_RECURRENT = 'r',   /* RG-LRU (RecurrentGemma) */
    ORR_MIX_CONVOLUTION = 'c', /* gated short convolution (LFM2) */
    ORR_MIX_RWKV = 'v',        /* RWKV-4 */
    ORR_MIX_IMAGE = 'x',       /* attention to an image, not to tokens (Llama 3.2 Vision) */
    ORR_MIX_NONE = 'n'         /* nothing: the layer is only an FFN (Nemotron-H) */
} orr_model_mixer;

/* What follows it: the letters of `ffns`. */
typedef enum orr_model_ffn {
    ORR_FFN_DENSE = 'f',
    ORR_FFN_EXPERTS = 'e',
    ORR_FFN_BOTH = 'b', /* a dense FFN beside the experts (Arctic, Gemma 4) */
    ORR_FFN_NONE = 'n'
} orr_model_ffn;

enum { ORR_MODEL_NAME = 64, ORR_MODEL_NOTE = 400, ORR_MODEL_PATTERN = 256 };

/* Plain values: copy it, change what differs, then orr_model_check.  Zero is "none" or the common
 * case, except for fields commented as needed. */
typedef struct orr_model {
    char name[ORR_MODEL_NAME]; /* printable ASCII without " and \ */
    char note[ORR_MODEL_NOTE]; /* what a reader assumed or left out; empty: nothing */
    bool is_uncertain;         /* a reader met something unknown: counts may be wrong */

    /* One letter per layer, from the first on; a shorter list repeats.  Empty: derived from the
     * window and expert fields below. */
    char mixers[ORR_MODEL_PATTERN];
    char ffns[ORR_MODEL_PATTERN];

    uint64_t layers;         /* needed */
    uint64_t hidden;         /* needed: width between layers */
    uint64_t vocab;          /* needed: rows of the embedding */
    uint64_t vocab_multiple; /* the embedding is padded to a multiple of this; 0: not padded */
    uint64_t max_positions;  /* longest sequence; 0: not known */
    bool is_tied;            /* embedding and head are one matrix */
    bool has_head_bias;
    bool has_embedding_norm; /* between embedding and first layer (BLOOM) */
    bool has_no_final_norm;
    /* width of the embedding, with projections to hidden and back; 0: hidden */
    uint64_t embedding_dim;

    orr_model_position position;
    uint64_t position_rows; /* needed when LEARNED; OPT has two more than max_positions */

    orr_model_norm norm;
    /* 2: before attention and FFN; 4: after them too (Gemma 2); 1: both share one (GPT-J,
     * Falcon-7B); needed */
    uint64_t block_norms;
    orr_model_qk_norm qk_norm;
    bool is_parallel; /* attention and FFN read the same input (GPT-J, NeoX, Falcon) */

    /* Attention */
    uint64_t heads; /* needed */
    /* needed; equal to heads: every head has its own, 1: all share one.  MLA: equal to heads */
    uint64_t kv_heads;
    uint64_t head_dim; /* needed, except for MLA; heads * head_dim need not be hidden */
    bool has_qkv_bias;
    bool has_output_bias;
    bool has_sinks;         /* one number per head that takes part in the softmax (gpt-oss) */
    bool has_scaled_rotary; /* rotated parts are scaled too (YaRN of gpt-oss) */
    uint64_t window;        /* a token sees this many, including itself; 0: all before it */
    uint64_t window_from;   /* first layer with the window; earlier ones see all */
    uint64_t global_every;  /* layer i sees all if i % global_every == global_at; 0: none do */
    uint64_t global_at;
    orr_model_gate attention_gate;
    uint64_t global_head_dim; /* of layers that see all, where it differs (Gemma 4); 0: head_dim */
    uint64_t global_kv_heads; /* likewise */
    bool has_no_global_v;     /* layers that see all use their keys as values (Gemma 4) */
    /* this many last layers reuse keys and values of earlier ones (Gemma 3n) */
    uint64_t kv_shared_layers;
    uint64_t
        kv_share_every; /* only layers i % kv_share_every == 0 have their own (Hunyuan); 0: all */
    bool has_wide_shared_ffn; /* the FFN of kv_shared_layers is twice as wide (Gemma 4 E2B) */
    bool has_residual_reads;  /* attention over the residuals of earlier layers (Kimi K3) */

    /* Sparse attention: an indexer chooses index_topk tokens (DeepSeek-V3.2, MiniMax-M3);
     * index_heads 0: there is none */
    uint64_t index_heads;
    uint64_t index_head_dim;
    uint64_t index_topk;
    uint64_t index_from; /* first layer with an indexer */

    /* Multi-head latent attention; kv_lora_rank 0: there is none.  head_dim is then ignored. */
    uint64_t kv_lora_rank;
    uint64_t q_lora_rank; /* 0: queries come straight from the input */
    uint64_t qk_nope_head_dim;
    uint64_t qk_rope_head_dim;
    uint64_t v_head_dim;

    /* Linear attention: gated delta net, KDA, lightning */
    uint64_t linear_heads; /* of values */
    uint64_t linear_key_heads;
    uint64_t linear_key_dim;
    uint64_t linear_value_dim;
    uint64_t linear_conv;      /* width of the convolution before it; 0: none */
    bool has_full_linear_gate; /* KDA: the output gate is one matrix, not two narrow ones */

    /* State space: Mamba, Mamba-2, RG-LRU, RWKV and short convolutions */
    uint64_t ssm_inner;   /* width inside the mixer */
    uint64_t ssm_state;   /* numbers per channel (Mamba) or per channel of a head's input */
    uint64_t ssm_heads;   /* Mamba-2, RG-LRU */
    uint64_t ssm_groups;  /* Mamba-2: of B and C */
    uint64_t ssm_dt_rank; /* Mamba */
    uint64_t ssm_conv;    /* width of the convolution */
    bool has_conv_bias;
    bool has_ssm_bias;         /* of its first and last product */
    bool has_ssm_norms;        /* of dt, B and C (Jamba) */
    bool has_no_ssm_gate_norm; /* Mamba-2 without the norm before its last product (Falcon-H1) */
    uint64_t shared_blocks;    /* ORR_MIX_BLOCK: how many different blocks its layers share */
    uint64_t block_ffn_rank;   /* width of the adapters of each layer to the shared FFN (Zamba2) */
    uint64_t block_attention_rank; /* likewise, of queries, keys and values */

    /* Per-layer embeddings, AltUp and LAuReL (Gemma 3n, Gemma 4) */
    uint64_t per_layer_dim;
    uint64_t per_layer_vocab;
    uint64_t altup_inputs;
    uint64_t laurel_rank;

    /* FFN of layers that are not MoE */
    uint64_t ffn;          /* needed, unless all layers are MoE: width between its two products */
    bool is_gated;         /* three matrices (SwiGLU, GeGLU), not two; experts too */
    bool has_ffn_bias;     /* experts too */
    bool has_clamped_gate; /* the input of the gated activation is clamped (gpt-oss) */

    /* Mixture of experts; experts 0: there is none */
    uint64_t experts;
    uint64_t experts_per_token;
    uint64_t expert_groups;    /* number of equal groups of experts; 0: not grouped */
    uint64_t groups_per_token; /* a token's experts are in this many of them (DeepSeek) */
    uint64_t expert_ffn;
    uint64_t shared_experts; /* every token goes through them too */
    uint64_t shared_ffn;     /* of one of them */
    bool has_shared_gate;    /* one number per token that scales their output (Qwen2-MoE) */
    bool has_router_bias;    /* one number per expert, learned or balanced (DeepSeek-V3) */
    uint64_t expert_hidden;  /* input width of the experts (Kimi K3); 0: hidden */
    bool has_expert_norm;    /* a norm of that width after them */
    uint64_t moe_norms;      /* vectors of hidden that MoE layers have besides block_norms */
    uint64_t idle_experts;   /* experts the router may choose that do nothing (LongCat) */
    uint64_t dense_first;    /* this many first layers are not MoE */
    uint64_t moe_every; /* after them layer i is MoE if i % moe_every == moe_at; 0: all of them */
    uint64_t moe_at;

    uint64_t mtp_layers; /* for predicting further tokens (DeepSeek-V3); counted apart */
} orr_model;

/* ---- where models come from ---- */

/* Built-in models, in reading order; NULL past the last. */
ORR_API const orr_model *orr_model_at(size_t index);
/* By name in any spelling: Llama-3-8B, llama3_8b.  NULL: there is none. */
ORR_API const orr_model *orr_model_find(const char *name);

/* The name of a preset, or a file: ours (YAML or JSON), a Hugging Face config.json, a folder with
 * one; "-": standard input.  ORR_EUSAGE: neither, with the nearest name. */
ORR_API orr_code orr_model_load(const char *name_or_path,
                                orr_model *out,
                                orr_error *err) ORR_MUST_CHECK;
/* The bytes of a file; label is used in messages and names a model without a name. */
ORR_API orr_code orr_model_parse(orr_span bytes, const char *label, orr_model *out, orr_error *err)
    ORR_MUST_CHECK;

/* Is this model good?  ORR_EUSAGE names the field that is missing, inconsistent or too large. */
ORR_API orr_code orr_model_check(const orr_model *m, orr_error *err) ORR_MUST_CHECK;

/* Sizes that replace the model's; 0: unchanged.  Ratios are preserved: heads times their width, an
 * FFN of four times the width, one key and value per head.  The name records the change. */
typedef struct orr_model_sizes {
    uint64_t layers, hidden, heads, kv_heads, ffn, vocab;
} orr_model_sizes;
ORR_API orr_code orr_model_resize(orr_model *m,
                                  const orr_model_sizes *sizes,
                                  orr_error *err) ORR_MUST_CHECK;

/* The equivalent file in our format, in YAML or as one line of JSON; returns its length, as
 * snprintf counts.  ORR_MODEL_TEXT bytes are enough. */
enum { ORR_MODEL_TEXT = 6000 };
ORR_API size_t orr_model_text(const orr_model *m, char *out, size_t size);
ORR_API size_t orr_model_json(const orr_model *m, char *out, size_t size);

/* ---- questions about a layer, 0 to layers - 1 ---- */

ORR_API orr_model_mixer orr_model_mixer_of(const orr_model *m, uint64_t layer);
ORR_API orr_model_ffn orr_model_ffn_of(const orr_model *m, uint64_t layer);
ORR_API bool orr_model_is_moe(const orr_model *m, uint64_t layer); /* experts, alone or not */
/* Does it attend to individual earlier tokens, alone or beside something else? */
ORR_API bool orr_model_is_attention(const orr_model *m, uint64_t layer);
/* Do two layers have the same tensors and the same computation? */
ORR_API bool orr_model_is_alike(const orr_model *m, uint64_t one, uint64_t other);
/* "gated delta net MoE layer"; at most ORR_MODEL_NAME bytes. */
ORR_API const char *orr_model_layer_name(const orr_model *m,
                                         uint64_t layer,
                                         char out[ORR_MODEL_NAME]);
ORR_API uint64_t orr_model_window(const orr_model *m, uint64_t layer); /* 0: sees all */
ORR_API bool orr_model_is_mla(const orr_model *m);
/* Width of one head's query and key, and of its value. */
ORR_API uint64_t orr_model_qk_dim(const orr_model *m);
ORR_API uint64_t orr_model_v_dim(const orr_model *m);
/* Rows of embedding and head, padding included. */
ORR_API uint64_t orr_model_vocab_rows(const orr_model *m);
/* Elements per token in the KV cache of one attention layer; equal in all of them, except for
 * orr_model_layer_kv.  A layer with a window need not cache more tokens than the window. */
ORR_API uint64_t orr_model_kv_elements(const orr_model *m);
/* Of this layer: 0 if it caches none of its own. */
ORR_API uint64_t orr_model_layer_kv(const orr_model *m, uint64_t layer);
/* Elements of a layer's state per sequence, independent of its length: linear attention or state
 * space, including the convolution. */
ORR_API uint64_t orr_model_layer_state(const orr_model *m, uint64_t layer);
/* FLOPs per token on that state. */
ORR_API uint64_t orr_model_state_flops(const orr_model *m, uint64_t layer);

/* ---- tensors ---- */

typedef enum orr_model_part {
    ORR_MODEL_EMBEDDING = 0,
    ORR_MODEL_POSITIONS,
    ORR_MODEL_ATTENTION,
    ORR_MODEL_MIXING, /* linear attention and state spaces */
    ORR_MODEL_FFN,    /* of layers that are not MoE */
    ORR_MODEL_ROUTER, /* the gate of shared experts too */
    ORR_MODEL_EXPERTS,
    ORR_MODEL_SHARED,
    ORR_MODEL_NORMS, /* all of them: of blocks, of queries and keys, at both ends */
    ORR_MODEL_HEAD,
    ORR_MODEL_PARTS
} orr_model_part;

ORR_API const char *orr_model_part_name(orr_model_part part); /* "shared experts" */

/* `copies` equal tensors, each of rows x columns and, with a bias, `columns` numbers more. */
typedef struct orr_model_tensor {
    const char *name; /* "q", "kv_a", "ffn_up": a constant; docs/format/model.md lists them */
    orr_model_part part;
    uint64_t rows;    /* inputs; 1: a vector */
    uint64_t columns; /* outputs */
    uint64_t copies;  /* experts; 1 for all others */
    uint64_t active;  /* copies that one token uses */
    bool has_bias;
    bool is_product; /* a matmul with tokens: 2 * rows * columns FLOPs each */
    bool is_tied;    /* the head shares the embedding: it computes, but adds no parameters */
} orr_model_tensor;

enum { ORR_MODEL_TENSORS = 80 }; /* more than any layer has */

/* In the order in which a token passes them; returns the number.  The ends are embedding,
 * positions, embedding norm, final norm and head. */
ORR_API size_t orr_model_layer_tensors(const orr_model *m,
                                       uint64_t layer,
                                       orr_model_tensor out[ORR_MODEL_TENSORS]);
ORR_API size_t orr_model_end_tensors(const orr_model *m, orr_model_tensor out[ORR_MODEL_TENSORS]);
/* Parameters of a tensor, all copies. */
ORR_API uint64_t orr_model_tensor_size(const orr_model_tensor *t);

typedef struct orr_model_counts {
    uint64_t part[ORR_MODEL_PARTS];
    uint64_t total;
    uint64_t active; /* used by one token: only its own experts, all of the rest */
    /* the active ones in products: a forward pass has 2 FLOPs for each; tied heads count */
    uint64_t matmul;
} orr_model_counts;

ORR_API void orr_model_layer_count(const orr_model *m, uint64_t layer, orr_model_counts *out);
ORR_API void orr_model_count(const orr_model *m, orr_model_counts *out);
/* MTP layers, which are in no other count: each like the last attention layer, plus a projection of
 * twice hidden to hidden and three norms.  Embedding and head are the model's. */
ORR_API uint64_t orr_model_mtp_count(const orr_model *m);

/* ---- compute ---- */

/* Tokens of one sequence that go through the model at once.  A training step or a prefill has a
 * past of 0, a decode step has one token. */
typedef struct orr_model_work {
    uint64_t tokens;
    uint64_t past;        /* earlier tokens in the KV cache */
    bool is_square;       /* count scores of masked tokens too, as many papers do */
    bool is_mla_absorbed; /* MLA attends in the compressed space (decode) without expanding */
    bool has_mtp;         /* orr_model_compute: all MTP layers too, as Megatron-LM counts them */
} orr_model_work;

/* FLOPs, a multiply-add counting as two; products only, as is customary: norms, softmax,
 * activations and lookups are left out. */
typedef struct orr_model_flops {
    uint64_t attention; /* products with its weights */
    uint64_t scores;    /* queries with keys, and weights with values: the part quadratic in length;
                      * for linear attention and state spaces the cost of the state: 4 per number to
                      * write and read it, 6 with a delta rule */
    uint64_t router;
    uint64_t ffn;      /* experts too */
    uint64_t head;     /* with MTP layers once more for each, and their projections */
    uint64_t forward;  /* all of these */
    uint64_t training; /* forward and backward, three times as much; without recomputation */
} orr_model_flops;

/* Number of token pairs the layer attends to.  ORR_EUSAGE here and below: no tokens, or the result
 * does not fit into 64 bits. */
ORR_API orr_code orr_model_pairs(const orr_model *m,
                                 uint64_t layer,
                                 const orr_model_work *work,
                                 uint64_t *out,
                                 orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_model_layer_flops(const orr_model *m,
                                       uint64_t layer,
                                       const orr_model_work *work,
                                       orr_model_flops *out,
                                       orr_error *err) ORR_MUST_CHECK;
/* All layers and the head, which sees all tokens. */
ORR_API orr_code orr_model_compute(const orr_model *m,
                                   const orr_model_work *work,
                                   orr_model_flops *out,
                                   orr_error *err) ORR_MUST_CHECK;
/* Elements in the KV cache of a sequence of `tokens`, over all layers, with windows taken into
 * account. */
ORR_API orr_code orr_model_kv_cache(const orr_model *m,
                                    uint64_t tokens,
                                    uint64_t *elements_out,
                                    orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
