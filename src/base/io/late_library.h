/* SPDX-License-Identifier: Apache-2.0 */
/* late_library.h - functions of a shared library that is loaded when they are first needed.
 *
 * Graphviz and SQLite serve a few commands, and loading them took every start of the program half
 * of its instructions and a megabyte of memory; simdjson, which brings the C++ library, another.
 * Who uses such a library lists its functions once:
 *
 *     #define CALLS(X) X(sqlite3_open_v2) X(sqlite3_close)
 *     static struct { ORR_LATE_FIELDS(CALLS) } lib;
 *     static const char *const names[] = {ORR_LATE_NAMES(CALLS)};
 *     ... orr_late_load(LIBRARY, names, sizeof names / sizeof *names, &lib, &why) ...  lib.sqlite3_close(db);
 *
 * A library stays loaded until the process ends. */
#ifndef ORR_BASE_LATE_LIBRARY_H
#define ORR_BASE_LATE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#define ORR__LATE_FIELD(name) __typeof__(name) *name;
#define ORR__LATE_NAME(name) #name,
#define ORR_LATE_FIELDS(calls) calls(ORR__LATE_FIELD)
#define ORR_LATE_NAMES(calls) calls(ORR__LATE_NAME)

/* Fills count pointers from *first on.  Not thread-safe.  False: *why has the reason, until the
 * next call. */
bool orr_late_load(
    const char *library, const char *const *names, size_t count, void *first, const char **why);

#endif
