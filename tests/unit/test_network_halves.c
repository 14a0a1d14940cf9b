/* SPDX-License-Identifier: Apache-2.0 */
/* Networks in which the receiver hears of a message at another time than the sender: the two halves
 * of delivery. */
#include "models/network/net_time.h"
#include "net_run.h"

enum { ARRIVES = 100, TOLD = 250 };

static void arrive(void *sim, uint64_t token)
{
    orr_net_deliver_receiver(sim, token);
}

static void tell(void *sim, uint64_t token)
{
    orr_net_complete_sender(sim, token);
}

static orr_code no_state(const orr_net_config *cfg, void **out, orr_error *err)
{
    (void)cfg;
    (void)err;
    *out = NULL;
    return ORR_OK;
}

static orr_code early(void *net, orr_sim *sim, const orr_message *m, orr_error *err)
{
    (void)net;
    (void)err;
    orr__net_after(sim, ARRIVES, arrive, sim, m->token);
    orr__net_after(sim, TOLD, tell, sim, m->token);
    return ORR_OK;
}

static orr_code late(void *net, orr_sim *sim, const orr_message *m, orr_error *err)
{
    (void)net;
    (void)err;
    orr__net_after(sim, TOLD, arrive, sim, m->token);
    orr__net_after(sim, ARRIVES, tell, sim, m->token);
    return ORR_OK;
}

typedef struct heard {
    orr_sim *sim;
    uint64_t at[2]; /* by side: the sender, the receiver */
    unsigned times[2];
} heard;

static void hear(void *context, uint64_t side)
{
    heard *h = context;
    h->at[side] = orr__net_now(h->sim);
    h->times[side]++;
}

/* The receive is posted at this tick. */
typedef struct post {
    net_run *run;
    heard *heard;
} post;

static void post_receive(void *context, uint64_t unused)
{
    const post *p = context;
    (void)unused;
    msg_recv(&p->run->npus[1], 5, 0, 1000, (clk_call){hear, p->heard, 1});
}

static void check_halves(const orr_net_ops *ops,
                         uint64_t posted_at,
                         uint64_t sent_at,
                         uint64_t got_at)
{
    static net_run r;
    const orr_net_config none = {0};
    heard h = {0};
    post p = {&r, &h};
    net_run_open(&r, ops, &none, 2);
    h.sim = &r.sim;
    msg_send(&r.npus[0], 5, 1, 1000, (clk_call){hear, &h, 0});
    orr__net_after(&r.sim, posted_at, post_receive, &p, 0);
    while (clk_step(r.sim.clock))
        ;
    CHECK(h.times[0] == 1 && h.times[1] == 1);
    CHECK_EQ_U(h.at[0], sent_at);
    CHECK_EQ_U(h.at[1], got_at);
    msg_destroy(r.sim.matcher);
    clk_destroy(r.sim.clock);
}

TEST(test_network_halves__each_side_hears_in_its_time)
{
    const orr_net_ops first = {.name = "early", .create = no_state, .send = early};
    const orr_net_ops last = {.name = "late", .create = no_state, .send = late};
    check_halves(&first, 0, TOLD, ARRIVES);
    check_halves(&first, 150, TOLD, 150); /* posted between the two */
    check_halves(&first, 900, TOLD, 900); /* and after both */
    check_halves(&last, 0, ARRIVES, TOLD);
    check_halves(&last, 150, ARRIVES, TOLD);
    check_halves(&last, 900, ARRIVES, 900);
}

int main(void)
{
    const CMUnitTest tests[] = {RUN(test_network_halves__each_side_hears_in_its_time)};
    return RUN_ALL(tests);
}
