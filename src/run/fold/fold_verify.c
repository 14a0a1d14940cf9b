/* SPDX-License-Identifier: Apache-2.0 */
/* fold_verify.c - verification on request: keeps the results of a folded run and compares them with
 * a run of every rank.
 *
 * Everything that results are derived from is compared: statistics of ranks and node types,
 * traffic, links, times of steps, and the whole log if there is one.  Results that are only printed
 * from these are not. */
#include "fold_impl.h"

#include <inttypes.h>
#include <stdio.h>

struct fold_found {
    orr_arena *arena;
    orr_sim_rank_result *ranks;
    uint64_t *busy; /* ns, by rank */
    watch_tally *tallies;
    size_t tally_count;
    watch_traffic traffic[ORR_NET_DIMS]; /* by dimension */
    uint64_t messages;                   /* of the recorded step */
    uint32_t simulated, simulated_last;
    orr_sim_steps rounds;   /* times of consecutive steps */
    bool has_log, has_bins; /* steps were kept; and traffic over time */
    watch_traffic_bins bins;
    watch_step *steps;
    size_t step_count;
    watch_instance *instances;
    watch_phase *phases;
    size_t phase_count;
    uint64_t *uses; /* by rank: WATCH_USES of them, and the overlap; NULL: not split */
    struct fold_links {
        orr_net_link *links;
        size_t count, room;
        bool failed;
    } links;
};

enum { USES = WATCH_USES + 1 };

static void keep_link(void *context, const orr_net_link *link)
{
    struct fold_links *k = context;
    if (k->failed || !orr_grow(&k->links, &k->room, k->count + 1))
        k->failed = true;
    else
        k->links[k->count++] = *link;
}

static uint64_t use_of(const orr_sim *s, uint32_t rank, unsigned use)
{
    return use < WATCH_USES ? watch_spent(s, rank, (watch_use)use) : watch_overlapped(s, rank);
}

/* Where the time of each rank went. */
static bool keep_uses(struct fold_found *k, const orr_sim *s)
{
    if (!s->watch->splits)
        return true;
    if (!(k->uses = orr_arena_new(k->arena, (size_t)s->npu_count * USES, uint64_t)))
        return false;
    for (uint32_t r = 0; r < s->npu_count; r++)
        for (unsigned u = 0; u < USES; u++)
            k->uses[(size_t)r * USES + u] = use_of(s, r, u);
    return true;
}

/* The log changes owner. */
static bool keep_log(struct fold_found *k, const orr_sim *s)
{
    struct watch_record *w = s->watch;
    if (!w->keeps_steps)
        return true;
    if (!watch_log_settle(s, NULL))
        return false;
    k->has_log = true;
    k->has_bins = w->bins;
    if (w->bins)
        k->bins = *w->bins;
    k->steps = w->log.steps;
    k->step_count = w->log.step_count;
    k->instances = w->instances;
    k->phases = w->log.phases;
    k->phase_count = w->log.phase_count;
    if (!w->log.is_copy) { /* all ranks were simulated, if not all consecutive steps */
        /* The log's lists are those of the record, which must not free them. */
        w->steps = NULL;
        w->phases = NULL;
        w->step_count = w->step_room = w->phase_count = w->phase_room = 0;
    }
    w->log.steps = NULL;
    w->log.phases = NULL;
    w->instances = NULL;
    w->instance_count = w->instance_room = 0;
    watch_log_drop(w);
    return true;
}

/* Copies of what the second run will overwrite; logs change owner, since they may be large. */
struct fold_found *fold_keep_found(const orr_sim *s)
{
    const uint32_t count = s->npu_count;
    orr_arena *a = orr_arena_create();
    struct fold_found *k = a ? orr_arena_new(a, 1, struct fold_found) : NULL;
    if (k) {
        k->arena = a;
        k->ranks = orr_arena_new(a, count, orr_sim_rank_result);
        k->busy = orr_arena_new(a, count, uint64_t);
        k->tallies = orr_arena_new(a, s->watch->tally_count, watch_tally);
    }
    if (!k || !k->ranks || !k->busy || !k->tallies || !keep_uses(k, s) || !keep_log(k, s)) {
        orr_arena_destroy(a);
        return NULL;
    }
    for (uint32_t r = 0; r < count; r++) {
        k->ranks[r] = *orr_sim_rank(s, r);
        k->busy[r] = watch_busy(s, r);
    }
    k->tally_count = s->watch->tally_count;
    if (k->tally_count)
        memcpy(k->tallies, s->watch->tallies, k->tally_count * sizeof *k->tallies);
    memcpy(k->traffic, s->watch->traffic, sizeof k->traffic);
    k->messages = s->messages;
    k->rounds = orr_sim_steps_of(s);
    orr_sim_visit_links(s, keep_link, &k->links);
    k->simulated = orr_sim_simulated(s);
    k->simulated_last = orr_sim_simulated_last(s);
    return k;
}

void fold_drop_found(struct fold_found *k)
{
    if (!k)
        return;
    orr_free(k->steps);
    orr_free(k->instances);
    orr_free(k->phases);
    orr_free(k->links.links);
    orr_arena_destroy(k->arena);
}

static orr_code differ(orr_error *err, const char *what, uint64_t folded, uint64_t each)
{
    return orr_fail(err, ORR_EBUG, NULL,
                    "folding is wrong: %s is %" PRIu64 " folded and %" PRIu64
                    " with every rank simulated",
                    what, folded, each);
}

static orr_code compare_ranks(const struct fold_found *k, const orr_sim *s, orr_error *err)
{
    for (uint32_t r = 0; r < s->npu_count; r++) {
        const orr_sim_rank_result *a = &k->ranks[r], *b = orr_sim_rank(s, r);
        const struct {
            const char *what;
            uint64_t folded, each;
        } all[] = {{"finished_at", a->finished_at, b->finished_at},
                   {"gpu_total", a->gpu_total, b->gpu_total},
                   {"wall", a->wall, b->wall},
                   {"gpu_time", a->gpu_time, b->gpu_time},
                   {"comm_time", a->comm_time, b->comm_time},
                   {"cpu_time", a->cpu_time, b->cpu_time},
                   {"memory_time", a->memory_time, b->memory_time},
                   {"busy", k->busy[r], watch_busy(s, r)},
                   {"has_other_nodes", a->has_other_nodes, b->has_other_nodes}};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            if (all[i].folded != all[i].each) {
                char what[64];
                snprintf(what, sizeof what, "%s of rank %u", all[i].what, r);
                return differ(err, what, all[i].folded, all[i].each);
            }
        /* Doubles, to the bit: they are summed in the same order in both runs. */
        if (a->compute_bound != b->compute_bound || a->compute_use != b->compute_use ||
            a->memory_use != b->memory_use || a->intensity != b->intensity)
            return differ(err, "the roofline of a rank", r, r);
    }
    return ORR_OK;
}

static orr_code compare_tally(const struct fold_found *k, const watch_tally *b, orr_error *err)
{
    /* By content, not by position: rows are in order of appearance, which folding changes. */
    for (size_t i = 0; i < k->tally_count; i++) {
        const watch_tally *a = &k->tallies[i];
        if (a->type != b->type || a->collective != b->collective ||
            a->group_ranks != b->group_ranks || a->size != b->size)
            continue;
        return a->count != b->count
                   ? differ(err, "the number of nodes of a kind", a->count, b->count)
               : a->bytes != b->bytes
                   ? differ(err, "the bytes of a kind of node", a->bytes, b->bytes)
               : a->time != b->time ? differ(err, "the time of a kind of node", a->time, b->time)
               : a->exposed != b->exposed
                   ? differ(err, "the exposed time of a kind of node", a->exposed, b->exposed)
               : a->longest != b->longest
                   ? differ(err, "the longest of a kind of node", a->longest, b->longest)
               : a->groups != b->groups
                   ? differ(err, "the groups of a kind of node", a->groups, b->groups)
                   : ORR_OK;
    }
    return differ(err, "the number of nodes of a kind", 0, b->count);
}

/* ---- the log: the basis of timeline and critical path ---- */

/* Both logs are settled (watch_log.c), which removes the order within a tick: the rest must be
 * identical. */
static orr_code compare_step(const struct fold_found *k, const orr_sim *s, size_t i, orr_error *err)
{
    const struct watch_record *w = s->watch;
    const watch_step *a = &k->steps[i], *b = &w->log.steps[i];
    const struct {
        const char *what;
        uint64_t folded, each;
    } all[] = {{"rank", a->rank, b->rank},    {"node", a->place, b->place},
               {"start", a->start, b->start}, {"end", a->end, b->end},
               {"cause", a->cause, b->cause}, {"earlier member", a->earlier, b->earlier}};
    for (size_t n = 0; n < sizeof all / sizeof *all; n++)
        if (all[n].folded != all[n].each) {
            char what[80];
            snprintf(what, sizeof what, "step %zu (rank %u, place %u): %s", i, b->rank, b->place,
                     all[n].what);
            return differ(err, what, all[n].folded, all[n].each);
        }
    if ((a->instance == RUN_NONE) != (b->instance == RUN_NONE))
        return differ(err, "the collective of a step", i, i);
    if (a->instance == RUN_NONE)
        return ORR_OK;
    const watch_instance *x = &k->instances[a->instance], *y = &w->instances[b->instance];
    /* Chunk numbers continue from step to step. */
    const bool is_first = s->opt.steps < 2;
    if (x->group != y->group || (is_first && x->stream != y->stream) || x->base != y->base ||
        x->last != y->last)
        return differ(err, "the collective of a step", x->stream, y->stream);
    return ORR_OK;
}

static orr_code compare_phases(const struct fold_found *k, const orr_sim *s, orr_error *err)
{
    const struct watch_record *w = s->watch;
    orr_code code = ORR_OK;
    for (size_t i = 0; !code && i < w->log.phase_count; i++) {
        const watch_phase *a = &k->phases[i], *b = &w->log.phases[i];
        if (a->start != b->start)
            code = differ(err, "the start of a phase", a->start, b->start);
        else if (a->end != b->end)
            code = differ(err, "the end of a phase", a->end, b->end);
        else if (a->stream != b->stream && s->opt.steps < 2)
            code = differ(err, "the chunk of a phase", a->stream, b->stream);
        else if (a->data != b->data || a->step != b->step || a->dim != b->dim ||
                 a->queue != b->queue || a->kind != b->kind || a->algorithm != b->algorithm)
            code = differ(err, "a phase", i, i);
    }
    return code;
}

static orr_code compare_log(const struct fold_found *k, const orr_sim *s, orr_error *err)
{
    const struct watch_record *w = s->watch;
    if (!watch_log_settle(s, NULL))
        return orr_no_memory(err);
    if (k->step_count != w->log.step_count)
        return differ(err, "the number of steps", k->step_count, w->log.step_count);
    if (k->phase_count != w->log.phase_count)
        return differ(err, "the number of phases", k->phase_count, w->log.phase_count);
    const bool has_bins = k->has_bins && w->bins; /* some runs are too large for them */
    if (has_bins && k->bins.shift != w->bins->shift)
        return differ(err, "the time of the last message", k->bins.shift, w->bins->shift);
    for (uint32_t d = 0; has_bins && d < s->dims; d++)
        for (uint32_t i = 0; i < WATCH_TRAFFIC_BINS; i++)
            if (k->bins.bytes[d][i] != w->bins->bytes[d][i])
                return differ(err, "the bytes of a moment", k->bins.bytes[d][i],
                              w->bins->bytes[d][i]);
    orr_code code = ORR_OK;
    for (size_t i = 0; !code && i < w->log.step_count; i++)
        code = compare_step(k, s, i, err);
    return code ? code : compare_phases(k, s, err);
}

/* Where ranks spend their time, if a run splits it: the finest of all statistics. */
static orr_code compare_uses(const struct fold_found *k, const orr_sim *s, orr_error *err)
{
    for (uint32_t r = 0; k->uses && r < s->npu_count; r++)
        for (unsigned u = 0; u < USES; u++) {
            const uint64_t folded = k->uses[(size_t)r * USES + u], each = use_of(s, r, u);
            char what[64];
            snprintf(what, sizeof what, "part %u of the time of rank %u", u, r);
            if (folded != each)
                return differ(err, what, folded, each);
        }
    return ORR_OK;
}

/* Links in the order in which the network reports them, which must not depend on which ranks were
 * simulated. */
static orr_code compare_links(const struct fold_found *k, const orr_sim *s, orr_error *err)
{
    struct fold_links all = {0};
    orr_code code = ORR_OK;
    orr_sim_visit_links(s, keep_link, &all);
    if (all.failed || k->links.failed)
        code = orr_no_memory(err);
    else if (all.count != k->links.count)
        code = differ(err, "the number of links", k->links.count, all.count);
    for (size_t i = 0; !code && i < all.count; i++) {
        const orr_net_link *a = &k->links.links[i], *b = &all.links[i];
        char what[ORR_NET_LINK_NAME + 32];
        snprintf(what, sizeof what, "what went over the link %s", b->name);
        code = strcmp(a->name, b->name) != 0  ? differ(err, "the place of a link", i, i)
               : a->messages != b->messages   ? differ(err, what, a->messages, b->messages)
               : a->bytes != b->bytes         ? differ(err, what, a->bytes, b->bytes)
               : a->busy_ns != b->busy_ns     ? differ(err, what, a->busy_ns, b->busy_ns)
               : a->max_queue != b->max_queue ? differ(err, what, a->max_queue, b->max_queue)
                                              : ORR_OK;
    }
    orr_free(all.links);
    return code;
}

orr_code fold_compare_found(const struct fold_found *k, const orr_sim *s, orr_error *err)
{
    orr_code code = compare_ranks(k, s, err);
    if (!code)
        code = compare_uses(k, s, err);
    if (!code)
        code = compare_links(k, s, err);
    if (!code && k->tally_count != s->watch->tally_count)
        code = differ(err, "the number of kinds of nodes", k->tally_count, s->watch->tally_count);
    for (size_t i = 0; !code && i < s->watch->tally_count; i++)
        code = compare_tally(k, &s->watch->tallies[i], err);
    for (uint32_t d = 0; !code && d < s->dims; d++) {
        if (k->traffic[d].messages != s->watch->traffic[d].messages)
            code = differ(err, "the messages along a dimension", k->traffic[d].messages,
                          s->watch->traffic[d].messages);
        else if (k->traffic[d].bytes != s->watch->traffic[d].bytes)
            code = differ(err, "the bytes along a dimension", k->traffic[d].bytes,
                          s->watch->traffic[d].bytes);
    }
    const orr_sim_steps rounds = orr_sim_steps_of(s);
    if (!code && k->rounds.total != rounds.total)
        code = differ(err, "the time of all steps", k->rounds.total, rounds.total);
    if (!code && k->rounds.first != rounds.first)
        code = differ(err, "the time of the first step", k->rounds.first, rounds.first);
    if (!code && k->rounds.last != rounds.last)
        code = differ(err, "the time of the last step", k->rounds.last, rounds.last);
    if (!code && k->messages != s->messages)
        code = differ(err, "the number of messages", k->messages, s->messages);
    return code || !k->has_log ? code : compare_log(k, s, err);
}

void fold_say_verified(const struct fold_found *k, orr_sim *s)
{
    char steps[60] = "", last[40] = "";
    if (k->simulated_last < k->simulated)
        snprintf(last, sizeof last, ", %u at the end", k->simulated_last);
    if (k->rounds.asked > 1)
        snprintf(steps, sizeof steps, ", %u of %u steps", k->rounds.simulated, k->rounds.asked);
    snprintf(s->fold_why, sizeof s->fold_why, "verified, same results with %u of %u ranks%s%s",
             k->simulated, s->npu_count, last, steps);
}
