/* SPDX-License-Identifier: Apache-2.0 */
/* link_impl.h - the state of a link, and the steps that fill it, in order. */
#ifndef ORR_PYTORCH_LINK_IMPL_H
#define ORR_PYTORCH_LINK_IMPL_H

#include "sources/torch/read/kineto.h"
#include "sources/torch/read/linked.h"

#include "base/io/input.h"
#include "base/memory/map.h"
#include "base/short_forms.h"
#include "sources/torch/convert/conversion.h"
#include "trace/known_names.h"

#include <orrery/set.h>

#define LINK_NONE UINT32_MAX

/* Lists of numbers, one list an item: item i has list[first[i] .. first[i + 1]). */
typedef struct link_lists {
    uint32_t *first, *list;
} link_lists;

/* The operators of the device trace by thread, with times.  "Operator o" is the o-th in time
 * order. */
typedef struct link_operators {
    uint32_t *event; /* of operator o */
    uint32_t count;
    link_lists by_thread; /* operators of a thread, in the order of time */
    double *own;          /* exclusive duration */
    uint8_t *own_is_real; /* it came from numbers with a fraction */
    uint32_t thread_count;
} link_operators;

/* Something continued only when a device operation had ended. */
typedef struct link_wait {
    uint32_t from; /* event: the device operation */
    /* event: the host call that returned then, or the device operation that started */
    uint32_t to;
} link_wait;

/* How another program links.  Ours is in link.c. */
typedef struct orr_rules_link {
    kin_rules read;
    /* Of operators that start together the shorter one comes first, lists of threads keep file
     * order, and operators longer than the enclosing one are an error (chakra.md 3.4). */
    bool shorter_first;
    /* those of cuda_sync events; nothing is inferred from calls and copies (chakra.md 3.6) */
    bool only_recorded_waits;
    orr_code (*link)(orr_link *l, orr_error *err);
    orr_code (*write)(const orr_link *l, const char *path, orr_error *err);
    void (*close)(orr_link *l); /* ends l->other; NULL: there is none */
} orr_rules_link;

struct orr_link {
    orr_link_options opt;
    const orr_rules_link *rules;
    link_tally tally;
    orr_arena *arena;
    const orr_span *host_bytes, *device_bytes; /* in memory, not in files; NULL: in files */
    const char *host_path, *device_path;
    kin_trace device;
    orr_linked *linked; /* by our rules: first the host trace, in the end everything */
    void *other;        /* what other rules keep */
    link_operators ops;
    link_wait *waits;
    size_t wait_count, wait_room;
};

/* link.c */
orr_code link_read_device(orr_link *l, orr_error *err) ORR_MUST_CHECK;
bool link_knows_schema(orr_str s);

/* Numbers recorded under items, in any order; then turned into lists, each in the order of
 * recording. */
typedef struct link_pairs {
    struct link_pair {
        uint32_t item, value;
    } * pairs;
    size_t count, room;
} link_pairs;

bool link_pairs_add(link_pairs *p, uint32_t item, uint32_t value);
/* Consumes the pairs, also on failure. */
orr_code link_pairs_take(
    link_pairs *p, uint32_t items, orr_arena *a, link_lists *out, orr_error *err) ORR_MUST_CHECK;

/* link_events.c: a stable sort by unsigned keys; the result is in a or in b. */
typedef struct link_sort_entry {
    uint64_t key;
    uint32_t item;
} link_sort_entry;
const link_sort_entry *link_sort_entries(link_sort_entry *a, link_sort_entry *b, size_t n);
uint64_t link_sort_key(double v); /* keys in the order of the numbers */

/* Events in the order of time; operators by thread; exclusive durations. */
orr_code link_sort(orr_link *l, orr_error *err) ORR_MUST_CHECK;
orr_code link_time(orr_link *l, orr_error *err) ORR_MUST_CHECK;

/* Keeps only what belongs to the requested step. */
orr_code link_pick_step(orr_link *l, orr_error *err) ORR_MUST_CHECK;
/* link_waits.c: what waited for the device, and for which operation; if not recorded, which streams
 * waited for which. */
orr_code link_find_waits(orr_link *l, orr_error *err) ORR_MUST_CHECK;
orr_code link_guess_streams(orr_link *l, orr_error *err) ORR_MUST_CHECK;
/* link_align.c: aligns two sequences: partner[i] is the index in b that matches a[i], or
 * LINK_NONE. */
orr_code link_align_rows(const uint32_t *a,
                         uint32_t n,
                         const uint32_t *b,
                         uint32_t m,
                         uint32_t *partner,
                         orr_error *err) ORR_MUST_CHECK;

/* Host nodes and operators to be paired; initially none are. */
typedef struct link_names {
    const uint32_t *by_id; /* host nodes by ascending id */
    const orr_map *host_by_id;
    uint32_t *op_of;     /* host node -> operator, or LINK_NONE */
    uint32_t *host_of;   /* operator -> host node, or LINK_NONE */
    uint32_t *parent_op; /* operator -> operator around it */
} link_names;

/* Pairs them by name and order.  Operators that start together are reordered to fit the host's
 * order, and parent_op is set from both traces. */
orr_code link_match_names(orr_link *l, const link_names *in, orr_error *err) ORR_MUST_CHECK;
/* link_merge.c: replaces the host trace's nodes and edges by those of both traces. */
orr_code link_merge(orr_link *l, orr_error *err) ORR_MUST_CHECK;

/* Correlation -> the first runtime call with it; NULL: out of memory. */
orr_map *link_calls(const orr_link *l);

static inline const kin_event *link_event(const orr_link *l, uint32_t i)
{
    return &l->device.events[i];
}

static inline orr_str link_name(const orr_link *l, const kin_event *e)
{
    return orr_intern_get(l->device.texts, e->name);
}

/* Streams of several devices in one trace are different streams. */
static inline uint64_t link_stream_key(int64_t stream, int device)
{
    return (uint64_t)stream ^ (uint64_t)(device + 1) << 48;
}

/* A kernel of NCCL or RCCL. */
static inline bool link_is_nccl(orr_str name)
{
    return orr_str_has(name, "ncclDevKernel") || orr_str_has(name, "ncclKernel");
}

/* The work of a back end on the host. */
static inline bool link_is_backend(orr_str name)
{
    return orr__comm_on_host(name);
}

static inline const kin_event *link_op(const orr_link *l, uint32_t op)
{
    return &l->device.events[l->ops.event[op]];
}

/* ---- jobs ----
 *
 * All ranks of a job, from files to a set: shared by the steps. */

/* The kind of a file, by its first members. */
typedef enum link_file_kind { LINK_FILE_OTHER, LINK_FILE_HOST, LINK_FILE_DEVICE } link_file_kind;

typedef struct link_file {
    const char *path;
    link_file_kind kind;
    int64_t pid; /* KIN_NO_NUMBER: not said */
    bool is_taken;
} link_file;

/* One rank in progress. */
typedef struct link_job_rank {
    orr_link_rank about;
    orr_link *link;
    conv_state *conversion; /* prepared, until the trace is written */
    orr_trace *trace;
} link_job_rank;

struct orr_link_job {
    orr_link_options opt;
    orr_arena *arena;
    link_file *files;
    size_t file_count, file_room;
    link_job_rank *ranks;
    uint32_t rank_count;
    orr_set *set;
    uint64_t inferred; /* collectives whose group was found by comparing ranks */
    uint64_t unknown;  /* ... could only be found so, and there is one rank */
};

/* The first event of all ranks, on the common clock; INT64_MAX: there is none. */
int64_t link_job_first(const orr_link_job *job);

#endif
