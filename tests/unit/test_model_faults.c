/* SPDX-License-Identifier: Apache-2.0 */
/* test_model_faults.c - memory that runs out at every single place where a model is read: it must
 * be said that memory ran out, and sanitizers watch that nothing leaks.
 *
 * src/base/memory.c is compiled into this program with ORR_FAULTS (see meson.build). */
#include "check.h"

#include <orrery/lab/model.h>

long orr__fail_alloc_after(long n); /* src/base/memory.c */

static void fail_each(const char *text)
{
    for (long n = 0;; n++) {
        orr_error err = {.code = ORR_OK};
        orr_model m;
        orr__fail_alloc_after(n);
        const orr_code code =
            orr_model_parse((orr_span){(const uint8_t *)text, strlen(text)}, "m", &m, &err);
        const bool failed = orr__fail_alloc_after(-1) < 0;
        if (code != (failed ? ORR_ENOMEM : ORR_OK) || (failed && err.code != ORR_ENOMEM))
            check_fail(__FILE__, __LINE__, "request %ld: code %d: %s", n, (int)code, err.message);
        if (!failed)
            return;
    }
}

TEST(test_model_faults__config_says_that_memory_ran_out)
{
    fail_each("{\"model_type\": \"gemma2\", \"hidden_size\": 64, \"num_hidden_layers\": 2, "
              "\"num_attention_heads\": 4, \"num_key_value_heads\": 4, \"vocab_size\": 100, "
              "\"intermediate_size\": 128, \"_name_or_path\": \"a\\u0062c\", "
              "\"layer_types\": [\"sliding_attention\", \"full_attention\"]}");
}

TEST(test_model_faults__files_of_ours_say_that_memory_ran_out)
{
    fail_each("from: gpt2\nlayers: 3\n");
    fail_each("{\"format\": \"orrery-model\", \"from\": \"gpt2\"}");
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_model_faults__config_says_that_memory_ran_out),
        RUN(test_model_faults__files_of_ours_say_that_memory_ran_out),
    };
    return RUN_ALL(tests);
}
