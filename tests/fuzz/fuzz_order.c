/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_order.c - any bytes as an order of pipeline passes; the first says how many chunks and micro-batches there are.
 * What is refused has a place and words; what is taken makes traces whose messages all have a partner. */
#include <orrery/lab/llm.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static const orr_model model = {.name = "small",
                                .layers = 12,
                                .hidden = 8,
                                .vocab = 40,
                                .heads = 4,
                                .kv_heads = 2,
                                .head_dim = 2,
                                .block_norms = 2,
                                .is_tied = true,
                                .ffn = 16};

/* Every message that is sent is received, once. */
static void check_messages(const orr_set *s)
{
    uint64_t sent = 0, received = 0;
    for (uint32_t i = 0; i < orr_set_class_count(s); i++) {
        const orr_columns *c = orr_trace_columns(orr_set_trace(s, i));
        require(c->count > 0 && c->is_ascending && c->is_topological && c->data_missing == 0);
        for (size_t n = 0; n < c->count; n++) {
            sent += c->type[n] == ORR_NODE_COMM_SEND;
            received += c->type[n] == ORR_NODE_COMM_RECV;
        }
    }
    require(sent == received);
}

static void make(orr_pipeline_order *order, uint8_t bits)
{
    for (uint32_t pp = 1; pp <= 3; pp++) {
        const orr_llm_options o = {.pp = pp,
                                   .chunks = 1 + (bits & 3),
                                   .batch = 1 + (bits >> 2 & 3),
                                   .seq = 4,
                                   .pipeline = ORR_PIPELINE_OWN,
                                   .order = order};
        orr_error err;
        orr_set *s = NULL;
        const orr_code code = orr_llm_training(&model, &o, &s, &err);
        require(!code == (s != NULL));
        if (code) {
            require((code == ORR_EUSAGE || code == ORR_EINPUT) && err.message[0]);
            continue;
        }
        check_messages(s);
        orr_set_close(s);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    orr_pipeline_order *order;
    orr_error err;
    if (size == 0)
        return 0;
    const orr_code code =
        orr_pipeline_order_parse((orr_span){data + 1, size - 1}, "order.txt", &order, &err);
    require(!code == (order != NULL));
    if (code) {
        require(code == ORR_EINPUT && err.message[0] && err.where.line);
        return 0;
    }
    make(order, data[0]);
    orr_pipeline_order_close(order);
    return 0;
}
