/* SPDX-License-Identifier: Apache-2.0 */
/* kineto.h - a device trace: what Kineto, PyTorch's profiler, recorded on one rank.
 *
 * The file is read once, an event at a time; what stays is one record of fixed size for each event that can
 * matter, and texts once each. */
#ifndef ORR_PYTORCH_KINETO_H
#define ORR_PYTORCH_KINETO_H

#include "link_counts.h"

#include "base/formats/json.h"
#include "base/memory/intern.h"

#define ORR__NO_NUMBER INT64_MIN /* this event does not have the number */
enum { ORR__NO_TEXT = UINT32_MAX };

typedef enum orr__event_class {
    ORR__EVENT_OTHER,      /* kept for its external id alone */
    ORR__EVENT_OPERATOR,   /* cpu_op, user_annotation */
    ORR__EVENT_STEP,       /* an annotation that has ProfilerStep in its name */
    ORR__EVENT_RUNTIME,    /* a call of the runtime or the driver */
    ORR__EVENT_KERNEL,     /* kernel */
    ORR__EVENT_MEMCPY,     /* gpu_memcpy */
    ORR__EVENT_MEMSET,     /* gpu_memset */
    ORR__EVENT_SYNC,       /* cuda_sync: what a synchronising call waited for */
    ORR__EVENT_ANNOTATION, /* gpu_user_annotation */
} orr__event_class;

enum {
    ORR__EVENT_TS_REAL = 1,  /* the time stamp has a point in the file */
    ORR__EVENT_DUR_REAL = 2, /* so has the duration */
    ORR__EVENT_LAUNCH = 4, /* a call that starts something on the device, as the reference has it */
    ORR__EVENT_USER = 8,   /* an operator that is a user_annotation */
};

/* ts and dur are nanoseconds since the earliest event, which a double holds exactly; or, by the rules, microseconds
 * as in the file. */
typedef struct orr__event {
    double ts, dur;
    int64_t start_ns; /* by the clock of the file */
    int64_t external; /* -1: none */
    int64_t rf;       /* record-function id, or ORR__NO_NUMBER */
    int64_t correlation;
    int64_t stream; /* or ORR__NO_NUMBER */
    uint32_t tid;   /* which of the threads */
    uint32_t name;  /* which of the names */
    uint32_t ph;    /* which of the names; ORR__NO_TEXT: the event has none */
    uint32_t extra; /* which of the extras; ORR__NO_TEXT: none */
    uint8_t kind;   /* orr__event_class */
    uint8_t flags;
    int16_t device; /* -1: not said */
    uint32_t index; /* place in traceEvents */
} orr__event;

/* What few events have. */
typedef struct orr__event_extra {
    uint32_t group;      /* JSON text of "Process Group Name", quotes and all */
    uint32_t collective; /* texts: names of the trace */
    uint32_t dtype, ranks;
    int64_t in_elements, out_elements, group_size;
    int64_t source, target, sequence; /* "Src Rank", "Dst Rank", "Seq" */
    int64_t wait_stream, wait_record; /* of a cuda_sync: wait_on_stream, ..._event_record_corr_id */
    int64_t bytes;
    int64_t graph_node; /* "graph node id": launched as part of a CUDA graph */
} orr__event_extra;

typedef struct orr__kineto {
    orr__event *events; /* in the order of the file, after sorting in that of time */
    size_t count, room;
    orr__event_extra *extras;
    size_t extra_count, extra_room;
    orr_intern *texts;   /* of names and the like */
    orr_intern *threads; /* JSON texts of tid, in the order of the file */
    orr_str groups;      /* JSON text: the list of process groups; empty: not said */
    int64_t rank, world; /* ORR__NO_NUMBER: not said */
    int64_t base_ns;     /* the earliest start; set by sorting */
    bool has_step, has_events;
    orr_arena *arena;
} orr__kineto;

/* What a reader of events may see of one to refuse it. */
typedef struct kin_look {
    orr_str cat, ph;
    bool has_id;
    orr_json_value place;
} kin_look;

/* How device traces are read; all-zero is our way. */
typedef struct kin_rules {
    bool keeps_micros; /* times stay what they are in the file (chakra.md 3.3) */
    /* Refuses events; with it a bad field is an error instead of being counted, times below 0 and events without
     * one stay, and a bare list of events is no trace (chakra.md 3.3). */
    orr_code (*refuse)(const kin_look *event, orr_error *err);
} kin_rules;

typedef struct orr__kineto_options {
    const kin_rules *rules;
    orr__link_tally *tally;
} orr__kineto_options;

orr_code orr__kineto_read(orr_json *j,
                          const orr__kineto_options *opt,
                          orr__kineto *out,
                          orr_error *err) ORR_MUST_CHECK;
void orr__kineto_fini(orr__kineto *k);

static inline double orr__event_end(const orr__event *e)
{
    return e->ts + e->dur;
}
static inline bool orr__event_is_device(const orr__event *e)
{
    return e->kind >= ORR__EVENT_KERNEL && e->kind <= ORR__EVENT_MEMSET;
}

#endif
