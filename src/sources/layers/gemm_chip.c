/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_chip.c - the time of a layer's passes on a chip: the sum of its kernels' times (chip.h).
 *
 * The same function times them as `orrery chip time`, run, plan and serve, so that one operator has
 * one time.  Equal kernels are timed once; their text is the key, as in traces.  Errors of equal
 * kernels add up and those of different ones mostly do not (chip_cost.h). */
#include "base/arithmetic.h"
#include "base/memory/map.h"
#include "gemm_impl.h"
#include "models/compute/atlas/chip_cost.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct chip_row {
    orr_gemm_kernel kernel;
    orr_kernel_work work;
    double uses;
} chip_row;

struct lay_chip {
    const orr_chip *chip;
    orr_kernel_type products, between;
    double between_bytes;
    orr_intern *texts;
    chip_row *rows; /* by text */
    size_t room;
    orr_arena *arena; /* lists of kernels */
    bool is_update;   /* not part of the passes */
};

/* No program passes 8 or 4 bits, or tf32, from layer to layer. */
static orr_kernel_type between_of(orr_kernel_type products)
{
    switch (products) {
    case ORR_TYPE_FP16:
    case ORR_TYPE_FP32:
    case ORR_TYPE_FP64:
        return products;
    case ORR_TYPE_TF32:
        return ORR_TYPE_FP32;
    default:
        return ORR_TYPE_BF16;
    }
}

/* A V100 multiplies in fp16 only. */
bool lay_type_of_bytes(const orr_chip *chip, uint32_t bytes, orr_kernel_type *out)
{
    static const orr_kernel_type types[][2] = {{ORR_TYPE_BF16, ORR_TYPE_FP16},
                                               {ORR_TYPE_FP32, ORR_TYPE_FP32},
                                               {ORR_TYPE_FP8, ORR_TYPE_INT8},
                                               {ORR_TYPE_FP64, ORR_TYPE_FP64}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if ((uint32_t)orr_kernel_type_bytes(types[i][0]) != bytes)
            continue;
        const double first = chip->peak_tflops[types[i][0]];
        const double second = chip->peak_tflops[types[i][1]];
        *out = types[i][bytes == 1 ? !(first > 0) : first < second];
        return true;
    }
    return false;
}

orr_code lay_chip_create(
    const orr_chip *chip, orr_kernel_type type, orr_arena *arena, lay_chip **out, orr_error *err)
{
    lay_chip *c = orr_alloc(1, sizeof *c);
    *out = c;
    if (!c || !(c->texts = orr_intern_create())) {
        lay_chip_destroy(c);
        *out = NULL;
        return orr_no_memory(err);
    }
    c->chip = chip;
    c->products = type;
    c->between = between_of(type);
    c->between_bytes = orr_kernel_type_bytes(c->between);
    c->arena = arena;
    return ORR_OK;
}

void lay_chip_destroy(lay_chip *c)
{
    if (!c)
        return;
    orr_intern_destroy(c->texts);
    orr_free(c->rows);
    orr_free(c);
}

/* ---- one kernel ---- */

static bool is_product(const orr_kernel *k)
{
    return k->kind == ORR_KERNEL_GEMM || k->kind == ORR_KERNEL_CONV;
}

/* Attention in narrow types is an option of few programs. */
static void set_type(const lay_chip *c, orr_kernel *k)
{
    const uint64_t bytes = (uint64_t)c->between_bytes;
    k->type = is_product(k) ? c->products : c->between;
    k->read = orr_sat_mul(k->read, bytes);
    k->write = orr_sat_mul(k->write, bytes);
}

static orr_code cannot_run(const lay_chip *c, const orr_kernel *k, orr_error *err)
{
    orr_code code = orr_kernel_check(k, err);
    if (code) { /* without the place of a text that the user never wrote */
        if (err)
            err->where = (orr_where){0};
        return code;
    }
    return orr_fail(err, ORR_EINPUT, NULL, "%s has no products in %s", c->chip->name,
                    orr_kernel_type_name(k->type));
}

static orr_code find_row(lay_chip *c, const orr_kernel *k, uint32_t *out, orr_error *err)
{
    char text[ORR_KERNEL_TEXT];
    const size_t n = orr_kernel_text(k, text, sizeof text);
    const uint32_t known = orr_intern_count(c->texts);
    if (!orr_intern_add(c->texts, (orr_str){text, n < sizeof text ? n : sizeof text - 1}, out) ||
        !orr_grow(&c->rows, &c->room, orr_intern_count(c->texts)))
        return orr_no_memory(err);
    if (*out < known)
        return ORR_OK;
    chip_row *r = &c->rows[*out];
    *r = (chip_row){.work = orr_kernel_count(k)};
    r->kernel.kernel = *k;
    return orr_chip_time(c->chip, k, &r->kernel.time) ? ORR_OK : cannot_run(c, k, err);
}

/* ---- a pass ---- */

static void add_errors(chip_errors *e, const chip_row *r, double uses)
{
    const orr_kernel_time *t = &r->kernel.time;
    const double low = uses * (t->us - t->low_us), high = uses * (t->high_us - t->us);
    if (strcmp(t->basis, "roofline") == 0)
        orr__chip_add_common(e, low, high);
    else
        orr__chip_add_error(e, low, high);
}

static orr_ps to_ps(double us)
{
    return us < 9e12 ? (orr_ps)(us * 1e6 + 0.5) : INT64_MAX;
}

typedef struct pass_sum {
    double us, bytes;
    chip_errors errors;
} pass_sum;

static orr_code add_op(lay_chip *c,
                       const lay_op *op,
                       orr_gemm_kernel *listed,
                       pass_sum *sum,
                       orr_gemm_pass *out,
                       orr_error *err)
{
    const uint32_t shares = op->kernel_shares ? op->kernel_shares : 1;
    orr_kernel k = op->kernel;
    uint32_t at;
    set_type(c, &k);
    const orr_code code = find_row(c, &k, &at, err);
    if (code)
        return code;
    chip_row *r = &c->rows[at];
    *listed = r->kernel;
    listed->shares = shares;
    r->uses += c->is_update ? 0 : 1.0 / shares;
    sum->us += r->kernel.time.us / shares;
    sum->bytes += (r->work.read + r->work.write) / shares;
    add_errors(&sum->errors, r, 1.0 / shares);
    out->clocked += r->kernel.time.us / shares * r->kernel.time.clock_share;
    out->extrapolates |= r->kernel.time.extrapolates;
    return ORR_OK;
}

orr_code lay_chip_pass(lay_chip *c, const lay_pass_work *work, orr_gemm_pass *out, orr_error *err)
{
    pass_sum sum = {.us = 0};
    orr_gemm_kernel *list = NULL;
    if (work->op_count && !(list = orr_arena_new(c->arena, work->op_count, orr_gemm_kernel)))
        return orr_no_memory(err);
    for (size_t i = 0; i < work->op_count; i++) {
        const orr_code code = add_op(c, &work->op[i], &list[i], &sum, out, err);
        if (code)
            return code;
    }
    const chip_errors e = orr__chip_errors_of(&sum.errors, 0);
    out->kernels = list;
    out->kernel_count = work->op_count;
    out->time = to_ps(sum.us);
    out->low = to_ps(sum.us - e.low);
    out->high = to_ps(sum.us + e.high);
    out->clocked = sum.us > 0 ? out->clocked / sum.us : 0;
    out->cycles = (uint64_t)(sum.us * c->chip->clock_MHz + 0.5);
    out->traffic = (orr_bytes)(sum.bytes + 0.5);
    if (!(sum.us < 9e12))
        return orr_fail(err, ORR_EINPUT, NULL, "the layer is too large: it takes 100 days or more");
    return ORR_OK;
}

orr_code lay_chip_update(
    lay_chip *c, orr_gemm_update how, uint64_t weights, orr_gemm_pass *out, orr_error *err)
{
    lay_pass_work work = {.op_count = 1};
    orr_kernel *k = &work.op[0].kernel;
    *out = (orr_gemm_pass){.comm = "NONE"};
    if (how >= ORR_UPDATE_NONE || weights == 0)
        return ORR_OK;
    if (how == ORR_UPDATE_ADAM)
        *k = (orr_kernel){
            .kind = ORR_KERNEL_OPTIMIZER, .form = ORR_FORM_FUSED, .m = weights, .k = 1};
    else
        *k = (orr_kernel){.kind = ORR_KERNEL_ELEMENTWISE,
                          .read = orr_sat_mul(weights, how == ORR_UPDATE_SGD ? 2 : 3),
                          .write = orr_sat_mul(weights, how == ORR_UPDATE_SGD ? 1 : 2)};
    c->is_update = true;
    const orr_code code = lay_chip_pass(c, &work, out, err);
    c->is_update = false;
    return code;
}

void lay_chip_total(const lay_chip *c, double copies, lay_chip_sum *out)
{
    chip_errors all = {.low = 0};
    chip_cost cost = {.flops = 0}, one;
    double us = 0;
    *out = (lay_chip_sum){.kernels = 0};
    for (uint32_t i = 0; i < orr_intern_count(c->texts); i++) {
        const chip_row *r = &c->rows[i];
        const orr_kernel_time *t = &r->kernel.time;
        const double uses = r->uses * copies;
        us += uses * t->us;
        add_errors(&all, r, uses);
        if (uses > 0 && orr__chip_cost(c->chip, &r->kernel.kernel, uses, &one)) {
            cost.fixed_us += one.fixed_us;
            cost.clocked_us += one.clocked_us;
            cost.flops += one.flops * uses;
        }
        out->extrapolated_us += t->extrapolates ? uses * t->us : 0;
        out->kernels += r->uses > 0;
        out->extrapolated += r->uses > 0 && t->extrapolates;
    }
    const chip_errors e = orr__chip_errors_of(&all, us * ORR__STEP_ERROR);
    out->low_us = us > e.low ? us - e.low : 0;
    out->high_us = us + e.high;
    out->us = us;
    out->capped_us = cost.fixed_us + cost.clocked_us * orr__chip_slowdown_of(c->chip, &cost, 0);
}
