/* SPDX-License-Identifier: Apache-2.0 */
/* model_load.c - from what a user types to a model: the name of a preset, a file, a folder.
 *
 * Presets come first: they are the same everywhere, while a file depends on where one stands (./gpt2 is the
 * file).  Names are compared without regard to case, dashes and underscores, but dots count: gpt3-1.3b is not
 * gpt3-13b. */
#include "model_impl.h"

#include "base/formats/json.h"
#include "base/io/input.h"

#include <stdio.h>
#include <sys/stat.h>

/* ---- names ---- */

typedef struct key {
    char text[ORR_MODEL_NAME];
    size_t len;
} key;

/* What counts of a name; false: longer than any preset's. */
static bool make_key(const char *name, key *out)
{
    out->len = 0;
    for (; *name; name++) {
        const char c = *name >= 'A' && *name <= 'Z' ? (char)(*name - 'A' + 'a') : *name;
        if (c == '-' || c == '_' || c == ' ')
            continue;
        if (out->len + 1 >= sizeof out->text)
            return false;
        out->text[out->len++] = c;
    }
    out->text[out->len] = '\0';
    return out->len > 0;
}

const orr_model *orr_model_find(const char *name)
{
    key wanted, k;
    if (!make_key(name, &wanted))
        return NULL;
    for (size_t i = 0; orr_model_at(i); i++) {
        if (make_key(orr_model_at(i)->name, &k) && strcmp(k.text, wanted.text) == 0)
            return orr_model_at(i);
    }
    return NULL;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Letters to add, leave out or change to make one of the other (Levenshtein); one row of the usual table. */
static size_t distance(const key *a, const key *b)
{
    size_t row[ORR_MODEL_NAME];
    for (size_t j = 0; j <= b->len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a->len; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b->len; j++) {
            const size_t change = diagonal + (a->text[i - 1] != b->text[j - 1]);
            diagonal = row[j];
            row[j] = least(change, least(row[j], row[j - 1]) + 1);
        }
    }
    return row[b->len];
}

/* Near is a third of the letters wrong at most; of several as near, the first. */
const orr_model *model_nearest(const char *name)
{
    const orr_model *best = NULL;
    key wanted, k;
    size_t fewest = SIZE_MAX;
    if (!make_key(name, &wanted))
        return NULL;
    for (size_t i = 0; orr_model_at(i); i++) {
        if (!make_key(orr_model_at(i)->name, &k))
            continue;
        const size_t d = distance(&wanted, &k);
        if (d < fewest && d <= (k.len + 2) / 3) {
            best = orr_model_at(i);
            fewest = d;
        }
    }
    return best;
}

/* ---- files ---- */

static bool begins_with_brace(orr_span bytes)
{
    size_t at = bytes.len >= 3 && memcmp(bytes.ptr, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    while (at < bytes.len && bytes.ptr[at] && strchr(" \t\r\n", bytes.ptr[at]))
        at++;
    return at < bytes.len && bytes.ptr[at] == '{';
}

/* A JSON object that does not say it is ours is a config.json. */
static orr_code is_config(orr_span bytes, const char *label, bool *out, orr_error *err)
{
    orr_json *j;
    orr_json_value root, v;
    *out = begins_with_brace(bytes);
    if (!*out)
        return ORR_OK;
    orr_code code = orr_json_open(bytes, label, &j, err);
    if (code)
        return code;
    code = orr_json_only(j, &root, err);
    *out = !code && !orr_json_find(root, "format", &v);
    orr_json_close(j);
    return code;
}

orr_code orr_model_parse(orr_span bytes, const char *label, orr_model *out, orr_error *err)
{
    bool is_theirs;
    const orr_code code = is_config(bytes, label, &is_theirs, err);
    if (code)
        return code;
    return is_theirs ? model_parse_config(bytes, label, out, err)
                     : model_parse_file(bytes, label, out, err);
}

static orr_code read_file(const char *path, orr_model *out, orr_error *err)
{
    orr_input *in;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    code = orr_model_parse(orr_input_bytes(in), path, out, err);
    orr_input_close(in);
    return code;
}

static orr_code read_folder(const char *path, orr_model *out, orr_error *err)
{
    char file[4096];
    const size_t len = strlen(path);
    const int n = snprintf(file, sizeof file, "%s%sconfig.json", path,
                           len && path[len - 1] == '/' ? "" : "/");
    if (n < 0 || (size_t)n >= sizeof file)
        return orr_fail(err, ORR_EUSAGE, NULL, "the folder's name is too long");
    return read_file(file, out, err);
}

/* A name without a slash and without what file names end in is more likely a model's. */
static bool looks_like_name(const char *text)
{
    static const char *const ends[] = {".json", ".yml", ".yaml", ".gz", ".zst"};
    const size_t len = strlen(text);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t n = strlen(ends[i]);
        if (len >= n && strcmp(text + len - n, ends[i]) == 0)
            return false;
    }
    return !strchr(text, '/') && strcmp(text, "-") != 0;
}

orr_code orr_model_load(const char *name_or_path, orr_model *out, orr_error *err)
{
    struct stat st;
    const orr_model *preset = orr_model_find(name_or_path);
    const bool is_there = stat(name_or_path, &st) == 0;
    if (preset) {
        *out = *preset;
        return ORR_OK;
    }
    if (is_there && S_ISDIR(st.st_mode))
        return read_folder(name_or_path, out, err);
    if (is_there || !looks_like_name(name_or_path))
        return read_file(name_or_path, out, err);
    preset = model_nearest(name_or_path);
    if (preset)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "no model and no file is called '%.60s'; did you mean %s?", name_or_path,
                        preset->name);
    return orr_fail(
        err, ORR_EUSAGE, NULL,
        "no model and no file is called '%.60s'; 'orrery model --list' shows the models",
        name_or_path);
}
