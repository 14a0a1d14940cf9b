/* SPDX-License-Identifier: Apache-2.0 */
/* room: astra_sim */
/* fuzz_logging.c - any bytes as the logging file of the old programs.  What is taken must hang
 * together, and every pattern of it makes a line. */
#include "compat/astra_sim/config_logging.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_pattern(const char *pattern)
{
    static const orr__log_stamp stamp = {.local = {.tm_year = 126, .tm_mday = 1}};
    const orr__log_record record = {"workload", ORR__LOG_INFO, orr_str_of("text")};
    orr_buf fixed = {0}, line = {0};
    orr__log_fix(pattern, &stamp, &fixed);
    orr__log_line((orr_str){(const char *)fixed.ptr, fixed.len}, &record, &line);
    require(fixed.failed || line.failed || line.ptr[line.len - 1] == '\n');
    orr_buf_fini(&fixed);
    orr_buf_fini(&line);
}

static void check_sink(const orr__sink *s)
{
    require(s->name && s->name[0] && s->pattern && s->level <= ORR__LOG_OFF);
    require(s->kind < ORR__SINK_FILE || (s->path && s->path[0]));
    require(s->kind != ORR__SINK_ROTATING || s->max_size > 0);
    check_pattern(s->pattern);
}

static void check(const orr__logging *l)
{
    require(l->sink_count > 0);
    for (uint32_t i = 0; i < l->sink_count; i++)
        check_sink(&l->sinks[i]);
    for (unsigned k = 0; k < ORR__LOGGERS; k++)
        for (uint32_t i = 0; i < l->rules[k].count; i++)
            require(l->rules[k].sinks[i] < l->sink_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    orr_error err;
    orr__logging l[2];
    orr_code code[2];
    orr_arena *a = orr_arena_create();
    require(a);
    for (int keeps = 0; keeps < 2; keeps++) {
        code[keeps] =
            orr__parse_logging((orr_span){data, size}, "l.toml", keeps, a, &l[keeps], &err);
        if (code[keeps])
            require(err.message[0] && err.where.path[0]);
        else
            check(&l[keeps]);
    }
    require(code[0] == code[1]);
    orr_arena_destroy(a);
    return 0;
}
