/* SPDX-License-Identifier: Apache-2.0 */
/* training_options.c - options of a training step that `stage` and `plan` have in common: those of
 * CLI_TRAINING_OPTIONS, by the library's table of them, whose rules about combinations hold for
 * both (orr_llm_complete). */
#include "command.h"

#include <stdio.h>
#include <string.h>

/* The library has it as an option of a step; here its default depends on the machine. */
static bool is_software(const orr_llm_option *n)
{
    return strcmp(n->name, "software") == 0;
}

orr_code cli_training_options(const cli_context *c, orr_llm_options *o, orr_error *err)
{
    const orr_llm_option *n;
    orr_code code = ORR_OK;
    for (size_t i = 0; (n = orr_llm_option_at(i)) && !code; i++) {
        char name[ORR_LLM_OPTION_ROOM];
        if (is_software(n) || !cli_given(c, n->name))
            continue;
        snprintf(name, sizeof name, "--%s", n->name);
        code = orr_llm_option_set(o, name, cli_text(c, n->name), err);
    }
    return code;
}

const char *cli_training_given(const cli_context *c, const char *except)
{
    const orr_llm_option *n;
    for (size_t i = 0; (n = orr_llm_option_at(i)); i++)
        if (!is_software(n) && strcmp(n->name, except) != 0 && cli_given(c, n->name))
            return n->name;
    return NULL;
}
