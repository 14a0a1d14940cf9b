/* SPDX-License-Identifier: Apache-2.0 */
/* issue_log_impl.h - a log in memory, shared by its reader and its writers. */
#ifndef ORR_ISSUE_LOG_IMPL_H
#define ORR_ISSUE_LOG_IMPL_H

#include <orrery/lab/issue_log.h>

#include "base/memory/map.h"
#include "base/memory/memory.h"

/* The numbers are the threads of chakra_timeline_visualizer. */
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
    uint32_t *done; /* issues in order of completion */
    size_t done_count, done_room;
    int64_t last;                            /* cycle */
    const struct orr_rules_issue_log *rules; /* NULL: ours */
};

/* How another program reads and converts logs (chakra.md 9). */
typedef struct orr_rules_issue_log {
    /* A line with "issue" or "callback" anywhere is an event; there may be none. */
    bool any_line;
    /* accept negative numbers, ends before issues, and issues of a node that has not completed */
    bool any_time;
    bool short_names; /* they end at a comma or an equals sign */
    bool needs_kind;  /* a name that does not tell the node type is an error */
    orr_code (*write)(
        const orr_issue_log *log, uint32_t ranks, uint32_t mhz, const char *path, orr_error *err);
} orr_rules_issue_log;

#endif
