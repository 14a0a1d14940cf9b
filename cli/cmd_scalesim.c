/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_scalesim.c - orrery scalesim: a network's layers on a systolic array, with the files and
 * flags of SCALE-Sim.
 *
 * All generations of the old program are called scale.py, each with its own flags; this command
 * accepts all of them, so only one line of a script changes.  Counts follow our rules unless
 * --compat selects theirs. */
#include "command.h"

#include <orrery/lab/compat.h>
#include <orrery/lab/scalesim.h>
#include <orrery/version.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const cli_option options[] = {
    {"config", 'c', "FILE", "the array and its buffers: SCALE-Sim's .cfg file"},
    {"topology", 't', "FILE", "the layers: SCALE-Sim's .csv file"},
    {"layout", 'l', "FILE", "v3: layout of words in the buffers: SCALE-Sim's .csv file"},
    {"input", 'i', "conv|gemm", "kind of its rows; default: by their columns"},
    {"array", 0, "RxC", "override rows and columns"},
    {"dataflow", 0, "os|ws|is", "override the dataflow"},
    {"bandwidth", 0, "N", "words per cycle and operand to and from memory; 0: no limit"},
    {"round-up", 0, NULL, "count windows that extend beyond the ifmap"},
    {"compat", 0, "v1|v2|v3", "figures and report files of SCALE-Sim, including its defects"},
    {"output", 'o', "DIR", "write report files there", .kind = CLI_FOLDER},
    {"log-dir", 'p', "DIR", "the same, into DIR/RUN_NAME", .kind = CLI_FOLDER},
    {"traces", 0, NULL, "with --compat: also write every access; large"},
    {"json", 0, NULL, "print one JSON object"},
    {"csv", 0, NULL, "print CSV, one row per layer"},
    {"arch_config", 0, "FILE", "the same as --config (v1)"},
    {"network", 0, "FILE", "the same as --topology (v1)"},
    {0},
};

static const cli_example examples[] = {
    {"A 32 x 32 weight-stationary array, with 64 KiB per operand:",
     "printf '[general]\\nrun_name = demo\\n[architecture_presets]\\n' > a.cfg", 0},
    {"", "printf 'ArrayHeight: 32\\nArrayWidth: 32\\nDataflow: ws\\n' >> a.cfg", 0},
    {"", "printf 'IfmapSramSz: 64\\nFilterSramSz: 64\\nOfmapSramSz: 64\\n' >> a.cfg", 0},
    {"A convolution and a GEMM:",
     "printf 'layer,ih,iw,fh,fw,channels,filters,stride,\\n' > net.csv", 0},
    {"", "printf 'conv,58,58,3,3,64,64,1,\\nfc,512,384,1536,\\n' >> net.csv", 0},
    {"What do they cost?", "orrery scalesim -c a.cfg -t net.csv", 0},
    {"With 16 words per cycle and operand:", "orrery scalesim -c a.cfg -t net.csv --bandwidth 16",
     0},
    {"Output-stationary, as CSV:",
     "orrery scalesim -c a.cfg -t net.csv --dataflow os --csv > layers.csv", 0},
    {"Only the convolution, as the first generation of SCALE-Sim reports it:",
     "orrery scalesim -arch_config=a.cfg -network=net.csv --compat v1", 0},
    {0},
};

/* ---- values ---- */

static bool read_number(const char *text, const char **end, uint64_t *out)
{
    char *stop;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *out = strtoull(text, &stop, 10);
    *end = stop;
    return errno == 0 && *out >= 1 && *out <= ORR_SYSTOLIC_MOST_ROWS;
}

static orr_code read_array(const char *text, orr_systolic_array *a, orr_error *err)
{
    const char *at;
    if (read_number(text, &at, &a->rows) && *at == 'x' && read_number(at + 1, &at, &a->columns) &&
        !*at)
        return ORR_OK;
    return cli_misuse(err, "--array '%s' is not rows x columns, each up to %d, as 128x128", text,
                      ORR_SYSTOLIC_MOST_ROWS);
}

static orr_code read_bandwidth(const char *text, orr_scalesim_config *config, orr_error *err)
{
    char *end;
    const double v = strtod(text, &end);
    if (*text < '0' || *text > '9' || *end || !(v >= 0) || v >= 1e15)
        return cli_misuse(err, "--bandwidth '%s' is not a number of words per cycle", text);
    config->array.bandwidth = v;
    if (v >= 1) {
        config->array.ifmap_banks.bandwidth = config->array.filter_banks.bandwidth = (uint64_t)v;
        config->has_banks = true;
    }
    config->interface = v > 0 ? ORR_INTERFACE_USER : ORR_INTERFACE_CALC;
    return ORR_OK;
}

static bool compat_is(const cli_context *c, const char *generation)
{
    return cli_given(c, "compat") && strcmp(cli_text(c, "compat"), generation) == 0;
}

static bool is_v1(const cli_context *c)
{
    return compat_is(c, "v1");
}

orr_code cli_scalesim_rules(const char *name, const orr_rules_systolic **out, orr_error *err)
{
    const orr_compat *old = NULL;
    const orr_code code = name ? orr_compat_find(ORR_RULES_SYSTOLIC, name, &old, err) : ORR_OK;
    *out = old ? old->systolic : NULL;
    return code;
}

/* One of two spellings, but not both. */
static orr_code one_of(
    const cli_context *c, const char *name, const char *old, const char **out, orr_error *err)
{
    if (cli_given(c, name) && cli_given(c, old))
        return cli_misuse(err, "--%s and --%s are the same", name, old);
    *out = cli_given(c, name) ? cli_text(c, name) : cli_text(c, old);
    return *out ? ORR_OK : cli_misuse(err, "missing option: --%s FILE", name);
}

static orr_code read_config(const cli_context *c, orr_scalesim_config *out, orr_error *err)
{
    static const char *const flows[] = {"os", "ws", "is"};
    const char *array = cli_text(c, "array"), *flow = cli_text(c, "dataflow");
    const char *bandwidth = cli_text(c, "bandwidth"), *path;
    orr_code code = one_of(c, "config", "arch_config", &path, err);
    if (!code)
        code = orr_scalesim_read_config(path, out, err);
    if (!code && cli_given(c, "layout"))
        code = orr_scalesim_read_layout(cli_text(c, "layout"), &out->array.layout, err);
    if (!code && array)
        code = read_array(array, &out->array, err);
    if (!code && bandwidth)
        code = read_bandwidth(bandwidth, out, err);
    for (int i = 0; flow && i < 3; i++)
        if (strcmp(flow, flows[i]) == 0)
            out->array.dataflow = (orr_dataflow)i;
    out->array.round_up = cli_flag(c, "round-up");
    return code;
}

static void note_sparsity(const cli_context *c, const orr_scalesim_network *net)
{
    size_t sparse = 0;
    for (size_t i = 0; i < orr_scalesim_network_count(net); i++)
        sparse += orr_scalesim_network_at(net, i)->layer.block > 0;
    if (sparse && !cli_given(c, "compat"))
        cli_note(
            c,
            "note: %zu layer%s a sparsity; these figures count every weight, --compat v3 does not\n",
            sparse, sparse == 1 ? " has" : "s have");
}

static orr_code read_network(const cli_context *c,
                             const orr_rules_systolic *rules,
                             orr_scalesim_network **out,
                             orr_error *err)
{
    const char *form = cli_text(c, "input"), *path;
    orr_scalesim_read opt = {.rules = rules};
    uint32_t line;
    if (form)
        opt.form = strcmp(form, "gemm") == 0 ? ORR_SCALESIM_GEMM : ORR_SCALESIM_CONV;
    orr_code code = one_of(c, "topology", "network", &path, err);
    if (!code)
        code = orr_scalesim_read_network(path, &opt, out, err);
    if (code)
        return code;
    const size_t skipped = orr_scalesim_network_skipped(*out, &line);
    if (skipped)
        cli_note(c, "note: %zu line%s skipped, %s; %s %u\n", skipped, skipped == 1 ? "" : "s",
                 is_v1(c) ? "as SCALE-Sim v1 does: fewer than nine fields"
                          : "a name without numbers",
                 skipped == 1 ? "line" : "the first is line", line);
    note_sparsity(c, *out);
    return ORR_OK;
}

/* Check before the work that the folder exists or can be created. */
static orr_code check_folder(const cli_context *c, orr_error *err)
{
    const char *path = cli_text(c, "output");
    struct stat st;
    if (!path || (stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
        return ORR_OK;
    const orr_where w = orr_where_byte(path, ORR_NO_BYTE);
    if (stat(path, &st) == 0)
        return orr_fail(err, ORR_EIO, &w, "cannot make this directory: a file has its name");
    return cli_check_place(path, err);
}

static orr_code check_options(const cli_context *c, orr_error *err)
{
    const char *form = cli_text(c, "input");
    if (cli_flag(c, "json") && cli_flag(c, "csv"))
        return cli_misuse(err, "--json and --csv cannot be used together");
    if (cli_given(c, "output") && cli_given(c, "log-dir"))
        return cli_misuse(err, "--output and --log-dir cannot be used together");
    if (cli_given(c, "compat") && cli_flag(c, "round-up"))
        return cli_misuse(err, "--round-up is for our own figures, not --compat");
    if (!cli_given(c, "compat") && cli_flag(c, "traces"))
        return cli_misuse(err, "--traces requires --compat v1, v2 or v3");
    if (is_v1(c) && form && strcmp(form, "gemm") == 0)
        return cli_misuse(err, "SCALE-Sim v1 supports convolutions only");
    return check_folder(c, err);
}

/* ---- report folders ---- */

static orr_code make_folder(const char *path, orr_error *err)
{
    const orr_where w = orr_where_byte(path, ORR_NO_BYTE);
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return ORR_OK;
    return orr_fail(err, ORR_EIO, &w, "cannot make this directory: %s", strerror(errno));
}

/* The old programs pass the name through a shell, which removes quotes. */
static orr_code run_folder(const char *base,
                           const orr_scalesim_config *config,
                           const orr_scalesim_network *net,
                           char *out,
                           size_t size,
                           orr_error *err)
{
    static const char *const flows[] = {"os", "ws", "is"};
    const char *run = config->run_name;
    size_t length = strlen(run);
    int used;
    if (length > 1 && run[0] == '"' && run[length - 1] == '"') {
        run++;
        length -= 2;
    }
    if (length)
        used = snprintf(out, size, "%s/%.*s", base, (int)length, run);
    else
        used = snprintf(out, size, "%s/%s_%s", base, orr_scalesim_network_name(net),
                        flows[config->array.dataflow]);
    if (used < 0 || (size_t)used >= size)
        return cli_misuse(err, "the name of the report folder is too long");
    return ORR_OK;
}

orr_code cli_scalesim_folder(const char *base,
                             const orr_scalesim_config *config,
                             const orr_scalesim_network *net,
                             char *out,
                             size_t size,
                             orr_error *err)
{
    orr_code code = run_folder(base, config, net, out, size, err);
    if (!code)
        code = make_folder(base, err);
    return code ? code : make_folder(out, err);
}

orr_code cli_scalesim_traces(const orr_scalesim *r,
                             int generation,
                             const char *reports,
                             orr_error *err)
{
    char path[4200];
    if (generation > 1) /* folders layer0, layer1, ... beside the reports */
        return orr_scalesim_write_traces(r, reports, err);
    snprintf(path, sizeof path, "%.4096s/layer_wise", reports);
    const orr_code code = make_folder(path, err);
    return code ? code : orr_scalesim_write_traces(r, path, err);
}

static orr_code write_reports(const cli_context *c,
                              orr_scalesim *r,
                              const orr_scalesim_config *config,
                              const orr_scalesim_network *net,
                              orr_error *err)
{
    const char *base = cli_given(c, "log-dir")   ? cli_text(c, "log-dir")
                       : !cli_given(c, "compat") ? NULL
                       : is_v1(c)                ? "outputs"
                       : compat_is(c, "v3")      ? "results"
                                                 : "test_runs";
    const char *folder = cli_text(c, "output");
    char path[4096];
    orr_code code = ORR_OK;
    if (!folder && !base)
        return ORR_OK;
    code = folder ? make_folder(folder, err)
                  : cli_scalesim_folder(base, config, net, path, sizeof path, err);
    folder = folder ? folder : path;
    if (!code)
        code = orr_scalesim_write(r, folder, err);
    if (!code && cli_flag(c, "traces"))
        code = cli_scalesim_traces(r, is_v1(c) ? 1 : 2, folder, err);
    if (!code)
        cli_note(c, "reports are in %s\n", folder);
    return code;
}

/* ---- the command ---- */

static orr_code print_result(const cli_context *c, orr_scalesim *r, orr_error *err)
{
    orr_str text;
    const orr_code code = cli_flag(c, "json")  ? orr_scalesim_json(r, &text, err)
                          : cli_flag(c, "csv") ? orr_scalesim_csv(r, &text, err)
                                               : orr_scalesim_text(r, &text, err);
    if (!code)
        cli_print(text);
    return code;
}

static orr_code scalesim_run(cli_context *c, orr_error *err)
{
    orr_scalesim_options opt = {.wants_traces = cli_flag(c, "traces"),
                                .program = "orrery " ORR_VERSION};
    orr_scalesim_config config;
    orr_scalesim_network *net = NULL;
    orr_scalesim *r = NULL;
    orr_code code = check_options(c, err);
    if (!code)
        code = cli_scalesim_rules(cli_text(c, "compat"), &opt.rules, err);
    if (!code)
        code = read_config(c, &config, err);
    if (!code)
        code = read_network(c, opt.rules, &net, err);
    if (!code)
        code = orr_scalesim_run(&config, net, &opt, &r, err);
    if (!code)
        code = write_reports(c, r, &config, net, err);
    if (!code)
        code = print_result(c, r, err);
    orr_scalesim_destroy(r);
    orr_scalesim_network_free(net);
    return code;
}

const cli_command cli_cmd_scalesim = {
    .name = "scalesim",
    .summary = "cost of layers on a systolic array, with SCALE-Sim's files",
    .description =
        "Reads SCALE-Sim's configuration and table of layers, of any generation, and prints for each layer how many "
        "cycles it takes, how well it uses the array, and the traffic of buffers and memory.  "
        "Figures are true counts; --compat gives those of the old programs and writes their report files.\n\n"
        "Accepts the flags of all versions: -arch_config= and -network= of the first, -c, -t, -i and -p "
        "of the second, and -l of the third.",
    .options = options,
    .examples = examples,
    .see_also = "orrery-gemm(1)",
    .one_dash = true,
    .run = scalesim_run,
};
