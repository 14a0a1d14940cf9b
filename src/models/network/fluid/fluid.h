/* SPDX-License-Identifier: Apache-2.0 */
/* fluid.h - flows that share what they cross: each gets as much as it can have without taking from
 * one that has less (max-min fairness), and rates change only when a flow starts or ends
 * (docs/design/fluid.md).
 *
 *     fluid *f = fluid_create();
 *     uint32_t port = fluid_add(f, 50, 1);                     // one port of 50 bytes per ns
 *     fluid_use *use = fluid_use_make(f, &(fluid_part){.resource = port, .share = 1}, 1);
 *     fluid_start(f, sim, use, 1 << 20, INFINITY, done, context, 7);
 *     ...                                 // done(context, 7) is called when the bytes are through
 *
 * Flows with a *window* (fluid_use_window) share as windows do, as long as all
 * flows have one.
 *
 * A *resource* is anything with a capacity: a port, or a link in one direction.  A *use* says how
 * much of each resource a flow takes for each byte of its own: 1 along the route of a message; a
 * collective has many parts.  Uses are kept and shared by the flows that have them. */
#ifndef ORR_MODELS_FLUID_H
#define ORR_MODELS_FLUID_H

#include <orrery/network.h>

#include "base/memory/memory.h"

typedef struct fluid fluid;
typedef struct fluid_use fluid_use;

/* How a flow with a window meets a resource: it waits in a queue, at its own port for its turn, or
 * its ACKs pass first. */
typedef enum fluid_kind { FLUID_THROUGH, FLUID_FIRST, FLUID_BACK } fluid_kind;

typedef struct fluid_part {
    uint32_t resource;
    double share;   /* bytes that this resource carries for each byte of the flow; above 0 */
    uint32_t flows; /* that the flow stands for here; 0: itself alone */
    fluid_kind kind;
} fluid_part;

fluid *fluid_create(void); /* NULL: out of memory */
void fluid_destroy(fluid *f);

enum { FLUID_NONE = UINT32_MAX };
/* Bytes per ns.  Returns the number of the first; FLUID_NONE: out of memory. */
uint32_t fluid_add(fluid *f, double capacity, uint32_t count);

/* Parts of one resource are added up.  NULL: out of memory. */
fluid_use *fluid_use_make(fluid *f, const fluid_part *parts, size_t count);

/* Flows of this use have a window: bytes under way at most; trip: ns until a byte is ACKed when
 * nobody else sends. */
void fluid_use_window(fluid_use *u, double trip, double bytes);

/* A flow of so many bytes, not faster than `most` bytes per ns.  done is called when its last byte
 * is through.  False: out of memory. */
bool fluid_start(fluid *f,
                 orr_net *sim,
                 fluid_use *use,
                 double bytes,
                 double most,
                 void (*done)(void *context, uint64_t argument),
                 void *context,
                 uint64_t argument);

/* Nothing flows, and no rate is to be worked out. */
bool fluid_is_idle(const fluid *f);
/* Flows that start from now on are part of the figures, or not; at first they are. */
void fluid_counts(fluid *f, bool counts);
void fluid_forget(fluid *f); /* figures begin at 0; flows that are under way count no more */

/* What went through a resource so far. */
typedef struct fluid_figures {
    double bytes, capacity;
    uint64_t flows;
    uint64_t busy_ns; /* with a flow under way */
    uint32_t most_flows;
} fluid_figures;
uint32_t fluid_count(const fluid *f);
fluid_figures fluid_figures_of(const fluid *f, uint32_t resource);

#endif
