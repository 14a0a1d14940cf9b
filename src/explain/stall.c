/* SPDX-License-Identifier: Apache-2.0 */
/* stall.c - when nothing can happen any more and ranks have not finished: why.
 *
 * What waits is collected, what each of it waits for is worked out, and then it is followed to where it ends: in
 * a cause or in a circle.  docs/design/stall.md says how, and which causes there are.  All is done once, after
 * the clock has run empty; a run that ends well pays nothing. */
#include "stall_impl.h"

#include "base/formats/json.h"

#include <inttypes.h>

static void free_scratch(struct orr__stall *st)
{
    orr_map_destroy(st->by_place);
    orr_map_destroy(st->by_stream);
    orr_map_destroy(st->by_tag);
    orr_map_destroy(st->starved);
    orr_map_destroy(st->resolved);
    orr_free(st->waits);
    orr_free(st->edges);
    st->by_place = st->by_stream = st->by_tag = st->starved = st->resolved = NULL;
    st->waits = NULL;
    st->edges = NULL;
}

void orr__stall_destroy(struct orr__stall *st)
{
    if (!st)
        return;
    free_scratch(st);
    orr_arena_destroy(st->arena);
    orr_free(st);
}

static struct orr__stall *analyse(orr_sim *s)
{
    struct orr__stall *st = orr_alloc(1, sizeof *st);
    if (!st)
        return NULL;
    st->sim = s;
    st->arena = orr_arena_create();
    if (st->arena && orr__stall_collect(st) && orr__stall_link_messages(st) &&
        orr__stall_link_streams(st) && orr__stall_find_causes(st) && orr__stall_make_items(st)) {
        free_scratch(st);
        return st;
    }
    orr__stall_destroy(st);
    return NULL;
}

const orr_stall *orr_sim_stall(orr_sim *s)
{
    uint64_t tick;
    if (!s->has_started || s->code || s->finished == s->npu_count ||
        orr__clock_next_tick(s->clock, &tick))
        return NULL;
    if (!s->stall)
        s->stall = analyse(s);
    return s->stall ? &s->stall->result : NULL;
}

orr_code orr__explain_stall(orr_sim *s, orr_error *err)
{
    const orr_stall *r = orr_sim_stall(s);
    if (!r)
        return orr_no_memory(err);
    const orr_stall_item *at = r->cause_count ? r->causes : r->circle_count ? r->circle : r->waits;
    const bool has_place = r->cause_count || r->circle_count || r->wait_count;
    return orr_fail(err, ORR_EINPUT, has_place ? &at->where : NULL,
                    "deadlock: %u of %u ranks have not finished: %s", r->unfinished, r->ranks,
                    r->summary);
}

/* ---- JSON ---- */

static void put_collective(orr_json_writer *w, const orr_stall_item *item)
{
    orr_json_put_text(w, "collective", item->kind);
    orr_json_put_u64(w, "collective_bytes", item->collective_size);
    orr_json_put_text(w, "group", item->group);
    orr_json_put_u64(w, "sequence", item->sequence);
    if (!item->has_stream)
        return;
    orr_json_put_u64(w, "chunk", item->stream);
    orr_json_put_u64(w, "phase", item->phase);
    orr_json_put_u64(w, "phases", item->phases);
    orr_json_put_u64(w, "dimension", item->dimension);
}

static void put_item(orr_json_writer *w, const orr_stall_item *item)
{
    orr_json_begin_object(w);
    if (item->cause != ORR_STALL_NONE)
        orr_json_put_text(w, "cause", orr_stall_cause_name(item->cause));
    orr_json_put_text(w, "ranks", item->ranks);
    orr_json_put_u64(w, "rank_count", item->rank_count);
    orr_json_put_u64(w, "node", item->node);
    orr_json_put_text(w, "name", item->name);
    orr_json_put_text(w, "file", item->where.path);
    if (item->where.byte != ORR_NO_BYTE)
        orr_json_put_u64(w, "byte", item->where.byte);
    orr_json_put_text(w, "waits_for", item->waits_for);
    if (item->peer != ORR_STALL_NO_RANK)
        orr_json_put_u64(w, "peer", item->peer);
    if (item->has_message) {
        orr_json_put_u64(w, "tag", item->tag);
        orr_json_put_u64(w, "message_bytes", item->size);
    }
    if (item->is_collective)
        put_collective(w, item);
    orr_json_put_text(w, "text", item->text);
    orr_json_end_object(w);
}

static void put_items(orr_json_writer *w,
                      const char *key,
                      const orr_stall_item *items,
                      size_t count)
{
    orr_json_key(w, key);
    orr_json_begin_array(w);
    for (size_t i = 0; i < count; i++)
        put_item(w, &items[i]);
    orr_json_end_array(w);
}

void orr__stall_write_json(const orr_sim *s, orr_json_writer *w)
{
    if (!s->stall)
        return;
    const orr_stall *r = &s->stall->result;
    orr_json_key(w, "stall");
    orr_json_begin_object(w);
    orr_json_put_u64(w, "unfinished_ranks", r->unfinished);
    orr_json_put_text(w, "cause", orr_stall_cause_name(r->cause));
    orr_json_put_text(w, "summary", r->summary);
    put_items(w, "causes", r->causes, r->cause_count);
    orr_json_put_u64(w, "circle_length", r->circle_length);
    put_items(w, "circle", r->circle, r->circle_count);
    put_items(w, "waits", r->waits, r->wait_count);
    orr_json_put_u64(w, "waits_left_out", r->waits_left_out);
    orr_json_end_object(w);
}
