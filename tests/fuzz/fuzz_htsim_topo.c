/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_htsim_topo.c - any bytes as a .topo file, and as a topology of whichever kind they look
 * like.  What is refused has a place and words; what is taken is whole, and can be written and read
 * again. */
#include "models/network/topology/topology_kinds.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_LINKS = 20000 };

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check(const orr__topology *t)
{
    require(t->ranks >= 2 && t->link_count <= MOST_LINKS);
    for (size_t i = 0; i < t->link_count; i++) {
        const orr__wire *l = &t->links[i];
        require(l->from < orr__topology_devices(t) && l->to < orr__topology_devices(t));
        require(l->speed > 0 && l->latency >= 0 && l->cost > 0);
    }
}

/* What htsim's writer calls a tree its reader must take. */
static void write_again(const orr__topology *t)
{
    orr__cabling c = {0};
    orr_buf b = {0};
    orr__topology *back = NULL;
    orr_error err;
    if (!orr__cabling_of_topology(&c, t, &err) && !orr__htsim_topo_words(&c, &b, &err)) {
        require(!orr__htsim_topo_parse((orr_span){b.ptr, b.len}, "again", MOST_LINKS, &back, &err));
        require(back->ranks == t->ranks && back->link_count == 2 * c.cable_count);
        require(orr__topology_devices(back) == orr__topology_devices(t));
    }
    orr__topology_destroy(back);
    orr_buf_fini(&b);
    orr__cabling_fini(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const orr_span bytes = {data, size};
    orr__topology *t;
    orr_error err;
    for (unsigned i = 0; i < 2; i++) {
        const orr_code code = i ? orr__topology_parse_any(bytes, "x.topo", MOST_LINKS, &t, &err)
                                : orr__htsim_topo_parse(bytes, "x.topo", MOST_LINKS, &t, &err);
        if (code)
            require(!t && err.message[0] && err.where.path[0]);
        if (t) {
            check(t);
            write_again(t);
        }
        orr__topology_destroy(t);
    }
    return 0;
}
