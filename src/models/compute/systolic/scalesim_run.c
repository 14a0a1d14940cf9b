/* SPDX-License-Identifier: Apache-2.0 */
/* scalesim_run.c - a network on an array, layer by layer.
 *
 * Networks repeat their layers, so results of equal layers are copied; shapes are found by hash and
 * then compared. */
#include "scalesim_impl.h"

#include "base/memory/hash.h"
#include "base/memory/map.h"

static orr_code check_config(const orr_scalesim *r, orr_error *err)
{
    if (!r->opt.rules->needs_bandwidth_key || r->config.interface != ORR_INTERFACE_UNSAID)
        return r->opt.rules->check_config ? r->opt.rules->check_config(r, err) : ORR_OK;
    const orr_where w = orr_where_byte(r->config.path, ORR_NO_BYTE);
    return orr_fail(err, ORR_EINPUT, &w,
                    "SCALE-Sim %s needs the key InterfaceBandwidth: CALC or USER in section "
                    "[run_presets]",
                    r->opt.rules->name);
}

/* A layer's failure is reported with its line. */
static orr_code run_layer(orr_scalesim *r, size_t i, orr_error *err)
{
    const orr_scalesim_layer *l = &r->network->layers[i];
    orr_code code =
        orr_systolic_run(&r->config.array, &l->layer, r->opt.rules, &r->results[i], err);
    if (code && err && !err->where.path[0])
        err->where = orr_where_line(r->network->path, l->line, 1);
    return code ? orr_because(err, code, "layer %.*s", (int)(l->name.len < 60 ? l->name.len : 60),
                              l->name.ptr)
                : ORR_OK;
}

static orr_code run_layers(orr_scalesim *r, orr_error *err)
{
    orr_map *met = orr_map_create(r->network->count);
    orr_code code = met ? ORR_OK : orr_no_memory(err);
    for (size_t i = 0; i < r->network->count && !code; i++) {
        const orr_systolic_layer *l = &r->network->layers[i].layer;
        const uint64_t hash = orr_hash_bytes(l, sizeof *l, 0);
        const uint32_t like = orr_map_find(met, hash, UINT32_MAX);
        if (like != UINT32_MAX && memcmp(l, &r->network->layers[like].layer, sizeof *l) == 0) {
            r->results[i] = r->results[like];
            continue;
        }
        code = run_layer(r, i, err);
        if (!code && !orr_map_put(met, hash, (uint32_t)i, NULL))
            code = orr_no_memory(err);
    }
    orr_map_destroy(met);
    return code;
}

orr_code orr_scalesim_run(const orr_scalesim_config *config,
                          const orr_scalesim_network *network,
                          const orr_scalesim_options *opt,
                          orr_scalesim **out,
                          orr_error *err)
{
    *out = NULL;
    orr_scalesim *r = orr_alloc(1, sizeof *r);
    if (!r || !(r->results = orr_alloc(network->count, sizeof *r->results))) {
        orr_free(r);
        return orr_no_memory(err);
    }
    r->config = *config;
    r->network = network;
    r->opt = opt ? *opt : (orr_scalesim_options){0};
    r->opt.rules = orr__systolic_rules(r->opt.rules);
    orr_code code = check_config(r, err);
    if (!code && r->opt.wants_traces && r->opt.rules->check_names)
        code = r->opt.rules->check_names(r, err);
    if (!code)
        code = run_layers(r, err);
    if (code)
        orr_scalesim_destroy(r);
    else
        *out = r;
    return code;
}

void orr_scalesim_destroy(orr_scalesim *r)
{
    if (!r)
        return;
    orr_free(r->results);
    orr_buf_fini(&r->text);
    orr_free(r);
}

const orr_systolic_result *orr_scalesim_result(const orr_scalesim *r, size_t layer)
{
    return &r->results[layer];
}
