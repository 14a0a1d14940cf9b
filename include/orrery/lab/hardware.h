/* SPDX-License-Identifier: Apache-2.0 */
/* hardware.h - a design of one NPU: arrays, clock, memory, vector unit.  Chips that exist have
 * measured or estimated kernels instead (chip.h).
 *
 *     orr_hardware hw;
 *     const orr_hardware *known = orr_hardware_find("tpu-v4");
 *     if (known) hw = *known;
 *     else if (orr_hardware_read("my_chip.yml", &hw, &err)) return report(&err);
 *
 * One description for all vendors: a systolic array is rows x columns multipliers, a tensor core is
 * a small array that keeps its outputs.  docs/format/hardware.md has the file and where the figures
 * of the chips that are built in come from. */
#ifndef ORRERY_LAB_HARDWARE_H
#define ORRERY_LAB_HARDWARE_H

#include <orrery/lab/chip.h>
#include <orrery/lab/systolic.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ORR_HARDWARE_NAME = 48, ORR_HARDWARE_NOTE = 80 };

/* Plain values: copy it, change what differs.  0 in an optional field removes a limit. */
typedef struct orr_hardware {
    char name[ORR_HARDWARE_NAME];
    char note[ORR_HARDWARE_NOTE];   /* one line about it */
    uint64_t arrays, rows, columns; /* number of arrays, and their size */
    orr_dataflow dataflow;          /* what stays in an array */
    uint64_t clock_hz;              /* one multiplication per cycle and element of an array */
    orr_Bps memory_bandwidth;       /* 0: memory is never the limit */
    orr_bytes input_buffer;         /* on-chip, for the left factor of a product; 0: unlimited */
    orr_bytes weight_buffer;        /* for the right factor */
    orr_bytes output_buffer;        /* for sums */
    /* operations per cycle outside the arrays; 0: never the limit */
    uint64_t vector_width;
    orr_ps overhead; /* per operation beyond its work: a launch */
} orr_hardware;

/* Built-in chips, in reading order; NULL past the last. */
ORR_API const orr_hardware *orr_hardware_at(size_t index);
/* By name; NULL: there is none. */
ORR_API const orr_hardware *orr_hardware_find(const char *name);

/* From a file (YAML; "-": standard input), or from memory; label is used in messages. */
ORR_API orr_code orr_hardware_read(const char *path,
                                   orr_hardware *out,
                                   orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_hardware_parse(orr_span bytes,
                                    const char *label,
                                    orr_hardware *out,
                                    orr_error *err) ORR_MUST_CHECK;

/* A file of either kind: a calibrated chip (chip.h), which has the key `like`, or a design. */
ORR_API orr_code orr_hardware_read_any(const char *path,
                                       orr_chip *chip,
                                       orr_hardware *design,
                                       bool *is_chip,
                                       orr_error *err) ORR_MUST_CHECK;

/* Additions and multiplications per second when every element of every array works: 2 per cycle
 * each. */
ORR_API double orr_hardware_peak(const orr_hardware *hw);

/* The equivalent file; returns its length, as snprintf counts.  1,000 bytes are enough. */
ORR_API size_t orr_hardware_text(const orr_hardware *hw, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
