/* SPDX-License-Identifier: Apache-2.0 */
/* words.h - tokenizer for the packet network's text files, with locations.
 *
 *     orr__words w;
 *     orr__words_init(&w, bytes, "topology.txt");
 *     while (orr__words_next(&w, &word)) ...
 *
 * Words are separated by white space, including newlines (packet-network.md 3 and 4).  There are no
 * comments, except for readers that skip lines. */
#ifndef ORR_MODELS_PACKET_WORDS_H
#define ORR_MODELS_PACKET_WORDS_H

#include "base/memory/memory.h"

typedef struct orr__words {
    const char *path;
    const uint8_t *at, *end, *line_start;
    uint32_t line;
    uint32_t word_line, word_column; /* of the word read last */
} orr__words;

void orr__words_init(orr__words *w, orr_span bytes, const char *path);
bool orr__words_next(orr__words *w, orr_str *out); /* false: none is left */
orr_where orr__words_where(const orr__words *w);   /* of the word read last */
void orr__words_skip_line(orr__words *w);          /* after the word read last */

/* The next word as a number.  `what` says what was expected: "the number of nodes". */
orr_code orr__words_u64(orr__words *w,
                        const char *what,
                        uint64_t min,
                        uint64_t max,
                        uint64_t *out,
                        orr_error *err) ORR_MUST_CHECK;
orr_code orr__words_real(orr__words *w,
                         const char *what,
                         double min,
                         double max,
                         double *out,
                         orr_error *err) ORR_MUST_CHECK;
/* "100Gbps", "50Mb/s" in bit/s; "1us", "0.005ms" in ps. */
orr_code orr__words_rate(orr__words *w, const char *what, uint64_t *out, orr_error *err)
    ORR_MUST_CHECK;
orr_code orr__words_delay(orr__words *w, const char *what, uint64_t *ps_out, orr_error *err)
    ORR_MUST_CHECK;
/* A word for error messages: truncated, with "?" for unprintable characters. */
enum { ORR__WORD_ROOM = 64 };
const char *orr__words_shown(orr_str s, char out[ORR__WORD_ROOM]);
/* The next word, or an error that names what is missing. */
orr_code orr__words_need(orr__words *w, const char *what, orr_str *out, orr_error *err)
    ORR_MUST_CHECK;

/* The line of the next, unread word; 0: none is left. */
uint32_t orr__words_surplus(orr__words *w);

#endif
