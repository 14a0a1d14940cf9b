/* SPDX-License-Identifier: Apache-2.0 */
/* convert_text.c - orrery convert text: a text workload of ASTRA-sim 1.0 to traces. */
#include "convert.h"

#include <orrery/lab/compat.h>
#include <orrery/lab/layers.h>

#include <string.h>

enum { DIMS_MAX = 64, RANKS_MAX = 1 << 20 };

/* --dims: a number of dimensions, or their sizes, dimension 0 first. */
typedef struct dims {
    uint32_t count;
    bool has_sizes;
    uint32_t sizes[DIMS_MAX];
    uint64_t product;
} dims;

/* Digits up to the next x or the end; 0 is no size. */
static const char *read_size(const char *text, uint32_t *out)
{
    uint32_t v = 0;
    for (; *text >= '0' && *text <= '9' && v <= RANKS_MAX; text++)
        v = v * 10 + (uint32_t)(*text - '0');
    *out = v;
    return v > 0 && v <= RANKS_MAX && (*text == 'x' || *text == '\0') ? text : NULL;
}

static bool read_sizes(const char *text, dims *out)
{
    out->product = 1;
    for (out->count = 0; out->count < DIMS_MAX; text++) {
        uint32_t size;
        if (!(text = read_size(text, &size)))
            return false;
        out->sizes[out->count++] = size;
        out->product *= out->product <= RANKS_MAX ? size : 1;
        if (*text == '\0')
            return true;
    }
    return false;
}

static orr_code read_dims(const cli_context *c, dims *out, orr_error *err)
{
    const char *text = cli_text(c, "dims");
    *out = (dims){0};
    if (!text)
        return ORR_OK;
    const bool is_right = read_sizes(text, out);
    out->has_sizes = is_right && out->count > 1;
    if (is_right && !out->has_sizes)
        out->count = out->sizes[0];
    if (!is_right || out->count > DIMS_MAX)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "--dims '%s' is neither a number of dimensions, up to %d, nor their sizes "
                        "such as 8x4",
                        text, DIMS_MAX);
    return ORR_OK;
}

static orr_code count_ranks(const cli_context *c, const dims *d, uint32_t *out, orr_error *err)
{
    if (!cli_given(c, "npus") && !d->has_sizes)
        return orr_fail(err, ORR_EUSAGE, NULL, "missing option: --npus N");
    const uint64_t ranks = cli_given(c, "npus") ? cli_count(c, "npus") : d->product;
    if (ranks > RANKS_MAX)
        return orr_fail(err, ORR_EUSAGE, NULL, "--dims %s makes more than %d ranks",
                        cli_text(c, "dims"), RANKS_MAX);
    if (d->has_sizes && ranks != d->product)
        return orr_fail(err, ORR_EUSAGE, NULL, "--dims %s does not make up --npus %s",
                        cli_text(c, "dims"), cli_text(c, "npus"));
    *out = (uint32_t)ranks;
    return ORR_OK;
}

/* What the table says and the traces do not. */
static void remark(const cli_context *c, const orr_layers *t, const orr_layers_expand *opt)
{
    const char *policy = orr_policy_name(orr_layers_policy(t));
    const size_t idle = orr_layers_idle(t);
    if (opt->rules)
        return;
    if (idle)
        cli_note(c, "%s: %s never starts %zu of the collectives in the table; they are left out\n",
                 c->args[1], policy, idle);
    if (orr_layers_needs_dims(t) && opt->dims == 0)
        cli_note(c,
                 "%s: %s sends along some dimensions of the network only; without --dims every "
                 "collective spans all ranks\n",
                 c->args[1], policy);
}

static orr_code text_make(cli_context *c, orr_set **out, orr_error *err)
{
    orr_layers_read_options how = {0};
    orr_layers_expand opt = {.passes = (uint32_t)cli_count(c, "passes"),
                             .with_updates = cli_flag(c, "updates")};
    dims d;
    orr_layers *t;
    const orr_compat *old;
    orr_code code = read_dims(c, &d, err);
    if (!code && cli_flag(c, "compat")) {
        code = orr_compat_find(ORR_RULES_LAYERS, "chakra", &old, err);
        how.rules = opt.rules = code ? NULL : old->layers;
    }
    if (code || (code = count_ranks(c, &d, &opt.ranks, err)))
        return code;
    if (how.rules && opt.with_updates)
        return orr_fail(err, ORR_EUSAGE, NULL, "--compat and --updates cannot be used together");
    opt.dims = d.count;
    opt.dim_sizes = d.has_sizes ? d.sizes : NULL;
    if ((code = orr_layers_read(c->args[1], &how, &t, err)))
        return code;
    code = orr_layers_set(t, &opt, out, err);
    if (!code)
        remark(c, t, &opt);
    orr_layers_free(t);
    return code;
}

static const char *const text_options[] = {"npus", "passes", "dims", "updates", "compat", NULL};

const cli_converter cli_convert_text = {"text", text_options, text_make, NULL};
