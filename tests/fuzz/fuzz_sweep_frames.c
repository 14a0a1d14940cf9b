/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_sweep_frames.c - what processes of a sweep read from each other.  The first byte says who reads: a rank the file in
 * which all meet; the owner of the sweep the frames of a worker; a worker those of the owner, over a socket.  Frames lie
 * inside the bytes and reading ends; a worker answers no more tasks than it got, or says that it goes. */
#include "fuzz_trace.h"

#include "sweep/sweep_worker.h"

#include <string.h>
#include <sys/socket.h>

enum { MOST = 1 << 12 };

/* ---- the file in which they meet ---- */

static void read_meeting(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1); /* of its own, so that a sanitizer sees its end */
    swp_meeting m;
    REQUIRE(text);
    if (size)
        memcpy(text, data, size);
    text[size] = 0;
    if (swp_meeting_parse(text, &m)) {
        REQUIRE(m.port && strlen(m.token) == SWP_TOKEN_ROOM - 1 && !strchr(m.host, '\n'));
        REQUIRE(m.addresses >= text && m.addresses + strlen(m.addresses) <= text + size);
    }
    free(text);
}

/* ---- frames, as they arrive ---- */

static void look_at(const swp_frame *f)
{
    swp_hello h;
    for (int has_token = 0; has_token < 2; has_token++)
        if (f->kind == SWP_FRAME_HELLO && swp_hello_read(f, has_token, &h))
            REQUIRE(h.token && *h.spec && *h.program && *h.host &&
                    h.host + strlen(h.host) < h.text + sizeof h.text);
}

/* A few bytes at a time: the same frames as at once. */
static size_t count_frames(const uint8_t *data, size_t size, size_t step)
{
    orr_buf in = {0};
    size_t count = 0, at = 0, used;
    swp_frame f;
    bool is_bad = false;
    for (size_t got = 0; got < size && !is_bad; got += step) {
        orr_buf_add(&in, data + got, size - got < step ? size - got : step);
        for (; swp_frame_next(&in, at, &f, &used, &is_bad); at += used, count++) {
            REQUIRE(used == SWP_FRAME_HEAD + f.len && used <= in.len - at);
            look_at(&f);
        }
    }
    orr_buf_fini(&in);
    return count;
}

static void read_frames(const uint8_t *data, size_t size)
{
    REQUIRE(size == 0 || count_frames(data, size, size) == count_frames(data, size, 5));
}

/* ---- a worker ---- */

static orr_sweep_form find(void *context, const char *command, const char **name, uint32_t *place)
{
    (void)context, (void)command, (void)name;
    *place = 0;
    return ORR_SWEEP_OPTION;
}

static const char *nearest(void *context, const char *command, const char *typed)
{
    (void)context, (void)command, (void)typed;
    return "run";
}

static orr_code run(
    void *context, const orr_sweep_step *steps, size_t count, orr_sweep_out *out, orr_error *err)
{
    static const char json[] = "{\"time\": 1}";
    (void)err;
    REQUIRE(count == 1 && steps[0].word_count);
    ++*(size_t *)context;
    orr_sweep_put(out, 0, json, sizeof json - 1);
    return ORR_OK;
}

static void note(void *context, const char *line)
{
    (void)context;
    REQUIRE(strlen(line) < 700);
}

static const orr_sweep *small_sweep(size_t *runs)
{
    static const char text[] = "command: run\naxes:\n  a: [1, 2, 3]\n";
    static orr_sweep_hooks hooks;
    static orr_sweep *s;
    orr_error err = {0};
    hooks = (orr_sweep_hooks){runs, "fuzz", find, nearest, run, note};
    if (!s && orr_sweep_read((orr_span){(const uint8_t *)text, sizeof text - 1}, "sweep.yaml",
                             &hooks, &s, &err))
        REQUIRE(!err.message[0]);
    return s;
}

static void serve(const uint8_t *data, size_t size, bool is_remote)
{
    const swp_worker_options o = {.token = is_remote ? "word" : "", .is_remote = is_remote};
    size_t runs = 0, answers = 0, tasks = count_frames(data, size, size ? size : 1), used, at = 0;
    int ends[2];
    orr_buf said = {0};
    swp_frame f;
    bool is_bad;
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    REQUIRE(size == 0 || send(ends[0], data, size, 0) == (ssize_t)size);
    REQUIRE(shutdown(ends[0], SHUT_WR) == 0);
    swp_worker_serve((orr_sweep *)small_sweep(&runs), ends[1], &o);
    close(ends[1]);
    for (ssize_t n; (n = read(ends[0], orr_buf_reserve(&said, MOST), MOST)) > 0;)
        said.len += (size_t)n;
    close(ends[0]);
    for (; swp_frame_next(&said, at, &f, &used, &is_bad); at += used)
        answers += f.kind == SWP_FRAME_DONE;
    REQUIRE(at == said.len && !is_bad); /* whole frames, one after the other */
    REQUIRE(answers == runs && runs <= tasks);
    orr_buf_fini(&said);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > MOST)
        return 0;
    const uint8_t who = data[0] & 3;
    if (who == 0)
        read_meeting(data + 1, size - 1);
    else if (who == 1)
        read_frames(data + 1, size - 1);
    else
        serve(data + 1, size - 1, who == 3);
    return 0;
}
