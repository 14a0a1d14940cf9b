/* SPDX-License-Identifier: Apache-2.0 */
/* simai.c - a SimAI workload: a header with group sizes, then one row per layer of an iteration,
 * all micro-batches in sequence.
 *
 * The forward passes run in the order of the rows, each followed by its collective; then, from the
 * last row to the first, the gradients of inputs, which wait for their collective, and of weights,
 * whose collective only the next iteration waits for.  Ranks differ in their groups only, so one
 * body with holes represents all.
 *
 * Cost: one node per time and per collective of the table. */
#include <orrery/lab/simai.h>

#include "base/io/input.h"
#include "base/short_forms.h"
#include "models/network/words.h"
#include "trace/builder.h"

#include <inttypes.h>

enum {
    MOST_RANKS = 1 << 20,
    MOST_LAYERS = 1 << 22,
    MOST_PASSES = 1 << 16,
    MOST_LAYER_PASSES = 1 << 20,
    MOST_RECOMPUTED = 1 << 24
};
enum { NO_COMPUTE = 1 }; /* means none in these tables, in ns */
/* Smaller collectives are rounded up to this, as in SimAI; and so is a rank's share of an
 * all-gather, because it is cut into chunks. */
enum { LEAST_BYTES = 4096, LEAST_SHARE = 1024 };

typedef enum axis { TP, DP, EP, DP_EP, AXES } axis;
typedef enum stream { COMPUTE, COLLECTIVES, WEIGHTS } stream;
typedef enum policy { MICRO, TRANSFORMER, WITH_RECOMPUTATION } policy;

typedef struct pass {
    uint64_t ns, bytes;
    orr_collective kind;
    bool has_collective;
    axis along;
} pass;

typedef struct row {
    orr_str name;
    pass forward, input, weight;
    bool is_checkpoint, recomputes;
    uint64_t gradients; /* what the next iteration waits for; 0: none */
} row;

typedef struct job {
    policy policy;
    uint64_t sizes[AXES]; /* of a group, by axis */
    uint64_t ranks, tp, ep, pp;
    row *rows;
    size_t count, room;
    uint32_t *checkpoints, *recomputers; /* layers, of the header */
    size_t checkpoint_count, checkpoint_room, recomputer_count, recomputer_room;
    uint64_t last; /* what the next node waits for; 0: none */
    uint64_t recomputed;
    orr__builder b;
    orr_simai_report *report;
    orr_error *err;
} job;

static void fini(job *j)
{
    orr_free(j->rows);
    orr_free(j->checkpoints);
    orr_free(j->recomputers);
}

/* ---- the header ---- */

static orr_code read_policy(job *j, orr__words *w)
{
    static const char *const names[] = {"MICRO", "HYBRID_TRANSFORMER",
                                        "HYBRID_TRANSFORMER_FWD_IN_BCKWD"};
    orr_str s;
    char shown[ORR__WORD_ROOM];
    const orr_code code = orr__words_need(w, "a policy", &s, j->err);
    if (code)
        return code;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (orr_str_is(s, names[i])) {
            j->policy = (policy)i;
            return ORR_OK;
        }
    return orr_fail(j->err, ORR_EINPUT, ORR_AT(orr__words_where(w)),
                    "%s is not MICRO, HYBRID_TRANSFORMER or HYBRID_TRANSFORMER_FWD_IN_BCKWD; "
                    "other policies: orrery convert text",
                    orr__words_shown(s, shown));
}

static orr_code read_layers(orr__words *w, uint32_t **list, size_t *count, size_t *room, job *j)
{
    uint64_t n = 0, layer = 0;
    orr_code code = orr__words_u64(w, "a number of layers", 0, MOST_LAYERS, &n, j->err);
    for (uint64_t i = 0; i < n && !code; i++) {
        code = orr__words_u64(w, "a layer", 0, MOST_LAYERS, &layer, j->err);
        if (!code && !orr_grow(list, room, *count + 1))
            code = orr_no_memory(j->err);
        if (!code)
            (*list)[(*count)++] = (uint32_t)layer;
    }
    return code;
}

/* vpp, ga and pp_comm describe how the rows were made and do not affect one rank. */
static orr_code read_label(job *j, orr__words *w, orr_str label)
{
    uint64_t unused;
    char shown[ORR__WORD_ROOM];
    const struct {
        const char *name;
        uint64_t *to;
        uint64_t most;
    } numbers[] = {
        {"model_parallel_NPU_group:", &j->tp, MOST_RANKS},
        {"ep:", &j->ep, MOST_RANKS},
        {"pp:", &j->pp, MOST_RANKS},
        {"vpp:", &unused, UINT64_MAX},
        {"ga:", &unused, UINT64_MAX},
        {"all_gpus:", &j->ranks, MOST_RANKS},
        {"pp_comm:", &unused, UINT64_MAX},
        {"pp_comm", &unused, UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (orr_str_is(label, numbers[i].name))
            return orr__words_u64(w, numbers[i].name, numbers[i].to == &unused ? 0 : 1,
                                  numbers[i].most, numbers[i].to, j->err);
    if (orr_str_is(label, "checkpoints:"))
        return read_layers(w, &j->checkpoints, &j->checkpoint_count, &j->checkpoint_room, j);
    if (orr_str_is(label, "checkpoint_initiates:"))
        return read_layers(w, &j->recomputers, &j->recomputer_count, &j->recomputer_room, j);
    return orr_fail(j->err, ORR_EINPUT, ORR_AT(orr__words_where(w)),
                    "%s is not a label of this header", orr__words_shown(label, shown));
}

static orr_code read_header(job *j, orr__words *w)
{
    orr_code code = read_policy(j, w);
    const uint32_t line = w->word_line;
    orr__words ahead = *w;
    orr_str label;
    while (!code && orr__words_next(&ahead, &label) && ahead.word_line == line) {
        *w = ahead;
        code = read_label(j, w, label);
        ahead = *w;
    }
    return code;
}

/* Ranks, and the group size along each axis. */
static orr_code set_sizes(job *j, const orr_simai_options *opt, const char *label)
{
    const orr_where at = orr_where_line(label, 1, 1);
    if (opt->ranks)
        j->ranks = opt->ranks;
    if (j->ranks == 0)
        return orr_fail(j->err, ORR_EINPUT, &at,
                        "the header has no all_gpus:; --npus says how many ranks there are");
    if (j->ranks % (j->tp * j->pp) || j->ranks / (j->tp * j->pp) % j->ep)
        return orr_fail(j->err, ORR_EINPUT, &at,
                        "%llu ranks are not a multiple of %llu (tensor) x %llu (pipeline) x %llu "
                        "(expert parallel)",
                        (unsigned long long)j->ranks, (unsigned long long)j->tp,
                        (unsigned long long)j->pp, (unsigned long long)j->ep);
    j->sizes[TP] = j->tp;
    j->sizes[DP] = j->ranks / (j->tp * j->pp);
    j->sizes[EP] = j->ep;
    j->sizes[DP_EP] = j->sizes[DP] / j->ep;
    return ORR_OK;
}

/* ---- rows ---- */

/* ALLREDUCE, ALLGATHER_EP, REDUCESCATTER_DP_EP, ...: plain ones go along the axis of the pass. */
static bool find_collective(job *j, orr_str word, axis plain, pass *p)
{
    static const struct {
        const char *name;
        orr_collective kind;
    } kinds[] = {{"ALLREDUCE", ORR_COLL_ALL_REDUCE},
                 {"ALLGATHER", ORR_COLL_ALL_GATHER},
                 {"REDUCESCATTER", ORR_COLL_REDUCE_SCATTER},
                 {"ALLTOALL", ORR_COLL_ALL_TO_ALL}};
    if (orr_str_is(word, "NONE"))
        return true;
    if (orr_str_is(word, "BROADCAST")) {
        j->report->broadcasts++;
        return true;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const size_t n = strlen(kinds[i].name);
        if (word.len < n || memcmp(word.ptr, kinds[i].name, n) != 0)
            continue;
        const orr_str rest = {word.ptr + n, word.len - n};
        p->kind = kinds[i].kind;
        p->along = rest.len == 0 ? plain : orr_str_is(rest, "_EP") ? EP : DP_EP;
        p->has_collective = true;
        return rest.len == 0 || p->along == EP || orr_str_is(rest, "_DP_EP");
    }
    return false;
}

static orr_code read_pass(job *j, orr__words *w, axis plain, pass *p)
{
    orr_str word;
    char shown[ORR__WORD_ROOM];
    orr_code code = orr__words_u64(w, "a time in ns", 0, INT64_MAX, &p->ns, j->err);
    if (!code)
        code = orr__words_need(w, "a collective", &word, j->err);
    if (code)
        return code;
    if (!find_collective(j, word, plain, p))
        return orr_fail(j->err, ORR_EINPUT, ORR_AT(orr__words_where(w)),
                        "%s is not NONE, BROADCAST, ALLREDUCE, ALLGATHER, REDUCESCATTER or "
                        "ALLTOALL, the last four perhaps with _EP or _DP_EP",
                        orr__words_shown(word, shown));
    code = orr__words_u64(w, "a number of bytes", 0, INT64_MAX, &p->bytes, j->err);
    if (code || !p->has_collective)
        return code;
    const bool is_alone = j->sizes[p->along] == 1;
    j->report->alone += is_alone && p->bytes;
    p->has_collective = p->bytes > 0 && !is_alone;
    const uint64_t size = j->sizes[p->along], bytes = p->bytes;
    p->bytes = bytes < LEAST_BYTES ? LEAST_BYTES : bytes;
    if (p->kind != ORR_COLL_ALL_GATHER)
        return ORR_OK;
    /* The table gives the total; traces have one rank's share. */
    p->bytes = bytes / size + (bytes % size != 0);
    if (p->bytes < LEAST_SHARE)
        p->bytes = LEAST_SHARE;
    return ORR_OK;
}

static orr_code read_row(job *j, orr__words *w)
{
    row r = {0};
    orr_str unused;
    orr_code code = orr__words_need(w, "the name of a layer", &r.name, j->err);
    if (!code)
        code = orr__words_need(w, "a number (reserved)", &unused, j->err);
    if (!code)
        code = read_pass(j, w, TP, &r.forward);
    if (!code)
        code = read_pass(j, w, TP, &r.input);
    if (!code)
        code = read_pass(j, w, DP, &r.weight);
    if (!code)
        code = orr__words_need(w, "an update time", &unused, j->err);
    if (!code && !orr_grow(&j->rows, &j->room, j->count + 1))
        code = orr_no_memory(j->err);
    if (!code)
        j->rows[j->count++] = r;
    return code;
}

static orr_code mark_rows(job *j, const char *label)
{
    const orr_where at = orr_where_line(label, 1, 1);
    for (size_t i = 0; i < j->checkpoint_count; i++) {
        if (j->checkpoints[i] >= j->count)
            return orr_fail(j->err, ORR_EINPUT, &at, "checkpoints: there is no layer %u",
                            j->checkpoints[i]);
        j->rows[j->checkpoints[i]].is_checkpoint = true;
    }
    for (size_t i = 0; i < j->recomputer_count; i++) {
        if (j->recomputers[i] >= j->count)
            return orr_fail(j->err, ORR_EINPUT, &at, "checkpoint_initiates: there is no layer %u",
                            j->recomputers[i]);
        j->rows[j->recomputers[i]].recomputes = true;
    }
    return ORR_OK;
}

static orr_code read_rows(job *j, orr__words *w, const char *label)
{
    uint64_t count = 0;
    orr_code code = orr__words_u64(w, "the number of layers", 1, MOST_LAYERS, &count, j->err);
    for (uint64_t i = 0; i < count && !code; i++) {
        orr__words ahead = *w;
        orr_str next;
        if (i && !orr__words_next(&ahead, &next)) { /* SimAI then reads empty layers */
            j->report->missing = count - i;
            break;
        }
        code = read_row(j, w);
    }
    return code ? code : mark_rows(j, label);
}

/* ---- nodes ---- */

static void begin(job *j, uint32_t type, orr_str name, const char *what, uint64_t after)
{
    orr__builder *b = &j->b;
    orr__build_node(b, type, (orr_str){NULL, 0});
    orr__build_name(b, name);
    orr__build_name(b, orr_str_of(what));
    if (after)
        orr__build_after(b, after);
}

static uint64_t end(job *j, stream on)
{
    orr__put_int(&j->b, ORR__ATTR_STREAM, on);
    orr__put_on_device(&j->b);
    return orr__build_add(&j->b);
}

/* The node that others wait for: the collective, else the computation. */
static uint64_t put_pass(job *j, const row *r, const pass *p, const char *what, stream on)
{
    uint64_t done = 0;
    if (p->ns > NO_COMPUTE && j->policy != MICRO) {
        begin(j, ORR_NODE_COMP, r->name, what, j->last);
        orr__build_duration_ns(&j->b, COMPUTE, p->ns);
        j->last = end(j, COMPUTE);
    }
    if (!p->has_collective)
        return 0;
    begin(j, ORR_NODE_COMM_COLL, r->name, what, j->last);
    orr__build_name(&j->b, orr_str_of(" collective"));
    if (orr__build_last_on(&j->b, on))
        orr__build_after_ctrl(&j->b, orr__build_last_on(&j->b, on));
    (void)orr__build_in_stream(&j->b, on);
    orr__put_collective(&j->b, p->kind, p->bytes);
    orr__put_group_hole(&j->b, p->along);
    done = end(j, on);
    if (on == COLLECTIVES)
        j->last = done;
    return done;
}

/* It needs the weights updated by the last iteration. */
static void await_gradients(job *j, row *r)
{
    if (!r->gradients)
        return;
    begin(j, ORR_NODE_COMP, r->name, " update", j->last);
    orr__build_after(&j->b, r->gradients);
    j->last = end(j, COMPUTE);
    r->gradients = 0;
}

static void put_forward(job *j, size_t i)
{
    await_gradients(j, &j->rows[i]);
    (void)put_pass(j, &j->rows[i], &j->rows[i].forward, " forward", COLLECTIVES);
}

/* From the nearest checkpoint before it.  A distant one for many layers would make a small file
 * explode. */
static void put_recomputation(job *j, size_t i)
{
    size_t from = i;
    while (from && !j->rows[from].is_checkpoint)
        from--;
    j->recomputed += i - from;
    if (j->recomputed > MOST_RECOMPUTED) {
        j->b.code = orr_fail(j->err, ORR_EINPUT, NULL,
                             "checkpoint_initiates: more than %d forward passes are run again",
                             MOST_RECOMPUTED);
        return;
    }
    for (; from < i; from++)
        (void)put_pass(j, &j->rows[from], &j->rows[from].forward, " recompute", COLLECTIVES);
}

static void put_backward(job *j, size_t i)
{
    row *r = &j->rows[i];
    if (j->policy == WITH_RECOMPUTATION && r->recomputes)
        put_recomputation(j, i);
    (void)put_pass(j, r, &r->input, " input gradient", COLLECTIVES);
    r->gradients = put_pass(j, r, &r->weight, " weight gradient", WEIGHTS);
}

static void put_iteration(job *j)
{
    for (size_t i = 0; i < j->count && !j->b.code && j->policy != MICRO; i++)
        put_forward(j, i);
    for (size_t i = j->count; i-- > 0 && !j->b.code && j->policy != MICRO;)
        put_backward(j, i);
    for (size_t i = 0; i < j->count && !j->b.code && j->policy == MICRO; i++)
        (void)put_pass(j, &j->rows[i], &j->rows[i].weight, "", COLLECTIVES);
}

/* ---- ranks and groups ---- */

/* Tensor groups are neighbours.  A data-parallel group has the same place of every block of tp x pp
 * ranks; experts share neighbouring tensor groups. */
static uint64_t group_of(const job *j, axis along, uint64_t rank)
{
    const uint64_t place = rank % j->tp, tensor_group = rank / j->tp;
    const uint64_t block = tensor_group / j->sizes[DP], within = tensor_group % j->sizes[DP];
    switch (along) {
    case TP:
        return tensor_group;
    case DP:
        return rank % (j->tp * j->pp);
    case EP:
        return tensor_group / j->ep * j->tp + place;
    default:
        return (block * j->ep + within % j->ep) * j->tp + place;
    }
}

static uint64_t first_group(const job *j, axis along)
{
    uint64_t first = 1;
    for (unsigned a = 0; a < along; a++)
        first += j->ranks / j->sizes[a];
    return first;
}

static orr_code add_ranks(const job *j, orr_set *s, uint32_t class_index)
{
    int64_t values[AXES];
    orr_code code = ORR_OK;
    for (uint64_t r = 0; r < j->ranks && !code; r++) {
        for (unsigned a = 0; a < AXES; a++)
            values[a] = (int64_t)(first_group(j, (axis)a) + group_of(j, (axis)a, r));
        code = orr_set_add_rank_values(s, class_index, 0, values, j->err);
    }
    return code;
}

/* Members of all groups of an axis, in rank order. */
static orr_code add_groups(const job *j, orr_set *s, axis along)
{
    const uint64_t size = j->sizes[along], count = j->ranks / size;
    uint32_t *members = orr_alloc(j->ranks, sizeof *members);
    uint32_t *filled = orr_alloc(count, sizeof *filled);
    orr_code code = members && filled ? ORR_OK : orr_no_memory(j->err);
    for (uint64_t r = 0; r < j->ranks && !code; r++) {
        const uint64_t g = group_of(j, along, r);
        members[g * size + filled[g]++] = (uint32_t)r;
    }
    for (uint64_t g = 0; g < count && !code; g++)
        code = orr_set_add_group(s, first_group(j, along) + g, members + g * size, (uint32_t)size,
                                 j->err);
    orr_free(members);
    orr_free(filled);
    return code;
}

static orr_code make_set(job *j, uint32_t passes, orr_set **out)
{
    orr_set *s = NULL;
    uint32_t class_index = 0;
    orr_code code = orr_set_create(&s, j->err);
    if (code)
        return code;
    orr__build_open(&j->b, j->err);
    j->b.next_id = 1;
    orr__put_text(&j->b, ORR__ATTR_GENERATOR, orr_str_of("orrery: SimAI workload"));
    orr__put_uint(&j->b, ORR__ATTR_STREAMS, 1);
    orr__build_trace(&j->b, "1.0.0");
    for (uint32_t i = 0; i < passes && !j->b.code; i++)
        put_iteration(j);
    code = orr__build_class(&j->b, s, AXES, &class_index);
    if (!code)
        code = add_ranks(j, s, class_index);
    for (unsigned a = 0; a < AXES && !code; a++)
        code = add_groups(j, s, (axis)a);
    if (code)
        orr_set_close(s);
    else
        *out = s;
    return code;
}

/* ---- everything ---- */

orr_code orr_simai_parse(orr_span bytes,
                         const char *label,
                         const orr_simai_options *opt,
                         orr_set **out,
                         orr_simai_report *report,
                         orr_error *err)
{
    job j = {.tp = 1, .ep = 1, .pp = 1, .report = report, .err = err};
    orr__words w;
    *out = NULL;
    *report = (orr_simai_report){0};
    if (opt->ranks > MOST_RANKS || opt->passes > MOST_PASSES)
        return orr_fail(err, ORR_EUSAGE, NULL, "at most %d ranks and %d passes are possible",
                        MOST_RANKS, MOST_PASSES);
    orr__words_init(&w, bytes, label);
    orr_code code = read_header(&j, &w);
    if (!code)
        code = set_sizes(&j, opt, label);
    if (!code)
        code = read_rows(&j, &w, label);
    if (!code && opt->passes > 1 && j.count > MOST_LAYER_PASSES / opt->passes)
        code = orr_fail(err, ORR_EUSAGE, NULL,
                        "%zu layers in %" PRIu32 " passes are more than %d passes through layers",
                        (size_t)j.count, opt->passes, MOST_LAYER_PASSES);
    if (!code)
        code = make_set(&j, opt->passes ? opt->passes : 1, out);
    if (!code) {
        report->ranks = (uint32_t)j.ranks;
        report->tp = (uint32_t)j.tp;
        report->dp = (uint32_t)j.sizes[DP];
        report->ep = (uint32_t)j.ep;
        report->pp = (uint32_t)j.pp;
        report->layers = j.count;
    }
    fini(&j);
    return code;
}

orr_code orr_simai_read(const char *path,
                        const orr_simai_options *opt,
                        orr_set **out,
                        orr_simai_report *report,
                        orr_error *err)
{
    orr_input *in;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    code = orr_simai_parse(orr_input_bytes(in), path, opt, out, report, err);
    orr_input_close(in);
    return code;
}
