/* SPDX-License-Identifier: Apache-2.0 */
/* match_tensors.c - tensors of a recorded call, gathered while it is read. */
#include "match_tensors.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { RANK_MOST = 64, TENSORS_MOST = 1 << 20 };

void match_tensors_fini(match_tensors *t)
{
    orr_free(t->list);
    orr_free(t->dims);
}

orr_code match_fail(orr_error *err, orr_json_value v, const char *fmt, ...)
{
    const orr_where w = orr_json_where(v);
    char words[200];
    va_list args;
    va_start(args, fmt);
    vsnprintf(words, sizeof words, fmt, args);
    va_end(args);
    return orr_fail(err, ORR_EINPUT, &w, "%s", words);
}

orr_code match_sizes(match_tensors *t, orr_json_value list, uint32_t *count)
{
    orr_json_value v;
    *count = 0;
    for (orr_json_iter it = orr_json_iterate(list); orr_json_next_value(&it, &v); ++*count) {
        if (*count == RANK_MOST)
            return match_fail(t->err, v, "a tensor of more than %d dimensions", RANK_MOST);
        if (!orr_grow(&t->dims, &t->dim_room, t->dim_count + 1))
            return orr_no_memory(t->err);
        const orr_code code = orr_json_get_u64(v, &t->dims[t->dim_count++], t->err);
        if (code)
            return code;
    }
    return ORR_OK;
}

orr_code match_tensor(match_tensors *t, const operator_tensor *one, orr_json_value place)
{
    if (t->count == TENSORS_MOST)
        return match_fail(t->err, place, "an operator with more than %d tensors", TENSORS_MOST);
    if (!orr_grow(&t->list, &t->room, t->count + 1))
        return orr_no_memory(t->err);
    t->list[t->count++] = *one;
    return ORR_OK;
}
