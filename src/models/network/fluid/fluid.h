/* SPDX-License-Identifier: Apache-2.0 */
/* fluid.h - flows that share resources max-min fairly; rates change only when a flow starts or ends
 * (docs/design/fluid.md).
 *
 *     fluid *f = fluid_create();
 *     uint32_t port = fluid_add(f, 50, 1);                     // one port of 50 bytes per ns
 *     fluid_use *use = fluid_use_make(f, &(fluid_part){.resource = port, .share = 1}, 1);
 *     fluid_start(f, sim, use, 1 << 20, INFINITY, done, context, 7);
 *     ...                                 // done(context, 7) is called at its end
 *
 * Flows with a *window* (fluid_use_window) share as windows do, as long as all
 * flows have one.
 *
 * A *resource* is anything with a capacity: a port, or a link in one direction.  A *use* is the
 * load on each resource per byte of the flow: 1 along the route of a message; a collective has many
 * parts.  Uses are cached and shared between flows. */
#ifndef ORR_MODELS_FLUID_H
#define ORR_MODELS_FLUID_H

#include <orrery/network.h>

#include "base/memory/map.h"
#include "base/memory/memory.h"
#include "models/network/product.h"
#include "models/network/routes.h"
#include "models/network/topology/topology.h"

typedef struct fluid fluid;
typedef struct fluid_use fluid_use;

/* How a flow with a window uses a resource: it waits in a queue, at its own port for its turn, or
 * its ACKs have priority. */
typedef enum fluid_kind { FLUID_THROUGH, FLUID_FIRST, FLUID_BACK } fluid_kind;

typedef struct fluid_part {
    uint32_t resource;
    double share;   /* bytes on this resource per byte of the flow; above 0 */
    uint32_t flows; /* flows it represents here; 0: itself alone */
    fluid_kind kind;
} fluid_part;

fluid *fluid_create(void); /* NULL: out of memory */
void fluid_destroy(fluid *f);

enum { FLUID_NONE = UINT32_MAX };
/* Bytes per ns.  Returns the number of the first; FLUID_NONE: out of memory. */
uint32_t fluid_add(fluid *f, double capacity, uint32_t count);

/* Parts of one resource are added up.  NULL: out of memory. */
fluid_use *fluid_use_make(fluid *f, const fluid_part *parts, size_t count);

/* Flows of this use have a window: bytes in flight at most; trip: ns until a byte is ACKed on an
 * idle network. */
void fluid_use_window(fluid_use *u, double trip, double bytes);

/* A flow of so many bytes, limited to `most` bytes per ns.  done is called after its last byte.
 * False: out of memory. */
bool fluid_start(fluid *f,
                 orr_net *sim,
                 fluid_use *use,
                 double bytes,
                 double most,
                 void (*done)(void *context, uint64_t argument),
                 void *context,
                 uint64_t argument);

/* Nothing flows, and no solution is pending. */
bool fluid_is_idle(const fluid *f);
/* Whether flows that start from now on count in the statistics; initially yes. */
void fluid_counts(fluid *f, bool counts);
void fluid_forget(fluid *f); /* resets the statistics; active flows no longer count */

/* Statistics of a resource so far. */
typedef struct fluid_figures {
    double bytes, capacity;
    uint64_t flows;
    uint64_t busy_ns; /* with an active flow */
    uint32_t most_flows;
} fluid_figures;
uint32_t fluid_count(const fluid *f);
fluid_figures fluid_figures_of(const fluid *f, uint32_t resource);

/* ---- paths ----
 *
 * The ports and links that a message crosses, as resources of a fluid.
 *
 * A network of dimensions: a rank has a port out and a port in for each dimension of the shape
 * Switch; rings have a link to each neighbour, fully connected groups one for each pair.  A message
 * crosses the dimensions one after the other, the lowest first, and ranks forward it while it is
 * still arriving (cut-through).  Links and devices: along shortest routes, divided if the topology
 * spreads messages; there, packets have headers, and ACKs return. */

/* Representatives of links with equal traffic, and the load of messages on them. */
typedef struct fluid_standing {
    const uint32_t *link; /* by resource: its representative */
    uint32_t links;
    orr_map *way_of; /* pair of ranks -> a way; NONE: not a known pair */
    const fluid_part *parts;
    const uint32_t *first; /* by way: the first of its parts */
} fluid_standing;

typedef struct fluid_paths {
    fluid *f;
    net_product shape;
    double speed[ORR_NET_DIMS], latency[ORR_NET_DIMS];
    uint32_t first[ORR_NET_DIMS]; /* resources of a dimension: two per rank */
    orr_map *pairs;               /* fully connected: key of a pair -> resource */
    uint64_t *pair_of;            /* the keys of those, from first_pair on */
    uint32_t *pair_order;         /* those resources, sorted for listing */
    size_t pair_count, pair_room, order_room;
    uint32_t first_pair;
    const uint32_t *stands_for; /* by rank: whose ports represent its own; NULL: its own */
    /* Lockstep with shared links (run/fold/fold_links.c); NULL: ranks do not share links. */
    const struct fluid_standing *standing;
    const orr__topology *t; /* NULL: dimensions.  A link has its own number here. */
    orr__routes *routes;
    uint32_t *cable; /* by link: its index among the cables of a device */
    const orr_where *where;
    fluid_part *parts;
    size_t part_count, part_room;
} fluid_paths;

orr_code fluid_paths_init(fluid_paths *p, const orr_net_config *cfg, fluid *f, orr_error *err);
void fluid_paths_fini(fluid_paths *p);

/* Adds the load of a stream of messages to p->parts, `share` per byte, and the latency of its first
 * byte to *latency. */
orr_code fluid_paths_add(
    fluid_paths *p, uint32_t src, uint32_t dst, double share, double *latency, orr_error *err);
/* The same for one message, the number-th of its pair: it takes one route. */
orr_code fluid_paths_add_one(fluid_paths *p,
                             uint32_t src,
                             uint32_t dst,
                             uint64_t number,
                             double share,
                             double *latency,
                             orr_error *err);
/* Over links: the window of the message whose parts are in p->parts, and its round trip on an idle
 * network. */
void fluid_paths_window(const fluid_paths *p, double *trip, double *bytes);
/* Wire bytes per byte of a message. */
double fluid_paths_overhead(const fluid_paths *p);
/* The representative whose statistics are those of this resource. */
uint32_t fluid_paths_standing(const fluid_paths *p, uint32_t resource);
/* The k-th resource in an order independent of first use; call with k from 0 on, consecutively. */
uint32_t fluid_paths_at(const fluid_paths *p, uint32_t k);
void fluid_paths_name(const fluid_paths *p, uint32_t resource, char out[ORR_NET_LINK_NAME]);

/* ---- the model ----
 *
 * Functions of the network fluid beyond network.h: flows that represent a whole collective. */

typedef struct fluid_network fluid_network;

/* net: the state of orr__net_fluid. */
fluid *fluid_network_flows(void *net);
fluid_paths *fluid_network_paths(void *net);

/* Software cost of a message: *latency is added to that of its route, *most limits its rate, in
 * bytes per ns. */
typedef void (*fluid_price)(void *context, const orr_message *m, double *latency, double *most);
void fluid_network_price(void *net, fluid_price price, void *context);

#endif
