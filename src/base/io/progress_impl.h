/* SPDX-License-Identifier: Apache-2.0 */
/* progress_impl.h - the parts of the progress line that its test looks at one by one. */
#ifndef ORR_BASE_PROGRESS_IMPL_H
#define ORR_BASE_PROGRESS_IMPL_H

#include <orrery/lab/progress.h>

/* Show on this file, whatever it is; -1: nowhere. */
void orr__progress_start_on(
    orr_progress *p, const char *what, const char *unit, uint64_t total, int fd);

/* The line at that time, at most size - 1 bytes, without line end.  Returns its length. */
size_t orr__progress_line(const orr_progress *p, uint64_t now_ns, char *out, size_t size);

#endif
