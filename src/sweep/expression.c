/* SPDX-License-Identifier: Apache-2.0 */
/* expression.c - recursive descent into an array of nodes, evaluated from the last one down.
 *
 * Why Python's keywords and precedence: users of sweeps know Python, and `and` needs no quoting in
 * YAML.  Nodes refer only to earlier nodes, so evaluation is a loop, not a recursion; both branches
 * of `if` are evaluated, which has no side effects.  Depth of parentheses is bounded. */
#include "expression.h"

#include "base/text/number.h"
#include "base/text/text.h"

#include <math.h>
#include <stdlib.h>

typedef enum node_kind {
    N_CONSTANT,
    N_NAME,
    N_NEGATE,
    N_NOT,
    N_ADD,
    N_SUBTRACT,
    N_MULTIPLY,
    N_DIVIDE,
    N_FLOOR_DIVIDE,
    N_REMAINDER,
    N_POWER,
    N_EQUAL,
    N_UNEQUAL,
    N_LESS,
    N_LESS_EQUAL,
    N_MORE,
    N_MORE_EQUAL,
    N_AND,
    N_OR,
    N_CHOOSE, /* a if c else b */
    N_MIN,
    N_MAX,
    N_ABS,
    N_FLOOR,
    N_CEIL,
    N_ROUND,
    N_SQRT,
    N_LOG2,
    N_LOG10
} node_kind;

enum { DEEPEST = 100, MOST_NODES = 10000 };

typedef struct expr_node {
    node_kind kind;
    uint32_t a, b, c; /* earlier nodes */
    uint32_t slot;    /* of a name, once bound */
    swp_value value;  /* of a constant; the text of a name */
} expr_node;

struct swp_expr {
    char *text;
    orr_where where;
    expr_node *nodes;
    size_t count, room;
    swp_value *scratch;
};

typedef struct expr_reader {
    swp_expr *e;
    const char *at, *end;
    unsigned depth;
    orr_error *err;
} expr_reader;

static const struct {
    const char *name;
    node_kind kind;
    unsigned arguments;
} functions[] = {{"min", N_MIN, 2},     {"max", N_MAX, 2},   {"abs", N_ABS, 1},
                 {"floor", N_FLOOR, 1}, {"ceil", N_CEIL, 1}, {"round", N_ROUND, 1},
                 {"sqrt", N_SQRT, 1},   {"log2", N_LOG2, 1}, {"log10", N_LOG10, 1}};

/* ---- reading ---- */

static orr_where place_of(const swp_expr *e, const char *at)
{
    orr_where w = e->where;
    if (w.line)
        w.column += (uint32_t)(at - e->text);
    return w;
}

static orr_code refuse_at(expr_reader *r, const char *at, const char *what)
{
    const orr_where w = place_of(r->e, at);
    const int column = (int)(at - r->e->text) + 1;
    const char *near = at < r->end ? at : NULL;
    if (near)
        return orr_fail(r->err, ORR_EINPUT, w.path[0] ? &w : NULL,
                        "'%s': %s at '%.12s' (character %d)", r->e->text, what, near, column);
    return orr_fail(r->err, ORR_EINPUT, w.path[0] ? &w : NULL, "'%s': %s at its end", r->e->text,
                    what);
}

static void skip_space(expr_reader *r)
{
    while (r->at < r->end && orr_is_space(*r->at))
        r->at++;
}

static bool is_name_char(char c)
{
    return orr_is_letter(c) || orr_is_digit(c) || c == '_' || c == '.';
}

/* A word or an operator, if it is next. */
static bool takes(expr_reader *r, const char *token)
{
    skip_space(r);
    const size_t n = strlen(token);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, token, n) != 0)
        return false;
    if (orr_is_letter(token[0]) && r->at + n < r->end && is_name_char(r->at[n]))
        return false;
    r->at += n;
    return true;
}

static orr_code add_node(expr_reader *r, expr_node n, uint32_t *out)
{
    swp_expr *e = r->e;
    if (e->count == MOST_NODES)
        return refuse_at(r, r->at, "too long");
    if (!orr_grow(&e->nodes, &e->room, e->count + 1))
        return orr_no_memory(r->err);
    e->nodes[e->count] = n;
    *out = (uint32_t)e->count++;
    return ORR_OK;
}

static orr_code read_choice(expr_reader *r, uint32_t *out);

static orr_code read_number(expr_reader *r, uint32_t *out)
{
    const char *from = r->at;
    while (r->at < r->end && (orr_is_digit(*r->at) || *r->at == '.'))
        r->at++;
    if (r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
        r->at++;
        if (r->at < r->end && (*r->at == '+' || *r->at == '-'))
            r->at++;
        while (r->at < r->end && orr_is_digit(*r->at))
            r->at++;
    }
    double v;
    const orr_str text = {.ptr = from, .len = (size_t)(r->at - from)};
    if (!orr_text_double(text, &v) || (r->at < r->end && is_name_char(*r->at)))
        return refuse_at(r, from, "not a number");
    return add_node(r, (expr_node){.kind = N_CONSTANT, .value = {SWP_NUMBER, v, text}}, out);
}

static orr_code read_text(expr_reader *r, uint32_t *out)
{
    const char quote = *r->at, *from = r->at + 1;
    const char *to = memchr(from, quote, (size_t)(r->end - from));
    if (!to)
        return refuse_at(r, r->at, "unterminated text");
    r->at = to + 1;
    const orr_str text = {.ptr = from, .len = (size_t)(to - from)};
    return add_node(r, (expr_node){.kind = N_CONSTANT, .value = {SWP_TEXT, 0, text}}, out);
}

static orr_code read_call(expr_reader *r, size_t function, const char *from, uint32_t *out)
{
    expr_node n = {.kind = functions[function].kind};
    orr_code code = read_choice(r, &n.a);
    if (!code && functions[function].arguments == 2) {
        bool has_more = false;
        while (!code && takes(r, ",")) { /* min(a, b, c) is min(min(a, b), c) */
            if (has_more)
                code = add_node(r, n, &n.a);
            if (!code)
                code = read_choice(r, &n.b);
            has_more = true;
        }
        if (!code && !has_more)
            return refuse_at(r, from, "needs two arguments");
    }
    if (!code && !takes(r, ")"))
        return refuse_at(r, r->at, "expected ')'");
    return code ? code : add_node(r, n, out);
}

static orr_code read_name(expr_reader *r, uint32_t *out)
{
    const char *from = r->at;
    while (r->at < r->end && is_name_char(*r->at))
        r->at++;
    const orr_str name = {.ptr = from, .len = (size_t)(r->at - from)};
    static const char *const words[] = {"and", "or", "not", "if", "else"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (orr_str_is(name, words[i]))
            return refuse_at(r, from, "expected a value");
    if (orr_str_is(name, "true") || orr_str_is(name, "false"))
        return add_node(
            r,
            (expr_node){.kind = N_CONSTANT, .value = {SWP_NUMBER, orr_str_is(name, "true"), name}},
            out);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (orr_str_is(name, functions[i].name) && takes(r, "("))
            return read_call(r, i, from, out);
    return add_node(r, (expr_node){.kind = N_NAME, .value = {.text = name}}, out);
}

static orr_code read_primary(expr_reader *r, uint32_t *out)
{
    skip_space(r);
    if (r->at == r->end)
        return refuse_at(r, r->at, "expected a value");
    if (orr_is_digit(*r->at) || *r->at == '.')
        return read_number(r, out);
    if (*r->at == '\'' || *r->at == '"')
        return read_text(r, out);
    if (orr_is_letter(*r->at) || *r->at == '_')
        return read_name(r, out);
    if (!takes(r, "("))
        return refuse_at(r, r->at, "expected a value");
    orr_code code = read_choice(r, out);
    if (!code && !takes(r, ")"))
        code = refuse_at(r, r->at, "expected ')'");
    return code;
}

static orr_code read_unary(expr_reader *r, uint32_t *out)
{
    if (++r->depth > DEEPEST)
        return refuse_at(r, r->at, "nested too deeply");
    orr_code code;
    if (takes(r, "-")) {
        expr_node n = {.kind = N_NEGATE};
        code = read_unary(r, &n.a);
        if (!code)
            code = add_node(r, n, out);
    } else {
        code = read_primary(r, out);
        if (!code && takes(r, "**")) {
            expr_node n = {.kind = N_POWER, .a = *out};
            code = read_unary(r, &n.b);
            if (!code)
                code = add_node(r, n, out);
        }
    }
    r->depth--;
    return code;
}

typedef struct expr_operator {
    const char *token;
    node_kind kind;
} expr_operator;

/* Longer tokens before their prefixes. */
static const expr_operator products[] = {
    {"//", N_FLOOR_DIVIDE}, {"*", N_MULTIPLY}, {"/", N_DIVIDE}, {"%", N_REMAINDER}, {0}};
static const expr_operator sums[] = {{"+", N_ADD}, {"-", N_SUBTRACT}, {0}};
static const expr_operator comparisons[] = {{"==", N_EQUAL},
                                            {"!=", N_UNEQUAL},
                                            {"<=", N_LESS_EQUAL},
                                            {">=", N_MORE_EQUAL},
                                            {"<", N_LESS},
                                            {">", N_MORE},
                                            {0}};
static const expr_operator ands[] = {{"and", N_AND}, {"&&", N_AND}, {0}};
static const expr_operator ors[] = {{"or", N_OR}, {"||", N_OR}, {0}};

typedef orr_code (*expr_level)(expr_reader *r, uint32_t *out);

static orr_code read_level(expr_reader *r,
                           expr_level below,
                           const expr_operator *which,
                           uint32_t *out)
{
    orr_code code = below(r, out);
    while (!code) {
        const expr_operator *o = which;
        while (o->token && !takes(r, o->token))
            o++;
        if (!o->token)
            break;
        expr_node n = {.kind = o->kind, .a = *out};
        code = below(r, &n.b);
        if (!code)
            code = add_node(r, n, out);
    }
    return code;
}

static orr_code read_product(expr_reader *r, uint32_t *out)
{
    return read_level(r, read_unary, products, out);
}

static orr_code read_sum(expr_reader *r, uint32_t *out)
{
    return read_level(r, read_product, sums, out);
}

/* a < b < c is (a < b) and (b < c). */
static orr_code read_comparison(expr_reader *r, uint32_t *out)
{
    uint32_t left, all = 0;
    bool is_chain = false;
    orr_code code = read_sum(r, &left);
    *out = left;
    while (!code) {
        const expr_operator *o = comparisons;
        while (o->token && !takes(r, o->token))
            o++;
        if (!o->token)
            break;
        expr_node n = {.kind = o->kind, .a = left};
        code = read_sum(r, &n.b);
        left = n.b;
        if (!code)
            code = add_node(r, n, out);
        if (!code && is_chain)
            code = add_node(r, (expr_node){.kind = N_AND, .a = all, .b = *out}, out);
        all = *out;
        is_chain = true;
    }
    return code;
}

static orr_code read_not(expr_reader *r, uint32_t *out)
{
    if (++r->depth > DEEPEST)
        return refuse_at(r, r->at, "nested too deeply");
    skip_space(r);
    const bool is_mark = r->at + 1 < r->end && r->at[0] == '!' && r->at[1] != '=';
    orr_code code;
    if (takes(r, "not") || (is_mark && takes(r, "!"))) {
        expr_node n = {.kind = N_NOT};
        code = read_not(r, &n.a);
        if (!code)
            code = add_node(r, n, out);
    } else {
        code = read_comparison(r, out);
    }
    r->depth--;
    return code;
}

static orr_code read_and(expr_reader *r, uint32_t *out)
{
    return read_level(r, read_not, ands, out);
}

static orr_code read_or(expr_reader *r, uint32_t *out)
{
    return read_level(r, read_and, ors, out);
}

static orr_code read_choice(expr_reader *r, uint32_t *out)
{
    if (++r->depth > DEEPEST)
        return refuse_at(r, r->at, "nested too deeply");
    orr_code code = read_or(r, out);
    if (!code && takes(r, "if")) {
        expr_node n = {.kind = N_CHOOSE, .a = *out};
        code = read_or(r, &n.b);
        if (!code && !takes(r, "else"))
            code = refuse_at(r, r->at, "expected 'else'");
        if (!code)
            code = read_choice(r, &n.c);
        if (!code)
            code = add_node(r, n, out);
    }
    r->depth--;
    return code;
}

static orr_code parse_all(swp_expr *e, size_t len, orr_error *err)
{
    uint32_t root;
    expr_reader r = {.e = e, .at = e->text, .end = e->text + len, .err = err};
    orr_code code = read_choice(&r, &root);
    skip_space(&r);
    if (!code && r.at < r.end)
        code = refuse_at(&r, r.at, "expected an operator");
    if (!code && root + 1 != e->count) /* the last node is the answer */
        code = orr_fail(err, ORR_EBUG, NULL, "an expression without an end");
    if (!code && !(e->scratch = orr_alloc(e->count, sizeof *e->scratch)))
        code = orr_no_memory(err);
    return code;
}

orr_code swp_expr_parse(orr_str text, const orr_where *where, swp_expr **out, orr_error *err)
{
    *out = NULL;
    swp_expr *e = orr_alloc(1, sizeof *e);
    if (!e || !(e->text = orr_alloc(text.len + 1, 1))) {
        orr_free(e);
        return orr_no_memory(err);
    }
    memcpy(e->text, text.ptr, text.len);
    if (where)
        e->where = *where;
    const orr_code code = parse_all(e, text.len, err);
    if (code) {
        swp_expr_free(e);
        return code;
    }
    *out = e;
    return ORR_OK;
}

void swp_expr_free(swp_expr *e)
{
    if (!e)
        return;
    orr_free(e->text);
    orr_free(e->nodes);
    orr_free(e->scratch);
    orr_free(e);
}

orr_str swp_expr_text(const swp_expr *e)
{
    return orr_str_of(e->text);
}

orr_where swp_expr_where(const swp_expr *e)
{
    return e->where;
}

/* ---- names ---- */

bool swp_same_name(orr_str a, const char *b)
{
    if (strlen(b) != a.len)
        return false;
    for (size_t i = 0; i < a.len; i++) {
        const char x = a.ptr[i] == '-' ? '_' : a.ptr[i], y = b[i] == '-' ? '_' : b[i];
        if (x != y)
            return false;
    }
    return true;
}

orr_code swp_expr_bind(swp_expr *e, const char *const *names, orr_error *err)
{
    for (size_t i = 0; i < e->count; i++) {
        expr_node *n = &e->nodes[i];
        if (n->kind != N_NAME)
            continue;
        uint32_t k = 0;
        while (names[k] && !swp_same_name(n->value.text, names[k]))
            k++;
        n->slot = k;
        if (names[k])
            continue;
        const orr_where w = place_of(e, n->value.text.ptr);
        const char *near = orr_nearest(n->value.text, names);
        return orr_fail(err, ORR_EINPUT, w.path[0] ? &w : NULL, "'%s': unknown name '%.*s'%s%s%s",
                        e->text, (int)n->value.text.len, n->value.text.ptr,
                        near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    return ORR_OK;
}

orr_code swp_expr_bind_open(
    swp_expr *e, orr_str *names, uint32_t most, uint32_t *count, orr_error *err)
{
    *count = 0;
    for (size_t i = 0; i < e->count; i++) {
        expr_node *n = &e->nodes[i];
        if (n->kind != N_NAME)
            continue;
        uint32_t k = 0;
        while (k < *count && !orr_str_equal(n->value.text, names[k]))
            k++;
        n->slot = k;
        if (k < *count)
            continue;
        if (k == most) {
            const orr_where w = place_of(e, n->value.text.ptr);
            return orr_fail(err, ORR_EINPUT, w.path[0] ? &w : NULL, "'%s': more than %u names",
                            e->text, most);
        }
        names[(*count)++] = n->value.text;
    }
    return ORR_OK;
}

bool swp_expr_uses(const swp_expr *e, uint32_t place)
{
    for (size_t i = 0; i < e->count; i++)
        if (e->nodes[i].kind == N_NAME && e->nodes[i].slot == place)
            return true;
    return false;
}

/* ---- evaluation ---- */

bool swp_is_true(swp_value v)
{
    return v.kind == SWP_NUMBER && v.number != 0;
}

static swp_value number_of(double v)
{
    return (swp_value){.kind = isfinite(v) ? SWP_NUMBER : SWP_NONE, .number = v};
}

swp_value swp_value_of(orr_str text)
{
    swp_value v = {.kind = SWP_TEXT, .text = text};
    if (orr_text_double(text, &v.number) && isfinite(v.number))
        v.kind = SWP_NUMBER;
    else if (orr_str_is(text, "true") || orr_str_is(text, "false")) {
        v.kind = SWP_NUMBER;
        v.number = orr_str_is(text, "true");
    }
    return v;
}

static bool same_text(swp_value a, swp_value b)
{
    return orr_str_equal(a.text, b.text);
}

static swp_value compare(node_kind kind, swp_value a, swp_value b)
{
    if (a.kind == SWP_NONE || b.kind == SWP_NONE)
        return (swp_value){.kind = SWP_NONE};
    if (a.kind != b.kind || a.kind == SWP_TEXT) {
        if (kind != N_EQUAL && kind != N_UNEQUAL)
            return (swp_value){.kind = SWP_NONE};
        const bool is_equal = a.kind == b.kind && same_text(a, b);
        return number_of(is_equal == (kind == N_EQUAL));
    }
    const double x = a.number, y = b.number;
    const bool is_yes = kind == N_EQUAL        ? x == y
                        : kind == N_UNEQUAL    ? x != y
                        : kind == N_LESS       ? x < y
                        : kind == N_LESS_EQUAL ? x <= y
                        : kind == N_MORE       ? x > y
                                               : x >= y;
    return number_of(is_yes);
}

static double combine(node_kind kind, double x, double y)
{
    switch (kind) {
    case N_ADD:
        return x + y;
    case N_SUBTRACT:
        return x - y;
    case N_MULTIPLY:
        return x * y;
    case N_DIVIDE:
        return x / y;
    case N_FLOOR_DIVIDE:
        return floor(x / y);
    case N_REMAINDER: /* the sign of the divisor, as in Python */
        return x - y * floor(x / y);
    case N_POWER:
        return pow(x, y);
    case N_MIN:
        return x < y ? x : y;
    default:
        return x > y ? x : y;
    }
}

static double apply(node_kind kind, double x)
{
    switch (kind) {
    case N_NEGATE:
        return -x;
    case N_ABS:
        return fabs(x);
    case N_FLOOR:
        return floor(x);
    case N_CEIL:
        return ceil(x);
    case N_ROUND:
        return nearbyint(x);
    case N_SQRT:
        return sqrt(x);
    case N_LOG2:
        return log2(x);
    default:
        return log10(x);
    }
}

/* `and` and `or` short-circuit on missing values. */
static swp_value join(node_kind kind, swp_value a, swp_value b)
{
    const bool decides = kind == N_OR;
    if ((a.kind == SWP_NUMBER && swp_is_true(a) == decides) ||
        (b.kind == SWP_NUMBER && swp_is_true(b) == decides))
        return number_of(decides);
    if (a.kind != SWP_NUMBER || b.kind != SWP_NUMBER)
        return (swp_value){.kind = SWP_NONE};
    return number_of(!decides);
}

static swp_value evaluate_node(const expr_node *n, const swp_value *done, const swp_value *values)
{
    const swp_value a = done[n->a], b = done[n->b];
    switch (n->kind) {
    case N_CONSTANT:
        return n->value;
    case N_NAME:
        return values[n->slot];
    case N_AND:
    case N_OR:
        return join(n->kind, a, b);
    case N_CHOOSE:
        return b.kind != SWP_NUMBER ? (swp_value){.kind = SWP_NONE}
               : swp_is_true(b)     ? a
                                    : done[n->c];
    case N_NOT:
        return a.kind == SWP_NUMBER ? number_of(!swp_is_true(a)) : (swp_value){.kind = SWP_NONE};
    case N_EQUAL:
    case N_UNEQUAL:
    case N_LESS:
    case N_LESS_EQUAL:
    case N_MORE:
    case N_MORE_EQUAL:
        return compare(n->kind, a, b);
    case N_NEGATE:
    case N_ABS:
    case N_FLOOR:
    case N_CEIL:
    case N_ROUND:
    case N_SQRT:
    case N_LOG2:
    case N_LOG10:
        return a.kind == SWP_NUMBER ? number_of(apply(n->kind, a.number))
                                    : (swp_value){.kind = SWP_NONE};
    default:
        return a.kind == SWP_NUMBER && b.kind == SWP_NUMBER
                   ? number_of(combine(n->kind, a.number, b.number))
                   : (swp_value){.kind = SWP_NONE};
    }
}

swp_value swp_expr_evaluate(const swp_expr *e, const swp_value *values)
{
    for (size_t i = 0; i < e->count; i++)
        e->scratch[i] = evaluate_node(&e->nodes[i], e->scratch, values);
    return e->scratch[e->count - 1];
}
