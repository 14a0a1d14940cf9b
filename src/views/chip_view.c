/* SPDX-License-Identifier: Apache-2.0 */
/* chip_view.c - a chip, the list of the built-in ones, and kernel times on a chip, as text and as
 * JSON. */
#include <orrery/lab/show.h>

#include "views_impl.h"

#include <inttypes.h>

/* ---- chips ---- */

static const char *source_of(const orr_chip *chip)
{
    return chip->source ? chip->source : "none (roofline)";
}

static void print_row(orr_buf *to, const orr_chip *c)
{
    const orr_kernel_type type = c->peak_tflops[ORR_TYPE_BF16] > c->peak_tflops[ORR_TYPE_FP16]
                                     ? ORR_TYPE_BF16
                                     : ORR_TYPE_FP16;
    orr_buf_print(to, "%-13s %9.4g %4.2f TB/s %5.0f GB  %-42s %s\n", c->name, c->peak_tflops[type],
                  c->memory_GBps / 1e3, c->memory_GB, c->note, c->source ? "yes" : "no");
}

static void print_chip(orr_buf *to, const orr_chip *c)
{
    orr_buf_print(to, "%s: %s\n", c->name, c->note);
    orr_buf_print(to, "measured     %s\n", source_of(c));
    if (c->like)
        orr_buf_print(to, "otherwise    like %s\n", c->like);
    orr_buf_print(to, "memory       %.0f GB at %.2f TB/s; cache %.0f MB\n", c->memory_GB,
                  c->memory_GBps / 1e3, c->l2_MB);
    orr_buf_print(to, "units        %" PRIu32 " at %.0f MHz at most\n", c->units, c->clock_MHz);
    if (c->capped_slope > 0)
        orr_buf_print(to,
                      "power cap    above an average of %.0f TFLOP/s, minus %.1f MHz per TFLOP/s\n",
                      c->capped_from_tflops, c->capped_slope);
    orr_buf_print(to, "spread       %g %% of power from chip to chip (standard deviation)\n",
                  c->power_spread * 100);
    orr_buf_print(to, "launch       at least %.1f us on the device", c->launch_us);
    if (c->dispatch_us > 0)
        orr_buf_print(to, "; the host needs %.0f us to issue an operator", c->dispatch_us);
    orr_buf_print(to, "\nhost bus     %.0f GB/s\n\n%-10s %s\n", c->bus_GBps, "type",
                  "TFLOP/s, dense");
    for (unsigned i = 0; i < ORR_KERNEL_TYPES; i++) {
        if (c->peak_tflops[i] > 0)
            orr_buf_print(to, "%-10s %.5g\n", orr_kernel_type_name((orr_kernel_type)i),
                          c->peak_tflops[i]);
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

orr_code orr_show_chip(const orr_chip *chip, orr_show_form form, const char *path, orr_error *err)
{
    orr_buf b = {0};
    orr__document d;
    if (form == ORR_SHOW_JSON) {
        put_chip(orr__document_begin(&d, "orrery-chip"), chip);
        return orr__document_save(&d, path, err);
    }
    print_chip(&b, chip);
    return orr__text_save(&b, path, err);
}

static orr_code save_list(const char *path, orr_error *err)
{
    orr__document d;
    orr_json_writer *w = orr__document_begin(&d, "orrery-chips");
    orr_json_put_array(w, "chips");
    for (size_t i = 0; orr_chip_at(i); i++) {
        orr_json_begin_object(w);
        put_chip(w, orr_chip_at(i));
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    return orr__document_save(&d, path, err);
}

orr_code orr_show_chips(orr_show_form form, const char *path, orr_error *err)
{
    orr_buf b = {0};
    if (form == ORR_SHOW_JSON)
        return save_list(path, err);
    orr_buf_print(&b, "%-13s %9s %9s %8s  %-42s %s\n", "chip", "TFLOP/s", "memory", "size", "",
                  "measured");
    for (size_t i = 0; orr_chip_at(i); i++)
        print_row(&b, orr_chip_at(i));
    return orr__text_save(&b, path, err);
}

/* ---- kernels ---- */

static void print_time(orr_buf *to, const orr_kernel_timed *timed)
{
    const orr_kernel *k = &timed->kernel;
    const orr_kernel_time *t = &timed->time;
    const orr_kernel_work w = orr_kernel_count(k);
    const double times = k->count ? (double)k->count : 1, bytes = w.read + w.write;
    const int digits = t->us < 100 ? 2 : 1;
    char text[ORR_KERNEL_TEXT];
    orr_kernel_text(k, text, sizeof text);
    orr_buf_print(to, "%s\n  %.*f us (%.*f-%.*f), %s\n", text, digits, t->us, digits, t->low_us,
                  digits, t->high_us, t->basis);
    orr_buf_print(to, "  %.1f TFLOP/s, %.2f TB/s of the minimum memory traffic\n",
                  times * w.flops / t->us / 1e6, times * bytes / t->us / 1e6);
}

static void put_time(orr_json_writer *json, const orr_kernel_timed *timed)
{
    const orr_kernel *k = &timed->kernel;
    const orr_kernel_time *t = &timed->time;
    const orr_kernel_work w = orr_kernel_count(k);
    const double times = k->count ? (double)k->count : 1;
    char text[ORR_KERNEL_TEXT];
    orr_kernel_text(k, text, sizeof text);
    orr_json_put_row(json, ORR_T("kernel", text), ORR_F("us", "%.4f", t->us),
                     ORR_F("low_us", "%.4f", t->low_us), ORR_F("high_us", "%.4f", t->high_us),
                     ORR_B("extrapolates", t->extrapolates), ORR_T("basis", t->basis),
                     ORR_F("flops", "%.0f", times * w.flops),
                     ORR_F("bytes", "%.0f", times * (w.read + w.write)),
                     ORR_U("launches", t->launches), ORR_F("clock_share", "%.3f", t->clock_share));
}

static orr_code save_times(const orr_chip *chip,
                           const orr_kernel_timed *list,
                           size_t count,
                           double us,
                           const char *path,
                           orr_error *err)
{
    orr__document d;
    orr_json_writer *w = orr__document_begin(&d, "orrery-chip-times");
    orr_json_put_text(w, "chip", chip->name);
    orr_json_put_array(w, "kernels");
    for (size_t i = 0; i < count; i++)
        put_time(w, &list[i]);
    orr_json_end_array(w);
    orr_json_put_fields(w, ORR_F("us", "%.4f", us));
    return orr__document_save(&d, path, err);
}

orr_code orr_show_kernels(const orr_chip *chip,
                          const orr_kernel_timed *list,
                          size_t count,
                          orr_show_form form,
                          const char *path,
                          orr_error *err)
{
    orr_buf b = {0};
    double us = 0;
    for (size_t i = 0; i < count; i++)
        us += list[i].time.us;
    if (form == ORR_SHOW_JSON)
        return save_times(chip, list, count, us, path, err);
    for (size_t i = 0; i < count; i++)
        print_time(&b, &list[i]);
    if (count > 1)
        orr_buf_print(&b, "%zu kernels, %.1f us in total\n", count, us);
    return orr__text_save(&b, path, err);
}
