/* SPDX-License-Identifier: Apache-2.0 */
/* pool.h - the same work on many items, on several threads.
 *
 *     orr_code read_one(void *context, size_t i, orr_error *err);
 *     code = orr_pool_for(0, files, read_one, &job, &err);
 *
 * Items are handed out in order.  After a failure no more are handed out, and the failure with the
 * smallest index is the one reported: the same one on every run and with any number of threads. */
#ifndef ORR_BASE_POOL_H
#define ORR_BASE_POOL_H

#include "base/memory/memory.h"

typedef orr_code (*orr_pool_work)(void *context, size_t item, orr_error *err);

orr_code orr_pool_for(unsigned threads,
                      size_t items,
                      orr_pool_work work,
                      void *context,
                      orr_error *err) ORR_MUST_CHECK;
unsigned orr_pool_threads(unsigned wanted); /* wanted, or one per core when 0 */

#endif
