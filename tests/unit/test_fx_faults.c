/* SPDX-License-Identifier: Apache-2.0 */
/* test_fx_faults.c - memory that runs out at every single place while a captured step is read and
 * converted: it must be said that memory ran out, and sanitizers watch that nothing leaks.
 *
 * src/base/memory.c is compiled into this program with ORR_FAULTS (see meson.build). */
#include "check.h"

#include <orrery/lab/fx.h>

long orr__fail_alloc_after(long n); /* src/base/memory.c */

/* The good ones of the fuzzer: a collective with a wait, a pipeline of two stages, a printed
 * graph. */
static const char *read_seed(const char *name, size_t *size)
{
    static char text[16384];
    char path[4096];
    const char *root = getenv("ORR_ROOT");
    snprintf(path, sizeof path, "%s/tests/fuzz/seeds/fx/%s", root ? root : ".", name);
    FILE *f = fopen(path, "rb");
    if (!f)
        check_fail(__FILE__, __LINE__, "cannot open %s", path);
    *size = fread(text, 1, sizeof text, f);
    fclose(f);
    CHECK(*size > 0 && *size < sizeof text);
    return text;
}

static orr_code read_and_convert(const char *text, size_t size, orr_error *err)
{
    orr_fx *c = NULL;
    orr_set *s = NULL;
    orr_fx_report report;
    orr_code code = orr_fx_parse((orr_span){(const uint8_t *)text, size}, "x.json", 0, &c, err);
    CHECK(!code == (c != NULL));
    if (code)
        return code;
    code = orr_fx_convert(c, NULL, &s, &report, err);
    CHECK(!code == (s != NULL));
    if (!code)
        orr_fx_report_fini(&report);
    orr_set_close(s);
    orr_fx_close(c);
    return code;
}

static void fail_each(const char *name)
{
    size_t size;
    const char *text = read_seed(name, &size);
    for (long n = 0;; n++) {
        orr_error err = {.code = ORR_OK};
        orr__fail_alloc_after(n);
        const orr_code code = read_and_convert(text, size, &err);
        const bool failed = orr__fail_alloc_after(-1) < 0;
        if (code != (failed ? ORR_ENOMEM : ORR_OK) || (failed && err.code != ORR_ENOMEM))
            check_fail(__FILE__, __LINE__, "%s, request %ld: code %d: %s", name, n, (int)code,
                       err.message);
        if (!failed)
            return;
    }
}

TEST(test_fx_faults__a_capture)
{
    fail_each("good.json");
}

TEST(test_fx_faults__a_pipeline)
{
    fail_each("pipeline.json");
}

TEST(test_fx_faults__a_printed_graph)
{
    fail_each("printed.json");
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_fx_faults__a_capture),
        RUN(test_fx_faults__a_pipeline),
        RUN(test_fx_faults__a_printed_graph),
    };
    return RUN_ALL(tests);
}
