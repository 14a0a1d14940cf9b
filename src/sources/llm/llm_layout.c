/* SPDX-License-Identifier: Apache-2.0 */
/* llm_layout.c - where a rank stands: coordinates, groups and neighbours, all by arithmetic.
 *
 * Tensor-parallel ranks are next to each other, then context, data and pipeline: what talks most is nearest.
 * Experts are spread over the ranks of a data block (dp and cp together), ep of them after one another. */
#include "llm_impl.h"

typedef struct place {
    uint32_t tensor, context, data, pipeline;
    uint32_t block; /* data and context in one number */
} place;

static place place_of(const llm_layout *l, uint32_t rank)
{
    const uint32_t block = rank / l->tp % (l->dp * l->cp);
    return (place){.tensor = rank % l->tp,
                   .context = block % l->cp,
                   .data = block / l->cp,
                   .pipeline = rank / (l->tp * l->cp * l->dp),
                   .block = block};
}

static uint32_t rank_at(const llm_layout *l, uint32_t pipeline, uint32_t block, uint32_t tensor)
{
    return (pipeline * l->dp * l->cp + block) * l->tp + tensor;
}

static uint32_t blocks_of(const llm_layout *l)
{
    return l->dp * l->cp;
}

/* How many groups an axis has. */
static uint64_t group_count(const llm_layout *l, llm_axis axis)
{
    if (axis == LLM_AXIS_TIED) /* the ranks of stages between the ends are in none */
        return l->ranks / l->pp;
    return l->ranks / l->degree[axis];
}

/* Axes with more than one rank a group get numbers, one after the other. */
static uint64_t number_groups(llm_layout *l, uint64_t next)
{
    for (unsigned axis = 0; axis < LLM_AXES; axis++) {
        if (l->degree[axis] == 1)
            continue;
        l->first[axis] = next;
        next += group_count(l, (llm_axis)axis);
    }
    return next;
}

void llm_layout_init(llm_layout *l, const orr_llm_options *opt, bool is_tied)
{
    *l = (llm_layout){.tp = opt->tp, .cp = opt->cp, .pp = opt->pp, .dp = opt->dp, .ep = opt->ep};
    l->ranks = orr_llm_ranks(opt);
    l->degree[LLM_AXIS_TP] = l->tp;
    l->degree[LLM_AXIS_CP] = l->cp;
    l->degree[LLM_AXIS_DATA] = blocks_of(l);
    l->degree[LLM_AXIS_EP] = l->ep;
    l->degree[LLM_AXIS_EXPERT_DATA] = l->ep > 1 ? blocks_of(l) / l->ep : 1;
    l->degree[LLM_AXIS_TIED] = is_tied && l->pp > 1 ? 2 : 1;
    l->degree[LLM_AXIS_WORLD] = l->ranks;
    number_groups(l, 1);
}

uint64_t llm_layout_init_serving(llm_layout *l,
                                 const orr_llm_options *opt,
                                 uint32_t first_rank,
                                 uint64_t first_group)
{
    *l = (llm_layout){.tp = opt->tp, .cp = opt->cp, .pp = opt->pp, .dp = opt->dp, .ep = opt->ep};
    l->ranks = orr_llm_ranks(opt);
    l->first_rank = first_rank;
    l->spans_tensor = true;
    for (unsigned axis = 0; axis < LLM_AXES; axis++)
        l->degree[axis] = 1;
    l->degree[LLM_AXIS_TP] = l->tp;
    l->degree[LLM_AXIS_CP] = l->cp;
    l->degree[LLM_AXIS_EP] = l->ep > l->tp ? l->ep : 1;
    return number_groups(l, first_group);
}

/* The number of a rank's group among those of its axis. */
static uint32_t group_index(const llm_layout *l, llm_axis axis, uint32_t rank)
{
    const place at = place_of(l, rank);
    switch (axis) {
    case LLM_AXIS_TP:
        return rank / l->tp;
    case LLM_AXIS_CP:
        return (at.pipeline * l->dp + at.data) * l->tp + at.tensor;
    case LLM_AXIS_DATA:
        return at.pipeline * l->tp + at.tensor;
    case LLM_AXIS_EP:
        if (l->spans_tensor)
            return rank / l->ep;
        return (at.pipeline * (blocks_of(l) / l->ep) + at.block / l->ep) * l->tp + at.tensor;
    case LLM_AXIS_EXPERT_DATA:
        return (at.pipeline * l->ep + at.block % l->ep) * l->tp + at.tensor;
    case LLM_AXIS_TIED:
        return rank % (l->tp * blocks_of(l));
    default:
        return 0;
    }
}

static uint32_t member(const llm_layout *l, llm_axis axis, uint32_t group, uint32_t i)
{
    const uint32_t tensor = group % l->tp, rest = group / l->tp, ep = l->ep;
    const uint32_t ep_groups = l->spans_tensor ? 1 : blocks_of(l) / ep;
    switch (axis) {
    case LLM_AXIS_TP:
        return group * l->tp + i;
    case LLM_AXIS_CP:
        return rank_at(l, rest / l->dp, rest % l->dp * l->cp + i, tensor);
    case LLM_AXIS_DATA:
        return rank_at(l, rest, i, tensor);
    case LLM_AXIS_EP:
        if (l->spans_tensor)
            return group * ep + i;
        return rank_at(l, rest / ep_groups, rest % ep_groups * ep + i, tensor);
    case LLM_AXIS_EXPERT_DATA:
        return rank_at(l, rest / ep, i * ep + rest % ep, tensor);
    case LLM_AXIS_TIED:
        return i == 0 ? group : group + l->ranks / l->pp * (l->pp - 1);
    default:
        return i;
    }
}

void llm_layout_values(const llm_layout *l, uint32_t rank, int64_t values[LLM_SLOTS])
{
    const place at = place_of(l, rank);
    const uint32_t stage = l->ranks / l->pp, ring = at.block - at.context;
    for (unsigned axis = 0; axis < LLM_AXES; axis++)
        values[axis] =
            l->first[axis] ? (int64_t)(l->first[axis] + group_index(l, (llm_axis)axis, rank)) : 0;
    values[LLM_PEER_NEXT] = (rank + stage) % l->ranks;
    values[LLM_PEER_PREVIOUS] = (rank + l->ranks - stage) % l->ranks;
    values[LLM_PEER_CP_NEXT] = rank_at(l, at.pipeline, ring + (at.context + 1) % l->cp, at.tensor);
    values[LLM_PEER_CP_PREVIOUS] =
        rank_at(l, at.pipeline, ring + (at.context + l->cp - 1) % l->cp, at.tensor);
    for (unsigned peer = LLM_AXES; peer < LLM_SLOTS; peer++)
        values[peer] += l->first_rank;
}

orr_code llm_layout_add_groups(const llm_layout *l, orr_set *s, orr_error *err)
{
    uint32_t *ranks = orr_alloc(l->ranks, sizeof *ranks);
    orr_code code = ranks ? ORR_OK : orr_no_memory(err);
    for (unsigned axis = 0; axis < LLM_AXES; axis++) {
        const uint64_t count = l->first[axis] ? group_count(l, (llm_axis)axis) : 0;
        for (uint32_t k = 0; k < count && !code; k++) {
            for (uint32_t i = 0; i < l->degree[axis]; i++)
                ranks[i] = l->first_rank + member(l, (llm_axis)axis, k, i);
            code = orr_set_add_group(s, l->first[axis] + k, ranks, l->degree[axis], err);
        }
    }
    orr_free(ranks);
    return code;
}
