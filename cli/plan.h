/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h - what orrery plan found, for its text, JSON, CSV and page (plan_out.c). */
#ifndef ORR_CLI_PLAN_H
#define ORR_CLI_PLAN_H

#include "base/formats/json.h"
#include "command.h"

#include <orrery/lab/plan.h>

enum { CLI_PLAN_SIZES = 32, CLI_PLAN_RATES = 4, CLI_PLAN_CHECKED = 3 };

/* The best of a number of devices. */
typedef struct cli_plan_size {
    uint32_t devices;
    orr_plan best;
    orr_plan_counts counts;
    orr_plan_search *search;
} cli_plan_size;

typedef struct cli_plan {
    const orr_model *model;
    const char *name, *machine;
    size_t top, sure;
    bool is_stopped, is_late;
    double max_s;
    orr_plan_search *search; /* the one whose best is the best by the goal */
    cli_plan_size sizes[CLI_PLAN_SIZES];
    size_t size_count, best_size;
    const char *goal;
    struct {
        const char *name;
        double step_s; /* of the best plan, with this twice as fast */
    } rates[CLI_PLAN_RATES];
    size_t rate_count;
    /* The best ones once more, level by level; the first check_count of each level are there. */
    orr_plan_check checks[ORR_PLAN_LEVELS][CLI_PLAN_CHECKED];
    size_t check_count;
} cli_plan;

void cli_plan_text(const cli_plan *x);
void cli_plan_json(const cli_plan *x);
orr_code cli_plan_csv(const cli_plan *x, const char *path, orr_error *err) ORR_MUST_CHECK;
orr_code cli_plan_report(cli_context *c, const cli_plan *x, const char *path, orr_error *err)
    ORR_MUST_CHECK;

/* What the page and JSON have in common: members of an open object, with so many plans. */
void cli_plan_put(const cli_plan *x, orr_json_writer *w, size_t most);
/* Plans of the other numbers of devices, for the page. */
void cli_plan_put_others(const cli_plan *x, orr_json_writer *w);

/* The page with its data; json has failed if memory was out. */
orr_code cli_plan_page(bool is_serving,
                       const char *title,
                       const orr_buf *json,
                       const char *path,
                       orr_error *err) ORR_MUST_CHECK;

/* orrery plan --serve (plan_serving.c). */
orr_code cli_plan_serve(cli_context *c, double usd_per_hour, orr_error *err) ORR_MUST_CHECK;

#endif
