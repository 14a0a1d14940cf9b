/* SPDX-License-Identifier: Apache-2.0 */
/* match_store.h - what a comparison is made of. */
#ifndef ORR_SOURCES_FX_MATCH_STORE_H
#define ORR_SOURCES_FX_MATCH_STORE_H

#include <orrery/lab/operators.h>

#include "base/memory/intern.h"
#include "base/memory/memory.h"

struct orr__operators_store {
    orr_arena *arena;
    orr_intern *names, *shapes;
};

#endif
