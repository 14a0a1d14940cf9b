/* SPDX-License-Identifier: Apache-2.0 */
/* dot.c - a hand-written DOT reader: a lexer and one function per kind of statement.
 *
 * Texts are pieces of the input, so nothing is copied.  Lines are counted up to each node, and from
 * the start again for an error, of which there is only one.  Cost: linear in the bytes. */
#include "dot.h"

#include "base/short_forms.h"

#include <strings.h>

typedef enum token_kind {
    TOKEN_END,
    TOKEN_NAME,  /* also a number */
    TOKEN_HTML,  /* <...> */
    TOKEN_ARROW, /* -> */
    TOKEN_LINE,  /* -- */
    TOKEN_MARK,  /* one of { } [ ] = ; , : + */
    TOKEN_BAD    /* a character that starts no token, or an unterminated text */
} token_kind;

typedef struct token {
    token_kind kind;
    orr_str text; /* without quotes */
    const char *at;
    bool is_quoted;
} token;

/* How far lines were counted. */
typedef struct cursor {
    const char *at, *line_start;
    uint32_t line;
} cursor;

typedef struct reader {
    orr__dot *d;
    const char *p;
    token next;
    cursor counted;
    orr_error *err;
} reader;

/* ---- places ---- */

static void count_lines(cursor *c, const char *to)
{
    for (; c->at < to; c->at++) {
        if (*c->at == '\n') {
            c->line += c->line < UINT32_MAX;
            c->line_start = c->at + 1;
        }
    }
}

static uint32_t column_of(const cursor *c)
{
    const size_t column = (size_t)(c->at - c->line_start) + 1;
    return column < UINT32_MAX ? (uint32_t)column : UINT32_MAX;
}

orr_where orr__dot_where(const orr__dot *d, const char *at)
{
    cursor c = {d->text, d->text, 1};
    count_lines(&c, at);
    return orr_where_line(d->path, c.line, column_of(&c));
}

static orr_code expected(const reader *r, const char *what)
{
    const orr_where at = orr__dot_where(r->d, r->next.at);
    if (r->next.kind == TOKEN_END)
        return orr_fail(r->err, ORR_EINPUT, &at, "the file ends where %s is expected", what);
    if (r->next.kind == TOKEN_BAD && (*r->next.at == '"' || *r->next.at == '<'))
        return orr_fail(r->err, ORR_EINPUT, &at, "the text that begins here has no end");
    return orr_fail(r->err, ORR_EINPUT, &at, "'%.*s' where %s is expected",
                    ORR_SHOWN(r->next.text, 60), what);
}

/* ---- tokens ---- */

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || (unsigned char)c >= 0x80;
}

/* To the end of the line, or of a C comment; the end of the file ends both. */
static const char *skip_line(const char *p, const char *end)
{
    const char *stop = memchr(p, '\n', (size_t)(end - p));
    return stop ? stop : end;
}

static const char *skip_comment(const char *p, const char *end)
{
    for (const char *q = p + 2; end - q > 1; q++) {
        if (q[0] == '*' && q[1] == '/')
            return q + 2;
    }
    return end;
}

/* White space and comments.  A # starts one only at the beginning of a line: preprocessors leave
 * such lines. */
static const char *skip_blank(const reader *r, const char *p)
{
    const char *end = r->d->end;
    while (p < end) {
        const bool begins_line = p == r->d->text || p[-1] == '\n';
        const bool has_more = end - p > 1;
        if (*p == ' ' || (*p >= '\t' && *p <= '\r'))
            p++;
        else if ((*p == '#' && begins_line) || (has_more && p[0] == '/' && p[1] == '/'))
            p = skip_line(p, end);
        else if (has_more && p[0] == '/' && p[1] == '*')
            p = skip_comment(p, end);
        else
            break;
    }
    return p;
}

/* p is at the opening quote. */
static token take_quoted(const char *p, const char *end)
{
    const char *from = p + 1;
    for (const char *q = from; q < end; q++) {
        if (*q == '\\' && end - q > 1)
            q++;
        else if (*q == '"')
            return (token){TOKEN_NAME, {from, (size_t)(q - from)}, p, true};
    }
    return (token){TOKEN_BAD, {p, 1}, p, true};
}

static token take_html(const char *p, const char *end)
{
    size_t depth = 0;
    for (const char *q = p; q < end; q++) {
        depth += *q == '<';
        depth -= *q == '>';
        if (depth == 0)
            return (token){TOKEN_HTML, {p, (size_t)(q - p) + 1}, p, true};
    }
    return (token){TOKEN_BAD, {p, 1}, p, false};
}

static token take_name(const char *p, const char *end)
{
    const char *q = p + (*p == '-');
    while (q < end && is_name_char(*q))
        q++;
    return (token){TOKEN_NAME, {p, (size_t)(q - p)}, p, false};
}

static token take_token(const char *p, const char *end)
{
    if (p == end)
        return (token){.kind = TOKEN_END, .at = p};
    const char second = end - p > 1 ? p[1] : '\0';
    if (*p == '"')
        return take_quoted(p, end);
    if (*p == '<')
        return take_html(p, end);
    if (*p == '-' && (second == '>' || second == '-'))
        return (token){second == '>' ? TOKEN_ARROW : TOKEN_LINE, {p, 2}, p, false};
    if (is_name_char(*p) || (*p == '-' && is_name_char(second)))
        return take_name(p, end);
    const bool is_mark = *p && strchr("{}[]=;,:+", *p);
    return (token){is_mark ? TOKEN_MARK : TOKEN_BAD, {p, 1}, p, false};
}

static void advance(reader *r)
{
    const char *p = skip_blank(r, r->p);
    r->next = take_token(p, r->d->end);
    r->p = r->next.kind == TOKEN_END ? p
           : r->next.is_quoted && r->next.kind == TOKEN_NAME
               ? r->next.text.ptr + r->next.text.len + 1
               : r->next.text.ptr + r->next.text.len;
}

static bool is_mark(const reader *r, char c)
{
    return r->next.kind == TOKEN_MARK && r->next.text.ptr[0] == c;
}

static bool take_mark(reader *r, char c)
{
    if (!is_mark(r, c))
        return false;
    advance(r);
    return true;
}

/* Keywords are case-insensitive; in quotes they are ordinary names. */
static bool is_word(const token *t, const char *word)
{
    return t->kind == TOKEN_NAME && !t->is_quoted && t->text.len == strlen(word) &&
           strncasecmp(t->text.ptr, word, t->text.len) == 0;
}

static orr_code take_name_token(reader *r, const char *what, token *out)
{
    if (r->next.kind != TOKEN_NAME)
        return expected(r, what);
    *out = r->next;
    advance(r);
    if (out->is_quoted && is_mark(r, '+'))
        return expected(r, "no glued text");
    return ORR_OK;
}

/* ---- statements ---- */

/* The only attribute that matters, `word`, goes to `out`. */
static orr_code read_attribute(reader *r, const char *word, orr_str *out)
{
    token key = {0}, value = {0};
    orr_code code = take_name_token(r, "the name of an attribute or ']'", &key);
    if (code)
        return code;
    if (!take_mark(r, '='))
        return ORR_OK; /* "[bold]" means "[bold=true]" */
    if (r->next.kind == TOKEN_HTML) {
        if (is_word(&key, "label"))
            return expected(r, "a label in quotes");
        advance(r);
        return ORR_OK;
    }
    code = take_name_token(r, "the value of an attribute", &value);
    if (!code && word && is_word(&key, word))
        *out = value.text;
    return code;
}

/* Any number of lists [...]; one of their attributes is kept. */
static orr_code read_attributes(reader *r, const char *word, orr_str *out)
{
    orr_code code = ORR_OK;
    while (!code && take_mark(r, '[')) {
        while (!code && !is_mark(r, ']')) {
            code = read_attribute(r, word, out);
            if (!code && !take_mark(r, ','))
                take_mark(r, ';');
        }
        if (!code)
            advance(r);
    }
    return code;
}

/* Nodes come in file order, so each line is counted once. */
static orr_code add_node(reader *r, const token *name, orr_str label)
{
    orr__dot *d = r->d;
    if (!orr_grow(&d->nodes, &d->node_room, d->node_count + 1))
        return orr_no_memory(r->err);
    count_lines(&r->counted, name->at);
    d->nodes[d->node_count++] =
        (orr__dot_node){name->text, label, r->counted.line, column_of(&r->counted)};
    return ORR_OK;
}

static orr_code add_edge(reader *r, orr_str from, orr_str to)
{
    orr__dot *d = r->d;
    return orr_push(d->edges, d->edge_count, d->edge_room, (orr__dot_edge){.from = from, .to = to})
               ? ORR_OK
               : orr_no_memory(r->err);
}

/* a -> b -> c [...] */
static orr_code read_edges(reader *r, token from)
{
    const size_t first = r->d->edge_count;
    orr_code code = ORR_OK;
    while (!code && r->next.kind == TOKEN_ARROW) {
        token to = {0};
        advance(r);
        code = take_name_token(r, "the name of a node", &to);
        if (!code)
            code = add_edge(r, from.text, to.text);
        from = to;
    }
    orr_str comment = {0};
    if (!code)
        code = read_attributes(r, "comment", &comment);
    for (size_t i = first; i < r->d->edge_count; i++)
        r->d->edges[i].comment = comment;
    return code;
}

static bool is_default(const token *t)
{
    return is_word(t, "node") || is_word(t, "edge") || is_word(t, "graph");
}

static orr_code read_statement(reader *r)
{
    token name = {0};
    if (is_word(&r->next, "subgraph") || is_mark(r, '{'))
        return expected(r, "a node or an edge (subgraphs are not understood)");
    orr_code code = take_name_token(r, "a statement or '}'", &name);
    if (code)
        return code;
    if (r->next.kind == TOKEN_ARROW)
        return read_edges(r, name);
    if (take_mark(r, '='))
        return take_name_token(r, "a value", &name);
    if (r->next.kind == TOKEN_LINE || is_mark(r, ':'))
        return expected(r, "'->'");
    if (is_default(&name))
        return read_attributes(r, NULL, NULL);
    orr_str label = {0};
    code = read_attributes(r, "label", &label);
    return code ? code : add_node(r, &name, label);
}

static orr_code read_graph(reader *r)
{
    orr_code code = ORR_OK;
    token name = {0};
    if (is_word(&r->next, "strict"))
        advance(r);
    if (!is_word(&r->next, "digraph"))
        return expected(r, "'digraph'");
    advance(r);
    if (r->next.kind == TOKEN_NAME && (code = take_name_token(r, "a name", &name)))
        return code;
    if (!take_mark(r, '{'))
        return expected(r, "'{'");
    while (!code && !is_mark(r, '}')) {
        if (!take_mark(r, ';'))
            code = read_statement(r);
    }
    if (code)
        return code;
    advance(r);
    return r->next.kind == TOKEN_END ? ORR_OK : expected(r, "the end of the only graph");
}

orr_code orr__dot_read(orr__dot *d, orr_span bytes, const char *path, orr_error *err)
{
    const char *text = bytes.len ? (const char *)bytes.ptr : "";
    reader r = {.d = d, .p = text, .counted = {text, text, 1}, .err = err};
    *d = (orr__dot){.path = path, .text = text, .end = text + bytes.len};
    advance(&r);
    return read_graph(&r);
}

void orr__dot_fini(orr__dot *d)
{
    orr_free(d->nodes);
    orr_free(d->edges);
    *d = (orr__dot){0};
}
