/* SPDX-License-Identifier: Apache-2.0 */
/* export.h - a program that torch.export saved (.pt2), read without PyTorch.
 *
 *     orr_fx *program;
 *     orr_export_report r;
 *     if (orr_export_read("model.pt2", NULL, &program, &r, &err)) return report(&err);
 *     if (orr_fx_convert(program, NULL, &set, NULL, &err)) ...
 *     orr_export_report_fini(&r);
 *     orr_fx_close(program);
 *
 * The result is a captured step in memory (fx.h), of one rank or of several equal ones.  Nothing in
 * the archive is executed: weights and pickled objects are ignored.  docs/format/pt2.md says what
 * is read. */
#ifndef ORRERY_LAB_EXPORT_H
#define ORRERY_LAB_EXPORT_H

#include <orrery/lab/fx.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct orr_export_options {
    /* "s0=8,s1=128": values of symbolic sizes; NULL: the example values of the file */
    const char *sizes;
    const char *model; /* which of several in the archive; NULL: the only one */
    uint32_t ranks;    /* 0: one */
} orr_export_options;

/* A size that is a symbol in the file. */
typedef struct orr_export_symbol {
    orr_str name;
    int64_t value;
    int64_t min, max; /* range allowed by the program; INT64_MIN and INT64_MAX: no limit */
    bool is_given;    /* set by the caller; else the example value of the file */
} orr_export_symbol;

typedef struct orr_export_report {
    orr_str torch_version, model; /* model: its name in the archive, or empty */
    uint32_t schema_major, schema_minor;
    bool is_joint;   /* forward and backward; else forward alone */
    uint32_t nodes;  /* nodes in the file, including entered nested graphs */
    uint32_t nested; /* graphs inside the graph that were entered */
    uint32_t parameters, buffers, inputs, outputs;
    const orr_export_symbol *symbols; /* those that sizes depend on; given ones first */
    size_t symbol_count;
    void *owner; /* private */
} orr_export_report;

/* An archive, or the JSON of a program alone; "-" is standard input.  opt and report may be
 * NULL. */
ORR_API orr_code orr_export_read(const char *path,
                                 const orr_export_options *opt,
                                 orr_fx **out,
                                 orr_export_report *report,
                                 orr_error *err) ORR_MUST_CHECK;
/* The same from memory, which may be freed afterwards; label is used in messages. */
ORR_API orr_code orr_export_parse(orr_span bytes,
                                  const char *label,
                                  const orr_export_options *opt,
                                  orr_fx **out,
                                  orr_export_report *report,
                                  orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_export_report_fini(orr_export_report *r);

#ifdef __cplusplus
}
#endif
#endif
