/* SPDX-License-Identifier: Apache-2.0 */
/* grisu.h - doubles in the JSON files of the reference, digit by digit. */
#ifndef ORR_GRISU_H
#define ORR_GRISU_H

#include <orrery/types.h>

enum { ORR__GRISU_ROOM = 40 };

/* Returns the length; not NUL-terminated.  What is not a number is null. */
size_t orr__grisu_text(double value, char out[ORR__GRISU_ROOM]);

#endif
