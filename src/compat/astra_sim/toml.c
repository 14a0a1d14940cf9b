/* SPDX-License-Identifier: Apache-2.0 */
/* toml.c - a TOML file as a tree: one pass over the bytes, values by toml_scalar.c.
 *
 * Every value is a node with its byte offset; lines and columns are counted only when somebody asks.  A table's
 * members are a list in file order, and one map over (table, key) finds any of them, so a long file costs no
 * more than its length.  What a table may still take is in its state: TOML lets [a.b] come before [a], but
 * nothing may be said twice.
 *
 * Cost: O(bytes).  Depth is bounded, because values are read by recursion. */
#include "toml_impl.h"

#include "base/memory/hash.h"
#include "base/text/text.h"

#include <string.h>

enum { MOST_BYTES = 1 << 20, MOST_DEPTH = 64, SHOWN = 60 };

/* How a table or array came to be, which decides what may be added to it. */
enum {
    IMPLIED, /* named on the way to another: [a] in [a.b] */
    DOTTED,  /* by a dotted key, so by no header */
    STATED,  /* has its own header */
    CLOSED   /* written in place: { } or [ ] */
};

typedef struct node {
    uint32_t at, key_at; /* bytes where it and its key begin */
    uint32_t parent, next, first, last, count;
    uint8_t type, state;
    orr_str key;
    orr_toml_scalar value;
} node;

struct orr_toml {
    char *path;
    orr_span bytes;
    orr_arena *arena;
    node *nodes;
    size_t count, room;
    orr_map *members; /* hash of (table, key) -> node; the first of those with this hash */
};

typedef struct reader {
    orr_toml *t;
    orr_toml_source in;
    uint32_t current; /* the table that keys go to */
    unsigned depth;
} reader;

/* ---- errors ---- */

static orr_where place(const orr_toml *t, size_t at)
{
    uint32_t line = 1, column = 1;
    for (size_t i = 0; i < at && i < t->bytes.len; i++) {
        const uint8_t c = t->bytes.ptr[i];
        if (c == '\n') {
            line++;
            column = 1;
        } else if ((c & 0xC0) != 0x80) {
            column++; /* characters, not bytes */
        }
    }
    return orr_where_line(t->path, line, column);
}

/* What the scalars of toml_scalar.c or we have to say, with its place. */
static orr_code refuse(const reader *r, size_t at, const char *words)
{
    const orr_where w = place(r->t, at);
    return orr_fail(r->in.err, ORR_EINPUT, &w, "%s", words);
}

static orr_code refuse_key(const reader *r, size_t at, orr_str key, const char *words)
{
    const orr_where w = place(r->t, at);
    return orr_fail(r->in.err, ORR_EINPUT, &w, "\"%.*s\" %s",
                    (int)(key.len < SHOWN ? key.len : SHOWN), key.ptr, words);
}

static orr_code told(const reader *r, const char *problem)
{
    if (!problem)
        return ORR_OK;
    return r->in.no_memory ? orr_no_memory(r->in.err) : refuse(r, r->in.problem_at, problem);
}

/* ---- nodes ---- */

static orr_code add_node(reader *r, uint32_t parent, node n, uint32_t *out)
{
    orr_toml *t = r->t;
    if (!orr_grow(&t->nodes, &t->room, t->count + 1))
        return orr_no_memory(r->in.err);
    const uint32_t i = *out = (uint32_t)t->count++;
    n.parent = parent;
    t->nodes[i] = n;
    node *p = &t->nodes[parent];
    if (i == 0)
        return ORR_OK; /* the root is in nothing */
    if (p->count++ == 0)
        p->first = i;
    else
        t->nodes[p->last].next = i;
    p->last = i;
    return ORR_OK;
}

static uint64_t hash_of(uint32_t table, orr_str key)
{
    return orr_hash_bytes(key.ptr, key.len, table);
}

static bool is_member(const orr_toml *t, uint32_t i, uint32_t table, orr_str key)
{
    return i && t->nodes[i].parent == table && orr_str_equal(t->nodes[i].key, key);
}

/* 0: not there. */
static uint32_t find_member(const orr_toml *t, uint32_t table, orr_str key)
{
    uint32_t i = orr_map_find(t->members, hash_of(table, key), 0);
    if (i == 0 || is_member(t, i, table, key))
        return i;
    for (i = t->nodes[table].first; i && !is_member(t, i, table, key);)
        i = t->nodes[i].next;
    return i;
}

static orr_code add_member(reader *r, uint32_t table, node n, uint32_t *out)
{
    const uint64_t hash = hash_of(table, n.key);
    const orr_code code = add_node(r, table, n, out);
    if (code || orr_map_find(r->t->members, hash, 0))
        return code;
    return orr_map_put(r->t->members, hash, *out, NULL) ? ORR_OK : orr_no_memory(r->in.err);
}

/* ---- blanks ---- */

static bool at_end(const reader *r)
{
    return r->in.at == r->in.len;
}

static uint8_t peek(const reader *r)
{
    return at_end(r) ? 0 : r->in.ptr[r->in.at];
}

static bool accept(reader *r, uint8_t c)
{
    if (at_end(r) || r->in.ptr[r->in.at] != c)
        return false;
    r->in.at++;
    return true;
}

static void skip_blanks(reader *r)
{
    while (peek(r) == ' ' || peek(r) == '\t')
        r->in.at++;
}

static void skip_comment(reader *r)
{
    if (peek(r) == '#')
        while (!at_end(r) && peek(r) != '\n')
            r->in.at++;
}

static bool accept_line_end(reader *r)
{
    if (peek(r) == '\r' && r->in.at + 1 < r->in.len && r->in.ptr[r->in.at + 1] == '\n')
        r->in.at++;
    return accept(r, '\n');
}

/* Blanks, comments and line ends, between the items of an array. */
static void skip_lines(reader *r)
{
    do {
        skip_blanks(r);
        skip_comment(r);
    } while (accept_line_end(r));
}

static orr_code finish_line(reader *r)
{
    skip_blanks(r);
    skip_comment(r);
    if (at_end(r) || accept_line_end(r))
        return ORR_OK;
    return refuse(r, r->in.at, "the end of the line was expected");
}

/* ---- keys ---- */

static bool is_bare(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

/* One part of a key. */
static orr_code read_key(reader *r, orr_str *out, size_t *at)
{
    *at = r->in.at;
    if (peek(r) == '"' || peek(r) == '\'')
        return told(r, orr__toml_line_string(&r->in, out));
    while (is_bare(peek(r)))
        r->in.at++;
    *out = (orr_str){(const char *)r->in.ptr + *at, r->in.at - *at};
    return out->len ? ORR_OK : refuse(r, *at, "a key was expected");
}

/* Is there one more part?  Then the dot is passed. */
static bool accept_dot(reader *r)
{
    skip_blanks(r);
    if (!accept(r, '.'))
        return false;
    skip_blanks(r);
    return true;
}

/* ---- values ---- */

static orr_code read_value(reader *r, uint32_t parent, orr_str key, size_t key_at);

static orr_code read_array(reader *r, uint32_t array)
{
    r->in.at++;
    for (;;) {
        skip_lines(r);
        if (accept(r, ']'))
            return ORR_OK;
        const orr_code code = read_value(r, array, (orr_str){NULL, 0}, 0);
        if (code)
            return code;
        skip_lines(r);
        if (accept(r, ','))
            continue;
        return accept(r, ']') ? ORR_OK : refuse(r, r->in.at, "\",\" or \"]\" was expected");
    }
}

static orr_code read_pair(reader *r, uint32_t table);

static orr_code read_inline_table(reader *r, uint32_t table)
{
    r->in.at++;
    skip_blanks(r);
    if (accept(r, '}'))
        return ORR_OK;
    for (;;) {
        skip_blanks(r);
        const orr_code code = read_pair(r, table);
        if (code)
            return code;
        skip_blanks(r);
        if (accept(r, ','))
            continue;
        return accept(r, '}') ? ORR_OK : refuse(r, r->in.at, "\",\" or \"}\" was expected");
    }
}

/* While it is read it takes dotted keys, as any table does; then it is closed, with all that is in it. */
static orr_code read_inside(reader *r, uint32_t i, bool is_array)
{
    if (++r->depth > MOST_DEPTH)
        return refuse(r, r->in.at, "values are nested more than 64 deep");
    const orr_code code = is_array ? read_array(r, i) : read_inline_table(r, i);
    r->depth--;
    for (size_t k = i; k < r->t->count; k++)
        r->t->nodes[k].state = CLOSED;
    return code;
}

/* key.ptr NULL: an item of an array. */
static orr_code read_value(reader *r, uint32_t parent, orr_str key, size_t key_at)
{
    node n = {.at = (uint32_t)r->in.at, .key = key, .key_at = (uint32_t)key_at};
    uint32_t i;
    const bool is_array = peek(r) == '[', is_table = peek(r) == '{';
    if (is_array || is_table) {
        n.type = is_array ? ORR_TOML_ARRAY : ORR_TOML_TABLE;
        n.state = STATED;
    } else {
        const orr_code code = told(r, orr__toml_scalar(&r->in, &n.value));
        if (code)
            return code;
        n.type = n.value.type;
    }
    const orr_code code = key.ptr ? add_member(r, parent, n, &i) : add_node(r, parent, n, &i);
    return code || !(is_array || is_table) ? code : read_inside(r, i, is_array);
}

static node table_of(orr_toml_type type, int state, orr_str key, size_t at)
{
    return (node){.at = (uint32_t)at,
                  .key_at = (uint32_t)at,
                  .type = (uint8_t)type,
                  .state = (uint8_t)state,
                  .key = key};
}

/* The table in `table` that a dotted key goes through; made if need be. */
static orr_code step_into(reader *r, uint32_t table, orr_str key, size_t at, uint32_t *out)
{
    *out = find_member(r->t, table, key);
    if (!*out)
        return add_member(r, table, table_of(ORR_TOML_TABLE, DOTTED, key, at), out);
    const node *n = &r->t->nodes[*out];
    if (n->type == ORR_TOML_TABLE && n->state == DOTTED)
        return ORR_OK;
    return refuse_key(r, at, key, "is there already, and dotted keys cannot add to it");
}

/* key = value, a.b = value */
static orr_code read_pair(reader *r, uint32_t table)
{
    orr_str key;
    size_t at;
    orr_code code = read_key(r, &key, &at);
    while (!code && accept_dot(r)) {
        code = step_into(r, table, key, at, &table);
        if (!code)
            code = read_key(r, &key, &at);
    }
    if (code)
        return code;
    if (find_member(r->t, table, key))
        return refuse_key(r, at, key, "is a duplicate key");
    if (!accept(r, '='))
        return refuse(r, r->in.at, "\"=\" was expected");
    skip_blanks(r);
    return read_value(r, table, key, at);
}

/* ---- headers ---- */

/* The table that [key. goes through: that of the last [[key]], if it is one of several. */
static orr_code walk_into(reader *r, uint32_t table, orr_str key, size_t at, uint32_t *out)
{
    *out = find_member(r->t, table, key);
    if (!*out)
        return add_member(r, table, table_of(ORR_TOML_TABLE, IMPLIED, key, at), out);
    const node *n = &r->t->nodes[*out];
    if (n->type == ORR_TOML_ARRAY && n->state != CLOSED) {
        *out = n->last;
        return ORR_OK;
    }
    return n->type == ORR_TOML_TABLE && n->state != CLOSED
               ? ORR_OK
               : refuse_key(r, at, key,
                            "is there already, and is not a table that can be added to");
}

/* [key] */
static orr_code begin_table(reader *r, uint32_t table, orr_str key, size_t at)
{
    const uint32_t i = find_member(r->t, table, key);
    if (!i)
        return add_member(r, table, table_of(ORR_TOML_TABLE, STATED, key, at), &r->current);
    if (r->t->nodes[i].type != ORR_TOML_TABLE || r->t->nodes[i].state != IMPLIED)
        return refuse_key(r, at, key, "is there already");
    r->t->nodes[i].state = STATED;
    r->t->nodes[i].at = (uint32_t)at;
    r->current = i;
    return ORR_OK;
}

/* [[key]] */
static orr_code begin_item(reader *r, uint32_t table, orr_str key, size_t at)
{
    uint32_t i = find_member(r->t, table, key);
    const node item = table_of(ORR_TOML_TABLE, STATED, (orr_str){NULL, 0}, at);
    orr_code code = ORR_OK;
    if (i && (r->t->nodes[i].type != ORR_TOML_ARRAY || r->t->nodes[i].state == CLOSED))
        return refuse_key(r, at, key, "is there already, and not with [[ ]]");
    if (!i)
        code = add_member(r, table, table_of(ORR_TOML_ARRAY, STATED, key, at), &i);
    return code ? code : add_node(r, i, item, &r->current);
}

static orr_code read_header(reader *r)
{
    uint32_t table = 0;
    orr_str key;
    size_t at;
    r->in.at++;
    const bool is_item = accept(r, '[');
    skip_blanks(r);
    orr_code code = read_key(r, &key, &at);
    while (!code && accept_dot(r)) {
        code = walk_into(r, table, key, at, &table);
        if (!code)
            code = read_key(r, &key, &at);
    }
    if (code)
        return code;
    if (!accept(r, ']') || (is_item && !accept(r, ']')))
        return refuse(r, r->in.at, is_item ? "\"]]\" was expected" : "\"]\" was expected");
    code = is_item ? begin_item(r, table, key, at) : begin_table(r, table, key, at);
    return code ? code : finish_line(r);
}

/* ---- the whole ---- */

/* No bytes that are not text: then nobody later has to think of them. */
static orr_code check_text(const reader *r)
{
    const orr_span b = r->t->bytes;
    for (size_t i = 0, n; i < b.len; i += n) {
        const uint8_t c = b.ptr[i];
        n = orr_utf8_length(b.ptr + i, b.len - i);
        if (n == 0)
            return refuse(r, i, "not valid UTF-8");
        const bool is_line_end = c == '\n' || (c == '\r' && i + 1 < b.len && b.ptr[i + 1] == '\n');
        if ((c < ' ' && c != '\t' && !is_line_end) || c == 0x7F)
            return refuse(r, i, "a control character");
    }
    return ORR_OK;
}

static orr_code read_all(reader *r)
{
    static const char mark[] = "\xEF\xBB\xBF"; /* some editors begin a file with it */
    uint32_t root;
    orr_code code = check_text(r);
    if (!code)
        code = add_node(r, 0, (node){.type = ORR_TOML_TABLE, .state = STATED}, &root);
    if (r->in.len >= 3 && memcmp(r->in.ptr, mark, 3) == 0)
        r->in.at = 3;
    for (;;) {
        skip_lines(r);
        if (code || at_end(r))
            return code;
        if (peek(r) == '[') {
            code = read_header(r);
        } else {
            code = read_pair(r, r->current);
            if (!code)
                code = finish_line(r);
        }
    }
}

orr_code orr_toml_open(orr_span bytes, const char *path, orr_toml **out, orr_error *err)
{
    const orr_where w = orr_where_byte(path, ORR_NO_BYTE);
    *out = NULL;
    if (bytes.len > MOST_BYTES)
        return orr_fail(err, ORR_EINPUT, &w, "larger than 1 MiB: not a configuration file");
    orr_toml *t = orr_alloc(1, sizeof *t);
    if (!t)
        return orr_no_memory(err);
    t->bytes = bytes;
    t->arena = orr_arena_create();
    t->members = orr_map_create(0);
    if (t->arena)
        t->path = orr_arena_text(t->arena, orr_str_of(path));
    reader r = {.t = t, .in = {.ptr = bytes.ptr, .len = bytes.len, .arena = t->arena, .err = err}};
    const orr_code code = t->path && t->members ? read_all(&r) : orr_no_memory(err);
    if (code)
        orr_toml_close(t);
    else
        *out = t;
    return code;
}

void orr_toml_close(orr_toml *t)
{
    if (!t)
        return;
    orr_map_destroy(t->members);
    orr_arena_destroy(t->arena);
    orr_free(t->nodes);
    orr_free(t);
}

/* ---- answers ---- */

static const node *node_of(orr_toml_value v)
{
    return &v.doc->nodes[v.node];
}

orr_toml_value orr_toml_root(const orr_toml *t)
{
    return (orr_toml_value){t, 0};
}

orr_toml_type orr_toml_type_of(orr_toml_value v)
{
    return (orr_toml_type)node_of(v)->type;
}

const char *orr_toml_type_name(orr_toml_type type)
{
    static const char *const names[] = {
        [ORR_TOML_STRING] = "a text", [ORR_TOML_INT] = "a whole number",
        [ORR_TOML_REAL] = "a number", [ORR_TOML_BOOL] = "true or false",
        [ORR_TOML_DATE] = "a date",   [ORR_TOML_ARRAY] = "a list",
        [ORR_TOML_TABLE] = "a table"};
    return names[type];
}

orr_where orr_toml_where(orr_toml_value v)
{
    return place(v.doc, node_of(v)->at);
}

orr_where orr_toml_key_where(orr_toml_value v)
{
    return place(v.doc, node_of(v)->key_at);
}

orr_str orr_toml_text(orr_toml_value v)
{
    const node *n = node_of(v);
    const bool is_text = n->type == ORR_TOML_STRING || n->type == ORR_TOML_DATE;
    return is_text ? n->value.text : (orr_str){"", 0};
}

int64_t orr_toml_int(orr_toml_value v)
{
    return node_of(v)->type == ORR_TOML_INT ? node_of(v)->value.number : 0;
}

double orr_toml_real(orr_toml_value v)
{
    return node_of(v)->type == ORR_TOML_REAL ? node_of(v)->value.real : 0;
}

bool orr_toml_bool(orr_toml_value v)
{
    return node_of(v)->type == ORR_TOML_BOOL && node_of(v)->value.number;
}

uint32_t orr_toml_count(orr_toml_value v)
{
    return node_of(v)->count;
}

bool orr_toml_first(orr_toml_value v, orr_toml_value *out)
{
    *out = (orr_toml_value){v.doc, node_of(v)->first};
    return out->node != 0;
}

bool orr_toml_next(orr_toml_value *v)
{
    v->node = node_of(*v)->next;
    return v->node != 0;
}

orr_str orr_toml_key(orr_toml_value v)
{
    const orr_str key = node_of(v)->key;
    return key.ptr ? key : (orr_str){"", 0};
}

bool orr_toml_find(orr_toml_value table, const char *key, orr_toml_value *out)
{
    const uint32_t i = find_member(table.doc, table.node, orr_str_of(key));
    if (i)
        *out = (orr_toml_value){table.doc, i};
    return i != 0;
}
