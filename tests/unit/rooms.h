/* SPDX-License-Identifier: Apache-2.0 */
/* rooms.h - the rules of replaced programs, in tests.
 *
 *     opt.rules = program_of(ORR_RULES_LOGGOPS, "lgs2023")->loggops;
 *
 * A build may leave out the room that has them (meson option `compat`): then the test is skipped. */
#ifndef ORR_TESTS_ROOMS_H
#define ORR_TESTS_ROOMS_H

#include "check.h"

#include <orrery/lab/compat.h>

/* name NULL: the first program that has rules for this part. */
static inline const orr_compat *program_of(orr_compat_part part, const char *name)
{
    const orr_compat *p = NULL;
    orr_error why;
    if (name)
        (void)!orr_compat_find(part, name, &p, &why);
    else
        p = orr_compat_at(part, 0);
    if (!p)
        skip();
    return p;
}

#endif
