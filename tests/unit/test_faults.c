/* SPDX-License-Identifier: Apache-2.0 */
/* test_faults.c - memory that runs out, reads and writes that fail, at every single place where
 * they can.
 *
 * Each job is run again and again with the first, the second, the third ... request for memory
 * failing, until one run asks for less than that.  A run in which a request failed must say that
 * memory ran out: not that all is well, not that the input is bad.  Sanitizers watch that nothing
 * leaks and nothing is used after its end.  Then the same with failing reads and writes; and once
 * with reads and writes of a few bytes at a time.
 *
 * src/base/memory.c is compiled into this program with ORR_FAULTS, and the linker puts our read and
 * write in front of the system's (see meson.build). */
#include "holes_make.h"

#include "run/sim.h"
#include <orrery/check.h>
#include <orrery/feeder.h>
#include <orrery/lab/gen.h>
#include <orrery/lab/info.h>
#include <orrery/run.h>
#include <orrery/set.h>

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

long orr__fail_alloc_after(long n); /* src/base/memory.c */

/* ---- reads and writes that fail ---- */

static long reads_left = -1,
            writes_left = -1; /* how many go well before one fails; negative: all */
static bool has_failed, is_stingy;

ssize_t __real_read(int fd, void *to, size_t n);
ssize_t __wrap_read(int fd, void *to, size_t n);
ssize_t __real_write(int fd, const void *from, size_t n);
ssize_t __wrap_write(int fd, const void *from, size_t n);

static bool fails_now(long *left)
{
    if (*left < 0 || (*left)-- > 0)
        return false;
    has_failed = true;
    return true;
}

/* Few bytes at a time, and an interruption now and then, which is not a failure. */
static size_t few(size_t n)
{
    static unsigned calls;
    return is_stingy && n > 7 ? 1 + calls++ % 7 : n;
}

static bool is_interrupted(void)
{
    static unsigned calls;
    return is_stingy && calls++ % 5 == 4;
}

ssize_t __wrap_read(int fd, void *to, size_t n)
{
    if (is_interrupted() || fails_now(&reads_left)) {
        errno = has_failed ? EIO : EINTR;
        return -1;
    }
    return __real_read(fd, to, few(n));
}

ssize_t __wrap_write(int fd, const void *from, size_t n)
{
    if (is_interrupted() || fails_now(&writes_left)) {
        errno = has_failed ? ENOSPC : EINTR;
        return -1;
    }
    return __real_write(fd, from, few(n));
}

/* ---- the jobs ---- */

typedef orr_code (*job)(const char *path);

static orr_code read_trace(const char *path)
{
    orr_trace *t;
    const orr_code code = orr_trace_read(path, NULL, &t, &err);
    CHECK(!code == (t != NULL));
    orr_trace_destroy(t);
    return code;
}

static orr_code read_as_jsonizer(const char *path)
{
    orr_trace *t;
    const orr_code code = orr_trace_read(
        path, &(orr_read_options){.size = sizeof(orr_read_options), .leniency = ORR_AS_JSONIZER},
        &t, &err);
    orr_trace_destroy(t);
    return code;
}

static orr_code read_as_feeder(const char *path)
{
    orr_trace *t;
    const orr_code code = orr_trace_read(
        path, &(orr_read_options){.size = sizeof(orr_read_options), .leniency = ORR_AS_FEEDER_V2},
        &t, &err);
    orr_trace_destroy(t);
    return code;
}

static orr_code feed_all(const char *path, const orr_feeder_options *opt)
{
    orr_feeder *f;
    orr_node node;
    orr_code code = orr_feeder_open(path, opt, &f, &err);
    CHECK(!code == (f != NULL));
    while (!code && !(code = orr_feeder_next(f, &node, &err)))
        code = orr_feeder_finish(f, node.id, &err);
    orr_feeder_close(f);
    return code == ORR_END ? ORR_OK : code;
}

static orr_code feed_whole(const char *path)
{
    return feed_all(path, NULL);
}

static orr_code feed_v2(const char *path)
{
    return feed_all(
        path, &(orr_feeder_options){.size = sizeof(orr_feeder_options), .order = ORR_FEED_AS_V2});
}

static orr_code feed_window(const char *path)
{
    return feed_all(path, &(orr_feeder_options){.size = sizeof(orr_feeder_options), .window = 20});
}

static orr_code copy_trace(const char *path)
{
    orr_trace *from, *to = NULL;
    const orr_attr attr = {
        .name = orr_str_of("comm_size"), .kind = ORR_VALUE_INT64, .value = {.i = 1}};
    orr_code code = orr_trace_read(path, NULL, &from, &err);
    if (!code)
        code = orr_trace_create(&(orr_meta){.version = orr_str_of("1.0.0")}, &to, &err);
    for (uint32_t i = 0; !code && i < orr_trace_columns(from)->count; i++) {
        orr_node node;
        orr_trace_node(from, i, &node);
        code = orr_trace_copy(to, &node, &(orr_edit){.attrs = &attr, .attr_count = i % 2}, &err);
    }
    if (!code)
        code = orr_trace_seal(to, &err);
    orr_trace_destroy(from);
    orr_trace_destroy(to);
    return code;
}

static orr_code write_trace(const char *path, const orr_write_options *opt, const char *to)
{
    orr_trace *t;
    orr_code code = orr_trace_read(path, NULL, &t, &err);
    if (!code)
        code = orr_trace_write(t, to, opt, &err);
    orr_trace_destroy(t);
    CHECK_EQ(access(to, F_OK) == 0, code == ORR_OK); /* whole or not at all */
    unlink(to);
    return code;
}

static orr_code write_plain(const char *path)
{
    return write_trace(path, NULL, "out.et");
}

static orr_code write_gzip(const char *path)
{
    return write_trace(path, NULL, "out.et.gz");
}

static orr_code write_zstd(const char *path)
{
    return write_trace(path, NULL, "out.et.zst");
}

static orr_code write_shifted(const char *path)
{
    return write_trace(path, &(orr_write_options){.size = sizeof(orr_write_options), .id_shift = 7},
                       "out.et");
}

static orr_code open_set(const char *path)
{
    orr_set *s;
    const orr_code code = orr_set_open(
        path, &(orr_set_options){.size = sizeof(orr_set_options), .threads = 1}, &s, &err);
    CHECK(!code == (s != NULL));
    CHECK(code || orr_set_class_count(s) == 2);
    orr_set_close(s);
    return code;
}

static orr_code open_keeping_going(const char *path)
{
    orr_set *s;
    const orr_code code = orr_set_open(
        path, &(orr_set_options){.size = sizeof(orr_set_options), .threads = 1, .keep_going = true},
        &s, &err);
    orr_set_close(s);
    return code;
}

static orr_code save_set(const char *path, bool compress)
{
    orr_set *s;
    orr_code code = orr_set_open(
        path, &(orr_set_options){.size = sizeof(orr_set_options), .threads = 1}, &s, &err);
    if (!code)
        code = orr_set_save(
            s, "out.orr",
            &(orr_set_save_options){.size = sizeof(orr_set_save_options), .compress = compress},
            &err);
    orr_set_close(s);
    CHECK_EQ(access("out.orr", F_OK) == 0, code == ORR_OK);
    unlink("out.orr");
    return code;
}

static orr_code save_plain(const char *path)
{
    return save_set(path, false);
}

static orr_code save_packed(const char *path)
{
    return save_set(path, true);
}

static const char *rank_file(uint32_t rank)
{
    static char name[32];
    snprintf(name, sizeof name, "ranks.%u.et", rank);
    return name;
}

/* All files of a set, or none. */
static orr_code write_set(const char *path)
{
    orr_set *s;
    orr_code code = orr_set_open(
        path, &(orr_set_options){.size = sizeof(orr_set_options), .threads = 1}, &s, &err);
    for (uint32_t r = 0; r < 4; r++)
        unlink(rank_file(r));
    if (!code)
        code = orr_set_write_files(s, "ranks", NULL, 1, &err);
    for (uint32_t r = 0; code && r < 4; r++)
        CHECK(access(rank_file(r), F_OK) != 0);
    orr_set_close(s);
    return code;
}

static orr_code read_rank(const char *path)
{
    orr_trace *t;
    uint64_t shift;
    const orr_code code = orr_set_read_rank(path, 2, NULL, &t, &shift, &err);
    orr_trace_destroy(t);
    return code;
}

static orr_code check_set(const char *path)
{
    orr_set *s;
    orr_check_report *r = NULL;
    orr_str text;
    orr_code code = orr_set_open(
        path, &(orr_set_options){.size = sizeof(orr_set_options), .threads = 1}, &s, &err);
    if (!code)
        code = orr_check_set(
            s, &(orr_check_options){.size = sizeof(orr_check_options), .threads = 1}, &r, &err);
    if (!code)
        code = orr_check_text(r, &(orr_check_style){.size = sizeof(orr_check_style), .input = path},
                              &text, &err);
    orr_check_report_destroy(r);
    orr_set_close(s);
    return code;
}

static orr_code fix_set(const char *path)
{
    orr_check_report *changes;
    const orr_code code = orr_check_fix(
        path, "out.orr", &(orr_set_options){.size = sizeof(orr_set_options), .threads = 1}, NULL,
        &changes, &err);
    CHECK(!code == (changes != NULL));
    CHECK_EQ(access("out.orr", F_OK) == 0, code == ORR_OK);
    unlink("out.orr");
    orr_check_report_destroy(changes);
    return code;
}

static orr_code sum_up_set(const char *path)
{
    orr_set *s;
    orr_info *info = NULL;
    orr_str text;
    orr_code code = orr_set_open(
        path, &(orr_set_options){.size = sizeof(orr_set_options), .threads = 1}, &s, &err);
    if (!code)
        code = orr_info_create(s, &(orr_info_options){.per_rank = true}, &info, &err);
    if (!code)
        code = orr_info_json(info, &text, &err);
    orr_info_destroy(info);
    orr_set_close(s);
    return code;
}

static orr_code simulate(const char *network, const char *ranks, const char *fidelity)
{
    orr_sim *s;
    const orr_sim_options opt = {.workload = "run.orr",
                                 .system = "sys.json",
                                 .network = network,
                                 .ranks_file = ranks,
                                 .fidelity = fidelity,
                                 .threads = 1};
    orr_code code = orr_sim_create(&opt, &s, &err);
    CHECK(!code == (s != NULL));
    if (!code)
        code = orr_sim_run(s, &err);
    if (!code)
        code = orr_sim_write_text(s, "run.txt", &err);
    orr_sim_destroy(s);
    return code;
}

static orr_code simulate_graph(const char *path)
{
    return simulate(path, "ranks.yml", NULL);
}

static orr_code simulate_aware(const char *path)
{
    return simulate(path, NULL, "aware");
}

static const struct {
    const char *name;
    job work;
    const char *path;
} jobs[] = {
    {"read", read_trace, "a.et"},
    {"read gzip", read_trace, "a.et.gz"},
    {"read zstd", read_trace, "a.et.zst"},
    {"read JSON lines", read_trace, "a.jsonl"},
    {"read an old generation", read_trace, "a.eg"},
    {"read as jsonizer", read_as_jsonizer, "cut.et"},
    {"read as feeder V2", read_as_feeder, "cut.et"},
    {"feed", feed_whole, "a.et"},
    {"feed as V2", feed_v2, "a.et"},
    {"feed a window", feed_window, "a.et"},
    {"feed a packed window", feed_window, "a.et.zst"},
    {"copy", copy_trace, "a.et"},
    {"write", write_plain, "a.et"},
    {"write gzip", write_gzip, "a.et"},
    {"write zstd", write_zstd, "a.et"},
    {"write shifted", write_shifted, "a.et"},
    {"open a set", open_set, "set"},
    {"open a set by prefix", open_set, "set/p"},
    {"open a set with a bad rank", open_keeping_going, "bad"},
    {"open a .orr", open_set, "plain.orr"},
    {"open a packed .orr", open_set, "packed.orr"},
    {"save", save_plain, "set"},
    {"save packed", save_packed, "set"},
    {"write the files of a set", write_set, "packed.orr"},
    {"read one rank", read_rank, "plain.orr"},
    {"read one packed rank", read_rank, "packed.orr"},
    {"write the files of a set with holes", write_set, "holes.orr"},
    {"check a set with holes", check_set, "holes.orr"},
    {"check one with many faults", check_set, "faulty.orr"},
    {"check one that stands still", check_set, "stuck.orr"},
    {"repair a set with holes", fix_set, "faulty.orr"},
    {"sum up a set with holes", sum_up_set, "holes.orr"},
    {"simulate on a graph", simulate_graph, "tree.yml"},
    {"simulate on dimensions", simulate_aware, "dims.yml"},
};
enum { JOBS = sizeof jobs / sizeof *jobs };

/* ---- their input ---- */

/* Nodes of all kinds: ids out of order, both kinds of dependency, attributes, group names. */
static orr_trace *rich_trace(uint64_t base)
{
    orr_trace *t = new_trace();
    for (uint64_t i = 0; i < 150; i++) {
        const uint64_t data[] = {base + i / 2 * 3, base + i / 3 * 3}, ctrl[] = {base + i / 4 * 3};
        char group[8];
        snprintf(group, sizeof group, "%u", (unsigned)(i % 9));
        const orr_attr attrs[] = {
            {.name = orr_str_of("comm_size"), .kind = ORR_VALUE_INT64, .value = {.i = 5}},
            {.name = orr_str_of("is_cpu_op"), .kind = ORR_VALUE_BOOL, .value = {.u = 1}},
            {.name = orr_str_of("pg_name"),
             .kind = ORR_VALUE_STRING,
             .value = {.s = orr_str_of(group)}},
        };
        const orr_draft d = {.id = base + i * 3,
                             .name = orr_str_of("n"),
                             .type = ORR_NODE_COMP,
                             .start_us = i % 50 == 49,
                             .data_deps = data,
                             .data_count = i ? 2 : 0,
                             .ctrl_deps = ctrl,
                             .ctrl_count = i > 40,
                             .attrs = attrs,
                             .attr_count = i > 80 ? 3 : 0};
        CHECK_OK(orr_trace_append(t, &d, &err), &err);
    }
    seal(t);
    return t;
}

/* File order: node 100 first, then the others, so that ids do not ascend. */
static void write_mixed(const char *path)
{
    orr_trace *from = rich_trace(1), *t = new_trace();
    orr_node node;
    for (uint32_t k = 0; k < 150; k++) {
        orr_trace_node(from, k < 8 ? 7 - k : k, &node);
        CHECK_OK(orr_trace_copy(t, &node, NULL, &err), &err);
    }
    seal(t);
    CHECK_OK(orr_trace_write(t, path, NULL, &err), &err);
    orr_trace_destroy(from);
    orr_trace_destroy(t);
}

static void write_set_files(void)
{
    static const uint64_t bases[] = {1, 1, 1001, 2};
    char path[32];
    CHECK_EQ(mkdir("set", 0777), 0);
    for (unsigned r = 0; r < 4; r++) {
        orr_trace *t = rich_trace(bases[r]);
        snprintf(path, sizeof path, "set/p.%u.et", r);
        CHECK_OK(orr_trace_write(t, path, NULL, &err), &err);
        orr_trace_destroy(t);
    }
    orr_trace *t = new_trace();
    ADD_NODE(t, 1);
    seal(t);
    CHECK_OK(orr_trace_write(t, "set/p.4.et", NULL, &err), &err);
    orr_trace_destroy(t);
    orr_set *s;
    CHECK_OK(orr_set_open("set", NULL, &s, &err), &err);
    CHECK_OK(orr_set_save(s, "plain.orr", NULL, &err), &err);
    CHECK_OK(orr_set_save(
                 s, "packed.orr",
                 &(orr_set_save_options){.size = sizeof(orr_set_save_options), .compress = true},
                 &err),
             &err);
    orr_set_close(s);
}

static void write_holes(const char *path, uint64_t seed, unsigned wildness)
{
    orr_set *s = make_random_set(seed, wildness, true);
    CHECK_OK(orr_set_save(s, path, NULL, &err), &err);
    orr_set_close(s);
}

static void put(const char *path, const char *text)
{
    write_file(path, text, strlen(text));
}

static void write_run_files(void)
{
    orr_set *s;
    const orr_pattern *p = orr_pattern_find("all_reduce");
    orr_gen_options opt = p->defaults;
    opt.ranks = 4;
    CHECK_OK(orr_pattern_set(p, &opt, &s, &err), &err);
    CHECK_OK(orr_set_save(s, "run.orr", NULL, &err), &err);
    orr_set_close(s);
    put("sys.json",
        "{\"scheduling-policy\": \"LIFO\", \"local-mem-bw\": 50, \"preferred-dataset-splits\": 2,"
        " \"collective-optimization\": \"baseline\","
        " \"all-reduce-implementation\": [\"ring\", \"direct\"]}");
    put("tree.yml", "dims: [2, 2]\nswitches: [extra]\nlinks: [{from: spine0, to: extra, "
                    "bandwidth: 1GB/s}]\ngenerate: {type: leaf-spine, ranks: 4, "
                    "ranks_per_leaf: 2, spines: 2, bandwidth: 50GB/s}\n");
    put("ranks.yml", "ranks: [{ranks: 1, delay: 5us}]\n"
                     "links: [{from: leaf0, to: spine1, failed: true}]\n");
    put("dims.yml", "topology: [Ring, FullyConnected]\nnpus_count: [2, 2]\n"
                    "bandwidth: [50, 20]\nlatency: [500, 1000]\n");
}

static int make_input(void **state)
{
    orr_trace *t;
    (void)state;
    write_mixed("a.et");
    write_mixed("a.et.gz");
    write_mixed("a.et.zst");
    CHECK_OK(orr_trace_read("a.et", NULL, &t, &err), &err);
    orr_trace_destroy(t);
    t = new_trace();
    ADD_NODE(t, 1);
    ADD_NODE(t, 2, 1);
    seal(t);
    const orr_write_options old = {
        .size = sizeof old, .schema = orr__et_old_forms ? ORR_SCHEMA_EG : ORR_SCHEMA_CURRENT};
    CHECK_OK(orr_trace_write(t, "a.eg", &old, &err), &err);
    orr_trace_destroy(t);
    const char lines[] =
        "{\"format\": \"orrery-trace\", \"version\": 1, \"metadata\": {\"version\": \"1.0.0\"}}\n"
        "{\"id\": 1, \"name\": \"a\", \"attr\": [{\"name\": \"comm_size\", \"int64Val\": 5}]}\n"
        "{\"id\": 2, \"name\": \"b\", \"type\": \"COMP_NODE\", \"dataDeps\": [1], \"ctrlDeps\": [1]}\n";
    write_file("a.jsonl", lines, sizeof lines - 1);
    orr_buf b = {0};
    put_meta(&b);
    PUT_NODE(&b, 1);
    orr_buf_add(&b, "\x7f\x08\x05\x18\x04", 5); /* 127 bytes are announced, 4 are there */
    write_file("cut.et", b.ptr, b.len);
    CHECK_EQ(mkdir("bad", 0777), 0);
    write_file("bad/p.0.et", b.ptr, b.len);
    write_file("bad/p.1.et", b.ptr, b.len - 5);
    orr_buf_fini(&b);
    write_set_files();
    write_holes("holes.orr", 4, 0); /* seeds that have a bit of everything, or what is asked for */
    write_holes("faulty.orr", 1084, 6);
    write_holes("stuck.orr", 1477, 60);
    write_run_files();
    return 0;
}

/* ---- the tests ---- */

TEST(test_faults__memory_that_runs_out_anywhere_is_reported_as_that)
{
    for (size_t k = 0; k < JOBS; k++) {
        for (long n = 0;; n++) {
            err.code = ORR_OK;
            orr__fail_alloc_after(n);
            const orr_code code = jobs[k].work(jobs[k].path);
            const bool failed = orr__fail_alloc_after(-1) < 0;
            if (code != (failed ? ORR_ENOMEM : ORR_OK) || (failed && err.code != ORR_ENOMEM))
                check_fail(__FILE__, __LINE__, "%s, request %ld: code %d: %s", jobs[k].name, n,
                           (int)code, err.message);
            if (!failed)
                break;
            CHECK(n < 5000);
        }
    }
}

/* A text of a configuration that could not be copied once passed for one that was not given: the
 * default ran. */
TEST(test_faults__a_text_that_cannot_be_copied_is_no_default)
{
    enum { LONG = 1 << 20 }; /* so that its copy is a request of its own */
    static char text[LONG];
    memset(text, 'x', LONG - 1);
    const orr_system systems[] = {{.size = sizeof *systems, .policy = text},
                                  {.size = sizeof *systems, .all_reduce = {text}}};
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++) {
        const orr_run_config config = {
            .size = sizeof config, .traces = "run.orr", .own_system = &systems[i]};
        bool failed = true;
        for (long n = 0; failed; n++) {
            orr_run *r;
            orr__fail_alloc_after(n);
            const orr_code code = orr_run_create(&config, &r, &err);
            failed = orr__fail_alloc_after(-1) < 0;
            if (code == ORR_OK || (failed && code != ORR_ENOMEM))
                check_fail(__FILE__, __LINE__, "system %zu, request %ld: code %d: %.80s", i, n,
                           (int)code, err.message);
            CHECK(r == NULL && n < 5000);
        }
    }
}

static void fail_each(long *left, const char *what)
{
    for (size_t k = 0; k < JOBS; k++)
        for (long n = 0;; n++) {
            *left = n;
            has_failed = false;
            const orr_code code = jobs[k].work(jobs[k].path);
            *left = -1;
            const bool is_kept =
                jobs[k].work == open_keeping_going; /* each rank keeps its own error */
            if (code != (has_failed && !is_kept ? ORR_EIO : ORR_OK))
                check_fail(__FILE__, __LINE__, "%s, %s %ld: code %d: %s", jobs[k].name, what, n,
                           (int)code, err.message);
            if (has_failed && !is_kept)
                CHECK(err.where.path[0] != '\0');
            if (!has_failed)
                break;
        }
}

TEST(test_faults__a_read_that_fails_anywhere_is_reported_as_that)
{
    fail_each(&reads_left, "read");
}

TEST(test_faults__a_write_that_fails_anywhere_is_reported_as_that)
{
    fail_each(&writes_left, "write");
}

TEST(test_faults__reads_and_writes_of_a_few_bytes_are_enough)
{
    has_failed = false;
    is_stingy = true;
    for (size_t k = 0; k < JOBS; k++) {
        const orr_code code = jobs[k].work(jobs[k].path);
        if (code)
            check_fail(__FILE__, __LINE__, "%s: code %d: %s", jobs[k].name, (int)code, err.message);
    }
    is_stingy = false;
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_faults__memory_that_runs_out_anywhere_is_reported_as_that),
        RUN(test_faults__a_text_that_cannot_be_copied_is_no_default),
        RUN(test_faults__a_read_that_fails_anywhere_is_reported_as_that),
        RUN(test_faults__a_write_that_fails_anywhere_is_reported_as_that),
        RUN(test_faults__reads_and_writes_of_a_few_bytes_are_enough),
    };
    return cmocka_run_group_tests(tests, make_input, NULL);
}
