/* SPDX-License-Identifier: Apache-2.0 */
/* config.h - the input files of a run as typed structs.
 *
 * A reader turns one file into one struct and knows nothing of the simulation that uses it.
 * docs/format/system.md and docs/format/ranks.md have the keys. */
#ifndef ORR_RUN_CONFIG_H
#define ORR_RUN_CONFIG_H

#include "base/memory/map.h"
#include "models/collective/coll.h"
#include "models/network/topology/topology.h"
#include "run/sim.h"

#define ORR__NONE UINT32_MAX /* no index */

/* In which order chunks go through the dimensions, and which waiting chunk of a queue is next. */
typedef enum orr__inter {
    ORR__ASCENDING,
    ORR__ROUND_ROBIN,
    ORR__OFFLINE_GREEDY,
    ORR__OFFLINE_GREEDY_FLEX,
    ORR__ONLINE_GREEDY
} orr__inter;
typedef enum orr__intra {
    ORR__BY_PRIORITY,
    ORR__ALTERNATING,
    ORR__SMALLEST_FIRST,
    ORR__LESS_REMAINING_FIRST
} orr__intra;
typedef enum orr__policy { ORR__POLICY_MISSING, ORR__LIFO, ORR__FIFO, ORR__EXPLICIT } orr__policy;

typedef struct orr__system_config {
    char *path;
    orr__policy policy;
    bool has_optimization, is_bw_aware;
    bool has_endpoint_delay;
    uint64_t endpoint_delay;
    double local_mem_bw, peak_perf; /* bytes/s, operations/s */
    bool roofline, replay_only, trace_enabled, track_local_mem;
    uint64_t splits, active_chunks;
    orr__inter inter;
    orr__intra intra;
    bool is_agreed; /* all ranks start the chunks of a collective in the same order */
    uint32_t choice_count[ORR_COLL_COUNT];
    bool has_choices[ORR_COLL_COUNT];
    coll_choice choice[ORR_COLL_COUNT][ORR_NET_DIMS + 1];
    char *custom[ORR_COLL_COUNT]; /* prefix of traces, or NULL */
    orr_map *custom_by_node;      /* node id -> index in custom_prefix */
    char **custom_prefix;
    size_t custom_count, custom_room;
    bool shared_bus;
    int64_t bus_L, bus_o, bus_g, reduction_delay;
    float bus_G;
    char *local_mem_file;
} orr__system_config;

typedef enum orr__memory_type {
    ORR__MEM_NONE,
    ORR__MEM_PER_NPU,
    ORR__MEM_PER_NODE,
    ORR__MEM_POOL
} orr__memory_type;
typedef struct orr__memory_config {
    orr__memory_type type;
    uint64_t latency, bandwidth, npus_per_node;
} orr__memory_config;

typedef struct orr__group {
    int64_t id;
    uint32_t *members; /* in the order of the file */
    uint32_t *sorted;  /* members ascending */
    uint32_t *place;   /* of sorted[i] in members */
    uint32_t count;
} orr__group;

typedef struct orr__groups {
    orr__group *groups;
    size_t count, room;
    orr_map *by_id; /* id -> index */
} orr__groups;

#define ORR__BUILT_IN "(built in)" /* path of a configuration that is no file */
orr_code orr__read_system(const orr_sim_options *opt,
                          orr_arena *a,
                          orr__system_config *out,
                          orr_error *err);
orr_code orr__parse_network(orr_span bytes, const char *path, orr_net_config *out, orr_error *err);
/* {"logical-dims": ["8", "4"]}: the dimensions of the ranks (packet-network.md 4.3). */
orr_code orr__read_logical(const char *path, orr_net_config *out, orr_error *err);
orr_code orr__read_memory(const char *path, orr__memory_config *out, orr_error *err);
orr_code orr__read_groups(const char *path, orr_arena *a, orr__groups *out, orr_error *err);
/* The groups that a trace set carries. */
orr_code orr__copy_groups(const orr_set *set, orr_arena *a, orr__groups *out, orr_error *err);
void orr__system_config_fini(orr__system_config *c);

/* Fills sorted and place from members.  False: *twice is a duplicate rank. */
bool orr__group_sort(orr__group *g, uint32_t *twice);
uint32_t orr__group_index(const orr__group *g, uint32_t rank); /* in members; NONE: absent */

/* How one rank differs from what the other files say (config_ranks.c): speed factors, and the delay of
 * its start in ns. */
typedef struct orr__rank_speed {
    double compute, memory, host;
    uint64_t delay;
} orr__rank_speed;
extern const orr__rank_speed orr__plain_rank; /* all factors 1, no delay */

typedef struct orr__ranks_config {
    orr__rank_speed *speeds; /* by rank; NULL: all plain */
    orr__link_change *changes;
    size_t change_count;
} orr__ranks_config;
orr_code orr__parse_ranks(orr_span bytes,
                          const char *path,
                          uint32_t ranks,
                          orr_arena *a,
                          orr__ranks_config *out,
                          orr_error *err);
orr_code orr__read_ranks(
    const char *path, uint32_t ranks, orr_arena *a, orr__ranks_config *out, orr_error *err);

#endif
