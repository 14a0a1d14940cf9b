/* SPDX-License-Identifier: Apache-2.0 */
/* units.h - numbers with units, from and to text.
 *
 *     orr_ps latency;
 *     if (orr_time_parse("25us", &latency, &err)) return report(&err);
 *     puts(orr_time_text(latency, text));        // 25.0 us
 *
 * A number in input carries a unit, with or without a space before it; only 0 may go without.  One
 * parser per kind, exact: fractions are rounded to the nearest whole ps, byte, byte per second or
 * hertz, halves up.  Anything else is ORR_EUSAGE; the message quotes the text and lists the
 * units. */
#ifndef ORRERY_LAB_UNITS_H
#define ORRERY_LAB_UNITS_H

#include <orrery/error.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ps ns us ms s min h */
ORR_API orr_code orr_time_parse(const char *text, orr_ps *out, orr_error *err) ORR_MUST_CHECK;
/* B kB MB GB TB PB EB, KiB MiB GiB TiB PiB EiB */
ORR_API orr_code orr_bytes_parse(const char *text, orr_bytes *out, orr_error *err) ORR_MUST_CHECK;
/* B/s kB/s ... KiB/s ... and bits: b/s kb/s Mb/s Gb/s Tb/s; "bit/s", "bps" and "Bps" are the
 * same */
ORR_API orr_code orr_rate_parse(const char *text, orr_Bps *out, orr_error *err) ORR_MUST_CHECK;
/* Hz kHz MHz GHz THz */
ORR_API orr_code orr_frequency_parse(const char *text,
                                     uint64_t *hz_out,
                                     orr_error *err) ORR_MUST_CHECK;

/* For people: three significant digits in a suitable unit.  Each fills out and returns it. */
enum { ORR_UNIT_ROOM = 40 };
ORR_API char *orr_time_text(orr_ps t, char out[ORR_UNIT_ROOM]);         /* 12.3 ms */
ORR_API char *orr_bytes_text(orr_bytes n, char out[ORR_UNIT_ROOM]);     /* 1.50 GiB */
ORR_API char *orr_rate_text(orr_Bps rate, char out[ORR_UNIT_ROOM]);     /* 50.0 GB/s */
ORR_API char *orr_frequency_text(uint64_t hz, char out[ORR_UNIT_ROOM]); /* 1.50 GHz */
ORR_API char *orr_count_text(uint64_t n, char out[ORR_UNIT_ROOM]);      /* 1,234,567 */
ORR_API char *orr_figure_text(double v, char out[ORR_UNIT_ROOM]);       /* 913.2; 12,345 */
ORR_API char *orr_short_text(uint64_t n, char out[ORR_UNIT_ROOM]);      /* 1.23 M */
/* part of whole: 12.3%, "<0.1%" for smaller but nonzero, "-" if whole is 0 */
ORR_API char *orr_percent_text(uint64_t part, uint64_t whole, char out[ORR_UNIT_ROOM]);

#ifdef __cplusplus
}
#endif
#endif
