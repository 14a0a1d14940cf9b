/* SPDX-License-Identifier: Apache-2.0 */
#include "files.h"

#include "base/io/input.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

static orr_error err;

typedef void (*packer)(orr_buf *b, const void *bytes, size_t len);
static const packer packers[] = {orr_buf_add, add_gzip, add_zstd};
enum { PACKERS = 3 };

static void check_input(const char *path, const void *bytes, size_t len)
{
    orr_input *in;
    CHECK_OK(orr_input_open(path, &in, &err), &err);
    const orr_span all = orr_input_bytes(in);
    CHECK_EQ_U(all.len, len);
    CHECK_BYTES(all.ptr, bytes, len);
    orr_input_close(in);
}

static void check_refused(const char *path, orr_code code, const char *words)
{
    orr_input *in = (orr_input *)&err; /* must become NULL */
    CHECK_CODE(orr_input_open(path, &in, &err), code, &err);
    CHECK(in == NULL);
    CHECK_SAYS(&err, words);
    CHECK_TEXT(err.where.path, path);
}

/* Sizes around what is read at once, what is mapped and what a window holds. */
static const size_t sizes[] = {0,      1,      3,      4,       5,      1000,
                               131071, 131072, 131073, 262143,  262144, 262145,
                               393216, 393233, 600000, 1048576, 1500001};

TEST(test_input__a_file_is_its_bytes_whatever_it_is_wrapped_in)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint8_t *bytes = some_bytes(sizes[i]);
        for (unsigned k = 0; k < PACKERS; k++) {
            orr_buf packed = {0};
            packers[k](&packed, bytes, sizes[i]);
            write_file("f", packed.ptr ? packed.ptr : bytes, packed.len);
            check_input("f", bytes, sizes[i]);
            orr_buf_fini(&packed);
        }
        free(bytes);
    }
}

TEST(test_input__many_frames_are_one_stream)
{
    uint8_t *bytes = some_bytes(300000);
    for (unsigned k = 1; k < PACKERS; k++) {
        orr_buf packed = {0};
        packers[k](&packed, bytes, 100);
        packers[k](&packed, bytes, 0);
        packers[k](&packed, bytes + 100, 200000);
        packers[k](&packed, bytes + 200100, 99900);
        orr_buf_add(&packed, "\0\0\0\0\0", 5); /* tape blocks are padded with zeros */
        write_file("f", packed.ptr, packed.len);
        check_input("f", bytes, 300000);
        orr_buf_add(&packed, "more", 4);
        write_file("f", packed.ptr, packed.len);
        check_refused("f", ORR_EINPUT, "not compressed data follows");
        CHECK_EQ_U(err.where.byte, 300000); /* in the unpacked stream */
        orr_buf_fini(&packed);
    }
    free(bytes);
}

TEST(test_input__packed_data_cut_anywhere_is_refused)
{
    const char text[] = "a trace of which a part is missing, missing, missing";
    for (unsigned k = 1; k < PACKERS; k++) {
        orr_buf packed = {0};
        packers[k](&packed, text, sizeof text);
        for (size_t n = 4; n < packed.len; n++) {
            write_file("f", packed.ptr, n);
            check_refused("f", ORR_EINPUT, "cut short");
            CHECK(err.where.byte <= sizeof text);
        }
        orr_buf_fini(&packed);
    }
}

TEST(test_input__damage_in_packed_data_never_passes_as_other_bytes)
{
    const char text[] = "a trace in which one bit has been turned over";
    orr_buf packed = {0};
    add_gzip(&packed, text, sizeof text);
    for (size_t bit = 16; bit < 8 * packed.len;
         bit++) { /* the first two bytes say that it is gzip */
        orr_input *in;
        packed.ptr[bit / 8] ^= (uint8_t)(1 << bit % 8);
        write_file("f", packed.ptr, packed.len);
        const orr_code code = orr_input_open("f", &in, &err);
        if (code == ORR_OK) { /* a bit of the header that means nothing: time, system */
            CHECK_EQ_U(orr_input_bytes(in).len, sizeof text);
            CHECK_BYTES(orr_input_bytes(in).ptr, text, sizeof text);
            orr_input_close(in);
        } else {
            CHECK_EQ(code, ORR_EINPUT);
        }
        packed.ptr[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    orr_buf_fini(&packed);
}

TEST(test_input__what_cannot_be_opened_says_why)
{
    check_refused("not-there", ORR_EIO, "not-there: cannot open: No such file or directory");
    CHECK_EQ_U(err.where.byte, ORR_NO_BYTE);
    CHECK_EQ(mkdir("folder", 0777), 0);
    check_refused("folder", ORR_EIO, "folder: is a directory");
    CHECK_CODE(orr_input_open("not-there", &(orr_input *){NULL}, NULL), ORR_EIO, NULL);
}

static int input_from(const char *path)
{
    const int old = dup(STDIN_FILENO), fd = open(path, O_RDONLY);
    CHECK(old >= 0 && fd >= 0);
    CHECK(dup2(fd, STDIN_FILENO) == STDIN_FILENO);
    close(fd);
    return old;
}

static void input_back(int old)
{
    CHECK(dup2(old, STDIN_FILENO) == STDIN_FILENO);
    close(old);
}

TEST(test_input__a_dash_is_standard_input)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i += 5) {
        uint8_t *bytes = some_bytes(sizes[i]);
        for (unsigned k = 0; k < PACKERS; k++) {
            orr_buf packed = {0};
            packers[k](&packed, bytes, sizes[i]);
            write_file("f", packed.ptr ? packed.ptr : bytes, packed.len);
            const int old = input_from("f");
            check_input("-", bytes, sizes[i]);
            input_back(old);
            orr_buf_fini(&packed);
        }
        free(bytes);
    }
}

TEST(test_input__standard_input_starts_where_somebody_left_it)
{
    uint8_t *bytes = some_bytes(300000);
    char seen[5];
    write_file("f", bytes, 300000);
    const int old = input_from("f");
    CHECK_EQ(read(STDIN_FILENO, seen, 5), 5);
    check_input("-", bytes + 5, 299995);
    input_back(old);
    free(bytes);
}

TEST(test_input__a_pipe_is_read_to_its_end)
{
    int ends[2];
    const int old = dup(STDIN_FILENO);
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(write(ends[1], "\x1f", 1),
             1); /* the first byte of a gzip file, and then something else */
    CHECK_EQ(write(ends[1], "abc", 3), 3);
    close(ends[1]);
    CHECK(dup2(ends[0], STDIN_FILENO) == STDIN_FILENO);
    close(ends[0]);
    check_input("-",
                "\x1f"
                "abc",
                4);
    input_back(old);
}

static void look_at(const char *path)
{
    orr_stream *s;
    orr_span seen;
    CHECK_OK(orr_stream_open(path, &s, &err), &err);
    CHECK_OK(orr_stream_peek(s, 100, &seen, &err), &err);
    orr_stream_put_back(s);
}

TEST(test_input__what_was_only_looked_at_is_there_again)
{
    uint8_t *bytes = some_bytes(300000);
    for (unsigned k = 0; k < PACKERS; k++) {
        orr_buf packed = {0};
        packers[k](&packed, bytes, 300000);
        write_file("f", packed.ptr ? packed.ptr : bytes, packed.len);
        look_at("f");
        const int old = input_from("f");
        look_at("-");
        check_input("f", bytes, 300000); /* another file does not get it */
        look_at("-");
        check_input("-", bytes, 300000);
        input_back(old);
        orr_buf_fini(&packed);
    }
    free(bytes);
}

/* A pipe of its own for each round of each thread. */
static void *look_and_read(void *letter)
{
    size_t good = 0;
    for (int round = 0; round < 200; round++) {
        int ends[2];
        char path[32], bytes[200];
        orr_error why;
        orr_stream *s;
        orr_span seen;
        orr_input *in = NULL;
        if (pipe(ends))
            return NULL;
        memset(bytes, *(char *)letter, sizeof bytes);
        bytes[0] = (char)round;
        snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
        if (write(ends[1], bytes, sizeof bytes) != sizeof bytes)
            return NULL;
        close(ends[1]);
        if (!orr_stream_open(path, &s, &why)) {
            (void)!orr_stream_peek(s, 100, &seen, &why);
            orr_stream_put_back(s);
        }
        if (!orr_input_open(path, &in, &why)) {
            const orr_span all = orr_input_bytes(in);
            good += all.len == sizeof bytes && memcmp(all.ptr, bytes, sizeof bytes) == 0;
        }
        orr_input_close(in);
        close(ends[0]);
    }
    return good == 200 ? letter : NULL;
}

TEST(test_input__two_threads_that_look_into_pipes_do_not_meet)
{
    static char letters[2] = {'a', 'b'};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, look_and_read, &letters[i]), 0);
    for (int i = 0; i < 2; i++) {
        void *result = NULL;
        CHECK_EQ(pthread_join(threads[i], &result), 0);
        CHECK(result == &letters[i]);
    }
}

TEST(test_input__released_bytes_come_back)
{
    orr_input *in;
    uint8_t *bytes = some_bytes(1500001);
    write_file("f", bytes, 1500001);
    CHECK_OK(orr_input_open("f", &in, &err), &err);
    orr_input_release(in, 0, 1500001);
    orr_input_release(in, 5000, 5001);
    orr_input_release(in, 9000, 8000);
    CHECK_BYTES(orr_input_bytes(in).ptr, bytes, 1500001);
    orr_input_close(in);
    orr_input_close(NULL);
    free(bytes);
}

/* Take the stream in steps of all sizes; the offset counts unpacked bytes. */
static void check_stream(const uint8_t *bytes, size_t len, uint64_t seed)
{
    orr_stream *s;
    orr_span seen;
    size_t at = 0;
    CHECK_OK(orr_stream_open("f", &s, &err), &err);
    for (;;) {
        const size_t wide = next_random(&seed) % 16 == 0 ? 400000 : 300;
        const size_t need = next_random(&seed) % wide;
        CHECK_OK(orr_stream_peek(s, need, &seen, &err), &err);
        CHECK_EQ_U(orr_stream_offset(s), at);
        CHECK(seen.len >= need || at + seen.len == len);
        CHECK(at + seen.len <= len);
        if (need)
            CHECK_BYTES(seen.ptr, bytes + at, seen.len < need ? seen.len : need);
        if (seen.len == 0 && need)
            break;
        const size_t step = seen.len < need ? seen.len : need;
        orr_stream_skip(s, step);
        at += step;
    }
    CHECK_EQ_U(at, len);
    orr_stream_close(s);
}

TEST(test_input__a_stream_gives_the_same_bytes_in_any_steps)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint8_t *bytes = some_bytes(sizes[i]);
        for (unsigned k = 0; k < PACKERS; k++) {
            orr_buf packed = {0};
            packers[k](&packed, bytes, sizes[i]);
            write_file("f", packed.ptr ? packed.ptr : bytes, packed.len);
            check_stream(bytes, sizes[i], i);
            orr_buf_fini(&packed);
        }
        free(bytes);
    }
}

TEST(test_input__a_stream_that_is_cut_gives_what_is_there_and_then_the_error)
{
    orr_stream *s;
    orr_span seen;
    uint8_t *bytes = some_bytes(600000);
    orr_buf packed = {0};
    add_gzip(&packed, bytes, 600000);
    write_file("f", packed.ptr, packed.len / 2);
    CHECK_OK(orr_stream_open("f", &s, &err), &err);
    CHECK_OK(orr_stream_peek(s, 1000, &seen, &err), &err);
    CHECK_BYTES(seen.ptr, bytes, 1000);
    CHECK_CODE(orr_stream_peek(s, 600000, &seen, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "cut short");
    CHECK(err.where.byte > 200000 && err.where.byte < 400000);
    orr_stream_close(s);
    orr_stream_close(NULL);
    orr_buf_fini(&packed);
    free(bytes);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_input__a_file_is_its_bytes_whatever_it_is_wrapped_in),
        RUN(test_input__many_frames_are_one_stream),
        RUN(test_input__packed_data_cut_anywhere_is_refused),
        RUN(test_input__damage_in_packed_data_never_passes_as_other_bytes),
        RUN(test_input__what_cannot_be_opened_says_why),
        RUN(test_input__a_dash_is_standard_input),
        RUN(test_input__standard_input_starts_where_somebody_left_it),
        RUN(test_input__a_pipe_is_read_to_its_end),
        RUN(test_input__what_was_only_looked_at_is_there_again),
        RUN(test_input__two_threads_that_look_into_pipes_do_not_meet),
        RUN(test_input__released_bytes_come_back),
        RUN(test_input__a_stream_gives_the_same_bytes_in_any_steps),
        RUN(test_input__a_stream_that_is_cut_gives_what_is_there_and_then_the_error),
    };
    return RUN_ALL(tests);
}
