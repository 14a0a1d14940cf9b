/* SPDX-License-Identifier: Apache-2.0 */
/* test_info_holes.c - the figures of a set with holes are those of the same ranks as plain
 * traces. */
#include "holes_make.h"

#include "views/info_impl.h"

#include <orrery/lab/info.h>

enum { SETS = 800 };

static orr_info *info_of(const orr_set *s, const orr_info_options *opt)
{
    orr_info *info;
    CHECK_OK(orr_info_create(s, opt, &info, &err), &err);
    return info;
}

/* ---- all figures ---- */

/* What is about the form and not about the ranks; with one rank the hash is that of its records. */
static bool is_about_form(const char *line, bool has_hash)
{
    return strstr(line, "\"ranks_distinct\"") ||
           (!has_hash && strstr(line, "\"content_hash_murmur3_128\""));
}

/* The JSON without those lines; the caller frees it. */
static char *figures_of(const orr_set *s, const orr_info_options *opt)
{
    orr_info *info = info_of(s, opt);
    orr_str text;
    CHECK_OK(orr_info_json(info, &text, &err), &err);
    char *all = strndup(text.ptr, text.len), *out = malloc(text.len + 1), *to = out;
    CHECK(all && out);
    for (char *line = all, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        *end = 0;
        if (!is_about_form(line, opt->one_rank)) {
            memcpy(to, line, (size_t)(end - line));
            to += end - line;
            *to++ = '\n';
        }
    }
    *to = 0;
    free(all);
    orr_info_destroy(info);
    return out;
}

static void compare_figures(const orr_set *s, const orr_set *plain, const orr_info_options *opt)
{
    char *a = figures_of(s, opt), *b = figures_of(plain, opt);
    CHECK_TEXT(a, b);
    free(a);
    free(b);
}

/* ---- the table of ranks ---- */

/* The row of a rank: "0-7,9,10-30/2". */
static bool is_listed(const char *ranks, unsigned rank)
{
    while (*ranks) {
        unsigned first, last, step = 1;
        int n = 0;
        CHECK_EQ(sscanf(ranks, "%u%n", &first, &n), 1);
        ranks += n;
        last = first;
        if (*ranks == '-') {
            CHECK_EQ(sscanf(ranks, "-%u%n", &last, &n), 1);
            ranks += n;
        }
        if (*ranks == '/') {
            CHECK_EQ(sscanf(ranks, "/%u%n", &step, &n), 1);
            ranks += n;
        }
        if (rank >= first && rank <= last && (rank - first) % step == 0)
            return true;
        ranks += *ranks == ',';
    }
    return false;
}

static const orr__class_row *row_of(const orr_info *o, uint32_t rank)
{
    const orr__class_row *found = NULL;
    for (size_t i = 0; i < o->row_count; i++) {
        if (!o->rows[i].count || !is_listed(o->rows[i].ranks, rank))
            continue;
        CHECK(found == NULL);
        found = &o->rows[i];
    }
    CHECK(found != NULL);
    return found;
}

static void compare_rows(const orr_set *s, const orr_set *plain)
{
    const orr_info_options opt = {.per_rank = true};
    orr_info *a = info_of(s, &opt), *b = info_of(plain, &opt);
    uint64_t ranks = 0;
    for (size_t i = 0; i < a->row_count; i++)
        ranks += a->rows[i].count;
    CHECK_EQ_U(ranks, a->ranks);
    for (uint32_t r = 0; r < a->ranks; r++) {
        const orr__class_row *x = row_of(a, r), *y = row_of(b, r);
        CHECK_EQ_U(x->nodes, y->nodes);
        CHECK_EQ_U(x->duration_us, y->duration_us);
        CHECK_EQ_U(x->sent_bytes, y->sent_bytes);
        CHECK_EQ_U(x->moved_bytes, y->moved_bytes);
        CHECK_EQ_U(x->critical_us, y->critical_us);
        CHECK_EQ_U(x->is_cyclic, y->is_cyclic);
    }
    orr_info_destroy(a);
    orr_info_destroy(b);
}

TEST(test_info_holes__figures_are_those_of_plain_ranks)
{
    static const unsigned wildness[] = {0, 60, 6};
    for (uint64_t seed = 0; seed < SETS; seed++) {
        orr_set *s = make_random_set(seed, wildness[seed % 3], seed % 2);
        orr_set *plain = make_plain_copy(s);
        compare_figures(s, plain, &(orr_info_options){.top = 1000});
        compare_figures(s, plain, &(orr_info_options){.top = 3, .job_ranks = 5});
        if (orr_set_id_shift(s, 1) == 0) /* in files, the ids themselves are shifted */
            compare_figures(s, plain,
                            &(orr_info_options){.one_rank = true,
                                                .rank = (uint32_t)seed % orr_set_rank_count(s)});
        compare_rows(s, plain);
        orr_set_close(s);
        orr_set_close(plain);
    }
}

/* ---- by hand ---- */

/* One collective of 600 bytes; ranks 0 to 3 in group 1, ranks 4 and 5 in group 2, rank 6 in 3. */
static orr_set *make_groups(void)
{
    const orr_attr attrs[] = {
        attr_of("comm_type", ORR_COLL_ALL_REDUCE),
        attr_of("comm_size", 600),
        {.name = orr_str_of("pg_name"), .kind = ORR_VALUE_STRING, .value.s = orr_str_of("77")}};
    const orr_draft d = {
        .id = 1, .type = ORR_NODE_COMM_COLL, .attrs = attrs, .attr_count = 3, .duration_us = 1};
    const orr_hole hole = {0, ORR_HOLE_PG_NAME, 0};
    static const int64_t groups[] = {1, 1, 1, 1, 2, 2, 3};
    orr_set *s;
    orr_trace *t = new_trace();
    uint32_t k;
    CHECK_OK(orr_trace_append(t, &d, &err), &err);
    seal(t);
    CHECK_OK(orr_set_create(&s, &err), &err);
    CHECK_OK(orr_set_add_class(s, t, &hole, 1, 1, &k, &err), &err);
    for (uint32_t r = 0; r < 7; r++)
        CHECK_OK(orr_set_add_rank_values(s, k, 0, &groups[r], &err), &err);
    return s;
}

TEST(test_info_holes__a_group_has_the_ranks_that_have_its_number)
{
    orr_set *s = make_groups();
    orr_info *o = info_of(s, &(orr_info_options){.per_rank = true});
    static const uint32_t ranks[] = {4, 2, 1};
    static const uint64_t moved[] = {900, 600, 0}; /* 2(n-1)/n x 600 for each rank */
    CHECK_EQ_U(o->coll_count, 3); /* what stands in the hole, 77, is nobody's group */
    CHECK_EQ_U(o->row_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_EQ_U(o->colls[i].ranks, ranks[i]);
        CHECK_EQ_U(o->colls[i].count, ranks[i]);
        CHECK_EQ_U(o->colls[i].moved, ranks[i] * moved[i]);
        CHECK_EQ_U(o->rows[i].moved_bytes, moved[i]);
        CHECK_EQ_U(o->rows[i].count, ranks[i]);
    }
    CHECK_TEXT(o->rows[0].ranks, "0-3");
    CHECK_EQ_U(o->moved_coll, 4 * 900 + 2 * 600);
    orr_info_destroy(o);
    orr_set_close(s);
}

/* ---- the hash ---- */

static orr_content_hash hash_of(const orr_set *s, uint32_t rank)
{
    orr_content_hash h;
    CHECK_OK(orr__set_content_hash(s, rank, &h, &err), &err);
    return h;
}

static bool is_same_hash(orr_content_hash a, orr_content_hash b)
{
    return a.high == b.high && a.low == b.low;
}

/* docs/format/info.md, for the set above. */
static orr_content_hash hash_by_hand(const orr_set *s)
{
    struct {
        orr_content_hash content;
        uint64_t shift;
    } ranks[7] = {0};
    const uint32_t hole[3] = {0, 0, 0}; /* node, field, slot */
    for (uint32_t r = 0; r < 7; r++) {
        const int64_t value = s->values[r];
        const orr_content_hash parts[3] = {
            orr_content_hash_of(s->classes[0].t->bytes),
            orr_content_hash_of((orr_span){(const uint8_t *)hole, sizeof hole}),
            orr_content_hash_of((orr_span){(const uint8_t *)&value, 8})};
        ranks[r].content = orr_content_hash_of((orr_span){(const uint8_t *)parts, sizeof parts});
    }
    return orr_content_hash_of((orr_span){(const uint8_t *)ranks, sizeof ranks});
}

TEST(test_info_holes__the_hash_is_of_body_holes_and_values)
{
    orr_set *s = make_groups();
    CHECK(is_same_hash(hash_of(s, ORR_NO_NODE), hash_by_hand(s)));
    s->values[6] = 4;
    const orr_content_hash other = hash_of(s, ORR_NO_NODE);
    s->values[6] = 3;
    CHECK(!is_same_hash(hash_of(s, ORR_NO_NODE), other));
    orr_set_close(s);
}

TEST(test_info_holes__one_rank_has_the_hash_of_its_file)
{
    orr_set *s = make_groups(), *plain = make_plain_copy(s);
    for (uint32_t r = 0; r < 7; r++)
        CHECK(is_same_hash(hash_of(s, r), hash_of(plain, r)));
    CHECK_OK(orr_set_keep(s, 5, 1, &err), &err); /* a set of one rank */
    CHECK(is_same_hash(hash_of(s, ORR_NO_NODE), hash_of(plain, 5)));
    orr_set_close(s);
    orr_set_close(plain);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_info_holes__figures_are_those_of_plain_ranks),
        RUN(test_info_holes__a_group_has_the_ranks_that_have_its_number),
        RUN(test_info_holes__the_hash_is_of_body_holes_and_values),
        RUN(test_info_holes__one_rank_has_the_hash_of_its_file),
    };
    return RUN_ALL(tests);
}
