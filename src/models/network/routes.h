/* SPDX-License-Identifier: Apache-2.0 */
/* routes.h - the next link on a shortest route through a topology.
 *
 *     orr__routes *r;
 *     if (orr__routes_create(topology, 0, &r, &err)) ...
 *     uint32_t link = orr__routes_next(r, at, dst, hash, &err);     // NET_LINK_ARRIVED, NET_LINK_NONE
 *
 * Failed links are ignored.  Tables are made on demand and evicted when they become too many. */
#ifndef ORR_MODELS_ROUTES_H
#define ORR_MODELS_ROUTES_H

#include "models/network/link_servers.h"
#include "models/network/topology/topology.h"

typedef struct orr__routes orr__routes;

/* The topology must outlive it.  most_bytes: for tables; 0: 256 MiB. */
orr_code orr__routes_create(const orr__topology *t,
                            size_t most_bytes,
                            orr__routes **out,
                            orr_error *err) ORR_MUST_CHECK;
void orr__routes_destroy(orr__routes *r); /* NULL is fine */

/* NET_LINK_NONE: there is no route (ORR_EINPUT), or no memory. */
uint32_t orr__routes_next(orr__routes *r, uint32_t at, uint32_t dst, uint64_t hash, orr_error *err);

/* All links that begin a shortest route: their number, at most `most`; 0: at the destination, or no
 * route (err). */
uint32_t orr__routes_choices(
    orr__routes *r, uint32_t at, uint32_t dst, uint32_t *out, uint32_t most, orr_error *err);

/* The last device before a rank, if it is unique; else the rank itself.  All routes to the rank
 * pass it. */
uint32_t orr__routes_gate(const orr__routes *r, uint32_t rank);

/* Number of earlier links between the same two devices. */
uint32_t orr__routes_twin(const orr__routes *r, uint32_t link);

/* Tables made, counting those made again; and tables in memory. */
uint64_t orr__routes_made(const orr__routes *r);
size_t orr__routes_kept(const orr__routes *r);

#endif
