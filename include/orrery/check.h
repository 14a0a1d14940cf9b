/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - what is wrong with a set of traces, and which of it can be repaired.
 *
 *     orr_set_options lenient = {.size = sizeof lenient, .keep_going = true};
 *     if (orr_set_open("traces/", &lenient, &set, &err)) return report(&err);
 *     if (orr_check_set(set, NULL, &r, &err)) return report(&err);
 *     for (size_t i = 0; i < r->finding_count; i++)
 *         puts(r->findings[i].text);
 *     if (r->count[ORR_CHECK_CYCLE]) ...
 *     orr_check_report_destroy(r);
 *
 * A finding is data; orr_check_text and orr_check_json render a report.  Every finding is counted,
 * the first few of each kind are kept.  Equal ranks are examined once, and what they share is one
 * finding; so are ranks that are equal up to the values of holes, if those values are consistent
 * with each other. Cost: near linear in the nodes and dependencies of the distinct ranks,
 * independent of the number of ranks, plus O(1) per value of a hole. */
#ifndef ORRERY_CHECK_H
#define ORRERY_CHECK_H

#include <orrery/set.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An error stops or breaks a run of these traces; a warning makes some programs fail or is probably
 * a mistake; a note says what was not examined. */
typedef enum orr_severity { ORR_NOTE = 0, ORR_WARNING, ORR_ERROR } orr_severity;

typedef enum orr_check_kind {
    ORR_CHECK_UNREADABLE = 0, /* the file cannot be opened or read */
    ORR_CHECK_DAMAGED,        /* its bytes are not a trace */
    ORR_CHECK_NO_NODES,
    ORR_CHECK_DUPLICATE_ID,
    ORR_CHECK_MISSING_PARENT,      /* a data dependency on a node that does not exist */
    ORR_CHECK_MISSING_CTRL_PARENT, /* a control dependency; Chakra's own converter leaves such */
    ORR_CHECK_SELF_DEPENDENCY,
    ORR_CHECK_DUPLICATE_DEPENDENCY,
    ORR_CHECK_CYCLE,
    ORR_CHECK_INVALID_NODE,
    ORR_CHECK_UNKNOWN_TYPE,
    ORR_CHECK_MISSING_ATTRIBUTE, /* a collective without comm_type or comm_size */
    /* an attribute that the node needs has the wrong type, such as text */
    ORR_CHECK_ATTRIBUTE_KIND,
    ORR_CHECK_ODD_ATTRIBUTE,       /* the same for one it does not need */
    ORR_CHECK_DUPLICATE_ATTRIBUTE, /* a known name twice in one node */
    ORR_CHECK_BAD_VALUE,           /* a negative size, a comm_type without a meaning */
    ORR_CHECK_MISSING_SIZE,        /* a message or a memory node without a size */
    ORR_CHECK_MISSING_PEER,        /* a send without comm_dst, a receive without comm_src */
    ORR_CHECK_PEER_RANGE,          /* a peer that is not a rank of the set */
    ORR_CHECK_OWN_RANK,            /* a send from, or a receive at, another rank than its own */
    ORR_CHECK_COLLECTIVE_COUNT,    /* across ranks from here on */
    ORR_CHECK_COLLECTIVE_TYPE,
    ORR_CHECK_COLLECTIVE_SIZE,
    ORR_CHECK_UNEVEN_SIZE, /* sizes differ in a collective that allows it */
    ORR_CHECK_COLLECTIVE_ORDER,
    ORR_CHECK_UNMATCHED_SEND,
    ORR_CHECK_UNMATCHED_RECV,
    ORR_CHECK_MESSAGE_TAG,
    ORR_CHECK_MESSAGE_SIZE,
    ORR_CHECK_NOT_COMPARED,
    ORR_CHECK_KIND_COUNT
} orr_check_kind;

/* "missing-parent": stable, for scripts. */
ORR_API const char *orr_check_kind_name(orr_check_kind kind);
ORR_API orr_severity orr_check_kind_severity(orr_check_kind kind);

typedef struct orr_finding {
    orr_check_kind kind;
    orr_where where;     /* file of the first rank that has it; byte of the node's record */
    uint32_t rank;       /* that rank; ORR_NO_NODE: no single rank */
    uint32_t rank_count; /* ranks with this finding that are equal up to the values of holes */
    bool has_node;
    uint64_t node; /* its id in that rank's file */
    const char *name;
    const char *text; /* one sentence, without the place and the node */
} orr_finding;

typedef struct orr_check_options {
    size_t size;      /* sizeof(orr_check_options) */
    uint32_t limit;   /* findings kept per kind; 0: 10 */
    unsigned threads; /* 0: one per core */
} orr_check_options;

typedef struct orr_check_report {
    const orr_finding *findings; /* by kind, then in the order of ranks and nodes */
    size_t finding_count;
    uint64_t count[ORR_CHECK_KIND_COUNT]; /* all findings, kept or not */
    uint64_t errors, warnings, notes;
    uint32_t rank_count, class_count;
    uint64_t node_count; /* of all ranks */
    /* ORR_OK; ORR_EINPUT: a rank is damaged; ORR_EIO: a rank could not be read. */
    orr_code read_status;
} orr_check_report;

/* Ranks that could not be read become findings if the set was opened with keep_going. */
ORR_API orr_code orr_check_set(const orr_set *s,
                               const orr_check_options *opt,
                               orr_check_report **out,
                               orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_check_report_destroy(orr_check_report *r); /* NULL is fine */

/* ---- repairing ---- */

/* Read `path` and write a repaired copy to `to`, in the same format: a file for a file,
 * a prefix for a prefix or a directory, a .orr for a .orr.  *changes lists the repairs as findings.
 * What cannot be repaired stays as it is; nothing is written if a whole rank would have to be
 * dropped.  read may be NULL. */
ORR_API orr_code orr_check_fix(const char *path,
                               const char *to,
                               const orr_set_options *read,
                               const orr_check_options *opt,
                               orr_check_report **changes,
                               orr_error *err) ORR_MUST_CHECK;

/* ---- as text and JSON ---- */

typedef struct orr_check_style {
    size_t size;                     /* sizeof(orr_check_style) */
    const char *program;             /* name and version for JSON: "orrery 0.1.0"; NULL: omitted */
    const char *input;               /* what was checked, for the summary */
    const orr_check_report *changes; /* of orr_check_fix; NULL: nothing was repaired */
    const char *output;              /* where the repaired set is; with changes */
    bool is_colored;
    bool is_brief;  /* text: errors and warnings only, no summary */
    bool is_strict; /* warnings are reported as errors */
} orr_check_style;

/* One line per finding, in the style of compiler messages, and a summary.  *out lives as long as
 * the report. */
ORR_API orr_code orr_check_text(const orr_check_report *r,
                                const orr_check_style *style,
                                orr_str *out,
                                orr_error *err) ORR_MUST_CHECK;
/* One JSON object (docs/format/check.md). */
ORR_API orr_code orr_check_json(const orr_check_report *r,
                                const orr_check_style *style,
                                orr_str *out,
                                orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
