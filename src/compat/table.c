/* SPDX-License-Identifier: Apache-2.0 */
/* The only file that knows the rooms of src/compat by name.  The rest of the library declares what
 * it takes from them (rules, readers of old formats); the definitions here supply it.
 *
 * A row is one program as far as one room knows it; names may repeat, because LogGOPSim and
 * Schedgen were shipped together.  To add one: the room's header and the row, both under the room's
 * #ifdef. */
#include <orrery/lab/compat.h>

#include "run/loggops/lgs_impl.h"
#include "run/run_rules.h"
#include "trace/trace_impl.h"

/* clang-format off: one block per room, sorted by name */
#ifdef ORR_COMPAT_ASTRA_SIM
#include "astra_sim/astra_sim.h"
#endif
#ifdef ORR_COMPAT_CHAKRA
#include "chakra/chakra.h"
#endif
#ifdef ORR_COMPAT_ET_LEGACY
#include "et_legacy/et_legacy.h"
#endif
#ifdef ORR_COMPAT_LOGGOPSIM
#include "loggopsim/loggopsim.h"
#endif
#ifdef ORR_COMPAT_NCCL_GENERATOR
#include "nccl_generator/nccl_generator.h"
#endif
#ifdef ORR_COMPAT_NS3
#include "ns3/ns3_front.h"
#endif
#ifdef ORR_COMPAT_SCALE_SIM
#include "scale_sim/scale_sim.h"
#endif
#ifdef ORR_COMPAT_SCHEDGEN
#include "schedgen/sg_rules.h"
#endif
/* clang-format on */

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
static const orr_compat programs[] = {
/* ---- astra_sim */
#ifdef ORR_COMPAT_ASTRA_SIM
    {"astra-sim", "ASTRA-sim on an analytical network", .run = &astra_sim_rules},
    {"astra2023", "ASTRA-sim of 2023", .run = &astra_sim_2023_rules},
    {"astra1", "ASTRA-sim 1.0", .run = &astra_sim_1_rules},
#endif
/* ---- chakra */
#ifdef ORR_COMPAT_CHAKRA
    {"chakra", "chakra_trace_link", .link = &chakra_link_rules},
    {"chakra", "chakra_converter", .convert = &chakra_convert_rules, .layers = &chakra_text_rules,
     .flexflow = &chakra_flexflow_rules},
    {"chakra-0.0.4", "chakra_converter before September 2024", .layers = &chakra_early_text_rules},
    {"chakra", "chakra_visualizer", .view = &chakra_view_rules},
    {"chakra", "chakra_timeline_visualizer", .issue_log = &chakra_timeline_rules},
#endif
/* ---- loggopsim */
#ifdef ORR_COMPAT_LOGGOPSIM
    {"lgs2023", "LogGOPSim of 2023", .loggops = &lgs_2023_rules},
    {"atlahs", "LogGOPSim of ATLAHS", .loggops = &lgs_atlahs_rules},
#endif
/* ---- nccl_generator */
#ifdef ORR_COMPAT_NCCL_GENERATOR
    {"v2", "nccl_generator_v2", .nccl = &ncg_rules},
    {"v2-parallel", "nccl_generator_v2 with -p", .nccl = &ncg_parallel_rules},
#endif
/* ---- ns3 */
#ifdef ORR_COMPAT_NS3
    {"ns3", "AstraSimNetwork, with ns-3", .run = &ns3_run_rules, .packet = &orr__ns3_rules},
#endif
/* ---- scale_sim */
#ifdef ORR_COMPAT_SCALE_SIM
    {"v1", "SCALE-Sim v1", .systolic = &orr__scale_sim_v1, .gemm = &orr__gemm_v1},
    {"v2", "SCALE-Sim v2", .systolic = &orr__scale_sim_v2, .gemm = &orr__gemm_v2},
    {"v3", "SCALE-Sim v3", .systolic = &orr__scale_sim_v3},
#endif
/* ---- schedgen */
#ifdef ORR_COMPAT_SCHEDGEN
    {"lgs2023", "SchedGen of LogGOPSim (2023)", .schedgen = &sg_lgs2023},
    {"atlahs", "SchedGen of ATLAHS", .schedgen = &sg_atlahs},
#endif
    {0},
};
/* clang-format on */

/* ---- what parts of the library use without being asked ---- */

const orr__et_old *const orr__et_old_forms =
#ifdef ORR_COMPAT_ET_LEGACY
    &orr__et_legacy;
#else
    NULL;
#endif

const run_old_output *const run_old_outputs =
#ifdef ORR_COMPAT_ASTRA_SIM
    &astra_sim_output;
#else
    NULL;
#endif

const run_byte_matching *const run_byte_matchings =
#ifdef ORR_COMPAT_NS3
    &ns3_byte_matching;
#else
    NULL;
#endif

const lgs_writer *const lgs_old_writers =
#ifdef ORR_COMPAT_LOGGOPSIM
    lgs_writers;
#else
    NULL;
#endif

/* ---- lookup ---- */

static const size_t offset_of[ORR_RULES_PARTS] = {
    [ORR_RULES_RUN] = offsetof(orr_compat, run),
    [ORR_RULES_LOGGOPS] = offsetof(orr_compat, loggops),
    [ORR_RULES_PACKET] = offsetof(orr_compat, packet),
    [ORR_RULES_SYSTOLIC] = offsetof(orr_compat, systolic),
    [ORR_RULES_GEMM] = offsetof(orr_compat, gemm),
    [ORR_RULES_LAYERS] = offsetof(orr_compat, layers),
    [ORR_RULES_FLEXFLOW] = offsetof(orr_compat, flexflow),
    [ORR_RULES_LINK] = offsetof(orr_compat, link),
    [ORR_RULES_CONVERT] = offsetof(orr_compat, convert),
    [ORR_RULES_ISSUE_LOG] = offsetof(orr_compat, issue_log),
    [ORR_RULES_VIEW] = offsetof(orr_compat, view),
    [ORR_RULES_STAGE] = offsetof(orr_compat, stage),
    [ORR_RULES_NCCL] = offsetof(orr_compat, nccl),
    [ORR_RULES_SCHEDGEN] = offsetof(orr_compat, schedgen),
};

static bool has_part(const orr_compat *row, orr_compat_part part)
{
    const void *rules;
    memcpy(&rules, (const char *)row + offset_of[part], sizeof rules);
    return rules != NULL;
}

const orr_compat *orr_compat_at(orr_compat_part part, size_t i)
{
    for (const orr_compat *row = programs; row->name; row++)
        if (has_part(row, part) && i-- == 0)
            return row;
    return NULL;
}

orr_code orr_compat_find(orr_compat_part part,
                         const char *name,
                         const orr_compat **out,
                         orr_error *err)
{
    char list[256] = "";
    size_t used = 0;
    for (size_t i = 0; (*out = orr_compat_at(part, i)) != NULL; i++) {
        if (!name || strcmp((*out)->name, name) == 0)
            return ORR_OK;
        used += (size_t)snprintf(list + used, used < sizeof list ? sizeof list - used : 0, "%s%s",
                                 i ? ", " : "", (*out)->name);
    }
    return orr_fail(err, ORR_EUSAGE, NULL, "%s%s is not built in; this build has: %s",
                    name ? "compatibility with " : "this compatibility", name ? name : "",
                    *list ? list : "none");
}
