/* SPDX-License-Identifier: Apache-2.0 */
/* stage_layout.c - which layers a pipeline stage has: an even share, given numbers at the ends, or
 * a layout in the notation of Megatron-Core (--pipeline-model-parallel-layout):
 *
 *     Ettt|(tt|)*29,m L      E embedding, t layer, m MTP layer, L head and loss, | the next stage
 *
 * x*N is x N times, (...)*N the same for several; commas and spaces mean nothing.  Parentheses are
 * expanded first, as there, and do not nest.  A stage may have the embedding or the loss alone, or
 * nothing: it then passes on what it receives.  All MTP layers are in one stage, as there: that of
 * the loss, or one before it (llm_mtp_stage), behind which messages are longer. */
#include "llm_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ITEMS_MOST = 1 << 20 };

struct orr_stage_layout {
    char *text;     /* without commas and spaces */
    uint64_t *ends; /* by stage: layers up to its end */
    uint64_t stages, mtp_layers;
    uint64_t mtp_stage; /* of all of them */
};

/* ---- reading ---- */

static orr_code fail_in(orr_error *err, const char *text, const char *words)
{
    return orr_fail(err, ORR_EUSAGE, NULL, "layout '%.60s': %s", text, words);
}

/* "*12" at *at: how many times, and the place behind it; 0: there is none, or too large. */
static uint64_t read_times(const char **at)
{
    const char *p = *at;
    uint64_t n = 0;
    if (*p++ != '*' || *p < '0' || *p > '9')
        return 0;
    for (; *p >= '0' && *p <= '9' && n <= ITEMS_MOST; p++)
        n = n * 10 + (uint64_t)(*p - '0');
    *at = p;
    return n <= ITEMS_MOST ? n : 0;
}

static bool repeat(orr_buf *out, const char *start, size_t len, uint64_t times)
{
    if (times * len > ITEMS_MOST || out->len + times * len > ITEMS_MOST)
        return false;
    while (times-- > 0)
        orr_buf_add(out, start, len);
    return true;
}

/* One kind of repetition after the other: those of parentheses, those of single letters. */
static const char *expand(const char *text, bool is_grouped, orr_buf *out)
{
    for (const char *at = text; *at;) {
        const char *start = at;
        size_t len = 1;
        if (is_grouped && *at == '(') {
            const size_t inner = strcspn(++at, "()");
            start = at;
            len = inner;
            at += inner;
            if (*at++ != ')' || *at != '*')
                return "a parenthesis ends with )*N and contains no other";
        } else {
            at++;
            if (is_grouped || *at != '*') {
                orr_buf_add(out, start, 1);
                continue;
            }
        }
        const uint64_t times = read_times(&at);
        if (!times)
            return "expected *N, from 1 to 1,048,576";
        if (!repeat(out, start, len, times))
            return "has more than 1,048,576 items";
    }
    orr_buf_add(out, "", 1);
    return NULL;
}

typedef struct layout_reader {
    orr_stage_layout *l;
    uint64_t layers;
    bool has_loss;
} layout_reader;

/* E first and once, L last and once, m behind all layers. */
static const char *read_item(layout_reader *r, char item, bool is_start)
{
    orr_stage_layout *l = r->l;
    if (is_start != (item == 'E'))
        return "begins with E, the embedding, which occurs nowhere else";
    if (r->has_loss)
        return "ends with L, the loss, which occurs nowhere else";
    if (item == 't' && l->mtp_layers)
        return "has layers (t) behind MTP layers (m)";
    if (item == 'm' && l->mtp_layers && l->mtp_stage != l->stages)
        return "has MTP layers (m) in several stages: all of them go into one";
    if (item == 'm')
        l->mtp_stage = l->stages;
    r->has_loss = item == 'L';
    r->layers += item == 't';
    l->mtp_layers += item == 'm';
    if (item == '|')
        l->ends[l->stages++] = r->layers;
    return strchr("EtmL|", item) ? NULL : "expected E, t, m, L, |, x*N and (...)*N";
}

static const char *read_items(orr_stage_layout *l, const char *items)
{
    layout_reader r = {.l = l};
    const char *wrong = NULL;
    for (const char *at = items; *at && !wrong; at++)
        wrong = read_item(&r, *at, at == items);
    if (!wrong && !r.has_loss)
        wrong = "ends with L, the loss, which occurs nowhere else";
    l->ends[l->stages++] = r.layers;
    return wrong;
}

static void keep_text(orr_stage_layout *l, const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        if (!strchr(", \t\n", *text))
            l->text[n++] = *text;
    l->text[n] = '\0';
}

orr_code orr_stage_layout_parse(const char *text, orr_stage_layout **out, orr_error *err)
{
    orr_buf whole = {0}, items = {0};
    orr_stage_layout *l = orr_alloc(1, sizeof *l);
    const char *wrong = NULL;
    *out = NULL;
    if (l && (l->text = orr_alloc(strlen(text) + 1, 1))) {
        keep_text(l, text);
        wrong = expand(l->text, true, &whole);
        if (!wrong && !whole.failed)
            wrong = expand((const char *)whole.ptr, false, &items);
    }
    const bool has_items = l && l->text && !wrong && !whole.failed && !items.failed;
    if (has_items && (l->ends = orr_alloc(items.len, sizeof *l->ends)))
        wrong = read_items(l, (const char *)items.ptr);
    const orr_code code = wrong            ? fail_in(err, text, wrong)
                          : !l || !l->ends ? orr_no_memory(err)
                                           : ORR_OK;
    orr_buf_fini(&whole);
    orr_buf_fini(&items);
    if (code)
        orr_stage_layout_close(l);
    else
        *out = l;
    return code;
}

void orr_stage_layout_close(orr_stage_layout *l)
{
    if (!l)
        return;
    orr_free(l->text);
    orr_free(l->ends);
    orr_free(l);
}

const char *llm_layout_text(const orr_stage_layout *l)
{
    return l->text;
}

uint64_t llm_layout_stages(const orr_stage_layout *l)
{
    return l->stages;
}

/* ---- whether it can be ---- */

static bool gives_first(const orr_llm_options *o)
{
    return o->bare_first || o->first_layers;
}

static bool gives_last(const orr_llm_options *o)
{
    return o->bare_last || o->last_layers;
}

static orr_code check_layout(const orr_model *m,
                             const orr_llm_options *o,
                             uint64_t stages,
                             orr_error *err)
{
    const orr_stage_layout *l = o->layout;
    const uint64_t mtp = o->has_mtp ? m->mtp_layers : 0;
    if (gives_first(o) || gives_last(o))
        return fail_in(err, l->text, "also says how many layers the first and the last stage have");
    if (l->stages != stages)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "layout '%.60s' has %" PRIu64 " stages: pp %u x %u chunks are %" PRIu64,
                        l->text, l->stages, o->pp, llm_is_dual(o) ? 1 : o->chunks, stages);
    if (l->ends[l->stages - 1] != m->layers)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "layout '%.60s' has %" PRIu64 " layers (t): %s has %" PRIu64, l->text,
                        l->ends[l->stages - 1], m->name, m->layers);
    if (l->mtp_layers != mtp)
        return orr_fail(
            err, ORR_EUSAGE, NULL,
            "layout '%.60s' has %" PRIu64 " MTP layers (m): %" PRIu64 " are to be trained%s",
            l->text, l->mtp_layers, mtp, m->mtp_layers && !mtp ? "; mtp includes them" : "");
    if (mtp && llm_is_dual(o) && l->mtp_stage + 1 != stages)
        return fail_in(err, l->text,
                       "with dualpipe MTP layers (m) are in the stage of the loss (mL), which has "
                       "the embedding, too");
    return ORR_OK;
}

static const char *share_text(bool is_given, uint64_t layers, char room[24])
{
    snprintf(room, 24, "%" PRIu64, layers);
    return is_given ? room : "a share";
}

/* Given ends; each of the other stages has a layer at least. */
static orr_code check_ends(const orr_model *m,
                           const orr_llm_options *o,
                           uint64_t stages,
                           orr_error *err)
{
    char a[24], b[24];
    const uint64_t head = o->first_layers, tail = o->last_layers;
    const uint64_t given = (uint64_t)gives_first(o) + gives_last(o);
    const bool is_too_much = head > m->layers || tail > m->layers - head;
    const uint64_t rest = is_too_much ? 0 : m->layers - head - tail;
    if (stages >= 2 && !is_too_much && (stages > given ? rest >= stages - given : !rest))
        return ORR_OK;
    return orr_fail(err, ORR_EUSAGE, NULL,
                    "%s layers in the first and %s in the last of %" PRIu64
                    " stages: %s has %" PRIu64 ", and every other stage needs one at least",
                    share_text(gives_first(o), head, a), share_text(gives_last(o), tail, b), stages,
                    m->name, m->layers);
}

orr_code llm_check_stages(const orr_model *m, const orr_llm_options *o, orr_error *err)
{
    const uint64_t stages = (uint64_t)o->pp * (llm_is_dual(o) ? 1 : o->chunks);
    const uint64_t further = o->has_mtp ? m->mtp_layers : 0;
    if (o->layout)
        return check_layout(m, o, stages, err);
    if (gives_first(o) || gives_last(o))
        return check_ends(m, o, stages, err);
    /* Only the first and the last stage, which have embedding and loss, may have no layer. */
    const uint64_t most = m->layers + (further ? 1 : 2);
    if (stages > most && stages > 1)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "%s has %" PRIu64 " layers%s: too few for %" PRIu64
                        " pipeline stages (pp %u x %u chunks), of which only %s may have none",
                        m->name, m->layers, further ? " without MTP" : "", stages, o->pp,
                        llm_is_dual(o) ? 1 : o->chunks,
                        further ? "the last" : "the first and the last");
    return ORR_OK;
}

/* ---- the layers ---- */

uint32_t llm_mtp_rank(const orr_llm_options *o)
{
    return o->has_mtp && !llm_is_dual(o) ? llm_rank_of(o, llm_mtp_stage(o)) : 0;
}

uint32_t llm_mtp_stage(const orr_llm_options *o)
{
    return o->layout ? (uint32_t)o->layout->mtp_stage
                     : o->pp * (llm_is_dual(o) ? 1 : o->chunks) - 1;
}

/* `layers` over `stages`, the first ones have one more; where stage `i` begins. */
static uint64_t even_start(uint64_t layers, uint64_t stages, uint64_t i)
{
    const uint64_t more = layers % stages;
    return i * (layers / stages) + (i < more ? i : more);
}

/* Given ends, and an even share of the rest for the others. */
static void layers_between(const llm_job *g, uint32_t stage, uint64_t *first, uint64_t *end)
{
    const orr_llm_options *o = &g->opt;
    const uint64_t layers = g->m->layers, stages = g->virtual_stages;
    const uint64_t given = (uint64_t)gives_first(o) + gives_last(o);
    const uint64_t rest = layers - o->first_layers - o->last_layers;
    const uint64_t even = stages > given ? rest / (stages - given) : 0;
    const uint64_t head = gives_first(o) ? o->first_layers : even;
    const uint64_t tail = gives_last(o) ? o->last_layers : even;
    const uint64_t middle = layers - head - tail;
    const bool is_last = stage + 1 == stages;
    *first = stage == 0 ? 0
             : is_last  ? layers - tail
                        : head + even_start(middle, stages - 2, stage - 1);
    *end = stage == 0 ? head : is_last ? layers : head + even_start(middle, stages - 2, stage);
}

/* MTP layers and the loss count as one layer each: the last stage has fewer. */
static void layers_before_mtp(const llm_job *g, uint32_t stage, uint64_t *first, uint64_t *end)
{
    const uint64_t layers = g->m->layers, all = layers + g->m->mtp_layers + 1;
    const uint64_t from = even_start(all, g->virtual_stages, stage);
    const uint64_t to = even_start(all, g->virtual_stages, stage + 1);
    *first = from < layers ? from : layers;
    *end = to < layers && stage + 1 < g->virtual_stages ? to : layers;
}

void llm_stage_layers(const llm_job *g, uint32_t stage, uint64_t *first, uint64_t *end)
{
    const uint64_t layers = g->m->layers, stages = g->virtual_stages;
    if (g->opt.layout) {
        *first = stage ? g->opt.layout->ends[stage - 1] : 0;
        *end = g->opt.layout->ends[stage];
        return;
    }
    if (stages > 1 && (gives_first(&g->opt) || gives_last(&g->opt))) {
        layers_between(g, stage, first, end);
        return;
    }
    if (stages > 2 && g->opt.has_mtp) {
        layers_before_mtp(g, stage, first, end);
        return;
    }
    const uint64_t each = layers / stages, more = layers % stages;
    const uint64_t missing = more ? stages - more : 0;
    if (missing && missing <= 2 && stages > 2) { /* the ends, which have embedding and loss */
        const bool is_short = missing == 2;
        *first = stage * (each + 1) - (stage > 0 && is_short);
        *end = *first + each + 1 - (stage + 1 == stages) - (stage == 0 && is_short);
        return;
    }
    *first = stage * each + (stage < more ? stage : more);
    *end = *first + each + (stage < more);
}

/* No stage has as many layers: a typo, or another layout was meant. */
orr_code llm_check_offload(const orr_model *m, const orr_llm_options *o, orr_error *err)
{
    const llm_job g = {
        .m = m, .opt = *o, .virtual_stages = o->pp * (llm_is_dual(o) ? 1 : o->chunks)};
    uint64_t first, end, most = 0;
    for (uint32_t stage = 0; stage < g.virtual_stages; stage++) {
        llm_stage_layers(&g, stage, &first, &end);
        most = end - first > most ? end - first : most;
    }
    if (o->offload_layers <= most)
        return ORR_OK;
    return orr_fail(err, ORR_EUSAGE, NULL,
                    "offload of %" PRIu64 " layers: a stage has %" PRIu64 " at most",
                    o->offload_layers, most);
}
