/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_frames.c - frames to and from sockets. */
#include "sweep_frames.h"

#include <errno.h>
#include <sys/socket.h>

void swp_put_u32(orr_buf *to, uint32_t v)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        orr_buf_byte(to, (uint8_t)(v >> shift));
}

void swp_put_u64(orr_buf *to, uint64_t v)
{
    swp_put_u32(to, (uint32_t)(v >> 32));
    swp_put_u32(to, (uint32_t)v);
}

uint32_t swp_get_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

uint64_t swp_get_u64(const uint8_t *p)
{
    return (uint64_t)swp_get_u32(p) << 32 | swp_get_u32(p + 4);
}

static bool send_all(int fd, const uint8_t *p, size_t n)
{
    while (n) {
        const ssize_t done = send(fd, p, n, MSG_NOSIGNAL);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        p += done;
        n -= (size_t)done;
    }
    return true;
}

bool swp_frame_send(int fd, swp_frame_kind kind, const void *bytes, size_t len)
{
    orr_buf all = {0};
    swp_put_u32(&all, (uint32_t)len);
    swp_put_u32(&all, (uint32_t)kind);
    orr_buf_add(&all, bytes, len);
    const bool is_sent = !all.failed && send_all(fd, all.ptr, all.len);
    orr_buf_fini(&all);
    return is_sent;
}

bool swp_frame_next(const orr_buf *in, size_t from, swp_frame *out, size_t *used, bool *is_bad)
{
    *is_bad = false;
    if (in->len - from < SWP_FRAME_HEAD)
        return false;
    const uint8_t *p = in->ptr + from;
    const uint32_t len = swp_get_u32(p), kind = swp_get_u32(p + 4);
    *is_bad = len > SWP_FRAME_MOST || kind < SWP_FRAME_HELLO || kind > SWP_FRAME_QUIT;
    if (*is_bad || in->len - from - SWP_FRAME_HEAD < len)
        return false;
    *out = (swp_frame){.kind = (swp_frame_kind)kind, .bytes = p + SWP_FRAME_HEAD, .len = len};
    *used = SWP_FRAME_HEAD + len;
    return true;
}
