/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_parts.h - what the files of the NCCL model share. */
#ifndef ORR_MODELS_NCCL_PARTS_H
#define ORR_MODELS_NCCL_PARTS_H

#include "models/collective/nccl/nccl_model.h"

#include <orrery/error.h>

#include <stddef.h>

/* A protocol on one generation.  A step moves one chunk from a rank to its neighbour. */
typedef struct nccl_line {
    double base_ns;    /* launch, first and last copy */
    double grow_ns;    /* added as more threads and channels join */
    double up_ns;      /* a step inside a host, at up_latency_ns of the generation */
    double up_grow_ns; /* added as more threads join */
    double out_ns;     /* a step between hosts, ring */
    double tree_ns;    /* a step between hosts, tree */
    double rate;       /* bus bandwidth as a fraction of the scale-up port */
    double ends;       /* chunks a ring handles beyond its steps: first read, last write */
    double drain_ns;   /* filling and draining the buffers of large chunks */
} nccl_line;

/* nccl_constants.c: one row per generation, with the source of every figure. */
typedef struct nccl_constants {
    const char *name;
    double up_GBps, up_latency_ns; /* of the measured machine */
    double out_GBps, out_latency_ns;
    nccl_line line[NCCL_PROTOCOLS];
    uint32_t channels;      /* of a ring or tree at full size */
    double out_rate;        /* of the NICs, Simple */
    double direct_ns;       /* grouped send and receive: launch */
    double direct_grow_ns;  /* added for large parts (Simple) */
    double peer_ns;         /* per peer */
    double direct_rate;     /* as a fraction of the scale-up port, own part included */
    double direct_drain_ns; /* filling and draining */
    double nvls_ns;         /* latency of an NVLS operation */
    double nvls_rate;       /* port bytes per second as a fraction of the port */
    double nvls_loop_ns;    /* per loop over all channels and heads */
    /* 90 % interval of measured/model, by size: small, medium, large. */
    struct {
        double low, high;
    } spread[3];
    uint32_t rows;       /* measured rows behind it; 0: none */
    uint32_t ranks_most; /* of the groups measured */
    uint64_t bytes_least, bytes_most;
} nccl_constants;

extern const nccl_constants nccl_table[NCCL_GENERATIONS];

/* Small below 64 KiB, large above 16 MiB. */
static inline int nccl_size_class(double bytes)
{
    return bytes < 65536 ? 0 : bytes <= 16777216 ? 1 : 2;
}

/* A choice of algorithm and protocol. */
typedef struct nccl_way {
    uint8_t algorithm, protocol;
} nccl_way;

/* ---- tables of users (nccl_custom.c, docs/format/collectives.md) ---- */

/* Use this choice for this collective in these groups, below so many bytes. */
typedef struct nccl_rule {
    orr_collective kind;
    uint64_t below; /* UINT64_MAX: all */
    uint32_t least_ranks, most_ranks, least_nodes, most_nodes;
    nccl_way way;
} nccl_rule;

enum { NCCL_RULES_MOST = 64, NCCL_NAME = 48 };

typedef struct nccl_custom {
    char name[NCCL_NAME];
    nccl_generation generation; /* whose tuning model chooses if no rule matches */
    nccl_constants k;
    uint32_t rules;
    nccl_rule rule[NCCL_RULES_MOST]; /* in file order; the first match wins */
} nccl_custom;

orr_code nccl_custom_parse(orr_span bytes, const char *label, nccl_custom *out, orr_error *err)
    ORR_MUST_CHECK;
/* The equivalent file, without rules; returns its length, as snprintf counts.  4,000 bytes are
 * enough. */
size_t nccl_custom_text(const nccl_custom *c, char *out, size_t size);
/* Names in files; the last is NULL. */
extern const char *const nccl_algorithm_words[NCCL_ALGORITHMS + 1];
extern const char *const nccl_protocol_words[NCCL_PROTOCOLS + 1];

/* ---- choice ---- */

/* A line of NCCL's tuning model: microseconds + bytes / (1000 * GBps); GBps 0: impossible. */
typedef struct nccl_tuned {
    nccl_way way;
    double us, GBps;
} nccl_tuned;

enum { NCCL_WAYS_MOST = NCCL_ALGORITHMS * NCCL_PROTOCOLS };

/* ---- time ---- */

typedef struct nccl_time {
    double ns, latency_ns, up_bytes, out_bytes;
    uint32_t channels;
} nccl_time;

/* ---- fit ----
 *
 * Constants of the NCCL model from measured times.
 *
 *     nccl_constants k = nccl_table[NCCL_HOPPER];
 *     nccl_fit(rows, count, &k);
 *
 * Constants that the rows do not determine stay unchanged. */

typedef struct nccl_row {
    nccl_shape shape;
    orr_collective kind;
    bool is_message; /* not a collective: one rank to another */
    uint64_t bytes;
    double ns; /* measured, above 0 */
    bool left_out;
} nccl_row;

void nccl_fit(const nccl_row *rows, size_t count, nccl_constants *k);

/* The constants a fit may change: their names in tables of results, "us" or "" for a plain number,
 * and their value (ns if the unit is us). */
size_t nccl_knobs(void);
const char *nccl_knob_name(size_t i);
const char *nccl_knob_unit(size_t i);
double nccl_knob(const nccl_constants *k, size_t i);

/* Measured over modelled; 0: the model has no result. */
double nccl_ratio(const nccl_row *row, const nccl_constants *k);

#endif
