/* SPDX-License-Identifier: Apache-2.0 */
/* stage_layout.c - which layers a pipeline stage has. */
#include "llm_impl.h"

/* `layers` over `stages`, the first ones have one more; where stage `i` begins. */
static uint64_t even_start(uint64_t layers, uint64_t stages, uint64_t i)
{
    const uint64_t more = layers % stages;
    return i * (layers / stages) + (i < more ? i : more);
}

/* Given ends, and an even share of the rest between them. */
static void layers_between(const llm_job *g, uint32_t stage, uint64_t *first, uint64_t *end)
{
    const uint64_t layers = g->m->layers, stages = g->virtual_stages;
    const uint64_t even = layers / stages;
    const uint64_t head = g->opt.first_layers ? g->opt.first_layers : even;
    const uint64_t tail = g->opt.last_layers ? g->opt.last_layers : even;
    const uint64_t rest = layers > head + tail ? layers - head - tail : 0;
    *first = stage == 0            ? 0
             : stage + 1 == stages ? head + rest
                                   : head + even_start(rest, stages - 2, stage - 1);
    *end = stage == 0            ? head
           : stage + 1 == stages ? layers
                                 : head + even_start(rest, stages - 2, stage);
}

/* MTP layers and the loss count as one layer each: the last stage has fewer. */
static void layers_before_mtp(const llm_job *g, uint32_t stage, uint64_t *first, uint64_t *end)
{
    const uint64_t layers = g->m->layers, all = layers + g->m->mtp_layers + 1;
    const uint64_t each = (all + g->virtual_stages - 1) / g->virtual_stages;
    *first = stage * each < layers ? stage * each : layers;
    *end = stage + 1 == g->virtual_stages || *first + each > layers ? layers : *first + each;
}

void llm_stage_layers(const llm_job *g, uint32_t stage, uint64_t *first, uint64_t *end)
{
    const uint64_t layers = g->m->layers, stages = g->virtual_stages;
    if (stages > 2 && g->opt.first_layers + g->opt.last_layers) {
        layers_between(g, stage, first, end);
        return;
    }
    if (stages > 2 && g->opt.has_mtp) {
        layers_before_mtp(g, stage, first, end);
        return;
    }
    const uint64_t each = layers / stages, more = layers % stages;
    const uint64_t missing = more ? stages - more : 0;
    if (missing && missing <= 2 && stages > 2) { /* the ends, which have embedding and loss */
        const bool is_short = missing == 2;
        *first = stage * (each + 1) - (stage > 0 && is_short);
        *end = *first + each + 1 - (stage + 1 == stages) - (stage == 0 && is_short);
        return;
    }
    *first = stage * each + (stage < more ? stage : more);
    *end = *first + each + (stage < more);
}
