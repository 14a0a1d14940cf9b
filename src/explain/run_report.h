/* SPDX-License-Identifier: Apache-2.0 */
/* run_report.h - what the reports of a run (text, JSON, CSV, timeline) have in common. */
#ifndef ORR_SIMULATE_RUN_REPORT_H
#define ORR_SIMULATE_RUN_REPORT_H

#include "run/watch.h"

#include "base/formats/json.h"
#include "base/io/output.h"
#include "base/memory/content_hash.h"

/* ---- figures of a rank (report_figures.c) ---- */

typedef enum orr__figure {
    ORR__FIGURE_FINISHED,
    ORR__FIGURE_COMPUTE,
    ORR__FIGURE_COMMUNICATION,
    ORR__FIGURE_EXPOSED,
    ORR__FIGURE_MEMORY,
    ORR__FIGURE_HOST,
    ORR__FIGURE_IDLE,
    ORR__FIGURES
} orr__figure;

extern const char *const orr__figure_keys[ORR__FIGURES]; /* "compute_ns" */

/* ns; of a rank that has not finished: up to now, and FINISHED is ORR_NEVER. */
uint64_t orr__figure_of(const orr_sim *s, uint32_t rank, orr__figure f);

/* Over the ranks that have a value. */
typedef struct orr__spread {
    uint32_t ranks;
    uint64_t least, median, most;
    double mean;
} orr__spread;
bool orr__spread_of(const orr_sim *s, orr__figure f, orr__spread *out); /* false: no memory */

/* Why the run ended: "finished", "interrupted", "stalled" or "failed". */
const char *orr__run_status(const orr_sim *s);

/* Rows of collectives, by falling time or bytes; *count of them.  NULL: out of memory. */
uint32_t *orr__collectives_by(const orr_sim *s, bool by_bytes, uint32_t *count);
/* All sends or all receives; NULL: there are none. */
const orr__tally *orr__messages_of(const orr_sim *s, uint8_t node_type);

/* ---- where it comes from (provenance.c) ---- */

enum { ORR__INPUTS = 6 };

void orr__put_provenance(const orr_sim *s, orr_json_writer *w); /* "provenance": {...} */

enum { ORR__PROVENANCE_LINES = ORR__INPUTS + 4 };
typedef struct orr__provenance_line {
    const char *key, *value;
} orr__provenance_line;
bool orr__provenance_lines(const orr_sim *s,
                           orr_arena *a,
                           orr__provenance_line *out,
                           size_t *count); /* false: out of memory */
orr_code orr__add_provenance(const orr_sim *s, orr_timeline *t, orr_error *err); /* as notes */

/* ---- the critical path for reports (report_path.c) ---- */

void orr__put_path(const orr_sim *s, orr_json_writer *w);
orr_code orr__print_path(const orr_sim *s, orr_buf *b, orr_error *err);

/* ---- links (report_links.c); false: out of memory ---- */

bool orr__print_links(const orr_sim *s, orr_buf *b);
bool orr__put_links(const orr_sim *s, orr_json_writer *w); /* "links": {...}; null: it knows none */

/* ---- small things ---- */

void orr__put_u64(orr_json_writer *w, const char *key, uint64_t v);
void orr__put_text(orr_json_writer *w, const char *key, const char *text); /* NULL: null */
orr_code orr__save_report(orr_buf *b, const char *path, orr_error *err);
char *orr__ns_text(uint64_t ns, char *out); /* "12.3 ms"; room as in units.h */

#endif
