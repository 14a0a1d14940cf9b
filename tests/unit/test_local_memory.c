/* SPDX-License-Identifier: Apache-2.0 */
/* test_local_memory.c - tensors of a rank over time: peaks worked out by hand, the file's shape,
 * and what is refused.  The order of the file's events is compared with the reference's in
 * tests/golden. */
#include "rooms.h"

#include "base/formats/json.h"
#include "files.h"

#include "run/sim.h"

static orr_error err;

/* A node: microseconds, and its tensors as "name size name size"; NULL: the attribute is absent. */
typedef struct op {
    uint64_t us;
    const char *inputs, *outputs;
} op;

enum { RANKS = 2, MOST_WORDS = 8 };

static size_t split(const char *text, orr_value out[MOST_WORDS])
{
    size_t n = 0;
    while (*text) {
        const size_t len = strcspn(text, " ");
        out[n++].s = (orr_str){text, len};
        text += len + (text[len] == ' ');
    }
    return n;
}

static orr_trace *make_trace(const op *ops, size_t count)
{
    orr_trace *t;
    CHECK_OK(orr_trace_create(NULL, &t, &err), &err);
    for (uint64_t i = 0; i < count; i++) {
        orr_value words[2][MOST_WORDS];
        const char *const texts[2] = {ops[i].inputs, ops[i].outputs};
        static const char *const names[2] = {"inputs", "outputs"};
        orr_attr attrs[2];
        size_t n = 0;
        for (int k = 0; k < 2; k++)
            if (texts[k])
                attrs[n++] = (orr_attr){.name = orr_str_of(names[k]),
                                        .kind = ORR_VALUE_STRING,
                                        .is_list = true,
                                        .items = words[k],
                                        .item_count = split(texts[k], words[k])};
        const uint64_t before = i - 1;
        const orr_draft d = {.id = i,
                             .name = orr_str_of("n"),
                             .type = ORR_NODE_COMP,
                             .duration_us = ops[i].us,
                             .data_deps = &before,
                             .data_count = i > 0,
                             .attrs = attrs,
                             .attr_count = n};
        CHECK_OK(orr_trace_append(t, &d, &err), &err);
    }
    CHECK_OK(orr_trace_seal(t, &err), &err);
    return t;
}

typedef struct job {
    orr_set *set;
    orr_sim *sim;
    orr_code code;
} job;

/* The nodes one after the other, the same on both ranks. */
static job run(const op *ops, size_t count, bool is_tracked)
{
    static const char network[] =
        "topology: [ Switch ]\nnpus_count: [ 2 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n";
    const char *system = is_tracked ? "{\"scheduling-policy\": \"LIFO\", \"track-local-mem\": 1}"
                                    : "{\"scheduling-policy\": \"LIFO\"}";
    job j;
    write_file("system.json", system, strlen(system));
    write_file("network.yml", network, strlen(network));
    CHECK_OK(orr_set_create(&j.set, &err), &err);
    CHECK_OK(orr_set_add(j.set, make_trace(ops, count), &err), &err);
    CHECK_OK(orr_set_add_rank(j.set, 0, 0, &err), &err);
    const orr_sim_options opt = {.set = j.set, .system = "system.json", .network = "network.yml"};
    CHECK_OK(orr_sim_create(&opt, &j.sim, &err), &err);
    j.code = orr_sim_run(j.sim, &err);
    return j;
}

static void finish(job *j)
{
    orr_sim_destroy(j->sim);
    orr_set_close(j->set);
}

static void check_peak(const op *ops, size_t count, uint64_t peak)
{
    job j = run(ops, count, true);
    CHECK_OK(j.code, &err);
    for (uint32_t r = 0; r < RANKS; r++)
        CHECK_EQ_U(orr_sim_rank(j.sim, r)->peak_memory, peak);
    finish(&j);
}

static void check_refused(const op *ops, size_t count, const char *words)
{
    job j = run(ops, count, true);
    CHECK_EQ(j.code, ORR_EINPUT);
    CHECK_SAYS(&err, words);
    finish(&j);
}

#define COUNT(ops) (sizeof(ops) / sizeof *(ops))

/* w lives 0 to 5000 ns, a 0 to 8000, b from 5000 on: 150, then 150 - 100 + 70 = 120, then 70. */
static const op two[] = {{5, "w 100", "a 50"}, {3, "a 50", "b 70"}};

TEST(test_local_memory__peak_is_the_most_alive_at_once)
{
    check_peak(two, COUNT(two), 150);
}

TEST(test_local_memory__a_tensor_that_is_not_read_stays)
{
    const op ops[] = {{1, "", "a 10"}, {1, "", "b 20"}, {1, "", "c 30"}};
    check_peak(ops, COUNT(ops), 60);
}

/* a dies at 2000 ns as b is born. */
TEST(test_local_memory__changes_of_one_tick_count_together)
{
    const op ops[] = {{1, "", "a 100"}, {1, "a 100", ""}, {1, "", "b 100"}};
    check_peak(ops, COUNT(ops), 100);
}

TEST(test_local_memory__the_last_read_counts)
{
    const op ops[] = {{1, "", "a 100"}, {1, "a 100", ""}, {1, "a 100", "b 1"}, {1, "", "c 50"}};
    check_peak(ops, COUNT(ops), 101); /* 100; 101 from 2000 ns; 51 from 3000 ns */
}

TEST(test_local_memory__empty_tensors_do_not_count)
{
    const op ops[] = {{1, "z 0", "z 0"}, {1, "", "z 0 a 7"}};
    check_peak(ops, COUNT(ops), 7);
}

TEST(test_local_memory__no_tensors_no_memory)
{
    const op ops[] = {{1, "", ""}};
    check_peak(ops, COUNT(ops), 0);
}

TEST(test_local_memory__the_first_size_of_a_name_counts)
{
    const op ops[] = {{1, "w 100", ""}, {1, "w 999", ""}};
    check_peak(ops, COUNT(ops), 100);
}

TEST(test_local_memory__refuses_what_it_cannot_follow)
{
    const op no_inputs[] = {{1, NULL, ""}};
    const op no_outputs[] = {{1, "", NULL}};
    const op odd[] = {{1, "a 1 b", ""}};
    const op words[] = {{1, "", "a big"}};
    const op negative[] = {{1, "", "a -1"}};
    const op twice[] = {{1, "", "a 1"}, {1, "", "a 1"}};
    const op late[] = {{1, "a 1", ""}, {1, "", "a 1"}};
    check_refused(no_inputs, 1, "lacks the attribute \"inputs\"");
    check_refused(no_outputs, 1, "lacks the attribute \"outputs\"");
    check_refused(odd, 1, "no size after the tensor \"b\"");
    check_refused(words, 1, "not a size in bytes: \"big\"");
    check_refused(negative, 1, "not a size in bytes: \"-1\"");
    check_refused(
        twice, 2,
        "(new trace): rank 0, node 1: local memory cannot be tracked: this node writes a tensor that already exists: \"a\"");
    check_refused(
        late, 2,
        "(new trace): rank 0, node 1: local memory cannot be tracked: this node writes a tensor that already exists: \"a\"");
}

/* ---- the file ---- */

static uint32_t count_events(orr_json_value events, const char *key, const char *text)
{
    orr_json_value event, v;
    orr_str s;
    uint32_t n = 0;
    for (orr_json_iter it = orr_json_iterate(events); orr_json_next_value(&it, &event);)
        if (orr_json_find(event, key, &v) && orr_json_get_str(v, &s, &err) == ORR_OK)
            n += s.len == strlen(text) && memcmp(s.ptr, text, s.len) == 0;
    return n;
}

/* Twenty tensors that live 2000 ns each, but the last, 1000: this is where the reference has
 * them. */
TEST(test_local_memory__equal_lives_are_in_the_order_of_the_reference)
{
    program_of(ORR_RULES_RUN, "astra-sim"); /* its file */
    static const char want[] =
        "t15 t11 t8 t12 t9 t3 t5 t6 t4 t2 t1 t10 t7 t13 t16 t0 t14 t17 t18 t19 ";
    enum { NODES = 20 };
    char texts[NODES + 1][24] = {""}, got[sizeof want + 8] = "";
    op ops[NODES];
    orr_json *json;
    orr_json_value root, events, event, v;
    orr_str s;
    size_t n = 0;
    for (int i = 0; i < NODES; i++) {
        snprintf(texts[i + 1], sizeof texts[0], "t%d 1024", i);
        ops[i] = (op){1, texts[i], texts[i + 1]};
    }
    job j = run(ops, NODES, true);
    CHECK_OK(j.code, &err);
    CHECK_OK(orr_sim_write_memory_trace(j.sim, 0, "equal.json", &err), &err);
    orr_buf text = read_file("equal.json");
    CHECK_OK(orr_json_open((orr_span){text.ptr, text.len}, "equal.json", &json, &err), &err);
    CHECK_OK(orr_json_only(json, &root, &err), &err);
    CHECK(orr_json_find(root, "traceEvents", &events));
    for (orr_json_iter it = orr_json_iterate(events); orr_json_next_value(&it, &event);)
        if (orr_json_find(event, "args", &v) && orr_json_find(v, "tensor_name", &v)) {
            CHECK_OK(orr_json_get_str(v, &s, &err), &err);
            n += (size_t)snprintf(got + n, sizeof got - n, "%.*s ", (int)s.len, s.ptr);
        }
    CHECK_TEXT(got, want);
    orr_json_close(json);
    orr_buf_fini(&text);
    finish(&j);
}

TEST(test_local_memory__the_file_has_every_read_write_and_life)
{
    program_of(ORR_RULES_RUN, "astra-sim"); /* its file */
    job j = run(two, COUNT(two), true);
    orr_json *json;
    orr_json_value root, events;
    CHECK_TEXT(orr_sim_memory_trace(j.sim), "local_mem_trace");
    CHECK_OK(orr_sim_write_memory_trace(j.sim, 1, "memory.json", &err), &err);
    orr_buf text = read_file("memory.json");
    CHECK_OK(orr_json_open((orr_span){text.ptr, text.len}, "memory.json", &json, &err), &err);
    CHECK_OK(orr_json_only(json, &root, &err), &err);
    CHECK(orr_json_find(root, "traceEvents", &events));
    CHECK_EQ_U(count_events(events, "cat", "tensorRead"), 4);     /* w and a, once each */
    CHECK_EQ_U(count_events(events, "cat", "tensorWrite"), 6);    /* a, b, and w by nobody */
    CHECK_EQ_U(count_events(events, "cat", "tensorLifetime"), 5); /* b does not end */
    CHECK_EQ_U(count_events(events, "cat", "GPU Memory"), 3);     /* 0, 5000 and 8000 ns */
    CHECK_EQ_U(count_events(events, "ph", "X"), 3);
    CHECK_EQ_U(orr_json_count(events), 4 + 6 + 5 + 3 + 3 + 3);
    orr_json_close(json);
    orr_buf_fini(&text);
    finish(&j);
}

TEST(test_local_memory__nothing_is_kept_unless_asked)
{
    job j = run(two, COUNT(two), false);
    CHECK_OK(j.code, &err);
    CHECK_EQ_U(orr_sim_rank(j.sim, 0)->peak_memory, 0);
    CHECK(orr_sim_memory_trace(j.sim) == NULL);
    CHECK_CODE(orr_sim_write_memory_trace(j.sim, 0, "none.json", &err), ORR_EUSAGE, &err);
    finish(&j);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_local_memory__peak_is_the_most_alive_at_once),
        RUN(test_local_memory__a_tensor_that_is_not_read_stays),
        RUN(test_local_memory__changes_of_one_tick_count_together),
        RUN(test_local_memory__the_last_read_counts),
        RUN(test_local_memory__empty_tensors_do_not_count),
        RUN(test_local_memory__no_tensors_no_memory),
        RUN(test_local_memory__the_first_size_of_a_name_counts),
        RUN(test_local_memory__refuses_what_it_cannot_follow),
        RUN(test_local_memory__equal_lives_are_in_the_order_of_the_reference),
        RUN(test_local_memory__the_file_has_every_read_write_and_life),
        RUN(test_local_memory__nothing_is_kept_unless_asked),
    };
    return RUN_ALL(tests);
}
