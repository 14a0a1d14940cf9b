/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_gemm.c - orrery gemm: convert a table of shapes to a text workload or to traces.
 *
 * The workload is the result and goes to standard output unless -o says otherwise; the table of
 * layer costs is a note, or, with --json and --csv, the result instead. */
#include <orrery/lab/compat.h>
#include <orrery/lab/gemm.h>
#include <orrery/lab/machine.h>
#include <orrery/lab/units.h>
#include <orrery/version.h>

#include "base/text/text.h"
#include "command.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- words and folders shared by orrery gemm and the old generator's name.  ---- */

/* ---- words ---- */

orr_code cli_gemm_rules(const char *name, const orr_rules_gemm **out, orr_error *err)
{
    const orr_compat *old = NULL;
    const orr_code code = name ? orr_compat_find(ORR_RULES_GEMM, name, &old, err) : ORR_OK;
    *out = old ? old->gemm : NULL;
    return code;
}

orr_code cli_gemm_policy(const char *word, orr_code otherwise, orr_policy *out, orr_error *err)
{
    static const orr_policy known[] = {ORR_POLICY_DATA, ORR_POLICY_MODEL,
                                       ORR_POLICY_HYBRID_DATA_MODEL, ORR_POLICY_HYBRID_MODEL_DATA,
                                       ORR_POLICY_HYBRID_CUSTOMIZED};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(word, orr_policy_name(known[i])) == 0) {
            *out = known[i];
            return ORR_OK;
        }
    }
    return orr_fail(err, otherwise, NULL,
                    "--parallel '%s' is not DATA, MODEL, HYBRID_DATA_MODEL, HYBRID_MODEL_DATA or "
                    "HYBRID_CUSTOMIZED",
                    word);
}

/* ---- intermediate files ---- */

static orr_code make_folder(const char *path, orr_error *err)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return ORR_OK;
    const orr_where where = orr_where_line(path, 0, 0);
    return orr_fail(err, ORR_EIO, &where, "cannot create the folder: %s", strerror(errno));
}

/* The file name without its folder, and with any of the characters of ".csv" stripped from its end
 * (scale-sim.md 7.3: nothing is left of vcs.csv). */
static void stem_of(const char *path, char *out, size_t room)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t n = strlen(name);
    while (n && strchr(".csv", name[n - 1]))
        n--;
    snprintf(out, room, "%.*s", (int)n, name);
}

orr_code cli_gemm_keep(
    const orr_gemm *g, orr_policy policy, const char *run_name, const char *shapes, orr_error *err)
{
    char folder[1024], stem[512];
    orr_code code = make_folder("outputs", err);
    snprintf(folder, sizeof folder, "outputs/%s", orr_policy_name(policy));
    if (!code)
        code = make_folder(folder, err);
    const int n =
        snprintf(folder, sizeof folder, "outputs/%s/%s", orr_policy_name(policy), run_name);
    if (!code && (n < 0 || (size_t)n >= sizeof folder))
        code = cli_misuse(err, "the name of the run is too long");
    if (!code)
        code = make_folder(folder, err);
    stem_of(shapes, stem, sizeof stem);
    return code ? code : orr_gemm_write_intermediate(g, folder, stem, err);
}

/* ---- options ---- */

static const cli_option options[] = {
    {"output", 'o', "OUT", "output file; .orr: traces", .kind = CLI_OUTPUT},
    {"form", 'f', "text|set|files", "form of OUT: text, a .orr file, or a prefix of .et files"},
    {"npus", 'n', "N", "number of NPUs", CLI_COUNT, 1, 1 << 20, "8"},
    {"packages", 0, "N", "number of packages", CLI_COUNT, 1, 1 << 20, "1"},
    {"parallel", 'p', "POLICY",
     "parallelization: DATA, MODEL, HYBRID_DATA_MODEL, HYBRID_MODEL_DATA or "
     "HYBRID_CUSTOMIZED (DATA, or as the strategy column says)"},
    {"hardware", 'w', "CHIP", "kernel times of this chip ('orrery chip list'), or of a file",
     .fallback = "h200"},
    {"machine", 0, "MACHINE", "chip and devices of this cluster ('orrery machine list')"},
    {"dtype", 0, "TYPE", "type of products on the chip: bf16, fp16, fp8, ...; default: by size"},
    {"design", 0, "DESIGN",
     "arrays of a name from --list-designs, or of a file, instead of a chip"},
    {"config", 'c', "FILE", "a SCALE-Sim configuration instead of a chip: one array, no clock"},
    {"array", 'a', "RxC", "override rows and columns of the design's arrays"},
    {"dataflow", 0, "os|ws|is", "override the design's dataflow"},
    {"datatype-size", 'd', "BYTES", "bytes per element", CLI_COUNT, 1, 64, "2"},
    {"update", 'u', "HOW", "optimizer: sgd, momentum, adam, none, or a time for every layer",
     .fallback = "sgd"},
    {"times", 't', "us|ns|cycles", "unit of times; default: us, or cycles without a clock"},
    {"repeat", 0, "N", "repeat the table this many times", CLI_COUNT, 1, 1 << 20, "1"},
    {"passes", 0, "N", "training steps in traces", CLI_COUNT, 1, 1 << 20, "1"},
    {"dims", 0, "N", "network dimensions in traces; 0: omit", CLI_COUNT, .max = 64,
     .fallback = "0"},
    {"sweep", 's', "A-B", "try arrays of A to B rows and columns of the design, each dataflow",
     .implied = "8-512"},
    {"example", 'e', "NAME", "use a built-in table instead of SHAPES"},
    {"print", 0, NULL, "print the table of --example, or the file of --design"},
    {"list-hardware", 'l', NULL, "list the chips"},
    {"list-designs", 0, NULL, "list the built-in designs"},
    {"list-examples", 0, NULL, "list the built-in tables"},
    {"compat", 0, "v1|v2", "the output of the old generator with that version of SCALE-Sim"},
    {"keep-intermediate", 0, NULL, "with --compat: also write its intermediate files, to outputs/"},
    {"run-name", 0, "NAME", "their folder: outputs/PARALLEL/NAME", .fallback = "test"},
    {"json", 0, NULL, "print the cost of the layers as one JSON object instead of a workload"},
    {"csv", 0, NULL, "the same as CSV"},
    {0},
};

static const cli_argument arguments[] = {
    {"SHAPES", "a CSV file: Layer,m,n,k and more; - is standard input", CLI_MAYBE},
    {0},
};

static const cli_example examples[] = {
    {"List what is built in:", "orrery gemm --list-hardware", 0},
    {"ResNet-50 on 64 chips, data parallel:",
     "orrery gemm --example resnet50 --npus 64 --hardware b200 -o resnet50.txt", 0},
    {"The same on arrays of one's own (here those of a TPU v4):",
     "orrery gemm --example resnet50 --npus 64 --design tpu-v4 -o arrays.txt", 0},
    {"A table to start from:", "orrery gemm --example dlrm --print > model.csv", 0},
    {"From shapes to traces in one line:",
     "orrery gemm model.csv -n 16 -q | orrery convert text - --npus 16 -o m.orr", 0},
    {"All blocks of GPT-3, 8-way model parallel, as traces:",
     "orrery gemm -e gpt3_block --repeat 96 -n 8 -p MODEL -o gpt3.orr", 0},
    {"Which array suits it:", "orrery gemm -e gpt3_block -n 8 --design h200 --sweep", 0},
    {0},
};

/* ---- values ---- */

static orr_code read_policy(const cli_context *c,
                            const orr_shapes *s,
                            orr_policy *out,
                            orr_error *err)
{
    const char *word = cli_text(c, "parallel");
    *out = orr_shapes_have_policies(s) ? ORR_POLICY_HYBRID_CUSTOMIZED : ORR_POLICY_DATA;
    return word ? cli_gemm_policy(word, ORR_EUSAGE, out, err) : ORR_OK;
}

static orr_gemm_times times_of(const char *word)
{
    if (!word)
        return ORR_TIMES_BEST;
    return strcmp(word, "us") == 0   ? ORR_TIMES_US
           : strcmp(word, "ns") == 0 ? ORR_TIMES_NS
                                     : ORR_TIMES_CYCLES;
}

/* Decimal digits only, up to `end`. */
static bool read_digits(const char *text, const char *end, uint64_t *out)
{
    uint64_t v = 0;
    if (text == end)
        return false;
    for (; text < end; text++) {
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (unsigned)(*text - '0'), &v))
            return false;
    }
    *out = v;
    return true;
}

/* "8-512", "32x64": two numbers with a separator. */
static bool read_pair(const char *text, char sign, uint64_t most, uint64_t *a, uint64_t *b)
{
    const char *at = strchr(text, sign);
    return at && read_digits(text, at, a) && read_digits(at + 1, at + strlen(at), b) && *a >= 1 &&
           *b >= 1 && *a <= most && *b <= most;
}

static orr_code read_update(const cli_context *c, orr_gemm_options *opt, orr_error *err)
{
    static const char *const words[] = {"sgd", "momentum", "adam", "none"};
    const char *text = cli_text(c, "update");
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(text, words[i]) == 0) {
            opt->update = (orr_gemm_update)i;
            return ORR_OK;
        }
    }
    opt->update = ORR_UPDATE_GIVEN;
    if (read_digits(text, text + strlen(text), &opt->update_time))
        return ORR_OK;
    return cli_misuse(err, "--update '%s' is not sgd, momentum, adam, none or a whole number",
                      text);
}

/* ---- hardware ---- */

/* Apply --array and --dataflow, whichever source the array is from. */
static orr_code change_array(
    const cli_context *c, uint64_t *rows, uint64_t *columns, orr_dataflow *dataflow, orr_error *err)
{
    static const char *const words[] = {"os", "ws", "is"};
    const char *array = cli_text(c, "array"), *flow = cli_text(c, "dataflow");
    if (array && !read_pair(array, 'x', 1 << 16, rows, columns))
        return cli_misuse(err, "--array '%s' is not rows x columns, each up to 65536, as 128x128",
                          array);
    for (unsigned i = 0; flow && i < 3; i++) {
        if (strcmp(flow, words[i]) == 0)
            *dataflow = (orr_dataflow)i;
    }
    return ORR_OK;
}

/* The hardware to compute on: a chip, a design or a SCALE-Sim configuration. */
typedef struct target {
    cli_hardware hardware; /* a chip, or a design */
    orr_scalesim_config config;
} target;

/* The chip of --machine, and one NPU per device unless --npus is given. */
static orr_code read_machine(const cli_context *c,
                             cli_hardware *out,
                             orr_gemm_options *opt,
                             orr_error *err)
{
    orr_machine m;
    orr_code code = cli_given(c, "npus")
                        ? orr_machine_for(cli_text(c, "machine"), opt->npus, &m, err)
                        : orr_machine_find(cli_text(c, "machine"), &m, err);
    if (!code)
        code = cli_hardware_find(m.chip, out, err);
    if (code)
        return orr_because(err, code, "--machine %s", cli_text(c, "machine"));
    opt->npus = orr_machine_devices(&m);
    return ORR_OK;
}

/* Options that say the same, and those that only arrays have. */
static orr_code check_target(const cli_context *c, const orr_gemm_options *opt, orr_error *err)
{
    static const char *const ways[] = {"config", "design", "machine", "hardware"};
    const char *first = NULL;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (!cli_given(c, ways[i]))
            continue;
        if (first)
            return cli_misuse(err, "--%s and --%s cannot be used together", first, ways[i]);
        first = ways[i];
    }
    if (!cli_given(c, "config") && opt->rules)
        return cli_misuse(err, "--compat requires a SCALE-Sim --config");
    if (cli_given(c, "dtype") && (cli_given(c, "config") || cli_given(c, "design")))
        return cli_misuse(err, "--dtype is of chips; arrays have --datatype-size");
    return ORR_OK;
}

/* The option that only arrays have, if it was given. */
static const char *of_arrays(const cli_context *c)
{
    return cli_given(c, "array")      ? "array"
           : cli_given(c, "dataflow") ? "dataflow"
           : cli_given(c, "sweep")    ? "sweep"
                                      : NULL;
}

static orr_code read_device(const cli_context *c,
                            cli_hardware *out,
                            orr_gemm_options *opt,
                            orr_error *err)
{
    *out = (cli_hardware){.chip = NULL};
    if (cli_given(c, "design"))
        return cli_design_find(cli_text(c, "design"), &out->design, err);
    const orr_code code = cli_given(c, "machine")
                              ? read_machine(c, out, opt, err)
                              : cli_hardware_find(cli_text(c, "hardware"), out, err);
    if (!code && out->chip && of_arrays(c))
        return cli_misuse(err,
                          "--%s is of arrays: it requires a --design ('orrery gemm "
                          "--list-designs') or --config",
                          of_arrays(c));
    return code;
}

static orr_code read_type(const cli_context *c, orr_gemm_options *opt, orr_error *err)
{
    const char *word = cli_text(c, "dtype"), *near = NULL;
    if (!word || orr_kernel_type_find(orr_str_of(word), &opt->type)) {
        opt->has_type = word != NULL;
        opt->datatype_bytes = word && !cli_given(c, "datatype-size") ? 0 : opt->datatype_bytes;
        return ORR_OK;
    }
    for (unsigned i = 0; i < ORR_KERNEL_TYPES; i++)
        near = cli_nearer(word, near, orr_kernel_type_name((orr_kernel_type)i));
    if (near)
        return cli_misuse(err, "unknown type '%s'; did you mean '%s'?", word, near);
    return cli_misuse(err, "unknown type '%s'; 'orrery chip show CHIP' lists those of a chip",
                      word);
}

static orr_code read_target(const cli_context *c, target *m, orr_gemm_options *opt, orr_error *err)
{
    const char *config = cli_text(c, "config");
    orr_code code = check_target(c, opt, err);
    if (!code && config) {
        code = orr_scalesim_read_config(config, &m->config, err);
        opt->array = &m->config.array;
        return code ? code
                    : change_array(c, &m->config.array.rows, &m->config.array.columns,
                                   &m->config.array.dataflow, err);
    }
    if (!code)
        code = read_device(c, &m->hardware, opt, err);
    if (code)
        return code;
    opt->chip = m->hardware.chip;
    if (opt->chip)
        return read_type(c, opt, err);
    if (cli_given(c, "dtype"))
        return cli_misuse(err, "--dtype is of chips; arrays have --datatype-size");
    opt->hardware = &m->hardware.design;
    return change_array(c, &m->hardware.design.rows, &m->hardware.design.columns,
                        &m->hardware.design.dataflow, err);
}

/* ---- lists ---- */

static double tflops_of(const orr_chip *chip)
{
    const double bf16 = chip->peak_tflops[ORR_TYPE_BF16], fp16 = chip->peak_tflops[ORR_TYPE_FP16];
    return bf16 > fp16 ? bf16 : fp16;
}

static void list_hardware(void)
{
    for (size_t i = 0; orr_chip_at(i); i++) {
        const orr_chip *chip = orr_chip_at(i);
        printf("%-13s %6.4g TFLOP/s %5.2f TB/s %4.0f GB  %s\n", chip->name, tflops_of(chip),
               chip->memory_GBps / 1e3, chip->memory_GB, chip->source ? "measured" : "estimated");
    }
}

static void list_hardware_json(void)
{
    cli_json j;
    orr_json_writer *w = cli_json_open(&j, "orrery-hardware");
    orr_json_put_array(w, "chips");
    for (size_t i = 0; orr_chip_at(i); i++) {
        const orr_chip *chip = orr_chip_at(i);
        orr_json_line(w, 2);
        orr_json_put_row(w, ORR_T("name", chip->name), ORR_D("tflops_16_bit", tflops_of(chip)),
                         ORR_D("memory_GBps", chip->memory_GBps), ORR_T("source", chip->source),
                         ORR_T("note", chip->note));
    }
    orr_json_end_array(w);
    cli_json_close(&j);
}

static void list_designs(void)
{
    for (size_t i = 0; orr_hardware_at(i); i++) {
        const orr_hardware *hw = orr_hardware_at(i);
        printf("%-9s %3" PRIu64 " x %3" PRIu64 " x %-3" PRIu64 "  %s\n", hw->name, hw->arrays,
               hw->rows, hw->columns, hw->note);
    }
}

static void list_designs_json(void)
{
    cli_json j;
    orr_json_writer *w = cli_json_open(&j, "orrery-designs");
    orr_json_put_array(w, "designs");
    for (size_t i = 0; orr_hardware_at(i); i++) {
        const orr_hardware *hw = orr_hardware_at(i);
        orr_json_line(w, 2);
        orr_json_put_row(
            w, ORR_T("name", hw->name), ORR_U("arrays", hw->arrays), ORR_U("rows", hw->rows),
            ORR_U("columns", hw->columns), ORR_U("clock_hz", hw->clock_hz),
            ORR_U("memory_bandwidth_Bps", hw->memory_bandwidth), ORR_T("note", hw->note));
    }
    orr_json_end_array(w);
    cli_json_close(&j);
}

static void list_examples(void)
{
    orr_shapes_example e;
    for (size_t i = 0; orr_shapes_example_at(i, &e); i++)
        printf("%-12s %s\n", e.name, e.help);
}

static void list_examples_json(void)
{
    orr_shapes_example e;
    cli_json j;
    orr_json_writer *w = cli_json_open(&j, "orrery-gemm-examples");
    orr_json_put_array(w, "examples");
    for (size_t i = 0; orr_shapes_example_at(i, &e); i++) {
        orr_json_line(w, 2);
        orr_json_put_row(w, ORR_T("name", e.name), ORR_T("help", e.help));
    }
    orr_json_end_array(w);
    cli_json_close(&j);
}

static orr_code find_example(const char *name, orr_shapes_example *out, orr_error *err)
{
    const char *near = NULL;
    for (size_t i = 0; orr_shapes_example_at(i, out); i++) {
        if (strcmp(out->name, name) == 0)
            return ORR_OK;
        near = cli_nearer(name, near, out->name);
    }
    return cli_misuse(err, "unknown example '%s'; %s%s%s", name,
                      near ? "did you mean '" : "'orrery gemm --list-examples' shows them",
                      near ? near : "", near ? "'?" : "");
}

static orr_code print_source(const cli_context *c, orr_error *err)
{
    orr_shapes_example e;
    orr_hardware hw;
    char text[1000];
    orr_code code = ORR_OK;
    if (cli_given(c, "example")) {
        code = find_example(cli_text(c, "example"), &e, err);
        if (!code)
            cli_print(e.text);
        return code;
    }
    if (!cli_given(c, "design"))
        return cli_misuse(err, "--print prints the table of --example or the file of --design");
    code = cli_design_find(cli_text(c, "design"), &hw, err);
    if (!code)
        fwrite(text, 1, orr_hardware_text(&hw, text, sizeof text), stdout);
    return code;
}

/* ---- writing ---- */

typedef enum form { FORM_TEXT, FORM_SET, FORM_FILES } form;

static form form_of(const cli_context *c)
{
    const char *word = cli_text(c, "form"), *to = cli_text(c, "output");
    if (!word)
        return to && orr_has_suffix(to, ".orr") ? FORM_SET : FORM_TEXT;
    return strcmp(word, "text") == 0 ? FORM_TEXT : strcmp(word, "set") == 0 ? FORM_SET : FORM_FILES;
}

orr_code cli_check_passes(size_t layers, uint64_t passes, orr_error *err)
{
    const uint64_t most = UINT64_C(1) << 20;
    if (passes < 2 || layers <= most / passes)
        return ORR_OK;
    return cli_misuse(
        err, "%zu layers in %" PRIu64 " passes are more than %" PRIu64 " passes through layers",
        layers, passes, most);
}

static orr_code write_traces(const cli_context *c, const orr_layers *t, form f, orr_error *err)
{
    const char *to = cli_text(c, "output");
    const orr_layers_expand opt = {.ranks = (uint32_t)cli_count(c, "npus"),
                                   .passes = (uint32_t)cli_count(c, "passes"),
                                   .dims = (uint32_t)cli_count(c, "dims"),
                                   .with_updates = true};
    orr_set *set;
    orr_code code = cli_check_passes(orr_layers_count(t), opt.passes, err);
    if (!code)
        code = orr_layers_set(t, &opt, &set, err);
    if (code)
        return code;
    if (orr_layers_needs_dims(t) && opt.dims == 0)
        cli_note(
            c,
            "note: %s sends along some network dimensions only; without --dims, every collective "
            "spans all ranks\n",
            orr_policy_name(orr_layers_policy(t)));
    code = f == FORM_SET ? orr_set_save(set, to, NULL, err)
                         : orr_set_write_files(set, to, NULL, 0, err);
    orr_set_close(set);
    return code;
}

static orr_code write_workload(const cli_context *c,
                               const orr_gemm *g,
                               const orr_rules_gemm *rules,
                               orr_error *err)
{
    const char *to = cli_text(c, "output");
    const form f = form_of(c);
    orr_layers *t;
    orr_code code = orr_gemm_table(g, &t, err);
    if (code)
        return code;
    code = f == FORM_TEXT ? orr_layers_write(t, to ? to : "-", orr_gemm_style(rules), err)
                          : write_traces(c, t, f, err);
    orr_layers_free(t);
    return code;
}

/* ---- the command ---- */

static orr_code read_shapes(const cli_context *c,
                            const orr_rules_gemm *rules,
                            orr_shapes **out,
                            orr_error *err)
{
    const char *policy = cli_text(c, "parallel");
    const orr_shapes_options opt = {
        .rules = rules, .needs_policies = policy && strcmp(policy, "HYBRID_CUSTOMIZED") == 0};
    const char *name = cli_text(c, "example");
    orr_shapes_example e;
    if (name && c->arg_count)
        return cli_misuse(err, "--example takes the place of '%s'", c->args[0]);
    if (!name && c->arg_count == 0)
        return cli_misuse(err, "missing argument: SHAPES, or --example NAME");
    if (!name)
        return orr_shapes_read(c->args[0], &opt, out, err);
    const orr_code code = find_example(name, &e, err);
    return code ? code
                : orr_shapes_parse((orr_span){(const uint8_t *)e.text.ptr, e.text.len}, e.name,
                                   &opt, out, err);
}

static orr_code check_outputs(const cli_context *c, orr_error *err)
{
    const char *to = cli_text(c, "output");
    const bool reports = cli_flag(c, "json") || cli_flag(c, "csv");
    if (cli_flag(c, "json") && cli_flag(c, "csv"))
        return cli_misuse(err, "--json and --csv cannot be used together");
    if (reports && to && strcmp(to, "-") == 0)
        return cli_misuse(err, "--%s and -o - both write to standard output",
                          cli_flag(c, "json") ? "json" : "csv");
    if (form_of(c) != FORM_TEXT && (!to || strcmp(to, "-") == 0))
        return cli_misuse(err, "traces need a name: -o OUT");
    if (form_of(c) != FORM_TEXT && cli_given(c, "times") && strcmp(cli_text(c, "times"), "us") != 0)
        return cli_misuse(err, "times in traces are microseconds: --times us");
    if (cli_flag(c, "keep-intermediate") && !cli_given(c, "compat"))
        return cli_misuse(err, "--keep-intermediate requires --compat");
    if (cli_given(c, "run-name") && !cli_flag(c, "keep-intermediate"))
        return cli_misuse(err, "--run-name requires --keep-intermediate");
    if (cli_given(c, "sweep") && (to || cli_given(c, "form")))
        return cli_misuse(err, "--sweep writes no workload: leave out --output and --form");
    if (form_of(c) == FORM_TEXT && (cli_given(c, "passes") || cli_given(c, "dims")))
        return cli_misuse(err, "--%s applies to traces only: -o NAME.orr, or --form set or files",
                          cli_given(c, "passes") ? "passes" : "dims");
    return ORR_OK;
}

static orr_code report(const cli_context *c, orr_gemm *g, orr_error *err)
{
    orr_str text = {0};
    const bool as_json = cli_flag(c, "json"), as_csv = cli_flag(c, "csv");
    const orr_code code = as_json  ? orr_gemm_json(g, &text, err)
                          : as_csv ? orr_gemm_csv(g, &text, err)
                                   : orr_gemm_text(g, &text, err);
    if (!code && (as_json || as_csv))
        cli_print(text);
    else if (!code)
        cli_note(c, "%.*s", (int)text.len, text.ptr);
    return code;
}

static orr_code sweep(const cli_context *c,
                      const orr_shapes *s,
                      const orr_gemm_options *opt,
                      orr_error *err)
{
    uint64_t least, most;
    orr_gemm_sweep *w;
    orr_str text = {0};
    if (!read_pair(cli_text(c, "sweep"), '-', 1 << 16, &least, &most))
        return cli_misuse(err, "--sweep '%s' is not a range such as 8-512", cli_text(c, "sweep"));
    orr_code code = orr_gemm_sweep_create(s, opt, (uint32_t)least, (uint32_t)most, &w, err);
    if (code)
        return code;
    code = cli_flag(c, "json")  ? orr_gemm_sweep_json(w, &text, err)
           : cli_flag(c, "csv") ? orr_gemm_sweep_csv(w, &text, err)
                                : orr_gemm_sweep_text(w, cli_is_colored(c, stdout), &text, err);
    if (!code)
        cli_print(text);
    orr_gemm_sweep_destroy(w);
    return code;
}

static orr_code make(const cli_context *c,
                     const orr_shapes *s,
                     const orr_gemm_options *opt,
                     orr_error *err)
{
    const bool reports = cli_flag(c, "json") || cli_flag(c, "csv");
    orr_gemm *g;
    orr_code code = orr_gemm_create(s, opt, &g, err);
    if (code)
        return code;
    if (cli_given(c, "output") || !reports)
        code = write_workload(c, g, opt->rules, err);
    if (!code && cli_flag(c, "keep-intermediate"))
        code = cli_gemm_keep(g, opt->policy, cli_text(c, "run-name"),
                             c->arg_count ? c->args[0] : cli_text(c, "example"), err);
    if (!code)
        code = report(c, g, err);
    orr_gemm_destroy(g);
    return code;
}

static orr_code gemm_make(cli_context *c, orr_error *err)
{
    orr_gemm_options opt = {.npus = (uint32_t)cli_count(c, "npus"),
                            .packages = (uint32_t)cli_count(c, "packages"),
                            .datatype_bytes = (uint32_t)cli_count(c, "datatype-size"),
                            .times = times_of(cli_text(c, "times")),
                            .repeat = (uint32_t)cli_count(c, "repeat"),
                            .program = "orrery " ORR_VERSION};
    target m = {.hardware = {.chip = NULL}};
    orr_shapes *s;
    orr_code code = check_outputs(c, err);
    if (!code)
        code = cli_gemm_rules(cli_text(c, "compat"), &opt.rules, err);
    if (!code)
        code = read_update(c, &opt, err);
    if (!code)
        code = read_target(c, &m, &opt, err);
    if (!code)
        code = orr_gemm_check_run_name(opt.rules, cli_text(c, "config"), m.config.run_name, err);
    if (code || (code = read_shapes(c, opt.rules, &s, err)))
        return code;
    code = read_policy(c, s, &opt.policy, err);
    if (!code)
        code = cli_given(c, "sweep") ? sweep(c, s, &opt, err) : make(c, s, &opt, err);
    orr_shapes_free(s);
    return code;
}

static orr_code gemm_run(cli_context *c, orr_error *err)
{
    if (cli_flag(c, "list-hardware"))
        cli_flag(c, "json") ? list_hardware_json() : list_hardware();
    else if (cli_flag(c, "list-designs"))
        cli_flag(c, "json") ? list_designs_json() : list_designs();
    else if (cli_flag(c, "list-examples"))
        cli_flag(c, "json") ? list_examples_json() : list_examples();
    else if (cli_flag(c, "print"))
        return print_source(c, err);
    else
        return gemm_make(c, err);
    return ORR_OK;
}

const cli_command cli_cmd_gemm = {
    .name = "gemm",
    .summary = "turn a table of layer shapes into a workload",
    .description =
        "SHAPES lists layers and their sizes: matrix products, convolutions, embeddings, attention, norms.  "
        "They are divided among the NPUs; each pass of a layer takes as long as its kernels on the chip, as "
        "'orrery chip time' has them, or on a design's arrays.  The result is a text workload of ASTRA-sim 1.0, or "
        "traces.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-convert(1), orrery-run(1), orrery-scalesim(1)",
    .run = gemm_run,
};
