/* SPDX-License-Identifier: Apache-2.0 */
/* goal_tape.h - what was sent, for orr_sim_goal. */
#ifndef ORR_RUN_GOAL_TAPE_H
#define ORR_RUN_GOAL_TAPE_H

#include "run_observer.h"

struct goal_tape;

orr_code tape_create(orr_sim *s, orr_error *err);
void tape_destroy(struct goal_tape *t); /* NULL is fine */
extern const run_observer tape_observer;
/* Who waits for a message: what the tape was asked to call, or c where it was not. */
clk_call tape_receiver(clk_call c);

#endif
