/* SPDX-License-Identifier: Apache-2.0 */
/* shapes_old.c - the CSV file of the old generator, read as it reads (spec scale-sim.md, sections 7.1 and 7.6).
 *
 * The first line is skipped, whatever it says.  Every other line is name,m,n,k[,strategy], split at commas without
 * a thought for quotes; further fields are ignored, and without HYBRID_CUSTOMIZED the strategy too.  Lines that end the old
 * program with an exception are errors here: blank ones, and those with too few fields or with no number. */
#include "sources/layers/gemm_impl.h"

#include "base/text/number.h"

enum { FIELDS = 6, SHOWN = 60 };

/* One line cut at its commas; `count` goes on beyond FIELDS. */
typedef struct line {
    orr_str field[FIELDS];
    uint32_t column[FIELDS];
    size_t count;
    uint32_t number;
} line;

static bool is_among(char c, const char *chars)
{
    return c != '\0' && strchr(chars, c);
}

static orr_str strip(orr_str s, const char *chars)
{
    while (s.len && is_among(s.ptr[0], chars)) {
        s.ptr++;
        s.len--;
    }
    while (s.len && is_among(s.ptr[s.len - 1], chars))
        s.len--;
    return s;
}

static orr_str trim(orr_str s)
{
    return strip(s, " \t\r");
}

static void cut(orr_str text, line *out)
{
    const char *at = text.ptr, *end = text.ptr + text.len;
    out->count = 0;
    for (;;) {
        const char *comma = at < end ? memchr(at, ',', (size_t)(end - at)) : NULL;
        const char *stop = comma ? comma : end;
        if (out->count < FIELDS) {
            out->field[out->count] = (orr_str){at, (size_t)(stop - at)};
            out->column[out->count] = (uint32_t)(at - text.ptr) + 1;
        }
        out->count++;
        if (!comma)
            return;
        at = comma + 1;
    }
}

static orr_code take_number(
    const orr_shapes *t, const line *l, size_t i, const char *what, uint64_t *out, orr_error *err)
{
    const orr_where w = orr_where_line(t->label, l->number, l->column[i]);
    const orr_str s = trim(l->field[i]);
    int64_t v;
    if (orr_text_i64(s, &v) && v >= 0) {
        *out = (uint64_t)v;
        return ORR_OK;
    }
    return orr_fail(err, ORR_EINPUT, &w, "%s: \"%.*s\" is not a whole number of at least 0", what,
                    (int)(s.len < SHOWN ? s.len : SHOWN), s.ptr);
}

static orr_code check_count(const orr_shapes *t, const line *l, bool needs_policies, orr_error *err)
{
    const orr_where w = orr_where_line(t->label, l->number, 1);
    if (l->count == 1 && trim(l->field[0]).len == 0)
        return orr_fail(err, ORR_EINPUT, &w,
                        "a blank line: the old generator stops here (orrery gemm without --compat "
                        "skips it)");
    if (needs_policies && l->count != 5)
        return orr_fail(err, ORR_EINPUT, &w,
                        "HYBRID_CUSTOMIZED takes 5 fields, name,m,n,k,strategy, but there are %zu",
                        l->count);
    if (l->count < 4)
        return orr_fail(err, ORR_EINPUT, &w,
                        "4 fields were expected, name,m,n,k, but there are %zu", l->count);
    return ORR_OK;
}

static orr_code take_line(orr_shapes *t, const line *l, bool needs_policies, orr_error *err)
{
    static const char *const names[] = {"m", "n", "k"};
    static const orr__size sizes[] = {ORR__M, ORR__N, ORR__K};
    orr__shape s = {.name = l->field[0], .line = l->number};
    orr_code code = check_count(t, l, needs_policies, err);
    for (size_t i = 0; i < 3 && !code; i++) {
        s.column[sizes[i]] = l->column[i + 1];
        code = take_number(t, l, i + 1, names[i], &s.size[sizes[i]], err);
    }
    if (code)
        return code;
    if (needs_policies) {
        const orr_where w = orr_where_line(t->label, l->number, l->column[4]);
        const orr_str word = trim(l->field[4]);
        if (!orr__strategy_find(word, &s.policy))
            return orr_fail(err, ORR_EINPUT, &w, "strategy: \"%.*s\" is not " ORR__STRATEGIES,
                            (int)(word.len < SHOWN ? word.len : SHOWN), word.ptr);
        s.has_policy = true;
    }
    return orr__shapes_add(t, &s, err);
}

orr_code orr__shapes_parse_old(orr_shapes *t, orr_span bytes, bool needs_policies, orr_error *err)
{
    const char *at = bytes.len ? (const char *)bytes.ptr : "", *end = at + bytes.len;
    orr_code code = ORR_OK;
    line l = {.number = 0};
    t->has_policies = needs_policies;
    while (at < end && !code) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        orr_str text = {at, (size_t)((stop ? stop : end) - at)};
        at = stop ? stop + 1 : end;
        l.number += l.number < UINT32_MAX;
        if (text.len && text.ptr[text.len - 1] == '\r')
            text.len--;
        text = strip(text, " ");
        if (l.number == 1)
            continue;
        cut(text, &l);
        code = take_line(t, &l, needs_policies, err);
    }
    return code;
}
