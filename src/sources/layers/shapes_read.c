/* SPDX-License-Identifier: Apache-2.0 */
/* shapes_read.c - a table of shapes from CSV, its columns named by the header
 * (docs/format/shapes.md).
 *
 * Two tables define everything: the names of columns, and which columns a kind of layer requires,
 * permits and forbids.  A number in a column that its kind does not use is refused: it is most
 * likely a mistake.  An empty field counts as missing. Cost: linear in the file; one array element
 * per row. */
#include "base/formats/csv.h"
#include "base/io/input.h"
#include "base/text/number.h"
#include "base/text/text.h"
#include "gemm_impl.h"

/* The tables of examples/, built in, so that they are available wherever the program is.
 *
 * The build embeds the files as constants (tools/embed_text.c). */

extern const char orr__shapes_resnet50[], orr__shapes_gpt3_block[], orr__shapes_dlrm[];

static const struct {
    const char *name, *help, *text;
} tables[] = {
    {"resnet50", "ResNet-50, 54 layers, a batch of 1,024 images", orr__shapes_resnet50},
    {"gpt3_block", "one of the 96 blocks of GPT-3, a batch of 64 sequences",
     orr__shapes_gpt3_block},
    {"dlrm", "DLRM of MLPerf, tables shared out, the rest data parallel", orr__shapes_dlrm},
};

bool orr_shapes_example_at(size_t index, orr_shapes_example *out)
{
    if (index >= sizeof tables / sizeof *tables)
        return false;
    *out = (orr_shapes_example){.name = tables[index].name,
                                .help = tables[index].help,
                                .text = orr_str_of(tables[index].text)};
    return true;
}

/* ---- read ---- */

enum { SHOWN = 60, MOST_COLUMNS = 64, WORD = 32 };

/* What the systolic model takes; sums and differences of two stay far inside 64 bits. */
#define MOST_SIZE (1ull << 32)

#define BIT(size) (1u << (size))

typedef struct kind_row {
    const char *name;
    uint32_t needs, takes; /* BIT(size) */
} kind_row;

static const kind_row kinds[ORR_SHAPE_KINDS] = {
    [ORR_SHAPE_GEMM] = {"gemm", BIT(ORR__M) | BIT(ORR__N) | BIT(ORR__K), 0},
    [ORR_SHAPE_BMM] = {"bmm", BIT(ORR__BATCH) | BIT(ORR__M) | BIT(ORR__N) | BIT(ORR__K), 0},
    [ORR_SHAPE_CONV] = {"conv",
                        BIT(ORR__BATCH) | BIT(ORR__HEIGHT) | BIT(ORR__WIDTH) | BIT(ORR__CIN) |
                            BIT(ORR__COUT) | BIT(ORR__KH),
                        BIT(ORR__KW) | BIT(ORR__STRIDE) | BIT(ORR__PAD) | BIT(ORR__DILATION) |
                            BIT(ORR__GROUPS)},
    [ORR_SHAPE_EMBEDDING] = {"embedding", BIT(ORR__BATCH) | BIT(ORR__ROWS) | BIT(ORR__DIM),
                             BIT(ORR__LOOKUPS) | BIT(ORR__TABLES)},
    [ORR_SHAPE_ATTENTION] =
        {"attention", BIT(ORR__BATCH) | BIT(ORR__HEADS) | BIT(ORR__SEQ_Q) | BIT(ORR__HEAD_DIM),
         BIT(ORR__SEQ_K) | BIT(ORR__KV_HEADS) | BIT(ORR__CAUSAL) | BIT(ORR__FUSED)},
    [ORR_SHAPE_NORM] = {"norm", BIT(ORR__M) | BIT(ORR__N), 0},
    [ORR_SHAPE_ELEMENTWISE] = {"elementwise", BIT(ORR__M) | BIT(ORR__N), BIT(ORR__OPERANDS)},
    [ORR_SHAPE_ACTIVATION] = {"activation", BIT(ORR__M) | BIT(ORR__N), 0},
};

typedef struct size_row {
    const char *name;
    uint64_t least, most;
    uint64_t otherwise; /* when it is not given */
    lay_size like;      /* or, when this is another size: as much as that one */
} size_row;

static const size_row sizes[ORR__SIZES] = {
    [ORR__M] = {"m", 1, MOST_SIZE, 0, ORR__M},
    [ORR__N] = {"n", 1, MOST_SIZE, 0, ORR__N},
    [ORR__K] = {"k", 1, MOST_SIZE, 0, ORR__K},
    [ORR__BATCH] = {"batch", 1, MOST_SIZE, 0, ORR__BATCH},
    [ORR__HEIGHT] = {"h", 1, MOST_SIZE, 0, ORR__HEIGHT},
    [ORR__WIDTH] = {"w", 1, MOST_SIZE, 0, ORR__WIDTH},
    [ORR__CIN] = {"cin", 1, MOST_SIZE, 0, ORR__CIN},
    [ORR__COUT] = {"cout", 1, MOST_SIZE, 0, ORR__COUT},
    [ORR__KH] = {"kh", 1, MOST_SIZE, 0, ORR__KH},
    [ORR__KW] = {"kw", 1, MOST_SIZE, 0, ORR__KH},
    [ORR__STRIDE] = {"stride", 1, MOST_SIZE, 1, ORR__STRIDE},
    [ORR__PAD] = {"pad", 0, MOST_SIZE, 0, ORR__PAD},
    [ORR__DILATION] = {"dilation", 1, MOST_SIZE, 1, ORR__DILATION},
    [ORR__GROUPS] = {"groups", 1, MOST_SIZE, 1, ORR__GROUPS},
    [ORR__ROWS] = {"rows", 1, MOST_SIZE, 0, ORR__ROWS},
    [ORR__DIM] = {"dim", 1, MOST_SIZE, 0, ORR__DIM},
    [ORR__LOOKUPS] = {"lookups", 1, MOST_SIZE, 1, ORR__LOOKUPS},
    [ORR__TABLES] = {"tables", 1, MOST_SIZE, 1, ORR__TABLES},
    [ORR__HEADS] = {"heads", 1, MOST_SIZE, 0, ORR__HEADS},
    [ORR__KV_HEADS] = {"kv_heads", 1, MOST_SIZE, 0, ORR__HEADS},
    [ORR__SEQ_Q] = {"seq_q", 1, MOST_SIZE, 0, ORR__SEQ_Q},
    [ORR__SEQ_K] = {"seq_k", 1, MOST_SIZE, 0, ORR__SEQ_Q},
    [ORR__HEAD_DIM] = {"head_dim", 1, MOST_SIZE, 0, ORR__HEAD_DIM},
    [ORR__CAUSAL] = {"causal", 0, 1, 0, ORR__CAUSAL},
    [ORR__FUSED] = {"fused", 0, 1, 0, ORR__FUSED},
    [ORR__OPERANDS] = {"operands", 1, 1024, 2, ORR__OPERANDS},
};

/* Columns are sizes, or one of these. */
enum { NAME = ORR__SIZES, TYPE, POLICY, COLUMNS };

/* Other words for a column, as they are after fold(). */
static const struct {
    const char *word;
    unsigned column;
} words[] = {
    {"layer", NAME},
    {"name", NAME},
    {"layername", NAME},
    {"type", TYPE},
    {"kind", TYPE},
    {"strategy", POLICY},
    {"policy", POLICY},
    {"parallel", POLICY},
    {"parallelization", POLICY},
    {"height", ORR__HEIGHT},
    {"width", ORR__WIDTH},
    {"padding", ORR__PAD},
    {"customizedparallelization", POLICY},
};

typedef struct reader {
    orr_csv csv;
    orr_shapes *out;
    unsigned column[MOST_COLUMNS]; /* what each field of a row is */
    size_t columns;
    bool has_type;
} reader;

const char *orr_shape_kind_name(orr_shape_kind kind)
{
    return (unsigned)kind < ORR_SHAPE_KINDS ? kinds[kind].name : NULL;
}

const char *lay_size_name(lay_size size)
{
    return sizes[size].name;
}

/* ---- the header ---- */

/* Lower case, without blanks, dashes and underscores: "Layer name" and "layer_name" are the
 * same. */
static void fold(orr_str s, char out[WORD])
{
    size_t n = 0;
    for (size_t i = 0; i < s.len && n < WORD - 1; i++) {
        const char c = s.ptr[i];
        if (c == ' ' || c == '_' || c == '-')
            continue;
        out[n++] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
    out[n] = '\0';
}

static bool find_column(orr_str field, unsigned *out)
{
    char word[WORD], name[WORD];
    fold(field, word);
    for (unsigned i = 0; i < ORR__SIZES; i++) {
        fold(orr_str_of(sizes[i].name), name);
        if (strcmp(word, name) == 0) {
            *out = i;
            return true;
        }
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(word, words[i].word) == 0) {
            *out = words[i].column;
            return true;
        }
    }
    return false;
}

static orr_code take_heading(reader *r, const orr_csv_field *f, orr_error *err)
{
    const orr_where w = orr_csv_where(&r->csv, f);
    double number;
    unsigned column;
    if (orr_text_double(f->text, &number))
        return orr_fail(err, ORR_EINPUT, &w,
                        "\"%.*s\" is a number, but the first line must name the columns, as "
                        "Layer,m,n,k",
                        ORR_SHOWN(f->text, SHOWN));
    if (!find_column(f->text, &column)) {
        const char *known[ORR__SIZES + sizeof words / sizeof *words + 1] = {NULL};
        for (size_t i = 0; i < ORR__SIZES; i++)
            known[i] = sizes[i].name;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            known[ORR__SIZES + i] = words[i].word;
        const char *near = orr_nearest(f->text, known);
        return orr_fail(
            err, ORR_EINPUT, &w, "there is no column \"%.*s\"; %s%s%s", ORR_SHOWN(f->text, SHOWN),
            near ? "did you mean \"" : "the first line names the columns, as Layer,m,n,k",
            near ? near : "", near ? "\"?" : "");
    }
    for (size_t i = 0; i < r->columns; i++) {
        if (r->column[i] == column)
            return orr_fail(err, ORR_EINPUT, &w, "duplicate column \"%.*s\"",
                            ORR_SHOWN(f->text, SHOWN));
    }
    r->column[r->columns++] = column;
    return ORR_OK;
}

static bool has_column(const reader *r, unsigned column)
{
    for (size_t i = 0; i < r->columns; i++) {
        if (r->column[i] == column)
            return true;
    }
    return false;
}

/* Without a type column all rows are products, so their three columns are required. */
static orr_code check_header(reader *r, const orr_csv_row *row, orr_error *err)
{
    static const unsigned plain[] = {NAME, ORR__M, ORR__N, ORR__K};
    static const char *const names[] = {"Layer", "m", "n", "k"};
    const orr_where w = orr_csv_where(&r->csv, &row->fields[0]);
    r->has_type = has_column(r, TYPE);
    r->out->has_policies = has_column(r, POLICY);
    for (size_t i = 0; i < (r->has_type ? 1u : 4u); i++) {
        if (!has_column(r, plain[i]))
            return orr_fail(err, ORR_EINPUT, &w,
                            "the first line must name the columns, and there is no column %s",
                            names[i]);
    }
    return ORR_OK;
}

/* A trailing comma in the header is accepted if every row has one. */
static orr_code read_header(reader *r, const orr_csv_row *row, orr_error *err)
{
    size_t count = row->count;
    orr_code code = ORR_OK;
    if (count > 1 && row->fields[count - 1].text.len == 0)
        count--;
    if (count > MOST_COLUMNS)
        return orr_fail(err, ORR_EINPUT, ORR_AT(orr_csv_where(&r->csv, &row->fields[MOST_COLUMNS])),
                        "more than %d columns", MOST_COLUMNS);
    for (size_t i = 0; i < count && !code; i++)
        code = take_heading(r, &row->fields[i], err);
    return code ? code : check_header(r, row, err);
}

/* ---- rows ---- */

/* The name becomes a word of a text workload, so it must not contain white space. */
static orr_code take_name(reader *r, const orr_csv_field *f, lay_shape *s, orr_error *err)
{
    const orr_where w = orr_csv_where(&r->csv, f);
    if (f->text.len == 0)
        return orr_fail(err, ORR_EINPUT, &w, "the layer has no name");
    for (size_t i = 0; i < f->text.len; i++) {
        const unsigned char c = (unsigned char)f->text.ptr[i];
        if (c <= ' ' || c == 0x7F || (i == 0 && c == '#'))
            return orr_fail(err, ORR_EINPUT, &w,
                            "the name \"%.*s\" has a blank or a sign in it that would break the "
                            "line of a text workload",
                            ORR_SHOWN(f->text, SHOWN));
    }
    s->name = f->text;
    return ORR_OK;
}

static orr_code take_kind(reader *r, const orr_csv_field *f, lay_shape *s, orr_error *err)
{
    char word[WORD];
    fold(f->text, word);
    for (unsigned i = 0; i < ORR_SHAPE_KINDS; i++) {
        if (f->text.len < WORD && strcmp(word, kinds[i].name) == 0) {
            s->kind = (orr_shape_kind)i;
            return ORR_OK;
        }
    }
    return orr_fail(
        err, ORR_EINPUT, ORR_AT(orr_csv_where(&r->csv, f)),
        "type: \"%.*s\" is not gemm, bmm, conv, embedding, attention, norm, elementwise or "
        "activation",
        ORR_SHOWN(f->text, SHOWN));
}

bool lay_strategy_find(orr_str word, orr_policy *out)
{
    return orr_policy_find(word, out) &&
           (*out == ORR_POLICY_DATA || *out == ORR_POLICY_MODEL ||
            *out == ORR_POLICY_HYBRID_DATA_MODEL || *out == ORR_POLICY_HYBRID_MODEL_DATA);
}

static orr_code take_policy(reader *r, const orr_csv_field *f, lay_shape *s, orr_error *err)
{
    s->policy_column = f->column;
    if (f->text.len == 0)
        return ORR_OK; /* an error when it turns out to be needed */
    if (!lay_strategy_find(f->text, &s->policy))
        return orr_fail(err, ORR_EINPUT, ORR_AT(orr_csv_where(&r->csv, f)),
                        "strategy: \"%.*s\" is not " ORR__STRATEGIES, ORR_SHOWN(f->text, SHOWN));
    s->has_policy = true;
    return ORR_OK;
}

static orr_code take_field(
    reader *r, unsigned column, const orr_csv_field *f, lay_shape *s, orr_error *err)
{
    if (column == NAME)
        return take_name(r, f, s, err);
    if (column == TYPE)
        return take_kind(r, f, s, err);
    if (column == POLICY)
        return take_policy(r, f, s, err);
    if (f->text.len == 0)
        return ORR_OK;
    s->column[column] = f->column;
    return orr_csv_u64(&r->csv, f, sizes[column].name, sizes[column].least, sizes[column].most,
                       &s->size[column], err);
}

/* Everything the kind needs is present, nothing else is, and the rest gets its default. */
static orr_code complete(const reader *r, lay_shape *s, orr_error *err)
{
    const kind_row *kind = &kinds[s->kind];
    for (unsigned i = 0; i < ORR__SIZES; i++) {
        const orr_where w = orr_where_line(r->out->label, s->line, s->column[i] ? s->column[i] : 1);
        const bool is_given = s->column[i] != 0;
        if (!is_given && (kind->needs & BIT(i)))
            return orr_fail(err, ORR_EINPUT, &w, "%.*s: a layer of type %s needs %s",
                            ORR_SHOWN(s->name, SHOWN), kind->name, sizes[i].name);
        if (is_given && !((kind->needs | kind->takes) & BIT(i)))
            return orr_fail(err, ORR_EINPUT, &w, "%.*s: a layer of type %s has no %s",
                            ORR_SHOWN(s->name, SHOWN), kind->name, sizes[i].name);
        if (!is_given && (kind->takes & BIT(i)))
            s->size[i] = sizes[i].like == i ? sizes[i].otherwise : s->size[sizes[i].like];
    }
    return ORR_OK;
}

static orr_code read_row(reader *r, const orr_csv_row *row, orr_error *err)
{
    lay_shape s = {.line = row->line};
    orr_code code = ORR_OK;
    for (size_t i = 0; i < row->count && !code; i++) {
        const orr_csv_field *f = &row->fields[i];
        if (i < r->columns)
            code = take_field(r, r->column[i], f, &s, err);
        else if (i > r->columns || f->text.len > 0)
            code = orr_fail(err, ORR_EINPUT, ORR_AT(orr_csv_where(&r->csv, f)),
                            "this field is one too many: the first line names %zu columns",
                            r->columns);
    }
    if (!code && s.name.len == 0) {
        code = orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_line(r->out->label, s.line, 1)),
                        "the layer has no name");
    }
    if (!code)
        code = complete(r, &s, err);
    return code ? code : lay_shapes_add(r->out, &s, err);
}

static orr_code read_rows(reader *r, orr_error *err)
{
    orr_csv_row row;
    orr_code code = orr_csv_next(&r->csv, &row, err);
    if (code == ORR_END)
        return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_line(r->out->label, 1, 1)),
                        "the file is empty; its first line must name the columns, as Layer,m,n,k");
    if (!code)
        code = read_header(r, &row, err);
    while (!code && (code = orr_csv_next(&r->csv, &row, err)) == ORR_OK)
        code = read_row(r, &row, err);
    if (code != ORR_END)
        return code;
    return r->out->count
               ? ORR_OK
               : orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_line(r->out->label, r->csv.line, 1)),
                          "there are no layers in this file");
}

/* ---- everything ---- */

static orr_code open_shapes(orr_span bytes, const char *label, orr_shapes **out, orr_error *err)
{
    orr_shapes *t = orr_alloc(1, sizeof *t);
    *out = NULL;
    if (!t || !(t->arena = orr_arena_create()) ||
        !(t->label = orr_arena_text(t->arena, orr_str_of(label)))) {
        orr_shapes_free(t);
        return orr_no_memory(err);
    }
    t->hash = orr_content_hash_of(bytes);
    *out = t;
    return ORR_OK;
}

void orr_shapes_free(orr_shapes *s)
{
    if (!s)
        return;
    orr_arena_destroy(s->arena);
    orr_free(s->all);
    orr_free(s);
}

orr_code lay_shapes_add(orr_shapes *t, const lay_shape *s, orr_error *err)
{
    lay_shape kept = *s;
    kept.name.ptr = orr_arena_text(t->arena, s->name);
    if (!kept.name.ptr || !orr_grow(&t->all, &t->room, t->count + 1))
        return orr_no_memory(err);
    t->all[t->count++] = kept;
    return ORR_OK;
}

size_t orr_shapes_count(const orr_shapes *s)
{
    return s->count;
}

bool orr_shapes_have_policies(const orr_shapes *s)
{
    return s->has_policies;
}

static orr_code parse_named(orr_shapes *t, orr_span bytes, orr_error *err)
{
    reader r = {.out = t};
    orr_csv_init(&r.csv, bytes, t->label);
    const orr_code code = read_rows(&r, err);
    orr_csv_fini(&r.csv);
    return code;
}

orr_code orr_shapes_parse(orr_span bytes,
                          const char *label,
                          const orr_shapes_options *opt,
                          orr_shapes **out,
                          orr_error *err)
{
    orr_shapes *t;
    orr_code code = open_shapes(bytes, label, &t, err);
    *out = NULL;
    if (code)
        return code;
    code = opt && opt->rules ? opt->rules->read(t, bytes, opt->needs_policies, err)
                             : parse_named(t, bytes, err);
    if (code) {
        orr_shapes_free(t);
        return code;
    }
    *out = t;
    return ORR_OK;
}

orr_code orr_shapes_read(const char *path,
                         const orr_shapes_options *opt,
                         orr_shapes **out,
                         orr_error *err)
{
    orr_input *in;
    orr_code code = orr_input_open(path, &in, err);
    *out = NULL;
    if (code)
        return code;
    code = orr_shapes_parse(orr_input_bytes(in), path, opt, out, err);
    orr_input_close(in);
    return code;
}
