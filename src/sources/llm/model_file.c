/* SPDX-License-Identifier: Apache-2.0 */
/* model_file.c - a model from a file of ours and to one (YAML, of which JSON is a part; docs/format/model.md).
 *
 * A flat map, one key for each field of orr_model; reader and writer walk the same table, so they cannot drift.
 * `from` starts with a preset, of which the file then changes what it names. */
#include "model_impl.h"

#include "base/formats/yaml_fields.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { HEAD_KEYS = 4, SHOWN = 60 };

static const char *const head_keys[HEAD_KEYS] = {"format", "version", "name", "from"};

/* ---- reading ---- */

static orr_code check_head(orr_yaml_value map, orr_error *err)
{
    static const char *const formats[] = {"orrery-model", NULL};
    const char *keys[HEAD_KEYS + MODEL_FIELDS + 1] = {NULL};
    unsigned format = 0;
    uint64_t version = 1;
    for (size_t i = 0; i < HEAD_KEYS; i++)
        keys[i] = head_keys[i];
    for (size_t i = 0; i < MODEL_FIELDS; i++)
        keys[HEAD_KEYS + i] = model_field_at(i)->key;
    orr_code code = orr_yaml_check_keys(map, keys, err);
    if (!code)
        code = orr_yaml_take_word(map, "format", formats, &format, err);
    return code ? code : orr_yaml_take_u64(map, "version", 1, 1, &version, err);
}

static orr_code take_from(orr_yaml_value map, orr_model *m, orr_error *err)
{
    char name[ORR_MODEL_NAME] = "";
    orr_yaml_value v;
    if (!orr_yaml_find(map, "from", &v))
        return ORR_OK;
    const orr_where w = orr_yaml_where(v);
    const orr_str s = orr_yaml_text(v);
    const int shown = (int)(s.len < SHOWN ? s.len : SHOWN);
    if (orr_yaml_type_of(v) != ORR_YAML_SCALAR)
        return orr_fail(err, ORR_EINPUT, &w, "from: the name of a model was expected");
    if (s.len < sizeof name)
        memcpy(name, s.ptr, s.len);
    const orr_model *preset = orr_model_find(name), *near = model_nearest(name);
    if (preset)
        *m = *preset;
    else if (near)
        return orr_fail(err, ORR_EINPUT, &w, "from: no model is called \"%.*s\"; did you mean %s?",
                        shown, s.ptr, near->name);
    else
        return orr_fail(err, ORR_EINPUT, &w, "from: no model is called \"%.*s\"", shown, s.ptr);
    return ORR_OK;
}

static orr_code take_name(orr_yaml_value map, const char *label, orr_model *m, orr_error *err)
{
    orr_yaml_value v;
    char plain[ORR_MODEL_NAME] = "";
    if (!orr_yaml_find(map, "name", &v)) {
        model_name_path(m, orr_str_of(label));
        return ORR_OK;
    }
    const orr_where w = orr_yaml_where(v);
    const orr_str s = orr_yaml_text(v);
    memset(m->name, 0, sizeof m->name);
    if (s.len > 0 && s.len < sizeof m->name)
        memcpy(m->name, s.ptr, s.len);
    memcpy(plain, m->name, sizeof plain);
    model_plain_text(plain);
    if (s.len == 0 || strlen(m->name) != s.len || strcmp(plain, m->name) != 0)
        return orr_fail(err, ORR_EINPUT, &w,
                        "name: 1 to %d plain characters were expected, without \" and \\",
                        ORR_MODEL_NAME - 1);
    return ORR_OK;
}

static orr_code take_field(orr_yaml_value map, const model_field *f, orr_model *m, orr_error *err)
{
    uint64_t number = model_get(m, f);
    unsigned word = (unsigned)number; /* a word's place is small; of numbers it is not used */
    bool flag = number != 0;
    orr_code code;
    switch (f->kind) {
    case MODEL_NUMBER:
        code = orr_yaml_take_u64(map, f->key, 0, MODEL_MOST, &number, err);
        break;
    case MODEL_FLAG:
        code = orr_yaml_take_bool(map, f->key, &flag, err);
        number = flag;
        break;
    default:
        code = orr_yaml_take_word(map, f->key, f->words, &word, err);
        number = word;
    }
    if (!code)
        model_set(m, f, number);
    return code;
}

/* What follows from the rest where nothing is said: usual for nearly all models. */
static void complete(orr_model *m)
{
    if (m->block_norms == 0)
        m->block_norms = 2;
    if (m->kv_heads == 0)
        m->kv_heads = m->heads;
    if (m->head_dim == 0 && !orr_model_is_mla(m) && m->heads && m->hidden % m->heads == 0)
        m->head_dim = m->hidden / m->heads;
    if (m->position_rows == 0 && m->position == ORR_MODEL_LEARNED)
        m->position_rows = m->max_positions;
}

static orr_code check_model(orr_yaml_value map, const orr_model *m, orr_error *err)
{
    model_fault f;
    orr_yaml_value v;
    if (!model_find_fault(m, &f))
        return ORR_OK;
    const orr_where w = orr_yaml_where(orr_yaml_find(map, f.field, &v) ? v : map);
    return orr_fail(err, ORR_EINPUT, &w, "%s: %s", f.field, f.words);
}

static orr_code take_model(orr_yaml_value map, const char *label, orr_model *m, orr_error *err)
{
    const model_field *f;
    orr_code code = check_head(map, err);
    if (!code)
        code = take_from(map, m, err);
    if (!code)
        code = take_name(map, label, m, err);
    for (size_t i = 0; !code && (f = model_field_at(i)); i++)
        code = take_field(map, f, m, err);
    if (code)
        return code;
    complete(m);
    return check_model(map, m, err);
}

orr_code model_parse_file(orr_span bytes, const char *label, orr_model *out, orr_error *err)
{
    orr_model m = {.layers = 0};
    orr_yaml *y;
    orr_code code = orr_yaml_open(bytes, label, &y, err);
    if (code)
        return code;
    code = take_model(orr_yaml_root(y), label, &m, err);
    orr_yaml_close(y);
    if (!code)
        *out = m;
    return code;
}

/* ---- writing ---- */

typedef struct text_end {
    char *out;
    size_t size, used;
} text_end;

ORR_PRINTF(2, 3) static void put(text_end *t, const char *fmt, ...)
{
    const size_t at = t->used < t->size ? t->used : t->size;
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(t->out + at, t->size - at, fmt, args);
    va_end(args);
    t->used += n > 0 ? (size_t)n : 0;
}

/* The two notations differ in signs only. */
typedef struct notation {
    const char *head, *before_key, *behind_key, *quote, *behind, *foot;
} notation;

static const notation yaml = {"format: orrery-model\nversion: 1\nname: ", "", ": ", "", "\n", ""};
static const notation json = {
    "{\"format\": \"orrery-model\", \"version\": 1, \"name\": ", ", \"", "\": ", "\"", "", "}"};

/* What is zero, false or the first word is what the reader starts from. */
static void put_field(text_end *t, const notation *n, const orr_model *m, const model_field *f)
{
    const uint64_t v = model_get(m, f);
    if (v == 0)
        return;
    put(t, "%s%s%s", n->before_key, f->key, n->behind_key);
    if (f->kind == MODEL_NUMBER)
        put(t, "%" PRIu64, v);
    else if (f->kind == MODEL_FLAG)
        put(t, "true");
    else
        put(t, "%s%s%s", n->quote, f->words[v], n->quote);
    put(t, "%s", n->behind);
}

static size_t put_model(const orr_model *m, const notation *n, char *out, size_t size)
{
    text_end t = {.out = out, .size = size};
    put(&t, "%s\"%s\"%s", n->head, m->name, n->behind);
    for (size_t i = 0; i < MODEL_FIELDS; i++)
        put_field(&t, n, m, model_field_at(i));
    put(&t, "%s", n->foot);
    return t.used;
}

size_t orr_model_text(const orr_model *m, char *out, size_t size)
{
    return put_model(m, &yaml, out, size);
}

size_t orr_model_json(const orr_model *m, char *out, size_t size)
{
    return put_model(m, &json, out, size);
}
