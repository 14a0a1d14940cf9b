/* SPDX-License-Identifier: Apache-2.0 */
/* fab_approx.h - APPROX: stretches of a run that repeat themselves are skipped
 * (fab_approx.c). */
#ifndef ORR_MODELS_FABRIC_APPROX_H
#define ORR_MODELS_FABRIC_APPROX_H

#include "fabric_impl.h"

/* What is counted, before and after a period. */
typedef struct fab_port_counts {
    uint64_t frames, busy, bytes, paused;
    uint32_t pauses;
} fab_port_counts;

struct fab_approx {
    uint64_t wait;     /* events until a flow is chosen to look at */
    uint32_t anchor;   /* port behind whose wire it is received; FAB_NONE: none is chosen */
    uint64_t patience; /* events to wait after a failure */
    uint64_t compare,
        tries;             /* from which event on states are compared again; how often they were */
    orr_buf before, after; /* states in words; before.len 0: none yet */
    uint64_t begun_at;
    fab_figures figures;
    fab_port_counts *ports;
    uint64_t *acked; /* by flow */
    size_t acked_room;
    uint32_t *ids; /* pending events */
    size_t id_room;
};

orr_code fab_approx_create(fab *f, orr_error *err) ORR_MUST_CHECK;
void fab_approx_destroy(fab_approx *a); /* NULL is fine */
void fab_approx_choose(fab *f);         /* it is time to look at a flow */
void fab_approx_look(fab *f);           /* a packet has come over the anchor's wire */

#endif
