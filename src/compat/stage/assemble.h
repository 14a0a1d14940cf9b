/* SPDX-License-Identifier: Apache-2.0 */
/* assemble.h - from modules to the tensor graph of a whole training step.
 *
 *     modules -> one layer -> its weights as one block -> all layers, embeddings, loss
 *             -> all micro-batches, gradients added up -> weights updated */
#ifndef ORR_SYMBOLIC_ASSEMBLE_H
#define ORR_SYMBOLIC_ASSEMBLE_H

#include <orrery/lab/stage.h>

#include "template.h"

/* All of it, up to the point where pipeline stages part.  g: a graph of no tensors so far. */
orr_code stg_assemble_model(stg_tgraph *g,
                            stg_library *lib,
                            const orr_stage_options *opt,
                            orr_error *err) ORR_MUST_CHECK;

#endif
