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
typedef struct orr__crossing {
    orr__flight flight;
    uint32_t port;
} orr__crossing;

typedef struct orr__pause_line {
    uint64_t at;
    uint32_t port;
    bool pauses;
} orr__pause_line;

/* A flow is done, or all of it has arrived. */
typedef struct orr__news {
    uint64_t at, order; /* of the event that brought it */
    orr__flow_end end;  /* of an arrival only the token */
    uint32_t length;    /* of its line in fct.txt */
    bool is_done;
} orr__news;

typedef struct orr__lane {
    orr__fabric f;      /* first, so that the one is found from the other */
    orr_heap stops;     /* times at which something may concern all */
    orr_heap calls;     /* times of news that may have listeners, as these have them */
    orr_heap ends;      /* times at which a flow of a list may be done */
    orr__crossing *out; /* since the window began, as all below */
    orr__news *news;
    orr_buf lines;   /* of fct.txt */
    uint32_t *drops; /* flows of other lanes of which a frame was dropped here */
    uint32_t *gone;  /* flows that may be let go */
    orr__pause_line *pauses;
    orr__series_note *notes;
    size_t out_count, out_room, drop_count, drop_room, gone_count, gone_room;
    size_t pause_count, pause_room, note_count, note_room, news_count, news_room;
    size_t told, told_bytes; /* of the news, and of their lines */
    uint32_t strange;        /* frames of other lanes that are free: a list */
    uint64_t done;           /* events */
} orr__lane;

/* What every window asks of every lane, side by side. */
typedef struct orr__outlook {
    uint64_t next;       /* no event of it comes before */
    uint64_t stop, call; /* the first of these times */
    uint64_t first_time; /* of all three kinds */
    size_t ends;
    bool is_known; /* no: somebody else has done something there since */
} orr__outlook;

struct orr__lanes {
    orr__fabric *main;
    unsigned count;
    orr__lane **of;
    orr__outlook *outlooks;
    orr__lane **awake; /* those with events in the window */
    unsigned awake_count;
    uint32_t *of_node;
    uint64_t longest; /* window, ticks */
    uint64_t end;     /* of the window: before it */
    uint64_t recent;  /* events a window */
    uint32_t frames_each;
    orr_crew *crew;
    orr__pause_line *pauses; /* of all lanes */
    orr__series_note *notes; /* of all lanes */
    uint64_t *times;         /* of before_last_flow */
    size_t pause_room, note_room, time_room;
};

static inline orr__lane *orr__lane_of(orr__fabric *f)
{
    return (orr__lane *)f;
}

static inline void orr__lanes_lack_memory(orr__fabric *f)
{
    orr__fabric_fail(f, ORR_ENOMEM, "out of memory");
}

/* The simulator has whole nanoseconds: what happens between two of them it hears of at the later
 * one. */
static inline uint64_t orr__lanes_told_at(const orr__fabric *f, uint64_t at)
{
    return f->line == &f->main->own_line ? at : (at + f->unit - 1) / f->unit * f->unit;
}

static inline void orr__lanes_give_back(orr__fabric *owner, uint32_t frame)
{
    owner->frames[frame].next = owner->free_frame;
    owner->free_frame = frame;
}

static inline void orr__lanes_drop_of_flow(orr__fabric *f, uint32_t flow)
{
    if (--f->flows[flow].frames == 0 && f->flows[flow].is_complete)
        orr__flow_let_go(f, flow);
}

static inline void orr__lanes_set_time(orr__fabric *main, uint64_t now)
{
    main->now = now;
    main->line->now = main->line == &main->own_line ? now : (now + main->unit - 1) / main->unit;
}

/* ---- between windows (lane_news.c): of the lanes that are awake ---- */

void orr__lanes_write_pauses(orr__lanes *s);
void orr__lanes_tell_series(orr__lanes *s);
void orr__lanes_tell(orr__lanes *s);   /* all news, in the order of the whole network */
void orr__lanes_settle(orr__lanes *s); /* frames go on, flows and frames are let go; failures */
void orr__lanes_take_over_ends(orr__lanes *s);

#endif
