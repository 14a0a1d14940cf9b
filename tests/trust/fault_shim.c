/* SPDX-License-Identifier: Apache-2.0 */
/* fault_shim.c - a library to preload: the n-th call of one kind fails, or kills the process.
 *
 *     FAULT_KIND=malloc FAULT_AT=17 FAULT_COUNT=calls.txt LD_PRELOAD=libfault_shim.so orrery ...
 *
 * Kinds: malloc, read, write, open, rename, link, mmap, thread, ftruncate, fsync, close, mkdir.  FAULT_AT=0 fails
 * nothing and only counts.  FAULT_KILL=1 kills instead.  FAULT_ODD=short cuts reads and writes short,
 * FAULT_ODD=eintr interrupts every second one.  FAULT_TMPFILE=no: the file system knows no files without
 * a name.  FAULT_CLOCK=jump: the clock on the wall jumps a day, forward and back, at every look.  At the end the number of calls of the kind is written to FAULT_COUNT.
 *
 * FAULT_LEAKS=FILE: blocks that nobody can reach any more when the process ends are written there, a line each; with
 * FAULT_FRAMES=1 also from where they were asked for (leak_finder.c).
 *
 * A program that stays, an interpreter, sets the fault by a call: fault_arm("malloc", 17); fault_disarm() gives the number of
 * calls since.  fault_live() is how many allocations are not freed.
 *
 * stdio of the C library calls write inside the library, past this one: standard output is tried with
 * /dev/full and a closed pipe instead. */
#include "leak_finder.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *p);
void fault_arm(const char *what, long at);
long fault_disarm(void);
long fault_live(void);

static const char *kind = "";
static long fails_at;
static atomic_long live;
static bool kills, is_short, is_interrupted, has_no_tmpfile, jumps;
static atomic_long calls, turns;

__attribute__((constructor)) static void begin(void)
{
    const char *text;
    if ((text = getenv("FAULT_KIND")))
        kind = text;
    if ((text = getenv("FAULT_AT")))
        fails_at = strtol(text, NULL, 10);
    kills = getenv("FAULT_KILL") != NULL;
    text = getenv("FAULT_ODD");
    is_short = text && strcmp(text, "short") == 0;
    is_interrupted = text && strcmp(text, "eintr") == 0;
    has_no_tmpfile = getenv("FAULT_TMPFILE") != NULL;
    jumps = getenv("FAULT_CLOCK") != NULL;
    if ((text = getenv("FAULT_LEAKS")))
        leaks_watch(text);
}

__attribute__((destructor)) static void end(void)
{
    char text[32];
    const char *path = getenv("FAULT_COUNT");
    const int len = snprintf(text, sizeof text, "%ld\n", (long)calls);
    const long fd =
        path ? syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
    if (fd >= 0 && syscall(SYS_write, fd, text, len) == len)
        syscall(SYS_close, fd);
    leaks_report();
}

static bool must_fail(const char *what)
{
    if (strcmp(what, kind) != 0 || atomic_fetch_add(&calls, 1) + 1 != fails_at)
        return false;
    if (kills)
        kill(getpid(), SIGKILL);
    return true;
}

void fault_arm(const char *what, long at)
{
    atomic_store(&calls, 0);
    fails_at = at;
    kind = what;
}

long fault_disarm(void)
{
    kind = "";
    return atomic_load(&calls);
}

long fault_live(void)
{
    return atomic_load(&live);
}

/* The C library keeps what it allocates for a thread, for the next one, where nobody else looks. */
static __thread bool is_starting;

static void *count(void *p, size_t size)
{
    if (p)
        atomic_fetch_add(&live, 1);
    if (!is_starting)
        leaks_add(p, size);
    return p;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

void *malloc(size_t size)
{
    if (must_fail("malloc")) {
        errno = ENOMEM;
        return NULL;
    }
    return count(__libc_malloc(size), size);
}

void *calloc(size_t number, size_t size)
{
    if (must_fail("malloc")) {
        errno = ENOMEM;
        return NULL;
    }
    return count(__libc_calloc(number, size), number * size);
}

void *realloc(void *p, size_t size)
{
    if (must_fail("malloc")) {
        errno = ENOMEM;
        return NULL;
    }
    /* First, or another thread may have the old address meanwhile. */
    leaks_remove(p);
    void *moved = __libc_realloc(p, size);
    if (!p)
        count(moved, size);
    else if (!moved && !size)
        atomic_fetch_sub(&live, 1);
    else if (moved)
        leaks_add(moved, size);
    return moved;
}

int posix_memalign(void **out, size_t align, size_t size)
{
    if (must_fail("malloc"))
        return ENOMEM;
    *out = count(__libc_memalign(align, size), size);
    return *out ? 0 : ENOMEM;
}

void *aligned_alloc(size_t align, size_t size)
{
    if (must_fail("malloc")) {
        errno = ENOMEM;
        return NULL;
    }
    return count(__libc_memalign(align, size), size);
}

void free(void *p)
{
    if (p)
        atomic_fetch_sub(&live, 1);
    leaks_remove(p);
    __libc_free(p);
}

static bool is_turn(void)
{
    return is_interrupted && atomic_fetch_add(&turns, 1) % 2 == 0;
}

ssize_t read(int fd, void *to, size_t size)
{
    if (is_turn() || must_fail("read")) {
        errno = is_interrupted ? EINTR : EIO;
        return -1;
    }
    return syscall(SYS_read, fd, to, is_short && size > 3 ? 3 : size);
}

ssize_t pread(int fd, void *to, size_t size, off_t at)
{
    if (must_fail("read")) {
        errno = EIO;
        return -1;
    }
    return syscall(SYS_pread64, fd, to, size, at);
}

ssize_t write(int fd, const void *from, size_t size)
{
    if (is_turn() || must_fail("write")) {
        errno = is_interrupted ? EINTR : ENOSPC;
        return -1;
    }
    return syscall(SYS_write, fd, from, is_short && size > 3 ? 3 : size);
}

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const int mode = va_arg(args, int);
    va_end(args);
    if (has_no_tmpfile && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    if (must_fail("open")) {
        errno = EMFILE;
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int rename(const char *from, const char *to)
{
    if (must_fail("rename")) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int linkat(int a, const char *from, int b, const char *to, int flags)
{
    if (must_fail("link")) {
        errno = ENOSPC;
        return -1;
    }
    return (int)syscall(SYS_linkat, a, from, b, to, flags);
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (fd >= 0 && must_fail("mmap")) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
}

int ftruncate(int fd, off_t size)
{
    if (must_fail("ftruncate")) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_ftruncate, fd, size);
}

int fsync(int fd)
{
    if (must_fail("fsync")) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    if (must_fail("fsync")) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fdatasync, fd);
}

static time_t jump(void)
{
    enum { DAY = 86400 };
    return jumps ? (atomic_fetch_add(&turns, 1) % 2 ? DAY : -DAY) : 0;
}

/* The monotonic clock does not jump: that is what it is for. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    const int status = (int)syscall(SYS_clock_gettime, clock, now);
    if (status == 0 && clock == CLOCK_REALTIME)
        now->tv_sec += jump();
    return status;
}

time_t time(time_t *out)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now = {0};
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *out = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

int close(int fd)
{
    const int status = (int)syscall(SYS_close, fd);
    if (must_fail("close")) {
        errno = EIO;
        return -1;
    }
    return status;
}

int mkdir(const char *path, mode_t mode)
{
    if (must_fail("mkdir")) {
        errno = ENOSPC;
        return -1;
    }
    return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int pthread_create(pthread_t *thread,
                   const pthread_attr_t *how,
                   void *(*start)(void *),
                   void *argument)
{
    if (must_fail("thread"))
        return EAGAIN;
    is_starting = true;
    const int status = REAL(pthread_create)(thread, how, start, argument);
    is_starting = false;
    return status;
}
