/* SPDX-License-Identifier: Apache-2.0 */
/* number.cc - numbers from text and to text, on the charconv of the C++ library.
 *
 * Why C++: the C library prints and reads through the locale and cannot print the shortest digits;
 * std::to_chars and std::from_chars do both exactly, and several times faster. The digits come from
 * the library; where the point goes and when there is an exponent is decided here. */
extern "C" {
#include "number.h"
}

#include <charconv>
#include <cstring>
#include <limits>

namespace
{

/* A decimal number taken apart: 0.d1d2d3... times ten to the exp10 + 1. */
struct decimal {
    char digits[20];
    int count;
    int exp10; /* of the first digit */
    bool negative;
};

/* "-1.2345e-07" -> digits 12345, exp10 -7.  The text comes from to_chars, so its form is
 * certain. */
decimal take_apart(const char *p, const char *end)
{
    decimal d = {};
    if (*p == '-') {
        d.negative = true;
        p++;
    }
    for (; p < end && *p != 'e'; p++) {
        if (*p != '.')
            d.digits[d.count++] = *p;
    }
    p++;
    if (*p == '+')
        p++;
    std::from_chars(p, end, d.exp10);
    return d;
}

char *put_zeros(char *to, int n)
{
    memset(to, '0', static_cast<size_t>(n));
    return to + n;
}

char *put_digits(char *to, const decimal &d, int from, int to_index)
{
    const int n = to_index - from;
    memcpy(to, d.digits + from, static_cast<size_t>(n));
    return to + n;
}

char *put_plain(char *to, const decimal &d)
{
    const int before = d.exp10 + 1; /* digits in front of the point */
    if (before <= 0) {
        *to++ = '0';
        *to++ = '.';
        to = put_zeros(to, -before);
        return put_digits(to, d, 0, d.count);
    }
    if (before >= d.count) {
        to = put_digits(to, d, 0, d.count);
        to = put_zeros(to, before - d.count);
        *to++ = '.';
        *to++ = '0';
        return to;
    }
    to = put_digits(to, d, 0, before);
    *to++ = '.';
    return put_digits(to, d, before, d.count);
}

char *put_exponent(char *to, const decimal &d)
{
    *to++ = d.digits[0];
    if (d.count > 1) {
        *to++ = '.';
        to = put_digits(to, d, 1, d.count);
    }
    *to++ = 'e';
    *to++ = d.exp10 < 0 ? '-' : '+';
    const int magnitude = d.exp10 < 0 ? -d.exp10 : d.exp10;
    if (magnitude < 10)
        *to++ = '0';
    return std::to_chars(to, to + 4, magnitude).ptr;
}

size_t put_word(char *out, const char *word)
{
    const size_t n = strlen(word);
    memcpy(out, word, n);
    return n;
}

bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

const char *skip_digits(const char *p, const char *end)
{
    while (p < end && is_digit(*p))
        p++;
    return p;
}

/* What one pass over the text of a number gives.  from_chars alone would also take ".5" and
 * "5.". */
struct scanned {
    bool is_number; /* by the grammar of JSON */
    uint64_t mantissa;
    ptrdiff_t digits;   /* of the mantissa; above 19 it may have wrapped */
    ptrdiff_t fraction; /* how many of them stand behind the point */
    bool has_exponent;
};

const char *add_digits(const char *p, const char *end, uint64_t *mantissa)
{
    for (; p < end && is_digit(*p); p++)
        *mantissa = *mantissa * 10 + static_cast<uint64_t>(*p - '0');
    return p;
}

scanned scan_number(const char *p, const char *end)
{
    scanned n = {};
    if (p < end && *p == '-')
        p++;
    const char *whole = p;
    p = add_digits(p, end, &n.mantissa);
    n.digits = p - whole;
    if (p == whole || (*whole == '0' && n.digits > 1))
        return n;
    if (p < end && *p == '.') {
        const char *fraction = ++p;
        p = add_digits(p, end, &n.mantissa);
        n.fraction = p - fraction;
        n.digits += n.fraction;
        if (n.fraction == 0)
            return n;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        n.has_exponent = true;
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        const char *exponent = p;
        p = skip_digits(p, end);
        if (p == exponent)
            return n;
    }
    n.is_number = p == end;
    return n;
}

/* Most numbers in traces: up to 2^53 over a power of ten that is itself exact.  Both are doubles
 * without error, so their quotient is rounded once, as it must be.  (Clinger 1990, "How to read
 * floating point numbers accurately", the fast path.) */
bool is_exact(const scanned &n)
{
    return !n.has_exponent && n.digits <= 19 && n.fraction <= 22 &&
           n.mantissa <= (uint64_t(1) << 53);
}

/* A number too far from one for a double: is it too large (and not too small)?  It is, when its
 * first digit that counts stands, after the exponent has moved it, in front of the point. */
bool is_too_large(const char *p, const char *end)
{
    long long place = 0; /* of the first digit that is not zero */
    bool seen = false, past_point = false;
    for (; p < end && *p != 'e' && *p != 'E'; p++) {
        if (*p == '.')
            past_point = true;
        else if (is_digit(*p) && !seen && *p != '0')
            seen = true;
        if (*p != '.' && is_digit(*p) && (seen ? !past_point : past_point))
            place += past_point ? -1 : 1;
    }
    if (p == end)
        return place > 0;
    p++;
    const bool negative = *p == '-';
    if (*p == '+' || *p == '-')
        p++;
    long long exponent = 0;
    if (std::from_chars(p, end, exponent).ec != std::errc())
        return !negative;
    return negative ? place > exponent : place > -exponent;
}

bool text_word(orr_str s, double *out)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {
        {"inf", std::numeric_limits<double>::infinity()},
        {"-inf", -std::numeric_limits<double>::infinity()},
        {"nan", std::numeric_limits<double>::quiet_NaN()},
        {"Infinity", std::numeric_limits<double>::infinity()},
        {"-Infinity", -std::numeric_limits<double>::infinity()},
        {"NaN", std::numeric_limits<double>::quiet_NaN()},
    };
    for (const auto &w : words) {
        if (strlen(w.word) == s.len && memcmp(w.word, s.ptr, s.len) == 0) {
            *out = w.value;
            return true;
        }
    }
    return false;
}

template <class T> bool text_integer(const char *p, const char *end, T *out)
{
    T value;
    const auto r = std::from_chars(p, end, value);
    if (r.ec != std::errc() || r.ptr != end)
        return false;
    *out = value;
    return true;
}

} // namespace

size_t orr_double_text(double v, char out[ORR_NUMBER_ROOM])
{
    if (v != v)
        return put_word(out, "nan");
    if (v - v != 0)
        return put_word(out, v < 0 ? "-inf" : "inf");
    char text[32];
    const auto r = std::to_chars(text, text + sizeof text, v, std::chars_format::scientific);
    const decimal d = take_apart(text, r.ptr);
    char *to = out;
    if (d.negative)
        *to++ = '-';
    to = d.exp10 < -4 || d.exp10 >= 16 ? put_exponent(to, d) : put_plain(to, d);
    return static_cast<size_t>(to - out);
}

/* Not the shortest digits of all, but the first of six to nine digits that read back as the same
 * float: what the Python protobuf library prints, and so what every reference file holds. */
size_t orr_float_text(float v, char out[ORR_NUMBER_ROOM])
{
    if (v != v || v - v != 0)
        return orr_double_text(v, out);
    double value = v;
    for (int precision = 6; precision <= 9; precision++) {
        char text[32];
        const auto r = std::to_chars(text, text + sizeof text, double(v),
                                     std::chars_format::general, precision);
        std::from_chars(text, r.ptr, value);
        if (static_cast<float>(value) == v)
            break;
    }
    return orr_double_text(value, out);
}

size_t orr_u64_text(uint64_t v, char out[ORR_U64_ROOM])
{
    return static_cast<size_t>(std::to_chars(out, out + ORR_U64_ROOM, v).ptr - out);
}

bool orr_text_u64(orr_str s, uint64_t *out)
{
    return s.len && is_digit(*s.ptr) && text_integer(s.ptr, s.ptr + s.len, out);
}

bool orr_text_i64(orr_str s, int64_t *out)
{
    if (!s.len)
        return false;
    const char *p = s.ptr, *end = s.ptr + s.len;
    if (*p == '+')
        p++;
    return p < end && (is_digit(*p) || p == s.ptr) && text_integer(p, end, out);
}

bool orr_text_double(orr_str s, double *out)
{
    if (!s.len)
        return false;
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char *end = s.ptr + s.len;
    const scanned n = scan_number(s.ptr, end);
    if (!n.is_number)
        return text_word(s, out);
    double value;
    if (is_exact(n)) {
        value = static_cast<double>(n.mantissa) / powers[n.fraction];
        *out = *s.ptr == '-' ? -value : value;
        return true;
    }
    const auto r = std::from_chars(s.ptr, end, value);
    if (r.ec == std::errc::result_out_of_range) {
        value = is_too_large(s.ptr, end) ? std::numeric_limits<double>::infinity() : 0.0;
        value = *s.ptr == '-' ? -value : value;
    } else if (r.ec != std::errc()) {
        return false;
    }
    *out = value;
    return true;
}
