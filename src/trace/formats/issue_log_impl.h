/* SPDX-License-Identifier: Apache-2.0 */
/* issue_log_impl.h - a log in memory, shared by its reader and its writers. */
#ifndef ORR_ISSUE_LOG_IMPL_H
#define ORR_ISSUE_LOG_IMPL_H

#include <orrery/lab/issue_log.h>

#include "base/memory/intern.h"
#include "base/memory/memory.h"

/* The numbers are the threads of the old program. */
typedef enum issue_kind {
    ISSUE_OTHER = 0,
    ISSUE_LOCAL_MEMORY,
    ISSUE_REMOTE_MEMORY,
    ISSUE_COMPUTE,
    ISSUE_COMMUNICATION,
    ISSUE_KINDS
} issue_kind;

typedef struct issue_row {
    int64_t issued, ended; /* cycles */
    int64_t node;
    uint32_t rank;
    uint32_t name; /* of log->names */
    uint32_t line; /* of the issue */
    uint8_t kind;  /* issue_kind */
    uint8_t span;  /* orr_span_kind */
    bool is_done;
} issue_row;

struct orr_issue_log {
    char *path;
    orr_arena *arena; /* of path */
    orr_intern *names;
    issue_row *issues; /* in the order of the file */
    size_t count, room;
    uint32_t *done; /* issues in the order they came back */
    size_t done_count, done_room;
    int64_t last; /* cycle */
    bool is_compat;
};

#endif
