/* SPDX-License-Identifier: Apache-2.0 */
/* log_writer.c - from a line to the places that want it.
 *
 * A line is said by a logger, at a level.  Below the logger's own level it goes nowhere; otherwise to each of the
 * logger's sinks, in the order of the file, and then to the default ones, if it is not below their levels.  A place
 * is written in one pass over all lines, so nothing is kept; what is asked for by no sink of the place is not
 * even put into words. */
#include "log_writer.h"

#include <stdio.h>

enum { DRAIN = 1 << 16 };

/* ---- what is wanted ---- */

static bool is_here(const orr__log_writer *w, uint32_t sink)
{
    const bool is_shared = w->kind == ORR__SINK_STDOUT || w->kind == ORR__SINK_STDERR;
    return is_shared ? w->logging->sinks[sink].kind == w->kind : sink == w->sink;
}

static bool wants(const orr__log_writer *w, uint32_t sink, orr__log_level level)
{
    return is_here(w, sink) && level >= w->logging->sinks[sink].level;
}

bool orr__log_begin(orr__log_writer *w, orr__logger logger, orr__log_level level)
{
    const orr__logger_rule *rule = &w->logging->rules[logger];
    bool is_wanted = level >= w->level;
    if (level < rule->level)
        return false;
    for (uint32_t i = 0; i < rule->count && !is_wanted; i++)
        is_wanted = wants(w, rule->sinks[i], level);
    w->logger = logger;
    w->line_level = level;
    w->text.len = 0;
    return is_wanted;
}

static orr_str pattern_at(const orr__log_writer *w, uint32_t i)
{
    const size_t from = i ? w->pattern_end[i - 1] : 0;
    return (orr_str){(const char *)w->patterns.ptr + from, w->pattern_end[i] - from};
}

static void put_line(orr__log_writer *w, uint32_t pattern)
{
    const orr__log_record record = {
        .logger = orr__logger_name[w->logger],
        .level = w->line_level,
        .text = {(const char *)w->text.ptr, w->text.len},
    };
    orr__log_line(pattern_at(w, pattern), &record, &w->lines);
    if (w->file) { /* line by line, because it may turn over between two of them */
        orr_log_file_add(w->file, (orr_str){(const char *)w->lines.ptr, w->lines.len});
        w->lines.len = 0;
    } else if (w->lines.len > DRAIN) {
        orr_output_drain(w->out, &w->lines);
    }
}

void orr__log_end(orr__log_writer *w)
{
    const orr__logger_rule *rule = &w->logging->rules[w->logger];
    if (w->text.failed || w->lines.failed)
        return;
    for (uint32_t i = 0; i < rule->count; i++)
        if (wants(w, rule->sinks[i], w->line_level))
            put_line(w, rule->sinks[i]);
    if (w->line_level >= w->level)
        put_line(w, w->logging->sink_count);
}

/* ---- opening ---- */

static orr_code set_up(orr__log_writer *w, const orr__logging *logging, orr_error *err)
{
    const uint32_t count = logging->sink_count;
    orr__log_stamp now;
    *w = (orr__log_writer){.logging = logging, .sink = UINT32_MAX, .level = ORR__LOG_OFF};
    w->pattern_end = orr_alloc((size_t)count + 1, sizeof *w->pattern_end);
    if (!w->pattern_end)
        return orr_no_memory(err);
    orr__log_now(&now);
    for (uint32_t i = 0; i <= count; i++) {
        orr__log_fix(i < count ? logging->sinks[i].pattern : orr__log_plain, &now, &w->patterns);
        w->pattern_end[i] = (uint32_t)w->patterns.len;
    }
    return w->patterns.failed ? orr_no_memory(err) : ORR_OK;
}

static void fini(orr__log_writer *w)
{
    orr_output_discard(w->out);
    orr_free(w->pattern_end);
    orr_buf_fini(&w->patterns);
    orr_buf_fini(&w->text);
    orr_buf_fini(&w->lines);
}

static orr_code opened(orr__log_writer *w, orr_code code)
{
    if (code)
        fini(w);
    return code;
}

orr_code orr__log_open_default(orr__log_writer *w,
                               const orr__logging *logging,
                               const char *path,
                               orr__log_level level,
                               orr__sink_kind kind,
                               orr_error *err)
{
    orr_code code = set_up(w, logging, err);
    w->level = level;
    w->kind = kind;
    if (!code)
        code = orr_output_open(path, &w->out, err);
    return opened(w, code);
}

orr_code orr__log_open_stderr(orr__log_writer *w, const orr__logging *logging, orr_error *err)
{
    orr_code code = set_up(w, logging, err);
    w->kind = ORR__SINK_STDERR;
    if (!code)
        code = orr_log_file_open("/dev/stderr", NULL, &w->file, err);
    return opened(w, code);
}

/* run.log: run_2026-01-31.log */
static orr_code open_daily(orr__log_writer *w, const orr__sink *s, orr_error *err)
{
    char day[40];
    orr__log_stamp now;
    orr_arena *a = orr_arena_create();
    orr__log_now(&now);
    snprintf(day, sizeof day, "_%04d-%02d-%02d", now.local.tm_year + 1900, now.local.tm_mon + 1,
             now.local.tm_mday);
    const char *path = a ? orr_path_insert(a, s->path, day) : NULL;
    const orr_code code = path ? orr_log_file_open(path, NULL, &w->file, err) : orr_no_memory(err);
    orr_arena_destroy(a);
    return code;
}

orr_code orr__log_open_sink(orr__log_writer *w,
                            const orr__logging *logging,
                            uint32_t sink,
                            orr_error *err)
{
    const orr__sink *s = &logging->sinks[sink];
    const orr_log_file_options opt = {
        .truncates = s->truncates, .max_size = s->max_size, .max_files = s->max_files};
    orr_code code = set_up(w, logging, err);
    w->sink = sink;
    if (!code)
        code = s->kind == ORR__SINK_DAILY ? open_daily(w, s, err)
                                          : orr_log_file_open(s->path, &opt, &w->file, err);
    return opened(w, code);
}

orr_code orr__log_close(orr__log_writer *w, orr_error *err)
{
    orr_code code = ORR_OK;
    const bool has_failed = w->text.failed || w->lines.failed;
    if (w->file) {
        code = orr_log_file_close(&w->file, err);
    } else if (!has_failed) {
        orr_output_drain(w->out, &w->lines);
        code = orr_output_commit(&w->out, err);
    }
    if (has_failed)
        code = orr_no_memory(err);
    fini(w);
    return code;
}
