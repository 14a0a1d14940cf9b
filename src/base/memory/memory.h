/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h - where memory comes from.  Only src/base calls malloc; all else goes through here.
 *
 * arena: one per lifetime (a trace, a run, a record).  Nothing is freed one by one.
 *
 *     orr_arena *a = orr_arena_create();
 *     uint32_t *first = orr_arena_new(a, n + 1, uint32_t);   // zeroed; NULL when memory or n is out of range
 *     orr_arena_destroy(a);
 *
 * grow: one array that grows, by half, while its final length is not known.  It uses realloc,
 * which for large blocks moves page tables, not bytes: a growing column costs no second copy.
 *
 *     if (!orr_grow(&ids, &room, n + 1)) return out_of_memory(err);
 *     ids[n++] = id;
 */
#ifndef ORR_BASE_MEMORY_H
#define ORR_BASE_MEMORY_H

#include <orrery/error.h>
#include <orrery/types.h>

typedef struct orr_arena orr_arena;

orr_arena *orr_arena_create(void); /* NULL when out of memory */
void orr_arena_destroy(orr_arena *a);
/* Whether memory ever ran out: for callers that check once, after many small texts. */
bool orr_arena_has_failed(const orr_arena *a);
void orr_arena_reset(orr_arena *a); /* invalidates all allocations, keeps the memory */
void *orr_arena_take(orr_arena *a,
                     size_t n); /* aligned for any type, not zeroed; NULL: out of memory */
void *orr_arena_zeroed(orr_arena *a, size_t count, size_t size); /* checks count * size */
char *orr_arena_text(orr_arena *a, orr_str s);                   /* a NUL-terminated copy */
char *orr_arena_print(orr_arena *a, const char *fmt, ...) ORR_PRINTF(2, 3);

#define orr_arena_new(a, n, T) ((T *)orr_arena_zeroed((a), (n), sizeof(T)))

/* Plain blocks, for individually owned objects.  alloc returns zeroed memory. */
void *orr_alloc(size_t count, size_t size);
void orr_free(void *p);

/* Make room for `need` elements of `size` bytes; *p may move.  False: out of memory, *p still
 * valid. */
bool orr_grow_bytes(void **p, size_t *room, size_t need, size_t size);
bool orr_shrink_bytes(void **p,
                      size_t *room,
                      size_t count,
                      size_t size); /* give back the unused tail */

#define orr_grow(p, room, need) \
    (*(room) >= (need) || orr_grow_bytes((void **)(p), (room), (need), sizeof **(p)))
#define orr_shrink(p, room, count) orr_shrink_bytes((void **)(p), (room), (count), sizeof **(p))

/* Address space for an array that grows in place: memory is committed on first touch, and nothing
 * ever moves.  Up to `most` bytes, or fewer if the system gives fewer; page-aligned, zeroed; in
 * huge pages from 1 MiB on. */
typedef struct orr_reserve {
    void *base;
    size_t bytes;
} orr_reserve;

bool orr_reserve_init(orr_reserve *r, size_t most); /* false: out of memory */
/* Huge pages from the first byte on: all of it will be used. */
void orr_reserve_large(const orr_reserve *r);
void orr_reserve_fini(orr_reserve *r); /* an all-zero one is fine */

orr_code orr_no_memory(orr_error *err); /* fills err, returns ORR_ENOMEM */

/* Checked integers: false on overflow, *out untouched. */
static inline bool orr_add_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
static inline bool orr_mul_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

#endif
