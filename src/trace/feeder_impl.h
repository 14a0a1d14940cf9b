/* SPDX-License-Identifier: Apache-2.0 */
/* feeder_impl.h - the two feeders behind one handle: a whole trace in memory, or a window over a
 * file. */
#ifndef ORR_FEEDER_IMPL_H
#define ORR_FEEDER_IMPL_H

#include <orrery/feeder.h>

#include "trace_impl.h"

typedef struct orr__window orr__window;

orr_code orr__window_open(const char *path,
                          const orr_feeder_options *opt,
                          orr__window **out,
                          orr_error *err);
void orr__window_close(orr__window *w);
orr_code orr__window_next(orr__window *w, orr_node *out, orr_error *err);
orr_code orr__window_finish(orr__window *w, uint64_t id, orr_error *err);
orr_code orr__window_put_back(orr__window *w, uint64_t id, orr_error *err);
bool orr__window_find(const orr__window *w, uint64_t id, orr_node *out);
bool orr__window_has_ready(const orr__window *w);
uint64_t orr__window_in_flight(const orr__window *w);
uint64_t orr__window_left(const orr__window *w);

#endif
