/* SPDX-License-Identifier: Apache-2.0 */
/* ini.c - sections and keys in file order; a look-up walks them.
 *
 * These files have tens of keys, so lists are enough; MOST_KEYS bounds the quadratic search for
 * duplicates. A multi-line value is one piece of the input, line ends included. */
#include "ini.h"

#include "base/short_forms.h"
#include "base/text/text.h"

enum { MOST_KEYS = 4096, SHOWN = 60 };

typedef struct entry {
    orr_str key; /* empty: the start of a section */
    orr_str section;
    orr_ini_value value;
} entry;

struct orr_ini {
    const char *path;
    entry *entries;
    size_t count, room;
};

/* One line, without its end. */
typedef struct line_of_text {
    const char *begin, *word, *end; /* word: the first byte that is no blank */
    uint32_t number;
} line_of_text;

static char lower(char ch)
{
    return ch >= 'A' && ch <= 'Z' ? (char)(ch - 'A' + 'a') : ch;
}

static bool same_key(orr_str a, orr_str b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (lower(a.ptr[i]) != lower(b.ptr[i]))
            return false;
    return true;
}

static bool is_blank(char ch)
{
    return ch == ' ' || ch == '\t' || ch == '\r';
}

static orr_str trim(const char *from, const char *to)
{
    while (from < to && is_blank(*from))
        from++;
    while (from < to && is_blank(to[-1]))
        to--;
    return (orr_str){from, (size_t)(to - from)};
}

static orr_where place(const orr_ini *ini, const line_of_text *l, const char *p)
{
    const size_t n = (size_t)(p - l->begin);
    return orr_where_line(ini->path, l->number, n < UINT32_MAX ? (uint32_t)n + 1 : UINT32_MAX);
}

static orr_code add_entry(orr_ini *ini, const entry *e, const orr_where *w, orr_error *err)
{
    const orr_str shown = e->key.len ? e->key : e->section;
    for (size_t i = 0; i < ini->count; i++) {
        const entry *o = &ini->entries[i];
        if (!orr_str_equal(o->section, e->section) || !same_key(o->key, e->key))
            continue;
        return orr_fail(err, ORR_EINPUT, w, "duplicate %s \"%.*s\"", e->key.len ? "key" : "section",
                        ORR_SHOWN(shown, SHOWN));
    }
    if (ini->count == MOST_KEYS)
        return orr_fail(err, ORR_EINPUT, w, "more than %d keys", MOST_KEYS);
    return orr_push(ini->entries, ini->count, ini->room, *e) ? ORR_OK : orr_no_memory(err);
}

static orr_code take_section(orr_ini *ini, const line_of_text *l, orr_str *section, orr_error *err)
{
    const orr_where w = place(ini, l, l->word);
    const char *close = memchr(l->word, ']', (size_t)(l->end - l->word));
    if (!close || close == l->word + 1)
        return orr_fail(err, ORR_EINPUT, &w, "expected the name of a section in [ ]");
    *section = (orr_str){l->word + 1, (size_t)(close - l->word - 1)};
    return add_entry(ini, &(entry){.section = *section}, &w, err);
}

static orr_code take_key(orr_ini *ini, const line_of_text *l, orr_str section, orr_error *err)
{
    const orr_where w = place(ini, l, l->word);
    const char *sign = l->word;
    if (section.len == 0)
        return orr_fail(err, ORR_EINPUT, &w, "expected a [section] before the first key");
    while (sign < l->end && *sign != ':' && *sign != '=')
        sign++;
    if (sign == l->end || sign == l->word)
        return orr_fail(err, ORR_EINPUT, &w, "expected \"key: value\"");
    entry e = {.key = trim(l->word, sign), .section = section};
    e.value.text = trim(sign + 1, l->end);
    e.value.line = l->number;
    e.value.column = place(ini, l, e.value.text.ptr).column;
    return add_entry(ini, &e, &w, err);
}

/* A continuation line of the last key's value. */
static void extend(orr_ini *ini, const line_of_text *l)
{
    orr_ini_value *v = &ini->entries[ini->count - 1].value;
    const orr_str more = trim(l->word, l->end);
    if (v->text.len == 0)
        *v = (orr_ini_value){more, l->number, (uint32_t)(l->word - l->begin) + 1};
    else
        v->text.len = (size_t)(more.ptr + more.len - v->text.ptr);
}

static bool next_line(const char **at, const char *end, line_of_text *l)
{
    if (*at == end)
        return false;
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));
    l->begin = *at;
    l->end = stop ? stop : end;
    *at = stop ? stop + 1 : end;
    l->word = l->begin;
    while (l->word < l->end && is_blank(*l->word))
        l->word++;
    l->number += l->number < UINT32_MAX;
    return true;
}

static orr_code read_lines(orr_ini *ini, orr_span bytes, orr_error *err)
{
    const char *at = bytes.len ? (const char *)bytes.ptr : "", *end = at + bytes.len;
    line_of_text l = {0};
    orr_str section = {NULL, 0};
    size_t indent = SIZE_MAX; /* of the key that could be continued; SIZE_MAX: none */
    orr_code code = ORR_OK;
    if (bytes.len >= 3 && memcmp(at, "\xEF\xBB\xBF", 3) == 0)
        at += 3;
    while (!code && next_line(&at, end, &l)) {
        const size_t in = (size_t)(l.word - l.begin);
        if (l.word == l.end || *l.word == '#' || *l.word == ';')
            continue;
        if (indent < in) {
            extend(ini, &l);
            continue;
        }
        const bool is_section = *l.word == '[';
        code = is_section ? take_section(ini, &l, &section, err) : take_key(ini, &l, section, err);
        indent = is_section ? SIZE_MAX : in;
    }
    return code;
}

orr_code orr_ini_open(orr_span bytes, const char *path, orr_ini **out, orr_error *err)
{
    *out = NULL;
    orr_ini *ini = orr_alloc(1, sizeof *ini);
    if (!ini)
        return orr_no_memory(err);
    ini->path = path;
    const orr_code code = read_lines(ini, bytes, err);
    if (code)
        orr_ini_close(ini);
    else
        *out = ini;
    return code;
}

void orr_ini_close(orr_ini *ini)
{
    if (!ini)
        return;
    orr_free(ini->entries);
    orr_free(ini);
}

bool orr_ini_find(const orr_ini *ini, const char *section, const char *key, orr_ini_value *out)
{
    const orr_str wanted = orr_str_of(key);
    for (size_t i = 0; i < ini->count; i++) {
        const entry *e = &ini->entries[i];
        if (!e->key.len || !orr_str_is(e->section, section) || !same_key(e->key, wanted))
            continue;
        *out = e->value;
        return true;
    }
    return false;
}

orr_code orr_ini_need(
    const orr_ini *ini, const char *section, const char *key, orr_ini_value *out, orr_error *err)
{
    if (orr_ini_find(ini, section, key, out))
        return ORR_OK;
    for (size_t i = 0; i < ini->count; i++) { /* a typing error? */
        const entry *e = &ini->entries[i];
        if (e->key.len && orr_str_is(e->section, section) &&
            orr_nearest(e->key, (const char *const[]){key, NULL}))
            return orr_fail(err, ORR_EINPUT, ORR_AT(orr_ini_where(ini, &e->value)),
                            "unknown key \"%.*s\"; did you mean \"%s\"?", ORR_SHOWN(e->key, SHOWN),
                            key);
    }
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_byte(ini->path, ORR_NO_BYTE)),
                    "the key \"%s\" is missing in section [%s]", key, section);
}

orr_where orr_ini_where(const orr_ini *ini, const orr_ini_value *v)
{
    return orr_where_line(ini->path, v->line, v->column);
}

orr_ini_value orr_ini_first(orr_ini_value v)
{
    const char *comma = v.text.len ? memchr(v.text.ptr, ',', v.text.len) : NULL;
    if (comma)
        v.text = trim(v.text.ptr, comma);
    return v;
}
