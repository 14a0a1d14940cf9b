/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_page.c - a table as one HTML file: the object of `export json`, and the page that draws it. */
#include "sweep_page.h"

#include "sweep_table.h"

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

/* Nothing in a name may end the element: "<" stands in texts of JSON only. */
static void add_json(orr_buf *to, const orr_buf *json)
{
    for (size_t i = 0; i < json->len; i++) {
        if (json->ptr[i] == '<')
            orr_buf_text(to, "\\u003c");
        else
            orr_buf_byte(to, json->ptr[i]);
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
    add_json(&page, &json);
    orr_buf_text(&page, "</script>\n");
    orr_buf_text(&page, orr__sweep_page_after_data);
    page.failed = page.failed || json.failed;
    const orr_code code = orr_output_save(&page, path, err);
    orr_buf_fini(&json);
    orr_buf_fini(&page);
    return code;
}
