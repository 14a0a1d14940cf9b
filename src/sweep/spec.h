/* SPDX-License-Identifier: Apache-2.0 */
/* spec.h - a parsed sweep (docs/format/sweep.md), and the list of its points. */
#ifndef ORR_SWEEP_SPEC_H
#define ORR_SWEEP_SPEC_H

#include "expression.h"

#include "base/formats/yaml.h"
#include "base/memory/buffer.h"
#include "base/memory/hash.h"

#include <orrery/lab/sweep.h>

enum { SWP_MOST_STEPS = 8, SWP_MOST_NAMES = 128, SWP_MOST_POINTS = 10000000 };

/* The destination of a name's value. */
typedef struct swp_target {
    uint32_t step;
    orr_sweep_form form;
    uint32_t place;     /* of an argument */
    const char *option; /* as the command spells it */
} swp_target;

/* A piece of a template: a text, or an expression in braces. */
typedef struct swp_piece {
    orr_str text;
    swp_expr *expr; /* NULL: literal text */
} swp_piece;

typedef struct swp_template {
    swp_piece *pieces;
    size_t count;
} swp_template;

/* An axis, an option or a variable; its value has the same index in a point's values. */
typedef struct swp_name {
    const char *name;
    orr_where where;
    swp_target targets[SWP_MOST_STEPS];
    uint32_t target_count;
    bool is_axis; /* its value comes from the point; else from the template */
    swp_template value;
} swp_name;

/* Values that vary together: one name, or the names of `points`. */
typedef struct swp_axis {
    uint32_t names[SWP_MOST_NAMES]; /* places in spec->names */
    uint32_t width;
    const char **values; /* [i * width + k] */
    size_t count;        /* 0: continuous, only for samples */
    double from, to;
    bool is_log, is_whole;
} swp_axis;

typedef enum swp_method { SWP_GRID, SWP_RANDOM, SWP_LATIN } swp_method;

typedef struct swp_measure {
    const char *name;
    const char *text; /* the expression */
    orr_where where;
} swp_measure;

struct orr_sweep {
    orr_arena *arena;
    const orr_sweep_hooks *hooks;
    const char *path;
    orr_str text;         /* the file */
    uint64_t most_points; /* limit; ten times as many combinations are tried */
    const char *title;
    struct {
        const char *command;
        const char **words; /* leading arguments */
        size_t word_count;
    } steps[SWP_MOST_STEPS];
    uint32_t step_count;
    swp_template *arguments; /* of the first step */
    size_t argument_count;
    swp_name names[SWP_MOST_NAMES];
    uint32_t name_count;
    uint32_t order[SWP_MOST_NAMES]; /* names with a template, in topological order */
    uint32_t order_count;
    uint32_t axis_names[SWP_MOST_NAMES]; /* the names of a point's values */
    uint32_t axis_name_count;
    swp_axis axes[SWP_MOST_NAMES];
    uint32_t axis_count;
    swp_expr **constraints;
    size_t constraint_count;
    swp_method method;
    uint64_t samples, seed;
    const char **files; /* further inputs */
    size_t file_count;
    swp_measure measures[SWP_MOST_NAMES];
    uint32_t measure_count;
    struct swp_rows *rows; /* spec.c */
    uint32_t rows_count;
    const char *goal;    /* "min NAME", "max NAME"; NULL: none */
    const char **points; /* [i * axis_name_count + k]: texts */
    size_t point_count;
    struct swp_file_memo *memo; /* points.c */
    size_t memo_count, memo_room;
};

/* ---- spec.c ---- */

orr_code swp_spec_read(orr_sweep *s, orr_error *err) ORR_MUST_CHECK; /* s->text */
void swp_spec_fini(orr_sweep *s);

/* ---- sweep_run.c ---- */

/* orr_sweep_read with its own limit. */
orr_code swp_read(orr_span bytes,
                  const char *path,
                  const orr_sweep_hooks *hooks,
                  uint64_t most_points,
                  orr_sweep **out,
                  orr_error *err) ORR_MUST_CHECK;

/* ---- points.c ---- */

orr_code swp_points_list(orr_sweep *s, orr_error *err) ORR_MUST_CHECK;
/* The commands of a point; words are in the arena. */
orr_code swp_point_steps(const orr_sweep *s,
                         size_t point,
                         orr_arena *a,
                         orr_sweep_step steps[SWP_MOST_STEPS],
                         orr_error *err) ORR_MUST_CHECK;
/* Shortest text; integers without a decimal point. */
const char *swp_number_text(orr_arena *a, double v);

/* ---- points.c ---- */

/* The identity of a point: its commands, the contents of the files they name, the program. */
orr_code swp_point_hash(
    orr_sweep *s, size_t point, orr_arena *a, orr_content_hash *out, orr_error *err) ORR_MUST_CHECK;
/* The identity of the sweep: its commands and the list of its points. */
orr_content_hash swp_spec_hash(orr_sweep *s, bool *has_failed);

/* ---- figures ----
 *
 * The JSON output of a point's commands, flattened: one value per dotted name.
 *
 * A list of objects gives the maximum of each of its numbers, independently, because the slowest
 * rank and the fullest device decide; `rows` of the specification selects other rows. */

/* json: the output of each command; an empty one has no values.  All but the last are prefixed with
 * their name. */
orr_code swp_figures_flatten(const orr_sweep *s,
                             const orr_buf json[SWP_MOST_STEPS],
                             orr_buf *to,
                             orr_error *err) ORR_MUST_CHECK;

/* Those entries as bytes: they are part of a point's identity. */
void swp_rows_identify(const orr_sweep *s, orr_buf *to);

#endif
