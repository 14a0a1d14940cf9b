/* SPDX-License-Identifier: Apache-2.0 */
/* topology.c - devices and links, added one by one; and texts that select them. */
#include "topology.h"

#include "base/formats/yaml.h"

#include <stdio.h>

orr_code orr__topology_create(orr__topology **out, orr_error *err)
{
    orr__topology *t = orr_alloc(1, sizeof *t);
    *out = NULL;
    if (!t)
        return orr_no_memory(err);
    t->most_links = ORR__MOST_LINKS;
    t->ranks_forward = true;
    t->switches = orr_intern_create();
    if (!t->switches) {
        orr__topology_destroy(t);
        return orr_no_memory(err);
    }
    *out = t;
    return ORR_OK;
}

void orr__topology_destroy(orr__topology *t)
{
    if (!t)
        return;
    orr_intern_destroy(t->switches);
    orr_intern_destroy(t->rank_names);
    orr_free(t->links);
    orr_free(t->is_nvswitch);
    orr_free(t->description);
    orr_free(t);
}

uint32_t orr__topology_devices(const orr__topology *t)
{
    return t->ranks + orr_intern_count(t->switches);
}

orr_code orr__topology_add_switch(orr__topology *t,
                                  orr_str name,
                                  uint32_t *device_out,
                                  orr_error *err)
{
    uint32_t number;
    if (orr_intern_count(t->switches) >= t->most_links)
        return orr_fail(err, ORR_EINPUT, NULL, "more than %zu switches", t->most_links);
    if (!orr_intern_add(t->switches, name, &number))
        return orr_no_memory(err);
    if (device_out)
        *device_out = t->ranks + number;
    return ORR_OK;
}

orr_code orr__topology_mark_nvswitch(orr__topology *t, uint32_t device, orr_error *err)
{
    const uint32_t number = device - t->ranks;
    const size_t before = t->nv_room;
    if (!orr_grow(&t->is_nvswitch, &t->nv_room, (size_t)number + 1))
        return orr_no_memory(err);
    for (size_t i = before; i < t->nv_room; i++)
        t->is_nvswitch[i] = false;
    t->is_nvswitch[number] = true;
    return ORR_OK;
}

bool orr__topology_is_nvswitch(const orr__topology *t, uint32_t device)
{
    return device >= t->ranks && device - t->ranks < t->nv_room &&
           t->is_nvswitch[device - t->ranks];
}

orr_code orr__topology_add_link(orr__topology *t, const orr__wire *link, orr_error *err)
{
    if (t->link_count >= t->most_links)
        return orr_fail(err, ORR_EINPUT, NULL, "more than %zu links", t->most_links);
    if (!orr_grow(&t->links, &t->link_room, t->link_count + 1))
        return orr_no_memory(err);
    t->links[t->link_count++] = *link;
    return ORR_OK;
}

orr_code orr__topology_add_cable(orr__topology *t, const orr__wire *link, orr_error *err)
{
    orr__wire back = *link;
    back.from = link->to;
    back.to = link->from;
    const orr_code code = orr__topology_add_link(t, link, err);
    return code ? code : orr__topology_add_link(t, &back, err);
}

/* ---- products ---- */

/* Clockwise first: if both directions are equally short the first one is taken, as in astra-sim.md
 * 8.2. */
static orr_code add_ring(
    orr__topology *t, const net_product *p, uint32_t k, orr__wire like, orr_error *err)
{
    const uint32_t n = p->npus[k];
    orr_code code = ORR_OK;
    for (uint32_t r = 0; r < p->ranks && !code; r++) {
        const uint32_t c = net_product_coordinate(p, k, r);
        like.from = r;
        like.to = net_product_neighbour(p, k, r, (c + 1) % n);
        if (!p->is_open[k] || c + 1 < n)
            code = orr__topology_add_link(t, &like, err);
        if (code || n == 2 || (p->is_open[k] && c == 0)) /* one cable is enough for two */
            continue;
        like.to = net_product_neighbour(p, k, r, (c + n - 1) % n);
        code = orr__topology_add_link(t, &like, err);
    }
    return code;
}

static orr_code add_switches(
    orr__topology *t, const net_product *p, uint32_t k, orr__wire like, orr_error *err)
{
    orr_code code = ORR_OK;
    for (uint32_t r = 0; r < p->ranks && !code; r++) {
        like.from = r;
        like.to = net_product_switch(p, k, r);
        code = orr__topology_add_cable(t, &like, err);
    }
    return code;
}

static orr_code add_pairs(
    orr__topology *t, const net_product *p, uint32_t k, orr__wire like, orr_error *err)
{
    orr_code code = ORR_OK;
    for (uint32_t r = 0; r < p->ranks && !code; r++) {
        const uint32_t own = net_product_coordinate(p, k, r);
        like.from = r;
        for (uint32_t c = 0; c < p->npus[k] && !code; c++) {
            like.to = net_product_neighbour(p, k, r, c);
            if (c != own)
                code = orr__topology_add_link(t, &like, err);
        }
    }
    return code;
}

orr_code orr__topology_add_product(orr__topology *t,
                                   const net_product *p,
                                   const double *speed,
                                   const double *latency,
                                   orr_error *err)
{
    char name[NET_DEVICE_NAME];
    orr_code code = ORR_OK;
    for (uint32_t d = p->ranks; d < p->devices && !code; d++) {
        net_product_name(p, d, name);
        code = orr__topology_add_switch(t, orr_str_of(name), NULL, err);
    }
    for (uint32_t k = 0; k < p->dims && !code; k++) {
        const orr__wire like = {.speed = speed[k], .latency = latency[k], .cost = 1};
        code = p->shape[k] == ORR_NET_RING     ? add_ring(t, p, k, like, err)
               : p->shape[k] == ORR_NET_SWITCH ? add_switches(t, p, k, like, err)
                                               : add_pairs(t, p, k, like, err);
    }
    return code;
}

orr_code orr__topology_of_product(const orr_net_config *cfg, orr__topology **out, orr_error *err)
{
    net_product p;
    double speed[ORR_NET_DIMS];
    orr_code code = orr__topology_create(out, err);
    if (code)
        return code;
    orr__topology *t = *out;
    net_product_init(&p, cfg);
    t->ranks = p.ranks;
    t->routing = ORR__ROUTE_FIRST;
    for (uint32_t k = 0; k < cfg->dims; k++)
        speed[k] = net_link_speed(cfg->bandwidth[k]);
    code = orr__topology_add_product(t, &p, speed, cfg->latency_ns, err);
    if (code) {
        orr__topology_destroy(t);
        *out = NULL;
        return orr_because(err, code, "the network as a graph");
    }
    return ORR_OK;
}

/* ---- names ---- */

static orr_code refuse(orr_str s, const orr_where *w, const char *why, orr_error *err)
{
    return orr_fail(err, ORR_EINPUT, w, "\"%.*s\" %s", (int)(s.len < 60 ? s.len : 60), s.ptr, why);
}

orr_code orr__topology_names(
    orr_str text, const orr_where *w, orr__name_visit visit, void *context, orr_error *err)
{
    char name[NET_DEVICE_NAME];
    uint64_t from, to;
    const char *open = memchr(text.ptr, '[', text.len), *end = text.ptr + text.len;
    if (text.len == 0 || text.len >= sizeof name - 12)
        return refuse(text, w, "is empty or too long for a name (31 characters)", err);
    if (!open)
        return visit(context, text, err);
    const char *shut = memchr(open, ']', (size_t)(end - open));
    if (!shut || !orr_text_range((orr_str){open + 1, (size_t)(shut - open - 1)}, &from, &to))
        return refuse(text, w, "is not a name with a range, as leaf[0-3]", err);
    if (from > to || to >= ORR__MOST_RANKS)
        return refuse(text, w, "has a range that is empty or too large", err);
    orr_code code = ORR_OK;
    for (uint64_t i = from; i <= to && !code; i++) {
        const int n = snprintf(name, sizeof name, "%.*s%u%.*s", (int)(open - text.ptr), text.ptr,
                               (unsigned)i, (int)(end - shut - 1), shut + 1);
        code = visit(context, (orr_str){name, (size_t)n}, err);
    }
    return code;
}

static bool find_device(const orr__topology *t, orr_str name, uint32_t *out)
{
    uint32_t number;
    if (orr_intern_find(t->switches, name, &number)) {
        *out = t->ranks + number;
        return true;
    }
    return t->rank_names && orr_intern_find(t->rank_names, name, out);
}

static orr_code add_device(orr__devices *d, uint32_t device, orr_error *err)
{
    if (!orr_grow(&d->list, &d->room, d->count + 1))
        return orr_no_memory(err);
    d->list[d->count++] = device;
    return ORR_OK;
}

static orr_code add_ranks(
    const orr__topology *t, orr_str text, const orr_where *w, orr__devices *out, orr_error *err)
{
    uint64_t from, to;
    if (!orr_text_range(text, &from, &to))
        return refuse(text, w, "is not a rank, nor the name of a rank or switch", err);
    if (from > to)
        return refuse(text, w, "is an empty range", err);
    if (to >= t->ranks)
        return orr_fail(err, ORR_EINPUT, w, "rank %llu: the last of the %u ranks is %u",
                        (unsigned long long)to, t->ranks, t->ranks - 1);
    orr_code code = ORR_OK;
    for (uint64_t r = from; r <= to && !code; r++)
        code = add_device(out, (uint32_t)r, err);
    return code;
}

typedef struct selection {
    const orr__topology *t;
    const orr_where *where;
    orr__devices *out;
} selection;

static orr_code select_name(void *context, orr_str name, orr_error *err)
{
    const selection *s = context;
    uint32_t device;
    if (!find_device(s->t, name, &device))
        return refuse(name, s->where, "is not the name of a rank or switch", err);
    return add_device(s->out, device, err);
}

orr_code orr__topology_select(
    const orr__topology *t, orr_str text, const orr_where *where, orr__devices *out, orr_error *err)
{
    uint32_t device;
    selection s = {t, where, out};
    if (find_device(t, text, &device)) /* a name may have a dash in it */
        return add_device(out, device, err);
    if (memchr(text.ptr, '[', text.len))
        return orr__topology_names(text, where, select_name, &s, err);
    return add_ranks(t, text, where, out, err);
}

void orr__topology_name(const orr__topology *t, uint32_t device, char out[NET_DEVICE_NAME])
{
    if (device >= t->ranks)
        snprintf(out, NET_DEVICE_NAME, "%s", orr_intern_get(t->switches, device - t->ranks).ptr);
    else if (t->rank_names)
        snprintf(out, NET_DEVICE_NAME, "%s", orr_intern_get(t->rank_names, device).ptr);
    else
        snprintf(out, NET_DEVICE_NAME, "%u", device);
}

/* ---- changes ---- */

enum { IS_FROM = 1, IS_TO = 2 };

static void mark(const orr__devices *d, uint8_t *marks, uint8_t bit, bool is_set)
{
    for (size_t i = 0; i < d->count; i++)
        marks[d->list[i]] = (uint8_t)(is_set ? marks[d->list[i]] | bit : 0);
}

static bool is_meant(const orr__wire *l, const uint8_t *marks, bool is_one_way)
{
    if (marks[l->from] & IS_FROM && marks[l->to] & IS_TO)
        return true;
    return !is_one_way && marks[l->from] & IS_TO && marks[l->to] & IS_FROM;
}

static orr_code change_links(orr__topology *t,
                             const orr__link_change *c,
                             const uint8_t *marks,
                             orr_error *err)
{
    size_t found = 0;
    for (size_t i = 0; i < t->link_count; i++) {
        orr__wire *l = &t->links[i];
        if (!is_meant(l, marks, c->is_one_way))
            continue;
        found++;
        l->speed *= c->bandwidth;
        l->latency *= c->latency;
        l->is_failed |= c->is_failed;
        if (!(l->speed > 0 && l->speed < 1e18))
            return orr_fail(err, ORR_EINPUT, &c->where, "the bandwidth of a link becomes %g GB/s",
                            l->speed);
    }
    if (!found)
        return orr_fail(err, ORR_EINPUT, &c->where, "there is no link from %s%s to %s%s",
                        c->from[0], c->from[1] ? ", ..." : "", c->to[0], c->to[1] ? ", ..." : "");
    return ORR_OK;
}

static orr_code select_all(const orr__topology *t,
                           const char *const *texts,
                           const orr_where *where,
                           orr__devices *out,
                           orr_error *err)
{
    orr_code code = ORR_OK;
    for (; *texts && !code; texts++)
        code = orr__topology_select(t, orr_str_of(*texts), where, out, err);
    return code;
}

static orr_code change_one(orr__topology *t,
                           const orr__link_change *c,
                           uint8_t *marks,
                           orr_error *err)
{
    orr__devices from = {0}, to = {0};
    orr_code code = select_all(t, c->from, &c->where, &from, err);
    if (!code)
        code = select_all(t, c->to, &c->where, &to, err);
    if (!code) {
        mark(&from, marks, IS_FROM, true);
        mark(&to, marks, IS_TO, true);
        code = change_links(t, c, marks, err);
        mark(&from, marks, 0, false);
        mark(&to, marks, 0, false);
    }
    orr_free(from.list);
    orr_free(to.list);
    return code;
}

orr_code orr__topology_change(orr__topology *t,
                              const orr__link_change *changes,
                              size_t count,
                              orr_error *err)
{
    uint8_t *marks = orr_alloc(orr__topology_devices(t), 1);
    if (!marks)
        return orr_no_memory(err);
    orr_code code = ORR_OK;
    for (size_t i = 0; i < count && !code; i++)
        code = change_one(t, &changes[i], marks, err);
    orr_free(marks);
    return code;
}
