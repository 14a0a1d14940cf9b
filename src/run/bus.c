/* SPDX-License-Identifier: Apache-2.0 */
/* bus.c - the shared-bus model of a rank's endpoint (astra-sim.md 5.9).
 *
 *     NPU port <===== outer bus (L, o, g, G) =====> MA port
 *        |
 *     inner NPU port <== inner bus (G = 0.0038) ==> inner MA port
 *
 * A port sends one request at a time to its partner, LogGP style; a request may be processed there
 * (a reduction), sent back, and is finally delivered.  Whatever enters or leaves the NPU port first
 * crosses the inner bus. */
#include "run_state.h"

#include "base/arithmetic.h"

enum { FAIR_RUN = 8 };
static const double inner_gap = 0.0038;

typedef enum port_state { IDLE, SENDING, RECEIVING } port_state;

typedef struct bus_request {
    /* signed and 32 bits, as in the reference: larger sizes wrap there too (astra-sim.md 5.9) */
    int32_t size;
    bool is_processed, sends_back; /* still to be reduced; still to be returned */
    clk_call then;                 /* when it is delivered */
    struct bus_request *next;
} bus_request;

typedef struct request_queue {
    bus_request *first, *last;
} request_queue;

typedef struct port {
    run_npu *npu;
    struct port *partner, *inner_npu, *inner_ma; /* inner: of the NPU port only */
    double gap_per_byte;                         /* ticks */
    request_queue sends, received, processing;   /* to be sent; being received; to be reduced */
    port_state state, previous;                  /* previous decides whether g applies */
    uint64_t last;       /* tick: when the last transfer of this port ended */
    uint32_t run_length; /* consecutive sends since it last received */
    bool is_processing;
} port;

struct sys_bus {
    port npu_port, ma_port, inner_npu_port, inner_ma_port;
    bus_request *free_requests;
};

static void set_up(port *p, run_npu *n, port *partner, double gap)
{
    *p = (port){.npu = n, .partner = partner, .gap_per_byte = gap};
}

sys_bus *sys_bus_create(run_npu *n)
{
    sys_bus *b = orr_arena_new(n->sim->arena, 1, sys_bus);
    if (!b)
        return NULL;
    const double gap = (double)n->sim->system.bus_G;
    set_up(&b->npu_port, n, &b->ma_port, gap);
    set_up(&b->ma_port, n, &b->npu_port, gap);
    set_up(&b->inner_npu_port, n, &b->inner_ma_port, inner_gap);
    set_up(&b->inner_ma_port, n, &b->inner_npu_port, inner_gap);
    b->npu_port.inner_npu = &b->inner_npu_port;
    b->npu_port.inner_ma = &b->inner_ma_port;
    return b;
}

static void push(request_queue *q, bus_request *r)
{
    r->next = NULL;
    if (q->last)
        q->last->next = r;
    else
        q->first = r;
    q->last = r;
}

static bus_request *pop(request_queue *q)
{
    bus_request *r = q->first;
    q->first = r->next;
    if (!q->first)
        q->last = NULL;
    return r;
}

static bus_request *new_request(
    run_npu *n, int32_t size, bool is_processed, bool sends_back, clk_call then)
{
    bus_request *r = n->bus->free_requests;
    if (r)
        n->bus->free_requests = r->next;
    else
        r = orr_arena_new(n->sim->arena, 1, bus_request);
    if (!r) {
        run_no_memory(n->sim);
        return NULL;
    }
    *r = (bus_request){
        .size = size, .is_processed = is_processed, .sends_back = sends_back, .then = then};
    return r;
}

static void start_if_idle(port *p);
static void receive_ends(void *port_of, uint64_t unused);
static void send_ends(void *port_of, uint64_t unused);

/* Crosses the inner bus, then calls `action(p, r)`. */
static void cross(port *p, port *at, bus_request *r, bool sends_back, clk_action action);

static void append_send(void *port_of, uint64_t request)
{
    port *p = port_of;
    push(&p->sends, (bus_request *)(uintptr_t)request);
    start_if_idle(p);
}

static void enter(port *p, bus_request *r)
{
    if (p->inner_ma)
        cross(p, p->inner_ma, r, false, append_send);
    else
        append_send(p, (uint64_t)(uintptr_t)r);
}

static void cross(port *p, port *at, bus_request *r, bool sends_back, clk_action action)
{
    bus_request *inner = new_request(p->npu, r->size, false, sends_back,
                                     (clk_call){action, p, (uint64_t)(uintptr_t)r});
    if (inner)
        enter(at, inner);
}

static void start_transfer(port *p)
{
    const cfg_system *c = &p->npu->sim->system;
    const int64_t since = (int64_t)(clk_now(p->npu->sim->clock) - p->last);
    int64_t offset = c->bus_o;
    /* Consecutive sends are at least g apart; after anything else only o applies. */
    if (p->previous == SENDING && !(c->bus_o + since > c->bus_g))
        offset = c->bus_g - since;
    bus_request *r = pop(&p->sends);
    port *partner = p->partner;
    push(&partner->received, r);
    partner->previous = partner->state;
    partner->state = RECEIVING;
    partner->run_length = 0;
    /* LogGP: k bytes take o + (k - 1) G + L + o, of which the sender is busy for the first two
     * terms. */
    const double transfer = (double)(r->size - 1) * p->gap_per_byte;
    run_npu_timer(p->npu,
                  orr_ticks((double)offset + transfer + (double)c->bus_L + (double)c->bus_o),
                  receive_ends, partner, 0);
    p->state = SENDING;
    run_npu_timer(p->npu, orr_ticks((double)offset + transfer), send_ends, p, 0);
}

/* Fairness: after more than eight consecutive sends the partner may go first. */
static void start_if_idle(port *p)
{
    if (p->state != IDLE || !p->sends.first)
        return;
    if (p->run_length > FAIR_RUN && p->partner->sends.first && p->partner->run_length <= FAIR_RUN)
        /* It ends there: the partner's own run is not that long. */
        start_if_idle(p->partner);
    else
        start_transfer(p);
}

static void send_ends(void *port_of, uint64_t unused)
{
    port *p = port_of;
    (void)unused;
    p->last = clk_now(p->npu->sim->clock);
    p->previous = p->state;
    p->state = IDLE;
    p->run_length++;
    start_if_idle(p);
}

/* The request is finished: it may be reused, even by its own continuation. */
static void retire(const port *p, bus_request *r)
{
    const clk_call then = r->then;
    r->next = p->npu->bus->free_requests;
    p->npu->bus->free_requests = r;
    clk_call_now(then);
}

static void deliver(void *port_of, uint64_t request)
{
    port *p = port_of;
    retire(p, (bus_request *)(uintptr_t)request);
    start_if_idle(p);
}

static void send_back_or_retire(port *p, bus_request *r)
{
    if (r->sends_back) {
        r->sends_back = false;
        if (p->inner_npu)
            cross(p, p->inner_npu, r, true, append_send);
        else
            push(&p->sends, r);
    } else if (p->inner_npu) {
        cross(p, p->inner_npu, r, false, deliver);
    } else {
        retire(p, r);
    }
}

static void start_processor(port *p);

static void processing_ends(void *port_of, uint64_t unused)
{
    port *p = port_of;
    (void)unused;
    p->is_processing = false;
    send_back_or_retire(p, pop(&p->processing));
    start_processor(p);
    start_if_idle(p);
}

static void start_processor(port *p)
{
    if (!p->processing.first || p->is_processing)
        return;
    p->is_processing = true;
    /* As in the reference: a fixed part, and a delay per 100 bytes in integer arithmetic. */
    const int64_t time = p->processing.first->size / 100 * p->npu->sim->system.reduction_delay + 50;
    run_npu_timer(p->npu, (uint64_t)time, processing_ends, p, 0);
}

static void queue_processing(void *port_of, uint64_t request)
{
    port *p = port_of;
    push(&p->processing, (bus_request *)(uintptr_t)request);
    start_processor(p);
    start_if_idle(p);
}

static void receive_ends(void *port_of, uint64_t unused)
{
    port *p = port_of;
    (void)unused;
    p->last = clk_now(p->npu->sim->clock);
    p->previous = p->state;
    /* Another transfer may already be in flight: the port is idle only if this was the last. */
    if (p->received.first == p->received.last)
        p->state = IDLE;
    bus_request *r = pop(&p->received);
    if (!r->is_processed) {
        send_back_or_retire(p, r);
    } else {
        r->is_processed = false;
        if (p->inner_npu)
            cross(p, p->inner_npu, r, true, queue_processing);
        else
            queue_processing(p, (uint64_t)(uintptr_t)r);
    }
    start_if_idle(p);
}

void sys_bus_request(
    sys_bus *b, bool from_npu, uint64_t size, bool is_processed, bool sends_back, clk_call then)
{
    port *p = from_npu ? &b->npu_port : &b->ma_port;
    bus_request *r = new_request(p->npu, (int32_t)size, is_processed, sends_back, then);
    if (r)
        enter(p, r);
}
