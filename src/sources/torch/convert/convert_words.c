/* SPDX-License-Identifier: Apache-2.0 */
/* convert_words.c - what names say about communication: of operators, of backends' annotations, of kernels.
 *
 *     c10d::_allgather_base_            operators of torch.distributed
 *     _c10d_functional::all_reduce      the same for compiled programs
 *     record_param_comms                what describes a call, with attributes
 *     nccl:_all_gather_base, gloo:send  what the backend ran
 *     ncclDevKernel_AllGather_RING_LL   the kernel
 *
 * Words are compared without '_', '-' and case, which differ from version to version. */
#include "conversion.h"

#include "base/text/text.h"

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

static bool has_folded(orr_str s, const char *word)
{
    const size_t n = strlen(word);
    for (size_t i = 0; i + n <= s.len; i++) {
        size_t k = 0;
        while (k < n && ((s.ptr[i + k] >= 'A' && s.ptr[i + k] <= 'Z' ? s.ptr[i + k] + 32
                                                                     : s.ptr[i + k]) == word[k]))
            k++;
        if (k == n)
            return true;
    }
    return false;
}

/* The kernel's own name, not the types it is made for. */
static orr_str head_of(orr_str name)
{
    const char *bracket = name.len ? memchr(name.ptr, '(', name.len) : NULL;
    return bracket ? (orr_str){name.ptr, (size_t)(bracket - name.ptr)} : name;
}

bool conv_is_comm_kernel(orr_str name)
{
    const orr_str head = head_of(name);
    return has_folded(head, "nccl") || has_folded(head, "rccl") || has_folded(head, "msccl") ||
           has_folded(head, "oneccl");
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

int64_t conv_dtype_bytes(orr_str dtype)
{
    static const struct {
        const char *name;
        int64_t bytes;
    } types[] = {
        {"Float", 4},  {"BFloat16", 2},     {"Half", 2},           {"Double", 8},
        {"Long", 8},   {"Int", 4},          {"Short", 2},          {"Char", 1},
        {"Byte", 1},   {"Bool", 1},         {"UInt16", 2},         {"UInt32", 4},
        {"UInt64", 8}, {"ComplexFloat", 8}, {"ComplexDouble", 16}, {"ComplexHalf", 4},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (orr_str_is(dtype, types[i].name))
            return types[i].bytes;
    }
    return orr_str_begins(dtype, "Float8") ? 1 : 0;
}
