/* SPDX-License-Identifier: Apache-2.0 */
/* set.c - the traces of many ranks.
 *
 * Equality is found in two steps.  Files with equal bytes (by hash, then compared) are parsed once.
 * Among the rest, traces whose records differ by one constant in every id and dependency are one
 * class with a shift; a trace is only merged if writing it back gives exactly the bytes it was read
 * from.  Files are read in batches of a few per thread and merged in rank order, so the result is
 * the same with any number of threads and memory holds the classes plus one batch. */
#include "attrs.h"

#include "base/formats/json.h"
#include "base/io/input.h"
#include "base/io/output.h"
#include "base/memory/hash.h"
#include "base/memory/sort.h"
#include "base/options.h"
#include "base/short_forms.h"
#include "base/text/number.h"
#include "base/threads/pool.h"
#include "set_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ==== merges rank files that differ only in groups, peers and tags into one class with holes, as
 * generators write them.
 *
 * Candidates are found by a hash over everything but the values of those attributes.  Values that
 * are equal in all of them are not holes; places with equal columns of values share a slot.
 * Correctness does not rely on hashes: every trace is regenerated from the class and its values,
 * and must equal the bytes that were read.  Cost: every trace is read twice more. */

typedef struct place {
    uint32_t node;
    orr_hole_field field;
    uint64_t row; /* hash of its values in all traces */
    bool differs;
} place;

/* ---- similarity ---- */

static const orr__attr_key keys[ORR_HOLE_FIELDS] = {ORR__ATTR_PG_NAME, ORR__ATTR_COMM_SRC,
                                                    ORR__ATTR_COMM_DST, ORR__ATTR_COMM_TAG};

static bool may_be_hole(const orr_field *f, const uint8_t *end)
{
    orr_attr a;
    orr_attrs one = {f->start, end, NODE_ATTR};
    if (f->number != NODE_ATTR || !orr_attrs_next(&one, &a))
        return false;
    for (unsigned k = 0; k < ORR_HOLE_FIELDS; k++) {
        const char *name = orr__attr_name(keys[k]);
        if (a.name.len == strlen(name) && memcmp(a.name.ptr, name, a.name.len) == 0)
            return true;
    }
    return false;
}

static uint64_t alike_of(const orr_trace *t)
{
    const size_t head = t->count ? (size_t)t->body_at[0] : t->bytes.len;
    uint64_t h = orr_hash_bytes(t->bytes.ptr, head, t->count);
    for (uint32_t i = 0; i < t->count; i++) {
        orr_wire w = orr_wire_of(orr__trace_body(t, i));
        orr_field f;
        const uint8_t *same = NULL; /* bytes before here are already hashed */
        while (orr_wire_next(&w, &f)) {
            same = same ? same : f.start;
            if (!may_be_hole(&f, w.at))
                continue;
            h = orr_hash_bytes(same, (size_t)(f.start - same), h + 1);
            same = w.at;
        }
        h = same ? orr_hash_bytes(same, (size_t)(w.at - same), h + 2) : h;
    }
    return h;
}

/* ---- places where they differ ---- */

static int64_t value_in(const orr_trace *t, uint32_t node, orr_hole_field field)
{
    const orr_columns *c = &t->columns;
    const int64_t *const columns[ORR_HOLE_FIELDS] = {NULL, c->comm_src, c->comm_dst, c->comm_tag};
    int64_t v;
    if (field != ORR_HOLE_PG_NAME)
        return columns[field] ? columns[field][node] : ORR_NO_VALUE;
    const uint32_t text = c->pg_name ? c->pg_name[node] : ORR_NO_NAME;
    return text != ORR_NO_NAME && orr_text_i64(orr_trace_text(t, text), &v) ? v : ORR_NO_VALUE;
}

/* All attributes of `t` that could be holes. */
static place *list_places(const orr_trace *t, size_t *count)
{
    size_t room = 0;
    place *list = NULL;
    *count = 0;
    for (uint32_t i = 0; i < t->count; i++)
        for (unsigned k = 0; k < ORR_HOLE_FIELDS; k++) {
            if (value_in(t, i, (orr_hole_field)k) == ORR_NO_VALUE)
                continue;
            if (!orr_grow(&list, &room, *count + 1)) {
                orr_free(list);
                return NULL;
            }
            list[(*count)++] = (place){.node = i, .field = (orr_hole_field)k, .row = k};
        }
    return list ? list : orr_alloc(1, sizeof *list);
}

static void compare(const orr_trace *first, const orr_trace *t, place *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const int64_t v = value_in(t, list[i].node, list[i].field);
        list[i].differs = list[i].differs || v != value_in(first, list[i].node, list[i].field);
        list[i].row =
            orr_hash_mix(list[i].row ^ 0xa0761d6478bd642fu, (uint64_t)v ^ 0xe7037ed1a0b428dbu);
    }
}

/* ---- a class of several traces ---- */

typedef struct joiner {
    orr_set *s;
    uint32_t *like;    /* by class: the first similar one */
    uint32_t *next;    /* by class: the next one of those; NO_NODE: none */
    size_t *values_at; /* by merged class: its row; SIZE_MAX: not merged */
    orr_error *err;
} joiner;

/* One slot for places with equal columns of values; which[slot] is one of them. */
static bool share_slots(place *list,
                        size_t count,
                        orr_hole *holes,
                        size_t *hole_count,
                        uint32_t *which,
                        uint32_t *slots)
{
    orr_map *seen = orr_map_create(0);
    bool ok = seen != NULL;
    *hole_count = *slots = 0;
    for (size_t i = 0; ok && i < count; i++) {
        if (!list[i].differs)
            continue;
        uint32_t slot = orr_map_find(seen, list[i].row, ORR_NO_NODE);
        if (slot == ORR_NO_NODE) {
            slot = (*slots)++;
            which[slot] = (uint32_t)i;
            ok = orr_map_put(seen, list[i].row, slot, NULL);
        }
        holes[(*hole_count)++] = (orr_hole){list[i].node, list[i].field, slot};
    }
    orr_map_destroy(seen);
    return ok;
}

/* Are these the bytes of t? */
static bool is_written(orr__class *c, const int64_t *values, const orr_trace *t, bool *failed)
{
    orr_buf out = {0};
    bool is_same = true;
    for (uint32_t i = 0; i < c->slot_count && is_same; i++)
        is_same = orr__slot_fits(c, i, values[i]);
    *failed = is_same && !orr__fill(c, values, &out);
    is_same = is_same && !*failed && out.len == t->bytes.len &&
              memcmp(out.ptr, t->bytes.ptr, out.len) == 0;
    orr_buf_fini(&out);
    return is_same;
}

/* Merges those that are reproduced exactly into the class. */
static orr_code take_in(joiner *j, uint32_t first, const place *list, const uint32_t *which)
{
    orr_set *s = j->s;
    orr__class *c = &s->classes[first];
    for (uint32_t k = first; k != ORR_NO_NODE; k = j->next[k]) {
        bool failed;
        if (!orr_grow(&s->values, &s->value_room, s->value_count + c->slot_count))
            return orr_no_memory(j->err);
        int64_t *values = s->values + s->value_count;
        for (uint32_t i = 0; i < c->slot_count; i++)
            values[i] = value_in(s->classes[k].t, list[which[i]].node, list[which[i]].field);
        const bool is_right = is_written(c, values, s->classes[k].t, &failed);
        if (failed)
            return orr_no_memory(j->err);
        if (!is_right)
            continue;
        j->values_at[k] = s->value_count;
        s->value_count += c->slot_count;
    }
    return ORR_OK;
}

static orr_code join(joiner *j, uint32_t first)
{
    orr_set *s = j->s;
    const orr_trace *t = s->classes[first].t;
    size_t count, hole_count = 0;
    uint32_t slots = 0;
    const char *why = NULL;
    place *list = list_places(t, &count);
    orr_hole *holes = list ? orr_alloc(count + 1, sizeof *holes) : NULL;
    uint32_t *which = holes ? orr_alloc(count + 1, sizeof *which) : NULL;
    for (uint32_t k = first; which && k != ORR_NO_NODE; k = j->next[k])
        compare(t, s->classes[k].t, list, count);
    const bool ok = which && share_slots(list, count, holes, &hole_count, which, &slots);
    orr_code code = ok ? ORR_OK : orr_no_memory(j->err);
    if (!code && hole_count)
        code = orr__class_set_holes(s, first, holes, hole_count, slots, &why, j->err);
    if (!code && hole_count && !why)
        code = take_in(j, first, list, which);
    orr__class *c = &s->classes[first];
    if (why || j->values_at[first] == SIZE_MAX) { /* it stays as it was */
        orr__fill_plan_free(c->plan);
        *c = (orr__class){.t = c->t, .bytes = c->bytes, .ranks = c->ranks, .first = c->first};
        for (uint32_t k = first; k != ORR_NO_NODE; k = j->next[k])
            j->values_at[k] = SIZE_MAX;
    }
    orr_free(list);
    orr_free(holes);
    orr_free(which);
    return code;
}

/* Classes by likeness, each list in the order of classes. */
static bool list_alike(joiner *j)
{
    const orr_set *s = j->s;
    orr_map *seen = orr_map_create(0);
    uint32_t *last = orr_alloc(s->class_count, sizeof *last);
    bool ok = seen && last;
    for (uint32_t k = 0; ok && k < s->class_count; k++) {
        j->values_at[k] = SIZE_MAX;
        j->like[k] = last[k] = k;
        j->next[k] = ORR_NO_NODE;
        if (s->classes[k].hole_count)
            continue;
        const uint64_t likeness = alike_of(s->classes[k].t);
        const uint32_t first = orr_map_find(seen, likeness, ORR_NO_NODE);
        if (first == ORR_NO_NODE) {
            ok = orr_map_put(seen, likeness, k, NULL);
            continue;
        }
        j->like[k] = first;
        j->next[last[first]] = k;
        last[first] = k;
    }
    orr_map_destroy(seen);
    orr_free(last);
    return ok;
}

/* The maps refer to classes by old numbers.  Cleared, they only miss some similarity. */
static bool forget_maps(orr_set *s)
{
    orr_map *by_bytes = orr_map_create(0), *by_likeness = orr_map_create(0);
    if (!by_bytes || !by_likeness) {
        orr_map_destroy(by_bytes);
        orr_map_destroy(by_likeness);
        return false;
    }
    orr_map_destroy(s->by_bytes);
    orr_map_destroy(s->by_likeness);
    s->by_bytes = by_bytes;
    s->by_likeness = by_likeness;
    return true;
}

/* Recount the ranks of each class. */
static void count_ranks(orr_set *s)
{
    for (size_t i = 0; i < s->class_count; i++)
        s->classes[i].ranks = s->classes[i].first = 0;
    for (size_t r = 0; r < s->rank_count; r++) {
        const uint32_t c = s->ranks[r].class_index;
        if (c != ORR_NO_NODE && s->classes[c].ranks++ == 0)
            s->classes[c].first = (uint32_t)r;
    }
}

static void class_fini(orr__class *c)
{
    orr_trace_destroy(c->t);
    orr__fill_plan_free(c->plan);
}

/* Removes classes without ranks and compacts the others; moved[c] is the new index of class c. */
static void drop_classes(orr_set *s, uint32_t *moved)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->class_count; i++) {
        moved[i] = (uint32_t)kept;
        if (s->classes[i].ranks)
            s->classes[kept++] = s->classes[i];
        else
            class_fini(&s->classes[i]);
    }
    s->class_count = kept;
    for (size_t r = 0; r < s->rank_count; r++)
        if (s->ranks[r].class_index != ORR_NO_NODE)
            s->ranks[r].class_index = moved[s->ranks[r].class_index];
}

/* Removes classes without ranks and compacts the others. */
static orr_code set_drop_unused(orr_set *s, orr_error *err)
{
    uint32_t *moved = orr_alloc(s->class_count + 1, sizeof *moved);
    const bool ok = moved && forget_maps(s);
    if (ok) {
        count_ranks(s);
        drop_classes(s, moved);
    }
    orr_free(moved);
    return ok ? ORR_OK : orr_no_memory(err);
}

/* The values of t in each slot of the class; false: it has other nodes. */
static bool read_slots(const orr__class *c, const orr_trace *t, int64_t *values)
{
    for (size_t i = c->hole_count; i-- > 0;) {
        const orr_hole *h = &c->holes[i];
        if (h->node >= t->count ||
            (values[h->slot] = value_in(t, h->node, h->field)) == ORR_NO_VALUE)
            return false;
    }
    return true;
}

orr_code orr__set_add_alike(orr_set *s, const orr_trace *t, bool *is_added, orr_error *err)
{
    /* Each class is tried: with more of them than this, ranks have little in common. */
    enum { MOST_CLASSES = 64 };
    orr_code code = ORR_OK;
    *is_added = false;
    for (uint32_t k = 0; k < s->class_count && s->class_count <= MOST_CLASSES && !*is_added; k++) {
        orr__class *c = &s->classes[k];
        if (!c->hole_count || c->t->count != t->count)
            continue;
        int64_t *values = orr_alloc(c->slot_count, sizeof *values);
        bool failed = !values;
        *is_added = values && read_slots(c, t, values) && is_written(c, values, t, &failed);
        if (failed)
            code = orr_no_memory(err);
        else if (*is_added)
            code = orr_set_add_rank_values(s, k, 0, values, err);
        orr_free(values);
        if (code)
            return code;
    }
    return code;
}

/* Merges classes without holes that differ only in groups, peers and tags. */
orr_code orr__set_join_alike(orr_set *s, orr_error *err)
{
    if (s->class_count < 2 || 2 * s->class_count <= s->rank_count)
        return ORR_OK; /* most are equal already */
    joiner j = {.s = s,
                .like = orr_alloc(s->class_count, sizeof *j.like),
                .next = orr_alloc(s->class_count, sizeof *j.next),
                .values_at = orr_alloc(s->class_count, sizeof *j.values_at),
                .err = err};
    orr_code code = j.like && j.next && j.values_at && list_alike(&j) ? ORR_OK : orr_no_memory(err);
    for (uint32_t k = 0; !code && k < s->class_count; k++)
        if (j.like[k] == k && j.next[k] != ORR_NO_NODE)
            code = join(&j, k);
    for (size_t r = 0; !code && r < s->rank_count; r++) {
        orr__rank *rank = &s->ranks[r];
        const uint32_t k = rank->class_index;
        if (k == ORR_NO_NODE || j.values_at[k] == SIZE_MAX)
            continue;
        rank->class_index = j.like[k];
        rank->values_at = j.values_at[k];
    }
    if (!code)
        code = set_drop_unused(s, err);
    orr_free(j.like);
    orr_free(j.next);
    orr_free(j.values_at);
    return code;
}

/* ==== the communicator groups of rank files, in PREFIX.json.
 *
 * Users may keep another JSON file under that name, so it counts as a group file only if it is an
 * object whose keys are all numbers.  Such a file must then be valid. */

typedef struct listed {
    uint64_t id;
    uint32_t index;
    orr_json_value ranks;
} listed;

static int compare_listed(const void *p, const void *q)
{
    const listed *a = p, *b = q;
    return a->id != b->id ? (a->id < b->id ? -1 : 1) : a->index < b->index ? -1 : 1;
}

static bool is_group_file(orr_json_value root)
{
    orr_json_value v;
    orr_str key;
    int64_t id;
    if (orr_json_type_of(root) != ORR_JSON_OBJECT)
        return false;
    for (orr_json_iter it = orr_json_iterate(root); orr_json_next_member(&it, &key, &v);)
        if (!orr_text_i64(key, &id))
            return false;
    return true;
}

static orr_code take_ranks(orr_set *s, const listed *g, uint32_t *ranks, orr_error *err)
{
    orr_json_value v;
    uint64_t rank;
    uint32_t count = 0;
    if (orr_json_type_of(g->ranks) != ORR_JSON_ARRAY || orr_json_count(g->ranks) == 0)
        return orr_fail(err, ORR_EINPUT, ORR_AT(orr_json_where(g->ranks)),
                        "group %" PRIu64 ": expected a list of ranks", g->id);
    for (orr_json_iter it = orr_json_iterate(g->ranks); orr_json_next_value(&it, &v);) {
        const orr_code code = orr_json_get_u64(v, &rank, err);
        if (code)
            return code;
        if (rank >= s->rank_count)
            return orr_fail(err, ORR_EINPUT, ORR_AT(orr_json_where(v)),
                            "group %" PRIu64 " has rank %" PRIu64 ", but there are traces for %zu "
                            "rank%s beside it",
                            g->id, rank, s->rank_count, s->rank_count == 1 ? "" : "s");
        ranks[count++] = (uint32_t)rank;
    }
    return orr_set_add_group(s, g->id, ranks, count, err);
}

/* Groups are ascending in a set; in a file they are in any order. */
static orr_code list_groups(orr_json_value root, listed *all, size_t *most, orr_error *err)
{
    orr_str key;
    uint32_t n = 0;
    int64_t id;
    for (orr_json_iter it = orr_json_iterate(root); orr_json_next_member(&it, &key, &all[n].ranks);
         n++) {
        if (!orr_text_i64(key, &id) || id <= 0)
            return orr_fail(err, ORR_EINPUT, ORR_AT(orr_json_where(all[n].ranks)),
                            "\"%.*s\" is not a group number above 0", (int)key.len, key.ptr);
        all[n].id = (uint64_t)id;
        all[n].index = n;
        if (orr_json_count(all[n].ranks) > *most)
            *most = orr_json_count(all[n].ranks);
    }
    orr_sort(all, n, sizeof *all, compare_listed);
    return ORR_OK;
}

static orr_code take_groups(orr_set *s, orr_json_value root, orr_error *err)
{
    const uint32_t count = orr_json_count(root);
    listed *all = orr_alloc((size_t)count + 1, sizeof *all);
    uint32_t *ranks = NULL;
    size_t most = 1;
    orr_code code = all ? list_groups(root, all, &most, err) : orr_no_memory(err);
    if (!code && !(ranks = orr_alloc(most, sizeof *ranks)))
        code = orr_no_memory(err);
    for (uint32_t i = 0; i < count && !code; i++) {
        if (i && all[i].id == all[i - 1].id)
            code = orr_fail(err, ORR_EINPUT, ORR_AT(orr_json_where(all[i].ranks)),
                            "duplicate group %" PRIu64, all[i].id);
        else
            code = take_ranks(s, &all[i], ranks, err);
    }
    orr_free(ranks);
    orr_free(all);
    return code;
}

/* The group file beside rank files, if there is one. */
static orr_code groups_read_beside(orr_set *s, const char *path, orr_error *err)
{
    struct stat st;
    orr_input *in;
    orr_json *j = NULL;
    orr_json_value root;
    orr_error why;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return ORR_OK;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    if ((code = orr_json_open(orr_input_bytes(in), path, &j, &why)) == ORR_OK)
        code = orr_json_only(j, &root, &why);
    if (code == ORR_ENOMEM)
        code = orr_no_memory(err);
    else
        code = code || !is_group_file(root) ? ORR_OK : take_groups(s, root, err);
    orr_json_close(j);
    orr_input_close(in);
    return code;
}

static void class_fini(orr__class *c);
static void set_forget_groups(orr_set *s);

/* ---- a part of a set: some of its ranks, and only the classes they need. */

orr_code orr_set_keep(orr_set *s, uint32_t first, uint32_t count, orr_error *err)
{
    if (first > s->rank_count || count > s->rank_count - first)
        return orr_fail(err, ORR_EUSAGE, NULL, "the set has %zu ranks, not %u from %u on",
                        s->rank_count, count, first);
    memmove(s->ranks, s->ranks + first, count * sizeof *s->ranks);
    s->rank_count = count;
    set_forget_groups(s);
    return set_drop_unused(s, err);
}

/* ---- the groups named by a set's traces.
 *
 * Generators know their communicator groups; a set carries them, so that one file is all a
 * simulation needs.  For other programs they are written as the JSON file that ASTRA-sim reads.  In
 * a .orr file a group is its number, its length and the distances between its ranks, each as the
 * difference from the group before: groups of a regular machine differ by a constant, and the table
 * compresses to almost nothing. */

uint32_t orr_set_group_count(const orr_set *s)
{
    return (uint32_t)s->group_count;
}

orr_group orr_set_group(const orr_set *s, uint32_t index)
{
    const orr__group_entry *g = &s->groups[index];
    return (orr_group){.id = g->id, .ranks = s->group_ranks + g->first, .count = g->count};
}

orr_code orr_set_add_group(
    orr_set *s, uint64_t id, const uint32_t *ranks, uint32_t count, orr_error *err)
{
    if (id == 0 || id > INT64_MAX || count == 0)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "a group needs a number from 1 on and at least one rank");
    if (s->group_count && s->groups[s->group_count - 1].id >= id)
        return orr_fail(err, ORR_EUSAGE, NULL, "group %" PRIu64 " comes after group %" PRIu64, id,
                        s->groups[s->group_count - 1].id);
    if (s->group_count >= ORR_NO_NODE ||
        !orr_grow(&s->groups, &s->group_room, s->group_count + 1) ||
        !orr_grow(&s->group_ranks, &s->group_rank_room, s->group_rank_count + count))
        return orr_no_memory(err);
    s->groups[s->group_count++] =
        (orr__group_entry){.id = id, .first = s->group_rank_count, .count = count};
    memcpy(s->group_ranks + s->group_rank_count, ranks, count * sizeof *ranks);
    s->group_rank_count += count;
    return ORR_OK;
}

/* The same for groups; ranks exist already. */
static void set_forget_groups(orr_set *s)
{
    s->group_count = s->group_rank_count = 0;
}

/* ---- as JSON ---- */

orr_code orr_set_write_groups(const orr_set *s, const char *path, orr_error *err)
{
    orr_output *o;
    orr_buf b = {0};
    const orr_code code = orr_output_open(path, &o, err);
    if (code)
        return code;
    orr_buf_byte(&b, '{');
    for (size_t i = 0; i < s->group_count; i++) {
        const orr__group_entry *g = &s->groups[i];
        orr_buf_print(&b, "%s\"%" PRIu64 "\": [", i ? ", " : "", g->id);
        for (uint32_t k = 0; k < g->count; k++) {
            if (k)
                orr_buf_text(&b, ", ");
            orr_buf_u64(&b, s->group_ranks[g->first + k]);
        }
        orr_buf_byte(&b, ']');
        orr_output_drain(o, &b);
    }
    orr_buf_byte(&b, '}');
    orr_output_drain(o, &b);
    orr_buf_fini(&b);
    return orr_output_commit(&o, err);
}

/* ---- in a .orr file ---- */

static void put_step(orr_buf *out, uint32_t from, uint32_t to)
{
    orr_put_varint(out, orr_zigzag((int64_t)to - (int64_t)from));
}

orr_code orr__groups_save(const orr_set *s, orr_buf *out, orr_error *err)
{
    uint64_t id = 0;
    uint32_t first = 0;
    orr_put_varint(out, s->group_count);
    for (size_t i = 0; i < s->group_count; i++) {
        const orr__group_entry *g = &s->groups[i];
        const uint32_t *ranks = s->group_ranks + g->first;
        orr_put_varint(out, g->id - id);
        orr_put_varint(out, g->count);
        put_step(out, first, ranks[0]);
        for (uint32_t k = 1; k < g->count; k++)
            put_step(out, ranks[k - 1], ranks[k]);
        id = g->id;
        first = ranks[0];
    }
    return out->failed ? orr_no_memory(err) : ORR_OK;
}

typedef struct reader {
    orr_set *s;
    orr_wire w;
    uint32_t *ranks;
    size_t room;
} reader;

static bool next_rank(reader *r, uint32_t *rank)
{
    uint64_t coded;
    if (!orr_wire_varint(&r->w, &coded))
        return false;
    const uint64_t v = *rank + (uint64_t)orr_unzigzag(coded);
    if (v >= r->s->rank_count)
        return false;
    *rank = (uint32_t)v;
    return true;
}

/* A rank takes at least a byte, so the remaining bytes limit their number. */
static orr_code load_group(reader *r, uint64_t *id, uint32_t *first, bool *is_bad, orr_error *err)
{
    uint64_t step, count;
    *is_bad = true;
    if (!orr_wire_varint(&r->w, &step) || !orr_wire_varint(&r->w, &count) || step == 0 ||
        step > INT64_MAX - *id || count == 0 || count > (uint64_t)(r->w.end - r->w.at))
        return ORR_OK;
    if (!orr_grow(&r->ranks, &r->room, (size_t)count))
        return orr_no_memory(err);
    *id += step;
    for (uint64_t k = 0; k < count; k++) {
        r->ranks[k] = k ? r->ranks[k - 1] : *first;
        if (!next_rank(r, &r->ranks[k]))
            return ORR_OK;
    }
    *first = r->ranks[0];
    *is_bad = false;
    return orr_set_add_group(r->s, *id, r->ranks, (uint32_t)count, err);
}

orr_code orr__groups_load(orr_set *s, orr_span bytes, const char **bad, orr_error *err)
{
    reader r = {.s = s, .w = orr_wire_of(bytes)};
    orr_code code = ORR_OK;
    uint64_t count = 0, id = 0;
    uint32_t first = 0;
    bool is_bad = !orr_wire_varint(&r.w, &count);
    for (uint64_t i = 0; i < count && !is_bad && !code; i++)
        code = load_group(&r, &id, &first, &is_bad, err);
    orr_free(r.ranks);
    *bad = code ? NULL : is_bad || r.w.at != r.w.end ? "the table of groups is damaged" : NULL;
    return code;
}

/* A batch per thread: enough files that waiting for the last one does not matter, limited in bytes
 * (but always a few files). */
enum { BATCH_LEAST = 4, BATCH_MOST = 64, BATCH_BYTES = 1 << 25 };

/* ---- building ---- */

orr_code orr_set_create(orr_set **out, orr_error *err)
{
    orr_set *s = orr_alloc(1, sizeof *s);
    *out = s;
    if (s && (s->arena = orr_arena_create()) && (s->by_bytes = orr_map_create(0)) &&
        (s->by_likeness = orr_map_create(0)))
        return ORR_OK;
    orr_set_close(s);
    *out = NULL;
    return orr_no_memory(err);
}

void orr_set_close(orr_set *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->class_count; i++)
        class_fini(&s->classes[i]);
    orr_free(s->classes);
    orr_free(s->ranks);
    orr_free(s->values);
    orr_free(s->groups);
    orr_free(s->group_ranks);
    orr_map_destroy(s->by_bytes);
    orr_map_destroy(s->by_likeness);
    orr_arena_destroy(s->arena);
    orr_input_close(s->file);
    orr_free(s);
}

orr_code orr__set_add_rank(
    orr_set *s, uint32_t class_index, uint64_t shift, const char *path, orr_error *err)
{
    char *copy = path ? orr_arena_text(s->arena, orr_str_of(path)) : NULL;
    if ((path && !copy) || s->rank_count >= ORR_NO_NODE ||
        !orr_grow(&s->ranks, &s->rank_room, s->rank_count + 1))
        return orr_no_memory(err);
    if (class_index != ORR_NO_NODE && s->classes[class_index].ranks++ == 0)
        s->classes[class_index].first = (uint32_t)s->rank_count;
    s->ranks[s->rank_count++] =
        (orr__rank){.class_index = class_index, .id_shift = shift, .path = copy};
    return ORR_OK;
}

orr_code orr__set_add_class(orr_set *s, orr_trace *t, uint32_t *index, orr_error *err)
{
    if (s->class_count >= ORR_NO_NODE ||
        !orr_grow(&s->classes, &s->class_room, s->class_count + 1)) {
        orr_trace_destroy(t);
        return orr_no_memory(err);
    }
    *index = (uint32_t)s->class_count;
    s->classes[s->class_count++] = (orr__class){.t = t};
    return ORR_OK;
}

/* ---- equal up to a shift of ids ---- */

/* The fields of a record unaffected by a shift of ids. */
static uint64_t hash_rest(orr_span body, uint64_t h)
{
    orr_wire w = orr_wire_of(body);
    orr_field f;
    while (orr_wire_next(&w, &f)) {
        const bool is_shifted =
            f.number == NODE_ID || f.number == NODE_CTRL_DEPS || f.number == NODE_DATA_DEPS;
        if (!is_shifted)
            h = orr_hash_bytes(f.start, (size_t)(w.at - f.start), h);
    }
    return h;
}

static uint64_t hash_deps(const orr_trace *t, orr_list it, uint64_t h)
{
    orr_value v;
    while (orr_list_next(&it, &v))
        h = orr_hash_mix(h ^ (v.u - t->id[0]), 0x9e3779b97f4a7c15u);
    return h;
}

static uint64_t likeness_of(const orr_trace *t)
{
    const orr_span meta = orr__trace_meta_body(t);
    uint64_t h = orr_hash_bytes(meta.ptr, meta.len, t->has_metadata + 2 * (uint64_t)t->schema);
    orr_node node;
    for (uint32_t i = 0; i < t->count; i++) {
        node.body = orr__trace_body(t, i);
        h = hash_rest(node.body, h ^ (t->id[i] - t->id[0]));
        h = hash_deps(t, orr_node_data_deps(&node), h);
        h = hash_deps(t, orr_node_ctrl_deps(&node), h + 1);
    }
    return h;
}

static bool has_same_bytes(orr_span a, orr_span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* Everything before the first node. */
static orr_span head_of(const orr_trace *t)
{
    return (orr_span){t->bytes.ptr, t->count ? (size_t)t->body_at[0] : t->bytes.len};
}

/* Are the records of a, shifted, the bytes of b from its first node on? */
static bool has_shifted_records(const orr_trace *a,
                                const orr_trace *b,
                                uint64_t shift,
                                orr_buf *record)
{
    size_t at = head_of(b).len;
    for (uint32_t i = 0; i < a->count; i++) {
        record->len = 0;
        const size_t begin = orr_put_begin(record);
        orr__encode_shifted(record, orr__trace_body(a, i), shift);
        orr_put_end(record, begin);
        if (record->failed || record->len > b->bytes.len - at ||
            memcmp(record->ptr, b->bytes.ptr + at, record->len) != 0)
            return false;
        at += record->len;
    }
    return at == b->bytes.len;
}

/* Would trace a, written with a shift, be exactly the bytes of b?  A hash finds candidates; this
 * verifies. */
static orr_code compare_shifted(
    const orr_trace *a, const orr_trace *b, uint64_t shift, bool *is_equal, orr_error *err)
{
    *is_equal = a->count == b->count && a->schema == b->schema &&
                a->has_metadata == b->has_metadata && has_same_bytes(head_of(a), head_of(b));
    if (!*is_equal || a->count == 0)
        return ORR_OK;
    if (shift == 0) {
        *is_equal = has_same_bytes(a->bytes, b->bytes);
        return ORR_OK;
    }
    orr_buf record = {0};
    *is_equal = has_shifted_records(a, b, shift, &record);
    const orr_code code = record.failed ? orr_no_memory(err) : ORR_OK;
    orr_buf_fini(&record);
    return code;
}

/* An earlier class of which t is a shifted copy; ORR_NO_NODE: none. */
static orr_code find_alike(const orr_set *s,
                           const orr_trace *t,
                           uint64_t likeness,
                           uint32_t *class_index,
                           uint64_t *shift,
                           orr_error *err)
{
    bool is_equal;
    *class_index = orr_map_find(s->by_likeness, likeness, ORR_NO_NODE);
    *shift = 0;
    if (*class_index == ORR_NO_NODE)
        return ORR_OK;
    const orr_trace *other = s->classes[*class_index].t;
    *shift = t->count && other->count ? t->id[0] - other->id[0] : 0;
    const orr_code code = compare_shifted(other, t, *shift, &is_equal, err);
    if (!code && !is_equal) {
        *class_index = ORR_NO_NODE;
        *shift = 0;
    }
    return code;
}

/* Takes ownership of t: reuses an equal class, or makes a new one. */
static orr_code merge(orr_set *s,
                      orr_trace *t,
                      uint64_t likeness,
                      uint32_t *class_index,
                      uint64_t *shift,
                      orr_error *err)
{
    orr_code code = find_alike(s, t, likeness, class_index, shift, err);
    if (code || *class_index != ORR_NO_NODE) {
        orr_trace_destroy(t);
        return code;
    }
    code = orr__set_add_class(s, t, class_index, err);
    if (!code && !orr_map_put(s->by_likeness, likeness, *class_index, NULL))
        code = orr_no_memory(err);
    return code;
}

orr_code orr_set_add(orr_set *s, orr_trace *t, orr_error *err)
{
    uint32_t class_index;
    uint64_t shift;
    if (!t->is_sealed) {
        orr_trace_destroy(t);
        return orr_fail(err, ORR_EUSAGE, NULL, "only a sealed trace can be added to a set");
    }
    const orr_code code = merge(s, t, likeness_of(t), &class_index, &shift, err);
    return code ? code : orr__set_add_rank(s, class_index, shift, NULL, err);
}

orr_code orr_set_add_rank(orr_set *s, uint32_t class_index, uint64_t id_shift, orr_error *err)
{
    if (class_index < s->class_count && s->classes[class_index].slot_count)
        return orr_fail(err, ORR_EUSAGE, NULL, "class %u has slots: the rank needs values",
                        class_index);
    if (class_index >= s->class_count)
        return orr_fail(err, ORR_EUSAGE, NULL, "the set has no class %u", class_index);
    return orr__set_add_rank(s, class_index, id_shift, NULL, err);
}

/* ---- reading files ---- */

typedef struct one_file {
    const char *path;
    orr_stream *stream; /* open already, or NULL */
    orr_input *input;
    uint64_t hash, likeness;
    size_t same_as;       /* an earlier file of the batch with these bytes, or its own index */
    uint32_t class_index; /* a class with these bytes */
    orr_trace *t;         /* parsed, when neither exists */
    orr_code code;
    orr_error error;
} one_file;

typedef struct batch {
    orr_set *s;
    const orr_set_options *opt;
    one_file *files;
    size_t count;
    bool is_single; /* only one file: nothing to compare it with */
} batch;

static orr_code open_file(void *context, size_t i, orr_error *err)
{
    batch *b = context;
    one_file *f = &b->files[i];
    (void)err; /* each file keeps its own error */
    f->code = f->stream ? orr_input_of_stream(f->stream, &f->input, &f->error)
                        : orr_input_open(f->path, &f->input, &f->error);
    if (!f->code && !b->is_single) {
        const orr_span all = orr_input_bytes(f->input);
        f->hash = orr_hash_bytes(all.ptr, all.len, 0);
    }
    return ORR_OK;
}

/* Which files have the bytes of an earlier file or of a class?  In order, so that the result does
 * not depend on threads. */
static bool find_same(batch *b)
{
    orr_map *seen = orr_map_create(b->count);
    bool ok = seen != NULL;
    for (size_t i = 0; ok && i < b->count; i++) {
        one_file *f = &b->files[i];
        f->same_as = i;
        f->class_index = ORR_NO_NODE;
        if (f->code)
            continue;
        const orr_span bytes = orr_input_bytes(f->input);
        const uint32_t c = orr_map_find(b->s->by_bytes, f->hash, ORR_NO_NODE);
        const uint32_t k = orr_map_find(seen, f->hash, ORR_NO_NODE);
        if (c != ORR_NO_NODE && has_same_bytes(b->s->classes[c].bytes, bytes))
            f->class_index = c;
        else if (k != ORR_NO_NODE && has_same_bytes(orr_input_bytes(b->files[k].input), bytes))
            f->same_as = k;
        else if (k == ORR_NO_NODE)
            ok = orr_map_put(seen, f->hash, (uint32_t)i, NULL);
    }
    orr_map_destroy(seen);
    return ok;
}

static orr_code parse_file(void *context, size_t i, orr_error *err)
{
    batch *b = context;
    one_file *f = &b->files[i];
    (void)err;
    if (f->code || f->class_index != ORR_NO_NODE || f->same_as != i)
        return ORR_OK;
    f->code = orr__trace_new(f->path, &f->t, &f->error);
    if (f->code)
        return ORR_OK;
    f->t->source =
        /* owned by the trace now, even if it was transcoded: equal files are found by it */
        f->input;
    f->code = orr__trace_load(f->t, orr_input_bytes(f->input), b->opt->read, &f->error);
    if (f->code) {
        orr_trace_destroy(f->t);
        f->t = NULL;
        f->input = NULL;
    } else if (!b->is_single) {
        f->likeness = likeness_of(f->t);
    }
    return ORR_OK;
}

static orr_code keep_error(batch *b, const one_file *f, orr_error *err)
{
    if (!b->opt->keep_going || f->code == ORR_ENOMEM) {
        if (err)
            *err = f->error;
        return f->code;
    }
    orr_error *copy = orr_arena_new(b->s->arena, 1, orr_error);
    const orr_code code =
        copy ? orr__set_add_rank(b->s, ORR_NO_NODE, 0, f->path, err) : orr_no_memory(err);
    if (!code) {
        *copy = f->error;
        b->s->ranks[b->s->rank_count - 1].error = copy;
    }
    return code;
}

/* Files with equal bytes share everything, including errors. */
static orr_code add_same(batch *b, size_t i, orr_error *err)
{
    one_file *f = &b->files[i];
    const one_file *first = &b->files[f->same_as];
    if (first->code) {
        f->code = first->code;
        f->error = first->error;
        f->error.where = orr_where_byte(f->path, first->error.where.byte);
        return keep_error(b, f, err);
    }
    const orr__rank *like = &b->s->ranks[b->s->rank_count - (i - f->same_as)];
    return orr__set_add_rank(b->s, like->class_index, like->id_shift, f->path, err);
}

static orr_code add_new(batch *b, one_file *f, orr_error *err)
{
    orr_set *s = b->s;
    uint32_t class_index;
    uint64_t shift;
    const size_t before = s->class_count;
    const orr_span bytes = orr_input_bytes(f->input);
    orr_trace *t = f->t;
    f->t = NULL;
    f->input = NULL; /* owned by t */
    orr_code code = merge(s, t, f->likeness, &class_index, &shift, err);
    if (!code && s->class_count > before) {
        s->classes[class_index].bytes = bytes;
        if (!orr_map_put(s->by_bytes, f->hash, class_index, NULL))
            code = orr_no_memory(err);
    }
    return code ? code : orr__set_add_rank(s, class_index, shift, f->path, err);
}

static orr_code add_file(batch *b, size_t i, orr_error *err)
{
    one_file *f = &b->files[i];
    if (f->class_index != ORR_NO_NODE)
        return orr__set_add_rank(b->s, f->class_index, 0, f->path, err);
    if (f->same_as != i)
        return add_same(b, i, err);
    return f->code ? keep_error(b, f, err) : add_new(b, f, err);
}

static orr_code read_batch(batch *b, orr_error *err)
{
    const unsigned threads = b->opt->threads;
    orr_code code = orr_pool_for(threads, b->count, open_file, b, err);
    if (!code && !find_same(b))
        code = orr_no_memory(err);
    if (!code)
        code = orr_pool_for(threads, b->count, parse_file, b, err);
    for (size_t i = 0; i < b->count && !code; i++)
        code = add_file(b, i, err);
    for (size_t i = 0; i < b->count; i++) {
        one_file *f = &b->files[i];
        if (f->t)
            orr_trace_destroy(f->t);
        else
            orr_input_close(f->input);
    }
    return code;
}

static size_t batch_length(const orr__file_list *list, size_t at, unsigned threads)
{
    uint64_t bytes = 0;
    size_t n = 0;
    struct stat st;
    while (at + n < list->count && n < BATCH_MOST * (size_t)threads &&
           (n < BATCH_LEAST * (size_t)threads || bytes < BATCH_BYTES * (uint64_t)threads)) {
        bytes += stat(list->paths[at + n], &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
        n++;
    }
    return n;
}

static orr_code read_files(orr_set *s,
                           orr__file_list *list,
                           const orr_set_options *opt,
                           orr_error *err)
{
    const unsigned threads = orr_pool_threads(opt->threads);
    orr_code code = ORR_OK;
    for (size_t at = 0, count; at < list->count && !code; at += count) {
        count = batch_length(list, at, threads);
        batch b = {.s = s, .opt = opt, .count = count, .is_single = list->count == 1};
        b.files = orr_alloc(b.count, sizeof *b.files);
        if (!b.files)
            return orr_no_memory(err);
        for (size_t i = 0; i < b.count; i++)
            b.files[i].path = list->paths[at + i];
        b.files[0].stream = list->stream;
        list->stream = NULL;
        code = read_batch(&b, err);
        orr_free(b.files);
    }
    return code;
}

/* The bytes of uncompressed or transcoded files are no longer needed. */
static void forget_files(orr_set *s)
{
    for (size_t i = 0; i < s->class_count; i++) {
        orr_trace *t = s->classes[i].t;
        s->classes[i].bytes = (orr_span){NULL, 0};
        if (t->is_transcoded) { /* its bytes are its own */
            orr_input_close(t->source);
            t->source = NULL;
        }
    }
}

orr_code orr_set_open(const char *path, const orr_set_options *opt, orr_set **out, orr_error *err)
{
    orr_set_options own;
    orr_read_options read;
    orr__file_list list = {0};
    *out = NULL;
    orr_code code = ORR__TAKE_OPTIONS(&own, opt, orr_set_options, err);
    if (!code)
        code = ORR__TAKE_OPTIONS(&read, own.read, orr_read_options, err);
    if (code)
        return code;
    own.read = &read;
    code = orr__set_find_files(path, &list, err);
    orr_set *s = NULL;
    if (!code)
        code = orr_set_create(&s, err);
    if (!code)
        code =
            list.is_orr ? orr__set_read_orr(s, &list, &own, err) : read_files(s, &list, &own, err);
    if (!code && list.groups && !own.ignores_groups)
        code = groups_read_beside(s, list.groups, err);
    orr_stream_close(list.stream);
    orr_arena_destroy(list.arena);
    orr_free(list.paths);
    if (code) {
        orr_set_close(s);
        return code;
    }
    forget_files(s);
    if (own.joins_alike && (code = orr__set_join_alike(s, err))) {
        orr_set_close(s);
        return code;
    }
    *out = s;
    return ORR_OK;
}

/* ---- queries ---- */

uint32_t orr_set_rank_count(const orr_set *s)
{
    return (uint32_t)s->rank_count;
}

uint32_t orr_set_class_count(const orr_set *s)
{
    return (uint32_t)s->class_count;
}

uint32_t orr_set_class_of(const orr_set *s, uint32_t rank)
{
    return s->ranks[rank].class_index;
}

const orr_trace *orr_set_trace(const orr_set *s, uint32_t class_index)
{
    return s->classes[class_index].t;
}

uint64_t orr_set_id_shift(const orr_set *s, uint32_t rank)
{
    return s->ranks[rank].id_shift;
}

const char *orr_set_rank_path(const orr_set *s, uint32_t rank)
{
    const orr__rank *r = &s->ranks[rank];
    if (r->path || r->class_index == ORR_NO_NODE)
        return r->path;
    return orr_trace_path(s->classes[r->class_index].t);
}

uint32_t orr_set_class_ranks(const orr_set *s, uint32_t class_index)
{
    return s->classes[class_index].ranks;
}

uint32_t orr_set_class_first(const orr_set *s, uint32_t class_index)
{
    return s->classes[class_index].first;
}

const orr_error *orr_set_error(const orr_set *s, uint32_t rank)
{
    return s->ranks[rank].error;
}

/* ---- A set as one file per rank.
 *
 * All files are written before the first gets its name: a full disk, lack of memory, an interrupt
 * or a kill meanwhile leaves the folder unchanged.  Each is an unnamed file with an open
 * descriptor: as many as the process may have, with the limit raised temporarily.  A set beyond
 * half of the hard limit goes in batches of that size.  A later failure removes the files made by
 * this call; those that replaced older ones stay, complete. */

enum { PATH_ROOM = 4096, SPARE_DESCRIPTORS = 256, FEWEST_AT_ONCE = 16 };

typedef struct waiting {
    orr_output *out;   /* NULL: named, or not a file */
    bool is_made;      /* it did not exist before */
    bool replaces_old; /* it existed before */
} waiting;

typedef struct writing {
    const orr_set *s;
    const char *prefix;
    orr_write_options opt;
    waiting *files; /* one per rank */
    size_t first;   /* rank of the batch */
} writing;

static orr_code path_of(const writing *w, size_t rank, char path[static PATH_ROOM], orr_error *err)
{
    const orr_trace *t = w->s->classes[w->s->ranks[rank].class_index].t;
    const orr_schema schema = w->opt.same_schema ? t->schema : w->opt.schema;
    const int n = snprintf(path, PATH_ROOM, "%s.%zu.%s", w->prefix, rank,
                           schema == ORR_SCHEMA_EG ? "eg" : "et");
    return n < 0 || n >= PATH_ROOM
               ? orr_fail(err, ORR_EUSAGE, NULL, "the output's name is longer than 4,000 bytes")
               : ORR_OK;
}

/* The current schema without a shift, the common case for generators, is assembled directly;
 * everything else goes through a trace. */
static orr_code write_filled(const orr_set *s,
                             uint32_t rank,
                             const char *path,
                             const orr_write_options *opt,
                             orr_output **out,
                             orr_error *err)
{
    const orr__rank *r = &s->ranks[rank];
    orr__class *c = &s->classes[r->class_index];
    const orr_schema schema = opt->same_schema ? c->t->schema : opt->schema;
    const orr_trace *t;
    orr_trace *owned = NULL;
    orr_buf bytes = {0};
    orr_code code;
    if (opt->id_shift || (schema && schema != ORR_SCHEMA_CURRENT)) {
        code = orr_set_rank_trace(s, rank, &t, &owned, err);
        if (!code)
            code = orr__trace_write_open(t, path, opt, out, err);
        orr_trace_destroy(owned);
        return code;
    }
    code = orr__fill(c, s->values + r->values_at, &bytes) ? ORR_OK : orr_no_memory(err);
    if (!code)
        code = orr_output_open(path, out, err);
    if (!code)
        orr_output_drain(*out, &bytes);
    orr_buf_fini(&bytes);
    return code;
}

static orr_code write_rank(void *context, size_t at, orr_error *err)
{
    const writing *w = context;
    const size_t rank = w->first + at;
    const orr__rank *r = &w->s->ranks[rank];
    waiting *file = &w->files[rank];
    orr_write_options opt = w->opt;
    char path[PATH_ROOM];
    if (r->class_index == ORR_NO_NODE)
        return ORR_OK;
    orr_code code = path_of(w, rank, path, err);
    if (code)
        return code;
    const orr__class *c = &w->s->classes[r->class_index];
    opt.id_shift += r->id_shift;
    file->replaces_old = access(path, F_OK) == 0;
    code = c->hole_count ? write_filled(w->s, (uint32_t)rank, path, &opt, &file->out, err)
                         : orr__trace_write_open(c->t, path, &opt, &file->out, err);
    return code ? code : orr_output_settle(file->out, err);
}

static orr_code name_rank(void *context, size_t at, orr_error *err)
{
    const writing *w = context;
    waiting *file = &w->files[w->first + at];
    if (!file->out)
        return ORR_OK;
    const orr_code code = orr_output_commit(&file->out, err);
    file->is_made = !code && !file->replaces_old;
    return code;
}

static void take_back(const writing *w)
{
    char path[PATH_ROOM];
    for (size_t rank = 0; rank < w->s->rank_count; rank++) {
        orr_output_discard(w->files[rank].out);
        if (w->files[rank].is_made && !path_of(w, rank, path, NULL))
            unlink(path);
    }
}

/* How many unnamed files may be open at the same time. */
static size_t raise_limit(size_t wanted, struct rlimit *before)
{
    *before = (struct rlimit){0, 0};
    if (getrlimit(RLIMIT_NOFILE, before))
        return FEWEST_AT_ONCE;
    struct rlimit now = *before;
    const rlim_t enough = 2 * (rlim_t)wanted + SPARE_DESCRIPTORS;
    if (now.rlim_cur < enough) {
        now.rlim_cur = enough < now.rlim_max ? enough : now.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &now))
            now = *before;
    }
    const rlim_t half = now.rlim_cur / 2;
    return half < FEWEST_AT_ONCE ? FEWEST_AT_ONCE : half < wanted ? (size_t)half : wanted;
}

orr_code orr_set_write_files(const orr_set *s,
                             const char *prefix,
                             const orr_write_options *opt,
                             unsigned threads,
                             orr_error *err)
{
    writing w = {.s = s, .prefix = prefix};
    struct rlimit before;
    orr_code code = ORR__TAKE_OPTIONS(&w.opt, opt, orr_write_options, err);
    if (code)
        return code;
    if (!(w.files = orr_alloc(s->rank_count + 1, sizeof *w.files)))
        return orr_no_memory(err);
    const size_t most = raise_limit(s->rank_count, &before);
    for (; !code && w.first < s->rank_count; w.first += most) {
        const size_t left = s->rank_count - w.first, count = left < most ? left : most;
        code = orr_pool_for(threads, count, write_rank, &w, err);
        if (!code)
            code = orr_pool_for(threads, count, name_rank, &w, err);
    }
    if (code)
        take_back(&w);
    if (before.rlim_cur)
        setrlimit(RLIMIT_NOFILE, &before);
    orr_free(w.files);
    return code;
}
