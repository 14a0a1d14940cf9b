/* SPDX-License-Identifier: Apache-2.0 */
/* fab_approx.h - APPROX: stretches of a run that repeat themselves are passed over
 * (fab_approx.c). */
#ifndef ORR_MODELS_FABRIC_APPROX_H
#define ORR_MODELS_FABRIC_APPROX_H

#include "fabric_impl.h"

/* What is counted, before and after a period. */
typedef struct orr__port_counts {
    uint64_t frames, busy, bytes, paused;
    uint32_t pauses;
} orr__port_counts;

struct orr__approx {
    uint64_t wait;     /* events until a flow is chosen to look at */
    uint32_t anchor;   /* port behind whose wire it is received; ORR__NOBODY: none is chosen */
    uint64_t patience; /* events to wait after a failure */
    uint64_t compare,
        tries;             /* from which event on states are compared again; how often they were */
    orr_buf before, after; /* states in words; before.len 0: none yet */
    uint64_t begun_at;
    orr__fabric_figures figures;
    orr__port_counts *ports;
    uint64_t *acked; /* by flow */
    size_t acked_room;
    uint32_t *ids; /* pending events */
    size_t id_room;
};

orr_code orr__approx_create(orr__fabric *f, orr_error *err) ORR_MUST_CHECK;
void orr__approx_destroy(orr__approx *a); /* NULL is fine */
void orr__approx_choose(orr__fabric *f);  /* it is time to look at a flow */
void orr__approx_look(orr__fabric *f);    /* a packet has come over the anchor's wire */

#endif
