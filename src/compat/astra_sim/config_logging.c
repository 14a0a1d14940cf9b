/* SPDX-License-Identifier: Apache-2.0 */
/* config_logging.c - the logging file of the old programs: TOML in the words of spdlog_setup
 * (docs/format/logging.md, astra-sim.md 10.3).
 *
 * A logger emits lines, a sink receives them; each logger lists its sinks.  Two quirks of the old
 * program are kept because they show in its output: a logger without a level is at info, for the
 * default sinks too, and after reading the file the program sets one pattern on all sinks.  One is
 * not kept: there, async loggers lose all their lines, because their threads have ended before the
 * first one.
 *
 * Unknown keys are errors, as everywhere here. */
#include "config_logging.h"

#include "base/io/input.h"
#include "base/short_forms.h"
#include "toml.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { SHOWN = 60, MOST_FILES = 200000, MOST_TABLES = 256 };

const char *const orr__logger_name[ORR__LOGGERS] = {
    [ORR__LOG_WORKLOAD] = "workload",
    [ORR__LOG_SYSTEM] = "system",
    [ORR__LOG_STATISTICS] = "statistics",
    [ORR__LOG_HARDWARE] = "HardwareResource",
    [ORR__LOG_RING] = "system::topology::RingTopology",
    [ORR__LOG_TENSORS] = "workload::LocalMemUsageTracker",
};

const orr__logging orr__default_logging = {.sink_count = 0};

static const char reference_pattern[] = "[%Y-%m-%dT%T%z] [%L] <%n>: %v";

typedef struct named_pattern {
    orr_str name;
    const char *value;
} named_pattern;

typedef struct reader {
    orr_arena *arena;
    orr__logging *out;
    bool keeps_patterns;
    named_pattern *patterns;
    uint32_t pattern_count;
    const char *global_pattern; /* NULL: none */
    orr_str *loggers;           /* names read so far */
    uint32_t logger_count;
    orr_str *pools; /* names of thread pools */
    uint32_t pool_count;
    orr_error *err;
} reader;

/* ---- fields ---- */

static orr_code need_type(reader *r, orr_toml_value v, orr_toml_type type, const char *what)
{
    if (orr_toml_type_of(v) == type)
        return ORR_OK;
    return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr_toml_where(v)), "%s: expected %s, this is %s",
                    what, orr_toml_type_name(type), orr_toml_type_name(orr_toml_type_of(v)));
}

/* Fail at the value of a key that exists. */
static orr_code refuse(reader *r, orr_toml_value table, const char *key, const char *fmt, ...)
    ORR_PRINTF(4, 5);
static orr_code refuse(reader *r, orr_toml_value table, const char *key, const char *fmt, ...)
{
    char words[300];
    orr_toml_value v = table;
    va_list args;
    orr_toml_find(table, key, &v);
    va_start(args, fmt);
    vsnprintf(words, sizeof words, fmt, args);
    va_end(args);
    return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr_toml_where(v)), "%s", words);
}

static orr_code check_keys(reader *r, orr_toml_value table, const char *const *keys)
{
    orr_toml_value v;
    for (bool more = orr_toml_first(table, &v); more; more = orr_toml_next(&v)) {
        const orr_str key = orr_toml_key(v);
        const char *const *k = keys;
        while (*k && !orr_str_is(key, *k))
            k++;
        if (!*k)
            return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr_toml_key_where(v)),
                            "unknown key \"%.*s\"", ORR_SHOWN(key, SHOWN));
    }
    return ORR_OK;
}

/* A string without NUL, so that it can be passed to the system.  ORR_END: no such key. */
static orr_code take_text(reader *r, orr_toml_value table, const char *key, orr_str *out)
{
    orr_toml_value v;
    if (!orr_toml_find(table, key, &v))
        return ORR_END;
    const orr_code code = need_type(r, v, ORR_TOML_STRING, key);
    *out = orr_toml_text(v);
    if (code || !memchr(out->ptr, '\0', out->len))
        return code;
    return refuse(r, table, key, "%s: a text with a NUL character", key);
}

static orr_code need_text(reader *r, orr_toml_value table, const char *key, orr_str *out)
{
    const orr_code code = take_text(r, table, key, out);
    if (code != ORR_END)
        return code;
    return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr_toml_where(table)), "the key \"%s\" is missing",
                    key);
}

static orr_code need_copy(reader *r, orr_toml_value table, const char *key, const char **out)
{
    orr_str s = {"", 0};
    const orr_code code = need_text(r, table, key, &s);
    if (code)
        return code;
    *out = orr_arena_text(r->arena, s);
    return *out ? ORR_OK : orr_no_memory(r->err);
}

static orr_code need_int(
    reader *r, orr_toml_value table, const char *key, int64_t min, int64_t max, int64_t *out)
{
    orr_toml_value v;
    if (!orr_toml_find(table, key, &v))
        return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr_toml_where(table)),
                        "the key \"%s\" is missing", key);
    const orr_code code = need_type(r, v, ORR_TOML_INT, key);
    *out = orr_toml_int(v);
    if (code || (*out >= min && *out <= max))
        return code;
    return refuse(r, table, key, "%s: expected a number from %" PRId64 " to %" PRId64, key, min,
                  max);
}

static orr_code take_bool(reader *r, orr_toml_value table, const char *key, bool *out)
{
    orr_toml_value v;
    if (!orr_toml_find(table, key, &v))
        return ORR_OK;
    *out = orr_toml_bool(v);
    return need_type(r, v, ORR_TOML_BOOL, key);
}

/* Index of the value in `words`; *out is unchanged if the key is missing. */
static orr_code take_word(
    reader *r, orr_toml_value table, const char *key, const char *const *words, unsigned *out)
{
    orr_str s = {"", 0};
    const orr_code code = take_text(r, table, key, &s);
    if (code)
        return code == ORR_END ? ORR_OK : code;
    for (unsigned i = 0; words[i]; i++)
        if (orr_str_is(s, words[i])) {
            *out = i;
            return ORR_OK;
        }
    orr_buf list = {0};
    for (unsigned i = 0; words[i]; i++)
        orr_buf_print(&list, "%s%s", i == 0 ? "" : words[i + 1] ? ", " : " or ", words[i]);
    refuse(r, table, key, "%s \"%.*s\" is not %.*s", key, ORR_SHOWN(s, SHOWN), (int)list.len,
           (const char *)list.ptr);
    orr_buf_fini(&list);
    return ORR_EINPUT;
}

static orr_code take_level(reader *r, orr_toml_value table, const char *key, orr__log_level *out)
{
    static const char *const words[] = {"trace", "debug",    "info", "warn",
                                        "err",   "critical", "off",  NULL};
    unsigned level = *out;
    const orr_code code = take_word(r, table, key, words, &level);
    *out = (orr__log_level)level;
    return code;
}

/* [[key]]: the array of its tables; empty if there is none. */
static orr_code take_tables(reader *r, orr_toml_value root, const char *key, orr_toml_value *out)
{
    orr_toml_value item;
    *out = root;
    if (!orr_toml_find(root, key, out))
        return ORR_END;
    orr_code code = need_type(r, *out, ORR_TOML_ARRAY, key);
    if (code)
        return code;
    if (orr_toml_count(*out) > MOST_TABLES)
        return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr_toml_where(*out)), "more than %d of [[%s]]",
                        MOST_TABLES, key);
    for (bool more = orr_toml_first(*out, &item); more && !code; more = orr_toml_next(&item))
        code = need_type(r, item, ORR_TOML_TABLE, key);
    return code;
}

/* Linear search: there are few names. */
static orr_code add_name(
    reader *r, orr_toml_value table, const char *what, orr_str *names, uint32_t *count)
{
    orr_str name = {"", 0};
    const orr_code code = need_text(r, table, "name", &name);
    const orr_where w = orr_toml_where(table);
    if (code)
        return code;
    for (uint32_t i = 0; i < *count; i++)
        if (orr_str_equal(names[i], name))
            return orr_fail(r->err, ORR_EINPUT, &w, "duplicate %s \"%.*s\"", what,
                            ORR_SHOWN(name, SHOWN));
    if (name.len == 0)
        return orr_fail(r->err, ORR_EINPUT, &w, "name: the %s has an empty one", what);
    names[(*count)++] = name;
    return ORR_OK;
}

/* ---- sinks ---- */

/* Without the suffix _st or _mt, which makes no difference with one thread. */
static const orr_word sink_types[] = {
    {"stdout_sink", ORR__SINK_STDOUT},       {"stderr_sink", ORR__SINK_STDERR},
    {"color_stdout_sink", ORR__SINK_STDOUT}, {"color_stderr_sink", ORR__SINK_STDERR},
    {"basic_file_sink", ORR__SINK_FILE},     {"rotating_file_sink", ORR__SINK_ROTATING},
    {"daily_file_sink", ORR__SINK_DAILY},    {"null_sink", ORR__SINK_NOTHING},
};

static orr_code take_type(reader *r, orr_toml_value table, orr__sink_kind *out)
{
    orr_str s = {"", 0};
    const orr_code code = need_text(r, table, "type", &s);
    if (code)
        return code;
    const orr_str stem = {s.ptr, s.len > 3 ? s.len - 3 : 0},
                  end = {s.ptr + stem.len, s.len - stem.len};
    const bool has_end = orr_str_is(end, "_st") || orr_str_is(end, "_mt");
    const int kind = has_end ? orr_word_find(sink_types, ORR_COUNT(sink_types), stem, -1) : -1;
    *out = kind < 0 ? *out : (orr__sink_kind)kind;
    if (kind >= 0)
        return ORR_OK;
    return refuse(r, table, "type",
                  "type \"%.*s\" is not one of stdout_sink, stderr_sink, color_stdout_sink, "
                  "color_stderr_sink, basic_file_sink, rotating_file_sink, daily_file_sink and "
                  "null_sink with _st or _mt",
                  ORR_SHOWN(s, SHOWN));
}

/* "10M", "512 kb", "7": up to 2^63. */
static bool parse_size(orr_str s, uint64_t *out)
{
    static const char letters[] = "kmgt";
    size_t i = 0;
    uint64_t value = 0;
    const size_t digits_at = i = strspn(s.ptr, " \t");
    for (; i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '9'; i++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(s.ptr[i] - '0'), &value))
            return false;
    const bool has_digits = i > digits_at;
    i += strspn(s.ptr + i, " \t");
    const char *letter = i < s.len ? strchr(letters, s.ptr[i] | 0x20) : NULL;
    const unsigned shift = letter ? 10 * ((unsigned)(letter - letters) + 1) : 0;
    i += letter != NULL;
    i += i < s.len && (s.ptr[i] | 0x20) == 'b';
    i += strspn(s.ptr + i, " \t");
    *out = value << shift;
    return has_digits && i == s.len && *out >> shift == value && *out >> 63 == 0;
}

static orr_code take_size(reader *r, orr_toml_value table, uint64_t *out)
{
    const char *text;
    const orr_code code = need_copy(r, table, "max_size", &text);
    if (code || (parse_size(orr_str_of(text), out) && *out > 0))
        return code;
    return refuse(r, table, "max_size",
                  "max_size \"%.*s\" is not a size above 0, as 512, 64K, 10M or 1G", SHOWN, text);
}

static orr_code take_path(reader *r, orr_toml_value table, const char *key, const char **out)
{
    bool makes_folder;
    orr_code code = need_copy(r, table, key, out);
    if (!code)
        code = take_bool(r, table, "create_parent_dir", &makes_folder); /* ignored: spdlog always
                                                                         * creates it */
    if (code || (*out)[0])
        return code;
    return refuse(r, table, key, "%s: expected the name of a file", key);
}

static orr_code take_file(reader *r, orr_toml_value table, orr__sink *s)
{
    int64_t number;
    if (s->kind == ORR__SINK_FILE) {
        const orr_code code = take_path(r, table, "filename", &s->path);
        return code ? code : take_bool(r, table, "truncate", &s->truncates);
    }
    orr_code code = take_path(r, table, "base_filename", &s->path);
    if (s->kind == ORR__SINK_DAILY) {
        if (!code)
            code = need_int(r, table, "rotation_hour", 0, 23, &number);
        return code ? code : need_int(r, table, "rotation_minute", 0, 59, &number);
    }
    if (!code)
        code = take_size(r, table, &s->max_size);
    if (!code)
        code = need_int(r, table, "max_files", 0, MOST_FILES, &number);
    if (!code)
        s->max_files = (uint64_t)number;
    return code;
}

static orr_code take_sink(reader *r, orr_toml_value table, orr__sink *s)
{
    static const char *const keys[] = {"name",
                                       "type",
                                       "level",
                                       "filename",
                                       "truncate",
                                       "max_size",
                                       "base_filename",
                                       "max_files",
                                       "rotation_hour",
                                       "rotation_minute",
                                       "create_parent_dir",
                                       NULL};
    orr_code code = check_keys(r, table, keys);
    if (!code)
        code = need_copy(r, table, "name", &s->name);
    if (!code)
        code = take_type(r, table, &s->kind);
    if (!code)
        code = take_level(r, table, "level", &s->level);
    if (!code && s->kind >= ORR__SINK_FILE)
        code = take_file(r, table, s);
    return code;
}

static orr_code take_sinks(reader *r, orr_toml_value root)
{
    orr_toml_value list, item;
    orr_code code = take_tables(r, root, "sink", &list);
    if (code == ORR_END || (!code && orr_toml_count(list) == 0))
        return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr_toml_where(root)), "there is no [[sink]]");
    if (code)
        return code;
    orr_str *names = orr_arena_new(r->arena, orr_toml_count(list), orr_str);
    r->out->sinks = orr_arena_new(r->arena, orr_toml_count(list), orr__sink);
    if (!names || !r->out->sinks)
        return orr_no_memory(r->err);
    for (bool more = orr_toml_first(list, &item); more && !code; more = orr_toml_next(&item)) {
        code = take_sink(r, item, &r->out->sinks[r->out->sink_count]);
        if (!code)
            code = add_name(r, item, "sink", names, &r->out->sink_count);
    }
    return code;
}

/* ---- patterns ---- */

static orr_code take_patterns(reader *r, orr_toml_value root)
{
    static const char *const keys[] = {"name", "value", NULL};
    orr_toml_value list, item;
    orr_str global = {"", 0};
    orr_code code = take_text(r, root, "global_pattern", &global);
    if (!code && !(r->global_pattern = orr_arena_text(r->arena, global)))
        return orr_no_memory(r->err);
    if (code && code != ORR_END)
        return code;
    if ((code = take_tables(r, root, "pattern", &list)))
        return code == ORR_END ? ORR_OK : code;
    orr_str *names = orr_arena_new(r->arena, orr_toml_count(list), orr_str);
    r->patterns = orr_arena_new(r->arena, orr_toml_count(list), named_pattern);
    if (!names || !r->patterns)
        return orr_no_memory(r->err);
    for (bool more = orr_toml_first(list, &item); more && !code; more = orr_toml_next(&item)) {
        named_pattern *p = &r->patterns[r->pattern_count];
        if ((code = check_keys(r, item, keys)) ||
            (code = add_name(r, item, "pattern", names, &r->pattern_count)))
            return code;
        p->name = names[r->pattern_count - 1];
        code = need_copy(r, item, "value", &p->value);
    }
    return code;
}

/* *out is unchanged if the logger names no pattern. */
static orr_code find_pattern(reader *r, orr_toml_value table, const char **out)
{
    orr_str name = {"", 0};
    const orr_code code = take_text(r, table, "pattern", &name);
    if (code)
        return code == ORR_END ? ORR_OK : code;
    for (uint32_t i = 0; i < r->pattern_count; i++)
        if (orr_str_equal(r->patterns[i].name, name)) {
            *out = r->patterns[i].value;
            return ORR_OK;
        }
    return refuse(r, table, "pattern", "there is no [[pattern]] with the name \"%.*s\"",
                  ORR_SHOWN(name, SHOWN));
}

/* ---- thread pools: checked, not used ---- */

static orr_code take_pools(reader *r, orr_toml_value root)
{
    static const char *const keys[] = {"name", "queue_size", "num_threads", NULL};
    orr_toml_value list, item;
    if (orr_toml_find(root, "global_thread_pool", &item)) {
        orr_code code = need_type(r, item, ORR_TOML_TABLE, "global_thread_pool");
        if (code || (code = check_keys(r, item, keys + 1)))
            return code;
    }
    orr_code code = take_tables(r, root, "thread_pool", &list);
    if (code)
        return code == ORR_END ? ORR_OK : code;
    r->pools = orr_arena_new(r->arena, orr_toml_count(list), orr_str);
    if (!r->pools)
        return orr_no_memory(r->err);
    for (bool more = orr_toml_first(list, &item); more && !code; more = orr_toml_next(&item)) {
        code = check_keys(r, item, keys);
        if (!code)
            code = add_name(r, item, "thread_pool", r->pools, &r->pool_count);
    }
    return code;
}

static orr_code check_threads(reader *r, orr_toml_value table)
{
    static const char *const types[] = {"sync", "async", NULL};
    static const char *const policies[] = {"block", "overrun_oldest", NULL};
    unsigned ignored;
    orr_str name = {"", 0};
    orr_code code = take_word(r, table, "type", types, &ignored);
    if (!code)
        code = take_word(r, table, "overflow_policy", policies, &ignored);
    if (!code)
        code = take_text(r, table, "thread_pool", &name);
    if (code)
        return code == ORR_END ? ORR_OK : code;
    for (uint32_t i = 0; i < r->pool_count; i++)
        if (orr_str_equal(r->pools[i], name))
            return ORR_OK;
    return refuse(r, table, "thread_pool", "there is no [[thread_pool]] with the name \"%.*s\"",
                  ORR_SHOWN(name, SHOWN));
}

/* ---- loggers ---- */

static orr_code find_sink(reader *r, orr_toml_value v, uint32_t *out)
{
    const orr_code code = need_type(r, v, ORR_TOML_STRING, "sinks");
    const orr_str name = orr_toml_text(v);
    if (code)
        return code;
    for (*out = 0; *out < r->out->sink_count; ++*out)
        if (orr_str_is(name, r->out->sinks[*out].name))
            return ORR_OK;
    return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr_toml_where(v)),
                    "there is no [[sink]] with the name \"%.*s\"", ORR_SHOWN(name, SHOWN));
}

static orr_code take_logger_sinks(reader *r, orr_toml_value table, orr__logger_rule *rule)
{
    orr_toml_value list, v;
    if (!orr_toml_find(table, "sinks", &list))
        return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr_toml_where(table)),
                        "the key \"sinks\" is missing");
    orr_code code = need_type(r, list, ORR_TOML_ARRAY, "sinks");
    if (code)
        return code;
    rule->sinks = orr_arena_new(r->arena, orr_toml_count(list), uint32_t);
    if (!rule->sinks)
        return orr_no_memory(r->err);
    for (bool more = orr_toml_first(list, &v); more && !code; more = orr_toml_next(&v))
        code = find_sink(r, v, &rule->sinks[rule->count++]);
    return code;
}

static orr_code take_logger(reader *r, orr_toml_value table)
{
    static const char *const keys[] = {"name",        "sinks",           "level",
                                       "flush_level", "pattern",         "thread_pool",
                                       "type",        "overflow_policy", NULL};
    orr__logger_rule rule = {.level = ORR__LOG_INFO};
    orr__log_level flush = ORR__LOG_OFF; /* ignored: everything is written at the end */
    const char *pattern = r->global_pattern;
    orr_code code;
    if ((code = check_keys(r, table, keys)) ||
        (code = add_name(r, table, "logger", r->loggers, &r->logger_count)) ||
        (code = take_logger_sinks(r, table, &rule)) || (code = check_threads(r, table)) ||
        (code = take_level(r, table, "level", &rule.level)) ||
        (code = take_level(r, table, "flush_level", &flush)) ||
        (code = find_pattern(r, table, &pattern)))
        return code;
    /* Patterns belong to sinks: the last logger that names a sink wins. */
    for (uint32_t i = 0; r->keeps_patterns && pattern && i < rule.count; i++)
        r->out->sinks[rule.sinks[i]].pattern = pattern;
    r->out->has_unused_patterns |= pattern && !r->keeps_patterns;
    for (unsigned i = 0; i < ORR__LOGGERS; i++)
        if (orr_str_is(r->loggers[r->logger_count - 1], orr__logger_name[i]))
            r->out->rules[i] = rule;
    return ORR_OK;
}

static orr_code take_loggers(reader *r, orr_toml_value root)
{
    orr_toml_value list, item;
    orr_code code = take_tables(r, root, "logger", &list);
    if (code == ORR_END || (!code && orr_toml_count(list) == 0))
        return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr_toml_where(root)), "there is no [[logger]]");
    if (code)
        return code;
    r->loggers = orr_arena_new(r->arena, orr_toml_count(list), orr_str);
    if (!r->loggers)
        return orr_no_memory(r->err);
    for (bool more = orr_toml_first(list, &item); more && !code; more = orr_toml_next(&item))
        code = take_logger(r, item);
    return code;
}

/* ---- the whole file ---- */

static orr_code take_file_of_rules(reader *r, orr_toml_value root)
{
    static const char *const keys[] = {
        "sink", "pattern", "logger", "global_pattern", "thread_pool", "global_thread_pool", NULL};
    orr_code code = check_keys(r, root, keys);
    if (!code)
        code = take_sinks(r, root);
    for (uint32_t i = 0; i < r->out->sink_count; i++)
        r->out->sinks[i].pattern = r->keeps_patterns ? orr__log_plain : reference_pattern;
    if (!code)
        code = take_patterns(r, root);
    if (!code)
        code = take_pools(r, root);
    return code ? code : take_loggers(r, root);
}

orr_code orr__parse_logging(orr_span bytes,
                            const char *path,
                            bool keeps_patterns,
                            orr_arena *a,
                            orr__logging *out,
                            orr_error *err)
{
    orr_toml *t;
    reader r = {.arena = a, .out = out, .keeps_patterns = keeps_patterns, .err = err};
    *out = orr__default_logging;
    orr_code code = orr_toml_open(bytes, path, &t, err);
    if (code)
        return code;
    code = take_file_of_rules(&r, orr_toml_root(t));
    orr_toml_close(t);
    return code;
}

orr_code orr__read_logging(
    const char *path, bool keeps_patterns, orr_arena *a, orr__logging *out, orr_error *err)
{
    orr_input *in;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    code = orr__parse_logging(orr_input_bytes(in), path, keeps_patterns, a, out, err);
    orr_input_close(in);
    return code;
}
