/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_frames.h - messages between the process that owns a sweep and those that compute: over a
 * pair of sockets on one machine, over TCP between machines, the same bytes.
 *
 * A frame is its length and its kind, 32 bits each in the byte order of the network, then its
 * bytes.  Points travel as numbers: both sides have read the same specification, so nothing that
 * arrives can name a command. */
#ifndef ORR_SWEEP_FRAMES_H
#define ORR_SWEEP_FRAMES_H

#include "base/memory/buffer.h"

typedef enum swp_frame_kind {
    SWP_FRAME_HELLO = 1, /* who computes: lines */
    SWP_FRAME_TASK,      /* point, hash */
    SWP_FRAME_DONE,      /* point, status, whether it was in the cache, ns; CPU time of this process
                          * and its wait since the answer before; data */
    SWP_FRAME_REFUSE,    /* this worker cannot go on: why */
    SWP_FRAME_QUIT       /* no more points, or why not */
} swp_frame_kind;

enum { SWP_FRAME_HEAD = 8, SWP_FRAME_MOST = 64 << 20, SWP_DONE_HEAD = 40 };

typedef struct swp_frame {
    swp_frame_kind kind;
    const uint8_t *bytes;
    size_t len;
} swp_frame;

/* All of it, or an error; SIGPIPE does not come. */
bool swp_frame_send(int fd, swp_frame_kind kind, const void *bytes, size_t len);
/* The first whole frame of the buffer; false: there is none yet.  *used: its length with its head.
 * *is_bad: these bytes are no frame. */
bool swp_frame_next(const orr_buf *in, size_t from, swp_frame *out, size_t *used, bool *is_bad);

/* What the first frame of a worker says. */
enum { SWP_HELLO_ROOM = 600 };
typedef struct swp_hello {
    char text[SWP_HELLO_ROOM];
    const char *token, *spec, *program, *host; /* in it; no token: "" */
} swp_hello;
bool swp_hello_read(const swp_frame *f, bool has_token, swp_hello *out);

uint32_t swp_get_u32(const uint8_t *p);
uint64_t swp_get_u64(const uint8_t *p);

#endif
