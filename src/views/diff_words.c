/* SPDX-License-Identifier: Apache-2.0 */
/* diff_words.c - two runs side by side, as text and as JSON. */
#include "diff_impl.h"
#include "text_table.h"

#include "base/formats/json.h"

#include <orrery/lab/units.h>

static orr_code hand_over(const orr_diff *d, orr_buf *b, orr_str *out, orr_error *err)
{
    const char *text =
        b->failed ? NULL : orr_arena_text(d->store->arena, (orr_str){(char *)b->ptr, b->len});
    *out = (orr_str){text ? text : "", text ? b->len : 0};
    orr_buf_fini(b);
    return text ? ORR_OK : orr_no_memory(err);
}

/* ---- text ---- */

static const char *time_cell(orr_arena *a, orr_ps t)
{
    char text[ORR_UNIT_ROOM];
    return orr_arena_text(a, orr_str_of(orr_time_text(t, text)));
}

static const char *change_cell(orr_arena *a, orr_ps from, orr_ps to)
{
    char text[ORR_UNIT_ROOM];
    const orr_ps by = to - from;
    return orr_arena_print(a, "%s%s",
                           by < 0   ? "-"
                           : by > 0 ? "+"
                                    : "",
                           orr_time_text(by < 0 ? -by : by, text));
}

static const char *percent_cell(orr_arena *a, orr_ps from, orr_ps to)
{
    if (from == to)
        return "0.0%";
    return from ? orr_arena_print(a, "%+.1f%%", ((double)to - (double)from) * 100 / (double)from)
                : "new";
}

static void put_times(orr__table *t, orr_ps first, orr_ps second)
{
    orr__table_add(t, time_cell(t->arena, first));
    orr__table_add(t, time_cell(t->arena, second));
    orr__table_add(t, change_cell(t->arena, first, second));
    orr__table_add(t, percent_cell(t->arena, first, second));
}

static void put_heading(orr__table *t, const char *what)
{
    static const char *const words[] = {"first", "second", "change", "%"};
    orr__table_add(t, what);
    if (t->columns == 6)
        orr__table_add(t, "count");
    for (int i = 0; i < 4; i++)
        orr__table_add(t, words[i]);
}

static void put_whole(const orr_diff *d, const orr_diff_style *style, orr_buf *b)
{
    orr__table t = {.arena = d->store->arena, .columns = 5, .left = 1};
    for (int run = 0; run < 2; run++)
        orr_buf_print(b, "%s: %s, %u rank%s\n", run ? "second" : "first",
                      run ? style->second : style->first, d->ranks[run],
                      d->ranks[run] == 1 ? "" : "s");
    orr_buf_byte(b, '\n');
    put_heading(&t, "");
    orr__table_add(&t, "from begin to end");
    put_times(&t, d->whole[0], d->whole[1]);
    orr__table_print(&t, b);
}

static void put_kinds(const orr_diff *d, orr_buf *b)
{
    orr__table t = {.arena = d->store->arena, .columns = 5, .left = 1};
    orr_buf_text(b, "\nBy kind, time per rank\n");
    put_heading(&t, "");
    for (size_t i = 0; i < d->kind_count; i++) {
        orr__table_add(&t, orr__cell_text(t.arena, d->kinds[i].name));
        put_times(&t, orr__diff_mean(d, &d->kinds[i], 0), orr__diff_mean(d, &d->kinds[i], 1));
    }
    orr__table_print(&t, b);
}

static const char *count_cell(orr_arena *a, const orr_diff_row *r)
{
    char first[ORR_UNIT_ROOM], second[ORR_UNIT_ROOM];
    if (r->count[0] == r->count[1])
        return orr__cell_count(a, r->count[0]);
    return orr_arena_print(a, "%s/%s", orr_count_text(r->count[0], first),
                           orr_count_text(r->count[1], second));
}

static void put_operators(const orr_diff *d, size_t most, orr_buf *b)
{
    orr__table t = {.arena = d->store->arena, .columns = 6, .left = 1};
    const size_t shown = most && most < d->operator_count ? most : d->operator_count;
    orr_buf_print(b, "\nBy operator, time per rank");
    if (shown < d->operator_count)
        orr_buf_print(b, ", the first %zu of %zu", shown, d->operator_count);
    orr_buf_byte(b, '\n');
    put_heading(&t, "");
    for (size_t i = 0; i < shown; i++) {
        const orr_diff_row *r = &d->operators[i];
        orr__table_add(&t, orr__cell_text(t.arena, r->name));
        orr__table_add(&t, count_cell(t.arena, r));
        put_times(&t, orr__diff_mean(d, r, 0), orr__diff_mean(d, r, 1));
    }
    orr__table_print(&t, b);
}

orr_code orr_diff_text(const orr_diff *d, const orr_diff_style *style, orr_str *out, orr_error *err)
{
    orr_buf b = {0};
    put_whole(d, style, &b);
    put_kinds(d, &b);
    put_operators(d, style->most, &b);
    return hand_over(d, &b, out, err);
}

/* ---- JSON ---- */

static void put_pair(orr_json_writer *w, const char *key, int64_t first, int64_t second)
{
    orr_json_key(w, key);
    orr_json_begin_array(w);
    orr_json_i64(w, first);
    orr_json_i64(w, second);
    orr_json_end_array(w);
}

static void put_row(orr_json_writer *w, const orr_diff *d, const orr_diff_row *r, bool is_kind)
{
    orr_json_begin_object(w);
    if (!is_kind) {
        orr_json_key(w, "name");
        orr_json_str(w, r->name);
    }
    orr_json_key(w, "kind");
    orr_json_text(w, orr_span_kind_name(r->kind));
    put_pair(w, "count", (int64_t)r->count[0], (int64_t)r->count[1]);
    put_pair(w, "time_ps", r->time[0], r->time[1]);
    put_pair(w, "time_of_a_rank_ps", orr__diff_mean(d, r, 0), orr__diff_mean(d, r, 1));
    orr_json_end_object(w);
}

static void put_rows(
    orr_json_writer *w, const char *key, const orr_diff *d, const orr_diff_row *rows, size_t count)
{
    orr_json_key(w, key);
    orr_json_begin_array(w);
    for (size_t i = 0; i < count; i++)
        put_row(w, d, &rows[i], rows == d->kinds);
    orr_json_end_array(w);
}

orr_code orr_diff_json(const orr_diff *d, const orr_diff_style *style, orr_str *out, orr_error *err)
{
    orr_buf b = {0};
    orr_json_writer w;
    const size_t most = style->most;
    orr_json_writer_init(&w, &b, &(orr_json_style){.indent = 2});
    orr_json_begin_object(&w);
    orr_json_key(&w, "format");
    orr_json_text(&w, "orrery-diff");
    orr_json_key(&w, "version");
    orr_json_u64(&w, 1);
    if (style->program) {
        orr_json_key(&w, "program");
        orr_json_text(&w, style->program);
    }
    orr_json_key(&w, "inputs");
    orr_json_begin_array(&w);
    orr_json_text(&w, style->first);
    orr_json_text(&w, style->second);
    orr_json_end_array(&w);
    put_pair(&w, "ranks", d->ranks[0], d->ranks[1]);
    put_pair(&w, "whole_ps", d->whole[0], d->whole[1]);
    put_rows(&w, "kinds", d, d->kinds, d->kind_count);
    put_rows(&w, "operators", d, d->operators,
             most && most < d->operator_count ? most : d->operator_count);
    orr_json_end_object(&w);
    orr_buf_byte(&b, '\n');
    return hand_over(d, &b, out, err);
}
