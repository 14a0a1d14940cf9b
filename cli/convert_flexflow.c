/* SPDX-License-Identifier: Apache-2.0 */
/* convert_flexflow.c - orrery convert flexflow: a task graph of FlexFlow to traces. */
#include "convert.h"

#include <orrery/lab/compat.h>
#include <orrery/lab/flexflow.h>

#include <inttypes.h>

/* A set numbers its ranks from 0; only the old program writes files with gaps in their numbers. */
static orr_code check_numbers(const cli_context *c,
                              const orr_flexflow *g,
                              const orr_set *s,
                              orr_error *err)
{
    const orr_where at = orr_where_line(c->args[1], 1, 1);
    for (uint32_t r = 0; r < orr_set_rank_count(s); r++) {
        if (orr_flexflow_device(g, r) != r)
            return orr_fail(err, ORR_EINPUT, &at,
                            "no task computes on device %" PRIu32 ", but one does on device "
                            "%" PRIu32,
                            r, orr_flexflow_device(g, r));
    }
    return ORR_OK;
}

static orr_code flexflow_make(cli_context *c, orr_set **out, orr_error *err)
{
    orr_flexflow_expand opt = {.mhz = (uint32_t)cli_count(c, "frequency")};
    orr_flexflow *g;
    orr_code code = ORR_OK;
    if (cli_flag(c, "compat") && !opt.mhz)
        return orr_fail(err, ORR_EUSAGE, NULL, "--compat needs --frequency MHZ");
    if (cli_flag(c, "compat")) {
        const orr_compat *old;
        code = orr_compat_find(ORR_RULES_FLEXFLOW, "chakra", &old, err);
        if (code)
            return code;
        opt.rules = old->flexflow;
    }
    code = orr_flexflow_read(c->args[1], &g, err);
    if (code)
        return code;
    code = orr_flexflow_set(g, &opt, out, err);
    if (!code && opt.rules && (code = check_numbers(c, g, *out, err)))
        orr_set_close(*out);
    const size_t crossings = orr_flexflow_crossings(g);
    if (!code && crossings)
        cli_note(c, "%s: dependencies from device to device without a message: %zu; %s\n",
                 c->args[1], crossings,
                 opt.rules ? "they lead into other files" : "messages of one byte stand for them");
    orr_flexflow_free(g);
    return code;
}

static const char *const flexflow_options[] = {"frequency", "compat", NULL};

const cli_converter cli_convert_flexflow = {"flexflow", flexflow_options, flexflow_make, NULL};
