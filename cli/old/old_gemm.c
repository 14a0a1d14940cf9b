/* SPDX-License-Identifier: Apache-2.0 */
/* old_gemm.c - the old generator of text workloads: its name, its folders, its errors. */
#include "old.h"

#include "command.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

/* The last three are ours; --compat selects the simulator it was used with. */
static const cli_option options[] = {
    {"mnk", 0, "FILE", "CSV file: a heading, then name,m,n,k", .fallback = "mnk_inputs/test.csv"},
    {"run_name", 0, "NAME", "folder of intermediate files", .fallback = "test"},
    {"output_file", 0, "FILE", "where the workload goes", .fallback = "workload.txt"},
    {"scalesim_path", 0, "DIR", "not needed any more"},
    {"scalesim_config", 0, "FILE", "SCALE-Sim's configuration", .required = true},
    {"parallel", 0, "POLICY",
     "DATA, MODEL, HYBRID_DATA_MODEL, HYBRID_MODEL_DATA, HYBRID_CUSTOMIZED", .fallback = "DATA"},
    {"datatype_size", 0, "N", "bytes per element", CLI_COUNT, 1, 1 << 20, "2"},
    {"num_npus", 0, "N", "number of NPUs", CLI_COUNT, 1, 1 << 24, "8"},
    {"num_packages", 0, "N", "number of packages", CLI_COUNT, 1, 1 << 24, "1"},
    {"compat", 0, "v1|v2", "which SCALE-Sim; default: v1 if run_name is in quotes, else v2"},
    {"no-compat", 0, NULL, "our own figures: each pass its own, shares rounded up"},
    {"keep-intermediate", 0, NULL, "not needed any more: they are always written"},
    {0},
};

static orr_code write_old(const cli_context *c,
                          const orr_shapes *s,
                          const orr_gemm_options *opt,
                          orr_error *err)
{
    orr_gemm *g;
    orr_layers *t = NULL;
    orr_code code = orr_gemm_create(s, opt, &g, err);
    if (code)
        return code;
    code = orr_gemm_table(g, &t, err);
    if (!code)
        code = orr_layers_write(t, cli_text(c, "output_file"), orr_gemm_style(opt->rules), err);
    if (!code && opt->rules)
        code = cli_gemm_keep(g, opt->policy, cli_text(c, "run_name"), cli_text(c, "mnk"), err);
    orr_layers_free(t);
    orr_gemm_destroy(g);
    return code;
}

/* v1 requires quotes around the run name and v2 forbids them, so the file shows which one it was
 * written for. */
static const char *simulator_of(const cli_context *c, const orr_scalesim_config *config)
{
    if (cli_flag(c, "no-compat"))
        return NULL;
    if (cli_given(c, "compat"))
        return cli_text(c, "compat");
    return config->run_name[0] == '"' ? "v1" : "v2";
}

/* What the old program refuses is bad input here too, whether from a file or an option. */
static orr_code run_gemm(cli_context *c, orr_error *err)
{
    const char *config_path = cli_text(c, "scalesim_config");
    orr_gemm_options opt = {.npus = (uint32_t)cli_count(c, "num_npus"),
                            .packages = (uint32_t)cli_count(c, "num_packages"),
                            .datatype_bytes = (uint32_t)cli_count(c, "datatype_size")};
    orr_scalesim_config config;
    orr_shapes *s;
    orr_code code = cli_gemm_policy(cli_text(c, "parallel"), ORR_EINPUT, &opt.policy, err);
    if (!code && opt.npus % opt.packages)
        code = orr_fail(err, ORR_EINPUT, NULL,
                        "--num_npus %" PRIu32 " is not a multiple of --num_packages %" PRIu32,
                        opt.npus, opt.packages);
    if (!code)
        code = orr_scalesim_read_config(config_path, &config, err);
    if (!code)
        code = cli_gemm_rules(simulator_of(c, &config), &opt.rules, err);
    if (!code)
        code = orr_gemm_check_run_name(opt.rules, config_path, config.run_name, err);
    if (code)
        return code;
    const orr_shapes_options how = {.rules = opt.rules,
                                    .needs_policies = opt.policy == ORR_POLICY_HYBRID_CUSTOMIZED};
    opt.array = &config.array;
    if ((code = orr_shapes_read(cli_text(c, "mnk"), &how, &s, err)))
        return code;
    code = write_old(c, s, &opt, err);
    orr_shapes_free(s);
    return code;
}

const cli_command cli_old_gemm = {
    .name = "gen_astrasim_workload_input",
    .summary = "write a text workload from a table of matrix products",
    .now = "orrery gemm --compat v2",
    .options = options,
    .one_dash = true,
    .run = run_gemm,
};

const cli_command cli_old_gemm_script = {
    .name = "gen_astrasim_workload_input.py",
    .summary = "write a text workload from a table of matrix products",
    .now = "orrery gemm --compat v2",
    .options = options,
    .one_dash = true,
    .run = run_gemm,
};
