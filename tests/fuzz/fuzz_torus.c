/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_torus.c - any bytes as a network of rings, lines and switches, and as members of a group on it.
 * Each group has a shape; the time of a collective is a number, lies in its interval, has room for its
 * latency and does not fall when the bytes double; the parts on the axes add up to all. */
#include "fuzz_trace.h"

#include "models/collective/coll_torus.h"
#include "models/collective/nccl/nccl_model.h"

#include <math.h>

enum { DIMS = 4, LONGEST = 6, HEAD = 3 * DIMS + 2, MOST = 1296 };

/* A byte for the length, the kind and the rate of each dimension. */
static uint32_t read_net(const uint8_t *data, orr_net_config *n)
{
    uint32_t ranks = 1;
    *n = (orr_net_config){.size = sizeof *n, .dims = DIMS};
    for (uint32_t k = 0; k < DIMS; k++) {
        const uint8_t *d = data + 3 * k;
        n->npus[k] = d[0] % LONGEST + 1;
        n->is_open[k] = d[1] & 1;
        n->shape[k] = d[1] % 8 == 6   ? ORR_NET_SWITCH
                      : d[1] % 8 == 7 ? ORR_NET_FULLY_CONNECTED
                                      : ORR_NET_RING;
        n->bandwidth[k] = d[2] + 0.5;
        n->latency_ns[k] = 10 * d[2];
        ranks *= n->npus[k];
    }
    return ranks;
}

static void judge(const nccl_cost *c, const nccl_cost *twice)
{
    REQUIRE(isfinite(c->time_ns) && c->time_ns >= c->latency_ns && c->latency_ns >= 0);
    REQUIRE(c->low_ns <= c->time_ns && c->time_ns <= c->high_ns && isfinite(c->high_ns));
    REQUIRE(c->up_bytes >= 0 && c->out_bytes >= 0 && twice->time_ns >= c->time_ns);
}

static void check_parts(const torus_shape *s, bool is_pairs)
{
    double part[TORUS_AXES], load[TORUS_AXES], sum = 0;
    torus_parts(s, is_pairs, part);
    torus_loads(s, is_pairs, load);
    for (uint32_t i = 0; i < s->axes; i++) {
        REQUIRE(part[i] > 0 && load[i] > 0 && isfinite(load[i]));
        sum += part[i];
    }
    REQUIRE(fabs(sum - 1) < 1e-9);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    orr_net_config n;
    uint32_t members[MOST], count = 0;
    torus_shape s, ring;
    nccl_cost one, two;
    if (size <= HEAD)
        return 0;
    const uint32_t ranks = read_net(data, &n);
    const uint64_t bytes = (uint64_t)(data[HEAD - 1] + 1) << data[HEAD - 2] % 48;
    for (uint32_t i = 0; i < ranks; i++) /* the bits again and again */
        if (data[HEAD + i / 8 % (size - HEAD)] >> i % 8 & 1)
            members[count++] = i;
    if (!count)
        return 0;
    REQUIRE(torus_shape_of(&n, members, count, &s) && s.ranks == count);
    REQUIRE(torus_ring_of(&n, members, count, &ring) && ring.is_ring);
    for (unsigned kind = 0; kind < ORR_COLL_COUNT; kind++)
        if (torus_cost_of(&s, (orr_collective)kind, bytes, &one) && count > 1) {
            REQUIRE(torus_cost_of(&s, (orr_collective)kind, 2 * bytes, &two));
            judge(&one, &two);
        }
    if (!s.is_ring && s.axes) {
        check_parts(&s, false);
        check_parts(&s, true);
    }
    if (count > 1) {
        REQUIRE(torus_send_cost_of(&ring, bytes, &one) &&
                torus_send_cost_of(&ring, 2 * bytes, &two));
        judge(&one, &two);
    }
    return 0;
}
