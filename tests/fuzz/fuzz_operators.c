/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_operators.c - any bytes as measured operators: a table, a host trace, a trace of the profiler.  What is refused must have
 * a place and words; of what is taken no more can match than was measured. */
#include <orrery/operators.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TENSOR(shape, stride)                                       \
    "{\"shape\":" shape ",\"dtype\":\"float32\",\"stride\":" stride \
    ",\"offset\":0,\"storage\":0,\"device\":\"cpu\"}"

static const char step[] =
    "{\"format\":\"orrery-capture\",\"version\":1,\"torch\":\"2.11.0\",\"world_size\":1,\"step\":0,"
    "\"groups\":[{\"ranks\":[0],\"what\":\"world\",\"family\":0}],\"notes\":[],\"graphs\":[{\"rank\":0,"
    "\"ops\":[\"aten.mm.default\",\"aten.add_.Tensor\",\"aten.view.default\","
    "\"aten._scaled_dot_product_flash_attention_for_cpu.default\"],\"modules\":[],\"lines\":[],"
    "\"storages\":[512],\"kept\":[],\"tensors\":[" TENSOR("[4,8]", "[8,1]") "," TENSOR("[8,6]", "[6,1]") "," TENSOR(
        "[2,2,4,8]",
        "[64,32,8,1]") "],\"nodes\":["
                       "{\"op\":0,\"phase\":\"forward\",\"in\":[0,1],\"out\":[0]},"
                       "{\"op\":1,\"phase\":\"forward\",\"in\":[0,0],\"out\":[0],\"writes\":[0]},"
                       "{\"op\":2,\"phase\":\"forward\",\"in\":[0],\"out\":[0],\"view\":1},"
                       "{\"op\":3,\"phase\":\"forward\",\"in\":[2,2,2],\"out\":[2],\"args\":{\"is_causal\":true}}]}]}";

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
                                                      orr_hardware_find("h200"), &o, &err);
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
