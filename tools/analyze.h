/* SPDX-License-Identifier: Apache-2.0 */
/* analyze.h - what analyzers that see one file at a time cannot know: functions that report a
 * failure return its code.
 *
 * tools/analyze.sh includes it before every file.  Otherwise every variable that is set by a call
 * whose code was checked is reported as uninitialised, and real findings are lost among these
 * reports.  The files that define these functions do not include it. */
#include <base/formats/json_impl.h>
#include <base/memory/memory.h>
#include <orrery/error.h>

#define orr_fail(err, code, ...) ((void)orr_fail(err, code, __VA_ARGS__), (code))
#define orr_because(err, code, ...) ((void)orr_because(err, code, __VA_ARGS__), (code))
#define orr_no_memory(err) ((void)orr_no_memory(err), ORR_ENOMEM)
#define orr__json_fail(j, ...) ((void)orr__json_fail(j, __VA_ARGS__), ORR_EINPUT)
