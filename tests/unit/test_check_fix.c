/* SPDX-License-Identifier: Apache-2.0 */
/* test_check_fix.c - what is repaired, how it is told, and that all else stays byte for byte. */
#include "check.h"

#include "et_make.h"

#include "trace/trace_impl.h"
#include <orrery/check.h>
#include <orrery/set.h>

/* ---- making files ---- */

/* A node with data and control dependencies; counts of 0 are absent. */
static void put_full_node(orr_buf *b,
                          uint64_t id,
                          const uint64_t *data,
                          size_t data_count,
                          const uint64_t *ctrl,
                          size_t ctrl_count)
{
    const size_t begin = orr_put_begin(b);
    orr_put_uint(b, 1, id);
    orr_put_bytes(b, 2, "n", 1);
    orr_put_uint(b, 3, ORR_NODE_COMP);
    const uint64_t *const lists[] = {ctrl, data};
    const size_t counts[] = {ctrl_count, data_count};
    for (uint32_t k = 0; k < 2; k++) {
        if (!counts[k])
            continue;
        orr_put_tag(b, 4 + k, ORR_WIRE_LEN);
        const size_t list = orr_put_begin(b);
        for (size_t i = 0; i < counts[k]; i++)
            orr_put_varint(b, lists[k][i]);
        orr_put_end(b, list);
    }
    orr_put_end(b, begin);
}

static void save(const char *path, orr_buf *b)
{
    write_file(path, b->ptr, b->len);
    orr_buf_fini(b);
}

static orr_check_report *fix(const char *path, const char *to)
{
    orr_check_report *changes;
    CHECK_OK(orr_check_fix(path, to, NULL, NULL, &changes, &err), &err);
    return changes;
}

/* The path is a set without errors and warnings. */
static void check_clean(const char *path)
{
    orr_set *s;
    orr_check_report *r;
    CHECK_OK(orr_set_open(path, NULL, &s, &err), &err);
    CHECK_OK(orr_check_set(s, NULL, &r, &err), &err);
    if (r->finding_count)
        check_fail(__FILE__, __LINE__, "%s: %s", path, r->findings[0].text);
    orr_check_report_destroy(r);
    orr_set_close(s);
}

/* This was changed, so often, and nothing else. */
static void check_changes(orr_check_report *r,
                          orr_check_kind kind,
                          uint64_t count,
                          const char *says)
{
    for (int i = 0; i < ORR_CHECK_KIND_COUNT; i++)
        CHECK_EQ_U(r->count[i], i == (int)kind ? count : 0);
    if (count && !strstr(r->findings[0].text, says))
        check_fail(__FILE__, __LINE__, "\"%s\" does not contain \"%s\"", r->findings[0].text, says);
    orr_check_report_destroy(r);
}

/* ---- dependencies and ids ---- */

TEST(test_check_fix__sound_file_stays_as_it_is)
{
    orr_buf b = {0};
    /* Metadata with a field nobody knows, and a node with one: field 15, varint. */
    PUT_RECORD(&b, "\x0a\x05"
                   "1.0.0"
                   "\x78\x01");
    PUT_NODE(&b, 1);
    PUT_RECORD(&b, "\x08\x02\x12\x01"
                   "n"
                   "\x18\x04\x2a\x01\x01\x78\x05");
    write_file("in.et", b.ptr, b.len);
    check_changes(fix("in.et", "out.et"), ORR_CHECK_CYCLE, 0, "");
    check_file("out.et", b.ptr, b.len);
    orr_buf_fini(&b);
}

TEST(test_check_fix__bad_dependencies_are_dropped)
{
    orr_buf b = {0};
    put_meta(&b);
    PUT_NODE(&b, 1);
    PUT_NODE(&b, 2, 1, 99);
    save("missing.et", &b);
    check_changes(fix("missing.et", "out.et"), ORR_CHECK_MISSING_PARENT, 1,
                  "dropped the data dependency on node 99");
    put_meta(&b);
    PUT_NODE(&b, 1);
    PUT_NODE(&b, 2, 1);
    check_file("out.et", b.ptr, b.len);
    orr_buf_fini(&b);

    put_meta(&b);
    PUT_NODE(&b, 1);
    PUT_NODE(&b, 2, 1, 2);
    save("self.et", &b);
    check_changes(fix("self.et", "out2.et"), ORR_CHECK_SELF_DEPENDENCY, 1, "itself");
    check_clean("out2.et");

    put_meta(&b);
    PUT_NODE(&b, 1);
    PUT_NODE(&b, 2, 1, 1, 1);
    save("twice.et", &b);
    check_changes(fix("twice.et", "out3.et"), ORR_CHECK_DUPLICATE_DEPENDENCY, 2, "listed before");
    check_clean("out3.et");
}

TEST(test_check_fix__only_control_dependencies_are_given_up_for_a_cycle)
{
    orr_buf b = {0};
    const uint64_t one = 1, two = 2, three = 3;
    put_meta(&b);
    put_full_node(&b, 1, NULL, 0, &three,
                  1); /* 1 waits for 3 by control, 3 for 2 and 2 for 1 by data */
    put_full_node(&b, 2, &one, 1, NULL, 0);
    put_full_node(&b, 3, &two, 1, &one, 1); /* this control dependency is on no cycle and stays */
    save("ctrl.et", &b);
    check_changes(fix("ctrl.et", "out.et"), ORR_CHECK_CYCLE, 1,
                  "dropped the control dependency on node 3, which closes a cycle");
    put_meta(&b);
    put_full_node(&b, 1, NULL, 0, NULL, 0);
    put_full_node(&b, 2, &one, 1, NULL, 0);
    put_full_node(&b, 3, &two, 1, &one, 1);
    check_file("out.et", b.ptr, b.len);
    orr_buf_fini(&b);

    put_meta(&b);
    PUT_NODE(&b, 1, 2);
    PUT_NODE(&b, 2, 1);
    write_file("data.et", b.ptr, b.len);
    check_changes(fix("data.et", "out2.et"), ORR_CHECK_CYCLE, 0, "");
    check_file("out2.et", b.ptr, b.len);
    orr_buf_fini(&b);
}

/* Chains of control dependencies both ways: whatever the shape, the result runs, and data stays. */
TEST(test_check_fix__random_control_cycles_are_broken)
{
    for (uint64_t seed = 1; seed < 30; seed++) {
        orr_buf b = {0};
        uint64_t random = seed, data_edges = 0;
        put_meta(&b);
        for (uint64_t i = 1; i <= 200; i++) {
            const uint64_t data = i > 1 ? 1 + next_random(&random) % (i - 1) : 0;
            uint64_t ctrl = 1 + next_random(&random) % 200;
            ctrl = ctrl == i ? i % 200 + 1 : ctrl;
            data_edges += data != 0;
            put_full_node(&b, i, &data, data != 0, &ctrl, 1);
        }
        save("in.et", &b);
        orr_check_report *r = fix("in.et", "out.et");
        CHECK(r->count[ORR_CHECK_CYCLE] > 0 && r->count[ORR_CHECK_CYCLE] < 200);
        orr_check_report_destroy(r);
        check_clean("out.et");
        orr_trace *t;
        CHECK_OK(orr_trace_read("out.et", NULL, &t, &err), &err);
        CHECK_EQ_U(orr_trace_columns(t)->data_first[200], data_edges);
        orr_trace_destroy(t);
    }
}

TEST(test_check_fix__all_but_the_last_of_an_id_get_a_fresh_one)
{
    orr_buf b = {0};
    put_meta(&b);
    PUT_NODE(&b, 5);
    PUT_NODE(&b, 7, 5);
    PUT_NODE(&b, 5);
    PUT_NODE(&b, 5);
    save("in.et", &b);
    check_changes(fix("in.et", "out.et"), ORR_CHECK_DUPLICATE_ID, 2, "gave it the new id 8");
    put_meta(&b);
    PUT_NODE(&b, 8);
    PUT_NODE(&b, 7, 5); /* still the last one */
    PUT_NODE(&b, 9);
    PUT_NODE(&b, 5);
    check_file("out.et", b.ptr, b.len);
    orr_buf_fini(&b);
    /* Past the highest id there is nothing left: fresh ones start at 0. */
    put_meta(&b);
    PUT_NODE(&b, UINT64_MAX);
    PUT_NODE(&b, 0);
    PUT_NODE(&b, UINT64_MAX);
    save("high.et", &b);
    check_changes(fix("high.et", "out2.et"), ORR_CHECK_DUPLICATE_ID, 1, "gave it the new id 1:");
    check_clean("out2.et");
}

/* ---- attributes ---- */

static void save_collective(
    const char *path, orr_attr type, orr_attr size, orr_attr group, orr_attr stream)
{
    orr_trace *t = new_trace();
    const orr_attr attrs[] = {type, size, group, stream};
    const orr_draft d = {.id = 1,
                         .name = orr_str_of("c"),
                         .type = ORR_NODE_COMM_COLL,
                         .attrs = attrs,
                         .attr_count = 4};
    CHECK_OK(orr_trace_append(t, &d, &err), &err);
    seal(t);
    CHECK_OK(orr_trace_write(t, path, NULL, &err), &err);
    orr_trace_destroy(t);
}

static orr_attr text(const char *name, const char *v)
{
    return (orr_attr){.name = orr_str_of(name), .kind = ORR_VALUE_STRING, .value.s = orr_str_of(v)};
}

static orr_attr real(const char *name, double v)
{
    return (orr_attr){.name = orr_str_of(name), .kind = ORR_VALUE_DOUBLE, .value.d = v};
}

TEST(test_check_fix__kinds_are_converted_where_nothing_is_lost)
{
    orr_trace *t;
    save_collective(
        "in.et", text("comm_type", "ALL_GATHER"), real("comm_size", 4096.0),
        (orr_attr){.name = orr_str_of("pg_name"), .kind = ORR_VALUE_INT32, .value.i = 3},
        text("stream", "-7"));
    orr_check_report *r = fix("in.et", "out.et");
    CHECK_EQ_U(r->count[ORR_CHECK_ATTRIBUTE_KIND], 3);
    CHECK_EQ_U(r->count[ORR_CHECK_ODD_ATTRIBUTE], 1);
    CHECK_TEXT(r->findings[0].text, "made comm_type, which was string_val, int64_val");
    orr_check_report_destroy(r);
    check_clean("out.et");
    CHECK_OK(orr_trace_read("out.et", NULL, &t, &err), &err);
    CHECK_EQ(orr_trace_columns(t)->comm_type[0], ORR_COLL_ALL_GATHER);
    CHECK_EQ(orr_trace_columns(t)->comm_size[0], 4096);
    CHECK_EQ(orr_trace_columns(t)->stream[0], -7);
    check_str(orr_trace_text(t, orr_trace_columns(t)->pg_name[0]), "3");
    orr_trace_destroy(t);
}

TEST(test_check_fix__kinds_that_would_lose_something_stay)
{
    save_collective("in.et", text("comm_type", "ALL_GATHER2"), real("comm_size", 4096.5),
                    real("pg_name", 3), real("stream", 1e300));
    check_changes(fix("in.et", "out.et"), ORR_CHECK_CYCLE, 0, "");
    orr_buf b = read_file("in.et");
    check_file("out.et", b.ptr, b.len);
    orr_buf_fini(&b);
}

/* ---- damage ---- */

TEST(test_check_fix__records_before_the_damage_are_kept)
{
    orr_buf b = {0};
    put_meta(&b); /* bytes 0 to 7 */
    PUT_NODE(&b, 1);
    PUT_NODE(&b, 2, 1); /* bytes 8 to 15 and 16 to 26 */
    const size_t sound = b.len;
    PUT_NODE(&b, 3, 2);
    write_file("cut.et", b.ptr, b.len - 3);
    orr_check_report *r = fix("cut.et", "out.et");
    CHECK_EQ_U(r->findings[0].where.byte, sound);
    /* The last record has 11 bytes, of which 8 are there. */
    check_changes(r, ORR_CHECK_DAMAGED, 1,
                  "dropped everything from here on (8 bytes); 2 nodes kept");
    check_file("out.et", b.ptr, sound);
    orr_buf_fini(&b);
}

TEST(test_check_fix__a_bad_record_between_good_ones_is_left_out)
{
    orr_buf b = {0}, want = {0};
    put_meta(&b);
    PUT_NODE(&b, 1);
    PUT_RECORD(&b, ""); /* a record without anything */
    PUT_NODE(&b, 2, 1);
    PUT_RECORD(&b, "\x08\x03\x12\x01\xff\x18\x04"); /* a name that is not UTF-8 */
    PUT_NODE(&b, 4, 2);
    save("in.et", &b);
    check_changes(fix("in.et", "out.et"), ORR_CHECK_DAMAGED, 1,
                  "dropped 2 records (9 bytes) that cannot be read; 3 nodes kept");
    put_meta(&want);
    PUT_NODE(&want, 1);
    PUT_NODE(&want, 2, 1);
    PUT_NODE(&want, 4, 2);
    check_file("out.et", want.ptr, want.len);
    orr_buf_fini(&want);
}

TEST(test_check_fix__records_are_taken_up_again_only_when_they_lead_to_the_end)
{
    orr_buf b = {0};
    put_meta(&b);
    PUT_NODE(&b, 1);
    const size_t sound = b.len;
    orr_buf_text(&b, "\x05"); /* a length that belongs to nothing */
    for (uint64_t i = 2; i < 40; i++)
        PUT_NODE(&b, i, i - 1);
    write_file("in.et", b.ptr, b.len - 1);
    orr_check_report_destroy(fix("in.et", "out.et"));
    check_file("out.et", b.ptr, sound);
    /* With the last byte the lengths come into step again, by chance at node 15, of the real
     * nodes. */
    write_file("in.et", b.ptr, b.len);
    orr_check_report *r = fix("in.et", "out.et");
    CHECK_EQ_U(r->count[ORR_CHECK_DAMAGED], 1);
    CHECK_EQ_U(r->count[ORR_CHECK_MISSING_PARENT], 1);
    orr_check_report_destroy(r);
    check_clean("out.et");
    orr_buf_fini(&b);
}

TEST(test_check_fix__packed_data_is_used_as_far_as_it_goes)
{
    orr_buf b = {0}, packed = {0};
    uint64_t random = 1;
    put_meta(&b);
    for (uint64_t i = 1; i < 20000; i++)
        PUT_NODE(&b, i, 1 + next_random(&random) % 1000000000);
    add_gzip(&packed, b.ptr, b.len);
    write_file("in.et.gz", packed.ptr, packed.len / 2);
    orr_check_report *r = fix("in.et.gz", "out.et");
    CHECK_EQ_U(r->count[ORR_CHECK_DAMAGED], 1);
    orr_check_report_destroy(r);
    orr_trace *t;
    CHECK_OK(orr_trace_read("out.et", NULL, &t, &err), &err);
    CHECK(orr_trace_columns(t)->count > 5000 && orr_trace_columns(t)->count < 15000);
    orr_trace_destroy(t);
    orr_buf_fini(&packed);
    orr_buf_fini(&b);
}

TEST(test_check_fix__where_nothing_can_be_saved_nothing_is_written)
{
    orr_check_report *r;
    write_file("in.et", "\xff\xff\xff", 3);
    CHECK_CODE(orr_check_fix("in.et", "not.et", NULL, NULL, &r, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "nothing can be recovered");
    CHECK(r == NULL);
    CHECK(access("not.et", F_OK) != 0);
    CHECK_CODE(orr_check_fix("none.et", "not.et", NULL, NULL, &r, &err), ORR_EIO, &err);
    CHECK_CODE(orr_check_fix("in.et", "folder/", NULL, NULL, &r, &err), ORR_EUSAGE, &err);
    CHECK_CODE(orr_check_fix("in.et", "out.json", NULL, NULL, &r, &err), ORR_EUSAGE, &err);
}

/* ---- sets ---- */

TEST(test_check_fix__ranks_keep_their_classes_and_ids)
{
    orr_buf rank[2] = {{0}, {0}};
    for (uint64_t r = 0; r < 2; r++) { /* rank 1 counts on where rank 0 stopped */
        put_meta(&rank[r]);
        PUT_NODE(&rank[r], 1 + 10 * r);
        PUT_NODE(&rank[r], 2 + 10 * r, 1 + 10 * r, 9 + 10 * r);
        write_file(r ? "job.1.et" : "job.0.et", rank[r].ptr, rank[r].len);
        rank[r].len = 0;
        put_meta(&rank[r]);
        PUT_NODE(&rank[r], 1 + 10 * r);
        PUT_NODE(&rank[r], 2 + 10 * r, 1 + 10 * r);
    }
    check_changes(fix("job", "good"), ORR_CHECK_MISSING_PARENT, 1, "node 9");
    check_file("good.0.et", rank[0].ptr, rank[0].len);
    check_file("good.1.et", rank[1].ptr, rank[1].len);
    check_changes(fix("job", "good.orr"), ORR_CHECK_MISSING_PARENT, 1, "node 9");
    check_clean("good.orr");
    /* In place: the input is whole until the output is. */
    check_changes(fix("job", "job"), ORR_CHECK_MISSING_PARENT, 1, "node 9");
    check_clean("job");
    orr_buf_fini(&rank[0]);
    orr_buf_fini(&rank[1]);
}

TEST(test_check_fix__damaged_ranks_do_not_hide_the_others)
{
    orr_buf b = {0};
    orr_set *s;
    orr_check_report *r;
    put_meta(&b);
    PUT_NODE(&b, 1);
    PUT_NODE(&b, 2, 1);
    write_file("d.0.et", b.ptr, b.len);
    write_file("d.1.et", b.ptr, b.len - 1);
    CHECK_OK(orr_set_open("d",
                          &(orr_set_options){.size = sizeof(orr_set_options), .keep_going = true},
                          &s, &err),
             &err);
    CHECK_OK(orr_check_set(s, NULL, &r, &err), &err);
    CHECK_EQ_U(r->count[ORR_CHECK_DAMAGED], 1);
    CHECK_EQ(r->read_status, ORR_EINPUT);
    CHECK_EQ_U(r->findings[0].rank, 1);
    CHECK_EQ_U(r->findings[0].where.byte, 16); /* metadata 8 bytes, node 1 another 8 */
    CHECK_EQ_U(r->node_count, 2);
    orr_check_report_destroy(r);
    orr_set_close(s);
    check_changes(fix("d", "e"), ORR_CHECK_DAMAGED, 1, "1 node kept");
    check_clean("e");
    orr_buf_fini(&b);
}

TEST(test_check_fix__generation_stays)
{
    if (!orr__et_old_forms)
        skip(); /* not built in */
    orr_trace *t = new_trace();
    ADD_NODE(t, 1);
    ADD_NODE(t, 2, 1, 9);
    seal(t);
    CHECK_OK(orr_trace_write(t, "old.et",
                             &(orr_write_options){.size = sizeof(orr_write_options),
                                                  .schema = ORR_SCHEMA_2023_10},
                             &err),
             &err);
    orr_trace_destroy(t);
    check_changes(fix("old.et", "out.et"), ORR_CHECK_MISSING_PARENT, 1, "node 9");
    CHECK_OK(orr_trace_read("old.et", NULL, &t, &err), &err);
    const orr_schema schema = orr_trace_schema(t);
    orr_trace_destroy(t);
    CHECK_OK(orr_trace_read("out.et", NULL, &t, &err), &err);
    CHECK_EQ(orr_trace_schema(t), schema);
    orr_trace_destroy(t);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_check_fix__sound_file_stays_as_it_is),
        RUN(test_check_fix__bad_dependencies_are_dropped),
        RUN(test_check_fix__only_control_dependencies_are_given_up_for_a_cycle),
        RUN(test_check_fix__random_control_cycles_are_broken),
        RUN(test_check_fix__all_but_the_last_of_an_id_get_a_fresh_one),
        RUN(test_check_fix__kinds_are_converted_where_nothing_is_lost),
        RUN(test_check_fix__kinds_that_would_lose_something_stay),
        RUN(test_check_fix__records_before_the_damage_are_kept),
        RUN(test_check_fix__a_bad_record_between_good_ones_is_left_out),
        RUN(test_check_fix__records_are_taken_up_again_only_when_they_lead_to_the_end),
        RUN(test_check_fix__packed_data_is_used_as_far_as_it_goes),
        RUN(test_check_fix__where_nothing_can_be_saved_nothing_is_written),
        RUN(test_check_fix__ranks_keep_their_classes_and_ids),
        RUN(test_check_fix__damaged_ranks_do_not_hide_the_others),
        RUN(test_check_fix__generation_stays),
    };
    return RUN_ALL(tests);
}
