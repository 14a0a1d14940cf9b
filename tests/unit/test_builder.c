/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/text/text.h"
#include "trace/builder.h"

TEST(test_builder__attributes_stand_in_the_order_in_which_they_are_put)
{
    orr_error err;
    orr__builder b;
    orr_trace *t;
    orr__build_open(&b, &err);
    orr__put_text(&b, ORR__ATTR_GENERATOR, orr_str_of("test"));
    orr__build_trace(&b, "1.0.0");
    orr__build_node(&b, ORR_NODE_COMM_COLL, (orr_str){NULL, 0});
    orr__build_name(&b, orr_str_of("layer."));
    orr__build_name(&b, orr_str_of("sum"));
    orr__put_collective(&b, ORR_COLL_ALL_REDUCE, 1024);
    orr__put_group(&b, 7);
    orr__put_on_device(&b);
    CHECK_EQ_U(orr__build_add(&b), 0);
    CHECK_OK(orr__build_seal(&b, &t), &err);
    orr_node n;
    orr_attr a;
    orr_trace_node(t, 0, &n);
    CHECK(orr_str_is(n.name, "layer.sum"));
    static const char *const names[] = {"comm_type", "comm_size", "pg_name", "is_cpu_op"};
    orr_attrs it = orr_node_attrs(&n);
    for (size_t i = 0; i < 4; i++) {
        CHECK(orr_attrs_next(&it, &a));
        CHECK(orr_str_is(a.name, names[i]));
    }
    CHECK(!orr_attrs_next(&it, &a));
    CHECK(orr__node_get(&n, ORR__ATTR_PG_NAME, &a));
    CHECK(orr_str_is(a.value.s, "7"));
    orr_trace_destroy(t);
}

TEST(test_builder__a_dependency_is_added_once)
{
    orr_error err;
    orr__builder b;
    orr_trace *t;
    orr__build_open(&b, &err);
    b.next_id = 1;
    orr__build_trace(&b, "");
    for (int i = 0; i < 2; i++) {
        orr__build_node(&b, ORR_NODE_COMP, orr_str_of("c"));
        CHECK_EQ_U(orr__build_in_stream(&b, 3), i == 0 ? 0 : 1);
        orr__build_add(&b);
    }
    orr__build_node(&b, ORR_NODE_COMP, orr_str_of("d"));
    orr__build_after(&b, 2);
    orr__build_after(&b, 2);
    orr__build_after_ctrl(&b, 2);
    orr__build_after_ctrl(&b, 1);
    orr__build_after_ctrl(&b, orr__build_last_on(&b, 3));
    CHECK_EQ_U(orr__build_last_on(&b, 9), 0);
    orr__build_add(&b);
    CHECK_OK(orr__build_seal(&b, &t), &err);
    const orr_columns *c = orr_trace_columns(t);
    CHECK_EQ_U(c->data_first[3] - c->data_first[2], 1);
    CHECK_EQ_U(c->ctrl_first[3] - c->ctrl_first[2], 1);
    CHECK_EQ_U(c->ctrl_dep[c->ctrl_first[2]], 0);
    orr_trace_destroy(t);
}

TEST(test_builder__what_rounding_cuts_off_is_added_to_the_lane_s_next_node)
{
    orr_error err;
    orr__builder b;
    orr__build_open(&b, &err);
    orr__build_trace(&b, NULL);
    static const struct {
        uint64_t lane, ns, us;
    } rows[] = {{0, 1600, 1}, {9, 400, 0}, {0, 500, 1}, {9, 599, 0}, {9, 1, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        orr__build_node(&b, ORR_NODE_COMP, orr_str_of("c"));
        orr__build_duration_ns(&b, rows[i].lane, rows[i].ns);
        CHECK_EQ_U(b.node.duration_us, rows[i].us);
    }
    orr__build_duration_ps(&b, 1.5e6);
    CHECK_EQ_U(b.node.duration_us, 1);
    orr__build_duration_ps(&b, 1.5e6);
    CHECK_EQ_U(b.node.duration_us, 2);
    orr__build_fini(&b);
}

TEST(test_builder__the_first_failure_sticks)
{
    orr_error err;
    orr__builder b;
    orr_trace *t;
    orr__build_open(&b, &err);
    orr__build_trace(&b, NULL);
    orr__build_node(&b, 99, orr_str_of("no such type"));
    orr__build_add(&b);
    CHECK_EQ_U(b.code, ORR_EINPUT);
    orr__build_node(&b, ORR_NODE_COMP, orr_str_of("fine"));
    orr__build_add(&b);
    CHECK_EQ_U(orr__build_seal(&b, &t), ORR_EINPUT);
    CHECK(!t);
}

TEST(test_builder__a_class_with_holes_gives_every_rank_its_own_values)
{
    orr_error err;
    orr__builder b;
    orr_set *s;
    uint32_t k;
    int64_t v;
    CHECK_OK(orr_set_create(&s, &err), &err);
    orr__build_open(&b, &err);
    orr__build_trace(&b, "1.0.0");
    orr__build_node(&b, ORR_NODE_COMM_COLL, orr_str_of("sum"));
    orr__put_collective(&b, ORR_COLL_ALL_REDUCE, 8);
    orr__put_group_hole(&b, 0);
    orr__build_add(&b);
    orr__build_node(&b, ORR_NODE_COMM_SEND, orr_str_of("send"));
    orr__put_peer_hole(&b, ORR_VALUE_INT32, true, 1);
    orr__build_add(&b);
    CHECK_OK(orr__build_class(&b, s, 2, &k), &err);
    CHECK_OK(orr_set_add_rank_values(s, k, 0, (int64_t[]){4, 5}, &err), &err);
    CHECK(orr_set_hole(s, 0, ORR_HOLE_PG_NAME, 0, &v));
    CHECK_EQ_U(v, 4);
    CHECK(orr_set_hole(s, 0, ORR_HOLE_COMM_DST, 1, &v));
    CHECK_EQ_U(v, 5);
    orr_set_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(test_builder__attributes_stand_in_the_order_in_which_they_are_put),
        RUN(test_builder__a_dependency_is_added_once),
        RUN(test_builder__what_rounding_cuts_off_is_added_to_the_lane_s_next_node),
        RUN(test_builder__the_first_failure_sticks),
        RUN(test_builder__a_class_with_holes_gives_every_rank_its_own_values),
    };
    return RUN_ALL(tests);
}
