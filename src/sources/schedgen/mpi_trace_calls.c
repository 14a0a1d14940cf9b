/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_trace_calls.c - from calls to operations: messages, waits, and the time between (goal.md 4).
 *
 * A call's message comes first in the text; then the calculation for the time before the call,
 * which the message depends on and which depends on the call before.  A non-blocking call is
 * followed with irequires, and completed by MPI_Wait. The order of lines and the arithmetic on
 * times are SchedGen's. */
#include "mpi_trace_impl.h"
#include "schedgen_impl.h"

#include "base/text/number.h"
#include "base/text/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* ==== the calls by name with the positions of their arguments; fields and their values
 * (goal.md 4).
 *
 *     MPI_Send:1237666053149864.000000:11251872:4500:11,8,8:1:7000:0,0,4:1237666053150082.000000
 *              start                   buffer   count type  to tag  comm  end
 *
 * liballprof prints a datatype as handle, size and extent, a communicator as handle, rank and
 * ranks, a list of counts as its address and its elements, everything else as one number. SchedGen
 * knows calls by a hash of 14 characters, in which MPI_Ssend is MPI_Rsend; the rest of its
 * collisions (MPI_Ibarrier is MPI_Finalize) are not kept. */

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

static orr_str line_name(const mpi_line *l)
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

/* Field i is between starts[i - 1] and the separator before starts[i]; the last start is past the
 * end. */
static orr_code find_fields(mpi_line *l, size_t from, orr_error *err)
{
    l->count = 0;
    for (size_t i = from; i <= l->text.len; i++) {
        if (i < l->text.len && l->text.ptr[i] != ':' && l->text.ptr[i] != ',')
            continue;
        if (!orr_push(l->starts, l->count, l->room, i + 1))
            return orr_no_memory(err);
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
    const orr_str name = line_name(l);
    if (!is_call_name(name))
        return orr_fail(
            err, ORR_EINPUT, ORR_AT(orr_where_line(l->path, l->number, 1)),
            "neither a comment, which begins with #, nor a call, which begins with MPI_");
    l->call = find_call(name, whose);
    return find_fields(l, name.len, err);
}

static size_t number_of(const mpi_line *l, mpi_place p)
{
    return p.at + (size_t)p.times * l->ranks;
}

/* The last start is past the end and belongs to no field. */
static bool line_has(const mpi_line *l, mpi_place place)
{
    return place.at && number_of(l, place) < l->count;
}

/* An error that points to a field. */
static orr_where line_where(const mpi_line *l, mpi_place p)
{
    const size_t i = number_of(l, p);
    const size_t at = i && i < l->count ? l->starts[i - 1] : l->text.len;
    return orr_where_line(l->path, l->number, (uint32_t)(at < UINT32_MAX ? at + 1 : UINT32_MAX));
}

static orr_code take_field(const mpi_line *l, mpi_place p, orr_str *out, orr_error *err)
{
    const size_t i = number_of(l, p);
    if (i >= l->count) {
        const orr_where at = line_where(l, p);
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
    return orr_fail(err, ORR_EINPUT, ORR_AT(line_where(l, p)), "%s: '%.*s' is not %s",
                    l->call->name, ORR_SHOWN(s, 40), what);
}

/* Values of fields.  Negative handles and addresses wrap into 64 bits. */
static orr_code line_time(const mpi_line *l, mpi_place p, double *out, orr_error *err)
{
    orr_str s;
    const orr_code code = take_field(l, p, &s, err);
    if (code)
        return code;
    /* Beyond 2^60 microseconds a double cannot resolve differences of times. */
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

static orr_code line_int(const mpi_line *l, mpi_place p, int32_t *out, orr_error *err)
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

/* A count of elements of a size: bytes. */
static orr_code line_bytes(
    const mpi_line *l, mpi_place count, mpi_place size, uint64_t *out, orr_error *err)
{
    int32_t n = 0, each = 0;
    orr_code code = line_int(l, count, &n, err);
    if (code || (code = line_int(l, size, &each, err)))
        return code;
    if (n < 0 || each < 0)
        return orr_fail(err, ORR_EINPUT, ORR_AT(line_where(l, n < 0 ? count : size)),
                        "%s: %d elements of %d bytes", l->call->name, n, each);
    *out = (uint64_t)n * (uint64_t)each;
    return ORR_OK;
}

static orr_code rank_advance(mpi_rank *r, double time, double end, orr_error *err);
static orr_code rank_next(mpi_rank *r, uint64_t label, orr_error *err);
static orr_code rank_request(mpi_rank *r, uint64_t request, uint64_t label, orr_error *err);
static orr_code rank_tag(mpi_rank *r, int32_t tag, uint64_t *out, orr_error *err);

/* Collectives of a trace, expanded into messages (goal.md 4).
 *
 *     messages of the collective      those that wait for none of them wait for the time before
 *     calc 0                          waits for those none of them waits for: the end of the collective
 *
 * What SchedGen expands is expanded as it does; the others only by our rules, each in the simplest
 * way that moves the bytes stated in the rank's own line. */

enum { FIRST_TAG = 1000000 };

/* From the line; sizes are those of one message. */
typedef struct collective {
    double begin, end;
    uint64_t bytes;  /* sent to each */
    uint64_t bytes2; /* received from each */
    uint32_t root;
    uint32_t rank, n; /* in the schedule */
} collective;

static bool has_root(mpi_kind kind)
{
    return kind == MPI_BCAST || kind == MPI_REDUCE || kind == MPI_GATHER || kind == MPI_SCATTER ||
           kind == MPI_GATHERV || kind == MPI_SCATTERV;
}

static orr_code read_root(const mpi_rank *r, collective *c, orr_error *err)
{
    const mpi_place place = r->line.call->peer;
    int32_t root;
    const orr_code code = line_int(&r->line, place, &root, err);
    if (code)
        return code;
    if (root < 0 || (uint32_t)root >= r->run->hosts)
        return orr_fail(err, ORR_EINPUT, ORR_AT(line_where(&r->line, place)),
                        "%s: the root, %d, is not one of the ranks 0 to %u", r->line.call->name,
                        root, r->run->hosts - 1);
    c->root = (uint32_t)root;
    return ORR_OK;
}

static orr_code read_collective(const mpi_rank *r, collective *c, orr_error *err)
{
    const mpi_call *call = r->line.call;
    orr_code code = line_time(&r->line, (mpi_place){1, 0}, &c->begin, err);
    *c = (collective){
        .begin = c->begin, .rank = sgen_mpi_number(r), .n = r->run->hosts * r->run->copies};
    if (!code)
        code = line_time(&r->line, call->end, &c->end, err);
    if (!code && call->count.at)
        code = line_bytes(&r->line, call->count, call->size, &c->bytes, err);
    if (!code && call->count2.at)
        code = line_bytes(&r->line, call->count2, call->size2, &c->bytes2, err);
    if (!code && has_root(call->kind))
        code = read_root(r, c, err);
    return code;
}

/* ---- lists of counts ---- */

/* Bytes to or from a rank of the schedule; copies of a rank share its count. */
static orr_code listed_bytes(
    const mpi_rank *r, mpi_place list, mpi_place size, uint32_t rank, uint64_t *out, orr_error *err)
{
    mpi_line line = r->line; /* an mpi_place counts to 255; lists are longer */
    const uint32_t skip = rank % r->run->hosts;
    const size_t first = list.at + (size_t)list.times * line.ranks;
    line.starts += first + skip - 1;
    line.count -= first + skip - 1;
    int32_t n = 0, each = 0;
    orr_code code = line_int(&line, (mpi_place){1, 0}, &n, err);
    if (code || (code = line_int(&r->line, size, &each, err)))
        return code;
    if (n < 0 || each < 0) {
        const orr_where at = line_where(&line, (mpi_place){1, 0});
        return orr_fail(err, ORR_EINPUT, &at, "%s: %d elements of %d bytes", r->line.call->name, n,
                        each);
    }
    *out = (uint64_t)n * (uint64_t)each;
    return ORR_OK;
}

/* All-to-all in n - 1 steps; sizes from lists, or equal if there is none. */
static orr_code exchange_all(const mpi_rank *r,
                             const collective *c,
                             mpi_place out_list,
                             mpi_place in_list,
                             mpi_place in_size,
                             orr_error *err)
{
    orr_code code = ORR_OK;
    for (uint32_t i = 1; i < c->n && !code; i++) {
        const uint32_t to = (uint32_t)(((uint64_t)c->rank + i) % c->n);
        const uint32_t from = (uint32_t)(((uint64_t)c->rank + c->n - i) % c->n);
        uint64_t out = c->bytes, in = c->bytes2;
        if (out_list.at)
            code = listed_bytes(r, out_list, r->line.call->size, to, &out, err);
        if (!code && in_list.at)
            code = listed_bytes(r, in_list, in_size, from, &in, err);
        if (code)
            return code;
        sgen_gpen_send(r->run->pen, out, to);
        sgen_gpen_recv(r->run->pen, in, from);
    }
    return code;
}

/* All to the root, or the root to all; sizes from the list if there is one. */
static orr_code star(const mpi_rank *r, const collective *c, bool is_gather, orr_error *err)
{
    const mpi_call *call = r->line.call;
    goal_pen *pen = r->run->pen;
    if (c->rank != c->root) {
        if (is_gather)
            sgen_gpen_send(pen, c->bytes, c->root);
        else
            sgen_gpen_recv(pen, c->bytes2, c->root);
        return ORR_OK;
    }
    for (uint32_t peer = 0; peer < c->n; peer++) {
        uint64_t bytes = is_gather ? c->bytes2 : c->bytes;
        if (peer == c->root)
            continue;
        const orr_code code =
            call->list.at ? listed_bytes(r, call->list, is_gather ? call->size2 : call->size, peer,
                                         &bytes, err)
                          : ORR_OK;
        if (code)
            return code;
        (is_gather ? sgen_gpen_recv : sgen_gpen_send)(pen, bytes, peer);
    }
    return ORR_OK;
}

/* Rank r gets the sum of the ranks below it in log2 steps; no wrap-around. */
static void scan(goal_pen *pen, const collective *c)
{
    uint64_t recv = 0;
    for (uint64_t dist = 1; dist < c->n; dist *= 2) {
        if (c->rank + dist < c->n) {
            const uint64_t send = sgen_gpen_send(pen, c->bytes, (int64_t)(c->rank + dist));
            if (recv)
                sgen_gpen_require(pen, send, recv);
        }
        if (c->rank >= dist)
            recv = sgen_gpen_recv(pen, c->bytes, (int64_t)(c->rank - dist));
    }
}

/* A rank's own part of a reduce-scatter: from each other rank as much as it keeps. */
static orr_code reduce_scatter(const mpi_rank *r, collective *c, orr_error *err)
{
    const mpi_call *call = r->line.call;
    const mpi_place none = {0, 0};
    const orr_code code = listed_bytes(r, call->list, call->size, c->rank, &c->bytes2, err);
    return code ? code : exchange_all(r, c, call->list, none, none, err);
}

static orr_code put_messages(const mpi_rank *r, collective *c, orr_error *err)
{
    goal_pen *pen = r->run->pen;
    const mpi_call *call = r->line.call;
    const mpi_place none = {0, 0};
    switch (call->kind) {
    case MPI_BARRIER:
        sgen_dissemination(pen, c->rank, c->n, 1);
        break;
    case MPI_ALLREDUCE:
        if (r->run->rules->doubles_all_reduce)
            sgen_recursive_doubling(pen, c->rank, c->n, c->bytes);
        else
            sgen_dissemination(pen, c->rank, c->n, c->bytes);
        break;
    case MPI_IALLREDUCE:
    case MPI_ALLGATHER:
        sgen_dissemination(pen, c->rank, c->n, c->bytes);
        break;
    case MPI_BCAST:
        sgen_binomial_bcast(pen, c->root, c->rank, c->n, c->bytes);
        break;
    case MPI_REDUCE:
        sgen_binomial_reduce(pen, c->root, c->rank, c->n, c->bytes);
        break;
    case MPI_ALLTOALL:
        sgen_linear_alltoall(pen, c->rank, c->n, c->bytes);
        break;
    case MPI_SCAN:
        scan(pen, c);
        break;
    case MPI_GATHER:
    case MPI_GATHERV:
        return star(r, c, true, err);
    case MPI_SCATTER:
    case MPI_SCATTERV:
        return star(r, c, false, err);
    case MPI_ALLGATHERV:
        return exchange_all(r, c, none, call->list, call->size2, err);
    case MPI_ALLTOALLV:
        return exchange_all(r, c, call->list, call->list2, call->size2, err);
    default:
        return reduce_scatter(r, c, err);
    }
    return ORR_OK;
}

/* ---- before and after ---- */

/* Start earlier if there is time (--traces-nbcify): the collective overlaps the end of the time
 * before it.  SchedGen takes microseconds for units of the schedule here; ours does not. */
static double begin_early(const mpi_rank *r, const collective *c, uint64_t end_label)
{
    const uint32_t wanted = r->run->opt->early_us;
    const double earliest = c->begin - wanted;
    double early = wanted, begin = earliest;
    if (earliest - r->start < 0) {
        begin = r->start;
        early = c->begin - begin;
        if (sgen_mpi_is_talkative(r->run))
            sgen_mpi_say(r->run, "nbcify shortened from %u to %.*g", wanted, r->run->digits, early);
    }
    uint64_t units = early > 0 ? (uint64_t)early : 0;
    if (!r->run->rules->has_early_units)
        units *= r->run->time_mult;
    if (units) {
        const uint64_t beside = sgen_gpen_calc_on(r->run->pen, units, r->run->opt->cpu);
        sgen_gpen_irequire(r->run->pen, beside, end_label);
    }
    return begin;
}

static orr_code finish(mpi_rank *r, const collective *c, uint64_t *label, orr_error *err)
{
    goal_pen *pen = r->run->pen;
    orr_code code = ORR_OK;
    *label = sgen_gpen_calc(pen, 0);
    for (size_t i = 0; i < pen->marks.len; i++) {
        if (pen->marks.ptr[i] & ORR__PEN_LAST)
            sgen_gpen_require(pen, *label, pen->base + i);
    }
    for (size_t i = 0; i < pen->marks.len && !code; i++) {
        if (pen->marks.ptr[i] & ORR__PEN_FIRST)
            code = rank_next(r, pen->base + i, err);
    }
    if (code)
        return code;
    const double begin = begin_early(r, c, *label);
    if ((code = rank_advance(r, begin, c->end, err)))
        return code;
    r->before[r->before_count++] = *label;
    return ORR_OK;
}

static void say_collective(const mpi_rank *r, const collective *c, int32_t ranks)
{
    const mpi_kind kind = r->line.call->kind;
    char name[24], size[32] = "", root[24] = "";
    if (!sgen_mpi_is_talkative(r->run))
        return;
    /* SchedGen uses the blocking call's name for the non-blocking one. */
    snprintf(name, sizeof name, "%s", kind == MPI_IALLREDUCE ? "allreduce" : r->line.call->word);
    if (name[0] >= 'A' && name[0] <= 'Z')
        name[0] = (char)(name[0] - 'A' + 'a');
    if (kind != MPI_BARRIER)
        snprintf(size, sizeof size, " size: %llu", (unsigned long long)c->bytes);
    if (has_root(kind))
        snprintf(root, sizeof root, " root: %u", c->root);
    sgen_mpi_say(r->run, " %s %llu (%d) time %.*g%s%s", name, (unsigned long long)r->collectives,
                 ranks, r->run->digits, c->end - c->begin, size, root);
}

/* SchedGen knows these calls and leaves them out.  Lists of counts are useless if not printed or of
 * another number of ranks: the line is then too short. */
static bool is_expanded(const mpi_rank *r)
{
    const mpi_kind kind = r->line.call->kind;
    if (kind == MPI_NOT_EXPANDED)
        return false;
    if (kind >= MPI_SCAN && r->run->rules->has_few_collectives)
        return false;
    const mpi_place end = r->line.call->end;
    return !r->line.call->list.at ||
           (line_has(&r->line, end) && !line_has(&r->line, sgen_mpi_after(end, 1)));
}

static void leave_out(const mpi_rank *r)
{
    orr_mpi_trace_remarks *m = r->run->remarks;
    const orr_str name = line_name(&r->line);
    if (r->copy == 0 && m->not_expanded++ == 0)
        snprintf(m->not_expanded_name, sizeof m->not_expanded_name, "%.*s", (int)name.len,
                 name.ptr);
}

static orr_code tag_collective(mpi_rank *r, orr_error *err)
{
    const uint64_t number = FIRST_TAG + r->collectives;
    uint64_t tag = number;
    orr_code code = ORR_OK;
    if (r->line.call->kind != MPI_IALLREDUCE) /* SchedGen forgets the communicator here */
        code = rank_tag(r, (int32_t)(uint32_t)number, &tag, err);
    r->run->pen->tag = tag;
    return code;
}

static void comment(const mpi_rank *r, const char *name, const char *when)
{
    char words[64];
    if (!sgen_mpi_is_talkative(r->run))
        return;
    snprintf(words, sizeof words, "%s %s", name, when);
    sgen_gpen_comment(r->run->pen, words);
}

static orr_code take_apart(mpi_rank *r, collective *c, uint64_t *label, orr_error *err)
{
    comment(r, r->line.call->word, "begin");
    orr_code code = tag_collective(r, err);
    if (code)
        return code;
    sgen_gpen_open(r->run->pen);
    code = put_messages(r, c, err);
    sgen_gpen_close(r->run->pen);
    if (!code)
        code = finish(r, c, label, err);
    comment(r, r->line.call->word, "end");
    return code;
}

/* A collective that the line has. */
static orr_code rank_collective(mpi_rank *r, orr_error *err)
{
    const mpi_call *call = r->line.call;
    collective c;
    int32_t ranks;
    uint64_t label = 0, request;
    if (!is_expanded(r)) {
        leave_out(r);
        return ORR_OK;
    }
    orr_code code = line_int(&r->line, sgen_mpi_after(call->comm, 2), &ranks, err);
    if (code || (code = read_collective(r, &c, err)))
        return code;
    say_collective(r, &c, ranks);
    if (ranks != (int32_t)r->run->hosts) {
        r->run->remarks->sub_communicators += r->copy == 0;
        return ORR_OK;
    }
    if ((code = take_apart(r, &c, &label, err)))
        return code;
    r->collectives++;
    if (!call->request.at)
        return ORR_OK;
    code = sgen_mpi_line_u64(&r->line, call->request, &request, err);
    return code ? code : rank_request(r, request, label, err);
}

/* ---- calls ---- */

enum { MAX_REQUESTS = 1 << 20, TALK = 400 };

void sgen_mpi_say(const mpi_run *run, const char *fmt, ...)
{
    char line[TALK];
    va_list args;
    if (!run->opt->talk)
        return;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    run->opt->talk(run->opt->talk_context, line);
}

static bool is_mpich(const mpi_run *run)
{
    if (run->opt->library == ORR_MPI_DEFAULT)
        return run->rules->has_mpich_numbers;
    return run->opt->library == ORR_MPI_MPICH;
}

/* ---- time ---- */

static orr_code to_units(const mpi_rank *r, double us, uint64_t *out, orr_error *err)
{
    const double v = round(us * r->run->time_mult);
    if (v < 18446744073709549568.0) {
        *out = (uint64_t)v;
        return ORR_OK;
    }
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_line(r->line.path, r->line.number, 1)),
                    "%g microseconds since the call before are too many", us);
}

/* SchedGen writes a negative time as a very large one; ours clamps it to 0. */
static double gap_before(mpi_rank *r, double time, double end)
{
    const double gap = time - r->start;
    if (gap >= 0)
        return gap;
    r->run->remarks->backward += r->copy == 0;
    sgen_mpi_say(r->run, "negative operation time (time=%.*g this->start=%.*g end=%.*g)",
                 r->run->digits, gap, r->run->digits, r->start, r->run->digits, end);
    return 0;
}

/* The time until `time` is computation; the next begins at `end`. */
static orr_code rank_advance(mpi_rank *r, double time, double end, orr_error *err)
{
    goal_pen *pen = r->run->pen;
    uint64_t units = 0;
    const orr_code code = to_units(r, gap_before(r, time, end), &units, err);
    if (code)
        return code;
    if (sgen_mpi_is_talkative(r->run))
        sgen_mpi_say(r->run, " loclop: %llu", (unsigned long long)units);
    const uint64_t op = sgen_gpen_calc_on(pen, units, r->run->opt->cpu);
    for (size_t i = 0; i < r->next_count; i++)
        sgen_gpen_require(pen, r->next[i], op);
    for (unsigned i = 0; i < r->before_count; i++) {
        if (r->before_is_start)
            sgen_gpen_irequire(pen, op, r->before[i]);
        else
            sgen_gpen_require(pen, op, r->before[i]);
    }
    r->next_count = 0;
    r->before_count = 0;
    r->before_is_start = false;
    r->start = end;
    return ORR_OK;
}

static orr_code rank_next(mpi_rank *r, uint64_t label, orr_error *err)
{
    return orr_push(r->next, r->next_count, r->next_room, label) ? ORR_OK : orr_no_memory(err);
}

/* One operation that depends on the time before it, and on which the next one depends. */
static orr_code step(
    mpi_rank *r, uint64_t label, double begin, double end, bool goes_on, orr_error *err)
{
    orr_code code = rank_next(r, label, err);
    if (code || (code = rank_advance(r, begin, end, err)))
        return code;
    r->before[r->before_count++] = label;
    r->before_is_start = goes_on;
    return ORR_OK;
}

static orr_code read_times(const mpi_rank *r, double *begin, double *end, orr_error *err)
{
    const orr_code code = line_time(&r->line, (mpi_place){1, 0}, begin, err);
    return code ? code : line_time(&r->line, r->line.call->end, end, err);
}

/* ---- requests ---- */

static orr_code rank_request(mpi_rank *r, uint64_t request, uint64_t label, orr_error *err)
{
    if (label > UINT32_MAX)
        return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_line(r->line.path, r->line.number, 1)),
                        "more than 4,294,967,295 operations in one rank");
    return orr_map_put(r->requests, request, (uint32_t)label, NULL) ? ORR_OK : orr_no_memory(err);
}

static orr_code read_request(
    const mpi_rank *r, uint64_t *request, double *begin, double *end, orr_error *err)
{
    const orr_code code = sgen_mpi_line_u64(&r->line, r->line.call->request, request, err);
    return code ? code : read_times(r, begin, end, err);
}

static orr_code wait_one(mpi_rank *r, orr_error *err)
{
    double begin, end;
    uint64_t request;
    const orr_code code = read_request(r, &request, &begin, &end, err);
    if (code)
        return code;
    const uint32_t started = orr_map_find(r->requests, request, 0);
    if (!started)
        return ORR_OK; /* waited for before, or of no rank */
    if (sgen_mpi_is_talkative(r->run)) {
        sgen_mpi_say(r->run, " wait  time %.*g req: %llu", r->run->digits, end - begin,
                     (unsigned long long)request);
        sgen_gpen_comment(r->run->pen, "wait");
    }
    const uint64_t label = sgen_gpen_calc(r->run->pen, 0);
    sgen_gpen_require(r->run->pen, label, started);
    orr_map_remove(r->requests, request);
    return step(r, label, begin, end, false, err);
}

/* A list of requests: how many, and where the first is. */
static orr_code read_requests(const mpi_rank *r, uint64_t *first, uint32_t *count, orr_error *err)
{
    int32_t n;
    orr_code code = line_int(&r->line, r->line.call->count, &n, err);
    if (code || (code = sgen_mpi_line_u64(&r->line, r->line.call->request, first, err)))
        return code;
    if (n < 0 || n > MAX_REQUESTS)
        return orr_fail(err, ORR_EINPUT, ORR_AT(line_where(&r->line, r->line.call->count)),
                        "%s: %d requests; 0 to %d are possible", r->line.call->name, n,
                        MAX_REQUESTS);
    *count = (uint32_t)n;
    return ORR_OK;
}

/* SchedGen forgets the first request only.  A later wait at the same address may find a completed
 * one: an extra edge without effect, which is kept. */
static orr_code wait_all(mpi_rank *r, orr_error *err)
{
    const uint64_t step_bytes = is_mpich(r->run) ? 4 : 8;
    double begin, end;
    uint64_t first;
    uint32_t count;
    orr_code code = read_requests(r, &first, &count, err);
    if (code || (code = read_times(r, &begin, &end, err)))
        return code;
    if (sgen_mpi_is_talkative(r->run))
        sgen_mpi_say(r->run, " waitall  time %.*g req: %llu nreqs: %u", r->run->digits, end - begin,
                     (unsigned long long)first, count);
    const uint64_t label = sgen_gpen_calc(r->run->pen, 0);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t request = first + i * step_bytes;
        const uint32_t started = orr_map_find(r->requests, request, 0);
        if (!started)
            continue;
        if (sgen_mpi_is_talkative(r->run))
            sgen_mpi_say(r->run, " resolving req %llu", (unsigned long long)request);
        sgen_gpen_require(r->run->pen, label, started);
    }
    orr_map_remove(r->requests, first);
    return step(r, label, begin, end, false, err);
}

/* ---- messages ---- */

/* The number of a communicator for tags: its handle, or its index in order of first use. */
static orr_code communicator_of(mpi_rank *r, uint32_t handle, uint32_t *out, orr_error *err)
{
    bool is_new = false;
    *out = handle;
    if (!r->run->counts_communicators)
        return ORR_OK;
    *out = orr_map_find(r->communicators, handle, UINT32_MAX);
    if (*out != UINT32_MAX)
        return ORR_OK;
    *out = r->communicator_count++ & 0xff; /* as many as fit */
    return orr_map_put(r->communicators, handle, *out, &is_new) ? ORR_OK : orr_no_memory(err);
}

/* The communicator's low eight bits above the tag.  LogGOPSim prints a negative sum as 64 bits, of
 * which readers take 32. */
static orr_code join_tag(mpi_rank *r, uint32_t handle, int32_t tag, uint64_t *out, orr_error *err)
{
    uint32_t number = 0;
    const orr_code code = communicator_of(r, handle, &number, err);
    const uint32_t both = number << 24 | (uint32_t)tag;
    *out = r->run->rules->has_signed_tags ? (uint64_t)(int64_t)(int32_t)both : both;
    return code;
}

/* The communicator in the line's field: its number for tags. */
static orr_code rank_tag(mpi_rank *r, int32_t tag, uint64_t *out, orr_error *err)
{
    uint64_t handle;
    const orr_code code = sgen_mpi_line_u64(&r->line, r->line.call->comm, &handle, err);
    return code ? code : join_tag(r, (uint32_t)handle, tag, out, err);
}

/* A rank of the trace as a rank of the schedule; -1: any. */
static orr_code peer_of(
    mpi_rank *r, mpi_place place, bool may_be_any, int64_t *out, bool *is_nobody, orr_error *err)
{
    const int32_t any = is_mpich(r->run) ? -2 : -1, nobody = is_mpich(r->run) ? -1 : -2;
    int32_t peer;
    const orr_code code = line_int(&r->line, place, &peer, err);
    if (code)
        return code;
    *is_nobody = peer == nobody;
    r->run->remarks->nobody += *is_nobody && r->copy == 0;
    *out = -1;
    if (*is_nobody || (peer == any && may_be_any))
        return ORR_OK;
    if (peer < 0 || (uint32_t)peer >= r->run->hosts)
        return orr_fail(err, ORR_EINPUT, ORR_AT(line_where(&r->line, place)),
                        "%s: rank %d is not one of the ranks 0 to %u", r->line.call->name, peer,
                        r->run->hosts - 1);
    *out = (int64_t)peer + (int64_t)r->run->hosts * r->copy;
    return ORR_OK;
}

static orr_code read_tag(
    const mpi_rank *r, mpi_place place, bool may_be_any, int32_t *out, orr_error *err)
{
    const orr_code code = line_int(&r->line, place, out, err);
    if (code || *out >= 0 || (may_be_any && *out == -1))
        return code;
    return orr_fail(err, ORR_EINPUT, ORR_AT(line_where(&r->line, place)), "%s: %d is not a tag",
                    r->line.call->name, *out);
}

static orr_code count_sub_messages(mpi_rank *r, orr_error *err)
{
    int32_t ranks;
    const orr_code code = line_int(&r->line, sgen_mpi_after(r->line.call->comm, 2), &ranks, err);
    if (!code && ranks != (int32_t)r->run->hosts)
        r->run->remarks->sub_messages += r->copy == 0;
    return code;
}

/* What most calls that send or receive have. */
typedef struct message {
    double begin, end;
    uint64_t bytes, tag;
    int64_t peer;
    bool is_nobody, is_send;
    int32_t user_tag;
    uint64_t request;
} message;

static orr_code read_message(mpi_rank *r, bool is_send, message *m, orr_error *err)
{
    const mpi_call *c = r->line.call;
    orr_code code;
    m->is_send = is_send;
    m->request = 0;
    if ((code = read_times(r, &m->begin, &m->end, err)) ||
        (code = line_bytes(&r->line, c->count, c->size, &m->bytes, err)) ||
        (code = peer_of(r, c->peer, !is_send, &m->peer, &m->is_nobody, err)) ||
        (code = read_tag(r, c->tag, !is_send, &m->user_tag, err)) ||
        (code = count_sub_messages(r, err)))
        return code;
    return c->request.at ? sgen_mpi_line_u64(&r->line, c->request, &m->request, err) : ORR_OK;
}

static void say_message(const mpi_rank *r, const message *m)
{
    char request[40] = "";
    int32_t peer = 0;
    if (!sgen_mpi_is_talkative(r->run) || !r->line.call->word)
        return;
    if (r->line.call->request.at)
        snprintf(request, sizeof request, " req %llu", (unsigned long long)m->request);
    if (line_int(&r->line, r->line.call->peer, &peer, NULL))
        return;
    sgen_mpi_say(r->run, " %s %d time: %.*g size: %llu tag: %d%s", r->line.call->word, peer,
                 r->run->digits, m->end - m->begin, (unsigned long long)m->bytes, m->user_tag,
                 request);
}

/* "rsend to" -> "Rsend", as in SchedGen's comments. */
static void comment_name(const mpi_call *c, char out[24])
{
    const char *from = c->word ? c->word : c->name + 4;
    size_t n = 0;
    for (; from[n] && from[n] != ' ' && n < 23; n++)
        out[n] = from[n];
    out[n] = '\0';
    if (out[0] >= 'a' && out[0] <= 'z')
        out[0] = (char)(out[0] - 'a' + 'A');
}

static uint64_t put_message(mpi_rank *r, const message *m)
{
    r->run->pen->tag = m->tag;
    return m->is_send ? sgen_gpen_send(r->run->pen, m->bytes, m->peer)
                      : sgen_gpen_recv(r->run->pen, m->bytes, m->peer);
}

static orr_code one_message(mpi_rank *r, bool is_send, bool goes_on, orr_error *err)
{
    char name[24];
    message m;
    orr_code code = read_message(r, is_send, &m, err);
    if (code || m.is_nobody)
        return code;
    if ((code = rank_tag(r, m.user_tag, &m.tag, err)))
        return code;
    say_message(r, &m);
    comment_name(r->line.call, name);
    comment(r, name, "begin");
    const uint64_t label = put_message(r, &m);
    if (goes_on && (code = rank_request(r, m.request, label, err)))
        return code;
    comment(r, name, "end");
    return step(r, label, m.begin, m.end, goes_on, err);
}

/* SchedGen receives with the tag it sends with.  That is kept where it can be right: if the two are
 * equal, or the receive takes any. */
static orr_code tags_of_both(mpi_rank *r, int32_t *send, int32_t *recv, orr_error *err)
{
    const mpi_call *c = r->line.call;
    const orr_code code = read_tag(r, c->tag, false, send, err);
    if (code)
        return code;
    const orr_code code2 = read_tag(r, c->tag2, true, recv, err);
    if (!code2 && *recv < 0 && r->run->rules->has_one_sendrecv_tag)
        *recv = *send;
    return code2;
}

static orr_code read_both(mpi_rank *r, message *s, message *v, orr_error *err)
{
    const mpi_call *c = r->line.call;
    orr_code code;
    *s = (message){.is_send = true};
    *v = (message){.is_send = false};
    if ((code = read_times(r, &s->begin, &s->end, err)) ||
        (code = line_bytes(&r->line, c->count, c->size, &s->bytes, err)) ||
        (code = line_bytes(&r->line, c->count2, c->size2, &v->bytes, err)) ||
        (code = peer_of(r, c->peer, false, &s->peer, &s->is_nobody, err)) ||
        (code = peer_of(r, c->peer2, true, &v->peer, &v->is_nobody, err)) ||
        (code = tags_of_both(r, &s->user_tag, &v->user_tag, err)) ||
        (code = count_sub_messages(r, err)) || (code = rank_tag(r, s->user_tag, &s->tag, err)))
        return code;
    return rank_tag(r, v->user_tag, &v->tag, err);
}

static void say_both(const mpi_rank *r, const message *s, const message *v)
{
    int32_t to, from, tag;
    const mpi_call *c = r->line.call;
    if (!sgen_mpi_is_talkative(r->run) || line_int(&r->line, c->peer, &to, NULL) ||
        line_int(&r->line, c->peer2, &from, NULL) || line_int(&r->line, c->tag2, &tag, NULL))
        return;
    sgen_mpi_say(r->run,
                 " sendrecv - send to %d size: %llu tag: %d; recv from %d size: %llu tag: %d; "
                 "time: %.*g",
                 to, (unsigned long long)s->bytes, s->user_tag, from, (unsigned long long)v->bytes,
                 tag, r->run->digits, s->end - s->begin);
}

static orr_code both_messages(mpi_rank *r, orr_error *err)
{
    message parts[2];
    uint64_t labels[2];
    unsigned count = 0;
    orr_code code = read_both(r, &parts[0], &parts[1], err);
    if (code || (parts[0].is_nobody && parts[1].is_nobody))
        return code;
    say_both(r, &parts[0], &parts[1]);
    comment(r, "Sendrecv", "begin");
    for (unsigned i = 0; i < 2; i++) {
        if (!parts[i].is_nobody)
            labels[count++] = put_message(r, &parts[i]);
    }
    comment(r, "Sendrecv", "end");
    for (unsigned i = 0; i < count; i++) {
        if ((code = rank_next(r, labels[i], err)))
            return code;
    }
    if ((code = rank_advance(r, parts[0].begin, parts[0].end, err)))
        return code;
    for (unsigned i = 0; i < count; i++)
        r->before[r->before_count++] = labels[i];
    return ORR_OK;
}

/* ---- persistent requests ---- */

static orr_code keep_request(mpi_rank *r, bool is_send, orr_error *err)
{
    message m;
    uint32_t at;
    uint64_t handle;
    orr_code code = read_message(r, is_send, &m, err);
    if (code || m.is_nobody ||
        (code = sgen_mpi_line_u64(&r->line, r->line.call->comm, &handle, err)))
        return code;
    say_message(r, &m);
    comment(r, "Storing persistent", is_send ? "send request" : "recv request");
    at = orr_map_find(r->persistent_by, m.request, UINT32_MAX);
    if (at == UINT32_MAX) {
        if (r->persistent_count >= UINT32_MAX ||
            !orr_grow(&r->persistent, &r->persistent_room, r->persistent_count + 1) ||
            !orr_map_put(r->persistent_by, m.request, (uint32_t)r->persistent_count, NULL))
            return orr_no_memory(err);
        at = (uint32_t)r->persistent_count++;
    }
    r->persistent[at] = (mpi_persistent){.is_send = is_send,
                                         .peer = m.peer,
                                         .bytes = m.bytes,
                                         .communicator = (uint32_t)handle,
                                         .tag = m.user_tag};
    r->start += (m.end - m.begin) * r->run->rules->init_share;
    return ORR_OK;
}

static orr_code start_request(
    mpi_rank *r, uint64_t request, double begin, double end, orr_error *err)
{
    const uint32_t at = orr_map_find(r->persistent_by, request, UINT32_MAX);
    if (sgen_mpi_is_talkative(r->run))
        sgen_mpi_say(r->run, " start persisten request %llu time %.*g req: %llu",
                     (unsigned long long)request, r->run->digits, end - begin,
                     (unsigned long long)request);
    if (at == UINT32_MAX)
        return ORR_OK; /* of no rank */
    const mpi_persistent *p = &r->persistent[at];
    message m = {.is_send = p->is_send, .peer = p->peer, .bytes = p->bytes};
    orr_code code = join_tag(r, p->communicator, p->tag, &m.tag, err);
    if (code)
        return code;
    comment(r, "Persistent request", "start");
    const uint64_t label = put_message(r, &m);
    code = rank_request(r, request, label, err);
    comment(r, "Persistent request", "end");
    return code ? code : step(r, label, begin, end, true, err);
}

static orr_code start_one(mpi_rank *r, orr_error *err)
{
    double begin, end;
    uint64_t request;
    const orr_code code = read_request(r, &request, &begin, &end, err);
    return code ? code : start_request(r, request, begin, end, err);
}

static orr_code start_all(mpi_rank *r, orr_error *err)
{
    const uint64_t step_bytes = is_mpich(r->run) ? 4 : 8;
    double begin, end;
    uint64_t first;
    uint32_t count;
    orr_code code = read_requests(r, &first, &count, err);
    if (!code)
        code = read_times(r, &begin, &end, err);
    for (uint32_t i = 0; i < count && !code; i++) /* the first gets all the time */
        code = start_request(r, first + i * step_bytes, i ? r->start : begin, end, err);
    return code;
}

static orr_code free_request(mpi_rank *r, orr_error *err)
{
    double begin, end;
    uint64_t request;
    const orr_code code = read_request(r, &request, &begin, &end, err);
    if (code)
        return code;
    if (sgen_mpi_is_talkative(r->run))
        sgen_mpi_say(r->run, " free persisten request %llu time %.*g req: %llu",
                     (unsigned long long)request, r->run->digits, end - begin,
                     (unsigned long long)request);
    if (orr_map_remove(r->persistent_by, request))
        comment(r, "Free", "persistent request");
    return ORR_OK;
}

/* ---- begin and end ---- */

static orr_code begin_trace(mpi_rank *r, orr_error *err)
{
    double time;
    const orr_code code = line_time(&r->line, r->line.call->end, &time, err);
    if (code)
        return code;
    if (r->has_begun)
        return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_line(r->line.path, r->line.number, 1)),
                        "%s again, or after other calls", r->line.call->name);
    if (sgen_mpi_is_talkative(r->run))
        sgen_mpi_say(r->run, "starttime host %u = %.*g", r->host, r->run->digits, time);
    r->has_begun = true;
    r->trace_start = r->start = time;
    r->before_count = 0;
    return ORR_OK;
}

static orr_code end_trace(mpi_rank *r, orr_error *err)
{
    double time;
    const orr_code code = line_time(&r->line, r->line.call->end, &time, err);
    if (code)
        return code;
    sgen_mpi_say(r->run, "finalize (virtual) host %u = %.*g (%.*g)", sgen_mpi_number(r),
                 r->run->digits, time, r->run->digits, (time - r->trace_start) / 1e6);
    r->next_count = 0;
    return rank_advance(r, time, time, err);
}

/* ---- one line ---- */

/* Without MPI_Init SchedGen counts from the epoch; ours counts from the first call. */
static orr_code begin_late(mpi_rank *r, orr_error *err)
{
    double time;
    const bool is_late = !r->has_begun && !r->run->rules->starts_at_epoch;
    r->has_begun = true;
    if (!is_late)
        return ORR_OK;
    const orr_code code = line_time(&r->line, (mpi_place){1, 0}, &time, err);
    if (code)
        return code;
    r->trace_start = r->start = time;
    return ORR_OK;
}

/* The start of a trace without MPI_Init, for the summary. */
static void read_comment(mpi_rank *r)
{
    static const char words[] = "# Init clockdiff: ";
    const size_t n = sizeof words - 1;
    double time;
    if (r->line.text.len > n && memcmp(r->line.text.ptr, words, n) == 0 &&
        orr_text_double((orr_str){r->line.text.ptr + n, r->line.text.len - n}, &time))
        r->trace_start = time;
}

static void keep_name(char out[64], orr_str name)
{
    const size_t n = name.len < 63 ? name.len : 63;
    memcpy(out, name.ptr, n);
    out[n] = '\0';
}

static void not_matched(const mpi_rank *r)
{
    if (sgen_mpi_is_talkative(r->run))
        sgen_mpi_say(r->run, "NOT MATCHED: [%.*s] (good if empty)", ORR_SHOWN(r->line.text, TALK));
}

static orr_code message_call(mpi_rank *r, orr_error *err)
{
    switch (r->line.call->kind) {
    case MPI_SEND:
        return one_message(r, true, false, err);
    case MPI_RECV:
        return one_message(r, false, false, err);
    case MPI_ISEND:
        return one_message(r, true, true, err);
    case MPI_IRECV:
        return one_message(r, false, true, err);
    case MPI_SENDRECV:
        return both_messages(r, err);
    case MPI_WAIT:
        return wait_one(r, err);
    case MPI_WAITALL:
        return wait_all(r, err);
    case MPI_SEND_INIT:
        return keep_request(r, true, err);
    case MPI_RECV_INIT:
        return keep_request(r, false, err);
    case MPI_START:
        return start_one(r, err);
    case MPI_STARTALL:
        return start_all(r, err);
    default:
        return free_request(r, err);
    }
}

static orr_code known_call(mpi_rank *r, orr_error *err)
{
    const bool is_message = r->line.call->kind < MPI_BARRIER;
    if (is_message ? r->run->opt->skips_messages : r->run->opt->skips_collectives) {
        if (r->line.call->kind == MPI_IALLREDUCE)
            not_matched(r);
        return ORR_OK;
    }
    const orr_code code = begin_late(r, err);
    if (code)
        return code;
    return is_message ? message_call(r, err) : rank_collective(r, err);
}

orr_code sgen_mpi_rank_line(mpi_rank *r, orr_str text, orr_error *err)
{
    orr_mpi_trace_remarks *remarks = r->run->remarks;
    const orr_code code = sgen_mpi_line_split(&r->line, text, r->run->rules->calls, err);
    if (code)
        return code;
    if (!r->line.call) {
        read_comment(r);
        not_matched(r);
        return ORR_OK;
    }
    remarks->calls += r->copy == 0;
    switch (r->line.call->kind) {
    case MPI_INIT:
        return begin_trace(r, err);
    case MPI_FINALIZE:
        return end_trace(r, err);
    case MPI_IGNORED:
        return ORR_OK;
    case MPI_UNKNOWN:
        not_matched(r);
        if (r->copy == 0 && remarks->unknown++ == 0)
            keep_name(remarks->unknown_name, line_name(&r->line));
        return ORR_OK;
    default:
        return known_call(r, err);
    }
}

orr_code sgen_mpi_rank_init(mpi_rank *r, mpi_run *run, orr_error *err)
{
    *r = (mpi_rank){.run = run, .line = {.ranks = run->hosts}};
    r->requests = orr_map_create(16);
    r->communicators = orr_map_create(4);
    r->persistent_by = orr_map_create(4);
    return r->requests && r->communicators && r->persistent_by ? ORR_OK : orr_no_memory(err);
}

void sgen_mpi_rank_fini(mpi_rank *r)
{
    orr_map_destroy(r->requests);
    orr_map_destroy(r->communicators);
    orr_map_destroy(r->persistent_by);
    orr_free(r->persistent);
    orr_free(r->next);
    orr_free(r->line.starts);
    *r = (mpi_rank){0};
}
