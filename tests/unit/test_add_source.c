/* SPDX-License-Identifier: Apache-2.0 */
/* The recipe "add a source" of src/sources/README.md, followed: a source whose input is one line
 * for each node, a name and microseconds or bytes.  "compute forward 5" and "allreduce gradients
 * 4096" become a chain of nodes. */
#include "check.h"

#include <orrery/trace.h>

#include "base/text/number.h"
#include "base/text/text.h"
#include "trace/builder.h"

static orr_error err;

/* ---- the source ---- */

static orr_str next_word(orr_str *line)
{
    size_t n = 0;
    while (n < line->len && line->ptr[n] != ' ')
        n++;
    const orr_str word = {line->ptr, n};
    n += n < line->len;
    *line = (orr_str){line->ptr + n, line->len - n};
    return word;
}

static void read_line(orr__builder *b, const char *path, uint32_t number, orr_str line)
{
    const orr_where at = orr_where_line(path, number, 1);
    const orr_str kind = next_word(&line), name = next_word(&line);
    const bool is_compute = orr_str_is(kind, "compute");
    uint64_t v;
    if ((!is_compute && !orr_str_is(kind, "allreduce")) || !orr_text_u64(line, &v)) {
        b->code = orr_fail(b->err, ORR_EINPUT, &at, "compute or allreduce, a name and a number");
        return;
    }
    orr__build_node(b, is_compute ? ORR_NODE_COMP : ORR_NODE_COMM_COLL, name);
    if (b->count)
        orr__build_after(b, b->next_id - 1);
    if (is_compute)
        b->node.duration_us = v;
    else
        orr__put_collective(b, ORR_COLL_ALL_REDUCE, v);
    orr__put_on_device(b);
    orr__build_add(b);
}

static orr_code parse_lines(orr_str text, const char *path, orr_trace **out, orr_error *e)
{
    orr__builder b;
    orr__build_open(&b, e);
    orr__build_trace(&b, "1.0.0");
    for (uint32_t number = 1; text.len && !b.code; number++) {
        const char *end = memchr(text.ptr, '\n', text.len);
        const size_t n = end ? (size_t)(end - text.ptr) : text.len;
        read_line(&b, path, number, (orr_str){text.ptr, n});
        text = (orr_str){text.ptr + n + (end != NULL), text.len - n - (end != NULL)};
    }
    return orr__build_seal(&b, out);
}

/* ---- its tests ---- */

TEST(test_add_source__lines_become_a_chain)
{
    orr_trace *t;
    const orr_str text = orr_str_of("compute forward 5\nallreduce gradients 4096\n");
    CHECK_OK(parse_lines(text, "lines.txt", &t, &err), &err);
    const orr_columns *c = orr_trace_columns(t);
    CHECK_EQ_U(c->count, 2);
    CHECK_EQ_U(c->duration_us[0], 5);
    CHECK_EQ_U(c->type[1], ORR_NODE_COMM_COLL);
    CHECK_EQ(c->comm_size[1], 4096);
    CHECK_EQ(c->is_cpu_op[1], 0);
    CHECK_EQ_U(c->data_missing, 0);
    orr_trace_destroy(t);
}

TEST(test_add_source__defects_have_a_place)
{
    orr_trace *t;
    const orr_str text = orr_str_of("compute forward 5\ncompute backward much\n");
    CHECK_CODE(parse_lines(text, "lines.txt", &t, &err), ORR_EINPUT, &err);
    CHECK_TEXT(err.where.path, "lines.txt");
    CHECK_EQ_U(err.where.line, 2);
    CHECK(t == NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(test_add_source__lines_become_a_chain),
        RUN(test_add_source__defects_have_a_place),
    };
    return RUN_ALL(tests);
}
