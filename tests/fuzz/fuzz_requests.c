/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_requests.c - any bytes as a list of requests.  What is refused must have a place and words;
 * what is taken is in order, and a small model serves it, shortened, in a way that the bytes
 * decide. */
#include <orrery/lab/serve.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SERVED = 3 };

static void require(bool condition)
{
    if (!condition)
        abort();
}

static const orr_model model = {.name = "small",
                                .layers = 3,
                                .hidden = 8,
                                .vocab = 40,
                                .heads = 4,
                                .kv_heads = 2,
                                .head_dim = 2,
                                .block_norms = 2,
                                .window = 5,
                                .global_every = 2,
                                .ffn = 16,
                                .experts = 4,
                                .experts_per_token = 2,
                                .expert_ffn = 4,
                                .dense_first = 1};

static orr_serve_options options_of(uint64_t bits)
{
    return (orr_serve_options){.ranks = {.tp = 1u << (bits & 1),
                                         .pp = 1 + (bits >> 1 & 1),
                                         .dp = 1 + (bits >> 2 & 1),
                                         .ep = 1u << (bits >> 3 & 1)},
                               .decode = {.tp = bits >> 4 & 1 ? 1u << (bits >> 5 & 1) : 0,
                                          .dp = bits >> 4 & 1 ? 1 + (bits >> 6 & 1) : 0},
                               .max_batch = bits >> 7 & 3,
                               .max_tokens = (bits >> 9 & 3) * 7,
                               .chunk = (bits >> 11 & 3) * 5,
                               .kv_block = bits >> 13 & 7,
                               .kv_bytes = (bits >> 16 & 7) * 1000,
                               .memory_rate = (bits >> 19 & 1) * 1000000000};
}

static void check_set(const orr_set *s)
{
    for (uint32_t i = 0; i < orr_set_class_count(s); i++) {
        const orr_columns *c = orr_trace_columns(orr_set_trace(s, i));
        require(c->count > 0 && c->is_ascending && c->is_topological && c->data_missing == 0);
    }
}

static void serve(orr_serve_request *q, size_t count)
{
    orr_serve_report r;
    orr_error err;
    orr_set *s;
    uint64_t bits = 0;
    count = count < SERVED ? count : SERVED;
    for (size_t i = 0; i < count; i++) {
        bits = bits * 31 + q[i].prompt + q[i].output * 7 + q[i].arrival_us * 13;
        q[i].prompt = 1 + q[i].prompt % 12;
        q[i].output = 1 + q[i].output % 3;
    }
    orr_serve_options o = options_of(bits);
    o.requests = q;
    o.request_count = count;
    const orr_code code = orr_serve(&model, &o, &s, &r, &err);
    require(!code == (s != NULL));
    if (code) {
        require(code == ORR_EUSAGE && err.message[0]);
        return;
    }
    require(r.requests == count && r.time > 0);
    check_set(s);
    orr_set_close(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    orr_serve_request *q;
    size_t count;
    orr_error err;
    const orr_code code = orr_requests_parse((orr_span){data, size}, "q.csv", &q, &count, &err);
    require(!code == (q != NULL));
    if (code) {
        require(code == ORR_EINPUT && err.message[0] && err.where.line);
        return 0;
    }
    require(count > 0);
    for (size_t i = 0; i < count; i++)
        require(q[i].prompt && q[i].output && (i == 0 || q[i - 1].arrival_us <= q[i].arrival_us));
    serve(q, count);
    orr_requests_free(q);
    return 0;
}
