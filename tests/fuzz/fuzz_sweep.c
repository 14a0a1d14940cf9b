/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_sweep.c - any bytes as the specification of a sweep.  What is refused has words; what is taken
 * has points, and each has a command line. */
#include <orrery/lab/sweep.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* Two commands; names of up to three letters are options, "flag" is a flag, "arg" an argument. */
static orr_sweep_form find(void *context, const char *command, const char **name, uint32_t *place)
{
    (void)context;
    *place = 0;
    if (strcmp(command, "make") != 0 && strcmp(command, "run") != 0)
        return ORR_SWEEP_NOTHING;
    if (!name || strlen(*name) < 3)
        return ORR_SWEEP_OPTION;
    return strcmp(*name, "flag") == 0  ? ORR_SWEEP_FLAG
           : strcmp(*name, "arg") == 0 ? ORR_SWEEP_ARGUMENT
                                       : ORR_SWEEP_NOTHING;
}

static const char *nearest(void *context, const char *command, const char *typed)
{
    (void)context, (void)typed;
    return command ? "tp" : "make";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const orr_sweep_hooks hooks = {.program = "fuzz", .find = find, .nearest = nearest};
    orr_sweep *s;
    orr_error err;
    char line[4096];
    if (size > 1024)
        return 0;
    if (orr_sweep_read((orr_span){data, size}, "sweep.yaml", &hooks, &s, &err)) {
        require(err.message[0] && !s);
        return 0;
    }
    const size_t n = orr_sweep_count(s);
    require(n > 0);
    for (size_t i = 0; i < n && i < 8; i++)
        require(orr_sweep_line(s, i, line, sizeof line, &err) == ORR_OK && line[0]);
    orr_sweep_close(s);
    return 0;
}
