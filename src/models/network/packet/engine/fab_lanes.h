/* SPDX-License-Identifier: Apache-2.0 */
/* fab_lanes.h - what the files of lanes share.
 *
 *     fab_lane_plan.c    who is in which lane
 *     fab_lanes.c    windows: how far they go, who runs in them; instants that concern all
 *     lane_notes.c      what a lane takes note of in a window, because it is for others
 *     lane_news.c       what is done with these notes between windows */
#ifndef ORR_MODELS_FABRIC_LANES_H
#define ORR_MODELS_FABRIC_LANES_H

#include "base/memory/heap.h"
#include "base/threads/crew.h"
#include "fabric_impl.h"

/* A frame on its way to another lane. */
typedef struct fab_crossing {
    fab_flight flight;
    uint32_t port;
} fab_crossing;

typedef struct fab_pause_line {
    uint64_t at;
    uint32_t port;
    bool pauses;
} fab_pause_line;

/* A flow is done, or all of it has arrived. */
typedef struct fab_news {
    uint64_t at, order; /* of the event that brought it */
    fab_flow_end end;   /* of an arrival only the token */
    uint32_t length;    /* of its line in fct.txt */
    bool is_done;
} fab_news;

typedef struct fab_lane {
    fab f;             /* first, so that the one is found from the other */
    orr_heap stops;    /* times at which something may concern all */
    orr_heap calls;    /* times of news that may have listeners, as these have them */
    orr_heap ends;     /* times at which a flow of a list may be done */
    fab_crossing *out; /* since the window began, as all below */
    fab_news *news;
    orr_buf lines;   /* of fct.txt */
    uint32_t *drops; /* flows of other lanes of which a frame was dropped here */
    uint32_t *gone;  /* flows that may be let go */
    fab_pause_line *pauses;
    fab_flow_note *notes;
    size_t out_count, out_room, drop_count, drop_room, gone_count, gone_room;
    size_t pause_count, pause_room, note_count, note_room, news_count, news_room;
    size_t told, told_bytes; /* of the news, and of their lines */
    uint32_t foreign_free;   /* frames of other lanes that are free: a list */
    uint64_t done;           /* events */
} fab_lane;

/* What every window asks of every lane, side by side. */
typedef struct fab_outlook {
    uint64_t next;       /* no event of it comes before */
    uint64_t stop, call; /* the first of these times */
    uint64_t first_time; /* of all three kinds */
    size_t ends;
    bool is_known; /* no: somebody else has done something there since */
} fab_outlook;

struct fab_lanes {
    fab *main;
    unsigned count;
    fab_lane **of;
    fab_outlook *outlooks;
    fab_lane **awake; /* those with events in the window */
    unsigned awake_count;
    uint32_t *of_node;
    uint64_t longest; /* window, ticks */
    uint64_t end;     /* of the window: before it */
    uint64_t recent;  /* events a window */
    uint32_t frames_each;
    orr_crew *crew;
    fab_pause_line *pauses; /* of all lanes */
    fab_flow_note *notes;   /* of all lanes */
    uint64_t *times;        /* of before_last_flow */
    size_t pause_room, note_room, time_room;
};

static inline fab_lane *fab_lane_of(fab *f)
{
    return (fab_lane *)f;
}

static inline void fab_lanes_lack_memory(fab *f)
{
    fab_fail(f, ORR_ENOMEM, "out of memory");
}

/* The simulator has whole nanoseconds: what happens between two of them it hears of at the later
 * one. */
static inline uint64_t fab_lanes_heard_at(const fab *f, uint64_t at)
{
    return f->line == &f->main->own_line ? at : (at + f->unit - 1) / f->unit * f->unit;
}

static inline void fab_lanes_give_back(fab *owner, uint32_t frame)
{
    owner->frames[frame].next = owner->free_frame;
    owner->free_frame = frame;
}

static inline void fab_lanes_drop_of_flow(fab *f, uint32_t flow)
{
    if (--f->flows[flow].frames == 0 && f->flows[flow].is_complete)
        fab_flow_let_go(f, flow);
}

static inline void fab_lanes_set_time(fab *main, uint64_t now)
{
    main->now = now;
    main->line->now = main->line == &main->own_line ? now : (now + main->unit - 1) / main->unit;
}

/* ---- between windows (lane_news.c): of the lanes that are awake ---- */

void fab_lanes_write_pauses(fab_lanes *s);
void fab_lanes_tell_series(fab_lanes *s);
void fab_lanes_tell(fab_lanes *s);   /* all news, in the order of the whole network */
void fab_lanes_settle(fab_lanes *s); /* frames go on, flows and frames are let go; failures */
void fab_lanes_take_over_ends(fab_lanes *s);

#endif
