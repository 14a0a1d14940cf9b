/* SPDX-License-Identifier: Apache-2.0 */
/* hardware.c - the chips that are built in: a table of published figures.
 *
 * Rows, columns and clock are such that twice their product is the peak the maker publishes for dense 16-bit
 * products (8-bit ones of the first TPU); a test holds each row to that.  A tensor core is written as an array
 * that keeps its outputs, one for each multiprocessor.  On-chip memory that is shared by all operands counts a
 * third for each.  The row without -peak beside its name is measured: docs/format/hardware.md says how. */
#include <orrery/lab/hardware.h>

#define MHZ 1000000u
#define GBPS 1000000000u
#define KIB (1ull << 10)
#define MIB (1ull << 20)
#define US 1000000 /* picoseconds */

/* Shared on-chip memory, a third for each operand. */
#define SHARED(bytes) \
    .input_buffer = (bytes) / 3, .weight_buffer = (bytes) / 3, .output_buffer = (bytes) / 3

static const orr_hardware chips[] = {
    {.name = "h200",
     .note = "NVIDIA H200, measured: under load, with launches",
     .arrays = 132,
     .rows = 32,
     .columns = 64,
     .dataflow = ORR_DATAFLOW_OS,
     .clock_hz = 1440 * MHZ,
     .memory_bandwidth = 4000ull * GBPS,
     SHARED(48 * MIB),
     .vector_width = 16896,
     .overhead = 5 * US},
    {.name = "h200-peak",
     .note = "NVIDIA H200 SXM: 989 TFLOPS, 4.8 TB/s",
     .arrays = 132,
     .rows = 32,
     .columns = 64,
     .dataflow = ORR_DATAFLOW_OS,
     .clock_hz = 1830 * MHZ,
     .memory_bandwidth = 4800ull * GBPS,
     SHARED(48 * MIB),
     .vector_width = 16896},
    {.name = "h100",
     .note = "NVIDIA H100 SXM: 989 TFLOPS, 3.35 TB/s",
     .arrays = 132,
     .rows = 32,
     .columns = 64,
     .dataflow = ORR_DATAFLOW_OS,
     .clock_hz = 1830 * MHZ,
     .memory_bandwidth = 3350ull * GBPS,
     SHARED(48 * MIB),
     .vector_width = 16896},
    {.name = "a100",
     .note = "NVIDIA A100 SXM 80 GB: 312 TFLOPS, 2.04 TB/s",
     .arrays = 108,
     .rows = 32,
     .columns = 32,
     .dataflow = ORR_DATAFLOW_OS,
     .clock_hz = 1410 * MHZ,
     .memory_bandwidth = 2039ull * GBPS,
     SHARED(39 * MIB),
     .vector_width = 6912},
    {.name = "v100",
     .note = "NVIDIA V100 SXM2: 125 TFLOPS, 900 GB/s",
     .arrays = 80,
     .rows = 16,
     .columns = 32,
     .dataflow = ORR_DATAFLOW_OS,
     .clock_hz = 1530 * MHZ,
     .memory_bandwidth = 900ull * GBPS,
     SHARED(6 * MIB),
     .vector_width = 5120},
    {.name = "mi300x",
     .note = "AMD MI300X: 1,307 TFLOPS, 5.3 TB/s",
     .arrays = 304,
     .rows = 32,
     .columns = 32,
     .dataflow = ORR_DATAFLOW_OS,
     .clock_hz = 2100 * MHZ,
     .memory_bandwidth = 5300ull * GBPS,
     SHARED(255 * MIB),
     .vector_width = 38912},
    {.name = "tpu-v5e",
     .note = "Google TPU v5e: 197 TFLOPS, 819 GB/s",
     .arrays = 4,
     .rows = 128,
     .columns = 128,
     .dataflow = ORR_DATAFLOW_WS,
     .clock_hz = 1500 * MHZ,
     .memory_bandwidth = 819ull * GBPS,
     SHARED(48 * MIB),
     .vector_width = 4096},
    {.name = "tpu-v4",
     .note = "Google TPU v4: 275 TFLOPS, 1.2 TB/s",
     .arrays = 8,
     .rows = 128,
     .columns = 128,
     .dataflow = ORR_DATAFLOW_WS,
     .clock_hz = 1050 * MHZ,
     .memory_bandwidth = 1200ull * GBPS,
     SHARED(129 * MIB),
     .vector_width = 4096},
    {.name = "tpu-v3",
     .note = "Google TPU v3: 123 TFLOPS, 900 GB/s",
     .arrays = 4,
     .rows = 128,
     .columns = 128,
     .dataflow = ORR_DATAFLOW_WS,
     .clock_hz = 940 * MHZ,
     .memory_bandwidth = 900ull * GBPS,
     SHARED(33 * MIB),
     .vector_width = 2048},
    {.name = "tpu-v2",
     .note = "Google TPU v2: 46 TFLOPS, 700 GB/s",
     .arrays = 2,
     .rows = 128,
     .columns = 128,
     .dataflow = ORR_DATAFLOW_WS,
     .clock_hz = 700 * MHZ,
     .memory_bandwidth = 700ull * GBPS,
     SHARED(33 * MIB),
     .vector_width = 2048},
    {.name = "tpu-v1",
     .note = "Google TPU v1, for inference in 8 bits: 92 TOPS, 34 GB/s",
     .arrays = 1,
     .rows = 256,
     .columns = 256,
     .dataflow = ORR_DATAFLOW_WS,
     .clock_hz = 700 * MHZ,
     .memory_bandwidth = 34ull * GBPS,
     .input_buffer = 24 * MIB,
     .weight_buffer = 256 * KIB,
     .output_buffer = 4 * MIB,
     .vector_width = 256},
};

const orr_hardware *orr_hardware_at(size_t index)
{
    return index < sizeof chips / sizeof *chips ? &chips[index] : NULL;
}

const orr_hardware *orr_hardware_find(const char *name)
{
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++) {
        if (strcmp(chips[i].name, name) == 0)
            return &chips[i];
    }
    return NULL;
}

double orr_hardware_peak(const orr_hardware *hw)
{
    return 2.0 * (double)hw->arrays * (double)hw->rows * (double)hw->columns * (double)hw->clock_hz;
}
