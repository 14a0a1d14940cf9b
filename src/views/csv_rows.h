/* SPDX-License-Identifier: Apache-2.0 */
/* csv_rows.h - rows of ranks with the same figures as one row. */
#ifndef ORR_VIEWS_CSV_ROWS_H
#define ORR_VIEWS_CSV_ROWS_H

#include "base/memory/buffer.h"

/* b: remarks, a header row that begins with "rank,", and a row for each rank from 0 on.  Then rows
 * begin with the ranks they stand for, as "0-7,12", and their number. */
void orr__csv_join_alike(orr_buf *b);

#endif
