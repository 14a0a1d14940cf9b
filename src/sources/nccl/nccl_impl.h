/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_impl.h - shared by the files of src/sources/nccl: the profiled job, GPU by GPU.
 *
 *     exports -> nccl_trace (rows by GPU) -> nccl_calls (which rows belong to which call, which kernel ran it)
 *             -> nccl_comms (members) -> nccl_context (tags) -> nccl_goal, nccl_expand -> nccl_pen
 *
 * Texts (communicator hashes, ids, streams, nodes) are interned in one table.  NONE: none. */
#ifndef ORR_SOURCES_NCCL_IMPL_H
#define ORR_SOURCES_NCCL_IMPL_H

#include <orrery/lab/nccl.h>
#include <orrery/lab/nsys.h>
#include <orrery/lab/progress.h>

#include "base/memory/buffer.h"
#include "base/memory/map.h"
#include "base/short_forms.h"
#include "models/collective/coll_plan.h"

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

typedef struct nccl_info {
    int64_t start;
    uint64_t order;
    uint64_t root, algorithm, protocol, bytes, width, chunk_steps, slice_steps, step;
    uint32_t hash, stream;
} nccl_info;

typedef struct nccl_work {
    int64_t start;
    uint64_t order;
    uint64_t count, chunk, total, last, send_buffer, receive_buffer;
} nccl_work;

typedef struct nccl_transfer {
    int64_t start;
    uint64_t order;
    uint64_t bytes, peer, protocol, size, chunk;
    uint64_t first_id; /* of the messages it sends to or gets from its peer, our own way */
} nccl_transfer;

typedef struct nccl_kernel {
    int64_t start, end, stream;
    uint64_t order;
    uint8_t op;
} nccl_kernel;

typedef struct nccl_mark { /* a group's start (step 1) or end (-1) */
    int64_t start;
    uint64_t order;
    int32_t step;
} nccl_mark;

typedef struct nccl_call {
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
} nccl_call;

/* A growing array of one kind of row. */
#define ORR__ROWS(T)        \
    struct {                \
        T *at;              \
        size_t count, room; \
    }

typedef enum nccl_stage { ORR__EMPTY, ORR__LOADED, ORR__LINKED, ORR__TIMED } nccl_stage;

typedef struct nccl_gpu {
    uint32_t node; /* a text */
    uint32_t pid;
    uint32_t rank; /* in the schedule, or ORR__NONE */
    uint32_t first_file, last_file;
    nccl_stage stage;
    bool is_wanted; /* rows of it are kept */
    bool is_by_time;
    bool has_window_start, has_window_end;
    int64_t window_start, window_end;
    uint64_t rows; /* in all files */
    uint64_t call_rows;
    uint64_t overlaps; /* calls that began before the one before them on their stream had ended */
    ORR__ROWS(nccl_call) calls; /* by start */
    ORR__ROWS(uint32_t) events; /* calls with a time, by it */
    ORR__ROWS(nccl_info) infos;
    ORR__ROWS(nccl_work) works;
    ORR__ROWS(nccl_transfer) sends;
    ORR__ROWS(nccl_transfer) receives;
    ORR__ROWS(nccl_kernel) kernels;
    ORR__ROWS(nccl_mark) marks;
} nccl_gpu;

/* ---- communicators ---- */

typedef struct nccl_member { /* as announced */
    uint32_t gpu, hash, ident;
    uint32_t before; /* the one before it of the same GPU and hash */
    uint64_t rank, ranks;
} nccl_member;

typedef struct nccl_topology { /* a row of it */
    uint32_t node, hash;
    uint64_t channel, me;
    uint64_t order;
    uint64_t previous, next; /* of a ring */
    int64_t child[3], parent;
} nccl_topology;

typedef struct nccl_seat { /* a rank of a communicator */
    uint64_t rank;
    uint32_t gpu;
    uint32_t place;                  /* in the order they were named */
    uint32_t first_ring, ring_count; /* in nccl_comm.rings */
    uint32_t first_tree, tree_count;
    uint64_t low, high; /* operations that were profiled on it: low to below high; high 0: none */
} nccl_seat;

typedef struct nccl_ring {
    uint64_t previous, next;
    uint32_t position; /* along the ring, from the lowest rank on */
} nccl_ring;

typedef struct nccl_tree {
    int64_t parent;
    uint64_t child[3];
    uint32_t children;
} nccl_tree;

typedef struct nccl_comm {
    uint32_t ident;
    uint64_t ranks; /* as announced; 0: not */
    uint32_t seats; /* how many; in nccl_comms.seats from first_seat on, as they were announced */
    uint32_t first_seat;
    uint32_t channels;                  /* most works of a call: of an inferred one */
    uint64_t first_context, operations; /* our own tags */
    uint64_t low, high;                 /* operations that all ranks have: low to below high */
    bool is_inferred;
} nccl_comm;

typedef struct nccl_comms {
    ORR__ROWS(nccl_comm) all;
    ORR__ROWS(nccl_seat) seats;
    ORR__ROWS(uint32_t) by_rank; /* seats of each communicator by rank, from first_seat on */
    ORR__ROWS(nccl_ring) rings;
    ORR__ROWS(nccl_tree) trees;
    ORR__ROWS(uint32_t) ranked; /* GPUs by rank of the schedule */
    orr_map *of_ident;          /* text -> communicator */
    orr_map *seat_of;           /* communicator << 32 | gpu -> seat */
} nccl_comms;

/* The seat that holds a rank of a communicator; NULL: none. */
const nccl_seat *nccl_comm_seat(const nccl_comms *c, const nccl_comm *comm, uint64_t rank);
/* The seat of a GPU in a communicator, the first when it has two; NULL: none. */
nccl_seat *nccl_comm_seat_of(const nccl_comms *c, const nccl_comm *comm, uint32_t gpu);
/* Where in the ring, or tree, of a channel a seat is; NULL: no such channel. */
const nccl_ring *nccl_comm_ring(const nccl_comms *c, const nccl_seat *seat, uint32_t channel);
const nccl_tree *nccl_comm_tree(const nccl_comms *c, const nccl_seat *seat, uint32_t channel);

/* Messages between two ranks of a communicator: numbers that were profiled, where they are received
 * and where sent. */
typedef struct nccl_pair {
    uint64_t low[2], high[2];
} nccl_pair;

/* ---- the job ---- */

typedef struct nccl_file {
    char *path;
    uint32_t node;
} nccl_file;

struct nccl_job;

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
    orr_code (*contexts)(struct nccl_job *j, uint32_t gpu, orr_error *err);
    /* The parallelism: from calls with a time only, as its parallel path does. */
    bool guesses_from_events;
    /* Message number times 1000, plus context; written at once, nothing measured. */
    bool has_decimal_tags;

    /* Writing (goal.md 5.6 to 5.8). */
    bool expands_literally;  /* channels as announced, and nothing made up */
    bool has_plain_ll128;    /* without the bytes of flags */
    bool has_any_cpu;        /* numbers past 255 too */
    bool takes_first_timing; /* of an NPKit table, not the mean */
    bool refuses_overlaps;   /* of calls on a stream */
    bool waits_for_sends;    /* also where they fit into NCCL's buffers; empty groups are written */
    bool orders_by_context;  /* streams by the context of their first call, calls by time */
};

static inline const orr_rules_nccl *nccl_nccl_rules(const orr_rules_nccl *rules)
{
    static const orr_rules_nccl ours;
    return rules ? rules : &ours;
}

typedef struct nccl_job {
    const orr_nccl_options *opt;
    const orr_rules_nccl *rules;
    orr_nccl_report *report;
    orr_arena *arena;
    orr_intern *texts;
    ORR__ROWS(nccl_file) files;
    ORR__ROWS(nccl_gpu) gpus; /* as they appear */
    orr_map *gpu_of;          /* node << 32 | pid */
    ORR__ROWS(nccl_member) members;
    ORR__ROWS(nccl_topology) rings;
    ORR__ROWS(nccl_topology) trees;
    orr_map *member_of; /* gpu << 32 | hash -> the latest of members */
    nccl_comms comms;
    ORR__ROWS(nccl_pair) pairs;
    orr_map *pair_of;
    orr_intern *classes; /* of messages between two ranks: communicator and size */
    uint64_t first_class_context;
    uint64_t contexts;                        /* how many different ones tags have, our own way */
    struct nccl_user_contexts *user_contexts; /* NULL: none are given */
    ORR__ROWS(coll_plan *) plans;             /* algorithms of the user's */
    orr_progress progress;
    uint64_t most_grid; /* blocks of an NCCL kernel */
    uint64_t held;      /* bytes of rows in memory */
    uint64_t budget;
    bool is_whole; /* all rows are in memory */
} nccl_job;

/* nccl_trace.c: the exports below some paths, in order, and the nodes they come from. */
orr_code nccl_job_find_files(nccl_job *j, const char *const *paths, size_t count, orr_error *err)
    ORR_MUST_CHECK;
orr_str nccl_node_of_file(orr_str name);

/* nccl_trace.c: rows. */
orr_code nccl_job_scan(nccl_job *j, orr_error *err) ORR_MUST_CHECK;
/* Rows of this GPU in memory.  Those of others may go; what was found out about them stays. */
orr_code nccl_job_load(nccl_job *j, uint32_t gpu, orr_error *err) ORR_MUST_CHECK;
void nccl_gpu_drop_rows(nccl_gpu *g);

/* nccl_calls.c: calls get their rows, then their times. */
orr_code nccl_gpu_link(nccl_job *j, uint32_t gpu, orr_error *err) ORR_MUST_CHECK;
orr_code nccl_gpu_time(nccl_job *j, uint32_t gpu, orr_error *err) ORR_MUST_CHECK;
/* Whether there is something to write of it. */
bool nccl_call_is_known(const nccl_call *c);
static inline bool nccl_op_is_p2p(uint8_t op)
{
    return op == ORR_NCCL_SEND || op == ORR_NCCL_RECV;
}

/* nccl_comms.c: communicators; ranks from what NCCL_DEBUG=INFO wrote. */
orr_code nccl_comms_build(nccl_job *j, orr_error *err) ORR_MUST_CHECK;
void nccl_comms_fini(nccl_comms *c);
typedef struct nccl_log_line {
    uint32_t pid;
    uint64_t rank;
    orr_str ident; /* verbatim */
} nccl_log_line;
/* The next line that announces a rank of a communicator.  ORR_END: none. */
typedef struct nccl_log {
    const char *path;
    const char *at, *end;
    uint32_t line;
} nccl_log;
orr_code nccl_log_next(nccl_log *l, nccl_log_line *out, orr_error *err) ORR_MUST_CHECK;

/* nccl_context.c: the part of tags that belongs to a call. */
uint64_t nccl_transfer_messages(const nccl_transfer *t);
uint32_t nccl_message_class(const nccl_job *j, uint32_t comm, uint64_t bytes);

orr_code nccl_gpu_ready(nccl_job *j, uint32_t gpu, orr_error *err) ORR_MUST_CHECK; /* all of it */

/* Words for errors: "GPU 001200/1000". */
const char *nccl_gpu_name(const nccl_job *j, uint32_t gpu, char room[96]);
orr_str nccl_text(const nccl_job *j, uint32_t number);

/* nccl_user_contexts.c: contexts up to `most` from a table.  *out is to be freed on failure too. */
orr_code nccl_user_contexts_parse(orr_span bytes,
                                  const char *label,
                                  uint64_t most,
                                  struct nccl_user_contexts **out,
                                  orr_error *err) ORR_MUST_CHECK;
orr_code nccl_user_contexts_read(const char *path,
                                 uint64_t most,
                                 struct nccl_user_contexts **out,
                                 orr_error *err) ORR_MUST_CHECK;
void nccl_user_contexts_free(struct nccl_user_contexts *u); /* NULL is fine */
/* ORR__NONE: no row names it. */
uint32_t nccl_user_context_of(const struct nccl_user_contexts *u,
                              orr_str communicator,
                              uint32_t call);
orr_code nccl_user_contexts_set(struct nccl_job *j, uint32_t gpu, orr_error *err) ORR_MUST_CHECK;
/* Of the old tags: what the widths given, or 4 and 5 digits, leave room for (nccl_goal.c). */
uint64_t nccl_power_of_ten(uint32_t n);
static inline uint32_t nccl_old_id_width(const orr_nccl_options *o)
{
    return o->id_width ? o->id_width : 4;
}
static inline uint32_t nccl_old_context_width(const orr_nccl_options *o)
{
    return o->context_width ? o->context_width : 5;
}

#endif
