/* SPDX-License-Identifier: Apache-2.0 */
/* json_pieces.c - the input, piece by piece, as tokens.
 *
 * Why pieces: the index of a whole file takes as much memory as the file.  A piece may end
 * anywhere: when it ends in a string it is stretched to the string's end, when it ends in a number
 * the number goes to the next piece.  So every piece begins outside a string, which is all the
 * index needs to know. */
#include "json_impl.h"

#include <stdarg.h>
#include <stdio.h>

enum { LINE_SEARCH = 4096 };

orr_code orr__json_fail(orr_json *j, uint64_t at, const char *fmt, ...)
{
    char words[sizeof j->error.message];
    va_list args;
    va_start(args, fmt);
    vsnprintf(words, sizeof words, fmt, args);
    va_end(args);
    const orr_where where = orr_json_place(j, at);
    return orr_fail(&j->error, ORR_EINPUT, &where, "%s", words);
}

/* What stands there, for "expected ..., found ...". */
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

orr_code orr__json_expected(orr_json *j, uint64_t at, const char *what)
{
    char there[32];
    return orr__json_fail(j, at, "expected %s, found %s", what, found(j, at, there));
}

/* The index says that a piece is faulty but not where: look again, byte by byte. */
static orr_code locate_fault(orr_json *j, uint64_t end)
{
    bool in_string = false;
    uint64_t opened = 0;
    for (uint64_t i = j->piece; i < end; i++) {
        const uint8_t c = (uint8_t)j->text[i];
        if (c >= 0x80) {
            const size_t n = orr_utf8_length((const uint8_t *)j->text + i, j->len - i);
            if (n == 0)
                return orr__json_fail(j, i, "byte 0x%02x is not valid UTF-8", c);
            if (!in_string)
                return orr__json_expected(j, i, "a value");
            i += n - 1;
        } else if (c == '"') {
            in_string = !in_string;
            opened = i;
        } else if (!in_string) {
            if (c == '\\')
                return orr__json_expected(j, i, "a value");
        } else if (c < 0x20) {
            return orr__json_fail(
                j, i, "control character 0x%02x in a string; it must be written as \\u%04x", c, c);
        } else if (c == '\\') {
            i++;
        }
    }
    return orr__json_fail(j, in_string ? opened : j->piece,
                          in_string ? "this string has no end" : "this is not JSON");
}

/* A piece preferably ends with a line, where nothing can be cut in two. */
static uint64_t guess_end(const orr_json *j)
{
    if (j->len - j->piece <= j->piece_size)
        return j->len;
    const uint64_t end = j->piece + j->piece_size;
    const size_t back = j->piece_size < LINE_SEARCH ? j->piece_size : LINE_SEARCH;
    const char *line = memrchr(j->text + end - back, '\n', back);
    return line ? (uint64_t)(line + 1 - j->text) : end;
}

/* The byte behind the string that byte `at` is in. */
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

/* Does the last token of this piece go on behind its end? */
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
    orr__json_index *wider = orr__json_index_create(size);
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
            return orr__json_fail(j, j->piece, "a string or number of more than 4 GiB");
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

/* The next piece that has a token; ORR_END behind the last one. */
orr_code orr__json_next_piece(orr_json *j)
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
