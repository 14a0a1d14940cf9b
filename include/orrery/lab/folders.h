/* SPDX-License-Identifier: Apache-2.0 */
/* folders.h - which files an input may name.
 *
 * Some inputs name other files: a system file its custom collectives, a machine file its table of
 * collectives, a configuration of packets its topology, flows and outputs, a sweep all that its
 * commands read.  The author of the input may be somebody other than the user, so such a file is
 * opened, or written, only if it lies in or below a folder that the user named: that of the input
 * itself, one given here, or one of those in the variable ORRERY_ALLOW_FOLDERS, colon-separated.
 * Symbolic links are followed first.
 *
 *     if (orr_folder_allow("/data/topologies", &err)) ...
 *
 * The folders are those of the process: allow them before starting threads that read. */
#ifndef ORRERY_LAB_FOLDERS_H
#define ORRERY_LAB_FOLDERS_H

#include <orrery/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Inputs may name files in or below this folder.  ORR_EUSAGE: not a folder. */
ORR_API orr_code orr_folder_allow(const char *folder, orr_error *err) ORR_MUST_CHECK;
/* The user named this file, folder or prefix of files: allow its folder.  Anything else allows
 * nothing. */
ORR_API orr_code orr_folder_named(const char *path, orr_error *err) ORR_MUST_CHECK;
/* May the input `from`, at `at`, name this path?  If not: ORR_EINPUT with advice. */
ORR_API orr_code orr_folder_check(const char *path,
                                  const char *from,
                                  const orr_where *at,
                                  orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
