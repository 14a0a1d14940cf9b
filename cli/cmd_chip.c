/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_chip.c - orrery chip: built-in chips, and kernel times on them. */
#include "command.h"

#include <orrery/lab/chip.h>
#include <orrery/lab/units.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const cli_option options[] = {
    {"from", 'f', "FILE", "time: kernels from a file, one per line (-: standard input)"},
    {"json", 0, NULL, "print one JSON object"},
    {0},
};

static const cli_argument arguments[] = {
    {"list|show|time", "what to do", CLI_ONCE},
    {"CHIP", "a name from 'orrery chip list', or a file written by 'orrery calibrate kernels'",
     CLI_MAYBE},
    {"KERNEL", "time: the kernel, e.g. \"gemm bf16 m=4096 n=4096 k=4096\"", CLI_ANY},
    {0},
};

static const cli_example examples[] = {
    {"List the chips, measured ones first:", "orrery chip list", 0},
    {"Details of one:", "orrery chip show h200", 0},
    {"A GEMM and its interval:", "orrery chip time h200 'gemm bf16 m=8192 n=28672 k=8192'", 0},
    {"Two on another chip, one after the other:",
     "orrery chip time a100 'gemm bf16 m=64 n=64 k=64;norm bf16 m=64 n=64'", 0},
    {"Many at once, as JSON:",
     "echo 'norm bf16 m=8192 n=8192 rms' | orrery chip time b200 --from - --json", 0},
    {0},
};

/* ---- chips ---- */

static const char *source_of(const orr_chip *chip)
{
    return chip->source ? chip->source : "none (roofline)";
}

static void print_list(void)
{
    printf("%-13s %9s %9s %8s  %-42s %s\n", "chip", "TFLOP/s", "memory", "size", "", "measured");
    for (size_t i = 0; orr_chip_at(i); i++) {
        const orr_chip *c = orr_chip_at(i);
        printf("%-13s %9.4g %4.2f TB/s %5.0f GB  %-42s %s\n", c->name,
               c->peak_tflops[c->peak_tflops[ORR_TYPE_BF16] > c->peak_tflops[ORR_TYPE_FP16]
                                  ? ORR_TYPE_BF16
                                  : ORR_TYPE_FP16],
               c->memory_GBps / 1e3, c->memory_GB, c->note, c->source ? "yes" : "no");
    }
}

static void print_chip(const orr_chip *c)
{
    printf("%s: %s\n", c->name, c->note);
    printf("measured     %s\n", source_of(c));
    if (c->like)
        printf("otherwise    like %s\n", c->like);
    printf("memory       %.0f GB at %.2f TB/s; cache %.0f MB\n", c->memory_GB, c->memory_GBps / 1e3,
           c->l2_MB);
    printf("units        %" PRIu32 " at %.0f MHz at most\n", c->units, c->clock_MHz);
    if (c->capped_slope > 0)
        printf("power cap    above an average of %.0f TFLOP/s, minus %.1f MHz per TFLOP/s\n",
               c->capped_from_tflops, c->capped_slope);
    printf("spread       %g %% of power from chip to chip (standard deviation)\n",
           c->power_spread * 100);
    printf("launch       at least %.1f us on the device", c->launch_us);
    if (c->dispatch_us > 0)
        printf("; the host needs %.0f us to issue an operator", c->dispatch_us);
    printf("\nhost bus     %.0f GB/s\n\n%-10s %s\n", c->bus_GBps, "type", "TFLOP/s, dense");
    for (unsigned i = 0; i < ORR_KERNEL_TYPES; i++) {
        if (c->peak_tflops[i] > 0)
            printf("%-10s %.5g\n", orr_kernel_type_name((orr_kernel_type)i), c->peak_tflops[i]);
    }
}

static void put_chip(orr_json_writer *w, const orr_chip *c)
{
    orr_json_put_fields(
        w, ORR_T("name", c->name), ORR_T("note", c->note), ORR_T("source", c->source),
        ORR_T("like", c->like), ORR_D("memory_GBps", c->memory_GBps),
        ORR_D("memory_GB", c->memory_GB), ORR_D("cache_MB", c->l2_MB), ORR_U("units", c->units),
        ORR_D("clock_MHz", c->clock_MHz), ORR_D("capped_from_tflops", c->capped_from_tflops),
        ORR_D("capped_slope", c->capped_slope), ORR_D("power_spread", c->power_spread),
        ORR_D("launch_us", c->launch_us), ORR_D("dispatch_us", c->dispatch_us),
        ORR_D("bus_GBps", c->bus_GBps));
    orr_json_put_object(w, "tflops");
    for (unsigned i = 0; i < ORR_KERNEL_TYPES; i++) {
        if (c->peak_tflops[i] > 0)
            orr_json_put_double(w, orr_kernel_type_name((orr_kernel_type)i), c->peak_tflops[i]);
    }
    orr_json_end_object(w);
}

/* ---- kernels ---- */

typedef struct printer {
    const orr_chip *chip;
    orr_json_writer *json; /* NULL: print a table */
    orr_buf text;          /* the table, held back until all kernels have been parsed */
    uint64_t count;
    double us;
} printer;

static void print_time(printer *p, const char *text, const orr_kernel *k, const orr_kernel_time *t)
{
    const orr_kernel_work w = orr_kernel_count(k);
    const double times = k->count ? (double)k->count : 1, bytes = w.read + w.write;
    if (p->json) {
        orr_json_put_row(p->json, ORR_T("kernel", text), ORR_F("us", "%.4f", t->us),
                         ORR_F("low_us", "%.4f", t->low_us), ORR_F("high_us", "%.4f", t->high_us),
                         ORR_B("extrapolates", t->extrapolates), ORR_T("basis", t->basis),
                         ORR_F("flops", "%.0f", times * w.flops),
                         ORR_F("bytes", "%.0f", times * bytes), ORR_U("launches", t->launches),
                         ORR_F("clock_share", "%.3f", t->clock_share));
        return;
    }
    orr_buf_print(&p->text, "%s\n  %.*f us (%.*f-%.*f), %s\n", text, t->us < 100 ? 2 : 1, t->us,
                  t->us < 100 ? 2 : 1, t->low_us, t->us < 100 ? 2 : 1, t->high_us, t->basis);
    orr_buf_print(&p->text, "  %.1f TFLOP/s, %.2f TB/s of the minimum memory traffic\n",
                  times * w.flops / t->us / 1e6, times * bytes / t->us / 1e6);
}

static orr_code time_kernels(
    printer *p, orr_str list, const char *path, uint32_t line, orr_error *err)
{
    const char *const start = list.ptr;
    orr_kernel k;
    orr_code code;
    while ((code = orr_kernel_next(&list, &k, err)) == ORR_OK) {
        char text[ORR_KERNEL_TEXT];
        orr_kernel_time t;
        orr_kernel_text(&k, text, sizeof text);
        if (!orr_chip_time(p->chip, &k, &t)) {
            const orr_where w = orr_where_line(path, line, 1);
            return orr_fail(err, ORR_EINPUT, &w, "%s: %s does not support matrix products in %s",
                            text, p->chip->name, orr_kernel_type_name(k.type));
        }
        print_time(p, text, &k, &t);
        p->count++;
        p->us += t.us;
    }
    if (code == ORR_END)
        return ORR_OK;
    const orr_where w =
        orr_where_line(path, line, (err ? err->where.column : 1) + (uint32_t)(list.ptr - start));
    if (err)
        err->where = w;
    return code;
}

static orr_code time_file(printer *p, const char *path, orr_error *err)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    const uint64_t before = p->count;
    char text[4096];
    uint32_t line = 0;
    orr_code code = ORR_OK;
    FILE *f = is_stdin ? stdin : fopen(path, "rb");
    if (!f)
        return orr_fail(err, ORR_EIO, &(orr_where){0}, "%s: cannot be read", path);
    while (!code && fgets(text, sizeof text, f)) {
        const size_t n = strcspn(text, "\r\n");
        const orr_where w = orr_where_line(path, ++line, 1);
        if (n == strlen(text) && n == sizeof text - 1)
            code = orr_fail(err, ORR_EINPUT, &w, "the line is longer than %zu bytes", n);
        else if (n == strlen(text) && !feof(f)) /* fgets read past a zero byte */
            code = orr_fail(err, ORR_EINPUT, &w, "not text: contains a zero byte");
        else if (n && text[0] != '#')
            code = time_kernels(p, (orr_str){text, n}, path, line, err);
    }
    if (!code && ferror(f))
        code = orr_fail(err, ORR_EIO, &(orr_where){0}, "%s: cannot be read", path);
    if (!code && p->count == before) {
        const orr_where w = orr_where_line(path, line ? line : 1, 1);
        code = orr_fail(err, ORR_EINPUT, &w, "the file has no kernels");
    }
    if (!is_stdin)
        fclose(f);
    return code;
}

static orr_code time_all(const cli_context *c, printer *p, orr_error *err)
{
    orr_code code = ORR_OK;
    for (int i = 2; i < c->arg_count && !code; i++)
        code = time_kernels(p, orr_str_of(c->args[i]), "KERNEL", (uint32_t)(i - 1), err);
    if (!code && cli_given(c, "from"))
        code = time_file(p, cli_text(c, "from"), err);
    return code;
}

static orr_code run_time(const cli_context *c, const orr_chip *chip, orr_error *err)
{
    printer p = {.chip = chip};
    cli_json j;
    if (c->arg_count < 3 && !cli_given(c, "from"))
        return cli_misuse(
            err,
            "chip time: expected a kernel such as \"gemm bf16 m=4096 n=4096 k=4096\", or --from "
            "FILE");
    if (!cli_flag(c, "json")) {
        orr_code code = time_all(c, &p, err);
        if (!code && p.text.failed)
            code = orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
        if (!code)
            cli_print((orr_str){(const char *)p.text.ptr, p.text.len});
        if (!code && p.count > 1)
            printf("%" PRIu64 " kernels, %.1f us in total\n", p.count, p.us);
        orr_buf_fini(&p.text);
        return code;
    }
    p.json = cli_json_open(&j, "orrery-chip-times");
    orr_json_put_text(p.json, "chip", chip->name);
    orr_json_put_array(p.json, "kernels");
    const orr_code code = time_all(c, &p, err);
    orr_json_end_array(p.json);
    orr_json_put_fields(p.json, ORR_F("us", "%.4f", p.us));
    if (code) {
        orr_buf_fini(&j.text);
        return code;
    }
    cli_json_close(&j);
    return ORR_OK;
}

/* ---- the command ---- */

static orr_code run_list(const cli_context *c)
{
    cli_json j;
    if (!cli_flag(c, "json")) {
        print_list();
        return ORR_OK;
    }
    orr_json_writer *w = cli_json_open(&j, "orrery-chips");
    orr_json_put_array(w, "chips");
    for (size_t i = 0; orr_chip_at(i); i++) {
        orr_json_begin_object(w);
        put_chip(w, orr_chip_at(i));
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    cli_json_close(&j);
    return ORR_OK;
}

static orr_code run_show(const cli_context *c, const orr_chip *chip)
{
    cli_json j;
    if (!cli_flag(c, "json")) {
        print_chip(chip);
        return ORR_OK;
    }
    put_chip(cli_json_open(&j, "orrery-chip"), chip);
    cli_json_close(&j);
    return ORR_OK;
}

static orr_code chip_run(cli_context *c, orr_error *err)
{
    const char *const what = c->args[0];
    if (strcmp(what, "time") != 0 && (c->arg_count > 2 || cli_given(c, "from")))
        return cli_misuse(err, "chip %s takes no kernels", what);
    if (strcmp(what, "list") == 0)
        return c->arg_count > 1 ? cli_misuse(err, "chip list takes no chip") : run_list(c);
    if (c->arg_count < 2)
        return cli_misuse(err, "chip %s: missing chip name; see 'orrery chip list'", what);
    orr_chip own;
    const orr_chip *chip;
    const orr_code code = cli_chip_find(c->args[1], &own, &chip, err);
    if (code)
        return code;
    return strcmp(what, "show") == 0 ? run_show(c, chip) : run_time(c, chip, err);
}

const cli_command cli_cmd_chip = {
    .name = "chip",
    .summary = "chips by name, and kernel times on them",
    .description = "Times come from measured kernels, with a 90 % interval; unmeasured chips and "
                   "kernels are estimated and marked as such.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-machine(1), orrery-run(1), orrery-stage(1)",
    .run = chip_run,
};
