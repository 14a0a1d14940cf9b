/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_metadata_groups.c - any bytes as the text of process groups in a trace (METADATA node
 * process_group:init).
 *
 * The first byte is the name by which the collectives of four ranks call their group.  Texts in a
 * trace are UTF-8, so others do not come this far.  What is refused must have words; groups that
 * are taken must hang together, and the run is started and must come to an end. */
#include "fuzz_trace.h"

#include "base/text/text.h"
#include "run/run_state.h"

enum { RANKS = 4, MOST_EVENTS = 3000, MOST_BYTES = 1 << 14 };

static void append(orr_trace *t, orr_draft d)
{
    orr_error err;
    REQUIRE(orr_trace_append(t, &d, &err) == ORR_OK);
}

static orr_trace *make_trace(orr_str text, char name)
{
    const char group[] = {name, '\0'};
    const orr_io io = {.values = text};
    const orr_attr attrs[] = {
        {.name = orr_str_of("comm_type"), .kind = ORR_VALUE_INT64, .value.i = ORR_COLL_ALL_REDUCE},
        {.name = orr_str_of("comm_size"), .kind = ORR_VALUE_INT64, .value.i = 4096},
        {.name = orr_str_of("pg_name"), .kind = ORR_VALUE_STRING, .value.s = orr_str_of(group)},
    };
    const uint64_t first = 1;
    orr_trace *t;
    orr_error err;
    REQUIRE(orr_trace_create(NULL, &t, &err) == ORR_OK);
    append(t, (orr_draft){.id = 1,
                          .name = orr_str_of("## process_group:init ##"),
                          .type = ORR_NODE_METADATA,
                          .inputs = &io});
    append(t, (orr_draft){.id = 2,
                          .name = orr_str_of("all-reduce"),
                          .type = ORR_NODE_COMM_COLL,
                          .data_deps = &first,
                          .data_count = 1,
                          .attrs = attrs,
                          .attr_count = 3});
    REQUIRE(orr_trace_seal(t, &err) == ORR_OK);
    return t;
}

static orr_set *make_set(orr_str text, char name)
{
    orr_set *s;
    orr_error err;
    REQUIRE(orr_set_create(&s, &err) == ORR_OK);
    REQUIRE(orr_set_add(s, make_trace(text, name), &err) == ORR_OK);
    for (int r = 1; r < RANKS; r++)
        REQUIRE(orr_set_add_rank(s, 0, 0, &err) == ORR_OK);
    return s;
}

static void check_group(const cfg_group *g)
{
    REQUIRE(g->count >= 1 && g->count <= RANKS);
    for (uint32_t i = 0; i < g->count; i++) {
        REQUIRE(g->members[i] < RANKS && (i == 0 || g->sorted[i - 1] < g->sorted[i]));
        REQUIRE(g->members[cfg_group_index(g, g->members[i])] == g->members[i]);
    }
}

static void run(orr_sim *s)
{
    orr_error err;
    orr_code code = ORR_OK;
    for (size_t i = 0; i < s->groups.count; i++)
        check_group(&s->groups.groups[i]);
    for (int i = 0; i < MOST_EVENTS && !code; i++)
        code = orr_sim_step(s, &err);
    if (code == ORR_END && orr_sim_finished(s) < orr_sim_ranks(s))
        code = orr_sim_run(s, &err);
    REQUIRE(code == ORR_END || (code == ORR_EINPUT && err.message[0]));
}

static bool is_text(const uint8_t *p, size_t len)
{
    for (size_t n; len; p += n, len -= n)
        if ((n = orr_utf8_length(p, len)) == 0)
            return false;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char system[] =
        "{\"scheduling-policy\": \"LIFO\", \"preferred-dataset-splits\": 1, \"local-mem-bw\": 50, "
        "\"all-reduce-implementation\": [\"ring\"]}";
    static const char network[] =
        "topology: [ Switch ]\nnpus_count: [ 4 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n";
    orr_sim *s;
    orr_error err;
    if (size == 0 || size > MOST_BYTES || data[0] >= 0x80 || !is_text(data, size))
        return 0;
    orr_set *set = make_set((orr_str){(const char *)data + 1, size - 1}, (char)data[0]);
    const orr_sim_options opt = {
        .system = fuzz_file(0, (const uint8_t *)system, sizeof system - 1),
        .network = fuzz_file(1, (const uint8_t *)network, sizeof network - 1),
        .set = set,
    };
    const orr_code code = orr_sim_create(&opt, &s, &err);
    if (code)
        REQUIRE(code == ORR_EINPUT && err.message[0]);
    else
        run(s);
    orr_sim_destroy(s);
    orr_set_close(set);
    return 0;
}
