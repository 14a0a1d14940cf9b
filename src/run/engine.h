/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h - the engines of an orr_run: one of three, each a table of functions.
 *
 *     run.c            the object: configuration, life cycle, results
 *     run_traces.c     traces through the system layer on a network model   (sim.c and what it calls)
 *     run_schedule.c   GOAL schedules under LogGOPS                         (loggops/)
 *     run_flows.c      flows packet by packet                               (models/network/packet)
 *
 * A row says what its engine supports; no other file lists which options are compatible.  Writers
 * and explanations of higher layers (src/explain, src/views) are declared in the engines' own
 * headers. */
#ifndef ORR_RUN_ENGINE_H
#define ORR_RUN_ENGINE_H

#include <orrery/lab/chip.h>
#include <orrery/lab/goal.h>
#include <orrery/lab/hardware.h>
#include <orrery/lab/machine.h>
#include <orrery/run.h>

#include "base/memory/memory.h"

#include <stdatomic.h>

struct orr_sim;
struct lgs_sim;
struct orr_packet;

typedef struct run_writer {
    const char *what; /* NULL: end of list */
    orr_code (*write)(const orr_run *r, const char *path, orr_error *err);
} run_writer;

/* Unsupported functions may be NULL. */
typedef struct run_engine {
    const char *name;
    uint32_t (*supports)(const char *network); /* NULL: the default one */
    orr_code (*create)(orr_run *r, orr_error *err);
    void (*destroy)(orr_run *r); /* also after a failed create */
    orr_code (*step)(orr_run *r, orr_error *err);
    orr_code (*to_end)(orr_run *r, orr_error *err);
    void (*stop)(orr_run *r); /* stores an atomic flag and nothing else: async-signal-safe */

    uint32_t (*ranks)(const orr_run *r);
    uint32_t (*finished)(const orr_run *r);
    uint32_t (*simulated)(const orr_run *r);
    uint32_t (*simulated_last)(const orr_run *r); /* NULL: the same number */
    const char *(*fold_why)(const orr_run *r);
    /* NULL: not known; and why fewer than requested. */
    uint32_t (*threads)(const orr_run *r);
    const char *(*threads_why)(const orr_run *r);
    orr_run_steps (*steps)(const orr_run *r);
    void (*rank_at)(const orr_run *r, uint32_t rank, orr_run_rank *out);
    orr_ps (*time)(const orr_run *r);
    uint64_t (*events)(const orr_run *r);
    uint64_t (*messages)(const orr_run *r);
    const char *(*warning)(const orr_run *r, size_t i);
    const char *(*stall_line)(orr_run *r, size_t i);
    const struct orr_stall *(*stall)(orr_run *r);
    bool (*input)(const orr_run *r, size_t i, const char **role, const char **path);
    void (*visit_links)(const orr_run *r, orr_net_link_visit visit, void *context);
    uint32_t (*dimensions)(const orr_run *r);
    void (*dimension_at)(const orr_run *r, uint32_t i, orr_run_dimension *out);
    bool (*packets)(const orr_run *r, struct orr_packet_figures *out);
    orr_code (*fabric_view)(const orr_run *r, struct orr_fabric_view **out, orr_error *err);
    const orr_set *(*traces)(const orr_run *r);
    double (*peak_flops)(const orr_run *r);
    orr_code (*timeline)(const orr_run *r, orr_run_rows rows, orr_timeline **out, orr_error *err);
    orr_code (*critical_path)(const orr_run *r, struct orr_critical_path **out, orr_error *err);
    orr_code (*goal)(const orr_run *r, orr_goal **out, orr_error *err);
    const run_writer *writers;
    orr_code (*write_old)(const orr_run *r, const char *what, const char *path, orr_error *err);
} run_engine;

extern const run_engine run_traces_engine, run_schedule_engine, run_flows_engine;

struct orr_run {
    const run_engine *engine;
    atomic_bool was_stopped; /* by orr_run_stop, not by a limit */
    orr_run_config config;   /* strings are in the arena */
    orr_arena *arena;
    union {
        struct orr_sim *sim;
        struct lgs_sim *loggops;
        struct orr_packet *packet;
    } is;
    orr_set *set;                   /* traces read to count the ranks; NULL: not needed */
    orr_net_config plain;           /* one switch, or the dimensions of the machine */
    orr_system system;              /* that of the machine */
    orr_machine machine;            /* the part in use; size 0: none given */
    bool is_torus;                  /* collectives are those of the machine's torus */
    struct nccl_custom *nccl_table; /* its collectives file; NULL: none */
    double seconds;
    orr_run_rank rank; /* the last result returned */
    orr_run_dimension dimension;
};

/* What the key `chip` of a machine names: a chip or a design, built in or a file of either.  A word
 * that is none of them is no error: then chip is NULL, and is_design false. */
typedef struct run_chip {
    const orr_chip *chip; /* may point to own: do not copy */
    bool is_design;
    orr_chip own;
    orr_hardware design;
} run_chip;
orr_code run_chip_of(const orr_machine *m, run_chip *out, orr_error *err) ORR_MUST_CHECK;
/* Fills in network and system from the machine where the configuration has none, for this many
 * ranks. */
orr_code run_take_machine(orr_run *r, uint32_t ranks, orr_error *err) ORR_MUST_CHECK;
/* The machine in words, with all that was changed of it: "dgx-h100:2,nics.count=4", "mine:2
 * (mine.yml)".  NULL: there is none, or no memory. */
const char *run_machine_text(const orr_run *r);

/* Saturates. */
static inline orr_ps run_ps(uint64_t ns)
{
    return ns < INT64_MAX / 1000 ? (orr_ps)(ns * 1000) : ORR_RUN_NEVER;
}

#endif
