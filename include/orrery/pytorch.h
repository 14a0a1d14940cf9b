/* SPDX-License-Identifier: Apache-2.0 */
/* pytorch.h - a linked PyTorch trace (what host and device of one rank did) made into a trace that can be simulated.
 *
 *     orr_linked *l;
 *     orr_trace *t;
 *     if (orr_linked_read("linked.json", NULL, &l, &err)) return report(&err);
 *     if (orr_linked_trace(l, NULL, &t, &err)) return report(&err);
 *     orr_linked_free(l);
 *
 * docs/format/linked.md has the form of the file and what becomes of it. */
#ifndef ORRERY_PYTORCH_H
#define ORRERY_PYTORCH_H

#include <orrery/set.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct orr_linked orr_linked;

#ifdef __cplusplus
}
#endif
#endif
