/* SPDX-License-Identifier: Apache-2.0 */
/* what_if.h - experiments with a run: what a faster machine would change. */
#ifndef ORR_EXPLAIN_WHAT_IF_H
#define ORR_EXPLAIN_WHAT_IF_H

#include <orrery/lab/critical_path.h>
#include <orrery/lab/explain.h>
#include <orrery/lab/sim.h>

enum { ORR__WHAT_IFS = 2 * ORR_NET_DIMS + 4, ORR__WHAT_IF_WORDS = 160 };

typedef struct orr__what_ifs {
    orr_sim *s;                    /* that has run */
    const orr_critical_path *path; /* NULL: no estimates */
    orr_code (*run)(orr_sim *s, orr_error *err);
    orr_error *err;
    orr_report_what_if list[ORR__WHAT_IFS];
    char words[ORR__WHAT_IFS][ORR__WHAT_IF_WORDS];
    size_t count;
} orr__what_ifs;

/* Fills list.  seconds: what the run took, for ORR_WHAT_IF_AUTO.  Nothing for a run that did not finish. */
orr_code orr__what_if(orr__what_ifs *w, orr_what_if how, double seconds) ORR_MUST_CHECK;

#endif
