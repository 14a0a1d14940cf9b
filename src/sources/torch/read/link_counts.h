/* SPDX-License-Identifier: Apache-2.0 */
/* link_counts.h - counting what goes wrong, in one place that knows about --strict. */
#ifndef ORR_PYTORCH_LINK_COUNTS_H
#define ORR_PYTORCH_LINK_COUNTS_H

#include <orrery/lab/link.h>

typedef struct link_tally {
    orr_link_counts counts;
    bool is_strict;
} link_tally;

/* One more of these.  Trouble in strict mode is an error, at `where` (NULL: no place). */
orr_code link_count(link_tally *t, orr_link_counter c, const orr_where *where, orr_error *err)
    ORR_MUST_CHECK;

/* One more host node whose parent does not come before it; the first few are remembered by their
 * ids. */
orr_code link_count_later(link_tally *t,
                          const orr_where *where,
                          uint64_t id,
                          uint64_t parent,
                          orr_error *err) ORR_MUST_CHECK;

/* As link_count for an event of the device trace `path`, which has a name and a place in
 * traceEvents. */
orr_code link_count_event(link_tally *t,
                          orr_link_counter c,
                          const char *path,
                          orr_str name,
                          uint32_t index,
                          orr_error *err) ORR_MUST_CHECK;

#endif
