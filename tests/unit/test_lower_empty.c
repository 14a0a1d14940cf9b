/* SPDX-License-Identifier: Apache-2.0 */
/* room: stage */
/* The removal of nodes without work, against the rounds of the specification's section 12 done
 * literally. */
#include "base/rng.h"
#include "check.h"
#include "compat/stage/lower.h"

enum { NODES = 40, DEPS = 4096 };

static orr_error err;
static stg_space space;
static stg_tgraph graph;
static stg_measure measure;
static stg_lowering lowering;

/* ---- the literal form: lists of ids, rounds, snapshots ---- */

typedef struct list {
    uint32_t at[DEPS];
    size_t count;
} list;

typedef struct literal {
    list deps[NODES];
    bool is_empty[NODES], is_gone[NODES];
} literal;

static bool has(const list *l, uint32_t v)
{
    for (size_t i = 0; i < l->count; i++) {
        if (l->at[i] == v)
            return true;
    }
    return false;
}

static void add(list *l, uint32_t v)
{
    CHECK(l->count < DEPS);
    l->at[l->count++] = v;
}

static void remove_first(list *l, uint32_t v)
{
    size_t i = 0;
    while (l->at[i] != v)
        i++;
    l->count--;
    memmove(l->at + i, l->at + i + 1, (l->count - i) * sizeof *l->at);
}

static bool waits(const literal *m, const bool *in_round, uint32_t n)
{
    for (uint32_t e = 0; e < NODES; e++) {
        if (in_round[e] && has(&m->deps[n], e))
            return true;
    }
    return false;
}

static void leave(literal *m, const literal *snapshot, uint32_t n)
{
    m->is_gone[n] = true;
    for (uint32_t child = 0; child < NODES; child++) {
        for (size_t k = 0; !snapshot->is_gone[child] && k < snapshot->deps[child].count; k++) {
            if (snapshot->deps[child].at[k] != n)
                continue;
            remove_first(&m->deps[child], n);
            for (size_t d = 0; d < m->deps[n].count; d++)
                add(&m->deps[child], m->deps[n].at[d]);
        }
    }
}

static bool do_round(literal *m)
{
    static literal snapshot;
    bool in_round[NODES], any = false;
    snapshot = *m;
    for (uint32_t i = 0; i < NODES; i++)
        any |= in_round[i] = m->is_empty[i] && !m->is_gone[i];
    for (uint32_t i = 0; i < NODES; i++) {
        if (in_round[i] && !waits(m, in_round, i))
            leave(m, &snapshot, i);
    }
    return any;
}

/* ---- a random graph, twice ---- */

static void set_up(orr_rng *rng, stg_plan *p, literal *m)
{
    uint32_t order[NODES]; /* a parent comes earlier in this order, so there is no cycle */
    memset(m, 0, sizeof *m);
    *p = (stg_plan){.nodes = orr_alloc(NODES, sizeof *p->nodes), .count = NODES, .room = NODES};
    for (uint32_t i = 0; i < NODES; i++) {
        const uint32_t k = (uint32_t)orr_rng_below(rng, i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    for (uint32_t i = 0; i < NODES; i++) {
        const uint32_t n = order[i];
        m->is_empty[n] = orr_rng_below(rng, 10) < 6;
        p->nodes[n] = (stg_plan_node){.id = n, .tensor = m->is_empty[n], .kind = ORR__COMP};
        for (uint64_t left = i ? orr_rng_below(rng, 3) : 0; left; left--) {
            const uint32_t parent = order[orr_rng_below(rng, i)];
            add(&m->deps[n], parent);
            CHECK(stg_plan_depend(p, n, parent));
        }
    }
}

static void check_same(const stg_plan *p, const literal *m)
{
    uint32_t at = 0;
    for (uint32_t n = 0; n < NODES; n++) {
        if (m->is_gone[n])
            continue;
        CHECK(at < p->count);
        const stg_plan_node *x = &p->nodes[at++];
        CHECK_EQ_U(x->id, n);
        CHECK_EQ_U(x->dep_count, m->deps[n].count);
        for (uint32_t d = 0; d < x->dep_count; d++)
            CHECK_EQ_U(p->nodes[p->deps[x->dep + d]].id, m->deps[n].at[d]);
    }
    CHECK_EQ_U(at, p->count);
}

/* Tensor 0 has work, tensor 1 has none. */
static void begin(void)
{
    const orr_stage_options opt = orr_stage_defaults();
    CHECK(stg_space_init(&space));
    stg_tgraph_init(&graph, &space);
    for (int i = 0; i < 2; i++) {
        stg_tensor t = stg_tensor_new(&space, i ? "rest" : "work", ORR__OP_CUSTOM);
        t.attr = stg_word_of(&space, orr_str_of(i ? "0" : "1"));
        t.need_a = t.need_b = stg_layout_line(&space, ORR__ONE);
        stg_tgraph_add(&graph, &t);
    }
    stg_measure_init(&measure, &space, &opt);
    lowering = (stg_lowering){.graph = &graph, .measure = &measure};
}

static void end(void)
{
    stg_measure_fini(&measure);
    stg_tgraph_fini(&graph);
    stg_space_fini(&space);
}

TEST(test_lower_empty__gives_parents_in_the_order_of_the_rounds)
{
    static literal m;
    orr_rng rng;
    begin();
    for (uint64_t seed = 0; seed < 300; seed++) {
        stg_plan p;
        orr_rng_init(&rng, seed, 0);
        set_up(&rng, &p, &m);
        while (do_round(&m))
            ;
        CHECK_OK(stg_plan_drop_empty(&p, &lowering, &err), &err);
        check_same(&p, &m);
        stg_plan_fini(&p);
    }
    end();
}

TEST(test_lower_empty__names_a_cycle)
{
    stg_plan p = {.nodes = orr_alloc(2, sizeof *p.nodes), .count = 2, .room = 2};
    begin();
    for (uint32_t i = 0; i < 2; i++)
        p.nodes[i] = (stg_plan_node){.id = i, .tensor = 1, .kind = ORR__COMP};
    CHECK(stg_plan_depend(&p, 0, 1) && stg_plan_depend(&p, 1, 0));
    CHECK_CODE(stg_plan_drop_empty(&p, &lowering, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "in a cycle; rest@0 is one of them");
    stg_plan_fini(&p);
    end();
}

/* Each of sixty tensors without work has the one before it as its parent twice: the list doubles
 * each time. */
TEST(test_lower_empty__refuses_lists_that_explode)
{
    enum { DEEP = 60 };
    stg_plan p = {.nodes = orr_alloc(DEEP, sizeof *p.nodes), .count = DEEP, .room = DEEP};
    begin();
    for (uint32_t i = 0; i < DEEP; i++) {
        p.nodes[i] = (stg_plan_node){.id = i, .tensor = i > 0, .kind = ORR__COMP};
        if (i)
            CHECK(stg_plan_depend(&p, i, i - 1) && stg_plan_depend(&p, i, i - 1));
    }
    CHECK_CODE(stg_plan_drop_empty(&p, &lowering, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "too many dependencies");
    stg_plan_fini(&p);
    end();
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_lower_empty__gives_parents_in_the_order_of_the_rounds),
        RUN(test_lower_empty__names_a_cycle),
        RUN(test_lower_empty__refuses_lists_that_explode),
    };
    return RUN_ALL(tests);
}
