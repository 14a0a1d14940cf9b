/* SPDX-License-Identifier: Apache-2.0 */
/* machine_impl.h - what the files of this folder share. */
#ifndef ORR_MODELS_MACHINE_IMPL_H
#define ORR_MODELS_MACHINE_IMPL_H

#include <orrery/lab/machine.h>

enum { MACHINE_NODES = 1 << 20, MACHINE_DEVICES = 1 << 16, MACHINE_ALL = 1 << 24 };

/* Values that do not go together; where: of the file, or NULL. */
orr_code machine_check(const orr_machine *m, const orr_where *where, orr_error *err) ORR_MUST_CHECK;

/* A file that says what is different from *out; what it does not say stays.  checks: the result
 * must hold together. */
orr_code machine_change(orr_span bytes,
                        const char *label,
                        bool checks,
                        orr_machine *out,
                        orr_error *err) ORR_MUST_CHECK;
/* One that is built in; name is of one. */
orr_code machine_built_in(const char *name, orr_machine *out, orr_error *err) ORR_MUST_CHECK;

#endif
