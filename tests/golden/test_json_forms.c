/* SPDX-License-Identifier: Apache-2.0 */
/* test_json_forms.c - every sound trace of the golden data to JSON in all forms, and back: the
 * bytes must be those of the file.  The damaged ones must be refused with the place of the
 * damage. */
#include "golden.h"

#include <orrery/view.h>

static bool fail(const orr_error *err, const char *what, char *why, size_t size)
{
    char text[500];
    orr_error_text(err, text, sizeof text);
    snprintf(why, size, "%s: %s", what, text);
    return false;
}

static bool is_same_file(const char *a, const char *b)
{
    size_t n = 0, m = 0;
    char *x = golden_file(a, &n), *y = golden_file(b, &m);
    const bool is_same = x && y && n == m && memcmp(x, y, n) == 0;
    free(x);
    free(y);
    return is_same;
}

/* To `form` and back, into back.et. */
static bool go_round(const orr_trace *t, orr_view_form form, char *why, size_t size)
{
    const orr_view_json_options opt = {.size = sizeof opt, .form = form};
    orr_trace *back;
    orr_error err;
    if (orr_view_json(t, "there.json", &opt, &err))
        return fail(&err, "writing JSON", why, size);
    if (orr_trace_read("there.json", NULL, &back, &err))
        return fail(&err, "reading JSON", why, size);
    const orr_code code = orr_trace_write(back, "back.et", NULL, &err);
    orr_trace_destroy(back);
    return code ? fail(&err, "writing", why, size) : true;
}

/* What the old jsonizer does not print cannot come back from its form. */
static bool is_lost(const char *path, orr_view_form form)
{
    return form == ORR_VIEW_CONCAT && golden_ends_in(path, "unknown_field.et");
}

static bool check_forms(const orr_trace *t, const char *path, char *why, size_t size)
{
    static const char *const names[] = {"json", "jsonl", "concat"};
    orr_error err;
    if (orr_trace_write(t, "direct.et", NULL, &err))
        return fail(&err, "writing", why, size);
    for (orr_view_form form = ORR_VIEW_JSON; form <= ORR_VIEW_CONCAT; form++) {
        if (!go_round(t, form, why, size))
            return false;
        if (is_same_file("direct.et", "back.et") == is_lost(path, form)) {
            snprintf(why, size, "%s: the bytes that come back are wrong", names[form]);
            return false;
        }
    }
    return true;
}

static bool is_damaged(const char *path)
{
    static const char *const names[] = {
        "/bad_utf8.et",      "/empty.et",         "/garbage.et",       "/truncated.et",
        "/zero_len_node.et", "/truncated_len.et", "/truncated_mid.et", "/unknown_enum.et"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (golden_ends_in(path, names[i]))
            return true;
    return false;
}

static bool check_one(const char *path, char *why, size_t size)
{
    orr_error err;
    orr_trace *t;
    const orr_code code = orr_trace_read(path, NULL, &t, &err);
    if (code && is_damaged(path) && code == ORR_EINPUT && err.where.byte != ORR_NO_BYTE)
        return true;
    if (code)
        return fail(&err, "reading", why, size);
    const bool is_good = !is_damaged(path) && check_forms(t, path, why, size);
    orr_trace_destroy(t);
    return is_good;
}

int main(void)
{
    return golden_each("chakra", ".et", check_one);
}
