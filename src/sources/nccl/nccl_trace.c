/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_trace.c - rows of all exports, by GPU.
 *
 * A GPU is a process of a node.  One pass over all files finds the GPUs, who belongs to which
 * communicator, and how many rows each GPU has.  Rows are kept meanwhile.  If they exceed the
 * budget they are dropped, and from then on reread for as many GPUs at a time as fit, at least one:
 * memory is bounded by one GPU's rows. Invariant: a row's order (file, then row) is the same in
 * every pass. */
#include "nccl_impl.h"

#include "base/memory/sort.h"
#include "base/text/text.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Which exports there are, in which order, and from which node each of them is.
 *
 * The order of files decides how ranks are numbered, so it is that of their paths, byte by byte,
 * and not the directory's.  Symbolic links to folders are not followed: there could be cycles. */

enum { DEEPEST = 64 };

static const char ending[] = ".sqlite";

static size_t digits_at(orr_str s, size_t at)
{
    size_t n = 0;
    while (at + n < s.len && s.ptr[at + n] >= '0' && s.ptr[at + n] <= '9')
        n++;
    return n;
}

static bool stands_at(orr_str s, size_t at, const char *word)
{
    const size_t n = strlen(word);
    return at + n <= s.len && memcmp(s.ptr + at, word, n) == 0;
}

/* profile_<job>_<node>_<rank>.sqlite, from `at` to the end. */
static bool is_profile(orr_str name, size_t at, orr_str *node)
{
    orr_str found = {0};
    if (!stands_at(name, at, "profile"))
        return false;
    at += strlen("profile");
    for (int field = 0; field < 3; field++) {
        const size_t n = stands_at(name, at, "_") ? digits_at(name, at + 1) : 0;
        if (n == 0)
            return false;
        if (field == 1)
            found = (orr_str){.ptr = name.ptr + at + 1, .len = n};
        at += 1 + n;
    }
    if (!stands_at(name, at, ending) || at + strlen(ending) != name.len)
        return false;
    *node = found;
    return true;
}

orr_str nccl_node_of_file(orr_str name)
{
    orr_str node = {.ptr = "0", .len = 1};
    for (size_t at = 0; at < name.len; at++) {
        const size_t n = stands_at(name, at, "nid") ? digits_at(name, at + 3) : 0;
        if (n)
            return (orr_str){.ptr = name.ptr + at + 3, .len = n};
    }
    for (size_t at = 0; at < name.len; at++)
        if (is_profile(name, at, &node))
            return node;
    return node;
}

static orr_code cannot_read(const char *path, orr_error *err)
{
    return orr_fail(err, ORR_EIO, ORR_AT(orr_where_line(path, 0, 0)), "%s", strerror(errno));
}

static orr_code add_file(nccl_job *j, const char *path, orr_error *err)
{
    const char *slash = strrchr(path, '/');
    nccl_file f = {.path = orr_arena_text(j->arena, orr_str_of(path))};
    if (!f.path ||
        !orr_intern_add(j->texts, nccl_node_of_file(orr_str_of(slash ? slash + 1 : path)),
                        &f.node) ||
        !orr_grow(&j->files.at, &j->files.room, j->files.count + 1))
        return orr_no_memory(err);
    if (j->files.count >= (1u << 20))
        return orr_fail(err, ORR_EINPUT, NULL, "more than 1,048,576 files");
    j->files.at[j->files.count++] = f;
    return ORR_OK;
}

static orr_code walk(nccl_job *j, const char *folder, int depth, orr_error *err);

static orr_code visit(nccl_job *j, const char *folder, const char *name, int depth, orr_error *err)
{
    struct stat s;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return ORR_OK;
    const size_t n = strlen(folder);
    const char *between = n && folder[n - 1] == '/' ? "" : "/";
    const char *path = orr_arena_print(j->arena, "%s%s%s", folder, between, name);
    if (!path)
        return orr_no_memory(err);
    if (lstat(path, &s) != 0)
        return cannot_read(path, err);
    if (S_ISDIR(s.st_mode))
        return depth < DEEPEST ? walk(j, path, depth + 1, err) : ORR_OK;
    return orr_text_ends(name, ending) ? add_file(j, path, err) : ORR_OK;
}

static orr_code walk(nccl_job *j, const char *folder, int depth, orr_error *err)
{
    DIR *dir = opendir(folder);
    orr_code code = ORR_OK;
    if (!dir)
        return cannot_read(folder, err);
    for (struct dirent *e; !code && (e = readdir(dir));)
        code = visit(j, folder, e->d_name, depth, err);
    closedir(dir);
    return code;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const nccl_file *)a)->path, ((const nccl_file *)b)->path);
}

orr_code nccl_job_find_files(nccl_job *j, const char *const *paths, size_t count, orr_error *err)
{
    for (size_t i = 0; i < count; i++) {
        struct stat s;
        const size_t before = j->files.count;
        if (stat(paths[i], &s) != 0)
            return cannot_read(paths[i], err);
        const orr_code code =
            S_ISDIR(s.st_mode) ? walk(j, paths[i], 0, err) : add_file(j, paths[i], err);
        if (code)
            return code;
        if (j->files.count == before)
            return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_line(paths[i], 0, 0)),
                            "contains no file that ends in %s", ending);
    }
    if (!j->files.count)
        return orr_fail(err, ORR_EUSAGE, NULL, "at least one file or folder is required");
    orr_sort(j->files.at, j->files.count, sizeof *j->files.at, by_path);
    j->report->files = (uint32_t)j->files.count;
    return ORR_OK;
}

/* ---- trace ---- */

enum { ROW_BITS = 40 };

/* ---- GPUs ---- */

orr_str nccl_text(const nccl_job *j, uint32_t number)
{
    return orr_intern_get(j->texts, number);
}

const char *nccl_gpu_name(const nccl_job *j, uint32_t gpu, char room[96])
{
    const nccl_gpu *g = &j->gpus.at[gpu];
    snprintf(room, 96, "GPU %s/%u", nccl_text(j, g->node).ptr, g->pid);
    return room;
}

static orr_code find_gpu(nccl_job *j, uint32_t node, uint64_t pid, uint32_t *out, orr_error *err)
{
    if (pid > UINT32_MAX)
        return orr_fail(err, ORR_EINPUT, NULL, "pid %" PRIu64 " is not a process", pid);
    const uint64_t key = (uint64_t)node << 32 | pid;
    *out = orr_map_find(j->gpu_of, key, ORR__NONE);
    if (*out != ORR__NONE)
        return ORR_OK;
    if (j->gpus.count >= (1u << 24))
        return orr_fail(err, ORR_EINPUT, NULL, "more than 16,777,216 processes");
    if (!orr_grow(&j->gpus.at, &j->gpus.room, j->gpus.count + 1) ||
        !orr_map_put(j->gpu_of, key, (uint32_t)j->gpus.count, NULL))
        return orr_no_memory(err);
    *out = (uint32_t)j->gpus.count;
    j->gpus.at[j->gpus.count++] = (nccl_gpu){.node = node,
                                             .pid = (uint32_t)pid,
                                             .rank = ORR__NONE,
                                             .is_wanted = true,
                                             .first_file = ORR__NONE};
    return ORR_OK;
}

#define DROP(rows) (orr_free((rows).at), memset(&(rows), 0, sizeof(rows)))

void nccl_gpu_drop_rows(nccl_gpu *g)
{
    DROP(g->calls);
    DROP(g->events);
    DROP(g->infos);
    DROP(g->works);
    DROP(g->sends);
    DROP(g->receives);
    DROP(g->kernels);
    DROP(g->marks);
    g->stage = ORR__EMPTY;
    g->has_window_start = g->has_window_end = false;
}

/* ---- what is kept of a row ---- */

typedef struct scan {
    nccl_job *job;
    uint32_t file;
    uint64_t order;
    bool is_first; /* the pass that finds out which ranks exist */
    /* Texts repeat from row to row: the last ones need no look into the table. */
    orr_str last[2];
    uint32_t last_number[2];
} scan;

#define KEEP(rows, ...) orr_push((rows).at, (rows).count, (rows).room, __VA_ARGS__)

static bool number_of(scan *s, int slot, orr_str text, uint32_t *out)
{
    if (text.len && orr_str_equal(text, s->last[slot])) {
        *out = s->last_number[slot];
        return true;
    }
    if (!orr_intern_add(s->job->texts, text, out))
        return false;
    s->last[slot] = orr_intern_get(s->job->texts, *out);
    s->last_number[slot] = *out;
    return true;
}

static bool keep_call(scan *s, nccl_gpu *g, const orr_nsys_row *r)
{
    nccl_call c = {.start = r->start,
                   .end = r->end,
                   .order = s->order,
                   .bytes = r->bytes,
                   .root = r->root,
                   .peer = r->peer,
                   .comm = ORR__NONE,
                   .group = ORR__NONE,
                   .info = ORR__NONE,
                   .op = (uint8_t)r->op,
                   .is_payload = r->is_payload};
    if (!number_of(s, 0, r->hash, &c.hash) || !number_of(s, 1, r->stream, &c.stream))
        return false;
    c.ident = c.hash;
    return KEEP(g->calls, c);
}

static bool keep_info(scan *s, nccl_gpu *g, const orr_nsys_row *r)
{
    nccl_info i = {.start = r->start,
                   .order = s->order,
                   .root = r->root,
                   .algorithm = r->algorithm,
                   .protocol = r->protocol,
                   .bytes = r->bytes,
                   .width = r->width,
                   .chunk_steps = r->chunk_steps,
                   .slice_steps = r->slice_steps,
                   .step = r->step};
    if (!number_of(s, 0, r->hash, &i.hash) || !number_of(s, 1, r->stream, &i.stream))
        return false;
    return KEEP(g->infos, i);
}

static bool keep_work(const scan *s, nccl_gpu *g, const orr_nsys_row *r)
{
    return KEEP(g->works, (nccl_work){.start = r->start,
                                      .order = s->order,
                                      .count = r->count,
                                      .chunk = r->chunk,
                                      .total = r->total,
                                      .last = r->last,
                                      .send_buffer = r->send_buffer,
                                      .receive_buffer = r->receive_buffer});
}

static bool keep_transfer(const scan *s, nccl_gpu *g, const orr_nsys_row *r)
{
    const nccl_transfer t = {.start = r->start,
                             .order = s->order,
                             .bytes = r->bytes,
                             .peer = r->peer,
                             .protocol = r->protocol,
                             .size = r->high << 32 | r->low,
                             .chunk = r->chunk};
    if (r->p2p_type == 1)
        return KEEP(g->sends, t);
    return r->p2p_type == 2 ? KEEP(g->receives, t) : true;
}

static bool keep_mark(const scan *s, nccl_gpu *g, const orr_nsys_row *r)
{
    const int32_t step = r->kind == ORR_NSYS_GROUP_START ? 1 : -1;
    return KEEP(g->marks, (nccl_mark){.start = r->start, .order = s->order, .step = step});
}

static bool keep_kernel(const scan *s, nccl_gpu *g, const orr_nsys_row *r)
{
    return KEEP(g->kernels, (nccl_kernel){.start = r->start,
                                          .end = r->end,
                                          .stream = r->cuda_stream,
                                          .order = s->order,
                                          .op = (uint8_t)r->op});
}

static void keep_window(nccl_gpu *g, const orr_nsys_row *r)
{
    const bool is_start = r->kind == ORR_NSYS_WINDOW_START;
    bool *has = is_start ? &g->has_window_start : &g->has_window_end;
    if (!*has)
        *(is_start ? &g->window_start : &g->window_end) = r->start;
    *has = true;
}

static bool keep_row(scan *s, nccl_gpu *g, const orr_nsys_row *r)
{
    switch (r->kind) {
    case ORR_NSYS_CALL:
        return keep_call(s, g, r);
    case ORR_NSYS_INFO:
        return keep_info(s, g, r);
    case ORR_NSYS_WORK:
        return keep_work(s, g, r);
    case ORR_NSYS_P2P:
        return keep_transfer(s, g, r);
    case ORR_NSYS_GROUP_START:
    case ORR_NSYS_GROUP_END:
        return keep_mark(s, g, r);
    case ORR_NSYS_KERNEL:
        return keep_kernel(s, g, r);
    case ORR_NSYS_WINDOW_START:
    case ORR_NSYS_WINDOW_END:
        keep_window(g, r);
        return true;
    default:
        return true;
    }
}

static size_t row_bytes(orr_nsys_kind kind)
{
    switch (kind) {
    case ORR_NSYS_CALL:
        return sizeof(nccl_call) + sizeof(uint32_t);
    case ORR_NSYS_INFO:
        return sizeof(nccl_info);
    case ORR_NSYS_WORK:
        return sizeof(nccl_work);
    case ORR_NSYS_P2P:
        return sizeof(nccl_transfer);
    case ORR_NSYS_KERNEL:
        return sizeof(nccl_kernel);
    default:
        return sizeof(nccl_mark);
    }
}

/* ---- which ranks exist ---- */

/* A marker may come again and again; those of one GPU and hash are chained, the latest first. */
static bool is_known_member(const nccl_job *j, const nccl_member *m, uint32_t latest)
{
    for (uint32_t i = latest; i != ORR__NONE; i = j->members.at[i].before) {
        const nccl_member *other = &j->members.at[i];
        if (other->ident == m->ident && other->rank == m->rank)
            return true;
    }
    return false;
}

static orr_code add_member(scan *s, uint32_t gpu, const orr_nsys_row *r, orr_error *err)
{
    nccl_job *j = s->job;
    nccl_member m = {.gpu = gpu, .rank = r->rank, .ranks = r->ranks};
    if (!orr_intern_add(j->texts, r->hash, &m.hash) || !orr_intern_add(j->texts, r->id, &m.ident))
        return orr_no_memory(err);
    const uint64_t key = (uint64_t)gpu << 32 | m.hash;
    m.before = orr_map_find(j->member_of, key, ORR__NONE);
    if (is_known_member(j, &m, m.before))
        return ORR_OK;
    if (!orr_map_put(j->member_of, key, (uint32_t)j->members.count, NULL) || !KEEP(j->members, m))
        return orr_no_memory(err);
    return ORR_OK;
}

static orr_code add_topology(scan *s, uint32_t node, const orr_nsys_row *r, orr_error *err)
{
    nccl_job *j = s->job;
    nccl_topology t = {.node = node,
                       .channel = r->channel,
                       .me = r->me,
                       .order = s->order,
                       .previous = r->previous,
                       .next = r->next,
                       .child = {r->child[0], r->child[1], r->child[2]},
                       .parent = r->parent};
    if (!orr_intern_add(j->texts, r->hash, &t.hash))
        return orr_no_memory(err);
    const bool is_kept = r->kind == ORR_NSYS_RING ? KEEP(j->rings, t) : KEEP(j->trees, t);
    return is_kept ? ORR_OK : orr_no_memory(err);
}

static void drop_all(nccl_job *j)
{
    for (size_t i = 0; i < j->gpus.count; i++)
        nccl_gpu_drop_rows(&j->gpus.at[i]);
    j->held = 0;
}

/* Things that only the first pass does. */
static orr_code survey_row(scan *s, uint32_t gpu, const orr_nsys_row *r, orr_error *err)
{
    nccl_job *j = s->job;
    nccl_gpu *g = &j->gpus.at[gpu];
    g->rows++;
    g->call_rows += r->kind == ORR_NSYS_CALL;
    if (g->first_file == ORR__NONE)
        g->first_file = s->file;
    g->last_file = s->file;
    j->report->calls += r->kind == ORR_NSYS_CALL;
    j->report->kernels += r->kind == ORR_NSYS_KERNEL;
    if (r->kind == ORR_NSYS_KERNEL && r->grid > j->most_grid)
        j->most_grid = r->grid;
    if (r->kind == ORR_NSYS_COMM)
        return add_member(s, gpu, r, err);
    if (r->kind == ORR_NSYS_RING || r->kind == ORR_NSYS_TREE)
        return add_topology(s, g->node, r, err);
    return ORR_OK;
}

static bool is_wanted_kind(const nccl_job *j, const orr_nsys_row *r)
{
    if (r->kind == ORR_NSYS_OTHER)
        return false;
    return !r->is_payload || !j->rules->ignores_payloads;
}

static orr_code take_row(scan *s, const orr_nsys_row *r, orr_error *err)
{
    nccl_job *j = s->job;
    uint32_t gpu;
    if (!is_wanted_kind(j, r))
        return ORR_OK;
    orr_code code = find_gpu(j, j->files.at[s->file].node, r->pid, &gpu, err);
    if (!code && s->is_first)
        code = survey_row(s, gpu, r, err);
    if (code || !j->gpus.at[gpu].is_wanted || (s->is_first && !j->is_whole))
        return code;
    if (!keep_row(s, &j->gpus.at[gpu], r))
        return orr_no_memory(err);
    j->held += row_bytes(r->kind);
    if (s->is_first && j->held > j->budget) {
        j->is_whole = false;
        drop_all(j);
    }
    return ORR_OK;
}

static orr_code scan_file(nccl_job *j, uint32_t file, bool is_first, orr_error *err)
{
    scan s = {.job = j, .file = file, .is_first = is_first};
    orr_nsys *n;
    orr_nsys_row row;
    orr_code code = orr_nsys_open(j->files.at[file].path, NULL, &n, err);
    if (code)
        return code;
    for (uint64_t count = 0; (code = orr_nsys_next(n, &row, err)) == ORR_OK; count++) {
        s.order = (uint64_t)file << ROW_BITS | count;
        j->report->rows += is_first;
        if (is_first)
            orr_progress_add(&j->progress, 1);
        if ((code = take_row(&s, &row, err))) {
            if (err && !err->where.path[0])
                err->where = orr_where_line(j->files.at[file].path, 0, 0);
            break;
        }
    }
    orr_nsys_close(n);
    return code == ORR_END ? ORR_OK : code;
}

static void set_stage(nccl_job *j, uint32_t gpu)
{
    j->gpus.at[gpu].stage = ORR__LOADED;
}

orr_code nccl_job_scan(nccl_job *j, orr_error *err)
{
    orr_code code = ORR_OK;
    j->is_whole = true;
    orr_progress_start(&j->progress, "reading", "rows", 0, !j->opt->shows_progress);
    for (uint32_t f = 0; f < j->files.count && !code; f++)
        code = scan_file(j, f, true, err);
    orr_progress_end(&j->progress);
    if (code)
        return code;
    for (uint32_t g = 0; g < j->gpus.count && j->is_whole; g++)
        set_stage(j, g);
    j->report->gpus = (uint32_t)j->gpus.count;
    return ORR_OK;
}

/* ---- GPUs a few at a time ---- */

/* This one, and those after it that likely fit as well. */
static void choose_batch(nccl_job *j, uint32_t gpu, uint32_t *first_file, uint32_t *last_file)
{
    uint64_t bytes = 0;
    *first_file = ORR__NONE;
    *last_file = 0;
    for (uint32_t i = 0; i < j->gpus.count; i++) {
        nccl_gpu *g = &j->gpus.at[i];
        const uint64_t size = g->rows * sizeof(nccl_call);
        g->is_wanted = i == gpu || (i > gpu && bytes + size <= j->budget);
        if (i >= gpu)
            bytes += size;
        if (!g->is_wanted || g->first_file == ORR__NONE)
            continue;
        *first_file = g->first_file < *first_file ? g->first_file : *first_file;
        *last_file = g->last_file > *last_file ? g->last_file : *last_file;
    }
}

orr_code nccl_job_load(nccl_job *j, uint32_t gpu, orr_error *err)
{
    uint32_t first, last;
    if (j->gpus.at[gpu].stage != ORR__EMPTY)
        return ORR_OK;
    drop_all(j);
    choose_batch(j, gpu, &first, &last);
    for (uint32_t f = first; f != ORR__NONE && f <= last; f++) {
        const orr_code code = scan_file(j, f, false, err);
        if (code)
            return code;
    }
    for (uint32_t g = 0; g < j->gpus.count; g++)
        if (j->gpus.at[g].is_wanted)
            set_stage(j, g);
    return ORR_OK;
}
