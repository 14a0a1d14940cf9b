/* SPDX-License-Identifier: Apache-2.0 */
/* fluid_paths.h - which ports and links a message crosses, as resources of a fluid.
 *
 * A network of dimensions: a rank has a port out and a port in for each dimension of the shape
 * Switch; rings have a link to each neighbour, fully connected groups one for each pair.  A message
 * crosses the dimensions one after the other, the lowest first, and ranks pass it on while it still
 * comes in (cut-through).  Links and devices: along shortest routes, divided where the topology
 * says that messages take turns; there, packets have headers, and ACKs come back. */
#ifndef ORR_MODELS_FLUID_PATHS_H
#define ORR_MODELS_FLUID_PATHS_H

#include "base/memory/map.h"
#include "fluid.h"
#include "models/network/product.h"
#include "models/network/routes.h"
#include "models/network/topology/topology.h"

/* Links that stand for those that carry the same, and what messages take of them. */
typedef struct fluid_standing {
    const uint32_t *link; /* by resource: the one that stands for it */
    uint32_t links;
    orr_map *way_of; /* pair of ranks -> a way; NONE: out of those that were asked for */
    const fluid_part *parts;
    const uint32_t *first; /* by way: its parts, up to those of the next */
} fluid_standing;

typedef struct fluid_paths {
    fluid *f;
    net_product shape;
    double speed[ORR_NET_DIMS], latency[ORR_NET_DIMS];
    uint32_t first[ORR_NET_DIMS]; /* resources of a dimension: two for each rank */
    orr_map *pairs;               /* fully connected: key of a pair -> resource */
    uint64_t *pair_of;            /* the keys of those, from first_pair on */
    uint32_t *pair_order;         /* those resources, sorted when they are listed */
    size_t pair_count, pair_room, order_room;
    uint32_t first_pair;
    const uint32_t *stands_for; /* by rank: whose ports stand for its own; NULL: they do */
    /* In lock step, where ranks share links (run/fold/fold_links.c); NULL: they do not. */
    const struct fluid_standing *standing;
    const orr__topology *t; /* NULL: dimensions.  A link has its own number here. */
    orr__routes *routes;
    uint32_t *cable; /* by link: its place among those of a device */
    const orr_where *where;
    fluid_part *parts;
    size_t part_count, part_room;
} fluid_paths;

orr_code fluid_paths_init(fluid_paths *p, const orr_net_config *cfg, fluid *f, orr_error *err);
void fluid_paths_fini(fluid_paths *p);

/* Adds what a stream of messages crosses to p->parts, `share` bytes for each of its own, and to
 * *latency what its first byte takes. */
orr_code fluid_paths_add(
    fluid_paths *p, uint32_t src, uint32_t dst, double share, double *latency, orr_error *err);
/* The same of one message, the number-th of its pair: it takes one route. */
orr_code fluid_paths_add_one(fluid_paths *p,
                             uint32_t src,
                             uint32_t dst,
                             uint64_t number,
                             double share,
                             double *latency,
                             orr_error *err);
/* Over links: the window of the message whose parts are in p->parts, and its round trip when nobody
 * else sends. */
void fluid_paths_window(const fluid_paths *p, double *trip, double *bytes);
/* Bytes on the wire for each byte of a message. */
double fluid_paths_overhead(const fluid_paths *p);
/* The resource whose figures are those of this one. */
uint32_t fluid_paths_standing(const fluid_paths *p, uint32_t resource);
/* The k-th resource in an order that does not depend on who sent first; k from 0 on, one by one. */
uint32_t fluid_paths_at(const fluid_paths *p, uint32_t k);
void fluid_paths_name(const fluid_paths *p, uint32_t resource, char out[ORR_NET_LINK_NAME]);

#endif
