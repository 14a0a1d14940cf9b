/* SPDX-License-Identifier: Apache-2.0 */
/* flexflow.h - a task graph of FlexFlow: the DOT file its simulator writes, converted to traces.
 *
 *     orr_flexflow *g;
 *     if (orr_flexflow_read("tasks.dot", &g, &err)) return report(&err);
 *     orr_flexflow_expand opt = {.mhz = 1000};     // run times in cycles of 1 GHz
 *     orr_set *set;
 *     if (orr_flexflow_set(g, &opt, &set, &err)) return report(&err);
 *     orr_flexflow_free(g);
 *
 * A task computes on one device or moves data from one to another; a device is a rank.
 * docs/format/flexflow.md describes the file and the conversion. */
#ifndef ORRERY_LAB_FLEXFLOW_H
#define ORRERY_LAB_FLEXFLOW_H

#include <orrery/set.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct orr_flexflow orr_flexflow;

/* From a file ("-": standard input) or from memory, which may be freed afterwards; label is used in
 * messages. */
ORR_API orr_code orr_flexflow_read(const char *path,
                                   orr_flexflow **out,
                                   orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_flexflow_parse(orr_span bytes,
                                    const char *label,
                                    orr_flexflow **out,
                                    orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_flexflow_free(orr_flexflow *g); /* NULL is fine */

typedef struct orr_rules_flexflow orr_rules_flexflow;

typedef struct orr_flexflow_expand {
    uint32_t mhz; /* run times in cycles of this clock; 0: in microseconds */
    /* NULL: ours; those of chakra_converter are in orrery/lab/compat.h. */
    const orr_rules_flexflow *rules;
} orr_flexflow_expand;

/* One rank per device; devices are numbered from 0 without gaps.  By chakra_converter's rules
 * only devices with a compute task become ranks, and ranks need not be numbered like devices:
 * see orr_flexflow_device. */
ORR_API orr_code orr_flexflow_set(const orr_flexflow *g,
                                  const orr_flexflow_expand *opt,
                                  orr_set **out,
                                  orr_error *err) ORR_MUST_CHECK;

/* By chakra_converter's rules: the number of the device that became rank r. */
ORR_API uint32_t orr_flexflow_device(const orr_flexflow *g, uint32_t rank);
/* Number of dependencies between devices without a task that moves data.  By our rules each becomes
 * a message of one byte. */
ORR_API size_t orr_flexflow_crossings(const orr_flexflow *g);

#ifdef __cplusplus
}
#endif
#endif
