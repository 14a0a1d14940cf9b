/* SPDX-License-Identifier: Apache-2.0 */
/* folders.h - which files an input may name.
 *
 * Some inputs name other files: a system file its custom collectives, a machine file its table of
 * collectives, a configuration of packets its topology, flows and outputs, a sweep all that its
 * commands read.  Whoever wrote the input is not the user.  So such a file is opened, or written,
 * only if it lies in or below a folder that the user named: that of the input itself, one given
 * here, or one of those in the variable ORRERY_ALLOW_FOLDERS, with colons between them. Symbolic
 * links are followed first.
 *
 *     if (orr_folder_allow("/data/topologies", &err)) ...
 *
 * The folders are those of the process: allow them before it has threads that read. */
#ifndef ORRERY_LAB_FOLDERS_H
#define ORRERY_LAB_FOLDERS_H

#include <orrery/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Inputs may name what is in or below this folder.  ORR_EUSAGE: it is none. */
ORR_API orr_code orr_folder_allow(const char *folder, orr_error *err) ORR_MUST_CHECK;
/* The user named this file, folder or prefix of files: its folder is allowed.  What is none of
 * these allows nothing. */
ORR_API orr_code orr_folder_named(const char *path, orr_error *err) ORR_MUST_CHECK;
/* May the input `from`, at `at`, name this path?  ORR_EINPUT with words that say what to do: it may
 * not. */
ORR_API orr_code orr_folder_check(const char *path,
                                  const char *from,
                                  const orr_where *at,
                                  orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
