/* SPDX-License-Identifier: Apache-2.0 */
/* set_write.c - a set as one file per rank.
 *
 * All files are written before the first gets its name: a full disk, a lack of memory, an interrupt
 * or a kill while they are written leaves the folder as it was.  Each waits as a file without a
 * name, which is an open descriptor: as many as the process may have, the limit raised for that
 * time.  A set beyond half of the hard limit goes in batches of that size.  What fails later takes
 * the files back that this call has made; those that replaced older ones stay, whole. */
#include "set_impl.h"

#include "base/io/output.h"
#include "base/options.h"
#include "base/threads/pool.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PATH_ROOM = 4096, SPARE_DESCRIPTORS = 256, FEWEST_AT_ONCE = 16 };

typedef struct waiting {
    orr_output *out;   /* NULL: has its name, or is no file */
    bool is_made;      /* there is a file now where none was */
    bool replaces_old; /* there was one before */
} waiting;

typedef struct writing {
    const orr_set *s;
    const char *prefix;
    orr_write_options opt;
    waiting *files; /* one per rank */
    size_t first;   /* rank of the batch */
} writing;

static orr_code path_of(const writing *w, size_t rank, char path[static PATH_ROOM], orr_error *err)
{
    const orr_trace *t = w->s->classes[w->s->ranks[rank].class_index].t;
    const orr_schema schema = w->opt.same_schema ? t->schema : w->opt.schema;
    const int n = snprintf(path, PATH_ROOM, "%s.%zu.%s", w->prefix, rank,
                           schema == ORR_SCHEMA_EG ? "eg" : "et");
    return n < 0 || n >= PATH_ROOM
               ? orr_fail(err, ORR_EUSAGE, NULL, "the output's name is longer than 4,000 bytes")
               : ORR_OK;
}

/* Current bytes without a shift, which is what generators want, are copied together; all else goes
 * through a trace. */
static orr_code write_filled(const orr_set *s,
                             uint32_t rank,
                             const char *path,
                             const orr_write_options *opt,
                             orr_output **out,
                             orr_error *err)
{
    const orr__rank *r = &s->ranks[rank];
    orr__class *c = &s->classes[r->class_index];
    const orr_schema schema = opt->same_schema ? c->t->schema : opt->schema;
    const orr_trace *t;
    orr_trace *owned = NULL;
    orr_buf bytes = {0};
    orr_code code;
    if (opt->id_shift || (schema && schema != ORR_SCHEMA_CURRENT)) {
        code = orr_set_rank_trace(s, rank, &t, &owned, err);
        if (!code)
            code = orr__trace_write_open(t, path, opt, out, err);
        orr_trace_destroy(owned);
        return code;
    }
    code = orr__fill(c, s->values + r->values_at, &bytes) ? ORR_OK : orr_no_memory(err);
    if (!code)
        code = orr_output_open(path, out, err);
    if (!code)
        orr_output_drain(*out, &bytes);
    orr_buf_fini(&bytes);
    return code;
}

static orr_code write_rank(void *context, size_t at, orr_error *err)
{
    const writing *w = context;
    const size_t rank = w->first + at;
    const orr__rank *r = &w->s->ranks[rank];
    waiting *file = &w->files[rank];
    orr_write_options opt = w->opt;
    char path[PATH_ROOM];
    if (r->class_index == ORR_NO_NODE)
        return ORR_OK;
    orr_code code = path_of(w, rank, path, err);
    if (code)
        return code;
    const orr__class *c = &w->s->classes[r->class_index];
    opt.id_shift += r->id_shift;
    file->replaces_old = access(path, F_OK) == 0;
    code = c->hole_count ? write_filled(w->s, (uint32_t)rank, path, &opt, &file->out, err)
                         : orr__trace_write_open(c->t, path, &opt, &file->out, err);
    return code ? code : orr_output_settle(file->out, err);
}

static orr_code name_rank(void *context, size_t at, orr_error *err)
{
    const writing *w = context;
    waiting *file = &w->files[w->first + at];
    if (!file->out)
        return ORR_OK;
    const orr_code code = orr_output_commit(&file->out, err);
    file->is_made = !code && !file->replaces_old;
    return code;
}

static void take_back(const writing *w)
{
    char path[PATH_ROOM];
    for (size_t rank = 0; rank < w->s->rank_count; rank++) {
        orr_output_discard(w->files[rank].out);
        if (w->files[rank].is_made && !path_of(w, rank, path, NULL))
            unlink(path);
    }
}

/* How many files may wait at the same time. */
static size_t raise_limit(size_t wanted, struct rlimit *before)
{
    *before = (struct rlimit){0, 0};
    if (getrlimit(RLIMIT_NOFILE, before))
        return FEWEST_AT_ONCE;
    struct rlimit now = *before;
    const rlim_t enough = 2 * (rlim_t)wanted + SPARE_DESCRIPTORS;
    if (now.rlim_cur < enough) {
        now.rlim_cur = enough < now.rlim_max ? enough : now.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &now))
            now = *before;
    }
    const rlim_t half = now.rlim_cur / 2;
    return half < FEWEST_AT_ONCE ? FEWEST_AT_ONCE : half < wanted ? (size_t)half : wanted;
}

orr_code orr_set_write_files(const orr_set *s,
                             const char *prefix,
                             const orr_write_options *opt,
                             unsigned threads,
                             orr_error *err)
{
    writing w = {.s = s, .prefix = prefix};
    struct rlimit before;
    orr_code code = ORR__TAKE_OPTIONS(&w.opt, opt, orr_write_options, err);
    if (code)
        return code;
    if (!(w.files = orr_alloc(s->rank_count + 1, sizeof *w.files)))
        return orr_no_memory(err);
    const size_t most = raise_limit(s->rank_count, &before);
    for (; !code && w.first < s->rank_count; w.first += most) {
        const size_t left = s->rank_count - w.first, count = left < most ? left : most;
        code = orr_pool_for(threads, count, write_rank, &w, err);
        if (!code)
            code = orr_pool_for(threads, count, name_rank, &w, err);
    }
    if (code)
        take_back(&w);
    if (before.rlim_cur)
        setrlimit(RLIMIT_NOFILE, &before);
    orr_free(w.files);
    return code;
}
