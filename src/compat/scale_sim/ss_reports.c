/* SPDX-License-Identifier: Apache-2.0 */
/* ss_reports.c - the report files of all generations, byte for byte (scale-sim.md 5, 6.1 and 12.2).
 *
 * Numbers are printed as Python does; cycles are floats there.  v1's detail file has its last two
 * groups of headings in the wrong order, and so do we: scripts read by column. */
#include "scale_sim.h"
#include "ss_impl.h"

#include "models/compute/systolic/scalesim_impl.h"

#include "base/text/number.h"

/* ---- v1 ---- */

static void v1_double(orr_buf *b, double v)
{
    ss_put_double(b, v);
    orr_buf_text(b, ",\t");
}

static void v1_count(orr_buf *b, double v)
{
    orr_buf_u64(b, (uint64_t)v);
    orr_buf_text(b, ",\t");
}

static void v1_name(orr_buf *b, const orr_scalesim *r, size_t i)
{
    const orr_str name = r->network->layers[i].name;
    orr_buf_add(b, name.ptr, name.len);
    orr_buf_text(b, ",\t");
}

static void v1_cycles(orr_buf *b, const orr_scalesim *r, size_t i)
{
    v1_name(b, r, i);
    orr_buf_u64(b, r->results[i].cycles);
    orr_buf_text(b, ",\t");
    ss_put_double(b, r->results[i].utilisation);
    orr_buf_text(b, ",\n");
}

/* The first columns of both bandwidth files: buffer sizes in bytes. */
static void v1_buffers(orr_buf *b, const orr_scalesim *r, size_t i)
{
    const orr_systolic_array *a = &r->config.array;
    orr_buf_u64(b, a->ifmap_words);
    orr_buf_text(b, ",\t");
    orr_buf_u64(b, a->filter_words);
    orr_buf_text(b, ",\t");
    orr_buf_u64(b, a->ofmap_words);
    orr_buf_text(b, ",\t");
    v1_name(b, r, i);
}

static void v1_averages(orr_buf *b, const orr_scalesim *r, size_t i)
{
    const orr_systolic_result *x = &r->results[i];
    v1_buffers(b, r, i);
    for (int k = 0; k < ORR_OPERANDS; k++)
        v1_double(b, x->dram[k].average);
    v1_double(b, x->sram_read.average);
    ss_put_double(b, x->sram[ORR_OPERAND_OFMAP].average);
    orr_buf_text(b, ",\n");
}

static void v1_peaks(orr_buf *b, const orr_scalesim *r, size_t i)
{
    const orr_systolic_result *x = &r->results[i];
    v1_buffers(b, r, i);
    for (int k = 0; k < ORR_OPERANDS; k++)
        v1_count(b, x->dram[k].peak);
    v1_count(b, x->sram_read.peak);
    orr_buf_u64(b, (uint64_t)x->sram[ORR_OPERAND_OFMAP].peak);
    orr_buf_text(b, ",\n");
}

static void v1_span(orr_buf *b, const orr_systolic_traffic *t)
{
    v1_double(b, (double)t->first);
    v1_double(b, (double)t->last);
    orr_buf_u64(b, t->words);
    orr_buf_text(b, ",\t");
}

static void v1_detail(orr_buf *b, const orr_scalesim *r, size_t i)
{
    const orr_systolic_result *x = &r->results[i];
    v1_name(b, r, i);
    for (int k = 0; k < ORR_OPERANDS; k++)
        v1_span(b, &x->dram[k]);
    v1_span(b, &x->sram[ORR_OPERAND_OFMAP]);
    v1_span(b, &x->sram_read);
    orr_buf_byte(b, '\n');
}

/* ---- v2 ---- */

static void v2_double(orr_buf *b, double v)
{
    orr_buf_text(b, ", ");
    ss_put_double(b, v);
}

static void v2_count(orr_buf *b, uint64_t v)
{
    orr_buf_text(b, ", ");
    orr_buf_u64(b, v);
}

static void v2_compute(orr_buf *b, const orr_scalesim *r, size_t i)
{
    const orr_systolic_result *x = &r->results[i];
    orr_buf_u64(b, i);
    v2_count(b, x->cycles);
    v2_count(b, x->stalls);
    v2_double(b, x->utilisation);
    v2_double(b, x->mapping);
    v2_double(b, x->busy);
    orr_buf_text(b, ",\n");
}

static void v2_bandwidth(orr_buf *b, const orr_scalesim *r, size_t i)
{
    orr_buf_u64(b, i);
    for (int k = 0; k < ORR_OPERANDS; k++)
        v2_double(b, r->results[i].sram[k].average);
    for (int k = 0; k < ORR_OPERANDS; k++)
        v2_double(b, r->results[i].dram[k].average);
    orr_buf_text(b, ",\n");
}

static void v2_spans(orr_buf *b, const orr_systolic_traffic *t)
{
    for (int k = 0; k < ORR_OPERANDS; k++) {
        v2_double(b, (double)t[k].first);
        v2_double(b, (double)t[k].last);
        v2_count(b, t[k].words);
    }
}

static void v2_detail(orr_buf *b, const orr_scalesim *r, size_t i)
{
    orr_buf_u64(b, i);
    v2_spans(b, r->results[i].sram);
    v2_spans(b, r->results[i].dram);
    orr_buf_text(b, ",\n");
}

/* ---- v3 ---- */

/* From the first word fetched to the last one written, inclusive. */
static int64_t whole_span(const orr_systolic_result *x)
{
    const int64_t ifmap = x->dram[ORR_OPERAND_IFMAP].first;
    const int64_t filter = x->dram[ORR_OPERAND_FILTER].first;
    return x->dram[ORR_OPERAND_OFMAP].last - (ifmap < filter ? ifmap : filter);
}

static void v3_compute(orr_buf *b, const orr_scalesim *r, size_t i)
{
    const orr_systolic_result *x = &r->results[i];
    orr_buf_print(b, "%zu, %lld", i, (long long)whole_span(x));
    v2_count(b, x->cycles);
    v2_count(b, x->stalls);
    v2_double(b, x->utilisation);
    v2_double(b, x->mapping);
    v2_double(b, x->busy);
    orr_buf_text(b, ",\n");
}

static double metadata_rate(const orr_systolic_result *x)
{
    return x->filter_metadata / (double)x->cycles;
}

static void v3_bandwidth(orr_buf *b, const orr_scalesim *r, size_t i)
{
    const orr_systolic_result *x = &r->results[i];
    orr_buf_u64(b, i);
    for (int k = 0; k < ORR_OPERANDS; k++) {
        v2_double(b, x->sram[k].average);
        if (k == ORR_OPERAND_FILTER)
            v2_double(b, metadata_rate(x));
    }
    for (int k = 0; k < ORR_OPERANDS; k++)
        v2_double(b, x->dram[k].average);
    orr_buf_text(b, ",\n");
}

/* Reads of a pruned ifmap are multiplied by a fraction and become a float. */
static void v3_detail(orr_buf *b, const orr_scalesim *r, size_t i)
{
    const orr_systolic_result *x = &r->results[i];
    const bool is_float =
        !r->config.array.sparsity.is_optimized && r->config.array.dataflow == ORR_DATAFLOW_WS;
    orr_buf_u64(b, i);
    for (int k = 0; k < ORR_OPERANDS; k++) {
        v2_double(b, (double)x->sram[k].first);
        v2_double(b, (double)x->sram[k].last);
        if (k == ORR_OPERAND_IFMAP && is_float)
            v2_double(b, x->ifmap_reads);
        else
            v2_count(b, x->sram[k].words);
    }
    v2_spans(b, x->dram);
    orr_buf_text(b, ",\n");
}

static void v3_sparse(orr_buf *b, const orr_scalesim *r, size_t i)
{
    static const char *const names[] = {"csr", "csc", "ellpack_block"};
    const orr_systolic_storage storage = r->config.array.sparsity.storage;
    const orr_systolic_result *x = &r->results[i];
    orr_buf_print(b, "%zu, %s", i, names[storage]);
    v2_count(b, x->filter_words);
    if (storage == ORR_STORAGE_ELLPACK_BLOCK) {
        v2_double(b, x->filter_stored);
        v2_double(b, x->filter_metadata);
    } else {
        v2_count(b, (uint64_t)x->filter_stored);
        v2_count(b, (uint64_t)x->filter_metadata);
    }
    v2_double(b, metadata_rate(x));
    orr_buf_text(b, ",\n");
}

/* ---- files ---- */

typedef struct report {
    const char *name;
    const char *head;
    void (*line)(orr_buf *b, const orr_scalesim *r, size_t i);
} report;

static orr_code write_report(const orr_scalesim *r,
                             const report *form,
                             const char *prefix,
                             const char *folder,
                             orr_error *err)
{
    orr_buf text = {0}, name = {0};
    orr_buf_text(&text, form->head);
    for (size_t i = 0; i < r->network->count; i++)
        form->line(&text, r, i);
    orr_buf_print(&name, "%s%s", prefix, form->name);
    orr_buf_byte(&name, '\0');
    const orr_code code = name.failed
                              ? orr_no_memory(err)
                              : orr__scalesim_save(&text, folder, (const char *)name.ptr, err);
    orr_buf_fini(&text);
    orr_buf_fini(&name);
    return code;
}

orr_code ss_v1_write(const orr_scalesim *r, const char *folder, orr_error *err)
{
    static const report reports[] = {
        {"_cycles.csv", "Layer,\tCycles,\t% Utilization,\n", v1_cycles},
        {"_avg_bw.csv",
         "IFMAP SRAM Size,\tFilter SRAM Size,\tOFMAP SRAM Size,\tConv Layer Num,\t"
         "DRAM IFMAP Read BW,\tDRAM Filter Read BW,\tDRAM OFMAP Write BW,\tSRAM Read BW,\t"
         "SRAM OFMAP Write BW, \n",
         v1_averages},
        {"_max_bw.csv",
         "IFMAP SRAM Size,\tFilter SRAM Size,\tOFMAP SRAM Size,\tConv Layer Num,\t"
         "Max DRAM IFMAP Read BW,\tMax DRAM Filter Read BW,\tMax DRAM OFMAP Write BW,\t"
         "Max SRAM Read BW,\tMax SRAM OFMAP Write BW,\n",
         v1_peaks},
        {"_detail.csv",
         "Layer,\tDRAM_IFMAP_start,\tDRAM_IFMAP_stop,\tDRAM_IFMAP_bytes,\tDRAM_Filter_start,\t"
         "DRAM_Filter_stop,\tDRAM_Filter_bytes,\tDRAM_OFMAP_start,\tDRAM_OFMAP_stop,\t"
         "DRAM_OFMAP_bytes,\tSRAM_read_start,\tSRAM_read_stop,\tSRAM_read_bytes,\t"
         "SRAM_write_start,\tSRAM_write_stop,\tSRAM_write_bytes,\n",
         v1_detail},
    };
    orr_code code = ORR_OK;
    for (size_t i = 0; i < sizeof reports / sizeof *reports && !code; i++)
        code = write_report(r, &reports[i], r->network->name, folder, err);
    return code;
}

#define DETAIL_HEAD                                                              \
    "LayerID, SRAM IFMAP Start Cycle, SRAM IFMAP Stop Cycle, SRAM IFMAP Reads, " \
    "SRAM Filter Start Cycle, SRAM Filter Stop Cycle, SRAM Filter Reads, "       \
    "SRAM OFMAP Start Cycle, SRAM OFMAP Stop Cycle, SRAM OFMAP Writes, "         \
    "DRAM IFMAP Start Cycle, DRAM IFMAP Stop Cycle, DRAM IFMAP Reads, "          \
    "DRAM Filter Start Cycle, DRAM Filter Stop Cycle, DRAM Filter Reads, "       \
    "DRAM OFMAP Start Cycle, DRAM OFMAP Stop Cycle, DRAM OFMAP Writes,\n"
#define BANDWIDTH_HEAD                                                    \
    "LayerID, Avg IFMAP SRAM BW, Avg FILTER SRAM BW, Avg OFMAP SRAM BW, " \
    "Avg IFMAP DRAM BW, Avg FILTER DRAM BW, Avg OFMAP DRAM BW,\n"

orr_code ss_v2_write(const orr_scalesim *r, const char *folder, orr_error *err)
{
    static const report reports[] = {
        {"COMPUTE_REPORT.csv",
         "LayerID, Total Cycles, Stall Cycles, Overall Util %, Mapping Efficiency %, "
         "Compute Util %,\n",
         v2_compute},
        {"BANDWIDTH_REPORT.csv", BANDWIDTH_HEAD, v2_bandwidth},
        {"DETAILED_ACCESS_REPORT.csv", DETAIL_HEAD, v2_detail},
    };
    orr_code code = ORR_OK;
    for (size_t i = 0; i < sizeof reports / sizeof *reports && !code; i++)
        code = write_report(r, &reports[i], "", folder, err);
    return code;
}

orr_code ss_v3_write(const orr_scalesim *r, const char *folder, orr_error *err)
{
    static const report sparse[] = {
        {"BANDWIDTH_REPORT.csv",
         "LayerID, Avg IFMAP SRAM BW, Avg FILTER SRAM BW, Avg FILTER Metadata SRAM BW, "
         "Avg OFMAP SRAM BW, Avg IFMAP DRAM BW, Avg FILTER DRAM BW, Avg OFMAP DRAM BW,\n",
         v3_bandwidth},
        {"DETAILED_ACCESS_REPORT.csv", DETAIL_HEAD, v3_detail},
        {"SPARSE_REPORT.csv",
         "LayerID, Sparsity Representation, Original Filter Storage, New Storage "
         "(Filter+Metadata), Filter Metadata Storage, Avg FILTER Metadata SRAM BW, \n",
         v3_sparse},
    };
    static const report dense[] = {
        {"BANDWIDTH_REPORT.csv", BANDWIDTH_HEAD, v2_bandwidth},
        {"DETAILED_ACCESS_REPORT.csv", DETAIL_HEAD, v2_detail},
    };
    static const report compute = {
        "COMPUTE_REPORT.csv",
        "LayerID, Total Cycles (incl. prefetch), Total Cycles, Stall Cycles, Overall Util %, "
        "Mapping Efficiency %, Compute Util %,\n",
        v3_compute};
    const bool is_sparse = r->config.array.sparsity.is_on;
    orr_code code = write_report(r, &compute, "", folder, err);
    for (size_t i = 0; i < (is_sparse ? 3 : 2) && !code; i++)
        code = write_report(r, is_sparse ? &sparse[i] : &dense[i], "", folder, err);
    return code;
}
