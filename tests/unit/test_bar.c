/* SPDX-License-Identifier: Apache-2.0 */
/* test_bar.c - bars of ten cells, and blocks that browsers unpack. */
#include "check.h"

#include "base/io/pack.h"
#include "views/views_impl.h"

#include <zlib.h>

TEST(test_bar__cells_are_rounded_and_something_is_never_nothing)
{
    static const struct {
        uint64_t part, whole;
        const char *want;
    } rows[] = {
        {0, 100, ""},
        {1, 100, "."},
        {4, 100, "."},
        {5, 100, "#"},
        {14, 100, "#"},
        {15, 100, "##"},
        {94, 100, "#########"},
        {95, 100, "##########"},
        {100, 100, "##########"},
        {200, 100, "##########"},
        {5, 0, ""},
        {UINT64_MAX / 2, UINT64_MAX, "#####"},
    };
    char text[ORR_BAR_ROOM];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_TEXT(orr_bar_text(rows[i].part, rows[i].whole, 10, text), rows[i].want);
    CHECK_EQ_U(strlen(orr_bar_text(1, 1, 1000, text)), ORR_BAR_ROOM - 1);
}

TEST(test_bar__deflated_blocks_come_back)
{
    enum { MOST = 1 << 20 };
    orr_error err;
    uint8_t *bytes = malloc(MOST), *back = malloc(MOST);
    for (size_t i = 0; i < MOST; i++)
        bytes[i] = (uint8_t)(i * i >> 7);
    for (size_t n = 0; n <= MOST; n = n ? n * 32 : 1) {
        orr_buf packed = {0};
        uLongf len = MOST;
        CHECK_OK(orr_deflate((orr_span){bytes, n}, &packed, &err), &err);
        CHECK(uncompress(back, &len, packed.ptr, packed.len) == Z_OK);
        CHECK_EQ_U(len, n);
        CHECK_BYTES(back, bytes, n);
        orr_buf_fini(&packed);
    }
    free(bytes);
    free(back);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_bar__cells_are_rounded_and_something_is_never_nothing),
        RUN(test_bar__deflated_blocks_come_back),
    };
    return RUN_ALL(tests);
}
