/* SPDX-License-Identifier: Apache-2.0 */
/* Networks against the public vtable, in whole runs. */
#include "files.h"
#include "models/network/net_time.h"

#include "run/sim.h"
#include <orrery/lab/gen.h>

static orr_set *set_of(const char *pattern, uint32_t ranks)
{
    const orr_pattern *p = orr_pattern_find(pattern);
    orr_gen_options opt = p->defaults;
    orr_set *s;
    orr_error err;
    opt.ranks = ranks;
    opt.comm_size = 1000;
    CHECK_OK(orr_pattern_set(p, &opt, &s, &err), &err);
    return s;
}

static void put(const char *path, const char *text)
{
    write_file(path, text, strlen(text));
}

/* A ring of sends on 4 ranks.  The set is the caller's. */
static orr_code run(
    const orr_net_ops *custom, const char *network, orr_set **set, orr_sim **out, orr_error *err)
{
    put("sys.json", "{\"scheduling-policy\": \"LIFO\"}");
    put("net.yml", network);
    *set = set_of("send_recv_ring", 4);
    const orr_sim_options opt = {.set = *set,
                                 .system = "sys.json",
                                 .network = "net.yml",
                                 .fidelity = custom ? NULL : "graph",
                                 .custom_network = custom};
    const orr_code code = orr_sim_create(&opt, out, err);
    return code ? code : orr_sim_run(*out, err);
}

static const char ring[] = "topology: [Ring]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n";

TEST(test_network_setup__models_are_listed_by_name)
{
    static const char *const names[] = {"fluid", "unaware", "aware", "graph", "packet"};
    for (size_t i = 0; i < 5; i++) {
        CHECK_TEXT(orr_net_at(i)->name, names[i]);
        CHECK(orr_net_find(names[i]) == orr_net_at(i));
        CHECK(orr_net_at(i)->help[0]);
    }
    CHECK(orr_net_at(5) == NULL);
    CHECK(orr_net_find("carrier pigeon") == NULL);
}

/* ---- a model that delivers in two steps: 100 ns, then size ns ---- */

typedef struct step {
    orr_sim *sim;
    orr_message m;
} step;

static step steps[16];
static size_t step_count;

static void arrive(void *context, uint64_t argument)
{
    const step *s = context;
    CHECK_EQ_U(argument, 7);
    orr_net_deliver(s->sim, s->m.token);
}

static void go_on(void *context, uint64_t argument)
{
    const step *s = context;
    CHECK_EQ_U(orr__net_now(s->sim), 100);
    orr__net_after(s->sim, s->m.size, arrive, context, argument + 1);
}

static orr_code send_in_steps(void *net, orr_sim *sim, const orr_message *m, orr_error *err)
{
    (void)net;
    (void)err;
    steps[step_count] = (step){sim, *m};
    orr__net_after(sim, 100, go_on, &steps[step_count++], 6);
    return ORR_OK;
}

TEST(test_network_setup__custom_network_schedules_through_the_simulation)
{
    static const orr_net_ops ops = {.name = "steps", .help = "", .send = send_in_steps};
    orr_set *set;
    orr_sim *s;
    orr_error err;
    step_count = 0;
    CHECK_OK(run(&ops, ring, &set, &s, &err), &err);
    CHECK_EQ_U(step_count, 4);
    for (uint32_t r = 0; r < 4; r++)
        CHECK_EQ_U(orr_sim_rank(s, r)->finished_at, 1100);
    orr_sim_destroy(s);
    orr_set_close(set);
}

/* Only the number of ranks is taken from the file. */
TEST(test_network_setup__custom_network_may_have_any_file)
{
    static const orr_net_ops ops = {.name = "steps", .help = "", .send = send_in_steps};
    orr_set *set;
    orr_sim *s;
    orr_error err;
    step_count = 0;
    CHECK_OK(run(&ops, "ranks: 4\nlinks: []\n", &set, &s, &err), &err);
    CHECK_EQ_U(orr_sim_rank(s, 3)->finished_at, 1100);
    orr_sim_destroy(s);
    orr_set_close(set);
}

/* ---- models that fail ---- */

static void give_up(void *context, uint64_t argument)
{
    orr_error err;
    (void)argument;
    orr_fail(&err, ORR_EINPUT, NULL, "the cable is broken");
    orr_net_fail(context, &err);
}

static orr_code send_and_give_up(void *net, orr_sim *sim, const orr_message *m, orr_error *err)
{
    (void)net;
    (void)m;
    (void)err;
    orr__net_after(sim, 5, give_up, sim, 0);
    return ORR_OK;
}

static orr_code refuse_to_send(void *net, orr_sim *sim, const orr_message *m, orr_error *err)
{
    (void)net;
    (void)sim;
    return orr_fail(err, ORR_EINPUT, NULL, "nothing for rank %u", m->dst);
}

static orr_code refuse_to_exist(const orr_net_config *cfg, void **out, orr_error *err)
{
    *out = NULL;
    return orr_fail(err, ORR_EINPUT, &cfg->where, "%u dimensions are too few", cfg->dims);
}

static void check_failure(const orr_net_ops *ops, const char *words)
{
    orr_set *set;
    orr_sim *s = NULL;
    orr_error err;
    CHECK_CODE(run(ops, ring, &set, &s, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, words);
    orr_sim_destroy(s);
    orr_set_close(set);
}

TEST(test_network_setup__failure_of_a_network_ends_the_run)
{
    const orr_net_ops later = {.name = "later", .help = "", .send = send_and_give_up};
    const orr_net_ops at_once = {.name = "at once", .help = "", .send = refuse_to_send};
    const orr_net_ops never = {
        .name = "never", .help = "", .create = refuse_to_exist, .send = refuse_to_send};
    check_failure(&later, "the cable is broken");
    check_failure(&at_once, "nothing for rank 1");
    check_failure(&never, "net.yml: 1 dimensions are too few");
}

/* ---- links ---- */

static void add_bytes(void *context, const orr_net_link *link)
{
    uint64_t *sum = context;
    CHECK_EQ_U(link->messages, 1);
    *sum += link->bytes;
}

TEST(test_network_setup__links_are_visited)
{
    orr_set *set;
    orr_sim *s;
    orr_error err;
    uint64_t sum = 0;
    CHECK_OK(run(NULL, "ranks: 4\nswitches: [s]\nlinks: [{from: 0-3, to: s, bandwidth: 1GB/s}]\n",
                 &set, &s, &err),
             &err);
    orr_sim_visit_links(s, add_bytes, &sum);
    CHECK_EQ_U(sum, 4 * 2 * 1000); /* four messages, two links each */
    CHECK_EQ_U(orr_sim_rank(s, 0)->finished_at, 2000);
    orr_sim_destroy(s);
    orr_set_close(set);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_network_setup__models_are_listed_by_name),
        RUN(test_network_setup__custom_network_schedules_through_the_simulation),
        RUN(test_network_setup__custom_network_may_have_any_file),
        RUN(test_network_setup__failure_of_a_network_ends_the_run),
        RUN(test_network_setup__links_are_visited),
    };
    return RUN_ALL(tests);
}
