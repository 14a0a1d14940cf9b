/* SPDX-License-Identifier: Apache-2.0 */
/* fault_shim.c - a library to preload: the n-th call of one kind fails, or kills the process.
 *
 *     FAULT_KIND=malloc FAULT_AT=17 FAULT_COUNT=calls.txt LD_PRELOAD=libfault_shim.so orrery ...
 *
 * Kinds: malloc, read, write, open, rename, link, mmap, thread, ftruncate, fsync, close, mkdir.  FAULT_AT=0 fails
 * nothing and only counts.  FAULT_KILL=1 kills instead.  FAULT_ODD=short cuts reads and writes short,
 * FAULT_ODD=eintr interrupts every second one.  FAULT_TMPFILE=no: the file system knows no files without
 * a name.  FAULT_CLOCK=jump: the clock on the wall jumps a day, forward and back, at every look.  At the end the number of
 * calls of each kind is written to FAULT_COUNT, a line each.
 *
 * FAULT_PLACES=1,2,17 FAULT_SERVE=GO,NEWS (file descriptors) tries many places in one run: at each of them the process
 * forks, the call fails in the child alone, and the parent waits for its end, then goes on to the next place.  The part
 * before a fault, most of a run, is executed once instead of once per place.  NEWS gets a `message` before the child starts
 * and after it ended, and a byte from GO answers each: whoever started this looks at the files and restores them.  A fork
 * has one thread only and shares open files: those that are read are opened again by the child, and files without a
 * name are copied for it.  With other threads, a process forked by the program, another open folder than the current one,
 * a library being loaded or a named file open for writing, the place is refused.
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
#include <sys/wait.h>
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

typedef enum fault {
    F_MALLOC,
    F_READ,
    F_WRITE,
    F_OPEN,
    F_RENAME,
    F_LINK,
    F_MMAP,
    F_THREAD,
    F_FTRUNCATE,
    F_FSYNC,
    F_CLOSE,
    F_MKDIR,
    F_COUNT
} fault;

static const char *const names[F_COUNT] = {"malloc",    "read",  "write", "open",
                                           "rename",    "link",  "mmap",  "thread",
                                           "ftruncate", "fsync", "close", "mkdir"};

static fault kind = F_COUNT;
static atomic_long fails_at;
static atomic_long live;
static bool is_on, kills, is_short, is_interrupted, has_no_tmpfile, jumps;
static atomic_long calls[F_COUNT], turns;

/* What is said of a place: `is` is one of these, or how the child ended (waitpid). */
enum { READY = -1, REFUSED = -2 };
typedef struct message {
    long place, is;
} message;
static const char *places; /* those still to be tried, ascending; NULL: no server */
static int go, news;
static bool has_forked;
static atomic_int loading; /* threads in dlopen, whose lock would belong to nobody after a fork */

static fault fault_named(const char *text)
{
    fault f = 0;
    while (f < F_COUNT && strcmp(names[f], text) != 0)
        f++;
    return f;
}

static void next_place(void)
{
    char *end;
    fails_at = strtol(places, &end, 10);
    places = end + (*end == ',');
}

__attribute__((constructor)) static void begin(void)
{
    const char *text;
    if ((text = getenv("FAULT_KIND")))
        kind = fault_named(text);
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
    if ((text = getenv("FAULT_SERVE")) && sscanf(text, "%d,%d", &go, &news) == 2 &&
        (places = getenv("FAULT_PLACES")))
        next_place();
    is_on = true;
}

__attribute__((destructor)) static void end(void)
{
    char text[32 * F_COUNT];
    const char *path = getenv("FAULT_COUNT");
    int len = 0;
    for (fault f = 0; f < F_COUNT; f++)
        len +=
            snprintf(text + len, sizeof text - (size_t)len, "%s %ld\n", names[f], (long)calls[f]);
    const long fd =
        path ? syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
    if (fd >= 0 && syscall(SYS_write, fd, text, len) == len)
        syscall(SYS_close, fd);
    leaks_report();
}

/* ---- many places in one run ---- */

enum { MOST_FILES = 128 };

/* Whether it is a regular file that can be written. */
static bool is_output(int fd, struct stat *about)
{
    const int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && fstat(fd, about) == 0 &&
           S_ISREG(about->st_mode);
}

static bool can_fork(void)
{
    struct stat about, here;
    /* "." and ".." and a folder per thread. */
    if (has_forked || loading || stat("/proc/self/task", &about) || about.st_nlink != 3 ||
        stat(".", &here))
        return false;
    for (int fd = 0; fd < MOST_FILES; fd++)
        /* A folder that a child removes is another one once it is restored; this one stays. */
        if ((fstat(fd, &about) == 0 && S_ISDIR(about.st_mode) && about.st_ino != here.st_ino) ||
            (is_output(fd, &about) && about.st_nlink))
            return false;
    return true;
}

/* A file without a name is another one for the child, with the same bytes. */
static bool copy_file(int fd, const struct stat *about)
{
    char link[32], path[4096], bytes[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t len = readlink(link, path, sizeof path - 1);
    path[len > 0 ? len : 0] = 0;
    char *name = strrchr(path, '/');
    if (!name)
        return false;
    *name = 0;
    const int from =
        (int)syscall(SYS_openat, AT_FDCWD, link, O_RDONLY, 0); /* fd may be for writing only */
    const int copy = name == path
                         ? memfd_create("fault_shim", 0)
                         : (int)syscall(SYS_openat, AT_FDCWD, path, O_TMPFILE | O_RDWR, 0600);
    off_t at = 0;
    ssize_t got;
    while ((got = syscall(SYS_read, from, bytes, sizeof bytes)) > 0 &&
           syscall(SYS_write, copy, bytes, got) == got)
        at += got;
    return at == about->st_size && fchmod(copy, about->st_mode & 07777) == 0 &&
           lseek(copy, lseek(fd, 0, SEEK_CUR), SEEK_SET) >= 0 &&
           dup3(copy, fd, fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0) == fd &&
           syscall(SYS_close, copy) == 0 && syscall(SYS_close, from) == 0;
}

/* A file that is read would be read on by the child and the parent in turn: they share the position. */
static bool reopen_file(int fd)
{
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const int again = (int)syscall(SYS_openat, AT_FDCWD, link, O_RDONLY, 0);
    return again >= 0 && lseek(again, lseek(fd, 0, SEEK_CUR), SEEK_SET) >= 0 &&
           dup3(again, fd, fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0) == fd &&
           syscall(SYS_close, again) == 0;
}

static bool is_input(int fd, struct stat *about)
{
    const int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_ACCMODE) == O_RDONLY && !(flags & O_PATH) &&
           fstat(fd, about) == 0 && S_ISREG(about->st_mode);
}

static void copy_files(void)
{
    struct stat about;
    for (int fd = 0; fd < MOST_FILES; fd++)
        if ((is_input(fd, &about) && !reopen_file(fd)) ||
            (is_output(fd, &about) && !copy_file(fd, &about))) {
            static const char text[] = "Sanitizer: fault_shim cannot copy a file\n";
            syscall(SYS_write, STDERR_FILENO, text, sizeof text - 1);
            _exit(99);
        }
}

/* Says so and waits for the answer. */
static void say(long place, long is)
{
    char answer;
    const message m = {.place = place, .is = is};
    if (syscall(SYS_write, news, &m, sizeof m) != sizeof m ||
        syscall(SYS_read, go, &answer, 1) != 1)
        _exit(98);
}

/* True in a child that is to see the call fail. */
static bool try_here(long place)
{
    const int before = errno;
    next_place();
    if (!can_fork()) {
        say(place, REFUSED);
        errno = before;
        return false;
    }
    say(place, READY);
    /* Without handlers, which would reset locks of stdio that this thread holds where a print asks for memory. */
    const pid_t child = _Fork();
    int status = 0;
    if (child == 0) {
        places = NULL;
        fails_at = place;
        copy_files();
        return true;
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    say(place, child > 0 ? status : REFUSED);
    errno = before;
    return false;
}

static bool serve(long call)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    while (fails_at && fails_at < call) /* another thread came first */
        next_place();
    const bool fails = fails_at == call && try_here(call);
    pthread_mutex_unlock(&lock);
    return fails;
}

pid_t fork(void)
{
    static pid_t (*real)(void);
    has_forked = true;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fork");
    const pid_t pid = real();
    if (pid == 0 && places) {
        places = NULL;
        fails_at = 0;
    }
    return pid;
}

void *dlopen(const char *path, int how)
{
    static void *(*real)(const char *, int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "dlopen");
    atomic_fetch_add(&loading, 1);
    void *library = real(path, how);
    atomic_fetch_sub(&loading, 1);
    return library;
}

/* ---- one place ---- */

static bool must_fail(fault what)
{
    if (!is_on)
        return false;
    const long call = atomic_fetch_add(&calls[what], 1) + 1;
    if (what != kind || (places ? call < fails_at || !fails_at : call != fails_at))
        return false;
    if (places)
        return serve(call);
    if (kills)
        kill(getpid(), SIGKILL);
    return true;
}

void fault_arm(const char *what, long at)
{
    kind = fault_named(what);
    if (kind < F_COUNT)
        atomic_store(&calls[kind], 0);
    fails_at = at;
}

long fault_disarm(void)
{
    const fault was = kind;
    kind = F_COUNT;
    return was < F_COUNT ? atomic_load(&calls[was]) : 0;
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
    if (must_fail(F_MALLOC)) {
        errno = ENOMEM;
        return NULL;
    }
    return count(__libc_malloc(size), size);
}

void *calloc(size_t number, size_t size)
{
    if (must_fail(F_MALLOC)) {
        errno = ENOMEM;
        return NULL;
    }
    return count(__libc_calloc(number, size), number * size);
}

void *realloc(void *p, size_t size)
{
    if (must_fail(F_MALLOC)) {
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
    if (must_fail(F_MALLOC))
        return ENOMEM;
    *out = count(__libc_memalign(align, size), size);
    return *out ? 0 : ENOMEM;
}

void *aligned_alloc(size_t align, size_t size)
{
    if (must_fail(F_MALLOC)) {
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
    if (is_turn() || must_fail(F_READ)) {
        errno = is_interrupted ? EINTR : EIO;
        return -1;
    }
    return syscall(SYS_read, fd, to, is_short && size > 3 ? 3 : size);
}

ssize_t pread(int fd, void *to, size_t size, off_t at)
{
    if (must_fail(F_READ)) {
        errno = EIO;
        return -1;
    }
    return syscall(SYS_pread64, fd, to, size, at);
}

ssize_t write(int fd, const void *from, size_t size)
{
    if (is_turn() || must_fail(F_WRITE)) {
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
    if (must_fail(F_OPEN)) {
        errno = EMFILE;
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int rename(const char *from, const char *to)
{
    if (must_fail(F_RENAME)) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int linkat(int a, const char *from, int b, const char *to, int flags)
{
    if (must_fail(F_LINK)) {
        errno = ENOSPC;
        return -1;
    }
    return (int)syscall(SYS_linkat, a, from, b, to, flags);
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (fd >= 0 && must_fail(F_MMAP)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
}

int ftruncate(int fd, off_t size)
{
    if (must_fail(F_FTRUNCATE)) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_ftruncate, fd, size);
}

int fsync(int fd)
{
    if (must_fail(F_FSYNC)) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    if (must_fail(F_FSYNC)) {
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
    if (must_fail(F_CLOSE)) {
        errno = EIO;
        return -1;
    }
    return status;
}

int mkdir(const char *path, mode_t mode)
{
    if (must_fail(F_MKDIR)) {
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
    if (must_fail(F_THREAD))
        return EAGAIN;
    is_starting = true;
    const int status = REAL(pthread_create)(thread, how, start, argument);
    is_starting = false;
    return status;
}
