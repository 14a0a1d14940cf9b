/* SPDX-License-Identifier: Apache-2.0 */
/* nearest.h - the word that was probably meant. */
#ifndef ORR_BASE_NEAREST_H
#define ORR_BASE_NEAREST_H

#include <orrery/types.h>

/* Of a list that ends in NULL, the word that the fewest letters tell from what was typed; NULL:
 * none is near.  Cost: the product of the lengths, per word; long words are near to none. */
const char *orr_nearest(orr_str typed, const char *const *known);
/* "a, b, c", as much as fits; the rest is "...". */
void orr_list_words(const char *const *known, char *out, size_t room);

#endif
