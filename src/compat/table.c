/* SPDX-License-Identifier: Apache-2.0 */
/* The only file that knows the rooms of src/compat by name.  The rest of the library declares what it is willing
 * to take from them (rules, readers of old formats); what is defined here decides what it gets. */
#include "table.h"
