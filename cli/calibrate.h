/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate.h - the commands below orrery calibrate. */
#ifndef ORR_CLI_CALIBRATE_H
#define ORR_CLI_CALIBRATE_H

#include "option.h"

#include <stdio.h>

extern const cli_command cli_cmd_calibrate_nccl;
extern const cli_command cli_cmd_calibrate_kernels;
extern const cli_command cli_cmd_calibrate_steps;

/* The lines of a measurement file, of any length; "-" is standard input.
 *
 *     code = cal_open(path, &l, err);
 *     while (!code && cal_next(&l))
 *         code = take(l.text, l.line);
 *     code = cal_close(&l, code, err);            // a read that failed is found here */
typedef struct cal_lines {
    const char *path;
    FILE *in;
    char *text; /* without the newline; may be modified */
    size_t room;
    uint32_t line;
    bool is_too_long, has_no_memory;
} cal_lines;

orr_code cal_open(const char *path, cal_lines *out, orr_error *err);
bool cal_next(cal_lines *l);
orr_code cal_close(cal_lines *l, orr_code code, orr_error *err);
/* Fails with an error at the line read last. */
orr_code cal_fail(const cal_lines *l, const char *what, orr_error *err);

int cal_compare_doubles(const void *a, const void *b);

#endif
