/* SPDX-License-Identifier: Apache-2.0 */
/* json_out.c - the JSON that commands print, through the library's writer. */
#include "json_out.h"

#include <stdio.h>
#include <stdlib.h>

static orr_json_writer *open_with(cli_json *j, const char *format, orr_json_style style)
{
    *j = (cli_json){0};
    orr_json_writer_init(&j->writer, &j->text, &style);
    orr_json_begin_object(&j->writer);
    orr_json_put_text(&j->writer, "format", format);
    orr_json_put_u64(&j->writer, "version", 1);
    return &j->writer;
}

orr_json_writer *cli_json_open(cli_json *j, const char *format)
{
    return open_with(j, format, (orr_json_style){.spaced = true});
}

orr_json_writer *cli_json_open_tight(cli_json *j, const char *format)
{
    return open_with(j, format, (orr_json_style){0});
}

void cli_json_close(cli_json *j)
{
    orr_json_end_object(&j->writer);
    orr_buf_byte(&j->text, '\n');
    if (j->text.failed) { /* half an object would be worse than none */
        fputs("orrery: out of memory\n", stderr);
        exit(4);
    }
    fwrite(j->text.ptr, 1, j->text.len, stdout);
    orr_buf_fini(&j->text);
}
