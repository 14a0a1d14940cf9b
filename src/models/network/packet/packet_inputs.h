/* SPDX-License-Identifier: Apache-2.0 */
/* packet_inputs.h - the files of a packet network, read and checked against each other. */
#ifndef ORR_MODELS_PACKET_INPUTS_H
#define ORR_MODELS_PACKET_INPUTS_H

#include "models/network/packet/engine/fabric.h"

struct orr__topology;

typedef struct orr__packet_inputs {
    orr__packet_config config;
    orr__cabling cabling;
    /* what the cabling was made of, when that is a file of ours or htsim's */
    struct orr__topology *links;
    orr__link_events link_events;
    bool *is_traced; /* by node; NULL: no trace is wanted */
    orr_arena *arena;
    char **warnings; /* what is odd, but not wrong */
    size_t warning_count, warning_room;
} orr__packet_inputs;

/* What a caller has that the configuration may have, too; NULL: the configuration decides. */
typedef struct orr__packet_given {
    const char *config;                /* NULL: defaults for everything */
    const char *topology;              /* instead of TOPOLOGY_FILE; of any kind */
    const struct orr__topology *links; /* instead of both */
    const char *keys; /* keys and values over those of the configuration; NULL: none */
    const struct orr_rules_packet *rules; /* NULL: ours */
    unsigned threads;                     /* 0: as many as pay */
    bool wants_history;
    bool counts_events; /* there is a limit on them */
    const char
        *replaced[5]; /* outputs that go elsewhere than the configuration says; NULL ends them */
} orr__packet_given;

/* On failure nothing needs to be undone. */
orr_code orr__packet_inputs_read(orr__packet_inputs *in,
                                 const orr__packet_given *given,
                                 orr_error *err) ORR_MUST_CHECK;
void orr__packet_inputs_fini(orr__packet_inputs *in);

#endif
