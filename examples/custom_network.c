/* SPDX-License-Identifier: Apache-2.0 */
/* custom_network.c - a custom network model: every rank has one NIC that sends one message at a
 * time, at 100 bytes per ns, and each message takes 500 ns more to arrive.
 *
 *     cc custom_network.c $(pkg-config --cflags --libs orrery) */
#include <orrery/lab/lab.h>
#include <orrery/orrery.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { RANKS = 8, LATENCY_PS = 500000, PS_PER_BYTE = 10, SIZE = 1000000 };

/* ---- the model ---- */

typedef struct card {
    orr_ps free_at, busy;
    uint64_t messages, bytes;
} card;

typedef struct cards {
    uint32_t count;
    card of[];
} cards;

static orr_code cards_create(const orr_net_config *cfg, void **out, orr_error *err)
{
    uint32_t ranks = 1;
    for (uint32_t k = 0; k < cfg->dims; k++)
        ranks *= cfg->npus[k];
    cards *c = calloc(1, sizeof *c + ranks * sizeof *c->of);
    *out = c;
    if (!c)
        return orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
    c->count = ranks;
    return ORR_OK;
}

static orr_code cards_send(void *net, orr_net *n, const orr_message *m, orr_error *err)
{
    cards *net_cards = net;
    card *c = &net_cards->of[m->src];
    const orr_ps now = orr_net_now(n), start = c->free_at > now ? c->free_at : now;
    const orr_ps wire = (orr_ps)m->size * PS_PER_BYTE;
    (void)err;
    c->free_at = start + wire;
    c->messages++;
    c->bytes += m->size;
    c->busy += wire;
    orr_net_deliver_after(n, c->free_at + LATENCY_PS - now, m->token);
    return ORR_OK;
}

static void cards_report(const void *net, orr_net_link_visit visit, void *context)
{
    const cards *c = net;
    for (uint32_t i = 0; i < c->count; i++) {
        orr_net_link link = {.messages = c->of[i].messages,
                             .bytes = c->of[i].bytes,
                             .busy_ns = (uint64_t)c->of[i].busy / 1000};
        snprintf(link.name, sizeof link.name, "card of %u", i);
        if (link.messages)
            visit(context, &link);
    }
}

static const orr_net_ops cards_ops = {
    .name = "cards",
    .help = "one card per rank, one message at a time",
    .create = cards_create,
    .send = cards_send,
    .destroy = free,
    .report = cards_report,
};

/* ---- a job for it ---- */

static int fail(const orr_error *err)
{
    char text[600];
    fprintf(stderr, "%s\n", orr_error_text(err, text, sizeof text));
    return 3;
}

int main(void)
{
    orr_error err;
    orr_set *set;
    orr_run *run;
    const orr_pattern *ring = orr_pattern_find("send_recv_ring");
    orr_gen_options gen = ring->defaults;
    gen.ranks = RANKS;
    gen.comm_size = SIZE;
    if (orr_pattern_set(ring, &gen, &set, &err))
        return fail(&err);
    /* Without system and topology: the default system, and as many ranks as there are traces. */
    const orr_run_config config = {.size = sizeof config, .set = set, .own_network = &cards_ops};
    if (orr_run_create(&config, &run, &err) || orr_run_to_end(run, &err) ||
        orr_run_write(run, "text", "-", &err))
        return fail(&err);
    const orr_ps end = orr_run_rank_at(run, 0)->finished_at;
    const orr_ps expected = (orr_ps)SIZE * PS_PER_BYTE + LATENCY_PS;
    printf("rank 0 finished after %" PRId64 " ps, expected %" PRId64 "\n", end, expected);
    orr_run_destroy(run);
    orr_set_close(set);
    return end == expected ? 0 : 1;
}
