/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_calibrate.c - orrery calibrate: which kinds of measurements there are; each is a command of two
 * words. */
#include "calibrate.h"
#include "command.h"

static const cli_command *const deeper[] = {&cli_cmd_calibrate_nccl, &cli_cmd_calibrate_kernels,
                                            &cli_cmd_calibrate_steps, NULL};

static const cli_example examples[] = {
    {"The output of nccl-tests on a machine:",
     "orrery nccl-tests --machine dgx-h100 > measured.txt", 0},
    {"", "orrery calibrate nccl measured.txt --machine dgx-h100 -o mine.yml", 0},
    {0},
};

static orr_code calibrate_run(cli_context *c, orr_error *err)
{
    (void)c;
    return orr_fail(err, ORR_EUSAGE, NULL,
                    "what was measured? 'orrery calibrate nccl FILE...', 'orrery calibrate "
                    "kernels FILE' or 'orrery calibrate steps LOG'");
}

const cli_command cli_cmd_calibrate = {
    .name = "calibrate",
    .summary = "fit a machine to what was measured on it",
    .description =
        "Measurements in, a file out: 'orrery calibrate nccl' reads what nccl-tests printed and writes a machine, "
        "'orrery calibrate kernels' reads what orrery_measure.py wrote and writes a chip, 'orrery calibrate steps' a log "
        "of a training.",
    .examples = examples,
    .see_also =
        "orrery-calibrate-kernels(1), orrery-calibrate-nccl(1), orrery-calibrate-steps(1), orrery-machine(1), orrery-nccl-tests(1)",
    .deeper = deeper,
    .run = calibrate_run,
};
