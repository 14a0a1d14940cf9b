/* SPDX-License-Identifier: Apache-2.0 */
/* topology_write.c - topologies into files: the ns-3 back end's, SimAI's, and ours in YAML.
 *
 * All are written from cables.  YAML describes consecutive ranks, or switches, with cables to the
 * same device in one line, so files of regular networks are small. */
#include "topology_kinds.h"

#include "base/io/output.h"
#include "base/memory/map.h"
#include "base/text/number.h"

#include <inttypes.h>
#include <stdio.h>

/* Cables as htsim's .topo file, if they are one of its fat trees.
 *
 * Tier 0 are the switches with hosts, tier 1 those next to them, tier 2 the rest.  The tree must be
 * regular, and its hosts numbered along its switches.  Only names are arbitrary: the aggregation
 * switches of a pod all reach the same hosts, so any order works, as long as each core switch has
 * one of every pod and those that share a core switch in one pod do so in all. */

enum { TIERS = 3, NO_TIER = 255 };

typedef struct shape {
    const orr__cabling *c;
    uint8_t *tier;       /* by node; hosts NO_TIER */
    uint32_t *up, *down; /* cables, by node */
    uint32_t *pod;       /* by node: a switch representing its pod, then the pod's number */
    uint32_t *group;     /* by node: of hosts their switch; of aggs and cores their group */
    orr_map *pairs;      /* of two switches: cables between them */
    uint64_t switches[TIERS], radix_down[TIERS], radix_up[TIERS], bundle[TIERS];
    uint64_t rate[TIERS], delay_ps[TIERS]; /* of the cables below a tier */
    uint64_t pods;
    uint32_t first_pod;
    const char *odd; /* why it is not such a tree */
} shape;

static void refuse(shape *s, const char *why)
{
    if (!s->odd)
        s->odd = why;
}

static bool is_host(const shape *s, uint32_t node)
{
    return s->c->kinds[node] == ORR__HOST;
}

/* ---- tiers ---- */

static void lift(shape *s, uint8_t below, uint8_t to)
{
    for (size_t i = 0; i < 2 * s->c->cable_count; i++) {
        const orr__cable *l = &s->c->cables[i / 2];
        const uint32_t a = i % 2 ? l->b : l->a, b = i % 2 ? l->a : l->b;
        const bool is_below = below == NO_TIER ? is_host(s, a) : s->tier[a] == below;
        if (is_below && !is_host(s, b) && s->tier[b] == NO_TIER)
            s->tier[b] = to;
    }
}

static void find_tiers(shape *s)
{
    memset(s->tier, NO_TIER, s->c->nodes);
    lift(s, NO_TIER, 0);
    lift(s, 0, 1);
    lift(s, 1, 2);
    for (uint32_t n = 0; n < s->c->nodes; n++) {
        if (is_host(s, n))
            continue;
        if (s->tier[n] == NO_TIER)
            refuse(s, "it has more than three tiers of switches");
        else
            s->switches[s->tier[n]]++;
    }
    if (!s->switches[1])
        refuse(s, "it has fewer than two tiers of switches");
}

/* One speed and one latency per tier; cables connect adjacent tiers. */
static void take_cable(shape *s, const orr__cable *l)
{
    uint32_t low = l->a, high = l->b;
    if (is_host(s, high) || (!is_host(s, low) && s->tier[low] > s->tier[high])) {
        low = l->b;
        high = l->a;
    }
    const unsigned k = is_host(s, high) ? NO_TIER : s->tier[high];
    if (k >= TIERS || (is_host(s, low) ? k != 0 : s->tier[low] + 1u != k)) {
        refuse(s, "a link is not between one tier and the next");
        return;
    }
    if (!s->rate[k]) {
        s->rate[k] = l->rate;
        s->delay_ps[k] = l->delay_ps;
    }
    if (s->rate[k] != l->rate || s->delay_ps[k] != l->delay_ps || l->error > 0)
        refuse(s, "links of one tier differ, or lose packets");
    s->up[low]++;
    s->down[high]++;
    if (k == 0)
        s->group[low] = high;
}

static void take_radixes(shape *s)
{
    for (uint32_t n = 0; n < s->c->nodes && !s->odd; n++) {
        if (is_host(s, n)) {
            if (s->up[n] != 1)
                refuse(s, "a host has more than one link");
            continue;
        }
        const unsigned k = s->tier[n];
        if (!s->radix_down[k]) {
            s->radix_down[k] = s->down[n];
            s->radix_up[k] = s->up[n];
        }
        if (s->radix_down[k] != s->down[n] || s->radix_up[k] != s->up[n])
            refuse(s, "switches of one tier have different numbers of links");
    }
}

/* ---- pods ---- */

static uint32_t root_of(uint32_t *pod, uint32_t n)
{
    while (pod[n] != n)
        n = pod[n] = pod[pod[n]];
    return n;
}

static bool join_pods(shape *s)
{
    const orr__cabling *c = s->c;
    bool is_well = true;
    for (uint32_t n = 0; n < c->nodes; n++)
        s->pod[n] = n;
    for (size_t i = 0; i < c->cable_count && is_well; i++) {
        const orr__cable *l = &c->cables[i];
        if (is_host(s, l->a) || is_host(s, l->b))
            continue;
        const bool is_a_low = s->tier[l->a] < s->tier[l->b];
        const uint32_t low = is_a_low ? l->a : l->b, high = is_a_low ? l->b : l->a;
        const uint64_t pair = (uint64_t)low << 32 | high;
        is_well = orr_map_put(s->pairs, pair, orr_map_find(s->pairs, pair, 0) + 1, NULL);
        if (s->tier[high] == 1)
            s->pod[root_of(s->pod, high)] = root_of(s->pod, low);
    }
    return is_well;
}

/* Parallel cables: the same number between any two connected switches. */
static void take_bundles(shape *s)
{
    s->bundle[0] = 1;
    for (size_t i = 0; i < s->c->cable_count && !s->odd; i++) {
        const orr__cable *l = &s->c->cables[i];
        if (is_host(s, l->a) || is_host(s, l->b))
            continue;
        const bool is_a_low = s->tier[l->a] < s->tier[l->b];
        const uint32_t low = is_a_low ? l->a : l->b, high = is_a_low ? l->b : l->a;
        const uint32_t n = orr_map_find(s->pairs, (uint64_t)low << 32 | high, 0);
        const unsigned k = s->tier[high];
        if (!s->bundle[k])
            s->bundle[k] = n;
        if (s->bundle[k] != n)
            refuse(s, "the numbers of links between two switches differ");
    }
}

/* Hosts are numbered along their switches, and these along their pods; each tor is connected to
 * every agg of its pod. */
static void check_pods(shape *s)
{
    const orr__cabling *c = s->c;
    uint32_t last_tor = UINT32_MAX, last_pod = UINT32_MAX;
    const uint64_t aggs = s->radix_up[0] / s->bundle[1], tors = s->radix_down[1] / s->bundle[1];
    for (uint32_t host = 0; host < c->hosts && !s->odd; host++) {
        const uint32_t tor = s->group[host], pod = root_of(s->pod, tor);
        if ((tor != last_tor) != (host % s->radix_down[0] == 0))
            refuse(s, "its hosts are not numbered along its switches");
        if ((pod != last_pod) != (host % (s->radix_down[0] * tors) == 0))
            refuse(s, "its hosts are not numbered along its pods");
        s->pods += pod != last_pod;
        if (host == 0)
            s->first_pod = pod;
        last_tor = tor;
        last_pod = pod;
    }
    if (s->switches[0] != s->pods * tors || s->switches[1] != s->pods * aggs)
        refuse(s, "its pods differ, or a switch of a pod is not connected to those above");
    if (!s->switches[2] && s->pods != 1)
        refuse(s, "its leaves are not all connected");
}

/* A group consists of the aggs, one per pod, with the same cores. */
static void check_cores(shape *s)
{
    const orr__cabling *c = s->c;
    for (unsigned pass = 0; pass < 2 && s->switches[2]; pass++)
        for (size_t i = 0; i < c->cable_count && !s->odd; i++) {
            const orr__cable *l = &c->cables[i];
            if (is_host(s, l->a) || is_host(s, l->b) || s->tier[l->a] + s->tier[l->b] != 3)
                continue;
            const uint32_t core = s->tier[l->a] == 2 ? l->a : l->b,
                           agg = core == l->a ? l->b : l->a;
            const bool is_first = root_of(s->pod, agg) == s->first_pod;
            uint32_t *own = pass == 0 ? &s->group[core] : &s->group[agg];
            const uint32_t group = pass == 0 ? agg + 1 : s->group[core];
            if (pass == 0 && !is_first)
                continue;
            if ((*own && *own != group) || !group)
                refuse(s, "its core switches do not have one switch of each pod in common");
            *own = group;
        }
    if (s->switches[2] && s->radix_down[2] != s->pods * s->bundle[2])
        refuse(s, "its core switches do not have one switch of each pod");
}

/* ---- writing ---- */

static void check_numbers(shape *s, unsigned tiers)
{
    for (unsigned k = 0; k < tiers; k++) {
        if (s->rate[k] % 1000000000 || s->delay_ps[k] % 1000 || !s->delay_ps[k])
            refuse(s, "htsim has whole Gb/s, and whole nanoseconds above 0");
        if (k + 1 == tiers)
            continue;
        const uint64_t down = s->radix_down[k] * (s->rate[k] / 1000000000);
        const uint64_t up = s->radix_up[k] * (s->rate[k + 1] / 1000000000);
        if (!up || down % up)
            refuse(s, "htsim has whole ratios of oversubscription");
    }
}

static void write_words(const shape *s, unsigned tiers, orr_buf *b)
{
    const uint64_t hosts = s->c->hosts;
    orr_buf_print(b, "Nodes %" PRIu64 "\nTiers %u\nPodsize %" PRIu64 "\n", hosts, tiers,
                  hosts / s->pods);
    for (unsigned k = 0; k < tiers; k++) {
        const uint64_t gbps = s->rate[k] / 1000000000;
        orr_buf_print(b,
                      "\nTier %u\nDownlink_speed_Gbps %" PRIu64 "\nDownlink_Latency_ns %" PRIu64
                      "\nSwitch_Latency_ns 0\nRadix_Down %" PRIu64 "\n",
                      k, gbps, s->delay_ps[k] / 1000, s->radix_down[k]);
        if (k > 0)
            orr_buf_print(b, "Bundle %" PRIu64 "\n", s->bundle[k]);
        if (k + 1 < tiers)
            orr_buf_print(b, "Radix_Up %" PRIu64 "\nOversubscribed %" PRIu64 "\n", s->radix_up[k],
                          s->radix_down[k] * gbps /
                              (s->radix_up[k] * (s->rate[k + 1] / 1000000000)));
    }
}

static bool examine(shape *s)
{
    find_tiers(s);
    for (size_t i = 0; i < s->c->cable_count && !s->odd; i++)
        take_cable(s, &s->c->cables[i]);
    if (!s->odd)
        take_radixes(s);
    if (s->odd)
        return true;
    if (!join_pods(s))
        return false;
    take_bundles(s);
    if (!s->odd)
        check_pods(s);
    if (!s->odd)
        check_cores(s);
    if (!s->odd)
        check_numbers(s, s->switches[2] ? 3 : 2);
    return true;
}

orr_code orr__htsim_topo_words(const orr__cabling *c, orr_buf *out, orr_error *err)
{
    shape s = {.c = c, .pairs = orr_map_create(c->cable_count)};
    s.tier = orr_alloc(c->nodes, 1);
    s.up = orr_alloc(c->nodes, sizeof *s.up);
    s.down = orr_alloc(c->nodes, sizeof *s.down);
    s.pod = orr_alloc(c->nodes, sizeof *s.pod);
    s.group = orr_alloc(c->nodes, sizeof *s.group);
    const bool is_well = s.pairs && s.tier && s.up && s.down && s.pod && s.group && examine(&s);
    if (is_well && !s.odd)
        write_words(&s, s.switches[2] ? 3 : 2, out);
    orr_map_destroy(s.pairs);
    orr_free(s.tier);
    orr_free(s.up);
    orr_free(s.down);
    orr_free(s.pod);
    orr_free(s.group);
    if (!is_well)
        return orr_no_memory(err);
    return s.odd ? orr_fail(err, ORR_EUSAGE, NULL,
                            "htsim cannot describe this as a fat tree: "
                            "%s",
                            s.odd)
                 : ORR_OK;
}

/* ---- lossless units ---- */

static void rate_words(orr_buf *b, uint64_t rate, bool is_ns3)
{
    static const struct {
        uint64_t factor;
        const char *letter;
    } units[] = {{1000000000, "G"}, {1000000, "M"}, {1000, "k"}, {1, ""}};
    unsigned i = 0;
    while (rate % units[i].factor)
        i++;
    const char *letter = is_ns3 && units[i].factor == 1000 ? "K" : units[i].letter;
    orr_buf_print(b, "%" PRIu64 "%s%s", rate / units[i].factor, letter, is_ns3 ? "bps" : "b/s");
}

static void delay_words(orr_buf *b, uint64_t ps)
{
    if (ps % 1000)
        orr_buf_print(b, "%" PRIu64 "ps", ps);
    else if (ps % 1000000 || ps == 0)
        orr_buf_print(b, "%" PRIu64 "ns", ps / 1000);
    else
        orr_buf_print(b, "%" PRIu64 "us", ps / 1000000);
}

static void add_real(orr_buf *b, double v)
{
    char text[ORR_NUMBER_ROOM];
    if (v == 0)
        orr_buf_byte(b, '0');
    else
        orr_buf_add(b, text, orr_double_text(v, text));
}

/* ---- the reference's, and SimAI's ---- */

/* is_nv below 0: all of them. */
static void write_switches(orr_buf *b, const orr__cabling *c, const orr__topology *t, int is_nv)
{
    for (uint32_t i = c->hosts; i < c->nodes; i++) {
        if (is_nv >= 0 && orr__topology_is_nvswitch(t, i) != (is_nv == 1))
            continue;
        if (b->len && b->ptr[b->len - 1] != '\n')
            orr_buf_byte(b, ' ');
        orr_buf_u64(b, i);
    }
}

static uint32_t count_nvswitches(const orr__cabling *c, const orr__topology *t)
{
    uint32_t n = 0;
    for (uint32_t i = c->hosts; i < c->nodes; i++)
        n += orr__topology_is_nvswitch(t, i);
    return n;
}

static void write_cables(orr_output *o, orr_buf *b, const orr__cabling *c)
{
    for (size_t i = 0; i < c->cable_count; i++) {
        const orr__cable *l = &c->cables[i];
        orr_buf_print(b, "%u %u ", l->a, l->b);
        rate_words(b, l->rate, true);
        orr_buf_byte(b, ' ');
        delay_words(b, l->delay_ps);
        orr_buf_byte(b, ' ');
        add_real(b, l->error);
        orr_buf_byte(b, '\n');
        if (b->len > 1 << 16)
            orr_output_drain(o, b);
    }
}

static void write_ns3(orr_output *o, orr_buf *b, const orr__cabling *c, const orr__topology *t)
{
    orr_buf_print(b, "%u %u %zu\n", c->nodes, c->nodes - c->hosts, c->cable_count);
    write_switches(b, c, t, -1);
    orr_buf_byte(b, '\n');
    write_cables(o, b, c);
}

static void write_simai(
    orr_output *o, orr_buf *b, const orr__cabling *c, const orr__topology *t, const char *gpu)
{
    const uint32_t nv = count_nvswitches(c, t);
    orr_buf_print(b, "%u %u %u %u %zu %s\n", c->nodes, t->gpus_per_server ? t->gpus_per_server : 1,
                  nv, c->nodes - c->hosts - nv, c->cable_count, gpu ? gpu : "H100");
    write_switches(b, c, t, 1);
    write_switches(b, c, t, 0);
    orr_buf_byte(b, '\n');
    write_cables(o, b, c);
}

/* ---- YAML ---- */

/* Splits a name into letters and a number; false: it does not end in a countable number. */
static bool split_name(const char *name, size_t *letters, uint64_t *number)
{
    const size_t len = strlen(name);
    size_t at = len;
    while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9')
        at--;
    *letters = at;
    return at < len && (name[at] != '0' || at + 1 == len) &&
           orr_text_u64((orr_str){name + at, len - at}, number);
}

static bool is_next(const orr__topology *t, uint32_t device, const char *before, uint64_t number)
{
    char name[NET_DEVICE_NAME];
    size_t letters, own;
    uint64_t n;
    orr__topology_name(t, device, name);
    return split_name(before, &letters, &n) && split_name(name, &own, &n) && own == letters &&
           memcmp(name, before, own) == 0 && n == number;
}

/* How many consecutive devices from this one on, at most `most`, one text can name. */
static uint32_t run_of(const orr__topology *t, uint32_t device, uint32_t most)
{
    char name[NET_DEVICE_NAME];
    size_t letters;
    uint64_t number = 0;
    uint32_t n = 1;
    const bool is_rank = device < t->ranks;
    orr__topology_name(t, device, name);
    if ((is_rank && t->rank_names) || (!is_rank && !split_name(name, &letters, &number)))
        return 1;
    while (n < most && (is_rank ? device + n < t->ranks : is_next(t, device + n, name, number + n)))
        n++;
    return n;
}

static void write_devices(orr_buf *b, const orr__topology *t, uint32_t device, uint32_t count)
{
    char name[NET_DEVICE_NAME];
    size_t letters;
    uint64_t number;
    orr__topology_name(t, device, name);
    if (count == 1)
        orr_buf_print(b, "\"%s\"", name);
    else if (device < t->ranks)
        orr_buf_print(b, "\"%u-%u\"", device, device + count - 1);
    else if (split_name(name, &letters, &number))
        orr_buf_print(b, "\"%.*s[%" PRIu64 "-%" PRIu64 "]\"", (int)letters, name, number,
                      number + count - 1);
}

static void write_list(orr_buf *b, const orr__topology *t, uint32_t from, uint32_t to)
{
    orr_buf_byte(b, '[');
    for (uint32_t d = from, n; d < to; d += n) {
        n = run_of(t, d, to - d);
        orr_buf_text(b, d > from ? ", " : "");
        write_devices(b, t, d, n);
    }
    orr_buf_text(b, "]\n");
}

static bool is_alike(const orr__cable *x, const orr__cable *y)
{
    return x->b == y->b && x->rate == y->rate && x->delay_ps == y->delay_ps && x->cost == y->cost &&
           x->error == y->error;
}

/* How many cables from the i-th on are equal except for their start, which counts up. */
static uint32_t run_of_cables(const orr__cabling *c, const orr__topology *t, size_t i)
{
    const orr__cable *first = &c->cables[i];
    uint32_t n = 1;
    while (i + n < c->cable_count && c->cables[i + n].a == first->a + n &&
           is_alike(first, &c->cables[i + n]))
        n++;
    return run_of(t, first->a, n);
}

static void write_links(orr_output *o, orr_buf *b, const orr__cabling *c, const orr__topology *t)
{
    orr_buf_text(b, "links:\n");
    for (size_t i = 0, n; i < c->cable_count; i += n) {
        const orr__cable *l = &c->cables[i];
        n = run_of_cables(c, t, i);
        orr_buf_text(b, "  - {from: ");
        write_devices(b, t, l->a, (uint32_t)n);
        orr_buf_text(b, ", to: ");
        write_devices(b, t, l->b, 1);
        orr_buf_text(b, ", bandwidth: ");
        rate_words(b, l->rate, false);
        orr_buf_text(b, ", latency: ");
        delay_words(b, l->delay_ps);
        if (l->cost > 1)
            orr_buf_print(b, ", cost: %u", l->cost);
        if (l->error > 0) {
            orr_buf_text(b, ", loss: ");
            add_real(b, l->error);
        }
        orr_buf_text(b, "}\n");
        if (b->len > 1 << 16)
            orr_output_drain(o, b);
    }
}

static void write_yaml(orr_output *o, orr_buf *b, const orr__cabling *c, const orr__topology *t)
{
    static const char *const routings[] = {"ecmp", "ecmp-pair", "first"};
    if (t->description) {
        orr_buf_add(b, t->description, t->description_len);
        return;
    }
    orr_buf_text(b, "format: orrery-topology\nversion: 1\nranks: ");
    if (t->rank_names)
        write_list(b, t, 0, t->ranks);
    else
        orr_buf_print(b, "%u\n", t->ranks);
    if (c->nodes > c->hosts) {
        orr_buf_text(b, "switches: ");
        write_list(b, t, c->hosts, c->nodes);
    }
    orr_buf_print(b, "routing: %s\nranks_forward: %s\n", routings[t->routing],
                  t->ranks_forward ? "true" : "false");
    if (t->dims > 1) {
        orr_buf_text(b, "dims: [");
        for (uint32_t k = 0; k < t->dims; k++)
            orr_buf_print(b, "%s%u", k ? ", " : "", t->npus[k]);
        orr_buf_text(b, "]\n");
    }
    write_links(o, b, c, t);
}

/* ---- files ---- */

static orr_code write_file(const orr__topology *t,
                           const orr__cabling *c,
                           orr_topology_format format,
                           const char *gpu,
                           const char *path,
                           orr_error *err)
{
    orr_buf b = {0};
    orr_output *o;
    orr_code code = format == ORR_TOPOLOGY_HTSIM ? orr__htsim_topo_words(c, &b, err) : ORR_OK;
    if (!code)
        code = orr_output_open(path, &o, err);
    if (code) {
        orr_buf_fini(&b);
        return code;
    }
    if (format == ORR_TOPOLOGY_NS3)
        write_ns3(o, &b, c, t);
    else if (format == ORR_TOPOLOGY_SIMAI)
        write_simai(o, &b, c, t, gpu);
    else if (format == ORR_TOPOLOGY_YAML)
        write_yaml(o, &b, c, t);
    const bool has_failed = b.failed;
    orr_output_drain(o, &b);
    orr_buf_fini(&b);
    if (has_failed) {
        orr_output_discard(o);
        return orr_no_memory(err);
    }
    return orr_output_commit(&o, err);
}

orr_code orr_topology_write(const orr_topology *t,
                            orr_topology_format format,
                            const char *gpu,
                            const char *path,
                            orr_error *err)
{
    orr__cabling c = {0};
    orr_code code = orr__cabling_of_topology(&c, t, err);
    if (!code)
        code = write_file(t, &c, format, gpu, path, err);
    orr__cabling_fini(&c);
    return code;
}
