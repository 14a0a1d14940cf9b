/* SPDX-License-Identifier: Apache-2.0 */
/* log_writer.h - one place that lines go to: standard output, a default log, or a sink of the logging file.
 *
 *     if (orr__log_open_sink(&w, &logging, 2, &err)) ...
 *     if (orr__log_begin(&w, ORR__LOG_WORKLOAD, ORR__LOG_INFO)) {   // does anybody there want it?
 *         orr_buf_print(&w.text, "sys[%u] finished", rank);
 *         orr__log_end(&w);
 *     }
 *     code = orr__log_close(&w, &err);
 */
#ifndef ORR_LOG_WRITER_H
#define ORR_LOG_WRITER_H

#include "base/io/output.h"
#include "config_logging.h"
#include "log_file.h"

typedef struct orr__log_writer {
    const orr__logging *logging;
    orr__sink_kind kind;  /* the sinks that are this place: all of standard output or error, */
    uint32_t sink;        /* or the one with this number */
    orr__log_level level; /* of the default sink that is this place; OFF: none is */
    orr_buf patterns;     /* of sinks, fixed, one behind the other; the default one is the last */
    uint32_t *pattern_end;
    orr_output *out; /* one of the two */
    orr_log_file *file;
    orr__logger logger; /* of the line that has begun */
    orr__log_level line_level;
    orr_buf text, lines;
} orr__log_writer;

/* kind: of the sinks whose lines go there too; STDOUT or NOTHING. */
orr_code orr__log_open_default(orr__log_writer *w,
                               const orr__logging *logging,
                               const char *path,
                               orr__log_level level,
                               orr__sink_kind kind,
                               orr_error *err) ORR_MUST_CHECK;
orr_code orr__log_open_stderr(orr__log_writer *w,
                              const orr__logging *logging,
                              orr_error *err) ORR_MUST_CHECK;
/* A sink that is a file. */
orr_code orr__log_open_sink(orr__log_writer *w,
                            const orr__logging *logging,
                            uint32_t sink,
                            orr_error *err) ORR_MUST_CHECK;

/* True: put the line into w->text and end it. */
bool orr__log_begin(orr__log_writer *w, orr__logger logger, orr__log_level level);
void orr__log_end(orr__log_writer *w);
orr_code orr__log_close(orr__log_writer *w, orr_error *err) ORR_MUST_CHECK;

#endif
