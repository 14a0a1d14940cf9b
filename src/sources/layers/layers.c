/* SPDX-License-Identifier: Apache-2.0 */
/* layers.c - the table of layers: built and read row by row.
 *
 * All texts are copied into one arena, so a table does not depend on the file or the program it
 * came from. Cost: a row is one array element and its texts; nothing is looked up by name. */
#include "base/io/input.h"
#include "base/io/output.h"
#include "base/text/number.h"
#include "base/text/text.h"
#include "layers_impl.h"

#include <inttypes.h>

/* The text workload of ASTRA-sim 1.0 into a table of layers (docs/format/text.md).
 *
 * The file is read by lines, although its first reader read words: so a thirteenth column needs no
 * special rule, and errors have a line.  White space and line ends are as in Python's split and
 * open, because the converter most of these files were made for was written in Python.
 *
 * Cost: one walk over the bytes; nothing is allocated but for lines that exist. */

enum { COLUMNS = 12, WORDS_KEPT = 13, SHOWN = 60 };

typedef struct word {
    orr_str text;
    uint32_t column;
} word;

/* The current line; of long ones only the meaningful words are kept. */
typedef struct line {
    word words[WORDS_KEPT];
    size_t count;         /* of all words */
    const char *at, *end; /* the line's bytes, for the header, whose words have no fixed number */
    uint32_t number;
} line;

typedef struct reader {
    const char *label;
    const char *at, *end;
    uint32_t number; /* of the next line */
    const orr_rules_layers *rules;
    orr_layers *table;
    orr_error *err;
} reader;

/* ---- lines and words ---- */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= 0x1f);
}

static uint32_t column_of(const line *l, const char *p)
{
    const size_t n = (size_t)(p - l->at);
    return n < UINT32_MAX ? (uint32_t)n + 1 : UINT32_MAX;
}

/* The word at or behind *p; false at the end of the line. */
static bool next_word(const line *l, const char **p, word *out)
{
    while (*p < l->end && is_space(**p))
        (*p)++;
    const char *from = *p;
    while (*p < l->end && !is_space(**p))
        (*p)++;
    *out = (word){{from, (size_t)(*p - from)}, column_of(l, from)};
    return *p > from;
}

static void split(line *l)
{
    const char *p = l->at;
    word w;
    for (l->count = 0; next_word(l, &p, &w); l->count++) {
        if (l->count < WORDS_KEPT)
            l->words[l->count] = w;
    }
}

/* A line ends with \n, \r\n or \r. */
static const char *line_end(const char *p, const char *end)
{
    while (p < end && *p != '\n' && *p != '\r')
        p++;
    return p;
}

static bool take_line(reader *r, line *l)
{
    if (r->at == r->end)
        return false;
    l->at = r->at;
    l->end = line_end(r->at, r->end);
    l->number = r->number;
    r->number += r->number < UINT32_MAX;
    r->at = l->end;
    if (r->at < r->end)
        r->at += r->at[0] == '\r' && r->end - r->at > 1 && r->at[1] == '\n' ? 2 : 1;
    split(l);
    return true;
}

/* The next line with content: blank ones and comments are skipped, unless the old converter's rules
 * treat them like any line. */
static bool next_line(reader *r, line *l)
{
    while (take_line(r, l)) {
        if (r->rules->reads_loosely || (l->count > 0 && l->words[0].text.ptr[0] != '#'))
            return true;
    }
    return false;
}

/* ---- errors ---- */

static orr_where place(const reader *r, const line *l, uint32_t column)
{
    return orr_where_line(r->label, l->number, column);
}

static orr_code missing(const reader *r, const line *l, const char *what)
{
    return orr_fail(r->err, ORR_EINPUT, ORR_AT(place(r, l, column_of(l, l->end))),
                    "the line ends where %s is expected", what);
}

static orr_code bad_word(const reader *r, const line *l, const word *w, const char *expected)
{
    return orr_fail(r->err, ORR_EINPUT, ORR_AT(place(r, l, w->column)), "'%.*s' is not %s",
                    ORR_SHOWN(w->text, SHOWN), expected);
}

/* ---- numbers ---- */

static bool is_digits(orr_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
    }
    return s.len > 0;
}

/* Why a word is not the expected number; the message is built only if needed. */
static orr_code number_error(
    const reader *r, const line *l, const word *w, const char *what, const char *why)
{
    return orr_fail(r->err, ORR_EINPUT, ORR_AT(place(r, l, w->column)), "%s '%.*s' is %s", what,
                    ORR_SHOWN(w->text, SHOWN), why);
}

static orr_code read_number(
    const reader *r, const line *l, const word *w, const char *what, uint64_t max, uint64_t *out)
{
    orr_str s = w->text;
    const bool is_negative = s.len > 1 && s.ptr[0] == '-';
    if (s.len > 1 && (s.ptr[0] == '+' || is_negative))
        s = (orr_str){s.ptr + 1, s.len - 1};
    if (!is_digits(s))
        return number_error(r, l, w, what, "not a whole number");
    *out = 0;
    const bool fits = orr_text_u64(s, out) && *out <= max;
    if (is_negative && (!fits || *out > 0))
        return number_error(r, l, w, what, "negative");
    if (!fits)
        return number_error(r, l, w, what,
                            max == INT64_MAX ? "larger than 9223372036854775807"
                                             : "larger than 18446744073709551615");
    return ORR_OK;
}

/* ---- the first line ---- */

/* A walk along the words of the header. */
typedef struct header {
    const reader *r;
    const line *l;
    const char *at;
} header;

static orr_code header_number(header *h, const char *what, uint64_t *out)
{
    word w;
    if (!next_word(h->l, &h->at, &w))
        return missing(h->r, h->l, what);
    return read_number(h->r, h->l, &w, what, UINT64_MAX, out);
}

/* "checkpoints:" and similar: the word itself never mattered, but a number means that a label is
 * missing. */
static orr_code header_label(header *h, const char *what)
{
    word w;
    if (!next_word(h->l, &h->at, &w))
        return missing(h->r, h->l, what);
    return is_digits(w.text) ? bad_word(h->r, h->l, &w, what) : ORR_OK;
}

static orr_code header_u32(header *h, const char *what, uint32_t *out)
{
    uint64_t v;
    const orr_code code = header_number(h, what, &v);
    if (!code) /* larger numbers are those of no layer and no group either */
        *out = v < UINT32_MAX ? (uint32_t)v : UINT32_MAX;
    return code;
}

/* A number and as many layers.  Each takes at least two bytes of the line, so the number cannot ask
 * for more memory than the file has bytes. */
static orr_code header_list(header *h, const char *label, const uint32_t **list, size_t *count)
{
    uint64_t n;
    orr_code code = header_label(h, label);
    if (code || (code = header_number(h, "the length of the list", &n)))
        return code;
    if (n > (uint64_t)(h->l->end - h->at))
        return orr_fail(h->r->err, ORR_EINPUT, ORR_AT(place(h->r, h->l, column_of(h->l, h->at))),
                        "the rest of the line has no room for %" PRIu64 " layers", n);
    uint32_t *items = orr_arena_new(h->r->table->texts, (size_t)n + 1, uint32_t);
    if (!items)
        return orr_no_memory(h->r->err);
    for (uint64_t i = 0; i < n && !code; i++)
        code = header_u32(h, "the number of a layer", &items[i]);
    *list = items;
    *count = (size_t)n;
    return code;
}

/* The converter takes any integer; what is possible depends on the number of layers, which comes
 * later. */
static orr_code read_last_bottom(header *h, orr_policy_args *args)
{
    word w;
    if (!next_word(h->l, &h->at, &w))
        return missing(h->r, h->l, "the index of the last bottom layer");
    if (!orr_text_i64(w.text, &args->last_bottom))
        return bad_word(h->r, h->l, &w, "the index of the last bottom layer: a whole number");
    return ORR_OK;
}

static orr_code read_transformer(header *h, orr_policy policy, orr_policy_args *args)
{
    orr_code code = header_label(h, "the label 'model_parallel_NPU_group:'");
    if (!code)
        code = header_u32(h, "the size of a model-parallel group", &args->model_group);
    if (code || policy != ORR_POLICY_HYBRID_TRANSFORMER_FWD_IN_BCKWD)
        return code;
    code = header_list(h, "the label 'checkpoints:'", &args->checkpoints, &args->checkpoint_count);
    return code ? code
                : header_list(h, "the label 'checkpoint_initiates:'", &args->initiates,
                              &args->initiate_count);
}

static orr_code read_args(header *h, orr_policy policy, orr_policy_args *args)
{
    switch (policy) {
    case ORR_POLICY_HYBRID_DLRM:
    case ORR_POLICY_HYBRID_DLRM_ENHANCED:
        return read_last_bottom(h, args);
    case ORR_POLICY_HYBRID_TRANSFORMER:
    case ORR_POLICY_HYBRID_TRANSFORMER_FWD_IN_BCKWD:
        return read_transformer(h, policy, args);
    default:
        return ORR_OK;
    }
}

static orr_code read_policy(reader *r, const line *l)
{
    const word *w = &l->words[0];
    orr_layers *t = r->table;
    word extra;
    if (!orr_policy_find(w->text, &t->policy))
        return bad_word(r, l, w, "a policy (DATA, MODEL, HYBRID_DATA_MODEL, ...)");
    if (r->rules->has_few_policies && !lay_policy_is_converted(t->policy))
        return orr_fail(r->err, ORR_EINPUT, ORR_AT(place(r, l, w->column)),
                        "chakra_converter does not know the policy %s; 'orrery convert text' does",
                        orr_policy_name(t->policy));
    header h = {r, l, w->text.ptr + w->text.len};
    t->header_line = l->number;
    t->args_column = l->words[l->count > 1].column;
    const orr_code code = read_args(&h, t->policy, &t->args);
    if (!code && !r->rules->reads_loosely && next_word(l, &h.at, &extra))
        return bad_word(r, l, &extra, "expected here: the policy takes no more words");
    return code;
}

/* ---- the second line ---- */

static orr_code read_count(reader *r, const line *l)
{
    orr_layers *t = r->table;
    uint64_t n;
    t->count_line = l->number;
    if (l->count == 0)
        return missing(r, l, "the number of layers");
    if (l->count > 1)
        return bad_word(r, l, &l->words[1], "expected after the number of layers");
    if (r->rules->reads_loosely && orr_text_i64(l->words[0].text, &t->declared_count))
        return ORR_OK;
    const orr_code code = read_number(r, l, &l->words[0], "the number of layers", INT64_MAX, &n);
    t->declared_count = code ? 0 : (int64_t)n;
    return code;
}

/* ---- a layer ---- */

static orr_code read_comm(const reader *r, const line *l, const word *w, orr_str *out)
{
    lay_comm comm;
    *out = w->text;
    if (r->rules->reads_loosely || lay_comm_find(w->text, &comm))
        return ORR_OK;
    return bad_word(r, l, w,
                    "a collective: ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL, "
                    "ALLREDUCEALLTOALL or NONE");
}

/* An int64 attribute holds it.  The converter minds no sign: below 0 it is written as it is, in
 * two's complement. */
static orr_code read_size(
    const reader *r, const line *l, const word *w, const char *what, uint64_t *out)
{
    int64_t n;
    if (!r->rules->reads_loosely || !orr_text_i64(w->text, &n))
        return read_number(r, l, w, what, INT64_MAX, out);
    *out = (uint64_t)n;
    return ORR_OK;
}

/* Three columns: time, collective, bytes. */
static orr_code read_pass(const reader *r, const line *l, size_t column, orr_layer_pass *p)
{
    static const char *const times[] = {"forward time", "input gradient time",
                                        "weight gradient time"};
    static const char *const sizes[] = {"forward size", "input gradient size",
                                        "weight gradient size"};
    const size_t k = (column - 2) / 3;
    const word *w = &l->words[column];
    orr_code code = read_number(r, l, &w[0], times[k], UINT64_MAX, &p->time);
    if (!code)
        code = read_comm(r, l, &w[1], &p->comm);
    return code ? code : read_size(r, l, &w[2], sizes[k], &p->bytes);
}

static orr_code read_layer_policy(const reader *r, const line *l, orr_policy *out)
{
    if (r->table->policy != ORR_POLICY_HYBRID_CUSTOMIZED)
        return ORR_OK;
    if (l->count < WORDS_KEPT)
        return missing(r, l, "the policy of the layer (column 13)");
    const word *w = &l->words[WORDS_KEPT - 1];
    if (orr_policy_find(w->text, out) && lay_policy_is_for_layers(*out))
        return ORR_OK;
    return bad_word(r, l, w,
                    "the policy of a layer: DATA, MODEL, HYBRID_DATA_MODEL or HYBRID_MODEL_DATA");
}

static orr_code read_columns(const reader *r, const line *l, orr_layer *out)
{
    uint64_t ignored;
    *out = (orr_layer){.name = l->words[0].text,
                       .reserved = l->words[1].text,
                       .update_time = l->words[COLUMNS - 1].text,
                       .policy = r->table->policy};
    orr_code code = read_pass(r, l, 2, &out->forward);
    if (!code)
        code = read_pass(r, l, 5, &out->input_grad);
    if (!code)
        code = read_pass(r, l, 8, &out->weight_grad);
    if (!code && !r->rules->reads_loosely)
        code = read_number(r, l, &l->words[COLUMNS - 1], "update time", UINT64_MAX, &ignored);
    return code ? code : read_layer_policy(r, l, &out->policy);
}

static orr_code read_layer(reader *r, const line *l)
{
    orr_layers *t = r->table;
    orr_layer layer;
    if (l->count < COLUMNS)
        return orr_fail(r->err, ORR_EINPUT, ORR_AT(place(r, l, column_of(l, l->end))),
                        "%s%zu columns, but a layer has 12%s",
                        l->count ? "" : "a blank line: ", l->count,
                        t->policy == ORR_POLICY_HYBRID_CUSTOMIZED ? " and its policy" : "");
    const orr_code code = read_columns(r, l, &layer);
    if (code)
        return code;
    if (!orr_grow(&t->lines, &t->line_room, t->count + 1))
        return orr_no_memory(r->err);
    t->lines[t->count] = l->number;
    if (t->count == 0)
        t->first_comm_column = l->words[3].column;
    return orr_layers_add(t, &layer, r->err);
}

/* ---- the file ---- */

static orr_code check_count(const reader *r, const line *count_line)
{
    const orr_layers *t = r->table;
    const orr_where at = place(r, count_line, count_line->words[0].column);
    if ((uint64_t)t->declared_count != t->count)
        return orr_fail(r->err, ORR_EINPUT, &at,
                        "the number of layers is %" PRIi64 ", but %zu follow", t->declared_count,
                        t->count);
    if (t->count == 0)
        return orr_fail(r->err, ORR_EINPUT, &at, "there are no layers");
    return ORR_OK;
}

static orr_code read_file(reader *r)
{
    line first, second, layer;
    if (!next_line(r, &first) || first.count == 0)
        return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr_where_line(r->label, 1, 1)),
                        "the file begins with no policy (DATA, MODEL, ...)");
    orr_code code = read_policy(r, &first);
    if (code)
        return code;
    if (!next_line(r, &second))
        return missing(r, &first, "a second one, with the number of layers,");
    code = read_count(r, &second);
    while (!code && next_line(r, &layer))
        code = read_layer(r, &layer);
    return code || r->rules->reads_loosely ? code : check_count(r, &second);
}

/* ---- the text as a whole ---- */

/* Names become names of nodes, which are UTF-8. */
static orr_code check_utf8(const reader *r)
{
    line l = {.at = r->at, .number = 1};
    for (const char *p = r->at; p < r->end;) {
        const size_t n = orr_utf8_length((const uint8_t *)p, (size_t)(r->end - p));
        if (n == 0)
            return orr_fail(r->err, ORR_EINPUT, ORR_AT(place(r, &l, column_of(&l, p))),
                            "byte 0x%02x is not UTF-8 text", (unsigned)(uint8_t)*p);
        const bool ends_line = *p == '\n' || (*p == '\r' && (r->end - p == 1 || p[1] != '\n'));
        p += n;
        if (ends_line) {
            l.at = p;
            l.number += l.number < UINT32_MAX;
        }
    }
    return ORR_OK;
}

/* A copy whose lines all end with \n: what Python's read gives, and what travels along in the
 * metadata. */
static orr_code keep_source(reader *r)
{
    char *copy = orr_arena_take(r->table->texts, (size_t)(r->end - r->at) + 1);
    size_t n = 0;
    if (!copy)
        return orr_no_memory(r->err);
    for (const char *p = r->at; p < r->end; p++) {
        if (*p == '\r' && r->end - p > 1 && p[1] == '\n')
            continue;
        copy[n++] = *p == '\r' ? '\n' : *p;
    }
    r->table->source = (orr_str){copy, n};
    return ORR_OK;
}

orr_code orr_layers_parse(orr_span bytes,
                          const char *label,
                          const orr_layers_read_options *opt,
                          orr_layers **out,
                          orr_error *err)
{
    static const char mark[] = "\xEF\xBB\xBF";
    const char *text = bytes.len ? (const char *)bytes.ptr : "";
    reader r = {.label = label,
                .at = text,
                .end = text + bytes.len,
                .number = 1,
                .rules = lay_rules(opt ? opt->rules : NULL),
                .err = err};
    *out = NULL;
    orr_code code = orr_layers_create(ORR_POLICY_DATA, &r.table, err);
    if (code)
        return code;
    if (!(r.table->label = orr_arena_text(r.table->texts, orr_str_of(label))))
        code = orr_no_memory(err);
    if (!r.rules->reads_loosely && bytes.len >= 3 && memcmp(r.at, mark, 3) == 0)
        r.at += 3;
    if (!code && !(code = check_utf8(&r)) && !(code = keep_source(&r)))
        code = read_file(&r);
    if (code) {
        orr_layers_free(r.table);
        return code;
    }
    *out = r.table;
    return ORR_OK;
}

orr_code orr_layers_read(const char *path,
                         const orr_layers_read_options *opt,
                         orr_layers **out,
                         orr_error *err)
{
    orr_input *in;
    *out = NULL;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    code = orr_layers_parse(orr_input_bytes(in), path, opt, out, err);
    orr_input_close(in);
    return code;
}

/* A table of layers as text: policy, count, one line per layer (docs/format/text.md).
 *
 * The old generator's three peculiarities are a matter of style: no end of the last line, the
 * strategy behind every row and not only where readers expect it, and, with its second back end, a
 * blank in front of each time. */

static bool is_one_word(orr_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        const unsigned char c = (unsigned char)s.ptr[i];
        if (c <= ' ' || c == 0x7F)
            return false;
    }
    return s.len > 0;
}

/* Words are parted by white space: one that has some in it, or is empty, could not be read
 * again. */
static orr_code check_words(const orr_layers *t, orr_error *err)
{
    for (size_t i = 0; i < t->count; i++) {
        const orr_layer *l = &t->layers[i];
        const orr_str words[] = {
            l->name,       l->reserved, l->forward.comm, l->input_grad.comm, l->weight_grad.comm,
            l->update_time};
        for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
            if (!is_one_word(words[k]))
                return orr_fail(err, ORR_EUSAGE, NULL,
                                "layer %zu: \"%.*s\" is not one word, and could not be read again",
                                i, ORR_SHOWN(words[k], SHOWN));
        }
    }
    return ORR_OK;
}

static void put_list(orr_buf *b, const char *label, const uint32_t *list, size_t count)
{
    orr_buf_print(b, " %s %zu", label, count);
    for (size_t i = 0; i < count; i++)
        orr_buf_print(b, " %" PRIu32, list[i]);
}

static void put_policy(const orr_layers *t, orr_buf *b)
{
    const orr_policy_args *a = &t->args;
    orr_buf_text(b, orr_policy_name(t->policy));
    switch (t->policy) {
    case ORR_POLICY_HYBRID_DLRM:
    case ORR_POLICY_HYBRID_DLRM_ENHANCED:
        orr_buf_print(b, " %" PRId64, a->last_bottom);
        break;
    case ORR_POLICY_HYBRID_TRANSFORMER:
        orr_buf_print(b, " model_parallel_NPU_group: %" PRIu32, a->model_group);
        break;
    case ORR_POLICY_HYBRID_TRANSFORMER_FWD_IN_BCKWD:
        orr_buf_print(b, " model_parallel_NPU_group: %" PRIu32, a->model_group);
        put_list(b, "checkpoints:", a->checkpoints, a->checkpoint_count);
        put_list(b, "checkpoint_initiates:", a->initiates, a->initiate_count);
        break;
    default:
        break;
    }
}

static void put_word(orr_buf *b, orr_str s)
{
    orr_buf_add(b, s.ptr, s.len);
    orr_buf_byte(b, '\t');
}

static void put_pass(orr_buf *b, const orr_layer_pass *p, orr_layers_style style)
{
    if (style == ORR_LAYERS_GENERATOR_V2)
        orr_buf_byte(b, ' ');
    orr_buf_u64(b, p->time);
    orr_buf_byte(b, '\t');
    put_word(b, p->comm);
    orr_buf_u64(b, p->bytes);
    orr_buf_byte(b, '\t');
}

static void put_layer(const orr_layers *t, const orr_layer *l, orr_layers_style style, orr_buf *b)
{
    const bool has_policy = t->policy == ORR_POLICY_HYBRID_CUSTOMIZED || style != ORR_LAYERS_PLAIN;
    put_word(b, l->name);
    put_word(b, l->reserved);
    put_pass(b, &l->forward, style);
    put_pass(b, &l->input_grad, style);
    put_pass(b, &l->weight_grad, style);
    orr_buf_add(b, l->update_time.ptr, l->update_time.len);
    if (has_policy)
        orr_buf_print(b, "\t%s", orr_policy_name(l->policy));
}

orr_code orr_layers_write(const orr_layers *t,
                          const char *path,
                          orr_layers_style style,
                          orr_error *err)
{
    orr_buf b = {0};
    orr_output *out = NULL;
    orr_code code = style == ORR_LAYERS_PLAIN ? check_words(t, err) : ORR_OK;
    if (code)
        return code;
    put_policy(t, &b);
    orr_buf_print(&b, "\n%zu", t->count);
    for (size_t i = 0; i < t->count; i++) {
        orr_buf_byte(&b, '\n');
        put_layer(t, &t->layers[i], style, &b);
    }
    if (style == ORR_LAYERS_PLAIN)
        orr_buf_byte(&b, '\n');
    if (b.failed)
        code = orr_no_memory(err);
    if (!code)
        code = orr_output_open(path, &out, err);
    if (!code) {
        orr_output_drain(out, &b);
        code = orr_output_commit(&out, err);
    }
    orr_buf_fini(&b);
    return code;
}

/* ---- the table ---- */

static const char *const policy_names[ORR_POLICY_COUNT] = {
    [ORR_POLICY_MICRO] = "MICRO",
    [ORR_POLICY_DATA] = "DATA",
    [ORR_POLICY_MODEL] = "MODEL",
    [ORR_POLICY_HYBRID_DATA_MODEL] = "HYBRID_DATA_MODEL",
    [ORR_POLICY_HYBRID_MODEL_DATA] = "HYBRID_MODEL_DATA",
    [ORR_POLICY_HYBRID_DLRM] = "HYBRID_DLRM",
    [ORR_POLICY_HYBRID_DLRM_ENHANCED] = "HYBRID_DLRM_ENHANCED",
    [ORR_POLICY_HYBRID_TRANSFORMER] = "HYBRID_TRANSFORMER",
    [ORR_POLICY_HYBRID_TRANSFORMER_FWD_IN_BCKWD] = "HYBRID_TRANSFORMER_FWD_IN_BCKWD",
    [ORR_POLICY_HYBRID_CUSTOMIZED] = "HYBRID_CUSTOMIZED",
    [ORR_POLICY_DISTRIBUTED_INFERENCE] = "DISTRIBUTED_INFERENCE",
};

const char *orr_policy_name(orr_policy p)
{
    return (unsigned)p < ORR_POLICY_COUNT ? policy_names[p] : NULL;
}

bool orr_policy_find(orr_str name, orr_policy *out)
{
    for (unsigned p = 0; p < ORR_POLICY_COUNT; p++) {
        if (!orr_str_is(name, policy_names[p]))
            continue;
        *out = (orr_policy)p;
        return true;
    }
    return false;
}

bool lay_policy_is_converted(orr_policy p)
{
    return p <= ORR_POLICY_HYBRID_DLRM_ENHANCED;
}

/* Those that say by themselves which dimensions a pass communicates in. */
bool lay_policy_is_for_layers(orr_policy p)
{
    return p >= ORR_POLICY_DATA && p <= ORR_POLICY_HYBRID_MODEL_DATA;
}

static const char *const comm_names[] = {
    [ORR__COMM_NONE] = "NONE",
    [ORR__COMM_ALL_REDUCE] = "ALLREDUCE",
    [ORR__COMM_ALL_GATHER] = "ALLGATHER",
    [ORR__COMM_REDUCE_SCATTER] = "REDUCESCATTER",
    [ORR__COMM_ALL_TO_ALL] = "ALLTOALL",
    [ORR__COMM_ALL_REDUCE_ALL_TO_ALL] = "ALLREDUCEALLTOALL",
};

bool lay_comm_find(orr_str name, lay_comm *out)
{
    for (size_t i = 0; i < sizeof comm_names / sizeof *comm_names; i++) {
        if (!orr_str_is(name, comm_names[i]))
            continue;
        *out = (lay_comm)i;
        return true;
    }
    return false;
}

orr_code orr_layers_create(orr_policy policy, orr_layers **out, orr_error *err)
{
    *out = NULL;
    if (!orr_policy_name(policy))
        return orr_fail(err, ORR_EUSAGE, NULL, "there is no policy %d", (int)policy);
    orr_layers *t = orr_alloc(1, sizeof *t);
    if (!t || !(t->texts = orr_arena_create())) {
        orr_free(t);
        return orr_no_memory(err);
    }
    t->policy = policy;
    *out = t;
    return ORR_OK;
}

void orr_layers_free(orr_layers *t)
{
    if (!t)
        return;
    orr_arena_destroy(t->texts);
    orr_free(t->layers);
    orr_free(t->lines);
    orr_free(t);
}

static bool keep_text(orr_layers *t, orr_str *s)
{
    s->ptr = orr_arena_text(t->texts, *s);
    return s->ptr != NULL;
}

static bool keep_list(orr_layers *t, const uint32_t **list, size_t count)
{
    uint32_t *copy = orr_arena_new(t->texts, count ? count : 1, uint32_t);
    if (!copy)
        return false;
    if (count)
        memcpy(copy, *list, count * sizeof *copy);
    *list = copy;
    return true;
}

orr_code orr_layers_set_args(orr_layers *t, const orr_policy_args *args, orr_error *err)
{
    orr_policy_args kept = *args;
    if (!keep_list(t, &kept.checkpoints, kept.checkpoint_count) ||
        !keep_list(t, &kept.initiates, kept.initiate_count))
        return orr_no_memory(err);
    t->args = kept;
    return ORR_OK;
}

orr_code orr_layers_add(orr_layers *t, const orr_layer *l, orr_error *err)
{
    orr_layer kept = *l;
    orr_str *texts[] = {&kept.name,         &kept.reserved,        &kept.update_time,
                        &kept.forward.comm, &kept.input_grad.comm, &kept.weight_grad.comm};
    if (!orr_policy_name(l->policy))
        return orr_fail(err, ORR_EUSAGE, NULL, "there is no policy %d", (int)l->policy);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (!keep_text(t, texts[i]))
            return orr_no_memory(err);
    }
    return orr_push(t->layers, t->count, t->room, kept) ? ORR_OK : orr_no_memory(err);
}

orr_policy orr_layers_policy(const orr_layers *t)
{
    return t->policy;
}

const orr_policy_args *orr_layers_args(const orr_layers *t)
{
    return &t->args;
}

size_t orr_layers_count(const orr_layers *t)
{
    return t->count;
}

const orr_layer *orr_layers_get(const orr_layers *t, size_t i)
{
    return &t->layers[i];
}

orr_where lay_where(const orr_layers *t, uint32_t row, uint32_t column)
{
    return orr_where_line(t->label ? t->label : "", row, column);
}

orr_where lay_layer_where(const orr_layers *t, size_t i, uint32_t column)
{
    return lay_where(t, t->lines ? t->lines[i] : 0, t->lines ? column : 0);
}
