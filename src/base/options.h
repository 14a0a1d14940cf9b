/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - options of callers that may have been built with an older header.
 *
 *     orr_view_json_options own;
 *     orr_code code = ORR__TAKE_OPTIONS(&own, opt, orr_view_json_options, err);
 *
 * Every such struct starts with its size.  Fields that the caller's lacks are zero, their
 * default. */
#ifndef ORR_BASE_OPTIONS_H
#define ORR_BASE_OPTIONS_H

#include <orrery/error.h>

#include <string.h>

/* given NULL: all defaults. */
#define ORR__TAKE_OPTIONS(out, given, type, err)                                              \
    orr__take_options((out), sizeof(type), (given), (given) ? (given)->size : sizeof(size_t), \
                      #type, (err))

static inline orr_code orr__take_options(
    void *out, size_t room, const void *given, size_t size, const char *type, orr_error *err)
{
    memset(out, 0, room);
    if (size < sizeof size || size > room)
        return orr_fail(err, ORR_EUSAGE, NULL, "%s.size must be sizeof(%s)", type, type);
    if (given)
        memcpy(out, given, size);
    memcpy(out, &room, sizeof room);
    return ORR_OK;
}

#endif
