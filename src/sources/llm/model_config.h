/* SPDX-License-Identifier: Apache-2.0 */
/* model_config.h - families of models: a row each, and a hook for what a row cannot express.
 *
 * A row starts from `base`: properties common to the family, and defaults for missing keys. Numbers
 * are read by keys that all families share (model_config.c) and by the row's own, which come first;
 * flags by the row's own list; which layer is what by the keys of model_layers.c. */
#ifndef ORR_SOURCES_MODEL_CONFIG_H
#define ORR_SOURCES_MODEL_CONFIG_H

#include "model_impl.h"

#include "base/formats/json.h"

typedef struct llm_config llm_config;

/* A key that is true or false, and what that makes of a field. */
typedef struct llm_config_flag {
    const char *key, *field;
    uint64_t if_true, if_false;
} llm_config_flag;

/* A field with another name in this family; the common keys are then ignored for it.  Keys may be
 * paths: "attn_config.kv_n_heads". */
typedef struct llm_config_slot {
    const char *field, *key;
} llm_config_slot;

typedef enum llm_config_windows {
    LLM_WINDOWS_NONE = 0, /* sliding_window means nothing */
    LLM_WINDOWS_ALL,      /* in all layers, unless use_sliding_window is false */
    LLM_WINDOWS_ASKED,    /* in all layers, if use_sliding_window is true */
    LLM_WINDOWS_LATE,     /* the same, from layer max_window_layers on */
    LLM_WINDOWS_MIXED     /* one of base.global_every, or of sliding_window_pattern, is global */
} llm_config_windows;

typedef struct llm_family {
    const char *types; /* model_type; several with spaces between */
    /* NULL: all zero.  A pointer, because rows with pointers are relocated at load time. */
    const orr_model *base;
    const llm_config_flag *flags; /* a row of zeros ends it */
    const llm_config_slot *slots; /* likewise; NULL: none */
    llm_config_windows windows;
    char mixer;           /* what layers without attention have; 0: there are none */
    bool needs_kv_heads;  /* otherwise as many as heads */
    bool has_default_ffn; /* four times hidden where the file says nothing */
    bool has_no_heads;    /* no layer attends */
    bool has_no_ffn;      /* no layer has an FFN */
    orr_code (*finish)(llm_config *c);
} llm_family;

enum { LLM_KEYS_SEEN = 320 };

/* A file being read. */
struct llm_config {
    orr_json_value root;
    orr_json_value map; /* the object that describes the text model: root, or inside it */
    const llm_family *family;
    orr_model m;
    const char *key[MODEL_FIELDS];     /* that set a field; NULL: none did */
    orr_json_value from[MODEL_FIELDS]; /* its value */
    const char *seen[LLM_KEYS_SEEN];   /* keys that were looked for */
    size_t seen_count;
    char mixers[MODEL_MOST_LAYERS + 1], ffns[MODEL_MOST_LAYERS + 1];
    bool has_mixers, has_ffns; /* which were given */
    orr_error *err;
};

/* ---- values (model_config.c) ---- */

/* A key that is there and not null. */
bool llm_config_find(llm_config *c, const char *key, orr_json_value *out);
orr_code llm_config_refuse(const llm_config *c,
                           orr_json_value v,
                           const char *key,
                           const char *words);
/* "key: 12.5 is not ..." with the value verbatim from the file. */
orr_code llm_config_not_what(const llm_config *c,
                             orr_json_value v,
                             const char *key,
                             const char *what);
orr_code llm_config_missing(const llm_config *c, const char *key);
/* A number; a list of the same number over and over is that number. */
orr_code llm_config_get(const llm_config *c, orr_json_value v, const char *key, uint64_t *out);
/* Where a key is not there these leave *out as it is. */
orr_code llm_config_number(llm_config *c, const char *key, uint64_t *out);
orr_code llm_config_bool(llm_config *c, const char *key, bool *out);
bool llm_config_said(const llm_config *c, const char *field);
void llm_config_remember(llm_config *c, const char *field, const char *key, orr_json_value from);

/* ---- families (model_families.c) ---- */

/* By model_type; NULL: not known. */
const llm_family *llm_family_find(orr_str type);
/* As Llama, but with windows if the file has them. */
const llm_family *llm_family_fallback(void);
/* Why a model_type cannot be read; NULL: it can, or is not known. */
const char *llm_family_refused(orr_str type);

/* ---- layers (model_layers.c) ---- */

/* Which layer is what: from lists, intervals and patterns of the file into m. */
orr_code llm_config_take_layers(llm_config *c);
orr_code llm_config_take_expert_layers(llm_config *c);
/* GPT-Neo's attention_types. */
orr_code llm_config_take_neo(llm_config *c);

#endif
