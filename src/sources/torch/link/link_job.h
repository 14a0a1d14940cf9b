/* SPDX-License-Identifier: Apache-2.0 */
/* link_job.h - all ranks of a job, from files to a set: shared by the steps. */
#ifndef ORR_PYTORCH_LINK_JOB_H
#define ORR_PYTORCH_LINK_JOB_H

#include "link_impl.h"

#include <orrery/set.h>

/* What a file is, by its first members. */
typedef enum orr__file_kind { ORR__FILE_OTHER, ORR__FILE_HOST, ORR__FILE_DEVICE } orr__file_kind;

typedef struct orr__torch_file {
    const char *path;
    orr__file_kind kind;
    int64_t pid; /* ORR__NO_NUMBER: not said */
    bool is_taken;
} orr__torch_file;

/* One rank on its way. */
typedef struct orr__job_rank {
    orr_link_rank about;
    orr_link *link;
    orr_trace *trace;
} orr__job_rank;

struct orr_link_job {
    orr_link_options opt;
    orr_arena *arena;
    orr__torch_file *files;
    size_t file_count, file_room;
    orr__job_rank *ranks;
    uint32_t rank_count;
    orr_set *set;
    uint64_t inferred; /* collectives whose group was found by comparing ranks */
};

/* link_probe.c */
orr_code orr__probe_path(orr_link_job *job, const char *path, orr_error *err) ORR_MUST_CHECK;
/* link_align.c: clock_ns of every rank, by the ends of collectives that they share. */
orr_code orr__job_align(orr_link_job *job, orr_error *err) ORR_MUST_CHECK;
/* link_groups.c: groups with one number for the whole job; the set. */
orr_code orr__job_make_set(orr_link_job *job, orr_error *err) ORR_MUST_CHECK;

#endif
