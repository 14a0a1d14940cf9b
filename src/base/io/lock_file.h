/* SPDX-License-Identifier: Apache-2.0 */
/* lock_file.h - a file that says that one process is at work.
 *
 *     int lock;
 *     code = orr_lock_take("x.db-lock", 2000, &lock, &err);     // ORR_END: another process has it
 *     ...
 *     orr_lock_give(lock, "x.db-lock");                          // and the file is gone
 *
 * The system takes the lock back when the process and all that it forked have ended, however they
 * ended; a file that is left behind then means nothing. */
#ifndef ORR_BASE_LOCK_FILE_H
#define ORR_BASE_LOCK_FILE_H

#include "base/memory/memory.h"

/* Tries again for wait_ms.  On failure *out is -1. */
orr_code orr_lock_take(const char *path, unsigned wait_ms, int *out, orr_error *err) ORR_MUST_CHECK;
void orr_lock_give(int lock, const char *path); /* -1 is fine */
bool orr_lock_is_held(const char *path);

#endif
