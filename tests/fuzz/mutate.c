/* SPDX-License-Identifier: Apache-2.0 */
/* mutate.c - changes inputs of fuzz targets by their structure, so that most of what is tried gets past the door of
 * a reader.
 *
 * FUZZ_SHAPE names the structure of a target's inputs (meson.build has the table).  An input is cut into
 * pieces: fields of protobuf records, values of JSON, lines and words of text, pages of SQLite, blocks of
 * a fixed length.  Then one or a few pieces are removed, repeated, exchanged, or given another value, and
 * what counts them (lengths of records) is put right.  One change in four is libFuzzer's own, which knows nothing
 * of structure and keeps the door itself under test.
 *
 * fuzz_mutators.c holds this file to what it promises. */
#include "mutate.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MOST_PIECES = 512, MOST_DEPTH = 8, LONGEST_INPUT = 1 << 16 };

typedef struct piece {
    size_t from, to;
    uint8_t kind; /* of a shape: pieces of one kind may stand for each other */
} piece;

typedef struct draft {
    const uint8_t *in;
    size_t in_len;
    uint8_t *out;
    size_t len, max;
    bool is_full;
} draft;

/* ---- chance, the same for the same seed ---- */

static uint64_t state;

static uint32_t chance(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return below ? (uint32_t)(state >> 33) % below : 0;
}

static const int64_t EDGES[] = {
    0,    1,          2,         3,         4,         7,         8,         15,        16,
    63,   64,         100,       127,       128,       255,       256,       1000,      1023,
    1024, 4095,       65535,     65536,     1 << 20,   1 << 24,   INT32_MAX, INT32_MIN, -1,
    -2,   UINT32_MAX, 1LL << 32, 1LL << 40, 1LL << 53, INT64_MAX, INT64_MIN};

static int64_t edge(void)
{
    return EDGES[chance(sizeof EDGES / sizeof *EDGES)];
}

/* ---- writing ---- */

static void put(draft *d, const void *from, size_t len)
{
    if (len > d->max - d->len)
        d->is_full = true;
    else if (len) {
        memcpy(d->out + d->len, from, len);
        d->len += len;
    }
}

static void put_in(draft *d, size_t from, size_t to)
{
    put(d, d->in + from, to - from);
}

/* ---- values as text ---- */

static void put_number(draft *d, const uint8_t *old, size_t len)
{
    static const char *const odd[] = {"1e9",
                                      "0.5",
                                      "-0",
                                      "1e308",
                                      "nan",
                                      "inf",
                                      "0x10",
                                      "1e-9",
                                      "00",
                                      "18446744073709551616",
                                      "9.999999999999999e22",
                                      "4.9e-324"};
    char text[40], was[24] = "";
    const size_t n = len < sizeof was - 1 ? len : sizeof was - 1;
    memcpy(was, old, n);
    long long v = 0;
    const bool is_whole = sscanf(was, "%lld", &v) == 1 && v > -1000000000 && v < 1000000000;
    if (is_whole && chance(2))
        snprintf(text, sizeof text, "%lld",
                 chance(2) ? v + (long long)chance(3) - 1 : v * (long long)chance(5));
    else if (chance(6) == 0)
        snprintf(text, sizeof text, "%s", odd[chance(sizeof odd / sizeof *odd)]);
    else
        snprintf(text, sizeof text, "%lld", (long long)edge());
    put(d, text, strlen(text));
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* ---- one change to a list of pieces of one text, which do not overlap where they are exchanged ---- */

static const piece *pick(const piece *p, size_t count, int kind)
{
    for (int tries = 0; count && tries < 8; tries++) {
        const piece *one = &p[chance((uint32_t)count)];
        if (kind < 0 || one->kind == kind)
            return one;
    }
    return NULL;
}

/* In place of `where` the bytes of `what`, which may lie anywhere in the input. */
static void replace(draft *d, const piece *where, const piece *what)
{
    put_in(d, 0, where->from);
    put_in(d, what->from, what->to);
    put_in(d, where->to, d->in_len);
}

static void repeat(draft *d, const piece *what, const char *between)
{
    size_t times = 1u + (chance(8) ? 0 : chance(6));
    put_in(d, 0, what->to);
    while (times--) {
        put(d, between, strlen(between));
        put_in(d, what->from, what->to);
    }
    put_in(d, what->to, d->in_len);
}

static void exchange(draft *d, const piece *a, const piece *b)
{
    if (a->from > b->from) {
        const piece *c = a;
        a = b;
        b = c;
    }
    if (b->from < a->to) { /* one lies in the other, or is the other */
        put_in(d, 0, d->in_len);
        return;
    }
    put_in(d, 0, a->from);
    put_in(d, b->from, b->to);
    put_in(d, a->to, b->from);
    put_in(d, a->from, a->to);
    put_in(d, b->to, d->in_len);
}

/* ---- JSON: values and keys ---- */

enum { JSON_STRING, JSON_KEY, JSON_NUMBER, JSON_WORD, JSON_HOLDER };

typedef struct json_cut {
    piece *p;
    size_t count;
} json_cut;

static void json_add(json_cut *c, size_t from, size_t to, int kind)
{
    if (c->count < MOST_PIECES && to > from)
        c->p[c->count++] = (piece){from, to, (uint8_t)kind};
}

static size_t json_string_end(const uint8_t *s, size_t i, size_t len)
{
    for (i++; i < len && s[i] != '"'; i++)
        i += s[i] == '\\';
    return i < len ? i + 1 : len;
}

static void cut_json(const uint8_t *s, size_t len, json_cut *c)
{
    size_t open[64], depth = 0;
    for (size_t i = 0; i < len;) {
        const size_t from = i;
        if (s[i] == '"') {
            i = json_string_end(s, i, len);
            size_t after = i;
            while (after < len && (s[after] == ' ' || s[after] == '\n'))
                after++;
            json_add(c, from, i, after < len && s[after] == ':' ? JSON_KEY : JSON_STRING);
        } else if (is_digit(s[i]) || s[i] == '-') {
            while (i < len && (is_digit(s[i]) || strchr("+-.eE", s[i])) && s[i])
                i++;
            json_add(c, from, i, JSON_NUMBER);
        } else if (s[i] >= 'a' && s[i] <= 'z') {
            while (i < len && s[i] >= 'a' && s[i] <= 'z')
                i++;
            json_add(c, from, i, JSON_WORD);
        } else {
            if ((s[i] == '{' || s[i] == '[') && depth < 64)
                open[depth++] = i;
            else if ((s[i] == '}' || s[i] == ']') && depth)
                json_add(c, open[--depth], i + 1, JSON_HOLDER);
            i++;
        }
    }
}

/* A value, with its key and one comma. */
static piece json_member(const draft *d, const piece *value, const json_cut *c)
{
    piece m = *value;
    for (size_t k = 0; k < c->count; k++)
        if (c->p[k].kind == JSON_KEY && c->p[k].to <= value->from && value->from - c->p[k].to <= 3)
            m.from = c->p[k].from;
    if (m.to < d->in_len && d->in[m.to] == ',')
        m.to++;
    else if (m.from && d->in[m.from - 1] == ',')
        m.from--;
    return m;
}

static void json_other_value(draft *d, const piece *p)
{
    static const char *const others[] = {"null",      "true",    "false",       "0",     "\"\"",
                                         "[]",        "{}",      "[[]]",        "\"1\"", "-1",
                                         "{\"a\":1}", "[1,2,3]", "\"\\u0000\"", "1.5"};
    const char *text = others[chance(sizeof others / sizeof *others)];
    put_in(d, 0, p->from);
    if (p->kind == JSON_NUMBER && chance(4))
        put_number(d, d->in + p->from, p->to - p->from);
    else
        put(d, text, strlen(text));
    put_in(d, p->to, d->in_len);
}

static void change_json(draft *d)
{
    static piece pieces[MOST_PIECES];
    json_cut c = {pieces, 0};
    cut_json(d->in, d->in_len, &c);
    const piece *p = pick(c.p, c.count, -1);
    const piece *q = p ? pick(c.p, c.count, p->kind) : NULL;
    if (!q)
        return;
    const piece member = json_member(d, p, &c);
    switch (chance(6)) {
    case 0: /* without it */
        put_in(d, 0, member.from);
        put_in(d, member.to, d->in_len);
        break;
    case 1: /* twice */
        repeat(d, &member, member.to > member.from && d->in[member.to - 1] == ',' ? "" : ",");
        break;
    case 2:
        replace(d, p, q);
        break;
    case 3:
        exchange(d, p, q);
        break;
    default:
        json_other_value(d, p);
        break;
    }
}

/* ---- text: lines and words (YAML, TOML, CSV, tables of other programs) ---- */

enum { TEXT_WORD, TEXT_NUMBER, TEXT_LINE };

static bool is_word(uint8_t c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-' || c == '.' || c >= 128;
}

static size_t cut_lines(const uint8_t *s, size_t len, piece *p)
{
    size_t count = 0, from = 0;
    for (size_t i = 0; i < len && count < MOST_PIECES; i++)
        if (s[i] == '\n' || i + 1 == len) {
            p[count++] = (piece){from, i + 1, TEXT_LINE};
            from = i + 1;
        }
    return count;
}

static size_t cut_words(const uint8_t *s, size_t len, piece *p)
{
    size_t count = 0;
    for (size_t i = 0; i < len && count < MOST_PIECES;) {
        const size_t from = i;
        if (!is_word(s[i])) {
            i++;
            continue;
        }
        const bool is_number = is_digit(s[i]) || (s[i] == '-' && i + 1 < len && is_digit(s[i + 1]));
        i++;
        while (i < len && (is_number ? is_digit(s[i]) || s[i] == '.' : is_word(s[i])))
            i++;
        p[count++] = (piece){from, i, is_number ? TEXT_NUMBER : TEXT_WORD};
    }
    return count;
}

static void change_word(draft *d)
{
    static piece words[MOST_PIECES];
    const size_t count = cut_words(d->in, d->in_len, words);
    const piece *p = pick(words, count, -1), *q = p ? pick(words, count, p->kind) : NULL;
    if (!q)
        return;
    if (p->kind == TEXT_NUMBER && chance(2)) {
        put_in(d, 0, p->from);
        put_number(d, d->in + p->from, p->to - p->from);
        put_in(d, p->to, d->in_len);
        return;
    }
    switch (chance(4)) {
    case 0:
        exchange(d, p, q);
        break;
    case 1:
        replace(d, p, &(piece){0, 0, 0});
        break;
    default:
        replace(d, p, q);
        break;
    }
}

static void change_line(draft *d)
{
    static piece lines[MOST_PIECES];
    const size_t count = cut_lines(d->in, d->in_len, lines);
    const piece *p = pick(lines, count, -1), *q = pick(lines, count, -1);
    if (!q)
        return;
    switch (chance(5)) {
    case 0:
        replace(d, p, &(piece){0, 0, 0});
        break;
    case 1:
        repeat(d, p, "");
        break;
    case 2:
        exchange(d, p, q);
        break;
    case 3:
        replace(d, p, q);
        break;
    default: /* one level in or out */
        put_in(d, 0, p->from);
        if (d->in[p->from] == ' ' && chance(2))
            put_in(d, p->from + 1, p->to);
        else {
            put(d, "  ", 2);
            put_in(d, p->from, p->to);
        }
        put_in(d, p->to, d->in_len);
    }
}

static void change_text(draft *d)
{
    if (chance(3))
        change_word(d);
    else
        change_line(d);
}

/* ---- GOAL: statements of its grammar, beside all that is done to text ---- */

static void change_goal(draft *d)
{
    static piece lines[MOST_PIECES];
    char text[96];
    const unsigned a = chance(8), b = chance(8), size = chance(5) ? chance(5000) : (unsigned)edge();
    const size_t count = cut_lines(d->in, d->in_len, lines);
    const piece *p = pick(lines, count, -1);
    if (!p || chance(3)) {
        change_text(d);
        return;
    }
    switch (chance(6)) {
    case 0:
        snprintf(text, sizeof text, "l%u: send %ub to %u tag %u cpu %u\n", a, size, b % 4,
                 chance(3), chance(3));
        break;
    case 1:
        snprintf(text, sizeof text, "l%u: recv %ub from %u tag %u nic %u\n", a, size, b % 4,
                 chance(3), chance(3));
        break;
    case 2:
        snprintf(text, sizeof text, "l%u: calc %u\n", a, size);
        break;
    case 3:
        snprintf(text, sizeof text, "l%u requires l%u\n", a, b);
        break;
    case 4:
        snprintf(text, sizeof text, "l%u irequires l%u\n", a, b);
        break;
    default:
        snprintf(text, sizeof text, "}\nrank %u {\n", b % 4);
        break;
    }
    put_in(d, 0, p->from);
    put(d, text, strlen(text));
    put_in(d, chance(2) ? p->from : p->to, d->in_len);
}

/* ---- protobuf: records with a length before each, fields in them ---- */

static bool read_varint(const uint8_t *s, size_t *at, size_t end, uint64_t *v)
{
    *v = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        const uint8_t b = s[(*at)++];
        *v |= (uint64_t)(b & 127) << shift;
        if (b < 128)
            return true;
    }
    return false;
}

static void put_varint(draft *d, uint64_t v)
{
    uint8_t b[10];
    size_t n = 0;
    do {
        b[n++] = (uint8_t)((v & 127) | (v > 127 ? 128 : 0));
        v >>= 7;
    } while (v);
    put(d, b, n);
}

/* The end of the field at `at`; 0: none.  A payload of bytes lies at *inner. */
static size_t field_end(const uint8_t *s, size_t at, size_t end, uint64_t *key, size_t *inner)
{
    uint64_t v;
    *inner = 0;
    if (!read_varint(s, &at, end, key) || *key >> 3 == 0)
        return 0;
    switch (*key & 7) {
    case 0:
        return read_varint(s, &at, end, &v) ? at : 0;
    case 1:
        return end - at >= 8 ? at + 8 : 0;
    case 5:
        return end - at >= 4 ? at + 4 : 0;
    case 2:
        if (!read_varint(s, &at, end, &v) || v > end - at)
            return 0;
        *inner = at;
        return at + (size_t)v;
    default:
        return 0;
    }
}

static bool is_message(const uint8_t *s, size_t at, size_t end)
{
    uint64_t key;
    size_t inner;
    if (at == end)
        return false;
    while (at < end)
        if (!(at = field_end(s, at, end, &key, &inner)))
            return false;
    return true;
}

static void put_other_payload(draft *d, uint64_t key, size_t at, size_t end, size_t inner)
{
    const uint64_t v = (uint64_t)edge();
    switch (key & 7) {
    case 0:
        put_varint(d, v);
        break;
    case 1:
        put(d, &v, 8);
        break;
    case 5:
        put(d, &v, 4);
        break;
    default:
        if (chance(2)) { /* shorter */
            const size_t n = inner == end ? 0 : chance((uint32_t)(end - inner));
            put_varint(d, n);
            put_in(d, inner, inner + n);
        } else
            put_in(d, at, end);
    }
}

static void put_message(draft *d, size_t at, size_t end, int depth);

/* A field with one change to it, or in it. */
static void put_changed_field(draft *d, size_t at, size_t end, int depth)
{
    uint64_t key, ignored;
    size_t inner, payload = at;
    field_end(d->in, at, end, &key, &inner);
    read_varint(d->in, &payload, end, &ignored);
    if (inner && depth < MOST_DEPTH && is_message(d->in, inner, end) && chance(4)) {
        uint8_t *const start = d->out;
        const size_t len = d->len;
        /* What is inside goes to its place first, then behind its length: lengths have few bytes. */
        put_varint(d, key);
        const size_t head = d->len;
        put_message(d, inner, end, depth + 1);
        static uint8_t kept[LONGEST_INPUT];
        const size_t n = d->len - head;
        if (n > sizeof kept || d->is_full) {
            d->len = len;
            d->is_full = true;
            return;
        }
        memcpy(kept, start + head, n);
        d->len = head;
        put_varint(d, n);
        put(d, kept, n);
        return;
    }
    switch (chance(6)) {
    case 0:
        break; /* without it */
    case 1:
        put_in(d, at, end);
        put_in(d, at, end);
        break;
    case 2: /* another field of the same type */
        put_varint(d, (key & 7) | (uint64_t)(1 + chance(24)) << 3);
        put_in(d, payload, end);
        break;
    default:
        put_varint(d, key);
        put_other_payload(d, key, payload, end, inner);
    }
}

static void put_message(draft *d, size_t at, size_t end, int depth)
{
    uint64_t key;
    size_t count = 0, inner;
    for (size_t i = at; i < end && (i = field_end(d->in, i, end, &key, &inner)); count++)
        ;
    const size_t changed = count ? chance((uint32_t)count) : 0;
    for (size_t k = 0; k < count; k++) {
        const size_t next = field_end(d->in, at, end, &key, &inner);
        if (k == changed)
            put_changed_field(d, at, next, depth);
        else
            put_in(d, at, next);
        at = next;
    }
    put_in(d, at, end); /* what is no field stays */
}

static void put_changed_record(draft *d, size_t at, size_t end)
{
    static uint8_t kept[LONGEST_INPUT];
    const size_t head = d->len;
    put_message(d, at, end, 0);
    const size_t n = d->len - head;
    if (n > sizeof kept || d->is_full) {
        d->is_full = true;
        return;
    }
    memcpy(kept, d->out + head, n);
    d->len = head;
    put_varint(d, n);
    put(d, kept, n);
}

static void change_records(draft *d)
{
    static piece records[MOST_PIECES];
    size_t count = 0, at = 0;
    uint64_t len;
    while (count < MOST_PIECES) {
        const size_t from = at;
        if (!read_varint(d->in, &at, d->in_len, &len) || len > d->in_len - at)
            break;
        at += (size_t)len;
        records[count++] = (piece){from, at, 0};
    }
    const piece *p = pick(records, count, -1), *q = pick(records, count, -1);
    if (!q)
        return;
    switch (chance(8)) {
    case 0:
        replace(d, p, &(piece){0, 0, 0});
        break;
    case 1:
        repeat(d, p, "");
        break;
    case 2:
        exchange(d, p, q);
        break;
    default:
        at = p->from;
        read_varint(d->in, &at, p->to, &len);
        put_in(d, 0, p->from);
        put_changed_record(d, at, p->to);
        put_in(d, p->to, d->in_len);
    }
}

/* ---- SQLite: pages, their headers, cells ---- */

static void change_page(draft *d, size_t page)
{
    static const uint8_t types[] = {2, 5, 10, 13, 0};
    const size_t pages = d->in_len / page, n = chance((uint32_t)pages);
    const size_t head = n * page + (n == 0 ? 100 : 0);
    uint8_t *to = d->out + n * page, *header = d->out + head;
    put_in(d, 0, d->in_len);
    if (d->is_full)
        return;
    const size_t cells = (size_t)header[3] << 8 | header[4], room = (n + 1) * page - head;
    switch (chance(6)) {
    case 0:
        header[0] = types[chance(sizeof types)];
        break;
    case 1:
        header[1 + chance(7)] = (uint8_t)edge();
        break;
    case 2: /* a cell lies elsewhere */
        if (cells && 8 + 2 * cells < room) {
            uint8_t *cell = header + 8 + 2 * chance((uint32_t)cells);
            cell[0] = (uint8_t)(chance((uint32_t)page) >> 8);
            cell[1] = (uint8_t)chance(256);
        }
        break;
    case 3: /* a byte of what a cell holds: lengths, types, numbers */
        if (cells && 8 + 2 * cells < room) {
            const uint8_t *cell = header + 8 + 2 * chance((uint32_t)cells);
            const size_t at = ((size_t)cell[0] << 8 | cell[1]) + chance(24);
            if (at < page)
                to[at] = chance(2) ? (uint8_t)edge() : (uint8_t)(to[at] + 1);
        }
        break;
    case 4: /* another page in its place */
        if (n)
            memmove(to, d->out + chance((uint32_t)pages) * page, page);
        break;
    default: /* numbers of the file's header: size in pages, free list, encoding */
        if (d->len >= 100)
            d->out[16 + chance(80)] = (uint8_t)edge();
    }
}

static void change_sqlite(draft *d)
{
    if (d->in_len < 512)
        return;
    const size_t said = (size_t)d->in[16] << 8 | d->in[17];
    const size_t page = said == 1 ? 65536 : said;
    if (page >= 512 && (page & (page - 1)) == 0 && page <= d->in_len)
        change_page(d, page);
}

/* ---- blocks of a fixed length ---- */

static void change_blocks(draft *d)
{
    const size_t length = FUZZ_BLOCK;
    const uint32_t count = (uint32_t)(d->in_len / length);
    if (count == 0)
        return;
    const size_t a = chance(count) * length, b = chance(count) * length;
    const piece p = {a, a + length, 0}, q = {b, b + length, 0};
    switch (chance(6)) {
    case 0:
        replace(d, &p, &(piece){0, 0, 0});
        break;
    case 1:
        repeat(d, &p, "");
        break;
    case 2:
        exchange(d, &p, &q);
        break;
    case 3:
        replace(d, &p, &q);
        break;
    default:
        put_in(d, 0, d->in_len);
        if (!d->is_full)
            d->out[a + chance((uint32_t)length)] = (uint8_t)chance(256);
    }
}

/* ---- all shapes ---- */

static void (*const changes[])(draft *d) = {
    [FUZZ_JSON] = change_json,       [FUZZ_TEXT] = change_text,     [FUZZ_GOAL] = change_goal,
    [FUZZ_RECORDS] = change_records, [FUZZ_SQLITE] = change_sqlite, [FUZZ_BLOCKS] = change_blocks};

size_t fuzz_mutate(fuzz_shape shape, uint8_t *data, size_t size, size_t max, unsigned seed)
{
    static uint8_t out[LONGEST_INPUT];
    state = (uint64_t)seed * 0x9e3779b97f4a7c15u + 1;
    if (size > LONGEST_INPUT)
        return 0;
    for (uint32_t turns = 1 + (chance(3) == 0 ? chance(4) : 0); turns; turns--) {
        draft d = {.in = data,
                   .in_len = size,
                   .out = out,
                   .max = max < LONGEST_INPUT ? max : LONGEST_INPUT};
        changes[shape](&d);
        if (d.is_full || d.len == 0)
            return 0;
        memcpy(data, out, d.len);
        size = d.len;
    }
    return size;
}

#ifdef FUZZ_SHAPE
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    static uint8_t kept[LONGEST_INPUT];
    if (seed % 4 && size > FUZZ_HEAD && size <= LONGEST_INPUT && max >= size) {
        memcpy(kept, data, size);
        const size_t got =
            fuzz_mutate(FUZZ_SHAPE, data + FUZZ_HEAD, size - FUZZ_HEAD, max - FUZZ_HEAD, seed / 4);
        if (got)
            return got + FUZZ_HEAD;
        memcpy(data, kept, size);
    }
    return LLVMFuzzerMutate(data, size, max);
}
#endif
