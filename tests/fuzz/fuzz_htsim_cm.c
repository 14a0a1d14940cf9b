/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_htsim_cm.c - any bytes as a connection matrix, run for a while on eight hosts at one
 * switch.  What is refused has a place and words; what is taken starts each flow once at most, and
 * the run ends. */
#include "models/network/packet/packet_files.h"
#include "models/network/packet/packet_run.h"
#include "models/network/packet/watch/watchers.h"
#include "models/network/topology/topology.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HOSTS = 8, MOST_EVENTS = 3000, MOST_FLOWS = 200 };

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

static void check(const orr__htsim_cm *m)
{
    const orr__flow_list *f = &m->flows;
    uint64_t targets = 0;
    for (size_t i = 0; i < f->trigger_count; i++) {
        require(f->triggers[i].kind && f->triggers[i].first == targets);
        targets += f->triggers[i].targets;
    }
    for (size_t i = 0; i < f->count; i++) {
        const orr__flow_line *l = &f->lines[i];
        require(l->src < HOSTS && l->dst < HOSTS && l->src != l->dst && l->bytes > 0);
        require((l->start_s < 0) == (f->by_line[i].starts_at > 0));
        targets -= f->by_line[i].starts_at > 0;
    }
    require(targets == 0);
}

static void run(const orr__htsim_cm *m, const orr__packet_inputs *in)
{
    fab *f;
    orr__triggers *t;
    orr_error err;
    uint64_t events = 0, some;
    require(!fab_create_watched(&in->config, &in->cabling, NULL, &f, &err));
    require(!orr__triggers_create(f, &m->flows, &t, &err));
    const orr_code code = fab_send_list(f, &m->flows, &err); /* a message of too many packets? */
    require(!code || (code == ORR_EINPUT && err.message[0]));
    while (!code && events < MOST_EVENTS && (some = fab_run(f, 1000)))
        events += some;
    const fab_figures *g = fab_figures_of(f);
    require(g->flows_done <= g->flows && g->flows <= m->flows.count);
    require(!orr__triggers_status(t, &err));
    orr__triggers_explain(t, ignore_line, NULL);
    orr__triggers_destroy(t);
    fab_destroy(f);
}

static void set_up(orr__packet_inputs *in)
{
    static const char text[] =
        "generate: {type: switch, ranks: 8, bandwidth: 400Gb/s, latency: 1us}";
    orr__topology *t;
    orr_error err;
    require(!orr__topology_parse((orr_span){(const uint8_t *)text, sizeof text - 1}, "net", 1000,
                                 &t, &err));
    require(!orr__packet_inputs_read(in, &(orr__packet_given){.links = t}, &err));
    orr__topology_destroy(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    orr__htsim_cm m;
    orr_error err;
    (void)orr__htsim_is_cm((orr_span){data, size});
    if (orr__htsim_cm_parse(&m, HOSTS, (orr_span){data, size}, "x.cm", &err)) {
        require(err.message[0] && err.where.path[0]);
        return 0;
    }
    check(&m);
    if (m.flows.count <= MOST_FLOWS && m.flows.by_line) {
        orr__packet_inputs in;
        set_up(&in);
        run(&m, &in);
        orr__packet_inputs_fini(&in);
    }
    orr__htsim_cm_fini(&m);
    return 0;
}
