/* SPDX-License-Identifier: Apache-2.0 */
/* lock_file.c - flock on a dedicated file. */
#include "lock_file.h"

#include "base/short_forms.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEP_MS = 20 };

/* Is the locked file still the one of that name?  Its last owner may have removed it. */
static bool is_current(int fd, const char *path)
{
    struct stat ours, named;
    return fstat(fd, &ours) == 0 && stat(path, &named) == 0 && ours.st_ino == named.st_ino &&
           ours.st_dev == named.st_dev;
}

orr_code orr_lock_take(const char *path, unsigned wait_ms, int *out, orr_error *err)
{
    for (unsigned waited = 0;; waited += STEP_MS) {
        const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        *out = -1;
        if (fd < 0)
            return orr_fail(err, ORR_EIO, ORR_AT(orr_where_line(path, 0, 0)), "cannot write: %s",
                            strerror(errno));
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_current(fd, path)) {
            *out = fd;
            return ORR_OK;
        }
        close(fd);
        if (waited >= wait_ms)
            return ORR_END;
        usleep(STEP_MS * 1000);
    }
}

void orr_lock_give(int lock, const char *path)
{
    if (lock < 0)
        return;
    unlink(path);
    close(lock);
}

bool orr_lock_is_held(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool is_free = fd < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0;
    if (fd >= 0)
        close(fd);
    return !is_free;
}
