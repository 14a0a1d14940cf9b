/* SPDX-License-Identifier: Apache-2.0 */
/* model_config.h - the words in which families of models are told apart: a row each, and a hook for
 * what a row cannot say.
 *
 * A row starts from `base`: what all models of the family have, and what is meant where the file
 * says nothing. Numbers are read by keys that all families share (model_config.c); flags by the
 * row's own list. */
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

typedef enum llm_config_windows {
    LLM_WINDOWS_NONE = 0, /* sliding_window means nothing */
    LLM_WINDOWS_ALL,      /* in all layers, unless use_sliding_window is false */
    LLM_WINDOWS_ASKED,    /* in all layers, if use_sliding_window is true */
    LLM_WINDOWS_LATE,     /* the same, from layer max_window_layers on */
    LLM_WINDOWS_MIXED /* base.global_every, or sliding_window_pattern, makes one of so many global */
} llm_config_windows;

typedef struct llm_family {
    const char *types[5]; /* model_type; NULL behind the last */
    orr_model base;
    const llm_config_flag *flags; /* a row of zeros ends it */
    llm_config_windows windows;
    bool needs_kv_heads;  /* otherwise as many as heads */
    bool has_default_ffn; /* four times hidden where the file says nothing */
    orr_code (*finish)(llm_config *c);
} llm_family;

/* A file being read. */
struct llm_config {
    orr_json_value root;
    orr_json_value map; /* the object that describes the text model: root, or inside it */
    const llm_family *family;
    orr_model m;
    const char *key[MODEL_FIELDS];     /* that set a field; NULL: none did */
    orr_json_value from[MODEL_FIELDS]; /* its value */
    orr_error *err;
};

#endif
