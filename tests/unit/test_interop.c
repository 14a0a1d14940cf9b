/* SPDX-License-Identifier: Apache-2.0 */
/* test_interop.c - protobuf-c reads what we write and we read what protobuf-c writes, value by
 * value and byte by byte.  Built without protobuf-c (a development package) the tests are
 * skipped. */
#include "check.h"

#ifdef ORR_HAVE_PROTOBUF_C

#include "base/formats/wire.h"

#include <orrery/trace.h>

#include <float.h>
#include <math.h>

#include "et.pb-c.h"

static orr_error err;

/* ---- every member of an attribute, with the values that go wrong first ---- */

enum { ITEMS = 4 };

typedef struct row {
    orr_value_kind kind;
    orr_value values[ITEMS];
} row;

#define TEXT(literal)                        \
    {                                        \
        .s = { literal, sizeof literal - 1 } \
    }

static const row rows[] = {
    {ORR_VALUE_DOUBLE, {{.d = 0.1}, {.d = -DBL_MAX}, {.d = DBL_TRUE_MIN}, {.d = INFINITY}}},
    {ORR_VALUE_FLOAT,
     {{.d = 0.5}, {.d = (double)FLT_MAX}, {.d = (double)FLT_TRUE_MIN}, {.d = -0.0}}},
    {ORR_VALUE_INT32, {{.i = -1}, {.i = INT32_MIN}, {.i = INT32_MAX}, {.i = 0}}},
    {ORR_VALUE_INT64, {{.i = -1}, {.i = INT64_MIN}, {.i = INT64_MAX}, {.i = 0}}},
    {ORR_VALUE_UINT32, {{.u = 128}, {.u = UINT32_MAX}, {.u = 127}, {.u = 0}}},
    {ORR_VALUE_UINT64, {{.u = 1u << 14}, {.u = UINT64_MAX}, {.u = 1}, {.u = 0}}},
    {ORR_VALUE_SINT32, {{.i = -1}, {.i = INT32_MIN}, {.i = INT32_MAX}, {.i = 0}}},
    {ORR_VALUE_SINT64, {{.i = -1}, {.i = INT64_MIN}, {.i = INT64_MAX}, {.i = 0}}},
    {ORR_VALUE_FIXED32, {{.u = 1}, {.u = UINT32_MAX}, {.u = 0x01020304}, {.u = 0}}},
    {ORR_VALUE_FIXED64, {{.u = 1}, {.u = UINT64_MAX}, {.u = 0x0102030405060708}, {.u = 0}}},
    {ORR_VALUE_SFIXED32, {{.i = -1}, {.i = INT32_MIN}, {.i = INT32_MAX}, {.i = 0}}},
    {ORR_VALUE_SFIXED64, {{.i = -1}, {.i = INT64_MIN}, {.i = INT64_MAX}, {.i = 0}}},
    {ORR_VALUE_BOOL, {{.u = 1}, {.u = 0}, {.u = 1}, {.u = 1}}},
    {ORR_VALUE_STRING, {TEXT("text"), TEXT(""), TEXT("\xC3\xA4\xF0\x9F\x98\x80"), TEXT("a\nb")}},
    {ORR_VALUE_BYTES, {TEXT("\x00\xFF\x80"), TEXT(""), TEXT("plain"), TEXT("\xC3")}},
};
enum { ROWS = sizeof rows / sizeof *rows };

static orr_attr scalar_of(const row *r, size_t item)
{
    return (orr_attr){.name = orr_str_of("scalar"),
                      .doc = orr_str_of(item % 2 ? "why" : ""),
                      .kind = r->kind,
                      .value = r->values[item]};
}

static orr_attr list_of(const row *r, size_t count)
{
    return (orr_attr){.name = orr_str_of("list"),
                      .kind = r->kind,
                      .is_list = true,
                      .items = r->values,
                      .item_count = count};
}

/* ---- the same values as protobuf-c has them ---- */

static bool same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static bool same_text(const char *peer, orr_str s)
{
    return strlen(peer) == s.len && memcmp(peer, s.ptr, s.len) == 0;
}

static bool same_bytes(ProtobufCBinaryData peer, orr_str s)
{
    return peer.len == s.len && (s.len == 0 || memcmp(peer.data, s.ptr, s.len) == 0);
}

static void check_scalar(const Peer__Attribute *p, orr_value_kind kind, orr_value v)
{
    CHECK_EQ_U(p->value_case, 3 + 2 * (kind - 1));
    switch (kind) {
    case ORR_VALUE_DOUBLE:
        CHECK(same_bits(p->double_val, v.d));
        break;
    case ORR_VALUE_FLOAT:
        CHECK(same_bits((double)p->float_val, v.d));
        break;
    case ORR_VALUE_INT32:
        CHECK_EQ(p->int32_val, v.i);
        break;
    case ORR_VALUE_INT64:
        CHECK_EQ(p->int64_val, v.i);
        break;
    case ORR_VALUE_UINT32:
        CHECK_EQ_U(p->uint32_val, v.u);
        break;
    case ORR_VALUE_UINT64:
        CHECK_EQ_U(p->uint64_val, v.u);
        break;
    case ORR_VALUE_SINT32:
        CHECK_EQ(p->sint32_val, v.i);
        break;
    case ORR_VALUE_SINT64:
        CHECK_EQ(p->sint64_val, v.i);
        break;
    case ORR_VALUE_FIXED32:
        CHECK_EQ_U(p->fixed32_val, v.u);
        break;
    case ORR_VALUE_FIXED64:
        CHECK_EQ_U(p->fixed64_val, v.u);
        break;
    case ORR_VALUE_SFIXED32:
        CHECK_EQ(p->sfixed32_val, v.i);
        break;
    case ORR_VALUE_SFIXED64:
        CHECK_EQ(p->sfixed64_val, v.i);
        break;
    case ORR_VALUE_BOOL:
        CHECK_EQ_U(p->bool_val, v.u);
        break;
    case ORR_VALUE_STRING:
        CHECK(same_text(p->string_val, v.s));
        break;
    default:
        CHECK(same_bytes(p->bytes_val, v.s));
    }
}

/* A list message has its count and its items behind the base, whatever the type. */
#define CHECK_LIST(member, same)                  \
    do {                                          \
        CHECK_EQ_U(p->member->n_values, count);   \
        for (size_t k = 0; k < count; k++) {      \
            const orr_value v = r->values[k];     \
            CHECK(same(p->member->values[k], v)); \
        }                                         \
    } while (0)
#define SAME_REAL(a, v) same_bits((double)(a), (v).d)
#define SAME_INT(a, v) ((int64_t)(a) == (v).i)
#define SAME_UINT(a, v) ((uint64_t)(a) == (v).u)
#define SAME_TEXT(a, v) same_text((a), (v).s)
#define SAME_BYTES(a, v) same_bytes((a), (v).s)

static void check_list(const Peer__Attribute *p, const row *r, size_t count)
{
    CHECK_EQ_U(p->value_case, 4 + 2 * (r->kind - 1));
    switch (r->kind) {
    case ORR_VALUE_DOUBLE:
        CHECK_LIST(double_list, SAME_REAL);
        break;
    case ORR_VALUE_FLOAT:
        CHECK_LIST(float_list, SAME_REAL);
        break;
    case ORR_VALUE_INT32:
        CHECK_LIST(int32_list, SAME_INT);
        break;
    case ORR_VALUE_INT64:
        CHECK_LIST(int64_list, SAME_INT);
        break;
    case ORR_VALUE_UINT32:
        CHECK_LIST(uint32_list, SAME_UINT);
        break;
    case ORR_VALUE_UINT64:
        CHECK_LIST(uint64_list, SAME_UINT);
        break;
    case ORR_VALUE_SINT32:
        CHECK_LIST(sint32_list, SAME_INT);
        break;
    case ORR_VALUE_SINT64:
        CHECK_LIST(sint64_list, SAME_INT);
        break;
    case ORR_VALUE_FIXED32:
        CHECK_LIST(fixed32_list, SAME_UINT);
        break;
    case ORR_VALUE_FIXED64:
        CHECK_LIST(fixed64_list, SAME_UINT);
        break;
    case ORR_VALUE_SFIXED32:
        CHECK_LIST(sfixed32_list, SAME_INT);
        break;
    case ORR_VALUE_SFIXED64:
        CHECK_LIST(sfixed64_list, SAME_INT);
        break;
    case ORR_VALUE_BOOL:
        CHECK_LIST(bool_list, SAME_UINT);
        break;
    case ORR_VALUE_STRING:
        CHECK_LIST(string_list, SAME_TEXT);
        break;
    default:
        CHECK_LIST(bytes_list, SAME_BYTES);
    }
}

/* ---- a file with one node per row ---- */

static const uint64_t data_deps[] = {1, 127, 128, UINT64_MAX}, ctrl_deps[] = {300};
static const orr_io io = {{"[1, 2]", 6}, {"[[]]", 4}, {"Tensor(float)", 13}};

/* Four scalars, the full list, the empty list. */
enum { ATTRS = ITEMS + 2 };

static void append_row(orr_trace *t, size_t k)
{
    orr_attr attrs[ATTRS];
    for (size_t i = 0; i < ITEMS; i++)
        attrs[i] = scalar_of(&rows[k], i);
    attrs[ITEMS] = list_of(&rows[k], ITEMS);
    attrs[ITEMS + 1] = list_of(&rows[k], 0);
    const orr_draft d = {.id = k,
                         .name = orr_str_of(k % 2 ? "node" : ""),
                         .type = (uint32_t)k % 8,
                         .data_deps = data_deps,
                         .data_count = k % 5,
                         .ctrl_deps = ctrl_deps,
                         .ctrl_count = k % 2,
                         .start_us = k * 1000,
                         .duration_us = k ? UINT64_MAX : 0,
                         .inputs = k % 3 ? &io : NULL,
                         .outputs = k % 4 ? &io : NULL,
                         .attrs = attrs,
                         .attr_count = ATTRS};
    CHECK_OK(orr_trace_append(t, &d, &err), &err);
}

static orr_trace *make_trace(void)
{
    const orr_attr attr = scalar_of(&rows[3], 1);
    const orr_meta meta = {.version = orr_str_of("1.0.0"), .attrs = &attr, .attr_count = 1};
    orr_trace *t;
    CHECK_OK(orr_trace_create(&meta, &t, &err), &err);
    for (size_t k = 0; k < ROWS; k++)
        append_row(t, k);
    CHECK_OK(orr_trace_seal(t, &err), &err);
    return t;
}

static orr_span read_file(const char *path, uint8_t *room, size_t size)
{
    FILE *in = fopen(path, "rb");
    CHECK(in != NULL);
    const size_t n = fread(room, 1, size, in);
    fclose(in);
    CHECK(n > 0 && n < size);
    return (orr_span){room, n};
}

static void check_node(const Peer__Node *n, size_t k)
{
    CHECK_EQ_U(n->id, k);
    CHECK_TEXT(n->name, k % 2 ? "node" : "");
    CHECK_EQ_U(n->type, k % 8);
    CHECK_EQ_U(n->n_data_deps, k % 5);
    for (size_t i = 0; i < n->n_data_deps; i++)
        CHECK_EQ_U(n->data_deps[i], data_deps[i]);
    CHECK_EQ_U(n->n_ctrl_deps, k % 2);
    CHECK_EQ_U(n->start_time_micros, k * 1000);
    CHECK_EQ_U(n->duration_micros, k ? UINT64_MAX : 0);
    CHECK((n->inputs != NULL) == (k % 3 != 0));
    CHECK((n->outputs != NULL) == (k % 4 != 0));
    if (n->inputs)
        CHECK_TEXT(n->inputs->types, "Tensor(float)");
    CHECK_EQ_U(n->n_attr, ATTRS);
    for (size_t i = 0; i < ITEMS; i++) {
        CHECK_TEXT(n->attr[i]->doc_string, i % 2 ? "why" : "");
        check_scalar(n->attr[i], rows[k].kind, rows[k].values[i]);
    }
    check_list(n->attr[ITEMS], &rows[k], ITEMS);
    check_list(n->attr[ITEMS + 1], &rows[k], 0);
}

/* Unpacked by protobuf-c and packed again, a record is the same bytes. */
static void check_repacks(const ProtobufCMessage *m, orr_span body)
{
    uint8_t *again = malloc(body.len + 64);
    CHECK(again != NULL && protobuf_c_message_get_packed_size(m) == body.len);
    protobuf_c_message_pack(m, again);
    CHECK_BYTES(again, body.ptr, body.len);
    free(again);
}

static size_t check_file(orr_span all, bool are_rows)
{
    orr_wire w = orr_wire_of(all);
    orr_span body = {0};
    size_t k = 0;
    CHECK(orr_wire_bytes(&w, &body));
    Peer__GlobalMetadata *meta = peer__global_metadata__unpack(NULL, body.len, body.ptr);
    CHECK(meta != NULL);
    check_repacks(&meta->base, body);
    peer__global_metadata__free_unpacked(meta, NULL);
    for (; w.at < w.end; k++) {
        CHECK(orr_wire_bytes(&w, &body));
        Peer__Node *n = peer__node__unpack(NULL, body.len, body.ptr);
        CHECK(n != NULL);
        if (are_rows)
            check_node(n, k);
        check_repacks(&n->base, body);
        peer__node__free_unpacked(n, NULL);
    }
    return k;
}

TEST(test_interop__protobuf_c_reads_what_we_write)
{
    static uint8_t room[1 << 16];
    orr_trace *t = make_trace();
    CHECK_OK(orr_trace_write(t, "ours.et", NULL, &err), &err);
    orr_trace_destroy(t);
    CHECK_EQ_U(check_file(read_file("ours.et", room, sizeof room), true), ROWS);
    unlink("ours.et");
}

/* ---- the other way ---- */

static void check_value(orr_value_kind kind, orr_value got, orr_value want)
{
    switch (kind) {
    case ORR_VALUE_DOUBLE:
    case ORR_VALUE_FLOAT:
        CHECK(same_bits(got.d, want.d));
        break;
    case ORR_VALUE_STRING:
    case ORR_VALUE_BYTES:
        CHECK(got.s.len == want.s.len);
        CHECK_BYTES(got.s.ptr, want.s.ptr, want.s.len);
        break;
    default:
        CHECK_EQ(got.i, want.i);
    }
}

static void check_attr(orr_attr got, const row *r, size_t k)
{
    orr_value v;
    CHECK(got.kind == r->kind);
    CHECK(got.is_list == (k >= ITEMS));
    if (k < ITEMS) {
        check_value(r->kind, got.value, r->values[k]);
        return;
    }
    orr_list items = orr_attr_items(&got);
    for (size_t i = 0; i < (k == ITEMS ? ITEMS : 0); i++) {
        CHECK(orr_list_next(&items, &v));
        check_value(r->kind, v, r->values[i]);
    }
    CHECK(!orr_list_next(&items, &v));
}

/* Read our file with protobuf-c, let it write every record, and read that. */
static orr_span repack_file(orr_span all, uint8_t *out)
{
    orr_wire w = orr_wire_of(all);
    orr_span body = {0};
    size_t n = 0;
    for (size_t k = 0; w.at < w.end; k++) {
        CHECK(orr_wire_bytes(&w, &body));
        const ProtobufCMessageDescriptor *type =
            k ? &peer__node__descriptor : &peer__global_metadata__descriptor;
        ProtobufCMessage *m = protobuf_c_message_unpack(type, NULL, body.len, body.ptr);
        CHECK(m != NULL);
        size_t len = protobuf_c_message_get_packed_size(m);
        for (size_t rest = len; rest >= 128 || (out[n++] = (uint8_t)rest, false); rest >>= 7)
            out[n++] = (uint8_t)(rest | 0x80);
        n += protobuf_c_message_pack(m, out + n);
        protobuf_c_message_free_unpacked(m, NULL);
    }
    return (orr_span){out, n};
}

TEST(test_interop__we_read_what_protobuf_c_writes)
{
    static uint8_t ours[1 << 16], theirs[1 << 16];
    orr_trace *t = make_trace();
    CHECK_OK(orr_trace_write(t, "ours.et", NULL, &err), &err);
    orr_trace_destroy(t);
    const orr_span bytes = repack_file(read_file("ours.et", ours, sizeof ours), theirs);
    CHECK_OK(orr_trace_parse(bytes, "theirs.et", NULL, &t, &err), &err);
    CHECK_EQ_U(orr_trace_columns(t)->count, ROWS);
    for (uint32_t k = 0; k < ROWS; k++) {
        orr_node node;
        orr_attr attr;
        size_t i = 0;
        orr_trace_node(t, k, &node);
        CHECK_EQ_U(node.id, k);
        CHECK_EQ_U(node.duration_us, k ? UINT64_MAX : 0);
        CHECK(node.has_inputs == (k % 3 != 0));
        for (orr_attrs it = orr_node_attrs(&node); orr_attrs_next(&it, &attr); i++)
            check_attr(attr, &rows[k], i);
        CHECK_EQ_U(i, ATTRS);
    }
    orr_trace_destroy(t);
    unlink("ours.et");
}

/* Files of the reference: what protobuf-c makes of them is what stands in them. */
TEST(test_interop__protobuf_c_agrees_on_reference_files)
{
    static uint8_t room[1 << 18];
    static const char *const names[] = {"generator/ALL_REDUCE.0.et", "wild/tutorial_mlp_model.et",
                                        "wild/astrasim_custom_ring.et", "link/basic/trace.et"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[600], name[100];
        orr_trace *t;
        snprintf(name, sizeof name, "chakra/%s", names[i]);
        check_golden(path, sizeof path, name);
        const size_t count = check_file(read_file(path, room, sizeof room), false);
        CHECK_OK(orr_trace_read(path, NULL, &t, &err), &err);
        CHECK_EQ_U(orr_trace_columns(t)->count, count);
        orr_trace_destroy(t);
    }
}

#else

static void no_peer(void)
{
    skip(); /* built without protobuf-c */
}
TEST(test_interop__protobuf_c_reads_what_we_write)
{
    no_peer();
}
TEST(test_interop__we_read_what_protobuf_c_writes)
{
    no_peer();
}
TEST(test_interop__protobuf_c_agrees_on_reference_files)
{
    no_peer();
}

#endif

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_interop__protobuf_c_reads_what_we_write),
        RUN(test_interop__we_read_what_protobuf_c_writes),
        RUN(test_interop__protobuf_c_agrees_on_reference_files),
    };
    return RUN_ALL(tests);
}
