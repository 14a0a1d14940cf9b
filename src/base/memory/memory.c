/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - arenas and growing arrays.
 *
 * An arena is a list of blocks, each twice the one before (64 KiB to 64 MiB); a request that does
 * not fit opens the next block.  In sanitizer builds each request is its own malloc, so that an
 * overrun inside an arena is still caught.  Compiled with ORR_FAULTS (tests/unit/test_faults.c) the
 * n-th request can be made to fail. */
#include "memory.h"

#include "base/threads/stop.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define ONE_BLOCK_EACH 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ONE_BLOCK_EACH 1
#endif
#endif
#ifndef ONE_BLOCK_EACH
#define ONE_BLOCK_EACH 0
#endif

enum { FIRST_BLOCK = 1 << 16, LAST_BLOCK = 1 << 26 };

typedef struct block {
    struct block *next;
    size_t room, used;
    _Alignas(max_align_t) unsigned char bytes[];
} block;

struct orr_arena {
    block *blocks; /* newest first */
    size_t next_room;
    bool has_failed;
};

/* Fault injection, for tests with one thread: lets n requests pass and fails the next.  A negative
 * number disables it.  Returns the number left to pass, negative once it has failed. */
#ifdef ORR_FAULTS
static long fail_countdown = -1;
long orr__fail_alloc_after(long n);
long orr__fail_alloc_after(long n)
{
    const long left = fail_countdown;
    fail_countdown = n;
    return left;
}
static bool fails_now(void)
{
    return orr__stop_asked() || (fail_countdown >= 0 && fail_countdown-- == 0);
}
#else
static inline bool fails_now(void)
{
    return orr__stop_asked();
}
#endif

orr_code orr_no_memory(orr_error *err)
{
    return orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
}

void *orr_alloc(size_t count, size_t size)
{
    return fails_now() ? NULL : calloc(count ? count : 1, size);
}

void orr_free(void *p)
{
    free(p);
}

enum { SMALL_PAGES = 1 << 20, LEAST_RESERVE = 16 << 20 };

bool orr_reserve_init(orr_reserve *r, size_t most)
{
    *r = (orr_reserve){NULL, most < LEAST_RESERVE ? LEAST_RESERVE : most};
    if (fails_now())
        return false;
    for (; r->bytes >= LEAST_RESERVE; r->bytes /= 2) {
        void *p = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            continue;
        r->base = p;
#ifdef MADV_HUGEPAGE /* only faster: a refusal is no harm */
        (void)madvise((char *)p + SMALL_PAGES, r->bytes - SMALL_PAGES, MADV_HUGEPAGE);
#endif
        return true;
    }
    return false;
}

void orr_reserve_large(const orr_reserve *r)
{
#ifdef MADV_HUGEPAGE
    (void)madvise(r->base, r->bytes, MADV_HUGEPAGE);
#else
    (void)r;
#endif
}

void orr_reserve_fini(orr_reserve *r)
{
    if (r->base)
        (void)munmap(r->base, r->bytes);
    r->base = NULL;
}

bool orr_grow_bytes(void **p, size_t *room, size_t need, size_t size)
{
    size_t wanted, bytes;
    if (need <= *room)
        return true;
    if (!orr_add_size(*room, *room / 2 + 16, &wanted) || wanted < need)
        wanted = need;
    if (!orr_mul_size(wanted, size, &bytes) || fails_now())
        return false;
    void *q = realloc(*p, bytes);
    if (!q)
        return false;
    *p = q;
    *room = wanted;
    return true;
}

bool orr_shrink_bytes(void **p, size_t *room, size_t count, size_t size)
{
    if (count >= *room)
        return true;
    void *q = realloc(*p, count ? count * size : 1);
    if (!q)
        return false;
    *p = q;
    *room = count;
    return true;
}

orr_arena *orr_arena_create(void)
{
    orr_arena *a = orr_alloc(1, sizeof *a);
    if (a)
        a->next_room = FIRST_BLOCK;
    return a;
}

static void free_blocks(orr_arena *a, block *keep)
{
    while (a->blocks && a->blocks != keep) {
        block *b = a->blocks;
        a->blocks = b->next;
        free(b);
    }
}

void orr_arena_destroy(orr_arena *a)
{
    if (!a)
        return;
    free_blocks(a, NULL);
    free(a);
}

void orr_arena_reset(orr_arena *a)
{
    block *keep = ONE_BLOCK_EACH ? NULL : a->blocks; /* the newest block is the largest */
    if (keep) {
        block *old = keep->next;
        keep->next = NULL;
        keep->used = 0;
        while (old) {
            block *next = old->next;
            free(old);
            old = next;
        }
    } else {
        free_blocks(a, NULL);
    }
}

static block *open_block(orr_arena *a, size_t n)
{
    size_t room = ONE_BLOCK_EACH ? n : a->next_room, bytes;
    if (room < n)
        room = n;
    if (!orr_add_size(room, sizeof(block), &bytes) || fails_now())
        return NULL;
    block *b = malloc(bytes);
    if (!b)
        return NULL;
    b->room = room;
    b->used = 0;
    b->next = a->blocks;
    a->blocks = b;
    if (a->next_room < LAST_BLOCK)
        a->next_room *= 2;
    return b;
}

void *orr_arena_take(orr_arena *a, size_t n)
{
    size_t rounded = n;
    if (!ONE_BLOCK_EACH) {
        if (!orr_add_size(n, _Alignof(max_align_t) - 1, &rounded))
            return NULL;
        rounded &= ~(_Alignof(max_align_t) - 1);
    }
    block *b = a->blocks;
    if (ONE_BLOCK_EACH || !b || b->room - b->used < rounded)
        b = open_block(a, rounded ? rounded : 1);
    if (!b) {
        a->has_failed = true;
        return NULL;
    }
    void *p = b->bytes + b->used;
    b->used += rounded;
    return p;
}

bool orr_arena_has_failed(const orr_arena *a)
{
    return a->has_failed;
}

void *orr_arena_zeroed(orr_arena *a, size_t count, size_t size)
{
    size_t bytes;
    if (!orr_mul_size(count, size, &bytes))
        return NULL;
    void *p = orr_arena_take(a, bytes);
    if (p)
        memset(p, 0, bytes);
    return p;
}

char *orr_arena_text(orr_arena *a, orr_str s)
{
    char *p = s.len == SIZE_MAX ? NULL : orr_arena_take(a, s.len + 1);
    if (!p)
        return NULL;
    if (s.len)
        memcpy(p, s.ptr, s.len);
    p[s.len] = '\0';
    return p;
}

char *orr_arena_print(orr_arena *a, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    const int len = vsnprintf(NULL, 0, fmt, args);
    char *p = len < 0 ? NULL : orr_arena_take(a, (size_t)len + 1);
    if (p)
        vsnprintf(p, (size_t)len + 1, fmt, again);
    va_end(again);
    va_end(args);
    return p;
}
