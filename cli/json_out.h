/* SPDX-License-Identifier: Apache-2.0 */
/* json_out.h - the JSON object that a command prints: {"format": NAME, "version": 1, ...}.
 *
 *     cli_json j;
 *     orr_json_writer *w = cli_json_open(&j, "orrery-gen");
 *     orr_json_put_fields(w, ORR_U("ranks", 8));
 *     cli_json_close(&j);                              // now it is on stdout */
#ifndef ORR_CLI_JSON_OUT_H
#define ORR_CLI_JSON_OUT_H

#include "base/formats/json_fields.h"

typedef struct cli_json {
    orr_buf text;
    orr_json_writer writer;
} cli_json;

/* Members are parted by ", " and keys from values by ": "; cli_json_open_tight has no spaces. */
orr_json_writer *cli_json_open(cli_json *j, const char *format);
orr_json_writer *cli_json_open_tight(cli_json *j, const char *format);
void cli_json_close(cli_json *j);

#endif
