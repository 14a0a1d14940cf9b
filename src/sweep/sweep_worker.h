/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_worker.h - the processes that compute points: what they say to the one that owns the sweep,
 * and how those of a cluster find each other. */
#ifndef ORR_SWEEP_WORKER_H
#define ORR_SWEEP_WORKER_H

#include "base/memory/buffer.h"
#include "store.h"

/* ---- frames ----
 *
 * Messages between the process that owns a sweep and those that compute: over a pair of sockets on
 * one machine, over TCP between machines, the same bytes.
 *
 * A frame is its length and its kind, 32 bits each in the byte order of the network, then its
 * bytes.  Points travel as numbers: both sides have read the same specification, so nothing that
 * arrives can name a command. */

typedef enum swp_frame_kind {
    SWP_FRAME_HELLO = 1, /* who computes: lines */
    SWP_FRAME_TASK,      /* point, hash */
    SWP_FRAME_DONE,      /* point, status, whether it was in the cache, ns; CPU time of this process
                          * and its wait since the answer before; data */
    SWP_FRAME_REFUSE,    /* this worker cannot go on: why */
    SWP_FRAME_QUIT       /* no more points, or why not */
} swp_frame_kind;

enum { SWP_FRAME_HEAD = 8, SWP_FRAME_MOST = 64 << 20, SWP_DONE_HEAD = 40 };

typedef struct swp_frame {
    swp_frame_kind kind;
    const uint8_t *bytes;
    size_t len;
} swp_frame;

/* All of it, or an error; SIGPIPE does not come. */
bool swp_frame_send(int fd, swp_frame_kind kind, const void *bytes, size_t len);
/* The first whole frame of the buffer; false: there is none yet.  *used: its length with its head.
 * *is_bad: these bytes are no frame. */
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
    bool is_remote; /* its files may be others: each point is checked */
} swp_worker_options;

typedef enum swp_worker_end {
    SWP_WORKER_DONE = 0,
    SWP_WORKER_REFUSED = 10, /* by itself or by rank 0; it has said why */
    SWP_WORKER_ALONE = 11    /* the process that gives out points is gone */
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

/* What the launcher says in the environment: Open MPI, MPICH and its kin, PMIx, Slurm. */
void swp_cluster_find(swp_cluster *out);

/* Rank 0: a socket that listens, and the file beside the database that says where.  path: room for
 * its name, from orr_alloc by the caller's strlen(database) + 96. */
orr_code swp_cluster_listen(const swp_cluster *c,
                            const char *database,
                            char *path,
                            char token[SWP_TOKEN_ROOM],
                            int *fd,
                            orr_error *err) ORR_MUST_CHECK;
/* What that file says, a line each; the rest are addresses of rank 0, best first. */
typedef struct swp_meeting {
    const char *token, *host;
    uint16_t port;
    char *addresses;
} swp_meeting;
/* Cuts the text into its lines.  False: it is no such file. */
bool swp_meeting_parse(char *text, swp_meeting *out);
/* Others: waits for that file and connects. */
orr_code swp_cluster_join(const swp_cluster *c,
                          const char *database,
                          char token[SWP_TOKEN_ROOM],
                          int *fd,
                          orr_error *err) ORR_MUST_CHECK;

#endif
