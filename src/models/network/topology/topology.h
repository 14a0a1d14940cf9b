/* SPDX-License-Identifier: Apache-2.0 */
/* topology.h - a network as devices and links: from a link-level topology file
 * (docs/format/topology.md), or from the product of a few dimensions.
 *
 *     orr__topology *t;
 *     if (orr__topology_parse(bytes, "net.yml", ORR__MOST_LINKS, &t, &err)) ...
 *     for (size_t i = 0; i < t->link_count; i++) use(&t->links[i]);
 *     orr__topology_destroy(t);
 *
 * Devices are numbered: the ranks, then the switches.  Links have one direction; a cable is two of
 * them. */
#ifndef ORR_MODELS_TOPOLOGY_H
#define ORR_MODELS_TOPOLOGY_H

#include "base/formats/yaml.h"
#include <orrery/network.h>

#include "base/memory/map.h"
#include "base/memory/memory.h"
#include "models/network/product.h"

enum { ORR__MOST_RANKS = 1 << 24, ORR__MOST_LINKS = 1 << 24, ORR__MOST_COST = 1 << 16 };

/* Choice among equally short routes. */
typedef enum orr__routing {
    ORR__ROUTE_BY_MESSAGE, /* by a hash of source, destination and the message's number */
    ORR__ROUTE_BY_PAIR,    /* by a hash of source and destination */
    ORR__ROUTE_FIRST       /* the link that comes first in the file */
} orr__routing;

typedef struct orr__wire {
    double speed, latency; /* bytes per ns, ns */
    uint32_t from, to;
    double error;   /* probability of packet loss; only for packets */
    uint32_t cost;  /* the route with the smallest sum is the shortest */
    bool is_failed; /* unusable */
} orr__wire;

typedef struct orr__topology {
    uint32_t ranks;
    orr_intern *switches;   /* names; the number of a switch + ranks is its device */
    orr_intern *rank_names; /* NULL: ranks have numbers only */
    orr__wire *links;
    size_t link_count, link_room, most_links;
    orr__routing routing;
    bool ranks_forward; /* a route may lead through ranks */
    uint32_t dims;      /* as collectives see the ranks */
    uint32_t npus[ORR_NET_DIMS];
    char *description; /* the file itself, if it is short and generates; NULL otherwise */
    size_t description_len;
    bool *is_nvswitch; /* by number of the switch, as far as nv_room goes */
    size_t nv_room;
    uint32_t gpus_per_server; /* ranks that share an NVSwitch, consecutive; 0: not known */
} orr__topology;

orr_code orr__topology_create(orr__topology **out, orr_error *err) ORR_MUST_CHECK;
void orr__topology_destroy(orr__topology *t); /* NULL is fine */

uint32_t orr__topology_devices(const orr__topology *t);
/* ranks must be set before. */
orr_code orr__topology_add_switch(orr__topology *t,
                                  orr_str name,
                                  uint32_t *device_out,
                                  orr_error *err) ORR_MUST_CHECK;
orr_code orr__topology_add_link(orr__topology *t,
                                const orr__wire *link,
                                orr_error *err) ORR_MUST_CHECK;
/* A switch inside a server: SimAI's files distinguish them. */
orr_code orr__topology_mark_nvswitch(orr__topology *t,
                                     uint32_t device,
                                     orr_error *err) ORR_MUST_CHECK;
bool orr__topology_is_nvswitch(const orr__topology *t, uint32_t device);
/* Both directions. */
orr_code orr__topology_add_cable(orr__topology *t,
                                 const orr__wire *link,
                                 orr_error *err) ORR_MUST_CHECK;
/* All links of a product; speeds and latencies by dimension. */
orr_code orr__topology_add_product(orr__topology *t,
                                   const net_product *p,
                                   const double *speed,
                                   const double *latency,
                                   orr_error *err) ORR_MUST_CHECK;
/* The graph of a network with dimensions; with the routing ORR__ROUTE_FIRST it is that of
 * aware.c. */
orr_code orr__topology_of_product(const orr_net_config *cfg,
                                  orr__topology **out,
                                  orr_error *err) ORR_MUST_CHECK;

/* Links that are slower than in the topology, or failed.  from and to select them, see below. */
typedef struct orr__link_change {
    const char *const *from, *const *to; /* texts, NULL-terminated */
    bool is_one_way;                     /* else also links from `to` to `from` */
    bool is_failed;                      /* unusable */
    double bandwidth;                    /* factor; above 0 */
    double latency;                      /* factor; not below 0 */
    orr_where where;                     /* for messages */
} orr__link_change;
orr_code orr__topology_change(orr__topology *t,
                              const orr__link_change *changes,
                              size_t count,
                              orr_error *err) ORR_MUST_CHECK;

/* A list of devices. */
typedef struct orr__devices {
    uint32_t *list;
    size_t count, room;
} orr__devices;
/* Adds the devices named by a text: "12", "0-7", "leaf0", "leaf[0-3]". */
orr_code orr__topology_select(const orr__topology *t,
                              orr_str text,
                              const orr_where *where,
                              orr__devices *out,
                              orr_error *err) ORR_MUST_CHECK;
/* "leaf[0-3]" -> each name; a text without brackets is one name. */
typedef orr_code (*orr__name_visit)(void *context, orr_str name, orr_error *err);
orr_code orr__topology_names(orr_str text,
                             const orr_where *where,
                             orr__name_visit visit,
                             void *context,
                             orr_error *err) ORR_MUST_CHECK;
void orr__topology_name(const orr__topology *t, uint32_t device, char out[NET_DEVICE_NAME]);

/* A file (topology_file.c).  *out is NULL, without an error, if it is not a link-level topology. */
orr_code orr__topology_parse(orr_span bytes,
                             const char *path,
                             size_t most_links,
                             orr__topology **out,
                             orr_error *err) ORR_MUST_CHECK;

/* ---- for the files of this folder ---- */

/* Defaults of a link; speed 0: none. */
typedef struct orr__link_defaults {
    double speed, latency;
} orr__link_defaults;

extern const char *const orr__topology_keys[]; /* of a file of ours; the last is NULL */

/* ---- cables ----
 *
 * A network as nodes and the cables between them (packet-network.md 4.1, 13). */

typedef enum orr__node_kind { ORR__HOST, ORR__SWITCH, ORR__NVSWITCH } orr__node_kind;

/* A full-duplex link. */
typedef struct orr__cable {
    uint32_t a, b;
    uint64_t rate; /* bit/s */
    uint64_t delay_ps;
    double error;  /* probability that a packet is lost, in each direction */
    uint32_t cost; /* contribution to the length of a route; 0 is 1 */
    uint32_t line; /* of the file; 0: of none */
} orr__cable;

typedef struct orr__cabling {
    uint32_t nodes;
    uint8_t *kinds; /* orr__node_kind by node */
    uint32_t hosts; /* how many of them */
    orr__cable *cables;
    size_t cable_count, cable_room;
    uint32_t gpus_per_server; /* SimAI's dialect; 0 otherwise */
    uint32_t surplus;         /* the line after the links announced by the header; 0: none */
} orr__cabling;

orr_code orr__cabling_parse(orr__cabling *c, orr_span bytes, const char *path, orr_error *err)
    ORR_MUST_CHECK;
void orr__cabling_fini(orr__cabling *c); /* an all-zero one is empty */
orr_where orr__cable_where(const orr__cable *l, const char *path);
/* Every host has a link, and no switch more than `most`.  A parsed file has passed without that
 * limit. */
orr_code orr__cabling_check_ports(const orr__cabling *c,
                                  uint32_t most,
                                  const char *path,
                                  orr_error *err) ORR_MUST_CHECK;

/* Independent of the direction of a link. */
static inline uint64_t orr__pair_key(uint32_t a, uint32_t b)
{
    return a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a;
}

#endif
