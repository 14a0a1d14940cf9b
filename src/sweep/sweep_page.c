/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_page.c - a table as one HTML file: the object of `export json`, and the page that draws
 * it. */
#include "sweep_page.h"

#include "sweep_table.h"

#include "base/formats/json.h"
#include "base/io/output.h"

static void add_html(orr_buf *to, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            orr_buf_text(to, "&lt;");
        else if (*text == '&')
            orr_buf_text(to, "&amp;");
        else
            orr_buf_byte(to, (uint8_t)*text);
    }
}

orr_code swp_page_write(const orr_sweep_table *t, const char *path, orr_error *err)
{
    orr_buf json = {0}, page = {0};
    swp_table_json(t, &json);
    orr_buf_text(&page, orr__sweep_page_before_title);
    add_html(&page, t->title && *t->title ? t->title : "Sweep");
    orr_buf_text(&page, orr__sweep_page_before_data);
    orr_buf_text(&page, "<script type=\"application/json\" id=\"orrery-data\">");
    orr_json_in_page(&json, &page);
    orr_buf_text(&page, "</script>\n");
    orr_buf_text(&page, orr__sweep_page_after_data);
    const orr_code code = orr_output_save(&page, path, err);
    orr_buf_fini(&json);
    orr_buf_fini(&page);
    return code;
}
