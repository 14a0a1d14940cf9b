/* SPDX-License-Identifier: Apache-2.0 */
/* machine_impl.h - what the files of this folder share. */
#ifndef ORR_MODELS_MACHINE_IMPL_H
#define ORR_MODELS_MACHINE_IMPL_H

#include <orrery/lab/machine.h>

enum { MACHINE_NODES = 1 << 20, MACHINE_DEVICES = 1 << 16, MACHINE_ALL = 1 << 24 };

extern const char *const machine_up_words[], *const machine_fabric_words[]; /* end in NULL */

/* Values that do not go together; where: of the file, or NULL. */
orr_code machine_check(const orr_machine *m, const orr_where *where, orr_error *err) ORR_MUST_CHECK;

#endif
