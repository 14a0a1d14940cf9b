/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_points.h - how commands run inside a sweep. */
#ifndef ORR_CLI_SWEEP_POINTS_H
#define ORR_CLI_SWEEP_POINTS_H

#include <orrery/lab/sweep.h>

/* The commands of this program, for orr_sweep_open. */
const orr_sweep_hooks *cli_sweep_hooks(void);

#endif
