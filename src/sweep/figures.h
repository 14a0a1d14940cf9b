/* SPDX-License-Identifier: Apache-2.0 */
/* figures.h - what the commands of a point said as JSON, made flat: one figure under one dotted
 * name.
 *
 * A list of objects gives the largest value of each of its numbers, each on its own, because the
 * slowest rank and the fullest device decide; `rows` of the specification picks other rows. */
#ifndef ORR_SWEEP_FIGURES_H
#define ORR_SWEEP_FIGURES_H

#include "spec.h"

/* json: what each command printed; an empty one has no figures.  All but the last have their name
 * in front. */
orr_code swp_figures_flatten(const orr_sweep *s,
                             const orr_buf json[SWP_MOST_STEPS],
                             orr_buf *to,
                             orr_error *err) ORR_MUST_CHECK;

/* Those entries as bytes: they belong to the identity of a point. */
void swp_rows_identify(const orr_sweep *s, orr_buf *to);

#endif
