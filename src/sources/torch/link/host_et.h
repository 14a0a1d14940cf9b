/* SPDX-License-Identifier: Apache-2.0 */
/* host_et.h - a host trace: the execution trace that PyTorch's observer wrote on one rank (chakra.md 3.2).
 *
 * A node is kept as what linking asks for and the place of its text; what else it says is read there again when
 * it is needed.  The bytes must stay. */
#ifndef ORR_PYTORCH_HOST_ET_H
#define ORR_PYTORCH_HOST_ET_H

#include "sources/torch/read/link_counts.h"

#include "base/formats/json.h"
#include "base/memory/intern.h"

typedef struct orr__host_node {
    int64_t id, parent; /* INT64_MIN: no parent */
    int64_t rf;         /* INT64_MIN: none */
    uint64_t at;        /* its text in the file */
    uint32_t length;
    uint32_t name; /* which of the names */
    uint32_t tid;
    bool is_reached; /* hangs on the process node, directly or not */
} orr__host_node;

typedef struct orr__host {
    orr_str text;          /* the whole file */
    orr__host_node *nodes; /* by ascending id, each once */
    size_t count, room;
    orr_intern *names;
    orr_str schema;       /* borrowed from names */
    uint64_t document_at; /* its opening bracket */
    uint64_t nodes_at;    /* the list of nodes in the file, from [ to behind ] */
    uint64_t nodes_end;
    bool is_flat; /* the first form, 1.0.1: `parent` and flat fields */
} orr__host;

orr_code orr__host_read(orr_json *j,
                        orr_span bytes,
                        orr__link_tally *tally,
                        orr__host *out,
                        orr_error *err) ORR_MUST_CHECK;
void orr__host_fini(orr__host *h);

bool orr__is_known_schema(orr_str s);
/* The node with this id: its index, or UINT32_MAX. */
uint32_t orr__host_find(const orr__host *h, int64_t id);

#endif
