/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_user_contexts.c - contexts that the user gives: a table of communicator, call and context.
 *
 *     communicator,call,context
 *     0x1f2e,0,100
 *     0x1f2e,*,101
 *     *,*,102
 *
 * The call is counted from 0 among the calls of its communicator on its GPU.  The row that says
 * most counts: communicator and call, then the communicator, then the one for all.  A call that no
 * row names keeps the context that the rules give it. */
#include "nccl_impl.h"

#include "base/formats/csv.h"
#include "base/io/input.h"
#include "base/text/text.h"

enum { MOST_CALL = 1 << 30, COLUMNS = 3 };

struct nccl_user_contexts {
    orr_intern *names;
    orr_map *of_call; /* name << 32 | call -> context */
    orr_map *of_comm; /* name -> context */
    orr_map *for_all; /* 0 -> context */
};

void nccl_user_contexts_free(struct nccl_user_contexts *u)
{
    if (!u)
        return;
    orr_intern_destroy(u->names);
    orr_map_destroy(u->of_call);
    orr_map_destroy(u->of_comm);
    orr_map_destroy(u->for_all);
    orr_free(u);
}

/* ---- reading ---- */

static orr_code check_head(const orr_csv *csv, const orr_csv_row *row, orr_error *err)
{
    static const char *const names[COLUMNS] = {"communicator", "call", "context"};
    bool is_right = row->count == COLUMNS;
    for (size_t i = 0; is_right && i < COLUMNS; i++)
        is_right = orr_str_is(row->fields[i].text, names[i]);
    return is_right ? ORR_OK
                    : orr_fail(err, ORR_EINPUT, ORR_AT(orr_csv_where(csv, &row->fields[0])),
                               "expected the columns communicator,call,context");
}

static orr_code take_row(struct nccl_user_contexts *u,
                         const orr_csv *csv,
                         const orr_csv_row *row,
                         uint64_t most,
                         orr_error *err)
{
    const orr_where w = orr_csv_where(csv, &row->fields[0]);
    uint64_t call = 0, context;
    uint32_t name = 0;
    if (row->count != COLUMNS)
        return orr_fail(err, ORR_EINPUT, &w, "expected three columns");
    const bool any_comm = orr_str_is(row->fields[0].text, "*");
    const bool any_call = orr_str_is(row->fields[1].text, "*");
    orr_code code = orr_csv_u64(csv, &row->fields[2], "context", 0, most, &context, err);
    if (!code && !any_call)
        code = orr_csv_u64(csv, &row->fields[1], "call", 0, MOST_CALL, &call, err);
    if (code)
        return code;
    if (any_comm && !any_call)
        return orr_fail(err, ORR_EINPUT, &w, "a call without its communicator");
    if (!any_comm && !orr_intern_add(u->names, row->fields[0].text, &name))
        return orr_no_memory(err);
    orr_map *to = any_comm ? u->for_all : any_call ? u->of_comm : u->of_call;
    const uint64_t key = any_comm ? 0 : any_call ? name : (uint64_t)name << 32 | call;
    if (orr_map_find(to, key, ORR__NONE) != ORR__NONE)
        return orr_fail(err, ORR_EINPUT, &w, "a second row for the same call");
    return orr_map_put(to, key, (uint32_t)context, NULL) ? ORR_OK : orr_no_memory(err);
}

static orr_code read_rows(
    struct nccl_user_contexts *u, orr_span bytes, const char *path, uint64_t most, orr_error *err)
{
    orr_csv csv;
    orr_csv_row row;
    bool has_head = false;
    orr_code code;
    orr_csv_init(&csv, bytes, path);
    while ((code = orr_csv_next(&csv, &row, err)) == ORR_OK) {
        code = has_head ? take_row(u, &csv, &row, most, err) : check_head(&csv, &row, err);
        has_head = true;
        if (code)
            break;
    }
    orr_csv_fini(&csv);
    return code == ORR_END ? ORR_OK : code;
}

orr_code nccl_user_contexts_parse(orr_span bytes,
                                  const char *label,
                                  uint64_t most,
                                  struct nccl_user_contexts **out,
                                  orr_error *err)
{
    struct nccl_user_contexts *u = orr_alloc(1, sizeof *u);
    *out = u;
    if (!u || !(u->names = orr_intern_create()) || !(u->of_call = orr_map_create(0)) ||
        !(u->of_comm = orr_map_create(0)) || !(u->for_all = orr_map_create(0)))
        return orr_no_memory(err);
    return read_rows(u, bytes, label, most < ORR__NONE - 1 ? most : ORR__NONE - 1, err);
}

orr_code nccl_user_contexts_read(const char *path,
                                 uint64_t most,
                                 struct nccl_user_contexts **out,
                                 orr_error *err)
{
    orr_input *in;
    *out = NULL;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    code = nccl_user_contexts_parse(orr_input_bytes(in), path, most, out, err);
    orr_input_close(in);
    return code;
}

/* ---- using it ---- */

uint32_t nccl_user_context_of(const struct nccl_user_contexts *u,
                              orr_str communicator,
                              uint32_t call)
{
    uint32_t name, context = ORR__NONE;
    if (orr_intern_find(u->names, communicator, &name)) {
        context = orr_map_find(u->of_call, (uint64_t)name << 32 | call, ORR__NONE);
        if (context == ORR__NONE)
            context = orr_map_find(u->of_comm, name, ORR__NONE);
    }
    return context == ORR__NONE ? orr_map_find(u->for_all, 0, ORR__NONE) : context;
}

orr_code nccl_user_contexts_set(nccl_job *j, uint32_t gpu, orr_error *err)
{
    const struct nccl_user_contexts *u = j->user_contexts;
    nccl_gpu *g = &j->gpus.at[gpu];
    orr_map *seen = u ? orr_map_create(16) : NULL; /* calls of each communicator so far */
    bool is_good = !u || seen;
    for (size_t i = 0; u && is_good && i < g->calls.count; i++) {
        nccl_call *c = &g->calls.at[i];
        const uint32_t number = orr_map_find(seen, c->ident, 0);
        const uint32_t context = nccl_user_context_of(u, nccl_text(j, c->ident), number);
        is_good = orr_map_put(seen, c->ident, number + 1, NULL);
        if (context != ORR__NONE)
            c->context = context;
    }
    orr_map_destroy(seen);
    return is_good ? ORR_OK : orr_no_memory(err);
}
