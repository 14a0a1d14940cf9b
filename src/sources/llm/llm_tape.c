/* SPDX-License-Identifier: Apache-2.0 */
/* llm_tape.c - see llm_tape.h. */
#include "llm_impl.h"

#include <string.h>

static const orr__tape_axis axes[LLM_AXES] = {
    [LLM_AXIS_TP] = ORR__TAPE_TP,           [LLM_AXIS_CP] = ORR__TAPE_CP,
    [LLM_AXIS_DATA] = ORR__TAPE_DATA,       [LLM_AXIS_EP] = ORR__TAPE_EP,
    [LLM_AXIS_TIED] = ORR__TAPE_WORLD,      [LLM_AXIS_EXPERT_DATA] = ORR__TAPE_EXPERT_DATA,
    [LLM_AXIS_WORLD] = ORR__TAPE_WORLD,     [LLM_AXIS_STAGE] = ORR__TAPE_WORLD,
    [LLM_AXIS_REPLICA] = ORR__TAPE_REPLICA,
};

static orr__tape_node *add(orr__tape *t, orr__tape_kind kind, llm_deps after)
{
    static orr__tape_node nowhere; /* written to when memory is out, and never read */
    if (t->count >= UINT16_MAX || !orr_grow(&t->nodes, &t->room, t->count + 1)) {
        t->failed = true;
        return &nowhere;
    }
    orr__tape_node *n = &t->nodes[t->count++];
    *n = (orr__tape_node){.kind = kind};
    for (size_t i = 0; i < after.count; i++) {
        if (!after.ids[i])
            continue;
        if (n->dep_count < ORR__TAPE_DEPS)
            n->deps[n->dep_count++] = (uint16_t)(after.ids[i] - 1);
        else
            n->is_cut = true;
    }
    return n;
}

static void add_dep(orr__tape_node *n, uint64_t id)
{
    if (!id)
        return;
    if (n->dep_count < ORR__TAPE_DEPS)
        n->deps[n->dep_count++] = (uint16_t)(id - 1);
    else
        n->is_cut = true;
}

static uint64_t id_of_last(const orr__tape *t)
{
    return t->failed ? 1 : t->count;
}

/* Communication of a stream goes in order. */
static uint64_t end_in_stream(orr__tape *t, orr__tape_node *n, llm_stream stream)
{
    add_dep(n, t->last_on[stream]);
    return t->last_on[stream] = id_of_last(t);
}

uint64_t llm_tape_input(orr__tape *t)
{
    add(t, ORR__TAPE_INPUT, (llm_deps){NULL, 0});
    return id_of_last(t);
}

uint64_t llm_tape_begin(orr__tape *t)
{
    t->count = t->kernel_count = t->pending = 0;
    t->failed = false;
    memset(t->last_on, 0, sizeof t->last_on);
    return llm_tape_input(t);
}

void llm_tape_kernel(orr__tape *t, const orr_kernel *k)
{
    if (!orr_grow(&t->kernels, &t->kernel_room, t->kernel_count + 1)) {
        t->failed = true;
        return;
    }
    t->kernels[t->kernel_count++] = *k;
}

uint64_t llm_tape_compute(llm_pen *p, uint64_t operations, uint64_t bytes, llm_deps after)
{
    orr__tape *t = p->tape;
    orr__tape_node *n = add(t, ORR__TAPE_COMPUTE, after);
    n->operations = operations ? operations : 1;
    n->bytes = bytes ? bytes : 1;
    n->first_kernel = (uint32_t)t->pending;
    n->kernel_count = (uint32_t)(t->kernel_count - t->pending);
    t->pending = t->kernel_count;
    for (size_t i = 0; i < sizeof p->barrier / sizeof *p->barrier; i++) {
        add_dep(n, p->barrier[i]);
        p->barrier[i] = 0;
    }
    return id_of_last(t);
}

uint64_t llm_tape_collect(orr__tape *t,
                          orr_collective kind,
                          uint64_t bytes,
                          llm_axis axis,
                          llm_stream stream,
                          llm_deps after)
{
    orr__tape_node *n = add(t, ORR__TAPE_COLLECTIVE, after);
    n->axis = axes[axis];
    n->collective = kind;
    n->bytes = bytes;
    return end_in_stream(t, n, stream);
}

uint64_t llm_tape_message(
    orr__tape *t, bool is_send, uint64_t bytes, llm_stream stream, llm_deps after)
{
    orr__tape_node *n = add(t, is_send ? ORR__TAPE_SEND : ORR__TAPE_RECEIVE, after);
    n->axis = ORR__TAPE_CP;
    n->bytes = bytes;
    return is_send ? end_in_stream(t, n, stream) : id_of_last(t);
}

void orr__tape_fini(orr__tape *t)
{
    orr_free(t->nodes);
    orr_free(t->kernels);
    *t = (orr__tape){0};
}
