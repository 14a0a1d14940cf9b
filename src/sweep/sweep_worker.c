/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_worker.c - receives points over a socket and sends results.
 *
 * A point runs in this process, by the caller's hook; a crash costs only this process.  Results are
 * flattened here, so that the process that owns the database only stores them. */
#include "sweep_worker.h"

#include "base/text/text.h"
#include "spec.h"

#include <errno.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Frames to and from sockets. */

static void put_u32(orr_buf *to, uint32_t v)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        orr_buf_byte(to, (uint8_t)(v >> shift));
}

static void put_u64(orr_buf *to, uint64_t v)
{
    put_u32(to, (uint32_t)(v >> 32));
    put_u32(to, (uint32_t)v);
}

uint32_t swp_get_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

uint64_t swp_get_u64(const uint8_t *p)
{
    return (uint64_t)swp_get_u32(p) << 32 | swp_get_u32(p + 4);
}

static bool send_all(int fd, const uint8_t *p, size_t n)
{
    while (n) {
        const ssize_t done = send(fd, p, n, MSG_NOSIGNAL);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        p += done;
        n -= (size_t)done;
    }
    return true;
}

/* Needs no memory: a point that was assigned but never sent would be awaited forever. */
bool swp_frame_send(int fd, swp_frame_kind kind, const void *bytes, size_t len)
{
    uint8_t small[512]; /* tasks and most answers go out as one packet */
    for (int i = 0; i < 4; i++) {
        small[i] = (uint8_t)((uint32_t)len >> (24 - 8 * i));
        small[4 + i] = (uint8_t)((uint32_t)kind >> (24 - 8 * i));
    }
    if (len <= sizeof small - SWP_FRAME_HEAD) {
        if (len)
            memcpy(small + SWP_FRAME_HEAD, bytes, len);
        return send_all(fd, small, SWP_FRAME_HEAD + len);
    }
    return send_all(fd, small, SWP_FRAME_HEAD) && send_all(fd, bytes, len);
}

bool swp_frame_next(const orr_buf *in, size_t from, swp_frame *out, size_t *used, bool *is_bad)
{
    *is_bad = false;
    if (in->len - from < SWP_FRAME_HEAD)
        return false;
    const uint8_t *p = in->ptr + from;
    const uint32_t len = swp_get_u32(p), kind = swp_get_u32(p + 4);
    *is_bad = len > SWP_FRAME_MOST || kind < SWP_FRAME_HELLO || kind > SWP_FRAME_QUIT;
    if (*is_bad || in->len - from - SWP_FRAME_HEAD < len)
        return false;
    *out = (swp_frame){.kind = (swp_frame_kind)kind, .bytes = p + SWP_FRAME_HEAD, .len = len};
    *used = SWP_FRAME_HEAD + len;
    return true;
}

/* Lines: format, token, hash of the specification, program, host; without a token that line is
 * empty and skipped. */
bool swp_hello_read(const swp_frame *f, bool has_token, swp_hello *out)
{
    char *save = NULL;
    snprintf(out->text, sizeof out->text, "%.*s", (int)f->len, (const char *)f->bytes);
    const char *format = strtok_r(out->text, "\n", &save);
    out->token = has_token ? strtok_r(NULL, "\n", &save) : "";
    out->spec = strtok_r(NULL, "\n", &save);
    out->program = strtok_r(NULL, "\n", &save);
    out->host = strtok_r(NULL, "\n", &save);
    return format && out->token && out->host && strcmp(format, "orrery-sweep 1") == 0;
}

struct orr_sweep_out {
    orr_buf json[SWP_MOST_STEPS];
};

void orr_sweep_put(orr_sweep_out *out, size_t step, const char *json, size_t len)
{
    if (step >= SWP_MOST_STEPS)
        return;
    out->json[step].len = 0;
    orr_buf_add(&out->json[step], json, len);
}

/* ---- one point ---- */

typedef struct sweep_worker {
    orr_sweep *s;
    int fd;
    const swp_worker_options *o;
    orr_arena *arena;
    swp_store *cache;
    orr_sweep_out out;
    orr_buf flat, frame;
    char host[64];
    uint64_t cpu_ns, waited_ns; /* CPU time at the latest answer; idle time since then */
    bool has_answered;
} sweep_worker;

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static orr_code run_point(sweep_worker *w, size_t point, orr_error *err)
{
    orr_sweep_step steps[SWP_MOST_STEPS];
    for (size_t i = 0; i < SWP_MOST_STEPS; i++)
        w->out.json[i].len = 0;
    orr_code code = swp_point_steps(w->s, point, w->arena, steps, err);
    if (!code)
        code = w->s->hooks->run(w->s->hooks->context, steps, w->s->step_count, &w->out, err);
    return code == ORR_END ? ORR_OK : code;
}

static swp_result compute(sweep_worker *w, size_t point)
{
    orr_error err;
    const uint64_t start = clock_ns(CLOCK_MONOTONIC);
    alarm(w->o->timeout_s); /* 0: none.  The signal ends this process, which fails the point */
    orr_code code = run_point(w, point, &err);
    alarm(0);
    swp_result r = {.status = SWP_OK, .ns = clock_ns(CLOCK_MONOTONIC) - start};
    if (!code)
        code = swp_figures_flatten(w->s, w->out.json, &w->flat, &err);
    if (code) {
        char text[600];
        r.status =
            code == ORR_EIO || code == ORR_ENOMEM || code == ORR_ESTOP ? SWP_LOST : SWP_FAILED;
        w->flat.len = 0;
        w->flat.failed = false;
        orr_buf_text(&w->flat, orr_error_text(&err, text, sizeof text));
    }
    r.data = (orr_str){(const char *)w->flat.ptr, w->flat.len};
    return r;
}

/* ---- protocol ---- */

static bool refuse(sweep_worker *w, const char *text)
{
    return swp_frame_send(w->fd, SWP_FRAME_REFUSE, text, strlen(text));
}

static bool answer(sweep_worker *w, uint64_t point, const swp_result *r, bool is_cached)
{
    w->frame.len = 0;
    put_u64(&w->frame, point);
    put_u32(&w->frame, (uint32_t)r->status);
    put_u32(&w->frame, is_cached);
    put_u64(&w->frame, r->ns);
    const uint64_t cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    put_u64(&w->frame, cpu_ns - w->cpu_ns);
    put_u64(&w->frame, w->waited_ns);
    w->cpu_ns = cpu_ns;
    w->waited_ns = 0;
    w->has_answered = true;
    orr_buf_add(&w->frame, r->data.ptr, r->data.len);
    return !w->frame.failed && swp_frame_send(w->fd, SWP_FRAME_DONE, w->frame.ptr, w->frame.len);
}

/* Rank 0 has hashed the contents of all files; with different ones this process would compute
 * another point. */
static bool has_same_files(sweep_worker *w, uint64_t point, const char *hash)
{
    orr_content_hash own;
    char text[SWP_HASH_ROOM], why[700], message[600];
    orr_error err;
    if (!w->o->is_remote)
        return true;
    if (swp_point_hash(w->s, point, w->arena, &own, &err)) {
        snprintf(why, sizeof why, "%s: %s", w->host, orr_error_text(&err, message, sizeof message));
    } else if (strcmp(orr_content_hash_text(own, text), hash) == 0) {
        return true;
    } else {
        snprintf(why, sizeof why,
                 "%s: a file that point %llu reads is missing there or differs from that of rank 0",
                 w->host, (unsigned long long)point);
    }
    refuse(w, why);
    return false;
}

static bool take_task(sweep_worker *w, const swp_frame *f)
{
    char hash[SWP_HASH_ROOM] = "";
    orr_error err;
    swp_result r = {.status = SWP_OPEN};
    if (f->len != 8 + SWP_HASH_ROOM - 1)
        return false;
    const uint64_t point = swp_get_u64(f->bytes);
    memcpy(hash, f->bytes + 8, SWP_HASH_ROOM - 1);
    orr_arena_reset(w->arena);
    if (point >= w->s->point_count || !has_same_files(w, point, hash))
        return false;
    if (w->cache && swp_store_get(w->cache, hash, &r, &err))
        r.status = SWP_OPEN; /* an unreadable cache is not a reason to stop */
    if (r.status == SWP_OK || r.status == SWP_FAILED)
        return answer(w, point, &r, true);
    r = compute(w, point);
    if (w->cache && r.status != SWP_LOST && swp_store_put(w->cache, hash, &r, &err)) {
        swp_store_close(w->cache); /* full or read-only: continue without it */
        w->cache = NULL;
    }
    return answer(w, point, &r, false);
}

static bool say_hello(sweep_worker *w)
{
    bool has_failed;
    char hash[SWP_HASH_ROOM];
    orr_content_hash_text(swp_spec_hash(w->s, &has_failed), hash);
    w->frame.len = 0;
    orr_buf_print(&w->frame, "orrery-sweep 1\n%s\n%s\n%s\n%s\n", w->o->token, hash,
                  w->s->hooks->program, w->host);
    return !has_failed && !w->frame.failed &&
           swp_frame_send(w->fd, SWP_FRAME_HELLO, w->frame.ptr, w->frame.len);
}

static void say_refused(sweep_worker *w, const swp_frame *f)
{
    char line[700];
    snprintf(line, sizeof line, "%s: %.*s", w->host, (int)f->len, (const char *)f->bytes);
    w->s->hooks->note(w->s->hooks->context, line);
}

static swp_worker_end serve(sweep_worker *w)
{
    orr_buf in = {0};
    size_t used;
    swp_frame f;
    swp_worker_end end = SWP_WORKER_ALONE;
    for (bool goes_on = true; goes_on;) {
        bool is_bad;
        while (goes_on && swp_frame_next(&in, 0, &f, &used, &is_bad)) {
            if (f.kind == SWP_FRAME_TASK) {
                goes_on = take_task(w, &f);
                end = goes_on ? end : SWP_WORKER_REFUSED;
            } else {
                goes_on = false;
                end = f.len ? SWP_WORKER_REFUSED : SWP_WORKER_DONE;
                if (f.len)
                    say_refused(w, &f);
            }
            memmove(in.ptr, in.ptr + used, in.len - used);
            in.len -= used;
        }
        if (!goes_on || is_bad)
            break;
        uint8_t *room = orr_buf_reserve(&in, 4096);
        const uint64_t start = clock_ns(CLOCK_MONOTONIC);
        const ssize_t n = room ? read(w->fd, room, 4096) : 0;
        if (w->has_answered) /* before its first point it waits for the sweep to begin */
            w->waited_ns += clock_ns(CLOCK_MONOTONIC) - start;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        in.len += (size_t)n;
    }
    orr_buf_fini(&in);
    return end;
}

/* Memory freed by a point is reused by the next one: clearing new pages would be 8 % of a point. */
static void keep_memory(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 32 << 20); /* the maximum permitted */
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    mallopt(M_TOP_PAD, 4 << 20);
#endif
}

swp_worker_end swp_worker_serve(orr_sweep *s, int fd, const swp_worker_options *o)
{
    sweep_worker w = {.s = s, .fd = fd, .o = o, .arena = orr_arena_create()};
    orr_error err;
    char text[600];
    swp_worker_end end = SWP_WORKER_REFUSED;
    keep_memory();
    gethostname(w.host, sizeof w.host - 1);
    if (w.arena && o->cache && swp_store_open_cache(o->cache, &w.cache, &err))
        refuse(&w, orr_error_text(&err, text, sizeof text));
    else if (w.arena && say_hello(&w))
        end = serve(&w);
    swp_store_close(w.cache);
    for (size_t i = 0; i < SWP_MOST_STEPS; i++)
        orr_buf_fini(&w.out.json[i]);
    orr_buf_fini(&w.flat);
    orr_buf_fini(&w.frame);
    orr_arena_destroy(w.arena);
    return end;
}
