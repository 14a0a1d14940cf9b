/* SPDX-License-Identifier: Apache-2.0 */
/* topology_write.c - topologies into files: the ns-3 back end's, SimAI's, and ours in YAML.
 *
 * All are written from cables.  YAML says a run of ranks, or of switches, with cables to the same
 * device in one line, so a file stays small where its network is regular. */
#include "topology_kinds.h"

#include "base/io/output.h"
#include "base/text/number.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- units that lose nothing ---- */

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

/* A name as letters and the number behind them; false: it does not end in a number that can be
 * counted. */
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

/* How many of the devices from this one on, at most `most`, one text can name. */
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

/* How many cables from the i-th on are alike but for where they begin, which counts up. */
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
