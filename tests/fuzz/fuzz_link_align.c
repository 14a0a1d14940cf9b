/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_link_align.c - two rows of names, made of any bytes: partners are equal and ascend, and of
 * short rows as many are found as there are.
 *
 * The first byte is where the rows are cut apart, in 1/256, the second how many names there are. */
#include "sources/torch/link/link_impl.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SHORT = 96, LONG = 160 };

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* The length of the longest row that is in both, by the table. */
static uint32_t longest(const uint32_t *a, uint32_t n, const uint32_t *b, uint32_t m)
{
    uint32_t table[SHORT + 1][SHORT + 1] = {{0}};
    for (uint32_t i = 1; i <= n; i++) {
        for (uint32_t k = 1; k <= m; k++) {
            const uint32_t up = table[i - 1][k], left = table[i][k - 1];
            table[i][k] = a[i - 1] == b[k - 1] ? table[i - 1][k - 1] + 1 : up > left ? up : left;
        }
    }
    return table[n][m];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint32_t row[LONG], partner[LONG];
    orr_error err;
    if (size < 3 || size - 2 > LONG)
        return 0;
    const uint32_t count = (uint32_t)size - 2, names = 1 + data[1];
    const uint32_t n = (uint32_t)((uint64_t)count * data[0] / 256), m = count - n;
    for (uint32_t i = 0; i < count; i++)
        row[i] = data[i + 2] % names;
    require(link_align_rows(row, n, row + n, m, partner, &err) == ORR_OK);
    uint32_t found = 0, last = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (partner[i] == LINK_NONE)
            continue;
        require(partner[i] < m && row[i] == row[n + partner[i]] && partner[i] >= last);
        last = partner[i] + 1;
        found++;
    }
    require(n > SHORT || m > SHORT || found == longest(row, n, row + n, m));
    return 0;
}
