/* SPDX-License-Identifier: Apache-2.0 */
#include "files.h"

#include "base/io/input.h"
#include "base/io/output.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static orr_error err;

static void check_unpacked(const char *path, const void *bytes, size_t len)
{
    orr_input *in;
    CHECK_OK(orr_input_open(path, &in, &err), &err);
    CHECK_EQ_U(orr_input_bytes(in).len, len);
    CHECK_BYTES(orr_input_bytes(in).ptr, bytes, len);
    orr_input_close(in);
}

/* A whole file at once. */
static orr_code save(const char *path, const void *p, size_t n, orr_error *e)
{
    orr_output *o;
    const orr_code code = orr_output_open(path, &o, e);
    if (code)
        return code;
    orr_output_add(o, p, n);
    return orr_output_commit(&o, e);
}

TEST(test_output__a_file_appears_whole_at_commit)
{
    orr_output *o;
    CHECK_OK(orr_output_open("new", &o, &err), &err);
    orr_output_add(o, "abc", 3);
    CHECK(access("new", F_OK) != 0);
    orr_output_add(o, "", 0);
    orr_output_add(o, "def", 3);
    CHECK(!orr_output_has_failed(o));
    CHECK_OK(orr_output_commit(&o, &err), &err);
    CHECK(o == NULL);
    check_file("new", "abcdef", 6);
    CHECK_EQ_U(count_names("."), 1);
    unlink("new");
}

TEST(test_output__discard_leaves_nothing_behind)
{
    orr_output *o;
    CHECK_EQ(mkdir("d", 0777), 0);
    write_file("d/old", "old", 3);
    CHECK_OK(orr_output_open("d/old", &o, &err), &err);
    orr_output_add(o, "new", 3);
    orr_output_discard(o);
    orr_output_discard(NULL);
    check_file("d/old", "old", 3);
    CHECK_EQ_U(count_names("d"), 1);
    unlink("d/old");
    rmdir("d");
}

/* A large part must not overtake small ones that still wait to be written. */
TEST(test_output__parts_of_all_sizes_stay_in_order)
{
    static const char *const names[] = {"f", "f.gz", "f.zst"};
    static const size_t parts[] = {10,     140000, 5,      262144, 0,      131072, 131072,
                                   131073, 1,      262143, 2,      700000, 3};
    size_t total = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        total += parts[i];
    uint8_t *bytes = some_bytes(total);
    for (unsigned k = 0; k < 3; k++) {
        orr_output *o;
        size_t at = 0;
        CHECK_OK(orr_output_open(names[k], &o, &err), &err);
        for (size_t i = 0; i < sizeof parts / sizeof *parts; at += parts[i++])
            orr_output_add(o, bytes + at, parts[i]);
        CHECK_OK(orr_output_commit(&o, &err), &err);
        check_unpacked(names[k], bytes, total);
        unlink(names[k]);
    }
    free(bytes);
}

TEST(test_output__random_parts_stay_in_order)
{
    uint64_t seed = 7;
    for (unsigned round = 0; round < 40; round++) {
        const size_t total = next_random(&seed) % 900000;
        uint8_t *bytes = some_bytes(total);
        orr_output *o;
        orr_buf gathered = {0};
        CHECK_OK(orr_output_open("f", &o, &err), &err);
        for (size_t at = 0, n; at < total; at += n) {
            n = next_random(&seed) % (next_random(&seed) % 4 ? 3000 : 300000);
            n = n < total - at ? n : total - at;
            if (n % 3 == 0) {
                orr_buf_add(&gathered, bytes + at, n);
                orr_output_drain(o, &gathered);
                CHECK_EQ_U(gathered.len, 0);
            } else {
                orr_output_add(o, bytes + at, n);
            }
        }
        CHECK_OK(orr_output_commit(&o, &err), &err);
        check_file("f", bytes, total);
        orr_buf_fini(&gathered);
        free(bytes);
    }
    unlink("f");
}

TEST(test_output__the_name_decides_about_packing)
{
    CHECK_OK(save("a.gz", "hello", 5, &err), &err);
    CHECK_OK(save("a.zst", "hello", 5, &err), &err);
    CHECK_OK(save("a.gzip", "hello", 5, &err), &err);
    CHECK_OK(save("empty.gz", NULL, 0, &err), &err);
    CHECK_OK(save("empty.zst", NULL, 0, &err), &err);
    CHECK_OK(save("empty", NULL, 0, &err), &err);
    orr_buf gz = read_file("a.gz"), zst = read_file("a.zst");
    CHECK_BYTES(gz.ptr, "\x1f\x8b", 2);
    CHECK_BYTES(zst.ptr, "\x28\xb5\x2f\xfd", 4);
    check_file("a.gzip", "hello", 5);
    check_unpacked("a.gz", "hello", 5);
    check_unpacked("a.zst", "hello", 5);
    check_unpacked("empty.gz", "", 0);
    check_unpacked("empty.zst", "", 0);
    check_file("empty", "", 0);
    orr_buf_fini(&gz);
    orr_buf_fini(&zst);
    const char *const all[] = {"a.gz", "a.zst", "a.gzip", "empty.gz", "empty.zst", "empty"};
    for (size_t i = 0; i < 6; i++)
        unlink(all[i]);
}

TEST(test_output__a_replaced_file_keeps_its_permissions)
{
    struct stat st;
    write_file("f", "old", 3);
    CHECK_EQ(chmod("f", 0640), 0);
    CHECK_OK(save("f", "new", 3, &err), &err);
    CHECK_EQ(stat("f", &st), 0);
    CHECK_EQ(st.st_mode & 0777, 0640);
    check_file("f", "new", 3);
    unlink("f");
}

TEST(test_output__what_cannot_be_written_says_why)
{
    CHECK_CODE(save("no/such/f", "x", 1, &err), ORR_EIO, &err);
    CHECK_SAYS(&err, "no/such/f: cannot create: No such file or directory");
    CHECK_EQ(mkdir("d", 0777), 0);
    CHECK_CODE(save("d", "x", 1, &err), ORR_EIO, &err);
    CHECK_SAYS(&err, "d: cannot write: Is a directory");
    CHECK_CODE(save("/dev/full", "x", 1, &err), ORR_EIO, &err);
    CHECK_SAYS(&err, "/dev/full: cannot write: No space left on device");
    CHECK_OK(save("/dev/null", "x", 1, &err), &err);
    CHECK_CODE(save("no/such/f", "x", 1, NULL), ORR_EIO, NULL);
    CHECK_EQ_U(count_names("."), 1);
    rmdir("d");
}

TEST(test_output__a_full_disk_leaves_the_old_file_and_nothing_else)
{
    struct rlimit old, small = {100000, RLIM_INFINITY};
    uint8_t *bytes = some_bytes(500000);
    write_file("f", "old", 3);
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    orr_output *o;
    CHECK_OK(orr_output_open("f", &o, &err), &err);
    orr_output_add(o, bytes, 500000);
    CHECK(orr_output_has_failed(o));
    CHECK_CODE(orr_output_commit(&o, &err), ORR_EIO, &err);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
    CHECK_SAYS(&err, "f: cannot write: File too large");
    check_file("f", "old", 3);
    CHECK_EQ_U(count_names("."), 1);
    unlink("f");
    free(bytes);
}

TEST(test_output__names_may_be_as_long_as_the_system_allows)
{
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    CHECK_OK(save(name, "x", 1, &err), &err);
    check_file(name, "x", 1);
    unlink(name);
}

TEST(test_output__a_dash_is_standard_output)
{
    const int old = dup(STDOUT_FILENO), fd = open("f", O_RDWR | O_CREAT | O_TRUNC, 0666);
    fflush(stdout);
    CHECK(dup2(fd, STDOUT_FILENO) == STDOUT_FILENO);
    close(fd);
    const orr_code code = save("-", "hello", 5, &err);
    const orr_code again = save("-", " you", 4, &err); /* it stays open */
    CHECK(dup2(old, STDOUT_FILENO) == STDOUT_FILENO);
    close(old);
    CHECK_OK(code, &err);
    CHECK_OK(again, &err);
    check_file("f", "hello you", 9);
    unlink("f");
}

TEST(test_output__a_buffer_without_memory_fails_the_file)
{
    orr_output *o;
    orr_buf failed = {.failed = true};
    CHECK_OK(orr_output_open("f", &o, &err), &err);
    orr_output_drain(o, &failed);
    CHECK(orr_output_has_failed(o));
    CHECK_CODE(orr_output_commit(&o, &err), ORR_ENOMEM, &err);
    CHECK(access("f", F_OK) != 0);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_output__a_file_appears_whole_at_commit),
        RUN(test_output__discard_leaves_nothing_behind),
        RUN(test_output__parts_of_all_sizes_stay_in_order),
        RUN(test_output__random_parts_stay_in_order),
        RUN(test_output__the_name_decides_about_packing),
        RUN(test_output__a_replaced_file_keeps_its_permissions),
        RUN(test_output__what_cannot_be_written_says_why),
        RUN(test_output__a_full_disk_leaves_the_old_file_and_nothing_else),
        RUN(test_output__names_may_be_as_long_as_the_system_allows),
        RUN(test_output__a_dash_is_standard_output),
        RUN(test_output__a_buffer_without_memory_fails_the_file),
    };
    return RUN_ALL(tests);
}
