/* SPDX-License-Identifier: Apache-2.0 */
/* old_chakra_generator.c - Chakra's generator of sample traces, chakra_generator, and its earlier
 * form, et_generator (chakra.md 6). */
#include "old.h"

#include <orrery/lab/gen.h>

/* The later name, chakra_generator, has lost the first row.  The second is ours: the name stood for
 * three programs over the years. */
static const cli_option generator_options[] = {
    {"num_dims", 0, "N", "dimensions of the network; selects 0.0.4", CLI_COUNT, 0, 64, "2"},
    {"schema", 0, "current|0.0.4|eg",
     "write what it wrote now, from 2023-11 on or from 2023-01 on"},
    {"num_npus", 0, "N", "number of ranks", CLI_COUNT, 0, 1048576, "64"},
    {"default_runtime", 0, "N", "run time of a compute node, us", CLI_COUNT, .fallback = "5"},
    {"default_tensor_size", 0, "N", "size of a tensor, bytes", CLI_COUNT, .fallback = "1024"},
    {"default_comm_size", 0, "N", "size of a message, bytes", CLI_COUNT, .max = INT64_MAX,
     .fallback = "65536"},
    {0},
};

static orr_gen_options old_options(const cli_context *c)
{
    return (orr_gen_options){.ranks = (uint32_t)cli_count(c, "num_npus"),
                             .runtime_us = cli_count(c, "default_runtime"),
                             .tensor_size = cli_count(c, "default_tensor_size"),
                             .comm_size = cli_count(c, "default_comm_size")};
}

static orr_code run_chakra_generator(cli_context *c, orr_error *err)
{
    const orr_gen_options opt = old_options(c);
    return orr_gen_write_samples(&opt, ".", err);
}

/* --num_dims existed in two generations only: the samples of both are written, each under the names
 * of its time, unless --schema says which one is meant. */
static orr_code run_et_generator(cli_context *c, orr_error *err)
{
    orr_gen_options opt = old_options(c);
    if (cli_given(c, "schema"))
        opt.style = cli_gen_style(cli_text(c, "schema"));
    else if (cli_given(c, "num_dims")) {
        opt.style = ORR_GEN_0_0_4;
        opt.has_early_names = true;
    }
    if (opt.style != ORR_GEN_CURRENT)
        opt.dims = cli_count(c, "num_dims");
    return orr_gen_write_samples(&opt, ".", err);
}

const cli_command cli_old_chakra_generator = {
    .name = "chakra_generator",
    .summary = "write the sample traces of Chakra into the current directory",
    .now = "orrery gen all --ranks 64",
    .options = generator_options + 2,
    .run = run_chakra_generator,
};

const cli_command cli_old_et_generator = {
    .name = "et_generator",
    .summary = "write the sample traces of early Chakra into the current directory",
    .now = "orrery gen all --ranks 64",
    .options = generator_options,
    .run = run_et_generator,
};
