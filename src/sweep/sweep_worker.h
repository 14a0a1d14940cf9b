/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_worker.h - worker processes: the protocol with the owner of the sweep, and rendezvous on a
 * cluster. */
#ifndef ORR_SWEEP_WORKER_H
#define ORR_SWEEP_WORKER_H

#include "base/memory/buffer.h"
#include "store.h"

/* ---- frames ----
 *
 * Messages between the process that owns a sweep and those that compute: over a pair of sockets on
 * one machine, over TCP between machines, the same bytes.
 *
 * A frame is its length and kind, 32 bits each in network byte order, then its bytes.  Points are
 * sent as numbers: both sides have read the same specification, so no received data can name a
 * command. */

typedef enum swp_frame_kind {
    SWP_FRAME_HELLO = 1, /* who computes: lines */
    SWP_FRAME_TASK,      /* point, hash */
    SWP_FRAME_DONE,      /* point, status, cache hit, ns; CPU time of this process and idle time
                          * since the previous answer; data */
    SWP_FRAME_REFUSE,    /* this worker cannot continue: reason */
    SWP_FRAME_QUIT       /* no more points, or why not */
} swp_frame_kind;

enum { SWP_FRAME_HEAD = 8, SWP_FRAME_MOST = 64 << 20, SWP_DONE_HEAD = 40 };

typedef struct swp_frame {
    swp_frame_kind kind;
    const uint8_t *bytes;
    size_t len;
} swp_frame;

/* Sends all of it, or fails; without SIGPIPE. */
bool swp_frame_send(int fd, swp_frame_kind kind, const void *bytes, size_t len);
/* The first complete frame in the buffer; false: incomplete.  *used: its length with its header.
 * *is_bad: not a frame. */
bool swp_frame_next(const orr_buf *in, size_t from, swp_frame *out, size_t *used, bool *is_bad);

/* What the first frame of a worker says. */
enum { SWP_HELLO_ROOM = 600 };
typedef struct swp_hello {
    char text[SWP_HELLO_ROOM];
    const char *token, *spec, *program, *host; /* in it; no token: "" */
} swp_hello;
bool swp_hello_read(const swp_frame *f, bool has_token, swp_hello *out);

uint32_t swp_get_u32(const uint8_t *p);
uint64_t swp_get_u64(const uint8_t *p);

/* ---- workers ---- */

typedef struct swp_worker_options {
    const char *cache; /* NULL: none */
    const char *token; /* of the sweep it joins; "" on the same machine */
    uint32_t timeout_s;
    bool is_remote; /* its files may differ: each point is checked */
} swp_worker_options;

typedef enum swp_worker_end {
    SWP_WORKER_DONE = 0,
    SWP_WORKER_REFUSED = 10, /* by itself or by rank 0; the reason was reported */
    SWP_WORKER_ALONE = 11    /* the owner process is gone */
} swp_worker_end;

/* Computes what comes over the socket until told to quit. */
swp_worker_end swp_worker_serve(orr_sweep *s, int fd, const swp_worker_options *o);

/* ---- the processes that mpirun or srun started ---- */

enum { SWP_TOKEN_ROOM = 33, SWP_JOB_ROOM = 64 };

typedef struct swp_cluster {
    uint32_t rank, size; /* size 1: no cluster */
    bool is_one_host;    /* the launcher says so */
    char job[SWP_JOB_ROOM];
} swp_cluster;

/* From the launcher's environment: Open MPI, MPICH and derivatives, PMIx, Slurm. */
void swp_cluster_find(swp_cluster *out);

/* Rank 0: a listening socket, and the rendezvous file beside the database.  path: room for its
 * name, allocated by the caller with strlen(database) + 96. */
orr_code swp_cluster_listen(const swp_cluster *c,
                            const char *database,
                            char *path,
                            char token[SWP_TOKEN_ROOM],
                            int *fd,
                            orr_error *err) ORR_MUST_CHECK;
/* The content of that file, line by line; the rest are addresses of rank 0, best first. */
typedef struct swp_meeting {
    const char *token, *host;
    uint16_t port;
    char *addresses;
} swp_meeting;
/* Splits the text into lines.  False: not such a file. */
bool swp_meeting_parse(char *text, swp_meeting *out);
/* Other ranks: wait for that file and connect. */
orr_code swp_cluster_join(const swp_cluster *c,
                          const char *database,
                          char token[SWP_TOKEN_ROOM],
                          int *fd,
                          orr_error *err) ORR_MUST_CHECK;

#endif
