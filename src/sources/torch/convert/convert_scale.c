/* SPDX-License-Identifier: Apache-2.0 */
/* convert_scale.c - how much slower the host was because it was watched.
 *
 * Recording an operator means writing down its tensors, so each costs some microseconds more than
 * it would, and a step that the device bounds looks as if the host did.  Kernels are recorded by
 * the device and have their true times.  What the host would have needed is estimated twice:
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
 * computation, which no common factor suits: then `added` is only said.
 *
 * Cost: linear, and two sorts of the views. */
#include "conversion.h"

#include <stdlib.h>

#define VIEW_NS 700.0      /* what such an operator takes unwatched */
#define OPERATOR_NS 3500.0 /* what the host takes for any operator, on average */
#define LAUNCH_NS 6000.0   /* and for each thing it starts on the device */
#define MOST_ADDED 1.5     /* times `added` */
#define LEAST_ADDED 0.75
#define LEAST_LEFT 0.02  /* of what was recorded */
#define EXPECTED_LOW 0.7 /* how far `expected` was off */
#define EXPECTED_HIGH 1.4
enum { VIEWS_NEEDED = 16 };

typedef struct scaling {
    const conv_state *c;
    uint32_t *inside;  /* by place: how many operators are in it */
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
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        if (orr_str_is(name, views[i]))
            return true;
    }
    return false;
}

/* Without white space: a linked file has more of it than the trace had. */
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

/* What was written about a node, in bytes.  Without a host trace all are alike. */
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
    qsort(of, count, sizeof *of, by_size);
    return of[count / 2] > 0 ? of[count / 2] : 0;
}

/* Nanoseconds for each byte, of views with this many operators in them; how many views. */
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

orr_code conv_find_scale(conv_state *c)
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
