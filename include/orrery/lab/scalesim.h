/* SPDX-License-Identifier: Apache-2.0 */
/* scalesim.h - the files of the three generations of SCALE-Sim: configurations, tables of layers,
 * reports.
 *
 *     orr_scalesim_config config;
 *     orr_scalesim_network *net;
 *     orr_scalesim *run;
 *     if (orr_scalesim_read_config("scale.cfg", &config, &err)) return report(&err);
 *     config.array.dataflow = ORR_DATAFLOW_WS;          // plain values: change what differs
 *     if (orr_scalesim_read_network("resnet50.csv", NULL, &net, &err)) return report(&err);
 *     if (orr_scalesim_run(&config, net, NULL, &run, &err)) return report(&err);
 *     if (orr_scalesim_text(run, &text, &err)) return report(&err);
 *     orr_scalesim_destroy(run);
 *     orr_scalesim_network_free(net);
 *
 * One reader takes the files of all generations.  orrery-scalesim(1) has the keys, the columns and
 * the reports. Experimental: may change in the next release. */
#ifndef ORRERY_LAB_SCALESIM_H
#define ORRERY_LAB_SCALESIM_H

#include <orrery/lab/systolic.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ORR_SCALESIM_NAME = 256 };

/* What a configuration of v2 or v3 specifies about memory. */
typedef enum orr_scalesim_interface {
    ORR_INTERFACE_UNSAID = 0, /* v1 files have no such key */
    ORR_INTERFACE_CALC,       /* estimate the bandwidth that is needed */
    ORR_INTERFACE_USER        /* array.bandwidth is given */
} orr_scalesim_interface;

typedef struct orr_scalesim_config {
    char run_name[ORR_SCALESIM_NAME]; /* verbatim, quotes included; empty if the key is absent */
    orr_scalesim_interface interface;
    orr_systolic_array array; /* words are bytes; array.bandwidth is 0 unless USER */
    int generation;           /* 1 to 3: the oldest SCALE-Sim whose keys these are */
    bool has_banks;           /* v3: the section [layout] is there */
    bool has_ramulator;       /* v3: UseRamulatorTrace */
    char path[200], hash[40]; /* its origin, for reports; the tail of a long path */
} orr_scalesim_config;

/* From a file ("-": standard input), or from memory; label is used in messages. */
ORR_API orr_code orr_scalesim_read_config(const char *path,
                                          orr_scalesim_config *out,
                                          orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_scalesim_parse_config(orr_span bytes,
                                           const char *label,
                                           orr_scalesim_config *out,
                                           orr_error *err) ORR_MUST_CHECK;

/* v3: layout of words in the buffers, from the first row of its table of layouts. */
ORR_API orr_code orr_scalesim_read_layout(const char *path,
                                          orr_systolic_layout *out,
                                          orr_error *err) ORR_MUST_CHECK;

/* ---- layers ---- */

typedef enum orr_scalesim_form {
    ORR_SCALESIM_ANY = 0, /* decided per line by its number of columns */
    ORR_SCALESIM_CONV,
    ORR_SCALESIM_GEMM
} orr_scalesim_form;

typedef struct orr_scalesim_read {
    orr_scalesim_form form;          /* v1 knows convolutions only; v2: 0 is a convolution */
    const orr_rules_systolic *rules; /* whose rules interpret a line; NULL: ours */
} orr_scalesim_read;

typedef struct orr_scalesim_layer {
    orr_str name;
    uint32_t line; /* of the file */
    orr_systolic_layer layer;
} orr_scalesim_layer;

typedef struct orr_scalesim_network orr_scalesim_network;

/* opt may be NULL: ours. */
ORR_API orr_code orr_scalesim_read_network(const char *path,
                                           const orr_scalesim_read *opt,
                                           orr_scalesim_network **out,
                                           orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_scalesim_parse_network(orr_span bytes,
                                            const char *label,
                                            const orr_scalesim_read *opt,
                                            orr_scalesim_network **out,
                                            orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_scalesim_network_free(orr_scalesim_network *n); /* NULL is fine */

ORR_API size_t orr_scalesim_network_count(const orr_scalesim_network *n);
ORR_API const orr_scalesim_layer *orr_scalesim_network_at(const orr_scalesim_network *n, size_t i);
/* The file's name without folders, up to its first dot: the prefix of v1's reports. */
ORR_API const char *orr_scalesim_network_name(const orr_scalesim_network *n);
/* Skipped lines, and the first of them: with v1 those with fewer than nine fields, with ours
 * headings without numbers. */
ORR_API size_t orr_scalesim_network_skipped(const orr_scalesim_network *n, uint32_t *first);

/* ---- runs ---- */

typedef struct orr_scalesim_options {
    const orr_rules_systolic *rules; /* NULL: ours */
    bool wants_traces;   /* for orr_scalesim_write_traces: layer names must be valid file names */
    const char *program; /* name and version for the head of reports: "orrery 0.1.0"; may be NULL */
} orr_scalesim_options;

typedef struct orr_scalesim orr_scalesim;

/* The network must outlive the run.  opt may be NULL.  Equal layers are evaluated once. */
ORR_API orr_code orr_scalesim_run(const orr_scalesim_config *config,
                                  const orr_scalesim_network *network,
                                  const orr_scalesim_options *opt,
                                  orr_scalesim **out,
                                  orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_scalesim_destroy(orr_scalesim *r); /* NULL is fine */

ORR_API const orr_systolic_result *orr_scalesim_result(const orr_scalesim *r, size_t layer);

/* For people, in 80 columns; for programs, one JSON object, or a CSV file.  *out is valid until the
 * next call on r. */
ORR_API orr_code orr_scalesim_text(orr_scalesim *r, orr_str *out, orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_scalesim_json(orr_scalesim *r, orr_str *out, orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_scalesim_csv(orr_scalesim *r, orr_str *out, orr_error *err) ORR_MUST_CHECK;

/* Report files into an existing folder: layers.csv and layers.json, or those of the program whose
 * rules are in use. */
ORR_API orr_code orr_scalesim_write(orr_scalesim *r,
                                    const char *folder,
                                    orr_error *err) ORR_MUST_CHECK;

/* Every word that is read or written, one line per cycle, into files of SCALE-Sim v1; its rules and
 * wants_traces must be set.  Time and file size are proportional to the number of words. */
ORR_API orr_code orr_scalesim_write_traces(const orr_scalesim *r,
                                           const char *folder,
                                           orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
