/* SPDX-License-Identifier: Apache-2.0 */
/* chakra_view.c - the graphs of chakra_visualizer (chakra.md 7) and the timelines of
 * chakra_timeline_visualizer (9), byte for byte.
 *
 * The DOT text is that of the Python package graphviz: a statement per node, followed by one per
 * dependency.  DOT identifiers and numbers are not quoted; in all other names an unescaped quote
 * gets a backslash.  A name that ends in a single backslash would escape the closing quote, which
 * crashes the original; here the backslash is doubled. */
#include "chakra.h"

#include "base/formats/json.h"
#include "base/io/output.h"
#include "base/text/number.h"
#include "base/text/text.h"
#include "trace/formats/issue_log_impl.h"
#include "views/graph_view_impl.h"

#include <string.h>
#include <strings.h>

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Digits with at most one decimal point. */
static bool is_numeral(orr_str s)
{
    size_t points = 0, digits = 0;
    for (size_t i = 0; i < s.len; i++) {
        points += s.ptr[i] == '.';
        digits += orr_is_digit(s.ptr[i]);
    }
    return digits > 0 && points <= 1 && points + digits == s.len;
}

static bool is_keyword(orr_str s)
{
    static const char *const words[] = {"node", "edge", "graph", "digraph", "subgraph", "strict"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == s.len && strncasecmp(words[i], s.ptr, s.len) == 0)
            return true;
    return false;
}

static bool is_identifier(orr_str s)
{
    if (s.len == 0)
        return false;
    if (!is_letter(s.ptr[0]))
        return is_numeral(s);
    for (size_t i = 1; i < s.len; i++)
        if (!is_letter(s.ptr[i]) && !orr_is_digit(s.ptr[i]))
            return false;
    return !is_keyword(s);
}

/* The quoted text: quotes and the special characters of records are escaped. */
static void put_escaped(orr_buf *b, orr_str s)
{
    size_t slashes = 0; /* number of backslashes just before the character */
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.ptr[i];
        if (c == '\0') { /* would end the string for Graphviz */
            orr_buf_text(b, "\xEF\xBF\xBD");
            slashes = 0;
            continue;
        }
        if (strchr("{}()<>[]|&-", c) || (c == '"' && slashes % 2 == 0))
            orr_buf_byte(b, '\\');
        orr_buf_byte(b, (uint8_t)c);
        slashes = c == '\\' ? slashes + 1 : 0;
    }
    if (slashes % 2)
        orr_buf_byte(b, '\\');
}

static void put_label(orr_buf *b, orr_str name)
{
    if (is_identifier(name)) {
        orr_buf_add(b, name.ptr, name.len);
        return;
    }
    orr_buf_byte(b, '"');
    put_escaped(b, name);
    orr_buf_byte(b, '"');
}

static void put_edges(orr_buf *b, orr_list deps, uint64_t to, uint64_t shift, const char *head)
{
    orr_value dep;
    while (orr_list_next(&deps, &dep)) {
        orr_buf_byte(b, '\t');
        orr_buf_u64(b, dep.u + shift);
        orr_buf_text(b, " -> ");
        orr_buf_u64(b, to);
        orr_buf_print(b, " [arrowhead=%s]\n", head);
    }
}

static void put_node(orr_buf *b, const orr_node *node, uint64_t shift)
{
    const uint64_t id = node->id + shift;
    orr_buf_byte(b, '\t');
    orr_buf_u64(b, id);
    orr_buf_text(b, " [label=");
    put_label(b, node->name);
    orr_buf_text(b, " id=");
    orr_buf_u64(b, id);
    orr_buf_text(b, " shape=record]\n");
    put_edges(b, orr_node_data_deps(node), id, shift, "normal");
    put_edges(b, orr_node_ctrl_deps(node), id, shift, "tee");
}

static orr_code write_dot(const orr_trace *t, uint64_t id_shift, orr_buf *b, orr_error *err)
{
    const uint32_t count = orr_trace_columns(t)->count;
    orr_buf_text(b, "digraph {\n");
    for (uint32_t i = 0; i < count; i++) {
        orr_node node;
        orr_trace_node(t, i, &node);
        put_node(b, &node, id_shift);
    }
    orr_buf_text(b, "}\n");
    return b->failed ? orr_no_memory(err) : ORR_OK;
}

const orr_rules_view chakra_view_rules = {.write_dot = write_dot, .has_bare_nodes = true};

/* ---- timelines ----
 *
 * How chakra_timeline_visualizer reads a log, and the file it writes (chakra.md 9).
 *
 * Times are doubles divided in its order: cycle / MHz / 1000 and cycles / (MHz * 1000), in
 * milliseconds although viewers expect microseconds. */

enum { DRAIN_AT = 1 << 16 };

static void put_double(orr_buf *b, const char *key, double v)
{
    char text[ORR_NUMBER_ROOM];
    orr_buf_text(b, key);
    orr_buf_add(b, text, orr_double_text(v, text));
}

static void put_number(orr_buf *b, const char *key, uint64_t v)
{
    orr_buf_text(b, key);
    orr_buf_u64(b, v);
}

static void put_event(orr_buf *b, const orr_issue_log *log, const issue_row *i, uint32_t mhz)
{
    const double ms = (double)(i->ended - i->issued) / ((double)mhz * 1000.0);
    put_number(b, "{\"pid\": ", i->rank);
    put_number(b, ", \"tid\": ", i->kind);
    put_double(b, ", \"ts\": ", (double)i->issued / (double)mhz / 1000.0);
    put_double(b, ", \"dur\": ", ms);
    orr_buf_text(b, ", \"ph\": \"X\", \"name\": ");
    orr_json_quote(b, orr_intern_get(log->names, i->name), true);
    put_double(b, ", \"args\": {\"ms\": ", ms);
    orr_buf_text(b, "}}");
}

static void put_events(orr_output *o, orr_buf *b, const orr_issue_log *log, uint32_t mhz)
{
    for (size_t k = 0; k < log->done_count && !orr_output_has_failed(o); k++) {
        if (k)
            orr_buf_text(b, ", ");
        put_event(b, log, &log->issues[log->done[k]], mhz);
        if (b->len >= DRAIN_AT)
            orr_output_drain(o, b);
    }
}

static orr_code write_file(
    const orr_issue_log *log, uint32_t ranks, uint32_t mhz, const char *path, orr_error *err)
{
    orr_buf b = {0};
    orr_output *o;
    if (mhz == 0)
        return orr_fail(err, ORR_EUSAGE, NULL, "a frequency of 0 MHz");
    const orr_code code = orr_output_open(path, &o, err);
    if (code)
        return code;
    orr_buf_text(&b, "{\"meta_user\": \"aras\", \"traceEvents\": [");
    put_events(o, &b, log, mhz);
    put_number(&b, "], \"meta_cpu_count\": ", ranks);
    orr_buf_byte(&b, '}');
    const bool failed = b.failed;
    orr_output_drain(o, &b);
    orr_buf_fini(&b);
    if (!failed)
        return orr_output_commit(&o, err);
    orr_output_discard(o);
    return orr_no_memory(err);
}

const orr_rules_issue_log chakra_timeline_rules = {.any_line = true,
                                                   .any_time = true,
                                                   .short_names = true,
                                                   .needs_kind = true,
                                                   .write = write_file};
