/* SPDX-License-Identifier: Apache-2.0 */
/* python_text.h - JSON values in the notation of Python's str(), which the converter's files hold
 * (chakra.md 4.2). */
#ifndef ORR_SOURCES_PYTORCH_PYTHON_TEXT_H
#define ORR_SOURCES_PYTORCH_PYTHON_TEXT_H

#include "base/memory/buffer.h"
#include "sources/torch/read/linked.h"

/* Add what str(json.loads(text)) gives, but for a text at the top, which comes with its quotes.
 * `json` is one value that a JSON reader has accepted.  Running out of memory is remembered by the
 * buffer. */
void python_text(orr_buf *to, orr_str json);

/* Values, shapes and types of one side of a node; the texts stand in the buffers. */
orr_io python_io(orr_buf text[3], const linked_io *io);

#endif
