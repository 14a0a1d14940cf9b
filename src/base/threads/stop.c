/* SPDX-License-Identifier: Apache-2.0 */
/* stop.c - one pointer per thread; pool.c hands it on to the threads that it starts. */
#include "stop.h"

ORR_THREAD_LOCAL const int *orr__stop_flag;

void orr_stop_when(const int *flag)
{
    orr__stop_flag = flag;
}

int orr_stop_asked(void)
{
    return orr__stop_asked();
}
