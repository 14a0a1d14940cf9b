// SPDX-License-Identifier: Apache-2.0
// feed_trace_cpp.cc - feed a trace from C++, with the names of Chakra's feeder.
#include <orrery/feeder.hpp>
#include <orrery/lab/gen.h>

#include <cstdio>

static std::string sample()
{
    orr_error err;
    orr_trace *trace;
    const orr_pattern *p = orr_pattern_find("two_comp_nodes_dependent");
    if (orr_pattern_trace(p, &p->defaults, 0, &trace, &err) ||
        orr_trace_write(trace, "sample.et", nullptr, &err))
        throw orrery::Error(err);
    orr_trace_destroy(trace);
    return "sample.et";
}

int main(int argc, char **argv)
try {
    Chakra::ETFeeder feeder(argc > 1 ? argv[1] : sample());
    uint64_t busy_us = 0;
    while (std::shared_ptr<Chakra::ETFeederNode> node = feeder.getNextIssuableNode()) {
        std::printf("%llu %s\n", static_cast<unsigned long long>(node->id()), node->name().c_str());
        busy_us += node->runtime();
        feeder.freeChildrenNodes(node->id());
        feeder.removeNode(node->id());
    }
    std::printf("%llu us of work\n", static_cast<unsigned long long>(busy_us));
    return feeder.hasNodesToIssue() ? 1 : 0;
} catch (const std::exception &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 3;
}
