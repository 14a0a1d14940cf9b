/* SPDX-License-Identifier: Apache-2.0 */
/* config_logging.h - which lines of the old programs go where (docs/format/logging.md): the file,
 * its patterns, the log files. */
#ifndef ORR_CONFIG_LOGGING_H
#define ORR_CONFIG_LOGGING_H

#include "base/memory/buffer.h"

#include <time.h>

/* ---- patterns ----
 *
 * Log lines in the pattern syntax of spdlog, ASTRA-sim's logging library.
 *
 *     orr__log_now(&stamp);
 *     orr__log_fix(orr__log_plain, &stamp, &fixed);     // once: what all lines share
 *     orr__log_line(fixed, &record, &out);              // per line
 *
 * Lines are written after the run, so all of them have the same time. */

typedef enum orr__log_level {
    ORR__LOG_TRACE,
    ORR__LOG_DEBUG,
    ORR__LOG_INFO,
    ORR__LOG_WARNING,
    ORR__LOG_ERROR,
    ORR__LOG_CRITICAL,
    ORR__LOG_OFF /* above all levels */
} orr__log_level;

typedef struct orr__log_stamp {
    struct tm local; /* with its UTC offset */
    int64_t seconds; /* since 1970 */
    uint32_t nanoseconds;
    uint64_t process, thread;
} orr__log_stamp;

typedef struct orr__log_record {
    const char *logger;
    orr__log_level level;
    orr_str text;
} orr__log_record;

extern const char orr__log_plain[]; /* spdlog's default pattern */

void orr__log_now(orr__log_stamp *out);
/* Expand the times of a pattern; flags that differ from line to line are left as they are. */
void orr__log_fix(const char *pattern, const orr__log_stamp *stamp, orr_buf *out);
/* One line including its newline, from a pattern that orr__log_fix() has expanded. */
void orr__log_line(orr_str fixed, const orr__log_record *record, orr_buf *out);

/* ---- routing ---- */

/* The loggers that emit lines in a run that finishes.  A file may configure others, too. */
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
    const char *path; /* of file sinks */
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
    bool has_unused_patterns; /* the file sets patterns that ASTRA-sim overrides */
} orr__logging;

extern const orr__logging orr__default_logging; /* no file: all lines go to the default sinks */

/* keeps_patterns: use the patterns of the file.  Otherwise all sinks get the one pattern that
 * ASTRA-sim sets after reading the file. */
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
 * Files that lines are appended to, with optional truncation and rotation.
 *
 *     const orr_log_file_options opt = {.max_size = 1 << 20, .max_files = 3};
 *     orr_log_file *f;
 *     if (orr_log_file_open("run.log", &opt, &f, &err)) ...
 *     orr_log_file_add(f, line);                 // keeps the first failure for close
 *     if (orr_log_file_close(&f, &err)) ...      // *f is NULL either way
 *
 * Missing parent folders are created.  Without options the file is appended to; so is
 * /dev/stderr. */

typedef struct orr_log_file orr_log_file;

typedef struct orr_log_file_options {
    bool truncates; /* start empty; the file then appears as a whole at close */
    /* Rotate before a line that would exceed max_size: run.log becomes run.1.log, run.1.log becomes
     * run.2.log, and so on; the last of max_files is dropped.  0: a single file of any size. */
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
