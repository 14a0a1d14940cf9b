/* SPDX-License-Identifier: Apache-2.0 */
/* what_if.h - experiments with a run: what a faster machine would change. */
#ifndef ORR_EXPLAIN_WHAT_IF_H
#define ORR_EXPLAIN_WHAT_IF_H

#include <orrery/lab/critical_path.h>
#include <orrery/lab/explain.h>
#include <orrery/run.h>

enum { ORR__WHAT_IFS = 2 * ORR_NET_DIMS + 16, ORR__WHAT_IF_WORDS = 160 };

typedef struct orr__what_ifs {
    orr_run *r;                    /* that has run */
    const orr_critical_path *path; /* NULL: no estimates */
    orr_code (*run)(orr_run *r, orr_error *err);
    orr_code (*variant)(const orr_set *traces,
                        size_t *number,
                        char *words,
                        size_t room,
                        orr_set **out,
                        orr_error *err);
    orr_error *err;
    orr_report_what_if list[ORR__WHAT_IFS];
    char words[ORR__WHAT_IFS][ORR__WHAT_IF_WORDS];
    size_t count;
} orr__what_ifs;

/* Fills list.  Nothing for a run that did not finish. */
orr_code orr__what_if(orr__what_ifs *w, orr_what_if how) ORR_MUST_CHECK;

#endif
