/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate_kernels.c - orrery calibrate kernels: a chip file from measured kernels.
 *
 * Rows are CSV with the columns kernel (words of chip.h) and us.  For each kind of kernel the
 * factor is the median of measured over predicted time, and the interval is its 5th to 95th
 * percentile.  Cross-validation in five parts gives the error.  An export of Nsight Systems gives
 * the same rows, one per operator call with recorded shapes. */
#include "calibrate.h"
#include "command.h"

#include <orrery/lab/chip.h>
#include <orrery/lab/nsys.h>
#include <orrery/view.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MOST = 1000000, PARTS = 5, ROWS_LEAST = 3 };

static const cli_option options[] = {
    {"like", 'l', "CHIP", "the most similar measured chip ('orrery chip list')", .required = true},
    {"output", 'o', "FILE", "write the chip to FILE (.yml)", .kind = CLI_OUTPUT},
    {"plot", 0, "FILE", "plot fitted against measured times, and the residuals (.svg)",
     .kind = CLI_OUTPUT},
    {"dtype", 0, "bf16|fp16|fp32",
     "data type of the operators in an export, which does not record it", .fallback = "bf16"},
    {"json", 0, NULL, "print one JSON object"},
    {0},
};

static const cli_argument arguments[] = {
    {"FILE",
     "output of orrery_measure.py (CSV: kernel,us; - is standard input), or an Nsight "
     "Systems export (.sqlite)",
     0},
    {0},
};

static const cli_example examples[] = {
    {"Measured kernels (on a GPU: python3 orrery_measure.py -o measured.csv):",
     "printf 'kernel,us\\nnorm bf16 m=4096 n=4096 rms,24.8\\nnorm bf16 m=8192 n=4096 rms,46\\n"
     "norm bf16 m=8192 n=8192 rms,89\\n' > measured.csv",
     0},
    {"Fit a chip to these times:", "orrery calibrate kernels measured.csv --like h200 -o mine.yml",
     0},
    {"", "orrery chip time mine.yml 'norm bf16 m=16384 n=4096 rms'", 0},
    {0},
};

typedef struct measured {
    orr_kernel_kind kind;
    double known, us;
    size_t part; /* which cross-validation part it belongs to */
} measured;

typedef struct fit {
    const orr_chip *chip;
    measured *rows;
    double *ratios; /* scratch space, one per row */
    size_t count, room;
    size_t seen[ORR_KERNEL_KINDS];
    orr_kernel_fit result;
} fit;

/* ---- rows ---- */

static orr_code keep_row(fit *f, measured row, orr_error *err)
{
    if (f->count == f->room) {
        const size_t room = f->room ? 2 * f->room : 256;
        measured *more = realloc(f->rows, room * sizeof *more);
        if (!more)
            return orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
        f->rows = more;
        f->room = room;
    }
    row.part = f->seen[row.kind]++ % PARTS;
    f->rows[f->count++] = row;
    return ORR_OK;
}

static orr_code add_row(fit *f, const cal_lines *l, orr_error *err)
{
    char *text = l->text;
    char *comma = strchr(text, ','), *end;
    orr_kernel k;
    orr_kernel_time t;
    orr_error why;
    if (!comma)
        return cal_fail(l, "expected a kernel, a comma and microseconds", err);
    *comma = '\0';
    const double us = strtod(comma + 1, &end);
    if (end == comma + 1 || (*end && *end != ','))
        return cal_fail(l, "the second column, us, is not a number", err);
    if (!(us > 0.1 && us < 1e8))
        return cal_fail(l, "us: expected 0.1 to 100,000,000 microseconds", err);
    if (orr_kernel_parse(orr_str_of(text), &k, &why))
        return cal_fail(l, why.message, err);
    if (!orr_chip_time(f->chip, &k, &t))
        return cal_fail(l, "the similar chip (--like) cannot run this kernel", err);
    if (us < t.us / 50 || us > t.us * 50)
        return cal_fail(
            l, "50 times faster or slower than on the similar chip (--like); is the unit right?",
            err);
    if (f->count == ROWS_MOST)
        return cal_fail(l, "more than 1,000,000 rows", err);
    return keep_row(f, (measured){.kind = k.kind, .known = t.us, .us = us}, err);
}

/* An operator of an export.  Outliers are skipped, not errors: they were timed during warm-up or
 * while waiting. */
static orr_code take_operator(void *context, const char *kernel, double us, orr_error *err)
{
    fit *f = context;
    orr_kernel k;
    orr_kernel_time t;
    orr_error why;
    if (f->count == ROWS_MOST || orr_kernel_parse(orr_str_of(kernel), &k, &why) ||
        !orr_chip_time(f->chip, &k, &t) || us < t.us / 50 || us > t.us * 50 || !(us > 0.1)) {
        f->result.passed_over++;
        return ORR_OK;
    }
    return keep_row(f, (measured){.kind = k.kind, .known = t.us, .us = us}, err);
}

static orr_code read_export(fit *f, const char *path, const char *type, orr_error *err)
{
    uint64_t others = 0;
    const orr_where at = orr_where_line(path, 0, 0);
    const orr_code code = orr_nsys_operators(path, type, take_operator, f, &others, err);
    f->result.passed_over += others;
    return code || f->count >= ROWS_LEAST
               ? code
               : orr_fail(err, ORR_EINPUT, &at,
                          "%zu operator calls with sizes found, expected at least 3; record with "
                          "emit_nvtx(record_shapes=True)",
                          f->count);
}

static orr_code read_rows(fit *f, const char *path, orr_error *err)
{
    cal_lines l;
    bool has_head = false;
    orr_code code = cal_open(path, &l, err);
    while (!code && cal_next(&l)) {
        if (!l.text[0] || l.text[0] == '#')
            continue;
        if (has_head)
            code = add_row(f, &l, err);
        else if (strncmp(l.text, "kernel,us", 9) != 0)
            code = cal_fail(&l, "expected the columns kernel,us in the first line", err);
        has_head = true;
    }
    code = cal_close(&l, code, err);
    return code || f->count >= ROWS_LEAST ? code : cal_fail(&l, "expected at least 3 rows", err);
}

/* ---- the fit ---- */

/* Fit the rows of a kind, except for one part; skipped PARTS: all rows. */
static orr_kind_fit fit_kind(const fit *f, orr_kernel_kind kind, size_t skipped)
{
    double *ratios = f->ratios;
    size_t n = 0;
    for (size_t i = 0; i < f->count; i++)
        if (f->rows[i].kind == kind && f->rows[i].part != skipped)
            ratios[n++] = f->rows[i].us / f->rows[i].known;
    if (n == 0)
        return (orr_kind_fit){0, 1, 0, 0};
    qsort(ratios, n, sizeof *ratios, cal_compare_doubles);
    orr_kind_fit out = {.rows = n,
                        .scale = n % 2 ? ratios[n / 2] : (ratios[n / 2 - 1] + ratios[n / 2]) / 2};
    if (n >= 8) {
        out.low = fmin(ratios[n / 20] / out.scale, 0.97);
        out.high = fmax(ratios[n - 1 - n / 20] / out.scale, 1.03);
    }
    return out;
}

static void fit_all(fit *f)
{
    for (unsigned kind = 0; kind < ORR_KERNEL_KINDS; kind++) {
        f->result.kinds[kind] = fit_kind(f, (orr_kernel_kind)kind, PARTS);
        if (!f->result.kinds[kind].rows)
            continue;
        for (size_t part = 0; part < PARTS; part++) {
            const double scale = fit_kind(f, (orr_kernel_kind)kind, part).scale;
            for (size_t i = 0; i < f->count; i++)
                if (f->rows[i].kind == (orr_kernel_kind)kind && f->rows[i].part == part)
                    f->result.left_out += fabs(f->rows[i].known * scale / f->rows[i].us - 1);
        }
    }
    for (size_t i = 0; i < f->count; i++) {
        const measured *r = &f->rows[i];
        f->result.before += fabs(r->known / r->us - 1);
        f->result.after += fabs(r->known * f->result.kinds[r->kind].scale / r->us - 1);
    }
    f->result.before /= (double)f->count;
    f->result.after /= (double)f->count;
    f->result.left_out /= (double)f->count;
}

/* ---- results ---- */

static orr_code plot(const fit *f, const char *path, orr_error *err)
{
    const char *names[ORR_KERNEL_KINDS];
    size_t series[ORR_KERNEL_KINDS], count = 0;
    orr_view_fit_point *points = malloc(f->count * sizeof *points);
    if (!points)
        return orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
    for (unsigned i = 0; i < ORR_KERNEL_KINDS; i++)
        if (f->result.kinds[i].rows) {
            series[i] = count;
            names[count++] = orr_kernel_kind_name((orr_kernel_kind)i);
        }
    for (size_t i = 0; i < f->count; i++) {
        const measured *r = &f->rows[i];
        points[i] =
            (orr_view_fit_point){r->us, r->known * f->result.kinds[r->kind].scale, series[r->kind]};
    }
    const orr_code code =
        orr_view_fit_svg(&(orr_view_fit){points, f->count, names, count, "us"}, path, err);
    free(points);
    return code;
}

static bool is_export(const char *path)
{
    const size_t n = strlen(path);
    return n > 7 && strcmp(path + n - 7, ".sqlite") == 0;
}

static orr_code fit_and_tell(cli_context *c, fit *f, orr_error *err)
{
    const char *like = cli_text(c, "like"), *output = cli_text(c, "output"),
               *picture = cli_text(c, "plot");
    orr_code code = is_export(c->args[0]) ? read_export(f, c->args[0], cli_text(c, "dtype"), err)
                                          : read_rows(f, c->args[0], err);
    if (!code && !(f->ratios = malloc(f->count * sizeof *f->ratios)))
        code = orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
    if (code)
        return code;
    fit_all(f);
    f->result.like = like;
    f->result.output = output;
    f->result.rows = f->count;
    if (output)
        code = orr_kernel_fit_save(&f->result, output, err);
    if (!code && picture)
        code = plot(f, picture, err);
    if (code)
        return code;
    code = orr_show_kernel_fit(&f->result, cli_show_form(c), "-", err);
    if (output)
        cli_note(c, "wrote %s\n", output);
    if (picture)
        cli_note(c, "wrote %s\n", picture);
    return code;
}

static orr_code calibrate_kernels_run(cli_context *c, orr_error *err)
{
    const char *like = cli_text(c, "like");
    fit f = {.chip = orr_chip_find(like)};
    if (!f.chip)
        return cli_misuse(err, "unknown chip '%s'; see 'orrery chip list'", like);
    const orr_code code = fit_and_tell(c, &f, err);
    free(f.rows);
    free(f.ratios);
    return code;
}

const cli_command cli_cmd_calibrate_kernels = {
    .name = "calibrate kernels",
    .summary = "fit a chip to measured kernel times",
    .description =
        "Reads kernel times measured by orrery_measure.py on a GPU, or operator times from "
        "an Nsight Systems export, and writes a chip file: a built-in chip with one factor "
        "per kind of kernel and the interval seen in the rows.  Prints the number of rows "
        "per factor and the error on rows left out of the fit.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-calibrate-nccl(1), orrery-chip(1), orrery-run(1)",
    .run = calibrate_kernels_run,
};
