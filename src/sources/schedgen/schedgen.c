/* SPDX-License-Identifier: Apache-2.0 */
/* schedgen.c - the table of patterns; from a row and options to a schedule (goal.md 4).
 *
 * A row says what the pattern looks at, what must be drawn for all ranks, how a rank's part is written, and
 * whether SchedGen's own schedule for the options is one that cannot run.  Ranks are written in order, each
 * by itself. */
#include "schedgen_impl.h"

#include <orrery/lab/progress.h>

typedef struct row {
    orr_schedgen_pattern shown;
    void (*write_rank)(const schedgen *s, uint32_t rank);
    orr_code (*draw)(schedgen *s, orr_error *err);
    const char *(*repair)(const orr_schedgen_options *opt); /* NULL: SchedGen's schedule is right */
} row;

static const char *repair_binary_tree(const orr_schedgen_options *opt)
{
    return opt->root ? "SchedGen renames peers but not the rank itself when the root is not 0, and "
                       "messages miss each other"
                     : NULL;
}

static const char *repair_recdoub(const orr_schedgen_options *opt)
{
    return sgen_is_power_of_two(opt->ranks)
               ? NULL
               : "SchedGen sends to ranks that are not there when their number is no power of two";
}

static const char *repair_chain(const orr_schedgen_options *opt)
{
    (void)opt;
    return "SchedGen waits at a message to rank 9999999, which is not there";
}

static const char *repair_resnet(const orr_schedgen_options *opt)
{
    return sgen_schedgen_rules(opt->rules)->counts_tags_on && opt->ranks > 1
               ? "SchedGen of ATLAHS gives each rank other tags, and messages miss each other"
               : NULL;
}

static const char *repair_pairs(const orr_schedgen_options *opt)
{
    return opt->ranks == 1 ? "SchedGen writes a schedule of no ranks" : NULL;
}

enum {
    SIZE = ORR_SCHEDGEN_SIZE,
    ROOTED = ORR_SCHEDGEN_SIZE | ORR_SCHEDGEN_ROOT,
    SEGMENTED = ORR_SCHEDGEN_SIZE | ORR_SCHEDGEN_ROOT | ORR_SCHEDGEN_SEGMENT
};

static const row rows[] = {
    {{"binomialtreebcast", "broadcast down a binomial tree", ROOTED},
     sgen_pattern_binomialtreebcast,
     NULL,
     NULL},
    {{"binarytreebcast", "broadcast down a binary tree", ROOTED},
     sgen_pattern_binarytreebcast,
     NULL,
     repair_binary_tree},
    {{"binomialtreereduce", "reduction up a binomial tree", ROOTED},
     sgen_pattern_binomialtreereduce,
     NULL,
     NULL},
    {{"scatter", "the root sends to each of the others", ROOTED}, sgen_pattern_scatter, NULL, NULL},
    {{"gather", "each of the others sends to the root", ROOTED}, sgen_pattern_gather, NULL, NULL},
    {{"pipelinedring", "broadcast along a ring, in segments", SEGMENTED},
     sgen_pattern_pipelinedring,
     NULL,
     NULL},
    {{"pipelinedringdep", "the same, a rank keeping one segment only", SEGMENTED},
     sgen_pattern_pipelinedringdep,
     NULL,
     NULL},
    {{"doublering", "once round a ring, and once back", SIZE}, sgen_pattern_doublering, NULL, NULL},
    {{"linbarrier", "barrier: all tell rank 0, rank 0 tells all", 0},
     sgen_pattern_linbarrier,
     NULL,
     NULL},
    {{"dissemination", "barrier or all-reduce in log2 rounds", SIZE},
     sgen_pattern_dissemination,
     NULL,
     NULL},
    {{"nwaydissemination", "the same with N messages a round", SIZE | ORR_SCHEDGEN_NWAY},
     sgen_pattern_nwaydissemination,
     NULL,
     NULL},
    {{"linear_alltoall", "each rank sends to each other", SIZE},
     sgen_pattern_linear_alltoall,
     NULL,
     NULL},
    {{"linear_alltoallv", "the same, in sizes drawn by lot",
      SIZE | ORR_SCHEDGEN_ROOT | ORR_SCHEDGEN_SKEW},
     sgen_pattern_linear_alltoallv,
     sgen_draw_sizes,
     NULL},
    {{"allreduce_recdoub", "all-reduce by halving and doubling", SIZE | ORR_SCHEDGEN_GAP},
     sgen_pattern_allreduce_recdoub,
     NULL,
     repair_recdoub},
    {{"allreduce_ring", "all-reduce on a ring", SIZE}, sgen_pattern_allreduce_ring, NULL, NULL},
    {{"random_bisect", "half of the ranks send to the other half, in pairs drawn by lot",
      SIZE | ORR_SCHEDGEN_RANDOM},
     sgen_pattern_random_bisect,
     sgen_draw_pairs,
     repair_pairs},
    {{"random_bisect_fd_sym", "the same, both ways at once", SIZE | ORR_SCHEDGEN_RANDOM},
     sgen_pattern_random_bisect_fd_sym,
     sgen_draw_pairs,
     repair_pairs},
    {{"resnet", "a training step of ResNet-152, ten all-reduces", 0},
     sgen_pattern_resnet,
     NULL,
     repair_resnet},
    {{"chained_dissem", "five disseminations, one after the other", 0},
     sgen_pattern_chained_dissem,
     NULL,
     repair_chain},
};

enum { ROWS = sizeof rows / sizeof *rows, RANKS_MAX = INT32_MAX, CPU_MAX = 255 };

static const row *row_of(const orr_schedgen_pattern *p)
{
    return (const row *)(const void *)p; /* `shown` is the first member */
}

orr_schedgen_options orr_schedgen_defaults(void)
{
    return (orr_schedgen_options){
        .ranks = 8, .data_bytes = 1, .nway = 1, .segment_bytes = 1, .skew = 1, .seed = 1};
}

const orr_schedgen_pattern *orr_schedgen_at(size_t i)
{
    return i < ROWS ? &rows[i].shown : NULL;
}

const orr_schedgen_pattern *orr_schedgen_find(const char *name)
{
    if (strcmp(name, "resnet152") == 0)
        name = "resnet"; /* as ATLAHS calls it */
    for (size_t i = 0; i < ROWS; i++) {
        if (strcmp(rows[i].shown.name, name) == 0)
            return &rows[i].shown;
    }
    return NULL;
}

static bool has_odd_one_out(const row *r, const orr_schedgen_options *opt)
{
    return r->shown.uses & ORR_SCHEDGEN_RANDOM && opt->ranks % 2;
}

/* An odd rank finds no partner and is left out, as SchedGen does it; one rank alone stays. */
static uint32_t ranks_of(const row *r, const orr_schedgen_options *opt)
{
    return opt->ranks > 1 || opt->keeps_invalid ? opt->ranks - has_odd_one_out(r, opt) : opt->ranks;
}

static orr_code check_root(const row *r, const orr_schedgen_options *opt, orr_error *err)
{
    if (!(r->shown.uses & ORR_SCHEDGEN_ROOT) || r->shown.uses & ORR_SCHEDGEN_SKEW)
        return ORR_OK; /* for linear_alltoallv the root is a number like any other */
    if (opt->root >= 0 && opt->root < (int64_t)opt->ranks)
        return ORR_OK;
    return orr_fail(err, ORR_EUSAGE, NULL, "root %lld out of range 0..%u", (long long)opt->root,
                    opt->ranks - 1);
}

static orr_code check_skew(const row *r, const orr_schedgen_options *opt, orr_error *err)
{
    if (!(r->shown.uses & ORR_SCHEDGEN_SKEW))
        return ORR_OK;
    if (opt->skew == 0 || opt->skew > opt->data_bytes)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "the skew ratio, %llu, must be between 1 and the data size, %llu bytes",
                        (unsigned long long)opt->skew, (unsigned long long)opt->data_bytes);
    return ORR_OK;
}

/* ORR_EUSAGE, in words, for options that no schedule can be made of. */
static orr_code check_options(const row *r, const orr_schedgen_options *opt, orr_error *err)
{
    if (opt->ranks == 0 || opt->ranks > RANKS_MAX)
        return orr_fail(err, ORR_EUSAGE, NULL, "%u ranks: there must be 1 to %d", opt->ranks,
                        RANKS_MAX);
    if (opt->cpu > CPU_MAX)
        return orr_fail(err, ORR_EUSAGE, NULL, "cpu %u: GOAL knows 0 to %d", opt->cpu, CPU_MAX);
    if (r->shown.uses & ORR_SCHEDGEN_NWAY && opt->nway == 0)
        return orr_fail(err, ORR_EUSAGE, NULL, "a rank must send one message a round at least");
    if (r->shown.uses & ORR_SCHEDGEN_SEGMENT && opt->segment_bytes == 0)
        return orr_fail(err, ORR_EUSAGE, NULL, "a segment must have one byte at least");
    const orr_code code = check_root(r, opt, err);
    return code ? code : check_skew(r, opt, err);
}

const char *orr_schedgen_repair(const orr_schedgen_pattern *p, const orr_schedgen_options *opt)
{
    const row *r = row_of(p);
    return r->repair ? r->repair(opt) : NULL;
}

static void write_ranks(const row *r, const schedgen *s)
{
    orr_progress progress;
    orr_progress_start(&progress, r->shown.name, "ranks", s->ranks, s->opt->is_quiet);
    sgen_gpen_head(s->pen, s->ranks);
    for (uint32_t rank = 0; rank < s->ranks && !sgen_gpen_has_failed(s->pen); rank++) {
        sgen_gpen_begin(s->pen, rank);
        r->write_rank(s, rank);
        sgen_gpen_end(s->pen);
        orr_progress_add(&progress, 1);
    }
    orr_progress_end(&progress);
}

/* goal NULL: to a path; otherwise into memory. */
static orr_code make_schedule(const row *r,
                              const orr_schedgen_options *opt,
                              const char *path,
                              orr_goal **goal,
                              orr_schedgen_totals *out,
                              orr_error *err)
{
    orr_error own;
    goal_pen pen;
    orr_code code = check_options(r, opt, err);
    if (code || (code = sgen_gpen_init(&pen, path, goal || opt->is_binary, err ? err : &own)))
        return code;
    schedgen s = {.opt = opt,
                  .rules = sgen_schedgen_rules(opt->rules),
                  .ranks = ranks_of(r, opt),
                  .pen = &pen};
    pen.cpu = opt->cpu;
    pen.has_overlap = opt->has_overlap;
    pen.overlap_ns = opt->overlap_ns;
    pen.poll_ns = opt->poll_ns;
    pen.totals_out = out;
    if (r->draw && s.ranks)
        code = r->draw(&s, err);
    if (!code)
        write_ranks(r, &s);
    orr_free(s.table);
    if (code) {
        sgen_gpen_discard(&pen);
        return code;
    }
    if (goal)
        *goal = sgen_gpen_take(&pen);
    return sgen_gpen_finish(&pen, err);
}

orr_code orr_schedgen_write(const orr_schedgen_pattern *p,
                            const orr_schedgen_options *opt,
                            const char *path,
                            orr_schedgen_totals *out,
                            orr_error *err)
{
    return make_schedule(row_of(p), opt, path, NULL, out, err);
}

orr_code orr_schedgen_goal(const orr_schedgen_pattern *p,
                           const orr_schedgen_options *opt,
                           orr_goal **out,
                           orr_error *err)
{
    *out = NULL;
    return make_schedule(row_of(p), opt, NULL, out, NULL, err);
}
