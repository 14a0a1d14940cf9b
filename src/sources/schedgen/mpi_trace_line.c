/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_trace_line.c - the calls by name and where their arguments stand; fields and their values
 * (goal.md 4).
 *
 *     MPI_Send:1237666053149864.000000:11251872:4500:11,8,8:1:7000:0,0,4:1237666053150082.000000
 *              start                   buffer   count type  to tag  comm  end
 *
 * liballprof prints a datatype as handle, size and extent, a communicator as handle, rank and
 * ranks, a list of counts as its address and its elements, everything else as one number. SchedGen
 * knows calls by a hash of 14 characters, in which MPI_Ssend is MPI_Rsend; the rest of its
 * collisions (MPI_Ibarrier is MPI_Finalize) are not kept. */
#include "mpi_trace_line.h"

#include "schedgen_rules.h"

#include "base/text/number.h"
#include "base/text/text.h"

enum {
    OURS = 1 << ORR__MPI_CALLS_OURS,
    LGS = 1 << ORR__MPI_CALLS_LGS2023,
    ATLAHS = 1 << ORR__MPI_CALLS_ATLAHS,
    ALL = OURS | LGS | ATLAHS
};

#define MESSAGE .count = {3, 0}, .size = {5, 0}, .peer = {7, 0}, .tag = {8, 0}, .comm = {9, 0}
#define REDUCTION .count = {4, 0}, .size = {6, 0}, .comm = {9, 0}
#define BOTH_WAYS .count = {3, 0}, .size = {5, 0}, .count2 = {8, 0}, .size2 = {10, 0}

static const mpi_call calls[] = {
    {"MPI_Init", NULL, MPI_INIT, ALL, .end = {4, 0}},
    {"MPI_Init_thread", NULL, MPI_INIT, OURS | ATLAHS, .end = {6, 0}},
    {"MPI_Finalize", NULL, MPI_FINALIZE, ALL, .end = {1, 0}},
    {"MPI_Comm_rank", NULL, MPI_IGNORED, ALL, .comm = {2, 0}},
    {"MPI_Comm_size", NULL, MPI_IGNORED, ALL, .comm = {2, 0}},
    {"MPI_Get_count", NULL, MPI_IGNORED, ALL, .end = {1, 0}},
    {"MPI_Iprobe", NULL, MPI_IGNORED, ALL, .end = {1, 0}},
    {"MPI_Testall", NULL, MPI_IGNORED, ALL, .end = {1, 0}},
    {"MPI_Test", NULL, MPI_IGNORED, ALL, .end = {1, 0}},
    {"MPI_Send", "send to", MPI_SEND, ALL, .end = {12, 0}, MESSAGE},
    {"MPI_Rsend", "rsend to", MPI_SEND, ALL, .end = {12, 0}, MESSAGE},
    {"MPI_Ssend", "rsend to", MPI_SEND, ALL, .end = {12, 0}, MESSAGE},
    {"MPI_Bsend", NULL, MPI_SEND, OURS, .end = {12, 0}, MESSAGE},
    {"MPI_Recv", "recv from", MPI_RECV, ALL, .end = {13, 0}, MESSAGE},
    {"MPI_Isend", "isend to", MPI_ISEND, ALL, .end = {13, 0}, MESSAGE, .request = {12, 0}},
    {"MPI_Issend", NULL, MPI_ISEND, OURS, .end = {13, 0}, MESSAGE, .request = {12, 0}},
    {"MPI_Irsend", NULL, MPI_ISEND, OURS, .end = {13, 0}, MESSAGE, .request = {12, 0}},
    {"MPI_Ibsend", NULL, MPI_ISEND, OURS, .end = {13, 0}, MESSAGE, .request = {12, 0}},
    {"MPI_Irecv", "irecv from", MPI_IRECV, ALL, .end = {13, 0}, MESSAGE, .request = {12, 0}},
    {"MPI_Sendrecv", NULL, MPI_SENDRECV, ALL, .end = {20, 0}, .count = {3, 0}, .size = {5, 0},
     .peer = {7, 0}, .tag = {8, 0}, .count2 = {10, 0}, .size2 = {12, 0}, .peer2 = {14, 0},
     .tag2 = {15, 0}, .comm = {16, 0}},
    {"MPI_Sendrecv_replace", NULL, MPI_SENDRECV, OURS, .end = {15, 0}, .count = {3, 0},
     .size = {5, 0}, .peer = {7, 0}, .tag = {8, 0}, .count2 = {3, 0}, .size2 = {5, 0},
     .peer2 = {9, 0}, .tag2 = {10, 0}, .comm = {11, 0}},
    {"MPI_Wait", NULL, MPI_WAIT, ALL, .end = {4, 0}, .request = {2, 0}},
    {"MPI_Waitall", NULL, MPI_WAITALL, ALL, .end = {5, 0}, .count = {2, 0}, .request = {3, 0}},
    {"MPI_Send_init", "Created persistent send to", MPI_SEND_INIT, OURS | ATLAHS, .end = {13, 0},
     MESSAGE, .request = {12, 0}},
    {"MPI_Recv_init", "Created persistent recv from", MPI_RECV_INIT, OURS | ATLAHS, .end = {13, 0},
     MESSAGE, .request = {12, 0}},
    {"MPI_Start", NULL, MPI_START, OURS | ATLAHS, .end = {3, 0}, .request = {2, 0}},
    {"MPI_Startall", NULL, MPI_STARTALL, OURS, .end = {4, 0}, .count = {2, 0}, .request = {3, 0}},
    {"MPI_Request_free", NULL, MPI_REQUEST_FREE, OURS | ATLAHS, .end = {3, 0}, .request = {2, 0}},
    {"MPI_Barrier", "Barrier", MPI_BARRIER, ALL, .end = {5, 0}, .comm = {2, 0}},
    {"MPI_Allreduce", "Allreduce", MPI_ALLREDUCE, ALL, .end = {12, 0}, REDUCTION},
    {"MPI_Iallreduce", "Iallreduce", MPI_IALLREDUCE, ALL, .end = {13, 0}, REDUCTION,
     .request = {12, 0}},
    {"MPI_Bcast", "Bcast", MPI_BCAST, ALL, .end = {11, 0}, .count = {3, 0}, .size = {5, 0},
     .peer = {7, 0}, .comm = {8, 0}},
    {"MPI_Allgather", "Allgather", MPI_ALLGATHER, ALL, .end = {15, 0}, BOTH_WAYS, .comm = {12, 0}},
    {"MPI_Reduce", "Reduce", MPI_REDUCE, ALL, .end = {13, 0}, .count = {4, 0}, .size = {6, 0},
     .peer = {9, 0}, .comm = {10, 0}},
    {"MPI_Alltoall", "Alltoall", MPI_ALLTOALL, ALL, .end = {15, 0}, BOTH_WAYS, .comm = {12, 0}},
    {"MPI_Scan", "Scan", MPI_SCAN, ALL, .end = {12, 0}, REDUCTION},
    {"MPI_Exscan", "Exscan", MPI_SCAN, ALL, .end = {12, 0}, REDUCTION},
    {"MPI_Gather", "Gather", MPI_GATHER, ALL, .end = {16, 0}, BOTH_WAYS, .peer = {12, 0},
     .comm = {13, 0}},
    {"MPI_Scatter", "Scatter", MPI_SCATTER, ALL, .end = {16, 0}, BOTH_WAYS, .peer = {12, 0},
     .comm = {13, 0}},
    {"MPI_Gatherv", "Gatherv", MPI_GATHERV, ALL, .end = {17, 2}, .count = {3, 0}, .size = {5, 0},
     .list = {9, 0}, .size2 = {11, 2}, .peer = {13, 2}, .comm = {14, 2}},
    {"MPI_Scatterv", "Scatterv", MPI_SCATTERV, ALL, .end = {17, 2}, .list = {4, 0}, .size = {6, 2},
     .count2 = {9, 2}, .size2 = {11, 2}, .peer = {13, 2}, .comm = {14, 2}},
    {"MPI_Allgatherv", "Allgatherv", MPI_ALLGATHERV, ALL, .end = {16, 2}, .count = {3, 0},
     .size = {5, 0}, .list = {9, 0}, .size2 = {11, 2}, .comm = {13, 2}},
    {"MPI_Alltoallv", "Alltoallv", MPI_ALLTOALLV, ALL, .end = {17, 4}, .list = {4, 0},
     .size = {6, 2}, .list2 = {10, 2}, .size2 = {12, 4}, .comm = {14, 4}},
    {"MPI_Alltoallw", NULL, MPI_NOT_EXPANDED, ALL, .end = {1, 0}},
    {"MPI_Reduce_scatter", "Reduce_scatter", MPI_REDUCE_SCATTER, OURS, .end = {12, 1},
     .list = {5, 0}, .size = {6, 1}, .comm = {9, 1}},
};

enum { CALLS = sizeof calls / sizeof *calls };

static const mpi_call *find_call(orr_str name, uint8_t whose)
{
    static const mpi_call unknown = {.kind = MPI_UNKNOWN};
    for (size_t i = 0; i < CALLS; i++) {
        if (orr_str_is(name, calls[i].name))
            return calls[i].known & 1 << whose ? &calls[i] : &unknown;
    }
    return &unknown;
}

orr_str sgen_mpi_line_name(const mpi_line *l)
{
    size_t n = 0;
    while (n < l->text.len && l->text.ptr[n] != ':' && l->text.ptr[n] != ' ')
        n++;
    return (orr_str){l->text.ptr, n};
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Field i is between starts[i - 1] and the separator before starts[i]; the last start is behind the
 * end. */
static orr_code find_fields(mpi_line *l, size_t from, orr_error *err)
{
    l->count = 0;
    for (size_t i = from; i <= l->text.len; i++) {
        if (i < l->text.len && l->text.ptr[i] != ':' && l->text.ptr[i] != ',')
            continue;
        if (!orr_grow(&l->starts, &l->room, l->count + 1))
            return orr_no_memory(err);
        l->starts[l->count++] = i + 1;
    }
    return ORR_OK;
}

static bool is_call_name(orr_str name)
{
    if (name.len < 5 || memcmp(name.ptr, "MPI_", 4) != 0)
        return false;
    for (size_t i = 4; i < name.len; i++) {
        const char c = name.ptr[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            c != '_')
            return false;
    }
    return true;
}

orr_code sgen_mpi_line_split(mpi_line *l, orr_str text, uint8_t whose, orr_error *err)
{
    while (text.len && is_blank(text.ptr[text.len - 1]))
        text.len--;
    l->text = text;
    l->call = NULL;
    l->count = 0;
    if (text.len == 0 || text.ptr[0] == '#')
        return ORR_OK;
    const orr_str name = sgen_mpi_line_name(l);
    if (!is_call_name(name)) {
        const orr_where at = orr_where_line(l->path, l->number, 1);
        return orr_fail(
            err, ORR_EINPUT, &at,
            "neither a comment, which begins with #, nor a call, which begins with MPI_");
    }
    l->call = find_call(name, whose);
    return find_fields(l, name.len, err);
}

static size_t number_of(const mpi_line *l, mpi_place p)
{
    return p.at + (size_t)p.times * l->ranks;
}

/* The last start belongs to no field. */
bool sgen_mpi_line_has(const mpi_line *l, mpi_place place)
{
    return place.at && number_of(l, place) < l->count;
}

orr_where sgen_mpi_line_where(const mpi_line *l, mpi_place p)
{
    const size_t i = number_of(l, p);
    const size_t at = i && i < l->count ? l->starts[i - 1] : l->text.len;
    return orr_where_line(l->path, l->number, (uint32_t)(at < UINT32_MAX ? at + 1 : UINT32_MAX));
}

static orr_code take_field(const mpi_line *l, mpi_place p, orr_str *out, orr_error *err)
{
    const size_t i = number_of(l, p);
    if (i >= l->count) {
        const orr_where at = sgen_mpi_line_where(l, p);
        return orr_fail(err, ORR_EINPUT, &at, "%s has %zu values, and %zu are expected at least",
                        l->call->name, l->count - 1, number_of(l, l->call->end));
    }
    size_t from = l->starts[i - 1], to = l->starts[i] - 1;
    while (from < to && is_blank(l->text.ptr[from]))
        from++;
    while (to > from && is_blank(l->text.ptr[to - 1]))
        to--;
    *out = (orr_str){l->text.ptr + from, to - from};
    return ORR_OK;
}

static orr_code not_a(const mpi_line *l, mpi_place p, orr_str s, const char *what, orr_error *err)
{
    const orr_where at = sgen_mpi_line_where(l, p);
    return orr_fail(err, ORR_EINPUT, &at, "%s: '%.*s' is not %s", l->call->name,
                    (int)(s.len < 40 ? s.len : 40), s.ptr, what);
}

orr_code sgen_mpi_line_time(const mpi_line *l, mpi_place p, double *out, orr_error *err)
{
    orr_str s;
    const orr_code code = take_field(l, p, &s, err);
    if (code)
        return code;
    /* Beyond 2^60 microseconds differences of times mean nothing. */
    if (!orr_text_double(s, out) || !(*out >= 0 && *out < 1152921504606846976.0))
        return not_a(l, p, s, "a time in microseconds", err);
    return ORR_OK;
}

orr_code sgen_mpi_line_u64(const mpi_line *l, mpi_place p, uint64_t *out, orr_error *err)
{
    orr_str s;
    int64_t negative;
    const orr_code code = take_field(l, p, &s, err);
    if (code || orr_text_u64(s, out))
        return code;
    if (!orr_text_i64(s, &negative))
        return not_a(l, p, s, "a whole number", err);
    *out = (uint64_t)negative;
    return ORR_OK;
}

orr_code sgen_mpi_line_int(const mpi_line *l, mpi_place p, int32_t *out, orr_error *err)
{
    orr_str s;
    int64_t v;
    const orr_code code = take_field(l, p, &s, err);
    if (code)
        return code;
    if (!orr_text_i64(s, &v) || v < INT32_MIN || v > INT32_MAX)
        return not_a(l, p, s, "a whole number of 32 bits", err);
    *out = (int32_t)v;
    return ORR_OK;
}

orr_code sgen_mpi_line_bytes(
    const mpi_line *l, mpi_place count, mpi_place size, uint64_t *out, orr_error *err)
{
    int32_t n = 0, each = 0;
    orr_code code = sgen_mpi_line_int(l, count, &n, err);
    if (code || (code = sgen_mpi_line_int(l, size, &each, err)))
        return code;
    if (n < 0 || each < 0) {
        const orr_where at = sgen_mpi_line_where(l, n < 0 ? count : size);
        return orr_fail(err, ORR_EINPUT, &at, "%s: %d elements of %d bytes", l->call->name, n,
                        each);
    }
    *out = (uint64_t)n * (uint64_t)each;
    return ORR_OK;
}
