/* SPDX-License-Identifier: Apache-2.0 */
/* check_fix.c - from a set with faults to a set with fewer of them.
 *
 * Ranks keep their classes: a class is repaired once, and ranks that were equal stay so, with their
 * id offsets.  A repaired class has as many nodes as before, and the contents of its holes were
 * valid, so it keeps them, and its ranks their values.  Everything is in memory before the first
 * byte is written, and files are replaced whole, so the output may be the input. */
#include "check_impl.h"

#include "base/text/number.h"
#include "base/text/text.h"
#include "trace/trace_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* ---- the valid records of a damaged file.
 *
 * All records before the damage are valid, because the reader got that far.  After it, records are
 * used only if their lengths lead from one to the next exactly to the end of the file and most of
 * them are valid: then one record was bad and the framing was
 * not.  Otherwise everything from the damage on is dropped, because records that start at a wrong
 * byte may look like nodes that nobody wrote. Compressed data that is cut short is used as far as
 * it unpacks.  JSON is not repaired. */

enum { TRIES = 4 };

/* As much as can be read. */
static orr_code read_file(const char *path, orr_buf *out, orr_error *err)
{
    orr_stream *s;
    orr_span part = {0};
    orr_error ignored;
    const orr_code code = orr_stream_open(path, &s, err);
    if (code)
        return code;
    while (orr_stream_peek(s, 1, &part, &ignored) == ORR_OK && part.len) {
        orr_buf_add(out, part.ptr, part.len);
        orr_stream_skip(s, part.len);
    }
    orr_stream_close(s);
    return out->failed ? orr_no_memory(err) : ORR_OK;
}

/* The record at `at`: where its fields start and where it ends.  False: incomplete. */
static bool frame(orr_span bytes, size_t at, orr_span *body)
{
    if (at >= bytes.len)
        return false;
    orr_wire w = {bytes.ptr + at, bytes.ptr + bytes.len, NULL};
    return orr_wire_bytes(&w, body);
}

static size_t end_of(orr_span bytes, orr_span body)
{
    return (size_t)(body.ptr - bytes.ptr) + body.len;
}

/* The end of the last record that ends at or before `limit`. */
static size_t whole_records(orr_span bytes, uint64_t limit)
{
    size_t at = 0;
    orr_span body;
    while (frame(bytes, at, &body) && end_of(bytes, body) <= limit)
        at = end_of(bytes, body);
    return at;
}

typedef struct salvage {
    chk_run *k;
    uint32_t rank;
    const char *path;
    const orr_read_options *opt;
    orr_span bytes; /* the file */
    size_t sound;   /* this many bytes from the start are valid records */
    uint64_t good, bad, bad_bytes;
    uint64_t first_bad; /* offset of the first bad record */
} salvage;

/* Reads what precedes the damage.  The reader reported its offset; a shorter file may be taken for
 * another generation and then fail elsewhere, so this is tried a few times. */
static orr_code read_front(salvage *s, uint64_t limit, orr_trace **out, orr_error *err)
{
    orr_code code = ORR_EINPUT;
    for (int i = 0; i < TRIES && code == ORR_EINPUT; i++) {
        s->sound = whole_records(s->bytes, limit);
        if (s->sound == 0)
            break;
        code = orr_trace_parse((orr_span){s->bytes.ptr, s->sound}, s->path, s->opt, out, err);
        if (code == ORR_EINPUT)
            limit = err->where.byte < s->sound ? err->where.byte : s->sound - 1;
    }
    return code;
}

/* ---- after the damage ---- */

/* Out of sync, a few bytes may pass for a node by chance; one with neither id nor name is
 * rejected. */
static bool is_sound(const salvage *s, orr__scan *scan, orr_span body)
{
    scan->is_lenient = s->opt && s->opt->leniency != ORR_STRICT;
    return body.len && orr__scan_node(scan, body) && (scan->node.id || scan->node.name.len);
}

/* Counts valid and bad records from the damage to the end; false if they do not lead there. */
static bool survey(salvage *s, orr__scan *scan)
{
    size_t at = s->sound;
    orr_span body;
    while (frame(s->bytes, at, &body)) {
        const bool is_good = is_sound(s, scan, body);
        s->good += is_good;
        s->bad += !is_good;
        s->bad_bytes += is_good ? 0 : end_of(s->bytes, body) - at;
        at = end_of(s->bytes, body);
    }
    return at == s->bytes.len && s->good >= s->bad;
}

static void take_sound(const salvage *s, orr__scan *scan, orr_buf *out)
{
    size_t at = s->sound;
    orr_span body;
    orr_buf_add(out, s->bytes.ptr, s->sound);
    while (frame(s->bytes, at, &body)) {
        if (is_sound(s, scan, body))
            orr_buf_add(out, s->bytes.ptr + at, end_of(s->bytes, body) - at);
        at = end_of(s->bytes, body);
    }
}

/* Adds all valid records after the damage, if possible. */
static orr_code read_rest(salvage *s, orr_buf *bytes, orr_trace **t, orr_error *err)
{
    orr__scan scan = {0};
    orr_buf all = {0};
    orr_code code = ORR_OK;
    if (orr_trace_schema(*t) == ORR_SCHEMA_CURRENT && s->sound < s->bytes.len && survey(s, &scan)) {
        take_sound(s, &scan, &all);
        orr_trace_destroy(*t);
        *t = NULL;
        orr_buf_fini(bytes);
        *bytes = all;
        code = all.failed ? orr_no_memory(err)
                          : orr_trace_parse((orr_span){all.ptr, all.len}, s->path, s->opt, t, err);
    } else {
        s->bad = 0;
        s->bad_bytes = s->bytes.len - s->sound;
    }
    orr__scan_fini(&scan);
    return code;
}

static void report(salvage *s, const orr_trace *t)
{
    const orr_where where = orr_where_byte(s->path, s->first_bad);
    const uint32_t kept = orr_trace_columns(t)->count;
    if (s->bad)
        chk_add_file(s->k, s->rank, ORR_CHECK_DAMAGED, &where,
                     "dropped %" PRIu64 " record%s (%" PRIu64
                     " byte%s) that cannot be read; %u node%s kept",
                     s->bad, orr__plural(s->bad), s->bad_bytes, orr__plural(s->bad_bytes), kept,
                     orr__plural(kept));
    else
        chk_add_file(s->k, s->rank, ORR_CHECK_DAMAGED, &where,
                     "dropped everything from here on (%" PRIu64 " byte%s); %u node%s kept",
                     s->bad_bytes, orr__plural(s->bad_bytes), kept, orr__plural(kept));
}

/* The complete records of a file that could not be read because of `why`.  The trace is in
 * `bytes`. */
static orr_code salvage_file(chk_run *k,
                             uint32_t rank,
                             const orr_error *why,
                             const orr_read_options *opt,
                             orr_buf *bytes,
                             orr_trace **out,
                             orr_error *err)
{
    salvage s = {.k = k, .rank = rank, .path = orr_set_rank_path(k->set, rank), .opt = opt};
    *out = NULL;
    orr_code code = read_file(s.path, bytes, err);
    if (code)
        return code;
    s.bytes = (orr_span){bytes->ptr, bytes->len};
    if (!orr__is_json(s.bytes))
        code = read_front(&s, why->where.byte, out, err);
    if (!*out) {
        if (code == ORR_OK || code == ORR_EINPUT)
            *err = *why;
        return code == ORR_ENOMEM ? code : orr_because(err, ORR_EINPUT, "nothing can be recovered");
    }
    s.first_bad = s.sound;
    code = read_rest(&s, bytes, out, err);
    if (!code)
        report(&s, *out);
    return code;
}

/* ---- repairs everything that has one right answer.
 *
 *     dependency on a missing node, on itself, or listed before   dropped
 *     control dependency that closes a cycle                      dropped
 *     id that a later node has too                                a fresh one: dependencies mean the later
 *     known attribute of a kind that cannot be read               converted, when nothing is lost by it
 *
 * Sound records are copied verbatim, and so is every other field of repaired ones.  Cycles of data
 * dependencies, invalid values and ranks that do not match are left: a program cannot know which
 * side is wrong. */

typedef struct id_list {
    uint64_t *ids;
    size_t count, room;
    bool is_changed;
} id_list;

typedef struct repair {
    chk_run *k;
    const chk_class *cls;
    const orr_columns *c;
    orr_trace *to;
    bool *is_dropped; /* by control dependency; NULL: none */
    uint64_t *stamp;  /* by node: the last list that contained it */
    uint64_t shift;   /* of the ids in messages */
    uint64_t fresh;   /* the last fresh id */
    id_list data, ctrl;
    orr_attr attrs[CHK_KNOWN_COUNT];
    size_t attr_count;
    orr_arena *per_node;
} repair;

/* ---- dependencies ---- */

static const char *list_name(bool is_ctrl)
{
    return is_ctrl ? "control" : "data";
}

static void report_dropped(
    repair *r, orr_check_kind kind, uint32_t node, bool is_ctrl, uint64_t id, const char *why)
{
    chk_add(r->k, r->cls, kind, node, "dropped the %s dependency on node %" PRIu64 ", %s",
            list_name(is_ctrl), id + r->shift, why);
}

/* Does this dependency stay? */
static bool is_kept(repair *r, uint32_t node, bool is_ctrl, uint32_t edge, uint64_t id)
{
    const uint32_t dep = (is_ctrl ? r->c->ctrl_dep : r->c->data_dep)[edge];
    const uint64_t stamp = 2 * ((uint64_t)node + 1) + is_ctrl;
    if (dep == ORR_NO_NODE) {
        const orr_check_kind kind =
            is_ctrl ? ORR_CHECK_MISSING_CTRL_PARENT : ORR_CHECK_MISSING_PARENT;
        report_dropped(r, kind, node, is_ctrl, id, "which does not exist");
        return false;
    }
    if (dep == node) {
        report_dropped(r, ORR_CHECK_SELF_DEPENDENCY, node, is_ctrl, id, "itself");
        return false;
    }
    if (r->stamp[dep] == stamp) {
        report_dropped(r, ORR_CHECK_DUPLICATE_DEPENDENCY, node, is_ctrl, id, "listed before");
        return false;
    }
    r->stamp[dep] = stamp;
    if (is_ctrl && r->is_dropped && r->is_dropped[edge]) {
        report_dropped(r, ORR_CHECK_CYCLE, node, is_ctrl, id, "which closes a cycle");
        return false;
    }
    return true;
}

static bool repair_list(repair *r, uint32_t node, bool is_ctrl, orr_list ids)
{
    id_list *out = is_ctrl ? &r->ctrl : &r->data;
    const uint32_t *first = is_ctrl ? r->c->ctrl_first : r->c->data_first;
    orr_value v;
    out->count = 0;
    out->is_changed = false;
    for (uint32_t e = first ? first[node] : 0;
         first && e < first[node + 1] && orr_list_next(&ids, &v); e++) {
        if (!is_kept(r, node, is_ctrl, e, v.u)) {
            out->is_changed = true;
            continue;
        }
        if (!orr_push(out->ids, out->count, out->room, v.u))
            return false;
    }
    return true;
}

/* ---- ids ---- */

static uint64_t highest_id(const orr_columns *c)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < c->count; i++)
        most = c->id[i] > most ? c->id[i] : most;
    return most;
}

/* The next unused id: above the highest, or from 0 if there is none above. */
static uint64_t next_id(repair *r)
{
    do
        r->fresh++;
    while (orr_trace_find(r->cls->t, r->fresh) != ORR_NO_NODE);
    return r->fresh;
}

static bool needs_id(const repair *r, uint32_t node)
{
    return r->c->duplicate_ids && orr_trace_find(r->cls->t, r->c->id[node]) != node;
}

/* ---- attributes ---- */

static bool int_of_text(int key, orr_str s, int64_t *out)
{
    if (orr_text_i64(s, out))
        return true;
    if (key == CHK_KNOWN_IS_CPU_OP) {
        *out = s.len == 4;
        return (s.len == 4 && memcmp(s.ptr, "true", 4) == 0) ||
               (s.len == 5 && memcmp(s.ptr, "false", 5) == 0);
    }
    for (uint32_t i = 0; key == CHK_KNOWN_COMM_TYPE && i < ORR_COLL_COUNT; i++) {
        const char *name = orr_collective_name(i);
        *out = i;
        if (strlen(name) == s.len && memcmp(name, s.ptr, s.len) == 0)
            return true;
    }
    return false;
}

/* Integers below 2^53 are the same in both. */
static bool int_of_double(double d, int64_t *out)
{
    if (!(fabs(d) <= 9007199254740992.0) || d != floor(d))
        return false;
    *out = (int64_t)d;
    return true;
}

/* The kind the reference writes, or one that holds the value in every generation. */
static orr_value_kind int_kind(const repair *r, int key, int64_t v)
{
    const orr_value_kind usual = orr__attr_rows[chk_known_attrs[key].key].kind;
    const bool fits = usual == ORR_VALUE_INT32    ? v >= INT32_MIN && v <= INT32_MAX
                      : usual == ORR_VALUE_UINT32 ? v >= 0 && v <= UINT32_MAX
                      : usual == ORR_VALUE_UINT64 ? v >= 0
                      : usual == ORR_VALUE_BOOL   ? v == 0 || v == 1
                                                  : true;
    return fits && orr_trace_schema(r->cls->t) <= ORR_SCHEMA_2023_10 ? usual : ORR_VALUE_INT64;
}

static bool to_int(const repair *r, int key, const orr_attr *a, orr_attr *out)
{
    int64_t v = 0;
    if (a->is_list)
        return false;
    const bool is_text = a->kind == ORR_VALUE_STRING && int_of_text(key, a->value.s, &v);
    const bool is_real = (a->kind == ORR_VALUE_DOUBLE || a->kind == ORR_VALUE_FLOAT) &&
                         int_of_double(a->value.d, &v);
    if (!is_text && !is_real)
        return false;
    out->kind = int_kind(r, key, v);
    out->value.i = v;
    return true;
}

static bool to_text(repair *r, const orr_attr *a, orr_attr *out)
{
    int64_t v;
    if (a->is_list)
        return false;
    out->kind = ORR_VALUE_STRING;
    if (a->kind == ORR_VALUE_BYTES &&
        orr_is_utf8((const uint8_t *)a->value.s.ptr, a->value.s.len)) {
        out->value.s = a->value.s;
        return true;
    }
    if (!orr_attr_int(a, &v) || v == INT64_MAX)
        return false;
    const char *text = orr_arena_print(r->per_node, "%" PRId64, v);
    r->k->no_memory |= !text;
    out->value.s = orr_str_of(text ? text : "");
    return text != NULL;
}

static bool convert(repair *r, int key, const orr_attr *a, orr_attr *out)
{
    *out = (orr_attr){.name = a->name, .doc = a->doc};
    switch (chk_known_attrs[key].wanted) {
    case CHK_WANT_INT:
        return to_int(r, key, a, out);
    case CHK_WANT_TEXT:
        return to_text(r, a, out);
    default:
        return false;
    }
}

static void repair_attr(repair *r, uint32_t node, int key, const orr_attr *a)
{
    orr_attr *out = &r->attrs[r->attr_count];
    const uint32_t type = r->c->type[node];
    const bool is_needed = type < 8 && chk_known_attrs[key].is_needed >> type & 1;
    if (a->kind == ORR_VALUE_NONE || !convert(r, key, a, out))
        return;
    r->attr_count++;
    chk_add(r->k, r->cls, is_needed ? ORR_CHECK_ATTRIBUTE_KIND : ORR_CHECK_ODD_ATTRIBUTE, node,
            "made %s, which was %s, %s", orr__attr_name(chk_known_attrs[key].key),
            orr_value_member(a->kind, a->is_list), orr_value_member(out->kind, out->is_list));
}

static void repair_attrs(repair *r, uint32_t node, const orr_node *record)
{
    orr_attrs it = orr_node_attrs(record);
    orr_attr a;
    uint32_t seen = 0, twice = 0;
    r->attr_count = 0;
    orr_arena_reset(r->per_node);
    for (orr_attrs count = it; orr_attrs_next(&count, &a);) {
        const int key = chk_known_attr_find(a.name);
        if (key < 0)
            continue;
        twice |= seen & 1u << key;
        seen |= 1u << key;
    }
    while (seen && orr_attrs_next(&it, &a)) {
        const int key = chk_known_attr_find(a.name);
        /* An edit replaces all attributes of a name; with two of them, one would be lost. */
        if (key >= 0 && !(twice >> key & 1) &&
            !chk_attr_is_sound(&chk_known_attrs[key], a.kind, a.is_list))
            repair_attr(r, node, key, &a);
    }
}

/* ---- nodes and traces ---- */

static orr_code repair_node(repair *r, uint32_t node, orr_error *err)
{
    orr_node record;
    orr_trace_node(r->cls->t, node, &record);
    if (!repair_list(r, node, false, orr_node_data_deps(&record)) ||
        !repair_list(r, node, true, orr_node_ctrl_deps(&record)))
        return orr_no_memory(err);
    repair_attrs(r, node, &record);
    orr_edit edit = {.sets_id = needs_id(r, node),
                     .sets_data_deps = r->data.is_changed,
                     .data_deps = r->data.ids,
                     .data_count = r->data.count,
                     .sets_ctrl_deps = r->ctrl.is_changed,
                     .ctrl_deps = r->ctrl.ids,
                     .ctrl_count = r->ctrl.count,
                     .attrs = r->attrs,
                     .attr_count = r->attr_count};
    if (edit.sets_id) {
        edit.id = next_id(r);
        chk_add(r->k, r->cls, ORR_CHECK_DUPLICATE_ID, node,
                "gave it the new id %" PRIu64 ": a later node has the same", edit.id + r->shift);
    }
    const bool is_edited =
        edit.sets_id || edit.sets_data_deps || edit.sets_ctrl_deps || edit.attr_count;
    return orr_trace_copy(r->to, &record, is_edited ? &edit : NULL, err);
}

/* An empty trace with the same metadata record, of the same generation. */
static orr_code begin_copy(const orr_trace *from, orr_trace **out, orr_error *err)
{
    const orr_code code = orr__trace_new(from->path, out, err);
    if (code)
        return code;
    (*out)->schema = from->schema;
    (*out)->has_metadata = from->has_metadata;
    orr_buf_add(&(*out)->owned, from->bytes.ptr, from->count ? from->body_at[0] : from->bytes.len);
    return ORR_OK;
}

static orr_code prepare(repair *r, orr_error *err)
{
    orr_arena *a = r->k->scratch;
    const size_t edges = r->c->ctrl_first ? r->c->ctrl_first[r->c->count] : 0;
    r->shift = orr_set_id_shift(r->k->set, r->cls->rank);
    r->fresh = highest_id(r->c);
    r->stamp = orr_arena_new(a, (size_t)r->c->count + 1, uint64_t);
    r->per_node = orr_arena_create();
    if (!r->stamp || !r->per_node)
        return orr_no_memory(err);
    if (edges && !r->c->is_topological) {
        r->is_dropped = orr_arena_new(a, edges, bool);
        if (!r->is_dropped || !chk_break_cycles(a, r->c, r->is_dropped))
            return orr_no_memory(err);
    }
    return begin_copy(r->cls->t, &r->to, err);
}

/* A copy of the class's trace, repaired as far as possible.  Repairs become findings of k. */
static orr_code repair_trace(chk_run *k, const chk_class *cls, orr_trace **out, orr_error *err)
{
    repair r = {.k = k, .cls = cls, .c = cls->c};
    orr_code code = prepare(&r, err);
    for (uint32_t i = 0; i < cls->c->count && !code; i++)
        code = repair_node(&r, i, err);
    if (!code)
        code = orr_trace_seal(r.to, err);
    orr_free(r.data.ids);
    orr_free(r.ctrl.ids);
    orr_arena_destroy(r.per_node);
    orr_arena_reset(k->scratch);
    *out = r.to;
    if (code) {
        orr_trace_destroy(r.to);
        *out = NULL;
    }
    return code;
}

typedef struct fixer {
    chk_run k;
    const orr_set_options *read;
    orr_set *from, *to;
    uint32_t *new_class; /* by class of `from`; ORR_NO_NODE: not repaired yet */
} fixer;

static orr_code add_repaired(fixer *f, const chk_class *cls, uint32_t *index, orr_error *err)
{
    orr_trace *t;
    const char *why = NULL;
    orr_code code = repair_trace(&f->k, cls, &t, err);
    if (!code)
        code = orr__set_add_class(f->to, t, index, err);
    if (!code && cls->holes)
        code = orr__class_set_holes(f->to, *index, cls->holes->holes, cls->holes->hole_count,
                                    cls->holes->slot_count, &why, err);
    return why ? orr_fail(err, ORR_EBUG, NULL,
                          "repairing moved values that differ between ranks: %s", why)
               : code;
}

static orr_code salvage_rank(fixer *f, uint32_t rank, uint32_t *index, orr_error *err)
{
    orr_buf bytes = {0};
    orr_trace *t = NULL;
    const orr_error *why = orr_set_error(f->from, rank);
    if (why->code != ORR_EINPUT) {
        *err = *why;
        return why->code;
    }
    orr_code code = salvage_file(&f->k, rank, why, f->read->read, &bytes, &t, err);
    if (!code) {
        const chk_class cls = {
            .t = t, .c = orr_trace_columns(t), .index = ORR_NO_NODE, .rank = rank, .rank_count = 1};
        f->k.report->node_count += cls.c->count;
        code = add_repaired(f, &cls, index, err);
    }
    orr_trace_destroy(t);
    orr_buf_fini(&bytes);
    return code;
}

static orr_code repair_rank(fixer *f, uint32_t rank, orr_error *err)
{
    const uint32_t old = orr_set_class_of(f->from, rank);
    uint32_t index = old == ORR_NO_NODE ? ORR_NO_NODE : f->new_class[old];
    orr_code code = ORR_OK;
    if (old == ORR_NO_NODE)
        code = salvage_rank(f, rank, &index, err);
    else if (index == ORR_NO_NODE)
        code = add_repaired(f, &f->k.classes[old], &index, err);
    if (code)
        return code;
    if (old != ORR_NO_NODE)
        f->new_class[old] = index;
    if (f->to->classes[index].hole_count == 0)
        return orr__set_add_rank(f->to, index, orr_set_id_shift(f->from, rank), NULL, err);
    return orr_set_add_rank_values(f->to, index, orr_set_id_shift(f->from, rank),
                                   f->from->values + f->from->ranks[rank].values_at, err);
}

static orr_code copy_groups(fixer *f, orr_error *err)
{
    orr_code code = ORR_OK;
    for (uint32_t i = 0; i < orr_set_group_count(f->from) && !code; i++) {
        const orr_group g = orr_set_group(f->from, i);
        code = orr_set_add_group(f->to, g.id, g.ranks, g.count, err);
    }
    return code;
}

static orr_code repair_all(fixer *f, orr_error *err)
{
    f->new_class = orr_arena_new(f->k.arena, (size_t)f->k.class_count + 1, uint32_t);
    if (!f->new_class)
        return orr_no_memory(err);
    memset(f->new_class, 0xff, f->k.class_count * sizeof *f->new_class);
    orr_code code = orr_set_create(&f->to, err);
    for (uint32_t rank = 0; rank < orr_set_rank_count(f->from) && !code; rank++)
        code = repair_rank(f, rank, err);
    return code ? code : copy_groups(f, err);
}

static orr_code check_target(const char *to, orr_error *err)
{
    if (!*to || orr_text_ends(to, "/"))
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "'%s' is a folder; name a file, a prefix of files or a .orr in it", to);
    if (orr_text_ends(to, ".json") || orr_text_ends(to, ".jsonl"))
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "repaired traces are written as .et or .orr, not as JSON: '%s'", to);
    return ORR_OK;
}

static orr_code write_one(const fixer *f, const char *to, orr_error *err)
{
    const orr_write_options same = {
        .size = sizeof same, .same_schema = true, .id_shift = orr_set_id_shift(f->to, 0)};
    const orr_trace *t;
    orr_trace *owned;
    orr_code code = orr_set_rank_trace(f->to, 0, &t, &owned, err);
    if (!code)
        code = orr_trace_write(t, to, &same, err);
    orr_trace_destroy(owned);
    return code;
}

static orr_code write_set(const fixer *f, const char *path, const char *to, orr_error *err)
{
    const orr_write_options same = {.size = sizeof same, .same_schema = true};
    if (orr_text_ends(to, ".orr"))
        return orr_set_save(f->to, to, NULL, err);
    const char *file = orr_set_rank_count(f->from) == 1 ? orr_set_rank_path(f->from, 0) : NULL;
    if (file && strcmp(file, path) == 0)
        return write_one(f, to, err);
    return orr_set_write_files(f->to, to, &same, f->read->threads, err);
}

orr_code orr_check_fix(const char *path,
                       const char *to,
                       const orr_set_options *read,
                       const orr_check_options *opt,
                       orr_check_report **changes,
                       orr_error *err)
{
    orr_set_options tolerant;
    orr_read_options reading;
    orr_check_options own;
    orr_error ignored;
    fixer f = {.read = &tolerant};
    err = err ? err : &ignored;
    *changes = NULL;
    orr_code code;
    if ((code = ORR__TAKE_OPTIONS(&own, opt, orr_check_options, err)) ||
        (code = ORR__TAKE_OPTIONS(&tolerant, read, orr_set_options, err)) ||
        (code = ORR__TAKE_OPTIONS(&reading, tolerant.read, orr_read_options, err)))
        return code;
    tolerant.read = &reading;
    tolerant.keep_going = true;
    code = check_target(to, err);
    if (code || (code = orr_set_open(path, &tolerant, &f.from, err)))
        return code;
    code = chk_begin(&f.k, f.from, own.limit, err);
    if (code) {
        orr_set_close(f.from);
        return code;
    }
    code = repair_all(&f, err);
    const orr_code finished = chk_finish(&f.k, changes, code ? NULL : err);
    code = code ? code : finished;
    if (!code) /* last: once it exists, nothing can fail */
        code = write_set(&f, path, to, err);
    orr_set_close(f.to);
    orr_set_close(f.from);
    if (code) {
        orr_check_report_destroy(*changes);
        *changes = NULL;
    }
    return code;
}
