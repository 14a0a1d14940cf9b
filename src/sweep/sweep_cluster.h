/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_cluster.h - the processes that mpirun or srun started find each other. */
#ifndef ORR_SWEEP_CLUSTER_H
#define ORR_SWEEP_CLUSTER_H

#include "base/memory/buffer.h"

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
