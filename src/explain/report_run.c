/* SPDX-License-Identifier: Apache-2.0 */
/* report_run.c - what came out of a run, for people: a few short tables in 80 columns.
 *
 * Sums over ranks say little to someone who looks at one job, so times stand per rank: least, median and most
 * over the ranks, or the average of those that take part. */
#include "run_report.h"

#include "base/text/bar.h"
#include "models/network/packet/packet_network.h"
#include "models/network/packet/packet_run.h"

#include <orrery/units.h>

#include <inttypes.h>
#include <stdlib.h>

enum { TOP = 5, BAR_CELLS = 12 };

/* ---- the head ---- */

static void print_head(const orr_sim *s, orr_buf *b)
{
    char time[ORR_UNIT_ROOM], exact[ORR_UNIT_ROOM];
    const uint64_t end = orr__watch_end_of_run(s);
    const bool is_whole = s->finished == s->npu_count;
    orr__ns_text(end, time);
    orr_count_text(end, exact);
    if (is_whole)
        orr_buf_print(b, "%u rank%s finished after %s (%s ns)\n", s->npu_count,
                      s->npu_count == 1 ? "" : "s", time, exact);
    else
        orr_buf_print(b, "%s at %s (%s ns): %u of %u ranks had finished\n", orr__run_status(s),
                      time, exact, s->finished, s->npu_count);
}

/* ---- ranks ---- */

static const char *const labels[ORR__FIGURES] = {
    [ORR__FIGURE_FINISHED] = "finished after",
    [ORR__FIGURE_COMPUTE] = "compute",
    [ORR__FIGURE_COMMUNICATION] = "communication",
    [ORR__FIGURE_EXPOSED] = "  exposed",
    [ORR__FIGURE_MEMORY] = "remote memory",
    [ORR__FIGURE_HOST] = "host",
    [ORR__FIGURE_IDLE] = "idle",
};

static void print_time(orr_buf *b, uint64_t ns)
{
    char text[ORR_UNIT_ROOM];
    orr_buf_print(b, "  %10s", orr__ns_text(ns, text));
}

static bool is_optional(orr__figure f)
{
    return f == ORR__FIGURE_MEMORY || f == ORR__FIGURE_HOST;
}

static bool print_ranks(const orr_sim *s, orr_buf *b)
{
    const uint64_t end = orr__watch_end_of_run(s);
    char share[ORR_UNIT_ROOM], bar[ORR_BAR_ROOM];
    orr_buf_print(b, "\n%-16s  %10s  %10s  %10s  %12s\n", "per rank", "least", "median", "most",
                  "median share");
    for (unsigned f = 0; f < ORR__FIGURES; f++) {
        orr__spread v;
        if (!orr__spread_of(s, (orr__figure)f, &v))
            return false;
        if (v.ranks == 0 || (v.most == 0 && is_optional((orr__figure)f)))
            continue;
        orr_buf_print(b, "%-16s", labels[f]);
        print_time(b, v.least);
        print_time(b, v.median);
        print_time(b, v.most);
        if (f != ORR__FIGURE_FINISHED)
            orr_buf_print(b, "  %12s%s%s", orr_percent_text(v.median, end, share),
                          v.median ? "  " : "", orr_bar_text(v.median, end, BAR_CELLS, bar));
        orr_buf_byte(b, '\n');
    }
    return true;
}

static int compare_bytes(const void *a, const void *b)
{
    const orr_bytes x = *(const orr_bytes *)a, y = *(const orr_bytes *)b;
    return x < y ? -1 : x > y;
}

/* With track-local-mem: how much the tensors of a rank need. */
static bool print_peak_memory(const orr_sim *s, orr_buf *b)
{
    const uint32_t n = s->finished;
    char least[ORR_UNIT_ROOM], median[ORR_UNIT_ROOM], most[ORR_UNIT_ROOM];
    if (!s->system.track_local_mem || n == 0)
        return true;
    orr_bytes *peaks = orr_alloc(n, sizeof *peaks);
    if (!peaks)
        return false;
    for (uint32_t i = 0; i < n; i++)
        peaks[i] = orr_sim_rank(s, s->finish_order[i])->peak_memory;
    qsort(peaks, n, sizeof *peaks, compare_bytes);
    orr_buf_print(b, "%-16s  %10s  %10s  %10s\n", "peak memory", orr_bytes_text(peaks[0], least),
                  orr_bytes_text(peaks[n / 2], median), orr_bytes_text(peaks[n - 1], most));
    orr_free(peaks);
    return true;
}

/* ---- collectives ---- */

static const char *collective_text(const orr__tally *t)
{
    const char *name = orr_collective_name(t->collective);
    return name ? name : "unknown";
}

/* "16", or "8 x 128": how many ranks a group has, and how many such groups there are. */
static void print_group(orr_buf *b, const orr__tally *t)
{
    char text[32] = "?";
    orr_buf room = {0};
    if (t->group_ranks && t->groups > 1)
        orr_buf_print(&room, "%u x %u", t->group_ranks, t->groups);
    else if (t->group_ranks)
        orr_buf_print(&room, "%u", t->group_ranks);
    if (room.len && room.len < sizeof text) {
        memcpy(text, room.ptr, room.len);
        text[room.len] = '\0';
    }
    b->failed |= room.failed;
    orr_buf_fini(&room);
    orr_buf_print(b, " %11s", text);
}

/* Calls a rank: a whole number unless ranks differ. */
static void print_calls(orr_buf *b, uint64_t calls, uint32_t ranks)
{
    char text[ORR_UNIT_ROOM];
    const uint64_t tenths = ranks ? (calls * 10 + ranks / 2) / ranks : 0;
    orr_count_text(tenths / 10, text);
    if (tenths % 10 == 0)
        orr_buf_print(b, " %8s", text);
    else
        orr_buf_print(b, " %6s.%u", text, (unsigned)(tenths % 10));
}

static void print_collective(orr_buf *b, const orr__tally *t, uint32_t ranks)
{
    char text[ORR_UNIT_ROOM];
    const uint32_t members = ranks ? ranks : 1;
    orr_buf_print(b, "%-20s", collective_text(t));
    print_group(b, t);
    orr_buf_print(b, " %10s", orr_bytes_text(t->size, text));
    print_calls(b, t->count, ranks);
    orr_buf_print(b, " %10s", orr__ns_text(t->time / members, text));
    orr_buf_print(b, " %10s\n", orr__ns_text(t->exposed / members, text));
}

static void print_rows(const orr_sim *s,
                       orr_buf *b,
                       const char *title,
                       const uint32_t *rows,
                       uint32_t count,
                       const uint32_t *ranks)
{
    orr_buf_print(b, "\n%-20s %11s %10s %8s %10s %10s\n", title, "ranks", "size", "calls", "time",
                  "exposed");
    for (uint32_t i = 0; i < count && i < TOP; i++)
        print_collective(b, &s->watch->tallies[rows[i]], ranks[rows[i]]);
    if (count > TOP)
        orr_buf_print(b, "and %u more kinds\n", count - TOP);
}

/* Does the first TOP of one list hold the same rows as that of the other? */
static bool has_same_top(const uint32_t *a, const uint32_t *b, uint32_t count)
{
    const uint32_t top = count < TOP ? count : TOP;
    for (uint32_t i = 0; i < top; i++) {
        uint32_t k = 0;
        while (k < top && b[k] != a[i])
            k++;
        if (k == top)
            return false;
    }
    return true;
}

static bool print_collectives(const orr_sim *s, orr_buf *b)
{
    uint32_t count;
    uint32_t *by_time = orr__collectives_by(s, false, &count);
    uint32_t *by_bytes = orr__collectives_by(s, true, &count);
    uint32_t *ranks = orr_alloc(s->watch->tally_count, sizeof *ranks);
    const bool ok = by_time && by_bytes && ranks && orr__watch_tally_ranks(s, ranks);
    if (ok && count)
        print_rows(s, b, "collectives by time", by_time, count, ranks);
    if (ok && count && !has_same_top(by_time, by_bytes, count))
        print_rows(s, b, "collectives by bytes", by_bytes, count, ranks);
    orr_free(by_time);
    orr_free(by_bytes);
    orr_free(ranks);
    return ok;
}

/* ---- messages between nodes ---- */

static void print_messages(const orr_sim *s, orr_buf *b, uint8_t type, const char *what)
{
    const orr__tally *t = orr__messages_of(s, type);
    char count[ORR_UNIT_ROOM], bytes[ORR_UNIT_ROOM], time[ORR_UNIT_ROOM], longest[ORR_UNIT_ROOM];
    if (!t || t->count == 0)
        return;
    orr_buf_print(b, "%-16s  %12s  %12s  %12s  %12s\n", what, orr_count_text(t->count, count),
                  orr_bytes_text(t->bytes, bytes), orr__ns_text(t->time / t->count, time),
                  orr__ns_text(t->longest, longest));
}

static void print_point_to_point(const orr_sim *s, orr_buf *b)
{
    const orr__tally *sends = orr__messages_of(s, ORR_NODE_COMM_SEND);
    const orr__tally *receives = orr__messages_of(s, ORR_NODE_COMM_RECV);
    if ((!sends || !sends->count) && (!receives || !receives->count))
        return;
    orr_buf_print(b, "\n%-16s  %12s  %12s  %12s  %12s\n", "point to point", "count", "bytes",
                  "average", "longest");
    print_messages(s, b, ORR_NODE_COMM_SEND, "sends");
    print_messages(s, b, ORR_NODE_COMM_RECV, "receives");
}

/* ---- dimensions ---- */

static void print_dimension(const orr_sim *s, orr_buf *b, uint32_t k)
{
    static const char *const shapes[] = {"Ring", "Switch", "FullyConnected"};
    const orr_net_config *c = &s->net_config;
    const orr__traffic *t = &s->watch->traffic[k];
    char count[ORR_UNIT_ROOM], bytes[ORR_UNIT_ROOM], rate[ORR_UNIT_ROOM], share[ORR_UNIT_ROOM];
    const double end = (double)orr__watch_end_of_run(s), ranks = s->npu_count;
    const double per_rank = end > 0 ? (double)t->bytes / ranks / end : 0; /* bytes a ns */
    const double link = c->topology ? 0 : c->bandwidth[k] * (double)(1 << 30) / 1e9;
    orr_buf label = {0};
    if (c->topology)
        orr_buf_print(&label, "%u: %u ranks", k, c->npus[k]);
    else
        orr_buf_print(&label, "%u: %s %u", k, shapes[c->shape[k]], c->npus[k]);
    orr_buf_print(b, "%-22.*s %12s %11s %13s %12s\n", (int)label.len, (const char *)label.ptr,
                  orr_count_text(t->messages, count), orr_bytes_text(t->bytes, bytes),
                  orr_rate_text((orr_Bps)(per_rank * 1e9), rate),
                  orr_percent_text((uint64_t)(per_rank * 1e6), (uint64_t)(link * 1e6), share));
    b->failed |= label.failed;
    orr_buf_fini(&label);
}

static void print_dimensions(const orr_sim *s, orr_buf *b)
{
    orr_buf_print(b, "\n%-22s %12s %11s %13s %12s\n", "dimension", "messages", "bytes",
                  "rate a rank", "of one link");
    for (uint32_t k = 0; k < s->dims; k++)
        print_dimension(s, b, k);
}

/* ---- all of it ---- */

static void print_packets(const orr_sim *s, orr_buf *b)
{
    orr_packet_figures g;
    char data[ORR_UNIT_ROOM], again[ORR_UNIT_ROOM], pauses[ORR_UNIT_ROOM], marked[ORR_UNIT_ROOM];
    char dropped[ORR_UNIT_ROOM], timeouts[ORR_UNIT_ROOM];
    if (!orr_sim_packets(s, &g))
        return;
    orr_buf_print(
        b, "packets: %s with data, %s sent again; %s pauses, %s marked, %s lost, %s timeouts\n",
        orr_count_text(g.data_packets, data), orr_bytes_text(g.retransmitted_bytes, again),
        orr_count_text(g.pauses, pauses), orr_count_text(g.marked, marked),
        orr_count_text(g.dropped + g.lost, dropped), orr_count_text(g.timeouts, timeouts));
    orr__packet_put_notes(b, orr__net_packet_fabric(s->net));
}

static void print_foot(const orr_sim *s, orr_buf *b)
{
    char messages[ORR_UNIT_ROOM], events[ORR_UNIT_ROOM];
    orr_buf_print(b, "\nnetwork %s; %s messages, %s events\n", s->net_ops->name,
                  orr_count_text(s->messages, messages), orr_count_text(orr_sim_events(s), events));
    print_packets(s, b);
}

static orr_code print_all(const orr_sim *s, orr_buf *b, orr_error *err)
{
    print_head(s, b);
    if (!print_ranks(s, b) || !print_peak_memory(s, b) || !print_collectives(s, b))
        return orr_no_memory(err);
    print_point_to_point(s, b);
    print_dimensions(s, b);
    if (!orr__print_links(s, b))
        return orr_no_memory(err);
    if (s->opt.critical_path && s->finished == s->npu_count) {
        const orr_code code = orr__print_path(s, b, err);
        if (code)
            return code;
    }
    print_foot(s, b);
    return ORR_OK;
}

orr_code orr_sim_write_text(const orr_sim *s, const char *path, orr_error *err)
{
    orr_buf b = {0};
    if (!s->watch)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "a simulation with is_compat keeps no figures for this report");
    orr_code code = print_all(s, &b, err);
    if (!code)
        code = orr__save_report(&b, path, err);
    orr_buf_fini(&b);
    return code;
}
