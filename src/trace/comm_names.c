/* SPDX-License-Identifier: Apache-2.0 */
/* comm_names.c - communication and annotations by what they are called; one list for traces,
 * timelines and links, so that all call a thing the same. */
#include "comm_names.h"

#include "attrs.h"
#include "base/text/text.h"
#include "trace_impl.h"

#include <string.h>

/* The kernel's own name, not the types it is made for. */
static orr_str head_of(orr_str name)
{
    const char *bracket = name.len ? memchr(name.ptr, '(', name.len) : NULL;
    return bracket ? (orr_str){name.ptr, (size_t)(bracket - name.ptr)} : name;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool has_folded(orr_str s, const char *word)
{
    const size_t n = strlen(word);
    for (size_t i = 0; i + n <= s.len; i++) {
        size_t k = 0;
        while (k < n && lower(s.ptr[i + k]) == word[k])
            k++;
        if (k == n)
            return true;
    }
    return false;
}

static bool has_any(orr_str s, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (has_folded(s, words[i]))
            return true;
    }
    return false;
}

static bool is_one_sided(orr_str head)
{
    static const char *const words[] = {
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
    /* Which tokens go where is worked out by a kernel that sends nothing. */
    if (has_folded(head, "deep_ep"))
        return !has_folded(head, "layout");
    return has_any(head, words, sizeof words / sizeof *words);
}

orr__comm_by orr__comm_kernel(orr_str name)
{
    static const char *const libraries[] = {"nccl", "rccl", "msccl", "oneccl"};
    const orr_str head = head_of(name);
    if (is_one_sided(head))
        return ORR__COMM_ONE_SIDED;
    return has_any(head, libraries, sizeof libraries / sizeof *libraries) ? ORR__COMM_NCCL
                                                                          : ORR__COMM_NOT;
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

bool orr__comm_on_host(orr_str name)
{
    static const char *const back_ends[] = {"gloo:", "mpi:", "ucc:"};
    for (size_t i = 0; i < sizeof back_ends / sizeof *back_ends; i++) {
        if (orr_str_begins(name, back_ends[i]))
            return true;
    }
    return false;
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
