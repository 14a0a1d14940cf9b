/* SPDX-License-Identifier: Apache-2.0 */
/* issue_log_read.c - lines "issue,X=rank,X=cycle,X=node,X=name" and "callback,...", matched by rank
 * and node.
 *
 *     [workload] [debug] issue,sys->id=0, tick=5, node->id=3, node->name=f(x, y=2), node->type=4
 *     `-- skipped ------'      rank       cycle   node        name: to the end,     optional
 *
 * The old program accepts any line that contains one of the two words, and truncates the name at
 * the first comma or second equals sign (chakra.md 9); by its rules so do we.  A node may be issued
 * again after it has completed. Names are stored and classified once.  Cost: linear in the bytes;
 * 48 bytes per node beside its name. */
#include "issue_log_impl.h"

#include "base/io/input.h"
#include "base/memory/map.h"
#include "base/short_forms.h"
#include "base/text/number.h"

#include <inttypes.h>

enum { SHOWN = 60, FIELDS = 5 };
/* Up to here differences are exact as doubles, which chakra_timeline_visualizer uses. */
#define MOST_CYCLES ((int64_t)1 << 52)

typedef struct name_kind {
    uint8_t kind, span;
    bool is_known;
} name_kind;

typedef struct reader {
    orr_issue_log *log;
    orr_issue_log_options opt;
    const orr_rules_issue_log *rules;
    const char *path;
    const char *begin, *end; /* of the line, without blanks at its ends */
    const char *line_start;
    uint32_t line;
    orr_map *slots;    /* rank -> place in waiting */
    orr_map **waiting; /* node -> issue that has not come back */
    size_t slot_count, slot_room;
    name_kind *kinds; /* by name */
    size_t kind_room;
} reader;

typedef struct event {
    bool is_callback;
    int64_t cycle, node;
    uint32_t rank;
    orr_str name;
    uint64_t type; /* Chakra's, if the line has one; else 0 */
    const char *rank_at, *cycle_at, *node_at;
} event;

/* ---- places ---- */

static orr_where place_of(const reader *r, const char *p)
{
    const size_t n = (size_t)(p - r->line_start);
    return orr_where_line(r->path, r->line, n < UINT32_MAX ? (uint32_t)n + 1 : UINT32_MAX);
}

/* ---- classification ---- */

/* The order of the tests is that of chakra_timeline_visualizer. */
static name_kind kind_by_name(orr_str s)
{
    const bool is_memory = orr_str_has(s, "MEM_LOAD_NODE") || orr_str_has(s, "MEM_STORE_NODE");
    if (is_memory && orr_str_has(s, "LOCAL_MEMORY"))
        return (name_kind){ISSUE_LOCAL_MEMORY, ORR_SPAN_MEMORY, true};
    if (is_memory && orr_str_has(s, "REMOTE_MEMORY"))
        return (name_kind){ISSUE_REMOTE_MEMORY, ORR_SPAN_MEMORY, true};
    if (orr_str_has(s, "COMP_NODE"))
        return (name_kind){ISSUE_COMPUTE, ORR_SPAN_COMPUTE, true};
    if (orr_str_has(s, "COMM_SEND_NODE"))
        return (name_kind){ISSUE_COMMUNICATION, ORR_SPAN_SEND, true};
    if (orr_str_has(s, "COMM_RECV_NODE"))
        return (name_kind){ISSUE_COMMUNICATION, ORR_SPAN_RECEIVE, true};
    if (orr_str_has(s, "COMM_COLL_NODE"))
        return (name_kind){ISSUE_COMMUNICATION, ORR_SPAN_COLLECTIVE, true};
    return (name_kind){ISSUE_OTHER, ORR_SPAN_OTHER, true};
}

/* Chakra's node types (chakra.md 1); a simulator's loads and stores are of the remote memory. */
static name_kind kind_by_type(uint64_t type)
{
    static const name_kind kinds[] = {
        [2] = {ISSUE_REMOTE_MEMORY, ORR_SPAN_MEMORY, true},
        [3] = {ISSUE_REMOTE_MEMORY, ORR_SPAN_MEMORY, true},
        [4] = {ISSUE_COMPUTE, ORR_SPAN_COMPUTE, true},
        [5] = {ISSUE_COMMUNICATION, ORR_SPAN_SEND, true},
        [6] = {ISSUE_COMMUNICATION, ORR_SPAN_RECEIVE, true},
        [7] = {ISSUE_COMMUNICATION, ORR_SPAN_COLLECTIVE, true},
    };
    return type < sizeof kinds / sizeof *kinds ? kinds[type] : (name_kind){0};
}

static bool find_kind(reader *r, const event *e, uint32_t name, name_kind *out)
{
    *out = kind_by_type(e->type);
    if (out->is_known)
        return true;
    const size_t before = r->kind_room;
    if (!orr_grow(&r->kinds, &r->kind_room, (size_t)name + 1))
        return false;
    if (r->kind_room > before)
        memset(r->kinds + before, 0, (r->kind_room - before) * sizeof *r->kinds);
    if (!r->kinds[name].is_known)
        r->kinds[name] = kind_by_name(e->name);
    *out = r->kinds[name];
    return true;
}

/* ---- one line ---- */

static orr_str trimmed(const char *from, const char *to)
{
    while (from < to && orr_is_space(*from))
        from++;
    while (to > from && orr_is_space(to[-1]))
        to--;
    return (orr_str){from, (size_t)(to - from)};
}

/* "X=text" at p: the text up to a comma or the end, or to a second equals sign. */
static orr_code take_field(
    reader *r, const char **p, const char *what, orr_str *out, orr_error *err)
{
    if (*p >= r->end)
        return orr_fail(err, ORR_EINPUT, ORR_AT(place_of(r, *p)), "the line ends before the %s",
                        what);
    const char *from = *p + 1; /* after the comma */
    const char *stop = memchr(from, ',', (size_t)(r->end - from));
    stop = stop ? stop : r->end;
    const char *equals = memchr(from, '=', (size_t)(stop - from));
    if (!equals) {
        const orr_str found = {from, (size_t)(stop - from)};
        return orr_fail(err, ORR_EINPUT, ORR_AT(place_of(r, from)),
                        "the %s is to be written X=%s, found \"%.*s\"", what, what,
                        ORR_SHOWN(found, SHOWN));
    }
    const char *second = memchr(equals + 1, '=', (size_t)(stop - equals - 1));
    *out = (orr_str){equals + 1, (size_t)((second ? second : stop) - equals - 1)};
    *p = stop;
    return ORR_OK;
}

static orr_code take_number(reader *r,
                            const char **p,
                            const char *what,
                            int64_t min,
                            int64_t max,
                            int64_t *out,
                            const char **at,
                            orr_error *err)
{
    orr_str text;
    const orr_code code = take_field(r, p, what, &text, err);
    if (code)
        return code;
    text = trimmed(text.ptr, text.ptr + text.len);
    *at = text.ptr;
    if (orr_text_i64(text, out) && *out >= min && *out <= max)
        return ORR_OK;
    return orr_fail(err, ORR_EINPUT, ORR_AT(place_of(r, text.ptr)),
                    "%s \"%.*s\" is not a whole number from %" PRId64 " to %" PRId64, what,
                    ORR_SHOWN(text, SHOWN), min, max);
}

/* Ours: everything after the equals sign, except a type at the end. */
static void take_whole_name(const reader *r, event *e)
{
    static const char tail[] = "node->type=";
    orr_str name = trimmed(e->name.ptr, r->end);
    e->name = name;
    for (const char *p = name.ptr + name.len; p > name.ptr; p--) {
        if (p[-1] != ',')
            continue;
        const orr_str last = trimmed(p, r->end);
        const size_t n = sizeof tail - 1;
        if (last.len > n && memcmp(last.ptr, tail, n) == 0 &&
            orr_text_u64((orr_str){last.ptr + n, last.len - n}, &e->type))
            e->name = trimmed(name.ptr, p - 1);
        return;
    }
}

static orr_code check_name(const reader *r, orr_str name, orr_error *err)
{
    for (size_t i = 0; i < name.len;) {
        const size_t n = orr_utf8_length((const uint8_t *)name.ptr + i, name.len - i);
        if (n == 0)
            return orr_fail(err, ORR_EINPUT, ORR_AT(place_of(r, name.ptr + i)),
                            "the name is not UTF-8");
        i += n;
    }
    return ORR_OK;
}

/* p: the comma after the first word. */
static orr_code take_event(reader *r, const char *p, event *e, orr_error *err)
{
    const int64_t ranks = r->opt.ranks ? r->opt.ranks : ORR_ISSUE_LOG_RANKS;
    const int64_t first = r->rules->any_time ? -MOST_CYCLES : 0;
    int64_t rank;
    orr_code code;
    if ((code = take_number(r, &p, "rank", 0, ranks - 1, &rank, &e->rank_at, err)) ||
        (code = take_number(r, &p, "cycle", first, MOST_CYCLES, &e->cycle, &e->cycle_at, err)) ||
        (code = take_number(r, &p, "node", r->rules->any_time ? INT64_MIN : 0, INT64_MAX, &e->node,
                            &e->node_at, err)) ||
        (code = take_field(r, &p, "name", &e->name, err)))
        return code;
    e->rank = (uint32_t)rank;
    e->type = 0;
    if (!r->rules->short_names)
        take_whole_name(r, e);
    return check_name(r, e->name, err);
}

/* ---- matching ---- */

static orr_map *waiting_of(reader *r, uint32_t rank)
{
    const uint32_t slot = orr_map_find(r->slots, rank, UINT32_MAX);
    if (slot != UINT32_MAX)
        return r->waiting[slot];
    if (!orr_grow(&r->waiting, &r->slot_room, r->slot_count + 1))
        return NULL;
    orr_map *m = orr_map_create(16);
    if (!m)
        return NULL;
    r->waiting[r->slot_count] = m;
    return orr_map_put(r->slots, rank, (uint32_t)r->slot_count++, NULL) ? m : NULL;
}

static orr_code add_issue(reader *r, const event *e, orr_map *waiting, orr_error *err)
{
    orr_issue_log *log = r->log;
    const uint32_t old = orr_map_find(waiting, (uint64_t)e->node, UINT32_MAX);
    name_kind k;
    uint32_t name;
    if (old != UINT32_MAX && !r->rules->any_time)
        return orr_fail(err, ORR_EINPUT, ORR_AT(place_of(r, e->node_at)),
                        "node %" PRId64 " of rank %" PRIu32
                        " is issued again before it came back; first in line %" PRIu32,
                        e->node, e->rank, log->issues[old].line);
    if (log->count >= UINT32_MAX - 1)
        return orr_fail(err, ORR_EINPUT, ORR_AT(place_of(r, r->begin)),
                        "more than 4,294,967,294 nodes");
    if (!orr_intern_add(log->names, e->name, &name) || !find_kind(r, e, name, &k) ||
        !orr_grow(&log->issues, &log->room, log->count + 1) ||
        !orr_map_put(waiting, (uint64_t)e->node, (uint32_t)log->count, NULL))
        return orr_no_memory(err);
    log->issues[log->count++] = (issue_row){.issued = e->cycle,
                                            .ended = e->cycle,
                                            .node = e->node,
                                            .rank = e->rank,
                                            .name = name,
                                            .line = r->line,
                                            .kind = k.kind,
                                            .span = k.span};
    return ORR_OK;
}

static orr_code check_end(reader *r, const event *e, const issue_row *i, orr_error *err)
{
    if (r->rules->needs_kind && i->kind == ISSUE_OTHER) {
        const orr_str name = orr_intern_get(r->log->names, i->name);
        return orr_fail(
            err, ORR_EINPUT, ORR_AT(place_of(r, e->node_at)),
            "node %" PRId64 " is \"%.*s\" in line %" PRIu32
            ", which does not say what it is: COMP_NODE, COMM_SEND_NODE, COMM_RECV_NODE, "
            "COMM_COLL_NODE, or MEM_LOAD_NODE, MEM_STORE_NODE with LOCAL_MEMORY, "
            "REMOTE_MEMORY",
            e->node, ORR_SHOWN(name, SHOWN), i->line);
    }
    if (!r->rules->any_time && e->cycle < i->issued)
        return orr_fail(err, ORR_EINPUT, ORR_AT(place_of(r, e->cycle_at)),
                        "node %" PRId64 " comes back in cycle %" PRId64
                        ", before it was issued in cycle %" PRId64 " (line %" PRIu32 ")",
                        e->node, e->cycle, i->issued, i->line);
    return ORR_OK;
}

static orr_code add_callback(reader *r, const event *e, orr_map *waiting, orr_error *err)
{
    orr_issue_log *log = r->log;
    const uint32_t number = orr_map_find(waiting, (uint64_t)e->node, UINT32_MAX);
    if (number == UINT32_MAX)
        return orr_fail(err, ORR_EINPUT, ORR_AT(place_of(r, e->node_at)),
                        "node %" PRId64 " of rank %" PRIu32 " comes back but was not issued",
                        e->node, e->rank);
    const orr_code code = check_end(r, e, &log->issues[number], err);
    if (code)
        return code;
    if (!orr_grow(&log->done, &log->done_room, log->done_count + 1))
        return orr_no_memory(err);
    log->issues[number].ended = e->cycle;
    log->issues[number].is_done = true;
    log->done[log->done_count++] = number;
    (void)orr_map_remove(waiting, (uint64_t)e->node);
    return ORR_OK;
}

static orr_code add_event(reader *r, const event *e, orr_error *err)
{
    orr_map *waiting = waiting_of(r, e->rank);
    if (!waiting)
        return orr_no_memory(err);
    if (e->cycle > r->log->last)
        r->log->last = e->cycle;
    return e->is_callback ? add_callback(r, e, waiting, err) : add_issue(r, e, waiting, err);
}

/* ---- lines ---- */

static bool begins_with(const reader *r, const char *p, const char *word)
{
    const size_t n = strlen(word);
    return (size_t)(r->end - p) > n && memcmp(p, word, n) == 0 && p[n] == ',';
}

/* Ours: the line begins with one of the words, or one follows a logger's prefix. */
static const char *find_event(const reader *r)
{
    for (const char *p = r->begin; p < r->end; p++) {
        if ((*p == 'i' || *p == 'c') && (p == r->begin || p[-1] == ' ' || p[-1] == ']') &&
            (begins_with(r, p, "issue") || begins_with(r, p, "callback")))
            return p;
        if (*p == ',' || *p == '=')
            return NULL;
    }
    return NULL;
}

static const char *find_anywhere(const reader *r)
{
    const orr_str line = {r->begin, (size_t)(r->end - r->begin)};
    return orr_str_has(line, "issue") || orr_str_has(line, "callback") ? r->begin : NULL;
}

static orr_code read_line(reader *r, orr_error *err)
{
    const char *p = r->rules->any_line ? find_anywhere(r) : find_event(r);
    event e = {0};
    if (!p)
        return ORR_OK;
    const char *comma = memchr(p, ',', (size_t)(r->end - p));
    const orr_str word = {p, (size_t)((comma ? comma : r->end) - p)};
    e.is_callback = orr_str_is(word, "callback");
    if (!e.is_callback && !orr_str_is(word, "issue"))
        return orr_fail(err, ORR_EINPUT, ORR_AT(place_of(r, p)),
                        "\"%.*s\" is neither issue nor callback", ORR_SHOWN(word, SHOWN));
    const orr_code code = take_event(r, word.ptr + word.len, &e, err);
    return code ? code : add_event(r, &e, err);
}

static orr_code read_lines(reader *r, orr_span bytes, orr_error *err)
{
    const char *at = bytes.len ? (const char *)bytes.ptr : "", *end = at + bytes.len;
    orr_code code = ORR_OK;
    while (at < end && !code) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        const orr_str line = trimmed(at, stop);
        r->line_start = at;
        r->begin = line.ptr;
        r->end = line.ptr + line.len;
        r->line += r->line < UINT32_MAX;
        code = read_line(r, err);
        at = stop < end ? stop + 1 : end;
    }
    return code;
}

static orr_code check_any(const reader *r, orr_error *err)
{
    if (r->log->count || r->rules->any_line)
        return ORR_OK;
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_line(r->path, r->line ? r->line : 1, 1)),
                    "no line begins with \"issue,\" or \"callback,\": this is not a log of events");
}

static void reader_fini(reader *r)
{
    for (size_t i = 0; i < r->slot_count; i++)
        orr_map_destroy(r->waiting[i]);
    orr_free(r->waiting);
    orr_free(r->kinds);
    orr_map_destroy(r->slots);
}

static bool log_init(orr_issue_log *log, const char *path)
{
    log->arena = orr_arena_create();
    log->names = orr_intern_create();
    if (!log->arena || !log->names)
        return false;
    log->path = orr_arena_text(log->arena, orr_str_of(path));
    return log->path != NULL;
}

static const orr_rules_issue_log ours = {.any_line = false};

orr_code orr_issue_log_parse(orr_span bytes,
                             const char *path,
                             const orr_issue_log_options *opt,
                             orr_issue_log **out,
                             orr_error *err)
{
    reader r = {.opt = opt ? *opt : (orr_issue_log_options){0}, .path = path};
    *out = NULL;
    r.log = orr_alloc(1, sizeof *r.log);
    r.slots = orr_map_create(16);
    if (!r.log || !r.slots || !log_init(r.log, path)) {
        orr_map_destroy(r.slots);
        orr_issue_log_free(r.log);
        return orr_no_memory(err);
    }
    r.log->rules = r.opt.rules;
    r.rules = r.opt.rules ? r.opt.rules : &ours;
    orr_code code = read_lines(&r, bytes, err);
    if (!code)
        code = check_any(&r, err);
    if (code)
        orr_issue_log_free(r.log);
    else
        *out = r.log;
    reader_fini(&r);
    return code;
}

orr_code orr_issue_log_read(const char *path,
                            const orr_issue_log_options *opt,
                            orr_issue_log **out,
                            orr_error *err)
{
    orr_input *in;
    *out = NULL;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    code = orr_issue_log_parse(orr_input_bytes(in), path, opt, out, err);
    orr_input_close(in);
    return code;
}

void orr_issue_log_free(orr_issue_log *log)
{
    if (!log)
        return;
    orr_arena_destroy(log->arena);
    orr_intern_destroy(log->names);
    orr_free(log->issues);
    orr_free(log->done);
    orr_free(log);
}

size_t orr_issue_log_count(const orr_issue_log *log)
{
    return log->done_count;
}

size_t orr_issue_log_open_count(const orr_issue_log *log)
{
    return log->count - log->done_count;
}
