/* SPDX-License-Identifier: Apache-2.0 */
/* nsys_payload.c - what NCCL from 2.22 on says about its calls by itself: a range named after the
 * function, with a payload.
 *
 * An export has the payload as JSON text, by the names of its entries, or as bytes behind a header
 * of 32:
 *
 *     0 u32 domain   8 u32 schema   16 u64 bytes of the payload   24 u64 bytes in all   32 the payload
 *
 * whose entries (name, type, offset) are rows of NVTX_PAYLOAD_SCHEMA_ENTRIES.  Names differ a
 * little between releases, so an entry is known by its leading words.  A payload that makes no
 * sense is no payload: the range counts as one without. Invariant: offsets and sizes from the file
 * are checked against the bytes that are there. */
#include "nsys_impl.h"

#include "base/formats/json.h"
#include "base/text/number.h"
#include "base/text/text.h"

typedef enum field {
    COMMUNICATOR,
    BYTES,
    ROOT,
    PEER,
    RANKS,
    RANK,
    FIELDS,
    NO_FIELD = FIELDS
} field;

typedef struct entry {
    int64_t domain, schema;
    uint64_t offset;
    uint8_t size; /* bytes of the number */
    uint8_t what; /* field */
} entry;

struct orr__payloads {
    entry *entries; /* few: one for each kind of call and field */
    size_t count, room;
};

typedef struct values {
    bool has[FIELDS];
    uint64_t of[FIELDS];
} values;

static field field_of(orr_str name)
{
    static const struct {
        const char *words;
        field what;
    } names[] = {
        {"NCCL communicator ID", COMMUNICATOR},
        {"NCCL communicator id", COMMUNICATOR},
        {"Message size", BYTES},
        {"Bytes", BYTES},
        {"Root", ROOT},
        {"Peer", PEER},
        {"No. of ranks", RANKS},
        {"Number of ranks", RANKS},
        {"Rank", RANK},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (orr_str_begins(name, names[i].words))
            return names[i].what;
    return NO_FIELD;
}

/* Bytes of an entry's type; 0: not an integer.  NVTX numbers C's own types, then those of a fixed
 * width. */
static uint8_t size_of_type(int64_t type)
{
    static const uint8_t sizes[] = {
        [1] = 1,  [2] = 1,  [3] = 2,  [4] = 2,  [5] = 4,  [6] = 4, /* char, short, int */
        [7] = 8,  [8] = 8,  [9] = 8,  [10] = 8,                    /* long, long long */
        [11] = 1, [12] = 1, [13] = 2, [14] = 2, [15] = 4, [16] = 4,
        [17] = 8, [18] = 8, [22] = 8, /* size_t */
        [23] = 8,                     /* an address */
    };
    return type >= 0 && type < (int64_t)sizeof sizes ? sizes[type] : 0;
}

static orr_code add_entry(orr__payloads *p, const orr_sqlite_rows *rows, orr_error *err)
{
    const field what = field_of(orr_sqlite_text(rows, 3));
    const uint8_t size = size_of_type(orr_sqlite_i64(rows, 2, -1));
    const int64_t offset = orr_sqlite_i64(rows, 4, 0);
    if (what == NO_FIELD || !size || offset < 0)
        return ORR_OK;
    if (!orr_grow(&p->entries, &p->room, p->count + 1))
        return orr_no_memory(err);
    p->entries[p->count++] = (entry){
        .domain = orr_sqlite_i64(rows, 0, 0),
        .schema = orr_sqlite_i64(rows, 1, 0),
        .offset = (uint64_t)offset,
        .size = size,
        .what = (uint8_t)what,
    };
    return ORR_OK;
}

static bool has_schemas(const orr_sqlite *db)
{
    static const char *const columns[] = {"domainId", "schemaId", "type", "name", "offset"};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        if (!orr_sqlite_has_column(db, "NVTX_PAYLOAD_SCHEMA_ENTRIES", columns[i]))
            return false;
    return true;
}

orr_code orr__payloads_read(orr_sqlite *db, orr__payloads **out, orr_error *err)
{
    orr_sqlite_rows *rows = NULL;
    *out = orr_alloc(1, sizeof **out);
    if (!*out)
        return orr_no_memory(err);
    if (!has_schemas(db))
        return ORR_OK;
    orr_code code = orr_sqlite_select(
        db,
        "SELECT domainId, schemaId, type, name, offset FROM NVTX_PAYLOAD_SCHEMA_ENTRIES LIMIT 65536",
        &rows, err);
    while (!code && (code = orr_sqlite_next(rows, err)) == ORR_OK)
        code = add_entry(*out, rows, err);
    orr_sqlite_end(rows);
    if (code == ORR_END)
        return ORR_OK;
    orr__payloads_free(*out);
    *out = NULL;
    return code;
}

void orr__payloads_free(orr__payloads *p)
{
    if (!p)
        return;
    orr_free(p->entries);
    orr_free(p);
}

/* ---- as bytes ---- */

static uint64_t little_endian(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = n; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

static void read_bytes(const orr__payloads *p, orr_span all, values *out)
{
    enum { HEADER = 32 };
    if (all.len < HEADER)
        return;
    const int64_t domain = (int64_t)little_endian(all.ptr, 4);
    const int64_t schema = (int64_t)little_endian(all.ptr + 8, 4);
    const size_t size = all.len - HEADER;
    for (size_t i = 0; i < p->count; i++) {
        const entry *e = &p->entries[i];
        if (e->domain != domain || e->schema != schema || e->offset > size ||
            size - e->offset < e->size)
            continue;
        out->has[e->what] = true;
        out->of[e->what] = little_endian(all.ptr + HEADER + e->offset, e->size);
    }
}

/* ---- as JSON ---- */

/* A number, or a text of one: some exports write 1,048,576. */
static bool json_number(orr_json_value v, uint64_t *out)
{
    char plain[32];
    size_t n = 0;
    orr_str text;
    if (orr_json_type_of(v) == ORR_JSON_INT)
        return orr_json_get_u64(v, out, NULL) == ORR_OK;
    if (orr_json_type_of(v) != ORR_JSON_STRING || orr_json_get_str(v, &text, NULL))
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] != ',' && n < sizeof plain)
            plain[n++] = text.ptr[i];
    return orr_text_u64((orr_str){.ptr = plain, .len = n}, out);
}

static void read_members(orr_json_value object, values *out)
{
    orr_str key;
    orr_json_value v;
    for (orr_json_iter it = orr_json_iterate(object); orr_json_next_member(&it, &key, &v);) {
        const field what = field_of(key);
        if (what != NO_FIELD && json_number(v, &out->of[what]))
            out->has[what] = true;
    }
}

static void read_json(orr_str text, values *out)
{
    orr_json *j = NULL;
    orr_json_value root;
    const orr_span bytes = {.ptr = (const uint8_t *)text.ptr, .len = text.len};
    if (orr_json_open(bytes, NULL, &j, NULL) == ORR_OK && orr_json_only(j, &root, NULL) == ORR_OK)
        read_members(root, out);
    orr_json_close(j);
}

/* ---- a row ---- */

static orr_str write_hash(uint64_t v, char room[ORR__HASH_ROOM])
{
    static const char hex[] = "0123456789abcdef";
    char *p = room + ORR__HASH_ROOM;
    do {
        *--p = hex[v & 15];
        v >>= 4;
    } while (v);
    *--p = 'x';
    *--p = '0';
    return (orr_str){.ptr = p, .len = (size_t)(room + ORR__HASH_ROOM - p)};
}

static bool is_rank_init(orr_str name)
{
    return orr_str_is(name, "ncclCommInitRank") || orr_str_is(name, "ncclCommInitRankConfig") ||
           orr_str_is(name, "ncclCommInitRankScalable");
}

static void fill(orr_nsys_row *row, const values *v, char room[ORR__HASH_ROOM])
{
    row->is_payload = true;
    row->pid = orr__nsys_pid((int64_t)row->thread);
    row->hash = write_hash(v->of[COMMUNICATOR], room);
    row->id = row->hash;
    row->bytes = v->of[BYTES];
    row->root = v->of[ROOT];
    row->peer = v->of[PEER];
    row->rank = v->of[RANK];
    row->ranks = v->of[RANKS];
    row->width = 1;
}

bool orr__payload_row(const orr__payloads *p,
                      orr_str name,
                      orr_str json,
                      orr_span bytes,
                      orr_nsys_row *row,
                      char room[ORR__HASH_ROOM])
{
    values v = {0};
    if (!orr_str_begins(name, "nccl"))
        return false;
    if (bytes.len)
        read_bytes(p, bytes, &v);
    else if (json.len)
        read_json(json, &v);
    fill(row, &v, room);
    if (orr_str_is(name, "ncclGroupStart") || orr_str_is(name, "ncclGroupEnd")) {
        row->kind = orr_str_is(name, "ncclGroupEnd") ? ORR_NSYS_GROUP_END : ORR_NSYS_GROUP_START;
        return true;
    }
    if (is_rank_init(name) && v.has[COMMUNICATOR] && v.has[RANK]) {
        row->kind = ORR_NSYS_COMM;
        return true;
    }
    row->op = orr_nccl_op_find((orr_str){.ptr = name.ptr + 4, .len = name.len - 4});
    row->kind = ORR_NSYS_CALL;
    return row->op != ORR_NCCL_OTHER && row->op != ORR_NCCL_SEND_RECV && v.has[BYTES];
}
