/* SPDX-License-Identifier: Apache-2.0 */
/* packet_files.c - topology, flow and trace files of the packet network.
 *
 * Counts stand at the head of each file and are believed only as far as the bytes behind them allow: nothing is
 * taken from memory before its words have been read, but for one byte a node, of which no more are accepted than
 * links and switches can account for. */
#include "packet_files.h"

#include "base/io/input.h"
#include "base/memory/map.h"
#include "base/text/text.h"
#include "packet_words.h"

enum { MOST_NODES = 1 << 22 };

void orr__cabling_fini(orr__cabling *c)
{
    orr_free(c->kinds);
    orr_free(c->cables);
    *c = (orr__cabling){0};
}

void orr__flows_fini(orr__flow_list *f)
{
    orr_free(f->lines);
    orr_free(f->by_line);
    orr_free(f->triggers);
    orr_free(f->targets);
    *f = (orr__flow_list){0};
}

/* ---- topology ---- */

typedef struct head {
    uint64_t nodes, switches, nvswitches, links, per_server;
    bool is_simai;
} head;

/* SimAI's first line has six words, the last of which is no number (section 13). */
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
        code = orr__words_u64(w, "the number of GPUs a server", 1, MOST_NODES, &h->per_server, err);
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
    /* "0 1 1 1 0" and its end of line: no link has fewer bytes */
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
            code = orr_fail(err, ORR_EINPUT, &where, "the switch %u is there twice", (unsigned)id);
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

static orr_code nothing_follows(orr__words *w, const char *what, orr_error *err)
{
    orr_str s;
    if (!orr__words_next(w, &s))
        return ORR_OK;
    const orr_where where = orr__words_where(w);
    return orr_fail(err, ORR_EINPUT, &where, "there are more %s than the head of the file says",
                    what);
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
    if (!code)
        code = nothing_follows(&w, "links", err);
    const orr_where where = orr_where_byte(path, ORR_NO_BYTE);
    if (!code && c->hosts < 2)
        code = orr_fail(err, ORR_EINPUT, &where, "fewer than two hosts");
    return code ? code : orr__cabling_check_ports(c, UINT32_MAX, path, err);
}

/* ---- flows ---- */

static orr_code read_host(
    const orr__cabling *c, orr__words *w, const char *what, uint32_t *out, orr_error *err)
{
    uint64_t id = 0;
    const orr_code code = orr__words_u64(w, what, 0, c->nodes - 1, &id, err);
    if (code)
        return code;
    const orr_where where = orr__words_where(w);
    if (c->kinds[id] != ORR__HOST)
        return orr_fail(err, ORR_EINPUT, &where, "node %u is a switch, not a host", (unsigned)id);
    *out = (uint32_t)id;
    return ORR_OK;
}

static orr_code read_flow(orr__flow_list *f, const orr__cabling *c, orr__words *w, orr_error *err)
{
    orr__flow_line l = {0};
    uint64_t class = 0, port = 0;
    orr_code code = read_host(c, w, "the source of a flow", &l.src, err);
    l.line = w->word_line;
    if (!code)
        code = read_host(c, w, "the destination of a flow", &l.dst, err);
    const orr_where where = orr__words_where(w);
    if (!code && l.src == l.dst)
        code = orr_fail(err, ORR_EINPUT, &where, "a flow from host %u to itself", l.src);
    if (!code)
        code = orr__words_u64(w, "a priority class", 1, 7, &class, err);
    if (!code)
        code = orr__words_u64(w, "a destination port", 0, 65535, &port, err);
    if (!code)
        code = orr__words_u64(w, "a number of bytes", 1, (uint64_t)1 << 50, &l.bytes, err);
    if (!code)
        code = orr__words_real(w, "a start time in seconds", 0, 1e6, &l.start_s, err);
    if (code)
        return code;
    if (!orr_grow(&f->lines, &f->room, f->count + 1))
        return orr_no_memory(err);
    l.class = (uint8_t) class;
    l.port = (uint16_t)port;
    f->lines[f->count++] = l;
    return ORR_OK;
}

orr_code orr__flows_parse(
    orr__flow_list *f, const orr__cabling *c, orr_span bytes, const char *path, orr_error *err)
{
    orr__words w;
    uint64_t count = 0;
    orr__words_init(&w, bytes, path);
    orr_code code = orr__words_u64(&w, "the number of flows", 0, UINT32_MAX - 1, &count, err);
    for (uint64_t i = 0; i < count && !code; i++)
        code = read_flow(f, c, &w, err);
    return code ? code : nothing_follows(&w, "flows", err);
}

/* ---- failures and repairs ---- */

void orr__link_events_fini(orr__link_events *e)
{
    orr_free(e->events);
    *e = (orr__link_events){0};
}

/* The pairs of nodes that are joined; NULL: out of memory. */
static orr_map *joined_pairs(const orr__cabling *c)
{
    orr_map *m = orr_map_create(c->cable_count);
    for (size_t i = 0; i < c->cable_count && m; i++)
        if (!orr_map_put(m, orr__pair_key(c->cables[i].a, c->cables[i].b), 1, NULL)) {
            orr_map_destroy(m);
            return NULL;
        }
    return m;
}

static orr_code read_link_event(orr__link_events *e,
                                const orr__cabling *c,
                                const orr_map *joined,
                                orr__words *w,
                                orr_error *err)
{
    orr__link_event one = {0};
    uint64_t a = 0, b = 0;
    orr_str word = {"", 0};
    orr_code code = orr__words_delay(w, "the time of a failure or repair", &one.at_ps, err);
    one.line = w->word_line;
    if (!code)
        code = orr__words_need(w, "down or up", &word, err);
    one.is_up = orr_str_is(word, "up");
    const orr_where at_word = orr__words_where(w);
    if (!code && !one.is_up && !orr_str_is(word, "down"))
        code = orr_fail(err, ORR_EINPUT, &at_word, "\"%.*s\" is not down or up",
                        (int)(word.len < 40 ? word.len : 40), word.ptr);
    if (!code)
        code = orr__words_u64(w, "a node", 0, c->nodes - 1, &a, err);
    if (!code)
        code = orr__words_u64(w, "a node", 0, c->nodes - 1, &b, err);
    if (code)
        return code;
    one.a = (uint32_t)a;
    one.b = (uint32_t)b;
    const orr_where where = orr__words_where(w);
    if (!orr_map_find(joined, orr__pair_key(one.a, one.b), 0))
        return orr_fail(err, ORR_EINPUT, &where, "there is no link between nodes %u and %u", one.a,
                        one.b);
    if (!orr_grow(&e->events, &e->room, e->count + 1))
        return orr_no_memory(err);
    e->events[e->count++] = one;
    return ORR_OK;
}

orr_code orr__link_events_parse(
    orr__link_events *e, const orr__cabling *c, orr_span bytes, const char *path, orr_error *err)
{
    orr__words w, ahead;
    orr_str s;
    orr_map *joined = joined_pairs(c);
    orr_code code = joined ? ORR_OK : orr_no_memory(err);
    orr__words_init(&w, bytes, path);
    for (ahead = w; !code && orr__words_next(&ahead, &s); ahead = w)
        code = read_link_event(e, c, joined, &w, err);
    orr_map_destroy(joined);
    return code;
}

orr_code orr__link_events_read(orr__link_events *e,
                               const orr__cabling *c,
                               const char *path,
                               orr_error *err)
{
    orr_input *in;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    code = orr__link_events_parse(e, c, orr_input_bytes(in), path, err);
    orr_input_close(in);
    return code;
}

orr_where orr__cable_where(const orr__cable *l, const char *path)
{
    return l->line ? orr_where_line(path, l->line, 1) : orr_where_byte(path, ORR_NO_BYTE);
}

orr_code orr__traced_read(
    const orr__cabling *c, const char *path, bool is_compat, bool *is_traced, orr_error *err)
{
    orr_input *in;
    orr__words w;
    uint64_t count = 0, id = 0;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    orr__words_init(&w, orr_input_bytes(in), path);
    code = orr__words_u64(&w, "the number of traced nodes", 0, c->nodes, &count, err);
    for (uint64_t i = 0; i < count && !code; i++) {
        code = orr__words_u64(&w, "a node", 0, c->nodes - 1, &id, err);
        if (!code)
            is_traced[id] = true;
    }
    if (!code && !is_compat)
        code = nothing_follows(&w, "nodes", err);
    orr_input_close(in);
    return code;
}
