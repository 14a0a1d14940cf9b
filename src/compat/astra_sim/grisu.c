/* SPDX-License-Identifier: Apache-2.0 */
/* grisu.c - doubles as the JSON library of ASTRA-sim prints them.
 *
 * The library uses Grisu2 (F. Loitsch, Printing floating-point numbers quickly and accurately with
 * integers, PLDI 2010, figure 9) with powers of ten in steps of 10^8: fast, and it always reads
 * back the same, but for 1 number in 1000 the text is not the shortest, and of two equally near
 * ones it is the upper.  Python and our own number.h always print the shortest and nearest.  So
 * digit-for-digit equality takes the same steps, in 64 bits, with the same rounding. */
#include "grisu.h"

#include <math.h>
#include <string.h>

/* Significands of 10^k for k = -300, -292, ..., 324, rounded to 64 bits. */
enum { LEAST_POWER = -300, POWER_STEP = 8 };
static const uint64_t powers[] = {
    0xAB70FE17C79AC6CA, 0xFF77B1FCBEBCDC4F, 0xBE5691EF416BD60C, 0x8DD01FAD907FFC3C,
    0xD3515C2831559A83, 0x9D71AC8FADA6C9B5, 0xEA9C227723EE8BCB, 0xAECC49914078536D,
    0x823C12795DB6CE57, 0xC21094364DFB5637, 0x9096EA6F3848984F, 0xD77485CB25823AC7,
    0xA086CFCD97BF97F4, 0xEF340A98172AACE5, 0xB23867FB2A35B28E, 0x84C8D4DFD2C63F3B,
    0xC5DD44271AD3CDBA, 0x936B9FCEBB25C996, 0xDBAC6C247D62A584, 0xA3AB66580D5FDAF6,
    0xF3E2F893DEC3F126, 0xB5B5ADA8AAFF80B8, 0x87625F056C7C4A8B, 0xC9BCFF6034C13053,
    0x964E858C91BA2655, 0xDFF9772470297EBD, 0xA6DFBD9FB8E5B88F, 0xF8A95FCF88747D94,
    0xB94470938FA89BCF, 0x8A08F0F8BF0F156B, 0xCDB02555653131B6, 0x993FE2C6D07B7FAC,
    0xE45C10C42A2B3B06, 0xAA242499697392D3, 0xFD87B5F28300CA0E, 0xBCE5086492111AEB,
    0x8CBCCC096F5088CC, 0xD1B71758E219652C, 0x9C40000000000000, 0xE8D4A51000000000,
    0xAD78EBC5AC620000, 0x813F3978F8940984, 0xC097CE7BC90715B3, 0x8F7E32CE7BEA5C70,
    0xD5D238A4ABE98068, 0x9F4F2726179A2245, 0xED63A231D4C4FB27, 0xB0DE65388CC8ADA8,
    0x83C7088E1AAB65DB, 0xC45D1DF942711D9A, 0x924D692CA61BE758, 0xDA01EE641A708DEA,
    0xA26DA3999AEF774A, 0xF209787BB47D6B85, 0xB454E4A179DD1877, 0x865B86925B9BC5C2,
    0xC83553C5C8965D3D, 0x952AB45CFA97A0B3, 0xDE469FBD99A05FE3, 0xA59BC234DB398C25,
    0xF6C69A72A3989F5C, 0xB7DCBF5354E9BECE, 0x88FCF317F22241E2, 0xCC20CE9BD35C78A5,
    0x98165AF37B2153DF, 0xE2A0B5DC971F303A, 0xA8D9D1535CE3B396, 0xFB9B7CD9A4A7443C,
    0xBB764C4CA7A44410, 0x8BAB8EEFB6409C1A, 0xD01FEF10A657842C, 0x9B10A4E5E9913129,
    0xE7109BFBA19C0C9D, 0xAC2820D9623BF429, 0x80444B5E7AA7CF85, 0xBF21E44003ACDD2D,
    0x8E679C2F5E44FF8F, 0xD433179D9C8CB841, 0x9E19DB92B4E31BA9,
};

enum {
    ALPHA = -60,
    DIGITS = 17
}; /* scaled numbers have binary exponents from ALPHA to ALPHA + 28 */

/* f * 2^e */
typedef struct scaled {
    uint64_t f;
    int e;
} scaled;

typedef struct decimal {
    char digits[DIGITS + 3];
    int count, exponent; /* value: the digits as an integer, times 10^exponent */
} decimal;

static scaled normalize(scaled x)
{
    const int shift = __builtin_clzll(x.f);
    return (scaled){x.f << shift, x.e - shift};
}

static scaled multiply(scaled a, scaled b)
{
    const unsigned __int128 p = (unsigned __int128)a.f * b.f + (UINT64_C(1) << 63);
    return (scaled){(uint64_t)(p >> 64), a.e + b.e + 64};
}

/* The cached power of ten that brings the binary exponent e into range; *k is its decimal
 * exponent. */
static scaled power_for(int e, int *k)
{
    const int f = ALPHA - e - 1;
    const int least = f * 78913 / (1 << 18) + (f > 0);
    const int place = (-LEAST_POWER + least + POWER_STEP - 1) / POWER_STEP;
    *k = LEAST_POWER + place * POWER_STEP;
    return (scaled){powers[place], (*k * 217706 >> 16) - 63}; /* floor(k log2 10) - 63 */
}

/* ---- digits ---- */

/* The digits so far are `rest` below the upper bound, the exact value is `dist` below
 * it.  Decrement the last digit while that moves it closer and keeps it within delta. */
static void approach(decimal *d, uint64_t dist, uint64_t delta, uint64_t rest, uint64_t unit)
{
    while (rest < dist && delta - rest >= unit &&
           (rest + unit < dist || dist - rest > rest + unit - dist)) {
        d->digits[d->count - 1]--;
        rest += unit;
    }
}

/* The digits of `high` before the point.  True: they suffice. */
static bool put_whole(decimal *d, scaled high, uint64_t delta, uint64_t dist)
{
    const int shift = -high.e;
    const uint64_t fraction = high.f & ((UINT64_C(1) << shift) - 1);
    uint32_t whole = (uint32_t)(high.f >> shift), unit = 1;
    int left = 1;
    for (; whole / unit >= 10; left++)
        unit *= 10;
    for (; left > 0; unit /= 10) {
        d->digits[d->count++] = (char)('0' + whole / unit);
        whole %= unit;
        left--;
        const uint64_t rest = ((uint64_t)whole << shift) + fraction;
        if (rest <= delta) {
            d->exponent += left;
            approach(d, dist, delta, rest, (uint64_t)unit << shift);
            return true;
        }
    }
    return false;
}

static void put_fraction(decimal *d, scaled high, uint64_t delta, uint64_t dist)
{
    const uint64_t one = UINT64_C(1) << -high.e;
    uint64_t fraction = high.f & (one - 1);
    do {
        fraction *= 10;
        delta *= 10;
        dist *= 10;
        d->digits[d->count++] = (char)('0' + (fraction >> -high.e));
        fraction &= one - 1;
        d->exponent--;
    } while (fraction > delta);
    approach(d, dist, delta, fraction, one);
}

/* value: finite and positive. */
static decimal digits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint64_t hidden = UINT64_C(1) << 52, f = bits & (hidden - 1);
    const int e = (int)(bits >> 52);
    const scaled v = e ? (scaled){f + hidden, e - 1075} : (scaled){f, -1074};
    /* Boundaries: half way to both neighbours; the lower one of a power of two is nearer. */
    const scaled upper = normalize((scaled){2 * v.f + 1, v.e - 1});
    const scaled below =
        f == 0 && e > 1 ? (scaled){4 * v.f - 1, v.e - 2} : (scaled){2 * v.f - 1, v.e - 1};
    const scaled lower = {below.f << (below.e - upper.e), upper.e};
    int k;
    const scaled power = power_for(upper.e, &k);
    const scaled w = multiply(normalize(v), power);
    scaled high = multiply(upper, power), low = multiply(lower, power);
    high.f--; /* one unit tighter on each side covers the rounding of the products */
    low.f++;
    decimal d = {.exponent = -k};
    if (!put_whole(&d, high, high.f - low.f, high.f - w.f))
        put_fraction(&d, high, high.f - low.f, high.f - w.f);
    return d;
}

/* ---- text ---- */

static size_t put_exponent(char *out, int e)
{
    size_t n = 0;
    out[n++] = 'e';
    out[n++] = e < 0 ? '-' : '+';
    const unsigned a = (unsigned)(e < 0 ? -e : e);
    if (a >= 100)
        out[n++] = (char)('0' + a / 100);
    out[n++] = (char)('0' + a / 10 % 10);
    out[n++] = (char)('0' + a % 10);
    return n;
}

/* 1234.5, 1200.0, 0.0012, 1.2e-05, 1e+15 */
static size_t put_decimal(const decimal *d, char *out)
{
    const int point = d->exponent + d->count;
    size_t n = 0;
    if (point > -4 && point <= 0) {
        out[n++] = '0';
        out[n++] = '.';
        for (int i = point; i < 0; i++)
            out[n++] = '0';
        memcpy(out + n, d->digits, (size_t)d->count);
        return n + (size_t)d->count;
    }
    const bool is_plain = point > 0 && point <= 15;
    const int whole = is_plain ? point : 1;
    for (int i = 0; i < whole || i < d->count; i++) {
        if (i == whole)
            out[n++] = '.';
        out[n++] = i < d->count ? d->digits[i] : '0';
    }
    if (is_plain && d->count <= whole) {
        out[n++] = '.';
        out[n++] = '0';
    }
    return is_plain ? n : n + put_exponent(out + n, point - 1);
}

size_t orr__grisu_text(double value, char out[ORR__GRISU_ROOM])
{
    size_t n = 0;
    if (!isfinite(value)) {
        memcpy(out, "null", 4);
        return 4;
    }
    if (signbit(value))
        out[n++] = '-';
    if (value == 0) {
        memcpy(out + n, "0.0", 3);
        return n + 3;
    }
    const decimal d = digits_of(fabs(value));
    return n + put_decimal(&d, out + n);
}
