/* SPDX-License-Identifier: Apache-2.0 */
/* topology_file.c - a link-level topology from YAML, of which JSON is a part
 * (docs/format/topology.md).
 *
 * Everything is counted before it is made: ranks, switches and links have upper bounds, and ranges
 * of names are gone through one by one. */
#include "topology.h"

#include "base/text/text.h"

#include <stdio.h>

/* ---- speeds ---- */

orr_code orr__topology_take_speed(orr_yaml_value map,
                                  const char *name,
                                  const orr__link_defaults *otherwise,
                                  orr__link_defaults *out,
                                  orr_error *err)
{
    char bandwidth[40], latency[40];
    const orr_where w = orr_yaml_where(map);
    snprintf(bandwidth, sizeof bandwidth, "%s%sbandwidth", name ? name : "", name ? "_" : "");
    snprintf(latency, sizeof latency, "%s%slatency", name ? name : "", name ? "_" : "");
    *out = *otherwise;
    orr_code code = orr_yaml_take_rate(map, bandwidth, &out->speed, err);
    if (!code)
        code = orr_yaml_take_ns(map, latency, &out->latency, err);
    if (!code && !(out->speed > 0))
        code = orr_fail(err, ORR_EINPUT, &w, "the key \"%s\" is missing", bandwidth);
    return code;
}

/* ---- devices ---- */

static orr_code add_rank_name(void *topology, orr_str name, orr_error *err)
{
    orr__topology *t = topology;
    uint32_t number;
    if (t->ranks >= t->most_links)
        return orr_fail(err, ORR_EINPUT, NULL, "more than %zu ranks", t->most_links);
    if (!orr_intern_add(t->rank_names, name, &number))
        return orr_no_memory(err);
    if (number != t->ranks)
        return orr_fail(err, ORR_EINPUT, NULL, "duplicate rank \"%.*s\"", (int)name.len, name.ptr);
    t->ranks++;
    return ORR_OK;
}

static orr_code add_switch_name(void *topology, orr_str name, orr_error *err)
{
    orr__topology *t = topology;
    const uint32_t before = orr__topology_devices(t);
    uint32_t device, rank;
    if (t->rank_names && orr_intern_find(t->rank_names, name, &rank))
        return orr_fail(err, ORR_EINPUT, NULL, "\"%.*s\" is the name of a rank already",
                        (int)name.len, name.ptr);
    const orr_code code = orr__topology_add_switch(t, name, &device, err);
    if (!code && device != before)
        return orr_fail(err, ORR_EINPUT, NULL, "duplicate switch \"%.*s\"", (int)name.len,
                        name.ptr);
    return code;
}

/* Each text of a list, or the only text, as names. */
static orr_code take_names(
    orr_yaml_value v, const char *key, orr__name_visit visit, orr__topology *t, orr_error *err)
{
    const bool is_list = orr_yaml_type_of(v) == ORR_YAML_LIST;
    const uint32_t count = is_list ? orr_yaml_count(v) : 1;
    orr_code code = ORR_OK;
    for (uint32_t i = 0; i < count && !code; i++) {
        const orr_yaml_value one = is_list ? orr_yaml_item(v, i) : v;
        const orr_where w = orr_yaml_where(one);
        if (orr_yaml_type_of(one) != ORR_YAML_SCALAR)
            return orr_fail(err, ORR_EINPUT, &w, "%s: a list of names was expected", key);
        code = orr__topology_names(orr_yaml_text(one), &w, visit, t, err);
        if (code == ORR_EINPUT && err && !err->where.line)
            err->where = w;
    }
    return code;
}

static orr_code take_ranks(orr_yaml_value root, orr__topology *t, orr_error *err)
{
    orr_yaml_value v;
    uint64_t ranks = 0;
    orr_code code = orr_yaml_need(root, "ranks", &v, err);
    if (code)
        return code;
    if (orr_yaml_type_of(v) == ORR_YAML_SCALAR) {
        code = orr_yaml_get_u64(v, "ranks", 2, t->most_links, &ranks, err);
        t->ranks = (uint32_t)ranks;
        return code;
    }
    if (!(t->rank_names = orr_intern_create()))
        return orr_no_memory(err);
    code = take_names(v, "ranks", add_rank_name, t, err);
    const orr_where w = orr_yaml_where(v);
    if (!code && t->ranks < 2)
        code = orr_fail(err, ORR_EINPUT, &w, "ranks: at least 2 were expected");
    return code;
}

/* ---- links ---- */

static orr_code select_devices(
    const orr__topology *t, orr_yaml_value link, const char *key, orr__devices *out, orr_error *err)
{
    orr_yaml_value v;
    orr_code code = orr_yaml_need(link, key, &v, err);
    if (code)
        return code;
    const bool is_list = orr_yaml_type_of(v) == ORR_YAML_LIST;
    const uint32_t count = is_list ? orr_yaml_count(v) : 1;
    for (uint32_t i = 0; i < count && !code; i++) {
        const orr_yaml_value one = is_list ? orr_yaml_item(v, i) : v;
        const orr_where w = orr_yaml_where(one);
        if (out->count > t->most_links)
            return orr_fail(err, ORR_EINPUT, &w, "%s: this names too many devices", key);
        code = orr__topology_select(t, orr_yaml_text(one), &w, out, err);
    }
    return code;
}

static orr_code add_between(orr__topology *t,
                            const orr__devices *from,
                            const orr__devices *to,
                            orr__wire *link,
                            uint64_t count,
                            bool is_one_way,
                            orr_error *err)
{
    orr_code code = ORR_OK;
    for (size_t i = 0; i < from->count; i++)
        for (size_t j = 0; j < to->count; j++) {
            link->from = from->list[i];
            link->to = to->list[j];
            if (link->from == link->to)
                return orr_fail(err, ORR_EINPUT, NULL, "a link from a device to itself");
            for (uint64_t n = 0; n < count && !code; n++)
                code = is_one_way ? orr__topology_add_link(t, link, err)
                                  : orr__topology_add_cable(t, link, err);
            if (code)
                return code;
        }
    return ORR_OK;
}

static orr_code take_link(orr__topology *t,
                          orr_yaml_value map,
                          const orr__link_defaults *otherwise,
                          orr_error *err)
{
    static const char *const keys[] = {"from",  "to",   "bandwidth", "latency", "one_way",
                                       "count", "cost", "loss",      NULL};
    orr__devices from = {0}, to = {0};
    orr__link_defaults speed;
    uint64_t count = 1, cost = 1;
    double loss = 0;
    bool is_one_way = false;
    orr_code code = orr_yaml_check_keys(map, keys, err);
    if (!code)
        code = select_devices(t, map, "from", &from, err);
    if (!code)
        code = select_devices(t, map, "to", &to, err);
    if (!code)
        code = orr__topology_take_speed(map, NULL, otherwise, &speed, err);
    if (!code)
        code = orr_yaml_take_bool(map, "one_way", &is_one_way, err);
    if (!code)
        code = orr_yaml_take_u64(map, "count", 1, 4096, &count, err);
    if (!code)
        code = orr_yaml_take_u64(map, "cost", 1, ORR__MOST_COST, &cost, err);
    if (!code)
        code = orr_yaml_take_number(map, "loss", 0, 1, &loss, err);
    if (!code) {
        orr__wire like = {
            .speed = speed.speed, .latency = speed.latency, .cost = (uint32_t)cost, .error = loss};
        code = add_between(t, &from, &to, &like, count, is_one_way, err);
    }
    if (code == ORR_EINPUT && err && !err->where.line)
        err->where = orr_yaml_where(map);
    orr_free(from.list);
    orr_free(to.list);
    return code;
}

static orr_code take_links(orr__topology *t,
                           orr_yaml_value root,
                           const orr__link_defaults *otherwise,
                           orr_error *err)
{
    orr_yaml_value v;
    orr_code code = ORR_OK;
    if (!orr_yaml_find(root, "links", &v))
        return ORR_OK;
    const orr_where w = orr_yaml_where(v);
    if (orr_yaml_type_of(v) != ORR_YAML_LIST)
        return orr_fail(err, ORR_EINPUT, &w, "links: a list was expected");
    for (uint32_t i = 0; i < orr_yaml_count(v) && !code; i++)
        code = take_link(t, orr_yaml_item(v, i), otherwise, err);
    return code;
}

/* ---- the whole ---- */

static orr_code take_dims(orr__topology *t, orr_yaml_value root, orr_error *err)
{
    orr_yaml_value v;
    uint64_t all = 1, n = 0;
    t->dims = 1;
    t->npus[0] = t->ranks;
    if (!orr_yaml_find(root, "dims", &v))
        return ORR_OK;
    const orr_where w = orr_yaml_where(v);
    if (orr_yaml_type_of(v) != ORR_YAML_LIST || orr_yaml_count(v) == 0 ||
        orr_yaml_count(v) > ORR_NET_DIMS)
        return orr_fail(err, ORR_EINPUT, &w, "dims: a list of 1 to %d numbers was expected",
                        ORR_NET_DIMS);
    t->dims = orr_yaml_count(v);
    for (uint32_t k = 0; k < t->dims; k++) {
        const orr_code code =
            orr_yaml_get_u64(orr_yaml_item(v, k), "dims", 2, ORR__MOST_RANKS, &n, err);
        if (code)
            return code;
        t->npus[k] = (uint32_t)n;
        all = all * n > ORR__MOST_RANKS ? (uint64_t)ORR__MOST_RANKS + 1 : all * n;
    }
    if (all != t->ranks)
        return orr_fail(err, ORR_EINPUT, &w, "dims: their product is not the number of ranks, %u",
                        t->ranks);
    return ORR_OK;
}

const char *const orr__topology_keys[] = {"format",    "version", "generate",      "ranks",
                                          "switches",  "links",   "dims",          "routing",
                                          "bandwidth", "latency", "ranks_forward", NULL};

static orr_code check_head(orr_yaml_value root, orr_error *err)
{
    static const char *const formats[] = {"orrery-topology", NULL};
    unsigned format = 0;
    uint64_t version = 1;
    orr_code code = orr_yaml_check_keys(root, orr__topology_keys, err);
    if (!code)
        code = orr_yaml_take_word(root, "format", formats, &format, err);
    if (!code)
        code = orr_yaml_take_u64(root, "version", 1, 1, &version, err);
    return code;
}

static orr_code take_devices(orr__topology *t,
                             orr_yaml_value root,
                             const orr__link_defaults *otherwise,
                             orr_error *err)
{
    orr_yaml_value v, ranks;
    orr_code code;
    if (orr_yaml_find(root, "generate", &v)) {
        const orr_where w = orr_yaml_where(v);
        if (orr_yaml_find(root, "ranks", &ranks))
            return orr_fail(
                err, ORR_EINPUT, &w,
                "the key \"ranks\" does not go with \"generate\", which makes the ranks");
        code = orr__topology_generate(t, v, otherwise, err);
        if (code == ORR_EINPUT && err && !err->where.line)
            err->where = w;
    } else {
        code = take_ranks(root, t, err);
    }
    if (!code && orr_yaml_find(root, "switches", &v))
        code = take_names(v, "switches", add_switch_name, t, err);
    return code;
}

static orr_code take_topology(orr__topology *t, orr_yaml_value root, orr_error *err)
{
    static const char *const routings[] = {"ecmp", "ecmp-pair", "first", NULL};
    orr__link_defaults otherwise = {0};
    unsigned routing = ORR__ROUTE_BY_MESSAGE;
    orr_code code = check_head(root, err);
    if (!code)
        code = orr_yaml_take_rate(root, "bandwidth", &otherwise.speed, err);
    if (!code)
        code = orr_yaml_take_ns(root, "latency", &otherwise.latency, err);
    if (!code)
        code = take_devices(t, root, &otherwise, err);
    if (!code)
        code = orr_yaml_take_bool(root, "ranks_forward", &t->ranks_forward, err);
    if (!code)
        code = take_links(t, root, &otherwise, err);
    if (!code)
        code = orr_yaml_take_word(root, "routing", routings, &routing, err);
    if (!code)
        code = take_dims(t, root, err);
    t->routing = (orr__routing)routing;
    return code;
}

static bool is_link_level(orr_yaml_value root)
{
    orr_yaml_value v;
    return !orr_yaml_find(root, "topology", &v) &&
           (orr_yaml_find(root, "links", &v) || orr_yaml_find(root, "generate", &v) ||
            orr_yaml_find(root, "format", &v));
}

/* So that it can be written again in as few words. */
static orr_code keep_description(orr__topology *t,
                                 orr_yaml_value root,
                                 orr_span bytes,
                                 orr_error *err)
{
    enum { MOST = 4096 };
    orr_yaml_value v;
    if (bytes.len > MOST || !orr_yaml_find(root, "generate", &v))
        return ORR_OK;
    if (!(t->description = orr_alloc(bytes.len, 1)))
        return orr_no_memory(err);
    memcpy(t->description, bytes.ptr, bytes.len);
    t->description_len = bytes.len;
    return ORR_OK;
}

orr_code orr__topology_parse(
    orr_span bytes, const char *path, size_t most_links, orr__topology **out, orr_error *err)
{
    orr_yaml *y;
    *out = NULL;
    orr_code code = orr_yaml_open(bytes, path, &y, err);
    if (code)
        return code;
    const bool is_infragraph = orr__topology_is_infragraph(orr_yaml_root(y));
    if ((is_infragraph || is_link_level(orr_yaml_root(y))) &&
        !(code = orr__topology_create(out, err))) {
        (*out)->most_links = most_links;
        code = is_infragraph ? orr__topology_take_infragraph(*out, orr_yaml_root(y), err)
                             : take_topology(*out, orr_yaml_root(y), err);
        if (!code)
            code = keep_description(*out, orr_yaml_root(y), bytes, err);
    }
    orr_yaml_close(y);
    if (code) {
        orr__topology_destroy(*out);
        *out = NULL;
    }
    return code;
}
