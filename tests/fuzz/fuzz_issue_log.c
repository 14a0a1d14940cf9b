/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_issue_log.c - any bytes as a log of issued nodes, in our way and in the old one.  What is
 * refused must have a place and words; what is taken in our way becomes a timeline. */
#include <orrery/lab/compat.h>
#include <orrery/lab/issue_log.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_timeline(const orr_issue_log *log, uint64_t hz)
{
    orr_timeline *t;
    orr_error err;
    if (orr_issue_log_timeline(log, hz, &t, &err)) {
        require(!t && err.message[0] && err.where.line);
        return;
    }
    const orr_timeline_parts *p = orr_timeline_view(t);
    require(p->span_count == orr_issue_log_count(log) + orr_issue_log_open_count(log));
    require(p->start >= 0 && p->start <= p->end);
    orr_timeline_destroy(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int is_compat = 0; is_compat < 2; is_compat++) {
        const orr_issue_log_options opt = {
            .ranks = is_compat ? 8 : 0,
            .rules = is_compat ? orr_compat_at(ORR_RULES_ISSUE_LOG, 0)->issue_log : NULL};
        orr_issue_log *log;
        orr_error err;
        if (orr_issue_log_parse((orr_span){data, size}, "log.csv", &opt, &log, &err)) {
            require(!log && err.message[0] && err.where.line && err.where.column);
            continue;
        }
        if (!is_compat)
            check_timeline(log, 1500000000);
        orr_issue_log_free(log);
    }
    return 0;
}
