/* SPDX-License-Identifier: Apache-2.0 */
/* topology_nccl.c - NCCL's topology dump (NCCL_TOPO_DUMP_FILE): XML, the PCI tree of each CPU, and
 * the NVLinks of each GPU.
 *
 * GPUs are the ranks.  CPUs and PCI bridges become switches; NVSwitches become one, because NCCL
 * spreads a message over all of them.  The file has no latencies and no NVLink rates: these come
 * from data sheets, by GPU generation (docs/format/topology.md). */
#include "topology_kinds.h"

#include "base/formats/xml.h"
#include "base/memory/map.h"
#include "base/memory/sort.h"
#include "base/text/number.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The cheaper route wins, whatever its number of hops. */
enum {
    COST_NVLINK = 1,
    COST_PCI = 64,
    COST_CPU = 1024,
    COST_NET = 8192,
    MOST_GPUS = 4096,
    SHOWN = 40
};
static const double NVLINK_NS = 25, PCI_NS = 150, CPU_NS = 100, NET_NS = 500;

typedef struct gpu {
    const orr_xml_node *node;
    orr_str busid;
    uint32_t rank, parent;
    uint32_t sm;
    double pci; /* bytes per ns, to its parent */
} gpu;

typedef struct net {
    uint32_t parent;
    double speed, latency;
} net;

typedef struct cpu {
    uint32_t device;
    uint64_t host; /* hash of its name */
    double speed;  /* to the other CPUs */
} cpu;

typedef struct reader {
    orr__topology *t;
    orr_error *err;
    gpu *gpus;
    size_t gpu_count, gpu_room;
    net *nets;
    size_t net_count, net_room;
    cpu *cpus;
    size_t cpu_count, cpu_room;
    uint32_t bridges;
    bool has_hosts; /* several */
} reader;

static orr_code fail_at(const reader *r, const orr_xml_node *n, const char *what)
{
    const orr_where w = orr_xml_where(n);
    return orr_fail(r->err, ORR_EINPUT, &w, "%s", what);
}

static orr_code add_cable(
    const reader *r, uint32_t a, uint32_t b, double speed, double latency, uint32_t cost)
{
    const orr__wire l = {.from = a, .to = b, .speed = speed, .latency = latency, .cost = cost};
    return orr__topology_add_cable(r->t, &l, r->err);
}

static orr_code add_switch(const reader *r, const char *kind, uint32_t number, uint32_t *out)
{
    char name[40];
    snprintf(name, sizeof name, "%s%" PRIu32, kind, number);
    return orr__topology_add_switch(r->t, orr_str_of(name), out, r->err);
}

/* "16.0 GT/s PCIe" and lanes, minus the encoding overhead; unknown: third generation, 16 lanes. */
static double pci_speed(const orr_xml_node *n)
{
    orr_str text = {"", 0};
    int64_t lanes = 16;
    double rate = 8;
    orr_error unused;
    orr_xml_attr(n, "link_speed", &text);
    size_t digits = 0;
    while (digits < text.len && (orr_is_digit(text.ptr[digits]) || text.ptr[digits] == '.'))
        digits++;
    if (!digits || !orr_text_double((orr_str){text.ptr, digits}, &rate) ||
        !(rate >= 1 && rate <= 1000))
        rate = 8;
    if (orr_xml_get_int(n, "link_width", false, 1, 64, &lanes, &unused))
        lanes = 16;
    return rate * (rate < 8 ? 0.8 : rate < 64 ? 128.0 / 130 : 242.0 / 256) * (double)lanes / 8;
}

/* One NVLink, one direction, GB/s. */
static double nvlink_speed(uint32_t sm)
{
    return sm < 70 ? 20 : sm == 86 ? 14.0625 : sm < 100 ? 25 : 50;
}

/* ---- the PCI tree ---- */

static orr_code take_gpu(reader *r, const orr_xml_node *pci, const orr_xml_node *n, uint32_t parent)
{
    int64_t dev = 0, rank = -1, sm = 70;
    gpu g = {.node = n, .parent = parent, .pci = pci_speed(pci)};
    orr_code code;
    if ((code = orr_xml_get_int(n, "dev", true, 0, MOST_GPUS, &dev, r->err)) ||
        (code = orr_xml_get_int(n, "rank", false, 0, MOST_GPUS, &rank, r->err)) ||
        (code = orr_xml_get_int(n, "sm", false, 1, 1000, &sm, r->err)))
        return code;
    if (!orr_xml_attr(pci, "busid", &g.busid))
        return fail_at(r, pci, "<pci> has no attribute \"busid\"");
    if (!orr_grow(&r->gpus, &r->gpu_room, r->gpu_count + 1))
        return orr_no_memory(r->err);
    if (r->gpu_count == MOST_GPUS)
        return fail_at(r, n, "more than 4096 GPUs");
    g.rank = (uint32_t)(rank >= 0 ? rank : dev);
    g.sm = (uint32_t)sm;
    r->gpus[r->gpu_count++] = g;
    return ORR_OK;
}

static orr_code take_nets(reader *r, const orr_xml_node *nic, uint32_t parent)
{
    for (const orr_xml_node *n = nic->child; n; n = n->next) {
        int64_t speed = 10000;
        orr_str text;
        double us = 0;
        if (!orr_str_is(n->name, "net"))
            continue;
        const orr_code code = orr_xml_get_int(n, "speed", false, 1, 100000000, &speed, r->err);
        if (code)
            return code;
        if (!orr_xml_attr(n, "latency", &text) || !orr_text_double(text, &us) ||
            !(us > 0 && us < 1e6))
            us = NET_NS / 1000;
        if (!orr_grow(&r->nets, &r->net_room, r->net_count + 1))
            return orr_no_memory(r->err);
        r->nets[r->net_count++] = (net){parent, (double)speed / 8000, us * 1000};
    }
    return ORR_OK;
}

/* The elements of a CPU or a bridge; nesting was bounded when the file was read. */
static orr_code take_pci(reader *r, const orr_xml_node *of, uint32_t parent)
{
    orr_code code = ORR_OK;
    for (const orr_xml_node *n = of->child; n && !code; n = n->next) {
        uint32_t bridge;
        bool has_pci = false;
        if (orr_str_is(n->name, "nic")) {
            code = take_nets(r, n, parent);
            continue;
        }
        if (!orr_str_is(n->name, "pci"))
            continue;
        for (const orr_xml_node *c = n->child; c && !code; c = c->next) {
            has_pci = has_pci || orr_str_is(c->name, "pci");
            if (orr_str_is(c->name, "gpu"))
                code = take_gpu(r, n, c, parent);
            else if (orr_str_is(c->name, "nic"))
                code = take_nets(r, c, parent);
        }
        if (code || !has_pci)
            continue;
        code = add_switch(r, "pci", r->bridges++, &bridge);
        if (!code)
            code = add_cable(r, bridge, parent, pci_speed(n), PCI_NS, COST_PCI);
        if (!code)
            code = take_pci(r, n, bridge);
    }
    return code;
}

static uint64_t hash_text(orr_str s)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < s.len; i++)
        h = (h ^ (uint8_t)s.ptr[i]) * 0x100000001b3u;
    return h;
}

/* NCCL's value for links between sockets, GB/s. */
static double cpu_speed(const orr_xml_node *n)
{
    orr_str arch = {"", 0}, vendor = {"", 0};
    orr_xml_attr(n, "arch", &arch);
    orr_xml_attr(n, "vendor", &vendor);
    if (orr_str_is(arch, "ppc64"))
        return 32;
    if (orr_str_is(arch, "arm64"))
        return 6;
    return orr_str_is(vendor, "GenuineIntel") ? 10 : 16;
}

static orr_code take_cpu(reader *r, const orr_xml_node *n)
{
    orr_str host = {"", 0};
    cpu c = {.speed = cpu_speed(n)};
    orr_code code = add_switch(r, "cpu", (uint32_t)r->cpu_count, &c.device);
    if (code)
        return code;
    orr_xml_attr(n, "host_hash", &host);
    c.host = hash_text(host);
    if (!orr_grow(&r->cpus, &r->cpu_room, r->cpu_count + 1))
        return orr_no_memory(r->err);
    r->has_hosts = r->has_hosts || (r->cpu_count && r->cpus[0].host != c.host);
    r->cpus[r->cpu_count++] = c;
    return take_pci(r, n, c.device);
}

/* ---- links ---- */

static orr_code join_cpus(const reader *r)
{
    orr_code code = ORR_OK;
    for (size_t i = 0; i < r->cpu_count; i++)
        for (size_t j = 0; j < i && !code; j++)
            if (r->cpus[i].host == r->cpus[j].host)
                code = add_cable(r, r->cpus[i].device, r->cpus[j].device, r->cpus[i].speed, CPU_NS,
                                 COST_CPU);
    return code;
}

/* Several hosts are joined by one switch behind their NICs. */
static orr_code join_nets(const reader *r)
{
    uint32_t fabric;
    if (!r->has_hosts || r->net_count == 0)
        return ORR_OK;
    orr_code code = orr__topology_add_switch(r->t, orr_str_of("network"), &fabric, r->err);
    for (size_t i = 0; i < r->net_count && !code; i++) {
        uint32_t device;
        code = add_switch(r, "nic", (uint32_t)i, &device);
        if (!code)
            code = add_cable(r, device, r->nets[i].parent, r->nets[i].speed, PCI_NS, COST_PCI);
        if (!code)
            code = add_cable(r, device, fabric, r->nets[i].speed, r->nets[i].latency, COST_NET);
    }
    return code;
}

static int compare_gpus(const void *p, const void *q)
{
    const gpu *a = p, *b = q;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

static uint32_t find_gpu(const reader *r, orr_str busid)
{
    for (size_t i = 0; i < r->gpu_count; i++)
        if (orr_str_equal(r->gpus[i].busid, busid))
            return (uint32_t)i;
    return UINT32_MAX;
}

/* NVLinks to GPUs are cables, listed at both ends but added once; those to NVSwitches become one
 * link to one switch. */
static orr_code join_nvlinks(const reader *r, uint32_t i, uint32_t *nvswitch)
{
    const gpu *g = &r->gpus[i];
    double to_switch = 0;
    orr_code code = ORR_OK;
    for (const orr_xml_node *n = g->node->child; n && !code; n = n->next) {
        int64_t count = 1;
        orr_str target;
        if (!orr_str_is(n->name, "nvlink"))
            continue;
        if ((code = orr_xml_get_int(n, "count", false, 1, 1000, &count, r->err)))
            return code;
        if (!orr_xml_attr(n, "target", &target))
            return fail_at(r, n, "<nvlink> has no attribute \"target\"");
        const uint32_t peer = find_gpu(r, target);
        const double speed = (double)count * nvlink_speed(g->sm);
        if (peer == UINT32_MAX)
            to_switch += speed;
        else if (peer > i)
            code = add_cable(r, i, peer, speed, NVLINK_NS, COST_NVLINK);
    }
    if (code || to_switch == 0)
        return code;
    if (*nvswitch == UINT32_MAX) {
        code = orr__topology_add_switch(r->t, orr_str_of("nvswitch"), nvswitch, r->err);
        if (!code)
            code = orr__topology_mark_nvswitch(r->t, *nvswitch, r->err);
    }
    return code ? code : add_cable(r, i, *nvswitch, to_switch, NVLINK_NS, COST_NVLINK);
}

static uint32_t count_gpus(const orr_xml_node *of)
{
    uint32_t n = 0;
    for (const orr_xml_node *c = of->child; c; c = c->next)
        n += orr_str_is(c->name, "gpu") ? 1 : count_gpus(c);
    return n;
}

static orr_code take_system(reader *r, const orr_xml_node *root)
{
    uint32_t nvswitch = UINT32_MAX;
    orr_code code = ORR_OK;
    if (!orr_str_is(root->name, "system"))
        return fail_at(r, root, "expected <system>, a topology that NCCL wrote");
    r->t->ranks = count_gpus(root);
    if (r->t->ranks < 2)
        return fail_at(r, root, "expected at least 2 GPUs");
    for (const orr_xml_node *n = root->child; n && !code; n = n->next)
        if (orr_str_is(n->name, "cpu"))
            code = take_cpu(r, n);
    if (!code && r->gpu_count != r->t->ranks)
        code = fail_at(r, root, "a <gpu> is not in a <pci> of a <cpu>");
    if (code)
        return code;
    orr_sort(r->gpus, r->gpu_count, sizeof *r->gpus, compare_gpus);
    for (uint32_t i = 0; i < r->gpu_count && !code; i++) {
        if (r->gpus[i].rank != i)
            return fail_at(r, r->gpus[i].node,
                           i && r->gpus[i].rank == r->gpus[i - 1].rank
                               ? "two GPUs have the same rank"
                               : "the ranks of the GPUs have a gap before this one");
        code = add_cable(r, i, r->gpus[i].parent, r->gpus[i].pci, PCI_NS, COST_PCI);
    }
    for (uint32_t i = 0; i < r->gpu_count && !code; i++)
        code = join_nvlinks(r, i, &nvswitch);
    if (!code)
        code = join_cpus(r);
    return code ? code : join_nets(r);
}

orr_code orr__topology_parse_nccl(
    orr_span bytes, const char *path, size_t most_links, orr__topology **out, orr_error *err)
{
    reader r = {.err = err};
    orr_xml *x;
    *out = NULL;
    orr_code code = orr_xml_open(bytes, path, &x, err);
    if (code)
        return code;
    if (!(code = orr__topology_create(&r.t, err))) {
        r.t->most_links = most_links;
        r.t->ranks_forward = false;
        code = take_system(&r, orr_xml_root(x));
        r.t->dims = 1;
        r.t->npus[0] = r.t->ranks;
    }
    if (code == ORR_EINPUT && err && !err->where.path[0])
        err->where = orr_where_byte(path, ORR_NO_BYTE);
    orr_xml_close(x);
    orr_free(r.gpus);
    orr_free(r.nets);
    orr_free(r.cpus);
    if (code)
        orr__topology_destroy(r.t);
    else
        *out = r.t;
    return code;
}
