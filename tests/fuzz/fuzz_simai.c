/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_simai.c - any bytes as a workload of SimAI.  What is refused must have words, and a place
 * unless it is too large; what is taken must be one body in order, with groups that cover the ranks. */
#include <orrery/lab/simai.h>
#include <orrery/trace.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_set(const orr_set *s, const orr_simai_report *r)
{
    const orr_columns *c = orr_trace_columns(orr_set_trace(s, 0));
    uint64_t members = 0;
    require(orr_set_rank_count(s) == r->ranks && orr_set_class_count(s) == 1);
    require(c->is_ascending && c->is_topological && c->data_missing + c->ctrl_missing == 0);
    for (uint32_t g = 0; g < orr_set_group_count(s); g++)
        members += orr_set_group(s, g).count;
    require(members == 4 * (uint64_t)r->ranks); /* each rank has a group along each axis */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const orr_simai_options opt = {.ranks = 16, .passes = 2};
    orr_simai_report report;
    orr_set *s;
    orr_error err;
    const orr_code code =
        orr_simai_parse((orr_span){data, size}, "workload.txt", &opt, &s, &report, &err);
    require(!code == (s != NULL));
    if (code)
        require((code == ORR_EINPUT || code == ORR_EUSAGE) && err.message[0]);
    else
        check_set(s, &report);
    orr_set_close(s);
    return 0;
}
