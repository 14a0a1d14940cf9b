/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/text/base64.h"

/* RFC 4648, section 10. */
static const char *const vectors[][2] = {
    {"", ""},
    {"f", "Zg=="},
    {"fo", "Zm8="},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg=="},
    {"fooba", "Zm9vYmE="},
    {"foobar", "Zm9vYmFy"},
};

TEST(test_base64__put_writes_the_vectors_of_the_rfc)
{
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        const orr_span in = {(const uint8_t *)vectors[i][0], strlen(vectors[i][0])};
        char out[20];
        *orr_base64_put((uint8_t *)out, in) = '\0';
        CHECK_TEXT(out, vectors[i][1]);
        CHECK_EQ_U(orr_base64_length(in.len), strlen(vectors[i][1]));
    }
}

static void check_get(const char *text, const char *want)
{
    uint8_t out[40];
    size_t len = 99, bad;
    CHECK(orr_base64_get(orr_str_of(text), out, &len, &bad));
    CHECK_EQ_U(len, strlen(want));
    CHECK_BYTES(out, want, len);
}

TEST(test_base64__get_reads_them_back)
{
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        check_get(vectors[i][1], vectors[i][0]);
}

TEST(test_base64__get_needs_no_padding_and_knows_both_alphabets)
{
    check_get("Zg", "f");
    check_get("Zm8", "fo");
    check_get("+/-_", "\xfb\xff\xbf");
}

TEST(test_base64__get_names_the_wrong_character)
{
    static const struct {
        const char *text;
        size_t at;
    } cases[] = {{"Zm9*", 3},     {"Z", 1},      {"Zg=", 2},  {"=", 0},
                 {"Zg==Zg==", 2}, {"Zm9v\n", 4}, {"Zg===", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t out[40];
        size_t len, bad = 99;
        CHECK(!orr_base64_get(orr_str_of(cases[i].text), out, &len, &bad));
        CHECK_EQ_U(bad, cases[i].at);
    }
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_base64__put_writes_the_vectors_of_the_rfc),
        RUN(test_base64__get_reads_them_back),
        RUN(test_base64__get_needs_no_padding_and_knows_both_alphabets),
        RUN(test_base64__get_names_the_wrong_character),
    };
    return RUN_ALL(tests);
}
