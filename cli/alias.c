/* SPDX-License-Identifier: Apache-2.0 */
/* alias.c - old program names: the binary, called by one of these names, takes that program's options.
 *
 * Each row is a command table like any other, with the old spelling of the options and `now` set to today's
 * spelling.  The links in build/bin and those made by `make install` come from this list (tables.c).  A row
 * without `run` belongs to a command that is not built yet; it has no link and is not found. */
#include "command.h"

#include <string.h>

/* The later name, chakra_generator, has lost the first row.  The second is ours: the name stood for three
 * programs over the years. */
static const cli_option generator_options[] = {
    {"num_dims", 0, "N", "dimensions of the network; selects 0.0.4", CLI_COUNT, 0, 64, "2"},
    {"schema", 0, "current|0.0.4|eg",
     "write what it wrote now, from 2023-11 on or from 2023-01 on"},
    {"num_npus", 0, "N", "how many ranks", CLI_COUNT, 0, 1048576, "64"},
    {"default_runtime", 0, "N", "run time of a compute node, us", CLI_COUNT, .fallback = "5"},
    {"default_tensor_size", 0, "N", "size of a tensor, bytes", CLI_COUNT, .fallback = "1024"},
    {"default_comm_size", 0, "N", "size of a message, bytes", CLI_COUNT, .max = INT64_MAX,
     .fallback = "65536"},
    {0},
};

static const cli_option jsonizer_options[] = {
    {"input_filename", 0, "FILE", "the trace to read", .required = true},
    {"output_filename", 0, "FILE", "where the text goes", .required = true},
    {0},
};

static const cli_command chakra_generator = {
    .name = "chakra_generator",
    .summary = "write the sample traces of Chakra into the current directory",
    .now = "orrery gen all --ranks 64",
    .options = generator_options + 2,
    .run = cli_run_chakra_generator,
};

static const cli_command et_generator = {
    .name = "et_generator",
    .summary = "write the sample traces of early Chakra into the current directory",
    .now = "orrery gen all --ranks 64",
    .options = generator_options,
    .run = cli_run_et_generator,
};

static const cli_command chakra_jsonizer = {
    .name = "chakra_jsonizer",
    .summary = "print a trace as the JSON text of its messages, one behind the other",
    .now = "orrery view json --format concat",
    .options = jsonizer_options,
    .run = cli_run_chakra_jsonizer,
};

static const cli_command astra_unaware = {
    .name = "AstraSim_Analytical_Congestion_Unaware",
    .summary = "simulate traces on the congestion-unaware analytical network",
    .now = "orrery run --network unaware",
    .options = cli_astra_options,
    .ignores_unknown = true,
    .run = cli_run_astra_unaware,
};

static const cli_command astra_aware = {
    .name = "AstraSim_Analytical_Congestion_Aware",
    .summary = "simulate traces on the congestion-aware analytical network",
    .now = "orrery run --network aware",
    .options = cli_astra_options,
    .ignores_unknown = true,
    .run = cli_run_astra_aware,
};

const cli_command *const cli_old_names[] = {
    &et_generator, &chakra_generator, &chakra_jsonizer, &astra_unaware, &astra_aware, NULL,
};

const cli_command *cli_old_name_find(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    for (const cli_command *const *c = cli_old_names; *c; c++) {
        if ((*c)->run && strcmp((*c)->name, name) == 0)
            return *c;
    }
    return NULL;
}
