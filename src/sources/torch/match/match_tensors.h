/* SPDX-License-Identifier: Apache-2.0 */
/* match_tensors.h - the tensors of one recorded call while its JSON is read: what readers of host and profiler traces share.
 * Counts from the file are bounded before memory is asked for. */
#ifndef ORR_FX_MATCH_TENSORS_H
#define ORR_FX_MATCH_TENSORS_H

#include "base/formats/json.h"
#include "models/compute/operators/operator_cost.h"

typedef struct match_tensors {
    operator_tensor
        *list; /* shapes and strides are set when all are there: dims may move until then */
    size_t count, room;
    uint64_t *dims;
    size_t dim_count, dim_room;
    orr_error *err;
} match_tensors;

void match_tensors_fini(match_tensors *t);

/* An error with the place of v; lines are counted only here. */
orr_code match_fail(orr_error *err, orr_json_value v, const char *fmt, ...) ORR_PRINTF(3, 4);

/* The numbers of a list behind those that are there. */
orr_code match_sizes(match_tensors *t, orr_json_value list, uint32_t *count) ORR_MUST_CHECK;
orr_code match_tensor(match_tensors *t,
                      const operator_tensor *one,
                      orr_json_value place) ORR_MUST_CHECK;

#endif
