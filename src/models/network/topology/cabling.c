/* SPDX-License-Identifier: Apache-2.0 */
/* cabling.c - nodes and cables, and the topology file of the ns-3 reference (packet-network.md 4.1;
 * SimAI's dialect: 13).
 *
 * The counts in the header are trusted only as far as the file's length permits: memory is
 * allocated after the words have been read, except for one byte per node, and no more nodes are
 * accepted than links and switches account for. */
#include "topology.h"

#include "models/network/words.h"

enum { MOST_NODES = 1 << 22 };

void orr__cabling_fini(orr__cabling *c)
{
    orr_free(c->kinds);
    orr_free(c->cables);
    *c = (orr__cabling){0};
}

typedef struct head {
    uint64_t nodes, switches, nvswitches, links, per_server;
    bool is_simai;
} head;

/* SimAI's first line has six words, the last of which is not a number (packet-network.md 13). */
static bool has_six_words(const orr__words *from)
{
    orr__words w = *from;
    orr_str s;
    unsigned count = 0;
    while (orr__words_next(&w, &s) && w.word_line == 1)
        count++;
    return count >= 6;
}

static orr_code read_head(orr__words *w, head *h, orr_error *err)
{
    orr_str s;
    orr_code code = ORR_OK;
    h->is_simai = has_six_words(w);
    code = orr__words_u64(w, "the number of nodes", 2, MOST_NODES, &h->nodes, err);
    if (!code && h->is_simai)
        code =
            orr__words_u64(w, "the number of GPUs per server", 1, MOST_NODES, &h->per_server, err);
    if (!code && h->is_simai)
        code = orr__words_u64(w, "the number of NVSwitches", 0, h->nodes, &h->nvswitches, err);
    if (!code)
        code = orr__words_u64(w, "the number of switches", 0, h->nodes, &h->switches, err);
    if (!code)
        code = orr__words_u64(w, "the number of links", 1, UINT32_MAX, &h->links, err);
    if (!code && h->is_simai)
        code = orr__words_need(w, "the type of the GPUs", &s, err);
    const orr_where where = orr__words_where(w);
    if (!code && h->nvswitches + h->switches > h->nodes)
        code = orr_fail(err, ORR_EINPUT, &where, "there are more switches than nodes");
    if (!code && h->nodes > h->links + h->switches + h->nvswitches + 1)
        code = orr_fail(err, ORR_EINPUT, &where, "%llu links cannot join %llu nodes",
                        (unsigned long long)h->links, (unsigned long long)h->nodes);
    /* "0 1 1 1 0" and a newline: no link has fewer bytes */
    if (!code && h->links > (uint64_t)(w->end - w->at) / 9)
        code = orr_fail(err, ORR_EINPUT, &where, "the file is too short for %llu links",
                        (unsigned long long)h->links);
    return code;
}

static orr_code read_switches(
    orr__cabling *c, orr__words *w, uint64_t count, uint8_t kind, orr_error *err)
{
    uint64_t id = 0;
    orr_code code = ORR_OK;
    for (uint64_t i = 0; i < count && !code; i++) {
        code = orr__words_u64(w, "a switch", 0, c->nodes - 1, &id, err);
        if (code)
            return code;
        const orr_where where = orr__words_where(w);
        if (c->kinds[id] != ORR__HOST)
            code = orr_fail(err, ORR_EINPUT, &where, "duplicate switch %u", (unsigned)id);
        c->kinds[id] = kind;
        c->hosts--;
    }
    return code;
}

static orr_code read_cable(orr__cabling *c, orr__words *w, orr_error *err)
{
    orr__cable l = {0};
    uint64_t a = 0, b = 0;
    orr_code code = orr__words_u64(w, "a node", 0, c->nodes - 1, &a, err);
    l.line = w->word_line;
    if (!code)
        code = orr__words_u64(w, "a node", 0, c->nodes - 1, &b, err);
    const orr_where where = orr__words_where(w);
    if (!code && a == b)
        code = orr_fail(err, ORR_EINPUT, &where, "a link from node %u to itself", (unsigned)a);
    if (!code)
        code = orr__words_rate(w, "the rate of a link", &l.rate, err);
    if (!code)
        code = orr__words_delay(w, "the delay of a link", &l.delay_ps, err);
    if (!code)
        code = orr__words_real(w, "a probability of loss", 0, 1, &l.error, err);
    if (code)
        return code;
    if (!orr_grow(&c->cables, &c->cable_room, c->cable_count + 1))
        return orr_no_memory(err);
    l.a = (uint32_t)a;
    l.b = (uint32_t)b;
    c->cables[c->cable_count++] = l;
    return ORR_OK;
}

orr_code orr__cabling_check_ports(const orr__cabling *c,
                                  uint32_t most,
                                  const char *path,
                                  orr_error *err)
{
    const orr_where w = orr_where_byte(path, ORR_NO_BYTE);
    uint32_t *ports = orr_alloc(c->nodes, sizeof *ports);
    orr_code code = ports ? ORR_OK : orr_no_memory(err);
    for (size_t i = 0; i < c->cable_count && !code; i++) {
        ports[c->cables[i].a]++;
        ports[c->cables[i].b]++;
    }
    for (uint32_t i = 0; i < c->nodes && !code; i++)
        if (c->kinds[i] == ORR__HOST && ports[i] == 0)
            code = orr_fail(err, ORR_EINPUT, &w, "host %u has no link", i);
        else if (c->kinds[i] != ORR__HOST && ports[i] > most)
            code = orr_fail(err, ORR_EINPUT, &w, "switch %u has %u links; the most is %u", i,
                            ports[i], most);
    orr_free(ports);
    return code;
}

orr_where orr__cable_where(const orr__cable *l, const char *path)
{
    return l->line ? orr_where_line(path, l->line, 1) : orr_where_byte(path, ORR_NO_BYTE);
}

orr_code orr__cabling_parse(orr__cabling *c, orr_span bytes, const char *path, orr_error *err)
{
    orr__words w;
    head h = {0};
    orr__words_init(&w, bytes, path);
    orr_code code = read_head(&w, &h, err);
    if (code)
        return code;
    c->nodes = c->hosts = (uint32_t)h.nodes;
    c->gpus_per_server = (uint32_t)h.per_server;
    if (!(c->kinds = orr_alloc(c->nodes, 1)))
        return orr_no_memory(err);
    code = read_switches(c, &w, h.nvswitches, ORR__NVSWITCH, err);
    if (!code)
        code = read_switches(c, &w, h.switches, ORR__SWITCH, err);
    for (uint64_t i = 0; i < h.links && !code; i++)
        code = read_cable(c, &w, err);
    c->surplus = code ? 0 : orr__words_surplus(&w);
    const orr_where where = orr_where_byte(path, ORR_NO_BYTE);
    if (!code && c->hosts < 2)
        code = orr_fail(err, ORR_EINPUT, &where, "fewer than two hosts");
    return code ? code : orr__cabling_check_ports(c, UINT32_MAX, path, err);
}
