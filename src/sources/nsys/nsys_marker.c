/* SPDX-License-Identifier: Apache-2.0 */
/* nsys_marker.c - parses the NVTX texts of the annotated NCCL.
 *
 * A text is a marker when one of the forms below matches its beginning (goal.md 5.2); what follows
 * is free.  The forms are tried in the order of the specification, but no text fits two of them, so
 * the first word decides which one is tried. Why by hand: a row costs about 100 ns here, and rows
 * come in millions. Invariant: nothing is read beyond text.len. */
#include <orrery/lab/nsys.h>

#include "base/short_forms.h"

#include <string.h>

/* A text being parsed; after the first mismatch nothing matches. */
typedef struct cursor {
    const char *at, *end;
    bool fits;
    bool is_too_large; /* a number was */
} cursor;

static bool starts_with(const cursor *c, const char *word)
{
    const size_t n = strlen(word);
    return (size_t)(c->end - c->at) >= n && memcmp(c->at, word, n) == 0;
}

static void word(cursor *c, const char *text)
{
    c->fits = c->fits && starts_with(c, text);
    if (c->fits)
        c->at += strlen(text);
}

static uint64_t digits(cursor *c)
{
    uint64_t v = 0;
    if (!c->fits || c->at == c->end || !orr_is_digit(*c->at)) {
        c->fits = false;
        return 0;
    }
    for (; c->at < c->end && orr_is_digit(*c->at); c->at++)
        if (__builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*c->at - '0'), &v))
            c->is_too_large = true;
    return v;
}

static uint64_t number(cursor *c, const char *before)
{
    word(c, before);
    return digits(c);
}

static int64_t signed_number(cursor *c, const char *before)
{
    word(c, before);
    const bool is_negative = c->fits && c->at < c->end && *c->at == '-';
    if (is_negative)
        c->at++;
    const uint64_t v = digits(c);
    if (v > INT64_MAX)
        c->is_too_large = true;
    return is_negative ? -(int64_t)(v & INT64_MAX) : (int64_t)(v & INT64_MAX);
}

/* 0x and lower-case hexadecimal digits. */
static orr_str hexadecimal(cursor *c, const char *before)
{
    word(c, before);
    const char *from = c->at;
    word(c, "0x");
    const char *first = c->at;
    while (c->fits && c->at < c->end && (orr_is_digit(*c->at) || (*c->at >= 'a' && *c->at <= 'f')))
        c->at++;
    c->fits = c->fits && c->at > first;
    return (orr_str){.ptr = from, .len = c->fits ? (size_t)(c->at - from) : 0};
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= 0x1f);
}

static orr_str any_word(cursor *c, const char *before)
{
    word(c, before);
    const char *first = c->at;
    while (c->fits && c->at < c->end && !is_blank(*c->at))
        c->at++;
    c->fits = c->fits && c->at > first;
    return (orr_str){.ptr = first, .len = c->fits ? (size_t)(c->at - first) : 0};
}

/* ---- the forms ---- */

static void comm_or_topology(cursor *c, orr_nsys_row *r)
{
    r->hash = hexadecimal(c, "commHash ");
    if (starts_with(c, " commId ")) {
        r->kind = ORR_NSYS_COMM;
        r->id = hexadecimal(c, " commId ");
        r->rank = number(c, " rank ");
        r->ranks = number(c, " nranks ");
    } else if (starts_with(c, " Rings [")) {
        r->kind = ORR_NSYS_RING;
        r->channel = number(c, " Rings [");
        r->previous = number(c, "] ");
        r->me = number(c, "->");
        r->next = number(c, "->");
    } else {
        r->kind = ORR_NSYS_TREE;
        r->channel = number(c, " Trees [");
        r->child[0] = signed_number(c, "] ");
        r->child[1] = signed_number(c, "/");
        r->child[2] = signed_number(c, "/");
        const int64_t me = signed_number(c, "->");
        r->parent = signed_number(c, "->");
        r->me = me < 0 ? UINT64_MAX : (uint64_t)me; /* a rank that does not exist */
    }
    r->pid = number(c, " pid ");
}

static void window(cursor *c, orr_nsys_row *r)
{
    const bool is_start = starts_with(c, "nsys profiling start, pid: ");
    r->kind = is_start ? ORR_NSYS_WINDOW_START : ORR_NSYS_WINDOW_END;
    r->pid = number(c, is_start ? "nsys profiling start, pid: " : "nsys profiling stopped, pid: ");
}

static void group(cursor *c, orr_nsys_row *r)
{
    const bool is_start = starts_with(c, "ncclGroupStart");
    r->kind = is_start ? ORR_NSYS_GROUP_START : ORR_NSYS_GROUP_END;
    r->pid = number(c, is_start ? "ncclGroupStart(): pid " : "ncclGroupEnd(): pid ");
}

static void work(cursor *c, orr_nsys_row *r)
{
    r->kind = ORR_NSYS_WORK;
    number(c, "nWarps ");
    r->count = number(c, " count ");
    r->chunk = number(c, " chunkCount ");
    r->total = number(c, " workCount ");
    r->last = number(c, " lastChunkCount ");
    number(c, " workOffset ");
    r->send_buffer = number(c, " sendbuff ");
    r->receive_buffer = number(c, " recvbuff ");
    r->pid = number(c, " pid ");
}

static void p2p(cursor *c, orr_nsys_row *r)
{
    r->kind = ORR_NSYS_P2P;
    r->bytes = number(c, "Bytes ");
    number(c, " nWarps ");
    r->p2p_type = number(c, " p2pType ");
    r->peer = number(c, " peer ");
    r->protocol = number(c, " proto ");
    r->high = number(c, " countHi32 ");
    r->low = number(c, " countLo32 ");
    r->chunk = number(c, " chunkSize ");
    r->pid = number(c, " pid ");
}

/* Anything, then " pid " and a number: the last such pair of the line counts, as with a greedy
 * pattern. */
static uint64_t last_pid(cursor *c)
{
    if (!c->fits)
        return 0;
    const char *stop = memchr(c->at, '\n', (size_t)(c->end - c->at));
    cursor found = {.fits = false};
    for (const char *p = c->at; p + 6 <= (stop ? stop : c->end); p++)
        if (memcmp(p, " pid ", 5) == 0 && orr_is_digit(p[5]))
            found = (cursor){.at = p + 5, .end = c->end, .fits = true};
    const uint64_t pid = digits(&found);
    c->fits = found.fits;
    c->is_too_large = c->is_too_large || found.is_too_large;
    return pid;
}

static void call(cursor *c, orr_nsys_row *r)
{
    r->kind = ORR_NSYS_CALL;
    word(c, "nccl");
    const char *name = c->at;
    while (c->at < c->end && orr_is_letter(*c->at))
        c->at++;
    c->fits = c->fits && c->at > name;
    r->op = orr_nccl_op_find((orr_str){.ptr = name, .len = (size_t)(c->at - name)});
    r->hash = hexadecimal(c, "(): commHash ");
    r->stream = hexadecimal(c, ", stream ");
    r->bytes = number(c, ", data_size ");
    r->width = number(c, ", type_size ");
    word(c, ",");
    r->pid = last_pid(c);
}

static void info(cursor *c, orr_nsys_row *r)
{
    r->kind = ORR_NSYS_INFO;
    number(c, "collType ");
    r->root = number(c, " root ");
    number(c, " redOp ");
    r->algorithm = number(c, " algo ");
    r->protocol = number(c, " proto ");
    r->hash = any_word(c, " commHash ");
    r->stream = any_word(c, " stream ");
    r->bytes = number(c, " data_size ");
    r->width = number(c, " type_size ");
    number(c, " chunkSize ");
    number(c, " chunkCount ");
    r->chunk_steps = number(c, " chunkSteps ");
    r->slice_steps = number(c, " sliceSteps ");
    r->step = number(c, " stepSize ");
    r->pid = number(c, " pid ");
}

typedef void read_form(cursor *c, orr_nsys_row *r);

static read_form *form_of(const cursor *c)
{
    static const struct {
        const char *start;
        read_form *read;
    } forms[] = {
        {"nWarps ", work},   {"nccl", call},
        {"collType ", info}, {"commHash ", comm_or_topology},
        {"Bytes ", p2p},     {"nsys profiling ", window},
    };
    if (starts_with(c, "ncclGroupStart(): pid ") || starts_with(c, "ncclGroupEnd(): pid "))
        return group;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (starts_with(c, forms[i].start))
            return forms[i].read;
    return NULL;
}

orr_code orr_nsys_marker(orr_str text, orr_nsys_row *row, orr_error *err)
{
    cursor c = {.at = text.ptr, .end = text.ptr + text.len, .fits = true};
    read_form *read = text.len ? form_of(&c) : NULL;
    if (!read) {
        row->kind = ORR_NSYS_OTHER;
        return ORR_END;
    }
    read(&c, row);
    if (!c.fits) {
        row->kind = ORR_NSYS_OTHER;
        return ORR_END;
    }
    if (c.is_too_large)
        return orr_fail(err, ORR_EINPUT, NULL, "a number in \"%.*s\" is larger than 64 bits",
                        ORR_SHOWN(text, 120));
    return ORR_OK;
}

/* ---- names ---- */

static const char *const op_names[ORR_NCCL_OPS] = {
    [ORR_NCCL_OTHER] = "other",
    [ORR_NCCL_ALL_REDUCE] = "AllReduce",
    [ORR_NCCL_ALL_GATHER] = "AllGather",
    [ORR_NCCL_REDUCE_SCATTER] = "ReduceScatter",
    [ORR_NCCL_BROADCAST] = "Broadcast",
    [ORR_NCCL_REDUCE] = "Reduce",
    [ORR_NCCL_SEND] = "Send",
    [ORR_NCCL_RECV] = "Recv",
    [ORR_NCCL_SEND_RECV] = "SendRecv",
};

const char *orr_nccl_op_name(orr_nccl_op op)
{
    return op_names[op < ORR_NCCL_OPS ? op : ORR_NCCL_OTHER];
}

orr_nccl_op orr_nccl_op_find(orr_str name)
{
    for (int op = 1; op < ORR_NCCL_OPS; op++)
        if (orr_str_is(name, op_names[op]))
            return (orr_nccl_op)op;
    return ORR_NCCL_OTHER;
}
