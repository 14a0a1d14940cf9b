/* SPDX-License-Identifier: Apache-2.0 */
/* test_export_faults.c - memory that runs out at every single place where an archive, an exported
 * program or a Python is looked at: it must be said that memory ran out, and sanitizers watch that
 * nothing leaks.
 *
 * src/base/memory.c is compiled into this program with ORR_FAULTS (see meson.build). */
#include "check.h"
#include "export_make.h"
#include "zip_make.h"

#include <orrery/lab/capture.h>
#include <orrery/lab/export.h>

#include <sys/stat.h>

long orr__fail_alloc_after(long n); /* src/base/memory.c */

static void fail_each(orr_span bytes, const orr_export_options *opt)
{
    for (long n = 0;; n++) {
        orr_error err = {.code = ORR_OK};
        orr_fx *fx;
        orr_export_report r;
        orr__fail_alloc_after(n);
        const orr_code code = orr_export_parse(bytes, "a.pt2", opt, &fx, &r, &err);
        const bool failed = orr__fail_alloc_after(-1) < 0;
        if (code != (failed ? ORR_ENOMEM : ORR_OK) || (failed && err.code != ORR_ENOMEM))
            check_fail(__FILE__, __LINE__, "request %ld: code %d: %s", n, (int)code, err.message);
        if (!code)
            orr_export_report_fini(&r);
        orr_fx_close(fx);
        if (!failed)
            return;
    }
}

TEST(test_export_faults__programs_say_that_memory_ran_out)
{
    export_maker m = {0};
    make_tensor(&m, "w", "6, 4", "buffer");
    m.stride = "4, 1";
    make_tensor(&m, "x", "s0@3, 4", "user_input");
    m.stride = "6, 1";
    make_tensor(&m, "y", "s0, 6", NULL);
    make_node(&m, "aten.linear.default", "x w", "y", "");
    m.stride = "1, 4";
    make_tensor(&m, "t", "4, 6", NULL);
    make_node(&m, "aten.t.default", "w", "t", "");
    make_tensor(&m, "n", "6, 4", NULL);
    make_node(&m, "aten.neg.default", "w", "n", "");
    make_spec(&m, "{\"buffer_mutation\": {\"arg\": {\"name\": \"n\"}, \"buffer_name\": \"m.w\"}}");
    make_result(&m, "y");
    orr_buf json = make_program(&m);
    fail_each((orr_span){json.ptr, json.len}, NULL);
    fail_each((orr_span){json.ptr, json.len}, &(orr_export_options){.sizes = "s0=5", .ranks = 4});
    for (int is_deflated = 0; is_deflated < 2; is_deflated++) {
        zip_item items[] = {
            {.name = "a/models/m.json",
             .bytes = json.ptr,
             .len = json.len,
             .is_deflated = is_deflated},
            {.name = "a/archive_format", .bytes = "pt2", .len = 3, .is_deflated = is_deflated}};
        orr_buf b = zip_make(items, 2, false);
        fail_each((orr_span){b.ptr, b.len}, NULL);
        orr_buf_fini(&b);
    }
    orr_buf_fini(&json);
}

/* A Python of its own: a script that answers and leaves a step. */
TEST(test_export_faults__captures_say_that_memory_ran_out)
{
    const char *const arguments[] = {"--output", "step.json", "train.py", NULL};
    FILE *f = fopen("python", "w");
    CHECK(f && fputs("#!/bin/sh\nprintf 'orrery-python 3.12.0\\norrery-torch 2.9.1\\n'\n", f) >= 0);
    CHECK(fclose(f) == 0 && chmod("python", 0755) == 0 && mkdir("tmp", 0777) == 0);
    CHECK(setenv("TMPDIR", "tmp", 1) == 0);
    for (long n = 0;; n++) {
        orr_error err = {.code = ORR_OK};
        orr_capture *c;
        orr__fail_alloc_after(n);
        orr_code code = orr_capture_open("./python", &c, &err);
        if (!code)
            code = orr_capture_run(c, arguments, &err);
        const bool failed = orr__fail_alloc_after(-1) < 0;
        orr_capture_close(c);
        if (!failed) {
            CHECK_OK(code, &err);
            break;
        }
        if (code != ORR_ENOMEM)
            check_fail(__FILE__, __LINE__, "request %ld: code %d: %s", n, (int)code, err.message);
    }
    CHECK(rmdir("tmp") == 0); /* nothing is left in it */
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_export_faults__programs_say_that_memory_ran_out),
        RUN(test_export_faults__captures_say_that_memory_ran_out),
    };
    return RUN_ALL(tests);
}
