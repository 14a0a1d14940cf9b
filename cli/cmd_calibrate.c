/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_calibrate.c - orrery calibrate: the kinds of measurements, each a two-word command; and the
 * line reader that they share. */
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

/* The longest line allowed.  Logs may contain progress bars; an input without newlines, such as a
 * device, must not fill the memory. */
enum { LINE_MOST = 1 << 24 };

static bool has_room(cal_lines *l, size_t need)
{
    if (need <= l->room)
        return true;
    const size_t room = l->room ? 2 * l->room : 256;
    char *more = realloc(l->text, room);
    l->has_no_memory = !more;
    if (!more)
        return false;
    l->text = more;
    l->room = room;
    return true;
}

bool cal_next(cal_lines *l)
{
    size_t n = 0;
    int c = 0;
    while (n < LINE_MOST && (c = getc_unlocked(l->in)) != EOF && c != '\n') {
        if (!has_room(l, n + 2))
            return false;
        l->text[n++] = (char)c;
    }
    if ((c == EOF && n == 0) || !has_room(l, n + 1))
        return false;
    l->line++;
    l->is_too_long = n == LINE_MOST;
    l->text[n] = '\0';
    l->text[strcspn(l->text, "\r\n")] = '\0';
    return !l->is_too_long;
}

orr_code cal_close(cal_lines *l, orr_code code, orr_error *err)
{
    if (!code && l->is_too_long)
        code = cal_fail(l, "the line is longer than 16 MiB", err);
    else if (!code && l->has_no_memory)
        code = orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
    else if (!code && l->in && !feof(l->in))
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
        "Turns measurements into a file: 'orrery calibrate nccl' fits a machine to output of "
        "nccl-tests, 'orrery calibrate kernels' a chip to output of orrery_measure.py, 'orrery "
        "calibrate steps' a chip to the log of a training job.",
    .examples = examples,
    .see_also =
        "orrery-calibrate-kernels(1), orrery-calibrate-nccl(1), orrery-calibrate-steps(1), orrery-machine(1), orrery-nccl-tests(1)",
    .deeper = deeper,
    .run = calibrate_run,
};
