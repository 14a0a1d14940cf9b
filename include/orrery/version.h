/* SPDX-License-Identifier: Apache-2.0 */
/* version.h - the version of the library, and its promises.
 *
 *     #if ORR_VERSION_NUMBER < 200            // before 0.2.0
 *     if (strcmp(orr_version(), ORR_VERSION)) // the headers and the library are of different versions
 *
 * The headers in <orrery/...> are stable: within one major version (until 1.0: one minor version)
 * programs keep compiling and linking.  Headers in <orrery/lab/...> may change at any time.
 *
 * Threads: a sealed trace, a set and a timeline may be read by many threads at once.  Any other
 * object belongs to one thread at a time.  Functions that stop a run may be called from any thread
 * and from signal handlers. The only process-wide state is the list of allowed folders
 * (lab/folders.h). */
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

/* ORR_VERSION of the linked library. */
ORR_API const char *orr_version(void);

#ifdef __cplusplus
}
#endif
#endif
