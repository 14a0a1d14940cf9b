/* SPDX-License-Identifier: Apache-2.0 */
/* network_setup.c - which network a run has: the file, the model, and links that are not as the file says.
 *
 * A file is either ASTRA-sim's, with dimensions, or a link-level topology.  Dimensions become a graph when a
 * graph is asked for, or when single links differ, which dimensions cannot say. */
#include "sim_impl.h"

#include "../base/input.h"
#include "../models/network/analytical/analytical.h"
#include "../models/network/graph/graph_network.h"

static const orr_net_ops *const networks[] = {&orr__net_unaware, &orr__net_aware, &orr__net_graph};

const orr_net_ops *orr_net_at(size_t index)
{
    return index < sizeof networks / sizeof *networks ? networks[index] : NULL;
}

const orr_net_ops *orr_net_find(const char *name)
{
    for (size_t i = 0; orr_net_at(i); i++)
        if (strcmp(orr_net_at(i)->name, name) == 0)
            return orr_net_at(i);
    return NULL;
}

/* ---- the file ---- */

static orr_code read_file(orr_sim *s, orr_error *err)
{
    orr_input *in;
    orr_net_config *c = &s->net_config;
    const char *path = s->opt.network_text ? ORR__BUILT_IN : s->opt.network;
    orr_code code = orr__open_config(path, s->opt.network_text, &in, err);
    if (code)
        return code;
    const orr_span bytes = orr_input_bytes(in);
    if (!s->opt.is_compat)
        code = orr__topology_parse(bytes, path, ORR__MOST_LINKS, &s->topology, err);
    if (!code && !s->topology)
        code = orr__parse_network(bytes, path, c, err);
    if (!code && s->topology) {
        *c = (orr_net_config){.dims = s->topology->dims,
                              .topology = s->topology,
                              .where = orr_where_byte(path, ORR_NO_BYTE)};
        for (uint32_t k = 0; k < c->dims; k++) {
            c->npus[k] = s->topology->npus[k];
            c->shape[k] = ORR_NET_SWITCH;
        }
    }
    orr_input_close(in);
    return code;
}

static orr_code count_ranks(orr_sim *s, orr_error *err)
{
    uint64_t npus = 1;
    s->net_config.is_compat = s->opt.is_compat;
    for (uint32_t k = 0; k < s->net_config.dims; k++) {
        npus *= s->net_config.npus[k];
        if (npus > 1u << 24)
            return orr_fail(err, ORR_EINPUT, &s->net_config.where, "more than 16777216 NPUs");
    }
    s->npu_count = (uint32_t)npus;
    s->dims = s->net_config.dims;
    return ORR_OK;
}

/* ---- the model ---- */

static orr_code choose_model(orr_sim *s, orr_error *err)
{
    const char *name = s->opt.fidelity ? s->opt.fidelity : s->topology ? "graph" : "unaware";
    s->net_ops = s->opt.custom_network ? s->opt.custom_network : orr_net_find(name);
    if (!s->net_ops)
        return orr_fail(err, ORR_EUSAGE, NULL, "there is no network model \"%s\"", name);
    if (s->topology && !s->opt.custom_network && s->net_ops != &orr__net_graph)
        return orr_fail(err, ORR_EINPUT, &s->net_config.where,
                        "a link-level topology runs on the network model graph, not %s", name);
    return ORR_OK;
}

static orr_code change_links(orr_sim *s, orr_error *err)
{
    const orr__ranks_config *c = &s->ranks_config;
    orr_code code = ORR_OK;
    if (c->change_count && s->net_ops == &orr__net_aware)
        s->net_ops = &orr__net_graph; /* the same times, and single links can differ */
    if (s->net_ops != &orr__net_graph)
        return c->change_count == 0
                   ? ORR_OK
                   : orr_fail(err, ORR_EINPUT, &c->changes[0].where,
                              "the network model %s has no single links: take aware or graph",
                              s->net_ops->name);
    if (!s->topology)
        code = orr__topology_of_product(&s->net_config, &s->topology, err);
    if (code == ORR_EINPUT && err)
        err->where = s->net_config.where;
    return code ? code : orr__topology_change(s->topology, c->changes, c->change_count, err);
}

orr_code orr__network_setup(orr_sim *s, orr_error *err)
{
    orr_code code = read_file(s, err);
    if (!code)
        code = count_ranks(s, err);
    if (!code)
        code = choose_model(s, err);
    if (!code && s->opt.ranks_file)
        code = orr__read_ranks(s->opt.ranks_file, s->npu_count, s->arena, &s->ranks_config, err);
    if (!code)
        code = change_links(s, err);
    if (code)
        return code;
    orr_net_config config = s->net_config; /* which has a topology only when the file is one */
    config.topology = s->topology;
    return s->net_ops->create ? s->net_ops->create(&config, &s->net, err) : ORR_OK;
}
