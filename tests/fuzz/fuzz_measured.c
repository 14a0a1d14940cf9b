/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_measured.c - any bytes as what orrery calibrate reads: measured kernels, the log of a training job, what nccl-tests
 * printed; and as kernels for orrery chip time.  The first byte picks the command and its options, the rest is the file.  What is refused has words; what is
 * taken is fitted and printed. */
#include "fuzz_trace.h"

#include "calibrate.h"

enum { MOST_WORDS = 8 };

extern const cli_command cli_cmd_chip;

static const struct {
    const cli_command *command;
    const char *words[MOST_WORDS];
} ways[] = {
    {&cli_cmd_calibrate_kernels, {"--like", "h200"}},
    {&cli_cmd_calibrate_kernels, {"--like", "a100", "--json"}},
    {&cli_cmd_calibrate_steps, {"--like", "h200", "--predicted", "200"}},
    {&cli_cmd_calibrate_steps,
     {"--like", "h200", "--predicted", "200", "--tokens", "4096", "--json"}},
    {&cli_cmd_calibrate_nccl, {"--machine", "dgx-h100"}},
    {&cli_cmd_chip, {"time", "h200", "--from"}},
    {&cli_cmd_chip, {"time", "b200", "--json", "--from"}},
};

/* What it prints goes nowhere; our own lines must not. */
static orr_code run_silently(cli_context *c, orr_error *err)
{
    static FILE *nowhere;
    FILE *const before = stdout;
    if (!nowhere)
        REQUIRE((nowhere = fopen("/dev/null", "w")));
    stdout = nowhere;
    const orr_code code = c->command->run(c, err);
    stdout = before;
    return code;
}

/* A fit of collectives takes a thousand times as long as the others: when fuzzing few inputs have it. */
static size_t pick_way(const uint8_t *data, size_t size)
{
    const size_t way = data[0] % (sizeof ways / sizeof *ways);
#ifdef FUZZ_ONE_WAY
    if (ways[way].command == &cli_cmd_calibrate_nccl && fuzz_pick(data, size, 256))
        return 0;
#endif
    (void)size;
    return way;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char words[MOST_WORDS + 1][64];
    char *argv[MOST_WORDS + 2];
    int argc = 0;
    orr_error err = {0};
    if (size < 1 || size > 1 << 13)
        return 0;
    const size_t way = pick_way(data, size);
    for (; argc < MOST_WORDS && ways[way].words[argc]; argc++) {
        snprintf(words[argc], sizeof words[argc], "%s", ways[way].words[argc]);
        argv[argc] = words[argc];
    }
    snprintf(words[argc], sizeof words[argc], "%s", fuzz_file(0, data + 1, size - 1));
    argv[argc] = words[argc];
    argv[++argc] = NULL;
    cli_context c = {.command = ways[way].command, .quiet = true};
    REQUIRE(cli_parse(&c, argc, argv, &err) == ORR_OK);
    const orr_code code = run_silently(&c, &err);
    /* ORR_EUSAGE: more nodes than the machine has */
    REQUIRE(code == ORR_OK || ((code == ORR_EINPUT || code == ORR_EUSAGE) && err.message[0]));
    return 0;
}
