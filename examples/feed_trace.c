/* SPDX-License-Identifier: Apache-2.0 */
/* feed_trace.c - feed a trace from C.  cc feed_trace.c $(pkg-config --cflags --libs orrery) */
#include <orrery/lab/lab.h>
#include <orrery/orrery.h>

#include <inttypes.h>
#include <stdio.h>

static int report(const orr_error *err)
{
    char text[600];
    fprintf(stderr, "%s\n", orr_error_text(err, text, sizeof text));
    return 3;
}

int main(int argc, char **argv)
{
    orr_error err;
    orr_trace *trace;
    orr_feeder *feeder;
    uint32_t node;
    uint64_t busy_us = 0;
    const orr_pattern *sample = orr_pattern_find("two_comp_nodes_dependent");
    if (argc > 1 ? orr_trace_read(argv[1], NULL, &trace, &err)
                 : orr_pattern_trace(sample, &sample->defaults, 0, &trace, &err))
        return report(&err);
    if (orr_feeder_create(trace, NULL, &feeder, &err))
        return report(&err);
    const orr_columns *c = orr_trace_columns(trace);
    while ((node = orr_feeder_take(feeder)) != ORR_NO_NODE) {
        const orr_str name = orr_trace_name(trace, node);
        printf("%" PRIu64 " %.*s: %" PRIu64 " us\n", c->id[node], (int)name.len, name.ptr,
               c->duration_us[node]);
        busy_us += c->duration_us[node];
        orr_feeder_done(feeder, node);
    }
    printf("%" PRIu64 " us of work\n", busy_us);
    orr_feeder_close(feeder);
    orr_trace_destroy(trace);
    return 0;
}
