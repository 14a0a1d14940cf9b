/* SPDX-License-Identifier: Apache-2.0 */
#include "files.h"

#include "base/formats/wire.h"

static orr_span span(const void *p, size_t n)
{
    return (orr_span){p, n};
}

/* A reader over a copy of exactly this size, so that a sanitizer sees a step outside. */
__attribute__((noinline)) static uint8_t *exact(const void *p, size_t n, orr_wire *w)
{
    uint8_t *copy = malloc(n ? n : 1);
    CHECK(copy != NULL);
    memcpy(copy, p, n);
    *w = (orr_wire){copy, copy + n, NULL};
    return copy;
}

TEST(test_wire__varints_have_the_length_and_bytes_of_the_format)
{
    static const struct {
        uint64_t value;
        unsigned size;
    } cases[] = {
        {0, 1},           {1, 1},          {127, 1},        {128, 2},        {300, 2},
        {16383, 2},       {16384, 3},      {UINT32_MAX, 5}, {1ull << 35, 6}, {(1ull << 63) - 1, 9},
        {1ull << 63, 10}, {UINT64_MAX, 10}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        orr_buf b = {0};
        uint64_t v = 0;
        orr_put_varint(&b, cases[i].value);
        CHECK_EQ_U(b.len, cases[i].size);
        CHECK_EQ_U(orr_varint_size(cases[i].value), cases[i].size);
        orr_wire w = orr_wire_of(span(b.ptr, b.len));
        CHECK(orr_wire_varint(&w, &v));
        CHECK_EQ_U(v, cases[i].value);
        CHECK(w.at == w.end);
        orr_buf_fini(&b);
    }
    /* 300 = 2 * 128 + 44, low part first: 0xac 0x02. */
    orr_buf b = {0};
    orr_put_varint(&b, 300);
    CHECK_BYTES(b.ptr, "\xac\x02", 2);
    orr_buf_fini(&b);
}

TEST(test_wire__a_cut_varint_is_refused_at_its_start)
{
    static const uint8_t long_one[10] = {0xff, 0xff, 0xff, 0xff, 0xff,
                                         0xff, 0xff, 0xff, 0xff, 0x01};
    for (size_t n = 0; n < 10; n++) {
        orr_wire w;
        uint64_t v;
        uint8_t *copy = exact(long_one, n, &w);
        CHECK(!orr_wire_varint(&w, &v));
        CHECK(w.at == copy);
        CHECK(w.why && strstr(w.why, "ends inside a number"));
        free(copy);
    }
}

TEST(test_wire__ten_bytes_are_a_number_and_eleven_are_not)
{
    static const uint8_t ones[11] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0};
    static const uint8_t overlong[11] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
                                         0x80, 0x80, 0x80, 0x80, 0};
    static const uint8_t padded[10] = {0x85, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0};
    uint64_t v = 0;
    orr_wire w = orr_wire_of(span(ones, 10));
    CHECK(orr_wire_varint(&w, &v)); /* bits past the 64th are dropped */
    CHECK_EQ_U(v, UINT64_MAX);
    w = orr_wire_of(span(padded, 10));
    CHECK(orr_wire_varint(&w, &v));
    CHECK_EQ_U(v, 5);
    w = orr_wire_of(span(overlong, 11));
    CHECK(!orr_wire_varint(&w, &v));
    CHECK(w.at == overlong && strstr(w.why, "longer than ten bytes"));
}

TEST(test_wire__fields_come_with_number_type_and_value)
{
    orr_buf b = {0};
    orr_field f;
    orr_put_uint(&b, 1, 7);
    orr_put_bytes(&b, 2, "abc", 3);
    orr_put_tag(&b, 3, ORR_WIRE_I64);
    orr_put_fixed(&b, 8, 0x0102030405060708u);
    orr_put_tag(&b, 536870911, ORR_WIRE_I32); /* 2^29 - 1, the largest number there is */
    orr_put_fixed(&b, 4, 0xdeadbeef);
    orr_wire w = orr_wire_of(span(b.ptr, b.len));
    CHECK(orr_wire_next(&w, &f) && f.number == 1 && f.type == ORR_WIRE_VARINT && f.value == 7);
    CHECK(f.start == b.ptr);
    CHECK(orr_wire_next(&w, &f) && f.number == 2 && f.type == ORR_WIRE_LEN && f.bytes.len == 3);
    CHECK_BYTES(f.bytes.ptr, "abc", 3);
    CHECK(orr_wire_next(&w, &f) && f.number == 3 && f.value == 0x0102030405060708u);
    CHECK(orr_wire_next(&w, &f) && f.number == 536870911 && f.value == 0xdeadbeef);
    CHECK(!orr_wire_next(&w, &f) && !w.why && w.at == w.end);
    orr_buf_fini(&b);
}

static void check_refused(const char *bytes, size_t n, size_t at, const char *why)
{
    orr_wire w;
    orr_field f;
    uint8_t *copy = exact(bytes, n, &w);
    while (orr_wire_next(&w, &f))
        ;
    CHECK(w.why != NULL);
    CHECK(strstr(w.why, why));
    CHECK_EQ_U(w.at - copy, at);
    free(copy);
}

TEST(test_wire__damage_is_named_with_its_byte)
{
    check_refused("\x08\x01\x00\x01", 4, 2, "impossible number");         /* field 0 */
    check_refused("\x80\x80\x80\x80\x10\x00", 6, 0, "impossible number"); /* a tag past 32 bits */
    check_refused("\x08\x01\x0e\x01", 4, 2, "impossible wire type");      /* type 6 */
    check_refused("\x0f\x01", 2, 0, "impossible wire type");              /* type 7 */
    check_refused("\x0c", 1, 0, "impossible wire type"); /* an end without a group */
    check_refused("\x08", 1, 1, "ends inside a number");
    check_refused("\x09\x01\x02\x03\x04\x05\x06\x07", 8, 1, "fixed-size number");
    check_refused("\x0d\x01\x02\x03", 4, 1, "fixed-size number");
    check_refused("\x0a\x03\x61\x62", 4, 1, "larger than the rest");
    check_refused("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, 1, "larger than the rest");
}

TEST(test_wire__groups_are_stepped_over_whole)
{
    /* 1: group { 2: 5; 3: group { 4: "x" } } and then 5: 9. */
    static const char bytes[] = "\x0b\x10\x05\x1b\x22\x01x\x1c\x0c\x28\x09";
    orr_wire w;
    orr_field f;
    uint8_t *copy = exact(bytes, sizeof bytes - 1, &w);
    CHECK(orr_wire_next(&w, &f));
    CHECK(f.number == 1 && f.type == ORR_WIRE_GROUP);
    CHECK_EQ_U(f.bytes.ptr - copy, 1);
    CHECK_EQ_U(f.bytes.len, 7);
    CHECK(orr_wire_next(&w, &f) && f.number == 5 && f.value == 9);
    CHECK(!orr_wire_next(&w, &f) && !w.why);
    free(copy);
    check_refused("\x0b\x10\x05", 3, 3, "ends inside a number"); /* never ended */
    check_refused("\x0b\x14", 2, 1, "a group ends that was not begun");
    check_refused("\x0b\x0e\x0c", 3, 1, "impossible wire type");
    check_refused("\x0b\x00\x0c", 3, 1, "impossible number");
}

TEST(test_wire__groups_may_nest_a_hundred_deep_and_no_deeper)
{
    char bytes[404];
    for (size_t deep = 99; deep <= 102; deep++) {
        memset(bytes, 0x0b, deep);
        memset(bytes + deep, 0x0c, deep);
        orr_wire w = orr_wire_of(span(bytes, 2 * deep));
        orr_field f;
        CHECK_EQ(orr_wire_next(&w, &f), deep <= ORR_WIRE_MAX_DEPTH);
        if (deep > ORR_WIRE_MAX_DEPTH)
            CHECK(w.at == (const uint8_t *)bytes + 100 && strstr(w.why, "100 deep"));
    }
}

TEST(test_wire__no_bytes_lead_a_reader_outside)
{
    uint64_t seed = 1;
    uint8_t noise[40];
    for (unsigned round = 0; round < 20000; round++) {
        const size_t n = next_random(&seed) % sizeof noise;
        for (size_t i = 0; i < n; i++)
            noise[i] = (uint8_t)(next_random(&seed) % (round % 2 ? 256 : 32));
        orr_wire w;
        orr_field f;
        uint8_t *copy = exact(noise, n, &w);
        while (orr_wire_next(&w, &f))
            CHECK(f.type != ORR_WIRE_LEN || f.bytes.ptr + f.bytes.len <= w.end);
        CHECK(w.at >= copy && w.at <= copy + n);
        free(copy);
    }
}

TEST(test_wire__zigzag_folds_the_sign_into_the_lowest_bit)
{
    CHECK_EQ_U(orr_zigzag(0), 0);
    CHECK_EQ_U(orr_zigzag(-1), 1);
    CHECK_EQ_U(orr_zigzag(1), 2);
    CHECK_EQ_U(orr_zigzag(INT64_MAX), UINT64_MAX - 1);
    CHECK_EQ_U(orr_zigzag(INT64_MIN), UINT64_MAX);
    const int64_t values[] = {0, 1, -1, 63, -64, INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        CHECK_EQ(orr_unzigzag(orr_zigzag(values[i])), values[i]);
}

/* By the definition: decode a character, then ask whether its value may be written with that many
 * bytes. */
static size_t first_bad(const uint8_t *p, size_t n)
{
    size_t i = 0;
    while (i < n) {
        const uint8_t c = p[i];
        const size_t more = c < 0x80       ? 0
                            : c >> 5 == 6  ? 1
                            : c >> 4 == 14 ? 2
                            : c >> 3 == 30 ? 3
                                           : 9;
        static const uint32_t least[4] = {0, 0x80, 0x800, 0x10000};
        if (more == 9 || n - i <= more)
            return i;
        uint32_t v = more == 0 ? c : c & (0x3fu >> more);
        for (size_t k = 1; k <= more; k++) {
            if (p[i + k] >> 6 != 2)
                return i;
            v = v << 6 | (p[i + k] & 0x3f);
        }
        if (v < least[more] || v > 0x10ffff || (v >= 0xd800 && v < 0xe000))
            return i;
        i += more + 1;
    }
    return n;
}

static void check_utf8(const uint8_t *p, size_t n)
{
    const size_t want = first_bad(p, n);
    const uint8_t *bad = orr_utf8_bad(p, n);
    CHECK_EQ(orr_is_utf8(p, n), want == n);
    CHECK_EQ_U(bad ? (size_t)(bad - p) : n, want);
}

TEST(test_wire__utf8_is_what_the_definition_says)
{
    /* All of one to three bytes, and four bytes at the edges of every range. */
    static const uint8_t edges[] = {0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff};
    uint8_t p[4];
    for (unsigned v = 0; v<1u << 24; v += v> 0xffff ? 6 : 1) {
        p[0] = (uint8_t)v, p[1] = (uint8_t)(v >> 8), p[2] = (uint8_t)(v >> 16);
        check_utf8(p, v > 0xffff ? 3 : v > 0xff ? 2 : 1);
    }
    for (unsigned first = 0xe0; first < 0x100; first++)
        for (unsigned k = 0; k < 1000; k++) {
            p[0] = (uint8_t)first, p[1] = edges[k % 10], p[2] = edges[k / 10 % 10],
            p[3] = edges[k / 100];
            check_utf8(p, 4);
        }
}

TEST(test_wire__bad_utf8_is_found_wherever_it_stands)
{
    /* The fast path looks at eight bytes at a time: every length and place around it. */
    for (size_t n = 1; n <= 26; n++)
        for (size_t at = 0; at < n; at++) {
            uint8_t *text = malloc(n);
            CHECK(text != NULL);
            memset(text, 'a', n);
            text[at] = 0xff;
            CHECK(!orr_is_utf8(text, n));
            CHECK_EQ_U(orr_utf8_bad(text, n) - text, at);
            text[at] = 0xc3; /* a good character, unless it is cut off */
            if (at + 1 < n)
                text[at + 1] = 0xa9;
            CHECK_EQ(orr_is_utf8(text, n), at + 1 < n);
            free(text);
        }
    CHECK(orr_is_utf8((const uint8_t *)"", 0));
}

TEST(test_wire__a_length_is_put_in_front_afterwards)
{
    static const size_t sizes[] = {0, 1, 127, 128, 16383, 16384, 100000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        orr_buf b = {0};
        uint64_t len = 0;
        uint8_t *bytes = some_bytes(sizes[i]);
        orr_buf_text(&b, "head");
        const size_t begin = orr_put_begin(&b);
        orr_buf_add(&b, bytes, sizes[i]);
        orr_put_end(&b, begin);
        CHECK_BYTES(b.ptr, "head", 4);
        orr_wire w = orr_wire_of(span(b.ptr + 4, b.len - 4));
        CHECK(orr_wire_varint(&w, &len));
        CHECK_EQ_U(len, sizes[i]);
        CHECK_EQ_U(w.end - w.at, sizes[i]);
        CHECK_BYTES(w.at, bytes, sizes[i]);
        free(bytes);
        orr_buf_fini(&b);
    }
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_wire__varints_have_the_length_and_bytes_of_the_format),
        RUN(test_wire__a_cut_varint_is_refused_at_its_start),
        RUN(test_wire__ten_bytes_are_a_number_and_eleven_are_not),
        RUN(test_wire__fields_come_with_number_type_and_value),
        RUN(test_wire__damage_is_named_with_its_byte),
        RUN(test_wire__groups_are_stepped_over_whole),
        RUN(test_wire__groups_may_nest_a_hundred_deep_and_no_deeper),
        RUN(test_wire__no_bytes_lead_a_reader_outside),
        RUN(test_wire__zigzag_folds_the_sign_into_the_lowest_bit),
        RUN(test_wire__utf8_is_what_the_definition_says),
        RUN(test_wire__bad_utf8_is_found_wherever_it_stands),
        RUN(test_wire__a_length_is_put_in_front_afterwards),
    };
    return RUN_ALL(tests);
}
