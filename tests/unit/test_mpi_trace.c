/* SPDX-License-Identifier: Apache-2.0 */
/* room: schedgen */
#include "check.h"
#include "compat/schedgen/sg_rules.h"
#include "files.h"
#include "goal_play.h"

#include <orrery/lab/mpi_trace.h>

/* ---- small traces ---- */

static void write_trace(uint32_t rank, const char *text)
{
    char name[32];
    snprintf(name, sizeof name, "t-%u.dat", rank);
    write_file(name, text, strlen(text));
}

/* No trace of an earlier test may be taken for a rank of this one. */
static void forget_traces(void)
{
    char name[32];
    for (uint32_t i = 0; i < 32; i++) {
        snprintf(name, sizeof name, "t-%u.dat", i);
        unlink(name);
    }
}

static orr_schedgen_totals make(const orr_mpi_trace_options *opt, orr_mpi_trace_remarks *odd)
{
    orr_error err;
    orr_schedgen_totals t;
    CHECK_OK(orr_mpi_trace_write("t-0.dat", opt, "x.goal", &t, odd, &err), &err);
    return t;
}

static void check_schedule(const orr_mpi_trace_options *opt, const char *want)
{
    make(opt, NULL);
    check_file("x.goal", want, strlen(want));
}

static void check_refused(const char *rank0, const char *words)
{
    orr_error err;
    const orr_mpi_trace_options opt = {.is_quiet = true};
    forget_traces();
    unlink("refused.goal");
    write_trace(0, rank0);
    CHECK_CODE(orr_mpi_trace_write("t-0.dat", &opt, "refused.goal", NULL, NULL, &err), ORR_EINPUT,
               &err);
    CHECK_SAYS(&err, words);
    CHECK(access("refused.goal", F_OK) != 0);
}

/* ---- messages ---- */

/* 5 us after MPI_Init 800 bytes go out; 2 us after that the program ends. */
TEST(test_mpi_trace__a_message_and_the_time_around_it)
{
    forget_traces();
    write_trace(0, "# collprof\nMPI_Init:-:1:2:100\nMPI_Send:105:9:100:11,8,8:1:7:0,0,2:110\n"
                   "MPI_Finalize:112:-\n");
    write_trace(1,
                "MPI_Init:-:1:2:100.0\r\nMPI_Recv:101.25:9:100:11,8,8:0:7:0,1,2:5:110.5\r\n\r\n");
    check_schedule(&(orr_mpi_trace_options){0},
                   "num_ranks 2\n"
                   "\nrank 0 {\nl1: send 800b to 1 tag 7\nl2: calc 5000\nl1 requires l2\n"
                   "l3: calc 2000\nl3 requires l1\n}\n"
                   "\nrank 1 {\nl1: recv 800b from 0 tag 7\nl2: calc 1250\nl1 requires l2\n}\n");
}

/* A receive that does not block is waited for by its start, and for good by MPI_Wait. */
TEST(test_mpi_trace__waits_for_requests)
{
    forget_traces();
    write_trace(
        0, "MPI_Init:-:1:2:0\nMPI_Irecv:1:9:1:1,4,4:0:3:0,0,1:640:2\n"
           "MPI_Isend:3:9:1:1,4,4:0:3:0,0,1:648:4\nMPI_Waitall:6:2:640:0:9\nMPI_Wait:9:648:0:9\n"
           "MPI_Wait:9:640:0:9\n");
    check_schedule(&(orr_mpi_trace_options){0},
                   "num_ranks 1\n"
                   "\nrank 0 {\nl1: recv 4b from 0 tag 3\nl2: calc 1000\nl1 requires l2\n"
                   "l3: send 4b to 0 tag 3\nl4: calc 1000\nl3 requires l4\nl4 irequires l1\n"
                   "l5: calc 0\nl5 requires l1\nl5 requires l3\nl6: calc 2000\nl5 requires l6\n"
                   "l6 irequires l3\n"
                   "l7: calc 0\nl7 requires l3\nl8: calc 0\nl7 requires l8\nl8 requires l5\n}\n");
}

/* Copies of the ranks talk among themselves; any source stays any. */
TEST(test_mpi_trace__copies_of_ranks)
{
    forget_traces();
    write_trace(0, "MPI_Init:-:1:2:0\nMPI_Send:1:9:1:1,4,4:1:3:0,0,2:1\n");
    write_trace(1, "MPI_Init:-:1:2:0\nMPI_Recv:1:9:1:1,4,4:-1:-1:0,1,2:9:1\n");
    check_schedule(
        &(orr_mpi_trace_options){.copies = 2},
        "num_ranks 4\n"
        "\nrank 0 {\nl1: send 4b to 1 tag 3\nl2: calc 1000\nl1 requires l2\n}\n"
        "\nrank 1 {\nl1: recv 4b from -1 tag 4294967295\nl2: calc 1000\nl1 requires l2\n}\n"
        "\nrank 2 {\nl1: send 4b to 3 tag 3\nl2: calc 1000\nl1 requires l2\n}\n"
        "\nrank 3 {\nl1: recv 4b from -1 tag 4294967295\nl2: calc 1000\nl1 requires l2\n}\n");
}

/* Each has its own tag, and no rank is nobody: Open MPI's -2, MPICH's -1. */
TEST(test_mpi_trace__sends_and_receives_at_once)
{
    orr_mpi_trace_remarks odd;
    forget_traces();
    write_trace(0, "MPI_Init:-:1:2:0\n"
                   "MPI_Sendrecv:1:9:1:1,4,4:0:3:9:2:1,4,4:0:5:0,0,1:9:1\n"
                   "MPI_Sendrecv:1:9:1:1,4,4:-2:3:9:2:1,4,4:0:5:0,0,1:9:1\n");
    make(&(orr_mpi_trace_options){0}, &odd);
    CHECK_EQ_U(odd.nobody, 1);
    static const char want[] =
        "num_ranks 1\n\nrank 0 {\nl1: send 4b to 0 tag 3\nl2: recv 8b from 0 tag 5\nl3: calc 1000\n"
        "l1 requires l3\nl2 requires l3\nl4: recv 8b from 0 tag 5\nl5: calc 0\nl4 requires l5\n"
        "l5 requires l1\nl5 requires l2\n}\n";
    check_file("x.goal", want, strlen(want));
    write_trace(
        0,
        "MPI_Init:-:1:2:0\nMPI_Recv:1:9:1:1,4,4:-2:3:0,0,1:9:1\nMPI_Send:1:9:1:1,4,4:-1:3:0,0,1:1\n");
    make(&(orr_mpi_trace_options){.library = ORR_MPI_MPICH}, &odd);
    CHECK_EQ_U(odd.nobody, 1);
    static const char mpich[] =
        "num_ranks 1\n\nrank 0 {\nl1: recv 4b from -1 tag 3\nl2: calc 1000\nl1 requires l2\n}\n";
    check_file("x.goal", mpich, strlen(mpich));
}

/* Started twice: two messages. */
TEST(test_mpi_trace__requests_that_are_started_again)
{
    forget_traces();
    write_trace(0, "MPI_Init_thread:-:1:2:3:4:0\nMPI_Send_init:10:9:1:1,4,4:1:3:0,0,2:640:12\n"
                   "MPI_Startall:20:1:640:20\nMPI_Wait:20:640:0:20\nMPI_Start:20:640:20\n"
                   "MPI_Request_free:20:640:20\nMPI_Start:20:640:20\n");
    write_trace(1, "MPI_Init:-:1:2:0\nMPI_Recv:1:9:1:1,4,4:0:3:0,1,2:9:1\n"
                   "MPI_Recv:1:9:1:1,4,4:0:3:0,1,2:9:1\n");
    const orr_schedgen_totals t = make(&(orr_mpi_trace_options){0}, NULL);
    CHECK_EQ_U(t.sends, 2);
    CHECK_EQ_U(t.recvs, 2);
}

/* ---- communicators ---- */

/* The same handle everywhere: its last eight bits stand in the tag.  Others: numbered in order of
 * use. */
TEST(test_mpi_trace__communicators_in_tags)
{
    forget_traces();
    write_trace(0, "MPI_Init:-:1:2:0\nMPI_Send:1:9:1:1,4,4:1:3:258,0,2:1\n");
    write_trace(1, "MPI_Init:-:1:2:0\nMPI_Recv:1:9:1:1,4,4:0:3:258,1,2:9:1\n");
    check_schedule(
        &(orr_mpi_trace_options){0},
        "num_ranks 2\n"
        "\nrank 0 {\nl1: send 4b to 1 tag 33554435\nl2: calc 1000\nl1 requires l2\n}\n"
        "\nrank 1 {\nl1: recv 4b from 0 tag 33554435\nl2: calc 1000\nl1 requires l2\n}\n");
    write_trace(1, "MPI_Init:-:1:2:0\nMPI_Recv:1:9:1:1,4,4:0:3:94853248035456,1,2:9:1\n");
    check_schedule(&(orr_mpi_trace_options){0},
                   "num_ranks 2\n"
                   "\nrank 0 {\nl1: send 4b to 1 tag 3\nl2: calc 1000\nl1 requires l2\n}\n"
                   "\nrank 1 {\nl1: recv 4b from 0 tag 3\nl2: calc 1000\nl1 requires l2\n}\n");
}

/* ---- collectives ---- */

static void print_list(char *out, size_t size, uint32_t n, uint32_t (*of)(uint32_t i))
{
    size_t at = (size_t)snprintf(out, size, "77:");
    for (uint32_t i = 0; i < n; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%u", i ? "," : "", of(i));
}

static uint32_t of_rank(uint32_t i)
{
    return 10 + i;
}

static uint32_t the_same(uint32_t i)
{
    (void)i;
    return 12;
}

/* Every collective once; rank r of n contributes 10 + r elements of 4 bytes where counts may
 * differ, from root n - 1.  Sizes that one rank sends are those the other expects, or play_goal
 * complains. */
static void write_collectives(uint32_t r, uint32_t n)
{
    char text[8192], listed[200], same[200], comm[64];
    print_list(listed, sizeof listed, n, of_rank);
    print_list(same, sizeof same, n, the_same);
    snprintf(comm, sizeof comm, "5,%u,%u", r, n);
    const uint32_t root = n - 1;
    snprintf(text, sizeof text,
             "MPI_Init:-:1:2:0\n"
             "MPI_Barrier:1:%s:2\n"
             "MPI_Bcast:2:9:10:1,4,4:%u:%s:3\n"
             "MPI_Reduce:3:9:9:10:1,4,4:3:%u:%s:4\n"
             "MPI_Allreduce:4:9:9:10:1,4,4:3:%s:5\n"
             "MPI_Iallreduce:5:9:9:10:1,4,4:3:%s:640:6\n"
             "MPI_Wait:6:640:0:7\n"
             "MPI_Scan:7:9:9:10:1,4,4:3:%s:8\n"
             "MPI_Exscan:8:9:9:10:1,4,4:3:%s:9\n"
             "MPI_Allgather:9:9:10:1,4,4:9:10:1,4,4:%s:10\n"
             "MPI_Alltoall:10:9:10:1,4,4:9:10:1,4,4:%s:11\n"
             "MPI_Gather:11:9:10:1,4,4:9:10:1,4,4:%u:%s:12\n"
             "MPI_Scatter:12:9:10:1,4,4:9:10:1,4,4:%u:%s:13\n"
             "MPI_Gatherv:13:9:%u:1,4,4:9:%s:%s:1,4,4:%u:%s:14\n"
             "MPI_Scatterv:14:9:%s:%s:1,4,4:9:%u:1,4,4:%u:%s:15\n"
             "MPI_Allgatherv:15:9:%u:1,4,4:9:%s:%s:1,4,4:%s:16\n"
             "MPI_Alltoallv:16:9:%s:%s:1,4,4:9:%s:%s:1,4,4:%s:17\n"
             "MPI_Reduce_scatter:17:9:9:%s:1,4,4:3:%s:18\n"
             "MPI_Finalize:20:-\n",
             comm, root, comm, root, comm, comm, comm, comm, comm, comm, comm, root, comm, root,
             comm, of_rank(r), listed, listed, root, comm, listed, listed, of_rank(r), root, comm,
             of_rank(r), listed, listed, comm, same, same, same, same, comm, listed, comm);
    write_trace(r, text);
}

static void check_runs(const orr_mpi_trace_options *opt, orr_mpi_trace_remarks *odd)
{
    orr_error err;
    orr_goal *g;
    make(opt, odd);
    CHECK_OK(orr_goal_read("x.goal", NULL, &g, &err), &err);
    for (int rendezvous = 0; rendezvous < 2; rendezvous++) {
        const char *problem = play_goal(g, rendezvous);
        if (problem)
            check_fail(__FILE__, __LINE__, "%u ranks: %s", orr_goal_ranks(g), problem);
    }
    orr_goal_free(g);
}

TEST(test_mpi_trace__every_collective_runs_on_every_number_of_ranks)
{
    for (uint32_t n = 1; n <= 9; n++) {
        orr_mpi_trace_remarks odd;
        forget_traces();
        for (uint32_t r = 0; r < n; r++)
            write_collectives(r, n);
        for (uint32_t copies = 1; copies <= 3; copies++) {
            check_runs(&(orr_mpi_trace_options){.copies = copies}, &odd);
            CHECK_EQ_U(odd.not_expanded + odd.unknown + odd.sub_communicators, 0);
        }
        check_runs(&(orr_mpi_trace_options){.rules = &sg_lgs2023}, &odd);
        CHECK_EQ_U(odd.not_expanded, 8 * n);
        CHECK_EQ_U(odd.unknown, n); /* MPI_Reduce_scatter */
        check_runs(&(orr_mpi_trace_options){.rules = &sg_atlahs, .early_us = 1}, &odd);
    }
}

/* Of the 4 ranks' 17 collectives: barrier, all-reduces and all-gather 2 rounds each (4 ops), trees
 * 3, scans 5, pairs 12, gathers and scatters 3. */
TEST(test_mpi_trace__collectives_have_closed_forms)
{
    forget_traces();
    for (uint32_t r = 0; r < 4; r++)
        write_collectives(r, 4);
    const orr_schedgen_totals t = make(&(orr_mpi_trace_options){0}, NULL);
    const uint64_t dissemination = 4 * 2, tree = 3, scan = 3 + 2, pairs = 4 * 3, star = 3;
    CHECK_EQ_U(t.sends, 4 * dissemination + 2 * tree + 2 * scan + 4 * pairs + 4 * star);
    CHECK_EQ_U(t.recvs, t.sends);
}

/* A list that is not printed, or is that of another number of ranks, cannot be used. */
TEST(test_mpi_trace__lists_that_are_not_there)
{
    orr_mpi_trace_remarks odd;
    forget_traces();
    write_trace(0, "MPI_Init:-:1:2:0\nMPI_Gatherv:13:9:1:1,4,4:9:77:78:1,4,4:0:0,0,1:14\n"
                   "MPI_Ibcast:14:9\n");
    make(&(orr_mpi_trace_options){0}, &odd);
    CHECK_EQ_U(odd.not_expanded, 1);
    CHECK_TEXT(odd.not_expanded_name, "MPI_Gatherv");
    CHECK_EQ_U(odd.unknown, 1);
    CHECK_TEXT(odd.unknown_name, "MPI_Ibcast");
    CHECK_EQ_U(odd.calls, 3);
}

/* A barrier of 3 among 1 is left out; a message there is not. */
TEST(test_mpi_trace__sub_communicators_are_counted)
{
    orr_mpi_trace_remarks odd;
    forget_traces();
    write_trace(0, "MPI_Init:-:1:2:0\nMPI_Barrier:1:0,0,3:2\nMPI_Send:3:9:1:1,4,4:0:3:0,0,3:3\n");
    const orr_schedgen_totals t = make(&(orr_mpi_trace_options){.copies = 2}, &odd);
    CHECK_EQ_U(odd.sub_communicators, 1);
    CHECK_EQ_U(odd.sub_messages, 1);
    CHECK_EQ_U(t.sends, 2);
}

/* ---- time ---- */

/* A call that begins before the last one ended: no time between. */
TEST(test_mpi_trace__time_does_not_go_back)
{
    orr_mpi_trace_remarks odd;
    forget_traces();
    write_trace(0, "MPI_Init:-:1:2:100\nMPI_Send:90:9:1:1,4,4:0:3:0,0,1:95\n");
    make(&(orr_mpi_trace_options){0}, &odd);
    CHECK_EQ_U(odd.backward, 1);
    static const char want[] =
        "num_ranks 1\n\nrank 0 {\nl1: send 4b to 0 tag 3\nl2: calc 0\nl1 requires l2\n}\n";
    check_file("x.goal", want, strlen(want));
}

/* Without MPI_Init ours counts from the first call, SchedGen from the epoch. */
TEST(test_mpi_trace__a_trace_without_a_beginning)
{
    forget_traces();
    write_trace(0, "MPI_Send:90:9:1:1,4,4:0:3:0,0,1:95\n");
    check_schedule(
        &(orr_mpi_trace_options){0},
        "num_ranks 1\n\nrank 0 {\nl1: send 4b to 0 tag 3\nl2: calc 0\nl1 requires l2\n}\n");
    check_schedule(
        &(orr_mpi_trace_options){.rules = &sg_lgs2023},
        "num_ranks 1\n\nrank 0 {\nl1: send 4b to 0 tag 3\nl2: calc 90000\nl1 requires l2\n}\n");
}

/* 10 us of computing before a barrier that begins 4 us early: 6, and 4 beside it. */
TEST(test_mpi_trace__collectives_begin_early)
{
    forget_traces();
    write_trace(0, "MPI_Init:-:1:2:0\nMPI_Barrier:10:0,0,1:12\n");
    check_schedule(
        &(orr_mpi_trace_options){.early_us = 4},
        "num_ranks 1\n\nrank 0 {\nl1: calc 0\nl2: calc 4000\nl2 irequires l1\nl3: calc 6000\n}\n");
    check_schedule(
        &(orr_mpi_trace_options){.early_us = 4, .rules = &sg_lgs2023},
        "num_ranks 1\n\nrank 0 {\nl1: calc 0\nl2: calc 4\nl2 irequires l1\nl3: calc 6000\n}\n");
}

/* ---- in parts ---- */

static const char three_barriers[] =
    "# collprof\nMPI_Init:-:1:2:0\nMPI_Barrier:10:0,0,1:12\n"
    "MPI_Barrier:20:0,0,1:22\nMPI_Barrier:30:0,0,1:32\nMPI_Finalize:40:-\n";

/* Two barriers end at byte 77; the rest goes on from there, 22 us after the start. */
TEST(test_mpi_trace__goes_on_where_it_stopped)
{
    const orr_mpi_trace_options opt = {.max_collectives = 2, .start_path = "start"};
    forget_traces();
    unlink("start");
    write_trace(0, three_barriers);
    const size_t stop = (size_t)(strstr(three_barriers, "MPI_Barrier:30") - three_barriers);
    check_schedule(&opt, "num_ranks 1\n\nrank 0 {\nl1: calc 0\nl2: calc 10000\n"
                         "l3: calc 0\nl4: calc 8000\nl4 requires l1\n}\n");
    char want[32];
    snprintf(want, sizeof want, "%zu 22\n", stop);
    check_file("start", want, strlen(want));
    check_schedule(&opt, "num_ranks 1\n\nrank 0 {\nl1: calc 0\nl2: calc 8000\n"
                         "l3: calc 8000\nl3 requires l1\n}\n");
    check_file("start", want, strlen(want)); /* did not have to stop */
}

TEST(test_mpi_trace__leaves_out_what_is_not_wanted)
{
    forget_traces();
    write_trace(0,
                "MPI_Init:-:1:2:0\nMPI_Barrier:10:0,0,1:12\nMPI_Send:20:9:1:1,4,4:0:3:0,0,1:25\n");
    check_schedule(&(orr_mpi_trace_options){.skips_messages = true},
                   "num_ranks 1\n\nrank 0 {\nl1: calc 0\nl2: calc 10000\n}\n");
    check_schedule(
        &(orr_mpi_trace_options){.skips_collectives = true, .cpu = 2, .time_mult = 1},
        "num_ranks 1\n\nrank 0 {\nl1: send 4b to 0 tag 3\nl2: calc 20 cpu 2\nl1 requires l2\n}\n");
}

/* ---- files ---- */

TEST(test_mpi_trace__names_with_more_zeros)
{
    orr_error err;
    orr_schedgen_totals t;
    static const char text[] = "MPI_Init:-:1:2:0\n";
    write_file("run-000.txt", text, strlen(text));
    write_file("run-001.txt", text, strlen(text));
    CHECK_OK(orr_mpi_trace_write("run-000.txt", &(orr_mpi_trace_options){0}, NULL, &t, NULL, &err),
             &err);
    CHECK_EQ_U(t.ranks, 2);
}

TEST(test_mpi_trace__names_must_have_a_place_for_the_rank)
{
    orr_error err;
    const orr_mpi_trace_options opt = {0};
    CHECK_CODE(orr_mpi_trace_write("run.txt", &opt, NULL, NULL, NULL, &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "must have \"-0\" in it");
    CHECK_CODE(orr_mpi_trace_write("run-0-0.txt", &opt, NULL, NULL, NULL, &err), ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "more than once");
    CHECK_CODE(orr_mpi_trace_write("none-0.txt", &opt, NULL, NULL, NULL, &err), ORR_EIO, &err);
    CHECK_SAYS(&err, "none-0.txt");
}

/* ---- what cannot be read ---- */

TEST(test_mpi_trace__errors_have_a_place)
{
    check_refused("# x\nhello\n", "t-0.dat:2:1: neither a comment");
    check_refused("MPI_Init:-:1:2\n", "t-0.dat:1:15: MPI_Init has 3 values, and 4");
    check_refused("MPI_Init:-:1:2:-\n", "t-0.dat:1:16: MPI_Init: '-' is not a time");
    check_refused("MPI_Init:-:1:2:3\nMPI_Init:-:1:2:3\n", "t-0.dat:2:1: MPI_Init again");
    check_refused("MPI_Send:1:9:1:1,4,4:7:3:0,0,1:1\n",
                  "t-0.dat:1:22: MPI_Send: rank 7 is not one of the ranks 0 to 0");
    check_refused("MPI_Send:1:9:x:1,4,4:0:3:0,0,1:1\n",
                  "t-0.dat:1:14: MPI_Send: 'x' is not a whole");
    check_refused("MPI_Send:1:9:-1:1,4,4:0:3:0,0,1:1\n", "t-0.dat:1:14: MPI_Send: -1 elements");
    check_refused("MPI_Send:1:9:1:1,4,4:0:-1:0,0,1:1\n", "t-0.dat:1:24: MPI_Send: -1 is not a tag");
    check_refused("MPI_Send:1:9:1:1,4,4:0:3:0,0,1:nan\n", "'nan' is not a time");
    check_refused("MPI_Bcast:2:9:10:1,4,4:1:0,0,1:3\n", "t-0.dat:1:24: MPI_Bcast: the root, 1");
    check_refused("MPI_Waitall:6:99999999:640:0:9\n",
                  "t-0.dat:1:15: MPI_Waitall: 99999999 requests");
    check_refused("MPI_Init:-:1:2:3\nMPI_Gatherv:13:9:1:1,4,4:9:77:-4:78:0:1,4,4:0:0,0,1:14\n"
                  "MPI_Barrier:1\n",
                  "t-0.dat:3:14: MPI_Barrier has 1 values");
    check_refused("MPI_Init:-:1:2:1\nMPI_Send:1e17:9:1:1,4,4:0:3:0,0,1:1e17\n", "too many");
}

TEST(test_mpi_trace__bad_start_files)
{
    orr_error err;
    const orr_mpi_trace_options opt = {.start_path = "start"};
    forget_traces();
    write_trace(0, three_barriers);
    write_file("start", "x y\n", 4);
    CHECK_CODE(orr_mpi_trace_write("t-0.dat", &opt, NULL, NULL, NULL, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "start:1:1: expected a byte");
    write_file("start", "1000000 5\n", 10);
    CHECK_CODE(orr_mpi_trace_write("t-0.dat", &opt, NULL, NULL, NULL, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "t-0.dat: byte 1000000");
    check_file("start", "1000000 5\n", 10);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_mpi_trace__a_message_and_the_time_around_it),
        RUN(test_mpi_trace__waits_for_requests),
        RUN(test_mpi_trace__copies_of_ranks),
        RUN(test_mpi_trace__sends_and_receives_at_once),
        RUN(test_mpi_trace__requests_that_are_started_again),
        RUN(test_mpi_trace__communicators_in_tags),
        RUN(test_mpi_trace__every_collective_runs_on_every_number_of_ranks),
        RUN(test_mpi_trace__collectives_have_closed_forms),
        RUN(test_mpi_trace__lists_that_are_not_there),
        RUN(test_mpi_trace__sub_communicators_are_counted),
        RUN(test_mpi_trace__time_does_not_go_back),
        RUN(test_mpi_trace__a_trace_without_a_beginning),
        RUN(test_mpi_trace__collectives_begin_early),
        RUN(test_mpi_trace__goes_on_where_it_stopped),
        RUN(test_mpi_trace__leaves_out_what_is_not_wanted),
        RUN(test_mpi_trace__names_with_more_zeros),
        RUN(test_mpi_trace__names_must_have_a_place_for_the_rank),
        RUN(test_mpi_trace__errors_have_a_place),
        RUN(test_mpi_trace__bad_start_files),
    };
    return RUN_ALL(tests);
}
