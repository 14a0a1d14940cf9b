/* SPDX-License-Identifier: Apache-2.0 */
/* config_logging.h - which lines of the old programs go where (docs/format/logging.md). */
#ifndef ORR_CONFIG_LOGGING_H
#define ORR_CONFIG_LOGGING_H

#include "base/memory/buffer.h"

#include <time.h>

/* ---- patterns ----
 *
 * Lines of a log in the notation of spdlog, the library that ASTRA-sim logs with.
 *
 *     orr__log_now(&stamp);
 *     orr__log_fix(orr__log_plain, &stamp, &fixed);     // once: all that is the same in every line
 *     orr__log_line(fixed, &record, &out);              // for each line
 *
 * A run is written when it is over, so all its lines bear one time. */

typedef enum orr__log_level {
    ORR__LOG_TRACE,
    ORR__LOG_DEBUG,
    ORR__LOG_INFO,
    ORR__LOG_WARNING,
    ORR__LOG_ERROR,
    ORR__LOG_CRITICAL,
    ORR__LOG_OFF /* above all lines */
} orr__log_level;

typedef struct orr__log_stamp {
    struct tm local; /* with its offset from UTC */
    int64_t seconds; /* since 1970 */
    uint32_t nanoseconds;
    uint64_t process, thread;
} orr__log_stamp;

typedef struct orr__log_record {
    const char *logger;
    orr__log_level level;
    orr_str text;
} orr__log_record;

extern const char orr__log_plain[]; /* spdlog's own pattern */

void orr__log_now(orr__log_stamp *out);
/* The pattern with its times put in; what differs from line to line stays as it is. */
void orr__log_fix(const char *pattern, const orr__log_stamp *stamp, orr_buf *out);
/* One line with its end, by a pattern that was fixed. */
void orr__log_line(orr_str fixed, const orr__log_record *record, orr_buf *out);

/* ---- where lines go ---- */

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

/* ---- files ----
 *
 * Files that lines are added to, in the ways that logging libraries know.
 *
 *     const orr_log_file_options opt = {.max_size = 1 << 20, .max_files = 3};
 *     orr_log_file *f;
 *     if (orr_log_file_open("run.log", &opt, &f, &err)) ...
 *     orr_log_file_add(f, line);                 // keeps the first failure for close
 *     if (orr_log_file_close(&f, &err)) ...      // *f is NULL either way
 *
 * Folders on the way are made.  Without options a file is kept and added to, as is /dev/stderr. */

typedef struct orr_log_file orr_log_file;

typedef struct orr_log_file_options {
    bool truncates; /* what was in it is gone: then it appears whole, at close */
    /* A line that would make the file longer than this goes into a new one; run.log becomes
     * run.1.log, that run.2.log, and so on; the last of max_files is dropped.  0: one file, without
     * end. */
    uint64_t max_size, max_files;
} orr_log_file_options;

orr_code orr_log_file_open(const char *path,
                           const orr_log_file_options *opt,
                           orr_log_file **out,
                           orr_error *err) ORR_MUST_CHECK;
void orr_log_file_add(orr_log_file *f, orr_str line);
orr_code orr_log_file_close(orr_log_file **f, orr_error *err) ORR_MUST_CHECK;

/* "a/run.log" and "_x": "a/run_x.log".  NULL: out of memory. */
char *orr_path_insert(orr_arena *a, const char *path, const char *text);

#endif
