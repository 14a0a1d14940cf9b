/* SPDX-License-Identifier: Apache-2.0 */
/* link_job.h - all ranks of a job, from files to a set: shared by the steps. */
#ifndef ORR_PYTORCH_LINK_JOB_H
#define ORR_PYTORCH_LINK_JOB_H

#include "link_impl.h"

#include "sources/torch/convert/conversion.h"

#include <orrery/set.h>

/* What a file is, by its first members. */
typedef enum link_file_kind { LINK_FILE_OTHER, LINK_FILE_HOST, LINK_FILE_DEVICE } link_file_kind;

typedef struct link_file {
    const char *path;
    link_file_kind kind;
    int64_t pid; /* KIN_NO_NUMBER: not said */
    bool is_taken;
} link_file;

/* One rank on its way. */
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

/* When the first event of all began, in the clock of all; INT64_MAX: there is none. */
int64_t link_job_first(const orr_link_job *job);

#endif
