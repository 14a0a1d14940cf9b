/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_rank_groups.c - any bytes as the file of communicator groups that lies beside the traces of three ranks.  Another
 * JSON file of that name is let be; what is refused has a place and words; groups that are taken ascend and name ranks that
 * are there. */
#include "fuzz_trace.h"

enum { RANKS = 3, PATH_ROOM = 128 };

static char folder[64];
static int groups_file;

static const char *in_folder(const char *name)
{
    static char path[PATH_ROOM];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void remove_folder(void)
{
    static const char *const names[] = {"job.0.et", "job.1.et", "job.2.et", "job.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(in_folder(names[i]));
    rmdir(folder);
}

static void write_trace(const char *name)
{
    const orr_draft d = {.id = 1, .type = ORR_NODE_COMP, .name = orr_str_of("node")};
    orr_trace *t;
    orr_error err;
    REQUIRE(orr_trace_create(NULL, &t, &err) == ORR_OK && orr_trace_append(t, &d, &err) == ORR_OK);
    REQUIRE(orr_trace_seal(t, &err) == ORR_OK);
    REQUIRE(orr_trace_write(t, in_folder(name), NULL, &err) == ORR_OK);
    orr_trace_destroy(t);
}

/* The groups lie in memory, behind a link with their name. */
static void make_folder(void)
{
    char target[64];
    snprintf(folder, sizeof folder, "/dev/shm/fuzz_groupsXXXXXX");
    REQUIRE(mkdtemp(folder) != NULL);
    atexit(remove_folder);
    write_trace("job.0.et");
    write_trace("job.1.et");
    write_trace("job.2.et");
    groups_file = memfd_create("groups", MFD_CLOEXEC);
    snprintf(target, sizeof target, "/proc/self/fd/%d", groups_file);
    REQUIRE(groups_file >= 0 && symlink(target, in_folder("job.json")) == 0);
}

static void look_at_groups(const orr_set *s)
{
    uint64_t before = 0;
    for (uint32_t i = 0; i < orr_set_group_count(s); i++) {
        const orr_group g = orr_set_group(s, i);
        REQUIRE(g.id > before && g.count);
        before = g.id;
        for (uint32_t k = 0; k < g.count; k++)
            REQUIRE(g.ranks[k] < RANKS);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const orr_set_options opt = {.size = sizeof opt, .threads = 1};
    orr_set *s;
    orr_error err = {0};
    if (!folder[0])
        make_folder();
    REQUIRE(ftruncate(groups_file, (off_t)size) == 0);
    REQUIRE(size == 0 || pwrite(groups_file, data, size, 0) == (ssize_t)size);
    if (orr_set_open(in_folder("job"), &opt, &s, &err)) {
        REQUIRE(!s && err.message[0] && err.where.path[0]);
        return 0;
    }
    REQUIRE(orr_set_rank_count(s) == RANKS);
    look_at_groups(s);
    orr_set_close(s);
    return 0;
}
