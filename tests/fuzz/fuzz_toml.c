/* SPDX-License-Identifier: Apache-2.0 */
/* room: astra_sim */
/* fuzz_toml.c - any bytes as TOML.  What is refused must have a place and words; in what is taken
 * every value is looked at, once by walking and, in tables, once more by its key. */
#include "base/text/text.h"
#include "compat/astra_sim/toml.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_key(orr_toml_value table, orr_toml_value v)
{
    char key[256];
    orr_toml_value found;
    const orr_str k = orr_toml_key(v);
    if (k.len >= sizeof key || memchr(k.ptr, '\0', k.len))
        return;
    memcpy(key, k.ptr, k.len);
    key[k.len] = '\0';
    require(orr_toml_find(table, key, &found) && found.node == v.node);
}

static size_t walk(orr_toml_value v)
{
    size_t bytes = orr_toml_text(v).len;
    orr_toml_value item;
    uint32_t count = 0;
    const bool is_table = orr_toml_type_of(v) == ORR_TOML_TABLE;
    (void)orr_toml_int(v);
    (void)orr_toml_real(v);
    (void)orr_toml_bool(v);
    for (bool more = orr_toml_first(v, &item); more; more = orr_toml_next(&item), count++) {
        if (is_table)
            check_key(v, item);
        bytes += orr_toml_key(item).len + walk(item);
    }
    require(count == orr_toml_count(v));
    return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    orr_toml *t;
    orr_error err;
    if (orr_toml_open((orr_span){data, size}, "a.toml", &t, &err)) {
        require(!t && err.message[0] && err.where.path[0]);
        require(err.where.line > 0 || size > 1 << 20);
        return 0;
    }
    require(walk(orr_toml_root(t)) <= size); /* no text is longer than what it is made from */
    require(orr_toml_where(orr_toml_root(t)).line == 1);
    orr_toml_close(t);
    return 0;
}
