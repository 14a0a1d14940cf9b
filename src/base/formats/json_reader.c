/* SPDX-License-Identifier: Apache-2.0 */
/* json_reader.c - reading JSON: from tokens to items and trees.
 *
 *     bytes  ->  pieces of 256 KiB  ->  token offsets  ->  items, or nodes of a tree
 *                (here)                 (json_index.cc)    (here)
 *
 * Why our own grammar on top of a library's index: it keeps the offset of every value, validates
 * skipped values as strictly as those read, and is the same for both levels. The index is not
 * trusted: offsets come from it, but the bytes there are checked again, and no read goes past the
 * input. Cost: one pass; memory is 4 bytes per byte of a piece, and 8 per node of the loaded
 * item. */
#include "base/short_forms.h"
#include "json.h"
#include "json_impl.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* ==== the input, piece by piece, as tokens.
 *
 * Why pieces: the index of a whole file takes as much memory as the file.  A piece may end
 * anywhere: if it ends in a string it is extended to the string's end, if it ends in a number the
 * number goes to the next piece.  So every piece starts outside a string, which is all the index
 * needs to know. */

/* SMALL_TEXT: at this size simdjson has saved as much time as loading it took. */
enum { LINE_SEARCH = 4096, SMALL_TEXT = 64 * 1024 };

/* Fill j->error; at is the byte to blame. */
static orr_code fail(orr_json *j, uint64_t at, const char *fmt, ...)
{
    char words[sizeof j->error.message];
    va_list args;
    va_start(args, fmt);
    vsnprintf(words, sizeof words, fmt, args);
    va_end(args);
    const orr_where where = orr_json_place(j, at);
    return orr_fail(&j->error, ORR_EINPUT, &where, "%s", words);
}

/* The token there, for "expected ..., found ...". */
static const char *found(const orr_json *j, uint64_t at, char out[32])
{
    if (at >= j->len)
        snprintf(out, 32, "the end of the input");
    else if (j->text[at] > 0x20 && j->text[at] < 0x7F)
        snprintf(out, 32, "'%c'", j->text[at]);
    else
        snprintf(out, 32, "byte 0x%02x", (unsigned)(uint8_t)j->text[at]);
    return out;
}

static orr_code expected(orr_json *j, uint64_t at, const char *what)
{
    char there[32];
    return fail(j, at, "expected %s, found %s", what, found(j, at, there));
}

/* The index tells that a piece is invalid but not where: check byte by byte. */
static orr_code locate_fault(orr_json *j, uint64_t end)
{
    bool in_string = false;
    uint64_t opened = 0;
    for (uint64_t i = j->piece; i < end; i++) {
        const uint8_t c = (uint8_t)j->text[i];
        if (c >= 0x80) {
            const size_t n = orr_utf8_length((const uint8_t *)j->text + i, j->len - i);
            if (n == 0)
                return fail(j, i, "byte 0x%02x is not valid UTF-8", c);
            if (!in_string)
                return expected(j, i, "a value");
            i += n - 1;
        } else if (c == '"') {
            in_string = !in_string;
            opened = i;
        } else if (!in_string) {
            if (c == '\\')
                return expected(j, i, "a value");
        } else if (c < 0x20) {
            return fail(j, i, "control character 0x%02x in a string; it must be written as \\u%04x",
                        c, c);
        } else if (c == '\\') {
            i++;
        }
    }
    return fail(j, in_string ? opened : j->piece,
                in_string ? "this string has no end" : "this is not JSON");
}

/* Preferably ends a piece at a line end, where nothing is split. */
static uint64_t guess_end(const orr_json *j)
{
    if (j->len - j->piece <= j->piece_size)
        return j->len;
    const uint64_t end = j->piece + j->piece_size;
    const size_t back = j->piece_size < LINE_SEARCH ? j->piece_size : LINE_SEARCH;
    const char *line = memrchr(j->text + end - back, '\n', back);
    return line ? (uint64_t)(line + 1 - j->text) : end;
}

/* The byte after the string that contains byte `at`. */
static uint64_t behind_string(const orr_json *j, uint64_t at)
{
    while (at < j->len) {
        const char *quote = memchr(j->text + at, '"', j->len - at);
        if (!quote)
            break;
        const char *first = quote;
        while (first > j->text + j->piece && first[-1] == '\\')
            first--;
        at = (uint64_t)(quote + 1 - j->text);
        if ((quote - first) % 2 == 0)
            return at;
    }
    return j->len;
}

/* Does the last token of this piece continue past its end? */
static bool cuts_last_token(const orr_json *j, uint64_t end)
{
    if (end == j->len || j->count == 0)
        return false;
    const char first = j->text[j->piece + j->tokens[j->count - 1]];
    return first != '"' && !orr__json_delimits(first) && !orr__json_delimits(j->text[end - 1]) &&
           !orr__json_delimits(j->text[end]);
}

static bool make_index_room(orr_json *j, uint64_t size)
{
    if (size <= j->index_room)
        return true;
    orr__json_index *wider = orr__json_index_create(size, j->len > SMALL_TEXT);
    if (!wider)
        return false;
    orr__json_index_destroy(j->index);
    j->index = wider;
    j->index_room = size;
    return true;
}

/* Index the piece that begins at j->piece and set its end. */
static orr_code index_piece(orr_json *j)
{
    uint64_t end = guess_end(j);
    for (;;) {
        const uint64_t size = end - j->piece;
        if (size > UINT32_MAX)
            return fail(j, j->piece, "a string or number of more than 4 GiB");
        if (!make_index_room(j, size))
            return orr__json_no_memory(j);
        const orr_span piece = {.ptr = (const uint8_t *)j->text + j->piece, .len = size};
        const orr__json_found answer = orr__json_index_run(j->index, piece, &j->tokens, &j->count);
        if (answer == ORR__JSON_IN_STRING && end < j->len) {
            end = behind_string(j, end);
            continue;
        }
        if (answer != ORR__JSON_TOKENS)
            return locate_fault(j, end);
        if (!cuts_last_token(j, end))
            break;
        if (j->count > 1) {
            end = j->piece + j->tokens[--j->count];
            break;
        }
        end = j->len - end < size ? j->len : end + size;
    }
    j->next = 0;
    j->piece_end = end;
    return ORR_OK;
}

/* The next piece that has a token; ORR_END after the last one. */
static orr_code next_piece(orr_json *j)
{
    do {
        j->next = j->count = 0;
        j->piece = j->piece_end;
        if (j->piece == j->len)
            return ORR_END;
        const orr_code code = index_piece(j);
        if (code)
            return code;
    } while (j->count == 0);
    return ORR_OK;
}

enum { PIECE = 256 * 1024 };

/* Where the next token starts, without consuming it. */
static inline orr_code peek(orr_json *j, uint64_t *at)
{
    if (__builtin_expect(j->next == j->count, 0)) {
        const orr_code code = next_piece(j);
        *at = j->len;
        if (code)
            return code;
    }
    *at = j->piece + j->tokens[j->next];
    return ORR_OK;
}

static orr_code ends_inside(orr_json *j)
{
    const orr__json_frame *f = &j->stack[j->depth - 1];
    const orr_where from = orr_json_place(j, f->at);
    return fail(j, j->len,
                "the input ends inside the %s that begins at line %" PRIu32 ", column %" PRIu32,
                f->closer == '}' ? "object" : "array", from.line, from.column);
}

/* The same inside a container, where the input must not end. */
static inline orr_code peek_inside(orr_json *j, uint64_t *at)
{
    const orr_code code = peek(j, at);
    return __builtin_expect(code == ORR_END, 0) ? ends_inside(j) : code;
}

/* ---- scalars ---- */

/* The closing quote of the string whose first byte is at p, or NULL; *escaped: there is a
 * backslash. Eight bytes at a time: a byte that equals a quote becomes zero under xor, and a zero
 * byte is the only one from which the subtraction borrows its top bit while that bit was clear
 * before. */
static inline const char *string_end(const char *p, const char *end, bool *escaped)
{
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    *escaped = false;
    while (p < end) {
        if (end - p >= 8) {
            uint64_t w;
            memcpy(&w, p, 8);
            const uint64_t quote = w ^ ones * '"', slash = w ^ ones * '\\';
            const uint64_t hit = ((quote - ones) & ~quote) | ((slash - ones) & ~slash);
            if (!(hit & tops)) {
                p += 8;
                continue;
            }
            if (ORR__LITTLE_ENDIAN)
                p += __builtin_ctzll(hit & tops) / 8;
        }
        if (*p == '"')
            return p;
        if (*p == '\\') {
            *escaped = true;
            p++;
        }
        p++;
    }
    return NULL;
}

static inline const char *skip_digits(const char *p, const char *end)
{
    while (p < end && (uint8_t)(*p - '0') < 10)
        p++;
    return p;
}

/* The end of the number at p, or NULL if there is none. */
static inline const char *number_end(const char *p, const char *end, bool *real)
{
    *real = false;
    if (*p == '-')
        p++;
    const char *part = p;
    p = skip_digits(p, end);
    if (p == part || (*part == '0' && p - part > 1))
        return NULL;
    if (p < end && *p == '.') {
        *real = true;
        part = ++p;
        p = skip_digits(p, end);
        if (p == part)
            return NULL;
    }
    if (p < end && (*p | 0x20) == 'e') {
        *real = true;
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        part = p;
        p = skip_digits(p, end);
        if (p == part)
            return NULL;
    }
    return p;
}

static bool is_word(const orr_json *j, uint64_t at, const char *word, size_t n)
{
    return j->len - at >= n && memcmp(j->text + at, word, n) == 0 &&
           (j->len - at == n || orr__json_delimits(j->text[at + n]));
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    const char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* The four hex digits at p, or -1. */
static int32_t hex4(const char *p, const char *end)
{
    int32_t value = 0;
    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        const int digit = hex_digit(p[i]);
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* The character of the \u escape whose digits are at *p; a lone surrogate becomes U+FFFD, since it
 * has no UTF-8.  -1: not four hex digits. */
static int32_t unicode_escape(const char **p, const char *end)
{
    const int32_t high = hex4(*p, end);
    if (high < 0)
        return -1;
    *p += 4;
    if (high < 0xD800 || high > 0xDFFF)
        return high;
    if (high > 0xDBFF || end - *p < 6 || (*p)[0] != '\\' || (*p)[1] != 'u')
        return 0xFFFD;
    const int32_t low = hex4(*p + 2, end);
    if (low < 0xDC00 || low > 0xDFFF)
        return 0xFFFD;
    *p += 6;
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
}

static int32_t simple_escape(char c)
{
    switch (c) {
    case '"':
    case '\\':
    case '/':
        return c;
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return -1;
    }
}

/* Appends the text of a string with escapes: never longer than in the file. */
static orr_code decode(orr_json *j, orr_str raw, orr_buf *to)
{
    const char *p = raw.ptr, *end = raw.ptr + raw.len;
    uint8_t *out = orr_buf_reserve(to, raw.len + 4);
    if (!out)
        return orr__json_no_memory(j);
    while (p < end) {
        const char *slash = memchr(p, '\\', (size_t)(end - p));
        const size_t plain = (size_t)((slash ? slash : end) - p);
        memcpy(out, p, plain);
        out += plain;
        if (!slash)
            break;
        p = slash +
            2; /* an even number of backslashes precedes the string's end: there is a byte */
        const int32_t c = slash[1] == 'u' ? unicode_escape(&p, end) : simple_escape(slash[1]);
        if (c < 0)
            return fail(j, (uint64_t)(slash - j->text), "\\%c does not begin a valid escape",
                        slash[1] > 0x20 && slash[1] < 0x7F ? slash[1] : '?');
        out += orr_utf8_put((uint32_t)c, out);
    }
    to->len = (size_t)(out - to->ptr);
    return ORR_OK;
}

/* ---- nodes ---- */

static inline orr__json_node *new_node(orr_json *j, uint64_t at)
{
    if (__builtin_expect(j->node_count + 2 > j->node_room, 0) &&
        !orr_grow(&j->nodes, &j->node_room, j->node_count + 2))
        return NULL;
    orr__json_node *n = &j->nodes[j->node_count];
    n->at = (uint32_t)(at - j->base); /* add_value keeps an item below 4 GiB */
    j->node_count += j->keep;
    return n;
}

static orr_code add_decoded(orr_json *j, orr__json_node *n, orr_str raw)
{
    if (!orr_grow(&j->decoded, &j->decoded_room, j->decoded_count + 1))
        return orr__json_no_memory(j);
    if (!j->keep)
        j->scratch.len = 0;
    orr__json_decoded *d = &j->decoded[j->decoded_count];
    d->from = j->scratch.len;
    const orr_code code = decode(j, raw, &j->scratch);
    if (code)
        return code;
    d->length =
        (uint32_t)(j->scratch.len - d->from); /* not longer than raw, which is below 2 GiB */
    d->raw_length = (uint32_t)raw.len;
    n->info = (uint32_t)j->decoded_count | ORR__JSON_FLAG;
    j->decoded_count += j->keep;
    return ORR_OK;
}

static inline orr_code add_string(orr_json *j, uint64_t at)
{
    bool escaped;
    const char *first = j->text + at + 1;
    const char *last = string_end(first, j->text + j->len, &escaped);
    if (!last)
        return fail(j, at, "this string has no end");
    const orr_str raw = {.ptr = first, .len = (size_t)(last - first)};
    if (raw.len >= ORR__JSON_FLAG)
        return fail(j, at, "a string of more than 2 GiB");
    orr__json_node *n = new_node(j, at);
    if (!n)
        return orr__json_no_memory(j);
    n->info = (uint32_t)raw.len;
    return __builtin_expect(escaped, 0) ? add_decoded(j, n, raw) : ORR_OK;
}

static inline orr_code add_scalar(orr_json *j, uint64_t at, size_t length, bool real)
{
    orr__json_node *n = new_node(j, at);
    if (!n)
        return orr__json_no_memory(j);
    if (length >= ORR__JSON_FLAG)
        return fail(j, at, "a number of more than 2 GiB");
    n->info = (uint32_t)length | (real ? ORR__JSON_FLAG : 0);
    return ORR_OK;
}

static inline orr_code add_number(orr_json *j, uint64_t at)
{
    bool real;
    const char *p = j->text + at, *end = j->text + j->len;
    const char *last = number_end(p, end, &real);
    if (last && (last == end || orr__json_delimits(*last)))
        return add_scalar(j, at, (size_t)(last - p), real);
    if (is_word(j, at, "-Infinity", 9))
        return add_scalar(j, at, 9, true);
    return fail(j, at, "this is not a number as JSON writes it");
}

static orr_code add_word(orr_json *j, uint64_t at)
{
    static const struct {
        char word[12];
        size_t length;
        bool real;
    } words[] = {
        {"true", 4, false}, {"false", 5, false},   {"null", 4, false},
        {"NaN", 3, true},   {"Infinity", 8, true},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (is_word(j, at, words[i].word, words[i].length))
            return add_scalar(j, at, words[i].length, words[i].real);
    }
    return expected(j, at, "a value");
}

static inline orr_code open_container(orr_json *j, uint64_t at, char closer)
{
    if (j->depth == ORR_JSON_DEPTH)
        return fail(j, at, "more than %d levels of nesting", ORR_JSON_DEPTH);
    orr__json_node *n = new_node(j, at);
    if (!n)
        return orr__json_no_memory(j);
    orr__json_frame *f = &j->stack[j->depth++];
    *f = (orr__json_frame){.at = at, .node = (uint32_t)(n - j->nodes), .closer = closer};
    return ORR_OK;
}

static inline orr_code close_container(orr_json *j, uint64_t at)
{
    orr__json_node *n = new_node(j, at);
    if (!n)
        return orr__json_no_memory(j);
    const orr__json_frame *f = &j->stack[--j->depth];
    n->info = f->count;
    if (j->node_count > UINT32_MAX)
        return fail(j, at, "more than 4,294,967,295 values in one tree");
    j->nodes[f->node].info = (uint32_t)j->node_count;
    return ORR_OK;
}

static inline orr_code add_value(orr_json *j)
{
    uint64_t at;
    const orr_code code = j->depth ? peek_inside(j, &at) : peek(j, &at);
    if (code)
        return code;
    if (at - j->base > UINT32_MAX - 1)
        return fail(j, j->base, "one item of more than 4 GiB");
    const char c = j->text[at];
    j->next++;
    switch (c) {
    case '"':
        return add_string(j, at);
    case '{':
        return open_container(j, at, '}');
    case '[':
        return open_container(j, at, ']');
    default:
        return c == '-' || (uint8_t)(c - '0') < 10 ? add_number(j, at) : add_word(j, at);
    }
}

static inline orr_code take_colon(orr_json *j)
{
    uint64_t at;
    const orr_code code = peek_inside(j, &at);
    if (code)
        return code;
    if (j->text[at] != ':')
        return expected(j, at, "':' after a key");
    j->next++;
    return ORR_OK;
}

/* In the innermost container, where an element may start or the container end: consumes the comma.
 * *out: a key or value comes next; otherwise the closing bracket, not consumed. */
static inline orr_code take_comma(orr_json *j, uint64_t *at, bool *out)
{
    orr__json_frame *f = &j->stack[j->depth - 1];
    orr_code code = peek_inside(j, at);
    if (code)
        return code;
    *out = j->text[*at] != f->closer;
    if (*out && f->count) {
        if (j->text[*at] != ',')
            return expected(j, *at, f->closer == '}' ? "',' or '}'" : "',' or ']'");
        j->next++;
        code = peek_inside(j, at);
    }
    if (*out && f->closer == '}' && !code && j->text[*at] != '"')
        return expected(j, *at, f->count ? "a key" : "a key or '}'");
    f->count++;
    f->count -= !*out;
    return code;
}

/* What nearly always comes after a value, if all of it is in this piece: a comma, and in an object
 * a key with its colon.  False: it is something else, and nothing is taken. */
static inline bool take_usual(orr_json *j, orr_code *code)
{
    orr__json_frame *f = &j->stack[j->depth - 1];
    const uint32_t *token = j->tokens + j->next;
    const char *piece = j->text + j->piece;
    if (!f->count || j->count - j->next < 3 || piece[token[0]] != ',')
        return false;
    const bool is_object = f->closer == '}';
    if (is_object && (piece[token[1]] != '"' || piece[token[2]] != ':'))
        return false;
    f->count++;
    j->next += is_object ? 3 : 1;
    *code = is_object ? add_string(j, j->piece + token[1]) : ORR_OK;
    return true;
}

/* Close what ends here, down to depth `floor`; *out: another value comes next. */
static inline orr_code go_on(orr_json *j, uint32_t floor, bool *out)
{
    *out = false;
    while (j->depth > floor) {
        uint64_t at;
        orr_code code;
        if (take_usual(j, &code)) {
            *out = true;
            return code;
        }
        code = take_comma(j, &at, out);
        if (code)
            return code;
        if (!*out) {
            j->next++;
            if ((code = close_container(j, at)))
                return code;
            continue;
        }
        if (j->stack[j->depth - 1].closer == ']')
            return ORR_OK;
        j->next++;
        if ((code = add_string(j, at)))
            return code;
        return take_colon(j);
    }
    return ORR_OK;
}

/* The next value: into nodes if j->keep is 1, only validated if it is 0, when every node overwrites
 * the one before. */
static orr_code walk(orr_json *j, uint32_t keep)
{
    const uint32_t floor = j->depth;
    bool more = true;
    j->keep = keep;
    j->node_count = j->decoded_count = j->scratch.len = 0;
    j->base = j->item_at;
    while (more) {
        orr_code code = add_value(j);
        if (!code)
            code = go_on(j, floor, &more);
        if (code)
            return code;
        if (!keep)
            j->base = j->piece;
    }
    return ORR_OK;
}

/* ---- the outer level ---- */

/* Every public call ends here: a fault is kept, so that all later calls repeat it. */
static orr_code report(orr_json *j, orr_code code, orr_error *err)
{
    if (code == ORR_OK || code == ORR_END)
        return code;
    if (code != ORR_EUSAGE)
        j->failed = code;
    if (err)
        *err = j->error;
    return code;
}

static orr_code misused(orr_json *j, const char *words)
{
    return orr_fail(&j->error, ORR_EUSAGE, NULL, "%s", words);
}

static orr_json_type type_at(const orr_json *j, uint64_t at)
{
    bool real;
    const bool is_number = number_end(j->text + at, j->text + j->len, &real) != NULL;
    return orr__json_type_by(j->text[at], real || !is_number);
}

static orr_code take_key(orr_json *j, uint64_t at, orr_str *out)
{
    bool escaped;
    const char *first = j->text + at + 1;
    const char *last = string_end(first, j->text + j->len, &escaped);
    if (!last)
        return fail(j, at, "this string has no end");
    *out = (orr_str){.ptr = first, .len = (size_t)(last - first)};
    j->next++;
    if (escaped) {
        j->key.len = 0;
        const orr_code code = decode(j, *out, &j->key);
        if (code)
            return code;
        *out = (orr_str){.ptr = (const char *)j->key.ptr, .len = j->key.len};
    }
    return take_colon(j);
}

/* Skips the item last given, unless it was loaded or entered. */
static orr_code finish_item(orr_json *j)
{
    if (!j->pending)
        return ORR_OK;
    j->pending = false;
    return walk(j, 0);
}

static orr_code next_in_container(orr_json *j, orr_json_item *out)
{
    uint64_t at;
    bool more;
    const uint32_t depth = j->depth;
    orr_code code = take_comma(j, &at, &more);
    if (code)
        return code;
    if (!more) {
        j->next++;
        j->depth = depth - 1;
        return ORR_END;
    }
    if (j->stack[depth - 1].closer == '}' && (code = take_key(j, at, &out->key)))
        return code;
    return peek_inside(j, &out->byte);
}

static orr_code next_item(orr_json *j, orr_json_item *out)
{
    orr_code code = finish_item(j);
    if (code)
        return code;
    *out = (orr_json_item){.depth = j->depth};
    code = j->depth ? next_in_container(j, out) : peek(j, &out->byte);
    if (code)
        return code;
    const char c = j->text[out->byte];
    if (c == ',' || c == ':' || c == ']' || c == '}')
        return expected(j, out->byte, "a value");
    out->type = type_at(j, out->byte);
    j->item_at = out->byte;
    j->pending = true;
    return ORR_OK;
}

orr_code orr_json_next(orr_json *j, orr_json_item *out, orr_error *err)
{
    return report(j, j->failed ? j->failed : next_item(j, out), err);
}

static orr_code enter_item(orr_json *j)
{
    uint64_t at;
    if (!j->pending)
        return misused(j, "JSON: no item to enter");
    orr_code code = peek(j, &at);
    if (code)
        return code;
    if (j->text[at] != '{' && j->text[at] != '[')
        return expected(j, at, "an array or an object");
    j->pending = false;
    j->next++;
    j->node_count = j->keep = 0;
    j->base = at;
    return open_container(j, at, j->text[at] == '{' ? '}' : ']');
}

orr_code orr_json_enter(orr_json *j, orr_error *err)
{
    return report(j, j->failed ? j->failed : enter_item(j), err);
}

static orr_code load_item(orr_json *j, orr_json_value *out)
{
    if (!j->pending)
        return misused(j, "JSON: no item to load");
    j->pending = false;
    const orr_code code = walk(j, 1);
    if (code)
        return code;
    j->tree = (orr__json_tree){.text = j->text + j->base,
                               .nodes = j->nodes,
                               .decoded = j->decoded,
                               .scratch = (const char *)j->scratch.ptr,
                               .reader = j};
    *out = (orr_json_value){.tree = &j->tree, .node = 0};
    return ORR_OK;
}

orr_code orr_json_load(orr_json *j, orr_json_value *out, orr_error *err)
{
    return report(j, j->failed ? j->failed : load_item(j, out), err);
}

orr_code orr_json_document(orr_json *j, orr_json_value *out, orr_error *err)
{
    orr_json_item item;
    const orr_code code = orr_json_next(j, &item, err);
    return code ? code : orr_json_load(j, out, err);
}

orr_code orr_json_only(orr_json *j, orr_json_value *out, orr_error *err)
{
    uint64_t at;
    orr_code code = orr_json_document(j, out, err);
    if (code == ORR_END)
        return report(j, fail(j, j->len, "the input is empty; expected one JSON document"), err);
    if (code)
        return code;
    code = peek(j, &at);
    if (code == ORR_OK)
        code = expected(j, at, "nothing more after the document");
    return code == ORR_END ? ORR_OK : report(j, code, err);
}

/* ---- open and close ---- */

orr_code orr__json_open_pieces(
    orr_span bytes, const char *path, size_t piece_size, orr_json **out, orr_error *err)
{
    *out = NULL;
    orr_json *j = orr_alloc(1, sizeof *j);
    const size_t path_size = path ? strlen(path) + 1 : 0;
    if (j && path)
        j->path = orr_alloc(path_size, 1);
    if (!j || (path && !j->path)) {
        orr_free(j);
        return orr_no_memory(err);
    }
    if (path)
        memcpy(j->path, path, path_size);
    j->text = (const char *)bytes.ptr;
    j->len = bytes.len;
    j->piece_size = piece_size;
    if (bytes.len >= 3 && memcmp(bytes.ptr, "\xEF\xBB\xBF", 3) == 0)
        j->piece_end = 3;
    *out = j;
    return ORR_OK;
}

orr_code orr_json_open(orr_span bytes, const char *path, orr_json **out, orr_error *err)
{
    return orr__json_open_pieces(bytes, path, PIECE, out, err);
}

void orr_json_close(orr_json *j)
{
    if (!j)
        return;
    orr__json_index_destroy(j->index);
    orr_buf_fini(&j->scratch);
    orr_buf_fini(&j->key);
    orr_free(j->decoded);
    orr_free(j->nodes);
    orr_free(j->path);
    orr_free(j);
}

/* ---- one long list ---- */

typedef struct list_walk {
    orr_json *j;
    const orr_json_list *how;
    void *context;
    orr_error *err;
    bool has_enough;
} list_walk;

static orr_code answer(list_walk *w, orr_code code)
{
    w->has_enough |= code == ORR_END;
    return code;
}

static orr_code walk_items(list_walk *w, const orr_json_item *list)
{
    orr_json_item item;
    orr_json_value v;
    orr_code code = w->how->begin ? w->how->begin(w->context, list) : ORR_OK;
    if (code)
        return code == ORR_END ? ORR_OK : code;
    code = orr_json_enter(w->j, w->err);
    while (!code && !(code = orr_json_next(w->j, &item, w->err))) {
        if (!(code = orr_json_load(w->j, &v, w->err)))
            code = answer(w, w->how->item(w->context, v));
    }
    return code == ORR_END && !w->has_enough ? ORR_OK : code;
}

static orr_code walk_members(list_walk *w)
{
    orr_json_item item;
    orr_code code = orr_json_enter(w->j, w->err);
    while (!code && !(code = orr_json_next(w->j, &item, w->err))) {
        if (item.type == ORR_JSON_ARRAY && orr_str_is(item.key, w->how->key))
            code = walk_items(w, &item);
        else if (w->how->member)
            code = answer(w, w->how->member(w->context, &item));
    }
    return code == ORR_END && !w->has_enough ? ORR_OK : code;
}

static orr_code refuse(const list_walk *w, uint64_t byte, const char *words, const char *more)
{
    return orr_fail(w->err, ORR_EINPUT, ORR_AT(orr_json_place(w->j, byte)), "%s%s%s", words,
                    w->how->what, more);
}

static orr_code wrong_type(const list_walk *w)
{
    return orr_fail(w->err, ORR_EINPUT, ORR_AT(orr_json_place(w->j, 0)),
                    "expected %s: an object with \"%s\"%s", w->how->what, w->how->key,
                    w->how->takes_bare ? ", or a list" : "");
}

orr_code orr_json_walk_list(orr_json *j, const orr_json_list *how, void *context, orr_error *err)
{
    list_walk w = {.j = j, .how = how, .context = context, .err = err};
    orr_json_item item;
    orr_code code = orr_json_next(j, &item, err);
    if (code)
        return code == ORR_END ? refuse(&w, 0, "an empty file: expected ", "") : code;
    if (item.type == ORR_JSON_OBJECT)
        code = walk_members(&w);
    else if (item.type == ORR_JSON_ARRAY && how->takes_bare)
        code = walk_items(&w, &item);
    else
        return wrong_type(&w);
    if (code || how->takes_more)
        return code == ORR_END ? ORR_OK : code;
    code = orr_json_next(j, &item, err);
    if (!code)
        return refuse(&w, item.byte, "something follows the end of ", "");
    return code == ORR_END ? ORR_OK : code;
}
