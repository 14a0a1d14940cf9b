/* SPDX-License-Identifier: Apache-2.0 */
/* test_nsys_marker.c - texts of the annotated NCCL: which are markers, and what they say (goal.md
 * 5.2). */
#include "check.h"

#include <orrery/lab/nsys.h>

static orr_error err;

static orr_nsys_row read_marker(const char *text)
{
    orr_nsys_row r = {0};
    CHECK_OK(orr_nsys_marker(orr_str_of(text), &r, &err), &err);
    return r;
}

static void check_other(const char *text)
{
    orr_nsys_row r = {0};
    CHECK(orr_nsys_marker(orr_str_of(text), &r, &err) == ORR_END);
    CHECK_EQ_U(r.kind, ORR_NSYS_OTHER);
}

static bool says(orr_str s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.ptr, text, s.len) == 0;
}

TEST(test_nsys_marker__communicators_rings_and_trees)
{
    orr_nsys_row r = read_marker("commHash 0xab commId 0xfeed rank 3 nranks 4 pid 77");
    CHECK_EQ_U(r.kind, ORR_NSYS_COMM);
    CHECK(says(r.hash, "0xab") && says(r.id, "0xfeed"));
    CHECK_EQ_U(r.rank, 3);
    CHECK_EQ_U(r.ranks, 4);
    CHECK_EQ_U(r.pid, 77);
    r = read_marker("commHash 0xab Rings [2] 1->3->0 pid 77");
    CHECK_EQ_U(r.kind, ORR_NSYS_RING);
    CHECK_EQ_U(r.channel, 2);
    CHECK_EQ_U(r.previous, 1);
    CHECK_EQ_U(r.me, 3);
    CHECK_EQ_U(r.next, 0);
    r = read_marker("commHash 0xab Trees [0] 5/-1/-1->3->-1 pid 77");
    CHECK_EQ_U(r.kind, ORR_NSYS_TREE);
    CHECK(r.child[0] == 5 && r.child[1] == -1 && r.child[2] == -1 && r.parent == -1);
    CHECK_EQ_U(r.me, 3);
}

TEST(test_nsys_marker__windows_and_groups)
{
    CHECK_EQ_U(read_marker("nsys profiling start, pid: 12").kind, ORR_NSYS_WINDOW_START);
    CHECK_EQ_U(read_marker("nsys profiling stopped, pid: 12").kind, ORR_NSYS_WINDOW_END);
    CHECK_EQ_U(read_marker("ncclGroupStart(): pid 5").kind, ORR_NSYS_GROUP_START);
    CHECK_EQ_U(read_marker("ncclGroupEnd(): pid 5, and more").pid, 5);
}

TEST(test_nsys_marker__calls_take_the_last_pid_of_their_line)
{
    orr_nsys_row r = read_marker(
        "ncclAllReduce(): commHash 0x1, stream 0x2, data_size 8, type_size 4, op pid 1 pid 9 pid x\n pid 3");
    CHECK_EQ_U(r.kind, ORR_NSYS_CALL);
    CHECK_EQ_U(r.op, ORR_NCCL_ALL_REDUCE);
    CHECK(says(r.hash, "0x1") && says(r.stream, "0x2"));
    CHECK_EQ_U(r.pid, 9);
    r = read_marker("ncclSomething(): commHash 0x1, stream 0x2, data_size 8, type_size 4, pid 9");
    CHECK_EQ_U(r.op, ORR_NCCL_OTHER);
}

TEST(test_nsys_marker__details_of_collectives_and_messages)
{
    orr_nsys_row r = read_marker(
        "collType 4 root 1 redOp 0 algo 0 proto 2 commHash 0xZZ stream (nil) data_size 64 type_size 4 chunkSize 7 "
        "chunkCount 8 chunkSteps 4 sliceSteps 2 stepSize 524288 pid 6");
    CHECK_EQ_U(r.kind, ORR_NSYS_INFO);
    CHECK_EQ_U(r.root, 1);
    CHECK_EQ_U(r.algorithm, 0);
    CHECK_EQ_U(r.protocol, 2);
    CHECK_EQ_U(r.bytes, 64);
    CHECK_EQ_U(r.chunk_steps, 4);
    CHECK_EQ_U(r.slice_steps, 2);
    CHECK_EQ_U(r.step, 524288);
    r = read_marker(
        "nWarps 16 count 1 chunkCount 2 workCount 3 lastChunkCount 4 workOffset 5 sendbuff 6 recvbuff 7 pid 8");
    CHECK(r.kind == ORR_NSYS_WORK && r.count == 1 && r.chunk == 2 && r.total == 3 && r.last == 4);
    CHECK(r.send_buffer == 6 && r.receive_buffer == 7 && r.pid == 8);
    r = read_marker(
        "Bytes 9 nWarps 16 p2pType 2 peer 3 proto 0 countHi32 1 countLo32 5 chunkSize 7 pid 8");
    CHECK(r.kind == ORR_NSYS_P2P && r.bytes == 9 && r.p2p_type == 2 && r.peer == 3 && r.high == 1 &&
          r.low == 5);
}

TEST(test_nsys_marker__anything_else_is_none)
{
    static const char *const texts[] = {
        "",
        "iteration 3",
        " commHash 0xab commId 0xfeed rank 3 nranks 4 pid 77",
        "commHash 0xAB commId 0xfeed rank 3 nranks 4 pid 77",
        "commHash 0x commId 0xfeed rank 3 nranks 4 pid 77",
        "commHash 0xab commId 0xfeed rank -3 nranks 4 pid 77",
        "commHash 0xab Rings [2] -1->3->0 pid 77",
        "ncclAllReduce(): commHash 0x1, stream 0x2, data_size 8, type_size 4 pid 9",
        "ncclAllReduce(): commHash 0x1, stream 0x2, data_size 8, type_size 4, pid",
        "nccl(): commHash 0x1",
        "nsys profiling began, pid: 12",
        "ncclGroupStart(): pid",
        "nWarps 16 count",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check_other(texts[i]);
}

TEST(test_nsys_marker__a_number_beyond_64_bits_is_an_error)
{
    orr_nsys_row r = {0};
    CHECK_CODE(orr_nsys_marker(orr_str_of("ncclGroupStart(): pid 18446744073709551616"), &r, &err),
               ORR_EINPUT, &err);
    CHECK_SAYS(&err, "larger than 64 bits");
    CHECK_EQ_U(read_marker("ncclGroupStart(): pid 18446744073709551615").pid, UINT64_MAX);
}

TEST(test_nsys_marker__names_of_operations_go_both_ways)
{
    for (int op = 1; op < ORR_NCCL_OPS; op++)
        CHECK_EQ_U(orr_nccl_op_find(orr_str_of(orr_nccl_op_name((orr_nccl_op)op))), (unsigned)op);
    CHECK_EQ_U(orr_nccl_op_find(orr_str_of("allreduce")), ORR_NCCL_OTHER);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_nsys_marker__communicators_rings_and_trees),
        RUN(test_nsys_marker__windows_and_groups),
        RUN(test_nsys_marker__calls_take_the_last_pid_of_their_line),
        RUN(test_nsys_marker__details_of_collectives_and_messages),
        RUN(test_nsys_marker__anything_else_is_none),
        RUN(test_nsys_marker__a_number_beyond_64_bits_is_an_error),
        RUN(test_nsys_marker__names_of_operations_go_both_ways),
    };
    return RUN_ALL(tests);
}
