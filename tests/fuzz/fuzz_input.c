/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_input.c - any bytes as a file: plain, gzip or zstd, whole and piece by piece.
 *
 * Both ways give the same bytes or are both refused, with words; and so does a pipe, which cannot be looked at
 * twice: a reader that peeks at its kind first puts it back.
 * Unpacked, an input has at most MOST bytes here, so that a bomb costs nothing. */
#include "fuzz_trace.h"

#include "base/io/input.h"

enum { MOST = 1 << 20, PIPE = 1 << 12 };

/* By a stream, in pieces of odd sizes.  False: refused, or larger than MOST. */
static bool read_stream(const char *path, uint8_t *to, size_t *len)
{
    orr_stream *s;
    orr_error err = {0};
    orr_span piece;
    *len = 0;
    if (orr_stream_open(path, &s, &err)) {
        REQUIRE(err.message[0]);
        return false;
    }
    for (size_t want = 1;; want = want * 3 % 4099 + 1) {
        if (orr_stream_peek(s, want, &piece, &err)) {
            REQUIRE(err.message[0]);
            break;
        }
        if (piece.len == 0) {
            orr_stream_close(s);
            return true;
        }
        const size_t n = piece.len < want ? piece.len : want;
        if (*len + n > MOST)
            break;
        memcpy(to + *len, piece.ptr, n);
        *len += n;
        orr_stream_skip(s, n);
        REQUIRE(orr_stream_offset(s) == *len);
    }
    orr_stream_close(s);
    return false;
}

/* The bytes through a pipe, whose writing end is closed: at most what a pipe holds. */
static void read_pipe(orr_span in, bool was_read, orr_span want)
{
    char path[64];
    orr_stream *s;
    orr_input *all;
    orr_span piece;
    orr_error err = {0};
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    REQUIRE(in.len == 0 || write(ends[1], in.ptr, in.len) == (ssize_t)in.len);
    REQUIRE(close(ends[1]) == 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    if (orr_stream_open(path, &s, &err) == ORR_OK) {
        const orr_code code = orr_stream_peek(s, 16, &piece, &err);
        orr_stream_put_back(s);
        REQUIRE(!code || err.message[0]);
    }
    const orr_code code = orr_input_open(path, &all, &err);
    REQUIRE((code == ORR_OK) == was_read);
    if (!code) {
        const orr_span got = orr_input_bytes(all);
        REQUIRE(got.len == want.len && (got.len == 0 || memcmp(got.ptr, want.ptr, got.len) == 0));
        orr_input_close(all);
    } else {
        REQUIRE(err.message[0]);
    }
    REQUIRE(close(ends[0]) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t bytes[MOST];
    size_t len;
    orr_input *in;
    orr_error err = {0};
    if (size > 1 << 16)
        return 0;
    const char *path = fuzz_file(0, data, size);
    const bool is_read = read_stream(path, bytes, &len);
    if (!is_read && len + 4100 > MOST)
        return 0; /* large: the whole of it is not wanted */
    if (size <= PIPE)
        read_pipe((orr_span){data, size}, is_read, (orr_span){bytes, len});
    const orr_code code = orr_input_open(path, &in, &err);
    REQUIRE((code == ORR_OK) == is_read);
    if (code) {
        REQUIRE(err.message[0]);
        return 0;
    }
    const orr_span all = orr_input_bytes(in);
    REQUIRE(all.len == len && (len == 0 || memcmp(all.ptr, bytes, len) == 0));
    orr_input_close(in);
    return 0;
}
