/* SPDX-License-Identifier: Apache-2.0 */
/* packet_config.h - the settings of a packet network: config.txt of the reference
 * (packet-network.md 3). */
#ifndef ORR_MODELS_PACKET_CONFIG_H
#define ORR_MODELS_PACKET_CONFIG_H

#include "base/memory/memory.h"
#include "models/network/packet/engine/fab_rules.h"

/* ---- rules ----
 *
 * Everything in which another program may differ: the engine and the files.
 *
 * Callers pass a `const struct orr_rules_packet *`; NULL means ours (orr__packet_rules).
 * src/compat/ns3 has the other set. */

struct orr_rules_packet {
    fab_rules engine;
    /* words of config.txt that are not keys: a warning (packet-network.md 3, 14 row 9) */
    bool counts_unknown_keys;
    bool refuses_new_keys; /* keys that only Orrery has */
    bool checks_values;    /* impossible thresholds, gains and timers are errors */
    /* L2_ACK_INTERVAL 0 would acknowledge nothing (packet-network.md 6.3) */
    bool needs_ack_interval;
    /* a link speed that KMIN_MAP lacks has thresholds of 0 (packet-network.md 7.3, 14 row 9) */
    bool marks_all_unmapped;
    bool ignores_more_traced; /* nodes after the count of the trace file (packet-network.md 4.2) */
    bool allows_islands;      /* hosts without a route between them */
    uint32_t most_ports;      /* per switch; 0: any number (packet-network.md 7) */
    /* receives match bytes of a pair of ranks, not messages (packet-network.md 6.1) */
    bool matches_bytes;
};

/* The given ones, or ours. */
const struct orr_rules_packet *orr__packet_rules(const struct orr_rules_packet *given);

/* ---- settings ---- */

/* CC_MODE; any other number is none. */
typedef enum orr__control {
    ORR__CONTROL_DCQCN = 1,
    ORR__CONTROL_HPCC = 3,
    ORR__CONTROL_TIMELY = 7,
    ORR__CONTROL_DCTCP = 8,
    ORR__CONTROL_PINT = 10,
    ORR__CONTROL_NSCC = 11 /* ours */
} orr__control;

/* LOAD_BALANCE: how the packets of a flow are distributed over equally short routes. */
typedef enum orr__balance {
    ORR__BALANCE_ECMP,    /* all on one, by hash */
    ORR__BALANCE_SPRAY,   /* each on its own */
    ORR__BALANCE_FLOWLET, /* a new one after a gap */
    ORR__BALANCE_REPS     /* routes without marks are reused */
} orr__balance;

/* APPROX.  LONG, the default, is for long runs, without visible effect (fab_approx.c). */
typedef enum orr__approx { ORR__APPROX_OFF, ORR__APPROX_ON, ORR__APPROX_LONG } orr__approx;

/* SERIES_WHAT: bits. */
enum { ORR__SERIES_FLOWS = 1, ORR__SERIES_QUEUES = 2, ORR__SERIES_LINKS = 4 };

/* Marking thresholds for ports of one speed.  A map in the file fills one of the values of its
 * rows. */
typedef struct orr__marks {
    uint64_t rate;
    uint64_t kmin, kmax; /* bytes */
    double pmax;
    bool has_kmin, has_kmax, has_pmax;
    uint32_t line, column; /* of the latest threshold in the file */
} orr__marks;

enum { ORR__MARKS_MOST = 64, ORR__PATH_ROOM = 1024, ORR__KEYS_MOST = 96 };

/* Location of the latest value of a key; line 0: none. */
typedef struct orr__key_place {
    uint32_t line, column;
    bool is_over; /* not in the file: among the overriding keys */
} orr__key_place;

typedef struct orr__packet_config {
    char path[ORR__PATH_ROOM]; /* of the file itself; "" without one */
    const struct orr_rules_packet *rules;
    uint64_t enable_qcn, clamp_target_rate, pause_time_us, payload, chunk, ack_interval;
    uint64_t back_to_zero, control;
    uint64_t alpha_us, decrease_us, rp_us; /* DCQCN's timers */
    uint64_t recovery_times;
    uint64_t rate_ai, rate_hai, min_rate, dctcp_rate_ai;
    bool has_rate_ai, has_rate_hai;
    double storm_share; /* share of time a port is paused from which it is a storm */
    double gain, error_rate, target, pint_base, pint_prob;
    uint64_t has_window, global_t, var_window, fast_react, mi_thresh, int_multi, multi_rate;
    uint64_t sample_feedback, rate_bound, nic_pauses, ack_high_prio;
    uint64_t down_us, down_a, down_b;
    bool has_down;
    uint64_t enable_trace, buffer_mib, headroom_factor;
    uint64_t qlen_start_ns, qlen_end_ns, qlen_interval_ns;
    double stop_s;
    bool has_stop; /* set in the file */
    /* bytes per frame on the wire beyond those of packet-network.md 6.2 */
    uint64_t wire_overhead;
    uint64_t load_balance; /* orr__balance */
    uint64_t flowlet_gap_ns;
    uint64_t selective;     /* retransmit only what is lost */
    uint64_t enable_pfc;    /* 0: switches drop what does not fit */
    uint64_t pause_expires; /* a pause whose resume is lost ends after pause_time_us */
    uint64_t trimming;      /* or forward its header */
    uint64_t queue_limit;   /* bytes per class and port; 0: the free buffer; ENABLE_PFC 0 */
    uint64_t nscc_delay_ns; /* target queueing delay of NSCC; 0: from the RTT */
    uint64_t approx;        /* skip periodic traffic: orr__approx */
    bool counts_events;     /* not from the file: events are limited, so each is run */
    unsigned threads;       /* not from the file; 0: as many as pay */
    uint64_t forward_hosts; /* hosts forward packets for others */
    char link_events[ORR__PATH_ROOM]; /* failures and repairs: packet_files.h */
    orr__marks marks[ORR__MARKS_MOST];
    unsigned mark_count;
    char topology[ORR__PATH_ROOM], flows[ORR__PATH_ROOM], trace_nodes[ORR__PATH_ROOM];
    char trace_out[ORR__PATH_ROOM], fct_out[ORR__PATH_ROOM], pfc_out[ORR__PATH_ROOM];
    char qlen_out[ORR__PATH_ROOM];
    /* SimAI's monitors: files, and microseconds; its QLEN_MON_INTERVAL is in microseconds too */
    char bw_out[ORR__PATH_ROOM], rate_out[ORR__PATH_ROOM], cnp_out[ORR__PATH_ROOM];
    uint64_t mon_start_us, mon_end_us, qp_mon_us, bw_mon_us;
    bool is_simai; /* one of these keys is present */
    char series_out[ORR__PATH_ROOM], series_watch[ORR__PATH_ROOM];
    uint64_t series_every_ps, series_samples, series_top, series_what;
    bool has_history;                      /* watchers.h: for a report */
    orr__key_place places[ORR__KEYS_MOST]; /* by key */
    bool is_in_file;    /* keys being read are those of the file, not overriding ones */
    char over_path[64]; /* name of the overriding keys in errors */
    char unknown[64];   /* ORR__WORD_ROOM; the first unknown key and its location */
    orr_where unknown_at;
    uint64_t unknown_count;
} orr__packet_config;

void orr__packet_config_defaults(orr__packet_config *c,
                                 const struct orr_rules_packet *rules); /* NULL: ours */
/* On top of the defaults. */
orr_code orr__packet_config_parse(orr__packet_config *c,
                                  orr_span bytes,
                                  const char *path,
                                  orr_error *err) ORR_MUST_CHECK;
/* Location of the latest value of a key; if there is none, the file. */
orr_where orr__packet_config_where(const orr__packet_config *c, const char *key);
orr_code orr__packet_config_read(orr__packet_config *c,
                                 const char *path,
                                 orr_error *err) ORR_MUST_CHECK;

/* May the file `from` name this input, under this key, and its outputs, except those in replaced
 * (NULL-terminated)?  Overriding keys come from the user. */
orr_code orr__packet_config_may_read(const orr__packet_config *c,
                                     const char *name,
                                     const char *from,
                                     const char *path,
                                     orr_error *err) ORR_MUST_CHECK;
orr_code orr__packet_config_may_write(const orr__packet_config *c,
                                      const char *from,
                                      const char *const *replaced,
                                      orr_error *err) ORR_MUST_CHECK;
/* Disables all output files, whatever the configuration says. */
void orr__packet_config_write_nothing(orr__packet_config *c);

#endif
