/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_log.c - ranks of communicators from what NCCL_DEBUG=INFO wrote.
 *
 *     host:PID:TID [d] NCCL INFO ncclCommInitRankConfig comm X rank R nranks N ... commId H ...
 *
 * Other lines are passed over: a log has lines of everybody.  A line of this form with a number that is none is passed over
 * as well, but for one that is too large. */
#include "nccl_impl.h"

#include "base/text/number.h"
#include "base/text/text.h"

enum { MOST_WORDS = 64 };

typedef struct words {
    orr_str at[MOST_WORDS];
    size_t count;
} words;

static void split(const char *p, const char *end, words *out)
{
    out->count = 0;
    while (out->count < MOST_WORDS) {
        while (p < end && orr_is_space(*p))
            p++;
        const char *from = p;
        while (p < end && !orr_is_space(*p))
            p++;
        if (p == from)
            return;
        out->at[out->count++] = (orr_str){.ptr = from, .len = (size_t)(p - from)};
    }
}

/* host:PID:TID */
static bool process_of(orr_str word, uint64_t *pid)
{
    const char *end = word.ptr + word.len;
    const char *first = memchr(word.ptr, ':', word.len);
    const char *second = first ? memchr(first + 1, ':', (size_t)(end - first - 1)) : NULL;
    if (!second || memchr(second + 1, ':', (size_t)(end - second - 1)))
        return false;
    return orr_text_u64((orr_str){.ptr = first + 1, .len = (size_t)(second - first - 1)}, pid);
}

/* The word behind the last one that is `name`, from the sixth word on. */
static orr_str value_of(const words *w, const char *name)
{
    orr_str found = {.ptr = "", .len = 0};
    for (size_t i = 5; i + 1 < w->count; i++)
        if (orr_str_is(w->at[i], name))
            found = w->at[i + 1];
    return found;
}

static bool announces(const words *w)
{
    return w->count > 5 && orr_str_is(w->at[2], "NCCL") && orr_str_is(w->at[3], "INFO") &&
           orr_str_is(w->at[4], "ncclCommInitRankConfig");
}

static bool read_line(const words *w, nccl_log_line *out)
{
    uint64_t pid;
    if (!announces(w) || !process_of(w->at[0], &pid) || pid > UINT32_MAX)
        return false;
    out->pid = (uint32_t)pid;
    out->ident = value_of(w, "commId");
    return out->ident.len && orr_text_u64(value_of(w, "rank"), &out->rank);
}

orr_code nccl_log_next(nccl_log *l, nccl_log_line *out, orr_error *err)
{
    words w;
    while (l->at < l->end) {
        const char *stop = memchr(l->at, '\n', (size_t)(l->end - l->at));
        const char *line_end = stop ? stop : l->end;
        split(l->at, line_end, &w);
        l->at = stop ? stop + 1 : l->end;
        l->line++;
        if (!read_line(&w, out))
            continue;
        if (out->rank > UINT32_MAX) {
            const orr_where at = orr_where_line(l->path, l->line, 1);
            return orr_fail(err, ORR_EINPUT, &at, "the rank is larger than 4,294,967,295");
        }
        return ORR_OK;
    }
    return ORR_END;
}
