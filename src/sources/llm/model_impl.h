/* SPDX-License-Identifier: Apache-2.0 */
/* model_impl.h - what the files about models share. */
#ifndef ORR_SOURCES_MODEL_IMPL_H
#define ORR_SOURCES_MODEL_IMPL_H

#include <orrery/lab/model.h>

/* The matrix that expands the compressed keys and values: it is applied to the past as well. */
#define ORR__KV_B "kv_b"

/* Bounds of what a model may say: far beyond any that exists, and near enough that no product of a few of them
 * leaves 64 bits unnoticed. */
#define ORR__MODEL_MOST_LAYERS 16384u
#define ORR__MODEL_MOST 2147483647u
#define ORR__MODEL_MOST_PARAMETERS (1ull << 60)

/* ---- the fields by name, for files ---- */

typedef enum orr__model_kind {
    ORR__MODEL_NUMBER, /* uint64_t */
    ORR__MODEL_FLAG,   /* bool */
    ORR__MODEL_WORD    /* an enum; `words` has a name for each value */
} orr__model_kind;

typedef struct orr__model_field {
    const char *key;
    orr__model_kind kind;
    size_t at; /* in orr_model */
    const char *const *words;
} orr__model_field;

enum { ORR__MODEL_FIELDS = 43 };

/* In the order of the struct, all but name and note; NULL past the last. */
const orr__model_field *orr__model_field_at(size_t index);
size_t orr__model_field_find(const char *key); /* ORR__MODEL_FIELDS: there is none */

uint64_t orr__model_get(const orr_model *m, const orr__model_field *f);
void orr__model_set(orr_model *m, const orr__model_field *f, uint64_t value);

/* ---- readers ---- */

/* The first fault of a model: the field it is about and words.  False: the model is good. */
typedef struct orr__model_fault {
    const char *field;
    char words[160];
} orr__model_fault;

bool orr__model_find_fault(const orr_model *m, orr__model_fault *out);

/* What is not printable ASCII, or " or \, becomes '_'. */
void orr__model_plain_text(char *text);
/* Names a model after a path: its last part without what names end in, or of a config.json its folder. */
void orr__model_name_path(orr_model *m, orr_str path);

/* The preset whose name is nearest, for "did you mean"; NULL: none is near. */
const orr_model *orr__model_nearest(const char *name);

/* A Hugging Face config.json, and a file of ours. */
orr_code orr__model_parse_config(orr_span bytes, const char *label, orr_model *out, orr_error *err)
    ORR_MUST_CHECK;
orr_code orr__model_parse_file(orr_span bytes, const char *label, orr_model *out, orr_error *err)
    ORR_MUST_CHECK;

#endif
