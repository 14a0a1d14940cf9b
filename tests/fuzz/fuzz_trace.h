/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_trace.h - what the fuzz targets do with a trace, once some bytes have become one: look at
 * everything in it, check what trace.h promises, feed it, write it, sum it up.
 *
 * Readers of files get a memory file, writers a pipe large enough for all they may write; nothing
 * touches a disk. */
#ifndef ORR_TESTS_FUZZ_TRACE_H
#define ORR_TESTS_FUZZ_TRACE_H

#include "fuzz_ways.h"

#include <orrery/check.h>
#include <orrery/feeder.h>
#include <orrery/lab/info.h>
#include <orrery/set.h>
#include <orrery/trace.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    FUZZ_PIPE = 1 << 20,
    FUZZ_WRITE_MAX =
        1 << 15 /* larger inputs are not written back: the pipe must hold what comes out */
};

#define REQUIRE(condition)                                                            \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                  \
        }                                                                             \
    } while (0)

/* ---- files that are none ---- */

/* The path of a file with these bytes, until the next call with the same slot (0 or 1). */
static inline const char *fuzz_file(int slot, const uint8_t *data, size_t size)
{
    static char paths[2][64];
    static int fds[2] = {-1, -1};
    int *fd = &fds[slot];
    if (*fd < 0) {
        *fd = memfd_create("fuzz", MFD_CLOEXEC);
        REQUIRE(*fd >= 0);
        snprintf(paths[slot], sizeof paths[slot], "/proc/self/fd/%d", *fd);
    }
    REQUIRE(ftruncate(*fd, 0) == 0 && ftruncate(*fd, (off_t)size) == 0);
    REQUIRE(size == 0 || pwrite(*fd, data, size, 0) == (ssize_t)size);
    return paths[slot];
}

static inline void fuzz_remove_shm(void)
{
    char path[64];
    snprintf(path, sizeof path, "/dev/shm/orrery_fuzz.%ld", (long)getpid());
    unlink(path);
}

/* A file with a name, in memory: for libraries that open a path twice or look at what it is.  The same path
 * each time. */
static inline const char *fuzz_shm_file(const uint8_t *data, size_t size)
{
    static char path[64];
    static int fd = -1;
    if (fd < 0) {
        snprintf(path, sizeof path, "/dev/shm/orrery_fuzz.%ld", (long)getpid());
        fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        REQUIRE(fd >= 0 && atexit(fuzz_remove_shm) == 0);
    }
    REQUIRE(ftruncate(fd, 0) == 0 && (size == 0 || pwrite(fd, data, size, 0) == (ssize_t)size));
    return path;
}

typedef struct fuzz_sink {
    char path[64];
    int read_end;
    uint8_t *bytes;
    size_t len;
} fuzz_sink;

/* A path to write to; what was written is read with fuzz_take. */
static inline fuzz_sink *fuzz_writable(void)
{
    static fuzz_sink s = {.read_end = -1};
    int ends[2];
    if (s.read_end >= 0)
        return &s;
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0 && fcntl(ends[1], F_SETPIPE_SZ, FUZZ_PIPE) >= FUZZ_PIPE);
    REQUIRE(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
    snprintf(s.path, sizeof s.path, "/proc/self/fd/%d", ends[1]);
    s.read_end = ends[0];
    s.bytes = malloc(FUZZ_PIPE);
    REQUIRE(s.bytes != NULL);
    return &s;
}

static inline orr_span fuzz_take(fuzz_sink *s)
{
    ssize_t got;
    s->len = 0;
    while ((got = read(s->read_end, s->bytes + s->len, FUZZ_PIPE - s->len)) > 0)
        s->len += (size_t)got;
    return (orr_span){s->bytes, s->len};
}

/* ---- looking at everything ---- */

static inline size_t fuzz_look_at_attrs(orr_attrs it)
{
    size_t count = 0;
    orr_attr attr;
    orr_value item;
    while (orr_attrs_next(&it, &attr)) {
        int64_t number;
        count++;
        REQUIRE((unsigned)attr.kind < ORR_VALUE_KIND_COUNT);
        if (orr_attr_int(&attr, &number))
            count += number == 42;
        if (attr.kind != ORR_VALUE_NONE)
            REQUIRE(orr_value_member(attr.kind, attr.is_list) != NULL);
        if (!attr.is_list)
            continue;
        for (orr_list items = orr_attr_items(&attr); orr_list_next(&items, &item);)
            count++;
    }
    return count;
}

/* The ids in the record and the indices in the columns are the same dependencies. */
static inline uint32_t fuzz_look_at_deps(
    const orr_trace *t, orr_list ids, const uint32_t *first, const uint32_t *deps, uint32_t node)
{
    const orr_columns *c = orr_trace_columns(t);
    uint32_t missing = 0, e = first ? first[node] : 0;
    for (orr_value id; orr_list_next(&ids, &id); e++) {
        REQUIRE(first && e < first[node + 1]);
        REQUIRE(deps[e] == orr_trace_find(t, id.u));
        REQUIRE(deps[e] == ORR_NO_NODE || (deps[e] < c->count && c->id[deps[e]] == id.u));
        missing += deps[e] == ORR_NO_NODE;
    }
    REQUIRE(!first || e == first[node + 1]);
    return missing;
}

static inline void fuzz_look_at_node(const orr_trace *t,
                                     uint32_t i,
                                     size_t size,
                                     uint32_t missing[2])
{
    const orr_columns *c = orr_trace_columns(t);
    orr_node node;
    orr_attr attr;
    orr_trace_node(t, i, &node);
    REQUIRE(node.id == c->id[i] && node.duration_us == c->duration_us[i]);
    REQUIRE(c->type[i] == (node.type > 254 ? 255 : node.type));
    REQUIRE(orr_trace_name(t, i).len <= size); /* not node.name when the field comes twice */
    const uint32_t found = orr_trace_find(t, node.id);
    REQUIRE(found >= i && found < c->count && c->id[found] == node.id); /* the last one of its id */
    const orr_where where = orr_trace_where(t, i);
    REQUIRE(where.byte == ORR_NO_BYTE || where.byte <= size);
    fuzz_look_at_attrs(orr_node_attrs(&node));
    orr_node_attr(&node, "comm_size", &attr);
    missing[0] += fuzz_look_at_deps(t, orr_node_data_deps(&node), c->data_first, c->data_dep, i);
    missing[1] += fuzz_look_at_deps(t, orr_node_ctrl_deps(&node), c->ctrl_first, c->ctrl_dep, i);
    if (c->pg_name && c->pg_name[i] != ORR_NO_NAME)
        REQUIRE(c->pg_name[i] < orr_trace_text_count(t));
}

/* size: of the input, decompressed; places must lie inside. */
static inline void fuzz_look_at(const orr_trace *t, size_t size)
{
    const orr_columns *c = orr_trace_columns(t);
    uint32_t missing[2] = {0, 0};
    for (uint32_t i = 0; i < c->count; i++)
        fuzz_look_at_node(t, i, size, missing);
    REQUIRE(missing[0] == c->data_missing && missing[1] == c->ctrl_missing);
    fuzz_look_at_attrs(orr_trace_attrs(t));
    REQUIRE(orr_trace_has_metadata(t) || orr_trace_version(t).len == 0);
    REQUIRE(orr_schema_name(orr_trace_schema(t)) != NULL);
}

/* ---- using it ---- */

/* With a window a file is read as it is fed, so that any step may find the damage. */
static inline bool fuzz_feed_one(orr_feeder *f,
                                 const orr_node *first,
                                 bool puts_back,
                                 bool may_fail)
{
    orr_node node = *first;
    orr_error err;
    if (puts_back) {
        orr_code code = orr_feeder_put_back(f, node.id, &err);
        if (!code)
            code = orr_feeder_next(f, &node, &err);
        REQUIRE(may_fail || code == ORR_OK);
        if (code)
            return false;
    }
    const orr_code code = orr_feeder_finish(f, node.id, &err);
    REQUIRE(may_fail || code == ORR_OK);
    return code == ORR_OK;
}

static inline void fuzz_run_feeder(orr_feeder *f, uint64_t nodes, bool must_end, bool may_fail)
{
    orr_node node;
    orr_error err;
    uint64_t count = 0;
    while (orr_feeder_next(f, &node, &err) == ORR_OK) {
        REQUIRE(++count <= nodes);
        if (!fuzz_feed_one(f, &node, count % 7 == 0, may_fail))
            break;
    }
    REQUIRE(!must_end || (count == nodes && orr_feeder_left(f) == 0));
    orr_feeder_close(f);
}

static inline void fuzz_feed(const orr_trace *t)
{
    static const orr_feeder_options options[] = {
        {sizeof(orr_feeder_options), .deps = ORR_FEED_ALL},
        {sizeof(orr_feeder_options), .deps = ORR_FEED_DATA},
        {sizeof(orr_feeder_options), .deps = ORR_FEED_CTRL},
        {sizeof(orr_feeder_options), .order = ORR_FEED_AS_V2}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        orr_feeder *f;
        orr_error err;
        if (orr_feeder_create(t, &options[i], &f, &err) == ORR_OK)
            fuzz_run_feeder(f, orr_trace_columns(t)->count, options[i].order == ORR_FEED_BY_ID,
                            false);
    }
}

/* A few nodes at a time, from a file. */
static inline void fuzz_feed_window(const uint8_t *data, size_t size)
{
    const orr_feeder_options opt = {.size = sizeof opt, .window = 4};
    orr_feeder *f;
    orr_error err;
    if (orr_feeder_open(fuzz_file(0, data, size), &opt, &f, &err) == ORR_OK)
        fuzz_run_feeder(f, UINT64_MAX, false, true);
}

/* Takes t. */
static inline void fuzz_sum_up(orr_trace *t)
{
    orr_set *s;
    orr_error err;
    orr_info *info;
    orr_check_report *r;
    orr_str text;
    REQUIRE(orr_set_create(&s, &err) == ORR_OK && orr_set_add(s, t, &err) == ORR_OK);
    REQUIRE(orr_set_add_rank(s, 0, 1000, &err) == ORR_OK);
    REQUIRE(orr_info_create(s, &(orr_info_options){.per_rank = true}, &info, &err) == ORR_OK);
    REQUIRE(orr_info_text(info, &text, &err) == ORR_OK &&
            orr_info_json(info, &text, &err) == ORR_OK);
    orr_info_destroy(info);
    REQUIRE(orr_check_set(s, NULL, &r, &err) == ORR_OK);
    orr_check_report_destroy(r);
    orr_set_close(s);
}

static inline void fuzz_compare(const orr_trace *t, const orr_trace *again, uint64_t id_shift)
{
    const orr_columns *a = orr_trace_columns(t), *b = orr_trace_columns(again);
    REQUIRE(a->count == b->count);
    for (uint32_t i = 0; i < a->count; i++)
        REQUIRE(a->id[i] + id_shift == b->id[i]);
}

/* Write with these options and read back, as leniently as it was read: as many nodes, the same
 * ids.  A trace that the old schema cannot hold may be refused; one without anything in it makes an
 * empty file. */
static inline void fuzz_write_back(const orr_trace *t,
                                   const orr_write_options *opt,
                                   orr_leniency leniency)
{
    fuzz_sink *sink = fuzz_writable();
    orr_error err;
    orr_trace *again;
    const orr_read_options read = {
        .size = sizeof read, .schema = opt->schema, .leniency = leniency};
    const orr_code code = orr_trace_write(t, sink->path, opt, &err);
    const orr_span bytes = fuzz_take(sink);
    if (code == ORR_EUSAGE && opt->schema > ORR_SCHEMA_CURRENT)
        return;
    REQUIRE(code == ORR_OK);
    if (bytes.len == 0)
        return;
    REQUIRE(orr_trace_parse(bytes, "again", &read, &again, &err) == ORR_OK);
    if (orr_trace_has_metadata(t) || !orr_trace_has_metadata(again))
        fuzz_compare(t, again,
                     opt->id_shift); /* without metadata a first node may be taken for it */
    orr_trace_destroy(again);
}

#endif
