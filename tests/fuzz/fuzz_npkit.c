/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_npkit.c - any bytes as a table of timings.  What is refused has a place and words; what is
 * taken gives times for every size, the same ones when asked again. */
#include <orrery/lab/nccl.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t sizes[] = {0, 1, 8, 100, 65536, 1000003, UINT64_MAX};
    orr_npkit *t;
    orr_error err;
    if (orr_npkit_parse((orr_span){.ptr = data, .len = size}, "table.json", &t, &err)) {
        require(!t && err.message[0]);
        return 0;
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int how = ORR_NPKIT_MEAN; how <= ORR_NPKIT_DRAWN; how++) {
            const orr_npkit_choice c = {.how = (orr_npkit_how)how, .seed = i};
            const uint64_t time = orr_npkit_time(t, ORR_NPKIT_REDUCE, &c, sizes[i]);
            require(time <= 10000000000000000u);
            require(time == orr_npkit_time(t, ORR_NPKIT_REDUCE, &c, sizes[i]));
            require(orr_npkit_time(t, ORR_NPKIT_COPY, &c, sizes[i]) <= 10000000000000000u);
        }
    orr_npkit_free(t);
    return 0;
}
