/* SPDX-License-Identifier: Apache-2.0 */
/* view.h - traces and timelines as something to look at.
 *
 *     const orr_view_json_options opt = {.form = ORR_VIEW_JSONL};
 *     if (orr_view_json(trace, "rank0.jsonl", &opt, &err)) return report(&err);
 *
 * What comes out can be read back with orr_trace_read; docs/format/json.md has the forms. */
#ifndef ORRERY_VIEW_H
#define ORRERY_VIEW_H

#include <orrery/timeline.h>
#include <orrery/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum orr_view_form {
    ORR_VIEW_JSON = 0, /* one document: {"format": "orrery-trace", ..., "nodes": [...]} */
    ORR_VIEW_JSONL,    /* one compact object a line: a heading with the metadata, then the nodes */
    ORR_VIEW_CONCAT /* byte for byte what the old jsonizer writes: objects one behind the other */
} orr_view_form;

typedef struct orr_view_json_options {
    orr_view_form form;
    uint64_t id_shift; /* added to every id and dependency */
    bool
        always_metadata; /* CONCAT: metadata {} also where the trace has none, as the old jsonizer */
} orr_view_json_options;

/* "json", "jsonl" or "concat"; false for any other word. */
ORR_API bool orr_view_form_find(orr_str name, orr_view_form *out);

/* A path ending in .gz or .zst is compressed; "-" is standard output.  opt may be NULL.  CONCAT leaves out
 * fields that the schema does not have; the other forms keep them, so nothing is lost. */
ORR_API orr_code orr_view_json(const orr_trace *t,
                               const char *path,
                               const orr_view_json_options *opt,
                               orr_error *err) ORR_MUST_CHECK;

/* A sealed timeline in the Trace Event form that Perfetto (ui.perfetto.dev) and chrome://tracing open: ranks as
 * processes, tracks as threads.  Where it has one rank, distributedInfo says which, as Holistic Trace Analysis
 * wants it.  Path as above. */
ORR_API orr_code orr_view_chrome(const orr_timeline *t,
                                 const char *path,
                                 orr_error *err) ORR_MUST_CHECK;

typedef struct orr_view_gantt_options {
    uint32_t width;             /* columns; 0: 80 */
    uint32_t rows;              /* the most that are drawn; 0: 200 */
    bool is_ascii;              /* no other characters */
    orr_timeline_window window; /* what is drawn */
} orr_view_gantt_options;

/* A sealed timeline as text: a row a track, with an axis and a legend.  opt may be NULL.  Path as above. */
ORR_API orr_code orr_view_gantt(const orr_timeline *t,
                                const char *path,
                                const orr_view_gantt_options *opt,
                                orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
