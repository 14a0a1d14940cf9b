/* SPDX-License-Identifier: Apache-2.0 */
/* schedgen_chains.c - patterns made of several all-reduces: a training step of ResNet-152, and disseminations
 * that wait for each other (goal.md 4). */
#include "schedgen_impl.h"

enum {
    FIRST_TAG = 100000,
    FORWARD_NS = 119000,
    BACKWARD_NS = 23800,
    CHAIN = 5,
    CHAIN_BYTES = 10000
};

/* Where SchedGen's chain waits: at a message of no bytes to a rank that nobody has. */
enum { NOBODY = 9999999 };

/* Elements of 4 bytes in each all-reduce of gradients. */
static const uint64_t gradients[] = {6511592, 6567936, 5905920, 6113280, 6176256,
                                     6112768, 6176256, 6112768, 5321216, 5194816};

enum { GRADIENTS = sizeof gradients / sizeof *gradients };

/* The communicator, 1, stands in the upper byte; ATLAHS counts communicators from 0. */
static uint64_t tag_of(const schedgen *s, uint64_t number)
{
    const uint64_t communicator = s->rules->counts_communicators ? 0 : 1;
    return communicator << 24 | (FIRST_TAG + number);
}

static void reduce(const schedgen *s, uint32_t rank, uint64_t tag, uint64_t bytes)
{
    sgen_gpen_comment(s->pen, "Iallreduce begin");
    s->pen->tag = tag_of(s, tag);
    sgen_gpen_open(s->pen);
    sgen_dissemination(s->pen, rank, s->ranks, bytes);
    sgen_gpen_close(s->pen);
}

/* Edges between `to` and the messages of the last group that are marked. */
static void require_marked(goal_pen *pen, uint8_t mark, uint64_t other, bool marked_waits)
{
    for (size_t i = 0; i < pen->marks.len; i++) {
        if (!(pen->marks.ptr[i] & mark))
            continue;
        if (marked_waits)
            sgen_gpen_require(pen, pen->base + i, other);
        else
            sgen_gpen_require(pen, other, pen->base + i);
    }
}

/* ATLAHS goes on counting tags from rank to rank, so that no message meets its receive; kept with
 * keeps_invalid. */
void sgen_pattern_resnet(const schedgen *s, uint32_t rank)
{
    const bool counts_on = s->opt->keeps_invalid && s->rules->counts_tags_on;
    const uint64_t first = counts_on ? (uint64_t)rank * GRADIENTS : 0;
    const uint64_t forward = sgen_gpen_calc_on(s->pen, FORWARD_NS, 0);
    for (uint64_t i = 0; i < GRADIENTS; i++) {
        const uint64_t backward = sgen_gpen_calc_on(s->pen, BACKWARD_NS, 0);
        sgen_gpen_require(s->pen, backward, forward);
        const uint64_t ready = sgen_gpen_calc_on(s->pen, 0, 0);
        sgen_gpen_require(s->pen, ready, backward);
        reduce(s, rank, first + i, 4 * gradients[i]);
        require_marked(s->pen, ORR__PEN_LAST, ready, true);
        sgen_gpen_comment(s->pen, "Iallreduce end");
    }
}

/* Between two disseminations stands a calculation of no length, where SchedGen has a message to nobody. */
void sgen_pattern_chained_dissem(const schedgen *s, uint32_t rank)
{
    uint64_t last = 0;
    for (uint64_t i = 0; i < CHAIN; i++) {
        reduce(s, rank, i, CHAIN_BYTES);
        sgen_gpen_comment(s->pen, "Iallreduce end");
        const uint64_t done =
            s->opt->keeps_invalid ? sgen_gpen_send(s->pen, 0, NOBODY) : sgen_gpen_calc(s->pen, 0);
        if (last)
            require_marked(s->pen, ORR__PEN_FIRST, last, true);
        require_marked(s->pen, ORR__PEN_LAST, done, false);
        last = done;
    }
}
