/* SPDX-License-Identifier: Apache-2.0 */
/* known_names.c - recognises communication and annotations by name; one list for traces, timelines
 * and links, for consistency; and the sizes of
 * element types. */
#include "known_names.h"

#include "attrs.h"
#include "base/short_forms.h"
#include "base/text/text.h"
#include "trace_impl.h"

#include <string.h>

/* The kernel's own name, without template arguments. */
static orr_str head_of(orr_str name)
{
    const char *bracket = name.len ? memchr(name.ptr, '(', name.len) : NULL;
    return bracket ? (orr_str){name.ptr, (size_t)(bracket - name.ptr)} : name;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool begins_folded(orr_str s, const char *word)
{
    size_t k = 0;
    while (k < s.len && word[k] && lower(s.ptr[k]) == word[k])
        k++;
    return !word[k];
}

static bool has_folded(orr_str s, const char *word)
{
    for (size_t i = 0; i < s.len; i++) {
        if (begins_folded((orr_str){s.ptr + i, s.len - i}, word))
            return true;
    }
    return false;
}

enum {
    LIBRARIES = 4, /* the first words: libraries called by every rank of a group */
    DEEP_EP = LIBRARIES,
    WORDS = 15,
};

/* Which of the words it contains, one bit each.  All names of a trace are checked, so possible
 * starts of words are found by their first two letters, for all words in one pass. */
static uint32_t words_in(orr_str s)
{
    static const char *const words[WORDS] = {
        "nccl",
        "rccl",
        "msccl",
        "oneccl",
        "deep_ep",
        "nvshmem",
        "rocshmem",
        "mscclpp",
        "internode_ll",
        "multimem_all_re",
        "multimem_one_shot",
        "one_shot_all_reduce",
        "two_shot_all_reduce",
        "cross_device_reduce_",
        "allreduce_fusion_kernel",
    };
    static const uint16_t first[26] = {
        ['a' - 'a'] = 1 << 14,
        ['c' - 'a'] = 1 << 13,
        ['d' - 'a'] = 1 << 4,
        ['i' - 'a'] = 1 << 8,
        ['m' - 'a'] = 1 << 2 | 1 << 7 | 1 << 9 | 1 << 10,
        ['n' - 'a'] = 1 << 0 | 1 << 5,
        ['o' - 'a'] = 1 << 3 | 1 << 11,
        ['r' - 'a'] = 1 << 1 | 1 << 6,
        ['t' - 'a'] = 1 << 12,
    };
    static const uint16_t second[26] = {
        ['c' - 'a'] = 1 << 0 | 1 << 1, ['e' - 'a'] = 1 << 4,
        ['l' - 'a'] = 1 << 14,         ['n' - 'a'] = 1 << 3 | 1 << 8 | 1 << 11,
        ['o' - 'a'] = 1 << 6,          ['r' - 'a'] = 1 << 13,
        ['s' - 'a'] = 1 << 2 | 1 << 7, ['u' - 'a'] = 1 << 9 | 1 << 10,
        ['v' - 'a'] = 1 << 5,          ['w' - 'a'] = 1 << 12,
    };
    uint32_t found = 0;
    for (size_t i = 0; i + 1 < s.len; i++) {
        const unsigned a = (unsigned)(s.ptr[i] | 32) - 'a', b = (unsigned)(s.ptr[i + 1] | 32) - 'a';
        unsigned may = a < 26 && b < 26 ? first[a] & second[b] : 0;
        for (; may; may &= may - 1) {
            const unsigned w = (unsigned)__builtin_ctz(may);
            if (begins_folded((orr_str){s.ptr + i, s.len - i}, words[w]))
                found |= 1u << w;
        }
    }
    return found;
}

orr__comm_by orr__comm_kernel(orr_str name)
{
    const orr_str head = head_of(name);
    const uint32_t found = words_in(head);
    const uint32_t libraries = (1u << LIBRARIES) - 1;
    bool is_one_sided = found & ~libraries;
    /* The kernel that computes the layout sends nothing. */
    if (found >> DEEP_EP & 1)
        is_one_sided = !has_folded(head, "layout");
    if (is_one_sided)
        return ORR__COMM_ONE_SIDED;
    return found & libraries ? ORR__COMM_NCCL : ORR__COMM_NOT;
}

uint8_t orr__comm_one_sided_kind(orr_str name)
{
    static const struct {
        const char *word;
        uint8_t kind;
    } words[] = {
        {"dispatch", ORR_COLL_ALL_TO_ALL},
        {"combine", ORR_COLL_ALL_TO_ALL},
        {"alltoall", ORR_COLL_ALL_TO_ALL},
        {"all_to_all", ORR_COLL_ALL_TO_ALL},
        {"allreduce", ORR_COLL_ALL_REDUCE},
        {"all_reduce", ORR_COLL_ALL_REDUCE},
        {"cross_device_reduce", ORR_COLL_ALL_REDUCE},
        {"reduce_scatter", ORR_COLL_REDUCE_SCATTER},
        {"reducescatter", ORR_COLL_REDUCE_SCATTER},
        {"all_gather", ORR_COLL_ALL_GATHER},
        {"allgather", ORR_COLL_ALL_GATHER},
        {"broadcast", ORR_COLL_BROADCAST},
        {"barrier", ORR_COLL_BARRIER},
    };
    const orr_str head = head_of(name);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (has_folded(head, words[i].word))
            return (uint8_t)(words[i].kind + 1);
    }
    return 0;
}

size_t orr__plain_letters(orr_str name, char *out, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i < name.len && n + 1 < room; i++) {
        const char c = name.ptr[i];
        if (c >= 'A' && c <= 'Z')
            out[n++] = (char)(c + 32);
        else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
            out[n++] = c;
    }
    out[n] = '\0';
    return n;
}

uint8_t orr__collective_in(const char *plain)
{
    static const struct {
        const char *word;
        uint8_t kind;
    } words[] = {
        {"allreduce", ORR_COLL_ALL_REDUCE}, /* before "reduce", which is a part of it */
        {"reducescatter", ORR_COLL_REDUCE_SCATTER},
        {"allgather", ORR_COLL_ALL_GATHER},
        {"alltoall", ORR_COLL_ALL_TO_ALL},
        {"broadcast", ORR_COLL_BROADCAST},
        {"barrier", ORR_COLL_BARRIER},
        {"gather", ORR_COLL_GATHER},
        {"scatter", ORR_COLL_SCATTER},
        {"reduce", ORR_COLL_REDUCE},
    };
    for (size_t i = 0; i < ORR_COUNT(words); i++) {
        if (strstr(plain, words[i].word))
            return (uint8_t)(words[i].kind + 1);
    }
    return 0;
}

bool orr__comm_on_host(orr_str name)
{
    static const char *const back_ends[] = {"gloo:", "mpi:", "ucc:"};
    return orr_str_begins_any(name, back_ends, ORR_COUNT(back_ends));
}

bool orr__is_annotation(const orr_trace *t, uint32_t i)
{
    enum { USER_SCOPE = 7 }; /* of PyTorch's RecordFunction */
    const orr_columns *c = &t->columns;
    orr_node node;
    orr_attr attr;
    int64_t scope;
    if (!c->is_cpu_op || c->is_cpu_op[i] != 1 || c->type[i] != ORR_NODE_COMP)
        return false;
    if (orr_str_begins(orr_trace_name(t, i), "ProfilerStep#"))
        return true;
    orr_trace_node(t, i, &node);
    return orr__node_get(&node, ORR__ATTR_SCOPE, &attr) && orr_attr_int(&attr, &scope) &&
           scope == USER_SCOPE;
}
