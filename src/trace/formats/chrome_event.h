/* SPDX-License-Identifier: Apache-2.0 */
/* chrome_event.h - one event of a Chrome trace: the fields that readers of such files ask for.
 *
 * Timelines read any writer's events; linking and comparing operators read those of PyTorch's
 * profiler (Kineto), which says more in args.  A file of events is walked with
 * orr_json_walk_list. */
#ifndef ORR_TRACE_CHROME_EVENT_H
#define ORR_TRACE_CHROME_EVENT_H

#include "base/formats/json_list.h"

typedef enum chrome_field {
    CHROME_NAME,
    CHROME_CAT,
    CHROME_PH,
    CHROME_TS,
    CHROME_DUR,
    CHROME_PID,
    CHROME_TID,
    CHROME_ID,
    CHROME_ARGS,
    CHROME_FIELDS
} chrome_field;

typedef struct chrome_event {
    orr_json_value self;
    orr_json_value of[CHROME_FIELDS]; /* of those present */
    uint32_t has;                     /* bit for each field; args: when they are an object */
    orr_str name, cat, ph;            /* empty: not there, or no text */
} chrome_event;

/* Of a field that is given twice the last counts.  False: no object. */
bool chrome_event_read(orr_json_value event, chrome_event *out);

static inline bool chrome_has(const chrome_event *e, chrome_field f)
{
    return e->has >> f & 1;
}

#endif
