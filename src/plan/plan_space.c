/* SPDX-License-Identifier: Apache-2.0 */
/* plan_space.c - every legal plan, and which of them fit into memory.
 *
 * Degrees are divisors of the number of devices, micro-batches divisors of what a data-parallel rank
 * has to do; whatever else makes a plan illegal is orr_llm_complete's business and depends neither on
 * the ZeRO stage nor on recomputation, so one question answers for all of these.  Axes that would
 * change nothing (the schedule of one stage, ZeRO of one rank) have one value.
 *
 * When nothing is left, the constraint that removed the last plan is the one to name: the reasons are
 * counted on the way. */
#include "search_impl.h"

#include "base/threads/pool.h"
#include "sources/llm/llm_tape.h"

#include <orrery/lab/units.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* MOST_ASKED: sets of degrees, micro-batch and schedule that are looked at; 70B on 1,024 devices has some
 * 30,000. */
enum { MOST_CHUNKS = 64, REASON_ROOM = 200, MOST_ASKED = 1 << 20 };

/* The part of the space that has these degrees. */
typedef struct space {
    const orr_plan_search *s;
    atomic_uint *asked; /* by all parts */
    search_candidate like;
    search_candidate *list;
    size_t count, room;
    uint64_t legal;
    char illegal[REASON_ROOM]; /* why the last one was not; "": none was refused */
    uint64_t illegal_count;
    uint64_t fixed_away;      /* refused by what is fixed alone */
    search_candidate leanest; /* that does not fit */
    uint64_t leanest_bytes;
    bool failed;
} space;

static bool is_allowed(const orr_plan_search *s, orr_plan_axis axis, uint64_t value)
{
    return !s->opt.is_fixed[axis] || s->opt.fixed[axis] == value;
}

uint64_t search_next_divisor(uint64_t n, uint64_t after)
{
    uint64_t d = after + 1;
    for (; d <= n / d; d++)
        if (n % d == 0)
            return d;
    /* Those above the root have a partner below it, which falls as they rise. */
    for (uint64_t q = d <= n ? n / d : 0; q; q--)
        if (n % q == 0)
            return n / q;
    return 0;
}

orr_llm_options search_options(const orr_plan_search *s, const search_candidate *c)
{
    orr_llm_options o = s->base;
    o.tp = c->tp;
    o.cp = c->cp;
    o.pp = c->pp;
    o.dp = c->dp;
    o.ep = c->ep;
    o.micro_batch = c->micro_batch;
    o.zero = c->zero;
    o.pipeline = (orr_pipeline)c->pipeline;
    o.chunks = c->chunks;
    o.recompute = (orr_recompute)c->recompute;
    o.no_sequence_parallel = c->no_sequence_parallel;
    o.sync_every_micro_batch = c->is_synced;
    return o;
}

void search_fill_in(orr_llm_options *o)
{
    o->steps = o->steps ? o->steps : 1;
    o->prefetch = o->prefetch ? o->prefetch : 1;
    o->bucket_bytes = o->bucket_bytes ? o->bucket_bytes : 40 * 1000 * 1000;
}

/* ---- memory ---- */

static void add(space *x, search_candidate c)
{
    if (!orr_grow(&x->list, &x->room, x->count + 1)) {
        x->failed = true;
        return;
    }
    x->list[x->count++] = c;
}

static uint64_t room_of(const orr_plan_search *s)
{
    const uint64_t all = s->base.device_bytes, kept = s->opt.reserve;
    return all > kept ? all - kept : 0;
}

/* All ZeRO stages of a plan: where weights are the same on all ranks there is one. */
static void add_zeros(space *x, search_candidate c, const orr__llm_view *v, orr_error *err)
{
    const orr_plan_search *s = x->s;
    const uint32_t zeros = (uint64_t)c.dp * c.cp > 1 ? ORR_LLM_ZEROS : 1;
    orr_llm_memory memory[ORR_LLM_ZEROS];
    if (orr__llm_view_memory(v, memory, err)) {
        x->failed = true;
        return;
    }
    for (uint32_t zero = 0; zero < zeros; zero++) {
        if (!is_allowed(s, ORR_PLAN_ZERO, zero)) {
            x->fixed_away++;
            continue;
        }
        /* With one micro-batch the step is that of ZeRO 2, which needs less memory. */
        if (zero == 1 && is_allowed(s, ORR_PLAN_ZERO, 2) &&
            s->base.batch == (uint64_t)c.dp * c.micro_batch)
            continue;
        x->legal++;
        c.zero = (uint8_t)zero;
        /* Who keeps a share of the gradients alone has no room for those of all micro-batches. */
        c.is_synced = zero >= 2 && s->base.batch > (uint64_t)c.dp * c.micro_batch;
        c.memory = memory[zero].peak;
        if (c.memory <= room_of(s)) {
            add(x, c);
        } else if (!x->leanest_bytes || c.memory < x->leanest_bytes) {
            x->leanest = c;
            x->leanest_bytes = c.memory;
        }
    }
}

static void add_recomputed(space *x, search_candidate c, const orr_llm_options *o, orr_error *err)
{
    orr__llm_view v;
    if (orr__llm_view_open(x->s->opt.model, o, &v, err)) {
        x->failed = true;
        return;
    }
    for (uint8_t r = ORR_RECOMPUTE_NONE; r <= ORR_RECOMPUTE_OPERATORS; r++) {
        if (!is_allowed(x->s, ORR_PLAN_RECOMPUTE, r)) {
            x->fixed_away++;
            continue;
        }
        c.recompute = r;
        orr__llm_view_recompute(&v, (orr_recompute)r);
        add_zeros(x, c, &v, err);
    }
    orr__llm_view_close(&v);
}

/* ---- legality ---- */

static bool is_enough(const space *x)
{
    return atomic_load(x->asked) > MOST_ASKED;
}

static void add_if_legal(space *x, search_candidate c, orr_error *err)
{
    orr_llm_options o = search_options(x->s, &c);
    atomic_fetch_add(x->asked, 1);
    if (!orr_llm_complete(x->s->opt.model, &o, err)) {
        add_recomputed(x, c, &o, err);
        return;
    }
    x->illegal_count++;
    snprintf(x->illegal, sizeof x->illegal, "%.*s", REASON_ROOM - 1, err->message);
}

static void add_sequences(space *x, search_candidate c, orr_error *err)
{
    const bool has_choice = c.tp > 1;
    for (int sp = 1; sp >= 0; sp--) {
        if (!has_choice && !sp)
            continue;
        if (has_choice && !is_allowed(x->s, ORR_PLAN_SEQUENCE_PARALLEL, (uint64_t)sp)) {
            x->fixed_away++;
            continue;
        }
        c.no_sequence_parallel = !sp;
        add_if_legal(x, c, err);
    }
}

static void add_schedule(
    space *x, search_candidate c, orr_pipeline p, uint32_t chunks, orr_error *err)
{
    const bool has_choice = c.pp > 1;
    if ((has_choice && !is_allowed(x->s, ORR_PLAN_PIPELINE, p)) ||
        !is_allowed(x->s, ORR_PLAN_CHUNKS, chunks)) {
        x->fixed_away++;
        return;
    }
    c.pipeline = (uint8_t)p;
    c.chunks = (uint8_t)chunks;
    add_sequences(x, c, err);
}

/* Chunks of equal numbers of layers; the ends, which have embedding and loss, may have one less. */
static bool comes_out_even(uint64_t layers, uint64_t stages)
{
    return stages <= layers + 2 && (layers + 2) / stages * stages >= layers;
}

static void add_schedules(space *x, search_candidate c, orr_error *err)
{
    const uint64_t layers = x->s->opt.model->layers;
    const uint64_t batches = x->s->base.batch / ((uint64_t)c.dp * c.micro_batch);
    add_schedule(x, c, ORR_PIPELINE_1F1B, 1, err);
    if (c.pp == 1)
        return;
    add_schedule(x, c, ORR_PIPELINE_GPIPE, 1, err);
    add_schedule(x, c, ORR_PIPELINE_ZERO_BUBBLE, 1, err);
    if (batches >= 2 * (uint64_t)c.pp && comes_out_even(layers, (uint64_t)c.pp * 2))
        add_schedule(x, c, ORR_PIPELINE_ZB_V, 2, err);
    for (uint32_t chunks = 2; chunks <= MOST_CHUNKS && batches % c.pp == 0; chunks++)
        if (comes_out_even(layers, (uint64_t)c.pp * chunks))
            add_schedule(x, c, ORR_PIPELINE_INTERLEAVED, chunks, err);
}

static void add_micro_batches(space *x, search_candidate c, orr_error *err)
{
    const uint64_t batch = x->s->base.batch, each = batch / c.dp;
    if (batch % c.dp || each == 0) {
        x->illegal_count++;
        snprintf(x->illegal, sizeof x->illegal,
                 "a batch of %" PRIu64 " sequences is not a multiple of dp %u", batch, c.dp);
        return;
    }
    for (uint64_t mb = 1; mb && mb <= UINT32_MAX && !is_enough(x);
         mb = search_next_divisor(each, mb)) {
        if (!is_allowed(x->s, ORR_PLAN_MICRO_BATCH, mb)) {
            x->fixed_away++;
            continue;
        }
        c.micro_batch = (uint32_t)mb;
        add_schedules(x, c, err);
    }
}

static void add_experts(space *x, search_candidate c, orr_error *err)
{
    const uint64_t experts = x->s->opt.model->experts, blocks = (uint64_t)c.dp * c.cp;
    for (uint64_t ep = 1; ep && (ep == 1 || ep <= experts); ep = search_next_divisor(blocks, ep)) {
        if (ep > 1 && experts % ep)
            continue;
        if (!is_allowed(x->s, ORR_PLAN_EP, ep)) {
            x->fixed_away++;
            continue;
        }
        c.ep = (uint32_t)ep;
        add_micro_batches(x, c, err);
    }
}

/* ---- all degrees ---- */

typedef struct spaces {
    space *list;
    size_t count, room;
    uint64_t fixed_away;
    atomic_uint asked;
} spaces;

static bool add_degrees(orr_plan_search *s, spaces *all, search_candidate c)
{
    if (!is_allowed(s, ORR_PLAN_TP, c.tp) || !is_allowed(s, ORR_PLAN_CP, c.cp) ||
        !is_allowed(s, ORR_PLAN_PP, c.pp) || !is_allowed(s, ORR_PLAN_DP, c.dp)) {
        all->fixed_away++;
        return true;
    }
    if (!orr_grow(&all->list, &all->room, all->count + 1))
        return false;
    all->list[all->count++] = (space){.s = s, .asked = &all->asked, .like = c};
    return true;
}

/* In the order of tp, cp and pp. */
static bool list_degrees(orr_plan_search *s, spaces *all)
{
    const uint32_t n = orr_machine_devices(&s->machine);
    bool ok = true;
    for (uint64_t tp = 1; tp; tp = search_next_divisor(n, tp))
        for (uint64_t cp = 1; cp; cp = search_next_divisor(n / tp, cp))
            for (uint64_t left = n / tp / cp, pp = 1; ok && pp; pp = search_next_divisor(left, pp))
                ok = all->count < MOST_ASKED &&
                     add_degrees(s, all,
                                 (search_candidate){.tp = (uint32_t)tp,
                                                    .cp = (uint32_t)cp,
                                                    .pp = (uint32_t)pp,
                                                    .dp = (uint32_t)(left / pp)});
    return ok;
}

static orr_code fill_space(void *context, size_t i, orr_error *err)
{
    space *x = &((spaces *)context)->list[i];
    orr_error why;
    add_experts(x, x->like, &why);
    return is_enough(x) ? orr_fail(err, ORR_EUSAGE, NULL,
                                   "more than %d ways to divide the work among %u devices: fix the "
                                   "micro-batch or some of tp, cp, pp, dp",
                                   MOST_ASKED, orr_machine_devices(&x->s->machine))
                        : ORR_OK;
}

/* All parts as one, in the order of their degrees. */
static bool join(orr_plan_search *s, const spaces *all, space *out)
{
    for (size_t i = 0; i < all->count; i++) {
        const space *x = &all->list[i];
        if (x->failed || !orr_grow(&s->list, &s->room, s->count + x->count))
            return false;
        if (x->count)
            memcpy(&s->list[s->count], x->list, x->count * sizeof *x->list);
        s->count += x->count;
        out->legal += x->legal;
        out->illegal_count += x->illegal_count;
        if (x->illegal[0])
            memcpy(out->illegal, x->illegal, sizeof out->illegal);
        if (x->leanest_bytes && (!out->leanest_bytes || x->leanest_bytes < out->leanest_bytes)) {
            out->leanest = x->leanest;
            out->leanest_bytes = x->leanest_bytes;
        }
    }
    return true;
}

static orr_code list_all(orr_plan_search *s, space *x, orr_error *err)
{
    spaces all = {0};
    orr_code code = list_degrees(s, &all) ? ORR_OK : orr_no_memory(err);
    if (!code)
        code = orr_pool_for(s->opt.threads, all.count, fill_space, &all, err);
    if (!code && !join(s, &all, x))
        code = orr_no_memory(err);
    for (size_t i = 0; i < all.count; i++)
        orr_free(all.list[i].list);
    orr_free(all.list);
    return code;
}

/* ---- nothing left ---- */

enum { WORDS_ROOM = 400 };

static void add_words(char out[WORDS_ROOM], size_t *used, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(out + *used, WORDS_ROOM - *used, format, args);
    va_end(args);
    *used += n < 0 ? 0 : (size_t)n;
    *used = *used < WORDS_ROOM ? *used : WORDS_ROOM - 1;
}

static void list_fixed(const orr_plan_search *s, char out[WORDS_ROOM])
{
    size_t used = 0;
    char room[SEARCH_VALUE_ROOM];
    out[0] = 0;
    for (unsigned i = 0; i < ORR_PLAN_AXES; i++)
        if (s->opt.is_fixed[i])
            add_words(out, &used, "%s%s=%s", used ? ", " : "", orr_plan_axis_name((orr_plan_axis)i),
                      search_value_text((orr_plan_axis)i, s->opt.fixed[i], room));
}

static uint64_t value_of(const search_candidate *c, orr_plan_axis axis)
{
    const uint64_t values[ORR_PLAN_AXES] = {
        [ORR_PLAN_TP] = c->tp,
        [ORR_PLAN_CP] = c->cp,
        [ORR_PLAN_PP] = c->pp,
        [ORR_PLAN_DP] = c->dp,
        [ORR_PLAN_EP] = c->ep,
        [ORR_PLAN_ZERO] = c->zero,
        [ORR_PLAN_MICRO_BATCH] = c->micro_batch,
        [ORR_PLAN_PIPELINE] = c->pipeline,
        [ORR_PLAN_CHUNKS] = c->chunks,
        [ORR_PLAN_RECOMPUTE] = c->recompute,
        [ORR_PLAN_SEQUENCE_PARALLEL] = !c->no_sequence_parallel,
    };
    return values[axis];
}

enum { MOST_VALUES = 8 };

/* Which values an axis could have, were it free: "tp=3 (could be 1, 2, 4)".  Nothing: it is not the one to blame. */
static orr_code blame(const orr_plan_search *s,
                      orr_plan_axis axis,
                      char out[WORDS_ROOM],
                      size_t *used,
                      orr_error *err)
{
    orr_plan_search t = {.opt = s->opt, .machine = s->machine, .base = s->base};
    space x = {.s = &t};
    uint64_t seen[MOST_VALUES];
    size_t count = 0;
    char room[SEARCH_VALUE_ROOM];
    t.opt.is_fixed[axis] = false;
    const orr_code code = list_all(&t, &x, err);
    for (size_t i = 0; i < t.count && !code; i++) {
        const uint64_t v = value_of(&t.list[i], axis);
        size_t k = 0;
        while (k < count && k < MOST_VALUES && seen[k] != v)
            k++;
        if (k < count || count > MOST_VALUES)
            continue;
        if (count == 0)
            add_words(out, used, "%s%s=%s (could be ", *used ? ", " : "", orr_plan_axis_name(axis),
                      search_value_text(axis, s->opt.fixed[axis], room));
        if (count < MOST_VALUES)
            seen[count] = v;
        add_words(out, used, "%s%s", count ? ", " : "",
                  count < MOST_VALUES ? search_value_text(axis, v, room) : "...");
        count++;
    }
    if (count)
        add_words(out, used, ")");
    orr_free(t.list);
    return code;
}

static orr_code refuse(const space *x, orr_error *err)
{
    const orr_plan_search *s = x->s;
    char fixed[WORDS_ROOM], guilty[WORDS_ROOM] = "", a[4][ORR_UNIT_ROOM], words[160];
    size_t used = 0, fixed_count = 0;
    if (x->legal) {
        const orr_plan p = {.options = search_options(s, &x->leanest)};
        orr_plan_words(&p, words, sizeof words);
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "no plan fits into memory: the leanest of %s legal plans (%s) needs %s a "
                        "device, which has %s, %s of them reserved",
                        orr_count_text(x->legal, a[0]), words,
                        orr_bytes_text((orr_bytes)x->leanest_bytes, a[1]),
                        orr_bytes_text((orr_bytes)s->base.device_bytes, a[2]),
                        orr_bytes_text((orr_bytes)s->opt.reserve, a[3]));
    }
    list_fixed(s, fixed);
    for (unsigned i = 0; i < ORR_PLAN_AXES; i++) {
        if (!s->opt.is_fixed[i])
            continue;
        fixed_count++;
        const orr_code code = blame(s, (orr_plan_axis)i, guilty, &used, err);
        if (code)
            return code;
    }
    const bool has_reason = x->illegal_count && (fixed_count < 2 || !guilty[0]);
    if (guilty[0])
        return orr_fail(err, ORR_EUSAGE, NULL, "no plan is left: %s%s removes the last one%s%s",
                        guilty, strchr(guilty, '=') != strrchr(guilty, '=') ? ": any of them" : "",
                        has_reason ? ": " : "", has_reason ? x->illegal : "");
    if (x->illegal_count)
        return orr_fail(err, ORR_EUSAGE, NULL, "no plan is legal%s%s: the last one refused: %s",
                        fixed[0] ? " with " : "", fixed, x->illegal);
    return orr_fail(
        err, ORR_EUSAGE, NULL,
        "no plan is left with %s, and none of these alone is to blame: tp x cp x pp x dp must be the %u "
        "devices, chunks go with the interleaved schedule, ep with experts, and ZeRO with several data-parallel ranks",
        fixed, orr_machine_devices(&s->machine));
}

orr_code search_list(orr_plan_search *s, orr_error *err)
{
    space x = {.s = s};
    const orr_code code = list_all(s, &x, err);
    s->counts.legal = x.legal;
    s->counts.fitting = s->count;
    return code || s->count ? code : refuse(&x, err);
}
