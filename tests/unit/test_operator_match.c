/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <orrery/lab/operators.h>

static orr_error err;

/* Five tensors of 4-byte numbers: 4x8, 8x6, 4x6 and twice 2x2x4x8 (attention). */
#define TENSOR(shape, stride, storage)                              \
    "{\"shape\":" shape ",\"dtype\":\"float32\",\"stride\":" stride \
    ",\"offset\":0,\"storage\":" storage ",\"device\":\"cpu\"}"
#define HEAD                                                                                                   \
    "{\"format\":\"orrery-capture\",\"version\":1,\"torch\":\"2.11.0\",\"world_size\":1,\"step\":0,"           \
    "\"groups\":[{\"ranks\":[0],\"what\":\"world\",\"family\":0}],\"notes\":[],\"graphs\":[{\"rank\":0,"       \
    "\"ops\":[\"aten.mm.default\",\"aten.add_.Tensor\",\"aten.view.default\","                                 \
    "\"aten._scaled_dot_product_flash_attention_for_cpu.default\",\"aten.gelu.default\","                      \
    "\"c10d.allreduce_.default\",\"aten.zeros.default\",\"aten.einsum.default\"],\"modules\":[],\"lines\":[]," \
    "\"storages\":[128,192,96,512,96],\"kept\":[],\"tensors\":[" TENSOR(                                       \
        "[4,8]", "[8,1]",                                                                                      \
        "0") "," TENSOR("[8,6]", "[6,1]",                                                                      \
                        "1") "," TENSOR("[4,6]", "[6,1]",                                                      \
                                        "2") "," TENSOR("[2,2,4,8]", "[64,32,8,1]",                            \
                                                        "3") "," TENSOR("[4,6]", "[6,1]",                      \
                                                                        "4") "],\"nodes\":["
#define TAIL "]}]}"
#define NODE(op, in, out) "{\"op\":" op ",\"phase\":\"forward\",\"in\":[" in "],\"out\":[" out "]}"
#define MM NODE("0", "0,1", "2")
#define ADD "{\"op\":1,\"phase\":\"forward\",\"in\":[2,4],\"out\":[2],\"writes\":[2]}"
#define VIEW "{\"op\":2,\"phase\":\"forward\",\"in\":[2],\"out\":[4],\"view\":1}"
#define ATTENTION \
    "{\"op\":3,\"phase\":\"forward\",\"in\":[3,3,3],\"out\":[3],\"args\":{\"is_causal\":true}}"
#define GELU NODE("4", "2", "4")
#define SETUP "{\"op\":6,\"phase\":\"setup\",\"in\":[],\"out\":[4]}"

#define TABLE "op,shapes,count,gpu_us,parent\n"

static orr_span span_of(const char *text)
{
    return (orr_span){(const uint8_t *)text, strlen(text)};
}

static orr_operators *compare_on(const char *nodes, const char *measured, const orr_hardware *hw)
{
    char text[8192];
    orr_fx *capture;
    orr_operators *o = NULL;
    snprintf(text, sizeof text, "%s%s%s", HEAD, nodes, TAIL);
    CHECK_OK(orr_fx_parse(span_of(text), "step.json", 0, &capture, &err), &err);
    const orr_code code =
        orr_operators_compare_bytes(capture, span_of(measured), "measured", NULL, hw, &o, &err);
    orr_fx_close(capture);
    CHECK_EQ(code != ORR_OK, o == NULL);
    return o;
}

static orr_operators *compare(const char *nodes, const char *measured)
{
    orr_operators *o = compare_on(nodes, measured, NULL);
    if (!o)
        check_fail(__FILE__, __LINE__, "%s", err.message);
    return o;
}

static const orr_operator_row *row(const orr_operators *o, const char *name)
{
    for (size_t i = 0; i < o->row_count; i++) {
        if (o->rows[i].name.len == strlen(name) &&
            memcmp(o->rows[i].name.ptr, name, strlen(name)) == 0)
            return &o->rows[i];
    }
    check_fail(__FILE__, __LINE__, "there is no row %s", name);
    return NULL;
}

/* ---- what counts ---- */

/* A product of 4 x 8 by 8 x 6: 384 FLOPs; 128 + 192 bytes read, 96 written. */
TEST(test_operator_match__the_same_step)
{
    orr_operators *o = compare(MM "," VIEW "," GELU, TABLE "aten::mm,4x8|8x6,1,3.5,\n"
                                                           "aten::view,4x6,1,0,\n"
                                                           "aten::gelu,4x6,1,1.5,\n");
    CHECK_EQ_U(o->calls[0], 2);
    CHECK_EQ_U(o->calls[1], 2);
    CHECK_EQ_U(o->matched, 2);
    CHECK_EQ_U(o->alike, 2);
    CHECK_EQ_U(o->views[0], 1);
    CHECK_EQ_U(o->views[1], 1);
    CHECK_EQ_U(o->flops[0], 2 * 4 * 8 * 6 + 8 * 24);
    CHECK_EQ_U(o->flops[1], 2 * 4 * 8 * 6 + 8 * 24);
    CHECK_EQ_U(o->flops_matched, o->flops[1]);
    CHECK_EQ_U(o->bytes[0], 128 + 192 + 96 + 96 + 96);
    CHECK(!o->has_bytes && o->has_times && !o->has_hardware);
    CHECK_EQ_PS(o->time, 5000000);
    CHECK_EQ_PS(o->time_matched, 5000000);
    CHECK_EQ_U(o->gap_count, 0);
    CHECK_EQ_U(o->without_shapes, 0);
    orr_operators_free(o);
}

/* 4 x 8 by 8 x 6 once more, by its letters. */
TEST(test_operator_match__einsum_by_the_equation_that_was_captured)
{
    orr_operators *o = compare("{\"op\":7,\"phase\":\"forward\",\"in\":[0,1],\"out\":[2],"
                               "\"args\":{\"equation\":\"ij,jk->ik\"}}",
                               TABLE "aten::bmm,1x4x8|1x8x6,1,1,\n");
    CHECK_EQ_U(o->flops[0], 384);
    CHECK_EQ_U(o->flops[1], 384);
    orr_operators_free(o);
}

TEST(test_operator_match__setup_is_left_out)
{
    orr_operators *o = compare(SETUP "," MM, TABLE "aten::mm,4x8|8x6,1,3.5,\n");
    CHECK_EQ_U(o->calls[0], 1);
    orr_operators_free(o);
}

TEST(test_operator_match__in_place_or_not)
{
    orr_operators *o = compare(ADD, TABLE "aten::add,4x6|4x6,1,1,\n");
    CHECK_EQ_U(o->alike, 1);
    orr_operators_free(o);
}

/* Causal, 2 x 2 heads, 4 positions, 8 columns: 10 pairs each, 4 * 8 FLOPs a pair. */
TEST(test_operator_match__attention_by_any_kernel)
{
    orr_operators *o = compare(
        ATTENTION, TABLE
        "aten::scaled_dot_product_attention,2x2x4x8|2x2x4x8|2x2x4x8,1,0,\n"
        "aten::_scaled_dot_product_cudnn_attention,2x2x4x8|2x2x4x8|2x2x4x8,1,0,aten::scaled_dot_product_attention\n"
        "aten::_cudnn_attention_forward,2x2x4x8|2x2x4x8|2x2x4x8,1,7,aten::_scaled_dot_product_cudnn_attention\n");
    CHECK_EQ_U(o->calls[1], 1);
    CHECK_EQ_U(o->alike, 1);
    CHECK_EQ_U(o->flops[1], 4 * 10 * 4 * 8);
    CHECK_EQ_U(o->flops[0], 4 * 10 * 4 * 8);
    CHECK_EQ_PS(o->time_matched, 7000000); /* the kernel's belongs to the operator around it */
    orr_operators_free(o);
}

/* What the capture does not have is looked into; a callee that does nothing is no reason to. */
TEST(test_operator_match__composites_are_looked_into)
{
    orr_operators *o = compare(MM, TABLE "aten::matmul,4x8|8x6,1,0,\n"
                                         "aten::mm,4x8|8x6,1,3,aten::matmul\n"
                                         "aten::native_layer_norm,4x6|6|6,1,2,\n"
                                         "aten::empty,,3,0,aten::native_layer_norm\n");
    CHECK_EQ_U(o->calls[1], 2);
    CHECK_EQ_U(o->matched, 1);
    CHECK_EQ_U(o->views[1], 3);
    CHECK_EQ_PS(o->time, 5000000);
    CHECK_EQ_PS(o->time_matched, 3000000);
    CHECK_EQ_U(o->gap_count, 1);
    CHECK_TEXT(o->gaps[0].why, "was measured only");
    orr_operators_free(o);
}

TEST(test_operator_match__what_an_operator_calls_belongs_to_it)
{
    orr_operators *o = compare(GELU, TABLE "aten::gelu,4x6,1,1,\n"
                                           "aten::mul,4x6|4x6,2,2,aten::gelu\n"
                                           "aten::mm,4x8|8x6,1,4,\n");
    CHECK_EQ_U(o->calls[1], 2); /* not the products inside */
    CHECK_EQ_PS(row(o, "gelu")->time, 3000000);
    CHECK_EQ_PS(o->time_matched, 3000000);
    orr_operators_free(o);
}

/* A view that had to copy is looked into, though the capture has views. */
TEST(test_operator_match__a_view_that_copies_is_not_the_end)
{
    orr_operators *o = compare(VIEW, TABLE "aten::view,4x6,1,0,\n"
                                           "aten::copy_,4x6|4x6,1,2,aten::view\n");
    CHECK_EQ_U(o->calls[1], 1);
    CHECK_EQ_U(row(o, "copy")->calls[1], 1);
    orr_operators_free(o);
}

TEST(test_operator_match__shapes_that_were_not_recorded)
{
    orr_operators *o = compare(MM "," MM, TABLE "aten::mm,,2,3,\n");
    CHECK_EQ_U(o->matched, 2);
    CHECK_EQ_U(o->alike, 2);
    CHECK_EQ_U(o->without_shapes, 2);
    CHECK_EQ_U(o->flops[1], 0);
    CHECK_EQ_U(o->gap_count, 0);
    orr_operators_free(o);
}

/* Two products captured, three measured, one of other sizes: 2 of 3 by name; one with its
 * shapes. */
TEST(test_operator_match__counts_and_shapes_that_differ)
{
    orr_operators *o = compare(MM "," MM "," GELU, TABLE "aten::mm,4x8|8x6,1,3,\n"
                                                         "aten::mm,4x8|8x7,2,6,\n");
    const orr_operator_row *mm = row(o, "mm");
    CHECK_EQ_U(mm->calls[0], 2);
    CHECK_EQ_U(mm->calls[1], 3);
    CHECK_EQ_U(mm->matched, 2);
    CHECK_EQ_U(mm->alike, 1);
    CHECK_EQ_U(o->flops_matched, 384);
    CHECK_EQ_U(o->flops[1], 384 + 2 * 2 * 4 * 8 * 7);
    CHECK_EQ_PS(o->time_matched, 6000000); /* two of three calls */
    CHECK_EQ_U(o->gap_count, 3);
    CHECK_TEXT(o->gaps[0].why, "was captured only");
    CHECK_TEXT(o->gaps[1].why, "captured more often");
    CHECK_TEXT(o->gaps[2].why, "measured more often");
    orr_operators_free(o);
}

TEST(test_operator_match__lists_stand_for_their_tensors)
{
    orr_operators *o = compare(ADD "," ADD, TABLE "aten::_foreach_add_,,1,1,\n");
    CHECK_EQ_U(row(o, "add")->calls[1], 1); /* the table does not say how long the list was */
    CHECK_EQ_U(row(o, "add")->matched, 1);
    orr_operators_free(o);
}

/* 1 array of 2 x 2 at 1 MHz: 8 MFLOPS; vectors of 4: 4 MFLOPS; 1 MB/s; 10 us a launch. mm: 384
 * FLOPs 48 us, 416 bytes 416 us.  gelu: 192 bytes 192 us, 192 operations 48 us.  Attention: 10 * 4
 * pairs, 20 vector operations each: 200 us; 4 * 512 bytes: 2048 us. */
TEST(test_operator_match__predictions_are_the_longest_part)
{
    orr_hardware hw = {.arrays = 1,
                       .rows = 2,
                       .columns = 2,
                       .clock_hz = 1000000,
                       .vector_width = 4,
                       .memory_bandwidth = 1000000,
                       .overhead = 10000000};
    orr_operators *o = compare_on(MM "," GELU "," ATTENTION, TABLE "aten::mm,4x8|8x6,1,3,\n", &hw);
    CHECK_EQ_PS(row(o, "mm")->predicted, 426000000);
    CHECK_EQ_PS(row(o, "gelu")->predicted, 202000000);
    CHECK_EQ_PS(row(o, "scaled_dot_product_attention")->predicted, 2058000000);
    CHECK_EQ_PS(o->launches, 30000000);
    orr_operators_free(o);
    hw.memory_bandwidth = 0;
    o = compare_on(MM "," GELU "," ATTENTION, TABLE "aten::mm,4x8|8x6,1,3,\n", &hw);
    CHECK_EQ_PS(row(o, "mm")->predicted, 58000000);
    CHECK_EQ_PS(row(o, "gelu")->predicted, 58000000);
    CHECK_EQ_PS(row(o, "scaled_dot_product_attention")->predicted, 210000000);
    orr_operators_free(o);
}

/* ---- host traces ---- */

#define VALUE(bytes) "[1,2,0,32," bytes ",\"cuda:0\"]"
#define HOST_MM                                                                                      \
    "{\"id\":4,\"name\":\"aten::mm\",\"ctrl_deps\":3,\"inputs\":{\"values\":[" VALUE("4") "," VALUE( \
        "4") "],\"shapes\":[[4,8],[8,6]],\"types\":[\"Tensor(float)\",\"Tensor(float)\"],"           \
             "\"strides\":[[8,1],[6,1]]},\"outputs\":{\"values\":[" VALUE(                           \
                 "4") "],\"shapes\":[[4,6]],"                                                        \
                      "\"types\":[\"Tensor(float)\"],\"strides\":[[6,1]]}}"
#define NOTHING "{\"values\":[],\"shapes\":[],\"types\":[],\"strides\":[]}"

TEST(test_operator_match__host_trace)
{
    /* The caller stands below what it calls, and another kind of node between them. */
    orr_operators *o =
        compare(MM, "{\"schema\":\"1.1.1-chakra.0.0.4\",\"nodes\":[" HOST_MM
                    ",{\"id\":3,\"name\":\"autograd\",\"ctrl_deps\":2},"
                    "{\"id\":2,\"name\":\"aten::linear\",\"ctrl_deps\":1,\"inputs\":" NOTHING
                    ",\"outputs\":" NOTHING "}]}");
    CHECK_EQ_U(o->calls[1], 1);
    CHECK_EQ_U(o->alike, 1);
    CHECK(o->has_bytes && !o->has_times);
    CHECK_EQ_U(o->bytes[1], 128 + 192 + 96);
    orr_operators_free(o);
}

TEST(test_operator_match__host_trace_with_lists_and_numbers)
{
    orr_operators *o = compare(
        MM,
        "{\"nodes\":[{\"id\":4,\"name\":\"aten::cat\",\"ctrl_deps\":[3],\"inputs\":{\"values\":[[" VALUE(
            "2") "," VALUE("2") "],1],\"shapes\":[[[4,8],[4]],[]],\"types\":[\"GenericList[Tensor(c10::Half),Tensor(c10::Half)]\",\"Int\"]},"
                                "\"outputs\":{\"values\":[" VALUE(
                                    "2") "],\"shapes\":[[36]],\"types\":[\"Tensor(c10::Half)\"]}}]}");
    CHECK_EQ_U(row(o, "cat")->bytes[1], 64 + 8 + 72);
    orr_operators_free(o);
}

/* ---- traces of the profiler ---- */

#define OP(name, ts, dur, id, dims)                                                         \
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" name "\",\"pid\":1,\"tid\":1,\"ts\":" ts \
    ",\"dur\":" dur ",\"args\":{\"External id\":" id ",\"Input Dims\":" dims                \
    ",\"Input type\":[\"float\",\"float\"]}}"
#define KERNEL(dur, id)                                                                               \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":7,\"ts\":1000,\"dur\":" dur \
    ",\"args\":{\"External id\":" id "}}"

TEST(test_operator_match__profiler_trace)
{
    orr_operators *o =
        compare(MM, "{\"traceEvents\":[" KERNEL("2.5", "2") "," OP(
                        "aten::mm", "12", "5", "2",
                        "[[4,8],[8,6]]") "," OP("aten::matmul", "10", "20", "1",
                                                "[[4,8],[8,6]]") "," KERNEL("1.5", "2") "]}");
    CHECK_EQ_U(o->calls[1], 1);
    CHECK_EQ_U(o->alike, 1);
    CHECK_EQ_PS(o->time_matched, 4000000);
    orr_operators_free(o);
}

TEST(test_operator_match__profiler_trace_counts_the_last_step)
{
    orr_operators *o = compare(
        MM,
        "{\"traceEvents\":[" OP("aten::mm", "12", "5", "2", "[[4,8],[8,6]]") "," OP(
            "aten::mm", "112", "5", "3",
            "[[4,8],[8,6]]") ","
                             "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#1\",\"tid\":1,\"ts\":0,\"dur\":100},"
                             "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#2\",\"tid\":1,\"ts\":100,\"dur\":100}," KERNEL(
                                 "2", "2") "," KERNEL("3", "3") "]}");
    CHECK_EQ_U(o->calls[1], 1);
    CHECK_EQ_PS(o->time, 3000000);
    orr_operators_free(o);
}

/* ---- words ---- */

TEST(test_operator_match__text_and_json)
{
    const orr_operators_style style = {
        .program = "orrery test", .captured = "a.json", .measured = "b.csv"};
    orr_operators *o = compare(MM "," GELU, TABLE "aten::mm,4x8|8x6,1,3.5,\n");
    orr_str text;
    CHECK_OK(orr_operators_text(o, &style, &text, &err), &err);
    CHECK(strstr(text.ptr, "gelu") && strstr(text.ptr, "was captured only"));
    CHECK_OK(orr_operators_json(o, &style, &text, &err), &err);
    CHECK(strstr(text.ptr, "\"flops_matched\": 384"));
    CHECK(strstr(text.ptr, "\"measured_bytes\": null"));
    orr_operators_free(o);
}

/* ---- broken inputs ---- */

static void check_refused(const char *measured, uint32_t line, uint32_t column, const char *words)
{
    orr_operators *o = compare_on(MM, measured, NULL);
    if (o)
        check_fail(__FILE__, __LINE__, "taken: %s", measured);
    CHECK_EQ(err.code, ORR_EINPUT);
    CHECK_SAYS(&err, words);
    CHECK_EQ(err.where.line, line);
    CHECK_EQ(err.where.column, column);
}

TEST(test_operator_match__broken_tables)
{
    check_refused("", 1, 1, "empty");
    check_refused(TABLE, 1, 1, "no operators");
    check_refused("op,shapes,count,gpu_us\n", 1, 1, "no column parent");
    check_refused("op,shapes,count,gpu_us,parent,op\n", 1, 31, "a second column");
    check_refused(TABLE "aten::mm,4x8,1\n", 2, 1, "3 fields");
    check_refused(TABLE ",4x8,1,0,\n", 2, 1, "the name of an operator");
    check_refused(TABLE "aten::mm,4y8,1,0,\n", 2, 10, "expected shapes");
    check_refused(TABLE "aten::mm,4x,1,0,\n", 2, 10, "expected shapes");
    check_refused(TABLE "aten::mm,4x8|,1,0,\n", 2, 10, "expected shapes");
    check_refused(TABLE "aten::mm,|4,1,0,\n", 2, 10, "expected shapes");
    check_refused(TABLE "aten::mm,99999999999999999999,1,0,\n", 2, 10, "64 bits");
    check_refused(TABLE "aten::mm,4,many,0,\n", 2, 12, "count");
    check_refused(TABLE "aten::mm,4,-1,0,\n", 2, 12, "count");
    check_refused(TABLE "aten::mm,4,1,soon,\n", 2, 14, "microseconds");
    check_refused(TABLE "aten::mm,4,1,-1,\n", 2, 14, "microseconds");
    check_refused(TABLE "aten::mm,4,1,nan,\n", 2, 14, "microseconds");
    check_refused(TABLE "aten::mm,4,1,0,aten::matmul\n", 2, 16,
                  "\"aten::matmul\": no earlier row has this parent operator");
}

TEST(test_operator_match__broken_host_traces)
{
    check_refused("{\"nodes\":[]}", 1, 1, "no operators");
    check_refused("{\"nodes\":[{\"id\":1}]}", 1, 11, "without");
    check_refused("{\"nodes\":[{\"id\":1,\"name\":\"aten::mm\"}]}", 1, 11, "inputs");
    check_refused("{\"nodes\":[{\"id\":1,\"name\":\"aten::mm\",\"inputs\":{},\"outputs\":{}}]}", 1,
                  46, "values");
    check_refused(
        "{\"nodes\":[{\"id\":1,\"name\":\"aten::mm\",\"inputs\":{\"values\":[1],\"shapes\":[],\"types\":[]},"
        "\"outputs\":{}}]}",
        1, 46, "more values");
    check_refused(
        "{\"nodes\":[{\"id\":1,\"name\":\"aten::mm\",\"inputs\":{\"values\":[[1]],\"shapes\":[[4]],"
        "\"types\":[\"Tensor(float)\"]},\"outputs\":{}}]}",
        1, 57, "expected a tensor");
    check_refused("{\"nodes\":[{\"id\":1,\"name\":\"aten::mm\",\"inputs\":{\"values\":[" VALUE(
                      "4") "],\"shapes\":[[-4]],"
                           "\"types\":[\"Tensor(float)\"]},\"outputs\":{}}]}",
                  1, 91, "-4");
    check_refused("{\"nodes\":[{\"id\":1,\"name\":\"aten::mm\"", 1, 36, "");
}

TEST(test_operator_match__broken_profiler_traces)
{
    check_refused("{\"traceEvents\":[]}", 1, 1, "no operators");
    check_refused(
        "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"dur\":1}]}", 1,
        17, "\"ts\"");
    check_refused(
        "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"dur\":1e300}]}", 1, 17,
        "out of range");
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_operator_match__the_same_step),
        RUN(test_operator_match__einsum_by_the_equation_that_was_captured),
        RUN(test_operator_match__setup_is_left_out),
        RUN(test_operator_match__in_place_or_not),
        RUN(test_operator_match__attention_by_any_kernel),
        RUN(test_operator_match__composites_are_looked_into),
        RUN(test_operator_match__what_an_operator_calls_belongs_to_it),
        RUN(test_operator_match__a_view_that_copies_is_not_the_end),
        RUN(test_operator_match__shapes_that_were_not_recorded),
        RUN(test_operator_match__counts_and_shapes_that_differ),
        RUN(test_operator_match__lists_stand_for_their_tensors),
        RUN(test_operator_match__predictions_are_the_longest_part),
        RUN(test_operator_match__host_trace),
        RUN(test_operator_match__host_trace_with_lists_and_numbers),
        RUN(test_operator_match__profiler_trace),
        RUN(test_operator_match__profiler_trace_counts_the_last_step),
        RUN(test_operator_match__text_and_json),
        RUN(test_operator_match__broken_tables),
        RUN(test_operator_match__broken_host_traces),
        RUN(test_operator_match__broken_profiler_traces),
    };
    return RUN_ALL(tests);
}
