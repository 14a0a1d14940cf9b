/* SPDX-License-Identifier: Apache-2.0 */
/* machine.c - machines by name, and what follows from their values: rates of a device, dimensions.
 *
 * The machines that are built in are the files of built_in/, embedded as text and read as a user's
 * would be, so that there is one way from figures to values and each figure keeps its source.
 * Reading one takes some 50 us.  What is changed on the command line is a small file too. */
#include "machine_impl.h"

#include "base/text/nearest.h"
#include "base/text/number.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

extern const char machine_dgx_a100[], machine_dgx_h100[], machine_hgx_h100[], machine_hgx_h200[],
    machine_h800_deepseek[], machine_dgx_b200[], machine_gb200_nvl72[], machine_mi300x[],
    machine_tpu_v4[], machine_tpu_v5p[], machine_trainium2[];

static const struct {
    const char *name, *text;
} built_in[] = {
    {"dgx-a100", machine_dgx_a100},
    {"dgx-h100", machine_dgx_h100},
    {"hgx-h100", machine_hgx_h100},
    {"hgx-h200", machine_hgx_h200},
    {"h800-deepseek", machine_h800_deepseek},
    {"dgx-b200", machine_dgx_b200},
    {"gb200-nvl72", machine_gb200_nvl72},
    {"mi300x", machine_mi300x},
    {"tpu-v4", machine_tpu_v4},
    {"tpu-v5p", machine_tpu_v5p},
    {"trainium2", machine_trainium2},
};

enum { BUILT_IN = sizeof built_in / sizeof *built_in, SHOWN = 60 };

#define GIB_PER_GB (1e9 / (double)(1 << 30))

const char *orr_machine_at(size_t index)
{
    return index < BUILT_IN ? built_in[index].name : NULL;
}

const char *orr_machine_source(const char *name)
{
    for (size_t i = 0; i < BUILT_IN; i++)
        if (strcmp(built_in[i].name, name) == 0)
            return built_in[i].text;
    return NULL;
}

/* ---- by name ---- */

static orr_code fail_unknown(const char *name, orr_error *err)
{
    const char *names[BUILT_IN + 1];
    for (size_t i = 0; i <= BUILT_IN; i++)
        names[i] = orr_machine_at(i);
    const char *near = orr_nearest((orr_str){name, strlen(name)}, names);
    if (near)
        return orr_fail(err, ORR_EUSAGE, NULL, "no machine '%.*s'; did you mean '%s'?", SHOWN, name,
                        near);
    return orr_fail(err, ORR_EUSAGE, NULL,
                    "no machine '%.*s', and no such file; see 'orrery machine list'", SHOWN, name);
}

/* "name:N": where the colon is; NULL: there is no number of nodes. */
static char *find_nodes(char *text)
{
    char *colon = strrchr(text, ':');
    return colon && colon != text && !strpbrk(colon, "/.") ? colon : NULL;
}

static orr_code take_nodes(const char *colon, uint32_t *out, orr_error *err)
{
    uint64_t n = 0;
    if (!orr_text_u64((orr_str){colon + 1, strlen(colon + 1)}, &n) || n < 1 || n > MACHINE_NODES)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "'%.*s' is not a number of nodes from 1 to %d, as in dgx-h100:16", SHOWN,
                        colon + 1, MACHINE_NODES);
    *out = (uint32_t)n;
    return ORR_OK;
}

/* Read once: a sweep asks ten thousand times.  One that could not be read, for lack of memory, is
 * not kept. */
orr_code machine_built_in(const char *name, orr_machine *out, orr_error *err)
{
    static orr_machine read[BUILT_IN];
    static atomic_bool is_read[BUILT_IN];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    size_t i = 0;
    while (i + 1 < BUILT_IN && strcmp(built_in[i].name, name) != 0)
        i++;
    const char *text = built_in[i].text;
    if (atomic_load_explicit(&is_read[i], memory_order_acquire)) {
        *out = read[i];
        return ORR_OK;
    }
    const orr_code code =
        orr_machine_parse((orr_span){(const uint8_t *)text, strlen(text)}, name, out, err);
    if (code)
        return code;
    pthread_mutex_lock(&lock);
    if (!atomic_load_explicit(&is_read[i], memory_order_relaxed)) {
        read[i] = *out;
        atomic_store_explicit(&is_read[i], true, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return ORR_OK;
}

/* ---- "dgx-h100:16,scale_up.bandwidth=900GB/s,usd_per_hour=2.5" ---- */

static size_t key_length(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyz_.");
}

/* The comma before the first change; NULL: there is none.  A path may hold commas too. */
static const char *find_changes(const char *text)
{
    for (const char *at = strchr(text, ','); at; at = strchr(at + 1, ',')) {
        const size_t n = key_length(at + 1);
        if (n && at[1 + n] == '=')
            return at;
    }
    return NULL;
}

/* Up to the next comma that is not inside brackets, as of size=[4,4]. */
static size_t change_length(const char *text)
{
    int depth = 0;
    size_t n = 0;
    for (; text[n] && (depth || text[n] != ','); n++)
        depth += (text[n] == '[') - (text[n] == ']' && depth);
    return n;
}

static orr_code change(orr_machine *m, const char *text, size_t length, orr_error *err)
{
    char yaml[600];
    const size_t n = key_length(text);
    const char *dot = memchr(text, '.', n);
    const size_t first = dot ? (size_t)(dot - text) : n;
    if (!n || n >= length || text[n] != '=' || length > 400 || memchr(text, '\n', length))
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "'%.*s': expected KEY=VALUE with a key of a machine file, as "
                        "scale_up.bandwidth=900GB/s",
                        (int)(length < SHOWN ? length : SHOWN), text);
    const int value = (int)(length - n - 1);
    if (dot)
        snprintf(yaml, sizeof yaml, "%.*s:\n  %.*s: %.*s\n", (int)first, text, (int)(n - first - 1),
                 dot + 1, value, text + n + 1);
    else
        snprintf(yaml, sizeof yaml, "%.*s: %.*s\n", (int)n, text, value, text + n + 1);
    const orr_span bytes = {(const uint8_t *)yaml, strlen(yaml)};
    const orr_code code = machine_change(bytes, "machine", false, m, err);
    if (!code || code == ORR_ENOMEM)
        return code;
    if (err) /* places in a text of our own would mislead */
        err->where = (orr_where){.path = "", .byte = ORR_NO_BYTE};
    if (err)
        err->code = ORR_EUSAGE;
    return orr_because(err, ORR_EUSAGE, "'%.*s'", (int)(length < SHOWN ? length : SHOWN), text);
}

static orr_code apply_changes(orr_machine *m, const char *at, orr_error *err)
{
    orr_code code = ORR_OK;
    while (!code && at && *at == ',') {
        const size_t n = change_length(++at);
        code = change(m, at, n, err);
        at += n;
    }
    return code;
}

typedef struct machine_words {
    char name[1024]; /* or a path */
    uint32_t nodes;  /* 0: not given */
    const char *changes;
} machine_words;

static orr_code take_apart(const char *text, machine_words *out, orr_error *err)
{
    out->nodes = 0;
    out->changes = find_changes(text);
    const size_t all = out->changes ? (size_t)(out->changes - text) : strlen(text);
    if (all == 0 || all >= sizeof out->name)
        return fail_unknown(text, err);
    memcpy(out->name, text, all);
    out->name[all] = '\0';
    char *colon = find_nodes(out->name);
    const orr_code code = colon ? take_nodes(colon, &out->nodes, err) : ORR_OK;
    if (colon)
        *colon = '\0';
    return code;
}

orr_code orr_machine_find(const char *text, orr_machine *out, orr_error *err)
{
    machine_words w;
    orr_machine m;
    orr_code code = take_apart(text, &w, err);
    if (code)
        return code;
    code = orr_machine_source(w.name) ? machine_built_in(w.name, &m, err)
                                      : orr_machine_read(w.name, &m, err);
    if (code == ORR_EIO && !strpbrk(w.name, "/."))
        return fail_unknown(w.name, err);
    if (code)
        return code;
    m.nodes = w.nodes ? w.nodes : m.nodes;
    code = apply_changes(&m, w.changes, err);
    if (!code)
        code = machine_check(&m, NULL, err);
    if (!code)
        *out = m;
    return code;
}

/* ---- what must hold ---- */

static uint32_t volume(const orr_machine *m)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < m->up_dims && n <= MACHINE_DEVICES; i++)
        n *= m->up_size[i];
    return n <= MACHINE_DEVICES ? (uint32_t)n : 0;
}

static const char *find_fault(const orr_machine *m)
{
    const bool is_torus = m->up == ORR_MACHINE_UP_TORUS;
    if ((uint64_t)m->nodes * m->devices > MACHINE_ALL)
        return "more than 16,777,216 devices";
    if (m->up_dims && !is_torus)
        return "scale_up: only a torus has a size";
    if (m->up_dims && volume(m) != m->devices)
        return "scale_up: the product of its sizes is not the number of devices";
    if (m->up != ORR_MACHINE_UP_NONE && !(m->up_GBps > 0))
        return "scale_up: a bandwidth is missing";
    if (m->fabric == ORR_MACHINE_FABRIC_TORUS && !is_torus && m->up != ORR_MACHINE_UP_RING)
        return "fabric: a torus of nodes needs a scale_up of the kind torus or ring";
    if (m->fabric == ORR_MACHINE_FABRIC_NONE && m->nodes > 1)
        return "several nodes, and no fabric between them";
    if (m->fabric != ORR_MACHINE_FABRIC_TORUS && m->nodes > 1 && !m->nics)
        return "several nodes, and no NICs between them";
    if (m->up == ORR_MACHINE_UP_NONE && m->devices > 1 && !m->nics)
        return "several devices, and neither scale_up nor NICs between them";
    return NULL;
}

orr_code machine_check(const orr_machine *m, const orr_where *where, orr_error *err)
{
    const char *fault = find_fault(m);
    if (!fault)
        return ORR_OK;
    return where
               ? orr_fail(err, ORR_EINPUT, where, "%s", fault)
               : orr_fail(err, ORR_EUSAGE, NULL, "%s with %u nodes: %s", m->name, m->nodes, fault);
}

/* ---- what follows ---- */

uint32_t orr_machine_devices(const orr_machine *m)
{
    return m->nodes * m->devices;
}

/* Switches on the way between the two nodes that are furthest apart. */
static unsigned count_hops(const orr_machine *m)
{
    const uint64_t leaf = m->nodes_per_leaf ? m->nodes_per_leaf : m->nodes;
    const uint64_t group = leaf * (m->leaves_per_group ? m->leaves_per_group : 1);
    if (m->nodes <= leaf)
        return 1;
    switch (m->fabric) {
    case ORR_MACHINE_FABRIC_RAILS:
    case ORR_MACHINE_FABRIC_LEAF_SPINE:
        return 3;
    case ORR_MACHINE_FABRIC_FAT_TREE:
        return 5;
    case ORR_MACHINE_FABRIC_DRAGONFLY:
        return m->nodes <= group ? 2 : 4;
    default:
        return 1;
    }
}

double orr_machine_out_GBps(const orr_machine *m)
{
    return m->nic_GBps * m->nics / m->devices;
}

double orr_machine_out_latency_ns(const orr_machine *m)
{
    return m->nic_latency_ns + count_hops(m) * m->hop_latency_ns;
}

/* Jobs leave out some devices of a rack so that it comes out even: 256 ranks take 64 of 72 on each
 * of four.  Hosts of 8 and 16 are taken whole. */
enum { WHOLE_NODE_MOST = 16 };

static uint32_t devices_used(const orr_machine *m, uint32_t ranks)
{
    if (m->devices <= WHOLE_NODE_MOST || m->up_dims || ranks <= m->devices)
        return m->devices;
    for (uint32_t d = m->devices; d > m->devices / 2; d--)
        if (ranks % d == 0 && ranks / d <= m->nodes)
            return d;
    return m->devices;
}

orr_code orr_machine_fit(const orr_machine *m, uint32_t ranks, orr_machine *out, orr_error *err)
{
    orr_machine part = *m;
    const uint32_t used = devices_used(m, ranks);
    if (ranks == 0 || ranks > orr_machine_devices(m))
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "%u rank%s need %s:%u; %s with %u node%s has %u device%s", ranks,
                        ranks == 1 ? "" : "s", m->name, (ranks + m->devices - 1) / m->devices,
                        m->name, m->nodes, m->nodes == 1 ? "" : "s", orr_machine_devices(m),
                        orr_machine_devices(m) == 1 ? "" : "s");
    if (ranks > m->devices && ranks % used)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "%u ranks do not fill whole nodes of %s, which have %u devices", ranks,
                        m->name, m->devices);
    part.nodes = ranks > m->devices ? ranks / used : 1;
    if (ranks > m->devices && used < m->devices) {
        part.nics = m->nics == m->devices ? used : m->nics;
        part.devices = used;
    }
    if (ranks < m->devices) {
        part.devices = ranks;
        part.nics = m->nics < ranks ? m->nics : ranks;
        part.up_dims = 0;
    }
    *out = part;
    return ORR_OK;
}

orr_code orr_machine_for(const char *text, uint32_t ranks, orr_machine *out, orr_error *err)
{
    orr_machine all;
    machine_words w;
    orr_code code = take_apart(text, &w, err);
    if (!code)
        code = orr_machine_find(text, &all, err);
    if (!code && !w.nodes && all.nodes == 1 && ranks > all.devices)
        all.nodes = (ranks - 1) / all.devices + 1;
    if (!code)
        code = machine_check(&all, NULL, err);
    return code ? code : orr_machine_fit(&all, ranks, out, err);
}

/* ---- dimensions ---- */

static void add(orr_net_config *c, orr_net_shape shape, uint32_t npus, double GBps, double ns)
{
    if (npus < 2)
        return;
    c->shape[c->dims] = shape;
    c->npus[c->dims] = npus;
    c->bandwidth[c->dims] = GBps * GIB_PER_GB;
    c->latency_ns[c->dims] = ns;
    c->dims++;
}

static uint32_t largest_prime(uint32_t n)
{
    uint32_t largest = 1;
    for (uint32_t p = 2; p * p <= n; p++)
        for (; n % p == 0; n /= p)
            largest = p;
    return n > 1 ? n : largest;
}

/* Grow the sizes by the prime factors of n, the largest first, always where it is shortest. */
static void grow(uint32_t *size, uint32_t dims, uint32_t n)
{
    while (n > 1) {
        const uint32_t p = largest_prime(n);
        uint32_t at = 0;
        for (uint32_t i = 1; i < dims; i++)
            at = size[i] < size[at] ? i : at;
        size[at] *= p;
        n /= p;
    }
}

static void add_torus(const orr_machine *m, orr_net_config *c)
{
    uint32_t size[ORR_MACHINE_TORUS_DIMS] = {1, 1, 1, 1};
    const uint32_t dims = m->up == ORR_MACHINE_UP_RING ? 1 : m->up_dims ? m->up_dims : 3;
    memcpy(size, m->up_size, m->up_dims * sizeof *size);
    if (!m->up_dims)
        grow(size, dims, m->devices);
    if (m->fabric == ORR_MACHINE_FABRIC_TORUS)
        grow(size, dims, m->nodes);
    for (uint32_t i = 0; i < dims; i++)
        add(c, ORR_NET_RING, size[i], m->up_GBps / (2 * dims), m->up_latency_ns);
}

static void add_node(const orr_machine *m, orr_net_config *c)
{
    switch (m->up) {
    case ORR_MACHINE_UP_SWITCH:
        add(c, ORR_NET_SWITCH, m->devices, m->up_GBps, m->up_latency_ns / 2);
        break;
    case ORR_MACHINE_UP_MESH:
        add(c, ORR_NET_FULLY_CONNECTED, m->devices,
            m->up_GBps / (m->devices > 1 ? m->devices - 1 : 1), m->up_latency_ns);
        break;
    case ORR_MACHINE_UP_RING:
    case ORR_MACHINE_UP_TORUS:
        add_torus(m, c);
        break;
    case ORR_MACHINE_UP_NONE:
        break;
    }
}

orr_code orr_machine_dims(const orr_machine *m, orr_net_config *out, orr_error *err)
{
    orr_net_config c = {.size = sizeof c};
    const orr_code code = machine_check(m, NULL, err);
    if (code)
        return code;
    const bool is_flat = m->up == ORR_MACHINE_UP_NONE;
    const uint32_t ends = is_flat ? m->nodes * m->devices : m->nodes;
    const bool is_shared = m->nodes_per_leaf && m->nodes > m->nodes_per_leaf;
    const double share = orr_machine_out_GBps(m) / (is_shared ? m->oversubscription : 1);
    add_node(m, &c);
    if (m->fabric != ORR_MACHINE_FABRIC_TORUS)
        c.ranks_per_node = c.dims ? m->devices : 1;
    if (m->fabric != ORR_MACHINE_FABRIC_TORUS)
        add(&c, ORR_NET_SWITCH, ends, share, orr_machine_out_latency_ns(m) / 2);
    if (c.dims == 0) {
        c.dims = 1;
        c.npus[0] = 1;
        c.shape[0] = ORR_NET_SWITCH;
        c.bandwidth[0] = 1;
    }
    *out = c;
    return ORR_OK;
}
