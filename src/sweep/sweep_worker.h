/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_worker.h - a process that computes points. */
#ifndef ORR_SWEEP_WORKER_H
#define ORR_SWEEP_WORKER_H

#include "store.h"
#include "sweep_frames.h"

typedef struct swp_worker_options {
    const char *cache; /* NULL: none */
    const char *token; /* of the sweep it joins; "" on the same machine */
    uint32_t timeout_s;
    bool is_remote; /* its files may be others: each point is checked */
} swp_worker_options;

typedef enum swp_worker_end {
    SWP_WORKER_DONE = 0,
    SWP_WORKER_REFUSED = 10, /* by itself or by rank 0; it has said why */
    SWP_WORKER_ALONE = 11    /* the process that gives out points is gone */
} swp_worker_end;

/* Computes what comes over the socket until told to quit. */
swp_worker_end swp_worker_serve(orr_sweep *s, int fd, const swp_worker_options *o);

#endif
