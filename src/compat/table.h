/* SPDX-License-Identifier: Apache-2.0 */
/* table.h - the rooms of src/compat, for the table of old names and for --compat. */
#ifndef ORR_COMPAT_TABLE_H
#define ORR_COMPAT_TABLE_H

#endif
