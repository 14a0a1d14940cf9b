/* SPDX-License-Identifier: Apache-2.0 */
/* room: nccl_generator, nsight */
/* fuzz_nccl.c - rows of exports as lines of text, into a file and through the whole way.  A line is
 * "START END TEXT" for NVTX or "kSTREAM START END NAME" for a kernel of process 1.  In our own way
 * what is written has been found to match; both ways end, and what is refused has words. */
#include "fuzz_trace.h"

#include "compat/nccl_generator/nccl_generator.h"

#include <orrery/lab/nccl.h>

#include "base/formats/sqlite_file.h"

#ifdef FUZZ_ONE_WAY
enum { MOST_ROWS = 6 };
#else
enum { MOST_ROWS = 12 };
#endif
enum { LONGEST = 400, MOST_DIGITS = 5 };

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* Counts of millions make schedules of millions of lines, which is as it should be, but slow:
 * behind words that end in "ount" long numbers are cut. */
static void shorten(char *line)
{
    char *to = line;
    size_t digits = 0;
    bool is_count = false;
    for (const char *from = line; *from; from++) {
        const bool is_digit = *from >= '0' && *from <= '9';
        if (is_digit && digits == 0)
            is_count = to - line >= 5 &&
                       (memcmp(to - 5, "ount ", 5) == 0 || memcmp(to - 5, "Lo32 ", 5) == 0 ||
                        memcmp(to - 5, "Hi32 ", 5) == 0);
        digits = is_digit ? digits + 1 : 0;
        if (!is_count || digits <= MOST_DIGITS)
            *to++ = *from;
    }
    *to = 0;
}

static orr_sqlite_value number(long long v)
{
    return (orr_sqlite_value){.is_int = true, .number = v};
}

static void add_line(orr_sqlite_rows *nvtx, orr_sqlite_rows *kernel, char *line)
{
    char *at = line, *end;
    long long n[3] = {0};
    const bool is_kernel = *at == 'k';
    at += is_kernel;
    for (int i = 0; i < (is_kernel ? 3 : 2); i++, at = end + (*end == ' '))
        n[i] = strtoll(at, &end, 10);
    shorten(at);
    if (is_kernel) {
        const orr_sqlite_value v[] = {
            number(n[1]), number(n[2]), number(n[0]), {.text = {at, strlen(at)}}};
        require(orr_sqlite_insert(kernel, v, 4, NULL) == ORR_OK);
        return;
    }
    const orr_sqlite_value v[] = {
        number(n[0]), n[1] < 0 ? (orr_sqlite_value){0} : number(n[1]), {.text = {at, strlen(at)}}};
    require(orr_sqlite_insert(nvtx, v, 3, NULL) == ORR_OK);
}

static void fill(orr_sqlite *db, const uint8_t *data, size_t size)
{
    static orr_sqlite_rows *nvtx, *kernel; /* compiled once */
    const char *at = (const char *)data, *end = at + size;
    char line[LONGEST];
    require(nvtx || orr_sqlite_select(db, "INSERT INTO NVTX_EVENTS VALUES (?, ?, ?)", &nvtx,
                                      NULL) == ORR_OK);
    require(kernel ||
            orr_sqlite_select(db,
                              "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT ?1, ?2, ?3, 16777216, "
                              "coalesce((SELECT id FROM StringIds WHERE value = ?4), 1)",
                              &kernel, NULL) == ORR_OK);
    for (int i = 0; i < MOST_ROWS && at < end; i++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const size_t length = (size_t)((stop ? stop : end) - at);
        snprintf(line, sizeof line, "%.*s", (int)(length < LONGEST ? length : LONGEST - 1), at);
        add_line(nvtx, kernel, line);
        at = stop ? stop + 1 : end;
    }
}

/* Statements are compiled once, and so are the tables made: both take longer than a row. */
static void do_it(orr_sqlite *db, orr_sqlite_rows **compiled, const char *sql)
{
    require(*compiled || orr_sqlite_select(db, sql, compiled, NULL) == ORR_OK);
    require(orr_sqlite_insert(*compiled, NULL, 0, NULL) == ORR_OK);
}

static const char *write_export(const uint8_t *data, size_t size)
{
    static const char *path;
    static orr_sqlite *db;
    static orr_sqlite_rows *begin, *no_nvtx, *no_kernels, *commit;
    if (!db) {
        path = fuzz_shm_file(NULL, 0);
        require(orr_sqlite_create(path, &db, NULL) == ORR_OK);
        require(
            orr_sqlite_run(
                db,
                "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
                "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, text TEXT);"
                "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
                "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, streamId INTEGER, globalPid INTEGER, "
                "demangledName INTEGER);"
                "INSERT INTO StringIds VALUES (1, 'ncclDevKernel_AllReduce_x'), (2, 'ncclDevKernel_SendRecv'), "
                "(3, 'ncclDevKernel_AllGather'), (4, 'NCCLodd')",
                NULL) == ORR_OK);
    }
    do_it(db, &begin, "BEGIN");
    do_it(db, &no_nvtx, "DELETE FROM NVTX_EVENTS");
    do_it(db, &no_kernels, "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL");
    fill(db, data, size);
    do_it(db, &commit, "COMMIT");
    return path;
}

/* With room for one GPU alone every step reads the export again: when fuzzing one input in sixteen does. */
#ifdef FUZZ_ONE_WAY
#define HAS_LITTLE_MEMORY(data, size) (fuzz_pick(data, size, 16) == 2)
#else
#define HAS_LITTLE_MEMORY(data, size) true
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    orr_nccl_report r;
    const char *path = write_export(data, size);
    const char *const paths[] = {path};
    FUZZ_WAYS(way, 4, data, size)
    {
        const orr_nccl_options opt = {.rules = way == 1 ? &ncg_rules : NULL,
                                      .is_merged = way == 2,
                                      .memory = way == 2 && HAS_LITTLE_MEMORY(data, size) ? 1 : 0,
                                      .tag_bits = way == 2 ? 32 : 0,
                                      .allows_unmatched = way == 3};
        orr_error err = {0};
        const orr_code code = orr_nccl_convert(paths, 1, &opt, &r, &err);
        require(code == ORR_OK || (code == ORR_EINPUT && err.message[0]));
        require(code || way == 1 || way == 3 || r.unmatched == 0);
    }
    return 0;
}
