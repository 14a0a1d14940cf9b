/* SPDX-License-Identifier: Apache-2.0 */
/* llm_network.c - the time of collectives and messages on a machine, as a run of the traces takes
 * it: the placement of a group, then the model of NCCL or of a torus (nccl_model.h).
 *
 * An estimate asks for the same few times in every iteration, so a placement is found once per
 * stage and axis, and times are cached: a direct-mapped cache.  Without contention: what else is on
 * the links is known to a run only.
 *
 * Cost: a shape is linear in the ranks of its group; a known time is one lookup. */
#include "serve_impl.h"

#include "base/memory/memory.h"
#include "models/collective/nccl/nccl_model.h"
#include "models/network/product.h"

#include <math.h>
#include <string.h>

enum { KNOWN_TIMES = 1024 };

typedef struct known_time {
    uint64_t bytes;
    uint32_t shape; /* its number + 1; 0: the place is free */
    uint32_t kind;
    llm_moved time;
} known_time;

struct llm_network {
    orr_net_config dims;
    uint64_t ranks;
    bool is_torus;
    struct nccl_custom *table;
    nccl_shape like; /* what all groups have in common */
    nccl_shape *shapes;
    size_t count, room;
    bool lacks_memory;
    known_time known[KNOWN_TIMES];
};

orr_code llm_network_open(const orr_machine *m, llm_network **out, orr_error *err)
{
    *out = NULL;
    /* Rings of messages: the rates of links say it. */
    if (!m->size || strcmp(m->collectives, "none") == 0)
        return ORR_OK;
    llm_network *w = orr_alloc(1, sizeof *w);
    if (!w)
        return orr_no_memory(err);
    w->ranks = orr_machine_devices(m);
    w->is_torus = strcmp(m->collectives, "torus") == 0;
    orr_code code = orr_machine_dims(m, &w->dims, err);
    if (!code)
        code = nccl_custom_open(m->collectives, &w->table, err);
    w->like = (nccl_shape){.generation = nccl_generation_of(m->architecture),
                           .table = w->table,
                           .up_reduces = m->up_reduces,
                           .out_reduces = m->fabric_reduces};
    if (code) {
        llm_network_close(w);
        return code;
    }
    *out = w;
    return ORR_OK;
}

void llm_network_close(llm_network *w)
{
    if (!w)
        return;
    orr_free(w->table);
    orr_free(w->shapes);
    orr_free(w);
}

/* false: out of memory. */
static bool shape_of(const llm_network *w, const uint32_t *members, uint32_t count, nccl_shape *h)
{
    *h = w->like;
    if (w->is_torus)
        return torus_shape_of(&w->dims, members, count, &h->torus);
    nccl_shape_of(&w->dims, members, count, h);
    return true;
}

uint32_t llm_network_place(llm_network *w, uint64_t first, uint32_t count, uint64_t stride)
{
    nccl_shape h;
    size_t i = 0;
    if (!w || count < 2 || first + (count - 1) * stride >= w->ranks)
        return LLM_NO_SHAPE;
    uint32_t *members = orr_alloc(count, sizeof *members);
    for (uint32_t k = 0; members && k < count; k++)
        members[k] = (uint32_t)(first + k * stride);
    const bool ok = members && shape_of(w, members, count, &h);
    orr_free(members);
    w->lacks_memory = w->lacks_memory || !ok;
    if (!ok)
        return LLM_NO_SHAPE;
    /* Assigned as a whole, so gaps are equal, too; were they not, a shape would be kept twice. */
    while (i < w->count && memcmp(&w->shapes[i], &h, sizeof h) != 0)
        i++;
    if (i == w->count) {
        if (!orr_grow(&w->shapes, &w->room, w->count + 1)) {
            w->lacks_memory = true;
            return LLM_NO_SHAPE;
        }
        w->shapes[w->count++] = h;
    }
    return (uint32_t)i;
}

bool llm_network_lacks_memory(const llm_network *w)
{
    return w && w->lacks_memory;
}

static uint64_t ps_of_ns(double ns)
{
    return ns < (double)(INT64_MAX / 1000) ? (uint64_t)llround(ns * 1000) : INT64_MAX;
}

/* On a torus a run sends messages along links, without NCCL: to a neighbour on one. */
static bool send_on_torus(const llm_network *w, uint32_t shape, uint64_t bytes, llm_moved *out)
{
    if (w->shapes[shape].torus.nodes > 1)
        return false;
    *out = (llm_moved){.ps = ps_of_ns((double)bytes / net_link_speed(w->dims.bandwidth[0]))};
    return true;
}

static bool cost_of(
    const llm_network *w, uint32_t shape, uint32_t kind, uint64_t bytes, llm_moved *out)
{
    const nccl_shape *h = &w->shapes[shape];
    const uint32_t ranks = w->is_torus ? h->torus.ranks : h->ranks;
    nccl_cost c;
    if (w->is_torus && kind == LLM_MESSAGE)
        return send_on_torus(w, shape, bytes, out);
    /* The model counts the result of an all-gather, nodes count what one rank has. */
    if (kind == ORR_COLL_ALL_GATHER)
        bytes = bytes > UINT64_MAX / ranks ? UINT64_MAX : bytes * ranks;
    if (kind == LLM_MESSAGE ? !nccl_send_cost_of(h, bytes, NULL, &c)
                            : !nccl_cost_of(h, (orr_collective)kind, bytes, NULL, &c))
        return false;
    *out = (llm_moved){.ps = ps_of_ns(c.time_ns), .latency = ps_of_ns(c.latency_ns)};
    return true;
}

bool llm_network_time(llm_network *w, uint32_t shape, uint32_t kind, uint64_t bytes, llm_moved *out)
{
    if (!w || shape == LLM_NO_SHAPE)
        return false;
    const uint64_t mix =
        (bytes + 3 * (uint64_t)kind + 31 * (uint64_t)shape) * UINT64_C(0x9e3779b97f4a7c15);
    known_time *at = &w->known[mix >> 54];
    if (at->shape != shape + 1 || at->kind != kind || at->bytes != bytes) {
        llm_moved time;
        if (!cost_of(w, shape, kind, bytes, &time))
            return false;
        *at = (known_time){.bytes = bytes, .shape = shape + 1, .kind = kind, .time = time};
    }
    *out = at->time;
    return true;
}
