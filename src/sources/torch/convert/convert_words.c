/* SPDX-License-Identifier: Apache-2.0 */
/* convert_words.c - what names say about communication: of operators, of backends' annotations, of
 * kernels.
 *
 *     c10d::_allgather_base_            operators of torch.distributed
 *     _c10d_functional::all_reduce      the same for compiled programs
 *     record_param_comms                what describes a call, with attributes
 *     nccl:_all_gather_base, gloo:send  what the backend ran
 *     ncclDevKernel_AllGather_RING_LL   the kernel
 *
 * Words are compared without '_', '-' and case, which differ from version to version. */
#include "conversion.h"

#include "base/formats/json.h"
#include "base/text/text.h"
#include "trace/comm_names.h"

bool conv_is_operator_name(orr_str name)
{
    return orr_str_begins(name, "c10d::") || orr_str_begins(name, "_c10d_functional::") ||
           orr_str_begins(name, "c10d_functional::");
}

/* A word of small letters, one colon, and what the backend does. */
bool conv_is_backend_name(orr_str name)
{
    static const char *const backends[] = {
        "nccl:", "gloo:", "rccl:", "ucc:", "mpi:", "xccl:", "hccl:", "ccl:", "cncl:", "mccl:"};
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        const size_t n = strlen(backends[i]);
        if (orr_str_begins(name, backends[i]))
            return name.len > n && name.ptr[n] != ':';
    }
    return false;
}

bool conv_is_call_name(orr_str name)
{
    return conv_is_operator_name(name) || conv_is_backend_name(name) ||
           orr_str_is(name, "record_param_comms");
}

/* ---- words ---- */

enum { PLAIN_ROOM = 96 };

/* The letters and digits of a name in lower case, up to its arguments. */
static size_t plain(orr_str name, char out[PLAIN_ROOM])
{
    size_t n = 0;
    for (size_t i = 0; i < name.len && n < PLAIN_ROOM; i++) {
        const char c = name.ptr[i];
        if (c == '(' || c == '<')
            break;
        if (c >= 'A' && c <= 'Z')
            out[n++] = (char)(c + 32);
        else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
            out[n++] = c;
    }
    return n;
}

static const struct {
    const char *text;
    conv_word word;
    orr_collective kind;
} words[] = {
    /* longer ones first, where one is inside another */
    {"sendrecv", CONV_WORD_EITHER, 0},
    {"allreduce", CONV_WORD_COLLECTIVE, ORR_COLL_ALL_REDUCE},
    {"alltoall", CONV_WORD_COLLECTIVE, ORR_COLL_ALL_TO_ALL},
    {"allgather", CONV_WORD_COLLECTIVE, ORR_COLL_ALL_GATHER},
    {"reducescatter", CONV_WORD_COLLECTIVE, ORR_COLL_REDUCE_SCATTER},
    {"broadcast", CONV_WORD_COLLECTIVE, ORR_COLL_BROADCAST},
    {"barrier", CONV_WORD_COLLECTIVE, ORR_COLL_BARRIER},
    {"gather", CONV_WORD_COLLECTIVE, ORR_COLL_GATHER},
    {"scatter", CONV_WORD_COLLECTIVE, ORR_COLL_SCATTER},
    {"reduce", CONV_WORD_COLLECTIVE, ORR_COLL_REDUCE},
    {"isend", CONV_WORD_SEND, 0},
    {"send", CONV_WORD_SEND, 0},
    {"recv", CONV_WORD_RECV, 0},
    {"coalesc", CONV_WORD_TOGETHER, 0},
    {"wait", CONV_WORD_WAIT, 0},
};

static conv_said find_word(orr_str name)
{
    char text[PLAIN_ROOM];
    const size_t n = plain(name, text);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (n && memmem(text, n, words[i].text, strlen(words[i].text)))
            return (conv_said){words[i].word, words[i].kind};
    }
    return (conv_said){CONV_WORD_NONE, 0};
}

/* "c10d_functional" has no word in it, but only what follows counts. */
conv_said conv_word_of_call(orr_str name)
{
    const char *colon = name.len ? memrchr(name.ptr, ':', name.len) : NULL;
    if (colon) {
        const size_t before = (size_t)(colon + 1 - name.ptr);
        name = (orr_str){colon + 1, name.len - before};
    }
    return find_word(name);
}

/* ---- kernels ---- */

/* The kernel's own name, not the types it is made for. */
static orr_str head_of(orr_str name)
{
    const char *bracket = name.len ? memchr(name.ptr, '(', name.len) : NULL;
    return bracket ? (orr_str){name.ptr, (size_t)(bracket - name.ptr)} : name;
}

/* One-sided kernels stay work of the length that was measured: nothing says what they moved. */
bool conv_is_comm_kernel(orr_str name)
{
    return orr__comm_kernel(name) == ORR__COMM_NCCL;
}

/* "ncclDevKernel_Generic" says nothing: the call must. */
conv_said conv_word_of_kernel(orr_str name)
{
    const conv_said said = find_word(head_of(name));
    return said.word == CONV_WORD_NONE ? (conv_said){CONV_WORD_EITHER, 0} : said;
}

/* ---- peers and sizes ---- */

static const char *skip_to_digit(const char *p, const char *end)
{
    while (p < end && (*p < '0' || *p > '9'))
        p++;
    return p;
}

/* "nccl:send 0->1", "nccl:recv 1<-0": one's own number, then the peer's. */
bool conv_peer_in_name(orr_str name, int64_t *peer)
{
    const char *end = name.ptr + name.len;
    const char *space = name.len ? memchr(name.ptr, ' ', name.len) : NULL;
    const char *arrow = space ? memmem(space, (size_t)(end - space), "->", 2) : NULL;
    if (!arrow && space)
        arrow = memmem(space, (size_t)(end - space), "<-", 2);
    if (!arrow)
        return false;
    const char *p = skip_to_digit(arrow, end);
    int64_t v = 0;
    if (p == end)
        return false;
    for (; p < end && *p >= '0' && *p <= '9' && v < INT32_MAX / 10; p++)
        v = v * 10 + (*p - '0');
    *peer = v;
    return true;
}

/* ==== what the values of an operator are: tensors with sizes and storages, numbers, texts.
 *
 * A tensor is a list of six: id, storage, offset, elements, bytes of an element, device; the first
 * five are whole numbers, the last is a text, and nothing else in a trace looks like that.  So
 * tensors are found by a scan of the text, at any depth: the operators of a large trace are scanned
 * in a fraction of the time it took to read them.  The few operators whose other values matter are
 * read as trees. */

/* ---- tensors ---- */

typedef struct cursor {
    const char *at, *end;
} cursor;

typedef struct tensor {
    uint64_t storage;
    int64_t bytes;
} tensor;

static void skip_space(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r'))
        c->at++;
}

/* A whole number and the comma after it. */
static bool take_number(cursor *c, int64_t *out)
{
    uint64_t v = 0;
    skip_space(c);
    const bool is_negative = c->at < c->end && *c->at == '-';
    const char *first = c->at += is_negative;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        if (v > INT64_MAX / 10 - 1)
            return false;
        v = v * 10 + (uint64_t)(*c->at - '0');
    }
    if (c->at == first)
        return false;
    *out = is_negative ? -(int64_t)v : (int64_t)v;
    skip_space(c);
    return c->at < c->end && *c->at++ == ',';
}

static void skip_string(cursor *c)
{
    for (c->at++; c->at < c->end && *c->at != '"'; c->at++)
        c->at += *c->at == '\\';
    if (c->at < c->end)
        c->at++;
}

/* c stands after the opening bracket; it moves only when this is a tensor. */
static bool take_tensor(cursor *c, tensor *out)
{
    cursor p = *c;
    int64_t field[5];
    for (int i = 0; i < 5; i++) {
        if (!take_number(&p, &field[i]))
            return false;
    }
    skip_space(&p);
    if (p.at >= p.end || *p.at != '"')
        return false;
    skip_string(&p);
    skip_space(&p);
    if (p.at >= p.end || *p.at != ']' || field[3] < 0 || field[4] < 0 ||
        __builtin_mul_overflow(field[3], field[4], &out->bytes))
        return false;
    out->storage = (uint64_t)field[1];
    c->at = p.at + 1;
    return true;
}

/* The next tensor; *argument is which of the operator's arguments with tensors it is in, from 0. */
typedef struct tensors {
    cursor c;
    int depth, argument;
    bool has_found; /* one in the argument that is being gone through */
} tensors;

static tensors tensors_of(const linked_io *io)
{
    const orr_str text = io ? io->values : (orr_str){"", 0};
    return (tensors){.c = {text.ptr, text.ptr + text.len}};
}

/* At depth 1 a comma ends an argument. */
static void pass(tensors *t)
{
    switch (*t->c.at) {
    case '"':
        skip_string(&t->c);
        return;
    case '[':
    case '{':
        t->depth++;
        break;
    case ']':
    case '}':
        t->depth--;
        break;
    case ',':
        t->argument += t->depth == 1 && t->has_found;
        t->has_found &= t->depth != 1;
        break;
    default:
        break;
    }
    t->c.at++;
}

static bool next_tensor(tensors *t, tensor *out)
{
    while (t->c.at < t->c.end) {
        if (*t->c.at == '[' && t->depth >= 1) {
            cursor inside = {t->c.at + 1, t->c.end};
            if (take_tensor(&inside, out)) {
                t->c = inside;
                t->has_found = true;
                return true;
            }
        }
        pass(t);
    }
    return false;
}

int64_t conv_io_bytes(const linked_io *io, int argument)
{
    tensors it = tensors_of(io);
    tensor t;
    int64_t sum = -1;
    while (next_tensor(&it, &t)) {
        if (argument >= 0 && it.argument != argument)
            continue;
        sum = sum < 0 ? 0 : sum;
        if (__builtin_add_overflow(sum, t.bytes, &sum))
            return INT64_MAX;
    }
    return sum;
}

bool conv_io_storages(const linked_io *io, uint64_t **ids, size_t *count, size_t *room)
{
    tensors it = tensors_of(io);
    tensor t;
    while (next_tensor(&it, &t)) {
        if (*count && (*ids)[*count - 1] == t.storage)
            continue;
        if (!orr_grow(ids, room, *count + 1))
            return false;
        (*ids)[(*count)++] = t.storage;
    }
    return true;
}

/* ---- numbers and texts ---- */

/* The text was read before, so all that can go wrong is memory. */
static bool open_values(const linked_io *io, orr_json **j, orr_json_value *root, bool *lacks_memory)
{
    *j = NULL;
    if (!io || !io->values.len)
        return false;
    const orr_span text = {(const uint8_t *)io->values.ptr, io->values.len};
    orr_code code = orr_json_open(text, NULL, j, NULL);
    if (!code)
        code = orr_json_only(*j, root, NULL);
    if (!code)
        return true;
    *lacks_memory |= code == ORR_ENOMEM;
    orr_json_close(*j);
    return false;
}

int conv_io_numbers(const linked_io *io, int64_t *out, int room, bool *lacks_memory)
{
    orr_json *j;
    orr_json_value root, item;
    int n = 0;
    if (!open_values(io, &j, &root, lacks_memory))
        return 0;
    for (orr_json_iter it = orr_json_iterate(root); n < room && orr_json_next_value(&it, &item);) {
        if (orr_json_type_of(item) == ORR_JSON_INT && !orr_json_get_i64(item, &out[n], NULL))
            n++;
    }
    orr_json_close(j);
    return n;
}

/* The name of a group: a text, or the first of a list of texts.  What is decoded does not outlive
 * the reader, and names have nothing to decode. */
static orr_str group_name(orr_json_value v)
{
    orr_json_iter it = orr_json_iterate(v);
    orr_json_value first = v;
    if (orr_json_type_of(v) == ORR_JSON_ARRAY && !orr_json_next_value(&it, &first))
        return (orr_str){"", 0};
    const orr_str raw = orr_json_raw(first);
    if (orr_json_type_of(first) == ORR_JSON_INT)
        return raw;
    return orr_json_type_of(first) == ORR_JSON_STRING ? (orr_str){raw.ptr + 1, raw.len - 2}
                                                      : (orr_str){"", 0};
}

/* ..., sequence, group, rank, "allreduce", ... */
static bool find_recorded(orr_json_value values, conv_recorded *out)
{
    orr_json_value item, last[2] = {{NULL, 0}, {NULL, 0}};
    for (orr_json_iter it = orr_json_iterate(values); orr_json_next_value(&it, &item);) {
        const orr_str raw = orr_json_raw(item);
        if (last[0].tree && orr_json_type_of(item) == ORR_JSON_STRING && raw.len > 2 &&
            raw.ptr[1] != '<' && orr_json_type_of(last[1]) == ORR_JSON_INT &&
            !orr_json_get_i64(last[1], &out->rank, NULL)) {
            out->collective = (orr_str){raw.ptr + 1, raw.len - 2};
            out->group = group_name(last[0]);
            return true;
        }
        last[0] = last[1];
        last[1] = item;
    }
    return false;
}

bool conv_io_recorded(const linked_io *io, conv_recorded *out, bool *lacks_memory)
{
    orr_json *j;
    orr_json_value root;
    if (!open_values(io, &j, &root, lacks_memory))
        return false;
    const bool is_found = find_recorded(root, out);
    orr_json_close(j);
    return is_found;
}
