/* SPDX-License-Identifier: Apache-2.0 */
/* model_impl.h - what the files about models share. */
#ifndef ORR_SOURCES_MODEL_IMPL_H
#define ORR_SOURCES_MODEL_IMPL_H

#include <orrery/lab/model.h>

/* The matrix that expands the compressed keys and values: it is applied to the past as well. */
#define KV_B "kv_b"

/* Limits of a model's numbers: far beyond any real one, and small enough that products of a few of
 * them are checked or fit 64 bits. */
#define MODEL_MOST_LAYERS 16384u
#define MODEL_MOST 2147483647u
#define MODEL_MOST_MTP 16u
#define MODEL_MOST_PARAMETERS (1ull << 60)

/* ---- the fields by name, for files ---- */

typedef enum model_kind {
    MODEL_NUMBER, /* uint64_t */
    MODEL_FLAG,   /* bool */
    MODEL_WORD,   /* an enum; `words` has a name for each value */
    MODEL_LETTERS /* a letter for each layer; `words` has one string of those that are known */
} model_kind;

typedef struct model_field {
    const char *key;
    model_kind kind;
    size_t at; /* in orr_model */
    const char *const *words;
} model_field;

enum { MODEL_FIELDS = 91 };

/* In the order of the struct, all but name and note; NULL past the last. */
const model_field *model_field_at(size_t index);

/* MODEL_FIELDS: there is none. */
size_t model_field_find(const char *key);

uint64_t model_get(const orr_model *m, const model_field *f);
void model_set(orr_model *m, const model_field *f, uint64_t value);

/* ---- lists of tensors ---- */

/* A list being written. */
typedef struct model_list {
    const orr_model *m;
    orr_model_tensor *out;
    size_t count;
} model_list;

orr_model_tensor *model_add(
    model_list *l, const char *name, orr_model_part part, uint64_t rows, uint64_t columns);
orr_model_tensor *model_add_product(model_list *l,
                                    const char *name,
                                    orr_model_part part,
                                    uint64_t rows,
                                    uint64_t columns,
                                    bool has_bias);
void model_add_norm(model_list *l, const char *name, uint64_t width);

/* Is a mixer linear attention or a state space, alone or beside attention? */
bool model_has_state(orr_model_mixer mixer);
/* The tensors of linear attention or of a state space. */
void model_add_mixer(model_list *l, orr_model_mixer mixer);
/* The block that ORR_MIX_BLOCK layers share; its parameters are counted where `is_owner`. */
void model_add_block(model_list *l, bool is_owner);
/* Numbers of its state, and of what its convolution keeps; FLOPs of a token with the state. */
uint64_t model_state(const orr_model *m, orr_model_mixer mixer);
uint64_t model_conv_state(const orr_model *m, orr_model_mixer mixer);
uint64_t model_state_flops(const orr_model *m, orr_model_mixer mixer);
/* The layer that MTP layers are like: the last with attention. */
uint64_t model_mtp_layer(const orr_model *m);

/* A list of letters, one per layer, as the shortest repeating pattern.  False: too long. */
bool model_set_letters(char out[ORR_MODEL_PATTERN], const char *letters, uint64_t layers);

/* ---- readers ---- */

/* The first fault of a model: the field it is about and words.  False: the model is good. */
typedef struct model_fault {
    const char *field;
    char words[160];
} model_fault;

bool model_find_fault(const orr_model *m, model_fault *out);

/* What is not printable ASCII, or " or \, becomes '_'. */
void model_plain_text(char *text);
/* Names a model after a path: its last component without extension, or for a config.json its
 * folder. */
void model_name_path(orr_model *m, orr_str path);

/* A Hugging Face config.json, and a file of ours. */
orr_code model_parse_config(orr_span bytes, const char *label, orr_model *out, orr_error *err)
    ORR_MUST_CHECK;

#endif
