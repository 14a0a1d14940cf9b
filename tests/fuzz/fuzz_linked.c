/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_linked.c - any bytes as a linked PyTorch trace, read and converted in both ways, and played
 * through.  What is refused must have a place and words; what is taken must be a graph that can be
 * run. */
#include <orrery/lab/compat.h>
#include <orrery/lab/pytorch.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* Take nodes away that wait for nothing until all are gone. */
static bool can_run(const orr_columns *c)
{
    uint8_t *is_done = calloc(c->count + 1, 1);
    uint32_t done = 0, before;
    require(is_done);
    do {
        before = done;
        for (uint32_t i = 0; i < c->count; i++) {
            bool waits = is_done[i];
            for (uint32_t e = c->data_first[i]; e < c->data_first[i + 1] && !waits; e++)
                waits = !is_done[c->data_dep[e]];
            is_done[i] |= !waits;
            done += !waits;
        }
    } while (done != before);
    free(is_done);
    return done == c->count;
}

static void check_trace(const orr_trace *t, bool is_compat)
{
    const orr_columns *c = orr_trace_columns(t);
    require(c->is_ascending && c->data_missing + c->duplicate_ids == 0);
    require(is_compat || c->ctrl_missing == 0);
    require(c->count > 3000 || can_run(c));
}

static void count_line(void *sink, const char *line)
{
    require(line[0] == 'I' || line[0] == 'C' || line[0] == 'G');
    ++*(uint64_t *)sink;
}

static void convert(const orr_linked *l, bool is_compat)
{
    orr_error err;
    orr_trace *t;
    uint64_t lines = 0;
    const orr_code code = orr_linked_trace(l, NULL, &t, NULL, &err);
    require(!code == (t != NULL));
    if (code) {
        require(code == ORR_EINPUT && err.message[0] && err.where.line);
        return;
    }
    check_trace(t, is_compat);
    if (is_compat) {
        require(orr_linked_simulate(l, count_line, &lines, &err) == ORR_OK);
        require(lines == 2 * (uint64_t)orr_trace_columns(t)->count);
    }
    orr_trace_destroy(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int is_compat = 0; is_compat < 2; is_compat++) {
        const orr_linked_options opt = {
            .rules = is_compat ? orr_compat_at(ORR_RULES_CONVERT, 0)->convert : NULL};
        orr_linked *l;
        orr_error err;
        const orr_code code = orr_linked_parse((orr_span){data, size}, "l.json", &opt, &l, &err);
        require(!code == (l != NULL));
        if (code)
            require(code == ORR_EINPUT && err.message[0] && err.where.line && err.where.column);
        else
            convert(l, is_compat);
        orr_linked_free(l);
    }
    return 0;
}
