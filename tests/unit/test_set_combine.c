/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs on one machine as traces: peers, groups, roots and holes go with the placement. */
#include "et_make.h"
#include "files.h"

#include <orrery/lab/goal.h>

#include "base/text/number.h"
#include "trace/set_impl.h"

enum { GROUP, PEER, SLOTS };

static orr_attr attr_int(const char *name, orr_value_kind kind, int64_t v)
{
    return (orr_attr){.name = orr_str_of(name), .kind = kind, .value.i = v};
}

static orr_attr attr_text(const char *name, const char *v)
{
    return (orr_attr){.name = orr_str_of(name), .kind = ORR_VALUE_STRING, .value.s = orr_str_of(v)};
}

static void append(orr_trace *t, uint32_t type, const orr_attr *attrs, size_t count)
{
    const uint64_t id = orr_trace_columns(t)->count + 1;
    const orr_draft d = {
        .id = id, .name = orr_str_of("node"), .type = type, .attrs = attrs, .attr_count = count};
    CHECK_OK(orr_trace_append(t, &d, &err), &err);
}

/* A class of `ranks` ranks, in pairs: a collective of the pair, a message to the other one, a
 * broadcast from rank 1 of all, which name no group; two groups of two for every four ranks. */
static orr_set *make_job(uint32_t ranks)
{
    const orr_attr pair[] = {attr_int("comm_size", ORR_VALUE_INT64, 4096),
                             attr_int("comm_type", ORR_VALUE_INT64, ORR_COLL_ALL_REDUCE),
                             attr_text("pg_name", "7")};
    const orr_attr message[] = {attr_int("comm_size", ORR_VALUE_INT64, 64),
                                attr_int("comm_dst", ORR_VALUE_INT32, 0),
                                attr_int("comm_tag", ORR_VALUE_INT32, 5)};
    const orr_attr all[] = {attr_int("comm_size", ORR_VALUE_INT64, 8),
                            attr_int("comm_src", ORR_VALUE_INT32, 1),
                            attr_int("comm_type", ORR_VALUE_INT64, ORR_COLL_BROADCAST)};
    const orr_hole holes[] = {{0, ORR_HOLE_PG_NAME, GROUP}, {1, ORR_HOLE_COMM_DST, PEER}};
    orr_trace *t;
    orr_set *s;
    uint32_t k;
    CHECK_OK(orr_trace_create(&(orr_meta){.version = orr_str_of("1.0.0")}, &t, &err), &err);
    append(t, ORR_NODE_COMM_COLL, pair, 3);
    append(t, ORR_NODE_COMM_SEND, message, 3);
    append(t, ORR_NODE_COMM_COLL, all, 3);
    CHECK_OK(orr_trace_seal(t, &err), &err);
    CHECK_OK(orr_set_create(&s, &err), &err);
    CHECK_OK(orr_set_add_class(s, t, holes, 2, SLOTS, &k, &err), &err);
    for (uint32_t r = 0; r < ranks; r++)
        CHECK_OK(orr_set_add_rank_values(s, k, 100 * r, (int64_t[]){7 + r / 2, r ^ 1}, &err), &err);
    for (uint32_t g = 0; g < ranks / 2; g++)
        CHECK_OK(orr_set_add_group(s, 7 + g, (uint32_t[]){2 * g + 1, 2 * g}, 2, &err), &err);
    return s;
}

static orr_group group_named(const orr_set *s, uint64_t id)
{
    for (uint32_t i = 0; i < orr_set_group_count(s); i++)
        if (orr_set_group(s, i).id == id)
            return orr_set_group(s, i);
    CHECK(!"there is no such group");
    return (orr_group){0};
}

static uint64_t group_of_node(const orr_trace *t, uint32_t node)
{
    int64_t id;
    CHECK(orr_text_i64(orr_trace_text(t, orr_trace_columns(t)->pg_name[node]), &id));
    return (uint64_t)id;
}

/* The rank of a job that is on this host does what it does alone, with its own neighbours. */
static void check_host(
    const orr_set *s, uint32_t host, const uint32_t *host_of, uint32_t own, uint32_t ranks)
{
    const orr_trace *t;
    orr_trace *owned;
    CHECK_EQ(orr_set_id_shift(s, host), 100 * own);
    CHECK_OK(orr_set_rank_trace(s, host, &t, &owned, &err), &err);
    const orr_columns *c = orr_trace_columns(t);
    CHECK_EQ(c->count, 3);
    const orr_group pair = group_named(s, group_of_node(t, 0));
    CHECK_EQ(pair.count, 2);
    CHECK_EQ(pair.ranks[0], host_of[own | 1]);
    CHECK_EQ(pair.ranks[1], host_of[own & ~1u]);
    CHECK_EQ(c->comm_dst[1], host_of[own ^ 1]);
    CHECK_EQ(c->comm_tag[1], 5);
    CHECK_EQ(c->comm_src[2], host_of[1]);
    const orr_group all = group_named(s, group_of_node(t, 2));
    CHECK_EQ(all.count, ranks);
    for (uint32_t i = 0; i < ranks; i++)
        CHECK_EQ(all.ranks[i], host_of[i]);
    orr_trace_destroy(owned);
}

static void check_jobs(const orr_goal_machine *m)
{
    orr_set *a = make_job(4), *b = make_job(2), *s;
    const orr_set *jobs[] = {a, b};
    CHECK(orr_set_combine_obstacle(a) == NULL);
    CHECK_OK(orr_set_combine(jobs, 2, m, &s, &err), &err);
    orr_set_close(a); /* the machine's set stands alone */
    orr_set_close(b);
    CHECK_EQ(orr_set_rank_count(s), m->hosts);
    CHECK_EQ(s->job_count, 2);
    bool is_used[16] = {false};
    for (uint32_t i = 0; i < 6; i++) {
        const uint32_t job = i >= 4, own = i - 4 * job, host = s->job_hosts[i];
        CHECK(host < m->hosts && !is_used[host]);
        is_used[host] = true;
        CHECK_EQ(orr__set_job_ranks(s, host), job ? 2 : 4);
        check_host(s, host, s->job_hosts + 4 * job, own, job ? 2 : 4);
    }
    for (uint32_t h = 0; h < m->hosts; h++)
        if (!is_used[h])
            CHECK_EQ(orr_trace_columns(orr_set_trace(s, orr_set_class_of(s, h)))->type[0],
                     ORR_NODE_METADATA);
    orr_set_close(s);
}

TEST(test_set_combine__jobs_keep_their_neighbours)
{
    for (int p = ORR_GOAL_PACKED; p <= ORR_GOAL_RANDOM; p++)
        for (uint32_t hosts = 6; hosts < 10; hosts++)
            check_jobs(&(orr_goal_machine){
                .hosts = hosts, .placement = (orr_goal_placement)p, .seed = hosts});
}

/* One body instead of ranks that are alike: a class stays one. */
TEST(test_set_combine__classes_stay_classes)
{
    orr_set *a = make_job(4), *s;
    const orr_set *jobs[] = {a, a, a};
    CHECK_OK(orr_set_combine(jobs, 3, &(orr_goal_machine){.hosts = 16}, &s, &err), &err);
    CHECK_EQ(orr_set_class_count(s), 4); /* and one of idle hosts */
    orr_set_close(s);
    orr_set_close(a);
}

static orr_set *one_node(const orr_attr *attrs, size_t count)
{
    orr_trace *t;
    orr_set *s;
    CHECK_OK(orr_trace_create(NULL, &t, &err), &err);
    append(t, ORR_NODE_COMM_COLL, attrs, count);
    CHECK_OK(orr_trace_seal(t, &err), &err);
    CHECK_OK(orr_set_create(&s, &err), &err);
    CHECK_OK(orr_set_add(s, t, &err), &err);
    return s;
}

static void check_refused(orr_set *s, const char *obstacle, const char *message)
{
    const orr_set *jobs[] = {s};
    orr_set *out;
    const char *why = orr_set_combine_obstacle(s);
    if (obstacle)
        CHECK(why && strcmp(why, obstacle) == 0);
    else
        CHECK(why == NULL);
    CHECK_CODE(orr_set_combine(jobs, 1, &(orr_goal_machine){.hosts = 2}, &out, &err), ORR_EINPUT,
               &err);
    CHECK(strstr(err.message, message) != NULL);
    CHECK(out == NULL);
    orr_set_close(s);
}

TEST(test_set_combine__what_cannot_be_moved_is_refused)
{
    const orr_value some[] = {{.u = 1}, {.u = 0}};
    const orr_attr dims[] = {{.name = orr_str_of("involved_dim"),
                              .kind = ORR_VALUE_BOOL,
                              .is_list = true,
                              .items = some,
                              .item_count = 2}};
    const orr_attr group[] = {attr_text("pg_name", "3")}, word[] = {attr_text("pg_name", "tp")};
    const orr_attr root[] = {attr_int("comm_src", ORR_VALUE_INT32, 1)};
    check_refused(one_node(dims, 1), "its collectives go along dimensions of the network",
                  "along dimensions");
    check_refused(one_node(group, 1), "it names groups that no group file defines", "groups");
    check_refused(one_node(word, 1), "it names groups that no group file defines", "groups");
    check_refused(one_node(root, 1), NULL, "job 1 has no rank 1");
    orr_set *s = make_job(2);
    CHECK_OK(orr_set_add_group(s, 90, (uint32_t[]){2}, 1, &err), &err);
    check_refused(s, NULL, "group 90 has rank 2");
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_set_combine__jobs_keep_their_neighbours),
        RUN(test_set_combine__classes_stay_classes),
        RUN(test_set_combine__what_cannot_be_moved_is_refused),
    };
    return RUN_ALL(tests);
}
