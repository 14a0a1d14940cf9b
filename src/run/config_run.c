/* SPDX-License-Identifier: Apache-2.0 */
/* config_run.c - the keys of the system file that only orrery run listens to: the schedulers, which the
 * reference has forgotten, and the algorithms of broadcast and its like, which it never had.
 *
 * Under the old names nothing here is read, so that a file which the reference takes is never refused. */
#include "sim_impl.h"

#include "base/formats/json.h"
#include "base/io/input.h"

#include <stdio.h>

typedef struct word {
    const char *text;
    int value;
} word;

static orr_code find_word(
    orr_json_value v, const char *key, const word *words, int *out, orr_error *err)
{
    orr_str s = {"", 0};
    const orr_where w = orr_json_where(v);
    char known[160];
    size_t n = 0;
    if (orr_json_type_of(v) == ORR_JSON_STRING) {
        const orr_code code = orr_json_get_str(v, &s, err);
        if (code)
            return code;
    }
    for (; words->text; words++) {
        if (strlen(words->text) == s.len && memcmp(words->text, s.ptr, s.len) == 0) {
            *out = words->value;
            return ORR_OK;
        }
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", words->text);
    }
    return orr_fail(err, ORR_EINPUT, &w, "%s: \"%.*s\" is not one of %s", key,
                    (int)(s.len < 40 ? s.len : 40), s.ptr, known);
}

static orr_code take_schedulers(orr_json_value root, orr__system_config *c, orr_error *err)
{
    static const word inter[] = {
        {"ascending", ORR__ASCENDING},          {"roundRobin", ORR__ROUND_ROBIN},
        {"offlineGreedy", ORR__OFFLINE_GREEDY}, {"offlineGreedyFlex", ORR__OFFLINE_GREEDY_FLEX},
        {"onlineGreedy", ORR__ONLINE_GREEDY},   {NULL, 0}};
    static const word intra[] = {{"FIFO", ORR__BY_PRIORITY},
                                 {"RG", ORR__ALTERNATING},
                                 {"smallestFirst", ORR__SMALLEST_FIRST},
                                 {"lessRemainingPhaseFirst", ORR__LESS_REMAINING_FIRST},
                                 {NULL, 0}};
    static const word orders[] = {{"own", 0}, {"agreed", 1}, {NULL, 0}};
    orr_json_value v;
    int value = ORR__ASCENDING;
    orr_code code = ORR_OK;
    if (orr_json_find(root, "inter-dimension-scheduling", &v))
        code = find_word(v, "inter-dimension-scheduling", inter, &value, err);
    c->inter = (orr__inter)value;
    value = ORR__BY_PRIORITY;
    if (!code && orr_json_find(root, "intra-dimension-scheduling", &v))
        code = find_word(v, "intra-dimension-scheduling", intra, &value, err);
    c->intra = (orr__intra)value;
    /* Ranks that choose their own order may come to wait for each other, as in the reference. */
    value = c->inter != ORR__ASCENDING || c->intra != ORR__BY_PRIORITY;
    if (!code && orr_json_find(root, "chunk-order", &v))
        code = find_word(v, "chunk-order", orders, &value, err);
    c->is_agreed = value != 0;
    return code;
}

/* A list with one algorithm a dimension, or the algorithm of all. */
static orr_code take_rooted(
    orr_json_value root, const char *key, orr__kind kind, orr__system_config *c, orr_error *err)
{
    static const word forms[] = {
        {"ring", ORR__CHAIN}, {"direct", ORR__STAR}, {"tree", ORR__BINOMIAL}, {NULL, 0}};
    orr_json_value list, v;
    int form;
    c->choice_count[kind] = 0;
    if (!orr_json_find(root, key, &list))
        return ORR_OK;
    const orr_where w = orr_json_where(list);
    if (orr_json_type_of(list) != ORR_JSON_ARRAY || orr_json_count(list) == 0 ||
        orr_json_count(list) > ORR_NET_DIMS)
        return orr_fail(err, ORR_EINPUT, &w, "%s: a list of 1 to %d algorithms was expected", key,
                        ORR_NET_DIMS);
    for (orr_json_iter it = orr_json_iterate(list); orr_json_next_value(&it, &v);) {
        const orr_code code = find_word(v, key, forms, &form, err);
        if (code)
            return code;
        c->choice[kind][c->choice_count[kind]++] = (orr__choice){.algorithm = (orr__algorithm)form};
    }
    c->has_choices[kind] = true;
    return ORR_OK;
}

static orr_code take_all(orr_json_value root, orr__system_config *c, orr_error *err)
{
    static const char *const keys[ORR__KINDS] = {
        [ORR__BC] = "broadcast-implementation",    [ORR__RD] = "reduce-implementation",
        [ORR__GT] = "gather-implementation",       [ORR__SC] = "scatter-implementation",
        [ORR__BARRIER] = "barrier-implementation",
    };
    orr_code code = take_schedulers(root, c, err);
    for (unsigned k = ORR__REFERENCE_KINDS; k < ORR__KINDS && !code; k++)
        code = take_rooted(root, keys[k], (orr__kind)k, c, err);
    return code;
}

orr_code orr__read_run_keys(const orr_sim_options *opt, orr__system_config *out, orr_error *err)
{
    orr_input *in;
    orr_json *j;
    orr_json_value root;
    const char *path = opt->system_text ? ORR__BUILT_IN : opt->system;
    orr_code code = orr__open_config(path, opt->system_text, &in, err);
    if (code)
        return code;
    code = orr_json_open(orr_input_bytes(in), path, &j, err);
    if (!code)
        code = orr_json_only(j, &root, err);
    if (!code)
        code = take_all(root, out, err);
    orr_json_close(j);
    orr_input_close(in);
    return code;
}
