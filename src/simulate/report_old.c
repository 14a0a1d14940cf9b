/* SPDX-License-Identifier: Apache-2.0 */
/* report_old.c - the lines of the old programs, for scripts that read them (astra-sim.md 10.1).
 *
 *     [2026-01-31 12:00:00.000] [workload] [info] sys[0] finished, 52776 cycles, exposed communication 52776 cycles.
 */
#include "sim_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

typedef struct printer {
    const orr_sim *s;
    orr_buf out;
    char stamp[40];
    orr_sim_log which;
} printer;

static void set_stamp(printer *p)
{
    struct timespec now;
    struct tm local;
    char text[32];
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &local);
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
    orr_buf b = {0};
    orr_buf_print(&b, "%s.%03ld", text, now.tv_nsec / 1000000);
    if (!b.failed)
        memcpy(p->stamp, b.ptr, b.len < sizeof p->stamp ? b.len : sizeof p->stamp - 1);
    orr_buf_fini(&b);
}

static void begin(printer *p, const char *logger, const char *level)
{
    orr_buf_print(&p->out, "[%s] [%s] [%s] ", p->stamp, logger, level);
}

static void end(printer *p)
{
    orr_buf_byte(&p->out, '\n');
}

/* ---- the start: rank 0's rings ---- */

static void print_rings(printer *p)
{
    const orr_sim *s = p->s;
    for (unsigned k = 0; k < ORR__REFERENCE_KINDS; k++)
        for (uint32_t i = 0; i < s->plans[k].count; i++) {
            const orr__dim *d = &s->plans[k].dims[i];
            if (d->algorithm == ORR__TREE)
                continue;
            begin(p, "system::topology::RingTopology", "info");
            orr_buf_print(
                &p->out,
                "ring of node 0, id: 0 dimension: local total nodes in ring: %u index in ring: 0 offset: %u total nodes in ring: %u",
                d->count, d->offset, d->count);
            end(p);
        }
}

static void print_group_ring(printer *p, const orr__note *n)
{
    begin(p, "system::topology::RingTopology", "info");
    orr_buf_print(
        &p->out,
        "custom ring, id: %u, dimension: local total nodes in ring: %u index in ring: %u total nodes in ring %u",
        n->rank, n->count, n->index, n->count);
    end(p);
}

/* ---- a finished rank ---- */

static void print_number(printer *p, uint32_t rank, const char *what, uint64_t value)
{
    begin(p, "statistics", "info");
    orr_buf_print(&p->out, "sys[%u], %s: %" PRIu64, rank, what, value);
    end(p);
}

static void print_share(printer *p, uint32_t rank, const char *what, double value, const char *unit)
{
    begin(p, "statistics", "info");
    orr_buf_print(&p->out, "sys[%u], %s: %.3f%s", rank, what, value, unit);
    end(p);
}

/* Wraps around when the rank idles more than it overlaps (10.1). */
static uint64_t overlap_of(const orr__npu *n)
{
    const orr_sim_rank_result *r = &n->result;
    return n->has_run[0] && n->has_run[1] ? r->gpu_time + r->comm_time - r->wall : 0;
}

static void print_statistics(printer *p, const orr__npu *n)
{
    const orr_sim_rank_result *r = &n->result;
    const uint32_t rank = n->rank;
    begin(p, "statistics", "info");
    orr_buf_print(&p->out, "sys[%u]. Post statistics processing end.", rank);
    end(p);
    print_number(p, rank, "Wall time", r->wall);
    if (n->has_run[0])
        print_number(p, rank, "GPU time", r->gpu_time);
    if (n->has_run[1])
        print_number(p, rank, "Comm time", r->comm_time);
    if (overlap_of(n))
        print_number(p, rank, "Total compute-communication overlap", overlap_of(n));
    if (!p->s->system.roofline)
        return;
    print_share(p, rank, "Compute bound percentage", 100 * r->compute_bound, "%");
    print_share(p, rank, "Average compute utilization", 100 * r->compute_use, "%");
    print_share(p, rank, "Average memory utilization", 100 * r->memory_use, "%");
    print_share(p, rank, "Average operation intensity", r->intensity, "");
}

/* The reference computes this in single precision. */
static void print_peak(printer *p, const orr__npu *n)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    float value = (float)n->result.peak_memory;
    unsigned u = 0;
    for (orr_bytes rest = n->result.peak_memory; rest >= 1024 && u < 4; rest /= 1024, u++)
        value /= 1024;
    begin(p, "workload", "info");
    orr_buf_print(&p->out, "sys[%u] peak memory usage: %.2f %s", n->rank, (double)value, units[u]);
    end(p);
}

/* Nodes of other kinds than device and communication end the reference's statistics of that rank (10.1). */
static void print_no_statistics(printer *p)
{
    begin(p, "system", "critical");
    orr_buf_text(
        &p->out,
        "warning! a callable is removed before call Only GPU and COMM types are supported for overlap extraction");
    end(p);
}

static void print_finish_line(printer *p, const orr__npu *n)
{
    const orr_sim_rank_result *r = &n->result;
    begin(p, "workload", "info");
    orr_buf_print(&p->out,
                  "sys[%u] finished, %" PRIu64 " cycles, exposed communication %" PRIu64 " cycles.",
                  n->rank, r->finished_at, r->finished_at - r->gpu_total);
    end(p);
    begin(p, "statistics", "info");
    orr_buf_print(&p->out, "sys[%u]. Post statistics processing start.", n->rank);
    end(p);
}

static void print_finished(printer *p, const orr__npu *n)
{
    if (p->which != ORR_SIM_LOG_ERRORS)
        print_finish_line(p, n);
    if (n->result.has_other_nodes) {
        print_no_statistics(p);
    } else if (p->which != ORR_SIM_LOG_ERRORS) {
        print_statistics(p, n);
        if (n->tensor_log)
            print_peak(p, n);
    }
}

/* ---- nodes, when they were issued and ended ---- */

static const char *event_word(const orr__note *e)
{
    return e->kind == ORR__NOTE_ISSUE ? "issue" : "callback";
}

static uint64_t node_id(const orr__npu *n, uint32_t place)
{
    return n->graph->t->id[n->graph->node[place]] + orr_set_id_shift(n->sim->set, n->rank);
}

/* `label` stands before the name. */
static void print_node(
    orr_buf *out, const orr__npu *n, const orr__note *e, const char *label, orr_str name)
{
    orr_buf_print(out,
                  "%s,sys->id=%u, tick=%" PRIu64 ", node->id=%" PRIu64 ", node->name=%s%.*s, "
                  "node->type=%u\n",
                  event_word(e), n->rank, e->tick, node_id(n, e->place), label, (int)name.len,
                  name.ptr, n->graph->t->columns.type[n->graph->node[e->place]]);
}

static void print_event(printer *p, const orr__note *e)
{
    const orr__npu *n = &p->s->npus[e->rank];
    begin(p, "workload", "debug");
    print_node(&p->out, n, e, "", orr_trace_name(n->graph->t, n->graph->node[e->place]));
}

static bool holds(orr_str text, const char *word)
{
    return memmem(text.ptr, text.len, word, strlen(word)) != NULL;
}

/* The visualizer goes by words in the name (chakra.md 9): a name without them gets them in front. */
static void print_visible(orr_buf *out, const orr__npu *n, const orr__note *e)
{
    const uint32_t i = n->graph->node[e->place];
    const uint8_t type = n->graph->t->columns.type[i];
    const orr_str name = orr_trace_name(n->graph->t, i);
    const char *word = orr_node_type_name(type);
    const bool is_memory = type == ORR_NODE_MEM_LOAD || type == ORR_NODE_MEM_STORE;
    char label[64];
    snprintf(label, sizeof label, "%s%s ", word ? word : "", is_memory ? " REMOTE_MEMORY" : "");
    print_node(out, n, e, word && holds(name, word) ? "" : label, name);
}

/* ---- ranks that did not finish ---- */

static void print_occupant(printer *p, const orr__npu *n, orr__slot slot, const char *what)
{
    if (n->occupant[slot] == ORR__NONE)
        return;
    begin(p, "HardwareResource", "critical");
    orr_buf_print(&p->out, "%s node id: %" PRIu64, what, node_id(n, n->occupant[slot]));
    end(p);
}

static void print_unfinished(printer *p, const orr__npu *n)
{
    const bool is_holding = n->occupant[ORR__SLOT_CPU] != ORR__NONE ||
                            n->occupant[ORR__SLOT_COMP] != ORR__NONE ||
                            n->occupant[ORR__SLOT_COMM] != ORR__NONE;
    if (!is_holding)
        return;
    begin(p, "HardwareResource", "critical");
    orr_buf_print(&p->out, "!!!Hardware Resource sys.id=%u has unreleased nodes!!!", n->rank);
    end(p);
    print_occupant(p, n, ORR__SLOT_CPU, "CPU");
    print_occupant(p, n, ORR__SLOT_COMP, "GPU comp");
    print_occupant(p, n, ORR__SLOT_COMM, "GPU comm");
}

static void print_note(printer *p, const orr__note *e)
{
    if (e->kind == ORR__NOTE_FINISHED)
        print_finished(p, &p->s->npus[e->rank]);
    else if (e->kind == ORR__NOTE_GROUP_RING && p->which != ORR_SIM_LOG_ERRORS)
        print_group_ring(p, e);
    else if (e->kind != ORR__NOTE_GROUP_RING && p->which == ORR_SIM_LOG_FILE)
        print_event(p, e);
}

static void print_all(printer *p)
{
    const orr_sim *s = p->s;
    if (p->which != ORR_SIM_LOG_ERRORS)
        print_rings(p);
    for (size_t i = 0; i < s->note_count; i++)
        print_note(p, &s->notes[i]);
    for (uint32_t r = 0; r < s->npu_count; r++)
        if (s->npus[r].result.finished_at == ORR_NEVER)
            print_unfinished(p, &s->npus[r]);
    if (p->which != ORR_SIM_LOG_ERRORS) {
        begin(p, "workload", "warning");
        orr_buf_text(&p->out, "Exiting\n");
    }
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

orr_code orr_sim_write_old_log(const orr_sim *s,
                               const char *path,
                               orr_sim_log which,
                               orr_error *err)
{
    printer p = {.s = s, .which = which};
    set_stamp(&p);
    print_all(&p);
    return save(&p.out, path, err);
}

orr_code orr_sim_write_trace_log(const orr_sim *s, const char *path, orr_error *err)
{
    orr_buf out = {0};
    for (size_t i = 0; i < s->note_count; i++) {
        const orr__note *e = &s->notes[i];
        if (e->kind == ORR__NOTE_ISSUE || e->kind == ORR__NOTE_CALLBACK)
            print_visible(&out, &s->npus[e->rank], e);
    }
    return save(&out, path, err);
}
