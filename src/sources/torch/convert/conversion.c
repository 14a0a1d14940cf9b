/* SPDX-License-Identifier: Apache-2.0 */
/* conversion.c - converts a linked trace: the steps in order, and what they share. */
#include "conversion.h"

#include "base/dtypes.h"
#include "base/formats/json.h"
#include "base/memory/sort.h"
#include "base/text/text.h"
#include "trace/known_names.h"

#include <inttypes.h>
#include <stdlib.h>

/* ==== communication by name: of operators, of backends' annotations, of kernels.
 *
 *     c10d::_allgather_base_            operators of torch.distributed
 *     _c10d_functional::all_reduce      the same for compiled programs
 *     record_param_comms                what describes a call, with attributes
 *     nccl:_all_gather_base, gloo:send  what the backend ran
 *     ncclDevKernel_AllGather_RING_LL   the kernel
 *
 * Words are compared without '_', '-' and case, which differ from version to version. */

/* "c10d::..." or similar */
static bool is_operator_name(orr_str name)
{
    return orr_str_begins(name, "c10d::") || orr_str_begins(name, "_c10d_functional::") ||
           orr_str_begins(name, "c10d_functional::");
}

/* A lower-case word, one colon, and what the backend does. */
static bool is_backend_name(orr_str name)
{
    static const char *const backends[] = {
        "nccl:", "gloo:", "rccl:", "ucc:", "mpi:", "xccl:", "hccl:", "ccl:", "cncl:", "mccl:"};
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        const size_t n = strlen(backends[i]);
        if (orr_str_begins(name, backends[i]))
            return name.len > n && name.ptr[n] != ':';
    }
    return false;
}

/* that, "c10d::allreduce_", "record_param_comms", ... */
static bool is_call_name(orr_str name)
{
    return is_operator_name(name) || is_backend_name(name) ||
           orr_str_is(name, "record_param_comms");
}

/* ---- words ---- */

enum { PLAIN_ROOM = 97 };

/* Words other than collectives. */
static const struct {
    const char *text;
    conv_word word;
} words[] = {
    {"send", CONV_WORD_SEND},
    {"recv", CONV_WORD_RECV},
    {"coalesc", CONV_WORD_TOGETHER},
    {"wait", CONV_WORD_WAIT},
};

/* Reads a name up to its arguments. */
static conv_said find_word(orr_str name)
{
    char text[PLAIN_ROOM];
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] == '(' || name.ptr[i] == '<')
            name.len = i;
    }
    orr__plain_letters(name, text, sizeof text);
    if (strstr(text, "sendrecv"))
        return (conv_said){CONV_WORD_EITHER, 0};
    const uint8_t collective = orr__collective_in(text);
    if (collective)
        return (conv_said){CONV_WORD_COLLECTIVE, collective - 1};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strstr(text, words[i].text))
            return (conv_said){words[i].word, 0};
    }
    return (conv_said){CONV_WORD_NONE, 0};
}

/* "c10d_functional" itself contains no keyword, but only what follows counts. */
static conv_said word_of_call(orr_str name)
{
    const char *colon = name.len ? memrchr(name.ptr, ':', name.len) : NULL;
    if (colon) {
        const size_t before = (size_t)(colon + 1 - name.ptr);
        name = (orr_str){colon + 1, name.len - before};
    }
    return find_word(name);
}

/* ---- kernels ---- */

/* The kernel's own name, without template arguments. */
static orr_str head_of(orr_str name)
{
    const char *bracket = name.len ? memchr(name.ptr, '(', name.len) : NULL;
    return bracket ? (orr_str){name.ptr, (size_t)(bracket - name.ptr)} : name;
}

/* One-sided kernels keep their measured duration: the trace does not tell what they moved. */
static bool is_comm_kernel(orr_str name)
{
    return orr__comm_kernel(name) == ORR__COMM_NCCL;
}

/* "ncclDevKernel_Generic" does not name the operation: the call must. */
static conv_said word_of_kernel(orr_str name)
{
    const conv_said said = find_word(head_of(name));
    return said.word == CONV_WORD_NONE ? (conv_said){CONV_WORD_EITHER, 0} : said;
}

/* ---- peers and sizes ---- */

static const char *skip_to_digit(const char *p, const char *end)
{
    while (p < end && (*p < '0' || *p > '9'))
        p++;
    return p;
}

/* "nccl:send 0->1", "nccl:recv 1<-0": own number, then the peer's. */
static bool peer_in_name(orr_str name, int64_t *peer)
{
    const char *end = name.ptr + name.len;
    const char *space = name.len ? memchr(name.ptr, ' ', name.len) : NULL;
    const char *arrow = space ? memmem(space, (size_t)(end - space), "->", 2) : NULL;
    if (!arrow && space)
        arrow = memmem(space, (size_t)(end - space), "<-", 2);
    if (!arrow)
        return false;
    const char *p = skip_to_digit(arrow, end);
    int64_t v = 0;
    if (p == end)
        return false;
    for (; p < end && *p >= '0' && *p <= '9' && v < INT32_MAX / 10; p++)
        v = v * 10 + (*p - '0');
    *peer = v;
    return true;
}

/* ==== the values of an operator: tensors with sizes and storages, numbers, strings.
 *
 * A tensor is a list of six: id, storage, offset, elements, bytes per element, device; the first
 * five are integers, the last is a string, and nothing else in a trace looks like that.  So tensors
 * are found by scanning the text, at any depth, which takes a fraction of the time spent reading
 * the trace.  The few operators whose other values matter are parsed as trees. */

/* ---- tensors ---- */

typedef struct cursor {
    const char *at, *end;
} cursor;

typedef struct tensor {
    uint64_t storage;
    int64_t bytes;
} tensor;

static void skip_space(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r'))
        c->at++;
}

/* An integer and the comma after it. */
static bool take_number(cursor *c, int64_t *out)
{
    uint64_t v = 0;
    skip_space(c);
    const bool is_negative = c->at < c->end && *c->at == '-';
    const char *first = c->at += is_negative;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        if (v > INT64_MAX / 10 - 1)
            return false;
        v = v * 10 + (uint64_t)(*c->at - '0');
    }
    if (c->at == first)
        return false;
    *out = is_negative ? -(int64_t)v : (int64_t)v;
    skip_space(c);
    return c->at < c->end && *c->at++ == ',';
}

static void skip_string(cursor *c)
{
    for (c->at++; c->at < c->end && *c->at != '"'; c->at++)
        c->at += *c->at == '\\';
    if (c->at < c->end)
        c->at++;
}

/* c is after the opening bracket; it advances only past a tensor. */
static bool take_tensor(cursor *c, tensor *out)
{
    cursor p = *c;
    int64_t field[5];
    for (int i = 0; i < 5; i++) {
        if (!take_number(&p, &field[i]))
            return false;
    }
    skip_space(&p);
    if (p.at >= p.end || *p.at != '"')
        return false;
    skip_string(&p);
    skip_space(&p);
    if (p.at >= p.end || *p.at != ']' || field[3] < 0 || field[4] < 0 ||
        __builtin_mul_overflow(field[3], field[4], &out->bytes))
        return false;
    out->storage = (uint64_t)field[1];
    c->at = p.at + 1;
    return true;
}

/* The next tensor; *argument is the index of its argument among those with tensors. */
typedef struct tensors {
    cursor c;
    int depth, argument;
    bool has_found; /* one in the current argument */
} tensors;

static tensors tensors_of(const linked_io *io)
{
    const orr_str text = io ? io->values : (orr_str){"", 0};
    return (tensors){.c = {text.ptr, text.ptr + text.len}};
}

/* At depth 1 a comma ends an argument. */
static void pass(tensors *t)
{
    switch (*t->c.at) {
    case '"':
        skip_string(&t->c);
        return;
    case '[':
    case '{':
        t->depth++;
        break;
    case ']':
    case '}':
        t->depth--;
        break;
    case ',':
        t->argument += t->depth == 1 && t->has_found;
        t->has_found &= t->depth != 1;
        break;
    default:
        break;
    }
    t->c.at++;
}

static bool next_tensor(tensors *t, tensor *out)
{
    while (t->c.at < t->c.end) {
        if (*t->c.at == '[' && t->depth >= 1) {
            cursor inside = {t->c.at + 1, t->c.end};
            if (take_tensor(&inside, out)) {
                t->c = inside;
                t->has_found = true;
                return true;
            }
        }
        pass(t);
    }
    return false;
}

/* Bytes of all tensors, or of the tensor argument with this index.  -1: none. */
static int64_t io_bytes(const linked_io *io, int argument)
{
    tensors it = tensors_of(io);
    tensor t;
    int64_t sum = -1;
    while (next_tensor(&it, &t)) {
        if (argument >= 0 && it.argument != argument)
            continue;
        sum = sum < 0 ? 0 : sum;
        if (__builtin_add_overflow(sum, t.bytes, &sum))
            return INT64_MAX;
    }
    return sum;
}

bool conv_io_storages(const linked_io *io, uint64_t **ids, size_t *count, size_t *room)
{
    tensors it = tensors_of(io);
    tensor t;
    while (next_tensor(&it, &t)) {
        if (*count && (*ids)[*count - 1] == t.storage)
            continue;
        if (!orr_grow(ids, room, *count + 1))
            return false;
        (*ids)[(*count)++] = t.storage;
    }
    return true;
}

/* ---- numbers and texts ---- */

/* The text was parsed before, so only memory can fail. */
static bool open_values(const linked_io *io, orr_json **j, orr_json_value *root, bool *lacks_memory)
{
    *j = NULL;
    if (!io || !io->values.len)
        return false;
    const orr_span text = {(const uint8_t *)io->values.ptr, io->values.len};
    orr_code code = orr_json_open(text, NULL, j, NULL);
    if (!code)
        code = orr_json_only(*j, root, NULL);
    if (!code)
        return true;
    *lacks_memory |= code == ORR_ENOMEM;
    orr_json_close(*j);
    return false;
}

/* Integers among the values, in order; how many, at most `room`. */
static int io_numbers(const linked_io *io, int64_t *out, int room, bool *lacks_memory)
{
    orr_json *j;
    orr_json_value root, item;
    int n = 0;
    if (!open_values(io, &j, &root, lacks_memory))
        return 0;
    for (orr_json_iter it = orr_json_iterate(root); n < room && orr_json_next_value(&it, &item);) {
        if (orr_json_type_of(item) == ORR_JSON_INT && !orr_json_get_i64(item, &out[n], NULL))
            n++;
    }
    orr_json_close(j);
    return n;
}

/* The name of a group: a string, or the first of a list.  Decoded strings do not outlive the
 * reader, but names need no decoding. */
static orr_str group_name(orr_json_value v)
{
    orr_json_iter it = orr_json_iterate(v);
    orr_json_value first = v;
    if (orr_json_type_of(v) == ORR_JSON_ARRAY && !orr_json_next_value(&it, &first))
        return (orr_str){"", 0};
    const orr_str raw = orr_json_raw(first);
    if (orr_json_type_of(first) == ORR_JSON_INT)
        return raw;
    return orr_json_type_of(first) == ORR_JSON_STRING ? (orr_str){raw.ptr + 1, raw.len - 2}
                                                      : (orr_str){"", 0};
}

/* ..., sequence, group, rank, "allreduce", ... */
static bool find_recorded(orr_json_value values, conv_recorded *out)
{
    orr_json_value item, last[2] = {{NULL, 0}, {NULL, 0}};
    for (orr_json_iter it = orr_json_iterate(values); orr_json_next_value(&it, &item);) {
        const orr_str raw = orr_json_raw(item);
        if (last[0].tree && orr_json_type_of(item) == ORR_JSON_STRING && raw.len > 2 &&
            raw.ptr[1] != '<' && orr_json_type_of(last[1]) == ORR_JSON_INT &&
            !orr_json_get_i64(last[1], &out->rank, NULL)) {
            out->collective = (orr_str){raw.ptr + 1, raw.len - 2};
            out->group = group_name(last[0]);
            return true;
        }
        last[0] = last[1];
        last[1] = item;
    }
    return false;
}

/* The plain values of record_param_comms, from before it had attributes. */
static bool io_recorded(const linked_io *io, conv_recorded *out, bool *lacks_memory)
{
    orr_json *j;
    orr_json_value root;
    if (!open_values(io, &j, &root, lacks_memory))
        return false;
    const bool is_found = find_recorded(root, out);
    orr_json_close(j);
    return is_found;
}

/* ==== how much the profiler slowed the host down.
 *
 * Recording an operator means logging its tensors, which adds some microseconds to each, and a
 * device-bound step looks host-bound.  Kernels are timed by the device and are accurate.  The host
 * time without profiling is estimated twice:
 *
 *     by what was added   Operators that only look at a tensor in another way (view, transpose)
 *                         take below a microsecond; all else of their recorded time is recording.
 *                         It grows with the text that was written about them.  From those without
 *                         operators inside follows what is added inside an operator, from those
 *                         with one inside what is added around it.  Times the text of all operators
 *                         this is `added`.  Caches that were emptied and launches that became dearer
 *                         slow the rest too, by up to half as much again.
 *     by what was done    Unwatched, an operator takes about 3.5 us of the host and a launch 6 us
 *                         more: `expected`.  Steps of six models on two hosts differ from it by up
 *                         to a third (docs/design/pytorch.md).
 *
 * The result is `expected`, but between recorded - 1.5 * added and recorded - 0.75 * added, so a
 * trace with little overhead stays nearly as it is.  Without a device the operators are the
 * computation, which no common factor suits: then `added` is only reported.
 *
 * Cost: linear, and two sorts of the views. */

#define VIEW_NS 700.0      /* of such an operator without profiling */
#define OPERATOR_NS 3500.0 /* host time per operator, on average */
#define LAUNCH_NS 6000.0   /* extra per launch */
#define MOST_ADDED 1.5     /* times `added` */
#define LEAST_ADDED 0.75
#define LEAST_LEFT 0.02  /* of what was recorded */
#define EXPECTED_LOW 0.7 /* by how much `expected` was off */
#define EXPECTED_HIGH 1.4
enum { VIEWS_NEEDED = 16 };

typedef struct scaling {
    const conv_state *c;
    uint32_t *inside;  /* by place: number of operators inside */
    uint32_t *only;    /* the last of them */
    uint8_t *launches; /* it started something on the device */
    double *samples;
    uint64_t operators, launched;
    double recorded, text, inner, around;
} scaling;

static bool is_view(orr_str name)
{
    static const char *const views[] = {
        "aten::view",
        "aten::t",
        "aten::transpose",
        "aten::as_strided",
        "aten::expand",
        "aten::detach",
        "detach",
        "aten::unsqueeze",
        "aten::select",
        "aten::slice",
        "aten::reshape",
        "aten::_reshape_alias",
        "aten::alias",
        "aten::permute",
        "aten::unbind",
        "aten::_unsafe_view",
        "aten::squeeze",
        "aten::narrow",
        "aten::lift_fresh",
        "aten::expand_as",
        "aten::view_as",
        "aten::flatten",
        "aten::result_type",
    };
    return orr_str_among(name, views, ORR_COUNT(views));
}

/* Without white space: a linked file has more of it than the original trace. */
static double length_of(orr_str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++)
        n += s.ptr[i] > ' ';
    return (double)n;
}

static double text_of(const linked_io *io)
{
    return io ? length_of(io->values) + length_of(io->shapes) + length_of(io->types) : 0;
}

/* Bytes logged about a node.  Without a host trace all are equal. */
static double weight(const scaling *s, uint32_t place)
{
    const linked_node *n = conv_node(s->c, place);
    return 1 + text_of(n->inputs) + text_of(n->outputs);
}

static bool is_timed_operator(const conv_state *c, uint32_t place)
{
    const linked_node *n = conv_node(c, place);
    return conv_is_host(c, place) && conv_has_time(n) && !conv_is_annotation(n);
}

static double own_of(const linked_node *n)
{
    const int64_t ns = n->own_ns - (n->wait_ns > 0 ? n->wait_ns : 0);
    return ns > 0 ? (double)ns : 0;
}

static void count_all(scaling *s)
{
    const conv_state *c = s->c;
    for (uint32_t p = 0; p < c->count; p++) {
        const uint32_t parent = c->parent[p];
        s->launched += conv_is_device(c, p);
        if (parent != CONV_NONE && conv_is_device(c, p))
            s->launches[parent] = 1;
        if (!is_timed_operator(c, p))
            continue;
        if (parent != CONV_NONE) {
            s->inside[parent]++;
            s->only[parent] = p;
        }
        s->operators++;
        s->recorded += own_of(conv_node(c, p));
        s->text += weight(s, p);
    }
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *of, size_t count)
{
    orr_sort(of, count, sizeof *of, by_size);
    return of[count / 2] > 0 ? of[count / 2] : 0;
}

/* Nanoseconds per byte, of views with this many operators inside; returns the number of views. */
static size_t sample(scaling *s, uint32_t inside, double *out)
{
    const conv_state *c = s->c;
    size_t n = 0;
    for (uint32_t p = 0; p < c->count; p++) {
        const linked_node *node = conv_node(c, p);
        if (!is_timed_operator(c, p) || s->inside[p] != inside || s->launches[p] ||
            !is_view(node->name))
            continue;
        const double over = own_of(node) - VIEW_NS;
        s->samples[n++] =
            inside ? (over - s->inner * weight(s, p)) / weight(s, s->only[p]) : over / weight(s, p);
    }
    *out = n >= VIEWS_NEEDED ? median(s->samples, n) : 0;
    return n;
}

static double within(double v, double low, double high)
{
    return v < low ? low : v > high ? high : v;
}

static void estimate(scaling *s, orr_pytorch_host *h)
{
    if (sample(s, 0, &s->inner) < VIEWS_NEEDED || s->recorded <= 0)
        return;
    (void)sample(s, 1, &s->around);
    const double added = (s->inner + s->around) * s->text, all = s->recorded;
    const double low = within(all - MOST_ADDED * added, LEAST_LEFT * all, all);
    const double high = within(all - LEAST_ADDED * added, LEAST_LEFT * all, all);
    const double expected = OPERATOR_NS * (double)s->operators + LAUNCH_NS * (double)s->launched;
    h->added_ns = (uint64_t)within(added, 0, all);
    h->how = s->launched ? ORR_HOST_BY_LAUNCHES : ORR_HOST_COMPUTES;
    if (!s->launched)
        return;
    h->scale = within(expected, low, high) / all;
    h->low = within(expected * EXPECTED_LOW, low, high) / all;
    h->high = within(expected * EXPECTED_HIGH, low, high) / all;
}

/* ---- the factor for host times, into the report ---- */
static orr_code find_scale(conv_state *c)
{
    orr_pytorch_host *h = &c->report->host;
    const size_t n = (size_t)c->count + 1;
    scaling s = {.c = c};
    *h = (orr_pytorch_host){.how = ORR_HOST_AS_RECORDED, .scale = 1, .low = 1, .high = 1};
    if (c->opt.host_scale > 0 && c->opt.host_scale != 1) {
        h->how = ORR_HOST_GIVEN;
        h->scale = h->low = h->high = c->opt.host_scale;
    }
    if (c->opt.host_scale >= 0)
        return ORR_OK;
    h->how = ORR_HOST_UNKNOWN;
    s.inside = orr_arena_new(c->arena, n, uint32_t);
    s.only = orr_arena_new(c->arena, n, uint32_t);
    s.launches = orr_arena_new(c->arena, n, uint8_t);
    s.samples = orr_arena_new(c->arena, n, double);
    if (!s.inside || !s.only || !s.launches || !s.samples)
        return orr_no_memory(c->err);
    count_all(&s);
    estimate(&s, h);
    h->operators = s.operators;
    h->launches = s.launched;
    h->recorded_ns = (uint64_t)s.recorded;
    return ORR_OK;
}

/* ==== which nodes communicate: exactly one per call.
 *
 * One all-reduce appears up to four times, each inside the one before: the operator
 * (c10d::allreduce_), its description (record_param_comms), the backend's annotation
 * (nccl:all_reduce) and the kernel.  The innermost of those recorded is the communication; the
 * others are host work around it.
 *
 * Two things are not nested.  A backend with its own threads (gloo) has its annotation after the
 * operator, not inside; they are paired in order.  And coalesced calls share one kernel at the end:
 * then the calls communicate, and the kernel ends when all have ended. */

enum { LEVELS = 12, REACH = 256 };

/* ---- inside out ---- */

typedef struct finder {
    conv_state *c;
    uint8_t *is_covered; /* something inside it communicates */
    uint32_t *next_host; /* the next host node of the same thread */
} finder;

/* This node accounts for the calls around it. */
static void cover_parents(finder *f, uint32_t place)
{
    uint32_t up = f->c->parent[place];
    for (int level = 0; level < LEVELS && up != CONV_NONE; level++) {
        if (f->c->said[up] != CONV_WORD_NONE || is_call_name(conv_node(f->c, up)->name))
            f->is_covered[up] = 1;
        up = f->c->parent[up];
    }
}

static bool is_communication(conv_word word)
{
    return word == CONV_WORD_COLLECTIVE || word == CONV_WORD_SEND || word == CONV_WORD_RECV;
}

/* What a host node that is a call declares: its attributes take precedence over its name. */
static conv_said said_by(const conv_state *c, uint32_t place)
{
    const linked_node *n = conv_node(c, place);
    const linked_comm *comm = n->comm == LINKED_NO_COMM ? NULL : &c->l->comms[n->comm];
    conv_recorded recorded;
    if (!is_call_name(n->name))
        return (conv_said){CONV_WORD_NONE, 0};
    if (comm && comm->collective.len)
        return word_of_call(comm->collective);
    if (!orr_str_is(n->name, "record_param_comms"))
        return word_of_call(n->name);
    return io_recorded(n->inputs, &recorded, c->lacks_memory) ? word_of_call(recorded.collective)
                                                              : (conv_said){CONV_WORD_NONE, 0};
}

static void find_kernels(finder *f)
{
    conv_state *c = f->c;
    for (uint32_t p = 0; p < c->count; p++) {
        const linked_node *n = conv_node(c, p);
        const bool is_device = n->kind == LINKED_ON_DEVICE;
        c->role[p] = n->kind == LINKED_GROUPS ? CONV_GROUPS : !is_device ? CONV_HOST : CONV_KERNEL;
        c->said[p] = is_device ? CONV_WORD_NONE : (uint8_t)said_by(c, p).word;
        if (is_device && !n->is_memory && is_comm_kernel(n->name))
            c->role[p] = CONV_COMM;
        else if (is_device && !n->is_memory && orr__comm_kernel(n->name) == ORR__COMM_ONE_SIDED)
            c->report->one_sided++;
    }
    for (uint32_t p = 0; p < c->count; p++) {
        if (c->role[p] == CONV_COMM)
            cover_parents(f, p);
    }
}

/* ---- operators and the annotations after them ---- */

static bool same_call(const conv_state *c, uint32_t a, uint32_t b)
{
    const conv_said x = said_by(c, a), y = said_by(c, b);
    return x.word == y.word && (x.word != CONV_WORD_COLLECTIVE || x.kind == y.kind);
}

/* The annotation of an operator: the next unclaimed call of its thread. */
static uint32_t find_next_call(const finder *f, uint32_t place)
{
    const conv_state *c = f->c;
    uint32_t p = f->next_host[place];
    for (int steps = 0; p != CONV_NONE && steps < REACH; steps++, p = f->next_host[p]) {
        if (is_operator_name(conv_node(c, p)->name) && c->said[p] != CONV_WORD_NONE)
            return CONV_NONE;
        if (c->role[p] == CONV_CALL && c->partner[p] == CONV_NONE &&
            is_backend_name(conv_node(c, p)->name) && same_call(c, place, p))
            return p;
    }
    return CONV_NONE;
}

static void find_call(finder *f, uint32_t place)
{
    conv_state *c = f->c;
    if (c->role[place] != CONV_HOST || f->is_covered[place] ||
        !is_communication((conv_word)c->said[place]))
        return;
    if (is_operator_name(conv_node(c, place)->name)) {
        const uint32_t behind = find_next_call(f, place);
        if (behind != CONV_NONE) {
            c->partner[behind] = place;
            return;
        }
    }
    c->role[place] = CONV_CALL;
    cover_parents(f, place);
}

/* ---- coalesced calls ---- */

static bool is_together(const conv_state *c, uint32_t kernel)
{
    uint32_t up = c->parent[kernel];
    for (int level = 0; level < LEVELS && up != CONV_NONE; level++, up = c->parent[up]) {
        if (c->said[up] != CONV_WORD_NONE)
            return c->said[up] == CONV_WORD_TOGETHER;
    }
    return false;
}

/* Calls of the thread before the kernel's own, back to those of another kernel. */
static void gather_calls(finder *f, uint32_t kernel, const uint32_t *before)
{
    conv_state *c = f->c;
    uint32_t p = c->parent[kernel];
    for (int steps = 0; p != CONV_NONE && steps < REACH; steps++, p = before[p]) {
        if (c->role[p] != CONV_CALL)
            continue;
        if (c->partner[p] != CONV_NONE)
            return;
        c->partner[p] = kernel;
        c->role[kernel] = CONV_TOGETHER;
    }
}

static orr_code find_together(finder *f)
{
    conv_state *c = f->c;
    uint32_t *before = orr_arena_new(c->arena, (size_t)c->count + 1, uint32_t);
    if (!before)
        return orr_no_memory(c->err);
    memset(before, 0xFF, ((size_t)c->count + 1) * sizeof *before);
    for (uint32_t p = 0; p < c->count; p++) {
        if (f->next_host[p] != CONV_NONE)
            before[f->next_host[p]] = p;
    }
    for (uint32_t p = 0; p < c->count; p++) {
        if (c->role[p] == CONV_COMM && is_together(c, p))
            gather_calls(f, p, before);
    }
    return ORR_OK;
}

/* ---- everything ---- */

static orr_code find_neighbours(finder *f)
{
    conv_state *c = f->c;
    orr_map *next = orr_map_create(64);
    bool ok = next;
    for (uint32_t p = c->count; ok && p-- > 0;) {
        f->next_host[p] = CONV_NONE;
        if (conv_node(c, p)->kind == LINKED_ON_DEVICE)
            continue;
        const uint64_t thread = (uint64_t)conv_node(c, p)->tid;
        f->next_host[p] = orr_map_find(next, thread, CONV_NONE);
        ok = orr_map_put(next, thread, p, NULL);
    }
    orr_map_destroy(next);
    return ok ? ORR_OK : orr_no_memory(c->err);
}

static orr_code find_roles(conv_state *c)
{
    finder f = {.c = c,
                .is_covered = orr_arena_new(c->arena, (size_t)c->count + 1, uint8_t),
                .next_host = orr_arena_new(c->arena, (size_t)c->count + 1, uint32_t)};
    if (!f.is_covered || !f.next_host)
        return orr_no_memory(c->err);
    const orr_code code = find_neighbours(&f);
    if (code)
        return code;
    find_kernels(&f);
    for (uint32_t p = c->count; p-- > 0;) /* inner nodes have larger ids */
        find_call(&f, p);
    return find_together(&f);
}

/* ==== kind, size, peers and group of each communication.
 *
 * No single node has everything.  The kernel has its kind, and in newer traces the rest; the
 * annotation around it has the tensors, record_param_comms the group, the operator the peer and the
 * tag.  So the witnesses of a call are consulted from the inside out, and the first to state a
 * field wins.
 *
 * A size is what a rank has before the collective: the input, whatever the kind
 * (docs/design/collectives.md). */

enum { WITNESSES = 8 };

typedef struct hearing {
    const conv_state *c;
    uint32_t place;
    uint32_t witness[WITNESSES]; /* places, from the inside out */
    int count;
    linked_comm known;     /* all attributes together */
    int64_t rank_in_group; /* of the peer or root; -1 */
    /* the same by record_param_comms, which has the own rank for others; -1 */
    int64_t recorded;
    int64_t tag;
} hearing;

/* ---- witnesses ---- */

static void call_witness(hearing *h, uint32_t place)
{
    if (h->count < WITNESSES)
        h->witness[h->count++] = place;
}

/* The node, the calls around it, and the operator it was paired with. */
static void call_witnesses(hearing *h)
{
    const conv_state *c = h->c;
    const bool is_call = c->role[h->place] == CONV_CALL;
    uint32_t up = c->parent[h->place];
    call_witness(h, h->place);
    for (int level = 0; level < LEVELS && up != CONV_NONE; level++, up = c->parent[up]) {
        const bool is_first = level == 0 && !is_call; /* a kernel's operator has its tensors */
        if (is_first || is_call_name(conv_node(c, up)->name))
            call_witness(h, up);
    }
    const uint32_t partner = c->partner[h->place];
    if (is_call && partner != CONV_NONE && c->role[partner] == CONV_HOST)
        call_witness(h, partner);
}

/* ---- attributes ---- */

static void fill_text(orr_str *to, orr_str from)
{
    if (!to->len)
        *to = from;
}

static void fill_number(int64_t *to, int64_t from)
{
    if (*to < 0)
        *to = from;
}

static void hear_attributes(hearing *h, const linked_comm *said)
{
    linked_comm *k = &h->known;
    fill_text(&k->collective, said->collective);
    fill_text(&k->group, said->group);
    fill_text(&k->ranks, said->ranks);
    fill_number(&k->group_size, said->group_size);
    fill_number(&k->rank_start, said->rank_start);
    fill_number(&k->rank_stride, said->rank_stride);
    fill_number(&k->src, said->src);
    fill_number(&k->dst, said->dst);
    fill_number(&h->tag, said->tag);
    if (k->in_elements < 0 && said->in_elements >= 0 && orr__dtype_scalar_bytes(said->dtype)) {
        k->in_elements = said->in_elements; /* sizes and their type belong together */
        k->out_elements = said->out_elements;
        k->dtype = said->dtype;
    }
}

/* Operators end with numbers: root or peer, then, for messages, the tag. */
static void hear_operator(hearing *h, const linked_node *n)
{
    int64_t number[2];
    const conv_said said = word_of_call(n->name);
    const bool is_message = said.word == CONV_WORD_SEND || said.word == CONV_WORD_RECV;
    const bool is_rooted = said.word == CONV_WORD_COLLECTIVE &&
                           (said.kind == ORR_COLL_BROADCAST || said.kind == ORR_COLL_REDUCE ||
                            said.kind == ORR_COLL_GATHER || said.kind == ORR_COLL_SCATTER);
    if (!is_message && !is_rooted)
        return;
    const int count = io_numbers(n->inputs, number, 2, h->c->lacks_memory);
    if (count > 0)
        fill_number(&h->rank_in_group, number[0]);
    if (count > 1 && is_message)
        fill_number(&h->tag, number[1]);
}

static void hear_recorded(hearing *h, const linked_node *n)
{
    conv_recorded r;
    if (!io_recorded(n->inputs, &r, h->c->lacks_memory))
        return;
    fill_text(&h->known.collective, r.collective);
    fill_text(&h->known.group, r.group);
    fill_number(&h->rank_in_group, r.rank);
    fill_number(&h->recorded, r.rank);
}

static void hear(hearing *h, uint32_t place)
{
    const linked_node *n = conv_node(h->c, place);
    int64_t peer;
    if (n->comm != LINKED_NO_COMM)
        hear_attributes(h, &h->c->l->comms[n->comm]);
    if (n->kind == LINKED_ON_DEVICE)
        return;
    if (peer_in_name(n->name, &peer))
        fill_number(&h->rank_in_group, peer);
    if (orr_str_is(n->name, "record_param_comms"))
        hear_recorded(h, n);
    else if (is_operator_name(n->name))
        hear_operator(h, n);
}

/* ---- kind ---- */

static bool is_definite(conv_said said)
{
    return said.word == CONV_WORD_COLLECTIVE || said.word == CONV_WORD_SEND ||
           said.word == CONV_WORD_RECV;
}

static conv_said said_around(const hearing *h, int from)
{
    for (int i = from; i < h->count; i++) {
        const linked_node *n = conv_node(h->c, h->witness[i]);
        const conv_said said = n->kind == LINKED_ON_DEVICE || !is_call_name(n->name)
                                   ? (conv_said){CONV_WORD_NONE, 0}
                                   : word_of_call(n->name);
        if (is_definite(said))
            return said;
    }
    return (conv_said){CONV_WORD_NONE, 0};
}

static conv_said find_kind(const hearing *h)
{
    const linked_node *n = conv_node(h->c, h->place);
    conv_said said = {CONV_WORD_NONE, 0};
    if (n->kind == LINKED_ON_DEVICE)
        said = word_of_kernel(n->name);
    if (!is_definite(said) && h->known.collective.len)
        said = word_of_call(h->known.collective);
    return is_definite(said) ? said : said_around(h, 0);
}

static bool set_kind(hearing *h, conv_call *call)
{
    const conv_said said = find_kind(h);
    if (said.word == CONV_WORD_SEND || said.word == CONV_WORD_RECV) {
        call->type = said.word == CONV_WORD_SEND ? ORR_NODE_COMM_SEND : ORR_NODE_COMM_RECV;
        return true;
    }
    call->type = ORR_NODE_COMM_COLL;
    call->kind = said.kind;
    if (said.word == CONV_WORD_COLLECTIVE)
        return true;
    call->kind = ORR_COLL_ALL_TO_ALL; /* sends and receives, purpose unknown */
    return false;
}

/* ---- size ---- */

/* Operators with the output before the input. */
static int input_argument(const linked_node *n, const conv_call *call)
{
    const bool has_output = call->kind == ORR_COLL_ALL_GATHER ||
                            call->kind == ORR_COLL_REDUCE_SCATTER ||
                            call->kind == ORR_COLL_ALL_TO_ALL || call->kind == ORR_COLL_GATHER ||
                            call->kind == ORR_COLL_SCATTER;
    if (n->name.len < 6 || memcmp(n->name.ptr, "c10d::", 6) != 0)
        return is_operator_name(n->name) ? 0 : -1;
    return call->type == ORR_NODE_COMM_COLL && has_output;
}

static int64_t bytes_of(const linked_node *n, const conv_call *call)
{
    const int argument = input_argument(n, call);
    const int64_t bytes = io_bytes(n->inputs, argument);
    return bytes < 0 && argument > 0 ? io_bytes(n->inputs, 0) : bytes;
}

static int64_t times(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

/* Of a scatter, all ranks but the root have only an output. */
static int64_t bytes_by_count(const hearing *h, const conv_call *call)
{
    const linked_comm *k = &h->known;
    int64_t elements = k->in_elements;
    if (elements == 0 && call->type == ORR_NODE_COMM_RECV)
        elements = k->out_elements;
    if (elements == 0 && call->type == ORR_NODE_COMM_COLL && k->out_elements > 0) {
        const bool is_scatter = call->kind == ORR_COLL_SCATTER && k->group_size > 0;
        elements = is_scatter                         ? times(k->out_elements, k->group_size)
                   : call->kind == ORR_COLL_BROADCAST ? k->out_elements
                                                      : 0;
    }
    return elements < 0 ? -1 : times(elements, orr__dtype_scalar_bytes(k->dtype));
}

static bool set_size(const hearing *h, conv_call *call)
{
    call->bytes = bytes_by_count(h, call);
    for (int i = 0; i < h->count && call->bytes < 0; i++)
        call->bytes = bytes_of(conv_node(h->c, h->witness[i]), call);
    if (call->type == ORR_NODE_COMM_COLL && call->kind == ORR_COLL_BARRIER)
        call->bytes = 0;
    if (call->bytes >= 0)
        return true;
    call->bytes = 0;
    return false;
}

/* ---- peers ---- */

/* From the rank in the group to the rank in the job. */
static int64_t rank_in_job(const hearing *h, int64_t rank)
{
    const linked_group *g = linked_find_group(h->c->l, h->known.group);
    if (rank < 0)
        return -1;
    if (g && g->ranks)
        return rank < g->count ? (int64_t)g->ranks[rank] : -1;
    if (h->known.rank_start >= 0 && h->known.rank_stride > 0)
        return h->known.rank_start + times(h->known.rank_stride, rank);
    return rank;
}

static bool set_peers(const hearing *h, conv_call *call)
{
    const int64_t own = h->c->opt.has_rank ? (int64_t)h->c->opt.rank : h->c->l->rank;
    const int64_t peer = rank_in_job(h, h->rank_in_group);
    call->src = call->dst = -1;
    if (call->type == ORR_NODE_COMM_SEND) {
        call->src = own;
        call->dst = h->known.dst >= 0 ? h->known.dst : peer;
        return call->dst >= 0;
    }
    if (call->type == ORR_NODE_COMM_RECV) {
        call->src = h->known.src >= 0 ? h->known.src : peer;
        call->dst = own;
        return call->src >= 0;
    }
    const int64_t root = h->known.src >= 0 ? h->known.src : peer;
    if (call->kind == ORR_COLL_BROADCAST || call->kind == ORR_COLL_SCATTER)
        call->src = root;
    else if (call->kind == ORR_COLL_REDUCE || call->kind == ORR_COLL_GATHER)
        call->dst = root;
    return true;
}

/* ---- everything ---- */

static bool has_root(orr_collective kind)
{
    return kind == ORR_COLL_BROADCAST || kind == ORR_COLL_REDUCE || kind == ORR_COLL_GATHER ||
           kind == ORR_COLL_SCATTER;
}

static conv_call hear_all(const conv_state *c, uint32_t place)
{
    hearing h = {.c = c,
                 .place = place,
                 .known = linked_no_comm(),
                 .rank_in_group = -1,
                 .recorded = -1,
                 .tag = -1};
    conv_call call = {0};
    orr_pytorch_report *r = c->report;
    call_witnesses(&h);
    for (int i = 0; i < h.count; i++)
        hear(&h, h.witness[i]);
    r->kinds_unknown += !set_kind(&h, &call);
    r->sizes_unknown += !set_size(&h, &call);
    r->peers_unknown += !set_peers(&h, &call);
    call.tag = h.tag < 0 ? 0 : h.tag;
    call.group = h.known.group;
    call.own = call.type == ORR_NODE_COMM_COLL && !has_root(call.kind) ? h.recorded : -1;
    r->collectives += call.type == ORR_NODE_COMM_COLL;
    r->messages += call.type != ORR_NODE_COMM_COLL;
    return call;
}

static orr_code find_comm(conv_state *c)
{
    for (uint32_t p = 0; p < c->count; p++) {
        c->call[p] = LINKED_NO_COMM;
        if (c->role[p] != CONV_COMM && c->role[p] != CONV_CALL)
            continue;
        if (!orr_grow(&c->calls, &c->call_room, c->call_count + 1))
            return orr_no_memory(c->err);
        c->call[p] = (uint32_t)c->call_count;
        c->calls[c->call_count++] = hear_all(c, p);
    }
    return ORR_OK;
}

/* ==== everything ==== */

/* ---- places ---- */

typedef struct keyed {
    uint64_t id;
    uint32_t node;
} keyed;

static int by_number(const void *a, const void *b)
{
    const keyed *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

static bool is_ascending(const orr_linked *l)
{
    for (size_t i = 1; i < l->node_count; i++) {
        if (l->nodes[i - 1].id >= l->nodes[i].id)
            return false;
    }
    return true;
}

static orr_code sort_nodes(conv_state *c)
{
    keyed *keys = is_ascending(c->l) ? NULL : orr_alloc(c->count, sizeof *keys);
    for (uint32_t i = 0; i < c->count; i++)
        c->node[i] = i;
    if (is_ascending(c->l))
        return ORR_OK;
    if (!keys)
        return orr_no_memory(c->err);
    for (uint32_t i = 0; i < c->count; i++)
        keys[i] = (keyed){c->l->nodes[i].id, i};
    orr_sort(keys, c->count, sizeof *keys, by_number);
    for (uint32_t i = 0; i < c->count; i++)
        c->node[i] = keys[i].node;
    orr_free(keys);
    return ORR_OK;
}

static orr_code fail_duplicate_id(const conv_state *c, uint32_t place)
{
    const linked_node *n = conv_node(c, place);
    return orr_fail(c->err, ORR_EINPUT, ORR_AT(linked_where(c->l, n)), "duplicate node %" PRIu64,
                    n->id);
}

static orr_code index_nodes(conv_state *c)
{
    for (uint32_t p = 0; p < c->count; p++) {
        if (p && conv_node(c, p - 1)->id == conv_node(c, p)->id)
            return fail_duplicate_id(c, p);
        if (!orr_map_put(c->by_id, conv_node(c, p)->id, p, NULL))
            return orr_no_memory(c->err);
    }
    return ORR_OK;
}

static void note_later(conv_state *c, uint32_t place)
{
    const linked_node *n = conv_node(c, place);
    const uint64_t known = c->report->parents_later++;
    if (known < ORR_PYTORCH_SHOWN)
        c->report->later_nodes[known] = (orr_pytorch_later){n->id, n->parent};
}

/* The process has no parent, or is its own.  Any other parent must precede its children, or there
 * may be a cycle. */
static void find_parents(conv_state *c)
{
    for (uint32_t p = 0; p < c->count; p++) {
        const linked_node *n = conv_node(c, p);
        const uint32_t parent =
            n->parent == LINKED_NO_ID ? CONV_NONE : orr_map_find(c->by_id, n->parent, CONV_NONE);
        c->parent[p] = parent == p ? CONV_NONE : parent;
        c->partner[p] = CONV_NONE;
        if (parent != CONV_NONE && (parent > p || (parent == p && p != 0)))
            note_later(c, p);
        c->report->parents_missing += parent == CONV_NONE && n->parent != LINKED_NO_ID && p != 0;
    }
}

static bool make_room(conv_state *c)
{
    const size_t n = (size_t)c->count + 1;
    c->arena = orr_arena_create();
    c->by_id = orr_map_create(n);
    if (!c->arena || !c->by_id)
        return false;
    c->node = orr_arena_new(c->arena, n, uint32_t);
    c->parent = orr_arena_new(c->arena, n, uint32_t);
    c->role = orr_arena_new(c->arena, n, uint8_t);
    c->said = orr_arena_new(c->arena, n, uint8_t);
    c->partner = orr_arena_new(c->arena, n, uint32_t);
    c->call = orr_arena_new(c->arena, n, uint32_t);
    c->before = orr_arena_new(c->arena, n, uint32_t);
    return c->node && c->parent && c->role && c->said && c->partner && c->call && c->before;
}

/* ---- the steps ---- */

static orr_code find_all(conv_state *c)
{
    if (!make_room(c))
        return orr_no_memory(c->err);
    orr_code code = sort_nodes(c);
    if (code || (code = index_nodes(c)))
        return code;
    find_parents(c);
    if ((code = find_roles(c)) || (code = find_comm(c)))
        return code;
    if (*c->lacks_memory)
        return orr_no_memory(c->err);
    code = find_scale(c);
    return code ? code : conv_find_deps(c);
}

orr_code conv_prepare(const orr_linked *l,
                      const orr_pytorch_options *opt,
                      orr_pytorch_report *report,
                      conv_state **out,
                      orr_error *err)
{
    conv_state *c = *out = orr_alloc(1, sizeof *c);
    if (!c)
        return orr_no_memory(err);
    c->l = l;
    c->opt = opt ? *opt : (orr_pytorch_options){0};
    c->report = report;
    c->count = (uint32_t)l->node_count; /* linked_add keeps it in range */
    c->lacks_memory = &c->lacked;
    c->err = err;
    *report = (orr_pytorch_report){0};
    const orr_code code = find_all(c);
    if (code) {
        conv_close(c);
        *out = NULL;
        return code;
    }
    for (uint32_t p = 0; p < c->count; p++) {
        report->host_nodes += c->role[p] == CONV_HOST;
        report->device_nodes += conv_is_device(c, p);
    }
    return ORR_OK;
}

void conv_close(conv_state *c)
{
    if (!c)
        return;
    orr_free(c->calls);
    orr_free(c->links);
    orr_map_destroy(c->by_id);
    orr_arena_destroy(c->arena);
    orr_free(c);
}

orr_code orr_linked_trace(const orr_linked *l,
                          const orr_pytorch_options *opt,
                          orr_trace **out,
                          orr_pytorch_report *report,
                          orr_error *err)
{
    orr_pytorch_report own;
    conv_state *c;
    *out = NULL;
    report = report ? report : &own;
    *report = (orr_pytorch_report){0};
    if (l->rules)
        return l->rules->trace(l, out, err);
    orr_code code = conv_prepare(l, opt, report, &c, err);
    if (code)
        return code;
    code = conv_write(c, out, err);
    conv_close(c);
    return code;
}

orr_code orr_linked_simulate(const orr_linked *l, orr_line_sink say, void *sink, orr_error *err)
{
    if (l->rules && l->rules->simulate)
        return l->rules->simulate(l, say, sink, err);
    return orr_fail(err, ORR_EUSAGE, NULL, "%s: these rules do not play a trace through", l->path);
}
