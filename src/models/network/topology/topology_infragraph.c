/* SPDX-License-Identifier: Apache-2.0 */
/* topology_infragraph.c - InfraGraph: devices made of components, instances of devices, and edges
 * between their components by a scheme (YAML, JSON).
 *
 * Components of the choice xpu are the ranks, in the order of the instances; every other component is
 * a switch called instance.index.component.index.  Each edge is a cable with the bandwidth and
 * latency of its link. */
#include "topology.h"

#include "base/text/number.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <stdio.h>

enum { MOST_NODES = 1 << 22, SHOWN = 40 };

typedef struct component {
    orr_str name;
    uint32_t count, first; /* first: of the nodes of a device */
    bool is_xpu;
} component;

typedef struct device {
    orr_str name;
    orr_yaml_value v;
    component *components;
    uint32_t component_count, nodes;
} device;

typedef struct instance {
    orr_str name;
    const device *of;
    uint32_t count, first; /* of all nodes */
} instance;

typedef struct reader {
    orr__topology *t;
    orr_arena *a;
    orr_error *err;
    orr_yaml_value root;
    device *devices;
    instance *instances;
    uint32_t device_count, instance_count, node_count;
    uint32_t *ids; /* by node: its number in the topology */
} reader;

typedef struct nodes {
    uint32_t *list;
    size_t count, room;
} nodes;

static orr_code fail_at(const reader *r, orr_yaml_value v, const char *what, orr_str name)
{
    const orr_where w = orr_yaml_where(v);
    return orr_fail(r->err, ORR_EINPUT, &w, "%s \"%.*s\"", what,
                    (int)(name.len < SHOWN ? name.len : SHOWN), name.ptr);
}

static orr_code need_text(const reader *r, orr_yaml_value map, const char *key, orr_str *out)
{
    orr_yaml_value v;
    const orr_code code = orr_yaml_need(map, key, &v, r->err);
    *out = code ? (orr_str){"", 0} : orr_yaml_text(v);
    return code;
}

static uint32_t list_of(orr_yaml_value map, const char *key, orr_yaml_value *out)
{
    return orr_yaml_find(map, key, out) && orr_yaml_type_of(*out) == ORR_YAML_LIST
               ? orr_yaml_count(*out)
               : 0;
}

/* ---- devices and instances ---- */

static orr_code take_component(reader *r, device *d, orr_yaml_value v, component *out)
{
    static const char *const keys[] = {"name",   "description", "count", "choice", "custom",
                                       "device", "cpu",         "xpu",   "nic",    "memory",
                                       "port",   "switch",      NULL};
    orr_str choice;
    uint64_t count = 0;
    orr_yaml_value n;
    orr_code code = orr_yaml_check_keys(v, keys, r->err);
    if (code || (code = need_text(r, v, "name", &out->name)) ||
        (code = need_text(r, v, "choice", &choice)) ||
        (code = orr_yaml_need(v, "count", &n, r->err)) ||
        (code = orr_yaml_get_u64(n, "count", 1, MOST_NODES, &count, r->err)))
        return code;
    if (orr_str_is(choice, "device"))
        return fail_at(r, v, "a device within a device is not read: component", out->name);
    out->count = (uint32_t)count;
    out->is_xpu = orr_str_is(choice, "xpu");
    out->first = d->nodes;
    if (count > MOST_NODES - d->nodes)
        return fail_at(r, v, "too many components in device", d->name);
    d->nodes += (uint32_t)count;
    return ORR_OK;
}

static orr_code take_device(reader *r, orr_yaml_value v, device *out)
{
    static const char *const keys[] = {"name", "description", "components", "links", "edges", NULL};
    orr_yaml_value list;
    if (orr_yaml_find(v, "connections", &list))
        return fail_at(r, list,
                       "InfraGraph 1 is not read, only edges are:", orr_str_of("connections"));
    orr_code code = orr_yaml_check_keys(v, keys, r->err);
    out->v = v;
    if (code || (code = need_text(r, v, "name", &out->name)))
        return code;
    out->component_count = list_of(v, "components", &list);
    out->components = orr_arena_new(r->a, (size_t)out->component_count + 1, component);
    if (!out->components)
        return orr_no_memory(r->err);
    for (uint32_t i = 0; i < out->component_count && !code; i++)
        code = take_component(r, out, orr_yaml_item(list, i), &out->components[i]);
    return code;
}

static const device *find_device(const reader *r, orr_str name)
{
    for (uint32_t i = 0; i < r->device_count; i++)
        if (orr_str_equal(r->devices[i].name, name))
            return &r->devices[i];
    return NULL;
}

static orr_code take_instance(reader *r, orr_yaml_value v, instance *out)
{
    static const char *const keys[] = {"name", "description", "device", "count", NULL};
    orr_str name;
    uint64_t count = 1;
    orr_code code = orr_yaml_check_keys(v, keys, r->err);
    if (code || (code = need_text(r, v, "name", &out->name)) ||
        (code = need_text(r, v, "device", &name)) ||
        (code = orr_yaml_take_u64(v, "count", 1, MOST_NODES, &count, r->err)))
        return code;
    if (!(out->of = find_device(r, name)))
        return fail_at(r, v, "there is no device", name);
    out->count = (uint32_t)count;
    out->first = r->node_count;
    if (count * out->of->nodes > MOST_NODES - r->node_count)
        return fail_at(r, v, "more than 4 million components, with instance", out->name);
    r->node_count += (uint32_t)count * out->of->nodes;
    return ORR_OK;
}

/* Ranks first, then switches, by their names. */
static orr_code number_nodes(reader *r)
{
    orr_code code = ORR_OK;
    r->ids = orr_arena_new(r->a, (size_t)r->node_count + 1, uint32_t);
    if (!r->ids)
        return orr_no_memory(r->err);
    for (int pass = 0; pass < 2 && !code; pass++)
        for (uint32_t i = 0; i < r->instance_count; i++)
            for (uint32_t n = 0; n < r->instances[i].count; n++)
                for (uint32_t c = 0; c < r->instances[i].of->component_count; c++) {
                    const instance *of = &r->instances[i];
                    const component *k = &of->of->components[c];
                    for (uint32_t m = 0; m < k->count && k->is_xpu == (pass == 0) && !code; m++) {
                        uint32_t *id = &r->ids[of->first + n * of->of->nodes + k->first + m];
                        char name[NET_DEVICE_NAME];
                        snprintf(name, sizeof name, "%.*s.%" PRIu32 ".%.*s.%" PRIu32,
                                 (int)of->name.len, of->name.ptr, n, (int)k->name.len, k->name.ptr,
                                 m);
                        if (pass == 0)
                            *id = r->t->ranks++;
                        else
                            code = orr__topology_add_switch(r->t, orr_str_of(name), id, r->err);
                    }
                }
    return code;
}

/* ---- endpoints: name[from:to:step] ---- */

static bool take_bound(orr_str s, uint64_t otherwise, uint64_t *out)
{
    *out = otherwise;
    return s.len == 0 || orr_text_u64(s, out);
}

static bool split_slice(
    orr_str s, uint64_t count, orr_str *name, uint64_t *from, uint64_t *to, uint64_t *step)
{
    const char *open = s.len ? memchr(s.ptr, '[', s.len) : NULL;
    orr_str part[3] = {{"", 0}, {"", 0}, {"", 0}};
    uint32_t parts = 0;
    *from = 0;
    *to = count;
    *step = 1;
    *name = (orr_str){s.ptr, open ? (size_t)(open - s.ptr) : s.len};
    if (!open)
        return true;
    if (s.ptr[s.len - 1] != ']')
        return false;
    const char *end = s.ptr + s.len - 1, *at = open + 1;
    for (;;) {
        const char *colon = at < end ? memchr(at, ':', (size_t)(end - at)) : NULL;
        if (parts == 3)
            return false;
        part[parts++] = (orr_str){at, (size_t)((colon ? colon : end) - at)};
        if (!colon)
            break;
        at = colon + 1;
    }
    if (parts == 1) {
        if (!orr_text_u64(part[0], from))
            return false;
        *to = *from + 1;
        return *from < count;
    }
    return take_bound(part[0], 0, from) && take_bound(part[1], count, to) &&
           take_bound(part[2], 1, step) && *step > 0 && *from < *to && *to <= count;
}

static const component *find_component(
    const device *d, orr_str text, uint64_t *from, uint64_t *to, uint64_t *step)
{
    for (uint32_t i = 0; i < d->component_count; i++) {
        orr_str name;
        if (split_slice(text, d->components[i].count, &name, from, to, step) &&
            orr_str_equal(name, d->components[i].name))
            return &d->components[i];
    }
    return NULL;
}

static orr_code add_nodes(
    reader *r, orr_yaml_value ep, const device *d, uint32_t first, orr_str text, nodes *out)
{
    uint64_t from, to, step;
    const component *c = find_component(d, text, &from, &to, &step);
    if (!c)
        return fail_at(r, ep, "no such components:", text);
    for (uint64_t k = from; k < to; k += step) {
        if (!orr_grow(&out->list, &out->room, out->count + 1))
            return orr_no_memory(r->err);
        out->list[out->count++] = first + c->first + (uint32_t)k;
    }
    return ORR_OK;
}

/* In a device: of one instance.  Between instances: of all that the slice names. */
static orr_code take_endpoint(
    reader *r, orr_yaml_value edge, const char *key, const device *in, uint32_t first, nodes *out)
{
    static const char *const inner[] = {"component", NULL}, *const outer[] = {"instance",
                                                                              "component", NULL};
    orr_yaml_value ep;
    orr_str text, name;
    uint64_t from, to, step;
    out->count = 0;
    orr_code code = orr_yaml_need(edge, key, &ep, r->err);
    if (code || (code = orr_yaml_check_keys(ep, in ? inner : outer, r->err)) ||
        (code = need_text(r, ep, "component", &text)))
        return code;
    if (in)
        return add_nodes(r, ep, in, first, text, out);
    orr_str of;
    if ((code = need_text(r, ep, "instance", &of)))
        return code;
    for (uint32_t i = 0; i < r->instance_count; i++) {
        const instance *k = &r->instances[i];
        if (!split_slice(of, k->count, &name, &from, &to, &step) || !orr_str_equal(name, k->name))
            continue;
        for (uint64_t n = from; n < to && !code; n += step)
            code = add_nodes(r, ep, k->of, k->first + (uint32_t)n * k->of->nodes, text, out);
        return code;
    }
    return fail_at(r, ep, "no such instances:", of);
}

/* ---- links ---- */

static orr_code take_rate(reader *r, orr_yaml_value link, orr_str name, double *out)
{
    /* GT/s: 16 lanes, less the encoding. */
    static const struct {
        const char *key;
        double factor;
    } units[] = {{"gigabits_per_second", 0.125},
                 {"gigabytes_per_second", 1},
                 {"gigatransfers_per_second", 2.0 * 128 / 130}};
    orr_yaml_value physical = link, v;
    if (orr_yaml_find(link, "physical", &v))
        physical = v;
    if (orr_yaml_find(physical, "bandwidth", &v))
        for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
            double n = 0;
            const orr_code code = orr_yaml_take_number(v, units[i].key, 0, 1e9, &n, r->err);
            if (code)
                return code;
            if (n > 0) {
                *out = n * units[i].factor;
                return ORR_OK;
            }
        }
    return fail_at(r, link, "there is no bandwidth of the link", name);
}

static orr_code take_delay(reader *r, orr_yaml_value link, double *out)
{
    static const struct {
        const char *key;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}};
    orr_yaml_value physical, v;
    orr_code code = ORR_OK;
    *out = 0;
    if (!orr_yaml_find(link, "physical", &physical) || !orr_yaml_find(physical, "latency", &v))
        return ORR_OK;
    for (size_t i = 0; i < sizeof units / sizeof *units && !code; i++) {
        double n = 0;
        code = orr_yaml_take_number(v, units[i].key, 0, 1e9, &n, r->err);
        *out += n * units[i].ns;
    }
    return code;
}

static orr_code find_link(reader *r, orr_yaml_value of, orr_yaml_value edge, orr__wire *out)
{
    orr_yaml_value list, v;
    orr_str name;
    orr_code code = need_text(r, edge, "link", &name);
    if (code)
        return code;
    const uint32_t n = list_of(of, "links", &list);
    for (uint32_t i = 0; i < n; i++) {
        const orr_yaml_value link = orr_yaml_item(list, i);
        if (!orr_yaml_find(link, "name", &v) || !orr_str_equal(orr_yaml_text(v), name))
            continue;
        *out = (orr__wire){.cost = 1};
        code = take_rate(r, link, name, &out->speed);
        return code ? code : take_delay(r, link, &out->latency);
    }
    return fail_at(r, edge, "there is no link", name);
}

/* ---- edges ---- */

static orr_code connect(reader *r, orr__wire link, uint32_t a, uint32_t b)
{
    link.from = r->ids[a];
    link.to = r->ids[b];
    return orr__topology_add_cable(r->t, &link, r->err);
}

static bool same_nodes(const nodes *a, const nodes *b)
{
    return a->count == b->count && memcmp(a->list, b->list, a->count * sizeof *a->list) == 0;
}

static orr_code connect_all(
    reader *r, orr_yaml_value edge, const orr__wire *link, const nodes *a, const nodes *b)
{
    static const char *const schemes[] = {"one2one", "many2many", "ring", NULL};
    const bool is_same = same_nodes(a, b);
    unsigned scheme = 0;
    orr_code code = orr_yaml_take_word(edge, "scheme", schemes, &scheme, r->err);
    if (code)
        return code;
    if (scheme != 1 && a->count != b->count)
        return fail_at(r, edge, "ep1 and ep2 differ in number, with the scheme",
                       orr_str_of(schemes[scheme]));
    if (scheme == 0 && is_same)
        return fail_at(r, edge, "ep1 and ep2 are the same, with the scheme", orr_str_of("one2one"));
    for (size_t i = 0; i < a->count && !code; i++) {
        if (scheme == 0)
            code = connect(r, *link, a->list[i], b->list[i]);
        else if (scheme == 2 && !(a->count == 2 && i == 1) && a->count > 1)
            code = connect(r, *link, a->list[i], b->list[(i + 1) % b->count]);
        for (size_t k = is_same ? i + 1 : 0; k < b->count && scheme == 1 && !code; k++)
            code = connect(r, *link, a->list[i], b->list[k]);
    }
    return code;
}

static orr_code take_edges(reader *r, orr_yaml_value of, const device *in, uint32_t first)
{
    static const char *const keys[] = {"ep1", "ep2", "scheme", "link", NULL};
    orr_yaml_value list;
    const uint32_t n = list_of(of, "edges", &list);
    nodes a = {0}, b = {0};
    orr_code code = ORR_OK;
    for (uint32_t i = 0; i < n && !code; i++) {
        const orr_yaml_value edge = orr_yaml_item(list, i);
        orr__wire link;
        if ((code = orr_yaml_check_keys(edge, keys, r->err)) ||
            (code = find_link(r, of, edge, &link)) ||
            (code = take_endpoint(r, edge, "ep1", in, first, &a)) ||
            (code = take_endpoint(r, edge, "ep2", in, first, &b)))
            break;
        code = connect_all(r, edge, &link, &a, &b);
        if (code == ORR_EINPUT && r->err && !r->err->where.line)
            r->err->where = orr_yaml_where(edge);
    }
    orr_free(a.list);
    orr_free(b.list);
    return code;
}

/* ---- the whole ---- */

static orr_code take_all(reader *r)
{
    static const char *const keys[] = {"name",      "description", "devices", "links",
                                       "instances", "edges",       NULL};
    orr_yaml_value list;
    const orr_where w = orr_yaml_where(r->root);
    if (orr_yaml_find(r->root, "connections", &list))
        return fail_at(r, list,
                       "InfraGraph 1 is not read, only edges are:", orr_str_of("connections"));
    orr_code code = orr_yaml_check_keys(r->root, keys, r->err);
    if (code)
        return code;
    const uint32_t devices = list_of(r->root, "devices", &list);
    r->devices = orr_arena_new(r->a, (size_t)devices + 1, device);
    for (; r->devices && r->device_count < devices && !code; r->device_count++)
        code = take_device(r, orr_yaml_item(list, r->device_count), &r->devices[r->device_count]);
    const uint32_t instances = list_of(r->root, "instances", &list);
    r->instances = orr_arena_new(r->a, (size_t)instances + 1, instance);
    if (!r->devices || !r->instances)
        return orr_no_memory(r->err);
    for (; r->instance_count < instances && !code; r->instance_count++)
        code = take_instance(r, orr_yaml_item(list, r->instance_count),
                             &r->instances[r->instance_count]);
    if (!code)
        code = number_nodes(r);
    if (!code && r->t->ranks < 2)
        code = orr_fail(r->err, ORR_EINPUT, &w,
                        "at least 2 components of the choice xpu were expected");
    for (uint32_t i = 0; i < r->instance_count && !code; i++)
        for (uint32_t n = 0; n < r->instances[i].count && !code; n++)
            code = take_edges(r, r->instances[i].of->v, r->instances[i].of,
                              r->instances[i].first + n * r->instances[i].of->nodes);
    return code ? code : take_edges(r, r->root, NULL, 0);
}

bool orr__topology_is_infragraph(orr_yaml_value root)
{
    orr_yaml_value v;
    return orr_yaml_find(root, "infrastructure", &v) ||
           (orr_yaml_find(root, "devices", &v) && orr_yaml_find(root, "instances", &v));
}

orr_code orr__topology_take_infragraph(orr__topology *t, orr_yaml_value root, orr_error *err)
{
    reader r = {.t = t, .a = orr_arena_create(), .err = err, .root = root};
    orr_yaml_value inner;
    if (!r.a)
        return orr_no_memory(err);
    if (orr_yaml_find(root, "infrastructure", &inner))
        r.root = inner;
    const orr_code code = take_all(&r);
    t->dims = 1;
    t->npus[0] = t->ranks;
    orr_arena_destroy(r.a);
    return code;
}
