/* SPDX-License-Identifier: Apache-2.0 */
/* chrome_trace_impl.h - a file of trace events while it is read.  Never installed.
 *
 * Names of processes and threads may come after the events they belong to, so nothing is added to
 * the timeline before the end of the file: spans, ends of arrows and samples wait in arrays, with
 * numbers of threads in the place of tracks. */
#ifndef ORR_CHROME_TRACE_IMPL_H
#define ORR_CHROME_TRACE_IMPL_H

#include <orrery/lab/chrome_trace.h>
#include <orrery/trace.h>

#include "chrome_event.h"

#include "base/memory/intern.h"
#include "base/memory/map.h"

#define CHROME_NONE UINT32_MAX

typedef struct chrome_process {
    uint32_t pid;    /* a word: the value as it stands in the file */
    uint32_t name;   /* a text of the timeline, or ORR_NO_TEXT */
    uint64_t number; /* the pid, when it is one; UINT64_MAX: it is none */
    uint32_t rank;   /* found at the end */
} chrome_process;

typedef struct chrome_thread {
    uint32_t process;
    uint32_t tid;     /* a word */
    uint32_t name;    /* a text; see has_name */
    uint32_t lane_of; /* the thread whose track it shares, or CHROME_NONE */
    uint32_t track;
    bool has_name, has_spans;
    uint32_t open; /* the innermost span that has begun and not ended; CHROME_NONE: none */
} chrome_thread;

typedef struct chrome_flow_end {
    uint32_t key; /* a word: category and id */
    uint32_t name;
    uint32_t thread;
    uint32_t span;    /* as our own files say it, or CHROME_NONE */
    orr_ps at, exact; /* exact: of the arrow itself; at: where viewers draw it */
    bool is_start;
} chrome_flow_end;

typedef struct chrome_sample {
    orr_ps at;
    int64_t value;
    uint32_t counter;
} chrome_sample;

typedef struct chrome_counter {
    uint32_t process, name, unit; /* texts */
} chrome_counter;

typedef struct chrome_file {
    orr_timeline *t;
    orr_json *json;
    const char *path;
    orr_error *err;
    orr_intern *words;
    orr_map *process_of, *thread_of, *counter_of;
    chrome_process *processes;
    chrome_thread *threads;
    orr_timespan *spans; /* .track: a thread */
    uint32_t *outer;     /* by span that was begun: the one around it */
    chrome_flow_end *flows;
    chrome_sample *samples;
    chrome_counter *counters;
    size_t process_count, process_room, thread_count, thread_room, span_count, span_room;
    size_t outer_room, flow_count, flow_room, sample_count, sample_room, counter_count;
    size_t counter_room;
    bool is_ours, is_kineto;
    bool has_events;
    bool has_rank;
    uint32_t rank;       /* with has_rank: distributedInfo */
    uint32_t first_span; /* the number that the first span of this file gets in the timeline */
    bool has_base;
    __int128 base; /* taken off all times: 0, unless they do not fit */
    orr_ps latest;
} chrome_file;

/* One event of the list (chrome_events.c). */
orr_code chrome_take(void *file, orr_json_value event);

/* At the end of a file: all into the timeline (chrome_join.c). */
orr_code chrome_join(chrome_file *c, uint32_t rank_otherwise);

/* What a span is, from its category, name and arguments (chrome_kinds.c).  May add texts. */
orr_code chrome_classify(chrome_file *c, const chrome_event *e, orr_timespan *span);

/* A small number in the arguments of an event; false: not there, or no such number. */
bool chrome_u64(const chrome_event *e, const char *key, uint64_t *out);
bool chrome_text(const chrome_event *e, const char *key, orr_str *out);

#endif
