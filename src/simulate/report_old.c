/* SPDX-License-Identifier: Apache-2.0 */
/* report_old.c - the lines of the old programs, for scripts that read them (astra-sim.md 10.1).
 *
 *     [2026-01-31 12:00:00.000] [workload] [info] sys[0] finished, 52776 cycles, exposed communication 52776 cycles.
 */
#include "sim_impl.h"

#include <inttypes.h>
#include <time.h>

typedef struct printer {
    const orr_sim *s;
    orr_buf out;
    char stamp[40];
    bool is_error;
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
    for (unsigned k = 0; k < ORR__KINDS; k++)
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

/* Other than device and communication nodes make the reference's statistics stop here (10.1). */
static void print_statistics(printer *p, uint32_t rank, const orr_sim_rank_result *r)
{
    const uint64_t overlap = r->gpu_time + r->comm_time - r->wall;
    if (r->has_other_nodes)
        return;
    begin(p, "statistics", "info");
    orr_buf_print(&p->out, "sys[%u]. Post statistics processing end.", rank);
    end(p);
    print_number(p, rank, "Wall time", r->wall);
    if (r->gpu_time)
        print_number(p, rank, "GPU time", r->gpu_time);
    if (r->comm_time)
        print_number(p, rank, "Comm time", r->comm_time);
    if (overlap)
        print_number(p, rank, "Total compute-communication overlap", overlap);
    if (!p->s->system.roofline)
        return;
    print_share(p, rank, "Compute bound percentage", 100 * r->compute_bound, "%");
    print_share(p, rank, "Average compute utilization", 100 * r->compute_use, "%");
    print_share(p, rank, "Average memory utilization", 100 * r->memory_use, "%");
    print_share(p, rank, "Average operation intensity", r->intensity, "");
}

static void print_finished(printer *p, uint32_t rank)
{
    const orr_sim_rank_result *r = orr_sim_rank(p->s, rank);
    begin(p, "workload", "info");
    orr_buf_print(&p->out,
                  "sys[%u] finished, %" PRIu64 " cycles, exposed communication %" PRIu64 " cycles.",
                  rank, r->finished_at, r->finished_at - r->gpu_total);
    end(p);
    begin(p, "statistics", "info");
    orr_buf_print(&p->out, "sys[%u]. Post statistics processing start.", rank);
    end(p);
    print_statistics(p, rank, r);
}

/* ---- ranks that did not finish ---- */

static void print_occupant(printer *p, const orr__npu *n, orr__slot slot, const char *what)
{
    if (n->occupant[slot] == ORR__NONE)
        return;
    begin(p, "HardwareResource", "critical");
    orr_buf_print(&p->out, "%s node id: %" PRIu64, what,
                  n->graph->t->id[n->graph->node[n->occupant[slot]]] +
                      orr_set_id_shift(n->sim->set, n->rank));
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

static void print_all(printer *p)
{
    const orr_sim *s = p->s;
    if (!p->is_error) {
        print_rings(p);
        for (size_t i = 0; i < s->note_count; i++) {
            if (s->notes[i].kind == ORR__NOTE_FINISHED)
                print_finished(p, s->notes[i].rank);
            else
                print_group_ring(p, &s->notes[i]);
        }
    }
    for (uint32_t r = 0; r < s->npu_count; r++)
        if (s->npus[r].result.finished_at == ORR_NEVER)
            print_unfinished(p, &s->npus[r]);
    if (!p->is_error) {
        begin(p, "workload", "warning");
        orr_buf_text(&p->out, "Exiting\n");
    }
}

orr_code orr_sim_write_old_log(const orr_sim *s, const char *path, bool is_error, orr_error *err)
{
    printer p = {.s = s, .is_error = is_error};
    orr_output *o;
    set_stamp(&p);
    print_all(&p);
    orr_code code = orr_output_open(path, &o, err);
    if (!code) {
        orr_output_drain(o, &p.out);
        code = orr_output_commit(&o, err);
    }
    orr_buf_fini(&p.out);
    return code;
}
