/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate_steps.c - orrery calibrate steps: a chip from times of whole training steps.
 *
 * Logs of Megatron-LM, DeepSpeed and torchtitan contain the time of a step, or tokens per second; a
 * list of milliseconds also works.  The median step time over the prediction of `orrery run`
 * becomes a factor for all kernels, and the 5th to 95th percentile their interval. */
#include "calibrate.h"
#include "command.h"

#include <orrery/lab/chip.h>
#include <orrery/view.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_MOST = 100000, STEPS_LEAST = 3, SHOWN = 40 };

static const cli_option options[] = {
    {"predicted", 'p', "MS", "step time that orrery run predicted, in milliseconds",
     .required = true},
    {"like", 'l', "CHIP", "the chip of that prediction ('orrery chip list')", .required = true},
    {"tokens", 0, "N", "tokens per device and step, for logs that give tokens per second (tps)",
     CLI_COUNT, 1},
    {"skip", 0, "N", "skip the first N steps (warm-up)", CLI_COUNT, 0, .fallback = "2"},
    {"output", 'o', "FILE", "write the chip to FILE (.yml)", .kind = CLI_OUTPUT},
    {"plot", 0, "FILE", "plot the steps, their interval and the prediction (.svg)",
     .kind = CLI_OUTPUT},
    {"json", 0, NULL, "print one JSON object"},
    {0},
};

static const cli_argument arguments[] = {
    {"LOG", "a training log, or a list of milliseconds; - is standard input", 0},
    {0},
};

static const cli_example examples[] = {
    {"Lines of Megatron-LM's log, and the step time that orrery run predicted:",
     "for t in 900 890 214.1 213.2 215.8 212.9; do echo \" iteration 1/ 9 | elapsed time per iteration "
     "(ms): $t |\"; done > train.log",
     0},
    {"", "orrery calibrate steps train.log --predicted 201.5 --like h200 -o mine.yml", 0},
    {0},
};

typedef struct steps {
    double *ms;     /* in the order of the log, warm-up steps included */
    double *sorted; /* without them */
    size_t room;
    size_t count, found; /* without and with warm-up steps */
    double median, low, high;
} steps;

/* The text before the number, and its unit in milliseconds; 0: tokens per second. */
static const struct {
    const char *words;
    double ms;
} marks[] = {
    {"elapsed time per iteration (ms):", 1}, /* Megatron-LM, Megatron-DeepSpeed */
    {"iter time (s):", 1000},                /* DeepSpeed */
    {"tps:", 0},                             /* torchtitan */
};

/* Thousands separators are skipped: 5,762 is one number. */
static bool read_number(const char *text, double *out)
{
    char digits[SHOWN];
    size_t n = 0;
    text += strspn(text, " \t");
    for (; *text && strchr("0123456789.,-+eE", *text) && n + 1 < sizeof digits; text++)
        if (*text != ',')
            digits[n++] = *text;
    digits[n] = '\0';
    char *end;
    *out = strtod(digits, &end);
    return n > 0 && end == digits + n;
}

/* Skips terminal colour codes, which torchtitan prints. */
static void strip_colours(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        if (*from != '\033') {
            *to++ = *from;
            continue;
        }
        while (from[1] && *from != 'm')
            from++;
    }
    *to = '\0';
}

static orr_code take_line(steps *s, const cal_lines *l, double tokens, orr_error *err)
{
    char *text = l->text;
    double number = 0, ms = 0;
    strip_colours(text);
    const char *at = text + strspn(text, " \t");
    if (!*at || *at == '#')
        return ORR_OK;
    bool is_step = strspn(at, "0123456789.") == strlen(at), is_number = is_step;
    if (is_step)
        is_number = read_number(at, &ms);
    for (size_t i = 0; i < sizeof marks / sizeof *marks && !is_step; i++) {
        const char *mark = strstr(text, marks[i].words);
        if (!mark)
            continue;
        is_step = true;
        is_number = read_number(mark + strlen(marks[i].words), &number);
        if (marks[i].ms <= 0 && tokens <= 0)
            return cal_fail(
                l, "the log gives tokens per second: --tokens N (per device and step) is required",
                err);
        ms = marks[i].ms > 0 ? number * marks[i].ms : number > 0 ? tokens / number * 1e3 : -1;
    }
    if (!is_step)
        return ORR_OK;
    if (!is_number)
        return cal_fail(l, "the step time is not a number", err);
    if (!(ms > 1e-3 && ms < 1e8))
        return cal_fail(l, "expected a step time of 0.001 to 100,000,000 ms", err);
    if (s->count == STEPS_MOST)
        return cal_fail(l, "more than 100,000 steps", err);
    if (s->count == s->room) {
        const size_t room = s->room ? 2 * s->room : 256;
        double *more = realloc(s->ms, room * sizeof *more);
        if (!more)
            return orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
        s->ms = more;
        s->room = room;
    }
    s->ms[s->count++] = ms;
    return ORR_OK;
}

static orr_code read_log(steps *s, const char *path, double tokens, orr_error *err)
{
    cal_lines l;
    orr_code code = cal_open(path, &l, err);
    while (!code && cal_next(&l))
        code = take_line(s, &l, tokens, err);
    return cal_close(&l, code, err);
}

static orr_code sum_up(steps *s, const char *path, size_t skip, orr_error *err)
{
    s->found = s->count;
    if (s->count < STEPS_LEAST || s->count - STEPS_LEAST < skip) {
        const orr_where w = orr_where_line(path, 0, 0);
        return orr_fail(
            err, ORR_EINPUT, &w,
            "found %zu steps, expected at least %d after the %zu skipped ones: lines of "
            "Megatron-LM, DeepSpeed or torchtitan, or milliseconds",
            s->count, STEPS_LEAST, skip);
    }
    s->count -= skip;
    if (!(s->sorted = malloc(s->count * sizeof *s->sorted)))
        return orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
    memcpy(s->sorted, s->ms + skip, s->count * sizeof *s->sorted);
    const double *ms = s->sorted;
    qsort(s->sorted, s->count, sizeof *s->sorted, cal_compare_doubles);
    s->median = s->count % 2 ? ms[s->count / 2] : (ms[s->count / 2 - 1] + ms[s->count / 2]) / 2;
    s->low = fmin(ms[s->count / 20], s->median * 0.97);
    s->high = fmax(ms[s->count - 1 - s->count / 20], s->median * 1.03);
    return ORR_OK;
}

static orr_code fit_and_tell(cli_context *c, steps *s, double predicted, orr_error *err)
{
    const char *like = cli_text(c, "like"), *output = cli_text(c, "output"),
               *picture = cli_text(c, "plot");
    const double tokens = cli_given(c, "tokens") ? (double)cli_count(c, "tokens") : 0;
    orr_code code = read_log(s, c->args[0], tokens, err);
    if (!code)
        code = sum_up(s, c->args[0], (size_t)cli_count(c, "skip"), err);
    if (code)
        return code;
    const double scale = s->median / predicted;
    if (!(scale > 0.1 && scale < 10))
        return orr_fail(
            err, ORR_EINPUT, NULL,
            "%s: steps of %.3f ms differ more than tenfold from the predicted %.3f ms; is the "
            "unit right?",
            c->args[0], s->median, predicted);
    const orr_step_fit result = {.like = like,
                                 .output = output,
                                 .found = s->found,
                                 .count = s->count,
                                 .median_ms = s->median,
                                 .low_ms = s->low,
                                 .high_ms = s->high,
                                 .predicted_ms = predicted};
    if (output)
        code = orr_step_fit_save(&result, output, err);
    if (!code && picture)
        code = orr_view_steps_svg(&(orr_view_steps){s->ms, s->found, s->found - s->count, s->median,
                                                    s->low, s->high, predicted, "ms"},
                                  picture, err);
    if (code)
        return code;
    code = orr_show_step_fit(&result, cli_show_form(c), "-", err);
    if (output)
        cli_note(c, "wrote %s\n", output);
    if (picture)
        cli_note(c, "wrote %s\n", picture);
    return code;
}

static orr_code calibrate_steps_run(cli_context *c, orr_error *err)
{
    const char *text = cli_text(c, "predicted"), *like = cli_text(c, "like");
    steps s = {0};
    double predicted = 0;
    if (!read_number(text, &predicted) || !(predicted > 1e-3 && predicted < 1e8))
        return cli_misuse(
            err, "--predicted '%s' is not a number of milliseconds from 0.001 to 100,000,000",
            text);
    if (!orr_chip_find(like))
        return cli_misuse(err, "unknown chip '%s'; see 'orrery chip list'", like);
    const orr_code code = fit_and_tell(c, &s, predicted, err);
    free(s.ms);
    free(s.sorted);
    return code;
}

const cli_command cli_cmd_calibrate_steps = {
    .name = "calibrate steps",
    .summary = "fit a chip to measured training step times",
    .description =
        "Reads step times from a log of Megatron-LM, DeepSpeed or torchtitan, or from a list "
        "of milliseconds, and writes a chip file: a built-in chip whose kernel times are all "
        "multiplied by measured over predicted step time, with the interval seen in the "
        "steps.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-calibrate-kernels(1), orrery-calibrate-nccl(1), orrery-run(1)",
    .run = calibrate_steps_run,
};
