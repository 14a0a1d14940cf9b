/* SPDX-License-Identifier: Apache-2.0 */
/* version.h - which version of the library this is.
 *
 *     #if ORR_VERSION_NUMBER < 200            // before 0.2.0
 *     if (strcmp(orr_version(), ORR_VERSION)) // the headers and the library are of different versions
 *
 * Stable are the headers in <orrery/...>: within one major version (until 1.0: one minor version) a
 * program that compiles and links against them goes on doing so.  Headers in <orrery/lab/...>
 * promise nothing.
 *
 * Threads: a sealed trace, a set and a timeline may be read by many threads at once.  Any other
 * object belongs to one thread at a time.  Functions that stop a run may be called from any thread
 * and from signal handlers. There is no global state. */
#ifndef ORRERY_VERSION_H
#define ORRERY_VERSION_H

#include <orrery/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ORR_VERSION_MAJOR 0
#define ORR_VERSION_MINOR 1
#define ORR_VERSION_PATCH 0
#define ORR_VERSION "0.1.0"
#define ORR_VERSION_NUMBER (ORR_VERSION_MAJOR * 10000 + ORR_VERSION_MINOR * 100 + ORR_VERSION_PATCH)

/* ORR_VERSION of the library that is linked. */
ORR_API const char *orr_version(void);

#ifdef __cplusplus
}
#endif
#endif
