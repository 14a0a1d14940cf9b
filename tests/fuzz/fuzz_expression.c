/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_expression.c - any bytes as an expression of a sweep.  What is refused has words; what is taken has a value, the
 * same one when asked again, whatever the names stand for. */
#include "sweep/expression.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static bool is_same(swp_value a, swp_value b)
{
    if (a.kind != b.kind)
        return false;
    if (a.kind == SWP_NUMBER)
        return memcmp(&a.number, &b.number, sizeof a.number) == 0;
    return a.kind == SWP_NONE ||
           (a.text.len == b.text.len && memcmp(a.text.ptr, b.text.ptr, a.text.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"tp", "pp", "machine", "step-ns", NULL};
    static const char *const texts[][4] = {{"2", "4", "dgx-h100", "1e9"},
                                           {"0", "-1", "", "nan"},
                                           {"9223372036854775807", "1e308", "'", "inf"}};
    swp_expr *e;
    orr_error err = {0};
    if (size > 4096)
        return 0;
    if (swp_expr_parse((orr_str){(const char *)data, size}, NULL, &e, &err)) {
        require(!e && err.message[0]);
        return 0;
    }
    require(swp_expr_text(e).len <= size);
    if (swp_expr_bind(e, names, &err)) {
        require(err.message[0]);
    } else {
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            swp_value values[4];
            for (size_t k = 0; k < 4; k++)
                values[k] =
                    i == 1 && k == 3 ? (swp_value){0} : swp_value_of(orr_str_of(texts[i][k]));
            const swp_value v = swp_expr_evaluate(e, values);
            require(v.kind <= SWP_TEXT && is_same(v, swp_expr_evaluate(e, values)));
            (void)swp_is_true(v);
        }
    }
    swp_expr_free(e);
    return 0;
}
