/* SPDX-License-Identifier: Apache-2.0 */
/* show.h - models, machines, chips, predicted collectives, fits and plans as tables and as JSON.
 *
 *     orr_model_figures f = {.model = &model, .work = {.tokens = 4096}};
 *     ...                                            // counts, FLOPs and cache by <orrery/lab/model.h>
 *     if (orr_show_model(&f, false, ORR_SHOW_TEXT, "-", &err)) return report(&err);
 *
 * The path "-" is standard output.  The JSON is one object on one or a few lines, with "format" and
 * "version" first.  Experimental: may change in the next release. */
#ifndef ORRERY_LAB_SHOW_H
#define ORRERY_LAB_SHOW_H

#include <orrery/error.h>
#include <orrery/lab/chip.h>
#include <orrery/lab/collectives.h>
#include <orrery/lab/machine.h>
#include <orrery/lab/model.h>
#include <orrery/lab/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum orr_show_form { ORR_SHOW_TEXT = 0, ORR_SHOW_JSON } orr_show_form;

/* ---- models ---- */

typedef struct orr_model_figures {
    const orr_model *model;
    orr_model_work work;
    orr_model_counts counts;
    orr_model_flops flops;
    uint64_t kv_elements; /* of all tokens; twice that fits into 64 bits */
} orr_model_figures;

/* Parameters, FLOPs and memory; with the tensors of each kind of layer if wanted. */
ORR_API orr_code orr_show_model(const orr_model_figures *f,
                                bool has_tensors,
                                orr_show_form form,
                                const char *path,
                                orr_error *err) ORR_MUST_CHECK;
/* The built-in models. */
ORR_API orr_code orr_show_models(orr_show_form form,
                                 const char *path,
                                 orr_error *err) ORR_MUST_CHECK;

/* ---- machines ---- */

/* dims: orr_machine_dims of m.  name, as given to orr_machine_find: which figures of a built-in
 * machine are estimates. */
ORR_API orr_code orr_show_machine(const orr_machine *m,
                                  const orr_net_config *dims,
                                  const char *name,
                                  orr_show_form form,
                                  const char *path,
                                  orr_error *err) ORR_MUST_CHECK;
/* The built-in machines. */
ORR_API orr_code orr_show_machines(orr_show_form form,
                                   const char *path,
                                   orr_error *err) ORR_MUST_CHECK;

/* ---- chips ---- */

ORR_API orr_code orr_show_chip(const orr_chip *chip,
                               orr_show_form form,
                               const char *path,
                               orr_error *err) ORR_MUST_CHECK;
/* The built-in chips. */
ORR_API orr_code orr_show_chips(orr_show_form form,
                                const char *path,
                                orr_error *err) ORR_MUST_CHECK;

typedef struct orr_kernel_timed {
    orr_kernel kernel;
    orr_kernel_time time; /* by orr_chip_time */
} orr_kernel_timed;

/* Kernels on a chip, and how long they take together. */
ORR_API orr_code orr_show_kernels(const orr_chip *chip,
                                  const orr_kernel_timed *list,
                                  size_t count,
                                  orr_show_form form,
                                  const char *path,
                                  orr_error *err) ORR_MUST_CHECK;

/* ---- collectives, as nccl-tests measures them ---- */

typedef struct orr_nccl_tests_row {
    orr_bytes size;
    uint64_t count;      /* elements */
    double us, alg, bus; /* bandwidths: GB/s */
    orr_alone_time time;
} orr_nccl_tests_row;

typedef struct orr_nccl_tests {
    const orr_machine *machine;
    const orr_alone_op *op;
    const char *type;      /* "float" */
    uint32_t per_node;     /* 0: all devices of a node */
    uint64_t from, to;     /* sizes */
    uint64_t factor, step; /* from one to the next; step 0: the factor holds */
    const orr_nccl_tests_row *rows;
    size_t row_count; /* at least 1 */
} orr_nccl_tests;

/* The table that nccl-tests prints; with algorithm, protocol, channels and interval if wanted. */
ORR_API orr_code orr_show_nccl_tests(const orr_nccl_tests *t,
                                     bool with_choice,
                                     orr_show_form form,
                                     const char *path,
                                     orr_error *err) ORR_MUST_CHECK;

/* ---- fits to measurements ---- */

typedef struct orr_calibration_about {
    const char *machine;
    const char *output, *table; /* the files that were written; NULL: none */
    size_t files;               /* that were read */
    bool with_rows;
} orr_calibration_about;

ORR_API orr_code orr_show_calibration(const orr_calibration_result *r,
                                      const orr_calibration_about *about,
                                      orr_show_form form,
                                      const char *path,
                                      orr_error *err) ORR_MUST_CHECK;

/* One kind of kernels over those of a similar chip. */
typedef struct orr_kind_fit {
    size_t rows;
    double scale, low, high; /* low and high: the interval over scale; 0: too few rows */
} orr_kind_fit;

typedef struct orr_kernel_fit {
    const char *like, *output; /* output NULL: no file was written */
    size_t rows;
    uint64_t passed_over; /* operator calls of an export that are skipped: unknown, or far off */
    orr_kind_fit kinds[ORR_KERNEL_KINDS];
    double before, after, left_out; /* mean errors */
} orr_kernel_fit;

/* The chip file, which orr_chip_read reads. */
ORR_API orr_code orr_kernel_fit_save(const orr_kernel_fit *f,
                                     const char *path,
                                     orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_show_kernel_fit(const orr_kernel_fit *f,
                                     orr_show_form form,
                                     const char *path,
                                     orr_error *err) ORR_MUST_CHECK;

typedef struct orr_step_fit {
    const char *like, *output; /* as above */
    size_t found, count;       /* steps, with and without warm-up */
    double median_ms, low_ms, high_ms, predicted_ms;
} orr_step_fit;

ORR_API orr_code orr_step_fit_save(const orr_step_fit *f,
                                   const char *path,
                                   orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_show_step_fit(const orr_step_fit *f,
                                   orr_show_form form,
                                   const char *path,
                                   orr_error *err) ORR_MUST_CHECK;

/* ---- plans of training ---- */

enum { ORR_PLAN_SIZES = 32, ORR_PLAN_RATES = 4, ORR_PLAN_CHECKED = 3 };

/* The best plan for one number of devices. */
typedef struct orr_plan_size {
    uint32_t devices;
    orr_plan best;
    orr_plan_counts counts;
    orr_plan_search *search;
} orr_plan_size;

/* What orrery plan found out. */
typedef struct orr_plan_findings {
    const orr_model *model;
    const char *name, *machine; /* as the user named them */
    const char *goal;           /* "time", "cost" or "memory" */
    size_t top, sure;           /* plans to show, and how many of them are proven */
    bool is_stopped, is_late;
    char limit[100]; /* the memory or event limit that was reached; "": none */
    double max_s;    /* limits of the search; 0: none */
    uint64_t max_events;
    orr_plan_search *search; /* the search with the best plan by the goal */
    orr_plan_size sizes[ORR_PLAN_SIZES];
    size_t size_wanted, size_count, best_size;
    struct {
        const char *name;
        double step_s; /* of the best plan, with this rate doubled */
    } rates[ORR_PLAN_RATES];
    size_t rate_count;
    /* The best plans on more detailed networks; each level has check_count entries. */
    orr_plan_check checks[ORR_PLAN_LEVELS][ORR_PLAN_CHECKED];
    size_t check_count;
} orr_plan_findings;

ORR_API orr_code orr_show_plans(const orr_plan_findings *x,
                                orr_show_form form,
                                const char *path,
                                orr_error *err) ORR_MUST_CHECK;
/* One HTML file with all plans.  best_report: the file with the report of the best plan, next to
 * it; NULL: there is none.  made_from: the command line. */
ORR_API orr_code orr_plan_write_page(const orr_plan_findings *x,
                                     const char *best_report,
                                     const char *made_from,
                                     const char *path,
                                     orr_error *err) ORR_MUST_CHECK;

/* ---- plans of serving ---- */

typedef struct orr_plan_servings {
    const char *model; /* as the user named it */
    const orr_plan_serve_options *options;
    const orr_plan_serving *list;
    size_t count; /* at least 1 */
    size_t top;   /* plans to show */
} orr_plan_servings;

ORR_API orr_code orr_show_servings(const orr_plan_servings *x,
                                   orr_show_form form,
                                   const char *path,
                                   orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_plan_write_serving_page(const orr_plan_servings *x,
                                             const orr_machine *m,
                                             const char *made_from,
                                             const char *path,
                                             orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
