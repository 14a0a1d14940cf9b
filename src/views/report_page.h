/* SPDX-License-Identifier: Apache-2.0 */
/* report_page.h - the report page of web/, cut where the title and the data go.  Made by
 * tools/embed.c. */
#ifndef ORR_REPORT_PAGE_H
#define ORR_REPORT_PAGE_H

extern const char orr__page_before_title[];
extern const char orr__page_before_data[];
extern const char orr__page_after_data[];

#endif
