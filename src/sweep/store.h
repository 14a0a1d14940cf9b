/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - the database of a sweep: its identity, its points, and results by content. */
#ifndef ORR_SWEEP_STORE_H
#define ORR_SWEEP_STORE_H

#include "spec.h"

#include "base/formats/sqlite_file.h"

enum { SWP_HASH_ROOM = ORR_CONTENT_HASH_ROOM };

/* How a point ended.  Statuses that a retry may change are not permanent. */
typedef enum swp_status {
    SWP_OK = 0,
    SWP_FAILED = 1, /* the command refused: deterministic */
    SWP_LOST = 2,   /* its process died or timed out: retried by the next call */
    SWP_OPEN = 3    /* not in the database */
} swp_status;

typedef struct swp_result {
    swp_status status;
    uint64_t ns;  /* run time */
    orr_str data; /* JSON of a result that is OK, else the error text */
} swp_result;

static inline orr_sqlite_value swp_text_value(orr_str s)
{
    return (orr_sqlite_value){.text = {.ptr = s.ptr ? s.ptr : "", .len = s.len}};
}

static inline orr_sqlite_value swp_int_value(int64_t v)
{
    return (orr_sqlite_value){.is_int = true, .number = v};
}

typedef struct swp_store swp_store;

/* The database of a sweep, locked for this process.  hashes: one text per point of the sweep. A
 * file of another sweep or program is an error unless recomputing is allowed. */
orr_code swp_store_open(const char *path,
                        orr_sweep *s,
                        const char (*hashes)[SWP_HASH_ROOM],
                        bool recomputes,
                        swp_store **out,
                        orr_error *err) ORR_MUST_CHECK;
/* A database for results alone: the cache. */
orr_code swp_store_open_cache(const char *path, swp_store **out, orr_error *err) ORR_MUST_CHECK;
void swp_store_close(swp_store *st); /* NULL is fine */

orr_code swp_store_begin(swp_store *st, orr_error *err) ORR_MUST_CHECK;
orr_code swp_store_commit(swp_store *st, orr_error *err) ORR_MUST_CHECK;
orr_code swp_store_put(swp_store *st, const char *hash, const swp_result *r, orr_error *err)
    ORR_MUST_CHECK;
/* data is valid until the next call. */
orr_code swp_store_get(swp_store *st, const char *hash, swp_result *out, orr_error *err)
    ORR_MUST_CHECK;

/* Checks that a file belongs to a sweep; *out is open for reading. */
orr_code swp_store_look(const char *path, orr_sqlite **out, orr_error *err) ORR_MUST_CHECK;
/* A value of its head table, in the arena; *out NULL: none. */
orr_code swp_store_head(
    orr_sqlite *db, const char *key, orr_arena *a, const char **out, orr_error *err) ORR_MUST_CHECK;
bool swp_store_is_locked(const char *path);

#endif
