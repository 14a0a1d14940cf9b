/* SPDX-License-Identifier: Apache-2.0 */
/* coll_plan_json.c - plans of MSCCL++: JSON, "gpus" of "threadblocks" of "ops".
 *
 * Thread blocks write to the memory of other GPUs, or read it, and synchronise by signals. The k-th
 * channel of one type from GPU a to GPU b is paired with the k-th one from b to a. An operation
 * refers to channels and remote buffers by index in its thread block's lists, which in turn refer
 * to the GPU's lists. */
#include "coll_plan_impl.h"

#include "base/arithmetic.h"
#include "base/formats/json.h"
#include "base/memory/map.h"
#include "base/text/text.h"

#include <inttypes.h>

enum { MOST_PAIR = 1 << 12, SHOWN = 40 };
#define MOST_UNIT (UINT64_C(1) << 40)

typedef enum channel_type { CHANNEL_MEMORY, CHANNEL_PORT, CHANNELS } channel_type;

typedef struct remote {
    uint32_t rank;
    plan_buffer buffer;
} remote;

/* Indices of one GPU. */
typedef struct gpu {
    uint32_t *out[CHANNELS],
        *in[CHANNELS]; /* links of each channel: outgoing and incoming signals */
    size_t channel_count[CHANNELS], out_room[CHANNELS], in_room[CHANNELS];
    remote *remotes;
    size_t remote_count, remote_room;
    uint32_t first_semaphore, semaphores;
} gpu;

typedef struct reader {
    coll_plan *p;
    orr_map *links;    /* (type, from, to, index among them) -> number */
    orr_map *counts;   /* (type, from, to) -> number so far */
    orr_map *barriers; /* (GPU, id) -> number */
    gpu *gpus;
    orr_error *err;
} reader;

/* The lists of a thread block that its operations index. */
typedef struct block_lists {
    const gpu *g;
    uint32_t *channels[CHANNELS], *remotes[CHANNELS];
    size_t channel_count[CHANNELS], channel_room[CHANNELS];
    size_t remote_count[CHANNELS], remote_room[CHANNELS];
    plan_block *b;
    uint32_t unit;
} block_lists;

/* ---- values ---- */

static orr_code fail_at(const reader *r, orr_json_value v, const char *what)
{
    return plan_fail(r->p, orr_json_byte(v), r->err, "%s", what);
}

static orr_code need(
    const reader *r, orr_json_value v, const char *key, orr_json_type type, orr_json_value *out)
{
    if (!orr_json_find(v, key, out))
        return plan_fail(r->p, orr_json_byte(v), r->err, "the key \"%s\" is missing", key);
    if (orr_json_type_of(*out) != type)
        return plan_fail(r->p, orr_json_byte(*out), r->err, "%s: expected %s, not %s", key,
                         orr_json_type_name(type), orr_json_type_name(orr_json_type_of(*out)));
    return ORR_OK;
}

static orr_code take_number(
    const reader *r, orr_json_value v, const char *what, uint64_t most, uint32_t *out)
{
    uint64_t n;
    const orr_code code = orr_json_get_u64(v, &n, r->err);
    *out = 0;
    if (code)
        return code;
    if (n > most)
        return plan_fail(r->p, orr_json_byte(v), r->err,
                         "%s: %" PRIu64 ", but the maximum here is %" PRIu64, what, n, most);
    *out = (uint32_t)n;
    return ORR_OK;
}

static orr_code number(
    const reader *r, orr_json_value v, const char *key, uint64_t most, uint32_t *out)
{
    orr_json_value n;
    const orr_code code = need(r, v, key, ORR_JSON_INT, &n);
    *out = 0;
    return code ? code : take_number(r, n, key, most, out);
}

static orr_code text(const reader *r, orr_json_value v, const char *key, orr_str *out)
{
    orr_json_value s;
    const orr_code code = need(r, v, key, ORR_JSON_STRING, &s);
    return code ? code : orr_json_get_str(s, out, r->err);
}

/* Unknown members may change the meaning: they are errors. */
static orr_code check_keys(const reader *r, orr_json_value v, const char *const *known)
{
    orr_json_value value;
    orr_str key;
    if (orr_json_type_of(v) != ORR_JSON_OBJECT)
        return fail_at(r, v, "expected an object");
    for (orr_json_iter it = orr_json_iterate(v); orr_json_next_member(&it, &key, &value);) {
        size_t k = 0;
        while (known[k] && !orr_str_is(key, known[k]))
            k++;
        const char *near = known[k] ? NULL : orr_nearest(key, known);
        if (!known[k])
            return plan_fail(r->p, orr_json_byte(value), r->err, "unknown key \"%.*s\"%s%s%s",
                             (int)(key.len < SHOWN ? key.len : SHOWN), key.ptr,
                             near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    }
    return ORR_OK;
}

static orr_code get_buffer(const reader *r, orr_json_value v, const char *key, plan_buffer *out)
{
    orr_str s;
    const orr_code code = text(r, v, key, &s);
    if (code)
        return code;
    *out = orr_str_is(s, "i")   ? PLAN_INPUT
           : orr_str_is(s, "o") ? PLAN_OUTPUT
           : orr_str_is(s, "s") ? PLAN_SCRATCH
                                : PLAN_BUFFERS;
    return *out != PLAN_BUFFERS ? ORR_OK : fail_at(r, v, "the buffer is not i, o or s");
}

/* "switch": in-network reduction, which none of our networks has. */
static orr_code get_channel_type(const reader *r,
                                 orr_json_value v,
                                 const char *key,
                                 channel_type *out)
{
    orr_str s;
    const orr_code code = text(r, v, key, &s);
    if (code)
        return code;
    *out = orr_str_is(s, "memory") ? CHANNEL_MEMORY
           : orr_str_is(s, "port") ? CHANNEL_PORT
                                   : CHANNELS;
    if (*out != CHANNELS)
        return ORR_OK;
    if (orr_str_is(s, "switch"))
        return fail_at(r, v,
                       "a channel of type \"switch\" reduces in the switch (NVLS), which is not "
                       "supported");
    return plan_fail(r->p, orr_json_byte(v), r->err,
                     "the channel type \"%.*s\" is not memory or port",
                     (int)(s.len < SHOWN ? s.len : SHOWN), s.ptr);
}

static bool push(uint32_t **list, size_t *count, size_t *room, uint32_t v)
{
    if (!orr_grow(list, room, *count + 1))
        return false;
    (*list)[(*count)++] = v;
    return true;
}

/* ---- lists of a GPU ---- */

static orr_code find_link(
    reader *r, channel_type t, uint32_t from, uint32_t to, uint32_t place, uint32_t *out)
{
    const uint64_t key =
        (((uint64_t)t * PLAN_MOST_RANKS + from) * PLAN_MOST_RANKS + to) * MOST_PAIR + place;
    coll_plan *p = r->p;
    *out = orr_map_find(r->links, key, UINT32_MAX);
    if (*out != UINT32_MAX)
        return ORR_OK;
    *out = (uint32_t)p->link_count;
    if (!orr_grow(&p->links, &p->link_room, p->link_count + 1) ||
        !orr_map_put(r->links, key, *out, NULL))
        return orr_no_memory(r->err);
    p->links[p->link_count++] = (plan_link){from, to};
    return ORR_OK;
}

static orr_code add_channel(reader *r, uint32_t rank, channel_type t, orr_json_value peer_value)
{
    gpu *g = &r->gpus[rank];
    uint32_t peer, out, in;
    orr_code code = take_number(r, peer_value, "connected_to", (uint64_t)r->p->ranks - 1, &peer);
    if (code)
        return code;
    if (peer == rank)
        return fail_at(r, peer_value, "a GPU is connected to itself");
    const uint64_t key = ((uint64_t)t * PLAN_MOST_RANKS + rank) * PLAN_MOST_RANKS + peer;
    const uint32_t place = orr_map_find(r->counts, key, 0);
    if (place + 1 >= MOST_PAIR)
        return fail_at(r, peer_value, "more than 4,095 channels between two GPUs");
    if (!orr_map_put(r->counts, key, place + 1, NULL))
        return orr_no_memory(r->err);
    if ((code = find_link(r, t, rank, peer, place, &out)) ||
        (code = find_link(r, t, peer, rank, place, &in)))
        return code;
    /* A copy: both lists have this count, and the second push advances it. */
    size_t count = g->channel_count[t];
    if (!push(&g->out[t], &count, &g->out_room[t], out) ||
        !push(&g->in[t], &g->channel_count[t], &g->in_room[t], in))
        return orr_no_memory(r->err);
    return ORR_OK;
}

static orr_code read_channels(reader *r, orr_json_value v, uint32_t rank)
{
    static const char *const known[] = {"channel_type", "connected_to", "buff",
                                        "buffer_type",  "rank_groups",  NULL};
    orr_json_value list, c, peers, peer;
    orr_code code = need(r, v, "channels", ORR_JSON_ARRAY, &list);
    if (code)
        return code;
    for (orr_json_iter it = orr_json_iterate(list); !code && orr_json_next_value(&it, &c);) {
        channel_type t;
        if ((code = check_keys(r, c, known)) ||
            (code = get_channel_type(r, c, "channel_type", &t)) ||
            (code = need(r, c, "connected_to", ORR_JSON_ARRAY, &peers)))
            return code;
        for (orr_json_iter at = orr_json_iterate(peers); !code && orr_json_next_value(&at, &peer);)
            code = add_channel(r, rank, t, peer);
    }
    return code;
}

static orr_code read_remotes(reader *r, orr_json_value v, uint32_t rank)
{
    static const char *const known[] = {"rank", "type", "access_channel_types", NULL};
    gpu *g = &r->gpus[rank];
    orr_json_value list, c;
    orr_code code = ORR_OK;
    if (!orr_json_find(v, "remote_buffers", &list))
        return ORR_OK;
    for (orr_json_iter it = orr_json_iterate(list); !code && orr_json_next_value(&it, &c);) {
        remote m;
        if ((code = check_keys(r, c, known)) ||
            (code = number(r, c, "rank", (uint64_t)r->p->ranks - 1, &m.rank)) ||
            (code = get_buffer(r, c, "type", &m.buffer)))
            return code;
        if (!orr_grow(&g->remotes, &g->remote_room, g->remote_count + 1))
            return orr_no_memory(r->err);
        g->remotes[g->remote_count++] = m;
    }
    return code;
}

static orr_code read_semaphores(reader *r, orr_json_value v, uint32_t rank)
{
    static const char *const known[] = {"init_value", NULL};
    gpu *g = &r->gpus[rank];
    coll_plan *p = r->p;
    orr_json_value list, c;
    orr_code code = ORR_OK;
    g->first_semaphore = (uint32_t)p->semaphore_count;
    if (!orr_json_find(v, "semaphores", &list))
        return ORR_OK;
    for (orr_json_iter it = orr_json_iterate(list); !code && orr_json_next_value(&it, &c);) {
        uint32_t value;
        if ((code = check_keys(r, c, known)) ||
            (code = number(r, c, "init_value", 1 << 20, &value)))
            return code;
        if (!push(&p->semaphores, &p->semaphore_count, &p->semaphore_room, value))
            return orr_no_memory(r->err);
        g->semaphores++;
    }
    return code;
}

/* ---- operations ---- */

typedef struct op_reader {
    reader *r;
    block_lists *l;
    orr_json_value v;
    channel_type type;    /* CHANNELS: none given */
    uint32_t part, parts; /* of a group of thread blocks that share the work */
    bool ok;              /* false: out of memory */
    orr_code code;
} op_reader;

static void add(op_reader *o, plan_op op)
{
    if (o->code || !o->ok)
        return;
    op.byte = orr_json_byte(o->v);
    op.unit = o->l->unit;
    o->ok = plan_add_op(o->l->b, &op);
}

/* A member of src_buff or dst_buff. */
typedef struct operand {
    bool is_remote;
    uint32_t rank, from, to;
    plan_buffer buffer;
} operand;

static orr_code read_place(op_reader *o, orr_json_value v, operand *out)
{
    const uint32_t parts = o->r->p->parts;
    uint32_t index, size;
    orr_code code = number(o->r, v, "index", PLAN_MOST_CHUNKS, &index);
    if (code || (code = number(o->r, v, "size", PLAN_MOST_CHUNKS, &size)))
        return code;
    if (size == 0)
        return fail_at(o->r, v, "size: expected at least one chunk");
    const uint64_t all = (uint64_t)size * parts;
    /* Exact: the plan's parts are a multiple of those of every group (find_parts). */
    const uint64_t from = (uint64_t)index * parts + all * o->part / o->parts;
    const uint64_t to = (uint64_t)index * parts + all * (o->part + 1) / o->parts;
    if (to > UINT32_MAX)
        return fail_at(o->r, v, "too many chunks");
    out->from = (uint32_t)from;
    out->to = (uint32_t)to;
    return ORR_OK;
}

static orr_code read_operand(op_reader *o, orr_json_value v, operand *out)
{
    static const char *const known[] = {"type",  "buffer_id", "switch_channel_id",
                                        "index", "size",      NULL};
    const block_lists *l = o->l;
    orr_json_value id_value;
    uint32_t id;
    *out = (operand){0};
    orr_code code = check_keys(o->r, v, known);
    if (code)
        return code;
    if (orr_json_find(v, "switch_channel_id", &id_value))
        return fail_at(o->r, v,
                       "a switch channel reduces in the switch (NVLS), which is not supported");
    out->is_remote = orr_json_find(v, "buffer_id", &id_value);
    if (!out->is_remote)
        code = get_buffer(o->r, v, "type", &out->buffer);
    else if (o->type == CHANNELS)
        code = fail_at(o->r, o->v, "a remote buffer, but no channel_type");
    else if (l->remote_count[o->type] == 0)
        code = fail_at(o->r, v,
                       "buffer_id: the thread block has no remote buffers of this channel type");
    else if (!(code =
                   take_number(o->r, id_value, "buffer_id", l->remote_count[o->type] - 1, &id))) {
        const remote *m = &l->g->remotes[l->remotes[o->type][id]];
        out->rank = m->rank;
        out->buffer = m->buffer;
    }
    return code ? code : read_place(o, v, out);
}

enum { MOST_OPERANDS = 64 };

typedef struct operands {
    operand all[MOST_OPERANDS];
    uint32_t count;
} operands;

static void read_operands(op_reader *o, const char *key, operands *out)
{
    orr_json_value list, v;
    out->count = 0;
    if (o->code || !orr_json_find(o->v, key, &list))
        return;
    for (orr_json_iter it = orr_json_iterate(list); !o->code && orr_json_next_value(&it, &v);) {
        if (out->count == MOST_OPERANDS)
            o->code = fail_at(o->r, v, "more than 64 buffers in one operation");
        else
            o->code = read_operand(o, v, &out->all[out->count++]);
    }
}

static void check_operands(op_reader *o, const operands *src, const operands *dst)
{
    if (o->code)
        return;
    if (src->count == 0 || dst->count == 0)
        o->code = fail_at(o->r, o->v, "the operation lacks src_buff or dst_buff");
    for (uint32_t i = 0; i < src->count && !o->code; i++)
        if (src->all[i].to - src->all[i].from != src->all[0].to - src->all[0].from)
            o->code = fail_at(o->r, o->v, "the buffers of one operation differ in size");
}

static void range(op_reader *o, plan_verb verb, const operand *x, bool is_packet)
{
    if (!o->code && x->is_remote != (verb == PLAN_PUT || verb == PLAN_GET)) {
        o->code = fail_at(o->r, o->v,
                          x->is_remote ? "a remote buffer where a local one belongs"
                                       : "a local buffer where a remote one belongs");
        return;
    }
    add(o, (plan_op){.verb = (uint8_t)verb,
                     .buffer = (uint8_t)x->buffer,
                     .rank = x->rank,
                     .from = x->from,
                     .to = x->to,
                     .link = UINT32_MAX,
                     .is_packet = is_packet});
}

static void work(op_reader *o, unsigned how)
{
    add(o, (plan_op){.verb = PLAN_WORK, .how = (uint8_t)how});
}

/* The channel at this index of channel_ids; false: there is none. */
static bool channel_at(op_reader *o, uint32_t place, bool is_in, uint32_t *out)
{
    const block_lists *l = o->l;
    orr_json_value list, v;
    uint32_t id, k = 0;
    if (o->code || o->type == CHANNELS || !orr_json_find(o->v, "channel_ids", &list) ||
        place >= orr_json_count(list))
        return false;
    if (orr_json_count(list) > MOST_OPERANDS) {
        o->code = fail_at(o->r, list, "more than 64 channels in one operation");
        return false;
    }
    /* Counted anew for each place: lists are short (MOST_OPERANDS). */
    for (orr_json_iter it = orr_json_iterate(list); orr_json_next_value(&it, &v) && k < place;)
        k++;
    if (l->channel_count[o->type] == 0) {
        o->code = fail_at(o->r, o->v, "the thread block has no channels of this type");
        return false;
    }
    o->code = take_number(o->r, v, "channel_ids", l->channel_count[o->type] - 1, &id);
    if (o->code)
        return false;
    const uint32_t channel = l->channels[o->type][id];
    *out = is_in ? l->g->in[o->type][channel] : l->g->out[o->type][channel];
    return true;
}

static void each_channel(op_reader *o, plan_verb verb)
{
    uint32_t link, place = 0;
    while (channel_at(o, place, verb == PLAN_WAIT, &link)) {
        add(o, (plan_op){.verb = (uint8_t)verb, .link = link});
        place++;
    }
    if (!o->code && place == 0)
        o->code = fail_at(o->r, o->v, "the operation names no channel");
}

static void put_to(op_reader *o, const operand *to, bool is_packet, uint32_t place)
{
    uint32_t link = UINT32_MAX;
    if (!o->code && !to->is_remote) {
        o->code = fail_at(o->r, o->v, "a local buffer where a remote one belongs");
        return;
    }
    const bool has_proxy = o->type == CHANNEL_PORT && channel_at(o, place, false, &link);
    add(o, (plan_op){.verb = PLAN_PUT,
                     .buffer = (uint8_t)to->buffer,
                     .rank = to->rank,
                     .from = to->from,
                     .to = to->to,
                     .link = link,
                     .is_packet = is_packet,
                     .is_async = has_proxy});
}

static void do_put(op_reader *o, const operands *src, const operands *dst, bool is_packet)
{
    check_operands(o, src, dst);
    for (uint32_t i = 0; i < dst->count && !o->code; i++) {
        /* A single source goes to all destinations. */
        range(o, PLAN_LOAD, &src->all[i < src->count ? i : 0], false);
        work(o, ORR_COLL_FROM_NPU);
        put_to(o, &dst->all[i], is_packet, i);
    }
}

static void do_get(op_reader *o, const operands *src, const operands *dst)
{
    check_operands(o, src, dst);
    for (uint32_t i = 0; i < src->count && !o->code; i++) {
        range(o, PLAN_GET, &src->all[i], false);
        /* Received and not reduced: an endpoint delay alone. */
        work(o, 0);
        range(o, PLAN_STORE, &dst->all[i < dst->count ? i : 0], false);
    }
}

/* Reduces src[0] and all other sources into dst[0]; then copies it to the rest. */
static void do_reduce(
    op_reader *o, const operands *src, const operands *dst, bool reads, bool packets, uint32_t kept)
{
    check_operands(o, src, dst);
    if (!o->code && dst->count < kept)
        o->code = fail_at(o->r, o->v, "the operation lacks a dst_buff");
    if (!o->code)
        range(o, PLAN_LOAD, &src->all[0], false);
    for (uint32_t i = 1; i < src->count && !o->code; i++) {
        if (reads && src->all[i].is_remote) {
            range(o, PLAN_GET, &src->all[i], false);
            if (o->ok && !o->code) /* incoming data is reduced into the hand */
                o->l->b->ops[o->l->b->count - 1].count = 1;
            work(o, ORR_COLL_REDUCED);
        } else {
            range(o, PLAN_ADD, &src->all[i], packets);
            work(o, COLL_WORK_ADD);
        }
    }
    for (uint32_t i = 0; i < dst->count && !o->code; i++) {
        if (i < kept) {
            /* The second destination that is kept, of recpkt, gets packets. */
            range(o, PLAN_STORE, &dst->all[i], i > 0);
        } else {
            work(o, ORR_COLL_FROM_NPU);
            put_to(o, &dst->all[i], packets, i - kept);
        }
    }
}

static void do_copy(
    op_reader *o, const operands *src, const operands *dst, bool from_packets, bool to_packets)
{
    check_operands(o, src, dst);
    for (uint32_t i = 0; i < src->count && i < dst->count && !o->code; i++) {
        range(o, PLAN_LOAD, &src->all[i], from_packets);
        work(o, COLL_WORK_COPY);
        range(o, PLAN_STORE, &dst->all[i], to_packets);
    }
}

static void do_read_put(op_reader *o, const operands *src, const operands *dst)
{
    check_operands(o, src, dst);
    if (!o->code)
        range(o, PLAN_LOAD, &src->all[0], true);
    for (uint32_t i = 0; i < dst->count && !o->code; i++) {
        work(o, ORR_COLL_FROM_NPU);
        put_to(o, &dst->all[i], true, i);
    }
}

static void do_barrier(op_reader *o)
{
    uint32_t id, count;
    if ((o->code = number(o->r, o->v, "barrier_id", 1 << 16, &id)) ||
        (o->code = number(o->r, o->v, "num_threadblocks", 1 << 16, &count)))
        return;
    /* Numbered as they come, so there are never more than operations, whatever the ids. */
    coll_plan *p = o->r->p;
    const uint64_t key = (uint64_t)o->l->b->rank << 32 | id;
    const uint32_t place = orr_map_find(o->r->barriers, key, p->barriers);
    if (place == p->barriers) {
        if (!orr_map_put(o->r->barriers, key, place, NULL)) {
            o->ok = false;
            return;
        }
        p->barriers++;
    }
    if (count == 0)
        o->code = fail_at(o->r, o->v, "num_threadblocks is 0");
    add(o, (plan_op){.verb = PLAN_BARRIER, .link = place, .count = count});
}

static void do_semaphore(op_reader *o, plan_verb verb)
{
    const gpu *g = o->l->g;
    orr_json_value list, v;
    uint32_t id;
    if ((o->code = need(o->r, o->v, "semaphore_ids", ORR_JSON_ARRAY, &list)))
        return;
    for (orr_json_iter it = orr_json_iterate(list); !o->code && orr_json_next_value(&it, &v);) {
        if (g->semaphores == 0)
            o->code = fail_at(o->r, v, "the GPU has no semaphores");
        else if (!(o->code = take_number(o->r, v, "semaphore_ids", g->semaphores - 1, &id)))
            add(o, (plan_op){.verb = (uint8_t)verb, .link = g->first_semaphore + id});
    }
}

static orr_code read_op(reader *r, block_lists *l, orr_json_value v);

/* Repeats its operations for every piece of the data. */
static void do_pipeline(op_reader *o)
{
    static const char *const known[] = {"unit_size", "num_chunks", NULL};
    orr_json_value context, ops, v, size;
    coll_plan *p = o->r->p;
    block_lists *l = o->l;
    uint64_t unit = 0;
    plan_loop loop = {.from = (uint32_t)l->b->count, .unit = (uint32_t)p->unit_count};
    if (l->unit != COLL_NO_UNIT) {
        o->code = fail_at(o->r, o->v, "a pipeline in a pipeline");
        return;
    }
    if ((o->code = need(o->r, o->v, "iter_context", ORR_JSON_OBJECT, &context)) ||
        (o->code = check_keys(o->r, context, known)) ||
        (o->code = need(o->r, context, "unit_size", ORR_JSON_INT, &size)) ||
        (o->code = orr_json_get_u64(size, &unit, o->r->err)) ||
        (o->code = number(o->r, context, "num_chunks", PLAN_MOST_CHUNKS, &loop.chunks)) ||
        (o->code = need(o->r, o->v, "ops", ORR_JSON_ARRAY, &ops)))
        return;
    if (unit == 0 || unit > MOST_UNIT || loop.chunks == 0) {
        o->code = fail_at(o->r, context, "unit_size (at most 2^40) and num_chunks must be above 0");
        return;
    }
    if (!orr_grow(&p->units, &p->unit_room, p->unit_count + 1)) {
        o->ok = false;
        return;
    }
    p->units[p->unit_count++] = unit;
    l->unit = loop.unit;
    for (orr_json_iter it = orr_json_iterate(ops); !o->code && orr_json_next_value(&it, &v);)
        o->code = read_op(o->r, l, v);
    l->unit = COLL_NO_UNIT;
    loop.to = (uint32_t)l->b->count;
    /* Nothing to repeat, and run_block could not tell its end from its beginning. */
    if (loop.to == loop.from)
        return;
    if (!o->code && !orr_grow(&l->b->loops, &l->b->loop_room, l->b->loop_count + 1))
        o->ok = false;
    else if (!o->code)
        l->b->loops[l->b->loop_count++] = loop;
}

static bool has_packets(orr_str name)
{
    return name.len > 3 && memcmp(name.ptr + name.len - 3, "pkt", 3) == 0;
}

static void run_op(op_reader *o, orr_str name, const operands *src, const operands *dst)
{
    if (orr_str_is(name, "nop"))
        return;
    if (orr_str_is(name, "barrier"))
        do_barrier(o);
    else if (orr_str_is(name, "put") || orr_str_is(name, "ppkt"))
        do_put(o, src, dst, has_packets(name));
    else if (orr_str_is(name, "pws") || orr_str_is(name, "pwsf")) {
        do_put(o, src, dst, false);
        each_channel(o, PLAN_SIGNAL);
        if (name.len == 4)
            each_channel(o, PLAN_FLUSH);
    } else if (orr_str_is(name, "get"))
        do_get(o, src, dst);
    else if (orr_str_is(name, "copy"))
        do_copy(o, src, dst, false, false);
    else if (orr_str_is(name, "cpkt"))
        do_copy(o, src, dst, false, true);
    else if (orr_str_is(name, "upkt"))
        do_copy(o, src, dst, true, false);
    else if (orr_str_is(name, "signal") || orr_str_is(name, "rlxsignal"))
        each_channel(o, PLAN_SIGNAL);
    else if (orr_str_is(name, "wait") || orr_str_is(name, "rlxwait"))
        each_channel(o, PLAN_WAIT);
    else if (orr_str_is(name, "flush"))
        each_channel(o, PLAN_FLUSH);
    else if (orr_str_is(name, "re") || orr_str_is(name, "res"))
        do_reduce(o, src, dst, false, false, 1);
    else if (orr_str_is(name, "rre") || orr_str_is(name, "rres"))
        do_reduce(o, src, dst, true, false, 1);
    else if (orr_str_is(name, "repkt") || orr_str_is(name, "respkt"))
        do_reduce(o, src, dst, false, true, 1);
    else if (orr_str_is(name, "recpkt") || orr_str_is(name, "recspkt"))
        do_reduce(o, src, dst, false, true, 2);
    else if (orr_str_is(name, "rppkt"))
        do_read_put(o, src, dst);
    else if (orr_str_is(name, "sem_acquire"))
        do_semaphore(o, PLAN_ACQUIRE);
    else if (orr_str_is(name, "sem_release"))
        do_semaphore(o, PLAN_RELEASE);
    else if (orr_str_is(name, "pipeline"))
        do_pipeline(o);
    else if (orr_str_is(name, "glres") || orr_str_is(name, "gstore") ||
             orr_str_is(name, "gstorepkt"))
        o->code = plan_fail(
            o->r->p, orr_json_byte(o->v), o->r->err,
            "the operation \"%.*s\" needs a switch that reduces (NVLS), which is not supported",
            (int)name.len, name.ptr);
    else
        o->code = plan_fail(o->r->p, orr_json_byte(o->v), o->r->err, "unknown operation \"%.*s\"",
                            (int)(name.len < SHOWN ? name.len : SHOWN), name.ptr);
}

static orr_code read_op(reader *r, block_lists *l, orr_json_value v)
{
    static const char *const known[] = {"name",        "src_buff",      "dst_buff",
                                        "channel_ids", "channel_type",  "reduce_op",
                                        "barrier_id",  "semaphore_ids", "num_threadblocks",
                                        "tbg_info",    "iter_context",  "ops",
                                        NULL};
    op_reader o = {.r = r, .l = l, .v = v, .type = CHANNELS, .parts = 1, .ok = true};
    operands src, dst;
    orr_json_value x;
    orr_str name;
    orr_code code = check_keys(r, v, known);
    if (code || (code = text(r, v, "name", &name)))
        return code;
    if (orr_json_find(v, "channel_type", &x)) {
        orr_str t;
        const bool is_none = orr_json_type_of(x) == ORR_JSON_STRING &&
                             !orr_json_get_str(x, &t, r->err) &&
                             /* A switch is refused below, with the operation or buffer that needs
                              * it. */
                             (orr_str_is(t, "none") || orr_str_is(t, "switch"));
        if (!is_none && (code = get_channel_type(r, v, "channel_type", &o.type)))
            return code;
    }
    if (orr_json_find(v, "tbg_info", &x) &&
        ((code = number(r, x, "tbg_size", PLAN_MOST_PARTS, &o.parts)) ||
         (code = number(r, x, "tb_id", (uint64_t)o.parts - 1, &o.part))))
        return code;
    const bool has_switch = orr_str_is(name, "glres") || orr_str_begins(name, "gstore");
    src.count = dst.count = 0;
    if (!has_switch) { /* these are refused by name */
        read_operands(&o, "src_buff", &src);
        read_operands(&o, "dst_buff", &dst);
    }
    if (!o.code)
        run_op(&o, name, &src, &dst);
    /* A place notes one landing, and all pieces of a pipeline share their places. */
    if (!o.code && o.ok && l->unit != COLL_NO_UNIT && has_packets(name))
        o.code = fail_at(r, v, "packets in a pipeline are not supported");
    return o.code ? o.code : o.ok ? ORR_OK : orr_no_memory(r->err);
}

/* ---- a thread block ---- */

static orr_code read_list(const reader *r,
                          orr_json_value v,
                          const char *list_key,
                          const char *type_key,
                          const char *ids_key,
                          const size_t known[CHANNELS],
                          uint32_t *out[CHANNELS],
                          size_t count[CHANNELS],
                          size_t room[CHANNELS])
{
    orr_json_value list, c, ids, id;
    orr_code code = ORR_OK;
    if (!orr_json_find(v, list_key, &list))
        return ORR_OK;
    for (orr_json_iter it = orr_json_iterate(list); !code && orr_json_next_value(&it, &c);) {
        channel_type t;
        if ((code = get_channel_type(r, c, type_key, &t)) ||
            (code = need(r, c, ids_key, ORR_JSON_ARRAY, &ids)))
            return code;
        for (orr_json_iter at = orr_json_iterate(ids); !code && orr_json_next_value(&at, &id);) {
            uint32_t n;
            if (known[t] == 0)
                code = plan_fail(r->p, orr_json_byte(id), r->err,
                                 "%s: the GPU has none of this type", ids_key);
            else if (!(code = take_number(r, id, ids_key, known[t] - 1, &n)) &&
                     !push(&out[t], &count[t], &room[t], n))
                code = orr_no_memory(r->err);
        }
    }
    return code;
}

static orr_code read_block(reader *r, orr_json_value v, uint32_t rank)
{
    static const char *const known[] = {"id", "ops", "channels", "remote_buffer_refs", NULL};
    const gpu *g = &r->gpus[rank];
    /* One list of the GPU, for channels of both types. */
    const size_t remotes[CHANNELS] = {g->remote_count, g->remote_count};
    block_lists l = {.g = g, .unit = COLL_NO_UNIT};
    orr_json_value ops, op;
    uint32_t id;
    orr_code code = check_keys(r, v, known);
    if (code || (code = number(r, v, "id", UINT32_MAX - 1, &id)) ||
        (code = need(r, v, "ops", ORR_JSON_ARRAY, &ops)))
        return code;
    code = read_list(r, v, "channels", "channel_type", "channel_ids", g->channel_count, l.channels,
                     l.channel_count, l.channel_room);
    if (!code)
        code = read_list(r, v, "remote_buffer_refs", "access_channel_type", "remote_buffer_ids",
                         remotes, l.remotes, l.remote_count, l.remote_room);
    if (!code && !(l.b = plan_add_block(r->p, rank, id)))
        code = orr_no_memory(r->err);
    for (orr_json_iter it = orr_json_iterate(ops); !code && orr_json_next_value(&it, &op);)
        code = read_op(r, &l, op);
    for (int t = 0; t < CHANNELS; t++) {
        orr_free(l.channels[t]);
        orr_free(l.remotes[t]);
    }
    return code;
}

/* ---- a GPU, and all of them ---- */

/* Thread blocks that share an operation split its chunks: find a subdivision into parts that fits
 * all splits. */
static orr_code find_parts(reader *r, orr_json_value ops)
{
    orr_json_value op, x;
    orr_code code = ORR_OK;
    for (orr_json_iter it = orr_json_iterate(ops); !code && orr_json_next_value(&it, &op);) {
        uint32_t size;
        if (orr_json_find(op, "ops", &x))
            code = find_parts(r, x);
        if (code || !orr_json_find(op, "tbg_info", &x))
            continue;
        if ((code = number(r, x, "tbg_size", PLAN_MOST_PARTS, &size)))
            return code;
        if (size == 0)
            return fail_at(r, x, "tbg_size is 0");
        const uint64_t both = (uint64_t)r->p->parts / orr_gcd(r->p->parts, size) * size;
        if (both > PLAN_MOST_PARTS)
            return fail_at(r, x, "thread block groups of incompatible sizes");
        r->p->parts = (uint32_t)both;
    }
    return code;
}

static orr_code read_gpu_head(reader *r, orr_json_value v, uint32_t rank)
{
    static const char *const known[] = {
        "id",       "input_chunks",   "output_chunks", "scratch_chunks",
        "channels", "remote_buffers", "semaphores",    "threadblocks",
        NULL};
    coll_plan *p = r->p;
    orr_json_value blocks, b, ops;
    uint32_t id, in, out;
    orr_code code = check_keys(r, v, known);
    if (code || (code = number(r, v, "id", UINT32_MAX, &id)) ||
        (code = number(r, v, "input_chunks", PLAN_MOST_CHUNKS, &in)) ||
        (code = number(r, v, "output_chunks", PLAN_MOST_CHUNKS, &out)) ||
        (code = number(r, v, "scratch_chunks", PLAN_MOST_CHUNKS, &p->scratch[rank])) ||
        (code = need(r, v, "threadblocks", ORR_JSON_ARRAY, &blocks)))
        return code;
    if (id != rank)
        return plan_fail(p, orr_json_byte(v), r->err,
                         "found GPU %" PRIu32 ", expected GPU %" PRIu32, id, rank);
    p->chunks = p->chunks > in ? p->chunks : in;
    p->chunks = p->chunks > out ? p->chunks : out;
    for (orr_json_iter it = orr_json_iterate(blocks); !code && orr_json_next_value(&it, &b);)
        if (orr_json_find(b, "ops", &ops))
            code = find_parts(r, ops);
    if (!code)
        code = read_channels(r, v, rank);
    if (!code)
        code = read_remotes(r, v, rank);
    return code ? code : read_semaphores(r, v, rank);
}

static orr_code read_gpu_blocks(reader *r, orr_json_value v, uint32_t rank)
{
    orr_json_value blocks, b;
    orr_code code = need(r, v, "threadblocks", ORR_JSON_ARRAY, &blocks);
    for (orr_json_iter it = orr_json_iterate(blocks); !code && orr_json_next_value(&it, &b);)
        code = read_block(r, b, rank);
    return code;
}

static orr_code read_gpus(reader *r, orr_json_value list)
{
    coll_plan *p = r->p;
    orr_json_value v;
    uint32_t rank = 0;
    orr_code code = ORR_OK;
    if (orr_json_count(list) < 2 || orr_json_count(list) > PLAN_MOST_RANKS)
        return fail_at(r, list, "expected from 2 to 65,536 GPUs");
    p->ranks = orr_json_count(list);
    p->scratch = orr_arena_new(p->arena, p->ranks, uint32_t);
    r->gpus = orr_arena_new(p->arena, p->ranks, gpu);
    if (!p->scratch || !r->gpus)
        return orr_no_memory(r->err);
    for (orr_json_iter it = orr_json_iterate(list); !code && orr_json_next_value(&it, &v);)
        code = read_gpu_head(r, v, rank++);
    /* A second pass: operations count in parts, which all GPUs together determine (find_parts). */
    rank = 0;
    for (orr_json_iter it = orr_json_iterate(list); !code && orr_json_next_value(&it, &v);)
        code = read_gpu_blocks(r, v, rank++);
    return code;
}

static orr_code read_head(reader *r, orr_json_value root)
{
    coll_plan *p = r->p;
    orr_json_value x;
    orr_str name, kind, protocol;
    if (orr_json_type_of(root) != ORR_JSON_OBJECT || !orr_json_find(root, "gpus", &x) ||
        !orr_json_find(root, "collective", &x))
        return fail_at(r, root, "not a plan: expected an object with \"collective\" and \"gpus\"");
    orr_code code = text(r, root, "name", &name);
    if (code || (code = text(r, root, "collective", &kind)) ||
        (code = text(r, root, "protocol", &protocol)) ||
        (code = need(r, root, "inplace", ORR_JSON_BOOL, &x)) ||
        (code = orr_json_get_bool(x, &p->is_inplace, r->err)))
        return code;
    if (!plan_find_kind(kind, &p->kind))
        return plan_fail(p, orr_json_byte(root), r->err,
                         "plans of \"%.*s\" are not supported; expected allreduce, allgather, "
                         "reducescatter or alltoall",
                         (int)(kind.len < SHOWN ? kind.len : SHOWN), kind.ptr);
    if (orr_json_find(root, "min_message_size", &x))
        code = orr_json_get_u64(x, &p->least, r->err);
    if (!code && orr_json_find(root, "max_message_size", &x))
        code = orr_json_get_u64(x, &p->most, r->err);
    p->name = orr_arena_text(p->arena, name);
    return code ? code : p->name ? ORR_OK : orr_no_memory(r->err);
}

orr_code plan_read_json(coll_plan *p, orr_span bytes, orr_error *err)
{
    reader r = {.p = p,
                .links = orr_map_create(0),
                .counts = orr_map_create(0),
                .barriers = orr_map_create(0),
                .err = err};
    orr_json *j = NULL;
    orr_json_value root, list;
    orr_code code = r.links && r.counts && r.barriers ? orr_json_open(bytes, p->path, &j, err)
                                                      : orr_no_memory(err);
    if (!code)
        code = orr_json_only(j, &root, err);
    if (!code)
        code = read_head(&r, root);
    if (!code)
        code = need(&r, root, "gpus", ORR_JSON_ARRAY, &list);
    if (!code)
        code = read_gpus(&r, list);
    for (uint32_t i = 0; r.gpus && i < p->ranks; i++) {
        for (int t = 0; t < CHANNELS; t++) {
            orr_free(r.gpus[i].out[t]);
            orr_free(r.gpus[i].in[t]);
        }
        orr_free(r.gpus[i].remotes);
    }
    orr_json_close(j);
    orr_map_destroy(r.links);
    orr_map_destroy(r.counts);
    orr_map_destroy(r.barriers);
    return code;
}
