/* SPDX-License-Identifier: Apache-2.0 */
/* stop.h - interrupts long work that has no object to stop: reading, linking, converting, checking,
 * writing.  (A run has orr_run_stop, a search orr_plan_search_stop.)
 *
 *     static int stop;                       // another thread or a signal handler sets it to 1
 *     orr_stop_when(&stop);
 *     code = orr_set_open(path, NULL, &s, &err);
 *     orr_stop_when(NULL);
 *
 * Work of the calling thread, and of threads it starts, fails soon after *flag becomes nonzero, as
 * if out of memory: nothing leaks, files appear whole or not at all. */
#ifndef ORRERY_LAB_STOP_H
#define ORRERY_LAB_STOP_H

#include <orrery/error.h>

#ifdef __cplusplus
extern "C" {
#endif

ORR_API void orr_stop_when(const int *flag); /* NULL: never */
ORR_API int orr_stop_asked(void);            /* of this thread */

#ifdef __cplusplus
}
#endif
#endif
