/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_packet_run.c - a configuration, a topology, flows and failures, parted by lines of one '%',
 * run for a while by both sets of rules.  Whatever they say, the run ends, frames are accounted
 * for, and nothing is out of place; three threads find what one finds. */
#include "fuzz_ways.h"

#include "models/network/packet/engine/fabric.h"
#include "models/network/packet/watch/watchers.h"

#include <orrery/lab/compat.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PARTS = 4, MOST_EVENTS = 3000, MOST_NODES = 64 };

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void ignore_line(void *context, const char *line)
{
    (void)context;
    require(line[0]);
}

static orr_span next_part(orr_span *rest)
{
    const uint8_t *at = rest->len ? memchr(rest->ptr, '%', rest->len) : NULL;
    const size_t len = at ? (size_t)(at - rest->ptr) : rest->len;
    const orr_span part = {rest->ptr, len};
    *rest = at ? (orr_span){at + 1, rest->len - len - 1} : (orr_span){rest->ptr, 0};
    return part;
}

/* No files: what a run would write, the fuzzer must not. */
static void write_nothing(orr__packet_config *c)
{
    c->series_out[0] = c->bw_out[0] = c->rate_out[0] = c->cnp_out[0] = c->qlen_out[0] = 0;
}

/* True: it came to an end by itself, and figures are those of the end. */
static bool run(const orr__packet_config *config,
                const orr__cabling *cabling,
                const orr__flow_list *flows,
                const orr__link_events *events,
                fab_figures *figures)
{
    fab *f;
    orr_error err;
    uint64_t events_run = 0, some = 1;
    if (fab_create_watched(config, cabling, NULL, &f, &err)) {
        require(err.message[0]);
        return false;
    }
    require(!fab_plan(f, events, &err) && !fab_send_list(f, flows, &err));
    while (events_run < MOST_EVENTS && (some = fab_run(f, 1000)))
        events_run += some;
    *figures = *fab_figures_of(f);
    require(figures->flows_done <= figures->flows && figures->flows <= flows->count);
    const orr_code code = fab_status(f, &err);
    if (code)
        require(err.message[0]);
    fab_explain(f, ignore_line, NULL);
    fab_destroy(f);
    return !code && some == 0;
}

/* Threads take a millisecond to start: one input in eight. */
static void run_both(orr__packet_config *config,
                     const orr__cabling *cabling,
                     const orr__flow_list *flows,
                     const orr__link_events *events,
                     bool has_threads)
{
    fab_figures one, three;
    if (!run(config, cabling, flows, events, &one) || config->rules->engine.orders_by_schedule ||
        !has_threads)
        return;
    config->threads = 3;
    if (run(config, cabling, flows, events, &three))
        require(memcmp(&one, &three, sizeof one) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static orr__packet_config config;
    orr_span rest = {data, size}, parts[PARTS];
    orr_error err;
    for (int i = 0; i < PARTS; i++)
        parts[i] = next_part(&rest);
    const orr_compat *ns3 = orr_compat_at(ORR_RULES_PACKET, 0);
    FUZZ_WAYS(is_old, 1 + (ns3 != NULL), data, size)
    {
        orr__cabling cabling = {0};
        orr__flow_list flows = {0};
        orr__link_events events = {0};
        orr__packet_config_defaults(&config, is_old ? ns3->packet : NULL);
        if (!orr__packet_config_parse(&config, parts[0], "config.txt", &err) &&
            !orr__cabling_parse(&cabling, parts[1], "topology.txt", &err) &&
            cabling.nodes <= MOST_NODES &&
            !orr__flows_parse(&flows, &cabling, parts[2], "flow.txt", &err) &&
            !orr__link_events_parse(&events, &cabling, parts[3], "events.txt", &err)) {
            write_nothing(&config);
            run_both(&config, &cabling, &flows, &events, size % 8 == 0);
        }
        orr__link_events_fini(&events);
        orr__flows_fini(&flows);
        orr__cabling_fini(&cabling);
    }
    return 0;
}
