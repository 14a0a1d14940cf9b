/* SPDX-License-Identifier: Apache-2.0 */
/* template.h - modules: the small graphs from which a model is assembled.
 *
 * A module is a table with one row per tensor.  It comes from a pair of files, NAME.csv and
 * NAME.json (docs/format/template.md), or from the tables in template.c; both become rows of cells,
 * from which one builder makes a validated graph. */
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

/* From the contents of a pair of files. */
orr_code stg_module_parse(stg_tgraph *g,
                          orr_span csv,
                          const char *csv_path,
                          orr_span json,
                          const char *json_path,
                          orr_error *err) ORR_MUST_CHECK;
/* From FOLDER/NAME.csv and FOLDER/NAME.json.  *is_there: the former exists. */
orr_code stg_module_read(stg_tgraph *g,
                         const char *folder,
                         const char *name,
                         bool *is_there,
                         orr_error *err) ORR_MUST_CHECK;

/* A built-in one; kind: the folder's name in the reference ("tpsp_gpt"). */
orr_code stg_module_builtin(stg_tgraph *g, const char *kind, const char *name, orr_error *err)
    ORR_MUST_CHECK;

/* ---- the modules of one model ---- */

enum { ORR__MODULES_MOST = 16 };

typedef struct stg_library {
    stg_space *space;
    const char *folder;    /* the user's; NULL: all modules are built in */
    const char *kind;      /* family: "tpsp_gpt", "tp_gpt", "tpsp", "tpsp_moe" */
    const char *attention; /* family of the attention modules */
    bool has_own;          /* a module came from the user's folder */
    size_t count;
    const char *names[ORR__MODULES_MOST];
    stg_tgraph graphs[ORR__MODULES_MOST];
} stg_library;

void stg_library_fini(stg_library *lib);
/* Borrowed; read once and cached. */
orr_code stg_library_get(stg_library *lib, const char *name, const stg_tgraph **out, orr_error *err)
    ORR_MUST_CHECK;

#endif
