/* SPDX-License-Identifier: Apache-2.0 */
/* info_operator.c - operators by name, with the numbers that make each node's name its own left out.
 *
 * Names are interned, so a node costs one hash of its name; figures lie in an array by number of the name.
 * What counts as a number at the end: digits behind one of the signs _ - . # : / @ or a blank, or digits in
 * brackets; as many of them as follow each other.  Digits that touch a letter belong to the name (bf16), but
 * for those that end a part of a path, which become a star: layers.12.mlp is layers.*.mlp. */
#include "base/text/text.h"
#include "info_impl.h"

#include <stdlib.h>
#include <string.h>

static bool is_sign(char c)
{
    return c && strchr("_-.#:/@ ", c);
}

/* The length of s[0..len) without one number at its end; len: there is none. */
static size_t without_number(const char *s, size_t len)
{
    size_t end = len;
    char bracket = 0;
    if (end > 2 && (s[end - 1] == ']' || s[end - 1] == ')'))
        bracket = s[--end] == ']' ? '[' : '(';
    const size_t digits = end;
    while (end && orr_is_digit(s[end - 1]))
        end--;
    if (end == digits || end == 0)
        return len;
    if (bracket)
        return s[end - 1] == bracket ? end - 1 : len;
    return is_sign(s[end - 1]) ? end - 1 : len;
}

static orr_str without_numbers(orr_str name)
{
    size_t len = name.len;
    for (size_t next; len && (next = without_number(name.ptr, len)) < len;)
        len = next;
    while (len < name.len && len && is_sign(name.ptr[len - 1]))
        len--;
    return len ? (orr_str){name.ptr, len} : name;
}

/* Digits that end a part of a path: layer12/forward, layers.12.mlp, and also all_reduce/bucket3. */
static bool ends_part(orr_str s, size_t end)
{
    if (end == s.len)
        return memchr(s.ptr, '/', s.len) != NULL;
    return end + 1 < s.len && (s.ptr[end] == '/' || s.ptr[end] == '.');
}

orr_str orr__operator_group(orr_str name, char room[ORR__NAME_ROOM])
{
    const orr_str s = without_numbers(name);
    size_t from = 0, n = 0;
    if (s.len > ORR__NAME_ROOM)
        return s;
    for (size_t i = 0; i < s.len;) {
        size_t end = i;
        while (end < s.len && orr_is_digit(s.ptr[end]))
            end++;
        if (end == i || !ends_part(s, end)) {
            i = end > i ? end : i + 1;
            continue;
        }
        memcpy(room + n, s.ptr + from, i - from);
        n += i - from;
        room[n++] = '*';
        from = i = end;
    }
    if (from == 0)
        return s;
    memcpy(room + n, s.ptr + from, s.len - from);
    return (orr_str){room, n + s.len - from};
}

bool orr__operators_add(orr__operators *ops, orr_str name, uint64_t duration_us, uint64_t times)
{
    char room[ORR__NAME_ROOM];
    uint32_t number;
    const size_t old = ops->room;
    if (!ops->names && !(ops->names = orr_intern_create()))
        return false;
    if (!orr_intern_add(ops->names, ops->by_name ? name : orr__operator_group(name, room), &number))
        return false;
    if (!orr_grow(&ops->stats, &ops->room, (size_t)number + 1))
        return false;
    if (ops->room > old)
        memset(ops->stats + old, 0, (ops->room - old) * sizeof *ops->stats);
    orr__stat_add(&ops->stats[number], duration_us, times);
    return true;
}

void orr__operators_fini(orr__operators *ops)
{
    orr_intern_destroy(ops->names);
    orr_free(ops->stats);
    *ops = (orr__operators){0};
}

static int compare_names(const orr__operators *ops, uint32_t a, uint32_t b)
{
    const orr_str x = orr_intern_get(ops->names, a), y = orr_intern_get(ops->names, b);
    const size_t n = x.len < y.len ? x.len : y.len;
    const int order = n ? memcmp(x.ptr, y.ptr, n) : 0;
    return order ? order : (x.len > y.len) - (x.len < y.len);
}

static int more_first(uint64_t a, uint64_t b)
{
    return (a < b) - (a > b);
}

static int compare_time(const void *a, const void *b, void *context)
{
    const orr__operators *ops = context;
    const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const orr__stat *x = &ops->stats[i], *y = &ops->stats[j];
    int order = more_first(x->total, y->total);
    if (!order)
        order = more_first(x->count, y->count);
    return order ? order : compare_names(ops, i, j);
}

static int compare_count(const void *a, const void *b, void *context)
{
    const orr__operators *ops = context;
    const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const orr__stat *x = &ops->stats[i], *y = &ops->stats[j];
    int order = more_first(x->count, y->count);
    if (!order)
        order = more_first(x->total, y->total);
    return order ? order : compare_names(ops, i, j);
}

uint32_t *orr__operators_top(
    const orr__operators *ops, orr_arena *a, bool by_count, size_t top, size_t *count_out)
{
    const uint32_t count = ops->names ? orr_intern_count(ops->names) : 0;
    uint32_t *numbers = orr_arena_new(a, count ? count : 1, uint32_t);
    if (!numbers)
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        numbers[i] = i;
    qsort_r(numbers, count, sizeof *numbers, by_count ? compare_count : compare_time,
            (void *)(uintptr_t)ops);
    *count_out = count < top ? count : top;
    return numbers;
}
