/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_files.c - the old generator's intermediate files: the layers it gave its simulator for each pass, and what
 * came back (spec scale-sim.md, 5, 6.1 and 7.3).  With v2 only the report of the last pass is left. */
#include "sources/layers/gemm_impl.h"

#include "base/io/output.h"
#include "base/text/number.h"

#include <inttypes.h>

static const char *const pass_names[ORR_PASSES] = {"fwd_pass", "inp_grad", "weight_grad"};

static orr_code save(orr_buf *b, const char *path, orr_error *err)
{
    orr_output *out;
    if (b->failed || !path)
        return orr_no_memory(err);
    const orr_code code = orr_output_open(path, &out, err);
    if (code)
        return code;
    orr_output_drain(out, b);
    return orr_output_commit(&out, err);
}

/* A product as the convolution that costs the same, trailing comma and all. */
static void put_topology(const orr_gemm *g, int pass, orr_buf *b)
{
    orr_buf_text(b, "Layer name,ifmap height,ifmap width,filter height,filter width,channels,num "
                    "filter,strides,\n");
    for (size_t i = 0; i < g->count; i++) {
        const orr__product *p = &g->shards[i][pass];
        orr_buf_add(b, g->layers[i].name.ptr, g->layers[i].name.len);
        orr_buf_print(b, ",%" PRIu64 ",%" PRIu64 ",1,%" PRIu64 ",1,%" PRIu64 ",1,\n", p->m, p->k,
                      p->k, p->n);
    }
}

static void put_double(orr_buf *b, double v)
{
    char text[ORR_NUMBER_ROOM];
    orr_buf_add(b, text, orr_double_text(v, text));
}

static void put_v1(const orr_gemm_layer *l, const orr_systolic_result *r, orr_buf *b)
{
    orr_buf_add(b, l->name.ptr, l->name.len);
    orr_buf_print(b, ",\t%" PRIu64 ",\t", r->cycles);
    put_double(b, r->utilisation);
    orr_buf_text(b, ",\n");
}

static void put_v2(size_t i, const orr_systolic_result *r, orr_buf *b)
{
    orr_buf_print(b, "%zu, %" PRIu64 ", %" PRIu64 ", ", i, r->cycles, r->stalls);
    put_double(b, r->utilisation);
    orr_buf_text(b, ", ");
    put_double(b, r->mapping);
    orr_buf_text(b, ", ");
    put_double(b, r->busy);
    orr_buf_text(b, ",\n");
}

static orr_code put_report(const orr_gemm *g, int pass, orr_buf *b, orr_error *err)
{
    const bool is_v1 = g->opt.rules == ORR_SYSTOLIC_V1;
    orr_buf_text(b, is_v1 ? "Layer,\tCycles,\t% Utilization,\n"
                          : "LayerID, Total Cycles, Stall Cycles, Overall Util %, Mapping "
                            "Efficiency %, Compute Util %,\n");
    for (size_t i = 0; i < g->count; i++) {
        const orr__product *p = &g->shards[i][pass];
        const orr_systolic_layer layer = orr_systolic_gemm(p->m, p->n, p->k);
        orr_systolic_result r;
        const orr_code code = orr_systolic_run(&g->array, &layer, g->opt.rules, &r, err);
        if (code)
            return code;
        if (is_v1)
            put_v1(&g->layers[i], &r, b);
        else
            put_v2(i, &r, b);
    }
    return ORR_OK;
}

static orr_code write_pass(const orr_gemm *g,
                           int pass,
                           const char *folder,
                           const char *stem,
                           orr_arena *names,
                           orr_error *err)
{
    const bool is_v1 = g->opt.rules == ORR_SYSTOLIC_V1;
    orr_buf b = {0};
    put_topology(g, pass, &b);
    orr_code code =
        save(&b, orr_arena_print(names, "%s/%s_%s.csv", folder, stem, pass_names[pass]), err);
    if (!code && (is_v1 || pass == ORR_PASS_WEIGHT_GRAD)) {
        code = put_report(g, pass, &b, err);
        if (!code)
            code = save(&b,
                        is_v1 ? orr_arena_print(names, "%s/%s_%s_cycles.csv", folder, stem,
                                                pass_names[pass])
                              : orr_arena_print(names, "%s/COMPUTE_REPORT.csv", folder),
                        err);
    }
    orr_buf_fini(&b);
    return code;
}

orr_code orr_gemm_write_intermediate(const orr_gemm *g,
                                     const char *folder,
                                     const char *stem,
                                     orr_error *err)
{
    orr_code code = ORR_OK;
    if (!g->shards)
        return orr_fail(err, ORR_EUSAGE, NULL, "only the old generator has intermediate files");
    orr_arena *names = orr_arena_create();
    if (!names)
        return orr_no_memory(err);
    for (int i = 0; i < ORR_PASSES && !code; i++)
        code = write_pass(g, i, folder, stem, names, err);
    orr_arena_destroy(names);
    return code;
}
