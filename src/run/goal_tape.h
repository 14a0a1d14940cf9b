/* SPDX-License-Identifier: Apache-2.0 */
/* goal_tape.h - what was sent, for orr_sim_goal. */
#ifndef ORR_RUN_GOAL_TAPE_H
#define ORR_RUN_GOAL_TAPE_H

#include "run_observer.h"

struct orr__tape;

orr_code orr__tape_create(orr_sim *s, orr_error *err);
void orr__tape_destroy(struct orr__tape *t); /* NULL is fine */
extern const run_observer orr__tape_observer;

#endif
