/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_matching.c - does every message that is sent get received?
 *
 * For each ordered pair of ranks two sums are kept: messages sent less messages received, and the
 * same of a hash of each message (operation, number, size).  A message that is sent and received
 * leaves both at zero.  So the book has an entry for each pair and not for each message; a false
 * "all match" needs hashes of 64 bits to cancel out. */
#include "nccl_write.h"

#include "base/memory/hash.h"

#include <inttypes.h>

typedef struct pair {
    uint32_t from, to;
    uint64_t sent, received;
    uint64_t sum;
} pair;

struct nccl_matching {
    orr_map *number; /* from << 32 | to */
    pair *pairs;
    size_t count, room;
    uint64_t last_key; /* messages of a pair come in runs */
    size_t last;
};

nccl_matching *nccl_matching_create(void)
{
    nccl_matching *m = orr_alloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->number = orr_map_create(256);
    m->last_key = UINT64_MAX;
    if (m->number)
        return m;
    orr_free(m);
    return NULL;
}

void nccl_matching_destroy(nccl_matching *m)
{
    if (!m)
        return;
    orr_map_destroy(m->number);
    orr_free(m->pairs);
    orr_free(m);
}

static pair *find_pair(nccl_matching *m, uint32_t from, uint32_t to)
{
    const uint64_t key = (uint64_t)from << 32 | to;
    if (key == m->last_key)
        return &m->pairs[m->last];
    uint32_t at = orr_map_find(m->number, key, ORR__NONE);
    if (at == ORR__NONE) {
        at = (uint32_t)m->count;
        if (!orr_map_put(m->number, key, at, NULL) || !orr_grow(&m->pairs, &m->room, m->count + 1))
            return NULL;
        m->pairs[m->count++] = (pair){.from = from, .to = to};
    }
    m->last_key = key;
    m->last = at;
    return &m->pairs[at];
}

bool nccl_matching_add(nccl_matching *m, const nccl_match_key *key)
{
    pair *p = find_pair(m, key->from, key->to);
    if (!p)
        return false;
    const uint64_t hash = orr_hash_mix(
        orr_hash_mix(key->context + 0x9e3779b97f4a7c15u, key->id + 0xbf58476d1ce4e5b9u),
        key->bytes + 0x94d049bb133111ebu);
    p->sum += key->is_send ? hash : 0 - hash;
    *(key->is_send ? &p->sent : &p->received) += 1;
    return true;
}

orr_code nccl_matching_check(const nccl_matching *m, uint64_t *unmatched, orr_error *err)
{
    const pair *worst = NULL;
    *unmatched = 0;
    for (size_t i = 0; i < m->count; i++) {
        const pair *p = &m->pairs[i];
        if (p->sent == p->received && p->sum == 0)
            continue;
        const uint64_t more = p->sent > p->received ? p->sent - p->received : p->received - p->sent;
        *unmatched += more ? more : 1;
        worst = worst ? worst : p;
    }
    if (!worst)
        return ORR_OK;
    if (worst->sent != worst->received)
        return orr_fail(
            err, ORR_EINPUT, NULL,
            "rank %" PRIu32 " sends %" PRIu64 " messages to rank %" PRIu32
            ", which receives %" PRIu64
            ": the exports do not cover the same calls (--keep-unmatched writes them anyway)",
            worst->from, worst->sent, worst->to, worst->received);
    return orr_fail(err, ORR_EINPUT, NULL,
                    "rank %" PRIu32 " and rank %" PRIu32 " do not agree on the %" PRIu64
                    " messages from the first to the second (--keep-unmatched writes them anyway)",
                    worst->from, worst->to, worst->sent);
}
