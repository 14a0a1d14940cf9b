/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_impl.h - shared by the files of nccl_goal/: the job as it was seen, GPU by GPU.
 *
 *     exports -> nccl_trace (rows by GPU) -> nccl_calls (which rows belong to which call, which kernel ran it)
 *             -> nccl_comms (who talks to whom) -> nccl_context (tags) -> nccl_rank, nccl_expand -> nccl_pen
 *
 * Texts (communicator hashes, ids, streams, nodes) are numbers of one table.  NONE: no such thing. */
#ifndef ORR_SOURCES_NCCL_IMPL_H
#define ORR_SOURCES_NCCL_IMPL_H

#include <orrery/lab/nccl.h>
#include <orrery/lab/nsys.h>
#include <orrery/lab/progress.h>

#include "base/memory/buffer.h"
#include "base/memory/intern.h"
#include "base/memory/map.h"
#include "base/text/text.h"

#define ORR__NONE UINT32_MAX

/* algorithm: NCCL's numbers */
enum {
    ORR__TREE = 0,
    ORR__RING,
    ORR__COLLNET_DIRECT,
    ORR__COLLNET_CHAIN,
    ORR__NVLS,
    ORR__NVLS_TREE,
    ORR__PAT,
    ORR__ALGORITHMS
};
enum { ORR__LL = 0, ORR__LL128, ORR__SIMPLE };

typedef struct orr__info {
    int64_t start;
    uint64_t order;
    uint64_t root, algorithm, protocol, bytes, width, chunk_steps, slice_steps, step;
    uint32_t hash, stream;
} orr__info;

typedef struct orr__work {
    int64_t start;
    uint64_t order;
    uint64_t count, chunk, total, last, send_buffer, receive_buffer;
} orr__work;

typedef struct orr__transfer {
    int64_t start;
    uint64_t order;
    uint64_t bytes, peer, protocol, size, chunk;
    uint64_t first_id; /* of the messages it sends to or gets from its peer, our own way */
} orr__transfer;

typedef struct orr__kernel {
    int64_t start, end, stream;
    uint64_t order;
    uint8_t op;
} orr__kernel;

typedef struct orr__mark { /* a group's start (step 1) or end (-1) */
    int64_t start;
    uint64_t order;
    int32_t step;
} orr__mark;

typedef struct orr__call {
    int64_t start, end; /* of the call on the host */
    int64_t from, to;   /* of its kernel, with has_time */
    uint64_t order;
    uint64_t bytes, root, peer; /* as the call says */
    uint64_t sequence;          /* of the operation in its communicator */
    uint64_t context;           /* its part of tags */
    uint32_t hash, stream;
    uint32_t comm;                 /* its number, or ORR__NONE */
    uint32_t ident;                /* the communicator's text */
    uint32_t group;                /* or ORR__NONE */
    uint32_t info;                 /* or ORR__NONE */
    uint32_t first_row, row_count; /* works, or transfers of its direction */
    uint8_t op;
    bool has_time;
    bool is_payload; /* NCCL told of it by itself: no rows */
} orr__call;

/* A growing array of one kind of row. */
#define ORR__ROWS(T)        \
    struct {                \
        T *at;              \
        size_t count, room; \
    }

typedef enum orr__stage { ORR__EMPTY, ORR__LOADED, ORR__LINKED, ORR__TIMED } orr__stage;

typedef struct orr__gpu {
    uint32_t node; /* a text */
    uint32_t pid;
    uint32_t rank; /* in the schedule, or ORR__NONE */
    uint32_t first_file, last_file;
    orr__stage stage;
    bool is_wanted; /* rows of it are kept */
    bool is_by_time;
    bool has_window_start, has_window_end;
    int64_t window_start, window_end;
    uint64_t rows; /* in all files */
    uint64_t call_rows;
    uint64_t overlaps; /* calls that began before the one before them on their stream had ended */
    ORR__ROWS(orr__call) calls; /* by start */
    ORR__ROWS(uint32_t) events; /* calls with a time, by it */
    ORR__ROWS(orr__info) infos;
    ORR__ROWS(orr__work) works;
    ORR__ROWS(orr__transfer) sends;
    ORR__ROWS(orr__transfer) receives;
    ORR__ROWS(orr__kernel) kernels;
    ORR__ROWS(orr__mark) marks;
} orr__gpu;

/* ---- communicators ---- */

typedef struct orr__member { /* as announced */
    uint32_t gpu, hash, ident;
    uint32_t before; /* the one before it of the same GPU and hash */
    uint64_t rank, ranks;
} orr__member;

typedef struct orr__topology { /* a row of it */
    uint32_t node, hash;
    uint64_t channel, me;
    uint64_t order;
    uint64_t previous, next; /* of a ring */
    int64_t child[3], parent;
} orr__topology;

typedef struct orr__seat { /* a rank of a communicator */
    uint64_t rank;
    uint32_t gpu;
    uint32_t place;                  /* in the order they were named */
    uint32_t first_ring, ring_count; /* in orr__comm.rings */
    uint32_t first_tree, tree_count;
    uint64_t low, high; /* operations that were profiled on it: low to below high; high 0: none */
} orr__seat;

typedef struct orr__ring {
    uint64_t previous, next;
    uint32_t position; /* along the ring, from the lowest rank on */
} orr__ring;

typedef struct orr__tree {
    int64_t parent;
    uint64_t child[3];
    uint32_t children;
} orr__tree;

typedef struct orr__comm {
    uint32_t ident;
    uint64_t ranks; /* as announced; 0: not */
    uint32_t seats; /* how many; in orr__comms.seats from first_seat on, as they were announced */
    uint32_t first_seat;
    uint32_t channels;                  /* most works of a call: of an inferred one */
    uint64_t first_context, operations; /* our own tags */
    uint64_t low, high;                 /* operations that all ranks have: low to below high */
    bool is_inferred;
} orr__comm;

typedef struct orr__comms {
    ORR__ROWS(orr__comm) all;
    ORR__ROWS(orr__seat) seats;
    ORR__ROWS(uint32_t) by_rank; /* seats of each communicator by rank, from first_seat on */
    ORR__ROWS(orr__ring) rings;
    ORR__ROWS(orr__tree) trees;
    ORR__ROWS(uint32_t) ranked; /* GPUs by rank of the schedule */
    orr_map *of_ident;          /* text -> communicator */
    orr_map *seat_of;           /* communicator << 32 | gpu -> seat */
} orr__comms;

/* The seat that holds a rank of a communicator; NULL: none. */
const orr__seat *orr__comm_seat(const orr__comms *c, const orr__comm *comm, uint64_t rank);
/* The seat of a GPU in a communicator, the first when it has two; NULL: none. */
orr__seat *orr__comm_seat_of(const orr__comms *c, const orr__comm *comm, uint32_t gpu);
/* Where in the ring, or tree, of a channel a seat is; NULL: no such channel. */
const orr__ring *orr__comm_ring(const orr__comms *c, const orr__seat *seat, uint32_t channel);
const orr__tree *orr__comm_tree(const orr__comms *c, const orr__seat *seat, uint32_t channel);

/* Messages between two ranks of a communicator: numbers that were profiled, where they are received and where sent. */
typedef struct orr__pair {
    uint64_t low[2], high[2];
} orr__pair;

/* ---- the job ---- */

typedef struct orr__file {
    char *path;
    uint32_t node;
} orr__file;

struct orr__job;

/* What nccl_generator_v2 does differently (goal.md 5).  Ours: all zero. */
struct orr_rules_nccl {
    /* Reading (goal.md 5.2 to 5.4). */
    bool ignores_payloads;       /* NCCL's own events */
    bool believes_announcements; /* calls tell of communicators only when nobody announced any */
    bool needs_group_marks;      /* of each GPU, in pairs */
    bool has_open_borders;       /* a row on the border of two calls or groups belongs to neither */
    bool keeps_group_rows;       /* with the call they were found at */
    bool pairs_by_stream; /* kernels and calls: by stream, then by time; no letter for ncclReduce */
    bool has_one_group_stream; /* a group runs on the stream of its first call */
    bool keeps_unmatched;      /* calls and messages whose other side was not profiled */

    /* Tags (goal.md 5.5). */
    /* Contexts of a GPU's calls; NULL: their numbers in their communicators. */
    orr_code (*contexts)(struct orr__job *j, uint32_t gpu, orr_error *err);
    bool
        guesses_from_events; /* the parallelism: from calls with a time only, as its parallel path does */
    bool
        has_decimal_tags; /* message number times 1000, plus context; written at once, nothing measured */

    /* Writing (goal.md 5.6 to 5.8). */
    bool expands_literally;  /* channels as announced, and nothing made up */
    bool has_plain_ll128;    /* without the bytes of flags */
    bool has_any_cpu;        /* numbers past 255 too */
    bool takes_first_timing; /* of an NPKit table, not the mean */
    bool refuses_overlaps;   /* of calls on a stream */
    bool waits_for_sends;    /* also where they fit into NCCL's buffers; empty groups are written */
    bool orders_by_context;  /* streams by the context of their first call, calls by time */
};

static inline const orr_rules_nccl *orr__nccl_rules(const orr_rules_nccl *rules)
{
    static const orr_rules_nccl ours;
    return rules ? rules : &ours;
}

typedef struct orr__job {
    const orr_nccl_options *opt;
    const orr_rules_nccl *rules;
    orr_nccl_report *report;
    orr_arena *arena;
    orr_intern *texts;
    ORR__ROWS(orr__file) files;
    ORR__ROWS(orr__gpu) gpus; /* as they appear */
    orr_map *gpu_of;          /* node << 32 | pid */
    ORR__ROWS(orr__member) members;
    ORR__ROWS(orr__topology) rings;
    ORR__ROWS(orr__topology) trees;
    orr_map *member_of; /* gpu << 32 | hash -> the latest of members */
    orr__comms comms;
    ORR__ROWS(orr__pair) pairs;
    orr_map *pair_of;
    orr_intern *classes; /* of messages between two ranks: communicator and size */
    uint64_t first_class_context;
    uint64_t contexts; /* how many different ones tags have, our own way */
    orr_progress progress;
    uint64_t most_grid; /* blocks of an NCCL kernel */
    uint64_t held;      /* bytes of rows in memory */
    uint64_t budget;
    bool is_whole; /* all rows are in memory */
} orr__job;

/* nccl_files.c: the exports below some paths, in order, and the nodes they come from. */
orr_code orr__job_find_files(orr__job *j, const char *const *paths, size_t count, orr_error *err)
    ORR_MUST_CHECK;
orr_str orr__node_of_file(orr_str name);

/* nccl_trace.c: rows. */
orr_code orr__job_scan(orr__job *j, orr_error *err) ORR_MUST_CHECK;
/* Rows of this GPU in memory.  Those of others may go; what was found out about them stays. */
orr_code orr__job_load(orr__job *j, uint32_t gpu, orr_error *err) ORR_MUST_CHECK;
void orr__gpu_drop_rows(orr__gpu *g);

/* nccl_calls.c, nccl_kernels.c: calls get their rows, then their times. */
orr_code orr__gpu_link(orr__job *j, uint32_t gpu, orr_error *err) ORR_MUST_CHECK;
orr_code orr__gpu_time(orr__job *j, uint32_t gpu, orr_error *err) ORR_MUST_CHECK;
/* Whether there is something to write of it. */
bool orr__call_is_known(const orr__call *c);
static inline bool orr__op_is_p2p(uint8_t op)
{
    return op == ORR_NCCL_SEND || op == ORR_NCCL_RECV;
}

/* nccl_comms.c, nccl_log.c */
orr_code orr__comms_build(orr__job *j, orr_error *err) ORR_MUST_CHECK;
void orr__comms_fini(orr__comms *c);
typedef struct orr__log_line {
    uint32_t pid;
    uint64_t rank;
    orr_str ident; /* as it stands */
} orr__log_line;
/* The next line that announces a rank of a communicator.  ORR_END: none. */
typedef struct orr__log {
    const char *path;
    const char *at, *end;
    uint32_t line;
} orr__log;
orr_code orr__log_next(orr__log *l, orr__log_line *out, orr_error *err) ORR_MUST_CHECK;

/* nccl_context.c: the part of tags that belongs to a call. */
uint64_t orr__transfer_messages(const orr__transfer *t);
uint32_t orr__message_class(const orr__job *j, uint32_t comm, uint64_t bytes);

orr_code orr__gpu_ready(orr__job *j, uint32_t gpu, orr_error *err) ORR_MUST_CHECK; /* all of it */

/* Words for errors: "GPU 001200/1000". */
const char *orr__gpu_name(const orr__job *j, uint32_t gpu, char room[96]);
orr_str orr__text(const orr__job *j, uint32_t number);

#endif
