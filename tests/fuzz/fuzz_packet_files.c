/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_packet_files.c - any bytes as a topology, as flows and as failures of links on a fixed
 * topology.  What is refused must have a place and words; what is taken must name nodes that are
 * there. */
#include "models/network/packet/packet_files.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void try_topology(orr_span bytes)
{
    orr__cabling c = {0};
    orr_error err;
    if (orr__cabling_parse(&c, bytes, "topology.txt", &err)) {
        require(err.message[0] && err.where.path[0]);
    } else {
        require(c.hosts >= 2 && c.hosts <= c.nodes && c.cable_count <= bytes.len);
        for (size_t i = 0; i < c.cable_count; i++)
            require(c.cables[i].a < c.nodes && c.cables[i].b < c.nodes && c.cables[i].rate > 0);
    }
    orr__cabling_fini(&c);
}

static void try_others(orr_span bytes)
{
    static const char text[] = "4 1 3\n3\n3 0 100Gbps 1us 0\n3 1 100Gbps 1us 0\n3 2 1Gbps 1us 0\n";
    orr__cabling c = {0};
    orr__flow_list flows = {0};
    orr__link_events events = {0};
    orr_error err;
    require(!orr__cabling_parse(&c, (orr_span){(const uint8_t *)text, strlen(text)}, "t", &err));
    if (orr__flows_parse(&flows, &c, bytes, "flow.txt", &err))
        require(err.message[0] && err.where.path[0]);
    for (size_t i = 0; i < flows.count; i++)
        require(flows.lines[i].src < 3 && flows.lines[i].dst < 3 && flows.lines[i].bytes > 0);
    if (orr__link_events_parse(&events, &c, bytes, "events.txt", &err))
        require(err.message[0] && err.where.path[0]);
    orr__link_events_fini(&events);
    orr__flows_fini(&flows);
    orr__cabling_fini(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_topology((orr_span){data, size});
    try_others((orr_span){data, size});
    return 0;
}
