/* SPDX-License-Identifier: Apache-2.0 */
/* analyze.h - what analyzers of one file at a time cannot see: that reporting a failure returns it.
 *
 * tools/analyze.sh puts it before every file.  Without it each "set by a call whose code was looked at" is a report of a value
 * that was never set, and what is real drowns in them.  The files that define these functions do without. */
#include <base/formats/json_impl.h>
#include <base/memory/memory.h>
#include <orrery/error.h>

#define orr_fail(err, code, ...) ((void)orr_fail(err, code, __VA_ARGS__), (code))
#define orr_because(err, code, ...) ((void)orr_because(err, code, __VA_ARGS__), (code))
#define orr_no_memory(err) ((void)orr_no_memory(err), ORR_ENOMEM)
#define orr__json_fail(j, ...) ((void)orr__json_fail(j, __VA_ARGS__), ORR_EINPUT)
