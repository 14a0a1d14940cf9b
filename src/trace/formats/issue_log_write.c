/* SPDX-License-Identifier: Apache-2.0 */
/* issue_log_write.c - a log of issued nodes as a timeline.
 *
 * It is in picoseconds, each time rounded once from its cycle, so errors do not accumulate. */
#include "issue_log_impl.h"

#include "base/memory/map.h"
#include "base/memory/sort.h"
#include "base/short_forms.h"

#include <inttypes.h>
#include <stdlib.h>

#define PS_PER_S 1000000000000

orr_code orr_issue_log_write_old(
    const orr_issue_log *log, uint32_t ranks, uint32_t mhz, const char *path, orr_error *err)
{
    if (log->rules)
        return log->rules->write(log, ranks, mhz, path, err);
    return orr_fail(err, ORR_EUSAGE, NULL, "the log was not read by the rules of another program");
}

/* ---- the timeline ---- */

typedef struct builder {
    const orr_issue_log *log;
    uint64_t hz;
    orr_timeline *t;
    uint32_t *texts; /* by name of the log */
    uint64_t *keys;  /* tracks: rank * kinds + kind, in order */
    size_t key_count;
    orr_map *tracks; /* key -> track */
} builder;

static uint64_t key_of(const issue_row *i)
{
    return (uint64_t)i->rank * ISSUE_KINDS + i->kind;
}

static int compare_keys(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool gather_keys(builder *b)
{
    size_t room = 0;
    for (size_t k = 0; k < b->log->count; k++) {
        const uint64_t key = key_of(&b->log->issues[k]);
        bool is_new = orr_map_find(b->tracks, key, UINT32_MAX) == UINT32_MAX;
        if (!is_new)
            continue;
        if (!orr_grow(&b->keys, &room, b->key_count + 1) || !orr_map_put(b->tracks, key, 0, NULL))
            return false;
        b->keys[b->key_count++] = key;
    }
    if (b->key_count)
        orr_sort(b->keys, b->key_count, sizeof *b->keys, compare_keys);
    return true;
}

static orr_code add_tracks(builder *b, orr_error *err)
{
    static const char *const names[ISSUE_KINDS] = {
        [ISSUE_OTHER] = "other",
        [ISSUE_LOCAL_MEMORY] = "local memory",
        [ISSUE_REMOTE_MEMORY] = "remote memory",
        [ISSUE_COMPUTE] = "compute",
        [ISSUE_COMMUNICATION] = "communication",
    };
    if (!gather_keys(b))
        return orr_no_memory(err);
    for (size_t i = 0; i < b->key_count; i++) {
        uint32_t track;
        const orr_code code =
            orr_timeline_add_track(b->t, (uint32_t)(b->keys[i] / ISSUE_KINDS),
                                   orr_str_of(names[b->keys[i] % ISSUE_KINDS]), &track, err);
        if (code)
            return code;
        if (!orr_map_put(b->tracks, b->keys[i], track, NULL))
            return orr_no_memory(err);
    }
    return ORR_OK;
}

static orr_code add_texts(builder *b, orr_error *err)
{
    const uint32_t count = orr_intern_count(b->log->names);
    b->texts = orr_alloc(count ? count : 1, sizeof *b->texts);
    if (!b->texts)
        return orr_no_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        const orr_code code =
            orr_timeline_add_text(b->t, orr_intern_get(b->log->names, i), &b->texts[i], err);
        if (code)
            return code;
    }
    return ORR_OK;
}

/* Rounded to the nearest; halves up. */
static bool time_of(const builder *b, int64_t cycle, orr_ps *out)
{
    const unsigned __int128 ps =
        ((unsigned __int128)(uint64_t)cycle * PS_PER_S + b->hz / 2) / b->hz;
    if (ps > INT64_MAX)
        return false;
    *out = (orr_ps)ps;
    return true;
}

static orr_code add_span(builder *b, const issue_row *i, orr_error *err)
{
    orr_timespan s = {.id = (uint64_t)i->node,
                      .has = ORR_SPAN_HAS_ID,
                      .track = orr_map_find(b->tracks, key_of(i), 0),
                      .name = b->texts[i->name],
                      .kind = i->span,
                      .is_open = !i->is_done};
    if (!time_of(b, i->issued, &s.start) ||
        !time_of(b, i->is_done ? i->ended : b->log->last, &s.end))
        return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_line(b->log->path, i->line, 1)),
                        "node %" PRId64 ": its cycles are more than 106 days at this frequency",
                        i->node);
    return orr_timeline_add_span(b->t, &s, NULL, err);
}

static orr_code build(builder *b, orr_error *err)
{
    orr_code code = orr_timeline_create(&b->t, err);
    if (!code)
        code = add_tracks(b, err);
    if (!code)
        code = add_texts(b, err);
    for (size_t k = 0; k < b->log->count && !code; k++)
        code = add_span(b, &b->log->issues[k], err);
    return code ? code : orr_timeline_seal(b->t, err);
}

orr_code orr_issue_log_timeline(const orr_issue_log *log,
                                uint64_t hz,
                                orr_timeline **out,
                                orr_error *err)
{
    builder b = {.log = log, .hz = hz};
    *out = NULL;
    if (hz == 0)
        return orr_fail(err, ORR_EUSAGE, NULL, "a frequency of 0 Hz");
    if (log->rules)
        return orr_fail(err, ORR_EUSAGE, NULL, "the log was read by the rules of another program");
    b.tracks = orr_map_create(16);
    const orr_code code = b.tracks ? build(&b, err) : orr_no_memory(err);
    if (code)
        orr_timeline_destroy(b.t);
    else
        *out = b.t;
    orr_map_destroy(b.tracks);
    orr_free(b.texts);
    orr_free(b.keys);
    return code;
}
