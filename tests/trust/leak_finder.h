/* SPDX-License-Identifier: Apache-2.0 */
/* leak_finder.h - which blocks nobody points at when a process ends; part of fault_shim.c. */
#ifndef LEAK_FINDER_H
#define LEAK_FINDER_H

#include <stddef.h>

void leaks_watch(const char *report); /* from now on; the file is written by leaks_report */
void leaks_add(void *block, size_t size);
void leaks_remove(void *block);
void leaks_report(void);

#endif
