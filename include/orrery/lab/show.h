/* SPDX-License-Identifier: Apache-2.0 */
/* show.h - models, machines and chips as tables and as JSON.
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
#include <orrery/lab/machine.h>
#include <orrery/lab/model.h>

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

#ifdef __cplusplus
}
#endif
#endif
