/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_calibrate.c - orrery calibrate: which kinds of measurements there are; each is a command of
 * two words.  Also what they share: lines of a file. */
#include "calibrate.h"
#include "command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const cli_command *const deeper[] = {&cli_cmd_calibrate_nccl, &cli_cmd_calibrate_kernels,
                                            &cli_cmd_calibrate_steps, NULL};

/* ---- lines ---- */

static orr_code fail_read(const char *path, orr_error *err)
{
    const orr_where w = orr_where_line(path, 0, 0);
    return orr_fail(err, ORR_EIO, &w, "cannot read: %s", strerror(errno));
}

orr_code cal_open(const char *path, cal_lines *out, orr_error *err)
{
    *out = (cal_lines){.path = path};
    out->in = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    return out->in ? ORR_OK : fail_read(path, err);
}

bool cal_next(cal_lines *l)
{
    if (getline(&l->text, &l->room, l->in) < 0)
        return false;
    l->line++;
    l->text[strcspn(l->text, "\r\n")] = '\0';
    return true;
}

orr_code cal_close(cal_lines *l, orr_code code, orr_error *err)
{
    if (!code && l->in && !feof(l->in))
        code = fail_read(l->path, err);
    if (l->in && l->in != stdin)
        fclose(l->in);
    free(l->text);
    return code;
}

orr_code cal_fail(const cal_lines *l, const char *what, orr_error *err)
{
    const orr_where w = orr_where_line(l->path, l->line, 1);
    return orr_fail(err, ORR_EINPUT, &w, "%s", what);
}

int cal_compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* ---- the command ---- */

static const cli_example examples[] = {
    {"The output of nccl-tests on a machine:",
     "orrery nccl-tests --machine dgx-h100 > measured.txt", 0},
    {"", "orrery calibrate nccl measured.txt --machine dgx-h100 -o mine.yml", 0},
    {0},
};

static orr_code calibrate_run(cli_context *c, orr_error *err)
{
    (void)c;
    return cli_misuse(
        err, "specify what was measured: 'orrery calibrate nccl FILE...', 'orrery calibrate "
             "kernels FILE' or 'orrery calibrate steps LOG'");
}

const cli_command cli_cmd_calibrate = {
    .name = "calibrate",
    .summary = "fit a machine or a chip to measurements",
    .description =
        "Turns measurements into a file: 'orrery calibrate nccl' makes a machine of what "
        "nccl-tests printed, 'orrery calibrate kernels' a chip of what orrery_measure.py wrote, "
        "'orrery calibrate steps' a chip of the log of a training job.",
    .examples = examples,
    .see_also =
        "orrery-calibrate-kernels(1), orrery-calibrate-nccl(1), orrery-calibrate-steps(1), orrery-machine(1), orrery-nccl-tests(1)",
    .deeper = deeper,
    .run = calibrate_run,
};
