/* SPDX-License-Identifier: Apache-2.0 */
/* match_names.c - which operators count as the same.
 *
 * A capture without a GPU dispatches what a CPU would, so a few names differ though the work is the same: attention has a
 * kernel for each device, gradients are added in place or not, fresh memory is zeroed by one of several names. */
#include "match_impl.h"

#include "base/memory/buffer.h"
#include "base/text/text.h"
#include "models/compute/operators/operator_table.h"

static const struct {
    const char *name, *counts_as;
} same[] = {
    {"_to_copy", "copy"},
    {"clone", "copy"},
    {"contiguous", "copy"},
    {"full", "fill"},
    {"full_like", "fill"},
    {"new_full", "fill"},
    {"new_ones", "fill"},
    {"new_zeros", "fill"},
    {"ones", "fill"},
    {"ones_like", "fill"},
    {"zero", "fill"},
    {"zeros", "fill"},
    {"zeros_like", "fill"},
    {"_unsafe_view", "view"},
    {"_reshape_alias", "view"},
    {"_log_softmax", "log_softmax"},
    {"_softmax", "softmax"},
    {"_fused_rms_norm", "rms_norm"},
    {"_fused_rms_norm_backward", "rms_norm_backward"},
};

static const char attention[] = "scaled_dot_product_attention";
static const char attention_backward[] = "scaled_dot_product_attention_backward";

/* Every kernel of attention has a rule of its kind; NULL: it is none. */
static const char *attention_name(const operator_row *row)
{
    switch (row ? (operator_rule)row->rule : RULE_FREE) {
    case RULE_ATTENTION:
    case RULE_ATTENTION_ROWS:
        return attention;
    case RULE_ATTENTION_BACKWARD:
    case RULE_ATTENTION_ROWS_BACKWARD:
        return attention_backward;
    default:
        return NULL;
    }
}

static orr_str plain_name(orr_str text)
{
    const operator_name name = orr__operator_name(text);
    const operator_row *row = orr__operator_row(&name);
    if (!orr_str_is(name.space, "aten"))
        return text;
    if (attention_name(row))
        return orr_str_of(attention_name(row));
    const orr_str base = {name.base.ptr, name.base.len - (name.is_in_place ? 1 : 0)};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        if (orr_str_is(base, same[i].name))
            return orr_str_of(same[i].counts_as);
    }
    return base;
}

bool match_name(match *m, orr_str op, uint32_t *number)
{
    const uint32_t before = orr_intern_count(m->names);
    if (!orr_intern_add(m->names, plain_name(op), number))
        return false;
    if (*number != before)
        return true;
    if (!orr_grow(&m->flags, &m->flag_room, (size_t)before + 1))
        return false;
    m->flags[before] = 0;
    return true;
}

bool match_single(match *m, uint32_t name, uint32_t *number)
{
    const orr_str text = orr_intern_get(m->names, name);
    const size_t mark = strlen("_foreach_");
    *number = MATCH_NONE;
    if (text.len <= mark || memcmp(text.ptr, "_foreach_", mark) != 0)
        return true;
    /* The table of texts may move while a new one is added. */
    char copy[128];
    if (text.len - mark >= sizeof copy)
        return true;
    memcpy(copy, text.ptr + mark, text.len - mark);
    return match_name(m, (orr_str){copy, text.len - mark}, number);
}

/* ---- shapes ---- */

enum { LIST_MOST = 8 };

/* Tensors that tell calls apart: of attention queries, keys and values, since what else there is (sums of exponentials, seeds)
 * differs from kernel to kernel.  Long lists are not recorded. */
static uint32_t told_apart_by(const operator_call *call)
{
    const operator_name name = orr__operator_name(call->name);
    const operator_row *row = orr__operator_row(&name);
    const char *kernel = attention_name(row);
    if (kernel)
        return kernel == attention ? 3 : 4;
    if (name.is_list || (row && row->rule == RULE_OPTIMIZER))
        return 0;
    return row && row->rule == RULE_MOVE && call->in_count > LIST_MOST ? 0 : UINT32_MAX;
}

bool match_shapes(match *m, const operator_call *call, uint32_t *number)
{
    const uint32_t most = told_apart_by(call);
    orr_buf text = {0};
    bool ok;
    for (uint32_t i = 0; i < call->in_count && i < most; i++) {
        const operator_tensor *t = &call->in[i];
        if (t->rank && text.len)
            orr_buf_byte(&text, '|');
        for (uint32_t k = 0; k < t->rank; k++) {
            if (k)
                orr_buf_byte(&text, 'x');
            orr_buf_u64(&text, t->shape[k]);
        }
    }
    ok = !text.failed &&
         orr_intern_add(m->shapes, (orr_str){text.len ? (const char *)text.ptr : "", text.len},
                        number);
    orr_buf_fini(&text);
    return ok;
}
