/* SPDX-License-Identifier: Apache-2.0 */
/* test_serve_faults.c - memory that runs out at every single place while requests are read and
 * served: it must be said that memory ran out, and sanitizers watch that nothing leaks.
 *
 * src/base/memory.c is compiled into this program with ORR_FAULTS (see meson.build). */
#include "serve_make.h"

long orr__fail_alloc_after(long n); /* src/base/memory.c */

static orr_code read_and_serve(const orr_model *m, orr_serve_options o, orr_error *err)
{
    static const char text[] = "arrival_us,prompt,output\n5,\"6\",2\n0,5,3\n9,40,2\n9,3,1\n";
    orr_serve_request *q;
    orr_set *s = NULL;
    orr_code code = orr_requests_parse((orr_span){(const uint8_t *)text, sizeof text - 1}, "q.csv",
                                       &q, &o.request_count, err);
    if (code)
        return code;
    o.requests = q;
    code = orr_serve(m, &o, &s, NULL, err);
    CHECK(!code == (s != NULL));
    orr_set_close(s);
    orr_requests_free(q);
    return code;
}

static void fail_each(const orr_model *m, orr_serve_options o)
{
    for (long n = 0;; n++) {
        orr_error err = {.code = ORR_OK};
        orr__fail_alloc_after(n);
        const orr_code code = read_and_serve(m, o, &err);
        const bool failed = orr__fail_alloc_after(-1) < 0;
        if (code != (failed ? ORR_ENOMEM : ORR_OK) || (failed && err.code != ORR_ENOMEM))
            check_fail(__FILE__, __LINE__, "request %ld: code %d: %s", n, (int)code, err.message);
        if (!failed)
            return;
    }
}

TEST(test_serve_faults__one_pool)
{
    const orr_model m = small_model(), e = small_experts();
    fail_each(&m, (orr_serve_options){.ranks = {.tp = 2, .pp = 2}, .chunk = 10});
    fail_each(&e, (orr_serve_options){.ranks = {.dp = 2, .ep = 2}});
}

TEST(test_serve_faults__two_pools)
{
    const orr_model m = small_model();
    fail_each(&m, (orr_serve_options){.ranks = {.tp = 2}, .decode = {.dp = 2}});
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_serve_faults__one_pool),
        RUN(test_serve_faults__two_pools),
    };
    return RUN_ALL(tests);
}
