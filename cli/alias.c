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

static const cli_option visualizer_options[] = {
    {"input_filename", 0, "FILE", "the trace to read", .required = true},
    {"output_filename", 0, "FILE", "where it goes: a name in .pdf, .dot or .graphml",
     .required = true},
    {0},
};

static const cli_command chakra_visualizer = {
    .name = "chakra_visualizer",
    .summary = "draw a trace as a graph",
    .now = "orrery view dot|graphml|pdf --compat",
    .options = visualizer_options,
    .run = cli_run_chakra_visualizer,
};

static const cli_option timeline_options[] = {
    {"input_filename", 0, "FILE", "the log of issued nodes (CSV)", .required = true},
    {"output_filename", 0, "FILE", "where the timeline goes", .required = true},
    {"num_npus", 0, "N", "how many ranks", CLI_COUNT, 1, 1048576, .required = true},
    {"npu_frequency", 0, "MHZ", "cycles a microsecond", CLI_COUNT, 1, 1048576, .required = true},
    {"log_filename", 0, "FILE", "where the log goes", .fallback = "debug.log"},
    {0},
};

static const cli_command chakra_timeline = {
    .name = "chakra_timeline_visualizer",
    .summary = "turn a log of issued nodes into a timeline, in milliseconds",
    .now = "orrery view timeline",
    .options = timeline_options,
    .run = cli_run_chakra_timeline,
};

/* Its three generations, the latest first; see old_link.c. */
static const cli_option trace_link_options[] = {
    {"rank", 0, "N", "the rank of the traces; only a label", CLI_COUNT},
    {"chakra-host-trace", 0, "FILE", "PyTorch's execution trace"},
    {"chakra-device-trace", 0, "FILE", "Kineto's trace"},
    {"output-file", 0, "FILE", "where the linked trace goes"},
    {"log-level", 0, "LEVEL", "taken, and of no effect", .fallback = "INFO"},
    {"pytorch-et-file", 0, "FILE", "2024-05: PyTorch's execution trace"},
    {"kineto-file", 0, "FILE", "earlier: Kineto's trace"},
    {"et-file", 0, "FILE", "first form: PyTorch's execution trace"},
    {"annotation", 0, "NAME", "first form: taken, and of no effect", .fallback = "DataLoader"},
    {"exact-match", 0, NULL, "first form: taken, and of no effect"},
    {0},
};

static const cli_command chakra_trace_link = {
    .name = "chakra_trace_link",
    .summary = "make PyTorch's host and device traces one",
    .now = "orrery link --compat",
    .options = trace_link_options,
    .run = cli_run_chakra_trace_link,
};

/* et_converter has the rows from input_type on; chakra_converter, which began with that form, all of them. */
static const cli_option converter_options[] = {
    {"log-filename", 0, "FILE", "where the log goes", .fallback = "debug.log"},
    {"input", 0, "FILE", "what to convert"},
    {"output", 0, "FILE", "the trace; for Text what the names of the files begin with"},
    {"num-npus", 0, "N", "Text: how many ranks", CLI_COUNT, 1, 1048576},
    {"num-passes", 0, "N", "Text: how often through the network", CLI_COUNT, 0, 16777216},
    {"simulate", 0, NULL, "PyTorch: play the trace through; the log says what ran when"},
    {"input_type", 0, "Text|FlexFlow|PyTorch", "earlier form: what the input is"},
    {"input_filename", 0, "FILE", "earlier form of --input"},
    {"output_filename", 0, "FILE", "earlier form of --output"},
    {"num_npus", 0, "N", "earlier form of --num-npus", CLI_COUNT, 1, 1048576},
    {"num_passes", 0, "N", "earlier form of --num-passes", CLI_COUNT, 0, 16777216},
    {"num_dims", 0, "N", "Text: dimensions of the network, named by each collective", CLI_COUNT, 1,
     64},
    {"npu_frequency", 0, "MHZ", "FlexFlow: run times in cycles of this clock", CLI_COUNT, 1,
     1048576},
    {"default_simulated_run_time", 0, "N", "PyTorch: taken, without effect", CLI_COUNT},
    {"log_filename", 0, "FILE", "earlier form of --log-filename"},
    {0},
};

static const cli_argument converter_arguments[] = {
    {"Text|PyTorch", "what the input is", CLI_MAYBE},
    {0},
};

static const cli_command chakra_converter = {
    .name = "chakra_converter",
    .summary = "convert text workloads and linked PyTorch traces to Chakra traces",
    .description =
        "Text: writes OUTPUT.0.et, OUTPUT.1.et and so on; PyTorch: writes OUTPUT, from the file of one rank that "
        "chakra_trace_link wrote.  Both write a log.  Without arguments it shows this help.",
    .now = "orrery convert text --compat, orrery convert pytorch --compat",
    .options = converter_options,
    .arguments = converter_arguments,
    .run = cli_run_chakra_converter,
};

static const cli_command et_converter = {
    .name = "et_converter",
    .summary = "convert text workloads and FlexFlow task graphs to traces of 2024-02",
    .description = "Writes OUTPUT.0.et, OUTPUT.1.et and so on, and a log.",
    .now = "orrery convert text --compat, orrery convert flexflow --compat",
    .options = converter_options + 6,
    .run = cli_run_et_converter,
};

/* The last two are ours; --compat picks the simulator it was used with. */
static const cli_option old_gemm_options[] = {
    {"mnk", 0, "FILE", "CSV file: a heading, then name,m,n,k", .fallback = "mnk_inputs/test.csv"},
    {"run_name", 0, "NAME", "folder of intermediate files", .fallback = "test"},
    {"output_file", 0, "FILE", "where the workload goes", .fallback = "workload.txt"},
    {"scalesim_path", 0, "DIR", "not needed any more"},
    {"scalesim_config", 0, "FILE", "SCALE-Sim's configuration", .required = true},
    {"parallel", 0, "POLICY",
     "DATA, MODEL, HYBRID_DATA_MODEL, HYBRID_MODEL_DATA, HYBRID_CUSTOMIZED", .fallback = "DATA"},
    {"datatype_size", 0, "N", "bytes an element", CLI_COUNT, 1, 1 << 20, "2"},
    {"num_npus", 0, "N", "how many NPUs", CLI_COUNT, 1, 1 << 24, "8"},
    {"num_packages", 0, "N", "how many packages they are in", CLI_COUNT, 1, 1 << 24, "1"},
    {"compat", 0, "v1|v2", "which SCALE-Sim", .fallback = "v2"},
    {"no-compat", 0, NULL, "our own figures: each pass its own, shares rounded up"},
    {"keep-intermediate", 0, NULL, "write its intermediate files too"},
    {0},
};

static const cli_command old_gemm = {
    .name = "gen_astrasim_workload_input",
    .summary = "write a text workload from a table of matrix products",
    .now = "orrery gemm --compat v2",
    .options = old_gemm_options,
    .one_dash = true,
    .run = cli_run_old_gemm,
};

static const cli_command old_gemm_script = {
    .name = "gen_astrasim_workload_input.py",
    .summary = "write a text workload from a table of matrix products",
    .now = "orrery gemm --compat v2",
    .options = old_gemm_options,
    .one_dash = true,
    .run = cli_run_old_gemm,
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

static const cli_command astra_packet = {
    .name = "AstraSimNetwork",
    .summary = "simulate traces, or flows, on the packet-level network (ns-3)",
    .now = "orrery run --network packet --compat ns3",
    .options = cli_astra_packet_options,
    .ignores_unknown = true,
    .run = cli_run_astra_packet,
};

/* The rows of orrery stage but its own; an underscore may stand for each dash. */
static const cli_command stage = {
    .name = "stage",
    .summary = "write the traces of a language model's training step, as STAGE's main.py",
    .now = "orrery stage --compat",
    .options = cli_stage_options + CLI_STAGE_OWN,
    .run = cli_run_stage,
};

static const cli_command schedgen = {
    .name = "schedgen",
    .summary = "write the GOAL schedule of a communication pattern, or of a trace of MPI calls",
    .now = "orrery gen goal PATTERN --compat lgs2023",
    .options = cli_schedgen_options,
    .run = cli_run_schedgen,
};

static const cli_command loggopsim = {
    .name = "LogGOPSim",
    .summary = "simulate a GOAL schedule by the LogGOPS model",
    .now = "orrery run --network loggops --compat lgs2023",
    .options = cli_loggopsim_options,
    .run = cli_run_loggopsim,
};

static const cli_command txt2bin = {
    .name = "txt2bin",
    .summary = "turn the text of a GOAL schedule into its binary form",
    .now = "orrery convert goal --form binary",
    .options = cli_txt2bin_options,
    .run = cli_run_txt2bin,
};

static const cli_command bin2txt = {
    .name = "bin2txt",
    .summary = "turn a binary GOAL schedule into text",
    .now = "orrery convert goal --form text",
    .options = cli_txt2bin_options,
    .run = cli_run_bin2txt,
};

static const cli_command old_nccl = {
    .name = "nccl_goal_generator",
    .summary = "make a GOAL schedule from Nsight exports, as nccl_generator_v2's main.py",
    .now = "orrery nccl --compat",
    .options = cli_old_nccl_options,
    .run = cli_run_old_nccl,
};

const cli_command *const cli_old_names[] = {
    &et_generator,    &chakra_generator,  &chakra_trace_link, &chakra_converter, &et_converter,
    &chakra_jsonizer, &chakra_visualizer, &chakra_timeline,   &old_gemm,         &old_gemm_script,
    &old_nccl,        &astra_unaware,     &astra_aware,       &astra_packet,     &stage,
    &schedgen,        &loggopsim,         &txt2bin,           &bin2txt,          NULL,
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
