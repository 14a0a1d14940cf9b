/* SPDX-License-Identifier: Apache-2.0 */
/* bar.h - a share as a bar of characters, for tables: #### is four tenths of ten cells.  ASCII
 * alone and without colour, so that it means the same in every terminal and in every file. */
#ifndef ORR_BASE_BAR_H
#define ORR_BASE_BAR_H

#include <stdint.h>
#include <string.h>

enum { ORR_BAR_ROOM = 33 }; /* 32 cells and the NUL */

/* The nearest number of cells, at most 32 of them; a dot for something that is less than half a
 * cell. */
static inline char *orr_bar_text(uint64_t part,
                                 uint64_t whole,
                                 unsigned cells,
                                 char out[ORR_BAR_ROOM])
{
    const unsigned most = cells < ORR_BAR_ROOM ? cells : ORR_BAR_ROOM - 1;
    const unsigned __int128 twice = (unsigned __int128)part * most * 2;
    const unsigned full = whole == 0      ? 0
                          : part >= whole ? most
                                          : (unsigned)((twice + whole) / whole / 2);
    memset(out, '#', full);
    out[full] = '\0';
    if (full == 0 && part && whole)
        memcpy(out, ".", 2);
    return out;
}

#endif
