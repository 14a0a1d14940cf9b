/* SPDX-License-Identifier: Apache-2.0 */
/* find_hardware.c - what --hardware names: one rule for all commands.
 *
 * A chip ('orrery chip list') comes first, so that a name means the same measured kernels
 * everywhere; then the designs, which are known by their arrays only; then files of either kind. */
#include "command.h"

#include <orrery/lab/hardware.h>

#include <string.h>
#include <unistd.h>

static orr_code no_chip(const char *name, orr_error *err)
{
    const char *near = NULL;
    for (size_t i = 0; orr_chip_at(i); i++)
        near = cli_nearer(name, near, orr_chip_at(i)->name);
    if (near)
        return cli_misuse(err, "unknown chip '%s'; did you mean '%s'?", name, near);
    return cli_misuse(err, "unknown chip '%s'; 'orrery chip list' shows them", name);
}

bool cli_is_file(const char *chip)
{
    return !orr_chip_find(chip) && !orr_hardware_find(chip) && strpbrk(chip, "./");
}

/* A word without a dot or a slash is an unknown name, not a missing file. */
static bool is_file(const char *name)
{
    return strpbrk(name, "./") || strcmp(name, "-") == 0 || access(name, F_OK) == 0;
}

orr_code cli_chip_find(const char *name, orr_chip *own, const orr_chip **out, orr_error *err)
{
    *out = orr_chip_find(name);
    if (*out)
        return ORR_OK;
    if (!is_file(name))
        return no_chip(name, err);
    const orr_code code = orr_chip_read(name, own, err);
    *out = code ? NULL : own;
    return code;
}

orr_code cli_chip_check(const char *name, orr_error *err)
{
    return !name || orr_chip_find(name) || is_file(name) ? ORR_OK : no_chip(name, err);
}

orr_code cli_hardware_find(const char *name, cli_hardware *out, orr_error *err)
{
    bool is_chip = false;
    *out = (cli_hardware){.chip = orr_chip_find(name)};
    if (out->chip)
        return ORR_OK;
    const orr_hardware *design = orr_hardware_find(name);
    if (design) {
        out->design = *design;
        return ORR_OK;
    }
    if (!is_file(name))
        return no_chip(name, err);
    const orr_code code = orr_hardware_read_any(name, &out->own, &out->design, &is_chip, err);
    out->chip = is_chip ? &out->own : NULL;
    return code;
}

orr_code cli_design_find(const char *name, orr_hardware *out, orr_error *err)
{
    const orr_hardware *known = orr_hardware_find(name);
    const char *near = NULL;
    if (known) {
        *out = *known;
        return ORR_OK;
    }
    if (is_file(name))
        return orr_hardware_read(name, out, err);
    for (size_t i = 0; orr_hardware_at(i); i++)
        near = cli_nearer(name, near, orr_hardware_at(i)->name);
    if (near)
        return cli_misuse(err, "unknown design '%s'; did you mean '%s'?", name, near);
    return cli_misuse(err, "unknown design '%s'; 'orrery gemm --list-designs' shows them", name);
}
