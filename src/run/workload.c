/* SPDX-License-Identifier: Apache-2.0 */
/* workload.c - the workload layer: which node of a rank runs when (astra-sim.md 6).
 *
 * A rank has slots: one host operation, one computation and one communication at a time (one of
 * each stream, where a trace has streams), and any number of receives.  After each completion the
 * free nodes are scanned once by ascending id, and each whose slot is available starts; nodes that
 * become free meanwhile wait for the next completion.  Ready nodes are kept by slot, so a scan
 * costs in proportion to what it starts, not to what waits. */
#include "workload.h"

#include "fold/fold.h"
#include "match.h"
#include "parts.h"
#include "run_state.h"
#include "watch.h"

#include "base/arithmetic.h"
#include "trace/attrs.h"

#include <inttypes.h>

void work_fini(run_npu *n)
{
    orr_free(n->waiting_for);
    orr_free(n->started_at);
    orr_free(n->freed);
    orr_free(n->is_moving);
    mem_tensor_log_destroy(n->tensor_log);
    for (unsigned s = 0; n->ready && s < n->graph->slot_count; s++)
        orr_bitset_fini(&n->ready[s]);
    orr_free(n->ready);
}

static void make_ready(run_npu *n, uint32_t place)
{
    orr_bitset_insert(&n->ready[n->graph->slot[place]], place);
    /* Kept beside the sets, so that a rank without ready nodes is recognised without checking each
     * of them. */
    n->ready_count++;
}

orr_code work_init(run_npu *n, const work_graph *g, orr_error *err)
{
    n->graph = g;
    n->waiting_for = orr_alloc(g->count, sizeof *n->waiting_for);
    n->started_at = orr_alloc(g->count, sizeof *n->started_at);
    n->ready = orr_alloc(g->slot_count, sizeof *n->ready);
    bool ok = n->waiting_for && n->started_at && n->ready;
    if (n->sim->system.track_local_mem)
        ok = (n->tensor_log = mem_tensor_log_create(g->count)) && ok;
    /* All slots, also those unused by this graph: run_npu has room for the maximum. */
    for (unsigned s = 0; s < WORK_SLOTS; s++)
        n->occupant[s] = RUN_NONE;
    for (unsigned s = 0; s < g->slot_count; s++)
        ok = ok && orr_bitset_init(&n->ready[s], g->count);
    if (!ok)
        return orr_no_memory(err);
    /* The graph is shared by all ranks of a class; a rank modifies its own copy of the counters. */
    memcpy(n->waiting_for, g->parents, g->count * sizeof *g->parents);
    n->result.finished_at = ORR_NEVER;
    for (uint32_t p = 0; p < g->count; p++)
        if (g->parents[p] == 0)
            make_ready(n, p);
    return ORR_OK;
}

/* All of a rank that a run changes, and nothing that ranks of a class share. A field of run_npu
 * that is forgotten here is zero in every copy of a rank, and only folded runs are wrong: the
 * drawn jobs of tests/unit/test_fold.c compare them with `--fold off`. */
void work_copy(run_npu *n, const run_npu *from)
{
    const work_graph *g = n->graph;
    memcpy(n->waiting_for, from->waiting_for, g->count * sizeof *n->waiting_for);
    memcpy(n->started_at, from->started_at, g->count * sizeof *n->started_at);
    for (unsigned s = 0; s < g->slot_count; s++)
        for (unsigned k = 0; k < n->ready[s].levels; k++)
            memcpy(n->ready[s].level[k], from->ready[s].level[k],
                   n->ready[s].words[k] * sizeof *n->ready[s].level[k]);
    n->ready_count = from->ready_count;
    n->running = from->running;
    memcpy(n->occupant, from->occupant, sizeof n->occupant);
    n->result = from->result;
    memcpy(n->active, from->active, sizeof n->active);
    memcpy(n->active_since, from->active_since, sizeof n->active_since);
    memcpy(n->has_run, from->has_run, sizeof n->has_run);
    n->sum_intensity = from->sum_intensity;
    n->sum_compute_use = from->sum_compute_use;
    n->sum_memory_use = from->sum_memory_use;
    n->sum_duration = from->sum_duration;
    n->sum_compute_bound = from->sum_compute_bound;
    n->round = from->round;
}

/* ---- values of nodes ---- */

uint64_t work_replay_time(const run_npu *n, uint64_t duration)
{
    uint64_t ns;
    /* A node without a duration takes a tick (astra-sim.md 6.3). */
    if (duration == 0 || n->sim->rules->has_ns_durations)
        return duration ? duration : 1;
    /* What does not fit wraps in the replaced program; ours refuses it, as no clock has it. */
    const bool wraps = __builtin_mul_overflow(duration, 1000, &ns);
    return wraps && !n->sim->rules->refuses_tick_zero ? UINT64_MAX : ns;
}

uint64_t work_at_speed(uint64_t duration, double speed)
{
    return speed == 1 ? duration : orr_ticks((double)duration / speed);
}

static bool is_there(const run_npu *n, uint32_t place, int64_t value, const char *name)
{
    if (value != ORR_NO_VALUE)
        return true;
    run_fail_text(n->sim, n, place, "the attribute %s is missing or not an integer", name);
    return false;
}

static bool node_int(
    const run_npu *n, uint32_t place, const int64_t *column, const char *name, int64_t *out)
{
    *out = column ? column[n->graph->node[place]] : ORR_NO_VALUE;
    return is_there(n, place, *out, name);
}

/* ---- statistics ----
 *
 * Nodes start and end in order of time, so unions of intervals need no sorting. */

/* Folded, times are those of a class, and figures are made from its log at the end
 * (fold/fold_figures.c). */
static void note_start(run_npu *n, uint32_t place)
{
    if (n->sim->fold) {
        fold_node_start(n, place);
        return;
    }
    const int k = work_class_of(n, place);
    const uint64_t now = clk_now(n->sim->clock);
    n->started_at[place] = now;
    RUN_TELL(n->sim, node_start, n, place);
    if (k < 0) {
        n->result.has_other_nodes = true;
        return;
    }
    n->has_run[k] = true;
    if (n->active[k]++ == 0)
        n->active_since[k] = now;
}

static void note_end(run_npu *n, uint32_t place)
{
    if (n->sim->fold) {
        fold_node_end(n, place);
        return;
    }
    const int k = work_class_of(n, place);
    const uint64_t now = clk_now(n->sim->clock);
    const uint8_t type = n->graph->t->columns.type[n->graph->node[place]];
    n->result.wall = now;
    RUN_TELL(n->sim, node_end, n, place);
    if (k >= 0 && --n->active[k] == 0)
        *(k == WORK_ON_DEVICE ? &n->result.gpu_time : &n->result.comm_time) +=
            now - n->active_since[k];
    if (n->graph->slot[place] == WORK_SLOT_CPU)
        n->result.cpu_time += now - n->started_at[place];
    else if (type == ORR_NODE_MEM_LOAD || type == ORR_NODE_MEM_STORE)
        n->result.memory_time += now - n->started_at[place];
}

/* ---- completion ---- */

static void set_free(run_npu *n, uint32_t place)
{
    if (!n->is_issuing) {
        make_ready(n, place);
        return;
    }
    if (!orr_grow(&n->freed, &n->freed_room, n->freed_count + 1)) {
        run_no_memory(n->sim);
        return;
    }
    /* Not into the set being scanned: a node that becomes ready during a scan waits for the next
     * completion, and one with a higher id would otherwise start in this scan. */
    n->freed[n->freed_count++] = place;
}

/* ---- compute slowed down by communication ----
 *
 * A node is not slowed while it runs: the time lost is known when it would have ended, and then it
 * runs on for that long.  So no pending event is ever moved, and the start of a collective costs an
 * addition instead of a pass over running nodes (docs/design/fluid.md). */

/* Shares in ten-thousandths, so that lost time is an integer; at most nine tenths, so that a node
 * ends. */
enum { STOLEN_UNIT = 10000, STOLEN_MOST = 9000 };

static uint64_t share_of(double cost)
{
    return (uint64_t)(cost * STOLEN_UNIT + 0.5);
}

static void count_stolen(run_npu *n)
{
    const uint64_t now = clk_now(n->sim->clock), time = now - n->stolen_until;
    const cfg_system *c = &n->sim->system;
    n->stolen_until = now;
    /* Mostly: a node begins when another one ends. */
    if (time == 0 || !(n->collectives_moving || n->messages_moving))
        return;
    uint64_t share = n->collectives_moving ? share_of(c->overlap_cost) : 0;
    if (n->messages_moving)
        share += n->messages_moving * share_of(c->message_overlap_cost);
    n->stolen += time * (share < STOLEN_MOST ? share : STOLEN_MOST);
}

void work_moving(run_npu *n, bool begins)
{
    count_stolen(n);
    /* Modulo 2^32: minus one. */
    n->collectives_moving += begins ? 1 : UINT32_MAX;
}

void work_message_moves(run_npu *n, uint32_t place)
{
    if (!n->sim->joint || !(n->sim->system.message_overlap_cost > 0))
        return;
    /* Allocated on first use: most traces have no messages that slow compute. */
    if (!n->is_moving && !(n->is_moving = orr_alloc(n->graph->count, sizeof *n->is_moving))) {
        run_no_memory(n->sim);
        return;
    }
    count_stolen(n);
    n->messages_moving += !n->is_moving[place];
    n->is_moving[place] = true;
}

static void message_ends(run_npu *n, uint32_t place)
{
    count_stolen(n);
    n->messages_moving--;
    n->is_moving[place] = false;
}

/* The node has ended: its slot is free, its children may be ready. */
static void release(run_npu *n, uint32_t place)
{
    const work_graph *g = n->graph;
    if (n->is_moving && n->is_moving[place])
        message_ends(n, place);
    note_end(n, place);
    /* Receives share a slot that is never occupied. */
    if (n->occupant[g->slot[place]] == place)
        n->occupant[g->slot[place]] = RUN_NONE;
    n->running--;
    if (n->sim->fold)
        fold_released(n, place);
    for (uint32_t e = g->child_first[place]; e < g->child_first[place + 1]; e++)
        if (--n->waiting_for[g->child[e]] == 0)
            set_free(n, g->child[e]);
}

static void take_freed(run_npu *n)
{
    n->is_issuing = false;
    for (size_t i = 0; i < n->freed_count; i++)
        make_ready(n, n->freed[i]);
    n->freed_count = 0;
}

/* Under the old packet-level front end a receive may end while it is issued; then everything that
 * is ready is issued first (packet-network.md, addendum 1). */
void work_node_done(void *npu, uint64_t place)
{
    run_npu *n = npu;
    const bool was_issuing = n->is_issuing;
    /* Later events of a finished rank are ignored (astra-sim.md 6.1). */
    if (n->result.finished_at != ORR_NEVER)
        return;
    take_freed(n);
    release(n, (uint32_t)place);
    work_issue(n);
    n->is_issuing = was_issuing;
}

/* ---- execution by type (astra-sim.md 6.3) ---- */

/* Time this node lost to communication since the last query, in whole ns. */
static uint64_t stolen_of(run_npu *n, uint32_t place)
{
    const uint8_t slot = n->graph->slot[place];
    count_stolen(n);
    const uint64_t lost = (n->stolen - n->stolen_before[slot]) / STOLEN_UNIT;
    /* Fractions of a nanosecond stay for the next query: rounding loses nothing. */
    n->stolen_before[slot] += lost * STOLEN_UNIT;
    return lost;
}

/* A slowed node runs on until it has caught up; the time lost meanwhile shrinks geometrically. */
void work_compute_ends(void *npu, uint64_t place)
{
    run_npu *n = npu;
    const uint64_t lost = stolen_of(n, (uint32_t)place);
    if (lost == 0) {
        work_node_done(n, place);
        return;
    }
    n->result.gpu_total += lost;
    run_npu_timer(n, lost, work_compute_ends, n, place);
}

/* gpu_total adds up durations, nodes that overlap included; gpu_time (note_end) is the time in
 * which any of them ran. */
static void run_for(run_npu *n, uint32_t place, uint64_t duration)
{
    const uint8_t type = n->graph->t->columns.type[n->graph->node[place]];
    if (n->graph->slot[place] != WORK_SLOT_CPU)
        n->result.gpu_total += duration;
    if (type != ORR_NODE_COMP || n->graph->slot[place] == WORK_SLOT_CPU || !n->sim->joint ||
        !(n->sim->system.overlap_cost > 0 || n->sim->system.message_overlap_cost > 0)) {
        run_npu_timer(n, duration, work_node_done, n, place);
        return;
    }
    count_stolen(n);
    /* What was lost so far is the loss of earlier nodes of this slot. */
    n->stolen_before[n->graph->slot[place]] = n->stolen;
    run_npu_timer(n, duration, work_compute_ends, n, place);
}

/* The speed of this rank for this kind of node. */
static double speed_at(const run_npu *n, uint32_t place)
{
    const uint8_t type = n->graph->t->columns.type[n->graph->node[place]];
    if (n->graph->slot[place] == WORK_SLOT_CPU)
        return n->speed->host;
    if (type == ORR_NODE_MEM_LOAD || type == ORR_NODE_MEM_STORE)
        return n->speed->memory;
    return type == ORR_NODE_COMP ? n->speed->compute : 1;
}

/* As long as the chip takes for it. */
static void run_on_chip(run_npu *n, uint32_t place)
{
    run_for(n, place, work_at_speed(n->ticks[place], speed_at(n, place)));
}

static void replay(run_npu *n, uint32_t place)
{
    const double speed = speed_at(n, place);
    const uint64_t duration =
        work_replay_time(n, n->graph->t->columns.duration_us[n->graph->node[place]]);
    run_for(n, place, work_at_speed(duration, speed));
}

work_roofline work_roofline_of(const run_npu *n, int64_t ops, int64_t size)
{
    const double peak = n->sim->system.peak_perf * n->speed->compute;
    const double memory = n->sim->system.local_mem_bw * n->speed->memory;
    work_roofline r = {.intensity = (double)(uint64_t)ops / (double)(uint64_t)size};
    const double by_memory = memory * r.intensity;
    r.perf = by_memory < peak ? by_memory : peak;
    r.compute_use = r.perf / peak;
    /* Memory utilisation: (operations per second / operations per byte) / memory bandwidth. */
    r.memory_use = r.perf / r.intensity / memory;
    return r;
}

static void note_roofline(run_npu *n, uint64_t duration, const work_roofline *r)
{
    const double peak = n->sim->system.peak_perf * n->speed->compute;
    const double weight = (double)duration;
    n->sum_duration += duration;
    if (!(r->perf < peak))
        n->sum_compute_bound += duration;
    n->sum_compute_use += weight * r->compute_use;
    n->sum_memory_use += weight * r->memory_use;
    n->sum_intensity += weight * r->intensity;
}

/* A measured trace has durations instead. num_ops decides by node, not by trace: a measured trace
 * may have computed nodes added to it. */
static bool counts_operations(const run_npu *n, uint32_t place)
{
    const orr_columns *c = &n->graph->t->columns;
    return c->num_ops && c->num_ops[n->graph->node[place]] != ORR_NO_VALUE;
}

static bool has_operations(const run_npu *n, uint32_t place)
{
    if (counts_operations(n, place))
        return true;
    run_fail_text(n->sim, n, place,
                  "roofline-enabled needs num_ops; set it to 0 to use the recorded durations");
    return false;
}

static void roofline(run_npu *n, uint32_t place)
{
    const orr_columns *c = &n->graph->t->columns;
    int64_t ops, size;
    if (!has_operations(n, place) ||
        !node_int(n, place, c->num_ops, orr__attr_name(ORR__ATTR_NUM_OPS), &ops) ||
        !node_int(n, place, c->tensor_size, orr__attr_name(ORR__ATTR_TENSOR_SIZE), &size))
        return;
    if (size == 0) {
        release(n, place); /* no duration; its children wait for another completion */
        return;
    }
    const work_roofline r = work_roofline_of(n, ops, size);
    if (!(r.perf > 0)) {
        run_fail_text(n->sim, n, place,
                      "the roofline gives no performance: num_ops, local-mem-bw or peak-perf is 0");
        return;
    }
    const uint64_t duration = orr_ticks((double)(uint64_t)ops / r.perf * 1e9);
    note_roofline(n, duration, &r);
    run_for(n, place, duration);
}

/* Communication of which only the duration is known. Neither queued nor slowed down: what was
 * measured holds its waits already. */
static void replay_communication(run_npu *n, uint32_t place)
{
    const uint64_t us = n->graph->t->columns.duration_us[n->graph->node[place]];
    run_npu_timer(n, work_replay_time(n, us), work_node_done, n, place);
}

static bool has_size(const run_npu *n, uint32_t place)
{
    const int64_t *column = n->graph->t->columns.comm_size;
    return column && column[n->graph->node[place]] != ORR_NO_VALUE;
}

static void point_to_point(run_npu *n, uint32_t place, bool is_send)
{
    const orr_columns *c = &n->graph->t->columns;
    const int64_t src = run_npu_src(n, place), dst = run_npu_dst(n, place);
    const int64_t peer = is_send ? dst : src, own = is_send ? src : dst;
    const int64_t tag = run_npu_tag(n, place);
    int64_t size;
    if (!n->sim->rules->needs_peers && peer == ORR_NO_VALUE) {
        replay_communication(n, place); /* traces converted from PyTorch lack the peer */
        return;
    }
    /* A trace given to the wrong rank would otherwise run, and wait for messages that nobody
     * sends. */
    if (own != ORR_NO_VALUE && own != (int64_t)n->rank) {
        run_fail_text(n->sim, n, place, "%s is rank %" PRId64 ", not this rank",
                      orr__attr_name(is_send ? ORR__ATTR_COMM_SRC : ORR__ATTR_COMM_DST), own);
        return;
    }
    if (!is_there(n, place, peer,
                  orr__attr_name(is_send ? ORR__ATTR_COMM_DST : ORR__ATTR_COMM_SRC)) ||
        !node_int(n, place, c->comm_size, orr__attr_name(ORR__ATTR_COMM_SIZE), &size) ||
        !is_there(n, place, tag, orr__attr_name(ORR__ATTR_COMM_TAG)))
        return;
    if (peer < 0 || peer >= (int64_t)n->sim->npu_count) {
        run_fail_text(n->sim, n, place, "the peer, rank %" PRId64 ", is not one of the %u ranks",
                      peer, n->sim->npu_count);
        return;
    }
    if (n->sim->fold) {
        fold_message(n, place, is_send, (uint64_t)size);
        return;
    }
    const clk_call done = {work_node_done, n, place};
    /* Below MSG_TAG_SPACE: a node must never match a message of a collective. */
    const uint32_t wire_tag = (uint32_t)((uint64_t)tag % MSG_TAG_SPACE);
    if (is_send)
        work_message_moves(n, place);
    if (is_send)
        msg_send(n, wire_tag, (uint32_t)peer, (uint64_t)size, done);
    else
        msg_recv(n, wire_tag, (uint32_t)peer, (uint64_t)size, done);
}

int work_kind_of(int type, const orr_rules_run *rules)
{
    if (type < 0 || type >= ORR_COLL_COUNT)
        return -1;
    if (rules->has_no_roots)
        return COLL_ROOTLESS & ORR_COLL_BIT(type) ? type : -1;
    return type == ORR_COLL_REDUCE_SCATTER_BLOCK ? ORR_COLL_REDUCE_SCATTER : type;
}

static void collective(run_npu *n, uint32_t place)
{
    const orr_columns *c = &n->graph->t->columns;
    const orr_rules_run *rules = n->sim->rules;
    const int type = c->comm_type ? c->comm_type[n->graph->node[place]] : -1;
    const int kind = work_kind_of(type, rules);
    int64_t size = 0;
    if (n->graph->slot[place] == WORK_SLOT_CPU) {
        run_fail_text(n->sim, n, place, "a collective on the host (is_cpu_op) cannot be simulated");
    } else if (type == ORR_COLL_BROADCAST && (rules->has_no_roots || !has_size(n, place))) {
        replay_communication(n, place); /* as in the reference (astra-sim.md 6.3) */
    } else if (kind < 0) {
        run_fail_text(n->sim, n, place, "comm_type %d is not a collective that can be simulated",
                      type);
    } else if (kind == ORR_COLL_BARRIER ||
               node_int(n, place, c->comm_size, orr__attr_name(ORR__ATTR_COMM_SIZE), &size)) {
        sys_collective(n, place, (orr_collective)kind, (uint64_t)size);
    }
}

static void execute(run_npu *n, uint32_t place)
{
    const cfg_system *sys = &n->sim->system;
    const orr_columns *c = &n->graph->t->columns;
    const uint8_t type = c->type[n->graph->node[place]];
    int64_t size;
    /* Before replay-only and roofline: a user who names a chip wants its times wherever it has
     * some. */
    if (n->ticks && n->ticks[place]) {
        run_on_chip(n, place);
        return;
    }
    if (sys->replay_only) {
        replay(n, place);
        return;
    }
    switch (type) {
    case ORR_NODE_COMP:
        if (sys->roofline && n->graph->slot[place] != WORK_SLOT_CPU &&
            !(sys->replays_measured && !counts_operations(n, place)))
            roofline(n, place);
        else
            replay(n, place);
        break;
    case ORR_NODE_INVALID:
        release(n, place);
        break;
    case ORR_NODE_MEM_LOAD:
    case ORR_NODE_MEM_STORE:
        if (node_int(n, place, c->tensor_size, orr__attr_name(ORR__ATTR_TENSOR_SIZE), &size))
            work_remote_access(n, (uint64_t)size, place);
        break;
    case ORR_NODE_COMM_SEND:
    case ORR_NODE_COMM_RECV:
        point_to_point(n, place, type == ORR_NODE_COMM_SEND);
        break;
    case ORR_NODE_COMM_COLL:
        collective(n, place);
        break;
    case ORR_NODE_METADATA: /* evaluated at the start */
        /* A tick by the rules that refuse an event at tick 0, none by ours. */
        run_npu_timer(n, n->sim->rules->refuses_tick_zero ? work_replay_time(n, 0) : 0,
                      work_node_done, n, place);
        break;
    default:
        run_fail_text(n->sim, n, place, "a node of type %s cannot be simulated",
                      orr_node_type_name(type) ? orr_node_type_name(type) : "unknown");
    }
}

/* ---- issuing (astra-sim.md 6.1) ---- */

/* The ready node with the smallest place >= `from` whose slot is free. */
static uint32_t next_startable(const run_npu *n, uint32_t from)
{
    uint32_t best = RUN_NONE;
    for (unsigned s = 0; n->ready_count && s < n->graph->slot_count; s++) {
        if (n->occupant[s] != RUN_NONE || orr_bitset_is_empty(&n->ready[s]))
            continue;
        const uint32_t place = orr_bitset_next(&n->ready[s], from);
        /* The minimum over all slots: the order of one scan by id (astra-sim.md 6.1). */
        if (place < best)
            best = place;
    }
    return best;
}

static void start(run_npu *n, uint32_t place)
{
    const uint8_t slot = n->graph->slot[place];
    orr_bitset_remove(&n->ready[slot], place);
    n->ready_count--;
    n->running++;
    if (slot != WORK_SLOT_RECV)
        n->occupant[slot] = place;
    note_start(n, place);
    execute(n, place);
}

static bool has_free_slots(const run_npu *n)
{
    for (unsigned s = 0; s < n->graph->slot_count; s++)
        if (n->occupant[s] != RUN_NONE)
            return false;
    return true;
}

static void close_figures(run_npu *n)
{
    /* Plus one, as in the reference (astra-sim.md 10.1), which also avoids division by 0. */
    const double total = 1 + (double)n->sum_duration;
    n->result.compute_bound = (double)n->sum_compute_bound / total;
    n->result.compute_use = n->sum_compute_use / total;
    n->result.memory_use = n->sum_memory_use / total;
    n->result.intensity = n->sum_intensity / total;
}

static void report(run_npu *n)
{
    orr_sim *s = n->sim;
    n->result.finished_at = clk_now(s->clock) - s->rounds.origin;
    /* Of several consecutive steps the last one counts, from its first start on any rank. */
    n->result.wall -= n->result.wall ? s->rounds.origin : 0;
    if (s->fold) {
        fold_rank_end(n);
        return;
    }
    if (s->lockstep)
        s->finished += n->weight;
    else
        s->finish_order[s->finished++] = n->rank;
    if (s->part)
        part_rank_finished(s, n->rank);
    RUN_TELL(s, rank_end, n);
    if (s->finished == s->npu_count && s->byte_matcher)
        clk_detach(s->clock); /* the old program ends here (packet-network.md 2) */
}

/* As at the start: nothing of its last step is running. */
static void begin_again(run_npu *n)
{
    const work_graph *g = n->graph;
    n->round++;
    memcpy(n->waiting_for, g->parents, g->count * sizeof *g->parents);
    /* Figures are those of the last step alone (run_rounds). */
    n->result = (orr_sim_rank_result){.finished_at = ORR_NEVER};
    n->sum_intensity = n->sum_compute_use = n->sum_memory_use = 0;
    n->sum_duration = n->sum_compute_bound = 0;
    n->has_run[0] = n->has_run[1] = false;
    for (uint32_t p = 0; p < g->count; p++)
        if (g->parents[p] == 0)
            make_ready(n, p);
}

static void issue(run_npu *n)
{
    uint32_t from = 0, place;
    n->is_issuing = true;
    while (!n->sim->code && (place = next_startable(n, from)) != RUN_NONE) {
        if (!n->sim->fold || fold_may_start(n, place))
            start(n, place);
        /* Only upwards: a node before this place whose slot becomes free waits for the next scan,
         * as in the reference. */
        from = place + 1;
    }
    if (n->sim->fold)
        fold_issued(n);
    take_freed(n);
}

void work_issue(run_npu *n)
{
    issue(n);
    /* A loop: a step of a trace without nodes that take time ends as soon as it is issued. */
    while (n->ready_count == 0 && n->running == 0 && has_free_slots(n) &&
           n->result.finished_at == ORR_NEVER && !n->sim->code) {
        close_figures(n);
        if (!steady_round_over(n)) {
            report(n);
            return;
        }
        begin_again(n);
        steady_round_begins(n);
        issue(n);
    }
}
