/* SPDX-License-Identifier: Apache-2.0 */
/* stage_llm.h - what cmd_stage.c and stage_llm.c know of each other. */
#ifndef ORR_CLI_STAGE_LLM_H
#define ORR_CLI_STAGE_LLM_H

#include "command.h"

/* The default mode: c->args[0] is a model. */
orr_code cli_stage_llm(cli_context *c, orr_error *err);
/* --micro-batch: -1 (as 0), or a whole number from 1 on. */
orr_code cli_stage_micro_batch(const char *text, uint64_t *out, orr_error *err);

#endif
