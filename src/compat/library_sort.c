/* SPDX-License-Identifier: Apache-2.0 */
/* library_sort.c - std::sort of libstdc++ (introsort), step by step; unchanged from GCC 4 to 14.
 *
 * Ranges of more than 16 are partitioned around the median of the second, the middle and the last
 * element, which is first swapped to the front; the upper part is sorted first.  After 2 log2 n
 * levels the rest is heap-sorted.  A final insertion sort over everything finishes the ranges of 16
 * or fewer.  Every one of these choices matters: the order of equal elements depends on each swap.
 *
 * Cost: O(n log n). */
#include "library_sort.h"

enum { SMALL = 16 };

typedef orr__sort_item item;

static bool before(item a, item b)
{
    return a.key > b.key;
}

static void swap(item *a, item *b)
{
    const item t = *a;
    *a = *b;
    *b = t;
}

/* ---- heap: the top is the element that sorts last ---- */

/* std::__adjust_heap: move the hole down to a leaf, then `value` up from there, but not above its
 * start. */
static void fill_hole(item *v, size_t hole, size_t count, item value)
{
    const size_t top = hole;
    size_t child = hole;
    while (child < (count - 1) / 2) {
        child = 2 * (child + 1);
        child -= before(v[child], v[child - 1]);
        v[hole] = v[child];
        hole = child;
    }
    if (count % 2 == 0 && child == (count - 2) / 2) { /* the last parent has a single child */
        child = 2 * child + 1;
        v[hole] = v[child];
        hole = child;
    }
    while (hole > top && before(v[(hole - 1) / 2], value)) {
        v[hole] = v[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    v[hole] = value;
}

static void heap_sort(item *v, size_t count)
{
    for (size_t i = (count - 2) / 2 + 1; i-- > 0;)
        fill_hole(v, i, count, v[i]);
    for (size_t last = count - 1; last > 0; last--) {
        const item value = v[last];
        v[last] = v[0];
        fill_hole(v, 0, last, value);
    }
}

/* ---- partitioning ---- */

/* Swap the median of a, b and c to the front. */
static void choose_pivot(item *front, item *a, item *b, item *c)
{
    item *median;
    if (before(*a, *b))
        median = before(*b, *c) ? b : before(*a, *c) ? c : a;
    else
        median = before(*a, *c) ? a : before(*b, *c) ? c : b;
    swap(front, median);
}

/* Start of the upper part.  The pivot is v[0]; the other two of the median of three stop the
 * unguarded scans. */
static size_t split(item *v, size_t count)
{
    size_t low = 1, high = count;
    choose_pivot(v, v + 1, v + count / 2, v + count - 1);
    for (;;) {
        while (before(v[low], v[0]))
            low++;
        do
            high--;
        while (before(v[0], v[high]));
        if (low >= high)
            return low;
        swap(&v[low++], &v[high]);
    }
}

static void sort_roughly(item *v, size_t count, unsigned splits_left)
{
    while (count > SMALL) {
        if (splits_left-- == 0) {
            heap_sort(v, count);
            return;
        }
        const size_t upper = split(v, count);
        sort_roughly(v + upper, count - upper, splits_left);
        count = upper;
    }
}

/* ---- the final pass ---- */

/* Move v[i] left past everything that sorts after it.  (libstdc++ omits the bound check beyond the
 * first 16, which always contain the first element; the result is the same.) */
static void insert(item *v, size_t i)
{
    const item value = v[i];
    for (; i > 0 && before(value, v[i - 1]); i--)
        v[i] = v[i - 1];
    v[i] = value;
}

void orr__library_sort(orr__sort_item *items, size_t count)
{
    unsigned log2 = 0;
    while (count >> log2 > 1)
        log2++;
    sort_roughly(items, count, 2 * log2);
    for (size_t i = 1; i < count; i++)
        insert(items, i);
}
