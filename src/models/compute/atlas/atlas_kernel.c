/* SPDX-License-Identifier: Apache-2.0 */
/* atlas_kernel.c - a kernel as text, and its FLOPs and bytes.
 *
 * The text is read once per operator of a trace, so it is parsed in one pass without allocating.
 * Sizes are limited to 2^40 and everything derived from them is a double: no product of sizes can
 * overflow.  Kernels are written in canonical order, so equal kernels have equal texts. */
#include "models/compute/atlas/atlas.h"

#include "base/arithmetic.h"
#include "base/dtypes.h"
#include "base/text/number.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define MOST_SIZE (1ull << 40)
#define MOST_BYTES (1ull << 50)

typedef struct size_key {
    const char *key;
    size_t at;
    uint64_t most;
} size_key;

/* In the order in which they are written. */
enum {
    SIZE_BATCH,
    SIZE_HEADS,
    SIZE_KV_HEADS,
    SIZE_HEAD,
    SIZE_HEAD_V,
    SIZE_Q,
    SIZE_KV,
    SIZE_M,
    SIZE_N,
    SIZE_K,
    SIZE_GROUPS,
    SIZE_TOPK,
    SIZE_READ,
    SIZE_WRITE,
    SIZE_SIDE,
    SIZE_WINDOW,
    SIZE_STRIDE,
    SIZE_DIMS,
    SIZE_COUNT,
    SIZE_PIECES,
    SIZE_OPS,
    SIZES
};

#define AT(field) offsetof(orr_kernel, field)
static const size_key size_keys[SIZES] = {
    [SIZE_BATCH] = {"batch", AT(batch), MOST_SIZE},
    [SIZE_HEADS] = {"heads", AT(heads), MOST_SIZE},
    [SIZE_KV_HEADS] = {"kv_heads", AT(kv_heads), MOST_SIZE},
    [SIZE_HEAD] = {"head", AT(head), MOST_SIZE},
    [SIZE_HEAD_V] = {"head_v", AT(head_v), MOST_SIZE},
    [SIZE_Q] = {"q", AT(q), MOST_SIZE},
    [SIZE_KV] = {"kv", AT(kv), MOST_SIZE},
    [SIZE_M] = {"m", AT(m), MOST_SIZE},
    [SIZE_N] = {"n", AT(n), MOST_SIZE},
    [SIZE_K] = {"k", AT(k), MOST_SIZE},
    [SIZE_GROUPS] = {"groups", AT(groups), MOST_SIZE},
    [SIZE_TOPK] = {"topk", AT(topk), MOST_SIZE},
    [SIZE_READ] = {"read", AT(read), MOST_BYTES},
    [SIZE_WRITE] = {"write", AT(write), MOST_BYTES},
    [SIZE_SIDE] = {"side", AT(side), MOST_SIZE},
    [SIZE_WINDOW] = {"window", AT(window), MOST_SIZE},
    [SIZE_STRIDE] = {"stride", AT(stride), MOST_SIZE},
    [SIZE_DIMS] = {"dims", AT(dims), MOST_SIZE},
    [SIZE_COUNT] = {"count", AT(count), MOST_SIZE},
    [SIZE_PIECES] = {"pieces", AT(pieces), MOST_SIZE},
    [SIZE_OPS] = {"ops", AT(ops), MOST_SIZE},
};

typedef struct flag_word {
    const char *word;
    size_t at;
} flag_word;

enum {
    FLAG_BACKWARD,
    FLAG_CAUSAL,
    FLAG_UNFUSED,
    FLAG_GATED,
    FLAG_STRIDED,
    FLAG_ACCUMULATE,
    FLAG_COLD,
    FLAG_TURNED,
    FLAG_CAST,
    FLAGS
};

static const flag_word flag_words[FLAGS] = {
    [FLAG_BACKWARD] = {"backward", AT(is_backward)},
    [FLAG_CAUSAL] = {"causal", AT(is_causal)},
    [FLAG_UNFUSED] = {"unfused", AT(is_unfused)},
    [FLAG_GATED] = {"gated", AT(is_gated)},
    [FLAG_STRIDED] = {"strided", AT(is_strided)},
    [FLAG_ACCUMULATE] = {"accumulate", AT(accumulates)},
    [FLAG_COLD] = {"cold", AT(is_cold)},
    [FLAG_TURNED] = {"turned", AT(is_turned)},
    [FLAG_CAST] = {"cast", AT(casts)},
};

static const char *const form_words[ORR_KERNEL_FORMS] = {
    [ORR_FORM_PLAIN] = "",
    [ORR_FORM_BIAS] = "bias",
    [ORR_FORM_GELU] = "gelu",
    [ORR_FORM_RELU] = "relu",
    [ORR_FORM_SILU] = "silu",
    [ORR_FORM_RMS] = "rms",
    [ORR_FORM_LAYER] = "layer",
    [ORR_FORM_CHANNELS] = "channels",
    [ORR_FORM_FUSED] = "fused",
    [ORR_FORM_FOREACH] = "foreach",
    [ORR_FORM_CLIP] = "clip",
    [ORR_FORM_ROWS] = "rows",
    [ORR_FORM_ALL] = "all",
    [ORR_FORM_COLUMNS] = "columns",
    [ORR_FORM_H2D] = "h2d",
    [ORR_FORM_D2H] = "d2h",
    [ORR_FORM_LOG] = "log",
    [ORR_FORM_PAGED] = "paged",
    [ORR_FORM_QUANTIZE] = "quantize",
    [ORR_FORM_JOINED] = "joined",
    [ORR_FORM_SCATTER] = "scatter",
    [ORR_FORM_CACHE] = "cache",
    [ORR_FORM_MIXED] = "mixed",
};

static const char *const layout_words[] = {"nt", "nn", "tn"};

static const orr__dtype_id type_rows[ORR_KERNEL_TYPES] = {
    [ORR_TYPE_BF16] = ORR__BF16,   [ORR_TYPE_FP16] = ORR__FP16,
    [ORR_TYPE_FP32] = ORR__FP32,   [ORR_TYPE_TF32] = ORR__TF32,
    [ORR_TYPE_FP8] = ORR__FP8,     [ORR_TYPE_FP8_BLOCK] = ORR__FP8_BLOCK,
    [ORR_TYPE_MXFP8] = ORR__MXFP8, [ORR_TYPE_NVFP4] = ORR__NVFP4,
    [ORR_TYPE_MXFP4] = ORR__MXFP4, [ORR_TYPE_INT8] = ORR__INT8,
    [ORR_TYPE_W8A16] = ORR__W8A16, [ORR_TYPE_W4A16] = ORR__W4A16,
    [ORR_TYPE_FP64] = ORR__FP64,
};

#define BIT(i) (1u << (i))
#define FORM2(a, b) (BIT(a) | BIT(b))
#define FORM3(a, b, c) (BIT(a) | BIT(b) | BIT(c))
#define SOME (BIT(SIZE_COUNT))
#define INDEXED (BIT(FLAG_STRIDED) | BIT(FLAG_TURNED) | BIT(FLAG_CAST))

typedef struct kind_row {
    const char *name;
    uint32_t needs, takes, forms, flags;
    bool has_layout;
} kind_row;

static const kind_row kind_rows[ORR_KERNEL_KINDS] = {
    [ORR_KERNEL_LAUNCH] = {"launch", 0, SOME, 0, 0, false},
    [ORR_KERNEL_GEMM] = {"gemm", BIT(SIZE_M) | BIT(SIZE_N) | BIT(SIZE_K),
                         SOME | BIT(SIZE_BATCH) | BIT(SIZE_PIECES),
                         FORM3(ORR_FORM_BIAS, ORR_FORM_GELU, ORR_FORM_RELU) |
                             BIT(ORR_FORM_QUANTIZE),
                         BIT(FLAG_ACCUMULATE), true},
    [ORR_KERNEL_GROUPED] = {"grouped", BIT(SIZE_M) | BIT(SIZE_N) | BIT(SIZE_K) | BIT(SIZE_GROUPS),
                            SOME, BIT(ORR_FORM_BIAS), BIT(FLAG_ACCUMULATE), true},
    [ORR_KERNEL_MOE] = {"moe",
                        BIT(SIZE_M) | BIT(SIZE_N) | BIT(SIZE_K) | BIT(SIZE_GROUPS) | BIT(SIZE_TOPK),
                        SOME, 0, 0, false},
    [ORR_KERNEL_ATTENTION] = {"attention", BIT(SIZE_HEADS) | BIT(SIZE_HEAD) | BIT(SIZE_Q),
                              SOME | BIT(SIZE_BATCH) | BIT(SIZE_KV_HEADS) | BIT(SIZE_HEAD_V) |
                                  BIT(SIZE_KV) | BIT(SIZE_WINDOW),
                              BIT(ORR_FORM_PAGED),
                              BIT(FLAG_BACKWARD) | BIT(FLAG_CAUSAL) | BIT(FLAG_UNFUSED), false},
    [ORR_KERNEL_DECODE] = {"decode", BIT(SIZE_HEADS) | BIT(SIZE_HEAD) | BIT(SIZE_KV),
                           SOME | BIT(SIZE_BATCH) | BIT(SIZE_KV_HEADS) | BIT(SIZE_HEAD_V) |
                               BIT(SIZE_Q) | BIT(SIZE_WINDOW),
                           FORM2(ORR_FORM_PAGED, ORR_FORM_MIXED), 0, false},
    [ORR_KERNEL_NORM] = {"norm", BIT(SIZE_M) | BIT(SIZE_N), SOME,
                         FORM3(ORR_FORM_RMS, ORR_FORM_LAYER, ORR_FORM_CHANNELS), BIT(FLAG_BACKWARD),
                         false},
    [ORR_KERNEL_SOFTMAX] = {"softmax", BIT(SIZE_M) | BIT(SIZE_N), SOME, BIT(ORR_FORM_LOG),
                            BIT(FLAG_BACKWARD) | BIT(FLAG_CAUSAL), false},
    [ORR_KERNEL_CROSS_ENTROPY] = {"cross_entropy", BIT(SIZE_M) | BIT(SIZE_N), SOME, 0,
                                  BIT(FLAG_BACKWARD), false},
    [ORR_KERNEL_ACTIVATION] = {"activation", BIT(SIZE_M), SOME | BIT(SIZE_DIMS),
                               FORM3(ORR_FORM_GELU, ORR_FORM_RELU, ORR_FORM_SILU),
                               BIT(FLAG_BACKWARD) | BIT(FLAG_GATED) | INDEXED, false},
    [ORR_KERNEL_EMBEDDING] = {"embedding", BIT(SIZE_M) | BIT(SIZE_N), SOME | BIT(SIZE_K), 0,
                              BIT(FLAG_BACKWARD), false},
    [ORR_KERNEL_ELEMENTWISE] = {"elementwise", 0,
                                SOME | BIT(SIZE_READ) | BIT(SIZE_WRITE) | BIT(SIZE_DIMS) |
                                    BIT(SIZE_OPS),
                                0, INDEXED, false},
    [ORR_KERNEL_DROPOUT] = {"dropout", BIT(SIZE_M), SOME, 0, BIT(FLAG_BACKWARD), false},
    [ORR_KERNEL_COPY] = {"copy", BIT(SIZE_WRITE), SOME | BIT(SIZE_READ) | BIT(SIZE_DIMS),
                         FORM3(ORR_FORM_H2D, ORR_FORM_D2H, ORR_FORM_JOINED) | BIT(ORR_FORM_CACHE),
                         INDEXED, false},
    [ORR_KERNEL_FILL] = {"fill", BIT(SIZE_WRITE), SOME, 0, BIT(FLAG_STRIDED), false},
    [ORR_KERNEL_REDUCE] = {"reduce", BIT(SIZE_M) | BIT(SIZE_N), SOME,
                           FORM3(ORR_FORM_ROWS, ORR_FORM_COLUMNS, ORR_FORM_ALL), 0, false},
    [ORR_KERNEL_GATHER] = {"gather", BIT(SIZE_M) | BIT(SIZE_N), SOME | BIT(SIZE_K),
                           BIT(ORR_FORM_SCATTER), BIT(FLAG_BACKWARD), false},
    [ORR_KERNEL_ROPE] = {"rope", BIT(SIZE_M) | BIT(SIZE_N), SOME, 0,
                         BIT(FLAG_BACKWARD) | BIT(FLAG_UNFUSED), false},
    [ORR_KERNEL_OPTIMIZER] = {"optimizer", BIT(SIZE_M), SOME | BIT(SIZE_K),
                              FORM3(ORR_FORM_FUSED, ORR_FORM_FOREACH, ORR_FORM_CLIP), 0, false},
    [ORR_KERNEL_TOPK] = {"topk", BIT(SIZE_M) | BIT(SIZE_N) | BIT(SIZE_TOPK), SOME, 0, 0, false},
    [ORR_KERNEL_SORT] = {"sort", BIT(SIZE_M), SOME, 0, 0, false},
    [ORR_KERNEL_SCAN] = {"scan", BIT(SIZE_M) | BIT(SIZE_N), SOME, BIT(ORR_FORM_COLUMNS), 0, false},
    [ORR_KERNEL_CONV] = {"conv",
                         BIT(SIZE_BATCH) | BIT(SIZE_N) | BIT(SIZE_K) | BIT(SIZE_SIDE) |
                             BIT(SIZE_WINDOW),
                         SOME | BIT(SIZE_STRIDE) | BIT(SIZE_GROUPS), 0, BIT(FLAG_BACKWARD), false},
    [ORR_KERNEL_POOL] = {"pool", BIT(SIZE_BATCH) | BIT(SIZE_K) | BIT(SIZE_SIDE),
                         SOME | BIT(SIZE_STRIDE), 0, BIT(FLAG_BACKWARD), false},
};

static uint64_t size_of(const orr_kernel *k, unsigned i)
{
    uint64_t value;
    memcpy(&value, (const char *)k + size_keys[i].at, sizeof value);
    return value;
}

static bool flag_of(const orr_kernel *k, unsigned i)
{
    bool value;
    memcpy(&value, (const char *)k + flag_words[i].at, sizeof value);
    return value;
}

const char *orr_kernel_kind_name(orr_kernel_kind kind)
{
    return (unsigned)kind < ORR_KERNEL_KINDS ? kind_rows[kind].name : "?";
}

const char *orr_kernel_type_name(orr_kernel_type type)
{
    return (unsigned)type < ORR_KERNEL_TYPES ? orr__dtype_of(type_rows[type])->name : "?";
}

double orr_kernel_type_bytes(orr_kernel_type type)
{
    if ((unsigned)type >= ORR_KERNEL_TYPES)
        return 0;
    const orr__dtype_row *row = orr__dtype_of(type_rows[type]);
    return (row->bits + row->scale_bits) / 8;
}

bool orr_kernel_type_find(orr_str name, orr_kernel_type *out)
{
    for (unsigned i = 0; i < ORR_KERNEL_TYPES; i++) {
        if (orr_str_is(name, orr__dtype_of(type_rows[i])->name)) {
            *out = (orr_kernel_type)i;
            return true;
        }
    }
    return false;
}

/* ---- from text ---- */

/* Most words differ in their first letter. */
static bool is_word(orr_str s, const char *word)
{
    size_t i = 0;
    while (i < s.len && word[i] == s.ptr[i] && word[i])
        i++;
    return i == s.len && !word[i];
}

typedef struct word_reader {
    orr_str text;
    size_t at;
    orr_str word; /* the last one */
} word_reader;

static bool next_word(word_reader *r)
{
    while (r->at < r->text.len && r->text.ptr[r->at] == ' ')
        r->at++;
    const size_t start = r->at;
    while (r->at < r->text.len && r->text.ptr[r->at] != ' ')
        r->at++;
    r->word = (orr_str){r->text.ptr + start, r->at - start};
    return r->word.len > 0;
}

static orr_code fail_word(const word_reader *r, orr_error *err, const char *what)
{
    enum { SHOWN = 60 };
    const size_t column = (size_t)(r->word.ptr - r->text.ptr) + 1;
    const orr_where w = orr_where_line("kernel", 1, column < UINT32_MAX ? (uint32_t)column : 1);
    return orr_fail(err, ORR_EINPUT, &w, "\"%.*s\": %s",
                    (int)(r->word.len < SHOWN ? r->word.len : SHOWN), r->word.ptr, what);
}

static bool parse_size(orr_str digits, uint64_t most, uint64_t *out)
{
    uint64_t value = 0;
    if (digits.len == 0 || digits.len > 16)
        return false;
    for (size_t i = 0; i < digits.len; i++) {
        if (!orr_is_digit(digits.ptr[i]))
            return false;
        value = value * 10 + (uint64_t)(digits.ptr[i] - '0');
    }
    *out = value;
    return value >= 1 && value <= most;
}

static orr_code take_size(const word_reader *r, orr_kernel *k, size_t equals, orr_error *err)
{
    const kind_row *row = &kind_rows[k->kind];
    const orr_str key = {r->word.ptr, equals};
    const orr_str digits = {r->word.ptr + equals + 1, r->word.len - equals - 1};
    for (unsigned i = 0; i < SIZES; i++) {
        uint64_t value;
        if (!is_word(key, size_keys[i].key))
            continue;
        if (!((row->needs | row->takes) & BIT(i)))
            return fail_word(r, err, "this kind of kernel has no such size");
        if (size_of(k, i))
            return fail_word(r, err, "is given twice");
        if (!parse_size(digits, size_keys[i].most, &value))
            return fail_word(r, err, "expected a whole number from 1 on, at most 2^40");
        memcpy((char *)k + size_keys[i].at, &value, sizeof value);
        return ORR_OK;
    }
    return fail_word(r, err, "no such size");
}

static orr_code take_word(const word_reader *r, orr_kernel *k, bool *has_layout, orr_error *err)
{
    const kind_row *row = &kind_rows[k->kind];
    const char *equals = memchr(r->word.ptr, '=', r->word.len);
    if (equals)
        return take_size(r, k, (size_t)(equals - r->word.ptr), err);
    for (unsigned i = 0; i < FLAGS; i++) {
        if (!is_word(r->word, flag_words[i].word))
            continue;
        if (!(row->flags & BIT(i)) && i != FLAG_COLD)
            return fail_word(r, err, "this kind of kernel has no such variant");
        if (flag_of(k, i))
            return fail_word(r, err, "is given twice");
        memcpy((char *)k + flag_words[i].at, &(bool){true}, sizeof(bool));
        return ORR_OK;
    }
    for (unsigned i = 1; i < ORR_KERNEL_FORMS; i++) {
        if (!is_word(r->word, form_words[i]))
            continue;
        if (!(row->forms & BIT(i)))
            return fail_word(r, err, "this kind of kernel has no such variant");
        if (k->form != ORR_FORM_PLAIN)
            return fail_word(r, err, "is a second variant");
        k->form = (orr_kernel_form)i;
        return ORR_OK;
    }
    for (unsigned i = 0; i < sizeof layout_words / sizeof *layout_words; i++) {
        if (!is_word(r->word, layout_words[i]))
            continue;
        if (!row->has_layout || *has_layout)
            return fail_word(r, err, *has_layout ? "is a second layout" : "only products have one");
        *has_layout = true;
        k->layout = (orr_kernel_layout)i;
        return ORR_OK;
    }
    return fail_word(r, err, "expected a size (m=4096) or a variant");
}

orr_code orr_kernel_parse(orr_str text, orr_kernel *out, orr_error *err)
{
    word_reader r = {text, 0, {text.ptr, 0}};
    orr_kernel k = {.kind = ORR_KERNEL_KINDS};
    bool has_layout = false;
    if (!next_word(&r))
        return fail_word(&r, err, "expected a kernel, e.g. gemm bf16 m=4096 n=4096 k=4096");
    for (unsigned i = 0; i < ORR_KERNEL_KINDS; i++) {
        if (is_word(r.word, kind_rows[i].name))
            k.kind = (orr_kernel_kind)i;
    }
    if (k.kind == ORR_KERNEL_KINDS)
        return fail_word(&r, err, "unknown kind of kernel");
    if (!next_word(&r)) {
        if (k.kind != ORR_KERNEL_LAUNCH)
            return fail_word(&r, err, "expected a type after the kind, e.g. bf16");
    } else if (!orr_kernel_type_find(r.word, &k.type)) {
        return fail_word(&r, err, "no such type; bf16, fp16, fp32, fp8, ...");
    }
    while (next_word(&r)) {
        const orr_code code = take_word(&r, &k, &has_layout, err);
        if (code)
            return code;
    }
    const orr_code code = orr_kernel_check(&k, err);
    if (code)
        return code;
    *out = k;
    return ORR_OK;
}

orr_code orr_kernel_next(orr_str *list, orr_kernel *out, orr_error *err)
{
    if (list->len == 0)
        return ORR_END;
    const char *end = memchr(list->ptr, ';', list->len);
    const orr_str first = {list->ptr, end ? (size_t)(end - list->ptr) : list->len};
    const size_t taken = first.len + (end != NULL);
    const orr_code code = orr_kernel_parse(first, out, err);
    if (!code)
        *list = (orr_str){list->ptr + taken, list->len - taken};
    return code;
}

static orr_code fail_check(orr_error *err, const char *fmt, ...) ORR_PRINTF(2, 3);
static orr_code fail_check(orr_error *err, const char *fmt, ...)
{
    char what[120];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    const orr_where w = orr_where_line("kernel", 1, 1);
    return orr_fail(err, ORR_EINPUT, &w, "%s", what);
}

orr_code orr_kernel_check(const orr_kernel *k, orr_error *err)
{
    if ((unsigned)k->kind >= ORR_KERNEL_KINDS || (unsigned)k->type >= ORR_KERNEL_TYPES ||
        (unsigned)k->form >= ORR_KERNEL_FORMS || (unsigned)k->layout > ORR_LAYOUT_TN)
        return fail_check(err, "no such kernel");
    const kind_row *row = &kind_rows[k->kind];
    const uint64_t bits = k->batch | k->heads | k->kv_heads | k->head | k->head_v | k->q | k->kv |
                          k->m | k->n | k->k | k->groups | k->topk | k->read | k->write | k->side |
                          k->window | k->stride | k->dims | k->count | k->pieces | k->ops;
    for (uint32_t left = row->needs; left; left &= left - 1) {
        const unsigned i = (unsigned)__builtin_ctz(left);
        if (size_of(k, i) == 0)
            return fail_check(err, "%s: %s is missing", row->name, size_keys[i].key);
    }
    for (unsigned i = 0; i < SIZES && bits >= MOST_SIZE; i++)
        if (size_of(k, i) > size_keys[i].most)
            return fail_check(err, "%s: %s is above 2^40", row->name, size_keys[i].key);
    if (k->kind == ORR_KERNEL_ELEMENTWISE && k->read == 0 && k->write == 0)
        return fail_check(err, "elementwise: read or write is missing");
    if (k->ops && k->write == 0)
        return fail_check(err, "elementwise: ops need write, they are for each number written");
    return ORR_OK;
}

/* ---- to text ---- */

/* By hand, without a bounds check per character: every compute node of a generated step has such a
 * text.  Each of these returns the end of what it wrote. */
static char *put(char *at, const char *text)
{
    while (*text)
        *at++ = *text++;
    return at;
}

static char *put_word(char *at, const char *word)
{
    *at++ = ' ';
    return put(at, word);
}

/* More than all words, and all sizes at 20 digits. */
enum { ANY_TEXT = 1024 };

size_t orr_kernel_text(const orr_kernel *k, char *out, size_t size)
{
    char text[ANY_TEXT];
    char *at = put_word(put(text, orr_kernel_kind_name(k->kind)), orr_kernel_type_name(k->type));
    for (unsigned i = 0; i < SIZES; i++) {
        const uint64_t n = size_of(k, i);
        if (!n)
            continue;
        at = put_word(at, size_keys[i].key);
        *at++ = '=';
        at += orr_u64_text(n, at);
    }
    if (k->form != ORR_FORM_PLAIN && (unsigned)k->form < ORR_KERNEL_FORMS)
        at = put_word(at, form_words[k->form]);
    if (k->layout != ORR_LAYOUT_NT && k->layout <= ORR_LAYOUT_TN)
        at = put_word(at, layout_words[k->layout]);
    for (unsigned i = 0; i < FLAGS; i++)
        if (flag_of(k, i))
            at = put_word(at, flag_words[i].word);
    const size_t length = (size_t)(at - text);
    if (size) {
        const size_t fits = length < size ? length : size - 1;
        memcpy(out, text, fits);
        out[fits] = '\0';
    }
    return length;
}

/* ---- FLOPs and bytes ---- */

static double least_one(uint64_t size)
{
    return size ? (double)size : 1;
}

/* Pairs of query and key that are not masked. */
static double pairs_of(const orr_kernel *k)
{
    const double q = least_one(k->q), kv = k->kv ? (double)k->kv : q;
    double pairs = q * kv;
    if (k->is_causal) /* the last query sees all keys */
        pairs = kv >= q ? q * (kv - q) + q * (q + 1) / 2 : kv * (kv + 1) / 2;
    if (k->window && (double)k->window < kv && pairs > q * (double)k->window)
        pairs = q * (double)k->window;
    return pairs;
}

static orr_kernel_work count_product(const orr_kernel *k, double size)
{
    const double batch = least_one(k->batch), m = (double)k->m, n = (double)k->n, kk = (double)k->k;
    const double out = k->accumulates                                         ? 4
                       : k->type == ORR_TYPE_FP32 || k->type == ORR_TYPE_TF32 ? 4
                                                                              : 2;
    const bool wide =
        k->type == ORR_TYPE_W8A16 || k->type == ORR_TYPE_W4A16 || k->type == ORR_TYPE_MXFP4;
    orr_kernel_work w = {.flops = 2 * batch * m * n * kk,
                         .read = batch * (m * kk * (wide ? 2 : size) + n * kk * size),
                         .write = batch * m * n * out};
    if (k->accumulates)
        w.read += w.write;
    if (k->kind == ORR_KERNEL_GROUPED)
        w.read += (least_one(k->groups) - 1) * n * kk * size;
    return w;
}

static orr_kernel_work count_attention(const orr_kernel *k, double size)
{
    const double batch = least_one(k->batch), heads = (double)k->heads;
    const double kv_heads = k->kv_heads ? (double)k->kv_heads : heads;
    const double d = (double)k->head, dv = k->head_v ? (double)k->head_v : d;
    const double q = least_one(k->q), kv = k->kv ? (double)k->kv : q;
    const double pairs = pairs_of(k);
    const double queries = batch * q * heads * d, results = batch * q * heads * dv;
    const double keys = batch * kv * kv_heads * (d + dv);
    orr_kernel_work w = {.flops = 2 * batch * heads * pairs * (d + dv),
                         .read = (queries + keys) * size,
                         .write = results * size};
    if (k->is_backward) { /* scores again, then four products */
        w.flops = 2 * batch * heads * pairs * (3 * d + 2 * dv);
        w.read = (queries + 2 * results + keys) * size;
        w.write = (queries + keys) * size;
    }
    return w;
}

void orr_kernel_set_sides(orr_kernel *k, uint64_t side, uint64_t out_side)
{
    const uint64_t near = out_side ? (side + out_side / 2) / out_side : 1;
    k->stride = near ? near : 1;
    k->side = out_side && orr_div_up(side, k->stride) != out_side ? orr_sat_mul(out_side, k->stride)
                                                                  : side;
}

static orr_kernel_work count_conv(const orr_kernel *k, double size)
{
    const double batch = (double)k->batch, stride = least_one(k->stride);
    const double out_side = ((double)k->side + stride - 1) / stride;
    const double pixels = batch * out_side * out_side;
    const double window = (double)k->window * (double)k->window / least_one(k->groups);
    const double in = batch * (double)k->side * (double)k->side * (double)k->k * size;
    const double out = pixels * (double)k->n * size;
    const double weights = (double)k->n * (double)k->k * window * size;
    orr_kernel_work w = {.flops = 2 * pixels * (double)k->n * (double)k->k * window,
                         .read = in + weights,
                         .write = out};
    if (k->is_backward) {
        w.flops *= 2;
        w.read = in + weights + 2 * out;
        w.write = in + weights;
    }
    return w;
}

static orr_kernel_work rows_work(
    double elements, double reads, double writes, double flops, double size)
{
    return (orr_kernel_work){elements * flops, elements * reads * size, elements * writes * size};
}

static orr_kernel_work count_optimizer(const orr_kernel *k, double size)
{
    const double m = (double)k->m;
    if (k->form == ORR_FORM_CLIP)
        return rows_work(m, 2, 1, 3, size);
    return rows_work(m, 4, 3, 12, size);
}

orr_kernel_work orr_kernel_count(const orr_kernel *k)
{
    const double size = orr_kernel_type_bytes(k->type);
    const double m = (double)k->m, n = (double)k->n, mn = m * n;
    const bool back = k->is_backward;
    switch (k->kind) {
    case ORR_KERNEL_GEMM:
    case ORR_KERNEL_GROUPED:
        return count_product(k, size);
    case ORR_KERNEL_MOE: {
        const double rows = m * (double)k->topk, width = (double)k->k;
        const double used = rows < (double)k->groups ? rows : (double)k->groups;
        return (orr_kernel_work){6 * rows * n * width, used * 3 * n * width * size + m * width * 2,
                                 m * width * 2};
    }
    case ORR_KERNEL_ATTENTION:
    case ORR_KERNEL_DECODE:
        return count_attention(k, size);
    case ORR_KERNEL_NORM:
        return rows_work(mn, back ? 2 : 1, 1, back ? 14 : 7, size);
    case ORR_KERNEL_SOFTMAX:
        return rows_work(mn, back ? 2 : 1, 1, 5, size);
    case ORR_KERNEL_CROSS_ENTROPY: /* log_softmax, then a pick; backward writes every word */
        return rows_work(mn, back ? 1 : 1, 1, 5, size);
    case ORR_KERNEL_ACTIVATION:
        return rows_work(m, (k->is_gated ? 2 : 1) + back, k->is_gated && back ? 2 : 1, 8, size);
    case ORR_KERNEL_EMBEDDING:
        return (orr_kernel_work){back ? mn : 0, mn * size,
                                 (back && k->k ? (double)k->k * n : mn) * size};
    case ORR_KERNEL_ELEMENTWISE:
        return (orr_kernel_work){((double)k->read + (double)k->write) / (size > 0 ? size : 1),
                                 (double)k->read, (double)k->write};
    case ORR_KERNEL_DROPOUT: /* and a mask of bytes */
        return (orr_kernel_work){m * 4, m * (size + back), m * (size + !back)};
    case ORR_KERNEL_COPY:
        return (orr_kernel_work){0, k->read ? (double)k->read : (double)k->write, (double)k->write};
    case ORR_KERNEL_FILL:
        return (orr_kernel_work){0, 0, (double)k->write};
    case ORR_KERNEL_REDUCE:
        return (orr_kernel_work){mn, mn * size,
                                 (k->form == ORR_FORM_ALL       ? 1
                                  : k->form == ORR_FORM_COLUMNS ? n
                                                                : m) *
                                     size};
    case ORR_KERNEL_GATHER:
        return rows_work(mn, back ? 2 : 1, 1, back, size);
    case ORR_KERNEL_ROPE:
        return rows_work(mn, 1, 1, 3, size);
    case ORR_KERNEL_OPTIMIZER:
        return count_optimizer(k, size);
    case ORR_KERNEL_TOPK:
        return (orr_kernel_work){mn, mn * size, m * (double)k->topk * (size + 8)};
    case ORR_KERNEL_SORT:
        return rows_work(m, 8, 8, 1, size + 8);
    case ORR_KERNEL_SCAN:
        return rows_work(mn, 1, 1, 1, size);
    case ORR_KERNEL_CONV:
        return count_conv(k, size);
    case ORR_KERNEL_POOL: { /* and an index of 8 bytes for each result */
        const double stride = least_one(k->stride), side = (double)k->side;
        const double in = (double)k->batch * (double)k->k * side * side,
                     out = in / (stride * stride);
        return back ? (orr_kernel_work){in, out * (size + 8), in * size}
                    : (orr_kernel_work){in, in * size, out * (size + 8)};
    }
    case ORR_KERNEL_LAUNCH:
    case ORR_KERNEL_KINDS:
        break;
    }
    return (orr_kernel_work){0, 0, 0};
}
