/* SPDX-License-Identifier: Apache-2.0 */
/* view.h - traces and timelines as JSON, drawings and text.
 *
 *     const orr_view_json_options opt = {.size = sizeof opt, .form = ORR_VIEW_JSONL};
 *     if (orr_view_json(trace, "rank0.jsonl", &opt, &err)) return report(&err);
 *
 * JSON output can be read back with orr_trace_read; docs/format/json.md describes the formats. */
#ifndef ORRERY_VIEW_H
#define ORRERY_VIEW_H

#include <orrery/set.h>
#include <orrery/timeline.h>
#include <orrery/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum orr_view_form {
    ORR_VIEW_JSON = 0, /* one document: {"format": "orrery-trace", ..., "nodes": [...]} */
    ORR_VIEW_JSONL,    /* one compact object per line: a header with the metadata, then the nodes */
    ORR_VIEW_CONCAT    /* byte for byte the output of the old jsonizer: concatenated objects */
} orr_view_form;

typedef struct orr_view_json_options {
    size_t size; /* sizeof(orr_view_json_options) */
    orr_view_form form;
    uint64_t id_shift; /* added to every id and dependency */
    /* CONCAT: write metadata {} even if the trace has none, like the old jsonizer. */
    bool always_metadata;
} orr_view_json_options;

/* "json", "jsonl" or "concat"; false for any other word. */
ORR_API bool orr_view_form_find(orr_str name, orr_view_form *out);

/* A path ending in .gz or .zst is compressed; "-" is standard output.  opt may be NULL.  CONCAT
 * leaves out fields that the schema does not have; the other forms keep them, so nothing is
 * lost. */
ORR_API orr_code orr_view_json(const orr_trace *t,
                               const char *path,
                               const orr_view_json_options *opt,
                               orr_error *err) ORR_MUST_CHECK;

/* A sealed timeline in the Trace Event form that Perfetto (ui.perfetto.dev) and chrome://tracing
 * open: ranks as processes, tracks as threads.  With one rank, distributedInfo names it, as
 * Holistic Trace Analysis expects.  Path as above. */
ORR_API orr_code orr_view_chrome(const orr_timeline *t,
                                 const char *path,
                                 orr_error *err) ORR_MUST_CHECK;

/* ---- bar charts ---- */

/* Groups of bars: one group per input, one bar per way of computing it. */
typedef struct orr_view_bars {
    const char *title;
    const char *const *groups, *const *bars; /* names */
    size_t group_count, bar_count;
    const uint64_t *ps; /* group by group */
} orr_view_bars;

/* A drawing (SVG) in which each bar is relative to the first of its group. */
ORR_API orr_code orr_view_bars_svg(const orr_view_bars *v,
                                   const char *path,
                                   orr_error *err) ORR_MUST_CHECK;

/* Measured and fitted values. */
typedef struct orr_view_fit_point {
    double measured, fitted; /* both above 0 */
    size_t series;           /* its index in the names below */
} orr_view_fit_point;
typedef struct orr_view_fit {
    const orr_view_fit_point *points;
    size_t count;              /* at least 1 */
    const char *const *series; /* names for the legend, without < and & */
    size_t series_count;
    const char *unit; /* of both values */
} orr_view_fit;

/* A drawing (SVG) of fitted against measured values, and of the error of each. */
ORR_API orr_code orr_view_fit_svg(const orr_view_fit *p,
                                  const char *path,
                                  orr_error *err) ORR_MUST_CHECK;

/* Times of steps in order, the first `skipped` of them warm-up, and the fit of the others. */
typedef struct orr_view_steps {
    const double *times; /* above 0 */
    size_t count, skipped;
    double median, low, high, predicted;
    const char *unit; /* of all of them */
} orr_view_steps;

/* A drawing (SVG) of the times, their interval and the prediction. */
ORR_API orr_code orr_view_steps_svg(const orr_view_steps *p,
                                    const char *path,
                                    orr_error *err) ORR_MUST_CHECK;

/* ---- a trace as a graph ---- */

typedef enum orr_graph_form {
    ORR_GRAPH_DOT = 0, /* text for Graphviz */
    ORR_GRAPH_GRAPHML, /* for networkx, yEd, Gephi */
    ORR_GRAPH_SVG,     /* this and the next two: drawings, laid out by Graphviz */
    ORR_GRAPH_PDF,
    ORR_GRAPH_PNG
} orr_graph_form;

/* What nodes are framed by. */
typedef enum orr_graph_cluster {
    ORR_CLUSTER_NONE = 0,
    ORR_CLUSTER_STREAM, /* nodes of one stream */
    ORR_CLUSTER_LAYER,  /* nodes whose names contain the same layer: "layers.3.mlp", "layer3_fwd" */
    ORR_CLUSTER_GROUP,  /* collectives of one process group */
    ORR_CLUSTER_RANK    /* nodes of one rank: orr_view_graph_ranks */
} orr_graph_cluster;

typedef struct orr_view_graph_options {
    size_t size; /* sizeof(orr_view_graph_options) */
    orr_graph_form form;
    /* NULL: ours.  With those of chakra_visualizer (orrery/lab/compat.h) only form, with_layout and
     * id_shift count. */
    const struct orr_rules_view *rules;
    bool with_layout;  /* DOT: with the positions computed by Graphviz */
    uint64_t id_shift; /* added to every id */
    bool has_around;   /* only the nodes near this one: at most `depth` dependencies away */
    uint64_t around;   /* id, shifted */
    uint32_t depth;
    bool critical_path; /* only the longest chain */
    bool collapse;      /* chains of similar nodes become one box */
    orr_graph_cluster cluster;
    uint32_t limit;          /* boxes; the rest is merged.  0: 300 */
    const uint32_t *rank_of; /* with ORR_CLUSTER_RANK: of each node */
} orr_view_graph_options;

typedef struct orr_view_graph_result {
    uint32_t nodes; /* nodes of the trace in the drawing */
    uint32_t boxes; /* boxes in the drawing */
    bool is_plain;  /* too large for a layout within seconds: DOT without positions, simple rows */
} orr_view_graph_result;

/* "dot", "graphml", "svg", "pdf" or "png"; false for any other word. */
ORR_API bool orr_graph_form_find(orr_str name, orr_graph_form *out);

/* Path as above; opt and result may be NULL.  ORR_EUSAGE: there is no node `around`; ORR_EINPUT: a
 * critical path was requested and the dependencies have a cycle. */
ORR_API orr_code orr_view_graph(const orr_trace *t,
                                const char *path,
                                const orr_view_graph_options *opt,
                                orr_view_graph_result *result,
                                orr_error *err) ORR_MUST_CHECK;

/* All ranks of a set in one drawing, each in its own frame; a message is an arrow from its send to
 * its receive. DOT, SVG, PDF, PNG; opt as above, without cluster, rank_of and id_shift. */
ORR_API orr_code orr_view_graph_ranks(const orr_set *set,
                                      const char *path,
                                      const orr_view_graph_options *opt,
                                      orr_view_graph_result *result,
                                      orr_error *err) ORR_MUST_CHECK;

/* ---- a timeline as text ---- */

typedef struct orr_view_gantt_options {
    size_t size;                /* sizeof(orr_view_gantt_options) */
    uint32_t width;             /* columns; 0: 80 */
    uint32_t rows;              /* most rows drawn; 0: 200 */
    bool is_ascii;              /* ASCII only */
    orr_timeline_window window; /* the part to draw */
} orr_view_gantt_options;

/* A sealed timeline as text: one row per track, with an axis and a legend.  opt may be NULL.  Path
 * as above. */
ORR_API orr_code orr_view_gantt(const orr_timeline *t,
                                const char *path,
                                const orr_view_gantt_options *opt,
                                orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
