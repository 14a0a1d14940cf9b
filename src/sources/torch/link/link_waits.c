/* SPDX-License-Identifier: Apache-2.0 */
/* link_waits.c - who waited for the device, and for which of its operations (chakra.md 3.6).
 *
 * The profiler tells it in two ways.  With cuda_sync events on, each says what was waited for:
 *
 *     Context Sync        all streams         -> the call with its correlation
 *     Stream Sync         its stream          -> the call with its correlation
 *     Event Sync          a stream, up to a recorded event -> the call with its correlation
 *     Stream Wait Event   a stream, up to a recorded event -> the next operation on the waiting stream
 *
 * Without them there are only the calls.  Their names say whether they wait for everything or for something;
 * what the something was the clock tells: what ended last before the call returned.  A copy that ended before its
 * own call returned was waited for too.
 *
 * The reference keeps those waits that lie on the critical path of the first step.  A wait that is not on it today
 * is on it on another machine, and simulating is asking just that; so all are kept, of all steps.
 * Invariant: from started before `to` ended, so that no dependency made of it goes back in time.
 * Cost: linear but for binary searches; streams times synchronisations of the whole device. */
#include "link_impl.h"

#include "base/memory/map.h"
#include "base/text/text.h"

/* The device operations of a stream in the order of starts, which is that of launches: a stream is a queue. */
typedef struct finder {
    orr_link *l;
    orr_map *calls;       /* correlation -> the first call that has it */
    orr_map *stream_of;   /* stream and device -> its number */
    link_lists by_stream; /* events */
    double *
        launched; /* when the operation at this place of by_stream.list was launched at the latest */
    uint32_t stream_count;
    bool has_sync_events;
    orr_error *err;
} finder;

static const kin_event *event_at(const finder *f, uint32_t i)
{
    return &f->l->device.events[i];
}

static uint64_t stream_key(int64_t stream, int device)
{
    return (uint64_t)stream ^ (uint64_t)(device + 1) << 48;
}

static uint32_t find_stream(const finder *f, int64_t stream, int device)
{
    return orr_map_find(f->stream_of, stream_key(stream, device), LINK_NONE);
}

/* The stream that a synchronisation means; either side may leave the device open. */
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
    return orr_map_put(f->stream_of, stream_key(e->stream, e->device), *out, NULL);
}

static bool note_call(finder *f, const kin_event *e, uint32_t i)
{
    const uint64_t key = (uint64_t)e->correlation;
    return e->correlation == -1 || orr_map_find(f->calls, key, LINK_NONE) != LINK_NONE ||
           orr_map_put(f->calls, key, i, NULL);
}

static orr_code make_tables(finder *f)
{
    const kin_trace *k = &f->l->device;
    link_pairs pairs = {0};
    bool has_room = true;
    for (uint32_t i = 0; has_room && i < k->count; i++) {
        const kin_event *e = &k->events[i];
        uint32_t stream;
        f->has_sync_events |= e->kind == KIN_SYNC;
        if (e->kind == KIN_RUNTIME)
            has_room = note_call(f, e, i);
        else if (kin_is_device(e))
            has_room = note_stream(f, e, &stream) && link_pairs_add(&pairs, stream, i);
    }
    f->launched = orr_alloc(pairs.count + 1, sizeof *f->launched);
    if (has_room && f->launched)
        return link_pairs_take(&pairs, f->stream_count, f->l->arena, &f->by_stream, f->err);
    orr_free(pairs.pairs);
    return orr_no_memory(f->err);
}

static void find_launch_times(finder *f)
{
    for (uint32_t s = 0; s < f->stream_count; s++) {
        double latest = -1e300;
        for (uint32_t p = f->by_stream.first[s]; p < f->by_stream.first[s + 1]; p++) {
            const kin_event *e = event_at(f, f->by_stream.list[p]);
            const uint32_t call = orr_map_find(f->calls, (uint64_t)e->correlation, LINK_NONE);
            const double at = call == LINK_NONE ? latest : event_at(f, call)->ts;
            latest = at > latest ? at : latest;
            f->launched[p] = latest;
        }
    }
}

/* ---- questions ---- */

/* The last operation of a stream that had started before ts. */
static uint32_t last_started(const finder *f, uint32_t stream, double ts)
{
    uint32_t low = f->by_stream.first[stream], high = f->by_stream.first[stream + 1];
    const uint32_t first = low;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (event_at(f, f->by_stream.list[mid])->ts < ts)
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

static uint32_t last_launched(const finder *f, uint32_t stream, double ts)
{
    const uint32_t at = first_launched(f, stream, ts);
    return at > f->by_stream.first[stream] ? f->by_stream.list[at - 1] : LINK_NONE;
}

/* ---- notes ---- */

static orr_code note(finder *f, uint32_t from, uint32_t to)
{
    orr_link *l = f->l;
    if (from == LINK_NONE || to == LINK_NONE || from == to ||
        event_at(f, from)->ts >= kin_end(event_at(f, to)))
        return ORR_OK;
    if (!orr_grow(&l->waits, &l->wait_room, l->wait_count + 1))
        return orr_no_memory(f->err);
    l->waits[l->wait_count++] = (link_wait){from, to};
    return ORR_OK;
}

/* The call waited until all of these streams were empty. */
static orr_code note_streams(finder *f, uint32_t call, int device)
{
    const double end = kin_end(event_at(f, call));
    for (uint32_t s = 0; s < f->stream_count; s++) {
        const uint32_t last = last_started(f, s, end);
        const int of = last == LINK_NONE ? -1 : event_at(f, last)->device;
        if (device >= 0 && of >= 0 && of != device)
            continue;
        const orr_code code = note(f, last, call);
        if (code)
            return code;
    }
    return ORR_OK;
}

/* The operation that the recorded event stands behind. */
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
    return last_launched(f, stream, event_at(f, record)->ts);
}

/* The next operation that the waiting thread launched on the waiting stream. */
static uint32_t next_on_stream(const finder *f, const kin_event *sync, uint32_t call)
{
    const uint32_t stream = find_awaited(f, sync->stream, sync->device);
    if (stream == LINK_NONE || call == LINK_NONE)
        return LINK_NONE;
    const kin_event *c = event_at(f, call);
    uint32_t p = first_launched(f, stream, c->ts);
    for (; p < f->by_stream.first[stream + 1]; p++) {
        const kin_event *e = event_at(f, f->by_stream.list[p]);
        const uint32_t launch = orr_map_find(f->calls, (uint64_t)e->correlation, LINK_NONE);
        if (launch != LINK_NONE && event_at(f, launch)->tid == c->tid)
            return f->by_stream.list[p];
    }
    return LINK_NONE;
}

static orr_code read_sync(finder *f, const kin_event *e)
{
    const orr_str name = orr_intern_get(f->l->device.texts, e->name);
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
    return note(f, last_started(f, stream, kin_end(event_at(f, call))), call);
}

/* ---- without cuda_sync events ---- */

typedef enum call_kind { CALL_PLAIN, CALL_WAITS_FOR_ALL, CALL_WAITS } call_kind;

static call_kind kind_of_call(orr_str name)
{
    static const struct {
        const char *name;
        call_kind kind;
    } calls[] = {
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
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (orr_str_is(name, calls[i].name))
            return calls[i].kind;
    }
    return CALL_PLAIN;
}

/* Of what was launched before the call, what ended last before it returned. */
static uint32_t awaited(const finder *f, const kin_event *call)
{
    uint32_t best = LINK_NONE;
    for (uint32_t s = 0; s < f->stream_count; s++) {
        const uint32_t last = last_launched(f, s, call->ts);
        if (last == LINK_NONE || kin_end(event_at(f, last)) > kin_end(call))
            continue;
        if (best == LINK_NONE ||
            kin_end(event_at(f, last)) > kin_end(event_at(f, best)))
            best = last;
    }
    return best;
}

static orr_code read_call(finder *f, uint32_t i)
{
    const kin_event *e = event_at(f, i);
    switch (kind_of_call(orr_intern_get(f->l->device.texts, e->name))) {
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
    const kin_event *e = event_at(f, i);
    const uint32_t call = orr_map_find(f->calls, (uint64_t)e->correlation, LINK_NONE);
    if (call == LINK_NONE || kin_end(e) > kin_end(event_at(f, call)))
        return ORR_OK;
    return note(f, i, call);
}

static orr_code read_all(finder *f)
{
    orr_code code = ORR_OK;
    for (uint32_t i = 0; !code && i < f->l->device.count; i++) {
        const kin_event *e = event_at(f, i);
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
    finder f = {.l = l, .calls = orr_map_create(1024), .stream_of = orr_map_create(16), .err = err};
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
