/* SPDX-License-Identifier: Apache-2.0 */
/* json_list.h - walk a large file that is one long list: {"KEY": [item, ...], other members}, or
 * the bare list.
 *
 * Chrome traces ("traceEvents") and host traces ("nodes") look like this.  One item is in memory at
 * a time. */
#ifndef ORR_BASE_JSON_LIST_H
#define ORR_BASE_JSON_LIST_H

#include "json.h"

/* A function that returns ORR_END has seen enough: the walk ends there, and the rest of the file is
 * not looked at. */
typedef struct orr_json_list {
    const char *key;
    const char *what; /* for messages: "a device trace" */
    bool takes_bare;  /* the list alone is a file, too */
    bool takes_more;  /* other documents may follow; they are not looked at */
    /* A list begins; ORR_END: pass over it.  NULL: nothing to do. */
    orr_code (*begin)(void *context, const orr_json_item *list);
    orr_code (*item)(void *context, orr_json_value item);
    /* Any other member, to be loaded or passed over; also KEY when it is no list.  NULL: none
     * matters. */
    orr_code (*member)(void *context, const orr_json_item *member);
} orr_json_list;

/* The one document of j.  It need not have the list: whoever needs it notes that in begin. */
orr_code orr_json_walk_list(orr_json *j, const orr_json_list *how, void *context, orr_error *err)
    ORR_MUST_CHECK;

#endif
