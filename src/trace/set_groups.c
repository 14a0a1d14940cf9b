/* SPDX-License-Identifier: Apache-2.0 */
/* set_groups.c - the communicator groups that lie beside rank files, as PREFIX.json.
 *
 * Anybody may keep another JSON file under that name, so a file counts as a group file only if it
 * is an object of which every key is a number.  Such a file must then be right. */
#include "set_impl.h"

#include "base/formats/json.h"
#include "base/io/input.h"
#include "base/text/number.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

typedef struct listed {
    uint64_t id;
    uint32_t index;
    orr_json_value ranks;
} listed;

static int compare_listed(const void *p, const void *q)
{
    const listed *a = p, *b = q;
    return a->id != b->id ? (a->id < b->id ? -1 : 1) : a->index < b->index ? -1 : 1;
}

static bool is_group_file(orr_json_value root)
{
    orr_json_value v;
    orr_str key;
    int64_t id;
    if (orr_json_type_of(root) != ORR_JSON_OBJECT)
        return false;
    for (orr_json_iter it = orr_json_iterate(root); orr_json_next_member(&it, &key, &v);)
        if (!orr_text_i64(key, &id))
            return false;
    return true;
}

static orr_code take_ranks(orr_set *s, const listed *g, uint32_t *ranks, orr_error *err)
{
    const orr_where w = orr_json_where(g->ranks);
    orr_json_value v;
    uint64_t rank;
    uint32_t count = 0;
    if (orr_json_type_of(g->ranks) != ORR_JSON_ARRAY || orr_json_count(g->ranks) == 0)
        return orr_fail(err, ORR_EINPUT, &w, "group %" PRIu64 ": a list of ranks was expected",
                        g->id);
    for (orr_json_iter it = orr_json_iterate(g->ranks); orr_json_next_value(&it, &v);) {
        const orr_code code = orr_json_get_u64(v, &rank, err);
        const orr_where at = orr_json_where(v);
        if (code)
            return code;
        if (rank >= s->rank_count)
            return orr_fail(err, ORR_EINPUT, &at,
                            "group %" PRIu64 " has rank %" PRIu64 ", but there are traces for %zu "
                            "rank%s beside it",
                            g->id, rank, s->rank_count, s->rank_count == 1 ? "" : "s");
        ranks[count++] = (uint32_t)rank;
    }
    return orr_set_add_group(s, g->id, ranks, count, err);
}

/* Groups ascend in a set; in a file they come in any order. */
static orr_code list_groups(orr_json_value root, listed *all, size_t *most, orr_error *err)
{
    orr_str key;
    uint32_t n = 0;
    int64_t id;
    for (orr_json_iter it = orr_json_iterate(root); orr_json_next_member(&it, &key, &all[n].ranks);
         n++) {
        const orr_where w = orr_json_where(all[n].ranks);
        if (!orr_text_i64(key, &id) || id <= 0)
            return orr_fail(err, ORR_EINPUT, &w, "\"%.*s\" is not a group number above 0",
                            (int)key.len, key.ptr);
        all[n].id = (uint64_t)id;
        all[n].index = n;
        if (orr_json_count(all[n].ranks) > *most)
            *most = orr_json_count(all[n].ranks);
    }
    qsort(all, n, sizeof *all, compare_listed);
    return ORR_OK;
}

static orr_code take_groups(orr_set *s, orr_json_value root, orr_error *err)
{
    const uint32_t count = orr_json_count(root);
    listed *all = orr_alloc((size_t)count + 1, sizeof *all);
    uint32_t *ranks = NULL;
    size_t most = 1;
    orr_code code = all ? list_groups(root, all, &most, err) : orr_no_memory(err);
    if (!code && !(ranks = orr_alloc(most, sizeof *ranks)))
        code = orr_no_memory(err);
    for (uint32_t i = 0; i < count && !code; i++) {
        const orr_where w = orr_json_where(all[i].ranks);
        if (i && all[i].id == all[i - 1].id)
            code = orr_fail(err, ORR_EINPUT, &w, "group %" PRIu64 " is here twice", all[i].id);
        else
            code = take_ranks(s, &all[i], ranks, err);
    }
    orr_free(ranks);
    orr_free(all);
    return code;
}

orr_code orr__groups_read_beside(orr_set *s, const char *path, orr_error *err)
{
    struct stat st;
    orr_input *in;
    orr_json *j = NULL;
    orr_json_value root;
    orr_error why;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return ORR_OK;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    if ((code = orr_json_open(orr_input_bytes(in), path, &j, &why)) == ORR_OK)
        code = orr_json_only(j, &root, &why);
    if (code == ORR_ENOMEM)
        code = orr_no_memory(err);
    else
        code = code || !is_group_file(root) ? ORR_OK : take_groups(s, root, err);
    orr_json_close(j);
    orr_input_close(in);
    return code;
}
