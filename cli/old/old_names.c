/* SPDX-License-Identifier: Apache-2.0 */
/* old_names.c - the names of the old programs: the binary, called by one of them, takes that
 * program's options.
 *
 * Each is a command table like any other, with the old spelling of the options and `now` set to
 * today's command.  The links in build/bin and those made by `make install` come from this list
 * (tables.c).  A program whose folder of src/compat is not built has no link; if called all the
 * same, it reports that. */
#include "old.h"

#include <string.h>

#ifdef ORR_COMPAT_ASTRA_SIM
#define ASTRA_SIM(program) &program
#else
#define ASTRA_SIM(program) NULL
#endif
#if defined ORR_COMPAT_ASTRA_SIM && defined ORR_COMPAT_NS3
#define NS3(program) &program
#else
#define NS3(program) NULL
#endif
#ifdef ORR_COMPAT_LOGGOPSIM
#define LOGGOPSIM(program) &program
#else
#define LOGGOPSIM(program) NULL
#endif
#ifdef ORR_COMPAT_SCALE_SIM
#define SCALE_SIM(program) &program
#else
#define SCALE_SIM(program) NULL
#endif
#ifdef ORR_COMPAT_STAGE
#define STAGE(program) &program
#else
#define STAGE(program) NULL
#endif
#ifdef ORR_COMPAT_CHAKRA
#define CHAKRA(program) &program
#else
#define CHAKRA(program) NULL
#endif
#ifdef ORR_COMPAT_NCCL_GENERATOR
#define NCCL_GENERATOR(program) &program
#else
#define NCCL_GENERATOR(program) NULL
#endif
#ifdef ORR_COMPAT_SCHEDGEN
#define SCHEDGEN(program) &program
#else
#define SCHEDGEN(program) NULL
#endif

/* clang-format off */
static const struct {
    const char *name, *room;
    const cli_command *command; /* NULL: its folder of src/compat is not built */
} names[] = {
    {"et_generator",                           "chakra",         CHAKRA(cli_old_et_generator)},
    {"chakra_generator",                       "chakra",         CHAKRA(cli_old_chakra_generator)},
    {"chakra_trace_link",                      "chakra",         CHAKRA(cli_old_chakra_trace_link)},
    {"chakra_converter",                       "chakra",         CHAKRA(cli_old_chakra_converter)},
    {"et_converter",                           "chakra",         CHAKRA(cli_old_et_converter)},
    {"chakra_jsonizer",                        "chakra",         CHAKRA(cli_old_chakra_jsonizer)},
    {"chakra_visualizer",                      "chakra",         CHAKRA(cli_old_chakra_visualizer)},
    {"et_visualizer",                          "chakra",         CHAKRA(cli_old_et_visualizer)},
    {"chakra_timeline_visualizer",             "chakra",         CHAKRA(cli_old_chakra_timeline)},
    {"gen_astrasim_workload_input",            "scale_sim",      SCALE_SIM(cli_old_gemm)},
    {"gen_astrasim_workload_input.py",         "scale_sim",      SCALE_SIM(cli_old_gemm_script)},
    {"scale.py",                               "scale_sim",      SCALE_SIM(cli_old_scalesim)},
    {"nccl_goal_generator",                    "nccl_generator", NCCL_GENERATOR(cli_old_nccl)},
    {"AstraSim_Analytical_Congestion_Unaware", "astra_sim",      ASTRA_SIM(cli_old_astra_unaware)},
    {"AstraSim_Analytical_Congestion_Aware",   "astra_sim",      ASTRA_SIM(cli_old_astra_aware)},
    {"AnalyticalAstra",                        "astra_sim",      ASTRA_SIM(cli_old_astra_early)},
    {"AstraCongestion",                        "astra_sim",      ASTRA_SIM(cli_old_astra_congestion)},
    {"AstraSim_HTSim",                         "astra_sim",      ASTRA_SIM(cli_old_astra_htsim)},
    {"AstraSimNetwork",                        "ns3",            NS3(cli_old_astra_packet)},
    {"ns3.42-AstraSimNetwork-default",         "ns3",            NS3(cli_old_astra_ns3)},
    {"stage",                                  "stage",          STAGE(cli_old_stage)},
    {"schedgen",                               "schedgen",       SCHEDGEN(cli_old_schedgen)},
    {"LogGOPSim",                              "loggopsim",      LOGGOPSIM(cli_old_loggopsim)},
    {"txt2bin",                                "loggopsim",      LOGGOPSIM(cli_old_txt2bin)},
    {"bin2txt",                                "loggopsim",      LOGGOPSIM(cli_old_bin2txt)},
};
/* clang-format on */
enum { NAMES = sizeof names / sizeof *names };

const cli_command *cli_old_name_at(size_t i)
{
    for (size_t k = 0; k < NAMES; k++)
        if (names[k].command && i-- == 0)
            return names[k].command;
    return NULL;
}

/* ns3.42-AstraSimNetwork-debug, with any version and build profile. */
static const char *without_version(const char *name)
{
    return strncmp(name, "ns3", 3) == 0 && strstr(name, "-AstraSimNetwork-")
               ? "ns3.42-AstraSimNetwork-default"
               : name;
}

const cli_command *cli_old_name_find(const char *path, const char **left_out)
{
    const char *slash = strrchr(path, '/');
    const char *name = without_version(slash ? slash + 1 : path);
    *left_out = NULL;
    for (size_t k = 0; k < NAMES; k++) {
        if (strcmp(names[k].name, name) != 0)
            continue;
        if (!names[k].command)
            *left_out = names[k].room;
        return names[k].command;
    }
    return NULL;
}

const cli_command *cli_compat_form(const cli_command *command)
{
    return command == &cli_cmd_stage ? STAGE(cli_stage_compat) : NULL;
}
