/* SPDX-License-Identifier: Apache-2.0 */
/* coll_table.c - the list of algorithms: the only place that knows them all.  The names in the
 * system file, the list in its error messages, help, timelines and progress are derived from it. */
#include "coll.h"

#include "base/text/number.h"

#include <ctype.h>
#include <stdio.h>

static const orr_coll_ops *const table[] = {
    &coll_ring,  &coll_direct, &coll_halving_doubling, &coll_tree, /* without a root */
    &coll_chain, &coll_star,   &coll_binomial,                     /* rooted */
};
enum { COUNT = sizeof table / sizeof *table };

const orr_coll_ops *orr_coll_at(size_t index)
{
    return index < COUNT ? table[index] : NULL;
}

const orr_coll_ops *coll_get(const orr_coll_ops *const *more, size_t i)
{
    if (i < COUNT)
        return table[i];
    /* The caller's own algorithms come after ours, so that numbers of ours are the same in every
     * run. */
    for (i -= COUNT; more && *more; more++, i--)
        if (i == 0)
            return *more;
    return NULL;
}

uint8_t coll_number(const orr_coll_ops *const *more, const orr_coll_ops *ops)
{
    /* One byte in each record of a phase in a timeline; its reader finds the name by coll_get. */
    uint8_t i = 0;
    while (i < UINT8_MAX && coll_get(more, i) && coll_get(more, i) != ops)
        i++;
    return i;
}

const orr_coll_ops *coll_default(orr_collective kind)
{
    return coll_has_root(kind) ? &coll_binomial : &coll_ring;
}

size_t coll_largest_state(const orr_coll_ops *const *more)
{
    size_t most = 0;
    for (size_t i = 0; coll_get(more, i); i++)
        if (coll_get(more, i)->state_size > most)
            most = coll_get(more, i)->state_size;
    return most;
}

const char *coll_kind_name(orr_collective kind)
{
    static const char *const names[ORR_COLL_COUNT] = {
        [ORR_COLL_ALL_REDUCE] = "all-reduce",
        [ORR_COLL_REDUCE] = "reduce",
        [ORR_COLL_ALL_GATHER] = "all-gather",
        [ORR_COLL_GATHER] = "gather",
        [ORR_COLL_SCATTER] = "scatter",
        [ORR_COLL_BROADCAST] = "broadcast",
        [ORR_COLL_ALL_TO_ALL] = "all-to-all",
        [ORR_COLL_REDUCE_SCATTER] = "reduce-scatter",
        [ORR_COLL_REDUCE_SCATTER_BLOCK] = "reduce-scatter block",
        [ORR_COLL_BARRIER] = "barrier",
    };
    return (unsigned)kind < ORR_COLL_COUNT ? names[kind] : "collective";
}

/* ---- names in the system file ---- */

/* A name in the system file need not fit the collective, only its family: an algorithm that cannot
 * run the collective is an error when it is started, as in the reference. */
static bool is_of_family(const orr_coll_ops *ops, orr_collective kind)
{
    const bool is_rooted = (ops->kinds & COLL_ROOTED) != 0;
    return is_rooted == coll_has_root(kind);
}

static bool starts_with(orr_str s, const char *head, size_t n)
{
    return s.len >= n && memcmp(s.ptr, head, n) == 0;
}

/* "ring" or "oneRing"; the rest of the word, if any, must be a number. */
static bool strip_name(orr_str *s, const orr_coll_ops *ops, bool *is_one)
{
    const size_t n = strlen(ops->name);
    orr_str rest = *s;
    *is_one = false;
    if (!starts_with(rest, ops->name, n)) {
        if (!ops->has_one || !starts_with(rest, "one", 3) || rest.len < 3 + n ||
            rest.ptr[3] != toupper((unsigned char)ops->name[0]) ||
            memcmp(rest.ptr + 4, ops->name + 1, n - 1) != 0)
            return false;
        *is_one = true;
        rest.ptr += 3;
        rest.len -= 3;
    }
    s->ptr = rest.ptr + n;
    s->len = rest.len - n;
    return true;
}

bool coll_parse(const orr_coll_ops *const *more,
                orr_collective kind,
                orr_str word,
                coll_choice *out)
{
    enum { MOST_DIGITS = 5 };
    for (size_t i = 0; coll_get(more, i); i++) {
        const orr_coll_ops *ops = coll_get(more, i);
        orr_str rest = word;
        uint64_t number = 0;
        bool is_one;
        if (!is_of_family(ops, kind) || !strip_name(&rest, ops, &is_one))
            continue;
        if (rest.len &&
            (!ops->takes_number || rest.len > MOST_DIGITS || !orr_text_u64(rest, &number)))
            continue;
        *out = (coll_choice){.ops = ops, .is_one = is_one, .number = (uint32_t)number};
        return true;
    }
    return false;
}

static void put_name(orr_buf *out, const orr_coll_ops *ops, bool is_one)
{
    if (is_one)
        orr_buf_print(out, "one%c%s", toupper((unsigned char)ops->name[0]), ops->name + 1);
    else
        orr_buf_text(out, ops->name);
    if (ops->takes_number)
        orr_buf_text(out, "[N]");
}

void coll_put_words(const orr_coll_ops *const *more, orr_collective kind, orr_buf *out)
{
    const char *separator = "";
    for (int is_one = 0; is_one < 2; is_one++)
        for (size_t i = 0; coll_get(more, i); i++) {
            const orr_coll_ops *ops = coll_get(more, i);
            if (!is_of_family(ops, kind) || (is_one && !ops->has_one))
                continue;
            orr_buf_text(out, separator);
            put_name(out, ops, is_one);
            separator = ", ";
        }
}

size_t orr_coll_describe(const orr_coll_ops *const *more, char *out, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; coll_get(more, i); i++) {
        const orr_coll_ops *ops = coll_get(more, i);
        char name[64];
        snprintf(name, sizeof name, "%s%s", ops->name, ops->takes_number ? "[N]" : "");
        const int more_text =
            snprintf(n < room ? out + n : NULL, n < room ? room - n : 0, "%-18s %s%s\n", name,
                     ops->kinds & COLL_ROOTED ? "root: " : "", ops->help);
        n += more_text > 0 ? (size_t)more_text : 0;
    }
    return n;
}

void coll_turn(orr_coll *c, uint32_t by)
{
    if (c->ops == &coll_ring)
        coll_ring_turn(c, by);
    else if (c->ops == &coll_direct)
        coll_direct_turn(c, by);
}
