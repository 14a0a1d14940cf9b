/* SPDX-License-Identifier: Apache-2.0 */
/* link_servers.c - links as FIFO servers, and the packets that pass them (astra-sim.md 8.2).
 *
 * A packet crosses a link in two events: its arrival at the other end, and the link's release.
 * Waiting packets form a list through the pool, so a hop allocates nothing below the high-water
 * mark. Cost: O(1) per hop, plus the model's choice of the next link. */
#include "link_servers.h"
#include "net_time.h"

#include "base/arithmetic.h"

#define NONE UINT32_MAX

void net_servers_init(net_servers *s, net_next_link next_link, void *net)
{
    *s = (net_servers){.next_link = next_link, .net = net, .free_packet = NONE};
}

void net_servers_fini(net_servers *s)
{
    orr_free(s->links);
    orr_free(s->packets);
    orr_free(s->touches);
}

bool net_servers_add(net_servers *s, const net_link *like, uint32_t *index_out)
{
    if (s->link_count >= NET_LINK_ARRIVED ||
        !orr_grow(&s->links, &s->link_room, s->link_count + 1) ||
        (s->is_folded && !orr_grow(&s->touches, &s->touch_room, s->link_count + 1)))
        return false;
    if (s->is_folded)
        s->touches[s->link_count] = (net_touch){.at = UINT64_MAX};
    net_link *l = &s->links[s->link_count];
    *l = *like;
    l->first = l->last = NONE;
    if (index_out)
        *index_out = (uint32_t)s->link_count;
    s->link_count++;
    return true;
}

/* ---- packets ---- */

static uint32_t new_packet(net_servers *s)
{
    const uint32_t p = s->free_packet;
    if (p != NONE) {
        s->free_packet = s->packets[p].next;
        return p;
    }
    if (s->packet_count >= NONE || !orr_grow(&s->packets, &s->packet_room, s->packet_count + 1))
        return NONE;
    return (uint32_t)s->packet_count++;
}

static void drop_packet(net_servers *s, uint32_t p)
{
    s->packets[p].next = s->free_packet;
    s->free_packet = p;
}

/* ---- links that represent others ---- */

enum { BY_SOURCE = 1, BY_LINK = 2, BY_RELEASE = 4 };

bool net_servers_fold(net_servers *s)
{
    s->is_folded = true;
    if (!orr_grow(&s->touches, &s->touch_room, s->link_count + 1))
        return false;
    for (size_t i = 0; i < s->link_count; i++)
        s->touches[i] = (net_touch){.at = UINT64_MAX};
    return true;
}

/* Called before an event at a link.  Two events with the same place in a tick may have different
 * orders at different represented links.  That makes no difference
 * - between events that originate from the starts of ranks of one copy (orr__net_origin): ranks are
 * moved together, so that
 *   their order is the same in every copy;
 * - between two messages of the rank from which the link leads: their order is that of the rank's
 * own events;
 * - between an arriving message and the release of the link: either way the message is last in the
 * queue, and
 *   the first of them starts now.  Only the length of the queue in between differs. */
static void see_touch(net_servers *s, uint32_t index, unsigned how)
{
    const uint64_t now = orr__net_now(s->sim), place = orr__net_place(s->sim);
    const net_link *l = &s->links[index];
    net_touch *t = &s->touches[index];
    const uint32_t origin = orr__net_origin(s->sim);
    if (t->at != now || t->place != place) {
        *t = (net_touch){.at = now,
                         .place = place,
                         .origin = origin,
                         .is_one = origin != NET_ORIGIN_NONE,
                         .how = (uint8_t)how};
        return;
    }
    t->is_one = t->is_one && origin == t->origin;
    if (t->is_one) {
        t->how |= (uint8_t)how;
        return;
    }
    /* Had it arrived before the release, it would have been the last in a queue of this length. */
    const uint32_t before = l->is_busy ? l->waiting + 2 : 1;
    const bool fits = !(t->how & BY_RELEASE) || before <= l->max_waiting;
    const bool is_known = how == BY_SOURCE ? !(t->how & BY_LINK) && fits
                          : how == BY_LINK ? t->how == BY_RELEASE && fits
                                           : !(t->how & BY_RELEASE) && !t->has_grown;
    if (how == BY_RELEASE ||
        (t->how & BY_RELEASE)) /* which of the two starts a message is not known */
        orr__net_set_origin(s->sim, NET_ORIGIN_NONE);
    t->how |= (uint8_t)how;
    if (!is_known)
        orr__net_lose_order(s->sim);
}

static inline void touch(net_servers *s, uint32_t index, unsigned how)
{
    if (s->is_folded)
        see_touch(s, index, how);
}

/* ---- links ---- */

static void arrive(void *servers, uint64_t p);
static void become_free(void *servers, uint64_t l);

/* ---- parts of a run ---- */

void net_servers_divide(net_servers *s, orr_net *sim, const net_division *division)
{
    s->sim = sim;
    s->division = *division;
}

static void pass_on(net_servers *s, uint64_t delay, uint32_t p)
{
    const uint32_t keeper = s->division.keeper(s->net, &s->packets[p]);
    if (s->division.pass_on(s->sim, delay, &s->packets[p], keeper, arrive, p))
        drop_packet(s, p);
}

bool net_servers_take(net_servers *s,
                      const net_packet *packet,
                      void (**call)(void *context, uint64_t argument),
                      void **context,
                      uint64_t *argument)
{
    const uint32_t p = new_packet(s);
    if (p == NONE)
        return false;
    s->packets[p] = *packet;
    s->packets[p].next = NONE;
    *call = arrive;
    *context = s;
    *argument = p;
    return true;
}

void net_servers_add_figures(net_servers *s, uint32_t index, const net_link *more)
{
    net_link *l = &s->links[index];
    l->messages += more->messages;
    l->bytes += more->bytes;
    l->busy += more->busy;
    if (more->max_waiting > l->max_waiting)
        l->max_waiting = more->max_waiting;
}

/* The arrival is scheduled before the link's release: this determines ties. */
static void start(net_servers *s, uint32_t index, uint32_t p)
{
    net_link *l = &s->links[index];
    const uint64_t size = s->packets[p].m.size;
    const double serialisation = (double)size / l->speed;
    l->is_busy = true;
    l->messages++;
    l->bytes += size;
    l->busy += orr_ticks(serialisation);
    s->packets[p].at = l->to;
    if (s->division.pass_on)
        pass_on(s, orr_ticks(l->latency + serialisation), p);
    else
        orr__net_after(s->sim, orr_ticks(l->latency + serialisation), arrive, s, p);
    orr__net_after(s->sim, orr_ticks(serialisation), become_free, s, index);
}

static void wait_for(net_servers *s, uint32_t index, uint32_t p)
{
    net_link *l = &s->links[index];
    s->packets[p].next = NONE;
    if (l->last == NONE)
        l->first = p;
    else
        s->packets[l->last].next = p;
    l->last = p;
    if (++l->waiting > l->max_waiting) {
        l->max_waiting = l->waiting & INT32_MAX;
        if (s->is_folded)
            s->touches[index].has_grown = true;
    }
}

static void pass(net_servers *s, uint32_t index, uint32_t p)
{
    if (s->links[index].is_busy)
        wait_for(s, index, p);
    else
        start(s, index, p);
}

static void become_free(void *servers, uint64_t index)
{
    net_servers *s = servers;
    net_link *l = &s->links[index];
    const uint32_t p = l->first;
    touch(s, (uint32_t)index, BY_RELEASE);
    l->is_busy = false;
    if (p == NONE)
        return;
    l->first = s->packets[p].next;
    l->waiting--;
    if (l->first == NONE)
        l->last = NONE;
    start(s, (uint32_t)index, p);
}

static void arrive(void *servers, uint64_t index)
{
    net_servers *s = servers;
    const uint32_t p = (uint32_t)index;
    orr_error err;
    const uint32_t l = s->next_link(s->net, &s->packets[p], &err);
    if (l == NET_LINK_NONE) {
        orr_net_fail(s->sim, &err);
    } else if (l == NET_LINK_ARRIVED) {
        const uint64_t token = s->packets[p].m.token;
        if (s->is_folded)
            orr__net_move_origin(s->sim, s->packets[p].m.dst);
        drop_packet(s, p);
        orr_net_deliver(s->sim, token);
    } else {
        touch(s, l, BY_LINK);
        pass(s, l, p);
    }
}

orr_code net_servers_send(
    net_servers *s, orr_net *sim, const orr_message *m, uint64_t hash, orr_error *err)
{
    const uint32_t p = new_packet(s);
    if (p == NONE)
        return orr_no_memory(err);
    s->sim = sim;
    s->packets[p] = (net_packet){.m = *m, .hash = hash, .at = m->src, .next = NONE};
    orr_error why;
    /* next_link may look at it from another rank: the caller's view is restored below. */
    const uint32_t origin = s->is_folded ? orr__net_origin(sim) : 0;
    const uint32_t l = s->next_link(s->net, &s->packets[p], &why);
    if (l == NET_LINK_NONE) {
        drop_packet(s, p);
        if (err)
            *err = why;
        return why.code;
    }
    touch(s, l, BY_SOURCE);
    pass(s, l, p);
    if (s->is_folded)
        orr__net_set_origin(sim, origin);
    return ORR_OK;
}

/* ---- reducing the symmetry ---- */

static bool *find_free_packets(const net_servers *s)
{
    bool *is_free = orr_alloc(s->packet_count + 1, sizeof *is_free);
    for (uint32_t p = s->free_packet; is_free && p != NONE; p = s->packets[p].next)
        is_free[p] = true;
    return is_free;
}

static bool copy_packets(net_servers *s, const net_copier *c, net_copy_of device_of)
{
    const size_t known = s->packet_count;
    bool *is_free = find_free_packets(s);
    bool ok = is_free != NULL;
    for (uint32_t p = 0; ok && p < known; p++) {
        if (is_free[p])
            continue;
        /* A copy: new_packet may move the packets. */
        const net_packet old = s->packets[p];
        for (uint32_t k = 0; ok && k < c->copies; k++) {
            const uint32_t q = k ? new_packet(s) : p;
            if (!(ok = q != NONE))
                break;
            s->packets[q] = old;
            s->packets[q].m.dst = c->moved(c->context, k, old.m.dst);
            s->packets[q].m.token = c->token(c->context, old.m.token, old.m.dst, k);
            s->packets[q].at = device_of(s->net, c, k, old.at);
            s->packet_copies[(size_t)p * c->copies + k] = q;
        }
    }
    orr_free(is_free);
    return ok;
}

/* The k-th copy of a link and its queue. */
static void copy_link(net_servers *s, const net_copier *c, uint32_t from, uint32_t k, uint32_t to)
{
    const net_link *a = &s->links[from];
    net_link *b = &s->links[to];
    const uint32_t head = a->first;
    *b = (net_link){.speed = a->speed,
                    .latency = a->latency,
                    .messages = a->messages,
                    .bytes = a->bytes,
                    .busy = a->busy,
                    .from = b->from,
                    .to = b->to,
                    .first = NONE,
                    .last = NONE,
                    .waiting = a->waiting,
                    .max_waiting = a->max_waiting,
                    .is_busy = a->is_busy};
    s->touches[to] = s->touches[from];
    if (s->touches[to].origin != NET_ORIGIN_NONE)
        s->touches[to].origin = c->moved(c->context, k, s->touches[from].origin);
    for (uint32_t p = head; p != NONE; p = s->packets[p].next) {
        const uint32_t q = s->packet_copies[(size_t)p * s->copies + k];
        s->packets[q].next = NONE;
        *(b->last == NONE ? &b->first : &s->packets[b->last].next) = q;
        b->last = q;
    }
}

bool net_servers_multiply(net_servers *s,
                          const net_copier *c,
                          net_copy_of link_of,
                          net_copy_of device_of)
{
    const size_t links = s->link_count;
    s->copies = c->copies;
    s->link_copies = orr_alloc(links * c->copies + 1, sizeof *s->link_copies);
    s->packet_copies = orr_alloc(s->packet_count * c->copies + 1, sizeof *s->packet_copies);
    if (!s->link_copies || !s->packet_copies || !copy_packets(s, c, device_of))
        return false;
    for (uint32_t l = 0; l < links; l++)
        for (uint32_t k = 0; k < c->copies; k++) {
            const uint32_t to = k ? link_of(s->net, c, k, l) : l;
            if (to == NET_LINK_NONE)
                return false;
            s->link_copies[(size_t)l * c->copies + k] = to;
            if (to != NET_LINK_ARRIVED && k)
                copy_link(s, c, l, k, to);
        }
    return true;
}

bool net_servers_copy_call(const net_servers *s,
                           void (*call)(void *context, uint64_t argument),
                           uint32_t k,
                           uint64_t *argument)
{
    if (call == arrive)
        *argument = s->packet_copies[*argument * s->copies + k];
    else if (call == become_free)
        *argument = s->link_copies[*argument * s->copies + k];
    return call == arrive || call == become_free;
}

void net_servers_end_copies(net_servers *s)
{
    orr_free(s->link_copies);
    orr_free(s->packet_copies);
    s->link_copies = s->packet_copies = NULL;
}

void net_servers_report(const net_servers *s,
                        const uint32_t *order,
                        net_name_link name,
                        orr_net_link_visit visit,
                        void *context)
{
    for (size_t at = 0; at < s->link_count; at++) {
        const size_t i = order ? order[at] : at;
        const net_link *l = &s->links[i];
        orr_net_link out = {.messages = l->messages,
                            .bytes = l->bytes,
                            .busy_ns = l->busy,
                            .max_queue = l->max_waiting,
                            .bandwidth = l->speed};
        if (!l->messages)
            continue;
        name(s->net, (uint32_t)i, out.name);
        visit(context, &out);
    }
}
