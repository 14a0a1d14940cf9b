/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_run.c - distributes points, collects results, maintains the database.
 *
 * One process owns the database and computes nothing.  Workers are its forked children, each at the
 * other end of a pair of sockets, and under mpirun or srun the children of the other ranks, over
 * TCP: all look the same from here.  Each has a few points queued, so that none is idle; few enough
 * for a balanced end.
 *
 * Invariants: a received result is committed before the next wait, so killing this process at any
 * moment loses only running points.  A point whose worker dies is retried once, then it has failed;
 * the sweep continues.  Equal points are computed once.  Results do not depend on the worker, so
 * neither does the table. */
#include "sweep_worker.h"

#include "base/io/input.h"
#include "base/memory/map.h"
#include "base/text/text.h"

#include <orrery/lab/progress.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Longer than any sweep; in nanoseconds it fits into 64 bits. */
#define MOST_SECONDS 1e9

enum {
    MOST_WAITING = 32,    /* limit on points queued at a worker */
    AHEAD_NS = 200000000, /* target amount of queued work per worker */
    MOST_TRIES = 2,       /* of a point whose worker dies */
    POLL_MS = 200,        /* maximum delay until an interrupt is noticed */
    LATE_MS = 10000,      /* time to wait at the end for ranks that have not connected */
    READ_BYTES = 256 << 10
};

/* ---- opening ---- */

orr_code orr_sweep_read(
    orr_span bytes, const char *path, const orr_sweep_hooks *hooks, orr_sweep **out, orr_error *err)
{
    return swp_read(bytes, path, hooks, SWP_MOST_POINTS, out, err);
}

orr_code swp_read(orr_span bytes,
                  const char *path,
                  const orr_sweep_hooks *hooks,
                  uint64_t most_points,
                  orr_sweep **out,
                  orr_error *err)
{
    *out = NULL;
    orr_sweep *s = orr_alloc(1, sizeof *s);
    if (!s || !(s->arena = orr_arena_create())) {
        orr_free(s);
        return orr_no_memory(err);
    }
    s->hooks = hooks;
    s->most_points = most_points;
    s->path = orr_arena_text(s->arena, orr_str_of(path));
    const char *text = orr_arena_text(s->arena, (orr_str){(const char *)bytes.ptr, bytes.len});
    orr_code code = text && s->path ? ORR_OK : orr_no_memory(err);
    s->text = (orr_str){text, bytes.len};
    if (!code)
        code = swp_spec_read(s, err);
    if (!code)
        code = swp_points_list(s, err);
    if (code) {
        orr_sweep_close(s);
        return code;
    }
    *out = s;
    return ORR_OK;
}

orr_code orr_sweep_open(const char *path,
                        const orr_sweep_hooks *hooks,
                        orr_sweep **out,
                        orr_error *err)
{
    orr_input *in;
    *out = NULL;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    code = orr_sweep_read(orr_input_bytes(in), path, hooks, out, err);
    orr_input_close(in);
    return code;
}

void orr_sweep_close(orr_sweep *s)
{
    if (!s)
        return;
    swp_spec_fini(s);
    orr_free(s->points);
    orr_free(s->memo);
    orr_arena_destroy(s->arena);
    orr_free(s);
}

size_t orr_sweep_count(const orr_sweep *s)
{
    return s->point_count;
}

static bool needs_quotes(const char *word)
{
    for (; *word; word++)
        if (!orr_is_letter(*word) && !orr_is_digit(*word) && !strchr("-_=./:,+%@", *word))
            return true;
    return false;
}

orr_code orr_sweep_line(orr_sweep *s, size_t point, char *text, size_t room, orr_error *err)
{
    orr_sweep_step steps[SWP_MOST_STEPS];
    orr_buf line = {0};
    orr_arena *a = orr_arena_create();
    orr_code code = a ? swp_point_steps(s, point, a, steps, err) : orr_no_memory(err);
    for (uint32_t i = 0; i < s->step_count && !code; i++) {
        orr_buf_print(&line, "%sorrery %s", i ? " && " : "", steps[i].command);
        for (size_t k = 0; k < steps[i].word_count; k++)
            orr_buf_print(&line, needs_quotes(steps[i].words[k]) ? " '%s'" : " %s",
                          steps[i].words[k]);
    }
    if (!code && line.failed)
        code = orr_no_memory(err);
    if (!code)
        snprintf(text, room, "%.*s", (int)line.len, (const char *)line.ptr);
    orr_buf_fini(&line);
    orr_arena_destroy(a);
    return code;
}

/* ---- the state of a run ---- */

typedef struct sweep_peer {
    int fd;    /* -1: gone */
    pid_t pid; /* 0: on another rank */
    int words; /* its stderr: a memory file; -1: elsewhere */
    bool has_greeted, counts_as_rank;
    orr_buf in;
    uint32_t waiting[MOST_WAITING]; /* the first is being computed */
    uint32_t waiting_count;
    uint64_t cpu_ns;
    char host[64];
} sweep_peer;

typedef struct sweep_job {
    orr_sweep *s;
    const orr_sweep_options *o;
    orr_sweep_summary *sum;
    orr_error *err;
    swp_store *store;
    char (*hashes)[SWP_HASH_ROOM];
    char spec_hash[SWP_HASH_ROOM]; /* every worker must have read the same specification */
    uint32_t *same_as;             /* the first equal point */
    uint8_t *tries;
    uint32_t *todo; /* points to compute */
    size_t todo_count, next;
    uint32_t *again; /* points to try again */
    size_t again_count, again_room;
    size_t in_flight;
    uint64_t answers, answer_ns; /* to plan the queue length */
    sweep_peer *peers;
    size_t peer_count, peer_room;
    swp_cluster cluster;
    int listener;
    uint32_t ranks_seen;
    char token[SWP_TOKEN_ROOM];
    char *meeting_point;
    bool in_transaction;
    uint64_t end_ns; /* of the monotonic clock; 0: no limit */
    bool is_late;
    orr_progress progress;
} sweep_job;

static volatile sig_atomic_t stop_signal;

static void note_stop(int number)
{
    stop_signal = number;
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void remark(const sweep_job *j, const char *fmt, ...) ORR_PRINTF(2, 3);
static void remark(const sweep_job *j, const char *fmt, ...)
{
    char line[1000];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    j->s->hooks->note(j->s->hooks->context, line);
}

/* ---- what is to do ---- */

static orr_code hash_points(sweep_job *j)
{
    orr_sweep *s = j->s;
    orr_arena *a = orr_arena_create();
    orr_map *first = orr_map_create(s->point_count);
    j->hashes = orr_alloc(s->point_count + 1, sizeof *j->hashes);
    j->same_as = orr_alloc(s->point_count + 1, sizeof *j->same_as);
    j->tries = orr_alloc(s->point_count + 1, 1);
    j->todo = orr_alloc(s->point_count + 1, sizeof *j->todo);
    orr_code code = a && first && j->hashes && j->same_as && j->tries && j->todo
                        ? ORR_OK
                        : orr_no_memory(j->err);
    for (size_t i = 0; i < s->point_count && !code; i++) {
        orr_content_hash h;
        orr_arena_reset(a);
        code = swp_point_hash(s, i, a, &h, j->err);
        if (code)
            break;
        orr_content_hash_text(h, j->hashes[i]);
        const uint32_t before = orr_map_find(first, h.low ^ h.high, UINT32_MAX);
        const bool is_same = before != UINT32_MAX && strcmp(j->hashes[before], j->hashes[i]) == 0;
        j->same_as[i] = is_same ? before : (uint32_t)i;
        if (!is_same && !orr_map_put(first, h.low ^ h.high, (uint32_t)i, NULL))
            code = orr_no_memory(j->err);
    }
    orr_map_destroy(first);
    orr_arena_destroy(a);
    return code;
}

static bool is_ours(const sweep_job *j, size_t point)
{
    return !j->o->shards || point % j->o->shards == j->o->shard - 1;
}

/* Points of this shard missing from the database; one per set of equal points. */
static orr_code list_todo(sweep_job *j)
{
    orr_code code = ORR_OK;
    bool *is_listed = orr_alloc(j->s->point_count + 1, sizeof *is_listed);
    if (!is_listed)
        return orr_no_memory(j->err);
    for (size_t i = 0; i < j->s->point_count && !code; i++) {
        const uint32_t first = j->same_as[i];
        swp_result r;
        if (!is_ours(j, i))
            continue;
        j->sum->points++;
        if (is_listed[first])
            continue;
        is_listed[first] = true;
        code = swp_store_get(j->store, j->hashes[first], &r, j->err);
        const bool is_done =
            r.status == SWP_OK || (r.status == SWP_FAILED && !j->o->retries_failed);
        if (!code && !is_done)
            j->todo[j->todo_count++] = first;
    }
    orr_free(is_listed);
    return code;
}

/* ---- workers ---- */

/* A child: closes everything of the parent that is not its own, so that only its peer sees the end
 * of a process. */
static void become_worker(sweep_job *j, int fd, int words, const swp_worker_options *o)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    signal(SIGALRM, SIG_DFL);
    for (size_t i = 0; i < j->peer_count; i++)
        if (j->peers[i].fd >= 0)
            close(j->peers[i].fd);
    if (j->listener >= 0)
        close(j->listener);
    if (words >= 0)
        dup2(words, STDERR_FILENO);
    _exit((int)swp_worker_serve(j->s, fd, o));
}

static orr_code add_peer(sweep_job *j, sweep_peer p)
{
    for (size_t i = 0; i < j->peer_count; i++)
        if (j->peers[i].fd < 0) {
            orr_buf_fini(&j->peers[i].in);
            j->peers[i] = p;
            return ORR_OK;
        }
    if (!orr_grow(&j->peers, &j->peer_room, j->peer_count + 1))
        return orr_no_memory(j->err);
    j->peers[j->peer_count++] = p;
    return ORR_OK;
}

static orr_code fork_worker(sweep_job *j)
{
    int ends[2];
    const swp_worker_options o = {.cache = j->o->cache, .token = "", .timeout_s = j->o->timeout_s};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return orr_fail(j->err, ORR_EIO, NULL, "cannot start a worker: %s", strerror(errno));
    const int words = memfd_create("orrery-sweep", MFD_CLOEXEC);
    fflush(NULL);
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        close(ends[0]);
        if (getppid() != parent)
            _exit(SWP_WORKER_ALONE);
        become_worker(j, ends[1], words, &o);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        if (words >= 0)
            close(words);
        return orr_fail(j->err, ORR_EIO, NULL, "cannot start a worker: %s", strerror(errno));
    }
    return add_peer(j, (sweep_peer){.fd = ends[0], .pid = pid, .words = words});
}

/* The last line written by a dead worker. */
static void last_words(const sweep_peer *p, char *out, size_t room)
{
    char text[400];
    out[0] = 0;
    if (p->words < 0)
        return;
    const off_t end = lseek(p->words, 0, SEEK_END);
    const off_t from = end > (off_t)sizeof text - 1 ? end - (off_t)sizeof text + 1 : 0;
    const ssize_t n = pread(p->words, text, sizeof text - 1, from);
    if (n <= 0)
        return;
    text[n] = 0;
    while (*text && strchr("\n ", text[strlen(text) - 1]))
        text[strlen(text) - 1] = 0;
    const char *line = strrchr(text, '\n');
    snprintf(out, room, ": %.180s", line ? line + 1 : text);
}

static void say_death(const sweep_job *j, const sweep_peer *p, int status, char *out, size_t room)
{
    char words[200];
    last_words(p, words, sizeof words);
    if (!p->pid)
        snprintf(out, room, "its process on %s was lost (killed, crashed or out of memory)",
                 *p->host ? p->host : "another rank");
    else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        snprintf(out, room, "took longer than %u s", j->o->timeout_s);
    else if (WIFSIGNALED(status))
        snprintf(out, room, "its process was ended by signal %d, %s%s%s", WTERMSIG(status),
                 strsignal(WTERMSIG(status)),
                 WTERMSIG(status) == SIGKILL ? " (out of memory?)" : "", words);
    else
        snprintf(out, room, "its process ended with status %d%s",
                 WIFEXITED(status) ? WEXITSTATUS(status) : -1, words);
}

/* ---- results ---- */

static orr_code keep_result(sweep_job *j, uint32_t point, const swp_result *r)
{
    orr_code code = ORR_OK;
    if (!j->in_transaction) {
        code = swp_store_begin(j->store, j->err);
        j->in_transaction = !code;
    }
    if (!code)
        code = swp_store_put(j->store, j->hashes[point], r, j->err);
    return code;
}

static void note_failure(sweep_job *j, uint32_t point, orr_str words)
{
    if (!*j->sum->failure)
        snprintf(j->sum->failure, sizeof j->sum->failure, "point %u: %.*s", point, (int)words.len,
                 words.ptr);
}

static orr_code try_again(sweep_job *j, uint32_t point)
{
    if (!orr_grow(&j->again, &j->again_room, j->again_count + 1))
        return orr_no_memory(j->err);
    j->again[j->again_count++] = point;
    return ORR_OK;
}

/* A worker has died.  Its current point may be the reason; queued ones are not. */
static orr_code bury(sweep_job *j, sweep_peer *p)
{
    orr_code code = ORR_OK;
    int status = 0;
    char why[400];
    close(p->fd);
    p->fd = -1;
    if (p->pid)
        while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
            ;
    const bool is_local = p->pid != 0;
    say_death(j, p, status, why, sizeof why);
    for (uint32_t i = p->waiting_count; i-- > 0 && !code;) {
        const uint32_t point = p->waiting[i];
        j->in_flight--;
        if (i > 0 || ++j->tries[point] < MOST_TRIES) {
            code = try_again(j, point);
            continue;
        }
        const swp_result r = {.status = SWP_LOST, .data = orr_str_of(why)};
        note_failure(j, point, r.data);
        j->sum->computed++;
        orr_progress_add(&j->progress, 1);
        code = keep_result(j, point, &r);
    }
    p->waiting_count = 0;
    if (p->words >= 0)
        close(p->words);
    p->words = -1;
    return code || !is_local ? code : fork_worker(j);
}

static orr_code take_done(sweep_job *j, sweep_peer *p, const swp_frame *f)
{
    if (f->len < SWP_DONE_HEAD || !p->waiting_count || swp_get_u64(f->bytes) != p->waiting[0])
        return ORR_END;
    const uint32_t point = p->waiting[0], status = swp_get_u32(f->bytes + 8);
    const bool is_cached = swp_get_u32(f->bytes + 12) != 0;
    const swp_result r = {.status = status <= SWP_LOST ? (swp_status)status : SWP_LOST,
                          .ns = swp_get_u64(f->bytes + 16),
                          .data = {(const char *)f->bytes + SWP_DONE_HEAD, f->len - SWP_DONE_HEAD}};
    const uint64_t cpu_ns = swp_get_u64(f->bytes + 24);
    memmove(p->waiting, p->waiting + 1, --p->waiting_count * sizeof *p->waiting);
    j->in_flight--;
    if (is_cached) {
        j->sum->reused++;
    } else {
        j->sum->computed++;
        j->sum->busy_ns += r.ns;
    }
    p->cpu_ns += cpu_ns;
    j->sum->cpu_ns += cpu_ns;
    j->sum->waited_ns += swp_get_u64(f->bytes + 32);
    if (p->cpu_ns > j->sum->most_cpu_ns)
        j->sum->most_cpu_ns = p->cpu_ns;
    j->answers++;
    j->answer_ns += is_cached ? 0 : r.ns;
    if (r.status != SWP_OK)
        note_failure(j, point, r.data);
    orr_progress_add(&j->progress, 1);
    return keep_result(j, point, &r);
}

static const char *check_hello(sweep_job *j, sweep_peer *p, const swp_frame *f)
{
    swp_hello h;
    if (!swp_hello_read(f, !p->pid, &h) || strcmp(h.token, p->pid ? "" : j->token) != 0)
        return "not a worker of this sweep";
    snprintf(p->host, sizeof p->host, "%.63s", h.host);
    if (strcmp(h.spec, j->spec_hash) != 0)
        return "the specification there differs from that of rank 0";
    if (strcmp(h.program, j->s->hooks->program) != 0)
        return "the program there is another build than that of rank 0";
    return NULL;
}

static orr_code take_hello(sweep_job *j, sweep_peer *p, const swp_frame *f)
{
    const char *why = check_hello(j, p, f);
    p->has_greeted = !why;
    if (!why && !p->pid && !p->counts_as_rank) {
        p->counts_as_rank = true;
        j->ranks_seen++;
        j->sum->workers++;
    }
    if (why) {
        swp_frame_send(p->fd, SWP_FRAME_QUIT, why, strlen(why));
        remark(j, "%s: %s; it gets no points", *p->host ? p->host : "a worker", why);
        return ORR_END;
    }
    return ORR_OK;
}

/* A local worker that cannot work is an error; a remote one is left out. */
static orr_code take_refusal(sweep_job *j, sweep_peer *p, const swp_frame *f)
{
    if (p->pid)
        return orr_fail(j->err, ORR_EIO, NULL, "%.*s", (int)f->len, (const char *)f->bytes);
    remark(j, "%.*s; that process gets no more points", (int)f->len, (const char *)f->bytes);
    return ORR_END;
}

/* ORR_END: the peer is unusable. */
static orr_code take_frame(sweep_job *j, sweep_peer *p, const swp_frame *f)
{
    if (f->kind == SWP_FRAME_HELLO)
        return take_hello(j, p, f);
    if (f->kind == SWP_FRAME_REFUSE)
        return take_refusal(j, p, f);
    return f->kind == SWP_FRAME_DONE && p->has_greeted ? take_done(j, p, f) : ORR_END;
}

/* Points of a dropped worker go to others, without counting as failures. */
static orr_code leave_out(sweep_job *j, sweep_peer *p)
{
    orr_code code = ORR_OK;
    close(p->fd);
    p->fd = -1;
    for (uint32_t i = p->waiting_count; i-- > 0 && !code;) {
        j->in_flight--;
        code = try_again(j, p->waiting[i]);
    }
    p->waiting_count = 0;
    return code;
}

static orr_code read_peer(sweep_job *j, sweep_peer *p)
{
    uint8_t *room = orr_buf_reserve(&p->in, READ_BYTES);
    if (!room)
        return orr_no_memory(j->err);
    const ssize_t n = recv(p->fd, room, READ_BYTES, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return ORR_OK;
    if (n <= 0)
        return bury(j, p);
    p->in.len += (size_t)n;
    size_t at = 0, used;
    swp_frame f;
    bool is_bad;
    orr_code code = ORR_OK;
    while (!code && swp_frame_next(&p->in, at, &f, &used, &is_bad)) {
        code = take_frame(j, p, &f);
        at += used;
    }
    if (at) {
        memmove(p->in.ptr, p->in.ptr + at, p->in.len - at);
        p->in.len -= at;
    }
    if (code == ORR_END || (!code && is_bad))
        return p->pid ? orr_fail(j->err, ORR_EBUG, NULL, "a worker sent an invalid message")
                      : leave_out(j, p);
    return code;
}

static orr_code accept_peers(sweep_job *j)
{
    const int one = 1;
    for (;;) {
        const int fd = accept4(j->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            return ORR_OK;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
        const orr_code code = add_peer(j, (sweep_peer){.fd = fd, .words = -1});
        if (code)
            return code;
    }
}

/* ---- distribution ---- */

static size_t points_left(const sweep_job *j)
{
    return j->todo_count - j->next + j->again_count;
}

/* Queue length per worker: enough to keep it busy, but balanced at the end. */
static uint32_t planned(const sweep_job *j, size_t workers)
{
    const uint64_t mean = j->answers ? j->answer_ns / j->answers : AHEAD_NS;
    uint64_t n = 2 + AHEAD_NS / (mean + 1000);
    const uint64_t share = 1 + points_left(j) / (2 * workers);
    n = n < share ? n : share;
    return (uint32_t)(n < MOST_WAITING ? n : MOST_WAITING);
}

static bool send_point(sweep_job *j, sweep_peer *p)
{
    uint8_t bytes[8 + SWP_HASH_ROOM - 1];
    const uint32_t point = j->again_count ? j->again[--j->again_count] : j->todo[j->next++];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)point >> (56 - 8 * i));
    memcpy(bytes + 8, j->hashes[point], SWP_HASH_ROOM - 1);
    p->waiting[p->waiting_count++] = point;
    j->in_flight++;
    return swp_frame_send(p->fd, SWP_FRAME_TASK, bytes, sizeof bytes);
}

/* Round-robin, so that each worker has one point before any has two.  A worker that cannot be
 * written to is found dead when it is read. */
static void give_out(sweep_job *j)
{
    size_t workers = 0;
    for (size_t i = 0; i < j->peer_count; i++)
        workers += j->peers[i].fd >= 0 && j->peers[i].has_greeted;
    if (!workers)
        return;
    const uint32_t most = planned(j, workers);
    for (uint32_t round = 1; round <= most; round++)
        for (size_t i = 0; i < j->peer_count && points_left(j); i++) {
            sweep_peer *p = &j->peers[i];
            if (p->fd >= 0 && p->has_greeted && p->waiting_count < round)
                (void)!send_point(j, p);
        }
}

static orr_code commit(sweep_job *j)
{
    if (!j->in_transaction)
        return ORR_OK;
    j->in_transaction = false;
    return swp_store_commit(j->store, j->err);
}

static orr_code wait_and_take(sweep_job *j, int ms)
{
    struct pollfd *list = orr_alloc(j->peer_count + 1, sizeof *list);
    size_t n = 0;
    orr_code code = ORR_OK;
    if (!list)
        return orr_no_memory(j->err);
    for (; n < j->peer_count; n++)
        list[n] = (struct pollfd){.fd = j->peers[n].fd, .events = POLLIN};
    list[n] = (struct pollfd){.fd = j->listener, .events = POLLIN};
    const int ready = poll(list, n + 1, ms);
    for (size_t i = 0; i < n && ready > 0 && !code; i++)
        if (list[i].revents && j->peers[i].fd == list[i].fd && list[i].fd >= 0)
            code = read_peer(j, &j->peers[i]);
    if (ready > 0 && !code && list[n].revents)
        code = accept_peers(j);
    orr_free(list);
    const orr_code kept = code ? ORR_OK : commit(j);
    orr_progress_add(&j->progress, 0);
    return code ? code : kept;
}

/* Ranks that start late must not wait for a finished sweep. */
static orr_code wait_for_late(sweep_job *j)
{
    const uint64_t end = now_ns() + (uint64_t)LATE_MS * 1000000;
    orr_code code = ORR_OK;
    while (!code && !stop_signal && j->ranks_seen + 1 < j->cluster.size && now_ns() < end)
        code = wait_and_take(j, POLL_MS);
    return code;
}

/* Until data may have arrived, or the sweep's time is up. */
static int wait_ms(const sweep_job *j)
{
    const uint64_t now = now_ns();
    if (!j->end_ns || j->end_ns > now + (uint64_t)POLL_MS * 1000000)
        return POLL_MS;
    return j->end_ns > now ? (int)((j->end_ns - now) / 1000000) + 1 : 0;
}

static orr_code run_all(sweep_job *j)
{
    orr_code code = ORR_OK;
    while (!code && !stop_signal && !j->is_late && (points_left(j) || j->in_flight)) {
        give_out(j);
        code = wait_and_take(j, wait_ms(j));
        j->is_late = j->end_ns && now_ns() >= j->end_ns && (points_left(j) || j->in_flight);
    }
    if (!code && !j->is_late && j->listener >= 0)
        code = wait_for_late(j);
    return code;
}

static void dismiss(sweep_job *j, bool is_clean)
{
    for (size_t i = 0; i < j->peer_count; i++) {
        sweep_peer *p = &j->peers[i];
        if (p->fd >= 0 && is_clean)
            swp_frame_send(p->fd, SWP_FRAME_QUIT, "", 0);
        else if (p->fd >= 0 && p->pid)
            kill(p->pid, SIGKILL);
    }
    for (size_t i = 0; i < j->peer_count; i++) {
        sweep_peer *p = &j->peers[i];
        if (p->fd >= 0) {
            close(p->fd);
            while (p->pid && waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
                ;
        }
        if (p->words >= 0)
            close(p->words);
        orr_buf_fini(&p->in);
    }
    orr_free(j->peers);
}

/* ---- rank 0, or the only process ---- */

static uint32_t core_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (uint32_t)CPU_COUNT(&set);
    return 1;
}

/* Handlers without SA_RESTART: a wait ends at once. */
static void catch_stops(struct sigaction old[3], bool restores)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < 3; i++) {
        const struct sigaction ours = {.sa_handler = note_stop};
        if (restores) {
            sigaction(numbers[i], &old[i], NULL);
            continue;
        }
        sigaction(numbers[i], NULL, &old[i]);
        if (old[i].sa_handler != SIG_IGN)
            sigaction(numbers[i], &ours, NULL);
    }
}

static orr_code start_workers(sweep_job *j)
{
    orr_code code = ORR_OK;
    const uint32_t wanted = j->o->jobs ? j->o->jobs : j->cluster.size > 1 ? 1 : core_count();
    const size_t left = points_left(j);
    const size_t n = left < wanted ? left : wanted;
    for (size_t i = 0; i < n && !code; i++)
        code = fork_worker(j);
    j->sum->workers += (uint32_t)n;
    return code;
}

/* Counts for the table. */
static orr_code count_results(sweep_job *j)
{
    orr_code code = ORR_OK;
    uint64_t done = 0;
    for (size_t i = 0; i < j->s->point_count && !code; i++) {
        swp_result r;
        if (!is_ours(j, i))
            continue;
        code = swp_store_get(j->store, j->hashes[j->same_as[i]], &r, j->err);
        done += r.status != SWP_OPEN;
        j->sum->failed += r.status == SWP_FAILED || r.status == SWP_LOST;
        if (!code && (r.status == SWP_FAILED || r.status == SWP_LOST))
            note_failure(j, (uint32_t)i, r.data);
    }
    j->sum->left = j->sum->points - done;
    j->sum->reused = done > j->sum->computed ? done - j->sum->computed : 0;
    return code;
}

/* Before anything runs: an unusable cache is reported once.  Afterwards: workers that ended at the
 * same moment have left its WAL file. */
static orr_code touch_cache(sweep_job *j, orr_error *err)
{
    swp_store *cache;
    if (!j->o->cache)
        return ORR_OK;
    const orr_code code = swp_store_open_cache(j->o->cache, &cache, err);
    if (!code)
        swp_store_close(cache);
    return code;
}

static orr_code conduct(sweep_job *j)
{
    struct sigaction old[3];
    orr_code code = touch_cache(j, j->err);
    if (!code && j->cluster.size > 1) {
        j->meeting_point = orr_alloc(strlen(j->o->database) + 96, 1);
        code = j->meeting_point ? swp_cluster_listen(&j->cluster, j->o->database, j->meeting_point,
                                                     j->token, &j->listener, j->err)
                                : orr_no_memory(j->err);
    }
    if (code)
        return code;
    stop_signal = 0;
    if (j->o->max_seconds > 0 && j->o->max_seconds < MOST_SECONDS)
        j->end_ns = now_ns() + (uint64_t)(j->o->max_seconds * 1e9);
    catch_stops(old, false);
    code = start_workers(j);
    orr_progress_start(&j->progress, "sweep", "points", j->todo_count, j->o->is_quiet);
    if (!code)
        code = run_all(j);
    orr_progress_end(&j->progress);
    dismiss(j, !code && !stop_signal && !j->is_late);
    (void)!touch_cache(j, NULL);
    catch_stops(old, true);
    if (j->meeting_point)
        unlink(j->meeting_point);
    if (code && j->in_transaction && swp_store_commit(j->store, NULL))
        code = code == ORR_OK ? ORR_EIO : code; /* keep what arrived before the error if possible */
    if (!code)
        code = count_results(j);
    if (code || !(stop_signal || j->is_late))
        return code;
    code = orr_fail(j->err, ORR_ESTOP, NULL,
                    "stopped: %llu of %llu points are done; the same command continues",
                    (unsigned long long)(j->sum->points - j->sum->left),
                    (unsigned long long)j->sum->points);
    if (j->is_late)
        orr_because(j->err, code, "the limit of %.6g s is reached", j->o->max_seconds);
    return code;
}

static void free_job(sweep_job *j)
{
    swp_store_close(j->store);
    if (j->listener >= 0)
        close(j->listener);
    orr_free(j->meeting_point);
    orr_free(j->hashes);
    orr_free(j->same_as);
    orr_free(j->tries);
    orr_free(j->todo);
    orr_free(j->again);
}

static orr_code run_owner(sweep_job *j)
{
    bool has_failed;
    orr_content_hash_text(swp_spec_hash(j->s, &has_failed), j->spec_hash);
    orr_code code = has_failed ? orr_no_memory(j->err) : hash_points(j);
    if (!code)
        code = swp_store_open(j->o->database, j->s, (const char(*)[SWP_HASH_ROOM])j->hashes,
                              j->o->recomputes, &j->store, j->err);
    if (!code)
        code = list_todo(j);
    return code ? code : conduct(j);
}

/* ---- the other ranks ---- */

static void serve_rank(sweep_job *j)
{
    char token[SWP_TOKEN_ROOM] = "", text[600];
    int fd;
    orr_error err;
    if (swp_cluster_join(&j->cluster, j->o->database, token, &fd, &err)) {
        remark(j, "%s", orr_error_text(&err, text, sizeof text));
        _exit(SWP_WORKER_REFUSED);
    }
    const swp_worker_options o = {
        .cache = j->o->cache, .token = token, .timeout_s = j->o->timeout_s, .is_remote = true};
    become_worker(j, fd, -1, &o);
}

static pid_t fork_rank(sweep_job *j)
{
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve_rank(j);
    }
    return pid;
}

/* Keeps its workers alive; rank 0 notices a death by the closed connection. */
static orr_code run_rank(sweep_job *j)
{
    const uint32_t wanted = j->o->jobs ? j->o->jobs : 1;
    uint32_t running = 0;
    bool is_alone = false;
    for (uint32_t i = 0; i < wanted; i++)
        running += fork_rank(j) > 0;
    while (running) {
        int status;
        if (waitpid(-1, &status, 0) < 0) {
            if (errno == EINTR)
                continue;
            break;
        }
        running--;
        is_alone = is_alone || (WIFEXITED(status) && WEXITSTATUS(status) == SWP_WORKER_ALONE);
        if (WIFSIGNALED(status))
            running += fork_rank(j) > 0;
    }
    j->sum->is_worker = true;
    return is_alone
               ? orr_fail(j->err, ORR_EIO, NULL,
                          "rank %u: rank 0 is gone; the same command continues", j->cluster.rank)
               : ORR_OK;
}

orr_code orr_sweep_run(orr_sweep *s,
                       const orr_sweep_options *o,
                       orr_sweep_summary *out,
                       orr_error *err)
{
    sweep_job j = {.s = s, .o = o, .sum = out, .err = err, .listener = -1};
    const uint64_t start = now_ns();
    *out = (orr_sweep_summary){0};
    if (o->shards && (o->shard < 1 || o->shard > o->shards))
        return orr_fail(err, ORR_EUSAGE, NULL, "shard %u of %u: expected 1 to %u", o->shard,
                        o->shards, o->shards);
    j.cluster.size = 1;
    if (!o->shards)
        swp_cluster_find(&j.cluster);
    const orr_code code = j.cluster.rank ? run_rank(&j) : run_owner(&j);
    out->wall_ns = now_ns() - start;
    free_job(&j);
    return code;
}
