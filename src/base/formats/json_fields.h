/* SPDX-License-Identifier: Apache-2.0 */
/* json_fields.h - several members of a JSON object in one call.
 *
 *     orr_json_put_fields(w, ORR_T("name", p->name), ORR_U("ranks", p->ranks), ORR_D("share", p->share));
 *
 * All values are worked out before the first is written: two of them must not share a buffer. */
#ifndef ORR_BASE_JSON_FIELDS_H
#define ORR_BASE_JSON_FIELDS_H

#include "base/formats/json.h"

typedef struct orr_json_field {
    const char *key;
    char kind; /* U, I, D, F, B, T as the macros below; N: null */
    union {
        uint64_t u;
        int64_t i;
        double d;
        bool b;
        const char *text;
    } is;
    const char *format; /* of an F */
} orr_json_field;

#define ORR_U(name, value) ((orr_json_field){.key = name, .kind = 'U', .is.u = (value)})
#define ORR_I(name, value) ((orr_json_field){.key = name, .kind = 'I', .is.i = (value)})
#define ORR_D(name, value) ((orr_json_field){.key = name, .kind = 'D', .is.d = (value)})
#define ORR_B(name, value) ((orr_json_field){.key = name, .kind = 'B', .is.b = (value)})
#define ORR_T(name, value) \
    ((orr_json_field){.key = name, .kind = 'T', .is.text = (value)}) /* NULL: null */
/* null unless it is known. */
#define ORR_KU(name, is_known, value) \
    ((orr_json_field){.key = name, .kind = (is_known) ? 'U' : 'N', .is.u = (value)})
#define ORR_KD(name, is_known, value) \
    ((orr_json_field){.key = name, .kind = (is_known) ? 'D' : 'N', .is.d = (value)})
/* A number by a format of printf for a double. */
#define ORR_F(name, how, value) \
    ((orr_json_field){.key = name, .kind = 'F', .is.d = (value), .format = how})

/* The members of the object that is open; and a whole object of them, as an item of a list. */
#define orr_json_put_fields(w, ...) orr_json_put_list(w, (const orr_json_field[]){__VA_ARGS__, {0}})
#define orr_json_put_row(w, ...) orr_json_put_item(w, (const orr_json_field[]){__VA_ARGS__, {0}})

void orr_json_put_list(orr_json_writer *w, const orr_json_field *fields);
void orr_json_put_item(orr_json_writer *w, const orr_json_field *fields);

/* "key": { or "key": [; the caller ends it. */
void orr_json_put_object(orr_json_writer *w, const char *key);
void orr_json_put_array(orr_json_writer *w, const char *key);
/* null unless it is known. */
void orr_json_put_known(orr_json_writer *w, const char *key, bool is_known, uint64_t v);
void orr_json_put_known_double(orr_json_writer *w, const char *key, bool is_known, double v);

#endif
