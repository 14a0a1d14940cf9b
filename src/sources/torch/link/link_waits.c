/* SPDX-License-Identifier: Apache-2.0 */
/* link_waits.c - what waited for the device, and for which operations (chakra.md 3.6).
 *
 * There are two sources.  With cuda_sync events enabled, each records what was waited for:
 *
 *     Context Sync        all streams         -> the call with its correlation
 *     Stream Sync         its stream          -> the call with its correlation
 *     Event Sync          a stream, up to a recorded event -> the call with its correlation
 *     Stream Wait Event   a stream, up to a recorded event -> the next operation on the waiting stream
 *
 * Without them there are only the calls.  Their names tell whether they wait for everything or for
 * something; the clock tells what that was: the operation that ended last before the call returned.
 * A copy that ended before its own call returned was waited for too.
 *
 * chakra_trace_link keeps those waits that lie on the critical path of the first step.  A wait that
 * is not on it may be on it on another machine, which is what simulation is about; so all are kept,
 * of all steps.
 * Invariant: `from` started before `to` ended, so that no dependency goes back in time. Cost:
 * linear except for binary searches; plus streams times device-wide synchronisations. */
#include "link_impl.h"

#include "base/memory/map.h"
#include "base/text/text.h"

/* The device operations of a stream in the order of starts, which is that of launches: a stream is
 * a queue. */
typedef struct finder {
    orr_link *l;
    orr_map *calls;       /* correlation -> the first call that has it */
    orr_map *stream_of;   /* stream and device -> its number */
    link_lists by_stream; /* events */
    /* when the operation at this place of by_stream.list was launched at the latest */
    double *launched;
    uint32_t stream_count;
    bool has_sync_events;
    orr_error *err;
} finder;

static uint32_t find_stream(const finder *f, int64_t stream, int device)
{
    return orr_map_find(f->stream_of, link_stream_key(stream, device), LINK_NONE);
}

/* The stream that a synchronisation means; either side may leave the device open. A profiler that
 * watches one device often writes no number at all, on one side or on both; device 0 is then the
 * one that is meant. */
static uint32_t find_awaited(const finder *f, int64_t stream, int device)
{
    const uint32_t exact = find_stream(f, stream, device);
    return exact != LINK_NONE ? exact : find_stream(f, stream, device < 0 ? 0 : -1);
}

/* ---- tables ---- */

static bool note_stream(finder *f, const kin_event *e, uint32_t *out)
{
    *out = find_stream(f, e->stream, e->device);
    if (*out != LINK_NONE)
        return true;
    *out = f->stream_count++;
    return orr_map_put(f->stream_of, link_stream_key(e->stream, e->device), *out, NULL);
}

/* One walk over the events, since everything later asks by stream and by time. */
static orr_code make_tables(finder *f)
{
    const kin_trace *k = &f->l->device;
    link_pairs pairs = {0};
    bool has_room = true;
    for (uint32_t i = 0; has_room && i < k->count; i++) {
        const kin_event *e = &k->events[i];
        uint32_t stream;
        f->has_sync_events |= e->kind == KIN_SYNC;
        if (kin_is_device(e))
            has_room = note_stream(f, e, &stream) && link_pairs_add(&pairs, stream, i);
    }
    f->launched = orr_alloc(pairs.count + 1, sizeof *f->launched);
    if (has_room && f->launched)
        return link_pairs_take(&pairs, f->stream_count, f->l->arena, &f->by_stream, f->err);
    orr_free(pairs.pairs);
    return orr_no_memory(f->err);
}

/* A stream runs what it is given in that order, so times of launch never fall along it. Where one
 * is not known, or two threads launch at once and clocks disagree, the latest so far keeps them
 * sorted: the searches below need that. */
static void find_launch_times(finder *f)
{
    for (uint32_t s = 0; s < f->stream_count; s++) {
        double latest = -1e300;
        for (uint32_t p = f->by_stream.first[s]; p < f->by_stream.first[s + 1]; p++) {
            const kin_event *e = link_event(f->l, f->by_stream.list[p]);
            const uint32_t call = orr_map_find(f->calls, (uint64_t)e->correlation, LINK_NONE);
            const double at = call == LINK_NONE ? latest : link_event(f->l, call)->ts;
            latest = at > latest ? at : latest;
            f->launched[p] = latest;
        }
    }
}

/* ---- questions ---- */

/* The last operation of a stream that had started before ts. Why starts: what a stream had begun
 * when the host was let go is the last it can have waited for, and what it began later it did not
 * wait for, whatever its correlation says. */
static uint32_t last_started(const finder *f, uint32_t stream, double ts)
{
    uint32_t low = f->by_stream.first[stream], high = f->by_stream.first[stream + 1];
    const uint32_t first = low;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (link_event(f->l, f->by_stream.list[mid])->ts < ts)
            low = mid + 1;
        else
            high = mid;
    }
    return low > first ? f->by_stream.list[low - 1] : LINK_NONE;
}

/* The place of the first operation of a stream that was launched at ts or later. */
static uint32_t first_launched(const finder *f, uint32_t stream, double ts)
{
    uint32_t low = f->by_stream.first[stream], high = f->by_stream.first[stream + 1];
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (f->launched[mid] < ts)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* By launches and not by starts: an event that is recorded stands in the queue behind what was
 * launched before it, also when that starts much later. */
static uint32_t last_launched(const finder *f, uint32_t stream, double ts)
{
    const uint32_t at = first_launched(f, stream, ts);
    return at > f->by_stream.first[stream] ? f->by_stream.list[at - 1] : LINK_NONE;
}

/* ---- notes ---- */

/* Checked here once for all ways in which waits are found: an edge against the clock would be a
 * cycle in the trace, and what the clock denies was not waited for. */
static orr_code note(finder *f, uint32_t from, uint32_t to)
{
    orr_link *l = f->l;
    if (from == LINK_NONE || to == LINK_NONE || from == to ||
        link_event(f->l, from)->ts >= kin_end(link_event(f->l, to)))
        return ORR_OK;
    return orr_push(l->waits, l->wait_count, l->wait_room, (link_wait){from, to})
               ? ORR_OK
               : orr_no_memory(f->err);
}

/* The call waited until all of these streams were empty. Of each stream only its last operation
 * counts: the ones before it are waited for through it. */
static orr_code note_streams(finder *f, uint32_t call, int device)
{
    const double end = kin_end(link_event(f->l, call));
    for (uint32_t s = 0; s < f->stream_count; s++) {
        const uint32_t last = last_started(f, s, end);
        const int of = last == LINK_NONE ? -1 : link_event(f->l, last)->device;
        if (device >= 0 && of >= 0 && of != device)
            continue;
        const orr_code code = note(f, last, call);
        if (code)
            return code;
    }
    return ORR_OK;
}

/* The operation that the event was recorded after. */
static uint32_t recorded(const finder *f, const kin_event *sync)
{
    if (sync->extra == KIN_NO_TEXT)
        return LINK_NONE;
    const kin_extra *x = &f->l->device.extras[sync->extra];
    if (x->wait_record == KIN_NO_NUMBER)
        return LINK_NONE;
    const uint32_t record = orr_map_find(f->calls, (uint64_t)x->wait_record, LINK_NONE);
    const uint32_t stream = find_awaited(f, x->wait_stream, sync->device);
    if (record == LINK_NONE || stream == LINK_NONE)
        return LINK_NONE;
    return last_launched(f, stream, link_event(f->l, record)->ts);
}

/* The next operation that the waiting thread launched on the waiting stream. Other threads launch
 * on the same stream, too, but what they launch does not follow from this call. */
static uint32_t next_on_stream(const finder *f, const kin_event *sync, uint32_t call)
{
    const uint32_t stream = find_awaited(f, sync->stream, sync->device);
    if (stream == LINK_NONE || call == LINK_NONE)
        return LINK_NONE;
    const kin_event *c = link_event(f->l, call);
    uint32_t p = first_launched(f, stream, c->ts);
    for (; p < f->by_stream.first[stream + 1]; p++) {
        const kin_event *e = link_event(f->l, f->by_stream.list[p]);
        const uint32_t launch = orr_map_find(f->calls, (uint64_t)e->correlation, LINK_NONE);
        if (launch != LINK_NONE && link_event(f->l, launch)->tid == c->tid)
            return f->by_stream.list[p];
    }
    return LINK_NONE;
}

static orr_code read_sync(finder *f, const kin_event *e)
{
    const orr_str name = link_name(f->l, e);
    const uint32_t call = orr_map_find(f->calls, (uint64_t)e->correlation, LINK_NONE);
    if (orr_str_is(name, "Stream Wait Event"))
        return note(f, recorded(f, e), next_on_stream(f, e, call));
    if (call == LINK_NONE)
        return ORR_OK;
    if (orr_str_is(name, "Context Sync"))
        return note_streams(f, call, e->device);
    if (orr_str_is(name, "Event Sync"))
        return note(f, recorded(f, e), call);
    const uint32_t stream = find_awaited(f, e->stream, e->device);
    if (!orr_str_is(name, "Stream Sync") || stream == LINK_NONE)
        return ORR_OK;
    return note(f, last_started(f, stream, kin_end(link_event(f->l, call))), call);
}

/* ---- without cuda_sync events ---- */

typedef enum call_kind { CALL_PLAIN, CALL_WAITS_FOR_ALL, CALL_WAITS } call_kind;

static call_kind kind_of_call(orr_str name)
{
    static const orr_word calls[] = {
        {"cudaDeviceSynchronize", CALL_WAITS_FOR_ALL},
        {"hipDeviceSynchronize", CALL_WAITS_FOR_ALL},
        {"cuCtxSynchronize", CALL_WAITS_FOR_ALL},
        {"cudaStreamSynchronize", CALL_WAITS},
        {"hipStreamSynchronize", CALL_WAITS},
        {"cuStreamSynchronize", CALL_WAITS},
        {"cudaEventSynchronize", CALL_WAITS},
        {"hipEventSynchronize", CALL_WAITS},
        {"cuEventSynchronize", CALL_WAITS},
    };
    return (call_kind)orr_word_find(calls, ORR_COUNT(calls), name, CALL_PLAIN);
}

/* Of what was launched before the call, what ended last before it returned. Names of calls do not
 * say which stream or event was meant. What ended last before the return is what kept the call;
 * that of another stream would have let it go earlier. */
static uint32_t awaited(const finder *f, const kin_event *call)
{
    uint32_t best = LINK_NONE;
    for (uint32_t s = 0; s < f->stream_count; s++) {
        const uint32_t last = last_launched(f, s, call->ts);
        if (last == LINK_NONE || kin_end(link_event(f->l, last)) > kin_end(call))
            continue;
        if (best == LINK_NONE || kin_end(link_event(f->l, last)) > kin_end(link_event(f->l, best)))
            best = last;
    }
    return best;
}

static orr_code read_call(finder *f, uint32_t i)
{
    const kin_event *e = link_event(f->l, i);
    switch (kind_of_call(link_name(f->l, e))) {
    case CALL_WAITS_FOR_ALL:
        return note_streams(f, i, -1);
    case CALL_WAITS:
        return note(f, awaited(f, e), i);
    default:
        return ORR_OK;
    }
}

/* A copy that was over before its call returned: a blocking one. */
static orr_code read_copy(finder *f, uint32_t i)
{
    const kin_event *e = link_event(f->l, i);
    const uint32_t call = orr_map_find(f->calls, (uint64_t)e->correlation, LINK_NONE);
    if (call == LINK_NONE || kin_end(e) > kin_end(link_event(f->l, call)))
        return ORR_OK;
    return note(f, i, call);
}

/* Where cuda_sync events are recorded they say all there is to know; guessing from calls beside
 * them would count the same wait twice. */
static orr_code read_all(finder *f)
{
    orr_code code = ORR_OK;
    for (uint32_t i = 0; !code && i < f->l->device.count; i++) {
        const kin_event *e = link_event(f->l, i);
        if (e->kind == KIN_SYNC)
            code = read_sync(f, e);
        else if (f->l->rules->only_recorded_waits)
            continue;
        else if (e->kind == KIN_RUNTIME && !f->has_sync_events)
            code = read_call(f, i);
        else if (e->kind == KIN_MEMCPY)
            code = read_copy(f, i);
    }
    return code;
}

orr_code link_find_waits(orr_link *l, orr_error *err)
{
    finder f = {.l = l, .calls = link_calls(l), .stream_of = orr_map_create(16), .err = err};
    orr_code code = f.calls && f.stream_of ? make_tables(&f) : orr_no_memory(err);
    if (!code) {
        find_launch_times(&f);
        code = read_all(&f);
    }
    orr_map_destroy(f.calls);
    orr_map_destroy(f.stream_of);
    orr_free(f.launched);
    return code;
}

/* ==== which streams waited for each other, when the profiler did not record it.
 *
 * Without "Stream Wait Event" records (they are off unless asked for) there are only the calls,
 * without their streams. Three things are known all the same:
 *
 *     a collective waits for what its caller had launched before, on any other stream: NCCL's own first step
 *     the next launch after a call of ...StreamWaitEvent waits: for the oldest collective that nobody waited for yet
 *     the first kernel of an optimizer step waits for all collectives before it: it reads what they made
 *
 * All of it only where the clock agrees: what was waited for had ended when the other started.
 * Cost: one walk over the events, in which every collective is put into a queue and taken out
 * once. */

/* Nanoseconds by which clocks of host and device may disagree. */
#define SLACK 1000.0

typedef struct walker {
    orr_link *l;
    link_lists launched; /* event of a call -> device operations it launched */
    orr_map *stream_of;  /* stream and device -> number */
    uint32_t *last;      /* by stream: the operation launched last, or LINK_NONE */
    size_t last_count, last_room;
    uint32_t *pending; /* by thread: calls of StreamWaitEvent since its last launch */
    double *optimizer; /* by thread: until when an optimizer step runs */
    uint32_t *queue;   /* collectives that nobody waited for yet, oldest first; LINK_NONE: taken */
    size_t count, room, first;
    bool failed;
} walker;

static bool is_collective(const walker *w, uint32_t i)
{
    const kin_event *e = link_event(w->l, i);
    return e->kind == KIN_KERNEL && link_is_nccl(link_name(w->l, e));
}

/* ---- notes ---- */

/* False: it contradicts the clock. The slack is for clocks of host and device that are aligned to
 * about a microsecond; what overlaps by more was not waited for. */
static bool note_wait(walker *w, uint32_t from, uint32_t to)
{
    orr_link *l = w->l;
    const kin_event *a = link_event(w->l, from), *b = link_event(w->l, to);
    if (kin_end(a) > b->ts + SLACK || a->ts >= b->ts)
        return false;
    if (!orr_grow(&l->waits, &l->wait_room, l->wait_count + 1)) {
        w->failed = true;
        return true;
    }
    l->waits[l->wait_count++] = (link_wait){from, to};
    return true;
}

static uint32_t stream_number(walker *w, const kin_event *e)
{
    const uint64_t key = link_stream_key(e->stream, e->device);
    uint32_t number = orr_map_find(w->stream_of, key, LINK_NONE);
    if (number != LINK_NONE)
        return number;
    number = (uint32_t)w->last_count;
    if (!orr_grow(&w->last, &w->last_room, w->last_count + 1) ||
        !orr_map_put(w->stream_of, key, number, NULL)) {
        w->failed = true;
        return 0;
    }
    w->last[w->last_count++] = LINK_NONE;
    return number;
}

/* ---- one device operation ---- */

/* What was launched last on every other stream. NCCL puts an event between the current stream and
 * its own before each collective. Which stream was current is not recorded, but it is the one that
 * launched last; what other streams still do did not start after. */
static void wait_for_others(walker *w, uint32_t op, uint32_t stream)
{
    for (uint32_t s = 0; s < w->last_count; s++) {
        if (s != stream && w->last[s] != LINK_NONE && !is_collective(w, w->last[s]))
            (void)note_wait(w, w->last[s], op);
    }
}

/* Up to `most` of the collectives in the queue that are on other streams; how many it were. In
 * order, as programs wait for what they started first: gradients are reduced and used in the order
 * of layers. */
static size_t wait_for_collectives(walker *w, uint32_t op, size_t most)
{
    size_t n = 0;
    for (size_t i = w->first; i < w->count && n < most; i++) {
        const uint32_t from = w->queue[i];
        if (from == LINK_NONE || link_event(w->l, from)->stream == link_event(w->l, op)->stream ||
            !note_wait(w, from, op))
            continue;
        w->queue[i] = LINK_NONE;
        n++;
    }
    while (w->first < w->count && w->queue[w->first] == LINK_NONE)
        w->first++;
    return n;
}

/* An optimizer reads every gradient, so it waits for all; a call that waits without saying for what
 * takes the oldest, and where no collective is left it meant the streams of computation. */
static void launch(walker *w, uint32_t op, const kin_event *call)
{
    const uint32_t stream = stream_number(w, link_event(w->l, op));
    if (w->failed)
        return;
    if (is_collective(w, op)) {
        wait_for_others(w, op, stream);
        if (!orr_grow(&w->queue, &w->room, w->count + 1))
            w->failed = true;
        else
            w->queue[w->count++] = op;
    } else if (call->ts < w->optimizer[call->tid]) {
        wait_for_collectives(w, op, SIZE_MAX);
    } else if (w->pending[call->tid] && !wait_for_collectives(w, op, w->pending[call->tid])) {
        wait_for_others(w, op, stream);
    }
    w->pending[call->tid] = 0;
    w->last[stream] = op;
}

/* ---- the walk ---- */

static orr_code list_launches(walker *w, orr_error *err)
{
    const kin_trace *k = &w->l->device;
    orr_map *calls = link_calls(w->l);
    link_pairs pairs = {0};
    bool ok = calls;
    for (uint32_t i = 0; ok && i < k->count; i++) {
        if (!kin_is_device(&k->events[i]))
            continue;
        const uint32_t call = orr_map_find(calls, (uint64_t)k->events[i].correlation, LINK_NONE);
        ok = call == LINK_NONE || link_pairs_add(&pairs, call, i);
    }
    orr_map_destroy(calls);
    if (ok)
        return link_pairs_take(&pairs, (uint32_t)k->count, w->l->arena, &w->launched, err);
    orr_free(pairs.pairs);
    return orr_no_memory(err);
}

static void walk(walker *w)
{
    for (uint32_t i = 0; i < w->l->device.count && !w->failed; i++) {
        const kin_event *e = link_event(w->l, i);
        if (e->kind == KIN_OPERATOR &&
            orr_str_has(link_name(w->l, link_event(w->l, i)), "Optimizer.step"))
            w->optimizer[e->tid] = kin_end(e);
        if (e->kind != KIN_RUNTIME)
            continue;
        w->pending[e->tid] += orr_str_has(link_name(w->l, link_event(w->l, i)), "StreamWaitEvent");
        for (uint32_t p = w->launched.first[i]; p < w->launched.first[i + 1]; p++)
            launch(w, w->launched.list[p], e);
    }
}

/* One record is enough: where they are switched on all of them are recorded, and a stream without
 * any did not wait. */
static bool is_recorded(const orr_link *l)
{
    for (size_t i = 0; i < l->device.count; i++) {
        const kin_event *e = &l->device.events[i];
        if (e->kind == KIN_SYNC && orr_str_is(link_name(l, e), "Stream Wait Event"))
            return true;
    }
    return false;
}

orr_code link_guess_streams(orr_link *l, orr_error *err)
{
    const size_t threads = (size_t)orr_intern_count(l->device.threads) + 1;
    walker w = {.l = l};
    if (is_recorded(l))
        return ORR_OK;
    w.stream_of = orr_map_create(16);
    w.pending = orr_arena_new(l->arena, threads, uint32_t);
    w.optimizer = orr_arena_new(l->arena, threads, double);
    orr_code code =
        w.stream_of && w.pending && w.optimizer ? list_launches(&w, err) : orr_no_memory(err);
    for (size_t t = 0; !code && t < threads; t++)
        w.optimizer[t] = -1;
    if (!code) {
        walk(&w);
        code = w.failed ? orr_no_memory(err) : ORR_OK;
    }
    orr_map_destroy(w.stream_of);
    orr_free(w.last);
    orr_free(w.queue);
    return code;
}
