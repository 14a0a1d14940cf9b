/* SPDX-License-Identifier: Apache-2.0 */
/* check_fix.c - from a set with faults to a set with fewer of them.
 *
 * The ranks keep their classes: a class is repaired once, and ranks that were equal stay so, with the numbers
 * added to their ids.  A repaired class has as many nodes as before, and what is in its holes was sound, so it
 * keeps them, and its ranks their values.  Everything is in memory before the first byte is written, and files
 * appear whole, so the output may be the input. */
#include "base/text/text.h"
#include "check_impl.h"

typedef struct fixer {
    chk_run k;
    const orr_set_options *read;
    orr_set *from, *to;
    uint32_t *new_class; /* by class of `from`; ORR_NO_NODE: not repaired yet */
} fixer;

static orr_code add_repaired(fixer *f, const chk_class *cls, uint32_t *index, orr_error *err)
{
    orr_trace *t;
    const char *why = NULL;
    orr_code code = chk_repair_trace(&f->k, cls, &t, err);
    if (!code)
        code = orr__set_add_class(f->to, t, index, err);
    if (!code && cls->holes)
        code = orr__class_set_holes(f->to, *index, cls->holes->holes, cls->holes->hole_count,
                                    cls->holes->slot_count, &why, err);
    return why ? orr_fail(err, ORR_EBUG, NULL, "repairing moved what ranks have of their own: %s",
                          why)
               : code;
}

static orr_code salvage_rank(fixer *f, uint32_t rank, uint32_t *index, orr_error *err)
{
    orr_buf bytes = {0};
    orr_trace *t = NULL;
    const orr_error *why = orr_set_error(f->from, rank);
    if (why->code != ORR_EINPUT) {
        *err = *why;
        return why->code;
    }
    orr_code code = chk_salvage_file(&f->k, rank, why, &f->read->read, &bytes, &t, err);
    if (!code) {
        const chk_class cls = {
            .t = t, .c = orr_trace_columns(t), .index = ORR_NO_NODE, .rank = rank, .rank_count = 1};
        f->k.report->node_count += cls.c->count;
        code = add_repaired(f, &cls, index, err);
    }
    orr_trace_destroy(t);
    orr_buf_fini(&bytes);
    return code;
}

static orr_code repair_rank(fixer *f, uint32_t rank, orr_error *err)
{
    const uint32_t old = orr_set_class_of(f->from, rank);
    uint32_t index = old == ORR_NO_NODE ? ORR_NO_NODE : f->new_class[old];
    orr_code code = ORR_OK;
    if (old == ORR_NO_NODE)
        code = salvage_rank(f, rank, &index, err);
    else if (index == ORR_NO_NODE)
        code = add_repaired(f, &f->k.classes[old], &index, err);
    if (code)
        return code;
    if (old != ORR_NO_NODE)
        f->new_class[old] = index;
    if (f->to->classes[index].hole_count == 0)
        return orr__set_add_rank(f->to, index, orr_set_id_shift(f->from, rank), NULL, err);
    return orr_set_add_filled(f->to, index, orr_set_id_shift(f->from, rank),
                              f->from->values + f->from->ranks[rank].values_at, err);
}

static orr_code copy_groups(fixer *f, orr_error *err)
{
    orr_code code = ORR_OK;
    for (uint32_t i = 0; i < orr_set_group_count(f->from) && !code; i++) {
        const orr_group g = orr_set_group(f->from, i);
        code = orr_set_add_group(f->to, g.id, g.ranks, g.count, err);
    }
    return code;
}

static orr_code repair_all(fixer *f, orr_error *err)
{
    f->new_class = orr_arena_new(f->k.arena, (size_t)f->k.class_count + 1, uint32_t);
    if (!f->new_class)
        return orr_no_memory(err);
    memset(f->new_class, 0xff, f->k.class_count * sizeof *f->new_class);
    orr_code code = orr_set_create(&f->to, err);
    for (uint32_t rank = 0; rank < orr_set_rank_count(f->from) && !code; rank++)
        code = repair_rank(f, rank, err);
    return code ? code : copy_groups(f, err);
}

static orr_code check_target(const char *to, orr_error *err)
{
    if (!*to || orr_text_ends(to, "/"))
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "'%s' is a folder; name a file, a prefix of files or a .orr in it", to);
    if (orr_text_ends(to, ".json") || orr_text_ends(to, ".jsonl"))
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "repaired traces are written as .et or .orr, not as JSON: '%s'", to);
    return ORR_OK;
}

static orr_code write_one(const fixer *f, const char *to, orr_error *err)
{
    const orr_write_options same = {.same_schema = true, .id_shift = orr_set_id_shift(f->to, 0)};
    const orr_trace *t;
    orr_trace *owned;
    orr_code code = orr_set_rank_trace(f->to, 0, &t, &owned, err);
    if (!code)
        code = orr_trace_write(t, to, &same, err);
    orr_trace_destroy(owned);
    return code;
}

static orr_code write_set(const fixer *f, const char *path, const char *to, orr_error *err)
{
    const orr_write_options same = {.same_schema = true};
    if (orr_text_ends(to, ".orr"))
        return orr_set_save(f->to, to, NULL, err);
    const char *file = orr_set_rank_count(f->from) == 1 ? orr_set_rank_path(f->from, 0) : NULL;
    if (file && strcmp(file, path) == 0)
        return write_one(f, to, err);
    return orr_set_write_files(f->to, to, &same, f->read->threads, err);
}

orr_code orr_check_fix(const char *path,
                       const char *to,
                       const orr_set_options *read,
                       const orr_check_options *opt,
                       orr_check_report **changes,
                       orr_error *err)
{
    orr_set_options tolerant = read ? *read : (orr_set_options){0};
    orr_error own;
    fixer f = {.read = &tolerant};
    err = err ? err : &own;
    *changes = NULL;
    tolerant.keep_going = true;
    orr_code code = check_target(to, err);
    if (code || (code = orr_set_open(path, &tolerant, &f.from, err)))
        return code;
    code = chk_begin(&f.k, f.from, opt, err);
    if (code) {
        orr_set_close(f.from);
        return code;
    }
    code = repair_all(&f, err);
    const orr_code finished = chk_finish(&f.k, changes, code ? NULL : err);
    code = code ? code : finished;
    if (!code) /* last: when it is there, nothing can fail any more */
        code = write_set(&f, path, to, err);
    orr_set_close(f.to);
    orr_set_close(f.from);
    if (code) {
        orr_check_report_destroy(*changes);
        *changes = NULL;
    }
    return code;
}
