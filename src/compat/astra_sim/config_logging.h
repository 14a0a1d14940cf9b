/* SPDX-License-Identifier: Apache-2.0 */
/* config_logging.h - which lines of the old programs go where (docs/format/logging.md). */
#ifndef ORR_CONFIG_LOGGING_H
#define ORR_CONFIG_LOGGING_H

#include "log_pattern.h"

/* Those that have something to say in a run that comes to its end.  A file may name others. */
typedef enum orr__logger {
    ORR__LOG_WORKLOAD,
    ORR__LOG_SYSTEM,
    ORR__LOG_STATISTICS,
    ORR__LOG_HARDWARE,
    ORR__LOG_RING,
    ORR__LOG_TENSORS,
    ORR__LOGGERS
} orr__logger;
extern const char *const orr__logger_name[ORR__LOGGERS];

typedef enum orr__sink_kind {
    ORR__SINK_NOTHING,
    ORR__SINK_STDOUT,
    ORR__SINK_STDERR,
    ORR__SINK_FILE,
    ORR__SINK_ROTATING,
    ORR__SINK_DAILY
} orr__sink_kind;

typedef struct orr__sink {
    const char *name;
    orr__sink_kind kind;
    orr__log_level level;
    const char *path; /* of files */
    bool truncates;
    uint64_t max_size, max_files;
    const char *pattern;
} orr__sink;

typedef struct orr__logger_rule {
    orr__log_level level;
    uint32_t *sinks; /* in this order; duplicates are allowed */
    uint32_t count;
} orr__logger_rule;

typedef struct orr__logging {
    orr__sink *sinks;
    uint32_t sink_count;
    orr__logger_rule rules[ORR__LOGGERS];
    bool has_unused_patterns; /* the file has patterns, and they do not count */
} orr__logging;

extern const orr__logging orr__default_logging; /* no file: every line goes to the default sinks */

/* keeps_patterns: those of the file count.  Otherwise all its sinks get the one pattern that
 * ASTRA-sim sets after having read the file. */
orr_code orr__parse_logging(orr_span bytes,
                            const char *path,
                            bool keeps_patterns,
                            orr_arena *a,
                            orr__logging *out,
                            orr_error *err);
orr_code orr__read_logging(
    const char *path, bool keeps_patterns, orr_arena *a, orr__logging *out, orr_error *err);

#endif
