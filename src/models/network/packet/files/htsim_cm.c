/* SPDX-License-Identifier: Apache-2.0 */
/* htsim_cm.c - htsim's .cm files, line by line.
 *
 *     Nodes 16
 *     Connections 2
 *     Triggers 1
 *     0->1 id 1 start 0 size 1000000 recv_done_trigger 7
 *     1->2 id 2 trigger 7 size 1000000
 *     trigger id 7 oneshot
 *
 * Triggers may be used before and after they are defined, so lines keep their ids until the end.
 * Errors that would stop htsim in the middle of a run - a oneshot fired twice, a barrier triggered
 * too often - are found here, with their lines. */
#include "models/network/packet/packet_files.h"

#include "base/memory/map.h"
#include "base/text/number.h"
#include "base/text/text.h"
#include "models/network/words.h"

#include <inttypes.h>

#define MOST_ID ((uint64_t)UINT32_MAX)

typedef struct reader {
    orr__htsim_cm *m;
    orr__words w;
    uint32_t hosts;
    bool has_nodes;
    uint64_t connections, triggers, failures; /* from the header */
    uint64_t defined;                         /* triggers */
    uint64_t head_line[3];                    /* of these three; 0: missing */
    orr_map *numbers;                         /* id of a trigger -> its number */
    orr_error *err;
} reader;

void orr__htsim_cm_fini(orr__htsim_cm *m)
{
    orr__flows_fini(&m->flows);
    orr_free(m->failures);
    *m = (orr__htsim_cm){0};
}

static orr_code refuse(const reader *r, orr_str s, const char *words)
{
    const orr_where where = orr__words_where(&r->w);
    return orr_fail(r->err, ORR_EINPUT, &where, "\"%.*s\" %s", (int)(s.len < 60 ? s.len : 60),
                    s.ptr, words);
}

/* The next word, if it is on this line. */
static bool next_on_line(reader *r, uint32_t line, orr_str *out)
{
    orr__words ahead = r->w;
    if (!orr__words_next(&ahead, out) || ahead.word_line != line)
        return false;
    r->w = ahead;
    return true;
}

static orr_code need_u64(
    reader *r, uint32_t line, const char *what, uint64_t min, uint64_t max, uint64_t *out)
{
    orr_str s;
    orr__words ahead = r->w;
    if (!orr__words_next(&ahead, &s) || ahead.word_line != line) {
        const orr_where where = orr__words_where(&r->w);
        return orr_fail(r->err, ORR_EINPUT, &where, "the line ends; expected %s", what);
    }
    return orr__words_u64(&r->w, what, min, max, out, r->err);
}

/* ---- triggers ---- */

/* 1 + the number of a trigger. */
static orr_code number_of(reader *r, uint64_t id, uint32_t *out)
{
    orr__flow_list *f = &r->m->flows;
    const uint32_t found = orr_map_find(r->numbers, id, 0);
    *out = found;
    if (found)
        return ORR_OK;
    if (!orr_grow(&f->triggers, &f->trigger_room, f->trigger_count + 1) ||
        !orr_map_put(r->numbers, id, (uint32_t)f->trigger_count + 1, NULL))
        return orr_no_memory(r->err);
    f->triggers[f->trigger_count++] = (orr__trigger){.id = id, .line = r->w.word_line};
    *out = (uint32_t)f->trigger_count;
    return ORR_OK;
}

static orr_code need_trigger(reader *r, uint32_t line, uint32_t *out)
{
    uint64_t id = 0;
    const orr_code code = need_u64(r, line, "the id of a trigger", 1, MOST_ID, &id);
    return code ? code : number_of(r, id, out);
}

static orr_code set_kind(reader *r, orr__trigger *t, orr_str word)
{
    static const char *const words[] = {"oneshot", "multishot", "barrier"};
    for (unsigned i = 0; i < 3; i++) {
        if (!orr_str_is(word, words[i]))
            continue;
        if (t->kind)
            return refuse(r, word, "is a second kind of this trigger");
        t->kind = (uint8_t)(i + 1);
        return ORR_OK;
    }
    return refuse(r, word, "is not id, count, oneshot, multishot or barrier");
}

static orr_code check_trigger(reader *r, uint32_t line, const orr__trigger *t)
{
    const orr_where where = orr_where_line(r->w.path, line, 1);
    if (!t->id)
        return orr_fail(r->err, ORR_EINPUT, &where, "a trigger without an id");
    if (!t->kind)
        return orr_fail(r->err, ORR_EINPUT, &where,
                        "trigger %" PRIu64 " is neither oneshot nor multishot nor barrier", t->id);
    if (t->kind == ORR__TRIGGER_BARRIER && !t->needs)
        return orr_fail(r->err, ORR_EINPUT, &where,
                        "trigger %" PRIu64 ": a barrier needs a count above 0", t->id);
    return ORR_OK;
}

static orr_code read_trigger(reader *r, uint32_t line)
{
    orr__trigger t = {0};
    orr_str word;
    uint64_t count = 0;
    uint32_t number;
    orr_code code = ORR_OK;
    while (!code && next_on_line(r, line, &word)) {
        if (orr_str_is(word, "id"))
            code = need_u64(r, line, "the id of a trigger", 1, MOST_ID, &t.id);
        else if (orr_str_is(word, "count"))
            code = need_u64(r, line, "a count", 1, UINT32_MAX - 1, &count);
        else
            code = set_kind(r, &t, word);
    }
    t.needs = (uint32_t)count;
    if (!code)
        code = check_trigger(r, line, &t);
    if (!code)
        code = number_of(r, t.id, &number);
    if (code)
        return code;
    orr__trigger *own = &r->m->flows.triggers[number - 1];
    const orr_where where = orr_where_line(r->w.path, line, 1);
    if (own->kind)
        return orr_fail(r->err, ORR_EINPUT, &where, "duplicate trigger %" PRIu64, t.id);
    own->kind = t.kind;
    own->needs = t.needs;
    own->line = line;
    r->defined++;
    return ORR_OK;
}

/* ---- connections ---- */

/* "3->12". */
static orr_code read_ends(reader *r, orr_str word, size_t arrow, orr__flow_line *l)
{
    uint64_t src, dst;
    if (!orr_text_u64((orr_str){word.ptr, arrow}, &src) ||
        !orr_text_u64((orr_str){word.ptr + arrow + 2, word.len - arrow - 2}, &dst))
        return refuse(r, word, "is not a connection, as 0->1");
    if (src >= r->hosts || dst >= r->hosts || src >= r->m->nodes || dst >= r->m->nodes) {
        const orr_where where = orr__words_where(&r->w);
        const uint64_t most = r->m->nodes < r->hosts ? r->m->nodes : r->hosts;
        return orr_fail(r->err, ORR_EINPUT, &where,
                        "there is no host %" PRIu64 ": hosts are 0 to %" PRIu64,
                        src >= most ? src : dst, most - 1);
    }
    if (src == dst)
        return refuse(r, word, "is a flow from a host to itself");
    l->src = (uint32_t)src;
    l->dst = (uint32_t)dst;
    return ORR_OK;
}

typedef struct connection {
    orr__flow_line l;
    orr__flow_triggers t;
    bool has_start, has_size;
} connection;

/* Ids, priorities and messages of a connection have no meaning here; they are parsed and
 * ignored. */
static orr_code read_idle(reader *r, uint32_t line, orr_str word)
{
    uint64_t unused;
    orr_str next;
    orr__words ahead = r->w;
    if (orr_str_is(word, "id"))
        return need_u64(r, line, "the id of a flow", 1, MOST_ID, &unused);
    if (orr_str_is(word, "prio"))
        return need_u64(r, line, "a priority", 0, UINT32_MAX, &unused);
    if (orr_str_is(word, "addon"))
        return ORR_OK;
    if (!orr_str_is(word, "msg"))
        return refuse(r, word, "is not a keyword of a connection");
    const bool has_number = orr__words_next(&ahead, &next) && ahead.word_line == line &&
                            next.ptr[0] >= '0' && next.ptr[0] <= '9';
    return has_number ? need_u64(r, line, "the id of a message", 1, MOST_ID, &unused) : ORR_OK;
}

static orr_code read_start(reader *r, uint32_t line, connection *c)
{
    double ps = 0;
    orr_str s;
    orr__words ahead = r->w;
    if (!orr__words_next(&ahead, &s) || ahead.word_line != line)
        return refuse(r, (orr_str){"start", 5},
                      "stands at the end of the line, without a time in ps");
    c->has_start = true;
    const orr_code code = orr__words_real(&r->w, "a start time in ps", 0, 1e18, &ps, r->err);
    c->l.start_s = ps / 1e12;
    return code;
}

static orr_code read_connection_word(reader *r, uint32_t line, orr_str word, connection *c)
{
    if (orr_str_is(word, "start"))
        return read_start(r, line, c);
    if (orr_str_is(word, "size")) {
        c->has_size = true;
        return need_u64(r, line, "a number of bytes", 1, (uint64_t)1 << 50, &c->l.bytes);
    }
    if (orr_str_is(word, "trigger"))
        return need_trigger(r, line, &c->t.starts_at);
    if (orr_str_is(word, "send_done_trigger"))
        return need_trigger(r, line, &c->t.sent);
    if (orr_str_is(word, "recv_done_trigger"))
        return need_trigger(r, line, &c->t.arrived);
    return read_idle(r, line, word);
}

static orr_code check_connection(reader *r, uint32_t line, const connection *c)
{
    const orr_where where = orr_where_line(r->w.path, line, 1);
    const char *words = NULL;
    if (!c->has_start && !c->t.starts_at)
        words = "this flow has neither start nor trigger";
    else if (c->has_start && c->t.starts_at)
        words = "this flow has both start and trigger";
    else if (!c->has_size)
        words = "this flow has no size: it would never end";
    return words ? orr_fail(r->err, ORR_EINPUT, &where, "%s", words) : ORR_OK;
}

static orr_code read_connection(reader *r, uint32_t line, orr_str word, size_t arrow)
{
    orr__flow_list *f = &r->m->flows;
    connection c = {.l = {.line = line, .class = 3, .port = 100}};
    orr_code code = read_ends(r, word, arrow, &c.l);
    while (!code && next_on_line(r, line, &word))
        code = read_connection_word(r, line, word, &c);
    if (!code)
        code = check_connection(r, line, &c);
    if (code)
        return code;
    if (f->count >= UINT32_MAX - 1 || !orr_grow(&f->lines, &f->room, f->count + 1) ||
        !orr_grow(&f->by_line, &f->by_line_room, f->count + 1))
        return orr_no_memory(r->err);
    if (c.t.starts_at)
        c.l.start_s = -1;
    f->by_line[f->count] = c.t;
    f->lines[f->count++] = c.l;
    return ORR_OK;
}

/* ---- failures ---- */

static orr_code read_failure_word(reader *r, uint32_t line, orr_str word, orr__htsim_failure *f)
{
    if (orr_str_is(word, "switch_id"))
        return need_u64(r, line, "the number of a switch", 0, MOST_ID, &f->agg);
    if (orr_str_is(word, "link_id"))
        return need_u64(r, line, "the number of a link", 0, MOST_ID, &f->link);
    if (!orr_str_is(word, "switch_type"))
        return refuse(r, word, "is not switch_type, switch_id or link_id");
    if (!next_on_line(r, line, &word) || !orr_str_is(word, "AGG"))
        return refuse(r, word, "is not AGG: links fail between these switches and the core");
    return ORR_OK;
}

static orr_code read_failure(reader *r, uint32_t line)
{
    orr__htsim_cm *m = r->m;
    orr__htsim_failure f = {.agg = UINT64_MAX, .link = UINT64_MAX};
    orr_str word;
    orr_code code = ORR_OK;
    while (!code && next_on_line(r, line, &word))
        code = read_failure_word(r, line, word, &f);
    f.where = orr_where_line(r->w.path, line, 1);
    if (!code && (f.agg == UINT64_MAX || f.link == UINT64_MAX))
        code = orr_fail(r->err, ORR_EINPUT, &f.where, "a failure needs switch_id and link_id");
    if (code)
        return code;
    if (!orr_grow(&m->failures, &m->failure_room, m->failure_count + 1))
        return orr_no_memory(r->err);
    m->failures[m->failure_count++] = f;
    return ORR_OK;
}

/* ---- lines ---- */

static orr_code read_count(reader *r, uint32_t line, unsigned which, uint64_t *out)
{
    if (r->head_line[which]) {
        const orr_where where = orr__words_where(&r->w);
        return orr_fail(r->err, ORR_EINPUT, &where,
                        "this number was already given in line %" PRIu64, r->head_line[which]);
    }
    r->head_line[which] = line;
    return need_u64(r, line, "a number", 0, UINT32_MAX, out);
}

static orr_code read_nodes(reader *r, uint32_t line)
{
    const orr_where where = orr__words_where(&r->w);
    if (r->has_nodes)
        return orr_fail(r->err, ORR_EINPUT, &where, "duplicate Nodes");
    r->has_nodes = true;
    const orr_code code = need_u64(r, line, "the number of nodes", 1, UINT32_MAX, &r->m->nodes);
    if (!code && r->m->nodes > r->hosts)
        return orr_fail(r->err, ORR_EINPUT, &where, "Nodes %" PRIu64 ": the topology has %u hosts",
                        r->m->nodes, r->hosts);
    return code;
}

static size_t find_arrow(orr_str word)
{
    for (size_t i = 0; i + 1 < word.len; i++)
        if (word.ptr[i] == '-' && word.ptr[i + 1] == '>')
            return i;
    return SIZE_MAX;
}

static orr_code read_line(reader *r, orr_str word)
{
    const uint32_t line = r->w.word_line;
    orr_str more;
    orr_code code;
    if (orr_str_is(word, "Nodes"))
        code = read_nodes(r, line);
    else if (orr_str_is(word, "Connections"))
        code = read_count(r, line, 0, &r->connections);
    else if (orr_str_is(word, "Triggers"))
        code = read_count(r, line, 1, &r->triggers);
    else if (orr_str_is(word, "Failures"))
        code = read_count(r, line, 2, &r->failures);
    else if (orr_str_is(word, "trigger"))
        code = read_trigger(r, line);
    else if (orr_str_is(word, "failure"))
        code = read_failure(r, line);
    else if (find_arrow(word) == SIZE_MAX)
        return refuse(r, word, "does not begin a line of a connection matrix");
    else if (!r->has_nodes)
        return refuse(r, word, "appears before Nodes");
    else
        code = read_connection(r, line, word, find_arrow(word));
    if (!code && next_on_line(r, line, &more))
        code = refuse(r, more, "is an extra word");
    return code;
}

/* ---- everything ---- */

static orr_code check_count(
    reader *r, unsigned which, const char *name, uint64_t said, uint64_t found)
{
    const orr_where file = orr_where_byte(r->w.path, ORR_NO_BYTE);
    const orr_where head = orr_where_line(r->w.path, (uint32_t)r->head_line[which], 1);
    return said == found ? ORR_OK
                         : orr_fail(r->err, ORR_EINPUT, r->head_line[which] ? &head : &file,
                                    "%s %" PRIu64 ", but there are %" PRIu64, name, said, found);
}

static orr_code check_use(reader *r, const orr__trigger *t)
{
    const orr_where where = orr_where_line(r->w.path, t->line, 1);
    if (!t->kind)
        return orr_fail(r->err, ORR_EINPUT, &where, "trigger %" PRIu64 " is used but not defined",
                        t->id);
    if (t->kind == ORR__TRIGGER_ONESHOT && t->told > 1)
        return orr_fail(r->err, ORR_EINPUT, &where,
                        "trigger %" PRIu64 " is a oneshot, but %u flows fire it", t->id, t->told);
    if (t->kind == ORR__TRIGGER_BARRIER && t->told > t->needs)
        return orr_fail(r->err, ORR_EINPUT, &where,
                        "trigger %" PRIu64 " is a barrier for %u flows, but %u reach it", t->id,
                        t->needs, t->told);
    return ORR_OK;
}

/* The flows of each trigger, contiguous and in file order. */
static orr_code list_targets(reader *r)
{
    orr__flow_list *f = &r->m->flows;
    uint32_t at = 0;
    f->targets = orr_alloc(f->count + 1, sizeof *f->targets);
    if (!f->targets)
        return orr_no_memory(r->err);
    for (size_t i = 0; i < f->count; i++) {
        const orr__flow_triggers *t = &f->by_line[i];
        if (t->starts_at)
            f->triggers[t->starts_at - 1].targets++;
        if (t->sent)
            f->triggers[t->sent - 1].told++;
        if (t->arrived)
            f->triggers[t->arrived - 1].told++;
    }
    for (size_t i = 0; i < f->trigger_count; i++) {
        f->triggers[i].first = at;
        at += f->triggers[i].targets;
        f->triggers[i].targets = 0;
    }
    for (size_t i = 0; i < f->count; i++) {
        if (!f->by_line[i].starts_at)
            continue;
        orr__trigger *t = &f->triggers[f->by_line[i].starts_at - 1];
        f->targets[t->first + t->targets++] = (uint32_t)i;
    }
    return ORR_OK;
}

static orr_code finish(reader *r)
{
    const orr_where file = orr_where_byte(r->w.path, ORR_NO_BYTE);
    const orr__flow_list *f = &r->m->flows;
    orr_code code = ORR_OK;
    if (!r->has_nodes)
        return orr_fail(r->err, ORR_EINPUT, &file, "the line Nodes is missing");
    code = check_count(r, 0, "Connections", r->connections, f->count);
    if (!code)
        code = check_count(r, 1, "Triggers", r->triggers, r->defined);
    if (!code)
        code = check_count(r, 2, "Failures", r->failures, r->m->failure_count);
    if (!code)
        code = list_targets(r);
    for (size_t i = 0; i < f->trigger_count && !code; i++)
        code = check_use(r, &f->triggers[i]);
    return code;
}

orr_code orr__htsim_cm_parse(
    orr__htsim_cm *m, uint32_t hosts, orr_span bytes, const char *path, orr_error *err)
{
    reader r = {.m = m, .hosts = hosts, .err = err, .numbers = orr_map_create(16)};
    orr_str word;
    orr_code code = r.numbers ? ORR_OK : orr_no_memory(err);
    *m = (orr__htsim_cm){.flows.path = path};
    orr__words_init(&r.w, bytes, path);
    while (!code && orr__words_next(&r.w, &word)) {
        if (word.ptr[0] == '#')
            orr__words_skip_line(&r.w);
        else
            code = read_line(&r, word);
    }
    if (!code)
        code = finish(&r);
    orr_map_destroy(r.numbers);
    if (code)
        orr__htsim_cm_fini(m);
    return code;
}

bool orr__htsim_is_cm(orr_span bytes)
{
    static const char *const words[] = {"Nodes",    "Connections", "Triggers",
                                        "Failures", "trigger",     "failure"};
    orr__words w;
    orr_str word = {"", 0};
    orr__words_init(&w, bytes, "");
    while (orr__words_next(&w, &word) && word.ptr[0] == '#')
        orr__words_skip_line(&w);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (orr_str_is(word, words[i]))
            return true;
    return find_arrow(word) != SIZE_MAX || (word.len && word.ptr[0] == '#');
}
