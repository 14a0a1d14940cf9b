/* SPDX-License-Identifier: Apache-2.0 */
/* rank_list.h - a list of ranks as users write it: 0-7,12. */
#ifndef ORR_BASE_RANK_LIST_H
#define ORR_BASE_RANK_LIST_H

#include <orrery/error.h>
#include <orrery/types.h>

/* The next range of text, both ends with; *at starts as text.  ORR_END after the last. */
ORR_MUST_CHECK orr_code orr_rank_list_next(
    const char *text, const char **at, uint32_t *first, uint32_t *last, orr_error *err);

#endif
