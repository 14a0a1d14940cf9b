/* SPDX-License-Identifier: Apache-2.0 */
/* hardware.c - the built-in chips: a table of published figures.
 *
 * Rows, columns and clock are such that twice their product is the vendor's peak for dense 16-bit
 * products (8-bit ones of the first TPU); a test checks each row.  A tensor core is represented as
 * an output-stationary array, one per multiprocessor.  On-chip memory that is shared by all
 * operands counts a third for each.  The row without -peak beside its name is measured:
 * docs/format/hardware.md says how. */
#include <orrery/lab/hardware.h>
#include <orrery/lab/units.h>

#include "base/formats/yaml.h"
#include "base/io/input.h"
#include "base/text/text.h"

#include <inttypes.h>

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

/* Hardware from a file and to a file (YAML; docs/format/hardware.md).
 *
 * A flat map: every value has a unit or is a plain count, and a missing key removes a limit.
 * Bounds catch obvious mistakes (a clock in Hz meant in MHz), and keep products of the values
 * within 64 bits. */

enum { MOST_SIDE = 1 << 16, MOST_ARRAYS = 1 << 20, SHOWN = 60 };

#define LEAST_CLOCK 1000000ull
#define MOST_CLOCK 100000000000ull
#define MOST_RATE 1000000000000000ull /* 1 PB/s */
#define MOST_BUFFER (1ull << 50)
#define MOST_OVERHEAD 1000000000000ull /* 1 s */
#define MOST_VECTOR (1ull << 32)

static const char *const dataflows[] = {"os", "ws", "is", NULL};

/* A value with a unit, one parser of units.h per kind. */
typedef struct unit_field {
    const char *key, *what;
    orr_code (*parse)(const char *text, uint64_t *out, orr_error *err);
    uint64_t min, max;
} unit_field;

static orr_code parse_time(const char *text, uint64_t *out, orr_error *err)
{
    orr_ps ps = 0;
    const orr_code code = orr_time_parse(text, &ps, err);
    *out = (uint64_t)ps; /* the parser knows no negative times */
    return code;
}

static const unit_field clock_field = {"clock", "a frequency from 1MHz to 100GHz, as 940MHz",
                                       orr_frequency_parse, LEAST_CLOCK, MOST_CLOCK};
static const unit_field rate_field = {
    "memory_bandwidth", "a rate above 0 and up to 1PB/s, as 900GB/s", orr_rate_parse, 1, MOST_RATE};
static const unit_field buffer_fields[] = {
    {"input_buffer", "a size above 0 and up to 1PiB, as 16MiB", orr_bytes_parse, 1, MOST_BUFFER},
    {"weight_buffer", "a size above 0 and up to 1PiB, as 16MiB", orr_bytes_parse, 1, MOST_BUFFER},
    {"output_buffer", "a size above 0 and up to 1PiB, as 16MiB", orr_bytes_parse, 1, MOST_BUFFER},
};
static const unit_field overhead_field = {"overhead", "a time up to 1s, as 5us", parse_time, 0,
                                          MOST_OVERHEAD};

static orr_code take_unit(orr_yaml_value map, const unit_field *f, uint64_t *out, orr_error *err)
{
    char text[ORR_UNIT_ROOM];
    orr_yaml_value v;
    uint64_t value;
    if (!orr_yaml_find(map, f->key, &v))
        return ORR_OK;
    const orr_where w = orr_yaml_where(v);
    const orr_str s = orr_yaml_text(v);
    if (orr_yaml_type_of(v) != ORR_YAML_SCALAR)
        return orr_fail(err, ORR_EINPUT, &w, "%s: expected %s", f->key, f->what);
    const bool fits = s.len < sizeof text && !memchr(s.ptr, '\0', s.len);
    if (fits) {
        memcpy(text, s.ptr, s.len);
        text[s.len] = '\0';
    }
    if (!fits || f->parse(text, &value, NULL) || value < f->min || value > f->max)
        return orr_fail(err, ORR_EINPUT, &w, "%s: \"%.*s\" is not %s", f->key,
                        (int)(s.len < SHOWN ? s.len : SHOWN), s.ptr, f->what);
    *out = value;
    return ORR_OK;
}

static orr_code take_array(orr_yaml_value map, orr_hardware *hw, orr_error *err)
{
    static const char *const needed[] = {"rows", "columns", "clock"};
    unsigned flow = ORR_DATAFLOW_WS;
    orr_yaml_value v;
    orr_code code = ORR_OK;
    for (size_t i = 0; i < 3 && !code; i++)
        code = orr_yaml_need(map, needed[i], &v, err);
    if (!code)
        code = orr_yaml_take_u64(map, "rows", 1, MOST_SIDE, &hw->rows, err);
    if (!code)
        code = orr_yaml_take_u64(map, "columns", 1, MOST_SIDE, &hw->columns, err);
    if (!code)
        code = orr_yaml_take_u64(map, "arrays", 1, MOST_ARRAYS, &hw->arrays, err);
    if (!code)
        code = orr_yaml_take_word(map, "dataflow", dataflows, &flow, err);
    hw->dataflow = (orr_dataflow)flow;
    return code ? code : take_unit(map, &clock_field, &hw->clock_hz, err);
}

static orr_code take_rest(orr_yaml_value map, orr_hardware *hw, orr_error *err)
{
    uint64_t *buffers[] = {&hw->input_buffer, &hw->weight_buffer, &hw->output_buffer};
    uint64_t overhead = 0;
    orr_code code = take_unit(map, &rate_field, &hw->memory_bandwidth, err);
    for (size_t i = 0; i < 3 && !code; i++)
        code = take_unit(map, &buffer_fields[i], buffers[i], err);
    if (!code)
        code = orr_yaml_take_u64(map, "vector_width", 1, MOST_VECTOR, &hw->vector_width, err);
    if (!code)
        code = take_unit(map, &overhead_field, &overhead, err);
    hw->overhead = (orr_ps)overhead; /* at most a second */
    return code;
}

static orr_code take_hardware(orr_yaml_value map, orr_hardware *hw, orr_error *err)
{
    static const char *const keys[] = {"name",          "note",
                                       "arrays",        "rows",
                                       "columns",       "dataflow",
                                       "clock",         "memory_bandwidth",
                                       "input_buffer",  "weight_buffer",
                                       "output_buffer", "vector_width",
                                       "overhead",      NULL};
    orr_code code = orr_yaml_check_keys(map, keys, err);
    if (!code)
        code = orr_yaml_take_text(map, "name", hw->name, sizeof hw->name, err);
    if (!code)
        code = orr_yaml_take_text(map, "note", hw->note, sizeof hw->note, err);
    if (!code)
        code = take_array(map, hw, err);
    return code ? code : take_rest(map, hw, err);
}

orr_code orr_hardware_parse(orr_span bytes, const char *label, orr_hardware *out, orr_error *err)
{
    orr_hardware hw = {.arrays = 1};
    orr_yaml *y;
    orr_code code = orr_yaml_open(bytes, label, &y, err);
    if (code)
        return code;
    code = take_hardware(orr_yaml_root(y), &hw, err);
    orr_yaml_close(y);
    if (code)
        return code;
    if (!hw.name[0])
        memcpy(hw.name, "unnamed", sizeof "unnamed");
    *out = hw;
    return ORR_OK;
}

orr_code orr_hardware_read(const char *path, orr_hardware *out, orr_error *err)
{
    orr_input *in;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    code = orr_hardware_parse(orr_input_bytes(in), path, out, err);
    orr_input_close(in);
    return code;
}

static orr_code has_like(orr_span bytes, const char *label, bool *out, orr_error *err)
{
    orr_yaml_value v;
    orr_yaml *y;
    const orr_code code = orr_yaml_open(bytes, label, &y, err);
    if (code)
        return code;
    *out = orr_yaml_type_of(orr_yaml_root(y)) == ORR_YAML_MAP &&
           orr_yaml_find(orr_yaml_root(y), "like", &v);
    orr_yaml_close(y);
    return ORR_OK;
}

orr_code orr_hardware_read_any(
    const char *path, orr_chip *chip, orr_hardware *design, bool *is_chip, orr_error *err)
{
    orr_input *in;
    *is_chip = false;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    const orr_span bytes = orr_input_bytes(in);
    code = has_like(bytes, path, is_chip, err);
    if (!code)
        code = *is_chip ? orr_chip_parse(bytes, path, chip, err)
                        : orr_hardware_parse(bytes, path, design, err);
    orr_input_close(in);
    return code;
}

/* ---- writing ---- */

size_t orr_hardware_text(const orr_hardware *hw, char *out, size_t size)
{
    orr_pen t = {.out = out, .size = size};
    orr_pen_put(&t, "name: \"%s\"\n", hw->name);
    if (hw->note[0])
        orr_pen_put(&t, "note: \"%s\"\n", hw->note);
    orr_pen_put(&t, "arrays: %" PRIu64 "\nrows: %" PRIu64 "\ncolumns: %" PRIu64 "\ndataflow: %s\n",
                hw->arrays, hw->rows, hw->columns, dataflows[hw->dataflow]);
    orr_pen_unit(&t, "clock", hw->clock_hz, orr_pen_frequencies);
    orr_pen_unit(&t, "memory_bandwidth", hw->memory_bandwidth, orr_pen_rates);
    orr_pen_unit(&t, "input_buffer", hw->input_buffer, orr_pen_sizes);
    orr_pen_unit(&t, "weight_buffer", hw->weight_buffer, orr_pen_sizes);
    orr_pen_unit(&t, "output_buffer", hw->output_buffer, orr_pen_sizes);
    if (hw->vector_width)
        orr_pen_put(&t, "vector_width: %" PRIu64 "\n", hw->vector_width);
    orr_pen_unit(&t, "overhead", (uint64_t)hw->overhead, orr_pen_times);
    return t.used;
}
