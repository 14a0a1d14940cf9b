/* SPDX-License-Identifier: Apache-2.0 */
/* coll_plan_xml.c - plans of MSCCL: XML, <algo> of <gpu> of <tb> of <step>.
 *
 * A thread block has one peer to send to and one to receive from; the k-th send of a connection
 * matches the k-th receive at its other end.  A connection is a pair of GPUs and a channel. */
#include "coll_plan_impl.h"

#include "base/formats/xml.h"
#include "base/memory/map.h"
#include "base/text/number.h"

#include <inttypes.h>

enum { MOST_CHANNELS = 1 << 10, SHOWN = 40 };

typedef struct reader {
    coll_plan *p;
    orr_map *links; /* (from, to, channel) -> number */
    uint8_t *used;  /* by link: 1 a thread block sends on it, 2 one receives on it */
    size_t used_room;
    orr_error *err;
} reader;

typedef struct step {
    uint32_t kind; /* in `kinds` */
    plan_buffer src, dst;
    uint32_t src_at, dst_at, count;
    uint64_t byte;
} step;

/* The primitives of each type of step. */
typedef struct step_kind {
    const char *name;
    bool receives, loads, adds, stores, sends;
} step_kind;
static const step_kind kinds[] = {
    {"nop", 0, 0, 0, 0, 0},  {"s", 0, 1, 0, 0, 1},   {"r", 1, 0, 0, 1, 0},
    {"rcs", 1, 0, 0, 1, 1},  {"rrs", 1, 0, 1, 0, 1}, {"rrc", 1, 0, 1, 1, 0},
    {"rrcs", 1, 0, 1, 1, 1}, {"cpy", 0, 1, 0, 1, 0}, {"re", 0, 1, 1, 1, 0},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static uint64_t byte_at(const reader *r, const orr_xml_node *n)
{
    /* The name follows the "<". */
    return (uint64_t)((const uint8_t *)n->name.ptr - r->p->bytes.ptr) - 1;
}

static orr_code get(const reader *r,
                    const orr_xml_node *n,
                    const char *name,
                    int64_t min,
                    int64_t max,
                    uint32_t *out)
{
    int64_t v = 0;
    const orr_code code = orr_xml_get_int(n, name, true, min, max, &v, r->err);
    *out = (uint32_t)v; /* -1 becomes UINT32_MAX */
    return code;
}

/* An unknown attribute may change what a step does: do not ignore it. */
static orr_code check_names(const reader *r, const orr_xml_node *n, const char *const *known)
{
    for (uint32_t i = 0; i < n->attribute_count; i++) {
        size_t k = 0;
        while (known[k] && !orr_str_is(n->attributes[i].name, known[k]))
            k++;
        if (!known[k])
            return plan_fail(
                r->p, byte_at(r, n), r->err, "<%.*s>: unknown attribute \"%.*s\"",
                (int)(n->name.len < SHOWN ? n->name.len : SHOWN), n->name.ptr,
                (int)(n->attributes[i].name.len < SHOWN ? n->attributes[i].name.len : SHOWN),
                n->attributes[i].name.ptr);
    }
    return ORR_OK;
}

static orr_code fail_name(const reader *r, const orr_xml_node *n, const char *expected)
{
    return plan_fail(r->p, byte_at(r, n), r->err, "found <%.*s>, expected %s",
                     (int)(n->name.len < SHOWN ? n->name.len : SHOWN), n->name.ptr, expected);
}

static orr_code get_text(const reader *r, const orr_xml_node *n, const char *name, orr_str *out)
{
    return orr_xml_attr(n, name, out)
               ? ORR_OK
               : plan_fail(r->p, byte_at(r, n), r->err, "<%.*s> has no attribute \"%s\"",
                           (int)(n->name.len < SHOWN ? n->name.len : SHOWN), n->name.ptr, name);
}

/* ---- connections ---- */

static orr_code find_link(reader *r,
                          const orr_xml_node *n,
                          uint32_t from,
                          uint32_t to,
                          uint32_t channel,
                          bool sends,
                          uint32_t *out)
{
    const uint64_t key = ((uint64_t)from * PLAN_MOST_RANKS + to) * MOST_CHANNELS + channel;
    coll_plan *p = r->p;
    uint32_t at = orr_map_find(r->links, key, UINT32_MAX);
    if (at == UINT32_MAX) {
        at = (uint32_t)p->link_count;
        if (!orr_grow(&p->links, &p->link_room, p->link_count + 1) ||
            !orr_grow(&r->used, &r->used_room, p->link_count + 1) ||
            !orr_map_put(r->links, key, at, NULL))
            return orr_no_memory(r->err);
        r->used[at] = 0;
        p->links[p->link_count++] = (plan_link){from, to};
    }
    /* Messages are matched in order: with two senders the result would depend on time. */
    if (r->used[at] & (sends ? 1 : 2))
        return plan_fail(
            p, byte_at(r, n), r->err,
            "two thread blocks of GPU %" PRIu32 " %s GPU %" PRIu32 " on channel %" PRIu32,
            sends ? from : to, sends ? "send to" : "receive from", sends ? to : from, channel);
    r->used[at] |= sends ? 1 : 2;
    *out = at;
    return ORR_OK;
}

/* ---- a step ---- */

static orr_code get_buffer(const reader *r,
                           const orr_xml_node *n,
                           const char *name,
                           plan_buffer *out)
{
    orr_str s;
    const orr_code code = get_text(r, n, name, &s);
    if (code)
        return code;
    *out = orr_str_is(s, "i")   ? PLAN_INPUT
           : orr_str_is(s, "o") ? PLAN_OUTPUT
           : orr_str_is(s, "s") ? PLAN_SCRATCH
                                : PLAN_BUFFERS;
    return *out != PLAN_BUFFERS
               ? ORR_OK
               : plan_fail(r->p, byte_at(r, n), r->err, "%s: \"%.*s\" is not i, o or s", name,
                           (int)(s.len < SHOWN ? s.len : SHOWN), s.ptr);
}

static orr_code get_kind(const reader *r, const orr_xml_node *n, uint32_t *out)
{
    orr_str s;
    const orr_code code = get_text(r, n, "type", &s);
    if (code)
        return code;
    for (uint32_t i = 0; i < KINDS; i++)
        if (orr_str_is(s, kinds[i].name)) {
            *out = i;
            return ORR_OK;
        }
    return plan_fail(r->p, byte_at(r, n), r->err,
                     "unknown step \"%.*s\" (expected s, r, rcs, rrs, rrc, rrcs, cpy, re, nop)",
                     (int)(s.len < SHOWN ? s.len : SHOWN), s.ptr);
}

static orr_code read_step(const reader *r, const orr_xml_node *n, step *out)
{
    static const char *const known[] = {"s",   "type",  "srcbuf", "srcoff", "dstbuf", "dstoff",
                                        "cnt", "depid", "deps",   "hasdep", NULL};
    orr_code code = check_names(r, n, known);
    *out = (step){.byte = byte_at(r, n)};
    if (code || (code = get_kind(r, n, &out->kind)) || out->kind == 0)
        return code;
    const step_kind *k = &kinds[out->kind];
    if (!code && (k->loads || k->adds) && !(code = get_buffer(r, n, "srcbuf", &out->src)))
        code = get(r, n, "srcoff", 0, PLAN_MOST_CHUNKS, &out->src_at);
    if (!code && (k->stores) && !(code = get_buffer(r, n, "dstbuf", &out->dst)))
        code = get(r, n, "dstoff", 0, PLAN_MOST_CHUNKS, &out->dst_at);
    return code ? code : get(r, n, "cnt", 1, PLAN_MOST_CHUNKS, &out->count);
}

static bool put(plan_block *b, const step *s, plan_op op)
{
    op.byte = s->byte;
    op.unit = COLL_NO_UNIT;
    return plan_add_op(b, &op);
}

static plan_op range_op(plan_verb verb, plan_buffer buffer, uint32_t at, uint32_t count)
{
    return (plan_op){
        .verb = (uint8_t)verb, .buffer = (uint8_t)buffer, .from = at, .to = at + count};
}

/* The step as primitives; charged like the built-in algorithms (orr_coll_charge). */
static bool add_step(plan_block *b, const step *s, uint32_t send_link, uint32_t recv_link)
{
    const step_kind *k = &kinds[s->kind];
    const bool is_local = !k->receives && !k->sends;
    const unsigned how =
        is_local      ? (k->adds ? COLL_WORK_ADD : COLL_WORK_COPY)
        : k->receives ? (k->adds ? ORR_COLL_REDUCED : 0u) | (k->sends ? ORR_COLL_SENT_BACK : 0u)
                      : ORR_COLL_FROM_NPU;
    bool ok = true;
    /* A nop is there for its dependency, and others may wait for it. */
    if (s->kind == 0)
        return put(b, s, (plan_op){.verb = PLAN_STEP_END});
    if (k->receives) /* the range is the destination of the message */
        ok = put(b, s, (plan_op){.verb = PLAN_RECV, .link = recv_link, .to = s->count});
    if (ok && k->loads)
        ok = put(b, s, range_op(PLAN_LOAD, s->src, s->src_at, s->count));
    if (ok)
        ok = put(b, s, (plan_op){.verb = PLAN_WORK, .how = (uint8_t)how});
    /* `re` reduces into its destination; the others add their source to what has come. */
    if (ok && k->adds)
        ok = put(b, s,
                 is_local ? range_op(PLAN_ADD, s->dst, s->dst_at, s->count)
                          : range_op(PLAN_ADD, s->src, s->src_at, s->count));
    if (ok && k->stores)
        ok = put(b, s, range_op(PLAN_STORE, s->dst, s->dst_at, s->count));
    if (ok && k->sends)
        ok = put(b, s, (plan_op){.verb = PLAN_SEND, .link = send_link});
    return ok && put(b, s, (plan_op){.verb = PLAN_STEP_END});
}

/* ---- a thread block ---- */

typedef struct block_links {
    uint32_t send, recv; /* UINT32_MAX: none */
} block_links;

static orr_code read_links(reader *r, const orr_xml_node *n, uint32_t rank, block_links *out)
{
    const int64_t last = (int64_t)r->p->ranks - 1;
    uint32_t send, recv, channel;
    *out = (block_links){UINT32_MAX, UINT32_MAX};
    orr_code code = get(r, n, "send", -1, last, &send);
    if (code || (code = get(r, n, "recv", -1, last, &recv)) ||
        (code = get(r, n, "chan", 0, MOST_CHANNELS - 1, &channel)))
        return code;
    if (send == rank || recv == rank)
        return plan_fail(r->p, byte_at(r, n), r->err, "GPU %" PRIu32 " is its own peer", rank);
    if (send != UINT32_MAX)
        code = find_link(r, n, rank, send, channel, true, &out->send);
    if (!code && recv != UINT32_MAX)
        code = find_link(r, n, recv, rank, channel, false, &out->recv);
    return code;
}

static orr_code read_depends(const reader *r, const orr_xml_node *n, plan_block *b)
{
    int64_t id = -1, at = -1;
    orr_code code = orr_xml_get_int(n, "depid", false, -1, UINT32_MAX - 1, &id, r->err);
    if (!code)
        code = orr_xml_get_int(n, "deps", false, -1, UINT32_MAX - 1, &at, r->err);
    if (code || id < 0)
        return code;
    if (at < 0)
        return plan_fail(r->p, byte_at(r, n), r->err, "depid without deps");
    const plan_op op = {.verb = PLAN_AFTER,
                        .link = (uint32_t)id, /* an id; resolved by plan_build */
                        .count = (uint32_t)at,
                        .unit = COLL_NO_UNIT,
                        .byte = byte_at(r, n)};
    return plan_add_op(b, &op) ? ORR_OK : orr_no_memory(r->err);
}

static orr_code read_block(reader *r, const orr_xml_node *n, uint32_t rank)
{
    static const char *const known[] = {"id", "send", "recv", "chan", NULL};
    uint32_t id, number = 0;
    block_links links;
    step s;
    orr_code code = check_names(r, n, known);
    if (code || (code = get(r, n, "id", 0, UINT32_MAX - 1, &id)) ||
        (code = read_links(r, n, rank, &links)))
        return code;
    plan_block *b = plan_add_block(r->p, rank, id);
    if (!b)
        return orr_no_memory(r->err);
    for (const orr_xml_node *c = n->child; c && !code; c = c->next, number++) {
        uint32_t given = number;
        if (!orr_str_is(c->name, "step"))
            return fail_name(r, c, "<step>");
        if ((code = read_step(r, c, &s)) || (code = get(r, c, "s", 0, UINT32_MAX - 1, &given)))
            return code;
        if (given != number)
            return plan_fail(r->p, s.byte, r->err, "found step %" PRIu32 ", expected step %" PRIu32,
                             given, number);
        if ((kinds[s.kind].sends && links.send == UINT32_MAX) ||
            (kinds[s.kind].receives && links.recv == UINT32_MAX))
            return plan_fail(r->p, s.byte, r->err,
                             "the step %s, but its thread block has no peer for it",
                             kinds[s.kind].sends ? "sends" : "receives");
        code = read_depends(r, c, b);
        if (!code && !add_step(b, &s, links.send, links.recv))
            code = orr_no_memory(r->err);
    }
    b->steps = number;
    return code;
}

/* ---- a GPU, and all of them ---- */

static orr_code read_gpu(reader *r, const orr_xml_node *n, uint8_t *seen)
{
    static const char *const known[] = {"id", "i_chunks", "o_chunks", "s_chunks", NULL};
    coll_plan *p = r->p;
    uint32_t id, in, out;
    orr_code code = check_names(r, n, known);
    if (code || (code = get(r, n, "id", 0, (int64_t)p->ranks - 1, &id)) ||
        (code = get(r, n, "i_chunks", 0, PLAN_MOST_CHUNKS, &in)) ||
        (code = get(r, n, "o_chunks", 0, PLAN_MOST_CHUNKS, &out)) ||
        (code = get(r, n, "s_chunks", 0, PLAN_MOST_CHUNKS, &p->scratch[id])))
        return code;
    if (seen[id])
        return plan_fail(p, byte_at(r, n), r->err, "duplicate GPU %" PRIu32, id);
    seen[id] = 1;
    p->chunks = p->chunks > in ? p->chunks : in;
    p->chunks = p->chunks > out ? p->chunks : out;
    for (const orr_xml_node *c = n->child; c && !code; c = c->next)
        code = orr_str_is(c->name, "tb") ? read_block(r, c, id) : fail_name(r, c, "<tb>");
    return code;
}

static orr_code read_head(reader *r, const orr_xml_node *n)
{
    coll_plan *p = r->p;
    orr_str name = {"", 0}, kind;
    int64_t inplace = 0, chunks = 0, least = 0, most = -1;
    if (!orr_str_is(n->name, "algo"))
        return fail_name(r, n, "<algo>, the plan of a collective,");
    orr_code code = get(r, n, "ngpus", 2, PLAN_MOST_RANKS, &p->ranks);
    if (code || (code = get_text(r, n, "coll", &kind)) ||
        (code = orr_xml_get_int(n, "inplace", false, 0, 1, &inplace, r->err)) ||
        (code =
             orr_xml_get_int(n, "nchunksperloop", false, 1, PLAN_MOST_CHUNKS, &chunks, r->err)) ||
        (code = orr_xml_get_int(n, "minBytes", false, 0, INT64_MAX, &least, r->err)) ||
        (code = orr_xml_get_int(n, "maxBytes", false, -1, INT64_MAX, &most, r->err)))
        return code;
    if (!plan_find_kind(kind, &p->kind))
        return plan_fail(p, byte_at(r, n), r->err,
                         "plans of \"%.*s\" are not supported; expected allreduce, allgather, "
                         "reducescatter or alltoall",
                         (int)(kind.len < SHOWN ? kind.len : SHOWN), kind.ptr);
    orr_xml_attr(n, "name", &name);
    p->name = orr_arena_text(p->arena, name);
    p->is_inplace = inplace != 0;
    p->chunks = (uint32_t)chunks;
    p->least = (uint64_t)least;
    /* 0 and -1: no limit. */
    p->most = most > 0 ? (uint64_t)most : UINT64_MAX;
    return p->name ? ORR_OK : orr_no_memory(r->err);
}

static orr_code read_gpus(reader *r, const orr_xml_node *root)
{
    coll_plan *p = r->p;
    uint32_t count = 0;
    orr_code code = ORR_OK;
    for (const orr_xml_node *c = root->child; c; c = c->next)
        count++;
    if (count != p->ranks) /* before anything is allocated by ngpus */
        return plan_fail(p, byte_at(r, root), r->err,
                         "ngpus is %" PRIu32 ", but there are %" PRIu32 " <gpu>", p->ranks, count);
    p->scratch = orr_arena_new(p->arena, p->ranks, uint32_t);
    uint8_t *seen = orr_arena_new(p->arena, p->ranks, uint8_t);
    if (!p->scratch || !seen)
        return orr_no_memory(r->err);
    for (const orr_xml_node *c = root->child; c && !code; c = c->next)
        code = orr_str_is(c->name, "gpu") ? read_gpu(r, c, seen) : fail_name(r, c, "<gpu>");
    return code;
}

orr_code plan_read_xml(coll_plan *p, orr_span bytes, orr_error *err)
{
    reader r = {.p = p, .links = orr_map_create(0), .err = err};
    orr_xml *x = NULL;
    orr_code code = r.links ? orr_xml_open(bytes, p->path, &x, err) : orr_no_memory(err);
    if (!code && !(code = read_head(&r, orr_xml_root(x))))
        code = read_gpus(&r, orr_xml_root(x));
    orr_xml_close(x);
    orr_map_destroy(r.links);
    orr_free(r.used);
    return code;
}
