/* SPDX-License-Identifier: Apache-2.0 */
/* Our own rules against a model that has no idea of closed forms: every vector is a list of
 * addresses, every piece a set of them, and the array and its three doors are stepped cycle by
 * cycle. */
#include "check.h"

#include "base/rng.h"

#include <orrery/lab/systolic.h>

#include <math.h>

static orr_error err;

enum {
    MOST_WORDS = 4096,   /* addresses of an operand */
    MOST_USES = 1 << 16, /* vectors of a run, of one operand */
    MOST_PIECES = 1 << 16,
};

/* A vector: which words, in which cycle if nothing ever stalls. */
typedef struct vector {
    uint64_t cycle;
    uint16_t words[64];
    unsigned count;
} vector;

typedef struct use {
    size_t first, count; /* vectors */
    unsigned words;      /* different ones */
    bool is_fetched;     /* it was in neither half */
    int half;
    size_t waits; /* the use that must be over before the half is free; SIZE_MAX: none */
    uint64_t tile, part;
} use;

typedef struct lane {
    vector *vectors;
    size_t count;
    use *uses;
    size_t use_count;
    bool is_whole;
    uint64_t total;      /* different words altogether */
    uint64_t reads;      /* words of all vectors */
    uint64_t fetched;    /* from memory; of outputs: written to it */
    uint64_t back;       /* outputs: read again */
    int64_t first, last; /* of what goes to or from memory */
    int64_t begin, end;  /* cycles of the first vector and of the last */
} lane;

typedef struct model {
    const orr_systolic_array *a;
    const orr_systolic_layer *l;
    uint64_t R, C, T, N, E, out_h, out_w;
    lane lanes[3];
    uint64_t cycles, stalls;
} model;

/* ---- geometry, said once more ---- */

static uint64_t up(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

static void set_geometry(model *m)
{
    const orr_systolic_layer *l = m->l;
    const uint64_t dh = l->ifmap_height - l->filter_height, dw = l->ifmap_width - l->filter_width;
    m->R = m->a->rows;
    m->C = m->a->columns;
    m->out_h = (m->a->round_up ? up(dh, l->stride_height) : dh / l->stride_height) + 1;
    m->out_w = (m->a->round_up ? up(dw, l->stride_width) : dw / l->stride_width) + 1;
    m->E = m->out_h * m->out_w;
    m->T = l->filter_height * l->filter_width * l->channels;
    m->N = l->filters;
}

/* -1: outside the ifmap. */
static int64_t ifmap_word(const model *m, uint64_t pixel, uint64_t k)
{
    const orr_systolic_layer *l = m->l;
    const uint64_t c = k % l->channels, fx = k / l->channels % l->filter_width;
    const uint64_t y = pixel / m->out_w * l->stride_height + k / l->channels / l->filter_width;
    const uint64_t x = pixel % m->out_w * l->stride_width + fx;
    if (y >= l->ifmap_height || x >= l->ifmap_width)
        return -1;
    return (int64_t)((y * l->ifmap_width + x) * l->channels + c);
}

static void add_word(lane *x, vector *v, int64_t word)
{
    if (word < 0)
        return;
    v->words[v->count++] = (uint16_t)word;
    x->reads++;
}

static vector *add_vector(lane *x, uint64_t cycle)
{
    CHECK(x->count < MOST_USES);
    vector *v = &x->vectors[x->count++];
    v->cycle = cycle;
    v->count = 0;
    return v;
}

/* ---- pieces ---- */

static unsigned distinct(const lane *x, size_t first, size_t count)
{
    static bool seen[MOST_WORDS];
    unsigned n = 0;
    memset(seen, 0, sizeof seen);
    for (size_t i = first; i < first + count; i++)
        for (unsigned k = 0; k < x->vectors[i].count; k++) {
            n += !seen[x->vectors[i].words[k]];
            seen[x->vectors[i].words[k]] = true;
        }
    return n;
}

/* Cut a tile, the vectors from `first` on, into pieces. */
static void cut(lane *x, size_t first, uint64_t width, uint64_t half, uint64_t tile)
{
    const size_t count = x->count - first;
    size_t per = half / width ? half / width : 1;
    if (distinct(x, first, count) <= half)
        per = count;
    for (size_t at = 0; at < count; at += per) {
        CHECK(x->use_count < MOST_PIECES);
        x->uses[x->use_count++] = (use){.first = first + at,
                                        .count = count - at < per ? count - at : per,
                                        .tile = tile,
                                        .part = at / per};
    }
}

/* Which uses find their piece in a half, which half the others go to, and what they wait for. */
static void place_uses(lane *x, bool is_output)
{
    size_t in[2] = {SIZE_MAX, SIZE_MAX}, last_use[2] = {SIZE_MAX, SIZE_MAX};
    int recent = 1;
    for (size_t i = 0; i < x->use_count; i++) {
        use *u = &x->uses[i];
        u->words = distinct(x, u->first, u->count);
        u->half = -1;
        for (int h = 0; h < 2 && !is_output; h++)
            if (in[h] != SIZE_MAX && x->uses[in[h]].tile == u->tile &&
                x->uses[in[h]].part == u->part)
                u->half = h;
        if (u->half < 0) {
            u->is_fetched = true;
            u->half = !recent;
            u->waits = last_use[u->half];
            in[u->half] = i;
        }
        last_use[u->half] = i;
        recent = u->half;
    }
}

/* ---- the schedule ---- */

static void build_os(model *m, const uint64_t half[3])
{
    const uint64_t H = up(m->E, m->R), V = up(m->N, m->C);
    uint64_t F = 0;
    for (uint64_t v = 0; v < V; v++)
        for (uint64_t h = 0; h < H; h++) {
            const uint64_t r = m->E - h * m->R < m->R ? m->E - h * m->R : m->R;
            const uint64_t c = m->N - v * m->C < m->C ? m->N - v * m->C : m->C;
            const size_t at[3] = {m->lanes[0].count, m->lanes[1].count, m->lanes[2].count};
            for (uint64_t k = 0; k < m->T; k++) {
                vector *i = add_vector(&m->lanes[0], F + k), *f = add_vector(&m->lanes[1], F + k);
                for (uint64_t p = 0; p < r; p++)
                    add_word(&m->lanes[0], i, ifmap_word(m, h * m->R + p, k));
                for (uint64_t n = 0; n < c; n++)
                    add_word(&m->lanes[1], f, (int64_t)((v * m->C + n) * m->T + k));
            }
            for (uint64_t p = 0; p < r; p++) {
                vector *o = add_vector(&m->lanes[2], F + m->T + c - 1 + p);
                for (uint64_t n = 0; n < c; n++)
                    add_word(&m->lanes[2], o, (int64_t)((h * m->R + p) * m->N + v * m->C + n));
            }
            cut(&m->lanes[0], at[0], r, half[0], h);
            cut(&m->lanes[1], at[1], c, half[1], v);
            cut(&m->lanes[2], at[2], c, half[2], v * H + h);
            F += m->T + r + c - 2;
        }
    m->cycles = F + 1;
}

/* Weights (or inputs) stay: rows hold elements of the window, columns filters (or pixels). */
static void build_fixed(model *m, const uint64_t half[3])
{
    const bool is_ws = m->a->dataflow == ORR_DATAFLOW_WS;
    const uint64_t across = is_ws ? m->N : m->E, steps = is_ws ? m->E : m->N;
    const uint64_t H = up(m->T, m->R), V = up(across, m->C);
    lane *held = &m->lanes[is_ws ? 1 : 0], *moving = &m->lanes[is_ws ? 0 : 1];
    uint64_t F = 0;
    for (uint64_t v = 0; v < V; v++) {
        const uint64_t c = across - v * m->C < m->C ? across - v * m->C : m->C;
        const bool stays = H > 1 && steps * c <= half[2];
        const size_t column = m->lanes[2].count;
        for (uint64_t h = 0; h < H; h++) {
            const uint64_t r = m->T - h * m->R < m->R ? m->T - h * m->R : m->R;
            const size_t at[3] = {held->count, moving->count, m->lanes[2].count};
            for (uint64_t k = 0; k < r; k++) {
                vector *w = add_vector(held, F + k);
                for (uint64_t n = 0; n < c; n++)
                    add_word(held, w,
                             is_ws ? (int64_t)((v * m->C + n) * m->T + h * m->R + k)
                                   : ifmap_word(m, v * m->C + n, h * m->R + k));
            }
            for (uint64_t x = 0; x < steps; x++) {
                vector *i = add_vector(moving, F + r + x);
                vector *o = add_vector(&m->lanes[2], F + r + x + r + c - 1);
                for (uint64_t k = 0; k < r; k++)
                    add_word(moving, i,
                             is_ws ? ifmap_word(m, x, h * m->R + k)
                                   : (int64_t)(x * m->T + h * m->R + k));
                for (uint64_t n = 0; n < c; n++)
                    add_word(
                        &m->lanes[2], o,
                        (int64_t)(is_ws ? x * m->N + v * m->C + n : (v * m->C + n) * m->N + x));
            }
            cut(held, at[0], c, half[is_ws ? 1 : 0], v * H + h);
            cut(moving, at[1], r, half[is_ws ? 0 : 1], h);
            if (!stays)
                cut(&m->lanes[2], at[2], c, half[2], h);
            F += r + steps + r + c - 2;
        }
        if (stays) {
            CHECK(m->lanes[2].use_count < MOST_PIECES);
            m->lanes[2].uses[m->lanes[2].use_count++] =
                (use){.first = column, .count = m->lanes[2].count - column};
        }
    }
    m->cycles = F + 1;
}

/* ---- cycle by cycle ---- */

/* One door: transfers in their order, one at a time. */
typedef struct port {
    size_t
        next; /* use whose transfer comes next; of outputs: twice its number, plus 1 for what is read back */
    int64_t done; /* the cycle in which the running one is over */
    bool is_running;
} port;

typedef struct stepper {
    model *m;
    double bandwidth;
    port ports[3];
    size_t at[3];      /* the next vector of each operand */
    size_t now[3];     /* the use it belongs to */
    bool *is_there[3]; /* by use: fetched; of outputs: its half is ready */
    bool *is_over[3];  /* by use: all its vectors are done */
    bool *is_drained;
} stepper;

static int64_t length_of(const stepper *s, unsigned words)
{
    return (int64_t)ceil(words / s->bandwidth);
}

static void log_transfer(lane *x, int64_t from, int64_t to)
{
    x->first = x->first == INT64_MAX ? from : x->first;
    x->last = to;
}

/* Start, at the beginning of this cycle, whatever input transfer may start. */
static void step_input(stepper *s, int i, int64_t cycle)
{
    lane *x = &s->m->lanes[i];
    port *p = &s->ports[i];
    for (;;) {
        if (p->is_running && p->done > cycle)
            return;
        if (p->is_running)
            s->is_there[i][p->next++] = true;
        p->is_running = false;
        while (p->next < x->use_count && !x->uses[p->next].is_fetched)
            s->is_there[i][p->next++] = true;
        if (p->next == x->use_count)
            return;
        const use *u = &x->uses[p->next];
        if (u->waits != SIZE_MAX && !s->is_over[i][u->waits])
            return;
        x->fetched += u->words;
        p->is_running = true;
        p->done = cycle + length_of(s, u->words);
        log_transfer(x, cycle, p->done - 1);
    }
}

/* Outputs: before use n its half is emptied (of use n - 2) and, for sums, filled again. */
static void step_output(stepper *s, int64_t cycle)
{
    lane *x = &s->m->lanes[2];
    port *p = &s->ports[2];
    for (;;) {
        if (p->is_running && p->done > cycle)
            return;
        if (p->is_running)
            p->next++;
        p->is_running = false;
        const size_t n = p->next / 2;
        const bool is_drain = p->next % 2 == 0;
        if (n >= x->use_count + 2)
            return;
        if (is_drain && (n < 2 || n - 2 >= x->use_count)) {
            p->next++;
        } else if (is_drain) {
            if (!s->is_over[2][n - 2])
                return;
            x->fetched += x->uses[n - 2].words;
            p->is_running = true;
            p->done = cycle + length_of(s, x->uses[n - 2].words);
            log_transfer(x, cycle, p->done - 1);
        } else if (n < x->use_count && x->uses[n].tile > 0 &&
                   s->m->a->dataflow != ORR_DATAFLOW_OS && !s->is_there[2][n]) {
            s->is_there[2][n] = true; /* once it is done; see use_ready */
            x->back += x->uses[n].words;
            p->is_running = true;
            p->done = cycle + length_of(s, x->uses[n].words);
        } else {
            if (n < x->use_count)
                s->is_there[2][n] = true;
            p->next++;
        }
    }
}

static bool is_ready(const stepper *s, int i, int64_t cycle)
{
    const size_t n = s->now[i];
    if (s->m->lanes[i].is_whole)
        return true;
    if (i < 2)
        return s->is_there[i][n];
    /* Its read-back, if any, is over when the port has gone past it. */
    return s->is_there[2][n] &&
           (s->ports[2].next > 2 * n + 1 || (s->ports[2].is_running && s->ports[2].done <= cycle));
}

static void advance(stepper *s, int i, uint64_t nominal, int64_t cycle)
{
    lane *x = &s->m->lanes[i];
    if (s->at[i] == x->count || x->vectors[s->at[i]].cycle != nominal)
        return;
    x->begin = s->at[i]++ == 0 ? cycle : x->begin;
    x->end = cycle;
    const use *u = &x->uses[s->now[i]];
    if (!x->is_whole && s->at[i] == u->first + u->count)
        s->is_over[i][s->now[i]++] = true;
}

static void run_cycles(model *m)
{
    stepper s = {.m = m, .bandwidth = m->a->bandwidth};
    int64_t cycle = 0;
    for (int i = 0; i < 3; i++) {
        s.is_there[i] = calloc(MOST_PIECES + 2, 1);
        s.is_over[i] = calloc(MOST_PIECES + 2, 1);
        lane *x = &m->lanes[i];
        x->first = INT64_MAX;
        if (i < 2 && !x->is_whole) { /* the first piece is there when the run begins */
            x->fetched = x->uses[0].words;
            s.is_there[i][0] = true;
            s.ports[i].next = 1;
            x->first = -length_of(&s, x->uses[0].words);
            x->last = -1;
        }
    }
    for (uint64_t nominal = 0; nominal < m->cycles; cycle++) {
        bool go = true;
        for (int i = 0; i < 2; i++)
            if (!m->lanes[i].is_whole)
                step_input(&s, i, cycle);
        if (!m->lanes[2].is_whole)
            step_output(&s, cycle);
        for (int i = 0; i < 3; i++)
            if (s.at[i] < m->lanes[i].count && m->lanes[i].vectors[s.at[i]].cycle == nominal &&
                !is_ready(&s, i, cycle))
                go = false;
        for (int i = 0; i < 3 && go; i++)
            advance(&s, i, nominal, cycle);
        m->stalls += !go;
        nominal += go;
    }
    for (int64_t end = cycle + (1 << 24); !m->lanes[2].is_whole && cycle < end; cycle++) {
        step_output(&s, cycle);
        if (s.ports[2].next >= 2 * m->lanes[2].use_count + 4)
            break;
    }
    for (int i = 0; i < 3; i++) {
        free(s.is_there[i]);
        free(s.is_over[i]);
    }
}

/* ---- comparing ---- */

static void build(model *m)
{
    const uint64_t sizes[3] = {m->a->ifmap_words, m->a->filter_words, m->a->ofmap_words};
    uint64_t half[3];
    set_geometry(m);
    for (int i = 0; i < 3; i++) {
        half[i] = sizes[i] / 2 ? sizes[i] / 2 : 1;
        m->lanes[i].vectors = malloc(MOST_USES * sizeof(vector));
        m->lanes[i].uses = malloc(MOST_PIECES * sizeof(use));
    }
    if (m->a->dataflow == ORR_DATAFLOW_OS)
        build_os(m, half);
    else
        build_fixed(m, half);
    for (int i = 0; i < 3; i++) {
        lane *x = &m->lanes[i];
        x->total = distinct(x, 0, x->count);
        x->is_whole = x->total <= sizes[i];
        place_uses(x, i == 2);
    }
}

static void compare(model *m, const orr_systolic_result *r, const char *what)
{
    for (int i = 0; i < 3; i++) {
        const lane *x = &m->lanes[i];
        const uint64_t words = x->is_whole ? x->total : x->fetched;
        if (r->sram[i].words != x->reads || r->dram[i].words != words)
            check_fail(__FILE__, __LINE__, "%s: operand %d: %llu and %llu words, not %llu and %llu",
                       what, i, (unsigned long long)r->sram[i].words,
                       (unsigned long long)r->dram[i].words, (unsigned long long)x->reads,
                       (unsigned long long)words);
        if (!x->is_whole && (r->dram[i].first != x->first || r->dram[i].last != x->last))
            check_fail(__FILE__, __LINE__, "%s: operand %d: %lld to %lld, not %lld to %lld", what,
                       i, (long long)r->dram[i].first, (long long)r->dram[i].last,
                       (long long)x->first, (long long)x->last);
    }
    for (int i = 0; i < 3; i++)
        if (r->sram[i].first != m->lanes[i].begin || r->sram[i].last != m->lanes[i].end)
            check_fail(__FILE__, __LINE__,
                       "%s: operand %d is used from %lld to %lld, not %lld to %lld", what, i,
                       (long long)r->sram[i].first, (long long)r->sram[i].last,
                       (long long)m->lanes[i].begin, (long long)m->lanes[i].end);
    if (r->stalls != m->stalls || r->cycles != m->cycles + m->stalls ||
        r->dram_partial_reads != (m->lanes[2].is_whole ? 0 : m->lanes[2].back))
        check_fail(
            __FILE__, __LINE__, "%s: %llu cycles, %llu stalls, %llu sums; not %llu, %llu, %llu",
            what, (unsigned long long)r->cycles, (unsigned long long)r->stalls,
            (unsigned long long)r->dram_partial_reads, (unsigned long long)(m->cycles + m->stalls),
            (unsigned long long)m->stalls, (unsigned long long)m->lanes[2].back);
}

static void check_one(const orr_systolic_array *a, const orr_systolic_layer *l)
{
    char what[200];
    orr_systolic_result r;
    model m = {.a = a, .l = l};
    snprintf(
        what, sizeof what,
        "%c %llux%llu, buffers %llu %llu %llu at %g%s, layer %llux%llu %llux%llux%llu x%llu /%llu,%llu",
        "owi"[a->dataflow], (unsigned long long)a -> rows, (unsigned long long)a -> columns,
        (unsigned long long)a -> ifmap_words, (unsigned long long)a -> filter_words,
        (unsigned long long)a -> ofmap_words, a -> bandwidth, a -> round_up ? " up" : "",
        (unsigned long long)l->ifmap_height, (unsigned long long)l->ifmap_width,
        (unsigned long long)l->filter_height, (unsigned long long)l->filter_width,
        (unsigned long long)l->channels, (unsigned long long)l->filters,
        (unsigned long long)l->stride_height, (unsigned long long)l->stride_width);
    CHECK_OK(orr_systolic_run(a, l, NULL, &r, &err), &err);
    build(&m);
    run_cycles(&m);
    compare(&m, &r, what);
    for (int i = 0; i < 3; i++) {
        free(m.lanes[i].vectors);
        free(m.lanes[i].uses);
    }
}

static uint64_t pick(orr_rng *rng, uint64_t from, uint64_t to)
{
    return from + orr_rng_below(rng, to - from + 1);
}

static orr_systolic_layer random_layer(orr_rng *rng)
{
    if (pick(rng, 0, 2) == 0)
        return orr_systolic_gemm(pick(rng, 1, 40), pick(rng, 1, 30), pick(rng, 1, 30));
    const uint64_t fh = pick(rng, 1, 3), fw = pick(rng, 1, 4);
    return (orr_systolic_layer){
        fh + pick(rng, 0, 7), fw + pick(rng, 0, 7), fh, fw, pick(rng, 1, 4), pick(rng, 1, 12),
        pick(rng, 1, 3),      pick(rng, 1, 3)};
}

static orr_systolic_array random_array(orr_rng *rng, uint64_t flow)
{
    static const double rates[] = {0.5, 1, 1.5, 2, 3, 7, 20, 100};
    orr_systolic_array a = {.rows = pick(rng, 1, 9), .columns = pick(rng, 1, 9)};
    a.dataflow = (orr_dataflow)flow;
    a.ifmap_words = pick(rng, 1, pick(rng, 1, 300));
    a.filter_words = pick(rng, 1, pick(rng, 1, 300));
    a.ofmap_words = pick(rng, 1, pick(rng, 1, 300));
    a.bandwidth = rates[pick(rng, 0, 7)];
    a.round_up = pick(rng, 0, 3) == 0;
    return a;
}

static void check_many(uint64_t flow, uint64_t seed)
{
    orr_rng rng;
    orr_rng_init(&rng, seed, flow);
    for (int i = 0; i < 400; i++) {
        const orr_systolic_layer l = random_layer(&rng);
        const orr_systolic_array a = random_array(&rng, flow);
        check_one(&a, &l);
    }
}

TEST(test_systolic_true__outputs_stationary_is_what_stepping_gives)
{
    check_many(ORR_DATAFLOW_OS, 1);
}

TEST(test_systolic_true__weights_stationary_is_what_stepping_gives)
{
    check_many(ORR_DATAFLOW_WS, 2);
}

TEST(test_systolic_true__inputs_stationary_is_what_stepping_gives)
{
    check_many(ORR_DATAFLOW_IS, 3);
}

/* Without a bandwidth nothing stalls, the same words move, and the peaks are enough: but for sums
 * that go to memory and back, the highest of them as a bandwidth stalls nothing either. */
TEST(test_systolic_true__peaks_are_the_bandwidth_that_is_needed)
{
    orr_rng rng;
    orr_rng_init(&rng, 7, 0);
    for (int i = 0; i < 1500; i++) {
        const orr_systolic_layer l = random_layer(&rng);
        orr_systolic_array a = random_array(&rng, pick(&rng, 0, 2));
        orr_systolic_result slow, free_run, fast;
        CHECK_OK(orr_systolic_run(&a, &l, NULL, &slow, &err), &err);
        a.bandwidth = 0;
        CHECK_OK(orr_systolic_run(&a, &l, NULL, &free_run, &err), &err);
        CHECK_EQ_U(free_run.stalls, 0);
        for (int k = 0; k < ORR_OPERANDS; k++) {
            CHECK_EQ_U(free_run.dram[k].words, slow.dram[k].words);
            a.bandwidth = fmax(a.bandwidth, free_run.dram[k].peak * (1 + 1e-12)); /* rounding */
        }
        CHECK_EQ_U(free_run.cycles + slow.stalls, slow.cycles);
        if (free_run.dram_partial_reads || a.bandwidth == 0)
            continue;
        CHECK_OK(orr_systolic_run(&a, &l, NULL, &fast, &err), &err);
        CHECK_EQ_U(fast.stalls, 0);
    }
}

/* Worked out by hand: 3 x 2 outputs of 4 products each on 2 x 2 elements.
 *     os: folds of 2 and 1 rows, one column fold:  4 + 2 + 2 - 2 = 6 cycles, 4 + 1 + 2 - 2 = 5, and one to leave.
 *     ws: the window is cut into 2 and 2:  2 + 3 + 2 + 2 - 2 = 7 cycles each, and one. */
TEST(test_systolic_true__cycles_are_those_of_a_drawing_on_paper)
{
    const orr_systolic_layer l = orr_systolic_gemm(3, 2, 4);
    orr_systolic_array a = {.rows = 2, .columns = 2};
    orr_systolic_result r;
    CHECK_OK(orr_systolic_run(&a, &l, NULL, &r, &err), &err);
    CHECK_EQ_U(r.cycles, 12);
    CHECK_EQ_U(r.macs, 24);
    CHECK(r.utilisation == 100.0 * 24 / (12 * 4));
    CHECK_EQ_U(r.sram[ORR_OPERAND_IFMAP].words, 12);  /* 3 pixels, 4 elements, one column fold */
    CHECK_EQ_U(r.sram[ORR_OPERAND_FILTER].words, 16); /* 2 filters, 4 elements, two row folds */
    CHECK_EQ_U(r.sram[ORR_OPERAND_OFMAP].words, 6);
    CHECK_EQ(r.sram[ORR_OPERAND_OFMAP].first,
             5); /* 4 steps, 1 column further, leaves in the next */
    a.dataflow = ORR_DATAFLOW_WS;
    CHECK_OK(orr_systolic_run(&a, &l, NULL, &r, &err), &err);
    CHECK_EQ_U(r.cycles, 15);
    CHECK_EQ_U(r.sram[ORR_OPERAND_FILTER].words, 8);
    CHECK_EQ_U(r.sram[ORR_OPERAND_OFMAP].words, 12); /* sums of two folds, */
    CHECK_EQ_U(r.sram_partial_reads, 6);             /* of which the first is read again */
    CHECK_EQ_U(r.dram[ORR_OPERAND_OFMAP].words, 6);
    CHECK_EQ_U(r.dram_partial_reads, 0);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_systolic_true__outputs_stationary_is_what_stepping_gives),
        RUN(test_systolic_true__weights_stationary_is_what_stepping_gives),
        RUN(test_systolic_true__inputs_stationary_is_what_stepping_gives),
        RUN(test_systolic_true__peaks_are_the_bandwidth_that_is_needed),
        RUN(test_systolic_true__cycles_are_those_of_a_drawing_on_paper),
    };
    return RUN_ALL(tests);
}
