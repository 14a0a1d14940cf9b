/* SPDX-License-Identifier: Apache-2.0 */
/* room: chakra */
/* fuzz_text.c - any bytes as a text workload, read in both ways.  What is refused must have a place
 * and words; what is taken must become traces in order, or be refused with words. */
#include "compat/chakra/chakra.h"

#include <orrery/lab/layers.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_set(const orr_set *s, const orr_layers_expand *opt)
{
    const orr_columns *c = orr_trace_columns(orr_set_trace(s, 0));
    require(orr_set_rank_count(s) == opt->ranks && orr_set_class_count(s) == 1);
    require(c->is_ascending && c->is_topological);
    require(c->data_missing + c->ctrl_missing + c->duplicate_ids == 0);
}

static void expand(const orr_layers *t, orr_layers_expand opt)
{
    orr_error err;
    orr_set *s;
    opt.ranks = 4;
    opt.passes = 2;
    const orr_code code = orr_layers_set(t, &opt, &s, &err);
    require(!code == (s != NULL));
    if (code)
        require((code == ORR_EINPUT || code == ORR_EUSAGE) && err.message[0]);
    else
        check_set(s, &opt);
    orr_set_close(s);
}

static void expand_all(const orr_layers *t, bool is_compat)
{
    static const uint32_t sizes[] = {2, 2};
    expand(t, (orr_layers_expand){.rules = is_compat ? &chakra_text_rules : NULL});
    expand(t, (orr_layers_expand){.rules = is_compat ? &chakra_text_rules : NULL, .dims = 3});
    if (is_compat)
        return;
    expand(t, (orr_layers_expand){.dims = 2, .dim_sizes = sizes, .with_updates = true});
    require(orr_layers_idle(t) <= 3 * orr_layers_count(t));
    (void)orr_layers_needs_dims(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int is_compat = 0; is_compat < 2; is_compat++) {
        const orr_layers_read_options opt = {.rules = is_compat ? &chakra_text_rules : NULL};
        orr_layers *t;
        orr_error err;
        const orr_code code = orr_layers_parse((orr_span){data, size}, "w.txt", &opt, &t, &err);
        require(!code == (t != NULL));
        if (code)
            require(code == ORR_EINPUT && err.message[0] && err.where.line && err.where.column);
        else
            expand_all(t, is_compat);
        orr_layers_free(t);
    }
    return 0;
}
