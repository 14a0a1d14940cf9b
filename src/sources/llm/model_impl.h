/* SPDX-License-Identifier: Apache-2.0 */
/* model_impl.h - what the files about models share. */
#ifndef ORR_SOURCES_MODEL_IMPL_H
#define ORR_SOURCES_MODEL_IMPL_H

#include <orrery/lab/model.h>

/* The matrix that expands the compressed keys and values: it is applied to the past as well. */
#define KV_B "kv_b"

/* Bounds of what a model may say: far beyond any that exists, and near enough that no product of a
 * few of them leaves 64 bits unnoticed. */
#define MODEL_MOST_LAYERS 16384u
#define MODEL_MOST 2147483647u
#define MODEL_MOST_PARAMETERS (1ull << 60)

/* ---- the fields by name, for files ---- */

typedef enum model_kind {
    MODEL_NUMBER, /* uint64_t */
    MODEL_FLAG,   /* bool */
    MODEL_WORD    /* an enum; `words` has a name for each value */
} model_kind;

typedef struct model_field {
    const char *key;
    model_kind kind;
    size_t at; /* in orr_model */
    const char *const *words;
} model_field;

enum { MODEL_FIELDS = 43 };

/* In the order of the struct, all but name and note; NULL past the last. */
const model_field *model_field_at(size_t index);

uint64_t model_get(const orr_model *m, const model_field *f);
void model_set(orr_model *m, const model_field *f, uint64_t value);

/* ---- readers ---- */

/* The first fault of a model: the field it is about and words.  False: the model is good. */
typedef struct model_fault {
    const char *field;
    char words[160];
} model_fault;

bool model_find_fault(const orr_model *m, model_fault *out);

/* What is not printable ASCII, or " or \, becomes '_'. */
void model_plain_text(char *text);
/* Names a model after a path: its last part without what names end in, or of a config.json its
 * folder. */
void model_name_path(orr_model *m, orr_str path);

/* A Hugging Face config.json, and a file of ours. */
orr_code model_parse_config(orr_span bytes, const char *label, orr_model *out, orr_error *err)
    ORR_MUST_CHECK;

#endif
