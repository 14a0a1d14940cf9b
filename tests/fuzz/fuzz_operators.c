/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_operators.c - any bytes as measured operators: a table, a host trace, a trace of the
 * profiler.  What is refused must have a place and words; of what is taken no more can match than
 * was measured. */
#include "../unit/captured_step.h"

#include <orrery/lab/operators.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_sums(const orr_operators *o)
{
    require(o->matched <= o->calls[0] && o->matched <= o->calls[1] && o->alike <= o->matched);
    require(o->flops_matched <= o->flops[1] && o->time_matched <= o->time);
    for (size_t i = 0; i < o->row_count; i++)
        require(o->rows[i].alike <= o->rows[i].matched);
    for (size_t i = 0; i < o->gap_count; i++)
        require(o->gaps[i].why && o->gaps[i].calls[0] != o->gaps[i].calls[1]);
}

static void check_words(const orr_operators *o)
{
    const orr_operators_style style = {
        .program = "fuzz", .captured = "a", .measured = "b", .most = 5};
    orr_error err;
    orr_str text;
    require(!orr_operators_text(o, &style, &text, &err) && text.len);
    require(!orr_operators_json(o, &style, &text, &err) && text.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    orr_fx *capture;
    orr_operators *o;
    orr_error err;
    require(!orr_fx_parse((orr_span){(const uint8_t *)step, sizeof step - 1}, "step.json", 0,
                          &capture, &err));
    const orr_code code = orr_operators_compare_bytes(capture, (orr_span){data, size}, "measured",
                                                      orr_chip_find("h200"), NULL, &o, &err);
    require(!code == (o != NULL));
    if (code) {
        require(code == ORR_EINPUT && err.message[0] && err.where.line && err.where.column);
    } else {
        check_sums(o);
        check_words(o);
    }
    orr_operators_free(o);
    orr_fx_close(capture);
    return 0;
}
