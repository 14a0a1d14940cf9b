/* SPDX-License-Identifier: Apache-2.0 */
/* config_system.c - the system file: JSON, keys of astra-sim.md 3.  An unknown key is an error;
 * under the rules of the reference it is ignored, as there.  A value of the wrong type is an error
 * with its line.  The text of ASTRA-sim 1.0, "key: value" per line, is rewritten as JSON first,
 * line by line (astra-sim.md 13). */
#include "config.h"

#include <orrery/lab/folders.h>
#include <orrery/run.h>

#include "base/formats/json.h"
#include "base/formats/yaml.h"
#include "base/io/input.h"
#include "base/text/number.h"
#include "base/text/text.h"
#include "models/collective/coll_plan.h"
#include "run/run_rules.h"

/* As a delay in nanoseconds this is eleven days; sums and products of such numbers do not
 * overflow. */
#define LARGEST 1e15

enum { MOST_KEYS = 128 };

typedef struct reader {
    orr_json_value root;
    orr_arena *arena;
    cfg_system *c;
    const orr_coll_ops *const *algorithms; /* of the caller, besides ours; NULL: none */
    bool takes_plans;                      /* a custom implementation may be a plan */
    const char *asked[MOST_KEYS + 1];      /* keys that were looked up */
    size_t asked_count;
    orr_error *err;
} reader;

/* The member with this key, which is then recorded as known. */
static bool find(reader *r, const char *key, orr_json_value *out)
{
    size_t i = 0;
    while (i < r->asked_count && strcmp(r->asked[i], key) != 0)
        i++;
    if (i == r->asked_count && i < MOST_KEYS)
        r->asked[r->asked_count++] = key;
    return orr_json_find(r->root, key, out);
}

static orr_code fail_value(reader *r, orr_json_value v, const char *key, const char *expected)
{
    const orr_where w = orr_json_where(v);
    const orr_json_type type = orr_json_type_of(v);
    const orr_str raw = orr_json_raw(v);
    if (type == ORR_JSON_INT || type == ORR_JSON_REAL)
        return orr_fail(r->err, ORR_EINPUT, &w, "%s: expected %s, not %.*s", key, expected,
                        (int)(raw.len < 40 ? raw.len : 40), raw.ptr);
    return orr_fail(r->err, ORR_EINPUT, &w, "%s: expected %s, not %s", key, expected,
                    orr_json_type_name(type));
}

static orr_code take_double(reader *r, const char *key, double scale, double *out)
{
    orr_json_value v;
    double d;
    if (!find(r, key, &v))
        return ORR_OK;
    const orr_json_type type = orr_json_type_of(v);
    if (type != ORR_JSON_INT && type != ORR_JSON_REAL)
        return fail_value(r, v, key, "a number");
    const orr_code code = orr_json_get_double(v, &d, r->err);
    if (!code)
        *out = d * scale;
    return code;
}

/* Integers may be written as fractions; the reference truncates them. */
static orr_code take_int(reader *r, const char *key, int64_t *out)
{
    double d = (double)*out;
    const orr_code code = take_double(r, key, 1, &d);
    if (code)
        return code;
    if (!(d >= -LARGEST && d <= LARGEST)) {
        orr_json_value v;
        find(r, key, &v);
        return fail_value(r, v, key, "a number of at most 1e15");
    }
    *out = (int64_t)d;
    return ORR_OK;
}

static orr_code take_count(reader *r, const char *key, uint64_t *out)
{
    int64_t n = (int64_t)*out;
    const orr_code code = take_int(r, key, &n);
    if (code)
        return code;
    if (n < 0) {
        orr_json_value v;
        find(r, key, &v);
        return fail_value(r, v, key, "a number not below 0");
    }
    *out = (uint64_t)n;
    return ORR_OK;
}

static orr_code take_flag(reader *r, const char *key, bool *out)
{
    orr_json_value v;
    int64_t n = 0;
    if (find(r, key, &v) && orr_json_type_of(v) == ORR_JSON_BOOL)
        return orr_json_get_bool(v, out, r->err);
    const orr_code code = take_int(r, key, &n);
    *out = n != 0;
    return code;
}

/* One of a list of words; *out is unchanged if the key is absent.  An empty word in the list stands
 * for an absent key and cannot be written. */
static orr_code take_word(
    reader *r, const char *key, const char *const *words, const char *choices, int *out)
{
    orr_json_value v;
    orr_str s;
    if (!find(r, key, &v))
        return ORR_OK;
    if (orr_json_type_of(v) != ORR_JSON_STRING)
        return fail_value(r, v, key, "a text");
    orr_code code = orr_json_get_str(v, &s, r->err);
    for (int i = 0; !code && words[i]; i++)
        if (s.len && strlen(words[i]) == s.len && memcmp(words[i], s.ptr, s.len) == 0) {
            *out = i;
            return ORR_OK;
        }
    const orr_where w = orr_json_where(v);
    return code ? code
                : orr_fail(r->err, ORR_EINPUT, &w, "%s: \"%.*s\" is not one of %s", key,
                           (int)(s.len < 40 ? s.len : 40), s.ptr, choices);
}

/* ---- implementation lists ---- */

static orr_code fail_algorithm(reader *r, orr_json_value v, const char *key, orr_collective kind)
{
    orr_str s = {"", 0};
    orr_buf words = {0};
    const orr_where w = orr_json_where(v);
    const orr_code code = orr_json_get_str(v, &s, r->err);
    if (code)
        return code;
    coll_put_words(r->algorithms, kind, &words);
    orr_fail(r->err, ORR_EINPUT, &w, "%s: \"%.*s\" is not a collective algorithm (%.*s)", key,
             (int)(s.len < 40 ? s.len : 40), s.ptr, (int)words.len, (const char *)words.ptr);
    orr_buf_fini(&words);
    return ORR_EINPUT;
}

/* A list with one algorithm per dimension; for a rooted collective also one for all. */
static orr_code take_choices(reader *r, orr_collective kind, const char *key)
{
    orr_json_value list, v;
    orr_str s;
    if (!find(r, key, &list))
        return ORR_OK;
    if (orr_json_type_of(list) != ORR_JSON_ARRAY ||
        (coll_has_root(kind) && orr_json_count(list) == 0))
        return fail_value(r, list, key, "a list of algorithms");
    r->c->has_choices[kind] = true;
    for (orr_json_iter it = orr_json_iterate(list); orr_json_next_value(&it, &v);) {
        if (orr_json_type_of(v) != ORR_JSON_STRING)
            return fail_value(r, v, key, "the name of an algorithm");
        const orr_code code = orr_json_get_str(v, &s, r->err);
        if (code)
            return code;
        const orr_where w = orr_json_where(v);
        if (r->c->choice_count[kind] > ORR_NET_DIMS)
            return orr_fail(r->err, ORR_EINPUT, &w, "%s: more than %d entries", key, ORR_NET_DIMS);
        if (!coll_parse(r->algorithms, kind, s, &r->c->choice[kind][r->c->choice_count[kind]++]))
            return fail_algorithm(r, v, key, kind);
    }
    return ORR_OK;
}

static orr_code check_path(reader *r, const char *path, const char *from, orr_where at)
{
    return r->c->checks_paths ? orr_folder_check(path, from, &at, r->err) : ORR_OK;
}

static orr_code take_custom(reader *r, orr_collective kind, const char *key)
{
    orr_json_value list, v;
    orr_str s;
    if (!find(r, key, &list))
        return ORR_OK;
    if (orr_json_type_of(list) != ORR_JSON_ARRAY || orr_json_count(list) != 1)
        return fail_value(r, list, key, "a list with exactly one prefix of trace files");
    orr_json_iter it = orr_json_iterate(list);
    orr_json_next_value(&it, &v);
    if (orr_json_type_of(v) != ORR_JSON_STRING)
        return fail_value(r, v, key, "a prefix of trace files");
    const orr_code code = orr_json_get_str(v, &s, r->err);
    if (code)
        return code;
    char *path = orr_arena_text(r->arena, s);
    if (!path)
        return orr_no_memory(r->err);
    const orr_code allowed = check_path(r, path, r->c->path, orr_json_where(v));
    if (allowed)
        return allowed;
    const bool is_plan = r->takes_plans && coll_plan_looks_like(path);
    *(is_plan ? &r->c->plan[kind] : &r->c->custom[kind]) = path;
    return ORR_OK;
}

/* ---- custom implementations by node: a YAML map ---- */

static orr_code add_by_node(reader *r, const char *from, orr_yaml_value key, orr_yaml_value value)
{
    cfg_system *c = r->c;
    int64_t id;
    const orr_where w = orr_yaml_where(key);
    if (!orr_text_i64(orr_yaml_text(key), &id) || orr_yaml_type_of(value) != ORR_YAML_SCALAR)
        return orr_fail(r->err, ORR_EINPUT, &w, "expected a node id and a prefix of trace files");
    char *prefix = orr_arena_text(r->arena, orr_yaml_text(value));
    const orr_code code =
        prefix ? check_path(r, prefix, from, orr_yaml_where(value)) : orr_no_memory(r->err);
    if (code)
        return code;
    if (!orr_grow(&c->custom_prefix, &c->custom_room, c->custom_count + 1) ||
        !orr_map_put(c->custom_by_node, (uint64_t)id, (uint32_t)c->custom_count, NULL))
        return orr_no_memory(r->err);
    c->custom_prefix[c->custom_count++] = prefix;
    return ORR_OK;
}

static orr_code read_by_node(reader *r, const char *path)
{
    orr_input *in;
    orr_yaml *y;
    orr_code code = orr_input_open(path, &in, r->err);
    if (code)
        return code;
    code = orr_yaml_open(orr_input_bytes(in), path, &y, r->err);
    if (!code) {
        const orr_yaml_value root = orr_yaml_root(y);
        const orr_where w = orr_yaml_where(root);
        if (orr_yaml_type_of(root) != ORR_YAML_MAP)
            code = orr_fail(r->err, ORR_EINPUT, &w,
                            "expected a map from node ids to prefixes of trace files");
        for (uint32_t i = 0; !code && i < orr_yaml_count(root); i++)
            code = add_by_node(r, path, orr_yaml_key(root, i), orr_yaml_item(root, i));
        orr_yaml_close(y);
    }
    orr_input_close(in);
    return code;
}

/* *out is unchanged if the key is absent. */
static orr_code take_path(reader *r, const char *key, char **out)
{
    orr_json_value v;
    orr_str s;
    if (!find(r, key, &v))
        return ORR_OK;
    if (orr_json_type_of(v) != ORR_JSON_STRING)
        return fail_value(r, v, key, "the path of a file");
    const orr_code code = orr_json_get_str(v, &s, r->err);
    if (code)
        return code;
    *out = orr_arena_text(r->arena, s);
    return *out ? check_path(r, *out, r->c->path, orr_json_where(v)) : orr_no_memory(r->err);
}

static orr_code take_by_node(reader *r)
{
    char *path = NULL;
    const orr_code code = take_path(r, "per-node-custom-implementation", &path);
    if (code || !path)
        return code;
    r->c->custom_by_node = orr_map_create(0);
    return r->c->custom_by_node ? read_by_node(r, path) : orr_no_memory(r->err);
}

/* ---- all keys ---- */

static orr_code take_collectives(reader *r)
{
    static const struct {
        orr_collective kind;
        const char *native, *custom;
    } keys[] = {
        {ORR_COLL_ALL_REDUCE, "all-reduce-implementation", "all-reduce-implementation-custom"},
        {ORR_COLL_REDUCE_SCATTER, "reduce-scatter-implementation",
         "reduce-scatter-implementation-custom"},
        {ORR_COLL_ALL_GATHER, "all-gather-implementation", "all-gather-implementation-custom"},
        {ORR_COLL_ALL_TO_ALL, "all-to-all-implementation", "all-to-all-implementation-custom"},
    };
    orr_code code = ORR_OK;
    for (size_t k = 0; k < sizeof keys / sizeof *keys && !code; k++) {
        code = take_choices(r, keys[k].kind, keys[k].native);
        if (!code)
            code = take_custom(r, keys[k].kind, keys[k].custom);
    }
    return code;
}

static orr_code take_bus(reader *r)
{
    cfg_system *c = r->c;
    double G = 0;
    orr_code code = take_flag(r, "model-shared-bus", &c->shared_bus);
    if (!code)
        code = take_int(r, "L", &c->bus_L);
    if (!code)
        code = take_int(r, "o", &c->bus_o);
    if (!code)
        code = take_int(r, "g", &c->bus_g);
    if (!code)
        code = take_double(r, "G", 1, &G);
    c->bus_G = (float)G;
    c->reduction_delay = 1;
    return code ? code : take_int(r, "local-reduction-delay", &c->reduction_delay);
}

static orr_code take_rest(reader *r)
{
    static const char *const policies[] = {"", "LIFO", "FIFO", "EXPLICIT", NULL};
    static const char *const optimizations[] = {"", "baseline", "localBWAware", NULL};
    cfg_system *c = r->c;
    orr_json_value v;
    int policy = 0, optimization = 0;
    orr_code code = take_word(r, "scheduling-policy", policies, "LIFO, FIFO, EXPLICIT", &policy);
    if (!code)
        code = take_word(r, "collective-optimization", optimizations, "baseline, localBWAware",
                         &optimization);
    c->policy = (cfg_policy)policy;
    c->has_optimization = optimization != 0;
    c->is_bw_aware = optimization == 2;
    c->endpoint_delay = 10;
    c->active_chunks = 1;
    c->has_endpoint_delay = find(r, "endpoint-delay", &v);
    const struct {
        const char *key;
        uint64_t *to;
    } counts[] = {{"endpoint-delay", &c->endpoint_delay},
                  {"preferred-dataset-splits", &c->splits},
                  {"active-chunks-per-dimension", &c->active_chunks}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts && !code; i++)
        code = take_count(r, counts[i].key, counts[i].to);
    const struct {
        const char *key;
        bool *to;
    } flags[] = {{"roofline-enabled", &c->roofline},
                 {"replay-only", &c->replay_only},
                 {"trace-enabled", &c->trace_enabled},
                 {"track-local-mem", &c->track_local_mem}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags && !code; i++)
        code = take_flag(r, flags[i].key, flags[i].to);
    if (!code)
        code = take_double(r, "local-mem-bw", 1e9, &c->local_mem_bw);
    if (!code)
        code = take_path(r, "local-mem-trace-filename", &c->local_mem_file);
    return code ? code : take_double(r, "peak-perf", 1e12, &c->peak_perf);
}

/* ---- keys that only orrery run reads ----
 *
 * The schedulers, which the reference ignores, and the algorithms of rooted collectives, which it
 * lacks. */

static orr_code take_schedulers(reader *r)
{
    static const char *const inter[] = {"ascending",         "roundRobin",   "offlineGreedy",
                                        "offlineGreedyFlex", "onlineGreedy", NULL};
    static const char *const intra[] = {"FIFO", "RG", "smallestFirst", "lessRemainingPhaseFirst",
                                        NULL};
    static const char *const orders[] = {"own", "agreed", NULL};
    cfg_system *c = r->c;
    int value = CFG_ASCENDING;
    orr_code code =
        take_word(r, "inter-dimension-scheduling", inter,
                  "ascending, roundRobin, offlineGreedy, offlineGreedyFlex, onlineGreedy", &value);
    c->inter = (cfg_inter)value;
    value = CFG_BY_PRIORITY;
    if (!code)
        code = take_word(r, "intra-dimension-scheduling", intra,
                         "FIFO, RG, smallestFirst, lessRemainingPhaseFirst", &value);
    c->intra = (cfg_intra)value;
    /* Ranks that choose their own order may deadlock, as in the reference. */
    value = c->inter != CFG_ASCENDING || c->intra != CFG_BY_PRIORITY;
    if (!code)
        code = take_word(r, "chunk-order", orders, "own, agreed", &value);
    c->is_agreed = value != 0;
    return code;
}

static orr_code take_rooted(reader *r)
{
    static const struct {
        orr_collective kind;
        const char *key;
    } keys[] = {
        {ORR_COLL_BROADCAST, "broadcast-implementation"},
        {ORR_COLL_REDUCE, "reduce-implementation"},
        {ORR_COLL_GATHER, "gather-implementation"},
        {ORR_COLL_SCATTER, "scatter-implementation"},
        {ORR_COLL_BARRIER, "barrier-implementation"},
    };
    orr_code code = ORR_OK;
    for (size_t k = 0; k < sizeof keys / sizeof *keys && !code; k++)
        code = take_choices(r, keys[k].kind, keys[k].key);
    return code;
}

/* ---- the text of ASTRA-sim 1.0 ---- */

bool cfg_begins_object(orr_span bytes)
{
    size_t i = bytes.len >= 3 && memcmp(bytes.ptr, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (i < bytes.len && (bytes.ptr[i] == ' ' || (bytes.ptr[i] >= '\t' && bytes.ptr[i] <= '\r')))
        i++;
    return i < bytes.len && bytes.ptr[i] == '{';
}

/* A broken JSON file is still meant to be JSON: only text begins with a letter. */
static bool has_text_keys(orr_span bytes)
{
    size_t i = 0;
    while (i < bytes.len && (bytes.ptr[i] == ' ' || (bytes.ptr[i] >= '\t' && bytes.ptr[i] <= '\r')))
        i++;
    return i < bytes.len && ((bytes.ptr[i] | 32) >= 'a' && (bytes.ptr[i] | 32) <= 'z') &&
           memchr(bytes.ptr, ':', bytes.len);
}

typedef enum text_kind { TEXT_NUMBER, TEXT_WORD, TEXT_LIST, TEXT_NOTHING } text_kind;

static const struct {
    const char *key;
    text_kind kind;
} text_keys[] = {
    {"scheduling-policy", TEXT_WORD},
    {"endpoint-delay", TEXT_NUMBER},
    {"active-chunks-per-dimension", TEXT_NUMBER},
    {"preferred-dataset-splits", TEXT_NUMBER},
    {"all-reduce-implementation", TEXT_LIST},
    {"all-gather-implementation", TEXT_LIST},
    {"reduce-scatter-implementation", TEXT_LIST},
    {"all-to-all-implementation", TEXT_LIST},
    {"collective-optimization", TEXT_WORD},
    {"intra-dimension-scheduling", TEXT_WORD},
    {"inter-dimension-scheduling", TEXT_WORD},
    {"local-reduction-delay", TEXT_NUMBER},
    {"model-shared-bus", TEXT_NUMBER},
    {"L", TEXT_NUMBER},
    {"o", TEXT_NUMBER},
    {"g", TEXT_NUMBER},
    {"G", TEXT_NUMBER},
    {"boost-mode", TEXT_NOTHING},
    {"seprate-log", TEXT_NOTHING},
};

/* Two values have been renamed since. */
static orr_str todays_word(orr_str s)
{
    static const char *const names[][2] = {{"baseline", "ascending"},
                                           {"themis", "offlineGreedy"},
                                           {"themisFlex", "offlineGreedyFlex"},
                                           {"SCF", "smallestFirst"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (orr_str_is(s, names[i][0]))
            return orr_str_of(names[i][1]);
    return s;
}

static void put_text(orr_buf *b, orr_str s)
{
    orr_buf_byte(b, '"');
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '"' || s.ptr[i] == '\\')
            orr_buf_byte(b, '\\');
        orr_buf_byte(b, (uint8_t)s.ptr[i]);
    }
    orr_buf_byte(b, '"');
}

/* ring_ring_doubleBinaryTree: one per dimension. */
static void put_list(orr_buf *b, orr_str s)
{
    orr_buf_byte(b, '[');
    for (size_t from = 0, at = 0; at <= s.len; at++) {
        if (at < s.len && s.ptr[at] != '_')
            continue;
        if (from)
            orr_buf_byte(b, ',');
        put_text(b, (orr_str){s.ptr + from, at - from});
        from = at + 1;
    }
    orr_buf_byte(b, ']');
}

static void put_value(orr_buf *b, text_kind kind, orr_str key, orr_str value)
{
    double number;
    const bool is_optimization = orr_str_is(key, "collective-optimization");
    put_text(b, key);
    orr_buf_byte(b, ':');
    if (kind == TEXT_LIST)
        put_list(b, value);
    else if (kind == TEXT_NUMBER && orr_text_double(value, &number))
        orr_buf_add(b, value.ptr, value.len);
    else
        put_text(b, is_optimization ? value : todays_word(value));
}

static orr_str next_word(orr_str *rest)
{
    while (rest->len && (*rest->ptr == ' ' || (*rest->ptr >= '\t' && *rest->ptr <= '\r'))) {
        rest->ptr++;
        rest->len--;
    }
    const char *from = rest->ptr;
    while (rest->len && *rest->ptr != ' ' && !(*rest->ptr >= '\t' && *rest->ptr <= '\r')) {
        rest->ptr++;
        rest->len--;
    }
    return (orr_str){from, (size_t)(rest->ptr - from)};
}

static orr_code put_line(
    orr_buf *b, orr_str line, uint32_t number, bool *has_any, const char *path, orr_error *err)
{
    orr_str key = next_word(&line);
    const orr_str value = next_word(&line);
    const orr_where w = orr_where_line(path, number, 1);
    if (key.len == 0)
        return ORR_OK;
    if (key.ptr[key.len - 1] != ':' || value.len == 0 || next_word(&line).len)
        return orr_fail(
            err, ORR_EINPUT, &w,
            "neither JSON nor \"key: value\", as the system files of ASTRA-sim have it");
    key.len--;
    for (size_t i = 0; i < sizeof text_keys / sizeof *text_keys; i++) {
        if (!orr_str_is(key, text_keys[i].key))
            continue;
        if (text_keys[i].kind == TEXT_NOTHING)
            return ORR_OK;
        if (*has_any)
            orr_buf_byte(b, ',');
        *has_any = true;
        put_value(b, text_keys[i].kind, key, value);
        return ORR_OK;
    }
    return orr_fail(err, ORR_EINPUT, &w, "\"%.*s\" is not a key of the system file",
                    (int)(key.len < 40 ? key.len : 40), key.ptr);
}

/* Line numbers are preserved for messages. */
static orr_code rewrite_text(orr_span bytes, const char *path, orr_buf *out, orr_error *err)
{
    orr_code code = ORR_OK;
    uint32_t number = 1;
    bool has_any = true;
    orr_buf_text(out, "{\"local-mem-bw\":500000"); /* the default of that version, GB/s */
    for (size_t at = 0; at < bytes.len && !code; number++) {
        const uint8_t *end = memchr(bytes.ptr + at, '\n', bytes.len - at);
        const size_t len = end ? (size_t)(end - bytes.ptr) - at : bytes.len - at;
        code = put_line(out, (orr_str){(const char *)bytes.ptr + at, len}, number, &has_any, path,
                        err);
        at += len + 1;
        orr_buf_byte(out, '\n');
    }
    orr_buf_byte(out, '}');
    return !code && out->failed ? orr_no_memory(err) : code;
}

/* ---- unknown keys ---- */

/* Keys of other programs that have no effect here, and keys that people use for comments. */
static bool is_harmless(orr_str key)
{
    static const char *const words[] = {"boost-mode", "comment", "description", "name"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (orr_str_is(key, words[i]))
            return true;
    return key.len && memchr("_#/", key.ptr[0], 3);
}

static orr_code check_keys(reader *r, cfg_notes *notes)
{
    orr_json_value v;
    orr_str key;
    orr_code code = ORR_OK;
    r->asked[r->asked_count] = NULL;
    for (orr_json_iter it = orr_json_iterate(r->root);
         !code && orr_json_next_member(&it, &key, &v);) {
        size_t i = 0;
        while (i < r->asked_count && !orr_str_is(key, r->asked[i]))
            i++;
        if (i == r->asked_count && !is_harmless(key))
            code = cfg_unknown_key(key, orr_json_where(v), r->asked,
                                   "docs/format/system.md has all keys", notes, r->err);
    }
    return code;
}

/* ---- the same from a struct ---- */

static orr_code take_list(reader *r,
                          orr_collective kind,
                          const char *const *list,
                          const char *plain)
{
    cfg_system *c = r->c;
    const char *const one[] = {plain, NULL};
    c->is_plain[kind] = !list[0];
    if (!list[0])
        list = one;
    for (; *list; list++)
        if (c->choice_count[kind] > ORR_NET_DIMS ||
            !coll_parse(r->algorithms, kind, orr_str_of(*list),
                        &c->choice[kind][c->choice_count[kind]++]))
            return orr_fail(r->err, ORR_EUSAGE, NULL, "orr_system: \"%.40s\" is not an algorithm",
                            *list);
    c->has_choices[kind] = true;
    return ORR_OK;
}

static orr_code take_struct(reader *r, const orr_system *s)
{
    static const char *const policies[] = {"LIFO", "FIFO", "EXPLICIT"};
    cfg_system *c = r->c;
    for (int i = 0; i < 3; i++)
        if (strcmp(s->policy ? s->policy : "LIFO", policies[i]) == 0)
            c->policy = (cfg_policy)(CFG_POLICY_MISSING + 1 + i);
    if (c->policy == CFG_POLICY_MISSING)
        return orr_fail(r->err, ORR_EUSAGE, NULL,
                        "orr_system.policy is \"%.40s\", not LIFO, FIFO or EXPLICIT", s->policy);
    if (s->endpoint_delay < 0 || s->peak_flops < 0)
        return orr_fail(r->err, ORR_EUSAGE, NULL, "orr_system: a delay or a speed is below 0");
    if (!(s->overlap_cost >= 0 && s->overlap_cost <= 0.9))
        return orr_fail(r->err, ORR_EUSAGE, NULL, "orr_system.overlap_cost is not from 0 to 0.9");
    if (!(s->message_overlap_cost >= 0 && s->message_overlap_cost <= 0.9))
        return orr_fail(r->err, ORR_EUSAGE, NULL,
                        "orr_system.message_overlap_cost is not from 0 to 0.9");
    c->has_optimization = true;
    c->is_bw_aware = s->is_bandwidth_aware;
    c->has_endpoint_delay = s->has_endpoint_delay;
    c->endpoint_delay = s->has_endpoint_delay ? (uint64_t)s->endpoint_delay / 1000 : 10;
    c->splits = s->chunks ? s->chunks : 1;
    c->active_chunks = s->active_chunks ? s->active_chunks : 1;
    c->local_mem_bw = s->memory_bandwidth ? (double)s->memory_bandwidth : 1600e9;
    c->peak_perf = s->peak_flops;
    c->roofline = s->has_roofline;
    c->replays_measured = s->replays_measured;
    c->overlap_cost = s->overlap_cost;
    c->message_overlap_cost = s->message_overlap_cost;
    c->inter = CFG_ASCENDING;
    c->intra = CFG_BY_PRIORITY;
    c->reduction_delay = 1;
    orr_code code = take_list(r, ORR_COLL_ALL_REDUCE, s->all_reduce, "ring");
    if (!code)
        code = take_list(r, ORR_COLL_ALL_GATHER, s->all_gather, "ring");
    if (!code)
        code = take_list(r, ORR_COLL_REDUCE_SCATTER, s->reduce_scatter, "ring");
    if (!code)
        code = take_list(r, ORR_COLL_ALL_TO_ALL, s->all_to_all, "direct");
    const struct {
        orr_collective kind;
        const char *const *list;
    } rooted[] = {{ORR_COLL_BROADCAST, s->broadcast},
                  {ORR_COLL_REDUCE, s->reduce},
                  {ORR_COLL_GATHER, s->gather},
                  {ORR_COLL_SCATTER, s->scatter},
                  {ORR_COLL_BARRIER, s->barrier}};
    for (size_t k = 0; k < sizeof rooted / sizeof *rooted && !code; k++)
        if (rooted[k].list[0]) /* empty: as if the key were absent */
            code = take_list(r, rooted[k].kind, rooted[k].list, NULL);
    return code;
}

orr_code cfg_read_system(
    const orr_sim_options *opt, orr_arena *a, cfg_notes *notes, cfg_system *out, orr_error *err)
{
    orr_input *in;
    orr_json *j = NULL;
    orr_buf rewritten = {0};
    const char *path = opt->own_system ? CFG_BUILT_IN : opt->system;
    *out = (cfg_system){
        .path = orr_arena_text(a, orr_str_of(path)),
        .local_mem_file = orr_arena_text(a, orr_str_of("local_mem_trace")),
        .checks_paths = !(opt->rules && opt->rules->ignores_new_keys),
    };
    if (!out->path || !out->local_mem_file)
        return orr_no_memory(err);
    reader r = {.arena = a,
                .c = out,
                .algorithms = opt->algorithms,
                .takes_plans = !(opt->rules && opt->rules->ignores_new_keys),
                .err = err};
    if (opt->own_system)
        return take_struct(&r, opt->own_system);
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    orr_span bytes = orr_input_bytes(in);
    if (has_text_keys(bytes)) {
        code = rewrite_text(bytes, path, &rewritten, err);
        bytes = (orr_span){rewritten.ptr, rewritten.len};
    }
    if (!code)
        code = orr_json_open(bytes, path, &j, err);
    if (!code)
        code = orr_json_only(j, &r.root, err);
    if (!code && orr_json_type_of(r.root) != ORR_JSON_OBJECT)
        code = fail_value(&r, r.root, "the system file", "an object");
    if (!code)
        code = take_rest(&r);
    if (!code)
        code = take_bus(&r);
    if (!code)
        code = take_collectives(&r);
    if (!code)
        code = take_by_node(&r);
    /* The rules of a replaced program skip our keys: a file that it accepts is never refused. */
    if (!code && !(opt->rules && opt->rules->ignores_new_keys))
        code = take_schedulers(&r);
    if (!code && !(opt->rules && opt->rules->ignores_new_keys))
        code = take_rooted(&r);
    if (!code)
        code = check_keys(&r, notes);
    orr_json_close(j);
    orr_buf_fini(&rewritten);
    orr_input_close(in);
    return code;
}

void cfg_system_fini(cfg_system *c)
{
    orr_map_destroy(c->custom_by_node);
    orr_free(c->custom_prefix);
}
