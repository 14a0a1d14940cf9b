/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_goal_files.c - any bytes as one of the files beside a schedule: interruptions, links, a
 * placement of jobs.  The first byte says which.  What is refused must have words; with what is
 * taken a small schedule runs to its end. */
#include "run/loggops/loggops.h"
#include <orrery/lab/compat.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* A file of these bytes; its path stays the same. */
static const char *file_of(const uint8_t *data, size_t size)
{
    static char path[64];
    static int fd = -1;
    if (fd < 0)
        fd = memfd_create("fuzz", MFD_CLOEXEC);
    require(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
    require(size == 0 || pwrite(fd, data, size, 0) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}

static orr_goal *make(void)
{
    static const char text[] =
        "num_ranks 3\nrank 0 {\na: calc 5000\nb: send 900b to 1\nc: send 70000b to 2\n"
        "b requires a\n}\nrank 1 {\nrecv 900b from 0\n}\nrank 2 {\nrecv 70000b from 0\n}\n";
    orr_error err;
    orr_goal *g;
    require(
        !orr_goal_parse((orr_span){(const uint8_t *)text, sizeof text - 1}, "x", NULL, &g, &err));
    return g;
}

static void simulate(const orr_goal *g, const lgs_options *opt)
{
    orr_error err;
    lgs_sim *s;
    orr_code code = lgs_create(g, opt, &s, &err);
    if (!code)
        code = lgs_run(s, &err);
    require(!code || (code == ORR_EINPUT && err.message[0]));
    require(code || lgs_events(s) == 7);
    lgs_destroy(s);
}

static void place(const orr_goal *g, const char *path)
{
    const orr_goal *const jobs[] = {g, g};
    const orr_goal_machine m = {.placement = ORR_GOAL_FROM_FILE, .hosts = 9, .file = path};
    orr_error err;
    orr_goal *out;
    const orr_code code = orr_goal_combine(jobs, 2, &m, NULL, &out, &err);
    require(!code == (out != NULL) && (!code || err.message[0]));
    orr_goal_free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    orr_goal *g = make();
    const char *path = file_of(data + 1, size - 1);
    lgs_options opt = lgs_defaults();
    opt.noise_seed = 7;
    orr_error err;
    const orr_compat *old;
    require(orr_compat_find(ORR_RULES_LOGGOPS, "lgs2023", &old, &err) == ORR_OK);
    if (data[0] % 4 < 2) {
        opt.noise = path;
        opt.rules = data[0] % 4 ? old->loggops : NULL;
        simulate(g, &opt);
    } else if (data[0] % 4 == 2) {
        opt.simple_links = path;
        opt.rules = old->loggops;
        simulate(g, &opt);
    } else {
        place(g, path);
    }
    orr_goal_free(g);
    return 0;
}
