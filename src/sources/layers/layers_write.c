/* SPDX-License-Identifier: Apache-2.0 */
/* layers_write.c - a table of layers as text: policy, count, a line a layer (docs/format/text.md).
 *
 * The old generator's three peculiarities are a matter of style: no end of the last line, the strategy behind every row
 * and not only where readers expect it, and, with its second back end, a blank in front of each time. */
#include "layers_impl.h"

#include "base/io/output.h"

#include <inttypes.h>

enum { SHOWN = 60 };

static bool is_one_word(orr_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        const unsigned char c = (unsigned char)s.ptr[i];
        if (c <= ' ' || c == 0x7F)
            return false;
    }
    return s.len > 0;
}

/* Words are parted by white space: one that has some in it, or is empty, could not be read again. */
static orr_code check_words(const orr_layers *t, orr_error *err)
{
    for (size_t i = 0; i < t->count; i++) {
        const orr_layer *l = &t->layers[i];
        const orr_str words[] = {
            l->name,       l->reserved, l->forward.comm, l->input_grad.comm, l->weight_grad.comm,
            l->update_time};
        for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
            if (!is_one_word(words[k]))
                return orr_fail(err, ORR_EUSAGE, NULL,
                                "layer %zu: \"%.*s\" is not one word, and could not be read again",
                                i, (int)(words[k].len < SHOWN ? words[k].len : SHOWN),
                                words[k].ptr);
        }
    }
    return ORR_OK;
}

static void put_list(orr_buf *b, const char *label, const uint32_t *list, size_t count)
{
    orr_buf_print(b, " %s %zu", label, count);
    for (size_t i = 0; i < count; i++)
        orr_buf_print(b, " %" PRIu32, list[i]);
}

static void put_policy(const orr_layers *t, orr_buf *b)
{
    const orr_policy_args *a = &t->args;
    orr_buf_text(b, orr_policy_name(t->policy));
    switch (t->policy) {
    case ORR_POLICY_HYBRID_DLRM:
    case ORR_POLICY_HYBRID_DLRM_ENHANCED:
        orr_buf_print(b, " %" PRId64, a->last_bottom);
        break;
    case ORR_POLICY_HYBRID_TRANSFORMER:
        orr_buf_print(b, " model_parallel_NPU_group: %" PRIu32, a->model_group);
        break;
    case ORR_POLICY_HYBRID_TRANSFORMER_FWD_IN_BCKWD:
        orr_buf_print(b, " model_parallel_NPU_group: %" PRIu32, a->model_group);
        put_list(b, "checkpoints:", a->checkpoints, a->checkpoint_count);
        put_list(b, "checkpoint_initiates:", a->initiates, a->initiate_count);
        break;
    default:
        break;
    }
}

static void put_word(orr_buf *b, orr_str s)
{
    orr_buf_add(b, s.ptr, s.len);
    orr_buf_byte(b, '\t');
}

static void put_pass(orr_buf *b, const orr_layer_pass *p, orr_layers_style style)
{
    if (style == ORR_LAYERS_GENERATOR_V2)
        orr_buf_byte(b, ' ');
    orr_buf_u64(b, p->time);
    orr_buf_byte(b, '\t');
    put_word(b, p->comm);
    orr_buf_u64(b, p->bytes);
    orr_buf_byte(b, '\t');
}

static void put_layer(const orr_layers *t, const orr_layer *l, orr_layers_style style, orr_buf *b)
{
    const bool has_policy = t->policy == ORR_POLICY_HYBRID_CUSTOMIZED || style != ORR_LAYERS_PLAIN;
    put_word(b, l->name);
    put_word(b, l->reserved);
    put_pass(b, &l->forward, style);
    put_pass(b, &l->input_grad, style);
    put_pass(b, &l->weight_grad, style);
    orr_buf_add(b, l->update_time.ptr, l->update_time.len);
    if (has_policy)
        orr_buf_print(b, "\t%s", orr_policy_name(l->policy));
}

orr_code orr_layers_write(const orr_layers *t,
                          const char *path,
                          orr_layers_style style,
                          orr_error *err)
{
    orr_buf b = {0};
    orr_output *out = NULL;
    orr_code code = style == ORR_LAYERS_PLAIN ? check_words(t, err) : ORR_OK;
    if (code)
        return code;
    put_policy(t, &b);
    orr_buf_print(&b, "\n%zu", t->count);
    for (size_t i = 0; i < t->count; i++) {
        orr_buf_byte(&b, '\n');
        put_layer(t, &t->layers[i], style, &b);
    }
    if (style == ORR_LAYERS_PLAIN)
        orr_buf_byte(&b, '\n');
    if (b.failed)
        code = orr_no_memory(err);
    if (!code)
        code = orr_output_open(path, &out, err);
    if (!code) {
        orr_output_drain(out, &b);
        code = orr_output_commit(&out, err);
    }
    orr_buf_fini(&b);
    return code;
}
