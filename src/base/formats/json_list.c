/* SPDX-License-Identifier: Apache-2.0 */
#include "json_list.h"

#include "base/short_forms.h"

typedef struct walk {
    orr_json *j;
    const orr_json_list *how;
    void *context;
    orr_error *err;
    bool has_enough;
} walk;

static orr_code answer(walk *w, orr_code code)
{
    w->has_enough |= code == ORR_END;
    return code;
}

static orr_code walk_items(walk *w, const orr_json_item *list)
{
    orr_json_item item;
    orr_json_value v;
    orr_code code = w->how->begin ? w->how->begin(w->context, list) : ORR_OK;
    if (code)
        return code == ORR_END ? ORR_OK : code;
    code = orr_json_enter(w->j, w->err);
    while (!code && !(code = orr_json_next(w->j, &item, w->err))) {
        if (!(code = orr_json_load(w->j, &v, w->err)))
            code = answer(w, w->how->item(w->context, v));
    }
    return code == ORR_END && !w->has_enough ? ORR_OK : code;
}

static orr_code walk_members(walk *w)
{
    orr_json_item item;
    orr_code code = orr_json_enter(w->j, w->err);
    while (!code && !(code = orr_json_next(w->j, &item, w->err))) {
        if (item.type == ORR_JSON_ARRAY && orr_str_is(item.key, w->how->key))
            code = walk_items(w, &item);
        else if (w->how->member)
            code = answer(w, w->how->member(w->context, &item));
    }
    return code == ORR_END && !w->has_enough ? ORR_OK : code;
}

static orr_code refuse(const walk *w, uint64_t byte, const char *words, const char *more)
{
    return orr_fail(w->err, ORR_EINPUT, ORR_AT(orr_json_place(w->j, byte)), "%s%s%s", words,
                    w->how->what, more);
}

static orr_code wrong_type(const walk *w)
{
    return orr_fail(w->err, ORR_EINPUT, ORR_AT(orr_json_place(w->j, 0)),
                    "expected %s: an object with \"%s\"%s", w->how->what, w->how->key,
                    w->how->takes_bare ? ", or a list" : "");
}

orr_code orr_json_walk_list(orr_json *j, const orr_json_list *how, void *context, orr_error *err)
{
    walk w = {.j = j, .how = how, .context = context, .err = err};
    orr_json_item item;
    orr_code code = orr_json_next(j, &item, err);
    if (code)
        return code == ORR_END ? refuse(&w, 0, "an empty file: expected ", "") : code;
    if (item.type == ORR_JSON_OBJECT)
        code = walk_members(&w);
    else if (item.type == ORR_JSON_ARRAY && how->takes_bare)
        code = walk_items(&w, &item);
    else
        return wrong_type(&w);
    if (code || how->takes_more)
        return code == ORR_END ? ORR_OK : code;
    code = orr_json_next(j, &item, err);
    if (!code)
        return refuse(&w, item.byte, "something follows the end of ", "");
    return code == ORR_END ? ORR_OK : code;
}
