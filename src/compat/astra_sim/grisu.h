/* SPDX-License-Identifier: Apache-2.0 */
/* grisu.h - doubles as in ASTRA-sim's JSON files, digit for digit. */
#ifndef ORR_GRISU_H
#define ORR_GRISU_H

#include <orrery/types.h>

enum { ORR__GRISU_ROOM = 40 };

/* Returns the length; no terminating NUL.  NaN and infinities are printed as null. */
size_t orr__grisu_text(double value, char out[ORR__GRISU_ROOM]);

#endif
