/* SPDX-License-Identifier: Apache-2.0 */
/* template.h - modules: the small graphs a model is put together from.
 *
 * A module is a table with a row for each tensor.  It comes from a pair of files, NAME.csv and
 * NAME.json (docs/format/template.md), or from the tables of template.c; both end as rows of cells,
 * and one builder makes a graph of them and checks it. */
#ifndef ORR_SYMBOLIC_TEMPLATE_H
#define ORR_SYMBOLIC_TEMPLATE_H

#include "tensor.h"

#include "base/short_forms.h"

/* One row.  An absent cell is empty. */
typedef struct stg_cells {
    orr_str id, a, b, op, attr, shape_a, hidden_a, shape_b, hidden_b, grad_of;
    bool is_param;
    const orr_str *extras; /* data_deps */
    size_t extra_count;
    orr_where where;
} stg_cells;

/* From the bytes of a pair of files. */
orr_code stg_module_parse(stg_tgraph *g,
                          orr_span csv,
                          const char *csv_path,
                          orr_span json,
                          const char *json_path,
                          orr_error *err) ORR_MUST_CHECK;
/* From FOLDER/NAME.csv and FOLDER/NAME.json.  *is_there: the first of them exists. */
orr_code stg_module_read(stg_tgraph *g,
                         const char *folder,
                         const char *name,
                         bool *is_there,
                         orr_error *err) ORR_MUST_CHECK;

/* One of our own: kind is the folder's name in the reference ("tpsp_gpt"). */
orr_code stg_module_builtin(stg_tgraph *g, const char *kind, const char *name, orr_error *err)
    ORR_MUST_CHECK;

/* ---- the modules of one model ---- */

enum { ORR__MODULES_MOST = 16 };

typedef struct stg_library {
    stg_space *space;
    const char *folder;    /* of the user's; NULL: all are ours */
    const char *kind;      /* which family: "tpsp_gpt", "tp_gpt", "tpsp", "tpsp_moe" */
    const char *attention; /* that of the attention modules */
    bool has_own;          /* one came out of the user's folder */
    size_t count;
    const char *names[ORR__MODULES_MOST];
    stg_tgraph graphs[ORR__MODULES_MOST];
} stg_library;

void stg_library_fini(stg_library *lib);
/* Borrowed; read once and kept. */
orr_code stg_library_get(stg_library *lib, const char *name, const stg_tgraph **out, orr_error *err)
    ORR_MUST_CHECK;

#endif
