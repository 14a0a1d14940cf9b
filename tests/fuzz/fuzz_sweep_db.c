/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_sweep_db.c - any bytes as the database of a sweep that someone sent: its state, its table in every form, a plot, and
 * merged into another.  What is refused has words.  SQLite wants a path, so the bytes lie in a file of /dev/shm, which is memory. */
#include "fuzz_trace.h"

#include <orrery/lab/sweep.h>

static void write_all(const orr_sweep_table *t, const uint8_t *data, size_t size)
{
    orr_error err = {0};
    const orr_sweep_plot plot = {.x = "tp", .y = "simulated_ns"};
    FUZZ_WAYS(format, ORR_SWEEP_HTML + 1, data, size)
    if (orr_sweep_table_write(t, (orr_sweep_format)format, "/dev/null", &err))
        REQUIRE(err.message[0]);
    if (orr_sweep_table_plot(t, &plot, "/dev/null", &err))
        REQUIRE(err.message[0]);
}

/* Making a database takes longer than all the rest: when fuzzing it is one input in 64 that has it. */
#ifdef FUZZ_ONE_WAY
#define IS_MERGED(data, size) (fuzz_pick(data, size, 64) == 0)
#else
#define IS_MERGED(data, size) true
#endif

static void merge(const char *path)
{
    char to[80];
    orr_sweep_state state;
    orr_error err = {0};
    snprintf(to, sizeof to, "%s.merged", path);
    if (orr_sweep_merge(to, &path, 1, &state, &err)) {
        REQUIRE(err.message[0]);
        unlink(to);
        return;
    }
    REQUIRE(state.done <= state.points && unlink(to) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const orr_sweep_query queries[] = {
        {.size = sizeof(orr_sweep_query), .with_failed = true},
        {.size = sizeof(orr_sweep_query),
         .where = "tp > 0",
         .sort = "-tp",
         .by_goal = true,
         .brief = true}};
    const char *path = fuzz_shm_file(data, size);
    orr_sweep_state state;
    orr_sweep_table *t;
    orr_error err = {0};
    if (orr_sweep_status(path, &state, &err))
        REQUIRE(err.message[0]);
    if (IS_MERGED(data, size))
        merge(path);
    FUZZ_WAYS(i, 2, data, size)
    {
        if (orr_sweep_table_open(path, &queries[i], &t, &err)) {
            REQUIRE(err.message[0]);
            continue;
        }
        if (i == 0)
            write_all(t, data, size);
        orr_sweep_table_close(t);
    }
    return 0;
}
