/* SPDX-License-Identifier: Apache-2.0 */
/* bench_input.h - input traces, made from a seed and shared by the benchmarks of one `make bench`.
 *
 * They are in the folder ORR_BENCH_DIR, which bench/run creates and removes; each is made on first
 * use, in a separate process (bench.h says why). */
#ifndef ORR_BENCH_BENCH_INPUT_H
#define ORR_BENCH_BENCH_INPUT_H

#include "bench.h"

#include <orrery/lab/gen.h>

enum { LAYERED_NODES = 1000000 };

typedef struct bench_files {
    const char *prefix;
    uint32_t count, nodes;
    bool is_equal; /* all ranks from one seed */
} bench_files;

static inline void bench_check(orr_code code, const orr_error *err)
{
    char text[600];
    if (code != ORR_OK && code != ORR_END)
        bench_require(0, orr_error_text(err, text, sizeof text));
}

static inline char *bench_path(char *out, size_t size, const char *name)
{
    const char *folder = getenv("ORR_BENCH_DIR");
    snprintf(out, size, "%s/%s", folder ? folder : "/tmp", name);
    return out;
}

static inline orr_trace *bench_layered(uint32_t nodes, uint64_t seed)
{
    const orr_pattern *p = orr_pattern_find("layered");
    orr_error err;
    orr_trace *t;
    bench_require(p != NULL, "no pattern 'layered'");
    orr_gen_options opt = p->defaults;
    opt.nodes = nodes;
    opt.seed = seed;
    bench_check(orr_pattern_trace(p, &opt, 0, &t, &err), &err);
    return t;
}

/* One collective of this many bytes over all ranks. */
static inline orr_set *bench_collective(uint32_t ranks, orr_collective kind, int64_t bytes)
{
    orr_error err;
    orr_trace *t;
    orr_set *set;
    const orr_attr attrs[] = {
        {.name = orr_str_of("comm_type"), .kind = ORR_VALUE_INT64, .value.i = kind},
        {.name = orr_str_of("comm_size"), .kind = ORR_VALUE_INT64, .value.i = bytes}};
    const orr_draft node = {.id = 1,
                            .name = orr_str_of("a"),
                            .type = ORR_NODE_COMM_COLL,
                            .attrs = attrs,
                            .attr_count = 2};
    bench_check(orr_trace_create(&(orr_meta){.version = orr_str_of("1.0.0")}, &t, &err), &err);
    bench_check(orr_trace_append(t, &node, &err), &err);
    bench_check(orr_trace_seal(t, &err), &err);
    bench_check(orr_set_create(&set, &err), &err);
    bench_check(orr_set_add(set, t, &err), &err);
    for (uint32_t r = 1; r < ranks; r++)
        bench_check(orr_set_add_rank(set, 0, 0, &err), &err);
    return set;
}

static inline void bench_write_files(const bench_files *f)
{
    char path[600];
    orr_error err;
    orr_trace *t = NULL;
    for (uint32_t i = 0; i < f->count; i++) {
        if (!t || !f->is_equal) {
            orr_trace_destroy(t);
            t = bench_layered(f->nodes, f->is_equal ? 1 : i + 1);
        }
        snprintf(path, sizeof path, "%s.%u.et", f->prefix, i);
        bench_check(orr_trace_write(t, path, NULL, &err), &err);
    }
    orr_trace_destroy(t);
}

/* Make the files PREFIX.0.et ... unless they exist; returns their total size in MB. */
static inline double bench_need(const bench_files *f)
{
    char path[600];
    int status = 1;
    double mb = 0;
    snprintf(path, sizeof path, "%s.%u.et", f->prefix, f->count - 1);
    if (access(path, R_OK) != 0) {
        fflush(stdout);
        const pid_t child = fork();
        bench_require(child >= 0, "no process");
        if (child == 0) {
            bench_write_files(f);
            _exit(0);
        }
        bench_require(waitpid(child, &status, 0) == child && status == 0, "cannot make the input");
    }
    for (uint32_t i = 0; i < f->count; i++) {
        snprintf(path, sizeof path, "%s.%u.et", f->prefix, i);
        mb += bench_file_mb(path);
    }
    return mb;
}

/* The graph of a million nodes, 64 wide. */
static inline const char *bench_layered_file(void)
{
    static char prefix[512], path[600];
    bench_path(prefix, sizeof prefix, "layered_1m");
    bench_need(&(bench_files){.prefix = prefix, .count = 1, .nodes = LAYERED_NODES});
    snprintf(path, sizeof path, "%s.0.et", prefix);
    return path;
}

#endif
