/* SPDX-License-Identifier: Apache-2.0 */
/* serve.h - the traces of all ranks that serve a language model: prompts come in, tokens go out.
 *
 *     orr_serve_options opt = {.ranks = {.tp = 8}, .batch = 32, .prompt = 2048, .output = 128};
 *     orr_serve_report report;
 *     orr_set *set;
 *     if (orr_serve(&model, &opt, &set, &report, &err)) return report_error(&err);
 *     orr_set_save(set, "serve.orr", NULL, &err);
 *
 * A server works in *iterations*: tokens of several sequences go through the model together, whole
 * prompts or parts of them (prefill) and the newest token of sequences that are being answered
 * (decode).  They are chosen before each iteration (continuous batching, Yu et al., OSDI 2022):
 * first decoding sequences, then prompts in progress, then waiting requests in order of arrival,
 * within `max_batch`, `max_tokens` and the memory for KV caches.  A request is admitted only if its
 * whole cache fits, so none is ever preempted.
 *
 * Arrivals and completions depend on the duration of iterations.  That is estimated: each operation
 * takes the time of its kernels on `chip`, or without a chip the longer of its work at `peak` and
 * its bytes at `memory_rate`; each collective takes its time on `machine`, or without one the time
 * to send a rank's ring traffic at `link_rate`; nothing overlaps, but the ring of context-parallel
 * ranks on a machine.  The estimate decides the batches and appears in the report;
 * traces contain no times except arrivals: the simulation determines the rest.
 *
 * With `decode` ranks of their own (disaggregation), `ranks` prefill, then a sequence's KV cache is
 * transferred, and `decode` generates the remaining tokens.
 *
 * Experimental: may change in the next release. */
#ifndef ORRERY_LAB_SERVE_H
#define ORRERY_LAB_SERVE_H

#include <orrery/lab/llm.h>
#include <orrery/lab/machine.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum orr_serve_phase {
    ORR_SERVE_ALL = 0,
    ORR_SERVE_PREFILL, /* prompts only, and the first token of each */
    ORR_SERVE_DECODE,  /* KV caches of the prompts exist; `output` tokens are generated */
    ORR_SERVE_PHASES
} orr_serve_phase;

/* A pool of ranks; 0: 1.  A replica has tp * cp * pp of them and serves its own requests; there are
 * dp replicas.  Experts are spread over ep ranks: a divisor of tp, or a multiple of it, in which
 * case replicas share experts and run in lockstep. cp is for prefill only. */
typedef struct orr_serve_ranks {
    uint32_t tp, cp, pp, dp, ep;
} orr_serve_ranks;

typedef struct orr_serve_request {
    uint64_t arrival_us;
    uint64_t prompt; /* tokens, at least 1 */
    uint64_t output;
} orr_serve_request;

/* All zero: one rank, bf16, one request with a prompt of 1,024 tokens and 128 output tokens. */
typedef struct orr_serve_options {
    orr_serve_ranks ranks;
    orr_serve_ranks decode; /* all zero: `ranks` do both */
    orr_serve_phase phase;
    orr_dtype dtype;    /* of weights; fp8: in products, everything else is bf16 */
    orr_dtype kv_dtype; /* of the KV cache */

    const orr_serve_request *requests; /* NULL: `batch` equal requests at time 0 */
    size_t request_count;
    uint64_t batch;  /* over all replicas; 0: one each */
    uint64_t prompt; /* tokens; 0: 1,024 */
    uint64_t output; /* 0: 128 */

    uint64_t max_batch; /* sequences per iteration and replica; 0: 256 */
    /* Tokens per iteration; 0: unlimited.  A longer prompt that is not chunked runs alone. */
    uint64_t max_tokens;
    uint64_t chunk;    /* prompt tokens per iteration (chunked prefill); 0: whole prompts */
    uint64_t kv_block; /* tokens per block of the KV cache; 0: 16 */

    /* All-gather and reduce-scatter instead of all-reduces, where tp divides the tokens. */
    bool sequence_parallel;
    orr_context_form context_form;

    uint64_t peak;       /* operations a second; 0: 989e12, with weights in fp8 1979e12 */
    orr_Bps memory_rate; /* 0: 3.35 TB/s */
    orr_Bps link_rate;   /* 0: 450 GB/s */
    /* Ranks of a node, consecutive ones, and what a rank can send to other nodes; 0: all ranks are
     * in one node. */
    uint32_t node_ranks;
    orr_Bps node_rate;
    bool is_mesh; /* link_rate is of links to all others of a node, one each */
    /* Collectives and messages take the time that they take on it in a run, instead of these rates;
     * size 0: none. */
    orr_machine machine;
    orr_Bps transfer_rate; /* of caches that move between ranks; 0: 50 GB/s */
    uint64_t device_bytes; /* memory of a device; 0: 80 GB */
    uint64_t kv_bytes;     /* of it for KV caches; 0: nine tenths minus weights */
    const struct orr_chip
        *chip; /* times iterations in place of the rates (lab/chip.h); NULL: none */
    const orr_software *software; /* what launches the kernels; NULL: "vllm" */
    /* the report is the goal: skip the traces if there are many iterations */
    bool only_figures;
    bool no_traces; /* skip the traces in any case: fastest */
} orr_serve_options;

/* Fill in defaults and refuse the impossible.  orr_serve does this itself. */
ORR_API orr_code orr_serve_complete(const orr_model *m,
                                    orr_serve_options *opt,
                                    orr_error *err) ORR_MUST_CHECK;
ORR_API uint32_t orr_serve_rank_count(const orr_serve_options *opt);
/* Network and memory of a machine that has these ranks (orr_machine_for); not its compute.  What
 * the machine does not have stays as it is. */
ORR_API void orr_serve_on(orr_serve_options *opt, const orr_machine *m);

/* ---- results ---- */

/* Of one pool.  Bytes are those of the fullest rank. */
typedef struct orr_serve_pool {
    uint32_t ranks;
    uint64_t iterations; /* of all replicas; lockstep iterations count once */
    uint64_t weight_bytes;
    uint64_t kv_room; /* for KV caches */
    uint64_t kv_peak; /* peak allocation */
    /* The largest operation of the largest iteration: inputs and outputs. */
    uint64_t working_bytes;
    bool fits; /* weights, caches and temporaries, into device_bytes */
} orr_serve_pool;

typedef struct orr_serve_report {
    orr_serve_pool pools[2]; /* the second: decode ranks; all zero if there are none */
    uint64_t requests;
    uint64_t prompt_tokens, output_tokens; /* that went in, and that came out */
    /* KV caches transferred between prefill and decode ranks */
    uint64_t moved_messages, moved_bytes;
    uint64_t nodes; /* of all classes */
    /* Estimated: */
    orr_ps time;             /* until the last token */
    orr_ps first_token_mean; /* from a request's arrival */
    orr_ps first_token_most;
    orr_ps next_token_mean; /* between two tokens of a request; 0: no request has two */
    /* 90 %, as a run has them: of `time`, and shares of the times of tokens below and above.  own:
     * without the error common to all plans on the machine.  All 0: not known, without a chip. */
    orr_ps time_low, time_high;
    double low_share, high_share, own_low_share, own_high_share;
} orr_serve_report;

/* report may be NULL.  *out is NULL if only_figures skipped the traces. */
ORR_API orr_code orr_serve(const orr_model *m,
                           const orr_serve_options *opt,
                           orr_set **out,
                           orr_serve_report *report,
                           orr_error *err) ORR_MUST_CHECK;

/* ---- request lists ---- */

/* A file ("-": standard input) of a kind that docs/format/requests.md lists: a table whose first
 * line names its columns (arrival_us, prompt, output, or those of Azure, Splitwise, Vidur,
 * BurstGPT), JSON lines (Mooncake, LLMServingSim), or what vLLM's benchmark writes.  The result is
 * sorted by arrival; ties keep the order of the file. */
ORR_API orr_code orr_requests_read(const char *path,
                                   orr_serve_request **out,
                                   size_t *count,
                                   orr_error *err) ORR_MUST_CHECK;
/* The same from memory; label is used in messages. */
ORR_API orr_code orr_requests_parse(orr_span bytes,
                                    const char *label,
                                    orr_serve_request **out,
                                    size_t *count,
                                    orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_requests_free(orr_serve_request *requests); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
