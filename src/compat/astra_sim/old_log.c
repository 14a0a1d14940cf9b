/* SPDX-License-Identifier: Apache-2.0 */
/* old_log.c - the lines of the old programs, for scripts that read them (astra-sim.md 10.1).
 *
 *     [2026-01-31 12:00:00.000] [workload] [info] sys[0] finished, 52776 cycles, exposed communication 52776 cycles.
 *
 * Each destination (standard output, a file) takes one pass over all lines of the run; the logging
 * file says which lines it gets.  Lines below info come from the starts and ends of nodes, which
 * are recorded only if such lines are wanted. */
#include "astra_sim.h"
#include "base/io/output.h"
#include "base/memory/map.h"
#include "base/text/number.h"
#include "compat/hash_order.h"
#include "config_logging.h"
#include "run/run_state.h"
#include "run/watch.h"

#include <inttypes.h>
#include <stdio.h>

/* A destination of lines: standard output, a default log or a sink of the logging file.
 *
 *     if (log_open_sink(&w, &logging, 2, &err)) ...
 *     if (log_begin(&w, ORR__LOG_WORKLOAD, ORR__LOG_INFO)) {   // wanted here?
 *         orr_buf_print(&w.text, "sys[%u] finished", rank);
 *         log_end(&w);
 *     }
 *     code = log_close(&w, &err); */
typedef struct log_writer {
    const orr__logging *logging;
    orr__sink_kind kind;  /* which sinks write here: all of standard output or error, */
    uint32_t sink;        /* or this one */
    orr__log_level level; /* of the default sink that writes here; OFF: none */
    orr_buf patterns;     /* expanded patterns of all sinks, concatenated; the default one is
                           * last */
    uint32_t *pattern_end;
    orr_output *out; /* exactly one of out and file is set */
    orr_log_file *file;
    orr__logger logger; /* of the current line */
    orr__log_level line_level;
    orr_buf text, lines;
} log_writer;

/* Routing.
 *
 * A logger emits a line at a level.  Below the logger's own level it is dropped; otherwise it goes
 * to each of the logger's sinks, in file order, and then to the default sinks, if their levels
 * allow.  Each destination is written in one pass over all lines, so nothing is buffered, and a
 * line that no sink here wants is not even formatted. */

enum { DRAIN = 1 << 16 };

/* ---- filtering ---- */

static bool is_here(const log_writer *w, uint32_t sink)
{
    const bool is_shared = w->kind == ORR__SINK_STDOUT || w->kind == ORR__SINK_STDERR;
    return is_shared ? w->logging->sinks[sink].kind == w->kind : sink == w->sink;
}

static bool wants(const log_writer *w, uint32_t sink, orr__log_level level)
{
    return is_here(w, sink) && level >= w->logging->sinks[sink].level;
}

/* True: the caller prints the line into w->text and calls log_end(). */
static bool log_begin(log_writer *w, orr__logger logger, orr__log_level level)
{
    const orr__logger_rule *rule = &w->logging->rules[logger];
    bool is_wanted = level >= w->level;
    if (level < rule->level)
        return false;
    for (uint32_t i = 0; i < rule->count && !is_wanted; i++)
        is_wanted = wants(w, rule->sinks[i], level);
    w->logger = logger;
    w->line_level = level;
    w->text.len = 0;
    return is_wanted;
}

static orr_str pattern_at(const log_writer *w, uint32_t i)
{
    const size_t from = i ? w->pattern_end[i - 1] : 0;
    return (orr_str){(const char *)w->patterns.ptr + from, w->pattern_end[i] - from};
}

static void put_line(log_writer *w, uint32_t pattern)
{
    const orr__log_record record = {
        .logger = orr__logger_name[w->logger],
        .level = w->line_level,
        .text = {(const char *)w->text.ptr, w->text.len},
    };
    orr__log_line(pattern_at(w, pattern), &record, &w->lines);
    if (w->file) { /* line by line: the file may rotate between two lines */
        orr_log_file_add(w->file, (orr_str){(const char *)w->lines.ptr, w->lines.len});
        w->lines.len = 0;
    } else if (w->lines.len > DRAIN) {
        orr_output_drain(w->out, &w->lines);
    }
}

static void log_end(log_writer *w)
{
    const orr__logger_rule *rule = &w->logging->rules[w->logger];
    if (w->text.failed || w->lines.failed)
        return;
    for (uint32_t i = 0; i < rule->count; i++)
        if (wants(w, rule->sinks[i], w->line_level))
            put_line(w, rule->sinks[i]);
    if (w->line_level >= w->level)
        put_line(w, w->logging->sink_count);
}

/* ---- opening ---- */

static orr_code set_up(log_writer *w, const orr__logging *logging, orr_error *err)
{
    const uint32_t count = logging->sink_count;
    orr__log_stamp now;
    *w = (log_writer){.logging = logging, .sink = UINT32_MAX, .level = ORR__LOG_OFF};
    w->pattern_end = orr_alloc((size_t)count + 1, sizeof *w->pattern_end);
    if (!w->pattern_end)
        return orr_no_memory(err);
    orr__log_now(&now);
    for (uint32_t i = 0; i <= count; i++) {
        orr__log_fix(i < count ? logging->sinks[i].pattern : orr__log_plain, &now, &w->patterns);
        w->pattern_end[i] = (uint32_t)w->patterns.len;
    }
    return w->patterns.failed ? orr_no_memory(err) : ORR_OK;
}

static void fini(log_writer *w)
{
    orr_output_discard(w->out);
    orr_free(w->pattern_end);
    orr_buf_fini(&w->patterns);
    orr_buf_fini(&w->text);
    orr_buf_fini(&w->lines);
}

static orr_code opened(log_writer *w, orr_code code)
{
    if (code)
        fini(w);
    return code;
}

/* kind: of the sinks that also write there, STDOUT or NOTHING. */
static orr_code log_open_default(log_writer *w,
                                 const orr__logging *logging,
                                 const char *path,
                                 orr__log_level level,
                                 orr__sink_kind kind,
                                 orr_error *err)
{
    orr_code code = set_up(w, logging, err);
    w->level = level;
    w->kind = kind;
    if (!code)
        code = orr_output_open(path, &w->out, err);
    return opened(w, code);
}

static orr_code log_open_stderr(log_writer *w, const orr__logging *logging, orr_error *err)
{
    orr_code code = set_up(w, logging, err);
    w->kind = ORR__SINK_STDERR;
    if (!code)
        code = orr_log_file_open("/dev/stderr", NULL, &w->file, err);
    return opened(w, code);
}

/* run.log becomes run_2026-01-31.log. */
static orr_code open_daily(log_writer *w, const orr__sink *s, orr_error *err)
{
    char day[40];
    orr__log_stamp now;
    orr_arena *a = orr_arena_create();
    orr__log_now(&now);
    snprintf(day, sizeof day, "_%04d-%02d-%02d", now.local.tm_year + 1900, now.local.tm_mon + 1,
             now.local.tm_mday);
    const char *path = a ? orr_path_insert(a, s->path, day) : NULL;
    const orr_code code = path ? orr_log_file_open(path, NULL, &w->file, err) : orr_no_memory(err);
    orr_arena_destroy(a);
    return code;
}

/* A file sink. */
static orr_code log_open_sink(log_writer *w,
                              const orr__logging *logging,
                              uint32_t sink,
                              orr_error *err)
{
    const orr__sink *s = &logging->sinks[sink];
    const orr_log_file_options opt = {
        .truncates = s->truncates, .max_size = s->max_size, .max_files = s->max_files};
    orr_code code = set_up(w, logging, err);
    w->sink = sink;
    if (!code)
        code = s->kind == ORR__SINK_DAILY ? open_daily(w, s, err)
                                          : orr_log_file_open(s->path, &opt, &w->file, err);
    return opened(w, code);
}

static orr_code log_close(log_writer *w, orr_error *err)
{
    orr_code code = ORR_OK;
    const bool has_failed = w->text.failed || w->lines.failed;
    if (w->file) {
        code = orr_log_file_close(&w->file, err);
    } else if (!has_failed) {
        orr_output_drain(w->out, &w->lines);
        code = orr_output_commit(&w->out, err);
    }
    if (has_failed)
        code = orr_no_memory(err);
    fini(w);
    return code;
}

/* ---- events of the run, in time order ---- */

typedef enum note_kind {
    NOTE_GROUP_RING,
    NOTE_FINISHED,
    NOTE_ISSUE, /* of a node; only if node events are recorded */
    NOTE_CALLBACK
} note_kind;

typedef struct note {
    note_kind kind;
    uint32_t rank;
    uint32_t count, index; /* of a group ring */
    bool is_comm_first;    /* of a finished rank: the communication line precedes the compute
                            * line */
    uint32_t place;        /* of a node */
    uint64_t tick;
} note;

/* The nodes a rank has started, in order. */
typedef struct start_list {
    uint32_t *place;
    size_t count, room;
} start_list;

typedef struct notes {
    note *list;
    size_t count, room;
    start_list *starts; /* per rank, until it finishes; NULL: not recorded */
    uint32_t ranks;
} notes;

static const notes *notes_of(const orr_sim *s)
{
    static const notes none = {0};
    return s->old_notes ? s->old_notes : &none;
}

static void destroy_notes(void *old_notes)
{
    notes *l = old_notes;
    if (!l)
        return;
    for (uint32_t r = 0; l->starts && r < l->ranks; r++)
        orr_free(l->starts[r].place);
    orr_free(l->starts);
    orr_free(l->list);
    orr_free(l);
}

static notes *make_notes(orr_sim *s)
{
    if (!s->old_notes)
        s->old_notes = orr_alloc(1, sizeof(notes));
    return s->old_notes;
}

static void add_note(orr_sim *s, const note *one)
{
    notes *l = make_notes(s);
    if (!l || !orr_grow(&l->list, &l->room, l->count + 1))
        run_no_memory(s);
    else
        l->list[l->count++] = *one;
}

static void note_node(run_npu *n, uint32_t place, note_kind kind)
{
    const note one = {
        .kind = kind, .rank = n->rank, .place = place, .tick = clk_now(n->sim->clock)};
    add_note(n->sim, &one);
}

static void note_start(run_npu *n, uint32_t place)
{
    note_node(n, place, NOTE_ISSUE);
}

static void note_end(run_npu *n, uint32_t place)
{
    note_node(n, place, NOTE_CALLBACK);
}

static uint64_t node_id(const run_npu *n, uint32_t place)
{
    return n->graph->t->columns.id[n->graph->node[place]] + orr_set_id_shift(n->sim->set, n->rank);
}

static void keep_start(run_npu *n, uint32_t place)
{
    orr_sim *s = n->sim;
    notes *l = make_notes(s);
    if (l && !l->starts) {
        l->starts = orr_alloc(s->npu_count, sizeof *l->starts);
        l->ranks = s->npu_count;
    }
    start_list *own = l && l->starts ? &l->starts[n->rank] : NULL;
    if (!own || !orr_grow(&own->place, &own->room, own->count + 1))
        run_no_memory(s);
    else
        own->place[own->count++] = place;
}

/* The statistics print the class of the first node in the iteration order of the reference's hash
 * map first (astra-sim.md 10.1). */
static bool is_comm_first(run_npu *n, const start_list *own)
{
    hash_order order = {0};
    uint64_t *ids = orr_alloc(own->count, sizeof *ids);
    bool ok = ids && own->count <= UINT32_MAX && hash_order_init(&order, ids, (uint32_t)own->count);
    for (size_t i = 0; ok && i < own->count; i++) {
        ids[i] = node_id(n, own->place[i]);
        ok = hash_order_add(&order, (uint32_t)i);
    }
    const uint32_t first = ok && own->count ? own->place[order.first] : 0;
    if (!ok)
        run_no_memory(n->sim);
    hash_order_fini(&order);
    orr_free(ids);
    return ok && n->graph->t->columns.type[n->graph->node[first]] != ORR_NODE_COMP;
}

static void note_finish(run_npu *n)
{
    notes *l = make_notes(n->sim);
    if (!l)
        run_no_memory(n->sim);
    start_list *own = l && l->starts ? &l->starts[n->rank] : NULL;
    note one = {.kind = NOTE_FINISHED, .rank = n->rank};
    if (own && n->has_run[0] && n->has_run[1])
        one.is_comm_first = is_comm_first(n, own);
    if (own) {
        orr_free(own->place);
        *own = (start_list){0};
    }
    add_note(n->sim, &one);
}

static void note_ring(run_npu *n, const cfg_group *g)
{
    add_note(n->sim, &(note){.kind = NOTE_GROUP_RING,
                             .rank = n->rank,
                             .count = g->count,
                             .index = cfg_group_index(g, n->rank)});
}

static const run_observer lines = {.rank_end = note_finish, .group_ring = note_ring};
static const run_observer starts = {.node_start = keep_start};
static const run_observer issues = {.node_start = note_start, .node_end = note_end};

/* ---- printing ---- */

typedef struct printer {
    const orr_sim *s;
    log_writer to;
    orr_intern **tensors; /* per rank: tensors seen by its tracker; NULL: none yet */
} printer;

static const orr__logging *logging_of(const orr_sim *s)
{
    return s->logging ? s->logging : &orr__default_logging;
}

static bool begin(printer *p, orr__logger logger, orr__log_level level)
{
    return log_begin(&p->to, logger, level);
}

static void end(printer *p)
{
    log_end(&p->to);
}

/* ---- start of the run: the rings of rank 0 ---- */

static void print_rings(printer *p)
{
    static const orr_collective kinds[] = {ORR_COLL_ALL_REDUCE, ORR_COLL_REDUCE_SCATTER,
                                           ORR_COLL_ALL_GATHER, ORR_COLL_ALL_TO_ALL};
    const orr_sim *s = p->s;
    for (size_t j = 0; j < sizeof kinds / sizeof *kinds; j++) {
        const orr_collective k = kinds[j];
        for (uint32_t i = 0; i < s->plans[k].count; i++) {
            const sys_dim *d = &s->plans[k].dims[i];
            if (d->ops == &coll_tree)
                continue;
            if (!begin(p, ORR__LOG_RING, ORR__LOG_INFO))
                return;
            orr_buf_print(
                &p->to.text,
                "ring of node 0, id: 0 dimension: local total nodes in ring: %u index in ring: 0 offset: %u total nodes in ring: %u",
                d->count, d->offset, d->count);
            end(p);
        }
    }
}

static void print_group_ring(printer *p, const note *n)
{
    if (!begin(p, ORR__LOG_RING, ORR__LOG_INFO))
        return;
    orr_buf_print(
        &p->to.text,
        "custom ring, id: %u, dimension: local total nodes in ring: %u index in ring: %u total nodes in ring %u",
        n->rank, n->count, n->index, n->count);
    end(p);
}

/* ---- statistics of a finished rank ---- */

static void print_number(printer *p, uint32_t rank, const char *what, uint64_t value)
{
    if (!begin(p, ORR__LOG_STATISTICS, ORR__LOG_INFO))
        return;
    orr_buf_print(&p->to.text, "sys[%u], %s: %" PRIu64, rank, what, value);
    end(p);
}

static void print_share(printer *p, uint32_t rank, const char *what, double value, const char *unit)
{
    if (!begin(p, ORR__LOG_STATISTICS, ORR__LOG_INFO))
        return;
    orr_buf_print(&p->to.text, "sys[%u], %s: %.3f%s", rank, what, value, unit);
    end(p);
}

/* Unsigned, so it wraps if the rank idles longer than it overlaps, as in the reference
 * (astra-sim.md 10.1). */
static uint64_t overlap_of(const run_npu *n)
{
    const orr_sim_rank_result *r = &n->result;
    return n->has_run[0] && n->has_run[1] ? r->gpu_time + r->comm_time - r->wall : 0;
}

static void print_statistics(printer *p, const run_npu *n, bool is_comm_first)
{
    const orr_sim_rank_result *r = &n->result;
    const uint32_t rank = n->rank;
    if (!begin(p, ORR__LOG_STATISTICS, ORR__LOG_INFO))
        return; /* all further lines have the same level */
    orr_buf_print(&p->to.text, "sys[%u]. Post statistics processing end.", rank);
    end(p);
    print_number(p, rank, "Wall time", r->wall);
    for (int k = 0; k < 2; k++) {
        const bool is_comm = (k == 1) != is_comm_first;
        if (n->has_run[is_comm])
            print_number(p, rank, is_comm ? "Comm time" : "GPU time",
                         is_comm ? r->comm_time : r->gpu_time);
    }
    if (overlap_of(n))
        print_number(p, rank, "Total compute-communication overlap", overlap_of(n));
    if (!p->s->system.roofline)
        return;
    print_share(p, rank, "Compute bound percentage", 100 * r->compute_bound, "%");
    print_share(p, rank, "Average compute utilization", 100 * r->compute_use, "%");
    print_share(p, rank, "Average memory utilization", 100 * r->memory_use, "%");
    print_share(p, rank, "Average operation intensity", r->intensity, "");
}

/* Single precision, as in the reference. */
static void print_peak(printer *p, const run_npu *n)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    float value = (float)n->result.peak_memory;
    unsigned u = 0;
    for (orr_bytes rest = n->result.peak_memory; rest >= 1024 && u < 4; rest /= 1024, u++)
        value /= 1024;
    if (!begin(p, ORR__LOG_WORKLOAD, ORR__LOG_INFO))
        return;
    orr_buf_print(&p->to.text, "sys[%u] peak memory usage: %.2f %s", n->rank, (double)value,
                  units[u]);
    end(p);
}

/* Any node that is neither device nor communication ends the reference's statistics of that rank
 * (astra-sim.md 10.1). */
static void print_no_statistics(printer *p)
{
    if (!begin(p, ORR__LOG_SYSTEM, ORR__LOG_CRITICAL))
        return;
    orr_buf_text(
        &p->to.text,
        "warning! a callable is removed before call Only GPU and COMM types are supported for overlap extraction");
    end(p);
}

static void print_finish_line(printer *p, const run_npu *n)
{
    const orr_sim_rank_result *r = &n->result;
    if (begin(p, ORR__LOG_WORKLOAD, ORR__LOG_INFO)) {
        orr_buf_print(&p->to.text,
                      "sys[%u] finished, %" PRIu64 " cycles, exposed communication %" PRIu64
                      " cycles.",
                      n->rank, r->finished_at, r->finished_at - r->gpu_total);
        end(p);
    }
    if (begin(p, ORR__LOG_STATISTICS, ORR__LOG_INFO)) {
        orr_buf_print(&p->to.text, "sys[%u]. Post statistics processing start.", n->rank);
        end(p);
    }
}

static void print_finished(printer *p, const run_npu *n, bool is_comm_first)
{
    print_finish_line(p, n);
    if (n->result.has_other_nodes) {
        print_no_statistics(p);
        return;
    }
    print_statistics(p, n, is_comm_first);
    if (n->tensor_log)
        print_peak(p, n);
}

/* ---- node starts and ends ---- */

static const char *event_word(const note *e)
{
    return e->kind == NOTE_ISSUE ? "issue" : "callback";
}

/* `label` precedes the name. */
static void print_node(
    orr_buf *out, const run_npu *n, const note *e, const char *label, orr_str name)
{
    orr_buf_print(out,
                  "%s,sys->id=%u, tick=%" PRIu64 ", node->id=%" PRIu64 ", node->name=%s%.*s, "
                  "node->type=%u",
                  event_word(e), n->rank, e->tick, node_id(n, e->place), label, (int)name.len,
                  name.ptr, n->graph->t->columns.type[n->graph->node[e->place]]);
}

static void print_event(printer *p, const run_npu *n, const note *e)
{
    if (!begin(p, ORR__LOG_WORKLOAD, ORR__LOG_DEBUG))
        return;
    print_node(&p->to.text, n, e, "", orr_trace_name(n->graph->t, n->graph->node[e->place]));
    end(p);
}

static bool holds(orr_str text, const char *word)
{
    return memmem(text.ptr, text.len, word, strlen(word)) != NULL;
}

/* The visualizer looks for keywords in the name (chakra.md 9); they are put before a name that has
 * none. */
static void print_visible(orr_buf *out, const run_npu *n, const note *e)
{
    const uint32_t i = n->graph->node[e->place];
    const uint8_t type = n->graph->t->columns.type[i];
    const orr_str name = orr_trace_name(n->graph->t, i);
    const char *word = orr_node_type_name(type);
    const bool is_memory = type == ORR_NODE_MEM_LOAD || type == ORR_NODE_MEM_STORE;
    char label[64];
    snprintf(label, sizeof label, "%s%s ", word ? word : "", is_memory ? " REMOTE_MEMORY" : "");
    print_node(out, n, e, word && holds(name, word) ? "" : label, name);
    orr_buf_byte(out, '\n');
}

/* ---- roofline and tensors ---- */

static bool is_roofline(const run_npu *n, uint32_t place)
{
    const cfg_system *c = &n->sim->system;
    return c->roofline && !c->replay_only && n->graph->slot[place] == WORK_SLOT_COMP;
}

static int64_t column_value(const run_npu *n, const int64_t *column, uint32_t place)
{
    return column ? column[n->graph->node[place]] : ORR_NO_VALUE;
}

/* Ends at once.  The old program logs these even when it logs no other nodes. */
static bool is_skipped(const run_npu *n, uint32_t place)
{
    const orr_columns *c = &n->graph->t->columns;
    if (c->type[n->graph->node[place]] == ORR_NODE_INVALID)
        return !n->sim->system.replay_only;
    return is_roofline(n, place) && column_value(n, c->tensor_size, place) == 0;
}

/* As fmt prints a double: integers without a point. */
static void print_double(printer *p, const char *label, double value)
{
    char text[ORR_NUMBER_ROOM];
    size_t len = orr_double_text(value, text);
    if (len > 2 && memcmp(text + len - 2, ".0", 2) == 0)
        len -= 2;
    orr_buf_print(&p->to.text, "%s=%.*s", label, (int)len, text);
}

static void print_roofline(printer *p, const run_npu *n, uint32_t place)
{
    const orr_columns *c = &n->graph->t->columns;
    const int64_t ops = column_value(n, c->num_ops, place);
    const int64_t size = column_value(n, c->tensor_size, place);
    if (ops == ORR_NO_VALUE || size == ORR_NO_VALUE || size == 0 ||
        !begin(p, ORR__LOG_WORKLOAD, ORR__LOG_DEBUG))
        return;
    const work_roofline r = work_roofline_of(n, ops, size);
    print_double(p, "operation_intensity", r.intensity);
    print_double(p, ", perf", r.perf);
    print_double(p, ", elapsed_time", (double)(uint64_t)ops / r.perf);
    print_double(p, " compute_utilization", r.compute_use);
    print_double(p, " memory_utilization", r.memory_use);
    print_double(p, " tensor_size", (double)(uint64_t)size);
    print_double(p, " num_ops", (double)(uint64_t)ops);
    end(p);
}

typedef struct access {
    printer *p;
    const run_npu *n;
    const note *e; /* the end of the node */
} access;

static void print_access(const access *a, const char *what, orr_str name)
{
    printer *p = a->p;
    if (!begin(p, ORR__LOG_TENSORS, ORR__LOG_TRACE))
        return;
    orr_buf_print(&p->to.text,
                  "tracker record %s node.id=%" PRIu64 " tensor.name=%.*s start=%" PRIu64
                  " end=%" PRIu64,
                  what, node_id(a->n, a->e->place), (int)name.len, name.ptr,
                  a->n->started_at[a->e->place], a->e->tick);
    end(p);
}

static void visit_tensor(void *context, bool is_write, orr_str name)
{
    const access *a = context;
    orr_intern *seen = a->p->tensors[a->n->rank];
    const uint32_t before = orr_intern_count(seen);
    uint32_t number;
    if (!orr_intern_add(seen, name, &number))
        a->p->to.text.failed = true;
    else if (!is_write && number == before)
        print_access(a, "read before write", name);
    print_access(a, is_write ? "write" : "read", name);
}

static bool make_room_for_tensors(printer *p, uint32_t rank)
{
    if (!p->tensors)
        p->tensors = orr_alloc(p->s->npu_count, sizeof(orr_intern *));
    if (p->tensors && !p->tensors[rank])
        p->tensors[rank] = orr_intern_create();
    if (!p->tensors || !p->tensors[rank])
        p->to.text.failed = true;
    return !p->to.text.failed;
}

static void print_tensors(printer *p, const run_npu *n, const note *e)
{
    access a = {.p = p, .n = n, .e = e};
    if (!n->tensor_log || !begin(p, ORR__LOG_TENSORS, ORR__LOG_TRACE) ||
        !make_room_for_tensors(p, n->rank))
        return;
    if (e->kind == NOTE_ISSUE) {
        orr_buf_print(&p->to.text, "tracker record start of node.id=%" PRIu64 " at tick=%" PRIu64,
                      node_id(n, e->place), e->tick);
        end(p);
        return;
    }
    orr_buf_print(&p->to.text,
                  "tracker record end of node.id=%" PRIu64 " at start=%" PRIu64 " end=%" PRIu64,
                  node_id(n, e->place), n->started_at[e->place], e->tick);
    end(p);
    mem_visit_tensors(n, e->place, visit_tensor, &a);
}

/* A node has started or ended.  The default logs have this only with trace-enabled. */
static void print_event_lines(printer *p, const note *e)
{
    const orr_sim *s = p->s;
    const run_npu *n = &s->npus[e->rank];
    const bool is_start = e->kind == NOTE_ISSUE, has_file = s->opt.logging != NULL;
    if (s->opt.trace_log || s->system.trace_enabled ||
        (has_file && !is_start && is_skipped(n, e->place)))
        print_event(p, n, e);
    print_tensors(p, n, e);
    if (has_file && is_start && is_roofline(n, e->place))
        print_roofline(p, n, e->place);
}

/* ---- unfinished ranks ---- */

static void print_occupant(printer *p, const run_npu *n, work_slot slot, const char *what)
{
    if (n->occupant[slot] == RUN_NONE)
        return;
    if (!begin(p, ORR__LOG_HARDWARE, ORR__LOG_CRITICAL))
        return;
    orr_buf_print(&p->to.text, "%s node id: %" PRIu64, what, node_id(n, n->occupant[slot]));
    end(p);
}

static void print_unfinished(printer *p, const run_npu *n)
{
    const bool is_holding = n->occupant[WORK_SLOT_CPU] != RUN_NONE ||
                            n->occupant[WORK_SLOT_COMP] != RUN_NONE ||
                            n->occupant[WORK_SLOT_COMM] != RUN_NONE;
    if (!is_holding || !begin(p, ORR__LOG_HARDWARE, ORR__LOG_CRITICAL))
        return;
    orr_buf_print(&p->to.text, "!!!Hardware Resource sys.id=%u has unreleased nodes!!!", n->rank);
    end(p);
    print_occupant(p, n, WORK_SLOT_CPU, "CPU");
    print_occupant(p, n, WORK_SLOT_COMP, "GPU comp");
    print_occupant(p, n, WORK_SLOT_COMM, "GPU comm");
}

static void print_note(printer *p, const note *e)
{
    if (e->kind == NOTE_FINISHED)
        print_finished(p, &p->s->npus[e->rank], e->is_comm_first);
    else if (e->kind == NOTE_GROUP_RING)
        print_group_ring(p, e);
    else
        print_event_lines(p, e);
}

static void print_all(printer *p)
{
    const orr_sim *s = p->s;
    print_rings(p);
    for (size_t i = 0; i < notes_of(s)->count; i++)
        print_note(p, &notes_of(s)->list[i]);
    for (uint32_t r = 0; r < s->npu_count; r++)
        if (s->npus[r].result.finished_at == ORR_NEVER)
            print_unfinished(p, &s->npus[r]);
    if (begin(p, ORR__LOG_SYSTEM, ORR__LOG_WARNING)) {
        orr_buf_text(&p->to.text, "Exiting");
        end(p);
    }
}

/* ---- destinations ---- */

static orr_code print_and_close(printer *p, orr_error *err)
{
    print_all(p);
    for (uint32_t r = 0; p->tensors && r < p->s->npu_count; r++)
        orr_intern_destroy(p->tensors[r]);
    orr_free(p->tensors);
    return log_close(&p->to, err);
}

static orr_code write_log(const orr_sim *s, const char *path, orr_sim_log which, orr_error *err)
{
    static const orr__log_level levels[] = {[ORR_SIM_LOG_CONSOLE] = ORR__LOG_INFO,
                                            [ORR_SIM_LOG_FILE] = ORR__LOG_DEBUG,
                                            [ORR_SIM_LOG_ERRORS] = ORR__LOG_ERROR};
    printer p = {.s = s};
    const orr__sink_kind kind = which == ORR_SIM_LOG_CONSOLE ? ORR__SINK_STDOUT : ORR__SINK_NOTHING;
    const orr_code code = log_open_default(&p.to, logging_of(s), path, levels[which], kind, err);
    return code ? code : print_and_close(&p, err);
}

static orr_code write_stderr(const orr_sim *s, orr_error *err)
{
    printer p = {.s = s};
    const orr_code code = log_open_stderr(&p.to, logging_of(s), err);
    return code ? code : print_and_close(&p, err);
}

static orr_code write_sink(const orr_sim *s, uint32_t sink, orr_error *err)
{
    printer p = {.s = s};
    const orr_code code = log_open_sink(&p.to, logging_of(s), sink, err);
    return code ? code : print_and_close(&p, err);
}

static orr_code write_sinks(const orr_sim *s, orr_error *err)
{
    orr_code code = ORR_OK;
    bool has_stderr = false;
    for (uint32_t i = 0; i < logging_of(s)->sink_count && !code; i++) {
        has_stderr |= logging_of(s)->sinks[i].kind == ORR__SINK_STDERR;
        if (logging_of(s)->sinks[i].kind >= ORR__SINK_FILE)
            code = write_sink(s, i, err);
    }
    return code || !has_stderr ? code : write_stderr(s, err);
}

static bool ignores_patterns(const orr_sim *s)
{
    return logging_of(s)->has_unused_patterns;
}

static orr_code save(orr_buf *text, const char *path, orr_error *err)
{
    orr_output *o;
    orr_code code = orr_output_open(path, &o, err);
    if (!code) {
        orr_output_drain(o, text);
        code = orr_output_commit(&o, err);
    }
    orr_buf_fini(text);
    return code;
}

static orr_code write_trace_log(const orr_sim *s, const char *path, orr_error *err)
{
    orr_buf out = {0};
    for (size_t i = 0; i < notes_of(s)->count; i++) {
        const note *e = &notes_of(s)->list[i];
        if (e->kind == NOTE_ISSUE || e->kind == NOTE_CALLBACK)
            print_visible(&out, &s->npus[e->rank], e);
    }
    return save(&out, path, err);
}

static orr_code read_logging(
    const char *path, bool keeps_patterns, orr_arena *a, const void **out, orr_error *err)
{
    orr__logging *l = orr_arena_new(a, 1, orr__logging);
    *out = l;
    return l ? orr__read_logging(path, keeps_patterns, a, l, err) : orr_no_memory(err);
}

const run_old_output astra_sim_output = {
    .read_logging = read_logging,
    .lines = &lines,
    .starts = &starts,
    .issues = &issues,
    .destroy_notes = destroy_notes,
    .ignores_patterns = ignores_patterns,
    .write_log = write_log,
    .write_sinks = write_sinks,
    .write_trace_log = write_trace_log,
    .write_memory = astra_sim_write_memory,
};
