/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_trace_calls.c - from calls to operations: messages, waits, and the time between (goal.md 4).
 *
 * A call's message comes first in the text; then the calculation for the time before the call, which the
 * message waits for, and which waits for the call before.  A call that does not block is waited for with
 * irequires, and for good by MPI_Wait.
 * The order of lines, and the arithmetic on times, are SchedGen's. */
#include "mpi_trace_impl.h"

#include "base/text/number.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum { MAX_REQUESTS = 1 << 20, TALK = 400 };

void sgen_mpi_say(const mpi_run *run, const char *fmt, ...)
{
    char line[TALK];
    va_list args;
    if (!run->opt->talk)
        return;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    run->opt->talk(run->opt->talk_context, line);
}

static bool is_mpich(const mpi_run *run)
{
    if (run->opt->library == ORR_MPI_DEFAULT)
        return run->rules->has_mpich_numbers;
    return run->opt->library == ORR_MPI_MPICH;
}

static void comment(const mpi_rank *r, const char *name, const char *when)
{
    char words[64];
    if (!sgen_mpi_is_talkative(r->run))
        return;
    snprintf(words, sizeof words, "%s %s", name, when);
    sgen_gpen_comment(r->run->pen, words);
}

/* ---- time ---- */

static orr_code to_units(const mpi_rank *r, double us, uint64_t *out, orr_error *err)
{
    const double v = round(us * r->run->time_mult);
    if (v < 18446744073709549568.0) {
        *out = (uint64_t)v;
        return ORR_OK;
    }
    const orr_where at = orr_where_line(r->line.path, r->line.number, 1);
    return orr_fail(err, ORR_EINPUT, &at, "%g microseconds since the call before are too many", us);
}

/* SchedGen writes a negative time as a very large one; ours is none. */
static double gap_before(mpi_rank *r, double time, double end)
{
    const double gap = time - r->start;
    if (gap >= 0)
        return gap;
    r->run->remarks->backward += r->copy == 0;
    sgen_mpi_say(r->run, "negative operation time (time=%.*g this->start=%.*g end=%.*g)",
                 r->run->digits, gap, r->run->digits, r->start, r->run->digits, end);
    return 0;
}

orr_code sgen_mpi_rank_advance(mpi_rank *r, double time, double end, orr_error *err)
{
    goal_pen *pen = r->run->pen;
    uint64_t units = 0;
    const orr_code code = to_units(r, gap_before(r, time, end), &units, err);
    if (code)
        return code;
    if (sgen_mpi_is_talkative(r->run))
        sgen_mpi_say(r->run, " loclop: %llu", (unsigned long long)units);
    const uint64_t op = sgen_gpen_calc_on(pen, units, r->run->opt->cpu);
    for (size_t i = 0; i < r->next_count; i++)
        sgen_gpen_require(pen, r->next[i], op);
    for (unsigned i = 0; i < r->before_count; i++) {
        if (r->before_is_start)
            sgen_gpen_irequire(pen, op, r->before[i]);
        else
            sgen_gpen_require(pen, op, r->before[i]);
    }
    r->next_count = 0;
    r->before_count = 0;
    r->before_is_start = false;
    r->start = end;
    return ORR_OK;
}

orr_code sgen_mpi_rank_next(mpi_rank *r, uint64_t label, orr_error *err)
{
    if (!orr_grow(&r->next, &r->next_room, r->next_count + 1))
        return orr_no_memory(err);
    r->next[r->next_count++] = label;
    return ORR_OK;
}

/* One operation that waits for the time before it, and that what follows waits for. */
static orr_code step(
    mpi_rank *r, uint64_t label, double begin, double end, bool goes_on, orr_error *err)
{
    orr_code code = sgen_mpi_rank_next(r, label, err);
    if (code || (code = sgen_mpi_rank_advance(r, begin, end, err)))
        return code;
    r->before[r->before_count++] = label;
    r->before_is_start = goes_on;
    return ORR_OK;
}

static orr_code read_times(const mpi_rank *r, double *begin, double *end, orr_error *err)
{
    const orr_code code = sgen_mpi_line_time(&r->line, (mpi_place){1, 0}, begin, err);
    return code ? code : sgen_mpi_line_time(&r->line, r->line.call->end, end, err);
}

/* ---- requests ---- */

orr_code sgen_mpi_rank_request(mpi_rank *r, uint64_t request, uint64_t label, orr_error *err)
{
    if (label > UINT32_MAX) {
        const orr_where at = orr_where_line(r->line.path, r->line.number, 1);
        return orr_fail(err, ORR_EINPUT, &at, "more than 4,294,967,295 operations in one rank");
    }
    return orr_map_put(r->requests, request, (uint32_t)label, NULL) ? ORR_OK : orr_no_memory(err);
}

static orr_code wait_one(mpi_rank *r, orr_error *err)
{
    double begin, end;
    uint64_t request;
    orr_code code = sgen_mpi_line_u64(&r->line, r->line.call->request, &request, err);
    if (code || (code = read_times(r, &begin, &end, err)))
        return code;
    const uint32_t started = orr_map_find(r->requests, request, 0);
    if (!started)
        return ORR_OK; /* was waited for before, or of no rank */
    if (sgen_mpi_is_talkative(r->run)) {
        sgen_mpi_say(r->run, " wait  time %.*g req: %llu", r->run->digits, end - begin,
                     (unsigned long long)request);
        sgen_gpen_comment(r->run->pen, "wait");
    }
    const uint64_t label = sgen_gpen_calc(r->run->pen, 0);
    sgen_gpen_require(r->run->pen, label, started);
    orr_map_remove(r->requests, request);
    return step(r, label, begin, end, false, err);
}

/* A list of requests: how many, and where the first is. */
static orr_code read_requests(const mpi_rank *r, uint64_t *first, uint32_t *count, orr_error *err)
{
    int32_t n;
    orr_code code = sgen_mpi_line_int(&r->line, r->line.call->count, &n, err);
    if (code || (code = sgen_mpi_line_u64(&r->line, r->line.call->request, first, err)))
        return code;
    if (n < 0 || n > MAX_REQUESTS) {
        const orr_where at = sgen_mpi_line_where(&r->line, r->line.call->count);
        return orr_fail(err, ORR_EINPUT, &at, "%s: %d requests; 0 to %d are possible",
                        r->line.call->name, n, MAX_REQUESTS);
    }
    *count = (uint32_t)n;
    return ORR_OK;
}

/* SchedGen forgets the first request only.  A later wait at the same address may find one that is long
 * done: an edge more, which changes nothing, and is kept. */
static orr_code wait_all(mpi_rank *r, orr_error *err)
{
    const uint64_t step_bytes = is_mpich(r->run) ? 4 : 8;
    double begin, end;
    uint64_t first;
    uint32_t count;
    orr_code code = read_requests(r, &first, &count, err);
    if (code || (code = read_times(r, &begin, &end, err)))
        return code;
    if (sgen_mpi_is_talkative(r->run))
        sgen_mpi_say(r->run, " waitall  time %.*g req: %llu nreqs: %u", r->run->digits, end - begin,
                     (unsigned long long)first, count);
    const uint64_t label = sgen_gpen_calc(r->run->pen, 0);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t request = first + i * step_bytes;
        const uint32_t started = orr_map_find(r->requests, request, 0);
        if (!started)
            continue;
        if (sgen_mpi_is_talkative(r->run))
            sgen_mpi_say(r->run, " resolving req %llu", (unsigned long long)request);
        sgen_gpen_require(r->run->pen, label, started);
    }
    orr_map_remove(r->requests, first);
    return step(r, label, begin, end, false, err);
}

/* ---- messages ---- */

/* The number of a communicator for tags: its handle, or when it was used first. */
static orr_code communicator_of(mpi_rank *r, uint32_t handle, uint32_t *out, orr_error *err)
{
    bool is_new = false;
    *out = handle;
    if (!r->run->counts_communicators)
        return ORR_OK;
    *out = orr_map_find(r->communicators, handle, UINT32_MAX);
    if (*out != UINT32_MAX)
        return ORR_OK;
    *out = r->communicator_count++ & 0xff; /* as many as fit */
    return orr_map_put(r->communicators, handle, *out, &is_new) ? ORR_OK : orr_no_memory(err);
}

/* The communicator's last eight bits above, the tag below.  LogGOPSim's prints a negative sum as one of 64
 * bits, of which readers take 32. */
static orr_code join_tag(mpi_rank *r, uint32_t handle, int32_t tag, uint64_t *out, orr_error *err)
{
    uint32_t number = 0;
    const orr_code code = communicator_of(r, handle, &number, err);
    const uint32_t both = number << 24 | (uint32_t)tag;
    *out = r->run->rules->has_signed_tags ? (uint64_t)(int64_t)(int32_t)both : both;
    return code;
}

orr_code sgen_mpi_rank_tag(mpi_rank *r, int32_t tag, uint64_t *out, orr_error *err)
{
    uint64_t handle;
    const orr_code code = sgen_mpi_line_u64(&r->line, r->line.call->comm, &handle, err);
    return code ? code : join_tag(r, (uint32_t)handle, tag, out, err);
}

/* A rank of the trace as one of the schedule; -1: any. */
static orr_code peer_of(
    mpi_rank *r, mpi_place place, bool may_be_any, int64_t *out, bool *is_nobody, orr_error *err)
{
    const int32_t any = is_mpich(r->run) ? -2 : -1, nobody = is_mpich(r->run) ? -1 : -2;
    int32_t peer;
    const orr_code code = sgen_mpi_line_int(&r->line, place, &peer, err);
    if (code)
        return code;
    *is_nobody = peer == nobody;
    r->run->remarks->nobody += *is_nobody && r->copy == 0;
    *out = -1;
    if (*is_nobody || (peer == any && may_be_any))
        return ORR_OK;
    if (peer < 0 || (uint32_t)peer >= r->run->hosts) {
        const orr_where at = sgen_mpi_line_where(&r->line, place);
        return orr_fail(err, ORR_EINPUT, &at, "%s: rank %d is none of the ranks 0 to %u",
                        r->line.call->name, peer, r->run->hosts - 1);
    }
    *out = (int64_t)peer + (int64_t)r->run->hosts * r->copy;
    return ORR_OK;
}

static orr_code read_tag(
    const mpi_rank *r, mpi_place place, bool may_be_any, int32_t *out, orr_error *err)
{
    const orr_code code = sgen_mpi_line_int(&r->line, place, out, err);
    if (code || *out >= 0 || (may_be_any && *out == -1))
        return code;
    const orr_where at = sgen_mpi_line_where(&r->line, place);
    return orr_fail(err, ORR_EINPUT, &at, "%s: %d is not a tag", r->line.call->name, *out);
}

static orr_code count_sub_messages(mpi_rank *r, orr_error *err)
{
    int32_t ranks;
    const orr_code code =
        sgen_mpi_line_int(&r->line, sgen_mpi_after(r->line.call->comm, 2), &ranks, err);
    if (!code && ranks != (int32_t)r->run->hosts)
        r->run->remarks->sub_messages += r->copy == 0;
    return code;
}

/* What most calls that send or receive have. */
typedef struct message {
    double begin, end;
    uint64_t bytes, tag;
    int64_t peer;
    bool is_nobody, is_send;
    int32_t user_tag;
    uint64_t request;
} message;

static orr_code read_message(mpi_rank *r, bool is_send, message *m, orr_error *err)
{
    const mpi_call *c = r->line.call;
    orr_code code;
    m->is_send = is_send;
    m->request = 0;
    if ((code = read_times(r, &m->begin, &m->end, err)) ||
        (code = sgen_mpi_line_bytes(&r->line, c->count, c->size, &m->bytes, err)) ||
        (code = peer_of(r, c->peer, !is_send, &m->peer, &m->is_nobody, err)) ||
        (code = read_tag(r, c->tag, !is_send, &m->user_tag, err)) ||
        (code = count_sub_messages(r, err)))
        return code;
    return c->request.at ? sgen_mpi_line_u64(&r->line, c->request, &m->request, err) : ORR_OK;
}

static void say_message(const mpi_rank *r, const message *m)
{
    char request[40] = "";
    int32_t peer = 0;
    if (!sgen_mpi_is_talkative(r->run) || !r->line.call->word)
        return;
    if (r->line.call->request.at)
        snprintf(request, sizeof request, " req %llu", (unsigned long long)m->request);
    if (sgen_mpi_line_int(&r->line, r->line.call->peer, &peer, NULL))
        return;
    sgen_mpi_say(r->run, " %s %d time: %.*g size: %llu tag: %d%s", r->line.call->word, peer,
                 r->run->digits, m->end - m->begin, (unsigned long long)m->bytes, m->user_tag,
                 request);
}

/* "rsend to" -> "Rsend", as SchedGen heads its comments. */
static void comment_name(const mpi_call *c, char out[24])
{
    const char *from = c->word ? c->word : c->name + 4;
    size_t n = 0;
    for (; from[n] && from[n] != ' ' && n < 23; n++)
        out[n] = from[n];
    out[n] = '\0';
    if (out[0] >= 'a' && out[0] <= 'z')
        out[0] = (char)(out[0] - 'a' + 'A');
}

static uint64_t put_message(mpi_rank *r, const message *m)
{
    r->run->pen->tag = m->tag;
    return m->is_send ? sgen_gpen_send(r->run->pen, m->bytes, m->peer)
                      : sgen_gpen_recv(r->run->pen, m->bytes, m->peer);
}

static orr_code one_message(mpi_rank *r, bool is_send, bool goes_on, orr_error *err)
{
    char name[24];
    message m;
    orr_code code = read_message(r, is_send, &m, err);
    if (code || m.is_nobody)
        return code;
    if ((code = sgen_mpi_rank_tag(r, m.user_tag, &m.tag, err)))
        return code;
    say_message(r, &m);
    comment_name(r->line.call, name);
    comment(r, name, "begin");
    const uint64_t label = put_message(r, &m);
    if (goes_on && (code = sgen_mpi_rank_request(r, m.request, label, err)))
        return code;
    comment(r, name, "end");
    return step(r, label, m.begin, m.end, goes_on, err);
}

/* SchedGen receives with the tag it sends with.  That is kept where it can be right: when the two are the same,
 * or the receive takes any. */
static orr_code tags_of_both(mpi_rank *r, int32_t *send, int32_t *recv, orr_error *err)
{
    const mpi_call *c = r->line.call;
    const orr_code code = read_tag(r, c->tag, false, send, err);
    if (code)
        return code;
    const orr_code code2 = read_tag(r, c->tag2, true, recv, err);
    if (!code2 && *recv < 0 && r->run->rules->has_one_sendrecv_tag)
        *recv = *send;
    return code2;
}

static orr_code read_both(mpi_rank *r, message *s, message *v, orr_error *err)
{
    const mpi_call *c = r->line.call;
    orr_code code;
    *s = (message){.is_send = true};
    *v = (message){.is_send = false};
    if ((code = read_times(r, &s->begin, &s->end, err)) ||
        (code = sgen_mpi_line_bytes(&r->line, c->count, c->size, &s->bytes, err)) ||
        (code = sgen_mpi_line_bytes(&r->line, c->count2, c->size2, &v->bytes, err)) ||
        (code = peer_of(r, c->peer, false, &s->peer, &s->is_nobody, err)) ||
        (code = peer_of(r, c->peer2, true, &v->peer, &v->is_nobody, err)) ||
        (code = tags_of_both(r, &s->user_tag, &v->user_tag, err)) ||
        (code = count_sub_messages(r, err)) ||
        (code = sgen_mpi_rank_tag(r, s->user_tag, &s->tag, err)))
        return code;
    return sgen_mpi_rank_tag(r, v->user_tag, &v->tag, err);
}

static void say_both(const mpi_rank *r, const message *s, const message *v)
{
    int32_t to, from, tag;
    const mpi_call *c = r->line.call;
    if (!sgen_mpi_is_talkative(r->run) || sgen_mpi_line_int(&r->line, c->peer, &to, NULL) ||
        sgen_mpi_line_int(&r->line, c->peer2, &from, NULL) ||
        sgen_mpi_line_int(&r->line, c->tag2, &tag, NULL))
        return;
    sgen_mpi_say(r->run,
                 " sendrecv - send to %d size: %llu tag: %d; recv from %d size: %llu tag: %d; "
                 "time: %.*g",
                 to, (unsigned long long)s->bytes, s->user_tag, from, (unsigned long long)v->bytes,
                 tag, r->run->digits, s->end - s->begin);
}

static orr_code both_messages(mpi_rank *r, orr_error *err)
{
    message parts[2];
    uint64_t labels[2];
    unsigned count = 0;
    orr_code code = read_both(r, &parts[0], &parts[1], err);
    if (code || (parts[0].is_nobody && parts[1].is_nobody))
        return code;
    say_both(r, &parts[0], &parts[1]);
    comment(r, "Sendrecv", "begin");
    for (unsigned i = 0; i < 2; i++) {
        if (!parts[i].is_nobody)
            labels[count++] = put_message(r, &parts[i]);
    }
    comment(r, "Sendrecv", "end");
    for (unsigned i = 0; i < count; i++) {
        if ((code = sgen_mpi_rank_next(r, labels[i], err)))
            return code;
    }
    if ((code = sgen_mpi_rank_advance(r, parts[0].begin, parts[0].end, err)))
        return code;
    for (unsigned i = 0; i < count; i++)
        r->before[r->before_count++] = labels[i];
    return ORR_OK;
}

/* ---- persistent requests ---- */

static orr_code keep_request(mpi_rank *r, bool is_send, orr_error *err)
{
    message m;
    uint32_t at;
    uint64_t handle;
    orr_code code = read_message(r, is_send, &m, err);
    if (code || m.is_nobody ||
        (code = sgen_mpi_line_u64(&r->line, r->line.call->comm, &handle, err)))
        return code;
    say_message(r, &m);
    comment(r, "Storing persistent", is_send ? "send request" : "recv request");
    at = orr_map_find(r->persistent_by, m.request, UINT32_MAX);
    if (at == UINT32_MAX) {
        if (r->persistent_count >= UINT32_MAX ||
            !orr_grow(&r->persistent, &r->persistent_room, r->persistent_count + 1) ||
            !orr_map_put(r->persistent_by, m.request, (uint32_t)r->persistent_count, NULL))
            return orr_no_memory(err);
        at = (uint32_t)r->persistent_count++;
    }
    r->persistent[at] = (mpi_persistent){.is_send = is_send,
                                         .peer = m.peer,
                                         .bytes = m.bytes,
                                         .communicator = (uint32_t)handle,
                                         .tag = m.user_tag};
    r->start += (m.end - m.begin) * r->run->rules->init_share;
    return ORR_OK;
}

static orr_code start_request(
    mpi_rank *r, uint64_t request, double begin, double end, orr_error *err)
{
    const uint32_t at = orr_map_find(r->persistent_by, request, UINT32_MAX);
    if (sgen_mpi_is_talkative(r->run))
        sgen_mpi_say(r->run, " start persisten request %llu time %.*g req: %llu",
                     (unsigned long long)request, r->run->digits, end - begin,
                     (unsigned long long)request);
    if (at == UINT32_MAX)
        return ORR_OK; /* of no rank */
    const mpi_persistent *p = &r->persistent[at];
    message m = {.is_send = p->is_send, .peer = p->peer, .bytes = p->bytes};
    orr_code code = join_tag(r, p->communicator, p->tag, &m.tag, err);
    if (code)
        return code;
    comment(r, "Persistent request", "start");
    const uint64_t label = put_message(r, &m);
    code = sgen_mpi_rank_request(r, request, label, err);
    comment(r, "Persistent request", "end");
    return code ? code : step(r, label, begin, end, true, err);
}

static orr_code start_one(mpi_rank *r, orr_error *err)
{
    double begin, end;
    uint64_t request;
    orr_code code = sgen_mpi_line_u64(&r->line, r->line.call->request, &request, err);
    if (code || (code = read_times(r, &begin, &end, err)))
        return code;
    return start_request(r, request, begin, end, err);
}

static orr_code start_all(mpi_rank *r, orr_error *err)
{
    const uint64_t step_bytes = is_mpich(r->run) ? 4 : 8;
    double begin, end;
    uint64_t first;
    uint32_t count;
    orr_code code = read_requests(r, &first, &count, err);
    if (!code)
        code = read_times(r, &begin, &end, err);
    for (uint32_t i = 0; i < count && !code; i++) /* the first takes all the time there is */
        code = start_request(r, first + i * step_bytes, i ? r->start : begin, end, err);
    return code;
}

static orr_code free_request(mpi_rank *r, orr_error *err)
{
    double begin, end;
    uint64_t request;
    orr_code code = sgen_mpi_line_u64(&r->line, r->line.call->request, &request, err);
    if (code || (code = read_times(r, &begin, &end, err)))
        return code;
    if (sgen_mpi_is_talkative(r->run))
        sgen_mpi_say(r->run, " free persisten request %llu time %.*g req: %llu",
                     (unsigned long long)request, r->run->digits, end - begin,
                     (unsigned long long)request);
    if (orr_map_remove(r->persistent_by, request))
        comment(r, "Free", "persistent request");
    return ORR_OK;
}

/* ---- begin and end ---- */

static orr_code begin_trace(mpi_rank *r, orr_error *err)
{
    double time;
    const orr_code code = sgen_mpi_line_time(&r->line, r->line.call->end, &time, err);
    if (code)
        return code;
    if (r->has_begun) {
        const orr_where at = orr_where_line(r->line.path, r->line.number, 1);
        return orr_fail(err, ORR_EINPUT, &at, "%s again, or behind other calls",
                        r->line.call->name);
    }
    if (sgen_mpi_is_talkative(r->run))
        sgen_mpi_say(r->run, "starttime host %u = %.*g", r->host, r->run->digits, time);
    r->has_begun = true;
    r->trace_start = r->start = time;
    r->before_count = 0;
    return ORR_OK;
}

static orr_code end_trace(mpi_rank *r, orr_error *err)
{
    double time;
    const orr_code code = sgen_mpi_line_time(&r->line, r->line.call->end, &time, err);
    if (code)
        return code;
    sgen_mpi_say(r->run, "finalize (virtual) host %u = %.*g (%.*g)", sgen_mpi_number(r),
                 r->run->digits, time, r->run->digits, (time - r->trace_start) / 1e6);
    r->next_count = 0;
    return sgen_mpi_rank_advance(r, time, time, err);
}

/* ---- one line ---- */

/* Without MPI_Init SchedGen counts from the epoch; ours from the first call. */
static orr_code begin_late(mpi_rank *r, orr_error *err)
{
    double time;
    const bool is_late = !r->has_begun && !r->run->rules->starts_at_epoch;
    r->has_begun = true;
    if (!is_late)
        return ORR_OK;
    const orr_code code = sgen_mpi_line_time(&r->line, (mpi_place){1, 0}, &time, err);
    if (code)
        return code;
    r->trace_start = r->start = time;
    return ORR_OK;
}

/* Where a trace without MPI_Init begins, for the talk at its end. */
static void read_comment(mpi_rank *r)
{
    static const char words[] = "# Init clockdiff: ";
    const size_t n = sizeof words - 1;
    double time;
    if (r->line.text.len > n && memcmp(r->line.text.ptr, words, n) == 0 &&
        orr_text_double((orr_str){r->line.text.ptr + n, r->line.text.len - n}, &time))
        r->trace_start = time;
}

static void keep_name(char out[64], orr_str name)
{
    const size_t n = name.len < 63 ? name.len : 63;
    memcpy(out, name.ptr, n);
    out[n] = '\0';
}

static void not_matched(const mpi_rank *r)
{
    if (sgen_mpi_is_talkative(r->run))
        sgen_mpi_say(r->run, "NOT MATCHED: [%.*s] (good if empty)",
                     (int)(r->line.text.len < TALK ? r->line.text.len : TALK), r->line.text.ptr);
}

static orr_code message_call(mpi_rank *r, orr_error *err)
{
    switch (r->line.call->kind) {
    case MPI_SEND:
        return one_message(r, true, false, err);
    case MPI_RECV:
        return one_message(r, false, false, err);
    case MPI_ISEND:
        return one_message(r, true, true, err);
    case MPI_IRECV:
        return one_message(r, false, true, err);
    case MPI_SENDRECV:
        return both_messages(r, err);
    case MPI_WAIT:
        return wait_one(r, err);
    case MPI_WAITALL:
        return wait_all(r, err);
    case MPI_SEND_INIT:
        return keep_request(r, true, err);
    case MPI_RECV_INIT:
        return keep_request(r, false, err);
    case MPI_START:
        return start_one(r, err);
    case MPI_STARTALL:
        return start_all(r, err);
    default:
        return free_request(r, err);
    }
}

static orr_code known_call(mpi_rank *r, orr_error *err)
{
    const bool is_message = r->line.call->kind < MPI_BARRIER;
    if (is_message ? r->run->opt->skips_messages : r->run->opt->skips_collectives) {
        if (r->line.call->kind == MPI_IALLREDUCE)
            not_matched(r);
        return ORR_OK;
    }
    const orr_code code = begin_late(r, err);
    if (code)
        return code;
    return is_message ? message_call(r, err) : sgen_mpi_rank_collective(r, err);
}

orr_code sgen_mpi_rank_line(mpi_rank *r, orr_str text, orr_error *err)
{
    orr_mpi_trace_remarks *remarks = r->run->remarks;
    const orr_code code = sgen_mpi_line_split(&r->line, text, r->run->rules->calls, err);
    if (code)
        return code;
    if (!r->line.call) {
        read_comment(r);
        not_matched(r);
        return ORR_OK;
    }
    remarks->calls += r->copy == 0;
    switch (r->line.call->kind) {
    case MPI_INIT:
        return begin_trace(r, err);
    case MPI_FINALIZE:
        return end_trace(r, err);
    case MPI_IGNORED:
        return ORR_OK;
    case MPI_UNKNOWN:
        not_matched(r);
        if (r->copy == 0 && remarks->unknown++ == 0)
            keep_name(remarks->unknown_name, sgen_mpi_line_name(&r->line));
        return ORR_OK;
    default:
        return known_call(r, err);
    }
}

orr_code sgen_mpi_rank_init(mpi_rank *r, mpi_run *run, orr_error *err)
{
    *r = (mpi_rank){.run = run, .line = {.ranks = run->hosts}};
    r->requests = orr_map_create(16);
    r->communicators = orr_map_create(4);
    r->persistent_by = orr_map_create(4);
    return r->requests && r->communicators && r->persistent_by ? ORR_OK : orr_no_memory(err);
}

void sgen_mpi_rank_fini(mpi_rank *r)
{
    orr_map_destroy(r->requests);
    orr_map_destroy(r->communicators);
    orr_map_destroy(r->persistent_by);
    orr_free(r->persistent);
    orr_free(r->next);
    orr_free(r->line.starts);
    *r = (mpi_rank){0};
}
