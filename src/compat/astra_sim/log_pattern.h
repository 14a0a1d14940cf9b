/* SPDX-License-Identifier: Apache-2.0 */
/* log_pattern.h - lines of a log in the notation of spdlog, the library that ASTRA-sim logs with.
 *
 *     orr__log_now(&stamp);
 *     orr__log_fix(orr__log_plain, &stamp, &fixed);     // once: all that is the same in every line
 *     orr__log_line(fixed, &record, &out);              // for each line
 *
 * A run is written when it is over, so all its lines bear one time. */
#ifndef ORR_LOG_PATTERN_H
#define ORR_LOG_PATTERN_H

#include "base/memory/buffer.h"

#include <time.h>

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

#endif
