/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_link.h - what both fuzz targets of the linker do with a pair of traces, one of which is any
 * bytes: link it in every way there is; what is refused has words, what is taken can be written,
 * and converts to a trace without missing parents. */
#ifndef ORR_FUZZ_LINK_H
#define ORR_FUZZ_LINK_H

#include <orrery/lab/compat.h>

#include "fuzz_ways.h"

#include "sources/torch/link/link_impl.h"

#include <stdlib.h>

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void convert(const orr_link *l)
{
    orr_error err;
    orr_trace *t;
    const orr_code code = orr_linked_trace(l->linked, NULL, &t, NULL, &err);
    if (code) {
        require(err.message[0]);
        return;
    }
    const orr_columns *c = orr_trace_columns(t);
    require(c->data_missing == 0 && c->ctrl_missing == 0 && c->duplicate_ids == 0);
    orr_trace_destroy(t);
}

static void link_pair(const orr_span *host, const orr_span *device, const orr_link_options *opt)
{
    orr_error err;
    orr_link *l;
    const orr_code code = orr_link_parse(host, device, opt, &l, &err);
    require(!code == (l != NULL));
    if (code) {
        require((code == ORR_EINPUT || code == ORR_EUSAGE) && err.message[0]);
        return;
    }
    require(orr_link_write(l, "/dev/null", &err) == ORR_OK);
    if (!opt->rules)
        convert(l);
    orr_link_close(l);
}

static void link_every_way(const orr_span *host, const orr_span *device, bool host_alone)
{
    const orr_link_options options[] = {{.rules = orr_compat_at(ORR_RULES_LINK, 0)->link},
                                        {0},
                                        {.is_strict = true},
                                        {.has_step = true},
                                        {0}};
    const orr_span *any = host_alone ? host : device;
    FUZZ_WAYS(way, 5, any->ptr, any->len)
    {
        if (way < 4)
            link_pair(host, device, &options[way]);
        else
            link_pair(host_alone ? host : NULL, host_alone ? NULL : device, &options[way]);
    }
}

#endif
