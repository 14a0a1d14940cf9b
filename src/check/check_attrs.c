/* SPDX-License-Identifier: Apache-2.0 */
/* check_attrs.c - the attributes of single nodes: present, of a readable kind, and with a valid
 * value.
 *
 * The columns hold what could be read; an attribute of a wrong kind seems absent there.  So each
 * record is walked once for the names and kinds of its attributes, without decoding values; values
 * come from the columns.  Required attributes are those that simulators read (chakra.md 2,
 * astra-sim.md 2); unknown attributes are ignored. */
#include "check_impl.h"

#include "trace/trace_impl.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    IN_COLL = 1 << ORR_NODE_COMM_COLL,
    IN_SEND = 1 << ORR_NODE_COMM_SEND,
    IN_RECV = 1 << ORR_NODE_COMM_RECV,
    IN_MEMORY = 1 << ORR_NODE_MEM_LOAD | 1 << ORR_NODE_MEM_STORE
};
enum { RELEASE_EVERY = 1 << 22 };

const chk_known_attr chk_known_attrs[CHK_KNOWN_COUNT] = {
    [CHK_KNOWN_COMM_TYPE] = {ORR__ATTR_COMM_TYPE, CHK_WANT_INT, IN_COLL},
    [CHK_KNOWN_COMM_SIZE] = {ORR__ATTR_COMM_SIZE, CHK_WANT_INT, IN_COLL | IN_SEND | IN_RECV},
    [CHK_KNOWN_COMM_SRC] = {ORR__ATTR_COMM_SRC, CHK_WANT_INT, IN_RECV},
    [CHK_KNOWN_COMM_DST] = {ORR__ATTR_COMM_DST, CHK_WANT_INT, IN_SEND},
    [CHK_KNOWN_COMM_TAG] = {ORR__ATTR_COMM_TAG, CHK_WANT_INT, IN_SEND | IN_RECV},
    [CHK_KNOWN_COMM_PRIORITY] = {ORR__ATTR_COMM_PRIORITY, CHK_WANT_INT, 0},
    [CHK_KNOWN_TENSOR_SIZE] = {ORR__ATTR_TENSOR_SIZE, CHK_WANT_INT, IN_MEMORY},
    [CHK_KNOWN_TENSOR_LOC] = {ORR__ATTR_TENSOR_LOC, CHK_WANT_INT, 0},
    [CHK_KNOWN_NUM_OPS] = {ORR__ATTR_NUM_OPS, CHK_WANT_INT, 0},
    [CHK_KNOWN_STREAM] = {ORR__ATTR_STREAM, CHK_WANT_INT, 0},
    [CHK_KNOWN_IS_CPU_OP] = {ORR__ATTR_IS_CPU_OP, CHK_WANT_INT, 0},
    [CHK_KNOWN_PG_NAME] = {ORR__ATTR_PG_NAME, CHK_WANT_TEXT, IN_COLL},
    [CHK_KNOWN_INVOLVED_DIM] = {ORR__ATTR_INVOLVED_DIM, CHK_WANT_BOOLS, 0},
    [CHK_KNOWN_COMM_GROUP] = {ORR__ATTR_COMM_GROUP, CHK_WANT_INT, 0},
    [CHK_KNOWN_COMMUNICATOR_ID] = {ORR__ATTR_COMMUNICATOR_ID, CHK_WANT_INT, 0},
};

static const char *known_name(int key)
{
    return orr__attr_name(chk_known_attrs[key].key);
}

/* Length and one letter leave at most one candidate. */
static int candidate(orr_str n)
{
    switch (n.len) {
    case 6:
        return CHK_KNOWN_STREAM;
    case 7:
        return n.ptr[0] == 'p' ? CHK_KNOWN_PG_NAME : CHK_KNOWN_NUM_OPS;
    case 8:
        return n.ptr[5] == 's'   ? CHK_KNOWN_COMM_SRC
               : n.ptr[5] == 'd' ? CHK_KNOWN_COMM_DST
                                 : CHK_KNOWN_COMM_TAG;
    case 9:
        return n.ptr[0] == 'i'   ? CHK_KNOWN_IS_CPU_OP
               : n.ptr[5] == 's' ? CHK_KNOWN_COMM_SIZE
                                 : CHK_KNOWN_COMM_TYPE;
    case 10:
        return n.ptr[0] == 't' ? CHK_KNOWN_TENSOR_LOC : CHK_KNOWN_COMM_GROUP;
    case 11:
        return CHK_KNOWN_TENSOR_SIZE;
    case 12:
        return CHK_KNOWN_INVOLVED_DIM;
    case 13:
        return CHK_KNOWN_COMM_PRIORITY;
    case 15:
        return CHK_KNOWN_COMMUNICATOR_ID;
    default:
        return -1;
    }
}

int chk_known_attr_find(orr_str name)
{
    const int key = candidate(name);
    return key >= 0 && memcmp(known_name(key), name.ptr, name.len) == 0 ? key : -1;
}

bool chk_attr_is_sound(const chk_known_attr *known, orr_value_kind kind, bool is_list)
{
    if (known->wanted == CHK_WANT_TEXT)
        return kind == ORR_VALUE_STRING && !is_list;
    const bool is_whole = kind >= ORR_VALUE_INT32 && kind <= ORR_VALUE_BOOL;
    return is_whole && is_list == (known->wanted == CHK_WANT_BOOLS);
}

/* ---- the names and kinds in one record ---- */

typedef struct attr_marks {
    uint32_t seen;  /* bit k: chk_known_attrs[k] is there */
    uint32_t wrong; /* ... but of an unreadable kind */
    uint32_t twice;
} attr_marks;

/* The name, and the member of the oneof that counts: the last; 0: none. */
static uint32_t attr_member(orr_span message, orr_str *name)
{
    orr_wire w = orr_wire_of(message);
    orr_field f;
    uint32_t member = 0;
    *name = (orr_str){"", 0};
    while (orr_wire_next(&w, &f)) {
        if (f.number == ATTR_NAME && f.type == ORR_WIRE_LEN)
            *name = (orr_str){(const char *)f.bytes.ptr, f.bytes.len};
        else if (f.number >= ATTR_FIRST_MEMBER && f.number <= ATTR_LAST_MEMBER)
            member = f.number;
    }
    return member;
}

static void mark_attr(attr_marks *m, orr_span message)
{
    orr_str name;
    const uint32_t member = attr_member(message, &name);
    const int key = chk_known_attr_find(name);
    if (key < 0)
        return;
    const uint32_t bit = 1u << key;
    if (m->seen & bit) {
        m->twice |= bit;
        return;
    }
    m->seen |= bit;
    const orr_value_kind kind =
        member ? (orr_value_kind)((member - ATTR_FIRST_MEMBER) / 2 + 1) : ORR_VALUE_NONE;
    if (!chk_attr_is_sound(&chk_known_attrs[key], kind, (member & 1) == 0))
        m->wrong |= bit;
}

static attr_marks mark_record(orr_span body)
{
    attr_marks m = {0};
    orr_wire w = orr_wire_of(body);
    orr_field f;
    while (orr_wire_next(&w, &f))
        if (f.number == NODE_ATTR && f.type == ORR_WIRE_LEN)
            mark_attr(&m, f.bytes);
    return m;
}

/* ---- findings about kinds ---- */

typedef struct node_check {
    chk_run *k;
    const chk_class *cls;
    const orr_columns *c;
    uint32_t node;
    attr_marks marks;
    struct slot_look *looks; /* by slot of a class with holes; NULL: not needed so far */
} node_check;

static const char *kind_words(const node_check *n, int key)
{
    orr_node node;
    orr_attr a;
    orr_trace_node(n->cls->t, n->node, &node);
    if (!orr__node_get(&node, chk_known_attrs[key].key, &a) || a.kind == ORR_VALUE_NONE)
        return "without a value";
    return orr_value_member(a.kind, a.is_list);
}

static void report_wrong_kinds(const node_check *n)
{
    static const char *const wanted[] = {"an integer", "string_val", "bool_list"};
    const uint32_t type = n->c->type[n->node];
    for (uint32_t left = n->marks.wrong; left; left &= left - 1) {
        const int key = __builtin_ctz(left);
        const chk_known_attr *a = &chk_known_attrs[key];
        const bool is_needed = type < 8 && a->is_needed >> type & 1;
        const orr_check_kind kind = is_needed ? ORR_CHECK_ATTRIBUTE_KIND : ORR_CHECK_ODD_ATTRIBUTE;
        chk_add(n->k, n->cls, kind, n->node, "%s is %s where %s is expected",
                orr__attr_name(a->key), chk_is_kept(n->k, kind) ? kind_words(n, key) : "",
                wanted[a->wanted]);
    }
}

static void report_twice(const node_check *n)
{
    for (uint32_t left = n->marks.twice; left; left &= left - 1)
        chk_add(n->k, n->cls, ORR_CHECK_DUPLICATE_ATTRIBUTE, n->node,
                "%s occurs more than once; the first one counts", known_name(__builtin_ctz(left)));
}

/* ---- findings about values ---- */

static int64_t column(const int64_t *values, uint32_t node)
{
    return values ? values[node] : ORR_NO_VALUE;
}

static bool is_absent(const node_check *n, int key)
{
    return !(n->marks.seen >> key & 1);
}

/* Values that the columns cannot represent: INT64_MIN reads as absent, those above INT64_MAX
 * saturate. */
static void check_not_negative(const node_check *n, int key, const int64_t *values)
{
    const int64_t v = column(values, n->node);
    if ((n->marks.wrong >> key & 1) || is_absent(n, key) || (v >= 0 && v != INT64_MAX))
        return;
    chk_add(n->k, n->cls, ORR_CHECK_BAD_VALUE, n->node,
            v == INT64_MAX ? "%s is %" PRId64 " or more: no size is that large"
                           : "%s is %" PRId64 ": a size is not negative",
            known_name(key), v);
}

static void report_missing(const node_check *n, orr_check_kind kind, int key, const char *what)
{
    if (is_absent(n, key))
        chk_add(n->k, n->cls, kind, n->node, "%s without %s", what, known_name(key));
}

static int64_t true_comm_type(const node_check *n)
{
    orr_node node;
    orr_attr a;
    int64_t v = ORR_NO_VALUE;
    orr_trace_node(n->cls->t, n->node, &node);
    if (orr__node_get(&node, ORR__ATTR_COMM_TYPE, &a))
        orr_attr_int(&a, &v);
    return v;
}

static void check_collective(const node_check *n)
{
    report_missing(n, ORR_CHECK_MISSING_ATTRIBUTE, CHK_KNOWN_COMM_TYPE, "a collective");
    const int8_t type = n->c->comm_type ? n->c->comm_type[n->node] : -1;
    if (type != ORR_COLL_BARRIER)
        report_missing(n, ORR_CHECK_MISSING_ATTRIBUTE, CHK_KNOWN_COMM_SIZE, "a collective");
    if (type >= ORR_COLL_COUNT)
        chk_add(n->k, n->cls, ORR_CHECK_BAD_VALUE, n->node,
                "comm_type is %" PRId64 ": collectives have the numbers 0 to %d", true_comm_type(n),
                ORR_COLL_COUNT - 1);
}

/* ---- peers ---- */

/* Some ranks of a class. */
typedef struct some_ranks {
    uint32_t first, count;
    bool is_mixed; /* they do not all have the first one's value */
} some_ranks;

/* The values of all ranks of a class in a slot, examined once for all nodes that use it. */
typedef struct slot_look {
    bool is_done;
    some_ranks negative, large, foreign; /* foreign: the number of another rank */
} slot_look;

static void add_rank(const node_check *n, some_ranks *s, uint32_t rank, uint32_t slot)
{
    if (s->count++ == 0)
        s->first = rank;
    else
        s->is_mixed |= chk_value(n->k, rank, slot) != chk_value(n->k, s->first, slot);
}

static const slot_look *look_at_slot(node_check *n, uint32_t slot)
{
    const chk_class *cls = n->cls;
    const int64_t ranks = n->k->report->rank_count;
    if (!n->looks)
        n->looks = orr_arena_new(n->k->scratch, cls->holes->slot_count, slot_look);
    if (!n->looks) {
        n->k->no_memory = true;
        return NULL;
    }
    slot_look *look = &n->looks[slot];
    for (uint32_t i = 0; i < cls->rank_count && !look->is_done; i++) {
        const int64_t v = chk_value(n->k, cls->ranks[i], slot);
        if (v < 0)
            add_rank(n, &look->negative, cls->ranks[i], slot);
        else if (ranks > 1 && v >= ranks)
            add_rank(n, &look->large, cls->ranks[i], slot);
        else if (ranks > 1 && v != cls->ranks[i])
            add_rank(n, &look->foreign, cls->ranks[i], slot);
    }
    look->is_done = true;
    return look;
}

static chk_class class_of(const node_check *n, const some_ranks *who)
{
    chk_class some = *n->cls;
    some.rank = who->first;
    some.rank_count = who->count;
    return some;
}

static const char *others(const some_ranks *who)
{
    return who->is_mixed ? "; other ranks have other invalid values" : "";
}

static void report_negative_peer(const node_check *n, const some_ranks *who, int key, int64_t v)
{
    const chk_class some = class_of(n, who);
    chk_add(n->k, &some, ORR_CHECK_PEER_RANGE, n->node,
            "%s is %" PRId64 ": ranks are counted from 0%s", known_name(key), v, others(who));
}

static void report_large_peer(const node_check *n, const some_ranks *who, int key, int64_t v)
{
    const chk_class some = class_of(n, who);
    chk_add(n->k, &some, ORR_CHECK_PEER_RANGE, n->node,
            "%s is %" PRId64 ": the ranks are 0 to %u%s", known_name(key), v,
            n->k->report->rank_count - 1, others(who));
}

/* A peer must be a rank, if their number is known: a single file does not tell. */
static void check_peer(node_check *n, int key, orr_hole_field field, const int64_t *values)
{
    const uint32_t ranks = n->k->report->rank_count;
    const uint32_t slot = chk_slot(n->cls, field, n->node);
    const some_ranks all = {n->cls->rank, n->cls->rank_count, false};
    if (slot != ORR_NO_NODE) {
        const slot_look *look = look_at_slot(n, slot);
        if (look && look->negative.count)
            report_negative_peer(n, &look->negative, key,
                                 chk_value(n->k, look->negative.first, slot));
        if (look && look->large.count)
            report_large_peer(n, &look->large, key, chk_value(n->k, look->large.first, slot));
        return;
    }
    const int64_t v = column(values, n->node);
    if (v != ORR_NO_VALUE && v < 0)
        report_negative_peer(n, &all, key, v);
    else if (ranks > 1 && v >= (int64_t)ranks)
        report_large_peer(n, &all, key, v);
}

/* The ranks of a class with holes differ, so it is right for the rank of that number. */
static some_ranks other_ranks(const node_check *n, int64_t v)
{
    const chk_class *cls = n->cls;
    const bool is_in_class = orr_set_class_of(n->k->set, (uint32_t)v) == cls->index;
    const bool is_first = v == cls->rank;
    if (!is_in_class)
        return (some_ranks){cls->rank, cls->rank_count, false};
    return (some_ranks){is_first && cls->rank_count > 1 ? cls->ranks[1] : cls->rank,
                        cls->rank_count - 1, false};
}

static void report_own_rank(const node_check *n, const some_ranks *who, int key, int64_t v)
{
    const chk_class some = class_of(n, who);
    if (who->count)
        chk_add(n->k, &some, ORR_CHECK_OWN_RANK, n->node,
                "%s is %" PRId64 ", but this is rank %u%s", known_name(key), v, who->first,
                others(who));
}

static void check_own_rank(node_check *n, int key, orr_hole_field field, const int64_t *values)
{
    const uint32_t ranks = n->k->report->rank_count;
    const uint32_t slot = chk_slot(n->cls, field, n->node);
    if (slot != ORR_NO_NODE) {
        const slot_look *look = look_at_slot(n, slot);
        if (look && look->foreign.count)
            report_own_rank(n, &look->foreign, key, chk_value(n->k, look->foreign.first, slot));
        return;
    }
    const int64_t v = column(values, n->node);
    if (ranks == 1 || v < 0 || v >= (int64_t)ranks)
        return;
    if (n->cls->rank_count > 1 && !n->cls->holes) {
        chk_add(n->k, n->cls, ORR_CHECK_OWN_RANK, n->node,
                "%s is %" PRId64 " in all %u identical ranks, but should differ from rank to rank",
                known_name(key), v, n->cls->rank_count);
        return;
    }
    const some_ranks who = other_ranks(n, v);
    report_own_rank(n, &who, key, v);
}

static void check_message(node_check *n, bool is_send)
{
    const int peer = is_send ? CHK_KNOWN_COMM_DST : CHK_KNOWN_COMM_SRC;
    const char *what = is_send ? "a send" : "a receive";
    report_missing(n, ORR_CHECK_MISSING_PEER, peer, what);
    report_missing(n, ORR_CHECK_MISSING_SIZE, CHK_KNOWN_COMM_SIZE, what);
    check_peer(n, CHK_KNOWN_COMM_SRC, ORR_HOLE_COMM_SRC, n->c->comm_src);
    check_peer(n, CHK_KNOWN_COMM_DST, ORR_HOLE_COMM_DST, n->c->comm_dst);
    if (is_send)
        check_own_rank(n, CHK_KNOWN_COMM_SRC, ORR_HOLE_COMM_SRC, n->c->comm_src);
    else
        check_own_rank(n, CHK_KNOWN_COMM_DST, ORR_HOLE_COMM_DST, n->c->comm_dst);
}

static void check_type(node_check *n, uint32_t type)
{
    if (type == ORR_NODE_INVALID)
        chk_add(n->k, n->cls, ORR_CHECK_INVALID_NODE, n->node, "the node type is INVALID_NODE");
    else if (type == ORR_NODE_COMM_COLL)
        check_collective(n);
    else if (type == ORR_NODE_COMM_SEND || type == ORR_NODE_COMM_RECV)
        check_message(n, type == ORR_NODE_COMM_SEND);
    else if (type == ORR_NODE_MEM_LOAD || type == ORR_NODE_MEM_STORE)
        report_missing(n, ORR_CHECK_MISSING_SIZE, CHK_KNOWN_TENSOR_SIZE, "a memory node");
    else if (type >= ORR_NODE_TYPE_COUNT)
        chk_add(n->k, n->cls, ORR_CHECK_UNKNOWN_TYPE, n->node,
                "the node type is %u, which does not exist", type);
}

/* Releases the pages of finished records, as the reader does, so that a large file does not fill
 * memory. */
static void release_behind(const orr_trace *t, uint32_t node, uint64_t *released)
{
    const uint64_t at = t->body_at[node];
    if (!t->source || t->owned.ptr || at - *released < RELEASE_EVERY)
        return;
    const size_t base = (size_t)(t->bytes.ptr - orr_input_bytes(t->source).ptr);
    orr_input_release(t->source, base + *released, base + at);
    *released = at;
}

void chk_attrs(chk_run *k, const chk_class *cls)
{
    node_check n = {.k = k, .cls = cls, .c = cls->c};
    uint64_t released = 0;
    for (n.node = 0; n.node < n.c->count; n.node++) {
        release_behind(cls->t, n.node, &released);
        n.marks = mark_record(orr__trace_body(cls->t, n.node));
        if (n.marks.wrong)
            report_wrong_kinds(&n);
        if (n.marks.twice)
            report_twice(&n);
        check_not_negative(&n, CHK_KNOWN_COMM_SIZE, n.c->comm_size);
        check_not_negative(&n, CHK_KNOWN_TENSOR_SIZE, n.c->tensor_size);
        check_not_negative(&n, CHK_KNOWN_NUM_OPS, n.c->num_ops);
        check_type(&n, n.c->type[n.node]);
    }
}

/* ---- groups ---- */

static bool has_false(const orr_attr *a)
{
    orr_list it = orr_attr_items(a);
    orr_value v;
    if (!chk_attr_is_sound(&chk_known_attrs[CHK_KNOWN_INVOLVED_DIM], a->kind, a->is_list))
        return false;
    while (orr_list_next(&it, &v))
        if (!v.u)
            return true;
    return false;
}

static orr_str group_number(int64_t number, char room[24])
{
    const int len = snprintf(room, 24, "%" PRId64, number);
    return (orr_str){room, (size_t)len};
}

/* Number 0 is the group of all ranks (astra-sim.md 6.4). */
static bool is_all(orr_str group)
{
    return group.len == 0 || (group.len == 1 && group.ptr[0] == '0');
}

bool chk_unnamed_group(const orr_trace *t, uint32_t node, char room[24], orr_str *out)
{
    orr_node record;
    orr_attr a;
    int64_t number;
    *out = (orr_str){"", 0};
    orr_trace_node(t, node, &record);
    if ((orr__node_get(&record, ORR__ATTR_COMM_GROUP, &a) ||
         orr__node_get(&record, ORR__ATTR_COMMUNICATOR_ID, &a)) &&
        orr_attr_int(&a, &number))
        *out = group_number(number, room);
    if (!is_all(*out))
        return true;
    out->len = 0;
    return !orr__node_get(&record, ORR__ATTR_INVOLVED_DIM, &a) || !has_false(&a);
}

bool chk_collective_group(const orr_trace *t, uint32_t node, char room[24], orr_str *out)
{
    const orr_columns *c = orr_trace_columns(t);
    if (c->pg_name && c->pg_name[node] != ORR_NO_NAME) {
        *out = orr_trace_text(t, c->pg_name[node]);
        if (!is_all(*out))
            return true;
    }
    return chk_unnamed_group(t, node, room, out);
}
