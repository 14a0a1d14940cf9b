/* SPDX-License-Identifier: Apache-2.0 */
/* flow_triggers.c - what a flow that is done sets off: htsim's triggers.
 *
 * A flow tells its send_done_trigger when its sender knows that all has arrived, its
 * recv_done_trigger when the last byte is there.  A trigger that fires starts flows in the same
 * instant, without any delay of its own, the last of its list first: htsim keeps what is due on a
 * stack.  A multishot that is told more often than it has flows does nothing. Cost: one look per
 * flow and end; a trigger's flows are an array. */
#include "flow_triggers.h"

#include <inttypes.h>
#include <stdio.h>

enum { TRIGGERS_SHOWN = 10, LINE = 200 };

struct orr__triggers {
    fab *f;
    const orr__flow_list *flows;
    uint32_t *told;    /* by trigger: how often */
    uint32_t *started; /* by trigger: how many of its flows */
    orr_code code;
    orr_error error;
};

static void start_flow(orr__triggers *t, uint32_t i)
{
    const orr__flow_line *l = &t->flows->lines[i];
    const fab_send_request r = {.src = l->src,
                                .dst = l->dst,
                                .size = l->bytes,
                                .token = i,
                                .port = l->port,
                                .class = l->class};
    if (!t->code)
        t->code = fab_send(t->f, &r, &t->error);
}

static void start_all(orr__triggers *t, uint32_t number)
{
    const orr__trigger *k = &t->flows->triggers[number];
    for (uint32_t i = k->targets; i-- > 0;)
        start_flow(t, t->flows->targets[k->first + i]);
    t->started[number] = k->targets;
}

/* number is that of the trigger, and 1; 0: there is none. */
static void tell(orr__triggers *t, uint32_t number)
{
    if (number-- == 0)
        return;
    const orr__trigger *k = &t->flows->triggers[number];
    const uint32_t times = ++t->told[number];
    if (k->kind == ORR__TRIGGER_MULTISHOT && t->started[number] < k->targets)
        start_flow(t, t->flows->targets[k->first + t->started[number]++]);
    else if (k->kind == ORR__TRIGGER_ONESHOT && times == 1)
        start_all(t, number);
    else if (k->kind == ORR__TRIGGER_BARRIER && times == k->needs)
        start_all(t, number);
}

static void sent(void *context, uint64_t token)
{
    orr__triggers *t = context;
    tell(t, t->flows->by_line[token].sent);
}

static void arrived(void *context, uint64_t token)
{
    orr__triggers *t = context;
    tell(t, t->flows->by_line[token].arrived);
}

static bool hears(const void *context, uint64_t token, bool of_arrival)
{
    const orr__triggers *t = context;
    return of_arrival ? t->flows->by_line[token].arrived : t->flows->by_line[token].sent;
}

orr_code orr__triggers_create(fab *f,
                              const orr__flow_list *flows,
                              orr__triggers **out,
                              orr_error *err)
{
    orr__triggers *t = orr_alloc(1, sizeof *t);
    *out = NULL;
    if (!t)
        return orr_no_memory(err);
    t->f = f;
    t->flows = flows;
    t->told = orr_alloc(flows->trigger_count + 1, sizeof *t->told);
    t->started = orr_alloc(flows->trigger_count + 1, sizeof *t->started);
    if (!t->told || !t->started) {
        orr__triggers_destroy(t);
        return orr_no_memory(err);
    }
    fab_listen(f, &(fab_listener){t, sent, arrived, hears});
    *out = t;
    return ORR_OK;
}

void orr__triggers_destroy(orr__triggers *t)
{
    if (!t)
        return;
    orr_free(t->told);
    orr_free(t->started);
    orr_free(t);
}

orr_code orr__triggers_status(const orr__triggers *t, orr_error *err)
{
    if (t->code && err)
        *err = t->error;
    return t->code;
}

static void explain_one(const orr__triggers *t, size_t i, char line[LINE])
{
    static const char *const kinds[] = {"trigger", "oneshot", "multishot", "barrier"};
    const orr__trigger *k = &t->flows->triggers[i];
    const uint32_t waiting = k->targets - t->started[i];
    const uint32_t needs = k->kind == ORR__TRIGGER_BARRIER     ? k->needs
                           : k->kind == ORR__TRIGGER_MULTISHOT ? k->targets
                                                               : 1;
    snprintf(line, LINE,
             "%s %" PRIu64 " (line %u): %u flow%s wait%s for it; it was told %u of %u times, and "
             "%u flows could tell it",
             kinds[k->kind], k->id, k->line, waiting, waiting == 1 ? "" : "s",
             waiting == 1 ? "s" : "", t->told[i], needs, k->told);
}

void orr__triggers_explain(const orr__triggers *t, fab_say say, void *context)
{
    char line[LINE];
    size_t shown = 0;
    for (size_t i = 0; i < t->flows->trigger_count; i++) {
        if (t->started[i] == t->flows->triggers[i].targets || shown++ >= TRIGGERS_SHOWN)
            continue;
        explain_one(t, i, line);
        say(context, line);
    }
    if (shown > TRIGGERS_SHOWN) {
        snprintf(line, sizeof line, "and %zu more triggers", shown - TRIGGERS_SHOWN);
        say(context, line);
    }
}
