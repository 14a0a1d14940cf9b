/* SPDX-License-Identifier: Apache-2.0 */
/* python_set.h - a set of whole numbers that gives them back in the order in which CPython's does.
 *
 * SCALE-Sim v1 fills its memory traces by popping from a set of floats, so the order within a file
 * is that of CPython's hash table, version 3.11: a whole number's hash is itself; ten places in a
 * row are tried, then a perturbed one; what is taken out leaves a mark, and a new key goes to the
 * last mark on its way; popping goes on where it last stopped. */
#ifndef ORR_MODELS_PYTHON_SET_H
#define ORR_MODELS_PYTHON_SET_H

#include <orrery/types.h>

typedef struct python_set {
    uint64_t *table; /* key + 2; 0: never used, 1: taken out */
    size_t mask, fill, used, finger;
    bool has_failed; /* memory ran out; the set is of no use any more */
} python_set;

void python_set_init(python_set *s);
void python_set_fini(python_set *s);
bool python_set_has(const python_set *s, uint64_t key);
void python_set_add(python_set *s, uint64_t key); /* one that is in it stays */
uint64_t python_set_pop(python_set *s);           /* of a set that is not empty */

#endif
