/* SPDX-License-Identifier: Apache-2.0 */
/* set_file.c - the one-file form of a set, .orr; docs/format/orr.md has every byte.
 *
 *     header | class body | class body | ... | class table | rank table | holes, groups | trailer
 *
 * A class body is an .et stream of the current schema (plain, so that it is used in place in the
 * mapped file, or one zstd frame).  The tables come after the bodies, so a set is written in one
 * pass; the trailer, of fixed size at the end, finds them.  All numbers are little-endian.  Nothing
 * in the file is trusted: every offset, count and length is checked against the file's size, and
 * every part has a hash. */
#include "base/io/pack.h"
#include "base/memory/hash.h"
#include "base/options.h"
#include "base/short_forms.h"
#include "base/threads/pool.h"
#include "trace/set_impl.h"

/* ---- holes and the ranks' values as the last table of a .orr file; docs/format/orr.md.
 *
 * Class by class: slots, holes (each as the distance from the one before), then slot by slot the
 * values of the class's ranks in rank order, each as the difference from the one
 * before.  Differences repeat with the shape of the machine, so the table, always compressed, takes
 * a fraction of a byte per rank. */

/* The part of a .orr file with holes and values; empty if the set has none. */
static bool set_has_holes(const orr_set *s)
{
    for (size_t i = 0; i < s->class_count; i++)
        if (s->classes[i].slot_count)
            return true;
    return false;
}

/* ---- ranks by class ---- */

/* Ranks sorted by class: those of class c are list[first[c] .. first[c + 1]). */
typedef struct by_class {
    uint32_t *first, *list;
} by_class;

static bool list_ranks(const orr_set *s, by_class *b)
{
    b->first = orr_alloc(s->class_count + 2, sizeof *b->first);
    b->list = orr_alloc(s->rank_count + 1, sizeof *b->list);
    if (!b->first || !b->list)
        return false;
    for (size_t c = 0; c < s->class_count; c++)
        b->first[c + 2] =
            b->first[c + 1] + s->classes[c].ranks; /* filling moves them down by one */
    for (size_t r = 0; r < s->rank_count; r++) {
        const uint32_t c = s->ranks[r].class_index;
        b->list[b->first[c + 1]++] = (uint32_t)r;
    }
    return true;
}

static void by_class_fini(by_class *b)
{
    orr_free(b->first);
    orr_free(b->list);
}

/* ---- writing ---- */

/* A class without ranks has no values for its holes; they are left out. */
static void save_holes(const orr__class *c, orr_buf *out)
{
    const size_t count = c->ranks ? c->hole_count : 0;
    uint32_t before = 0;
    orr_put_varint(out, c->ranks ? c->slot_count : 0);
    orr_put_varint(out, count);
    for (size_t i = 0; i < count; i++) {
        const orr_hole *h = &c->holes[i];
        orr_put_varint(out, h->node - before);
        orr_put_varint(out, (uint64_t)h->slot * ORR_HOLE_FIELDS + h->field);
        before = h->node;
    }
}

static void save_values(const orr_set *s, const by_class *b, size_t c, orr_buf *out)
{
    for (uint32_t slot = 0; slot < s->classes[c].slot_count; slot++) {
        uint64_t before = 0;
        for (uint32_t i = b->first[c]; i < b->first[c + 1]; i++) {
            const uint64_t v = (uint64_t)s->values[s->ranks[b->list[i]].values_at + slot];
            orr_put_varint(out, orr_zigzag((int64_t)(v - before)));
            before = v;
        }
    }
}

static orr_code holes_save(const orr_set *s, orr_buf *out, orr_error *err)
{
    by_class b = {0};
    const bool ok = list_ranks(s, &b);
    for (size_t c = 0; ok && c < s->class_count; c++) {
        save_holes(&s->classes[c], out);
        save_values(s, &b, c, out);
    }
    by_class_fini(&b);
    return ok && !out->failed ? ORR_OK : orr_no_memory(err);
}

/* ---- reading ---- */

typedef struct reader {
    orr_set *s;
    orr_wire w;
    by_class ranks;
    orr_hole *holes;
    size_t room;
    const char *bad;
} reader;

static bool next(reader *r, uint64_t most, uint64_t *out)
{
    if (!r->bad && (!orr_wire_varint(&r->w, out) || *out > most))
        r->bad = "the table of holes is damaged";
    return !r->bad;
}

static bool load_hole(reader *r, uint64_t *node, orr_hole *out)
{
    uint64_t step, place;
    if (!next(r, UINT32_MAX, &step) ||
        !next(r, (uint64_t)ORR__SLOTS_MOST * ORR_HOLE_FIELDS, &place))
        return false;
    *node += step;
    *out = (orr_hole){.node = *node < UINT32_MAX ? (uint32_t)*node : UINT32_MAX,
                      .field = (orr_hole_field)(place % ORR_HOLE_FIELDS),
                      .slot = (uint32_t)(place / ORR_HOLE_FIELDS)};
    return true;
}

/* A value takes at least a byte, so the remaining bytes limit the number of slots. */
static orr_code load_holes(reader *r, uint32_t c, orr_error *err)
{
    uint64_t slots, count, node = 0;
    if (!next(r, ORR__SLOTS_MOST, &slots) || !next(r, (uint64_t)(r->w.end - r->w.at), &count))
        return ORR_OK;
    if (slots * r->s->classes[c].ranks > (uint64_t)(r->w.end - r->w.at) ||
        (slots && r->s->classes[c].ranks == 0)) {
        r->bad = "more slots than there are values";
        return ORR_OK;
    }
    if (!orr_grow(&r->holes, &r->room, (size_t)count))
        return orr_no_memory(err);
    for (uint64_t i = 0; i < count; i++)
        if (!load_hole(r, &node, &r->holes[i]))
            return ORR_OK;
    return orr__class_set_holes(r->s, c, r->holes, (size_t)count, (uint32_t)slots, &r->bad, err);
}

static void load_slot(reader *r, uint32_t c, uint32_t slot)
{
    const orr__class *k = &r->s->classes[c];
    uint64_t before = 0, coded;
    for (uint32_t i = r->ranks.first[c]; i < r->ranks.first[c + 1]; i++) {
        if (!next(r, UINT64_MAX, &coded))
            return;
        before += (uint64_t)orr_unzigzag(coded);
        if (!orr__slot_fits(k, slot, (int64_t)before)) {
            r->bad = "a value does not fit into its slot";
            return;
        }
        r->s->values[r->s->ranks[r->ranks.list[i]].values_at + slot] = (int64_t)before;
    }
}

/* A value takes at least a byte, so the remaining bytes limit their number. */
static orr_code load_values(reader *r, uint32_t c, orr_error *err)
{
    orr_set *s = r->s;
    const uint32_t slots = s->classes[c].slot_count, ranks = s->classes[c].ranks;
    const uint64_t count = (uint64_t)slots * ranks;
    if (count > (uint64_t)(r->w.end - r->w.at)) {
        r->bad = "the table of holes is cut short";
        return ORR_OK;
    }
    if (!orr_grow(&s->values, &s->value_room, s->value_count + (size_t)count))
        return orr_no_memory(err);
    for (uint32_t i = r->ranks.first[c]; i < r->ranks.first[c + 1]; i++) {
        s->ranks[r->ranks.list[i]].values_at = s->value_count;
        s->value_count += slots;
    }
    for (uint32_t slot = 0; slot < slots && !r->bad; slot++)
        load_slot(r, c, slot);
    return ORR_OK;
}

orr_code orr__holes_load(orr_set *s, orr_span bytes, const char **bad, orr_error *err)
{
    reader r = {.s = s, .w = orr_wire_of(bytes)};
    orr_code code = list_ranks(s, &r.ranks) ? ORR_OK : orr_no_memory(err);
    for (uint32_t c = 0; c < s->class_count && !code && !r.bad; c++) {
        code = load_holes(&r, c, err);
        if (!code && !r.bad)
            code = load_values(&r, c, err);
    }
    if (!code && !r.bad && r.w.at != r.w.end)
        r.bad = "there is data after the table of holes";
    by_class_fini(&r.ranks);
    orr_free(r.holes);
    *bad = r.bad;
    return code;
}

enum { HEADER_SIZE = 16, CLASS_ENTRY = 56, RANK_ENTRY = 16, TRAILER_SIZE = 56, FORMAT_VERSION = 1 };
enum { PLAIN = 0, ZSTD_FRAME = 1 };
/* Features: tables after the rank table, in this order, each compressed after its two lengths (8
 * bytes each). */
enum { HAS_HOLES = 1, HAS_GROUPS = 2, FEATURES = HAS_HOLES | HAS_GROUPS };

typedef struct extra_table {
    uint32_t feature;
    const char *damaged;
    orr_code (*save)(const orr_set *s, orr_buf *out, orr_error *err);
    orr_code (*load)(orr_set *s, orr_span bytes, const char **bad, orr_error *err);
} extra_table;

static const extra_table extra_tables[] = {
    {HAS_HOLES, "the table of holes is damaged", holes_save, orr__holes_load},
    {HAS_GROUPS, "the table of groups is damaged", orr__groups_save, orr__groups_load},
};
enum { EXTRA_TABLES = sizeof extra_tables / sizeof *extra_tables };

static const uint8_t head_magic[8] = {0x89, 'O', 'R', 'R', '\r', '\n', 0x1a, '\n'};
static const uint8_t tail_magic[8] = {'O', 'R', 'R', ' ', 'e', 'n', 'd', '\n'};

typedef struct class_entry {
    uint64_t at, stored, raw, hash;
    uint32_t nodes, ranks, first;
    uint32_t packing, schema;
} class_entry;

typedef struct trailer {
    uint64_t class_table, rank_table, file_size, table_hash;
    uint64_t features;
    uint32_t classes, ranks;
} trailer;

/* ---- writing ---- */

static void put_u32(orr_buf *b, uint32_t v)
{
    orr_put_fixed(b, 4, v);
}

static void put_u64(orr_buf *b, uint64_t v)
{
    orr_put_fixed(b, 8, v);
}

static void put_class(orr_buf *b, const class_entry *e)
{
    put_u64(b, e->at);
    put_u64(b, e->stored);
    put_u64(b, e->raw);
    put_u64(b, e->hash);
    put_u32(b, e->nodes);
    put_u32(b, e->ranks);
    put_u32(b, e->first);
    put_u32(b, e->packing);
    put_u32(b, e->schema);
    put_u32(b, 0);
}

typedef struct saver {
    orr_output *o;
    uint64_t at;
    orr_buf tables;
    bool compress;
} saver;

static void save_bytes(saver *v, const void *p, size_t n)
{
    orr_output_add(v->o, p, n);
    v->at += n;
}

static void align(saver *v)
{
    static const uint8_t zeros[8];
    save_bytes(v, zeros, (size_t)(-v->at & 7));
}

static orr_code save_packed(saver *v, orr_span body, orr_error *err)
{
    orr_buf packed = {0};
    const orr_code code = orr_pack(body, &packed, err);
    if (!code)
        save_bytes(v, packed.ptr, packed.len);
    orr_buf_fini(&packed);
    return code;
}

static orr_code save_class(saver *v, const orr__class *c, orr_error *err)
{
    const orr_span body = c->t->bytes;
    align(v);
    class_entry e = {.at = v->at,
                     .raw = body.len,
                     .hash = orr_hash_bytes(body.ptr, body.len, 0),
                     .nodes = (uint32_t)c->t->count,
                     .ranks = c->ranks,
                     .first = c->first,
                     .packing = v->compress ? ZSTD_FRAME : PLAIN,
                     .schema = c->t->schema};
    orr_code code = ORR_OK;
    if (v->compress)
        code = save_packed(v, body, err);
    else
        save_bytes(v, body.ptr, body.len);
    e.stored = v->at - e.at;
    put_class(&v->tables, &e);
    return code;
}

static orr_code save_extra(saver *v, const orr_set *s, const extra_table *x, orr_error *err)
{
    orr_buf plain = {0}, packed = {0};
    orr_code code = x->save(s, &plain, err);
    if (!code)
        code = orr_pack((orr_span){plain.ptr, plain.len}, &packed, err);
    put_u64(&v->tables, plain.len);
    put_u64(&v->tables, packed.len);
    orr_buf_add(&v->tables, packed.ptr, packed.len);
    orr_buf_fini(&plain);
    orr_buf_fini(&packed);
    return code;
}

static orr_code save_end(saver *v, const orr_set *s, uint32_t features, orr_error *err)
{
    orr_code code = ORR_OK;
    align(v);
    const trailer t = {.class_table = v->at,
                       .rank_table = v->at + s->class_count * CLASS_ENTRY,
                       .classes = (uint32_t)s->class_count,
                       .ranks = (uint32_t)s->rank_count};
    for (size_t i = 0; i < s->rank_count; i++) {
        put_u32(&v->tables, s->ranks[i].class_index);
        put_u32(&v->tables, 0);
        put_u64(&v->tables, s->ranks[i].id_shift);
    }
    for (int i = 0; i < EXTRA_TABLES && !code; i++)
        if (features & extra_tables[i].feature)
            code = save_extra(v, s, &extra_tables[i], err);
    const uint64_t hash = orr_hash_bytes(v->tables.ptr, v->tables.len, 0);
    const uint64_t size = v->at + v->tables.len + TRAILER_SIZE;
    put_u64(&v->tables, t.class_table);
    put_u64(&v->tables, t.rank_table);
    put_u32(&v->tables, t.classes);
    put_u32(&v->tables, t.ranks);
    put_u64(&v->tables, hash);
    put_u64(&v->tables, size);
    put_u64(&v->tables, features);
    orr_buf_add(&v->tables, tail_magic, 8);
    orr_output_drain(v->o, &v->tables);
    return code;
}

static orr_code check_complete(const orr_set *s, orr_error *err)
{
    for (size_t i = 0; i < s->rank_count; i++)
        if (s->ranks[i].class_index == ORR_NO_NODE)
            return orr_fail(err, ORR_EUSAGE, NULL,
                            "rank %zu could not be read: the set cannot be saved", i);
    return ORR_OK;
}

orr_code orr_set_save(const orr_set *s,
                      const char *path,
                      const orr_set_save_options *opt,
                      orr_error *err)
{
    orr_set_save_options own;
    orr_code code = ORR__TAKE_OPTIONS(&own, opt, orr_set_save_options, err);
    if (code)
        return code;
    saver v = {.compress = own.compress};
    const uint32_t features =
        (set_has_holes(s) ? HAS_HOLES : 0) | (s->group_count ? HAS_GROUPS : 0);
    orr_buf header = {0};
    code = check_complete(s, err);
    if (!code)
        code = orr_output_open(path, &v.o, err);
    if (code)
        return code;
    orr_buf_add(&header, head_magic, 8);
    put_u32(&header, FORMAT_VERSION);
    put_u32(&header, features);
    v.at = header.len;
    orr_output_drain(v.o, &header);
    orr_buf_fini(&header);
    for (size_t i = 0; i < s->class_count && !code; i++)
        code = save_class(&v, &s->classes[i], err);
    if (!code)
        code = save_end(&v, s, features, err);
    if (!code)
        code = orr_output_commit(&v.o, err);
    orr_buf_fini(&v.tables);
    orr_output_discard(v.o);
    return code;
}

/* ---- reading ---- */

typedef struct orr_file {
    const char *path;
    orr_span all;
    trailer t;
} orr_file;

static orr_code damage(const orr_file *f, uint64_t byte, orr_error *err, const char *what)
{
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_byte(f->path, byte)), "%s", what);
}

static uint64_t get_u64(const uint8_t *p)
{
    return orr__load_le(p, 8);
}

static uint32_t get_u32(const uint8_t *p)
{
    return (uint32_t)orr__load_le(p, 4);
}

/* Does the rank table fill the space up to the trailer?  Further tables are checked when they are
 * read. */
static bool has_room_for_ranks(const trailer *t, uint64_t space)
{
    const uint64_t ranks = (uint64_t)t->ranks * RANK_ENTRY;
    return t->features ? space >= ranks : space == ranks;
}

static orr_code read_trailer(orr_file *f, orr_error *err)
{
    const uint64_t size = f->all.len;
    trailer *t = &f->t;
    if (!orr__is_orr(f->all))
        return damage(f, 0, err, "not a .orr file");
    if (size < HEADER_SIZE + TRAILER_SIZE)
        return damage(f, size, err, "the file is cut short");
    if (get_u32(f->all.ptr + 8) != FORMAT_VERSION)
        return damage(f, 8, err, "a version of the .orr format that this program does not know");
    if (get_u32(f->all.ptr + 12) & ~(uint32_t)FEATURES)
        return damage(f, 12, err, "a feature of the .orr format that this program does not know");
    const uint8_t *p = f->all.ptr + size - TRAILER_SIZE;
    if (memcmp(p + 48, tail_magic, 8) != 0)
        return damage(f, size - 8, err, "the end mark is missing: the file is cut short");
    *t = (trailer){.class_table = get_u64(p),
                   .rank_table = get_u64(p + 8),
                   .classes = get_u32(p + 16),
                   .ranks = get_u32(p + 20),
                   .table_hash = get_u64(p + 24),
                   .file_size = get_u64(p + 32),
                   .features = get_u64(p + 40)};
    if (t->features & ~(uint64_t)FEATURES)
        return damage(f, size - TRAILER_SIZE + 40, err,
                      "a feature of the .orr format that this program does not know");
    if (t->features != get_u32(f->all.ptr + 12))
        return damage(f, size - TRAILER_SIZE + 40, err,
                      "the features at the end are not those at the beginning");
    if (t->file_size != size)
        return damage(f, size - TRAILER_SIZE + 32, err, "the file is not as long as it says");
    const uint64_t tables_end = size - TRAILER_SIZE;
    /* 2^32 entries of 56 bytes do not overflow, so these sums are safe. */
    if (t->class_table < HEADER_SIZE || t->class_table > tables_end ||
        t->rank_table < t->class_table ||
        t->rank_table - t->class_table != (uint64_t)t->classes * CLASS_ENTRY ||
        t->rank_table > tables_end || !has_room_for_ranks(t, tables_end - t->rank_table))
        return damage(f, tables_end, err, "the tables do not fit the file");
    if (orr_hash_bytes(f->all.ptr + t->class_table, tables_end - t->class_table, 0) !=
        t->table_hash)
        return damage(f, t->class_table, err, "the tables are damaged: their hash does not match");
    return ORR_OK;
}

static orr_code read_class_entry(const orr_file *f, uint32_t i, class_entry *e, orr_error *err)
{
    const uint64_t at = f->t.class_table + (uint64_t)i * CLASS_ENTRY;
    const uint8_t *p = f->all.ptr + at;
    *e = (class_entry){.at = get_u64(p),
                       .stored = get_u64(p + 8),
                       .raw = get_u64(p + 16),
                       .hash = get_u64(p + 24),
                       .nodes = get_u32(p + 32),
                       .ranks = get_u32(p + 36),
                       .first = get_u32(p + 40),
                       .packing = get_u32(p + 44),
                       .schema = get_u32(p + 48)};
    if (e->at < HEADER_SIZE || e->at > f->t.class_table || e->stored > f->t.class_table - e->at)
        return damage(f, at, err, "a class lies outside the file");
    if (e->packing > ZSTD_FRAME || e->schema >= ORR_SCHEMA_COUNT)
        return damage(f, at + 44, err,
                      "a class has a packing or schema that this program does not know");
    if (e->packing == PLAIN && e->stored != e->raw)
        return damage(f, at + 16, err, "a plain class has two different lengths");
    return ORR_OK;
}

static orr_code read_rank_entry(
    const orr_file *f, uint32_t rank, uint32_t *class_index, uint64_t *shift, orr_error *err)
{
    const uint64_t at = f->t.rank_table + (uint64_t)rank * RANK_ENTRY;
    *class_index = get_u32(f->all.ptr + at);
    *shift = get_u64(f->all.ptr + at + 8);
    return *class_index < f->t.classes
               ? ORR_OK
               : damage(f, at, err, "a rank names a class that is not there");
}

static orr_code unpack(const orr_file *f, const class_entry *e, orr_buf *out, orr_error *err)
{
    const orr_span block = {f->all.ptr + e->at, (size_t)e->stored};
    const orr_code code = orr_unpack(block, e->raw, out, err);
    return code == ORR_EINPUT ? damage(f, e->at, err, "a compressed class is damaged") : code;
}

/* A class as a separate trace.  A plain one stays in the mapping, which must outlive it; see
 * load. */
static orr_code read_class(
    const orr_file *f, uint32_t i, const orr_read_options *opt, orr_trace **out, orr_error *err)
{
    class_entry e;
    orr_code code = read_class_entry(f, i, &e, err);
    if (!code)
        code = orr__trace_new(f->path, out, err);
    if (code)
        return code;
    orr_trace *t = *out;
    orr_span body = {f->all.ptr + e.at, (size_t)e.stored};
    t->source_at = e.at;
    if (e.packing == ZSTD_FRAME && !(code = unpack(f, &e, &t->owned, err)))
        body = (orr_span){t->owned.ptr, t->owned.len};
    if (!code && orr_hash_bytes(body.ptr, body.len, 0) != e.hash)
        code = damage(f, e.at, err, "a class is damaged: its hash does not match");
    orr_read_options current = {
        .size = sizeof current, .schema = ORR_SCHEMA_CURRENT, .leniency = opt->leniency};
    if (current.leniency ==
        ORR_AS_JSONIZER) /* truncated records occur in files only, not in classes */
        current.leniency = ORR_KEEP_UNKNOWN;
    if (!code)
        code = body.len ? orr__trace_load(t, body, &current, err) : orr_trace_seal(t, err);
    if (!code && t->count != e.nodes)
        code = damage(f, e.at, err, "a class does not have as many nodes as the table says");
    if (code) {
        orr_trace_destroy(t);
        *out = NULL;
        return code;
    }
    t->schema = e.schema ? (orr_schema)e.schema : ORR_SCHEMA_CURRENT;
    return ORR_OK;
}

typedef struct loading {
    const orr_file *f;
    const orr_set_options *opt;
    orr_set *s;
} loading;

static orr_code load_class(void *context, size_t i, orr_error *err)
{
    loading *l = context;
    return read_class(l->f, (uint32_t)i, l->opt->read, &l->s->classes[i].t, err);
}

static orr_code load_extra(
    orr_set *s, const orr_file *f, const extra_table *x, uint64_t *at, orr_error *err)
{
    const uint64_t end = f->all.len - TRAILER_SIZE, begin = *at;
    const char *bad = NULL;
    orr_buf plain = {0};
    if (end - begin < 16 || get_u64(f->all.ptr + begin + 8) > end - begin - 16)
        return damage(f, begin, err, x->damaged);
    const orr_span packed = {f->all.ptr + begin + 16, (size_t)get_u64(f->all.ptr + begin + 8)};
    orr_code code = orr_unpack(packed, get_u64(f->all.ptr + begin), &plain, err);
    if (code == ORR_EINPUT)
        bad = x->damaged;
    else if (!code)
        code = x->load(s, (orr_span){plain.ptr, plain.len}, &bad, err);
    orr_buf_fini(&plain);
    *at = begin + 16 + packed.len;
    return bad ? damage(f, begin, err, bad) : code;
}

static orr_code load_extras(orr_set *s, const orr_file *f, orr_error *err)
{
    uint64_t at = f->t.rank_table + (uint64_t)f->t.ranks * RANK_ENTRY;
    orr_code code = ORR_OK;
    for (int i = 0; i < EXTRA_TABLES && !code; i++)
        if (f->t.features & extra_tables[i].feature)
            code = load_extra(s, f, &extra_tables[i], &at, err);
    if (!code && at != f->all.len - TRAILER_SIZE)
        code = damage(f, at, err, "something stands between the tables and the trailer");
    return code;
}

static orr_code load(orr_set *s, const orr_file *f, const orr_set_options *opt, orr_error *err)
{
    loading l = {f, opt, s};
    orr_code code = ORR_OK;
    uint32_t index;
    for (uint32_t i = 0; i < f->t.classes && !code; i++)
        code = orr__set_add_class(s, NULL, &index, err);
    if (!code)
        code = orr_pool_for(opt->threads, f->t.classes, load_class, &l, err);
    for (uint32_t r = 0; r < f->t.ranks && !code; r++) {
        uint64_t shift;
        code = read_rank_entry(f, r, &index, &shift, err);
        if (!code)
            code = orr__set_add_rank(s, index, shift, NULL, err);
    }
    return code ? code : load_extras(s, f, err);
}

orr_code orr__set_read_orr(orr_set *s,
                           orr__file_list *list,
                           const orr_set_options *opt,
                           orr_error *err)
{
    orr_code code = orr_input_of_stream(list->stream, &s->file, err);
    list->stream = NULL;
    if (code)
        return code;
    orr_file f = {.path = list->paths[0], .all = orr_input_bytes(s->file)};
    code = read_trailer(&f, err);
    return code ? code : load(s, &f, opt, err);
}

/* Values are stored slot by slot, so reading one rank's means reading all: only in files without
 * holes a single class is parsed. */
static orr_code read_filled(const char *path,
                            uint32_t rank,
                            const orr_read_options *opt,
                            orr_trace **out,
                            uint64_t *id_shift,
                            orr_error *err)
{
    orr_set *s;
    const orr_trace *t;
    const orr_set_options whole = {.size = sizeof whole, .read = opt, .threads = 1};
    orr_code code = orr_set_open(path, &whole, &s, err);
    if (code)
        return code;
    if (rank >= s->rank_count)
        code = orr_fail(err, ORR_EUSAGE, NULL, "%s has %zu ranks: there is no rank %u", path,
                        s->rank_count, rank);
    if (!code)
        code = orr_set_rank_trace(s, rank, &t, out, err);
    if (!code &&
        !*out) /* a class without holes among others that have some: its bytes are the set's */
        code = orr__class_trace(&s->classes[s->ranks[rank].class_index], NULL, out, err);
    if (!code && id_shift)
        *id_shift = s->ranks[rank].id_shift;
    orr_set_close(s);
    return code;
}

orr_code orr_set_read_rank(const char *path,
                           uint32_t rank,
                           const orr_read_options *opt,
                           orr_trace **out,
                           uint64_t *id_shift,
                           orr_error *err)
{
    orr_input *in;
    uint32_t class_index;
    uint64_t shift = 0;
    orr_read_options own;
    *out = NULL;
    orr_code code = ORR__TAKE_OPTIONS(&own, opt, orr_read_options, err);
    if (!code)
        code = orr_input_open(path, &in, err);
    if (code)
        return code;
    orr_file f = {.path = path, .all = orr_input_bytes(in)};
    code = read_trailer(&f, err);
    if (!code && f.t.features & HAS_HOLES) {
        orr_input_close(in);
        return read_filled(path, rank, &own, out, id_shift, err);
    }
    if (!code && rank >= f.t.ranks)
        code = orr_fail(err, ORR_EUSAGE, NULL, "%s has %u ranks: there is no rank %u", path,
                        f.t.ranks, rank);
    if (!code)
        code = read_rank_entry(&f, rank, &class_index, &shift, err);
    if (!code)
        code = read_class(&f, class_index, &own, out, err);
    if (!code && !(*out)->owned.ptr)
        (*out)->source = in;
    else
        orr_input_close(in);
    if (!code && id_shift)
        *id_shift = shift;
    return code;
}
