/* SPDX-License-Identifier: Apache-2.0 */
/* set_impl.h - what set.c (ranks and classes), set_find.c (which files) and set_file.c (.orr) share. */
#ifndef ORR_SET_IMPL_H
#define ORR_SET_IMPL_H

#include <orrery/set.h>

#include "trace_impl.h"

#include "../base/map.h"

typedef struct orr__class {
    orr_trace *t;
    orr_span
        bytes; /* of the file it came from, while the set is being read: equal files are found by it */
    uint32_t ranks, first;
} orr__class;

typedef struct orr__rank {
    uint32_t class_index;
    uint64_t id_shift;
    char *path;       /* in the arena */
    orr_error *error; /* in the arena; NULL: fine */
} orr__rank;

struct orr_set {
    orr_arena *arena;
    orr__class *classes;
    size_t class_count, class_room;
    orr__rank *ranks;
    size_t rank_count, rank_room;
    orr_input *file;      /* the .orr the classes lie in */
    orr_map *by_bytes;    /* hash of a file's bytes -> class */
    orr_map *by_likeness; /* hash of a trace up to a shift of ids -> class */
};

/* The files of a set in rank order.  A path that is one .orr file gives that one path and is_orr. */
typedef struct orr__file_list {
    orr_arena *arena;
    char **paths;
    size_t count, room;
    bool is_orr;
} orr__file_list;

orr_code orr__set_find_files(const char *path, orr__file_list *out, orr_error *err);
bool orr__is_orr(orr_span head);

orr_code orr__set_add_rank(
    orr_set *s, uint32_t class_index, uint64_t shift, const char *path, orr_error *err);
orr_code orr__set_add_class(orr_set *s,
                            orr_trace *t,
                            uint32_t *index,
                            orr_error *err); /* takes t */
orr_code orr__set_read_orr(orr_set *s,
                           const char *path,
                           const orr_set_options *opt,
                           orr_error *err);

#endif
