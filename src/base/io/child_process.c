/* SPDX-License-Identifier: Apache-2.0 */
/* child_process.c - fork, exec and wait, in this one place.
 *
 * Why signals are held and waited for, not handled: a handler would need a variable that all can
 * see, and could run between any two lines.  A held signal comes out of sigwaitinfo() in turn with
 * the end of the child. Why a process group: an interrupt must also reach what the child has
 * started. Between fork and exec only functions are called that are safe there; all they need is
 * made ready before. */
#include "child_process.h"

#include "base/memory/buffer.h"
#include "base/short_forms.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* ---- signals ---- */

/* A signal that was ignored when we were started (nohup) stays ignored. */
static bool is_ignored(int number)
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

void orr_signals_hold(orr_held_signals *h)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    sigemptyset(&h->held);
    sigaddset(&h->held, SIGCHLD);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (!is_ignored(numbers[i]))
            sigaddset(&h->held, numbers[i]);
    }
    pthread_sigmask(SIG_BLOCK, &h->held, &h->before);
}

void orr_signals_release(const orr_held_signals *h)
{
    pthread_sigmask(SIG_SETMASK, &h->before, NULL);
}

/* ---- the child's side ---- */

typedef struct start {
    const orr_child *child;
    char *const *environment;
    const sigset_t *mask;
    int input, output; /* file descriptors */
    int report;        /* where errno goes when exec fails */
} start;

static void tell(int fd, int problem)
{
    const ssize_t n = write(fd, &problem, sizeof problem);
    (void)n; /* nobody reads it: the parent is gone */
}

static void become(const start *s)
{
    setpgid(0, 0);
    if (dup2(s->input, STDIN_FILENO) >= 0 && dup2(s->output, STDOUT_FILENO) >= 0 &&
        dup2(s->output, STDERR_FILENO) >= 0 && sigprocmask(SIG_SETMASK, s->mask, NULL) == 0)
        execve(s->child->path, (char *const *)(uintptr_t)s->child->arguments, s->environment);
    tell(s->report, errno);
    _exit(127);
}

/* ---- our side ---- */

static orr_code fail_child(const char *path, const char *what, int problem, orr_error *err)
{
    return orr_fail(err, ORR_EIO, ORR_AT(orr_where_byte(path, ORR_NO_BYTE)), "%s: %s", what,
                    strerror(problem));
}

static bool has_name(const char *entry, const char *with)
{
    const size_t n = strcspn(with, "=") + 1;
    return strncmp(entry, with, n) == 0;
}

/* Our environment, with the given variables replaced or added. */
static char **merge_environment(orr_arena *a, const char *const *given)
{
    size_t ours = 0, more = 0, n = 0;
    while (environ && environ[ours])
        ours++;
    while (given && given[more])
        more++;
    char **out = orr_arena_new(a, ours + more + 1, char *);
    for (size_t i = 0; i < ours && out; i++) {
        bool is_replaced = false;
        for (size_t k = 0; k < more; k++)
            is_replaced |= has_name(environ[i], given[k]);
        if (!is_replaced)
            out[n++] = environ[i];
    }
    for (size_t k = 0; k < more && out; k++)
        out[n++] = (char *)(uintptr_t)given[k];
    return out;
}

/* Until the child has ended, without reaping it.  Returns the number of interrupts. */
static unsigned wait_for(pid_t pid, const orr_held_signals *held)
{
    unsigned interrupts = 0;
    for (;;) {
        siginfo_t info, ended = {0};
        if (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid)
            return interrupts;
        const int number = sigwaitinfo(&held->held, &info);
        if (number < 0 || number == SIGCHLD)
            continue;
        interrupts++;
        kill(-pid, interrupts > 1 ? SIGKILL : number);
    }
}

static orr_code finish(
    const char *path, pid_t pid, const orr_held_signals *held, orr_child_end *end, orr_error *err)
{
    int status = 0;
    const unsigned interrupts = wait_for(pid, held);
    if (interrupts)
        kill(-pid, SIGKILL); /* its orphaned children */
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return fail_child(path, "cannot wait for it", errno, err);
    }
    end->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    end->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return interrupts ? orr_fail(err, ORR_ESTOP, NULL, "interrupted") : ORR_OK;
}

static orr_code launch(const start *s,
                       const int report[2],
                       const orr_held_signals *held,
                       orr_child_end *end,
                       orr_error *err)
{
    int problem = 0;
    const char *path = s->child->path;
    const pid_t pid = fork();
    if (pid < 0)
        return fail_child(path, "cannot be started", errno, err);
    if (pid == 0)
        become(s);
    setpgid(pid, pid); /* whichever of the two is first */
    close(report[1]);
    const bool has_failed = read(report[0], &problem, sizeof problem) == sizeof problem;
    const orr_code code = finish(path, pid, held, end, err);
    return has_failed ? fail_child(path, "cannot be started", problem, err) : code;
}

static orr_code open_and_launch(start *s,
                                const orr_held_signals *held,
                                orr_child_end *end,
                                orr_error *err)
{
    int report[2];
    if (pipe(report) != 0)
        return fail_child(s->child->path, "cannot be started", errno, err);
    fcntl(report[0], F_SETFD, FD_CLOEXEC);
    fcntl(report[1], F_SETFD, FD_CLOEXEC);
    s->report = report[1];
    s->input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    s->output = s->child->output
                    ? open(s->child->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)
                    : STDERR_FILENO;
    const bool is_open = s->input >= 0 && s->output >= 0;
    const orr_code code = is_open ? launch(s, report, held, end, err)
                                  : fail_child(s->child->path, "cannot be started", errno, err);
    if (!is_open)
        close(report[1]);
    close(report[0]);
    if (s->input >= 0)
        close(s->input);
    if (s->child->output && s->output >= 0)
        close(s->output);
    return code;
}

orr_code orr_child_run(const orr_child *child,
                       const orr_held_signals *held,
                       orr_child_end *end,
                       orr_error *err)
{
    orr_arena *a = orr_arena_create();
    char **environment = a ? merge_environment(a, child->environment) : NULL;
    start s = {.child = child, .environment = environment, .mask = &held->before};
    *end = (orr_child_end){0};
    const orr_code code = environment ? open_and_launch(&s, held, end, err) : orr_no_memory(err);
    orr_arena_destroy(a);
    return code;
}

/* ---- where programs are ---- */

static bool is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

orr_code orr_program_find(orr_arena *a, const char *name, char **out, orr_error *err)
{
    const char *folders = strchr(name, '/') ? NULL : getenv("PATH");
    *out = NULL;
    if (strchr(name, '/') && is_program(name) && !(*out = orr_arena_text(a, orr_str_of(name))))
        return orr_no_memory(err);
    while (folders && *folders) {
        const size_t n = strcspn(folders, ":");
        char *path = n ? orr_arena_print(a, "%.*s/%s", (int)n, folders, name)
                       : orr_arena_print(a, "./%s", name);
        if (!path)
            return orr_no_memory(err);
        if (is_program(path)) {
            *out = path;
            break;
        }
        folders += n + (folders[n] == ':');
    }
    return ORR_OK;
}

/* ---- temporary folders ---- */

orr_code orr_folder_create(orr_arena *a, orr_folder *out, orr_error *err)
{
    const char *top = getenv("TMPDIR");
    if (!top || !*top)
        top = "/tmp";
    *out = (orr_folder){0};
    char *path = orr_arena_print(a, "%s/orrery-XXXXXX", top);
    if (!path)
        return orr_no_memory(err);
    if (!mkdtemp(path))
        return orr_fail(err, ORR_EIO, ORR_AT(orr_where_byte(top, ORR_NO_BYTE)),
                        "cannot make a temporary folder here: %s", strerror(errno));
    char *whole = realpath(path, NULL); /* others may change the working directory meanwhile */
    char *kept = whole ? orr_arena_text(a, orr_str_of(whole)) : path;
    free(whole);
    DIR *entries = kept ? opendir(path) : NULL;
    if (!entries) {
        const orr_code code =
            kept && errno != ENOMEM
                ? orr_fail(err, ORR_EIO, ORR_AT(orr_where_byte(path, ORR_NO_BYTE)),
                           "cannot open this new folder: %s", strerror(errno))
                : orr_no_memory(err);
        rmdir(path);
        return code;
    }
    *out = (orr_folder){kept, entries};
    return ORR_OK;
}

enum { FOLDERS_DEEP = 16 };

/* Links are removed, not followed. */
static void empty_folder(DIR *d, unsigned depth)
{
    const struct dirent *e;
    while ((e = readdir(d))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (unlinkat(dirfd(d), e->d_name, 0) == 0)
            continue;
        const int fd = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        DIR *inner = fd >= 0 && depth < FOLDERS_DEEP ? fdopendir(fd) : NULL;
        if (inner) {
            empty_folder(inner, depth + 1);
            closedir(inner);
        } else if (fd >= 0) {
            close(fd);
        }
        unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
    }
}

void orr_folder_remove(orr_folder *f)
{
    if (!f->path)
        return;
    rewinddir(f->entries); /* what has come since */
    empty_folder(f->entries, 0);
    closedir(f->entries);
    rmdir(f->path);
    *f = (orr_folder){0};
}
