/* SPDX-License-Identifier: Apache-2.0 */
/* leak_finder.c - a leak is a block that can be reached from nowhere: not from variables of the
 * program and its libraries, not from those of the thread that ends, not from its stack, not from a
 * block that can be reached.  A sanitizer knows the same, but brings its own malloc, so that a
 * failing one cannot be put before it.
 *
 * Every aligned word that looks like an address inside a block counts as a pointer to it.  So a
 * leak may be missed, and none is reported that is not there, but for pointers that are hidden
 * (there are none here) and for stacks of threads that still run.
 *
 * Blocks are a dense list, found by address through a hash table of indices; freed entries are used
 * again.  Only as much memory is touched as there were live blocks: make check starts this a hundred
 * thousand times, and a scan of the whole reserved room took 38 of 44 ms.  The list is sorted once at
 * the end.  Cost: a lock and a few steps per allocation, a binary search per word of memory at the end. */
#include "leak_finder.h"

#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROOM_BITS = 21, ROOM = 1 << ROOM_BITS, FRAMES = 10 };

typedef struct block {
    uintptr_t at; /* 0: freed, waits in the list of free entries */
    size_t size;
    bool is_reached;
    void *frames[FRAMES];
} block;

static block *table;
static uint32_t *slots; /* hash table: 1 + index into table; 0: empty; GONE: removed */
static const uint32_t GONE = UINT32_MAX;
static size_t count, used; /* entries of table, slots that are not empty */
static size_t first_free;  /* 1 + index of a freed entry, whose size is the next one */
static bool is_off, has_frames;
static const char *report_path;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread bool is_inside; /* backtrace allocates when it is called first */

static void *reserve(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void leaks_watch(const char *report)
{
    slots = reserve(sizeof *slots * ROOM);
    table = slots ? reserve(sizeof *table * ROOM) : NULL;
    report_path = report;
    has_frames = getenv("FAULT_FRAMES") != NULL;
}

static size_t slot_of(uintptr_t at)
{
    return (size_t)((at >> 4) * 0x9E3779B97F4A7C15u >> (64 - ROOM_BITS));
}

static size_t new_entry(void)
{
    if (!first_free)
        return count++;
    const size_t i = first_free - 1;
    first_free = table[i].size;
    return i;
}

void leaks_add(void *p, size_t size)
{
    void *frames[FRAMES] = {0};
    if (!table || !p || is_off)
        return;
    if (has_frames && !is_inside) {
        is_inside = true;
        backtrace(frames, FRAMES);
        is_inside = false;
    }
    pthread_mutex_lock(&lock);
    const size_t entry = new_entry();
    table[entry] = (block){.at = (uintptr_t)p, .size = size};
    for (size_t k = 0; k < FRAMES; k++)
        table[entry].frames[k] = frames[k];
    size_t i = slot_of((uintptr_t)p);
    while (slots[i] && slots[i] != GONE)
        i = (i + 1) % ROOM;
    used += slots[i] == 0;
    slots[i] = (uint32_t)entry + 1;
    is_off = used > ROOM / 4 * 3; /* then nothing is said */
    pthread_mutex_unlock(&lock);
}

void leaks_remove(void *p)
{
    if (!table || !p)
        return;
    pthread_mutex_lock(&lock);
    size_t i = slot_of((uintptr_t)p);
    while (slots[i] && (slots[i] == GONE || table[slots[i] - 1].at != (uintptr_t)p))
        i = (i + 1) % ROOM;
    if (slots[i]) {
        const size_t entry = slots[i] - 1;
        slots[i] = GONE;
        table[entry] = (block){.size = first_free};
        first_free = entry + 1;
    }
    pthread_mutex_unlock(&lock);
}

/* ---- the end ---- */

static size_t waiting_count;
static uint32_t *waiting; /* blocks whose words are still to be looked at */

static int by_address(const void *a, const void *b)
{
    const block *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

static void look_at(uintptr_t word)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (table[middle].at <= word)
            low = middle + 1;
        else
            high = middle;
    }
    block *b = low ? &table[low - 1] : NULL;
    /* An address just behind a block is one of its own ends. */
    if (!b || b->is_reached || word - b->at > b->size)
        return;
    b->is_reached = true;
    waiting[waiting_count++] = (uint32_t)(low - 1);
}

__attribute__((no_sanitize("address"))) static void look_through(const void *from, const void *to)
{
    const uintptr_t *p = (const uintptr_t *)(((uintptr_t)from + 7) & ~(uintptr_t)7);
    for (; (uintptr_t)(p + 1) <= (uintptr_t)to; p++)
        look_at(*p);
}

static int look_at_object(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        const char *at = (const char *)(info->dlpi_addr + h->p_vaddr);
        if (h->p_type == PT_LOAD && (h->p_flags & PF_W) &&
            !(table >= (block *)at && table < (block *)(at + h->p_memsz)))
            look_through(at, at + h->p_memsz);
        if (h->p_type == PT_TLS && info->dlpi_tls_data)
            look_through(info->dlpi_tls_data, (const char *)info->dlpi_tls_data + h->p_memsz);
    }
    return 0;
}

extern void *__libc_stack_end;

static void write_report(void)
{
    char line[400];
    const long fd = syscall(SYS_openat, AT_FDCWD, report_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (size_t i = 0; i < count && fd >= 0; i++) {
        if (table[i].is_reached)
            continue;
        int n = snprintf(line, sizeof line, "%zu bytes", table[i].size);
        for (size_t k = 2; k < FRAMES && table[i].frames[k]; k++) {
            Dl_info info;
            if (dladdr(table[i].frames[k], &info))
                n += snprintf(line + n, sizeof line - (size_t)n, " %lx",
                              (unsigned long)((char *)table[i].frames[k] - (char *)info.dli_fbase));
        }
        line[n++] = '\n';
        syscall(SYS_write, fd, line, n);
    }
    if (fd >= 0)
        syscall(SYS_close, fd);
}

void leaks_report(void)
{
    if (!table || is_off)
        return;
    is_off = true;
    size_t live = 0;
    for (size_t i = 0; i < count; i++)
        if (table[i].at)
            table[live++] = table[i];
    count = live;
    qsort(table, count, sizeof *table, by_address);
    waiting = mmap(NULL, (count + 1) * sizeof *waiting, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (waiting == MAP_FAILED)
        return;
    /* qsort may have taken a block of its own and given it back: it is in no table any more. */
    dl_iterate_phdr(look_at_object, NULL);
    look_through(__builtin_frame_address(0), (char *)__libc_stack_end + 8);
    while (waiting_count) {
        const block *b = &table[waiting[--waiting_count]];
        look_through((const void *)b->at, (const char *)b->at + b->size);
    }
    write_report();
}
