/* SPDX-License-Identifier: Apache-2.0 */
/* check_repair.c - a trace with all repaired that has one right answer.
 *
 *     dependency on a missing node, on itself, or listed before   dropped
 *     control dependency that closes a cycle                      dropped (check_break.c)
 *     id that a later node has too                                a fresh one: dependencies mean the later
 *     known attribute of a kind that cannot be read               converted, when nothing is lost by it
 *
 * Records that need nothing are copied byte by byte, and so is every other field of those that do.  Cycles of
 * data dependencies, values without sense and ranks that do not match are left: which side is wrong, a program
 * cannot know. */
#include "check_impl.h"

#include "base/text/number.h"
#include "trace/trace_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

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
    uint64_t *stamp;  /* by node: the last list it was met in */
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

/* Is this dependency to stay? */
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
        if (!orr_grow(&out->ids, &out->room, out->count + 1))
            return false;
        out->ids[out->count++] = v.u;
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

/* The next id that no node has: past the highest, and from 0 again where there is nothing past it. */
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

/* Whole numbers below 2^53 are the same in both. */
static bool int_of_double(double d, int64_t *out)
{
    if (!(fabs(d) <= 9007199254740992.0) || d != floor(d))
        return false;
    *out = (int64_t)d;
    return true;
}

/* The kind the reference writes, or one that holds the value and that every generation has. */
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

orr_code chk_repair_trace(chk_run *k, const chk_class *cls, orr_trace **out, orr_error *err)
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
