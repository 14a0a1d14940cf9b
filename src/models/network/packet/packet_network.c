/* SPDX-License-Identifier: Apache-2.0 */
/* packet_network.c - the packet network under the simulator: a message is a flow (packet-network.md
 * 6.1).
 *
 * fab_rules.tells_receiver_at_ack: the receiver is notified when the sender has the last ACK, right
 * after the sender; otherwise when the last byte arrives.  Time here may be finer than the clock's:
 * events between two ticks are reported at the later one. */
#include "packet_run.h"

#include "models/network/net_table.h"
#include "models/network/packet/watch/watchers.h"

typedef struct packet_net {
    fab *fabric;
    orr_net *sim;
    orr_event_source source;
    const fab_rules *rules;
} packet_net;

/* ---- callbacks of the fabric ---- */

static void sent(void *net, uint64_t token)
{
    packet_net *n = net;
    if (n->rules->tells_receiver_at_ack)
        orr_net_deliver(n->sim, token);
    else
        orr_net_complete_sender(n->sim, token);
}

static void arrived(void *net, uint64_t token)
{
    packet_net *n = net;
    if (!n->rules->tells_receiver_at_ack)
        orr_net_deliver_receiver(n->sim, token);
}

/* ---- events ---- */

static uint64_t run_events(void *net, uint64_t most)
{
    packet_net *n = net;
    orr_error err;
    const uint64_t done = fab_run(n->fabric, most);
    if (fab_status(n->fabric, &err))
        orr_net_fail(n->sim, &err);
    return done;
}

static bool next_at(const void *net, uint64_t *at)
{
    const packet_net *n = net;
    const unsigned unit = fab_unit(n->fabric);
    if (!fab_next_at(n->fabric, at))
        return false;
    /* Rounded up: otherwise the clock would see an event before it has happened. */
    *at = (*at + unit - 1) / unit;
    return true;
}

const orr_event_source *orr__net_packet_events(void *net, orr_net *sim, orr_event_line *line)
{
    packet_net *n = net;
    n->sim = sim;
    n->source = (orr_event_source){run_events, next_at, n};
    fab_join(n->fabric, line);
    return &n->source;
}

/* ---- the model ---- */

static void packet_destroy(void *net)
{
    packet_net *n = net;
    if (!n)
        return;
    fab_destroy(n->fabric);
    orr_free(n);
}

static orr_code packet_create(const orr_net_config *cfg, void **out, orr_error *err)
{
    const orr__net_config *own = orr__net_config_of(cfg);
    const orr__packet_inputs *in = own ? own->packet : NULL;
    *out = NULL;
    if (!in)
        return orr_fail(err, ORR_EBUG, &cfg->where, "the packet network has no inputs");
    packet_net *n = orr_alloc(1, sizeof *n);
    if (!n)
        return orr_no_memory(err);
    const fab_listener watcher = {.context = n, .sent = sent, .arrived = arrived};
    const fab_output_paths paths = {.fct = in->config.fct_out,
                                    .pfc = in->config.pfc_out,
                                    .qlen = in->config.qlen_out,
                                    .trace = in->is_traced ? in->config.trace_out : "",
                                    .is_traced = in->is_traced};
    n->rules = &orr__packet_rules(in->config.rules)->engine;
    orr_code code = fab_create_watched(&in->config, &in->cabling, &paths, &n->fabric, err);
    if (!code)
        code = fab_plan(n->fabric, &in->link_events, err);
    if (code) {
        packet_destroy(n);
        return code;
    }
    fab_listen(n->fabric, &watcher);
    *out = n;
    return ORR_OK;
}

static orr_code packet_send(void *net, orr_net *sim, const orr_message *m, orr_error *err)
{
    packet_net *n = net;
    const fab_send_request r = {.src = m->src,
                                .dst = m->dst,
                                .size = m->size,
                                .token = m->token,
                                .in_order = n->rules->keeps_order};
    (void)sim; /* the one that requested the events */
    if (m->size > n->rules->largest_message)
        return orr_fail(err, ORR_EINPUT, NULL,
                        "rank %u sends %llu bytes to rank %u: the reference narrows sizes to 32 "
                        "bits and breaks here",
                        m->src, (unsigned long long)m->size, m->dst);
    return fab_send(n->fabric, &r, err);
}

static void packet_report(const void *net, orr_net_link_visit visit, void *context)
{
    const packet_net *n = net;
    fab_report(n->fabric, visit, context);
}

static orr_code packet_finish(void *net, orr_error *err)
{
    packet_net *n = net;
    return fab_commit(n->fabric, err);
}

void orr__net_packet_explain(const void *net, fab_say say, void *context)
{
    const packet_net *n = net;
    fab_explain(n->fabric, say, context);
}

const fab *orr__net_packet_fabric(const void *net)
{
    return ((const packet_net *)net)->fabric;
}

const orr_net_ops orr__net_packet = {
    .name = "packet",
    .help = "packet by packet: NICs, switch buffers, pauses, congestion control",
    .create = packet_create,
    .send = packet_send,
    .destroy = packet_destroy,
    .report = packet_report,
    .finish = packet_finish,
};
