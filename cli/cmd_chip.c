/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_chip.c - orrery chip: built-in chips, and kernel times on them. */
#include "command.h"

#include <orrery/lab/chip.h>

#include <stdio.h>
#include <stdlib.h>
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

/* ---- kernels ---- */

typedef struct timed_kernels {
    const orr_chip *chip;
    orr_kernel_timed *list;
    size_t count, room;
} timed_kernels;

static orr_code keep_time(timed_kernels *p, const orr_kernel_timed *one, orr_error *err)
{
    if (p->count == p->room) {
        const size_t room = p->room ? 2 * p->room : 16;
        orr_kernel_timed *more = realloc(p->list, room * sizeof *more);
        if (!more)
            return orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
        p->list = more;
        p->room = room;
    }
    p->list[p->count++] = *one;
    return ORR_OK;
}

static orr_code time_kernels(
    timed_kernels *p, orr_str list, const char *path, uint32_t line, orr_error *err)
{
    const char *const start = list.ptr;
    orr_kernel_timed one;
    orr_code code;
    while ((code = orr_kernel_next(&list, &one.kernel, err)) == ORR_OK) {
        if (!orr_chip_time(p->chip, &one.kernel, &one.time)) {
            const orr_where w = orr_where_line(path, line, 1);
            char text[ORR_KERNEL_TEXT];
            orr_kernel_text(&one.kernel, text, sizeof text);
            return orr_fail(err, ORR_EINPUT, &w, "%s: %s does not support matrix products in %s",
                            text, p->chip->name, orr_kernel_type_name(one.kernel.type));
        }
        const orr_code kept = keep_time(p, &one, err);
        if (kept)
            return kept;
    }
    if (code == ORR_END)
        return ORR_OK;
    const orr_where w =
        orr_where_line(path, line, (err ? err->where.column : 1) + (uint32_t)(list.ptr - start));
    if (err)
        err->where = w;
    return code;
}

static orr_code time_file(timed_kernels *p, const char *path, orr_error *err)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    const size_t before = p->count;
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

static orr_code time_all(const cli_context *c, timed_kernels *p, orr_error *err)
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
    timed_kernels p = {.chip = chip};
    if (c->arg_count < 3 && !cli_given(c, "from"))
        return cli_misuse(
            err,
            "chip time: expected a kernel such as \"gemm bf16 m=4096 n=4096 k=4096\", or --from "
            "FILE");
    orr_code code = time_all(c, &p, err);
    if (!code)
        code = orr_show_kernels(chip, p.list, p.count, cli_show_form(c), "-", err);
    free(p.list);
    return code;
}

/* ---- the command ---- */

static orr_code chip_run(cli_context *c, orr_error *err)
{
    const char *const what = c->args[0];
    if (strcmp(what, "time") != 0 && (c->arg_count > 2 || cli_given(c, "from")))
        return cli_misuse(err, "chip %s takes no kernels", what);
    if (strcmp(what, "list") == 0)
        return c->arg_count > 1 ? cli_misuse(err, "chip list takes no chip")
                                : orr_show_chips(cli_show_form(c), "-", err);
    if (c->arg_count < 2)
        return cli_misuse(err, "chip %s: missing chip name; see 'orrery chip list'", what);
    orr_chip own;
    const orr_chip *chip;
    const orr_code code = cli_chip_find(c->args[1], &own, &chip, err);
    if (code)
        return code;
    return strcmp(what, "show") == 0 ? orr_show_chip(chip, cli_show_form(c), "-", err)
                                     : run_time(c, chip, err);
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
