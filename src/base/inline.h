/* SPDX-License-Identifier: Apache-2.0 */
/* inline.h - for the few loops that run millions of times, where the compiler's own choice is not
 * the best.
 *
 * ORR_INLINE: part of such a loop.  ORR_APART: rarely called from one; inline it would take
 * registers, and stack with a guard of its own, from what runs each time. */
#ifndef ORR_BASE_INLINE_H
#define ORR_BASE_INLINE_H

#define ORR_INLINE static inline __attribute__((always_inline))
#define ORR_APART static __attribute__((noinline))

#endif
