/* SPDX-License-Identifier: Apache-2.0 */
/* remote_memory.c - memory outside the ranks: a plain delay, or servers that take one access at a
 * time (astra-sim.md 7).
 *
 * A server handles one access at a time, with a FIFO queue, so the result depends only on the order
 * of events.  Records of waiting accesses are reused. */
#include "run_state.h"

#include "base/arithmetic.h"

typedef struct access {
    run_npu *npu;
    uint64_t duration;
    uint32_t place;
    struct access *next;
} access;

typedef struct server {
    bool is_busy;
    access *first, *last;
} server;

struct work_remote {
    orr_sim *sim;
    server *servers;
    access *free_accesses;
};

struct work_remote *work_remote_create(orr_sim *s)
{
    struct work_remote *r = orr_arena_new(s->arena, 1, struct work_remote);
    if (!r)
        return NULL;
    const bool has_servers = s->memory.type == CFG_MEM_PER_NODE || s->memory.type == CFG_MEM_POOL;
    r->sim = s;
    if (has_servers)
        r->servers = orr_arena_new(s->arena, s->npu_count, server);
    return r->servers || !has_servers ? r : NULL;
}

static void serve(server *v, const access *a, struct work_remote *r);

/* The server's own completion, after the requester's: the requester's next access queues behind the
 * others. */
static void server_done(void *remote, uint64_t index)
{
    struct work_remote *r = remote;
    server *v = &r->servers[index];
    access *a = v->first;
    v->is_busy = false;
    if (!a)
        return;
    v->first = a->next;
    if (!v->first)
        v->last = NULL;
    serve(v, a, r);
    a->next = r->free_accesses;
    r->free_accesses = a;
}

static void serve(server *v, const access *a, struct work_remote *r)
{
    v->is_busy = true;
    /* Two timers of one rank and tick run together, in this order: first the requester, then the
     * server. */
    run_npu_timer(a->npu, a->duration, work_node_done, a->npu, a->place);
    run_npu_timer(a->npu, a->duration, server_done, r, (uint64_t)(v - r->servers));
}

static void wait_for(server *v, const access *a, struct work_remote *r)
{
    access *kept = r->free_accesses;
    if (kept)
        r->free_accesses = kept->next;
    else
        kept = orr_arena_new(r->sim->arena, 1, access);
    if (!kept) {
        run_no_memory(r->sim);
        return;
    }
    *kept = *a;
    kept->next = NULL;
    if (v->last)
        v->last->next = kept;
    else
        v->first = kept;
    v->last = kept;
}

void work_remote_access(run_npu *n, uint64_t size, uint32_t place)
{
    orr_sim *s = n->sim;
    const cfg_memory *c = &s->memory;
    if (c->type == CFG_MEM_NONE) {
        run_fail_text(s, n, place,
                      s->opt.memory
                          ? "remote memory access, but the memory file says NO_MEMORY_EXPANSION"
                          : "remote memory access, but there is no memory file (--memory), and no "
                            "machine with host_bandwidth");
        return;
    }
    if (!(c->bandwidth > 0)) {
        run_fail_text(s, n, place, "remote memory access, but remote-mem-bw is missing or 0");
        return;
    }
    const double speed = c->bandwidth * (c->is_host ? 1 : n->speed->memory);
    const access a = {n, c->latency + orr_ticks((double)size / speed), place, NULL};
    if (c->type == CFG_MEM_PER_NPU) {
        run_npu_timer(n, a.duration, work_node_done, n, place);
        return;
    }
    server *v = &s->remote->servers[c->type == CFG_MEM_POOL ? 0 : n->rank / c->npus_per_node];
    if (v->is_busy)
        wait_for(v, &a, s->remote);
    else
        serve(v, &a, s->remote);
}
