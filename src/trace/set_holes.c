/* SPDX-License-Identifier: Apache-2.0 */
/* set_holes.c - where the ranks of a class differ: groups, peers and tags.
 *
 * A class with holes has a table from node to slot for each field that has any, and each of its ranks a row of
 * values, so a look costs two loads and 32,768 ranks of a pipeline stage a few numbers each.  Everything a
 * hole claims is checked when it is made (the node is there, has the attribute once, as one integer or text),
 * so filling cannot fail for anything but memory. */
#include "set_impl.h"

#include <inttypes.h>
#include <stdlib.h>

static const orr__attr_key field_keys[ORR_HOLE_FIELDS] = {ORR__ATTR_PG_NAME, ORR__ATTR_COMM_SRC,
                                                          ORR__ATTR_COMM_DST, ORR__ATTR_COMM_TAG};

const char *orr__hole_field_name(orr_hole_field field)
{
    return orr__attr_name(field_keys[field]);
}

static int compare_holes(const void *a, const void *b)
{
    const orr_hole *x = a, *y = b;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return (int)x->field - (int)y->field;
}

/* Who makes nodes one after the other makes their holes in order too. */
static void sort_holes(orr_hole *holes, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (compare_holes(&holes[i - 1], &holes[i]) > 0) {
            qsort(holes, count, sizeof *holes, compare_holes);
            return;
        }
    }
}

static void narrow(orr__class *c, uint32_t slot, int64_t least, int64_t most)
{
    if (c->least[slot] < least)
        c->least[slot] = least;
    if (c->most[slot] > most)
        c->most[slot] = most;
}

/* What the slot may hold, so that it can be written in the attribute's own kind. */
static bool take_kind(orr__class *c, const orr_hole *h, orr_value_kind kind)
{
    switch (kind) {
    case ORR_VALUE_STRING:
        return h->field == ORR_HOLE_PG_NAME;
    case ORR_VALUE_INT32:
    case ORR_VALUE_SINT32:
    case ORR_VALUE_SFIXED32:
        narrow(c, h->slot, INT32_MIN, INT32_MAX);
        break;
    case ORR_VALUE_UINT32:
    case ORR_VALUE_FIXED32:
        narrow(c, h->slot, 0, UINT32_MAX);
        break;
    case ORR_VALUE_UINT64:
    case ORR_VALUE_FIXED64:
        narrow(c, h->slot, 0, INT64_MAX);
        break;
    case ORR_VALUE_INT64:
    case ORR_VALUE_SINT64:
    case ORR_VALUE_SFIXED64:
        break;
    default:
        return false;
    }
    return h->field != ORR_HOLE_PG_NAME;
}

static const char *check_hole(orr__class *c, const orr_hole *h)
{
    orr_node node;
    orr_attr attr;
    if ((unsigned)h->field >= ORR_HOLE_FIELDS)
        return "a hole has a field that is not known";
    if (h->node >= c->t->count)
        return "a hole is in a node that is not there";
    if (h->slot >= c->slot_count)
        return "a hole names a slot that is not there";
    node.body = orr__trace_body(c->t, h->node);
    if (!orr__node_get(&node, field_keys[h->field], &attr) || attr.is_list)
        return "a hole is in an attribute that the node does not have";
    return take_kind(c, h, attr.kind) ? NULL : "a hole is in an attribute of another kind";
}

static bool make_tables(orr_set *s, orr__class *c, const orr_hole *holes)
{
    c->holes = orr_arena_new(s->arena, c->hole_count + 1, orr_hole);
    c->least = orr_arena_new(s->arena, c->slot_count + 1u, int64_t);
    c->most = orr_arena_new(s->arena, c->slot_count + 1u, int64_t);
    if (!c->holes || !c->least || !c->most)
        return false;
    if (c->hole_count)
        memcpy(c->holes, holes, c->hole_count * sizeof *holes);
    sort_holes(c->holes, c->hole_count);
    for (uint32_t i = 0; i < c->slot_count; i++) {
        c->least[i] = INT64_MIN + 1; /* the least one means that there is no value */
        c->most[i] = INT64_MAX;
    }
    return true;
}

static bool place_hole(orr_set *s, orr__class *c, const orr_hole *h, const char **why)
{
    *why = check_hole(c, h);
    if (*why)
        return true;
    uint32_t **table = &c->slot[h->field];
    if (!*table && !(*table = orr_arena_new(s->arena, c->t->count, uint32_t)))
        return false;
    if ((*table)[h->node])
        *why = "two holes are in the same place";
    (*table)[h->node] = h->slot + 1;
    return true;
}

orr_code orr__class_set_holes(orr_set *s,
                              uint32_t class_index,
                              const orr_hole *holes,
                              size_t hole_count,
                              uint32_t slot_count,
                              const char **why,
                              orr_error *err)
{
    orr__class *c = &s->classes[class_index];
    *why = NULL;
    if (slot_count > ORR__SLOTS_MOST || hole_count > (size_t)c->t->count * ORR_HOLE_FIELDS) {
        *why = "more holes or slots than a class can have";
        return ORR_OK;
    }
    c->hole_count = hole_count;
    c->slot_count = slot_count;
    if (!make_tables(s, c, holes))
        return orr_no_memory(err);
    for (size_t i = 0; i < hole_count && !*why; i++)
        if (!place_hole(s, c, &c->holes[i], why))
            return orr_no_memory(err);
    return *why || hole_count == 0 ? ORR_OK : orr__fill_plan_make(c, &c->plan, err);
}

bool orr__slot_fits(const orr__class *c, uint32_t slot, int64_t value)
{
    return c->least[slot] <= value && value <= c->most[slot];
}

/* ---- making a set ---- */

orr_code orr_set_add_class(orr_set *s,
                           orr_trace *t,
                           const orr_hole *holes,
                           size_t hole_count,
                           uint32_t slot_count,
                           uint32_t *class_index,
                           orr_error *err)
{
    const char *why = NULL;
    if (!t->is_sealed) {
        orr_trace_destroy(t);
        return orr_fail(err, ORR_EUSAGE, NULL, "only a sealed trace can be added to a set");
    }
    orr_code code = orr__set_add_class(s, t, class_index, err);
    if (!code)
        code = orr__class_set_holes(s, *class_index, holes, hole_count, slot_count, &why, err);
    return why ? orr_fail(err, ORR_EUSAGE, NULL, "%s", why) : code;
}

orr_code orr_set_add_filled(
    orr_set *s, uint32_t class_index, uint64_t id_shift, const int64_t *values, orr_error *err)
{
    if (class_index >= s->class_count)
        return orr_fail(err, ORR_EUSAGE, NULL, "the set has no class %u", class_index);
    const orr__class *c = &s->classes[class_index];
    for (uint32_t i = 0; i < c->slot_count; i++)
        if (!orr__slot_fits(c, i, values[i]))
            return orr_fail(err, ORR_EUSAGE, NULL, "%" PRId64 " does not fit into slot %u",
                            values[i], i);
    if (!orr_grow(&s->values, &s->value_room, s->value_count + c->slot_count))
        return orr_no_memory(err);
    const orr_code code = orr__set_add_rank(s, class_index, id_shift, NULL, err);
    if (code)
        return code;
    s->ranks[s->rank_count - 1].values_at = s->value_count;
    if (c->slot_count)
        memcpy(s->values + s->value_count, values, c->slot_count * sizeof *values);
    s->value_count += c->slot_count;
    return ORR_OK;
}

/* ---- looking at it ---- */

uint32_t orr_set_slot_count(const orr_set *s, uint32_t class_index)
{
    return s->classes[class_index].slot_count;
}

bool orr_set_hole(
    const orr_set *s, uint32_t rank, orr_hole_field field, uint32_t node, int64_t *out)
{
    return s->ranks[rank].class_index != ORR_NO_NODE && orr__set_hole(s, rank, field, node, out);
}

/* The trace of a class with the values of a rank (NULL: as it stands), a trace of its own. */
orr_code orr__class_trace(const orr__class *c,
                          const int64_t *values,
                          orr_trace **out,
                          orr_error *err)
{
    orr_code code = orr__trace_new(c->t->path, out, err);
    if (code)
        return code;
    orr_trace *t = *out;
    const orr_read_options current = {.schema = ORR_SCHEMA_CURRENT, .leniency = ORR_KEEP_UNKNOWN};
    if (values && c->plan && !orr__fill(c, values, &t->owned))
        t->owned.failed = true;
    else if (!values || !c->plan)
        orr_buf_add(&t->owned, c->t->bytes.ptr, c->t->bytes.len);
    code = t->owned.failed ? orr_no_memory(err)
           : t->owned.len == 0
               ? orr_trace_seal(t, err)
               : orr__trace_load(t, (orr_span){t->owned.ptr, t->owned.len}, &current, err);
    if (code) {
        orr_trace_destroy(t);
        *out = NULL;
        return code;
    }
    t->schema = c->t->schema;
    return ORR_OK;
}

orr_code orr_set_rank_trace(
    const orr_set *s, uint32_t rank, const orr_trace **out, orr_trace **owned, orr_error *err)
{
    const orr__rank *r = &s->ranks[rank];
    *owned = NULL;
    *out = NULL;
    if (r->class_index == ORR_NO_NODE)
        return orr_fail(err, ORR_EUSAGE, NULL, "rank %u could not be read", rank);
    if (s->classes[r->class_index].hole_count == 0) {
        *out = s->classes[r->class_index].t;
        return ORR_OK;
    }
    const orr_code code =
        orr__class_trace(&s->classes[r->class_index], s->values + r->values_at, owned, err);
    *out = *owned;
    return code;
}
