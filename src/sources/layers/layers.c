/* SPDX-License-Identifier: Apache-2.0 */
/* layers.c - the table of layers itself: made row by row, asked row by row.
 *
 * All texts are copied into one arena, so a table does not depend on the file or the program it came from.
 * Cost: a row is one array element and its texts; nothing is looked up by name. */
#include "layers_impl.h"

#include "base/text/text.h"

static const char *const policy_names[ORR_POLICY_COUNT] = {
    [ORR_POLICY_MICRO] = "MICRO",
    [ORR_POLICY_DATA] = "DATA",
    [ORR_POLICY_MODEL] = "MODEL",
    [ORR_POLICY_HYBRID_DATA_MODEL] = "HYBRID_DATA_MODEL",
    [ORR_POLICY_HYBRID_MODEL_DATA] = "HYBRID_MODEL_DATA",
    [ORR_POLICY_HYBRID_DLRM] = "HYBRID_DLRM",
    [ORR_POLICY_HYBRID_DLRM_ENHANCED] = "HYBRID_DLRM_ENHANCED",
    [ORR_POLICY_HYBRID_TRANSFORMER] = "HYBRID_TRANSFORMER",
    [ORR_POLICY_HYBRID_TRANSFORMER_FWD_IN_BCKWD] = "HYBRID_TRANSFORMER_FWD_IN_BCKWD",
    [ORR_POLICY_HYBRID_CUSTOMIZED] = "HYBRID_CUSTOMIZED",
    [ORR_POLICY_DISTRIBUTED_INFERENCE] = "DISTRIBUTED_INFERENCE",
};

const char *orr_policy_name(orr_policy p)
{
    return (unsigned)p < ORR_POLICY_COUNT ? policy_names[p] : NULL;
}

bool orr_policy_find(orr_str name, orr_policy *out)
{
    for (unsigned p = 0; p < ORR_POLICY_COUNT; p++) {
        if (!orr_str_is(name, policy_names[p]))
            continue;
        *out = (orr_policy)p;
        return true;
    }
    return false;
}

bool lay_policy_is_converted(orr_policy p)
{
    return p <= ORR_POLICY_HYBRID_DLRM_ENHANCED;
}

/* Those that say by themselves which dimensions a pass communicates in. */
bool lay_policy_is_for_layers(orr_policy p)
{
    return p >= ORR_POLICY_DATA && p <= ORR_POLICY_HYBRID_MODEL_DATA;
}

static const char *const comm_names[] = {
    [ORR__COMM_NONE] = "NONE",
    [ORR__COMM_ALL_REDUCE] = "ALLREDUCE",
    [ORR__COMM_ALL_GATHER] = "ALLGATHER",
    [ORR__COMM_REDUCE_SCATTER] = "REDUCESCATTER",
    [ORR__COMM_ALL_TO_ALL] = "ALLTOALL",
    [ORR__COMM_ALL_REDUCE_ALL_TO_ALL] = "ALLREDUCEALLTOALL",
};

bool lay_comm_find(orr_str name, lay_comm *out)
{
    for (size_t i = 0; i < sizeof comm_names / sizeof *comm_names; i++) {
        if (!orr_str_is(name, comm_names[i]))
            continue;
        *out = (lay_comm)i;
        return true;
    }
    return false;
}

orr_code orr_layers_create(orr_policy policy, orr_layers **out, orr_error *err)
{
    *out = NULL;
    if (!orr_policy_name(policy))
        return orr_fail(err, ORR_EUSAGE, NULL, "there is no policy %d", (int)policy);
    orr_layers *t = orr_alloc(1, sizeof *t);
    if (!t || !(t->texts = orr_arena_create())) {
        orr_free(t);
        return orr_no_memory(err);
    }
    t->policy = policy;
    *out = t;
    return ORR_OK;
}

void orr_layers_free(orr_layers *t)
{
    if (!t)
        return;
    orr_arena_destroy(t->texts);
    orr_free(t->layers);
    orr_free(t->lines);
    orr_free(t);
}

static bool keep_text(orr_layers *t, orr_str *s)
{
    s->ptr = orr_arena_text(t->texts, *s);
    return s->ptr != NULL;
}

static bool keep_list(orr_layers *t, const uint32_t **list, size_t count)
{
    uint32_t *copy = orr_arena_new(t->texts, count ? count : 1, uint32_t);
    if (!copy)
        return false;
    if (count)
        memcpy(copy, *list, count * sizeof *copy);
    *list = copy;
    return true;
}

orr_code orr_layers_set_args(orr_layers *t, const orr_policy_args *args, orr_error *err)
{
    orr_policy_args kept = *args;
    if (!keep_list(t, &kept.checkpoints, kept.checkpoint_count) ||
        !keep_list(t, &kept.initiates, kept.initiate_count))
        return orr_no_memory(err);
    t->args = kept;
    return ORR_OK;
}

orr_code orr_layers_add(orr_layers *t, const orr_layer *l, orr_error *err)
{
    orr_layer kept = *l;
    orr_str *texts[] = {&kept.name,         &kept.reserved,        &kept.update_time,
                        &kept.forward.comm, &kept.input_grad.comm, &kept.weight_grad.comm};
    if (!orr_policy_name(l->policy))
        return orr_fail(err, ORR_EUSAGE, NULL, "there is no policy %d", (int)l->policy);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (!keep_text(t, texts[i]))
            return orr_no_memory(err);
    }
    if (!orr_grow(&t->layers, &t->room, t->count + 1))
        return orr_no_memory(err);
    t->layers[t->count++] = kept;
    return ORR_OK;
}

orr_policy orr_layers_policy(const orr_layers *t)
{
    return t->policy;
}

const orr_policy_args *orr_layers_args(const orr_layers *t)
{
    return &t->args;
}

size_t orr_layers_count(const orr_layers *t)
{
    return t->count;
}

const orr_layer *orr_layers_get(const orr_layers *t, size_t i)
{
    return &t->layers[i];
}

orr_where lay_where(const orr_layers *t, uint32_t line, uint32_t column)
{
    return orr_where_line(t->label ? t->label : "", line, column);
}

orr_where lay_layer_where(const orr_layers *t, size_t i, uint32_t column)
{
    return lay_where(t, t->lines ? t->lines[i] : 0, t->lines ? column : 0);
}
