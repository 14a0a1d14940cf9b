/* SPDX-License-Identifier: Apache-2.0 */
/* log_file.h - files that lines are added to, in the ways that logging libraries know.
 *
 *     const orr_log_file_options opt = {.max_size = 1 << 20, .max_files = 3};
 *     orr_log_file *f;
 *     if (orr_log_file_open("run.log", &opt, &f, &err)) ...
 *     orr_log_file_add(f, line);                 // keeps the first failure for close
 *     if (orr_log_file_close(&f, &err)) ...      // *f is NULL either way
 *
 * Folders on the way are made.  Without options a file is kept and added to, as is /dev/stderr. */
#ifndef ORR_BASE_LOG_FILE_H
#define ORR_BASE_LOG_FILE_H

#include "base/memory/buffer.h"

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
