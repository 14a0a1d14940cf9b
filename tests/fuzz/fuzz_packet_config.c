/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_packet_config.c - any bytes as a configuration of the packet network, by both sets of
 * rules.  What is refused must have a place and words. */
#include "models/network/packet/packet_config.h"

#include <orrery/lab/compat.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static orr__packet_config c;
    orr_error err;
    const orr_compat *ns3 = orr_compat_at(ORR_RULES_PACKET, 0);
    for (int is_old = 0; is_old < 1 + (ns3 != NULL); is_old++) {
        orr__packet_config_defaults(&c, is_old ? ns3->packet : NULL);
        if (orr__packet_config_parse(&c, (orr_span){data, size}, "config.txt", &err))
            require(err.message[0] && err.where.path[0]);
        else
            require(c.payload > 0 && c.chunk > 0 && c.mark_count <= ORR__MARKS_MOST);
    }
    return 0;
}
