/* SPDX-License-Identifier: Apache-2.0 */
/* link_servers.c - links as first-come-first-served servers, and packets that pass them
 * (astra-sim.md 8.2).
 *
 * A packet crosses a link in two events: its arrival at the other end, and the link's release.
 * Packets that wait form a list through the pool of packets, so a hop allocates nothing below the
 * high-water mark. Cost: O(1) a hop, plus the model's choice of the next link. */
#include "link_servers.h"
#include "net_time.h"

#include "base/ticks.h"

#define NONE UINT32_MAX

void net_servers_init(net_servers *s, net_next_link next_link, void *net)
{
    *s = (net_servers){.next_link = next_link, .net = net, .free_packet = NONE};
}

void net_servers_fini(net_servers *s)
{
    orr_free(s->links);
    orr_free(s->packets);
}

bool net_servers_add(net_servers *s, const net_link *like, uint32_t *index_out)
{
    if (s->link_count >= NET_LINK_ARRIVED || !orr_grow(&s->links, &s->link_room, s->link_count + 1))
        return false;
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

/* ---- links ---- */

static void arrive(void *servers, uint64_t p);
static void become_free(void *servers, uint64_t l);

/* The arrival is scheduled before the link's release: ties depend on it. */
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
    if (++l->waiting > l->max_waiting)
        l->max_waiting = l->waiting & INT32_MAX;
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
        drop_packet(s, p);
        orr_net_deliver(s->sim, token);
    } else {
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
    const uint32_t l = s->next_link(s->net, &s->packets[p], &why);
    if (l == NET_LINK_NONE) {
        drop_packet(s, p);
        if (err)
            *err = why;
        return why.code;
    }
    pass(s, l, p);
    return ORR_OK;
}

void net_servers_report(const net_servers *s,
                        net_name_link name,
                        orr_net_link_visit visit,
                        void *context)
{
    for (size_t i = 0; i < s->link_count; i++) {
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
