/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_sim_config.c - any bytes as one of the simulator's configuration files.
 *
 * The first byte chooses which file the rest is, and how the run is set up; the other files are
 * sound.  What the reader refuses must have a place and words; what it takes is run, for a bounded
 * number of events, on a few ranks that do a little of everything. */
#include "fuzz_trace.h"

#include <orrery/lab/compat.h>

#include "run/run_state.h"

enum { RANKS = 16, MOST_EVENTS = 3000, MOST_SPLITS = 64 };
enum {
    SYSTEM,
    NETWORK,
    MEMORY,
    GROUPS,
    FILES,
    IS_AWARE = 4,
    IS_COMPAT = 8,
    RENDEZVOUS = 16,
    TWO_QUEUES = 32
};

/* ---- sound files ---- */

static const char *const sound[FILES] = {
    [SYSTEM] =
        "{\"scheduling-policy\": \"LIFO\", \"preferred-dataset-splits\": 2, \"local-mem-bw\": 50, \"peak-perf\": 10, "
        "\"collective-optimization\": \"localBWAware\", \"all-reduce-implementation\": [\"ring\"], "
        "\"all-gather-implementation\": [\"direct\"], \"reduce-scatter-implementation\": [\"direct2\"], "
        "\"all-to-all-implementation\": [\"ring\"]}",
    [NETWORK] = "topology: [ Switch ]\nnpus_count: [ 4 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n",
    [MEMORY] =
        "{\"memory-type\": \"MEMORY_POOL\", \"remote-mem-latency\": 50, \"remote-mem-bw\": 100}",
    [GROUPS] = "{\"1\": [0, 1, 2, 3]}",
};

static const char *config_file(unsigned which, const uint8_t *data, size_t size)
{
    static char paths[FILES][64];
    static int fds[FILES] = {-1, -1, -1, -1};
    if (fds[which] < 0) {
        fds[which] = memfd_create("config", MFD_CLOEXEC);
        REQUIRE(fds[which] >= 0);
        snprintf(paths[which], sizeof paths[which], "/proc/self/fd/%d", fds[which]);
    }
    REQUIRE(ftruncate(fds[which], 0) == 0);
    REQUIRE(size == 0 || pwrite(fds[which], data, size, 0) == (ssize_t)size);
    return paths[which];
}

/* ---- ranks that do a little of everything ---- */

static void add(orr_trace *t, orr_draft d, const orr_attr *attrs, size_t count)
{
    static const orr_value tensors[] = {{.s = {"w", 1}}, {.s = {"64", 2}}};
    orr_attr all[12];
    orr_error err;
    const uint64_t before = d.id - 1;
    memcpy(all, attrs, count * sizeof *attrs);
    all[count++] = (orr_attr){.name = orr_str_of("inputs"),
                              .kind = ORR_VALUE_STRING,
                              .is_list = true,
                              .items = tensors,
                              .item_count = 2};
    all[count++] = (orr_attr){
        .name = orr_str_of("outputs"), .kind = ORR_VALUE_STRING, .is_list = true, .items = tensors};
    d.attrs = all;
    d.attr_count = count;
    if (d.id % 3 == 2) { /* some of them in a row */
        d.data_deps = &before;
        d.data_count = 1;
    }
    REQUIRE(orr_trace_append(t, &d, &err) == ORR_OK);
}

static orr_attr integer(const char *name, int64_t value)
{
    return (orr_attr){.name = orr_str_of(name), .kind = ORR_VALUE_INT64, .value = {.i = value}};
}

static orr_trace *make_trace(bool has_memory)
{
    static const orr_collective kinds[] = {ORR_COLL_ALL_REDUCE,     ORR_COLL_ALL_GATHER,
                                           ORR_COLL_REDUCE_SCATTER, ORR_COLL_ALL_TO_ALL,
                                           ORR_COLL_ALL_REDUCE,     ORR_COLL_BROADCAST};
    const orr_attr work[] = {integer("num_ops", 100000), integer("tensor_size", 1000)};
    orr_trace *t;
    orr_error err;
    uint64_t id = 1;
    REQUIRE(orr_trace_create(NULL, &t, &err) == ORR_OK);
    add(t, (orr_draft){.id = id++, .type = ORR_NODE_COMP, .duration_us = 2}, work, 2);
    if (has_memory)
        add(t, (orr_draft){.id = id++, .type = ORR_NODE_MEM_LOAD}, work, 2);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const orr_attr attrs[] = {
            integer("comm_type", kinds[i]),
            integer("comm_size", 1000 + 77 * (int64_t)i),
            integer("comm_priority", (int64_t)i),
            {.name = orr_str_of("pg_name"), .kind = ORR_VALUE_STRING, .value.s = orr_str_of("1")}};
        add(t, (orr_draft){.id = id++, .type = ORR_NODE_COMM_COLL}, attrs, i == 4 ? 4 : 3);
    }
    add(t, (orr_draft){.id = id++, .type = ORR_NODE_COMP}, work, 2);
    REQUIRE(orr_trace_seal(t, &err) == ORR_OK);
    return t;
}

static const orr_set *ranks(bool has_memory)
{
    static orr_set *sets[2];
    orr_error err;
    orr_set **s = &sets[has_memory];
    if (*s)
        return *s;
    REQUIRE(orr_set_create(s, &err) == ORR_OK);
    REQUIRE(orr_set_add(*s, make_trace(has_memory), &err) == ORR_OK);
    for (int r = 1; r < RANKS; r++)
        REQUIRE(orr_set_add_rank(*s, 0, 0, &err) == ORR_OK);
    return *s;
}

/* ---- one input ---- */

static void require_words(orr_code code, const orr_error *err)
{
    REQUIRE(code == ORR_EINPUT || code == ORR_EIO || code == ORR_ENOMEM || code == ORR_EUSAGE);
    REQUIRE(err->message[0]);
}

/* What this reader refuses may be a link-level topology, which has a target of its own. */
static bool is_small_network(const uint8_t *data, size_t size)
{
    orr_net_config c;
    orr_error err;
    uint64_t npus = 1;
    const orr_code code = cfg_parse_network((orr_span){data, size}, "network.yml", &c, &err);
    if (code)
        require_words(code, &err);
    for (uint32_t k = 0; !code && k < c.dims && npus <= RANKS; k++)
        npus *= c.npus[k];
    return !code && npus <= RANKS;
}

static bool is_small_system(const char *path)
{
    cfg_system c;
    orr_error err;
    orr_arena *a = orr_arena_create();
    REQUIRE(a);
    const bool is_read =
        cfg_read_system(&(orr_sim_options){.system = path}, a, &(cfg_notes){0}, &c, &err) == ORR_OK;
    bool is_small = !is_read || c.splits <= MOST_SPLITS;
    for (unsigned k = 0; k < ORR_COLL_COUNT && is_read; k++)
        is_small &= !c.custom[k]; /* traces from anywhere on this machine */
    is_small &= !is_read || !c.custom_by_node;
    cfg_system_fini(&c);
    orr_arena_destroy(a);
    return is_small;
}

static void run(const orr_sim_options *opt)
{
    orr_sim *s;
    orr_error err;
    orr_code code = orr_sim_create(opt, &s, &err);
    if (code) {
        require_words(code, &err);
        return;
    }
    for (int i = 0; i < MOST_EVENTS && !code; i++)
        code = orr_sim_step(s, &err);
    if (code == ORR_END && orr_sim_finished(s) < orr_sim_ranks(s))
        code = orr_sim_run(s, &err); /* stands still: this explains why */
    if (code && code != ORR_END)
        require_words(code, &err);
    orr_sim_destroy(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const unsigned which = data[0] % FILES;
    const char *paths[FILES];
    for (unsigned i = 0; i < FILES; i++)
        paths[i] = i == which ? config_file(i, data + 1, size - 1)
                              : config_file(i, (const uint8_t *)sound[i], strlen(sound[i]));
    const orr_sim_options opt = {
        .system = paths[SYSTEM],
        .network = paths[NETWORK],
        .memory = paths[MEMORY],
        .groups = paths[GROUPS],
        .fidelity = data[0] & IS_AWARE ? "aware" : "unaware",
        .set = ranks(which == MEMORY),
        .queues_per_dim = data[0] & TWO_QUEUES ? 2 : 1,
        .rendezvous = data[0] & RENDEZVOUS,
        .rules = data[0] & IS_COMPAT ? orr_compat_at(ORR_RULES_RUN, 0)->run : NULL,
    };
    if (which == NETWORK && !is_small_network(data + 1, size - 1))
        return 0;
    if (is_small_system(paths[SYSTEM]))
        run(&opt);
    return 0;
}
