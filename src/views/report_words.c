/* SPDX-License-Identifier: Apache-2.0 */
/* report_words.c - the bottleneck in one sentence.
 *
 * What a rank spends most of its time on, on average, beside useful work: a run that computes four fifths of the
 * time has little to gain elsewhere, and the sentence says so. */
#include "report_impl.h"

#include <orrery/lab/units.h>

typedef struct shares {
    double compute, exposed, memory, host, idle, waiting;
} shares;

static shares shares_of(const orr__study *s)
{
    shares sum = {0};
    const double all = (double)orr__total(s) * s->rank_count;
    for (uint32_t k = 0; k < s->rank_count && all > 0; k++) {
        const orr__rank_times *r = &s->ranks[k];
        sum.compute += (double)r->compute / all;
        sum.exposed += (double)r->exposed / all;
        sum.memory += (double)r->memory / all;
        sum.host += (double)r->host / all;
        sum.idle += (double)r->idle / all;
        sum.waiting += (double)r->waiting / all;
    }
    return sum;
}

static void put_percent(orr_buf *b, double share)
{
    char text[ORR_UNIT_ROOM];
    orr_buf_text(b, orr_percent_text((uint64_t)(share * 1e6 + 0.5), 1000000, text));
}

static void put_collective(const orr__study *s, orr_buf *b)
{
    const orr__collective_row *r = &s->rows[0];
    char size[ORR_UNIT_ROOM];
    if (s->row_count == 0 || r->time == r->overlapped)
        return;
    orr_buf_print(b, ", most of it in %s", orr__collective_text(r->collective));
    if (r->size)
        orr_buf_print(b, " of %s", orr_bytes_text(r->size, size));
    if (r->members)
        orr_buf_print(b, " among %u ranks", r->members);
}

/* The stage that waits longest. */
static void put_stage(const orr__study *s, orr_buf *b)
{
    uint32_t worst = 0;
    for (uint32_t k = 1; k < s->stage_count; k++)
        if (s->stages[k].waiting / s->stages[k].count >
            s->stages[worst].waiting / s->stages[worst].count)
            worst = k;
    orr_buf_print(b, "; stage %u (ranks %s) waits longest", worst, s->stages[worst].ranks);
}

static void put_best_change(const orr__study *s, orr_buf *b)
{
    const orr_report_what_if *best = NULL;
    const double now = (double)orr__total(s) / 1000;
    for (size_t i = 0; i < s->run->what_if_count; i++)
        if (!best || s->run->what_ifs[i].time_ns < best->time_ns)
            best = &s->run->what_ifs[i];
    const double gain = best && now > 0 ? 1 - (double)best->time_ns / now : 0;
    if (gain < 0.005)
        return;
    orr_buf_print(b, " Of the changes tried, %s helps most: ", best->change);
    put_percent(b, gain);
    orr_buf_text(b, " less time.");
}

static void put_bottleneck(const orr__study *s, const shares *v, orr_buf *b)
{
    const double others = v->memory > v->host ? v->memory : v->host;
    if (s->stage_count && v->waiting > v->exposed - (v->waiting - v->idle) && v->waiting > others &&
        v->waiting > 0.1) {
        orr_buf_text(b, "the pipeline: ranks wait for other stages ");
        put_percent(b, v->waiting);
        orr_buf_text(b, " of the time");
        put_stage(s, b);
    } else if (v->exposed >= v->idle && v->exposed >= others && v->exposed > 0.1) {
        orr_buf_text(b, "communication that no computation hides: ");
        put_percent(b, v->exposed);
        orr_buf_text(b, " of the time");
        put_collective(s, b);
    } else if (v->idle >= others && v->idle > 0.1) {
        orr_buf_text(b, "waiting: ranks have nothing to do ");
        put_percent(b, v->idle);
        orr_buf_text(b, " of the time");
    } else if (others > 0.1) {
        orr_buf_text(b, v->memory > v->host ? "memory transfers: " : "work on the host: ");
        put_percent(b, others);
        orr_buf_text(b, " of the time");
    } else {
        orr_buf_text(b, "computation: little else is in its way");
    }
}

void orr__put_sentence(const orr__study *s, orr_buf *b)
{
    if (s->run->stall) {
        orr_buf_print(b, "The run deadlocked: %s.", s->run->stall);
        return;
    }
    if (s->run->is_flows && s->run->fabric) {
        orr__put_fabric_sentence(s, b);
        return;
    }
    if (s->rank_count == 0 || orr__total(s) <= 0) {
        orr_buf_text(b, "Nothing happened: no time passed in this run.");
        return;
    }
    const shares v = shares_of(s);
    orr_buf_text(b, "A rank computes ");
    put_percent(b, v.compute);
    orr_buf_text(b, " of the time; the bottleneck is ");
    put_bottleneck(s, &v, b);
    orr_buf_byte(b, '.');
    put_best_change(s, b);
}
