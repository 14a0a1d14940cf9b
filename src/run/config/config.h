/* SPDX-License-Identifier: Apache-2.0 */
/* config.h - the input files of a run as typed structs.
 *
 * A reader turns one file into one struct, independent of the simulation that uses it.
 * docs/format/system.md and docs/format/ranks.md list the keys. */
#ifndef ORR_RUN_CONFIG_H
#define ORR_RUN_CONFIG_H

#include "base/memory/map.h"
#include "models/collective/coll.h"
#include "models/network/topology/topology.h"
#include "run/sim.h"

#define RUN_NONE UINT32_MAX /* no index */

/* The order in which chunks pass the dimensions, and which waiting chunk of a queue is next. */
typedef enum cfg_inter {
    CFG_ASCENDING,
    CFG_ROUND_ROBIN,
    CFG_OFFLINE_GREEDY,
    CFG_OFFLINE_GREEDY_FLEX,
    CFG_ONLINE_GREEDY
} cfg_inter;
typedef enum cfg_intra {
    CFG_BY_PRIORITY,
    CFG_ALTERNATING,
    CFG_SMALLEST_FIRST,
    CFG_LESS_REMAINING_FIRST
} cfg_intra;
typedef enum cfg_policy { CFG_POLICY_MISSING, CFG_LIFO, CFG_FIFO, CFG_EXPLICIT } cfg_policy;

typedef struct cfg_system {
    char *path;
    bool checks_paths; /* files it names must be in allowed folders (folders.h) */
    cfg_policy policy;
    bool has_optimization, is_bw_aware;
    bool has_endpoint_delay;
    uint64_t endpoint_delay;
    double local_mem_bw, peak_perf; /* bytes/s, operations/s */
    bool roofline, replay_only, trace_enabled, track_local_mem;
    bool replays_measured;       /* with roofline: nodes without num_ops take their recorded time */
    double overlap_cost;         /* share of compute speed lost during a collective */
    double message_overlap_cost; /* and during each message */
    uint64_t splits, active_chunks;
    cfg_inter inter;
    cfg_intra intra;
    bool is_agreed; /* all ranks start the chunks of a collective in the same order */
    uint32_t choice_count[ORR_COLL_COUNT];
    bool has_choices[ORR_COLL_COUNT];
    bool is_plain[ORR_COLL_COUNT]; /* default of orr_system, where the caller gives none */
    coll_choice choice[ORR_COLL_COUNT][ORR_NET_DIMS + 1];
    char *custom[ORR_COLL_COUNT]; /* prefix of traces, or NULL */
    char *plan[ORR_COLL_COUNT];   /* instead: path of a plan (coll_plan.h), or NULL */
    orr_map *custom_by_node;      /* node id -> index in custom_prefix */
    char **custom_prefix;
    size_t custom_count, custom_room;
    bool shared_bus;
    int64_t bus_L, bus_o, bus_g, reduction_delay;
    float bus_G;
    char *local_mem_file;
} cfg_system;

typedef enum cfg_memory_type {
    CFG_MEM_NONE,
    CFG_MEM_PER_NPU,
    CFG_MEM_PER_NODE,
    CFG_MEM_POOL
} cfg_memory_type;
typedef struct cfg_memory {
    cfg_memory_type type;
    uint64_t latency, npus_per_node;
    double bandwidth; /* GB/s; in a file a whole number */
    bool is_host;     /* the host's, over the link of a machine */
} cfg_memory;

typedef struct cfg_group {
    int64_t id;
    uint32_t *members; /* in the order of the file */
    uint32_t *sorted;  /* members ascending */
    uint32_t *place;   /* index of sorted[i] in members */
    uint32_t count;
} cfg_group;

typedef struct cfg_groups {
    cfg_group *groups;
    size_t count, room;
    orr_map *by_id; /* id -> index */
} cfg_groups;

/* Unknown keys are errors.  The programs that Orrery replaces ignore them, so under their rules
 * each is a note, up to CFG_NOTES of them. */
enum { CFG_NOTES = 16 };
typedef struct cfg_notes {
    orr_arena *arena; /* NULL: errors */
    const char *lines[CFG_NOTES];
    size_t count;
} cfg_notes;
/* `keys` ends with NULL; `list` names the page that lists them, or is NULL if they are few enough
 * for the message. */
orr_code cfg_unknown_key(orr_str key,
                         orr_where w,
                         const char *const *keys,
                         const char *list,
                         cfg_notes *notes,
                         orr_error *err);

#define CFG_BUILT_IN "(built in)" /* path of a configuration without a file */
orr_code cfg_read_system(
    const orr_sim_options *opt, orr_arena *a, cfg_notes *notes, cfg_system *out, orr_error *err);
/* Is the first character an opening brace? */
bool cfg_begins_object(orr_span bytes);
orr_code cfg_parse_network(orr_span bytes, const char *path, orr_net_config *out, orr_error *err);
/* {"logical-dims": ["8", "4"]}: the dimensions of the ranks (packet-network.md 4.3). */
orr_code cfg_read_logical(const char *path, cfg_notes *notes, orr_net_config *out, orr_error *err);
orr_code cfg_check_network(orr_span bytes, const char *path, cfg_notes *notes, orr_error *err);
orr_code cfg_read_memory(const char *path, cfg_notes *notes, cfg_memory *out, orr_error *err);
orr_code cfg_read_groups(const char *path, orr_arena *a, cfg_groups *out, orr_error *err);
/* The groups that a trace set carries. */
orr_code cfg_copy_groups(const orr_set *set, orr_arena *a, cfg_groups *out, orr_error *err);
void cfg_system_fini(cfg_system *c);

/* Fills sorted and place from members.  False: *twice is a duplicate rank. */
bool cfg_group_sort(cfg_group *g, uint32_t *twice);
uint32_t cfg_group_index(const cfg_group *g, uint32_t rank); /* in members; NONE: absent */

/* How one rank deviates from the other files (config_ranks.c): speed factors, and the delay of its
 * start in ns. */
typedef struct cfg_rank_speed {
    double compute, memory, host;
    uint64_t delay;
} cfg_rank_speed;
extern const cfg_rank_speed cfg_plain_rank; /* all factors 1, no delay */

typedef struct cfg_ranks {
    cfg_rank_speed *speeds; /* by rank; NULL: all default */
    orr__link_change *changes;
    size_t change_count;
} cfg_ranks;
orr_code cfg_parse_ranks(
    orr_span bytes, const char *path, uint32_t ranks, orr_arena *a, cfg_ranks *out, orr_error *err);
orr_code cfg_read_ranks(
    const char *path, uint32_t ranks, orr_arena *a, cfg_ranks *out, orr_error *err);

#endif
