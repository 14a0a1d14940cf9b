/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - the list of checks, their order, and the storage of findings.
 *
 * Findings are kept up to a limit per kind and counted beyond it, so a file with a million bad
 * nodes costs a million increments and not a million sentences.  They are sorted by kind at the
 * end; within a kind they stay in the order of classes and nodes.  Single ranks are checked on
 * several threads, in parts that are merged in order: the report is the same for any number of
 * threads. */
#include "check_impl.h"

#include "base/threads/pool.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

typedef struct kind_row {
    const char *name;
    orr_severity severity;
} kind_row;

static const kind_row kinds[ORR_CHECK_KIND_COUNT] = {
    [ORR_CHECK_UNREADABLE] = {"unreadable-file", ORR_ERROR},
    [ORR_CHECK_DAMAGED] = {"damaged-file", ORR_ERROR},
    [ORR_CHECK_NO_NODES] = {"no-nodes", ORR_WARNING},
    [ORR_CHECK_DUPLICATE_ID] = {"duplicate-id", ORR_ERROR},
    [ORR_CHECK_MISSING_PARENT] = {"missing-parent", ORR_ERROR},
    [ORR_CHECK_MISSING_CTRL_PARENT] = {"missing-control-parent", ORR_WARNING},
    [ORR_CHECK_SELF_DEPENDENCY] = {"self-dependency", ORR_ERROR},
    [ORR_CHECK_DUPLICATE_DEPENDENCY] = {"duplicate-dependency", ORR_WARNING},
    [ORR_CHECK_CYCLE] = {"cycle", ORR_ERROR},
    [ORR_CHECK_INVALID_NODE] = {"invalid-node", ORR_WARNING},
    [ORR_CHECK_UNKNOWN_TYPE] = {"unknown-type", ORR_WARNING},
    [ORR_CHECK_MISSING_ATTRIBUTE] = {"missing-attribute", ORR_ERROR},
    [ORR_CHECK_ATTRIBUTE_KIND] = {"attribute-kind", ORR_ERROR},
    [ORR_CHECK_ODD_ATTRIBUTE] = {"odd-attribute", ORR_WARNING},
    [ORR_CHECK_DUPLICATE_ATTRIBUTE] = {"duplicate-attribute", ORR_WARNING},
    [ORR_CHECK_BAD_VALUE] = {"bad-value", ORR_ERROR},
    [ORR_CHECK_MISSING_SIZE] = {"missing-size", ORR_WARNING},
    [ORR_CHECK_MISSING_PEER] = {"missing-peer", ORR_WARNING},
    [ORR_CHECK_PEER_RANGE] = {"peer-range", ORR_ERROR},
    [ORR_CHECK_OWN_RANK] = {"own-rank", ORR_ERROR},
    [ORR_CHECK_COLLECTIVE_COUNT] = {"collective-count", ORR_ERROR},
    [ORR_CHECK_COLLECTIVE_TYPE] = {"collective-type", ORR_ERROR},
    [ORR_CHECK_COLLECTIVE_SIZE] = {"collective-size", ORR_ERROR},
    [ORR_CHECK_UNEVEN_SIZE] = {"uneven-size", ORR_WARNING},
    [ORR_CHECK_COLLECTIVE_ORDER] = {"collective-order", ORR_ERROR},
    [ORR_CHECK_UNMATCHED_SEND] = {"unmatched-send", ORR_ERROR},
    [ORR_CHECK_UNMATCHED_RECV] = {"unmatched-receive", ORR_ERROR},
    [ORR_CHECK_MESSAGE_TAG] = {"message-tag", ORR_ERROR},
    [ORR_CHECK_MESSAGE_SIZE] = {"message-size", ORR_ERROR},
    [ORR_CHECK_NOT_COMPARED] = {"not-compared", ORR_NOTE},
};

const char *orr_check_kind_name(orr_check_kind kind)
{
    return (unsigned)kind < ORR_CHECK_KIND_COUNT ? kinds[kind].name : NULL;
}

orr_severity orr_check_kind_severity(orr_check_kind kind)
{
    return (unsigned)kind < ORR_CHECK_KIND_COUNT ? kinds[kind].severity : ORR_NOTE;
}

/* ---- text ---- */

void chk_put_count(orr_buf *b, uint64_t n)
{
    char digits[24];
    const int len = snprintf(digits, sizeof digits, "%" PRIu64, n);
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            orr_buf_byte(b, ',');
        orr_buf_byte(b, (uint8_t)digits[i]);
    }
}

/* Kernel names run to hundreds of characters; the beginning distinguishes them. */
enum { NAME_SHOWN = 64 };

void chk_put_name(orr_buf *b, orr_str name)
{
    size_t len = name.len;
    if (len > NAME_SHOWN) {
        len = NAME_SHOWN;
        while (len && ((uint8_t)name.ptr[len] & 0xC0) == 0x80)
            len--; /* not inside a character */
    }
    orr_buf_byte(b, '"');
    for (size_t i = 0; i < len; i++) {
        const uint8_t c = (uint8_t)name.ptr[i];
        orr_buf_byte(b, c < 0x20 || c == 0x7F ? '?' : c);
    }
    orr_buf_text(b, len < name.len ? "...\"" : "\"");
}

void chk_put_id_and_name(orr_buf *b, const chk_class *cls, uint64_t shift, uint32_t node)
{
    orr_buf_u64(b, cls->c->id[node] + shift);
    orr_buf_byte(b, ' ');
    chk_put_name(b, orr_trace_name(cls->t, node));
}

static const char *keep_words(chk_run *k, orr_buf *b)
{
    char *text = b->failed ? NULL : orr_arena_text(k->arena, (orr_str){(char *)b->ptr, b->len});
    orr_buf_fini(b);
    k->no_memory |= !text;
    return text ? text : "";
}

const char *chk_node_words(chk_run *k, const chk_class *cls, uint32_t node)
{
    orr_buf b = {0};
    orr_buf_text(&b, "node ");
    chk_put_id_and_name(&b, cls, orr_set_id_shift(k->set, cls->rank), node);
    return keep_words(k, &b);
}

const char *chk_count_words(chk_run *k, uint64_t n)
{
    orr_buf b = {0};
    chk_put_count(&b, n);
    return keep_words(k, &b);
}

/* ---- keeping findings ---- */

static void keep(chk_run *k, const orr_finding *f)
{
    chk_store *store = chk_store_of(k->report);
    const size_t n = k->report->finding_count;
    if (!f->text || !orr_grow(&store->findings, &store->room, n + 1)) {
        k->no_memory = true;
        return;
    }
    store->findings[n] = *f;
    k->report->finding_count = n + 1;
}

static const char *print_words(chk_run *k, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    const int len = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    char *text = len < 0 ? NULL : orr_arena_take(k->arena, (size_t)len + 1);
    if (text)
        vsnprintf(text, (size_t)len + 1, fmt, args);
    return text;
}

/* In the rank's file: records of equal ranks are at the same offset unless their ids differ. */
static orr_where place_of(const chk_run *k, const chk_class *cls, uint32_t node)
{
    const orr_where where = node == ORR_NO_NODE
                                ? orr_where_byte(orr_trace_path(cls->t), ORR_NO_BYTE)
                                : orr_trace_where(cls->t, node);
    const char *path = orr_set_rank_path(k->set, cls->rank);
    const uint32_t first =
        cls->index == ORR_NO_NODE ? cls->rank : orr_set_class_first(k->set, cls->index);
    if (cls->rank == first || !path)
        return where;
    const bool is_same_place =
        orr_set_id_shift(k->set, cls->rank) == orr_set_id_shift(k->set, first);
    return orr_where_byte(path, is_same_place ? where.byte : ORR_NO_BYTE);
}

static void place(chk_run *k, const chk_class *cls, uint32_t node, orr_finding *f)
{
    f->rank = cls->rank;
    f->rank_count = cls->rank_count;
    f->where = place_of(k, cls, node);
    if (node == ORR_NO_NODE)
        return;
    f->has_node = true;
    f->node = cls->c->id[node] + orr_set_id_shift(k->set, cls->rank);
    f->name = orr_arena_text(k->arena, orr_trace_name(cls->t, node));
    k->no_memory |= !f->name;
}

void chk_add(
    chk_run *k, const chk_class *cls, orr_check_kind kind, uint32_t node, const char *fmt, ...)
{
    if (k->report->count[kind]++ >= k->limit)
        return;
    orr_finding f = {.kind = kind, .name = ""};
    va_list args;
    va_start(args, fmt);
    f.text = print_words(k, fmt, args);
    va_end(args);
    place(k, cls, node, &f);
    keep(k, &f);
}

void chk_add_file(
    chk_run *k, uint32_t rank, orr_check_kind kind, const orr_where *where, const char *fmt, ...)
{
    if (k->report->count[kind]++ >= k->limit)
        return;
    orr_finding f = {.kind = kind, .where = *where, .rank = rank, .rank_count = 1, .name = ""};
    va_list args;
    va_start(args, fmt);
    f.text = print_words(k, fmt, args);
    va_end(args);
    keep(k, &f);
}

void chk_add_note(chk_run *k, const char *text)
{
    k->report->count[ORR_CHECK_NOT_COMPARED]++;
    keep(k, &(orr_finding){.kind = ORR_CHECK_NOT_COMPARED,
                           .where = orr_where_byte("", ORR_NO_BYTE),
                           .rank = ORR_NO_NODE,
                           .name = "",
                           .text = text});
}

/* ---- the report ---- */

void orr_check_report_destroy(orr_check_report *r)
{
    if (!r)
        return;
    chk_store *store = chk_store_of(r);
    orr_arena_destroy(store->arena);
    orr_free(store->findings);
    orr_free(store);
}

/* ranks: where to list those of this class. */
static void note_class(chk_run *k, uint32_t index, const uint32_t *ranks)
{
    chk_class *cls = &k->classes[index];
    cls->index = index;
    cls->rank = orr_set_class_first(k->set, index);
    cls->rank_count = orr_set_class_ranks(k->set, index);
    cls->ranks = ranks;
    cls->t = orr_set_trace(k->set, index);
    cls->c = orr_trace_columns(cls->t);
    cls->holes = k->set->classes[index].hole_count ? &k->set->classes[index] : NULL;
    k->report->node_count += (uint64_t)cls->c->count * cls->rank_count;
}

static bool note_classes(chk_run *k, uint32_t count)
{
    const uint32_t ranks = k->report->rank_count;
    uint32_t *list = orr_arena_new(k->arena, (size_t)ranks + 1, uint32_t);
    uint32_t *at = orr_arena_new(k->arena, (size_t)count + 1, uint32_t);
    k->classes = orr_arena_new(k->arena, (size_t)count + 1, chk_class);
    if (!list || !at || !k->classes)
        return false;
    k->class_count = k->report->class_count = count;
    for (uint32_t i = 0; i < count; i++) {
        note_class(k, i, list + at[i]);
        at[i + 1] = at[i] + k->classes[i].rank_count;
    }
    for (uint32_t r = 0; r < ranks; r++) {
        const uint32_t c = orr_set_class_of(k->set, r);
        if (c != ORR_NO_NODE)
            list[at[c]++] = r;
    }
    return true;
}

/* An empty report and scratch memory; false: out of memory. */
static bool open_check(chk_run *k, const orr_set *s, uint32_t limit)
{
    *k = (chk_run){.set = s, .limit = limit};
    k->scratch = orr_arena_create();
    chk_store *store = orr_alloc(1, sizeof *store);
    if (store) {
        k->report = &store->report;
        k->arena = store->arena = orr_arena_create();
    }
    if (!k->arena || !k->scratch)
        return false;
    k->report->rank_count = orr_set_rank_count(s);
    return true;
}

static void close_check(chk_run *k)
{
    orr_arena_destroy(k->scratch);
    orr_check_report_destroy(k->report);
    k->scratch = NULL;
    k->report = NULL;
}

orr_code chk_begin(chk_run *k, const orr_set *s, uint32_t limit, orr_error *err)
{
    if (open_check(k, s, limit ? limit : CHK_LIMIT) && note_classes(k, orr_set_class_count(s)))
        return ORR_OK;
    close_check(k);
    return orr_no_memory(err);
}

/* Stable: findings of one kind stay in the order they were made. */
static bool sort_findings(orr_check_report *r, orr_arena *scratch)
{
    chk_store *store = chk_store_of(r);
    size_t at[ORR_CHECK_KIND_COUNT + 1] = {0};
    orr_finding *sorted = orr_arena_new(scratch, r->finding_count + 1, orr_finding);
    if (!sorted)
        return false;
    for (size_t i = 0; i < r->finding_count; i++)
        at[store->findings[i].kind + 1]++;
    for (size_t i = 0; i < ORR_CHECK_KIND_COUNT; i++)
        at[i + 1] += at[i];
    for (size_t i = 0; i < r->finding_count; i++)
        sorted[at[store->findings[i].kind]++] = store->findings[i];
    if (r->finding_count)
        memcpy(store->findings, sorted, r->finding_count * sizeof *sorted);
    r->findings = store->findings;
    return true;
}

orr_code chk_finish(chk_run *k, orr_check_report **out, orr_error *err)
{
    orr_check_report *r = k->report;
    k->no_memory |= !sort_findings(r, k->scratch);
    for (int i = 0; i < ORR_CHECK_KIND_COUNT; i++) {
        uint64_t *total = kinds[i].severity == ORR_ERROR     ? &r->errors
                          : kinds[i].severity == ORR_WARNING ? &r->warnings
                                                             : &r->notes;
        *total += r->count[i];
    }
    orr_arena_destroy(k->scratch);
    *out = k->no_memory ? NULL : r;
    if (!k->no_memory)
        return ORR_OK;
    orr_check_report_destroy(r);
    return orr_no_memory(err);
}

/* ---- all checks ---- */

static void check_readable(chk_run *k)
{
    orr_check_report *r = k->report;
    for (uint32_t rank = 0; rank < r->rank_count; rank++) {
        const orr_error *e = orr_set_error(k->set, rank);
        if (!e)
            continue;
        const bool is_damage = e->code == ORR_EINPUT;
        if (r->read_status != ORR_EIO)
            r->read_status = is_damage ? ORR_EINPUT : ORR_EIO;
        chk_add_file(k, rank, is_damage ? ORR_CHECK_DAMAGED : ORR_CHECK_UNREADABLE, &e->where, "%s",
                     e->message);
    }
}

/* ---- single ranks, on several threads ---- */

enum { PARTS_MOST = 64 };

/* Classes are split into consecutive parts; each part makes its own report. */
typedef struct parts {
    chk_run *k;
    chk_run *part;
    uint32_t count;
} parts;

static void check_class(chk_run *k, chk_class *cls)
{
    if (cls->rank_count == 0)
        return; /* not in use */
    if (cls->c->count == 0)
        chk_add(k, cls, ORR_CHECK_NO_NODES, ORR_NO_NODE, "the trace has no nodes");
    chk_deps(k, cls);
    chk_attrs(k, cls);
    orr_arena_reset(k->scratch);
}

static orr_code check_part(void *context, size_t i, orr_error *err)
{
    const parts *p = context;
    chk_run *k = &p->part[i];
    const uint64_t classes = p->k->class_count;
    const uint32_t from = (uint32_t)(classes * i / p->count),
                   to = (uint32_t)(classes * (i + 1) / p->count);
    if (!open_check(k, p->k->set, p->k->limit))
        return orr_no_memory(err);
    for (uint32_t c = from; c < to; c++)
        check_class(k, &p->k->classes[c]);
    return k->no_memory ? orr_no_memory(err) : ORR_OK;
}

/* Add a part's findings, as if they had been made here. */
static void merge_part(chk_run *k, const orr_check_report *part)
{
    uint64_t *count = k->report->count, seen[ORR_CHECK_KIND_COUNT];
    memcpy(seen, count, sizeof seen);
    for (size_t i = 0; i < part->finding_count; i++) {
        orr_finding f = chk_store_of(part)->findings[i];
        if (seen[f.kind]++ >= k->limit)
            continue;
        f.text = orr_arena_text(k->arena, orr_str_of(f.text));
        f.name = orr_arena_text(k->arena, orr_str_of(f.name));
        k->no_memory |= !f.name;
        keep(k, &f);
    }
    for (int kind = 0; kind < ORR_CHECK_KIND_COUNT; kind++)
        count[kind] += part->count[kind];
}

static orr_code check_classes(chk_run *k, unsigned threads, orr_error *err)
{
    parts p = {.k = k, .count = k->class_count < PARTS_MOST ? k->class_count : PARTS_MOST};
    p.part = orr_arena_new(k->arena, (size_t)p.count + 1, chk_run);
    if (!p.part)
        return orr_no_memory(err);
    const orr_code code = orr_pool_for(threads, p.count, check_part, &p, err);
    for (uint32_t i = 0; i < p.count; i++) {
        if (!code)
            merge_part(k, p.part[i].report);
        close_check(&p.part[i]);
    }
    return code;
}

orr_code orr_check_set(const orr_set *s,
                       const orr_check_options *opt,
                       orr_check_report **out,
                       orr_error *err)
{
    chk_run k;
    orr_check_options own;
    *out = NULL;
    orr_code code = ORR__TAKE_OPTIONS(&own, opt, orr_check_options, err);
    if (!code)
        code = chk_begin(&k, s, own.limit, err);
    if (code)
        return code;
    check_readable(&k);
    code = check_classes(&k, own.threads, err);
    if (code) {
        close_check(&k);
        return code;
    }
    chk_collectives(&k);
    orr_arena_reset(k.scratch);
    chk_messages(&k);
    return chk_finish(&k, out, err);
}
