/* SPDX-License-Identifier: Apache-2.0 */
/* stop.h - ends work that takes long and has no object of its own to stop: reading, linking,
 * converting, checking, writing.  (A run has orr_run_stop, a search orr_plan_search_stop.)
 *
 *     static int stop;                       // another thread or a signal handler sets it to 1
 *     orr_stop_when(&stop);
 *     code = orr_set_open(path, NULL, &s, &err);
 *     orr_stop_when(NULL);
 *
 * What the calling thread does meanwhile, and threads that it starts for that, fails soon after
 * *flag is not 0, in the way it fails without memory: nothing is left behind, files appear whole or
 * not at all. */
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
