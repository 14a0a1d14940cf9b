/* SPDX-License-Identifier: Apache-2.0 */
/* builder.c - see builder.h.  Cost: only the parts of the name and the dependencies are copied;
 * adding a node is orr_trace_append. */
#include "builder.h"
#include "trace_impl.h"

#include <inttypes.h>
#include <stdio.h>

const orr__attr_row orr__attr_rows[ORR__ATTR_COUNT] = {
#define ORR__X(key, name, type) {{name, sizeof name - 1}, ORR_VALUE_##type},
    ORR__ATTR_TABLE(ORR__X)
#undef ORR__X
};

void orr__build_open(orr__builder *b, orr_error *err)
{
    memset(b, 0, sizeof *b);
    b->err = err;
}

void orr__build_fini(orr__builder *b)
{
    orr_trace_destroy(b->trace);
    orr_free(b->data);
    orr_free(b->ctrl);
    orr_free(b->holes);
    orr_free(b->last_on);
    orr_free(b->rest_ns);
    orr_buf_fini(&b->name);
    orr_map_destroy(b->lanes);
    orr__build_open(b, NULL);
}

static bool has_room(orr__builder *b, bool is_grown)
{
    if (!is_grown && !b->code)
        b->code = orr_no_memory(b->err);
    return !b->code;
}

void orr__build_trace(orr__builder *b, const char *version)
{
    const orr_meta meta = {.version = orr_str_of(version ? version : ""),
                           .attrs = b->attrs,
                           .attr_count = b->attr_count};
    if (!b->code)
        b->code = orr__trace_create(b->label ? b->label : "(new trace)", version ? &meta : NULL,
                                    &b->trace, b->err);
}

/* ---- one node ---- */

static bool is_among(const uint64_t *ids, size_t count, uint64_t id)
{
    for (size_t i = 0; i < count; i++) {
        if (ids[i] == id)
            return true;
    }
    return false;
}

void orr__build_deps(orr__builder *b, const uint64_t *ids, size_t count)
{
    if (!count || !has_room(b, orr_grow(&b->data, &b->data_room, b->data_count + count)))
        return;
    memcpy(b->data + b->data_count, ids, count * sizeof *ids);
    b->data_count += count;
}

void orr__build_after(orr__builder *b, uint64_t id)
{
    if (!is_among(b->data, b->data_count, id))
        orr__build_deps(b, &id, 1);
}

void orr__build_after_ctrl(orr__builder *b, uint64_t id)
{
    if (is_among(b->data, b->data_count, id) || is_among(b->ctrl, b->ctrl_count, id) ||
        !has_room(b, orr_grow(&b->ctrl, &b->ctrl_room, b->ctrl_count + 1)))
        return;
    b->ctrl[b->ctrl_count++] = id;
}

void orr__build_full(orr__builder *b)
{
    if (!b->code)
        b->code = orr_fail(b->err, ORR_EBUG, NULL, "a node with more than %d attributes",
                           ORR__BUILD_ATTRS);
    b->attr_count = 0;
}

uint64_t orr__build_add(orr__builder *b)
{
    orr_draft *d = &b->node;
    if (!d->name.len)
        d->name = (orr_str){(const char *)b->name.ptr, b->name.len};
    if (!d->data_deps) {
        d->data_deps = b->data;
        d->data_count = b->data_count;
    }
    if (!d->ctrl_deps) {
        d->ctrl_deps = b->ctrl;
        d->ctrl_count = b->ctrl_count;
    }
    d->attrs = b->attrs;
    d->attr_count = b->attr_count;
    if (has_room(b, !b->name.failed))
        b->code = orr_trace_append(b->trace, d, b->err);
    b->count++;
    b->next_id = d->id + 1;
    return d->id;
}

uint64_t orr__build_in_stream(orr__builder *b, uint32_t stream)
{
    if (stream >= b->stream_count) {
        if (!has_room(b, orr_grow(&b->last_on, &b->stream_room, (size_t)stream + 1)))
            return 0;
        memset(b->last_on + b->stream_count, 0,
               (stream + 1 - b->stream_count) * sizeof *b->last_on);
        b->stream_count = (size_t)stream + 1;
    }
    const uint64_t before = b->last_on[stream];
    b->last_on[stream] = b->node.id;
    return before;
}

void orr__build_hole(orr__builder *b, orr_hole_field field, uint32_t slot)
{
    if (has_room(b, orr_grow(&b->holes, &b->hole_room, b->hole_count + 1)))
        b->holes[b->hole_count++] = (orr_hole){.node = b->count, .field = field, .slot = slot};
}

void orr__put_group(orr__builder *b, uint64_t number)
{
    snprintf(b->group, sizeof b->group, "%" PRIu64, number);
    orr__put_text(b, ORR__ATTR_PG_NAME, orr_str_of(b->group));
}

/* ---- times ---- */

static uint64_t *rest_of(orr__builder *b, uint64_t lane)
{
    if (!b->lanes && !has_room(b, (b->lanes = orr_map_create(64)) != NULL))
        return NULL;
    uint32_t i = orr_map_find(b->lanes, lane, UINT32_MAX);
    if (i == UINT32_MAX) {
        i = (uint32_t)b->lane_count;
        if (!has_room(b, orr_grow(&b->rest_ns, &b->lane_room, b->lane_count + 1) &&
                             orr_map_put(b->lanes, lane, i, NULL)))
            return NULL;
        b->rest_ns[b->lane_count++] = 0;
    }
    return &b->rest_ns[i];
}

void orr__build_duration_ns(orr__builder *b, uint64_t lane, uint64_t ns)
{
    uint64_t *rest = rest_of(b, lane);
    if (!rest)
        return;
    const uint64_t all = ns % 1000 + *rest;
    b->node.duration_us = ns / 1000 + all / 1000;
    *rest = all % 1000;
}

void orr__build_duration_ps(orr__builder *b, double ps)
{
    ps += b->rest_ps;
    const double us = ps / 1e6 < 9e15 ? ps / 1e6 : 9e15;
    b->node.duration_us = (uint64_t)us;
    b->rest_ps = us < 9e15 ? ps - (double)b->node.duration_us * 1e6 : 0;
}

/* ---- the end ---- */

orr_code orr__build_seal(orr__builder *b, orr_trace **out)
{
    *out = NULL;
    if (!b->code)
        b->code = orr_trace_seal(b->trace, b->err);
    if (!b->code) {
        *out = b->trace;
        b->trace = NULL;
    }
    const orr_code code = b->code;
    orr__build_fini(b);
    return code;
}

orr_code orr__build_rank(orr__builder *b, orr_set *set)
{
    orr_trace *t;
    orr_error *err = b->err;
    const orr_code code = orr__build_seal(b, &t);
    return code ? code : orr_set_add(set, t, err);
}

orr_code orr__build_class(orr__builder *b, orr_set *set, uint32_t slot_count, uint32_t *class_index)
{
    if (!b->code)
        b->code = orr_trace_seal(b->trace, b->err);
    if (!b->code) {
        b->code = orr_set_add_class(set, b->trace, b->holes, b->hole_count, slot_count, class_index,
                                    b->err);
        b->trace = NULL;
    }
    const orr_code code = b->code;
    orr__build_fini(b);
    return code;
}
