/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate_kernels.c - orrery calibrate kernels: a chip file from measured kernels.
 *
 * Rows are CSV with the columns kernel (words of chip.h) and us.  For each kind of kernel the median of
 * measured over known is the factor; the 5th and 95th percentile around it are the interval.  A fifth of
 * the rows is left out in turn to say how far the result is off. */
#include "calibrate.h"
#include "command.h"
#include "json_out.h"

#include <orrery/lab/chip.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MOST = 20000, PARTS = 5, ROWS_LEAST = 3 };

static const cli_option options[] = {
    {"like", 'l', "CHIP", "the measured chip that it is most like ('orrery chip list')",
     .required = true},
    {"output", 'o', "FILE", "write the chip to FILE (.yml)"},
    {"json", 0, NULL, "print one JSON object"},
    {0},
};

static const cli_argument arguments[] = {
    {"FILE", "what orrery_measure.py wrote: kernel,us; - is standard input", 0},
    {0},
};

static const cli_example examples[] = {
    {"Measured kernels (on a GPU: python3 orrery_measure.py -o measured.csv):",
     "printf 'kernel,us\\nnorm bf16 m=4096 n=4096 rms,24.8\\nnorm bf16 m=8192 n=4096 rms,46\\n"
     "norm bf16 m=8192 n=8192 rms,89\\n' > measured.csv",
     0},
    {"The chip that has these times:",
     "orrery calibrate kernels measured.csv --like h200 -o mine.yml", 0},
    {"", "orrery chip time mine.yml 'norm bf16 m=16384 n=4096 rms'", 0},
    {0},
};

typedef struct measured {
    orr_kernel_kind kind;
    double known, us;
} measured;

typedef struct kind_fit {
    size_t rows;
    double scale, low, high; /* low and high around it; 0: too few rows */
} kind_fit;

typedef struct fit {
    measured rows[ROWS_MOST];
    size_t count;
    kind_fit kinds[ORR_KERNEL_KINDS];
    double before, after, left_out; /* mean errors */
} fit;

/* ---- rows ---- */

static orr_code add_row(fit *f, const orr_chip *chip, const cal_lines *l, orr_error *err)
{
    char *text = l->text;
    char *comma = strchr(text, ','), *end;
    orr_kernel k;
    orr_kernel_time t;
    orr_error why;
    if (!comma)
        return cal_fail(l, "a kernel, a comma and microseconds were expected", err);
    *comma = '\0';
    const double us = strtod(comma + 1, &end);
    if (end == comma + 1 || (*end && *end != ','))
        return cal_fail(l, "the second column, us, is no number", err);
    if (!(us > 0.1 && us < 1e8))
        return cal_fail(l, "us: 0.1 to 100,000,000 microseconds were expected", err);
    if (orr_kernel_parse(orr_str_of(text), &k, &why))
        return cal_fail(l, why.message, err);
    if (!orr_chip_time(chip, &k, &t))
        return cal_fail(l, "the chip that it is like cannot run this kernel", err);
    if (us < t.us / 50 || us > t.us * 50)
        return cal_fail(
            l, "fifty times off what the chip that it is like needs: is the unit right?", err);
    if (f->count == ROWS_MOST)
        return cal_fail(l, "more than 20,000 rows", err);
    f->rows[f->count++] = (measured){k.kind, t.us, us};
    return ORR_OK;
}

static orr_code read_rows(fit *f, const orr_chip *chip, const char *path, orr_error *err)
{
    cal_lines l;
    bool has_head = false;
    orr_code code = cal_open(path, &l, err);
    while (!code && cal_next(&l)) {
        if (!l.text[0] || l.text[0] == '#')
            continue;
        if (has_head)
            code = add_row(f, chip, &l, err);
        else if (strncmp(l.text, "kernel,us", 9) != 0)
            code = cal_fail(&l, "the columns kernel,us were expected first", err);
        has_head = true;
    }
    code = cal_close(&l, code, err);
    return code || f->count >= ROWS_LEAST ? code
                                          : cal_fail(&l, "three rows at least were expected", err);
}

/* ---- the fit ---- */

/* Of the rows of a kind, without those of one part; skipped PARTS: all. */
static kind_fit fit_kind(const fit *f, orr_kernel_kind kind, size_t skipped)
{
    static double ratios[ROWS_MOST];
    size_t n = 0;
    for (size_t i = 0; i < f->count; i++)
        if (f->rows[i].kind == kind && i % PARTS != skipped)
            ratios[n++] = f->rows[i].us / f->rows[i].known;
    if (n == 0)
        return (kind_fit){0, 1, 0, 0};
    qsort(ratios, n, sizeof *ratios, cal_compare_doubles);
    kind_fit out = {.rows = n,
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
        f->kinds[kind] = fit_kind(f, (orr_kernel_kind)kind, PARTS);
        if (!f->kinds[kind].rows)
            continue;
        for (size_t part = 0; part < PARTS; part++) {
            const double scale = fit_kind(f, (orr_kernel_kind)kind, part).scale;
            for (size_t i = part; i < f->count; i += PARTS)
                if (f->rows[i].kind == (orr_kernel_kind)kind)
                    f->left_out += fabs(f->rows[i].known * scale / f->rows[i].us - 1);
        }
    }
    for (size_t i = 0; i < f->count; i++) {
        const measured *r = &f->rows[i];
        f->before += fabs(r->known / r->us - 1);
        f->after += fabs(r->known * f->kinds[r->kind].scale / r->us - 1);
    }
    f->before /= (double)f->count;
    f->after /= (double)f->count;
    f->left_out /= (double)f->count;
}

/* ---- results ---- */

static orr_code write_chip(const fit *f, const char *like, const char *path, orr_error *err)
{
    cli_file to;
    const orr_code code = cli_file_open(path, &to, err);
    if (code)
        return code;
    fprintf(to.f, "# measured kernels over those of %s; low, high: 90 %% of the rows\n", like);
    fprintf(to.f, "like: %s\nkernels:\n", like);
    for (unsigned i = 0; i < ORR_KERNEL_KINDS; i++) {
        const kind_fit *k = &f->kinds[i];
        if (!k->rows)
            continue;
        fprintf(to.f, "  %s: {scale: %.4f, ", orr_kernel_kind_name((orr_kernel_kind)i), k->scale);
        if (k->low > 0)
            fprintf(to.f, "low: %.4f, high: %.4f, ", k->low, k->high);
        fprintf(to.f, "rows: %zu}\n", k->rows);
    }
    return cli_file_close(&to, ORR_OK, err);
}

static void print_text(const fit *f)
{
    printf(
        "%zu rows; mean error %.1f %% before, %.1f %% now, %.1f %% on rows left out of the fit\n",
        f->count, f->before * 100, f->after * 100, f->left_out * 100);
    printf("\n%-14s %5s %8s   %s\n", "kernels", "rows", "factor", "90 % of the rows");
    for (unsigned i = 0; i < ORR_KERNEL_KINDS; i++) {
        const kind_fit *k = &f->kinds[i];
        if (!k->rows)
            continue;
        printf("%-14s %5zu %8.3f   ", orr_kernel_kind_name((orr_kernel_kind)i), k->rows, k->scale);
        if (k->low > 0)
            printf("%.3f-%.3f\n", k->scale * k->low, k->scale * k->high);
        else
            printf("too few\n");
    }
}

static void print_json(const fit *f, const char *like, const char *output)
{
    cli_json j;
    orr_json_writer *w = cli_json_open(&j, "orrery-chip-calibration");
    orr_json_put_text(w, "like", like);
    orr_json_put_text(w, "output", output);
    orr_json_put_u64(w, "row_count", f->count);
    cli_json_number(w, "error_before", "%.5f", f->before);
    cli_json_number(w, "error_now", "%.5f", f->after);
    cli_json_number(w, "error_left_out", "%.5f", f->left_out);
    cli_json_array(w, "kernels");
    for (unsigned i = 0; i < ORR_KERNEL_KINDS; i++) {
        const kind_fit *k = &f->kinds[i];
        if (!k->rows)
            continue;
        orr_json_line(w, 2);
        orr_json_begin_object(w);
        orr_json_put_text(w, "kind", orr_kernel_kind_name((orr_kernel_kind)i));
        orr_json_put_u64(w, "rows", k->rows);
        cli_json_number(w, "scale", "%.5f", k->scale);
        cli_json_number(w, "low", "%.5f", k->low * k->scale);
        cli_json_number(w, "high", "%.5f", k->high * k->scale);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    cli_json_close(&j);
}

static orr_code calibrate_kernels_run(cli_context *c, orr_error *err)
{
    static fit f;
    const char *like = cli_text(c, "like"), *output = cli_text(c, "output");
    const orr_chip *chip = orr_chip_find(like);
    f = (fit){.count = 0};
    if (!chip)
        return orr_fail(err, ORR_EUSAGE, NULL, "there is no chip %s; orrery chip list has them",
                        like);
    orr_code code = cli_check_places(c, (const char *const[]){"output", NULL}, err);
    if (!code)
        code = read_rows(&f, chip, c->args[0], err);
    if (code)
        return code;
    fit_all(&f);
    if (output)
        code = write_chip(&f, like, output, err);
    if (code)
        return code;
    if (cli_flag(c, "json"))
        print_json(&f, like, output);
    else
        print_text(&f);
    if (output)
        cli_note(c, "wrote %s", output);
    return ORR_OK;
}

const cli_command cli_cmd_calibrate_kernels = {
    .name = "calibrate kernels",
    .summary = "fit a chip to kernels that were measured on it",
    .description =
        "Reads the times that orrery_measure.py measured on a GPU and writes a chip: a built-in one, each kind of kernel "
        "times a factor, with the interval that the rows give.  Says from how many rows, and how far rows that were left "
        "out of the fit lie from it.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-calibrate-nccl(1), orrery-chip(1), orrery-run(1)",
    .run = calibrate_kernels_run,
};
