/* SPDX-License-Identifier: Apache-2.0 */
/* short_forms.h - what readers do all the time, said shortly: look a word up in a table, append to
 * an array, say where something is wrong and show a bit of it.
 *
 *     static const orr_word kinds[] = {{"kernel", KERNEL}, {"gpu_memcpy", COPY}};
 *     kind = orr_word_find(kinds, ORR_COUNT(kinds), name, OTHER);
 *     if (!orr_push(list, count, room, item)) return orr_no_memory(err);
 *     return orr_fail(err, ORR_EINPUT, ORR_AT(orr_json_where(v)), "\"%.*s\"?", ORR_SHOWN(name, 60));
 */
#ifndef ORR_BASE_SHORT_FORMS_H
#define ORR_BASE_SHORT_FORMS_H

#include "base/memory/memory.h"
#include "base/text/text.h"

#define ORR_COUNT(array) (sizeof(array) / sizeof *(array))

/* Append to a growing array; false: out of memory. */
#define orr_push(list, count, room, ...) \
    (orr_grow(&(list), &(room), (count) + 1) ? ((list)[(count)++] = __VA_ARGS__, true) : false)

/* A place for orr_fail, computed only when there is something to say. */
#define ORR_AT(place) ((const orr_where[]){place})

/* At most this many bytes of a text in a message, for "%.*s". */
#define ORR_SHOWN(s, most) (int)((s).len < (most) ? (s).len : (most)), (s).ptr

/* Is s one of these words, does it start with one? */
static inline bool orr_str_among(orr_str s, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (orr_str_is(s, words[i]))
            return true;
    return false;
}

static inline bool orr_str_begins_any(orr_str s, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (orr_str_begins(s, words[i]))
            return true;
    return false;
}

/* A word of a file's and the number it stands for here: rows of a table. */
typedef struct orr_word {
    const char *text;
    int value;
} orr_word;

static inline int orr_word_find(const orr_word *words, size_t count, orr_str s, int otherwise)
{
    for (size_t i = 0; i < count; i++)
        if (orr_str_is(s, words[i].text))
            return words[i].value;
    return otherwise;
}

#endif
