/* SPDX-License-Identifier: Apache-2.0 */
/* fab_observe.h - observers of the network: one table of hooks for files, series, histories.
 *
 *     if (fab_observe(f, &my_ops, my_state, FAB_HEARS_PAUSES)) ...   // f destroys my_state too
 *     fab_add_look(f, my_state, 0, FAB_LOOK_PLAIN);                   // and looks at fixed times
 *
 * An observer must not change the network.  The engine calls a hook only if some observer requested
 * it (`hears`), so that a packet costs one bit test, not one per observer. Hooks run while no lane
 * does, in the global order, unless stated otherwise. */
#ifndef ORR_MODELS_FAB_OBSERVE_H
#define ORR_MODELS_FAB_OBSERVE_H

#include "base/memory/buffer.h"
#include "fabric.h"

struct fab_port;
struct fab_frame;
struct fab_flow;

enum { FAB_OBSERVERS_MOST = 4, FAB_LOOKS_MOST = 8 };

enum {
    FAB_HEARS_FRAMES = 1, /* `frame`: the network then runs on one thread */
    FAB_HEARS_PAUSES = 2,
    FAB_HEARS_LINES = 4, /* `flow_line`: at most one observer */
    FAB_HEARS_FLOWS = 8, /* `flow` */
    FAB_HEARS_MARKS = 16
};

enum { FAB_FRAME_RECEIVED, FAB_FRAME_ENQUEUED, FAB_FRAME_DEQUEUED, FAB_FRAME_DROPPED };

/* A flow starts or completes. */
typedef struct fab_flow_note {
    uint64_t at, order;                /* of the event in which it did */
    uint64_t acked, window, in_flight; /* at that time: bytes */
    uint32_t flow;
    bool is_over;
} fab_flow_note;

/* `o` is the observer's state.  Any of them may be NULL. */
typedef struct fab_observer_ops {
    bool (*flow_made)(void *o, uint32_t flow); /* false: out of memory */
    void (*flow)(fab *f, void *o, const fab_flow_note *n);
    /* A flow has completed.  Lanes call it in a window with their own buffer, and `flow_lines`
     * returns the bytes in order; out NULL: no lane runs, and the line is written at once. */
    void (*flow_line)(
        const fab *f, void *o, const struct fab_flow *w, uint64_t ideal, orr_buf *out);
    void (*flow_lines)(void *o, const uint8_t *lines, size_t length);
    /* An ACK reports a marked packet.  Lanes call it in a window, for flows of their hosts. */
    void (*ack_marked)(void *o, uint32_t flow);
    void (*pause)(const fab *f, void *o, const struct fab_port *p, bool pauses);
    void (*frame)(const fab *f,
                  void *o,
                  const struct fab_port *p,
                  const struct fab_frame *m,
                  unsigned event,
                  unsigned queue);
    /* When the next look is due, not before `from`; is_again: one was taken then.  False: never. */
    bool (*next_look)(
        const fab *f, const void *o, unsigned which, uint64_t from, bool is_again, uint64_t *at);
    void (*look)(fab *f, void *o, unsigned which);
    orr_code (*commit)(fab *f, void *o, orr_error *err); /* commits its files */
    void (*destroy)(void *o);
} fab_observer_ops;

typedef enum fab_look_kind {
    FAB_LOOK_PLAIN,
    /* Stops when nothing is queued or in flight, and resumes with the next packet. */
    FAB_LOOK_RESTS,
    /* Not an event of the run: it is not counted and does not keep the run alive. */
    FAB_LOOK_SILENT
} fab_look_kind;

typedef struct fab_look {
    unsigned observer, which;
    fab_look_kind kind;
    bool is_armed;
} fab_look;

/* Member `watch` of a fabric; lanes have a copy, looks are global. */
typedef struct fab_watch {
    unsigned hears; /* FAB_HEARS_... of all */
    unsigned count, look_count;
    struct fab_observer {
        const fab_observer_ops *ops;
        void *state;
    } list[FAB_OBSERVERS_MOST];
    fab_look looks[FAB_LOOKS_MOST];
    uint8_t *port_used; /* by port: set to 1 when it first sends or is paused; NULL: not needed */
} fab_watch;

/* The fabric takes ownership of the state, also on failure. */
orr_code fab_observe(fab *f,
                     const fab_observer_ops *ops,
                     void *state,
                     unsigned hears,
                     orr_error *err) ORR_MUST_CHECK;
void fab_add_look(fab *f, unsigned which, fab_look_kind kind); /* of the observer added last */
void *fab_observer_state(const fab *f, const fab_observer_ops *ops); /* NULL: it does not observe */

/* ---- for the engine ---- */

bool fab_tell_flow_made(const fab *f, uint32_t flow); /* false: out of memory */
void fab_tell_flow(fab *f, uint32_t flow, bool is_over);
void fab_hear_flow(fab *f, const fab_flow_note *n); /* from lanes, sorted */
void fab_tell_line(const fab *f, const struct fab_flow *w, uint64_t ideal, orr_buf *out);
void fab_hear_lines(const fab *f, const uint8_t *lines, size_t length);
void fab_tell_mark(const fab *f, uint32_t flow);
void fab_tell_pause(fab *f, const struct fab_port *p, bool pauses);
void fab_tell_frame(const fab *f,
                    const struct fab_port *p,
                    const struct fab_frame *m,
                    unsigned event,
                    unsigned queue);
/* Bytes of a flow acknowledged, permitted and in flight now. */
fab_flow_note fab_flow_state(const fab *f, uint32_t flow);

void fab_looks_arm(fab *f);                     /* a flow is active */
void fab_looks_arm_silent(fab *f, uint64_t at); /* one will be */
void fab_looks_wake(fab *f);                    /* traffic resumes */
/* Would fab_looks_wake begin a look? */
bool fab_looks_may_wake(const fab *f, uint64_t now);
void fab_look_run(fab *f, uint32_t event, uint32_t look);
/* A silent look, before its time is set: true if no other event is left, and it is not
 * scheduled. */
bool fab_look_is_last(fab *f, uint32_t event, uint32_t look);

#endif
