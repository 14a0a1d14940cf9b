/* SPDX-License-Identifier: Apache-2.0 */
/* packet_files.c - flow files, trace files, and files of link failures (packet-network.md 4.2).
 *
 * A count in a file's header is never trusted for allocation: each record is read before memory is
 * allocated for it. */
#include "models/network/packet/packet_files.h"

#include "base/io/input.h"
#include "base/memory/map.h"
#include "base/text/text.h"
#include "models/network/words.h"

void orr__flows_fini(orr__flow_list *f)
{
    orr_free(f->lines);
    orr_free(f->by_line);
    orr_free(f->triggers);
    orr_free(f->targets);
    *f = (orr__flow_list){0};
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
    f->path = path;
    orr__words_init(&w, bytes, path);
    orr_code code = orr__words_u64(&w, "the number of flows", 0, UINT32_MAX - 1, &count, err);
    for (uint64_t i = 0; i < count && !code; i++)
        code = read_flow(f, c, &w, err);
    f->surplus = code ? 0 : orr__words_surplus(&w);
    return code;
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

orr_code orr__traced_read(
    const orr__cabling *c, const char *path, bool *is_traced, orr__traced *found, orr_error *err)
{
    orr_input *in;
    orr__words w;
    uint64_t count = 0, id = 0;
    *found = (orr__traced){0};
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    orr__words_init(&w, orr_input_bytes(in), path);
    code = orr__words_u64(&w, "the number of traced nodes", 0, UINT32_MAX, &count, err);
    for (uint64_t i = 0; i < count && !code; i++) {
        code = orr__words_u64(&w, "a node", 0, UINT32_MAX, &id, err);
        if (!code && id < c->nodes)
            is_traced[id] = true;
        else if (!code && found->absent++ == 0)
            found->absent_line = w.word_line;
    }
    found->surplus = code ? 0 : orr__words_surplus(&w);
    orr_input_close(in);
    return code;
}
