/* SPDX-License-Identifier: Apache-2.0 */
/* linked.h - a linked trace in memory: host and device activity of one rank as one list of nodes.
 *
 *     host.json + device.json --(link)--> orr_linked --(convert)--> orr_trace
 *                     linked.json --(linked_read)--^
 *
 * It is the parsed contents of a linked JSON file.  The linker builds one without writing that
 * file; linked_read.c builds one from it.  The builder is responsible for three things only:
 * parents, times, and dependencies beyond the obvious.  The converter derives the rest: the order
 * on a thread, on a stream, launch before kernel, which nodes are communication and of what kind
 * and size.
 *
 * Invariants: ids are unique; nodes are in file order (the linker's output ascends by id, a host
 * trace alone does not).  A parent is an id, which may not exist.  Texts are borrowed: from the
 * mapped input files, which stay open as long as the linked trace, or from its arena.
 *
 * Time: nanoseconds on the clock of the files; on one clock for all ranks of a set if the linker
 * aligned them. */
#ifndef ORR_SOURCES_PYTORCH_LINKED_H
#define ORR_SOURCES_PYTORCH_LINKED_H

#include "base/io/input.h"
#include "base/memory/map.h"
#include "base/short_forms.h"

#include <orrery/lab/pytorch.h>

#define LINKED_NO_TIME INT64_MIN
#define LINKED_NO_COMM UINT32_MAX
#define LINKED_NO_ID UINT64_MAX

typedef enum linked_kind {
    LINKED_ON_HOST,   /* an operator, an annotation, a thread, the process */
    LINKED_ON_DEVICE, /* a kernel, a copy, a fill: a device event under the node that launched it */
    LINKED_GROUPS     /* "process_group:init": no work, describes the groups */
} linked_kind;

/* What a host node or a kernel tells about its communication.  Nodes without any have none; one
 * that states only part leaves the rest to its parents (a kernel to its record_param_comms).
 * Unknown strings are empty, unknown numbers -1. */
typedef struct linked_comm {
    orr_str collective;         /* "allreduce", "_allgather_base", "send", "all_to_allv", "wait" */
    orr_str dtype;              /* "Float", "BFloat16" */
    orr_str group, group_about; /* name, which is a decimal number as a rule; description */
    orr_str ranks;              /* of the group, as JSON: "[0, 1, 2, 3]"; may be cut off by "..." */
    orr_str in_split, out_split; /* of an all-to-all, as JSON: elements for each rank */
    int64_t in_elements, out_elements;
    int64_t group_size, rank_start, rank_stride;
    int64_t src, dst,
        tag;          /* a message: ranks of the job; the root of a rooted collective is in src */
    int64_t sequence; /* of the collective in its group, from the process group itself */
} linked_comm;

/* Six values of a node as JSON text, verbatim from the host trace.  Empty: missing. */
typedef struct linked_io {
    orr_str values, shapes, types;
} linked_io;

typedef struct linked_node {
    uint64_t id, parent; /* LINKED_NO_ID: no parent */
    orr_str name;        /* as text, not as JSON */
    orr_str op_schema;
    const linked_io *inputs, *outputs; /* device: may be those of its host node; NULL: none */
    int64_t start_ns;                  /* LINKED_NO_TIME: never measured */
    int64_t duration_ns;               /* with everything inside */
    int64_t own_ns;                    /* without the operators inside: exclusive_dur */
    int64_t wait_ns;                   /* of own_ns, time spent in synchronising calls */
    int64_t rf_id, fw_parent, seq_id, scope, tid, fw_tid;
    int64_t stream; /* device nodes */
    uint32_t comm;  /* which of comms; LINKED_NO_COMM */
    uint64_t byte;  /* where it stands in the file `path`, for messages; ORR_NO_BYTE */
    uint8_t kind;   /* linked_kind */
    uint8_t lacks;  /* bit i: attribute i of rf_id .. fw_tid, op_schema is missing */
    bool is_memory; /* device: a copy or a fill ("gpu_memcpy", "gpu_memset") */
} linked_node;

/* `to` starts only after `from` has ended.  Ids, so that edges may be added before their nodes.
 *
 *     THREAD  a host node of another thread (inter_thread_dep)      host   -> host
 *     SYNC    the host waited for the device (sync_dep)             device -> host
 *     EVENT   a stream waited for an event of another stream        device -> device
 *     WAIT    an asynchronous collective and what waits for it      any    -> any
 *     MARK    anything else that was seen in the traces             any    -> any
 *
 * Not listed, because the converter adds them: parent before child, operators of a thread in
 * sequence, host node before its kernels, kernels of a stream in sequence. */
typedef enum linked_edge_kind {
    LINKED_EDGE_THREAD,
    LINKED_EDGE_SYNC,
    LINKED_EDGE_EVENT,
    LINKED_EDGE_WAIT,
    LINKED_EDGE_MARK,
    LINKED_EDGE_KINDS
} linked_edge_kind;

typedef struct linked_edge {
    uint64_t from, to;
    uint8_t kind;
} linked_edge;

typedef struct linked_group {
    orr_str name, about;   /* "0", "default_pg" */
    const uint32_t *ranks; /* NULL: all ranks of the job, or only their number is known */
    uint32_t count;        /* 0: unknown too */
} linked_group;

struct orr_linked {
    const char *path;                      /* for messages: the linked file, or the host trace */
    const struct orr_rules_convert *rules; /* by which it was read; NULL: ours */
    orr_span text; /* its bytes, which `byte` of nodes counts; empty: unknown */
    orr_str schema, time;
    uint64_t pid, start_ts, finish_ts; /* as in the host trace */
    int64_t rank, world;               /* -1: not known */
    linked_node *nodes;
    linked_edge *edges;
    linked_comm *comms;
    linked_group *groups;
    size_t node_count, edge_count, comm_count, group_count;
    size_t node_room, edge_room, comm_room, group_room;
    orr_intern *group_names; /* the number of a name is its place in groups */
    bool is_out_of_memory;   /* a list of groups was not read for lack of memory */
    orr_arena *arena;        /* texts and arrays that are nowhere else */
    orr_input *input[2];     /* files that texts are borrowed from; closed with it */
};

/* Another program's conversion of linked traces; NULL: ours. */
typedef struct orr_rules_convert {
    /* Only these schemas, in their common form: every field that is read must be present and of its
     * type, others are ignored (chakra.md 4.1).  Ours takes any schema; id and name are enough. */
    const char *const *schemas;
    orr_code (*trace)(const orr_linked *l, orr_trace **out, orr_error *err);
    orr_code (*simulate)(const orr_linked *l, orr_line_sink say, void *sink, orr_error *err);
} orr_rules_convert;

/* An empty one; NULL: out of memory.  orr_linked_free ends it. */
orr_linked *linked_create(const char *path);

/* Each false when memory runs out.  The node's comm is set when `comm` is not NULL. */
bool linked_add(orr_linked *l, const linked_node *node, const linked_comm *comm);
bool linked_join(orr_linked *l, uint64_t from, uint64_t to, linked_edge_kind kind);
linked_comm linked_no_comm(void); /* one with nothing known */

/* Where a node stands in its file, for messages. */
orr_where linked_where(const orr_linked *l, const linked_node *n);

/* The groups described by a list of process groups, added to those known (a known name is
 * completed).  The list is JSON: the text inside "process_group:init", or pg_config of the device
 * trace's distributedInfo. If it is not a list, or anything in it is not understood: false, and
 * nothing is added.  Out of memory: false, and is_out_of_memory is set. */
bool linked_read_groups(orr_linked *l, orr_str list);
const linked_group *linked_find_group(const orr_linked *l, orr_str name);

#endif
