/* SPDX-License-Identifier: Apache-2.0 */
/* flow_triggers.h - flows that wait for others, on the packet network.
 *
 *     orr__triggers *t;
 *     if (orr__triggers_create(fabric, &flows, &t, &err)) ...    // now the fabric tells it of flows
 *     while (fab_run(fabric, 100000)) ;
 *     orr__triggers_explain(t, say, context);                    // which flows never started, and why
 *     orr__triggers_destroy(t); */
#ifndef ORR_MODELS_FLOW_TRIGGERS_H
#define ORR_MODELS_FLOW_TRIGGERS_H

#include "models/network/packet/engine/fabric.h"

typedef struct orr__triggers orr__triggers;

/* Fabric and flows must live on. */
orr_code orr__triggers_create(fab *f,
                              const orr__flow_list *flows,
                              orr__triggers **out,
                              orr_error *err) ORR_MUST_CHECK;
void orr__triggers_destroy(orr__triggers *t); /* NULL is fine */

/* A flow could not be started. */
orr_code orr__triggers_status(const orr__triggers *t, orr_error *err) ORR_MUST_CHECK;
void orr__triggers_explain(const orr__triggers *t, fab_say say, void *context);

#endif
