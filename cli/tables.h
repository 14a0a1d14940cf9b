/* SPDX-License-Identifier: Apache-2.0 */
/* tables.h - what orrery_tables (a program for the build) can print; each returns an exit status. */
#ifndef ORR_CLI_TABLES_H
#define ORR_CLI_TABLES_H

#include "command.h"

int tables_man(const char *page, const char *template_path);
int tables_bash(void);
int tables_zsh(void);
int tables_fish(void);

#endif
