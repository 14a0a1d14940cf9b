/* SPDX-License-Identifier: Apache-2.0 */
/* nsys.h - the rows of a report exported by Nsight Systems (nsys export --type sqlite), one at a
 * time.
 *
 *     orr_nsys *n;
 *     orr_nsys_row row;
 *     if (orr_nsys_open("rank0.sqlite", NULL, &n, &err)) return report(&err);
 *     while ((code = orr_nsys_next(n, &row, &err)) == ORR_OK)
 *         if (row.kind == ORR_NSYS_KERNEL) use(row.pid, row.start, row.end);
 *     orr_nsys_close(n);
 *
 * Rows of NVTX come first, then kernels, each in the file's order.  Markers of the annotated
 * NCCL (texts) and calls that NCCL describes itself from 2.22 on (payloads) are returned in one
 * format.  Column names, and which columns exist, are read from the file.  Experimental: may
 * change in the next release. */
#ifndef ORRERY_LAB_NSYS_H
#define ORRERY_LAB_NSYS_H

#include <orrery/timeline.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum orr_nsys_kind {
    ORR_NSYS_OTHER = 0, /* some NVTX text */
    ORR_NSYS_COMM,      /* a rank of a communicator */
    ORR_NSYS_RING,      /* its neighbours in the ring of a channel */
    ORR_NSYS_TREE,
    ORR_NSYS_WINDOW_START,
    ORR_NSYS_WINDOW_END,
    ORR_NSYS_GROUP_START,
    ORR_NSYS_GROUP_END,
    ORR_NSYS_WORK, /* a collective's share of one channel */
    ORR_NSYS_P2P,  /* what a send or a receive moves */
    ORR_NSYS_CALL, /* ncclAllReduce and the like */
    ORR_NSYS_INFO, /* how NCCL chose to run a collective */
    ORR_NSYS_KERNEL,
    ORR_NSYS_KINDS
} orr_nsys_kind;

/* NCCL's operations. */
typedef enum orr_nccl_op {
    ORR_NCCL_OTHER = 0,
    ORR_NCCL_ALL_REDUCE,
    ORR_NCCL_ALL_GATHER,
    ORR_NCCL_REDUCE_SCATTER,
    ORR_NCCL_BROADCAST,
    ORR_NCCL_REDUCE,
    ORR_NCCL_SEND,
    ORR_NCCL_RECV,
    ORR_NCCL_SEND_RECV, /* a kernel's name for both */
    ORR_NCCL_OPS
} orr_nccl_op;

ORR_API const char *orr_nccl_op_name(orr_nccl_op op); /* "AllReduce" */
ORR_API orr_nccl_op orr_nccl_op_find(orr_str name);   /* ORR_NCCL_OTHER: none of them */

/* Only the fields of the row's kind are filled.  Texts live until the next row. */
typedef struct orr_nsys_row {
    orr_nsys_kind kind;
    bool has_end;
    bool is_payload;    /* from NCCL's own payload: fields it lacks are 0 */
    orr_nccl_op op;     /* CALL, KERNEL */
    uint64_t row;       /* in its table, from 1: for messages */
    int64_t start, end; /* ns; without has_end, end equals start */
    uint64_t pid;
    uint64_t thread;      /* globalTid of NVTX rows; 0: not known */
    orr_str text;         /* NVTX: the whole text.  KERNEL: the demangled name */
    orr_str hash;         /* COMM, RING, TREE, CALL, INFO: the communicator, "0x..." */
    orr_str id;           /* COMM: commId */
    orr_str stream;       /* CALL, INFO: "0x..." */
    uint64_t rank, ranks; /* COMM */
    uint64_t channel, previous, me, next; /* RING; TREE: channel, me */
    int64_t child[3], parent;             /* TREE; -1: none */
    uint64_t count, chunk, total, last;   /* WORK: count, chunkCount, workCount, lastChunkCount */
    uint64_t send_buffer, receive_buffer; /* WORK */
    uint64_t bytes, width;                /* INFO, CALL, P2P: bytes moved; bytes of an element */
    uint64_t p2p_type, peer, high, low;   /* P2P, with chunk; CALL of a payload: peer */
    uint64_t root, algorithm, protocol;   /* INFO; P2P: protocol */
    uint64_t chunk_steps, slice_steps, step; /* INFO; step: stepSize */
    int64_t device, cuda_stream;             /* KERNEL */
    uint64_t grid;                           /* KERNEL: blocks, which are NCCL's channels */
} orr_nsys_row;

/* Parses a marker's text into a row: kind, its fields, and pid.  ORR_EINPUT: a number in it exceeds
 * 64 bits.  ORR_END: not a known marker; row->kind is ORR_NSYS_OTHER. */
ORR_API orr_code orr_nsys_marker(orr_str text, orr_nsys_row *row, orr_error *err) ORR_MUST_CHECK;

typedef struct orr_nsys_options {
    bool all_kernels; /* not only NCCL's */
} orr_nsys_options;

typedef struct orr_nsys orr_nsys;

/* opt may be NULL.  On failure *out is NULL. */
ORR_API orr_code orr_nsys_open(const char *path,
                               const orr_nsys_options *opt,
                               orr_nsys **out,
                               orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_nsys_next(orr_nsys *n, orr_nsys_row *out, orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_nsys_close(orr_nsys *n); /* NULL is fine */

/* Device times of operators, for orrery calibrate kernels: each matmul, norm or activation as a
 * kernel in the syntax of chip.h with its microseconds.  The export needs CUDA's runtime and the
 * ranges of PyTorch's emit_nvtx(record_shapes=True); type, which they lack, is "bf16" or another
 * type of chip.h.  *passed_over: operator calls without such a kernel. */
typedef orr_code orr_nsys_take(void *context, const char *kernel, double us, orr_error *err);
ORR_API orr_code orr_nsys_operators(const char *path,
                                    const char *type,
                                    orr_nsys_take *take,
                                    void *context,
                                    uint64_t *passed_over,
                                    orr_error *err) ORR_MUST_CHECK;

/* The export as a timeline: one rank per process in order of appearance, kernels by stream, NVTX
 * ranges by host thread. */
ORR_API orr_code orr_nsys_timeline(const char *path,
                                   orr_timeline **out,
                                   orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
