/* SPDX-License-Identifier: Apache-2.0 */
/* link_impl.h - the state of a link, and the steps that fill it, in the order they are taken. */
#ifndef ORR_PYTORCH_LINK_IMPL_H
#define ORR_PYTORCH_LINK_IMPL_H

#include "sources/torch/read/kineto.h"
#include "sources/torch/read/linked.h"

#include "base/io/input.h"

#define ORR__NONE UINT32_MAX

/* Lists of numbers, one list an item: item i has list[first[i] .. first[i + 1]). */
typedef struct orr__lists {
    uint32_t *first, *list;
} orr__lists;

/* The operators of the device trace by thread, and what time tells about them.  "Operator o" is the o-th in
 * the order of time. */
typedef struct orr__operators {
    uint32_t *event; /* of operator o */
    uint32_t count;
    orr__lists by_thread; /* operators of a thread, in the order of time */
    double *own;          /* exclusive duration */
    uint8_t *own_is_real; /* it came from numbers with a fraction */
    uint32_t thread_count;
} orr__operators;

/* Something went on only when a device operation had ended. */
typedef struct orr__wait {
    uint32_t from; /* event: the device operation */
    uint32_t
        to; /* event: the call of the host that returned then, or the device operation that started */
} orr__wait;

/* How another program links.  Ours is in link.c. */
typedef struct orr_rules_link {
    kin_rules read;
    /* Of operators that start together the shorter one comes first, lists of threads keep the order of the file, and
     * operators that take longer than the one around them are an error (chakra.md 3.4). */
    bool shorter_first;
    bool
        only_recorded_waits; /* those of cuda_sync events; calls and copies do not tell (chakra.md 3.6) */
    orr_code (*link)(orr_link *l, orr_error *err);
    orr_code (*write)(const orr_link *l, const char *path, orr_error *err);
    void (*close)(orr_link *l); /* ends l->other; NULL: there is none */
} orr_rules_link;

struct orr_link {
    orr_link_options opt;
    const orr_rules_link *rules;
    orr__link_tally tally;
    orr_arena *arena;
    const orr_span *host_bytes, *device_bytes; /* in memory, not in files; NULL: in files */
    const char *host_path, *device_path;
    orr__kineto device;
    orr_linked *linked; /* by our rules: first the host trace, in the end all of it */
    void *other;        /* what other rules keep */
    orr__operators ops;
    orr__wait *waits;
    size_t wait_count, wait_room;
};

/* link.c */
orr_code orr__link_read_device(orr_link *l, orr_error *err) ORR_MUST_CHECK;
bool orr__is_known_schema(orr_str s);

/* Numbers noted one after the other under an item, in any order; then made lists, each in the order of noting. */
typedef struct orr__pairs {
    struct orr__pair {
        uint32_t item, value;
    } * pairs;
    size_t count, room;
} orr__pairs;

bool orr__pairs_add(orr__pairs *p, uint32_t item, uint32_t value);
/* Takes the pairs: they are gone afterwards, also on failure. */
orr_code orr__pairs_take(
    orr__pairs *p, uint32_t items, orr_arena *a, orr__lists *out, orr_error *err) ORR_MUST_CHECK;

/* link_order.c: a stable sort by unsigned keys; the result is in a or in b. */
typedef struct orr__sort_entry {
    uint64_t key;
    uint32_t item;
} orr__sort_entry;
const orr__sort_entry *orr__sort_entries(orr__sort_entry *a, orr__sort_entry *b, size_t n);
uint64_t orr__sort_key(double v); /* keys in the order of the numbers */

/* link_times.c: events in the order of time; operators by thread; exclusive durations. */
orr_code orr__link_sort(orr_link *l, orr_error *err) ORR_MUST_CHECK;
orr_code orr__link_time(orr_link *l, orr_error *err) ORR_MUST_CHECK;

/* link_waits.c: what waited for the device, and for which operation there. */
orr_code orr__link_find_waits(orr_link *l, orr_error *err) ORR_MUST_CHECK;
/* link_streams.c: the same for streams that waited for streams, where that was not recorded. */
orr_code orr__link_guess_streams(orr_link *l, orr_error *err) ORR_MUST_CHECK;
/* link_step.c: only what belongs to the step that was asked for stays. */
orr_code orr__link_pick_step(orr_link *l, orr_error *err) ORR_MUST_CHECK;
/* link_json.c */
orr_code orr__link_write(const orr_link *l, const char *path, orr_error *err) ORR_MUST_CHECK;

static inline const orr__event *orr__link_op(const orr_link *l, uint32_t op)
{
    return &l->device.events[l->ops.event[op]];
}

#endif
