/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <orrery/lab/serve.h>

static orr_code parse(const char *text, orr_serve_request **out, size_t *count, orr_error *err)
{
    return orr_requests_parse((orr_span){(const uint8_t *)text, strlen(text)}, "q.csv", out, count,
                              err);
}

static void check_error(const char *text, uint32_t line, uint32_t column, const char *words)
{
    orr_serve_request *q;
    size_t n;
    orr_error err;
    CHECK_CODE(parse(text, &q, &n, &err), ORR_EINPUT, &err);
    CHECK(q == NULL);
    CHECK_EQ_U(n, 0);
    CHECK_EQ_U(err.where.line, line);
    CHECK_EQ_U(err.where.column, column);
    CHECK_SAYS(&err, words);
}

TEST(test_serve_requests__columns_by_name)
{
    orr_serve_request *q;
    size_t n;
    orr_error err;
    CHECK_OK(
        parse("model,output,arrival_us,prompt\n# a remark\nx,3,0,100\ny,4,7,200\n", &q, &n, &err),
        &err);
    CHECK_EQ_U(n, 2);
    CHECK_EQ_U(q[1].arrival_us, 7);
    CHECK_EQ_U(q[1].prompt, 200);
    CHECK_EQ_U(q[1].output, 4);
    orr_requests_free(q);
}

TEST(test_serve_requests__sorted_by_arrival_in_file_order)
{
    /* Outputs tell where a row stood. */
    orr_serve_request *q;
    size_t n;
    orr_error err;
    static const uint64_t expected[] = {3, 6, 2, 5, 1, 4, 7};
    CHECK_OK(parse("arrival_us,prompt,output\n9,1,1\n5,1,2\n0,1,3\n9,1,4\n5,1,5\n0,1,6\n9,1,7\n",
                   &q, &n, &err),
             &err);
    CHECK_EQ_U(n, 7);
    for (size_t i = 0; i < n; i++)
        CHECK_EQ_U(q[i].output, expected[i]);
    orr_requests_free(q);
}

TEST(test_serve_requests__errors_have_a_place)
{
    check_error("", 1, 1, "empty");
    check_error("# nothing\n", 1, 1, "empty");
    check_error("arrival_us,prompt,output\n", 1, 1, "no requests after the header row");
    check_error("0,100,3\n", 1, 1, "no column arrival_us");
    check_error("arrival_us,prompt\n0,1\n", 1, 1, "no column output");
    check_error("arrival_us,prompt,output,prompt\n0,1,1,1\n", 1, 26, "a second column prompt");
    check_error("arrival_us,prompt,output\n0,1,1\n0,x,1\n", 3, 3,
                "prompt: \"x\" is not a whole number from 1 to 16777216");
    check_error("arrival_us,prompt,output\n0,0,1\n", 2, 3, "prompt: \"0\"");
    check_error("arrival_us,prompt,output\n0,1,16777217\n", 2, 5, "output: \"16777217\"");
    check_error("arrival_us,prompt,output\n-1,1,1\n", 2, 1, "arrival_us: \"-1\"");
    check_error("arrival_us,prompt,output\n0,1\n", 2, 1, "2 fields: there is none for output");
}

TEST(test_serve_requests__missing_file)
{
    orr_serve_request *q;
    size_t n;
    orr_error err;
    CHECK_CODE(orr_requests_read("no/such/file.csv", &q, &n, &err), ORR_EIO, &err);
    CHECK(q == NULL);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_serve_requests__columns_by_name),
        RUN(test_serve_requests__sorted_by_arrival_in_file_order),
        RUN(test_serve_requests__errors_have_a_place),
        RUN(test_serve_requests__missing_file),
    };
    return RUN_ALL(tests);
}
