/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_page.h - the page of a sweep, cut where the title and the data go.  Made by
 * tools/embed.c. */
#ifndef ORR_SWEEP_PAGE_H
#define ORR_SWEEP_PAGE_H

extern const char orr__sweep_page_before_title[];
extern const char orr__sweep_page_before_data[];
extern const char orr__sweep_page_after_data[];

#endif
