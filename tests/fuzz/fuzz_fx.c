/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_fx.c - any bytes as a captured step, or as a printed graph of four ranks.  What is refused
 * must have a place and words; what is taken must be traces whose dependencies all point back, and
 * whose memory adds up. */
#include <orrery/lab/fx.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_set(const orr_set *s, const orr_fx_report *r)
{
    require(orr_set_rank_count(s) == r->world_size && orr_set_class_count(s) >= 1);
    for (uint32_t i = 0; i < orr_set_class_count(s); i++) {
        const orr_columns *c = orr_trace_columns(orr_set_trace(s, i));
        require(c->is_ascending && c->is_topological);
        require(c->data_missing + c->ctrl_missing + c->duplicate_ids == 0);
    }
    uint64_t ranks = 0;
    for (size_t i = 0; i < r->rank_count; i++) {
        const orr_fx_memory *m = &r->ranks[i].memory;
        require(m->peak ==
                m->parameters + m->buffers + m->gradients + m->optimizer + m->activations);
        require(m->peak <= INT64_MAX);
        ranks += r->ranks[i].ranks_like_it;
    }
    require(ranks == r->world_size);
}

static void convert(const orr_fx *c)
{
    const orr_fx_options opt = {
        .peak_flops = 1e15, .memory_rate = 1000000000000, .overhead = 1000000};
    orr_fx_report report;
    orr_error err;
    orr_set *s;
    const orr_code code = orr_fx_convert(c, &opt, &s, &report, &err);
    require(!code == (s != NULL));
    if (code) {
        require(code == ORR_EINPUT && err.message[0] && err.where.path[0]);
        return;
    }
    check_set(s, &report);
    orr_fx_report_fini(&report);
    orr_set_close(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (uint32_t world_size = 0; world_size <= 4; world_size += 4) {
        orr_fx *c;
        orr_error err;
        const orr_code code =
            orr_fx_parse((orr_span){data, size}, "step.json", world_size, &c, &err);
        require(!code == (c != NULL));
        if (code)
            require(code == ORR_EINPUT && err.message[0] && err.where.line && err.where.column);
        else
            convert(c);
        orr_fx_close(c);
    }
    return 0;
}
