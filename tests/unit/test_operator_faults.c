/* SPDX-License-Identifier: Apache-2.0 */
/* test_operator_faults.c - memory that runs out at every single place where a captured step is held
 * against a measured one: it must be said that memory ran out, and sanitizers watch that nothing
 * leaks.
 *
 * src/base/memory.c is compiled into this program with ORR_FAULTS (see meson.build). */
#include "captured_step.h"
#include "check.h"

#include <orrery/lab/operators.h>

long orr__fail_alloc_after(long n); /* src/base/memory.c */

static orr_span span_of(const char *text)
{
    return (orr_span){(const uint8_t *)text, strlen(text)};
}

static orr_code compare(const orr_fx *capture, const char *measured, orr_error *err)
{
    const orr_operators_style style = {.program = "test", .captured = "a", .measured = "b"};
    orr_operators *o;
    orr_str text;
    orr_code code =
        orr_operators_compare_bytes(capture, span_of(measured), "b", NULL, NULL, &o, err);
    if (!code)
        code = orr_operators_text(o, &style, &text, err);
    if (!code)
        code = orr_operators_json(o, &style, &text, err);
    orr_operators_free(o);
    return code;
}

static void fail_each(const char *measured)
{
    orr_fx *capture;
    orr_error err;
    CHECK_OK(orr_fx_parse(span_of(step), "a", 0, &capture, &err), &err);
    for (long n = 0;; n++) {
        err = (orr_error){.code = ORR_OK};
        orr__fail_alloc_after(n);
        const orr_code code = compare(capture, measured, &err);
        const bool failed = orr__fail_alloc_after(-1) < 0;
        if (code != (failed ? ORR_ENOMEM : ORR_OK) || (failed && err.code != ORR_ENOMEM))
            check_fail(__FILE__, __LINE__, "request %ld: code %d: %s", n, (int)code, err.message);
        if (!failed)
            break;
    }
    orr_fx_close(capture);
}

TEST(test_operator_faults__tables_say_that_memory_ran_out)
{
    fail_each("op,shapes,count,gpu_us,parent\n"
              "aten::matmul,4x8|8x6,1,0,\n"
              "aten::mm,4x8|8x6,1,3,aten::matmul\n"
              "\"aten::_foreach_add_\",,1,1,\n");
}

TEST(test_operator_faults__host_traces_say_that_memory_ran_out)
{
    fail_each(
        "{\"nodes\":[{\"id\":4,\"name\":\"aten::gelu\",\"ctrl_deps\":3,\"inputs\":{\"values\":"
        "[[1,2,0,32,4,\"cuda:0\"]],\"shapes\":[[4,8]],\"types\":[\"Tensor(float)\"]},"
        "\"outputs\":{\"values\":[],\"shapes\":[],\"types\":[]}}]}");
}

TEST(test_operator_faults__profiler_traces_say_that_memory_ran_out)
{
    fail_each(
        "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"dur\":2,"
        "\"args\":{\"External id\":2}},{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\","
        "\"tid\":1,\"ts\":12,\"dur\":5,\"args\":{\"External id\":2,\"Input Dims\":[[4,8],[8,6]]}}]}");
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_operator_faults__tables_say_that_memory_ran_out),
        RUN(test_operator_faults__host_traces_say_that_memory_ran_out),
        RUN(test_operator_faults__profiler_traces_say_that_memory_ran_out),
    };
    return RUN_ALL(tests);
}
