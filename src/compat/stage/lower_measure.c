/* SPDX-License-Identifier: Apache-2.0 */
/* lower_measure.c - numbers for symbols.  There are about forty different expressions in a model, each asked for
 * thousands of times, so every one is worked out once. */
#include "lower.h"

#include <math.h>

static void set(stg_measure *m, const char *name, uint64_t value)
{
    const uint32_t s = stg_symbol(&m->space->algebra, orr_str_of(name));
    m->values[s] = (int64_t)value;
    m->known |= UINT64_C(1) << s;
}

void stg_measure_init(stg_measure *m, stg_space *s, const orr_stage_options *opt)
{
    const bool is_routed = opt->model == ORR_STAGE_MOE || opt->model == ORR_STAGE_DEBUG;
    *m = (stg_measure){.space = s};
    set(m, "Dvocal", opt->dvocal);
    set(m, "Dmodel", opt->dmodel);
    set(m, "Dff", opt->dff);
    set(m, "Batch", opt->batch);
    set(m, "MicroBatch", opt->micro_batch);
    set(m, "Seq", opt->seq);
    set(m, "Head", opt->head);
    set(m, "KVHead", opt->kvhead);
    set(m, "Experts", opt->experts);
    set(m, "KExperts", opt->kexperts);
    set(m, "dp", opt->dp);
    set(m, "tp", is_routed ? opt->tp : opt->tp * opt->ep);
    set(m, "cp", opt->sp);
    set(m, "ep", opt->ep);
    set(m, "pp", opt->pp);
}

void stg_measure_fini(stg_measure *m)
{
    orr_free(m->memo);
}

static orr_code work_out(stg_measure *m, stg_expr x, double *out, orr_error *err)
{
    const stg_algebra *a = &m->space->algebra;
    const orr_str text = stg_expr_text(a, x);
    const uint64_t unknown = stg_expr_uses(a, x) & ~m->known;
    stg_ratio v;
    if (unknown) {
        const orr_str name = stg_symbol_name(a, (uint32_t)__builtin_ctzll(unknown));
        return orr_fail(err, ORR_EINPUT, NULL,
                        "symbol '%.*s' of a template has no value (in '%.*s')", (int)name.len,
                        name.ptr, (int)text.len, text.ptr);
    }
    if (!stg_expr_value(a, x, m->values, ORR__SYMBOLS_MOST, &v))
        return orr_fail(err, ORR_EINPUT, NULL, "'%.*s' is too large, or divided by zero",
                        (int)text.len, text.ptr);
    *out = stg_ratio_double(v);
    return ORR_OK;
}

orr_code stg_measure_expr(stg_measure *m, stg_expr x, double *out, orr_error *err)
{
    const size_t old = m->memo_room;
    if (x >= old) {
        if (!orr_grow(&m->memo, &m->memo_room, x + 1u))
            return orr_no_memory(err);
        for (size_t i = old; i < m->memo_room; i++)
            m->memo[i] = NAN;
    }
    *out = m->memo[x];
    if (!isnan(*out))
        return ORR_OK;
    const orr_code code = work_out(m, x, out, err);
    if (!code)
        m->memo[x] = *out;
    return code;
}

orr_code stg_measure_layout(stg_measure *m, orr__layout l, double *out, orr_error *err)
{
    const stg_expr size = stg_layout_size(m->space, l);
    const orr_code code = stg_algebra_check(&m->space->algebra, NULL, "size of a tensor", err);
    return code ? code : stg_measure_expr(m, size, out, err);
}
