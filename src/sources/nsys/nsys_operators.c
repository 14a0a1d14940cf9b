/* SPDX-License-Identifier: Apache-2.0 */
/* nsys_operators.c - how long operators took on the device, from an export.
 *
 * Nsight Systems records no shapes.  PyTorch's
 * torch.autograd.profiler.emit_nvtx(record_shapes=True) puts a range around each operator that
 * names them:
 *
 *     aten::addmm, seq = 3, op_id = 5, sizes = [[1024], [512, 4096], [4096, 1024]]
 *
 * A kernel belongs to the innermost such range of the thread that launched it (the call of the
 * runtime with its correlationId).  Sizes do not tell which factor of a product is stored
 * transposed; the names of cuBLAS kernels do.  Both tables are sorted by thread and time, so one
 * pass with a stack of open ranges suffices. */
#include "nsys_impl.h"

#include "base/memory/buffer.h"
#include "base/short_forms.h"

#include <inttypes.h>
#include <stdio.h>

enum { RANGES_MOST = 64, TENSORS = 4, DIMENSIONS = 6, WORDS = 200 };

typedef struct sizes {
    uint64_t of[TENSORS][DIMENSIONS];
    uint32_t rank[TENSORS];
    uint32_t count;
} sizes;

typedef struct open_range {
    int64_t end;
    char name[64];
    sizes in;
    double ns;          /* of its own kernels only */
    const char *layout; /* of a product: " nn", " tn" or "" */
} open_range;

typedef struct sweep {
    const char *path, *type;
    orr_sqlite *db;
    orr_sqlite_rows *ranges, *launches;
    open_range open[RANGES_MOST];
    size_t depth;
    int64_t thread;
    bool has_range; /* `ranges` is at one not yet opened */
    orr_nsys_take *take;
    void *context;
    uint64_t passed_over;
    orr_error *err;
} sweep;

/* ---- sizes ---- */

static uint64_t elements(const sizes *s, uint32_t i)
{
    uint64_t n = i < s->count ? 1 : 0;
    for (uint32_t d = 0; i < s->count && d < s->rank[i]; d++)
        if (__builtin_mul_overflow(n, s->of[i][d], &n))
            return 0;
    return n;
}

static uint64_t last(const sizes *s, uint32_t i, uint32_t from_right)
{
    return i < s->count && s->rank[i] > from_right ? s->of[i][s->rank[i] - 1 - from_right] : 0;
}

/* "[[2, 3], [], [4]]"; false if malformed, or with more dimensions than any kernel here. */
static bool read_sizes(const char *at, const char *end, sizes *out)
{
    *out = (sizes){0};
    if (at == end || *at++ != '[')
        return false;
    while (at < end && *at != ']') {
        if (*at == ',' || *at == ' ') {
            at++;
            continue;
        }
        if (*at++ != '[')
            return false;
        const uint32_t i = out->count;
        for (; at < end && *at != ']'; at++) {
            if (*at == ',' || *at == ' ')
                continue;
            uint64_t n = 0;
            if (*at < '0' || *at > '9' || (i < TENSORS && out->rank[i] == DIMENSIONS))
                return false;
            for (; at < end && *at >= '0' && *at <= '9' && n < UINT64_C(1) << 48; at++)
                n = n * 10 + (uint64_t)(*at - '0');
            at--;
            if (i < TENSORS)
                out->of[i][out->rank[i]++] = n;
        }
        if (at == end)
            return false;
        at++;
        if (i < TENSORS)
            out->count++;
    }
    return at < end;
}

static bool read_range(orr_str text, open_range *out)
{
    static const char before[] = "sizes = ";
    const char *comma = memchr(text.ptr, ',', text.len), *end = text.ptr + text.len;
    const char *at = comma ? memmem(text.ptr, text.len, before, sizeof before - 1) : NULL;
    const size_t length = comma ? (size_t)(comma - text.ptr) : 0;
    *out = (open_range){.layout = ""};
    if (!at || length >= sizeof out->name)
        return false;
    memcpy(out->name, text.ptr, length);
    return read_sizes(at + sizeof before - 1, end, &out->in);
}

/* ---- kernel texts of chip.h ---- */

/* cuBLAS is column-major: its "tn" is a row-major factor times a transposed one. */
static const char *layout_of(orr_str kernel, const char *otherwise)
{
    static const struct {
        const char *words[3], *layout;
    } all[] = {{{"_tn", "_TNT", "_TNN"}, ""},
               {{"_nn", "_NNT", "_NNN"}, " nn"},
               {{"_nt", "_NTT", "_NTN"}, " tn"}};
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 3; j++) {
            const size_t n = strlen(all[i].words[j]);
            const char *at = kernel.len ? memmem(kernel.ptr, kernel.len, all[i].words[j], n) : NULL;
            const char *behind = at ? at + n : NULL;
            if (at && (behind == kernel.ptr + kernel.len || *behind == '_' || *behind == '('))
                return all[i].layout;
        }
    return otherwise;
}

static bool is(const open_range *r, const char *name)
{
    return strcmp(r->name, name) == 0;
}

static int put_product(const open_range *r, const char *type, char *out)
{
    const uint32_t a = is(r, "aten::addmm"), b = a + 1;
    const bool is_batch = is(r, "aten::bmm");
    char batch[32] = "";
    if (r->in.count <= b || r->in.rank[a] != (is_batch ? 3U : 2U) || r->in.rank[b] != r->in.rank[a])
        return 0;
    if (is_batch)
        snprintf(batch, sizeof batch, "batch=%" PRIu64 " ", r->in.of[a][0]);
    return snprintf(out, WORDS, "gemm %s %sm=%" PRIu64 " n=%" PRIu64 " k=%" PRIu64 "%s%s", type,
                    batch, last(&r->in, a, 1), last(&r->in, b, 0), last(&r->in, a, 0),
                    a && elements(&r->in, 0) == last(&r->in, b, 0) ? " bias" : "", r->layout);
}

static int put_rows(
    const open_range *r, const char *type, const char *form, bool is_backward, char *out)
{
    const uint32_t at = is_backward; /* the first is the gradient */
    const uint64_t width = last(&r->in, at, 0);
    if (!width)
        return 0;
    return snprintf(out, WORDS, "norm %s m=%" PRIu64 " n=%" PRIu64 " %s%s", type,
                    elements(&r->in, at) / width, width, form, is_backward ? " backward" : "");
}

/* The kernel an operator corresponds to; false: none of those here. */
static bool put_words(const open_range *r, const char *type, char *out)
{
    static const struct {
        const char *name, *form;
        bool is_norm, is_backward;
    } rows[] = {{"aten::native_layer_norm", "layer", true, false},
                {"aten::native_layer_norm_backward", "layer", true, true},
                {"aten::_fused_rms_norm", "rms", true, false},
                {"aten::_fused_rms_norm_backward", "rms", true, true},
                {"aten::gelu", "gelu", false, false},
                {"aten::gelu_backward", "gelu", false, true},
                {"aten::silu", "silu", false, false},
                {"aten::silu_backward", "silu", false, true}};
    if (is(r, "aten::mm") || is(r, "aten::addmm") || is(r, "aten::bmm"))
        return put_product(r, type, out) > 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!is(r, rows[i].name))
            continue;
        if (rows[i].is_norm)
            return put_rows(r, type, rows[i].form, rows[i].is_backward, out) > 0;
        return elements(&r->in, 0) &&
               snprintf(out, WORDS, "activation %s m=%" PRIu64 " %s%s", type, elements(&r->in, 0),
                        rows[i].form, rows[i].is_backward ? " backward" : "") > 0;
    }
    return false;
}

/* ---- the sweep ---- */

static orr_code bad(const sweep *w, const char *words)
{
    return orr_fail(w->err, ORR_EINPUT, ORR_AT(orr_where_line(w->path, 0, 0)), "%s", words);
}

static orr_code close_range(sweep *w)
{
    const open_range *r = &w->open[--w->depth];
    char words[WORDS];
    if (!(r->ns > 0))
        return ORR_OK;
    if (!put_words(r, w->type, words)) {
        w->passed_over++;
        return ORR_OK;
    }
    return w->take(w->context, words, r->ns / 1000, w->err);
}

/* Closes ranges of other threads, and those that end before `now`. */
static orr_code close_until(sweep *w, int64_t thread, int64_t now)
{
    orr_code code = ORR_OK;
    while (!code && w->depth && (thread != w->thread || w->open[w->depth - 1].end < now))
        code = close_range(w);
    w->thread = thread;
    return code;
}

enum { THREAD, START, END, NAME };

static orr_code next_range(sweep *w)
{
    const orr_code code = orr_sqlite_next(w->ranges, w->err);
    w->has_range = code == ORR_OK;
    return code == ORR_END ? ORR_OK : code;
}

static orr_code open_ranges(sweep *w, int64_t thread, int64_t now)
{
    orr_code code = ORR_OK;
    while (!code && w->has_range) {
        const int64_t of = orr_sqlite_i64(w->ranges, THREAD, 0);
        const int64_t start = orr_sqlite_i64(w->ranges, START, 0);
        open_range r;
        if (of > thread || (of == thread && start > now))
            return ORR_OK;
        if (read_range(orr_sqlite_text(w->ranges, NAME), &r)) {
            r.end = orr_sqlite_i64(w->ranges, END, start);
            code = close_until(w, of, start);
            if (!code && w->depth == RANGES_MOST)
                code = bad(w, "more than 64 operators inside each other");
            if (!code)
                w->open[w->depth++] = r;
        }
        if (!code)
            code = next_range(w);
    }
    return code;
}

static orr_code take_launch(sweep *w)
{
    const int64_t thread = orr_sqlite_i64(w->launches, THREAD, 0);
    const int64_t now = orr_sqlite_i64(w->launches, START, 0);
    const int64_t ns = orr_sqlite_i64(w->launches, END, -1);
    const orr_str kernel = orr_sqlite_text(w->launches, NAME);
    if (ns < 0)
        return bad(w, "a kernel ends before it starts");
    orr_code code = open_ranges(w, thread, now);
    if (!code)
        code = close_until(w, thread, now);
    if (code || !w->depth)
        return code;
    open_range *r = &w->open[w->depth - 1];
    r->ns += (double)ns;
    r->layout = layout_of(kernel, r->layout);
    return ORR_OK;
}

static orr_code check_export(const sweep *w)
{
    static const char *const needed[][2] = {
        {"NVTX_EVENTS", "text"},
        {"NVTX_EVENTS", "globalTid"},
        {"CUPTI_ACTIVITY_KIND_KERNEL", "correlationId"},
        {"CUPTI_ACTIVITY_KIND_RUNTIME", "correlationId"},
        {"CUPTI_ACTIVITY_KIND_RUNTIME", "globalTid"},
        {"StringIds", "value"},
    };
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!orr_sqlite_has_column(w->db, needed[i][0], needed[i][1]))
            return orr_fail(
                w->err, ORR_EINPUT, ORR_AT(orr_where_line(w->path, 0, 0)),
                "there is no %s.%s: kernels are timed by what was recorded with --trace "
                "cuda,nvtx under emit_nvtx(record_shapes=True)",
                needed[i][0], needed[i][1]);
    return ORR_OK;
}

static orr_code select_both(sweep *w)
{
    const bool has_ids = orr_sqlite_has_column(w->db, "NVTX_EVENTS", "textId");
    const orr_code code = orr_sqlite_select(
        w->db,
        has_ids ? "SELECT t.globalTid, t.[start], t.[end], coalesce(t.text, s.value) AS words "
                  "FROM NVTX_EVENTS t LEFT JOIN StringIds s ON s.id = t.textId WHERE t.[end] IS "
                  "NOT NULL AND words LIKE 'aten::%sizes = %' ORDER BY 1, 2, 3 DESC"
                : "SELECT globalTid, [start], [end], text FROM NVTX_EVENTS WHERE [end] IS NOT NULL "
                  "AND text LIKE 'aten::%sizes = %' ORDER BY 1, 2, 3 DESC",
        &w->ranges, w->err);
    return code ? code
                : orr_sqlite_select(
                      w->db,
                      "SELECT r.globalTid, r.[start], k.[end] - k.[start], s.value FROM "
                      "CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON "
                      "r.correlationId = k.correlationId AND r.globalTid >> 24 = k.globalPid >> 24 "
                      "JOIN StringIds s ON s.id = k.demangledName ORDER BY 1, 2",
                      &w->launches, w->err);
}

orr_code orr_nsys_operators(const char *path,
                            const char *type,
                            orr_nsys_take *take,
                            void *context,
                            uint64_t *passed_over,
                            orr_error *err)
{
    sweep *w = orr_alloc(1, sizeof *w);
    if (!w)
        return orr_no_memory(err);
    *w = (sweep){.path = path, .type = type, .take = take, .context = context, .err = err};
    orr_code code = orr_sqlite_open(path, &w->db, err);
    if (!code)
        code = check_export(w);
    if (!code)
        code = select_both(w);
    if (!code)
        code = next_range(w);
    while (!code && (code = orr_sqlite_next(w->launches, err)) == ORR_OK)
        code = take_launch(w);
    if (code == ORR_END)
        code = ORR_OK;
    while (!code && w->depth)
        code = close_range(w);
    *passed_over = w->passed_over;
    orr_sqlite_end(w->ranges);
    orr_sqlite_end(w->launches);
    orr_sqlite_close(w->db);
    orr_free(w);
    return code;
}
