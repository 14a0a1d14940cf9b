/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_worker.c - points come over a socket, results go back.
 *
 * A point runs in this process, by the caller's hook; whatever goes wrong in it costs this process
 * and no other.  What commands said as JSON is made flat here, so that the process that owns the
 * database only stores: numbers, texts and booleans under dotted names; of a list of objects the
 * largest value of each number.  All but the last command have their name in front. */
#include "sweep_worker.h"

#include "base/formats/json.h"
#include "base/text/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct orr_sweep_out {
    orr_buf json[SWP_MOST_STEPS];
};

enum { PATH_MOST = 400, DEEPEST_OBJECT = 16, MOST_MEMBERS = 64 };

void orr_sweep_put(orr_sweep_out *out, size_t step, const char *json, size_t len)
{
    if (step >= SWP_MOST_STEPS)
        return;
    out->json[step].len = 0;
    orr_buf_add(&out->json[step], json, len);
}

/* ---- flat ---- */

static bool is_about_the_file(orr_str key)
{
    return orr_str_is(key, "format") || orr_str_is(key, "version") || orr_str_is(key, "provenance");
}

static bool is_plain(orr_json_value v)
{
    const orr_json_type t = orr_json_type_of(v);
    return t != ORR_JSON_OBJECT && t != ORR_JSON_ARRAY && t != ORR_JSON_NULL;
}

/* The largest value of each number of a list's objects; one pass per name of the first object. */
static void put_largest(orr_json_writer *w, char *path, size_t len, orr_json_value list)
{
    orr_json_value first, v, item;
    orr_str key;
    orr_json_iter items = orr_json_iterate(list);
    if (!orr_json_next_value(&items, &first) || orr_json_type_of(first) != ORR_JSON_OBJECT)
        return;
    orr_json_iter members = orr_json_iterate(first);
    for (int n = 0; n < MOST_MEMBERS && orr_json_next_member(&members, &key, &v); n++) {
        double most = -INFINITY;
        orr_str text = {0};
        const int more = snprintf(path + len, PATH_MOST - len, "max.%.*s", (int)key.len, key.ptr);
        if (more < 0 || (size_t)more >= PATH_MOST - len)
            continue;
        const char *name = path + len + 4;
        orr_json_iter again = orr_json_iterate(list);
        while (orr_json_next_value(&again, &item)) {
            double x;
            if (!orr_json_find(item, name, &v) ||
                (orr_json_type_of(v) != ORR_JSON_INT && orr_json_type_of(v) != ORR_JSON_REAL))
                continue;
            if (orr_json_get_double(v, &x, NULL) == ORR_OK && x > most) {
                most = x;
                text = orr_json_raw(v);
            }
        }
        if (text.len) {
            orr_json_key(w, path);
            orr_json_raw_text(w, text);
        }
    }
    path[len] = 0;
}

static void put_flat(orr_json_writer *w, char *path, size_t len, orr_json_value object, int depth)
{
    orr_json_value v;
    orr_str key;
    orr_json_iter members = orr_json_iterate(object);
    while (orr_json_next_member(&members, &key, &v)) {
        if (depth == 0 && is_about_the_file(key))
            continue;
        const int n = snprintf(path + len, PATH_MOST - len, "%.*s", (int)key.len, key.ptr);
        if (n < 0 || (size_t)n + 1 >= PATH_MOST - len)
            continue;
        if (is_plain(v)) {
            orr_json_key(w, path);
            orr_json_raw_text(w, orr_json_raw(v));
            continue;
        }
        size_t deeper = len + (size_t)n;
        path[deeper++] = '.';
        path[deeper] = 0;
        if (orr_json_type_of(v) == ORR_JSON_OBJECT && depth < DEEPEST_OBJECT)
            put_flat(w, path, deeper, v, depth + 1);
        else if (orr_json_type_of(v) == ORR_JSON_ARRAY)
            put_largest(w, path, deeper, v);
    }
    path[len] = 0;
}

static orr_code flatten_step(
    const orr_sweep *s, uint32_t step, const orr_buf *json, orr_json_writer *w, orr_error *err)
{
    char path[PATH_MOST + 8] = "";
    orr_json *j;
    orr_json_value root;
    if (json->failed)
        return orr_no_memory(err);
    if (!json->len)
        return ORR_OK; /* a command without figures */
    const bool is_last = step + 1 == s->step_count;
    orr_code code =
        orr_json_open((orr_span){json->ptr, json->len}, s->steps[step].command, &j, err);
    if (code)
        return code;
    code = orr_json_only(j, &root, err);
    const size_t len =
        is_last ? 0 : (size_t)snprintf(path, sizeof path, "%.60s.", s->steps[step].command);
    if (!code && orr_json_type_of(root) == ORR_JSON_OBJECT)
        put_flat(w, path, len, root, 0);
    orr_json_close(j);
    return code;
}

static orr_code flatten(const orr_sweep *s, const orr_sweep_out *out, orr_buf *to, orr_error *err)
{
    orr_json_writer w;
    orr_code code = ORR_OK;
    to->len = 0;
    orr_json_writer_init(&w, to, NULL);
    orr_json_begin_object(&w);
    for (uint32_t i = 0; i < s->step_count && !code; i++)
        code = flatten_step(s, i, &out->json[i], &w, err);
    orr_json_end_object(&w);
    return code ? code : to->failed ? orr_no_memory(err) : ORR_OK;
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
} sweep_worker;

static uint64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
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
    const uint64_t start = clock_ns();
    alarm(w->o->timeout_s); /* 0: none.  The signal ends this process: the point's failure */
    orr_code code = run_point(w, point, &err);
    alarm(0);
    swp_result r = {.status = SWP_OK, .ns = clock_ns() - start};
    if (!code)
        code = flatten(w->s, &w->out, &w->flat, &err);
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

/* ---- talk ---- */

static bool refuse(sweep_worker *w, const char *text)
{
    return swp_frame_send(w->fd, SWP_FRAME_REFUSE, text, strlen(text));
}

static bool answer(sweep_worker *w, uint64_t point, const swp_result *r, bool is_cached)
{
    w->frame.len = 0;
    swp_put_u64(&w->frame, point);
    swp_put_u32(&w->frame, (uint32_t)r->status);
    swp_put_u32(&w->frame, is_cached);
    swp_put_u64(&w->frame, r->ns);
    orr_buf_add(&w->frame, r->data.ptr, r->data.len);
    return !w->frame.failed && swp_frame_send(w->fd, SWP_FRAME_DONE, w->frame.ptr, w->frame.len);
}

/* Rank 0 has hashed the contents of all files; with others this process would compute another
 * point. */
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
        r.status = SWP_OPEN; /* a cache that cannot be read is no reason to stop */
    if (r.status == SWP_OK || r.status == SWP_FAILED)
        return answer(w, point, &r, true);
    r = compute(w, point);
    if (w->cache && r.status != SWP_LOST && swp_store_put(w->cache, hash, &r, &err)) {
        swp_store_close(w->cache); /* full, or read-only: go on without it */
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
        const ssize_t n = room ? read(w->fd, room, 4096) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        in.len += (size_t)n;
    }
    orr_buf_fini(&in);
    return end;
}

swp_worker_end swp_worker_serve(orr_sweep *s, int fd, const swp_worker_options *o)
{
    sweep_worker w = {.s = s, .fd = fd, .o = o, .arena = orr_arena_create()};
    orr_error err;
    char text[600];
    swp_worker_end end = SWP_WORKER_REFUSED;
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
