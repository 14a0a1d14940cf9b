/* SPDX-License-Identifier: Apache-2.0 */
/* steps.h - what the steps of a run's log mean (critical_path.c). */
#ifndef ORR_EXPLAIN_STEPS_H
#define ORR_EXPLAIN_STEPS_H

#include "run/watch.h"

/* The send of each receive and the receive of each send, by step; NONE: none.  NULL: out of
 * memory. */
uint32_t *step_partners(const orr_sim *s);
/* The last member that joined the collective of this step before the step ended; the step itself
 * when none joined later. */
uint32_t step_last_member(const orr_sim *s, uint32_t step);
/* Whom a message goes to or comes from, or ORR_NO_VALUE. */
int64_t step_peer(const orr_sim *s, const watch_step *step, bool is_send);
uint64_t step_node_id(const orr_sim *s, const watch_step *step);
orr_str step_name(const orr_sim *s, const watch_step *step);
orr_span_kind step_kind(const orr_sim *s, const watch_step *step);
uint64_t step_size(const orr_sim *s, const watch_step *step); /* bytes; 0: unknown */

#endif
