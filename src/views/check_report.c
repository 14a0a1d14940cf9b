/* SPDX-License-Identifier: Apache-2.0 */
/* check_report.c - a report as text and as JSON.
 *
 * Text is one line per finding, place first, as compilers print them, so that editors can jump to
 * it:
 *
 *     step.0.et: byte 18234: error: rank 0: node 71 "add": data dependency on node 9, which ... [missing-parent]
 */
#include "check/check_impl.h"

#include "base/formats/json.h"

static orr_code hand_over(const orr_check_report *r, orr_buf *b, orr_str *out, orr_error *err)
{
    const char *text =
        b->failed ? NULL
                  : orr_arena_text(chk_store_of(r)->arena, (orr_str){(char *)b->ptr, b->len});
    *out = (orr_str){text ? text : "", text ? b->len : 0};
    orr_buf_fini(b);
    return text ? ORR_OK : orr_no_memory(err);
}

static orr_code take_style(const orr_check_style *given,
                           orr_check_style *out,
                           orr_str *text,
                           orr_error *err)
{
    *text = (orr_str){"", 0};
    const orr_code code = ORR__TAKE_OPTIONS(out, given, orr_check_style, err);
    if (!code && !out->input)
        out->input = "";
    if (!code && !out->output)
        out->output = "";
    return code;
}

static const char *severity_name(orr_severity severity)
{
    static const char *const names[] = {"note", "warning", "error"};
    return names[severity];
}

/* ---- text ---- */

typedef struct printer {
    orr_buf *b;
    const orr_check_style *style;
    const orr_check_report *r;
    bool is_fix; /* the findings are repairs */
} printer;

static void put_colored(const printer *p, const char *color, const char *text)
{
    if (p->style->is_colored)
        orr_buf_text(p->b, color);
    orr_buf_text(p->b, text);
    if (p->style->is_colored)
        orr_buf_text(p->b, "\033[0m");
}

static void put_severity(const printer *p, orr_check_kind kind)
{
    static const char *const colors[] = {"\033[36m", "\033[33m", "\033[31m"};
    const orr_severity severity = orr_check_kind_severity(kind);
    if (p->is_fix)
        put_colored(p, "\033[32m", "fixed");
    else
        put_colored(p, colors[severity], severity_name(severity));
    orr_buf_text(p->b, ": ");
}

static void put_plural(orr_buf *b, uint64_t n, const char *one)
{
    chk_put_count(b, n);
    orr_buf_byte(b, ' ');
    orr_buf_text(b, one);
    if (n != 1)
        orr_buf_byte(b, 's');
}

static void put_rank(const printer *p, const orr_finding *f)
{
    if (f->rank == ORR_NO_NODE || p->r->rank_count == 1)
        return;
    orr_buf_print(p->b, "rank %u", f->rank);
    if (f->rank_count > 1) {
        orr_buf_text(p->b, " (and ");
        put_plural(p->b, f->rank_count - 1, "equal rank");
        orr_buf_byte(p->b, ')');
    }
    orr_buf_text(p->b, ": ");
}

/* A path may come from anybody. */
static void put_path(orr_buf *b, const char *path)
{
    const orr_str all = orr_str_of(path);
    for (size_t i = 0; i < all.len; i++)
        orr_buf_byte(b, orr_is_control(all, i) ? '?' : (uint8_t)all.ptr[i]);
}

static void put_place(orr_buf *b, const orr_where *w)
{
    if (!w->path[0])
        return;
    put_path(b, w->path);
    if (w->line)
        orr_buf_print(b, ":%u:%u", w->line, w->column);
    else if (w->byte != ORR_NO_BYTE)
        orr_buf_print(b, ": byte %llu", (unsigned long long)w->byte);
    orr_buf_text(b, ": ");
}

static void put_finding(const printer *p, const orr_finding *f)
{
    orr_buf *b = p->b;
    put_place(b, &f->where);
    put_severity(p, f->kind);
    put_rank(p, f);
    if (f->has_node) {
        orr_buf_print(b, "node %llu ", (unsigned long long)f->node);
        chk_put_name(b, orr_str_of(f->name));
        orr_buf_text(b, ": ");
    }
    orr_buf_text(b, f->text);
    orr_buf_print(b, " [%s]\n", orr_check_kind_name(f->kind));
}

static void put_rest(const printer *p, orr_check_kind kind, uint64_t shown)
{
    if (p->r->count[kind] <= shown)
        return;
    put_severity(p, kind);
    orr_buf_text(p->b, "and ");
    chk_put_count(p->b, p->r->count[kind] - shown);
    orr_buf_print(p->b, " more [%s]\n", orr_check_kind_name(kind));
}

static void put_findings(const printer *p)
{
    size_t at = 0;
    for (int kind = 0; kind < ORR_CHECK_KIND_COUNT; kind++) {
        const bool is_hidden =
            p->style->is_brief && orr_check_kind_severity((orr_check_kind)kind) == ORR_NOTE;
        const size_t first = at;
        for (; at < p->r->finding_count && p->r->findings[at].kind == (orr_check_kind)kind; at++)
            if (!is_hidden)
                put_finding(p, &p->r->findings[at]);
        if (!is_hidden)
            put_rest(p, (orr_check_kind)kind, at - first);
    }
}

static void put_changes(const printer *p)
{
    const orr_check_report *changes = p->style->changes;
    const uint64_t all = changes->errors + changes->warnings + changes->notes;
    put_findings(&(printer){.b = p->b, .style = p->style, .r = changes, .is_fix = true});
    if (p->style->is_brief)
        return;
    put_path(p->b, p->style->output);
    orr_buf_text(p->b, ": written, with ");
    put_plural(p->b, all, "repair");
    orr_buf_byte(p->b, '\n');
}

static void put_summary(const printer *p)
{
    const orr_check_report *r = p->r;
    orr_buf *b = p->b;
    put_path(b, p->style->changes ? p->style->output : p->style->input);
    orr_buf_text(b, ": ");
    put_plural(b, r->rank_count, "rank");
    if (r->rank_count > 1) {
        orr_buf_text(b, " (");
        chk_put_count(b, r->class_count);
        orr_buf_text(b, " distinct)");
    }
    orr_buf_text(b, ", ");
    put_plural(b, r->node_count, "node");
    orr_buf_text(b, ": ");
    if (!r->errors && !r->warnings) {
        put_colored(p, "\033[32m", "no problems found");
    } else {
        put_plural(b, r->errors, "error");
        orr_buf_text(b, ", ");
        put_plural(b, r->warnings, "warning");
        if (p->style->is_strict && !r->errors)
            orr_buf_text(b, " (which count as errors)");
    }
    orr_buf_byte(b, '\n');
}

orr_code orr_check_text(const orr_check_report *r,
                        const orr_check_style *style,
                        orr_str *out,
                        orr_error *err)
{
    orr_buf b = {0};
    orr_check_style own;
    const orr_code code = take_style(style, &own, out, err);
    if (code)
        return code;
    const printer p = {.b = &b, .style = &own, .r = r};
    if (own.changes)
        put_changes(&p);
    put_findings(&p);
    if (!own.is_brief)
        put_summary(&p);
    return hand_over(r, &b, out, err);
}

/* ---- JSON ---- */

static void json_finding(orr_json_writer *w, const orr_finding *f)
{
    orr_json_begin_object(w);
    orr_json_put_text(w, "severity", severity_name(orr_check_kind_severity(f->kind)));
    orr_json_put_text(w, "kind", orr_check_kind_name(f->kind));
    if (f->where.path[0])
        orr_json_put_text(w, "path", f->where.path);
    if (f->where.byte != ORR_NO_BYTE && !f->where.line)
        orr_json_put_u64(w, "byte", f->where.byte);
    if (f->where.line) {
        orr_json_put_u64(w, "line", f->where.line);
        orr_json_put_u64(w, "column", f->where.column);
    }
    if (f->rank != ORR_NO_NODE) {
        orr_json_put_u64(w, "rank", f->rank);
        orr_json_put_u64(w, "rank_count", f->rank_count);
    }
    if (f->has_node) {
        orr_json_put_u64(w, "node_id", f->node);
        orr_json_put_text(w, "node_name", f->name);
    }
    orr_json_put_text(w, "text", f->text);
    orr_json_end_object(w);
}

static void json_findings(orr_json_writer *w, const orr_check_report *r, const char *key)
{
    orr_json_key(w, "counts");
    orr_json_begin_object(w);
    for (int kind = 0; kind < ORR_CHECK_KIND_COUNT; kind++)
        if (r->count[kind])
            orr_json_put_u64(w, orr_check_kind_name((orr_check_kind)kind), r->count[kind]);
    orr_json_end_object(w);
    orr_json_key(w, key);
    orr_json_begin_array(w);
    for (size_t i = 0; i < r->finding_count; i++)
        json_finding(w, &r->findings[i]);
    orr_json_end_array(w);
}

static void json_fix(orr_json_writer *w, const orr_check_style *style)
{
    orr_json_key(w, "fix");
    orr_json_begin_object(w);
    orr_json_put_text(w, "output", style->output);
    json_findings(w, style->changes, "changes");
    orr_json_end_object(w);
}

static void json_provenance(orr_json_writer *w, const orr_check_style *style)
{
    orr_json_key(w, "provenance");
    orr_json_begin_object(w);
    if (style->program)
        orr_json_put_text(w, "program", style->program);
    orr_json_put_text(w, "input", style->input);
    orr_json_put_bool(w, "is_strict", style->is_strict);
    orr_json_end_object(w);
}

orr_code orr_check_json(const orr_check_report *r,
                        const orr_check_style *style,
                        orr_str *out,
                        orr_error *err)
{
    orr_buf b = {0};
    orr_json_writer w;
    orr_check_style own;
    const orr_code code = take_style(style, &own, out, err);
    if (code)
        return code;
    orr_json_writer_init(&w, &b, &(orr_json_style){.indent = 2});
    orr_json_begin_object(&w);
    orr_json_put_text(&w, "format", "orrery-check");
    orr_json_put_u64(&w, "version", 1);
    json_provenance(&w, &own);
    orr_json_put_u64(&w, "ranks", r->rank_count);
    orr_json_put_u64(&w, "ranks_distinct", r->class_count);
    orr_json_put_u64(&w, "nodes", r->node_count);
    orr_json_put_bool(&w, "is_clean", r->errors == 0 && !(own.is_strict && r->warnings));
    orr_json_put_u64(&w, "errors", r->errors);
    orr_json_put_u64(&w, "warnings", r->warnings);
    orr_json_put_u64(&w, "notes", r->notes);
    json_findings(&w, r, "findings");
    if (own.changes)
        json_fix(&w, &own);
    orr_json_end_object(&w);
    orr_buf_byte(&b, '\n');
    return hand_over(r, &b, out, err);
}
