/* SPDX-License-Identifier: Apache-2.0 */
/* kineto.h - a device trace: what Kineto, PyTorch's profiler, recorded on one rank.
 *
 * The file is streamed once; what stays is one fixed-size record per relevant event, and each text
 * once. */
#ifndef ORR_PYTORCH_KINETO_H
#define ORR_PYTORCH_KINETO_H

#include "base/formats/json.h"
#include "base/memory/map.h"
#include "base/short_forms.h"

#include <orrery/lab/link.h>

/* ---- counters: trouble is an error with --strict ---- */

typedef struct link_tally {
    orr_link_counts counts;
    bool is_strict;
} link_tally;

/* Counts one more.  Trouble in strict mode is an error, at `where` (NULL: no place). */
orr_code link_count(link_tally *t, orr_link_counter c, const orr_where *where, orr_error *err)
    ORR_MUST_CHECK;

/* One more host node whose parent does not precede it; the first few are remembered by id. */
orr_code link_count_later(link_tally *t,
                          const orr_where *where,
                          uint64_t id,
                          uint64_t parent,
                          orr_error *err) ORR_MUST_CHECK;

/* As link_count, for an event of the device trace `path` with a name and an index in
 * traceEvents. */
orr_code link_count_event(link_tally *t,
                          orr_link_counter c,
                          const char *path,
                          orr_str name,
                          uint32_t index,
                          orr_error *err) ORR_MUST_CHECK;

/* ---- events ---- */

#define KIN_NO_NUMBER INT64_MIN /* the event lacks the number */
enum { KIN_NO_TEXT = UINT32_MAX };

typedef enum kin_class {
    KIN_OTHER,      /* kept for its external id alone */
    KIN_OPERATOR,   /* cpu_op, user_annotation */
    KIN_STEP,       /* an annotation that has ProfilerStep in its name */
    KIN_RUNTIME,    /* a call of the runtime or the driver */
    KIN_KERNEL,     /* kernel */
    KIN_MEMCPY,     /* gpu_memcpy */
    KIN_MEMSET,     /* gpu_memset */
    KIN_SYNC,       /* cuda_sync: what a synchronising call waited for */
    KIN_ANNOTATION, /* gpu_user_annotation */
} kin_class;

enum {
    KIN_TS_REAL = 1,  /* the timestamp has a decimal point in the file */
    KIN_DUR_REAL = 2, /* so has the duration */
    KIN_LAUNCH = 4,   /* a launch by the names that chakra_trace_link knows */
    KIN_USER = 8,     /* an operator that is a user_annotation */
    KIN_TS_HUGE = 16, /* micros: an integer of more than 64 bits; start is the number of its text */
};

/* ts and dur are nanoseconds since the earliest event, which a double holds exactly; or, by the
 * rules, microseconds as in the file. */
typedef struct kin_event {
    double ts, dur;
    int64_t start_ns; /* on the clock of the file; or, by the rules, whole microseconds */
    int64_t external; /* -1: none */
    int64_t rf;       /* record-function id, or KIN_NO_NUMBER */
    int64_t correlation;
    int64_t stream; /* or KIN_NO_NUMBER */
    uint32_t tid;   /* which of the threads */
    uint32_t name;  /* which of the names */
    uint32_t ph;    /* which of the names; KIN_NO_TEXT: the event has none */
    uint32_t extra; /* which of the extras; KIN_NO_TEXT: none */
    uint8_t kind;   /* kin_class */
    uint8_t flags;
    int16_t device; /* -1: unknown */
    uint32_t index; /* place in traceEvents */
} kin_event;

/* Fields of few events. */
typedef struct kin_extra {
    uint32_t group;      /* JSON text of "Process Group Name", quotes and all */
    uint32_t collective; /* texts: names of the trace */
    uint32_t dtype, ranks;
    int64_t in_elements, out_elements, group_size;
    int64_t source, target, sequence; /* "Src Rank", "Dst Rank", "Seq" */
    int64_t wait_stream, wait_record; /* of a cuda_sync: wait_on_stream, ..._event_record_corr_id */
    int64_t bytes;
    int64_t graph_node; /* "graph node id": launched as part of a CUDA graph */
} kin_extra;

typedef struct kin_trace {
    kin_event *events; /* in the order of the file, after sorting in that of time */
    size_t count, room;
    kin_extra *extras;
    size_t extra_count, extra_room;
    orr_intern *texts;   /* of names and similar */
    orr_intern *threads; /* JSON texts of tid, in the order of the file */
    orr_str groups;      /* JSON text: the list of process groups; empty: missing */
    int64_t rank, world; /* KIN_NO_NUMBER: missing */
    int64_t base_ns;     /* the earliest start; set by sorting */
    bool has_step, has_events;
    bool has_phase;                                      /* an entry of the list is an event */
    bool has_real_start, has_wide_start, has_huge_start; /* micros: not whole; beyond 2^53; 2^63 */
    orr_arena *arena;
} kin_trace;

/* The fields of an event on which it can be refused. */
typedef struct kin_look {
    orr_str cat, ph;
    bool has_id;
    orr_json_value place;
} kin_look;

/* How device traces are read; all-zero is our way. */
typedef struct kin_rules {
    bool keeps_micros; /* times stay as in the file (chakra.md 3.3) */
    /* Refuses events; if set, a bad field is an error instead of being counted, negative times and
     * events without one stay, and a bare list of events is not a trace (chakra.md 3.3). */
    orr_code (*refuse)(const kin_look *event, orr_error *err);
} kin_rules;

typedef struct kin_options {
    const kin_rules *rules;
    link_tally *tally;
} kin_options;

orr_code kin_read(orr_json *j, const kin_options *opt, kin_trace *out, orr_error *err)
    ORR_MUST_CHECK;
void kin_fini(kin_trace *k);

static inline double kin_end(const kin_event *e)
{
    return e->ts + e->dur;
}
static inline bool kin_is_device(const kin_event *e)
{
    return e->kind >= KIN_KERNEL && e->kind <= KIN_MEMSET;
}

#endif
