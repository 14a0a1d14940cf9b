/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - the words unit tests are written in, over cmocka.
 *
 *     #include "check.h"
 *     #include "base/memory/memory.h"
 *
 *     TEST(test_memory__zeroed_refuses_overflow)
 *     {
 *         CHECK(orr_arena_zeroed(a, SIZE_MAX, 2) == NULL);
 *     }
 *
 *     int main(void)
 *     {
 *         const CMUnitTest tests[] = {RUN(test_memory__zeroed_refuses_overflow)};
 *         return RUN_ALL(tests);
 *     }
 *
 * A failed check prints both sides, file and line, and ends that one test.  Values that are
 * compared are evaluated once.  Tests may write files under any name: they run in a folder of their
 * own, which is gone afterwards.  check_golden() finds files of the golden data. */
#ifndef ORR_TESTS_CHECK_H
#define ORR_TESTS_CHECK_H

#include <orrery/error.h>

#include <ftw.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct CMUnitTest CMUnitTest;

#define TEST(name) static void name(void **state __attribute__((unused)))
#define RUN(name) cmocka_unit_test(name)
#define RUN_ALL(tests) cmocka_run_group_tests(tests, NULL, NULL)

#define CHECK(condition)                                                \
    do {                                                                \
        if (!(condition))                                               \
            check_fail(__FILE__, __LINE__, "not true: %s", #condition); \
    } while (0)

#define CHECK_EQ(a, b) check_eq_i64((int64_t)(a), (int64_t)(b), #a, #b, __FILE__, __LINE__)
#define CHECK_EQ_U(a, b) check_eq_u64((uint64_t)(a), (uint64_t)(b), #a, #b, __FILE__, __LINE__)
#define CHECK_EQ_PS(a, b) CHECK_EQ(a, b)
#define CHECK_TEXT(a, b) check_eq_text((a), (b), #a, #b, __FILE__, __LINE__)
#define CHECK_BYTES(a, b, n) check_eq_bytes((a), (b), (n), #a, #b, __FILE__, __LINE__)
/* A call that takes &err: on failure its words are shown. */
#define CHECK_OK(call, err) check_code((call), ORR_OK, (err), #call, __FILE__, __LINE__)
#define CHECK_CODE(call, code, err) check_code((call), (code), (err), #call, __FILE__, __LINE__)
/* The error's words contain this text. */
#define CHECK_SAYS(err, part) check_says((err), (part), __FILE__, __LINE__)

/* ---- the folder of a program's tests ---- */

static char check_folder[4096];
static pid_t check_owner;

/* Before main(), which may write files already.  Run by hand from the root of the tree, a program
 * finds its inputs without tests/run. */
__attribute__((constructor)) static void check_enter_folder(void)
{
    char root[4096];
    const char *tmp = getenv("TMPDIR");
    if (!getenv("ORR_ROOT") && getcwd(root, sizeof root))
        setenv("ORR_ROOT", root, 0);
    snprintf(check_folder, sizeof check_folder, "%s/orrery-unit-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(check_folder) || chdir(check_folder) != 0) {
        perror(check_folder);
        _exit(1);
    }
    check_owner = getpid();
}

static int check_remove(const char *path,
                        const struct stat *st __attribute__((unused)),
                        int type __attribute__((unused)),
                        struct FTW *ftw __attribute__((unused)))
{
    remove(path);
    return 0;
}

__attribute__((destructor)) static void check_leave_folder(void)
{
    if (getpid() == check_owner && chdir("/") == 0) /* a forked child leaves it alone */
        nftw(check_folder, check_remove, 16, FTW_DEPTH | FTW_PHYS);
}

__attribute__((format(printf, 3, 4), unused)) static void check_fail(const char *file,
                                                                     int line,
                                                                     const char *fmt,
                                                                     ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    print_error("%s\n", text);
    _fail(file, line);
}

__attribute__((unused)) static void check_eq_i64(
    int64_t a, int64_t b, const char *sa, const char *sb, const char *file, int line)
{
    if (a != b)
        check_fail(file, line, "%s is %" PRId64 ", %s is %" PRId64, sa, a, sb, b);
}

__attribute__((unused)) static void check_eq_u64(
    uint64_t a, uint64_t b, const char *sa, const char *sb, const char *file, int line)
{
    if (a != b)
        check_fail(file, line, "%s is %" PRIu64 ", %s is %" PRIu64, sa, a, sb, b);
}

__attribute__((unused)) static void check_eq_text(
    const char *a, const char *b, const char *sa, const char *sb, const char *file, int line)
{
    if (!a || !b || strcmp(a, b) != 0)
        check_fail(file, line, "%s is\n  \"%s\"\n%s is\n  \"%s\"", sa, a ? a : "(null)", sb,
                   b ? b : "(null)");
}

__attribute__((unused)) static void check_eq_bytes(const void *a,
                                                   const void *b,
                                                   size_t n,
                                                   const char *sa,
                                                   const char *sb,
                                                   const char *file,
                                                   int line)
{
    const unsigned char *x = (const unsigned char *)a, *y = (const unsigned char *)b;
    for (size_t i = 0; i < n; i++) {
        if (x[i] != y[i])
            check_fail(file, line, "%s and %s differ at byte %zu: %02x, %02x", sa, sb, i, x[i],
                       y[i]);
    }
}

__attribute__((unused)) static void check_code(
    orr_code got, orr_code want, const orr_error *err, const char *call, const char *file, int line)
{
    char text[600] = "";
    if (got == want)
        return;
    if (err && got != ORR_OK && got != ORR_END)
        orr_error_text(err, text, sizeof text);
    check_fail(file, line, "%s gave code %d, expected %d: %s", call, (int)got, (int)want, text);
}

__attribute__((unused)) static void check_says(const orr_error *err,
                                               const char *part,
                                               const char *file,
                                               int line)
{
    char text[600];
    orr_error_text(err, text, sizeof text);
    if (!strstr(text, part))
        check_fail(file, line, "the error says\n  \"%s\"\nwithout\n  \"%s\"", text, part);
}

/* The path of a file of the golden data (tests/golden/data), which tests/run unpacks:
 * "chakra/feeder/chain.et". */
__attribute__((unused)) static const char *check_golden(char *out, size_t size, const char *name)
{
    const char *root = getenv("ORR_GOLDEN");
    snprintf(out, size, "%s/%s", root ? root : "(ORR_GOLDEN is not set)", name);
    CHECK(access(out, R_OK) == 0);
    return out;
}

/* The path of a file of the source tree, such as "tests/broken/et/cut.et". */
__attribute__((unused)) static const char *check_source(char *out, size_t size, const char *name)
{
    const char *root = getenv("ORR_ROOT");
    snprintf(out, size, "%s/%s", root ? root : ".", name);
    return out;
}

#endif
