/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - JSON in and out.
 *
 * READING has two levels.  The outer one walks: documents, then whatever is entered, one item at a
 * time, in file order, with memory for one piece of the file's index only.  The inner one is a
 * tree: an item that is loaded can be looked at in any order, as often as wanted.
 *
 * A small file, as a tree:
 *
 *     orr_json *j;
 *     orr_json_value root, v;
 *     if (orr_json_open(bytes, path, &j, &err) || orr_json_only(j, &root, &err)) ...
 *     if (orr_json_find(root, "links", &v) && orr_json_get_i64(v, &links, &err)) ...   // says where
 *     orr_json_close(j);
 *
 * A large file, {"traceEvents": [{...}, {...}, ...], ...}:
 *
 *     orr_json_next(j, &item, &err); orr_json_enter(j, &err);              // into the document
 *     while ((code = orr_json_next(j, &item, &err)) == ORR_OK) {           // its members
 *         if (!orr_str_is(item.key, "traceEvents")) continue;              // passed over, but checked
 *         if ((code = orr_json_enter(j, &err))) break;
 *         while ((code = orr_json_next(j, &item, &err)) == ORR_OK) {       // the events
 *             if ((code = orr_json_load(j, &event, &err))) break;
 *             for (orr_json_iter it = orr_json_iterate(event); orr_json_next_member(&it, &key, &v);) ...
 *         }
 *     }
 *
 * Several documents after one another, `{..}{..}` or one a line, are the items of depth 0.
 *
 * The bytes are the caller's, are used where they lie (a mapped file is fine: nothing beyond the
 * span is read) and stay until close.  What is accepted is RFC 8259, plus NaN, Infinity and
 * -Infinity, which Python writes; nesting to 512 levels; UTF-8 only, a byte order mark in front is
 * skipped.  Two things are kept as they come: keys in file order, and keys that occur twice.  The
 * first fault ends the reading: every later call gives the same error again.  One reader per
 * thread. */
#ifndef ORR_BASE_JSON_H
#define ORR_BASE_JSON_H

#include "base/memory/buffer.h"
#include "base/text/text.h"

enum { ORR_JSON_DEPTH = 512 };

typedef enum orr_json_type {
    ORR_JSON_NULL,
    ORR_JSON_BOOL,
    ORR_JSON_INT,  /* a number without point and exponent, of any length */
    ORR_JSON_REAL, /* any other number */
    ORR_JSON_STRING,
    ORR_JSON_ARRAY,
    ORR_JSON_OBJECT
} orr_json_type;

const char *orr_json_type_name(orr_json_type type); /* "an integer", "an object": for messages */

typedef struct orr_json orr_json;

/* path is for messages and may be NULL.  On failure *out is NULL. */
orr_code orr_json_open(orr_span bytes, const char *path, orr_json **out, orr_error *err)
    ORR_MUST_CHECK;
void orr_json_close(orr_json *j); /* NULL is fine */

/* The outer level. */
typedef struct orr_json_item {
    orr_str key; /* decoded; empty in an array and for a document; valid until the next call on j */
    orr_json_type type;
    uint32_t depth; /* how many containers are entered around it */
    uint64_t byte;  /* where it begins */
} orr_json_item;

/* The next item of the container last entered (or of the file).  ORR_END: no more, and the
 * container is left, so that the next call continues after it. */
orr_code orr_json_next(orr_json *j, orr_json_item *out, orr_error *err) ORR_MUST_CHECK;
/* Step into the item just given: an array or an object. */
orr_code orr_json_enter(orr_json *j, orr_error *err) ORR_MUST_CHECK;

/* A value of a loaded item; pass it by value. */
typedef struct orr_json_value {
    const struct orr__json_tree *tree;
    uint32_t node;
} orr_json_value;

/* The item just given as a tree; valid until the next call on j. */
orr_code orr_json_load(orr_json *j, orr_json_value *out, orr_error *err) ORR_MUST_CHECK;
/* next and load, for a document: ORR_END after the last one. */
orr_code orr_json_document(orr_json *j, orr_json_value *out, orr_error *err) ORR_MUST_CHECK;
/* The only document of a file; none or a second one is an error.  Valid until close. */
orr_code orr_json_only(orr_json *j, orr_json_value *out, orr_error *err) ORR_MUST_CHECK;

/* The place of any byte of the input, with line and column (counted from the start: for
 * messages). */
orr_where orr_json_place(const orr_json *j, uint64_t byte);

/* The tree.  A getter fails if the value is of another type or out of range, with its place in the
 * error. */
orr_code orr_json_get_bool(orr_json_value v, bool *out, orr_error *err) ORR_MUST_CHECK;
orr_code orr_json_get_i64(orr_json_value v, int64_t *out, orr_error *err) ORR_MUST_CHECK;
orr_code orr_json_get_u64(orr_json_value v, uint64_t *out, orr_error *err) ORR_MUST_CHECK;
orr_code orr_json_get_double(orr_json_value v, double *out, orr_error *err) ORR_MUST_CHECK;
orr_code orr_json_get_str(orr_json_value v, orr_str *out, orr_error *err) ORR_MUST_CHECK;

orr_str orr_json_raw(orr_json_value v);     /* its text, verbatim from the file, quotes included */
uint64_t orr_json_byte(orr_json_value v);   /* where it begins in the input */
orr_where orr_json_where(orr_json_value v); /* the same for messages */
uint32_t orr_json_count(orr_json_value v);  /* elements or members; 0 for a scalar */

/* The member with this key; of several the last, as in Python.  False: none, or v is not an
 * object. */
bool orr_json_find(orr_json_value v, const char *key, orr_json_value *out);

typedef struct orr_json_iter {
    const struct orr__json_tree *tree;
    uint32_t node, end;
    uint32_t keyed; /* 1 in an object, where a key stands before each value */
} orr_json_iter;

static inline orr_json_type orr_json_type_of(orr_json_value v);
static inline orr_json_iter orr_json_iterate(orr_json_value v); /* empty for a scalar */
/* Of an array or an object. */
static inline bool orr_json_next_value(orr_json_iter *it, orr_json_value *out);
/* Of an object; empty for an array. */
static inline bool orr_json_next_member(orr_json_iter *it, orr_str *key_out, orr_json_value *out);

/* WRITING is one pass into a buffer.  Commas, colons and line breaks are the writer's business.
 *
 *     orr_json_writer w;
 *     orr_json_writer_init(&w, &buf, NULL);
 *     orr_json_begin_object(&w);
 *     orr_json_key(&w, "ranks");
 *     orr_json_u64(&w, 8);
 *     orr_json_end_object(&w);
 *
 * Running out of memory is remembered by the buffer.  Bytes that are not UTF-8 come out as U+FFFD,
 * numbers that are not finite as NaN, Infinity, -Infinity (as Python writes them): the writer
 * cannot fail. */
typedef struct orr_json_style {
    uint32_t indent; /* 0: all on one line; else spaces per level, one item per line */
    bool spaced;     /* on one line: ", " and ": " as Python's default, not "," and ":" */
    bool ascii;      /* characters above 0x7F as \uXXXX */
} orr_json_style;

typedef struct orr_json_writer {
    orr_buf *to;
    orr_json_style style;
    uint32_t depth;
    bool has_items; /* the open container has one already */
    bool has_key;   /* a key is written and waits for its value */
    bool has_break; /* see orr_json_line */
    uint32_t break_spaces;
} orr_json_writer;

void orr_json_writer_init(orr_json_writer *w, orr_buf *to, const orr_json_style *style);
/* JSON as the content of an HTML element: "<" occurs in its strings only and is escaped, so no name
 * can end the element. */
void orr_json_in_page(const orr_buf *json, orr_buf *to);
void orr_json_begin_object(orr_json_writer *w);
void orr_json_end_object(orr_json_writer *w);
void orr_json_begin_array(orr_json_writer *w);
void orr_json_end_array(orr_json_writer *w);
void orr_json_key(orr_json_writer *w, const char *key);
void orr_json_key_str(orr_json_writer *w, orr_str key);
void orr_json_text(orr_json_writer *w, const char *s);
void orr_json_str(orr_json_writer *w, orr_str s);
void orr_json_i64(orr_json_writer *w, int64_t v);
void orr_json_u64(orr_json_writer *w, uint64_t v);
void orr_json_double(orr_json_writer *w, double v); /* shortest, in Python's notation */
void orr_json_bool(orr_json_writer *w, bool v);
void orr_json_null(orr_json_writer *w);
void orr_json_raw_text(orr_json_writer *w, orr_str json); /* a value that is JSON already */
/* Starts the next item on a new line, indented by this many spaces: for objects of a few lines,
 * without style.indent. */
void orr_json_line(orr_json_writer *w, uint32_t spaces);
/* A member: its key, then its value. */
void orr_json_put_u64(orr_json_writer *w, const char *key, uint64_t v);
void orr_json_put_double(orr_json_writer *w, const char *key, double v);
void orr_json_put_bool(orr_json_writer *w, const char *key, bool v);
void orr_json_put_text(orr_json_writer *w, const char *key, const char *text); /* NULL: null */
/* A string with its quotes, outside any document. */
void orr_json_quote(orr_buf *to, orr_str s, bool ascii);

/* Private from here on: the shape of a tree, so that walking one is inlined.
 *
 * A node is 8 bytes: where its text begins, counted from the item's first byte, and one number:
 *     [ {      the node behind its closing node          ] }   how many elements it had
 *     string   length between the quotes, or, with the flag, which entry of `decoded` holds it
 *     number   length of its text; the flag marks a real
 *     words    their length
 * A member is two nodes, key then value. */
#define ORR__JSON_FLAG 0x80000000u

typedef struct orr__json_node {
    uint32_t at, info;
} orr__json_node;

typedef struct orr__json_decoded {
    size_t from;
    uint32_t length, raw_length;
} orr__json_decoded;

typedef struct orr__json_tree {
    const char *text; /* the item's first byte */
    const orr__json_node *nodes;
    const orr__json_decoded *decoded;
    const char *scratch;
    const orr_json *reader;
} orr__json_tree;

static inline bool orr__json_is_container(const orr__json_tree *t, uint32_t node)
{
    return (t->text[t->nodes[node].at] | 0x20) == '{'; /* '[' and '{' differ in this bit alone */
}

static inline orr_str orr__json_string(const orr__json_tree *t, uint32_t node)
{
    const orr__json_node n = t->nodes[node];
    if (!(n.info & ORR__JSON_FLAG))
        return (orr_str){.ptr = t->text + n.at + 1, .len = n.info};
    const orr__json_decoded *d = &t->decoded[n.info & ~ORR__JSON_FLAG];
    return (orr_str){.ptr = t->scratch + d->from, .len = d->length};
}

/* The first byte of a value tells its type, except for the two kinds of numbers. */
static inline orr_json_type orr__json_type_by(char first, bool is_real)
{
    switch (first) {
    case '"':
        return ORR_JSON_STRING;
    case '{':
        return ORR_JSON_OBJECT;
    case '[':
        return ORR_JSON_ARRAY;
    case 't':
    case 'f':
        return ORR_JSON_BOOL;
    case 'n':
        return ORR_JSON_NULL;
    default:
        return is_real ? ORR_JSON_REAL : ORR_JSON_INT;
    }
}

static inline orr_json_type orr_json_type_of(orr_json_value v)
{
    const orr__json_node n = v.tree->nodes[v.node];
    return orr__json_type_by(v.tree->text[n.at], n.info & ORR__JSON_FLAG);
}

static inline orr_json_iter orr_json_iterate(orr_json_value v)
{
    const orr__json_node n = v.tree->nodes[v.node];
    const char c = v.tree->text[n.at];
    if ((c | 0x20) != '{')
        return (orr_json_iter){.tree = v.tree, .node = 0, .end = 0, .keyed = 0};
    return (orr_json_iter){
        .tree = v.tree, .node = v.node + 1, .end = n.info - 1, .keyed = c == '{'};
}

static inline bool orr_json_next_value(orr_json_iter *it, orr_json_value *out)
{
    if (it->node >= it->end)
        return false;
    const uint32_t node = it->node + it->keyed;
    *out = (orr_json_value){.tree = it->tree, .node = node};
    it->node = orr__json_is_container(it->tree, node) ? it->tree->nodes[node].info : node + 1;
    return true;
}

static inline bool orr_json_next_member(orr_json_iter *it, orr_str *key_out, orr_json_value *out)
{
    if (it->node >= it->end || !it->keyed)
        return false;
    *key_out = orr__json_string(it->tree, it->node);
    return orr_json_next_value(it, out);
}

/* ---- one long list ----
 *
 * Walk a large file that is one long list: {"KEY": [item, ...], other members}, or the bare list.
 *
 * Chrome traces ("traceEvents") and host traces ("nodes") have this form.  One item is in memory at
 * a time. */

/* A function that returns ORR_END stops the walk; the rest of the file is ignored. */
typedef struct orr_json_list {
    const char *key;
    const char *what; /* for messages: "a device trace" */
    bool takes_bare;  /* a bare list is accepted, too */
    bool takes_more;  /* other documents may follow; they are ignored */
    /* A list starts; ORR_END: skip it.  NULL: nothing to do. */
    orr_code (*begin)(void *context, const orr_json_item *list);
    orr_code (*item)(void *context, orr_json_value item);
    /* Any other member, to be loaded or skipped; also KEY if it is not a list.  NULL: none
     * matters. */
    orr_code (*member)(void *context, const orr_json_item *member);
} orr_json_list;

/* The only document of j.  The list may be missing: `begin` can record that it was found. */
orr_code orr_json_walk_list(orr_json *j, const orr_json_list *how, void *context, orr_error *err)
    ORR_MUST_CHECK;

/* ---- several members ----
 *
 * Several members of a JSON object in one call.
 *
 *     orr_json_put_fields(w, ORR_T("name", p->name), ORR_U("ranks", p->ranks), ORR_D("share", p->share));
 *
 * All values are evaluated before the first is written: two of them must not share a buffer. */

typedef struct orr_json_field {
    const char *key;
    char kind; /* U, I, D, F, B, T as the macros below; N: null */
    union {
        uint64_t u;
        int64_t i;
        double d;
        bool b;
        const char *text;
    } is;
    const char *format; /* of an F */
} orr_json_field;

#define ORR_U(name, value) ((orr_json_field){.key = name, .kind = 'U', .is.u = (value)})
#define ORR_I(name, value) ((orr_json_field){.key = name, .kind = 'I', .is.i = (value)})
#define ORR_D(name, value) ((orr_json_field){.key = name, .kind = 'D', .is.d = (value)})
#define ORR_B(name, value) ((orr_json_field){.key = name, .kind = 'B', .is.b = (value)})
#define ORR_T(name, value) \
    ((orr_json_field){.key = name, .kind = 'T', .is.text = (value)}) /* NULL: null */
/* null if unknown. */
#define ORR_KU(name, is_known, value) \
    ((orr_json_field){.key = name, .kind = (is_known) ? 'U' : 'N', .is.u = (value)})
#define ORR_KD(name, is_known, value) \
    ((orr_json_field){.key = name, .kind = (is_known) ? 'D' : 'N', .is.d = (value)})
/* A number by a printf format for a double. */
#define ORR_F(name, how, value) \
    ((orr_json_field){.key = name, .kind = 'F', .is.d = (value), .format = how})

/* The members of the open object; and a whole object of them, as an item of a list. */
#define orr_json_put_fields(w, ...) orr_json_put_list(w, (const orr_json_field[]){__VA_ARGS__, {0}})
#define orr_json_put_row(w, ...) orr_json_put_item(w, (const orr_json_field[]){__VA_ARGS__, {0}})

void orr_json_put_list(orr_json_writer *w, const orr_json_field *fields);
void orr_json_put_item(orr_json_writer *w, const orr_json_field *fields);

/* "key": { or "key": [; the caller ends it. */
void orr_json_put_object(orr_json_writer *w, const char *key);
void orr_json_put_array(orr_json_writer *w, const char *key);
/* null if unknown. */
void orr_json_put_known(orr_json_writer *w, const char *key, bool is_known, uint64_t v);
void orr_json_put_known_double(orr_json_writer *w, const char *key, bool is_known, double v);

#endif
