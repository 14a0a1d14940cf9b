/* SPDX-License-Identifier: Apache-2.0 */
/* llm_tape_impl.h - how the pen writes onto a tape. */
#ifndef ORR_LLM_TAPE_IMPL_H
#define ORR_LLM_TAPE_IMPL_H

#include "llm_impl.h"
#include "llm_tape.h"

/* Empties the tape and writes node 0; its id, as those below: one more than the place on the tape.
 */
uint64_t llm_tape_begin(orr__tape *t);
uint64_t llm_tape_input(orr__tape *t); /* one more */
void llm_tape_kernel(orr__tape *t, const orr_kernel *k);
uint64_t llm_tape_compute(llm_pen *p, uint64_t operations, uint64_t bytes, llm_deps after);
uint64_t llm_tape_collect(orr__tape *t,
                          orr_collective kind,
                          uint64_t bytes,
                          llm_axis axis,
                          llm_stream stream,
                          llm_deps after);
uint64_t llm_tape_message(
    orr__tape *t, bool is_send, uint64_t bytes, llm_stream stream, llm_deps after);

#endif
