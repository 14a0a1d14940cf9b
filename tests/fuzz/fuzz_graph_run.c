/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_graph_run.c - a run on a link-level topology, from any bytes to the last event.
 *
 * The bytes up to the first NUL are the topology, those behind it the file of ranks and links that
 * differ.  What is refused must have words.  What is taken is run, and no link may have carried
 * more than the messages sent. */
#include "fuzz_trace.h"

#include "run/run_state.h"

enum { RANKS = 8, MOST_LINKS = 400, MOST_EVENTS = 3000 };

/* ---- ranks that talk in every way ---- */

static orr_attr integer(const char *name, int64_t value)
{
    return (orr_attr){.name = orr_str_of(name), .kind = ORR_VALUE_INT64, .value = {.i = value}};
}

static void append(orr_trace *t, uint64_t id, orr_node_type type, const orr_attr *attrs, size_t n)
{
    orr_error err;
    const uint64_t before = id - 1;
    const orr_draft d = {.id = id,
                         .type = type,
                         .duration_us = 1,
                         .data_deps = &before,
                         .data_count = id > 1,
                         .attrs = attrs,
                         .attr_count = n};
    REQUIRE(orr_trace_append(t, &d, &err) == ORR_OK);
}

static orr_trace *make_trace(int64_t rank, int64_t ranks)
{
    const orr_attr to[] = {integer("comm_dst", (rank + 1) % ranks), integer("comm_size", 5000),
                           integer("comm_tag", 1)};
    const orr_attr from[] = {integer("comm_src", (rank + ranks - 1) % ranks),
                             integer("comm_size", 5000), integer("comm_tag", 1)};
    const orr_attr reduce[] = {integer("comm_type", ORR_COLL_ALL_REDUCE),
                               integer("comm_size", 100000)};
    const orr_attr exchange[] = {integer("comm_type", ORR_COLL_ALL_TO_ALL),
                                 integer("comm_size", 8000)};
    orr_trace *t;
    orr_error err;
    REQUIRE(orr_trace_create(NULL, &t, &err) == ORR_OK);
    append(t, 1, ORR_NODE_COMP, NULL, 0);
    append(t, 2, ORR_NODE_COMM_SEND, to, 3);
    append(t, 3, ORR_NODE_COMM_RECV, from, 3);
    append(t, 4, ORR_NODE_COMM_COLL, reduce, 2);
    append(t, 5, ORR_NODE_COMM_COLL, exchange, 2);
    REQUIRE(orr_trace_seal(t, &err) == ORR_OK);
    return t;
}

/* Kept, because there are few. */
static const orr_set *ranks_of(uint32_t ranks)
{
    static orr_set *sets[RANKS + 1];
    orr_error err;
    if (sets[ranks])
        return sets[ranks];
    REQUIRE(orr_set_create(&sets[ranks], &err) == ORR_OK);
    for (uint32_t r = 0; r < ranks; r++)
        REQUIRE(orr_set_add(sets[ranks], make_trace(r, ranks), &err) == ORR_OK);
    return sets[ranks];
}

/* ---- one input ---- */

/* How many ranks; 0: it is refused, or too large to be run here. */
static uint32_t small_topology(orr_span bytes)
{
    orr__topology *t;
    orr_error err;
    if (orr__topology_parse(bytes, "net.yml", MOST_LINKS, &t, &err) || !t)
        return 0;
    const uint32_t ranks = t->ranks <= RANKS ? t->ranks : 0;
    orr__topology_destroy(t);
    return ranks;
}

static void add_link(void *context, const orr_net_link *l)
{
    const orr_sim *s = *(orr_sim *const *)context;
    REQUIRE(l->messages <= orr_sim_messages(s) && l->messages > 0);
}

static void run(orr_sim *s)
{
    orr_error err;
    orr_code code = ORR_OK;
    for (int i = 0; i < MOST_EVENTS && !code; i++)
        code = orr_sim_step(s, &err);
    if (code == ORR_END && orr_sim_finished(s) < orr_sim_ranks(s))
        code = orr_sim_run(s, &err);
    REQUIRE(!code || code == ORR_END || (code == ORR_EINPUT && err.message[0]));
    orr_sim_visit_links(s, add_link, &s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char system[] =
        "{\"scheduling-policy\": \"LIFO\", \"preferred-dataset-splits\": 1, \"local-mem-bw\": 50, "
        "\"collective-optimization\": \"baseline\", \"all-reduce-implementation\": [\"ring\"], "
        "\"all-to-all-implementation\": [\"direct\"]}";
    static char system_path[] = "/proc/self/fd/000000";
    static int fd = -1;
    const uint8_t *nul = size ? memchr(data, '\0', size) : NULL;
    const size_t cut = nul ? (size_t)(nul - data) : size;
    const uint32_t ranks = small_topology((orr_span){data, cut});
    orr_sim *s;
    orr_error err;
    if (fd < 0) {
        fd = memfd_create("system", MFD_CLOEXEC);
        REQUIRE(fd >= 0 && pwrite(fd, system, sizeof system - 1, 0) == sizeof system - 1);
        snprintf(system_path, sizeof system_path, "/proc/self/fd/%d", fd);
    }
    if (ranks == 0)
        return 0;
    const orr_sim_options opt = {
        .system = system_path,
        .network = fuzz_file(0, data, cut),
        .ranks_file = nul ? fuzz_file(1, nul + 1, size - cut - 1) : NULL,
        .set = ranks_of(ranks),
        .wants_links = true,
    };
    const orr_code code = orr_sim_create(&opt, &s, &err);
    if (code)
        REQUIRE((code == ORR_EINPUT || code == ORR_EUSAGE) && err.message[0]);
    else
        run(s);
    orr_sim_destroy(s);
    return 0;
}
