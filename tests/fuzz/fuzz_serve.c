/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_serve.c - any way to serve any few requests: eight bytes are a request, sixteen before them say how.  A way that is
 * refused has words; one that is taken serves every request, and what went in comes out: tokens of prompts and of
 * answers. */
#include "fuzz_trace.h"

#include <orrery/lab/serve.h>

enum { HEAD = 16, BYTES = 8, MOST = 3 };

static const orr_model model = {.name = "small",
                                .layers = 2,
                                .hidden = 8,
                                .vocab = 40,
                                .heads = 4,
                                .kv_heads = 2,
                                .head_dim = 2,
                                .block_norms = 2,
                                .ffn = 16,
                                .experts = 4,
                                .experts_per_token = 2,
                                .expert_ffn = 4,
                                .dense_first = 1};

static uint64_t number(const uint8_t *p)
{
    static const uint64_t odd[] = {0,  1,    2,          3,         4,          7,
                                   16, 1000, UINT32_MAX, INT64_MAX, UINT64_MAX, 1ull << 40};
    return *p < 200 ? *p % 9 : odd[*p % (sizeof odd / sizeof *odd)];
}

static orr_serve_options options_of(const uint8_t *p)
{
    return (orr_serve_options){.ranks = {.tp = (uint32_t)number(p) % 3,
                                         .pp = p[1] % 3,
                                         .dp = p[1] / 4 % 3,
                                         .ep = p[1] / 16 % 3,
                                         .cp = p[1] / 64 % 2},
                               .decode = {.tp = p[2] & 1 ? 1 + p[2] / 2 % 4 : 0,
                                          .dp = p[2] & 1 ? p[2] / 8 % 4 : 0,
                                          .pp = p[2] & 1 ? p[2] / 32 % 4 : 0},
                               .phase = (orr_serve_phase)(p[3] % ORR_SERVE_PHASES),
                               .dtype = (orr_dtype)(p[3] / 4 % 3),
                               .kv_dtype = (orr_dtype)(p[3] / 16 % 3),
                               .max_batch = number(p + 4),
                               .max_tokens = number(p + 5),
                               .chunk = number(p + 6),
                               .kv_block = number(p + 7),
                               .sequence_parallel = p[8] & 1,
                               .only_figures = p[8] & 2,
                               .peak = p[9] < 128 ? 0 : number(p + 9),
                               .memory_rate = (orr_Bps)(p[10] < 128 ? 0 : number(p + 10)),
                               .link_rate = (orr_Bps)(p[11] < 128 ? 0 : number(p + 11)),
                               .transfer_rate = (orr_Bps)(p[12] < 128 ? 0 : number(p + 12)),
                               .device_bytes = p[13] < 128 ? 0 : number(p + 13),
                               .kv_bytes = p[14] < 64 ? 0 : number(p + 14) * 100};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    orr_serve_request requests[MOST];
    orr_serve_report r = {0};
    orr_error err = {0};
    orr_set *set = NULL;
    uint64_t prompts = 0, arrival = 0;
    size_t count = 0;
    if (size < HEAD + BYTES)
        return 0;
    for (; count < MOST && HEAD + (count + 1) * BYTES <= size; count++) {
        const uint8_t *p = data + HEAD + count * BYTES;
        arrival += (uint64_t)p[0] << p[1] % 24;
        requests[count] = (orr_serve_request){arrival, 1 + p[2] % 12u, 1 + p[4] % 2u};
        prompts += requests[count].prompt;
    }
    orr_serve_options o = options_of(data);
    o.requests = requests;
    o.request_count = count;
#ifdef FUZZ_ONE_WAY /* writing traces takes most of the time */
    o.no_traces = fuzz_pick(data, size, 16);
#endif
    const orr_code code = orr_serve(&model, &o, &set, &r, &err);
    REQUIRE(code != ORR_EBUG);
    if (code) {
        REQUIRE(!set && err.message[0]);
        return 0;
    }
    REQUIRE(r.requests == count);
    REQUIRE(o.phase == ORR_SERVE_DECODE ||
            r.prompt_tokens >= prompts); /* more: caches that were dropped */
    for (uint32_t i = 0; set && i < orr_set_class_count(set); i++) {
        const orr_columns *c = orr_trace_columns(orr_set_trace(set, i));
        REQUIRE(c->count && c->is_topological && c->data_missing == 0);
    }
    orr_set_close(set);
    return 0;
}
