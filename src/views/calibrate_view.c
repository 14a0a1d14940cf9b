/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate_view.c - fits to measured collectives, kernels and steps, as text and as JSON, and the
 * chip files made of them. */
#include <orrery/lab/show.h>

#include "views_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* ---- nccl ---- */

static void print_items(orr_buf *to, const orr_calibration_result *r)
{
    orr_buf_print(to, "\n%-30s %10s %10s   %s\n", "constant", "before", "now", "90 %");
    for (size_t i = 0; i < r->item_count; i++) {
        const orr_calibration_item *it = &r->items[i];
        orr_buf_print(to, "%-30s %10.4g %10.4g   %.4g-%.4g%s%s\n", it->name, it->before, it->value,
                      it->low, it->high, it->unit[0] ? " " : "", it->unit);
    }
    if (r->item_count == 0)
        orr_buf_print(to, "no constant changed: the model already matches the rows\n");
}

static void print_rows(orr_buf *to, const orr_calibration_result *r)
{
    orr_buf_print(to, "\n%-34s %-14s %6s %14s %12s %12s %12s %8s\n", "row", "op", "ranks", "bytes",
                  "measured us", "before us", "now us", "error");
    for (size_t i = 0; i < r->row_count; i++) {
        const orr_calibration_row *row = &r->rows[i];
        char place[1200];
        snprintf(place, sizeof place, "%s:%" PRIu64, row->path, row->line);
        orr_buf_print(to, "%-34s %-14s %6" PRIu32 " %14" PRIu64 " %12.2f %12.2f %12.2f %+7.1f%%\n",
                      place, row->op->name, row->ranks, row->bytes, row->us, row->before_us,
                      row->model_us, (row->model_us / row->us - 1) * 100);
    }
}

static const orr_calibration_row *worst_row(const orr_calibration_result *r)
{
    const orr_calibration_row *worst = &r->rows[0];
    double most = -1;
    for (size_t i = 0; i < r->row_count; i++) {
        const double away = fabs(r->rows[i].model_us / r->rows[i].us - 1);
        if (away > most) {
            most = away;
            worst = &r->rows[i];
        }
    }
    return worst;
}

static void print_errors(orr_buf *to, const orr_calibration_result *r, size_t files)
{
    const orr_calibration_row *w = worst_row(r);
    orr_buf_print(to, "%zu rows of %zu file%s\n", r->row_count, files, files == 1 ? "" : "s");
    orr_buf_print(
        to,
        "mean error of times: %.1f %% before the fit, %.1f %% after, %.1f %% on rows left "
        "out of the fit\n",
        r->before * 100, r->after * 100, r->held_out * 100);
    orr_buf_print(to, "worst row: %+.1f %%, %s:%" PRIu64 ", %" PRIu64 " bytes\n",
                  (w->model_us / w->us - 1) * 100, w->path, w->line, w->bytes);
    orr_buf_print(to, "inside the 90 %% interval: %.0f %% of the rows\n", r->covered * 100);
}

static void put_results(orr_json_writer *w, const orr_calibration_result *r)
{
    orr_json_put_array(w, "constants");
    for (size_t i = 0; i < r->item_count; i++) {
        const orr_calibration_item *it = &r->items[i];
        orr_json_line(w, 2);
        orr_json_put_row(w, ORR_T("name", it->name), ORR_T("unit", it->unit),
                         ORR_F("before", "%.6g", it->before), ORR_F("value", "%.6g", it->value),
                         ORR_F("low", "%.6g", it->low), ORR_F("high", "%.6g", it->high));
    }
    orr_json_end_array(w);
    orr_json_put_array(w, "rows");
    for (size_t i = 0; i < r->row_count; i++) {
        const orr_calibration_row *row = &r->rows[i];
        orr_json_line(w, 2);
        orr_json_put_row(
            w, ORR_T("file", row->path), ORR_U("line", row->line), ORR_T("op", row->op->name),
            ORR_U("ranks", row->ranks), ORR_U("bytes", row->bytes),
            ORR_F("measured_us", "%.3f", row->us), ORR_F("before_us", "%.3f", row->before_us),
            ORR_F("now_us", "%.3f", row->model_us), ORR_F("low_us", "%.3f", row->low_us),
            ORR_F("high_us", "%.3f", row->high_us));
    }
    orr_json_end_array(w);
}

orr_code orr_show_calibration(const orr_calibration_result *r,
                              const orr_calibration_about *about,
                              orr_show_form form,
                              const char *path,
                              orr_error *err)
{
    orr_buf b = {0};
    orr__document d;
    if (form == ORR_SHOW_JSON) {
        orr_json_writer *w = orr__document_begin(&d, "orrery-calibration");
        orr_json_put_fields(
            w, ORR_T("machine", about->machine), ORR_U("row_count", r->row_count),
            ORR_F("error_before", "%.5f", r->before), ORR_F("error_now", "%.5f", r->after),
            ORR_F("error_left_out", "%.5f", r->held_out), ORR_F("error_worst", "%.5f", r->worst),
            ORR_F("covered", "%.5f", r->covered), ORR_T("output", about->output),
            ORR_T("table", about->table));
        put_results(w, r);
        return orr__document_save(&d, path, err);
    }
    print_errors(&b, r, about->files);
    print_items(&b, r);
    if (about->with_rows)
        print_rows(&b, r);
    return orr__text_save(&b, path, err);
}

/* ---- kernels ---- */

static void print_kind(orr_buf *to, orr_kernel_kind kind, const orr_kind_fit *k)
{
    orr_buf_print(to, "  %s: {scale: %.4f, ", orr_kernel_kind_name(kind), k->scale);
    if (k->low > 0)
        orr_buf_print(to, "low: %.4f, high: %.4f, ", k->low, k->high);
    orr_buf_print(to, "rows: %zu}\n", k->rows);
}

orr_code orr_kernel_fit_save(const orr_kernel_fit *f, const char *path, orr_error *err)
{
    orr_buf b = {0};
    orr_buf_print(&b, "# measured kernels over those of %s; low, high: 90 %% of the rows\n",
                  f->like);
    orr_buf_print(&b, "like: %s\nkernels:\n", f->like);
    for (unsigned i = 0; i < ORR_KERNEL_KINDS; i++)
        if (f->kinds[i].rows)
            print_kind(&b, (orr_kernel_kind)i, &f->kinds[i]);
    return orr__text_save(&b, path, err);
}

static void print_kernel_fit(orr_buf *to, const orr_kernel_fit *f)
{
    orr_buf_print(
        to,
        "%zu rows; mean error %.1f %% before the fit, %.1f %% after, %.1f %% on rows left "
        "out of the fit\n",
        f->rows, f->before * 100, f->after * 100, f->left_out * 100);
    if (f->passed_over)
        orr_buf_print(to, "%" PRIu64 " calls skipped: other operators, or outliers\n",
                      f->passed_over);
    orr_buf_print(to, "\n%-14s %5s %8s   %s\n", "kernels", "rows", "factor", "90 % of the rows");
    for (unsigned i = 0; i < ORR_KERNEL_KINDS; i++) {
        const orr_kind_fit *k = &f->kinds[i];
        if (!k->rows)
            continue;
        orr_buf_print(to, "%-14s %5zu %8.3f   ", orr_kernel_kind_name((orr_kernel_kind)i), k->rows,
                      k->scale);
        if (k->low > 0)
            orr_buf_print(to, "%.3f-%.3f\n", k->scale * k->low, k->scale * k->high);
        else
            orr_buf_print(to, "too few\n");
    }
}

static orr_code save_kernel_fit(const orr_kernel_fit *f, const char *path, orr_error *err)
{
    orr__document d;
    orr_json_writer *w = orr__document_begin(&d, "orrery-chip-calibration");
    orr_json_put_fields(
        w, ORR_T("like", f->like), ORR_T("output", f->output), ORR_U("row_count", f->rows),
        ORR_U("passed_over", f->passed_over), ORR_F("error_before", "%.5f", f->before),
        ORR_F("error_now", "%.5f", f->after), ORR_F("error_left_out", "%.5f", f->left_out));
    orr_json_put_array(w, "kernels");
    for (unsigned i = 0; i < ORR_KERNEL_KINDS; i++) {
        const orr_kind_fit *k = &f->kinds[i];
        if (!k->rows)
            continue;
        orr_json_line(w, 2);
        orr_json_put_row(w, ORR_T("kind", orr_kernel_kind_name((orr_kernel_kind)i)),
                         ORR_U("rows", k->rows), ORR_F("scale", "%.5f", k->scale),
                         ORR_F("low", "%.5f", k->low * k->scale),
                         ORR_F("high", "%.5f", k->high * k->scale));
    }
    orr_json_end_array(w);
    return orr__document_save(&d, path, err);
}

orr_code orr_show_kernel_fit(const orr_kernel_fit *f,
                             orr_show_form form,
                             const char *path,
                             orr_error *err)
{
    orr_buf b = {0};
    if (form == ORR_SHOW_JSON)
        return save_kernel_fit(f, path, err);
    print_kernel_fit(&b, f);
    return orr__text_save(&b, path, err);
}

/* ---- steps ---- */

orr_code orr_step_fit_save(const orr_step_fit *f, const char *path, orr_error *err)
{
    const orr_kind_fit all = {.rows = f->count,
                              .scale = f->median_ms / f->predicted_ms,
                              .low = f->low_ms / f->median_ms,
                              .high = f->high_ms / f->median_ms};
    orr_buf b = {0};
    orr_buf_print(&b, "# %zu steps, median %.3f ms, over %.3f ms; low, high: 90 %% of them\n",
                  f->count, f->median_ms, f->predicted_ms);
    orr_buf_print(&b, "like: %s\nkernels:\n", f->like);
    for (unsigned i = 0; i < ORR_KERNEL_KINDS; i++)
        print_kind(&b, (orr_kernel_kind)i, &all);
    return orr__text_save(&b, path, err);
}

orr_code orr_show_step_fit(const orr_step_fit *f,
                           orr_show_form form,
                           const char *path,
                           orr_error *err)
{
    const double scale = f->median_ms / f->predicted_ms;
    orr_buf b = {0};
    orr__document d;
    if (form == ORR_SHOW_JSON) {
        orr_json_writer *w = orr__document_begin(&d, "orrery-step-calibration");
        orr_json_put_fields(
            w, ORR_T("like", f->like), ORR_T("output", f->output), ORR_U("steps_found", f->found),
            ORR_U("steps", f->count), ORR_F("median_ms", "%.4f", f->median_ms),
            ORR_F("low_ms", "%.4f", f->low_ms), ORR_F("high_ms", "%.4f", f->high_ms),
            ORR_F("predicted_ms", "%.4f", f->predicted_ms), ORR_F("scale", "%.5f", scale));
        return orr__document_save(&d, path, err);
    }
    orr_buf_print(&b, "%zu steps of %zu, median %.4g ms (%.4g-%.4g)\n", f->count, f->found,
                  f->median_ms, f->low_ms, f->high_ms);
    orr_buf_print(&b, "predicted %.4g ms: factor %.3f (%.3f-%.3f)\n", f->predicted_ms, scale,
                  f->low_ms / f->predicted_ms, f->high_ms / f->predicted_ms);
    return orr__text_save(&b, path, err);
}
